/* sched.c - the picture of fleet and queue, kept event by event.
 *
 * Law: the picture depends on the facts, not on the order or number of the events that told them, so that one built from a snapshot
 * equals one that followed everything. Slices are counted from the holds alone; a node that comes back finds its holds again. */
#include "sched/sched_internal.h"
#include <stdio.h>
#include <stdlib.h>

struct sched *sched_new(void)
{
    struct sched *s = must(calloc(1, sizeof *s));
    s->projects = map_new();
    s->jobs = map_new();
    s->holds = map_new();
    s->held_on = map_new();
    s->classes = map_new();
    s->reserves = map_new();
    s->claims.on = map_new();
    s->claims.of = map_new();
    s->rules = (struct sched_rules){ .brake_window_ms = 1, .backfill_depth = 1 };
    s->reserve_ms = s->braked_ms = INT64_MAX;
    s->index = (struct index){ .fleet = &s->fleet, .mix = &s->mix, .policy = *policy_at(0) };
    order_start(s);
    s->pass = 1; /* 0 is never: a class begins without having failed */
    return s;
}

static void job_free(struct job *j)
{
    waiting_done(&j->waiting);
    free(j);
}

static void free_all(struct map *m, void (*done)(void *))
{
    void *v;
    for (size_t i = 0; (v = map_next(m, &i));)
        done(v);
    map_free(m);
}

static void class_chain_free(void *first)
{
    for (struct class *c = first, *next; c; c = next) {
        next = c->next;
        free((char *)c->tolerates);
        free(c->ready);
        free(c);
    }
}

static void hold_free(struct hold *h)
{
    free(h->counted);
    free(h);
}

static void hold_chain_free(void *first)
{
    for (struct hold *h = first, *same; h; h = same) {
        same = h->same;
        hold_free(h);
    }
}

static void project_free(void *p)
{
    free(((struct project *)p)->residency);
    books_done(&((struct project *)p)->limits);
    free(p);
}

static void job_free_any(void *j)
{
    job_free(j);
}

void sched_free(struct sched *s)
{
    if (!s)
        return;
    struct reserve *r;
    for (size_t i = 0; (r = map_next(s->reserves, &i));)
        reserve_free(s, r);
    map_free(s->reserves);
    claims_done(&s->claims);
    free_all(s->jobs, job_free_any);
    free_all(s->holds, hold_chain_free);
    order_done(s);
    map_free(s->held_on);
    free_all(s->projects, project_free);
    free_all(s->classes, class_chain_free);
    index_done(&s->index);
    mix_done(&s->mix);
    near_done(s);
    fleet_done(&s->fleet);
    free(s->fresh);
    free(s->touched);
    free(s->brakes);
    free(s->evictions);
    free(s->starts);
    free(s->returns);
    free(s);
}

/* --- who may come where */

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static struct guest guest_of(const struct sched *s, const struct class *c)
{
    bool named = s->fleet.named && map_get(s->fleet.named, c->project->id);
    return (struct guest){ c->tolerates, c->project->residency, named ? c->project->id : 0 };
}

static struct wanted *class_wants(struct sched *s, const struct class *c)
{
    struct want want = { .shape = c->shape, .project = c->project->id, .host_image = c->wants_host_image, .guest = guest_of(s, c) };
    memcpy(want.region, c->region, sizeof want.region);
    memcpy(want.zone, c->zone, sizeof want.zone);
    return wanted_of(&s->index, &want);
}

/* A project may go elsewhere than before: only then are its tasks others to the index. */
static void guests_change(struct sched *s)
{
    struct class *first;
    for (size_t i = 0; (first = map_next(s->classes, &i));)
        for (struct class *c = first; c; c = c->next) {
            struct wanted *was = c->wanted;
            c->wanted = class_wants(s, c);
            wanted_leave(&s->index, was);
            c->known_fleet = 0;
        }
    s->dirty = true;
}

/* --- nodes */

