/* http_pass.h - a request handed on to another server, and its reply back, bytes as they come; WebSockets as a tunnel of bytes.
 *
 * Whom to hand it to, and what to do when that fails, is not here. Headers that belong to one connection stay on it. */
#pragma once
#include "net/http.h"

struct http_pass;
struct http_pass_events {
    /* Nothing of a reply was given on, so rq is still the caller's, who must answer it. sent: the other server may have taken the
     * request. The pass is over. */
    void (*on_failed)(void *arg, const struct err *why, bool sent);
    bool (*on_head)(void *arg, int status);     /* false: this reply is not given on; on_failed follows, not sent, with RC_NOT_WRITER. May be NULL */
    void (*on_taken)(void *arg);                /* a tunnel now: rq is gone, on_done comes later */
    void (*on_done)(void *arg);                 /* rq is over: replied to, or cut. The pass is over */
};
/* The body is rq's, if it is whole; with stream it comes by http_pass_body and http_pass_finish. */
struct http_pass *http_pass(struct http_client *to, struct http_request *rq, const struct http_header *extra, size_t count, bool stream,
                            const struct http_pass_events *events, void *arg);
void http_pass_body(struct http_pass *p, const void *at, size_t n);     /* pauses rq's body while the other server does not take it */
void http_pass_finish(struct http_pass *p);
void http_pass_drained(struct http_pass *p);    /* from on_drain of rq */
void http_pass_hurry(struct http_pass *p, int64_t ms);      /* unless a reply begins within this time of silence it fails */
bool http_pass_begun(const struct http_pass *p);            /* its reply has begun, or it is a tunnel */
/* No event follows. gone: rq is, or is about to be (on_gone). Else it is cut here if a reply has begun, and stays the caller's if not. */
void http_pass_stop(struct http_pass *p, bool gone);
