#include "world.h"
#include <stdlib.h>
#include <unistd.h>

/* --- the routes */
struct later { struct world *w; struct http_request *rq; struct timer *timer; };
struct big { size_t left; };

static void reply_text(struct http_request *rq, int status, const char *text)
{
    http_reply(rq, status, "text/plain", NULL, 0, SLICE(text));
}

static bool count_chunk(void *arg, struct http_request *rq, const char *at, size_t n)
{
    (void)arg;
    size_t *seen = http_data(rq);
    for (size_t i = 0; i < n; i++)
        seen[1] = seen[1] * 31 + (unsigned char)at[i];
    seen[0] += n;
    return true;
}

static bool refuse_chunk(void *arg, struct http_request *rq, const char *at, size_t n)
{
    (void)arg, (void)at, (void)n;
    reply_text(rq, 403, "no more");
    return false;
}

static bool mirror_chunk(void *arg, struct http_request *rq, const char *at, size_t n)
{
    struct world *w = arg;
    http_piece(rq, at, n);
    if (http_waiting(rq) > 256 * 1024) {
        w->paused = rq;
        http_pause_body(rq, true);
    }
    return true;
}

static void on_head(void *arg, struct http_request *rq)
{
    struct world *w = arg;
    w->heads++;
    const char *p = http_path(rq);
    if (text_is(p, "/refuse"))
        reply_text(rq, 403, "refused");
    else if (text_is(p, "/large"))
        http_limit_body(rq, 100 * 1024 * 1024);
    else if (text_is(p, "/count")) {
        http_limit_body(rq, 100 * 1024 * 1024);
        http_set_data(rq, ARENA_ARRAY(http_mem(rq), size_t, 2));
        http_stream_body(rq, count_chunk);
    } else if (text_is(p, "/midway"))
        http_stream_body(rq, refuse_chunk);
    else if (text_is(p, "/mirror")) {
        http_limit_body(rq, 100 * 1024 * 1024);
        http_stream_body(rq, mirror_chunk);
        http_begin(rq, 200, "application/octet-stream", NULL, 0, -1);
    } else if (text_is(p, "/slow")) {
        http_stream_body(rq, count_chunk);
        http_set_data(rq, ARENA_ARRAY(http_mem(rq), size_t, 2));
        http_pause_body(rq, true);
        w->paused = rq;
    }
}

static void say_later(void *arg)
{
    struct later *l = arg;
    struct http_request *rq = l->rq;
    free(l);
    http_set_data(rq, NULL);
    reply_text(rq, 200, "later");
}

static void pour(struct world *w, struct http_request *rq)
{
    static char block[16 * 1024];
    struct big *b = http_data(rq);
    w->chunk_most = MAX(w->chunk_most, http_waiting(rq));
    memset(block, 'x', sizeof block);
    while (b->left && http_waiting(rq) < 256 * 1024) {
        size_t n = MIN(b->left, sizeof block);
        b->left -= n;
        http_piece(rq, block, n);
    }
    if (!b->left)
        http_end(rq);
}

static void ws_message(void *arg, struct ws *ws, bool text, const char *at, size_t n)
{
    struct world *w = arg;
    if (w->ws_pause) {
        w->ws_pause = false;
        ws_pause(ws, true);
    }
    if (text && n == 4 && memcmp(at, "bye!", 4) == 0)
        ws_close(ws, 4404, "no such thing");
    else if (text && n == 4 && memcmp(at, "drop", 4) == 0)
        ws_drop(ws);
    else
        ws_send(ws, text, at, n);
}

static void ws_closed(void *arg, struct ws *ws, const struct err *why)
{
    (void)ws;
    struct world *w = arg;
    w->ws_closed++;
    w->ws_why = *why;
    w->ws = NULL;
}

