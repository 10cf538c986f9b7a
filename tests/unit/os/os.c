#include "os/os_internal.h"
#include "tap.h"

static bool is(const char *text, const char *host, const char *port)
{
    struct address a;
    struct err err = { 0 };
    return address_parse(text, &a, &err) && text_is(a.host, host) && text_is(a.port, port);
}
static bool refused(const char *text)
{
    struct address a;
    struct err err = { 0 };
    return !address_parse(text, &a, &err) && err.rc == RC_BAD_INPUT && *err.text;
}

TEST(an_address_is_a_host_and_a_port_or_a_path)
{
    CHECK(is("127.0.0.1:6640", "127.0.0.1", "6640") && is("[::1]:1", "::1", "1"));
    CHECK(is("node-7.example:065", "node-7.example", "65") && is("0.0.0.0:0", "0.0.0.0", "0"));
    CHECK(is("unix:/run/a.sock", "/run/a.sock", ""));
    CHECK(refused(NULL) && refused("") && refused(":") && refused("a") && refused("a:")
          && refused(":1"));
    CHECK(refused("a:-1") && refused("a:65536") && refused("a:100000") && refused("a:1 ")
          && refused("a:+1"));
    CHECK(refused("::1:80") && refused("[]:80") && refused("[::1]") && refused("unix:")
          && refused("unix:a"));
    char longest[400] = "unix:/";
    memset(longest + 6, 'x', 120);
    CHECK(refused(longest));
    memset(longest, 'x', 300);
    memcpy(longest + 300, ":1", 3);
    CHECK(refused(longest));
}

TEST(the_folder_of_a_path_is_what_stands_before_its_last_slash)
{
    char out[4096];
    CHECK((path_folder("/a/b/c", out), text_is(out, "/a/b")));
    CHECK((path_folder("/a", out), text_is(out, "/")));
    CHECK((path_folder("a", out), text_is(out, ".")));
    CHECK(name_is_temporary(".tmp-1") && !name_is_temporary("tmp") && !name_is_temporary(""));
}
