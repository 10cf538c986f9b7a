/* reserve.c - room that a project shall have in a time to come: so many parts of a shape, each with a place of its own.
 *
 * A part is a claim like any other (claim.c): from the time it is known nobody new comes to its place who would not be over by then, but
 * for spot work, to which it is lent until the owner has a job for it. Which places these are is not part of the picture; a server that starts
 * looks for them anew, first where the owner's jobs of that time are. Any job of the project uses them. */
#include "sched/sched_internal.h"
#include <stdlib.h>

enum { PARTS_MOST = 65536, PIN_AGAIN_MS = 10000, MOVED_MOST = 32 };

bool reserve_open(const struct sched *s, const struct reserve *r)
{
    return r->from_ms <= s->last_now_ms && s->last_now_ms < r->until_ms;
}

/* --- places */

static bool inside(const struct reserve *r, const struct hold *h)
{
    return h->project == r->class->project && h->since_ms >= r->from_ms;
}

static bool has_inside(const struct sched *s, const struct reserve *r, const struct node *n)
{
    for (const struct hold *h = map_get(s->held_on, n->id); h; h = h->next)
        if (inside(r, h))
            return true;
    return false;
}

/* As the node will be when the time has come: without what has ended and what is the owner's own; with_spot: nor what yields. */
static bool has_room(struct sched *s, const struct reserve *r, struct node *n, bool with_spot, struct spot *out)
{
    struct hold *gone[HOLDS_MOST];
    int count = 0;
    *out = (struct spot){ .node = n };
    for (struct hold *h = map_get(s->held_on, n->id); h && count < HOLDS_MOST; h = h->next)
        if (h->ends_ms <= r->from_ms || inside(r, h) || (with_spot && h->rank == CLASS_SPOT))
            gone[count++] = h;
    int32_t cpu = n->cpu_claimed, mem = n->mem_claimed;
    claims_whole(s, n);
    for (int i = 0; i < count; i++)
        hold_as(n, gone[i], -1);
    bool fits = index_as(&s->index, r->class->wanted, n, &out->pick, out->gpus, &out->count);
    for (int i = 0; i < count; i++)
        hold_as(n, gone[i], 1);
    n->cpu_claimed = cpu;
    n->mem_claimed = mem;
    return fits;
}

static void pin(struct sched *s, struct reserve *r)
{
    struct spot at;
    int64_t k = 0;
    index_ready(&s->index, r->class->wanted);
    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < s->fleet.count; i++) {
            struct node *n = s->fleet.nodes[i];
            while (k < r->count && r->parts[k])
                k++;
            if (k == r->count)
                return;
            if ((round == 0 && !has_inside(s, r, n)) || !has_room(s, r, n, round == 2, &at))
                continue;
            struct claim like = { .kind = CLAIM_RESERVE,
                                  .reserve = r,
                                  .node = n->id,
                                  .start_ms = r->from_ms,
                                  .cpu_milli = at.pick.cpu_milli,
                                  .mem_mib = at.pick.mem_mib,
                                  .count = at.count };
            memcpy(like.gpus, at.gpus, sizeof like.gpus);
            r->parts[k] = claim_new(s, &like);
            i--; /* perhaps another one fits there */
        }
}

static void unpin(struct sched *s, struct reserve *r)
{
    for (int64_t k = 0; k < r->count; k++)
        if (r->parts[k])
            claim_drop(s, TAKE(r->parts[k]));
}

void reserve_lost(struct sched *s, struct claim *cl)
{
    struct reserve *r = cl->reserve;
    for (int64_t k = 0; k < r->count; k++)
        if (r->parts[k] == cl)
            r->parts[k] = NULL;
    r->tried_ms = 0;
    claim_drop(s, cl);
}

/* --- making room for one that comes back */

struct was { struct claim like; int64_t part; };

static int64_t part_at(const struct claim *cl)
{
    int64_t k = 0;
    while (cl->reserve->parts[k] != cl)
        k++;
    return k;
}

static struct claim *of_others(const struct sched *s, int64_t node, const struct job *j)
{
    struct claim *cl = map_get(s->claims.on, node);
    while (cl && (!cl->reserve || claim_own(s, cl, j) || claim_lent(s, cl, j)))
        cl = cl->next;
    return cl;
}

