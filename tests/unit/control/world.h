/* world.h - a cloud with one of everything in project `default`, somebody in every role, and a stranger who is admin of `beta`. */
#pragma once
#include "door.h"

enum who {
    VERA, DEV, ADA, OP, AUD, STRANGER, NODE_ONE, NOBODY, REMOVED,                               /* with a good key */
    NO_KEY, BAD_KEY, EXPIRED, DISABLED_KEY, DISABLED_USER, DISABLED_ACCOUNT, REMOVED_NODE,      /* without */
    WHO_COUNT
};
struct person_of { const char *name; unsigned roles; bool good; };
extern const struct person_of people[WHO_COUNT];

/* {job} in a body stands for one of these. */
struct thing { const char *token, *id, *name, *ghost_id, *ghost_name; bool of_project; };
enum { THINGS_MOST = 32 };
struct world {
    struct door *d;
    const char *keys[WHO_COUNT];
    struct thing things[THINGS_MOST];
    size_t thing_count;
    const char *token, *digest;
};
void world_make(struct world *w, bool plan);            /* w->d is the caller's to free */
void world_freeze(struct world *w, struct frozen *f, struct arena *mem);    /* the words of the world live in mem from then on; w->d is gone */
enum spelling { BY_ID, BY_NAME, GHOST_ID, GHOST_NAME };
const char *world_body(struct world *w, const char *text, enum spelling how);
const char *thing_id(struct world *w, const char *token);

/* Bodies that are good in this world: at least one for every verb. */
struct wish { enum verb_id verb; const char *body; bool refers; const char *expect; };  /* refers: to something of the project; expect: the field that an allowed one stumbles over */
extern const struct wish wishes[];
extern const size_t wish_count;
struct answer world_ask(struct world *w, enum who who, const char *project, const struct wish *wish, enum spelling how);
