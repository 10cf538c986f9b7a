/* why.c - explaining. See why.h. */
#include "sched/why.h"
#include "sched/sched_internal.h"
#include <stdlib.h>

struct look {
    struct sched *s;
    struct class *c;
    struct why *out;
    uint8_t *known;                 /* of filter_see */
    struct suit *any, *part;        /* how GPUs suit if the model does not matter; for a smaller share */
};

static void suits_of(const struct fleet *f, const struct gpu_ask *ask, struct suit *out)
{
    for (size_t i = 0; i < f->kind_count; i++)
        out[i] = suit_of(&f->kinds[i], ask);
}

/* --- the nearest */

static int64_t over(int64_t needs, int64_t free)
{
    return MAX(needs - free, 0);
}

/* What a node lacks for good goes last; then GPUs count most. */
static bool nearer(const struct why_near *a, const struct why_near *b)
{
    const int64_t x[] = { (a->refused & FILTERS_BUILD) != 0, a->gpu_lacks, over(a->cpu_needs, a->cpu_free), over(a->mem_needs, a->mem_free), a->node };
    const int64_t y[] = { (b->refused & FILTERS_BUILD) != 0, b->gpu_lacks, over(b->cpu_needs, b->cpu_free), over(b->mem_needs, b->mem_free), b->node };
    for (size_t i = 0; i < COUNT(x); i++)
        if (x[i] != y[i])
            return x[i] < y[i];
    return false;
}

static void near_add(const struct look *k, const struct node *n, const struct sight *v)
{
    struct why *out = k->out;
    int64_t asked = k->c->shape.gpu.milli, lacks = asked >= 1000 ? over(asked, v->free * 1000) : v->free ? 0 : over(asked, v->largest);
    struct why_near one = { n->id, v->refused, v->suitable, v->free, lacks, v->largest, n->cpu_milli - n->cpu_used - n->cpu_claimed, v->cpu_needs,
                            n->mem_mib - n->mem_used - n->mem_claimed, v->mem_needs };
    int at = out->near_count;
    while (at && nearer(&one, &out->near[at - 1]))
        at--;
    if (at == WHY_NEAR)
        return;
    out->near_count = MIN(out->near_count + 1, (int)WHY_NEAR);
    memmove(out->near + at + 1, out->near + at, (size_t)(out->near_count - at - 1) * sizeof one);
    out->near[at] = one;
}

/* --- what would help */

static void help_by(struct why_help *h, int64_t most, const struct node *n)
{
    if (most > h->most)
        *h = (struct why_help){ most, n->id };
}

static void model_add(struct why *out, const char *model)
{
    for (int i = 0; i < out->model_count; i++)
        if (strcmp(out->models[i], model) == 0)
            return;
    if (out->model_count < WHY_MODELS && *model)
        memcpy(out->models[out->model_count++], model, sizeof out->models[0]);
}

enum { OF_PLACE = FILTER_BIT(FILTER_REGION) | FILTER_BIT(FILTER_ZONE) };

/* Whether a node could run it, whatever is taken of it. */
static void help_ever(struct look *k, const struct lot *l, const struct sight *v)
{
    const struct node *n = l->nodes[0];
    struct why *out = k->out;
    uint32_t lacks = v->refused & FILTERS_BUILD;
    if (lacks == FILTER_BIT(FILTER_GPUS) || lacks == FILTER_BIT(FILTER_HEALTH))
        help_by(&out->gpus, v->suitable * 1000, n);
    if (lacks == FILTER_BIT(FILTER_CPUS))
        help_by(&out->cpus, n->cpu_milli, n);
    if (lacks == FILTER_BIT(FILTER_MEMORY))
        help_by(&out->memory, n->mem_mib, n);
    if (lacks == FILTER_BIT(FILTER_MODEL)) {
        struct class other = *k->c;
        struct sight as;
        memcpy(other.shape.gpu.model, k->s->fleet.kinds[n->gpus[0].kind].model, sizeof k->s->fleet.kinds[0].model);
        other.only_node = 0;
        filter_see(&k->s->fleet, &other, n, NULL, &as);
        if (!(as.refused & FILTERS_BUILD))
            model_add(out, other.shape.gpu.model);
    }
    if (lacks == FILTER_BIT(FILTER_IMAGE))
        out->without_host += l->count;
    if (lacks && !(lacks & ~OF_PLACE))
        out->away += l->count;
}

/* As the index asks it: who may come to a house is known by its number. */
static bool would_fit(const struct wanted *of, const struct want *w, const struct suit *suits, const struct lot *l)
{
    struct pick p;
    return (!of->admits || of->admits[l->house]) && lot_fits(w, suits, l, &p);
}

