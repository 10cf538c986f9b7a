/* http_client_internal.h - what the files of the HTTP client share: calls, and the lines
 * (connections) they go over.
 *
 * A line has at most one call. It is freed only when its stream has closed; a call may end, or be
 * cancelled, inside any of its own callbacks, so after each of them line->call must be looked at
 * again before the call is touched. */
#pragma once
#include "net/deadline.h"
#include "net/http.h"

/* Who has the stream after a 101. */
struct http_taker { const struct stream_events *up; void *arg; };
typedef struct http_taker http_take_fn(void *arg, struct http_call *k, struct stream *s);

struct line {
    struct http_client *client;         /* NULL: the client is freed */
    struct line *next, *prev;
    struct stream *stream;
    struct http_parse *parse;
    struct http_call *call;
    bool open, whole, cut;
    bool used, got;                     /* it carried a call before; a byte of this reply came */
    bool taken;                         /* `taker` has the stream, or is just being asked */
    int64_t idle_since;
    uint64_t written;
    struct http_taker taker;
};

struct http_call {
    struct http_client *client;
    struct http_call *next, *prev;
    struct line *line;                  /* NULL once it has ended */
    struct http_call_events events;
    void *arg;
    struct str out;                     /* the request: what is not written yet, or all while */
    bool again;                         /* it may be sent again */
    bool sent, chunked, finished, retried, paused, head_method;
    int64_t left;                       /* bytes of the request's body that are still owed */
    struct http_head head;              /* of the reply; its memory is the parser's */
    struct str body;
    struct err why;                     /* why we cut the line ourselves */
    struct deadline deadline;
    int64_t timeout_ms;
    uint64_t taken_before;
    http_take_fn *take;
};

struct http_client {
    struct os *os;
    struct tls *tls;
    char *address, *host, *server_name, *token;
    struct line *lines;
    struct http_call *calls;
    bool closing;
};

/* http_client.c */
void line_assign(struct http_client *c, struct http_call *k, bool fresh);
void line_write(struct line *l, const void *at, size_t n);
void line_cut(struct line *l);
/* http_call.c */
void call_send(struct http_call *k);
void call_end(struct http_call *k, int status, const struct err *err);  /* it has no line */
void call_unlink(struct http_call *k);                  /* off the client, which may go before it */
void call_free(struct http_call *k);
void call_fail(struct http_call *k, enum rc rc, const char *text);      /* ends when the line has */
void call_alive(struct http_call *k);                                   /* a byte came */
bool call_collect(struct http_call *k, const char *at, size_t n);

/* An upgrade: on a 101 `take` gets the stream and the call is gone without on_end; anything else
 * ends it as usual. */
struct http_call *http_call_upgrade(struct http_client *c, const char *path,
                                    const struct http_header *headers, size_t count,
                                    const struct http_call_events *events, http_take_fn *take,
                                    void *arg);
struct os *http_client_os(const struct http_client *c);