/* Slices are counted from the holds alone. */
static void on_node(struct sched *s, const struct sched_event *e)
{
    order_node(s, fleet_node(&s->fleet, e->node), -1);
    size_t named = s->fleet.named ? map_count(s->fleet.named) : 0;
    const struct node *was = fleet_node(&s->fleet, e->node);
    uint32_t site = was ? place_site(was->place)->id : 0;
    fleet_set(&s->fleet, e);
    if (map_count(s->fleet.named) != named)
        guests_change(s);
    struct node *n = fleet_node(&s->fleet, e->node);
    if (s->near.spreads && place_site(n->place)->id != site)
        near_places(s);
    order_node(s, n, 1);
    for (const struct hold *h = map_get(s->held_on, n->id); h; h = h->next) {
        n->kept_mib += h->away ? h->mem_mib : 0;
        fleet_take(&s->fleet, n, h->project->id, h->cpu_milli, h->mem_mib, h->gpus, h->count);
    }
    claims_node(s, n->id);
    ahead_touch(s, n->id);
    s->dirty = true;
}

static void on_node_gone(struct sched *s, const struct sched_event *e)
{
    order_node(s, fleet_node(&s->fleet, e->node), -1);
    s->dirty = fleet_drop(&s->fleet, e->node) || s->dirty;
    near_node_gone(s, e->node);
    near_places(s);
    claims_node(s, e->node);
}

/* --- projects */

static struct project *project_of(struct sched *s, int64_t id)
{
    struct project *p = map_get(s->projects, id);
    if (!p) {
        p = must(calloc(1, sizeof *p));
        p->id = id;
        p->quota = QUOTA_NONE;
        p->weight_milli = 1000;
        for (int i = 0; i < CLASS_COUNT; i++)
            p->lanes[i].project = p;
        map_put(s->projects, id, p);
    }
    return p;
}

static void on_project(struct sched *s, const struct sched_event *e)
{
    struct project *p = project_of(s, e->project);
    p->quota = e->quota;
    p->weight_milli = e->weight_milli ? e->weight_milli : 1000;
    p->told = true;
    if (!same_text(p->residency, e->house)) {
        free(p->residency);
        p->residency = e->house ? must(strdup(e->house)) : NULL;
        guests_change(s);
    }
    if (e->used_until_ms)
        order_used(s, p, e->used, e->used_from_ms, e->used_until_ms);
    order_moved(s, p);
    s->dirty = true;
}

/* --- holds */

static int64_t hold_key(int64_t job, int64_t task)
{
    return (int64_t)((uint64_t)job * 0x9e3779b97f4a7c15ULL + (uint64_t)task);
}

struct hold *hold_find(const struct sched *s, int64_t job, int64_t task)
{
    struct hold *h = map_get(s->holds, hold_key(job, task));
    while (h && (h->job != job || h->task != task))
        h = h->same;
    return h;
}

static void hold_enter(struct sched *s, struct hold *h)
{
    h->same = map_get(s->holds, hold_key(h->job, h->task));
    map_put(s->holds, hold_key(h->job, h->task), h);
    if ((h->next = map_get(s->held_on, h->node)))
        h->next->prev = h;
    map_put(s->held_on, h->node, h);
}

static void hold_leave(struct sched *s, struct hold *h)
{
    struct hold *first = map_take(s->holds, hold_key(h->job, h->task)), **at = &first;
    while (*at != h)
        at = &(*at)->same;
    *at = h->same;
    if (first)
        map_put(s->holds, hold_key(h->job, h->task), first);
    if (h->next)
        h->next->prev = h->prev;
    if (h->prev)
        h->prev->next = h->next;
    else if (h->next)
        map_put(s->held_on, h->node, h->next);
    else
        map_take(s->held_on, h->node);
}

static void hold_count(struct sched *s, const struct hold *h, int sign)
{
    struct node *n = fleet_node(&s->fleet, h->node);
    order_held(s, h->project);
    if (n && h->away)
        n->kept_mib += sign * h->mem_mib;
    if (n && sign > 0)
        fleet_take(&s->fleet, n, h->project->id, h->cpu_milli, h->mem_mib, h->gpus, h->count);
    else if (n)
        fleet_give(&s->fleet, n, h->project->id, h->cpu_milli, h->mem_mib, h->gpus, h->count);
    for (int i = 0; i < h->count; i++)
        h->project->gpu_held += sign * h->gpus[i].milli;
    h->project->cpu_held += sign * h->cpu_milli;
    h->project->mem_held += sign * h->mem_mib;
    order_moved(s, h->project);
}

static void hold_tally(struct sched *s, struct hold *h, bool in)
{
    if (h->tallied == in)
        return;
    s->ending += h->ends_ms == INT64_MAX ? 0 : in ? 1 : (size_t)-1;
    s->ranks[h->rank] += in ? 1 : (size_t)-1;
    h->tallied = in;
}

