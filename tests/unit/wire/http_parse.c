/* http_parse.c - a table of raw requests and replies with the verdict each must get, whole and cut at every byte. */
#include "wire/http_parse.h"
#include "tap.h"
#include <stdlib.h>

struct seen { struct str log; int messages; };     /* all that the events told, as one text */

static bool on_head(void *arg, struct http_head *h)
{
    struct seen *s = arg;
    str_printf(&s->log, "%s %s %d 1.%d%s%s%s%s %lld", h->method ? h->method : "-", h->target ? h->target : "-", h->status,
               h->minor, h->keep_alive ? " keep" : "", h->chunked ? " chunked" : "", h->upgrade ? " upgrade" : "",
               h->expect_continue ? " expect" : "", (long long)h->content_length);
    for (size_t i = 0; i < h->header_count; i++)
        str_printf(&s->log, "|%s=%s", h->headers[i].name, h->headers[i].value);
    str_text(&s->log, "#");
    return true;
}

static bool on_body(void *arg, const char *at, size_t n)
{
    str_put(&((struct seen *)arg)->log, at, n);
    return true;
}

static void on_message(void *arg)
{
    struct seen *s = arg;
    str_text(&s->log, "!");
    s->messages++;
}

static const struct http_parse_events events = { on_head, on_body, on_message };

/* Feeds in pieces of `step` bytes (0: all), message behind message. The verdict: RC_OK, or why it was refused. */
static enum rc verdict(enum http_parse_kind kind, const char *raw, size_t n, size_t step, bool eof, struct seen *s)
{
    AUTO(http_parse_free) struct http_parse *p = http_parse_new(kind, 1024, &events, s);
    size_t done = 0;
    while (done < n) {
        size_t take = step && step < n - done ? step : n - done, used = 0;
        struct err err = { 0 };
        int before = s->messages;
        char *copy = malloc(take);          /* its own memory, so that reading behind the piece is seen */
        memcpy(copy, raw + done, take);
        bool good = http_parse_feed(p, copy, take, &used, &err);
        free(copy);
        if (!good) {
            CHECK(err.rc == RC_BAD_INPUT || err.rc == RC_TOO_LARGE);
            CHECK(err.text[0]);
            CHECK(!http_parse_feed(p, "x", 1, &used, &err));     /* broken stays broken */
            return RC_BAD_INPUT;
        }
        CHECK(used <= take);
        done += used;
        if (s->messages > before)
            http_parse_next(p, false);
        else if (used < take)
            return RC_INTERNAL;
    }
    bool complete = false;
    if (eof)
        http_parse_eof(p, &complete);
    str_text(&s->log, complete ? "$" : "");
    return RC_OK;
}

#define GET "GET / HTTP/1.1\r\nHost: a\r\n"
#define POST "POST /v1/jobs HTTP/1.1\r\nHost: a\r\n"
#define CHUNKED POST "Transfer-Encoding: chunked\r\n\r\n"

static const struct { const char *raw, *log; } good[] = {
    { GET "\r\n", "GET / 0 1.1 keep -1|host=a#!" },
    { "\r\n\r\n" GET "\r\n", "GET / 0 1.1 keep -1|host=a#!" },
    { "GET / HTTP/1.0\r\n\r\n", "GET / 0 1.0 -1#!" },
    { "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", "GET / 0 1.0 keep -1|connection=Keep-Alive#!" },
    { GET "Connection: close\r\n\r\n", "GET / 0 1.1 -1|host=a|connection=close#!" },
    { "GET http://b:80/x?y=1 HTTP/1.1\r\nHost: b\r\n\r\n", "GET /x?y=1 0 1.1 keep -1|host=b#!" },
    { "GET https://b HTTP/1.1\r\nHost: b\r\n\r\n", "GET / 0 1.1 keep -1|host=b#!" },
    { "GET /a%20b?q=\xc3\xa4 HTTP/1.1\r\nHOST:[::1]:80 \r\nX-Y: \t z  z \t\r\n\r\n", "GET /a%20b?q=\xc3\xa4 0 1.1 keep -1|host=[::1]:80|x-y=z  z#!" },
    { POST "Content-Length: 5\r\n\r\nhello", "POST /v1/jobs 0 1.1 keep 5|host=a|content-length=5#hello!" },
    { POST "Content-Length: 0\r\n\r\n", "POST /v1/jobs 0 1.1 keep 0|host=a|content-length=0#!" },
    { POST "content-length: 007\r\n\r\n\r\n\r\n\r\n\n", "POST /v1/jobs 0 1.1 keep 7|host=a|content-length=007#\r\n\r\n\r\n\n!" },
    { CHUNKED "5\r\nhello\r\n1;a=b\r\n \r\n00A\r\nbeautiful \r\n0\r\n\r\n", "POST /v1/jobs 0 1.1 keep chunked -1|host=a|transfer-encoding=chunked#hello beautiful !" },
    { CHUNKED "1\r\na\r\n0\r\nX-Trailer: yes\r\n\r\n", "POST /v1/jobs 0 1.1 keep chunked -1|host=a|transfer-encoding=chunked#a!" },
    { POST "Expect: 100-Continue\r\nContent-Length: 1\r\n\r\nx", "POST /v1/jobs 0 1.1 keep expect 1|host=a|expect=100-Continue|content-length=1#x!" },
    { GET "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n", "GET / 0 1.1 keep upgrade -1|host=a|connection=keep-alive, Upgrade|upgrade=websocket#!" },
    { GET "\r\n" POST "Content-Length: 2\r\n\r\nab" GET "\r\n", /* pipelined */
      "GET / 0 1.1 keep -1|host=a#!POST /v1/jobs 0 1.1 keep 2|host=a|content-length=2#ab!GET / 0 1.1 keep -1|host=a#!" },
};

