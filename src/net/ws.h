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
struct ws_limits { size_t message_bytes; int64_t ping_ms; };        /* defaults, if zero: 1 MiB, 10 s */

bool ws_asked(const struct http_request *rq);                       /* a valid upgrade request? */
struct ws *ws_accept(struct http_request *rq, const struct ws_limits *limits, const struct ws_events *events, void *arg);   /* takes rq */
struct ws *ws_dial(struct http_client *c, const char *path, const struct http_header *headers, size_t count,
                   const struct ws_limits *limits, const struct ws_events *events, void *arg);
void ws_send(struct ws *w, bool text, const void *at, size_t n);
size_t ws_waiting(const struct ws *w);
void ws_pause(struct ws *w, bool paused);
void ws_close(struct ws *w, int code, const char *reason);          /* says goodbye, then on_close */
void ws_drop(struct ws *w);                                         /* cuts it; on_close follows */
