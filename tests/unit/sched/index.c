/* The index against a walk over everything, and against nodes looked at one by one in the plainest way. */
#include "base/rand.h"
#include "kit.h"
#include "sched/sched_internal.h"
#include "tap.h"

enum { WANTS = 40, HELD_MAX = 4000 };
static const char *const asks[] = { "0", "1", "2", "4", "8", "0.5", "0.25", "0.1", "0.81", "H200:1", "A100|L4:0.5", "H200>A100:2", "24GB..60GB:1", "1g.18gb", "1g.18gb+me", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb", "1g.10gb" };

struct taken { int64_t node, project, cpu, mem; int count; struct held_gpu gpus[SCHED_GPUS]; };
struct yard {
    struct sched *s;
    struct rng rng;
    struct wanted *wants[WANTS];
    struct taken held[HELD_MAX];
    int held_count;
    bool ok;
};

static void yard_node(struct yard *y, int64_t id)
{
    static const char *const models[] = { "NVIDIA H200", "NVIDIA A100-SXM4-40GB", "NVIDIA L4" };
    struct kit_node n = { id, models[rng_below(&y->rng, 3)], (int)rng_below(&y->rng, 9), rng_below(&y->rng, 3) ? 20000 * (1 + (int64_t)rng_below(&y->rng, 3)) : 143771,
                          4 << rng_below(&y->rng, 5), 4000LL << rng_below(&y->rng, 4), rng_below(&y->rng, 10) == 0, rng_below(&y->rng, 2) == 0 };
    struct sched_event e = kit_node_event(&n);
    uint64_t mode = rng_below(&y->rng, 12);
    for (int i = 0; i < e.gpu_count; i++) {
        e.gpus[i].healthy = rng_below(&y->rng, 20) != 0;
        kit_gpu_mode(&e.gpus[i], rng_below(&y->rng, 4) ? mode : rng_below(&y->rng, 9));
    }
    e.house = kit_houses[rng_below(&y->rng, COUNT(kit_houses))];
    fleet_set(&y->s->fleet, &e);
    for (int i = 0; i < y->held_count; i++)
        if (y->held[i].node == id)
            y->held[i--] = y->held[--y->held_count];
}

static void yard_begin(struct yard *y, uint64_t seed, int nodes)
{
    *y = (struct yard){ .s = sched_new(), .rng = { seed }, .ok = true };
    for (int i = 1; i <= nodes; i++)
        yard_node(y, i);
    for (int i = 0; i < WANTS; i++) {
        struct sched_event e = kit_job_event(1, 1 + (int64_t)rng_below(&y->rng, 2), 50, asks[rng_below(&y->rng, COUNT(asks))],
                                             (int64_t)rng_below(&y->rng, 5), 100 * (int64_t)rng_below(&y->rng, 20), 1);
        struct want w = { .shape = e.shape, .project = e.project, .host_image = rng_below(&y->rng, 5) == 0 };
        w.guest = (struct guest){ kit_tolerations[rng_below(&y->rng, COUNT(kit_tolerations))], kit_residencies[rng_below(&y->rng, COUNT(kit_residencies))],
                                  e.project };
        y->wants[i] = wanted_of(&y->s->index, &w);
    }
}

static void yard_free_auto(struct yard *y) { sched_free(y->s); }

/* Who is on a GPU, from what was taken: all of them equal to this share, and of its project? */
struct company { int holders; int64_t milli, mib; uint16_t slots; bool ours, same; };
static struct company company_of(const struct yard *y, const struct node *n, int64_t index, const struct want *w)
{
    struct company c = { .ours = true, .same = true };
    for (int i = 0; i < y->held_count; i++)
        for (int k = 0; y->held[i].node == n->id && k < y->held[i].count; k++) {
            const struct held_gpu *h = &y->held[i].gpus[k];
            if (h->index != index)
                continue;
            c.holders++;
            c.milli += h->milli;
            c.mib += h->mem_mib;
            c.slots |= h->slots;
            c.ours = c.ours && y->held[i].project == w->project;
            c.same = c.same && h->milli == w->shape.gpu.milli;
        }
    return c;
}

static bool slice_plainly_fits(const struct gpu_kind *k, const struct gpu_ask *ask, uint16_t taken)
{
    int p = k->mig.on ? mig_find(k->part, ask->mig) : -1;
    for (int s = 0; p >= 0 && s < MIG_SLOTS; s++)
        if ((k->mig.starts[p] >> s & 1) && !(taken & mig_slots(s, k->part->profiles[p].size, k->part->profiles[p].media)))
            return true;
    return false;
}

static bool gpu_plainly_fits(const struct yard *y, const struct node *n, const struct gpu *g, const struct want *w)
{
    const struct gpu_ask *ask = &w->shape.gpu;
    const struct gpu_kind *k = &y->s->fleet.kinds[g->kind];
    struct company c = company_of(y, n, g->index, w);
    if (!g->healthy || !gpu_ask_fits(ask, k->model, k->mem_mib))
        return false;
    if (ask->mig[0] || k->mig.on)
        return ask->mig[0] && slice_plainly_fits(k, ask, c.slots);
    if (ask->milli >= 1000)
        return !c.holders;
    return !k->whole_only && (c.ours || g->mixes) && (!g->equal || (c.same && 1000 % ask->milli == 0)) && c.milli + ask->milli <= 1000
           && c.mib + gpu_ask_mib(ask, k->mem_mib) <= k->mem_mib;
}

/* Whether a node takes a task, from its devices and what was taken alone. */
static bool plainly_fits(const struct yard *y, const struct node *n, const struct want *w)
{
    const struct gpu_ask *ask = &w->shape.gpu;
    int64_t cpu, mem, fit = 0;
    shape_on(&w->shape, n->cpu_milli, n->mem_mib, 0, n->gpu_count, &cpu, &mem);
    for (int i = 0; ask->milli && i < n->gpu_count; i++)
        fit += gpu_plainly_fits(y, n, &n->gpus[i], w);
    return n->usable && kit_admits(fleet_house(&y->s->fleet, n->house), w->guest.tolerates, w->guest.residency, w->guest.project) && (!w->host_image || n->host_image) && n->cpu_milli - n->cpu_used >= cpu && n->mem_mib - n->mem_used >= mem
           && fit >= (ask->milli + 999) / 1000;
}

static void yard_ask(struct yard *y, bool plainly)
{
    struct wanted *w = y->wants[rng_below(&y->rng, WANTS)];
    struct pick best = { 0 }, all = { 0 };      /* all of it is compared */
    struct fleet *f = &y->s->fleet;
    struct node *n = index_best(&y->s->index, w, &best), *m = index_scan(&y->s->index, w, NULL, NULL, &all);
    y->ok = y->ok && n == m && (!n || (best.score == all.score && memcmp(best.of, all.of, sizeof best.of) == 0 && best.slots == all.slots));
    bool somewhere = false;
    for (size_t i = 0; plainly && i < f->count; i++)
        somewhere = somewhere || plainly_fits(y, f->nodes[i], &w->is);
    y->ok = y->ok && (!plainly || somewhere == !!n) && (!n || plainly_fits(y, n, &w->is));
    if (!n || y->held_count == HELD_MAX)
        return;
    struct taken *t = &y->held[y->held_count++];
    *t = (struct taken){ .node = n->id, .project = w->is.project ? w->is.project : 7, .cpu = best.cpu_milli, .mem = best.mem_mib };
    t->count = pick_gpus(&w->is, &best, n, f, t->gpus);
    y->ok = y->ok && t->count == (w->is.shape.gpu.milli + 999) / 1000;
    for (int k = 0; k < t->count; k++) {
        uint16_t taken = node_gpu(n, t->gpus[k].index)->slots;
        y->ok = y->ok && !(taken & t->gpus[k].slots) && !w->is.shape.gpu.mig[0] == !t->gpus[k].slots;
    }
    fleet_take(f, n, t->project, t->cpu, t->mem, t->gpus, t->count);
    for (int i = 0; i < n->gpu_count; i++)
        y->ok = y->ok && n->gpus[i].used_milli <= 1000 && n->gpus[i].used_mib <= f->kinds[n->gpus[i].kind].mem_mib;
    y->ok = y->ok && n->cpu_used <= n->cpu_milli && n->mem_used <= n->mem_mib;
    mix_seen(&y->s->mix, &w->is.shape, 1);
}

static void yard_give(struct yard *y)
{
    if (!y->held_count)
        return;
    struct taken *t = &y->held[rng_below(&y->rng, (uint64_t)y->held_count)];
    fleet_give(&y->s->fleet, fleet_node(&y->s->fleet, t->node), t->project, t->cpu, t->mem, t->gpus, t->count);
    *t = y->held[--y->held_count];
}

static struct yard *yard_of_test(void)
{
    static struct yard y;
    return &y;
}

TEST(the_index_answers_as_a_walk_over_the_fleet_does)
{
    struct yard *y = yard_of_test();
    for (uint64_t seed = 1; seed <= 40; seed++) {
        yard_begin(y, seed, 12);
        AUTO(yard_free) struct yard whose = *y;
        for (int i = 0; i < 300 && y->ok; i++) {
            uint64_t what = rng_below(&y->rng, 20);
            if (what == 0)
                yard_node(y, 1 + (int64_t)rng_below(&y->rng, 12));
            else if (what < 7)
                yard_give(y);
            else
                yard_ask(y, true);
        }
        if (!y->ok)
            printf("# seed %llu\n", (unsigned long long)seed);
        CHECK(y->ok);
    }
}

/* More states than a ranking keeps, a log that is cut, more shapes than there may be rankings. */
TEST(a_ranking_that_left_out_most_of_the_fleet_is_still_exact)
{
    struct yard *y = yard_of_test();
    for (uint64_t seed = 1; seed <= 1; seed++) {
        yard_begin(y, seed * 77, 900);
        AUTO(yard_free) struct yard whose = *y;
        for (int i = 0; i < 2500 && y->ok; i++)
            if (rng_below(&y->rng, 10) < 3)
                yard_give(y);
            else
                yard_ask(y, i % 500 == 0);
        CHECK(y->ok);
        bool cut = false;
        for (int i = 0; i < WANTS; i++)
            cut = cut || y->wants[i]->cut;
        CHECK(cut && y->s->fleet.live > 2 * RANKING_KEEP);
    }
}

TEST(only_what_changed_is_scored_again)
{
    AUTO(sched_free) struct sched *s = sched_new();
    for (int i = 1; i <= 1000; i++) {
        struct sched_event e = kit_node_event(&(struct kit_node){ i, "H200", 8, 1000, 96, 8000, false, false });
        fleet_set(&s->fleet, &e);
    }
    struct sched_event j = kit_job_event(1, 7, 50, "1", 1, 100, 1);
    struct wanted *w = wanted_of(&s->index, &(struct want){ .shape = j.shape, .project = 7 });
    struct held_gpu gpus[SCHED_GPUS];
    for (int i = 0; i < 100; i++) {
        struct pick p;
        struct node *n = index_best(&s->index, w, &p);
        CHECK(n->id == 1 + i / 8);
        fleet_take(&s->fleet, n, 7, p.cpu_milli, p.mem_mib, gpus, pick_gpus(&w->is, &p, n, &s->fleet, gpus));
    }
    CHECK(s->fleet.live <= 4 && s->index.scored <= 100 && s->index.scans == 1);
}

TEST(rankings_are_bounded_and_shapes_that_nobody_asks_for_are_forgotten)
{
    AUTO(sched_free) struct sched *s = sched_new();
    struct sched_event e = kit_node_event(&(struct kit_node){ 1, "H200", 8, 1000, 96, 80000, false, false });
    fleet_set(&s->fleet, &e);
    for (int i = 0; i < 3 * RANKINGS_MAX; i++) {
        struct pick p;
        struct wanted *w = wanted_of(&s->index, &(struct want){ .shape = { .cpu_milli = 1 + i, .mem_mib = 10 } });
        CHECK(index_best(&s->index, w, &p));
        wanted_leave(&s->index, w);
    }
    CHECK(s->index.rankings == RANKINGS_MAX && map_count(s->index.wanted) == RANKINGS_MAX);
}

TEST(what_is_taken_for_a_try_and_given_back_leaves_no_trace)
{
    AUTO(sched_free) struct sched *s = sched_new();
    AUTO(str_done) struct str before = { 0 }, after = { 0 };
    for (int i = 1; i <= 4; i++) {
        struct sched_event e = kit_node_event(&(struct kit_node){ i, "H200", 8, 1000, 96, 8000, false, false });
        sched_apply(s, &e);
    }
    fleet_settle(&s->fleet);
    uint64_t log = s->fleet.log.from + s->fleet.log.count;
    sched_print(s, &before);
    struct held_gpu gpus[2] = { { 3, 1000, 1000 }, { 5, 200, 200 } };
    for (int i = 1; i <= 4; i++)
        fleet_take(&s->fleet, fleet_node(&s->fleet, i), 7, 1000, 100, gpus, 2);
    for (int i = 4; i >= 1; i--)
        fleet_give(&s->fleet, fleet_node(&s->fleet, i), 7, 1000, 100, gpus, 2);
    fleet_settle(&s->fleet);
    sched_print(s, &after);
    CHECK(text_is(before.at, after.at) && s->fleet.log.from + s->fleet.log.count == log);
}
