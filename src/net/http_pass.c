/* http_pass.c - between a request that came and the same request sent on: its reply, or after a 101
 * the bytes of both sides, with back-pressure both ways.
 *
 * A reply that breaks off in the middle is cut, so that the client does not take it for whole. */
#include "net/http_pass.h"
#include "net/http_client_internal.h"
#include "net/http_internal.h"
#include "net/ws.h"
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum { FULL = 256 * 1024 };
enum { NEAR, FAR, SIDES };

struct pass_end { struct http_pass *pass; int side; struct stream *stream; bool paused; };
struct http_pass {
    struct http_request *rq;            /* NULL: gone, or a tunnel */
    struct http_call *call;             /* NULL: ended, or a tunnel */
    struct http_pass_events events;
    void *arg;
    bool begun, refused, stopped, full, tunnel;
    struct pass_end ends[SIDES];
};

/* --- headers */

static bool one_of(const char *name, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcasecmp(name, list[i]) == 0)
            return true;
    return false;
}

/* What is between two neighbours only, and what is written anew for each of them. */
static bool stays(const char *name)
{
    static const char *const list[]
        = { "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection",
            "te", "trailer", "transfer-encoding", "upgrade", "content-length", "expect", "host", "date" };
    return one_of(name, list, COUNT(list));
}

static size_t headers_up(const struct http_request *rq, const struct http_header *extra, size_t count,
                         bool upgrade, struct arena *mem, struct http_header **out)
{
    struct http_header *all = ARENA_ARRAY(mem, struct http_header, rq->head.header_count + count + 2);
    size_t n = 0;
    for (size_t i = 0; i < rq->head.header_count; i++) {
        const struct http_pair *h = &rq->head.headers[i];
        bool ours = false;
        for (size_t k = 0; k < count; k++)
            ours = ours || strcasecmp(extra[k].name, h->name) == 0;
        if (!stays(h->name) && !ours)
            all[n++] = (struct http_header){ h->name, h->value };
    }
    for (size_t k = 0; k < count; k++)
        if (extra[k].value)
            all[n++] = extra[k];
    if (upgrade) {
        all[n++] = (struct http_header){ "Upgrade", http_header(rq, "upgrade") };
        all[n++] = (struct http_header){ "Connection", "Upgrade" };
    }
    return *out = all, n;
}

static size_t headers_down(const struct http_call *k, struct arena *mem, struct http_header **out)
{
    struct http_header *all = ARENA_ARRAY(mem, struct http_header, k->head.header_count);
    size_t n = 0;
    for (size_t i = 0; i < k->head.header_count; i++) {
        const struct http_pair *h = &k->head.headers[i];
        if (!stays(h->name) && strcasecmp(h->name, "content-type") != 0)
            all[n++] = (struct http_header){ h->name, h->value };
    }
    return *out = all, n;
}

/* --- the reply */

static void on_head(void *arg, int status, struct http_call *k)
{
    struct http_pass *p = arg;
    AUTO(arena_free) struct arena *mem = arena_new();
    struct http_header *headers;
    if (p->events.on_head && !p->events.on_head(p->arg, status)) {
        p->refused = true;
        return;
    }
    size_t n = headers_down(k, mem, &headers);
    p->begun = true;
    http_call_timeout(k, 0);
    http_begin(p->rq, status, http_call_header(k, "content-type"), headers, n, k->head.content_length);
}

static void on_data(void *arg, const char *at, size_t n)
{
    struct http_pass *p = arg;
    if (p->refused)
        return;
    http_piece(p->rq, at, n);
    if (!p->full && http_waiting(p->rq) > FULL) {
        p->full = true;
        http_call_pause(p->call, true);
    }
}

void http_pass_drained(struct http_pass *p)
{
    if (!p->full || !p->call)
        return;
    p->full = false;
    http_call_pause(p->call, false);
}

static void on_end(void *arg, int status, struct slice body, const struct err *err)
{
    struct http_pass *p = arg;
    struct err why = { 0 };
    bool sent = p->call && p->call->sent && !p->refused;
    (void)status, (void)body;
    p->call = NULL;
    if (p->begun) {
        if (err)
            http_abort(TAKE(p->rq));
        else
            http_end(TAKE(p->rq));
        p->events.on_done(p->arg);
    } else {
        if (err)
            why = *err;
        else
            err_set(&why, RC_NOT_WRITER, "the server that this was passed on to does not write");
        p->events.on_failed(p->arg, &why, sent);
    }
    free(p);
}

static void on_body_drain(void *arg, struct http_call *k)
{
    struct http_pass *p = arg;
    (void)k;
    if (p->rq && !p->begun)
        http_pause_body(p->rq, false);
}

/* --- a tunnel */

