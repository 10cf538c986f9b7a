/* streams.c - the server's side of each stream: dialling, channels, room for more, and the one end that each has. What is
 * carried is in stream_logs.c, stream_task.c and stream_folder.c. */
#include "agent/streams_internal.h"
#include "base/id.h"
#include "base/log.h"
#include "model/prefix.h"
#include "wire/http_parse.h"
#include "wire/bind.h"
#include <stdlib.h>

enum { ROOM = 256 << 10, MAX_STREAMS = 512 };
_Static_assert((int)SERVE_PIECE < (int)CHANNEL_MESSAGE, "a piece fits a message");

struct streams {
    struct os *os;
    const char *data;
    const struct streams_host *host;
    void *arg;
    struct serve *first;
    size_t count;
};

struct os *serve_os(const struct serve *s)
{
    return s->owner->os;
}
void serve_log_folder(const struct serve *s, char out[static 256])
{
    s->owner->host->log_folder(s->owner->arg, s->ask.attempt, out);
}
const char *serve_data(const struct serve *s)
{
    return s->owner->data;
}
bool serve_alive(const struct serve *s)
{
    return s->ask.attempt && s->owner->host->is_alive(s->owner->arg, s->ask.attempt);
}
bool serve_socket(const struct serve *s, char address[static 128])
{
    char path[108] = "";
    return s->owner->host->socket(s->owner->arg, s->ask.attempt, path) && text_copy(address, 128, "unix:") && text_copy(address + 5, 123, path);
}
bool serve_room(const struct serve *s)
{
    return ws_waiting(s->ws) < ROOM;
}
void serve_wait(struct serve *s, bool wait)
{
    ws_pause(s->ws, wait);
}

void serve_send(struct serve *s, enum channel channel, const char *at, size_t n)
{
    char piece[SERVE_PIECE + 1];
    piece[0] = (char)channel;
    while (n) {
        size_t m = MIN(n, SERVE_PIECE);
        memcpy(piece + 1, at, m);
        ws_send(s->ws, false, piece, m + 1);
        at += m, n -= m;
    }
}

/* --- the end of one */

static void let_go(struct serve *s)
{
    const struct serve_ops *ops = TAKE(s->ops);
    if (ops && ops->stop)
        ops->stop(s);
}

static void end_with(struct serve *s, const struct str *control)
{
    serve_send(s, CHANNEL_CONTROL, control->at, control->len);
    let_go(s);
    ws_pause(s->ws, false); /* so that the peer's goodbye is read */
    ws_close(s->ws, 1000, "done");
}

void serve_eof(struct serve *s)
{
    static const char text[] = "{\"eof\":true}";
    serve_send(s, CHANNEL_CONTROL, text, sizeof text - 1);
}

void serve_done(struct serve *s)
{
    AUTO(str_done) struct str text = { 0 };
    str_text(&text, "{\"eof\":true}");
    end_with(s, &text);
}

void serve_exit(struct serve *s, int64_t code)
{
    AUTO(str_done) struct str text = { 0 };
    str_printf(&text, "{\"exit\":%d}", (int)code);
    end_with(s, &text);
}

void serve_fail(struct serve *s, const char *why)
{
    AUTO(str_done) struct str text = { 0 };
    struct json_out o = { .to = &text };
    json_open(&o, '{');
    json_key(&o, "error");
    json_put_text(&o, why);
    json_close(&o, '}');
    end_with(s, &text);
}

/* --- the server's side */

/* Who serves it: files of a running task pass through its supervisor, which is inside the task's mounts; what is left of an
 * ended one, and a volume, is a folder. */
static const struct serve_ops *choose(const struct serve *s, struct err *err)
{
    const struct open_stream *o = &s->ask;
    bool files = text_is(o->what, "get") || text_is(o->what, "put");
    if (text_is(o->what, "logs"))
        return &serve_logs;
    if (!files && !text_is(o->what, "exec") && !text_is(o->what, "dial") && !text_is(o->what, "ssh"))
        return err_set(err, RC_BAD_INPUT, "this node does not know the stream '%.16s'", o->what),
               NULL;
    if (serve_alive(s))
        return &serve_task;
    if (files)
        return &serve_folder;
    return err_set(err, RC_CONFLICT, "the task is not running"), NULL;
}

