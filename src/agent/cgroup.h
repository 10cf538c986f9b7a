/* cgroup.h - the control groups of tasks: found on v1, hybrid and v2 hosts alike, looked into,
 * killed and removed.
 *
 * Limits are set by the OCI runtime from the bundle. What is here must work when the runtime and
 * the supervisor are both gone. Names are relative to the root of each hierarchy
 * ("arcus/att-..."). libc only: the supervisor links it too. */
#pragma once
#include "base/err.h"

enum { CGROUP_MOUNTS = 16 };
struct cgroup_mount { char path[120]; char options[80]; };
struct cgroups {
    bool unified;               /* pure v2: `mounts` has one entry */
    bool hybrid;                /* v1, and a v2 tree without controllers beside it: hybrid_path */
    char hybrid_path[120];
    size_t count;
    struct cgroup_mount mounts[CGROUP_MOUNTS];
};
MUST_CHECK bool cgroups_find(struct cgroups *out, struct err *err);
bool cgroups_limit_swap(const struct cgroups *c);           /* the kernel counts swap; else asking for a limit of it fails */
bool cgroups_hold_devices(const struct cgroups *c);         /* which devices a group may open can be said: v2, or v1 with that controller */
const char *cgroups_kind(const struct cgroups *c);          /* "v1", "hybrid" or "v2" */

/* Makes the group where it is missing and moves a process into it, in every hierarchy but
 * cpuset's. */
MUST_CHECK bool cgroup_move(const struct cgroups *c, const char *name, int pid, struct err *err);
/* Moves us out of every group that we were born in, into `name`; where we are in none, in the root, we stay: a move stops every
 * fork of the machine for a moment. */
bool cgroup_is_free(const struct cgroups *c);               /* there is nothing to leave */
MUST_CHECK bool cgroup_leave(const struct cgroups *c, const char *name, int pid, struct err *err);
int cgroup_open(const struct cgroups *c, const char *name); /* on v2: for a clone3 into it; made where it is missing; -1: no */
size_t cgroup_pids(const struct cgroups *c, const char *name, int *pids, size_t room);  /* how many there are, up to room */
int64_t cgroup_oom_kills(const struct cgroups *c, const char *name);
int64_t cgroup_memory_peak(const struct cgroups *c, const char *name);      /* bytes, 0 if not known */
int64_t cgroup_cpu_us(const struct cgroups *c, const char *name);           /* the processor time that it took so far; -1 if not known */
int64_t cgroup_memory_used(const struct cgroups *c, const char *name);      /* bytes, without what the kernel would give back at once; 0 if not known */
/* The most memory it may use, in bytes; INT64_MAX: there is no limit. One below what is in use is refused with
 * RC_CONFLICT, since the kernel would kill for it; but it begins to take back what it can. */
MUST_CHECK bool cgroup_memory_limit(const struct cgroups *c, const char *name, int64_t *bytes, struct err *err);
MUST_CHECK bool cgroup_memory_set(const struct cgroups *c, const char *name, int64_t bytes, struct err *err);
/* Nothing in it runs any more when this returns, or everything does again; as it is already: fine. */
MUST_CHECK bool cgroup_freeze(const struct cgroups *c, const char *name, bool on, int wait_ms, struct err *err);
bool cgroup_frozen(const struct cgroups *c, const char *name);    /* it stands still, or is about to */
bool cgroups_freeze(const struct cgroups *c);               /* it can be done here: v2, or v1 with that controller */
/* Kills everything in it and waits until it is empty; false: something is left after wait_ms
 * (stuck in the kernel). */
bool cgroup_kill(const struct cgroups *c, const char *name, int wait_ms);
bool cgroup_remove(const struct cgroups *c, const char *name);              /* with what it holds; absent is fine */
