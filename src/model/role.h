/* role.h - who may ask for what: roles are sets, not ranks. A node is not above an admin, it is merely something else. */
#pragma once
#include "base/field.h"

enum role {
    ROLE_VIEWER = 1 << 0,       /* of a project: looks */
    ROLE_DEVELOPER = 1 << 1,    /* of a project: runs */
    ROLE_ADMIN = 1 << 2,        /* of a project: members, keys, secrets */
    ROLE_OPERATOR = 1 << 3,     /* of the platform: organisations, projects, people, nodes */
    ROLE_AUDITOR = 1 << 4,      /* of the platform: reads events and usage of all, changes nothing */
    ROLE_NODE = 1 << 5,         /* an agent: reports on its own tasks */
    ROLE_PLANNER = 1 << 6,      /* the server's own followers; no key can carry it */
    ROLE_PERSON = 1 << 7,       /* anybody who could be authenticated, besides nodes */
};
enum {
    PROJECT_ROLES = ROLE_VIEWER | ROLE_DEVELOPER | ROLE_ADMIN,
    PLATFORM_ROLES = ROLE_OPERATOR | ROLE_AUDITOR,
    VIEWERS = PROJECT_ROLES,
    DEVELOPERS = ROLE_DEVELOPER | ROLE_ADMIN,
    ADMINS = ROLE_ADMIN,
    OPERATORS = ROLE_OPERATOR,
    WATCHERS = ROLE_OPERATOR | ROLE_AUDITOR,
    NODES = ROLE_NODE,
    PLANNERS = ROLE_PLANNER,
    ANYBODY = ROLE_PERSON,
};

enum principal { PRINCIPAL_NONE, PRINCIPAL_USER, PRINCIPAL_ACCOUNT, PRINCIPAL_NODE, PRINCIPAL_SYSTEM };

/* What a credential turned out to be: made by auth/, read by everyone, kept by nobody. */
struct caller {
    enum principal kind;
    int64_t id;                 /* of the user, the service account or the node */
    int64_t key;                /* the key it came with; 0 for the system */
    int64_t project;            /* the project it speaks for; 0: none */
    int64_t org;
    unsigned roles;             /* set of enum role: here, in this project, with this key */
    char name[64];
    char address[46];           /* where the request came from */
    char request[24];           /* the request's id, for the audit */
};

unsigned role_parse(const char *text);                          /* "developer" or "viewer,admin"; 0: not known */
const char *role_text(char out[static 96], unsigned roles);     /* "viewer,developer" */
