/* Random fleets with work on them: what is told about a job must be what becomes of it, and what would help must help. */
#include "sched/why.h"
#include "base/rand.h"
#include "kit.h"
#include "sched/sched_internal.h"
#include "tap.h"

enum { SEEDS = 300, NODES = 12, JOBS = 25, ASKS = 12, PROJECTS = 3 };

static const char *const models[] = { "NVIDIA H200", "NVIDIA A100-SXM4-40GB", "NVIDIA L4" };
static const char *const asks[] = { "0", "1", "2", "4", "6", "0.5", "0.25", "H200:1", "H200:4", "A100:0.5", "24GB..60GB:1", "L4:2", "B200:1", "H200>A100:2" };

static const char *const places[] = { "", "eu", "eu/a", "eu/b/s1", "us/a" };

static int64_t below(struct rng *r, int64_t n) { return (int64_t)rng_below(r, (uint64_t)n); }

static struct sched_event any_node(struct rng *r, int64_t id)
{
    static const enum filter shut[] = { FILTER_AWAY, FILTER_CORDONED, FILTER_ORDERS };
    struct sched_event e = kit_node_event(&(struct kit_node){ id, models[below(r, 3)], (int)below(r, 7), 20000 * (1 + below(r, 4)), 2 + below(r, 30),
                                                              1000 * (1 + below(r, 60)), below(r, 6) == 0, below(r, 2) });
    e.shut = shut[below(r, 3)];
    e.where = (char *)places[below(r, COUNT(places))];
    for (int i = 0; i < e.gpu_count; i++) {
        e.gpus[i].healthy = below(r, 8) != 0;
        if (below(r, 6) == 0)
            snprintf(e.gpus[i].model, sizeof e.gpus[i].model, "%s", models[below(r, 3)]);
    }
    return e;
}

static struct sched_event any_job(struct rng *r, int64_t id)
{
    struct sched_event e = kit_job_event(id, 1 + below(r, PROJECTS), 25 * below(r, 4), asks[below(r, COUNT(asks))], below(r, 12), 500 * below(r, 60), 1 + below(r, 4));
    e.wants_host_image = below(r, 6) == 0;
    e.only_node = below(r, 8) == 0 ? 1 + below(r, NODES + 2) : 0;
    e.by_volume = e.only_node && below(r, 2);
    e.blocked = below(r, 12) == 0;
    if (below(r, 6) == 0)
        snprintf(e.region, sizeof e.region, "eu");
    if (below(r, 8) == 0)
        snprintf(e.zone, sizeof e.zone, "a");
    e.owner = 1 + below(r, 2);
    e.bound_ms = below(r, 3) ? 0 : 60000 * (1 + below(r, 60));
    if (!e.shape.gpu.milli && !e.shape.cpu_milli)
        e.shape.cpu_milli = 1000;
    if (e.shape.gpu.milli % 1000 && below(r, 3) == 0)
        e.shape.gpu.share_mib = 5000;
    return e;
}

/* Everything that can start has, and is confirmed. */
static void settle(struct sched *s, const struct sched_event *jobs, int64_t count, struct arena *mem)
{
    for (;;) {
        struct sched_plan p = sched_plan(s, 1000, 1000, mem);
        if (!p.count)
            return;
        for (size_t i = 0; i < p.count; i++)
            for (int64_t k = 0; k < count; k++)
                if (jobs[k].job == p.placements[i].job) {
                    struct sched_event e = kit_held_event(&p.placements[i], &jobs[k]);
                    struct hold *h = hold_find(s, e.job, e.task);
                    e.cpu_held = h->cpu_milli, e.mem_held = h->mem_mib;
                    sched_apply(s, &e);
                }
    }
}

