/* mix.h - what the cluster is asked for: how often each shape has arrived, and tables made from the commonest ones.
 *
 * Learned as tasks arrive, old arrivals fade. The tables are made anew only when what was seen has grown by an eighth or some kind of GPU has an
 * eighth less, or more, free (mix_settle), since every score hangs on them. Nothing in the picture does: a picture from scratch has its own memory of arrivals, and may therefore choose
 * other nodes, all of them good. Integers only, and the same arrivals give the same tables. */
#pragma once
#include "base/map.h"
#include "sched/fleet.h"

enum { MIX_ROWS = 1024, MIX_STEPS = 62, MIX_FEEDS = 8, MIX_ONE = 1 << 20 };

struct mix_row { struct gpu_ask gpu; int64_t cpu_milli, seen; };
/* For one kind of GPU, about tasks of one GPU or less that ask for at most so many CPUs and so large a part; or of several GPUs, at most so many.
 * usual: how likely the next is such a one; dear: how much those that cannot go elsewhere need it (scarce.c). Of MIX_ONE. */
struct mix_cell { uint32_t usual, dear; };
struct mix_kind {
    struct mix_cell one[MIX_STEPS + 1][MIX_STEPS + 1], many[MIX_STEPS + 1][SCHED_GPUS + 1];
};
struct mix {
    struct map *known;          /* of rows, by hash; rows of one hash that differ take the next number */
    struct mix_row *rows[MIX_ROWS];
    size_t count;
    int coarse;                 /* so much is rounded before shapes are told apart: 0 until there are more than rows */
    int64_t seen, settle_at, look_at;
    uint32_t epoch;             /* which tables these are; 0: none yet */
    bool fixed;                 /* arrivals do not count any more */
    int64_t cpu_at[MIX_STEPS];
    int64_t milli_at[MIX_STEPS];
    int cpu_steps, milli_steps;
    uint8_t milli_step[1001];   /* steps at or below */
    int64_t fed[MIX_FEEDS];     /* GPU that one CPU feeds, in eight equal parts of what is asked for; of MIX_ONE */
    int64_t sliver[1001];       /* what a GPU with so much left, and somebody on it, is short of being useful; millionths of a GPU */
    struct mix_kind *kinds;
    int64_t *idle;              /* what was free of each kind when they were made, see idle_of */
    size_t kind_count, make_count;
};
void mix_done(struct mix *m);
void mix_seen(struct mix *m, const struct shape *shape, int64_t tasks);
void mix_settle(struct mix *m, const struct fleet *f);      /* new tables, if it is time */
void mix_fix(struct mix *m, const struct fleet *f);         /* what was seen so far is all there will be */
int mix_cpu_step(const struct mix *m, int64_t cpu_free);    /* steps at or below */
