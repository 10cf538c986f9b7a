#include "model/hold.h"
#include "tap.h"

TEST(a_task_goes_to_sleep_and_comes_back_by_these_steps_and_no_others)
{
    static const struct { enum hold_news on; enum hold_step to; } way[] = {
        { HOLD_SUSPEND, STEP_SUSPENDING }, { HOLD_IS_SUSPENDED, STEP_SUSPENDED }, { HOLD_RESUME, STEP_WAITS },
        { HOLD_HAS_GPUS, STEP_RESUMING },  { HOLD_RUNS, STEP_NONE },
    };
    enum hold_step step = STEP_NONE;
    for (size_t i = 0; i < COUNT(way); i++)
        CHECK(hold_next(&step, way[i].on) && step == way[i].to);
    CHECK(!hold_next(&step, HOLD_RUNS) && !hold_next(&step, HOLD_RESUME) && !hold_next(&step, HOLD_IS_SUSPENDED) && step == STEP_NONE);
    step = STEP_SUSPENDED;
    CHECK(!hold_next(&step, HOLD_SUSPEND) && !hold_next(&step, HOLD_RUNS) && step == STEP_SUSPENDED); /* a node cannot bring it back by itself */
}

TEST(from_every_step_there_is_a_way_to_run)
{
    for (enum hold_step from = STEP_SUSPENDING; from < HOLD_STEP_COUNT; from++) {
        enum hold_step step = from;
        (void)hold_next(&step, HOLD_RESUME);
        (void)hold_next(&step, HOLD_HAS_GPUS);
        (void)hold_next(&step, HOLD_RUNS);
        CHECK(step == STEP_NONE);
    }
}

TEST(only_those_without_a_gpu_are_away)
{
    CHECK(hold_is_away(STEP_SUSPENDED) && hold_is_away(STEP_WAITS) && !hold_is_away(STEP_SUSPENDING) && !hold_is_away(STEP_RESUMING));
    CHECK(text_is(hold_name(STEP_WAITS), "suspended") && text_is(hold_name(STEP_NONE), "") && text_is(hold_name((enum hold_step)99), ""));
}

TEST(who_cannot_be_suspended_is_told_why)
{
    struct gpu_info gpu = { .index = 1, .vendor = "nvidia", .driver = "580.159.04" };
    const struct node_info node = { .gpus = { &gpu, 1 } };
    struct order_gpu held = { .index = 1, .milli = 1000 };
    CHECK(!hold_refused(&node, &held, 1, false));
    CHECK(strstr(hold_refused(&node, &held, 1, true), "gang"));
    CHECK(strstr(hold_refused(&node, &held, 0, false), "no GPU"));
    gpu.driver = "550.54.15";
    CHECK(strstr(hold_refused(&node, &held, 1, false), "570"));
    gpu.vendor = "amd";
    CHECK(strstr(hold_refused(&node, &held, 1, false), "NVIDIA"));
    gpu.simulated = true;
    CHECK(!hold_refused(&node, &held, 1, false));
    held.milli = 250;
    CHECK(strstr(hold_refused(&node, &held, 1, false), "MPS"));
    held = (struct order_gpu){ .index = 1, .milli = 140, .size = 1 };
    CHECK(strstr(hold_refused(&node, &held, 1, false), "MIG"));
    held.index = 2;
    CHECK(strstr(hold_refused(&node, &held, 1, false), "list"));
}
