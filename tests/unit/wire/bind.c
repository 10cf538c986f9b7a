#include "sample.h"
#include "base/id.h"
#include "tap.h"

static const char *printed(const struct sample *s, struct arena *mem)
{
    AUTO(str_done) struct str text = { 0 };
    bind_write(&(struct json_out){ .to = &text }, &sample_fields, s);
    return arena_text(mem, text.at);
}

/* Both ways: what is missing is read from the table, or copied from where it was read before. */
static bool read_doc(const char *text, struct arena *mem, struct sample *out, uint64_t *given, struct err *err)
{
    struct json *doc;
    struct sample over = *out;
    struct err why = { 0 };
    uint64_t bits = given ? *given : 0;
    const void *settled;
    *err = (struct err){ 0 };
    if (!json_parse(SLICE(text), mem, &doc, err))
        return false;
    bool ok = bind_read(doc, &sample_fields, mem, out, given, err);
    CHECK(bind_settled(&sample_fields, mem, &settled, &why));
    CHECK(bind_read_over(doc, &sample_fields, settled, mem, &over, &bits, &why) == ok);
    CHECK(ok ? text_is(printed(out, mem), printed(&over, mem)) : text_is(err->text, why.text) && text_is(err->field, why.field));
    CHECK(!given || bits == *given);
    return ok;
}

TEST(a_document_becomes_the_struct_it_means)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct sample s = { 0 };
    struct err err;
    uint64_t given;
    CHECK(read_doc("{\"name\":\"a.b-c\",\"gpus\":2,\"secret\":\"x\",\"any\":{\"a\": [1 , 2]},\"count\":-5,\"at\":\"2026-01-02T03:04:05Z\",\"time\":\"1h30m\","
                   "\"mem\":0.5,\"cpu\":0.25,\"spot\":true,\"on_lost\":\"wait\",\"commands\":\"a\\nb\",\"env\":{\"A\":1,\"B\":\"\",\"C\":true},"
                   "\"retry\":{\"delay\":7},\"after\":[{\"limit\":1},{}]}", mem, &s, &given, &err));
    CHECK(text_is(s.name, "a.b-c") && text_is(s.gpus, "2") && text_is(s.secret, "x") && text_is(s.any, "{\"a\":[1,2]}") && s.count == -5);
    CHECK(s.at_ms == 1767323045000 && s.time_s == 5400 && s.mem_mib == 512 && s.cpu_milli == 250 && s.spot && s.on_lost == 2);
    CHECK(s.run.count == 1 && text_is(s.run.at[0], "a\nb"));
    CHECK(s.env.count == 3 && text_is(s.env.at[0].value, "1") && text_is(s.env.at[1].value, "") && text_is(s.env.at[2].value, "true"));
    CHECK(s.retry.limit == 3 && s.retry.delay_s == 7 && s.after.count == 2);
    const struct sample_retry *after = s.after.at;
    CHECK(after[0].limit == 1 && after[1].limit == 3);
    CHECK(!s.image && (given & 1) && !(given & 2) && (given & 4));
}

TEST(defaults_stand_for_what_is_absent_or_null)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct sample s = { .count = 9, .label = "kept" };
    struct err err;
    uint64_t given = 0;
    CHECK(read_doc("{\"name\":\"a\",\"count\":null,\"image\":null}", mem, &s, &given, &err));
    CHECK(s.count == 1 && s.mem_mib == 1024 && s.cpu_milli == 500 && s.retry.limit == 3 && text_is(s.label, "kept") && !s.image);
    CHECK(given == (1 | 2 | 1 << 8));
}

TEST(a_group_leads_to_the_same_members)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct sample s = { 0 };
    struct err err;
    uint64_t given;
    CHECK(read_doc("{\"name\":\"a\",\"resources\":{\"gpu\":\"H200:8\",\"memory\":\"16\",\"cpus\":\"2\"}}", mem, &s, &given, &err));
    CHECK(text_is(s.gpus, "H200:8") && s.mem_mib == 16384 && s.cpu_milli == 2000);
    CHECK((given & 4) && (given & 1 << 12) && (given & 1 << 20));   /* the flat rows count as given too */
}

