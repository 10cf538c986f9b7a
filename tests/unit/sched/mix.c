#include "base/rand.h"
#include "kit.h"
#include "sched/sched_internal.h"
#include "tap.h"

static void seen(struct sched *s, const char *gpus, int64_t cpus, int64_t times)
{
    struct sched_event e = kit_job_event(1, 7, 50, gpus, cpus, 10, 1);
    mix_seen(&s->mix, &e.shape, times);
}

static struct sched *with_node(void)
{
    struct sched *s = sched_new();
    struct sched_event e = kit_node_event(&(struct kit_node){ 1, "H200", 4, 1000, 32, 8000, false, false });
    sched_apply(s, &e);
    fleet_settle(&s->fleet);
    return s;
}

TEST(idle_gpu_is_stuck_for_the_tasks_that_cannot_use_it)
{
    AUTO(sched_free) struct sched *s = with_node();
    seen(s, "1", 8, 50);
    seen(s, "0.5", 4, 50);
    mix_settle(&s->mix, &s->fleet);
    struct group g = { .free_mib = 500, .free_milli = 500, .count = 1, .project = 7 };
    CHECK(s->mix.epoch == 1);
    CHECK(worth_of(&s->mix, 32000, &g, 1).stuck == 250 * MICRO);        /* half of the tasks cannot use it */
    CHECK(worth_of(&s->mix, 3999, &g, 1).stuck == 500 * MICRO);         /* nobody can */
    struct group whole = { .free_mib = 1000, .free_milli = 1000, .count = 2 };
    CHECK(worth_of(&s->mix, 16000, &whole, 1).stuck == 0 && worth_of(&s->mix, 16000, &whole, 1).unfed == 0);
    CHECK(worth_of(&s->mix, 8000, &whole, 1).unfed == 1000 * MICRO && worth_of(&s->mix, 0, &whole, 1).unfed == 2000 * MICRO);
}

TEST(a_rest_that_no_share_fits_into_is_lost_and_one_that_a_common_share_fills_is_not)
{
    AUTO(sched_free) struct sched *s = with_node();
    seen(s, "0.47", 4, 99);
    seen(s, "0.81", 4, 99);
    mix_settle(&s->mix, &s->fleet);
    CHECK(s->mix.sliver[190] == 190 * MICRO && s->mix.sliver[530] < 100 * MICRO && s->mix.sliver[0] == 0);
}

TEST(the_same_arrivals_in_another_order_give_the_same_tables)
{
    AUTO(sched_free) struct sched *a = with_node(), *b = with_node();
    struct rng r = { 5 };
    for (int i = 0; i < 3000; i++) {        /* more shapes than are kept */
        struct shape x = { .cpu_milli = 1000 + i % 997, .gpu.milli = 10 + (int64_t)rng_below(&r, 990) };
        mix_seen(&a->mix, &x, 1 + i % 3);
    }
    r.s = 5;
    for (int i = 0; i < 3000; i++) {
        struct shape x = { .cpu_milli = 1000 + i % 997, .gpu.milli = 10 + (int64_t)rng_below(&r, 990) };
        for (int k = 0; k <= i % 3; k++)
            mix_seen(&b->mix, &x, 1);
    }
    CHECK(a->mix.count <= MIX_ROWS && a->mix.seen == b->mix.seen);
    mix_fix(&a->mix, &a->fleet);
    mix_fix(&b->mix, &b->fleet);
    CHECK(memcmp(a->mix.sliver, b->mix.sliver, sizeof a->mix.sliver) == 0 && memcmp(a->mix.fed, b->mix.fed, sizeof a->mix.fed) == 0);
    CHECK(memcmp(a->mix.kinds, b->mix.kinds, sizeof *a->mix.kinds) == 0);
}

TEST(shapes_that_are_nearly_alike_become_one_before_any_is_forgotten)
{
    AUTO(sched_free) struct sched *s = with_node();
    for (int i = 0; i < 8000; i++) {
        struct shape x = { .cpu_milli = 1000 + i * 4, .gpu.milli = i % 4 ? 1000 : 101 + i / 10 };
        mix_seen(&s->mix, &x, 1);
    }
    CHECK(s->mix.coarse > 0 && s->mix.count < MIX_ROWS && s->mix.seen == 8000);
    int64_t whole = 0, most = 0;
    for (size_t i = 0; i < s->mix.count; i++) {
        whole += s->mix.rows[i]->gpu.milli == 1000 ? s->mix.rows[i]->seen : 0;
        most = MAX(most, s->mix.rows[i]->cpu_milli);
    }
    CHECK(whole == 6000 && most >= 32996 && most < 36000);       /* a share never becomes a whole one, and nothing less than it was */
    for (int i = 0; i < 5000; i++) {
        struct shape x = { .cpu_milli = 1000, .gpu.milli = 1000, .gpu.mem_min_mib = i };
        mix_seen(&s->mix, &x, 1);
    }
    CHECK(s->mix.count <= MIX_ROWS);
}

TEST(what_was_long_ago_fades)
{
    AUTO(sched_free) struct sched *s = with_node();
    seen(s, "1", 8, 1000);
    for (int i = 0; i < 60; i++)
        seen(s, "0.5", 4, 10000);
    mix_settle(&s->mix, &s->fleet);
    CHECK(s->mix.seen <= 1 << 17 && s->mix.sliver[500] < 100 * MICRO);
    for (int i = 0; i < 60; i++) {
        seen(s, "1", 8, 10000);
        mix_settle(&s->mix, &s->fleet);
    }
    struct group g = { .free_mib = 500, .free_milli = 500, .count = 1, .project = 7 };
    CHECK(worth_of(&s->mix, 32000, &g, 1).stuck > 490 * MICRO);
}