static const char *const bad[] = {
    "GET / HTTP/1.1\r\n\r\n",                           /* no Host */
    "GET / HTTP/1.1\r\nHost:\r\n\r\n", "GET / HTTP/1.1\r\nHost: \r\n\r\n", GET "Host: a\r\n\r\n", GET "Host: b\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", "GET / HTTP/1.1\r\nHost: u@b\r\n\r\n",
    GET "X: a\r\n b\r\n\r\n", GET "X: a\r\n\tb\r\n\r\n", GET " X: a\r\n\r\n", "GET / HTTP/1.1\r\n Host: a\r\n\r\n",    /* obs-fold */
    "GET / HTTP/1.1\nHost: a\n\n", "GET / HTTP/1.1\r\nHost: a\n\r\n", GET "\n", "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", GET "X: abc\n\r\n",    /* bare LF */
    GET "X: a\rb\r\n\r\n", GET "X: a\r\r\n\r\n", GET "\rX: a\r\n\r\n",
    GET "X : a\r\n\r\n", GET "X\t: a\r\n\r\n", GET "X y: a\r\n\r\n", GET ": a\r\n\r\n", GET "novalue\r\n\r\n", GET "X(: a\r\n\r\n",
    "GET / HTTP/1.1\r\nHost : a\r\n\r\n", GET "X: \x01\r\n\r\n", GET "X: \x7f\r\n\r\n", GET "X: \x1b[2J\r\n\r\n",
    POST "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", POST "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
    POST "Content-Length: 5, 5\r\n\r\nhello", POST "Content-Length: +5\r\n\r\nhello", POST "Content-Length: -5\r\n\r\nhello",
    POST "Content-Length: 0x5\r\n\r\nhello", POST "Content-Length: 5 5\r\n\r\nhello", POST "Content-Length:\r\n\r\n",
    POST "Content-Length: 5.0\r\n\r\nhello", POST "Content-Length: 18446744073709551621\r\n\r\nhello",
    POST "Content-Length: 9999999999999999999\r\n\r\n", POST "Content-Length: 5;\r\n\r\nhello",
    POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", POST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    POST "Transfer-Encoding: gzip\r\n\r\n", POST "Transfer-Encoding: identity\r\n\r\n", POST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    POST "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    POST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", POST "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n", POST "Transfer-Encoding:\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    CHUNKED "+5\r\nhello\r\n0\r\n\r\n", CHUNKED "-5\r\nhello\r\n0\r\n\r\n", CHUNKED "0x5\r\nhello\r\n0\r\n\r\n", CHUNKED "0x1f\r\n",
    CHUNKED "5 \r\nhello\r\n0\r\n\r\n", CHUNKED " 5\r\nhello\r\n0\r\n\r\n", CHUNKED "\r\n", CHUNKED ";a\r\n", CHUNKED "5g\r\nhello\r\n",
    CHUNKED "5\nhello\r\n0\r\n\r\n", CHUNKED "5\r\nhello\n0\r\n\r\n", CHUNKED "5\r\nhellox\r\n0\r\n\r\n", CHUNKED "5\r\nhello0\r\n\r\n", CHUNKED "5\r\nhelloXX0\r\n\r\n", CHUNKED "5\r\nhello\r\r0\r\n\r\n", CHUNKED "5\r\nhello\n\n0\r\n\r\n",
    CHUNKED "1000000000000005\r\nhello\r\n", CHUNKED "10000000000000000005\r\nhello\r\n", CHUNKED "5;\x01\r\nhello\r\n", CHUNKED "5;\n\r\nhello\r\n",
    CHUNKED "0\r\nX : y\r\n\r\n", CHUNKED "0\r\n\n", CHUNKED "0\r\n folded\r\n\r\n", CHUNKED "0\n\r\n", CHUNKED "0\r\n\rx\r\n",
    "GET / HTTP/2.0\r\nHost: a\r\n\r\n", "GET / HTTP/1.2\r\nHost: a\r\n\r\n", "GET / HTTP/0.9\r\nHost: a\r\n\r\n", "GET / HTTP/1.10\r\nHost: a\r\n\r\n",
    "GET / HTTP/1.1 \r\nHost: a\r\n\r\n", "GET / http/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/11\r\nHost: a\r\n\r\n", "GET /\r\n\r\n",
    "GET / \r\nHost: a\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", "GET /  HTTP/1.1\r\nHost: a\r\n\r\n",
    " GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", "GET /\tx HTTP/1.1\r\nHost: a\r\n\r\n", "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n", "GET /\x7f HTTP/1.1\r\nHost: a\r\n\r\n", "GET /#x HTTP/1.1\r\nHost: a\r\n\r\n", "GET x HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET * HTTP/1.1\r\nHost: a\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", "get / HTTP/1.1\r\nHost: a\r\n\r\n",
    "NONSENSE / HTTP/1.1\r\nHost: a\r\n\r\n", "G@T / HTTP/1.1\r\nHost: a\r\n\r\n", "GET http:// HTTP/1.1\r\nHost: a\r\n\r\n", "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
    "HTTP/1.1 200 OK\r\nHost: a\r\n\r\n", "\r\n\r\n\r\n\r\n\r\n\r\n" GET "\r\n", "\x16\x03\x01\x02\r\n", "\r\r\n", "GET\r\n\r\n", "\r\n\n",
};

