/* sim.c - one seed is one run: jobs and misfortune by chance, then peace, then the books.
 *
 *   ARCUS_SIM_SEED=N    replays exactly one seed, in this process, and logs what happens
 *   ARCUS_SIM_HEADS_SEED=N   the same with two (an odd seed) or three servers
 *   ARCUS_SIM_KEEP=FILE      what was done in that seed, as lines: found.c tells how to shorten and keep them
 *   ARCUS_SIM_SEEDS=N   how many seeds, from ARCUS_SIM_FIRST on (1)         ARCUS_SOAK=1   tens of thousands */
#include "cloud.h"
#include "tap.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#define LL(x) ((long long)(x))

enum { SEEDS = 60, SEEDS_SOAK = 3000, STEPS = 50, STEP_MS = 2500 };

/* --- misfortune */

static int64_t
pause_for(struct cloud *c) /* mostly short, sometimes longer than a task may run unseen */
{
    return chance(c, 0, 5) ? chance(c, 0, 4000)
                           : chance(c, 4000, (RUN_FOR_S + MARGIN_S + 20) * 1000);
}

static const char *some_node(struct cloud *c)
{
    return c->nodes[rng_below(&c->rng, (uint64_t)c->node_count)].host;
}
static const char *some_head(struct cloud *c)
{
    return c->heads[rng_below(&c->rng, (uint64_t)c->head_count)].host;
}
static const char *some_machine(struct cloud *c) /* half of the time a head */
{
    return chance(c, 0, 1) ? some_head(c) : some_node(c);
}
static const char *some_peer(struct cloud *c) { return chance(c, 0, 4) ? some_node(c) : "client"; }

static void kill_server(struct cloud *c) { act(c, "kill %s %lld", some_head(c), LL(pause_for(c))); }
static void crash_server(struct cloud *c) { act(c, "crash %s %lld", some_head(c), LL(pause_for(c))); }
static void restart_server(struct cloud *c) { act(c, "leave %s %lld", some_head(c), LL(chance(c, 0, 500))); }
static void kill_agent(struct cloud *c) { act(c, "kill %s %lld", some_node(c), LL(pause_for(c))); }
static void crash_node(struct cloud *c) { act(c, "crash %s %lld", some_node(c), LL(pause_for(c))); }

static void kill_supervisor(struct cloud *c)
{
    size_t alive = straws_alive(c);
    if (alive)
        act(c, "supervisor %llu", (unsigned long long)rng_below(&c->rng, alive));
}

static void cut(struct cloud *c) { act(c, "cut %s %s", some_peer(c), some_head(c)); }

static void mend(struct cloud *c)
{
    const char *host = chance(c, 0, 2) ? some_node(c) : "client";
    for (int h = 0; h < c->head_count; h++)
        act(c, "mend %s %s", host, c->heads[h].host);
}

/* What it says arrives and what it is told does not, or the other way round. */
static void cut_one_way(struct cloud *c)
{
    const char *host = some_peer(c), *head = some_head(c);
    bool away = chance(c, 0, 1);
    act(c, "cut-way %s %s", away ? host : head, away ? head : host);
}

static void lose(struct cloud *c)
{
    static const unsigned rates[][2] = { { 0, 0 }, { 20, 0 }, { 150, 2 }, { 0, 10 }, { 400, 40 } };
    size_t i = rng_below(&c->rng, COUNT(rates));
    act(c, "loss %u %u", rates[i][0], rates[i][1]);
}

static void fill_disk(struct cloud *c) { act(c, "full %s %lld", some_machine(c), LL(chance(c, 0, 1))); }

static void slow_disk(struct cloud *c)
{
    static const int64_t most_ms[] = { 0, 20, 300, 2000 };
    act(c, "slow %s %lld", some_machine(c), LL(most_ms[rng_below(&c->rng, COUNT(most_ms))]));
}

static void stand_still(struct cloud *c) { act(c, "still %s %lld", some_machine(c), LL(pause_for(c))); }

