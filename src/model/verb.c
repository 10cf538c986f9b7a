/* verb.c - the table. Sets of roles, not ranks: each row names all that may. */
#include "model/verb.h"
#include "model/ask.h"
#include "model/job.h"
#include "model/order.h"
#include "model/view.h"

#define TAKES(x) &x##_fields
#define GIVES(x) &x##_fields
#define NO_ROUTE NULL, NULL

const struct verb verbs[VERB_COUNT] = {
    [VERB_LOGIN] = { "login", VERB_WRITE, 0, "POST", "/v1/login", TAKES(login_ask), GIVES(key_view), false, 201, "Trade a name and a password for a key of this session" },
    [VERB_WHOAMI] = { "whoami", VERB_READ, ANYBODY, "GET", "/v1/whoami", TAKES(nothing), GIVES(whoami_view), false, 200, "Who this key belongs to, and what it may do" },
    [VERB_PASSWORD] = { "password", VERB_WRITE, ANYBODY, "POST", "/v1/password", TAKES(password_ask), GIVES(user_view), false, 200, "Change your own password" },
    [VERB_ORG_CREATE] = { "org.create", VERB_WRITE, OPERATORS, "POST", "/v1/orgs", TAKES(org_ask), GIVES(simple_view), false, 201, "Make an organisation" },
    [VERB_ORG_LIST] = { "org.list", VERB_READ, WATCHERS, "GET", "/v1/orgs", TAKES(page_ask), GIVES(simple_view), true, 200, "List organisations" },
    [VERB_PROJECT_CREATE] = { "project.create", VERB_WRITE, OPERATORS, "POST", "/v1/projects", TAKES(project_ask), GIVES(project_view), false, 201, "Make a project: the tenant that quota, members and bill hang on" },
    [VERB_PROJECT_LIST] = { "project.list", VERB_READ, ANYBODY, "GET", "/v1/projects", TAKES(page_ask), GIVES(project_view), true, 200, "List the projects that you are in" },
    [VERB_PROJECT_GET] = { "project.get", VERB_READ, ANYBODY, "GET", "/v1/projects/{project}", TAKES(project_ref), GIVES(project_view), false, 200, "Show a project" },
    [VERB_PROJECT_UPDATE] = { "project.update", VERB_WRITE, OPERATORS, "PATCH", "/v1/projects/{project}", TAKES(project_set), GIVES(project_view), false, 200, "Change a project's quota, or its weight against others" },
    [VERB_QUOTA_LIST] = { "quota.list", VERB_READ, VIEWERS | WATCHERS, "GET", "/v1/quota", TAKES(page_ask), GIVES(limit_view), true, 200, "List what the project, its users and either of one GPU model may hold and use, and what they do" },
    [VERB_QUOTA_SET] = { "quota.set", VERB_WRITE, OPERATORS, "PUT", "/v1/projects/{project}/quota", TAKES(limit_set), GIVES(limits_view), false, 200, "Limit tasks, GPUs or GPU-hours of a project, of one of its users, or of either on one GPU model" },
    [VERB_MEMBER_LIST] = { "member.list", VERB_READ, VIEWERS, "GET", "/v1/members", TAKES(page_ask), GIVES(member_view), true, 200, "List the members of the project" },
    [VERB_MEMBER_SET] = { "member.set", VERB_WRITE, ADMINS, "PUT", "/v1/members/{user}", TAKES(member_ask), GIVES(member_view), false, 200, "Give a user roles in the project" },
    [VERB_MEMBER_REMOVE] = { "member.remove", VERB_WRITE, ADMINS, "DELETE", "/v1/members/{user}", TAKES(member_ref), GIVES(member_view), false, 200, "Take a user out of the project" },
    [VERB_USER_CREATE] = { "user.create", VERB_WRITE, OPERATORS, "POST", "/v1/users", TAKES(user_ask), GIVES(user_view), false, 201, "Make a user" },
    [VERB_USER_LIST] = { "user.list", VERB_READ, WATCHERS, "GET", "/v1/users", TAKES(page_ask), GIVES(user_view), true, 200, "List users" },
    [VERB_USER_UPDATE] = { "user.update", VERB_WRITE, OPERATORS, "PATCH", "/v1/users/{user}", TAKES(user_set), GIVES(user_view), false, 200, "Disable or enable a user, reset the password, change platform roles" },
    [VERB_ACCOUNT_CREATE] = { "account.create", VERB_WRITE, ADMINS, "POST", "/v1/accounts", TAKES(account_ask), GIVES(account_view), false, 201, "Make a service account for programs of the project" },
    [VERB_ACCOUNT_LIST] = { "account.list", VERB_READ, VIEWERS, "GET", "/v1/accounts", TAKES(page_ask), GIVES(account_view), true, 200, "List the service accounts of the project" },
    [VERB_ACCOUNT_DISABLE] = { "account.disable", VERB_WRITE, ADMINS, "DELETE", "/v1/accounts/{account}", TAKES(account_ref), GIVES(account_view), false, 200, "Disable a service account and all its keys at once" },
    [VERB_KEY_CREATE] = { "key.create", VERB_WRITE, ANYBODY, "POST", "/v1/keys", TAKES(key_ask), GIVES(key_view), false, 201, "Make an API key for yourself, or (as an admin) for a service account; it is shown once" },
    [VERB_KEY_LIST] = { "key.list", VERB_READ, ANYBODY, "GET", "/v1/keys", TAKES(page_ask), GIVES(key_view), true, 200, "List your keys; admins see those of the project's service accounts too" },
    [VERB_KEY_DISABLE] = { "key.disable", VERB_WRITE, ANYBODY, "DELETE", "/v1/keys/{key}", TAKES(key_ref), GIVES(key_view), false, 200, "Disable a key at once" },
    [VERB_SECRET_SET] = { "secret.set", VERB_WRITE, DEVELOPERS, "PUT", "/v1/secrets/{name}", TAKES(secret_ask), GIVES(secret_view), false, 200, "Store or replace a secret; its value is never shown again" },
    [VERB_SECRET_LIST] = { "secret.list", VERB_READ, VIEWERS, "GET", "/v1/secrets", TAKES(page_ask), GIVES(secret_view), true, 200, "List the names of secrets" },
    [VERB_SECRET_REMOVE] = { "secret.remove", VERB_WRITE, DEVELOPERS, "DELETE", "/v1/secrets/{name}", TAKES(secret_ref), GIVES(secret_view), false, 200, "Remove a secret" },
    [VERB_VOLUME_CREATE] = { "volume.create", VERB_WRITE, DEVELOPERS, "POST", "/v1/volumes", TAKES(volume_ask), GIVES(volume_view), false, 201, "Make a volume: a folder that outlives jobs; its node is chosen at first use" },
    [VERB_VOLUME_LIST] = { "volume.list", VERB_READ, VIEWERS, "GET", "/v1/volumes", TAKES(page_ask), GIVES(volume_view), true, 200, "List volumes" },
    [VERB_VOLUME_REMOVE] = { "volume.remove", VERB_WRITE, DEVELOPERS, "DELETE", "/v1/volumes/{volume}", TAKES(volume_ref), GIVES(volume_view), false, 200, "Remove a volume that no live job uses, with what is in it" },
    [VERB_VOLUME_FILES] = { "volume.files", VERB_STREAM, DEVELOPERS, "GET", "/v1/volumes/{volume}/files", TAKES(volume_files), NULL, false, 101, "Copy files into or out of a volume (WebSocket, tar)" },
    [VERB_IMAGE_ADD] = { "image.add", VERB_WRITE, DEVELOPERS, "POST", "/v1/images", TAKES(image_ask), GIVES(image_view), false, 201, "Name an uploaded OCI layout or docker archive as an image of the project" },
    [VERB_IMAGE_LIST] = { "image.list", VERB_READ, VIEWERS, "GET", "/v1/images", TAKES(page_ask), GIVES(image_view), true, 200, "List imported images" },
    [VERB_IMAGE_REMOVE] = { "image.remove", VERB_WRITE, DEVELOPERS, "DELETE", "/v1/images/{image}", TAKES(image_ref), GIVES(image_view), false, 200, "Remove an imported image" },
    [VERB_BLOB_PUT] = { "blob.put", VERB_STREAM, DEVELOPERS, "PUT", "/v1/blobs/{digest}", TAKES(blob_ask), GIVES(blob_view), false, 201, "Upload bytes by their SHA-256 (a work folder, an image archive)" },
    [VERB_BLOB_HEAD] = { "blob.head", VERB_READ, DEVELOPERS, "HEAD", "/v1/blobs/{digest}", TAKES(blob_ask), GIVES(blob_view), false, 200, "Is this blob here already?" },
    [VERB_BLOB_GET] = { "blob.get", VERB_STREAM, DEVELOPERS | NODES, "GET", "/v1/blobs/{digest}", TAKES(blob_ask), NULL, false, 200, "Download a blob" },
    [VERB_BLOB_ADD] = { "blob.add", VERB_INSIDE, DEVELOPERS, NO_ROUTE, TAKES(blob_ask), GIVES(blob_view), false, 201, "An upload is complete" },
    [VERB_JOB_SUBMIT] = { "job.submit", VERB_WRITE, DEVELOPERS, "POST", "/v1/jobs", TAKES(job_spec), GIVES(job_view), false, 201, "Queue a job" },
    [VERB_JOB_BATCH] = { "job.batch", VERB_WRITE, DEVELOPERS, "POST", "/v1/jobs/batch", TAKES(job_batch_ask), GIVES(batch_view), false, 201, "Queue many different jobs at once: all of them, or none" },
    [VERB_JOB_LIST] = { "job.list", VERB_READ, VIEWERS, "GET", "/v1/jobs", TAKES(job_list_ask), GIVES(job_brief), true, 200, "List jobs, newest first; live ones unless all are asked for" },
    [VERB_JOB_GET] = { "job.get", VERB_READ, VIEWERS, "GET", "/v1/jobs/{job}", TAKES(job_ref), GIVES(job_view), false, 200, "Show a job, by id or by name (the newest of that name)" },
    [VERB_JOB_UPDATE] = { "job.update", VERB_WRITE, DEVELOPERS, "PATCH", "/v1/jobs/{job}", TAKES(job_update_ask), GIVES(job_view), false, 200, "Change the priority of a queued job" },
    [VERB_JOB_CANCEL] = { "job.cancel", VERB_WRITE, DEVELOPERS, "POST", "/v1/jobs/{job}/cancel", TAKES(job_cancel_ask), GIVES(cancel_view), false, 200, "End a job, or one task of an array: SIGTERM, and SIGKILL after the grace period" },
    [VERB_JOB_TASKS] = { "job.tasks", VERB_READ, VIEWERS, "GET", "/v1/jobs/{job}/tasks", TAKES(job_ref), GIVES(task_view), true, 200, "List the tasks of a job that have been placed" },
    [VERB_JOB_ATTEMPTS] = { "job.attempts", VERB_READ, VIEWERS, "GET", "/v1/jobs/{job}/attempts", TAKES(job_ref), GIVES(attempt_view), true, 200, "List every attempt to run the tasks of a job" },
    [VERB_JOB_QUEUE] = { "job.queue", VERB_READ, VIEWERS, "GET", "/v1/jobs/{job}/queue", TAKES(job_name), GIVES(queue_view), false, 200, "Show where a waiting job stands: its class, who is before it in its project, the project's share, the limit that holds it" },
    [VERB_JOB_WHY] = { "job.why", VERB_ASK, VIEWERS, "GET", "/v1/jobs/{job}/why", TAKES(job_name), GIVES(why_view), false, 200, "Tell why a job waits, what would make it run, when it is expected to start, and how many nodes refuse it for what" },
    [VERB_JOB_PLAN] = { "job.plan", VERB_ASK, DEVELOPERS, "POST", "/v1/jobs/plan", TAKES(job_spec), GIVES(plan_view), false, 200, "Tell where a job would run now, or when, or why never, without queueing it" },
    [VERB_JOB_LOGS] = { "job.logs", VERB_STREAM, VIEWERS, "GET", "/v1/jobs/{job}/logs", TAKES(job_logs_ask), NULL, false, 200, "Read or follow what a task printed, as plain text" },
    [VERB_JOB_EXEC] = { "job.exec", VERB_STREAM, DEVELOPERS, "GET", "/v1/jobs/{job}/exec", TAKES(job_exec_ask), NULL, false, 101, "Run a command inside a running task (WebSocket)" },
    [VERB_JOB_FILES] = { "job.files", VERB_STREAM, DEVELOPERS, "GET", "/v1/jobs/{job}/files", TAKES(job_files), NULL, false, 101, "Copy files into or out of a task, or out of /outputs after its end (WebSocket, tar)" },
    [VERB_JOB_PLACE] = { "job.place", VERB_INSIDE, PLANNERS, NO_ROUTE, TAKES(nothing), GIVES(nothing), false, 200, "Give tasks nodes and slices; a gang is one" },
    [VERB_JOB_TICK] = { "job.tick", VERB_INSIDE, PLANNERS, NO_ROUTE, TAKES(nothing), GIVES(nothing), false, 200, "Time has passed: retry pauses and begin times that are over" },
    [VERB_NODE_TOKEN] = { "node.token", VERB_WRITE, OPERATORS, "POST", "/v1/nodes/tokens", TAKES(node_token_ask), GIVES(token_view), false, 201, "Make a token that one machine can join with, once" },
    [VERB_NODE_JOIN] = { "node.join", VERB_WRITE, 0, "POST", "/v1/nodes/join", TAKES(node_join_ask), GIVES(join_view), false, 201, "Make a machine a node: a token, good once and for a short time, and the key that it will come with" },
    [VERB_NODE_REKEY] = { "node.rekey", VERB_WRITE, NODES, "POST", "/v1/nodes/key", TAKES(node_key_ask), GIVES(join_view), false, 200, "A node brings its next key; the one it has stays good until the new one is used" },
    [VERB_NODE_ROTATE] = { "node.rotate", VERB_WRITE, OPERATORS, "POST", "/v1/nodes/{node}/rotate", TAKES(node_ref), GIVES(node_view), false, 200, "Have a node replace its key as soon as it can be told; each does so by itself every week" },
    [VERB_NODE_LIST] = { "node.list", VERB_READ, WATCHERS, "GET", "/v1/nodes", TAKES(page_ask), GIVES(node_brief), true, 200, "List nodes" },
    [VERB_NODE_GET] = { "node.get", VERB_READ, WATCHERS, "GET", "/v1/nodes/{node}", TAKES(node_ref), GIVES(node_view), false, 200, "Show a node" },
    [VERB_NODE_UPDATE] = { "node.update", VERB_WRITE, OPERATORS, "PATCH", "/v1/nodes/{node}", TAKES(node_set), GIVES(node_view), false, 200, "Cordon a node (nothing new is placed there), make it ready again, or say where it is" },
    [VERB_NODE_DRAIN] = { "node.drain", VERB_WRITE, OPERATORS, "POST", "/v1/nodes/{node}/drain", TAKES(node_drain_ask), GIVES(node_view), false, 200, "Empty a node: nothing new is placed there, tasks may finish until a deadline, and what still runs then is stopped and queued again" },
    [VERB_NODE_LOST] = { "node.lost", VERB_WRITE, OPERATORS, "POST", "/v1/nodes/{node}/lost", TAKES(node_ref), GIVES(node_view), false, 200, "Say that a silent node is gone for good: its tasks are queued again as soon as they can run there no more, whatever else is silent" },
    [VERB_FLEET_GET] = { "fleet.get", VERB_READ, WATCHERS, "GET", "/v1/fleet", TAKES(nothing), GIVES(fleet_view), false, 200, "Show how the cloud stands: its nodes by state, what waits and runs, and whether too many nodes are silent" },
    [VERB_RULES_GET] = { "rules.get", VERB_READ, WATCHERS, "GET", "/v1/rules", TAKES(nothing), GIVES(rules_view), false, 200, "Show the rules of the cloud: who yields to whom, the brake, how much silence is too much" },
    [VERB_RULES_SET] = { "rules.set", VERB_WRITE, OPERATORS, "PATCH", "/v1/rules", TAKES(rules_ask), GIVES(rules_view), false, 200, "Change the rules of the cloud" },
    [VERB_RESERVE_CREATE] = { "reserve.create", VERB_WRITE, OPERATORS, "POST", "/v1/reservations", TAKES(reserve_ask), GIVES(reserve_view), false, 201, "Promise a project a part of the fleet for a time; until it comes, spot work may use it" },
    [VERB_RESERVE_LIST] = { "reserve.list", VERB_READ, VIEWERS | WATCHERS, "GET", "/v1/reservations", TAKES(reserve_list_ask), GIVES(reserve_view), true, 200, "List reservations, newest first: of the project, or (operators) of all" },
    [VERB_RESERVE_GET] = { "reserve.get", VERB_READ, VIEWERS | WATCHERS, "GET", "/v1/reservations/{reservation}", TAKES(reserve_ref), GIVES(reserve_view), false, 200, "Show a reservation" },
    [VERB_RESERVE_REMOVE] = { "reserve.remove", VERB_WRITE, OPERATORS, "DELETE", "/v1/reservations/{reservation}", TAKES(reserve_ref), GIVES(reserve_view), false, 200, "End a reservation before its time" },
    [VERB_NODE_REMOVE] = { "node.remove", VERB_WRITE, OPERATORS, "DELETE", "/v1/nodes/{node}", TAKES(node_ref), GIVES(gone_node), false, 200, "Take a node out of the fleet; its key stops working and its tasks count as lost" },
    [VERB_NODE_LINK] = { "node.link", VERB_STREAM, NODES, "GET", "/v1/nodes/link", TAKES(nothing), NULL, false, 101, "The one connection of an agent (WebSocket)" },
    [VERB_NODE_STREAM] = { "node.stream", VERB_STREAM, NODES, "GET", "/v1/streams/{stream}", TAKES(stream_ask), NULL, false, 101, "An agent answers an `open` order (WebSocket)" },
    [VERB_NODE_HELLO] = { "node.hello", VERB_INSIDE, NODES, NO_ROUTE, TAKES(nothing), GIVES(nothing), false, 200, "A node connects and tells its inventory and what runs on it" },
    [VERB_NODE_REPORT] = { "node.report", VERB_INSIDE, NODES, NO_ROUTE, TAKES(report), TAKES(nothing), false, 200, "A node tells what happened to its tasks" },
    [VERB_GPU_LIST] = { "gpu.list", VERB_READ, ANYBODY, "GET", "/v1/gpus", TAKES(page_ask), GIVES(gpu_view), true, 200, "List GPUs and what is free of them" },
    [VERB_GPU_LIVE] = { "gpu.live", VERB_ASK, VIEWERS | WATCHERS, "GET", "/v1/gpus/live", TAKES(gpu_live_ask), GIVES(live_view), true, 200, "Show what GPUs do now: operators see all, others those that tasks of their project hold" },
    [VERB_METRICS] = { "metrics", VERB_ASK, VIEWERS | WATCHERS, "GET", "/metrics", TAKES(metrics_ask), NULL, false, 200, "What GPUs do now, for Prometheus, under the names of NVIDIA's DCGM exporter; who sees what is as with gpu.live" },
    [VERB_FLAVOR_LIST] = { "flavor.list", VERB_READ, ANYBODY, "GET", "/v1/flavors", TAKES(page_ask), GIVES(flavor_view), true, 200, "List the standard shapes that this cloud can give" },
    [VERB_EVENT_LIST] = { "event.list", VERB_READ, VIEWERS | WATCHERS, "GET", "/v1/events", TAKES(event_ask), GIVES(event_view), true, 200, "List events after a number, or follow them (Accept: text/event-stream)" },
    [VERB_USAGE_SUM] = { "usage.sum", VERB_READ, VIEWERS | WATCHERS, "GET", "/v1/usage", TAKES(usage_ask), GIVES(usage_view), true, 200, "Sum what was used, by project, user, flavor and day" },
    [VERB_TRACE_LIST] = { "trace.list", VERB_READ, ADMINS | WATCHERS, "GET", "/v1/trace", TAKES(trace_ask), GIVES(trace_view), true, 200, "List what ran and when, one entry for each attempt that held something: a trace that `arcus sim` replays" },
    [VERB_BACKUP] = { "backup", VERB_STREAM, OPERATORS, "GET", "/v1/backup", TAKES(nothing), NULL, false, 200, "Take a consistent copy of the whole cloud, while it runs: a tar with a checksum, without the keys" },
    [VERB_SERVER_LIST] = { "server.list", VERB_READ, ANYBODY, "GET", "/v1/servers", TAKES(page_ask), GIVES(server_view), true, 200, "List the servers of this cloud: any of them can be asked" },
    [VERB_DATA_DROP] = { "data.drop", VERB_INSIDE, PLANNERS, NO_ROUTE, TAKES(nothing), GIVES(nothing), false, 200, "A few rows that are old enough go, or go to the archive" },
    [VERB_AUDIT_NOTE] = { "audit.note", VERB_INSIDE, PLANNERS, NO_ROUTE, TAKES(nothing), GIVES(nothing), false, 200, "Refusals and other acts that left no event" },
    [VERB_AUDIT_LIST] = { "audit.list", VERB_READ, ADMINS | WATCHERS, "GET", "/v1/audit", TAKES(audit_ask), GIVES(audit_view), true, 200, "List who did what from where, newest first, refusals included" },
    [VERB_AUDIT_VERIFY] = { "audit.verify", VERB_READ, WATCHERS, "GET", "/v1/audit/verify", TAKES(audit_verify_ask), GIVES(audit_proof), false, 200, "Check a part of the audit chain: has a row been changed, removed or inserted?" },
};

const struct verb *verb_find(const char *name)
{
    for (size_t i = 0; i < VERB_COUNT; i++)
        if (text_is(verbs[i].name, name))
            return &verbs[i];
    return NULL;
}
