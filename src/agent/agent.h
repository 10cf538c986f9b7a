/* agent.h - the node: keeps what runs here the same as what the server wants, and tells what happened.
 *
 * Runs on a loop, beside a server in the same process or alone. Containers belong to their supervisors, so an agent that
 * leaves, dies or is replaced disturbs none of them. */
#pragma once
#include "model/node.h"
#include "os/os.h"

struct agent;
struct agent_config {
    struct texts servers;       /* urls, tried in turn */
    const char *token;          /* one-time; only needed before the node has joined */
    const char *data, *run;     /* /var/lib/arcus, /run/arcus */
    const char *name;           /* NULL: from the host's name */
    const char *self;           /* absolute path of the arcus program */
    const char *version;
    bool host_image;
    bool uplink;                /* tasks may leave through this node */
    bool underlay;              /* the network between nodes is trusted with what tasks send each other */
    const char *underlay_address;
    struct texts hide;          /* paths that a task of `image: host` must not see besides data and run: a store, keys */
    bool own_devices;           /* the agent may set the modes of GPUs; false: it never touches one */
    const char *mps;            /* "auto", "off" or a program: see runtime.h */
    const char *cdi;            /* "auto", "off" or a folder: see inject.h */
    int64_t keep_logs_s;        /* logs and outputs after a task has ended; 0: 7 days */
    int64_t sim_gpus;
    const char *sim_kinds;      /* see probe.h */
    const char *sim_model;
    const char *libcuda, *uvm;  /* what tasks are suspended and GPUs tested with, see suspend.h and care.h; NULL: the usual */
    int gpu_test;               /* enum care_when */
    const char *nvml, *sys;     /* where the devices are asked; see gpus.h */
    struct pairs labels;
    const char *topology;       /* region/zone/switch/rack/nvlink; NULL: not known */
    int64_t beat_ms;            /* 0: 5000 */
    const char *ca_pem, *pin;
    void (*on_failed)(void *arg, const struct err *why);    /* it cannot go on: the token was refused. NULL: os_stop */
    void *arg;
};
struct agent *agent_new(struct os *os, const struct agent_config *config, struct err *err);    /* NULL: *err says why; all is copied */
void agent_free(struct agent *a);               /* lets go; containers stay. NULL is fine */
AUTO_FN(struct agent *, agent_free)
void agent_leave(struct agent *a, void (*gone)(void *arg), void *arg);  /* the same, and gone when its server knows, see link_leave */
bool agent_linked(const struct agent *a);       /* the server has answered */

int agent_main(int argc, char **argv);          /* `arcus agent ...`; argv[0] is "agent" */
