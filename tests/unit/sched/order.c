/* Virtual days of two and more projects, and what the order promises: shares by weight, nobody starves, the same for the same. */
#include "base/rand.h"
#include "kit.h"
#include "sched/sched_internal.h"
#include "tap.h"
#include <stdlib.h>
#include <time.h>

enum { HOUR = 3600 * 1000, DAY = 24 * HOUR, RUNS_MAX = 4096 };
static const int64_t start = INT64_C(1790000000000);

struct run { int64_t ends_ms, from_ms, job, task, project, milli; size_t pos; };
struct day {
    struct sched *s;
    struct arena *mem;
    struct rng rng;
    int64_t now, longest_ms, had[16];
    uint64_t placed, hash;
    int64_t milli[16], project_of[4096];
    struct heap ends;
};
static bool ends_first(const void *a, const void *b)
{
    const struct run *x = a, *y = b;
    return x->ends_ms != y->ends_ms ? x->ends_ms < y->ends_ms : x->job != y->job ? x->job < y->job : x->task < y->task;
}

static void weight(struct sched *s, int64_t project, int64_t milli)
{
    struct sched_event e = { .kind = SCHED_PROJECT, .project = project, .quota = QUOTA_NONE, .weight_milli = milli };
    sched_apply(s, &e);
}

static void queue(struct day *d, int64_t id, int64_t project, int64_t priority, const char *gpus, int64_t tasks)
{
    struct sched_event e = kit_job_event(id, project, priority, gpus, 1, 100, tasks);
    e.created_ms = e.at_ms = d->now;
    d->project_of[id] = project;
    sched_apply(d->s, &e);
}

static void day_free_auto(struct day *d)
{
    for (size_t i = 0; i < d->ends.count; i++)
        free(d->ends.at[i]);
    heap_done(&d->ends);
    sched_free(d->s);
    arena_free(d->mem);
}

static void take(struct day *d, const struct sched_plan *p)
{
    for (size_t i = 0; i < p->count; i++) {
        const struct placement *at = &p->placements[i];
        struct run *r = calloc(1, sizeof *r);
        const struct order_gpu *g = at->gpus.at;
        *r = (struct run){ .from_ms = d->now, .job = at->job, .task = at->task, .project = d->project_of[at->job] };
        for (size_t k = 0; k < at->gpus.count; k++)
            r->milli += g[k].milli;
        r->ends_ms = d->now + 60000 + (int64_t)rng_below(&d->rng, (uint64_t)d->longest_ms);
        heap_add(&d->ends, r);
        d->placed++;
        d->hash = (d->hash ^ (uint64_t)at->job) * 0x100000001b3ULL ^ (uint64_t)at->task;
    }
}

/* Lives on until `until`: what ends makes room. */
static void live(struct day *d, int64_t until)
{
    for (;;) {
        AUTO(arena_free) struct arena *mem = arena_new();
        struct sched_plan p = sched_plan(d->s, d->now, 1000, mem);
        take(d, &p);
        struct run *r = heap_top(&d->ends);
        if (!r || r->ends_ms > until)
            break;
        d->now = r->ends_ms;
        heap_drop(&d->ends, r);
        d->had[r->project] += r->milli * (r->ends_ms - r->from_ms);
        struct sched_event e = { .kind = SCHED_TASK_FREED, .job = r->job, .task = r->task, .project = r->project, .at_ms = d->now };
        sched_apply(d->s, &e);
        free(r);
    }
    d->now = until;
}

/* What they had until now, what runs included. */
static int64_t had(const struct day *d, int64_t project)
{
    int64_t sum = d->had[project];
    for (size_t i = 0; i < d->ends.count; i++) {
        const struct run *r = d->ends.at[i];
        if (r->project == project)
            sum += r->milli * (d->now - r->from_ms);
    }
    return sum;
}

static struct day day_new(uint64_t seed, int gpus, int64_t longest_ms)
{
    struct day d = { .s = sched_new(), .mem = arena_new(), .rng = { seed }, .now = start, .longest_ms = longest_ms,
                     .ends = HEAP(struct run, pos, ends_first) };
    for (int i = 0; i < gpus / 8; i++) {
        struct sched_event e = kit_node_event(&(struct kit_node){ 1 + i, "H200", 8, 1000, 128, 100000, false, false });
        sched_apply(d.s, &e);
    }
    return d;
}

static bool within(int64_t a, int64_t b, int64_t percent) { return llabs(a - b) * 100 <= percent * MAX(a, b); }

