/* mps_internal.h - what mps.c (the face, and who holds parts of which GPU), mps_life.c (how a daemon comes and goes) and mps_tell.c (what it is told) share. */
#pragma once
#include "agent/mps.h"

enum { MPS_HOLDERS = 128, MPS_END_MS = 1000, MPS_PATH = 512 };
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
    bool servers_told;          /* its servers were told how it is divided, too */
    int64_t log_at;             /* as much of its log was read */
    int64_t fault_ms, guilty;   /* when a process last failed there; the attempt that did, if that is known */
    char fault[200];            /* "": nobody was hit by it */
    char suspicion[128];        /* somebody failed there, and who is not told yet; "": nobody */
    int64_t suspected_ms;
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
};

/* mps.c */
struct daemon *daemon_of(const struct mps *m, const char *uuid);
void daemon_tell(struct daemon *d, const struct err *err);      /* those who wait: they have it (NULL), or do not get it */
bool daemon_holds(const struct daemon *d);                      /* somebody was let in */
int64_t daemon_memory(const struct daemon *d);                  /* the most that one of them has */
void daemon_lost(struct daemon *d, const char *why);            /* those who were let in must end */

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
void daemon_parts(struct daemon *d);            /* one of its holders is about to leave */
void daemon_skip_log(struct daemon *d);         /* what it wrote so far is of before us */

/* mps_tell.c */
void daemon_divide(struct daemon *d);           /* it is there: so much for each */
bool daemon_talk(struct daemon *d, const char *words, void (*done)(void *arg, int status), void *arg, struct proc **proc, int *answer, struct err *err);
bool daemon_ask(struct daemon *d, const char *words, struct err *err);
void daemon_hush(struct daemon *d);             /* what it would say is of no use any more */
bool daemon_mode(struct daemon *d, const char *mode, struct err *err);
bool daemon_has_mode(const struct daemon *d);   /* its GPU is not as it was before us */
