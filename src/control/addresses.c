/* addresses.c - which attempt has which address of its project's range (model/ipv4.h).
 *
 * An address is part of the attempt's lease, so it is in the store with it and nowhere else: it is taken when an attempt is placed and
 * free when the attempt is over, whatever was restarted in between. The next one is taken behind the last, so that an address is not
 * somebody else's a moment after its task has ended. The project's number is written once, when its first task with a network is placed. */
#include "control/call.h"

static struct addresses *of(struct state *s, struct project *p)
{
    if (!p->addresses)
        p->addresses = ARENA_NEW(s->mem, struct addresses);
    return p->addresses;
}

void addresses_hold(struct state *s, struct attempt *a, bool held)
{
    struct project *p = a->task->job->project;
    if (!a->address || !net_has(p->net, a->address))
        return;
    uint32_t host = a->address & (NET_HOSTS - 1);
    uint64_t *word = &of(s, p)->used[host / 64], bit = UINT64_C(1) << host % 64;
    *word = held ? *word | bit : *word & ~bit;
    if (held)
        p->addresses->last = host;
    mesh_hold(s, a, held);
}

static void number_take(struct call *c, struct project *p)
{
    const struct project *other;
    int64_t most = 0;
    for (size_t i = 0; (other = map_next(c->s->projects, &i));)
        most = MAX(most, other->net);
    if (most + 1 >= NET_NUMBERS)
        return;
    p->net = most + 1;
    EMIT(c, PROJECT_NET, V_INT(p->id), V_INT(p->net));
}

/* 0: it gets none, and so no network: it is not asked for, the node cannot, or none is left. */
uint32_t addresses_next(struct call *c, const struct job *j, const struct node *n)
{
    struct project *p = j->project;
    if (j->spec.network != NETWORK_PROJECT || !n->info.network)
        return 0;
    if (!p->net)
        number_take(c, p);
    if (!p->net)
        return 0;
    struct addresses *a = of(c->s, p);
    for (int64_t i = 1; i < NET_HOSTS; i++) {
        int64_t host = (a->last + i) % NET_HOSTS;
        if (host >= NET_FIRST && host <= NET_LAST && !(a->used[host / 64] >> host % 64 & 1))
            return net_address(p->net, host);
    }
    return 0;
}
