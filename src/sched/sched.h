/* sched.h - fleet and queue -> plan. A deterministic machine without I/O, clock or chance: the same events and times give the same
 * placements, and a picture built event by event equals one built from scratch.
 *
 * sched_apply() keeps the picture, sched_plan() answers with placements for tasks that can start now. A placement counts as taken at
 * once; the event that confirms it (or SCHED_TASK_REFUSED) settles it. Order: classes of priority, fair share of projects, age
 * (order.c). Where:
 * the best score (score.h). */
#pragma once
#include "base/arena.h"
#include "base/str.h"
#include "model/ask.h"
#include "model/goods.h"
#include "model/house.h"
#include "model/mig.h"
#include "model/node.h"
#include "model/order.h"
#include "model/priority.h"
#include "model/weights.h"
#include "sched/filter.h"

enum sched_kind {
    SCHED_NODE,             /* a node is there, or changed: capacity, gpus, usable */
    SCHED_NODE_GONE,
    SCHED_NODE_HAS,         /* the bytes that are there: goods; all that there are. Also of one that is not told yet, until it is gone */
    SCHED_PROJECT,          /* quota and weight of a project */
    SCHED_LIMIT,            /* what a project, a user of it, or either of one model may hold and use */
    SCHED_JOB,              /* a job was queued, or its priority changed */
    SCHED_JOB_GONE,         /* all its tasks have ended, or were cancelled while they waited */
    SCHED_TASK_HELD,        /* a task holds slices on a node (placed; also when rebuilding from a snapshot) */
    SCHED_TASK_FREED,       /* its attempt has ended: the slices are free */
    SCHED_TASK_QUEUED,      /* one task of a job waits (again), not before a time */
    SCHED_TASK_GONE,        /* one waiting task was cancelled */
    SCHED_TASK_REFUSED,     /* job.place did not take a placement: it waits again */
    SCHED_TASK_KEPT,        /* job.place did not take an eviction: it stays where it is */
    SCHED_RESERVE,          /* a project shall have room in a time: reserve, project, shape, count, from_ms, until_ms. Told again: it changed */
    SCHED_RESERVE_GONE,
    SCHED_EVICTED,          /* the door counts for the brake: at_ms, `count` thousandths of GPUs, and for which task (job 0: long ago, of a snapshot) */
    SCHED_RULES,            /* who yields to whom, and how many at most; until it is told nobody is evicted */
    SCHED_KIND_COUNT
};
enum { SCHED_GPUS = 16, SCHED_NEEDS = 2 };   /* of one node, more are refused at hello; of a job: its image and its work folder */

/* whole_only: no shares of it. mixes: shares of several projects may be on it. equal: only shares of one size, which divides 1000. */
struct sched_gpu { int64_t index, mem_mib; char model[48]; bool healthy, simulated, whole_only, mixes, equal; struct mig_layout mig; };
struct sched_held { int64_t index, milli, mem_mib; uint16_t slots; };      /* slots: of a MIG slice, see mig.h; 0: none */
/* preempt: for each class of priority a set (1 << class) of those whose work it may evict; what is brought by a reservation yields
 * whatever stands here. */
