/* read_fleet.h - what listings of the fleet share: the leases of live attempts summed up, inventories read, and GPUs in MIG mode. */
#pragma once
#include "control/call.h"

enum { NODES_MOST = 20000 };

struct held {               /* of one node; GPUs by their index */
    int64_t cpu, mem, tasks;
    int64_t gpu_milli[SCHED_GPUS], gpu_mib[SCHED_GPUS], gpu_tasks[SCHED_GPUS];
    uint16_t gpu_slots[SCHED_GPUS];
    bool gpu_shared[SCHED_GPUS];    /* somebody holds a part of it */
};
MUST_CHECK bool sum_leases(struct call *c, int64_t node, struct map *sums, struct err *err);   /* node -> struct held; 0: of all */
MUST_CHECK bool info_of(struct call *c, const char *text, struct node_info *info);
struct node_settings settings_of(struct call *c, const char *text);

/* read_flavors.c: a GPU in MIG mode as it stands. */
struct mig_now { const struct mig_part *part; struct mig_layout layout; uint16_t taken; };
bool mig_now(const struct gpu_info *g, const struct node_settings *s, uint16_t taken, struct mig_now *out);    /* false: it is in none, or in one that nobody understands */
int mig_now_free(const struct mig_now *m, int profile);     /* so many of that profile alone */
int64_t mig_now_free_milli(const struct mig_now *m);        /* by the slots that are free */
const char *mig_now_text(const struct mig_now *m, struct arena *mem);   /* "1g.18gb x5, 3g.71gb x1" */
