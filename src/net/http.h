/* http.h - HTTP/1.1 on streams: the server's side and the client's. Routing and meaning are not here.
 *
 * Strictness lives in wire/http_parse.h. Limits are counted before anything is kept: header bytes, body bytes, time to
 * the end of the head, time between two bytes of a body, connections in all and of one address. One request at a
 * time on a connection; a pipelined one waits unread until the reply before it has gone. */
#pragma once
#include "os/os.h"
#include "wire/http_parse.h"

struct http_server;
struct http_request;
struct http_header { const char *name, *value; };

struct http_limits {                /* the two of all clients together: the default, if zero */
    size_t head_bytes;              /* 16 KiB */
    size_t body_bytes;              /* 1 MiB, where a handler does not say otherwise in on_head */
    size_t bodies_bytes;            /* 128 MiB: of all heads and bodies that are collected at a time */
    size_t replies_bytes;           /* 256 MiB: of all that clients have not taken yet; beyond it nothing new is begun */
    int connections, per_address;   /* 10000, 2000 */
    int64_t head_ms, body_ms, idle_ms;  /* 10 s for the head; 30 s for the next part of a body, 75 s for a part of a reply, each at
                                           least 1 KiB a second; 75 s kept alive */
};
extern const struct http_limits http_limits_default;

struct http_handler {
    void (*on_head)(void *arg, struct http_request *rq);    /* may refuse, stream the body or change its limit; may be NULL */
    void (*on_request)(void *arg, struct http_request *rq); /* the body is complete; a reply is owed, now or later */
    void (*on_gone)(void *arg, struct http_request *rq);    /* the client left (or half-closed) before the reply had ended; rq is freed after it */
    void (*on_drain)(void *arg, struct http_request *rq);   /* a streamed reply may go on; may be NULL */
    /* A request that could not be understood, or for which there is no connection or memory left: write the reply's body for it
     * (problem+json). http_bad_status tells the status. */
    void (*on_bad)(void *arg, const char *peer, const struct err *why, struct str *content_type, struct str *body);
    void (*on_closed)(void *arg);       /* after http_server_close: the last connection has gone, nothing follows; may be NULL */
};
/* Whose a request is: from on_head (or, without one, on_request) on it is the handler's, until exactly one of these has happened:
 *   - the handler ends it: http_reply, http_end, http_abort or ws_accept;
 *   - the server ends it: on_gone, because the client left, its body broke the rules or came too slowly, or the server closes.
 * After either the pointer is dead. A handler that answers later therefore hangs its work on http_set_data and lets go of
 * rq in on_gone; nothing may be called on rq inside on_gone but what reads it. */
int http_bad_status(const struct err *why);     /* 400, 408, 413, 414, 431 or 503, for the `why` of on_bad */
MUST_CHECK bool http_listen(struct os *os, const char *address, struct tls *tls, const struct http_limits *limits,
                            const struct http_handler *handler, void *arg, struct http_server **out, struct err *err);
const char *http_address(const struct http_server *s);
void http_server_wind_down(struct http_server *s);      /* all is served, but each reply is the last of its connection */
void http_server_close(struct http_server *s, int64_t grace_ms);    /* no new connections; open requests get grace_ms; then freed */
/* For a loop that will not run again (stopped before os_free, or its simulated machine crashed): all is freed at once. Open
 * requests are gone, open WebSockets closed. */
void http_server_drop(struct http_server *s);
int http_connections(const struct http_server *s);

/* What came. All of it lives as long as the request. */
const char *http_method(const struct http_request *rq);
const char *http_path(const struct http_request *rq);               /* still percent-encoded, without the query */
const char *http_query(const struct http_request *rq);              /* behind the '?', or "" */
const char *http_header(const struct http_request *rq, const char *name);   /* any case; NULL if absent; repeated ones joined by ", " */
struct slice http_body(const struct http_request *rq);
const char *http_peer(const struct http_request *rq);
struct arena *http_mem(struct http_request *rq);
void *http_data(const struct http_request *rq);                     /* what the handler hung on it */
void http_set_data(struct http_request *rq, void *data);

