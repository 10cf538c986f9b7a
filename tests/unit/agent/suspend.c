/* suspend.c - the order of steps, with a made-up driver, kernel and disk: each operation fails in turn, and whoever works is killed before each
 * in turn. What must hold: a task is wholly suspended or wholly runs, and nobody thinks otherwise. */
#include "agent/suspend.h"
#include "base/str.h"
#include "tap.h"

enum { PROCS = 3, LIMIT = 1 << 30 };
struct world {
    struct arena *mem;
    int count;
    enum cuda_state at[PROCS];
    int64_t mib[PROCS], free_mib, used_mib, room_mib, limit, let_go_with;   /* let_go_with: the limit when the first was unlocked */
    bool frozen, dead, born;    /* dead: whoever works was killed, so nothing happens any more. born: a process begins while others are locked */
    int ops, fail_at, fail_from, kill_at;
    enum cuda_step fail_step;
    int fail_pid;               /* 0: none; that step of that process fails for ever */
    int stopped;                /* 0: none; that one is stopped, and is not among the processes */
    struct suspend_note disk;
};

/* True: this one works. */
static bool op(struct world *w)
{
    int n = ++w->ops;
    w->dead |= w->kill_at && n >= w->kill_at;
    return !w->dead && n != w->fail_at && !(w->fail_from && n >= w->fail_from);
}

static bool processes(void *arg, int *pids, size_t room, size_t *count, struct err *err)
{
    struct world *w = arg;
    *count = 0;
    for (int i = 0; i < w->count && *count < room; i++)
        if (100 + i != w->stopped)
            pids[(*count)++] = 100 + i;
    return !w->stopped || err_set(err, RC_CONFLICT, "process %d is stopped", w->stopped);
}
static bool where(void *arg, int pid, enum cuda_state *out) { return *out = ((struct world *)arg)->at[pid - 100], true; }

static bool step(void *arg, int pid, enum cuda_step what, struct err *err)
{
    static const struct { enum cuda_state from, to; } moves[] = { [CUDA_LOCK] = { CUDA_RUNNING, CUDA_LOCKED },
                                                                  [CUDA_CHECKPOINT] = { CUDA_LOCKED, CUDA_CHECKPOINTED },
                                                                  [CUDA_RESTORE] = { CUDA_CHECKPOINTED, CUDA_LOCKED },
                                                                  [CUDA_UNLOCK] = { CUDA_LOCKED, CUDA_RUNNING } };
    struct world *w = arg;
    if (!op(w) || (pid == w->fail_pid && what == w->fail_step))
        return err_set(err, RC_UNAVAILABLE, "step %d of %d", (int)what, pid);
    CHECK(w->at[pid - 100] == moves[what].from && !w->frozen);
    w->at[pid - 100] = moves[what].to;
    for (int i = 0; i < w->count; i++)
        CHECK(what != CUDA_CHECKPOINT || w->at[i] != CUDA_RUNNING); /* all are locked before the first is moved */
    for (int i = 0; i < w->count; i++)
        CHECK(what != CUDA_UNLOCK || w->at[i] != CUDA_CHECKPOINTED || w->stopped == 100 + i); /* all are back before the first is let go */
    if (what == CUDA_CHECKPOINT)
        CHECK(w->limit > LIMIT); /* before anything comes */
    if (what == CUDA_UNLOCK && !w->let_go_with)
        w->let_go_with = w->limit;
    if (w->born && what == CUDA_LOCK)
        w->count = PROCS, w->born = false;
    return true;
}

static int64_t held_mib(void *arg)
{
    const struct world *w = arg;
    int64_t mib = 0;
    for (int i = 0; i < w->count; i++)
        mib += w->at[i] == CUDA_CHECKPOINTED ? 0 : w->mib[i];
    return mib;
}
static int64_t free_mib(void *arg) { return ((struct world *)arg)->free_mib; }
static int64_t used_mib(void *arg) { return ((struct world *)arg)->used_mib; }
static int64_t room_mib(void *arg) { return ((struct world *)arg)->room_mib; }

