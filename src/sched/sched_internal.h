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
    char *residency;            /* NULL: anywhere */
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
    char region[PLACE_NAME], zone[PLACE_NAME];
    const char *tolerates;      /* its own copy; NULL: nothing */
    int64_t gang;               /* tasks of a job that start together; 0: each by itself */
    uint8_t within, prefer;     /* enum place_level */
    size_t jobs;
    struct job **ready;         /* those with a task that may start now, by age: ready[head .. head + count) */
    size_t head, count, room;
    /* Copies of what its first and its hungriest job say, so that lines are compared without a look at jobs, which are many and far apart. */
    int64_t first_created_ms, first_id, starves_ms, starves_id;
    int32_t first_priority;
    size_t lane_pos, starve_pos, parked_pos;
    enum reason told;           /* what its ready jobs were last told */
    struct wait held_by;        /* of REASON_QUOTA: the limit */
    uint64_t failed_pass;       /* in this pass it did not fit, because of: */
    enum reason why;
    uint64_t known_fleet;       /* `possible` is about this fleet */
    int64_t evict_ms;           /* nobody was found who could yield: not again before that */
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
    uint32_t need;              /* which bytes, see near.c; 0: none */
    int16_t priority;
    bool blocked : 1, ready : 1;    /* ready: it is in its class's list */
    uint8_t told;               /* enum reason: the last given out; not part of the picture */
};
struct hold {
    int64_t job, task, node, cpu_milli, mem_mib, not_before_ms, owner, bound_ms;
    int64_t since_ms, ends_ms, yields_ms;   /* ends_ms: expected, INT64_MAX where nobody knows; yields_ms: of one that was told to stop, else 0 */
    int64_t moved_ms;           /* returns.c: when others' reservations were last asked to make room for it */
    int64_t evicted_for;        /* job that its eviction was asked for, not yet told by an event; 0: none */
    struct project *project;
    struct limit_ask *counted;  /* as the limits of its project count it; NULL: there are none */
    struct hold *next, *prev;   /* on the same node */
    struct hold *same;          /* of the same key in sched.holds */
    bool confirmed;             /* false: placed by us, not yet told by an event */
    bool cancelled;             /* must not wait again if it is refused */
    bool tallied;
    bool returns, returning;    /* returns.c; returning: we gave it its GPUs back, and no event has told so */
    bool wanted;                /* ... by its owner */
    uint8_t rank;               /* enum priority_class */
    int64_t other_cpu, other_mem;   /* of one that was suspended: what it holds with its GPUs, or without them */
    int count, away;            /* away: of its GPUs, those that it has given back: all or none */
    struct held_gpu gpus[];
};

/* --- claim.c: room on a node that is kept for somebody who is not there yet. Not part of the picture: after a restart they are made anew. */
enum claim_kind { CLAIM_HEAD, CLAIM_EVICT, CLAIM_RESERVE };
struct claim {
    enum claim_kind kind;
    bool taken, aside;          /* taken: it is in force. Else it is lifted: for a moment; aside: until its owner's turn has come in this pass */
    int64_t job;                /* 0: of a reservation */
    struct reserve *reserve;
    int64_t node, start_ms;     /* start_ms: when it is wanted; INT64_MAX: as soon as it is free */
    int64_t cpu_milli, mem_mib;
    struct claim *next, *same;  /* on the same node; of the same job */
    size_t at;                  /* its place in claims.at */
    size_t seen;                /* of a head: of the fleet's nodes so many were looked at */
    int64_t told_ms;            /* the start that was last given out */
    int64_t looked_ms;          /* of a gang's: when they were found */
    int count;
    struct held_gpu gpus[SCHED_GPUS];
};
struct claims {
    struct claim **at;          /* by age */
    size_t count, room, cursor, heads, evicts;
    struct map *on, *of;        /* node -> the first claim there; job -> its first */
};
/* A task as it would stand on a node. */
struct spot { struct node *node; struct pick pick; struct held_gpu gpus[SCHED_GPUS]; int count; };
struct claim *claim_new(struct sched *s, const struct claim *like);     /* takes it */
void claim_drop(struct sched *s, struct claim *cl);
void claim_lift(struct sched *s, struct claim *cl);
void claim_take(struct sched *s, struct claim *cl);
void claims_done(struct claims *c);
struct claim *claims_of(const struct sched *s, int64_t job);
void claims_count(struct sched *s, int64_t node);                   /* what is held there has changed */
void claims_whole(const struct sched *s, struct node *n);           /* for a moment: put cpu_claimed and mem_claimed back */
void claims_check(struct sched *s);                                 /* those whose owner does not wait any more go */
void claims_node(struct sched *s, int64_t node);                    /* the node was told, or is gone */
bool claim_free(struct sched *s, const struct claim *cl, struct job *j);       /* its owner could start there now */
void claims_drop_of(struct sched *s, int64_t job);
/* Where a task of a job may start now: its own claims and its project's reservations first, then anywhere, then what is lent under the
 * claims of others. What was lifted for it stays so until claims_back. */
