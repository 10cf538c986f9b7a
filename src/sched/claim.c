/* claim.c - room on a node that is kept for somebody who is not there yet: the start of a head job (ahead.c), a place that others yield
 * (evict.c), a part of a reservation (reserve.c).
 *
 * A claim names devices, which are closed to all others, and CPUs and memory, of which others may have what will still be enough when
 * it is wanted: what is free now, less what the claim needs beyond what ends before. So the index sees a claimed node as it is for
 * everybody else, and costs nothing; whoever may use what is claimed is tried there by name. */
#include "sched/sched_internal.h"
#include <stdlib.h>

struct claim *claims_of(const struct sched *s, int64_t job)
{
    return s->claims.count ? map_get(s->claims.of, job) : NULL;
}

/* --- what is kept of a node's CPUs and memory */

static bool within(const struct hold *h, const struct claim *cl)
{
    for (int i = 0; i < h->count; i++)
        for (int k = 0; k < cl->count; k++)
            if (h->gpus[i].index == cl->gpus[k].index)
                return true;
    return !h->count && !cl->count;
}

/* What will be free on its node for a claim by then, in addition to what is free now: what ends, and in a reservation what is lent or the
 * owner's own. */
static void given_by(const struct sched *s, const struct claim *cl, const struct hold *first, int64_t *cpu, int64_t *mem)
{
    *cpu = *mem = 0;
    for (const struct hold *h = first; h; h = h->next) {
        bool own = cl->reserve && h->project == cl->reserve->class->project && within(h, cl);
        bool ends = MAX(h->ends_ms, s->last_now_ms) <= cl->start_ms && h->ends_ms < INT64_MAX;
        bool yields = cl->kind == CLAIM_EVICT && (h->evicted_for || h->yields_ms);
        if (own || ends || yields || (cl->reserve && h->rank == CLASS_SPOT)) {
            *cpu += h->cpu_milli;
            *mem += h->mem_mib;
        }
    }
}

/* For each claim there must be enough for it and for those that are wanted before it. */
void claims_count(struct sched *s, int64_t node)
{
    struct claim *first = s->claims.count ? map_get(s->claims.on, node) : NULL;
    struct node *n = first ? fleet_node(&s->fleet, node) : NULL;
    int64_t cpu = 0, mem = 0;
    if (!n)
        return;
    const struct hold *holds = map_get(s->held_on, node);
    for (const struct claim *a = first; a; a = a->next) {
        int64_t cpu_need = 0, mem_need = 0, cpu_given, mem_given;
        if (!a->taken)
            continue;
        for (const struct claim *b = first; b; b = b->next)
            if (b->taken && (b->start_ms <= a->start_ms || b->kind == a->kind)) {
                cpu_need += b->cpu_milli;
                mem_need += b->mem_mib;
            }
        given_by(s, a, holds, &cpu_given, &mem_given);
        cpu = MAX(cpu, cpu_need - cpu_given);
        mem = MAX(mem, mem_need - mem_given);
    }
    cpu = MIN(cpu, INT32_MAX / 2);
    mem = MIN(mem, INT32_MAX / 2);
    if (n->cpu_claimed != cpu || n->mem_claimed != mem) {
        n->cpu_claimed = (int32_t)cpu;
        n->mem_claimed = (int32_t)mem;
        fleet_touch(&s->fleet, n);
    }
}

/* Others keep all that they claim, as when somebody is to be beside them later: what ends is not given to two. */
void claims_whole(const struct sched *s, struct node *n)
{
    int64_t cpu = 0, mem = 0;
    for (const struct claim *cl = s->claims.count ? map_get(s->claims.on, n->id) : NULL; cl; cl = cl->next)
        if (cl->taken) {
            cpu += cl->cpu_milli;
            mem += cl->mem_mib;
        }
    n->cpu_claimed = (int32_t)MIN(cpu, INT32_MAX / 2);
    n->mem_claimed = (int32_t)MIN(mem, INT32_MAX / 2);
}

/* --- taking and lifting */

static void close_gpus(struct sched *s, struct claim *cl, int sign)
{
    struct node *n = fleet_node(&s->fleet, cl->node);
    cl->taken = sign > 0;
    for (int i = 0; n && i < cl->count; i++) {
        struct gpu *g = (struct gpu *)node_gpu(n, cl->gpus[i].index);
        if (g)
            g->closed = (uint8_t)(g->closed + sign);
    }
    if (n)
        fleet_touch(&s->fleet, n);
    claims_count(s, cl->node);
}

void claim_take(struct sched *s, struct claim *cl)
{
    if (!cl->taken)
        close_gpus(s, cl, 1);
}

void claim_lift(struct sched *s, struct claim *cl)
{
    if (cl->taken)
        close_gpus(s, cl, -1);
}

