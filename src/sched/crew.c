/* crew.c - gangs in line: what ahead.c and evict.c do for a task they do here for n of them on n nodes, all or nothing.
 *
 * Nodes are sorted by when (or by how many must yield until) they have room for one task; the place of the gang's level that gets n of them first
 * wins. A gang's claims are n of one job, made together and dropped together: one that is lost makes the others worthless. What a gang would
 * rather be in (prefer) is looked at when it starts, not here. */
#include "sched/sched_internal.h"
#include <stdlib.h>

enum { LOOK_AGAIN_MS = 10000, LARGE = 256 };

/* --- starting among claims */

/* What is its own, and then what is lent to it, is lifted while it is looked for. */
struct seat *gang_for(struct sched *s, struct job *j, struct arena *mem, enum reason *why)
{
    struct seat *seats = NULL;
    for (int with_lent = 0; !seats && with_lent < (s->claims.count ? 2 : 1); with_lent++) {
        bool any = !with_lent;
        for (size_t i = 0; i < s->claims.count; i++) {
            struct claim *cl = s->claims.at[i];
            if (cl->taken && (claim_own(s, cl, j) || (with_lent && claim_lent(s, cl, j)))) {
                claim_lift(s, cl);
                any = true;
            }
        }
        seats = any ? gang_find(s, j->class, mem, why) : NULL;
    }
    return seats;
}

void gang_back(struct sched *s, struct job *j, bool placed)
{
    for (size_t i = 0; i < s->claims.count; i++)
        if (!s->claims.at[i]->aside)
            claim_take(s, s->claims.at[i]);
    if (placed) /* perhaps elsewhere */
        claims_drop_of(s, j->id);
}

/* --- n nodes of one place */

struct one { struct node *n; int64_t cost, youth; };    /* the least cost first, then the most youth */
struct crew { struct one *at; size_t count; };
static void crew_done_auto(struct crew *c) { free(c->at); }
static void spots_done_auto(struct spot **at) { free(*at); }

static int by_cost(const void *a, const void *b)
{
    const struct one *x = a, *y = b;
    if (x->cost != y->cost)
        return x->cost < y->cost ? -1 : 1;
    if (x->youth != y->youth)
        return x->youth > y->youth ? -1 : 1;
    return x->n->id < y->n->id ? -1 : x->n->id > y->n->id;
}

static struct place *place_of(const struct class *c, const struct node *n)
{
    struct place *p = n->place;
    while (p->level > c->within)
        p = p->up;
    return p->level == c->within ? p : NULL;
}

/* The cheapest n in one place, to the front; total: the sum counts, else the dearest of them. False: no place has n. */
static bool crew_choose(struct sched *s, const struct class *c, struct crew *crew, bool total)
{
    struct place *best = NULL;
    int64_t least = INT64_MAX;
    size_t kept = 0;
    qsort(crew->at, crew->count, sizeof *crew->at, by_cost);
    s->searches++;
    for (size_t i = 0; i < crew->count; i++) {
        struct place *p = place_of(c, crew->at[i].n);
        if (!p)
            continue;
        if (p->search != s->searches) {
            p->search = s->searches;
            p->seats = p->first = 0;
        }
        if (p->seats >= c->gang)
            continue;
        p->seats++;
        p->first = total ? p->first + crew->at[i].cost : crew->at[i].cost;
        if (p->seats == c->gang && p->first < least) {
            least = p->first;
            best = p;
        }
    }
    for (size_t i = 0; best && kept < (size_t)c->gang; i++)
        if (place_of(c, crew->at[i].n) == best)
            crew->at[kept++] = crew->at[i];
    crew->count = kept;
    return best;
}

/* When each node has room for one of them; now_ms: now. */
static bool crew_when(struct sched *s, struct class *c, struct crew *crew)
{
    crew->at = must(calloc(s->fleet.count + 1, sizeof *crew->at));
    index_ready(&s->index, c->wanted);
    for (size_t i = 0; i < s->fleet.count; i++) {
        struct node *n = s->fleet.nodes[i];
        struct when w = { .start_ms = INT64_MAX };
        if (index_fits(&s->index, c->wanted, n))
            crew->at[crew->count++] = (struct one){ n, s->last_now_ms, 0 };
        else if (node_when(s, c, n, &w))
            crew->at[crew->count++] = (struct one){ n, w.start_ms, 0 };
    }
    return crew_choose(s, c, crew, false);
}

