#include "base/fault.h"
#include "net/ws_internal.h"
#include "world.h"

/* --- a client of ours */
struct talk {
    struct world *w;
    struct http_client *c;
    struct ws *ws;
    int opened, closed, messages, drains;
    bool text, in_open_close;
    struct str got;
    struct err why;
};

static void on_open(void *arg, struct ws *ws)
{
    struct talk *t = arg;
    t->opened++;
    if (t->in_open_close)
        ws_close(ws, 1000, NULL);
}

static void on_message(void *arg, struct ws *ws, bool text, const char *at, size_t n)
{
    (void)ws;
    struct talk *t = arg;
    t->messages++;
    t->text = text;
    str_clear(&t->got);
    str_put(&t->got, at, n);
}

static void on_drain(void *arg, struct ws *ws) { (void)ws, ((struct talk *)arg)->drains++; }

static void on_close(void *arg, struct ws *ws, const struct err *why)
{
    (void)ws;
    struct talk *t = arg;
    t->closed++;
    t->why = *why;
    t->ws = NULL;
}

static const struct ws_events events = { on_open, on_message, on_drain, on_close };

static bool is_open(void *arg) { return ((struct talk *)arg)->opened > 0; }
static bool is_closed(void *arg) { return ((struct talk *)arg)->closed > 0; }
static bool has_message(void *arg) { return ((struct talk *)arg)->messages > 0; }
static bool server_closed(void *arg) { return ((struct world *)arg)->ws_closed > 0; }

static struct http_client *talk_open(struct talk *t, struct world *w, enum world_kind kind, const struct ws_limits *limits)
{
    *t = (struct talk){ .w = w };
    world_open(w, kind, NULL);
    if (limits)
        w->ws_limits = *limits;
    struct http_client *c = world_client(w);
    t->ws = ws_dial(c, "/ws", NULL, 0, limits, &events, t);
    CHECK(world_until(w, is_open, t));
    return c;
}

static void talk_close(struct talk *t, struct http_client *c)
{
    if (t->ws)
        ws_drop(t->ws);
    world_until(t->w, is_closed, t);
    CHECK(t->closed == 1);
    http_client_free(c);
    str_done(&t->got);
    world_close(t->w);
}

TEST(messages_of_any_size_come_back_as_they_went)
{
    static const size_t sizes[] = { 0, 1, 125, 126, 65535, 65536, 1024 * 1024 };
    for (enum world_kind kind = 0; kind < WORLD_COUNT; kind++) {
        struct world w;
        struct talk t;
        struct http_client *c = talk_open(&t, &w, kind, NULL);
        for (size_t i = 0; i < COUNT(sizes); i++)
            for (int text = 0; text < 2; text++) {
                AUTO(str_done) struct str m = { 0 };
                char *at = str_grow(&m, sizes[i]);
                for (size_t b = 0; b < sizes[i]; b++)
                    at[b] = (char)(text ? 'a' + b % 26 : b * 7 + b / 251);
                t.messages = 0;
                ws_send(t.ws, text, m.at, sizes[i]);
                CHECK(world_until(&w, has_message, &t) && t.text == text);
                CHECK(t.got.len == sizes[i] && (!sizes[i] || memcmp(t.got.at, m.at, sizes[i]) == 0));
            }
        CHECK(w.ws_open == 1 && http_connections(w.server) == 1);
        talk_close(&t, c);
    }
}

TEST(what_is_sent_before_it_is_open_is_not_lost)
{
    struct world w;
    struct talk t = { .w = &w };
    world_open(&w, WORLD_TCP, NULL);
    struct http_client *c = world_client(&w);
    t.ws = ws_dial(c, "/ws", NULL, 0, NULL, &events, &t);
    ws_send(t.ws, true, "early", 5);
    CHECK(ws_waiting(t.ws) >= 5);
    CHECK(world_until(&w, has_message, &t) && text_is(t.got.at, "early"));
    talk_close(&t, c);
}

