#include "base/when.h"
#include "base/rand.h"
#include "tap.h"

TEST(times_come_back_from_their_text)
{
    struct rng r = { 2 };
    char text[WHEN_TEXT];
    int64_t back;
    for (int i = 0; i < 5000; i++) {
        int64_t ms = (int64_t)rng_below(&r, 253402300800000);       /* up to the year 9999 */
        CHECK(when_parse(when_text(text, ms), &back) && back == ms);
    }
    CHECK(text_is(when_text(text, 0), "1970-01-01T00:00:00.000Z") && text_is(when_text(text, -1), "1969-12-31T23:59:59.999Z"));
    CHECK(text_is(when_text(text, 1767323045120), "2026-01-02T03:04:05.120Z"));
    CHECK(strlen(when_text(text, INT64_MAX)) < WHEN_TEXT && strlen(when_text(text, INT64_MIN + 1000)) < WHEN_TEXT);
}

TEST(rfc_3339_is_taken_and_nothing_near_it)
{
    static const struct { const char *text; int64_t ms; } good[] = {
        { "2026-01-02", 1767312000000 }, { "2026-01-02T03:04:05Z", 1767323045000 }, { "2026-01-02t03:04:05z", 1767323045000 }, { "2026-01-02 03:04:05Z", 1767323045000 },
        { "2026-01-02T03:04:05.1239Z", 1767323045123 }, { "2026-01-02T05:04:05.5+02:00", 1767323045500 }, { "2026-01-01T21:34:05-05:30", 1767323045000 }, { "2024-02-29", 1709164800000 }, { "2000-02-29", 951782400000 },
    };
    static const char *const bad[] = {
        "", "2026", "2026-1-2", "2026-01-02T", "2026-01-02T03:04", "2026-01-02T03:04:05", "2026-01-02T03:04:05.Z", "2026-01-02T3:04:05Z", "2026- 1- 2", "+026-01-02", "2026-13-01", "2026-00-01", "2026-01-32",
        "2026-01-00", "2026-02-29", "2100-02-29", "2026-04-31", "1969-12-31", "2026-01-02T24:00:00Z", "2026-01-02T03:60:05Z", "2026-01-02T03:04:61Z", "2026-01-02T03:04:05+2:00", "2026-01-02T03:04:05+0200",
        "2026-01-02T03:04:05+24:00", "2026-01-02T03:04:05Zx", " 2026-01-02", "2026-01-02 ", "02026-01-02", "2026/01/02", "yesterday", "1767323045",
    };
    int64_t ms;
    for (size_t i = 0; i < COUNT(good); i++) {
        bool ok = when_parse(good[i].text, &ms);
        if (!ok || ms != good[i].ms)
            printf("# %s: %lld\n", good[i].text, (long long)ms);
        CHECK(ok && ms == good[i].ms);
    }
    ms = 77;
    for (size_t i = 0; i < COUNT(bad); i++) {
        if (when_parse(bad[i], &ms))
            printf("# taken: %s\n", bad[i]);
        CHECK(ms == 77);
    }
}

TEST(spans_are_read_as_people_and_slurm_write_them)
{
    static const struct { const char *text; int64_t s; } good[] = {
        { "0", 0 }, { "90", 90 }, { "10m", 600 }, { "1h30m", 5400 }, { "2d", 172800 }, { "1d2h3m4s", 93784 }, { "90s", 90 }, { "1d1s", 86401 }, { "1:30", 90 }, { "1:30:00", 5400 }, { "100:00", 6000 },
        { "100:00:00", 360000 }, { "1-0", 86400 }, { "1-12", 129600 }, { "1-12:30", 131400 }, { "1-12:30:05", 131405 }, { "0-0:0:1", 1 }, { "3650d", 315360000 },
    };
    static const char *const bad[] = {
        "", " ", "m", "h1", "1x", "1h30", "1h30x", "0m5", "1m1h", "1h1h", "1.5h", "-5", "+5", "- 5", "5-", "1--2", "1-2-3", "1:", ":1", "1::2", "1:60", "1:2:60", "1:2:3:4", "1-24", "1-1:60", "1-1:1:1:1", "1 h", "1h ", " 1h", "1H",
        "99999999999999999999", "9223372036854775807", "99999d", "99999999h", "4000-0", "99999999:00:00", "1h-", "one", "0x10", "1e3",
    };
    int64_t s;
    for (size_t i = 0; i < COUNT(good); i++) {
        bool ok = span_parse(good[i].text, &s);
        if (!ok || s != good[i].s)
            printf("# %s: %d %lld\n", good[i].text, ok, (long long)s);
        CHECK(ok && s == good[i].s);
    }
    s = 77;
    for (size_t i = 0; i < COUNT(bad); i++) {
        if (span_parse(bad[i], &s))
            printf("# taken: %s as %lld\n", bad[i], (long long)s);
        CHECK(s == 77);
    }
}