static struct sched *any_cloud(struct rng *r, struct arena *mem, struct sched_event jobs[static JOBS])
{
    struct sched *s = sched_new();
    for (int64_t i = 0; i < NODES; i++) {
        struct sched_event e = any_node(r, i + 1);
        sched_apply(s, &e);
    }
    for (int64_t i = 0; i < PROJECTS; i++) {
        struct quota q = { below(r, 3) ? -1000 : 1000 * below(r, 9), below(r, 3) ? -1000 : 1000 * below(r, 40), -1, -1 };
        sched_apply(s, &(struct sched_event){ .kind = SCHED_PROJECT, .project = i + 1, .quota = q });
    }
    for (int64_t i = 0; i < JOBS; i++) {
        jobs[i] = any_job(r, 100 + i);
        sched_apply(s, &jobs[i]);
    }
    settle(s, jobs, JOBS, mem);
    return s;
}

static int64_t sum(const struct why *w)
{
    int64_t n = w->fits;
    for (int i = 0; i < FILTER_COUNT; i++)
        n += w->refused[i];
    return n;
}

/* By a walk over the nodes. */
static int64_t rooms(struct sched *s, const struct sched_event *e)
{
    struct class *c = class_like(s, e);
    struct pick p;
    int64_t n = 0;
    for (size_t i = 0; i < s->fleet.count; i++)
        n += (!e->only_node || e->only_node == s->fleet.nodes[i]->id) && index_on(&s->index, c->wanted, s->fleet.nodes[i], &p);
    class_leave(s, c);
    return n;
}

TEST(every_node_is_counted_once_and_no_filter_is_without_a_row)
{
    int64_t told = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        AUTO(arena_free) struct arena *mem = arena_new();
        struct rng r = { seed };
        struct sched_event jobs[JOBS];
        AUTO(sched_free) struct sched *s = any_cloud(&r, mem, jobs);
        for (int i = 0; i < ASKS; i++) {
            struct sched_event e = any_job(&r, 900 + i);
            struct why w;
            sched_try(s, &e, 1000, &w);
            bool ok = sum(&w) == w.nodes && w.nodes == NODES && !w.refused[FILTER_OTHER] && w.fits == rooms(s, &e);
            CHECK(ok);
            if (!ok)
                printf("# seed %llu: %lld of %lld nodes, %lld fit (%lld), %lld for nothing known\n", (unsigned long long)seed, (long long)sum(&w), (long long)w.nodes,
                       (long long)w.fits, (long long)rooms(s, &e), (long long)w.refused[FILTER_OTHER]);
            told += w.near_count;
            CHECK(w.near_count <= WHY_NEAR && (w.near_count == 0) == (w.fits + w.refused[FILTER_NODE] + w.refused[FILTER_AWAY] + w.refused[FILTER_CORDONED] + w.refused[FILTER_ORDERS] == NODES
                                                                      && (!e.only_node || w.fits || e.only_node > NODES)));
        }
    }
    CHECK(told > SEEDS);
}

TEST(looking_leaves_the_picture_as_it_was)
{
    for (uint64_t seed = 1; seed <= 50; seed++) {
        AUTO(arena_free) struct arena *mem = arena_new();
        AUTO(str_done) struct str before = { 0 }, after = { 0 };
        struct rng r = { seed };
        struct sched_event jobs[JOBS];
        AUTO(sched_free) struct sched *s = any_cloud(&r, mem, jobs);
        sched_print(s, &before);
        for (int i = 0; i < ASKS; i++) {
            struct sched_event e = any_job(&r, 900 + i);
            struct why w;
            sched_try(s, &e, 1000, &w);
            sched_why(s, &jobs[i], 1000, &w);
        }
        sched_print(s, &after);
        CHECK(text_is(before.at, after.at));
        struct sched_plan p = sched_plan(s, 1000, 1000, mem);
        CHECK(!p.count && !p.wait_count);
    }
}

static enum reason told(const struct sched_plan *p, int64_t job)
{
    enum reason why = REASON_NONE;
    for (size_t i = 0; i < p->wait_count; i++)
        if (p->waits[i].job == job)
            why = (enum reason)p->waits[i].reason;
    return why;
}

