/* Who yields to whom: the fewest, the youngest, within the brake; and the place goes to whom it was freed for. */
#include "base/rand.h"
#include "play.h"
#include "tap.h"

TEST(spot_work_yields_and_the_place_goes_to_whom_it_was_freed_for)
{
    PLAY;
    play_rules(&p);
    play_node(&p, 1, 16);
    int64_t spot = play_submit(&p, 7, 10, "1", 1, 0);
    play_plan(&p);
    int64_t first = play_submit(&p, 8, 50, "1", 1, 0), second = play_submit(&p, 8, 50, "1", 1, 0);
    play_plan(&p);
    CHECK(p.jobs[spot - 1].why == EVICT_SPOT && p.evictions == 1 && p.jobs[spot - 1].for_job == first && play_is(&p, spot, PLAY_YIELDS, 1));
    CHECK(play_claim(&p, first) && !play_claim(&p, second));
    play_plan(&p);
    CHECK(p.evictions == 1);            /* a task is asked once */
    play_end(&p, spot);
    int64_t urgent = play_submit(&p, 9, 90, "1", 1, 0);
    play_plan(&p);
    CHECK(play_is(&p, first, PLAY_RUNS, 1) && play_is(&p, urgent, PLAY_WAITS, 0) && play_is(&p, spot, PLAY_WAITS, 0) && p.s->claims.count == 0 && p.ok);
}

TEST(nobody_yields_unless_the_rules_say_so)
{
    PLAY;
    play_node(&p, 1, 16);
    play_submit(&p, 7, 10, "1", 1, 0);
    play_plan(&p);
    play_submit(&p, 8, 90, "1", 1, 0);
    play_plan(&p);
    CHECK(p.evictions == 0);
    play_rules(&p);
    play_plan(&p);
    CHECK(p.evictions == 1);
    struct sched_rules rules = p.s->rules;
    AUTO(play_free) struct play q = play_new();
    play_node(&q, 1, 16);
    int64_t low = play_submit(&q, 7, 30, "1", 1, 0);
    sched_apply(q.s, &(struct sched_event){ .kind = SCHED_RULES, .rules = rules });
    play_plan(&q);
    play_submit(&q, 8, 90, "1", 1, 0);
    play_plan(&q);
    CHECK(q.evictions == 0);
    rules.preempt[CLASS_URGENT] |= 1 << CLASS_LOW;
    sched_apply(q.s, &(struct sched_event){ .kind = SCHED_RULES, .rules = rules });
    struct sched_plan plan = sched_plan(q.s, q.now, 10, q.mem);
    CHECK(plan.eviction_count == 1 && plan.evictions[0].job == low && plan.evictions[0].why == EVICT_CLASS);
}

TEST(an_eviction_that_the_door_did_not_take_is_asked_again_after_a_moment)
{
    PLAY;
    play_rules(&p);
    play_node(&p, 1, 16);
    int64_t spot = play_submit(&p, 7, 10, "1", 1, 0);
    play_plan(&p);
    int64_t job = play_submit(&p, 8, 50, "1", 1, 0);
    CHECK(sched_plan(p.s, p.now, 10, p.mem).eviction_count == 1);
    kit_task(p.s, SCHED_TASK_KEPT, spot, 0, 0);
    CHECK(!play_claim(&p, job));
    struct sched_plan plan = sched_plan(p.s, p.now, 10, p.mem);
    CHECK(plan.eviction_count == 0 && plan.next_ms == p.now + EVICT_PAUSE_MS);
    CHECK(sched_plan(p.s, plan.next_ms, 10, p.mem).eviction_count == 1 && play_claim(&p, job));
}

TEST(who_was_kept_from_a_place_by_an_eviction_that_the_door_did_not_take_is_tried_at_once)
{
    PLAY;
    play_rules(&p);
    play_node(&p, 2, 16);
    int64_t spot = play_submit(&p, 7, 10, "1", 1, 0);
    play_plan(&p);
    int64_t both = play_submit(&p, 8, 50, "2", 1, 0), other = play_submit(&p, 7, 10, "1", 1, 0);
    CHECK(sched_plan(p.s, p.now, 10, p.mem).eviction_count == 1 && play_claim(&p, both));
    kit_task(p.s, SCHED_TASK_KEPT, spot, 0, 0);
    struct sched_plan plan = sched_plan(p.s, p.now, 10, p.mem);
    CHECK(plan.count == 1 && plan.placements[0].job == other);
}

