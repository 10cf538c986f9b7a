/* server.h - the head node put together: store, door, API, on one loop. */
#pragma once
#include "base/err.h"
#include "base/version.h"
#include "os/os.h"

#define ARCUS_ADDRESS "127.0.0.1:6640"

struct server;
struct control;
struct server_config {
    const char *data;           /* folder: store, keys, blobs, certificate */
    const char *address;        /* NULL: ARCUS_ADDRESS */
    const char *store;          /* NULL: DATA/arcus.db */
    const char *store_tls;      /* "off": PostgreSQL may be spoken to in the open, where its URL says so too */
    const char *cert, *key;     /* PEM files; NULL: made at first start for anything but loopback */
    const char *host;           /* the name in a certificate that is made; NULL: the address */
    const char *default_image;
    const char *advertise;      /* the URL that other servers, agents and clients reach this one by; NULL: from the address */
    const char *keys;           /* folder of the keys that all servers of the cloud share; NULL: DATA/keys */
    bool shared;                /* the store is one that several servers use, also if it is not PostgreSQL (simulations) */
    int64_t run_for_s;          /* 0: 300 */
    const char *keep_jobs, *keep_events, *keep_usage;   /* "30d"; "forever": for ever; NULL: 30d, 30d, 90d */
    const struct api_limits *rates;     /* NULL: the defaults */
    const struct http_limits *limits;   /* NULL: the defaults */
    bool simulated;
};
MUST_CHECK bool server_open(struct os *os, const struct server_config *config, struct server **out, struct err *err);
/* The lease is given up first, where another server could take it, and until that one writes all is served as by one that does not. Then no new requests, the open ones get grace_ms, then on_closed is called on the loop; after it server_free. */
void server_close(struct server *s, int64_t grace_ms, void (*on_closed)(void *arg), void *arg);
void server_free(struct server *s);
struct control *server_control(struct server *s);       /* its door, for a follower in the same process */
const char *server_url(const struct server *s);         /* http://127.0.0.1:6640 */
const char *server_pin(const struct server *s);         /* SHA-256 of the cloud's own authority, where it vouches for this server; "" none */
/* A token for one agent, asked for by the server's own process. on_token runs on the loop; NULL: it could not be made. */
void server_token(struct server *s, void (*on_token)(void *arg, const char *token), void *arg);

/* One server (or restore) on one data folder: the lock goes with the process, whatever ends it. */
MUST_CHECK bool server_lock(struct os *os, const char *data, int *fd, struct err *err);

/* store_look.c: a store that is too large to be looked at before it is served is looked at beside. NULL: it is not. */
struct store_look;
struct store_look *store_look_start(struct os *os, const char *self, const char *where, void (*on_damaged)(void *arg), void *arg);
void store_look_stop(struct store_look *c);
int store_look_main(int argc, char **argv);                  /* `arcus store-check FILE` */

int server_main(int argc, char **argv);                 /* `arcus server` */
int up_main(int argc, char **argv);                     /* `arcus up` */
int backup_main(int argc, char **argv);                 /* `arcus backup FILE --data DIR`: without asking a server */
int restore_main(int argc, char **argv);                /* `arcus restore` */
