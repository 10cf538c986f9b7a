/* The books against the plainest truth: what ran from when to when. */
#include "base/rand.h"
#include "base/str.h"
#include "base/when.h"
#include "model/limit.h"
#include "tap.h"

enum { OWNERS = 3, RUNS = 60, STEPS = 400 };
static const int64_t hour = 3600 * 1000;
struct run { bool live, over; struct limit_ask ask; int64_t from_ms, to_ms; };

static int64_t ms_of(const char *text)
{
    int64_t ms = 0;
    CHECK(when_parse(text, &ms));
    return ms;
}

TEST(periods_begin_at_midnight_on_monday_and_on_the_first)
{
    static const struct { const char *now, *begins[PERIODS]; } cases[] = {
        { "2026-11-15T13:22:41Z", { "2026-11-15T00:00:00Z", "2026-11-09T00:00:00Z", "2026-11-01T00:00:00Z" } },
        { "2026-11-16T00:00:00Z", { "2026-11-16T00:00:00Z", "2026-11-16T00:00:00Z", "2026-11-01T00:00:00Z" } },
        { "2028-02-29T23:59:59Z", { "2028-02-29T00:00:00Z", "2028-02-28T00:00:00Z", "2028-02-01T00:00:00Z" } },
        { "2100-03-01T00:00:00Z", { "2100-03-01T00:00:00Z", "2100-03-01T00:00:00Z", "2100-03-01T00:00:00Z" } },
        { "2027-01-01T00:00:01Z", { "2027-01-01T00:00:00Z", "2026-12-28T00:00:00Z", "2027-01-01T00:00:00Z" } },
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        for (int p = 0; p < PERIODS; p++)
            CHECK(period_begin(p, ms_of(cases[i].now)) == ms_of(cases[i].begins[p]));
}

static bool matches(const struct limit_row *r, const struct limit_ask *a, int64_t *milli)
{
    *milli = 0;
    for (int i = 0; i < a->count; i++)
        if (!r->model[0] || text_is(r->model, a->parts[i].model))
            *milli += a->parts[i].milli;
    return (!r->owner || r->owner == a->owner) && (!r->model[0] || *milli);
}

/* What is used in the period that `now` is in, by everything that ran or runs. */
static bool holds(const struct limit_row *r, const struct run *runs, int64_t now)
{
    int64_t tasks = 0, gpus = 0, used[PERIODS] = { 0 }, milli;
    for (int i = 0; i < RUNS; i++) {
        if (!(runs[i].live || runs[i].over) || !matches(r, &runs[i].ask, &milli))
            continue;
        tasks += runs[i].live;
        gpus += runs[i].live ? milli : 0;
        for (int p = 0; p < PERIODS; p++) {
            int64_t from = MAX(runs[i].from_ms, period_begin(p, now)), to = runs[i].live ? now : runs[i].to_ms;
            used[p] += milli * MAX(to - from, 0);
        }
    }
    const int64_t *most = r->limit.most;
    bool ok = (most[LIMIT_TASKS] < 0 || tasks <= most[LIMIT_TASKS]) && (most[LIMIT_GPUS] < 0 || gpus <= most[LIMIT_GPUS])
              && r->tasks == tasks && r->gpu_milli == gpus;
    for (int p = 0; p < PERIODS; p++)
        ok = ok && (most[LIMIT_DAY + p] < 0 || used[p] <= most[LIMIT_DAY + p] * hour);
    return ok;
}

static struct limit_ask some_ask(struct rng *r)
{
    static const char *const models[] = { "NVIDIA H200", "NVIDIA A100-SXM4-40GB", "NVIDIA L4" };
    struct limit_ask a = { .owner = 1 + (int64_t)rng_below(r, OWNERS), .bound_ms = rng_below(r, 10) ? 1 + (int64_t)rng_below(r, 60) * hour : 0 };
    int64_t milli = rng_below(r, 4) ? 1000 * (1 + (int64_t)rng_below(r, 4)) : (int64_t)rng_below(r, 1000);
    if (milli)
        limit_ask_add(&a, models[rng_below(r, COUNT(models))], milli);
    return a;
}

static void end_some(struct books *l, struct run *runs, int64_t now, struct rng *r)
{
    for (int i = 0; i < RUNS; i++) {
        struct run *x = &runs[i];
        bool must = x->live && x->ask.bound_ms && now - x->from_ms >= x->ask.bound_ms;
        if (!x->live || (!must && rng_below(r, 20)))
            continue;
        x->to_ms = must ? x->from_ms + x->ask.bound_ms : now;
        x->live = false;
        x->over = true;
        books_hold(l, &x->ask, -1);
        books_use(l, &x->ask, x->from_ms, x->to_ms);
    }
}

TEST(no_limit_is_exceeded_at_any_instant)
{
    int started = 0, refused = 0;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct rng r = { seed };
        struct books l = { 0 };
        struct run runs[RUNS] = { 0 };
        int64_t now = ms_of("2026-11-15T13:22:41Z") + (int64_t)rng_below(&r, 40) * 24 * hour;
        bool ok = true;
        for (int i = 0; i < 4; i++) {
            struct limit some = LIMIT_NONE;
            some.most[rng_below(&r, LIMIT_KINDS)] = (int64_t)rng_below(&r, 20) * (i % 2 ? 1000 : 9000);
            some.most[LIMIT_TASKS] = rng_below(&r, 2) ? -1 : 1 + (int64_t)rng_below(&r, 6);
            books_set(&l, (int64_t)rng_below(&r, OWNERS + 1), rng_below(&r, 2) ? "" : "h200", &some);
        }
        books_roll(&l, now);
        for (int step = 0; step < STEPS && ok; step++) {
            now += (int64_t)rng_below(&r, 3 * (uint64_t)hour);
            books_roll(&l, now);
            end_some(&l, runs, now, &r);
            struct run *x = &runs[rng_below(&r, RUNS)];
            struct limit_ask a = some_ask(&r);
            enum limit_kind kind;
            const struct limit_row *why = books_refuse(&l, &a, false, &kind);
            refused += why != NULL;
            ok = ok && (!books_refuse(&l, &a, true, &kind) || why);    /* what could never run does not run now */
            if (x->live || x->over || why)
                continue;
            *x = (struct run){ .live = true, .ask = a, .from_ms = now };
            books_hold(&l, &a, 1);
            started++;
            for (size_t i = 0; i < l.count; i++)
                ok = ok && holds(&l.at[i], runs, now);
        }
        for (size_t i = 0; i < l.count; i++)
            ok = ok && holds(&l.at[i], runs, now);
        if (!ok)
            printf("# seed %llu\n", (unsigned long long)seed);
        CHECK(ok);
        books_done(&l);
    }
    CHECK(started > 1000 && refused > 1000);
}