TEST(many_tasks_of_a_line_are_made_room_for_at_once)
{
    PLAY;
    play_rules(&p);
    play_node(&p, 4, 16);
    for (int i = 0; i < 4; i++)
        play_submit(&p, 7, 10, "1", 1, 0);
    play_plan(&p);
    for (int i = 0; i < 3; i++)
        play_submit(&p, 8, 50, "1", 1, 0);
    play_plan(&p);
    CHECK(p.evictions == 3 && p.s->claims.evicts == 3);
    play_end(&p, 4);
    play_end(&p, 3);
    play_plan(&p);
    CHECK((p.jobs[4].fate == PLAY_RUNS) + (p.jobs[5].fate == PLAY_RUNS) + (p.jobs[6].fate == PLAY_RUNS) == 2 && p.ok);
}

TEST(the_brake_holds_and_lets_go)
{
    PLAY;
    struct sched_rules rules = SCHED_RULES_USUAL;
    rules.brake_permille = 300;         /* of 8: two, since a node's two always may */
    rules.brake_window_ms = 60000;
    sched_apply(p.s, &(struct sched_event){ .kind = SCHED_RULES, .rules = rules });
    for (int i = 0; i < 4; i++)
        play_node(&p, 2, 16);
    for (int i = 0; i < 8; i++)
        play_submit(&p, 7, 10, "1", 1, 0);
    play_plan(&p);
    for (int i = 0; i < 6; i++)
        play_submit(&p, 8, 50, "1", 1, 0);
    play_plan(&p);
    CHECK(p.evictions == 2 && p.plan.next_ms == p.now + 60000);
    p.now += 59999;
    play_plan(&p);
    CHECK(p.evictions == 2);
    p.now++;
    play_plan(&p);
    CHECK(p.evictions == 4);
    rules.brake_permille = 0;
    sched_apply(p.s, &(struct sched_event){ .kind = SCHED_RULES, .rules = rules });
    p.now += 100000;
    play_plan(&p);
    CHECK(p.evictions == 4 && p.ok);
}

/* The door has the window in its store; a planner that begins anew is told of it, in whatever order. What the door did not take does not count. */
TEST(the_brake_counts_as_the_door_does_after_a_restart_too)
{
    for (int restart = 0; restart < 2; restart++) {
        PLAY;
        struct sched_rules rules = SCHED_RULES_USUAL;
        rules.brake_permille = 500;     /* of 8: four */
        rules.brake_window_ms = 60000;
        for (int i = 0; i < 4; i++)
            play_node(&p, 2, 16);
        for (int i = 0; i < 8; i++)
            play_submit(&p, 7, 10, "1", 1, 0);
        p.now = 101000;
        play_plan(&p);
        if (restart) {
            sched_apply(p.s, &(struct sched_event){ .kind = SCHED_EVICTED, .at_ms = 100500, .count = 1000 });
            sched_apply(p.s, &(struct sched_event){ .kind = SCHED_EVICTED, .at_ms = 100000, .count = 2000 });
            sched_apply(p.s, &(struct sched_event){ .kind = SCHED_EVICTED, .at_ms = 30000, .count = 9000 });    /* long ago */
        }
        sched_apply(p.s, &(struct sched_event){ .kind = SCHED_RULES, .rules = rules });
        for (int i = 0; i < 8; i++)
            play_submit(&p, 8, 50, "1", 1, 0);
        struct sched_plan plan = sched_plan(p.s, p.now, 100, p.mem);
        CHECK(plan.eviction_count == (restart ? 1 : 4));
        for (size_t i = 0; i < plan.eviction_count; i++)
            kit_task(p.s, SCHED_TASK_KEPT, plan.evictions[i].job, plan.evictions[i].task, 0);
        p.now += EVICT_PAUSE_MS;
        plan = sched_plan(p.s, p.now, 100, p.mem);
        CHECK(plan.eviction_count == (restart ? 1 : 4));
        for (size_t i = 0; i < plan.eviction_count; i++)        /* taken, and counted a moment later */
            sched_apply(p.s, &(struct sched_event){ .kind = SCHED_EVICTED, .job = plan.evictions[i].job, .at_ms = p.now + 5, .count = 1000 });
        CHECK(p.s->brake_count - p.s->brake_from == (restart ? 3 : 4));
        CHECK(sched_plan(p.s, p.now + 5, 100, p.mem).eviction_count == 0);
    }
}

