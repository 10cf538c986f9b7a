/* runtime_internal.h - what the files of the runtime share: runtime.c (its face, and what is
 * found again), runtime_start.c (from an order to a supervisor), runtime_slots.c (supervisors that wait), runtime_clean.c (what is left
 * of a dead one), runtime_trial.c (what works on this host). */
#pragma once
#include "agent/cgroup.h"
#include "agent/goods.h"
#include "agent/image.h"
#include "agent/inject.h"
#include "agent/io.h"
#include "agent/mps.h"
#include "agent/net.h"
#include "agent/runtime.h"
#include "agent/task_plan.h"
#include "agent/workshop.h"
#include "base/id.h"
#include "base/map.h"

enum { RUNTIME_PATH = 1024, SPAWN_WAIT_MS = 15000, READ_AGAIN_MS = 1000, READ_TRIES = 30, SPARES = 16 };

enum stage {
    STAGE_WAITS,        /* for the trial, its image, its work folder, a scratch template */
    STAGE_SPAWNED,      /* a supervisor was started and has said nothing yet */
    STAGE_LIVE,         /* its supervisor is known and watched */
    STAGE_CLEANING,     /* the supervisor is gone without having told an end */
    STAGE_ENDED,
};
struct hold {                   /* of one that was to be suspended: runtime_suspend.c */
    int64_t asked, done;        /* numbers of wishes: the newest, and the last that was answered; 0: none */
    bool on;                    /* what the newest wants */
    int tries, state;           /* state: enum suspend_state, of `done` */
    int64_t at_ms, gpu_mib, mem_mib, room_mib;
    char *why;
    struct warm *helper;        /* at work */
    struct timer *late, *again;
    int64_t limit_bytes;        /* it runs again, and its memory limit is to be lowered to that; 0: it is */
    int64_t shrink_ms, left_ms; /* until that is tried again, and until it is ended for what it uses */
    struct timer *shrink;
};
struct attempt {
    struct runtime *r;
    int64_t id;
    char name[ID_TEXT];
    enum stage stage;
    int64_t uid_base;           /* 0: has no range (any more) */
    struct arena *mem;          /* of order, image and blob; freed once the supervisor runs */
    struct order *order;
    const struct image *image;
    const char *workdir;        /* path of the blob */
    bool lies_on_own;           /* its disk lies on an archive that was imported, which is asked for */
    bool asked_image, asked_workdir, asked_template, asked_net, has_net, asked_share, waits_share, has_share;
    struct net_holder holder;   /* a supervisor that was found: it may hold the networks open */
    char address[16];           /* in its project's network; "": none */
    int awaited;                /* callbacks that will come with us as their argument */
    struct proc *proc;          /* the supervisor */
    struct slot *slot;          /* that runs it; NULL: it has a supervisor for itself */
    struct timer *patience;
    struct timer *again;        /* its status could not be read: looks once more then */
    int unread;                 /* how often in a row */
    bool torn;                  /* ... though it is there and can be read: it makes no sense */
    bool in_slot;               /* it was run by a supervisor that waited, so its folder holds what was written for it and nothing else */
    int stop_as;                /* enum outcome it was asked to end as */
    struct shares shares;       /* of GPUs */
    char waits_whole[96];       /* it begins, or is restored, when nothing divides this GPU any more; "": that is not waited for */
    struct hold hold;
    struct slice_held *slices;  /* MIG instances; malloc'd, NULL: not looked at */
    size_t slice_count, has_slices;     /* so many GPUs of the order need no instance, or have it */
    bool waits_slice;           /* another's is being made */
    bool over;                  /* it held more than these, and is being ended for it, or for a GPU of its that has a fault */
    enum blame blame;           /* it is ended for a fault on its GPU: what it has to do with that */
    int outside;                /* how often in a row it was seen to use its GPU around MPS */
    struct clearing *clearing;  /* its work on the GPU is being ended, or was, so that it can be killed; malloc'd */
    int64_t doubt_ms;           /* it failed, and until then it is waited whether another's fault was the reason; 0: that is not asked */
    struct care_leases leases;  /* all that it holds of GPUs */
    int64_t project;            /* whose they are */
    bool asked_gpus, waits_gpus, has_gpus;  /* these are well, and clean of what others left there */
    bool gpus_away;             /* it is suspended: others may have them */
    struct task_status last;    /* detail is not kept */
    bool watched, used;         /* it is asked whether it is used; a session was open since it last was */
    int64_t cpu_us, cpu_ms;     /* what it had taken of processors by then */
};