static bool spot_on(struct sched *s, struct class *c, struct node *n, struct spot *at)
{
    at->node = n;
    return index_as(&s->index, c->wanted, n, &at->pick, at->gpus, &at->count);
}

/* --- held starts */

static void crew_claim(struct sched *s, struct job *j, const struct spot *at, int64_t start_ms, int64_t told_ms)
{
    struct claim like = { .kind = CLAIM_HEAD,
                          .job = j->id,
                          .node = at->node->id,
                          .start_ms = start_ms,
                          .told_ms = told_ms,
                          .looked_ms = s->last_now_ms,
                          .cpu_milli = at->pick.cpu_milli,
                          .mem_mib = at->pick.mem_mib,
                          .count = at->count };
    memcpy(like.gpus, at->gpus, sizeof like.gpus);
    claim_new(s, &like);
}

/* What was found is still to be had by then. */
static bool crew_holds(struct sched *s, struct job *j, const struct claim *first)
{
    int64_t count = 0;
    if (s->last_now_ms >= first->looked_ms + LOOK_AGAIN_MS || first->start_ms <= s->last_now_ms)
        return false;
    index_ready(&s->index, j->class->wanted);
    for (const struct claim *cl = first; cl; cl = cl->same, count++) {
        struct node *n = fleet_node(&s->fleet, cl->node);
        struct when w = { .start_ms = cl->start_ms < INT64_MAX ? cl->start_ms + 1 : INT64_MAX };
        if (!n || (cl->start_ms < INT64_MAX && !index_fits(&s->index, j->class->wanted, n) && !node_when(s, j->class, n, &w)))
            return false;
    }
    return count == j->class->gang;
}

static void crew_again(struct sched *s, const struct job *j)
{
    for (struct claim *cl = claims_of(s, j->id); cl; cl = cl->same) {
        cl->aside = false;
        claim_take(s, cl);
    }
}

/* Who must go, node by node, whatever its class: of a starved gang, which waits for them. */
static bool crew_least(struct sched *s, struct class *c, unsigned ranks, struct crew *crew)
{
    crew->at = must(calloc(s->fleet.count + 1, sizeof *crew->at));
    index_ready(&s->index, c->wanted);
    for (size_t i = 0; i < s->fleet.count; i++) {
        struct node *n = s->fleet.nodes[i];
        struct victims v = { 0 };
        if (index_fits(&s->index, c->wanted, n))
            crew->at[crew->count++] = (struct one){ n, 0, INT64_MAX };
        else if (victims_least(s, c, n, ranks, &v))
            crew->at[crew->count++] = (struct one){ n, v.cost, v.oldest_ms };
    }
    return crew_choose(s, c, crew, true);
}

/* Where each of them would be; start_ms INT64_MAX: when those in the way have gone, whenever that is. */
static bool crew_spots(struct sched *s, struct class *c, const struct crew *crew, int64_t start_ms, struct spot *out)
{
    bool all = true;
    for (int64_t i = 0; i < c->gang && all; i++) {
        struct victims v = { 0 };
        struct when w = { .start_ms = INT64_MAX };
        if (spot_on(s, c, crew->at[i].n, &w.at) || (start_ms < INT64_MAX && node_when(s, c, crew->at[i].n, &w)))
            out[i] = w.at;
        else if ((all = victims_least(s, c, crew->at[i].n, VICTIMS_ALL, &v)))
            out[i] = v.at;
    }
    return all;
}

