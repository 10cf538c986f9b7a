/* streams_internal.h - between streams.c, which speaks with the server, and what it carries (stream_*.c). */
#pragma once
#include "agent/streams.h"
#include "model/channel.h"
#include "net/ws.h"
#include "wire/json.h"

struct serve;
struct serve_ops {
    bool (*start)(struct serve *s, struct err *err);                /* the WebSocket is up */
    void (*on_input)(struct serve *s, const char *at, size_t n);    /* may be NULL, as all below */
    void (*on_eof)(struct serve *s);
    void (*on_control)(struct serve *s, const struct json *message);
    void (*on_room)(struct serve *s);                               /* serve_room holds again */
    void (*on_change)(struct serve *s);                             /* the attempt's status changed */
    void (*stop)(struct serve *s);                                  /* lets go of s->state; called once if start was */
};
extern const struct serve_ops serve_logs, serve_task, serve_folder;

struct serve {
    struct streams *owner;          /* NULL: the agent is leaving */
    struct serve *next;
    struct ws *ws;
    const struct serve_ops *ops;    /* NULL: before start and after the end */
    struct arena *mem;
    struct open_stream ask;         /* texts in mem */
    void *state;
};

struct os *serve_os(const struct serve *s);
void serve_log_folder(const struct serve *s, char out[static 256]);
bool serve_socket(const struct serve *s, char address[static 128]);    /* of the task's supervisor, as stream_dial takes it; false: not yet, on_change comes */
const char *serve_data(const struct serve *s);
bool serve_alive(const struct serve *s);                            /* the attempt has not ended */

bool serve_room(const struct serve *s);                             /* the connection takes more; else wait for on_room */
enum { SERVE_PIECE = 32 << 10 };                                    /* the most that is sent as one message */
void serve_send(struct serve *s, enum channel channel, const char *at, size_t n);
void serve_wait(struct serve *s, bool wait);                        /* no more input for now */
void serve_eof(struct serve *s);                                    /* {"eof":true}, and it goes on */
/* The ends; the state is let go of inside, so return at once. */
void serve_done(struct serve *s);                                   /* {"eof":true} */
void serve_exit(struct serve *s, int64_t code);
void serve_fail(struct serve *s, const char *why);
