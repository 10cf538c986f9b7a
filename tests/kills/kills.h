/* kills.h - a real cloud under a mixed load, whose processes are killed at moments that a seed chooses; afterwards its books are
 * compared with what the load was told.
 *
 * The seed decides what is asked, whom a kill hits and how long each pause is. It does not decide how fast the machine is, so a
 * replay makes the same decisions in the same order and not at the same instruction. */
#pragma once
#include "base/rand.h"
#include "base/str.h"
#include "wire/json.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/types.h>

enum { AGENTS = 3, GUESTS = 40, PARTS = 1 + AGENTS + GUESTS, CLIENTS = 4, JOBS_MOST = 20000, KEYS_MOST = 2000, PATH_MOST = 512 };
enum { SERVER = 0, FIRST_AGENT = 1, FIRST_GUEST = 1 + AGENTS };

struct part { /* a process that is kept running; all but `name` under the cloud's lock */
    char name[32], token[128];
    bool wanted, killed, refused, told;  /* told: to stop */
    pid_t pid;
    int64_t start_at; /* not before; ms */
    int code;         /* of its last exit that was no kill of ours */
};

enum job_kind { KIND_GOOD, KIND_BAD }; /* BAD: exits with 3 */
struct job_rec {
    char name[32], id[32];
    enum job_kind kind;
    int count, client;
    bool acked, keyed, cancel_asked, cancelled; /* cancelled: acknowledged */
    bool visited;                               /* execs come: it gets more CPU */
};
struct key_rec {
    char id[32], secret[160];
    bool off_asked, off; /* off: acknowledged */
};

struct cloud {
    const char *arcus, *base, *tests, *pg, *store;
    uint64_t seed;
    int kills, long_down;
    int64_t seconds, began;
    int port;
    char key[256];
    pthread_mutex_t lock;
    struct part parts[PARTS];
    struct job_rec *jobs;
    size_t job_count;
    struct key_rec *keys;
    size_t key_count;
    atomic_bool load_stops, all_stops, db_down;
    atomic_llong last_event, requests, resets, execs, joins;
    pid_t db_starter;   /* brings the database back; 0: nobody does */
    int64_t db_next;
    int made, by_kind[8];
    FILE *log, *problems;
    int problem_count;
};

int64_t now_ms(void);
void sleep_ms(int64_t ms);
void say(struct cloud *c, const char *fmt, ...) PRINTF(2, 3);                                  /* into kills.log */
void problem(struct cloud *c, const char *kind, const char *fmt, ...) PRINTF(3, 4);             /* into problems: KIND: text */
const char *path_of(char out[static PATH_MOST], const struct cloud *c, const char *fmt, ...) PRINTF(3, 4);

/* http.c - one request a connection, blocking. */
struct reply { int status; struct str body; }; /* status 0: none came */
struct ask {
    const char *method, *path, *key, *idem, *body;
    int64_t patience_ms;  /* asked again until there is a definite answer; 0: asked once */
};
void ask(struct cloud *c, const struct ask *a, struct reply *out);
struct json *ask_json(struct cloud *c, const char *path, struct arena *mem); /* NULL: it did not answer with 200 */
bool exec_in(struct cloud *c, const char *job, struct rng *rng);             /* true: the command's exit was told */
void follow_events(struct cloud *c);                                         /* until all_stops; checks that no number is missing */

/* parts.c */
void parts_tick(struct cloud *c);                               /* reaps, starts again; main thread only */
void parts_run(struct cloud *c, int64_t ms);                    /* ticks for that long */
void part_kill(struct cloud *c, struct part *p, int64_t down_ms);
bool part_up(struct cloud *c, int i);
bool parts_stop(struct cloud *c);                               /* with SIGTERM: all leave with 0 */
size_t find_processes(const char *base, bool runtimes, pid_t *out, size_t room);
bool cloud_start(struct cloud *c);
void db_kill(struct cloud *c, struct rng *rng, int64_t down_ms);
bool node_token(struct cloud *c, char out[static 128]);
bool node_is(struct cloud *c, const char *name, const char *state);

/* load.c */
struct client { struct cloud *c; int number; struct rng rng; int made; pthread_t thread; };
void *client_run(void *arg);
void *guests_run(void *arg);                                    /* nodes that join and are removed */

/* killer.c */
void kill_for_a_while(struct cloud *c);

/* books.c */
bool settle(struct cloud *c);                                   /* waits until every job has ended */
void check_books(struct cloud *c);
void nets_check(struct cloud *c);                               /* nets.c: no cable of a task is left */
