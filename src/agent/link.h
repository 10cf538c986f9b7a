/* link.h - the agent's one connection: a WebSocket that it dials, keeps and dials again.
 *
 * After hello the server answers with the full desired set and what it kept of our reports; only then do reports go up, each item
 * once on a connection, and again from `kept` + 1 on the next one. A beat goes up when nothing else did. A server that
 * is silent, or that does not confirm reports, is dropped and the next one dialled after a jittered pause of up to 5 s. One that
 * goes away, or sends us to the one that writes, is left at once.
 *
 * `fresh` tells whether the message answers something that we sent less than a beat ago: only then may it renew what must
 * end without contact, since the server counts from what it received, not from what we did. */
#pragma once
#include "model/hello.h"
#include "model/order.h"
#include "agent/heads.h"

struct link;
struct link_events {
    void (*hello)(void *arg, struct arena *mem, struct hello *out);     /* kind and beat are filled here */
    struct objects (*items)(void *arg, int64_t after, size_t limit);    /* durable ones */
    struct texts (*swept)(void *arg);                                   /* volumes that are gone; told with every report */
    struct objects (*live)(void *arg);                                  /* figures of GPUs that were not told yet; may be NULL */
    struct objects (*uses)(void *arg);                                  /* of struct task_use, those that were not told yet; may be NULL */
    struct objects (*holds)(void *arg);                                 /* what was suspended; told with every report; may be NULL */
    void (*on_desired)(void *arg, const struct desired *d, bool fresh); /* in the memory of this call */
    void (*on_open)(void *arg, const struct open_stream *o);
    void (*on_down)(void *arg, const struct err *why);                  /* a connection or a try to make one ended; may be NULL */
};
/* heads: where to dial, in turn; borrowed. */
struct link *link_new(struct os *os, struct heads *heads, int64_t beat_ms, const struct link_events *events, void *arg);
void link_free(struct link *l);             /* NULL is fine; no callback follows */
void link_leave(struct link *l, void (*gone)(void *arg), void *arg);    /* the same; gone: the goodbye was heard, or nobody hears it: 2 s at most, at once where there is no connection */
void link_kick(struct link *l);             /* there are items to send */
void link_tell(struct link *l);             /* there are figures: they go up with a report of their own, unless the connection is slow */
void link_greet(struct link *l);            /* what hello() tells has changed: say it again, if the link is up */
bool link_up(const struct link *l);         /* the server has answered on this connection */
void link_again(struct link *l);            /* dial anew, the same server, with the key that heads_token has set */
