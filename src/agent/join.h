/* join.h - how a machine becomes a node. Once in its life it shows a one-time token together with a key of its own (POST
 * /v1/nodes/join); the key is all it needs afterwards (identity.h). */
#pragma once
#include "model/view.h"
#include "agent/heads.h"
#include "agent/identity.h"
#include "model/ask.h"

struct join;
struct join_events {
    void (*on_joined)(void *arg, const struct identity *who);     /* stored already; freed after it */
    void (*on_refused)(void *arg, const struct err *why);           /* the token is no good: trying again is of no use; freed after it */
};
/* Tries until a server answers; `heads` in turn. ask, pin and heads are borrowed. fixed: the name was chosen by somebody; else
 * a taken one gets a number behind it. */
struct join *join_start(struct os *os, struct heads *heads, const char *data, const struct node_join_ask *ask, const char *pin, bool fixed,
                        const struct join_events *events, void *arg);
void join_free(struct join *j);                                     /* NULL is fine; no callback follows */
/* A name that the server takes, from a host's: lower case, '.' and others become '-'. */
const char *join_name(const char *hostname, struct arena *mem);