TEST(a_limit_says_whose_it_is_how_much_and_what_is_needed)
{
    AUTO(str_done) struct str out = { 0 };
    limit_sentence(&out, LIMIT_GPUS, "user ada of project vision", "h200", 4000, 8500);
    CHECK(text_is(out.at, "user ada of project vision may hold 4 GPUs at once of model h200, and a task needs 8.500"));
    out.len = 0;
    limit_sentence(&out, LIMIT_DAY, "project vision", "", 10500, -1);
    CHECK(text_is(out.at, "project vision may use 10.500 GPU-hours a day, and a task without max_duration could use more than that"));
    out.len = 0;
    limit_sentence(&out, LIMIT_TASKS, "project vision", NULL, 3, 1);
    CHECK(text_is(out.at, "project vision may run 3 tasks at once, and a task needs 1"));
}

TEST(a_limit_of_nothing_is_no_row_and_a_model_has_one_name)
{
    struct books l = { 0 };
    struct limit none = LIMIT_NONE, some = none;
    char name[MODEL_NAME];
    some.most[LIMIT_TASKS] = 2;
    CHECK(!books_set(&l, 0, "", &none) && !l.count);
    CHECK(books_set(&l, 0, "", &some) && books_set(&l, 7, "h200", &some) && l.count == 2);
    CHECK(books_row(&l, 7, "h200") && !books_row(&l, 7, ""));
    CHECK(!books_set(&l, 0, "", &none) && l.count == 1 && l.at[0].owner == 7);
    model_name("NVIDIA H200", name);
    CHECK(text_is(name, "h200"));
    model_name("h200", name);
    CHECK(text_is(name, "h200"));
    model_name("", name);
    CHECK(text_is(name, "gpu"));
    books_done(&l);
}
