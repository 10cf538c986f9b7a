/* http_server.c - the listening side: who may connect, how many, and how it all ends.
 *
 * A connection over the limit is told 503 and closed; beyond a few of those it is closed unheard,
 * so that refusing cannot be made expensive. The server's memory goes when the last connection has
 * gone. */
#include "net/http_internal.h"
#include <stdlib.h>

enum { EXTRAS = 64 }; /* connections at a time that are told that there are too many */

const struct http_limits http_limits_default = {
    .head_bytes = 16 * 1024,
    .body_bytes = 1024 * 1024,
    .bodies_bytes = 128 * 1024 * 1024,
    .replies_bytes = 256 * 1024 * 1024,
    .connections = 10000,
    .per_address = 2000,
    .head_ms = 10 * 1000,
    .body_ms = 30 * 1000,
    .idle_ms = 75 * 1000,
};

static void server_free(struct http_server *s)
{
    timer_cancel(s->grace);
    map_free(s->peers);
    groups_free(s);
    str_done(&s->out);
    void (*closed)(void *arg) = s->closing ? s->handler.on_closed : NULL;
    void *arg = s->arg;
    free(s);
    if (closed)
        closed(arg);
}

/* False: too many from this address. A unix socket has no address; its permissions are its limit.
 * */
static bool peer_enter(struct http_server *s, const char *name, struct http_peer **out)
{
    if (text_is(name, "unix"))
        return true;
    struct http_peer *p = map_get_text(s->peers, name);
    if (p && p->count >= s->limits.per_address)
        return false;
    if (!p) {
        if (!(p = calloc(1, sizeof *p)))
            abort();
        if (!text_copy(p->name, sizeof p->name, name)) {
            free(p);
            return false;
        }
        map_put_text(s->peers, p->name, p);
    }
    p->count++;
    *out = p;
    return true;
}

static void peer_leave(struct http_server *s, struct http_peer *p)
{
    if (!p || --p->count > 0)
        return;
    map_take_text(s->peers, p->name);
    free(p);
}

static void nothing_closed(void *arg, const struct err *why)
{
    (void)arg, (void)why;
}
static size_t nothing_read(void *arg, const char *at, size_t n)
{
    return (void)arg, (void)at, n;
}
static const struct stream_events unheard = { .on_data = nothing_read, .on_close = nothing_closed };

/* When all places are taken, the connection that was silent for longest goes: somebody who holds thousands of them open must not
 * keep an agent or an operator out. */
static bool has_place(struct http_server *s)
{
    if (s->count >= s->limits.connections && !link_empty(&s->idle)) {
        struct conn *c = CONTAINER(s->idle.next, struct conn, idle);
        link_cut(&c->idle);
        conn_cut(c);
        s->leaving++;
        c->leaving = true;
        peer_leave(s, TAKE(c->peer));   /* at once: who comes may be of the same address */
    }
    return s->count - s->leaving < s->limits.connections;
}

static void on_accept(void *arg, struct stream *stream)
{
    struct http_server *s = arg;
    struct http_peer *peer = NULL;
    struct err why;
    if (has_place(s) && peer_enter(s, stream_peer(stream), &peer)) {
        struct conn *c = http_conn_open(s, stream, false);
        c->peer = peer;
        s->count++;
        link_add(&s->idle, &c->idle);
        group_enter(c, group_of_peer(stream_peer(stream)));
    } else if (s->extras < EXTRAS) {
        s->extras++;
        err_set(&why, RC_UNAVAILABLE, "too many connections; try again in a moment");
        conn_refuse(http_conn_open(s, stream, true), &why);
    } else {
        stream_bind(stream, &unheard, NULL);
        stream_close(stream);
    }
}

void server_forget(struct http_server *s, struct conn *c)
{
    if (c->next)
        c->next->prev = c->prev;
    if (c->prev)
        c->prev->next = c->next;
    else
        s->conns = c->next;
    link_cut(&c->idle);
    group_leave(c);
    s->leaving -= c->leaving;
    if (c->extra)
        s->extras--;
    else
        s->count--;
    peer_leave(s, c->peer);
    if (s->closing && !s->conns)
        server_free(s);
}

bool http_listen(struct os *os, const char *address, struct tls *tls,
                 const struct http_limits *limits, const struct http_handler *handler, void *arg,
                 struct http_server **out, struct err *err)
{
    if (!tls && !address_is_loopback(address) && !os_is_simulated(os))
        return err_set(err, RC_BAD_INPUT, "%.100s: only loopback is served without TLS", address);
    struct http_server *s = calloc(1, sizeof *s);
    if (!s)
        abort();
    s->os = os;
    s->limits = limits ? *limits : http_limits_default;
    if (!s->limits.bodies_bytes)
        s->limits.bodies_bytes = http_limits_default.bodies_bytes;
    if (!s->limits.replies_bytes)
        s->limits.replies_bytes = http_limits_default.replies_bytes;
    s->handler = *handler;
    s->arg = arg;
    s->peers = map_new();
    s->groups = map_new();
    link_init(&s->idle);
    s->date_second = -1;
    if (!stream_listen(os, address, tls, on_accept, s, &s->listener, err)) {
        server_free(s);
        return false;
    }
    *out = s;
    return true;
}

const char *http_address(const struct http_server *s)
{
    return listener_address(s->listener);
}
int http_connections(const struct http_server *s)
{
    return s->count;
}

static void grace_over(void *arg)
{
    struct http_server *s = arg;
    s->grace = NULL;
    for (struct conn *c = s->conns; c; c = c->next)
        conn_cut(c);
}

void http_server_wind_down(struct http_server *s) { s->winding_down = true; }

void http_server_close(struct http_server *s, int64_t grace_ms)
{
    if (s->closing)
        return;
    s->closing = true;
    listener_close(TAKE(s->listener));
    if (!s->conns) {
        server_free(s);
        return;
    }
    for (struct conn *c = s->conns; c; c = c->next)
        conn_shut_down(c);
    if (grace_ms > 0)
        s->grace = timer_start(s->os, grace_ms, grace_over, s);
    else
        grace_over(s);
}

void http_server_drop(struct http_server *s)
{
    struct err why;
    err_set(&why, RC_UNAVAILABLE, "the server is closing");
    s->closing = true;
    if (s->listener)
        listener_close(TAKE(s->listener));
    if (!s->conns) {
        server_free(s);
        return;
    }
    for (struct conn *c = s->conns, *next; c; c = next) {
        next = c->next;
        conn_closed(c, &why);
    }
}
