/* limit.c - the table of what can be limited, and the books. */
#include "model/limit.h"
#include <stdio.h>
#include <stdlib.h>

static const int64_t hour_ms = 3600 * 1000, whole_day_ms = 24 * hour_ms;
static const int64_t longest[PERIODS] = { whole_day_ms, 7 * whole_day_ms, 31 * whole_day_ms };

static const struct { const char *name, *does; int64_t unit; } kinds[LIMIT_ANY] = {
    [LIMIT_TASKS] = { "tasks", "run %s tasks at once", 1 },
    [LIMIT_GPUS] = { "gpus", "hold %s GPUs at once", 1000 },
    [LIMIT_DAY] = { "gpu_hours_day", "use %s GPU-hours a day", 1000 },
    [LIMIT_WEEK] = { "gpu_hours_week", "use %s GPU-hours a week", 1000 },
    [LIMIT_MONTH] = { "gpu_hours_month", "use %s GPU-hours a month", 1000 },
    [LIMIT_PROJECT_GPUS] = { "gpus", "hold %s GPUs at once", 1000 },
    [LIMIT_PROJECT_CPUS] = { "cpus", "hold %s CPUs at once", 1000 },
    [LIMIT_PROJECT_MEMORY] = { "memory", "hold %s MiB of memory at once", 1 },
};

const char *limit_name(enum limit_kind k)
{
    return kinds[k].name;
}

bool limit_is_none(const struct limit *l)
{
    for (int i = 0; i < LIMIT_KINDS; i++)
        if (l->most[i] >= 0)
            return false;
    return true;
}

void model_name(const char *model, char out[static MODEL_NAME])
{
    char flavor[48];
    struct shape one = { .gpu.milli = 1000 };
    flavor_of(&one, text_given(model) ? model : "gpu", flavor);
    snprintf(out, MODEL_NAME, "%.*s", (int)strcspn(flavor, "."), flavor);
}

void limit_ask_add(struct limit_ask *a, const char *model, int64_t milli)
{
    char name[MODEL_NAME] = "";
    if (model)
        model_name(model, name);
    int i = 0;
    while (i < a->count && !text_is(a->parts[i].model, name))
        i++;
    if (i == (int)COUNT(a->parts))
        i--; /* nobody builds such a machine: the last takes the rest */
    else if (i == a->count)
        memcpy(a->parts[a->count++].model, name, sizeof name);
    a->parts[i].milli += milli;
}

int64_t limit_bound_ms(const struct job_spec *spec)
{
    return spec->max_duration_s ? (spec->max_duration_s + spec->grace_s + LIMIT_STOP_S) * 1000 : 0;
}

/* --- periods */

/* Days since 1970 of the first of the month that `day` is in (the civil calendar, by eras of 400 years from March on). */
static int64_t month_begin(int64_t day)
{
    int64_t z = day + 719468, era = z / 146097, doe = z - era * 146097,
            yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365,
            doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;
    return day - (doy - (153 * mp + 2) / 5);
}

int64_t period_begin(int period, int64_t now_ms)
{
    int64_t day = MAX(now_ms, 0) / whole_day_ms;
    if (period == LIMIT_WEEK - LIMIT_DAY)
        day -= (day + 3) % 7; /* 1970 began on a Thursday */
    else if (period == LIMIT_MONTH - LIMIT_DAY)
        day = month_begin(day);
    return day * whole_day_ms;
}

bool books_have_hours(const struct books *l)
{
    for (size_t i = 0; i < l->count; i++)
        for (int k = LIMIT_DAY; k <= LIMIT_MONTH; k++)
            if (l->at[i].limit.most[k] >= 0)
                return true;
    return false;
}

int64_t books_next_ms(const struct books *l, int64_t now_ms)
{
    return books_have_hours(l) ? period_begin(0, now_ms) + whole_day_ms : INT64_MAX;
}

bool books_roll(struct books *l, int64_t now_ms)
{
    bool rolled = false;
    for (int p = 0; l->count && p < PERIODS; p++) {
        int64_t begin = period_begin(p, now_ms);
        if (begin <= l->begins_ms[p])
            continue;
        l->begins_ms[p] = begin;
        for (size_t i = 0; i < l->count; i++) {
            rolled |= l->at[i].used[p] != 0;
            l->at[i].used[p] = 0;
        }
    }
    return rolled;
}

/* --- rows */

void books_done(struct books *l)
{
    free(l->at);
    *l = (struct books){ 0 };
}

struct limit_row *books_row(struct books *l, int64_t owner, const char *model)
{
    for (size_t i = 0; i < l->count; i++)
        if (l->at[i].owner == owner && text_is(l->at[i].model, model))
            return &l->at[i];
    return NULL;
}

struct limit_row *books_set(struct books *l, int64_t owner, const char *model, const struct limit *limit)
{
    struct limit_row *r = books_row(l, owner, model);
    if (limit_is_none(limit)) {
        if (r)
            memmove(r, r + 1, (size_t)(l->at + --l->count - r) * sizeof *r);
        return NULL;
    }
    if (!r) {
        if (l->count == l->room) {
            l->room = l->room ? l->room * 2 : 4;
            l->at = reallocarray(l->at, l->room, sizeof *l->at);
            if (!l->at)
                abort();
        }
        r = &l->at[l->count++];
    }
    *r = (struct limit_row){ .owner = owner, .limit = *limit };
    snprintf(r->model, sizeof r->model, "%s", model);
    return r;
}

