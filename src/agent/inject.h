/* inject.h - from the GPUs of a lease to what its container gets: device nodes, driver files, environment; from CDI specs where an
 * operator has them, else by our own look at the machine.
 *
 * Nothing is given that was not found on this node and found sound: nodes with the numbers that the kernel shows, files that only root
 * may change. A simulated GPU gives nothing. Looking costs some file stats; all else is kept until a folder has changed. */
#pragma once
#include "agent/cdi.h"
#include "agent/task_plan.h"
#include "model/node.h"

#define DRIVER_FOLDER "/usr/local/nvidia"   /* where images of this field look for a driver that is not theirs: lib64 and bin are below it */

struct injection {
    struct objects nodes, files, links;     /* of plan_node, plan_file, plan_link */
    const char *driver;         /* DRIVER_FOLDER, or NULL: nothing is put there */
    struct texts env;           /* NAME=VALUE: stronger than the image's, weaker than the job's */
    const char *libraries;      /* folders with colons between, behind what LD_LIBRARY_PATH says; or NULL */
    const char *programs;       /* the same for PATH */
    const char *parents, *visible;      /* where MIG instances are among them: what NVIDIA_VISIBLE_DEVICES says of whole GPUs, and what is right; else NULL */
};

/* A GPU of this node as far as it matters here; whatever is not known is NULL. */
struct inject_gpu {
    int64_t index;
    const char *uuid;
    const char *vendor;         /* "nvidia", "amd", "intel" */
    const char *device;         /* "/dev/nvidia0", "/dev/dri/renderD128" */
    const char *pci;            /* "0000:18:00.0" */
    const char *mig;            /* "1g.18gb@0,3g.71gb@4", and of these the UUIDs and the driver's numbers */
    struct texts mig_uuids, mig_ids;
};

struct inject_config {
    const char *cdi;            /* NULL or "auto": /etc/cdi and /var/run/cdi, and our own look for what has no spec there; "off": our own alone;
                                   else a folder: it alone */
    const char *root;           /* before /dev, /proc, /sys, /usr, /etc: a test's own; NULL: "" */
};
struct inject;
struct inject *inject_new(const struct inject_config *config);
void inject_free(struct inject *in);        /* NULL is fine */
void inject_know(struct inject *in, const struct inject_gpu *gpus, size_t count);      /* the real ones, copied */

/* This instance was made just now, or found: it counts before what is known of the GPU. */
void inject_made(struct inject *in, const char *gpu, const char *profile, int64_t slot, const char *uuid, const char *ids);

/* What a task with these GPUs (of struct order_gpu) gets. `host`: it runs in the node's own root, so the driver is there already. `capabilities`:
 * what NVIDIA_DRIVER_CAPABILITIES says, or NULL. False: it cannot be given; *err is for the node's operator. */
MUST_CHECK bool inject_for(struct inject *in, const struct objects *gpus, bool host, const char *capabilities, struct arena *mem,
                           struct injection *out, struct err *err);
size_t inject_bad_specs(struct inject *in, struct arena *mem, const char ***why);       /* a sentence for each file that is left out */

enum { DRIVER_UTILITY = 1, DRIVER_COMPUTE = 2, DRIVER_GRAPHICS = 4, DRIVER_VIDEO = 8, DRIVER_DISPLAY = 16, DRIVER_NGX = 32 };
unsigned driver_capabilities(const char *text);     /* "compute,utility"; NULL or nothing known: these two; "all" */
