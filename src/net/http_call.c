/* http_call.c - one request of the client and what comes back.
 *
 * A request that is whole in memory, and may be done twice, is kept so that it can be sent again; a
 * streamed one is not. A call ends exactly once: with on_end, or silently by being cancelled. */
#include "net/http_client_internal.h"
#include "net/http_internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum { COLLECT_BYTES = 16 * 1024 * 1024, SILENCE_MS = 30 * 1000 };

/* --- its end */

void call_unlink(struct http_call *k)
{
    deadline_done(&k->deadline);
    struct http_client *c = TAKE(k->client);
    if (!c)
        return;
    if (k->next)
        k->next->prev = k->prev;
    if (k->prev)
        k->prev->next = k->next;
    else
        c->calls = k->next;
}

void call_free(struct http_call *k)
{
    call_unlink(k);
    str_done(&k->out);
    str_done(&k->body);
    free(k);
}

void call_end(struct http_call *k, int status, const struct err *err)
{
    call_unlink(k); /* before on_end: it may start the next call, or free the client */
    struct slice body = { k->body.at ? k->body.at : "", k->body.len };
    if (k->events.on_end)
        k->events.on_end(k->arg, status, err ? (struct slice){ "", 0 } : body, err);
    call_free(k);
}

void call_fail(struct http_call *k, enum rc rc, const char *text)
{
    if (k->why.rc != RC_OK)
        return;
    err_set(&k->why, rc, "%s: %s", k->client->address, text);
    line_cut(k->line);
}

void http_call_cancel(struct http_call *k)
{
    if (!k->client) /* inside its own on_end */
        return;
    struct line *l = k->line;
    l->call = NULL;
    line_cut(l);
    call_free(k);
}

/* --- time */

void call_alive(struct http_call *k)
{
    if (k->timeout_ms > 0 && !k->paused)
        deadline_set(&k->deadline, k->timeout_ms);
    else
        deadline_none(&k->deadline);
}

static void on_silence(void *arg)
{
    struct http_call *k = arg;
    struct line *l = k->line;
    size_t waiting = stream_waiting(l->stream);
    uint64_t taken = l->written - waiting;
    bool moved = waiting > 0 && taken != k->taken_before;
    k->taken_before = taken;
    if (l->open && (moved || (waiting == 0 && !k->finished))) { /* a long upload is not silence */
        call_alive(k);
        return;
    }
    char text[80];
    snprintf(text, sizeof text, "no answer for %lld ms", (long long)k->timeout_ms);
    call_fail(k, RC_TIMEOUT, text);
}

void http_call_timeout(struct http_call *k, int64_t ms)
{
    k->timeout_ms = ms;
    call_alive(k);
}

void http_call_pause(struct http_call *k, bool paused)
{
    if (!k->client || k->paused == paused)
        return;
    k->paused = paused;
    stream_pause(k->line->stream, paused);
    call_alive(k);
}

/* --- the request */

static void put_target(struct str *out, const char *path)
{
    for (const unsigned char *p = (const unsigned char *)path; *p; p++)
        if (*p <= ' ' || *p == 0x7f) /* nothing in a path may end the request line */
            str_printf(out, "%%%02X", *p);
        else
            str_char(out, (char)*p);
}

static bool header_given(const struct http_header *headers, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcasecmp(headers[i].name, name) == 0)
            return true;
    return false;
}

static bool harmless_twice(const char *method, const struct http_header *headers, size_t count)
{
    static const char *const methods[] = { "GET", "HEAD", "PUT", "DELETE", "OPTIONS" };
    for (size_t i = 0; i < COUNT(methods); i++)
        if (text_is(method, methods[i]))
            return true;
    return header_given(headers, count, "Idempotency-Key");
}