void hold_known(struct sched *s, struct hold *h, int64_t since_ms, int64_t priority, int64_t bound_ms, int64_t yields_ms)
{
    int64_t was = h->ends_ms;
    hold_tally(s, h, false);
    h->since_ms = since_ms;
    h->rank = (uint8_t)priority_of(priority);
    h->yields_ms = yields_ms;
    h->ends_ms = yields_ms ? yields_ms : bound_ms ? since_ms + bound_ms : INT64_MAX;
    hold_tally(s, h, true);
    if (h->ends_ms < was)
        ahead_touch(s, h->node);
    claims_count(s, h->node);
}

struct hold *hold_new(struct sched *s, int64_t job, int64_t task, int64_t node, struct project *p,
                      int64_t cpu_milli, int64_t mem_mib, const struct held_gpu *gpus, int count)
{
    struct hold *h = must(calloc(1, sizeof *h + (size_t)count * sizeof *gpus));
    *h = (struct hold){ .job = job,
                        .task = task,
                        .node = node,
                        .project = p,
                        .cpu_milli = cpu_milli,
                        .mem_mib = mem_mib,
                        .ends_ms = INT64_MAX,
                        .count = count };
    if (count)
        memcpy(h->gpus, gpus, (size_t)count * sizeof *gpus);
    hold_count(s, h, 1);
    hold_enter(s, h);
    if (s->near.spreads)
        near_hold(s, h, 1);
    return h;
}

static void swap(int64_t *a, int64_t *b)
{
    int64_t was = *a;
    *a = *b, *b = was;
}

void hold_turn(struct sched *s, struct hold *h)
{
    int away = h->away;
    quota_end(s, h);
    free(TAKE(h->counted));
    hold_count(s, h, -1);
    h->away = h->count, h->count = away;
    swap(&h->cpu_milli, &h->other_cpu);
    swap(&h->mem_mib, &h->other_mem);
    hold_count(s, h, 1);
    quota_hold(s, h, h->owner, h->bound_ms);
    claims_count(s, h->node);
}

void hold_end(struct sched *s, struct hold *h)
{
    int64_t node = h->node;
    returns_file(s, h, false, false);
    hold_count(s, h, -1);
    quota_end(s, h);
    hold_tally(s, h, false);
    if (s->near.spreads)
        near_hold(s, h, -1);
    hold_leave(s, h);
    hold_free(h);
    ahead_touch(s, node);
    claims_count(s, node);
}

/* --- jobs */

static bool same_ask(const struct class *a, const struct class *b)
{
    const struct gpu_ask *x = &a->shape.gpu, *y = &b->shape.gpu;
    return a->project == b->project && a->priority == b->priority && a->owner == b->owner && a->bound_ms == b->bound_ms && a->only_node == b->only_node
           && a->wants_host_image == b->wants_host_image && a->by_volume == b->by_volume
           && a->shape.cpu_milli == b->shape.cpu_milli && a->shape.mem_mib == b->shape.mem_mib
           && x->milli == y->milli && x->mem_min_mib == y->mem_min_mib
           && x->mem_max_mib == y->mem_max_mib && x->share_mib == y->share_mib
           && strcmp(x->model, y->model) == 0 && strcmp(x->mig, y->mig) == 0
           && strcmp(a->region, b->region) == 0 && strcmp(a->zone, b->zone) == 0
           && a->gang == b->gang && a->within == b->within && a->prefer == b->prefer
           && same_text(a->tolerates, b->tolerates);
}

static int64_t
class_hash(const struct class *c) /* of the parts that differ most; same_ask tells the rest apart */
{
    uint64_t h = (uint64_t)c->project->id;
    const int64_t parts[]
        = { c->only_node, c->priority, c->owner, c->bound_ms, c->shape.cpu_milli, c->shape.mem_mib, c->shape.gpu.milli, c->gang };
    for (size_t i = 0; i < COUNT(parts); i++)
        h = (h ^ (uint64_t)parts[i]) * 0x100000001b3ULL;
    return (int64_t)h;
}

static struct class *class_of(struct sched *s, const struct class *like)
{
    struct class *first = map_get(s->classes, class_hash(like)), *c = first;
    while (c && !same_ask(c, like))
        c = c->next;
    if (!c) {
        c = must(calloc(1, sizeof *c));
        *c = *like;
        c->next = first;
        c->tolerates = like->tolerates ? must(strdup(like->tolerates)) : NULL;
        c->wanted = class_wants(s, c);
        map_put(s->classes, class_hash(c), c);
    }
    c->jobs++;
    return c;
}

