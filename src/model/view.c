/* view.c - the field tables of what goes out. A listing prints the rows in this order, so what people look for comes first.
 *
 * Times are RFC 3339 and null while they have not come; GPUs and CPUs are decimals of whole thousandths. A *_brief table is the
 * same struct without the long member that only `get` shows. */
#include "model/view.h"
#include "model/weights.h"
#include "model/prefix.h"

#define ID(T, p)          FIELD(struct T, id, ID, .prefix = p, .help = "for programs: never used again for another thing")
#define NAME(T)           FIELD(struct T, name, TEXT)
#define STATE(T)          FIELD(struct T, state, TEXT)
#define HEAD(T, p)        ID(T, p), NAME(T), STATE(T)
#define WORDS_HEAD(T)     FIELD(struct T, id, TEXT), NAME(T), STATE(T)      /* its id is a word of the outside */
#define AT(T, member)     FIELD_AS(struct T, member##_ms, #member, TIME)
#define MIB(T, member, n) FIELD_AS(struct T, member, n, INT)
#define VERSION(T)        FIELD(struct T, version, INT, .help = "for If-Match: grows with every change")
#define SIMULATED(T)      FIELD(struct T, simulated, BOOL, .help = "made-up GPUs: no such device is in the machine")

static const struct field simple_rows[] = { HEAD(simple_view, PREFIX_ORG), AT(simple_view, created) };
const struct fields simple_view_fields = FIELDS(simple_view, simple_rows);
static const struct field gone_node_rows[] = { HEAD(simple_view, PREFIX_NODE), AT(simple_view, created) };
const struct fields gone_node_fields = FIELDS(simple_view, gone_node_rows);

static const struct field project_rows[] = {
    HEAD(project_view, PREFIX_PROJECT),
    FIELD(struct project_view, org, TEXT),
    FIELD(struct project_view, roles, TEXT, .help = "yours in it"),
    FIELD(struct project_view, quota, OBJECT, .sub = &quota_fields, .help = "-1: no limit"),
    FIELD_AS(struct project_view, weight_milli, "weight", MILLI, .help = "its part of what there is, against the others with work"),
    FIELD(struct project_view, residency, TEXT, .help = "its tasks run only in one of these regions, zones or residency labels; empty: anywhere"),
    FIELD_AS(struct project_view, range, "network", TEXT, .help = "addresses of its tasks; empty: none was ever needed"),
    FIELD(struct project_view, egress, TEXT, .help = "where its tasks may go outside of that: all (the public network), none, or these networks"),
    FIELD_AS(struct project_view, mbit, "bandwidth", INT, .help = "Mbit/s that one task may send, and receive; 0: as much as there is"),
    AT(project_view, created),
    VERSION(project_view),
};
const struct fields project_view_fields = FIELDS(project_view, project_rows);

static const struct field limit_rows[] = {
    WORDS_HEAD(limit_view),
    FIELD(struct limit_view, project, TEXT),
    FIELD(struct limit_view, user, TEXT, .help = "empty: of the whole project"),
    FIELD(struct limit_view, model, TEXT, .help = "empty: of any"),
    FIELD_AS(struct limit_view, limit_milli, "limit", MILLI),
    FIELD_AS(struct limit_view, used_milli, "used", MILLI, .help = "held now, or used in this period by what has ended"),
    FIELD_AS(struct limit_view, reserved_milli, "reserved", MILLI, .help = "of hours: what the tasks that run could still come to, all they may run for"),
};
const struct fields limit_view_fields = FIELDS(limit_view, limit_rows);

#define MOST(i, name_, type) FIELD_AS(struct limits_view, limit.most[i], name_, type, .help = "-1: no limit")
static const struct field limits_rows[] = {
    WORDS_HEAD(limits_view),
    FIELD(struct limits_view, project, TEXT),
    FIELD(struct limits_view, user, TEXT, .help = "empty: of the whole project"),
    FIELD(struct limits_view, model, TEXT, .help = "empty: of any"),
    MOST(LIMIT_TASKS, "tasks", INT), MOST(LIMIT_GPUS, "gpus", MILLI), MOST(LIMIT_DAY, "gpu_hours_day", MILLI),
    MOST(LIMIT_WEEK, "gpu_hours_week", MILLI), MOST(LIMIT_MONTH, "gpu_hours_month", MILLI),
};
const struct fields limits_view_fields = FIELDS(limits_view, limits_rows);