static bool limit(void *arg, int64_t *bytes, struct err *err)
{
    struct world *w = arg;
    return op(w) ? (*bytes = w->limit, true) : err_set(err, RC_UNAVAILABLE, "limit");
}
static bool set_limit(void *arg, int64_t bytes, struct err *err)
{
    struct world *w = arg;
    return op(w) ? (w->limit = bytes, true) : err_set(err, RC_UNAVAILABLE, "set limit");
}
static bool freeze(void *arg, bool on, struct err *err)
{
    struct world *w = arg;
    return op(w) ? (w->frozen = on, true) : err_set(err, RC_UNAVAILABLE, "freeze");
}
static bool keep(void *arg, const struct suspend_note *note, struct err *err)
{
    struct world *w = arg;
    return op(w) ? (w->disk = *note, true) : err_set(err, RC_UNAVAILABLE, "keep");
}
static int64_t now_ms(void *arg) { return ((struct world *)arg)->ops; }

static const struct suspend_means means = { processes, where, step, held_mib, free_mib, used_mib, room_mib, limit, set_limit, freeze, keep, now_ms };

static struct world world(struct arena *mem)
{
    return (struct world){ .mem = mem, .count = 2, .mib = { 100, 200, 50 }, .free_mib = 1 << 20, .limit = LIMIT, .disk = { .attempt = 7 } };
}

static enum suspend_state go(struct world *w, enum suspend_state want, int64_t n)
{
    struct suspend_note note = w->disk;
    suspend_go(&means, w, want, n, w->mem, &note);
    return (enum suspend_state)w->disk.state;
}

static bool all_at(const struct world *w, enum cuda_state at)
{
    for (int i = 0; i < w->count; i++)
        if (w->at[i] != at)
            return false;
    return true;
}
static bool runs(const struct world *w) { return all_at(w, CUDA_RUNNING) && !w->frozen && (w->limit == LIMIT || w->disk.limit_bytes == LIMIT); }
static bool suspended(const struct world *w) { return all_at(w, CUDA_CHECKPOINTED) && w->frozen && w->limit >= LIMIT + (INT64_C(300) << 20); }

TEST(a_task_is_suspended_and_runs_again_with_its_own_limit)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct world w = world(mem);
    CHECK(go(&w, SUSPEND_SUSPENDED, 1) == SUSPEND_SUSPENDED && suspended(&w) && w.disk.gpu_mib == 300 && w.disk.n == 1 && !w.disk.why);
    int ops = w.ops;
    CHECK(go(&w, SUSPEND_SUSPENDED, 2) == SUSPEND_SUSPENDED && suspended(&w) && w.ops == ops + 1 && w.disk.n == 2);
    CHECK(go(&w, SUSPEND_RUNNING, 3) == SUSPEND_RUNNING && runs(&w) && w.limit == LIMIT && !w.disk.why && !w.disk.limit_bytes);
    CHECK(w.let_go_with == LIMIT); /* whoever runs with the greater one could use it first */
}

TEST(whatever_fails_once_on_the_way_out_leaves_a_task_running_or_suspended)
{
    for (int nth = 1;; nth++) {
        AUTO(arena_free) struct arena *mem = arena_new();
        struct world w = world(mem);
        w.fail_at = nth;
        enum suspend_state s = go(&w, SUSPEND_SUSPENDED, 1);
        bool fired = w.ops >= nth;
        w.fail_at = 0;
        CHECK(s == SUSPEND_SUSPENDED ? suspended(&w) : s == SUSPEND_RUNNING ? runs(&w) : s == SUSPEND_MOVING);
        CHECK(s != SUSPEND_RUNNING || !fired || w.disk.why || nth == 1);
        CHECK(go(&w, SUSPEND_SUSPENDED, 2) == SUSPEND_SUSPENDED && suspended(&w));
        CHECK(go(&w, SUSPEND_RUNNING, 3) == SUSPEND_RUNNING && runs(&w));
        if (!fired)
            break;
    }
}

TEST(whatever_fails_once_on_the_way_back_leaves_a_task_running_or_suspended_or_to_be_begun_anew)
{
    for (int nth = 1;; nth++) {
        AUTO(arena_free) struct arena *mem = arena_new();
        struct world w = world(mem);
        CHECK(go(&w, SUSPEND_SUSPENDED, 1) == SUSPEND_SUSPENDED);
        int before = w.ops;
        w.fail_at = before + nth;
        enum suspend_state s = go(&w, SUSPEND_RUNNING, 2);
        bool fired = w.ops >= before + nth;
        CHECK(s == SUSPEND_SUSPENDED ? suspended(&w) : s == SUSPEND_RUNNING ? runs(&w) : s == SUSPEND_MOVING || s == SUSPEND_BROKEN);
        CHECK(s != SUSPEND_BROKEN || w.disk.why);
        if (!fired)
            break;
    }
}

