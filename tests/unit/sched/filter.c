#include "sched/filter.h"
#include "kit.h"
#include "sched/sched_internal.h"
#include "tap.h"

TEST(every_filter_has_a_row_and_stands_with_those_of_its_kind)
{
    for (int i = 0; i < FILTER_COUNT; i++) {
        CHECK(text_given(filters[i].name) && text_given(filters[i].text));
        for (int k = 0; k < i; k++)
            CHECK(!text_is(filters[i].name, filters[k].name));
        CHECK((filters[i].about == ABOUT_STATE) == ((FILTERS_STATE & FILTER_BIT(i)) != 0));
        CHECK((filters[i].about == ABOUT_BUILD) == ((FILTERS_BUILD & FILTER_BIT(i)) != 0));
    }
}

static uint32_t seen(struct sched *s, const char *gpus, int64_t cpus, int64_t mem_mib, int64_t only, bool host)
{
    struct sched_event e = kit_job_event(1, 7, 50, gpus, cpus, mem_mib, 1);
    struct sight v;
    e.only_node = only, e.wants_host_image = host;
    struct class *c = class_like(s, &e);
    filter_see(&s->fleet, c, fleet_node(&s->fleet, 1), NULL, &v);
    CHECK(node_could(&s->fleet, fleet_node(&s->fleet, 1), c) == !(v.refused & FILTERS_BUILD));
    class_leave(s, c);
    return v.refused;
}

TEST(each_filter_is_told_by_its_own_name)
{
    AUTO(sched_free) struct sched *s = sched_new();
    struct sched_event e = kit_node_event(&(struct kit_node){ 1, "NVIDIA H200", 4, 80000, 16, 64000, false, false });
    e.gpus[3].healthy = false;
    sched_apply(s, &e);
    struct node *n = fleet_node(&s->fleet, 1);
    CHECK(!seen(s, "3", 16, 64000, 1, false) && !seen(s, "0.5", 1, 1, 0, false));
    CHECK(seen(s, "5", 1, 1, 0, false) == FILTER_BIT(FILTER_GPUS) && seen(s, "4", 1, 1, 0, false) == FILTER_BIT(FILTER_HEALTH));
    CHECK(seen(s, "5", 0, 0, 0, false) == FILTER_BIT(FILTER_GPUS));
    CHECK(seen(s, "A100:1", 1, 1, 0, false) == FILTER_BIT(FILTER_MODEL) && seen(s, "24GB..60GB:1", 1, 1, 0, false) == FILTER_BIT(FILTER_GPU_MEMORY));
    CHECK(seen(s, "1", 17, 1, 0, false) == FILTER_BIT(FILTER_CPUS) && seen(s, "1", 1, 64001, 0, false) == FILTER_BIT(FILTER_MEMORY));
    CHECK(seen(s, "1", 1, 1, 2, true) == (FILTER_BIT(FILTER_NODE) | FILTER_BIT(FILTER_IMAGE)));
    fleet_take(&s->fleet, n, 8, 10000, 60000, (struct held_gpu[]){ { 0, 1000, 80000 }, { 1, 300, 24000 }, { 2, 300, 24000 } }, 3);
    CHECK(seen(s, "1", 7, 5000, 0, false) == (FILTER_BIT(FILTER_GPUS_TAKEN) | FILTER_BIT(FILTER_CPUS_TAKEN) | FILTER_BIT(FILTER_MEMORY_TAKEN)));
    CHECK(seen(s, "0.5", 1, 1, 0, false) == FILTER_BIT(FILTER_NEIGHBOURS) && seen(s, "0.8", 1, 1, 0, false) == FILTER_BIT(FILTER_GPUS_TAKEN));
    e.usable = false, e.shut = FILTER_CORDONED;
    sched_apply(s, &e);
    CHECK(seen(s, "1", 1, 1, 0, false) == FILTER_BIT(FILTER_CORDONED) && s->fleet.shut[FILTER_CORDONED] == 1);
    e.shut = FILTER_AWAY;
    sched_apply(s, &e);
    CHECK(s->fleet.shut[FILTER_CORDONED] == 0 && s->fleet.shut[FILTER_AWAY] == 1);
    sched_apply(s, &(struct sched_event){ .kind = SCHED_NODE_GONE, .node = 1 });
    CHECK(s->fleet.shut[FILTER_AWAY] == 0);
}
