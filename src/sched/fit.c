/* fit.c - what a class of jobs may have: its project's quota, and the best place now. Whether a node could ever run it: filter.c. */
#include "sched/sched_internal.h"

/* What a task holds may follow from the node, so the quota of CPUs and memory is looked at for each. */
static bool held_fits(const struct project *p, int64_t cpu, int64_t mem)
{
    const struct quota *q = &p->quota;
    return (q->cpu_milli < 0 || p->cpu_held + cpu <= q->cpu_milli)
           && (q->mem_mib < 0 || p->mem_held + mem <= q->mem_mib);
}

static bool within_quota(const struct pick *p, void *arg)
{
    return held_fits(arg, p->cpu_milli, p->mem_mib);
}

static bool allowed_on(struct sched *s, struct class *c, const struct node *n, const struct pick *pick)
{
    struct held_gpu gpus[SCHED_GPUS];
    if (!c->project->limits.count)
        return true;
    int count = pick_gpus(&c->wanted->is, pick, n, &s->fleet, gpus);
    return quota_allows_on(s, c, n, gpus, count);
}

bool place_may(struct sched *s, struct class *c, const struct node *n, const struct pick *pick)
{
    return within_quota(pick, c->project) && allowed_on(s, c, n, pick);
}

bool place_allowed(struct sched *s, struct class *c, const struct spot *at)
{
    return (!c->only_node || c->only_node == at->node->id) && within_quota(&at->pick, c->project)
           && quota_allows_on(s, c, at->node, at->gpus, at->count);
}

/* The best place is of a model that the project has enough of: the first other one. Only projects with such limits pay for it. */
static struct node *place_elsewhere(struct sched *s, struct class *c, struct pick *pick)
{
    for (size_t i = 0; i < s->fleet.count; i++) {
        struct node *n = s->fleet.nodes[i];
        if (index_on(&s->index, c->wanted, n, pick) && within_quota(pick, c->project) && allowed_on(s, c, n, pick))
            return n;
    }
    return NULL;
}

struct node *place_find(struct sched *s, struct class *c, struct pick *pick)
{
    struct project *p = c->project;
    if (c->only_node) {
        struct node *n = fleet_node(&s->fleet, c->only_node);
        return n && index_on(&s->index, c->wanted, n, pick) && quota_allows_held(c, pick->cpu_milli, pick->mem_mib) && allowed_on(s, c, n, pick) ? n : NULL;
    }
    struct node *n = index_best(&s->index, c->wanted, pick);
    if (n && !within_quota(pick, p)) { /* it would hold less elsewhere, perhaps; else that is why it waits */
        struct pick first = *pick;
        n = index_scan(&s->index, c->wanted, within_quota, p, pick);
        if (!n)
            quota_allows_held(c, first.cpu_milli, first.mem_mib);
    }
    return !n || allowed_on(s, c, n, pick) ? n : place_elsewhere(s, c, pick);
}
