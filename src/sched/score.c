/* score.c - filters and terms. See score.h, model/weights.h for the table of terms, and doc/scheduling.md for its reasons.
 *
 * Terms are costs in millionths of a GPU. The first four are about the state that a node is left in, against the one it was in. */
#include "sched/score.h"

static const struct policy policies[] = {
    { .name = "arcus",
      .what = "what the server does",
      .weight = WEIGHTS_USUAL,
      .grain = 57000,
      .lit = true },
    { .name = "fgd",
      .what = "fragmentation gradient descent, as published (Weng et al., ATC 2023)",
      .weight = { [TERM_STUCK] = 1000 },
      .sigmoid = true,
      .foreknown = true },
    { .name = "bestfit",
      .what = "the node with the least left",
      .weight = { [TERM_FIT] = 1000 },
      .grain = 1 },
    { .name = "packing",
      .what = "GPUs in use first, then nodes in use",
      .weight = { [TERM_BREAK] = 100000, [TERM_DARK] = 10000, [TERM_FIT] = 10 },
      .grain = 1 },
    { .name = "random", .what = "any node that fits", .dice = true, .grain = 1 },
};

const struct policy *policy_at(size_t i)
{
    return i < COUNT(policies) ? &policies[i] : NULL;
}

const struct policy *policy_find(const char *name)
{
    for (size_t i = 0; i < COUNT(policies); i++)
        if (text_is(policies[i].name, name))
            return &policies[i];
    return NULL;
}

/* --- filters */

struct suit suit_of(const struct gpu_kind *k, const struct gpu_ask *ask)
{
    struct suit s = { .part_mib = (uint32_t)gpu_ask_mib(ask, k->mem_mib), .choice = (uint8_t)gpu_ask_choice(ask, k->model, k->mem_mib) };
    if (!ask->mig[0]) {
        s.choice = k->mig.on || (k->whole_only && ask->milli % 1000) ? 0 : s.choice;
        return s;
    }
    int profile = k->mig.on ? mig_find(k->part, ask->mig) : -1;
    if (profile < 0 || !k->mig.starts[profile])
        return (struct suit){ 0 };
    return (struct suit){ k->part, (uint32_t)mig_mib(k->part, profile, k->mem_mib), s.choice, k->mig.starts[profile], (uint8_t)profile };
}

bool share_comes(const struct want *w, const struct suit *s, const struct group *g)
{
    int64_t milli = w->shape.gpu.milli;
    bool size = g->each == EACH_ANY || (g->each == EACH_EVEN ? 1000 % milli == 0 : g->each == milli);
    bool free = !g->project || g->project == OWNER_ANY;
    return s->choice && g->free_milli >= milli && g->free_mib >= s->part_mib
           && (free ? w->whose != WHOSE_OWN : w->whose != WHOSE_FREE && g->project == w->project) && size;
}

static bool slice_comes(const struct suit *s, const struct group *g)
{
    return s->choice && s->part && mig_start(s->part, s->profile, s->starts, g->slots) >= 0;
}

static bool slice_fits(const struct suit *suits, const struct lot *l)
{
    for (int i = 0; i < l->groups; i++)
        if (slice_comes(&suits[l->group[i].kind], &l->group[i]))
            return true;
    return false;
}

bool lot_fits(const struct want *w, const struct suit *suits, const struct lot *l, struct pick *out)
{
    const struct gpu_ask *ask = &w->shape.gpu;
    bool slice = ask->mig[0];
    if ((!slice && l->free_milli < ask->milli) || l->cpu_free < w->shape.cpu_milli
        || l->mem_free < w->shape.mem_mib || (w->host_image && !l->host_image)
        || ((w->region[0] || w->zone[0]) && !place_is(l->site, w->region, w->zone)))
        return false;
    shape_on(&w->shape, l->cpu_milli, l->mem_mib, l->kept_mib, l->gpu_count, &out->cpu_milli, &out->mem_mib);
    if (l->cpu_free < out->cpu_milli || l->mem_free < out->mem_mib)
        return false;
    if (!ask->milli)
        return true;
    if (slice)
        return slice_fits(suits, l);
    int wanted = (int)(ask->milli / 1000);
    for (int i = 0; i < l->groups && wanted > 0; i++)
        if (!l->group[i].project && suits[l->group[i].kind].choice)
            wanted -= l->group[i].count;
    if (ask->milli >= 1000)
        return wanted <= 0;
    for (int i = 0; i < l->groups; i++)
        if (share_comes(w, &suits[l->group[i].kind], &l->group[i]))
            return true;
    return false;
}