static const struct field queue_rows[] = {
    HEAD(queue_view, PREFIX_JOB),
    FIELD(struct queue_view, reason, TEXT, .help = "why it waits, as one word; empty when it does not"),
    FIELD(struct queue_view, reason_text, TEXT, .max = 1024, .help = "the same as a sentence; of a limit: whose it is, how much, what is needed"),
    FIELD(struct queue_view, class, TEXT, .help = "spot, low, normal, high or urgent: higher ones go first"),
    FIELD(struct queue_view, priority, INT),
    FIELD(struct queue_view, ahead, INT, .help = "jobs of its project and class that go before it"),
    FIELD(struct queue_view, project_ahead, INT, .help = "the same of higher classes"),
    FIELD_AS(struct queue_view, share_ppm, "share_ppm", INT, .help = "what its project has had lately, in millionths of all there is; halves every day"),
    FIELD_AS(struct queue_view, part_ppm, "fair_ppm", INT, .help = "what it should have, by its weight against the projects that have work now"),
    FIELD_AS(struct queue_view, weight_milli, "weight", MILLI),
    FIELD(struct queue_view, projects, INT, .help = "how many projects have work"),
    FIELD_AS(struct queue_view, starved_ms, "first_at", TIME, .help = "if it still waits then, it goes before everybody; null: it may not run yet (stopped, or it waits for other jobs), and that is no waiting"),
};
const struct fields queue_view_fields = FIELDS(queue_view, queue_rows);

static const struct field refused_rows[] = {
    FIELD(struct refused_view, filter, TEXT, .help = "in one word"),
    FIELD(struct refused_view, nodes, INT, .help = "how many it refused; each node counts once, with the first filter that refuses it"),
    FIELD(struct refused_view, text, TEXT, .help = "what these nodes lack"),
};
const struct fields refused_view_fields = FIELDS(refused_view, refused_rows);
static const struct field near_rows[] = {
    FIELD(struct near_view, node, TEXT),
    FIELD(struct near_view, lacks, TEXT, .max = 1024, .help = "everything that this node lacks for it"),
};
const struct fields near_view_fields = FIELDS(near_view, near_rows);

#define WHY_ROWS                                                                                                                                \
    FIELD(struct why_view, starts, TEXT, .help = "now, later, or never: not on the nodes that there are, or not within the quota"),            \
    FIELD_AS(struct why_view, start_ms, "start_at", TIME, .help = "when it is expected to start; null: nobody knows"),                         \
    FIELD_AS(struct why_view, earliest, "at_earliest", BOOL, .help = "start_at is the earliest: jobs before it, or newer ones, may make it later; false: it is held"), \
    FIELD(struct why_view, reason, TEXT, .help = "why it does not start now, as one word"),                                                     \
    FIELD(struct why_view, reason_text, TEXT, .max = 1024, .help = "the same as a sentence"),                                                   \
    FIELD(struct why_view, advice, TEXTS, .help = "what would make it run, each by itself"),                                                    \
    FIELD(struct why_view, nodes, INT, .help = "how many nodes there are"),                                                                     \
    FIELD_AS(struct why_view, fits, "nodes_with_room", INT, .help = "how many could take a task of it now"),                                    \
    FIELD(struct why_view, refused, OBJECTS, .sub = &refused_view_fields, .help = "how many of the others were refused for what"),              \
    FIELD(struct why_view, nearest, OBJECTS, .sub = &near_view_fields, .help = "the nodes that lack least")

static const struct field why_rows[] = { HEAD(why_view, PREFIX_JOB), WHY_ROWS };
const struct fields why_view_fields = FIELDS(why_view, why_rows);
static const struct field plan_rows[] = {
    ID(why_view, PREFIX_JOB),
    NAME(why_view),
    FIELD(struct why_view, state, TEXT, .help = "planned: nothing was queued, and nothing is held for it"),
    WHY_ROWS,
    FIELD(struct why_view, node, TEXT, .help = "where its first task would run now"),
    FIELD(struct why_view, gpus, TEXT, .help = "the devices it would get there"),
    FIELD(struct why_view, tasks, INT, .help = "how many of its tasks could start now; at most the first 100 are tried"),
    FIELD(struct why_view, count, INT, .help = "tasks of the array"),
};
const struct fields plan_view_fields = FIELDS(why_view, plan_rows);

