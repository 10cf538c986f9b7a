/* stream_task.c - a terminal, a port or files of a running task: frames of its supervisor's socket <-> channels of the stream.
 *
 * Either side may be slower; then the other is not read. */
#include "agent/streams_internal.h"
#include "agent/task_proto.h"
#include "wire/bind.h"
#include <stdlib.h>

enum { SOCKET_WAITING = 256 << 10 };

struct bridge {          /* lives until its socket has closed */
    struct serve *serve;   /* NULL: the stream has ended */
    struct stream *socket; /* NULL: its supervisor is not known yet, and nothing is read from the user */
};

static void send_frame(struct bridge *b, enum task_frame kind, const char *at, size_t n)
{
    unsigned char head[FRAME_HEAD];
    frame_head(head, kind, (uint32_t)n);
    stream_write(b->socket, head, sizeof head);
    stream_write(b->socket, at, n);
}

static void send_table(struct bridge *b, enum task_frame kind, const struct fields *fields,
                       const void *from)
{
    AUTO(str_done) struct str text = { 0 };
    bind_write(&(struct json_out){ .to = &text }, fields, from);
    send_frame(b, kind, text.at, text.len);
}

/* --- from the supervisor */

static bool read_table(const char *at, size_t n, const struct fields *fields, struct arena *mem,
                       void *out)
{
    struct err err = { 0 };
    struct json *doc;
    return json_parse((struct slice){ at, n }, mem, &doc, &err)
           && bind_read_ours(doc, fields, mem, out, NULL, &err);
}

static void take_end(struct serve *s, unsigned char kind, const char *at, size_t n)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct task_exit exit = { 0 };
    struct task_error error = { 0 };
    if (kind == FRAME_EXIT && read_table(at, n, &task_exit_fields, mem, &exit))
        serve_exit(s, exit.signal ? 128 + exit.signal : exit.exit_code);
    else if (kind == FRAME_ERROR && read_table(at, n, &task_error_fields, mem, &error))
        serve_fail(s, error.text);
    else
        serve_fail(s, "the task's supervisor sent what cannot be understood");
}

static void take_frame(struct serve *s, unsigned char kind, const char *at, size_t n)
{
    if (kind == FRAME_OUTPUT)
        serve_send(s, CHANNEL_OUT, at, n);
    else if (kind == FRAME_ERRORS)
        serve_send(s, CHANNEL_ERR, at, n);
    else if (kind == FRAME_OUTPUT_END)
        serve_eof(s);
    else if (kind != FRAME_READY && kind != FRAME_NEWS)
        take_end(s, kind, at, n);
}

static size_t on_data(void *arg, const char *at, size_t n)
{
    struct bridge *b = arg;
    size_t taken = 0;
    while (b->serve && n - taken >= FRAME_HEAD) {
        const unsigned char *head = (const unsigned char *)at + taken;
        uint32_t length = frame_length(head);
        if (length > FRAME_MAX) {
            serve_fail(b->serve, "the task's supervisor sent what cannot be understood");
            break;
        }
        if (n - taken < FRAME_HEAD + length)
            break;
        if (!serve_room(b->serve)) {
            stream_pause(b->socket, true);
            break;
        }
        take_frame(b->serve, head[0], at + taken + FRAME_HEAD, length);
        taken += FRAME_HEAD + length;
    }
    return b->serve ? taken : n;
}

static void on_drain(void *arg)
{
    struct bridge *b = arg;
    if (b->serve)
        serve_wait(b->serve, false);
}

static void on_close(void *arg, const struct err *why)
{
    struct bridge *b = arg;
    if (b->serve) {
        struct serve *s = b->serve;
        struct err e = { 0 };
        s->state = NULL;
        err_set(&e, RC_UNAVAILABLE, "the task's supervisor closed the connection%s%s", why->rc ? ": " : "", why->text);
        serve_fail(s, serve_alive(s) ? e.text : "the task has ended");
    }
    free(b);
}

/* --- from the user */

/* A task that talks already may not have been told to us yet: who asks then waits for that. */
static void dial(struct serve *s)
{
    static const struct stream_events events
        = { .on_data = on_data, .on_drain = on_drain, .on_close = on_close };
    const struct open_stream *o = &s->ask;
    struct bridge *b = s->state;
    char address[128];
    bool known = serve_socket(s, address);
    serve_wait(s, !known);
    if (!known)
        return;
    b->socket = stream_dial(serve_os(s), address, NULL, NULL, &events, b);
    send_table(b, FRAME_REQUEST, &task_request_fields,
               &(struct task_request){ .op = o->what,
                                       .argv = o->argv,
                                       .barred = o->barred,
                                       .tty = o->tty,
                                       .rows = o->rows,
                                       .cols = o->cols,
                                       .term = "xterm-256color",
                                       .path = o->path,
                                       .port = o->port });
}

static bool start(struct serve *s, struct err *err)
{
    size_t bytes = 0;
    for (size_t i = 0; i < s->ask.argv.count; i++)
        bytes += strlen(s->ask.argv.at[i]) + 8;
    if (bytes > FRAME_MAX / 2)
        return err_field(err, "argv", text_is(s->ask.what, "ssh") ? "the public keys are too long together" : "the command is too long");
    struct bridge *b = calloc(1, sizeof *b);
    if (!b)
        abort();
    b->serve = s;
    s->state = b;
    dial(s);
    return true;
}

static void on_change(struct serve *s)
{
    const struct bridge *b = s->state;
    if (!b->socket && !serve_alive(s))
        serve_fail(s, "the task has ended");
    else if (!b->socket)
        dial(s);
}

static void on_input(struct serve *s, const char *at, size_t n)
{
    struct bridge *b = s->state;
    while (n) {
        size_t m = MIN(n, FRAME_MAX);
        send_frame(b, FRAME_INPUT, at, m);
        at += m, n -= m;
    }
    if (stream_waiting(b->socket) > SOCKET_WAITING)
        serve_wait(s, true);
}

static void on_eof(struct serve *s)
{
    send_frame(s->state, FRAME_INPUT_END, "", 0);
}

static void on_control(struct serve *s, const struct json *m)
{
    const struct json *size = json_get(m, "resize");
    int64_t signal = json_int(m, "signal", 0);
    if (size && size->type == JSON_LIST && size->first && size->first->is_int && size->first->next
        && size->first->next->is_int) {
        struct task_resize resize = { size->first->number, size->first->next->number };
        if (resize.rows > 0 && resize.rows <= 10000 && resize.cols > 0 && resize.cols <= 10000)
            send_table(s->state, FRAME_RESIZE, &task_resize_fields, &resize);
    }
    if (signal > 0 && signal <= 64)
        send_table(s->state, FRAME_SIGNAL, &task_signal_fields, &(struct task_signal){ signal });
}

static void on_room(struct serve *s)
{
    struct bridge *b = s->state;
    if (b->socket)
        stream_pause(b->socket, false);
}

static void stop(struct serve *s)
{
    struct bridge *b = TAKE(s->state);
    if (!b)
        return;
    b->serve = NULL;
    if (b->socket)
        stream_close(b->socket);
    else
        free(b);
}

const struct serve_ops serve_task = {
    .start = start,
    .on_input = on_input,
    .on_eof = on_eof,
    .on_control = on_control,
    .on_room = on_room,
    .on_change = on_change,
    .stop = stop,
};
