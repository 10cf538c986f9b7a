/* index.h - the best node and GPUs for a shape, without walking the fleet.
 *
 * For each shape that is asked for a ranking keeps some of the best lots in a heap. What changes in the fleet is in the fleet's log;
 * a ranking reads on in it when it is asked next, and scores only that. It is exact: the answer is what index_scan, which looks
 * at every lot, gives. Rankings nobody asked for in a long time are dropped.
 *
 * Most of what a share may come to is free to everybody, so projects share one ranking of that; a project's own is about the GPUs that it is on already,
 * which are few, and have a log of their own. */
#pragma once
#include "sched/score.h"

enum { RANKING_KEEP = 64, RANKINGS_MAX = 1024 };    /* of a small fleet: both grow with it */

struct ranked { int64_t node, score; struct lot_ref lot; };     /* node: the first of the lot, when it was scored */
struct wanted {
    struct want is;
    struct wanted *next;            /* of the same hash */
    struct wanted *free;            /* of a share: the same for GPUs that are free to everybody; the ranking here is then about its project's own */
    struct wanted *newer, *older;   /* of those with a ranking, by when they were asked for */
    size_t users, kinds;
    struct suit *suits;             /* by kind of GPU, `kinds` of them */
    bool *admits;                   /* by house, `houses` of them; NULL: all do */
    size_t houses;
    struct ranked *heap;            /* NULL: no ranking */
    uint32_t count, room;
    struct ranked floor;            /* the best that was left out */
    bool cut;                       /* something was left out */
    uint64_t read;                  /* how far in the log */
    uint32_t epoch;                 /* of which mix */
};
struct index {
    struct fleet *fleet;
    struct mix *mix;
    struct policy policy;
    struct map *wanted;
    struct wanted *newest, *oldest;
    size_t rankings;
    uint64_t scored, scans, asked;  /* lots scored, rankings made anew, questions: for tests and benchmarks */
};
void index_done(struct index *x);
void index_ready(struct index *x, struct wanted *w);        /* lots and tables are as they should be: index_as may be asked */
struct wanted *wanted_of(struct index *x, const struct want *like);     /* shared by all who ask for the same; give it back */
void wanted_leave(struct index *x, struct wanted *w);
void ranking_drop(struct index *x, struct wanted *w);                   /* of one that has any: it is made anew when it is asked for */

/* The best place now; NULL: none fits. The node's lot is the one that the pick is about. */
struct node *index_best(struct index *x, struct wanted *w, struct pick *out);
/* The same among the places that `allowed` takes, by a walk over all lots. allowed NULL: all. */
struct node *index_scan(struct index *x, struct wanted *w, bool (*allowed)(const struct pick *p, void *arg), void *arg, struct pick *out);
/* Every lot with room; the pick has no score yet. Nothing may change meanwhile. */
void index_each(struct index *x, struct wanted *w, void (*found)(struct lot *l, const struct pick *p, void *arg), void *arg);
/* The same with their scores, the better first, until `look` says that it has seen enough; false: there may be more than the ranking knows. */
bool index_walk(struct index *x, struct wanted *w, bool (*look)(struct lot *l, const struct pick *p, void *arg), void *arg);
void index_walk_all(struct index *x, struct wanted *w, bool (*look)(struct lot *l, const struct pick *p, void *arg), void *arg);    /* all, in no order */
/* On one node. */
bool index_on(struct index *x, struct wanted *w, struct node *n, struct pick *out);
/* On one node as its numbers stand, whatever its lot says, and with which devices. */
bool index_fits(struct index *x, struct wanted *w, const struct node *n);     /* only whether; the cheaper question */
bool index_as(struct index *x, struct wanted *w, struct node *n, struct pick *out, struct held_gpu gpus[static SCHED_GPUS], int *count);
