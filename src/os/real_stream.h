/* real_stream.h - the inside of a real stream, shared by real_stream.c and real_dial.c only. */
#pragma once
#include "os/real.h"

enum phase { PHASE_LOOKUP, PHASE_CONNECTING, PHASE_HANDSHAKE, PHASE_OPEN, PHASE_LINGERING };

struct out { char *at; size_t head, len, room; };
struct dial {
    char address[128];
    struct address to;
    struct sockets found;
    size_t next;
    struct lookup *lookup;
    struct tls *tls;
    char server_name[256];
};

struct rstream {
    struct stream base;
    struct source src;
    enum phase phase;
    struct link ready, dirty, over;     /* in the loop's rings of the same meaning */
    bool dialled, is_socket, can_read, can_write;
    bool polled;                        /* epoll tells when; else it is a file, always ready */
    bool readable, writable, hup;       /* what epoll told and nothing has used up since */
    bool paused, again, showing;        /* again: what was kept is to be shown once more; showing: inside on_data */
    bool eof, was_full;
    bool deaf;                          /* the peer hears nothing more: its last words are read */
    bool shut, shut_done, ending;       /* asked for; to be done when the out-buffer is empty */
    bool closing, linger;               /* on_close is due, or has been */
    struct timer *linger_timer;
    struct str in;                      /* what on_data left */
    size_t kept_noted;                  /* of it, in the loop's count */
    struct out out;
    struct ssl_st *ssl;
    struct tls *tls;                    /* of one that was accepted and has said nothing yet: until then it costs next to nothing */
    bool deferred;                      /* a step of its handshake waits for the next turn */
    struct link shaking;                /* in the loop's ring of the same name */
    int64_t shaking_ms;                 /* since when */
    struct dial *dial;
    struct err *why;                    /* NULL: nothing has failed. There are many, and few fail */
};

struct rstream *rstream_new(struct real *r, const struct stream_events *events, void *arg);
/* into epoll; false: errno, fd is the caller's */
bool rstream_take_socket(struct rstream *s, int fd);
void rstream_start(struct rstream *s, struct tls *tls, const char *server_name);    /* connected */
void rstream_finish(struct rstream *s);                 /* on_close follows with s->why */
struct err *rstream_why(struct rstream *s);             /* to be filled: something failed */
void rstream_ready(struct rstream *s);                  /* looked at again at the end of the turn */
void dial_progress(struct rstream *s);
void dial_free(struct rstream *s);
