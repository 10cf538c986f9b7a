/* ws_internal.h - what opening a WebSocket and talking over it share. */
#pragma once
#include "net/ws.h"
#include <wslay/wslay.h>

enum { WS_KEY_TEXT = 32 };      /* base64 of 16 or of 20 bytes, and a NUL */

struct ws {
    struct os *os;
    struct stream *stream;      /* NULL while it is dialled */
    struct http_call *dial;
    char expected[WS_KEY_TEXT]; /* what the server must answer to our key */
    wslay_event_context_ptr frames;     /* NULL: nothing of a message is under way in either direction */
    uint64_t fed, framed;       /* bytes that it was given, and those of the frames it has seen the head of */
    bool in_frame, in_message;  /* some of a frame, of a message, has come */
    bool reading;               /* inside wslay */
    struct ws_events events;
    void *arg;
    struct ws_limits limits;
    const char *in;             /* inside on_data: what wslay has not taken yet */
    size_t in_len;
    bool client, paused, dropped;
    bool goodbye;               /* ours is said or queued: no more messages in either direction */
    bool heard;                 /* a byte came since the last ping */
    int silent;                 /* pings without one */
    int unread_pings;
    struct timer *ping, *last;  /* last: the time the peer has to leave after a goodbye */
    size_t waiting_before;
    int code;
    char *elsewhere;            /* NULL: nowhere */
    struct err *why;            /* NULL: not known yet */
};

struct ws *ws_new(struct os *os, bool client, const struct ws_limits *limits,
                  const struct ws_events *events, void *arg);
void ws_open(struct ws *w, struct stream *s);
void ws_over(struct ws *w, const struct err *otherwise);    /* on_close, then freed */
void ws_leave(void *arg);                                   /* the server closes */
extern const struct stream_events ws_stream_events;