TEST(a_goodbye_reaches_both_sides_with_its_reason)
{
    for (enum world_kind kind = 0; kind < WORLD_COUNT; kind++) {
        struct world w;
        struct talk t;
        struct http_client *c = talk_open(&t, &w, kind, NULL);
        ws_close(t.ws, 1000, "done");
        ws_send(t.ws, true, "too late", 8);
        CHECK(world_until(&w, is_closed, &t) && t.why.rc == RC_OK && text_is(t.why.text, "done"));
        CHECK(world_until(&w, server_closed, &w) && w.ws_why.rc == RC_OK && text_is(w.ws_why.text, "done"));
        CHECK(t.messages == 0);
        talk_close(&t, c);

        c = talk_open(&t, &w, kind, NULL);
        ws_send(t.ws, true, "bye!", 4);
        CHECK(world_until(&w, is_closed, &t) && t.why.rc == RC_NOT_FOUND && text_is(t.why.text, "no such thing"));
        CHECK(world_until(&w, server_closed, &w) && w.ws_why.rc == RC_NOT_FOUND);
        talk_close(&t, c);

        c = talk_open(&t, &w, kind, NULL);
        ws_send(t.ws, true, "drop", 4);
        CHECK(world_until(&w, is_closed, &t) && t.why.rc == RC_UNAVAILABLE);
        CHECK(world_until(&w, server_closed, &w) && w.ws_closed == 1 && w.ws_why.rc == RC_OK);
        talk_close(&t, c);
    }
}

TEST(a_long_reason_is_cut_between_letters)
{
    struct world w;
    struct talk t;
    struct http_client *c = talk_open(&t, &w, WORLD_TCP, NULL);
    AUTO(str_done) struct str reason = { 0 };
    str_text(&reason, "x");
    for (int i = 0; i < 100; i++)
        str_text(&reason, "\xc3\xa4");
    ws_close(t.ws, 1000, reason.at);
    CHECK(world_until(&w, server_closed, &w) && w.ws_why.rc == RC_OK && strlen(w.ws_why.text) == 123);
    talk_close(&t, c);
}

TEST(a_refused_dial_says_what_the_server_said)
{
    struct world w;
    struct talk t = { .w = &w };
    world_open(&w, WORLD_TCP, NULL);
    struct http_client *c = world_client(&w);
    t.ws = ws_dial(c, "/nowhere", NULL, 0, NULL, &events, &t);
    CHECK(world_until(&w, is_closed, &t) && t.opened == 0);
    CHECK(t.why.rc == RC_NOT_FOUND && text_is(t.why.text, "there is no such path"));
    t = (struct talk){ .w = &w };
    t.ws = ws_dial(c, "/hello", NULL, 0, NULL, &events, &t);
    CHECK(world_until(&w, is_closed, &t) && t.why.rc == RC_INTERNAL && strstr(t.why.text, "200"));
    t = (struct talk){ .w = &w };
    http_server_close(TAKE(w.server), 0);
    t.ws = ws_dial(c, "/ws", NULL, 0, NULL, &events, &t);
    CHECK(world_until(&w, is_closed, &t) && t.why.rc == RC_UNAVAILABLE);
    http_client_free(c);
    world_close(&w);
}

TEST(a_dial_may_be_given_up_at_any_time)
{
    for (int how = 0; how < 4; how++) {
        struct world w;
        struct talk t = { .w = &w, .in_open_close = how == 3 };
        world_open(&w, WORLD_TCP, NULL);
        struct http_client *c = world_client(&w);
        t.ws = ws_dial(c, how == 2 ? "/never" : "/ws", NULL, 0, NULL, &events, &t);
        if (how == 0)
            ws_drop(t.ws);
        if (how == 1)
            ws_close(t.ws, 1000, "no");
        if (how == 2) {
            world_wait(&w, 10);
            http_client_free(TAKE(c));
            CHECK(t.closed == 1 && t.why.rc == RC_UNAVAILABLE);
        }
        CHECK(world_until(&w, is_closed, &t) && t.closed == 1 && t.opened == (how == 3));
        http_client_free(c);
        world_close(&w);
    }
}

static void open_and_free(void *arg, struct ws *ws)
{
    struct talk *t = arg;
    on_open(arg, ws);
    http_client_free(TAKE(t->c));
}

TEST(the_client_may_be_freed_inside_on_open)
{
    static const struct ws_events freeing = { open_and_free, on_message, NULL, on_close };
    struct world w;
    world_open(&w, WORLD_TCP, NULL);
    struct talk t = { .w = &w, .c = world_client(&w) };
    t.ws = ws_dial(t.c, "/ws", NULL, 0, NULL, &freeing, &t);
    ws_send(t.ws, true, "still", 5);
    CHECK(world_until(&w, has_message, &t) && !t.c && t.closed == 0);
    talk_close(&t, NULL);
}

static bool is_settled(void *arg) { return has_message(arg) || is_closed(arg); }

