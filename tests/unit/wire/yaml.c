#include "wire/yaml.h"
#include "sample.h"
#include "tap.h"
#include <stdlib.h>

/* The document as JSON; NULL: refused. */
static const char *as_json(const char *yaml, size_t n, struct arena *mem, struct err *err)
{
    char *copy = malloc(n ? n : 1);
    struct json *v = NULL;
    AUTO(str_done) struct str out = { 0 };
    memcpy(copy, yaml, n);
    *err = (struct err){ 0 };
    bool ok = yaml_parse((struct slice){ copy, n }, mem, &v, err);
    free(copy);
    if (!ok) {
        CHECK(!v && err->rc == RC_BAD_INPUT && err->text[0]);
        return NULL;
    }
    json_print(&out, v);
    return arena_text(mem, out.at);
}

TEST(documents_mean_what_people_mean)
{
    static const struct { const char *yaml, *json; } rows[] = {
        { "", "null" }, { "# only a comment\n", "null" }, { "---\n...\n", "null" }, { "~", "null" }, { "a", "\"a\"" }, { "a: 1\nb: [x, 'y', \"z\\n\"]\n", "{\"a\":1,\"b\":[\"x\",\"y\",\"z\\n\"]}" },
        { "country: no\nversion: 1.10\nold: 0777\ntime: 1:30\nyes: on\n", "{\"country\":\"no\",\"version\":1.10,\"old\":\"0777\",\"time\":\"1:30\",\"yes\":\"on\"}" },
        { "a: \nb: ~\nc: null\nd: ''\ne: 'null'\n", "{\"a\":null,\"b\":null,\"c\":null,\"d\":\"\",\"e\":\"null\"}" },
        { "run: |\n  echo a\n  echo b\n", "{\"run\":\"echo a\\necho b\\n\"}" }, { "run: >-\n  one\n  line\n", "{\"run\":\"one line\"}" },
        { "base: &b {x: 1}\nuse: *b\nagain: [*b, *b]\n", "{\"base\":{\"x\":1},\"use\":{\"x\":1},\"again\":[{\"x\":1},{\"x\":1}]}" }, { "- &a x\n- *a\n", "[\"x\",\"x\"]" },
        { "a: !!str 5\nb: !!int 5\nc: ! 5\n", "{\"a\":\"5\",\"b\":5,\"c\":\"5\"}" }, { "? a\n: b\n", "{\"a\":\"b\"}" }, { "{a: {b: [1, {c: d}]}}", "{\"a\":{\"b\":[1,{\"c\":\"d\"}]}}" },
        { "1: a\ntrue: b\n~: c\n", "{\"1\":\"a\",\"true\":\"b\",\"~\":\"c\"}" }, { "k\xc3\xa4se: \xf0\x9f\x98\x80\n", "{\"k\xc3\xa4se\":\"\xf0\x9f\x98\x80\"}" }, { "%YAML 1.1\n---\na: b\n", "{\"a\":\"b\"}" },
        { "{\"json\": [true, null, 1.5, \"x\"]}", "{\"json\":[true,null,1.5,\"x\"]}" }, { "&k a: *k\n", "{\"a\":\"a\"}" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_free) struct arena *mem = arena_new();
        struct err err;
        const char *json = as_json(rows[i].yaml, strlen(rows[i].yaml), mem, &err);
        if (!text_is(json, rows[i].json))
            printf("# %s -> %s %s\n", rows[i].yaml, json ? json : "refused", err.text);
        CHECK(text_is(json, rows[i].json));
    }
}

TEST(what_is_not_one_plain_document_is_refused)
{
    static const char *const bad[] = {
        "a: 1\na: 2\n", "{a: 1, 'a': 2}", "a: [1, 2", "a: 'x", "a: b: c", "\ta: b", "- a\nb: c", "a: 1\n---\nb: 2\n", "a: *nope", "a: &a [*a]", "&a {x: *a}", "a: !!binary aGk=", "a: !custom x",
        "!!python/object:os.system {}", "[1, 2]: x", "? {a: b}\n: c", "a: \"\\0\"", "\"\\0\": a", "a: \"\\x\"", "%FOO\na: b", "a: \x01", "a: \xff", "\xff\xfe|", "a: b\n  c: d", ": x", "@a", "`a", "a: \"\xc3\"", "]", "*a : x",
        "a: |\n x\n  y\n z\nb", "--- a\n--- b\n", "{a}: b", "? \n: b",
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        AUTO(arena_free) struct arena *mem = arena_new();
        struct err err;
        const char *json = as_json(bad[i], strlen(bad[i]), mem, &err);
        if (json)
            printf("# taken: %s -> %s\n", bad[i], json);
        CHECK(!json);
    }
    AUTO(arena_free) struct arena *mem = arena_new();
    struct err err;
    CHECK(!as_json("a: b\0c", 6, mem, &err));
}

