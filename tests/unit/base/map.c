#include "base/map.h"
#include "base/rand.h"
#include "tap.h"

enum { KEYS = 300 };
static char values[KEYS][4];
static char texts[KEYS][8];

static int64_t key_of(size_t i) { return (int64_t)(i * 0x9e3779b97f4a7c15ULL) * (i % 2 ? 1 : -1); }

TEST(a_map_behaves_like_the_naive_one)
{
    for (int by_text = 0; by_text < 2; by_text++) {
        AUTO(map_free) struct map *m = map_new();
        void *model[KEYS] = { 0 };
        size_t count = 0;
        struct rng r = { 17 };
        for (size_t i = 0; i < KEYS; i++)
            snprintf(texts[i], sizeof texts[i], "k%zu", i);
        for (int step = 0; step < 60000; step++) {
            size_t i = rng_below(&r, step % 2000 < 1000 ? KEYS : 20);     /* wide and narrow, so that it grows and shrinks */
            void *got;
            switch (rng_below(&r, 3)) {
            case 0:
                by_text ? map_put_text(m, texts[i], values[i]) : map_put(m, key_of(i), values[i]);
                count += !model[i];
                model[i] = values[i];
                break;
            case 1:
                got = by_text ? map_take_text(m, texts[i]) : map_take(m, key_of(i));
                if (got != model[i])
                    CHECK(!"took something else");
                count -= model[i] != NULL;
                model[i] = NULL;
                break;
            default:
                got = by_text ? map_get_text(m, texts[i]) : map_get(m, key_of(i));
                if (got != model[i])
                    CHECK(!"found something else");
            }
            if (map_count(m) != count)
                CHECK(!"counted something else");
        }
        size_t seen = 0;
        char *v;
        for (size_t at = 0; (v = map_next(m, &at)); seen++)
            CHECK(model[(v - values[0]) / (ptrdiff_t)sizeof values[0]] == v);
        CHECK(seen == count);
    }
}

TEST(walking_goes_in_the_order_of_insertion)
{
    AUTO(map_free) struct map *m = map_new();
    char *v;
    size_t n = 0;
    for (size_t i = 0; i < KEYS; i++)
        map_put(m, key_of(i), values[i]);
    map_put(m, key_of(5), values[5]);       /* replacing is not inserting */
    for (size_t at = 0; (v = map_next(m, &at)); n++)
        CHECK(v == values[n]);
    CHECK(n == KEYS);
}

TEST(what_is_walked_over_may_be_removed)
{
    AUTO(map_free) struct map *m = map_new();
    char *v;
    for (size_t i = 0; i < KEYS; i++)
        map_put(m, (int64_t)i, values[i]);
    for (size_t at = 0; (v = map_next(m, &at));)
        if ((v - values[0]) / (ptrdiff_t)sizeof values[0] % 3)
            CHECK(map_take(m, (v - values[0]) / (ptrdiff_t)sizeof values[0]) == v);
    CHECK(map_count(m) == KEYS / 3 && map_get(m, 3) && !map_get(m, 4));
    for (size_t at = 0; (v = map_next(m, &at));)
        map_take(m, (v - values[0]) / (ptrdiff_t)sizeof values[0]);
    CHECK(map_count(m) == 0);
}

TEST(numbers_and_texts_do_not_meet)
{
    AUTO(map_free) struct map *m = map_new();
    char key[2][4] = { "a", "a" };
    CHECK(!map_get(m, 0) && !map_get_text(m, "a") && !map_take(m, 0));
    map_put_text(m, "", values[0]);
    map_put(m, 0, values[1]);
    CHECK(map_get_text(m, "") == values[0] && map_get(m, 0) == values[1] && map_count(m) == 2);
    map_put_text(m, key[0], values[2]);
    map_put_text(m, key[1], values[3]);     /* the key of the new value stands in for the old one, which may go away now */
    key[0][0] = 'z';
    CHECK(map_get_text(m, "a") == values[3] && map_count(m) == 3);
    map_free(NULL);
}
