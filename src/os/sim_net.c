/* sim_net.c - streams between simulated machines. Bytes written in one step fly in pieces, each
 * after a delay of its own but never overtaking the one before; a cut network holds them until
 * it heals. TLS is not simulated.
 *
 *
 * A segment belongs to the stream it flies to, so what was sent before a crash may still
 * arrive, and then the reset. */
#include "base/fault.h"
#include "os/sim_internal.h"
#include <stdio.h>
#include <stdlib.h>

enum { WINDOW = STREAM_KEPT_MOST, PIECE = 64 * 1024, DIAL_PATIENCE_MS = 3000 };
enum segment_kind { SEG_OPEN, SEG_DATA, SEG_FIN, SEG_RESET };

struct segment { struct link link; enum segment_kind kind; int64_t due; size_t n; char bytes[]; };

struct slistener {
    struct listener base;
    struct link link;
    char key[160];              /* "unix:/path" or ":port" */
    bool loopback;
    void (*on_accept)(void *arg, struct stream *s);
    void *arg;
};

struct sstream {
    struct stream base;
    struct link link;
    struct machine *m;
    struct host *other;
    struct sstream *peer;       /* NULL: not yet, or no more */
    struct link wire;           /* segments flying to us, in order */
    size_t flying;
    int64_t last_due;
    struct str in, out;
    bool open, paused, eof, fin, shut, shut_sent, ending, closing, was_full, held;
    struct event *arrival, *flushing, *showing, *accepting;
    struct address to;          /* of a dialled one */
    struct slistener *listener; /* of one that waits to be accepted */
    struct err why;
};

void sim_network(struct sim *w, int64_t delay_min_ms, int64_t delay_max_ms)
{
    w->delay_min = delay_min_ms;
    w->delay_max = delay_max_ms;
}

void sim_loss(struct sim *w, unsigned lost_milli, unsigned reset_milli)
{
    w->lost_milli = lost_milli;
    w->reset_milli = reset_milli;
}

void sim_listen_in(struct sim *w,
                   void (*fn)(void *arg, const char *from, const char *to, const char *at, size_t n),
                   void *arg)
{
    w->on_bytes = fn;
    w->on_bytes_arg = arg;
}

void sim_reset_nth(struct sim *w, int nth) { w->reset_in = nth; }
bool sim_reset_waits(const struct sim *w) { return w->reset_in > 0; }

static bool is_reset(struct sim *w)
{
    if (w->reset_in && --w->reset_in == 0)
        return true;
    return w->reset_milli && sim_chance(w, 1000) < w->reset_milli;
}

bool sim_is_cut(const struct sim *w, const struct host *from, const struct host *to)
{
    for (size_t i = 0; i < w->cut_count; i++)
        if (w->cuts[i].from == from && w->cuts[i].to == to)
            return true;
    return false;
}

void sim_partition_way(struct sim *w, const char *from, const char *to, bool cut)
{
    struct host *a = sim_host(w, from), *b = sim_host(w, to);
    if (cut == sim_is_cut(w, a, b))
        return;
    if (cut) {
        assert(w->cut_count < COUNT(w->cuts));
        w->cuts[w->cut_count++] = (struct cut){ a, b };
        return;
    }
    for (size_t i = w->cut_count; i--;)
        if (w->cuts[i].from == a && w->cuts[i].to == b)
            w->cuts[i] = w->cuts[--w->cut_count];
    net_heal(w);
}

void sim_partition(struct sim *w, const char *a, const char *b, bool cut)
{
    sim_partition_way(w, a, b, cut);
    sim_partition_way(w, b, a, cut);
}

static int64_t delay(struct sstream *s)
{
    struct sim *w = s->m->w;
    return s->other == s->m->host ? 0 : sim_between(w, w->delay_min, w->delay_max);
}

/* --- arriving */
static void arrive(void *arg);
static void flush(void *arg);

static void expect(struct sstream *s)   /* the first segment on the wire */
{
    if (s->arrival || link_empty(&s->wire) || s->m->dead)
        return;
    struct segment *g = CONTAINER(s->wire.next, struct segment, link);
    s->arrival = sim_later(s->m->w, s->m, MAX(g->due - s->m->w->now, 0), arrive, s);
}

static int64_t sent_again(struct sstream *to)   /* a lost piece holds up those behind it */
{
    enum { AGAIN_LEAST_MS = 200, AGAIN_MOST_MS = 3000 };
    struct sim *w = to->m->w;
    bool lost = to->other != to->m->host && w->lost_milli && sim_chance(w, 1000) < w->lost_milli;
    return lost ? sim_between(w, AGAIN_LEAST_MS, AGAIN_MOST_MS) : 0;
}

