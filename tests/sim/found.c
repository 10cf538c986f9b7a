/* found.c - what the seeds found, each as a story of its own: seeds change their meaning whenever a run asks for more chance, a
 * story does not. The books are checked at the end of each. */
#include "base/fault.h"
#include "cloud.h"
#include "tap.h"
#include <stdio.h>
#include <stdlib.h>

/* Seed 1: with retries left, an attempt that had succeeded was followed by another. */
static void retries_left(struct cloud *c, int64_t n)
{
    (void)n;
    wish_work(c, 200, 0, 2, "");
    wish_work(c, 200, 3, 2, "");
    wish_work(c, 200, 0, 1, ",\"max_duration\":\"5s\"");
    cloud_run(c, 10000);
}

TEST(a_task_that_succeeded_is_not_tried_again)
{
    if (!one_seed_only())
        CHECK(run_apart(1, retries_left, 0).ok);
}

/* Seed 66: an agent that could not read a status when it started waited for that attempt for ever. Seeds 48 and 62: one that could
 * not read it when the supervisor had left told a success as a fault of the node. */
static void agents_start_anew(struct cloud *c, int64_t n)
{
    c->faults = true;
    cloud_wait(c, 10000, agents_are_linked);
    wish_work(c, 100, 0, 0, "");
    wish_work(c, 900, 0, 0, "");
    wish_work(c, 900, 7, 0, "");
    wish_work(c, 3000, 0, 0, "");
    cloud_run(c, 700);
    for (int i = 0; i < c->node_count; i++)
        node_kill(c, i, 600);
    cloud_run(c, 600);
    fault_arm((int)n);
    cloud_run(c, 6000);
}

TEST(whatever_fails_once_when_agents_start_anew_everything_is_told_as_it_was)
{
    for (int64_t n = 1; n <= 40 && !one_seed_only(); n++)
        CHECK(run_apart(66, agents_start_anew, n).ok);
}

/* Seed 109: a folder that could not be removed stayed until the agent was started anew. Seed 157: a status that was seen although
 * its write had failed was written again behind the agent's back. */
static void tasks_end(struct cloud *c, int64_t n)
{
    c->faults = true;
    cloud_wait(c, 10000, agents_are_linked);
    wish_work(c, 500, 0, 0, "");
    wish_work(c, 500, 9, 0, "");
    cloud_run(c, 500);
    fault_arm((int)n);
    cloud_run(c, 4000);
}

TEST(whatever_fails_once_when_tasks_end_nothing_is_left_of_them)
{
    for (int64_t n = 1; n <= 60 && !one_seed_only(); n++)
        CHECK(run_apart(109, tasks_end, n).ok);
}

/* --- every step of the cloud with its nth operation failing, for n from 1 until none is left */

static void fail_during(struct cloud *c, int64_t n, int64_t ms)
{
    c->faults = true;
    fault_arm((int)n);
    cloud_run(c, ms);
    c->fired = fault_fired();
    fault_arm(0);
}

static void joining(struct cloud *c, int64_t n) { fail_during(c, n, 6000); }

static void starting(struct cloud *c, int64_t n)
{
    cloud_wait(c, 10000, agents_are_linked);
    wish_work(c, 2000, 0, 0, ",\"gpus\":\"1\",\"secrets\":[\"TOKEN\"],\"volumes\":[\"vol0:/data\"]")->has_secret = true;
    fail_during(c, n, 1500);
}

static void stopping(struct cloud *c, int64_t n)
{
    cloud_wait(c, 10000, agents_are_linked);
    wish_work(c, 50000, 0, 0, "");
    cloud_run(c, 1500);
    wish_cancel(c);
    fail_during(c, n, 2500);
}

static void renewing(struct cloud *c, int64_t n)
{
    cloud_wait(c, 10000, agents_are_linked);
    wish_work(c, 8000, 0, 0, "");
    cloud_run(c, 1500);
    fail_during(c, n, 6000);
}