TEST(good_requests_are_told_as_they_are_however_they_are_cut)
{
    for (size_t i = 0; i < COUNT(good); i++)
        for (size_t step = 0; step <= strlen(good[i].raw); step++) {
            AUTO(str_done) struct str log = { 0 };
            struct seen s = { .log = log };
            CHECK(verdict(HTTP_PARSE_REQUEST, good[i].raw, strlen(good[i].raw), step, false, &s) == RC_OK);
            if (!text_is(s.log.at, good[i].log))
                printf("# step %zu of %s: got %s\n", step, good[i].raw, s.log.at);
            CHECK(text_is(s.log.at, good[i].log));
            log = s.log;
        }
}

TEST(malformed_requests_are_refused_however_they_are_cut)
{
    for (size_t i = 0; i < COUNT(bad); i++)
        for (size_t step = 0; step <= strlen(bad[i]); step++) {
            AUTO(str_done) struct str log = { 0 };
            struct seen s = { .log = log };
            bool refused = verdict(HTTP_PARSE_REQUEST, bad[i], strlen(bad[i]), step, false, &s) != RC_OK;
            if (!refused)
                printf("# taken, step %zu: %s\n", step, bad[i]);
            CHECK(refused);
            log = s.log;
        }
}

TEST(a_good_request_cut_in_two_anywhere_gives_the_same)
{
    for (size_t i = 0; i < COUNT(good); i++)
        for (size_t cut = 1; cut < strlen(good[i].raw); cut++) {
            struct seen s = { 0 };
            AUTO(http_parse_free) struct http_parse *p = http_parse_new(HTTP_PARSE_REQUEST, 1024, &events, &s);
            for (size_t done = 0, n = strlen(good[i].raw); done < n;) {
                size_t end = done < cut ? cut : n, used = 0;
                struct err err;
                int before = s.messages;
                CHECK(http_parse_feed(p, good[i].raw + done, end - done, &used, &err));
                done += used;
                if (s.messages > before)
                    http_parse_next(p, false);
                else if (!used)
                    break;
            }
            CHECK(text_is(s.log.at, good[i].log));
            str_done(&s.log);
        }
}

