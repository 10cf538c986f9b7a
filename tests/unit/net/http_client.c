#include "base/fault.h"
#include "world.h"

/* --- a server that does what it is told, right or wrong */
struct odd {
    struct world *w;
    struct listener *listener;
    struct stream *streams[8];
    int opened, heard;
    const char *say[8];         /* what the n-th request is answered with; NULL: the connection is closed over it */
    bool then_close[8];
};
struct odd_line { struct odd *odd; struct stream *stream; };

static size_t odd_data(void *arg, const char *at, size_t n)
{
    struct odd_line *l = arg;
    struct odd *o = l->odd;
    if (!memmem(at, n, "\r\n\r\n", 4))
        return 0;
    int i = o->heard++;
    if (!o->say[i]) {
        stream_close(l->stream);
        return n;
    }
    stream_write(l->stream, o->say[i], strlen(o->say[i]));
    if (o->then_close[i])
        stream_end(l->stream);
    return n;
}

static void odd_closed(void *arg, const struct err *why) { (void)why, free(arg); }

static void odd_accept(void *arg, struct stream *s)
{
    static const struct stream_events events = { .on_data = odd_data, .on_close = odd_closed };
    struct odd *o = arg;
    struct odd_line *l = calloc(1, sizeof *l);
    *l = (struct odd_line){ o, s };
    o->opened++;
    stream_bind(s, &events, l);
}

static void odd_open(struct odd *o, struct world *w)
{
    struct err err = { 0 };
    world_open(w, WORLD_TCP, NULL);
    *o = (struct odd){ .w = w };
    CHECK(stream_listen(w->os, "127.0.0.1:0", NULL, odd_accept, o, &o->listener, &err));
    snprintf(w->url, sizeof w->url, "http://%s", listener_address(o->listener));
}

static void odd_close(struct odd *o, struct http_client *c)
{
    http_client_free(c);
    listener_close(o->listener);
    world_close(o->w);
}

#define OK "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

static void fill(struct str *s, size_t n)
{
    char *at = str_grow(s, n);
    for (size_t i = 0; i < n; i++)
        at[i] = (char)(i * 7 + i / 251);
    s->len = n;
}

TEST(bodies_of_any_size_come_back_as_they_went)
{
    static const size_t sizes[] = { 0, 1, 64 * 1024, 5 * 1024 * 1024 };
    for (enum world_kind kind = 0; kind < WORLD_COUNT; kind++) {
        struct world w;
        world_open(&w, kind, NULL);
        struct http_client *c = world_client(&w);
        for (size_t i = 0; i < COUNT(sizes); i++) {
            AUTO(str_done) struct str body = { 0 };
            fill(&body, sizes[i]);
            struct answer a;
            answer_start(&a, &w, c, "POST", "/large", (struct slice){ body.at, body.len });
            CHECK(answer_wait(&a) && a.status == 200 && a.heads == 1);
            CHECK(a.body.len == sizes[i] && memcmp(a.body.at, body.at, sizes[i]) == 0);
            CHECK(text_is(a.type, sizes[i] ? "text/x-test" : ""));
            answer_done(&a);
        }
        CHECK(http_connections(w.server) == 1);
        http_client_free(c);
        world_close(&w);
    }
}

/* --- streaming both ways */
struct flow { struct answer a; struct str body; size_t sent, most; bool pausing; };

static void pour(struct flow *f, struct http_call *c)
{
    while (f->sent < f->body.len && http_call_waiting(c) < 128 * 1024) {
        size_t n = MIN(f->body.len - f->sent, (size_t)10000);
        http_call_body(c, f->body.at + f->sent, n);
        f->sent += n;
        f->most = MAX(f->most, http_call_waiting(c));
    }
    if (f->sent == f->body.len)
        http_call_finish(c);
}

static void flow_drain(void *arg, struct http_call *c) { pour(arg, c); }
static void flow_data(void *arg, const char *at, size_t n) { str_put(&((struct flow *)arg)->a.body, at, n); }
static void flow_end(void *arg, int status, struct slice body, const struct err *err)
{
    (void)body;
    struct flow *f = arg;
    f->a.ended = true;
    f->a.ends++;
    f->a.status = status;
    if (err)
        f->a.err = *err;
}

