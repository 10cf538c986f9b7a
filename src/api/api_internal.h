/* api_internal.h - what the files of api/ share.
 *
 * A visit is one HTTP request on its way through the door. The request may go (the client leaves)
 * while the writer still works with its body; so a visit has an arena of its own and ends only when
 * nobody needs it: `dead` says that the client's side is over, `waiting` that the door's is not. */
#pragma once
#include "api/api.h"
#include "api/limits.h"
#include "base/log.h"
#include "base/map.h"
#include "base/rand.h"
#include "model/ask.h"
#include "model/order.h"
#include "net/ws.h"
#include "wire/bind.h"

enum { PATH_PARTS = 8, PATH_PARAMS = 2, REQUEST_ID = 24, SPARE_VISITS = 64 };

struct api {
    struct os *os;
    struct control *control;
    struct http_server *http;
    struct router *router;
    struct blobs *blobs;
    struct backups *backups;
    struct str openapi;
    char version[64];
    bool simulated;
    struct rng ids;
    struct timer *watch;
    int64_t watch_ms;
    struct visit *kept;                 /* long ones: cut when their credential is no longer good */
    struct follower *followers;         /* of events */
    size_t held_bytes;                  /* of what they will be told when they have read their history */
    struct map *links;                  /* node -> struct node_link, the live one */
    struct map *awaited;                /* word of a stream -> struct await */
    struct limits *limits;
    struct turns *turns;
    struct map *crowds;                 /* project -> how many streams it has */
    struct passer *passer;              /* to the server that writes */
    struct asking *asking;              /* that one, by ourselves; NULL: nothing */
    struct logs *tails;                 /* log followers that wait for something to happen */
    struct arena *spare[SPARE_VISITS];  /* of visits that are over, for the next */
    int spares;
    const void *settled[VERB_COUNT];    /* what a verb takes when nothing is given, of those that were asked for; in settled_mem */
    struct arena *settled_mem;
    struct arena *scratch;              /* of the document that is being read: only what is bound of it stays */
    size_t users;                       /* visits, messages of links: they keep this struct alive */
    enum page { PAGE_UNKNOWN, PAGE_THERE, PAGE_NONE } pages[VERB_COUNT];    /* about what this verb makes, for Location */
    bool closing, http_gone;
    void (*on_closed)(void *arg);
    void *arg;
};
void api_hold(struct api *a);
void api_release(struct api *a);
/* How many bytes may wait for one client before its source is stopped: fewer when many clients do not take theirs. */
size_t api_room(const struct api *a);

/* --- router.c: method and path -> verb. A literal part goes before a {parameter}. */
struct match {
    enum verb_id verb;
    size_t count;
    struct { struct slice name, value; } params[PATH_PARAMS];   /* values still percent-encoded */
};
enum found { FOUND, FOUND_NO_PATH, FOUND_OTHER_METHODS };
struct router *router_new(void);
void router_free(struct router *r);
AUTO_FN(struct router *, router_free)
enum found router_find(const struct router *r, const char *method, const char *path,
                       struct match *out, char allow[static 64]);

/* --- visit.c */
struct visit {
    struct api *api;
    struct http_request *rq;            /* NULL: it is over, or has become a WebSocket */
    const char *peer;                   /* the client's address, also where another server has passed its request on */
    bool passed, passing, streams;      /* on by another; on to another; its body is taken in pieces */
    const struct verb *verb;
    enum verb_id verb_id;
    struct arena *mem;
    struct turn turn;                   /* before the door */
    struct request ask;                 /* what the door has, or has answered; its mem lives until the next */
    const void *body;                   /* as verb->takes says, for asking again */
    uint64_t given;
    const char *idem;
    char body_hash[DIGEST_HEX];
    int64_t if_match, began_ms, checked_ms;     /* checked: when one that is kept was last looked at by the watch */
    struct credential from;
    struct caller who;                  /* who the door found, the last time that it let this in */
    struct err bad;                     /* rc RC_OK: the request could be read */
    int bad_status;                     /* 415 and the like; 0: as bad.rc says */
    bool waiting, dead, begun, keeping;
    bool refused;                       /* by a limit, which has counted it */
    struct visit *kept_next, *kept_prev;
    void *work;                         /* of whoever serves it, with these: */
    void (*answered)(struct visit *v);
    void (*body_trusted)(struct visit *v);
    void (*gone)(struct visit *v);      /* the client left: let go of work and of v */
    void (*drained)(struct visit *v);
};
struct visit *visit_new(struct api *a, struct http_request *rq, const struct match *m);
/* Sends verb through the door; answered(v) comes later, unless the visit is dead by then. */
void visit_ask(struct visit *v, enum verb_id verb, const void *body,
               void (*answered)(struct visit *v));
void visit_ask_inside(struct visit *v, enum verb_id verb, const void *body,
                      void (*answered)(struct visit *v));       /* as who the door found */
void visit_gone(struct visit *v);       /* from on_gone */
void visit_end(struct visit *v);        /* its reply is out, or its WebSocket closed */
void visit_forget(struct visit *v);     /* what the door answered is not needed any more */
void visit_keep(struct visit *v);       /* a long one: checked again when somebody's rights change */
void visits_recheck(struct api *a);
void visits_watch(struct api *a, int64_t every_ms);     /* rechecks from now on, for keys that expire */
void request_id(struct api *a, char out[static REQUEST_ID]);

