/* sim.c - one seed is one run: jobs and misfortune by chance, then peace, then the books.
 *
 *   ARCUS_SIM_SEED=N    replays exactly one seed, in this process, and logs what happens
 *   ARCUS_SIM_HEADS_SEED=N   the same with two (an odd seed) or three servers
 *   ARCUS_SIM_SEEDS=N   how many seeds, from ARCUS_SIM_FIRST on (1)         ARCUS_SOAK=1   tens of thousands */
#include "base/fault.h"
#include "cloud.h"
#include "tap.h"
#include <stdio.h>
#include <time.h>

enum { SEEDS = 60, SEEDS_SOAK = 3000, STEPS = 50, STEP_MS = 2500 };

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
    int h = some_head(c);
    if (!c->heads[h].back_ms)
        head_kill(c, h, pause_for(c));
}

static void crash_server(struct cloud *c)
{
    int h = some_head(c);
    if (!c->heads[h].back_ms)
        head_crash(c, h, pause_for(c));
}

static void restart_server(struct cloud *c)
{
    int h = some_head(c);
    if (!c->heads[h].back_ms)
        head_leave(c, h, chance(c, 0, 500));
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
    sim_partition(c->sim, host, c->heads[some_head(c)].host, true);
}

static void mend(struct cloud *c)
{
    const char *host = chance(c, 0, 2) ? c->nodes[some_node(c)].host : "client";
    cloud_say(c, "mend %s", host);
    for (int h = 0; h < c->head_count; h++)
        sim_partition(c->sim, host, c->heads[h].host, false);
}

/* What it says arrives and what it is told does not, or the other way round. */
static void cut_one_way(struct cloud *c)
{
    const char *host = chance(c, 0, 4) ? c->nodes[some_node(c)].host : "client";
    bool away = chance(c, 0, 1);
    cloud_say(c, "cut the way %s %s", away ? "from" : "to", host);
    const char *head = c->heads[some_head(c)].host;
    sim_partition_way(c->sim, away ? host : head, away ? head : host, true);
}

static void lose(struct cloud *c)
{
    static const unsigned rates[][2] = { { 0, 0 }, { 20, 0 }, { 150, 2 }, { 0, 10 }, { 400, 40 } };
    size_t i = rng_below(&c->rng, COUNT(rates));
    cloud_say(c, "of 1000 pieces %u are lost and %u reset their connection", rates[i][0],
              rates[i][1]);
    sim_loss(c->sim, rates[i][0], rates[i][1]);
}

/* Half of the time the head, else a node. */
static struct machine_of *some_machine(struct cloud *c)
{
    return chance(c, 0, 1) ? &c->heads[some_head(c)] : &c->nodes[some_node(c)];
}

static void fill_disk(struct cloud *c)
{
    const char *host = some_machine(c)->host;
    bool full = chance(c, 0, 1);
    cloud_say(c, "the disk of %s %s", host, full ? "is full" : "has room");
    c->filled |= full;
    sim_disk_full(c->sim, host, full);
}

static void slow_disk(struct cloud *c)
{
    static const int64_t most_ms[] = { 0, 20, 300, 2000 };
    const char *host = some_machine(c)->host;
    int64_t ms = most_ms[rng_below(&c->rng, COUNT(most_ms))];
    cloud_say(c, "a sync on %s takes up to %lld ms", host, (long long)ms);
    sim_disk_slow(c->sim, host, ms);
}

static void stand_still(struct cloud *c)
{
    struct machine_of *m = some_machine(c);
    int64_t ms = pause_for(c);
    cloud_say(c, "the program of %s stands still for %lld ms", m->host, (long long)ms);
    if (m->program)
        sim_stall(c->sim, m->program, ms);
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
        wish_key,    wish_secret, wish_logs, wish_quota,
    };
    others[rng_below(&c->rng, COUNT(others))](c);
}

/* --- of several servers */

static struct machine_of *the_writer(struct cloud *c)
{
    head_pick(c);
    for (int h = 0; h < c->head_count; h++)
        if (c->server && c->servers[h].server == c->server)
            return &c->heads[h];
    return &c->heads[some_head(c)];
}

/* Longer than the others wait: it wakes up as a writer that is none any more. */
static void still_writer(struct cloud *c)
{
    struct machine_of *m = the_writer(c);
    int64_t ms = chance(c, 0, 3) ? chance(c, 1000, 6000) : pause_for(c);
    cloud_say(c, "the writer %s stands still for %lld ms", m->host, (long long)ms);
    if (m->program)
        sim_stall(c->sim, m->program, ms);
}

static void kill_writer(struct cloud *c)
{
    int h = (int)(the_writer(c) - c->heads);
    if (!c->heads[h].back_ms)
        head_kill(c, h, pause_for(c));
}

static void cut_store(struct cloud *c)
{
    struct machine_of *m = chance(c, 0, 1) ? the_writer(c) : &c->heads[some_head(c)];
    cloud_say(c, "cut %s off the store", m->host);
    c->filled = true;
    sim_partition(c->sim, m->host, "store", true);
}

