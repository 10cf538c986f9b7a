/* index.c - rankings. See index.h. A heap's entries may be about lots that are gone, or whose first node has left: they are put right
 * when they come to the top. */
#include "sched/index.h"
#include "base/rand.h"
#include <stdlib.h>

enum { COMING = 8 };

static bool before(const struct ranked *a, const struct ranked *b)
{
    return a->score != b->score ? a->score > b->score : a->node < b->node;
}

/* --- what is asked for */

static int64_t want_hash(const struct want *w)
{
    const struct gpu_ask *g = &w->shape.gpu;
    const int64_t parts[] = { w->shape.cpu_milli, w->shape.mem_mib, g->milli,   g->mem_min_mib,
                              g->mem_max_mib,     g->share_mib,     w->project, w->host_image | (int64_t)w->whose << 1 };
    uint64_t h = 0xcbf29ce484222325ULL;
    for (size_t i = 0; i < COUNT(parts); i++)
        h = (h ^ (uint64_t)parts[i] ^ h >> 29) * 0x9e3779b97f4a7c15ULL;
    const char *const texts[] = { g->model, g->mig, w->region, w->zone };
    for (size_t i = 0; i < COUNT(texts); i++)
        for (const char *p = texts[i]; *p; p++)
            h = (h ^ (unsigned char)*p) * 0x100000001b3ULL;
    h ^= (uint64_t)w->guest.project;
    for (const char *p = w->guest.tolerates; p && *p; p++)
        h = (h ^ (unsigned char)*p) * 0x100000001b3ULL;
    for (const char *p = w->guest.residency; p && *p; p++)
        h = (h ^ (unsigned char)*p) * 0x100000001b3ULL;
    return (int64_t)(h ^ h >> 31);
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_want(const struct want *a, const struct want *b)
{
    const struct gpu_ask *x = &a->shape.gpu, *y = &b->shape.gpu;
    return a->shape.cpu_milli == b->shape.cpu_milli && a->shape.mem_mib == b->shape.mem_mib
           && x->milli == y->milli && x->mem_min_mib == y->mem_min_mib
           && x->mem_max_mib == y->mem_max_mib && x->share_mib == y->share_mib
           && a->project == b->project && a->host_image == b->host_image && a->whose == b->whose
           && strcmp(x->model, y->model) == 0 && strcmp(x->mig, y->mig) == 0
           && strcmp(a->region, b->region) == 0 && strcmp(a->zone, b->zone) == 0
           && a->guest.project == b->guest.project && same_text(a->guest.tolerates, b->guest.tolerates)
           && same_text(a->guest.residency, b->guest.residency);
}

static char *copy(const char *text)
{
    return text ? must(strdup(text)) : NULL;
}

static void wanted_done(struct wanted *w)
{
    free((char *)w->is.guest.tolerates);
    free((char *)w->is.guest.residency);
    free(w->admits);
    free(w->suits);
    free(w);
}

struct wanted *wanted_of(struct index *x, const struct want *like)
{
    x->wanted = x->wanted ? x->wanted : map_new();
    struct want is = *like;
    bool share = is.shape.gpu.milli % 1000 && !is.shape.gpu.mig[0];
    is.project = !share || is.whose == WHOSE_FREE ? 0 : is.project ? is.project : -1;
    struct wanted *first = map_get(x->wanted, want_hash(&is)), *w = first;
    while (w && !same_want(&w->is, &is))
        w = w->next;
    if (!w) {
        w = must(calloc(1, sizeof *w));
        w->is = is;
        w->is.guest.tolerates = copy(is.guest.tolerates);
        w->is.guest.residency = copy(is.guest.residency);
        w->next = first;
        map_put(x->wanted, want_hash(&is), w);
        is.whose = WHOSE_FREE;
        w->free = share && w->is.whose == WHOSE_ANY ? wanted_of(x, &is) : NULL;
    }
    w->users++;
    return w;
}

/* --- rankings, the one that was asked for last first */

static void unlink_ranking(struct index *x, struct wanted *w)
{
    *(w->newer ? &w->newer->older : &x->newest) = w->older;
    *(w->older ? &w->older->newer : &x->oldest) = w->newer;
    w->newer = w->older = NULL;
}

static void link_ranking(struct index *x, struct wanted *w)
{
    w->older = x->newest;
    *(x->newest ? &x->newest->newer : &x->oldest) = w;
    x->newest = w;
}

static void wanted_free(struct index *x, struct wanted *w)
{
    int64_t hash = want_hash(&w->is);
    struct wanted *first = map_take(x->wanted, hash), **at = &first;
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    if (first)
        map_put(x->wanted, hash, first);
    if (w->free)
        wanted_leave(x, w->free);
    wanted_done(w);
}

void ranking_drop(struct index *x, struct wanted *w)
{
    unlink_ranking(x, w);
    free(TAKE(w->heap));
    x->rankings--;
    if (!w->users)
        wanted_free(x, w);
}

void wanted_leave(struct index *x, struct wanted *w)
{
    if (!--w->users && !w->heap) /* else somebody may ask for the same soon */
        wanted_free(x, w);
}

static void ranking_open(struct index *x, struct wanted *w)
{
    if (w->heap) {
        unlink_ranking(x, w);
        link_ranking(x, w);
        return;
    }
    if (x->rankings >= RANKINGS_MAX + x->fleet->count / 16)
        ranking_drop(x, x->oldest);
    w->room = 8;
    w->heap = must(calloc(w->room, sizeof *w->heap));
    w->epoch = UINT32_MAX; /* of no mix yet */
    x->rankings++;
    link_ranking(x, w);
}

/* --- heaps */

static void heap_down(struct wanted *w, size_t at, struct ranked r)
{
    for (size_t child; (child = 2 * at + 1) < w->count; at = child) {
        if (child + 1 < w->count && before(&w->heap[child + 1], &w->heap[child]))
            child++;
        if (!before(&w->heap[child], &r))
            break;
        w->heap[at] = w->heap[child];
    }
    w->heap[at] = r;
}

static void heap_pop(struct wanted *w)
{
    struct ranked last = w->heap[--w->count];
    if (w->count)
        heap_down(w, 0, last);
}

static int by_rank(const void *a, const void *b)
{
    return before(a, b) ? -1 : before(b, a);
}

/* In a large fleet more is forgotten while a ranking is not asked, and looking at all costs more. */
static uint32_t keep(const struct index *x)
{
    return (uint32_t)MIN(MAX(x->fleet->live / 64, (size_t)RANKING_KEEP), (size_t)8 * RANKING_KEEP);
}

/* Keeps the better half; what is sorted is a heap. Entries of lots that are gone go first. */
static void heap_cut(const struct index *x, struct wanted *w)
{
    uint32_t live = 0;
    for (uint32_t i = 0; i < w->count; i++)
        if (fleet_lot(x->fleet, w->heap[i].lot))
            w->heap[live++] = w->heap[i];
    w->count = live;
    qsort(w->heap, w->count, sizeof *w->heap, by_rank);
    uint32_t most = keep(x);
    if (w->count <= most)
        return;
    if (!w->cut || before(&w->heap[most], &w->floor))
        w->floor = w->heap[most];
    w->cut = true;
    w->count = most;
}

static void heap_add(const struct index *x, struct wanted *w, const struct ranked *r)
{
    if (w->cut && !before(r, &w->floor))
        return;
    if (w->count == w->room && w->room < 2 * keep(x)) {
        w->room *= 2;
        w->heap = must(reallocarray(w->heap, w->room, sizeof *w->heap));
    } else if (w->count == w->room) {
        heap_cut(x, w);
    }
    size_t at = w->count++;
    for (; at && before(r, &w->heap[(at - 1) / 2]); at = (at - 1) / 2)
        w->heap[at] = w->heap[(at - 1) / 2];
    w->heap[at] = *r;
}

/* --- asking */

static void know_kinds(const struct index *x, struct wanted *w)
{
    const struct fleet *f = x->fleet;
    if (w->kinds == f->kind_count && w->suits)
        return;
    w->suits = must(reallocarray(w->suits, f->kind_count + 1, sizeof *w->suits));
    for (; w->kinds < f->kind_count; w->kinds++) {
        w->suits[w->kinds] = suit_of(&f->kinds[w->kinds], &w->is.shape.gpu);
    }
}

/* While there is only the house for everybody, nobody is asked. */
static void know_houses(const struct index *x, struct wanted *w)
{
    const struct fleet *f = x->fleet;
    if (w->houses == f->house_count || (f->house_count <= 1 && !w->is.guest.residency && !w->is.guest.tolerates))
        return;
    w->admits = must(reallocarray(w->admits, f->house_count, sizeof *w->admits));
    for (; w->houses < f->house_count; w->houses++)
        w->admits[w->houses] = house_admits(f->houses[w->houses], &w->is.guest) == HOUSE_YES;
}

static bool fits(const struct wanted *w, const struct lot *l, struct pick *out)
{
    return (!w->admits || w->admits[l->house]) && lot_fits(&w->is, w->suits, l, out);
}

/* What a lot must have at the least. */
struct least {
    int64_t cpu, mem, free, rest, whole;
    uint64_t owners;
};

static struct least least_of(const struct want *w)
{
    const struct shape *s = &w->shape;
    int64_t milli = s->gpu.mig[0] ? 0 : s->gpu.milli; /* slots tell of slices, and they are not in the brief */
    struct least l = { .cpu = s->cpu_milli, .mem = s->mem_mib, .free = MIN(milli, 1000), .whole = milli / 1000, .owners = UINT64_MAX };
    if (w->whose == WHOSE_OWN)
        l.free = 0, l.rest = milli, l.owners = UINT64_C(1) << owner_bit(w->project);
    else if (milli < 1000 && w->whose == WHOSE_ANY)
        l.free = 0; /* on the one or the other */
    return l;
}

static bool may_fit(const struct least *l, const struct brief *b)
{
    return b->cpu_free >= l->cpu && b->mem_free >= l->mem && b->largest >= l->free && b->rest >= l->rest && b->whole >= l->whole
           && (!l->rest || (b->owners & l->owners));
}

/* A ranking as it is brought up to date: what it is about, and where that is logged. Lots lie anywhere in memory, so some are asked for together
 * and looked at when they have come. */
struct reader {
    struct index *x;
    struct wanted *w;
    struct want as;
    struct least least;
    const struct log *log;
    struct lot *coming[COMING];
    int count;
};

static void look_at(struct reader *r, struct lot *l)
{
    struct index *x = r->x;
    struct wanted *w = r->w;
    struct pick p;
    if ((w->admits && !w->admits[l->house]) || !lot_fits(&r->as, w->suits, l, &p))
        return;
    lot_score(&x->policy, x->mix, &r->as, w->suits, l, &p);
    x->scored++;
    heap_add(x, w, &(struct ranked){ l->first, p.score, { l->id, l->birth } });
}

static void look_at_those(struct reader *r)
{
    for (int i = 0; i < r->count; i++)
        look_at(r, r->coming[i]);
    r->count = 0;
}

static void look_soon(struct reader *r, struct lot *l)
{
    for (int i = 0; i < 4; i++)
        __builtin_prefetch((char *)l + 64 * i);
    r->coming[r->count++] = l;
    if (r->count == COMING)
        look_at_those(r);
}

static void look_at_all(struct reader *r)
{
    struct fleet *f = r->x->fleet;
    struct wanted *w = r->w;
    w->count = 0;
    w->cut = false;
    w->epoch = r->x->mix->epoch;
    w->read = r->log->from + r->log->count;
    for (size_t i = 0; i < f->lot_count; i++)
        if (f->briefs[i].birth && may_fit(&r->least, &f->briefs[i]))
            look_soon(r, f->lots[i]);
    look_at_those(r);
    r->x->scans++;
}

static void read_on(struct reader *r)
{
    struct fleet *f = r->x->fleet;
    struct wanted *w = r->w;
    uint64_t end = r->log->from + r->log->count;
    for (; w->read < end; w->read++) {
        struct lot_ref ref = r->log->at[w->read - r->log->from];
        const struct brief *b = &f->briefs[ref.id];
        if (b->birth == ref.birth && may_fit(&r->least, b) && (b->logged == w->read || r->log != &f->log))
            look_soon(r, f->lots[ref.id]);
    }
    look_at_those(r);
}

/* The lot of the best entry that is still true, or NULL. */
static struct lot *heap_top(struct index *x, struct wanted *w)
{
    while (w->count) {
        struct ranked *top = &w->heap[0];
        struct lot *l = fleet_lot(x->fleet, top->lot);
        if (l && l->first == top->node)
            return !w->cut || before(top, &w->floor) ? l : NULL;
        if (l) {
            struct ranked moved = *top;
            moved.node = l->first;
            heap_down(w, 0, moved);
        } else {
            heap_pop(w);
        }
    }
    return NULL;
}

static struct node *any_node(struct index *x, struct wanted *w, struct pick *out)
{
    struct node *best = NULL;
    uint64_t lowest = 0;
    struct pick p;
    for (size_t i = 0; i < x->fleet->count; i++) {
        struct node *n = x->fleet->nodes[i];
        struct rng r = { (uint64_t)n->id ^ x->asked * 0x9e3779b97f4a7c15ULL };
        uint64_t draw = rng_next(&r);
        if ((best && draw >= lowest) || !n->lot || !fits(w, n->lot, &p))
            continue;
        lot_score(&x->policy, x->mix, &w->is, w->suits, n->lot, &p);
        best = n;
        lowest = draw;
        *out = p;
    }
    return best;
}

static void know(const struct index *x, struct wanted *w)
{
    know_kinds(x, w);
    know_houses(x, w);
}

void index_ready(struct index *x, struct wanted *w)
{
    fleet_settle(x->fleet);
    mix_settle(x->mix, x->fleet);
    know(x, w);
    x->asked++;
}

/* The best lot of a ranking, and how good it is; NULL: none fits. */
static struct lot *ranking_best(struct index *x, struct wanted *w, struct ranked *top)
{
    struct reader r = { .x = x, .w = w, .as = w->is, .log = &x->fleet->log };
    if (w->free) {
        r.as.whose = WHOSE_OWN;
        r.log = &x->fleet->logs[owner_bit(w->is.project)];
    }
    r.least = least_of(&r.as);
    ranking_open(x, w);
    if (w->epoch != x->mix->epoch || w->read < r.log->from)
        look_at_all(&r);
    else
        read_on(&r);
    struct lot *l = heap_top(x, w);
    if (!l && w->cut) {
        look_at_all(&r);
        l = heap_top(x, w);
    }
    if (l)
        *top = w->heap[0];
    return l;
}

struct node *index_best(struct index *x, struct wanted *w, struct pick *out)
{
    index_ready(x, w);
    if (x->policy.dice)
        return any_node(x, w, out);
    struct ranked top, other;
    struct lot *l = ranking_best(x, w, &top), *k = NULL;
    if (w->free) {
        know(x, w->free);
        k = ranking_best(x, w->free, &other);
    }
    if (k && (!l || before(&other, &top)))
        l = k;
    if (!l || !fits(w, l, out))
        return NULL;
    lot_score(&x->policy, x->mix, &w->is, w->suits, l, out);
    return l->nodes[0];
}

struct node *index_scan(struct index *x, struct wanted *w,
                        bool (*allowed)(const struct pick *p, void *arg), void *arg,
                        struct pick *out)
{
    struct node *best = NULL;
    struct pick p;
    index_ready(x, w);
    for (size_t i = 0; i < x->fleet->lot_count; i++) {
        struct lot *l = x->fleet->lots[i];
        if (!l || !fits(w, l, &p) || (allowed && !allowed(&p, arg)))
            continue;
        lot_score(&x->policy, x->mix, &w->is, w->suits, l, &p);
        if (!best || p.score > out->score
            || (p.score == out->score && l->first < best->id)) {
            best = l->nodes[0];
            *out = p;
        }
    }
    return best;
}

void index_each(struct index *x, struct wanted *w, void (*found)(struct lot *l, const struct pick *p, void *arg), void *arg)
{
    struct fleet *f = x->fleet;
    struct pick p;
    index_ready(x, w);
    struct least least = least_of(&w->is);
    for (size_t i = 0; i < f->lot_count; i++)
        if (f->briefs[i].birth && may_fit(&least, &f->briefs[i]) && fits(w, f->lots[i], &p))
            found(f->lots[i], &p, arg);
}

bool index_walk(struct index *x, struct wanted *w, bool (*look)(struct lot *l, const struct pick *p, void *arg), void *arg)
{
    struct pick p;
    struct wanted *both[2] = { w, w->free };    /* of a share; a lot may stand in both */
    uint32_t at[2] = { 0 };
    bool cut = false;
    if (!index_best(x, w, &p) || !w->heap) /* it has read everything now */
        return true;
    for (int k = 0; k < 2 && both[k]; k++) {
        qsort(both[k]->heap, both[k]->count, sizeof *both[k]->heap, by_rank);
        cut = cut || both[k]->cut;
    }
    for (;;) {
        const struct ranked *next = NULL;
        int of = 0;
        for (int k = 0; k < 2 && both[k]; k++)
            if (at[k] < both[k]->count && (!next || before(&both[k]->heap[at[k]], next)))
                next = &both[k]->heap[at[k]], of = k;
        for (int k = 0; k < 2 && both[k] && next; k++)
            next = both[k]->cut && !before(next, &both[k]->floor) ? NULL : next;
        if (!next)
            return !cut;
        at[of]++;
        struct lot *l = fleet_lot(x->fleet, next->lot);
        if (!l || !fits(w, l, &p))
            continue;
        lot_score(&x->policy, x->mix, &w->is, w->suits, l, &p);
        if (!look(l, &p, arg))
            return true;
    }
}

void index_walk_all(struct index *x, struct wanted *w, bool (*look)(struct lot *l, const struct pick *p, void *arg), void *arg)
{
    struct fleet *f = x->fleet;
    struct least least = least_of(&w->is);
    struct pick p;
    index_ready(x, w);
    for (size_t i = 0; i < f->lot_count; i++) {
        if (!f->briefs[i].birth || !may_fit(&least, &f->briefs[i]) || !fits(w, f->lots[i], &p))
            continue;
        lot_score(&x->policy, x->mix, &w->is, w->suits, f->lots[i], &p);
        (void)look(f->lots[i], &p, arg);
    }
}

bool index_on(struct index *x, struct wanted *w, struct node *n, struct pick *out)
{
    index_ready(x, w);
    if (!n->lot || !fits(w, n->lot, out))
        return false;
    lot_score(&x->policy, x->mix, &w->is, w->suits, n->lot, out);
    return true;
}

bool index_fits(struct index *x, struct wanted *w, const struct node *n)
{
    struct state as;
    struct pick p;
    if (!n->usable)
        return false;
    node_state(x->fleet, n, &as);
    return fits(w, &as.lot, &p);
}

bool index_as(struct index *x, struct wanted *w, struct node *n, struct pick *out,
              struct held_gpu gpus[static SCHED_GPUS], int *count)
{
    struct state as;
    struct lot *was = n->lot;
    if (!n->usable)
        return false;
    node_state(x->fleet, n, &as);
    if (!fits(w, &as.lot, out))
        return false;
    lot_score(&x->policy, x->mix, &w->is, w->suits, &as.lot, out);
    n->lot = &as.lot;
    *count = pick_gpus(&w->is, out, n, x->fleet, gpus);
    n->lot = was;
    return true;
}

void index_done(struct index *x)
{
    struct wanted *first;
    for (size_t i = 0; x->wanted && (first = map_next(x->wanted, &i));)
        for (struct wanted *w = first, *next; w; w = next) {
            next = w->next;
            free(w->heap);
            wanted_done(w);
        }
    map_free(x->wanted);
}
