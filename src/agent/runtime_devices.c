/* runtime_devices.c - can the GPUs of this node be given to a container? Asked as often as the node is looked at, since specs, nodes and drivers
 * come and go: one that cannot be given is not offered, and its operator reads why. */
#include "agent/runtime_internal.h"
#include <stdio.h>

static struct inject_gpu known_of(const struct gpu_info *g)
{
    return (struct inject_gpu){ .index = g->index, .uuid = g->uuid, .vendor = g->vendor, .device = g->device, .pci = g->pci, .mig = g->mig, .mig_uuids = g->mig_uuids, .mig_ids = g->mig_ids };
}

static void add(struct texts *to, const char *text, struct arena *mem)
{
    to->at[to->count++] = arena_text(mem, text);
}

/* A whole GPU is asked about: what a MIG instance of it needs beyond that is asked when one is given. */
static bool can_be_given(struct runtime *r, const struct gpu_info *g, struct arena *mem, struct err *err)
{
    struct order_gpu one = { .index = g->index, .uuid = g->uuid, .milli = 1000 };
    struct injection give;
    return inject_for(r->inject, &(struct objects){ &one, 1 }, false, NULL, mem, &give, err);
}

void devices_describe(struct runtime *r, struct node_info *info, struct arena *mem)
{
    struct gpu_info *gpus = info->gpus.at;
    struct inject_gpu *known = ARENA_ARRAY(mem, struct inject_gpu, info->gpus.count);
    const char **bad = NULL;
    size_t real = 0;
    if (!r->real)
        return;
    for (size_t i = 0; i < info->gpus.count; i++)
        if (!gpus[i].simulated)
            known[real++] = known_of(&gpus[i]);
    inject_know(r->inject, known, real);
    if (!real)
        return; /* specs of a node without GPUs are nobody's business */
    size_t bad_count = inject_bad_specs(r->inject, mem, &bad);
    struct texts cannot = { ARENA_ARRAY(mem, const char *, info->cannot.count + real + bad_count + 1), 0 };
    for (size_t i = 0; i < info->cannot.count; i++)
        add(&cannot, info->cannot.at[i], mem);
    if (!cgroups_hold_devices(&r->cgroups))
        add(&cannot, "cgroup v1 without the devices controller: GPUs of others are out of a task's sight, and nothing else keeps it from them", mem);
    for (size_t i = 0; i < info->gpus.count; i++) {
        AUTO(arena_free) struct arena *once = arena_new();
        struct err err = { 0 };
        if (gpus[i].simulated || can_be_given(r, &gpus[i], once, &err))
            continue;
        gpus[i].healthy = false;
        if (!text_given(gpus[i].health))
            gpus[i].health = arena_printf(mem, "no task can be given it: %.200s", err.text);
        add(&cannot, arena_printf(mem, "no task can be given %s", err.text), mem);
    }
    for (size_t i = 0; i < bad_count; i++)
        add(&cannot, arena_printf(mem, "CDI: %s", bad[i]), mem);
    info->cannot = cannot;
}