static const struct field member_rows[] = { HEAD(member_view, PREFIX_USER), FIELD(struct member_view, roles, TEXT) };
const struct fields member_view_fields = FIELDS(member_view, member_rows);
static const struct field account_rows[] = { HEAD(member_view, PREFIX_ACCOUNT), FIELD(struct member_view, roles, TEXT) };
const struct fields account_view_fields = FIELDS(member_view, account_rows);

static const struct field user_rows[] = {
    HEAD(user_view, PREFIX_USER),
    FIELD(struct user_view, roles, TEXT, .help = "of the platform"),
    AT(user_view, created),
    VERSION(user_view),
};
const struct fields user_view_fields = FIELDS(user_view, user_rows);

static const struct field key_rows[] = {
    HEAD(key_view, PREFIX_KEY),
    FIELD(struct key_view, owner, TEXT),
    FIELD(struct key_view, hint, TEXT, .help = "how it begins, to tell it from others"),
    FIELD(struct key_view, roles, TEXT),
    FIELD(struct key_view, project, TEXT, .help = "the one it is for; empty: every one of its owner"),
    AT(key_view, created),
    AT(key_view, expires),
    FIELD(struct key_view, key, TEXT, .when_set = true, .max = 256, .help = "only in the reply that makes it: keep it now"),
};
const struct fields key_view_fields = FIELDS(key_view, key_rows);

static const struct field ssh_key_rows[] = {
    HEAD(ssh_key_view, PREFIX_SSH_KEY),
    FIELD(struct ssh_key_view, fingerprint, TEXT, .help = "as `ssh-keygen -l` prints it"),
    AT(ssh_key_view, created),
    FIELD(struct ssh_key_view, key, TEXT, .max = 16 << 10, .help = "the line of the .pub file"),
};
const struct fields ssh_key_view_fields = FIELDS(ssh_key_view, ssh_key_rows);

static const struct field secret_rows[] = {
    HEAD(secret_view, PREFIX_SECRET), AT(secret_view, created), AT(secret_view, updated), VERSION(secret_view),
};
const struct fields secret_view_fields = FIELDS(secret_view, secret_rows);

static const struct field volume_rows[] = {
    HEAD(volume_view, PREFIX_VOLUME),
    FIELD(struct volume_view, node, TEXT, .help = "where it is; empty until a job uses it"),
    AT(volume_view, created),
};
const struct fields volume_view_fields = FIELDS(volume_view, volume_rows);

static const struct field image_rows[] = {
    HEAD(image_view, PREFIX_IMAGE),
    FIELD(struct image_view, digest, TEXT),
    FIELD(struct image_view, format, TEXT),
    FIELD(struct image_view, size, INT, .help = "bytes"),
    AT(image_view, created),
};
const struct fields image_view_fields = FIELDS(image_view, image_rows);

static const struct field blob_rows[] = { WORDS_HEAD(blob_view), FIELD(struct blob_view, size, INT, .help = "bytes") };
const struct fields blob_view_fields = FIELDS(blob_view, blob_rows);

#define JOB_ROWS                                                                                                        \
    HEAD(job_view, PREFIX_JOB),                                                                                         \
    FIELD(struct job_view, reason, TEXT, .help = "why it waits, as one word; empty when it does not"),                  \
    FIELD(struct job_view, reason_text, TEXT, .help = "the same as a sentence, with what would help"),                  \
    FIELD(struct job_view, outcome, TEXT, .help = "how it ended"),                                                      \
    FIELD(struct job_view, project, TEXT),                                                                              \
    FIELD(struct job_view, owner, TEXT),                                                                                \
    FIELD(struct job_view, image, TEXT, .max = 512),                                                                    \
    FIELD(struct job_view, flavor, TEXT),                                                                               \
    FIELD(struct job_view, gpus, TEXT, .help = "as asked, for one task"),                                               \
    FIELD(struct job_view, node, TEXT, .help = "of its first live task"),                                               \
    FIELD_AS(struct job_view, cpu_milli, "cpus", MILLI, .help = "of one task"),                                         \
    MIB(job_view, mem_mib, "memory_mib"),                                                                               \
    FIELD(struct job_view, priority, INT),                                                                              \
    FIELD(struct job_view, count, INT, .help = "tasks of the array"),                                                   \
    FIELD(struct job_view, queued, INT),                                                                                \
    FIELD(struct job_view, running, INT),                                                                               \
    FIELD(struct job_view, done, INT),                                                                                  \
    FIELD(struct job_view, failed, INT),                                                                                \
    FIELD(struct job_view, cancelled, INT),                                                                             \
    FIELD(struct job_view, exit_code, INT, .help = "of the last task that failed; 0 when none did"),                    \
    SIMULATED(job_view),                                                                                                \
    AT(job_view, created),                                                                                              \
    AT(job_view, started),                                                                                              \
    AT(job_view, ended),                                                                                                \
    VERSION(job_view),                                                                                                  \
    FIELD(struct job_view, detail, TEXT, .max = 1024, .help = "what the node said about the end")

