/* shares.h - parts of GPUs that attempts hold, and whether they hold more than that.
 *
 * Pure: who has which part is told by orders (and by plans, after a restart), what is held by the device helper's figures. MPS limits each
 * process; what a task's processes hold together is counted here, since nothing else does. */
#pragma once
#include "model/gpu_live.h"
#include "model/job_state.h"
#include "model/order.h"

/* As a plan keeps it: of one GPU. */
struct plan_share { const char *uuid; int64_t milli, mem_mib; };

struct share { char uuid[96]; int64_t milli, mem_mib; };
struct shares { struct share *at; size_t count; };      /* malloc'd */
void shares_free(struct shares *s);
bool share_is(const struct order_gpu *g);                               /* a part of a real GPU that no wall of the device's own divides */
struct shares shares_of_order(const struct objects *gpus);              /* of struct order_gpu */
struct shares shares_of_plan(const struct objects *list);               /* of struct plan_share */
struct objects shares_plan(const struct shares *s, struct arena *mem);

/* True: this attempt must be ended, as *as, and *why says why. `held` is of struct gpu_live: of each GPU its uuid and its tasks. */
bool shares_over(const struct shares *s, int64_t attempt, const struct objects *held, enum outcome *as, char why[static 240]);

/* How many of its processes use a GPU that it has a part of, and are not clients of what divides it. */
int64_t shares_outside(const struct shares *s, int64_t attempt, const struct objects *held);

enum { MPS_CLIENTS = 48 };
int64_t share_clients(const struct share *s);           /* how many processes of a task may use it */
