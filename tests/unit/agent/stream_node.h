/* stream_node.h - a node of straw for the tests of streams: one attempt, whose log lies in /logs and whose supervisor's socket
 * is /sock; the test writes the log and answers for the supervisor. */
#pragma once
#include "agent/log_format.h"
#include "agent/streams.h"
#include "agent/task_proto.h"
#include "head.h"
#include "model/channel.h"
#include <stdlib.h>
#include <string.h>

struct node {
    struct sim *sim;
    struct head head;
    struct os *os;
    struct http_client *client;
    struct streams *streams;
    bool alive;
    /* the supervisor */
    struct listener *listener;
    struct stream *socket;
    struct str got;             /* frames, as they came */
    int dials, closes;
    bool unknown;               /* nobody has told of the supervisor yet */
};

static inline bool is_alive(void *arg, int64_t attempt) { return ((struct node *)arg)->alive && attempt == 7; }
static inline void log_folder(void *arg, int64_t attempt, char out[static 256]) { (void)arg, (void)attempt; snprintf(out, 256, "/logs"); }
static inline bool socket_path(void *arg, int64_t attempt, char out[static 108])
{
    (void)attempt;
    snprintf(out, 108, "/sock");
    return !((struct node *)arg)->unknown;
}
static const struct streams_host host = { .is_alive = is_alive, .log_folder = log_folder, .socket = socket_path };

static inline size_t sup_data(void *arg, const char *at, size_t n)
{
    struct node *x = arg;
    str_put(&x->got, at, n);
    return n;
}
static inline void sup_close(void *arg, const struct err *why)
{
    struct node *x = arg;
    (void)why;
    x->socket = NULL;
    x->closes++;
}
static inline void sup_accept(void *arg, struct stream *s)
{
    static const struct stream_events events = { .on_data = sup_data, .on_close = sup_close };
    struct node *x = arg;
    x->dials++;
    x->socket = s;
    stream_bind(s, &events, x);
}

static inline void node_open(struct node *x, uint64_t seed)
{
    struct err err = { 0 };
    *x = (struct node){ .sim = sim_new(seed), .alive = true };
    head_open(&x->head, x->sim);
    x->os = sim_machine(x->sim, "n1");
    CHECK(http_client_new(x->os, "http://head:80", NULL, NULL, "nk_1", &x->client, &err));
    CHECK(dir_make(x->os, "/logs", 0700, &err));
    CHECK(stream_listen(x->os, "unix:/sock", NULL, sup_accept, x, &x->listener, &err));
    x->streams = streams_new(x->os, "/data", &host, x);
}

static inline void node_close(struct node *x)
{
    streams_free(x->streams);
    listener_close(x->listener);
    run_for(x->sim, 20000);
    http_client_free(x->client);
    head_free(&x->head);
    run_for(x->sim, 20000);
    str_done(&x->got);
    sim_free(x->sim);
}

static inline void print(struct node *x, int segment, char stream, const char *text)
{
    char head[LOG_HEADER_MAX], name[LOG_SEGMENT_NAME + 1], path[64];
    AUTO(str_done) struct str record = { 0 };
    struct err err = { 0 };
    str_put(&record, head, log_header(head, 1731677000123, stream, strlen(text)));
    str_text(&record, text);
    log_segment_name(name, segment);
    snprintf(path, sizeof path, "/logs/%s", name);
    CHECK(file_append(x->os, path, (struct slice){ record.at, record.len }, false, &err));
}

static inline void ask(struct node *x, struct open_stream o)
{
    o.kind = "open";
    o.stream = "st_1";
    o.attempt = o.volume ? 0 : 7;
    streams_open(x->streams, x->client, &o);
}

static inline bool out_is(const struct node *x, const char *out, const char *err)
{
    const struct head_stream *s = &x->head.stream;
    bool same = text_is(s->out.at ? s->out.at : "", out) && text_is(s->err.at ? s->err.at : "", err);
    if (!same)
        printf("# out [%s] err [%s]\n", s->out.at ? s->out.at : "", s->err.at ? s->err.at : "");
    return same;
}
/* The last that was said on that channel: what is followed has its places before. */
static inline bool control_is(const struct node *x, const char *text)
{
    const struct str *s = &x->head.stream.control;
    size_t n = strlen(text);
    return s->len >= n && text_is(s->at + s->len - n, text) && (s->len == n || strstr(s->at, "\"at\":"));
}

static inline void say_frame(struct node *x, enum task_frame kind, const char *text)
{
    unsigned char head[FRAME_HEAD];
    frame_head(head, kind, (uint32_t)strlen(text));
    stream_write(x->socket, head, sizeof head);
    stream_write(x->socket, text, strlen(text));
}

/* The n-th frame that came, as "kind payload". */
static inline const char *frame_at(const struct node *x, int n, struct arena *mem)
{
    size_t at = 0;
    while (at + FRAME_HEAD <= x->got.len) {
        uint32_t length = frame_length((const unsigned char *)x->got.at + at);
        if (n-- == 0)
            return arena_printf(mem, "%c %.*s", x->got.at[at], (int)length, x->got.at + at + FRAME_HEAD);
        at += FRAME_HEAD + length;
    }
    return "";
}

static inline void exec(struct node *x, uint64_t seed)
{
    node_open(x, seed);
    ask(x, (struct open_stream){ .what = "exec", .argv = { (const char *[]){ "sh", "-i" }, 2 }, .tty = true, .rows = 24, .cols = 80 });
    run_for(x->sim, 1000);
}
