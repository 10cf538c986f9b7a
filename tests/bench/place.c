/* place.c - how fast the scheduler places, and how much memory it takes: fleets of 5,000 and 50,000 nodes of 8 GPUs, and a queue of 100,000
 * jobs of mixed shapes on the smaller one (ten times as many on the larger).
 *   bench-place [NODES [JOBS]]
 * Two ways: the whole planner, a thousand placements a pass as the server asks for them; and single decisions of the index (find, take),
 * each timed by itself. Shapes are drawn from a list like that of a shared cluster: shares, single GPUs, eights, CPUs alone, models. */
#include "base/rand.h"
#include "sched/sched_internal.h"
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SHAPES = 160, PASS = 1000, REPEATS = 3 };

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);  /* what others on the machine take is not ours */
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
static size_t in_use(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

static void nodes_make(struct sched *s, int count)
{
    static const char *const models[] = { "NVIDIA H200", "NVIDIA H100 80GB HBM3", "NVIDIA L40S", "NVIDIA A100-SXM4-80GB" };
    static const int64_t mib[] = { 143771, 81559, 46068, 81920 }, cpus[] = { 192, 192, 96, 128 };
    struct sched_gpu gpus[8];
    for (int i = 0; i < count; i++) {
        int k = i % 8 < 4 ? 0 : i % 8 - 4;
        for (int g = 0; g < 8; g++) {
            gpus[g] = (struct sched_gpu){ .index = g, .mem_mib = mib[k], .healthy = true };
            snprintf(gpus[g].model, sizeof gpus[g].model, "%s", models[k]);
        }
        sched_apply(s, &(struct sched_event){ .kind = SCHED_NODE, .node = i + 1, .usable = true, .host_image = true, .cpu_milli = cpus[k] * 1000,
                                              .mem_mib = 1 << 20, .gpu_count = 8, .gpus = gpus });
    }
}

static void shapes_make(struct shape out[static SHAPES], struct rng *r)
{
    static const int64_t milli[] = { 1000, 1000, 1000, 1000, 500, 250, 470, 810, 320, 2000, 4000, 8000, 0, 0, 100, 650 };
    static const char *const models[] = { "", "", "", "", "", "", "H200", "H100|A100" };
    for (int i = 0; i < SHAPES; i++) {
        int64_t m = milli[i % (int)COUNT(milli)];
        out[i] = (struct shape){ .gpu.milli = m, .cpu_milli = 1000 * (1 + (int64_t)rng_below(r, m ? (uint64_t)(2 + m / 80) : 16)),
                                 .mem_mib = 2048 * (1 + (int64_t)rng_below(r, 12)) };
        if (m)
            snprintf(out[i].gpu.model, sizeof out[i].gpu.model, "%s", models[rng_below(r, COUNT(models))]);
    }
}

/* A few shapes are most of what is asked for. */
static const struct shape *draw(const struct shape shapes[static SHAPES], struct rng *r)
{
    uint64_t a = rng_below(r, SHAPES), b = rng_below(r, SHAPES), c = rng_below(r, SHAPES);
    return &shapes[MIN(a, MIN(b, c))];
}

static void jobs_make(struct sched *s, int count, const struct shape shapes[static SHAPES], struct rng *r)
{
    for (int i = 0; i < count; i++)
        sched_apply(s, &(struct sched_event){ .kind = SCHED_JOB, .job = i + 1, .project = 1 + i % 20, .priority = 50, .created_ms = i, .shape = *draw(shapes, r) });
}

static int by_time(const void *a, const void *b) { return *(const int32_t *)a - *(const int32_t *)b; }

/* The same queue, one placement a pass: each decision by itself, with all that a pass does. It is deterministic, so the same decision is measured
 * REPEATS times, and its shortest time is what it takes without the neighbours on the machine; and what the slowest hundredth had to do. */
static void one_by_one(int nodes, int jobs)
{
    struct decision { int32_t took; uint16_t scored; bool scanned; } *at = calloc((size_t)jobs, sizeof *at);
    int32_t *took = calloc((size_t)jobs, sizeof *took), once = 0;
    int count = 0;
    if (!took || !at)
        abort();
    for (int round = 0; round < REPEATS; round++) {
        struct rng r = { 7 };
        struct shape shapes[SHAPES];
        AUTO(sched_free) struct sched *s = sched_new();
        nodes_make(s, nodes);
        shapes_make(shapes, &r);
        jobs_make(s, jobs, shapes, &r);
        count = 0;
        for (bool more = true; more && count < jobs; count++) {
            AUTO(arena_free) struct arena *mem = arena_new();
            uint64_t scored = s->index.scored, scans = s->index.scans;
            int64_t from = now_ns();
            more = sched_plan(s, 0, 1, mem).count == 1;
            took[count] = (int32_t)MIN(now_ns() - from, INT32_MAX);
            at[count] = (struct decision){ round ? MIN(at[count].took, took[count]) : took[count], (uint16_t)MIN(s->index.scored - scored, UINT16_MAX),
                                           s->index.scans != scans };
        }
        qsort(took, (size_t)count, sizeof *took, by_time);
        once = round ? MIN(once, took[(int64_t)count * 99 / 100]) : took[(int64_t)count * 99 / 100];
    }
    for (int i = 0; i < count; i++)
        took[i] = at[i].took;
    qsort(took, (size_t)count, sizeof *took, by_time);
    int32_t p99 = took[(int64_t)count * 99 / 100];
    double slow = 0, scans = 0, all_scans = 0, scored = 0;
    for (int i = 0; i < count; i++) {
        all_scans += at[i].scanned;
        if (at[i].took < p99)
            continue;
        slow++, scans += at[i].scanned, scored += at[i].scored;
    }
    printf("single   %6d nodes %7d jobs: a decision takes %.2f us in the median, p99 %.2f, p99.9 %.1f (CPU time, the shortest of %d runs; p99 of one run %.2f); rankings are made anew in %.2f %%,"
           " of the slowest hundredth in %.0f %%, which score %.0f lots\n",
           nodes, jobs, took[count / 2] / 1e3, p99 / 1e3, took[(int64_t)count * 999 / 1000] / 1e3, REPEATS, once / 1e3, 100 * all_scans / count, 100 * scans / MAX(slow, 1),
           scored / MAX(slow, 1));
    free(took);
    free(at);
}

static void memory(const struct sched *s, int nodes, double a_node, double a_job)
{
    size_t lots = s->fleet.table_size * sizeof(void *) + s->fleet.log.room * sizeof(struct lot_ref) + s->fleet.lot_room * (sizeof(void *) + sizeof(struct brief)),
           rankings = 0;
    for (int i = 0; i < OWNERS; i++)
        lots += s->fleet.logs[i].room * sizeof(struct lot_ref);
    for (size_t i = 0; i < s->fleet.lot_count; i++)
        lots += s->fleet.lots[i] ? malloc_usable_size(s->fleet.lots[i]) + 8 : 0;
    for (const struct wanted *w = s->index.newest; w; w = w->older)
        rankings += malloc_usable_size(w->heap) + sizeof *w + 16;
    printf("memory   %.0f B a node: %.0f of its own, %.0f for states, %.0f for %zu rankings; %.0f B a waiting job\n", a_node + (double)(lots + rankings) / nodes, a_node,
           (double)lots / nodes, (double)rankings / nodes, s->index.rankings, a_job);
}

/* The whole queue, a thousand placements a pass; each pass as short as it was in one of REPEATS runs. */
static void planner(int nodes, int jobs)
{
    double *pass = calloc((size_t)jobs / PASS + 2, sizeof *pass), took = 0, worst = 0, first = 0;
    if (!pass)
        abort();
    for (int round = 0; round < REPEATS; round++) {
        struct rng r = { 7 };
        struct shape shapes[SHAPES];
        AUTO(sched_free) struct sched *s = sched_new();
        size_t before = in_use();
        nodes_make(s, nodes);
        size_t with_nodes = in_use();
        shapes_make(shapes, &r);
        jobs_make(s, jobs, shapes, &r);
        size_t with_jobs = in_use(), placed = 0, passes = 0;
        took = worst = 0;
        for (bool more = true; more; passes++) {
            AUTO(arena_free) struct arena *mem = arena_new();
            double from = now_s();
            size_t n = sched_plan(s, 0, PASS, mem).count;
            double one = now_s() - from;
            first += round ? 0 : one;
            pass[passes] = round ? MIN(pass[passes], one) : one;
            took += pass[passes];
            worst = MAX(worst, pass[passes]);
            placed += n;
            more = n == PASS;
        }
        if (round + 1 < REPEATS)
            continue;
        printf("planner  %6d nodes %7d jobs: %6zu placed, %8.0f a second (%.2f us each; CPU time, the shortest of %d runs; %.2f in one), worst pass of %d %.1f ms; %zu states, %.1f scored a placement, %llu scans\n",
               nodes, jobs, placed, (double)placed / took, took / (double)MAX(placed, 1) * 1e6, REPEATS, first / (double)MAX(placed, 1) * 1e6, PASS, worst * 1e3, s->fleet.live,
               (double)s->index.scored / (double)MAX(placed, 1), (unsigned long long)s->index.scans);
        memory(s, nodes, (double)(with_nodes - before) / nodes, (double)(with_jobs - with_nodes) / jobs);
        double idle = now_s();
        for (int i = 0; i < 1000; i++) {
            AUTO(arena_free) struct arena *mem = arena_new();
            (void)sched_plan(s, 0, PASS, mem);
        }
        printf("idle     %.2f us a pass with nothing to do and %zu jobs waiting\n", (now_s() - idle) * 1e3, (size_t)jobs - placed);
    }
    free(pass);
}

/* Tasks that come and go, the fleet nearly full: the states are as different as they get. */
static void decisions(int nodes, int count)
{
    struct rng r = { 9 };
    struct shape shapes[SHAPES];
    struct wanted *wants[SHAPES];
    struct task { struct node *n; int64_t cpu, mem; int gpus; struct held_gpu gpu[SCHED_GPUS]; } *held = calloc((size_t)nodes * 40, sizeof *held);
    int32_t *took = calloc((size_t)count, sizeof *took);
    size_t held_count = 0, refused = 0;
    AUTO(sched_free) struct sched *s = sched_new();
    if (!held || !took)
        abort();
    nodes_make(s, nodes);
    shapes_make(shapes, &r);
    for (int i = 0; i < SHAPES; i++) {
        wants[i] = wanted_of(&s->index, &(struct want){ .shape = shapes[i], .project = 1 });
        mix_seen(&s->mix, &shapes[i], 100);
    }
    for (int i = -nodes * 12; i < count; i++) {     /* first it is filled */
        struct wanted *w = wants[draw(shapes, &r) - shapes];
        struct pick p;
        int64_t from = now_ns();
        struct node *n = index_best(&s->index, w, &p);
        if (n && held_count < (size_t)nodes * 40) {
            struct task *t = &held[held_count++];
            *t = (struct task){ n, p.cpu_milli, p.mem_mib, 0, { { 0 } } };
            t->gpus = pick_gpus(&w->is, &p, n, &s->fleet, t->gpu);
            fleet_take(&s->fleet, n, 1, t->cpu, t->mem, t->gpu, t->gpus);
        }
        refused += !n;
        if (i >= 0)
            took[i] = (int32_t)MIN(now_ns() - from, INT32_MAX);
        if (i >= 0 || !n)
            for (int k = 0; held_count && k < 1 + !n; k++) {
                struct task *t = &held[rng_below(&r, held_count)];
                fleet_give(&s->fleet, t->n, 1, t->cpu, t->mem, t->gpu, t->gpus);
                *t = held[--held_count];
            }
    }
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += took[i];
    qsort(took, (size_t)count, sizeof *took, by_time);
    printf("decision %6d nodes, nearly full, tasks come and go: mean %.2f us, median %.2f, p99 %.2f, p99.9 %.1f; %zu states, %zu refused, %llu scans, %.0f lots scored for each of %llu\n", nodes,
           sum / count / 1e3, took[count / 2] / 1e3, took[(int64_t)count * 99 / 100] / 1e3, took[(int64_t)count * 999 / 1000] / 1e3, s->fleet.live, refused,
           (unsigned long long)s->index.scans, (double)s->index.scored / (double)s->index.asked, (unsigned long long)s->index.asked);
    for (int i = 0; i < SHAPES; i++)
        wanted_leave(&s->index, wants[i]);
    free(held);
    free(took);
}

/* A fleet full of spot tasks of one GPU, each with an end: how long it takes to hold a start for a job of eight on one node, and to find who yields
 * to it; and a pass after that in which nothing has changed but one task that ended. */
static void ahead(int nodes)
{
    AUTO(sched_free) struct sched *s = sched_new();
    AUTO(arena_free) struct arena *mem = arena_new();
    struct rng r = { 5 };
    nodes_make(s, nodes);
    for (int i = 0; i < nodes * 8; i++) {
        struct sched_held held = { i % 8, 1000, 1000 };
        sched_apply(s, &(struct sched_event){ .kind = SCHED_TASK_HELD, .job = i + 1, .project = 1, .node = i / 8 + 1, .cpu_held = 4000, .mem_held = 1000, .held_count = 1,
                                              .held = &held, .at_ms = 1 + (int64_t)rng_below(&r, 1000), .bound_ms = 1000000 + (int64_t)rng_below(&r, 1000000) });
    }
    struct sched_event big = { .kind = SCHED_JOB, .job = 1000000, .project = 2, .priority = 50, .created_ms = 1, .shape = { .gpu.milli = 8000, .cpu_milli = 8000 } };
    double took[5] = { 0 };
    for (int i = 0; i < 5; i++) {
        if (i == 0)
            sched_apply(s, &big);
        if (i > 0 && i < 4)
            sched_apply(s, &(struct sched_event){ .kind = SCHED_TASK_FREED, .job = i });
        if (i == 4)
            sched_apply(s, &(struct sched_event){ .kind = SCHED_RULES, .rules = SCHED_RULES_USUAL });
        took[i] = now_s();
        struct sched_plan p = sched_plan(s, 2000 + i, PASS, mem);
        took[i] = now_s() - took[i];
        if (i == 4 && p.eviction_count == 0)
            printf("nobody yields\n");
    }
    printf("ahead    %6d nodes full: a start is held after %.0f us, looked at again in %.0f and %.0f; who yields is found in %.0f us\n", nodes, took[0] * 1e6, took[1] * 1e6,
           took[3] * 1e6, took[4] * 1e6);
}

int main(int argc, char **argv)
{
    int nodes = argc > 1 ? atoi(argv[1]) : 5000, jobs = argc > 2 ? atoi(argv[2]) : 20 * nodes;
    planner(nodes, jobs);
    one_by_one(nodes, jobs);
    decisions(nodes, 100000);
    ahead(nodes);
    if (argc > 1)
        return 0;
    planner(10 * nodes, 10 * jobs);
    one_by_one(10 * nodes, 10 * jobs);
    decisions(10 * nodes, 100000);
    return 0;
}