static void slow_network(struct cloud *c)
{
    static const int64_t delays[][2]
        = { { 0, 5 }, { 0, 0 }, { 1, 60 }, { 50, 400 }, { 200, 2500 } };
    size_t i = rng_below(&c->rng, COUNT(delays));
    act(c, "network %lld %lld", LL(delays[i][0]), LL(delays[i][1]));
}

static void jump(struct cloud *c)
{
    static const int64_t jumps_ms[] = { 3600 * 1000, -3600 * 1000, 20 * 1000, -20 * 1000 };
    act(c, "clock %lld", LL(jumps_ms[rng_below(&c->rng, COUNT(jumps_ms))]));
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
    cut_one_way,
    cut_one_way,
    mend,
    mend,
    mend,
    slow_network,
    lose,
    fill_disk,
    slow_disk,
    stand_still,
    stand_still,
    jump,
};

static void wish_any(struct cloud *c)
{
    static void (*const others[])(struct cloud *c) = {
        wish_cancel, wish_cancel, wish_read, wish_change, wish_change, wish_key,
        wish_key,    wish_secret, wish_logs, wish_quota, wish_drain, wish_reserve,
        wish_hold,   wish_hold,   wish_hold, wish_hold,
    };
    others[rng_below(&c->rng, COUNT(others))](c);
}

/* --- of several servers */

/* Longer than the others wait: it wakes up as a writer that is none any more. */
static void still_writer(struct cloud *c)
{
    act(c, "still writer %lld", LL(chance(c, 0, 3) ? chance(c, 1000, 6000) : pause_for(c)));
}

static void kill_writer(struct cloud *c) { act(c, "kill writer %lld", LL(pause_for(c))); }
static void cut_store(struct cloud *c) { act(c, "cut %s store", chance(c, 0, 1) ? "writer" : some_head(c)); }

static void cut_heads(struct cloud *c)
{
    const char *a = some_head(c), *b = some_head(c);
    if (a != b)
        act(c, "%s %s %s", chance(c, 0, 2) ? "cut" : "cut-way", a, b);
}

static void cut_writer(struct cloud *c) { act(c, "alone writer"); }
static void mend_heads(struct cloud *c) { act(c, "mend-heads"); }

static void (*const of_servers[])(struct cloud *c) = {
    still_writer, still_writer, still_writer, kill_writer, kill_writer, cut_store,
    cut_store,    cut_heads,    cut_writer,   mend_heads,  mend_heads,  mend_heads,
};

/* One of the next operations on a disk, a stream or a process fails, wherever it is. */
static void arm(struct cloud *c)
{
    act(c, "arm %lld", LL(chance(c, 1, chance(c, 0, 1) ? 20 : 400)));
}

static void storm(struct cloud *c, int64_t n)
{
    (void)n;
    static const int64_t tempers[] = { 2, 5, 12, 25 };
    int64_t temper = tempers[rng_below(
        &c->rng,
        COUNT(tempers))]; /* where everything is broken at once nothing can go wrong twice */
    bool faults = chance(c, 0, 1);
    if (faults)
        act(c, "faults");
    if (chance(c, 0, 2))
        act(c, "spot always");
    for (int step = 0; step < STEPS && cloud_ok(c); step++) {
        int64_t what = chance(c, 0, 9);
        if (what < 5 && step < STEPS * 3 / 4)
            wish_submit(c);
        else if (what < 9)
            wish_any(c);
        if (chance(c, 0, temper) == 0)
            misfortunes[rng_below(&c->rng, COUNT(misfortunes))](c);
        if (c->head_count > 1 && chance(c, 0, 5) == 0)
            of_servers[rng_below(&c->rng, COUNT(of_servers))](c);
        if (faults && chance(c, 0, 2) == 0)
            arm(c);
        act(c, "wait %lld", LL(chance(c, 0, STEP_MS)));
        if (chance(c, 0, 11) == 0)
            act(c, "check");
    }
}

