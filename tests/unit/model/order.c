#include "model/order.h"
#include "tap.h"
#include "wire/bind.h"
#include <string.h>

static bool read_as(const struct fields *fields, const char *text, struct arena *mem, void *out, struct err *err)
{
    struct json *doc;
    *err = (struct err){ 0 };
    return json_parse(SLICE(text), mem, &doc, err) && bind_read(doc, fields, mem, out, NULL, err);
}

#define IDS "\"attempt\":\"att-0000000000007\",\"job\":\"job-0000000000008\",\"project\":\"prj-0000000000009\""

TEST(an_order_keeps_all_it_was_told)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    AUTO(str_done) struct str text = { 0 };
    struct order_gpu gpus[] = { { 0, "GPU-a", 1000, 0, true }, { 3, "GPU-b", 500, 71885, true } };
    struct order_mount mounts[] = { { 11, "data", "/data", true } };
    struct order_secret secrets[] = { { "token", "s3cret \"x\"\n" } };
    struct order o = {
        .attempt = 7, .job = 8, .project = 9, .task = 3, .count = 10, .try_number = 2, .stop = true, .stop_as = OUTCOME_PREEMPTED,
        .name = "train", .image = "host", .argv = { (const char *[]){ "sh", "-c", "echo $X" }, 3 },
        .env = { (struct pair[]){ { "X", "1" }, { "EMPTY", "" } }, 2 }, .gpus = { gpus, 2 }, .cpu_milli = 1500, .mem_mib = 1024, .shm_mib = 64,
        .disk_mib = 2048, .log_mib = 100, .secrets = { secrets, 1 }, .mounts = { mounts, 1 }, .workdir = "sha256:x", .user = "1000:1000",
        .max_duration_s = 3600, .grace_s = 30, .run_for_s = 300,
    }, copy = { 0 };
    struct err err;
    bind_write(&(struct json_out){ .to = &text }, &order_fields, &o);
    CHECK(read_as(&order_fields, text.at, mem, &copy, &err));
    CHECK(copy.attempt == 7 && copy.job == 8 && copy.project == 9 && copy.task == 3 && copy.count == 10 && copy.try_number == 2);
    CHECK(copy.stop && copy.stop_as == OUTCOME_PREEMPTED && copy.argv.count == 3 && text_is(copy.argv.at[2], "echo $X"));
    CHECK(copy.env.count == 2 && text_is(copy.env.at[1].value, ""));
    const struct order_gpu *g = copy.gpus.at;
    CHECK(copy.gpus.count == 2 && g[1].milli == 500 && g[1].mem_mib == 71885 && text_is(g[1].uuid, "GPU-b") && g[1].simulated);
    const struct order_secret *s = copy.secrets.at;
    CHECK(copy.secrets.count == 1 && text_is(s->value, "s3cret \"x\"\n"));      /* this wire carries secrets */
    const struct order_mount *m = copy.mounts.at;
    CHECK(copy.mounts.count == 1 && m->volume == 11 && m->read_only && text_is(m->path, "/data"));
    CHECK(copy.run_for_s == 300 && copy.grace_s == 30 && copy.max_duration_s == 3600 && copy.log_mib == 100 && copy.mem_mib == 1024);
}

TEST(a_bare_order_has_sane_defaults)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct order o = { 0 };
    struct err err;
    CHECK(read_as(&order_fields, "{" IDS "}", mem, &o, &err));
    CHECK(o.count == 1 && o.try_number == 1 && !o.stop && o.gpus.count == 0 && o.argv.count == 0 && o.run_for_s == 0);
}

TEST(a_desired_set_is_read_and_its_bounds_hold)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct desired d = { 0 };
    struct err err;
    CHECK(read_as(&desired_fields, "{\"kind\":\"desired\",\"generation\":4,\"full\":true,\"orders\":[{" IDS "}],\"gone\":[\"att-0000000000001\"],"
                                   "\"kept\":12,\"now_ms\":1731677000123,\"beat\":3}", mem, &d, &err));
    CHECK(d.full && d.generation == 4 && d.orders.count == 1 && d.gone.count == 1 && d.kept == 12 && d.beat == 3 && d.now_ms == 1731677000123);
    static const char *const bad[] = {
        "{\"kind\":\"desired\"}", "{\"generation\":1}", "{\"kind\":\"desired\",\"generation\":-1}", "{\"kind\":\"desired\",\"generation\":1,\"orders\":[{}]}",
        "{\"kind\":\"desired\",\"generation\":1,\"orders\":[{\"attempt\":\"job-0000000000007\"}]}", "{\"kind\":\"desired\",\"generation\":1,\"kept\":-5}",
        "{\"kind\":\"desired\",\"generation\":1,\"order\":[]}", "{\"kind\":\"desired\",\"generation\":1.5}",
        "{\"kind\":\"desired\",\"generation\":1,\"orders\":[{" IDS ",\"gpus\":[{\"index\":0,\"uuid\":\"g\",\"milli\":1001}]}]}",
        "{\"kind\":\"desired\",\"generation\":1,\"orders\":[{" IDS ",\"grace_s\":-1}]}",
        "{\"kind\":\"desired\",\"generation\":1,\"orders\":[{" IDS ",\"stop_as\":\"maybe\"}]}",
    };
    for (size_t i = 0; i < COUNT(bad); i++)
        CHECK(!read_as(&desired_fields, bad[i], mem, &d, &err) && err.rc == RC_BAD_INPUT && err.text[0]);
}

