/* care.h - whether each GPU may be used now. One that had a fault is out, its tasks leave it, and it comes back by itself when it has passed
 * its test; one that goes from one project to another is overwritten before.
 *
 * What the driver says comes from gpus.c (care_look), what is done on a GPU is gpu_check.h. Who had which GPU last is in DATA/gpu-owners before a task begins there; what is
 * out and what was passed is in DATA/gpu-care, for this start of the machine. NVIDIA's alone: of others a fault lasts as long as the driver tells it, and
 * nothing is overwritten. */
#pragma once
#include "agent/gpu_check.h"
#include "model/node.h"
#include "model/order.h"

enum care_when { CARE_FAULT, CARE_HOURLY, CARE_OFF };   /* tests: after a fault, and every hour while it is idle too, or never */
struct care_config {
    const char *data;
    struct check_config check;
    int when;                   /* enum care_when */
    int64_t first_ms, hour_ms;  /* until the first test after a fault, and between two idle ones; 0: 2 s, 1 h */
};
struct care_events {
    void (*on_change)(void *arg);                                       /* what care_describe tells is another */
    void (*on_fault)(void *arg, const char *uuid, const char *why);     /* who uses it must leave; told again and again */
    void (*on_passed)(void *arg, const char *uuid);                     /* the driver's old words about it are over */
};
struct care;
struct care *care_new(struct os *os, const struct care_config *config, const struct care_events *events, void *arg);    /* all is copied; NULL on a simulated machine */
void care_free(struct care *c);                                         /* NULL is fine, as everywhere here */
void care_look(struct care *c, const struct node_info *info);           /* as gpus_describe told it */
void care_describe(struct care *c, struct arena *mem, struct node_info *info);      /* puts its own word behind what the driver says */

/* What an attempt holds of a GPU. */
enum { CARE_SLOTS = 8 };
struct care_lease { char uuid[96]; int64_t first, slots; int64_t mem_mib; };        /* slots of MIG; all of them: the whole, or a share of it. mem_mib 0: all of it */
struct care_leases { struct care_lease *at; size_t count; };            /* malloc'd */
struct care_leases care_leases_of(const struct objects *gpus);          /* of struct order_gpu; simulated ones are none */
void care_leases_free(struct care_leases *l);

/* It is to begin: true: at once, and the GPUs are its own. False: done comes, never from in here; why NULL: now it may, else it cannot. */
bool care_want(struct care *c, int64_t attempt, int64_t project, const struct care_leases *leases, void (*done)(void *arg, const char *why), void *arg);
void care_hold(struct care *c, int64_t attempt, int64_t project, const struct care_leases *leases);     /* one that was found again */
void care_held(struct care *c, const struct objects *held);             /* of struct gpu_live: what tasks hold of memory now */
void care_leave(struct care *c, int64_t attempt);                       /* it has ended, or waits no more: no done follows */
