/* containers.h - a runtime on this machine for tests: real supervisors, real containers, in a folder that goes away again.
 *
 * Needs root, an OCI runtime and the supervisor; where one is missing containers_open says so and the test is skipped. */
#pragma once
#include "agent/runtime.h"
#include "base/arena.h"
#include "tap.h"

struct containers {
    const char *self;               /* our program, as the runtime is told; NULL: what it is */
    int64_t over_ms;                /* as runtime_config's */
    struct os *os;
    struct runtime *r;
    struct arena *mem;
    char top[64], data[96], run[96];
    struct task_status last;        /* of `wanted` */
    int64_t wanted;
    int phase_wanted;
    bool reached, late;
    struct task_status ends[16];    /* the last that were told, wanted or not */
    size_t end_count;
    struct texts hide;
    const char *cdi;
};
bool containers_open(struct containers *c);             /* false: skipped, and a line says why */
void containers_close(struct containers *c);            /* checks that nothing is left over */
bool containers_reopen(struct containers *c);           /* as if the agent had been started anew */
bool containers_device(struct containers *c);           /* a spec of one GPU, "GPU-0", that is /dev/null and a file: for the next reopen */
struct order *containers_order(struct containers *c, const char *image, const char *script);    /* sh -c SCRIPT */
/* Starts it and waits for its end (or phase). */
const struct task_status *containers_run(struct containers *c, const struct order *o);
const struct task_status *containers_wait(struct containers *c, int64_t attempt, int phase);
/* Of one that was started; another may have been waited for meanwhile. */
const struct task_status *containers_end(struct containers *c, int64_t attempt);
const char *containers_log(struct containers *c, int64_t attempt, char stream);     /* 0: both */
const char *containers_path(struct containers *c, const char *fmt, ...) PRINTF(2, 3);
