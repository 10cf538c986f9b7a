/* runtime_mig.c - tasks with MIG instances, on nodes whose operator gave the devices to the agent: the instance of the order is there before its task begins, made by
 * a process of its own (`arcus device-mig`). One at a time: two must not destroy what the other makes.
 *
 * Without the switch nothing is asked, and an instance that is not there is a fault of the node. What a task leaves stays until it is in the way:
 * the next of the same shape has it at once. */
#include "agent/runtime_internal.h"
#include "base/log.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAKE_MS = 30000, SAID_BYTES = 512 };

struct making {                 /* for this attempt, its GPU number `at` */
    struct runtime *r;
    struct attempt *a;          /* NULL: it was given up, and its process, which is in the driver, is not gone yet */
    size_t at;
    struct proc *proc;
    struct timer *late;
    int said;
};

static bool is_slice(const struct order_gpu *g)
{
    return !g->simulated && text_given(g->mig);
}

/* The instances of that GPU that others hold, or are about to. */
static void kept(const struct runtime *r, const struct attempt *but, const char *uuid, struct str *out)
{
    struct attempt *a;
    for (size_t at = 0; (a = map_next(r->attempts, &at));)
        for (size_t i = 0; a != but && a->stage != STAGE_ENDED && i < a->slice_count; i++)
            if (text_is(a->slices[i].uuid, uuid))
                str_printf(out, "%s%s", out->len ? "," : "", a->slices[i].what);
}

static void making_free(struct making *m)
{
    timer_cancel(m->late);
    if (m->proc)
        proc_kill(m->proc, SIGKILL);
    proc_forget(m->proc);
    if (m->said != -1)
        close(m->said);
    free(m);
}

static void next_one(struct runtime *r)
{
    struct attempt *a;
    for (size_t at = 0; (!r->making || !r->making->a) && (a = map_next(r->attempts, &at));)
        if (a->stage == STAGE_WAITS && a->waits_slice) {
            a->waits_slice = false;
            start_advance(a);
            at = 0;             /* it may have changed whatever we walk over */
        }
}

static void over(struct making *m, bool well, char *said)
{
    struct runtime *r = m->r;
    struct attempt *a = TAKE(m->a);
    char uuid[96] = "", ids[32] = "", why[240];
    size_t at = m->at;
    if (!m->proc)
        making_free(TAKE(r->making));
    if (a)
        a->awaited--;
    said[strcspn(said, "\n")] = 0;
    if (a && a->stage == STAGE_WAITS) {
        const struct order_gpu *g = (const struct order_gpu *)a->order->gpus.at + at;
        if (well && sscanf(said, "%95s %31s", uuid, ids) == 2) {
            inject_made(r->inject, g->uuid, g->mig, g->slot, uuid, ids);
            a->has_slices = at + 1;
            start_advance(a);
        } else {
            snprintf(why, sizeof why, "its MIG instance %.24s at slot %lld cannot be had: %.140s", g->mig, (long long)g->slot, *said ? said : "the driver does not answer");
            attempt_end(a, OUTCOME_NODE_FAULT, why);
        }
    }
    next_one(r);
}

static void on_made(void *arg, int status)
{
    struct making *m = arg;
    char said[SAID_BYTES] = "";
    m->proc = NULL;
    ssize_t n = pread(m->said, said, sizeof said - 1, 0);
    said[MAX(n, 0)] = 0;
    over(m, WIFEXITED(status) && WEXITSTATUS(status) == 0, said);
}

static void on_late(void *arg)
{
    struct making *m = arg;
    char said[1] = "";
    m->late = NULL;
    proc_kill(m->proc, SIGKILL);        /* one that hangs in the driver stays: until it is gone no other is begun */
    over(m, false, said);
}

static bool begin(struct attempt *a, size_t at, struct err *err)
{
    struct runtime *r = a->r;
    const struct order_gpu *g = (const struct order_gpu *)a->order->gpus.at + at;
    AUTO(str_done) struct str keep = { 0 };
    char slot[16];
    snprintf(slot, sizeof slot, "%lld", (long long)g->slot);
    kept(r, a, g->uuid, &keep);
    const char *const argv[] = { r->config.self, "device-mig", g->uuid, g->mig, slot, keep.len ? keep.at : "-", r->config.nvml, NULL };
    struct making *m = calloc(1, sizeof *m);
    if (!m)
        abort();
    *m = (struct making){ .r = r, .a = a, .at = at, .said = memfd_create("mig", MFD_CLOEXEC) };
    struct proc_spec spec = { .argv = argv, .dir = "/", .in = -1, .out = m->said, .err = -1 };
    if (m->said == -1 || !proc_spawn(r->os, &spec, on_made, m, &m->proc, err)) {
        making_free(m);
        return false;
    }
    log_line(LOG_INFO, "mig", "%s: makes %.24s at %s for %s, keeps %s", g->uuid, g->mig, slot, a->name, keep.len ? keep.at : "nothing");
    m->late = timer_start(r->os, MAKE_MS, on_late, m);
    r->making = m;
    a->awaited++;
    return true;
}

static void note_slices(struct attempt *a)
{
    const struct order_gpu *g = a->order->gpus.at;
    if (!(a->slices = calloc(a->order->gpus.count + 1, sizeof *a->slices)))
        abort();
    for (size_t i = 0; i < a->order->gpus.count; i++)
        if (is_slice(&g[i])) {
            struct slice_held *s = &a->slices[a->slice_count++];
            text_cut(s->uuid, sizeof s->uuid, g[i].uuid);
            snprintf(s->what, sizeof s->what, "%.24s@%lld", g[i].mig, (long long)g[i].slot);
        }
}

bool has_slices(struct attempt *a)
{
    struct err err = { 0 };
    if (!a->slices)
        note_slices(a);
    if (!a->r->real || !a->r->config.own_devices)
        return true;
    const struct order_gpu *g = a->order->gpus.at;
    while (a->has_slices < a->order->gpus.count && !is_slice(&g[a->has_slices]))
        a->has_slices++;
    if (a->has_slices == a->order->gpus.count)
        return true;
    if (a->r->making && !a->r->making->a)
        attempt_end(a, OUTCOME_NODE_FAULT, "its MIG instance cannot be had: the driver does not answer");
    else if (a->r->making)
        a->waits_slice = a->r->making->a != a;
    else if (!begin(a, a->has_slices, &err))
        attempt_end(a, OUTCOME_NODE_FAULT, err.text);
    return false;
}

struct objects slices_plan(const struct attempt *a, struct arena *mem)
{
    struct plan_slice *list = ARENA_ARRAY(mem, struct plan_slice, a->slice_count);
    for (size_t i = 0; i < a->slice_count; i++)
        list[i] = (struct plan_slice){ arena_text(mem, a->slices[i].uuid), arena_text(mem, a->slices[i].what) };
    return (struct objects){ list, a->slice_count };
}

void slices_found(struct attempt *a, const struct plan *p)
{
    const struct plan_slice *list = p->slices.at;
    if (!p->slices.count || a->slices)
        return;
    if (!(a->slices = calloc(p->slices.count, sizeof *a->slices)))
        abort();
    for (size_t i = 0; i < p->slices.count; i++) {
        struct slice_held *s = &a->slices[a->slice_count++];
        text_cut(s->uuid, sizeof s->uuid, list[i].uuid);
        text_cut(s->what, sizeof s->what, list[i].what);
    }
}

void slices_close(struct runtime *r)
{
    if (r->making)
        making_free(TAKE(r->making));
}