/* What the trial found out. */
struct runtime_means {
    bool known;
    const char *runtime;        /* "/usr/bin/crun"; NULL: nothing works, `why` says so */
    char version[64], why[256], filter[32 * 1024];
    int scratch;                /* enum plan_scratch */
};

struct slice_held { char uuid[96], what[48]; };         /* of which GPU; "3g.71gb@4" */

struct first_look { struct post post; struct runtime *r; };

struct runtime {
    struct os *os;
    struct arena *mem;
    struct runtime_config config;
    const struct runtime_events *events;
    void *arg;
    bool real;                  /* not the simulation */
    char supervisor[RUNTIME_PATH];
    struct cgroups cgroups;
    bool limit_swap;
    struct io_means io;
    struct runtime_means means;
    struct map *attempts;       /* of struct attempt, by id */
    struct map *ranges;         /* whose it is (an attempt or a slot), by uid_base */
    int64_t last_range;
    struct watch *watch;
    struct workshop *shop;      /* trial, templates, cleaning, removing */
    struct workshop *quick;     /* a dead attempt's end must not wait behind a slow removal */
    struct slots *slots;
    struct inject *inject;      /* what GPUs need in a container */
    size_t sharers;             /* attempts that hold parts of GPUs */
    struct making *making;      /* a MIG instance */
    struct mps *mps;            /* divides GPUs; NULL: not of this world, or not wanted */
    struct net *net;            /* NULL: not of this world, or closed */
    int64_t spares[SPARES];     /* tasks/.spare-N: folders of forgotten attempts, for the next ones */
    size_t spare_count;
    int64_t last_spare;
    struct blobs *blobs;
    struct images *images;
    struct goods *goods;
    struct timer *sweep;
    int lease;
    struct texts hide;
    struct first_look *look;
    struct hold_told *holds;    /* as they were last told */
    size_t watched;             /* attempts of which is asked whether they are used: runtime_use.c */
    struct task_use *uses;      /* as they were last told */
    int64_t uses_ms;
    struct warm *warm;          /* a suspend helper that waits; NULL: none */
};

/* runtime.c */
struct attempt *attempt_new(struct runtime *r, int64_t id);
void attempt_free(struct attempt *a);
void attempt_doubt(struct attempt *a, int64_t ms);         /* its end is looked at again then */
void attempt_tell(struct attempt *a, const struct task_status *s);
void attempt_end(struct attempt *a, enum outcome outcome, const char *detail);  /* the agent itself tells the end */
void attempt_stop(struct attempt *a, int64_t grace_s, enum outcome as, const char *why);     /* why: a sentence for its end; NULL: as says enough */
void attempt_look(struct attempt *a);           /* reads its status and acts on it */
void supervisor_gone(struct attempt *a);        /* it will not tell more than it has told */
bool attempt_watch(struct attempt *a);          /* false: its supervisor is gone */
bool attempt_comes(struct attempt *a);          /* its supervisor holds the lock and has told nothing yet: it is waited for */
const char *in_data(struct runtime *r, char out[static RUNTIME_PATH], const char *folder, const char *name);
const char *past_path(struct runtime *r, char out[static RUNTIME_PATH], const char *name);   /* how it ended, once forgotten */
const char *in_run(struct runtime *r, char out[static RUNTIME_PATH], const char *folder, const char *name);
bool plain_write(struct runtime *r, const char *path, struct slice bytes, unsigned mode, struct err *err);  /* no promise after a crash */
void write_object(struct str *out, const struct fields *fields, const void *from);

/* runtime_start.c */
void start_advance(struct attempt *a);
bool take_range(struct runtime *r, int64_t *base, void *owner);
bool supervisor_write(struct runtime *r, struct err *err);      /* the embedded program becomes RUN/bin/arcus-task */

