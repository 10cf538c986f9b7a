/* world.h - api/ on the real machine before a door of straw, with clients that tell what they got.
 * */
#pragma once
#include "api/api_internal.h"
#include "fake_control.h"
#include "tap.h"
#include <stdio.h>
#include <stdlib.h>

struct world {
    struct os *os;
    struct control *control;
    struct api *api;
    struct http_client *client;     /* without a key: each call says whose it is */
    char data[64], url[96];
    bool closed;
};
void world_open(struct world *w);
void world_close(struct world *w);
bool world_until(struct world *w, bool (*enough)(void *arg), void *arg); /* false: not within 5 s */
void world_wait(struct world *w, int64_t ms);

/* One call. `more` is up to two further headers, ended by a NULL name. */
struct got {
    int status;
    bool ended, streaming;
    struct str body;
    char type[64], etag[80], location[128], allow[64], retry[8], asks[64], id[32], replayed[8];
    struct err err;
    struct http_call *call;
};
void got_start(struct got *g, struct world *w, const char *key, const char *method,
               const char *path, const struct http_header *more, struct slice body);
bool got_wait(struct got *g, struct world *w);
bool got_has(struct got *g, struct world *w, const char *text); /* waits until it came */
void got_done(struct got *g);
/* Starts and waits. type NULL: no body. */
void ask(struct got *g, struct world *w, const char *key, const char *method, const char *path,
         const char *type, const char *body);
/* Of a JSON body: the member holds this text in it. */
bool got_says(const struct got *g, const char *member, const char *text);

/* A WebSocket. */
struct talk {
    struct world *w;
    struct ws *ws;
    int opened, closed, messages;
    struct str got;                 /* all messages, each ended by a line feed */
    size_t bytes;
    bool keep;                      /* false: bytes are counted only */
    struct err why;
};
void talk_start(struct talk *t, struct world *w, const char *key, const char *path);
bool talk_open(struct talk *t);
bool talk_has(struct talk *t, const char *text);
bool talk_closed(struct talk *t);
void talk_done(struct talk *t);
