#include "world.h"

static void talk(struct raw *r, struct world *w, const char *say)
{
    world_open(w, WORLD_TCP, NULL);
    raw_dial(r, w);
    raw_say(r, say);
}

static void hang_up(struct raw *r, struct world *w)
{
    raw_done(r);
    world_close(w);
}

TEST(a_reply_in_pieces_is_chunked)
{
    struct world w;
    struct raw r;
    talk(&r, &w, "GET /pieces HTTP/1.1\r\nHost: h\r\n\r\n");
    CHECK(raw_has(&r, "\r\n\r\n4\r\none \r\n3\r\ntwo\r\n0\r\n\r\n"));
    CHECK(raw_count(&r, "Transfer-Encoding: chunked\r\n") == 1 && raw_count(&r, "Content-Length") == 0);
    hang_up(&r, &w);
}

TEST(head_gets_the_head_alone)
{
    struct world w;
    struct raw r;
    talk(&r, &w, "HEAD /hello HTTP/1.1\r\nHost: h\r\n\r\nHEAD /pieces HTTP/1.1\r\nHost: h\r\n\r\nGET /nothing HTTP/1.1\r\nHost: h\r\n\r\n");
    CHECK(raw_has(&r, "HTTP/1.1 204 No Content\r\n"));
    CHECK(raw_count(&r, "Content-Length: 5\r\n") == 1 && raw_count(&r, "hello") == 0);
    CHECK(raw_count(&r, "Transfer-Encoding: chunked\r\n") == 1 && raw_count(&r, "two") == 0 && raw_count(&r, "\r\n0\r\n") == 0);
    CHECK(raw_count(&r, "Content-Length") == 1);        /* a 204 has none */
    hang_up(&r, &w);
}

TEST(a_reply_that_breaks_off_never_looks_whole)
{
    static const char *const paths[] = { "GET /abort HTTP/1.1\r\nHost: h\r\n\r\n", "GET /short HTTP/1.1\r\nHost: h\r\n\r\n" };
    for (size_t i = 0; i < COUNT(paths); i++) {
        struct world w;
        struct raw r;
        talk(&r, &w, paths[i]);
        CHECK(raw_closed(&r));
        CHECK(raw_count(&r, "Content-Length: 10\r\n") <= 1 && raw_count(&r, "HTTP/1.1") <= 1);
        CHECK(w.gone == 0 && w.requests == 1);
        hang_up(&r, &w);
    }
}

TEST(a_large_streamed_reply_goes_out_as_the_client_takes_it)
{
    struct world w;
    struct raw r;
    enum { SIZE = 5 * 1024 * 1024 };
    talk(&r, &w, "GET /big?5242880 HTTP/1.1\r\nHost: h\r\n\r\n");
    CHECK(raw_has(&r, "\r\n\r\n"));
    size_t head = (size_t)(strstr(r.got.at, "\r\n\r\n") + 4 - r.got.at);
    for (int i = 0; i < 500 && r.got.len < head + SIZE; i++)
        world_wait(&w, 2);
    CHECK(r.got.len == head + SIZE);
    CHECK(w.chunk_most <= 300 * 1024);
    raw_say(&r, "GET /hello HTTP/1.1\r\nHost: h\r\n\r\n");
    CHECK(raw_has(&r, "hello"));
    hang_up(&r, &w);
}

TEST(the_date_is_the_one_of_the_second)
{
    struct world w;
    struct raw r;
    talk(&r, &w, "GET /hello HTTP/1.1\r\nHost: h\r\n\r\n");
    CHECK(raw_has(&r, "hello"));
    const char *date = strstr(r.got.at, "\r\nDate: ");
    CHECK(date && strlen(date) > 37 && memcmp(date + 33, " GMT\r\n", 6) == 0 && date[11] == ',' && date[27] == ':');
    hang_up(&r, &w);
}

TEST(what_could_not_be_understood_has_the_right_status)
{
    struct err e = { .rc = RC_TOO_LARGE };
    CHECK(http_bad_status(&e) == 413);
    strcpy(e.field, "head");
    CHECK(http_bad_status(&e) == 431);
    strcpy(e.field, "target");
    CHECK(http_bad_status(&e) == 414);
    CHECK(http_bad_status(&(struct err){ .rc = RC_TIMEOUT }) == 408);
    CHECK(http_bad_status(&(struct err){ .rc = RC_BAD_INPUT }) == 400);
    CHECK(http_bad_status(&(struct err){ .rc = RC_UNAVAILABLE }) == 503);
}
