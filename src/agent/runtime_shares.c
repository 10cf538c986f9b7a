/* runtime_shares.c - tasks that hold parts of GPUs: what divides a GPU is there before they begin (mps.h), whoever holds more than its part is ended at
 * once, and where the divider is gone its tasks are ended as a fault of the node, so that they are tried again. */
#include "agent/runtime_internal.h"
#include <stdio.h>
#include <stdlib.h>

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
    a->awaited -= a->waits_share; /* nobody comes back for it */
    a->waits_share = false;
    shares_free(&a->shares);
    free(TAKE(a->clearing));
}

/* --- what divides it */

enum { DOUBT_MS = 1500 };

static void on_share(void *arg, const struct err *err)
{
    struct attempt *a = arg;
    a->awaited--;
    a->waits_share = false;
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
        a->asked_share = a->waits_share = true;
        a->awaited++;
        mps_want(a->r->mps, a->id, &a->shares.at[0], on_share, a);
    }
    return false;
}

/* What divided its GPU may still be leaving: to a task that began beside it the card would be somebody else's. */
static bool is_whole(struct attempt *a, const char *uuid)
{
    text_cut(a->waits_whole, sizeof a->waits_whole, uuid);  /* before: that it cannot be may be told at once */
    if (!mps_whole(a->r->mps, uuid))
        return false;
    *a->waits_whole = 0;
    return true;
}

bool has_whole(struct attempt *a)
{
    const struct order_gpu *g = a->order->gpus.at;
    size_t count = a->order->gpus.count;
    for (size_t i = 0; i < count; i++)
        if (!g[i].simulated && !share_is(&g[i]) && !is_whole(a, g[i].uuid))
            return false;
    return true;
}

bool has_whole_again(struct attempt *a)
{
    for (size_t i = 0; !a->shares.count && i < a->leases.count; i++)
        if (!is_whole(a, a->leases.at[i].uuid))
            return false;
    return true;
}

static void on_whole(void *arg, const char *uuid, const struct err *err)
{
    struct runtime *r = arg;
    struct attempt *a;
    for (size_t at = 0; (a = map_next(r->attempts, &at));) {
        if (!text_is(a->waits_whole, uuid))
            continue;
        *a->waits_whole = 0;
        if (err)
            attempt_stop(a, 0, OUTCOME_NODE_FAULT, err->text);
        else if (a->stage == STAGE_WAITS)
            start_advance(a);
        else
            suspend_live(a);
    }
}

static void on_lost(void *arg, const char *uuid, const char *why)
{
    struct runtime *r = arg;
    struct attempt *a;
    for (size_t at = 0; (a = map_next(r->attempts, &at));)
        if (a->shares.count && a->has_share && text_is(a->shares.at[0].uuid, uuid)) {
            a->blame = mps_blame(r->mps, a->id, uuid);
            attempt_stop(a, 0, OUTCOME_NODE_FAULT, why);
        }
}

/* One that is killed in the middle of its work on a GPU would hurt who is beside it. */
struct clearing { enum outcome as; char why[240]; };

static void on_clear(void *arg)
{
    struct attempt *a = arg;
    const struct clearing *c = a->clearing;
    a->awaited--;
    if (c)                      /* else it has ended by itself */
        attempt_stop(a, 0, c->as, *c->why ? c->why : NULL);
}

bool shares_clear(struct attempt *a, enum outcome as, const char *why)
{
    if (!a->r->mps || !a->has_share || !a->shares.count || a->clearing || !mps_shared(a->r->mps, a->shares.at[0].uuid))
        return false;
    struct clearing *c = calloc(1, sizeof *c);
    if (!c)
        abort();
    *c = (struct clearing){ .as = as };
    text_cut(c->why, sizeof c->why, why ? why : "");
    a->clearing = c;
    a->awaited++;
    mps_terminate(a->r->mps, a->id, a->shares.at[0].uuid, on_clear, a);
    return true;
}

/* Who shares a GPU may learn of another's fault before we do, and end as if it were its own: such an end waits until everybody has had the time to
 * tell. One that had the GPU to itself has nobody to wait for. */
bool shares_doubt(struct attempt *a, const struct task_status *s)
{
    struct runtime *r = a->r;
    bool odd = s->outcome == OUTCOME_EXITED || s->outcome == OUTCOME_SIGNALED;
    if (!r->mps || !a->has_share || !a->shares.count || !odd || a->over)
        return false;
    int64_t now = os_boot_ms(r->os);
    mps_look(r->mps);
    const char *why = mps_fault(r->mps, a->shares.at[0].uuid);
    if (why) {
        a->blame = mps_blame(r->mps, a->id, a->shares.at[0].uuid);
        attempt_end(a, OUTCOME_NODE_FAULT, why);
        return true;
    }
    if (!a->doubt_ms && mps_shared(r->mps, a->shares.at[0].uuid))
        a->doubt_ms = now + DOUBT_MS;
    if (now >= a->doubt_ms)
        return false;
    attempt_doubt(a, a->doubt_ms - now);
    return true;
}

void shares_open(struct runtime *r)
{
    static const struct mps_events events = { on_lost, on_whole };
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

/* Who uses which GPU, for the time when one of them is named and gone. */
static void see(struct runtime *r, const struct objects *held)
{
    const struct gpu_live *gpus = held->at;
    for (size_t g = 0; g < held->count; g++) {
        const struct live_task *t = gpus[g].tasks.at;
        for (size_t k = 0; k < gpus[g].tasks.count; k++)
            mps_seen(r->mps, gpus[g].uuid, t[k].attempt, t[k].pids);
    }
}

void runtime_held(struct runtime *r, const struct objects *held)
{
    struct attempt *a;
    see(r, held);
    mps_look(r->mps);
    for (size_t at = 0; r->sharers && (a = map_next(r->attempts, &at));) {
        enum outcome as;
        char why[240];
        if (!a->shares.count || a->over || a->stage == STAGE_WAITS || !is_over(a, held, &as, why))
            continue;
        a->over = true;
        attempt_stop(a, 0, as, why); /* one that was to end in its own time does so now */
    }
}

void runtime_xid(struct runtime *r, const char *uuid, int64_t xid)
{
    if (r)
        mps_xid(r->mps, uuid, xid);
}

bool runtime_has_shares(const struct runtime *r) { return r->sharers > 0; }