TEST(one_that_was_killed_anywhere_is_followed_by_one_that_goes_on_or_back)
{
    for (int nth = 1;; nth++) {
        bool fired = false;
        for (int way = 0; way < 4; way++) {
            AUTO(arena_free) struct arena *mem = arena_new();
            struct world w = world(mem);
            enum suspend_state first = way & 1 ? SUSPEND_RUNNING : SUSPEND_SUSPENDED, then = way & 2 ? SUSPEND_RUNNING : SUSPEND_SUSPENDED;
            if (first == SUSPEND_RUNNING)
                CHECK(go(&w, SUSPEND_SUSPENDED, 1) == SUSPEND_SUSPENDED);
            w.kill_at = w.ops + nth;
            go(&w, first, 2);
            fired |= w.dead;
            w.dead = false, w.kill_at = 0;
            CHECK(go(&w, then, 3) == then);
            CHECK(then == SUSPEND_RUNNING ? runs(&w) : suspended(&w));
        }
        if (!fired)
            break;
    }
}

TEST(what_the_driver_cannot_move_runs_on)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct world w = world(mem);
    w.fail_pid = 101, w.fail_step = CUDA_CHECKPOINT;
    CHECK(go(&w, SUSPEND_SUSPENDED, 1) == SUSPEND_RUNNING && runs(&w) && w.disk.why && w.let_go_with == LIMIT);
}

TEST(one_that_cannot_come_back_stays_suspended_with_the_others)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct world w = world(mem);
    CHECK(go(&w, SUSPEND_SUSPENDED, 1) == SUSPEND_SUSPENDED);
    w.fail_pid = 101, w.fail_step = CUDA_RESTORE;
    CHECK(go(&w, SUSPEND_RUNNING, 2) == SUSPEND_SUSPENDED && suspended(&w) && w.disk.why);
    w.fail_pid = 0;
    CHECK(go(&w, SUSPEND_RUNNING, 3) == SUSPEND_RUNNING && runs(&w) && !w.disk.why);
}

TEST(a_process_that_begins_meanwhile_is_moved_too)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct world w = world(mem);
    w.born = true;
    CHECK(go(&w, SUSPEND_SUSPENDED, 1) == SUSPEND_SUSPENDED && w.count == PROCS && all_at(&w, CUDA_CHECKPOINTED));
}

TEST(without_host_memory_nothing_is_touched)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct world w = world(mem);
    w.free_mib = 300;
    CHECK(go(&w, SUSPEND_SUSPENDED, 1) == SUSPEND_RUNNING && runs(&w) && w.limit == LIMIT && strstr(w.disk.why, "memory"));
}

TEST(what_others_were_promised_is_not_taken)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct world w = world(mem);
    w.used_mib = (LIMIT >> 20) - 200; /* 200 of its own, and 300 are to come */
    w.room_mib = 99;
    CHECK(go(&w, SUSPEND_SUSPENDED, 1) == SUSPEND_RUNNING && runs(&w) && w.limit == LIMIT && strstr(w.disk.why, "promised"));
    w.room_mib = 100;
    CHECK(go(&w, SUSPEND_SUSPENDED, 2) == SUSPEND_SUSPENDED && suspended(&w) && w.disk.mem_mib == w.used_mib);
}

TEST(where_the_way_back_fails_too_it_is_called_broken)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct world w = world(mem);
    CHECK(go(&w, SUSPEND_SUSPENDED, 1) == SUSPEND_SUSPENDED);
    w.at[0] = CUDA_FAILED;
    CHECK(go(&w, SUSPEND_RUNNING, 2) == SUSPEND_BROKEN && w.disk.why);
}

TEST(one_that_is_stopped_keeps_a_task_running_and_is_told)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct world w = world(mem);
    w.stopped = 101;
    CHECK(go(&w, SUSPEND_SUSPENDED, 1) == SUSPEND_RUNNING && runs(&w) && w.disk.why && strstr(w.disk.why, "stopped"));
    w.stopped = 0;
    CHECK(go(&w, SUSPEND_SUSPENDED, 2) == SUSPEND_SUSPENDED && suspended(&w));
    w.stopped = 101; /* after it was moved: it is the task's own doing, and the others come back */
    CHECK(go(&w, SUSPEND_RUNNING, 3) == SUSPEND_RUNNING && w.at[0] == CUDA_RUNNING && !w.frozen);
}