void class_leave(struct sched *s, struct class *c)
{
    if (--c->jobs)
        return;
    struct class *first = map_take(s->classes, class_hash(c)), **at = &first;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    if (first)
        map_put(s->classes, class_hash(c), first);
    wanted_leave(&s->index, c->wanted);
    free((char *)c->tolerates);
    free(c->ready);
    free(c);
}

void fresh_add(struct sched *s, const struct job *j)
{
    s->fresh = room_for(s->fresh, s->fresh_count, &s->fresh_room, sizeof *s->fresh);
    s->fresh[s->fresh_count++] = j->id;
}

/* Jobs of different length stand in one line, unless it matters. */
static int64_t bound_of(const struct project *p, int64_t bound_ms)
{
    return books_have_hours(&p->limits) ? bound_ms : 0;
}

/* What is asked for, without what became of it. */
static struct class asks_like(const struct class *c)
{
    struct class like = { .project = c->project,
                          .shape = c->shape,
                          .only_node = c->only_node,
                          .priority = c->priority,
                          .owner = c->owner,
                          .bound_ms = c->bound_ms,
                          .wants_host_image = c->wants_host_image,
                          .by_volume = c->by_volume,
                          .tolerates = c->tolerates,
                          .gang = c->gang,
                          .within = c->within,
                          .prefer = c->prefer };
    memcpy(like.region, c->region, sizeof like.region);
    memcpy(like.zone, c->zone, sizeof like.zone);
    return like;
}

void job_reclass(struct sched *s, struct job *j)
{
    struct class like = asks_like(j->class);
    like.bound_ms = bound_of(like.project, j->bound_ms);
    if (like.bound_ms == j->class->bound_ms)
        return;
    order_remove(s, j);
    struct class *c = class_of(s, &like);
    class_leave(s, j->class);
    j->class = c;
    order_file(s, j);
    fresh_add(s, j);
}

/* What it holds counts as much as it does. */
static void holds_rank(struct sched *s, int64_t job, int64_t priority)
{
    struct hold *first;
    for (size_t i = 0; (first = map_next(s->holds, &i));)
        for (struct hold *h = first; h; h = h->same)
            if (h->job == job && h->tallied)
                hold_known(s, h, h->since_ms, priority, h->bound_ms, h->yields_ms);
}

struct class *class_like(struct sched *s, const struct sched_event *e)
{
    struct class like = { .project = project_of(s, e->project),
                          .shape = e->shape,
                          .only_node = e->only_node,
                          .priority = e->priority,
                          .owner = e->owner,
                          .bound_ms = bound_of(project_of(s, e->project), e->bound_ms),
                          .wants_host_image = e->wants_host_image,
                          .by_volume = e->by_volume,
                          .tolerates = e->house };
    if (e->gang > 1)
        like.gang = e->gang, like.within = e->within, like.prefer = e->prefer;
    memcpy(like.region, e->region, sizeof like.region);
    memcpy(like.zone, e->zone, sizeof like.zone);
    return class_of(s, &like);
}

/* A job that is known keeps its waiting tasks: what comes again is its priority, its dependencies, its node. */
static void on_job(struct sched *s, const struct sched_event *e)
{
    struct job *j = map_get(s->jobs, e->job);
    struct class *c = class_like(s, e);
    if (j) {
        if (priority_of(j->priority) != priority_of(e->priority))
            holds_rank(s, j->id, e->priority);
        if (reason_blocks(e->told) || reason_blocks(j->told))
            j->told = (uint8_t)e->told;
        order_remove(s, j);
        class_leave(s, j->class);
        s->dirty = true;
    } else {
        j = must(calloc(1, sizeof *j));
        j->id = e->job;
        j->told = (uint8_t)e->told;
        waiting_add(&j->waiting, e->first_task, e->last_task, 0);
        map_put(s->jobs, j->id, j);
        mix_seen(&s->mix, &e->shape, e->last_task - e->first_task + 1);
    }
    uint32_t need = j->need;
    j->class = c;
    j->need = need_enter(s, e->needs);
    need_leave(s, need);
    if (e->spread || s->near.spreads)
        near_job(s, e);
    j->bound_ms = e->bound_ms;
    j->priority = (int16_t)e->priority;
    j->created_ms = e->created_ms;
    j->since_ms = MAX(j->since_ms, e->created_ms);
    j->blocked = e->blocked;
    order_file(s, j);
    fresh_add(s, j);
}