static int64_t test_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int64_t cpu_ms(void) /* of the processes that have ended */
{
    struct rusage u;
    getrusage(RUSAGE_CHILDREN, &u);
    return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000 + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1000;
}

/* What a reader needs to judge the run: how many, how fast, and what each of them did. */
static void report(const char *what, uint64_t count, const struct result *sum, int64_t ms, int64_t cpu_ms)
{
    double n = (double)MAX(count, 1);
    printf("# %llu seeds%s, %lld a minute: %zu requests, %zu attempts, %lld commits, %lld checks, %lld s of virtual time\n",
           (unsigned long long)count, what, LL(count) * 60000 / LL(ms), sum->requests, sum->attempts, LL(sum->commits),
           LL(sum->checks), LL(sum->ms) / 1000);
    printf("# each: %.1f ms of CPU; %.1f requests, %.1f misfortunes, %.1f attempts, %.1f of them suspended, %.0f commits, %.0f checks, %.0f things that happened, "
           "%.1f minutes of virtual time\n",
           (double)cpu_ms / n, (double)sum->requests / n, (double)sum->misfortunes / n, (double)sum->attempts / n, (double)sum->freezes / n,
           (double)sum->commits / n, (double)sum->checks / n, (double)sum->events / n, (double)sum->ms / 60000 / n);
}

/* One seed: what is done is told, and kept where ARCUS_SIM_KEEP says. */
static bool one_seed(uint64_t seed, int heads)
{
    AUTO(str_done) struct str acts = { 0 };
    bool ok = run_noted(seed, storm, heads, true, &acts).ok;
    const char *path = getenv("ARCUS_SIM_KEEP");
    FILE *f = path ? fopen(path, "w") : NULL;
    if (f)
        fwrite(acts.at, 1, acts.len, f), fclose(f);
    return ok;
}

static void many_seeds(const char *what, uint64_t count, int heads)
{
    struct result sum = { 0 };
    int64_t began = test_ms(), cpu = cpu_ms();
    CHECK(run_many(asked_for("ARCUS_SIM_FIRST", 1), count, storm, heads, &sum));
    report(what, count, &sum, MAX(test_ms() - began, 1), cpu_ms() - cpu);
}

static uint64_t how_many(void)
{
    return asked_for("ARCUS_SIM_SEEDS", asked_for("ARCUS_SOAK", 0) ? SEEDS_SOAK : SEEDS);
}

TEST(whatever_befalls_the_cloud_its_books_balance)
{
    uint64_t one = asked_for("ARCUS_SIM_SEED", 0);
    if (one)
        CHECK(one_seed(one, 1));
    else if (one_seed_only())
        test_skip("another seed was asked for");
    else
        many_seeds("", how_many(), 1);
}

TEST(of_several_servers_one_writes_whatever_befalls_them)
{
    uint64_t one = asked_for("ARCUS_SIM_HEADS_SEED", 0);
    if (one)
        CHECK(one_seed(one, 0));
    else if (one_seed_only())
        test_skip("one seed was asked for");
    else
        many_seeds(" of two or three servers", how_many() / 2, 0);
}

TEST(a_seed_is_a_run_and_so_is_what_was_done_in_it)
{
    if (one_seed_only()) {
        test_skip("one seed was asked for");
        return;
    }
    for (uint64_t seed = 7; seed < 10; seed++) {
        AUTO(str_done) struct str acts = { 0 };
        int heads = seed == 9 ? 0 : 1;
        struct result a = run_noted(seed, storm, heads, false, &acts), b = { 0 }, c = { 0 }, other = { 0 };
        CHECK(run_many(seed, 1, storm, heads, &b) && b.trace == a.trace && b.commits == a.commits);
        CHECK(run_many(seed + 1000, 1, storm, heads, &other) && a.trace != other.trace);
        c = run_acts(acts.at, 0, 1);
        CHECK(c.ok && c.trace == a.trace && c.commits == a.commits); /* whatever chance writes today */
    }
}
