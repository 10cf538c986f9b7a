#include "world.h"

TEST(nothing_but_loopback_is_served_without_tls)
{
    static const char *const far[]
        = { "0.0.0.0:0", "192.0.2.1:0", "[::]:0", "example.org:80", "1270.0.0.1:0" };
    struct world w;
    world_open(&w);
    for (size_t i = 0; i < COUNT(far); i++) {
        struct api *a = NULL;
        struct err err = { 0 };
        struct api_config config = { .address = far[i], .data = w.data, .version = "1" };
        CHECK(!api_open(w.os, w.control, &config, &a, &err) && err.rc == RC_BAD_INPUT
              && strstr(err.text, "loopback"));
    }
    world_close(&w);
}

TEST(a_server_that_cannot_open_says_why_and_leaves_nothing)
{
    struct world w;
    struct api *a = NULL;
    struct err err = { 0 };
    world_open(&w);
    struct api_config config
        = { .address = "127.0.0.1:0", .data = "/proc/nowhere", .version = "1" };
    CHECK(!api_open(w.os, w.control, &config, &a, &err) && strstr(err.text, "blobs"));
    config.data = w.data;
    config.address = api_address(w.api);                     /* taken */
    CHECK(!api_open(w.os, w.control, &config, &a, &err) && err.text[0]);
    world_close(&w);
}

struct raw { struct stream *stream; struct str got; bool closed; };
static size_t raw_data(void *arg, const char *at, size_t n)
{
    return str_put(&((struct raw *)arg)->got, at, n), n;
}
static void raw_close(void *arg, const struct err *why)
{
    (void)why, ((struct raw *)arg)->closed = true;
}
static bool raw_closed(void *arg) { return ((struct raw *)arg)->closed; }

TEST(a_request_that_is_not_http_gets_a_problem_and_no_more)
{
    static const struct { const char *text; const char *status; } bad[] = {
        { "GET /v1/jobs HTTP/1.1\r\n\r\n", "400" },
        { "GET /v1/jobs HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "400" },
        { "GET /v1/jobs HTTP/1.1\r\nHost : a\r\n\r\n", "400" },
        { "POST /v1/jobs HTTP/1.1\r\nHost: a\r\nContent-Length: 10485760\r\n\r\n", "413" },
    };
    static const struct stream_events events = { .on_data = raw_data, .on_close = raw_close };
    struct world w;
    world_open(&w);
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct raw r = { 0 };
        r.stream = stream_dial(w.os, api_address(w.api), NULL, NULL, &events, &r);
        stream_write(r.stream, bad[i].text, strlen(bad[i].text));
        CHECK(world_until(&w, raw_closed, &r));
        CHECK(r.got.len > 12 && memcmp(r.got.at + 9, bad[i].status, 3) == 0);
        CHECK(strstr(r.got.at, "application/problem+json")
              && strstr(r.got.at, "\"instance\":\"req-"));
        str_done(&r.got);
    }
    world_close(&w);
}
