/* What is held for the first in line, and who may run under it. */
#include "base/rand.h"
#include "play.h"
#include "tap.h"

TEST(the_first_that_cannot_start_gets_a_time_and_others_run_only_if_they_are_over_by_then)
{
    PLAY;
    play_node(&p, 2, 16);
    int64_t a = play_submit(&p, 7, 50, "1", 1, 10000);
    play_plan(&p);
    int64_t head = play_submit(&p, 7, 50, "2", 1, 0), longer = play_submit(&p, 7, 50, "1", 1, 0), near = play_submit(&p, 7, 50, "1", 1, 11000),
            shorter = play_submit(&p, 7, 50, "1", 1, 10000);
    play_plan(&p);
    CHECK(p.plan.start_count == 1 && p.plan.starts[0].job == head && p.plan.starts[0].start_ms == 11000 && p.plan.starts[0].node == 1);
    CHECK(play_is(&p, a, PLAY_RUNS, 1) && play_is(&p, head, PLAY_WAITS, 0) && play_is(&p, longer, PLAY_WAITS, 0));
    CHECK(play_is(&p, near, PLAY_WAITS, 0) && play_is(&p, shorter, PLAY_RUNS, 1));
    p.now = 11000;
    play_end(&p, a);
    play_end(&p, shorter);
    play_plan(&p);
    CHECK(play_is(&p, head, PLAY_RUNS, 1) && p.s->claims.count == 0 && p.ok && !p.late);
}

TEST(what_the_first_does_not_need_may_be_used_by_anybody)
{
    PLAY;
    play_node(&p, 4, 16);
    play_submit(&p, 7, 50, "2", 4, 10000);
    play_plan(&p);
    play_submit(&p, 7, 50, "3", 10, 0);
    int64_t many_cpus = play_submit(&p, 7, 50, "0", 7, 0), fits = play_submit(&p, 7, 50, "1", 6, 0), no_more = play_submit(&p, 7, 50, "1", 0, 0);
    play_plan(&p);
    CHECK(play_is(&p, many_cpus, PLAY_WAITS, 0) && play_is(&p, fits, PLAY_RUNS, 1) && p.jobs[fits - 1].gpu[0].index == 3);
    CHECK(play_is(&p, no_more, PLAY_WAITS, 0) && p.ok);
}

TEST(a_start_that_nobody_knows_is_not_held)
{
    PLAY;
    play_node(&p, 2, 16);
    play_submit(&p, 7, 50, "1", 1, 0);
    int64_t head = play_submit(&p, 7, 50, "2", 1, 0), other = play_submit(&p, 7, 50, "1", 1, 0);
    play_plan(&p);
    CHECK(p.plan.start_count == 0 && p.s->claims.count == 0 && play_is(&p, head, PLAY_WAITS, 0) && play_is(&p, other, PLAY_RUNS, 1));
}

TEST(the_starved_get_a_node_where_nothing_new_starts)
{
    PLAY;
    play_node(&p, 2, 16);
    play_node(&p, 2, 16);
    int64_t a = play_submit(&p, 7, 50, "1", 1, 0), c = play_submit(&p, 7, 50, "1", 1, 0), b = play_submit(&p, 7, 50, "1", 1, 0);
    play_plan(&p);
    int64_t head = play_submit(&p, 7, 50, "2", 1, 0);
    p.now += priorities[CLASS_NORMAL].starved_s * 1000;
    play_plan(&p);
    int64_t late = play_submit(&p, 7, 50, "1", 1, 0), brief = play_submit(&p, 7, 50, "1", 1, 10);
    play_plan(&p);
    CHECK(play_is(&p, a, PLAY_RUNS, 1) && play_is(&p, c, PLAY_RUNS, 1) && play_is(&p, b, PLAY_RUNS, 2) && play_is(&p, late, PLAY_WAITS, 0) && play_is(&p, brief, PLAY_WAITS, 0));
    play_end(&p, b);
    play_plan(&p);
    CHECK(play_is(&p, head, PLAY_RUNS, 2) && p.s->claims.count == 0);
}