TEST(a_dial_ends_or_opens_whatever_fails)
{
    for (int nth = 1;; nth++) {
        struct world w;
        struct talk t = { .w = &w };
        world_open(&w, WORLD_TCP, NULL);
        struct http_client *c = world_client(&w);
        fault_arm(nth);
        t.ws = ws_dial(c, "/ws", NULL, 0, NULL, &events, &t);
        ws_send(t.ws, false, "x", 1);
        CHECK(world_until(&w, is_settled, &t));
        bool fired = fault_fired();
        fault_arm(0);
        CHECK(fired || (t.opened == 1 && t.closed == 0));
        CHECK(t.closed == 0 || t.why.rc != RC_OK);
        talk_close(&t, c);
        if (!fired)
            break;
    }
}

TEST(an_open_one_outlives_its_client)
{
    struct world w;
    struct talk t;
    struct http_client *c = talk_open(&t, &w, WORLD_TCP, NULL);
    http_client_free(c);
    ws_send(t.ws, true, "still", 5);
    CHECK(world_until(&w, has_message, &t) && text_is(t.got.at, "still"));
    talk_close(&t, NULL);
}

TEST(a_message_over_the_limit_ends_with_1009)
{
    struct ws_limits small = { .message_bytes = 1000 };
    struct world w;
    struct talk t;
    struct http_client *c = talk_open(&t, &w, WORLD_TCP, NULL);
    w.ws_limits = small;
    str_done(&t.got);
    struct talk second = { .w = &w };
    second.ws = ws_dial(c, "/ws", NULL, 0, NULL, &events, &second);
    CHECK(world_until(&w, is_open, &second));
    char big[1001] = { 0 };
    ws_send(second.ws, false, big, 1000);
    CHECK(world_until(&w, has_message, &second) && second.got.len == 1000);
    ws_send(second.ws, false, big, 1001);
    CHECK(world_until(&w, is_closed, &second) && second.why.rc == RC_TOO_LARGE);
    CHECK(world_until(&w, server_closed, &w) && w.ws_why.rc == RC_TOO_LARGE);
    str_done(&second.got);
    talk_close(&t, c);
}

TEST(a_peer_that_reads_late_holds_the_sender_back)
{
    struct world w;
    struct talk t;
    struct http_client *c = talk_open(&t, &w, WORLD_TCP, NULL);
    static char block[64 * 1024];
    w.ws_pause = true;
    ws_send(t.ws, false, block, 10);
    CHECK(world_until(&w, has_message, &t));
    int sent = 0;
    for (; sent < 2000 && ws_waiting(t.ws) < 1024 * 1024; sent++)
        ws_send(t.ws, false, block, sizeof block);
    world_wait(&w, 50);
    CHECK(sent < 2000 && ws_waiting(t.ws) > 0 && t.messages == 1 && t.drains == 0);
    ws_pause(w.ws, false);
    for (int i = 0; i < 10000 && t.messages < sent + 1; i++)
        world_wait(&w, 5);
    CHECK(t.messages == sent + 1 && t.drains > 0 && ws_waiting(t.ws) == 0);
    talk_close(&t, c);
}

TEST(pings_keep_a_quiet_connection_and_end_a_dead_one)
{
    struct ws_limits fast = { .ping_ms = 20 };
    struct world w;
    struct talk t;
    struct http_client *c = talk_open(&t, &w, WORLD_SIM, &fast);
    world_wait(&w, 200);
    CHECK(t.closed == 0 && w.ws_closed == 0);
    talk_close(&t, c);
}

TEST(a_server_that_closes_says_goodbye)
{
    struct world w;
    struct talk t;
    struct http_client *c = talk_open(&t, &w, WORLD_TCP, NULL);
    http_server_close(TAKE(w.server), 1000);
    CHECK(world_until(&w, is_closed, &t) && t.why.rc == RC_UNAVAILABLE && text_is(t.why.text, "the server is closing"));
    talk_close(&t, c);
    c = talk_open(&t, &w, WORLD_TCP, NULL);
    http_server_close(TAKE(w.server), 0);       /* as if it died */
    CHECK(world_until(&w, is_closed, &t) && t.why.rc == RC_UNAVAILABLE);
    talk_close(&t, c);
}