static void tunnel_over(struct http_pass *p)
{
    if (p->ends[NEAR].stream || p->ends[FAR].stream)
        return;
    if (!p->stopped)
        p->events.on_done(p->arg);
    free(p);
}

static size_t end_data(void *arg, const char *at, size_t n)
{
    struct pass_end *e = arg, *other = &e->pass->ends[!e->side];
    if (!other->stream)
        return n;
    stream_write(other->stream, at, n);
    if (!e->paused && stream_waiting(other->stream) > FULL) {
        e->paused = true;
        stream_pause(e->stream, true);
    }
    return n;
}

static void end_drain(void *arg)
{
    struct pass_end *e = arg, *other = &e->pass->ends[!e->side];
    if (other->stream && other->paused) {
        other->paused = false;
        stream_pause(other->stream, false);
    }
}

static void end_close(void *arg, const struct err *why)
{
    struct pass_end *e = arg, *other = &e->pass->ends[!e->side];
    (void)why;
    e->stream = NULL;
    if (other->stream)
        stream_end(other->stream);
    tunnel_over(e->pass);
}

static const struct stream_events tunnel_events
    = { .on_data = end_data, .on_drain = end_drain, .on_close = end_close };

static void server_leaves(void *arg)
{
    struct http_pass *p = ((struct pass_end *)arg)->pass;
    for (int i = 0; i < SIDES; i++)
        if (p->ends[i].stream)
            stream_end(p->ends[i].stream);
}

static struct http_taker on_switched(void *arg, struct http_call *k, struct stream *s)
{
    static const char *const names[] = { "Upgrade", "Connection", "Sec-WebSocket-Accept" };
    struct http_pass *p = arg;
    AUTO(str_done) struct str head = { 0 };
    str_text(&head, "HTTP/1.1 101 Switching Protocols\r\n");
    for (size_t i = 0; i < COUNT(names); i++)
        if (http_call_header(k, names[i]))
            http_put_header(&head, names[i], http_call_header(k, names[i]));
    str_text(&head, "\r\n");
    p->call = NULL;
    p->begun = p->tunnel = true;
    p->ends[FAR].stream = s;
    p->ends[NEAR].stream = http_take(TAKE(p->rq), &tunnel_events, server_leaves, &p->ends[NEAR]);
    stream_write(p->ends[NEAR].stream, head.at, head.len);
    p->events.on_taken(p->arg);
    return (struct http_taker){ &tunnel_events, &p->ends[FAR] };
}

/* --- the request */

static const char *target_of(const struct http_request *rq, struct arena *mem)
{
    return *rq->query ? arena_printf(mem, "%s?%s", rq->path, rq->query) : rq->path;
}

struct http_pass *http_pass(struct http_client *to, struct http_request *rq, const struct http_header *extra,
                            size_t count, bool stream, const struct http_pass_events *events, void *arg)
{
    static const struct http_call_events mine
        = { .on_head = on_head, .on_data = on_data, .on_body_drain = on_body_drain, .on_end = on_end };
    struct http_pass *p = calloc(1, sizeof *p);
    AUTO(arena_free) struct arena *mem = arena_new();
    struct http_header *headers;
    bool upgrade = ws_asked(rq);
    if (!p)
        abort();
    *p = (struct http_pass){ .rq = rq, .events = *events, .arg = arg };
    for (int i = 0; i < SIDES; i++)
        p->ends[i] = (struct pass_end){ .pass = p, .side = i };
    size_t n = headers_up(rq, extra, count, upgrade, mem, &headers);
    const char *target = target_of(rq, mem);
    if (upgrade)
        p->call = http_call_upgrade(to, target, headers, n, &mine, on_switched, p);
    else
        p->call = http_call(to, rq->head.method, target, headers, n, stream ? (struct slice){ 0 } : rq->body,
                            stream ? rq->head.content_length : (int64_t)rq->body.len, &mine, p);
    return p;
}

void http_pass_body(struct http_pass *p, const void *at, size_t n)
{
    if (!p->call || p->begun)
        return;
    http_call_body(p->call, at, n);
    if (http_call_waiting(p->call) > FULL)
        http_pause_body(p->rq, true);
}

void http_pass_finish(struct http_pass *p)
{
    if (p->call)
        http_call_finish(p->call);
}

void http_pass_hurry(struct http_pass *p, int64_t ms)
{
    if (p->call && !p->begun)
        http_call_timeout(p->call, ms);
}

bool http_pass_begun(const struct http_pass *p) { return p->begun; }

void http_pass_stop(struct http_pass *p, bool gone)
{
    if (p->tunnel) {
        p->stopped = true;
        for (int i = 0; i < SIDES; i++)
            if (p->ends[i].stream)
                stream_close(p->ends[i].stream);
        return;
    }
    if (p->call)
        http_call_cancel(p->call);
    if (p->begun && p->rq && !gone)
        http_abort(p->rq);
    free(p);
}
