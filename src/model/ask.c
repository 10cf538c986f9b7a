/* ask.c - the field tables of what comes with each verb: names, limits, defaults, flags and help of everything that may be asked.
 *
 * Limits are here and nowhere else. What a table cannot say (a user that exists, a state that may follow) the verb itself checks. */
#include "model/ask.h"
#include "model/ssh_key.h"
#include "model/house.h"
#include "model/ipv4.h"
#include "model/node.h"
#include "model/order.h"
#include "model/priority.h"
#include "model/rules.h"

#define LIMIT_DEFAULT "100"
#define PASSWORD_MIN  8
#define MAX_HELD      INT64_C(1000000000)                       /* of a quota: a million of anything, in thousandths */
#define MAX_HOURS     INT64_C(1000000000000)
#define MAX_KEY_S     (INT64_C(10) * 366 * 86400)

/* Rows that several tables share. */
#define PAGE(T) FIELD(struct T, page, TEXT, .max = 256, .help = "where the page before ended: its `next`")
#define LIMIT(T) FIELD(struct T, limit, INT, .min = 1, .max = 1000, .def = LIMIT_DEFAULT, .help = "entries of one page", .example = "20")
#define THE_JOB(T) FIELD(struct T, job, TEXT, .in_path = true, .max = 64, .help = "id or name of a job; of several with one name, the newest", .example = "train")
#define TASK(T, what) FIELD(struct T, task, INT, .min = -1, .max = JOB_COUNT_MAX, .def = "-1", .flag = "-n --task", .help = what, .example = "3")
#define NAME(T, what, show) FIELD(struct T, name, TEXT, .required = true, .max = 63, .pattern = "name", .help = what, .example = show)
#define ROLES(T, ...) FIELD(struct T, roles, TEXT, .max = 96, .flag = "-r --roles --role", .aliases = "role", __VA_ARGS__)
#define PROJECT_ROLES_HELP "viewer, developer or admin; several with commas"

/* An empty request still takes a table, so that any field in it is an unknown one. */
const struct fields nothing_fields = { "nothing", NULL, 0, sizeof(struct nothing) };

static const struct field page_rows[] = { PAGE(page_ask), LIMIT(page_ask) };
const struct fields page_ask_fields = FIELDS(page_ask, page_rows);

static const struct field login_rows[] = {
    FIELD(struct login_ask, user, TEXT, .required = true, .max = 64, .flag = "-u --user", .aliases = "name username", .help = "your name", .example = "ada"),
    FIELD(struct login_ask, password, TEXT, .required = true, .secret = true, .max = 1024, .help = "your password; the command line asks for it"),
    FIELD_AS(struct login_ask, expires_in_s, "expires_in", DURATION, .min = 60, .max = 90 * 86400, .def = "12h", .help = "how long the session's key is good for", .example = "12h"),
};
const struct fields login_ask_fields = FIELDS(login_ask, login_rows);

static const struct field password_rows[] = {
    FIELD(struct password_ask, password, TEXT, .required = true, .secret = true, .max = 1024, .help = "the present one"),
    FIELD(struct password_ask, new_password, TEXT, .required = true, .secret = true, .min = PASSWORD_MIN, .max = 1024, .help = "the new one, of 8 characters or more"),
};
const struct fields password_ask_fields = FIELDS(password_ask, password_rows);

static const struct field org_rows[] = { NAME(org_ask, "what the organisation is called", "physics") };
const struct fields org_ask_fields = FIELDS(org_ask, org_rows);

/* A quota is spelled twice: flat, for flags and lists of fields, and as `quota: {...}`, as listings show it. */
#define QUOTA_ROWS(T, in, ...) \
    FIELD_AS(struct T, in gpu_milli, "gpus", MILLI, .min = -1000, .max = MAX_HELD, .flag = "-g --gpus", .help = "GPUs that may be held at once; -1: no limit", .example = "8", __VA_ARGS__), \
    FIELD_AS(struct T, in cpu_milli, "cpus", MILLI, .min = -1000, .max = MAX_HELD, .flag = "-c --cpus", .help = "CPUs that may be held at once; -1: no limit", .example = "64", __VA_ARGS__), \
    FIELD_AS(struct T, in mem_mib, "memory_mib", INT, .min = -1, .max = INT64_C(1) << 40, .flag = "--memory-mib", .help = "memory that may be held at once, in MiB; -1: no limit", .example = "262144", __VA_ARGS__), \
    FIELD_AS(struct T, in jobs, "jobs", INT, .min = -1, .max = MAX_HELD, .help = "tasks that may be queued and running at once; -1: no limit", .example = "1000", __VA_ARGS__), \
    FIELD_AS(struct T, in disk_mib, "disk_mib", INT, .min = -1, .max = INT64_C(1) << 40, .flag = "--disk-mib", .help = "disks that may be kept for instances, stopped ones too, in MiB; -1: no limit", .example = "102400", __VA_ARGS__)

