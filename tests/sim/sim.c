/* sim.c - one seed is one run: jobs and misfortune by chance, then peace, then the books.
 *
 *   ARCUS_SIM_SEED=N    replays exactly one seed, in this process, and logs what happens
 *   ARCUS_SIM_SEEDS=N   how many seeds, from ARCUS_SIM_FIRST on (1)         ARCUS_SOAK=1   twenty times as many
 *
 * Each seed runs in a process of its own: one that dies names itself, and what crashed machines held goes with it. */
#include "base/fault.h"
#include "base/log.h"
#include "cloud.h"
#include "tap.h"
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SEEDS = 60, SOAK = 20, STEPS = 75, STEP_MS = 2500, PEACE_MS = 900 * 1000 };

/* --- misfortune */

static int64_t
pause_for(struct cloud *c) /* mostly short, sometimes longer than a task may run unseen */
{
    return chance(c, 0, 5) ? chance(c, 0, 4000)
                           : chance(c, 4000, (RUN_FOR_S + MARGIN_S + 20) * 1000);
}

static int some_node(struct cloud *c)
{
    return (int)rng_below(&c->rng, (uint64_t)c->node_count);
}

static void kill_server(struct cloud *c)
{
    if (!c->head.back_ms)
        head_kill(c, pause_for(c));
}

static void crash_server(struct cloud *c)
{
    if (!c->head.back_ms)
        head_crash(c, pause_for(c));
}

static void restart_server(struct cloud *c)
{
    if (!c->head.back_ms)
        head_leave(c, chance(c, 0, 500));
}

static void kill_agent(struct cloud *c)
{
    int n = some_node(c);
    if (!c->nodes[n].back_ms)
        node_kill(c, n, pause_for(c));
}

static void crash_node(struct cloud *c)
{
    int n = some_node(c);
    if (!c->nodes[n].back_ms)
        node_crash(c, n, pause_for(c));
}

static void kill_supervisor(struct cloud *c)
{
    straw_kill(c);
}

static void cut(struct cloud *c)
{
    int n = some_node(c);
    const char *host = chance(c, 0, 4) ? c->nodes[n].host : "client";
    cloud_say(c, "cut %s off", host);
    sim_partition(c->sim, host, "head", true);
}

static void mend(struct cloud *c)
{
    const char *host = chance(c, 0, 2) ? c->nodes[some_node(c)].host : "client";
    cloud_say(c, "mend %s", host);
    sim_partition(c->sim, host, "head", false);
}

static void slow_network(struct cloud *c)
{
    static const int64_t delays[][2]
        = { { 0, 5 }, { 0, 0 }, { 1, 60 }, { 50, 400 }, { 200, 2500 } };
    size_t i = rng_below(&c->rng, COUNT(delays));
    cloud_say(c, "delays of %lld to %lld ms", (long long)delays[i][0], (long long)delays[i][1]);
    sim_network(c->sim, delays[i][0], delays[i][1]);
}

static void jump(struct cloud *c)
{
    static const int64_t jumps_ms[] = { 3600 * 1000, -3600 * 1000, 20 * 1000, -20 * 1000 };
    int64_t ms = jumps_ms[rng_below(&c->rng, COUNT(jumps_ms))];
    cloud_say(c, "every clock jumps by %lld s", (long long)ms / 1000);
    c->jumped = true;
    sim_wall_jump(c->sim, ms);
}

static void (*const misfortunes[])(struct cloud *c) = {
    kill_server,
    crash_server,
    restart_server,
    kill_agent,
    kill_agent,
    crash_node,
    kill_supervisor,
    cut,
    cut,
    cut,
    mend,
    mend,
    slow_network,
    jump,
};

/* One of the next operations on a disk, a stream or a process fails, wherever it is. */
static void arm(struct cloud *c)
{
    int nth = (int)chance(c, 1, chance(c, 0, 1) ? 20 : 400);
    cloud_say(c, "operation %d from here fails", nth);
    fault_arm(nth);
}