static const struct field job_rows[] = {
    JOB_ROWS,
    FIELD(struct job_view, spec, JSON, .max = 4 << 20, .help = "what was asked"),
};
const struct fields job_view_fields = FIELDS(job_view, job_rows);
static const struct field job_brief_rows[] = { JOB_ROWS };
const struct fields job_brief_fields = FIELDS(job_view, job_brief_rows);

static const struct field task_rows[] = {
    HEAD(task_view, PREFIX_ATTEMPT),
    FIELD(struct task_view, task, INT, .help = "its number in the array"),
    FIELD(struct task_view, outcome, TEXT),
    FIELD(struct task_view, detail, TEXT, .max = 1024),
    FIELD(struct task_view, tries, INT),
    FIELD(struct task_view, exit_code, INT),
    FIELD(struct task_view, signal, INT),
    AT(task_view, started),
    AT(task_view, ended),
};
const struct fields task_view_fields = FIELDS(task_view, task_rows);

static const struct field attempt_rows[] = {
    HEAD(attempt_view, PREFIX_ATTEMPT),
    FIELD(struct attempt_view, task, INT, .help = "its number in the array"),
    FIELD(struct attempt_view, outcome, TEXT),
    FIELD(struct attempt_view, node, TEXT),
    FIELD(struct attempt_view, gpus, TEXT, .max = 1024, .help = "the devices it holds or held; of a suspended one: had"),
    FIELD(struct attempt_view, suspendable, TEXT, .max = 256, .help = "of one that runs: yes, or no and why"),
    FIELD(struct attempt_view, exit_code, INT),
    FIELD(struct attempt_view, signal, INT),
    AT(attempt_view, placed),
    AT(attempt_view, started),
    AT(attempt_view, ended),
    FIELD_AS(struct attempt_view, run_until_ms, "run_until", TIME, .help = "it ends by itself then, unless its node is heard of before"),
    FIELD(struct attempt_view, detail, TEXT, .max = 1024),
};
const struct fields attempt_view_fields = FIELDS(attempt_view, attempt_rows);

#define NODE_ROWS                                                                       \
    HEAD(node_view, PREFIX_NODE),                                                       \
    FIELD(struct node_view, gpus, INT),                                                 \
    FIELD_AS(struct node_view, gpus_free_milli, "gpus_free", MILLI),                    \
    FIELD(struct node_view, gpu_model, TEXT),                                           \
    MIB(node_view, gpu_mib, "gpu_memory_mib"),                                          \
    SIMULATED(node_view),                                                               \
    FIELD_AS(struct node_view, cpu_milli, "cpus", MILLI),                               \
    FIELD_AS(struct node_view, cpu_free_milli, "cpus_free", MILLI),                     \
    MIB(node_view, mem_mib, "memory_mib"),                                              \
    MIB(node_view, mem_free_mib, "memory_free_mib"),                                    \
    FIELD(struct node_view, tasks, INT, .help = "placed or running there"),             \
    FIELD(struct node_view, note, TEXT, .help = "what becomes of its tasks, where it is silent or drained"), \
    FIELD_AS(struct node_view, drain_until_ms, "drain_until", TIME, .help = "of a node that is drained with a deadline: what still runs then is stopped"), \
    FIELD(struct node_view, region, TEXT),                                              \
    FIELD(struct node_view, zone, TEXT),                                                \
    FIELD(struct node_view, topology, TEXT, .help = "region/zone/switch/rack/nvlink"),  \
    FIELD(struct node_view, taints, TEXT, .max = 4096, .help = "only jobs that tolerate them run there, with commas between them"),  \
    FIELD(struct node_view, exclusive, TEXT, .help = "the only project that may run there; empty: any"),  \
    AT(node_view, joined),                                                              \
    VERSION(node_view)

