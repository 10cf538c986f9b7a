/* suspend.c - see suspend.h: the order of steps, and the way back from each. */
#include "agent/suspend.h"
#include "base/str.h"
#include <stdio.h>
#include <stdlib.h>

struct go {
    const struct suspend_means *m;
    void *arg;
    struct suspend_note *note;
    int pids[SUSPEND_PROCESSES];
    size_t count;
};

/* --- all processes at once */

static bool list_reachable(struct go *g, bool *all, struct err *err)
{
    *all = g->m->processes(g->arg, g->pids, COUNT(g->pids), &g->count, err);
    return g->count < COUNT(g->pids)
           || err_set(err, RC_CONFLICT, "it has more than %d processes that use a GPU", SUSPEND_PROCESSES - 1);
}

static bool list(struct go *g, struct err *err)
{
    bool all;
    return list_reachable(g, &all, err) && all;
}

/* One that has ended meanwhile is nobody's concern any more. */
static bool step_one(struct go *g, int pid, enum cuda_step step, struct err *err)
{
    enum cuda_state ignored;
    return g->m->step(g->arg, pid, step, err) || !g->m->where(g->arg, pid, &ignored);
}

/* Does the step with every process that is in that state; *done: how many. */
static bool step_all(struct go *g, enum cuda_state from, enum cuda_step step, size_t *done, struct err *err)
{
    *done = 0;
    for (size_t i = 0; i < g->count; i++) {
        enum cuda_state at;
        if (!g->m->where(g->arg, g->pids[i], &at))
            continue;
        if (at == CUDA_FAILED)
            return err_set(err, RC_INTERNAL, "the driver has lost the GPU state of process %d", g->pids[i]);
        if (at != from)
            continue;
        if (!step_one(g, g->pids[i], step, err))
            return false;
        ++*done;
    }
    return true;
}

static size_t count_in(struct go *g, enum cuda_state state)
{
    size_t n = 0;
    enum cuda_state at;
    for (size_t i = 0; i < g->count; i++)
        n += g->m->where(g->arg, g->pids[i], &at) && at == state;
    return n;
}

/* --- the way out */

/* What it may use grows by what will come, before anything comes: the copy counts as its own memory. */
static bool make_room(struct go *g, struct err *err)
{
    const struct suspend_means *m = g->m;
    struct suspend_note *note = g->note;
    int64_t held = m->held_mib(g->arg), limit;
    if (held < 0 && g->count)
        return err_set(err, RC_UNAVAILABLE, "nobody can tell how much it has on the GPU");
    if (count_in(g, CUDA_CHECKPOINTED) == 0) /* else somebody before us has counted, and made room */
        note->gpu_mib = MAX(held, 0);
    int64_t more = count_in(g, CUDA_CHECKPOINTED) ? MAX(held, 0) : note->gpu_mib;
    if (more && m->free_mib(g->arg) < more + SUSPEND_SPARE_MIB)
        return err_set(err, RC_UNAVAILABLE, "the node has not enough free memory for the %lld MiB that it has on the GPU", (long long)more);
    if (!note->gpu_mib)
        return true;
    if (!note->limit_bytes) { /* else it is raised already, maybe for less */
        if (!m->limit(g->arg, &limit, err))
            return false;
        if (limit == INT64_MAX)
            return true;
        if (m->used_mib(g->arg) + more > (limit >> 20) + m->room_mib(g->arg)) /* others were promised the rest */
            return err_set(err, RC_UNAVAILABLE, "the node has not enough free memory for the %lld MiB that it has on the GPU, beside what others were promised", (long long)more);
        note->limit_bytes = limit;
        if (!m->keep(g->arg, note, err))
            return false;
    }
    return m->set_limit(g->arg, note->limit_bytes + ((note->gpu_mib + SUSPEND_SPARE_MIB) << 20), err);
}

/* A process that begins while others are locked is found in the next round. */
static bool lock_all(struct go *g, struct err *err)
{
    size_t done = 1;
    for (int round = 0; done && round < SUSPEND_ROUNDS; round++)
        if (!list(g, err) || !step_all(g, CUDA_RUNNING, CUDA_LOCK, &done, err))
            return false;
    return !done || err_set(err, RC_CONFLICT, "it begins GPU processes faster than they can be held");
}

static bool nothing_left(struct go *g, struct err *err)
{
    if (!list(g, err))
        return false;
    size_t more = g->count - count_in(g, CUDA_CHECKPOINTED);
    int64_t held = g->m->held_mib(g->arg);
    if (more)
        return err_set(err, RC_CONFLICT, "%zu of its processes began to use the GPU meanwhile", more);
    return held <= SUSPEND_SLACK_MIB || err_set(err, RC_CONFLICT, "%lld MiB of it stayed on the GPU", (long long)held);
}