static const struct field quota_rows[] = { QUOTA_ROWS(quota, , .def = "-1") };
const struct fields quota_fields = FIELDS(quota, quota_rows);

static const struct field project_quota_rows[] = { QUOTA_ROWS(project_ask, quota., .hidden = false) };
static const struct fields project_quota_fields = FIELDS(project_ask, project_quota_rows);
#define QUOTA_GROUP { .name = "quota", .type = F_INLINE, .hidden = true, .sub = &project_quota_fields }

#define WEIGHT_ROW(...) FIELD_AS(struct project_ask, weight_milli, "weight", MILLI, .min = 1, .max = 1000000, .help = "its part of what there is, against the weights of other projects that have work", .example = "2", __VA_ARGS__)
#define RESIDENCY_ROW FIELD(struct project_ask, residency, TEXT, .max = 256, .help = "its tasks run only on nodes of one of these regions, zones or labels (residency=...); \"\": anywhere", .example = "eu,de")
#define NETWORK_ROWS \
    FIELD(struct project_ask, egress, TEXT, .max = EGRESS_TEXT, .help = "where its tasks may go outside of their own network: all (the public network), none, or these networks alone", .example = "10.1.0.0/16,192.0.2.7"), \
    FIELD_AS(struct project_ask, mbit, "bandwidth", INT, .min = 0, .max = MAX_MBIT, .help = "Mbit/s that one task may send, and receive; 0: as much as there is", .example = "1000")
static const struct field project_rows[] = {
    NAME(project_ask, "what the project is called", "vision"),
    FIELD(struct project_ask, org, TEXT, .max = 64, .help = "the organisation it belongs to, by name or id; may be left out while there is only one", .example = "physics"),
    WEIGHT_ROW(.def = "1"),
    RESIDENCY_ROW,
    NETWORK_ROWS,
    QUOTA_GROUP,
    QUOTA_ROWS(project_ask, quota., .def = "-1"),
};
const struct fields project_ask_fields = FIELDS(project_ask, project_rows);

#define THE_PROJECT(T) FIELD(struct T, project, TEXT, .in_path = true, .max = 64, .help = "name or id of a project", .example = "vision")
static const struct field project_ref_rows[] = { THE_PROJECT(project_ref) };
const struct fields project_ref_fields = FIELDS(project_ref, project_ref_rows);

/* Without defaults: what is not given stays as it is. */
static const struct field project_set_rows[] = { THE_PROJECT(project_ask), WEIGHT_ROW(.hidden = false), RESIDENCY_ROW, NETWORK_ROWS, QUOTA_GROUP, QUOTA_ROWS(project_ask, quota., .hidden = false) };
const struct fields project_set_fields = FIELDS(project_ask, project_set_rows);

/* Without defaults too. */
#define HOURS(i, name_, of) FIELD_AS(struct limit_set, limit.most[i], name_, MILLI, .min = -1000, .max = MAX_HOURS, .help = "GPU-hours that may be used in a " of " (UTC); -1: no limit", .example = "100")
static const struct field limit_set_rows[] = {
    THE_PROJECT(limit_set),
    FIELD(struct limit_set, user, TEXT, .max = 64, .flag = "-u --user", .aliases = "account", .help = "only of this user or service account, by name or id; of the whole project when left out", .example = "ada"),
    FIELD(struct limit_set, model, TEXT, .max = 47, .help = "only GPUs of this model", .example = "H200"),
    FIELD_AS(struct limit_set, limit.most[LIMIT_TASKS], "tasks", INT, .min = -1, .max = MAX_HELD, .help = "tasks that may hold something at once; -1: no limit", .example = "100"),
    FIELD_AS(struct limit_set, limit.most[LIMIT_GPUS], "gpus", MILLI, .min = -1000, .max = MAX_HELD, .flag = "-g --gpus", .help = "GPUs that may be held at once; -1: no limit", .example = "8"),
    HOURS(LIMIT_DAY, "gpu_hours_day", "day"),
    HOURS(LIMIT_WEEK, "gpu_hours_week", "week from Monday on"),
    HOURS(LIMIT_MONTH, "gpu_hours_month", "month"),
};
const struct fields limit_set_fields = FIELDS(limit_set, limit_set_rows);

