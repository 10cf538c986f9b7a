/* gpus.h - the agent's picture of its devices: what the device helper found, what it says they do, and whether they can be used.
 *
 * A helper that does not answer in time, or dies, makes its GPUs unhealthy and is started again; the agent itself never asks a driver. A
 * GPU keeps its number as long as this machine is a node (DATA/gpus), and one that has vanished stays in the list, unhealthy. */
#pragma once
#include "agent/helper.h"
#include "os/os.h"

struct gpus;
struct gpus_config {
    const char *self;           /* the arcus program */
    const char *data;
    const char *nvml, *sys;     /* as helper_config; NULL: the usual */
    int64_t late_ms, begin_ms;  /* how long an answer may take, and the first one; 0: 10 s and 30 s */
};
struct gpus_events {
    void (*on_found)(void *arg);    /* what gpus_describe tells may have changed; the first one comes in any case */
    void (*on_live)(void *arg);     /* there are new figures */
    void (*on_held)(void *arg, const struct objects *held);     /* who holds memory now (of struct gpu_live, uuid and tasks alone); while it is watched */
    void (*on_xid)(void *arg, const char *uuid, int64_t xid);   /* the driver told this error; NULL is fine */
};
struct gpus *gpus_new(struct os *os, const struct gpus_config *config, const struct gpus_events *events, void *arg);   /* all is copied; NULL on a simulated machine */
void gpus_free(struct gpus *g);                                 /* NULL is fine; no callback follows */
bool gpus_ready(const struct gpus *g);                          /* the helper has answered, or does not come; NULL is ready */
bool gpus_none(const struct gpus *g);                           /* it has answered that there is none */
void gpus_describe(const struct gpus *g, struct arena *mem, struct node_info *info);    /* GPUs that are there take the place of simulated ones; texts are borrowed until the next callback */
void gpus_passed(struct gpus *g, const char *uuid);             /* a test has shown that errors which the driver told of it are over; on_found does not follow */
struct objects gpus_live(struct gpus *g);                       /* the newest figures, once; borrowed until the next callback */
void gpus_watch(struct gpus *g, bool on);                       /* parts of GPUs are held: on_held comes every GPUS_WATCH_MS */
enum { GPUS_WATCH_MS = 400 };
void gpus_pace(struct gpus *g, int64_t every_ms);               /* somebody looks: figures are wanted this often; 0: nobody does */