struct claim *claim_new(struct sched *s, const struct claim *like)
{
    struct claims *c = &s->claims;
    struct claim *cl = must(malloc(sizeof *cl));
    *cl = *like;
    c->at = room_for(c->at, c->count, &c->room, sizeof *c->at);
    cl->at = c->count;
    c->at[c->count++] = cl;
    cl->taken = cl->aside = false;
    cl->next = map_get(c->on, cl->node);
    map_put(c->on, cl->node, cl);
    if (cl->job) {
        cl->same = map_get(c->of, cl->job);
        map_put(c->of, cl->job, cl);
    }
    c->heads += cl->kind == CLAIM_HEAD;
    c->evicts += cl->kind == CLAIM_EVICT;
    claim_take(s, cl);
    return cl;
}

static void unlink_claim(struct map *m, int64_t key, struct claim *cl, size_t member)
{
    struct claim *first = map_take(m, key), **at = &first;
    while (*at != cl)
        at = (struct claim **)((char *)*at + member);
    *at = *(struct claim **)((char *)cl + member);
    if (first)
        map_put(m, key, first);
}

/* The order of the others stays: the older goes first where several are free. */
void claim_drop(struct sched *s, struct claim *cl)
{
    struct claims *c = &s->claims;
    s->dirty = s->dirty || cl->taken; /* who was kept from there is tried again */
    claim_lift(s, cl);
    unlink_claim(c->on, cl->node, cl, offsetof(struct claim, next));
    if (cl->job)
        unlink_claim(c->of, cl->job, cl, offsetof(struct claim, same));
    memmove(c->at + cl->at, c->at + cl->at + 1, (c->count - cl->at - 1) * sizeof *c->at);
    c->count--;
    for (size_t i = cl->at; i < c->count; i++)
        c->at[i]->at = i;
    c->heads -= cl->kind == CLAIM_HEAD;
    c->evicts -= cl->kind == CLAIM_EVICT;
    claims_count(s, cl->node);
    free(cl);
}

void claims_done(struct claims *c)
{
    for (size_t i = 0; i < c->count; i++)
        free(c->at[i]);
    free(c->at);
    map_free(c->on);
    map_free(c->of);
}

void claims_drop_of(struct sched *s, int64_t job)
{
    for (struct claim *cl; (cl = claims_of(s, job));)
        claim_drop(s, cl);
}

static bool has_gpus(const struct node *n, const struct claim *cl)
{
    for (int i = 0; i < cl->count; i++) {
        const struct gpu *g = node_gpu(n, cl->gpus[i].index);
        if (!g || !g->healthy)
            return false;
    }
    return true;
}

/* A node that was told anew knows of no claims. */
void claims_node(struct sched *s, int64_t node)
{
    struct node *n = fleet_node(&s->fleet, node);
    struct claim *first = s->claims.count ? map_get(s->claims.on, node) : NULL;
    for (struct claim *cl = first; cl; cl = cl->next)
        cl->taken = false; /* all of them, before one is counted again beside the others */
    for (struct claim *cl = first, *next; cl; cl = next) {
        next = cl->next;
        if (n && n->usable && has_gpus(n, cl)) {
            if (!cl->aside)
                claim_take(s, cl);
        } else if (cl->reserve) {
            reserve_lost(s, cl);
        } else {
            claim_drop(s, cl);
        }
    }
}

static bool claims_whole_gang(const struct sched *s, const struct job *j)
{
    int64_t count = 0;
    for (const struct claim *cl = claims_of(s, j->id); cl; cl = cl->same)
        count++;
    return count == j->class->gang;
}

void claims_check(struct sched *s)
{
    for (size_t i = s->claims.evicts ? s->claims.count : 0; i-- > 0;) {
        struct claim *cl = s->claims.at[i];
        const struct job *j = cl->job ? map_get(s->jobs, cl->job) : NULL;
        if (cl->kind != CLAIM_EVICT || (j && j->waiting.count && !j->blocked && (!j->class->gang || claims_whole_gang(s, j))))
            continue;
        if (j && j->class->gang) {
            claims_drop_of(s, cl->job);
            i = MIN(i, s->claims.count);
        } else {
            claim_drop(s, cl);
        }
    }
}

/* --- who may use what is claimed */

bool claim_own(const struct sched *s, const struct claim *cl, const struct job *j)
{
    return cl->reserve ? cl->reserve->class->project == j->class->project && reserve_open(s, cl->reserve) : cl->job == j->id;
}

bool claim_lent(const struct sched *s, const struct claim *cl, const struct job *j)
{
    bool over = j->bound_ms && cl->start_ms < INT64_MAX && s->last_now_ms + j->bound_ms <= cl->start_ms;
    return cl->kind == CLAIM_EVICT ? false : over || (cl->reserve && priority_of(j->priority) == CLASS_SPOT);
}

static void lift_on(struct sched *s, int64_t node, const struct job *j)
{
    for (struct claim *cl = map_get(s->claims.on, node); cl; cl = cl->next)
        if (claim_own(s, cl, j) || claim_lent(s, cl, j))
            claim_lift(s, cl);
}

/* What others yield for somebody is never another's. */
void claims_open(struct sched *s, int64_t node, const struct job *j, bool first, bool reserved)
{
    for (struct claim *cl = s->claims.count ? map_get(s->claims.on, node) : NULL; cl; cl = cl->next)
        if (cl->kind == CLAIM_HEAD ? first : cl->reserve && (reserved || claim_own(s, cl, j) || claim_lent(s, cl, j)))
            claim_lift(s, cl);
}

