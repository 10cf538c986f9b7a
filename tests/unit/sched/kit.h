/* kit.h - events for tests, in one line each. */
#pragma once
#include "base/err.h"
#include "sched/sched.h"
#include <stdio.h>

struct kit_node { int64_t id; const char *model; int gpus; int64_t gpu_mib, cpus, mem_mib; bool away, host; };

/* For as long as the test runs: events are passed around by value. */
static inline void *kit_keep(size_t count, size_t size)
{
    static struct arena *mem;
    mem = mem ? mem : arena_new();
    return arena_take(mem, count, size);
}

static inline struct sched_event kit_node_event(const struct kit_node *n)
{
    struct sched_event e = { .kind = SCHED_NODE, .node = n->id, .usable = !n->away, .host_image = n->host, .cpu_milli = n->cpus * 1000,
                             .mem_mib = n->mem_mib, .gpu_count = n->gpus };
    e.gpus = kit_keep((size_t)n->gpus, sizeof *e.gpus);
    for (int i = 0; i < n->gpus; i++) {
        e.gpus[i] = (struct sched_gpu){ .index = i, .mem_mib = n->gpu_mib, .healthy = true };
        snprintf(e.gpus[i].model, sizeof e.gpus[i].model, "%s", n->model);
    }
    return e;
}

/* Who may come to nodes, and who comes: the same in words, and asked again in the plainest way. */
static const char *const kit_houses[] = { NULL, NULL, NULL, "T a=b\n", "T a=b\nT gpu\n", "X 1\n", "T gpu\nX 2\nP eu\n", "P eu\n", "P de\nP us\n" };
static const char *const kit_tolerations[] = { NULL, NULL, "a=b\n", "a=c\ngpu\n", "a\ngpu\n" };
static const char *const kit_residencies[] = { NULL, NULL, NULL, "eu", "de,fr" };
static inline bool kit_admits(const char *house, const char *tolerates, const char *residency, int64_t project)
{
    house = house ? house : "";
    tolerates = tolerates ? tolerates : "";
    bool a = strstr(tolerates, "a=b\n") || strstr(tolerates, "a\n"), gpu = strstr(tolerates, "gpu\n");
    return (!strstr(house, "T a=b") || a) && (!strstr(house, "T gpu") || gpu) && (!strstr(house, "X 1") || project == 1)
           && (!strstr(house, "X 2") || project == 2) && (!residency || (text_is(residency, "eu") ? strstr(house, "P eu") : strstr(house, "P de")));
}

/* By number: plain, no ECC, mixing, equal, both, MIG as it comes, MIG as it was cut. */
static inline void kit_gpu_mode(struct sched_gpu *g, uint64_t mode)
{
    struct err err;
    g->whole_only = mode == 1;
    g->mixes = mode == 2 || mode == 4;
    g->equal = mode == 3 || mode == 4;
    g->mig = (struct mig_layout){ 0 };
    if (mode == 5 && mig_part_of(g->model, g->mem_mib))
        (void)!mig_layout_parse("on", g->model, g->mem_mib, true, &g->mig, &err);
    if (mode == 6 && text_is(g->model, "NVIDIA H200") && g->mem_mib > 120000)
        (void)!mig_layout_parse("1g.18gb@0,1g.18gb@1,2g.35gb@2,3g.71gb@4", g->model, g->mem_mib, false, &g->mig, &err);
}

/* gpus in the spelling of a user. */
static inline struct sched_event kit_job_event(int64_t id, int64_t project, int64_t priority, const char *gpus, int64_t cpus, int64_t mem_mib,
                                               int64_t tasks)
{
    struct sched_event e = { .kind = SCHED_JOB, .job = id, .project = project, .priority = priority, .created_ms = id * 1000,
                             .last_task = tasks - 1, .shape = { .cpu_milli = cpus * 1000, .mem_mib = mem_mib } };
    struct err err = { 0 };
    bool ok = strchr(gpus, 'g') && gpus[1] == 'g' ? mig_parse(gpus, &e.shape.gpu) : gpu_ask_parse(gpus, &e.shape.gpu, &err);
    assert(ok);
    (void)ok;
    return e;
}

static inline void kit_task(struct sched *s, enum sched_kind kind, int64_t job, int64_t task, int64_t not_before_ms)
{
    struct sched_event e = { .kind = kind, .job = job, .task = task, .not_before_ms = not_before_ms };
    sched_apply(s, &e);
}

static inline struct sched_event kit_held_event(const struct placement *p, const struct sched_event *job)
{
    struct sched_event e = { .kind = SCHED_TASK_HELD, .node = p->node, .project = job->project, .job = p->job, .task = p->task,
                             .priority = job->priority, .bound_ms = job->bound_ms, .cpu_held = job->shape.cpu_milli, .mem_held = job->shape.mem_mib, .held_count = (int)p->gpus.count };
    const struct order_gpu *g = p->gpus.at;
    e.held = kit_keep(p->gpus.count, sizeof *e.held);
    for (size_t i = 0; i < p->gpus.count; i++) {
        e.held[i].index = g[i].index;
        e.held[i].milli = g[i].milli;
        e.held[i].mem_mib = g[i].mem_mib;
        e.held[i].slots = g[i].size ? mig_slots((int)g[i].slot, (int)g[i].size, strstr(g[i].mig, "+me")) : 0;
    }
    return e;
}
