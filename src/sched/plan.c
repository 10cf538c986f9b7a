/* plan.c - one pass: who starts now, where, and why the others wait.
 *
 * Order.c says who comes next, one task at a time, since each changes what its project has had. A job that does not fit does not hold back
 * those behind it: they start if they fit now, but not where a place is held for the first of a class (ahead.c), or is being freed for somebody
 * (evict.c). A pass only takes, so a line of equal jobs that cannot start is parked until something is given back: a queue that stands
 * still is not looked at. */
#include "sched/sched_internal.h"
#include <stdlib.h>

enum { FILL_LOOK = 256 };

struct pass {
    struct sched *s;
    struct arena *mem;
    struct sched_plan plan;
    int64_t now_ms;
    size_t most, placement_room, wait_room;
    struct job *was;            /* who was next before */
    bool whole;                 /* everything that waits is tried, not only what is new */
};

static void *copy(struct arena *mem, const void *from, size_t count, size_t size)
{
    return count ? memcpy(arena_take(mem, count, size), from, count * size) : NULL;
}

static void give(struct pass *p, struct job *j, int64_t task, const struct node *n, const struct pick *pick)
{
    struct sched_plan *plan = &p->plan;
    struct class *c = j->class;
    int64_t not_before = 0;
    struct held_gpu gpus[SCHED_GPUS];
    int count = pick_gpus(&c->wanted->is, pick, n, &p->s->fleet, gpus);
    struct order_gpu *out = ARENA_ARRAY(p->mem, struct order_gpu, (size_t)count);
    for (int i = 0; i < count; i++) {
        const struct gpu *g = node_gpu(n, gpus[i].index);
        out[i] = (struct order_gpu){ .index = gpus[i].index,
                                     .milli = gpus[i].milli,
                                     .mem_mib = gpus[i].mem_mib,
                                     .mig = gpus[i].slots ? arena_text(p->mem, c->shape.gpu.mig) : NULL,
                                     .slot = gpus[i].slots ? __builtin_ctz(gpus[i].slots) : 0,
                                     .size = __builtin_popcount(gpus[i].slots & (MIG_MEDIA - 1)),
                                     .simulated = g->simulated };
    }
    plan->placements
        = arena_more(p->mem, plan->placements, plan->count, &p->placement_room, sizeof *plan->placements);
    plan->placements[plan->count++]
        = (struct placement){ j->id, task, n->id, { out, (size_t)count } };
    waiting_take(&j->waiting, task, &not_before);
    struct hold *h
        = hold_new(p->s, j->id, task, n->id, c->project, pick->cpu_milli, pick->mem_mib, gpus, count);
    h->not_before_ms = not_before;
    quota_hold(p->s, h, c->owner, j->bound_ms);
    hold_known(p->s, h, p->now_ms, j->priority, j->bound_ms, 0);
}

/* All or nothing: what is found is found for all of them, and then they all have it. Its tasks are numbered by rank. */
static bool place_gang(struct pass *p, struct job *j)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct class *c = j->class;
    struct seat *seats = gang_for(p->s, j, mem, &c->why);
    for (int64_t i = 0; seats && i < c->gang; i++)
        give(p, j, i, seats[i].n, seats[i].pick);
    gang_back(p->s, j, seats);
    return seats != NULL;
}

static bool place(struct pass *p, struct job *j, int64_t task)
{
    struct pick pick;
    struct class *c = j->class;
    if (c->gang)
        return place_gang(p, j);
    struct node *n = place_for(p->s, j, &pick);
    if (!n) {
        c->why = c->held_by.reason ? REASON_QUOTA : c->by_volume ? REASON_VOLUME : REASON_RESOURCES;
        return false;
    }
    give(p, j, task, n, &pick);
    claims_back(p->s, j, n);
    return true;
}

/* Why this class cannot start another task in this pass; REASON_NONE: it did. */
static enum reason try_one(struct pass *p, struct job *j, int64_t task)
{
    struct class *c = j->class;
    if (c->failed_pass == p->s->pass)
        return c->why;
    if (!c->by_volume && !class_possible(p->s, c))
        c->why = REASON_NO_NODE;
    else if (!quota_allows(p->s, c))
        c->why = REASON_QUOTA;
    else if (place(p, j, task))
        return REASON_NONE;
    c->failed_pass = p->s->pass;
    return c->why;
}

