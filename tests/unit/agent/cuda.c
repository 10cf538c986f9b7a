#include "agent/cuda.h"
#include "tap.h"
#include <string.h>

TEST(a_library_that_is_not_one_of_cuda_is_refused_in_words)
{
    struct cuda c = { 0 };
    struct err err = { 0 };
    CHECK(!cuda_load("/nonesuch/libcuda.so.1", &c, &err) && err.rc == RC_NOT_FOUND && !c.lib);
    CHECK(!cuda_load("libc.so.6", &c, &err) && err.rc == RC_UNAVAILABLE && strstr(err.text, "570") && !c.lib);
}

static int inits, state_rc, step_rc;
static int fake_init(unsigned flags) { return (void)flags, inits++, state_rc = step_rc = CUDA_OK; }
static int fake_state(int pid, int *out) { return *out = pid, state_rc; }
static int fake_step(int pid, struct cuda_args *args) { return (void)pid, (void)args, step_rc; }

TEST(cuInit_comes_once_and_only_when_it_is_asked_for)
{
    struct cuda c = { .init = fake_init, .state = fake_state, .lock = fake_step, .checkpoint = fake_step, .restore = fake_step, .unlock = fake_step };
    struct err err = { 0 };
    enum cuda_state at;
    inits = state_rc = step_rc = 0;
    CHECK(cuda_where(&c, CUDA_LOCKED, &at) && at == CUDA_LOCKED && inits == 0);
    CHECK(!cuda_where(&c, 17, &at));            /* a state of a later driver */
    state_rc = CUDA_NOT_INITIALIZED;
    CHECK(cuda_where(&c, CUDA_RUNNING, &at) && inits == 1);
    step_rc = CUDA_NOT_INITIALIZED;             /* it was called, and did not help */
    CHECK(!cuda_do(&c, CUDA_LOCK, 5, 10, &err) && inits == 1);
    step_rc = CUDA_NOT_SUPPORTED;
    CHECK(!cuda_do(&c, CUDA_CHECKPOINT, 5, 10, &err) && strstr(err.text, "process 5") && strstr(err.text, "801"));
}
