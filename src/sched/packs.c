/* packs.c - what the rest of a shared GPU is worth, from the sizes of shares that come.
 *
 * Whoever must put all of them on as few GPUs as can be solves a linear program (cutting stock): which packs of shares, and how many of each. Its dual is a
 * price for each size, and a rest is worth the dearest pack that it has room for: sizes of which more come than will ever find company are cheap, those that
 * complete a GPU are dear, and a rest into which nothing of value fits is lost. Solved by the simplex method with packs made as they are needed (a knapsack), in
 * fixed point. It knows nothing of CPUs. */
#include "sched/packs.h"
#include "base/must.h"
#include <string.h>

enum {
    SIZES = 48,         /* of more, neighbours stand together */
    TURNS = 8,          /* for each size: enough, and a bound */
    BITS = 30,
    ONE = 1 << BITS,
    NEAR = ONE >> 12,   /* less is nothing */
    DEMAND = 1 << 12
};

struct packs {
    int count, step;                    /* step: the greatest common divisor of all sizes */
    int size[SIZES];                    /* thousandths of a GPU, rising */
    int64_t demand[SIZES], price[SIZES];
    int64_t inverse[SIZES][SIZES];      /* of the basis: a row for each pack in use */
    int64_t used[SIZES];                /* how many of it */
    bool surplus[SIZES];                /* it is no pack: more of a size is packed than asked for */
    int64_t best[1001];                 /* by steps */
};
struct pack { int of[SIZES]; bool surplus; };

static int64_t times(int64_t a, int64_t b)
{
    return (int64_t)((__int128)a * b >> BITS);
}

static int64_t over(int64_t a, int64_t b)
{
    return (int64_t)((__int128)a * ONE / b);
}

static void size_add(struct packs *p, int size, int64_t sum, int64_t all)
{
    p->size[p->count] = size;
    p->demand[p->count++] = MAX(sum * DEMAND * 16 / all, 1) * (ONE / 16);
    for (int a = size; a;) {
        int rest = p->step % a;
        p->step = a;
        a = rest;
    }
}

static void sizes_read(struct packs *p, const int64_t asked[static 1001])
{
    int64_t all = 0, sum = 0;
    int distinct = 0, last = 0;
    for (int s = 1; s < 1000; s++) {
        all += asked[s];
        distinct += asked[s] > 0;
    }
    for (int s = 1; s < 1000; s++) {
        if (!asked[s])
            continue;
        sum += asked[s];
        last = s;
        if (distinct <= SIZES || sum * SIZES >= all) {
            size_add(p, s, sum, all);
            sum = 0;
        }
    }
    if (sum)
        size_add(p, last, sum, all);
}

/* Each size by itself. */
static void basis_first(struct packs *p)
{
    for (int i = 0; i < p->count; i++) {
        int fit = 1000 / p->size[i];
        p->inverse[i][i] = ONE / fit;
        p->used[i] = p->demand[i] / fit;
    }
}

static void prices_read(struct packs *p)
{
    memset(p->price, 0, sizeof p->price);
    for (int k = 0; k < p->count; k++)
        for (int i = 0; i < p->count && !p->surplus[k]; i++)
            p->price[i] += p->inverse[k][i];
}

/* best[f]: of the packs that fit into f steps. */
static void knapsack(struct packs *p, int step)
{
    p->best[0] = 0;
    for (int f = 1; f <= 1000 / step; f++) {
        p->best[f] = p->best[f - 1];
        for (int i = 0; i < p->count && p->size[i] <= f * step; i++)
            p->best[f] = MAX(p->best[f], p->best[f - p->size[i] / step] + p->price[i]);
    }
}

static void knapsack_open(const struct packs *p, int step, struct pack *out)
{
    for (int f = 1000 / step; f > 0;) {
        int i = 0;
        if (p->best[f] == p->best[f - 1]) {
            f--;
            continue;
        }
        while (p->best[f - p->size[i] / step] + p->price[i] != p->best[f])
            i++;
        out->of[i]++;
        f -= p->size[i] / step;
    }
}

/* The one that would make it better by most; false: nothing would. */
static bool entering(struct packs *p, struct pack *out)
{
    int least = 0;
    for (int i = 1; i < p->count; i++)
        least = p->price[i] < p->price[least] ? i : least;
    *out = (struct pack){ .surplus = p->price[least] < -NEAR };
    if (out->surplus)
        return out->of[least] = -1, true;
    knapsack(p, p->step);
    if (p->best[1000 / p->step] <= ONE + NEAR)
        return false;
    return knapsack_open(p, p->step, out), true;
}

static bool enter(struct packs *p, const struct pack *in)
{
    int64_t part[SIZES] = { 0 };
    int out = -1;
    for (int k = 0; k < p->count; k++) {
        for (int i = 0; i < p->count; i++)
            part[k] += p->inverse[k][i] * in->of[i];
        if (part[k] > NEAR && (out < 0 || (__int128)p->used[k] * part[out] < (__int128)p->used[out] * part[k]))
            out = k;
    }
    if (out < 0)
        return false;
    int64_t most = over(p->used[out], part[out]), *row = p->inverse[out];
    for (int i = 0; i < p->count; i++)
        row[i] = over(row[i], part[out]);
    for (int k = 0; k < p->count; k++) {
        if (k == out || !part[k])
            continue;
        for (int i = 0; i < p->count; i++)
            p->inverse[k][i] -= times(part[k], row[i]);
        p->used[k] = MAX(p->used[k] - times(part[k], most), 0);
    }
    p->used[out] = most;
    p->surplus[out] = in->surplus;
    return true;
}

void packs_worth(const int64_t asked[static 1001], int64_t worth[static 1001])
{
    struct packs p = { 0 };
    struct pack in;
    sizes_read(&p, asked);
    basis_first(&p);
    prices_read(&p);
    for (int turns = 0; turns < TURNS * SIZES && p.count && entering(&p, &in) && enter(&p, &in); turns++)
        prices_read(&p);
    for (int i = 0; i < p.count; i++)
        p.price[i] = MAX(p.price[i], 0);
    knapsack(&p, 1);
    for (int f = 0; f <= 1000; f++)
        worth[f] = p.best[f] * 1000 * 1000 / MAX(p.best[1000], 1);
}
