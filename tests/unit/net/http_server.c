#include "world.h"

#define GET(path) "GET " path " HTTP/1.1\r\nHost: h\r\n\r\n"

TEST(a_request_gets_its_reply_and_the_connection_stays)
{
    for (enum world_kind kind = 0; kind < WORLD_COUNT; kind++) {
        struct world w;
        struct raw r;
        world_open(&w, kind, NULL);
        raw_dial(&r, &w);
        raw_say(&r, GET("/hello?a=b"));
        CHECK(raw_has(&r, "\r\n\r\nhello"));
        CHECK(text_starts(r.got.at, "HTTP/1.1 200 OK\r\nDate: "));
        CHECK(raw_count(&r, "Content-Length: 5\r\n") == 1 && raw_count(&r, "Content-Type: text/plain\r\n") == 1);
        CHECK(raw_count(&r, "X-Query: a=b\r\n") == 1);
        CHECK(raw_count(&r, "\r\nX-Evil") == 0 && raw_count(&r, "X-Odd: a  X-Evil: 1\r\n") == 1);
        CHECK(raw_count(&r, "Connection:") == 0);
        raw_say(&r, GET("/headers"));
        CHECK(raw_has(&r, "\r\n\r\nnone") && !r.closed);
        CHECK(w.requests == 2 && http_connections(w.server) == 1);
        raw_done(&r);
        world_wait(&w, 30);
        CHECK(http_connections(w.server) == 0 && w.gone == 0);
        world_close(&w);
    }
}

TEST(two_requests_in_one_packet_are_answered_in_order_also_when_the_first_takes_time)
{
    for (enum world_kind kind = 0; kind < WORLD_COUNT; kind++) {
        struct world w;
        struct raw r;
        world_open(&w, kind, NULL);
        raw_dial(&r, &w);
        raw_say(&r, GET("/later") GET("/hello") GET("/later") "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nlast");
        CHECK(raw_has(&r, "\r\n\r\nlast"));
        const char *first = strstr(r.got.at, "later"), *second = strstr(r.got.at, "hello");
        CHECK(first && second && first < second && raw_count(&r, "later") == 2);
        CHECK(raw_count(&r, "HTTP/1.1 200") == 4 && w.requests == 4);
        raw_done(&r);
        world_close(&w);
    }
}

static void say_byte_by_byte(struct raw *r, const char *text)
{
    for (; *text; text++) {
        stream_write(r->stream, text, 1);
        world_wait(r->world, 0);
    }
}

TEST(a_request_may_be_cut_at_every_byte)
{
    struct world w;
    struct raw r;
    world_open(&w, WORLD_TCP, NULL);
    raw_dial(&r, &w);
    say_byte_by_byte(&r, "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n2;x=y\r\nef\r\n0\r\n\r\n"
                         "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nxyz");
    CHECK(raw_has(&r, "\r\n\r\nabcdef") && raw_has(&r, "\r\n\r\nxyz"));
    raw_done(&r);
    world_close(&w);
    const char *whole = "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nwhole";
    world_open(&w, WORLD_TCP, NULL);
    for (size_t at = 1; at < strlen(whole); at += 3) {
        char half[128] = { 0 };
        memcpy(half, whole, at);
        raw_dial(&r, &w);
        raw_say(&r, half);
        world_wait(&w, 1);
        raw_say(&r, whole + at);
        CHECK(raw_has(&r, "\r\n\r\nwhole"));
        raw_done(&r);
    }
    world_close(&w);
}

static const struct http_limits tight = {
    .head_bytes = 512, .body_bytes = 1000, .connections = 3, .per_address = 100,
    .head_ms = 60, .body_ms = 60, .idle_ms = 120,
};

struct bad { const char *say, *status; };

static void check_refused(enum world_kind kind, const struct bad *b)
{
    struct world w;
    struct raw r;
    world_open(&w, kind, &tight);
    raw_dial(&r, &w);
    raw_say(&r, b->say);
    CHECK(raw_closed(&r));
    CHECK(text_starts(r.got.at, "HTTP/1.1 ") && strncmp(r.got.at + 9, b->status, 3) == 0);
    CHECK(raw_count(&r, "Connection: close\r\n") == 1 && raw_count(&r, "HTTP/1.1 ") == 1);
    char body[32];
    snprintf(body, sizeof body, "{\"status\":%s}", b->status);
    CHECK(raw_count(&r, body) == 1 && raw_count(&r, "application/problem+json") == 1);
    CHECK(w.bad == 1 && w.bad_why.rc != RC_OK && w.requests == 0);
    CHECK(w.gone == w.heads);       /* whoever was told of it is told of its end */
    raw_done(&r);
    world_close(&w);
}