#define THE_USER(T) FIELD(struct T, user, TEXT, .in_path = true, .max = 64, .help = "name or id of a user", .example = "ada")
static const struct field member_rows[] = {
    THE_USER(member_ask),
    ROLES(member_ask, .required = true, .help = PROJECT_ROLES_HELP, .example = "developer"),
};
const struct fields member_ask_fields = FIELDS(member_ask, member_rows);
static const struct field member_ref_rows[] = { THE_USER(member_ask) };
const struct fields member_ref_fields = FIELDS(member_ask, member_ref_rows);

#define PLATFORM_ROLES_ROW ROLES(user_ask, .help = "of the platform: operator, auditor, both or (\"\") none", .example = "auditor")
static const struct field user_rows[] = {
    NAME(user_ask, "what the user logs in as", "ada"),
    FIELD(struct user_ask, password, TEXT, .secret = true, .min = PASSWORD_MIN, .max = 1024, .help = "of 8 characters or more; without one the user cannot log in, only use keys"),
    PLATFORM_ROLES_ROW,
};
const struct fields user_ask_fields = FIELDS(user_ask, user_rows);
static const struct field user_set_rows[] = {
    THE_USER(user_ask),
    FIELD(struct user_ask, password, TEXT, .secret = true, .min = PASSWORD_MIN, .max = 1024, .help = "a new password, of 8 characters or more"),
    PLATFORM_ROLES_ROW,
    FIELD(struct user_ask, disabled, BOOL, .help = "true: no login and no key of this user works any more", .example = "true"),
};
const struct fields user_set_fields = FIELDS(user_ask, user_set_rows);

static const struct field account_rows[] = {
    NAME(account_ask, "what the service account is called", "ci"),
    ROLES(account_ask, .def = "developer", .help = PROJECT_ROLES_HELP, .example = "viewer"),
};
const struct fields account_ask_fields = FIELDS(account_ask, account_rows);
static const struct field account_ref_rows[] = {
    FIELD(struct account_ask, account, TEXT, .in_path = true, .max = 64, .help = "name or id of a service account", .example = "ci"),
};
const struct fields account_ref_fields = FIELDS(account_ask, account_ref_rows);

static const struct field key_rows[] = {
    FIELD(struct key_ask, name, TEXT, .max = 63, .pattern = "name", .help = "what the key is called, so that you know it again", .example = "laptop"),
    FIELD(struct key_ask, account, TEXT, .max = 64, .flag = "-a --account", .help = "make it for this service account (admins)", .example = "ci"),
    ROLES(key_ask, .help = "what it may do, at most what its owner may; all of that when left out", .example = "viewer"),
    FIELD_AS(struct key_ask, expires_in_s, "expires_in", DURATION, .min = 60, .max = MAX_KEY_S, .flag = "--expires-in --expires", .aliases = "expires", .help = "how long it is good for; for ever when left out", .example = "30d"),
};
const struct fields key_ask_fields = FIELDS(key_ask, key_rows);
static const struct field key_ref_rows[] = {
    FIELD(struct key_ask, key, TEXT, .in_path = true, .max = 64, .help = "id or name of a key", .example = "laptop"),
};
const struct fields key_ref_fields = FIELDS(key_ask, key_ref_rows);

static const struct field ssh_key_rows[] = {
    FIELD(struct ssh_key_ask, name, TEXT, .max = 63, .pattern = "name", .help = "what it is called, so that you know it again; made from its comment when left out", .example = "laptop"),
    FIELD(struct ssh_key_ask, key, TEXT, .required = true, .max = SSH_KEY_TEXT, .flag = "", .help = "the line of a .pub file, as OpenSSH writes it (a profile has at most 16)", .example = "ssh-ed25519 AAAA... ada@desk"),
};
const struct fields ssh_key_ask_fields = FIELDS(ssh_key_ask, ssh_key_rows);
static const struct field ssh_key_ref_rows[] = {
    FIELD(struct ssh_key_ask, ssh_key, TEXT, .in_path = true, .max = 64, .help = "name, id or fingerprint of a public key of your profile", .example = "laptop"),
};
const struct fields ssh_key_ref_fields = FIELDS(ssh_key_ask, ssh_key_ref_rows);