struct node *place_for(struct sched *s, struct job *j, struct pick *pick);
struct node *place_lent(struct sched *s, struct job *j, struct pick *pick);    /* the last of these */
bool lent_fits(struct sched *s, struct job *j);                     /* only whether it would find one */
bool claim_own(const struct sched *s, const struct claim *cl, const struct job *j);
bool claim_lent(const struct sched *s, const struct claim *cl, const struct job *j);
int64_t claims_until(const struct sched *s);                        /* whoever is not over by then may run under none; 0: there are none */
void claims_back(struct sched *s, struct job *j, struct node *n);
/* For one that comes back to GPUs that it had: what its project has reserved, or is lent to it; first: also what is held for those of the queue, who come
 * behind it; reserved: also what others have reserved. Until claims_again. */
void claims_open(struct sched *s, int64_t node, const struct job *j, bool first, bool reserved);
void claims_again(struct sched *s, int64_t node);                   /* it was only looked at: what was lifted there is in force again */

/* --- ahead.c: when those who cannot start now will. A head is the first of its class of priority that waits for room. */
enum { AHEAD_LOOK = 512, HOLDS_MOST = 256 };
struct when { int64_t start_ms; struct spot at; };                  /* start_ms: INT64_MAX: not known */
/* Whether it has room for such a task before best->start_ms, by what is expected to end; then best is that. */
bool node_when(struct sched *s, struct class *c, struct node *n, struct when *best);
void ahead_touch(struct sched *s, int64_t node);                    /* something ends there earlier than was thought */
void ahead_begin(struct sched *s);                                  /* a pass over everything: the heads' claims are lifted until their turn */
void ahead_end(struct sched *s, bool whole);
void ahead_parked(struct sched *s, struct job *j, bool whole);      /* no node has room for it */

/* --- evict.c: who yields. */
enum { VICTIMS_MOST = 64 };
/* at.node NULL: none. cost: the tasks that must go; of a gang all do. */
struct victims { struct spot at; int count; int64_t cost, oldest_ms; struct hold *of[VICTIMS_MOST]; };
void evict_line(struct sched *s, struct class *c);                  /* no node has room for it: places for the first of it, if others must yield */
/* Whether fewer, or younger, of the given classes (a set of bits) are in its way on that node than best has; then best is that. */
enum { VICTIMS_ALL = (1 << CLASS_COUNT) - 1 };
bool victims_least(struct sched *s, struct class *c, struct node *n, unsigned ranks, struct victims *best);
/* The same for what was lent out of places that the job's project has reserved there. */
bool victims_lent(struct sched *s, const struct job *j, struct node *n, struct victims *best);
bool evict_could(const struct sched *s, enum priority_class rank);  /* there may be somebody who yields to that class; cheap */
void evict_kept(struct sched *s, struct hold *h);
void evict_told(struct sched *s, const struct sched_event *e);      /* SCHED_EVICTED */
int64_t victims_milli(const struct sched *s, const struct victims *v);
bool brake_allows(struct sched *s, int64_t milli);
void evict_take(struct sched *s, struct job *j, const struct victims *v, bool reserved);    /* they are to go, and the place is claimed for it */