TEST(what_breaks_the_rules_is_told_so_once_and_closed)
{
    AUTO(str_done) struct str target = { 0 }, head = { 0 };
    str_text(&target, "GET /");
    str_text(&head, "GET / HTTP/1.1\r\nX: ");
    for (int i = 0; i < 2000; i++) {
        str_char(&target, 'a');
        str_char(&head, 'a');
    }
    const struct bad rows[] = {
        { "nonsense\r\n\r\n", "400" },
        { "GET / HTTP/1.1\r\n\r\n", "400" },
        { "GET / HTTP/2.0\r\nHost: h\r\n\r\n", "400" },
        { "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "400" },
        { "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 1001\r\n\r\n", "413" },
        { "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nfff\r\n0123456789", "408" },
        { target.at, "414" },
        { head.at, "431" },
        { "GET / HT", "408" },
        { "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc", "408" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        check_refused(WORLD_TCP, &rows[i]);
        check_refused(WORLD_SIM, &rows[i]);
    }
}

TEST(a_chunked_body_is_counted_while_it_comes)
{
    struct world w;
    struct raw r;
    world_open(&w, WORLD_SIM, &tight);
    raw_dial(&r, &w);
    raw_say(&r, "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 70; i++)
        raw_say(&r, "10\r\n0123456789abcdef\r\n");
    CHECK(raw_closed(&r) && text_starts(r.got.at, "HTTP/1.1 413 "));
    raw_done(&r);
    world_close(&w);
}

TEST(a_head_or_a_body_that_only_drips_is_cut_off)
{
    static const char *const starts[] = { "GET / HTTP/1.1\r\nX: ", "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 500\r\n\r\n" };
    for (size_t i = 0; i < COUNT(starts); i++) {
        struct world w;
        struct raw r;
        world_open(&w, WORLD_SIM, &tight);
        raw_dial(&r, &w);
        raw_say(&r, starts[i]);
        int64_t began = os_boot_ms(w.os);
        for (int n = 0; n < 8 && !r.closed && (i == 0 || n < 2); n++) {   /* the head has one limit, the body one between reads */
            world_wait(&w, 20);
            raw_say(&r, "a");
        }
        CHECK(raw_closed(&r) && text_starts(r.got.at, "HTTP/1.1 408 "));
        CHECK(os_boot_ms(w.os) - began < 1000);
        raw_done(&r);
        world_close(&w);
    }
}

TEST(an_idle_connection_is_closed_without_a_word)
{
    struct world w;
    struct raw r, mute;
    world_open(&w, WORLD_SIM, &tight);
    raw_dial(&r, &w);
    raw_dial(&mute, &w);
    raw_say(&r, GET("/hello"));
    CHECK(raw_has(&r, "hello"));
    int64_t began = os_boot_ms(w.os);
    CHECK(raw_closed(&r) && raw_closed(&mute));
    CHECK(os_boot_ms(w.os) - began >= 60 && raw_count(&r, "HTTP/1.1") == 1 && mute.got.len == 0);
    raw_done(&r);
    raw_done(&mute);
    world_close(&w);
}

TEST(a_connection_over_the_limit_is_told_to_come_again)
{
    for (int by_address = 0; by_address < 2; by_address++) {
        struct http_limits l = tight;
        if (by_address)
            l.connections = 100, l.per_address = 3;
        struct world w;
        struct raw r[4];
        world_open(&w, WORLD_SIM, &l);
        for (size_t i = 0; i < 3; i++) {
            raw_dial(&r[i], &w);
            raw_say(&r[i], GET("/never"));
        }
        world_wait(&w, 20);
        raw_dial(&r[3], &w);
        CHECK(raw_closed(&r[3]));
        CHECK(text_starts(r[3].got.at, "HTTP/1.1 503 ") && raw_count(&r[3], "Retry-After: 1\r\n") == 1);
        CHECK(http_connections(w.server) == 3);
        raw_done(&r[0]);
        world_wait(&w, 20);
        raw_done(&r[3]);
        raw_dial(&r[3], &w);
        raw_say(&r[3], GET("/hello"));
        CHECK(raw_has(&r[3], "hello"));
        for (size_t i = 1; i < 4; i++)
            raw_done(&r[i]);
        world_close(&w);
    }
}

/* The one that was silent for longest goes, and its place counts as free at once, also among those of its address. */
TEST(a_full_server_has_a_place_for_whoever_asks_also_from_the_same_address)
{
    struct http_limits l = tight;
    l.connections = l.per_address = 3;
    l.head_ms = l.idle_ms = 60 * 1000;
    struct world w;
    struct raw r[6];
    world_open(&w, WORLD_TCP, &l);
    for (size_t i = 0; i < 3; i++)
        raw_dial(&r[i], &w);
    world_wait(&w, 20);
    for (size_t i = 3; i < COUNT(r); i++) {
        raw_dial(&r[i], &w);
        raw_say(&r[i], GET("/hello"));
        CHECK(raw_has(&r[i], "hello") && raw_closed(&r[i - 3]) && http_connections(w.server) == 3);
    }
    for (size_t i = 0; i < COUNT(r); i++)
        raw_done(&r[i]);
    world_close(&w);
}

TEST(many_large_bodies_at_once_are_told_to_come_again)
{
    struct http_limits l = http_limits_default;
    l.bodies_bytes = 200 << 10;
    struct world w;
    struct raw r[3];
    AUTO(str_done) struct str part = { 0 };
    str_text(&part, "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 200001\r\n\r\n");
    for (int i = 0; i < 200000; i++)
        str_char(&part, 'x');
    world_open(&w, WORLD_SIM, &l);
    for (size_t i = 0; i < 2; i++) {
        raw_dial(&r[i], &w);
        raw_say(&r[i], part.at);
        world_wait(&w, 30);
    }
    CHECK(raw_closed(&r[1]) && text_starts(r[1].got.at, "HTTP/1.1 503 ") && raw_count(&r[1], "Retry-After: 1\r\n") == 1);
    raw_say(&r[0], "x");
    CHECK(raw_has(&r[0], "HTTP/1.1 200 "));
    raw_dial(&r[2], &w);                        /* what was held is given back */
    raw_say(&r[2], part.at);
    raw_say(&r[2], "x");
    CHECK(raw_has(&r[2], "HTTP/1.1 200 "));
    for (size_t i = 0; i < 3; i++)
        raw_done(&r[i]);
    world_close(&w);
}

TEST(a_hundred_connections_over_the_limit_do_no_harm)
{
    struct world w;
    static struct raw r[100];
    struct http_limits l = tight;
    l.connections = 1;
    world_open(&w, WORLD_SIM, &l);
    for (size_t i = 0; i < COUNT(r); i++)
        raw_dial(&r[i], &w);
    for (size_t i = 1; i < COUNT(r); i++)
        CHECK(raw_closed(&r[i]));
    for (size_t i = 0; i < COUNT(r); i++)
        raw_done(&r[i]);
    world_close(&w);
}

static bool has_request(void *arg) { return ((struct world *)arg)->requests > 0; }

static bool is_gone(void *arg) { return ((struct world *)arg)->gone > 0; }

TEST(a_client_that_leaves_is_reported_and_its_request_is_gone)
{
    static const char *const paths[] = { GET("/never"), GET("/later"), GET("/big?500000000") };
    for (enum world_kind kind = 0; kind < WORLD_COUNT; kind++)
        for (size_t i = 0; i < COUNT(paths); i++) {
            if (i == 1 && kind == WORLD_SIM)    /* its network is slower than that reply */
                continue;
            struct world w;
            struct raw r;
            world_open(&w, kind, NULL);
            raw_dial(&r, &w);
            raw_say(&r, paths[i]);
            CHECK(world_until(&w, has_request, &w) && w.gone == 0);
            raw_done(&r);
            CHECK(world_until(&w, is_gone, &w));
            world_wait(&w, 5);
            CHECK(w.gone == 1 && !w.kept && http_connections(w.server) == 0);
            world_close(&w);
        }
}

TEST(a_client_that_does_not_read_its_reply_is_cut_off)
{
    struct world w;
    struct raw r;
    world_open(&w, WORLD_SIM, &tight);
    raw_dial(&r, &w);
    raw_say(&r, GET("/big?500000000"));
    CHECK(raw_has(&r, "xxxx"));
    stream_pause(r.stream, true);
    for (int i = 0; i < 100 && w.gone == 0; i++)
        world_wait(&w, 10);
    CHECK(w.gone == 1 && http_connections(w.server) == 0);
    raw_done(&r);
    world_close(&w);
}

TEST(replies_nobody_reads_are_not_made_without_end)
{
    struct world w;
    struct raw r;
    world_open(&w, WORLD_TCP, NULL);
    raw_dial(&r, &w);
    stream_pause(r.stream, true);
    AUTO(str_done) struct str body = { 0 };
    for (int i = 0; i < 20000; i++)
        str_char(&body, 'b');
    AUTO(str_done) struct str all = { 0 };
    for (int i = 0; i < 1000; i++)
        str_printf(&all, "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 20000\r\n\r\n%s", body.at);
    stream_write(r.stream, all.at, all.len);
    world_wait(&w, 100);
    CHECK(w.requests < 900);
    stream_pause(r.stream, false);
    for (int i = 0; i < 6000 && w.requests < 1000; i++)
        world_wait(&w, 10);
    CHECK(w.requests == 1000);
    raw_done(&r);
    world_close(&w);
}

TEST(expect_continue_is_answered_before_the_body_and_not_when_it_is_refused)
{
    struct world w;
    struct raw r;
    world_open(&w, WORLD_SIM, &tight);
    raw_dial(&r, &w);
    raw_say(&r, "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    CHECK(raw_has(&r, "HTTP/1.1 100 Continue\r\n\r\n"));
    raw_say(&r, "ok");
    CHECK(raw_has(&r, "\r\n\r\nok"));
    raw_done(&r);
    static const char *const refused[] = { "/refuse", "/echo" };
    for (size_t i = 0; i < COUNT(refused); i++) {
        raw_dial(&r, &w);
        char head[200];
        snprintf(head, sizeof head, "POST %s HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\nExpect: 100-continue\r\n\r\n", refused[i]);
        raw_say(&r, head);
        CHECK(raw_closed(&r) && raw_count(&r, "100 Continue") == 0);
        CHECK(text_starts(r.got.at, i ? "HTTP/1.1 413" : "HTTP/1.1 403") && raw_count(&r, "Connection: close") == 1);
        raw_done(&r);
    }
    world_close(&w);
}

TEST(a_reply_before_the_end_of_the_body_reaches_a_client_that_still_sends)
{
    static const char *const paths[] = { "/refuse", "/midway" };
    for (enum world_kind kind = 0; kind < WORLD_COUNT; kind++)
        for (size_t i = 0; i < COUNT(paths); i++) {
            struct world w;
            struct raw r;
            world_open(&w, kind, NULL);
            raw_dial(&r, &w);
            AUTO(str_done) struct str all = { 0 };
            str_printf(&all, "POST %s HTTP/1.1\r\nHost: h\r\nContent-Length: 900000\r\n\r\n", paths[i]);
            memset(str_grow(&all, 800000), 'a', 800000);
            all.len += 800000;
            stream_write(r.stream, all.at, all.len);
            CHECK(raw_closed(&r));
            CHECK(text_starts(r.got.at, "HTTP/1.1 403 ") && raw_count(&r, "Connection: close") == 1);
            CHECK(w.requests == 0 && w.gone == 0);
            raw_done(&r);
            world_close(&w);
        }
}

TEST(a_refusal_without_a_body_keeps_the_connection)
{
    struct world w;
    struct raw r;
    world_open(&w, WORLD_TCP, NULL);
    raw_dial(&r, &w);
    raw_say(&r, GET("/refuse") GET("/hello"));
    CHECK(raw_has(&r, "refused") && raw_has(&r, "hello") && w.requests == 1 && w.heads == 2);
    raw_done(&r);
    world_close(&w);
}

TEST(a_paused_body_waits_and_is_not_blamed_on_the_client)
{
    struct world w;
    struct raw r;
    world_open(&w, WORLD_SIM, &tight);
    raw_dial(&r, &w);
    raw_say(&r, "POST /slow HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n");
    world_wait(&w, 20);
    raw_say(&r, "abcde");
    world_wait(&w, 150);
    CHECK(w.paused && w.requests == 0 && !r.closed);
    if (w.paused)
        http_pause_body(w.paused, false);
    CHECK(raw_has(&r, "\r\n\r\n5 ") && w.requests == 1);
    raw_say(&r, GET("/hello"));
    CHECK(raw_has(&r, "hello"));
    raw_done(&r);
    world_close(&w);
}

static bool has_three(void *arg) { return ((struct world *)arg)->requests == 3; }

TEST(a_server_that_closes_lets_open_requests_end)
{
    for (enum world_kind kind = 0; kind < WORLD_COUNT; kind++) {
        struct world w;
        struct raw idle, busy, stuck;
        world_open(&w, kind, NULL);
        raw_dial(&idle, &w);
        raw_dial(&busy, &w);
        raw_dial(&stuck, &w);
        raw_say(&idle, GET("/hello"));
        CHECK(raw_has(&idle, "hello"));
        raw_say(&stuck, GET("/never"));
        raw_say(&busy, GET("/later"));
        CHECK(world_until(&w, has_three, &w));
        http_server_close(TAKE(w.server), 1000);
        CHECK(raw_closed(&idle) && w.gone == 0);
        CHECK(raw_closed(&busy) && raw_count(&busy, "Connection: close") == 1 && raw_count(&busy, "later") == 1);
        CHECK(!stuck.closed);
        CHECK(raw_closed(&stuck) && w.gone == 1);
        struct raw late;
        raw_dial(&late, &w);
        CHECK(raw_closed(&late) && late.why.rc != RC_OK);
        raw_done(&idle);
        raw_done(&busy);
        raw_done(&stuck);
        raw_done(&late);
        world_close(&w);
    }
}

TEST(a_server_that_winds_down_serves_but_keeps_nobody)
{
    for (enum world_kind kind = 0; kind < WORLD_COUNT; kind++) {
        struct world w;
        struct raw old, new;
        world_open(&w, kind, NULL);
        raw_dial(&old, &w);
        raw_say(&old, GET("/hello"));
        CHECK(raw_has(&old, "hello") && !old.closed);
        http_server_wind_down(w.server);
        raw_say(&old, GET("/hello"));
        CHECK(raw_closed(&old) && raw_count(&old, "Connection: close") == 1);
        raw_dial(&new, &w);
        raw_say(&new, GET("/hello"));
        CHECK(raw_has(&new, "hello") && raw_closed(&new));
        raw_done(&old);
        raw_done(&new);
        world_close(&w);
    }
}

TEST(old_clients_get_what_they_understand)
{
    struct world w;
    struct raw r;
    world_open(&w, WORLD_TCP, NULL);
    raw_dial(&r, &w);
    raw_say(&r, "GET /pieces HTTP/1.0\r\n\r\n");
    CHECK(raw_closed(&r) && raw_count(&r, "chunked") == 0 && raw_count(&r, "\r\n\r\none two") == 1);
    raw_done(&r);
    raw_dial(&r, &w);
    raw_say(&r, "GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /hello HTTP/1.0\r\n\r\n");
    CHECK(raw_closed(&r) && raw_count(&r, "hello") == 2 && raw_count(&r, "Connection: keep-alive") == 1);
    CHECK(raw_count(&r, "Connection: close") == 1);
    raw_done(&r);
    world_close(&w);
}

TEST(repeated_headers_are_joined)
{
    struct world w;
    struct raw r;
    world_open(&w, WORLD_TCP, NULL);
    raw_dial(&r, &w);
    raw_say(&r, "GET /headers HTTP/1.1\r\nHost: h\r\nX-Twice: a\r\nx-twice: b\r\n\r\n");
    CHECK(raw_has(&r, "\r\n\r\na, b"));
    raw_done(&r);
    world_close(&w);
}

TEST(a_bad_address_is_an_error_and_not_a_server)
{
    struct err err = { 0 };
    struct os *os = os_real_new(&err);
    struct http_server *s = NULL;
    static const struct http_handler none = { 0 };
    CHECK(!http_listen(os, "256.1.1.1:x", NULL, NULL, &none, NULL, &s, &err) && !s && *err.text);
    os_free(os);
}

TEST(the_default_limits_of_time_hold)
{
    static const struct { const char *say; int64_t not_before, at_last; const char *status; } rows[] = {
        { "", 9000, 12000, "" },
        { "GET / HT", 9000, 12000, "HTTP/1.1 408" },
        { "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nabc", 29000, 32000, "HTTP/1.1 408" },
        { GET("/hello"), 74000, 77000, "HTTP/1.1 200" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct world w;
        struct raw r;
        world_open(&w, WORLD_SIM, NULL);
        raw_dial(&r, &w);
        raw_say(&r, rows[i].say);
        world_wait(&w, rows[i].not_before);
        CHECK(!r.closed);
        world_wait(&w, rows[i].at_last - rows[i].not_before);
        CHECK(r.closed && text_starts(r.got.at, rows[i].status));
        raw_done(&r);
        world_close(&w);
    }
}

TEST(a_server_that_crashes_ends_every_call_and_the_next_one_serves_again)
{
    struct world w;
    world_open(&w, WORLD_SIM, NULL);
    struct http_client *c = world_client(&w);
    struct answer a, b;
    answer_start(&a, &w, c, "GET", "/never", (struct slice){ 0 });
    CHECK(world_until(&w, has_request, &w));
    sim_crash(w.sim, w.os);
    http_server_drop(w.server);
    CHECK(w.gone == 1);
    CHECK(answer_wait(&a) && a.status == 0 && a.err.rc == RC_UNAVAILABLE && a.ends == 1);
    w.os = sim_machine(w.sim, "server");
    CHECK(world_listen(&w, "server:80", NULL, &w.server));
    answer_start(&b, &w, c, "GET", "/hello", (struct slice){ 0 });
    CHECK(answer_wait(&b) && b.status == 200);
    answer_done(&a);
    answer_done(&b);
    http_client_free(c);
    world_close(&w);
}

/* One byte each time would otherwise hold its place for ever. */
TEST(a_body_or_a_reader_that_moves_by_a_byte_now_and_then_is_cut_off)
{
    struct world w;
    struct raw r;
    world_open(&w, WORLD_SIM, &tight);
    raw_dial(&r, &w);
    raw_say(&r, "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 900\r\n\r\n");
    for (int i = 0; i < 200 && !r.closed; i++) {
        raw_say(&r, "a");
        world_wait(&w, 20);
    }
    CHECK(r.closed && text_starts(r.got.at, "HTTP/1.1 408 "));
    raw_done(&r);
    raw_dial(&r, &w);                           /* and one at a fair rate is not */
    raw_say(&r, "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 900\r\n\r\n");
    for (int i = 0; i < 9; i++) {
        raw_say(&r, "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789");
        world_wait(&w, 20);
    }
    CHECK(raw_has(&r, "HTTP/1.1 200 "));
    raw_done(&r);
    world_close(&w);
}

TEST(a_full_server_lets_the_connection_go_that_was_silent_for_longest)
{
    struct world w;
    struct raw r[5];
    struct http_limits l = tight;
    l.head_ms = l.idle_ms = 60 * 1000;
    world_open(&w, WORLD_SIM, &l);
    for (size_t i = 0; i < 3; i++) {
        raw_dial(&r[i], &w);
        raw_say(&r[i], i == 0 ? GET("/never") : GET("/hello"));
        CHECK(i == 0 || raw_has(&r[i], "HTTP/1.1 200 "));
    }
    raw_dial(&r[3], &w);
    raw_say(&r[3], GET("/never"));
    CHECK(raw_closed(&r[1]) && !r[0].closed && !r[2].closed);
    raw_dial(&r[4], &w);
    raw_say(&r[4], GET("/hello"));
    CHECK(raw_has(&r[4], "HTTP/1.1 200 ") && raw_closed(&r[2]) && !r[0].closed && !r[3].closed);
    for (size_t i = 0; i < 5; i++)
        raw_done(&r[i]);
    world_close(&w);
}

TEST(half_heads_count_like_bodies)
{
    struct world w;
    struct raw r[2];
    struct http_limits l = tight;
    l.bodies_bytes = 600;
    l.head_ms = 60 * 1000;
    AUTO(str_done) struct str part = { 0 };
    str_text(&part, "GET /hello HTTP/1.1\r\nHost: h\r\nX: ");
    for (int i = 0; i < 400; i++)
        str_char(&part, 'x');
    world_open(&w, WORLD_SIM, &l);
    for (size_t i = 0; i < 2; i++) {
        raw_dial(&r[i], &w);
        raw_say(&r[i], part.at);
        world_wait(&w, 30);
    }
    CHECK(raw_closed(&r[1]) && text_starts(r[1].got.at, "HTTP/1.1 503 ") && raw_count(&r[1], "Retry-After: 1\r\n") == 1);
    raw_say(&r[0], "\r\n\r\n");
    CHECK(raw_has(&r[0], "HTTP/1.1 200 "));
    raw_done(&r[0]);
    raw_done(&r[1]);
    world_close(&w);
}

static bool much_waits(void *arg) { return os_waiting(((struct world *)arg)->os) > 100 * 1024; }
static bool nothing_waits(void *arg) { return os_waiting(((struct world *)arg)->os) == 0; }

TEST(while_too_many_replies_wait_for_their_clients_nothing_new_is_begun)
{
    struct world w;
    struct raw slow, other;
    struct http_limits l = http_limits_default;
    l.replies_bytes = 100 * 1024;
    world_open(&w, WORLD_SIM, &l);
    raw_dial(&slow, &w);
    stream_pause(slow.stream, true);
    raw_say(&slow, GET("/big?500000000"));
    CHECK(world_until(&w, much_waits, &w));
    raw_dial(&other, &w);
    raw_say(&other, GET("/hello"));
    CHECK(raw_closed(&other) && text_starts(other.got.at, "HTTP/1.1 503 ") && raw_count(&other, "Retry-After: 1\r\n") == 1);
    raw_done(&other);
    CHECK(world_until(&w, nothing_waits, &w));  /* the one that did not read is gone, and its bytes with it */
    raw_done(&slow);
    raw_dial(&other, &w);
    raw_say(&other, GET("/hello"));
    CHECK(raw_has(&other, "HTTP/1.1 200 "));
    raw_done(&other);
    world_close(&w);
}

TEST(only_loopback_is_served_without_tls)
{
    static const char *const open[] = { "0.0.0.0:0", "[::]:0", "10.0.0.1:0", "127.evil.example:0" };
    static const struct http_handler handler = { 0 };
    struct err err = { 0 };
    struct os *os = os_real_new(&err);
    struct http_server *s = NULL;
    for (size_t i = 0; i < COUNT(open); i++)
        CHECK(!http_listen(os, open[i], NULL, NULL, &handler, NULL, &s, &err) && err.rc == RC_BAD_INPUT && strstr(err.text, "TLS"));
    CHECK(!s);
    os_free(os);
}

TEST(one_group_does_not_take_all_the_room_for_bodies)
{
    struct http_limits l = http_limits_default;
    l.bodies_bytes = 400 << 10;
    l.body_bytes = 100 << 10;
    struct world w;
    struct raw r[4];
    AUTO(str_done) struct str part = { 0 };
    str_text(&part, "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 90001\r\n\r\n");
    for (int i = 0; i < 90000; i++)
        str_char(&part, 'x');
    world_open(&w, WORLD_SIM, &l);
    for (size_t i = 0; i < 3; i++) {
        raw_dial(&r[i], &w);
        raw_say(&r[i], part.at);
        world_wait(&w, 30);
    }
    CHECK(raw_closed(&r[2]) && text_starts(r[2].got.at, "HTTP/1.1 503 "));
    raw_dial(&r[3], &w);
    raw_say(&r[3], GET("/mine?9"));             /* somebody else, of the same address */
    CHECK(raw_has(&r[3], "mine"));
    raw_say(&r[3], part.at);
    raw_say(&r[3], "x");
    CHECK(raw_has(&r[3], "xxxx"));
    for (size_t i = 0; i < 4; i++)
        raw_done(&r[i]);
    world_close(&w);
}