static void head_anew(struct cloud *c, int64_t n)
{
    cloud_wait(c, 10000, agents_are_linked);
    wish_work(c, 4000, 3, 1, "");
    cloud_run(c, 1500);
    head_kill(c, 0, 300);
    fail_during(c, n, 4000);
}

static void sweeping(struct cloud *c, int64_t n)
{
    cloud_wait(c, 10000, agents_are_linked);
    wish_work(c, 300, 0, 0, ",\"volumes\":[\"vol1:/data\"]");
    cloud_run(c, 3000);
    struct wish *w = wish_new(c, WISH_CHANGE, 0);
    w->method = "DELETE";
    snprintf(w->path, sizeof w->path, "/v1/volumes/vol1");
    wish_send(w);
    fail_during(c, n, 3000);
}

static const char *on_a_gpu(struct cloud *c)
{
    cloud_wait(c, 10000, agents_are_linked);
    const char *name = wish_work(c, 9000, 0, 0, ",\"gpus\":\"1\"")->name;
    cloud_run(c, 1500);
    return name;
}

static const char *held(struct cloud *c)
{
    const char *name = on_a_gpu(c);
    act(c, "suspend %s -1", name);
    cloud_run(c, 1500);
    if (!watch_some(c, true))
        cloud_fail(c, "%s does not stand still", name);
    return name;
}

/* Others want what it gives back: who is said to stand still and does not would run beside one of them. */
static void suspending(struct cloud *c, int64_t n)
{
    const char *name = on_a_gpu(c);
    for (int i = 0; i < NODES_MOST * GPUS_MOST; i++)
        wish_work(c, 4000, 0, 0, ",\"gpus\":\"1\"");
    cloud_run(c, 1000);
    act(c, "suspend %s -1", name);
    fail_during(c, n, 2500);
}

static void resuming(struct cloud *c, int64_t n)
{
    act(c, "resume %s -1", held(c));
    fail_during(c, n, 2500);
}

static void ending_held(struct cloud *c, int64_t n)
{
    act(c, "cancel %s -1 0", held(c));
    fail_during(c, n, 2500);
}

/* The nth piece on the wire takes its connection with it. */
static void talking(struct cloud *c, int64_t n)
{
    cloud_wait(c, 10000, agents_are_linked);
    sim_reset_nth(c->sim, (int)n);
    wish_work(c, 300, 0, 0, "");
    wish_key(c);
    wish_secret(c);
    cloud_run(c, 1000);
    wish_cancel(c);
    wish_logs(c);
    wish_key(c);
    cloud_run(c, 4000);
    c->fired = !sim_reset_waits(c->sim);
    sim_reset_nth(c->sim, 0);
}

static const struct { const char *name; story_fn *live; } steps[] = {
    { "a node joins", joining },       { "a task starts", starting },    { "a task is stopped", stopping },
    { "a lease is renewed", renewing }, { "the server starts anew", head_anew }, { "a volume is swept", sweeping },
    { "a task is suspended", suspending }, { "a task is resumed", resuming },  { "a suspended task is stopped", ending_held },
    { "everybody talks", talking },
};

TEST(whichever_operation_fails_in_any_step_the_books_balance)
{
    enum { MOST = 2000, STRIDE = 9, SEED_OF_LATE_JOIN = 2 };
    int64_t stride = asked_for("ARCUS_SOAK", 0) ? 1 : STRIDE;
    for (size_t i = 0; i < COUNT(steps) && !one_seed_only(); i++) {
        int64_t n = 1;
        bool fired = true;
        for (; fired && n < MOST; n += n < 4 ? 1 : stride) {
            struct result r = run_apart(SEED_OF_LATE_JOIN, steps[i].live, n);
            fired = r.fired;
            CHECK(r.ok);
            if (!r.ok)
                printf("# while %s, operation %lld failed\n", steps[i].name, (long long)n);
        }
        CHECK(n > 4 && n < MOST);
        printf("# %s: %lld operations can fail\n", steps[i].name, (long long)n);
    }
}

