/* helper.h - the device helper: a process of its own that asks drivers, so that one that hangs hangs nothing else.
 *
 * It is the program itself under a word that nobody types (`arcus device-helper`), started, asked and ended by gpus.c over two pipes: a line
 * with one word down (`look`: what there is; `live`: what it does; `held`: who holds its memory), a line of JSON up for each, and one more whenever a device tells an error. It
 * reads, and changes nothing of a device, ever. It ends when its standard input does.
 *
 * A probe finds the devices of one vendor there. What it is given lives as long as the helper. */
#pragma once
#include "model/gpu_live.h"
#include "model/node.h"
#include "wire/bind.h"

struct helper_config {
    const char *nvml, *sys;     /* the NVIDIA library, NULL: where drivers put it; where sysfs is: "/sys" */
    const char *proc;           /* where NVIDIA's driver has a folder for each GPU; NULL: /proc/driver/nvidia/gpus */
};
struct helper_said {            /* one line up */
    const char *kind;           /* "found", "live", "held", "xid" */
    struct node_info found;     /* of it: gpus, numas, nics, what is told of the processors, cannot */
    struct objects live;        /* of struct gpu_live; of held: uuid and tasks alone */
    const char *uuid;           /* of xid, with the number */
    int64_t xid;
};
extern const struct fields helper_said_fields;

struct device_probe {
    const char *name;
    /* False with RC_NOT_FOUND: there is nothing of the kind; else it is there and cannot be used. */
    bool (*open)(const struct helper_config *config, void **state, struct err *err);
    bool (*find)(void *state, struct arena *mem, struct node_info *out, struct err *err);
    void (*live)(void *state, struct arena *mem, int64_t now_ms, struct objects *out);    /* adds to it */
    void (*held)(void *state, struct arena *mem, struct objects *out);  /* the same of uuid and tasks alone, and cheap; NULL: it cannot tell */
    void (*close)(void *state);
};
extern const struct device_probe device_nvidia, device_amd, device_intel;
void helper_add_gpu(struct node_info *out, struct arena *mem, const struct gpu_info *gpu);      /* one too many, or with another's UUID, is left out, and why is told */
void helper_add_live(struct objects *out, struct arena *mem, const struct gpu_live *live);
void helper_cannot(struct node_info *out, struct arena *mem, const char *fmt, ...) PRINTF(3, 4);
void helper_xid(const char *uuid, int64_t xid);         /* tells it at once; from any thread */

/* Whose process this is: the attempt whose control group it is in; 0: nobody's. */
int64_t helper_attempt_of(int pid);
int64_t helper_attempt_in(const char *cgroup);          /* the same from the text of /proc/PID/cgroup */
/* Adds up what one process holds to the task that it is of. */
void helper_add_process(struct gpu_live *live, struct arena *mem, int64_t attempt, int64_t mem_mib);
void helper_add_pid(struct gpu_live *live, struct arena *mem, int64_t attempt, int pid);      /* its number, as far as there is room */
void helper_add_outside(struct gpu_live *live, int64_t attempt);     /* the one that was added is no client of MPS */

int helper_main(int argc, char **argv);                 /* argv[0] is "device-helper" */
