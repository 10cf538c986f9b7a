/* returns.c - suspended work that has yielded its GPUs to others (class spot) goes on when it may: on the GPUs that it had, once they are free, are kept for
 * nobody, and everything that could evict it has been looked at in this pass. Before what is queued in its own class: it was there first.
 *
 * What somebody suspended by name is not our business: whoever did that resumes it, and the door gives it its GPUs. */
#include "sched/sched_internal.h"
#include <stdlib.h>

void returns_file(struct sched *s, struct hold *h, bool in)
{
    if (h->returns == in)
        return;
    h->returns = in;
    if (in) {
        s->returns = room_for(s->returns, s->return_count, &s->return_room, sizeof(struct hold *));
        s->returns[s->return_count++] = h;
        s->dirty = true;
        return;
    }
    for (size_t i = 0; i < s->return_count; i++)
        if (s->returns[i] == h)
            s->returns[i] = s->returns[--s->return_count];
}

/* What it keeps of the memory is its own already. */
static bool may(struct sched *s, const struct hold *h)
{
    const struct node *n = fleet_node(&s->fleet, h->node);
    const struct job *j = map_get(s->jobs, h->job);
    if (!n || !n->usable || !j || !h->away || h->yields_ms || h->evicted_for || h->not_before_ms > s->last_now_ms)
        return false;
    if (n->cpu_milli - n->cpu_used - n->cpu_claimed < h->other_cpu - h->cpu_milli
        || n->mem_mib - n->mem_used - n->mem_claimed < h->other_mem - h->mem_mib)
        return false;
    for (int i = 0; i < h->away; i++) {
        const struct gpu *g = node_gpu(n, h->gpus[i].index);
        if (!g || !g->healthy || g->holders || g->closed)
            return false;
    }
    return quota_allows(s, j->class) && quota_allows_held(j->class, h->other_cpu - h->cpu_milli, h->other_mem - h->mem_mib) && quota_allows_on(s, j->class, n, h->gpus, h->away);
}

/* A snapshot tells them in another order: so who was suspended first is found, not remembered. */
static int by_age(const void *a, const void *b)
{
    const struct hold *x = *(struct hold *const *)a, *y = *(struct hold *const *)b;
    if (x->since_ms != y->since_ms)
        return x->since_ms < y->since_ms ? -1 : 1;
    if (x->job != y->job)
        return x->job < y->job ? -1 : 1;
    return x->task < y->task ? -1 : x->task > y->task;
}

size_t returns_find(struct sched *s, struct arena *mem, struct resume **out)
{
    size_t count = 0;
    if (!s->return_count)
        return 0;
    qsort(s->returns, s->return_count, sizeof *s->returns, by_age);
    for (size_t i = 0; i < s->return_count; i++) {
        struct hold *h = s->returns[i];
        if (!may(s, h))
            continue;
        if (!*out)
            *out = ARENA_ARRAY(mem, struct resume, s->return_count);
        (*out)[count++] = (struct resume){ h->job, h->task, h->node };
        hold_turn(s, h);
        h->returning = true;
    }
    return count;
}

int64_t returns_wake(const struct sched *s)
{
    int64_t wake = INT64_MAX;
    for (size_t i = 0; i < s->return_count; i++)
        if (s->returns[i]->not_before_ms > s->last_now_ms)
            wake = MIN(wake, s->returns[i]->not_before_ms);
    return wake;
}

/* The door knows something that is on its way to us. */
void returns_kept(struct sched *s, struct hold *h)
{
    h->returning = false;
    h->not_before_ms = s->last_now_ms + EVICT_PAUSE_MS;
    hold_turn(s, h);
}
