/* mps.h - NVIDIA's daemons for shares of GPUs: one for each GPU that is divided, there from its first share to its last.
 *
 * A daemon is told once how the GPU is divided (a part of its compute and of its memory for every process that comes), and a process cannot
 * widen that: commands are taken from root alone. Tasks are shown its door, a folder with the one socket that they need. It outlives the
 * agent, as tasks do, and is found again. One that dies takes its tasks with it: they are told through on_lost. Nothing here blocks. */
#pragma once
#include "agent/shares.h"
#include "os/os.h"

struct mps;
struct cgroups;
struct workshop;
struct mps_config {
    const char *run;            /* RUN/mps is ours */
    const char *self;           /* the arcus program */
    const char *program;        /* nvidia-cuda-mps-control; NULL: where drivers put it */
    bool own;                   /* the operator gave the devices to the agent: a card that is shared is in EXCLUSIVE_PROCESS mode as long as it is */
    const char *nvml;           /* as helper_config */
    int64_t end_ms;             /* how long mps_terminate may take; 0: a second */
    int64_t beat_ms;            /* how often a daemon is asked whether it lives, and how long it has for that, twice; 0: 5 s */
    const struct cgroups *cgroups;  /* with shop: what a daemon leaves behind is ended there; NULL: nothing is. Both outlive us */
    struct workshop *shop;
};
struct mps_events {
    void (*on_lost)(void *arg, const char *uuid, const char *why);      /* whoever holds a share of this GPU must end; mps_blame says who may have caused it */
    /* Nothing divides this GPU any more. err NULL: and it is as it was before; else it cannot be given back. */
    void (*on_whole)(void *arg, const char *uuid, const struct err *err);
};
struct mps *mps_new(struct os *os, const struct mps_config *config, const struct mps_events *events, void *arg);   /* all is copied */
void mps_free(struct mps *m);                   /* lets go; daemons stay, and no callback follows. NULL is fine */
bool mps_works(const struct mps *m);            /* the program is there */

/* The daemon of this GPU is there and divides it so. err NULL: it is; else the share cannot be had. */
void mps_want(struct mps *m, int64_t attempt, const struct share *s, void (*done)(void *arg, const struct err *err), void *arg);
void mps_hold(struct mps *m, int64_t attempt, const struct share *s);   /* an attempt that was found again holds this */
void mps_drop(struct mps *m, int64_t attempt);  /* it has ended; before done was called it is not any more */
bool mps_whole(struct mps *m, const char *uuid);        /* true: nothing of ours is on this GPU; else on_whole comes, maybe from in here. NULL is fine */
void mps_begin(struct mps *m);                  /* all that was found again was told: daemons that nobody needs any more leave */
const char *mps_door(const struct mps *m, const char *uuid, struct arena *mem);     /* the folder for its tasks; NULL: it has none */

/* mps_watch.c */
void mps_look(struct mps *m);                   /* often: what daemons have written since. NULL is fine, as for the next three */
void mps_xid(struct mps *m, const char *uuid, int64_t xid);     /* the driver told this error */
const char *mps_fault(struct mps *m, const char *uuid);         /* just now a fault hit whoever shares this GPU: why; NULL: none */
enum blame mps_blame(const struct mps *m, int64_t attempt, const char *uuid);        /* what this attempt has to do with the last one there (mps_pids.c) */
void mps_seen(struct mps *m, const char *uuid, int64_t attempt, const char *pids);   /* these use it, so the driver says: numbers with blanks (mps_pids.c) */
bool mps_shared(const struct mps *m, const char *uuid);         /* it has more than one holder */

/* mps_end.c: its processes' work on this GPU is ended, so that they can be killed; done is called when it is, when that cannot be, or at once where
 * nobody is beside it. */
void mps_terminate(struct mps *m, int64_t attempt, const char *uuid, void (*done)(void *arg), void *arg);

enum { MPS_GROUP = 96 };
void mps_group(const char *folder, char out[static MPS_GROUP]);     /* the control group of a daemon and its servers */

#define MPS_DOOR "/tmp/nvidia-mps"              /* where tasks find it: what CUDA takes when nothing is told */
int mps_daemon_main(int argc, char **argv);     /* `arcus mps-daemon FOLDER UUID PROGRAM`: becomes it; nobody types it */
int mps_mode_main(int argc, char **argv);       /* `arcus device-mode FILE UUID exclusive_process|restore [NVML]`: the same */