/* --- the fewest and youngest, against all sets */

struct choice { int count; int64_t oldest; };

static bool fits_with(const struct play *p, int node, unsigned gone, int64_t milli, int64_t cpu)
{
    int64_t cpu_free = p->nodes[node].cpu_milli, left[SCHED_GPUS];
    int64_t owner[SCHED_GPUS] = { 0 };
    for (int g = 0; g < SCHED_GPUS; g++)
        left[g] = g < p->nodes[node].gpu_count ? 1000 : 0;
    for (int i = 0; i < p->job_count; i++) {
        const struct play_job *j = &p->jobs[i];
        if (j->fate != PLAY_RUNS || j->node != node + 1 || (gone >> i & 1))
            continue;
        cpu_free -= j->e.shape.cpu_milli;
        for (int k = 0; k < j->gpus; k++) {
            left[j->gpu[k].index] -= j->gpu[k].milli;
            owner[j->gpu[k].index] = j->e.project;
        }
    }
    int64_t whole = 0;
    bool share = false;
    for (int g = 0; g < SCHED_GPUS; g++) {
        whole += left[g] == 1000;
        share = share || (left[g] >= milli && (left[g] == 1000 || owner[g] == 8));
    }
    return cpu_free >= cpu && (milli >= 1000 ? whole >= milli / 1000 : !milli || share);
}

static struct choice by_force(const struct play *p, int64_t milli, int64_t cpu)
{
    struct choice best = { 99, 0 };
    for (unsigned set = 1; set < 1u << p->job_count; set++) {
        struct choice c = { 0, INT64_MAX };
        int node = -1;
        for (int i = 0; i < p->job_count; i++)
            if (set >> i & 1) {
                const struct play_job *j = &p->jobs[i];
                bool may = j->fate == PLAY_RUNS && priority_of(j->e.priority) == CLASS_SPOT && (node < 0 || node == j->node - 1);
                c.count += may ? 1 : 99;
                node = may ? (int)j->node - 1 : node;
                c.oldest = MIN(c.oldest, j->since_ms);
            }
        if (node < 0 || c.count > best.count || (c.count == best.count && c.oldest <= best.oldest) || !fits_with(p, node, set, milli, cpu))
            continue;
        best = c;
    }
    return best;
}

TEST(the_victims_are_the_fewest_and_then_the_youngest_that_suffice)
{
    static const char *const asks[] = { "0", "1", "1", "2", "0.5", "0.25", "0.5" };
    static const char *const wants[] = { "0", "1", "2", "4", "0.5", "3" };
    int found = 0, several = 0;
    for (uint64_t seed = 1; seed <= 600; seed++) {
        struct rng r = { seed };
        PLAY;
        play_rules(&p);
        for (int i = 0; i < 2; i++)
            play_node(&p, 2 + (int)rng_below(&r, 3), 6 + (int64_t)rng_below(&r, 6));
        for (int i = 0; i < 11; i++) {
            p.now += (int64_t)rng_below(&r, 3) * 100;
            play_submit(&p, 7 + (int64_t)rng_below(&r, 2), rng_below(&r, 4) ? 10 : 90, asks[rng_below(&r, COUNT(asks))], 1 + (int64_t)rng_below(&r, 4), 0);
            int evictions = p.evictions;
            p.s->rules.preempt[CLASS_URGENT] = 0;
            play_plan(&p);
            p.ok = p.ok && evictions == p.evictions;
        }
        play_rules(&p);
        for (int i = 0; i < p.job_count; i++)       /* those that wait are not part of the question */
            if (p.jobs[i].fate == PLAY_WAITS) {
                p.jobs[i].fate = PLAY_OVER;
                kit_task(p.s, SCHED_JOB_GONE, i + 1, 0, 0);
            }
        struct sched_event e = kit_job_event(50, 8, 50, wants[rng_below(&r, COUNT(wants))], 1 + (int64_t)rng_below(&r, 6), 100, 1);
        sched_apply(p.s, &e);
        struct sched_plan plan = sched_plan(p.s, p.now, 10, p.mem);
        if (plan.count)
            continue;
        struct choice want = by_force(&p, e.shape.gpu.milli, e.shape.cpu_milli), got = { (int)plan.eviction_count, INT64_MAX };
        for (size_t i = 0; i < plan.eviction_count; i++)
            got.oldest = MIN(got.oldest, p.jobs[plan.evictions[i].job - 1].since_ms);
        bool same = want.count == 99 ? !got.count : got.count == want.count && got.oldest == want.oldest;
        if (!same)
            printf("# seed %llu: %d since %lld, not %d since %lld\n", (unsigned long long)seed, got.count, (long long)got.oldest, want.count, (long long)want.oldest);
        CHECK(same && p.ok);
        found += got.count > 0;
        several += got.count > 1;
    }
    CHECK(found > 100 && several > 30);
}

