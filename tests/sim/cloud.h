/* cloud.h - a whole cloud in one process and in virtual time: the real server on the machine "head", real agents on "n1", "n2"
 * and "n3", a client, and supervisors of straw. One seed is one run.
 *
 * The test is the operator (it starts what has fallen), the misfortune (it kills, crashes and cuts) and the bookkeeper: it
 * alone knows what every supervisor really did, and when. */
#pragma once
#include "base/id.h"
#include "model/job_state.h"
#include "os/sim.h"
#include "server/server.h"
#include "store/store.h"

enum { NODES_MOST = 3, WISHES_MOST = 256, RUNS_MOST = 2048, RUN_FOR_S = 30, MARGIN_S = 15 };

/* --- what a supervisor did (supervisor.c) */
struct straw;
struct run {
    int64_t attempt;
    int node;
    int64_t from_ms, to_ms;         /* from its start until nothing of its task ran, by the world's clock; to 0: it runs */
    int64_t started_ms, ended_ms;   /* its container, by the wall clock; 0: never */
    int64_t container_ms;           /* when it began, by the world's clock */
    bool tried, told;               /* its end may be, or is, in its status file: a write that fails can be seen */
    enum outcome outcome;
    int64_t exit_code;
    struct straw *alive;
};

/* --- what a client wants (client.c) */
enum wish_kind { WISH_SUBMIT, WISH_CANCEL, WISH_READ, WISH_CHANGE };
struct wish {
    struct cloud *cloud;
    enum wish_kind kind;
    char name[16], idem[24], path[96];
    const char *method;
    struct str body;
    int calls;                      /* on their way */
    bool twice;                     /* sent two times at once, as an impatient client does */
    bool done;
    int status;                     /* of the answer that settled it */
    char why[160];
    char job[ID_TEXT];              /* of a submit: what the first answer said */
    int64_t again_ms;
    /* of a submit: what its tasks do */
    int64_t run_ms, exit_code, count, retries, max_duration_s;
    bool impossible;                /* no node is large enough */
    bool waits;                     /* on_lost: wait */
    struct wish *after, *target;    /* target: of a cancel or a read */
    int when;                       /* enum after_when */
    bool cancelled, partly;         /* somebody asked for all of it, or for a task */
    int state, outcome;             /* as the store has them in the end */
};

struct machine_of {
    char host[8];
    struct os *os;                  /* init's, which starts the program */
    struct proc *proc;              /* the program */
    bool fresh;                     /* has just booted: /run is empty */
    bool refused;                   /* its token was spent when the answer got lost: it needs another */
    int64_t asked_ms;               /* for one; 0: not yet */
    int64_t back_ms;                /* the operator starts it then; 0: it runs */
};

struct cloud {
    struct sim *sim;
    struct rng rng;                 /* of the misfortune; the world has its own */
    struct machine_of head, nodes[NODES_MOST], client;
    int node_count;
    struct server *server;          /* NULL: down */
    struct sim_proc *server_self;
    struct agent *agents[NODES_MOST];
    char tokens[NODES_MOST][80];
    char key[80];
    struct http_client *http;
    struct wish wishes[WISHES_MOST];
    size_t wish_count;
    struct run runs[RUNS_MOST];
    size_t run_count;
    char failed[400];               /* the first thing that was wrong; "" nothing */
    int64_t commits;
    /* follower.c */
    bool following;
    int64_t follow_ms, followed;    /* when it tries again; the last event it saw */
    struct str event_text, event_names;
    struct arena *mem;
    bool faults;                    /* some operations of the world fail in this run: disks, streams, processes */
    bool jumped;                    /* clocks were wrong, so the server may have mended times that it was told */
    bool loud;                      /* one seed is replayed: tell what happens */
};

void cloud_open(struct cloud *c, uint64_t seed, bool loud);
void cloud_close(struct cloud *c);
void cloud_fail(struct cloud *c, const char *fmt, ...) PRINTF(2, 3);
void cloud_say(const struct cloud *c, const char *fmt, ...) PRINTF(2, 3);   /* when it is loud */
static inline bool cloud_ok(const struct cloud *c) { return !c->failed[0]; }
void cloud_run(struct cloud *c, int64_t ms);        /* virtual time passes; the operator starts what is due */
bool cloud_wait(struct cloud *c, int64_t ms, bool (*enough)(struct cloud *c));
int64_t chance(struct cloud *c, int64_t least, int64_t most);

void head_start(struct cloud *c);
void head_kill(struct cloud *c, int64_t back_after_ms);             /* SIGKILL */
void head_crash(struct cloud *c, int64_t back_after_ms);            /* the machine: what was not synced is lost */
void head_leave(struct cloud *c, int64_t back_after_ms);            /* as SIGTERM does */
void node_start(struct cloud *c, int node);
void node_kill(struct cloud *c, int node, int64_t back_after_ms);   /* the agent alone */
void node_crash(struct cloud *c, int node, int64_t back_after_ms);
void heal(struct cloud *c);                                         /* the network, and everything is started */

/* --- supervisors */
void straws_install(struct cloud *c);
struct run *run_of(struct cloud *c, int64_t attempt);               /* NULL: it never began */
void straws_crashed(struct cloud *c, int node);
bool straw_kill(struct cloud *c);                                   /* one of those that live; false: none */
size_t straws_alive(const struct cloud *c);

/* --- the client */
void client_open(struct cloud *c);
void client_follow(struct cloud *c);                                /* events, from where it was; does nothing while it does */
struct wish *wish_submit(struct cloud *c);                          /* whatever chance wants */
struct wish *wish_work(struct cloud *c, int64_t run_ms, int64_t exit_code, int64_t retries, const char *more);  /* more: ",\"name\":..." */
void wish_cancel(struct cloud *c);
void wish_read(struct cloud *c);
void wish_change(struct cloud *c);                                  /* a job's priority, or whether a node takes new work */
void wish_uncordon(struct cloud *c, int node);
void wish_volumes(struct cloud *c);
bool wishes_done(struct cloud *c);
void client_tick(struct cloud *c);                                  /* tries again what is due */

/* --- the books */
void books_commit(struct cloud *c);                                 /* after each commit: nothing is given twice */
void books_memory(struct cloud *c);                                 /* the server's memory is what its store says */
void books_followed(struct cloud *c, const struct rows *events);
void books_picture(struct cloud *c);                                /* and the planner's picture what the memory says */
bool books_idle(struct cloud *c);                                   /* everything that can end has ended */
const char *books_busy(struct cloud *c);                            /* what has not; NULL: nothing */
void books_print(struct cloud *c);                                  /* every attempt, as the store and as the test have it */
void books_check(struct cloud *c);                                  /* all of it, when the cloud is idle */

/* --- runs (sim.c) */
struct result { bool ok; uint64_t trace; size_t requests, attempts; int64_t commits, ms; };
/* A cloud of this seed lives through `live`, then there is peace, then its books are checked; in a process of its own. */
struct result run_apart(uint64_t seed, void (*live)(struct cloud *c, int64_t n), int64_t n);
bool agents_are_linked(struct cloud *c);