TEST(a_machine_that_crashes_takes_its_side_along_and_the_other_notices)
{
    for (int side = 0; side < 2; side++) {
        struct world w;
        struct talk t;
        struct http_client *c = talk_open(&t, &w, WORLD_SIM, NULL);
        sim_crash(w.sim, side ? w.far : w.os);
        if (side)
            http_client_drop(c);
        else
            http_server_drop(TAKE(w.server));
        CHECK(side ? t.closed == 1 : w.ws_closed == 1);
        CHECK(world_until(&w, is_closed, &t) && world_until(&w, server_closed, &w));
        CHECK(t.why.rc == RC_UNAVAILABLE && w.ws_why.rc == RC_UNAVAILABLE && t.closed + w.ws_closed == 2);
        if (!side)
            http_client_free(c);
        str_done(&t.got);
        world_close(&w);
    }
}

/* --- a client that makes its frames by hand, right or wrong */
#define SHAKE "GET /ws HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n" \
              "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"

static void frame(struct str *out, unsigned first, bool masked, const void *at, size_t n)
{
    str_char(out, (char)first);
    str_char(out, (char)((masked ? 0x80 : 0) | (n < 126 ? n : 126)));
    if (n >= 126) {
        str_char(out, (char)(n >> 8));
        str_char(out, (char)n);
    }
    if (masked)
        str_put(out, "\0\0\0\0", 4);        /* a mask of zeros changes nothing */
    str_put(out, at, n);
}

struct by_hand { const char *name; unsigned first; bool masked; const char *payload; size_t n; int code; };

struct goodbye { struct raw *r; int code; };

static bool goodbye_came(void *arg)
{
    struct goodbye *g = arg;
    struct str *got = &g->r->got;
    char code[2] = { (char)(g->code >> 8), (char)g->code };
    if (!g->code)               /* wslay's goodbye to a frame it cannot read at all */
        return got->len > 2 && memcmp(got->at + got->len - 2, "\x88\x00", 2) == 0;
    for (size_t i = 0; i + 4 <= got->len; i++)
        if (memcmp(got->at + i, "\x88", 1) == 0 && got->at[i + 1] >= 2 && memcmp(got->at + i + 2, code, 2) == 0)
            return true;
    return false;
}

TEST(frames_that_break_the_rules_end_with_their_code)
{
    static const struct by_hand rows[] = {
        { "unmasked", 0x81, false, "hi", 2, 1002 },
        { "reserved bit", 0xc1, true, "hi", 2, 1002 },
        { "unknown opcode", 0x83, true, "hi", 2, 1002 },
        { "continuation of nothing", 0x80, true, "hi", 2, 1002 },
        { "fragmented ping", 0x09, true, "hi", 2, 0 },
        { "bad UTF-8", 0x81, true, "\xff\xfe", 2, 1007 },
        { "UTF-8 that ends in a letter", 0x81, true, "a\xc3", 2, 1007 },
        { "a surrogate in UTF-8", 0x81, true, "\xed\xa0\x80", 3, 1007 },
        { "one byte of a close code", 0x88, true, "\x03", 1, 0 },
        { "a close code nobody may send", 0x88, true, "\x03\xee", 2, 1002 },
        { "a reason that is not UTF-8", 0x88, true, "\x03\xe8\xff", 3, 1007 },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct world w;
        struct raw r;
        world_open(&w, WORLD_TCP, NULL);
        raw_dial(&r, &w);
        raw_say(&r, SHAKE);
        CHECK(raw_has(&r, "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"));
        AUTO(str_done) struct str bytes = { 0 };
        frame(&bytes, rows[i].first, rows[i].masked, rows[i].payload, rows[i].n);
        stream_write(r.stream, bytes.at, bytes.len);
        if (!world_until(&w, goodbye_came, &(struct goodbye){ &r, rows[i].code })) {
            printf("# %s\n", rows[i].name);
            CHECK(!"closed with the right code");
        }
        raw_done(&r);
        CHECK(world_until(&w, server_closed, &w) && w.ws_closed == 1 && w.ws_why.rc == RC_BAD_INPUT);
        world_close(&w);
    }
}

TEST(a_peer_that_ignores_the_goodbye_is_cut_after_a_moment)
{
    struct world w;
    struct raw r;
    world_open(&w, WORLD_SIM, NULL);
    raw_dial(&r, &w);
    raw_say(&r, SHAKE);
    CHECK(raw_has(&r, "xOo=\r\n\r\n"));
    int64_t began = sim_now_ms(w.sim);
    ws_close(w.ws, 1000, "go");
    CHECK(raw_closed(&r) && sim_now_ms(w.sim) - began >= 2000 && raw_count(&r, "go") == 1);
    CHECK(w.ws_closed == 1 && w.ws_why.rc == RC_OK);
    raw_done(&r);
    world_close(&w);
}