static void help_gpus(struct look *k, const struct lot *l, const struct sight *v)
{
    struct want w = k->c->wanted->is;
    const struct suit *suits = k->c->wanted->suits;
    bool whole = w.shape.gpu.milli >= 1000;
    w.shape.gpu.milli = whole ? v->free * 1000 : v->largest;
    if (w.shape.gpu.mig[0] || w.shape.gpu.milli <= k->out->gpus.most || w.shape.gpu.milli >= k->c->shape.gpu.milli)
        return;
    if (!whole)
        suits_of(&k->s->fleet, &w.shape.gpu, k->part), suits = k->part;
    if (would_fit(k->c->wanted, &w, suits, l))
        help_by(&k->out->gpus, w.shape.gpu.milli, l->nodes[0]);
}

/* Each other model by itself. */
static void help_model(struct look *k, const struct lot *l)
{
    const struct fleet *f = &k->s->fleet;
    for (int i = 0; i < l->groups; i++) {
        const char *model = f->kinds[l->group[i].kind].model;
        if (k->c->wanted->suits[l->group[i].kind].choice || !k->any[l->group[i].kind].choice)
            continue;
        for (size_t g = 0; g < f->kind_count; g++)
            k->part[g] = strcmp(f->kinds[g].model, model) == 0 ? k->any[g] : (struct suit){ 0 };
        if (would_fit(k->c->wanted, &k->c->wanted->is, k->part, l))
            model_add(k->out, model);
    }
}

/* What it would take to start there now; in whole CPUs and GiB, as people ask. */
static void help_now(struct look *k, const struct lot *l, const struct sight *v)
{
    enum { OF_GPUS = FILTER_BIT(FILTER_GPUS) | FILTER_BIT(FILTER_MODEL) | FILTER_BIT(FILTER_GPU_MEMORY) | FILTER_BIT(FILTER_HEALTH)
                     | FILTER_BIT(FILTER_GPUS_TAKEN) | FILTER_BIT(FILTER_NEIGHBOURS) };
    struct want w = k->c->wanted->is;
    const struct suit *suits = k->c->wanted->suits;
    if (v->refused & OF_GPUS)
        help_gpus(k, l, v);
    if (v->refused & FILTER_BIT(FILTER_MODEL) && k->out->model_count < WHY_MODELS)
        help_model(k, l);
    w.shape.cpu_milli = l->cpu_free / 1000 * 1000;
    if (v->refused & (FILTER_BIT(FILTER_CPUS) | FILTER_BIT(FILTER_CPUS_TAKEN)) && w.shape.cpu_milli > k->out->cpus.most && would_fit(k->c->wanted, &w, suits, l))
        help_by(&k->out->cpus, w.shape.cpu_milli, l->nodes[0]);
    w = k->c->wanted->is;
    w.shape.mem_mib = l->mem_free < 1024 ? l->mem_free : l->mem_free / 1024 * 1024;
    if (v->refused & (FILTER_BIT(FILTER_MEMORY) | FILTER_BIT(FILTER_MEMORY_TAKEN)) && w.shape.mem_mib > k->out->memory.most && would_fit(k->c->wanted, &w, suits, l))
        help_by(&k->out->memory, w.shape.mem_mib, l->nodes[0]);
    w = k->c->wanted->is;
    w.region[0] = w.zone[0] = 0;
    if (v->refused & OF_PLACE && would_fit(k->c->wanted, &w, suits, l))
        k->out->away += l->count;
    w = k->c->wanted->is;
    w.host_image = false;
    if (v->refused & FILTER_BIT(FILTER_IMAGE) && would_fit(k->c->wanted, &w, suits, l))
        k->out->without_host += l->count;
}

/* --- counting */

static void count(struct why *out, uint32_t refused, bool fits, int64_t nodes)
{
    if (fits)
        out->fits += nodes;
    else
        out->refused[refused ? __builtin_ctz(refused) : FILTER_OTHER] += nodes;
}

static void see_lot(struct look *k, struct lot *l)
{
    struct class any = *k->c;
    struct sight v;
    any.only_node = 0;
    filter_see(&k->s->fleet, &any, l->nodes[0], k->known, &v);
    bool fits = would_fit(k->c->wanted, &k->c->wanted->is, k->c->wanted->suits, l);
    if (k->c->only_node) {          /* the one that counts is looked at by itself */
        struct node *home = fleet_node(&k->s->fleet, k->c->only_node);
        int64_t others = l->count - (home && home->lot == l);
        k->out->refused[FILTER_NODE] += others;
        k->out->elsewhere += fits ? others : 0;
        return;
    }
    count(k->out, v.refused, fits, l->count);
    if (fits)
        return;
    near_add(k, l->nodes[0], &v);
    if (k->out->reason == REASON_NO_NODE)
        help_ever(k, l, &v);
    else
        help_now(k, l, &v);
}

