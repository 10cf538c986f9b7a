#include "agent/shares.h"
#include "tap.h"

#define GPU "GPU-1"
static const struct order_gpu quarter = { .index = 1, .uuid = GPU, .milli = 250, .mem_mib = 35942 };

static bool over(int64_t mem_mib, int64_t processes, enum outcome *as, char why[static 240])
{
    struct order_gpu gpus[] = { { .uuid = "GPU-0", .milli = 1000 }, quarter };
    struct shares s = shares_of_order(&(struct objects){ gpus, 2 });
    struct live_task on_other[] = { { .attempt = 7, .mem_mib = 140000, .processes = 99 } };
    struct live_task tasks[] = { { .attempt = 8, .mem_mib = 140000, .processes = 99 }, { .attempt = 7, .mem_mib = mem_mib, .processes = processes } };
    struct gpu_live held[] = { { .uuid = "GPU-0", .tasks = { on_other, 1 } }, { .uuid = GPU, .tasks = { tasks, 2 } } };
    bool is = shares_over(&s, 7, &(struct objects){ held, 2 }, as, why);
    shares_free(&s);
    return is;
}

TEST(only_a_part_of_a_real_gpu_without_a_wall_of_its_own_is_a_share)
{
    CHECK(share_is(&quarter));
    CHECK(!share_is(&(struct order_gpu){ .uuid = GPU, .milli = 1000 }));
    CHECK(!share_is(&(struct order_gpu){ .uuid = GPU, .milli = 250, .simulated = true }));
    CHECK(!share_is(&(struct order_gpu){ .uuid = GPU, .milli = 143, .mig = "1g.18gb" }));
}

TEST(who_holds_more_memory_than_its_share_is_ended_and_told_so)
{
    enum outcome as = OUTCOME_NONE;
    char why[240] = "";
    CHECK(!over(35942, 12, &as, why) && !*why);
    CHECK(over(35943, 1, &as, why) && as == OUTCOME_OUT_OF_MEMORY && strstr(why, "35943 MiB") && strstr(why, "35942 MiB"));
}

TEST(a_task_has_its_part_of_the_processes_that_mps_serves)
{
    enum outcome as = OUTCOME_NONE;
    char why[240] = "";
    CHECK(!over(1, 12, &as, why));
    CHECK(over(1, 13, &as, why) && as == OUTCOME_SIGNALED && strstr(why, "13 of its processes"));
    CHECK(share_clients(&(struct share){ .milli = 1 }) == 1);
}

TEST(shares_are_found_again_in_a_plan)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct order_gpu gpus[] = { quarter };
    struct shares s = shares_of_order(&(struct objects){ gpus, 1 });
    struct objects plan = shares_plan(&s, mem);
    struct shares again = shares_of_plan(&plan);
    CHECK(again.count == 1 && text_is(again.at[0].uuid, GPU) && again.at[0].milli == 250 && again.at[0].mem_mib == 35942);
    shares_free(&s);
    shares_free(&again);
    s = shares_of_order(&(struct objects){ gpus, 0 });
    CHECK(s.count == 0 && !s.at);
}

TEST(who_comes_around_mps_is_counted_for_the_task_that_it_is_of)
{
    struct order_gpu gpus[] = { quarter };
    struct shares s = shares_of_order(&(struct objects){ gpus, 1 });
    struct live_task tasks[] = { { .attempt = 8, .outside = 5 }, { .attempt = 7, .processes = 3, .outside = 1 } };
    struct gpu_live held[] = { { .uuid = "GPU-0", .tasks = { tasks, 2 } }, { .uuid = GPU, .tasks = { tasks, 2 } } };
    CHECK(shares_outside(&s, 7, &(struct objects){ held, 2 }) == 1 && shares_outside(&s, 8, &(struct objects){ held, 1 }) == 0 && shares_outside(&s, 9, &(struct objects){ held, 2 }) == 0);
    shares_free(&s);
}