static void put_request(struct http_call *k, const char *method, const char *path,
                        const struct http_header *headers, size_t count, int64_t length)
{
    const struct http_client *c = k->client;
    struct str *out = &k->out;
    bool bodiless
        = length == 0 && (text_is(method, "GET") || k->head_method || text_is(method, "DELETE"));
    str_text(out, method);
    str_char(out, ' ');
    put_target(out, path);
    str_text(out, " HTTP/1.1\r\n");
    http_put_header(out, "Host", c->host);
    if (c->token && !header_given(headers, count, "Authorization")) {
        str_text(out, "Authorization: Bearer ");
        http_put_value(out, c->token);
    }
    for (size_t i = 0; i < count; i++)
        http_put_header(out, headers[i].name, headers[i].value);
    if (length < 0)
        str_text(out, "Transfer-Encoding: chunked\r\n");
    else if (!bodiless)
        str_printf(out, "Content-Length: %lld\r\n", (long long)length);
    str_text(out, "\r\n");
}

static struct http_call *call_new(struct http_client *c, const char *method,
                                  const struct http_call_events *events, void *arg)
{
    assert(!c->closing);
    struct http_call *k = calloc(1, sizeof *k);
    if (!k)
        abort();
    k->client = c;
    k->events = *events;
    k->arg = arg;
    k->head_method = text_is(method, "HEAD");
    k->timeout_ms = SILENCE_MS;
    deadline_init(&k->deadline, c->os, on_silence, k);
    k->next = c->calls;
    if (k->next)
        k->next->prev = k;
    c->calls = k;
    return k;
}

struct http_call *http_call(struct http_client *c, const char *method, const char *path,
                            const struct http_header *headers, size_t count, struct slice body,
                            int64_t body_length, const struct http_call_events *events, void *arg)
{
    struct http_call *k = call_new(c, method, events, arg);
    bool whole = body.len > 0 || body_length == 0;
    k->chunked = !whole && body_length < 0;
    k->left = whole ? 0 : body_length;
    k->finished = whole;
    k->again = whole && harmless_twice(method, headers, count);
    put_request(k, method, path, headers, count, whole ? (int64_t)body.len : body_length);
    str_put(&k->out, body.at, body.len);
    line_assign(c, k, false);
    call_alive(k);
    return k;
}

struct http_call *http_call_upgrade(struct http_client *c, const char *path,
                                    const struct http_header *headers, size_t count,
                                    const struct http_call_events *events, http_take_fn *take,
                                    void *arg)
{
    struct http_call *k
        = http_call(c, "GET", path, headers, count, (struct slice){ 0 }, 0, events, arg);
    k->take = take;
    return k;
}

void call_send(struct http_call *k)
{
    k->sent = true;
    line_write(k->line, k->out.at, k->out.len);
    if (!k->again)
        str_done(&k->out);
}

/* Before the line is open the bytes gather behind the head. */
static void put_bytes(struct http_call *k, const void *at, size_t n)
{
    if (k->sent)
        line_write(k->line, at, n);
    else
        str_put(&k->out, at, n);
}

void http_call_body(struct http_call *k, const void *at, size_t n)
{
    if (!k->client || k->finished || n == 0)
        return;
    if (k->chunked) {
        char size[24];
        put_bytes(k, size, (size_t)snprintf(size, sizeof size, "%zx\r\n", n));
        put_bytes(k, at, n);
        put_bytes(k, "\r\n", 2);
        return;
    }
    n = MIN(n, (size_t)k->left);
    k->left -= (int64_t)n;
    put_bytes(k, at, n);
}

void http_call_finish(struct http_call *k)
{
    if (!k->client || k->finished)
        return;
    if (k->left > 0) { /* cut, so that the server does not take it for the whole */
        call_fail(k, RC_INTERNAL, "the request's body ended before its announced length");
        return;
    }
    k->finished = true;
    if (k->chunked)
        put_bytes(k, "0\r\n\r\n", 5);
}

size_t http_call_waiting(const struct http_call *k)
{
    if (!k->client)
        return 0;
    return stream_waiting(k->line->stream) + (k->sent ? 0 : k->out.len);
}

/* --- the reply */

bool call_collect(struct http_call *k, const char *at, size_t n)
{
    if (n > COLLECT_BYTES - k->body.len) {
        call_fail(k, RC_TOO_LARGE, "the reply is larger than 16 MiB");
        return false;
    }
    str_put(&k->body, at, n);
    return true;
}

const char *http_call_header(const struct http_call *k, const char *name)
{
    for (size_t i = 0; i < k->head.header_count; i++)
        if (strcasecmp(k->head.headers[i].name, name) == 0)
            return k->head.headers[i].value;
    return NULL;
}
