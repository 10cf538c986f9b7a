/* sched_internal.h - the picture: nodes with what is taken of them, projects with what they hold, jobs with the tasks that wait, and
 * the holds of tasks. Shared by the files of this folder and their tests; nobody else looks inside. */
#pragma once
#include "base/map.h"
#include "sched/sched.h"

/* --- waiting.c: the tasks of one job that wait, as ranges in order: an untouched array of a million is one. */
struct range { int64_t first, last, not_before_ms; };
struct waiting { struct range *at; size_t head, count, room; };     /* at[head .. head + count) */
void waiting_add(struct waiting *w, int64_t first, int64_t last, int64_t not_before_ms);   /* none of them may be in it */
bool waiting_take(struct waiting *w, int64_t task, int64_t *not_before_ms);
/* The first task that may start now. `from` is a place to go on from in the same pass, 0 at its beginning; *wake_ms is lowered to the
 * earliest time at which another becomes ready, as far as it looked. */
bool waiting_ready(const struct waiting *w, int64_t now_ms, size_t *from, int64_t *wake_ms, int64_t *task);
void waiting_done(struct waiting *w);

struct gpu { struct sched_gpu is; int64_t used_milli, used_mib, project; int holders; };    /* project: of all its holders */
struct node {
    int64_t id;
    bool usable, host_image;
    int64_t cpu_milli, mem_mib, cpu_used, mem_used;
    int gpu_count;
    struct gpu gpus[SCHED_GPUS];
};
struct project { int64_t id; bool told; struct quota quota; int64_t gpu_held, cpu_held, mem_held; };

/* Jobs that ask for the same in the same project. What did not fit for one does not fit for the next in the same pass, since a pass only
 * takes: so a long queue of equal jobs costs one look at the fleet. */
struct class {
    struct class *next;         /* of the same hash */
    struct project *project;
    struct shape shape;
    int64_t only_node;
    bool wants_host_image, by_volume;
    size_t jobs;
    uint64_t failed_pass;       /* in this pass it did not fit, because of: */
    enum reason why;
    uint64_t known_fleet;       /* `possible` is about this fleet */
    bool possible;              /* some node could run it if nothing else ran there */
};
struct job {
    int64_t id, priority, created_ms, pause_ms;     /* pause_ms: not before, after job.place refused it */
    struct class *class;
    struct waiting waiting;
    bool blocked;
    enum reason told;           /* last reason given out; not part of the picture */
};
struct held_gpu { int64_t index, milli, mem_mib; };
struct hold {
    char key[40];
    int64_t job, task, node, cpu_milli, mem_mib, not_before_ms;
    struct project *project;
    bool confirmed;             /* false: placed by us, not yet told by an event */
    bool cancelled;             /* must not wait again if it is refused */
    int count;
    struct held_gpu gpus[];
};

enum { REFUSED_PAUSE_MS = 100 };

struct sched {
    struct map *projects, *jobs, *holds, *classes;
    struct node **nodes;        /* by id: the order in which they joined */
    size_t node_count, node_room;
    struct job **queue;         /* jobs with waiting tasks, in the order they are looked at */
    size_t queue_count, queue_room;
    uint64_t fleet, pass;       /* count changes of nodes, and passes */
    bool dirty;                 /* something happened that may let a task start, or change a reason */
    struct job **fresh;         /* jobs that are new since the last pass: if nothing else happened, only they are looked at */
    size_t fresh_count, fresh_room;
    struct job *next;           /* the one that is told to wait for resources; those behind it wait for their turn */
    int64_t wake_ms, last_now_ms;
    uint64_t looks;             /* jobs looked at since the beginning, for tests */
};

struct node *sched_node(const struct sched *s, int64_t id);
int job_order(const struct job *a, const struct job *b);           /* <0: a goes first */
void queue_drop(struct sched *s, const struct job *j);
void queue_add(struct sched *s, struct job *j);
/* Takes the slices, and gives them back. */
struct hold *hold_new(struct sched *s, int64_t job, int64_t task, int64_t node, struct project *p, int64_t cpu_milli, int64_t mem_mib,
                      const struct held_gpu *gpus, int count);
void hold_end(struct sched *s, struct hold *h);
struct hold *hold_find(const struct sched *s, int64_t job, int64_t task);

/* --- fit.c */
bool node_could(const struct node *n, const struct class *c);       /* if nothing else ran there */
bool node_fits(const struct node *n, const struct class *c, struct held_gpu *gpus, int *count);
bool quota_fits(const struct class *c);