static void check_flow(enum world_kind kind, const char *path, size_t size, int64_t length)
{
    static const struct http_call_events events = { .on_data = flow_data, .on_body_drain = flow_drain, .on_end = flow_end };
    struct world w;
    world_open(&w, kind, NULL);
    struct http_client *c = world_client(&w);
    struct flow f = { .a.world = &w };
    fill(&f.body, size);
    struct http_call *k = http_call(c, "POST", path, NULL, 0, (struct slice){ 0 }, length, &events, &f);
    pour(&f, k);
    CHECK(answer_wait(&f.a) && f.a.status == 200 && f.sent == size);
    CHECK(f.most < 200 * 1024);
    if (text_is(path, "/mirror")) {
        CHECK(f.a.body.len == size && memcmp(f.a.body.at, f.body.at, size) == 0);
    } else {
        size_t sum = 0;
        for (size_t i = 0; i < size; i++)
            sum = sum * 31 + (unsigned char)f.body.at[i];
        char expect[64];
        snprintf(expect, sizeof expect, "%zu %zu", size, sum);
        CHECK(f.a.body.len == strlen(expect) && memcmp(f.a.body.at, expect, f.a.body.len) == 0);
    }
    str_done(&f.body);
    str_done(&f.a.body);
    http_client_free(c);
    world_close(&w);
}

TEST(a_body_may_stream_up_and_down_with_little_in_memory)
{
    for (enum world_kind kind = 0; kind < WORLD_COUNT; kind++) {
        check_flow(kind, "/count", 5 * 1024 * 1024, 5 * 1024 * 1024);
        check_flow(kind, "/count", 5 * 1024 * 1024, -1);
        check_flow(kind, "/mirror", 5 * 1024 * 1024, -1);
        check_flow(kind, "/mirror", 1, 1);
    }
}

static void paused_head(void *arg, int status, struct http_call *c)
{
    (void)status;
    struct flow *f = arg;
    f->pausing = true;
    http_call_pause(c, true);
}

static bool is_pausing(void *arg) { return ((struct flow *)arg)->pausing; }

TEST(a_paused_reply_holds_the_server_back)
{
    static const struct http_call_events events = { .on_head = paused_head, .on_data = flow_data, .on_end = flow_end };
    struct world w;
    world_open(&w, WORLD_TCP, NULL);
    struct http_client *c = world_client(&w);
    struct flow f = { .a.world = &w };
    struct http_call *k = http_call(c, "GET", "/big?30000000", NULL, 0, (struct slice){ 0 }, 0, &events, &f);
    CHECK(world_until(&w, is_pausing, &f));
    http_call_timeout(k, 100);          /* our own pause is not the server's silence */
    world_wait(&w, 200);
    CHECK(f.pausing && f.a.body.len < 1024 * 1024 && !f.a.ended);
    int drains = w.drains;
    world_wait(&w, 50);
    CHECK(w.drains == drains);
    http_call_timeout(k, 60000);        /* the machine may be busy */
    http_call_pause(k, false);
    CHECK(answer_wait(&f.a) && f.a.status == 200 && f.a.body.len == 30000000);
    str_done(&f.a.body);
    http_client_free(c);
    world_close(&w);
}

TEST(a_connection_is_used_again)
{
    struct world w;
    world_open(&w, WORLD_SIM, NULL);
    struct http_client *c = world_client(&w);
    for (int i = 0; i < 5; i++) {
        struct answer a;
        answer_start(&a, &w, c, i == 2 ? "HEAD" : "GET", i == 3 ? "/pieces" : "/hello", (struct slice){ 0 });
        CHECK(answer_wait(&a) && a.status == 200);
        CHECK(text_is(a.body.at, i == 2 ? "" : i == 3 ? "one two" : "hello"));
        CHECK(http_connections(w.server) == 1);
        answer_done(&a);
    }
    struct answer both[2];
    for (int i = 0; i < 2; i++)
        answer_start(&both[i], &w, c, "GET", "/later", (struct slice){ 0 });
    for (int i = 0; i < 2; i++) {
        CHECK(answer_wait(&both[i]) && both[i].status == 200);
        answer_done(&both[i]);
    }
    CHECK(http_connections(w.server) == 2);
    http_client_free(c);
    world_close(&w);
}

struct retry { const char *method, *key; bool retried; };

