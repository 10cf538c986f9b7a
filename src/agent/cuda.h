/* cuda.h - as much of NVIDIA's CUDA driver library as we call: our own declarations of its checkpoint interface (libcuda.so.1, driver 570 and
 * later).
 *
 * Loaded by name, like nvml.h. The calls are made from outside, on a pid as this process sees it: the one that is moved needs no part of
 * them, and they work across its namespaces. Only the suspend helper and the fake of tests/fake/ include this: a call takes seconds, and may
 * hang with its driver. */
#pragma once
#include "base/err.h"

enum cuda_rc {
    CUDA_OK = 0, CUDA_INVALID_VALUE = 1, CUDA_OUT_OF_MEMORY = 2, CUDA_NOT_INITIALIZED = 3, CUDA_NO_DEVICE = 100, CUDA_OS_ERROR = 304,
    CUDA_ILLEGAL_STATE = 401, CUDA_NOT_READY = 600, CUDA_NOT_PERMITTED = 800, CUDA_NOT_SUPPORTED = 801, CUDA_UNKNOWN = 999,
};
/* Where a process is, as the driver says. Lock keeps it from calling CUDA; checkpoint moves what it has on GPUs to its own host memory
 * and lets go of them; restore and unlock are the reverse. */
enum cuda_state { CUDA_RUNNING, CUDA_LOCKED, CUDA_CHECKPOINTED, CUDA_FAILED };
enum cuda_step { CUDA_LOCK, CUDA_CHECKPOINT, CUDA_RESTORE, CUDA_UNLOCK, CUDA_STEPS };

/* The arguments of every step: 64 bytes in the driver's header of today, all zero but the time that a lock may take. */
struct cuda_args { unsigned timeout_ms; unsigned char zero[124]; };
_Static_assert(sizeof(struct cuda_args) == 128, "with room for what later drivers may read");

/* X(member, symbol, arguments) */
#define CUDA_FUNCTIONS(X)                                                       \
    X(init, cuInit, (unsigned flags))                                           \
    X(state, cuCheckpointProcessGetState, (int pid, int *out))                  \
    X(lock, cuCheckpointProcessLock, (int pid, struct cuda_args *args))         \
    X(checkpoint, cuCheckpointProcessCheckpoint, (int pid, struct cuda_args *args)) \
    X(restore, cuCheckpointProcessRestore, (int pid, struct cuda_args *args))   \
    X(unlock, cuCheckpointProcessUnlock, (int pid, struct cuda_args *args))

struct cuda {
#define X(member, symbol, arguments) int (*member) arguments;
    CUDA_FUNCTIONS(X)
#undef X
    void *lib;
    bool begun;                 /* cuInit was called */
};

/* path NULL: wherever drivers put it. False with RC_NOT_FOUND: there is none; RC_UNAVAILABLE: it cannot do this. */
MUST_CHECK bool cuda_load(const char *path, struct cuda *out, struct err *err);
void cuda_begin(struct cuda *c);         /* what takes a tenth of a second, before a call asks for it */
/* False: the driver has no such process, or it never used CUDA. */
bool cuda_where(struct cuda *c, int pid, enum cuda_state *out);
/* False with RC_UNAVAILABLE: another time it may work. */
MUST_CHECK bool cuda_do(struct cuda *c, enum cuda_step step, int pid, unsigned timeout_ms, struct err *err);
const char *cuda_words(int rc);
