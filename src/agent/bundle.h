/* bundle.h - an order becomes an OCI bundle's config.json: what DESIGN promises about isolation,
 * in one place.
 *
 * Pure: who runs as which ids, where folders lie and what the host can do is told by the caller. */
#pragma once
#include "agent/image_manifest.h"
#include "agent/inject.h"
#include "agent/io.h"
#include "model/order.h"

struct bundle_user { int64_t uid, gid; int64_t groups[32]; size_t group_count; const char *home; };

/* "", "name", "1000", "1000:100", "name:group" against the texts of /etc/passwd and /etc/group
 * ("" where there is none). */
MUST_CHECK bool bundle_user_find(const char *user, struct slice passwd, struct slice group, struct arena *mem, struct bundle_user *out, struct err *err);

struct bundle_place {
    const char *run;            /* RUN/tasks/ATTEMPT: rootfs, scratch, secrets and mounts are below it (task_plan.h) */
    const char *cgroup;
    const char *hostname;
    int64_t uid_base;
    bool host;                  /* the node's root: HOME is writable, the rest is not */
    bool new_privileges;        /* setuid programs work */
    bool cgroup_v2;
    bool limit_swap;            /* the kernel can */
    const struct io_means *io;  /* NULL: nothing is said about disks */
    bool mps;                   /* the folder mps is there, to be MPS_DOOR */
    bool names;                 /* resolv is there, to be /etc/resolv.conf */
    const char *filter;         /* base64 of the compiled seccomp profile, for crun, which then need not compile it; or NULL */
    const struct injection *give;   /* of the devices of its lease; NULL: none */
    int64_t open_files;         /* our own hard limit: root may not be able to raise it */
};

/* What runs, and where: argv and the work folder, settled from order and image. False: there is
 * nothing to run. */
MUST_CHECK bool bundle_write(struct str *out, const struct order *o, const struct image_config *image, const struct bundle_user *user,
                             const struct bundle_place *place, struct err *err);
void bundle_hostname(const struct order *o, char out[static 64]);
