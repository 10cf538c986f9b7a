#include "head.h"
#include "base/id.h"
#include "base/log.h"
#include "model/channel.h"
#include "model/prefix.h"
#include "wire/bind.h"
#include <stdlib.h>
#include <string.h>

struct answer { struct head *head; struct ws *ws; char *text; };

static void send_now(struct head *h, const char *text)
{
    if (h->link)
        ws_send(h->link, true, text, strlen(text));
}

static void send_later(void *arg)
{
    struct answer *a = arg;
    if (a->head->link == a->ws)
        send_now(a->head, a->text);
    free(a->text);
    free(a);
}

static void send_answer(struct head *h, const char *text)
{
    if (!h->delay_ms) {
        send_now(h, text);
        return;
    }
    struct answer *a = malloc(sizeof *a);
    *a = (struct answer){ h, h->link, strdup(text) };
    timer_start(h->os, h->delay_ms, send_later, a);
}

static void desired_text(struct head *h, struct str *out, bool full, size_t first, int64_t beat)
{
    struct desired d = { .kind = "desired", .generation = ++h->generation, .full = full, .kept = h->kept, .now_ms = os_wall_ms(h->os),
                         .orders = { h->orders + first, h->order_count - first }, .gone = { h->gone, h->gone_count },
                         .rotate = h->rotate && !*h->next_key, .servers = h->servers, .beat = h->no_echo ? 0 : beat };
    h->gone_count = 0;
    bind_write(&(struct json_out){ .to = out }, &desired_fields, &d);
}

void head_push(struct head *h, bool full)
{
    AUTO(str_done) struct str text = { 0 };
    desired_text(h, &text, full, full || h->order_count == 0 ? 0 : h->order_count - 1, 0);
    send_now(h, text.at);
}

void head_say(struct head *h, const char *text) { send_now(h, text); }

static void answer(struct head *h, bool full, int64_t beat)
{
    AUTO(str_done) struct str text = { 0 };
    h->last_beat = beat;
    if (h->mute)
        return;
    desired_text(h, &text, full, full ? 0 : h->order_count, beat);
    send_answer(h, full && h->say ? h->say : text.at);
}

static void take_item(struct head *h, const struct report_item *item)
{
    if (item->n <= h->kept)
        return;
    if (item->n != h->kept + 1) {
        h->gaps++;
        return;
    }
    h->kept = item->n;
    bool over = head_end_of(h, item->attempt);
    if (h->settle && (over || head_took(h, item->attempt, item->news))) {
        h->late++;
        if (over)
            head_gone(h, item->attempt);
        return;
    }
    if (h->item_count < HEAD_MOST) {
        h->items[h->item_count] = *item;
        h->items[h->item_count++].detail = arena_text(h->mem, item->detail);
    }
    if (item->news == TASK_ENDED && h->settle) {
        head_drop(h, item->attempt);
        head_gone(h, item->attempt);
    }
}

static void take_report(struct head *h, const struct json *doc, struct arena *mem)
{
    struct report r = { 0 };
    struct err err = { 0 };
    CHECK(bind_read(doc, &report_fields, mem, &r, NULL, &err));
    h->reports++;
    h->uses += (int)r.uses.count;
    if (r.uses.count)
        h->use = ((const struct task_use *)r.uses.at)[0];
    h->beats += r.items.count == 0;
    if (r.items.count && h->cut_before) {
        h->cut_before = false;
        ws_drop(h->link);
        return;
    }
    for (size_t i = 0; i < r.items.count; i++)
        take_item(h, &((const struct report_item *)r.items.at)[i]);
    if (r.items.count && h->cut_after) {
        h->cut_after = false;
        ws_drop(h->link);
        return;
    }
    answer(h, false, r.beat);
}

static void on_message(void *arg, struct ws *ws, bool text, const char *at, size_t n)
{
    struct head *h = arg;
    AUTO(arena_free) struct arena *mem = arena_new();
    struct err err = { 0 };
    struct json *doc = NULL;
    CHECK(text && json_parse((struct slice){ at, n }, mem, &doc, &err));
    if (ws != h->link || !doc)
        return;
    h->heard_at = os_boot_ms(h->os);
    if (!text_is(json_text(doc, "kind"), "hello")) {
        take_report(h, doc, mem);
        return;
    }
    struct hello hello = { 0 };
    CHECK(bind_read(doc, &hello_fields, mem, &hello, NULL, &err));
    h->hellos++;
    h->hello_next = hello.next;
    if (*h->next_key && text_is(h->link_key, h->next_key)) { /* it was used: the one before is good no more */
        snprintf(h->node_key, sizeof h->node_key, "%s", h->next_key);
        h->next_key[0] = 0;
        h->rotate = false;
    }
    h->hello_generation = hello.generation;
    snprintf(h->hello_text, sizeof h->hello_text, "%.*s", (int)n, at);
    answer(h, true, hello.beat);
}

