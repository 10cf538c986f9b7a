/* quota.c - what a project may hold, its own quota and the limits of limit.h, in the planner's picture. The door looks again.
 *
 * What did not fit is remembered with the line of jobs, so that who waits is told which limit holds it. */
#include "sched/sched_internal.h"
#include <stdlib.h>

static struct project *project_at(struct sched *s, int64_t id)
{
    return map_get(s->projects, id);
}

/* --- what is held */

static void ask_of(const struct sched *s, const struct node *n, const struct held_gpu *gpus, int count, struct limit_ask *a)
{
    for (int i = 0; i < count; i++) {
        const struct gpu *g = n ? node_gpu(n, gpus[i].index) : NULL;
        limit_ask_add(a, g ? s->fleet.kinds[g->kind].model : NULL, gpus[i].milli);
    }
}

static void count(struct sched *s, struct hold *h)
{
    if (h->counted)
        return;
    h->counted = must(calloc(1, sizeof *h->counted));
    *h->counted = (struct limit_ask){ .owner = h->owner, .bound_ms = h->bound_ms };
    ask_of(s, fleet_node(&s->fleet, h->node), h->gpus, h->count, h->counted);
}

void quota_hold(struct sched *s, struct hold *h, int64_t owner, int64_t bound_ms)
{
    h->owner = owner;
    h->bound_ms = bound_ms;
    if (!h->project->limits.count)
        return;
    count(s, h);
    books_hold(&h->project->limits, h->counted, 1);
}

void quota_end(struct sched *s, struct hold *h)
{
    (void)s;
    if (h->counted)
        books_hold(&h->project->limits, h->counted, -1);
}

void quota_used(struct sched *s, const struct hold *h, int64_t from_ms, int64_t to_ms)
{
    if (!h->counted || !from_ms)
        return;
    books_roll(&h->project->limits, s->clock.now_ms);
    books_use(&h->project->limits, h->counted, from_ms, to_ms);
}

static bool any_hours(const struct sched *s)
{
    struct project *p;
    for (size_t i = 0; (p = map_next(s->projects, &i));)
        if (books_have_hours(&p->limits))
            return true;
    return false;
}

void quota_of(struct sched *s, const struct sched_event *e)
{
    struct project *p = project_at(s, e->project);
    if (!p) /* told with its quota before */
        return;
    books_roll(&p->limits, s->clock.now_ms);
    struct limit_row *r = books_set(&p->limits, e->owner, e->model, &e->limit);
    if (r && !p->limits.begins_ms[0])
        books_roll(&p->limits, s->clock.now_ms);
    for (int i = 0; r && i < PERIODS; i++)
        r->used[i] = e->used_hours[i];
    struct hold *first;
    for (size_t i = 0; (first = map_next(s->holds, &i));)
        for (struct hold *h = first; h; h = h->same)
            if (h->project == p) {
                count(s, h);
                if (r)
                    limit_row_hold(r, h->counted, 1);
            }
    struct job *j;
    for (size_t i = 0; (j = map_next(s->jobs, &i));)
        if (j->class->project == p)
            job_reclass(s, j);
    s->hours_ms = any_hours(s) ? period_begin(0, s->clock.now_ms) : 0;
    s->dirty = true;
}

/* --- time */

int64_t quota_wake(const struct sched *s)
{
    return s->hours_ms ? s->hours_ms + INT64_C(86400) * 1000 : INT64_MAX;
}

void quota_time(struct sched *s, int64_t now_ms)
{
    struct project *p;
    if (now_ms < quota_wake(s))
        return;
    s->hours_ms = period_begin(0, now_ms);
    for (size_t i = 0; (p = map_next(s->projects, &i));)
        s->dirty |= books_roll(&p->limits, now_ms);
}

/* --- what may be added */

static bool refused(struct class *c, int kind, int64_t owner, const char *model, int64_t most, int64_t needs)
{
    c->held_by = (struct wait){ .reason = REASON_QUOTA, .limit = kind, .owner = owner, .most = most, .needs = needs };
    text_copy(c->held_by.model, sizeof c->held_by.model, model);
    return false;
}

static bool limits_allow(struct class *c, const struct limit_ask *a)
{
    enum limit_kind kind;
    const struct limit_row *r = books_refuse(&c->project->limits, a, false, &kind);
    return !r || refused(c, (int)kind, r->owner, r->model, r->limit.most[kind], limit_needs(a, r, kind));
}

bool quota_allows_held(struct class *c, int64_t cpu, int64_t mem)
{
    const struct project *p = c->project;
    const struct quota *q = &p->quota;
    if (q->cpu_milli >= 0 && p->cpu_held + cpu > q->cpu_milli)
        return refused(c, LIMIT_PROJECT_CPUS, 0, "", q->cpu_milli, cpu);
    if (q->mem_mib >= 0 && p->mem_held + mem > q->mem_mib)
        return refused(c, LIMIT_PROJECT_MEMORY, 0, "", q->mem_mib, mem);
    return true;
}

bool quota_allows(struct sched *s, struct class *c)
{
    (void)s;
    const struct project *p = c->project;
    const struct quota *q = &p->quota;
    int64_t tasks = MAX(c->gang, 1), gpu = tasks * c->shape.gpu.milli;
    c->held_by = (struct wait){ 0 };
    if (q->gpu_milli >= 0 && p->gpu_held + gpu > q->gpu_milli)
        return refused(c, LIMIT_PROJECT_GPUS, 0, "", q->gpu_milli, gpu);
    if (!quota_allows_held(c, tasks * c->shape.cpu_milli, tasks * c->shape.mem_mib))
        return false;
    if (!p->limits.count)
        return true;
    struct limit_ask a = { .owner = c->owner, .bound_ms = c->bound_ms, .tasks = tasks };
    if (gpu)
        limit_ask_add(&a, NULL, gpu);
    return limits_allow(c, &a);
}

bool quota_allows_gang(struct sched *s, struct class *c, const struct seat *seats, int64_t cpu_milli, int64_t mem_mib)
{
    if (!quota_allows_held(c, cpu_milli, mem_mib))
        return false;
    if (!c->project->limits.count)
        return true;
    struct limit_ask a = { .owner = c->owner, .bound_ms = c->bound_ms, .tasks = c->gang };
    for (int64_t i = 0; i < c->gang; i++) {
        struct held_gpu gpus[SCHED_GPUS];
        ask_of(s, seats[i].n, gpus, pick_gpus(&c->wanted->is, seats[i].pick, seats[i].n, &s->fleet, gpus), &a);
    }
    return limits_allow(c, &a);
}

bool quota_allows_crew(struct sched *s, struct class *c, const struct spot *at)
{
    struct limit_ask a = { .owner = c->owner, .bound_ms = c->bound_ms, .tasks = c->gang };
    int64_t cpu = 0, mem = 0;
    for (int64_t i = 0; i < c->gang; i++) {
        cpu += at[i].pick.cpu_milli;
        mem += at[i].pick.mem_mib;
        ask_of(s, at[i].node, at[i].gpus, at[i].count, &a);
    }
    return quota_allows_held(c, cpu, mem) && (!c->project->limits.count || limits_allow(c, &a));
}

bool quota_allows_on(struct sched *s, struct class *c, const struct node *n, const struct held_gpu *gpus, int held)
{
    if (!c->project->limits.count)
        return true;
    struct limit_ask a = { .owner = c->owner, .bound_ms = c->bound_ms };
    ask_of(s, n, gpus, held, &a);
    return limits_allow(c, &a);
}
