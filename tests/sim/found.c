/* found.c - what the seeds found, each as a story of its own: seeds change their meaning whenever a run asks for more chance, a
 * story does not. The books are checked at the end of each. */
#include "base/fault.h"
#include "cloud.h"
#include "tap.h"
#include <stdlib.h>

static bool one_seed_only(void)
{
    bool only = getenv("ARCUS_SIM_SEED") || getenv("ARCUS_SIM_HEADS_SEED");
    if (only)
        test_skip("one seed was asked for");
    return only;
}

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