TEST(what_is_told_of_a_job_is_what_becomes_of_it)
{
    int64_t starts = 0, waits = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        AUTO(arena_free) struct arena *mem = arena_new();
        struct rng r = { seed };
        struct sched_event jobs[JOBS];
        AUTO(sched_free) struct sched *s = any_cloud(&r, mem, jobs);
        struct sched_event e = any_job(&r, 900);
        struct why w, again;
        e.created_ms = 1000;
        sched_try(s, &e, 1000, &w);
        uint32_t epoch = s->mix.epoch;
        sched_apply(s, &e);
        struct sched_plan p = sched_plan(s, 1000, 1000, mem);
        int64_t placed = 0;
        for (size_t i = 0; i < p.count; i++)
            placed += p.placements[i].job == e.job;
        bool ok = placed == w.tasks && (w.reason == REASON_NONE) == (placed > 0);
        if (placed && epoch == s->mix.epoch)
            ok = ok && p.placements[0].node == w.node && (int)p.placements[0].gpus.count == w.gpu_count;
        for (int i = 0; ok && placed && epoch == s->mix.epoch && i < w.gpu_count; i++)
            ok = ((struct order_gpu *)p.placements[0].gpus.at)[i].index == w.gpus_at[i].index;
        if (!placed)
            ok = ok && told(&p, e.job) == w.reason;
        starts += placed > 0, waits += !placed;
        CHECK(ok);
        if (!ok)
            printf("# seed %llu: told %d (%lld tasks), came %d (%lld)\n", (unsigned long long)seed, w.reason, (long long)w.tasks, told(&p, e.job), (long long)placed);
        sched_why(s, &e, 1000, &again);
        CHECK(again.known == (placed <= e.last_task));
        if (!placed && w.reason != REASON_PRIORITY && !s->claims.count)    /* else what is kept for whom has changed with it */
            CHECK(again.reason == w.reason && again.fits == w.fits);
    }
    CHECK(starts > SEEDS / 20 && waits > SEEDS / 20);
    if (starts <= SEEDS / 20 || waits <= SEEDS / 20)
        printf("# %lld start, %lld wait\n", (long long)starts, (long long)waits);
}

static bool starts_with(struct sched *s, const struct sched_event *e)
{
    struct why w;
    sched_try(s, e, 1000, &w);
    return w.fits > 0;          /* its project's quota is another matter */
}
static bool possible_with(struct sched *s, const struct sched_event *e)
{
    struct why w;
    sched_try(s, e, 1000, &w);
    return w.reason != REASON_NO_NODE;
}

TEST(what_would_help_helps)
{
    int64_t tried[4] = { 0 };
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        AUTO(arena_free) struct arena *mem = arena_new();
        struct rng r = { seed };
        struct sched_event jobs[JOBS];
        AUTO(sched_free) struct sched *s = any_cloud(&r, mem, jobs);
        for (int i = 0; i < ASKS; i++) {
            struct sched_event e = any_job(&r, 900 + i), other;
            struct why w;
            e.blocked = false;
            sched_try(s, &e, 1000, &w);
            bool (*good)(struct sched *, const struct sched_event *) = w.reason == REASON_NO_NODE ? possible_with : starts_with;
            if (w.reason == REASON_NONE || w.reason == REASON_QUOTA)
                continue;
            other = e, other.shape.gpu.milli = w.gpus.most;
            if (w.gpus.most)
                CHECK(w.gpus.most < e.shape.gpu.milli && good(s, &other)), tried[0]++;
            other = e, other.shape.cpu_milli = w.cpus.most;
            if (w.cpus.most)
                CHECK(good(s, &other)), tried[1]++;
            other = e, other.shape.mem_mib = w.memory.most;
            if (w.memory.most)
                CHECK(good(s, &other)), tried[2]++;
            other = e;
            if (w.model_count) {
                snprintf(other.shape.gpu.model, sizeof other.shape.gpu.model, "%s", w.models[0]);
                CHECK(good(s, &other)), tried[3]++;
            }
            other = e, other.only_node = 0, other.by_volume = false;
            if (w.elsewhere)
                CHECK(starts_with(s, &other));
            other = e, other.region[0] = other.zone[0] = 0;
            if (w.away)
                CHECK(good(s, &other));
            other = e, other.wants_host_image = false;
            if (w.without_host)
                CHECK(good(s, &other));
        }
    }
    for (size_t i = 0; i < COUNT(tried); i++)
        CHECK(tried[i] > 10);
}

