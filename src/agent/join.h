/* join.h - who this node is. Once in its life it trades a one-time token for a key of its own (POST /v1/nodes/join); the key
 * lies in DATA/node.json with mode 0600 and is all it needs afterwards. */
#pragma once
#include "model/view.h"
#include "net/http.h"

/* *found false: never joined. The texts are in mem. */
MUST_CHECK bool identity_load(struct os *os, const char *data, struct arena *mem, struct join_view *out, bool *found, struct err *err);

struct join;
struct join_events {
    void (*on_joined)(void *arg, const struct join_view *who);    /* stored already; freed after it */
    void (*on_refused)(void *arg, const struct err *why);           /* the token is no good: trying again is of no use; freed after it */
};
/* Tries until the server answers; `clients` in turn. ask and clients are borrowed. fixed: the name was chosen by somebody; else
 * a taken one gets a number behind it. */
struct join *join_start(struct os *os, struct http_client *const *clients, size_t count, const char *data,
                        const struct node_join_ask *ask, bool fixed, const struct join_events *events, void *arg);
void join_free(struct join *j);                                     /* NULL is fine; no callback follows */
/* A name that the server takes, from a host's: lower case, '.' and others become '-'. */
const char *join_name(const char *hostname, struct arena *mem);
