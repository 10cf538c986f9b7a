#include "meter/meter.h"
#include "base/err.h"
#include "base/rand.h"
#include "tap.h"
#include <stdlib.h>

#define DAY INT64_C(86400000)

TEST(nothing_is_metered_that_never_was_ready)
{
    struct interval i = { .gpu_milli = 1000, .started_ms = 5 };
    CHECK(!meter_interval(&i, 0, 1000, OUTCOME_SUCCEEDED) && i.started_ms == 5);
    CHECK(meter_interval(&i, 1000, 1000, OUTCOME_SUCCEEDED) && i.started_ms == 1000 && i.ended_ms == 1000);
}

TEST(clocks_that_disagree_never_make_it_negative_or_absurd)
{
    struct interval i = { 0 };
    CHECK(meter_interval(&i, 2000, 1000, OUTCOME_EXITED) && i.started_ms == 2000 && i.ended_ms == 2000);
    CHECK(meter_interval(&i, 2000, INT64_MAX, OUTCOME_EXITED) && i.ended_ms - i.started_ms == 3660 * DAY);
    CHECK(!meter_interval(&i, -5, 1000, OUTCOME_EXITED));
}

TEST(our_faults_are_not_billed_and_everything_else_is)
{
    for (enum outcome o = OUTCOME_SUCCEEDED; o < OUTCOME_COUNT; o++) {
        struct interval i = { 0 };
        CHECK(meter_interval(&i, 1000, 2000, o) && i.billable == !outcome_is_our_fault(o));
    }
}

TEST(what_to_sum_by_is_read_and_bad_words_are_refused)
{
    unsigned by = 99;
    struct err err = { 0 };
    CHECK(meter_by("project,day", &by, &err) && by == (BY_PROJECT | BY_DAY));
    CHECK(meter_by("user, flavor", &by, &err) && by == (BY_USER | BY_FLAVOR));
    CHECK(meter_by("", &by, &err) && by == 0);
    CHECK(!meter_by("project,week", &by, &err) && by == 0 && text_is(err.field, "by") && strstr(err.text, "week"));
    CHECK(!meter_by(",,", &by, &err) && !meter_by("projects", &by, &err));
}

TEST(an_interval_over_midnight_is_cut_there)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct usage_sum *s = usage_sum_new(mem, BY_DAY, 0, INT64_MAX);
    struct usage_line *l;
    usage_sum_add(s, &(struct interval){ .gpu_milli = 500, .gpu_mib = 10, .cpu_milli = 2000, .mem_mib = 7, .started_ms = 3 * DAY - 1000,
                                         .ended_ms = 4 * DAY + 500, .billable = true });
    CHECK(usage_sum_lines(s, &l) == 3);
    CHECK(l[0].day_ms == 2 * DAY && l[0].ms == 1000 && l[0].attempts == 1 && l[0].gpu_milli_ms == 500000);
    CHECK(l[1].day_ms == 3 * DAY && l[1].ms == DAY && l[1].attempts == 0 && l[1].cpu_milli_ms == 2000 * DAY);
    CHECK(l[2].day_ms == 4 * DAY && l[2].ms == 500 && l[2].gpu_mib_ms == 5000 && l[2].mem_mib_ms == 3500);
}

TEST(only_what_lies_between_from_and_to_counts)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct usage_sum *s = usage_sum_new(mem, 0, 1000, 2000);
    struct usage_line *l;
    struct interval i = { .gpu_milli = 1000, .billable = true, .started_ms = 500, .ended_ms = 1500 };
    usage_sum_add(s, &i);
    i.started_ms = 1900, i.ended_ms = 9000;
    usage_sum_add(s, &i);
    i.started_ms = 2000;                                /* just outside */
    usage_sum_add(s, &i);
    i.started_ms = 10, i.ended_ms = 1000;
    usage_sum_add(s, &i);
    i.started_ms = 1200, i.ended_ms = 1800, i.billable = false;
    usage_sum_add(s, &i);
    CHECK(usage_sum_lines(s, &l) == 1 && l[0].ms == 600 && l[0].attempts == 1 && l[0].gpu_milli_ms == 600000);
    CHECK(usage_sum_lines(usage_sum_new(mem, 0, 0, 1), &l) == 0);
}

TEST(what_is_simulated_stays_apart)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct usage_sum *s = usage_sum_new(mem, BY_PROJECT, 0, INT64_MAX);
    struct usage_line *l;
    struct interval i = { .project_name = "a", .billable = true, .started_ms = 1, .ended_ms = 11 };
    usage_sum_add(s, &i);
    i.simulated = true;
    usage_sum_add(s, &i);
    usage_sum_add(s, &i);
    CHECK(usage_sum_lines(s, &l) == 2 && !l[0].simulated && l[0].ms == 10 && l[1].simulated && l[1].ms == 20);
}

TEST(a_sum_that_would_overflow_stops_at_the_top)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct usage_sum *s = usage_sum_new(mem, 0, 0, INT64_MAX);
    struct usage_line *l;
    struct interval i = { .mem_mib = INT64_MAX / 4, .billable = true, .started_ms = 1, .ended_ms = 1 + 3660 * DAY };
    usage_sum_add(s, &i);
    usage_sum_add(s, &i);
    CHECK(usage_sum_lines(s, &l) == 1 && l[0].mem_mib_ms == INT64_MAX && l[0].ms == 2 * 3660 * DAY);
}

