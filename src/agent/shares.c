/* shares.c - see shares.h. A GPU's daemon serves MPS_CLIENTS processes, so a task has its part of those too.
 * What the driver keeps for itself with a process counts in MPS's limit as in NVML's figures (145 MiB on an H200), so the promise is exact. */
#include "agent/shares.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

void shares_free(struct shares *s)
{
    free(s->at);
    *s = (struct shares){ 0 };
}

bool share_is(const struct order_gpu *g)
{
    return !g->simulated && g->milli < 1000 && !text_given(g->mig);
}

static void add(struct shares *to, const char *uuid, int64_t milli, int64_t mem_mib)
{
    struct share *s = &to->at[to->count++];
    *s = (struct share){ .milli = milli, .mem_mib = mem_mib };
    text_cut(s->uuid, sizeof s->uuid, uuid);
}

static struct shares room_for(size_t count)
{
    struct shares s = { .at = calloc(count + 1, sizeof *s.at) };
    if (!s.at)
        abort();
    return s;
}

struct shares shares_of_order(const struct objects *gpus)
{
    const struct order_gpu *g = gpus->at;
    struct shares s = { 0 };
    size_t some = 0;
    for (size_t i = 0; i < gpus->count; i++)
        some += share_is(&g[i]);
    if (some)
        s = room_for(some);
    for (size_t i = 0; i < gpus->count; i++)
        if (share_is(&g[i]))
            add(&s, g[i].uuid, g[i].milli, g[i].mem_mib);
    return s;
}

struct shares shares_of_plan(const struct objects *list)
{
    const struct plan_share *p = list->at;
    struct shares s = { 0 };
    if (list->count)
        s = room_for(list->count);
    for (size_t i = 0; i < list->count; i++)
        add(&s, p[i].uuid, p[i].milli, p[i].mem_mib);
    return s;
}

struct objects shares_plan(const struct shares *s, struct arena *mem)
{
    struct plan_share *list = ARENA_ARRAY(mem, struct plan_share, s->count);
    for (size_t i = 0; i < s->count; i++)
        list[i] = (struct plan_share){ arena_text(mem, s->at[i].uuid), s->at[i].milli, s->at[i].mem_mib };
    return (struct objects){ list, s->count };
}

int64_t share_clients(const struct share *s)
{
    return MAX(MPS_CLIENTS * s->milli / 1000, INT64_C(1));
}

static bool one_over(const struct share *s, const struct live_task *t, enum outcome *as, char why[static 240])
{
    if (s->mem_mib > 0 && t->mem_mib > s->mem_mib) {
        *as = OUTCOME_OUT_OF_MEMORY;
        snprintf(why, 240, "its processes held %" PRId64 " MiB of the GPU's memory together; its share of it is %" PRId64 " MiB", t->mem_mib, s->mem_mib);
        return true;
    }
    if (t->processes > share_clients(s)) {
        *as = OUTCOME_SIGNALED;
        snprintf(why, 240, "%" PRId64 " of its processes used the GPU; with its share of it %" PRId64 " may", t->processes, share_clients(s));
        return true;
    }
    return false;
}

/* What this attempt's processes do on a GPU that it has a part of; NULL: nothing. */
static const struct live_task *held_of(const struct share *s, int64_t attempt, const struct objects *held)
{
    const struct gpu_live *gpus = held->at;
    for (size_t g = 0; g < held->count; g++) {
        const struct live_task *t = gpus[g].tasks.at;
        for (size_t k = 0; text_is(gpus[g].uuid, s->uuid) && k < gpus[g].tasks.count; k++)
            if (t[k].attempt == attempt)
                return &t[k];
    }
    return NULL;
}

bool shares_over(const struct shares *s, int64_t attempt, const struct objects *held, enum outcome *as, char why[static 240])
{
    for (size_t i = 0; i < s->count; i++) {
        const struct live_task *t = held_of(&s->at[i], attempt, held);
        if (t && one_over(&s->at[i], t, as, why))
            return true;
    }
    return false;
}

int64_t shares_outside(const struct shares *s, int64_t attempt, const struct objects *held)
{
    int64_t n = 0;
    for (size_t i = 0; i < s->count; i++) {
        const struct live_task *t = held_of(&s->at[i], attempt, held);
        n += t ? t->outside : 0;
    }
    return n;
}
