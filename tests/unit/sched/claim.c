/* What is kept for somebody; and a world so small that everything that can happen in it does. */
#include "play.h"
#include "tap.h"
#include <stdlib.h>

TEST(a_claim_closes_its_devices_and_leaves_the_rest)
{
    PLAY;
    play_node(&p, 2, 8);
    int64_t never = play_submit(&p, 7, 50, "4", 1, 0);
    struct claim *cl = claim_new(p.s, &(struct claim){ .kind = CLAIM_EVICT, .job = never, .node = 1, .start_ms = 0, .cpu_milli = 5000, .count = 1,
                                                       .gpus = { { 0, 1000, 1000 } } });
    int64_t two = play_submit(&p, 7, 50, "2", 1, 0), one = play_submit(&p, 7, 50, "1", 3, 0), cpu = play_submit(&p, 7, 50, "0", 1, 0);
    struct sched_plan plan = sched_plan(p.s, p.now, 10, p.mem);
    CHECK(plan.count == 1 && plan.placements[0].job == one && ((const struct order_gpu *)plan.placements[0].gpus.at)->index == 1);
    claim_lift(p.s, cl);
    CHECK(!fleet_node(&p.s->fleet, 1)->gpus[0].closed && !fleet_node(&p.s->fleet, 1)->cpu_claimed);
    claim_take(p.s, cl);
    claim_take(p.s, cl);
    CHECK(fleet_node(&p.s->fleet, 1)->gpus[0].closed == 1 && fleet_node(&p.s->fleet, 1)->cpu_claimed == 5000);
    claim_drop(p.s, cl);
    CHECK(!fleet_node(&p.s->fleet, 1)->gpus[0].closed && !fleet_node(&p.s->fleet, 1)->cpu_claimed && p.s->claims.count == 0);
    (void)two, (void)cpu;
}

TEST(claims_are_not_part_of_the_picture)
{
    PLAY;
    AUTO(str_done) struct str before = { 0 }, after = { 0 };
    play_node(&p, 2, 8);
    sched_print(p.s, &before);
    claim_new(p.s, &(struct claim){ .kind = CLAIM_HEAD, .job = 99, .node = 1, .start_ms = 5000, .cpu_milli = 5000, .count = 1, .gpus = { { 1, 1000, 1000 } } });
    sched_print(p.s, &after);
    CHECK(text_is(before.at, after.at));
    claims_drop_of(p.s, 99);
    CHECK(p.s->claims.count == 0 && p.s->claims.heads == 0);
}

TEST(what_ends_before_is_not_kept_from_others_twice)
{
    PLAY;
    play_node(&p, 0, 8);
    play_submit(&p, 7, 50, "0", 5, 9000);
    play_plan(&p);
    struct claim like = { .kind = CLAIM_HEAD, .job = 98, .node = 1, .start_ms = 10000, .cpu_milli = 4000 };
    claim_new(p.s, &like);
    const struct node *n = fleet_node(&p.s->fleet, 1);
    CHECK(n->cpu_claimed == 0);         /* 5 CPUs are given back by then */
    like.job = 99;
    claim_new(p.s, &like);
    CHECK(n->cpu_claimed == 3000);
    play_end(&p, 1);
    CHECK(n->cpu_claimed == 8000);      /* they are free now, and still wanted */
}

TEST(of_claims_that_fall_together_with_their_devices_nothing_is_left)
{
    PLAY;
    play_node(&p, 2, 8);
    struct claim like = { .kind = CLAIM_HEAD, .job = 98, .node = 1, .start_ms = 10000, .cpu_milli = 4000, .count = 1, .gpus = { { 0, 1000, 1000 } } };
    claim_new(p.s, &like);
    like.job = 99;
    claim_new(p.s, &like);
    CHECK(fleet_node(&p.s->fleet, 1)->cpu_claimed == 8000);
    p.nodes[0].gpus[0].healthy = false;
    sched_apply(p.s, &p.nodes[0]);
    CHECK(p.s->claims.count == 0 && !fleet_node(&p.s->fleet, 1)->cpu_claimed);
    play_submit(&p, 7, 50, "0", 8, 0);
    CHECK(sched_plan(p.s, p.now, 10, p.mem).count == 1);
}

