#include "base/id.h"
#include "tap.h"

TEST(ids_rise_even_when_the_clock_does_not)
{
    struct id_maker m = { .rng = { 3 } };
    struct rng r = { 8 };
    int64_t now = 1800000000000, before = 0;
    char last[ID_TEXT] = "", text[ID_TEXT];
    for (int i = 0; i < 20000; i++) {
        now += (int64_t)rng_below(&r, 5) - 2;
        if (i == 7000)
            now -= 86400000;                /* somebody set the clock back */
        int64_t id = id_make(&m, now);
        id_text(text, "job", id);
        if (id <= before || id < 0 || strcmp(last, text) >= 0)
            CHECK(!"an id does not lie above the one before");
        before = id;
        memcpy(last, text, sizeof last);
    }
    CHECK(id_make(&m, INT64_MIN / 2) > before);
}

TEST(ids_of_different_makers_rarely_meet)
{
    struct id_maker a = { .rng = { 1 } }, b = { .rng = { 2 } };
    int same = 0;
    for (int i = 0; i < 1000; i++)
        same += id_make(&a, 1800000000000 + i) == id_make(&b, 1800000000000 + i);
    CHECK(same == 0);
}

TEST(ids_come_back_from_their_text)
{
    struct rng r = { 5 };
    for (int i = 0; i < 5000; i++) {
        int64_t id = (int64_t)(rng_next(&r) >> 1) >> rng_below(&r, 63), back = -1;
        char text[ID_TEXT];
        CHECK(id_parse(id_text(text, "job", id), "job", &back) && back == id && strlen(text) == 17);
    }
    int64_t back;
    char text[ID_TEXT];
    CHECK(id_parse(id_text(text, "job", INT64_MAX), "job", &back) && back == INT64_MAX);
    CHECK(strlen(id_text(text, "eightlet", 0)) == 22 && strlen(id_text(text, "muchtoolongprefix", 0)) == 22);
}

TEST(only_what_is_printed_is_taken)
{
    static const char *const bad[] = {
        "", "job", "job-", "job-000000000000", "job-00000000000000", "nod-0000000000000", "job_0000000000000", "job-000000000000O", "job-000000000000i", "job-000000000000A",
        "job-8000000000000", "job-zzzzzzzzzzzzz", " job-0000000000000", "job-0000000000000 ", "Job-0000000000000", "job--000000000000",
    };
    int64_t id = 77;
    for (size_t i = 0; i < COUNT(bad); i++)
        CHECK(!id_parse(bad[i], "job", &id) && id == 77);
    CHECK(!id_parse(NULL, "job", &id) && id_parse("job-7zzzzzzzzzzzz", "job", &id) && id == INT64_MAX);
}
