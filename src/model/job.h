/* job.h - what a tenant asks to run, as the fields of a workload file, and the rules it must keep before it is taken. */
#pragma once
#include "base/arena.h"
#include "model/job_state.h"
#include "model/place.h"

enum { JOB_COUNT_MAX = 1000 * 1000, JOB_GRACE_MAX = 3600, JOB_GPUS_MAX = 64, JOB_BATCH_MAX = 10 * 1000, JOB_NODES_MAX = 1024 };

/* A GPU wish: "2", "0.5", "H200:8", "H200:0.5", "24GB..80GB:2", "24GB", "H200>H100:2", plus mig and gpu_memory. */
struct gpu_ask {
    char model[64];             /* "" any; compared without case, and as a part ("H200" fits "NVIDIA H200"); "A|B": either, "A>B": A rather */
    int64_t milli;              /* thousandths of a GPU for one task: 8000, 500; 0: none */
    int64_t mem_min_mib, mem_max_mib;   /* of the device, 0: any */
    int64_t share_mib;          /* memory of a share; 0: in proportion to milli */
    char mig[24];               /* profile, "" none */
};
MUST_CHECK bool gpu_ask_parse(const char *text, struct gpu_ask *out, struct err *err);
MUST_CHECK bool mig_parse(const char *text, struct gpu_ask *out);       /* "1g.18gb": sets mig and milli */
/* Is this device what is asked for? Cards hold a little less than their names say, so "80GB" fits one of 79.6 GB. */
bool gpu_ask_fits(const struct gpu_ask *ask, const char *model, int64_t mem_mib);
bool gpu_ask_memory(const struct gpu_ask *ask, int64_t mem_mib);
int gpu_ask_model(const struct gpu_ask *ask, const char *model);        /* by its model alone, as the next */
int gpu_ask_choice(const struct gpu_ask *ask, const char *model, int64_t mem_mib);  /* 0: it does not fit; 1: the first choice, 2: the next, ... */
int64_t gpu_ask_mib(const struct gpu_ask *ask, int64_t mem_mib);        /* memory of such a device that one task holds */

struct job_retry { int64_t limit; int64_t delay_s; struct texts on; };  /* on: outcomes; empty: any failure that is not the user's cancel */
struct job_after { const char *job; int when; };                        /* when: enum after_when */
enum after_when { AFTER_OK, AFTER_ANY, AFTER_FAIL };
enum spread { SPREAD_NONE, SPREAD_NODE, SPREAD_ZONE, SPREAD_COUNT };
enum on_lost { ON_LOST_REQUEUE, ON_LOST_WAIT };
struct job_mount { const char *volume, *path; bool read_only; };

/* The body of job.submit: what came, in the types of its field table. Texts live in the request's arena. */
struct job_spec {
    const char *type;           /* "job" (also task, batch) or "instance": a machine to work on, that stays until it is cancelled */
    bool jupyter;               /* of an instance: it runs a notebook server; settled into `run` */
    const char *name;
    const char *image;          /* default: the cloud's default image, "host" under `arcus up` */
    struct texts command;       /* argv, after `--` on the command line */
    struct texts run;           /* shell lines: run, commands; run by /bin/sh -c after setup */
    struct texts setup;
    const char *gpus, *gpu_memory, *mig;
    int64_t cpu_milli, mem_mib, shm_mib, disk_mib, disk_mibs;   /* disk_mibs: MiB a second, each way; 0: no limit of its own */
    const char *flavor;
    int64_t count;              /* array size; 1 by default */
    const char *array;          /* "0-9", "10": Slurm's spelling of count */
    int64_t priority;           /* 0..100, 50 by default */
    struct pairs env, labels;
    struct texts secrets;       /* names; files in /run/secrets */
    struct texts volumes;       /* NAME:/path[:ro] */
    const char *workdir;        /* digest of an uploaded folder (the CLI uploads a path) */
    int64_t max_duration_s;     /* 0: no limit */
    int64_t autostop_s;         /* of an instance: it is stopped when nobody has used it for this long; 0: never */
    int64_t grace_s;            /* between SIGTERM and SIGKILL; 30 by default */
    struct job_retry retry;
    struct objects after;       /* of struct job_after */
    struct texts dependency;    /* the same as "JOB", "any:JOB", "fail:JOB"; settle moves them to `after` */
    int on_lost;                /* enum on_lost */
    const char *user;           /* uid[:gid] inside; default: the image's, or root */
    int64_t log_mib;            /* per task; the oldest part is dropped beyond it; 100 by default */
    const char *node;           /* only on this node (name or id) */
    struct texts tolerations;   /* taints of nodes that it may run on all the same; settled as key=value or key */
    const char *region, *zone;  /* only there */
    int network;                /* enum network (ipv4.h) */
    int64_t nodes;              /* a gang: as many tasks, each on a node of its own, that start and end together; 0: none */
    int spread;                 /* enum spread: its tasks are to be on different nodes, or in different zones, if there is room */
    int within, prefer;         /* of a gang: what it must not leave, and what it is to be in if it can; see place_ask_names */
};
enum place_level job_within(const struct job_spec *s);      /* a region, if it does not say */
enum place_level job_prefer(const struct job_spec *s);      /* as close as can be, if it does not say */
extern const struct fields job_spec_fields, job_after_fields;

/* What a job asks of a node, for one task of it: integers, settled at submit and never parsed again. */
struct shape {
    struct gpu_ask gpu;
    int64_t cpu_milli, mem_mib; /* 0 with GPUs: as large a part of the node as its GPUs are, see shape_on */
    int64_t disk_mib;
};
/* What a task of this shape holds on a node of that size. kept_mib: of its memory so much is kept there by suspended tasks; a part of the node is
 * that much smaller, but not by more than half, since they had the like of it before. */
void shape_on(const struct shape *s, int64_t node_cpu_milli, int64_t node_mem_mib, int64_t kept_mib, int64_t node_gpus, int64_t *cpu_milli, int64_t *mem_mib);
/* Checks what a table cannot say (a command is there, a share is of one GPU, array and count agree, mounts are well
 * formed) and settles the shape and defaults in *spec. Changes nothing else. */
MUST_CHECK bool job_spec_settle(struct job_spec *spec, struct arena *mem, struct shape *shape, struct err *err);
/* What to execute: the command, or a shell with the lines of setup and run; empty: the image's own entrypoint. */
struct texts job_argv(const struct job_spec *spec, struct arena *mem);
int64_t disk_rounded(int64_t mib);                          /* as nodes make them: what is asked for, counted and made is the same */
MUST_CHECK bool image_ref_check(const char *image, struct err *err);    /* "host", or what a registry or an import could be called */
MUST_CHECK bool job_mount_parse(const char *text, struct arena *mem, struct job_mount *out, struct err *err);
MUST_CHECK bool flavor_parse(const char *text, struct shape *out, struct err *err);     /* what flavor_of writes; 0 where a name says nothing */
const char *flavor_of(const struct shape *shape, const char *gpu_model, char out[static 48]);   /* "h200.1x", "h200.share-250", "cpu.4x16" */
