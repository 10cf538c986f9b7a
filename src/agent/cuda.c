/* cuda.c - loads the CUDA driver library (cuda_lib.h), and makes its checkpoint calls. cuInit is put off until a call asks for it: it takes
 * longer than a lock, and holds the GPU's attention. */
#include "agent/cuda.h"
#include "agent/cuda_lib.h"
#include <dlfcn.h>

bool cuda_load(const char *path, struct cuda *out, struct err *err)
{
    static const struct cuda_symbol all[] = {
#define X(member, symbol, arguments) { #symbol, offsetof(struct cuda, member) },
        CUDA_FUNCTIONS(X)
#undef X
    };
    struct cuda c = { .lib = cuda_open(path) };
    if (!c.lib)
        return err_set(err, RC_NOT_FOUND, "this node has no CUDA driver");
    const char *missing = cuda_fill(c.lib, all, COUNT(all), &c);
    if (missing) {
        dlclose(c.lib);
        return err_set(err, RC_UNAVAILABLE, "the node's driver is older than 570: it has no %s", missing);
    }
    return *out = c, true;
}

const char *cuda_words(int rc)
{
    static const struct { int rc; const char *words; } all[] = {
        { CUDA_INVALID_VALUE, "the driver does not know the process" },
        { CUDA_OUT_OF_MEMORY, "there is not enough memory for it" },
        { CUDA_NO_DEVICE, "the driver has no device" },
        { CUDA_OS_ERROR, "the kernel refused" },
        { CUDA_ILLEGAL_STATE, "the process is not where it should be" },
        { CUDA_NOT_READY, "what it has on the GPU did not come to an end in time" },
        { CUDA_NOT_PERMITTED, "the driver does not permit it" },
        { CUDA_NOT_SUPPORTED, "the driver cannot move what it uses (managed memory, MPS)" },
    };
    for (size_t i = 0; i < COUNT(all); i++)
        if (all[i].rc == rc)
            return all[i].words;
    return "the driver failed";
}

static bool begin(struct cuda *c, int rc)
{
    if (rc != CUDA_NOT_INITIALIZED || c->begun)
        return false;
    c->begun = true;
    return c->init(0) == CUDA_OK;
}

void cuda_begin(struct cuda *c)
{
    if (!c->begun)
        (void)!begin(c, CUDA_NOT_INITIALIZED);
}

bool cuda_where(struct cuda *c, int pid, enum cuda_state *out)
{
    int state = -1, rc = c->state(pid, &state);
    if (begin(c, rc))
        rc = c->state(pid, &state);
    if (rc != CUDA_OK || state < CUDA_RUNNING || state > CUDA_FAILED)
        return false;
    return *out = (enum cuda_state)state, true;
}

bool cuda_do(struct cuda *c, enum cuda_step step, int pid, unsigned timeout_ms, struct err *err)
{
    static const char *const words[] = { [CUDA_LOCK] = "held", [CUDA_CHECKPOINT] = "moved off the GPU", [CUDA_RESTORE] = "moved back",
                                         [CUDA_UNLOCK] = "let go" };
    int (*const calls[])(int pid, struct cuda_args *args)
        = { [CUDA_LOCK] = c->lock, [CUDA_CHECKPOINT] = c->checkpoint, [CUDA_RESTORE] = c->restore, [CUDA_UNLOCK] = c->unlock };
    struct cuda_args args = { .timeout_ms = step == CUDA_LOCK ? timeout_ms : 0 };
    int rc = calls[step](pid, &args);
    if (begin(c, rc))
        rc = calls[step](pid, &args);
    if (rc == CUDA_INVALID_VALUE && step == CUDA_RESTORE) /* a driver takes such a process off the GPU, and does not get it back (seen with 580) */
        return err_set(err, RC_INTERNAL, "process %d could not be %s: most likely it shares GPU memory with another one (CUDA IPC), which the driver cannot restore (CUDA %d)", pid, words[step], rc);
    bool later = rc == CUDA_OUT_OF_MEMORY || rc == CUDA_OS_ERROR || rc == CUDA_NOT_READY;
    return rc == CUDA_OK || err_set(err, later ? RC_UNAVAILABLE : RC_INTERNAL, "process %d could not be %s: %s (CUDA %d)", pid, words[step], cuda_words(rc), rc);
}