/* --- terms */

struct worth worth_of(const struct mix *m, int64_t cpu_free, const struct group *g, int groups)
{
    int64_t sliver = 0, unfed = 0;
    int c = mix_cpu_step(m, cpu_free);
    int64_t free_milli = 0, usable = 0, needed = 0;
    for (int i = 0; i < groups; i++) {
        const struct mix_kind *k = &m->kinds[g[i].kind];
        int64_t milli = (int64_t)g[i].free_milli * g[i].count;
        free_milli += milli;
        struct mix_cell is = k->one[c][m->milli_step[g[i].free_milli]];
        if (g[i].free_milli == 1000) {
            is.usual += k->many[c][g[i].count].usual;
            is.dear += k->many[c][g[i].count].dear;
        } else {
            sliver += m->sliver[g[i].free_milli] * g[i].count;
        }
        usable += milli * is.usual;
        needed += milli * is.dear;
    }
    for (int i = 0; i < MIX_FEEDS; i++) {
        int64_t fed = MAX(cpu_free, 0) * m->fed[i] / MIX_ONE;
        unfed += MAX(free_milli - fed, 0);
    }
    return (struct worth){ (int32_t)(free_milli * MICRO - usable * MICRO / MIX_ONE),
                           (int32_t)(unfed * MICRO / MIX_FEEDS), (int32_t)sliver,
                           (int32_t)MIN(needed * MICRO / MIX_ONE, INT32_MAX) };
}

static int64_t
sigmoid_cut(int64_t drop) /* 100 / (1 + exp(-drop)), cut to an integer; drop in millionths */
{
    static const int32_t at_least[] = {
        /* for 50, 51, .. 99 */
        0,       40006,   80043,   120145,  160343,  200671,  241163,  281852,  322774,  363966,
        405466,  447313,  489549,  532217,  575365,  619040,  663295,  708186,  753772,  800120,
        847298,  895385,  944462,  994623,  1045969, 1098613, 1152680, 1208312, 1265667, 1324926,
        1386295, 1450011, 1516348, 1585628, 1658229, 1734602, 1815290, 1900959, 1992431, 2090742,
        2197225, 2313635, 2442348, 2586690, 2751536, 2944439, 3178054, 3476099, 3891821, 4595120,
    };
    int low = 0, high = COUNT(at_least);
    int64_t far = drop < 0 ? -drop : drop;
    while (low < high) {
        int mid = (low + high) / 2;
        if (at_least[mid] <= far)
            low = mid + 1;
        else
            high = mid;
    }
    if (drop >= 0)
        return 49 + low;
    return far == at_least[low - 1] ? 51 - low : 50 - low;
}

/* A state after a task has taken its part of it. */
struct after {
    int64_t cpu_free;
    int groups;
    struct group group[SCHED_GPUS + 1];
};

static void take_of(struct after *a, int i, int count, const struct want *w)
{
    struct group rest = a->group[i];
    a->group[i].count = (uint16_t)(a->group[i].count - count);
    rest.count = (uint16_t)count;
    rest.free_milli = (uint16_t)(rest.free_milli - MIN(w->shape.gpu.milli, 1000));
    if (rest.free_milli) {
        a->group[a->groups] = rest;
        a->groups++;
    }
}

/* What the state of the node does not tell. */
struct extra {
    bool breaks;
    int64_t slice; /* millionths of a GPU */
};

