/* why.h - why a task does not start, in numbers: how many nodes each filter refused, which came nearest, and what alone would help.
 *
 * A walk over the lots, not over the nodes. Everything it says was tried: "with 2 GPUs" means that the planner's own filters take
 * that on some node now. It looks and leaves the picture as it was. */
#pragma once
#include "sched/sched.h"

enum { WHY_NEAR = 3, WHY_MODELS = 3, WHY_TRIED = 100 };

struct why_near {
    int64_t node;
    uint32_t refused;               /* set of enum filter */
    int gpus, gpus_free;            /* that are what it asks for; those it could take */
    int64_t gpu_lacks;              /* thousandths */
    int64_t largest, cpu_free, cpu_needs, mem_free, mem_needs;      /* largest: the most that is left of one GPU for it */
};
struct why_help { int64_t most, node; };        /* asking for no more than that, it would start there; most 0: that would not help */
struct why {
    bool known;                     /* the picture has it, and something of it waits */
    enum reason reason;             /* REASON_NONE: it can start */
    struct wait held_by;            /* of REASON_QUOTA: the limit */
    int64_t held;                   /* of what that limits; in its unit, -1: nobody knows */
    int64_t pause_ms;               /* of REASON_RETRY: until then */
    int64_t start_ms, start_node;   /* when and where there will be room for it, by what others may run at most; 0: nobody knows */
    bool earliest;                  /* not before then, but perhaps later: others go before it, and nothing holds that start for it */
    int64_t nodes, fits, refused[FILTER_COUNT];     /* a node counts with the first filter that refuses it: fits and refused make up nodes */
    int near_count, model_count;
    struct why_near near[WHY_NEAR]; /* those that lack least, the nearest first */
    /* What alone would help: to start at once; where no node could ever run it (REASON_NO_NODE): at all. */
    struct why_help gpus, cpus, memory;             /* thousandths, thousandths, MiB */
    int64_t gang_most;                              /* of a gang: so many nodes instead of all that it asks for */
    int64_t away;                                   /* so many nodes, if the region or zone did not matter */
    int64_t elsewhere, without_host;                /* so many nodes, if it did not have to be on one; if its image were not the host */
    char models[WHY_MODELS][48];                    /* GPUs of these models */
    /* Where it would be: of sched_try, the first task, and how many tasks could start now (of at most WHY_TRIED). */
    int64_t node, tasks;
    int gpu_count;
    struct sched_held gpus_at[SCHED_GPUS];
};
/* Of a job that waits, as SCHED_JOB tells it. */
void sched_why(struct sched *s, const struct sched_event *job, int64_t now_ms, struct why *out);
/* Of one that is not there. Nothing of it stays. */
void sched_try(struct sched *s, const struct sched_event *job, int64_t now_ms, struct why *out);