void claims_again(struct sched *s, int64_t node)
{
    for (struct claim *cl = s->claims.count ? map_get(s->claims.on, node) : NULL; cl; cl = cl->next)
        if (!cl->aside)
            claim_take(s, cl);
}

/* Whether it could be there if nothing at all were claimed: most nodes are full, and this is cheap. */
static bool free_enough(const struct node *n, const struct shape *w)
{
    int64_t whole = 0, part = 0;
    if (n->cpu_milli - n->cpu_used < w->cpu_milli || n->mem_mib - n->mem_used < w->mem_mib)
        return false;
    if (w->gpu.mig[0]) /* slots tell, not thousandths */
        return true;
    for (int i = 0; w->gpu.milli && i < n->gpu_count; i++) {
        const struct gpu *g = &n->gpus[i];
        whole += !g->holders;
        part = MAX(part, 1000 - g->used_milli);
    }
    return w->gpu.milli < 1000 ? part >= w->gpu.milli : whole * 1000 >= w->gpu.milli;
}

/* On success what may be lifted for it on that node is. */
static struct node *try_on(struct sched *s, struct job *j, int64_t node, struct pick *pick)
{
    struct spot at = { .node = fleet_node(&s->fleet, node) };
    if (!at.node || (j->class->only_node && j->class->only_node != node) || !free_enough(at.node, &j->class->shape))
        return NULL;
    index_ready(&s->index, j->class->wanted);
    lift_on(s, node, j);
    if (index_as(&s->index, j->class->wanted, at.node, &at.pick, at.gpus, &at.count) && place_allowed(s, j->class, &at)
        && index_on(&s->index, j->class->wanted, at.node, pick))
        return at.node;
    claims_again(s, node);
    return NULL;
}

bool claim_free(struct sched *s, const struct claim *cl, struct job *j)
{
    struct pick pick;
    struct node *n = try_on(s, j, cl->node, &pick);
    if (n)
        claims_again(s, n->id);
    return n;
}

static struct node *in_own(struct sched *s, struct job *j, struct pick *pick)
{
    struct node *n = NULL;
    struct reserve *r;
    for (struct claim *cl = claims_of(s, j->id), *next; cl && !n; cl = next) {
        next = cl->same;
        n = try_on(s, j, cl->node, pick);
    }
    for (size_t i = 0; !n && (r = map_next(s->reserves, &i));)
        for (int64_t k = 0; !n && r->class->project == j->class->project && reserve_open(s, r) && k < r->count; k++)
            n = r->parts[k] ? try_on(s, j, r->parts[k]->node, pick) : NULL;
    return n;
}

int64_t claims_until(const struct sched *s)
{
    int64_t last = 0;
    for (size_t i = 0; i < s->claims.count; i++) {
        const struct claim *cl = s->claims.at[i];
        if (cl->taken && cl->kind != CLAIM_EVICT && cl->start_ms < INT64_MAX)
            last = MAX(last, cl->start_ms);
    }
    return last;
}

struct node *place_lent(struct sched *s, struct job *j, struct pick *pick)
{
    struct claims *c = &s->claims;
    int64_t last = 0;
    for (size_t i = 0; i < c->count; i++) {
        struct claim *cl = c->at[(c->cursor + i) % c->count];
        if (cl->node == last || !cl->taken || !claim_lent(s, cl, j))
            continue;
        last = cl->node;
        struct node *n = try_on(s, j, last, pick);
        if (n) {
            c->cursor = (c->cursor + i) % c->count;
            return n;
        }
    }
    return NULL;
}

bool lent_fits(struct sched *s, struct job *j)
{
    struct pick pick;
    struct node *n = place_lent(s, j, &pick);
    if (n)
        claims_again(s, n->id);
    return n;
}

struct node *place_for(struct sched *s, struct job *j, struct pick *pick)
{
    struct node *n = s->claims.count ? in_own(s, j, pick) : NULL;
    if (!n && (n = place_find(s, j->class, pick)) && (j->need || s->near.spreads))
        n = place_near(s, j, n, pick);
    if (!n && s->claims.count && (j->bound_ms || priority_of(j->priority) == CLASS_SPOT))
        n = place_lent(s, j, pick);
    return n;
}

/* It was placed there: a claim of its own is used up, on that node or, when it has more of them than tasks that wait, elsewhere. */
void claims_back(struct sched *s, struct job *j, struct node *n)
{
    struct claim *used = NULL;
    size_t tasks = 0, claims = 0;
    if (!s->claims.count)
        return;
    for (size_t i = 0; i < j->waiting.count; i++) {
        const struct range *r = &waiting_ranges(&j->waiting)[i];
        tasks += (size_t)(r->last - r->first + 1);
    }
    for (struct claim *cl = claims_of(s, j->id); cl; cl = cl->same) {
        claims++;
        used = cl->node == n->id && !cl->taken ? cl : used;
    }
    if (used)
        claim_drop(s, used);
    else if (claims > tasks)
        claim_drop(s, claims_of(s, j->id));
    claims_again(s, n->id);
}
