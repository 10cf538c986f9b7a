/* identity.h - who this node is: DATA/node.json, mode 0600.
 *
 * The key is made here and never leaves but to authenticate. While it is replaced there are two: `next_key` is tried first, and
 * whichever the server takes is the node's. */
#pragma once
#include "base/field.h"
#include "os/os.h"

struct identity {
    int64_t id;
    const char *name;
    const char *key, *next_key;
    const char *pin;            /* of the cloud's authority, as the join token had it */
    struct texts servers;       /* what the cloud last told about its head nodes */
    const char *state;          /* of files that older agents wrote */
};
extern const struct fields identity_fields;
/* *found false: never joined. The texts are in mem. */
MUST_CHECK bool identity_load(struct os *os, const char *data, struct arena *mem, struct identity *out, bool *found, struct err *err);
MUST_CHECK bool identity_store(struct os *os, const char *data, const struct identity *me, struct err *err);
const char *identity_key(struct os *os, struct arena *mem);         /* a new one */
/* The key of a node that joins: kept in DATA/joining until it has, so that whoever asks again is known by it. */
MUST_CHECK bool identity_joining(struct os *os, const char *data, struct arena *mem, const char **key, struct err *err);
void identity_joined(struct os *os, const char *data);
