/* returns.c - suspended work goes on when it may: on the GPUs that it had, once they are free and kept for nobody. What its owner has resumed comes before
 * all that is queued, but behind those for whom others have yielded. What had to yield itself (class spot) comes when everything that could evict it has
 * been looked at in this pass, and before what is queued in its own class: it was there first. So does spot work that its owner has resumed.
 *
 * Places that others have reserved are theirs, whoever was there before; but where they are is not promised. So if they stand in the way of one that was
 * resumed, they move, as far as there are others. */
#include "sched/sched_internal.h"
#include <stdlib.h>

enum { MOVE_AGAIN_MS = 10000 };

void returns_file(struct sched *s, struct hold *h, bool in, bool wanted)
{
    h->wanted = in && wanted;
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

/* Until then nothing is tried; a clock that went back does not make it longer. */
static bool pauses(const struct sched *s, int64_t until_ms, int64_t most_ms)
{
    return until_ms > s->last_now_ms && until_ms - s->last_now_ms <= most_ms;
}

/* New work does not come to a node that is cordoned; this has been there all the time. What it keeps of the memory is its own already. */
static bool may(struct sched *s, const struct hold *h, const struct job *j)
{
    const struct node *n = fleet_node(&s->fleet, h->node);
    if (!n || !(n->usable || (h->wanted && n->shut != FILTER_AWAY)) || !h->away || h->yields_ms || h->evicted_for || pauses(s, h->not_before_ms, EVICT_PAUSE_MS))
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

/* If only what others have reserved is in its way. */
static bool makes_room(struct sched *s, struct hold *h, const struct job *j)
{
    if (pauses(s, h->moved_ms, MOVE_AGAIN_MS) || !map_count(s->reserves))
        return false;
    claims_open(s, h->node, j, true, true);
    if (!may(s, h, j))
        return false;
    h->moved_ms = s->last_now_ms + MOVE_AGAIN_MS;
    hold_turn(s, h);
    bool moved = reserves_move(s, h->node, j);
    hold_turn(s, h);
    return moved;
}

static bool comes_first(const struct hold *h) { return h->wanted && h->rank != CLASS_SPOT; }

static bool comes_back(struct sched *s, struct hold *h)
{
    const struct job *j = map_get(s->jobs, h->job);
    if (!j)
        return false;
    claims_open(s, h->node, j, comes_first(h), false);
    bool back = may(s, h, j) || (comes_first(h) && makes_room(s, h, j));
    if (back)
        hold_turn(s, h);
    claims_again(s, h->node);
    return back;
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

void returns_find(struct sched *s, struct arena *mem, bool first, struct sched_plan *plan)
{
    if (!s->return_count)
        return;
    qsort(s->returns, s->return_count, sizeof *s->returns, by_age);
    for (size_t i = 0; i < s->return_count; i++) {
        struct hold *h = s->returns[i];
        if (comes_first(h) != first || !comes_back(s, h))
            continue;
        if (!plan->resumes)
            plan->resumes = ARENA_ARRAY(mem, struct resume, s->return_count);
        plan->resumes[plan->resume_count++] = (struct resume){ h->job, h->task, h->node };
        h->returning = true;
        s->dirty = s->dirty || first; /* a start that was held there for another is to be found anew */
    }
}

int64_t returns_wake(const struct sched *s)
{
    int64_t wake = INT64_MAX;
    for (size_t i = 0; i < s->return_count; i++) {
        const struct hold *h = s->returns[i];
        if (pauses(s, h->not_before_ms, EVICT_PAUSE_MS))
            wake = MIN(wake, h->not_before_ms);
        if (h->away && pauses(s, h->moved_ms, MOVE_AGAIN_MS))
            wake = MIN(wake, h->moved_ms);
    }
    return wake;
}

/* The door knows something that is on its way to us. */
void returns_kept(struct sched *s, struct hold *h)
{
    h->returning = false;
    h->not_before_ms = s->last_now_ms + EVICT_PAUSE_MS;
    hold_turn(s, h);
}