/* A secret becomes a file of its name, hence the case of HF_TOKEN is allowed; see job_spec_settle for the rest. */
#define SECRET_NAME FIELD(struct secret_ask, name, TEXT, .in_path = true, .max = 63, .pattern = "label", .help = "what it is called; a job gets it as the file /run/secrets/NAME", .example = "HF_TOKEN")
static const struct field secret_rows[] = {
    SECRET_NAME,
    FIELD(struct secret_ask, value, TEXT, .required = true, .secret = true, .max = 64 << 10, .help = "what is kept secret, at most 64 KB (a project has at most 10,000); the command line reads it from standard input"),
};
const struct fields secret_ask_fields = FIELDS(secret_ask, secret_rows);
static const struct field secret_ref_rows[] = { SECRET_NAME };
const struct fields secret_ref_fields = FIELDS(secret_ask, secret_ref_rows);

static const struct field volume_rows[] = { NAME(volume_ask, "what the volume is called", "data") };
const struct fields volume_ask_fields = FIELDS(volume_ask, volume_rows);
static const struct field volume_ref_rows[] = {
    FIELD(struct volume_ask, volume, TEXT, .in_path = true, .max = 64, .help = "name or id of a volume", .example = "data"),
};
const struct fields volume_ref_fields = FIELDS(volume_ask, volume_ref_rows);

static const struct field image_rows[] = {
    FIELD(struct image_ask, name, TEXT, .required = true, .min = 1, .max = 128, .help = "what jobs call it", .example = "busybox:1.36"),
    FIELD(struct image_ask, digest, TEXT, .required = true, .pattern = "digest", .help = "the uploaded archive (an OCI layout or a docker archive, as tar)"),
};
const struct fields image_ask_fields = FIELDS(image_ask, image_rows);
static const struct field image_ref_rows[] = {
    FIELD(struct image_ask, image, TEXT, .in_path = true, .max = 128, .help = "name or id of an imported image", .example = "busybox:1.36"),
};
const struct fields image_ref_fields = FIELDS(image_ask, image_ref_rows);

static const struct field blob_rows[] = {
    FIELD(struct blob_ask, digest, TEXT, .in_path = true, .pattern = "digest", .help = "sha256: and the hash of the bytes in hex"),
};
const struct fields blob_ask_fields = FIELDS(blob_ask, blob_rows);

static const struct field job_list_rows[] = {
    PAGE(job_list_ask),
    LIMIT(job_list_ask),
    FIELD(struct job_list_ask, state, TEXT, .max = 16, .flag = "-s --state", .help = "only jobs in this state: queued, placed, running, suspended, stopping, stopped, done, failed or cancelled", .example = "failed"),
    FIELD(struct job_list_ask, name, TEXT, .max = 64, .flag = "-J --name", .help = "only jobs of this name", .example = "train"),
    FIELD(struct job_list_ask, all, BOOL, .flag = "-a --all", .help = "also those that have ended"),
};
const struct fields job_list_ask_fields = FIELDS(job_list_ask, job_list_rows);

static const struct field job_ref_rows[] = { THE_JOB(job_ref), PAGE(job_ref), LIMIT(job_ref) };
const struct fields job_ref_fields = FIELDS(job_ref, job_ref_rows);
static const struct field job_name_rows[] = {   /* no list: what older programs send along is taken and means nothing */
    THE_JOB(job_ref),
    FIELD(struct job_ref, page, TEXT, .max = 256, .hidden = true),
    FIELD(struct job_ref, limit, INT, .hidden = true),
};
const struct fields job_name_fields = FIELDS(job_ref, job_name_rows);

static const struct field job_update_rows[] = {
    THE_JOB(job_update_ask),
    FIELD(struct job_update_ask, priority, INT, .required = true, .min = 0, .max = 100, .named = priority_named, .words = PRIORITY_WORDS, .flag = "-p --priority", .help = "spot, low, normal, high, urgent, or 0 to 100: a higher class starts first, and among the jobs of one project the higher number", .example = "high"),
};
const struct fields job_update_ask_fields = FIELDS(job_update_ask, job_update_rows);

