/* door.h - a whole door in a test: a store on a simulated disk, a control on it, and requests as JSON with a key. */
#pragma once
#include "base/fault.h"
#include "control/control_internal.h"
#include "os/sim.h"
#include "tap.h"

struct door {
    struct sim *sim;
    struct os *os;
    struct store *store;
    struct control *control;
    struct arena *mem;
    char admin[SECRET_TEXT];        /* the first key: operator, and admin of project `default` */
};
struct answer { bool ok; struct err err; const char *text; struct json *json; int64_t version; bool replayed; };

struct door *door_new(bool plan);
void door_free(struct door *d);
static inline void door_free_auto(struct door **d) { door_free(*d); }
/* body: a JSON object that holds path, query and body members alike; NULL: {}. key NULL: none. */
struct answer door_ask(struct door *d, const char *key, enum verb_id verb, const char *body);
struct answer door_ask_as(struct door *d, const struct caller *who, enum verb_id verb, const char *body);
struct answer door_ask_full(struct door *d, const char *key, const char *project, enum verb_id verb, const char *body, const char *idem, int64_t if_match);
void door_run(struct door *d, int64_t ms);          /* time passes */
bool door_crash(struct door *d);                    /* the machine dies and comes back with what was synced */
const char *get(const struct answer *a, const char *member);    /* a text member of the reply, or "" */
int64_t get_int(const struct answer *a, const char *member);
int64_t rows_in(struct door *d, const char *table);
/* A node that has joined and said hello with gpus simulated GPUs; its key goes to key. */
void door_node(struct door *d, const char *name, int gpus, char key[static SECRET_TEXT]);