static void on_job_gone(struct sched *s, const struct sched_event *e)
{
    struct job *j = map_take(s->jobs, e->job);
    if (!j)
        return;
    order_remove(s, j);
    class_leave(s, j->class);
    need_leave(s, j->need);
    near_job_gone(s, e->job);
    job_free(j);
    claims_drop_of(s, e->job);
    s->dirty = true;
}

static void no_longer_waits(struct sched *s, int64_t job, int64_t task)
{
    struct job *j = map_get(s->jobs, job);
    int64_t not_before;
    if (j && waiting_take(&j->waiting, task, &not_before))
        order_file(s, j);
}

static void waits_again(struct sched *s, struct job *j, int64_t task, int64_t not_before_ms)
{
    int64_t before;
    waiting_take(&j->waiting, task, &before);
    waiting_add(&j->waiting, task, task, not_before_ms);
    order_file(s, j);
    fresh_add(s, j);
    s->dirty = true;
}

/* --- tasks */

/* Just what we placed, as nearly always. */
static bool hold_is(const struct hold *h, const struct sched_event *e)
{
    bool same = h->node == e->node && h->project->id == e->project && h->cpu_milli == e->cpu_held
                && h->mem_mib == e->mem_held && (e->away ? h->away : h->count) == e->held_count && (h->away > 0) == e->away
                && (!e->away || (h->other_cpu == e->own_cpu && h->other_mem == e->own_mem));
    for (int i = 0; same && i < e->held_count; i++)
        same = h->gpus[i].index == e->held[i].index && h->gpus[i].milli == e->held[i].milli
               && h->gpus[i].mem_mib == e->held[i].mem_mib && h->gpus[i].slots == e->held[i].slots;
    return same;
}

static void on_held(struct sched *s, const struct sched_event *e)
{
    struct hold *h = hold_find(s, e->job, e->task);
    struct held_gpu gpus[SCHED_GPUS];
    int count = MIN(e->held_count, (int)SCHED_GPUS);
    for (int i = 0; i < count; i++)
        gpus[i] = (struct held_gpu){ e->held[i].index, e->held[i].milli, e->held[i].mem_mib, e->held[i].slots };
    bool known = h;
    no_longer_waits(s, e->job, e->task);
    if (!h || !hold_is(h, e)) {
        if (h)
            hold_end(s, h);
        h = hold_new(s, e->job, e->task, e->node, project_of(s, e->project), e->away ? e->own_cpu : e->cpu_held,
                     e->away ? e->own_mem : e->mem_held, gpus, count);
        quota_hold(s, h, e->owner, e->bound_ms);
        if (e->away) {
            h->other_cpu = e->cpu_held, h->other_mem = e->mem_held;
            hold_turn(s, h);
        }
    }
    h->confirmed = true;
    h->returning = false;
    returns_file(s, h, e->away && e->returns, e->wanted);
    h->evicted_for = e->yielding ? 0 : h->evicted_for;
    hold_known(s, h, e->at_ms ? e->at_ms : known ? h->since_ms : s->clock.now_ms, e->priority, e->bound_ms,
               e->yielding ? MAX(e->yields_ms, 1) : 0);
    if (!known) /* from a snapshot: it has held it since then */
        order_since(s, h, e->at_ms);
    struct job *j = map_get(s->jobs, e->job);
    if (j)
        order_started(s, j, e->at_ms);
}

static void on_freed(struct sched *s, const struct sched_event *e)
{
    struct hold *h = hold_find(s, e->job, e->task);
    if (!h)
        return;
    quota_used(s, h, e->used_from_ms, e->used_until_ms);
    hold_end(s, h);
    s->dirty = true;
}

static void on_queued(struct sched *s, const struct sched_event *e)
{
    struct job *j = map_get(s->jobs, e->job);
    if (j)
        waits_again(s, j, e->task, e->not_before_ms);
}

static void on_task_gone(struct sched *s, const struct sched_event *e)
{
    struct hold *h = hold_find(s, e->job, e->task);
    if (h && !h->confirmed)
        h->cancelled = true;
    no_longer_waits(s, e->job, e->task);
    s->dirty = true;
}

