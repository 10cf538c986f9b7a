/* world.h - a server with a few routes, clients to it, and a loop that runs until something holds: on the real machine
 * over TCP or a unix socket, or on two simulated ones. The tests say what is expected; nothing is checked here. */
#pragma once
#include "net/http.h"
#include "net/ws.h"
#include "os/sim.h"
#include "tap.h"
#include <stdlib.h>

enum world_kind { WORLD_TCP, WORLD_UNIX, WORLD_SIM, WORLD_COUNT };

struct world {
    enum world_kind kind;
    struct sim *sim;
    struct os *os;              /* the server's machine */
    struct os *far;             /* the clients'; the same one when it is real */
    struct http_server *server;
    char address[128], url[160];
    struct http_request *kept;  /* of /never, until it is gone */
    int heads, requests, gone, drains, bad, ws_open, ws_closed;
    size_t chunk_most;          /* the largest http_waiting seen at a drain of /big */
    struct http_request *paused;    /* of /slow */
    struct err bad_why, ws_why;
    struct ws *ws;              /* the last one accepted */
    bool ws_pause;              /* pause a ws at its first message */
    struct ws_limits ws_limits;
};
void world_open(struct world *w, enum world_kind kind, const struct http_limits *limits);
bool world_listen(struct world *w, const char *address, struct tls *tls, struct http_server **out);   /* one more server */
void world_close(struct world *w);              /* the server leaves without grace */
bool world_until(struct world *w, bool (*enough)(void *arg), void *arg);     /* false: not within 5 s */
void world_wait(struct world *w, int64_t ms);
struct http_client *world_client(struct world *w);

/* Bytes as they are. */
struct raw { struct world *world; struct stream *stream; struct str got; bool open, closed; struct err why; };
void raw_dial(struct raw *r, struct world *w);
void raw_say(struct raw *r, const char *text);
bool raw_has(struct raw *r, const char *text);              /* waits until it came */
bool raw_closed(struct raw *r);                             /* waits until the server has closed */
void raw_done(struct raw *r);
int raw_count(const struct raw *r, const char *text);

/* A call and how it ended. */
struct answer {
    struct world *world;
    struct http_call *call;
    bool ended;
    int ends, heads, status, pieces;
    struct str body;
    struct err err;
    char type[64];
    bool streamed;
};
void answer_start(struct answer *a, struct world *w, struct http_client *c, const char *method, const char *path, struct slice body);
bool answer_wait(struct answer *a);
void answer_done(struct answer *a);
extern const struct http_call_events answer_events, answer_streamed;