static void on_open(void *arg, struct ws *ws)
{
    struct serve *s = arg;
    struct err err = { 0 };
    (void)ws;
    if (!s->owner)
        return;
    s->ops = choose(s, &err);
    if (!s->ops || !s->ops->start(s, &err))
        serve_fail(s, err.text);
}

static void take_control(struct serve *s, const char *at, size_t n)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct err err = { 0 };
    struct json *doc, *eof;
    if (!json_parse((struct slice){ at, n }, mem, &doc, &err))
        serve_fail(s, "a control message that is not JSON");
    else if ((eof = json_get(doc, "eof")) && eof->flag && s->ops->on_eof)
        s->ops->on_eof(s);
    else if (s->ops->on_control)
        s->ops->on_control(s, doc);
}

static void on_message(void *arg, struct ws *ws, bool text, const char *at, size_t n)
{
    struct serve *s = arg;
    (void)ws;
    if (!s->ops || n == 0)
        return;
    if (text || (unsigned char)*at >= CHANNEL_COUNT)
        serve_fail(s, "a message without a channel");
    else if (*at == CHANNEL_CONTROL)
        take_control(s, at + 1, n - 1);
    else if (*at == CHANNEL_IN && s->ops->on_input && n > 1)
        s->ops->on_input(s, at + 1, n - 1);
}

static void on_drain(void *arg, struct ws *ws)
{
    struct serve *s = arg;
    (void)ws;
    if (s->ops && s->ops->on_room && serve_room(s))
        s->ops->on_room(s);
}

static bool is_session(const struct serve *s)
{
    return s->ask.attempt && !text_is(s->ask.what, "logs");
}

static void used(const struct serve *s)
{
    if (is_session(s) && s->owner->host->used)
        s->owner->host->used(s->owner->arg, s->ask.attempt);
}

static void on_close(void *arg, struct ws *ws, const struct err *why)
{
    struct serve *s = arg;
    (void)ws;
    let_go(s);
    if (s->owner) {
        used(s);
        struct serve **at = &s->owner->first;
        while (*at != s)
            at = &(*at)->next;
        *at = s->next;
        s->owner->count--;
        if (why->rc != RC_OK)
            log_line(LOG_DEBUG, "agent", "a stream of %s ended: %s", s->ask.what, why->text);
    }
    arena_free(s->mem);
    free(s);
}

static const struct ws_events ws_events = {
    .on_open = on_open,
    .on_message = on_message,
    .on_drain = on_drain,
    .on_close = on_close,
};

void streams_open(struct streams *all, struct http_client *client, const struct open_stream *o)
{
    AUTO(str_done) struct str path = { 0 };
    if (all->count >= MAX_STREAMS) {
        log_line(LOG_WARN, "agent", "%d streams are open: one more was not served", MAX_STREAMS);
        return;
    }
    struct serve *s = calloc(1, sizeof *s);
    if (!s)
        abort();
    *s = (struct serve){ .owner = all, .next = all->first, .mem = arena_new() };
    bind_copy(&open_stream_fields, o, s->mem, &s->ask);
    all->first = s;
    all->count++;
    str_text(&path, "/v1/streams/");
    url_encode(&path, o->stream);
    s->ws = ws_dial(client, path.at, NULL, 0,
                    &(struct ws_limits){ .message_bytes = CHANNEL_MESSAGE }, &ws_events, s);
}

void streams_changed(struct streams *all, int64_t attempt)
{
    struct serve *next;
    for (struct serve *s = all ? all->first : NULL; s; s = next) {
        next = s->next;
        if (s->ask.attempt == attempt && s->ops && s->ops->on_change)
            s->ops->on_change(s);
    }
}

struct streams *streams_new(struct os *os, const char *data, const struct streams_host *host,
                            void *arg)
{
    struct streams *all = calloc(1, sizeof *all);
    if (!all)
        abort();
    *all = (struct streams){ .os = os, .data = data, .host = host, .arg = arg };
    return all;
}

void streams_free(struct streams *all)
{
    if (!all)
        return;
    for (struct serve *s = all->first; s; s = s->next) {
        let_go(s);
        s->owner = NULL;
        ws_drop(s->ws);
    }
    free(all);
}

bool streams_has(const struct streams *all, int64_t attempt)
{
    for (const struct serve *s = all ? all->first : NULL; s; s = s->next)
        if (s->ask.attempt == attempt && is_session(s))
            return true;
    return false;
}

size_t streams_count(const struct streams *s)
{
    return s->count;
}