TEST(two_projects_with_endless_demand_have_the_same_after_a_day)
{
    static const char *const asks[] = { "1", "2", "0.5", "4" };     /* larger or smaller tasks are no advantage */
    int64_t worst = 0;
    for (uint64_t seed = 1; seed <= (getenv("ARCUS_SOAK") ? 2000u : 30u); seed++) {
        AUTO(day_free) struct day d = day_new(seed, 64 << seed % 2, HOUR + (int64_t)(seed % 3) * HOUR / 2);
        queue(&d, 10, 1, 50, asks[seed % 2], 100000);
        queue(&d, 11, 2, 50, asks[seed / 2 % COUNT(asks)], 100000);
        live(&d, start + DAY);
        int64_t a = had(&d, 1), b = had(&d, 2);
        worst = MAX(worst, llabs(a - b) * 10000 / MAX(a, b));
        if (!within(a, b, 2))
            printf("# seed %llu: %lld and %lld GPU-hours\n", (unsigned long long)seed, (long long)(a / 1000 / HOUR), (long long)(b / 1000 / HOUR));
        CHECK(within(a, b, 2));
    }
    printf("# they differ by %lld.%02lld %% at most\n", (long long)(worst / 100), (long long)(worst % 100));
}

TEST(who_weighs_twice_has_twice)
{
    for (uint64_t seed = 1; seed <= 5; seed++) {
        AUTO(day_free) struct day d = day_new(seed, 96, HOUR);
        weight(d.s, 1, 2000);
        weight(d.s, 2, 1000);
        queue(&d, 10, 1, 50, "1", 100000);
        queue(&d, 11, 2, 50, "1", 100000);
        live(&d, start + DAY);
        CHECK(within(had(&d, 1), 2 * had(&d, 2), 2));
    }
}

TEST(who_was_away_is_before_those_who_had_everything_and_what_is_long_ago_is_forgotten)
{
    AUTO(day_free) struct day d = day_new(7, 64, HOUR);
    queue(&d, 10, 1, 50, "1", 1000000);
    live(&d, start + 6 * HOUR);
    int64_t before = had(&d, 1);
    queue(&d, 11, 2, 50, "1", 1000000);
    live(&d, start + 9 * HOUR);
    CHECK(had(&d, 2) > (had(&d, 1) - before) * 5 / 2);      /* it catches up */
    live(&d, start + 40 * (int64_t)DAY);
    int64_t one = had(&d, 1), two = had(&d, 2);
    live(&d, start + 41 * (int64_t)DAY);
    printf("# %lld and %lld GPU-hours of the last day\n", (long long)((had(&d, 1) - one) / 1000 / HOUR), (long long)((had(&d, 2) - two) / 1000 / HOUR));
    CHECK(within(had(&d, 1) - one, had(&d, 2) - two, 2));
}

/* 1024 CPUs and 64 GPUs. A task of the first is 1/128 of the CPUs, one of the second as many CPUs and 1/64 of the GPUs: the first gets
 * twice as many, so that each has two thirds of what it has most of. */
TEST(the_resource_that_a_project_has_most_of_is_what_counts)
{
    AUTO(day_free) struct day d = day_new(3, 64, HOUR);
    struct sched_event cpus = kit_job_event(10, 1, 50, "0", 8, 100, 100000), gpus = kit_job_event(11, 2, 50, "1", 8, 100, 100000);
    cpus.created_ms = gpus.created_ms = start;
    d.project_of[10] = 1, d.project_of[11] = 2;
    sched_apply(d.s, &cpus);
    sched_apply(d.s, &gpus);
    live(&d, start + DAY);
    struct project *one = map_get(d.s->projects, 1), *two = map_get(d.s->projects, 2);
    order_held(d.s, one), order_held(d.s, two);
    int64_t x = share_ppm(&d.s->clock, &one->share), y = share_ppm(&d.s->clock, &two->share);
    CHECK(within(x, y, 2) && within(x, 333333, 3));     /* half of it was forgotten */
    CHECK(within(one->cpu_held, 2 * two->cpu_held, 10));
}

TEST(a_higher_class_goes_before_and_inside_a_class_only_a_projects_own_jobs_mind_the_number)
{
    AUTO(day_free) struct day d = day_new(1, 8, HOUR);
    queue(&d, 10, 1, 50, "8", 1);
    queue(&d, 11, 2, 59, "8", 1);       /* the same class: nobody has had anything, so the first project goes first */
    queue(&d, 12, 2, 60, "8", 1);
    AUTO(arena_free) struct arena *mem = arena_new();
    struct sched_plan p = sched_plan(d.s, d.now, 10, mem);
    CHECK(p.count == 1 && p.placements[0].job == 12);
    kit_task(d.s, SCHED_TASK_FREED, 12, 0, 0);
    p = sched_plan(d.s, d.now, 10, mem);
    CHECK(p.count == 1 && p.placements[0].job == 10);
    queue(&d, 13, 2, 51, "8", 1);
    kit_task(d.s, SCHED_TASK_FREED, 10, 0, 0);
    p = sched_plan(d.s, d.now, 10, mem);
    CHECK(p.count == 1 && p.placements[0].job == 11);
}

