/* care_internal.h - what the files of care.h share: care.c (faults and tests), care_scrub.c (who had it last, who waits for it). */
#pragma once
#include "agent/care.h"

enum { CARE_GPUS = 64 };        /* with those that were here once */
enum { OWNER_NOBODY = 0, OWNER_MIXED = -1 };    /* else a project; mixed: several, or nobody knows */

struct care_gpu {
    struct care *care;
    char uuid[96];
    int64_t index;
    bool seen;                                  /* in this life of the agent */
    bool nvidia;                                /* CUDA can do something with it */
    char instances[CARE_SLOTS][96];             /* of MIG, by their first slot; "": none begins there */
    /* health */
    bool suspect;                               /* out until it has passed its test */
    bool standing;                              /* the driver still says what no test can take back */
    char why[240];
    int64_t errors, errors_passed;              /* uncorrectable, of memory: now, and when it last passed */
    int64_t again_ms, tested_ms;                /* boot clock of the last test */
    int64_t slot;                               /* of the MIG instance that is tested */
    struct timer *next;
    struct check *check;
    enum check_kind doing;
    bool busy;                                  /* the check has not told its end */
    int64_t test_ms, scrub_ms;                  /* wall clock of the last ones */
    char test[240], scrub[240];
    /* scrub */
    int64_t owner[CARE_SLOTS];
    struct care_lease scrubbing;                /* for whom the one that runs is */
    int64_t for_project, was_project;
    char unclean[240];                          /* it failed: it is out until it succeeds */
};
struct care_holder { int64_t attempt, project, held_mib; struct care_lease lease; };
struct care_want {
    struct care_want *next;
    struct care *care;
    int64_t attempt, project;
    struct care_leases leases;
    uint64_t clean;                             /* a bit for each that was overwritten for it */
    void (*done)(void *arg, const char *why);
    void *arg;
};
struct care {
    struct os *os;
    struct arena *mem;
    struct care_config config;
    const struct care_events *events;
    void *arg;
    char boot[64];
    struct care_gpu *gpus[CARE_GPUS];
    size_t count;
    struct care_holder *holders;
    size_t holder_count, holder_room;
    struct care_want *wants;
    struct timer *hour, *soon;
    bool owners_lost;                           /* there was a node here, and nobody knows who had its GPUs */
};

/* care.c */
struct care_gpu *care_gpu_of(struct care *c, const char *uuid);         /* NULL: it was never seen */
struct care_gpu *care_gpu_new(struct care *c, const char *uuid);
const char *care_is_out(const struct care_gpu *g);                      /* why; NULL: it is not */
void care_check(struct care_gpu *g, enum check_kind kind, const char *uuid, int64_t most_mib, int64_t keep_mib);

/* care_scrub.c */
void care_owners_load(struct care *c);
void care_scrubbed(struct care_gpu *g, const struct check_said *said);
void care_scrub_again(struct care_gpu *g);                              /* it failed before */
void care_step(struct care *c);                                         /* whoever waits may be able to begin */
bool care_is_used(const struct care *c, const char *uuid);
void care_scrub_free(struct care *c);
