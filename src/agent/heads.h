/* heads.h - the head nodes that this agent can dial, one of them at a time the one it talks to.
 *
 * Those it was started with stay; those the cloud tells come and go. An address that means this machine is only taken from the
 * cloud by an agent that was itself started with one: a node's key is for no stranger on the node. */
#pragma once
#include "base/field.h"
#include "net/http.h"

struct heads;
struct heads *heads_new(struct os *os, const char *ca_pem, const char *pin);
void heads_free(struct heads *h);                                   /* NULL is fine */
MUST_CHECK bool heads_add(struct heads *h, const char *urls, struct err *err);     /* one, or several with commas between */
bool heads_learn(struct heads *h, struct texts urls);               /* all that live now; true: that was news */
struct http_client *heads_client(const struct heads *h);            /* NULL: there is none */
const char *heads_url(const struct heads *h);
void heads_next(struct heads *h);                                   /* the one behind it */
bool heads_prefer(struct heads *h, const char *url);                /* false: it is not taken */
size_t heads_count(const struct heads *h);
void heads_token(struct heads *h, const char *key);                 /* what to come with from now on */
