/* near.c - what the state of a node does not tell: which bytes are there already, and how many tasks of the same job.
 *
 * Lots know nothing of it, so that they stay few: the best place is found as always, and then looked at beside the nodes that have bytes of the
 * job, and beside the next best where the job is to be spread. Who needs no bytes that any node has, and asks for no spread, pays nothing.
 * How many nodes are looked at is bounded, so that of many that have an image the best may be missed, never one that has room at all. */
#include "sched/sched_internal.h"
#include <stdlib.h>

enum { LOOKS = 1024, SCORED = 48, LOT_LOOKS = 256, SCANS = 16 };

struct has { int64_t node; int32_t mib; };
struct good_on {            /* where one thing is, by node */
    int64_t key;
    struct has *at;
    size_t count, room;
};
struct goods_of { size_t count; int64_t key[]; };   /* of a node */
struct need { int64_t key[SCHED_NEEDS]; size_t users; uint32_t number; struct need *next; };    /* next: of the same hash */
/* Of a job that asks for it: how many of its tasks each node and each zone has. */
struct apart { int64_t job, last_task; bool zones; struct map *on, *in; };

/* --- which bytes are where */

static size_t has_find(const struct good_on *g, int64_t node)      /* the first at or behind it */
{
    size_t low = 0, high = g->count;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (g->at[mid].node < node)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static int64_t mib_on(const struct good_on *g, int64_t node)
{
    size_t i = g ? has_find(g, node) : 0;
    return g && i < g->count && g->at[i].node == node ? g->at[i].mib : 0;
}

static void good_leave(struct sched *s, int64_t key, int64_t node)
{
    struct good_on *g = map_get(s->near.goods, key);
    size_t i = g ? has_find(g, node) : 0;
    if (!g || i == g->count || g->at[i].node != node)
        return;
    memmove(g->at + i, g->at + i + 1, (--g->count - i) * sizeof *g->at);
    if (!g->count) {
        map_take(s->near.goods, key);
        free(g->at);
        free(g);
    }
}

static bool good_enter(struct sched *s, const struct good *what, int64_t node)     /* false: it was told twice */
{
    struct good_on *g = map_get(s->near.goods, what->key);
    if (!g) {
        g = must(calloc(1, sizeof *g));
        g->key = what->key;
        map_put(s->near.goods, g->key, g);
    }
    size_t i = has_find(g, node);
    if (i < g->count && g->at[i].node == node)
        return false;
    if (g->count == g->room) {
        g->room = g->room ? g->room * 2 : 2;
        g->at = must(reallocarray(g->at, g->room, sizeof *g->at));
    }
    memmove(g->at + i + 1, g->at + i, (g->count++ - i) * sizeof *g->at);
    g->at[i] = (struct has){ node, (int32_t)MIN(what->mib, INT32_MAX) };
    return true;
}

void near_node_gone(struct sched *s, int64_t node)
{
    struct goods_of *of = s->near.of ? map_take(s->near.of, node) : NULL;
    for (size_t i = 0; of && i < of->count; i++)
        good_leave(s, of->key[i], node);
    free(of);
}

void near_goods(struct sched *s, const struct sched_event *e)
{
    near_node_gone(s, e->node);
    size_t count = MIN(e->good_count, (size_t)GOODS_MOST);
    if (!count)
        return;
    if (!s->near.of) {
        s->near.of = map_new();
        s->near.goods = map_new();
    }
    struct goods_of *of = must(calloc(1, sizeof *of + count * sizeof of->key[0]));
    for (size_t i = 0; i < count; i++)
        if (e->goods[i].key && good_enter(s, &e->goods[i], e->node))
            of->key[of->count++] = e->goods[i].key;
    map_put(s->near.of, e->node, of);
}

/* --- what a job needs: the same of many, so each set is kept once, and a job has its number */

static int64_t need_hash(const int64_t key[static SCHED_NEEDS])
{
    uint64_t hash = 0;
    for (int i = 0; i < SCHED_NEEDS; i++)
        hash = (hash ^ (uint64_t)key[i]) * 0x9e3779b97f4a7c15ULL;
    return (int64_t)hash;
}

static uint32_t need_number(struct near *n, struct need *of)
{
    if (n->free_count)
        return n->free[--n->free_count];
    if (n->need_count == n->need_room) {
        n->need_room = n->need_room ? n->need_room * 2 : 16;
        n->needs = must(reallocarray(n->needs, n->need_room, sizeof *n->needs));
        n->free = must(reallocarray(n->free, n->need_room, sizeof *n->free));
    }
    n->needs[n->need_count++] = of;
    return (uint32_t)n->need_count;
}

uint32_t need_enter(struct sched *s, const int64_t key[static SCHED_NEEDS])
{
    struct near *n = &s->near;
    static const int64_t none[SCHED_NEEDS];
    if (memcmp(key, none, sizeof none) == 0)
        return 0;
    n->by_hash = n->by_hash ? n->by_hash : map_new();
    struct need *first = map_get(n->by_hash, need_hash(key)), *of = first;
    while (of && memcmp(of->key, key, sizeof of->key) != 0)
        of = of->next;
    if (!of) {
        of = must(calloc(1, sizeof *of));
        memcpy(of->key, key, sizeof of->key);
        of->next = first;
        of->number = need_number(n, of);
        n->needs[of->number - 1] = of;
        map_put(n->by_hash, need_hash(key), of);
    }
    of->users++;
    return of->number;
}

void need_leave(struct sched *s, uint32_t number)
{
    struct near *n = &s->near;
    struct need *of = number ? n->needs[number - 1] : NULL;
    if (!of || --of->users)
        return;
    struct need *first = map_take(n->by_hash, need_hash(of->key)), **at = &first;
    while (*at != of)
        at = &(*at)->next;
    *at = of->next;
    if (first)
        map_put(n->by_hash, need_hash(of->key), first);
    n->needs[number - 1] = NULL;
    n->free[n->free_count++] = number;
    free(of);
}

/* --- where the tasks of a job are */

static void tally(struct map *m, int64_t key, int by)
{
    intptr_t n = (intptr_t)map_get(m, key) + by;
    if (n)
        map_put(m, key, (void *)n);
    else
        map_take(m, key);
}

static void spread_count(struct sched *s, struct apart *sp, int64_t node, int by)
{
    const struct node *n = fleet_node(&s->fleet, node);
    tally(sp->on, node, by);
    if (n && sp->zones)
        tally(sp->in, place_site(n->place)->id, by);
}

static void spread_free(struct apart *sp)
{
    map_free(sp->on);
    map_free(sp->in);
    free(sp);
}

/* From what it holds; all is told again when a node has moved to another zone, which is rare. */
static void spread_find(struct sched *s, struct apart *sp)
{
    map_free(sp->on);
    map_free(sp->in);
    sp->on = map_new();
    sp->in = map_new();
    for (int64_t i = 0; i <= sp->last_task; i++) {
        const struct hold *h = hold_find(s, sp->job, i);
        if (h)
            spread_count(s, sp, h->node, 1);
    }
}

void near_job(struct sched *s, const struct sched_event *e)
{
    struct apart *sp = s->near.spreads ? map_get(s->near.spreads, e->job) : NULL;
    bool wanted = e->spread && e->gang <= 1;
    if (sp && wanted && sp->zones == (e->spread == SPREAD_ZONE) && sp->last_task >= e->last_task)
        return;
    near_job_gone(s, e->job);
    if (!wanted)
        return;
    s->near.spreads = s->near.spreads ? s->near.spreads : map_new();
    sp = must(calloc(1, sizeof *sp));
    *sp = (struct apart){ .job = e->job, .last_task = e->last_task, .zones = e->spread == SPREAD_ZONE };
    map_put(s->near.spreads, e->job, sp);
    spread_find(s, sp);
}

void near_job_gone(struct sched *s, int64_t job)
{
    struct apart *sp = s->near.spreads ? map_take(s->near.spreads, job) : NULL;
    if (sp)
        spread_free(sp);
}

void near_hold(struct sched *s, const struct hold *h, int by)
{
    struct apart *sp = map_get(s->near.spreads, h->job);
    if (sp)
        spread_count(s, sp, h->node, by);
}

void near_places(struct sched *s)
{
    struct apart *sp;
    for (size_t i = 0; s->near.spreads && (sp = map_next(s->near.spreads, &i));)
        spread_find(s, sp);
}

/* --- the choice */

struct chosen { struct node *n; struct pick pick; int64_t score, gain; };
struct choice {
    struct sched *s;
    struct class *c;
    const struct apart *spread;
    const struct good_on *goods[SCHED_NEEDS];
    struct chosen best;
    int looks, scored;
};

/* What speaks for a node beside its state, in millionths of a GPU. */
static int64_t gain_of(const struct choice *k, const struct node *n)
{
    const int64_t *weight = k->s->index.policy.weight;
    int64_t mib = 0, tasks = 0;
    for (int i = 0; i < SCHED_NEEDS; i++)
        mib += mib_on(k->goods[i], n->id);
    if (k->spread) {
        tasks = (intptr_t)map_get(k->spread->on, n->id);
        if (k->spread->zones)   /* the zone first, then the node */
            tasks += 2 * (intptr_t)map_get(k->spread->in, place_site(n->place)->id);
    }
    return weight[TERM_FETCH] * mib * MICRO / 1024 - weight[TERM_SPREAD] * tasks * MICRO;
}

/* Scores are in steps of the grain, and so is this: less than that decides only among equals. */
static int64_t steps_of(const struct choice *k, int64_t gain)
{
    const struct policy *p = &k->s->index.policy;
    return gain / p->grain * (p->lit ? 2 : 1);
}

static void consider(struct choice *k, struct node *n, const struct pick *pick)
{
    int64_t gain = gain_of(k, n), score = pick->score + steps_of(k, gain);
    const struct chosen *b = &k->best;
    bool better = !b->n || score > b->score || (score == b->score && (gain > b->gain || (gain == b->gain && n->id < b->n->id)));
    if (better && (n == b->n || place_may(k->s, k->c, n, pick)))
        k->best = (struct chosen){ n, *pick, score, gain };
}

static void consider_goods(struct choice *k)
{
    struct pick pick;
    for (int i = 0; i < SCHED_NEEDS; i++)
        for (size_t at = 0; k->goods[i] && at < k->goods[i]->count && k->looks < LOOKS && k->scored < SCORED; at++) {
            struct node *n = fleet_node(&k->s->fleet, k->goods[i]->at[at].node);
            k->looks++;
            if (n && n != k->best.n && n->lot && index_on(&k->s->index, k->c->wanted, n, &pick)) {
                k->scored++;
                consider(k, n, &pick);
            }
        }
}

/* Of nodes in the same state the one with the fewest of its tasks. */
static bool consider_lot(struct lot *l, const struct pick *pick, void *arg)
{
    struct choice *k = arg;
    if (k->best.n && pick->score < k->best.score)
        return false; /* what comes behind is no better */
    struct node *least = NULL;
    int64_t most = 0;
    for (uint32_t i = 0; i < MIN(l->count, (uint32_t)LOT_LOOKS); i++) {
        struct node *n = l->nodes[i];
        int64_t gain = gain_of(k, n);
        if (!least || gain > most || (gain == most && n->id < least->id)) {
            least = n;
            most = gain;
        }
        if (!map_get(k->spread->on, l->nodes[0]->id))
            break; /* the first is as good as any */
    }
    consider(k, least, pick);
    return true;
}

static bool all_there(const struct choice *k, const struct node *n)
{
    bool all = true;
    for (int i = 0; i < SCHED_NEEDS; i++)
        all = all && (!k->goods[i] || mib_on(k->goods[i], n->id));
    return all;
}

/* A walk over everything, for one that the ranking cannot answer: so many in a pass. */
static bool may_scan(struct sched *s)
{
    if (s->near.scans_pass != s->pass)
        s->near.scans_pass = s->pass, s->near.scans = 0;
    return s->near.scans++ < SCANS;
}

struct node *place_near(struct sched *s, const struct job *j, struct node *n, struct pick *pick)
{
    struct near *near = &s->near;
    const struct policy *p = &s->index.policy;
    struct choice k = { .s = s, .c = j->class, .spread = near->spreads ? map_get(near->spreads, j->id) : NULL };
    bool some = false;
    for (int i = 0; j->need && near->goods && i < SCHED_NEEDS; i++)
        some |= (k.goods[i] = map_get(near->goods, near->needs[j->need - 1]->key[i])) != NULL;
    if ((!some && !k.spread) || p->dice || p->sigmoid || j->class->only_node || j->class->gang)
        return n;
    consider(&k, n, pick);
    if (some && p->weight[TERM_FETCH] && (k.spread || !all_there(&k, n)))
        consider_goods(&k);
    if (k.spread && p->weight[TERM_SPREAD] && !index_walk(&s->index, j->class->wanted, consider_lot, &k) && may_scan(s))
        index_walk_all(&s->index, j->class->wanted, consider_lot, &k);
    *pick = k.best.pick;
    return k.best.n;
}

/* --- for tests */

void near_print_node(const struct sched *s, int64_t node, struct str *out)
{
    const struct goods_of *of = s->near.of ? map_get(s->near.of, node) : NULL;
    for (size_t i = 0; of && i < of->count; i++)
        str_printf(out, "  has %llx of %lld MiB\n", (unsigned long long)of->key[i], (long long)mib_on(map_get(s->near.goods, of->key[i]), node));
}

static int64_t squares(const struct sched *s, const struct apart *sp, bool zones)
{
    int64_t sum = 0;
    for (size_t i = 0; i < s->fleet.count; i++) {
        const struct node *n = s->fleet.nodes[i];
        int64_t tasks = (intptr_t)map_get(zones ? sp->in : sp->on, zones ? place_site(n->place)->id : n->id);
        sum += tasks * tasks;
    }
    return sum;
}

void near_print_job(const struct sched *s, const struct job *j, struct str *out)
{
    const struct apart *sp = s->near.spreads ? map_get(s->near.spreads, j->id) : NULL;
    for (int i = 0; j->need && i < SCHED_NEEDS; i++)
        str_printf(out, "  needs %llx\n", (unsigned long long)s->near.needs[j->need - 1]->key[i]);
    if (sp)
        str_printf(out, "  spread over %s: %lld %lld\n", sp->zones ? "zones" : "nodes", (long long)squares(s, sp, false), (long long)squares(s, sp, true));
}

void near_done(struct sched *s)
{
    struct near *n = &s->near;
    struct good_on *g;
    void *of;
    struct apart *sp;
    for (size_t i = 0; n->goods && (g = map_next(n->goods, &i));) {
        free(g->at);
        free(g);
    }
    for (size_t i = 0; n->of && (of = map_next(n->of, &i));)
        free(of);
    for (size_t i = 0; n->spreads && (sp = map_next(n->spreads, &i));)
        spread_free(sp);
    for (size_t i = 0; i < n->need_count; i++)
        free(n->needs[i]);
    map_free(n->goods);
    map_free(n->of);
    map_free(n->spreads);
    map_free(n->by_hash);
    free(n->needs);
    free(n->free);
}
