/* print.c - the whole picture as text in a fixed order: equal texts are equal pictures. What a pass remembers for itself (reasons
 * already told, pauses after a refusal) is not in it, since nothing but speed hangs on it. */
#include "sched/sched_internal.h"
#include <stdio.h>
#include <stdlib.h>

#define LL(x) ((long long)(x))

static void print_node(const struct fleet *f, const struct node *n, struct str *out)
{
    str_printf(out, "node %lld %s%s cpu %lld/%lld mem %lld/%lld\n", LL(n->id),
               n->usable ? "usable" : "away", n->host_image ? " host" : "", LL(n->cpu_used),
               LL(n->cpu_milli), LL(n->mem_used), LL(n->mem_mib));
    for (const struct place *p = n->place; p && (p->level > PLACE_REGION || p->name[0]); p = p->up)
        if (p->level)
            str_printf(out, "  in %s %s\n", place_names.at[p->level], p->name);
    if (n->house)
        str_printf(out, "%s", fleet_house(f, n->house));
    for (int i = 0; i < n->gpu_count; i++) {
        const struct gpu *g = &n->gpus[i];
        const struct gpu_kind *k = g->kind < f->kind_count ? &f->kinds[g->kind] : &(struct gpu_kind){ .mem_mib = 0 };
        str_printf(out,
                   "  gpu %lld %s%s%s%s used %lld milli %lld/%lld MiB holders %d project %lld\n",
                   LL(g->index), k->model, g->healthy ? "" : " sick", k->mig.on ? " mig" : k->whole_only ? " whole" : "",
                   g->simulated ? " simulated" : "", LL(g->used_milli), LL(g->used_mib),
                   LL(k->mem_mib), g->holders, LL(gpu_owner(g)));
    }
}

static void print_job(const struct job *j, struct str *out)
{
    const struct class *c = j->class;
    const struct gpu_ask *g = &c->shape.gpu;
    str_printf(out, "job %lld project %lld priority %lld created %lld%s%s node %lld%s\n", LL(j->id),
               LL(c->project->id), LL(j->priority), LL(j->created_ms), j->blocked ? " blocked" : "",
               c->wants_host_image ? " host" : "", LL(c->only_node), c->by_volume ? " volume" : "");
    str_printf(out, "  asks cpu %lld mem %lld gpu %lld '%s' %lld..%lld share %lld mig '%s'\n",
               LL(c->shape.cpu_milli), LL(c->shape.mem_mib), LL(g->milli), g->model,
               LL(g->mem_min_mib), LL(g->mem_max_mib), LL(g->share_mib), g->mig);
    if (c->region[0] || c->zone[0])
        str_printf(out, "  only in region '%s' zone '%s'\n", c->region, c->zone);
    if (c->tolerates)
        str_printf(out, "  tolerates %s", c->tolerates);
    if (c->gang)
        str_printf(out, "  gang of %lld within %s, rather %s\n", LL(c->gang), place_names.at[c->within], place_names.at[c->prefer]);
    for (size_t i = 0; i < j->waiting.count; i++) {
        const struct range *r = &waiting_ranges(&j->waiting)[i];
        str_printf(out, "  waits %lld-%lld not before %lld\n", LL(r->first), LL(r->last),
                   LL(r->not_before_ms));
    }
}

static void print_hold(const struct hold *h, struct str *out)
{
    str_printf(out, "hold %lld.%lld project %lld node %lld cpu %lld mem %lld class %s%s", LL(h->job),
               LL(h->task), LL(h->project->id), LL(h->node), LL(h->cpu_milli), LL(h->mem_mib),
               priorities[h->rank].name, h->confirmed ? "" : " unconfirmed");
    if (h->yields_ms)
        str_printf(out, " yields %lld", LL(h->yields_ms));
    else if (h->ends_ms < INT64_MAX)
        str_printf(out, " ends %lld", LL(h->ends_ms));
    if (h->away)
        str_printf(out, " away%s, own cpu %lld mem %lld", h->returns ? h->wanted ? " and is wanted" : " and returns" : "", LL(h->other_cpu), LL(h->other_mem));
    str_text(out, "\n");
    for (int i = 0; i < h->count + h->away; i++) {
        str_printf(out, "  gpu %lld milli %lld mem %lld", LL(h->gpus[i].index), LL(h->gpus[i].milli), LL(h->gpus[i].mem_mib));
        if (h->gpus[i].slots)
            str_printf(out, " slots %x", (unsigned)h->gpus[i].slots);
        str_text(out, "\n");
    }
}

static void print_reserve(const struct reserve *r, struct str *out)
{
    const struct shape *w = &r->class->shape;
    str_printf(out, "reserve %lld project %lld from %lld until %lld: %lld of cpu %lld mem %lld gpu %lld '%s'\n", LL(r->id),
               LL(r->class->project->id), LL(r->from_ms), LL(r->until_ms), LL(r->count), LL(w->cpu_milli),
               LL(w->mem_mib), LL(w->gpu.milli), w->gpu.model);
}

