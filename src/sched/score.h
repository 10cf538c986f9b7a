/* score.h - which place is best for a task: filters that nothing overrides, then a sum of weighted terms, all integers.
 *
 * A score hangs on the task's shape, the state of the node (its lot) and the mix of what is asked for, on nothing else; so equal nodes
 * have equal scores. Higher is better; among equals the node that joined first. */
#pragma once
#include "sched/mix.h"

struct policy {
    const char *name, *what;
    int64_t weight[TERM_COUNT]; /* thousandths */
    int64_t grain;              /* scores that differ by less are equal: millionths of a GPU */
    bool sigmoid;               /* cut to 0..100 by a sigmoid, as published for fgd */
    bool foreknown;             /* the mix is told before, not learned */
    bool dice;                  /* any node that fits */
    bool lit;                   /* among equals a node where something runs, before one that could sleep */
};
const struct policy *policy_find(const char *name);     /* NULL: no such */
const struct policy *policy_at(size_t i);               /* NULL: behind the last */

/* Tasks that may go to the same places with the same scores. */
enum whose { WHOSE_ANY, WHOSE_FREE, WHOSE_OWN };    /* of a share, which of the GPUs it may come to: all, those that are free to everybody, its project's */
struct want {
    struct shape shape;
    enum whose whose;
    int64_t project;            /* of a share: with whom it may be on one GPU. 0 for others. */
    bool host_image;
    char region[PLACE_NAME], zone[PLACE_NAME];
    struct guest guest;         /* as nodes' houses ask; project 0: one that no house belongs to */
};
/* For one kind of GPU: the memory a task takes of each; choice 0: it may not go there. Of a MIG slice also which profile of which part, and where it may begin. */
struct suit { const struct mig_part *part; uint32_t part_mib; uint8_t choice, starts, profile; };
struct suit suit_of(const struct gpu_kind *k, const struct gpu_ask *ask);
bool share_comes(const struct want *w, const struct suit *s, const struct group *g);      /* a share, to a GPU of that state */
/* How a task stands on a node of a lot: what it holds, and how many GPUs of each group. */
struct pick { int64_t score, cpu_milli, mem_mib; uint8_t of[SCHED_GPUS]; uint16_t slots; };

/* suits: by kind of GPU. False: it does not fit. */
bool lot_fits(const struct want *w, const struct suit *suits, const struct lot *l, struct pick *out);
void lot_score(const struct policy *p, const struct mix *m, const struct want *w, const struct suit *suits, struct lot *l, struct pick *out);
/* The devices of a node of that lot. */
int pick_gpus(const struct want *w, const struct pick *p, const struct node *n, const struct fleet *f, struct held_gpu out[static SCHED_GPUS]);
struct worth worth_of(const struct mix *m, int64_t cpu_free, const struct group *g, int groups);