/* --- why the others wait */

static void say(struct pass *p, struct job *j, enum reason why)
{
    struct sched_plan *plan = &p->plan;
    if (why == j->told)
        return;
    j->told = (uint8_t)why;
    if (why == REASON_NONE)
        return;
    plan->waits = arena_more(p->mem, plan->waits, plan->wait_count, &p->wait_room, sizeof *plan->waits);
    plan->waits[plan->wait_count] = why == REASON_QUOTA ? j->class->held_by : (struct wait){ 0 };
    plan->waits[plan->wait_count].job = j->id;
    plan->waits[plan->wait_count++].reason = (int)why;
}

/* Of a line for which no node has room only the first of all is told so: the others wait for their turn. */
static enum reason shown(enum reason why)
{
    return why == REASON_RESOURCES ? REASON_PRIORITY : why;
}

static void say_next(struct pass *p, struct job *j)
{
    struct sched *s = p->s;
    if (s->next && (p->whole || !order_before(s, j, s->next)))
        return;
    struct job *was = s->next;
    s->next = j;
    say(p, j, REASON_RESOURCES);
    if (was && was != p->was)
        say(p, was, REASON_PRIORITY);
}

static void park(struct pass *p, struct job *first)
{
    struct sched *s = p->s;
    struct class *c = first->class;
    if (c->why == REASON_RESOURCES)
        say_next(p, first);
    if (c->why == REASON_RESOURCES || (c->gang && c->why == REASON_TOPOLOGY)) {
        evict_line(s, c);
        ahead_parked(s, first, p->whole);
    }
    for (size_t i = 0; c->told != shown(c->why) && i < c->count; i++)
        if (c->ready[c->head + i] != s->next)
            say(p, c->ready[c->head + i], shown(c->why));
    c->told = shown(c->why);
    order_park(s, c);
}

/* New ones, and those that were waiting for something else than a place. */
static void say_fresh(struct pass *p)
{
    struct sched *s = p->s;
    for (size_t i = 0; i < s->fresh_count; i++) {
        struct job *j = map_get(s->jobs, s->fresh[i]);
        if (!j || !j->waiting.count)
            continue;
        if (j->blocked)
            say(p, j, reason_blocks(j->told) ? j->told : REASON_DEPENDENCY);
        else if (j->asleep && j->pause_ms <= p->now_ms)
            say(p, j, REASON_RETRY);
        else if (j->ready && heap_has(&s->parked, j->class) && j != s->next)
            say(p, j, shown(j->class->why));
    }
    s->fresh_count = 0;
}

/* --- the pass */

static void started(struct pass *p, struct job *j)
{
    order_started(p->s, j, p->now_ms);
    order_file(p->s, j);
    if (!j->waiting.count)
        say(p, j, REASON_NONE);
    else if (!j->ready)
        fresh_add(p->s, j);
}

/* Who is behind the first of a line may be short enough for a place that is lent. All ask for the same, so where one found nothing, one
 * that takes as long or longer does not either, and if the shortest does not nobody does. */
static void fill_in(struct pass *p, struct class *c)
{
    struct sched *s = p->s;
    struct job *least = NULL;
    int64_t until = s->claims.count ? claims_until(s) : 0;
    for (size_t i = 0; until && i < c->count && i < FILL_LOOK; i++) {
        struct job *j = c->ready[c->head + i];
        if (j->bound_ms && p->now_ms + j->bound_ms <= until && (!least || j->bound_ms < least->bound_ms))
            least = j;
    }
    if (!least || !quota_allows(s, c) || !lent_fits(s, least))
        return;
    until++;
    for (size_t i = 0; i < c->count && i < FILL_LOOK && p->plan.count < p->most;) {
        struct job *j = c->ready[c->head + i];
        struct pick pick;
        size_t from = 0;
        int64_t task, wake = INT64_MAX;
        struct node *n = NULL;
        if (j->bound_ms && p->now_ms + j->bound_ms < until && waiting_ready(&j->waiting, p->now_ms, &from, &wake, &task) && quota_allows(s, c)) {
            n = place_lent(s, j, &pick);
            until = n ? until : p->now_ms + j->bound_ms;
        }
        if (n) {
            give(p, j, task, n, &pick);
            claims_back(s, j, n);
            started(p, j);
        }
        i += !n;
    }
}

