#include "wire/http_parse.h"
#include "base/rand.h"
#include "tap.h"

TEST(percent_encoding_comes_back_the_same)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct rng r = { 7 };
    for (int i = 0; i < 500; i++) {
        char text[24] = "";
        for (size_t n = 0; n < rng_below(&r, 20); n++)
            text[n] = (char)(1 + rng_below(&r, 127)), text[n + 1] = 0;
        AUTO(str_done) struct str e = { 0 };
        char *back;
        str_text(&e, "");
        url_encode(&e, text);
        CHECK(url_decode((struct slice){ e.at, e.len }, true, mem, &back) && text_is(back, text));
        CHECK(strspn(e.at, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~%") == e.len);
    }
}

TEST(bad_escapes_nul_and_bad_utf8_are_refused)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    static const char *const bad[] = { "%", "%4", "a%", "%zz", "%0", "%00", "a%00b", "%ff", "%c3", "%c0%80", "%ed%a0%80", "%4g", "% 4", "%+4", "\xff" };
    char *out = NULL;
    for (size_t i = 0; i < COUNT(bad); i++)
        CHECK(!url_decode(SLICE(bad[i]), false, mem, &out) && !out);
    CHECK(url_decode(SLICE("a+b%2Bc%c3%A4"), false, mem, &out) && text_is(out, "a+b+c\xc3\xa4"));
    CHECK(url_decode(SLICE("a+b%2Bc"), true, mem, &out) && text_is(out, "a b+c"));
    CHECK(url_decode(SLICE(""), true, mem, &out) && text_is(out, ""));
}
