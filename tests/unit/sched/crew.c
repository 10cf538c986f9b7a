/* Gangs in line: n nodes at one time, or none. */
#include "base/rand.h"
#include "play.h"
#include "tap.h"

TEST(a_gang_gets_n_nodes_at_one_time_and_others_run_there_only_if_they_are_over_by_then)
{
    PLAY;
    for (int i = 0; i < 3; i++)
        play_node(&p, 2, 16);
    int64_t a = play_submit(&p, 7, 50, "2", 1, 10000), b = play_submit(&p, 7, 50, "2", 1, 20000), c = play_submit(&p, 7, 50, "1", 1, 0);
    play_plan(&p);
    int64_t g = play_gang(&p, 7, 50, 2, "2", 0);
    play_plan(&p);
    CHECK(p.plan.start_count == 1 && p.plan.starts[0].job == g && p.plan.starts[0].start_ms == 21000 && p.s->claims.heads == 2);
    int64_t longer = play_submit(&p, 7, 50, "2", 1, 0), beside = play_submit(&p, 7, 50, "1", 1, 0);
    p.now = 11000;
    play_end(&p, a);
    play_plan(&p);
    int64_t brief = play_submit(&p, 7, 50, "2", 1, 10000);
    play_plan(&p);
    CHECK(play_is(&p, longer, PLAY_WAITS, 0) && play_is(&p, brief, PLAY_RUNS, p.jobs[a - 1].node) && play_is(&p, beside, PLAY_RUNS, p.jobs[c - 1].node));
    p.now = 21000;
    play_end(&p, b);
    play_end(&p, brief);
    play_plan(&p);
    CHECK(play_is(&p, g, PLAY_RUNS, 0) && p.s->claims.count == 0 && p.ok && !p.late);
}

TEST(who_yields_to_a_gang_is_the_least_over_all_its_nodes_and_it_starts_when_all_are_gone)
{
    PLAY;
    play_rules(&p);
    for (int i = 0; i < 3; i++)
        play_node(&p, 2, 16);
    int64_t one = play_submit(&p, 7, 10, "2", 1, 0), two = play_submit(&p, 7, 10, "1", 1, 0), three = play_submit(&p, 7, 10, "1", 1, 0);
    play_plan(&p);
    CHECK(p.jobs[two - 1].node == p.jobs[three - 1].node);
    int64_t four = play_submit(&p, 7, 10, "2", 1, 0);
    play_plan(&p);
    int64_t g = play_gang(&p, 8, 50, 2, "2", 0);
    play_plan(&p);
    CHECK(p.evictions == 2 && play_is(&p, one, PLAY_YIELDS, 0) && play_is(&p, four, PLAY_YIELDS, 0) && p.s->claims.evicts == 2);
    play_end(&p, one);
    play_plan(&p);
    CHECK(play_is(&p, g, PLAY_WAITS, 0) && play_is(&p, one, PLAY_WAITS, 0));     /* its place is kept */
    play_end(&p, four);
    play_plan(&p);
    CHECK(play_is(&p, g, PLAY_RUNS, 0) && p.evictions == 2 && p.s->claims.count == 0 && p.ok);
}

TEST(a_gang_that_must_yield_counts_with_all_its_tasks_and_one_of_them_is_told)
{
    PLAY;
    play_rules(&p);
    for (int i = 0; i < 3; i++)
        play_node(&p, 2, 16);
    int64_t old = play_submit(&p, 7, 10, "2", 1, 0);
    play_plan(&p);
    p.now += 1000;
    int64_t g = play_gang(&p, 7, 10, 2, "2", 0);
    play_plan(&p);
    CHECK(play_is(&p, g, PLAY_RUNS, 0));
    play_submit(&p, 8, 50, "2", 1, 0);
    play_plan(&p);
    CHECK(p.evictions == 1 && play_is(&p, old, PLAY_YIELDS, 0));     /* one, though older, is less than two */
    play_submit(&p, 8, 50, "2", 1, 0);
    play_plan(&p);
    CHECK(p.evictions == 2 && play_is(&p, g, PLAY_YIELDS, 0));
    play_submit(&p, 8, 50, "2", 1, 0);
    play_plan(&p);
    CHECK(p.evictions == 2 && p.ok);    /* nobody of it is asked twice */
}

