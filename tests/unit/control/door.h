/* door.h - a whole door in a test: a store on a simulated disk, a control on it, and requests as JSON with a key.
 *
 * A world that took long to make can be frozen and thawed many times; a machine can crash at any step with requests under way. What
 * a crash leaves in flight is nobody's, so the simulation of a crashed door is kept in sight of the leak checker until the end. */
#pragma once
#include "base/fault.h"
#include "control/control_internal.h"
#include "model/hello.h"
#include "os/sim.h"
#include "tap.h"

struct door {
    struct sim *sim;
    struct os *os;
    struct store *store;
    struct conn *conn;              /* of the test itself, for reading */
    struct control *control;
    struct arena *mem;
    bool plan, crashed, no_network, no_disks;   /* no_network, no_disks: of the nodes that say hello */
    const char *underlay;           /* of the nodes that say hello; NULL: one that all have, "": they have none */
    char admin[SECRET_TEXT];        /* the first key: operator, and admin of project `default` */
};
struct answer { bool ok; struct err err; const char *text; struct json *json; int64_t version; bool replayed; };

struct door *door_new(bool plan);
struct door *door_seed(bool plan, uint64_t seed);
void door_free(struct door *d);
static inline void door_free_auto(struct door **d) { door_free(*d); }

/* The files of a door that is closed, as they lie on its disk. */
struct frozen { struct { char path[64]; struct slice bytes; } files[16]; size_t count; };
void door_freeze(struct door *d, struct frozen *out);           /* closes and frees d; the bytes are the caller's to frozen_done */
void frozen_done(struct frozen *f);
struct door *door_thaw(const struct frozen *f, bool plan);

/* body: a JSON object that holds path, query and body members alike; NULL: {}. key NULL: none. */
struct answer door_ask(struct door *d, const char *key, enum verb_id verb, const char *body);
struct answer door_ask_as(struct door *d, const struct caller *who, enum verb_id verb, const void *body);   /* bound already; NULL: nothing */
struct answer door_ask_full(struct door *d, const char *key, const char *project, enum verb_id verb, const char *body, const char *idem, int64_t if_match);
struct answer door_ask_bound(struct door *d, const char *key, const char *project, enum verb_id verb, const void *body);
/* A request under way. It lives in d->mem. */
struct flying { struct request r; bool done; };
struct flying *door_send(struct door *d, const char *key, const char *project, enum verb_id verb, const char *body, const char *idem);
struct answer door_landed(struct door *d, struct flying *f);    /* waits for it */

void door_run(struct door *d, int64_t ms);          /* time passes */
bool door_crash(struct door *d);                    /* the machine dies and comes back with what was synced */
const char *get(const struct answer *a, const char *member);    /* a text member of the reply, or "" */
int64_t get_int(const struct answer *a, const char *member);
const char *item(struct door *d, const struct answer *a, size_t at, const char *member);     /* of a list; NULL: there is none */
size_t item_count(const struct answer *a);
int64_t rows_in(struct door *d, const char *table);
size_t door_events(struct door *d, const char *kind);    /* among the first thousand */
bool on_disk(struct door *d, const char *bytes);    /* do these bytes stand anywhere in the files of the store? */
#define FMT(d, ...) arena_printf((d)->mem, __VA_ARGS__)
struct state *memory_of(struct door *d);

/* A node that has joined and said hello with gpus simulated GPUs; its key goes to key. */
void door_node(struct door *d, const char *name, int gpus, char key[static SECRET_TEXT]);
struct answer door_hello(struct door *d, const char *key, const char *name, int gpus, int64_t next, struct texts running);
struct answer door_report(struct door *d, const char *key, int64_t n, const char *attempt, const char *news, const char *more);
/* A key without the detour of a password. */
const char *door_grant(struct door *d, enum principal kind, const char *owner, const char *project, unsigned roles, int64_t expires_ms);
const char *door_submit(struct door *d, const char *key, const char *body);         /* its id; "" when it was refused */
const char *door_attempt(struct door *d, const char *job, int64_t task);            /* of `default`: the last attempt of a task, "" none */
const char *job_word(struct door *d, const char *job, const char *member);          /* of `default` */
int64_t job_number(struct door *d, const char *job, const char *member);
bool door_place(struct door *d, const char *job, int64_t task, const char *node, int gpu);   /* job.place without a planner; gpu -1: none */

/* door_digest.c: memory, store and the planner's picture as texts that are equal when they are. */
const char *memory_text(struct door *d, const struct state *s, int64_t project);    /* project 0: everything */
const char *store_text(struct door *d);             /* rows of every table, counted */
void check_books(struct door *d, const char *where);    /* memory rebuilt from the store equals the memory, and events have no gap */
void check_picture(struct door *d, const char *where);  /* the planner's picture equals one built from scratch; lets time pass until it is quiet */