/* Each must be refused, name this field, say this, and leave the struct alone. */
static const struct { const char *doc, *field, *says; } refused[] = {
    { "[]", "", "expected an object, not a list" }, { "\"x\"", "", "expected an object" },
    { "{}", "name", "required" }, { "{\"name\":null}", "name", "required" },
    { "{\"nam\":\"a\"}", "nam", "did you mean 'name'" }, { "{\"name\":\"a\",\"imag_id\":1}", "imag_id", "did you mean 'image_id'" },
    { "{\"name\":\"a\",\"memry\":1}", "memry", "did you mean 'resources.memory'" }, { "{\"name\":\"a\",\"resources\":{\"acelerators\":1}}", "resources.acelerators", "did you mean 'accelerators'" },
    { "{\"name\":\"a\",\"retry\":{\"limt\":1}}", "retry.limt", "did you mean 'limit'" }, { "{\"name\":\"a\",\"after\":[{},{\"delai\":1}]}", "after[1].delai", "did you mean 'delay'" },
    { "{\"name\":\"a\",\"\":1}", "", "unknown field" }, { "{\"name\":\"a\",\"\\u001b[0m\":1}", "?[0m", "unknown field" },
    { "{\"name\":\"a\",\"image\":\"x\",\"image_id\":\"y\"}", "image_id", "same as 'image'" }, { "{\"name\":\"a\",\"gpus\":\"1\",\"resources\":{\"gpu\":\"1\"}}", "resources.gpu", "same as 'gpus'" },
    { "{\"name\":\"a\",\"resources\":{\"cpus\":1},\"cpu\":1}", "cpu", "same as 'cpus'" },
    { "{\"name\":5.5}", "name", NULL }, { "{\"name\":true}", "name", "expected a text, not a boolean" }, { "{\"name\":[\"a\"]}", "name", "expected a text, not a list" },
    { "{\"name\":\"A\"}", "name", "a-z" }, { "{\"name\":\"\"}", "name", "a-z" }, { "{\"name\":\"-a\"}", "name", "both ends" }, { "{\"name\":\"a-\"}", "name", "both ends" },
    { "{\"name\":\"a\",\"image\":\"\"}", "image", "must not be empty" }, { "{\"name\":\"a\",\"image\":\"123456789012345678901234567890123\"}", "image", "at most 32" },
    { "{\"name\":\"a\",\"image\":\"a\\u0007\"}", "image", "control" }, { "{\"name\":\"a\",\"image\":\"a\\u0085\"}", "image", "control" }, { "{\"name\":\"a\",\"image\":\"a\\r\"}", "image", "control" },
    { "{\"name\":\"a\",\"any\":\"0123456789012345678901234567890123456789012345678901234567890123\"}", "any", "at most 64" },
    { "{\"name\":\"a\",\"label\":\"a b\"}", "label", "not letters" }, { "{\"name\":\"a\",\"label\":\"/a\"}", "label", "first" },
    { "{\"name\":\"a\",\"path\":\"a\"}", "path", "absolute" }, { "{\"name\":\"a\",\"path\":\"/a/../b\"}", "path", "'..'" }, { "{\"name\":\"a\",\"path\":\"/..\"}", "path", "'..'" },
    { "{\"name\":\"a\",\"digest\":\"sha256:12\"}", "digest", "64 hex" },
    { "{\"name\":\"a\",\"count\":65}", "count", "between -5 and 64" }, { "{\"name\":\"a\",\"count\":-6}", "count", "between" }, { "{\"name\":\"a\",\"count\":\"8\"}", "count", "not a text" },
    { "{\"name\":\"a\",\"count\":1.5}", "count", "whole number" }, { "{\"name\":\"a\",\"count\":99999999999999999999}", "count", "fits" }, { "{\"name\":\"a\",\"count\":1e1}", "count", "whole" },
    { "{\"name\":\"a\",\"id\":\"job-1\"}", "id", "looks like job-" }, { "{\"name\":\"a\",\"id\":\"nod-0000000000000\"}", "id", "looks like job-" }, { "{\"name\":\"a\",\"id\":5}", "id", "an id" },
    { "{\"name\":\"a\",\"at\":\"yesterday\"}", "at", "2026" }, { "{\"name\":\"a\",\"time\":\"1x\"}", "time", "1h30m" }, { "{\"name\":\"a\",\"time\":-1}", "time", "duration" },
    { "{\"name\":\"a\",\"time\":\"2d\"}", "time", "between 0s and 1d" }, { "{\"name\":\"a\",\"mem\":\"1XB\"}", "mem", "512MB" }, { "{\"name\":\"a\",\"mem\":0}", "mem", "between 1 MiB" },
    { "{\"name\":\"a\",\"mem\":-1}", "mem", "not a size" }, { "{\"name\":\"a\",\"mem\":1e1}", "mem", "not a size" }, { "{\"name\":\"a\",\"cpu\":0.0001}", "cpu", "three decimals" }, { "{\"name\":\"a\",\"cpu\":1e3}", "cpu", "decimals" },
    { "{\"name\":\"a\",\"cpu\":64.001}", "cpu", "between 0.001 and 64" }, { "{\"name\":\"a\",\"spot\":\"true\"}", "spot", "true or false" }, { "{\"name\":\"a\",\"spot\":1}", "spot", "true or false" },
    { "{\"name\":\"a\",\"on_lost\":\"never\"}", "on_lost", "none of: requeue, wait" }, { "{\"name\":\"a\",\"on_lost\":0}", "on_lost", "known words" },
    { "{\"name\":\"a\",\"run\":[\"a\",\"b\",\"c\",\"d\"]}", "run[3]", "at most 3" }, { "{\"name\":\"a\",\"run\":[\"a\",{}]}", "run[1]", "a text, not an object" }, { "{\"name\":\"a\",\"run\":[null]}", "run[0]", "not nothing" },
    { "{\"name\":\"a\",\"run\":{}}", "run", "expected a text or a list of texts, not an object" },
    { "{\"name\":\"a\",\"run\":true}", "run", "expected a text or a list of texts, not a boolean; put it in quotes" },
    { "{\"name\":\"a\",\"env\":{\"A\":null}}", "env.A", "no value" }, { "{\"name\":\"a\",\"env\":[\"A\"]}", "env[0]", "KEY=VALUE" },
    { "{\"name\":\"a\",\"env\":[\"=A\"]}", "env[0]", "empty" }, { "{\"name\":\"a\",\"env\":{\"A=B\":\"x\"}}", "env.A=B", "'='" }, { "{\"name\":\"a\",\"env\":[\"A=1\",\"A=2\"]}", "env[1]", "twice" },
    { "{\"name\":\"a\",\"env\":{\"A\":{}}}", "env.A", "a text" }, { "{\"name\":\"a\",\"env\":\"A=1\"}", "env", "names with values" }, { "{\"name\":\"a\",\"env\":[1]}", "env[0]", "a text" },
    { "{\"name\":\"a\",\"env\":{\"A\":1,\"B\":1,\"C\":1,\"D\":1}}", "env.D", "at most 3" }, { "{\"name\":\"a\",\"retry\":3}", "retry", "an object" }, { "{\"name\":\"a\",\"retry\":{\"limit\":11}}", "retry.limit", "between 0 and 10" },
    { "{\"name\":\"a\",\"after\":{}}", "after", "list of objects" }, { "{\"name\":\"a\",\"after\":[1]}", "after[0]", "an object" }, { "{\"name\":\"a\",\"after\":[{},{},{}]}", "after", "at most 2" },
    { "{\"name\":\"a\",\"resources\":[]}", "resources", "an object" },
};

