/* sched_internal.h - the picture: the fleet (fleet.h), projects with what they hold, jobs with the tasks that wait, and
 * the holds of tasks. Shared by the files of this folder and their tests; nobody else looks inside. */
#pragma once
#include "base/heap.h"
#include "model/priority.h"
#include "sched/index.h"
#include "sched/share.h"

/* --- waiting.c: the tasks of one job that wait, as ranges in order: an untouched array of a million is one. */
struct range { int32_t first, last; int64_t not_before_ms; };
struct waiting { union { struct range one, *more; }; uint32_t head, count, room; };    /* room 0: `one`, or none; else more[head .. head + count) */
struct range *waiting_ranges(const struct waiting *w);              /* `count` of them, in order */
void waiting_add(struct waiting *w, int64_t first, int64_t last, int64_t not_before_ms);   /* none of them may be in it */
bool waiting_take(struct waiting *w, int64_t task, int64_t *not_before_ms);
/* The first task that may start now. `from` is a place to go on from in the same pass, 0 at its beginning; *wake_ms is lowered to the
 * earliest time at which another becomes ready, as far as it looked. */
bool waiting_ready(const struct waiting *w, int64_t now_ms, size_t *from, int64_t *wake_ms, int64_t *task);
void waiting_done(struct waiting *w);

/* --- order.c: who comes next. A project has one lane in each class of priority that it has something waiting in. */
struct lane { struct project *project; int64_t key; size_t pos; struct heap classes; };     /* key: at some time before, so not above what it is now */
struct project {
    int64_t id;
    bool told;
    struct quota quota;
    int64_t gpu_held, cpu_held, mem_held, weight_milli;
    struct share share;
    struct books limits;
    struct lane lanes[CLASS_COUNT];
};

/* Jobs that ask for the same in the same project. What did not fit for one does not fit for the next in the same pass, since a pass only
 * takes: so a long queue of equal jobs costs one look at the fleet. */
struct class {
    struct class *next;         /* of the same hash */
    struct project *project;
    struct shape shape;
    struct wanted *wanted;      /* what the index knows about such tasks, of whatever project */
    int64_t only_node, priority, owner, bound_ms;  /* bound_ms: 0 unless hours are limited in its project */
    bool wants_host_image, by_volume;
    size_t jobs;
    struct job **ready;         /* those with a task that may start now, by age: ready[head .. head + count) */
    size_t head, count, room;
    size_t lane_pos, starve_pos, parked_pos;
    enum reason told;           /* what its ready jobs were last told */
    struct wait held_by;        /* of REASON_QUOTA: the limit */
    uint64_t failed_pass;       /* in this pass it did not fit, because of: */
    enum reason why;
    uint64_t known_fleet;       /* `possible` is about this fleet */
    bool possible;              /* some node could run it if nothing else ran there */
};
struct job {
    int64_t id, created_ms, pause_ms;   /* pause_ms: not before, after job.place refused it */
    int64_t since_ms;           /* it has waited: since it was made, or a task of it last started */
    int64_t wake_ms;            /* while it sleeps */
    size_t asleep;
    int64_t bound_ms;
    struct class *class;
    struct waiting waiting;
    int32_t priority;
    bool blocked, ready;        /* ready: it is in its class's list */
    uint8_t told;               /* enum reason: the last given out; not part of the picture */
};
struct hold {
    int64_t job, task, node, cpu_milli, mem_mib, not_before_ms, owner, bound_ms;
    struct project *project;
    struct limit_ask *counted;  /* as the limits of its project count it; NULL: there are none */
    struct hold *next, *prev;   /* on the same node */
    struct hold *same;          /* of the same key in sched.holds */
    bool confirmed;             /* false: placed by us, not yet told by an event */
    bool cancelled;             /* must not wait again if it is refused */
    int count;
    struct held_gpu gpus[];
};

enum { REFUSED_PAUSE_MS = 100 };

