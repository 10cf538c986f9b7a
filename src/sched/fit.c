/* fit.c - does a task fit on a node, and on which of its GPUs. Integers only.
 *
 * Whole GPUs come from untouched devices, shares go onto the fullest device that holds only shares of the same project. MIG slices
 * fit nowhere yet: no node offers any. */
#include "sched/sched_internal.h"

static bool node_suits(const struct node *n, const struct class *c)
{
    return (!c->only_node || c->only_node == n->id) && (!c->wants_host_image || n->host_image)
           && !c->shape.gpu.mig[0];
}

static bool gpu_suits(const struct gpu *g, const struct gpu_ask *ask)
{
    return g->is.healthy && gpu_ask_fits(ask, g->is.model, g->is.mem_mib);
}

static int gpus_wanted(const struct gpu_ask *ask)
{
    return (int)((ask->milli + 999) / 1000);
}

bool node_could(const struct node *n, const struct class *c)
{
    int wanted = gpus_wanted(&c->shape.gpu);
    int64_t cpu, mem;
    shape_on(&c->shape, n->cpu_milli, n->mem_mib, n->gpu_count, &cpu, &mem);
    if (!node_suits(n, c) || n->cpu_milli < cpu || n->mem_mib < mem)
        return false;
    for (int i = 0; i < n->gpu_count && wanted; i++)
        wanted -= gpu_suits(&n->gpus[i], &c->shape.gpu);
    return !wanted;
}

static bool whole_gpus(const struct node *n, const struct gpu_ask *ask, struct held_gpu *gpus,
                       int *count)
{
    int wanted = gpus_wanted(ask), found = 0;
    for (int i = 0; i < n->gpu_count && found < wanted; i++)
        if (!n->gpus[i].holders && gpu_suits(&n->gpus[i], ask))
            gpus[found++] = (struct held_gpu){ n->gpus[i].is.index, 1000, n->gpus[i].is.mem_mib };
    return found == wanted && (*count = found, true);
}

static bool shared_gpu(const struct node *n, const struct class *c, struct held_gpu *gpus,
                       int *count)
{
    const struct gpu_ask *ask = &c->shape.gpu;
    const struct gpu *best = NULL;
    for (int i = 0; i < n->gpu_count; i++) {
        const struct gpu *g = &n->gpus[i];
        if ((g->holders && g->project != c->project->id) || g->used_milli + ask->milli > 1000
            || g->used_mib + gpu_ask_mib(ask, g->is.mem_mib) > g->is.mem_mib)
            continue;
        if ((!best || g->used_milli > best->used_milli)
            && gpu_suits(g, ask)) /* names are compared last: it is slow */
            best = g;
    }
    if (!best)
        return false;
    gpus[0] = (struct held_gpu){ best->is.index, ask->milli, gpu_ask_mib(ask, best->is.mem_mib) };
    return *count = 1, true;
}

/* What a task holds may follow from the node, so the quota of CPUs and memory is looked at for each. */
static bool held_fits(const struct project *p, int64_t cpu, int64_t mem)
{
    const struct quota *q = &p->quota;
    return (q->cpu_milli < 0 || p->cpu_held + cpu <= q->cpu_milli)
           && (q->mem_mib < 0 || p->mem_held + mem <= q->mem_mib);
}

bool node_fits(const struct node *n, const struct class *c, struct held_gpu *gpus, int *count)
{
    int64_t cpu, mem;
    *count = 0;
    shape_on(&c->shape, n->cpu_milli, n->mem_mib, n->gpu_count, &cpu, &mem);
    if (!n->usable || !node_suits(n, c) || n->cpu_milli - n->cpu_used < cpu
        || n->mem_mib - n->mem_used < mem || !held_fits(c->project, cpu, mem))
        return false;
    if (!c->shape.gpu.milli)
        return true;
    return c->shape.gpu.milli < 1000 ? shared_gpu(n, c, gpus, count)
                                     : whole_gpus(n, &c->shape.gpu, gpus, count);
}

bool quota_fits(const struct class *c)
{
    const struct project *p = c->project;
    const struct quota *q = &p->quota;
    return (q->gpu_milli < 0 || p->gpu_held + c->shape.gpu.milli <= q->gpu_milli)
           && held_fits(p, c->shape.cpu_milli, c->shape.mem_mib);
}
