/* task_plan.h - what the agent tells a supervisor (plan.json) and what the supervisor tells back (struct task_status).
 *
 * plan.json holds everything a supervisor needs, so that it never asks the agent again. It lies on a disk, so no secret
 * is in it: secrets come on the supervisor's standard input and live only in a tmpfs of its own mount namespace.
 *
 *   DATA/tasks/ATTEMPT/   plan.json (locked by its supervisor until its end was told), config.json, stop (PLAN_WAKE says that it is there)
 *   DATA/status/ATTEMPT   struct task_status: a line for each phase; the last whole one counts
 *   DATA/logs/ATTEMPT/    see log_format.h; there once it has printed something
 *   DATA/outputs/ATTEMPT/ what the task left in /outputs        DATA/ends/ATTEMPT   its last status, once it is settled
 *   RUN/tasks/ATTEMPT/    in the supervisor's namespace only, which stands in it: rootfs, mounts, secrets, sock (task_proto.h)
 *   RUN/slots/N/          the same, and a plan.json, of a supervisor that runs one attempt after the other (task/slot.c)
 *   RUN/lease             boot-clock milliseconds of the last contact with the server, as text */
#pragma once
#include "agent/runtime.h"
#include "agent/shares.h"

/* A folder of the node that the supervisor mounts at RUN/tasks/ATTEMPT/NAME, where the bundle
 * binds it from. */
struct plan_mount { const char *source, *name; bool read_only, plain; };    /* plain: ids are the node's, not mapped */

/* Of the devices of its lease (inject.h). All of it was looked at by the agent; the supervisor looks at the numbers of a node again. */
struct plan_node { const char *source, *path; bool block; int64_t major, minor; };    /* becomes RUN/tasks/ATTEMPT/devices/INDEX, where the bundle binds it from */
struct plan_file { const char *source, *path; bool optional; };     /* read-only in the container's root; optional: unless a link is in the way */
struct plan_slice { const char *uuid, *what; };     /* of which GPU; "3g.71gb@4" */
struct plan_gpu { const char *uuid; int64_t first, slots, mem_mib; };   /* see care.h; for the agent, when it finds it again */
struct plan_link { const char *path, *says; };                      /* below `driver` */

enum plan_root { ROOT_IMAGE, ROOT_HOST };           /* an overlay over an unpacked image, or the node's own root */
enum plan_scratch { SCRATCH_LOOP, SCRATCH_TMPFS };  /* where writes go: a sized ext4 in a file, or memory */

struct plan {
    int64_t attempt;
    const char *id;             /* of the container */
    const char *runtime, *runtime_root;     /* /usr/bin/crun; where it keeps what it knows of its containers */
    const char *folder, *run, *status, *logs, *lease;
    const char *cgroup;         /* below the root of each hierarchy: arcus/ID */
    int64_t uid_base;           /* first of the 65536 ids of this attempt */
    int64_t uid, gid;           /* of the process inside: who owns its work folder and secrets */
    const char *hostname;
    int root;                   /* enum plan_root */
    const char *lower;          /* the unpacked image */
    struct texts hide;          /* of the node's root: empty folders stand in their place */
    int scratch;                /* enum plan_scratch */
    const char *scratch_template;
    int64_t scratch_mib;
    const char *disk;           /* a folder where the scratch is kept for the next attempt of an instance; NULL: it goes with this one */
    bool disk_used;             /* it has been run on: if it is not there, it was lost */
    struct objects mounts;      /* of struct plan_mount */
    struct objects nodes, files, links;     /* of plan_node, plan_file, plan_link */
    struct objects shares;      /* of struct plan_share: parts of GPUs that it holds; for the agent, when it finds it again */
    struct objects gpus;        /* of struct plan_gpu */
    struct objects slices;      /* of struct plan_slice */
    int64_t project;            /* who has them; 0: it has none */
    const char *driver;         /* a folder in memory is mounted there, for what of these is below it; or NULL */
    const char *workdir;        /* tar of the work folder, or NULL */
    struct texts secrets;       /* names, in the order in which their values come on standard input */
    const char *fabric;         /* a path to the namespace of the node's networks, good while the agent lives and /proc is the node's; NULL: there is none */
    int64_t net, mbit, mtu;     /* see struct order; net 0: it has no network but itself */
    const char *address, *bridge, *link;    /* its address, and what its project's bridge and its end of the cable are called in the fabric */
    const char *resolver;       /* who knows names, or NULL */
    const char *hostfile;       /* of a gang: what is to be in it, or NULL */
    const char *filter;         /* copy the runtime's compiled seccomp filter there once the container is up, or NULL */
    int64_t mem_mib, log_mib, max_duration_s, grace_s, run_for_s;
};
extern const struct fields plan_fields;

struct plan_stop { int64_t grace_s; int as; const char *why; };     /* DATA/tasks/ATTEMPT/stop; why: a sentence for its end, or NULL */
extern const struct fields plan_stop_fields;
/* The last whole line of a status file. */
MUST_CHECK bool status_read(struct slice file, struct arena *mem, struct task_status *out, struct err *err);

#define DISK_FILE  "disk"               /* in the folder of a disk: its filesystem, and what the folder of its image was called when it was made */
#define DISK_IMAGE "image"
enum { DISK_IMAGE_BYTES = 128 };
#define LAUNCH_NAME "arcus-launch"      /* the supervisor under another name, for tasks of gangs (task/launch.c) */

enum { PLAN_WAKE = 23 };    /* SIGURG */
enum { PLAN_NODES = 256, PLAN_FILES = 768 };
enum { PLAN_UID_BASE = 0x10000000, PLAN_UID_COUNT = 65536, PLAN_BYTES = 256 * 1024 };
