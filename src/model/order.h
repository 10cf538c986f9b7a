/* order.h - what the server tells a node to run, and what the node tells back: the messages of the agent's one connection.
 *
 * Each message is one JSON object with a `kind`. Up: hello (struct node_info), report, beat. Down: desired, ack, open.
 * All are bound by the tables here, so a bad one is refused by both sides in the same words. */
#pragma once
#include "base/field.h"
#include "model/job.h"

/* Of one node. The server places no more there than it can be told of in one piece when it comes back: orders that wait to be
 * begun take ORDERS_BYTES at most by the server's count, in which a secret has its greatest size and any order ORDER_BYTES. JSON may
 * make six bytes of one. */
enum { ORDERS_MOST = 1 << 16, ORDER_BYTES = 4096, ORDERS_BYTES = 64 << 20, DESIRED_BYTES = 512 << 20, SECRET_BYTES = 64 << 10 };

/* In the tasks of gangs: its addresses and how many processes each takes, as mpirun(1) reads them, and the folder of arcus-launch. */
#define HOSTFILE_PATH "/run/arcus/hostfile"
#define LAUNCH_PATH "/run/arcus/bin"
enum { HOSTFILE_BYTES = JOB_NODES_MAX * 32 };

struct order_gpu { int64_t index; const char *uuid; int64_t milli, mem_mib; bool simulated; const char *mig; int64_t slot, size; };   /* of a MIG slice: its profile, first memory slot, and how many */
struct order_mount { int64_t volume; const char *name, *path; bool read_only; };
struct order_secret { const char *name, *value; };

struct order {
    int64_t attempt, job, project;
    int64_t task;               /* index in the array */
    int64_t count;              /* size of the array */
    int64_t try_number;         /* 1, 2, ... */
    bool host_network;          /* it has no network of its own, but the node's */
    bool stop;                  /* end it: SIGTERM, then SIGKILL after grace_s */
    int stop_as;                /* enum outcome that its end is to be told as: cancelled, preempted */
    const char *name, *image, *image_blob;  /* image: "host", a registry reference, or a name with image_blob's digest */
    struct texts argv;          /* settled: what to execute; empty: the image's own entrypoint */
    struct pairs env;
    struct objects gpus;        /* of struct order_gpu */
    int64_t cpu_milli, mem_mib, shm_mib, disk_mib, disk_mibs, log_mib;
    struct objects secrets;     /* of struct order_secret; never written to a disk */
    struct objects mounts;      /* of struct order_mount */
    bool watch;                 /* it is told with reports whether somebody uses it: struct task_use */
    int64_t disk;               /* of an instance: what it writes is kept under this number, for its next attempt; 0: it goes with this one */
    bool disk_used;             /* something has run on it: if it is not there, it was lost, and none is made in its place */
    const char *workdir;        /* digest of the uploaded folder, or NULL */
    const char *user;
    int64_t net, mbit;          /* the number of its project's network, 0: it gets none; what it may send and receive, in Mbit/s, 0: not capped */
    const char *hostfile;       /* of a gang that reaches itself: what is to be in HOSTFILE_PATH; LAUNCH_PATH is there then, too */
    const char *address, *egress;   /* in that network; where it may go (model/ipv4.h) */
    int64_t max_duration_s, grace_s;
    int64_t hold_n;             /* the newest wish about suspending it: its number; 0: there never was one */
    bool hold;                  /* it is to be suspended; else to run */
    int64_t hold_mib;           /* so much of the node's memory it may take for that beyond its limit */
    int64_t run_for_s;          /* after a contact it may run this long without another; 0: for ever (on_lost: wait) */
};

/* Where addresses of a project's network are: on other nodes, told by their address on the underlay (node_info.underlay). */
struct net_at { const char *node, *hosts; };            /* node "": nobody has them any more; hosts: numbers in the project's range, "2,17" */
struct net_part { int64_t net; bool whole; struct objects at; };   /* whole: all there are; else only what changed, in its order */

