#include "wire/json.h"
#include "tap.h"

TEST(the_writer_puts_its_commas)
{
    AUTO(str_done) struct str out = { 0 };
    struct json_out o = { .to = &out };
    json_open(&o, '[');
    json_put_int(&o, INT64_MIN);
    json_open(&o, '{');
    json_key(&o, "a\"");
    json_put_text(&o, NULL);
    json_key(&o, "b");
    json_open(&o, '[');
    json_close(&o, ']');
    json_key(&o, "c");
    json_put_raw(&o, "{\"x\":1}");
    json_close(&o, '}');
    json_put_bool(&o, true);
    json_put_raw(&o, NULL);
    json_put_int(&o, 0);
    json_put_int(&o, INT64_MAX);
    json_close(&o, ']');
    CHECK(text_is(out.at, "[-9223372036854775808,{\"a\\\"\":null,\"b\":[],\"c\":{\"x\":1}},true,null,0,9223372036854775807]"));
}

TEST(bytes_that_are_no_text_become_the_replacement_character)
{
    static const struct { const char *in; size_t n; const char *out; } rows[] = {
        { "a\0b", 3, "\"a\xef\xbf\xbd" "b\"" }, { "\xff", 1, "\"\xef\xbf\xbd\"" }, { "\xc3", 1, "\"\xef\xbf\xbd\"" }, { "\xc3\xa4\xe2\x82", 4, "\"\xc3\xa4\xef\xbf\xbd\xef\xbf\xbd\"" },
        { "\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" }, { "", 0, "\"\"" }, { "\x1b[0m\x01", 5, "\"\\u001b[0m\\u0001\"" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(str_done) struct str out = { 0 };
        json_put_bytes(&(struct json_out){ .to = &out }, rows[i].in, rows[i].n);
        CHECK(text_is(out.at, rows[i].out));
    }
}

TEST(names_of_ours_are_put_as_they_are)
{
    AUTO(str_done) struct str s = { 0 };
    struct json_out o = { .to = &s };
    json_open(&o, '{');
    json_name(&o, "a");
    json_put_int(&o, 1);
    json_name(&o, "a_name_that_is_longer_than_what_a_buffer_has_at_first_and_so_makes_it_grow");
    json_put_text(&o, "x");
    json_close(&o, '}');
    CHECK(text_is(s.at, "{\"a\":1,\"a_name_that_is_longer_than_what_a_buffer_has_at_first_and_so_makes_it_grow\":\"x\"}"));
}

/* Eight bytes are looked at together, the last eight with some of those before: an odd one must be found wherever it is. */
TEST(what_must_be_escaped_is_found_at_every_place)
{
    for (size_t n = 1; n < 40; n++)
        for (size_t at = 0; at < n; at++) {
            AUTO(str_done) struct str s = { 0 };
            struct json_out o = { .to = &s };
            char text[40] = "";
            memset(text, 'a', n);
            text[at] = '"';
            json_put_text(&o, text);
            CHECK(s.len == n + 3 && s.at[1 + at] == '\\' && s.at[2 + at] == '"' && strlen(s.at) == s.len);
        }
}
