/* The fixed-point decay against the same in floating point, which only tests may use. */
#include "sched/share.h"
#include "base/rand.h"
#include "tap.h"
#include <math.h>

enum { HALF = 86400 * 1000 };
static const int64_t start = INT64_C(1790000000000);

static double near(double a, double b) { return fabs(a - b) <= 1e-6 * fmax(fabs(a), fabs(b)) + 1; }

TEST(usage_halves_with_every_half_life_to_a_millionth)
{
    struct share_clock k;
    share_start(&k, HALF);
    k.capacity[SHARE_GPU] = 8000;
    share_time(&k, start);
    struct share a = { .x = k.x, .epoch = k.epoch };
    const int64_t all[SHARE_COUNT] = { 8000 }, none[SHARE_COUNT] = { 0 };
    share_time(&k, start + HALF);
    share_settle(&k, &a, all);
    CHECK(near((double)share_ppm(&k, &a), 500000));         /* half of all there ever was */
    for (int i = 2; i < 60; i++) {                          /* over several epochs */
        share_time(&k, start + i * (int64_t)HALF);
        share_settle(&k, &a, none);
        CHECK(near((double)share_ppm(&k, &a), 1000000 * pow(0.5, i)));
    }
}

TEST(an_account_that_holds_all_for_ever_comes_to_all)
{
    struct share_clock k;
    share_start(&k, HALF);
    k.capacity[SHARE_CPU] = 64000;
    share_time(&k, start);
    struct share a = { .x = k.x, .epoch = k.epoch };
    const int64_t all[SHARE_COUNT] = { 0, 64000 };
    for (int i = 1; i < 40; i++) {
        share_time(&k, start + i * (int64_t)HALF);
        share_settle(&k, &a, all);
    }
    CHECK(share_ppm(&k, &a) > 999990 && share_ppm(&k, &a) <= 1000000);
}

TEST(how_often_it_is_settled_does_not_matter)
{
    struct rng r = { 3 };
    for (int round = 0; round < 200; round++) {
        struct share_clock k;
        share_start(&k, HALF);
        k.capacity[SHARE_GPU] = 8000;
        int64_t at = start + (int64_t)rng_below(&r, HALF);
        share_time(&k, at);
        struct share often = { .x = k.x, .epoch = k.epoch }, once = often, late = often;
        const int64_t held[SHARE_COUNT] = { 1 + (int64_t)rng_below(&r, 8000) };
        int64_t from = at;
        while (at < from + HALF / 2) {
            at += 1 + (int64_t)rng_below(&r, HALF / 50);
            share_time(&k, at);
            share_settle(&k, &often, held);
        }
        share_settle(&k, &once, held);
        share_add(&k, &late, held, from, at);
        CHECK(often.used[SHARE_GPU] == once.used[SHARE_GPU] || k.epoch != once.epoch);
        CHECK(near((double)late.used[SHARE_GPU], (double)once.used[SHARE_GPU]));
        CHECK(share_key(&k, &once, held, 1000) >= share_key(&k, &once, held, 2000) * 2);
    }
}

TEST(time_that_goes_back_and_a_cloud_without_nodes_are_no_harm)
{
    struct share_clock k;
    share_start(&k, HALF);
    CHECK(share_time(&k, start));
    CHECK(!share_time(&k, start - 5000) && k.now_ms == start);
    CHECK(share_time(&k, start + 900 * (int64_t)HALF));
    struct share ahead = { .x = k.x, .epoch = k.epoch };
    CHECK(share_time(&k, start) && k.now_ms == start);      /* a clock that was set right */
    const int64_t held[SHARE_COUNT] = { 1000, 1000, 1 };
    share_settle(&k, &ahead, held);
    share_time(&k, start + HALF);
    share_settle(&k, &ahead, held);
    CHECK(ahead.used[SHARE_GPU] > 0 && ahead.x == k.x);
    struct share a = { 0 };
    share_settle(&k, &a, held);
    CHECK(share_key(&k, &a, held, 1000) == 0 && share_ppm(&k, &a) == 0);
    k.capacity[SHARE_GPU] = 1;
    for (int i = 0; i < 100; i++)
        share_add(&k, &a, (const int64_t[SHARE_COUNT]){ INT64_C(1) << 40 }, 0, start);
    CHECK(share_key(&k, &a, held, 1) == INT64_MAX);        /* absurd, but never below nothing */
}