/* runtime_slots.c */
struct slots *slots_new(struct runtime *r);
void slots_free(struct slots *s);               /* those that wait leave, those that run a task do so when it is over; NULL is fine */
void slots_sweep(struct slots *s);              /* folders of those that were killed behind an agent before us */
struct slot *slot_take(struct slots *s, const struct plan *p);  /* one that waits and has what this plan asks for, or NULL; also makes more, for later */
void slot_fill(const struct slot *s, struct arena *mem, struct plan *p);    /* what a plan has of its slot */
void slot_give(struct slot *s);                 /* it was not used */
void slot_start(struct slot *s, struct attempt *a, const char *folder);
void slot_leave(struct attempt *a);             /* its end was told */

/* runtime_devices.c */
void devices_describe(struct runtime *r, struct node_info *info, struct arena *mem);    /* GPUs that cannot be given are not healthy, and cannot says why */

/* runtime_gpus.c */
bool gpus_ready_for(struct attempt *a);         /* false: it is waited for, or a has ended */
struct objects gpus_plan(const struct attempt *a, struct arena *mem);   /* of struct plan_gpu */
void gpus_found(struct attempt *a, const struct plan *p);
void gpus_left(struct attempt *a);
void gpus_away(struct attempt *a);                 /* it is suspended */
bool gpus_back(struct attempt *a);                 /* false: suspend_clean comes, unless gpus_left does */

/* runtime_shares.c */
void shares_begin(struct attempt *a, struct shares s);     /* it holds these from now on */
void shares_end(struct attempt *a);
bool has_shares(struct attempt *a);             /* what divides its GPU is there; else it is waited for, or the attempt was ended */
bool has_whole(struct attempt *a);              /* its GPUs that are no shares are divided by nothing any more; else that is waited for, or the attempt was ended */
bool has_whole_again(struct attempt *a);        /* the same for one that was suspended */
void shares_open(struct runtime *r);            /* all attempts of before are known */
void shares_close(struct runtime *r);
bool shares_clear(struct attempt *a, enum outcome as, const char *why);        /* true: it is stopped when its work on a shared GPU has ended */
bool shares_doubt(struct attempt *a, const struct task_status *s);     /* it ended so: not to be told yet, or it was told otherwise */
void shares_describe(const struct runtime *r, const struct node_info *info, const char **cannot, size_t *count);

/* runtime_suspend.c */
void suspend_found(struct attempt *a);             /* with what one before us left of it */
void suspend_live(struct attempt *a);              /* its supervisor is known: what is to be done can be */
void suspend_clean(struct attempt *a, const char *why);    /* its GPUs are its own again; why: they cannot be */
void suspend_end(struct attempt *a);
/* runtime_use.c */
void use_watch(struct attempt *a, bool on);

/* runtime_mig.c */
bool has_slices(struct attempt *a);             /* its MIG instances are there; else they are made, or the attempt was ended */
struct objects slices_plan(const struct attempt *a, struct arena *mem);     /* of struct plan_slice */
void slices_found(struct attempt *a, const struct plan *p);     /* what an attempt that was found again holds of those */
void slices_close(struct runtime *r);

/* runtime_warm.c */
void warm_ready(struct runtime *r);                /* the next wish will find one that waits */
/* A helper is given its wish: flags and values, all with tabs between them, and a line's end. over: it has ended. NULL: none could be. */
struct warm *warm_take(struct runtime *r, const char *line, void (*over)(void *arg), void *arg, struct err *err);
void warm_forget(struct warm *w);                  /* nobody waits for its end any more; NULL is fine */

/* runtime_clean.c */
void clean_dead(struct attempt *a);             /* kills what is left of it, then tells NODE_FAULT */
bool clean_container(const struct cgroups *cgroups, const char *run, const char *name);   /* blocks; false: something of it is stuck */
void clean_forgotten(struct runtime *r, const char *name, bool in_slot);
bool spare_take(struct runtime *r, const char *path);           /* an old folder is at path now, with old files in it; false: there was none */
bool clean_status(struct os *os, const char *status, const char *end);  /* true: it is out of the way */
void clean_never_ran(struct runtime *r, const char *name);      /* its folder is out of the way when this returns */
void clean_sweep(struct runtime *r);            /* logs, outputs, blobs and images that were kept long enough */

/* runtime_trial.c */
void trial_start(struct runtime *r);
MUST_CHECK bool template_make(struct os *os, const char *path, int64_t mib, bool journal, struct err *err);   /* blocks */