static void print_rules(const struct sched *s, struct str *out)
{
    const struct sched_rules *r = &s->rules;
    str_text(out, "rules");
    for (int i = 0; i < CLASS_COUNT; i++)
        str_printf(out, " %s:%u", priorities[i].name, r->preempt[i]);
    str_printf(out, " brake %lld in %lld notice %lld depth %lld\n", LL(r->brake_permille), LL(r->brake_window_ms),
               LL(r->notice_ms), LL(r->backfill_depth));
    for (int i = 0; i < TERM_COUNT; i++)
        if (s->index.policy.weight[i] != weights_usual[i])
            str_printf(out, "  weight %s %lld\n", terms[i].name, LL(s->index.policy.weight[i]));
}

static int by_reserve(const void *a, const void *b)
{
    int64_t x = (*(struct reserve *const *)a)->id, y = (*(struct reserve *const *)b)->id;
    return x < y ? -1 : x > y;
}

static int by_limit(const void *a, const void *b)
{
    const struct limit_row *x = a, *y = b;
    return x->owner != y->owner ? x->owner < y->owner ? -1 : 1 : strcmp(x->model, y->model);
}

static void print_limits(const struct books *l, struct str *out)
{
    if (l->count > 1) /* their order is nobody's business */
        qsort(l->at, l->count, sizeof *l->at, by_limit);
    for (size_t i = 0; i < l->count; i++) {
        const struct limit_row *r = &l->at[i];
        str_printf(out, "  limit owner %lld model '%s' tasks %lld/%lld gpu %lld/%lld", LL(r->owner), r->model,
                   LL(r->tasks), LL(r->limit.most[LIMIT_TASKS]), LL(r->gpu_milli), LL(r->limit.most[LIMIT_GPUS]));
        for (int p = 0; p < PERIODS; p++)
            str_printf(out, " hours %lld+%lld/%lld", LL(r->used[p]), LL(r->reserved[p]), LL(r->limit.most[LIMIT_DAY + p]));
        str_text(out, "\n");
    }
}

static int by_project(const void *a, const void *b)
{
    int64_t x = (*(struct project *const *)a)->id, y = (*(struct project *const *)b)->id;
    return x < y ? -1 : x > y;
}
static int by_order(const void *a, const void *b)
{
    return job_order(*(struct job *const *)a, *(struct job *const *)b);
}
static int by_task(const void *a, const void *b)
{
    const struct hold *x = *(struct hold *const *)a, *y = *(struct hold *const *)b;
    if (x->job != y->job)
        return x->job < y->job ? -1 : 1;
    return x->task < y->task ? -1 : x->task > y->task;
}

static void **sorted(const struct map *m, int (*order)(const void *, const void *))
{
    size_t n = 0, count = map_count(m);
    void **list = must(calloc(count + 1, sizeof *list)), *v;
    for (size_t i = 0; (v = map_next(m, &i));)
        list[n++] = v;
    qsort(list, count, sizeof *list, order);
    return list;
}

void sched_print(const struct sched *s, struct str *out)
{
    for (size_t i = 0; i < s->fleet.count; i++) {
        print_node(&s->fleet, s->fleet.nodes[i], out);
        near_print_node(s, s->fleet.nodes[i]->id, out);
    }
    void **projects = sorted(s->projects, by_project), **jobs = sorted(s->jobs, by_order),
         **holds = sorted(s->holds, by_task), **reserves = sorted(s->reserves, by_reserve);
    if (s->rules.brake_permille || s->rules.notice_ms)
        print_rules(s, out);
    for (void **at = projects; *at; at++) {
        const struct project *p = *at;
        if (p->told || p->gpu_held || p->cpu_held || p->mem_held)
            str_printf(out, "project %lld holds gpu %lld/%lld cpu %lld/%lld mem %lld/%lld\n",
                       LL(p->id), LL(p->gpu_held), LL(p->quota.gpu_milli), LL(p->cpu_held),
                       LL(p->quota.cpu_milli), LL(p->mem_held), LL(p->quota.mem_mib));
        if (p->weight_milli != 1000)
            str_printf(out, "  weight %lld\n", LL(p->weight_milli));
        if (p->residency)
            str_printf(out, "  residency %s\n", p->residency);
        print_limits(&p->limits, out);
    }
    for (void **at = jobs; *at; at++) {
        print_job(*at, out);
        near_print_job(s, *at, out);
    }
    for (void **at = holds; *at; at++)
        for (const struct hold *h = *at; h; h = h->same)
            print_hold(h, out);
    for (void **at = reserves; *at; at++)
        print_reserve(*at, out);
    free(reserves);
    free(projects);
    free(jobs);
    free(holds);
}