static bool out(struct go *g, struct err *err)
{
    size_t done;
    return g->m->freeze(g->arg, false, err) && list(g, err) && make_room(g, err) && lock_all(g, err)
           && step_all(g, CUDA_LOCKED, CUDA_CHECKPOINT, &done, err) && nothing_left(g, err) && g->m->freeze(g->arg, true, err);
}

/* --- the way back */

/* One that somebody stopped keeps the others from nothing: it is the task's own doing. */
static bool restore_all(struct go *g, struct err *err)
{
    size_t done;
    bool all;
    return g->m->freeze(g->arg, false, err) && list_reachable(g, &all, err) && step_all(g, CUDA_CHECKPOINTED, CUDA_RESTORE, &done, err);
}

static bool unlock_all(struct go *g, struct err *err)
{
    size_t done;
    return step_all(g, CUDA_LOCKED, CUDA_UNLOCK, &done, err);
}

/* Those that are back already give way again: half of a task on the GPU is of no use to anybody. */
static bool out_again(struct go *g, struct err *err)
{
    size_t done;
    return step_all(g, CUDA_LOCKED, CUDA_CHECKPOINT, &done, err) && count_in(g, CUDA_CHECKPOINTED) == g->count
           && g->m->freeze(g->arg, true, err);
}

/* Before anybody is let go, so that what was given back is not used by the task first. The driver gives it back as it likes, and the task need not
 * wait for that: a limit that stays raised is lowered by the agent. So it never fails. */
static bool lower_limit(struct go *g)
{
    struct err ignored;
    if (g->note->limit_bytes && g->m->set_limit(g->arg, g->note->limit_bytes, &ignored))
        g->note->limit_bytes = 0;
    return true;
}

/* --- where it got to */

static void settle(struct go *g, enum suspend_state state, const char *why, struct arena *mem)
{
    g->note->state = (int)state;
    g->note->mem_mib = state == SUSPEND_SUSPENDED ? MAX(g->m->used_mib(g->arg), 1) : 0;
    g->note->why = why && *why ? arena_text(mem, why) : NULL;
    g->note->at_ms = g->m->now_ms(g->arg);
}

/* why: what made us go back; it is told also where the way back fails, for it was first. */
static void undo(struct go *g, const char *why, struct arena *mem)
{
    struct err err = { 0 };
    bool back = restore_all(g, &err) && lower_limit(g) && unlock_all(g, &err);
    settle(g, back ? SUSPEND_RUNNING : SUSPEND_BROKEN, back ? why : arena_printf(mem, "%s; and then: %s", why, err.text), mem);
}

static void resume(struct go *g, struct arena *mem)
{
    struct err err = { 0 }, again = { 0 };
    if (restore_all(g, &err)) {
        bool back = lower_limit(g) && unlock_all(g, &err);
        settle(g, back ? SUSPEND_RUNNING : SUSPEND_BROKEN, back ? NULL : err.text, mem);
    } else if (err.rc != RC_INTERNAL && list(g, &again) && out_again(g, &again)) { /* what no time heals is better begun anew */
        settle(g, SUSPEND_SUSPENDED, err.text, mem);
    } else {
        settle(g, SUSPEND_BROKEN, err.text, mem);
    }
}

/* A note that cannot be kept says MOVING on the disk: whoever finds that goes the same way once more, which does no harm. */
void suspend_go(const struct suspend_means *m, void *arg, enum suspend_state want, int64_t n, struct arena *mem, struct suspend_note *note)
{
    struct go *g = calloc(1, sizeof *g);
    struct err err = { 0 };
    if (!g)
        abort();
    *g = (struct go){ .m = m, .arg = arg, .note = note };
    enum suspend_state before = (enum suspend_state)note->state;
    note->n = n;
    note->want = (int)want;
    note->state = SUSPEND_MOVING;
    note->why = NULL;
    if (before == want) { /* a later wish is answered the same way */
        if (want == SUSPEND_RUNNING)
            (void)!lower_limit(g);
        settle(g, want, NULL, mem);
    } else if (!m->keep(arg, note, &err)) {
        settle(g, before, err.text, mem);
    } else if (want == SUSPEND_RUNNING) {
        resume(g, mem);
    } else if (out(g, &err)) {
        settle(g, SUSPEND_SUSPENDED, NULL, mem);
    } else {
        undo(g, err.text, mem);
    }
    if (!m->keep(arg, note, &err))
        note->state = note->state == SUSPEND_BROKEN ? SUSPEND_BROKEN : SUSPEND_MOVING;
    free(g);
}
