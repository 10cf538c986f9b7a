#include "wire/json.h"
#include "wire/utf8.h"
#include "base/rand.h"
#include "tap.h"
#include <stdlib.h>

/* Parses a copy that ends where it ends, so that reading behind it is seen. NULL: refused. */
static struct json *parse_bytes(const char *at, size_t n, struct arena *mem, struct err *err)
{
    char *copy = malloc(n ? n : 1);
    struct json *v = NULL;
    memcpy(copy, at, n);
    *err = (struct err){ 0 };
    if (!json_parse((struct slice){ copy, n }, mem, &v, err))
        CHECK(v == NULL && err->rc == RC_BAD_INPUT && err->text[0]);
    free(copy);
    return v;
}

static struct json *parse(const char *text, struct arena *mem, struct err *err)
{
    return parse_bytes(text, strlen(text), mem, err);
}

TEST(good_documents_print_as_they_mean)
{
    static const struct { const char *in, *out; } rows[] = {
        { "null", "null" }, { " true\n", "true" }, { "false", "false" }, { "0", "0" }, { "-0", "-0" }, { "12", "12" },
        { "-9223372036854775808", "-9223372036854775808" }, { "1e3", "1e3" }, { "1.50E-7", "1.50E-7" }, { "123456789012345678901234567890", "123456789012345678901234567890" },
        { "\"\"", "\"\"" }, { "\"a\\u0062\\/\\\"\\\\\\b\\f\\n\\r\\t\"", "\"ab/\\\"\\\\\\b\\f\\n\\r\\t\"" },
        { "\"\\u00e4\\u20ac\\ud83d\\ude00\"", "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"" }, { "\"\\u001f\\u007f\"", "\"\\u001f\x7f\"" },
        { "[]", "[]" }, { "{}", "{}" }, { " [ 1 , [ ] , { } ] ", "[1,[],{}]" }, { "{\"a\":1,\"b\":[true,null],\"\":{\"c\":\"d\"}}", "{\"a\":1,\"b\":[true,null],\"\":{\"c\":\"d\"}}" },
        { "\t\r\n{\r\n\t\"a\" :\t1 }\r\n", "{\"a\":1}" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_free) struct arena *mem = arena_new();
        AUTO(str_done) struct str out = { 0 };
        struct err err;
        struct json *v = parse(rows[i].in, mem, &err);
        CHECK(v);
        if (!v)
            continue;
        json_print(&out, v);
        if (!text_is(out.at, rows[i].out))
            printf("# %s -> %s\n", rows[i].in, out.at);
        CHECK(text_is(out.at, rows[i].out));
    }
}

TEST(what_is_not_strict_json_is_refused)
{
    static const char *const bad[] = {
        "", " ", "nul", "nulll", "True", "tru", "truefalse", "1 2", "[1]]", "{} x", "01", "-", "-01", "+1", ".5", "5.", "1.e3", "1e", "1e+", "0x10", "1_000",
        "NaN", "Infinity", "-Infinity", "'a'", "\"", "\"a", "\"\\", "\"\\x\"", "\"\\u12\"", "\"\\u12g4\"", "\"\\u", "\"\\ud800\"", "\"\\ud800x\"", "\"\\ud800\\n\"",
        "\"\\ud800\\ud800\"", "\"\\udc00\"", "\"\\ud83d\\u", "\"\\u0000\"", "\"\x01\"", "\"\n\"", "\"\t\"", "\"\xff\"", "\"\xc3\"", "\"\xc0\x80\"", "\"\xed\xa0\x80\"",
        "\"\xf5\x80\x80\x80\"", "\"\xe2\x82\"", "[", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "{", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":1,", "{\"a\":1,}", "{a:1}", "{1:1}",
        "{\"a\" 1}", "{\"a\":1 \"b\":2}", "{,}", "{\"a\":1,\"a\":2}", "{\"a\":1,\"\\u0061\":2}", "]", "}", ",", ":", "/* c */1", "// c\n1", "\xef\xbb\xbf{}", "\v1", "{\"a\":1}}",
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        AUTO(arena_free) struct arena *mem = arena_new();
        struct err err;
        struct json *v = parse(bad[i], mem, &err);
        if (v)
            printf("# taken: %s\n", bad[i]);
        CHECK(!v);
    }
    AUTO(arena_free) struct arena *mem = arena_new();
    struct err err;
    CHECK(!parse_bytes("[1\0]", 4, mem, &err) && !parse_bytes("1\0", 2, mem, &err) && !parse_bytes("\"a\0b\"", 5, mem, &err));
}

