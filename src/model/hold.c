#include "model/hold.h"
#include <stdlib.h>

enum { DRIVER_FIRST = 570 };

static const struct { enum hold_step from; enum hold_news on; enum hold_step to; } steps[] = {
    { STEP_NONE,       HOLD_SUSPEND,      STEP_SUSPENDING },
    { STEP_SUSPENDING, HOLD_IS_SUSPENDED, STEP_SUSPENDED  },
    { STEP_SUSPENDING, HOLD_RUNS,         STEP_NONE       },   /* it could not be, and runs on */
    { STEP_SUSPENDING, HOLD_RESUME,       STEP_RESUMING   },   /* it has its GPUs yet */
    { STEP_SUSPENDED,  HOLD_RESUME,       STEP_WAITS      },
    { STEP_WAITS,      HOLD_HAS_GPUS,     STEP_RESUMING   },
    { STEP_WAITS,      HOLD_SUSPEND,      STEP_SUSPENDED  },
    { STEP_RESUMING,   HOLD_RUNS,         STEP_NONE       },
    { STEP_RESUMING,   HOLD_IS_SUSPENDED, STEP_SUSPENDED  },   /* it could not come back, and gives them back */
    { STEP_RESUMING,   HOLD_SUSPEND,      STEP_SUSPENDING },
};
static const char *const names[] = {
    [STEP_NONE] = "", [STEP_SUSPENDING] = "suspending", [STEP_SUSPENDED] = "suspended", [STEP_WAITS] = "suspended", [STEP_RESUMING] = "resuming",
};
_Static_assert(COUNT(names) == HOLD_STEP_COUNT, "every step has a name");

bool hold_next(enum hold_step *step, enum hold_news news)
{
    for (size_t i = 0; i < COUNT(steps); i++)
        if (steps[i].from == *step && steps[i].on == news)
            return *step = steps[i].to, true;
    return false;
}

bool hold_is_away(enum hold_step step) { return step == STEP_SUSPENDED || step == STEP_WAITS; }
const char *hold_name(enum hold_step step) { return (unsigned)step < HOLD_STEP_COUNT ? names[step] : ""; }

static const struct gpu_info *gpu_of(const struct node_info *node, int64_t index)
{
    const struct gpu_info *list = node->gpus.at;
    for (size_t i = 0; i < node->gpus.count; i++)
        if (list[i].index == index)
            return &list[i];
    return NULL;
}

const char *hold_refused(const struct node_info *node, const struct order_gpu *gpus, size_t count, bool gang)
{
    if (gang)
        return "it is a gang: its tasks would have to stand still at the same moment on all nodes";
    if (!count)
        return "it holds no GPU, so there is nothing to give back";
    for (size_t i = 0; i < count; i++) {
        const struct gpu_info *g = gpu_of(node, gpus[i].index);
        if (!g)
            return "its node does not list its GPU any more";
        if (gpus[i].size)
            return "it holds a slice of MIG, of which nobody has tried it";
        if (gpus[i].milli < 1000)
            return "it shares its GPU through MPS, which the driver cannot move";
        if (g->simulated)
            continue;
        if (!text_is(g->vendor, "nvidia"))
            return "its GPU is not NVIDIA's";
        if (!text_given(g->driver) || strtol(g->driver, NULL, 10) < DRIVER_FIRST)
            return "its node's driver is older than 570";
    }
    return NULL;
}