struct sched {
    struct map *projects, *jobs, *holds, *classes;
    struct map *held_on;        /* node -> the first of its holds, also while the node is away */
    struct fleet fleet;
    struct mix mix;
    struct index index;
    struct share_clock clock;
    bool other_units;           /* all keys are to be worked out again */
    struct heap bands[CLASS_COUNT];     /* lanes with a class that may start something, by share */
    struct heap starving;       /* those classes, by when their oldest job has waited too long */
    struct heap sleepers;       /* jobs, by when a pause ends */
    struct heap parked;         /* classes that cannot start anything until something is given back */
    uint64_t pass;              /* counts passes */
    bool dirty;                 /* something was given back: those that are parked are tried again */
    int64_t *fresh;             /* ids of jobs that are to be told why they wait, if they do */
    size_t fresh_count, fresh_room;
    struct job *next;           /* the one that is told to wait for resources; those behind it wait for their turn */
    int64_t last_now_ms, hours_ms;      /* hours_ms: the day that limits of hours are counted in; 0: there are none */
    uint64_t looks;             /* tries since the beginning, for tests */
};

int job_order(const struct job *a, const struct job *b);           /* by priority, then age; <0: a goes first. For one project, and to print */

void order_start(struct sched *s);
void order_done(struct sched *s);
void order_time(struct sched *s, int64_t now_ms);                   /* it is that late: who slept until then is ready */
int64_t order_wake(const struct sched *s);                          /* when the next of them is; INT64_MAX: never */
void order_file(struct sched *s, struct job *j);                    /* puts it where it belongs now: ready, asleep, or neither */
void order_remove(struct sched *s, struct job *j);                  /* it is nowhere any more */
/* Who comes next; NULL: nothing that could start. It comes again until its class is parked, or it has nothing more to start. */
struct job *order_next(struct sched *s);
void order_started(struct sched *s, struct job *j, int64_t at_ms);  /* a task of it has: its time of waiting begins anew */
bool order_before(const struct sched *s, const struct job *a, const struct job *b);
void order_park(struct sched *s, struct class *c);                  /* it cannot start anything, until: */
void order_unpark(struct sched *s);
void order_held(struct sched *s, struct project *p);                /* what it holds is about to change: its share is settled up to now */
void order_moved(struct sched *s, struct project *p);               /* what it holds, or its weight, has changed */
void order_node(struct sched *s, const struct node *n, int sign);    /* what there is in all: NULL is nothing */
void order_clock(struct sched *s, int64_t at_ms);                   /* something happened then */
void order_since(struct sched *s, const struct hold *h, int64_t at_ms);     /* it has been held since then */
void order_used(struct sched *s, struct project *p, const int64_t used[SHARE_COUNT], int64_t from_ms, int64_t to_ms);
void fresh_add(struct sched *s, const struct job *j);               /* it is to be told */
/* Takes the slices, and gives them back. */
struct hold *hold_new(struct sched *s, int64_t job, int64_t task, int64_t node, struct project *p, int64_t cpu_milli, int64_t mem_mib,
                      const struct held_gpu *gpus, int count);
void job_reclass(struct sched *s, struct job *j);                   /* whether its time counts has changed */
void hold_end(struct sched *s, struct hold *h);
struct hold *hold_find(const struct sched *s, int64_t job, int64_t task);

/* --- quota.c */
void quota_of(struct sched *s, const struct sched_event *e);        /* SCHED_LIMIT */
void quota_hold(struct sched *s, struct hold *h, int64_t owner, int64_t bound_ms);  /* counts a new one */
void quota_end(struct sched *s, struct hold *h);
void quota_used(struct sched *s, const struct hold *h, int64_t from_ms, int64_t to_ms);
void quota_time(struct sched *s, int64_t now_ms);                   /* periods that are over */
int64_t quota_wake(const struct sched *s);                          /* when the next one is; INT64_MAX: nobody's hours are limited */
bool quota_allows(struct sched *s, struct class *c);                /* else c->held_by says what does not */
bool quota_allows_on(struct sched *s, struct class *c, const struct node *n, const struct held_gpu *gpus, int count);   /* the same with the models known */

/* --- fit.c */
bool node_could(const struct fleet *f, const struct node *n, const struct class *c);       /* if nothing else ran there */
/* The best place for a task of that class now, within its project's quota; NULL: there is none. */
struct node *place_find(struct sched *s, struct class *c, struct pick *pick);
