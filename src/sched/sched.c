/* sched.c - the picture of fleet and queue, kept event by event.
 *
 * Law: the picture depends on the facts, not on the order or number of the events that told them, so that one built from a snapshot
 * equals one that followed everything. Slices are counted from the holds alone; a node that comes back finds its holds again. */
#include "sched/sched_internal.h"
#include <stdio.h>
#include <stdlib.h>

static void *must(void *p)
{
    if (!p)
        abort();
    return p;
}

struct sched *sched_new(void)
{
    struct sched *s = must(calloc(1, sizeof *s));
    s->projects = map_new();
    s->jobs = map_new();
    s->holds = map_new();
    s->held_on = map_new();
    s->classes = map_new();
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
        free(c->ready);
        free(c);
    }
}

static void hold_chain_free(void *first)
{
    for (struct hold *h = first, *same; h; h = same) {
        same = h->same;
        free(h);
    }
}

static void job_free_any(void *j)
{
    job_free(j);
}

void sched_free(struct sched *s)
{
    if (!s)
        return;
    free_all(s->jobs, job_free_any);
    free_all(s->holds, hold_chain_free);
    order_done(s);
    map_free(s->held_on);
    free_all(s->projects, free);
    free_all(s->classes, class_chain_free);
    for (size_t i = 0; i < s->node_count; i++)
        free(s->nodes[i]);
    free(s->nodes);
    free(s->fresh);
    free(s);
}

/* --- nodes */

static size_t node_place(const struct sched *s, int64_t id)
{
    size_t low = 0, high = s->node_count;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (s->nodes[mid]->id < id)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

struct node *sched_node(const struct sched *s, int64_t id)
{
    size_t at = node_place(s, id);
    return at < s->node_count && s->nodes[at]->id == id ? s->nodes[at] : NULL;
}

static struct gpu *node_gpu(struct node *n, int64_t index)
{
    for (int i = 0; i < n->gpu_count; i++)
        if (n->gpus[i].is.index == index)
            return &n->gpus[i];
    return NULL;
}

static void node_take(struct node *n, const struct hold *h, int sign)
{
    n->cpu_used += sign * h->cpu_milli;
    n->mem_used += sign * h->mem_mib;
    for (int i = 0; i < h->count; i++) {
        struct gpu *g = node_gpu(n, h->gpus[i].index);
        if (!g)
            continue; /* the node no longer has it */
        g->used_milli += sign * h->gpus[i].milli;
        g->used_mib += sign * h->gpus[i].mem_mib;
        g->holders += sign;
        g->project = g->holders ? h->project->id : 0;
    }
}

static void on_node(struct sched *s, const struct sched_event *e)
{
    size_t at = node_place(s, e->node);
    int gpus = MIN(e->gpu_count, (int)SCHED_GPUS);
    order_node(s, sched_node(s, e->node), -1);
    if (!sched_node(s, e->node)) {
        if (s->node_count == s->node_room) {
            s->node_room = s->node_room ? s->node_room * 2 : 16;
            s->nodes = must(reallocarray(s->nodes, s->node_room, sizeof *s->nodes));
        }
        memmove(s->nodes + at + 1, s->nodes + at, (s->node_count++ - at) * sizeof *s->nodes);
        s->nodes[at] = NULL;
    }
    struct node *n = s->nodes[at] = must(realloc(s->nodes[at], sizeof *n + (size_t)gpus * sizeof *n->gpus));
    *n = (struct node){ .id = e->node,
                        .usable = e->usable,
                        .host_image = e->host_image,
                        .cpu_milli = e->cpu_milli,
                        .mem_mib = e->mem_mib,
                        .gpu_count = gpus,
                        .gpus = (struct gpu *)(n + 1) };
    for (int i = 0; i < n->gpu_count; i++)
        n->gpus[i] = (struct gpu){ .is = e->gpus[i] };
    order_node(s, n, 1);
    for (const struct hold *h = map_get(s->held_on, n->id); h; h = h->next)
        node_take(n, h, 1);
    s->fleet++;
    s->dirty = true;
}

static void on_node_gone(struct sched *s, const struct sched_event *e)
{
    size_t at = node_place(s, e->node);
    if (!sched_node(s, e->node))
        return;
    order_node(s, s->nodes[at], -1);
    free(s->nodes[at]);
    s->node_count--;
    memmove(s->nodes + at, s->nodes + at + 1, (s->node_count - at) * sizeof *s->nodes);
    s->fleet++;
    s->dirty = true;
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
    struct node *n = sched_node(s, h->node);
    order_held(s, h->project);
    if (n)
        node_take(n, h, sign);
    for (int i = 0; i < h->count; i++)
        h->project->gpu_held += sign * h->gpus[i].milli;
    h->project->cpu_held += sign * h->cpu_milli;
    h->project->mem_held += sign * h->mem_mib;
    order_moved(s, h->project);
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
                        .count = count };
    if (count)
        memcpy(h->gpus, gpus, (size_t)count * sizeof *gpus);
    hold_count(s, h, 1);
    hold_enter(s, h);
    return h;
}