static void on_request(void *arg, struct http_request *rq)
{
    struct world *w = arg;
    w->requests++;
    static const struct ws_events ws_events = { .on_message = ws_message, .on_close = ws_closed };
    const char *p = http_path(rq);
    struct http_header odd[] = { { "X-Odd", "a\r\nX-Evil: 1" }, { "X-Query", http_query(rq) } };
    if (text_is(p, "/hello"))
        http_reply(rq, 200, "text/plain", odd, 2, SLICE("hello"));
    else if (text_is(p, "/mine")) {                 /* the query is its group */
        http_group(rq, (uint64_t)atoi(http_query(rq)));
        reply_text(rq, 200, "mine");
    } else if (text_is(p, "/rest")) {
        http_rest(rq, 100);
        reply_text(rq, 429, "rest");
    } else if (text_is(p, "/echo") || text_is(p, "/large"))
        http_reply(rq, 200, http_header(rq, "Content-Type"), NULL, 0, http_body(rq));
    else if (text_is(p, "/count") || text_is(p, "/slow")) {
        size_t *seen = http_data(rq);
        reply_text(rq, 200, arena_printf(http_mem(rq), "%zu %zu", seen[0], seen[1]));
    } else if (text_is(p, "/mirror"))
        http_end(rq);
    else if (text_is(p, "/later")) {
        struct later *l = calloc(1, sizeof *l);
        *l = (struct later){ w, rq, NULL };
        l->timer = timer_start(w->os, 150, say_later, l);
        http_set_data(rq, l);
    } else if (text_is(p, "/never"))
        w->kept = rq;
    else if (text_is(p, "/pieces")) {
        http_begin(rq, 200, "text/plain", NULL, 0, -1);
        http_piece(rq, "one ", 4);
        http_piece(rq, "", 0);
        http_piece(rq, "two", 3);
        http_end(rq);
    } else if (text_is(p, "/short") || text_is(p, "/abort")) {
        http_begin(rq, 200, "text/plain", NULL, 0, 10);
        http_piece(rq, "half", 4);
        text_is(p, "/abort") ? http_abort(rq) : http_end(rq);
    } else if (text_is(p, "/big")) {
        struct big *b = ARENA_NEW(http_mem(rq), struct big);
        b->left = (size_t)atol(http_query(rq));
        http_set_data(rq, b);
        http_begin(rq, 200, "text/plain", NULL, 0, (int64_t)b->left);
        pour(w, rq);
    } else if (text_is(p, "/nothing"))
        http_reply(rq, 204, NULL, NULL, 0, (struct slice){ 0 });
    else if (text_is(p, "/headers"))
        reply_text(rq, 200, http_header(rq, "X-TWICE") ? http_header(rq, "X-TWICE") : "none");
    else if (text_is(p, "/ws") && ws_asked(rq)) {
        w->ws_open++;
        w->ws = ws_accept(rq, &w->ws_limits, &ws_events, w);
    } else
        http_reply(rq, 404, "application/problem+json", NULL, 0,
                   SLICE("{\"title\":\"Not found\",\"detail\":\"there is no such path\"}"));
}

static void on_gone(void *arg, struct http_request *rq)
{
    struct world *w = arg;
    w->gone++;
    if (w->kept == rq)
        w->kept = NULL;
    if (w->paused == rq)
        w->paused = NULL;
    if (text_is(http_path(rq), "/later")) {
        struct later *l = http_data(rq);
        timer_cancel(l->timer);
        free(l);
    }
}

static void on_drain(void *arg, struct http_request *rq)
{
    struct world *w = arg;
    w->drains++;
    if (text_is(http_path(rq), "/big"))
        pour(w, rq);
    if (w->paused == rq) {
        w->paused = NULL;
        http_pause_body(rq, false);
    }
}

static void on_bad(void *arg, const char *peer, const struct err *why, struct str *type, struct str *body)
{
    struct world *w = arg;
    (void)peer;
    w->bad++;
    w->bad_why = *why;
    str_text(type, "application/problem+json");
    str_printf(body, "{\"status\":%d}", http_bad_status(why));
}

static const struct http_handler handler = { on_head, on_request, on_gone, on_drain, on_bad };

/* --- the world */
void world_open(struct world *w, enum world_kind kind, const struct http_limits *limits)
{
    struct err err = { 0 };
    *w = (struct world){ .kind = kind };
    char listen[64];
    snprintf(listen, sizeof listen, "127.0.0.1:0");
    if (kind == WORLD_UNIX)
        snprintf(listen, sizeof listen, "unix:/tmp/net-test-%d.sock", (int)getpid());
    if (kind == WORLD_SIM) {
        w->sim = sim_new(7);
        w->os = sim_machine(w->sim, "server");
        w->far = sim_machine(w->sim, "client");
        snprintf(listen, sizeof listen, "server:80");
    } else {
        w->os = w->far = os_real_new(&err);
    }
    if (!http_listen(w->os, listen, NULL, limits, &handler, w, &w->server, &err)) {
        printf("Bail out! %s\n", err.text);
        exit(1);
    }
    snprintf(w->address, sizeof w->address, "%s", http_address(w->server));
    snprintf(w->url, sizeof w->url, kind == WORLD_UNIX ? "%s" : "http://%s", w->address);
}

bool world_listen(struct world *w, const char *address, struct tls *tls, struct http_server **out)
{
    struct err err = { 0 };
    return http_listen(w->os, address, tls, NULL, &handler, w, out, &err);
}

/* A wait for nothing is counted in turns of the loop: a process that stood still for a while has missed one of them, not all. */
struct waiting { struct world *w; bool (*enough)(void *arg); void *arg; int64_t until, turns; bool held; };

