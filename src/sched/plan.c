/* plan.c - one pass over the queue: who starts now, where, and why the others wait.
 *
 * Jobs are looked at by priority, then age. A job that does not fit does not hold back those behind it: they start if they fit now.
 * That keeps the fleet busy and may starve a large job under a stream of small ones; reservations with backfill under them come with
 * the planner that replaces this one. Takes only within a pass, so what failed once for a class of jobs is not tried again in it. For the
 * same reason new jobs alone are a pass of their own: those that waited before wait on. */
#include "sched/sched_internal.h"
#include <stdlib.h>

struct pass {
    struct sched *s;
    struct arena *mem;
    struct sched_plan plan;
    int64_t now_ms;
    size_t most, placement_room, wait_room;
};

static void *more(struct arena *mem, const void *at, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return (void *)at;
    *room = *room ? *room * 2 : 16;
    void *bigger = arena_take(mem, *room, size);
    if (count)
        memcpy(bigger, at, count * size);
    return bigger;
}

static bool possible(const struct sched *s, struct class *c)
{
    if (c->known_fleet != s->fleet + 1) { /* 0 is never: a class begins without knowing */
        c->possible = false;
        for (size_t i = 0; i < s->node_count && !c->possible; i++)
            c->possible = node_could(s->nodes[i], c);
        c->known_fleet = s->fleet + 1;
    }
    return c->possible;
}

static void give(struct pass *p, struct job *j, int64_t task, const struct node *n,
                 const struct held_gpu *gpus, int count)
{
    struct sched_plan *plan = &p->plan;
    struct class *c = j->class;
    int64_t not_before = 0;
    struct order_gpu *out = ARENA_ARRAY(p->mem, struct order_gpu, (size_t)count);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < n->gpu_count; k++)
            if (n->gpus[k].is.index == gpus[i].index)
                out[i]
                    = (struct order_gpu){ gpus[i].index, arena_text(p->mem, n->gpus[k].is.uuid),
                                          gpus[i].milli, gpus[i].mem_mib, n->gpus[k].is.simulated };
    plan->placements
        = more(p->mem, plan->placements, plan->count, &p->placement_room, sizeof *plan->placements);
    plan->placements[plan->count++]
        = (struct placement){ j->id, task, n->id, { out, (size_t)count } };
    waiting_take(&j->waiting, task, &not_before);
    int64_t cpu, mem;
    shape_on(&c->shape, n->cpu_milli, n->mem_mib, n->gpu_count, &cpu, &mem);
    struct hold *h = hold_new(p->s, j->id, task, n->id, c->project, cpu, mem, gpus, count);
    h->not_before_ms = not_before;
}

static bool place(struct pass *p, struct job *j, int64_t task)
{
    struct held_gpu gpus[SCHED_GPUS];
    int count;
    for (size_t i = 0; i < p->s->node_count; i++)
        if (node_fits(p->s->nodes[i], j->class, gpus, &count))
            return give(p, j, task, p->s->nodes[i], gpus, count), true;
    return false;
}

/* Why this class cannot start another task in this pass; REASON_NONE: it did. */
static enum reason try_one(struct pass *p, struct job *j, int64_t task)
{
    struct class *c = j->class;
    if (c->failed_pass == p->s->pass)
        return c->why;
    if (!c->by_volume && !possible(p->s, c))
        c->why = REASON_NO_NODE;
    else if (!quota_fits(c))
        c->why = REASON_QUOTA;
    else if (place(p, j, task))
        return REASON_NONE;
    else
        c->why = c->by_volume ? REASON_VOLUME : REASON_RESOURCES;
    c->failed_pass = p->s->pass;
    return c->why;
}

