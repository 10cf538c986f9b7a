/* runtime_gpus.c - attempts and their GPUs: one begins when its GPUs are well and clean (care.h), and one whose GPU has a fault is ended as a fault of
 * the node, so that it is tried again elsewhere. */
#include "agent/runtime_internal.h"
#include <stdlib.h>

static void on_clean(void *arg, const char *why)
{
    struct attempt *a = arg;
    a->awaited--;
    a->waits_gpus = false;
    if (a->stage != STAGE_WAITS)
        return;
    if (why) {
        attempt_end(a, OUTCOME_NODE_FAULT, why);
        return;
    }
    a->has_gpus = true;
    start_advance(a);
}

bool gpus_ready_for(struct attempt *a)
{
    struct runtime *r = a->r;
    if (!r->real || !a->order->gpus.count || a->has_gpus)
        return true;
    if (a->asked_gpus)
        return false;
    a->asked_gpus = true;
    a->leases = care_leases_of(&a->order->gpus);
    a->project = a->order->project;
    a->has_gpus = care_want(r->config.care, a->id, a->project, &a->leases, on_clean, a);
    a->waits_gpus = !a->has_gpus;
    a->awaited += a->waits_gpus;
    return a->has_gpus;
}

struct objects gpus_plan(const struct attempt *a, struct arena *mem)
{
    struct plan_gpu *list = ARENA_ARRAY(mem, struct plan_gpu, a->leases.count);
    for (size_t i = 0; i < a->leases.count; i++)
        list[i] = (struct plan_gpu){ arena_text(mem, a->leases.at[i].uuid), a->leases.at[i].first, a->leases.at[i].slots, a->leases.at[i].mem_mib };
    return (struct objects){ list, a->leases.count };
}

void gpus_found(struct attempt *a, const struct plan *p)
{
    const struct plan_gpu *list = p->gpus.at;
    if (!p->gpus.count)
        return;
    a->leases.at = calloc(p->gpus.count, sizeof *a->leases.at);
    if (!a->leases.at)
        abort();
    for (size_t i = 0; i < p->gpus.count; i++) {
        struct care_lease *l = &a->leases.at[a->leases.count++];
        *l = (struct care_lease){ .first = list[i].first, .slots = list[i].slots, .mem_mib = list[i].mem_mib };
        text_cut(l->uuid, sizeof l->uuid, list[i].uuid);
    }
    a->project = p->project;
    care_hold(a->r->config.care, a->id, a->project, &a->leases);
}

/* --- of one that is suspended: who has its GPUs meanwhile may be another project, so they are asked for again as at the start */

void gpus_away(struct attempt *a)
{
    if (!a->gpus_away)
        care_leave(a->r->config.care, a->id);
    a->gpus_away = true;
}

static void on_back(void *arg, const char *why)
{
    struct attempt *a = arg;
    a->awaited--;
    a->waits_gpus = false;
    a->gpus_away = why != NULL;
    suspend_clean(a, why);
}

bool gpus_back(struct attempt *a)
{
    if (!a->gpus_away)
        return true;
    if (a->waits_gpus)
        return false;
    a->gpus_away = !care_want(a->r->config.care, a->id, a->project, &a->leases, on_back, a);
    a->waits_gpus = a->gpus_away;
    a->awaited += a->waits_gpus;
    return !a->gpus_away;
}

void gpus_left(struct attempt *a)
{
    if (a->leases.at)
        care_leave(a->r->config.care, a->id);
    a->awaited -= a->waits_gpus; /* nobody comes back for it */
    a->waits_gpus = false;
    care_leases_free(&a->leases);
}

void runtime_lose_gpu(struct runtime *r, const char *uuid, const char *why)
{
    struct attempt *a;
    for (size_t at = 0; (a = map_next(r->attempts, &at));)
        for (size_t i = 0; !a->over && a->stage != STAGE_ENDED && i < a->leases.count; i++)
            if (text_is(a->leases.at[i].uuid, uuid)) {
                a->over = true;
                attempt_stop(a, 0, OUTCOME_NODE_FAULT, why);
            }
}