struct desired {                /* down: the orders of this node. full: all there are; else only what changed */
    const char *kind;
    int64_t generation;
    bool full;
    struct objects orders;      /* of struct order */
    struct texts gone;          /* attempts that the server has settled: forget and clean them */
    struct texts volumes_gone;  /* removed volumes; named until a report says that they are swept */
    int64_t kept;               /* report items up to this number are durable: drop them */
    int64_t now_ms;             /* the server's clock, to tell a drift */
    bool rotate;                /* bring a new key (node.rekey), then come with it */
    int64_t beat;               /* of the last report or hello that came on this connection: only what answers something sent a
                                   moment ago renews the run-until times; 0: not told */
    int64_t look_ms;            /* somebody looks at the GPUs: figures are wanted this often; 0: nobody does */
    struct objects nets;        /* of struct net_part: of the projects that this node has tasks of. full: what is not named is nowhere else */
    struct texts servers;       /* URLs of the servers that live, the one that writes among them; none: nothing is told about it */
};

enum task_news { TASK_STARTED, TASK_ENDED, TASK_NEWS_COUNT };
struct report_item {
    int64_t n;                  /* numbered by the node without gaps, for ever; the server keeps the last it took */
    int64_t attempt;
    int news;                   /* enum task_news */
    int64_t at_ms;              /* wall clock of the node when it happened */
    int64_t started_ms;         /* with `ended`: when it was ready; 0: never */
    int outcome;                /* enum outcome, with `ended` */
    int64_t exit_code, signal;
    const char *detail;         /* one sentence: "sh: not found in the image" */
    int blame;                  /* enum blame, with node_fault */
};
/* Where an attempt is that was to be suspended or to run again. Told with every report, as long as it lives: a fact, not news. */
enum hold_state { HOLD_RUNNING, HOLD_SUSPENDED, HOLD_STATE_COUNT };
struct hold_told {
    int64_t attempt, n;         /* the wish that it answers */
    int state;                  /* enum hold_state */
    int64_t at_ms;              /* wall clock of the node when it got there */
    int64_t gpu_mib;            /* what it had on its GPUs */
    int64_t mem_mib;            /* of one that is suspended: all that it has in the node's memory; 0: not known */
    int64_t over_mib;           /* it runs, and may use so much of the node's memory beyond what it asked for, until its limit is lowered again */
    const char *why;            /* it is not as it was wished, and why */
};
/* Of one that is watched: what it did since it was last told. */
struct task_use {
    int64_t attempt;
    int64_t cpu_milli;          /* thousandths of a processor; -1: not known */
    bool session;               /* a stream into it (exec, SSH, a port, files) is open, or was */
};
struct report {                 /* up; a beat is one without items. It renews every run-until time of the node */
    const char *kind;
    int64_t generation;         /* of the last `desired` taken */
    int64_t beat;               /* counts what the agent sent on this connection; the server gives it back in `desired` */
    struct objects items;       /* of struct report_item */
    struct texts swept;         /* volumes of volumes_gone whose folders are gone */
    struct objects live;        /* of struct gpu_live: what the GPUs do; in some reports */
    struct objects holds;       /* of struct hold_told */
    struct objects uses;        /* of struct task_use; in some reports */
};

struct open_stream {            /* down: dial back on /v1/streams/{stream} and serve this */
    const char *kind;
    const char *stream;         /* a secret of this one use */
    const char *what;           /* "logs", "exec", "get", "put", "dial", "ssh" */
    int64_t attempt;
    int64_t volume;             /* get and put on a volume instead of a task */
    struct texts argv;          /* of exec; of ssh: public keys that are let in */
    struct texts barred;        /* of ssh: keys that were removed lately, and are struck where an earlier session has left them */
    bool tty, follow;
    int64_t rows, cols;
    int64_t tail;               /* of logs: last lines; -1: all */
    const char *source;         /* of logs: "stdout", "stderr" or "" for both */
    const char *from;           /* of logs: goes on behind this mark, which the agent told before; then tail counts for nothing */
    const char *path;           /* of get and put */
    int64_t port;               /* of dial: on the task's loopback */
};

/* A followed log is told in pieces with a mark each, so that whoever loses the connection goes on exactly behind it, whatever was dropped
 * of the log meanwhile: "att-....SEGMENT.OFFSET.BYTES", the attempt and what its agent calls the place (log_format.h: the record that
 * begins at OFFSET of SEGMENT, and how many of its bytes were told). */
enum { LOG_PLACE = 64, LOG_MARK = 96 };
bool log_place_good(const char *place);                                     /* three numbers with dots between */
bool log_mark_read(const char *mark, int64_t *attempt, const char **place);

extern const struct fields order_fields, desired_fields, report_fields, report_item_fields, open_stream_fields;