TEST(a_gang_that_loses_one_of_its_places_gives_the_others_back)
{
    PLAY;
    play_rules(&p);
    for (int i = 0; i < 2; i++)
        play_node(&p, 2, 16);
    play_submit(&p, 7, 10, "2", 1, 0);
    play_submit(&p, 7, 10, "2", 1, 0);
    play_plan(&p);
    play_gang(&p, 8, 50, 2, "2", 0);
    play_plan(&p);
    CHECK(p.s->claims.evicts == 2);
    sched_apply(p.s, &(struct sched_event){ .kind = SCHED_NODE_GONE, .node = 2 });
    sched_plan(p.s, p.now, 10, p.mem);
    CHECK(p.s->claims.evicts == 0);
}

static void reserve(struct play *p, int64_t project, const char *gpus, int64_t count, int64_t from_ms, int64_t until_ms)
{
    struct sched_event e = kit_job_event(0, project, 0, gpus, 0, 0, 1);
    e.kind = SCHED_RESERVE;
    e.reserve = 1;
    e.count = count;
    e.from_ms = from_ms;
    e.until_ms = until_ms;
    sched_apply(p->s, &e);
}

/* As a single job does: no rule says that anybody yields, and the brake is on. */
TEST(a_gang_uses_what_its_project_has_reserved_and_what_was_lent_there_yields)
{
    PLAY;
    for (int i = 0; i < 3; i++)
        play_node(&p, 2, 16);
    reserve(&p, 8, "2", 2, 5000, 900000);
    int64_t spot[3];
    for (int i = 0; i < 3; i++)
        spot[i] = play_submit(&p, 7, 10, "2", 1, 0);
    play_plan(&p);
    for (int i = 0; i < 3; i++)
        CHECK(play_is(&p, spot[i], PLAY_RUNS, 0));
    int64_t other = play_gang(&p, 7, 50, 2, "2", 0), early = play_gang(&p, 8, 50, 2, "2", 0);
    play_plan(&p);
    CHECK(p.evictions == 0);            /* not its time yet */
    p.now = 6000;
    play_plan(&p);
    CHECK(p.evictions == 2 && p.s->claims.evicts == 2);
    for (int i = 0; i < 3; i++)
        if (p.jobs[spot[i] - 1].fate == PLAY_YIELDS) {
            CHECK(p.jobs[spot[i] - 1].for_job == early);
            play_end(&p, spot[i]);
        }
    play_plan(&p);
    CHECK(play_is(&p, early, PLAY_RUNS, 0) && play_is(&p, other, PLAY_WAITS, 0) && p.ok);
    play_end(&p, early);
    play_plan(&p);
    int64_t half = play_gang(&p, 8, 50, 3, "2", 0);     /* more than it has reserved: nobody yields for a part of it */
    int before = p.evictions;
    play_plan(&p);
    CHECK(p.evictions == before && play_is(&p, half, PLAY_WAITS, 0) && p.ok);
}

/* One node's place is idle, the other's is lent: only who is on the second goes. */
TEST(a_gang_takes_a_reserved_place_that_is_idle_as_it_is)
{
    PLAY;
    for (int i = 0; i < 2; i++)
        play_node(&p, 2, 16);
    reserve(&p, 8, "2", 2, 5000, 900000);
    int64_t spot = play_submit(&p, 7, 10, "2", 1, 0);
    play_plan(&p);
    p.now = 6000;
    int64_t gang = play_gang(&p, 8, 50, 2, "2", 0);
    play_plan(&p);
    CHECK(p.evictions == 1 && play_is(&p, spot, PLAY_YIELDS, 0));
    int64_t again = play_submit(&p, 7, 10, "2", 1, 0);
    play_plan(&p);
    CHECK(play_is(&p, again, PLAY_WAITS, 0));   /* the idle one is kept for the gang */
    play_end(&p, spot);
    play_plan(&p);
    CHECK(play_is(&p, gang, PLAY_RUNS, 0) && p.ok);
}

/* A GPU brings CPUs with it: two nodes' are more than the project may have, though the job names none. */
TEST(nothing_is_held_nor_evicted_for_a_gang_that_its_quota_would_not_let_start)
{
    PLAY;
    play_rules(&p);
    for (int i = 0; i < 2; i++)
        play_node(&p, 2, 16);
    sched_apply(p.s, &(struct sched_event){ .kind = SCHED_PROJECT, .project = 8, .quota = { -1000, 20000, -1, -1 } });
    int64_t a = play_submit(&p, 7, 50, "2", 1, 10000), b = play_submit(&p, 7, 10, "2", 1, 20000);
    play_plan(&p);
    CHECK(play_is(&p, a, PLAY_RUNS, 0) && play_is(&p, b, PLAY_RUNS, 0));
    struct play_job *j = &p.jobs[p.job_count];
    int64_t g = play_gang(&p, 8, 50, 2, "2", 0);
    j->e.shape = (struct shape){ .gpu = j->e.shape.gpu };
    sched_apply(p.s, &j->e);
    play_plan(&p);
    CHECK(p.evictions == 0 && p.s->claims.count == 0 && play_is(&p, g, PLAY_WAITS, 0));
    sched_apply(p.s, &(struct sched_event){ .kind = SCHED_PROJECT, .project = 8, .quota = { -1000, 64000, -1, -1 } });
    play_plan(&p);
    CHECK(p.s->claims.count == 2);
}