void hold_end(struct sched *s, struct hold *h)
{
    hold_count(s, h, -1);
    hold_leave(s, h);
    free(h);
}

/* --- jobs */

static bool same_ask(const struct class *a, const struct class *b)
{
    const struct gpu_ask *x = &a->shape.gpu, *y = &b->shape.gpu;
    return a->project == b->project && a->priority == b->priority && a->only_node == b->only_node
           && a->wants_host_image == b->wants_host_image && a->by_volume == b->by_volume
           && a->shape.cpu_milli == b->shape.cpu_milli && a->shape.mem_mib == b->shape.mem_mib
           && x->milli == y->milli && x->mem_min_mib == y->mem_min_mib
           && x->mem_max_mib == y->mem_max_mib && x->share_mib == y->share_mib
           && strcmp(x->model, y->model) == 0 && strcmp(x->mig, y->mig) == 0;
}

static int64_t
class_hash(const struct class *c) /* of the parts that differ most; same_ask tells the rest apart */
{
    uint64_t h = (uint64_t)c->project->id;
    const int64_t parts[]
        = { c->only_node, c->priority, c->shape.cpu_milli, c->shape.mem_mib, c->shape.gpu.milli };
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
        map_put(s->classes, class_hash(c), c);
    }
    c->jobs++;
    return c;
}

static void class_leave(struct sched *s, struct class *c)
{
    if (--c->jobs)
        return;
    struct class *first = map_take(s->classes, class_hash(c)), **at = &first;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    if (first)
        map_put(s->classes, class_hash(c), first);
    free(c->ready);
    free(c);
}

void fresh_add(struct sched *s, const struct job *j)
{
    if (s->fresh_count == s->fresh_room) {
        s->fresh_room = s->fresh_room ? s->fresh_room * 2 : 64;
        s->fresh = must(reallocarray(s->fresh, s->fresh_room, sizeof *s->fresh));
    }
    s->fresh[s->fresh_count++] = j->id;
}

/* A job that is known keeps its waiting tasks: what comes again is its priority, its dependencies, its node. */
static void on_job(struct sched *s, const struct sched_event *e)
{
    struct job *j = map_get(s->jobs, e->job);
    struct class like = { .project = project_of(s, e->project),
                          .shape = e->shape,
                          .only_node = e->only_node,
                          .priority = e->priority,
                          .wants_host_image = e->wants_host_image,
                          .by_volume = e->by_volume };
    struct class *c = class_of(s, &like);
    if (j) {
        order_remove(s, j);
        class_leave(s, j->class);
        s->dirty = true;
    } else {
        j = must(calloc(1, sizeof *j));
        j->id = e->job;
        waiting_add(&j->waiting, e->first_task, e->last_task, 0);
        map_put(s->jobs, j->id, j);
    }
    j->class = c;
    j->priority = e->priority;
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
    job_free(j);
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

static void on_held(struct sched *s, const struct sched_event *e)
{
    struct hold *h = hold_find(s, e->job, e->task);
    struct held_gpu gpus[SCHED_GPUS];
    int count = MIN(e->held_count, (int)SCHED_GPUS);
    for (int i = 0; i < count; i++)
        gpus[i] = (struct held_gpu){ e->held[i].index, e->held[i].milli, e->held[i].mem_mib };
    bool known = h;
    if (h)
        hold_end(s, h);
    no_longer_waits(s, e->job, e->task);
    h = hold_new(s, e->job, e->task, e->node, project_of(s, e->project), e->cpu_held, e->mem_held,
                 gpus, count);
    h->confirmed = true;
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

static void (*const on[])(struct sched *, const struct sched_event *) = {
    [SCHED_NODE] = on_node,           [SCHED_NODE_GONE] = on_node_gone,
    [SCHED_PROJECT] = on_project,     [SCHED_JOB] = on_job,
    [SCHED_JOB_GONE] = on_job_gone,   [SCHED_TASK_HELD] = on_held,
    [SCHED_TASK_FREED] = on_freed,    [SCHED_TASK_QUEUED] = on_queued,
    [SCHED_TASK_GONE] = on_task_gone, [SCHED_TASK_REFUSED] = on_refused,
};
_Static_assert(COUNT(on) == SCHED_KIND_COUNT, "every kind of event has a row");

void sched_apply(struct sched *s, const struct sched_event *e)
{
    order_clock(s, e->at_ms);
    on[e->kind](s, e);
}