/* A refusal means that the door knows something that is on its way to us: a moment's pause, lest we ask the same until it is here. */
static void on_refused(struct sched *s, const struct sched_event *e)
{
    struct hold *h = hold_find(s, e->job, e->task);
    struct job *j = map_get(s->jobs, e->job);
    if (!h || h->confirmed)
        return;
    bool again = j && !h->cancelled;
    int64_t not_before = h->not_before_ms;
    hold_end(s, h);
    if (again) {
        j->pause_ms = s->last_now_ms + REFUSED_PAUSE_MS;
        j->told = REASON_NONE; /* what was said with the wish may be lost with it */
        waits_again(s, j, e->task, not_before);
    }
    s->dirty = true;
}

/* The door did not stop it, so the place that was to be free will not be: whoever it was for asks again, after a moment. */
static void on_kept(struct sched *s, const struct sched_event *e)
{
    struct hold *h = hold_find(s, e->job, e->task);
    if (h && h->returning)
        returns_kept(s, h);
    else if (h && h->evicted_for)
        evict_kept(s, h);
}

static void rankings_drop(struct index *x)
{
    while (x->newest)
        ranking_drop(x, x->newest);
}

static void on_rules(struct sched *s, const struct sched_event *e)
{
    int64_t *weight = s->index.policy.weight;
    s->rules = e->rules;
    s->rules.weight = NULL; /* it was lent */
    if (e->rules.weight && memcmp(weight, e->rules.weight, sizeof s->index.policy.weight) != 0) {
        memcpy(weight, e->rules.weight, sizeof s->index.policy.weight);
        rankings_drop(&s->index);
    }
    s->rules.brake_window_ms = MAX(s->rules.brake_window_ms, 1);
    s->dirty = true;
}

static void (*const on[])(struct sched *, const struct sched_event *) = {
    [SCHED_NODE] = on_node,           [SCHED_NODE_GONE] = on_node_gone,
    [SCHED_NODE_HAS] = near_goods,
    [SCHED_PROJECT] = on_project,     [SCHED_LIMIT] = quota_of,         [SCHED_JOB] = on_job,
    [SCHED_JOB_GONE] = on_job_gone,   [SCHED_TASK_HELD] = on_held,
    [SCHED_TASK_FREED] = on_freed,    [SCHED_TASK_QUEUED] = on_queued,
    [SCHED_TASK_GONE] = on_task_gone, [SCHED_TASK_REFUSED] = on_refused,
    [SCHED_TASK_KEPT] = on_kept,      [SCHED_RESERVE] = reserve_told,
    [SCHED_RESERVE_GONE] = reserve_gone, [SCHED_EVICTED] = evict_told, [SCHED_RULES] = on_rules,
};
_Static_assert(COUNT(on) == SCHED_KIND_COUNT, "every kind of event has a row");

bool sched_policy(struct sched *s, const char *name)
{
    const struct policy *p = policy_find(name);
    if (!p)
        return false;
    s->index.policy = *p;
    rankings_drop(&s->index);
    return true;
}

bool sched_weight(struct sched *s, const char *term, int64_t thousandths)
{
    enum term which;
    if (term_named(term, &which))
        return s->index.policy.weight[which] = thousandths, true;
    if (text_is(term, "grain"))
        s->index.policy.grain = MAX(thousandths, 1);
    return text_is(term, "grain");
}

void sched_expect(struct sched *s, const struct shape *shape, int64_t tasks)
{
    mix_seen(&s->mix, shape, tasks);
}

void sched_expect_no_other(struct sched *s)
{
    mix_fix(&s->mix, &s->fleet);
}

bool sched_foreknown(const struct sched *s)
{
    return s->index.policy.foreknown;
}

int64_t sched_stuck(struct sched *s)
{
    int64_t sum = 0;
    fleet_settle(&s->fleet);
    for (size_t i = 0; s->mix.epoch && i < s->fleet.lot_count; i++) {
        struct lot *l = s->fleet.lots[i];
        if (l)
            sum += l->count * worth_of(&s->mix, l->cpu_free, l->group, l->groups).stuck;
    }
    return sum / MICRO;
}

void sched_apply(struct sched *s, const struct sched_event *e)
{
    order_clock(s, e->at_ms);
    on[e->kind](s, e);
}
