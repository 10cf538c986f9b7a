/* ahead.c - when those who cannot start now will: the start of a head job, which is held for it, and the answer to "when would it start?".
 *
 * Tasks end when they have run for the longest time they may (max_duration); of those that have none nobody knows. A head is the first
 * of its class of priority for which no node has room: it gets the node where enough will have ended first, and a claim on it, under which others
 * run only if they are over by then. Its start gets earlier when something ends early, never later by those behind it. A head that is starved and
 * has no such time gets the node where least is in its way, and nothing new starts there.
 *
 * Work is bounded: a new head looks at AHEAD_LOOK nodes a pass until it has seen all, then only where something ended. */
#include "sched/sched_internal.h"
#include <stdlib.h>

void ahead_touch(struct sched *s, int64_t node)
{
    if (!s->claims.heads)
        return;
    s->touched = room_for(s->touched, s->touched_count, &s->touched_room, sizeof *s->touched);
    s->touched[s->touched_count++] = node;
}

/* --- when a node has room */

static int by_end(const void *a, const void *b)
{
    const struct hold *x = *(struct hold *const *)a, *y = *(struct hold *const *)b;
    if (x->ends_ms != y->ends_ms)
        return x->ends_ms < y->ends_ms ? -1 : 1;
    if (x->job != y->job)
        return x->job < y->job ? -1 : 1;
    return x->task < y->task ? -1 : x->task > y->task;
}

static size_t ends_on(const struct sched *s, const struct node *n, int64_t before_ms, struct hold *out[static HOLDS_MOST])
{
    size_t count = 0;
    for (struct hold *h = map_get(s->held_on, n->id); h && count < HOLDS_MOST; h = h->next)
        if (h->ends_ms < before_ms)
            out[count++] = h;
    if (count > 1)
        qsort(out, count, sizeof *out, by_end);
    return count;
}

bool node_when(struct sched *s, struct class *c, struct node *n, struct when *best)
{
    struct hold *ends[HOLDS_MOST];
    size_t count = n->usable ? ends_on(s, n, best->start_ms, ends) : 0, needed = count;
    int32_t cpu = n->cpu_claimed, mem = n->mem_claimed;
    struct spot at = { .node = n };
    if (!count || (c->only_node && c->only_node != n->id))
        return false;
    claims_whole(s, n);
    for (size_t i = 0; i < count; i++)
        hold_as(n, ends[i], -1);
    bool fits = index_fits(&s->index, c->wanted, n);
    while (fits && needed) { /* what ends last is put back as long as there is room without it */
        hold_as(n, ends[needed - 1], 1);
        if (!index_fits(&s->index, c->wanted, n)) {
            hold_as(n, ends[needed - 1], -1);
            break;
        }
        needed--;
    }
    fits = fits && index_as(&s->index, c->wanted, n, &at.pick, at.gpus, &at.count) && place_allowed(s, c, &at);
    for (size_t i = 0; i < needed; i++)
        hold_as(n, ends[i], 1);
    n->cpu_claimed = cpu;
    n->mem_claimed = mem;
    if (!fits)
        return false;
    *best = (struct when){ MAX(needed ? ends[needed - 1]->ends_ms : 0, s->last_now_ms + 1), at };
    return true;
}

/* --- heads */

static void hint(struct sched *s, struct claim *cl, int64_t job, int64_t node, int64_t start_ms)
{
    int64_t was = cl ? cl->told_ms : start_ms - 1, left = start_ms - s->last_now_ms;
    int64_t moved = was > start_ms ? was - start_ms : start_ms - was;
    if (cl && cl->told_ms && start_ms < INT64_MAX && moved <= MAX(left / 8, INT64_C(10000)))
        return;
    if (cl)
        cl->told_ms = start_ms;
    s->starts = room_for(s->starts, s->start_count, &s->start_room, sizeof *s->starts);
    s->starts[s->start_count++] = (struct start_hint){ job, node, start_ms };
}

static struct claim *head_of(const struct sched *s, int64_t job)
{
    struct claim *cl = claims_of(s, job);
    while (cl && cl->kind != CLAIM_HEAD)
        cl = cl->same;
    return cl;
}

static void head_drop(struct sched *s, struct claim *cl)
{
    int64_t job = cl->job;
    claim_drop(s, cl);
    if (map_get(s->jobs, job) && !head_of(s, job))
        hint(s, NULL, job, 0, INT64_MAX);
}

static int head_rank(const struct sched *s, const struct claim *cl)
{
    const struct job *j = map_get(s->jobs, cl->job);
    return j ? (int)priority_of(j->priority) : -1;
}

/* Goes on with what was known of a head: its node, where something ended, and nodes it has not looked at yet. */
static struct when look_ahead(struct sched *s, struct job *j, const struct claim *known, size_t *seen)
{
    struct when best = { .start_ms = INT64_MAX };
    struct node *n = known ? fleet_node(&s->fleet, known->node) : NULL;
    *seen = known ? known->seen : 0;
    if (!s->ending)
        return best;
    index_ready(&s->index, j->class->wanted);
    if (n && (!node_when(s, j->class, n, &best) || best.start_ms > MAX(known->start_ms, s->last_now_ms + 1)))
        *seen = 0; /* somebody before it took what it had in view */
    for (size_t i = 0; known && i < s->touched_count; i++)
        if ((n = fleet_node(&s->fleet, s->touched[i])) && n != best.at.node)
            node_when(s, j->class, n, &best);
    size_t until = MIN(*seen + AHEAD_LOOK, s->fleet.count);
    for (; *seen < until; ++*seen)
        if (s->fleet.nodes[*seen] != best.at.node)
            node_when(s, j->class, s->fleet.nodes[*seen], &best);
    return best;
}

