#include "sample.h"
#include "tap.h"

TEST(a_copy_says_the_same_and_stands_on_its_own)
{
    struct arena *mem = arena_new();
    AUTO(arena_free) struct arena *own = arena_new();
    struct json *doc;
    struct err err = { 0 };
    struct sample from = { 0 }, to;
    CHECK(json_parse(SLICE("{\"name\":\"a\",\"count\":3,\"run\":[\"x\",\"y\"],\"env\":{\"A\":\"1\",\"B\":\"\"},\"retry\":{\"limit\":2},"
                           "\"mem\":\"2GB\",\"on_lost\":\"wait\"}"), mem, &doc, &err)
          && bind_read(doc, &sample_fields, mem, &from, NULL, &err));
    bind_copy(&sample_fields, &from, own, &to);
    AUTO(str_done) struct str before = { 0 }, after = { 0 };
    bind_write(&(struct json_out){ .to = &before }, &sample_fields, &from);
    CHECK(to.name != from.name && to.run.at != from.run.at && to.env.at != from.env.at);
    arena_free(mem);            /* the sanitizer sees whoever still looks there */
    bind_write(&(struct json_out){ .to = &after }, &sample_fields, &to);
    CHECK(text_is(before.at, after.at));
}
