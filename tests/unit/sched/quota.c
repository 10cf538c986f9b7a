/* Limits in the planner's picture: who is held by what, and that nothing is ever exceeded. */
#include "base/rand.h"
#include "kit.h"
#include "sched/sched_internal.h"
#include "tap.h"

static const int64_t start = INT64_C(1790000000000), hour = 3600 * 1000;

TEST(a_quota_counts_what_is_held)
{
    struct project p = { .id = 7, .quota = { 1000, 2000, 300, -1 }, .gpu_held = 500, .cpu_held = 1000, .mem_held = 200 };
    struct class c = { .project = &p, .shape = { .cpu_milli = 1000, .mem_mib = 100, .gpu.milli = 500 } };
    CHECK(quota_allows(NULL, &c));
    p.gpu_held = 501;
    CHECK(!quota_allows(NULL, &c) && c.held_by.limit == LIMIT_PROJECT_GPUS && c.held_by.most == 1000 && c.held_by.needs == 500);
    p.gpu_held = 500, p.cpu_held = 1001;
    CHECK(!quota_allows(NULL, &c));
    p.cpu_held = 1000, p.mem_held = 201;
    CHECK(!quota_allows(NULL, &c));
    p.quota = QUOTA_NONE;
    CHECK(quota_allows(NULL, &c));
}

static void limit(struct sched *s, int64_t owner, const char *model, const struct limit *most)
{
    struct sched_event p = { .kind = SCHED_PROJECT, .project = 7, .quota = QUOTA_NONE }, e = { .kind = SCHED_LIMIT, .project = 7, .owner = owner, .limit = *most };
    text_copy(e.model, sizeof e.model, model);
    sched_apply(s, &p);
    sched_apply(s, &e);
}

static void queue(struct sched *s, int64_t id, int64_t owner, const char *gpus, int64_t tasks, int64_t bound_ms)
{
    struct sched_event e = kit_job_event(id, 7, 50, gpus, 1, 100, tasks);
    e.created_ms = start + id;
    e.owner = owner;
    e.bound_ms = bound_ms;
    sched_apply(s, &e);
}

static void freed(struct sched *s, int64_t job, int64_t task, int64_t from_ms, int64_t to_ms)
{
    struct sched_event e = { .kind = SCHED_TASK_FREED, .job = job, .task = task, .project = 7, .at_ms = to_ms, .used_from_ms = from_ms, .used_until_ms = to_ms };
    sched_apply(s, &e);
}

TEST(a_limit_of_a_user_holds_that_user_alone_and_is_named)
{
    AUTO(sched_free) struct sched *s = sched_new();
    AUTO(arena_free) struct arena *mem = arena_new();
    struct sched_event n = kit_node_event(&(struct kit_node){ 1, "NVIDIA H200", 8, 1000, 64, 64000, false, false });
    struct limit two = LIMIT_NONE;
    two.most[LIMIT_GPUS] = 2000;
    sched_apply(s, &n);
    limit(s, 1, "", &two);
    queue(s, 10, 1, "1", 4, 0);
    queue(s, 11, 2, "1", 4, 0);
    struct sched_plan p = sched_plan(s, start, 100, mem);
    CHECK(p.count == 6 && p.wait_count == 1);
    const struct wait *w = p.waits;
    CHECK(w->job == 10 && w->reason == REASON_QUOTA && w->limit == LIMIT_GPUS && w->owner == 1 && w->most == 2000 && w->needs == 1000);
    two.most[LIMIT_GPUS] = 3000;
    limit(s, 1, "", &two);
    CHECK(sched_plan(s, start, 100, mem).count == 1);       /* what it holds was counted again */
    limit(s, 1, "", &LIMIT_NONE);
    CHECK(sched_plan(s, start, 100, mem).count == 1);
}

TEST(a_limit_of_a_model_leaves_the_other_models)
{
    AUTO(sched_free) struct sched *s = sched_new();
    AUTO(arena_free) struct arena *mem = arena_new();
    struct sched_event a = kit_node_event(&(struct kit_node){ 1, "NVIDIA H200", 4, 1000, 64, 64000, false, false }),
                       b = kit_node_event(&(struct kit_node){ 2, "NVIDIA L4", 4, 1000, 64, 64000, false, false });
    struct limit one = LIMIT_NONE;
    one.most[LIMIT_GPUS] = 1000;
    sched_apply(s, &a);
    sched_apply(s, &b);
    limit(s, 0, "h200", &one);
    queue(s, 10, 1, "1", 8, 0);
    struct sched_plan p = sched_plan(s, start, 100, mem);
    CHECK(p.count == 5 && p.wait_count == 1 && p.waits[0].reason == REASON_QUOTA && text_is(p.waits[0].model, "h200"));
    int there = 0;
    for (size_t i = 0; i < p.count; i++)
        there += p.placements[i].node == 1;
    CHECK(there == 1);
}