static const struct field node_rows[] = {
    NODE_ROWS,
    FIELD(struct node_view, info, JSON, .max = 1 << 20, .help = "what its agent tells about the machine"),
    FIELD(struct node_view, settings, JSON, .max = 1 << 16, .help = "what the operator says of it, which counts before that"),
};
const struct fields node_view_fields = FIELDS(node_view, node_rows);
static const struct field node_brief_rows[] = { NODE_ROWS };
const struct fields node_brief_fields = FIELDS(node_view, node_brief_rows);

static const struct field reserve_rows[] = {
    HEAD(reserve_view, PREFIX_RESERVATION),
    FIELD(struct reserve_view, project, TEXT),
    FIELD(struct reserve_view, gpus, TEXT, .help = "what each place has, on one node"),
    FIELD(struct reserve_view, count, INT, .help = "how many such places"),
    AT(reserve_view, from),
    AT(reserve_view, until),
    AT(reserve_view, created),
};
const struct fields reserve_view_fields = FIELDS(reserve_view, reserve_rows);

static const struct field weight_rows[] = {
    FIELD(struct weight_view, name, TEXT),
    FIELD(struct weight_view, weight, INT, .help = "in thousandths"),
    FIELD(struct weight_view, usual, INT, .help = "what it is when nobody has set it"),
    FIELD(struct weight_view, what, TEXT, .help = "what it is for"),
};
static const struct fields weight_fields = FIELDS(weight_view, weight_rows);

static const struct field rules_rows[] = {
    WORDS_HEAD(rules_view),
    FIELD(struct rules_view, preempt, TEXT, .help = "which classes each class may evict"),
    FIELD(struct rules_view, brake, INT, .help = "of all GPUs at most this part, in per cent, is evicted in a window"),
    FIELD_AS(struct rules_view, window_s, "window", INT, .help = "seconds"),
    AT(rules_view, lifted_until),
    FIELD_AS(struct rules_view, spot_notice_s, "spot_notice", INT, .help = "seconds between SIGTERM and SIGKILL of spot work that yields; -1: its own grace period"),
    FIELD(struct rules_view, spot_suspend, TEXT, .help = "spot work that yields is suspended where it can be: never, real (not on simulated GPUs) or always"),
    FIELD(struct rules_view, backfill_depth, INT, .help = "so many waiting jobs of each class get a start time that is held"),
    FIELD(struct rules_view, silent, INT, .help = "if more than this part of the nodes, in per cent, is silent at once, nothing is taken from them"),
    FIELD(struct rules_view, weights, OBJECTS, .sub = &weight_fields, .max = TERM_COUNT, .help = "what a place is judged by, and how much each counts"),
};
const struct fields rules_view_fields = FIELDS(rules_view, rules_rows);

static const struct field fleet_rows[] = {
    WORDS_HEAD(fleet_view),
    FIELD(struct fleet_view, note, TEXT),
    AT(fleet_view, silent_since),
    FIELD(struct fleet_view, nodes, INT),
    FIELD(struct fleet_view, ready, INT),
    FIELD(struct fleet_view, cordoned, INT),
    FIELD(struct fleet_view, draining, INT),
    FIELD(struct fleet_view, drained, INT),
    FIELD(struct fleet_view, down, INT, .help = "silent, the lost ones among them"),
    FIELD(struct fleet_view, lost, INT, .help = "silent for so long that their tasks were given to others, or an operator said so"),
    FIELD(struct fleet_view, jobs_queued, INT),
    FIELD(struct fleet_view, jobs_running, INT),
};
const struct fields fleet_view_fields = FIELDS(fleet_view, fleet_rows);