static const struct field job_batch_rows[] = {
    FIELD(struct job_batch_ask, jobs, OBJECTS, .required = true, .sub = &job_spec_fields, .max = JOB_BATCH_MAX, .flag = "--jobs-json", .help = "each as job.submit takes it", .example = "[{\"command\": [\"true\"]}]"),
};
const struct fields job_batch_ask_fields = FIELDS(job_batch_ask, job_batch_rows);

static const struct field job_cancel_rows[] = {
    THE_JOB(job_cancel_ask),
    TASK(job_cancel_ask, "only this task of an array; -1: all of them"),
    FIELD_AS(struct job_cancel_ask, grace_s, "grace", DURATION, .min = 0, .max = JOB_GRACE_MAX, .flag = "--grace", .help = "between SIGTERM and SIGKILL; the job's own when left out", .example = "5s"),
};
const struct fields job_cancel_ask_fields = FIELDS(job_cancel_ask, job_cancel_rows);

static const struct field job_hold_rows[] = { THE_JOB(job_hold_ask), TASK(job_hold_ask, "only this task of an array; -1: all of them") };
const struct fields job_hold_ask_fields = FIELDS(job_hold_ask, job_hold_rows);

static const struct field job_logs_rows[] = {
    THE_JOB(job_logs_ask),
    TASK(job_logs_ask, "of this task of an array; -1: the only one, or the first"),
    FIELD(struct job_logs_ask, tail, INT, .min = -1, .max = MAX_HELD, .def = "-1", .flag = "--tail", .help = "only the last lines; -1: all that is kept", .example = "100"),
    FIELD(struct job_logs_ask, follow, BOOL, .flag = "-f --follow", .help = "go on until the task ends"),
    FIELD(struct job_logs_ask, source, TEXT, .max = 16, .help = "stdout or stderr; both when left out", .example = "stderr"),
    FIELD_AS(struct job_logs_ask, attempt_number, "attempt", INT, .min = 0, .max = 1 << 30, .help = "which try, from 1; 0: the last", .example = "1"),
    FIELD(struct job_logs_ask, marks, BOOL, .flag = "", .help = "with follow: a line `MARK BYTES` before each piece of so many bytes; `from` goes on behind it"),
    FIELD(struct job_logs_ask, from, TEXT, .max = LOG_MARK - 1, .flag = "", .help = "go on behind this mark"),
};
const struct fields job_logs_ask_fields = FIELDS(job_logs_ask, job_logs_rows);

static const struct field job_exec_rows[] = {
    THE_JOB(job_exec_ask),
    TASK(job_exec_ask, "in this task of an array; -1: the only one, or the first that runs"),
    FIELD(struct job_exec_ask, argv, TEXTS, .required = true, .max = 1024, .aliases = "command", .help = "what to run, and its arguments", .example = "bash"),
    FIELD(struct job_exec_ask, tty, BOOL, .flag = "-t --tty", .help = "give it a terminal"),
    FIELD(struct job_exec_ask, rows, INT, .min = 0, .max = 10000, .help = "height of the terminal"),
    FIELD(struct job_exec_ask, cols, INT, .min = 0, .max = 10000, .help = "width of the terminal"),
};
const struct fields job_exec_ask_fields = FIELDS(job_exec_ask, job_exec_rows);

static const struct field job_dial_rows[] = {
    THE_JOB(job_dial_ask),
    TASK(job_dial_ask, "of this task of an array; -1: the only one, or the first that runs"),
    FIELD(struct job_dial_ask, port, INT, .required = true, .min = 1, .max = 65535, .flag = "", .help = "a port that something in the task listens on", .example = "8888"),
};
const struct fields job_dial_ask_fields = FIELDS(job_dial_ask, job_dial_rows);

static const struct field job_ssh_rows[] = {
    THE_JOB(job_ssh_ask),
    TASK(job_ssh_ask, "of this task of an array; -1: the only one, or the first that runs"),
    FIELD(struct job_ssh_ask, keys, TEXTS, .max = SSH_KEYS_MOST, .aliases = "key", .flag = "", .help = "public keys that this connection may come with beside those of your profile, as OpenSSH writes them", .example = "ssh-ed25519 AAAA..."),
};
const struct fields job_ssh_ask_fields = FIELDS(job_ssh_ask, job_ssh_rows);