TEST(the_starved_gang_gets_nodes_where_nothing_new_starts)
{
    PLAY;
    for (int i = 0; i < 2; i++)
        play_node(&p, 2, 16);
    int64_t a = play_submit(&p, 7, 50, "2", 1, 0);
    play_plan(&p);
    int64_t g = play_gang(&p, 7, 50, 2, "2", 0);
    p.now += priorities[CLASS_NORMAL].starved_s * 1000;
    play_plan(&p);
    int64_t late = play_submit(&p, 7, 50, "1", 1, 0);
    play_plan(&p);
    CHECK(play_is(&p, late, PLAY_WAITS, 0) && p.s->claims.heads == 2);
    play_end(&p, a);
    play_plan(&p);
    CHECK(play_is(&p, g, PLAY_RUNS, 0));
}

/* One project and one class: who comes later is behind, and nothing may delay what is held for a gang. */
TEST(what_is_held_for_a_gang_is_never_delayed_by_those_behind_it)
{
    static const char *const asks[] = { "0", "1", "1", "2", "0.5" };
    size_t held = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct rng r = { seed };
        PLAY;
        for (int i = 0; i < 4; i++)
            play_node(&p, 2 + (int)rng_below(&r, 2), 8 + (int64_t)rng_below(&r, 8));
        for (int step = 0; step < 100 && p.ok && !p.late; step++) {
            int64_t who = 0, next = play_next(&p, &who), bound = 1000 * (1 + (int64_t)rng_below(&r, 40));
            if (p.job_count < PLAY_JOBS && rng_below(&r, 2) && rng_below(&r, 4) == 0)
                play_gang(&p, 7, 50, 2 + (int64_t)rng_below(&r, 2), asks[1 + rng_below(&r, 3)], bound);
            else if (p.job_count < PLAY_JOBS && rng_below(&r, 2))
                play_submit(&p, 7, 50, asks[rng_below(&r, COUNT(asks))], 1 + (int64_t)rng_below(&r, 7), bound);
            else if (next < INT64_MAX)
                p.now = MAX(next, p.now), play_end(&p, who);
            while ((next = play_next(&p, &who)) <= p.now)
                play_end(&p, who);
            play_plan(&p);
            held += p.s->claims.heads;
        }
        if (!p.ok || p.late)
            printf("# seed %llu\n", (unsigned long long)seed);
        CHECK(p.ok && !p.late);
    }
    CHECK(held > 500);
}

TEST(who_waits_where_others_yielded_for_a_gang_that_started_elsewhere_is_tried_again)
{
    PLAY;
    play_rules(&p);
    play_node(&p, 1, 4);
    int64_t small = play_submit(&p, 7, 10, "1", 1, 0);
    play_plan(&p);
    play_node(&p, 1, 4);
    play_node(&p, 1, 4);
    int64_t a = play_submit(&p, 7, 50, "1", 1, 0), b = play_submit(&p, 7, 50, "1", 1, 0);
    play_plan(&p);
    p.now += 10;
    play_node(&p, 1, 16);
    int64_t large = play_submit(&p, 7, 10, "1", 8, 0);
    play_plan(&p);
    int64_t gang = play_gang(&p, 8, 50, 2, "1", 0);
    play_plan(&p);
    CHECK(play_is(&p, small, PLAY_YIELDS, 1) && play_is(&p, large, PLAY_YIELDS, 4) && play_claim(&p, gang));
    play_end(&p, large);
    kit_task(p.s, SCHED_JOB_GONE, large, 0, 0); /* it does not come back to the place that it left */
    int64_t other = play_submit(&p, 9, 90, "1", 8, 0);
    play_plan(&p);
    CHECK(play_is(&p, other, PLAY_WAITS, 0));   /* the large node is kept for the gang */
    play_end(&p, a);
    play_end(&p, b);
    play_plan(&p);
    CHECK(play_job(&p, gang)->at_node[0] == 2 && play_job(&p, gang)->at_node[1] == 3 && !p.s->claims.count);
    play_plan(&p);
    CHECK(play_is(&p, other, PLAY_RUNS, 4));
}
