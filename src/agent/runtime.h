/* runtime.h - containers as the agent sees them: start one, ask it to end, find them all again after a restart.
 *
 * Each attempt has a folder and a supervisor (`arcus task`), a small static program that is the parent of the container. The
 * agent talks to it through files (its status is replaced with fsync and seen through dir_watch) and, for terminals, through
 * its socket; so the agent may die at any time. Nothing here blocks: slow steps (pulling, unpacking) run on an actor. */
#pragma once
#include "agent/care.h"
#include "model/node.h"
#include "model/order.h"
#include "os/os.h"

struct runtime;
struct runtime_config {
    const char *data;           /* /var/lib/arcus or the data folder: attempts, logs, images, volumes, spool */
    const char *run;            /* /run/arcus: root filesystems, secrets, sockets; in memory */
    const char *self;           /* absolute path of the arcus program */
    bool host_image;
    struct texts hide;          /* further paths of the node that a task of `image: host` must not see: keys, config, the store */
    const char *cdi;            /* see inject.h */
    const char *mps;            /* NULL or "auto": shares of GPUs go through MPS where there is one; "off"; else its program */
    const char *nvml;           /* as helper_config */
    bool own_devices;           /* the mode of a card that is shared may be set */
    int64_t keep_logs_s;        /* logs and outputs after their last byte; 0: 7 days */
    bool uplink;                /* tasks may leave through this node */
    bool underlay;              /* the network between nodes is trusted to carry those of projects */
    const char *underlay_address;   /* ours in it; NULL: the one that the servers see */
    struct texts servers;       /* urls: they are closed to tasks */
    const char *libcuda, *uvm;  /* of the suspend helper, beside nvml; NULL: the usual */
    int64_t over_ms;            /* one that was suspended may use more memory than it asked for so long after it runs again; 0: 30 s */
    struct care *care;          /* of its GPUs; NULL: whatever they are, they are used */
    struct heads *heads;        /* where blobs (images, work folders) come from */
};

/* What a supervisor writes to DATA/status/ATTEMPT, the whole of it each time. */
enum task_phase { PHASE_PREPARING, PHASE_RUNNING, PHASE_ENDED };
struct task_status {
    int64_t attempt;
    int phase;                  /* enum task_phase */
    int64_t pid, start_time;    /* of the supervisor */
    int64_t started_ms, ended_ms;
    int outcome;                /* enum outcome */
    int64_t exit_code, signal;
    const char *detail;
    int blame;                  /* enum blame, with node_fault. The agent's own word, and lost if it ends before the task does */
};
extern const struct fields task_status_fields;

struct runtime_events {
    void (*on_status)(void *arg, const struct task_status *s);  /* it changed; also once for each known attempt after runtime_open */
    void (*on_hold)(void *arg);         /* runtime_holds has something new; may be NULL */
};
MUST_CHECK bool runtime_open(struct os *os, const struct runtime_config *config, const struct runtime_events *events, void *arg,
                             struct runtime **out, struct err *err);   /* finds what runs; an attempt whose supervisor is gone without
                                                                          an end is killed and told as OUTCOME_NODE_FAULT */
void runtime_close(struct runtime *r);          /* lets go; containers stay */
void runtime_start(struct runtime *r, const struct order *o);   /* idempotent; failures come as an ended status */
void runtime_stop(struct runtime *r, int64_t attempt, int64_t grace_s, enum outcome as);    /* idempotent */
/* What the tasks hold of GPUs (of struct gpu_live, each with its uuid and its tasks): whoever holds more than its share is ended. */
void runtime_held(struct runtime *r, const struct objects *held);
void runtime_xid(struct runtime *r, const char *uuid, int64_t xid);         /* the driver told this error of a GPU */
bool runtime_has_shares(const struct runtime *r);     /* parts of GPUs are held, so that is to be asked */
/* It is to be suspended (on), or to run again. The newest wish counts, by its number; how it went is in runtime_holds. */
void runtime_hold(struct runtime *r, int64_t attempt, int64_t n, bool on, int64_t room_mib);     /* room_mib: beyond its memory limit */
/* Of struct task_use: those whose order says `watch`; now and then, else none. Borrowed until the next call. */
struct objects runtime_uses(struct runtime *r, bool (*has_session)(void *arg, int64_t attempt), void *arg);
void runtime_used(struct runtime *r, int64_t attempt);      /* a session into it was open until now */
struct objects runtime_holds(struct runtime *r);      /* of struct hold_told; borrowed until the next call */
void runtime_lose_gpu(struct runtime *r, const char *uuid, const char *why);     /* it has a fault: who uses it ends as a fault of the node */
void runtime_policy(struct runtime *r, const struct order *o);  /* where one that runs may go has changed, or may have */
void runtime_mesh(struct runtime *r, bool full, struct objects nets);   /* struct net_part: where tasks of its projects are on other nodes */
void runtime_servers(struct runtime *r, struct texts urls);     /* the cloud's head nodes as they are now: closed to tasks */
void runtime_contact(struct runtime *r);        /* the server was heard: every run-until time is renewed */
void runtime_forget(struct runtime *r, int64_t attempt);  /* settled: remove its folder; logs and outputs are kept for a while */
void runtime_drop_volume(struct runtime *r, int64_t volume);   /* its folder is out of the way at once, and removed in time */
/* How an attempt ended that was forgotten, as long as its logs are kept. */
bool runtime_past(struct runtime *r, int64_t attempt, struct arena *mem, struct task_status *out);
bool runtime_settled(struct runtime *r, int64_t attempt);       /* nothing of a forgotten one is left but that */
bool runtime_has(struct runtime *r, int64_t attempt);           /* its folder is there */
size_t runtime_list(struct runtime *r, struct arena *mem, int64_t **attempts);  /* not ended yet */
const char *runtime_log_folder(struct runtime *r, int64_t attempt, char out[static 256]);
bool runtime_socket(struct runtime *r, int64_t attempt, char out[static 108]);           /* of its supervisor, once it runs and is known */
struct texts runtime_goods(struct runtime *r);   /* images and work folders that are here, as hello tells them */
void runtime_describe(struct runtime *r, struct node_info *info, struct arena *mem);    /* runtime, cgroups, cannot */
