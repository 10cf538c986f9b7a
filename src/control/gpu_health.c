/* gpu_health.c - a GPU that has become unusable, or usable again, was tested, or was overwritten between two projects, is an event with the reason or
 * the result in words: whoever follows the log need not compare inventories. The planner keeps off by what the node's row says. */
#include "control/call.h"

struct turn { const struct gpu_info *gpu; const char *kind, *word, *says; };

static const struct gpu_info *gpu_before(const struct node *n, const char *uuid)
{
    const struct gpu_info *gpus = n->info.gpus.at;
    for (size_t i = 0; i < n->info.gpus.count; i++)
        if (text_is(gpus[i].uuid, uuid))
            return &gpus[i];
    return NULL;
}

struct objects gpus_turned(struct call *c, const struct node *n, const struct objects *now)
{
    const struct gpu_info *gpus = now->at;
    struct turn *out = ARENA_ARRAY(c->mem, struct turn, now->count * 3);
    size_t count = 0;
    for (size_t i = 0; i < now->count; i++) {
        const struct gpu_info *g = &gpus[i], *old = gpu_before(n, g->uuid);
        if (g->scrub_ms && g->scrub_ms != (old ? old->scrub_ms : 0))
            out[count++] = (struct turn){ g, "gpu.scrubbed", "result", g->scrub };
        if (g->test_ms && g->test_ms != (old ? old->test_ms : 0))
            out[count++] = (struct turn){ g, "gpu.tested", "result", g->test };
        if (g->healthy != (old ? old->healthy : true))
            out[count++] = g->healthy ? (struct turn){ g, "gpu.healthy", NULL, NULL } : (struct turn){ g, "gpu.unhealthy", "why", g->health };
    }
    return (struct objects){ out, count };
}

void gpus_tell_turned(struct call *c, const struct node *n, const struct objects *turned)
{
    const struct turn *t = turned->at;
    for (size_t i = 0; i < turned->count; i++) {
        AUTO(str_done) struct str data = { 0 };
        struct json_out o = { .to = &data };
        json_open(&o, '{');
        json_key(&o, "node");
        json_put_text(&o, n->name);
        json_key(&o, "gpu");
        json_put_int(&o, t[i].gpu->index);
        if (t[i].word) {
            json_key(&o, t[i].word);
            json_put_text(&o, text_given(t[i].says) ? t[i].says : "its node does not say");
        }
        json_close(&o, '}');
        emit_event(c, 0, t[i].kind, t[i].gpu->uuid, data.at);
    }
}
