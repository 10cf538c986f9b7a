/* state.h - what the writer remembers: enough to decide every verb without asking the store. Built from the store at start, changed
 * only by verbs, thrown away and built again whenever the store refused a commit.
 *
 * Finished jobs are not here. Belongs to the writer's thread. */
#pragma once
#include "auth/auth.h"
#include "base/id.h"
#include "base/map.h"
#include "base/slab.h"
#include "control/control.h"
#include "model/ask.h"
#include "model/goods.h"
#include "model/ipv4.h"
#include "model/node.h"
#include "model/order.h"
#include "model/prefix.h"
#include "model/rules.h"
#include "sched/sched.h"

enum { PAST_DAYS = 8 };
struct addresses { uint64_t used[NET_HOSTS / 64]; int64_t last; };     /* of a project's range: addresses.c */
struct org { int64_t id, created_ms; char name[64]; };
enum thing_kind { THING_ACCOUNT, THING_SECRET, THING_VOLUME, THING_IMAGE, THING_KINDS };    /* of a project, found by name */
struct project {
    int64_t id, org, created_ms, version;
    int state;
    char name[64];
    struct quota quota;
    struct books limits;
    int64_t weight_milli;
    const char *residency;      /* words with commas, where its tasks may run; NULL: anywhere */
    int64_t net, mbit;          /* the number of its network (model/ipv4.h), 0: it never had a task there; what one task may send and receive, 0: not capped */
    const char *egress;         /* where its tasks may go: as egress_parse has settled it */
    struct addresses *addresses;    /* those in use; NULL: none ever */
    struct mesh *mesh;          /* where they are, of nodes with an underlay: mesh.c; NULL: on none ever */
    struct { int64_t day_ms, used[3]; } past[PAST_DAYS];     /* what ended on the last days before this memory was loaded, for its share */
    struct map *members;        /* person -> struct member */
    struct map *things[THING_KINDS];    /* by name, each also in the state's own map by id; NULL: none ever */
    int64_t gpu_held, cpu_held, mem_held, jobs_live;
    int64_t disk_held;          /* MiB that its live instances keep, or will */
    struct map *holders;        /* its live attempts that hold GPUs; NULL: none ever */
    size_t spec_bytes;          /* of its live jobs, which the memory holds */
    struct { char flavor[48]; enum reason reason; } wait;   /* why its last job that had to wait does; REASON_NONE: something was placed since */
};
struct member { int64_t person; unsigned roles; };
struct person { int64_t id, created_ms, version; char name[64], password[128]; unsigned roles; int state; };
struct account { int64_t id, project, created_ms; char name[64]; unsigned roles; int state; };
struct apikey { int64_t id, owner, project, created_ms, expires_ms; enum principal owner_kind; unsigned roles; int state; char hash[DIGEST_HEX], name[64], hint[16]; };
struct secret { int64_t id, project, created_ms, updated_ms, version; char name[64]; char *sealed; };
struct token { int64_t id, expires_ms, expires_boot_ms; char hash[DIGEST_HEX]; };   /* by either clock, whichever is first */
struct volume { int64_t id, project, node, created_ms, job, mib; char name[64]; int64_t users, attempt, used_ms, seen_ms; struct volume *next; };     /* attempt .. seen_ms: of a disk, for autostop.c; users: live jobs that mount it; job: it is the disk of that instance (disk.c), of so many MiB; next: of its node */
struct image { int64_t id, project, size, created_ms; char name[256], digest[80], format[16]; };
struct reservation {            /* one that is not over */
    int64_t id, count, from_ms, until_ms, created_ms;
    bool begun;                 /* an event has told so */
    struct project *project;
    char name[64], gpus[96];
    struct shape shape;
};
struct idem {                   /* what was asked with an Idempotency-Key */
    char *key;                  /* PROJECT/OWNER/KEY */
    enum verb_id verb;
    char body[17];              /* of its hash */
    int64_t job, at_ms;
    char *reply;
    int64_t seq;                /* the last event when it was put here */
    bool bare;                  /* in the store without a slot: an older program wrote it */
};