/* --- everything that can happen */

static void oldest_ends(struct play *p, enum play_fate fate)
{
    int best = -1;
    for (int i = 0; i < p->job_count; i++)
        if (p->jobs[i].fate == fate && (best < 0 || p->jobs[i].since_ms < p->jobs[best].since_ms))
            best = i;
    if (best >= 0)
        play_end(p, best + 1);
}

static void act(struct play *p, int what)
{
    struct sched_event e = kit_job_event(0, 8, 0, "2", 0, 0, 1);
    switch (what) {
    case 0: play_submit(p, 7, 10, "1", 1, 0); break;
    case 1: play_submit(p, 7, 50, "2", 1, 20000); break;
    case 2: play_submit(p, 9, 90, "1", 1, 0); break;
    case 3: play_submit(p, 8, 50, "2", 1, 0); break;
    case 4: oldest_ends(p, PLAY_RUNS); break;
    case 5: oldest_ends(p, PLAY_YIELDS); break;
    case 6: p->now += 20000; break;
    case 7: play_gang(p, 7, 70, 2, "1", 0); break;
    case 8: play_gang(p, 7, 10, 2, "2", 0); break;
    default:
        e.kind = map_count(p->s->reserves) ? SCHED_RESERVE_GONE : SCHED_RESERVE;
        e.reserve = e.count = 1;
        e.from_ms = p->now + 20000;
        e.until_ms = p->now + 60000;
        sched_apply(p->s, &e);
    }
    for (int i = 0; i < p->job_count; i++)
        if (p->jobs[i].fate == PLAY_RUNS && p->jobs[i].e.bound_ms && p->jobs[i].since_ms + p->jobs[i].e.bound_ms <= p->now)
            play_end(p, i + 1);
    play_plan(p);
}

static int count_of(const struct play *p, enum play_fate fate)
{
    int n = 0;
    for (int i = 0; i < p->job_count; i++)
        n += p->jobs[i].fate == fate;
    return n;
}

/* Whoever was asked leaves, and comes back: that must come to rest. Then one after the other ends, and all must have run. */
static bool comes_to_an_end(struct play *p)
{
    for (int round = 0; count_of(p, PLAY_YIELDS); round++) {
        if (round > 8)
            return false;
        for (int i = 0; i < p->job_count; i++)
            if (p->jobs[i].fate == PLAY_YIELDS)
                play_end(p, i + 1);
        play_plan(p);
    }
    for (int round = 0; count_of(p, PLAY_OVER) < p->job_count; round++) {
        if (round > 40)
            return false;
        if (count_of(p, PLAY_RUNS) + count_of(p, PLAY_YIELDS) == 0) {
            if (p->plan.next_ms == INT64_MAX)
                return false;
            p->now = p->plan.next_ms;
        }
        oldest_ends(p, PLAY_YIELDS);
        oldest_ends(p, PLAY_RUNS);
        play_plan(p);
    }
    return p->s->claims.heads + p->s->claims.evicts == 0;
}

static bool run(const int *acts, int count)
{
    PLAY;
    play_rules(&p);
    play_node(&p, 2, 8);
    play_node(&p, 2, 8);
    for (int i = 0; i < count && p.ok; i++)
        act(&p, acts[i]);
    bool ok = p.ok && comes_to_an_end(&p) && p.ok;
    for (int i = 0; !ok && i < count; i++)
        printf("%s%d%s", i ? " " : "# after ", acts[i], i + 1 < count ? "" : "\n");
    return ok;
}

TEST(in_a_small_world_nothing_that_happens_ends_in_a_deadlock_or_an_endless_chase)
{
    enum { ACTS = 10, MOST = 8 };
    const char *soak = getenv("ARCUS_SOAK");
    int count = soak && *soak ? 5 : 4, acts[MOST] = { 0 };
    size_t runs = 0;
    for (bool more = true; more; runs++) {
        bool ok = run(acts, count);
        CHECK(ok);
        if (!ok)
            break;
        int i = 0;
        while (i < count && ++acts[i] == ACTS)
            acts[i++] = 0;
        more = i < count;
    }
    CHECK(runs == (soak && *soak ? 100000 : 10000));
}