TEST(a_nul_anywhere_in_a_head_is_refused)
{
    static const char raw[] = GET "X-Y: z\r\n\r\n";
    for (size_t i = 0; i < sizeof raw - 1; i++) {
        struct seen s = { 0 };
        char copy[sizeof raw];
        memcpy(copy, raw, sizeof raw);
        copy[i] = 0;
        bool refused = verdict(HTTP_PARSE_REQUEST, copy, sizeof raw - 1, 0, false, &s) != RC_OK;
        CHECK(s.messages == 0 && (refused || i == sizeof raw - 2));     /* without its last LF a head is only unfinished */
        str_done(&s.log);
    }
}

TEST(heads_have_a_limit_and_a_count)
{
    for (int kind = 0; kind < 3; kind++) {
        AUTO(str_done) struct str raw = { 0 };
        struct seen s = { 0 };
        AUTO(http_parse_free) struct http_parse *p = http_parse_new(HTTP_PARSE_REQUEST, kind == 2 ? 16384 : 1024, &events, &s);
        struct err err = { 0 };
        size_t used, done = 0;
        str_text(&raw, GET);
        for (int i = 0; i < 200; i++)
            str_printf(&raw, kind ? "X: %d\r\n" : "xxxxxxxxxx%d", i);
        bool good_so_far = true;
        if (kind == 2)
            str_text(&raw, "\r\n");
        for (; good_so_far && done < raw.len; done += used)
            good_so_far = http_parse_feed(p, raw.at + done, MIN(raw.len - done, 100), &used, &err);
        CHECK(!good_so_far && err.rc == RC_TOO_LARGE && s.messages == 0);
        str_done(&s.log);
    }
}

#define OK "HTTP/1.1 200 OK\r\n"
static const struct { const char *raw, *log; bool eof; } replies[] = {
    { OK "Content-Length: 2\r\n\r\nhi", "- - 200 1.1 keep 2|content-length=2#hi!" },
    { OK "\r\nall up to the end", "- - 200 1.1 -1#all up to the end!$", true },
    { "HTTP/1.0 404\r\n\r\n", "- - 404 1.0 -1#!$", true },
    { "HTTP/1.1 204 No Content\r\n\r\n", "- - 204 1.1 keep -1#!" },
    { "HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", "- - 304 1.1 keep 7|content-length=7#!" },
    { "HTTP/1.1 100 Continue\r\n\r\n" OK "Content-Length: 1\r\n\r\nx", "- - 100 1.1 keep -1#!- - 200 1.1 keep 1|content-length=1#x!" },
    { "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", "- - 101 1.1 keep upgrade -1|upgrade=websocket|connection=Upgrade#!" },
    { OK "Transfer-Encoding: Chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", "- - 200 1.1 keep chunked -1|transfer-encoding=Chunked#hi!" },
};
static const char *const bad_replies[] = {
    "HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 2000 OK\r\n\r\n", "HTTP/2 200\r\n\r\n", "HTTP/1.1 200OK\r\n\r\n", "ICY 200 OK\r\n\r\n", "HTTP/1.1  200 OK\r\n\r\n",
    OK "Content-Length: 1\r\nContent-Length: 1\r\n\r\nx", OK "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", GET "\r\n",
    OK "Transfer-Encoding: gzip\r\n\r\n", OK "X : y\r\n\r\n", OK " X: y\r\n\r\n", "HTTP/1.1 200 OK\n\n", "HTTP/1.1 999 X\r\n\r\n", OK "Content-Length: a\r\n\r\n",
};

TEST(replies_are_told_as_they_are_and_bad_ones_refused)
{
    for (size_t i = 0; i < COUNT(replies); i++)
        for (size_t step = 0; step <= strlen(replies[i].raw); step++) {
            struct seen s = { 0 };
            enum rc rc = verdict(HTTP_PARSE_RESPONSE, replies[i].raw, strlen(replies[i].raw), step, replies[i].eof, &s);
            CHECK(rc == RC_OK);
            AUTO(str_done) struct str joined = s.log;
            if (!text_is(joined.at, replies[i].log))
                printf("# %s -> %s\n", replies[i].raw, joined.at);
            CHECK(text_is(joined.at, replies[i].log));
        }
    for (size_t i = 0; i < COUNT(bad_replies); i++)
        for (size_t step = 0; step < 4; step++) {
            struct seen s = { 0 };
            CHECK(verdict(HTTP_PARSE_RESPONSE, bad_replies[i], strlen(bad_replies[i]), step, false, &s) != RC_OK);
            str_done(&s.log);
        }
}

