/* scarce.c - what of the fleet is needed by tasks that cannot go anywhere else: those that name models, and those of several GPUs at once.
 *
 * Of each such shape: how much of all that will come it is, against how much of all that is free now it could use. At one it will take
 * everything there is; a GPU that somebody else takes from it then is a task that will be refused. Below one that is unlikely, so what counts is the
 * square. It is summed up per set of models and size, since many shapes with the same needs share one supply. Until enough tasks were seen nobody
 * knows which models people name: they are taken to name them as often as there are such GPUs, so that no model is used up first by chance. Nor is it
 * known who needs several GPUs at once: some few are taken to need all that the larger nodes have, or a fleet with few of these had none left when the
 * first such task came. */
#include "sched/mix_internal.h"
#include "sched/score.h"
#include <stdlib.h>

enum {
    PRIOR_TASKS = 1000,         /* so many tasks must be seen to know as much as was assumed */
    SEVERAL_PERCENT = 60,       /* keeping nodes whole costs good fits elsewhere, which keeping a model does not */
    SIZE_SHARE = MIX_ONE / 25,  /* of all that is asked for, by those who need all of a node of that size; as long as nobody was seen */
    RATIO_MOST = 16 * MIX_ONE
};

/* Free GPU of a kind, in thousandths, by what the node and the GPU have left; summed up from above. */
struct supply {
    int64_t one[MIX_STEPS + 2][MIX_STEPS + 2], many[MIX_STEPS + 2][SCHED_GPUS + 2];
};

static void sum_down(struct supply *s)
{
    for (int c = MIX_STEPS; c >= 0; c--) {
        for (int i = MIX_STEPS; i >= 0; i--)
            s->one[c][i] += s->one[c][i + 1];
        for (int i = SCHED_GPUS; i >= 0; i--)
            s->many[c][i] += s->many[c][i + 1];
        for (int i = 0; i <= MIX_STEPS; i++)
            s->one[c][i] += s->one[c + 1][i];
        for (int i = 0; i <= SCHED_GPUS; i++)
            s->many[c][i] += s->many[c + 1][i];
    }
}

struct market {
    const struct fleet *fleet;
    struct supply *of;          /* by kind */
    int64_t free_milli, all_milli;
    int64_t asked;              /* by all shapes: parts of MIX_ONE times GPUs */
    uint64_t kinds;             /* those of which there are nodes, see kinds_of */
};

/* As bits; those behind the 63rd stand together. */
static uint64_t kinds_of(const struct fleet *f, const struct gpu_ask *g)
{
    uint64_t set = 0;
    for (size_t k = 0; k < f->kind_count; k++)
        if (suit_of(&f->kinds[k], g).choice)
            set |= 1ULL << MIN(k, 63);
    return set;
}

static struct market market_open(const struct mix *m, const struct fleet *f, const struct typical *t, size_t count)
{
    struct market w = { .fleet = f, .of = must(calloc(f->kind_count + 1, sizeof *w.of)) };
    for (size_t i = 0; i < count; i++)
        w.asked += t[i].part * t[i].row->gpu.milli / 1000;
    for (size_t k = 0; k < f->make_count; k++) {
        const struct make *is = &f->makes[k];
        w.all_milli += is->nodes * is->gpu_count * 1000;
        w.kinds |= is->nodes && is->gpu_count ? 1ULL << MIN(is->kind, 63) : 0;
    }
    for (size_t i = 0; i < f->lot_count; i++) {
        const struct lot *l = f->lots[i];
        int c = l ? mix_cpu_step(m, l->cpu_free) : 0;
        for (int g = 0; l && g < l->groups; g++) {
            const struct group *is = &l->group[g];
            int64_t milli = (int64_t)is->free_milli * is->count * l->count;
            w.of[is->kind].one[c][m->milli_step[is->free_milli]] += milli;
            w.of[is->kind].many[c][is->count] += is->free_milli == 1000 ? milli : 0;
            w.free_milli += milli;
        }
    }
    w.free_milli += w.all_milli * MIX_FLOOR / 1000;
    for (size_t k = 0; k < f->kind_count; k++)
        sum_down(&w.of[k]);
    return w;
}

/* How much of what will come asks for it, against how much of what is free it is; of MIX_ONE. */
static int64_t ratio(const struct market *w, int64_t share, int64_t supply)
{
    return MIN(share * w->free_milli / MAX(supply, 1), RATIO_MOST);
}

static int64_t ratio_of(const struct market *w, const struct typical *t, const struct stand *at)
{
    const struct gpu_ask *g = &t->row->gpu;
    int64_t supply = w->all_milli * MIX_FLOOR / 1000;
    for (size_t k = 0; k < w->fleet->kind_count; k++)
        if (suit_of(&w->fleet->kinds[k], g).choice)
            supply += at->gpus ? w->of[k].many[at->cpu][at->gpus] : w->of[k].one[at->cpu][at->part];
    return ratio(w, t->part * g->milli / 1000 * MIX_ONE / w->asked, supply);
}