TEST(every_cut_of_a_document_is_refused)
{
    const char *doc = "{\"name\":\"x\\u00e4\\ud83d\\ude00\",\"n\":[-12.5e+3,true,null,{}]}";
    for (size_t n = 0; n < strlen(doc); n++) {
        AUTO(arena_free) struct arena *mem = arena_new();
        struct err err;
        CHECK(!parse_bytes(doc, n, mem, &err));
    }
}

TEST(depth_is_64_and_not_more)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    char deep[140] = "";
    struct err err;
    memset(deep, '[', 64), memset(deep + 64, ']', 64), deep[128] = 0;
    CHECK(parse(deep, mem, &err));
    memset(deep, '[', 65), memset(deep + 65, ']', 65), deep[130] = 0;
    CHECK(!parse(deep, mem, &err) && strstr(err.text, "deep"));
}

/* A value of one letter takes fifty times its size: so many letters may not all be values. */
TEST(a_document_of_nothing_but_small_values_is_refused)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    AUTO(str_done) struct str many = { 0 }, long_ones = { 0 };
    struct err err;
    str_char(&many, '[');
    str_char(&long_ones, '[');
    for (int i = 0; i < 200000; i++) {
        str_text(&many, "0,");
        str_text(&long_ones, "\"att-0123456789abc\",");
    }
    str_text(&many, "0]");
    str_text(&long_ones, "0]");
    CHECK(!parse(many.at, mem, &err) && strstr(err.text, "too many values"));
    struct json *own;
    CHECK(json_parse_own(SLICE(many.at), mem, &own, &err)); /* of our own server */
    CHECK(parse(long_ones.at, mem, &err));
    str_clear(&many);
    str_char(&many, '[');
    for (int i = 0; i < 19000; i++)
        str_text(&many, "0,");
    str_text(&many, "0]");
    CHECK(parse(many.at, mem, &err));
}

TEST(integers_are_exact_and_others_keep_their_text)
{
    static const struct { const char *text; bool is_int; int64_t n; } rows[] = {
        { "9007199254740993", true, 9007199254740993 }, { "9223372036854775807", true, INT64_MAX }, { "-9223372036854775808", true, INT64_MIN },
        { "9223372036854775808", false, 0 }, { "-9223372036854775809", false, 0 }, { "99999999999999999999", false, 0 }, { "1.0", false, 0 }, { "1e2", false, 0 }, { "0", true, 0 },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_free) struct arena *mem = arena_new();
        struct err err;
        struct json *v = parse(rows[i].text, mem, &err);
        CHECK(v && v->type == JSON_NUMBER && v->is_int == rows[i].is_int && text_is(v->text, rows[i].text));
        CHECK(v && (!v->is_int || v->number == rows[i].n));
    }
}

TEST(the_place_of_a_mistake_is_told)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct err err;
    CHECK(!parse("{\n  \"a\": \"x\\ny\",\n  \"b\": tru\n}", mem, &err) && strstr(err.text, "line 3 column 8"));
    CHECK(!parse("{\"a\":1,\"b\":2,\"a\":3}", mem, &err) && strstr(err.text, "twice") && text_is(err.field, "a"));
}

TEST(double_names_are_found_in_large_objects_too)
{
    for (int twice = 0; twice < 2; twice++) {
        AUTO(arena_free) struct arena *mem = arena_new();
        AUTO(str_done) struct str doc = { 0 };
        struct err err;
        str_text(&doc, "{");
        for (int i = 0; i < 20000; i++)
            str_printf(&doc, "%s\"k%d\":%d", i ? "," : "", i == 19999 && twice ? 7 : i, i);
        str_text(&doc, "}");
        CHECK((parse_bytes(doc.at, doc.len, mem, &err) == NULL) == twice);
    }
}

TEST(members_are_found_and_trees_can_be_built)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    AUTO(str_done) struct str out = { 0 };
    struct err err;
    struct json *v = parse("{\"a\":\"x\",\"n\":5,\"f\":1.5,\"l\":[]}", mem, &err);
    CHECK(v && text_is(json_text(v, "a"), "x") && !json_text(v, "n") && !json_text(v, "z") && !json_text(NULL, "a"));
    CHECK(json_int(v, "n", -1) == 5 && json_int(v, "f", -1) == -1 && json_int(v, "a", -1) == -1);
    CHECK(!json_get(json_get(v, "l"), "a"));
    struct json *o = json_new(mem, JSON_OBJECT), *l = json_new(mem, JSON_LIST), *n = json_new(mem, JSON_NUMBER), *t = json_new(mem, JSON_TEXT);
    n->is_int = true, n->number = -7;
    t->text = "b\"";
    json_add(o, "list", l);
    json_add(l, NULL, n);
    json_add(l, NULL, t);
    json_print(&out, o);
    CHECK(text_is(out.at, "{\"list\":[-7,\"b\\\"\"]}"));
}