struct node {
    int64_t id, kept, joined_ms, version;
    char name[64];
    enum node_state state;
    bool cordoned;              /* also while it is down */
    enum node_drain drain;
    int lost;                   /* while it is down: 1 its tasks were given up, 2 an operator said that it is gone */
    int64_t drain_until_ms, drain_boot_ms;  /* what still runs then is told to end; by the boot clock, since the wall clock may jump. 0: never */
    char *info_text;            /* JSON as it came */
    struct arena *info_mem;
    struct node_info info;
    char *settings_text;        /* what the operator says, as JSON */
    struct arena *settings_mem;
    struct node_settings settings;
    const char *house;          /* who may come: text of model/house.h, in the memory of the state; NULL: everybody */
    struct good *goods;         /* images and work folders that are there; only memory knows */
    size_t good_count;
    struct map *attempts;       /* live ones here */
    struct apikey *key, *next_key;  /* in use; brought by the node and not used yet */
    int64_t rotate_ms;          /* a key made before is to be replaced */
    size_t order_bytes;         /* about what their orders take */
    int64_t heard_boot_ms;      /* last contact; the start of this process counts as one */
    int64_t generation;
    bool linked;                /* said hello to this process */
    struct arena *live_mem;     /* of: */
    struct objects live;        /* struct gpu_live: what its GPUs did when it last told */
    int64_t live_ms;            /* when that was; 0: never */
    int64_t servers_told;       /* the version of the list of servers that it has */
    struct map *changed;        /* attempts to push */
    struct volume *disks;       /* those of instances that it keeps */
    struct map *goners;         /* removed volumes that it has not swept yet: id -> its text */
    bool tell;                  /* something else than attempts has changed for it */
    int64_t *gone;              /* attempts to forget, to push */
    size_t gone_count;
    struct map *homes;          /* project -> struct home: mesh.c; NULL: none ever */
};
struct attempt {
    int64_t id, placed_ms, started_ms, stop_ms;
    struct task *task;
    struct node *node;
    char *stop_why;             /* of one that was told to end for a reason of ours: in words; NULL: none */
    struct limit_ask *counted;  /* as the limits of its project count it; NULL: there are none */
    int64_t hold_n;             /* the newest wish about suspending it that its node was told; 0: none ever */
    int64_t hold_ms;            /* what it is metered as now it is since then; 0: since it began */
    int64_t mem_mib, gpu_mib;
    int64_t own_mem;            /* with own_cpu what it holds with its GPUs; cpu_milli and mem_mib are what it holds now */
    int64_t parked_mib;         /* of one that is away: all its memory there; else: what is set aside for it beyond its own */
    struct parts *parts;        /* of its usage, closed while it ran: job_parts.c; NULL: none */
    char *hold_why;             /* it could not be suspended when that was last tried; NULL: it could, or never was */
    int32_t run_for_s, grace_s, cpu_milli, gpu_milli, own_cpu;      /* there are many attempts, and the bounds of these are far below */
    int32_t idle_mib;           /* its node said that it stands still with that much memory, and nothing else is metered; 0: all of its own is */
    uint32_t address;           /* in its project's network; 0: none */
    uint32_t order_bytes;       /* about what its order takes */
    uint16_t gpu_count, away;   /* away: it has given them back, and gpu_count is 0 */
    uint8_t state, stop_as;     /* enum job_state, enum outcome */
    uint8_t hold;               /* enum hold_step */
    bool stop : 1, simulated : 1;
    bool returns : 1;           /* it was evicted, not told to: the planner says when it has its GPUs again */
    struct order_gpu gpus[];    /* and behind them their uuids: there are many attempts, and most hold few GPUs */
};
struct task {
    struct job *job;
    struct attempt *attempt;    /* the live one, or NULL */
    int64_t suspected_ms, not_before_ms, started_ms, ended_ms;
    int32_t index, tries, faults, evictions, suspicions;
    enum job_state state;
    int16_t exit_code;
    uint8_t signal, outcome;    /* outcome: enum outcome */
};
struct follower { int64_t job; enum after_when when; };     /* a job that comes after this one */
struct job {
    struct arena *mem;          /* of the job: its texts and its spec; freed when the job is over */
    int64_t id, owner, priority, count, next_task, done, failed, cancelled, exit_code, created_ms, started_ms, ended_ms, version;
    struct project *project;
    enum principal owner_kind;
    const char *name, *spec_text, *flavor;
    enum job_state state;
    enum reason reason;
    enum outcome outcome;
    struct job_spec spec;
    struct shape shape;
    const char *tolerates;      /* text of model/house.h; NULL: nothing */
    int64_t blocked;            /* how many of the jobs that it comes after have not ended yet */
    int64_t ready_ms;           /* when the last of what blocked it had gone: its age begins there; 0: when it was made */
    struct map *tasks;          /* those that were placed and have not ended, by index */
    int64_t waiting;            /* how many of them wait for another try */
    struct map *skipped;        /* from next_task on: tasks that were cancelled before their turn, as index + 1; NULL: none ever */
    struct volume *disk;        /* of an instance: where what it writes is kept; NULL: nowhere yet */
    int64_t lean;               /* ... the node where there is room for that, if the planner's was none; 0: any. disk_room.c */
    int64_t leaned_ms;          /* ... since when, or when others were last looked at */
    bool no_room;               /* ... there is none anywhere: one more thing that blocks it */
    struct follower *followers;
    size_t follower_count, follower_room;
    struct job *next_ended;     /* of those that end together */
};