TEST(a_held_start_comes_nearer_when_something_ends_early)
{
    PLAY;
    play_node(&p, 2, 16);
    play_node(&p, 2, 16);
    int64_t a = play_submit(&p, 7, 50, "2", 1, 10000), b = play_submit(&p, 7, 50, "1", 1, 50000), c = play_submit(&p, 7, 50, "1", 1, 90000);
    play_plan(&p);
    CHECK(p.jobs[b - 1].node == p.jobs[c - 1].node && p.jobs[a - 1].node != p.jobs[b - 1].node);
    play_end(&p, a);
    int64_t again = play_submit(&p, 7, 50, "2", 1, 95000);
    play_plan(&p);
    int64_t head = play_submit(&p, 7, 50, "2", 1, 0);
    play_plan(&p);
    CHECK(play_claim(&p, head) && play_claim(&p, head)->start_ms == 91000 && play_claim(&p, head)->node == p.jobs[b - 1].node);
    p.now = 2000;
    play_end(&p, c);
    play_plan(&p);
    CHECK(play_claim(&p, head)->start_ms == 51000 && p.plan.start_count == 1 && play_is(&p, again, PLAY_RUNS, 0));
}

TEST(who_comes_before_the_head_takes_its_place_and_its_claim)
{
    PLAY;
    play_node(&p, 2, 16);
    play_submit(&p, 7, 50, "1", 1, 10000);
    play_plan(&p);
    int64_t head = play_submit(&p, 7, 50, "2", 1, 0);
    play_plan(&p);
    int64_t high = play_submit(&p, 7, 70, "1", 1, 0);
    play_plan(&p);
    CHECK(play_is(&p, high, PLAY_RUNS, 1) && !play_claim(&p, head));      /* nobody knows now */
}

TEST(asking_when_changes_nothing_and_tells_what_will_be)
{
    PLAY;
    AUTO(str_done) struct str before = { 0 }, after = { 0 };
    play_node(&p, 2, 16);
    play_submit(&p, 7, 50, "2", 1, 10000);
    play_plan(&p);
    sched_print(p.s, &before);
    struct sched_event one = kit_job_event(9, 7, 50, "1", 1, 100, 1), none = kit_job_event(9, 7, 50, "4", 1, 100, 1),
                       cpu = kit_job_event(9, 7, 50, "0", 1, 100, 1);
    struct start_hint h = sched_when(p.s, &one, p.now);
    CHECK(h.node == 1 && h.start_ms == 11000);
    h = sched_when(p.s, &none, p.now);
    CHECK(!h.node && h.start_ms == INT64_MAX);
    h = sched_when(p.s, &cpu, p.now);
    CHECK(h.node == 1 && h.start_ms == p.now);
    sched_print(p.s, &after);
    CHECK(text_is(before.at, after.at));
}

/* One project and one class, so that who comes later is behind: then nothing may delay what is held. Tasks end when they must, or before. */
TEST(a_held_start_is_never_delayed_by_those_behind_it)
{
    static const char *const asks[] = { "0", "1", "1", "2", "4", "0.5", "3" };
    size_t held = 0, under = 0;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct rng r = { seed };
        PLAY;
        for (int i = 0; i < 3; i++)
            play_node(&p, 2 + (int)rng_below(&r, 3), 8 + (int64_t)rng_below(&r, 8));
        for (int step = 0; step < 120 && p.ok && !p.late; step++) {
            int64_t who = 0, next = play_next(&p, &who);
            if (p.job_count < PLAY_JOBS && rng_below(&r, 2))
                play_submit(&p, 7, 50, asks[rng_below(&r, COUNT(asks))], 1 + (int64_t)rng_below(&r, 7), 1000 * (1 + (int64_t)rng_below(&r, 40)));
            else if (next < INT64_MAX && rng_below(&r, 4))
                p.now = next, play_end(&p, who);
            else if (who)
                play_end(&p, who);      /* early */
            while ((next = play_next(&p, &who)) <= p.now)
                play_end(&p, who);
            play_plan(&p);
            held += p.s->claims.heads;
            for (int i = 0; p.s->claims.heads && i < p.job_count; i++)
                under += p.jobs[i].fate == PLAY_RUNS && p.jobs[i].since_ms == p.now && i + 1 > p.s->claims.at[0]->job;
        }
        if (!p.ok || p.late)
            printf("# seed %llu\n", (unsigned long long)seed);
        CHECK(p.ok && !p.late);
    }
    CHECK(held > 1000 && under > 100);
}