bool reserves_move(struct sched *s, int64_t node, const struct job *j)
{
    struct was was[MOVED_MOST];
    struct claim *cl;
    int count = 0;
    bool all = true, dirty = s->dirty;
    for (; count < MOVED_MOST && (cl = of_others(s, node, j)); count++) {
        was[count] = (struct was){ *cl, part_at(cl) };
        cl->reserve->parts[was[count].part] = NULL;
        claim_drop(s, cl);
    }
    for (int i = 0; i < count; i++)
        pin(s, was[i].like.reserve);
    for (int i = 0; i < count; i++)
        all = all && was[i].like.reserve->parts[was[i].part];
    if (all && count < MOVED_MOST)
        return true;
    for (int i = 0; i < count; i++) {
        struct claim **at = &was[i].like.reserve->parts[was[i].part];
        if (*at)
            claim_drop(s, TAKE(*at));
    }
    while (count-- > 0) {
        const struct was *w = &was[count];
        claim_lift(s, w->like.reserve->parts[w->part] = claim_new(s, &w->like));
    }
    s->dirty = dirty;
    return false;
}

void reserves_pin(struct sched *s)
{
    struct reserve *r;
    for (size_t i = 0; (r = map_next(s->reserves, &i));) {
        bool again = r->tried_fleet != s->fleet.changes + 1 || s->last_now_ms >= r->tried_ms + PIN_AGAIN_MS
                     || s->last_now_ms < r->tried_ms;
        if (!again || r->until_ms <= s->last_now_ms)
            continue;
        r->tried_ms = s->last_now_ms;
        r->tried_fleet = s->fleet.changes + 1;
        pin(s, r);
    }
}

/* --- what is told */

static struct reserve *reserve_new(struct sched *s, const struct sched_event *e)
{
    struct reserve *r = must(calloc(1, sizeof *r));
    struct sched_event like = *e;
    like.priority = like.owner = like.bound_ms = like.only_node = 0;
    *r = (struct reserve){ .id = e->reserve,
                           .from_ms = e->from_ms,
                           .until_ms = e->until_ms,
                           .count = MAX(MIN(e->count, (int64_t)PARTS_MOST), 0),
                           .class = class_like(s, &like) };
    r->parts = must(calloc((size_t)r->count + 1, sizeof *r->parts));
    return r;
}

void reserve_free(struct sched *s, struct reserve *r)
{
    unpin(s, r);
    class_leave(s, r->class);
    free(r->parts);
    free(r);
}

static void next_time(struct sched *s)
{
    struct reserve *r;
    s->reserve_ms = INT64_MAX;
    for (size_t i = 0; (r = map_next(s->reserves, &i));)
        if (r->until_ms > s->last_now_ms)
            s->reserve_ms = MIN(s->reserve_ms, r->from_ms > s->last_now_ms ? r->from_ms : r->until_ms);
}

void reserve_gone(struct sched *s, const struct sched_event *e)
{
    struct reserve *r = map_take(s->reserves, e->reserve);
    if (!r)
        return;
    reserve_free(s, r);
    next_time(s);
    s->dirty = true;
}

void reserve_told(struct sched *s, const struct sched_event *e)
{
    reserve_gone(s, e);
    map_put(s->reserves, e->reserve, reserve_new(s, e));
    next_time(s);
    s->dirty = true;
}

void reserves_time(struct sched *s, int64_t now_ms)
{
    struct reserve *r;
    if (now_ms < s->reserve_ms)
        return;
    for (size_t i = 0; (r = map_next(s->reserves, &i));)
        if (r->until_ms <= now_ms)
            unpin(s, r);
    next_time(s);
    s->dirty = true;
}

int64_t sched_can_reserve(struct sched *s, const struct sched_event *e, int64_t now_ms)
{
    int64_t count = 0;
    bool dirty = s->dirty; /* nobody was kept from anything meanwhile */
    struct reserve *r = reserve_new(s, e);
    if (e->until_ms > now_ms)
        pin(s, r);
    for (int64_t k = 0; k < r->count; k++)
        count += r->parts[k] != NULL;
    reserve_free(s, r);
    s->dirty = dirty;
    return count;
}