/* The law itself: cut off for longer than it may run unseen, a task ends by itself before another node has it. */
static void cut_off(struct cloud *c, int64_t seconds)
{
    cloud_wait(c, 10000, agents_are_linked);
    wish_work(c, 90000, 0, 0, "");
    wish_work(c, 40000, 0, 0, ",\"on_lost\":\"wait\"");
    cloud_run(c, 3000);
    sim_partition(c->sim, "n1", "head", true);
    cloud_run(c, seconds * 1000);
}

TEST(a_node_cut_off_ends_its_tasks_before_another_has_them)
{
    for (int64_t seconds = 5; seconds <= 80 && !one_seed_only(); seconds += 15)
        CHECK(run_apart(3, cut_off, seconds).ok);
}

/* Drains, and servers that are replaced while they last: what was told to end is told so by the next server too, runs once at a time
 * and comes to its own end. */
static void drained(struct cloud *c, int64_t n)
{
    cloud_wait(c, 10000, agents_are_linked);
    wish_work(c, 3000, 0, 0, "");
    wish_work(c, 30000, 0, 0, "");
    wish_work(c, 30000, 0, 0, ",\"grace\":\"6s\"");
    act(c, "wait 2000");
    act(c, "drain n1 {\"requeue\":true}");
    act(c, "drain n2 {\"deadline\":\"4s\"}");
    act(c, "wait %lld", (long long)(n * 700));
    act(c, "kill head 300");
    act(c, "wait 12000");
    act(c, "node n1 ready");
    act(c, "kill n2 500");
    act(c, "wait 20000");
}

TEST(nodes_are_emptied_whoever_dies_meanwhile)
{
    for (int64_t n = 0; n < 8 && !one_seed_only(); n++)
        CHECK(run_apart(21, drained, n).ok);
}

/* Two of three nodes are cut off for longer than their tasks may run unseen, then they are back. */
static void silenced(struct cloud *c, int64_t n)
{
    (void)n;
    cloud_wait(c, 10000, agents_are_linked);
    for (int i = 0; i < 6; i++)
        wish_work(c, 20000, 0, 0, "");
    act(c, "wait 1500");
    act(c, "cut n1 head");
    act(c, "cut n2 head");
    act(c, "wait 150000");
    act(c, "mend n1 head");
    act(c, "mend n2 head");
    act(c, "wait 30000");
}

TEST(a_silent_fleet_loses_nothing_and_ends_what_it_ran_by_itself)
{
    if (!one_seed_only())
        CHECK(run_apart(22, silenced, 0).ok);
}

/* An instance that nobody uses is stopped, whoever dies meanwhile, started, and stopped again; its disk goes with it. */
static void stops(struct cloud *c, int64_t wanted)
{
    int64_t told = cloud_ok(c) ? cloud_number(c, "SELECT count(*) FROM event WHERE kind = 'job.stopped'") : wanted;
    if (told != wanted)
        cloud_fail(c, "it was stopped %lld times, not %lld", (long long)told, (long long)wanted);
}

static void unused(struct cloud *c, int64_t n)
{
    cloud_wait(c, 10000, agents_are_linked);
    const char *name = wish_work(c, 900000, 0, 0, ",\"type\":\"instance\",\"autostop\":\"9s\",\"cpus\":1,\"disk_size\":\"64MB\"")->name;
    act(c, "wait %lld", (long long)(2000 + n * 2500));
    act(c, n % 3 == 0 ? "kill head 300" : n % 3 == 1 ? "kill n1 500" : "crash n1 500");
    act(c, "wait 40000");
    stops(c, 1);
    act(c, "start %s -1", name);
    act(c, "wait %lld", (long long)(3000 + n * 2500));
    act(c, "kill head 300");
    act(c, "wait 40000");
    stops(c, 2);
    act(c, "cancel %s -1 0", name);
    act(c, "wait 5000");
}

TEST(an_instance_that_nobody_uses_is_stopped_whoever_dies_meanwhile)
{
    for (int64_t n = 0; n < 6 && !one_seed_only(); n++)
        CHECK(run_apart(23, unused, n).ok);
}
