#include "kit.h"
#include "sched/sched_internal.h"
#include "tap.h"

static void seen(struct sched *s, const char *gpus, int64_t cpus, int64_t times)
{
    struct sched_event e = kit_job_event(1, 7, 50, gpus, cpus, 10, 1);
    mix_seen(&s->mix, &e.shape, times);
}

static void node(struct sched *s, int64_t id, const char *model, int gpus)
{
    struct sched_event e = kit_node_event(&(struct kit_node){ id, model, gpus, 1000, 64, 8000, false, false });
    sched_apply(s, &e);
}

/* Nodes 1 to 4 have four H200 each, node 5 four L4. */
static struct sched *with_nodes(void)
{
    struct sched *s = sched_new();
    for (int64_t id = 1; id <= 4; id++)
        node(s, id, "H200", 4);
    node(s, 5, "L4", 4);
    fleet_settle(&s->fleet);
    return s;
}

static void settle(struct sched *s)
{
    fleet_settle(&s->fleet);
    s->mix.settle_at = 0;
    mix_settle(&s->mix, &s->fleet);
}

static int64_t needed(const struct sched *s, int64_t node, int free_gpus) /* of whole GPUs of that node */
{
    struct group g = { .kind = fleet_node(&s->fleet, node)->gpus[0].kind, .free_mib = 1000, .free_milli = 1000, .count = (uint16_t)free_gpus };
    return worth_of(&s->mix, 64000, &g, 1).needed;
}

static void take(struct sched *s, int64_t id, int gpus)
{
    struct held_gpu held[SCHED_GPUS];
    for (int i = 0; i < gpus; i++)
        held[i] = (struct held_gpu){ i, 1000, 1000, 0 };
    fleet_take(&s->fleet, fleet_node(&s->fleet, id), 7, 1000, 10, held, gpus);
}

TEST(a_model_that_is_named_more_than_there_is_of_it_is_dear)
{
    AUTO(sched_free) struct sched *s = with_nodes();
    seen(s, "1", 8, 6000);
    seen(s, "L4:1", 8, 4000);
    settle(s);
    CHECK(needed(s, 5, 1) > 900 * MICRO && needed(s, 1, 1) < 100 * MICRO);
    CHECK(needed(s, 5, 2) == 2 * needed(s, 5, 1));
}

TEST(a_model_that_few_name_is_dear_only_when_little_of_it_is_free)
{
    AUTO(sched_free) struct sched *s = with_nodes();
    seen(s, "1", 8, 9700);
    seen(s, "L4:1", 8, 300);
    settle(s);
    int64_t idle = needed(s, 5, 1);
    CHECK(idle < 150 * MICRO);
    take(s, 5, 3);
    settle(s);
    CHECK(needed(s, 5, 1) > 4 * idle);
}

TEST(as_long_as_nobody_is_known_what_is_used_up_first_is_dear)
{
    AUTO(sched_free) struct sched *s = with_nodes();
    seen(s, "1", 8, 16);
    settle(s);
    int64_t all_idle = needed(s, 5, 1) - needed(s, 1, 1);
    CHECK(all_idle < 50 * MICRO && all_idle > -50 * MICRO);
    take(s, 5, 3);
    settle(s);
    CHECK(needed(s, 5, 1) > 2 * needed(s, 1, 1));
    seen(s, "1", 8, 16000);
    settle(s);
    CHECK(needed(s, 5, 1) < 250 * MICRO);
}

TEST(nodes_stay_whole_for_tasks_of_several_gpus_when_few_are_left)
{
    AUTO(sched_free) struct sched *s = with_nodes();
    seen(s, "1", 8, 8000);
    seen(s, "4", 32, 500);
    settle(s);
    int64_t broken = needed(s, 1, 4) - needed(s, 1, 3);
    CHECK(broken > needed(s, 1, 3) - needed(s, 1, 2));
    for (int64_t id = 2; id <= 5; id++)
        take(s, id, 1);
    settle(s);
    CHECK(needed(s, 1, 4) - needed(s, 1, 3) > 4 * broken);
}

TEST(as_long_as_nobody_is_known_the_few_large_nodes_are_kept_for_those_who_need_all_of_one)
{
    AUTO(sched_free) struct sched *s = sched_new();
    for (int64_t id = 1; id <= 20; id++)
        node(s, id, "L4", 2);
    node(s, 21, "L4", 4);
    seen(s, "1", 8, 16);
    settle(s);
    int64_t large = needed(s, 21, 4) - needed(s, 21, 3), small = needed(s, 1, 2) - needed(s, 1, 1);
    CHECK(large > 50 * MICRO && small < 5 * MICRO);
    seen(s, "1", 8, 60000);
    settle(s);
    CHECK(needed(s, 21, 4) - needed(s, 21, 3) < 5 * MICRO);
}

TEST(as_long_as_nobody_is_known_the_node_with_the_most_cpus_is_kept_for_those_who_need_all_of_it)
{
    AUTO(sched_free) struct sched *s = sched_new();
    for (int64_t id = 1; id <= 20; id++)
        node(s, id, "L4", 4);
    struct sched_event e = kit_node_event(&(struct kit_node){ 21, "L4", 4, 1000, 128, 8000, false, false });
    sched_apply(s, &e);
    seen(s, "1", 8, 16);
    settle(s);
    struct group g = { .kind = fleet_node(&s->fleet, 21)->gpus[0].kind, .free_mib = 1000, .free_milli = 1000, .count = 4 };
    int64_t large = worth_of(&s->mix, 128000, &g, 1).needed;
    CHECK(large > worth_of(&s->mix, 64000, &g, 1).needed + 50 * MICRO && worth_of(&s->mix, 119000, &g, 1).needed == worth_of(&s->mix, 64000, &g, 1).needed);
}

TEST(tables_are_made_anew_when_much_of_a_kind_is_gone_or_back_and_not_for_a_little)
{
    AUTO(sched_free) struct sched *s = with_nodes();
    seen(s, "1", 8, 9700);
    seen(s, "L4:1", 8, 300);
    settle(s);
    uint32_t epoch = s->mix.epoch;
    int64_t idle = needed(s, 5, 1);
    seen(s, "1", 8, 200);               /* enough to look, too little to count anew */
    take(s, 1, 1);
    fleet_settle(&s->fleet);
    mix_settle(&s->mix, &s->fleet);
    CHECK(s->mix.epoch == epoch);
    seen(s, "1", 8, 200);
    take(s, 5, 3);
    fleet_settle(&s->fleet);
    mix_settle(&s->mix, &s->fleet);
    CHECK(s->mix.epoch == epoch + 1 && needed(s, 5, 1) > 4 * idle);
    mix_settle(&s->mix, &s->fleet);
    CHECK(s->mix.epoch == epoch + 1);
}

TEST(in_a_fleet_of_one_model_no_model_is_dear)
{
    AUTO(sched_free) struct sched *s = sched_new();
    node(s, 1, "H200", 4);
    seen(s, "H200:1", 8, 500);
    seen(s, "L4:1", 8, 500);
    settle(s);
    CHECK(s->mix.epoch == 1 && needed(s, 1, 3) == 0);
}
