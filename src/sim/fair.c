/* fair.c - how alike projects fared: Jain's index of got / asked, 1 where all are alike, 1/n where one of n got everything. */
#include "sim/world_internal.h"

struct fair fair_open(const struct world *w)
{
    struct fair f = { .projects = map_count(w->projects) };
    f.got = calloc(f.projects + 1, sizeof *f.got);
    f.asked = calloc(f.projects + 1, sizeof *f.asked);
    if (!f.got || !f.asked)
        abort();
    return f;
}

void fair_add(struct fair *f, int64_t project, double asked, double got)
{
    f->asked[project] += asked;
    f->got[project] += got;
}

int64_t fair_close(struct fair *f)
{
    double sum = 0, squares = 0;
    size_t n = 0;
    for (size_t p = 1; p <= f->projects; p++) {
        double x = f->asked[p] > 0 ? f->got[p] / f->asked[p] : 0;
        n += f->asked[p] > 0;
        sum += x;
        squares += x * x;
    }
    free(f->got);
    free(f->asked);
    return squares > 0 ? (int64_t)(sum * sum / ((double)n * squares) * 10000 + 0.5) : 10000;
}
