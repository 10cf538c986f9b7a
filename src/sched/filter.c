/* filter.c - the table of filters, and how a node looks to a class of jobs. See filter.h.
 *
 * Each filter is looked at by itself, so that who asks can see what alone would help. Of the filters about GPUs one is told: the first
 * that leaves too few. */
#include "sched/filter.h"
#include "sched/sched_internal.h"

const struct filter_row filters[FILTER_COUNT] = {
    [FILTER_AWAY] = { "not_ready", ABOUT_STATE, "are not connected" },
    [FILTER_CORDONED] = { "cordoned", ABOUT_STATE, "are cordoned" },
    [FILTER_DRAINING] = { "draining", ABOUT_STATE, "are being drained" },
    [FILTER_ORDERS] = { "orders", ABOUT_STATE, "have many tasks to begin first" },
    [FILTER_RESTORED] = { "restored", ABOUT_STATE, "wait: this cloud was restored, and what ran before may still run" },
    [FILTER_NODE] = { "node", ABOUT_BUILD, "are not the one it must run on" },
    [FILTER_REGION] = { "region", ABOUT_BUILD, "are not in the region" },
    [FILTER_ZONE] = { "zone", ABOUT_BUILD, "are not in the zone" },
    [FILTER_TAINT] = { "taint", ABOUT_BUILD, "have a taint that it does not tolerate" },
    [FILTER_EXCLUSIVE] = { "exclusive", ABOUT_BUILD, "are for another project alone" },
    [FILTER_SHARED] = { "host_network", ABOUT_BUILD, "are not for its project alone, as network: host must have them" },
    [FILTER_RESIDENCY] = { "residency", ABOUT_BUILD, "are not where its project must stay" },
    [FILTER_IMAGE] = { "host_image", ABOUT_BUILD, "do not allow image: host" },
    [FILTER_GPUS] = { "gpus", ABOUT_BUILD, "have fewer GPUs than it asks for" },
    [FILTER_MODEL] = { "gpu_model", ABOUT_BUILD, "have too few GPUs of the model" },
    [FILTER_GPU_MEMORY] = { "gpu_memory", ABOUT_BUILD, "have too few GPUs with that much memory" },
    [FILTER_MIG] = { "mig", ABOUT_BUILD, "have GPUs that are cut into other slices than it asks for, or into none" },
    [FILTER_ECC] = { "ecc", ABOUT_BUILD, "have GPUs without error correction, which are not shared" },
    [FILTER_HEALTH] = { "gpu_health", ABOUT_BUILD, "have GPUs that are not healthy" },
    [FILTER_CPUS] = { "cpus", ABOUT_BUILD, "have fewer CPUs than it asks for" },
    [FILTER_MEMORY] = { "memory", ABOUT_BUILD, "have less memory than it asks for" },
    [FILTER_GPUS_TAKEN] = { "gpus_taken", ABOUT_USE, "have too few GPUs free" },
    [FILTER_NEIGHBOURS] = { "neighbours", ABOUT_USE, "have room only on GPUs that others share, or share in other parts" },
    [FILTER_CPUS_TAKEN] = { "cpus_taken", ABOUT_USE, "have too few CPUs free" },
    [FILTER_MEMORY_TAKEN] = { "memory_taken", ABOUT_USE, "have too little memory free" },
    [FILTER_CLAIMED] = { "claimed", ABOUT_USE, "have room that is kept for a job before it, or for a reservation" },
    [FILTER_OTHER] = { "other", ABOUT_USE, "cannot take it for another reason" },
};

/* What of a GPU is what is asked for. */
enum { MODEL_FITS = 1, MEMORY_FITS = 2, SUITS = 4, KNOWN = 8 };
static uint8_t kind_fits(const struct fleet *f, const struct gpu_ask *ask, uint16_t kind, uint8_t *known)
{
    const struct gpu_kind *k = &f->kinds[kind];
    if (kind >= f->kind_count) /* one kind too many */
        return KNOWN;
    if (known && known[kind])
        return known[kind];
    uint8_t fits = KNOWN | (gpu_ask_model(ask, k->model) ? MODEL_FITS : 0) | (gpu_ask_memory(ask, k->mem_mib) ? MEMORY_FITS : 0)
                   | (suit_of(k, ask).choice ? SUITS : 0);
    return known ? known[kind] = fits : fits;
}

static bool comes(const struct want *w, const struct suit *s, const struct group *g)
{
    if (w->shape.gpu.mig[0])
        return s->part && mig_start(s->part, s->profile, s->starts, g->slots) >= 0;
    return w->shape.gpu.milli >= 1000 ? !g->project : share_comes(w, s, g);
}

/* One GPU that suits: is it free for this task? */
static void see_use(const struct fleet *f, const struct want *w, const struct gpu *g, struct sight *out)
{
    const struct gpu_kind *k = &f->kinds[g->kind];
    struct gpu open = *g;
    struct group is;
    open.closed = 0;
    if (!gpu_group(f, &open, &is))
        return;
    struct suit s = suit_of(k, &w->shape.gpu);
    bool free = comes(w, &s, &is), ours = !is.project || is.project == w->project || is.project == OWNER_ANY;
    out->free += free && !g->closed;
    out->kept += free && g->closed;
    if (w->shape.gpu.mig[0] || w->shape.gpu.milli >= 1000)
        return;
    if (ours && !g->closed && is.each == EACH_ANY)
        out->largest = MAX(out->largest, is.free_milli);
    is.project = 0;
    is.each = EACH_ANY;
    out->of_others += !free && share_comes(w, &s, &is);
}