/* Against a model that looks at every step of time by itself; a day of the test is the real one, so time goes in steps of hours. */
enum { HOURS = 96, INTERVALS = 12, NAMES_ = 3 };
static const int64_t hour = 3600000;

struct naive { int64_t attempts, ms, gpu, gpu_mib, cpu, mem; };

static struct naive count_naively(const struct interval *list, const struct usage_line *key, unsigned by, int64_t from, int64_t to)
{
    struct naive n = { 0 };
    for (int i = 0; i < INTERVALS; i++) {
        const struct interval *v = &list[i];
        bool first = true;
        if (!v->billable || v->simulated != key->simulated || ((by & BY_PROJECT) && !text_is(v->project_name, key->project))
            || ((by & BY_USER) && !text_is(v->owner_name, key->user)) || ((by & BY_FLAVOR) && !text_is(v->flavor, key->flavor)))
            continue;
        for (int64_t t = v->started_ms; t < v->ended_ms; t += hour) {
            bool mine = t >= from && t < to && (!(by & BY_DAY) || t / DAY * DAY == key->day_ms);
            n.attempts += mine && first;
            first = false;
            n.ms += mine * hour;
            n.gpu += mine * hour * v->gpu_milli;
            n.gpu_mib += mine * hour * v->gpu_mib;
            n.cpu += mine * hour * v->cpu_milli;
            n.mem += mine * hour * v->mem_mib;
        }
    }
    return n;
}

TEST(sums_equal_those_of_a_model_that_counts_hour_by_hour_and_days_add_up)
{
    static const char *const names[NAMES_] = { "a", "b", "c" };
    for (uint64_t seed = 1; seed <= 300; seed++) {
        AUTO(arena_free) struct arena *mem = arena_new();
        struct rng r = { seed };
        struct interval list[INTERVALS];
        unsigned by = (unsigned)rng_below(&r, 16);
        int64_t from = (int64_t)rng_below(&r, HOURS / 2) * hour, to = from + (int64_t)rng_below(&r, HOURS) * hour;
        struct usage_sum *s = usage_sum_new(mem, by, from, to), *days = usage_sum_new(mem, BY_DAY, from, to), *whole = usage_sum_new(mem, 0, from, to);
        for (int i = 0; i < INTERVALS; i++) {
            int64_t start = 1 + (int64_t)rng_below(&r, HOURS);
            list[i] = (struct interval){ .project_name = names[rng_below(&r, NAMES_)], .owner_name = names[rng_below(&r, NAMES_)], .flavor = names[rng_below(&r, NAMES_)],
                                         .gpu_milli = (int64_t)rng_below(&r, 8000), .gpu_mib = (int64_t)rng_below(&r, 80000), .cpu_milli = (int64_t)rng_below(&r, 64000),
                                         .mem_mib = (int64_t)rng_below(&r, 500000), .started_ms = start * hour,
                                         .ended_ms = (start + 1 + (int64_t)rng_below(&r, HOURS)) * hour, .billable = rng_below(&r, 5) > 0, .simulated = rng_below(&r, 4) == 0 };
            usage_sum_add(s, &list[i]);
            usage_sum_add(days, &list[i]);
            usage_sum_add(whole, &list[i]);
        }
        struct usage_line *l, *d, *w;
        size_t n = usage_sum_lines(s, &l), nd = usage_sum_lines(days, &d), nw = usage_sum_lines(whole, &w);
        bool same = true;
        for (size_t i = 0; i < n; i++) {
            struct naive want = count_naively(list, &l[i], by, from, to);
            same = same && l[i].attempts == want.attempts && l[i].ms == want.ms && l[i].gpu_milli_ms == want.gpu && l[i].gpu_mib_ms == want.gpu_mib
                && l[i].cpu_milli_ms == want.cpu && l[i].mem_mib_ms == want.mem;
            same = same && (i == 0 || strcmp(l[i - 1].project, l[i].project) <= 0);
        }
        int64_t ms = 0, gpu = 0, attempts = 0;
        for (size_t i = 0; i < nd; i++)
            ms += d[i].ms, gpu += d[i].gpu_milli_ms, attempts += d[i].attempts;
        for (size_t i = 0; i < n; i++)
            attempts -= l[i].attempts;
        for (size_t i = 0; i < nw; i++)
            ms -= w[i].ms, gpu -= w[i].gpu_milli_ms;
        CHECK(same && ms == 0 && gpu == 0 && attempts == 0);
    }
}

TEST(many_lines_are_kept_apart_and_sorted)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct usage_sum *s = usage_sum_new(mem, BY_PROJECT | BY_DAY, 0, INT64_MAX);
    struct usage_line *l;
    for (int i = 999; i >= 0; i--) {
        char name[16];
        snprintf(name, sizeof name, "p%03d", i % 100);
        usage_sum_add(s, &(struct interval){ .project_name = name, .started_ms = i / 100 * DAY + 1, .ended_ms = i / 100 * DAY + 2 + i, .billable = true });
    }
    CHECK(usage_sum_lines(s, &l) == 1000);
    for (int i = 0; i < 1000; i++) {
        int project = i / 10, day = i % 10;
        CHECK(atoi(l[i].project + 1) == project && l[i].day_ms == day * DAY && l[i].ms == 1 + day * 100 + project && l[i].attempts == 1);
    }
}
