#include "sim/trace.h"
#include "tap.h"

static bool tasks(const char *csv, struct arena *mem, struct trace *t, struct err *err)
{
    return trace_tasks(SLICE(csv), "t.csv", mem, t, err);
}

TEST(columns_are_found_by_name_in_any_order_and_others_are_passed_over)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct trace t = { 0 };
    struct err err = { 0 };
    CHECK(tasks("qos,num_gpu,gpu_milli,cpu_milli,memory_mib,gpu_spec\r\nLS,1,460,6000,12288,\"A10|T4\"\r\n\r\nBE,8,1000,64000,0,\r\n", mem, &t, &err));
    CHECK(t.task_count == 2 && t.tasks[0].gpus == 1 && t.tasks[0].milli == 460 && text_is(t.tasks[0].spec, "A10|T4") && t.tasks[0].created_s == -1);
    CHECK(trace_milli(&t.tasks[1]) == 8000 && t.tasks[1].mem_mib == 1 && text_is(t.tasks[1].spec, "") && t.tasks[1].priority == 50);
    CHECK(trace_nodes(SLICE("\xef\xbb\xbfsn,cpu_milli,memory_mib,gpu,model\nn1,96000,393216,8,G2"), "n.csv", mem, &t, &err));
    CHECK(t.node_count == 1 && t.nodes[0].gpus == 8 && text_is(t.nodes[0].model, "G2") && t.nodes[0].gpu_mib > 0);
}

TEST(what_is_wrong_is_told_with_line_column_value_and_the_fix)
{
    static const struct { const char *csv, *says; } rows[] = {
        { "", "no column cpu_milli" },
        { "cpu_milli,memory_mib\n1,2\n", "no column num_gpu" },
        { "cpu_milli,memory_mib,num_gpu\n", "no rows" },
        { "cpu_milli,memory_mib,num_gpu\n1,2,3\n1,x,3\n", "t.csv line 3, column memory_mib: 'x' is not right; write MiB" },
        { "cpu_milli,memory_mib,num_gpu\n1,2,17\n", "'17' is not right; write a number of GPUs from 0 to 16" },
        { "cpu_milli,memory_mib,num_gpu\n-4,2,1\n", "'-4'" },
        { "cpu_milli,memory_mib,num_gpu\n99999999999999999999,2,1\n", "line 2, column cpu_milli" },
        { "cpu_milli,memory_mib,num_gpu\n,2,1\n", "column cpu_milli: ''" },
        { "cpu_milli,memory_mib,num_gpu\n1,2\n", "2 values where the first line has 3" },
        { "cpu_milli,memory_mib,num_gpu\n1,2,3,4\n", "more values than" },
        { "cpu_milli,memory_mib,num_gpu,cpu_milli\n1,2,3,4\n", "there twice" },
        { "cpu_milli,memory_mib,num_gpu\n\"1,2,3\n", "quote is not closed" },
        { "cpu_milli,memory_mib,num_gpu\n\"1\"2,2,3\n", "behind a closing quote" },
        { "cpu_milli,memory_mib,num_gpu,gpu_milli\n1,2,1,0\n", "gpu_milli of 0" },
        { "cpu_milli,memory_mib,num_gpu,gpu_spec\n1,2,1,0123456789012345678901234567890123456789012345678901234567890123456789\n", "too long" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_free) struct arena *mem = arena_new();
        struct trace t = { 0 };
        struct err err = { 0 };
        CHECK(!tasks(rows[i].csv, mem, &t, &err) && err.rc == RC_BAD_INPUT && !t.tasks);
        if (!strstr(err.text, rows[i].says))
            printf("# '%s' does not say '%s'\n", err.text, rows[i].says);
        CHECK(strstr(err.text, rows[i].says));
    }
}

TEST(a_gang_is_a_number_of_nodes)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct trace t = { 0 };
    struct err err = { 0 };
    CHECK(tasks("cpu_milli,memory_mib,num_gpu,nodes\n1,2,8,4\n1,2,1,\n", mem, &t, &err) && t.tasks[0].nodes == 4 && t.tasks[1].nodes == 1);
    CHECK(trace_asks(&t.tasks[0]) == 32000 && trace_milli(&t.tasks[0]) == 8000);
    CHECK(tasks("cpu_milli,memory_mib,num_gpu,num_nodes\n1,2,8,3\n", mem, &t, &err) && t.tasks[0].nodes == 3);
    CHECK(!tasks("cpu_milli,memory_mib,num_gpu,nodes\n1,2,8,0\n", mem, &t, &err) && strstr(err.text, "column nodes: '0'"));
    CHECK(!tasks("cpu_milli,memory_mib,num_gpu,nodes\n1,2,8,1025\n", mem, &t, &err));
}

TEST(a_zero_byte_and_a_value_without_end_are_refused)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct trace t = { 0 };
    struct err err = { 0 };
    char csv[600] = "cpu_milli,memory_mib,num_gpu\n1,2,";
    memset(csv + 33, '1', 500);
    CHECK(!tasks(csv, mem, &t, &err) && strstr(err.text, "255"));
    static const char zero[] = "cpu_milli,memory_mib,num_gpu\n1,2\0,3";
    CHECK(!trace_tasks((struct slice){ zero, sizeof zero - 1 }, "t.csv", mem, &t, &err) && strstr(err.text, "zero byte"));
}