/* Nobody was seen yet who names them, and somebody may. */
static void assume(struct mix *m, const struct market *w)
{
    for (size_t k = 0; k < w->fleet->kind_count; k++) {
        int64_t has = 0;
        for (size_t i = 0; i < w->fleet->make_count; i++)
            has += w->fleet->makes[i].kind == k ? w->fleet->makes[i].nodes * w->fleet->makes[i].gpu_count * 1000 : 0;
        int64_t share = has ? MIX_ONE * has / w->all_milli * PRIOR_TASKS / (m->seen + PRIOR_TASKS) : 0;
        m->kinds[k].one[1][1].dear += (uint32_t)ratio(w, share, w->of[k].one[1][1] + has * MIX_FLOOR / 1000);
    }
}

/* Nor one who needs nearly all of a node that has more GPUs, or CPUs beside them, than the others have. */
static void assume_size(struct mix *m, const struct market *w, const struct make *like)
{
    int gpus = MIN(like->gpu_count, SCHED_GPUS), cpu = MAX(mix_cpu_step(m, mix_most_cpus(like)), 1);
    int64_t supply = 0;
    for (size_t i = 0; i < w->fleet->make_count; i++) {
        const struct make *is = &w->fleet->makes[i];
        supply += is->gpu_count >= gpus && is->cpu_milli >= like->cpu_milli ? is->nodes * is->gpu_count * MIX_FLOOR : 0;
    }
    for (size_t k = 0; k < w->fleet->kind_count; k++)
        supply += w->of[k].many[cpu][gpus];
    int64_t is = MIN(ratio(w, SIZE_SHARE * PRIOR_TASKS / (m->seen + PRIOR_TASKS), supply), MIX_ONE);
    for (size_t k = 0; k < w->fleet->kind_count; k++)
        m->kinds[k].many[cpu][gpus].dear += (uint32_t)(is * is / MIX_ONE * SEVERAL_PERCENT / 100);
}

static bool make_told(const struct fleet *f, size_t i) /* is there one before it with as much? */
{
    const struct make *is = &f->makes[i];
    size_t k = 0;
    while (k < i && !(f->makes[k].nodes && f->makes[k].gpu_count == is->gpu_count && f->makes[k].cpu_milli == is->cpu_milli))
        k++;
    return k < i;
}

static void assume_sizes(struct mix *m, const struct market *w)
{
    for (size_t i = 0; i < w->fleet->make_count; i++)
        if (w->fleet->makes[i].nodes && w->fleet->makes[i].gpu_count > 1 && !make_told(w->fleet, i))
            assume_size(m, w, &w->fleet->makes[i]);
}

struct need { uint64_t set; int64_t ratio; struct stand at; };      /* set: of kinds, and in the upper bits how many GPUs */

static void tell(struct mix *m, const struct market *w, const struct gpu_ask *g, const struct need *n, int64_t sum)
{
    int64_t most = MIN(sum, MIX_ONE), dear = n->ratio * most / MIX_ONE;
    if (sum > MIX_ONE)
        dear = dear * MIX_ONE / sum;
    if (n->at.gpus)
        dear = dear * SEVERAL_PERCENT / 100;
    for (size_t k = 0; k < w->fleet->kind_count; k++) {
        if (!suit_of(&w->fleet->kinds[k], g).choice)
            continue;
        struct mix_cell *c = n->at.gpus ? &m->kinds[k].many[n->at.cpu][n->at.gpus] : &m->kinds[k].one[n->at.cpu][n->at.part];
        c->dear += (uint32_t)dear;
    }
}

void mix_scarce(struct mix *m, const struct fleet *f, const struct typical *t, size_t count)
{
    struct need needs[MIX_ROWS];
    struct market w = market_open(m, f, t, count);
    for (size_t i = 0; i < count && w.asked; i++) {
        const struct gpu_ask *g = &t[i].row->gpu;
        uint64_t set = kinds_of(f, g) & w.kinds;
        needs[i] = (struct need){ .set = set, .at = mix_stand(m, t[i].row) };
        if (!g->milli || (set == w.kinds && !needs[i].at.gpus))
            continue;
        needs[i].set ^= (uint64_t)needs[i].at.gpus << 56;
        needs[i].ratio = ratio_of(&w, &t[i], &needs[i].at) * m->seen / (m->seen + PRIOR_TASKS);
    }
    for (size_t i = 0; i < count && w.asked; i++) {
        int64_t sum = 0;
        for (size_t k = 0; k < count && needs[i].ratio; k++)
            sum += needs[k].set == needs[i].set ? needs[k].ratio : 0;
        if (sum)
            tell(m, &w, &t[i].row->gpu, &needs[i], sum);
    }
    if (w.asked && (w.kinds & (w.kinds - 1)))
        assume(m, &w);
    if (w.asked)
        assume_sizes(m, &w);
    free(w.of);
}
