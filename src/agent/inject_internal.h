/* inject_internal.h - what inject.c (whom to ask, and what is sound), inject_cdi.c (specs) and inject_nvidia.c (our own look) share. */
#pragma once
#include "agent/inject.h"

enum { SPECS_MOST = 64, LIBRARIES_MOST = 256 };

/* A file of the driver, or a link to one beside it. */
struct driver_file { const char *name, *source, *says; unsigned of; bool program; };
struct driver {
    bool found;
    const char *version;        /* "580.159.03", or NULL */
    struct driver_file files[LIBRARIES_MOST];
    size_t count;
    const char *firmware[LIBRARIES_MOST];
    size_t firmware_count;
};

enum { MADE_MOST = 128 };       /* sixteen GPUs of eight slots */
struct mig_made { char gpu[96], what[64], uuid[96], ids[32]; };        /* what: "3g.71gb@4" */

struct inject {
    char *cdi, *root;
    struct arena *mem;          /* of what was read last */
    uint64_t stamp;             /* of the folders then */
    bool fresh;
    struct cdi_spec specs[SPECS_MOST];
    int rank[SPECS_MOST];       /* of the folder: the later one counts */
    size_t spec_count;
    const char *bad[SPECS_MOST];
    size_t bad_count;
    struct driver driver;
    struct arena *known_mem;
    struct inject_gpu *known;
    size_t known_count;
    struct mig_made made[MADE_MOST];        /* the oldest goes */
    size_t made_next;
};

struct mig { const char *uuid, *ids; };     /* an instance: "MIG-...", "1/0" */

/* What is being put together for one task. */
struct gather {
    struct inject *in;
    struct arena *mem;
    bool host;
    unsigned capabilities;
    struct plan_node nodes[PLAN_NODES];
    struct plan_file files[PLAN_FILES];
    struct plan_link links[PLAN_FILES];
    const char *env[PLAN_NODES], *folders[PLAN_NODES];
    size_t node_count, file_count, link_count, env_count, folder_count;
    bool programs, driver;      /* driver: its files were taken */
};
MUST_CHECK bool gather_node(struct gather *g, const char *source, const char *path, bool optional, struct err *err);
MUST_CHECK bool gather_file(struct gather *g, const char *source, const char *path, bool optional, struct err *err);
MUST_CHECK bool gather_link(struct gather *g, const char *name, const char *says, struct err *err);    /* in lib64 of the driver's folder */
MUST_CHECK bool gather_env(struct gather *g, const char *entry, struct err *err);
MUST_CHECK bool gather_folder(struct gather *g, const char *path, struct err *err);                     /* of libraries */
const char *in_root(const struct inject *in, struct arena *mem, const char *path);
bool only_root_writes(const char *path);

/* inject_cdi.c */
void cdi_read_all(struct inject *in);
uint64_t cdi_stamp(const struct inject *in);
/* True: there was a spec for it, and g has what it says or *err says why that cannot be had. */
bool cdi_gather(struct gather *g, const struct inject_gpu *gpu, const struct mig *mig, struct err *err);

/* inject_nvidia.c */
void driver_find(struct inject *in);
uint64_t driver_stamp(const struct inject *in);
MUST_CHECK bool nvidia_gather(struct gather *g, const struct inject_gpu *gpu, const struct mig *mig, struct err *err);    /* mig NULL: all of it */
MUST_CHECK bool nvidia_driver(struct gather *g, struct err *err);
