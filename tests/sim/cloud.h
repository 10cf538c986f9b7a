/* cloud.h - a whole cloud in one process and in virtual time: the real server on the machine "head" (or several: "head2", "head3"), real agents on "n1", "n2"
 * and "n3", a client, and supervisors of straw. One seed is one run.
 *
 * The test is the operator (it starts what has fallen), the misfortune (it kills, crashes and cuts) and the bookkeeper: it
 * alone knows what every supervisor really did, and when. */
#pragma once
#include "base/id.h"
#include "control/control.h"
#include "model/job_state.h"
#include "os/sim.h"
#include "server/server.h"
#include "store/store.h"

enum { NODES_MOST = 3, HEADS_MOST = 3, TENANTS = 2, WISHES_MOST = 256, RUNS_MOST = 2048, SPARES_MOST = 8, GPUS_MOST = 4, RUN_FOR_S = 30, MARGIN_S = 15 };

/* --- what a supervisor did (supervisor.c) */
struct straw;
struct run {
    int64_t attempt;
    int node;
    int64_t from_ms, to_ms;         /* from its start until nothing of its task ran, by the world's clock; to 0: it runs */
    int64_t started_ms, ended_ms;   /* its container, by the wall clock; 0: never */
    int64_t container_ms;           /* when it began, by the world's clock */
    bool tried, told;               /* its end may be, or is, in its status file: a write that fails can be seen */
    bool lazy;                      /* its status is synced by nobody as long as its agent lives: that one has what it is told */
    bool lost;                      /* the power was cut right behind its end */
    bool frozen;                    /* it is suspended, and holds no GPU */
    enum outcome outcome;
    int64_t exit_code;
    struct straw *alive;
};

/* --- what a client wants (client.c) */
enum wish_kind { WISH_SUBMIT, WISH_CANCEL, WISH_READ, WISH_CHANGE, WISH_LOGS, WISH_KEY, WISH_KEY_OFF, WISH_KEY_TRY };
struct wish {
    struct cloud *cloud;
    enum wish_kind kind;
    int tenant;
    struct spare *spare;            /* the key that it is about */
    bool off_before;                /* of a try: the key was known to be off when it was sent */
    char *keep;                     /* where a secret that is shown once goes */
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
    bool has_secret;
    struct wish *after, *target;    /* target: of a cancel or a read */
    int when;                       /* enum after_when */
    bool held;                      /* somebody asked to suspend it */
    bool cancelled, partly;         /* somebody asked for all of it, or for a task */
    int state, outcome;             /* as the store has them in the end */
};

/* A key that somebody makes, uses and disables (people.c). */
struct spare { bool made, lost, off, asked_off; char id[ID_TEXT], secret[80]; struct http_client *http[HEADS_MOST]; };

/* Who follows the event log (follower.c). */
struct listener_of {
    struct cloud *c;
    int tenant;
    bool on, all;                   /* all: sees every number, so there must be no gap */
    int64_t again_ms, last, now;    /* the last that it has seen; the one that is coming */
    struct str text, seen;          /* seen: "NUMBER NAME" lines */
};
struct tenant { const char *name; char key[80]; struct http_client *http[HEADS_MOST]; };

/* --- what the server gave away (watch.c) */
struct given { int64_t attempt, job, task, milli[GPUS_MOST]; int host; struct wish *wish; };

struct machine_of {
    char host[8];
    struct os *os, *program;        /* init's, which starts the program; the program's own */
    struct proc *proc;              /* the program */
    int64_t still_from, still_to;   /* it stood still, the last time */
    bool fresh;                     /* has just booted: /run is empty */
    bool refused;                   /* its token was spent when the answer got lost: it needs another */
    int64_t asked_ms;               /* for one; 0: not yet */
    int64_t back_ms;                /* the operator starts it then; 0: it runs */
};

