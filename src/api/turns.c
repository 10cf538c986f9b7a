/* turns.c - windows, not weights: a tenant may have so many requests at the door at once, and what came first of its own goes
 * first. The door serves in order of arrival, so equal windows are equal shares, and a free place is never kept from the only one
 * who wants it. Nothing here sorts or searches: taking a turn costs the same with one tenant and with thousands. */
#include "api/turns.h"
#include "base/map.h"
#include <stdlib.h>

enum { SHARED_MS = 1000, COST_BYTES = 16 * 1024, COST_MOST = 32, STRANGER_CLASSES = 64 };

static const struct { int alone, shared; } windows[GATES] = {
    [GATE_WRITER] = { 128, 32 },    /* a batch of 32 costs little more than one of 8: the commit is most of it */
    [GATE_READERS] = { 32, 2 },     /* one each, and there are two readers: nobody waits for another's */
    [GATE_SLOW] = { 4, 2 },
};
static const int waiting_most[GATES][RANKS] = {
    [GATE_WRITER] = { 1024, 2048, 4096 },
    [GATE_READERS] = { 1024, 2048, 4096 },
    [GATE_SLOW] = { 16, 16, 32 },
};

struct turn_queue {
    struct turns *turns;
    int64_t key;
    enum gate gate;
    enum rank rank;
    struct turn *first, *last;
    int waiting, inside, cost;      /* cost: of those inside */
};
struct gate_state {
    struct map *queues;             /* those with somebody waiting or inside */
    int64_t last_key, shared_until_ms;
    bool used;
};
struct turns {
    struct os *os;
    struct gate_state gates[GATES];
};

struct turns *turns_new(struct os *os)
{
    struct turns *t = calloc(1, sizeof *t);
    if (!t)
        abort();
    t->os = os;
    for (int i = 0; i < GATES; i++)
        t->gates[i].queues = map_new();
    return t;
}

void turns_free(struct turns *t)
{
    for (int i = 0; t && i < GATES; i++) {
        assert(map_count(t->gates[i].queues) == 0);
        map_free(t->gates[i].queues);
    }
    free(t);
}

static struct turn_queue *queue_of(struct turns *t, enum gate gate, const struct standing *who)
{
    uint64_t id = who->rank == RANK_STRANGER ? who->id % STRANGER_CLASSES : who->id;
    int64_t key = (int64_t)(id * RANKS + who->rank);
    struct turn_queue *q = map_get(t->gates[gate].queues, key);
    if (q)
        return q;
    if (!(q = calloc(1, sizeof *q)))
        abort();
    *q = (struct turn_queue){ .turns = t, .key = key, .gate = gate, .rank = who->rank };
    map_put(t->gates[gate].queues, key, q);
    return q;
}

/* Somebody who asks now and then is short of nothing while nobody else is there; but the next time he comes the place must not be
 * full of another's. So a gate that two have used stays shared for a while. */
static void note_use(struct turns *t, const struct turn_queue *q)
{
    struct gate_state *g = &t->gates[q->gate];
    if (g->last_key != q->key && g->used)
        g->shared_until_ms = os_boot_ms(t->os) + SHARED_MS;
    g->last_key = q->key;
    g->used = true;
}

static int window_of(const struct turn_queue *q)
{
    const struct gate_state *g = &q->turns->gates[q->gate];
    int busy = (int)map_count(g->queues);
    bool shared = busy > 1 || os_boot_ms(q->turns->os) < g->shared_until_ms;
    return shared ? MAX(windows[q->gate].shared / MAX(busy, 2), 1) : windows[q->gate].alone;
}

static void append(struct turn_queue *q, struct turn *me)
{
    me->prev = q->last;
    *(q->last ? &q->last->next : &q->first) = me;
    q->last = me;
    q->waiting++;
}

static void take_out(struct turn_queue *q, struct turn *me)
{
    *(me->prev ? &me->prev->next : &q->first) = me->next;
    *(me->next ? &me->next->prev : &q->last) = me->prev;
    me->next = me->prev = NULL;
    q->waiting--;
}

/* A large request fills a window by itself, but always finds a place when nothing else of its tenant is inside. */
static void let_in(struct turn_queue *q)
{
    while (q->first && (q->inside == 0 || q->cost < window_of(q))) {
        struct turn *me = q->first;
        take_out(q, me);
        me->inside = true;
        q->inside++;
        q->cost += me->cost;
        me->go(me);
    }
}

bool turn_take(struct turns *t, enum gate gate, const struct standing *who, size_t bytes, bool must, struct turn *me, struct err *err)
{
    struct turn_queue *q = queue_of(t, gate, who);
    if (!must && q->waiting >= waiting_most[gate][q->rank])
        return err_set(err, RC_TOO_MANY, "%d requests %s wait already; try again in a moment", q->waiting,
                       q->rank == RANK_STRANGER ? "from your part of the network" : "of yours");
    note_use(t, q);
    me->queue = q;
    me->inside = false;
    me->cost = 1 + (int)MIN(bytes / COST_BYTES, (size_t)COST_MOST - 1);
    append(q, me);
    let_in(q);
    return true;
}

void turn_done(struct turn *me)
{
    struct turn_queue *q = TAKE(me->queue);
    if (!q)
        return;
    if (me->inside) {
        me->inside = false;
        q->inside--;
        q->cost -= me->cost;
    } else {
        take_out(q, me);
    }
    let_in(q);
    if (q->inside || q->waiting)
        return;
    map_take(q->turns->gates[q->gate].queues, q->key);
    free(q);
}