static const struct field gpu_rows[] = {
    WORDS_HEAD(gpu_view),
    FIELD(struct gpu_view, node, TEXT),
    FIELD(struct gpu_view, index, INT),
    FIELD(struct gpu_view, model, TEXT),
    SIMULATED(gpu_view),
    MIB(gpu_view, mem_mib, "memory_mib"),
    FIELD_AS(struct gpu_view, free_milli, "free", MILLI, .help = "what of it can still be held"),
    MIB(gpu_view, free_mib, "memory_free_mib"),
    FIELD(struct gpu_view, tasks, INT),
    FIELD(struct gpu_view, health, TEXT, .help = "why it is not used; empty: it is well"),
    FIELD(struct gpu_view, note, TEXT, .help = "what its operator should know although it is used"),
    FIELD(struct gpu_view, wall, TEXT, .help = "what is between those who share it: device (nobody does), mig, process"),
    FIELD(struct gpu_view, mig, TEXT, .help = "its instances, PROFILE@SLOT,...; on: none yet; empty: not in MIG mode"),
    FIELD(struct gpu_view, vendor, TEXT),
    FIELD(struct gpu_view, driver, TEXT),
    FIELD(struct gpu_view, pci, TEXT),
    FIELD(struct gpu_view, numa, INT, .help = "the NUMA node that it hangs on; -1: none, or not known"),
    FIELD(struct gpu_view, nvlinks, INT, .help = "that are up"),
    FIELD(struct gpu_view, power_cap_mw, INT),
    FIELD(struct gpu_view, mig_free, TEXT, .help = "in MIG mode: how many of each profile could still be had, of each alone"),
};
const struct fields gpu_view_fields = FIELDS(gpu_view, gpu_rows);

static const struct field live_task_rows[] = {
    FIELD(struct live_task_view, job, ID, .prefix = PREFIX_JOB, .help = "null: processes that are none of the cloud's"),
    FIELD(struct live_task_view, name, TEXT),
    FIELD(struct live_task_view, task, INT, .help = "its number in the array"),
    FIELD(struct live_task_view, attempt, ID, .prefix = PREFIX_ATTEMPT),
    FIELD(struct live_task_view, project, TEXT),
    FIELD_AS(struct live_task_view, gpu_milli, "gpus", MILLI, .help = "what it holds of this GPU"),
    FIELD(struct live_task_view, wall, TEXT, .help = "between it and its neighbours: device, mig or process"),
    MIB(live_task_view, mem_mib, "memory_mib"),
    FIELD_AS(struct live_task_view, mem_used_mib, "memory_used_mib", INT, .help = "what its processes have taken of the GPU's memory; -1: not told"),
    FIELD(struct live_task_view, processes, INT),
};
const struct fields live_task_view_fields = FIELDS(live_task_view, live_task_rows);

#define FIGURE(member, name_, ...) FIELD_AS(struct live_view, live.member, name_, INT, __VA_ARGS__)
static const struct field live_rows[] = {
    WORDS_HEAD(live_view),
    FIELD(struct live_view, node, TEXT),
    FIELD(struct live_view, index, INT),
    FIELD(struct live_view, model, TEXT),
    SIMULATED(live_view),
    FIELD(struct live_view, health, TEXT, .help = "why it is not used; empty: it is well"),
    AT(live_view, at),
    FIGURE(util, "utilization", .help = "per cent of the last moments; -1, as in all of these: not told"),
    FIGURE(mem_util, "memory_utilization", .help = "of its bandwidth"),
    MIB(live_view, mem_mib, "memory_mib"),
    FIGURE(mem_used_mib, "memory_used_mib", .min = -1),
    FIGURE(mem_free_mib, "memory_free_mib", .min = -1),
    FIGURE(power_mw, "power_mw", .min = -1),
    FIELD(struct live_view, power_cap_mw, INT),
    FIGURE(energy_mj, "energy_mj", .help = "since its driver was loaded"),
    FIGURE(temp_c, "temperature_c", .min = -1),
    FIGURE(mem_temp_c, "memory_temperature_c", .min = -1),
    FIGURE(sm_mhz, "clock_mhz", .min = -1),
    FIGURE(mem_mhz, "memory_clock_mhz", .min = -1),
    FIGURE(encoder, "encoder", .help = "per cent"),
    FIGURE(decoder, "decoder", .help = "per cent"),
    FIELD_AS(struct live_view, live.throttle, "throttle", TEXT, .help = "why its clocks are low; empty: they are not"),
    FIGURE(ecc_corrected, "ecc_corrected", .help = "errors of its memory since its driver was loaded"),
    FIGURE(ecc_uncorrected, "ecc_uncorrected", .min = -1),
    FIGURE(rows_corrected, "rows_corrected", .help = "rows of its memory that were remapped for errors that could be corrected"),
    FIGURE(rows_uncorrected, "rows_uncorrected", .min = -1),
    FIGURE(row_failure, "row_failure", .help = "1: a row could not be remapped"),
    FIGURE(replays, "pcie_replays", .min = -1),
    FIGURE(xid, "xid", .help = "the last error that its driver told; 0: none"),
    FIELD(struct live_view, tasks, OBJECTS, .sub = &live_task_view_fields, .max = 1024, .help = "that hold it; operators see all, others their project's"),
};
const struct fields live_view_fields = FIELDS(live_view, live_rows);

