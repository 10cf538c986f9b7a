/* ws.h - WebSocket (RFC 6455, framed by wslay) on either side. Messages are bounded; pings answer by themselves, and a peer
 * that is silent for 3 pings is closed. */
#pragma once
#include "net/http.h"

struct ws;
struct ws_events {
    void (*on_open)(void *arg, struct ws *w);                       /* client's side only */
    void (*on_message)(void *arg, struct ws *w, bool text, const char *at, size_t n);
    void (*on_drain)(void *arg, struct ws *w);                      /* may be NULL */
    void (*on_close)(void *arg, struct ws *w, const struct err *why);   /* exactly once; w is freed after it. A refused dial
                                                                           carries the rc and text of the server's problem+json */
};
/* Why it closed: rc RC_OK after a goodbye with code 1000; codes 4400 to 4599 stand for the HTTP status behind the 4. */
struct ws_limits { size_t message_bytes; int64_t ping_ms; };        /* defaults, if zero: 1 MiB, 10 s */

/* In on_close: the code of the goodbye (4000 and the HTTP status of a refused dial; 0: there was none), and the server that a refusal
 * named in the header Arcus-Writer ("": none). */
int ws_code(const struct ws *w);
const char *ws_elsewhere(const struct ws *w);

bool ws_asked(const struct http_request *rq);                       /* a valid upgrade request? */
struct ws *ws_accept(struct http_request *rq, const struct ws_limits *limits, const struct ws_events *events, void *arg);   /* in on_request or later; takes rq. When the server closes, the peer is told 1001 */
struct ws *ws_dial(struct http_client *c, const char *path, const struct http_header *headers, size_t count,
                   const struct ws_limits *limits, const struct ws_events *events, void *arg);
/* The ws outlives c once it is open; before that http_client_free ends it. What is sent before on_open waits for it. */
void ws_send(struct ws *w, bool text, const void *at, size_t n);    /* copied; a text must be UTF-8; nothing after ws_close */
size_t ws_waiting(const struct ws *w);
void ws_pause(struct ws *w, bool paused);                           /* what was read already (4 KiB at most) still comes */
void ws_close(struct ws *w, int code, const char *reason);          /* says goodbye, then on_close */
void ws_drop(struct ws *w);                                         /* cuts it; on_close follows */
