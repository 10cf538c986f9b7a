/* sim.c - one seed is one run: jobs and misfortune by chance, then peace, then the books.
 *
 *   ARCUS_SIM_SEED=N    replays exactly one seed, in this process, and logs what happens
 *   ARCUS_SIM_SEEDS=N   how many seeds          ARCUS_SOAK=1   twenty times as many
 *
 * Each seed runs in a process of its own: one that dies names itself, and what crashed machines held goes with it. */
#include "base/fault.h"
#include "base/log.h"
#include "cloud.h"
#include "tap.h"
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SEEDS = 120, SOAK = 20, STEPS = 60, STEP_MS = 2500, PEACE_MS = 900 * 1000 };

/* --- misfortune */

static int64_t pause_for(struct cloud *c)      /* mostly short, sometimes longer than a task may run unseen */
{
    return chance(c, 0, 5) ? chance(c, 0, 4000) : chance(c, 4000, (RUN_FOR_S + MARGIN_S + 20) * 1000);
}

static int some_node(struct cloud *c) { return (int)rng_below(&c->rng, (uint64_t)c->node_count); }

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

static void kill_supervisor(struct cloud *c) { straw_kill(c); }

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
    static const int64_t delays[][2] = { { 0, 5 }, { 0, 0 }, { 1, 60 }, { 50, 400 }, { 200, 2500 } };
    size_t i = rng_below(&c->rng, COUNT(delays));
    cloud_say(c, "delays of %lld to %lld ms", (long long)delays[i][0], (long long)delays[i][1]);
    sim_network(c->sim, delays[i][0], delays[i][1]);
}

static void (*const misfortunes[])(struct cloud *c) = {
    kill_server, crash_server, restart_server, kill_agent, kill_agent, crash_node, kill_supervisor, cut, cut, mend, mend, mend, slow_network,
};

/* One of the next operations on a disk, a stream or a process fails, wherever it is. */
static void arm(struct cloud *c)
{
    int nth = (int)chance(c, 1, chance(c, 0, 1) ? 20 : 400);
    cloud_say(c, "operation %d from here fails", nth);
    fault_arm(nth);
}

static void live(struct cloud *c)
{
    c->faults = chance(c, 0, 1);
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
        if (chance(c, 0, 2) == 0)
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

static void run_seed(uint64_t seed, bool loud, struct cloud *c)
{
    cloud_open(c, seed, loud);
    if (cloud_ok(c))
        live(c);
    heal(c);
    if (cloud_ok(c) && !cloud_wait(c, PEACE_MS, wishes_done))
        cloud_fail(c, "after %d s of peace the server does not answer", PEACE_MS / 1000);
    for (int i = 0; i < c->node_count; i++)
        wish_uncordon(c, i);
    if (cloud_ok(c) && !cloud_wait(c, PEACE_MS, books_idle))
        cloud_fail(c, "after %d s of peace: %s", PEACE_MS / 1000, books_busy(c));
    cloud_run(c, 12 * 1000);            /* what was settled last is forgotten with the next beats */
    if (cloud_ok(c))
        books_check(c);
    if (loud && c->server)
        books_print(c);
}

/* --- seeds */

struct result { bool ok; uint64_t trace; size_t jobs, attempts; int64_t commits, ms; };

static void report(uint64_t seed, const struct cloud *c)
{
    if (!cloud_ok(c))
        printf("# seed %llu: %s\n", (unsigned long long)seed, c->failed);
}

static struct result run_here(uint64_t seed, bool loud)
{
    static struct cloud c;
    run_seed(seed, loud, &c);
    report(seed, &c);
    struct result r = { cloud_ok(&c), sim_trace(c.sim), c.wish_count, c.run_count, c.commits, sim_now_ms(c.sim) };
    cloud_close(&c);
    return r;
}

static struct result run_apart(uint64_t seed)
{
    struct result r = { 0 };
    int ends[2], status = 0;
    fflush(stdout);
    if (pipe(ends) == -1)
        return r;
    pid_t child = fork();
    if (child == 0) {
        r = run_here(seed, false);
        fflush(stdout);
        _exit(write(ends[1], &r, sizeof r) != sizeof r);
    }
    close(ends[1]);
    bool told = child > 0 && read(ends[0], &r, sizeof r) == sizeof r;
    close(ends[0]);
    if (child > 0)
        waitpid(child, &status, 0);
    if (!told || status) {
        printf("# seed %llu: the process died (status %d)\n", (unsigned long long)seed, status);
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
const char *__asan_default_options(void) { return "detect_leaks=0:quarantine_size_mb=8:malloc_context_size=5:max_malloc_fill_size=0"; }

TEST(whatever_befalls_the_cloud_its_books_balance)
{
    uint64_t one = number("ARCUS_SIM_SEED", 0), count = number("ARCUS_SIM_SEEDS", number("ARCUS_SOAK", 0) ? SEEDS * SOAK : SEEDS);
    uint64_t first = number("ARCUS_SIM_FIRST", 1);
    struct result sum = { 0 };
    log_level_set(one ? LOG_INFO : (enum log_level)(LOG_ERROR + 1));
    if (one) {
        CHECK(run_here(one, true).ok);
        return;
    }
    for (uint64_t seed = first; seed < first + count; seed++) {
        struct result r = run_apart(seed);
        CHECK(r.ok);
        sum.jobs += r.jobs, sum.attempts += r.attempts, sum.commits += r.commits, sum.ms += r.ms;
    }
    printf("# %llu seeds: %zu requests, %zu attempts, %lld commits, %lld s of virtual time\n", (unsigned long long)count, sum.jobs, sum.attempts,
           (long long)sum.commits, (long long)sum.ms / 1000);
}

TEST(a_seed_is_a_run)
{
    if (number("ARCUS_SIM_SEED", 0)) {
        test_skip("one seed was asked for");
        return;
    }
    for (uint64_t seed = 7; seed < 10; seed++) {
        struct result a = run_apart(seed), b = run_apart(seed), other = run_apart(seed + 1000);
        CHECK(a.trace == b.trace && a.commits == b.commits && a.trace != other.trace);
    }
}