TEST(plain_scalars_print_as_what_they_spell)
{
    static const struct { const char *text, *out; } rows[] = {
        { "5", "5" }, { "-1.5e3", "-1.5e3" }, { "true", "true" }, { "false", "false" }, { "null", "\"null\"" }, { "05", "\"05\"" }, { "1:30", "\"1:30\"" },
        { "yes", "\"yes\"" }, { "", "\"\"" }, { "5 ", "\"5 \"" }, { "0x1", "\"0x1\"" }, { "-", "\"-\"" }, { "trueish", "\"trueish\"" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(str_done) struct str out = { 0 };
        json_print(&out, &(struct json){ .type = JSON_TEXT, .plain = true, .text = rows[i].text, .len = strlen(rows[i].text) });
        CHECK(text_is(out.at, rows[i].out));
    }
}

static void random_value(struct rng *r, struct json_out *o, int depth)
{
    char text[12];
    size_t n = rng_below(r, sizeof text);
    for (size_t i = 0; i < n; i++)
        text[i] = (char)rng_next(r);
    switch (rng_below(r, depth > 4 ? 4 : 6)) {
    case 0: json_put_bool(o, rng_below(r, 2)); break;
    case 1: json_put_int(o, (int64_t)rng_next(r) >> rng_below(r, 64)); break;
    case 2: json_put_bytes(o, text, n); break;
    case 3: json_put_text(o, rng_below(r, 2) ? NULL : "x"); break;
    case 4:
        json_open(o, '[');
        for (size_t i = 0; i < n; i++)
            random_value(r, o, depth + 1);
        json_close(o, ']');
        break;
    default:
        json_open(o, '{');
        for (size_t i = 0; i < n; i++) {
            char name[8];
            snprintf(name, sizeof name, "\t%zu", i);
            json_key(o, name);
            random_value(r, o, depth + 1);
        }
        json_close(o, '}');
    }
}

TEST(whatever_is_written_is_read_and_written_again_the_same)
{
    struct rng r = { 42 };
    for (int i = 0; i < 2000; i++) {
        AUTO(arena_free) struct arena *mem = arena_new();
        AUTO(str_done) struct str out = { 0 }, again = { 0 };
        struct err err;
        random_value(&r, &(struct json_out){ .to = &out }, 0);
        struct json *v = parse_bytes(out.at, out.len, mem, &err);
        if (!v)
            printf("# %s: %s\n", out.at, err.text);
        CHECK(v);
        if (v) {
            json_print(&again, v);
            CHECK(text_is(again.at, out.at));
        }
    }
}

TEST(random_damage_is_refused_or_read_but_never_harms)
{
    struct rng r = { 9 };
    const char *doc = "{\"name\":\"x\\u00e4\\ud83d\\ude00\xc3\xa4\",\"n\":[-12.5e+3,true,null,{\"a\":{}}],\"k\":12345678901234567890}";
    for (int i = 0; i < 20000; i++) {
        AUTO(arena_free) struct arena *mem = arena_new();
        char copy[128];
        struct err err;
        size_t n = strlen(doc);
        memcpy(copy, doc, n);
        for (size_t k = 0; k <= rng_below(&r, 3); k++)
            copy[rng_below(&r, n)] = rng_below(&r, 2) ? "{}[]\",:\\u0e"[rng_below(&r, 11)] : (char)rng_next(&r);
        struct json *v = parse_bytes(copy, n, mem, &err);
        if (v && i % 8 == 0) {
            AUTO(str_done) struct str out = { 0 };
            json_print(&out, v);
            CHECK(parse_bytes(out.at, out.len, mem, &err));
        }
    }
}

TEST(utf8_takes_scalar_values_and_nothing_else)
{
    size_t good = 0;
    for (uint32_t c = 0; c < 0x10ffff + 100; c++) {
        char b[4];
        bool scalar = c <= 0x10ffff && !(c >= 0xd800 && c <= 0xdfff);
        size_t n = utf8_put(b, c & 0x1fffff);
        if ((utf8_len(b, n) == n) != scalar || (n > 1 && utf8_len(b, n - 1)))
            CHECK(!"a code point is misjudged");
        good += scalar;
    }
    CHECK(good == 0x110000 - 0x800 && utf8_len("", 0) == 0 && utf8_len("\x80", 1) == 0);
}
