/* mps_internal.h - what mps.c (the face, and who holds parts of which GPU), mps_life.c (how a daemon comes and goes) and mps_tell.c (what it is told) share. */
#pragma once
#include "agent/mps.h"

enum { MPS_HOLDERS = 128, MPS_END_MS = 1000, MPS_BEAT_MS = 5000, MPS_MISSES = 2, MPS_PATH = 512 };
enum daemon_state {
    DAEMON_NONE,
    DAEMON_OWNING,      /* the mode of its GPU is being set */
    DAEMON_COMING,      /* it was started; its sockets are waited for */
    DAEMON_DIVIDING,    /* it is being told how */
    DAEMON_READY,
    DAEMON_LEAVING,     /* it was told to, and is waited for */
    DAEMON_LOST,        /* it is gone, and those who were let in are not yet */
    DAEMON_GIVING,      /* the mode of its GPU is being given back */
};

enum { MPS_SEEN = 512, MPS_SEEN_EACH = 64 };
struct seen { int pid; int64_t attempt, at, gone_ms; struct proc *proc; struct os *os; };  /* at: the greater the newer, 0: nobody; gone_ms: when it went, by the wall's clock, 0: it has not */
struct holder {
    int64_t attempt;
    struct share share;
    void (*done)(void *arg, const struct err *err);     /* NULL: it has it */
    void *arg;
};
struct daemon {
    struct daemon *next;
    struct mps *m;
    char uuid[96], folder[MPS_PATH];
    enum daemon_state state;
    int64_t milli, mem_mib;     /* how it is divided */
    struct holder holders[MPS_HOLDERS];
    size_t count;
    struct proc *proc;          /* the daemon; NULL: it is not known, or gone */
    struct proc *asker;         /* the program that tells it something */
    int answer;                 /* its words, in memory */
    struct timer *timer;        /* looks for what is to come, or has waited long enough */
    int64_t since_ms;
    bool clearing;              /* what it left is being ended */
    enum { SERVE_NOTHING, SERVE_STARTS, SERVE_COMES } serving;  /* its server is being started, or waited for */
    int64_t serving_ms;
    int server;                 /* its pid; 0: it has none, or that is not known */
    int misses;                 /* so often it has not said in time whether it lives */
    struct proc *pulse;         /* asks whether it lives */
    int pulse_answer;           /* its words, in memory; 0: none */
    bool servers_told;          /* its servers were told how it is divided, too */
    int64_t log_at;             /* as much of its log was read */
    int64_t fault_ms;           /* when a process last failed there */
    int64_t suspects[MPS_HOLDERS];              /* attempts that may have caused it */
    size_t suspect_count;
    bool certain;               /* as far as that can be: there is one, and the log names it */
    bool nobodys;               /* the daemon itself failed those who share it */
    char fault[200];            /* "": nobody was hit by it */
    char suspicion[128];        /* somebody failed there, and who is not told yet; "": nobody */
    int64_t suspected_ms, suspected_wall_ms;
    struct seen seen[MPS_SEEN]; /* mps_pids.c */
    int64_t sights;
    int64_t beside_ms;          /* when the last one left whose neighbour stays; 0: none has */
};
struct mps {
    struct os *os;
    struct arena *mem;
    const char *run, *self, *program, *nvml;
    bool own;
    const struct cgroups *cgroups;
    struct workshop *shop;
    const struct mps_events *events;
    void *arg;
    struct daemon *first;
    struct ending *endings;     /* under way */
    int64_t end_ms;
    struct timer *beat;         /* somebody holds a part of a GPU: its daemon is asked whether it lives */
    int64_t beat_ms;
    struct timer *watch;        /* somebody shares a GPU: what is written is read soon */
};

/* mps.c */
struct daemon *daemon_of(const struct mps *m, const char *uuid);
void daemon_tell(struct daemon *d, const struct err *err);      /* those who wait: they have it (NULL), or do not get it */
bool daemon_holds(const struct daemon *d);                      /* somebody was let in */
int64_t daemon_memory(const struct daemon *d);                  /* the most that one of them has */
void daemon_lost(struct daemon *d, const char *why);            /* those who were let in must end */
void daemon_fails(struct daemon *d, const char *why);           /* the same, since the daemon itself is gone or hangs */

/* mps_life.c */
void daemon_come(struct daemon *d);
void daemon_start(struct daemon *d);            /* its GPU is as it should be */
bool daemon_again(struct daemon *d);            /* it is looked for once more, since it has not been coming for long */
void daemon_failed(struct daemon *d, const char *why);
void daemon_leave(struct daemon *d);
void daemon_clear(struct daemon *d);            /* it is gone: so is what it left, then the next may come */
void daemon_settle(struct daemon *d);
void daemon_settled(struct daemon *d, const struct err *err);     /* err: the mode of its GPU could not be given back; NULL: it is as it was */
bool daemon_find(struct daemon *d);             /* the process behind RUN/mps/GPU/daemon is watched; false: it is gone, or has not come */

/* mps_end.c */
void endings_free(struct mps *m);

/* mps_watch.c */
void mps_keep_watch(struct mps *m);             /* as long as a GPU has several holders */
void daemon_parts(struct daemon *d);            /* one of its holders is about to leave */
void daemon_skip_log(struct daemon *d);         /* what it wrote so far is of before us */

/* mps_pids.c */
void daemon_saw(struct daemon *d, int pid, int64_t attempt);    /* this process is of that attempt, and uses the GPU; 0: of none, which is not kept */
void daemon_unsee(struct daemon *d);            /* nobody is known any more: what was seen is of another daemon's time */
void daemon_acquit(struct daemon *d);           /* nobody is suspected of anything */
void daemon_judge(struct daemon *d, int64_t named, int64_t at_ms);      /* a fault came then (wall clock), and the log names that attempt (0: none) */
int64_t daemon_whose(struct daemon *d, int pid);                /* the attempt that it is of, or was when it was seen; 0: nobody knows */
int mps_client_in(const char *line);                            /* the process that a line of the log names; 0: none */

/* mps_pulse.c */
void mps_keep_beat(struct mps *m);              /* as long as somebody holds a part of a GPU */
void daemon_pulse_stop(struct daemon *d);

/* mps_tell.c */
void daemon_divide(struct daemon *d);           /* it is there: so much for each */
bool daemon_talk(struct daemon *d, const char *words, void (*done)(void *arg, int status), void *arg, struct proc **proc, int *answer, struct err *err);
bool daemon_ask(struct daemon *d, const char *words, struct err *err);
void daemon_hush(struct daemon *d);             /* what it would say is of no use any more */
int mps_first_number(const char *text);         /* 0: it does not begin with one */
bool daemon_mode(struct daemon *d, const char *mode, struct err *err);
bool daemon_has_mode(const struct daemon *d);   /* its GPU is not as it was before us */
