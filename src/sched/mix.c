/* mix.c - counting arrivals, and the tables that scores read. See mix.h. */
#include "sched/mix_internal.h"
#include "sched/packs.h"
#include "sched/score.h"
#include <stdlib.h>

enum {
    SEEN_MAX = 1 << 17,
    ONE_JOB_MAX = 1 << 14,
    FIRST_SETTLE = 4,
    SETTLE_PART = 8,
    LOOK_PART = 64,             /* how often what is free is looked at: a walk over all lots */
    GONE_PART = 8,              /* the last fourth of a small kind can go while an eighth arrives, and nothing of it is dear before the tables know */
    SLIVER_END = 24,
    COARSE_MOST = 4
};

static int64_t row_hash(const struct mix_row *r)
{
    uint64_t h = (uint64_t)r->cpu_milli * 0x9e3779b97f4a7c15ULL;
    h = (h ^ (uint64_t)r->gpu.milli ^ h >> 29) * 0xbf58476d1ce4e5b9ULL;
    for (const char *p = r->gpu.model; *p; p++)
        h = (h ^ (unsigned char)*p) * 0x100000001b3ULL;
    return (int64_t)(h ^ h >> 31);
}

static int row_order(const struct mix_row *a, const struct mix_row *b)
{
    const int64_t x[] = { a->cpu_milli, a->gpu.milli, a->gpu.mem_min_mib, a->gpu.mem_max_mib },
                  y[] = { b->cpu_milli, b->gpu.milli, b->gpu.mem_min_mib, b->gpu.mem_max_mib };
    for (size_t i = 0; i < COUNT(x); i++)
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    return strcmp(a->gpu.model, b->gpu.model);
}

static int by_commonest(const void *a, const void *b)
{
    const struct mix_row *x = *(struct mix_row *const *)a, *y = *(struct mix_row *const *)b;
    if (x->seen != y->seen)
        return x->seen > y->seen ? -1 : 1;
    return row_order(x, y);
}

static struct mix_row *row_find(struct mix *m, const struct mix_row *like, int64_t *key)
{
    struct mix_row *r = NULL;
    for (*key = row_hash(like); (r = map_get(m->known, *key)) && row_order(r, like) != 0;)
        ++*key;
    return r;
}

/* Rounded up: CPUs to so many bits, shares to so many thousandths. What is whole stays so. */
static void coarsen(struct mix_row *r, int coarse)
{
    static const struct { int64_t parts, milli; } grid[COARSE_MOST + 1] = { { 0, 1 }, { 32, 10 }, { 16, 20 }, { 8, 50 }, { 4, 100 } };
    int64_t step = 1, milli = grid[coarse].milli;
    while (coarse && step * grid[coarse].parts <= r->cpu_milli / 2)
        step *= 2;
    r->cpu_milli = (r->cpu_milli + step - 1) / step * step;
    milli = (r->gpu.milli + milli - 1) / milli * milli;
    r->gpu.milli = milli < 1000 ? milli : r->gpu.milli;
}

static void row_file(struct mix *m, struct mix_row *r)
{
    int64_t key;
    struct mix_row *like = row_find(m, r, &key);
    m->seen += r->seen;
    if (like) {
        like->seen += r->seen;
        free(r);
        return;
    }
    map_put(m->known, key, r);
    m->rows[m->count++] = r;
}

/* Room for more rows: shapes that are nearly alike become one, as long as that helps; then the commonest half stays. And every row
 * forgets half of what it saw, if it is time for that. */
static void thin_out(struct mix *m, bool fade)
{
    bool full = m->count == MIX_ROWS;
    qsort(m->rows, m->count, sizeof m->rows[0], by_commonest);
    m->coarse += full && m->coarse < COARSE_MOST;
    size_t keep = full && m->coarse == COARSE_MOST ? MIX_ROWS / 2 : m->count, count = m->count;
    map_free(m->known);
    m->known = map_new();
    m->seen = 0;
    m->count = 0;
    for (size_t i = 0; i < count; i++) {
        struct mix_row *r = m->rows[i];
        r->seen -= fade ? r->seen / 2 : 0;
        coarsen(r, m->coarse);
        if (i >= keep || (fade && r->seen == 1))
            free(r);
        else
            row_file(m, r);
    }
    m->coarse -= fade && m->coarse && m->count < MIX_ROWS / 4;
    m->settle_at = MIN(m->settle_at, m->seen + m->seen / SETTLE_PART);
    m->look_at = MIN(m->look_at, m->seen + m->seen / LOOK_PART);
}