struct state {
    struct arena *mem;          /* of what changes slowly */
    struct id_maker ids;
    int64_t last_event;
    struct { int64_t number, headed; char chain[MAC_HEX]; } audit;      /* the end of the chain; headed: what the last group ended with */
    struct map *orgs, *projects, *project_names, *persons, *person_names, *accounts, *keys, *key_hashes, *secrets, *tokens, *volumes,
        *images, *nodes, *node_names, *jobs, *attempts, *idems, *houses, *reservations;
    struct slabs *slabs;        /* of attempts */
    struct map *disk_waits;     /* instances that were refused a place for want of room for their disk: disk_room.c */
    size_t disk_look;           /* where among them the next look begins */
    struct map *ended;          /* jobs that end in this very commit: readers cannot see it yet, so the writer looks here first */
    size_t secrets_most;        /* of one project */
    struct rules rules;
    bool lifted;                /* the planner was told that the brake is */
    struct { int64_t attempt, at_ms, gpu_milli; } *evicted;     /* lately, for the brake */
    size_t evicted_count, evicted_room;
    int64_t ticked_ms;          /* the wall clock at the last tick; 0: none yet */
    int64_t pruned_ms;          /* when Idempotency-Keys that are too old were last dropped */
    /* Keys up to this event may be in the store alone (0: all are here), none of them made after idems_ms. */
    int64_t idems_from, idems_ms;
    size_t idem_count, idem_bytes, idem_most;  /* of those that may leave memory */
    bool restored;              /* from a backup: what was placed after it may still run, so nothing is placed until that has ended */
    int64_t loaded_boot_ms;
    int64_t look_boot_ms;       /* somebody looks at what GPUs do, until this time of the boot clock */
    bool looked;                /* the nodes have been told so */
};
enum { SECRETS_MOST = 10 * 1000 };      /* of one project */
enum { IDEM_DAYS = 1, IDEM_MOST = 50 * 1000, IDEM_LOAD = 10 * 1000, IDEM_BYTES = 16 << 20 };   /* in memory; loaded at start of jobs, of events */
/* It may take a while: hold (may be NULL) is asked now and then, and false ends it. */
MUST_CHECK bool state_load_held(struct conn *conn, int64_t wall_ms, int64_t boot_ms, uint64_t seed, bool (*hold)(void *arg, struct err *err), void *arg,
                                struct state **out, struct err *err);