/* Starts what can start of a job; the reason why the rest of it waits, or REASON_NONE when nothing of it waits or the plan is full. */
static enum reason look_at(struct pass *p, struct job *j)
{
    size_t from = 0;
    int64_t task;
    if (j->blocked)
        return REASON_DEPENDENCY;
    if (j->pause_ms > p->now_ms && j->pause_ms <= p->now_ms + REFUSED_PAUSE_MS) { /* else the clock went back */
        p->plan.next_ms = MIN(p->plan.next_ms, j->pause_ms);
        return j->told;
    }
    enum reason why = REASON_RETRY;
    while (waiting_ready(&j->waiting, p->now_ms, &from, &p->plan.next_ms, &task)) {
        if (p->plan.count == p->most)
            return REASON_NONE;
        why = try_one(p, j, task);
        if (why != REASON_NONE)
            break;
        why = REASON_RETRY; /* so far: only pauses may be left */
    }
    /* The pauses behind those that did not fit. */
    while (why != REASON_RETRY && from < j->waiting.count) {
        int64_t not_before = j->waiting.at[j->waiting.head + from++].not_before_ms;
        if (not_before > p->now_ms)
            p->plan.next_ms = MIN(p->plan.next_ms, not_before);
    }
    return j->waiting.count ? why : REASON_NONE;
}

static void tell(struct pass *p, struct job *j, enum reason why)
{
    struct sched_plan *plan = &p->plan;
    if (why == REASON_RESOURCES && p->s->next)
        why = REASON_PRIORITY;
    else if (why == REASON_RESOURCES)
        p->s->next = j;
    if (why == j->told)
        return;
    j->told = why;
    if (why == REASON_NONE)
        return;
    plan->waits = more(p->mem, plan->waits, plan->wait_count, &p->wait_room, sizeof *plan->waits);
    plan->waits[plan->wait_count++] = (struct wait){ j->id, (int)why };
}

static struct sched_plan full_pass(struct pass *p)
{
    struct sched *s = p->s;
    s->pass++;
    s->next = NULL;
    s->fresh_count = 0;
    size_t i = 0, kept = 0;
    for (; i < s->queue_count && p->plan.count < p->most; i++) {
        struct job *j = s->queue[i];
        s->looks++;
        enum reason why = look_at(p, j);
        if (p->plan.count < p->most || !j->waiting.count)
            tell(p, j, why);
        if (j->waiting.count)
            s->queue[kept++] = j;
    }
    if (kept < i)
        memmove(s->queue + kept, s->queue + i, (s->queue_count - i) * sizeof *s->queue);
    bool full = i < s->queue_count || (p->most && p->plan.count == p->most);
    s->queue_count = kept + s->queue_count - i;
    s->dirty = full;
    s->wake_ms = p->plan.next_ms;
    if (full)
        p->plan.next_ms = p->now_ms;
    return p->plan;
}

static int by_order(const void *a, const void *b)
{
    return job_order(*(struct job *const *)a, *(struct job *const *)b);
}

/* Nothing was given back since the last pass, so the classes that failed in it still do. */
static struct sched_plan fresh_pass(struct pass *p)
{
    struct sched *s = p->s;
    size_t i = 0;
    p->plan.next_ms = s->wake_ms;
    for (; i < s->fresh_count && p->plan.count < p->most; i++) {
        struct job *j = s->fresh[i];
        s->looks++;
        enum reason why = look_at(p, j);
        if (p->plan.count < p->most || !j->waiting.count)
            tell(p, j, why);
        if (!j->waiting.count)
            queue_drop(s, j);
    }
    bool full = i < s->fresh_count || (p->most && p->plan.count == p->most);
    s->fresh_count = 0;
    s->dirty = full;
    s->wake_ms = p->plan.next_ms;
    if (full)
        p->plan.next_ms = p->now_ms;
    return p->plan;
}

/* Who comes before the one that is next takes its place, which is for a full pass to tell. */
static bool behind_next(struct sched *s)
{
    if (s->fresh_count)
        qsort(s->fresh, s->fresh_count, sizeof *s->fresh, by_order);
    return !s->fresh_count || !s->next || job_order(s->next, s->fresh[0]) < 0;
}

struct sched_plan sched_plan(struct sched *s, int64_t now_ms, size_t most, struct arena *mem)
{
    struct pass p
        = { .s = s, .mem = mem, .plan = { .next_ms = INT64_MAX }, .now_ms = now_ms, .most = most };
    bool time = now_ms >= s->wake_ms || now_ms < s->last_now_ms;
    if (!s->dirty && !time && !s->fresh_count)
        return (struct sched_plan){ .next_ms = s->wake_ms };
    s->last_now_ms = now_ms;
    return s->dirty || time || !behind_next(s) ? full_pass(&p) : fresh_pass(&p);
}