TEST(the_limits_of_a_day_hold_too)
{
    struct world w;
    struct raw r;
    world_open(&w, WORLD_SIM, NULL);
    raw_dial(&r, &w);
    raw_say(&r, SHAKE);
    CHECK(raw_has(&r, "xOo=\r\n\r\n"));
    world_wait(&w, 35 * 1000);
    CHECK(w.ws_closed == 0);
    world_wait(&w, 10 * 1000);
    CHECK(w.ws_closed == 1 && w.ws_why.rc == RC_TIMEOUT);
    raw_done(&r);
    world_close(&w);
}

TEST(fragments_are_joined_and_pings_may_come_between)
{
    struct world w;
    struct raw r;
    world_open(&w, WORLD_TCP, NULL);
    raw_dial(&r, &w);
    AUTO(str_done) struct str bytes = { 0 };
    str_text(&bytes, SHAKE);                    /* the first frames come in the packet of the request */
    frame(&bytes, 0x01, true, "a\xc3", 2);
    frame(&bytes, 0x89, true, "ping", 4);
    frame(&bytes, 0x00, true, "\xa4", 1);
    frame(&bytes, 0x80, true, "z", 1);
    for (size_t i = 0; i < bytes.len; i++) {
        stream_write(r.stream, bytes.at + i, 1);
        if (i % 8 == 0)
            world_wait(&w, 0);
    }
    CHECK(raw_has(&r, "\x8a\x04ping") && raw_has(&r, "\x81\x04" "a\xc3\xa4z"));
    raw_done(&r);
    CHECK(world_until(&w, server_closed, &w) && w.ws_why.rc == RC_UNAVAILABLE);
    world_close(&w);
}

/* Cut anywhere: what is in the middle of a frame or of a message is kept, and nothing else. */
TEST(between_messages_nothing_is_kept)
{
    AUTO(str_done) struct str all = { 0 };
    char large[300];
    memset(large, 'x', sizeof large);
    frame(&all, 0x01, true, "ab", 2);
    frame(&all, 0x89, true, "p", 1);
    frame(&all, 0x80, true, "cd", 2);
    size_t whole = all.len;
    frame(&all, 0x82, true, large, sizeof large);
    for (size_t cut = 1; cut < all.len; cut += cut < whole + 10 ? 1 : 50) {
        struct world w;
        struct raw r;
        world_open(&w, WORLD_SIM, NULL);
        raw_dial(&r, &w);
        raw_say(&r, SHAKE);
        CHECK(raw_has(&r, "xOo=\r\n\r\n") && !w.ws->frames);
        stream_write(r.stream, all.at, cut);
        world_wait(&w, 500);
        CHECK((w.ws->frames == NULL) == (cut == whole));
        stream_write(r.stream, all.at + cut, all.len - cut);
        CHECK(raw_has(&r, "\x8a\x01p") && raw_has(&r, "\x81\x04" "abcd") && raw_has(&r, "\x82\x7e\x01\x2cxxx"));
        CHECK(!w.ws->frames);
        raw_done(&r);
        world_close(&w);
    }
}

TEST(a_peer_that_is_silent_for_three_pings_is_closed)
{
    struct world w;
    struct raw r;
    world_open(&w, WORLD_TCP, NULL);
    w.ws_limits.ping_ms = 20;
    raw_dial(&r, &w);
    raw_say(&r, SHAKE);
    int64_t began = os_boot_ms(w.os);
    CHECK(world_until(&w, server_closed, &w) && w.ws_why.rc == RC_TIMEOUT);
    CHECK(os_boot_ms(w.os) - began >= 60);
    int pings = 0;
    for (size_t i = 0; i + 1 < r.got.len; i++)
        pings += memcmp(r.got.at + i, "\x89\x00", 2) == 0;
    CHECK(pings == 3);
    raw_done(&r);
    world_close(&w);
}

TEST(only_a_right_handshake_is_one)
{
    static const char *const rows[] = {
        "GET /ws HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /ws HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 8\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        "GET /ws HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: short\r\n\r\n",
        "GET /ws HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: close\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        "POST /ws HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        "GET /ws HTTP/1.1\r\nHost: h\r\nUpgrade: h2c\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    };
    struct world w;
    world_open(&w, WORLD_TCP, NULL);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct raw r;
        raw_dial(&r, &w);
        raw_say(&r, rows[i]);
        CHECK(raw_has(&r, "no such path") && w.ws_open == 0);
        raw_done(&r);
    }
    world_close(&w);
}