struct cloud {
    struct sim *sim;
    struct rng rng, luck;           /* what is done to it; how people react to that. The world has its own */
    struct str acts;                /* how it began and what was done to it since */
    size_t misfortunes;             /* of those */
    size_t freezes;                 /* so often a task stood still */
    struct machine_of heads[HEADS_MOST], nodes[NODES_MOST], client;
    int node_count, head_count;
    struct head_of { struct cloud *c; int h; struct server *server; struct sim_proc *self; int64_t told; } servers[HEADS_MOST];   /* server NULL: down; told: the last event that a follower inside it saw */
    struct server *server;          /* the one that writes; NULL: none */
    struct store *store;            /* of several servers: the test looks at it itself, whoever is cut off */
    struct conn *look;
    struct agent *agents[NODES_MOST];
    char tokens[NODES_MOST][80];
    struct tenant tenants[TENANTS];
    struct wish wishes[WISHES_MOST];
    size_t wish_count;
    struct spare spares[SPARES_MOST];
    size_t spare_count;
    int quota_gpus;                 /* of the second tenant */
    struct wish *quota_wish;        /* that sets it */
    struct run runs[RUNS_MOST];
    size_t run_count;
    struct given given[RUNS_MOST];
    size_t given_count;
    int64_t heard_ms[NODES_MOST];   /* when bytes of a server came to the node */
    char failed[400];               /* the first thing that was wrong; "" nothing */
    int64_t commits, checks;
    struct listener_of followers[TENANTS];
    struct arena *mem;
    bool faults;                    /* some operations of the world fail in this run: disks, streams, processes */
    bool furnished;                 /* it is set up: what follows is the story */
    bool filled;                    /* a disk was full, or out of reach */
    bool fired;                     /* of a story about the nth failure: there was one */
    bool jumped;                    /* clocks were wrong, so the server may have mended times that it was told */
    bool loud;                      /* one seed is replayed: tell what happens */
};

/* How it begins. joined: the nodes are there before anything goes wrong; cold: the server makes its store by itself. */
struct start { uint64_t seed; int heads, nodes; bool joined, cold; };
struct start start_of(uint64_t seed, int heads);    /* by chance; heads 0: two for odd seeds, three for even ones */
void start_print(const struct start *s, struct str *out);
bool start_read(const char *text, struct start *out);
void cloud_open(struct cloud *c, const struct start *s, bool loud);
void cloud_close(struct cloud *c);
void cloud_fail(struct cloud *c, const char *fmt, ...) PRINTF(2, 3);
void cloud_say(const struct cloud *c, const char *fmt, ...) PRINTF(2, 3);   /* when it is loud */
static inline bool cloud_ok(const struct cloud *c) { return !c->failed[0]; }
void cloud_run(struct cloud *c, int64_t ms);        /* virtual time passes; the operator starts what is due */
bool cloud_wait(struct cloud *c, int64_t ms, bool (*enough)(struct cloud *c));
int64_t chance(struct cloud *c, int64_t least, int64_t most);
int64_t luck(struct cloud *c, int64_t least, int64_t most);

/* --- acts.c: all that is done to a cloud is a line of text */
void act(struct cloud *c, const char *fmt, ...) PRINTF(2, 3);       /* notes it and does it */
void acts_play(struct cloud *c, const char *text);                  /* every line but the first, which was cloud_open's */

void head_start(struct cloud *c, int h);
void head_kill(struct cloud *c, int h, int64_t back_after_ms);      /* SIGKILL */
void head_crash(struct cloud *c, int h, int64_t back_after_ms);     /* the machine: what was not synced is lost */
void head_leave(struct cloud *c, int h, int64_t back_after_ms);     /* as SIGTERM does */
void head_pick(struct cloud *c);                                    /* who writes: of those that think so the one with the highest epoch */
int64_t cloud_number(struct cloud *c, const char *sql);             /* out of the store */
struct conn *cloud_conn(struct cloud *c);                           /* to look at the store; there is a server */
void node_start(struct cloud *c, int node);
void node_kill(struct cloud *c, int node, int64_t back_after_ms);   /* the agent alone */
void node_crash(struct cloud *c, int node, int64_t back_after_ms);
void cloud_prepare(void);                                           /* once a process: a cloud that was just set up, to begin others with */
void heal(struct cloud *c);                                         /* the network, and everything is started */

/* --- supervisors */
void straws_install(struct cloud *c);
struct run *run_of(struct cloud *c, int64_t attempt);               /* NULL: it never began */
void straws_crashed(struct cloud *c, int node);
void straws_orphaned(struct cloud *c, int node);                    /* the agent is gone: they see to the disk themselves */
bool straw_kill(struct cloud *c, size_t which);                     /* of those that live; false: there are not as many */
size_t straws_alive(const struct cloud *c);