static void storm(struct cloud *c, int64_t n)
{
    (void)n;
    static const int64_t tempers[] = { 2, 5, 12, 25 };
    int64_t temper = tempers[rng_below(
        &c->rng,
        COUNT(tempers))]; /* where everything is broken at once nothing can go wrong twice */
    c->faults = chance(c, 0, 1);
    cloud_say(c, "%d nodes, a misfortune every %lld steps%s", c->node_count, (long long)temper + 1,
              c->faults ? ", operations fail" : "");
    for (int step = 0; step < STEPS && cloud_ok(c); step++) {
        int64_t what = chance(c, 0, 9);
        if (what < 5 && step < STEPS * 3 / 4)
            wish_submit(c);
        else if (what == 5)
            wish_cancel(c);
        else if (what == 6)
            wish_read(c);
        else if (what == 7)
            wish_change(c);
        if (chance(c, 0, temper) == 0)
            misfortunes[rng_below(&c->rng, COUNT(misfortunes))](c);
        if (c->faults && chance(c, 0, 2) == 0)
            arm(c);
        cloud_run(c, chance(c, 0, STEP_MS));
        if (chance(c, 0, 11) == 0) {
            fault_arm(0);
            books_memory(c);
        }
    }
}

/* --- seeds */

struct story {
    uint64_t seed;
    void (*live)(struct cloud *c, int64_t n);
    int64_t n;
    bool loud;
};

static void tell(const struct story *t, struct cloud *c)
{
    cloud_open(c, t->seed, t->loud);
    if (cloud_ok(c))
        t->live(c, t->n);
    heal(c);
    if (cloud_ok(c) && !cloud_wait(c, PEACE_MS, wishes_done))
        cloud_fail(c, "after %d s of peace the server does not answer", PEACE_MS / 1000);
    for (int i = 0; i < c->node_count; i++)
        wish_uncordon(c, i);
    if (cloud_ok(c) && !cloud_wait(c, PEACE_MS, books_idle))
        cloud_fail(c, "after %d s of peace: %s", PEACE_MS / 1000, books_busy(c));
    cloud_run(c, 12 * 1000); /* what was settled last is forgotten with the next beats */
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
    struct result r = { cloud_ok(&c), sim_trace(c.sim), c.wish_count,
                        c.run_count,  c.commits,        sim_now_ms(c.sim) };
    cloud_close(&c);
    return r;
}

struct result run_apart(uint64_t seed, void (*live)(struct cloud *c, int64_t n), int64_t n)
{
    struct story t = { .seed = seed, .live = live, .n = n };
    struct result r = { 0 };
    int ends[2], status = 0;
    fflush(stdout);
    log_level_set((enum log_level)(LOG_ERROR + 1));
    if (pipe(ends) == -1)
        return r;
    pid_t child = fork();
    if (child == 0) {
        r = run_here(&t);
        fflush(stdout);
        _exit(write(ends[1], &r, sizeof r) != sizeof r);
    }
    close(ends[1]);
    bool told = child > 0 && read(ends[0], &r, sizeof r) == sizeof r;
    close(ends[0]);
    if (child > 0)
        waitpid(child, &status, 0);
    if (!told || status) {
        printf("# seed %llu (%lld): the process died (status %d)\n", (unsigned long long)seed,
               (long long)n, status);
        r.ok = false;
    }
    return r;
}

static uint64_t number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

/* What crashed machines held is nobody's any more. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0:quarantine_size_mb=8:malloc_context_size=5:max_malloc_fill_size=0";
}

TEST(whatever_befalls_the_cloud_its_books_balance)
{
    uint64_t one = number("ARCUS_SIM_SEED", 0),
             count = number("ARCUS_SIM_SEEDS", number("ARCUS_SOAK", 0) ? SEEDS * SOAK : SEEDS);
    uint64_t first = number("ARCUS_SIM_FIRST", 1);
    struct result sum = { 0 };
    if (one) {
        struct result r = run_here(&(struct story){ .seed = one, .live = storm, .loud = true });
        CHECK(r.ok);
        return;
    }
    for (uint64_t seed = first; seed < first + count; seed++) {
        struct result r = run_apart(seed, storm, 0);
        CHECK(r.ok);
        sum.requests += r.requests, sum.attempts += r.attempts, sum.commits += r.commits,
            sum.ms += r.ms;
    }
    printf("# %llu seeds: %zu requests, %zu attempts, %lld commits, %lld s of virtual time\n",
           (unsigned long long)count, sum.requests, sum.attempts, (long long)sum.commits,
           (long long)sum.ms / 1000);
}

TEST(a_seed_is_a_run)
{
    if (number("ARCUS_SIM_SEED", 0)) {
        test_skip("one seed was asked for");
        return;
    }
    for (uint64_t seed = 7; seed < 9; seed++) {
        struct result a = run_apart(seed, storm, 0), b = run_apart(seed, storm, 0),
                      other = run_apart(seed + 1000, storm, 0);
        CHECK(a.trace == b.trace && a.commits == b.commits && a.trace != other.trace);
    }
}