/* --- crew.c: the same for gangs */
struct seat;
struct seat *gang_for(struct sched *s, struct job *j, struct arena *mem, enum reason *why);     /* what was lifted for it stays so until: */
void gang_back(struct sched *s, struct job *j, bool placed);
int64_t crew_head(struct sched *s, struct job *j, struct claim *known);         /* its start is held; 0: nobody knows when */
bool quota_allows_crew(struct sched *s, struct class *c, const struct spot *at);    /* quota.c: all of them, c->gang */
struct start_hint crew_start(struct sched *s, struct class *c, int64_t job);    /* when it would start, if it cannot now */
bool crew_evict(struct sched *s, struct job *j, unsigned ranks, bool reserved);      /* reserved: only what was lent out of its project's reservations yields */
void evict_time(struct sched *s, int64_t now_ms);                   /* the brake lets go of what was long ago */

/* --- near.c: bytes that are there already, and how the tasks of a job are spread. Not used: all NULL. */
struct near {
    struct map *goods, *of;     /* key -> where it is; node -> what it has */
    struct map *by_hash;        /* of needs, each set of keys once */
    struct need **needs;
    uint32_t *free;             /* numbers of needs, counted from 1 */
    size_t need_count, need_room, free_count;
    struct map *spreads;        /* job -> where its tasks are */
    uint64_t scans_pass;
    int scans;                  /* in that pass */
};
uint32_t need_enter(struct sched *s, const int64_t key[static SCHED_NEEDS]);
void need_leave(struct sched *s, uint32_t number);
void near_goods(struct sched *s, const struct sched_event *e);      /* SCHED_NODE_HAS */
void near_node_gone(struct sched *s, int64_t node);
void near_places(struct sched *s);                                  /* a node came, went, or is in another zone */
void near_job(struct sched *s, const struct sched_event *e);
void near_job_gone(struct sched *s, int64_t job);
void near_hold(struct sched *s, const struct hold *h, int by);      /* only where there are spreads */
void near_print_node(const struct sched *s, int64_t node, struct str *out);
void near_print_job(const struct sched *s, const struct job *j, struct str *out);
void near_done(struct sched *s);
/* The best place for a task of it, which place_find found, or a better one by what is there already. */
struct node *place_near(struct sched *s, const struct job *j, struct node *n, struct pick *pick);

/* --- reserve.c */
struct reserve {
    int64_t id, from_ms, until_ms, count, tried_ms;
    uint64_t tried_fleet;
    struct class *class;        /* a part of it, as if it were a job's */
    struct claim **parts;       /* `count` of them; NULL: has no place yet */
};
void reserve_told(struct sched *s, const struct sched_event *e);
void reserve_gone(struct sched *s, const struct sched_event *e);
void reserve_free(struct sched *s, struct reserve *r);
void reserves_time(struct sched *s, int64_t now_ms);
void reserves_pin(struct sched *s);
void reserve_lost(struct sched *s, struct claim *cl);               /* a part has lost its place */
bool reserve_open(const struct sched *s, const struct reserve *r);  /* its time has come */
bool reserves_move(struct sched *s, int64_t node, const struct job *j);     /* what others than its project have reserved there is elsewhere from now on; false: it cannot, and is where it was */

struct brake { int64_t at_ms, milli, job, task; };      /* job: that was asked for; 0: the door has told it */
enum { REFUSED_PAUSE_MS = 100, EVICT_PAUSE_MS = 1000 };

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
    struct sched_rules rules;
    size_t ending, ranks[CLASS_COUNT];  /* holds whose end is known; of each class of priority */
    struct claims claims;
    struct map *reserves;
    int64_t reserve_ms;         /* when the next reservation begins or ends */
    int64_t *touched;           /* nodes where something ended since the last look for the heads */
    size_t touched_count, touched_room;
    struct brake *brakes;       /* what was evicted in the window */
    size_t brake_from, brake_count, brake_room;
    int evict_fails;            /* searches of this pass that found nobody */
    int64_t evict_pause_ms;     /* the door did not take an eviction: none before that */
    int64_t braked_ms;          /* somebody is to be tried again then */
    struct eviction *evictions; /* of this pass */
    size_t eviction_count, eviction_room;
    struct start_hint *starts;
    size_t start_count, start_room;
    struct hold **returns;      /* suspended ones that are to go on */
    size_t return_count, return_room;
    uint64_t searches;          /* of gangs: a number for each */
    struct near near;
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
bool order_starved(const struct sched *s, const struct job *j);     /* it goes before all */
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
void hold_turn(struct sched *s, struct hold *h);                    /* it gives its GPUs back, or has them again */
/* --- returns.c */
void returns_file(struct sched *s, struct hold *h, bool in, bool wanted);   /* it waits for the GPUs that it had, or does not any more */
void returns_find(struct sched *s, struct arena *mem, bool first, struct sched_plan *plan);     /* those that have them from now on; first: before the queue */
int64_t returns_wake(const struct sched *s);                        /* one that the door refused is to be tried again then; INT64_MAX: none */
void returns_kept(struct sched *s, struct hold *h);
static inline void hold_as(struct node *n, const struct hold *h, int sign)     /* for a moment, see node_count */
{
    node_count(n, h->project->id, h->cpu_milli, h->mem_mib, h->gpus, h->count, sign);
}
struct hold *hold_find(const struct sched *s, int64_t job, int64_t task);
void hold_known(struct sched *s, struct hold *h, int64_t since_ms, int64_t priority, int64_t bound_ms, int64_t yields_ms);     /* how long, and how much it counts */
struct class *class_like(struct sched *s, const struct sched_event *e);     /* of such a job; give it back: */
void class_leave(struct sched *s, struct class *c);

