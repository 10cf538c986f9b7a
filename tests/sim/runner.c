/* runner.c - a seed as a run: a cloud lives through a story, then there is peace, then its books are checked.
 *
 * Seeds run in processes of their own, some in each, on every CPU: one that dies names its seed, and what crashed machines held
 * goes with the process. */
#include "base/fault.h"
#include "base/log.h"
#include "cloud.h"
#include <malloc.h>
#include <poll.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PEACE_MS = 7200 * 1000,  /* the longest array, one task after the other, and each try of it */
       SEEDS_A_PROCESS = 50, WORKERS_MOST = 64 };

struct story {
    uint64_t seed;
    story_fn *live;
    int64_t n;
    bool loud;
    int heads;
    const char *acts;           /* they are played in place of live; seed: how much more than theirs */
    struct str *keep;           /* gets what was done */
};

static struct start begins(const struct story *t)
{
    struct start s = start_of(t->seed, t->heads);
    if (t->acts && start_read(t->acts, &s))
        s.seed += t->seed;
    return s;
}

/* What somebody has suspended stays so until somebody wants it to go on; and it may have failed the first time, when its node was in trouble yet. */
static bool at_peace(struct cloud *c)
{
    if (c->server && wishes_done(c))
        wish_resume_all(c);
    return books_idle(c);
}

static void tell(const struct story *t, struct cloud *c)
{
    struct start start = begins(t);
    fault_arm(0);
    cloud_open(c, &start, t->loud);
    if (cloud_ok(c) && t->acts)
        acts_play(c, t->acts);
    else if (cloud_ok(c))
        t->live(c, t->n);
    if (t->keep)
        str_put(t->keep, c->acts.at, c->acts.len);
    heal(c);
    if (cloud_ok(c) && !cloud_wait(c, PEACE_MS, wishes_done))
        cloud_fail(c, "after %d s of peace the server does not answer", PEACE_MS / 1000);
    for (int i = 0; i < c->node_count; i++)
        wish_uncordon(c, i);
    wish_unreserve_all(c);
    if (cloud_ok(c) && !cloud_wait(c, PEACE_MS, at_peace))
        cloud_fail(c, "after %d s of peace: %s", PEACE_MS / 1000, books_busy(c));
    /* What was settled last is forgotten with the next beats; who follows a server that still stands still is there again half a
     * minute after that one. */
    cloud_run(c, c->head_count > 1 ? (RUN_FOR_S + MARGIN_S + 20 + 35) * 1000 : 12 * 1000);
    if (cloud_ok(c))
        books_check(c);
    if (t->loud && c->server)
        books_print(c);
}

static struct result run_here(const struct story *t)
{
    static struct cloud c;
    tell(t, &c);
    if (!cloud_ok(&c))
        printf("# seed %llu (%lld): %s\n", (unsigned long long)t->seed, (long long)t->n, c.failed);
    fflush(stdout);
    struct result r = { .seed = t->seed,
                        .ok = cloud_ok(&c),
                        .fired = c.fired,
                        .trace = sim_trace(c.sim),
                        .requests = c.wish_count,
                        .attempts = c.run_count,
                        .misfortunes = c.misfortunes,
                        .freezes = c.freezes,
                        .events = sim_steps(c.sim),
                        .commits = c.commits,
                        .checks = c.checks,
                        .ms = sim_now_ms(c.sim) };
    cloud_close(&c);
    return r;
}

/* --- workers */

struct worker { pid_t pid; int from; struct story next; uint64_t end, step; struct result now; };

/* A world that has ended leaves its memory behind, so each touches fresh pages: large ones are made at once. */
static void large_pages(void)
{
    enum { HEAP = 64 << 20, LARGE = 2 << 20 };
    mallopt(M_TOP_PAD, HEAP);
    free(malloc(LARGE));
    uintptr_t end = (uintptr_t)sbrk(0), from = (end - HEAP + LARGE - 1) / LARGE * LARGE;
    madvise((void *)from, end - from, MADV_HUGEPAGE);
}

static void work(const struct worker *w, int to)
{
    struct story t = w->next;
    if (w->end - t.seed > w->step)
        large_pages();
    for (; t.seed < w->end; t.seed += w->step) {
        struct result r = { .seed = t.seed, .begun = true };
        if (write(to, &r, sizeof r) != sizeof r)
            _exit(1);
        r = run_here(&t);
        if (write(to, &r, sizeof r) != sizeof r)
            _exit(1);
    }
    _exit(0);
}

static bool hire(struct worker *w, uint64_t end)
{
    int ends[2];
    fflush(stdout);
    if (pipe(ends) == -1)
        return false;
    w->end = MIN(end, w->next.seed + SEEDS_A_PROCESS * w->step);
    w->pid = fork();
    if (w->pid == 0)
        work(w, ends[1]);
    close(ends[1]);
    w->from = ends[0];
    return w->pid > 0;
}

