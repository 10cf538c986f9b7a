#include "sched/sched_internal.h"
#include "tap.h"

static struct node small(struct gpu gpus[static 2])
{
    for (int i = 0; i < 2; i++)
        gpus[i] = (struct gpu){ .is = { .index = i ? 9 : 4, .mem_mib = 1000, .model = "H200", .healthy = true } };
    return (struct node){ .id = 1, .usable = true, .cpu_milli = 4000, .mem_mib = 8000, .gpu_count = 2, .gpus = gpus };
}

TEST(a_task_fits_to_the_last_thousandth_and_not_one_more)
{
    struct project p = { .id = 7, .quota = QUOTA_NONE };
    struct gpu gpus[2];
    struct node n = small(gpus);
    struct held_gpu g[SCHED_GPUS];
    int count;
    struct class c = { .project = &p, .shape = { .cpu_milli = 4000, .mem_mib = 8000, .gpu.milli = 2000 } };
    CHECK(node_fits(&n, &c, g, &count) && count == 2 && g[0].index == 4 && g[1].index == 9 && g[1].milli == 1000 && g[1].mem_mib == 1000);
    n.cpu_used = 1;
    CHECK(!node_fits(&n, &c, g, &count) && node_could(&n, &c));
    n.cpu_used = 0, n.mem_used = 1;
    CHECK(!node_fits(&n, &c, g, &count));
    c.shape.cpu_milli = 4001;
    CHECK(!node_could(&n, &c));
    n = small(gpus);
    c.shape = (struct shape){ .gpu.milli = 3000 };
    CHECK(!node_could(&n, &c) && !node_fits(&n, &c, g, &count));
}

TEST(a_share_goes_where_its_project_already_is)
{
    struct project p = { .id = 7, .quota = QUOTA_NONE };
    struct gpu gpus[2];
    struct node n = small(gpus);
    struct held_gpu g[SCHED_GPUS];
    int count;
    struct class c = { .project = &p, .shape.gpu.milli = 400 };
    n.gpus[1].holders = 1, n.gpus[1].used_milli = 600, n.gpus[1].used_mib = 600, n.gpus[1].project = 7;
    CHECK(node_fits(&n, &c, g, &count) && count == 1 && g[0].index == 9 && g[0].mem_mib == 400);
    n.gpus[1].used_milli = 601;
    CHECK(node_fits(&n, &c, g, &count) && g[0].index == 4);
    n.gpus[0].holders = 1, n.gpus[0].project = 8;
    CHECK(!node_fits(&n, &c, g, &count));
}

TEST(a_quota_counts_what_is_held)
{
    struct project p = { .id = 7, .quota = { 1000, 2000, 300, -1 }, .gpu_held = 500, .cpu_held = 1000, .mem_held = 200 };
    struct class c = { .project = &p, .shape = { .cpu_milli = 1000, .mem_mib = 100, .gpu.milli = 500 } };
    CHECK(quota_fits(&c));
    p.gpu_held = 501;
    CHECK(!quota_fits(&c));
    p.gpu_held = 500, p.cpu_held = 1001;
    CHECK(!quota_fits(&c));
    p.cpu_held = 1000, p.mem_held = 201;
    CHECK(!quota_fits(&c));
    p.quota = QUOTA_NONE;
    CHECK(quota_fits(&c));
}
