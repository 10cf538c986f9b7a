/* hold.h - a task that gives its GPUs back for a while: which step follows which, and who cannot do it.
 *
 * Pure. Beside the states of job_state.h, not among them: to whoever does not know it a suspended task is one that runs and holds no GPU, so
 * every rule about ends, retries and lost nodes holds for it as it is. */
#pragma once
#include "model/node.h"
#include "model/order.h"

enum hold_step {
    STEP_NONE,          /* it runs, and was never suspended or is back */
    STEP_SUSPENDING,    /* its node was told; it still holds its GPUs, and memory of the node for what is on them */
    STEP_SUSPENDED,     /* they are somebody else's to have */
    STEP_WAITS,         /* it is to run again, and its GPUs are taken */
    STEP_RESUMING,      /* it has them, and its node was told */
    HOLD_STEP_COUNT
};
enum hold_news { HOLD_SUSPEND, HOLD_RESUME, HOLD_HAS_GPUS, HOLD_IS_SUSPENDED, HOLD_RUNS, HOLD_NEWS_COUNT };     /* two wishes, and three facts */

/* False: nothing follows from it here, and *step keeps its value. */
bool hold_next(enum hold_step *step, enum hold_news news);
bool hold_is_away(enum hold_step step);                 /* it holds no GPU */
const char *hold_name(enum hold_step step);             /* "suspending"; "" of STEP_NONE */

/* Why a task with these GPUs cannot be suspended on such a node, in words; NULL: it can, as far as anybody knows before it is tried. */
const char *hold_refused(const struct node_info *node, const struct order_gpu *gpus, size_t count, bool gang);