#define FILES_ROWS \
    FIELD(struct files_ask, path, TEXT, .required = true, .max = 4096, .pattern = "path", .help = "file or folder there", .example = "/outputs"), \
    FIELD(struct files_ask, put, BOOL, .help = "true: towards it; false: from it")
static const struct field job_files_rows[] = {
    THE_JOB(files_ask),
    TASK(files_ask, "of this task of an array; -1: the only one, or the first"),
    FILES_ROWS,
};
const struct fields job_files_fields = FIELDS(files_ask, job_files_rows);
static const struct field volume_files_rows[] = {
    FIELD(struct files_ask, volume, TEXT, .in_path = true, .max = 64, .help = "name or id of a volume", .example = "data"),
    FILES_ROWS,
};
const struct fields volume_files_fields = FIELDS(files_ask, volume_files_rows);

static const struct field node_token_rows[] = {
    FIELD_AS(struct node_token_ask, expires_in_s, "expires_in", DURATION, .min = 60, .max = 86400, .def = "1h", .flag = "--expires-in --expires", .aliases = "expires", .help = "how long a machine may wait before it joins; a day at most", .example = "24h"),
};
const struct fields node_token_ask_fields = FIELDS(node_token_ask, node_token_rows);
static const struct field node_join_rows[] = {
    FIELD(struct node_join_ask, token, TEXT, .required = true, .secret = true, .max = 128, .help = "the one-time token of `arcus nodes token`"),
    NAME(node_join_ask, "what the node is to be called", "gpu-07"),
    FIELD(struct node_join_ask, key, TEXT, .secret = true, .max = 64, .help = "the key that the machine has made for itself: nk_ and 43 letters; asking again with it is the same join. Without one the reply has one, once"),
};
const struct fields node_join_ask_fields = FIELDS(node_join_ask, node_join_rows);

static const struct field node_key_rows[] = {
    FIELD(struct node_key_ask, key, TEXT, .required = true, .secret = true, .max = 64, .help = "nk_ and 43 letters by chance"),
};
const struct fields node_key_ask_fields = FIELDS(node_key_ask, node_key_rows);
#define THE_NODE FIELD(struct node_ask, node, TEXT, .in_path = true, .max = 64, .help = "name or id of a node", .example = "gpu-07")
static const struct field node_ref_rows[] = { THE_NODE };
const struct fields node_ref_fields = FIELDS(node_ask, node_ref_rows);
static const struct field node_set_rows[] = {
    THE_NODE,
    FIELD(struct node_ask, state, ENUM, .names = &node_state_names, .help = "cordoned: nothing new is placed there; ready: it is used again", .example = "cordoned"),
    WHERE_ROWS(node_ask, settings.where, .hidden = false),
    FIELD(struct node_ask, taint, TEXTS, .max = TAINTS_MOST, .aliases = "taints", .help = "key=value:NoSchedule: only jobs that tolerate it run there; with a - behind it, it is taken away", .example = "dedicated=vision:NoSchedule"),
    FIELD(struct node_ask, exclusive, TEXT, .max = 64, .help = "the only project that may run there, by name or id; \"\": any", .example = "vision"),
    FIELD_AS(struct node_ask, settings.share, "share", ENUM, .names = &share_names, .help = "whose shares may be together on one GPU: of one project, of any, or none: no shares", .example = "any"),
    FIELD_AS(struct node_ask, settings.equal_shares, "equal_shares", BOOL, .help = "on one GPU only shares of one size, which divides it evenly, as MPS enforces them"),
    FIELD_AS(struct node_ask, settings.mig, "mig", ENUM, .names = &mig_names, .help = "of GPUs in MIG mode: fixed gives the instances that are there, dynamic makes whatever the hardware can do", .example = "dynamic"),
};
const struct fields node_set_fields = FIELDS(node_ask, node_set_rows);
static const struct field node_drain_rows[] = {
    FIELD(struct node_drain_ask, node, TEXT, .in_path = true, .max = 64, .help = "name or id of a node", .example = "gpu-07"),
    FIELD_AS(struct node_drain_ask, deadline_s, "deadline", DURATION, .min = 0, .max = 30 * 86400, .flag = "--deadline", .help = "what still runs then is stopped, with notice and grace, and queued again; 1h when left out, 0 with requeue", .example = "1h"),
    FIELD(struct node_drain_ask, requeue, BOOL, .help = "stop what runs and queue it again: at once, or at the deadline if one is given"),
    FIELD(struct node_drain_ask, wait, BOOL, .help = "stop nothing: what runs comes to its own end, however long that takes"),
};
const struct fields node_drain_ask_fields = FIELDS(node_drain_ask, node_drain_rows);

