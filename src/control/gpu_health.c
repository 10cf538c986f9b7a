/* gpu_health.c - a GPU that has become unusable, or usable again, is an event with the reason in words: whoever follows the log need not compare
 * inventories. The planner keeps off by what the node's row says. */
#include "control/call.h"

static bool was_healthy(const struct node *n, const char *uuid)
{
    const struct gpu_info *gpus = n->info.gpus.at;
    for (size_t i = 0; i < n->info.gpus.count; i++)
        if (text_is(gpus[i].uuid, uuid))
            return gpus[i].healthy;
    return true;
}

struct objects gpus_turned(struct call *c, const struct node *n, const struct objects *now)
{
    const struct gpu_info *gpus = now->at;
    struct gpu_info *out = ARENA_ARRAY(c->mem, struct gpu_info, now->count);
    size_t count = 0;
    for (size_t i = 0; i < now->count; i++)
        if (gpus[i].healthy != was_healthy(n, gpus[i].uuid))
            out[count++] = gpus[i];
    return (struct objects){ out, count };
}

void gpus_tell_turned(struct call *c, const struct node *n, const struct objects *turned)
{
    const struct gpu_info *gpus = turned->at;
    for (size_t i = 0; i < turned->count; i++) {
        AUTO(str_done) struct str data = { 0 };
        struct json_out o = { .to = &data };
        json_open(&o, '{');
        json_key(&o, "node");
        json_put_text(&o, n->name);
        json_key(&o, "gpu");
        json_put_int(&o, gpus[i].index);
        if (!gpus[i].healthy) {
            json_key(&o, "why");
            json_put_text(&o, text_given(gpus[i].health) ? gpus[i].health
                                                         : "its node does not say why");
        }
        json_close(&o, '}');
        emit_event(c, 0, gpus[i].healthy ? "gpu.healthy" : "gpu.unhealthy", gpus[i].uuid, data.at);
    }
}