TEST(a_report_comes_back_as_it_went_out)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    AUTO(str_done) struct str text = { 0 };
    struct report_item items[] = {
        { .n = 1, .attempt = 7, .news = TASK_STARTED, .at_ms = 1731677000123 },
        { .n = 2, .attempt = 7, .news = TASK_ENDED, .at_ms = 1731677000999, .started_ms = 1731677000123, .outcome = OUTCOME_EXITED, .exit_code = 3, .detail = "sh: x: not found" },
        { .n = 3, .attempt = 8, .news = TASK_ENDED, .at_ms = 1, .outcome = OUTCOME_SIGNALED, .signal = 9 },
    };
    struct report r = { .kind = "report", .generation = 5, .beat = 6, .items = { items, 3 } }, copy = { 0 };
    struct err err;
    bind_write(&(struct json_out){ .to = &text }, &report_fields, &r);
    CHECK(read_as(&report_fields, text.at, mem, &copy, &err));
    const struct report_item *i = copy.items.at;
    CHECK(copy.items.count == 3 && copy.generation == 5 && copy.beat == 6);
    CHECK(i[0].news == TASK_STARTED && i[0].at_ms == 1731677000123 && i[0].n == 1);
    CHECK(i[1].news == TASK_ENDED && i[1].exit_code == 3 && i[1].outcome == OUTCOME_EXITED && text_is(i[1].detail, "sh: x: not found"));
    CHECK(i[2].signal == 9 && i[2].started_ms == 0 && i[2].attempt == 8);
}

TEST(a_report_that_makes_no_sense_is_refused)
{
    static const char *const bad[] = {
        "{\"kind\":\"report\",\"items\":[{}]}", "{\"kind\":\"report\",\"items\":[{\"n\":0,\"attempt\":\"att-0000000000007\",\"news\":\"ended\",\"at_ms\":1}]}",
        "{\"kind\":\"report\",\"items\":[{\"n\":1,\"attempt\":\"7\",\"news\":\"ended\",\"at_ms\":1}]}",
        "{\"kind\":\"report\",\"items\":[{\"n\":1,\"attempt\":\"att-0000000000007\",\"news\":\"maybe\",\"at_ms\":1}]}",
        "{\"kind\":\"report\",\"items\":[{\"n\":1,\"attempt\":\"att-0000000000007\",\"news\":\"ended\",\"at_ms\":1,\"exit_code\":256}]}",
        "{\"kind\":\"report\",\"items\":[{\"n\":1,\"attempt\":\"att-0000000000007\",\"news\":\"ended\"}]}", "{\"items\":[]}", "{\"kind\":\"report\",\"items\":{}}",
        "{\"kind\":\"report\",\"extra\":1}",
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        AUTO(arena_free) struct arena *mem = arena_new();
        struct report r = { 0 };
        struct err err;
        CHECK(!read_as(&report_fields, bad[i], mem, &r, &err) && err.rc == RC_BAD_INPUT);
    }
}

TEST(a_stream_order_is_read_with_its_defaults)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct open_stream o = { 0 };
    struct err err;
    CHECK(read_as(&open_stream_fields, "{\"kind\":\"open\",\"stream\":\"st_x\",\"what\":\"exec\",\"attempt\":\"att-0000000000007\",\"argv\":[\"sh\"],\"tty\":true,\"rows\":24,\"cols\":80}", mem, &o, &err));
    CHECK(o.tail == -1 && o.attempt == 7 && o.volume == 0 && o.tty && o.rows == 24 && o.argv.count == 1);
    CHECK(!read_as(&open_stream_fields, "{\"kind\":\"open\",\"what\":\"exec\"}", mem, &o, &err));
    CHECK(!read_as(&open_stream_fields, "{\"kind\":\"open\",\"stream\":\"x\",\"what\":\"logs\",\"tail\":-2}", mem, &o, &err));
    CHECK(!read_as(&open_stream_fields, "{\"kind\":\"open\",\"stream\":\"x\",\"what\":\"logs\",\"rows\":99999}", mem, &o, &err));
}