static void see_home(struct look *k)
{
    struct node *n = fleet_node(&k->s->fleet, k->c->only_node);
    struct sight v;
    if (!n)
        return;
    filter_see(&k->s->fleet, k->c, n, k->known, &v);
    bool fits = n->lot && would_fit(k->c->wanted, &k->c->wanted->is, k->c->wanted->suits, n->lot);
    if (n->usable)
        count(k->out, v.refused, fits, 1);
    if (!fits)
        near_add(k, n, &v);
    if (!fits && n->lot && k->out->reason == REASON_NO_NODE)
        help_ever(k, n->lot, &v);
    else if (!fits && n->lot)
        help_now(k, n->lot, &v);
}

static void see_fleet(struct sched *s, struct class *c, struct why *out)
{
    struct fleet *f = &s->fleet;
    struct look k = { s, c, out, calloc(f->kind_count + 1, 1), NULL, NULL };
    struct gpu_ask any = c->shape.gpu;
    any.model[0] = 0;
    k.any = calloc(2 * f->kind_count + 1, sizeof *k.any);
    if (!k.known || !k.any)
        abort();
    k.part = k.any + f->kind_count;
    suits_of(f, &any, k.any);
    out->nodes = (int64_t)f->count;
    for (int i = 0; i < FILTER_COUNT; i++)
        out->refused[i] = (int64_t)f->shut[i];
    for (size_t i = 0; i < f->lot_count; i++)
        if (f->lots[i])
            see_lot(&k, f->lots[i]);
    if (c->only_node)
        see_home(&k);
    free(k.known);
    free(k.any);
}

/* --- the reason */

static int64_t held_of(const struct class *c)
{
    const struct project *p = c->project;
    const struct wait *w = &c->held_by;
    if (w->limit == LIMIT_PROJECT_GPUS || w->limit == LIMIT_PROJECT_CPUS || w->limit == LIMIT_PROJECT_MEMORY)
        return w->limit == LIMIT_PROJECT_GPUS ? p->gpu_held : w->limit == LIMIT_PROJECT_CPUS ? p->cpu_held : p->mem_held;
    const struct limit_row *r = books_row((struct books *)&p->limits, w->owner, w->model);
    return !r ? -1 : w->limit == LIMIT_TASKS ? r->tasks : w->limit == LIMIT_GPUS ? r->gpu_milli : -1;
}

static struct node *find_gang(struct sched *s, struct class *c, struct pick *pick, enum reason *why)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    const struct seat *seats = gang_find(s, c, mem, why);
    if (!seats)
        return NULL;
    *why = REASON_NONE;
    *pick = *seats[0].pick;
    return seats[0].n;
}

/* What helps one task does not help them all; fewer of them may. */
static void help_gang(struct sched *s, const struct class *c, struct why *out)
{
    struct class fewer = *c;
    struct pick pick;
    enum reason why;
    out->gpus = out->cpus = out->memory = (struct why_help){ 0 };
    out->elsewhere = out->without_host = out->away = out->model_count = 0;
    fewer.gang = MIN(out->fits, c->gang - 1);
    if (out->reason != REASON_NONE && fewer.gang > 1 && find_gang(s, &fewer, &pick, &why))
        out->gang_most = fewer.gang;
}

/* What was lifted for it on that node stays so: claims_again. */
static struct node *find(struct sched *s, struct job *j, struct pick *pick, enum reason *why)
{
    struct class *c = j->class;
    struct node *n = NULL;
    c->held_by = (struct wait){ 0 };
    if (!c->by_volume && !class_possible(s, c))
        *why = REASON_NO_NODE;
    else if (!quota_allows(s, c))
        *why = REASON_QUOTA;
    else if (c->gang)
        n = find_gang(s, c, pick, why);
    else if ((n = place_for(s, j, pick)))
        *why = REASON_NONE;
    else
        *why = c->held_by.reason ? REASON_QUOTA : c->by_volume ? REASON_VOLUME : REASON_RESOURCES;
    return n;
}

