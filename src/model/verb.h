/* verb.h - everything anybody may ask of the cloud, in one table: its name, who may, its route, what it takes and gives.
 *
 * Who may is here and nowhere else. control/ hangs a function on each verb, api/ dispatches by method and path, the CLI finds the
 * route of a word, /openapi.json is printed from it, and a test walks it as every role. */
#pragma once
#include "base/field.h"
#include "model/role.h"

enum verb_kind {
    VERB_READ,          /* by a reader, from what is committed */
    VERB_WRITE,         /* by the writer, in its transaction */
    VERB_ASK,           /* of the writer's memory and the planner's picture; nothing is written */
    VERB_STREAM,        /* by api/ itself: long-lived bytes; the check of roles is the same */
    VERB_INSIDE,        /* a write without a route: the server's own followers and the agents' connection */
};
enum verb_id {
    VERB_LOGIN, VERB_WHOAMI, VERB_PASSWORD,
    VERB_ORG_CREATE, VERB_ORG_LIST,
    VERB_PROJECT_CREATE, VERB_PROJECT_LIST, VERB_PROJECT_GET, VERB_PROJECT_UPDATE, VERB_QUOTA_LIST, VERB_QUOTA_SET,
    VERB_MEMBER_LIST, VERB_MEMBER_SET, VERB_MEMBER_REMOVE,
    VERB_USER_CREATE, VERB_USER_LIST, VERB_USER_UPDATE,
    VERB_ACCOUNT_CREATE, VERB_ACCOUNT_LIST, VERB_ACCOUNT_DISABLE,
    VERB_KEY_CREATE, VERB_KEY_LIST, VERB_KEY_DISABLE, VERB_SSH_KEY_ADD, VERB_SSH_KEY_LIST, VERB_SSH_KEY_REMOVE,
    VERB_SECRET_SET, VERB_SECRET_LIST, VERB_SECRET_REMOVE,
    VERB_VOLUME_CREATE, VERB_VOLUME_LIST, VERB_VOLUME_REMOVE, VERB_VOLUME_FILES,
    VERB_IMAGE_ADD, VERB_IMAGE_LIST, VERB_IMAGE_REMOVE,
    VERB_BLOB_PUT, VERB_BLOB_HEAD, VERB_BLOB_GET, VERB_BLOB_ADD,
    VERB_JOB_SUBMIT, VERB_JOB_BATCH, VERB_JOB_LIST, VERB_JOB_GET, VERB_JOB_UPDATE, VERB_JOB_CANCEL, VERB_JOB_SUSPEND, VERB_JOB_RESUME, VERB_JOB_STOP, VERB_JOB_START, VERB_JOB_TASKS, VERB_JOB_ATTEMPTS, VERB_JOB_QUEUE, VERB_JOB_WHY, VERB_JOB_PLAN,
    VERB_JOB_LOGS, VERB_JOB_EXEC, VERB_JOB_DIAL, VERB_JOB_SSH, VERB_JOB_FILES, VERB_JOB_PLACE, VERB_JOB_TICK,
    VERB_NODE_TOKEN, VERB_NODE_JOIN, VERB_NODE_REKEY, VERB_NODE_ROTATE, VERB_NODE_LIST, VERB_NODE_GET, VERB_NODE_UPDATE, VERB_NODE_DRAIN, VERB_NODE_LOST, VERB_NODE_REMOVE, VERB_FLEET_GET, VERB_RULES_GET, VERB_RULES_SET,
    VERB_RESERVE_CREATE, VERB_RESERVE_LIST, VERB_RESERVE_GET, VERB_RESERVE_REMOVE,
    VERB_NODE_LINK, VERB_NODE_STREAM, VERB_NODE_HELLO, VERB_NODE_REPORT,
    VERB_GPU_LIST, VERB_GPU_LIVE, VERB_METRICS, VERB_FLAVOR_LIST, VERB_EVENT_LIST, VERB_USAGE_SUM, VERB_TRACE_LIST, VERB_BACKUP, VERB_SERVER_LIST,
    VERB_DATA_DROP, VERB_AUDIT_NOTE, VERB_AUDIT_LIST, VERB_AUDIT_VERIFY,
    VERB_COUNT
};
struct verb {
    const char *name;           /* "job.submit" */
    enum verb_kind kind;
    unsigned roles;             /* set of enum role; 0: carries its own credential (login, node.join) */
    const char *method, *path;  /* NULL: VERB_INSIDE */
    const struct fields *takes, *gives;
    bool list;                  /* gives {"items": [...], "next": ...} */
    int status;                 /* of a good reply: 200, 201 */
    const char *help;           /* one sentence */
};
extern const struct verb verbs[VERB_COUNT];
const struct verb *verb_find(const char *name);