static const struct field flavor_rows[] = {
    WORDS_HEAD(flavor_view),
    FIELD(struct flavor_view, gpu, TEXT, .help = "model"),
    FIELD_AS(struct flavor_view, gpu_milli, "gpus", MILLI),
    MIB(flavor_view, gpu_mib, "gpu_memory_mib"),
    FIELD_AS(struct flavor_view, cpu_milli, "cpus", MILLI),
    MIB(flavor_view, mem_mib, "memory_mib"),
    FIELD(struct flavor_view, nodes, INT, .help = "nodes that have it"),
    FIELD(struct flavor_view, free, INT, .help = "how many could start now"),
    SIMULATED(flavor_view),
};
const struct fields flavor_view_fields = FIELDS(flavor_view, flavor_rows);

static const struct field event_rows[] = {
    FIELD(struct event_view, id, INT, .help = "its number: without gaps, growing"),
    AT(event_view, at),
    FIELD(struct event_view, name, TEXT, .help = "what happened: job.queued"),
    STATE(event_view),
    FIELD(struct event_view, project, TEXT),
    FIELD(struct event_view, subject, TEXT, .help = "what it happened to"),
    FIELD(struct event_view, actor, TEXT, .help = "who did it"),
    FIELD(struct event_view, data, JSON, .max = 1 << 20),
};
const struct fields event_view_fields = FIELDS(event_view, event_rows);

static const struct field server_rows[] = {
    WORDS_HEAD(server_view),
    FIELD(struct server_view, address, TEXT, .max = 256, .help = "where clients and agents reach it"),
    FIELD(struct server_view, version, TEXT),
    AT(server_view, seen),
};
const struct fields server_view_fields = FIELDS(server_view, server_rows);

static const struct field audit_rows[] = {
    FIELD(struct audit_view, id, INT, .help = "its number: without gaps, growing"),
    AT(audit_view, at),
    FIELD(struct audit_view, name, TEXT, .help = "the verb that was asked for: job.submit"),
    FIELD(struct audit_view, state, TEXT, .help = "the result: ok, replayed (an Idempotency-Key again), or why it was refused: denied, unauthenticated, not_found, ..."),
    FIELD(struct audit_view, times, INT, .help = "how often, of refusals that were alike in one minute"),
    FIELD(struct audit_view, actor, TEXT, .help = "who; empty: nobody we know"),
    FIELD(struct audit_view, key, TEXT, .help = "the key that was used"),
    FIELD(struct audit_view, address, TEXT, .help = "from where"),
    FIELD(struct audit_view, project, TEXT),
    FIELD(struct audit_view, subject, TEXT, .help = "what it was done to"),
    FIELD(struct audit_view, kind, TEXT, .help = "of its event; empty: it left none"),
    FIELD(struct audit_view, event, INT, .help = "number of its event; 0: it left none"),
    FIELD(struct audit_view, request, TEXT, .help = "the Arcus-Request-Id of the reply"),
    FIELD(struct audit_view, data, JSON, .max = 1 << 20),
    FIELD(struct audit_view, chain, TEXT, .help = "hash over the one before and all of this row"),
};
const struct fields audit_view_fields = FIELDS(audit_view, audit_rows);

static const struct field audit_proof_rows[] = {
    FIELD(struct audit_proof, id, INT, .help = "the first number that was checked"),
    FIELD(struct audit_proof, name, TEXT, .help = "what was checked: chain, or audit or usage for a segment of their archive"),
    FIELD(struct audit_proof, state, TEXT, .help = "whole or broken"),
    FIELD(struct audit_proof, checked, INT, .help = "rows"),
    FIELD(struct audit_proof, last, INT, .help = "the last number that was checked"),
    FIELD(struct audit_proof, chain, TEXT, .help = "its hash: keep it, and compare it with what this number has another day"),
    FIELD(struct audit_proof, problems, JSON, .max = 1 << 20, .help = "a list of {number, problem}; empty when all is well"),
    FIELD(struct audit_proof, next, TEXT, .help = "the `page` to go on with; empty: this was the end"),
};
const struct fields audit_proof_fields = FIELDS(audit_proof, audit_proof_rows);