/* Without defaults: what is not given stays as it is. */
#define PERCENT(member_, ...) FIELD(struct rules_ask, member_, INT, .min = 0, .max = 100, .named = percent_named, __VA_ARGS__)
static const struct field rules_rows[] = {
    FIELD(struct rules_ask, preempt, TEXT, .max = 256, .help = "which classes a class may evict, as class:class,class or class:none; several with blanks. A class that is not named keeps what it has", .example = "high:low,spot"),
    PERCENT(brake, .help = "of all GPUs at most this part, in per cent, is evicted in a window; 0: nothing is", .example = "10%"),
    FIELD_AS(struct rules_ask, window_s, "window", DURATION, .min = 60, .max = 7 * 86400, .help = "the window that the brake is about", .example = "1h"),
    FIELD_AS(struct rules_ask, lift_s, "lift", DURATION, .min = 0, .max = 7 * 86400, .flag = "--lift --lift-brake", .help = "the brake counts for nothing for this time; 0: it counts again", .example = "30m"),
    FIELD_AS(struct rules_ask, spot_notice_s, "spot_notice", INT, .min = -1, .max = JOB_GRACE_MAX, .help = "seconds between SIGTERM and SIGKILL of spot work that yields; -1: its own grace period", .example = "120"),
    FIELD(struct rules_ask, spot_suspend, ENUM, .names = &spot_suspend_names, .help = "spot work that yields is suspended where it can be, and not ended: never, real (not on simulated GPUs) or always", .example = "never"),
    FIELD(struct rules_ask, backfill_depth, INT, .min = 0, .max = 64, .help = "so many waiting jobs of each class get a start time that is held for them", .example = "1"),
    PERCENT(silent, .help = "if more than this part of the nodes, in per cent, is silent at once (and two at least), nothing is taken from them", .example = "30%"),
    FIELD(struct rules_ask, weights, TEXT, .max = 512, .flag = "--weights --weight", .help = "how much each term counts where a task is placed, in thousandths: name=number, or name=usual; several with blanks or commas. What is not named stays", .example = "stuck=250,fetch=usual"),
};
const struct fields rules_ask_fields = FIELDS(rules_ask, rules_rows);

static const struct field reserve_rows[] = {
    FIELD(struct reserve_ask, project, TEXT, .required = true, .max = 64, .flag = "--for", .aliases = "for", .help = "the project that it is for, by name or id", .example = "vision"),
    FIELD(struct reserve_ask, gpus, TEXT, .required = true, .max = 95, .flag = "-g --gpus", .aliases = "gpu accelerators", .help = "what each place has, on one node, as a job asks for it", .example = "H200:8"),
    FIELD(struct reserve_ask, count, INT, .min = 1, .max = 100000, .def = "1", .flag = "-n --count --nodes", .aliases = "nodes num_nodes", .help = "how many such places", .example = "4"),
    FIELD_AS(struct reserve_ask, from_ms, "from", TIME, .help = "when it begins; now when left out", .example = "2026-12-01T08:00:00Z"),
    FIELD_AS(struct reserve_ask, until_ms, "until", TIME, .help = "when it ends", .example = "2026-12-01T20:00:00Z"),
    FIELD_AS(struct reserve_ask, duration_s, "duration", DURATION, .min = 60, .max = 366 * 86400, .help = "how long it lasts, instead of until when", .example = "12h"),
    FIELD(struct reserve_ask, name, TEXT, .max = 63, .pattern = "name", .flag = "--name", .help = "what it is called; its id when left out", .example = "release"),
};
const struct fields reserve_ask_fields = FIELDS(reserve_ask, reserve_rows);
static const struct field reserve_ref_rows[] = {
    FIELD(struct reserve_ask, reservation, TEXT, .in_path = true, .max = 64, .help = "name or id of a reservation", .example = "release"),
};
const struct fields reserve_ref_fields = FIELDS(reserve_ask, reserve_ref_rows);
static const struct field reserve_list_rows[] = {
    PAGE(reserve_list_ask),
    LIMIT(reserve_list_ask),
    FIELD(struct reserve_list_ask, all, BOOL, .flag = "-a --all", .help = "also those that are over"),
};
const struct fields reserve_list_ask_fields = FIELDS(reserve_list_ask, reserve_list_rows);