static int64_t weigh(const struct policy *p, const struct mix *m, const struct want *w,
                     const struct suit *suits, struct lot *l, const struct after *a, int kind,
                     const struct extra *x)
{
    int64_t cost = 0, left = l->free_milli - w->shape.gpu.milli;
    if (m->epoch) {
        if (l->worth_of != m->epoch) {
            l->worth = worth_of(m, l->cpu_free, l->group, l->groups);
            l->worth_of = m->epoch;
        }
        struct worth now = worth_of(m, a->cpu_free, a->group, a->groups);
        cost += p->weight[TERM_STUCK] * (now.stuck - l->worth.stuck)
                + p->weight[TERM_FEED] * (now.unfed - l->worth.unfed)
                + p->weight[TERM_SLIVER] * (now.sliver - l->worth.sliver)
                + p->weight[TERM_SCARCE] * (l->worth.needed - now.needed);
        left += a->cpu_free * m->fed[MIX_FEEDS / 2] / MIX_ONE;
    } else {
        left += a->cpu_free / 10;
    }
    cost += p->weight[TERM_FIT] * left * MICRO / 2
            + p->weight[TERM_BREAK] * (x->breaks ? 1000 * MICRO : 0) + p->weight[TERM_SLICE] * x->slice;
    if (kind >= 0)
        cost += p->weight[TERM_PREFER] * (suits[kind].choice - 1) * 1000 * MICRO;
    if (p->weight[TERM_DARK] && lot_dark(l))
        cost += p->weight[TERM_DARK] * 1000 * MICRO;
    cost /= 1000;
    if (p->sigmoid)
        return sigmoid_cut(-cost);
    int64_t score = cost <= 0 ? -cost / p->grain : -((cost + p->grain - 1) / p->grain);
    return p->lit ? 2 * score + !lot_dark(l) : score;
}

static void score_share(const struct policy *p, const struct mix *m, const struct want *w,
                        const struct suit *suits, struct lot *l, struct pick *out)
{
    bool found = false;
    int best = 0;
    for (int i = 0; i < l->groups; i++) {
        const struct group *g = &l->group[i];
        if (!share_comes(w, &suits[g->kind], g))
            continue;
        struct after a = { .cpu_free = l->cpu_free - out->cpu_milli, .groups = l->groups };
        memcpy(a.group, l->group, l->groups * sizeof *g);
        take_of(&a, i, 1, w);
        int64_t score = weigh(p, m, w, suits, l, &a, g->kind, &(struct extra){ .breaks = !g->project });
        if (!found || score > out->score) {
            out->score = score;
            best = i;
        }
        found = true;
    }
    memset(out->of, 0, sizeof out->of);
    out->of[best] = 1;
}

/* Of one kind if that is possible: the first choice that is enough by itself. */
static int first_kind(const struct want *w, const struct suit *suits, const struct lot *l)
{
    int best = -1, wanted = (int)(w->shape.gpu.milli / 1000);
    for (int i = 0; i < l->groups; i++) {
        const struct group *g = &l->group[i];
        if (!g->project && suits[g->kind].choice && g->count >= wanted
            && (best < 0 || suits[g->kind].choice < suits[l->group[best].kind].choice))
            best = i;
    }
    return best;
}

static void score_whole(const struct policy *p, const struct mix *m, const struct want *w,
                        const struct suit *suits, struct lot *l, struct pick *out)
{
    struct after a = { .cpu_free = l->cpu_free - out->cpu_milli, .groups = l->groups };
    int wanted = (int)(w->shape.gpu.milli / 1000), only = first_kind(w, suits, l), kind = -1;
    memcpy(a.group, l->group, l->groups * sizeof a.group[0]);
    memset(out->of, 0, sizeof out->of);
    for (int i = 0; i < l->groups && wanted; i++) {
        const struct group *g = &l->group[i];
        if (g->project || !suits[g->kind].choice || (only >= 0 && i != only))
            continue;
        int count = MIN(wanted, g->count);
        out->of[i] = (uint8_t)count;
        wanted -= count;
        kind = kind < 0 || suits[g->kind].choice > suits[kind].choice ? g->kind : kind;
        take_of(&a, i, count, w);
    }
    out->score = weigh(p, m, w, suits, l, &a, kind, &(struct extra){ 0 });
}