void mix_seen(struct mix *m, const struct shape *shape, int64_t tasks)
{
    struct mix_row like = { .gpu = shape->gpu, .cpu_milli = shape->cpu_milli };
    int64_t key;
    if (m->fixed || tasks <= 0 || shape->gpu.mig[0]) /* slices have GPUs of their own */
        return;
    m->known = m->known ? m->known : map_new();
    m->settle_at = m->settle_at ? m->settle_at : FIRST_SETTLE;
    coarsen(&like, m->coarse);
    struct mix_row *r = row_find(m, &like, &key);
    for (; !r && m->count == MIX_ROWS; r = row_find(m, &like, &key)) {
        thin_out(m, false);
        coarsen(&like, m->coarse);
    }
    if (!r) {
        r = must(calloc(1, sizeof *r));
        *r = like;
        map_put(m->known, key, r);
        m->rows[m->count++] = r;
    }
    tasks = MIN(tasks, ONE_JOB_MAX);
    r->seen += tasks;
    m->seen += tasks;
    if (m->seen > SEEN_MAX)
        thin_out(m, true);
}

int mix_cpu_step(const struct mix *m, int64_t cpu_free)
{
    int low = 0, high = m->cpu_steps;
    while (low < high) {
        int mid = (low + high) / 2;
        if (m->cpu_at[mid] <= cpu_free)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* --- tables */

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* Distinct values in order, at most MIX_STEPS: of more, some stand for the smaller ones before them. */
static int steps_of(int64_t *values, int count, int64_t out[static MIX_STEPS])
{
    int n = 0, kept = 0;
    qsort(values, (size_t)count, sizeof *values, by_number);
    for (int i = 0; i < count; i++)
        if (!i || values[i] != values[n - 1])
            values[n++] = values[i];
    for (int i = 0, steps = MIN(n, (int)MIX_STEPS); i < steps; i++)
        out[kept++] = values[(int64_t)(i + 1) * n / steps - 1];
    return kept;
}

static int step_of(const int64_t *steps, int count, int64_t value) /* the first at or above */
{
    int i = 0;
    while (i < count - 1 && steps[i] < value)
        i++;
    return i;
}

static int64_t part_of_one(const struct gpu_ask *g)
{
    return MIN(g->milli, 1000);
}

/* From all shapes, so that whatever is made of some of them stands on the same steps; and of CPUs what the largest that may come would ask for. */
static void make_steps(struct mix *m, const struct fleet *f)
{
    int64_t cpus[MIX_ROWS + MIX_STEPS], parts[MIX_ROWS];
    int n = 0, most = 0;
    for (size_t i = 0; i < m->count; i++)
        if (m->rows[i]->gpu.milli) {
            cpus[n] = m->rows[i]->cpu_milli;
            parts[n++] = part_of_one(&m->rows[i]->gpu);
        }
    for (size_t i = 0; i < f->make_count && most < MIX_STEPS; i++)
        if (f->makes[i].nodes && f->makes[i].gpu_count > 1)
            cpus[n + most++] = mix_most_cpus(&f->makes[i]);
    m->cpu_steps = steps_of(cpus, n + most, m->cpu_at);
    m->milli_steps = steps_of(parts, n, m->milli_at);
    for (int part = 0, at = 0; part <= 1000; part++) {
        while (at < m->milli_steps && m->milli_at[at] <= part)
            at++;
        m->milli_step[part] = (uint8_t)at;
    }
}

struct stand mix_stand(const struct mix *m, const struct mix_row *r)
{
    int gpus = (int)MIN(r->gpu.milli / 1000, SCHED_GPUS);
    return (struct stand){ .cpu = step_of(m->cpu_at, m->cpu_steps, r->cpu_milli) + 1,
                           .part = step_of(m->milli_at, m->milli_steps, part_of_one(&r->gpu)) + 1,
                           .gpus = gpus > 1 ? gpus : 0 };
}

static void cell_add(struct mix_cell *to, const struct mix_cell *from)
{
    to->usual += from->usual;
    to->dear += from->dear;
}

static void sum_up(struct mix_kind *k)
{
    for (int c = 0; c <= MIX_STEPS; c++) {
        for (int i = 1; i <= MIX_STEPS; i++)
            cell_add(&k->one[c][i], &k->one[c][i - 1]);
        for (int i = 1; i <= SCHED_GPUS; i++)
            cell_add(&k->many[c][i], &k->many[c][i - 1]);
        for (int i = 0; c && i <= MIX_STEPS; i++)
            cell_add(&k->one[c][i], &k->one[c - 1][i]);
        for (int i = 0; c && i <= SCHED_GPUS; i++)
            cell_add(&k->many[c][i], &k->many[c - 1][i]);
    }
}

static void make_kinds(struct mix *m, const struct fleet *f, const struct typical *t, size_t count)
{
    free(m->kinds);
    m->kind_count = f->kind_count;
    m->make_count = f->make_count;
    m->kinds = must(calloc(f->kind_count + 1, sizeof *m->kinds));
    for (size_t i = 0; i < count; i++) {
        const struct gpu_ask *g = &t[i].row->gpu;
        struct stand at = mix_stand(m, t[i].row);
        for (size_t k = 0; g->milli && k < f->kind_count; k++) {
            if (!suit_of(&f->kinds[k], g).choice)
                continue;
            struct mix_kind *to = &m->kinds[k];
            (at.gpus ? &to->many[at.cpu][at.gpus] : &to->one[at.cpu][at.part])->usual += (uint32_t)t[i].part;
        }
    }
}

static bool make_could(const struct fleet *f, const struct make *k, const struct mix_row *r)
{
    return k->kind < f->kind_count && k->cpu_milli >= r->cpu_milli
           && k->gpu_count * 1000 >= r->gpu.milli
           && suit_of(&f->kinds[k->kind], &r->gpu).choice;
}

static bool somewhere(const struct fleet *f, const struct mix_row *r)
{
    size_t k = 0;
    while (k < f->make_count && !(f->makes[k].nodes && make_could(f, &f->makes[k], r)))
        k++;
    return k < f->make_count;
}

struct feed {
    int64_t cpu_per_gpu, weight;
};

static int by_feed(const void *a, const void *b)
{
    const struct feed *x = a, *y = b;
    return x->cpu_per_gpu < y->cpu_per_gpu ? -1 : x->cpu_per_gpu > y->cpu_per_gpu;
}

static void make_feeds(struct mix *m, const struct typical *t, size_t count)
{
    struct feed feeds[MIX_ROWS];
    int64_t all = 0, sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        const struct gpu_ask *g = &t[i].row->gpu;
        if (g->milli) {
            feeds[n]
                = (struct feed){ t[i].row->cpu_milli * 1000 / g->milli, t[i].part * g->milli / 10 };
            all += feeds[n++].weight;
        }
    }
    qsort(feeds, n, sizeof *feeds, by_feed);
    for (size_t i = 0, k = 0; i < n; i++) {
        sum += feeds[i].weight;
        for (; k < MIX_FEEDS && sum * 2 * MIX_FEEDS >= all * (int64_t)(2 * k + 1); k++)
            m->fed[k] = 1000LL * MIX_ONE / MAX(feeds[i].cpu_per_gpu, 1);
    }
}

/* What a rest is short of, seen in two ways. By the best that could be packed into it if whatever was wanted came (packs.c); that counts twice. And by chance: a GPU with so
 * much left waits for shares that fit, in each round one of them comes with its likelihood and leaves a smaller rest, or with the likelihood of SLIVER_END nothing ever
 * comes and all of it is lost. The first alone sees no harm in any rest where each size has one that completes it, and would wait for it in vain. */
static void make_slivers(struct mix *m, const struct typical *t, size_t count)
{
    int64_t at[1001] = { 0 }, worth[1001], chance[1001] = { 0 }, all = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t milli = t[i].row->gpu.milli;
        if (milli && milli < 1000) {
            at[milli] += t[i].part;
            all += t[i].part;
        }
    }
    packs_worth(at, worth);
    for (int f = 1; f <= 1000; f++) {
        int64_t lost = all * SLIVER_END / 1000 * f * MICRO, rate = all * SLIVER_END / 1000;
        for (int s = 1; s <= f; s++)
            if (at[s]) {
                lost += at[s] * chance[f - s];
                rate += at[s];
            }
        chance[f] = rate ? lost / rate : 0;
        m->sliver[f] = all ? (2 * (f * MICRO - worth[f]) + chance[f]) / 3 : 0;
    }
}