TEST(a_reply_to_head_has_no_body_whatever_it_says)
{
    struct seen s = { 0 };
    AUTO(http_parse_free) struct http_parse *p = http_parse_new(HTTP_PARSE_RESPONSE, 1024, &events, &s);
    struct err err;
    size_t used;
    const char *raw = OK "Content-Length: 50\r\n\r\n" OK;
    http_parse_next(p, true);
    CHECK(http_parse_feed(p, raw, strlen(raw), &used, &err) && s.messages == 1);
    CHECK(used == strlen(raw) - strlen(OK));            /* what stands behind a message is not taken */
    str_done(&s.log);
}

TEST(a_message_cut_off_by_the_peer_is_not_whole)
{
    static const char *const raws[] = { "", "HT", OK, OK "Content-Length: 5\r\n\r\nhi", OK "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n" };
    for (size_t i = 0; i < COUNT(raws); i++) {
        struct seen s = { 0 };
        AUTO(http_parse_free) struct http_parse *p = http_parse_new(HTTP_PARSE_RESPONSE, 1024, &events, &s);
        struct err err;
        size_t used;
        bool complete = true;
        CHECK(http_parse_feed(p, raws[i], strlen(raws[i]), &used, &err));
        http_parse_eof(p, &complete);
        CHECK(!complete && s.messages == 0);
        str_done(&s.log);
    }
}

static bool refuse_head(void *arg, struct http_head *h) { return (void)arg, (void)h, false; }

TEST(a_caller_that_refuses_gets_nothing_more)
{
    struct seen s = { 0 };
    struct http_parse_events refusing = { refuse_head, on_body, on_message };
    AUTO(http_parse_free) struct http_parse *p = http_parse_new(HTTP_PARSE_REQUEST, 1024, &refusing, &s);
    struct err err;
    size_t used;
    const char *head = POST "Content-Length: 5\r\n\r\n", *raw = POST "Content-Length: 5\r\n\r\nhello";
    CHECK(http_parse_feed(p, raw, strlen(raw), &used, &err) && used == strlen(head));
    CHECK(http_parse_feed(p, "hello", 5, &used, &err) && used == 0 && s.messages == 0 && s.log.len == 0);
}

TEST(headers_are_found_by_their_lower_name)
{
    struct http_pair pairs[] = { { "a", "1" }, { "b", "2" }, { "a", "3" } };
    struct http_head h = { .headers = pairs, .header_count = COUNT(pairs) };
    CHECK(text_is(http_head_get(&h, "a"), "1") && text_is(http_head_get(&h, "b"), "2") && !http_head_get(&h, "c"));
}

/* A header of the connection hands the head to the library; without one it may be read here alone. */
TEST(a_plain_head_means_the_same_as_one_that_the_library_has_read)
{
    static const char *const methods[] = { "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "get", "POSTS", "PO" };
    static const char *const targets[] = { "/", "/v1/jobs/job-1/logs", "/a%20b~c", "/a?b=c", "/a|b^c`d", "/\xc3\xa4", "/a<b>\"", "*" };
    for (size_t m = 0; m < COUNT(methods); m++)
        for (size_t t = 0; t < COUNT(targets); t++) {
            struct seen plain = { 0 }, read = { 0 };
            AUTO(arena_free) struct arena *mem = arena_new();
            const char *head = arena_printf(mem, "%s %s HTTP/1.1\r\nHost: a\r\nX-Y: \xc3\xa4 z\r\nContent-Length: 0\r\n", methods[m], targets[t]);
            const char *one = arena_printf(mem, "%s\r\n", head), *two = arena_printf(mem, "%sConnection: keep-alive\r\n\r\n", head);
            CHECK(verdict(HTTP_PARSE_REQUEST, one, strlen(one), 0, false, &plain) == verdict(HTTP_PARSE_REQUEST, two, strlen(two), 0, false, &read));
            char *more = read.log.len ? strstr(read.log.at, "|connection=keep-alive") : NULL;
            if (more)
                memmove(more, more + 22, strlen(more + 22) + 1);
            CHECK(text_is(plain.log.len ? plain.log.at : "", read.log.len ? read.log.at : ""));
            str_done(&plain.log);
            str_done(&read.log);
        }
}
