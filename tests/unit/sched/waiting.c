#include "base/rand.h"
#include "sched/sched_internal.h"
#include "tap.h"

static void waiting_end_auto(struct waiting *w) { waiting_done(w); }

TEST(an_array_is_one_range_until_its_tasks_are_given_out)
{
    AUTO(waiting_end) struct waiting w = { 0 };
    int64_t before, task, wake = INT64_MAX;
    size_t from = 0;
    waiting_add(&w, 0, 999999, 0);
    CHECK(w.count == 1 && waiting_ready(&w, 0, &from, &wake, &task) && task == 0);
    for (int i = 0; i < 1000; i++)
        CHECK(waiting_take(&w, i, &before) && before == 0);
    CHECK(w.count == 1 && waiting_ranges(&w)[0].first == 1000 && !waiting_take(&w, 5, &before));
    waiting_add(&w, 999, 999, 0);
    CHECK(w.count == 1 && waiting_ranges(&w)[0].first == 999);
    CHECK(waiting_take(&w, 5000, &before) && w.count == 2);
    waiting_add(&w, 5000, 5000, 0);
    CHECK(w.count == 1);
    waiting_add(&w, 7, 6, 0);
    CHECK(w.count == 1);
}

TEST(a_pause_delays_its_task_and_no_other)
{
    AUTO(waiting_end) struct waiting w = { 0 };
    int64_t task, wake = INT64_MAX;
    size_t from = 0;
    waiting_add(&w, 0, 0, 500);
    waiting_add(&w, 1, 1, 300);
    waiting_add(&w, 2, 2, 0);
    CHECK(waiting_ready(&w, 100, &from, &wake, &task) && task == 2 && wake == 300);
    from = 0;
    CHECK(waiting_ready(&w, 300, &from, &wake, &task) && task == 1);
    from = 0;
    CHECK(waiting_ready(&w, 500, &from, &wake, &task) && task == 0);
}

/* Against a plain array of all tasks. */
TEST(ranges_say_the_same_as_a_plain_list)
{
    enum { TASKS = 40 };
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct rng rng = { seed };
        AUTO(waiting_end) struct waiting w = { 0 };
        int64_t plain[TASKS];           /* not before, -1: does not wait */
        for (int i = 0; i < TASKS; i++)
            plain[i] = -1;
        bool same = true;
        for (int step = 0; step < 200; step++) {
            int64_t t = (int64_t)rng_below(&rng, TASKS), when = (int64_t)rng_below(&rng, 3) * 100, got = -1, now = (int64_t)rng_below(&rng, 300);
            bool taken = waiting_take(&w, t, &got);
            same = same && taken == (plain[t] >= 0) && got == plain[t];
            plain[t] = -1;
            if (rng_below(&rng, 3)) {
                waiting_add(&w, t, t, when);
                plain[t] = when;
            }
            int64_t want = -1, task = -1, wake = INT64_MAX;
            for (int i = TASKS - 1; i >= 0; i--)
                want = plain[i] >= 0 && plain[i] <= now ? i : want;
            size_t from = 0;
            bool ready = waiting_ready(&w, now, &from, &wake, &task);
            same = same && ready == (want >= 0) && task == want;
            for (size_t i = 1; i < w.count; i++) {
                const struct range *r = &waiting_ranges(&w)[i];
                same = same && r[-1].last < r->first && (r[-1].last + 1 < r->first || r[-1].not_before_ms != r->not_before_ms);
            }
        }
        CHECK(same);
    }
}
