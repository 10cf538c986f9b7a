#include "base/rand.h"
#include "base/str.h"
#include "tap.h"
#include <stdlib.h>

TEST(a_buffer_behaves_like_the_naive_one)
{
    struct rng r = { 4 };
    AUTO(str_done) struct str s = { 0 };
    char *model = calloc(1, 1 << 20);
    size_t len = 0;
    for (int i = 0; i < 3000; i++) {
        char piece[64];
        size_t n = rng_below(&r, sizeof piece);
        for (size_t k = 0; k < n; k++)
            piece[k] = (char)('a' + rng_below(&r, 26));
        switch (rng_below(&r, 6)) {
        case 0: str_char(&s, 'c'), model[len++] = 'c'; break;
        case 1:
            n = rng_below(&r, len + 1);
            str_drop(&s, n);
            memmove(model, model + n, len - n), len -= n;
            break;
        case 2: str_printf(&s, "%.*s|", (int)n, piece), memcpy(model + len, piece, n), len += n, model[len++] = '|'; break;
        case 3: memset(str_grow(&s, n), 'x', n); break;     /* room is not length */
        default: str_put(&s, piece, n), memcpy(model + len, piece, n), len += n; break;
        }
        str_put(&s, NULL, 0);
        if (s.len != len || memcmp(s.at, model, len) || s.at[s.len])
            CHECK(!"differs from the model");
    }
    str_clear(&s);
    CHECK(s.len == 0 && s.at[0] == 0 && s.room > 0);
    free(model);
}

TEST(an_empty_buffer_can_be_cleared_dropped_and_done)
{
    struct str s = { 0 };
    str_clear(&s);
    str_drop(&s, 0);
    str_done(&s);
    str_text(&s, "a");
    str_done(&s);
    CHECK(!s.at && !s.len && !s.room);
}

TEST(copies_end_where_they_end)
{
    AUTO(arena_free) struct arena *a = arena_new();
    char out[4] = "old";
    CHECK(text_is(arena_bytes(a, "abc", 2), "ab") && text_is(arena_bytes(a, NULL, 0), "") && !arena_text(a, NULL) && text_is(arena_text(a, "x"), "x"));
    CHECK(!text_copy(out, sizeof out, "four") && text_is(out, "old") && text_copy(out, sizeof out, "abc") && text_is(out, "abc") && text_copy(out, 1, "") && !text_copy(out, 0, ""));
}

static size_t naive(const char *a, const char *b)
{
    if (!*a || !*b)
        return strlen(*a ? a : b);
    size_t x = naive(a + 1, b) + 1, y = naive(a, b + 1) + 1, z = naive(a + 1, b + 1) + (*a != *b);
    return MIN(MIN(x, y), z);
}

TEST(the_distance_is_levenshteins)
{
    struct rng r = { 6 };
    for (int i = 0; i < 300; i++) {
        char a[7] = "", b[7] = "";
        for (size_t k = 0, n = rng_below(&r, 6); k < n; k++)
            a[k] = "abc"[rng_below(&r, 3)];
        for (size_t k = 0, n = rng_below(&r, 6); k < n; k++)
            b[k] = "abc"[rng_below(&r, 3)];
        CHECK(text_distance(a, b) == naive(a, b) && text_distance(a, b) == text_distance(b, a));
    }
    char big[200];
    memset(big, 'a', 199), big[199] = 0;
    CHECK(text_distance(big, "a") == 64 && text_distance("gpus", "gpu") == 1 && text_distance("", "abc") == 3);
}

TEST(texts_compare_without_fear_of_null)
{
    CHECK(!text_is(NULL, NULL) && !text_is("a", NULL) && text_is("a", "a") && !text_given(NULL) && !text_given("") && text_given("a"));
    CHECK(text_starts("abc", "ab") && !text_starts("a", "ab") && !text_starts(NULL, "a") && text_starts("", ""));
}