static const struct field usage_rows[] = {
    WORDS_HEAD(usage_view),
    FIELD(struct usage_view, project, TEXT),
    FIELD(struct usage_view, user, TEXT),
    FIELD(struct usage_view, flavor, TEXT),
    FIELD(struct usage_view, day, TEXT),
    FIELD(struct usage_view, tasks, INT),
    FIELD(struct usage_view, seconds, INT),
    FIELD_AS(struct usage_view, gpu_milli_s, "gpu_seconds", MILLI),
    FIELD_AS(struct usage_view, gpu_mib_s, "gpu_mib_seconds", INT),
    FIELD_AS(struct usage_view, cpu_milli_s, "cpu_seconds", MILLI),
    FIELD_AS(struct usage_view, mem_mib_s, "memory_mib_seconds", INT),
    SIMULATED(usage_view),
};
const struct fields usage_view_fields = FIELDS(usage_view, usage_rows);

static const struct field trace_rows[] = {
    HEAD(trace_view, PREFIX_ATTEMPT),
    FIELD(struct trace_view, project, TEXT, .help = "its id, or its name where names were asked for"),
    FIELD(struct trace_view, priority, INT),
    FIELD(struct trace_view, cpu_milli, INT, .help = "thousandths of a CPU"),
    MIB(trace_view, mem_mib, "memory_mib"),
    FIELD_AS(struct trace_view, gpus, "num_gpu", INT),
    FIELD(struct trace_view, gpu_milli, INT, .help = "thousandths of each GPU"),
    FIELD(struct trace_view, gpu_spec, TEXT, .help = "models it may have, | between them; where its job is no longer kept, the one it had"),
    FIELD_AS(struct trace_view, created_s, "creation_time", INT, .help = "seconds since 1970"),
    FIELD_AS(struct trace_view, scheduled_s, "scheduled_time", INT, .help = "when it got its place"),
    FIELD_AS(struct trace_view, deleted_s, "deletion_time", INT, .help = "when it ended; of what still runs, now"),
};
const struct fields trace_view_fields = FIELDS(trace_view, trace_rows);

static const struct field whoami_rows[] = {
    HEAD(whoami_view, PREFIX_USER),
    FIELD(struct whoami_view, kind, TEXT, .help = "user or account"),
    FIELD(struct whoami_view, project, TEXT),
    FIELD(struct whoami_view, roles, TEXT),
    FIELD_AS(struct whoami_view, key_id, "key", ID, .prefix = PREFIX_KEY, .help = "the key you came with"),
    AT(whoami_view, key_expires),
};
const struct fields whoami_view_fields = FIELDS(whoami_view, whoami_rows);

static const struct field token_rows[] = {
    HEAD(token_view, PREFIX_TOKEN),
    FIELD(struct token_view, token, TEXT, .help = "shown once"),
    AT(token_view, expires),
};
const struct fields token_view_fields = FIELDS(token_view, token_rows);

static const struct field join_rows[] = {
    HEAD(join_view, PREFIX_NODE),
    FIELD(struct join_view, key, TEXT, .when_set = true, .help = "the node's own key, shown once, where it did not bring one"),
};
const struct fields join_view_fields = FIELDS(join_view, join_rows);

static const struct field cancel_rows[] = {
    HEAD(cancel_view, PREFIX_JOB),
    FIELD(struct cancel_view, tasks, INT, .help = "how many were told to end"),
};
const struct fields cancel_view_fields = FIELDS(cancel_view, cancel_rows);

static const struct field hold_rows[] = {
    HEAD(cancel_view, PREFIX_JOB),
    FIELD(struct cancel_view, tasks, INT, .help = "how many were told to"),
};
const struct fields hold_view_fields = FIELDS(cancel_view, hold_rows);

static const struct field batch_rows[] = {
    HEAD(batch_view, PREFIX_PROJECT),
    FIELD(struct batch_view, count, INT, .help = "how many were queued"),
    FIELD(struct batch_view, jobs, TEXTS, .help = "their ids, in the order of the request"),
};
const struct fields batch_view_fields = FIELDS(batch_view, batch_rows);