static int64_t milli_of(const struct limit_row *r, const struct limit_ask *a)
{
    int64_t milli = 0;
    for (int i = 0; i < a->count; i++)
        if (!r->model[0] || text_is(a->parts[i].model, r->model))
            milli += a->parts[i].milli;
    return milli;
}

static bool concerns(const struct limit_row *r, const struct limit_ask *a)
{
    return (!r->owner || r->owner == a->owner) && (!r->model[0] || milli_of(r, a) > 0);
}

static int64_t reserve(const struct limit_ask *a, int64_t milli, int period)
{
    return milli * (a->bound_ms ? MIN(a->bound_ms, longest[period]) : longest[period]);
}

void limit_row_hold(struct limit_row *r, const struct limit_ask *a, int sign)
{
    int64_t milli = milli_of(r, a);
    if (!concerns(r, a))
        return;
    r->tasks += sign * MAX(a->tasks, 1);
    r->gpu_milli += sign * milli;
    for (int p = 0; p < PERIODS; p++)
        r->reserved[p] += sign * reserve(a, milli, p);
}

void books_hold(struct books *l, const struct limit_ask *a, int sign)
{
    for (size_t i = 0; i < l->count; i++)
        limit_row_hold(&l->at[i], a, sign);
}

void limit_row_use(struct limit_row *r, const struct books *l, const struct limit_ask *a, int64_t from_ms, int64_t to_ms)
{
    for (int p = 0; concerns(r, a) && p < PERIODS; p++)
        r->used[p] += milli_of(r, a) * MAX(to_ms - MAX(from_ms, l->begins_ms[p]), 0);
}

void books_use(struct books *l, const struct limit_ask *a, int64_t from_ms, int64_t to_ms)
{
    for (size_t i = 0; i < l->count; i++)
        limit_row_use(&l->at[i], l, a, from_ms, to_ms);
}

void books_used_day(struct books *l, int64_t owner, const char *flavor, int64_t day_ms, int64_t milli_ms)
{
    struct limit_ask a = { .owner = owner, .count = 1, .parts = { { .milli = milli_ms } } };
    if (!milli_ms)
        return;
    snprintf(a.parts[0].model, sizeof a.parts[0].model, "%.*s", (int)strcspn(flavor, "."), flavor);
    for (size_t i = 0; i < l->count; i++)
        for (int p = 0; concerns(&l->at[i], &a) && p < PERIODS; p++)
            if (day_ms >= l->begins_ms[p])
                l->at[i].used[p] += milli_ms;
}

/* --- what would be too much */

int64_t limit_needs(const struct limit_ask *a, const struct limit_row *r, enum limit_kind k)
{
    int64_t milli = milli_of(r, a);
    if (k == LIMIT_TASKS)
        return MAX(a->tasks, 1);
    if (k == LIMIT_GPUS)
        return milli;
    return milli && !a->bound_ms ? -1 : (reserve(a, milli, k - LIMIT_DAY) + hour_ms - 1) / hour_ms;
}

static bool fits(const struct limit_row *r, const struct limit_ask *a, enum limit_kind k, bool ever)
{
    int64_t most = r->limit.most[k], milli = milli_of(r, a);
    int p = k - LIMIT_DAY;
    if (most < 0)
        return true;
    if (k == LIMIT_TASKS)
        return (ever ? 0 : r->tasks) + MAX(a->tasks, 1) <= most;
    if (k == LIMIT_GPUS)
        return (ever ? 0 : r->gpu_milli) + milli <= most || !milli;
    return !milli
           || (a->bound_ms && (ever ? 0 : r->used[p] + r->reserved[p]) + reserve(a, milli, p) <= most * hour_ms);
}

const struct limit_row *books_refuse(const struct books *l, const struct limit_ask *a, bool ever, enum limit_kind *kind)
{
    for (size_t i = 0; i < l->count; i++)
        for (int k = 0; concerns(&l->at[i], a) && k < LIMIT_KINDS; k++)
            if (!fits(&l->at[i], a, (enum limit_kind)k, ever))
                return *kind = (enum limit_kind)k, &l->at[i];
    return NULL;
}

static const char *amount(char out[static 32], int64_t n, int64_t unit)
{
    if (n % unit)
        snprintf(out, 32, "%lld.%03lld", (long long)(n / unit), (long long)(n % unit));
    else
        snprintf(out, 32, "%lld", (long long)(n / unit));
    return out;
}

void limit_sentence(struct str *out, enum limit_kind k, const char *whose, const char *model, int64_t most, int64_t needs)
{
    char number[32], does[96];
    snprintf(does, sizeof does, kinds[k].does, amount(number, MAX(most, 0), kinds[k].unit));
    str_printf(out, "%s may %s", whose, does);
    if (text_given(model))
        str_printf(out, " of model %s", model);
    if (needs < 0)
        str_text(out, ", and a task without max_duration could use more than that");
    else
        str_printf(out, ", and a task needs %s%s", k >= LIMIT_DAY && k <= LIMIT_MONTH ? "up to " : "",
                   amount(number, needs, kinds[k].unit));
}