static void on_close(void *arg, struct ws *ws, const struct err *why)
{
    struct head *h = arg;
    (void)why;
    if (h->link == ws)
        h->link = NULL;
}

/* --- streams */

static void stream_message(void *arg, struct ws *ws, bool text, const char *at, size_t n)
{
    struct head_stream *s = arg;
    (void)ws;
    CHECK(!text && n >= 1);
    struct str *to[CHANNEL_COUNT] = { NULL, &s->out, &s->err, &s->control };
    if (n >= 1 && (unsigned char)*at < CHANNEL_COUNT && to[(unsigned char)*at])
        str_put(to[(unsigned char)*at], at + 1, n - 1);
}

static void stream_close_(void *arg, struct ws *ws, const struct err *why)
{
    struct head_stream *s = arg;
    (void)ws, (void)why;
    s->ws = NULL;
    s->closed = true;
}

void head_stream_say(struct head *h, int channel, const char *text) { head_stream_send(h, channel, text, strlen(text)); }

void head_stream_send(struct head *h, int channel, const char *at, size_t n)
{
    AUTO(str_done) struct str m = { 0 };
    str_char(&m, (char)channel);
    str_put(&m, at, n);
    if (h->stream.ws)
        ws_send(h->stream.ws, false, m.at, m.len);
}

/* --- HTTP */

/* The work was done; whoever asked does not hear of it. */
static bool lost(struct head *h, struct http_request *rq)
{
    if (!h->lose)
        return false;
    h->lose--;
    http_abort(rq);
    return true;
}

static void take_join(struct head *h, struct http_request *rq)
{
    struct err err = { 0 };
    struct json *doc = NULL;
    CHECK(json_parse(http_body(rq), http_mem(rq), &doc, &err));
    const char *token = doc ? json_text(doc, "token") : NULL, *key = doc ? json_text(doc, "key") : NULL;
    h->joins++;
    bool same = *h->node_key && text_is(key, h->node_key);
    if (!same && !text_is(token, h->token)) {
        http_reply(rq, 401, "application/problem+json", NULL, 0, SLICE("{\"detail\":\"this join token is not valid\"}"));
        return;
    }
    h->token[0] = 0;            /* good once */
    snprintf(h->node_key, sizeof h->node_key, "%s", key);
    if (!lost(h, rq))
        http_reply(rq, 201, "application/json", NULL, 0, SLICE("{\"id\":\"nod-0000000000001\",\"name\":\"n1\",\"state\":\"joined\"}"));
}

static bool is_bearer(const struct head *h, const char *key) { return *key && text_starts(h->bearer, "Bearer ") && text_is(h->bearer + 7, key); }

static void take_rekey(struct head *h, struct http_request *rq)
{
    struct err err = { 0 };
    struct json *doc = NULL;
    CHECK(json_parse(http_body(rq), http_mem(rq), &doc, &err));
    h->rekeys++;
    if (!is_bearer(h, h->node_key)) {
        http_reply(rq, 401, "application/problem+json", NULL, 0, SLICE("{\"detail\":\"not your key\"}"));
        return;
    }
    snprintf(h->next_key, sizeof h->next_key, "%s", json_text(doc, "key"));
    if (!lost(h, rq))
        http_reply(rq, 200, "application/json", NULL, 0, SLICE("{\"id\":\"nod-0000000000001\",\"name\":\"n1\",\"state\":\"joined\"}"));
}

static void on_request(void *arg, struct http_request *rq)
{
    static const struct ws_events link = { .on_message = on_message, .on_close = on_close };
    static const struct ws_events stream = { .on_message = stream_message, .on_close = stream_close_ };
    struct head *h = arg;
    const char *path = http_path(rq), *auth = http_header(rq, "authorization");
    snprintf(h->bearer, sizeof h->bearer, "%s", auth ? auth : "");
    if (text_is(path, "/v1/nodes/join")) {
        take_join(h, rq);
    } else if (text_is(path, "/v1/nodes/key")) {
        take_rekey(h, rq);
    } else if (text_is(path, "/v1/nodes/link") && ws_asked(rq)) {
        h->dials++;
        bool known = !*h->node_key || is_bearer(h, h->node_key) || is_bearer(h, h->next_key);
        struct http_header elsewhere = { "Arcus-Writer", h->writer_url };
        if (h->refuse || !known) {
            http_reply(rq, h->refuse ? h->refuse : 401, "application/problem+json", &elsewhere, h->writer_url ? 1 : 0, SLICE("{\"detail\":\"not today\"}"));
            return;
        }
        snprintf(h->link_key, sizeof h->link_key, "%s", text_starts(h->bearer, "Bearer ") ? h->bearer + 7 : "");
        if (h->link)
            ws_drop(h->link);
        h->link = ws_accept(rq, NULL, &link, h);
    } else if (text_starts(path, "/v1/streams/") && ws_asked(rq) && !h->stream.ws) {
        h->stream.open = true;
        h->stream.ws = ws_accept(rq, NULL, &stream, &h->stream);
    } else {
        http_reply(rq, 404, "text/plain", NULL, 0, SLICE("no"));
    }
}