static void add_up(struct result *sum, const struct result *r)
{
    sum->requests += r->requests, sum->attempts += r->attempts, sum->commits += r->commits;
    sum->misfortunes += r->misfortunes, sum->freezes += r->freezes, sum->events += r->events;
    sum->checks += r->checks, sum->ms += r->ms, sum->trace = r->trace, sum->fired = r->fired;
}

/* One message, or the end of the worker; false: something went wrong. */
static bool hear(struct worker *w, struct result *sum)
{
    struct result r;
    int status = 0;
    if (read(w->from, &r, sizeof r) == sizeof r) {
        w->now = r;
        w->next.seed = r.seed + w->step;
        if (!r.begun)
            add_up(sum, &r);
        sum->failed += !r.begun && !r.ok;
        return r.begun || r.ok;
    }
    close(w->from);
    waitpid(w->pid, &status, 0);
    w->pid = 0;
    if (!status && !w->now.begun)
        return true;
    sum->failed++;
    printf("# seed %llu (%lld): the process died (status %d)\n", (unsigned long long)w->now.seed,
           (long long)w->next.n, status);
    return false;
}

/* Worlds have one thread each, and a third of all time would go into memory and locks. */
static void settle_down(void)
{
    mallopt(M_MMAP_THRESHOLD, 1 << 28);     /* memory comes back at once: the kernel need not know */
    mallopt(M_TRIM_THRESHOLD, 1 << 28);
    mallopt(M_TOP_PAD, 16 << 20);
    sqlite3_config(SQLITE_CONFIG_SINGLETHREAD); /* refused once it is in use, as with the second run of a process */
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 512, 256);
    log_level_set((enum log_level)(LOG_ERROR + 1));
    cloud_prepare();
}

static bool run_seeds(const struct story *first, uint64_t count, struct result *sum)
{
    struct worker workers[WORKERS_MOST] = { 0 };
    struct pollfd polls[WORKERS_MOST];
    uint64_t jobs = MIN(MIN(asked_for("ARCUS_SIM_JOBS", (uint64_t)sysconf(_SC_NPROCESSORS_ONLN)), (uint64_t)WORKERS_MOST), count),
             end = first->seed + count;
    bool ok = true;
    settle_down();
    for (uint64_t i = 0; i < jobs; i++) {
        workers[i].next = *first;
        workers[i].next.seed += i;
        workers[i].step = jobs;
    }
    for (;;) {
        nfds_t n = 0;
        struct worker *at[WORKERS_MOST];
        for (uint64_t i = 0; i < jobs; i++) {
            struct worker *w = &workers[i];
            if (!w->pid && w->next.seed < end && !hire(w, end))
                return false;
            if (!w->pid)
                continue;
            polls[n] = (struct pollfd){ .fd = w->from, .events = POLLIN };
            at[n++] = w;
        }
        if (!n)
            return ok;
        if (poll(polls, n, -1) < 0)
            return false;
        for (nfds_t i = 0; i < n; i++)
            if (polls[i].revents)
                ok &= hear(at[i], sum);
    }
}

bool run_many(uint64_t first, uint64_t count, story_fn *live, int heads, struct result *sum)
{
    return run_seeds(&(struct story){ .seed = first, .live = live, .heads = heads }, count, sum);
}

struct result run_apart(uint64_t seed, story_fn *live, int64_t n)
{
    struct result sum = { 0 };
    sum.ok = run_seeds(&(struct story){ .seed = seed, .live = live, .n = n, .heads = 1 }, 1, &sum);
    return sum;
}

struct result run_noted(uint64_t seed, story_fn *live, int heads, bool loud, struct str *acts)
{
    if (loud)
        cloud_prepare();
    else
        settle_down();
    return run_here(&(struct story){ .seed = seed, .live = live, .loud = loud, .heads = heads, .keep = acts });
}

struct result run_acts(const char *acts, uint64_t other, uint64_t worlds)
{
    struct result sum = { 0 };
    sum.ok = run_seeds(&(struct story){ .seed = other, .acts = acts }, worlds, &sum);
    return sum;
}

struct result run_acts_loud(const char *acts)
{
    cloud_prepare();
    return run_here(&(struct story){ .acts = acts, .loud = true });
}

uint64_t asked_for(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

bool one_seed_only(void)
{
    return getenv("ARCUS_SIM_SEED") || getenv("ARCUS_SIM_HEADS_SEED") || getenv("ARCUS_SIM_ACTS");
}

const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "quarantine_size_mb=8:malloc_context_size=5:max_malloc_fill_size=0";
}
/* What crashed machines held is nobody's any more, whatever ASAN_OPTIONS says. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) { return 1; }