static void send_to(struct sstream *to, enum segment_kind kind, const void *at, size_t n)
{
    if (!to || to->m->dead)
        return;
    struct sim *w = to->m->w;
    if (kind == SEG_DATA && to->other != to->m->host && is_reset(w)) {
        send_to(to->peer, SEG_RESET, NULL, 0);
        kind = SEG_RESET;
        n = 0;
    }
    struct segment *g = os_alloc(sizeof *g + n);
    g->kind = kind;
    g->n = n;
    if (n)
        memcpy(g->bytes, at, n);
    g->due = to->last_due = MAX(to->last_due, w->now + delay(to) + sent_again(to));
    to->flying += n;
    link_add(&to->wire, &g->link);
    expect(to);
}

static void flush_soon(struct sstream *s)
{
    if (s && !s->flushing && !s->closing && s->open && !s->m->dead)
        s->flushing = sim_later(s->m->w, s->m, 0, flush, s);
}

static void part(struct sstream *s)
{
    if (s->peer)
        s->peer->peer = NULL;
    s->peer = NULL;
}

static void sstream_clear(struct sstream *s)
{
    part(s);
    LINK_EACH (&s->wire, l)
        free(CONTAINER(l, struct segment, link));
    link_init(&s->wire);
    str_done(&s->in);
    str_done(&s->out);
    link_cut(&s->link);
}

static void close_now(void *arg)
{
    struct sstream *s = arg;
    struct machine *m = s->m;
    if (s->base.events.on_close)
        s->base.events.on_close(s->base.arg, &s->why);
    if (m->dead)
        return;
    event_cancel(m->w, s->arrival);
    event_cancel(m->w, s->flushing);
    event_cancel(m->w, s->showing);
    event_cancel(m->w, s->accepting);
    sstream_clear(s);
    sim_give(s);
}

static void finish(struct sstream *s, enum segment_kind farewell)
{
    if (s->closing || s->m->dead)
        return;
    s->closing = true;
    if (!s->shut_sent || farewell == SEG_RESET)
        send_to(s->peer, farewell, NULL, 0);
    part(s);
    sim_later(s->m->w, s->m, 0, close_now, s);
}

static void fail(struct sstream *s, const char *why)
{
    if (s->closing)
        return;
    err_set(&s->why, RC_UNAVAILABLE, "%s", why);
    part(s);
    finish(s, SEG_RESET);
}

/* Shows what has arrived, then the end if that has arrived too. */
static void show(struct sstream *s)
{
    if (s->paused || s->closing || s->m->dead)
        return;
    if (s->in.len) {
        size_t n = s->in.len;
        sim_note(s->m->w, n);
        size_t took = s->base.events.on_data
            ? s->base.events.on_data(s->base.arg, s->in.at, n) : n;
        if (s->m->dead)
            return;
        assert(took <= n);
        str_drop(&s->in, took);
        if (took)
            flush_soon(s->peer);
    }
    if (!s->fin || s->eof || s->paused || s->closing)
        return;
    s->eof = true;
    if (s->base.events.on_eof)
        s->base.events.on_eof(s->base.arg);
    else
        s->ending = true;
    flush_soon(s);
}

static void show_later(void *arg)
{
    struct sstream *s = arg;
    s->showing = NULL;
    show(s);
}

static void take_segment(struct sstream *s, struct segment *g)
{
    if (g->kind == SEG_OPEN) {
        s->open = true;
        if (s->base.events.on_open)
            s->base.events.on_open(s->base.arg);
        flush_soon(s);
        return;
    }
    if (g->kind == SEG_RESET) {
        fail(s, "the connection was reset");
        return;
    }
    if (g->kind == SEG_FIN)
        s->fin = true;
    struct sim *w = s->m->w;
    if (w->on_bytes && g->n && s->other != s->m->host)
        w->on_bytes(w->on_bytes_arg, s->other->name, s->m->host->name, g->bytes, g->n);
    str_put(&s->in, g->bytes, g->n);
    s->flying -= g->n;
    show(s);
}

static void arrive(void *arg)
{
    struct sstream *s = arg;
    struct machine *m = s->m;
    s->arrival = NULL;
    if (s->accepting) {         /* it stood still; the connection comes before its bytes */
        expect(s);
        return;
    }
    if (sim_is_cut(m->w, s->other, m->host)) {
        s->held = true;
        return;
    }
    struct segment *g = CONTAINER(s->wire.next, struct segment, link);
    link_cut(&g->link);
    if (!s->closing)
        take_segment(s, g);
    free(g);
    if (!m->dead && !s->closing)
        expect(s);
}