TEST(a_stale_connection_is_replaced_once_where_twice_cannot_hurt)
{
    static const struct retry rows[] = {
        { "GET", NULL, true }, { "PUT", NULL, true }, { "DELETE", NULL, true }, { "POST", NULL, false }, { "POST", "k", true },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct world w;
        struct odd o;
        odd_open(&o, &w);
        o.say[0] = OK, o.say[1] = NULL, o.say[2] = OK;
        struct http_client *c = world_client(&w);
        struct answer first, second = { .world = &w };
        answer_start(&first, &w, c, "GET", "/", (struct slice){ 0 });
        CHECK(answer_wait(&first) && first.status == 200);
        struct http_header key = { "Idempotency-Key", rows[i].key };
        http_call(c, rows[i].method, "/", &key, rows[i].key != NULL, SLICE("body"), 0, &answer_events, &second);
        CHECK(answer_wait(&second) && second.ends == 1);
        CHECK(second.status == (rows[i].retried ? 200 : 0) && o.opened == (rows[i].retried ? 2 : 1));
        CHECK(rows[i].retried || second.err.rc == RC_UNAVAILABLE);
        answer_done(&first);
        answer_done(&second);
        odd_close(&o, c);
    }
}

TEST(a_fresh_connection_that_dies_is_not_tried_again)
{
    struct world w;
    struct odd o;
    odd_open(&o, &w);
    struct http_client *c = world_client(&w);
    struct answer a;
    answer_start(&a, &w, c, "GET", "/", (struct slice){ 0 });
    CHECK(answer_wait(&a) && a.status == 0 && a.err.rc == RC_UNAVAILABLE && *a.err.text && o.heard == 1);
    answer_done(&a);
    odd_close(&o, c);
}

struct reply { const char *say; bool close; int status; enum rc rc; const char *body; };

