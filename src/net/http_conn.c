/* http_conn.c - one connection of the server: bytes become requests, one at a time, under the
 * limits of size and time.
 *
 * Bytes behind a request that still owes its reply stay unread in the stream, which is paused: that
 * is all there is to pipelining. A message that breaks the rules is answered once and the
 * connection closes, but only after the client had a moment to read the answer: closing over unread
 * bytes would make the kernel throw the answer away. */
#include "net/http_internal.h"
#include <stdlib.h>

enum { LINGER_MS = 2000, WHOLE_BODY = 64 * 1024, CLOGGED = 128 * 1024, PIPELINED = 16 };
enum { SMALL_REQUEST = 16 * 1024, BODY_PART = 16 * 1024, SLOWEST = 1024 };    /* SLOWEST: bytes a second */

/* What is collected counts for the whole server: many clients, each within its own limit, must not fill its memory. An idle
 * connection holds nothing. */
static void held_drop(struct conn *c)
{
    str_done(&c->body);
    c->server->held_bytes -= c->held_bytes;
    if (c->group)
        c->group->held_bytes -= c->held_bytes;
    c->held_bytes = 0;
}

/* One group has at most half of it, and a quarter more is there for small requests, so that large ones keep nobody out. */
static bool held_room(struct conn *c, size_t n)
{
    struct http_server *s = c->server;
    size_t most = s->limits.bodies_bytes;
    struct err why;
    bool small = c->held_bytes + n <= SMALL_REQUEST;
    bool much = !small && c->group && c->group->held_bytes + n > MAX(most / 2, s->limits.body_bytes);
    if (much || s->held_bytes + n > most + (small ? most / 4 : 0)) {
        err_set(&why, RC_UNAVAILABLE, "too much is being sent at once%s; try again in a moment", much ? " from your side" : "");
        conn_refuse(c, &why);
        return false;
    }
    s->held_bytes += n;
    c->held_bytes += n;
    if (c->group)
        c->group->held_bytes += n;
    return true;
}

void conn_write(struct conn *c, const void *at, size_t n)
{
    c->written += n;
    stream_write(c->stream, at, n);
}

/* The handler's part in the request ends without its doing. */
static void request_lost(struct conn *c)
{
    struct http_request *rq = TAKE(c->rq);
    if (!rq || rq->over)
        return;
    rq->over = true;
    if (rq->seen && c->server->handler.on_gone)
        c->server->handler.on_gone(c->server->arg, rq);
}

void conn_cut(struct conn *c)
{
    if (c->state == CONN_CLOSED)
        return;
    if (c->state != CONN_TAKEN) { /* one who took the stream hears of its end through on_close */
        c->state = CONN_CLOSED;
        request_lost(c);
    }
    deadline_done(&c->deadline);
    stream_close(c->stream);
}

/* Nothing more will be written. unread: the client may still be sending, so read it away until it
 * has seen the reply. */
static void say_no_more(struct conn *c, bool unread)
{
    c->state = CONN_LINGER;
    c->taken_before = 0;
    held_drop(c);
    if (unread) {
        stream_shut(c->stream);
        stream_pause(c->stream, false);
    } else {
        stream_end(c->stream);
    }
    deadline_set(&c->deadline, LINGER_MS);
}

void conn_refuse(struct conn *c, const struct err *why)
{
    struct http_server *s = c->server;
    bool begun = c->rq && c->rq->begun;
    request_lost(c);
    if (begun) { /* half a reply is out: only a cut tells the client that it is not whole */
        conn_cut(c);
        return;
    }
    AUTO(str_done) struct str type = { 0 }, body = { 0 };
    if (s->handler.on_bad)
        s->handler.on_bad(s->arg, stream_peer(c->stream), why, &type, &body);
    struct http_request rq = { .conn = c, .last = true };
    struct http_header retry = { "Retry-After", "1" };
    c->whole = true;
    http_begin(&rq, http_bad_status(why), type.len ? type.at : NULL, &retry,
               why->rc == RC_UNAVAILABLE, (int64_t)body.len);
    http_piece(&rq, body.at, body.len);
    say_no_more(c, true);
}

