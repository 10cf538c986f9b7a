#include "sample.h"
#include "base/rand.h"
#include "tap.h"

static struct str written(const struct sample *s)
{
    struct str out = { 0 };
    bind_write(&(struct json_out){ .to = &out }, &sample_fields, s);
    return out;
}

TEST(a_struct_is_printed_by_its_table)
{
    struct sample s = { .name = "a", .secret = "never", .count = -2, .id = 1, .at_ms = 1767323045120, .time_s = 5400, .mem_mib = 2048, .cpu_milli = 500, .on_lost = 2 };
    struct pair env[] = { { "A", "1" } };
    s.env = (struct pairs){ env, 1 };
    AUTO(str_done) struct str out = written(&s);
    CHECK(text_is(out.at, "{\"name\":\"a\",\"count\":-2,\"id\":\"job-0000000000001\",\"at\":\"2026-01-02T03:04:05.120Z\",\"max_duration\":5400,\"mem\":\"2048MB\","
                          "\"cpu\":0.5,\"spot\":false,\"on_lost\":\"wait\",\"run\":[],\"env\":{\"A\":\"1\"},\"retry\":{\"limit\":0,\"delay\":0}}"));
    CHECK(!strstr(out.at, "never"));
}

TEST(thousandths_are_printed_without_rounding)
{
    static const struct { int64_t n; const char *text; } rows[] = {
        { 0, "\"cpu\":0," }, { 1, "\"cpu\":0.001," }, { 1500, "\"cpu\":1.5," }, { 64000, "\"cpu\":64," }, { 10, "\"cpu\":0.01," }, { -1000, "\"cpu\":-1," }, { -500, "\"cpu\":-0.5," }, { 100000, "\"cpu\":100," },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct sample s = { .cpu_milli = rows[i].n };
        AUTO(str_done) struct str out = written(&s);
        CHECK(strstr(out.at, rows[i].text));
    }
}

TEST(what_has_no_spelling_is_null)
{
    struct sample s = { .on_lost = 1 };     /* a hole in the names */
    AUTO(str_done) struct str out = written(&s);
    CHECK(strstr(out.at, "\"name\":null") && strstr(out.at, "\"id\":null") && strstr(out.at, "\"at\":null") && strstr(out.at, "\"on_lost\":null"));
    s.on_lost = -1;
    AUTO(str_done) struct str again = written(&s);
    CHECK(text_is(again.at, out.at));
}

TEST(what_is_written_is_read_back_the_same)
{
    struct rng r = { 3 };
    for (int i = 0; i < 500; i++) {
        AUTO(arena_free) struct arena *mem = arena_new();
        struct sample s = { .name = arena_printf(mem, "n%u", (unsigned)rng_below(&r, 1000)), .image = rng_below(&r, 2) ? "x\ty\xc3\xa4" : NULL,
                            .any = rng_below(&r, 2) ? "[1,{}]" : NULL, .count = (int64_t)rng_below(&r, 70) - 5, .id = (int64_t)(rng_next(&r) >> 1),
                            .at_ms = (int64_t)rng_below(&r, 4000000000000), .time_s = (int64_t)rng_below(&r, 86400), .mem_mib = 1 + (int64_t)rng_below(&r, 1 << 20),
                            .cpu_milli = 1 + (int64_t)rng_below(&r, 64000), .spot = rng_below(&r, 2), .on_lost = rng_below(&r, 2) ? 2 : 0 };
        const char *run[] = { "a", "b\n\"c\"", "" };
        struct pair env[] = { { "A", "" }, { "B C", "=\xf0\x9f\x98\x80" } };
        struct sample_retry after[] = { { (int64_t)rng_below(&r, 11), 5 }, { 0, (int64_t)rng_below(&r, 3601) } };
        s.run = (struct texts){ run, rng_below(&r, 4) };
        s.env = (struct pairs){ env, rng_below(&r, 3) };
        s.after = (struct objects){ after, rng_below(&r, 3) };
        s.retry = after[0];
        struct sample back = { 0 };
        struct json *doc;
        struct err err = { 0 };
        AUTO(str_done) struct str out = written(&s);
        bool ok = json_parse((struct slice){ out.at, out.len }, mem, &doc, &err) && bind_read(doc, &sample_fields, mem, &back, NULL, &err);
        if (!ok)
            printf("# %s: %s\n", out.at, err.text);
        AUTO(str_done) struct str again = written(&back);
        CHECK(ok == (s.count <= 64) && (!ok || (text_is(again.at, out.at) && back.id == s.id && back.at_ms == s.at_ms)));
    }
}
