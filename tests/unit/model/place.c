#include "model/place.h"
#include "tap.h"

TEST(an_address_is_read_and_written_the_same)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    static const char *const good[] = { "", "eu", "eu/a", "eu/a/s1/r12/n3", "eu//s1", "/a", "eu///r1", "US-East_1.b/A" };
    char text[PLACE_ADDRESS];
    for (size_t i = 0; i < COUNT(good); i++) {
        struct topology w;
        struct err err = { 0 };
        if (!where_parse(good[i], mem, &w, &err) || !text_is(where_text(&w, text), good[i]))
            CHECK(!good[i]);
    }
    struct topology w;
    struct err err = { 0 };
    CHECK(where_parse("eu/a//r1/", mem, &w, &err) && text_is(where_text(&w, text), "eu/a//r1") && !w.at[PLACE_SWITCH]);
}

TEST(what_is_no_address_is_refused_in_words)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    static const char *const bad[] = { "a/b/c/d/e/f", "eu west", "eu/-a", "eu/a/\xc3\xa4", "12345678901234567890123456789012" };
    struct topology w = { .at = { [PLACE_REGION] = "kept" } };
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct err err = { 0 };
        CHECK(!where_parse(bad[i], mem, &w, &err) && err.rc == RC_BAD_INPUT && err.text[0]);
    }
    CHECK(text_is(w.at[PLACE_REGION], "kept"));
    struct err err = { 0 };
    CHECK(place_name_check("zone", NULL, &err) && place_name_check("zone", "", &err) && place_name_check("zone", "a", &err)
          && !place_name_check("zone", "a/b", &err) && text_is(err.field, "zone"));
}

TEST(the_longest_address_has_room)
{
    static const char name[] = "1234567890123456789012345678901";
    char text[PLACE_ADDRESS];
    struct topology w = { .at = { NULL, name, name, name, name, name } };
    CHECK(strlen(name) == PLACE_NAME - 1 && strlen(where_text(&w, text)) == 5 * strlen(name) + 4);
}

TEST(the_operator_s_word_counts_before_the_agent_s)
{
    struct topology over = { .at = { [PLACE_ZONE] = "b", [PLACE_RACK] = "" } }, under = { .at = { NULL, "eu", "a", "s1", "r1", NULL } };
    struct topology w = where_over(&over, &under);
    char text[PLACE_ADDRESS];
    CHECK(text_is(where_text(&w, text), "eu/b/s1/r1"));
    CHECK(where_fits(&w, NULL, NULL) && where_fits(&w, "eu", "") && where_fits(&w, "", "b") && !where_fits(&w, "us", "b")
          && !where_fits(&w, NULL, "a") && !where_fits(&(struct topology){ 0 }, "eu", NULL));
}