void net_heal(struct sim *w)
{
    LINK_EACH (&w->machines, i) {
        struct machine *m = CONTAINER(i, struct machine, link);
        LINK_EACH (&m->streams, l) {
            struct sstream *s = CONTAINER(l, struct sstream, link);
            if (!s->held || m->dead || sim_is_cut(w, s->other, m->host))
                continue;
            s->held = false;
            expect(s);
        }
    }
}

/* --- writing */
static void fly(struct sstream *s)
{
    struct sim *w = s->m->w;
    size_t used = s->peer->flying + s->peer->in.len;
    size_t n = MIN(s->out.len, WINDOW - MIN(used, (size_t)WINDOW)), at = 0;
    while (at < n) {
        size_t piece = MIN(n - at, (size_t)PIECE);
        if (sim_chance(w, 4) == 0)      /* a reader must not count on where a piece ends */
            piece = 1 + sim_chance(w, piece);
        send_to(s->peer, SEG_DATA, s->out.at + at, piece);
        at += piece;
    }
    str_drop(&s->out, n);
}

static void flush(void *arg)
{
    struct sstream *s = arg;
    s->flushing = NULL;
    if (s->closing)
        return;
    if (s->peer && !s->peer->m->dead) {
        fly(s);
    } else if (s->out.len && s->fin && !s->ending) {
        fail(s, "the peer has left");
        return;
    } else {
        str_clear(&s->out);     /* into the void: the peer's last words are still on their way */
    }
    if (s->was_full && s->out.len < STREAM_FULL) {
        s->was_full = false;
        if (s->base.events.on_drain)
            s->base.events.on_drain(s->base.arg);
    }
    if (s->m->dead || s->closing || s->out.len)
        return;
    if ((s->shut || s->ending) && !s->shut_sent) {
        s->shut_sent = true;
        send_to(s->peer, SEG_FIN, NULL, 0);
    }
    if (s->ending || (s->shut_sent && s->eof))
        finish(s, SEG_FIN);
}

void sim_write(struct stream *stream, const void *at, size_t n)
{
    struct sstream *s = (struct sstream *)stream;
    if (s->closing || s->ending || s->shut || s->m->dead || !n)
        return;
    str_put(&s->out, at, n);
    s->was_full |= s->out.len >= STREAM_FULL;
    flush_soon(s);
}

size_t sim_waiting(const struct stream *s) { return ((const struct sstream *)s)->out.len; }

size_t sim_waiting_all(const struct os *os)
{
    const struct machine *m = (const struct machine *)os;
    size_t n = 0;
    LINK_EACH(&m->streams, l)
        n += CONTAINER(l, struct sstream, link)->out.len;
    return n;
}

void sim_pause(struct stream *stream, bool paused)
{
    struct sstream *s = (struct sstream *)stream;
    s->paused = paused;
    if (!paused && !s->closing && !s->showing && !s->m->dead && (s->in.len || s->fin))
        s->showing = sim_later(s->m->w, s->m, 0, show_later, s);
}

void sim_end(struct stream *stream)
{
    struct sstream *s = (struct sstream *)stream;
    s->ending = true;
    flush_soon(s);
}

void sim_shut(struct stream *stream)
{
    struct sstream *s = (struct sstream *)stream;
    s->shut = true;
    flush_soon(s);
}

void sim_close(struct stream *stream)
{
    struct sstream *s = (struct sstream *)stream;
    finish(s, s->in.len || s->flying ? SEG_RESET : SEG_FIN);
}

/* --- listening and dialling */
static struct sstream *sstream_new(struct machine *m, struct host *other)
{
    struct sstream *s = sim_take(m, sizeof *s);
    s->base.os = &m->os;
    s->m = m;
    s->other = other;
    link_init(&s->wire);
    link_add(&m->streams, &s->link);
    return s;
}

static bool is_loopback(const char *host)
{
    return text_starts(host, "127.") || text_is(host, "localhost") || text_is(host, "::1");
}

static void address_key(const struct address *a, char out[static 160])
{
    snprintf(out, 160, a->is_unix ? "unix:%.140s" : ":%.140s", a->is_unix ? a->host : a->port);
}

static struct slistener *find_listener(struct sim *w, const struct host *h, const char *key,
                                       bool local)
{
    LINK_EACH (&w->machines, i) {
        struct machine *m = CONTAINER(i, struct machine, link);
        if (m->host != h || m->dead)
            continue;
        LINK_EACH (&m->listeners, l) {
            struct slistener *found = CONTAINER(l, struct slistener, link);
            if (text_is(found->key, key) && (local || !found->loopback))
                return found;
        }
    }
    return NULL;
}