static void see_gpus(const struct fleet *f, const struct class *c, const struct node *n, uint8_t *known, struct sight *out)
{
    const struct gpu_ask *ask = &c->shape.gpu;
    struct want w = c->wanted->is;
    int models = 0, sizes = 0, kinds = 0, last = -1, wanted = (int)((ask->milli + 999) / 1000);
    uint8_t fits = 0;
    w.shape = c->shape;
    for (int i = 0; i < n->gpu_count; i++) {
        const struct gpu *g = &n->gpus[i];
        if (g->kind != last)
            fits = kind_fits(f, ask, g->kind, known), last = g->kind;
        models += (fits & MODEL_FITS) != 0;
        sizes += (fits & (MODEL_FITS | MEMORY_FITS)) == (MODEL_FITS | MEMORY_FITS);
        if (!(fits & SUITS))
            continue;
        kinds++;
        out->suitable += g->healthy;
        if (g->healthy)
            see_use(f, &w, g, out);
    }
    bool ecc = !ask->mig[0] && ask->milli % 1000 && n->gpu_count && !f->kinds[n->gpus[0].kind].mig.on;
    enum filter why = n->gpu_count < wanted             ? FILTER_GPUS
                      : models < wanted                 ? FILTER_MODEL
                      : sizes < wanted                  ? FILTER_GPU_MEMORY
                      : kinds < wanted                  ? ecc ? FILTER_ECC : FILTER_MIG
                      : out->suitable < wanted          ? FILTER_HEALTH
                      : out->free >= wanted             ? FILTER_COUNT
                      : out->free + out->kept >= wanted ? FILTER_CLAIMED
                      : out->of_others >= wanted        ? FILTER_NEIGHBOURS
                                                        : FILTER_GPUS_TAKEN;
    if (why != FILTER_COUNT)
        out->refused |= FILTER_BIT(why);
}

void filter_see(const struct fleet *f, const struct class *c, const struct node *n, uint8_t *known, struct sight *out)
{
    const struct shape *w = &c->shape;
    *out = (struct sight){ 0 };
    shape_on(w, n->cpu_milli, n->mem_mib, n->kept_mib, n->gpu_count, &out->cpu_needs, &out->mem_needs);
    if (w->gpu.milli > 1000 * n->gpu_count) { /* a part of more than all is no number of CPUs */
        out->cpu_needs = w->cpu_milli;
        out->mem_needs = w->mem_mib;
    }
    int64_t cpu = out->cpu_needs, mem = out->mem_needs, cpu_free = n->cpu_milli - n->cpu_used, mem_free = n->mem_mib - n->mem_used;
    const struct { enum filter filter; bool refuses; } rows[] = {
        { FILTER_NODE, c->only_node && c->only_node != n->id },
        { FILTER_REGION, c->region[0] && !place_is(n->place, c->region, "") },
        { FILTER_ZONE, c->zone[0] && !place_is(n->place, "", c->zone) },
        { FILTER_IMAGE, c->wants_host_image && !n->host_image },
        { FILTER_CPUS, n->cpu_milli < cpu },
        { FILTER_MEMORY, n->mem_mib < mem },
        { FILTER_CPUS_TAKEN, n->cpu_milli >= cpu && cpu_free < cpu },
        { FILTER_MEMORY_TAKEN, n->mem_mib >= mem && mem_free < mem },
        { FILTER_CLAIMED, (cpu_free >= cpu && cpu_free - n->cpu_claimed < cpu) || (mem_free >= mem && mem_free - n->mem_claimed < mem) },
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        out->refused |= rows[i].refuses ? FILTER_BIT(rows[i].filter) : 0;
    static const enum filter says[] = { [HOUSE_TAINT] = FILTER_TAINT, [HOUSE_EXCLUSIVE] = FILTER_EXCLUSIVE, [HOUSE_RESIDENCY] = FILTER_RESIDENCY,
                                        [HOUSE_SHARED] = FILTER_SHARED };
    enum house_says house = house_admits(fleet_house(f, n->house), &c->wanted->is.guest);
    if (house != HOUSE_YES)
        out->refused |= FILTER_BIT(says[house]);
    if (!n->usable)
        out->refused |= FILTER_BIT(n->shut);
    if (w->gpu.milli)
        see_gpus(f, c, n, known, out);
}

bool node_could(const struct fleet *f, const struct node *n, const struct class *c)
{
    struct sight s;
    filter_see(f, c, n, NULL, &s);
    return !(s.refused & FILTERS_BUILD);
}

bool class_possible(struct sched *s, struct class *c)
{
    if (c->known_fleet != s->fleet.changes + 1) { /* 0 is never: a class begins without knowing */
        c->possible = c->gang && gang_possible(s, c);
        for (size_t i = 0; i < s->fleet.count && !c->possible && !c->gang; i++)
            c->possible = node_could(&s->fleet, s->fleet.nodes[i], c);
        c->known_fleet = s->fleet.changes + 1;
    }
    return c->possible;
}
