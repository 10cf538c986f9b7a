/* mix_internal.h - between mix.c, which counts, and scarce.c, which compares with what is free. */
#pragma once
#include "sched/mix.h"

struct typical { const struct mix_row *row; int64_t part; };    /* part: of MIX_ONE */
enum {
    MIX_COVER = 95,                 /* percent of the tasks that the usual shapes make up */
    MIX_FLOOR = 3                   /* thousandths of the fleet count as free besides what is: the last GPUs are not fought for */
};

/* Where a shape stands in the tables: it can use what is at these steps or above. */
struct stand { int cpu, part, gpus; };  /* gpus: 0 for one or less, where `part` counts */
/* What the largest tasks on such nodes ask for: some of it is always somebody else's. */
static inline int64_t mix_most_cpus(const struct make *k)
{
    return k->cpu_milli - k->cpu_milli / 16;
}
struct stand mix_stand(const struct mix *m, const struct mix_row *r);
void mix_scarce(struct mix *m, const struct fleet *f, const struct typical *t, size_t count);