TEST(small_documents_cannot_grow_large)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    AUTO(str_done) struct str laughs = { 0 }, deep = { 0 }, chain = { 0 }, wide = { 0 };
    struct err err;
    str_text(&laughs, "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    for (int i = 1; i < 12; i++)
        str_printf(&laughs, "a%d: &a%d [*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d]\n", i, i, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
    CHECK(!as_json(laughs.at, laughs.len, mem, &err) && strstr(err.text, "too many"));
    for (int i = 0; i < 65; i++)
        str_text(&deep, "[");
    for (int i = 0; i < 65; i++)
        str_text(&deep, "]");
    CHECK(!as_json(deep.at, deep.len, mem, &err) && strstr(err.text, "deep"));
    CHECK(as_json(deep.at + 1, deep.len - 2, mem, &err));
    str_text(&chain, "a0: &a0 [x]\n");
    for (int i = 1; i < 200; i++)
        str_printf(&chain, "a%d: &a%d [*a%d]\n", i, i, i - 1);
    CHECK(!as_json(chain.at, chain.len, mem, &err) && strstr(err.text, "deep"));
    str_text(&wide, "[");
    for (int i = 0; i < 100001; i++)
        str_text(&wide, "1,");
    str_text(&wide, "]");
    CHECK(!as_json(wide.at, wide.len, mem, &err) && strstr(err.text, "too many"));
}

TEST(mistakes_are_told_with_their_line)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct err err;
    const char *indent = "a: 1\nb:\n  - x\n  y: z\n", *twice = "x: 0\na:\n  k: 1\n  k: 2\n";
    CHECK(!as_json(indent, strlen(indent), mem, &err) && strstr(err.text, "line 4"));
    CHECK(!as_json(twice, strlen(twice), mem, &err) && strstr(err.text, "line 3") && text_is(err.field, "k"));
}

TEST(a_workload_file_binds_by_its_fields)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    const char *file = "name: no\nresources:\n  accelerators: H200:8\n  memory: 16\n  cpus: 0.5\nspot: yes\nmax_duration: 1:30:00\ncount: 8\n"
                       "run: |\n  pip install x\n  python train.py\nenv:\n  EPOCHS: 3\n  DEBUG: true\n  NAME: \"\"\nretry: {limit: 5}\n";
    struct sample s = { 0 };
    struct json *doc;
    struct err err = { 0 };
    CHECK(yaml_parse(SLICE(file), mem, &doc, &err) && bind_read(doc, &sample_fields, mem, &s, NULL, &err));
    CHECK(text_is(s.name, "no") && text_is(s.gpus, "H200:8") && s.mem_mib == 16384 && s.cpu_milli == 500 && s.spot && s.time_s == 5400 && s.count == 8);
    CHECK(s.run.count == 1 && text_is(s.run.at[0], "pip install x\npython train.py\n") && s.env.count == 3 && text_is(s.env.at[0].value, "3") && s.retry.limit == 5);
    CHECK(yaml_parse(SLICE("name: a\nenv:\n  TOKEN:\n"), mem, &doc, &err) && !bind_read(doc, &sample_fields, mem, &s, NULL, &err) && text_is(err.field, "env.TOKEN"));
    CHECK(yaml_parse(SLICE("name: a\ncount: '8'\n"), mem, &doc, &err) && !bind_read(doc, &sample_fields, mem, &s, NULL, &err) && text_is(err.field, "count"));
}

TEST(several_documents_are_a_list)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct json *all;
    struct err err = { 0 };
    CHECK(yaml_parse_all(SLICE("a: &x 1\n---\na: 2\n---\n---\n- 3\n"), 3, mem, &all, &err));
    CHECK(all->type == JSON_LIST && json_get(all->first, "a") && text_is(json_text(all->first->next, "a"), "2")
          && all->first->next->next->type == JSON_LIST && !all->first->next->next->next);
    CHECK(yaml_parse_all(SLICE(""), 3, mem, &all, &err) && !all->first);
    CHECK(!yaml_parse_all(SLICE("a: 1\n---\na: 2\n"), 1, mem, &all, &err) && strstr(err.text, "too many documents"));
    CHECK(!yaml_parse_all(SLICE("a: &x 1\n---\na: *x\n"), 2, mem, &all, &err) && strstr(err.text, "alias"));
}