TEST(printed_spans_are_read_and_never_longer_than_they_were)
{
    struct rng r = { 12 };
    char text[WHEN_TEXT];
    int64_t back;
    for (int i = 0; i < 5000; i++) {
        int64_t s = (int64_t)rng_below(&r, 10LL * 365 * 86400) >> rng_below(&r, 28);
        CHECK(span_parse(span_text(text, s), &back) && back <= s && s - back < (s > 86400 ? 3600 : 60) && (s >= 3600 || back == s));
    }
    CHECK(text_is(span_text(text, 0), "0s") && text_is(span_text(text, 93784), "1d2h") && text_is(span_text(text, 200), "3m20s") && text_is(span_text(text, 3605), "1h5s"));
    CHECK(strlen(span_text(text, INT64_MAX)) < WHEN_TEXT && strlen(span_text(text, INT64_MIN)) < WHEN_TEXT);
}

TEST(sizes_round_up_and_do_not_overflow)
{
    static const struct { const char *text; int64_t mib; } good[] = {
        { "16", 16384 }, { "512MB", 512 }, { "512m", 512 }, { "16GiB", 16384 }, { "16 GB", 16384 }, { "1.5GB", 1536 }, { "2TB", 2097152 }, { "0", 0 }, { "1B", 1 }, { "1048576B", 1 }, { "1048577B", 2 }, { "1KB", 1 }, { "1025K", 2 },
        { "0.5", 512 }, { "0.0001GB", 1 }, { "1.0001GB", 1025 }, { "1.000000001GB", 1025 }, { "1048576TB", 1LL << 40 },
    };
    static const char *const bad[] = { "", "GB", "-1", "+1", "1XB", "1.GB", ".5GB", "1..5", "1.5.5", "1GB ", " 1GB", "1 G B", "1e3", "0x1", "1048577TB", "99999999999999999999", "9223372036854775807TB", "1,5GB", "1GBB", "1PB", "1.0000000001GB" };
    int64_t mib;
    for (size_t i = 0; i < COUNT(good); i++) {
        bool ok = mib_parse(good[i].text, &mib);
        if (!ok || mib != good[i].mib)
            printf("# %s: %d %lld\n", good[i].text, ok, (long long)mib);
        CHECK(ok && mib == good[i].mib);
    }
    mib = 77;
    for (size_t i = 0; i < COUNT(bad); i++) {
        if (mib_parse(bad[i], &mib))
            printf("# taken: %s as %lld\n", bad[i], (long long)mib);
        CHECK(mib == 77);
    }
}

TEST(thousandths_are_exact)
{
    int64_t n;
    char text[32];
    for (int64_t i = -2500; i < 2500; i++) {
        snprintf(text, sizeof text, "%s%d.%03d", i < 0 ? "-" : "", (int)(i < 0 ? -i : i) / 1000, (int)(i < 0 ? -i : i) % 1000);
        CHECK(milli_parse(text, &n) && n == i);
    }
    CHECK(milli_parse("1000000000", &n) && n == 1000000000000 && milli_parse("0.1", &n) && n == 100 && milli_parse("2.50", &n) && n == 2500);
    static const char *const bad[] = { "", ".", ".5", "5.", "-", "--1", "+1", "1.2345", "1.0000", "1e3", "1 ", " 1", "1000000001", "99999999999999999999", "0x1", "1,5", "nan" };
    n = 77;
    for (size_t i = 0; i < COUNT(bad); i++)
        CHECK(!milli_parse(bad[i], &n) && n == 77);
}