TEST(hours_are_held_back_for_what_may_run_and_given_back_for_what_did_not)
{
    AUTO(sched_free) struct sched *s = sched_new();
    AUTO(arena_free) struct arena *mem = arena_new();
    struct sched_event n = kit_node_event(&(struct kit_node){ 1, "NVIDIA H200", 8, 1000, 64, 64000, false, false });
    struct limit day = LIMIT_NONE;
    int64_t midnight = period_begin(0, start) + 24 * hour, now = midnight - 10 * hour;
    day.most[LIMIT_DAY] = 8000;
    sched_apply(s, &n);
    sched_plan(s, now, 1, mem);
    limit(s, 0, "", &day);
    queue(s, 10, 1, "1", 3, 4 * hour);
    queue(s, 11, 1, "1", 1, 0);                             /* could run for ever */
    queue(s, 12, 1, "0", 1, 0);                             /* takes none */
    struct sched_plan p = sched_plan(s, now, 100, mem);
    CHECK(p.count == 3 && p.wait_count == 2 && p.waits[0].limit == LIMIT_DAY && p.waits[0].needs == 4000 && p.waits[1].needs == -1);
    CHECK(p.next_ms == midnight);
    now += hour;
    freed(s, 10, 0, now - hour, now);                       /* it ran for one of its four */
    CHECK(sched_plan(s, now, 100, mem).count == 0);         /* 1 + 4 + 4 */
    freed(s, 10, 1, 0, 0);                                  /* a fault of ours: nothing of it counts */
    p = sched_plan(s, now, 100, mem);
    CHECK(p.count == 1 && p.placements[0].task == 2);
    freed(s, 10, 2, now, now + 4 * hour);
    queue(s, 13, 1, "1", 1, 4 * hour);
    CHECK(sched_plan(s, now + 4 * hour, 100, mem).count == 0);     /* 5 of 8 are gone */
    p = sched_plan(s, midnight, 100, mem);
    CHECK(p.count == 1 && p.placements[0].job == 13);       /* a new day */
}

enum { JOBS = 12, TASKS = 4 };
struct life { int64_t from; bool held; };

TEST(random_lives_never_exceed_a_limit)
{
    static const char *const models[] = { "NVIDIA H200", "NVIDIA L4" };
    size_t placed = 0, held_back = 0;
    for (uint64_t seed = 1; seed <= 150; seed++) {
        AUTO(sched_free) struct sched *s = sched_new();
        AUTO(arena_free) struct arena *mem = arena_new();
        struct rng r = { seed };
        struct life lives[JOBS][TASKS] = { 0 };
        int64_t now = start + (int64_t)rng_below(&r, 48) * hour, bound[JOBS];
        for (int i = 0; i < 3; i++) {
            struct sched_event n = kit_node_event(&(struct kit_node){ 1 + i, models[i % 2], 4, 1000, 16, 64000, false, false });
            sched_apply(s, &n);
        }
        sched_plan(s, now, 1, mem);
        for (int i = 0; i < 3; i++) {
            struct limit some = LIMIT_NONE;
            enum limit_kind k = rng_below(&r, LIMIT_KINDS);
            some.most[k] = (int64_t)rng_below(&r, 6) * (k == LIMIT_TASKS ? 1 : 2000);
            limit(s, (int64_t)rng_below(&r, 3), rng_below(&r, 3) ? "" : "h200", &some);
        }
        for (int step = 0; step < 60; step++) {
            now += (int64_t)rng_below(&r, 2 * (uint64_t)hour);
            sched_plan(s, now, 0, mem);
            if (step < JOBS) {
                bound[step] = rng_below(&r, 4) ? (1 + (int64_t)rng_below(&r, 6)) * hour : 0;
                queue(s, 100 + step, 1 + (int64_t)rng_below(&r, 2), rng_below(&r, 4) ? "1" : "0.5", TASKS, bound[step]);
            }
            for (int j = 0; j < JOBS; j++)
                for (int t = 0; t < TASKS; t++)
                    if (lives[j][t].held && (rng_below(&r, 6) == 0 || (bound[j] && now - lives[j][t].from >= bound[j]))) {
                        lives[j][t].held = false;
                        freed(s, 100 + j, t, lives[j][t].from, MIN(now, bound[j] ? lives[j][t].from + bound[j] : now));
                        if (rng_below(&r, 2))
                            kit_task(s, SCHED_TASK_QUEUED, 100 + j, t, 0);
                    }
            struct sched_plan p = sched_plan(s, now, 100, mem);
            for (size_t i = 0; i < p.count; i++)
                lives[p.placements[i].job - 100][p.placements[i].task] = (struct life){ now, true };
            placed += p.count;
            for (size_t i = 0; i < p.wait_count; i++)
                held_back += p.waits[i].reason == REASON_QUOTA;
            struct project *x = map_get(s->projects, 7);
            for (size_t i = 0; x && i < x->limits.count; i++) {
                const struct limit_row *w = &x->limits.at[i];
                CHECK(w->limit.most[LIMIT_TASKS] < 0 || w->tasks <= w->limit.most[LIMIT_TASKS]);
                CHECK(w->limit.most[LIMIT_GPUS] < 0 || w->gpu_milli <= w->limit.most[LIMIT_GPUS]);
                for (int k = 0; k < PERIODS; k++)
                    CHECK(w->limit.most[LIMIT_DAY + k] < 0 || w->used[k] + w->reserved[k] <= w->limit.most[LIMIT_DAY + k] * hour);
            }
        }
    }
    CHECK(placed > 500 && held_back > 100);
}
