/* node_drain.c - a node is emptied: nothing new is placed there, what runs may finish until a deadline, and what still runs then is
 * told to end, with notice and its grace period, and waits for another node. It is over when the node holds nothing.
 *
 * A draining node is a cordoned one; how far it is stands beside its state. The deadline is kept by the wall clock and watched by
 * the boot clock, so that a jump of the former stops nothing early. */
#include "control/call.h"

enum { DEADLINE_S = 3600 };

static void drain_write(struct call *c, struct node *n)
{
    EMIT(c, NODE_DRAIN, V_INT(n->id), V_INT(n->drain), V_INT(n->drain_until_ms));
}

void node_drain_end(struct call *c, struct node *n)
{
    if (n->drain == DRAIN_NONE)
        return;
    n->drain = DRAIN_NONE;
    n->drain_until_ms = n->drain_boot_ms = 0;
    drain_write(c, n);
}

void node_emptied(struct call *c, struct node *n)
{
    if (n->drain != DRAIN_ON || map_count(n->attempts))
        return;
    n->drain = DRAIN_DONE;
    n->drain_until_ms = n->drain_boot_ms = 0;
    drain_write(c, n);
    node_write(c, n, n->state, "node.drained");
}

void node_drain_tick(struct call *c, struct node *n)
{
    struct attempt *a;
    if (n->drain != DRAIN_ON || !n->drain_boot_ms || c->boot_ms < n->drain_boot_ms)
        return;
    for (size_t i = 0; (a = map_next(n->attempts, &i));)
        if (!a->stop)
            attempt_yield(c, a, OUTCOME_NODE_FAULT, "its node was drained", "drain");
}

bool node_drain(struct call *c, const void *body, struct err *err)
{
    const struct node_drain_ask *ask = body;
    struct node *n = state_node(c->s, ask->node);
    bool given = was_given(c, "deadline");
    if (!n)
        return err_set(err, RC_NOT_FOUND, "there is no node '%s'", ask->node);
    if (ask->wait && (given || ask->requeue))
        return err_field(err, "wait", "to wait is to stop nothing: it goes with neither a deadline nor requeue");
    if (c->r->if_match && c->r->if_match != n->version)
        return err_set(err, RC_STALE, "node %s has changed meanwhile (version %lld); look again", n->name,
                       (long long)n->version);
    int64_t wait_ms = (given ? ask->deadline_s : ask->requeue ? 0 : DEADLINE_S) * 1000;
    n->cordoned = true;
    n->drain = DRAIN_ON;
    n->drain_until_ms = ask->wait ? 0 : c->now_ms + wait_ms;
    n->drain_boot_ms = ask->wait ? 0 : c->boot_ms + wait_ms;
    drain_write(c, n);
    node_write(c, n, n->state == NODE_DOWN ? NODE_DOWN : NODE_CORDONED, "node.draining");
    node_emptied(c, n);
    node_drain_tick(c, n);
    node_reply(c, n);
    return true;
}
