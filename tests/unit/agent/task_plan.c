#include "agent/task_plan.h"
#include "tap.h"
#include "wire/bind.h"
#include <stdio.h>

static const char *const required = "\"attempt\":1,\"id\":\"a\",\"runtime\":\"/c\",\"runtime_root\":\"/r\",\"folder\":\"/f\",\"run\":\"/run\",\"status\":\"/s\","
                                    "\"logs\":\"/l\",\"lease\":\"/e\",\"cgroup\":\"arcus/a\",\"hostname\":\"h\"";

static bool take(const struct fields *fields, const char *text, struct arena *mem, void *out)
{
    struct json *doc;
    struct err err = { 0 };
    return json_parse(SLICE(text), mem, &doc, &err) && bind_read(doc, fields, mem, out, NULL, &err);
}

TEST(a_plan_says_the_same_to_the_supervisor_as_to_the_agent)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    AUTO(str_done) struct str text = { 0 }, again = { 0 };
    const char *hide[] = { "/root", "/home" }, *secrets[] = { "TOKEN" };
    struct plan_mount mounts[] = { { "/data/outputs/a", "outputs", false }, { "/data/volumes/v", "vol-0", true } };
    struct plan p = { .attempt = 77, .id = "att-77", .runtime = "/usr/bin/crun", .runtime_root = "/run/crun", .folder = "/d/tasks/a", .run = "/run/tasks/a",
                      .status = "/d/status/a", .logs = "/d/logs/a", .lease = "/run/lease", .cgroup = "arcus/a", .uid_base = PLAN_UID_BASE + PLAN_UID_COUNT,
                      .uid = 1000, .gid = 100, .hostname = "host", .root = ROOT_HOST, .hide = { hide, 2 }, .scratch = SCRATCH_TMPFS, .scratch_mib = 64,
                      .mounts = { mounts, 2 }, .workdir = "/w", .secrets = { secrets, 1 }, .mem_mib = 5, .log_mib = 6, .max_duration_s = 7, .grace_s = 8, .run_for_s = 9 },
                back = { 0 };
    bind_write(&(struct json_out){ .to = &text }, &plan_fields, &p);
    CHECK(text.len < PLAN_BYTES && take(&plan_fields, text.at, mem, &back));
    bind_write(&(struct json_out){ .to = &again }, &plan_fields, &back);
    CHECK(text_is(text.at, again.at));
    const struct plan_mount *m = back.mounts.at;
    CHECK(back.mounts.count == 2 && m[1].read_only && !m[0].read_only && text_is(m[1].source, "/data/volumes/v"));
    CHECK(back.root == ROOT_HOST && back.scratch == SCRATCH_TMPFS && !text_given(back.lower) && !text_given(back.filter));
}

TEST(a_plan_whose_ids_would_be_those_of_the_node_is_refused)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    static const struct { const char *more; bool good; } rows[] = {
        { "\"uid_base\":268435456", true },
        { "\"uid_base\":0", false },
        { "\"uid_base\":268435455", false },
        { "\"uid_base\":4294967295", false },
        { "\"uid_base\":268435456,\"uid\":65535,\"gid\":65535", true },
        { "\"uid_base\":268435456,\"uid\":65536", false },
        { "\"uid_base\":268435456,\"gid\":-1", false },
        { "\"uid_base\":268435456,\"scratch_mib\":0", false },
        { "\"uid_base\":268435456,\"root\":\"elsewhere\"", false },
        { "\"uid_base\":268435456,\"mounts\":[{\"source\":\"/x\"}]", false },
        { "\"mem_mib\":1", false },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct plan p = { 0 };
        bool ok = take(&plan_fields, arena_printf(mem, "{%s,%s}", required, rows[i].more), mem, &p);
        CHECK(ok == rows[i].good);
        if (ok != rows[i].good)
            printf("# %s\n", rows[i].more);
    }
}

TEST(a_status_or_a_stop_that_says_nothing_known_is_not_taken)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct task_status s = { 0 };
    struct plan_stop stop = { .grace_s = 3 };
    CHECK(take(&task_status_fields, "{\"attempt\":5,\"phase\":\"running\",\"pid\":7}", mem, &s) && s.phase == PHASE_RUNNING && s.outcome == OUTCOME_NONE);
    CHECK(!take(&task_status_fields, "{\"attempt\":5,\"phase\":\"resting\"}", mem, &s) && !take(&task_status_fields, "{\"attempt\":5}", mem, &s));
    CHECK(!take(&task_status_fields, "{\"attempt\":5,\"phase\":\"ended\",\"outcome\":\"bored\"}", mem, &s) && !take(&task_status_fields, "", mem, &s));
    CHECK(take(&plan_stop_fields, "{\"grace_s\":9,\"as\":\"preempted\"}", mem, &stop) && stop.grace_s == 9 && stop.as == OUTCOME_PREEMPTED);
    CHECK(!take(&plan_stop_fields, "{\"as\":\"because\"}", mem, &stop));
}

TEST(of_a_status_the_last_whole_line_counts)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    static const struct { const char *file; int phase; } rows[] = {
        { "{\"attempt\":7,\"phase\":\"preparing\"}\n", PHASE_PREPARING },
        { "{\"attempt\":7,\"phase\":\"preparing\"}\n{\"attempt\":7,\"phase\":\"running\"}\n", PHASE_RUNNING },
        { "{\"attempt\":7,\"phase\":\"running\"}\n{\"attempt\":7,\"phase\":\"en", PHASE_RUNNING },
        { "{\"attempt\":7,\"phase\":\"running\"}\n{\"attempt\":7,\"ph\n{\"attempt\":7,\"phase\":\"ended\"}\n", PHASE_ENDED },
        { "{\"attempt\":7,\"phase\":\"ended\"}", PHASE_ENDED },     /* as the agent writes it */
        { "{\"attempt\":7,\"ph", -1 },
        { "\n\n", -1 },
        { "", -1 },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct task_status s = { 0 };
        struct err err = { 0 };
        bool ok = status_read(SLICE(rows[i].file), mem, &s, &err);
        CHECK(ok == (rows[i].phase >= 0) && (!ok || (s.attempt == 7 && s.phase == rows[i].phase)) && (ok || err.rc));
    }
}