static void explain(struct sched *s, struct job *j, struct why *out)
{
    struct class *c = j->class;
    struct pick pick;
    struct wait was = c->held_by;   /* of a line that others stand in */
    struct node *n = find(s, j, &pick, &out->reason);
    if (n && !c->gang)
        claims_again(s, n->id);
    for (struct claim *cl = claims_of(s, j->id); cl; cl = cl->same)
        claim_lift(s, cl);          /* what is kept for it is not kept from it */
    index_ready(&s->index, c->wanted);
    if (out->reason == REASON_QUOTA) {
        out->held_by = c->held_by;
        out->held = held_of(c);
    }
    c->held_by = was;
    see_fleet(s, c, out);
    if (c->gang)
        help_gang(s, c, out);
    for (struct claim *cl = claims_of(s, j->id); cl; cl = cl->same)
        claims_again(s, cl->node);
}

/* When there will be room, by what is known of the ends of others. */
static void expect(struct sched *s, const struct sched_event *e, int64_t now_ms, struct why *out)
{
    if (out->reason != REASON_RESOURCES && out->reason != REASON_PRIORITY && out->reason != REASON_VOLUME)
        return;
    struct start_hint h = sched_when(s, e, now_ms);
    out->start_node = h.node;
    out->start_ms = h.start_ms == INT64_MAX || !h.node ? 0 : h.start_ms;
    out->earliest = out->start_ms && !claims_of(s, e->job);
}

void sched_why(struct sched *s, const struct sched_event *e, int64_t now_ms, struct why *out)
{
    struct job *j = map_get(s->jobs, e->job);
    *out = (struct why){ 0 };
    if (!j || !j->waiting.count)
        return;
    out->known = true;
    explain(s, j, out);
    if (j->blocked) { /* whoever cannot run is promised no start */
        out->reason = reason_blocks(j->told) ? (enum reason)j->told : REASON_DEPENDENCY;
        return;
    }
    expect(s, e, now_ms, out);
    if (heap_has(&s->sleepers, j) && j->wake_ms > now_ms) {
        out->reason = REASON_RETRY;
        out->pause_ms = j->wake_ms;
        out->start_ms = out->fits ? j->wake_ms : 0;
        out->earliest = out->start_ms;
    }
}

/* --- trying */

/* Takes as many places as it would get, and gives them back. */
static void try_tasks(struct sched *s, struct job *j, const struct sched_event *e, int64_t now_ms, struct why *out)
{
    struct class *c = j->class;
    struct hold *taken[WHY_TRIED];
    struct wait was = c->held_by;
    enum reason why;
    struct pick pick;
    struct node *n = find(s, j, &pick, &why);
    int64_t most = MIN(e->last_task - e->first_task + 1, (int64_t)WHY_TRIED);
    while (n) {
        struct held_gpu gpus[SCHED_GPUS];
        int count = pick_gpus(&c->wanted->is, &pick, n, &s->fleet, gpus);
        if (!out->tasks) {
            out->node = n->id;
            out->gpu_count = count;
            for (int i = 0; i < count; i++)
                out->gpus_at[i] = (struct sched_held){ gpus[i].index, gpus[i].milli, gpus[i].mem_mib };
        }
        if (c->gang) {
            out->tasks = c->gang;
            break;
        }
        struct hold *h = hold_new(s, -1, out->tasks, n->id, c->project, pick.cpu_milli, pick.mem_mib, gpus, count);
        quota_hold(s, h, c->owner, e->bound_ms);
        hold_known(s, h, now_ms, e->priority, e->bound_ms, 0);
        claims_again(s, n->id);
        taken[out->tasks++] = h;
        n = out->tasks < most ? find(s, j, &pick, &why) : NULL;
    }
    for (int64_t i = c->gang ? 0 : out->tasks; i--;)
        hold_end(s, taken[i]);
    c->held_by = was;
}

void sched_try(struct sched *s, const struct sched_event *e, int64_t now_ms, struct why *out)
{
    struct job j = { .id = INT64_MAX, .created_ms = now_ms, .since_ms = now_ms, .priority = (int16_t)e->priority, .bound_ms = e->bound_ms, .class = class_like(s, e), .need = need_enter(s, e->needs) };
    *out = (struct why){ .known = true };
    explain(s, &j, out);
    if (e->blocked)
        out->reason = REASON_DEPENDENCY;
    else
        try_tasks(s, &j, e, now_ms, out);
    if (out->reason == REASON_RESOURCES && s->next && !order_before(s, &j, s->next))
        out->reason = REASON_PRIORITY;
    expect(s, e, now_ms, out);
    if (out->reason == REASON_RESOURCES && s->rules.backfill_depth)
        out->earliest = false; /* it would be the first, and have that start */
    need_leave(s, j.need);
    class_leave(s, j.class);
}
