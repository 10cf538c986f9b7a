/* runtime_shares.c - tasks that hold parts of GPUs: what divides a GPU is there before they begin (mps.h), whoever holds more than its part is ended at
 * once, and where the divider is gone its tasks are ended as a fault of the node, so that they are tried again. */
#include "agent/runtime_internal.h"
#include <stdio.h>

void shares_begin(struct attempt *a, struct shares s)
{
    a->shares = s;
    a->r->sharers += s.count > 0;
}

void shares_end(struct attempt *a)
{
    a->r->sharers -= a->shares.count > 0;
    if (a->shares.count)
        mps_drop(a->r->mps, a->id);
    shares_free(&a->shares);
}

/* --- what divides it */

static void on_share(void *arg, const struct err *err)
{
    struct attempt *a = arg;
    a->awaited--;
    if (a->stage != STAGE_WAITS)
        return;
    if (err) {
        attempt_end(a, OUTCOME_NODE_FAULT, err->text);
        return;
    }
    a->has_share = true;
    start_advance(a);
}

bool has_shares(struct attempt *a)
{
    if (!a->shares.count || a->has_share || !mps_works(a->r->mps))
        return true;
    if (a->shares.count > 1) {
        attempt_end(a, OUTCOME_NODE_FAULT, "a task can hold parts of one GPU, and it was given parts of several");
        return false;
    }
    if (!a->asked_share) {
        a->asked_share = true;
        a->awaited++;
        mps_want(a->r->mps, a->id, &a->shares.at[0], on_share, a);
    }
    return false;
}

static void on_lost(void *arg, const char *uuid, const char *why)
{
    struct runtime *r = arg;
    struct attempt *a;
    for (size_t at = 0; (a = map_next(r->attempts, &at));)
        if (a->shares.count && a->stage != STAGE_WAITS && text_is(a->shares.at[0].uuid, uuid))
            attempt_stop(a, 0, OUTCOME_NODE_FAULT, why);
}

void shares_open(struct runtime *r)
{
    static const struct mps_events events = { on_lost };
    const char *how = r->config.mps;
    struct attempt *a;
    if (text_is(how, "off"))
        return;
    r->mps = mps_new(r->os, &(struct mps_config){ .run = r->config.run, .self = r->config.self, .program = text_is(how, "auto") ? NULL : how, .own = r->config.own_devices, .nvml = r->config.nvml, .cgroups = &r->cgroups, .shop = r->quick }, &events, r);
    for (size_t at = 0; (a = map_next(r->attempts, &at));)
        if (a->shares.count && a->has_share)
            mps_hold(r->mps, a->id, &a->shares.at[0]);
    mps_begin(r->mps);
}

void shares_close(struct runtime *r)
{
    mps_free(TAKE(r->mps));
}

void shares_describe(const struct runtime *r, const struct node_info *info, const char **cannot, size_t *count)
{
    const struct gpu_info *gpus = info->gpus.at;
    bool some = false;
    for (size_t i = 0; i < info->gpus.count; i++)
        some |= !gpus[i].simulated && text_is(gpus[i].vendor, "nvidia") && !text_given(gpus[i].mig);
    if (r->real && some && !mps_works(r->mps))
        cannot[(*count)++] = "no MPS: of a GPU that tasks share only the memory is divided, not the compute";
}

/* --- who holds more */

enum { OUTSIDE_TIMES = 2 };     /* a client that is just coming may be seen without its server once */

static bool is_over(struct attempt *a, const struct objects *held, enum outcome *as, char why[static 240])
{
    a->outside = a->has_share && shares_outside(&a->shares, a->id, held) ? a->outside + 1 : 0;
    if (a->outside >= OUTSIDE_TIMES) {
        *as = OUTCOME_SIGNALED;
        snprintf(why, 240, "a process of its own used the GPU around MPS, which would be all of it; leave CUDA_MPS_PIPE_DIRECTORY as it is");
        return true;
    }
    return shares_over(&a->shares, a->id, held, as, why);
}

void runtime_held(struct runtime *r, const struct objects *held)
{
    struct attempt *a;
    for (size_t at = 0; r->sharers && (a = map_next(r->attempts, &at));) {
        enum outcome as;
        char why[240];
        if (!a->shares.count || a->over || a->stage == STAGE_WAITS || !is_over(a, held, &as, why))
            continue;
        a->over = true;
        attempt_stop(a, 0, as, why); /* one that was to end in its own time does so now */
    }
}

bool runtime_has_shares(const struct runtime *r) { return r->sharers > 0; }
