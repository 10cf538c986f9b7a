/* api.h - HTTP in, verbs through the door, bytes to and from the nodes.
 *
 * Everything but /healthz, /readyz and /openapi.json goes through control_ask(), streams too: the
 * role check is there and nowhere else. Nothing is served without TLS except on loopback, on a unix
 * socket and in the simulation. */
#pragma once
#include "api/limits.h"
#include "control/control.h"
#include "net/http.h"

struct api;
struct api_config {
    const char *address;                /* as stream_listen takes it */
    struct tls *tls;                    /* NULL: loopback only; stays the caller's */
    const char *data;                   /* folder; blobs are kept under it */
    struct store *store;                /* for backups and blobs; outlives the API */
    const struct http_limits *limits;   /* NULL: the defaults */
    const struct api_limits *rates;     /* NULL: the defaults */
    const char *version;                /* "0.1.0" */
    const char *peer_ca;                /* PEM, to know the other servers of the cloud by; NULL: the system's */
    bool simulated;                     /* its GPUs are made up: /openapi.json and /readyz say so */
    void (*on_closed)(void *arg);       /* after api_close: the last request has gone; may be NULL */
    void *arg;
};
MUST_CHECK bool api_open(struct os *os, struct control *control, const struct api_config *config,
                         struct api **out, struct err *err);
void api_wind_down(struct api *a);      /* it will close soon: whoever is answered is to come again over a connection to somebody else */
/* Takes nothing new, ends what follows, gives the rest grace_ms, then cuts it. The memory goes with
 * the last request, which may wait for the door: run the loop until on_closed, and close control
 * after it. */
void api_close(struct api *a, int64_t grace_ms);
const char *api_address(const struct api *a);
/* Asks the server that writes for a join token, as another server of its cloud; body: as node.token takes it. done gets what that one answered, or NULL.
 * False: nobody to ask at the moment, and nothing follows. */
MUST_CHECK bool api_ask_token(struct api *a, struct slice body, void (*done)(void *arg, const char *json), void *arg);
