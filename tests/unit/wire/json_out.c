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
