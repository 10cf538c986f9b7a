#include "agent/log_format.h"
#include "tap.h"
#include <stdio.h>

static void put(struct str *s, int64_t at, char stream, const char *text)
{
    char head[LOG_HEADER_MAX];
    str_put(s, head, log_header(head, at, stream, strlen(text)));
    str_text(s, text);
}

TEST(records_come_back_in_order_with_their_time_and_stream)
{
    AUTO(str_done) struct str s = {0};
    put(&s, 1731677000123, 'o', "one\n");
    put(&s, 1731677000124, 'e', "");
    put(&s, 0, 'o', "1 o 5\nlooks like a header");
    struct slice in = { s.at, s.len };
    struct log_record r;
    CHECK(log_next(&in, &r) == LOG_RECORD && r.at_ms == 1731677000123 && r.stream == 'o' && r.bytes.len == 4 && memcmp(r.bytes.at, "one\n", 4) == 0);
    CHECK(log_next(&in, &r) == LOG_RECORD && r.stream == 'e' && r.bytes.len == 0);
    CHECK(log_next(&in, &r) == LOG_RECORD && r.bytes.len == strlen("1 o 5\nlooks like a header"));
    CHECK(log_next(&in, &r) == LOG_MORE && in.len == 0);
}

TEST(a_record_cut_anywhere_is_not_there_yet)
{
    AUTO(str_done) struct str s = {0};
    put(&s, 1731677000123, 'e', "some words");
    for (size_t n = 0; n < s.len; n++) {
        struct slice in = { s.at, n };
        struct log_record r = { .stream = 'x' };
        CHECK(log_next(&in, &r) == LOG_MORE);
        CHECK(in.at == s.at && in.len == n && r.stream == 'x');
    }
}

TEST(what_is_not_a_log_is_refused)
{
    const char *bad[] = { "x", " o 5\n", "12o 5\n", "12 x 5\n", "12 o5\n", "12 o \n", "12 o 5 \n", "12 o -5\n", "12 o 65537\n", "99999999999999999999 o 1\n", "\n" };
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct slice in = SLICE(bad[i]);
        struct log_record r;
        CHECK(log_next(&in, &r) == LOG_BROKEN);
    }
}

TEST(segments_are_named_by_eight_digits)
{
    char name[LOG_SEGMENT_NAME + 1];
    int64_t n = 0;
    log_segment_name(name, 42);
    CHECK(strcmp(name, "00000042") == 0 && log_is_segment(name, &n) && n == 42);
    CHECK(!log_is_segment("00000000", &n) && !log_is_segment("0000004", &n) && !log_is_segment("000000421", &n) && !log_is_segment("0000004x", &n));
}