TEST(whatever_a_server_says_ends_the_call_once)
{
    static const struct reply rows[] = {
        { OK, false, 200, RC_OK, "ok" },
        { "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n" OK, false, 200, RC_OK, "ok" },
        { "HTTP/1.1 200 OK\r\n\r\nto the end", true, 200, RC_OK, "to the end" },
        { "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", true, 0, RC_UNAVAILABLE, "" },
        { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", true, 0, RC_UNAVAILABLE, "" },
        { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxx\r\n", false, 0, RC_INTERNAL, "" },
        { "HTTP/1.1 20", true, 0, RC_UNAVAILABLE, "" },
        { "SSH-2.0-OpenSSH_9.2p1\r\n\r\n", false, 0, RC_INTERNAL, "" },
        { "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n", false, 0, RC_INTERNAL, "" },
        { OK "HTTP/1.1 200 OK\r\n", false, 200, RC_OK, "ok" },
        { "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\nConnection: close\r\n\r\ngone", true, 404, RC_OK, "gone" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct world w;
        struct odd o;
        odd_open(&o, &w);
        o.say[0] = rows[i].say, o.then_close[0] = rows[i].close, o.say[1] = OK;
        struct http_client *c = world_client(&w);
        struct answer a, b;
        answer_start(&a, &w, c, "GET", "/", (struct slice){ 0 });
        CHECK(answer_wait(&a) && a.ends == 1 && a.status == rows[i].status && a.err.rc == rows[i].rc);
        CHECK(text_is(a.body.at, rows[i].body));
        answer_start(&b, &w, c, "GET", "/", (struct slice){ 0 });
        CHECK(answer_wait(&b) && b.status == 200 && o.opened == (i < 2 ? 1 : 2));
        answer_done(&a);
        answer_done(&b);
        odd_close(&o, c);
    }
}

TEST(a_server_that_is_silent_is_given_up)
{
    for (enum world_kind kind = 0; kind < WORLD_COUNT; kind++) {
        struct world w;
        world_open(&w, kind, NULL);
        struct http_client *c = world_client(&w);
        struct answer a;
        answer_start(&a, &w, c, "GET", "/never", (struct slice){ 0 });
        http_call_timeout(a.call, 50);
        CHECK(answer_wait(&a) && a.status == 0 && a.err.rc == RC_TIMEOUT && a.ends == 1);
        world_wait(&w, 20);
        CHECK(w.gone == 1);
        answer_done(&a);
        http_client_free(c);
        world_close(&w);
    }
}

TEST(a_server_that_dies_or_is_not_there_is_said_so)
{
    struct world w;
    world_open(&w, WORLD_TCP, NULL);
    struct http_client *c = world_client(&w);
    struct answer a;
    answer_start(&a, &w, c, "GET", "/never", (struct slice){ 0 });
    world_wait(&w, 20);
    http_server_close(TAKE(w.server), 0);
    CHECK(answer_wait(&a) && a.status == 0 && a.err.rc == RC_UNAVAILABLE && strstr(a.err.text, "127.0.0.1"));
    answer_done(&a);
    answer_start(&a, &w, c, "GET", "/hello", (struct slice){ 0 });
    CHECK(answer_wait(&a) && a.status == 0 && a.err.rc == RC_UNAVAILABLE && strstr(a.err.text, "127.0.0.1"));
    answer_done(&a);
    http_client_free(c);
    world_close(&w);
}

/* --- ending a call from inside itself */
struct knot { struct world *w; struct http_client *c; struct http_call *k; int where, ends; struct answer next; };

static void knot_head(void *arg, int status, struct http_call *k)
{
    (void)status;
    struct knot *n = arg;
    if (n->where == 0)
        http_call_cancel(k);
    if (n->where == 1)
        http_client_free(TAKE(n->c));
}

static void knot_data(void *arg, const char *at, size_t len)
{
    (void)at, (void)len;
    struct knot *n = arg;
    if (n->where == 2)
        http_call_cancel(n->k);
    if (n->where == 3)
        http_client_free(TAKE(n->c));
}

static void knot_end(void *arg, int status, struct slice body, const struct err *err)
{
    (void)status, (void)body, (void)err;
    struct knot *n = arg;
    n->ends++;
    if (n->where == 4)
        http_client_free(TAKE(n->c));
    if (n->where == 5)
        answer_start(&n->next, n->w, n->c, "GET", "/hello", (struct slice){ 0 });
    if (n->where == 6)
        http_call_cancel(n->k);
}

TEST(a_call_or_its_client_may_end_inside_any_of_its_callbacks)
{
    static const struct http_call_events events = { .on_head = knot_head, .on_data = knot_data, .on_end = knot_end };
    static const int ends[] = { 0, 1, 0, 1, 1, 1, 1 };
    for (int where = 0; where < (int)COUNT(ends); where++) {
        struct world w;
        world_open(&w, WORLD_TCP, NULL);
        struct knot n = { .w = &w, .c = world_client(&w), .where = where };
        n.k = http_call(n.c, "GET", "/pieces", NULL, 0, (struct slice){ 0 }, 0, &events, &n);
        world_wait(&w, 30);
        CHECK(n.ends == ends[where]);
        if (where == 5) {
            CHECK(answer_wait(&n.next) && n.next.status == 200 && http_connections(w.server) == 1);
            answer_done(&n.next);
        }
        http_client_free(n.c);
        world_close(&w);
    }
}

TEST(freeing_the_client_ends_open_calls_and_cancelling_says_nothing)
{
    struct world w;
    world_open(&w, WORLD_TCP, NULL);
    struct http_client *c = world_client(&w);
    struct answer a, b;
    answer_start(&a, &w, c, "GET", "/never", (struct slice){ 0 });
    answer_start(&b, &w, c, "GET", "/never", (struct slice){ 0 });
    world_wait(&w, 10);
    http_call_cancel(b.call);
    http_client_free(c);
    CHECK(a.ends == 1 && a.err.rc == RC_UNAVAILABLE && b.ends == 0);
    world_wait(&w, 20);
    CHECK(w.gone == 2 && a.ends == 1 && b.ends == 0);
    answer_done(&a);
    answer_done(&b);
    world_close(&w);
}

TEST(a_body_shorter_than_announced_is_never_taken_for_whole)
{
    struct world w;
    world_open(&w, WORLD_TCP, NULL);
    struct http_client *c = world_client(&w);
    struct answer a = { .world = &w };
    a.call = http_call(c, "POST", "/echo", NULL, 0, (struct slice){ 0 }, 10, &answer_events, &a);
    http_call_body(a.call, "short", 5);
    world_wait(&w, 10);
    http_call_finish(a.call);
    CHECK(answer_wait(&a) && a.status == 0 && a.err.rc == RC_INTERNAL);
    world_wait(&w, 20);
    CHECK(w.requests == 0 && w.gone == 1);
    answer_done(&a);
    http_client_free(c);
    world_close(&w);
}

TEST(a_reply_too_large_to_collect_is_refused)
{
    struct world w;
    world_open(&w, WORLD_TCP, NULL);
    struct http_client *c = world_client(&w);
    struct answer a;
    answer_start(&a, &w, c, "GET", "/big?17000000", (struct slice){ 0 });
    CHECK(answer_wait(&a) && a.status == 0 && a.err.rc == RC_TOO_LARGE);
    answer_done(&a);
    http_client_free(c);
    world_close(&w);
}

TEST(addresses_are_checked_before_anything_is_dialled)
{
    static const char *const bad[] = { "", "ftp://x", "http://", "http://u@h", "http://h/path", "http://[::1", "http://h h", "h:80",
                                       "http://head", "http://10.0.0.1:80", "http://127.evil.example" /* in the open */ };
    static const char *const good[] = { "http://localhost", "http://127.0.0.1:1/", "https://h", "http://[::1]:80", "unix:/x" };
    struct err err = { 0 };
    struct os *os = os_real_new(&err);
    struct http_client *c = NULL;
    for (size_t i = 0; i < COUNT(bad); i++) {
        CHECK(!http_client_new(os, bad[i], NULL, NULL, NULL, &c, &err) && err.rc == RC_BAD_INPUT && *err.text);
        CHECK(!c);
    }
    for (size_t i = 0; i < COUNT(good); i++) {
        CHECK(http_client_new(os, good[i], NULL, NULL, NULL, &c, &err));
        http_client_free(TAKE(c));
    }
    os_free(os);
}

TEST(what_goes_out_cannot_be_broken_by_what_is_put_in)
{
    struct world w;
    struct odd o;
    odd_open(&o, &w);
    o.say[0] = OK;
    struct http_client *c = world_client(&w);
    http_client_token(c, "tok\r\nX-Evil: 1");
    struct answer a;
    answer_start(&a, &w, c, "GET", "/a b\r\nX-Evil: 2", (struct slice){ 0 });
    CHECK(answer_wait(&a) && a.status == 200);
    answer_done(&a);
    odd_close(&o, c);
}

TEST(tls_carries_the_same_conversation_and_a_stranger_is_refused)
{
    struct err err = { 0 };
    AUTO(arena_free) struct arena *mem = arena_new();
    char *ca = NULL, *ca_key = NULL, *cert = NULL, *key = NULL, pin[65];
    CHECK(tls_ca_make(mem, &ca, &ca_key, &err) && tls_cert_make(ca, ca_key, (struct texts){ 0 }, mem, &cert, &key, &err) && tls_sha256(ca, pin, &err));
    AUTO(tls_free) struct tls *tls = NULL;
    CHECK(tls_server(&tls, cert, key, &err));
    struct world w;
    world_open(&w, WORLD_TCP, NULL);
    struct http_server *secure = NULL;
    CHECK(world_listen(&w, "127.0.0.1:0", tls, &secure));
    snprintf(w.url, sizeof w.url, "https://%s", http_address(secure));
    for (int i = 0; i < 3; i++) {
        struct http_client *c = NULL;
        const char *wrong = "0000000000000000000000000000000000000000000000000000000000000000";
        CHECK(http_client_new(w.far, w.url, i == 1 ? ca : NULL, i == 0 ? pin : i == 2 ? wrong : NULL, NULL, &c, &err));
        struct answer a;
        answer_start(&a, &w, c, "POST", "/echo", SLICE("secret"));
        CHECK(answer_wait(&a) && a.status == (i < 2 ? 200 : 0) && text_is(a.body.at, i < 2 ? "secret" : ""));
        answer_done(&a);
        http_client_free(c);
    }
    http_server_close(secure, 0);
    world_close(&w);
}

TEST(a_call_ends_exactly_once_whatever_fails)
{
    for (int nth = 1;; nth++) {
        struct world w;
        world_open(&w, WORLD_TCP, NULL);
        struct http_client *c = world_client(&w);
        struct answer a;
        fault_arm(nth);
        answer_start(&a, &w, c, "POST", "/echo", SLICE("body"));
        CHECK(answer_wait(&a) && a.ends == 1);
        bool fired = fault_fired();
        fault_arm(0);
        CHECK(a.status == 200 ? text_is(a.body.at, "body") : a.err.rc != RC_OK);
        CHECK(fired || a.status == 200);
        answer_done(&a);
        http_client_free(c);
        world_close(&w);
        if (!fired)
            break;
    }
}
