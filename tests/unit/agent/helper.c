#include "agent/helper.h"
#include "base/id.h"
#include "model/prefix.h"
#include "tap.h"
#include <stdio.h>
#include <unistd.h>

TEST(a_process_belongs_to_the_first_task_of_its_groups)
{
    char a[ID_TEXT], b[ID_TEXT], text[512];
    id_text(a, PREFIX_ATTEMPT, 77777777777), id_text(b, PREFIX_ATTEMPT, 88888888888);
    snprintf(text, sizeof text, "0::/arcus/%s\n", a);
    CHECK(helper_attempt_in(text) == 77777777777);
    snprintf(text, sizeof text, "12:pids:/user.slice\n3:memory:/machine/arcus/%s/inner\n0::/\n", a);
    CHECK(helper_attempt_in(text) == 77777777777);
    snprintf(text, sizeof text, "0::/arcus/%s/arcus/%s\n", a, b);      /* what is below is the tenant's own */
    CHECK(helper_attempt_in(text) == 77777777777);
    snprintf(text, sizeof text, "0::/arcus/other/arcus/%s\n", b);
    CHECK(helper_attempt_in(text) == 0);
    CHECK(helper_attempt_in("0::/arcus/agent\n") == 0 && helper_attempt_in("") == 0 && helper_attempt_in("0::/arcus/att-\n") == 0);
    snprintf(text, sizeof text, "0::/arcus/%s-and-more-than-any-id-of-ours-has-letters\n", a);
    CHECK(helper_attempt_in(text) == 0);
    CHECK(helper_attempt_of(getpid()) == 0 && helper_attempt_of(999999999) == 0);
}

TEST(processes_of_one_task_are_added_up)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct gpu_live l = gpu_live_unknown("GPU-1");
    helper_add_process(&l, mem, 5, 100);
    helper_add_process(&l, mem, 0, 7);
    helper_add_process(&l, mem, 5, 20);
    const struct live_task *t = l.tasks.at;
    CHECK(l.tasks.count == 2 && t[0].attempt == 5 && t[0].mem_mib == 120 && t[0].processes == 2 && t[1].attempt == 0 && t[1].mem_mib == 7);
    for (int64_t i = 0; i < 5000; i++)
        helper_add_process(&l, mem, 100 + i, 1);
    CHECK(l.tasks.count == 1024);
}

TEST(a_gpu_too_many_or_with_anothers_uuid_is_left_out_and_told)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct node_info info = { 0 };
    struct gpu_info g = { .uuid = "GPU-1", .vendor = "amd", .pci = "0000:41:00.0" };
    helper_add_gpu(&info, mem, &g);
    g.pci = "0000:42:00.0";
    helper_add_gpu(&info, mem, &g);
    CHECK(info.gpus.count == 1 && info.cannot.count == 1 && strstr(info.cannot.at[0], "0000:42:00.0 is left out: 0000:41:00.0 has the same UUID"));
    for (int i = 1; i <= NODE_OFFERS; i++) {
        g.uuid = arena_printf(mem, "GPU-of-many-%d", i);
        helper_add_gpu(&info, mem, &g);
    }
    CHECK(info.gpus.count == NODE_OFFERS && info.cannot.count == 2 && strstr(info.cannot.at[1], "at most 16"));
}

TEST(the_numbers_of_a_tasks_processes_are_told_as_far_as_there_is_room)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct gpu_live l = { .uuid = "x" };
    helper_add_process(&l, mem, 5, 1);
    helper_add_pid(&l, mem, 5, 17);
    helper_add_process(&l, mem, 5, 1);
    helper_add_pid(&l, mem, 5, 18);
    helper_add_process(&l, mem, 0, 1);
    helper_add_pid(&l, mem, 0, 19);
    const struct live_task *t = l.tasks.at;
    CHECK(l.tasks.count == 2 && text_is(t[0].pids, "17 18") && !t[1].pids);
    for (int i = 0; i < 1000; i++)
        helper_add_pid(&l, mem, 5, 100000 + i);
    size_t n = strlen(t[0].pids);
    CHECK(n <= LIVE_PIDS && n > LIVE_PIDS - 8);
}
