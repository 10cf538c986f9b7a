/* pair.h - an echo server and a client on one loop, for the tests of streams. */
#pragma once
#include "os/os.h"
#include "tap.h"
#include <stdlib.h>

enum { MIB = 1024 * 1024 };

struct peer {                   /* either end */
    struct os *os;
    struct stream *s;
    struct str got;
    size_t leave;               /* takes only whole pieces of this many bytes, if given */
    int opened, closed, drained, eofs;
    struct err why;
    bool echo, stop_at_close;
    size_t stop_at;             /* bytes after which the loop is stopped */
};

static inline size_t peer_data(void *arg, const char *at, size_t n)
{
    struct peer *p = arg;
    size_t took = p->leave ? n / p->leave * p->leave : n;
    str_put(&p->got, at, took);
    if (p->echo)
        stream_write(p->s, at, took);
    if (p->stop_at && p->got.len >= p->stop_at)
        os_stop(p->os);
    return took;
}
static inline void peer_open(void *arg) { ((struct peer *)arg)->opened++; }
static inline void peer_drain(void *arg) { ((struct peer *)arg)->drained++; }
static inline void peer_close(void *arg, const struct err *why)
{
    struct peer *p = arg;
    p->closed++;
    p->why = *why;
    p->s = NULL;
    if (p->stop_at_close)
        os_stop(p->os);
}
static const struct stream_events peer_events
    = { peer_open, peer_data, peer_drain, peer_close, NULL };

static inline void peer_accept(void *arg, struct stream *s)
{
    struct peer *p = arg;
    p->s = s;
    stream_bind(s, &peer_events, p);
}

static inline void out_of_time(void *arg)
{
    CHECK(!"took too long");
    os_stop(arg);
}

/* Runs the loop until something stops it; a test that hangs fails. */
static inline void run_for(struct os *os)
{
    struct timer *t = timer_start(os, 60000, out_of_time, os);
    os_run(os);
    timer_cancel(t);
}
struct nap { struct os *os; bool over; };
static inline void nap_over(void *arg)
{
    struct nap *n = arg;
    n->over = true;
    os_stop(n->os);
}
/* In steps: a process that stands still for a while has missed one of them, not all. */
static inline void run_ms(struct os *os, int64_t ms)
{
    while (ms-- > 0) {
        struct nap n = { .os = os };
        timer_start(os, 1, nap_over, &n);
        while (!n.over)         /* a peer may stop it early */
            os_run(os);
    }
}

static inline char *pattern(size_t n)
{
    char *at = malloc(n);
    uint32_t x = 12345;
    for (size_t i = 0; i < n; i++)
        at[i] = (char)((x = x * 1664525 + 1013904223) >> 24);
    return at;
}

struct world { struct os *os; struct listener *l; struct peer server, client; };
static inline struct world connected(void)
{
    struct err err = { 0 };
    return (struct world){ .os = os_real_new(&err) };
}
static inline void connect_them(struct world *w)
{
    struct err err = { 0 };
    w->server.os = w->client.os = w->os;
    CHECK(stream_listen(w->os, "127.0.0.1:0", NULL, peer_accept, &w->server, &w->l, &err));
    w->client.s = stream_dial(w->os, listener_address(w->l), NULL, NULL, &peer_events, &w->client);
    stream_write(w->client.s, "!", 1);
    w->server.stop_at = 1;
    run_for(w->os);
    CHECK(w->client.opened && w->server.s && text_is(stream_peer(w->server.s), "127.0.0.1"));
    w->server.stop_at = 0;
    str_clear(&w->server.got);
}
static inline void world_done(struct world *w)
{
    str_done(&w->server.got);
    str_done(&w->client.got);
    os_free(w->os);
}

static inline void echo_through(const char *address)
{
    struct err err = { 0 };
    struct os *os = os_real_new(&err);
    struct peer server = { .os = os, .echo = true }, client = { .os = os, .stop_at = MIB };
    struct listener *l = NULL;
    CHECK(stream_listen(os, address, NULL, peer_accept, &server, &l, &err));
    client.s = stream_dial(os, listener_address(l), NULL, NULL, &peer_events, &client);
    CHECK(!client.opened);
    char *sent = pattern(MIB);
    for (size_t at = 0; at < MIB; at += 4096)
        stream_write(client.s, sent + at, 4096);
    CHECK(stream_waiting(client.s) == MIB);
    run_for(os);
    CHECK(client.opened == 1 && client.drained >= 1);
    CHECK(client.got.len == MIB && memcmp(client.got.at, sent, MIB) == 0);
    stream_end(client.s);
    server.stop_at_close = true;
    run_for(os);
    CHECK(client.closed == 1 && client.why.rc == RC_OK);
    CHECK(server.closed == 1 && server.why.rc == RC_OK);
    listener_close(l);
    str_done(&server.got);
    str_done(&client.got);
    free(sent);
    os_free(os);
}