#define OF_NODE FIELD(struct gpu_live_ask, node, TEXT, .max = 64, .help = "only GPUs of this node, by name or id", .example = "gpu-07")
static const struct field gpu_live_rows[] = { PAGE(gpu_live_ask), LIMIT(gpu_live_ask), OF_NODE };
const struct fields gpu_live_ask_fields = FIELDS(gpu_live_ask, gpu_live_rows);
static const struct field metrics_rows[] = { OF_NODE };
const struct fields metrics_ask_fields = FIELDS(gpu_live_ask, metrics_rows);

static const struct field stream_rows[] = {
    FIELD(struct stream_ask, stream, TEXT, .in_path = true, .secret = true, .max = 128, .help = "the word of the `open` order"),
};
const struct fields stream_ask_fields = FIELDS(stream_ask, stream_rows);

static const struct field event_rows[] = {
    FIELD(struct event_ask, since, INT, .min = 0, .max = INT64_MAX, .help = "only events after this number; 0: from the first that is kept", .example = "1200"),
    LIMIT(event_ask),
    FIELD(struct event_ask, follow, BOOL, .flag = "-f --follow", .help = "go on with new ones as they happen"),
};
const struct fields event_ask_fields = FIELDS(event_ask, event_rows);

static const struct field audit_rows[] = {
    PAGE(audit_ask),
    LIMIT(audit_ask),
    FIELD(struct audit_ask, since, INT, .min = 0, .max = INT64_MAX, .help = "only entries after this number, oldest first", .example = "1200"),
    FIELD(struct audit_ask, verb, TEXT, .max = 64, .help = "only this verb", .example = "key.create"),
    FIELD(struct audit_ask, actor, TEXT, .max = 64, .flag = "--actor --user", .help = "only what this user or service account did", .example = "ada"),
    FIELD(struct audit_ask, result, TEXT, .max = 32, .help = "only entries with this result: ok, replayed, denied, unauthenticated, not_found, ...", .example = "denied"),
    FIELD_AS(struct audit_ask, from_ms, "from", TIME, .help = "only from this time on", .example = "2026-11-01"),
    FIELD_AS(struct audit_ask, to_ms, "to", TIME, .flag = "--to --until", .help = "only before this time", .example = "2026-12-01"),
};
const struct fields audit_ask_fields = FIELDS(audit_ask, audit_rows);
static const struct field audit_verify_rows[] = { PAGE(audit_verify_ask) };
const struct fields audit_verify_ask_fields = FIELDS(audit_verify_ask, audit_verify_rows);

static const struct field usage_rows[] = {
    FIELD(struct usage_ask, by, TEXT, .max = 64, .def = "project", .help = "one line for each: project, user, flavor, day; several with commas", .example = "project,day"),
    FIELD_AS(struct usage_ask, from_ms, "from", TIME, .flag = "--from --since", .help = "what was used from this time on; the beginning when left out", .example = "2026-11-01"),
    FIELD_AS(struct usage_ask, to_ms, "to", TIME, .flag = "--to --until", .help = "what was used before this time; now when left out", .example = "2026-12-01"),
};
const struct fields usage_ask_fields = FIELDS(usage_ask, usage_rows);

static const struct field trace_rows[] = {
    PAGE(trace_ask),
    LIMIT(trace_ask),
    FIELD_AS(struct trace_ask, from_ms, "from", TIME, .flag = "--from --since", .help = "what ended at this time or later, and what still runs; all that is kept when left out", .example = "2026-11-01"),
    FIELD_AS(struct trace_ask, to_ms, "to", TIME, .flag = "--to --until", .help = "what ended before this time; when left out, or not past yet, also what runs now", .example = "2026-12-01"),
    FIELD(struct trace_ask, names, BOOL, .help = "names of projects and jobs instead of numbers"),
};
const struct fields trace_ask_fields = FIELDS(trace_ask, trace_rows);