void conn_next(struct conn *c)
{
    struct http_request *rq = TAKE(c->rq);
    if (rq->last) {
        say_no_more(c, !c->whole || c->held);
        return;
    }
    bool paused = c->held || rq->paused;
    c->resting = rq->rest_ms > 0;
    deadline_set(&c->deadline, c->resting ? rq->rest_ms : c->server->limits.idle_ms);
    http_parse_next(c->parse, false);
    c->state = CONN_HEAD;
    c->held = c->whole = c->head_begun = c->line_seen = c->body_timed = false;
    held_drop(c);
    if (!c->extra)
        link_add(&c->server->idle, &c->idle);
    c->clogged = stream_waiting(c->stream)
                 > CLOGGED; /* who does not take replies gets no more of them made */
    bool quiet = group_spent(c, 1) || c->clogged || c->resting;
    if (paused != quiet)
        stream_pause(c->stream, quiet);
}

void conn_go_on(struct conn *c)
{
    bool reads = c->state == CONN_HEAD || c->state == CONN_LINGER || (c->state == CONN_BODY && c->rq && !c->rq->paused);
    if (reads && !c->clogged && !c->parked && !c->resting)
        stream_pause(c->stream, false);
}

void conn_shut_down(struct conn *c)
{
    if (c->rq)
        c->rq->last = true;
    else if (c->state == CONN_HEAD && !c->head_begun)
        say_no_more(c, false);
    else if (c->state == CONN_TAKEN && c->up_leave)
        c->up_leave(c->up_arg);
}

/* A client that takes what is written at a rate of a modem is not idle; one that takes a byte now and then only holds our memory. */
static bool still_taking(struct conn *c)
{
    size_t waiting = stream_waiting(c->stream);
    uint64_t taken = c->written - waiting, moved = taken - c->taken_before;
    int64_t span_ms = c->state == CONN_LINGER ? LINGER_MS : c->server->limits.idle_ms;
    c->taken_before = taken;
    return waiting > 0 && moved * 1000 >= (uint64_t)span_ms * SLOWEST;
}

/* A body has a deadline that only so many bytes move away: one byte each time would hold a place for ever. */
static void body_deadline(struct conn *c)
{
    c->body_timed = true;
    c->body_before = c->rq->body_seen;
    deadline_set(&c->deadline, c->server->limits.body_ms);
}

static bool still_sending(struct conn *c)
{
    return c->rq && (c->rq->body_seen - c->body_before) * 1000 >= (uint64_t)c->server->limits.body_ms * SLOWEST;
}

static void on_deadline(void *arg)
{
    struct conn *c = arg;
    const struct http_limits *l = &c->server->limits;
    struct err why;
    if (c->resting) {
        c->resting = false;
        deadline_set(&c->deadline, l->idle_ms);
        conn_go_on(c);
    } else if (c->state == CONN_HEAD && c->head_begun) {
        err_set(&why, RC_TIMEOUT, "the request's head did not come within %lld ms",
                (long long)l->head_ms);
        conn_refuse(c, &why);
    } else if (c->state == CONN_BODY && still_sending(c)) {
        body_deadline(c);
    } else if (c->state == CONN_BODY) {
        err_set(&why, RC_TIMEOUT, "nothing or too little of the request's body came for %lld ms",
                (long long)l->body_ms);
        conn_refuse(c, &why);
    } else if (still_taking(c) || (c->state == CONN_WORK && stream_waiting(c->stream) == 0)) {
        deadline_set(&c->deadline, c->state == CONN_LINGER ? LINGER_MS : l->idle_ms);
    } else {
        conn_cut(c);
    }
}

/* --- what the parser finds */

static void split_target(struct http_request *rq)
{
    const char *mark = strchr(rq->head.target, '?');
    rq->path = rq->head.target;
    rq->query = "";
    if (!mark)
        return;
    rq->path = arena_bytes(http_mem(rq), rq->head.target, (size_t)(mark - rq->head.target));
    rq->query = mark + 1;
}

static bool body_comes(const struct http_request *rq)
{
    return rq->head.chunked || rq->head.content_length > 0;
}

static bool too_large(struct conn *c, struct http_request *rq, uint64_t bytes)
{
    if (bytes <= rq->body_limit)
        return false;
    struct err why;
    err_set(&why, RC_TOO_LARGE, "the request's body may have at most %zu bytes", rq->body_limit);
    conn_refuse(c, &why);
    return true;
}