TEST(the_nearest_is_the_one_that_lacks_least)
{
    AUTO(sched_free) struct sched *s = sched_new();
    AUTO(arena_free) struct arena *mem = arena_new();
    for (int64_t i = 1; i <= 5; i++) {
        struct sched_event n = kit_node_event(&(struct kit_node){ i, i == 5 ? "L4" : "H200", 4, 80000, 16, 64000, i == 4, false });
        struct sched_event j = kit_job_event(100 + i, 1, 50, i < 4 ? "1" : "0", 1, 1000, i < 4 ? i : 1);
        n.shut = FILTER_CORDONED;
        j.only_node = i;
        sched_apply(s, &n);
        sched_apply(s, &j);
    }
    sched_plan(s, 1000, 100, mem);
    struct sched_event e = kit_job_event(900, 1, 50, "H200:4", 1, 1000, 1);
    struct why w;
    sched_try(s, &e, 1000, &w);
    CHECK(w.reason == REASON_RESOURCES && w.nodes == 5 && !w.fits && w.refused[FILTER_CORDONED] == 1 && w.refused[FILTER_GPUS_TAKEN] == 3
          && w.refused[FILTER_MODEL] == 1);
    CHECK(w.near_count == 3 && w.near[0].node == 1 && w.near[0].gpus_free == 3 && w.near[0].gpus == 4 && w.near[1].node == 2 && w.near[2].node == 3);
    CHECK(w.gpus.most == 3000 && w.gpus.node == 1 && w.model_count == 1 && text_is(w.models[0], "L4"));
    e = kit_job_event(901, 1, 50, "H200:8", 1, 1000, 1);
    sched_try(s, &e, 1000, &w);
    CHECK(w.reason == REASON_NO_NODE && w.gpus.most == 4000);
    e = kit_job_event(902, 1, 50, "1", 20, 1000, 1);
    sched_try(s, &e, 1000, &w);
    CHECK(w.reason == REASON_NO_NODE && w.cpus.most == 16000 && w.refused[FILTER_CPUS] == 4);
}

TEST(a_pause_and_a_quota_are_told_with_their_numbers)
{
    AUTO(sched_free) struct sched *s = sched_new();
    AUTO(arena_free) struct arena *mem = arena_new();
    struct sched_event n = kit_node_event(&(struct kit_node){ 1, "H200", 4, 80000, 16, 64000, false, false });
    struct sched_event a = kit_job_event(1, 1, 50, "2", 1, 1000, 1), b = kit_job_event(2, 1, 50, "1", 1, 1000, 1);
    struct why w;
    sched_apply(s, &n);
    sched_apply(s, &(struct sched_event){ .kind = SCHED_PROJECT, .project = 1, .quota = { 2500, -1000, -1, -1 } });
    sched_apply(s, &a);
    sched_plan(s, 1000, 100, mem);
    sched_try(s, &b, 1000, &w);
    CHECK(w.reason == REASON_QUOTA && w.held_by.limit == LIMIT_PROJECT_GPUS && w.held_by.most == 2500 && w.held_by.needs == 1000 && w.held == 2000 && w.fits == 1);
    b = kit_job_event(3, 2, 50, "1", 1, 1000, 1);
    sched_apply(s, &b);
    kit_task(s, SCHED_TASK_QUEUED, 3, 0, 9000);
    sched_plan(s, 1000, 100, mem);
    sched_why(s, &b, 1000, &w);
    CHECK(w.known && w.reason == REASON_RETRY && w.pause_ms == 9000);
    sched_why(s, &a, 1000, &w);
    CHECK(!w.known);
}