/* An endless stream of higher classes and of a project that weighs a thousand times more. */
TEST(a_starved_job_is_started_within_its_bound_whatever_comes)
{
    AUTO(day_free) struct day d = day_new(11, 16, HOUR);
    weight(d.s, 1, 1000000);
    weight(d.s, 2, 1);
    queue(&d, 10, 1, 90, "1", 1000000);
    queue(&d, 11, 1, 50, "1", 1000000);
    live(&d, start + HOUR);
    queue(&d, 12, 2, 10, "1", 1);
    int64_t bound = d.now + priorities[CLASS_SPOT].starved_s * 1000;
    live(&d, bound - HOUR);
    struct job *j = map_get(d.s->jobs, 12);
    CHECK(j->waiting.count == 1);
    live(&d, bound + HOUR / 4);         /* the next that ends makes room for it */
    CHECK(j->waiting.count == 0);
}

TEST(the_same_for_the_same)
{
    uint64_t hash[2];
    for (int i = 0; i < 2; i++) {
        AUTO(day_free) struct day d = day_new(99, 32, 2 * HOUR);
        for (int k = 0; k < 40; k++)
            queue(&d, 10 + k, 1 + k % 7, 10 + k * 2, k % 3 ? "1" : "0.25", 20 + k);
        live(&d, start + DAY / 2);
        hash[i] = d.hash;
        CHECK(d.placed > 100);
    }
    CHECK(hash[0] == hash[1]);
}

/* A snapshot tells what ran when; the share goes on where it was. */
TEST(after_a_restart_a_project_has_had_what_it_had)
{
    AUTO(sched_free) struct sched *a = sched_new(), *b = sched_new();
    AUTO(arena_free) struct arena *mem = arena_new();
    struct sched_event n = kit_node_event(&(struct kit_node){ 1, "H200", 8, 1000, 64, 100000, false, false });
    struct sched_event j = kit_job_event(10, 1, 50, "4", 1, 100, 1);
    sched_apply(a, &n);
    sched_apply(a, &j);
    struct sched_plan p = sched_plan(a, start, 10, mem);
    struct sched_event held = kit_held_event(&p.placements[0], &j);
    held.at_ms = start;
    sched_apply(a, &held);
    sched_plan(a, start + DAY, 10, mem);
    order_held(a, map_get(a->projects, 1));
    struct sched_event q = { .kind = SCHED_PROJECT, .project = 1, .quota = QUOTA_NONE, .at_ms = start + DAY };
    sched_apply(b, &q);
    sched_apply(b, &n);
    sched_apply(b, &j);
    sched_apply(b, &held);
    struct project *x = map_get(a->projects, 1), *y = map_get(b->projects, 1);
    CHECK(share_ppm(&a->clock, &x->share) == 250000 && share_ppm(&b->clock, &y->share) == 250000);
    q.project = 2;
    q.used[SHARE_GPU] = INT64_C(8000) * DAY;
    q.used_from_ms = start;
    q.used_until_ms = start + DAY;
    sched_apply(b, &q);
    y = map_get(b->projects, 2);
    CHECK(share_ppm(&b->clock, &y->share) == 500000);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

TEST(a_hundred_thousand_jobs_wait_and_one_that_ends_costs_a_few_looks)
{
    AUTO(sched_free) struct sched *s = sched_new();
    AUTO(arena_free) struct arena *mem = arena_new();
    struct sched_event n = kit_node_event(&(struct kit_node){ 1, "", 0, 0, 1000, 1000000, false, false });
    sched_apply(s, &n);
    for (int64_t i = 0; i < 100000; i++) {
        struct sched_event e = kit_job_event(10 + i, 1 + i % 50, 50, "0", 1 + i % 4, 10, 1);
        e.created_ms = start + i;
        sched_apply(s, &e);
    }
    struct sched_plan p = sched_plan(s, start, 10000, mem);
    size_t first = p.count;
    uint64_t looks = s->looks;
    double t = seconds();
    for (size_t i = 0; i < 300; i++) {
        kit_task(s, SCHED_TASK_FREED, p.placements[i].job, 0, 0);
        CHECK(sched_plan(s, start + (int64_t)i, 10, mem).count >= 1);
    }
    printf("# %zu started; then %llu looks and %.1f us (with sanitizers) for each that ends\n", first, (unsigned long long)((s->looks - looks) / 300),
           (seconds() - t) / 300 * 1e6);
    CHECK((s->looks - looks) / 300 <= 4 * 50 + 2);      /* lines, not jobs */
}