static bool on_head(void *arg, struct http_head *h)
{
    struct conn *c = arg;
    struct http_server *s = c->server;
    struct http_request *rq = ARENA_NEW(http_parse_mem(c->parse), struct http_request);
    *rq = (struct http_request){
        .conn = c,
        .head = *h,
        .body_limit = s->limits.body_bytes,
        .last = !h->keep_alive || s->closing || s->winding_down,
    };
    c->rq = rq;
    c->head_begun = false;
    c->state = CONN_BODY;
    split_target(rq);
    if (s->handler.on_head) {
        rq->seen = true;
        s->handler.on_head(s->arg, rq);
        if (c->rq != rq || rq->over)
            return !body_comes(rq) && c->state == CONN_BODY;
    }
    if (!body_comes(rq))
        return true;
    if (too_large(c, rq, h->content_length > 0 ? (uint64_t)h->content_length : 0))
        return false;
    if (h->expect_continue && h->minor > 0)
        conn_write(c, "HTTP/1.1 100 Continue\r\n\r\n", 25);
    return true;
}

static bool on_body(void *arg, const char *at, size_t n)
{
    struct conn *c = arg;
    struct http_request *rq = c->rq;
    if (!rq || rq->over)
        return false;
    rq->body_seen += n;
    if (too_large(c, rq, rq->body_seen))
        return false;
    if (rq->on_chunk) {
        if (rq->on_chunk(c->server->arg, rq, at, n))
            return c->rq == rq && !rq->over;
        if (c->rq == rq && !rq->over)
            conn_cut(c);
        return false;
    }
    if (!held_room(c, n))
        return false;
    if ((int64_t)n == rq->head.content_length
        && n <= WHOLE_BODY) { /* whole at once, as most are: no buffer beside the arena */
        rq->body = (struct slice){ arena_bytes(http_mem(rq), at, n), n };
        return true;
    }
    str_put(&c->body, at, n);
    rq->body = (struct slice){ c->body.at, c->body.len };
    return true;
}

static void on_message(void *arg)
{
    struct conn *c = arg;
    c->whole = true;
}

static const struct http_parse_events parse_events = { on_head, on_body, on_message };

/* --- the stream */

/* Memory for replies is short: the connection that has most of it unread goes, and who asks now is told to come again. */
static void make_room(struct http_server *s)
{
    struct conn *most = NULL;
    for (struct conn *c = s->conns; c; c = c->next)
        if (c->state != CONN_TAKEN && c->state != CONN_CLOSED
            && (!most || stream_waiting(c->stream) > stream_waiting(most->stream)))
            most = c;
    if (most && stream_waiting(most->stream))
        conn_cut(most);
}

/* After each feed: what has become of the request? */
static void step(struct conn *c, struct slice fed)
{
    struct http_server *s = c->server;
    struct http_request *rq = c->rq;
    if (c->state == CONN_HEAD) {
        c->line_seen = c->line_seen || memchr(fed.at, '\n', fed.len);
        if (!c->head_begun)
            deadline_set(&c->deadline, s->limits.head_ms);
        c->head_begun = true;
        held_room(c, fed.len);
        return;
    }
    if (c->state != CONN_BODY || !rq)
        return;
    if (!rq->over && !c->whole) {
        if (!rq->paused && !c->body_timed)
            body_deadline(c);
        return;
    }
    if (!rq->over && os_waiting(s->os) > s->limits.replies_bytes) {
        struct err why;
        err_set(&why, RC_UNAVAILABLE, "too many replies wait for their clients; try again in a moment");
        conn_refuse(c, &why);
        make_room(s);
        return;
    }
    if (!rq->over) {
        c->state = CONN_WORK;
        if (!rq->begun) /* a begun reply is watched: its client must go on taking it */
            deadline_none(&c->deadline);
        rq->seen = true;
        s->handler.on_request(s->arg, rq);
    }
    if (c->rq == rq && rq->over && c->state != CONN_TAKEN)
        conn_next(c);
}

static void refuse_bytes(struct conn *c, struct err *why, struct slice fed)
{
    if (why->rc == RC_TOO_LARGE && c->state == CONN_HEAD) {
        bool line = c->line_seen || memchr(fed.at, '\n', fed.len);
        strcpy(why->field, line ? "head" : "target");
    }
    conn_refuse(c, why);
}

