/* gang.c - how long it takes to place a gang of 512 tasks close together: 5,000 nodes of 8 GPUs in 2 regions of 4 zones, racks of 8 nodes, 8 racks to a switch.
 *   bench-gang [NODES [TASKS]]
 * Each by itself, with all that a pass does: on an idle fleet, on one where every node is in another state, and one that does not fit. */
#include "base/rand.h"
#include "sched/sched_internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void nodes_make(struct sched *s, int count)
{
    struct sched_gpu gpus[8];
    char where[PLACE_ADDRESS];
    for (int i = 0; i < count; i++) {
        int rack = i / 8, sw = rack / 8, zone = i * 8 / count;
        for (int g = 0; g < 8; g++)
            gpus[g] = (struct sched_gpu){ .index = g, .mem_mib = 143771, .healthy = true, .model = "NVIDIA H200" };
        snprintf(where, sizeof where, "%s/%c/s%d/r%d", zone < 4 ? "eu" : "us", 'a' + zone % 4, sw, rack);
        sched_apply(s, &(struct sched_event){ .kind = SCHED_NODE, .node = i + 1, .usable = true, .host_image = true, .cpu_milli = 192000,
                                              .mem_mib = 1 << 20, .gpu_count = 8, .gpus = gpus, .where = where });
    }
}

/* Small jobs of all sizes on every node, so that no two are in the same state. */
static void fill(struct sched *s, int nodes)
{
    struct rng r = { 5 };
    for (int i = 0; i < nodes; i++)
        sched_apply(s, &(struct sched_event){ .kind = SCHED_TASK_HELD, .node = i + 1, .project = 9, .job = 1000000 + i, .cpu_held = 1000 + (int64_t)rng_below(&r, 60000),
                                              .mem_held = 1000 + (int64_t)rng_below(&r, 100000), .held_count = (int)rng_below(&r, 7),
                                              .held = (struct sched_held[]){ { 0, 1000, 143771 }, { 1, 1000, 143771 }, { 2, 1000, 143771 }, { 3, 1000, 143771 },
                                                                             { 4, 1000, 143771 }, { 5, 1000, 143771 } } });
}

static void measure(const char *what, int nodes, int tasks, int64_t gpus, bool filled, int within, int prefer)
{
    enum { TIMES = 20 };
    int64_t sum = 0, worst = 0;
    size_t placed = 0, lots = 0;
    AUTO(sched_free) struct sched *s = sched_new();
    nodes_make(s, nodes);
    if (filled)
        fill(s, nodes);
    for (int i = 1; i <= TIMES; i++) {
        AUTO(arena_free) struct arena *mem = arena_new();
        sched_apply(s, &(struct sched_event){ .kind = SCHED_JOB, .job = i, .project = 7, .priority = 50, .created_ms = i, .last_task = tasks - 1, .gang = tasks,
                                              .within = (uint8_t)within, .prefer = (uint8_t)prefer,
                                              .shape = { .gpu.milli = gpus * 1000, .cpu_milli = 8000, .mem_mib = 8192 } });
        int64_t from = now_us();
        struct sched_plan p = sched_plan(s, i, 1000, mem);
        int64_t took = now_us() - from;
        if (i > 1 || TIMES == 1)        /* the first settles the whole fleet */
            sum += took, worst = MAX(worst, took);
        placed = p.count, lots = s->fleet.live;
        for (size_t k = 0; k < p.count; k++)
            sched_apply(s, &(struct sched_event){ .kind = SCHED_TASK_REFUSED, .job = i, .task = p.placements[k].task });
        sched_apply(s, &(struct sched_event){ .kind = SCHED_JOB_GONE, .job = i });
    }
    printf("gang     %6d nodes in %5zu states, %4d tasks of %lld GPUs, %-22s %4zu placed, %.2f ms in the mean, %.2f at most\n", nodes, lots, tasks, (long long)gpus, what,
           placed, (double)sum / (TIMES - 1) / 1e3, (double)worst / 1e3);
}

int main(int argc, char **argv)
{
    int nodes = argc > 1 ? atoi(argv[1]) : 5000, tasks = argc > 2 ? atoi(argv[2]) : 512;
    measure("as close as can be:", nodes, tasks, 8, false, PLACE_REGION, PLACE_NVLINK);
    measure("as close as can be:", nodes, tasks, 1, true, PLACE_REGION, PLACE_NVLINK);
    measure("within a zone:", nodes, tasks, 1, true, PLACE_ZONE, PLACE_RACK);
    measure("within a rack:", nodes, tasks, 1, true, PLACE_RACK, PLACE_NVLINK);
    measure("within a switch:", nodes, 48, 2, true, PLACE_SWITCH, PLACE_NVLINK);
    return 0;
}