TEST(what_is_wrong_is_named_and_changes_nothing)
{
    for (size_t i = 0; i < COUNT(refused); i++) {
        AUTO(arena_free) struct arena *mem = arena_new();
        struct sample s = { .count = 77 }, before = s;
        struct err err;
        uint64_t given = 55;
        bool ok = read_doc(refused[i].doc, mem, &s, &given, &err);
        if (!refused[i].says)   /* a number where a text is meant is its digits */
            CHECK(ok && text_is(s.name, "5.5"));
        else if (ok || !text_is(err.field, refused[i].field) || !strstr(err.text, refused[i].says))
            printf("# %s: [%s] %s\n", refused[i].doc, err.field, err.text);
        CHECK(!refused[i].says || (!ok && err.rc == RC_BAD_INPUT && text_is(err.field, refused[i].field) && strstr(err.text, refused[i].says)));
        CHECK(!refused[i].says || (memcmp(&s, &before, sizeof s) == 0 && given == 55));
    }
}

TEST(the_address_of_the_request_cannot_be_overruled)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    char text[ID_TEXT], doc[80];
    struct sample s = { .id = 12345 };
    struct err err;
    snprintf(doc, sizeof doc, "{\"name\":\"a\",\"id\":\"%s\"}", id_text(text, "job", 12345));
    CHECK(read_doc(doc, mem, &s, NULL, &err) && s.id == 12345);
    snprintf(doc, sizeof doc, "{\"name\":\"a\",\"id\":\"%s\"}", id_text(text, "job", 12346));
    CHECK(!read_doc(doc, mem, &s, NULL, &err) && text_is(err.field, "id") && s.id == 12345);
}

TEST(plain_scalars_are_read_by_the_type_of_their_field)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    static const struct { const char *name, *text; } given[] = {
        { "name", "no" }, { "count", "8" }, { "spot", "yes" }, { "max_duration", "1:30:00" }, { "mem", "16" }, { "cpu", "0.5" }, { "run", "true" },
    };
    struct json *doc = json_new(mem, JSON_OBJECT);
    struct sample s = { 0 };
    struct err err;
    for (size_t i = 0; i < COUNT(given); i++) {
        struct json *v = json_new(mem, JSON_TEXT);
        v->plain = true;
        v->text = given[i].text;
        v->len = strlen(v->text);
        json_add(doc, given[i].name, v);
    }
    CHECK(bind_read(doc, &sample_fields, mem, &s, NULL, &err));
    CHECK(text_is(s.name, "no") && s.count == 8 && s.spot && s.time_s == 5400 && s.mem_mib == 16384 && s.cpu_milli == 500 && text_is(s.run.at[0], "true"));
}