/* Least in its way: the node where the fewest tasks hold what it needs. */
static bool least_held(struct sched *s, struct job *j, struct when *best)
{
    struct victims v = { 0 };
    index_ready(&s->index, j->class->wanted);
    for (size_t i = 0; i < s->fleet.count; i++)
        victims_least(s, j->class, s->fleet.nodes[i], VICTIMS_ALL, &v);
    best->at = v.at;
    return v.at.node;
}

static void head_set(struct sched *s, struct job *j, struct claim *known)
{
    size_t seen;
    struct when best = look_ahead(s, j, known, &seen);
    int64_t told = known ? known->told_ms : 0;
    if (best.start_ms == INT64_MAX && known && known->start_ms == INT64_MAX) {
        claim_take(s, known); /* it stays where it is: else what has been waited for there would be for nothing */
        return;
    }
    if (best.start_ms == INT64_MAX && !(order_starved(s, j) && least_held(s, j, &best))) {
        if (known)
            head_drop(s, known);
        return;
    }
    struct claim like = { .kind = CLAIM_HEAD,
                          .job = j->id,
                          .node = best.at.node->id,
                          .start_ms = best.start_ms,
                          .cpu_milli = best.at.pick.cpu_milli,
                          .mem_mib = best.at.pick.mem_mib,
                          .seen = seen,
                          .told_ms = told,
                          .count = best.at.count };
    memcpy(like.gpus, best.at.gpus, sizeof like.gpus);
    if (known)
        claim_drop(s, known);
    struct claim *cl = claim_new(s, &like);
    hint(s, cl, j->id, cl->node, cl->start_ms);
}

/* --- passes */

void ahead_begin(struct sched *s)
{
    for (size_t i = 0; s->claims.heads && i < s->claims.count; i++) {
        struct claim *cl = s->claims.at[i];
        if (cl->kind == CLAIM_HEAD) {
            claim_lift(s, cl);
            cl->aside = true;
        }
    }
}

/* Who did not come to his turn has started, has nothing to start, or is not the first any more. */
void ahead_end(struct sched *s, bool whole)
{
    for (size_t i = s->claims.heads ? s->claims.count : 0; i-- > 0;)
        if (s->claims.at[i]->aside)
            head_drop(s, s->claims.at[i]);
    if (whole)
        s->touched_count = 0;
}

void ahead_parked(struct sched *s, struct job *j, bool whole)
{
    struct claim *known = head_of(s, j->id), *last = NULL;
    int rank = (int)priority_of(j->priority);
    int64_t heads = 0;
    bool behind = false;
    if (!known && !s->ending && !order_starved(s, j) && !s->claims.heads)
        return;
    for (size_t i = 0; i < s->claims.count; i++) {
        struct claim *cl = s->claims.at[i];
        const struct job *k = cl->kind == CLAIM_HEAD && cl != known && !cl->aside ? map_get(s->jobs, cl->job) : NULL;
        if (!k)
            continue;
        bool after = order_before(s, j, k);
        behind = behind || after;
        heads += head_rank(s, cl) == rank && head_of(s, cl->job) == cl; /* a gang has several */
        last = after && head_rank(s, cl) == rank ? cl : last;
    }
    if (behind && !whole)
        s->dirty = true; /* it would have gone before them: all is looked at again */
    for (const struct claim *cl = claims_of(s, j->id); cl; cl = cl->same)
        if (cl->kind == CLAIM_EVICT)
            return;
    if (!(known && !known->aside) && heads >= s->rules.backfill_depth) {
        if (!last || !s->rules.backfill_depth)
            return;
        for (int64_t job = last->job; (last = head_of(s, job));)
            head_drop(s, last);
    }
    if (j->class->gang) {
        bool was = known;
        int64_t start_ms = crew_head(s, j, claims_of(s, j->id));
        if ((known = head_of(s, j->id)))
            hint(s, known, j->id, known->node, start_ms);
        else if (was)
            hint(s, NULL, j->id, 0, INT64_MAX);
        return;
    }
    head_set(s, j, known);
    if ((known = head_of(s, j->id)))
        known->aside = false;
}

/* --- asking */

struct start_hint sched_when(struct sched *s, const struct sched_event *e, int64_t now_ms)
{
    struct when best = { .start_ms = INT64_MAX };
    struct start_hint out = { e->job, 0, INT64_MAX };
    const struct claim *known = claims_of(s, e->job);
    struct pick pick;
    if (known) {
        out = (struct start_hint){ e->job, known->node, known->start_ms };
        return out;
    }
    struct class *c = class_like(s, e);
    struct node *n = quota_allows(s, c) ? c->gang ? gang_first(s, c) : place_find(s, c, &pick) : NULL;
    index_ready(&s->index, c->wanted);
    for (size_t i = 0; !n && !c->gang && !c->held_by.reason && s->ending && i < s->fleet.count; i++)
        node_when(s, c, s->fleet.nodes[i], &best);
    if (n)
        out = (struct start_hint){ e->job, n->id, now_ms };
    else if (c->gang && !c->held_by.reason)
        out = crew_start(s, c, e->job);
    else if (best.at.node)
        out = (struct start_hint){ e->job, best.at.node->id, MAX(best.start_ms, now_ms) };
    class_leave(s, c);
    return out;
}
