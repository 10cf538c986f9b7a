#include "wire/yaml.h"
#include "base/rand.h"
#include "tap.h"

static void round_trip(const char *at, size_t n)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    AUTO(str_done) struct str yaml = { 0 }, before = { 0 }, after = { 0 };
    struct json *v, *back;
    struct err err = { 0 };
    if (!json_parse((struct slice){ at, n }, mem, &v, &err)) {
        CHECK(!"the test's own document is bad");
        return;
    }
    json_print(&before, v);
    yaml_print(&yaml, v);
    bool ok = yaml_parse((struct slice){ yaml.at, yaml.len }, mem, &back, &err);
    if (ok)
        json_print(&after, back);
    if (!ok || !text_is(before.at, after.at))
        printf("# %s\n# became\n%s\n# and then %s %s\n", before.at, yaml.at, ok ? after.at : "refused", err.text);
    CHECK(ok && text_is(before.at, after.at));
    CHECK(yaml.at[yaml.len - 1] == '\n');
}

TEST(it_looks_as_people_write_it)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    AUTO(str_done) struct str yaml = { 0 };
    struct json *v;
    struct err err;
    const char *json = "{\"name\":\"train\",\"gpus\":2,\"env\":{\"A\":\"1\",\"B\":\"no\"},\"run\":[\"a\\nb\\n\",\"python train.py\"],\"after\":[{\"job\":\"x\",\"l\":[]},[1,[2]]],\"o\":{},\"t\":null,\"ok\":true,\"e\":\"\",\"u\":\"https://x:80/y\"}";
    CHECK(json_parse(SLICE(json), mem, &v, &err));
    yaml_print(&yaml, v);
    const char *want = "name: train\ngpus: 2\nenv:\n  A: \"1\"\n  B: \"no\"\nrun:\n  - |\n    a\n    b\n  - python train.py\nafter:\n  - job: x\n    l: []\n  - - 1\n    - - 2\no: {}\nt: null\nok: true\ne: \"\"\nu: https://x:80/y\n";
    if (!text_is(yaml.at, want))
        printf("# %s\n", yaml.at);
    CHECK(text_is(yaml.at, want));
}

TEST(every_value_reads_back_as_itself)
{
    static const char *const docs[] = {
        "null", "true", "1.50", "\"\"", "\"x\"", "[]", "{}", "[[]]", "[{}]", "{\"a\":[]}", "[[[1]],{\"a\":{\"b\":[{}]}}]", "\"a\\nb\"", "{\"\":\"\"}", "{\"a b\":1,\"c:d\":2,\"e: f\":3,\"#g\":4,\"- h\":5,\"?\":6}",
        "[\"yes\",\"No\",\"~\",\"null\",\"1\",\"1.5\",\"0x1\",\"true\",\"-\",\"- a\",\"?\",\"? a\",\":\",\"a:\",\":a\",\"a: b\",\"a #b\",\"#\",\"&a\",\"*a\",\"!a\",\"|\",\">\",\"'\",\"\\\"\",\"%\",\"@\",\"`\",\"{\",\"}\",\"[\",\"]\",\",\",\"<<\",\"---\",\"...\",\"=\"]",
        "[\" a\",\"a \",\"a  b\",\"\\t\",\"a\\tb\",\"\\n\",\"\\n\\n\",\"a\\n\\nb\",\"a\\n\\n\",\" a\\nb\",\"a\\n b\",\"a\\n  \\nb\",\"a \\nb \\n\",\"a\\r\\nb\",\"\\ta\\nb\",\"a\\n\\tb\",\"#a\\n#b\",\"---\\n...\\n\",\"- a\\n- b\",\"a: b\\n\"]",
        "[\"\\u0085\",\"\\u2028\",\"a\\u2029b\\nc\",\"\\ufeff\",\"\\u007f\",\"\\u0080\",\"\\u00a0\",\"\\ufffd\",\"\\ufffe\",\"\\uffff\",\"\\ud83d\\ude00\",\"\\u001b\",\"\\u0007\",\"\\ufeffa\"]",
        "{\"k\":\"a\\n\"}", "[\"a\\nb\",{\"x\":\"c\\nd\\n\"}]",
    };
    for (size_t i = 0; i < COUNT(docs); i++)
        round_trip(docs[i], strlen(docs[i]));
    AUTO(str_done) struct str long_key = { 0 };
    str_text(&long_key, "{\"");
    for (int i = 0; i < 3000; i++)
        str_text(&long_key, "k\xc3\xa4");
    str_text(&long_key, "\":{\"a\":[1]},\"b\":2}");
    round_trip(long_key.at, long_key.len);
}

static void random_value(struct rng *r, struct json_out *o, int depth)
{
    static const char letters[] = "ab \n\t:#-?[]{},&*!|>'\"%@`~1.0/\\\xc3\xa4\xe2\x80\xa8\x1b\r";
    char text[12];
    size_t n = rng_below(r, sizeof text);
    for (size_t i = 0; i < n; i++)
        text[i] = letters[rng_below(r, sizeof letters - 1)];
    switch (rng_below(r, depth > 5 ? 3 : 6)) {
    case 0: json_put_int(o, (int64_t)rng_next(r) >> rng_below(r, 64)); break;
    case 1: json_put_bytes(o, text, n); break;
    case 2: json_put_raw(o, rng_below(r, 2) ? "true" : NULL); break;
    case 3:
        json_open(o, '[');
        for (size_t i = 0; i < n / 2; i++)
            random_value(r, o, depth + 1);
        json_close(o, ']');
        break;
    default:
        json_open(o, '{');
        for (size_t i = 0; i < n / 2; i++) {
            text[0] = (char)('a' + i), text[n] = 0;
            json_key(o, text);
            random_value(r, o, depth + 1);
        }
        json_close(o, '}');
    }
}

TEST(random_trees_read_back_as_themselves)
{
    struct rng r = { 21 };
    for (int i = 0; i < 3000; i++) {
        AUTO(str_done) struct str doc = { 0 };
        random_value(&r, &(struct json_out){ .to = &doc }, 0);
        round_trip(doc.at, doc.len);
    }
}
