/* suspend.h - a task gives its GPUs back and keeps what it had on them in host memory; later it goes on as if nothing had been.
 *
 * suspend_go() brings a task to where it is wanted, from wherever it is: which process is locked or moved the driver says, whether the
 * group is frozen the kernel, and the note (tasks/ATTEMPT/suspend.json) what neither knows. So a helper that was killed in the middle is
 * followed by another one that goes on or goes back, and a second one that was not needed does nothing. The order:
 *
 *   suspend   note, thaw, is there host memory?, raise the task's memory limit, lock all, move all, nothing left on the GPU?, freeze, note
 *   resume    note, thaw, restore all, lower the limit, unlock all, note
 *
 * All are locked before the first is moved, and all are back before the first is let go: processes share memory with each other. What fails
 * on the way out is undone, and the task runs on. What fails on the way back leaves it suspended, if all of it can be and another time may
 * help. Where neither can be had it is BROKEN: the agent ends it as a fault of the node, and it is tried again.
 *
 * Pure but for its means: tests make each of them fail in turn. */
#pragma once
#include "agent/cuda.h"
#include "base/arena.h"
#include "base/field.h"

enum suspend_state { SUSPEND_RUNNING, SUSPEND_SUSPENDED, SUSPEND_BROKEN, SUSPEND_MOVING, SUSPEND_STATES };
struct suspend_note {
    int64_t attempt;            /* folders are used again: one of another attempt counts for nothing */
    int64_t n;                  /* the wish that it answers (struct order) */
    int want, state;            /* enum suspend_state; MOVING: somebody was at it */
    int64_t limit_bytes;        /* the task's memory limit before it was raised; 0: it is not */
    int64_t gpu_mib;            /* what it had on GPUs */
    int64_t mem_mib;            /* of one that is suspended: all that it has in the host's memory */
    int64_t room_mib;           /* as the order said: beyond its limit it may have so much */
    int64_t at_ms;              /* when it got there */
    const char *why;            /* it is not where it was wanted, and why; NULL: it is */
};
extern const struct fields suspend_note_fields;

enum { SUSPEND_PROCESSES = 1024, SUSPEND_ROUNDS = 8, SUSPEND_SLACK_MIB = 64, SUSPEND_SPARE_MIB = 512 };
struct suspend_means {
    bool (*processes)(void *arg, int *pids, size_t room, size_t *count, struct err *err);   /* of the task, those that use CUDA, wherever they are; false: these, and one that cannot be asked */
    bool (*where)(void *arg, int pid, enum cuda_state *out);        /* false: it is gone, or uses it no more */
    bool (*step)(void *arg, int pid, enum cuda_step step, struct err *err);
    int64_t (*held_mib)(void *arg);                                 /* of GPU memory, by all the task's processes; -1: nobody can tell */
    int64_t (*free_mib)(void *arg);                                 /* of the host's memory */
    int64_t (*used_mib)(void *arg);                                 /* of it, by the task */
    int64_t (*room_mib)(void *arg);                                 /* so much it may have beyond its limit */
    bool (*limit)(void *arg, int64_t *bytes, struct err *err);      /* of the task's memory; INT64_MAX: none */
    bool (*set_limit)(void *arg, int64_t bytes, struct err *err);   /* false, too, if more than that is in use: nobody is killed for it */
    bool (*freeze)(void *arg, bool on, struct err *err);
    bool (*keep)(void *arg, const struct suspend_note *note, struct err *err);      /* for good, before the next step */
    int64_t (*now_ms)(void *arg);
};

/* note: as it was found, or with attempt alone; afterwards as it is, and kept. mem: of its texts. */
void suspend_go(const struct suspend_means *m, void *arg, enum suspend_state want, int64_t n, struct arena *mem, struct suspend_note *note);

/* suspend_note.c: plain files, for helper and agent alike. */
bool suspend_note_read(const char *folder, int64_t attempt, struct arena *mem, struct suspend_note *out);     /* false: there is none of this attempt (0: of any) */
MUST_CHECK bool suspend_note_write(const char *folder, const struct suspend_note *note, struct err *err);      /* whole or not at all, and on the disk */

int suspend_main(int argc, char **argv);        /* argv[0] is "suspend-helper" */