TEST(texts_of_flags_go_into_one_member)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct sample s = { 0 };
    struct err err;
    const char *exact[] = { "one", "two" };         /* a list without room behind it, made by somebody else */
    s.run = (struct texts){ exact, 1 };
    CHECK(bind_text(bind_find(&sample_fields, "run"), "x", mem, &s, &err) && s.run.count == 2 && text_is(s.run.at[1], "x") && text_is(exact[1], "two"));
    CHECK(bind_text(bind_find(&sample_fields, "command"), "y", mem, &s, &err) && s.run.count == 3);
    CHECK(!bind_text(bind_find(&sample_fields, "run"), "z", mem, &s, &err) && s.run.count == 3 && text_is(err.field, "run"));
    CHECK(bind_text(bind_find(&sample_fields, "env"), "A=1=2", mem, &s, &err) && text_is(s.env.at[0].value, "1=2"));
    CHECK(!bind_text(bind_find(&sample_fields, "env"), "A=2", mem, &s, &err) && s.env.count == 1);
    CHECK(bind_text(bind_find(&sample_fields, "count"), "-3", mem, &s, &err) && s.count == -3);
    CHECK(!bind_text(bind_find(&sample_fields, "count"), "", mem, &s, &err) && !bind_text(bind_find(&sample_fields, "count"), "+1", mem, &s, &err) && s.count == -3);
    CHECK(bind_text(bind_find(&sample_fields, "spot"), "YES", mem, &s, &err) && s.spot && !bind_text(bind_find(&sample_fields, "spot"), "y", mem, &s, &err));
    CHECK(bind_text(bind_find(&sample_fields, "retry"), "{\"limit\":2}", mem, &s, &err) && s.retry.limit == 2);
    CHECK(!bind_text(bind_find(&sample_fields, "retry"), "2", mem, &s, &err) && text_is(err.field, "retry"));
    CHECK(bind_text(bind_find(&sample_fields, "any"), "[1, 2]", mem, &s, &err) && text_is(s.any, "[1,2]") && !bind_text(bind_find(&sample_fields, "any"), "{", mem, &s, &err));
    CHECK(!bind_text(bind_find(&sample_fields, "resources"), "{}", mem, &s, &err));
}

TEST(rows_are_found_by_name_alias_and_group)
{
    CHECK(text_is(bind_find(&sample_fields, "time")->name, "max_duration") && text_is(bind_find(&sample_fields, "container_image")->name, "image"));
    CHECK(text_is(bind_find(&sample_fields, "memory")->name, "memory") && bind_find(&sample_fields, "gpu"));
    CHECK(!bind_find(&sample_fields, "image_i") && !bind_find(&sample_fields, "mage_id") && !bind_find(&sample_fields, "") && !bind_find(&sample_fields, "image_id container_image"));
}

TEST(what_a_newer_part_of_ours_wrote_is_read_as_far_as_it_is_known)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    static const char text[] = "{\"later\":{\"a\":[1]},\"name\":\"a\",\"resources\":{\"later\":1,\"cpus\":\"2\"},\"retry\":{\"later\":\"x\",\"limit\":5},"
                               "\"after\":[{\"later\":null,\"limit\":2}]}";
    struct sample s = { 0 };
    struct err err = { 0 };
    struct json *doc;
    uint64_t given;
    CHECK(!read_doc(text, mem, &s, &given, &err) && text_is(err.field, "later"));
    CHECK(json_parse(SLICE(text), mem, &doc, &err) && bind_read_ours(doc, &sample_fields, mem, &s, &given, &err));
    CHECK(text_is(s.name, "a") && s.cpu_milli == 2000 && s.retry.limit == 5 && s.after.count == 1);
    CHECK(((const struct sample_retry *)s.after.at)->limit == 2 && (given & 1));
    /* and nothing else is let pass */
    CHECK(json_parse(SLICE("{\"later\":1}"), mem, &doc, &err) && !bind_read_ours(doc, &sample_fields, mem, &s, NULL, &err));
    CHECK(json_parse(SLICE("{\"name\":\"a\",\"count\":\"x\"}"), mem, &doc, &err) && !bind_read_ours(doc, &sample_fields, mem, &s, NULL, &err));
}