static size_t on_data(void *arg, const char *at, size_t n)
{
    struct conn *c = arg;
    size_t done = 0;
    int begun = 0;
    bool others = false;
    c->feeding = true;
    link_cut(&c->idle);
    while (done < n && !c->clogged && !c->parked && !c->resting && (c->state == CONN_HEAD || c->state == CONN_BODY)) {
        if (c->state == CONN_HEAD && !c->head_begun && (others = begun++ == PIPELINED))
            break;
        struct slice rest = { at + done, n - done };
        size_t used = 0;
        struct err why = { 0 };
        bool fine = http_parse_feed(c->parse, rest.at, rest.len, &used, &why);
        done += used;
        bool reading = c->state == CONN_HEAD || c->state == CONN_BODY;
        if (!fine && reading && !(c->rq && c->rq->over))
            refuse_bytes(c, &why, rest);
        else
            step(c, rest);
        if (!fine || used == 0)
            break;
    }
    c->feeding = false;
    if (c->state == CONN_TAKEN)
        return done < n ? done + c->up->on_data(c->up_arg, at + done, n - done) : n;
    if (c->state == CONN_LINGER || c->state == CONN_CLOSED)
        return n;
    if (others) { /* it has more, but so may others: it comes again at the end of the turn */
        stream_pause(c->stream, true);
        stream_pause(c->stream, false);
    } else if (done < n && !c->clogged && !c->parked && !c->resting) {
        c->held = true;
        stream_pause(c->stream, true);
    } else if (done == n && c->state == CONN_BODY && c->rq && !c->rq->over && !c->rq->paused
               && group_spent(c, (int)(n / BODY_PART))) {
        stream_pause(c->stream, true);
    }
    return done;
}

static void on_drain(void *arg)
{
    struct conn *c = arg;
    const struct http_handler *h = &c->server->handler;
    if (c->state == CONN_TAKEN) {
        if (c->up->on_drain)
            c->up->on_drain(c->up_arg);
    } else if (c->clogged) {
        c->clogged = false;
        conn_go_on(c);
    } else if (c->rq && c->rq->begun && !c->rq->over && h->on_drain) {
        h->on_drain(c->server->arg, c->rq);
    }
}

/* A client that closes its sending side has left: one that only waits for its reply keeps it open.
 * Replies that are already made still go out. */
static void on_eof(void *arg)
{
    struct conn *c = arg;
    if (c->state == CONN_TAKEN) {
        stream_end(c->stream);
    } else if (c->state != CONN_LINGER && c->state != CONN_CLOSED) {
        request_lost(c);
        say_no_more(c, false);
    }
}

void conn_closed(void *arg, const struct err *why)
{
    struct conn *c = arg;
    struct http_server *s = c->server;
    deadline_done(&c->deadline);
    if (c->state == CONN_TAKEN)
        c->up->on_close(c->up_arg, why);
    c->state = CONN_CLOSED;
    request_lost(c);
    http_parse_free(c->parse);
    held_drop(c);
    str_done(&c->body);
    server_forget(s, c);
    free(c);
}

static const struct stream_events events = {
    .on_data = on_data,
    .on_drain = on_drain,
    .on_close = conn_closed,
    .on_eof = on_eof,
};

struct conn *http_conn_open(struct http_server *s, struct stream *stream, bool extra)
{
    struct conn *c = calloc(1, sizeof *c);
    if (!c)
        abort();
    c->server = s;
    c->stream = stream;
    c->extra = extra;
    c->parse = http_parse_new(HTTP_PARSE_REQUEST, s->limits.head_bytes, &parse_events, c);
    deadline_init(&c->deadline, s->os, on_deadline, c);
    deadline_set(&c->deadline, s->limits.head_ms);
    c->next = s->conns;
    if (c->next)
        c->next->prev = c;
    s->conns = c;
    stream_bind(stream, &events, c);
    return c;
}

struct stream *http_take(struct http_request *rq, const struct stream_events *up,
                         void (*leave)(void *arg), void *arg)
{
    struct conn *c = rq->conn;
    rq->over = true;
    c->rq = NULL;
    c->state = CONN_TAKEN;
    c->up = up;
    c->up_leave = leave;
    c->up_arg = arg;
    held_drop(c);
    deadline_done(&c->deadline);
    if (c->held && !c->feeding)
        stream_pause(c->stream, false);
    c->held = false;
    http_parse_free(TAKE(c->parse)); /* and rq with it: who took the stream may keep it for days */
    return c->stream;
}

void http_pause_body(struct http_request *rq, bool paused)
{
    struct conn *c = rq->conn;
    if (rq->over || c->state != CONN_BODY || c->whole)
        return;
    rq->paused = paused;
    stream_pause(c->stream, paused || c->parked);
    if (paused) /* the wait is ours, not the client's */
        deadline_none(&c->deadline);
    else
        body_deadline(c);
}
