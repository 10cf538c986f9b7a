#include "wire/bind_value.h"
#include "base/rand.h"
#include "sample.h"
#include "tap.h"

static bool fits(const char *pattern, const char *text)
{
    struct err err;
    return value_text_ok(SLICE(text), 200, pattern, &err);
}

TEST(classes_of_texts_hold_at_their_edges)
{
    char name[80];
    memset(name, 'a', sizeof name);
    name[63] = 0;
    CHECK(fits("name", name) && fits("name", "a") && fits("name", "0") && fits("name", "a..b"));
    name[63] = 'a', name[64] = 0;
    CHECK(!fits("name", name) && !fits("name", "a_") && !fits("name", "_a") && !fits("name", "a b") && !fits("name", "\xc3\xa4") && !fits("name", "a\n"));
    CHECK(fits("label", "A/b.c_d-e") && !fits("label", "-a") && !fits("label", "") && !fits("label", "a:b"));
    CHECK(fits("path", "/") && fits("path", "/a b/..c/d..") && fits("path", "/...") && !fits("path", "/a/..") && !fits("path", "") && !fits("path", "a/b"));
    CHECK(fits("digest", "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"));
    CHECK(!fits("digest", "sha256:0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef") && !fits("digest", "md5:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"));
    CHECK(fits(NULL, "any\ttext\n\xf0\x9f\x98\x80") && fits(NULL, "") && !fits(NULL, "\x1b") && !fits(NULL, "\xff") && !fits(NULL, "\xc2\x9b") && fits(NULL, "\xc2\xa0"));
}

TEST(a_text_with_nul_is_refused_whatever_its_field)
{
    for (int type = 0; type < FIELD_TYPE_COUNT; type++) {
        AUTO(arena_free) struct arena *mem = arena_new();
        struct field f = { .name = "x", .type = (enum field_type)type, .names = &(struct names){ (const char *const[]){ "a" }, 1 }, .prefix = "job" };
        char room[64] = "";
        struct err err;
        static const char *const starts[] = { "1", "a", "A=b", "1h", "true", "2026-01-01", "job-0000000000000" };
        for (size_t i = 0; bind_kinds[type].read && i < COUNT(starts); i++) {
            char text[40];
            size_t n = strlen(starts[i]);
            memcpy(text, starts[i], n + 1);
            memcpy(text + n + 1, "zz", 3);
            CHECK(!bind_kinds[type].read(&f, (struct slice){ text, n + 2 }, mem, room, &err));
        }
    }
}

TEST(limits_may_be_one_sided)
{
    struct err err;
    CHECK(value_in_limits(&(struct field){ .type = F_INT }, INT64_MIN, &err));
    CHECK(value_in_limits(&(struct field){ .type = F_INT, .min = 1 }, INT64_MAX, &err) && !value_in_limits(&(struct field){ .type = F_INT, .min = 1 }, 0, &err));
    CHECK(strstr(err.text, "at least 1"));
    CHECK(!value_in_limits(&(struct field){ .type = F_INT, .max = 5 }, -1, &err) && value_in_limits(&(struct field){ .type = F_INT, .max = 5 }, 0, &err));
    CHECK(value_in_limits(&(struct field){ .type = F_INT, .min = -5 }, 0, &err) && !value_in_limits(&(struct field){ .type = F_INT, .min = -5 }, 1, &err));
}

TEST(lists_grow_and_keep_their_entries)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct field f = { .name = "x", .type = F_TEXTS, .max = 1000 };
    struct texts list = { 0 };
    struct pairs pairs = { 0 };
    struct err err;
    char text[16];
    for (int i = 0; i < 1000; i++) {
        snprintf(text, sizeof text, "k%d", i);
        CHECK(value_add_text(&f, SLICE(text), mem, &list, &err) && value_add_pair(&f, SLICE(text), SLICE("v"), mem, &pairs, &err));
    }
    CHECK(!value_add_text(&f, SLICE("x"), mem, &list, &err) && list.count == 1000 && text_is(list.at[999], "k999") && text_is(list.at[0], "k0"));
    CHECK(pairs.count == 1000 && text_is(pairs.at[500].key, "k500"));
}
