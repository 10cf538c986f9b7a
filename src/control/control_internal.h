/* control_internal.h - the parts of the door, for its own files and their tests. */
#pragma once
#include "control/call.h"
#include <stdatomic.h>

enum { READERS = 2, SLOW_MOST = 64, GROUP_MOST = 512 };
struct reader { struct control *control; struct actor *actor; struct conn *conn; bool slow; int busy; };      /* busy: how many it has, as the loop knows */
/* What became of what was decided. Fenced: nothing landed, and another server writes now. Unknown: the answer was lost, and the store
 * does not tell. Behind: it was decided behind something that did not land, and was never sent. */
enum fate { LANDED, REFUSED, FENCED, UNKNOWN, BEHIND };
struct group {                  /* verbs that were decided together, on their way into the store */
    struct post post;
    struct group *next;
    struct batch b;
    struct commit *told;        /* what followers get when it has landed */
    struct sched_event *news;   /* and the planner; NULL: nothing */
    struct arena *news_mem;
    int64_t chained;            /* where the audit's chain ends behind it; 0: where it did before */
    char chain[MAC_HEX];
    enum fate fate;             /* of one that came back */
    struct err err;
    size_t count;
    struct { struct request *r; bool ok; } all[];
};
struct writer {                 /* belongs to its actor */
    struct actor *actor;
    struct actor *commits;      /* writes what was decided (commits.c); while it does, conn and told are its own */
    struct group *back;         /* what it could not write, in order; to be looked at while it rests */
    atomic_bool broken, waking; /* there is something in back; wake is on its way to tell so */
    struct post wake;
    struct conn *conn;
    struct state *state;        /* NULL: this server does not write */
    bool stale;                 /* the memory holds what the store refused: nothing is decided on it before it is built again */
    int64_t told;               /* the last event that followers were given */
    struct standby *standby;    /* NULL: no other server can be on this store */
};
/* Sent to the writer's actor now and then: look at the lease, and do what the loop wishes. One is under way at a time. */
struct look {
    struct post post;
    char address[256], usurp[256];      /* ours; of one that is out of reach, if it still has the lease */
    bool usurp_idle;                    /* and writes nothing */
    bool resign, soon;                  /* soon: the next one is due before its time */
};
struct planner;
struct notes;
struct retain;
struct control {
    struct os *os;
    struct store *store;
    struct control_config config;
    struct keyring keys;
    unsigned char audit_key[32];        /* of the audit chain; made from the others, so that all heads have the same */
    struct notes *notes;
    struct retain *retain;
    struct writer writer;
    struct reader readers[READERS], slow;
    int slow_waiting;           /* passwords under way: each costs a tenth of a second and 64 MiB */
    struct planner *planner;
    struct { void (*fn)(void *arg, const struct commit *k); void *arg; } followers[8];
    size_t follower_count;
    int64_t last_event;         /* as the loop has seen it */
    struct timer *timer;
    void *ticking;
    bool open;
    atomic_bool looks;          /* keys may be in the store alone: readers look first */
    /* several servers: what the loop knows */
    bool writes, coming;
    char address[256], writer_url[256], usurping[256];
    bool usurping_idle;
    struct look look;
    bool looking, look_again, resigning;
    struct timer *look_timer;
    void (*on_turn)(void *arg);
    void *turn_arg;
    void (*on_resigned)(void *arg);
    void *resigned_arg;
};
extern const struct caller system_caller;

bool door_check(struct call *call, struct err *err);
void door_answer(struct control *c, struct request *r, bool ok);
struct post *door_answered(struct control *c, struct request *r, bool ok);     /* the same, but the caller posts it */
void control_committed(void *arg, struct post *p);
/* commits.c. A group is made, its verbs decide, group_decided reads from the memory what followers are to be told; then it is put on its way. */
void commits_open(struct control *c);
struct group *group_new(size_t room);
void group_free(struct group *g);
void group_decided(struct control *c, struct group *g);
void commits_put(struct control *c, struct group *g);
struct group *commits_settle(struct control *c);        /* waits until nothing is on its way; what came back, in order */
enum fate group_commit(struct control *c, struct group *first, struct err *err);       /* now, by the caller, while nothing is on its way; frees what landed */
void commits_tell_planner(struct control *c, const struct batch *b, bool reset, bool more);
MUST_CHECK bool writer_open(struct control *c, struct err *err);
void writer_start(struct control *c);           /* tells the planner what is there */
void writer_close(struct control *c);
MUST_CHECK bool writer_load(struct control *c, struct err *err);        /* the memory, from the store */
/* The same, for whoever does not write yet. hold: between two questions; false ends it. */
MUST_CHECK bool writer_read(struct control *c, bool (*hold)(void *arg, struct err *err), struct state **out, struct err *err);
void writer_tell_all(struct control *c);                                /* to the planner */
/* lease.c: on the writer's actor, and what the loop does about it. */
MUST_CHECK bool lease_open(struct control *c, struct err *err);         /* takes it, if nobody has it */
void lease_start(struct control *c);
void lease_close(struct control *c);
bool lease_is_look(const struct post *p);                               /* else it is a request */
void lease_look(struct control *c, struct post *p);
void lease_lost(struct control *c);                                     /* the store said so */
bool lease_hold(void *arg, struct err *err);     /* a sign of life in between; false: another has taken it */
void lease_last_words(struct control *c);                               /* the loop stands still */
/* standby.c: following the event log of somebody else. */
MUST_CHECK bool follow_events(struct control *c, struct err *err);
/* Every fact the planner needs, as if it had just happened. flush (may be NULL) is called now and then to take what is in b. */
void writer_snapshot(struct control *c, struct batch *b, void (*flush)(struct control *c, struct batch *b));
void planner_open(struct control *c);
void planner_close(struct control *c);
/* News of a commit, in order; takes the arena that holds them. reset: forget everything first; more: plan only after what follows. */
void planner_tell(struct control *c, struct sched_event *news, size_t count, bool reset, bool more, struct arena *mem);
/* Has the planner answer r->question; then r goes back to the writer, by way of the loop. */
void planner_ask(struct control *c, struct request *r);
void planner_poke(struct control *c);           /* time has passed */
const struct sched *planner_picture(const struct control *c);   /* for tests: NULL while wishes are under way, or without a planner */
