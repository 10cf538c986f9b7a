/* http_internal.h - what the files of the HTTP server share: a connection and the request on it.
 *
 * A connection has at most one request. The request lives in the parser's arena, so that after the
 * reply neither it nor anything it points to is left. `over` is set when the handler has ended it
 * or been told that it is gone, whichever comes first: from then on the handler is not called about
 * it again. */
#pragma once
#include "base/map.h"
#include "net/deadline.h"
#include "net/http.h"
#include "os/link.h"

enum conn_state {
    CONN_HEAD,              /* idle, or reading a head */
    CONN_BODY,
    CONN_WORK,              /* the request is whole and a reply is owed */
    CONN_LINGER,            /* the last reply is written; what still comes is thrown away */
    CONN_TAKEN,             /* another protocol has the stream */
    CONN_CLOSED,            /* on_close is on its way */
};

struct http_peer { char name[64]; int count; };
struct http_group {                     /* whose requests take turns with those of others: an address, or what the handler says */
    uint64_t id;
    int count;                          /* connections */
    int served;                         /* requests, and parts of bodies, in this turn, as far as that is known: in the millisecond round_ms */
    int64_t round_ms;
    size_t held_bytes;                  /* of heads and bodies */
    struct conn *first, **last;         /* parked */
    struct http_group *next;            /* of those with somebody parked */
    bool listed;
};

struct conn {
    struct http_server *server;
    struct conn *next, *prev;
    struct stream *stream;
    struct http_parse *parse;
    struct http_peer *peer;         /* NULL: not counted */
    struct http_request *rq;
    enum conn_state state;
    bool feeding;                   /* inside on_data, whose loop then begins the next request */
    bool extra;                     /* over the limit: only here to be told so */
    bool leaving;
    bool held;                      /* paused, because a pipelined request waits */
    bool clogged;                   /* paused, because the client does not take its replies */
    bool parked, resting;           /* paused, because it is others' turn; or because it was told to slow down */
    struct http_group *group;
    struct conn *park_next;
    struct link idle;               /* in the server's idle, while nothing of a request has come */
    bool head_begun, line_seen;     /* bytes of a head came; the request line was whole */
    bool whole;                     /* the parser saw the end of the message */
    struct deadline deadline;
    uint64_t written, taken_before; /* to tell a slow client from one that does not read at all */
    uint64_t body_before;           /* how much of a body had come when its deadline was set; the same for clients that send */
    bool body_timed;
    struct str body;                /* of one that comes in pieces */
    size_t held_bytes;              /* of it and of a head, counted in the server's */
    const struct stream_events *up; /* of the protocol that took the stream */
    void (*up_leave)(void *arg);
    void *up_arg;
};

struct http_request {
    struct conn *conn;
    struct http_head head;
    const char *path, *query;
    struct slice body;
    void *data;
    size_t body_limit, body_seen;
    bool (*on_chunk)(void *arg, struct http_request *rq, const char *at, size_t n);
    bool seen;                      /* the handler knows of it, so it must hear of its end */
    bool over;
    bool paused;                    /* the handler wants no more of the body for now */
    bool begun, chunked;            /* of the reply, as all below */
    bool bare;                      /* no body may follow its head */
    bool last;                      /* the connection closes behind it */
    int64_t rest_ms;
    int64_t left;                   /* bytes of its body still to come; -1: as many as there are */
};

struct http_server {
    struct os *os;
    struct listener *listener;
    struct http_limits limits;
    struct http_handler handler;
    void *arg;
    struct conn *conns;
    struct map *peers;
    struct map *groups;
    struct http_group *parked;      /* those with a connection whose turn has not come */
    const struct http_group *last_group;
    int64_t mixed_until_ms;         /* several groups ask: nobody has more than a small share of a turn */
    struct timer *round;
    struct link idle;               /* the one that was silent for longest first */
    int count, extras, leaving;     /* leaving: of count, cut to make room */
    size_t held_bytes;              /* of heads and bodies that are being read or worked on */
    bool closing, winding_down;
    struct timer *grace;
    struct str out;                 /* a reply's head is put together here, then written at once */
    int64_t date_second;
    char date[48];                  /* "Date: ...\r\n" of date_second */
};

/* http_conn.c */
struct conn *http_conn_open(struct http_server *s, struct stream *stream, bool extra);
void conn_write(struct conn *c, const void *at, size_t n);
void conn_refuse(struct conn *c, const struct err *why);    /* answers once, then closes */
void conn_next(struct conn *c);                             /* the reply has ended */
void conn_cut(struct conn *c);
void conn_closed(void *arg, const struct err *why);         /* its stream has closed: frees it */
void conn_go_on(struct conn *c);                            /* reads again, unless another reason speaks against it */
void conn_shut_down(struct conn *c);                        /* no more requests on it */
/* http_server.c */
void server_forget(struct http_server *s, struct conn *c);
/* http_turns.c */
void group_enter(struct conn *c, uint64_t id);              /* leaves the one it was in */
void group_leave(struct conn *c);
bool group_spent(struct conn *c, int cost);                 /* a request of it has ended, or much of a body came: is it others' turn? then it is parked */
void groups_free(struct http_server *s);
uint64_t group_of_peer(const char *peer);
/* http_reply.c */
const char *http_date(struct http_server *s);
void http_put_header(struct str *out, const char *name, const char *value);
void http_put_value(struct str *out, const char *value);    /* and CR LF; controls become blanks */

/* Another protocol takes the stream of a request: from here on its events go there. leave is called
 * when the server closes. */
struct stream *http_take(struct http_request *rq, const struct stream_events *up,
                         void (*leave)(void *arg), void *arg);
struct os *http_os(const struct http_request *rq);
