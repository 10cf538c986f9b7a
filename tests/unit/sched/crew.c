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