static void cut_heads(struct cloud *c)
{
    int a = some_head(c), b = some_head(c);
    if (a == b)
        return;
    cloud_say(c, "cut %s and %s", c->heads[a].host, c->heads[b].host);
    sim_partition_way(c->sim, c->heads[a].host, c->heads[b].host, true);
    if (chance(c, 0, 2))
        sim_partition_way(c->sim, c->heads[b].host, c->heads[a].host, true);
}

static void cut_writer(struct cloud *c)
{
    struct machine_of *m = the_writer(c);
    cloud_say(c, "cut %s off everybody but the store", m->host);
    sim_partition(c->sim, m->host, "client", true);
    for (int i = 0; i < c->node_count; i++)
        sim_partition(c->sim, m->host, c->nodes[i].host, true);
    for (int h = 0; h < c->head_count; h++)
        if (&c->heads[h] != m)
            sim_partition(c->sim, m->host, c->heads[h].host, true);
}

static void mend_heads(struct cloud *c)
{
    cloud_say(c, "mend the network of the servers");
    for (int h = 0; h < c->head_count; h++) {
        sim_partition(c->sim, c->heads[h].host, "store", false);
        sim_partition(c->sim, c->heads[h].host, "client", false);
        for (int k = 0; k < h; k++)
            sim_partition(c->sim, c->heads[h].host, c->heads[k].host, false);
        for (int i = 0; i < c->node_count; i++)
            sim_partition(c->sim, c->heads[h].host, c->nodes[i].host, false);
    }
}

static void (*const of_servers[])(struct cloud *c) = {
    still_writer, still_writer, still_writer, kill_writer, kill_writer, cut_store,
    cut_store,    cut_heads,    cut_writer,   mend_heads,  mend_heads,  mend_heads,
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
        else if (what < 9)
            wish_any(c);
        if (chance(c, 0, temper) == 0)
            misfortunes[rng_below(&c->rng, COUNT(misfortunes))](c);
        if (c->head_count > 1 && chance(c, 0, 5) == 0)
            of_servers[rng_below(&c->rng, COUNT(of_servers))](c);
        if (c->faults && chance(c, 0, 2) == 0)
            arm(c);
        cloud_run(c, chance(c, 0, STEP_MS));
        if (chance(c, 0, 11) == 0) {
            fault_arm(0);
            books_memory(c);
        }
    }
}

static int64_t test_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

TEST(whatever_befalls_the_cloud_its_books_balance)
{
    uint64_t one = asked_for("ARCUS_SIM_SEED", 0), first = asked_for("ARCUS_SIM_FIRST", 1),
             count = asked_for("ARCUS_SIM_SEEDS", asked_for("ARCUS_SOAK", 0) ? SEEDS_SOAK : SEEDS);
    struct result sum = { 0 };
    if (one) {
        CHECK(run_loud(one, storm, 1).ok);
        return;
    }
    if (asked_for("ARCUS_SIM_HEADS_SEED", 0)) {
        test_skip("another seed was asked for");
        return;
    }
    int64_t began = test_ms();
    CHECK(run_many(first, count, storm, 1, &sum));
    int64_t took = MAX(test_ms() - began, 1);
    printf("# %llu seeds, %lld a minute: %zu requests, %zu attempts, %lld commits, %lld checks, "
           "%lld s of virtual time\n",
           (unsigned long long)count, (long long)count * 60000 / (long long)took, sum.requests,
           sum.attempts, (long long)sum.commits, (long long)sum.checks, (long long)sum.ms / 1000);
}

TEST(of_several_servers_one_writes_whatever_befalls_them)
{
    uint64_t one = asked_for("ARCUS_SIM_HEADS_SEED", 0), first = asked_for("ARCUS_SIM_FIRST", 1),
             count = asked_for("ARCUS_SIM_SEEDS", asked_for("ARCUS_SOAK", 0) ? SEEDS_SOAK : SEEDS) / 2;
    struct result sum = { 0 };
    if (asked_for("ARCUS_SIM_SEED", 0)) {
        test_skip("one seed was asked for");
        return;
    }
    if (one) {
        CHECK(run_loud(one, storm, one % 2 ? 2 : 3).ok);
        return;
    }
    int64_t began = test_ms();
    CHECK(run_many(first, count, storm, 0, &sum));
    int64_t took = MAX(test_ms() - began, 1);
    printf("# %llu seeds of two or three servers, %lld a minute: %zu requests, %zu attempts, %lld commits, %lld checks, "
           "%lld s of virtual time\n",
           (unsigned long long)count, (long long)count * 60000 / (long long)took, sum.requests,
           sum.attempts, (long long)sum.commits, (long long)sum.checks, (long long)sum.ms / 1000);
}

TEST(a_seed_is_a_run)
{
    if (asked_for("ARCUS_SIM_SEED", 0)) {
        test_skip("one seed was asked for");
        return;
    }
    for (uint64_t seed = 7; seed < 9; seed++) {
        struct result a = run_apart(seed, storm, 0), b = run_apart(seed, storm, 0),
                      other = run_apart(seed + 1000, storm, 0), sum = { 0 };
        CHECK(a.trace == b.trace && a.commits == b.commits && a.trace != other.trace);
        CHECK(run_many(seed, 1, storm, 1, &sum) && sum.trace == a.trace); /* whatever ran before it */
    }
}
