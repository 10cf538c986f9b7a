/* gpu_check.h - work on one GPU that needs CUDA: its test, and the scrub of its memory. The check helper does it (the program itself under a word
 * that nobody types, `arcus gpu-check`), a process for each; the agent starts it, waits for its one line, and ends it when it hangs.
 *
 * A test writes a pattern over the memory that is free and reads it back, twice, and multiplies matrices of integers whose product is known.
 * A scrub takes all the memory that is free, overwrites it, and looks at the ends of each piece. */
#pragma once
#include "os/os.h"

enum check_kind { CHECK_TEST, CHECK_SCRUB, CHECK_KINDS };
struct check_config {
    const char *self;           /* the arcus program */
    const char *libcuda;        /* NULL: where drivers put it */
    int64_t limit_ms;           /* 0: CHECK_LIMIT_MS */
};
struct check_ask {
    enum check_kind kind;
    const char *uuid;           /* of a GPU or of a MIG instance */
    int64_t most_mib;           /* of a test: of memory; 0: all that is free */
    int64_t keep_mib;           /* of free memory that is left alone: neighbours may ask for it at any moment */
};
struct check_said {
    bool ok;
    const char *why;            /* it is not; one sentence */
    int64_t mib, of_mib;        /* written, of how much in all */
    int64_t ms;
};
extern const struct fields check_said_fields;
enum { CHECK_LIMIT_MS = 60000 };

struct check;
/* done comes exactly once, never from in here, unless check_free was called before; *said lives as long as the call. The check is freed by check_free. */
struct check *check_start(struct os *os, const struct check_config *config, const struct check_ask *ask,
                          void (*done)(void *arg, const struct check_said *said), void *arg);
bool check_gone(const struct check *c);         /* its process has ended: one that hangs in its driver may outlive its time */
void check_free(struct check *c);               /* ends it; NULL is fine */

int gpu_check_main(int argc, char **argv);      /* argv[0] is "gpu-check" */