int64_t crew_head(struct sched *s, struct job *j, struct claim *known)
{
    struct class *c = j->class;
    int64_t told = known ? known->told_ms : 0, start = INT64_MAX;
    if (known && crew_holds(s, j, known)) {
        crew_again(s, j);
        return known->start_ms;
    }
    claims_drop_of(s, j->id);
    if (s->last_now_ms < c->evict_ms)
        return 0;
    AUTO(crew_done) struct crew crew = { 0 };
    bool found = s->ending && crew_when(s, c, &crew);
    if (found)
        start = MAX(crew.at[c->gang - 1].cost, s->last_now_ms + 1);
    if (!found && order_starved(s, j)) {
        free(TAKE(crew.at));
        crew.count = 0;
        found = crew_least(s, c, VICTIMS_ALL, &crew);
    }
    /* What all of them would hold may be more than a quota allows, of a model or by the size of the nodes: that is not worth waiting for. */
    AUTO(spots_done) struct spot *at = must(calloc((size_t)c->gang, sizeof *at));
    found = found && crew_spots(s, c, &crew, start, at) && quota_allows_crew(s, c, at);
    for (int64_t i = 0; found && i < c->gang; i++)
        crew_claim(s, j, &at[i], start, told);
    if (!found && s->fleet.count > LARGE)
        c->evict_ms = s->last_now_ms + EVICT_PAUSE_MS;
    return found ? start : 0;
}

struct start_hint crew_start(struct sched *s, struct class *c, int64_t job)
{
    AUTO(crew_done) struct crew crew = { 0 };
    struct start_hint out = { job, 0, INT64_MAX };
    if (s->ending && crew_when(s, c, &crew))
        out = (struct start_hint){ job, crew.at[0].n->id, crew.at[c->gang - 1].cost };
    return out;
}

/* --- evictions */

/* Where it could be at once if what was lent out of its project's reservations had gone. */
static bool lent_on(struct sched *s, const struct job *j, struct node *n, struct victims *out)
{
    *out = (struct victims){ .at.node = n };
    for (struct claim *cl = map_get(s->claims.on, n->id); cl; cl = cl->next)
        if (cl->reserve && claim_own(s, cl, j))
            claim_lift(s, cl);
    bool fits = spot_on(s, j->class, n, &out->at);
    claims_again(s, n->id);
    out->at.node = fits ? n : NULL;
    return fits || victims_lent(s, j, n, out);
}

static bool crew_lent(struct sched *s, struct job *j, struct crew *crew)
{
    crew->at = must(calloc(s->fleet.count + 1, sizeof *crew->at));
    index_ready(&s->index, j->class->wanted);
    for (size_t i = 0; i < s->fleet.count; i++) {
        struct node *n = s->fleet.nodes[i];
        struct victims v;
        if (lent_on(s, j, n, &v))
            crew->at[crew->count++] = (struct one){ n, v.cost, v.count ? v.oldest_ms : INT64_MAX };
    }
    return crew_choose(s, j->class, crew, true);
}

static bool yields_on(struct sched *s, struct job *j, const struct one *on, unsigned ranks, bool reserved, struct victims *out)
{
    *out = (struct victims){ 0 };
    if (reserved)
        return lent_on(s, j, on->n, out);
    return on->cost ? victims_least(s, j->class, on->n, ranks, out) : spot_on(s, j->class, on->n, &out->at);
}

bool crew_evict(struct sched *s, struct job *j, unsigned ranks, bool reserved)
{
    struct class *c = j->class;
    AUTO(crew_done) struct crew crew = { 0 };
    struct victims v;
    int64_t milli = 0, count = 0;
    if (!(reserved ? crew_lent(s, j, &crew) : crew_least(s, c, ranks, &crew)))
        return false;
    AUTO(spots_done) struct spot *at = must(calloc((size_t)c->gang, sizeof *at));
    for (size_t i = 0; i < crew.count; i++) {
        if (!yields_on(s, j, &crew.at[i], ranks, reserved, &v))
            return false;
        milli += victims_milli(s, &v);
        count += v.count;
        at[i] = v.at;
    }
    if (!count || !quota_allows_crew(s, c, at) || (!reserved && !brake_allows(s, milli)))
        return false;
    for (size_t i = 0; i < crew.count; i++) {
        if (!yields_on(s, j, &crew.at[i], ranks, reserved, &v)) /* who was to go from here is one of a gang, and goes already: it is tried again */
            return claims_drop_of(s, j->id), false;
        evict_take(s, j, &v, reserved);
    }
    return true;
}
