#include "model/house.h"
#include "base/err.h"
#include "tap.h"

TEST(a_taint_is_written_as_in_kubernetes)
{
    static const struct { const char *text, *is; } rows[] = {
        { "dedicated=vision:NoSchedule", "dedicated=vision" }, { "dedicated=vision", "dedicated=vision" }, { "maintenance:noschedule", "maintenance" },
        { "key=", "key" }, { "nvidia.com/gpu=present", "nvidia.com/gpu=present" },
    };
    char out[TAINT_TEXT];
    struct err err = { 0 };
    for (size_t i = 0; i < COUNT(rows); i++)
        CHECK(taint_parse(rows[i].text, "taint", out, &err) && text_is(out, rows[i].is));
    static const char *const bad[] = { "", "=v", ":NoSchedule", "a=b:NoExecute", "a=b:", "a b", "a=b c", "a\nb", "-a", "a=b=c",
                                       "a012345678901234567890123456789012345678901234567890123456789012345" };
    for (size_t i = 0; i < COUNT(bad); i++)
        CHECK(!taint_parse(bad[i], "taint", out, &err) && text_is(err.field, "taint"));
}

TEST(equal_houses_are_equal_texts)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct texts none = { 0 }, a = { (const char *[]){ "x=1", "a", "x=1" }, 3 }, b = { (const char *[]){ "a", "x=1" }, 2 };
    struct texts de = { (const char *[]){ "EU,de", "de" }, 2 }, eu = { (const char *[]){ "de eu" }, 1 };
    CHECK(!house_text(&none, 0, &none, mem) && !tolerations_text(&none, false, mem));
    CHECK(text_is(house_text(&a, 12, &de, mem), "T a\nT x=1\nX 12\nP de\nP eu\n") && text_is(house_text(&b, 12, &eu, mem), house_text(&a, 12, &de, mem)));
    CHECK(text_is(tolerations_text(&a, false, mem), "a\nx=1\n") && text_is(tolerations_text(&a, true, mem), "a\nx=1\n!alone\n") && house_project("X 12\n") == 12 && house_project("T a\nX 7\n") == 7 && house_project("T a\n") == 0);
}

TEST(a_house_admits_who_tolerates_its_taints_belongs_to_it_and_may_live_there)
{
    static const struct { const char *house; struct guest guest; enum house_says says; } rows[] = {
        { NULL, { NULL, NULL, 1 }, HOUSE_YES }, { NULL, { "a\n", NULL, 1 }, HOUSE_YES }, { NULL, { NULL, "eu", 1 }, HOUSE_RESIDENCY },
        { "T a=b\n", { NULL, NULL, 1 }, HOUSE_TAINT }, { "T a=b\n", { "a=b\n", NULL, 1 }, HOUSE_YES }, { "T a=b\n", { "a\n", NULL, 1 }, HOUSE_YES },
        { "T a=b\n", { "a=c\n", NULL, 1 }, HOUSE_TAINT }, { "T a=b\n", { "ab\n", NULL, 1 }, HOUSE_TAINT }, { "T a\n", { "a=b\n", NULL, 1 }, HOUSE_TAINT },
        { "T a=b\nT c\n", { "a\n", NULL, 1 }, HOUSE_TAINT }, { "T a=b\nT c\n", { "a\nc\n", NULL, 1 }, HOUSE_YES },
        { "X 12\n", { NULL, NULL, 12 }, HOUSE_YES }, { "X 12\n", { NULL, NULL, 1 }, HOUSE_EXCLUSIVE }, { "X 12\n", { NULL, NULL, 0 }, HOUSE_EXCLUSIVE },
        { "P eu\n", { NULL, NULL, 1 }, HOUSE_YES }, { "P eu\n", { NULL, "de,eu", 1 }, HOUSE_YES }, { "P eu\n", { NULL, "de,e", 1 }, HOUSE_RESIDENCY },
        { "P de\nP eu-west\n", { NULL, "eu", 1 }, HOUSE_RESIDENCY },
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        CHECK(house_admits(rows[i].house, &rows[i].guest) == rows[i].says);
}

TEST(words_are_bounded_and_each_once)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    const char *out;
    struct err err = { 0 };
    CHECK(words_parse("EU, de,eu", "residency", mem, &out, &err) && text_is(out, "de,eu") && words_parse("", "residency", mem, &out, &err) && text_is(out, ""));
    CHECK(!words_parse("e\nu", "residency", mem, &out, &err) && !words_parse("a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q", "residency", mem, &out, &err));
}

TEST(who_must_be_alone_comes_to_a_house_of_its_own_project_and_to_no_other)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    const struct texts none = { 0 };
    const struct guest g = { tolerations_text(&none, true, mem), NULL, 7 }, other = { NULL, NULL, 7 };
    CHECK(house_admits("X 7\n", &g) == HOUSE_YES && house_admits("X 8\n", &g) == HOUSE_EXCLUSIVE);
    CHECK(house_admits(NULL, &g) == HOUSE_SHARED && house_admits("P eu\n", &g) == HOUSE_SHARED && house_admits("T a\nX 7\n", &g) == HOUSE_TAINT);
    CHECK(house_admits(NULL, &other) == HOUSE_YES);
    char out[TAINT_TEXT];
    struct err err;
    CHECK(!taint_parse("!alone", "tolerations", out, &err)); /* nobody says so himself */
}