struct sched_rules {
    uint8_t preempt[CLASS_COUNT];
    int64_t brake_permille, brake_window_ms;    /* of all GPUs at most so many are evicted in such a time (one node's always); 0: none */
    int64_t notice_ms;                          /* until a task that was told to yield is gone, as far as the planner reckons */
    int64_t backfill_depth;                     /* so many of the first of a class that cannot start get a time that is held for them; 0: none */
    int64_t *weight;                            /* of each term, TERM_COUNT of them; NULL: they stay as they are */
};
#define SPOT_YIELDS (1 << CLASS_SPOT)
#define SCHED_RULES_USUAL ((struct sched_rules){ { 0, SPOT_YIELDS, SPOT_YIELDS, SPOT_YIELDS, SPOT_YIELDS }, 100, 3600 * 1000, 60 * 1000, 1, NULL })
struct sched_event {
    enum sched_kind kind;
    int64_t node, project, job, task, reserve;
    int64_t at_ms;          /* when it happened; 0: now, which is when the last plan was made */
    const char *house;      /* texts of house.h. SCHED_NODE: its house; SCHED_JOB: what it tolerates; SCHED_PROJECT: its residency. NULL: none */
    /* SCHED_NODE */
    bool usable;            /* ready, not cordoned, not silent */
    enum filter shut;       /* why it is not: one of those about its state */
    bool host_image;
    int64_t cpu_milli, mem_mib;
    int gpu_count;
    struct sched_gpu *gpus;     /* gpu_count of them; a pointer, for most events have none and there are many */
    char *where;            /* its topology address (model/place.h), of PLACE_ADDRESS bytes; NULL: not known */
    /* SCHED_NODE_HAS */
    struct good *goods;
    size_t good_count;
    /* SCHED_PROJECT */
    struct quota quota;
    int64_t weight_milli;   /* of its fair share; 0: 1000 */
    int64_t used[3], used_from_ms, used_until_ms;   /* what it held before this picture began: thousandths of GPUs and CPUs and MiB, times ms, in that time; 0: none */
    /* SCHED_LIMIT; owner 0: of the whole project */
    char model[MODEL_NAME];
    struct limit limit;
    int64_t used_hours[PERIODS];    /* in this period so far, by what has ended: thousandths of a GPU times ms */
    /* SCHED_JOB, SCHED_TASK_HELD: whose it is, and how long a task may run at most (0: nobody knows) */
    int64_t owner, bound_ms;
    int64_t priority;       /* of the job */
    /* SCHED_TASK_HELD: it has been told to stop, and is gone at that time at the latest; whether for us or for another reason is no matter */
    bool yielding;
    int64_t yields_ms;
    /* SCHED_JOB */
    int64_t created_ms;     /* its age begins: when it was made, or what blocked it had gone */
    int64_t first_task, last_task;      /* tasks first..last wait (an array is one row) */
    struct shape shape;     /* also of one part of a reservation, which has `count` of them */
    bool wants_host_image;
    char region[PLACE_NAME], zone[PLACE_NAME];  /* only there; "": anywhere */
    int64_t gang;           /* tasks that start together, each on a node of its own: all of the job's; 0 or 1: none */
    uint8_t within, prefer; /* enum place_level, of a gang: what it must be in, and what it is to be in if that is possible */
    enum spread spread;     /* its tasks are to be on different nodes, or in different zones, if they can */
    int64_t needs[SCHED_NEEDS];     /* bytes that its tasks fetch where they are not there yet: keys of goods.h; 0: none */
    int64_t only_node;      /* 0: any; else the node of its volume, or the one it named */
    bool by_volume;         /* only_node is the node of its volume: then it waits with REASON_VOLUME, not REASON_RESOURCES */
    enum reason told;       /* why it waits, as its owner was told already; REASON_NONE: nothing */
    bool blocked;           /* its dependencies are not met: waits with REASON_DEPENDENCY, is not placed */
    /* SCHED_TASK_HELD */
    int64_t cpu_held, mem_held;
    int held_count;
    struct sched_held *held;
    bool away;              /* it is suspended: these are the GPUs that it had and comes back to; cpu_held and mem_held are what it holds without them */
    bool returns;           /* ... as soon as they are free and nobody with a better right waits for them: sched_plan says when */
    bool wanted;            /* ... by its owner, who has resumed it: before all that is queued. Else it had to yield, and comes before its like */
    int64_t own_cpu, own_mem;   /* of such a one: what it holds together with them */
    /* SCHED_TASK_FREED: what of its time counts, in used_from_ms and used_until_ms; none: 0 */
    /* SCHED_TASK_QUEUED */
    int64_t not_before_ms;
    /* SCHED_RESERVE */
    int64_t count, from_ms, until_ms;
    /* SCHED_RULES */
    struct sched_rules rules;
};

struct sched;
struct sched *sched_new(void);
void sched_free(struct sched *s);
AUTO_FN(struct sched *, sched_free)
/* The rules of placement by name: "arcus" (what a new one has), and those it is compared with. False: no such name. */
bool sched_policy(struct sched *s, const char *name);
bool sched_weight(struct sched *s, const char *term, int64_t thousandths);     /* changes one weight of the policy */
/* Shapes that are expected, as if so many had come before; and: nothing else is learned from now on. */
void sched_expect(struct sched *s, const struct shape *shape, int64_t tasks);
void sched_expect_no_other(struct sched *s);
bool sched_foreknown(const struct sched *s);    /* its policy wants to be told before what will be asked for */
int64_t sched_stuck(struct sched *s);           /* idle thousandths of GPUs that the tasks usually asked for cannot use where they are */
void sched_apply(struct sched *s, const struct sched_event *e);
/* Placements of tasks that can start at now_ms, at most `most`; waits: jobs whose named reason changed; evictions: tasks that are to be
 * told to stop, each for a job that gets its place (SCHED_TASK_HELD with yielding, or SCHED_TASK_KEPT, settles it); resumes: suspended tasks
 * that are to have their GPUs again (SCHED_TASK_HELD, or SCHED_TASK_KEPT); starts: jobs whose
 * held start is new or other than it was by more than a little (start_ms INT64_MAX: none any more). All in mem. next_ms: when to call
 * again although nothing happened (a retry's pause ends); INT64_MAX: never. */
struct start_hint { int64_t job, node, start_ms; };
struct sched_plan {
    struct placement *placements; size_t count;
    struct wait *waits; size_t wait_count;
    struct eviction *evictions; size_t eviction_count;
    struct resume *resumes; size_t resume_count;
    struct start_hint *starts; size_t start_count;
    int64_t next_ms;
};
struct sched_plan sched_plan(struct sched *s, int64_t now_ms, size_t most, struct arena *mem);
/* Where and when a task of such a job (SCHED_JOB; one that is known by its number too) would start as things stand: now_ms, or when those
 * that run are expected to end; of one whose start is not held that is the earliest, for those before it are not counted. node 0, INT64_MAX: nobody knows. Changes nothing that can be seen. */
struct start_hint sched_when(struct sched *s, const struct sched_event *job, int64_t now_ms);
/* How many of the `count` parts of such a reservation (SCHED_RESERVE) could be had, as things stand. Changes nothing that can be seen. */
int64_t sched_can_reserve(struct sched *s, const struct sched_event *reserve, int64_t now_ms);
void sched_print(const struct sched *s, struct str *out);       /* the whole picture as text in a fixed order, for tests */