/* Jobs of all classes come and go; the brake is never exceeded, nobody but spot yields, and who was made room for gets it. */
TEST(random_lives_with_evictions_keep_the_brake_and_give_each_place_to_its_job)
{
    static const char *const asks[] = { "0", "1", "2", "0.5", "4" };
    int evicted = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct rng r = { seed };
        PLAY;
        int64_t log_ms[500], log_milli[500];
        int logged = 0;
        struct sched_rules rules = SCHED_RULES_USUAL;
        rules.brake_permille = 400;
        rules.brake_window_ms = 20000;
        rules.notice_ms = PLAY_NOTICE;
        sched_apply(p.s, &(struct sched_event){ .kind = SCHED_RULES, .rules = rules });
        for (int i = 0; i < 3; i++)
            play_node(&p, 4, 12);
        for (int step = 0; step < 100 && p.ok; step++) {
            static const int64_t priorities_of[] = { 10, 10, 10, 50, 70, 90 };
            int64_t before = p.evicted_milli, sum = 0;
            p.now += (int64_t)rng_below(&r, 3000);
            if (p.job_count < PLAY_JOBS && rng_below(&r, 3))
                play_submit(&p, 7 + (int64_t)rng_below(&r, 2), priorities_of[rng_below(&r, 6)], asks[rng_below(&r, COUNT(asks))], 1 + (int64_t)rng_below(&r, 4),
                            rng_below(&r, 2) ? 1000 * (1 + (int64_t)rng_below(&r, 20)) : 0);
            for (int i = 0; i < p.job_count; i++) {
                struct play_job *j = &p.jobs[i];
                if ((j->fate == PLAY_YIELDS && rng_below(&r, 2)) || (j->fate == PLAY_RUNS && j->e.bound_ms && j->since_ms + j->e.bound_ms <= p.now)
                    || (j->fate == PLAY_RUNS && rng_below(&r, 40) == 0))
                    play_end(&p, i + 1);
            }
            play_plan(&p);
            log_ms[logged] = p.now;
            log_milli[logged++] = p.evicted_milli - before;
            for (int i = 0; i < logged; i++)
                sum += log_ms[i] + rules.brake_window_ms > p.now ? log_milli[i] : 0;
            p.ok = p.ok && sum <= 4800;
            for (size_t i = 0; i < p.s->claims.count; i++) {   /* as soon as it could start on its place, it has */
                struct claim *cl = p.s->claims.at[i];
                struct job *j = cl->kind == CLAIM_EVICT ? map_get(p.s->jobs, cl->job) : NULL;
                p.ok = p.ok && (cl->kind != CLAIM_EVICT || (j && !claim_free(p.s, cl, j)));
            }
        }
        if (!p.ok)
            printf("# seed %llu\n", (unsigned long long)seed);
        CHECK(p.ok);
        evicted += p.evictions;
    }
    CHECK(evicted > 300);
}