/* Which GPU, and where on it. What a slice costs is what it takes of the places for larger ones, as a part of all that an empty GPU has. */
static void score_slice(const struct policy *p, const struct mix *m, const struct want *w,
                        const struct suit *suits, struct lot *l, struct pick *out)
{
    struct after a = { .cpu_free = l->cpu_free - out->cpu_milli, .groups = l->groups };
    bool found = false;
    memcpy(a.group, l->group, l->groups * sizeof a.group[0]);
    memset(out->of, 0, sizeof out->of);
    int best = 0;
    int64_t least = 0;
    for (int i = 0; i < l->groups; i++) {
        const struct group *g = &l->group[i];
        const struct suit *s = &suits[g->kind];
        if (!slice_comes(s, g))
            continue;
        const struct mig_profile *profile = &s->part->profiles[s->profile];
        int start = mig_start(s->part, s->profile, s->starts, g->slots);
        uint16_t slots = mig_slots(start, profile->size, profile->media);
        int64_t lost = mig_room(s->part, g->slots) - mig_room(s->part, g->slots | slots), all = mig_room(s->part, 0);
        int64_t score = weigh(p, m, w, suits, l, &a, g->kind, &(struct extra){ .slice = lost * 1000 * MICRO / all });
        if (!found || score > out->score || (score == out->score && lost < least)) {
            out->score = score;
            out->slots = slots;
            least = lost;
            best = i;
        }
        found = true;
    }
    out->of[best] = 1;
}

void lot_score(const struct policy *p, const struct mix *m, const struct want *w,
               const struct suit *suits, struct lot *l, struct pick *out)
{
    out->slots = 0;
    if (w->shape.gpu.mig[0]) {
        score_slice(p, m, w, suits, l, out);
    } else if (w->shape.gpu.milli >= 1000) {
        score_whole(p, m, w, suits, l, out);
    } else if (w->shape.gpu.milli) {
        score_share(p, m, w, suits, l, out);
    } else {
        struct after a = { .cpu_free = l->cpu_free - out->cpu_milli, .groups = l->groups };
        memcpy(a.group, l->group, l->groups * sizeof a.group[0]);
        memset(out->of, 0, sizeof out->of);
        out->score = weigh(p, m, w, suits, l, &a, -1, &(struct extra){ 0 });
    }
}

static bool same_group(const struct group *a, const struct group *b)
{
    return a->kind == b->kind && a->free_milli == b->free_milli && a->project == b->project && a->free_mib == b->free_mib
           && a->each == b->each && a->slots == b->slots;
}

static int64_t part_mib(const struct gpu_kind *k, const struct gpu_ask *ask)
{
    return ask->mig[0] ? suit_of(k, ask).part_mib : gpu_ask_mib(ask, k->mem_mib);
}

int pick_gpus(const struct want *w, const struct pick *p, const struct node *n,
              const struct fleet *f, struct held_gpu out[static SCHED_GPUS])
{
    const struct gpu_ask *ask = &w->shape.gpu;
    const struct lot *l = n->lot;
    int count = 0;
    uint8_t left[SCHED_GPUS];
    memcpy(left, p->of, sizeof left);
    for (int i = 0; i < n->gpu_count; i++) {
        const struct gpu *g = &n->gpus[i];
        struct group is;
        bool any = gpu_group(f, g, &is);
        for (int k = 0; any && k < l->groups; k++) {
            if (!left[k] || !same_group(&l->group[k], &is))
                continue;
            left[k]--;
            out[count++] = (struct held_gpu){ g->index, MIN(ask->milli, 1000), part_mib(&f->kinds[g->kind], ask),
                                              ask->mig[0] ? p->slots : 0 };
            break;
        }
    }
    return count;
}