/* --- the client */
void client_open(struct cloud *c, int tenant);
void clients_of(struct cloud *c, const char *key, struct http_client *out[static HEADS_MOST]);     /* one to each server */
void client_follow(struct listener_of *f);                             /* events, from where it was; does nothing while it does */
struct wish *wish_new(struct cloud *c, enum wish_kind kind, int tenant);    /* NULL: enough is enough */
void wish_send(struct wish *w);
void wish_after(struct wish *w);                                    /* into its body: what it comes after */
void wish_submit(struct cloud *c);                                  /* whatever chance wants */
struct wish *wish_work(struct cloud *c, int64_t run_ms, int64_t exit_code, int64_t retries, const char *more);  /* more: ",\"name\":..." */
void wish_cancel(struct cloud *c);
void wish_read(struct cloud *c);
void wish_change(struct cloud *c);                                  /* a job's priority, or whether a node takes new work */
void wish_reserve(struct cloud *c);                                 /* room for a project in a time, or its end */
void wish_drain(struct cloud *c);                                   /* a node is to be emptied */
void wish_hold(struct cloud *c);                                    /* a job is suspended, or resumed */
void wish_resume_all(struct cloud *c);                              /* what somebody suspended, and nobody resumed */
void wish_uncordon(struct cloud *c, int node);
void wish_unreserve_all(struct cloud *c);
bool wishes_done(struct cloud *c);
void client_tick(struct cloud *c);                                  /* tries again what is due */
struct wish *some_job(struct cloud *c);

/* --- people.c: tenants, secrets, keys, logs */
void people_furnish(struct cloud *c);                               /* projects, volumes, secrets; nothing fails yet */
void wish_key(struct cloud *c);                                     /* makes one, tries one or disables one */
void spare_make(struct cloud *c);
void spare_use(struct cloud *c, int64_t which, bool off);
void secret_change(struct cloud *c, int tenant);
void quota_grow(struct cloud *c);
void wish_secret(struct cloud *c);
void wish_quota(struct cloud *c);
void wish_logs(struct cloud *c);
void spare_answer(struct wish *w, int status, const char *id, const char *key);

/* --- watch.c: after every step */
void watch_open(struct cloud *c);                                   /* listens in on the network */
void watch_server(struct cloud *c, int h);                          /* one has just started */
void watch_commit(struct cloud *c, int h, const struct commit *k);  /* what it says is true, nothing is given twice */
void watch_begins(struct cloud *c, struct run *r);                  /* a supervisor starts */
void watch_runs(struct cloud *c, struct run *r);                    /* its container starts */
struct wish *watch_some(struct cloud *c, bool frozen);              /* a job of which something runs on whole GPUs, or stands still; NULL: none */
void watch_lease(struct cloud *c, int node, int64_t contact_ms);    /* a supervisor believes that the server was heard then */
void watch_acknowledged(struct cloud *c, struct wish *w);           /* a submit */

/* --- the books */
void books_memory(struct cloud *c);                                 /* the server's memory is what its store says */
void books_followed(struct cloud *c, const struct rows *events, const struct listener_of *f, int64_t project);   /* project 0: all */
void books_picture(struct cloud *c);                                /* and the planner's picture what the memory says */
bool books_idle(struct cloud *c);                                   /* everything that can end has ended */
const char *books_busy(struct cloud *c);                            /* what has not; NULL: nothing */
void books_print(struct cloud *c);                                  /* every attempt, as the store and as the test have it */
void books_check(struct cloud *c);                                  /* all of it, when the cloud is idle */

/* --- runs (runner.c) */
struct result { uint64_t seed; bool ok, begun, fired; uint64_t trace; size_t failed, requests, attempts, misfortunes, freezes; int64_t commits, checks, events, ms; };
typedef void story_fn(struct cloud *c, int64_t n);
/* A cloud of this seed lives through `live`, then there is peace, then its books are checked; in a process of its own. */
struct result run_apart(uint64_t seed, story_fn *live, int64_t n);
/* In this one; acts: gets what was done, as text (NULL: nobody wants it). loud: it tells what happens. */
struct result run_noted(uint64_t seed, story_fn *live, int heads, bool loud, struct str *acts);
/* What was kept of a run is done again, in processes apart, in worlds whose seed is `other` and more above what it was then. */
struct result run_acts(const char *acts, uint64_t other, uint64_t worlds);     /* in so many of them, from there on */
struct result run_acts_loud(const char *acts);
/* All seeds from first on, on as many processes as there are CPUs; false: some failed, and said so. */
/* heads 0: two for odd seeds, three for even ones. */
bool run_many(uint64_t first, uint64_t count, story_fn *live, int heads, struct result *sum);
uint64_t asked_for(const char *name, uint64_t otherwise);           /* a number from the environment */
bool one_seed_only(void);                                           /* somebody asked for a run of his own */
bool agents_are_linked(struct cloud *c);