static void look(void *arg)
{
    struct waiting *q = arg;
    q->held = q->enough && q->enough(q->arg);
    if (q->held || (q->turns-- <= 0 && os_boot_ms(q->w->os) >= q->until))
        os_stop(q->w->os);
    else
        timer_start(q->w->os, 1, look, q);
}

static bool never(void *arg) { return (void)arg, false; }
static bool run(struct world *w, bool (*enough)(void *arg), void *arg, int64_t ms)
{
    if (w->sim)
        return sim_until(w->sim, sim_now_ms(w->sim) + ms, enough, arg);
    struct waiting q = { w, enough, arg, os_boot_ms(w->os) + ms, enough == never ? ms / 2 : 0, false };
    timer_start(w->os, 0, look, &q);
    os_run(w->os);
    return q.held;
}

bool world_until(struct world *w, bool (*enough)(void *arg), void *arg) { return run(w, enough, arg, w->sim ? 5000 : 60000); }
void world_wait(struct world *w, int64_t ms) { run(w, never, NULL, ms); }

void world_close(struct world *w)
{
    if (w->server)
        http_server_close(w->server, 0);
    world_wait(w, w->sim ? 1000 : 3);
    if (w->sim)
        sim_free(w->sim);
    else
        os_free(w->os);
}

struct http_client *world_client(struct world *w)
{
    struct http_client *c = NULL;
    struct err err = { 0 };
    CHECK(http_client_new(w->far, w->url, NULL, NULL, "secret", &c, &err));
    return c;
}

/* --- raw bytes */
static void raw_open(void *arg) { ((struct raw *)arg)->open = true; }

static size_t raw_data(void *arg, const char *at, size_t n)
{
    str_put(&((struct raw *)arg)->got, at, n);
    return n;
}

static void raw_end(void *arg, const struct err *why)
{
    struct raw *r = arg;
    r->closed = true;
    r->why = *why;
}

void raw_dial(struct raw *r, struct world *w)
{
    static const struct stream_events events = { .on_open = raw_open, .on_data = raw_data, .on_close = raw_end };
    *r = (struct raw){ .world = w };
    str_text(&r->got, "");
    r->stream = stream_dial(w->far, w->address, NULL, NULL, &events, r);
}

void raw_say(struct raw *r, const char *text)
{
    if (!r->closed)
        stream_write(r->stream, text, strlen(text));
}

struct look_for { struct raw *r; const char *text; };
static bool is_there(void *arg)
{
    struct look_for *l = arg;
    return memmem(l->r->got.at, l->r->got.len, l->text, strlen(l->text)) != NULL;
}
bool raw_has(struct raw *r, const char *text) { return world_until(r->world, is_there, &(struct look_for){ r, text }); }

static bool is_closed(void *arg) { return ((struct raw *)arg)->closed; }
bool raw_closed(struct raw *r) { return world_until(r->world, is_closed, r); }

void raw_done(struct raw *r)
{
    if (!r->closed) {
        stream_close(r->stream);
        raw_closed(r);
    }
    str_done(&r->got);
}

int raw_count(const struct raw *r, const char *text)
{
    int n = 0;
    for (const char *at = r->got.at; at && (at = strstr(at, text)); at += strlen(text))
        n++;
    return n;
}

/* --- calls */
static void call_head(void *arg, int status, struct http_call *c)
{
    struct answer *a = arg;
    a->heads++;
    a->status = status;
    const char *type = http_call_header(c, "CONTENT-type");
    snprintf(a->type, sizeof a->type, "%s", type ? type : "");
}

static void call_data(void *arg, const char *at, size_t n)
{
    struct answer *a = arg;
    a->pieces++;
    str_put(&a->body, at, n);
}

static void call_end(void *arg, int status, struct slice body, const struct err *err)
{
    struct answer *a = arg;
    a->ended = true;
    a->ends++;
    a->status = status;
    a->call = NULL;
    str_put(&a->body, body.at, body.len);
    if (err)
        a->err = *err;
}

const struct http_call_events answer_events = { .on_head = call_head, .on_end = call_end };
const struct http_call_events answer_streamed = { .on_head = call_head, .on_data = call_data, .on_end = call_end };

void answer_start(struct answer *a, struct world *w, struct http_client *c, const char *method, const char *path, struct slice body)
{
    *a = (struct answer){ .world = w };
    str_text(&a->body, "");
    struct http_header type = { "Content-Type", "text/x-test" };
    a->call = http_call(c, method, path, &type, body.len > 0, body, 0, &answer_events, a);
}

static bool has_ended(void *arg) { return ((struct answer *)arg)->ended; }
bool answer_wait(struct answer *a) { return world_until(a->world, has_ended, a); }
void answer_done(struct answer *a) { str_done(&a->body); }
