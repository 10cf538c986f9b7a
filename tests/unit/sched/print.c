#include "kit.h"
#include "tap.h"

TEST(the_print_names_everything_that_a_placement_hangs_on)
{
    AUTO(sched_free) struct sched *s = sched_new();
    AUTO(arena_free) struct arena *mem = arena_new();
    AUTO(str_done) struct str out = { 0 };
    struct sched_event n = kit_node_event(&(struct kit_node){ 1, "H200", 1, 1000, 8, 8000, false, true });
    struct sched_event j = kit_job_event(10, 7, 50, "H200:0.5", 1, 100, 3);
    sched_apply(s, &n);
    sched_apply(s, &j);
    sched_plan(s, 0, 1, mem);
    sched_print(s, &out);
    CHECK(text_is(out.at, "node 1 usable host cpu 1000/8000 mem 100/8000\n"
                          "  gpu 0 H200 used 500 milli 500/1000 MiB holders 1 project 7\n"
                          "project 7 holds gpu 500/-1000 cpu 1000/-1000 mem 100/-1\n"
                          "job 10 project 7 priority 50 created 10000 node 0\n"
                          "  asks cpu 1000 mem 100 gpu 500 'H200' 0..0 share 0 mig ''\n"
                          "  waits 1-2 not before 0\n"
                          "hold 10.0 project 7 node 1 cpu 1000 mem 100 class normal unconfirmed\n"
                          "  gpu 0 milli 500 mem 500\n"));
}