static void start(struct pass *p, struct job *j)
{
    size_t from = 0;
    int64_t task, wake = INT64_MAX;
    p->s->looks++;
    if (waiting_ready(&j->waiting, p->now_ms, &from, &wake, &task) && try_one(p, j, task) != REASON_NONE) {
        if (j->class->why == REASON_RESOURCES && !j->class->gang)
            fill_in(p, j->class);
        if (j->ready)
            park(p, j);
        return;
    }
    started(p, j);
}

/* Places that others have left for somebody are his before anybody is asked. */
static void serve(struct pass *p)
{
    struct sched *s = p->s;
    for (size_t i = 0; s->claims.evicts && i < s->claims.count && p->plan.count < p->most;) {
        const struct claim *cl = s->claims.at[i];
        struct job *j = cl->kind == CLAIM_EVICT ? map_get(s->jobs, cl->job) : NULL;
        if (j && j->class->gang && (claims_of(s, j->id) != cl || (p->plan.count && p->plan.count + (size_t)j->class->gang > p->most)))
            j = NULL; /* once for all of it, and not in two plans */
        size_t from = 0, before = s->claims.count;
        int64_t task, wake = INT64_MAX;
        if (j && j->ready && waiting_ready(&j->waiting, p->now_ms, &from, &wake, &task) && quota_allows(s, j->class)
            && claim_free(s, cl, j) && place(p, j, task))
            started(p, j);
        i += s->claims.count == before;
    }
}

struct sched_plan sched_plan(struct sched *s, int64_t now_ms, size_t most, struct arena *mem)
{
    struct pass p
        = { .s = s, .mem = mem, .plan = { .next_ms = INT64_MAX }, .now_ms = now_ms, .most = most };
    struct job *j;
    if (now_ms != s->last_now_ms)
        order_time(s, now_ms);
    quota_time(s, now_ms);
    reserves_time(s, now_ms);
    evict_time(s, now_ms);
    s->eviction_count = s->start_count = 0;
    struct job *was = p.was = s->next;
    s->pass++;
    p.whole = s->dirty;
    if (s->dirty) {
        order_unpark(s);
        s->next = NULL;
        claims_check(s);
        reserves_pin(s);
        ahead_begin(s);
    }
    s->dirty = false;
    serve(&p);
    returns_find(s, mem, true, &p.plan);
    bool returned = false;
    while ((j = order_next(s)) && p.plan.count < most && (!p.plan.count || p.plan.count + (size_t)j->class->gang <= most)) {
        if (!returned && priority_of(j->priority) == CLASS_SPOT) { /* behind all that may evict it, and before its like */
            returns_find(s, mem, false, &p.plan);
            returned = true;
        }
        start(&p, j);
    }
    if (!j && !returned)
        returns_find(s, mem, false, &p.plan);
    if (j && !s->next && was && was->ready)
        s->next = was; /* the plan is full: it goes on with the next */
    if (was && was != s->next && was->ready && heap_has(&s->parked, was->class))
        say(&p, was, shown(was->class->why));
    say_fresh(&p);
    if (!j)
        ahead_end(s, p.whole);
    p.plan.evictions = copy(mem, s->evictions, p.plan.eviction_count = s->eviction_count, sizeof *s->evictions);
    p.plan.starts = copy(mem, s->starts, p.plan.start_count = s->start_count, sizeof *s->starts);
    p.plan.next_ms = j || s->dirty ? now_ms : MIN(MIN(order_wake(s), quota_wake(s)), MIN(MIN(s->reserve_ms, s->braked_ms), returns_wake(s)));
    return p.plan;
}