/* --- request.c: what came -> v->from, v->body and the rest; or v->bad */
void request_read(struct visit *v, const struct match *m);
bool request_defer(struct visit *v, void (*trusted)(struct visit *v));   /* true: a large body, and the door is asked first who sends it */
void request_refuse(struct visit *v);                   /* tells what is bad, to whom the door knows */
bool request_accepts(const struct visit *v, const char *type);

/* --- reply.c: each ends the visit, but reply_begin */
void reply_answer(struct visit *v);                     /* v->ask as the door answered it */
void reply_json(struct visit *v, int status, struct slice json);
void reply_problem(struct visit *v, const struct err *why);
void reply_status(struct visit *v, int status, const struct err *why);
void reply_error(struct visit *v, enum rc rc, const char *fmt, ...) PRINTF(3, 4);
void reply_upgrade(struct visit *v);                    /* speak WebSocket here */
void reply_begin(struct visit *v, const char *type, int64_t length, const char *etag);
void reply_not_writer(struct visit *v);                 /* 421, with who does */
void reply_not_allowed(struct visit *v, const char *allow);
void problem_print(struct str *out, int status, const struct err *why, const char *instance);
void reply_cut(struct visit *v);                        /* half of it is out, and must not look whole */
void reply_done(struct visit *v);                       /* a begun reply is whole */

/* --- system.c, openapi.c */
bool system_serve(struct api *a, struct http_request *rq);      /* false: not one of its paths */
void openapi_print(struct str *out, const char *version, bool simulated);

/* --- events.c, links.c, streams.c, logs.c, blobs.c */
void events_begin(struct visit *v);
void events_commit(struct api *a, const struct commit *k);
void events_close(struct api *a);
void sse_print(struct str *out, const char *id, const char *kind, struct slice data);

/* --- pass.c */
void pass_open(struct api *a, const char *ca_pem);
void pass_close(struct api *a);                                 /* nothing more is asked of others by ourselves */
void pass_free_all(struct api *a);
const char *pass_address(struct api *a, struct http_request *rq, struct arena *mem, bool *passed);
bool pass_wanted(const struct visit *v);                        /* it is for the one that writes, and that is not this server */
void pass_needed(const struct visit *v);                        /* somebody came who needs that one */
void pass_begin(struct visit *v);
void pass_begin_stream(struct visit *v, size_t most);           /* in on_head: the body goes on as it comes */
void pass_whole(struct visit *v);                               /* that body has come */
const char *pass_ca(const struct api *a);                       /* that other servers are known by; NULL: the system's */
bool pass_instead(struct visit *v);                             /* the door does not write any more; false: it is too late to pass it on */
void visit_serve(struct visit *v);                              /* here, after all (api.c) */

/* --- self.c */
void token_begin(struct visit *v);
void token_close(struct api *a);

void link_begin(struct visit *v);
void links_commit(struct api *a, const struct commit *k);
void links_check(struct api *a, int64_t before_ms);             /* those that were last checked before: does their key still hold? */
void links_close(struct api *a);
void links_turn(struct api *a);                                 /* agents go to the one that writes */
MUST_CHECK bool links_open_stream(struct api *a, int64_t node, const struct open_stream *o,
                                  struct err *err);

/* An agent is told to dial back. Exactly one of the two follows, unless await_stop comes before. */
struct await;
struct await_events {
    void (*on_agent)(void *arg, struct visit *agent);   /* accept its WebSocket, then visit_end it */
    void (*on_failed)(void *arg, const struct err *why);
};
MUST_CHECK bool await_start(struct api *a, int64_t node, struct open_stream *o,
                            const struct await_events *events, void *arg, struct await **out,
                            struct err *err);
void await_stop(struct await *w);                               /* NULL is fine */
void stream_answer_begin(struct visit *v);                      /* /v1/streams/{stream} */
void splice_begin(struct visit *v);                             /* exec and files */
struct where {                                                  /* the door's answer to a STREAM verb */
    int64_t node, attempt, volume, project;
    char state[16], task_state[16], job_state[16];              /* of the attempt, its task, its job */
};
MUST_CHECK bool where_read(struct visit *v, struct where *out, struct err *err);
MUST_CHECK bool crowd_enter(struct api *a, int64_t project, struct err *err);
void crowd_leave(struct api *a, int64_t project);

void logs_begin(struct visit *v);
void logs_commit(struct api *a, const struct commit *k);
void logs_close(struct api *a);

MUST_CHECK bool blobs_open(struct api *a, const char *data, struct store *store, struct blobs **out, struct err *err);
void blobs_close(struct blobs *b);
void blobs_commit(struct api *a, const struct commit *k);
enum { BLOB_MOST_GIB = 20 };
void blob_put_head(struct visit *v);                            /* in on_head: the body streams */
void blob_put_whole(struct visit *v);                           /* in on_request */
void blob_get_begin(struct visit *v);

MUST_CHECK bool backups_open(struct api *a, const char *data, struct store *store,
                             struct backups **out, struct err *err);
void backups_close(struct backups *b);
void backup_begin(struct visit *v);