static void on_gone(void *arg, struct http_request *rq) { (void)arg, (void)rq; }

static void on_bad(void *arg, const char *peer, const struct err *why, struct str *type, struct str *body)
{
    (void)arg, (void)peer;
    str_text(type, "text/plain");
    str_text(body, why->text);
}

void head_open(struct head *h, struct sim *sim)
{
    static const struct http_handler handler = { .on_request = on_request, .on_gone = on_gone, .on_bad = on_bad };
    struct err err = { 0 };
    log_level_set((enum log_level)(LOG_ERROR + 1));     /* failing is what is tried here */
    h->sim = sim;
    if (!h->os)
        h->os = sim_machine(sim, h->address ? h->address : "head");
    if (!h->mem)
        h->mem = arena_new();
    CHECK(http_listen(h->os, sim ? (h->address ? arena_printf(h->mem, "%s:80", h->address) : "head:80") : "127.0.0.1:0", NULL, &http_limits_default, &handler, h, &h->http, &err));
}

void head_close(struct head *h)
{
    if (!h->http)
        return;
    if (h->link)
        ws_drop(h->link);
    if (h->stream.ws)
        ws_drop(h->stream.ws);
    http_server_close(h->http, 0);
    h->http = NULL;
    if (h->sim)
        run_for(h->sim, 1);
}

void bury(const void *p)
{
    static const void *graves[4096] __attribute__((used));
    static size_t dead;
    if (p && dead < COUNT(graves))
        graves[dead++] = p;
}

void head_crash(struct head *h)
{
    bury(h->http), bury(h->link), bury(h->stream.ws);
    sim_crash(h->sim, h->os);
    h->os = NULL;
    h->http = NULL;
    h->link = h->stream.ws = NULL;
}

void head_free(struct head *h)
{
    head_close(h);
    str_done(&h->stream.out);
    str_done(&h->stream.err);
    str_done(&h->stream.control);
    arena_free(h->mem);
}

/* --- its memory */

struct order *head_order(struct head *h, int64_t attempt)
{
    for (size_t i = 0; i < h->order_count; i++)
        if (h->orders[i].attempt == attempt)
            return &h->orders[i];
    static const char *argv[] = { "true" };
    h->orders[h->order_count] = (struct order){ .attempt = attempt, .job = attempt + 1000, .project = 1, .count = 1, .try_number = 1,
                                                .image = "host", .argv = { argv, 1 }, .cpu_milli = 100, .mem_mib = 64, .grace_s = 5, .run_for_s = 60 };
    return &h->orders[h->order_count++];
}

void head_drop(struct head *h, int64_t attempt)
{
    for (size_t i = 0; i < h->order_count; i++)
        if (h->orders[i].attempt == attempt)
            h->orders[i] = h->orders[--h->order_count];
}

void head_gone(struct head *h, int64_t attempt)
{
    if (h->gone_count < HEAD_MOST)
        h->gone[h->gone_count++] = id_text(ARENA_ARRAY(h->mem, char, ID_TEXT), PREFIX_ATTEMPT, attempt);
}

size_t head_took(const struct head *h, int64_t attempt, int news)
{
    size_t n = 0;
    for (size_t i = 0; i < h->item_count; i++)
        n += h->items[i].attempt == attempt && h->items[i].news == news;
    return n;
}

const struct report_item *head_end_of(const struct head *h, int64_t attempt)
{
    for (size_t i = 0; i < h->item_count; i++)
        if (h->items[i].attempt == attempt && h->items[i].news == TASK_ENDED)
            return &h->items[i];
    return NULL;
}

bool run_until(struct sim *sim, int64_t ms, bool (*enough)(void *arg), void *arg)
{
    return sim_until(sim, sim_now_ms(sim) + ms, enough, arg);
}

void run_for(struct sim *sim, int64_t ms) { (void)!sim_until(sim, sim_now_ms(sim) + ms, NULL, NULL); }