/* Free GPU of each kind in thousandths, and the floor. */
static int64_t *idle_of(const struct fleet *f)
{
    int64_t *idle = must(calloc(f->kind_count + 1, sizeof *idle)), all = 0;
    for (size_t i = 0; i < f->make_count; i++)
        all += f->makes[i].nodes * f->makes[i].gpu_count * 1000;
    for (size_t k = 0; k < f->kind_count; k++)
        idle[k] = all * MIX_FLOOR / 1000;
    for (size_t i = 0; i < f->lot_count; i++) {
        const struct lot *l = f->lots[i];
        for (int g = 0; l && g < l->groups; g++)
            idle[l->group[g].kind] += (int64_t)l->group[g].free_milli * l->group[g].count * l->count;
    }
    return idle;
}

/* Which shapes are usual is told by how many tasks there are of each, as published; what is scarce, needs CPUs or leaves slivers by all that
 * any node could run. */
static void make_tables(struct mix *m, const struct fleet *f)
{
    struct typical usual[MIX_ROWS], all[MIX_ROWS];
    int64_t sum = 0;
    size_t n = 0, all_count = 0;
    qsort(m->rows, m->count, sizeof m->rows[0], by_commonest);
    for (; n < m->count && sum * 100 < m->seen * MIX_COVER; n++)
        sum += m->rows[n]->seen;
    for (size_t i = 0; i < m->count; i++) {
        usual[i] = (struct typical){ m->rows[i], m->rows[i]->seen * MIX_ONE / sum };
        if (somewhere(f, m->rows[i]))
            all[all_count++] = (struct typical){ m->rows[i], m->rows[i]->seen * MIX_ONE / m->seen };
    }
    make_steps(m, f);
    make_kinds(m, f, usual, n);
    mix_scarce(m, f, all, all_count);
    for (size_t k = 0; k < f->kind_count; k++)
        sum_up(&m->kinds[k]);
    make_feeds(m, all, all_count);
    make_slivers(m, all, all_count);
    free(m->idle);
    m->idle = idle_of(f);
    m->settle_at = m->seen + MAX(m->seen / SETTLE_PART, FIRST_SETTLE);
    m->look_at = m->seen + MAX(m->seen / LOOK_PART, FIRST_SETTLE);
    m->epoch++;
}

/* Is much of some kind gone, or back, since the tables were made? */
static bool moved(struct mix *m, const struct fleet *f)
{
    bool much = false;
    if (m->fixed || m->seen < m->look_at)
        return false;
    m->look_at = m->seen + MAX(m->seen / LOOK_PART, FIRST_SETTLE);
    int64_t *idle = idle_of(f);
    for (size_t k = 0; k < f->kind_count; k++)
        much = much || llabs(m->idle[k] - idle[k]) * GONE_PART > m->idle[k];
    free(idle);
    return much;
}

void mix_settle(struct mix *m, const struct fleet *f)
{
    bool grown = !m->fixed && m->seen && m->seen >= m->settle_at;
    bool other = m->epoch && (m->kind_count != f->kind_count || m->make_count != f->make_count);
    if (grown || other || (m->epoch && moved(m, f)))
        make_tables(m, f);
}

void mix_fix(struct mix *m, const struct fleet *f)
{
    m->fixed = true;
    if (m->seen)
        make_tables(m, f);
}

void mix_done(struct mix *m)
{
    for (size_t i = 0; i < m->count; i++)
        free(m->rows[i]);
    map_free(m->known);
    free(m->kinds);
    free(m->idle);
}