static inline bool state_load(struct conn *conn, int64_t wall_ms, int64_t boot_ms, uint64_t seed, struct state **out, struct err *err)
{
    return state_load_held(conn, wall_ms, boot_ms, seed, NULL, NULL, out, err);
}
void state_free(struct state *s);
AUTO_FN(struct state *, state_free)

struct project *state_project(struct state *s, const char *name_or_id);
struct person *state_person(struct state *s, const char *name_or_id);
struct account *state_account(struct state *s, int64_t project, const char *name_or_id);
struct secret *state_secret(struct state *s, int64_t project, const char *name);
struct volume *state_volume(struct state *s, int64_t project, const char *name_or_id);
struct image *state_image(struct state *s, int64_t project, const char *name_or_id);
struct reservation *state_reservation(struct state *s, const char *name_or_id);
MUST_CHECK bool reservation_shape(const char *gpus, struct shape *out, struct err *err);
struct node *state_node(struct state *s, const char *name_or_id);
struct job *state_job(struct state *s, int64_t project, const char *name_or_id);      /* live; the newest of a name */
void state_facts(struct state *s, const struct credential *from, struct auth_facts *out);

/* Used while loading and by verbs alike, so that memory is built in one way. */
void state_name(struct state *s, enum thing_kind kind, int64_t project, const char *name, void *x);    /* the name is borrowed from x */
void state_unname(struct state *s, enum thing_kind kind, int64_t project, const char *name);
size_t state_named(const struct state *s, enum thing_kind kind, int64_t project);    /* how many there are */
struct project *state_add_project(struct state *s, int64_t id, int64_t org, const char *name, const char *quota, int64_t created_ms);
struct apikey *state_add_key(struct state *s, const struct apikey *k);
void state_link_key(struct state *s, struct apikey *k);     /* to its node, if it is one's */
void state_drop_key(struct state *s, struct apikey *k);
MUST_CHECK bool state_node_info(struct node *n, const char *json, struct err *err);
MUST_CHECK bool state_node_settings(struct node *n, const char *json, struct err *err);
struct topology node_where(const struct node *n);              /* as the operator says, else its agent */
struct node *state_add_node(struct state *s, int64_t id, const char *name, int64_t joined_ms);
void state_drop_node(struct state *s, struct node *n);
void node_goner(struct node *n, int64_t volume);            /* a volume that was there is to be swept */
struct job *state_add_job(struct state *s, int64_t id, struct project *p, const char *spec_text, struct err *err);   /* parses and settles the spec; NULL: it does not hold */
struct job *state_keep_job(struct state *s, int64_t id, struct project *p, const char *spec_text, const struct job_spec *settled, const struct shape *shape);    /* the same, of one that was settled and printed just now */
void state_end_job(struct state *s, struct job *j);        /* it is over: in s->ended until the commit has landed */
void state_drop_job(struct state *s, struct job *j);       /* it never was */
void state_forget_ended(struct state *s);
void job_follow(struct job *j, int64_t follower, enum after_when when);
bool job_skips(const struct job *j, int64_t index);
void job_skip(struct job *j, int64_t index);                /* it was cancelled before its turn */
void job_advance(struct job *j);                            /* next_task moves over what is skipped */
static inline bool job_is_instance(const struct job *j) { return text_is(j->spec.type, "instance"); }
static inline bool job_is_stopped(const struct job *j) { return j->reason == REASON_STOPPED; }     /* an instance, or it is about to be */
void disk_link(struct job *j, struct volume *v, struct node *n);
void disk_waits(struct state *s, struct job *j);              /* for room for its disk */
void disk_waits_no_more(struct state *s, struct job *j);      /* if it did */
bool job_waits(const struct job *j);                        /* some task of it has no node yet */
int64_t job_home(struct state *s, const struct job *j, bool *by_volume);   /* the only node it can run on; 0: any, -1: none */
bool job_gang(const struct job *j);                         /* its tasks start and end together, each on a node of its own */
struct task *job_task(struct job *j, int64_t index);
struct task *job_add_task(struct job *j, int64_t index);
struct attempt *state_add_attempt(struct state *s, int64_t id, struct task *t, struct node *n, const char *lease_json);
void addresses_hold(struct state *s, struct attempt *a, bool held);     /* its own, from now on or no more */
void mesh_hold(struct state *s, struct attempt *a, bool held);      /* ... there where other nodes find it */
void mesh_free_node(struct node *n);
void mesh_free_project(struct project *p);
size_t order_bytes(const struct job *j);                    /* at most, as JSON in its plainest form */
void state_evicted_add(struct state *s, int64_t attempt, int64_t at_ms, int64_t gpu_milli);
void attempt_why(struct attempt *a, const char *why);       /* it was told to end, for this reason of ours */
void attempt_begun(struct attempt *a);                      /* from now on its order is a short one */
bool node_takes(const struct node *n);                      /* may something new be placed there? */
void attempt_count(struct attempt *a);                      /* for limits, if it is not yet */
struct json;
struct parts *attempt_parts_get(const struct json *lease);  /* NULL: none */
void attempt_away(struct attempt *a, bool away, int64_t parked_mib);    /* its GPUs are not its own, or are again; parked_mib: see there */
int64_t node_kept_mib(const struct node *n);                /* of its memory: by suspended tasks */
void attempt_hold(struct attempt *a, int sign);             /* adds (1) or takes away (-1) what it holds from the project's books */
void state_drop_attempt(struct state *s, struct attempt *a);
void state_idem_add(struct state *s, const struct idem *like);  /* copies it; the oldest may go from memory for it */
MUST_CHECK bool idem_read(const struct rows *r, size_t row, struct arena *mem, struct idem *out);  /* as IDEM_LOOK gives it; false: it is none */
void state_idems_free(struct state *s);
void state_prune(struct state *s, int64_t now_ms);          /* drops Idempotency-Keys that are older than IDEM_DAYS */
/* The planner's picture of one thing. */
void sched_of_node(const struct state *s, const struct node *n, struct sched_event *e);
void sched_of_job(struct state *s, const struct job *j, struct sched_event *e);
void sched_of_project(const struct project *p, struct sched_event *e);
void sched_of_limit(const struct project *p, const struct limit_row *r, struct sched_event *e);
void sched_of_reservation(const struct reservation *r, struct sched_event *e);
void sched_of_rules(const struct state *s, int64_t now_ms, struct sched_event *e);
bool brake_lifted(const struct rules *r, int64_t now_ms);
void sched_of_held(const struct attempt *a, struct sched_event *e);

/* goods.c */
void goods_of_job(struct state *s, const struct job *j, struct sched_event *e);
void node_goods_set(struct node *n, const struct good *list, size_t count);    /* copies them */

/* house.c: what nothing overrides. */
void house_settle(struct state *s, struct node *n);         /* its house, after what its agent or the operator says of it has changed */
void house_of_gpu(const struct node *n, const struct gpu_info *g, struct sched_gpu *out);
struct guest house_guest(const struct job *j);
uint16_t house_slots(const struct order_gpu *g);            /* of a MIG slice; 0: it is none */
bool house_allows(const struct node *n, const struct job *j);
bool house_allows_gpu(const struct node *n, const struct job *j, const struct gpu_info *info, const struct order_gpu *gpu);
const char *house_taints(struct arena *mem, const struct node_settings *s);