/* In on_head. A reply given before the body is complete closes the connection behind it. */
void http_limit_body(struct http_request *rq, size_t bytes);
/* The body goes to on_chunk as it comes (false refuses the rest; a reply must have been given), then on_request is called. */
void http_stream_body(struct http_request *rq, bool (*on_chunk)(void *arg, struct http_request *rq, const char *at, size_t n));
void http_pause_body(struct http_request *rq, bool paused);         /* at any time; what was read already (one buffer) still comes */

/* Fairness on the loop. Requests of one group take turns with those of others: a group is an address until the handler says
 * whose the connection is. */
void http_group(struct http_request *rq, uint64_t group);
void http_rest(struct http_request *rq, int64_t ms);                /* after the reply its connection is not read for so long */

/* The reply: all at once, or in pieces. After http_reply or http_end rq is gone, and so is all that came with it. Date,
 * Content-Length, Transfer-Encoding and Connection are written here; control bytes in a header become blanks. HEAD and 204 get no body. */
void http_reply(struct http_request *rq, int status, const char *content_type, const struct http_header *headers, size_t count, struct slice body);
void http_begin(struct http_request *rq, int status, const char *content_type, const struct http_header *headers, size_t count, int64_t length); /* length -1: chunked */
void http_piece(struct http_request *rq, const void *at, size_t n);
size_t http_waiting(const struct http_request *rq);                 /* bytes the client has not taken yet */
void http_end(struct http_request *rq);
void http_abort(struct http_request *rq);                           /* cuts the connection: the client must not take it for a whole reply */

/* --- the client's side: one base address, a few kept-alive connections */
struct http_client;
struct http_call;
struct http_call_events {
    void (*on_head)(void *arg, int status, struct http_call *c);    /* may be NULL */
    void (*on_data)(void *arg, const char *at, size_t n);           /* NULL: the body is collected, up to 16 MiB */
    void (*on_body_drain)(void *arg, struct http_call *c);          /* connected, or room for more of the request's body; may be NULL */
    /* Exactly once; err is NULL after a whole reply of any status, else status is 0. c is freed after it; it may free the client. */
    void (*on_end)(void *arg, int status, struct slice body, const struct err *err);
};
/* A call whose kept-alive connection turns out to be closed already goes once more over a new one, if no byte of a reply came,
 * its body was given whole, and doing it twice cannot hurt: any method but POST and PATCH, or one with an Idempotency-Key. */
/* url: http://host:port, https://host:port or unix:/path. ca_pem, pin: see tls_client; token goes as Bearer. All copied. */
MUST_CHECK bool http_client_new(struct os *os, const char *url, const char *ca_pem, const char *pin, const char *token, struct http_client **out, struct err *err);
void http_client_free(struct http_client *c);                       /* open calls end with RC_UNAVAILABLE first; they must not start new ones */
void http_client_drop(struct http_client *c);                       /* for a loop that will not run again; closes its open WebSockets too */
void http_client_token(struct http_client *c, const char *token);
/* body_length: of body if given; else of what http_call_body will send (-1: chunked, 0: none). */
struct http_call *http_call(struct http_client *c, const char *method, const char *path, const struct http_header *headers, size_t count,
                            struct slice body, int64_t body_length, const struct http_call_events *events, void *arg);
const char *http_call_header(const struct http_call *c, const char *name);  /* of the reply, from on_head on */
void http_call_body(struct http_call *c, const void *at, size_t n);
size_t http_call_waiting(const struct http_call *c);
void http_call_finish(struct http_call *c);                         /* the request's body is complete */
void http_call_pause(struct http_call *c, bool paused);             /* back-pressure on the reply */
void http_call_timeout(struct http_call *c, int64_t ms);            /* without a byte from the server; 0: none (default 30 s) */
void http_call_cancel(struct http_call *c);                         /* no on_end */