/* --- quota.c */
void quota_of(struct sched *s, const struct sched_event *e);        /* SCHED_LIMIT */
void quota_hold(struct sched *s, struct hold *h, int64_t owner, int64_t bound_ms);  /* counts a new one */
void quota_end(struct sched *s, struct hold *h);
void quota_used(struct sched *s, const struct hold *h, int64_t from_ms, int64_t to_ms);
void quota_time(struct sched *s, int64_t now_ms);                   /* periods that are over */
int64_t quota_wake(const struct sched *s);                          /* when the next one is; INT64_MAX: nobody's hours are limited */
bool quota_allows(struct sched *s, struct class *c);                /* else c->held_by says what does not */
bool quota_allows_held(struct class *c, int64_t cpu_milli, int64_t mem_mib);   /* the same for what follows from the node */
bool quota_allows_on(struct sched *s, struct class *c, const struct node *n, const struct held_gpu *gpus, int count);   /* the same with the models known */

/* --- filter.c */
struct sight {              /* a node as a class of jobs sees it */
    uint32_t refused;       /* set of enum filter */
    int suitable, free, of_others, kept;    /* GPUs that are what it asks for; of them those it could take now; shared ones of other projects; those claimed by others */
    int64_t largest, cpu_needs, mem_needs;  /* largest: the most that is left of one GPU for a share of its project */
};
/* known: of each kind of GPU, 0 at first; or NULL. */
void filter_see(const struct fleet *f, const struct class *c, const struct node *n, uint8_t *known, struct sight *out);
bool node_could(const struct fleet *f, const struct node *n, const struct class *c);       /* if nothing else ran there */
bool class_possible(struct sched *s, struct class *c);              /* some node could, or of a gang enough of them */

/* --- fit.c */
/* The best place for a task of that class now, within its project's quota; NULL: there is none. */
struct node *place_find(struct sched *s, struct class *c, struct pick *pick);
bool place_may(struct sched *s, struct class *c, const struct node *n, const struct pick *pick);    /* its quota and limits allow it there */
bool place_allowed(struct sched *s, struct class *c, const struct spot *at);    /* its quota and limits allow it there */

/* --- gang.c */
struct seat { struct node *n; struct pick *pick; uint64_t group; };     /* group: for the search alone */
/* Nodes for a gang of that class, c->gang of them, rank by rank, within its project's quota; NULL: there are none, and *why. Takes nothing. */
struct seat *gang_find(struct sched *s, struct class *c, struct arena *mem, enum reason *why);
struct node *gang_first(struct sched *s, struct class *c);          /* where its first task would start now; NULL: it cannot */
bool gang_possible(struct sched *s, const struct class *c);         /* if nothing else ran */
bool gang_ready(const struct job *j, int64_t now_ms, int64_t *wake_ms);     /* all its tasks wait, and may start; else *wake_ms if only time is missing */
bool quota_allows_gang(struct sched *s, struct class *c, const struct seat *seats, int64_t cpu_milli, int64_t mem_mib);  /* quota.c: with all that they would hold */