bool sim_listen(struct os *os, const char *address, struct tls *tls,
                void (*on_accept)(void *arg, struct stream *s), void *arg, struct listener **out,
                struct err *err)
{
    (void)tls;
    struct machine *m = machine_of(os);
    struct address a;
    char key[160];
    if (machine_failed(m, err) || !address_parse(address, &a, err))
        return err_wrap(err, "listen");
    if (!a.is_unix && text_is(a.port, "0"))
        snprintf(a.port, sizeof a.port, "%d", m->host->next_port++);
    address_key(&a, key);
    if (find_listener(m->w, m->host, key, true))
        return err_set(err, RC_INTERNAL, "listen on %s: Address already in use", address);
    struct slistener *l = sim_take(m, sizeof *l);
    l->base.os = os;
    l->loopback = is_loopback(a.host);
    l->on_accept = on_accept;
    l->arg = arg;
    memcpy(l->key, key, sizeof key);
    snprintf(l->base.address, sizeof l->base.address, a.is_unix ? "%.4s:%s" : "%.100s%s",
             a.is_unix ? "unix" : a.host, a.is_unix ? a.host : key);
    link_add(&m->listeners, &l->link);
    *out = &l->base;
    return true;
}

void sim_listener_close(struct listener *listener)
{
    struct slistener *l = (struct slistener *)listener;
    link_cut(&l->link);
    sim_give(l);
}

static void dial_refused(void *arg)
{
    struct sstream *s = arg;
    s->arrival = NULL;
    fail(s, "the connection was refused");
}
static void dial_silent(void *arg)
{
    struct sstream *s = arg;
    s->arrival = NULL;
    fail(s, "no answer");
}

static void accept_it(void *arg)
{
    struct sstream *t = arg;
    struct slistener *l = TAKE(t->listener);
    struct machine *there = t->m;
    t->accepting = NULL;
    LINK_EACH (&there->listeners, i)
        if (CONTAINER(i, struct slistener, link) == l)
            l->on_accept(l->arg, &t->base);     /* else it was closed meanwhile */
    if (!there->dead && !t->base.events.on_close && !t->base.events.on_data)
        stream_close(&t->base);
}

static void dial_arrives(void *arg)
{
    struct sstream *s = arg;
    struct machine *m = s->m;
    char key[160];
    bool local = s->other == m->host;
    s->arrival = NULL;
    if (s->closing)
        return;
    address_key(&s->to, key);
    if (sim_is_cut(m->w, m->host, s->other) || sim_is_cut(m->w, s->other, m->host)) {
        s->arrival = sim_later(m->w, m, DIAL_PATIENCE_MS, dial_silent, s);
        return;
    }
    struct slistener *l = find_listener(m->w, s->other, key, local);
    if (!l) {
        s->arrival = sim_later(m->w, m, delay(s), dial_refused, s);
        return;
    }
    struct machine *there = machine_of(l->base.os);
    struct sstream *t = sstream_new(there, m->host);
    t->open = true;
    t->peer = s;
    s->peer = t;
    snprintf(t->base.peer, sizeof t->base.peer, "%s",
             s->to.is_unix ? "unix"
             : local       ? "127.0.0.1"
                           : m->host->name);
    snprintf(s->base.peer, sizeof s->base.peer, "%s", s->to.is_unix ? "unix" : s->to.host);
    send_to(s, SEG_OPEN, NULL, 0);
    t->listener = l;
    if (there->still_until > m->w->now)     /* the kernel answers for it */
        t->accepting = sim_later(m->w, there, 0, accept_it, t);
    else
        accept_it(t);
}

static void dial_bad(void *arg)
{
    struct sstream *s = arg;
    s->arrival = NULL;
    finish(s, SEG_RESET);
}

struct stream *sim_dial(struct os *os, const char *address, struct tls *tls, const char *name,
                        const struct stream_events *events, void *arg)
{
    (void)tls, (void)name;
    struct machine *m = machine_of(os);
    struct sstream *s = sstream_new(m, m->host);
    s->base.events = *events;
    s->base.arg = arg;
    if (m->dead)
        return &s->base;
    if (!address_parse(address, &s->to, &s->why)) {
        s->arrival = sim_later(m->w, m, 0, dial_bad, s);
        return &s->base;
    }
    if (!s->to.is_unix && !is_loopback(s->to.host))
        s->other = sim_host(m->w, s->to.host);
    s->arrival
        = sim_later(m->w, m, delay(s), fault("stream.dial") ? dial_refused : dial_arrives, s);
    return &s->base;
}

void net_clear(struct machine *m, bool crashed)
{
    LINK_EACH (&m->streams, l) {
        struct sstream *s = CONTAINER(l, struct sstream, link);
        bool rude = crashed || s->in.len || s->flying;
        send_to(s->peer, rude ? SEG_RESET : SEG_FIN, NULL, 0);
        sstream_clear(s);
    }
    LINK_EACH (&m->listeners, l)
        link_cut(l);
}
