/* read_flavors.c - the standard shapes that this fleet can give, and how many of each could start now: for each model 1, 2, 4, 8 of it and
 * even shares, MIG slices where GPUs are in MIG mode (those are nothing else), and CPUs alone. */
#include "control/read_fleet.h"

enum { KINDS_MOST = 32 };

bool mig_now(const struct gpu_info *g, const struct node_settings *s, uint16_t taken, struct mig_now *out)
{
    struct err ignored;
    *out = (struct mig_now){ .part = mig_part_of(g->model, g->mem_mib), .taken = taken };
    return text_given(g->mig) && mig_layout_parse(g->mig, g->model, g->mem_mib, s->mig == MIG_DYNAMIC, &out->layout, &ignored);
}

int mig_now_free(const struct mig_now *m, int profile)
{
    uint16_t taken = m->taken;
    int n = 0;
    for (int at; m->layout.starts[profile] && (at = mig_start(m->part, profile, m->layout.starts[profile], taken)) >= 0; n++)
        taken |= mig_slots(at, m->part->profiles[profile].size, m->part->profiles[profile].media);
    return n;
}

int64_t mig_now_free_milli(const struct mig_now *m)
{
    int taken = __builtin_popcount(m->taken & (MIG_MEDIA - 1));
    return 1000 * (m->part->slots - MIN(taken, m->part->slots)) / m->part->slots;
}

const char *mig_now_text(const struct mig_now *m, struct arena *mem)
{
    AUTO(str_done) struct str out = { 0 };
    for (int p = 0; p < MIG_PROFILES; p++)
        if (mig_now_free(m, p))
            str_printf(&out, "%s%s x%d", out.len ? ", " : "", m->part->profiles[p].name, mig_now_free(m, p));
    return out.len ? arena_text(mem, out.at) : "full";
}

/* GPUs of one model and size. */
struct kind {
    const char *model;
    int64_t mem_mib, count_most, nodes, mig_nodes, whole_free, cpu, mem;
    int64_t node, mig_node;     /* the last that was counted */
    bool simulated;
    const struct mig_part *part;
    bool mig_has[MIG_PROFILES];
    int64_t mig_free[MIG_PROFILES];
};

static void flavor_add(struct call *c, struct list *l, const struct kind *k, const struct shape *shape, int64_t mib, int64_t nodes, int64_t free_count)
{
    char *name = arena_take(c->mem, 48, 1);
    int64_t milli = shape->gpu.milli;
    struct flavor_view v = { .gpu = k->model,
                             .gpu_milli = milli,
                             .gpu_mib = mib,
                             .cpu_milli = k->cpu * milli / 1000,
                             .mem_mib = k->mem * milli / 1000,
                             .nodes = nodes,
                             .free = free_count,
                             .simulated = k->simulated };
    v.id = v.name = flavor_of(shape, k->model, name);
    v.state = v.free > 0 ? "available" : "full";
    list_add(l, &flavor_view_fields, &v);
}

static void kind_add(struct call *c, struct list *l, const struct kind *k)
{
    static const int64_t sizes[] = { 250, 500, 1000, 2000, 4000, 8000 };
    for (size_t s = 0; s < COUNT(sizes); s++)
        if (sizes[s] <= k->count_most * 1000)
            flavor_add(c, l, k, &(struct shape){ .gpu.milli = sizes[s] }, k->mem_mib * sizes[s] / 1000, k->nodes, k->whole_free * 1000 / sizes[s]);
    for (int p = 0; p < MIG_PROFILES; p++) {
        struct shape shape = { 0 };
        if (k->mig_has[p] && mig_parse(k->part->profiles[p].name, &shape.gpu))
            flavor_add(c, l, k, &shape, mig_mib(k->part, p, k->mem_mib), k->mig_nodes, k->mig_free[p]);
    }
}

static struct kind *kind_of(struct kind *kinds, size_t *count, const struct gpu_info *g, const struct node_info *info)
{
    for (size_t n = 0; n < *count; n++)
        if (text_is(kinds[n].model, g->model) && kinds[n].mem_mib == g->mem_mib)
            return &kinds[n];
    if (*count == KINDS_MOST)
        return NULL;
    kinds[*count] = (struct kind){ .model = g->model,
                                   .mem_mib = g->mem_mib,
                                   .simulated = g->simulated,
                                   .cpu = info->cpu_milli / (int64_t)info->gpus.count,
                                   .mem = info->mem_mib / (int64_t)info->gpus.count };
    return &kinds[(*count)++];
}

static void gpu_add(struct kind *k, int64_t node, int64_t *wholes, const struct gpu_info *g, const struct node_settings *s, const struct held *h, bool usable)
{
    int64_t at = MIN(MAX(g->index, 0), SCHED_GPUS - 1);
    struct mig_now mig;
    usable = usable && g->healthy;
    if (mig_now(g, s, h->gpu_slots[at], &mig)) {
        k->part = mig.part;
        k->mig_nodes += k->mig_node != node;
        k->mig_node = node;
        for (int p = 0; p < MIG_PROFILES; p++) {
            k->mig_has[p] |= mig.layout.starts[p] != 0;
            k->mig_free[p] += usable ? mig_now_free(&mig, p) : 0;
        }
    } else if (!text_given(g->mig)) {
        k->nodes += k->node != node;
        k->node = node;
        ++*wholes;
        k->count_most = MAX(k->count_most, *wholes);
        k->whole_free += usable && !h->gpu_milli[at];
    }
}

bool flavor_list(struct call *c, const void *body, struct err *err)
{
    (void)body;
    static const struct held nothing;
    struct kind kinds[KINDS_MOST];
    size_t count = 0;
    struct rows r;
    AUTO(map_free) struct map *sums = map_new();
    if (!sum_leases(c, 0, sums, err) || !ROWS(c, NODE_LIST, &r, err, V_INT(0), V_INT(NODES_MOST)))
        return false;
    int64_t cpu_free = 0, cpu_nodes = 0;
    for (size_t i = 0; i < r.count; i++) {
        struct node_info info;
        int64_t node = row_int(&r, i, 0), wholes = 0;
        const struct held *h = map_get(sums, node);
        bool ready = row_int(&r, i, 2) == NODE_READY;
        if (!info_of(c, row_text(&r, i, 3), &info))
            continue;
        struct node_settings settings = settings_of(c, row_text(&r, i, 9));
        h = h ? h : &nothing;
        cpu_nodes++;
        cpu_free += ready ? MAX(info.cpu_milli - h->cpu, 0) / 1000 : 0;
        const struct gpu_info *gpus = info.gpus.at;
        for (size_t g = 0; g < info.gpus.count; g++) {
            struct kind *k = kind_of(kinds, &count, &gpus[g], &info);
            if (k)
                gpu_add(k, node, &wholes, &gpus[g], &settings, h, ready);
        }
    }
    struct list l = list_open(c);
    for (size_t n = 0; n < count; n++)
        kind_add(c, &l, &kinds[n]);
    if (cpu_nodes) {
        struct flavor_view v = { .id = "cpu.1x4",
                                 .name = "cpu.1x4",
                                 .state = cpu_free ? "available" : "full",
                                 .gpu = "",
                                 .cpu_milli = 1000,
                                 .mem_mib = 4096,
                                 .nodes = cpu_nodes,
                                 .free = cpu_free };
        list_add(&l, &flavor_view_fields, &v);
    }
    list_close(&l, NULL);
    return true;
}
