/* ws.c - messages over an open WebSocket. wslay makes and checks the frames: masking by side,
 * reserved bits, sizes, fragments, UTF-8, the order of the close handshake. Here are time,
 * back-pressure and the one end that each has.
 *
 * wslay is fed from inside on_data and written out at once, so that it never holds more than a
 * half-received message. Its two buffers are larger than all else that a connection at rest needs,
 * and there are many of those: between messages it does not exist. */
#include "net/ws_internal.h"
#include <stdio.h>
#include <stdlib.h>

enum { SILENT_PINGS = 3, LAST_MS = 2000, CLOGGED = 1024 * 1024, UNREAD_PINGS = 1000, REASON = 123 };

/* --- why it ends */

static enum rc rc_of_code(int code)
{
    static const struct {
        int code;
        enum rc rc;
    } rows[] = {
        { 1000, RC_OK },          { 1001, RC_UNAVAILABLE }, { 1002, RC_BAD_INPUT },
        { 1003, RC_BAD_INPUT },   { 1007, RC_BAD_INPUT },   { 1008, RC_DENIED },
        { 1009, RC_TOO_LARGE },   { 1011, RC_INTERNAL },    { 1012, RC_UNAVAILABLE },
        { 1013, RC_UNAVAILABLE },
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        if (rows[i].code == code)
            return rows[i].rc;
    return code >= 4400 && code < 4600 ? rc_of_http(code - 4000) : RC_UNAVAILABLE;
}

/* The first reason is the one that counts: what follows from it explains nothing. */
static void because(struct ws *w, enum rc rc, const char *text)
{
    if (w->why)
        return;
    if (!(w->why = calloc(1, sizeof *w->why)))
        abort();
    err_set(w->why, rc, "%s", text);
}

static void because_code(struct ws *w, int code, const char *reason, size_t n,
                         const char *otherwise)
{
    char text[REASON + 1];
    snprintf(text, sizeof text, "%.*s", (int)MIN(n, (size_t)REASON), reason);
    if (!w->why)
        w->code = code;
    because(w, rc_of_code(code), *text ? text : otherwise);
}

int ws_code(const struct ws *w) { return w->code; }
const char *ws_elsewhere(const struct ws *w) { return w->elsewhere ? w->elsewhere : ""; }

void ws_over(struct ws *w, const struct err *otherwise)
{
    struct err why = w->why ? *w->why : *otherwise;
    timer_cancel(TAKE(w->ping));
    timer_cancel(TAKE(w->last));
    w->dropped = true;
    w->events.on_close(w->arg, w, &why);
    if (w->frames)
        wslay_event_context_free(w->frames);
    free(w->elsewhere);
    free(w->why);
    free(w);
}

static void cut(struct ws *w)
{
    if (w->dropped)
        return;
    w->dropped = true;
    stream_close(w->stream);
}

static void last_over(void *arg)
{
    struct ws *w = arg;
    size_t waiting = stream_waiting(w->stream);
    bool taking = waiting > 0 && waiting < w->waiting_before; /* slowly, but it does */
    w->waiting_before = waiting;
    w->last = taking ? timer_start(w->os, LAST_MS, last_over, w) : NULL;
    if (!taking)
        cut(w);
}

/* --- wslay, while it is needed */

static const struct wslay_event_callbacks calls;

static wslay_event_context_ptr frames(struct ws *w)
{
    if (w->frames)
        return w->frames;
    int rc = w->client ? wslay_event_context_client_init(&w->frames, &calls, w)
                       : wslay_event_context_server_init(&w->frames, &calls, w);
    if (rc != 0)
        abort();
    wslay_event_config_set_max_recv_msg_length(w->frames, w->limits.message_bytes);
    return w->frames;
}

static void frame_begins(wslay_event_context_ptr ctx, const struct wslay_event_on_frame_recv_start_arg *f, void *arg)
{
    (void)ctx;
    struct ws *w = arg;
    size_t length = f->payload_length < 126 ? 0 : f->payload_length < 65536 ? 2 : 8, mask = w->client ? 0 : 4;
    w->framed += 2 + length + mask + f->payload_length;
    w->in_frame = true;
    if (!wslay_is_ctrl_frame(f->opcode))
        w->in_message = !f->fin;
}

static void frame_ends(wslay_event_context_ptr ctx, void *arg)
{
    (void)ctx;
    ((struct ws *)arg)->in_frame = false;
}

/* All that came was whole frames of whole messages, all that was to be sent has gone, and no goodbye was said. */
static void frames_rest(struct ws *w)
{
    if (!w->frames || w->reading || w->in_frame || w->in_message || w->fed != w->framed || w->goodbye
        || wslay_event_get_queued_msg_count(w->frames) || !wslay_event_get_read_enabled(w->frames)
        || !wslay_event_get_write_enabled(w->frames) || wslay_event_get_close_sent(w->frames)
        || wslay_event_get_close_received(w->frames))
        return;
    wslay_event_context_free(TAKE(w->frames));
    w->fed = w->framed = 0;
}

/* --- out */

static ssize_t send_frame(wslay_event_context_ptr ctx, const uint8_t *at, size_t n, int flags,
                          void *arg)
{
    (void)ctx, (void)flags;
    struct ws *w = arg;
    stream_write(w->stream, at, n);
    return (ssize_t)n;
}

static int make_mask(wslay_event_context_ptr ctx, uint8_t *out, size_t n, void *arg)
{
    (void)ctx;
    struct ws *w = arg;
    os_random(w->os, out, n);
    return 0;
}

/* Writes what is queued; once both goodbyes are said the stream ends, and a peer that keeps silent
 * gets a last moment. */
static void flush(struct ws *w)
{
    if (!w->stream || w->dropped || !w->frames)
        return;
    if (wslay_event_send(w->frames) != 0) {
        because(w, RC_INTERNAL, "the connection could not be written to");
        cut(w);
        return;
    }
    if (!wslay_event_get_close_sent(w->frames)) {
        frames_rest(w);
        return;
    }
    w->goodbye = true;
    if (wslay_event_get_close_received(w->frames))
        stream_end(w->stream);
    if (!w->last) {
        w->waiting_before = SIZE_MAX;
        w->last = timer_start(w->os, LAST_MS, last_over, w);
    }
}

void ws_send(struct ws *w, bool text, const void *at, size_t n)
{
    if (w->goodbye || w->dropped)
        return;
    struct wslay_event_msg m = { text ? WSLAY_TEXT_FRAME : WSLAY_BINARY_FRAME, at, n };
    wslay_event_queue_msg(frames(w), &m);
    flush(w);
}

size_t ws_waiting(const struct ws *w)
{
    return (w->frames ? wslay_event_get_queued_msg_length(w->frames) : 0)
           + (w->stream ? stream_waiting(w->stream) : 0);
}

void ws_close(struct ws *w, int code, const char *reason)
{
    if (w->goodbye || w->dropped)
        return;
    size_t n = reason ? strnlen(reason, REASON) : 0;
    while (n && reason[n]
           && ((unsigned char)reason[n] & 0xc0) == 0x80) /* not in the middle of a letter */
        n--;
    because_code(w, code, reason ? reason : "", n, "closed");
    if (!w->stream) {
        ws_drop(w);
        return;
    }
    w->goodbye = true;
    wslay_event_queue_close(frames(w), (uint16_t)code, (const uint8_t *)reason, n);
    if (w->paused)
        stream_pause(w->stream, false); /* the peer's goodbye must be read */
    flush(w);
}

void ws_leave(void *arg)
{
    ws_close(arg, 1001, "the server is closing");
}

static void dial_dropped(void *arg)
{
    struct ws *w = arg;
    w->last = NULL;
    ws_over(w, w->why);
}

void ws_drop(struct ws *w)
{
    because(w, RC_OK, "dropped");
    if (w->dropped)
        return;
    if (w->stream) {
        cut(w);
        return;
    }
    w->dropped = true;
    http_call_cancel(TAKE(w->dial));
    w->last = timer_start(w->os, 0, dial_dropped, w);
}

/* --- in */

static ssize_t take_bytes(wslay_event_context_ptr ctx, uint8_t *to, size_t n, int flags, void *arg)
{
    (void)flags;
    struct ws *w = arg;
    if (w->in_len == 0 || w->dropped || w->paused) {
        wslay_event_set_error(ctx, WSLAY_ERR_WOULDBLOCK);
        return -1;
    }
    n = MIN(n, w->in_len);
    memcpy(to, w->in, n);
    w->in += n;
    w->in_len -= n;
    w->fed += n;
    return (ssize_t)n;
}

static void on_frames(wslay_event_context_ptr ctx, const struct wslay_event_on_msg_recv_arg *m,
                      void *arg)
{
    (void)ctx;
    struct ws *w = arg;
    if (w->dropped)
        return;
    if (m->opcode == WSLAY_CONNECTION_CLOSE) {
        size_t skip = MIN(m->msg_length, 2u);
        int code = m->status_code  ? m->status_code
                   : m->msg_length ? 1002
                                   : 1000; /* half a code is none */
        because_code(w, code, (const char *)m->msg + skip, m->msg_length - skip, "the peer closed");
        w->goodbye = true;
    } else if (m->opcode == WSLAY_PING) {
        /* Each gets an answer: one who pings on and never reads them must not fill our memory. */
        w->unread_pings = stream_waiting(w->stream) > CLOGGED ? w->unread_pings + 1 : 0;
        if (w->unread_pings > UNREAD_PINGS) {
            because(w, RC_TOO_MANY, "the peer pings and does not read");
            cut(w);
        }
    } else if (!w->goodbye && (m->opcode == WSLAY_TEXT_FRAME || m->opcode == WSLAY_BINARY_FRAME)) {
        w->events.on_message(w->arg, w, m->opcode == WSLAY_TEXT_FRAME,
                             m->msg_length ? (const char *)m->msg : "", m->msg_length);
    }
}

static void read_error(struct ws *w)
{
    static const struct {
        int code;
        const char *text;
    } rows[] = {
        { 1007, "a text message was not UTF-8" },
        { 1009, "a message was too large" },
    };
    int code = wslay_event_get_status_code_sent(w->frames);
    const char *text = "the peer broke the rules of the protocol";
    for (size_t i = 0; i < COUNT(rows); i++)
        if (rows[i].code == code)
            text = rows[i].text;
    because(w, rc_of_code(code), text);
}

static size_t on_data(void *arg, const char *at, size_t n)
{
    struct ws *w = arg;
    w->heard = true;
    if (w->dropped || !wslay_event_get_read_enabled(frames(w)))
        return n; /* after the end: only so that the peer can read our goodbye */
    w->in = at;
    w->in_len = n;
    w->reading = true;
    int rc = wslay_event_recv(w->frames);
    w->reading = false;
    size_t left = w->in_len;
    w->in = NULL;
    w->in_len = 0;
    if (rc != 0) /* a frame so wrong that wslay says goodbye without a code */
        because(w, RC_BAD_INPUT, "the peer broke the rules of the protocol");
    flush(w);
    if (w->frames && !wslay_event_get_read_enabled(w->frames)) {
        if (!wslay_event_get_close_received(w->frames))
            read_error(w);
        return n;
    }
    return w->dropped ? n : n - left;
}

void ws_pause(struct ws *w, bool paused)
{
    if (w->paused == paused || w->goodbye)
        return;
    w->paused = paused;
    if (w->stream && !w->dropped)
        stream_pause(w->stream, paused);
}

static void on_drain(void *arg)
{
    struct ws *w = arg;
    if (w->events.on_drain && !w->goodbye && !w->dropped)
        w->events.on_drain(w->arg, w);
}

static void on_close(void *arg, const struct err *why)
{
    struct ws *w = arg;
    struct err otherwise;
    if (why->rc == RC_OK)
        err_set(&otherwise, RC_UNAVAILABLE, "the peer left without a goodbye");
    else
        err_set(&otherwise, RC_UNAVAILABLE, "%s", why->text);
    ws_over(w, &otherwise);
}

const struct stream_events ws_stream_events
    = { .on_data = on_data, .on_drain = on_drain, .on_close = on_close };

/* --- life */

static const struct wslay_event_callbacks calls = {
    .recv_callback = take_bytes,
    .send_callback = send_frame,
    .genmask_callback = make_mask,
    .on_frame_recv_start_callback = frame_begins,
    .on_frame_recv_end_callback = frame_ends,
    .on_msg_recv_callback = on_frames,
};

static void on_ping(void *arg)
{
    struct ws *w = arg;
    w->silent = w->heard || w->paused ? 0 : w->silent + 1;
    w->heard = false;
    if (w->silent > SILENT_PINGS) {
        w->ping = NULL;
        because(w, RC_TIMEOUT, "the peer did not answer");
        cut(w);
        return;
    }
    w->ping = timer_start(w->os, w->limits.ping_ms, on_ping, w);
    if (w->goodbye || w->dropped)
        return;
    wslay_event_queue_msg(frames(w), &(struct wslay_event_msg){ WSLAY_PING, NULL, 0 });
    flush(w);
}

struct ws *ws_new(struct os *os, bool client, const struct ws_limits *limits,
                  const struct ws_events *events, void *arg)
{
    struct ws *w = calloc(1, sizeof *w);
    if (!w)
        abort();
    w->os = os;
    w->events = *events;
    w->arg = arg;
    if (limits)
        w->limits = *limits;
    if (!w->limits.message_bytes)
        w->limits.message_bytes = 1024 * 1024;
    if (!w->limits.ping_ms)
        w->limits.ping_ms = 10 * 1000;
    w->client = client;
    return w;
}

void ws_open(struct ws *w, struct stream *s)
{
    w->stream = s;
    w->ping = timer_start(w->os, w->limits.ping_ms, on_ping, w);
    if (w->paused)
        stream_pause(s, true);
    flush(w);
}
