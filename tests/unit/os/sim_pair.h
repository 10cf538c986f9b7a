/* sim_pair.h - two simulated machines and the streams between them, for the tests of the
 * simulation. */
#pragma once
#include "os/sim.h"
#include "tap.h"
#include <stdio.h>
#include <stdlib.h>

struct end {
    struct sim *w;
    struct stream *s;
    struct str got;
    size_t leave;
    bool echo;
    int opened, closed, drained, eofs;
    struct err why;
};
static inline size_t end_data(void *arg, const char *at, size_t n)
{
    struct end *e = arg;
    size_t took = e->leave ? n / e->leave * e->leave : n;
    str_put(&e->got, at, took);
    if (e->echo)
        stream_write(e->s, at, took);
    return took;
}
static inline void end_open(void *arg) { ((struct end *)arg)->opened++; }
static inline void end_drain(void *arg) { ((struct end *)arg)->drained++; }
static inline void end_close(void *arg, const struct err *why)
{
    struct end *e = arg;
    e->closed++;
    e->why = *why;
    e->s = NULL;
}
static const struct stream_events end_events = { end_open, end_data, end_drain, end_close, NULL };
static inline void end_accept(void *arg, struct stream *s)
{
    struct end *e = arg;
    e->s = s;
    stream_bind(s, &end_events, e);
}

struct two {
    struct sim *w;
    struct os *a, *b;           /* a dials, b listens */
    struct end client, server;
    struct listener *l;
};
static inline struct two *two_new(uint64_t seed)
{
    struct two *t = calloc(1, sizeof *t);
    struct err err = { 0 };
    t->w = sim_new(seed);
    t->a = sim_machine(t->w, "alpha");
    t->b = sim_machine(t->w, "beta");
    CHECK(stream_listen(t->b, "beta:6640", NULL, end_accept, &t->server, &t->l, &err));
    t->client.s = stream_dial(t->a, "beta:6640", NULL, NULL, &end_events, &t->client);
    return t;
}
static inline void two_free(struct two *t)
{
    sim_free(t->w);
    str_done(&t->client.got);
    str_done(&t->server.got);
    free(t);
}
static inline void two_run(struct two *t, int64_t ms)
{
    sim_until(t->w, sim_now_ms(t->w) + ms, NULL, NULL);
}
