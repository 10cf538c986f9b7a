/* Room in a time to come. */
#include "base/rand.h"
#include "play.h"
#include "tap.h"

static void reserve(struct play *p, int64_t id, int64_t project, const char *gpus, int64_t count, int64_t from_ms, int64_t until_ms)
{
    struct sched_event e = kit_job_event(0, project, 0, gpus, 0, 0, 1);
    e.kind = SCHED_RESERVE;
    e.reserve = id;
    e.count = count;
    e.from_ms = from_ms;
    e.until_ms = until_ms;
    sched_apply(p->s, &e);
}

TEST(before_its_time_only_spot_work_and_what_is_over_by_then_comes_to_a_reserved_place)
{
    PLAY;
    play_rules(&p);
    play_node(&p, 2, 16);
    reserve(&p, 1, 8, "2", 1, 101000, 201000);
    play_plan(&p);
    int64_t endless = play_submit(&p, 7, 50, "1", 1, 0), brief = play_submit(&p, 7, 50, "1", 1, 50000), too_long = play_submit(&p, 7, 50, "1", 1, 100001),
            owner = play_submit(&p, 8, 50, "1", 1, 0), spot = play_submit(&p, 7, 10, "1", 1, 0);
    play_plan(&p);
    CHECK(play_is(&p, endless, PLAY_WAITS, 0) && play_is(&p, brief, PLAY_RUNS, 1) && play_is(&p, too_long, PLAY_WAITS, 0));
    CHECK(play_is(&p, owner, PLAY_WAITS, 0) && play_is(&p, spot, PLAY_RUNS, 1) && p.plan.next_ms == 101000);
    p.now = 51000;
    play_end(&p, brief);
    play_plan(&p);
    p.now = 101000;
    play_plan(&p);
    CHECK(play_is(&p, owner, PLAY_RUNS, 1) && play_is(&p, spot, PLAY_RUNS, 1) && play_is(&p, endless, PLAY_WAITS, 0));
    p.now = 201000;
    play_end(&p, owner);
    play_plan(&p);
    CHECK(play_is(&p, endless, PLAY_RUNS, 1) && p.s->claims.count == p.s->claims.evicts && p.ok);
}

TEST(what_was_lent_yields_when_the_owner_comes_whatever_the_brake_says)
{
    PLAY;
    play_node(&p, 2, 16);
    play_node(&p, 2, 16);
    reserve(&p, 1, 8, "2", 1, 5000, 900000);
    int64_t spot = play_submit(&p, 7, 10, "1", 1, 0), other = play_submit(&p, 7, 10, "2", 1, 0), third = play_submit(&p, 7, 10, "1", 1, 0);
    play_plan(&p);
    CHECK(play_is(&p, spot, PLAY_RUNS, 2) && play_is(&p, other, PLAY_RUNS, 1) && play_is(&p, third, PLAY_RUNS, 2));
    p.now = 6000;
    int64_t owner = play_submit(&p, 8, 50, "2", 1, 0);
    play_plan(&p);
    CHECK(p.evictions == 1 && play_is(&p, other, PLAY_YIELDS, 1) && p.jobs[other - 1].for_job == owner);
    play_end(&p, other);
    play_plan(&p);
    CHECK(play_is(&p, owner, PLAY_RUNS, 1) && play_is(&p, other, PLAY_WAITS, 0));
    play_end(&p, owner);
    play_plan(&p);
    CHECK(play_is(&p, other, PLAY_RUNS, 1) && p.ok);        /* idle again: lent again */
}

TEST(a_reservation_that_goes_leaves_nothing_behind_and_one_that_cannot_be_says_how_much_could)
{
    PLAY;
    AUTO(str_done) struct str before = { 0 }, after = { 0 };
    play_node(&p, 4, 16);
    play_node(&p, 4, 16);
    play_submit(&p, 7, 50, "1", 1, 0);
    play_submit(&p, 7, 50, "3", 1, 100000);
    play_submit(&p, 7, 10, "2", 1, 0);
    play_plan(&p);
    sched_print(p.s, &before);
    struct sched_event e = kit_job_event(0, 8, 0, "2", 0, 0, 1);
    e.count = 9;
    e.from_ms = 50000;
    e.until_ms = 60000;
    CHECK(sched_can_reserve(p.s, &e, p.now) == 2);
    e.from_ms = 101000;
    e.until_ms = 200000;
    CHECK(sched_can_reserve(p.s, &e, p.now) == 3);
    CHECK(sched_can_reserve(p.s, &e, 200000) == 0);
    reserve(&p, 3, 8, "2", 2, 5000, 900000);
    play_plan(&p);
    CHECK(p.s->claims.count == 2);
    sched_apply(p.s, &(struct sched_event){ .kind = SCHED_RESERVE_GONE, .reserve = 3 });
    sched_print(p.s, &after);
    CHECK(text_is(before.at, after.at) && p.s->claims.count == 0);
}

TEST(a_part_whose_node_goes_finds_another_place)
{
    PLAY;
    play_node(&p, 2, 16);
    play_node(&p, 2, 16);
    reserve(&p, 1, 8, "2", 1, 5000, 900000);
    play_plan(&p);
    CHECK(p.s->claims.count == 1 && p.s->claims.at[0]->node == 1);
    sched_apply(p.s, &p.nodes[0]);      /* told again: it keeps its claim */
    CHECK(p.s->claims.count == 1 && p.s->claims.at[0]->taken);
    sched_apply(p.s, &(struct sched_event){ .kind = SCHED_NODE_GONE, .node = 1 });
    CHECK(p.s->claims.count == 0);
    play_plan(&p);
    CHECK(p.s->claims.count == 1 && p.s->claims.at[0]->node == 2);
    p.nodes[1].usable = false;
    sched_apply(p.s, &p.nodes[1]);
    CHECK(p.s->claims.count == 0);
}

/* The owner's jobs start at once, or after the notice of those it was lent to, whatever the others do. */
TEST(reservations_are_never_broken)
{
    static const char *const asks[] = { "0", "1", "2", "0.5", "4" };
    static const int64_t priorities_of[] = { 10, 10, 50, 70, 90 };
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct rng r = { seed };
        PLAY;
        play_rules(&p);
        for (int i = 0; i < 3; i++)
            play_node(&p, 4, 12);
        reserve(&p, 1, 8, "2", 3, 30000, 900000);
        for (int step = 0; step < 40 && p.ok; step++) {
            int64_t who;
            p.now += (int64_t)rng_below(&r, 1000);
            if (p.job_count < PLAY_JOBS - 3 && rng_below(&r, 4))
                play_submit(&p, 7, priorities_of[rng_below(&r, 5)], asks[rng_below(&r, COUNT(asks))], 1 + (int64_t)rng_below(&r, 4),
                            rng_below(&r, 2) ? 1000 * (1 + (int64_t)rng_below(&r, 20)) : 0);
            while (play_next(&p, &who) <= p.now)
                play_end(&p, who);
            play_plan(&p);
        }
        p.now = MAX(p.now, 30000);
        int64_t who, first = p.job_count + 1;
        for (int i = 0; i < 3; i++)
            play_submit(&p, 8, 30, "2", 1, 0);
        for (int round = 0; round < 3; round++) {
            while (play_next(&p, &who) <= p.now)
                play_end(&p, who);
            play_plan(&p);
        }
        for (int i = 0; i < 3; i++)
            p.ok = play_is(&p, first + i, PLAY_RUNS, 0) && p.ok;
        if (!p.ok)
            printf("# seed %llu\n", (unsigned long long)seed);
        CHECK(p.ok);
    }
}
