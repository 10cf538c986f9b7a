/* http_client.c - one base address and the lines to it.
 *
 * A line that is free is kept for a while and used again. When the server had closed such a line
 * just before a call was written to it, the call goes once more over a fresh line, if doing it
 * twice cannot hurt. No redirects, no cookies, no proxies: for the odd corners of HTTP there is
 * libcurl. */
#include "net/http_client_internal.h"
#include <stdlib.h>

enum { KEEP_LINES = 8, KEEP_MS = 30 * 1000, HEAD_BYTES = 64 * 1024 };

struct os *http_client_os(const struct http_client *c)
{
    return c->os;
}

/* --- lines */

void line_write(struct line *l, const void *at, size_t n)
{
    l->written += n;
    stream_write(l->stream, at, n);
}

void line_cut(struct line *l)
{
    if (l->cut)
        return;
    l->cut = true;
    stream_close(l->stream);
}

static void line_unlink(struct line *l)
{
    if (l->next)
        l->next->prev = l->prev;
    if (l->prev)
        l->prev->next = l->next;
    else if (l->client)
        l->client->lines = l->next;
    l->next = l->prev = NULL;
    l->client = NULL;
}

/* Lets go of the call; the line is kept if the reply allows it and there is room. */
static struct http_call *line_release(struct line *l, bool reusable)
{
    struct http_call *k = TAKE(l->call);
    k->line = NULL;
    size_t idle = 0;
    for (struct line *o = l->client->lines; o; o = o->next)
        idle += !o->call && !o->cut && !o->taken && o != l;
    if (!reusable || !k->head.keep_alive || !k->finished || l->cut || idle >= KEEP_LINES) {
        line_cut(l);
        return k;
    }
    if (k->paused)
        stream_pause(l->stream, false);
    l->idle_since = os_boot_ms(l->client->os);
    l->used = true;
    return k;
}

static bool on_head(void *arg, struct http_head *h)
{
    struct line *l = arg;
    struct http_call *k = l->call;
    if (!k)
        return false;
    k->head = *h;
    if (h->status < 200 || !k->events.on_head)
        return true;
    k->events.on_head(k->arg, h->status, k);
    return l->call == k;
}

static bool on_body(void *arg, const char *at, size_t n)
{
    struct line *l = arg;
    struct http_call *k = l->call;
    if (!k)
        return false;
    if (!k->events.on_data)
        return call_collect(k, at, n);
    k->events.on_data(k->arg, at, n);
    return l->call == k;
}

static void on_message(void *arg)
{
    struct line *l = arg;
    l->whole = true;
}

static const struct http_parse_events parse_events = { on_head, on_body, on_message };

/* A message is whole: an interim reply, an upgrade, or the end of the call. */
static void message_whole(struct line *l, bool nothing_behind)
{
    struct http_call *k = l->call;
    int status = k->head.status;
    if (status == 101 && k->take) {
        TAKE(l->call)->line = NULL;
        l->taken = true;
        call_unlink(k);
        l->taker = k->take(k->arg, k, l->stream);
        call_free(k);
        if (!l->taker.up)
            line_cut(l);
        return;
    }
    if (status == 101) {
        call_fail(k, RC_INTERNAL, "the server changed the protocol without being asked");
        return;
    }
    if (status < 200) {
        l->whole = false;
        http_parse_next(l->parse, k->head_method);
        return;
    }
    call_end(line_release(l, nothing_behind), status, NULL);
}

static size_t on_data(void *arg, const char *at, size_t n)
{
    struct line *l = arg;
    struct http_call *k = l->call;
    if (l->taker.up)
        return l->taker.up->on_data(l->taker.arg, at, n);
    if (!k || l->cut) { /* nobody asked */
        line_cut(l);
        return n;
    }
    l->got = true;
    call_alive(k);
    size_t done = 0;
    while (done < n && l->call == k && !l->cut) {
        size_t used = 0;
        struct err why = { 0 };
        bool fine = http_parse_feed(l->parse, at + done, n - done, &used, &why);
        done += used;
        if (l->call != k || l->cut)
            break;
        if (!fine)
            call_fail(k, RC_INTERNAL, why.text);
        else if (l->whole)
            message_whole(l, done == n);
        else if (used == 0)
            break;
    }
    if (l->taker.up && done < n)
        return done + l->taker.up->on_data(l->taker.arg, at + done, n - done);
    return n;
}

static void on_open(void *arg)
{
    struct line *l = arg;
    struct http_call *k = l->call;
    l->open = true;
    if (!k)
        return;
    call_send(k);
    if (!k->finished && k->events.on_body_drain) /* what gathered until now has left our buffer */
        k->events.on_body_drain(k->arg, k);
}

static void on_drain(void *arg)
{
    struct line *l = arg;
    struct http_call *k = l->call;
    if (l->taker.up) {
        if (l->taker.up->on_drain)
            l->taker.up->on_drain(l->taker.arg);
    } else if (k && !k->finished && k->events.on_body_drain) {
        k->events.on_body_drain(k->arg, k);
    }
}

static void line_free(struct line *l)
{
    line_unlink(l);
    http_parse_free(l->parse);
    free(l);
}

/* The line under an open call has closed: was that the end of the reply, a stale line, or a
 * failure? */
static void call_lost(struct line *l, struct http_call *k, const struct err *why)
{
    bool complete = false;
    if (k->head.status >= 200 && why->rc == RC_OK)
        http_parse_eof(l->parse, &complete);
    TAKE(l->call)->line = NULL;
    if (k->why.rc != RC_OK) {
        call_end(k, 0, &k->why);
    } else if (complete) {
        call_end(k, k->head.status, NULL);
    } else if (l->used && !l->got && k->again && !k->retried && !k->client->closing) {
        k->retried = true;
        line_assign(k->client, k, true);
    } else {
        struct err err;
        if (why->rc == RC_OK)
            err_set(&err, RC_UNAVAILABLE, "%s closed the connection before the reply was whole",
                    k->client->address);
        else if (strstr(why->text, k->client->address))
            err_set(&err, why->rc == RC_TIMEOUT ? RC_TIMEOUT : RC_UNAVAILABLE, "%s", why->text);
        else
            err_set(&err, why->rc == RC_TIMEOUT ? RC_TIMEOUT : RC_UNAVAILABLE, "%s: %s",
                    k->client->address, why->text);
        call_end(k, 0, &err);
    }
}

static void on_close(void *arg, const struct err *why)
{
    struct line *l = arg;
    l->cut = true;
    if (l->taker.up)
        l->taker.up->on_close(l->taker.arg, why);
    else if (l->call)
        call_lost(l, l->call, why);
    line_free(l);
}

static const struct stream_events events = { on_open, on_data, on_drain, on_close };

static struct line *line_dial(struct http_client *c)
{
    struct line *l = calloc(1, sizeof *l);
    if (!l)
        abort();
    l->client = c;
    l->parse = http_parse_new(HTTP_PARSE_RESPONSE, HEAD_BYTES, &parse_events, l);
    l->next = c->lines;
    if (l->next)
        l->next->prev = l;
    c->lines = l;
    l->stream = stream_dial(c->os, c->address, c->tls, c->server_name, &events, l);
    return l;
}

/* The one used last is the least likely to be stale; those left too long are given up. */
static struct line *line_idle(struct http_client *c)
{
    struct line *best = NULL;
    int64_t now = os_boot_ms(c->os);
    for (struct line *l = c->lines; l; l = l->next) {
        if (l->call || l->cut || l->taken || !l->used)
            continue;
        if (now - l->idle_since > KEEP_MS)
            line_cut(l);
        else if (!best || l->idle_since > best->idle_since)
            best = l;
    }
    return best;
}

void line_assign(struct http_client *c, struct http_call *k, bool fresh)
{
    struct line *l = fresh ? NULL : line_idle(c);
    if (!l)
        l = line_dial(c);
    http_parse_next(l->parse, k->head_method);
    l->whole = l->got = false;
    l->call = k;
    k->line = l;
    k->head = (struct http_head){ 0 };
    k->taken_before = 0;
    if (k->paused)
        stream_pause(l->stream, true);
    if (l->open)
        call_send(k);
}

/* --- the client */

/* "http://host:port" into an address to dial, the Host header and the name a certificate must have.
 * */
static bool take_url(struct http_client *c, const char *url, bool *secure, struct err *err)
{
    if (text_starts(url, "unix:/")) {
        c->address = strdup(url);
        c->host = strdup("localhost");
        return true;
    }
    *secure = text_starts(url, "https://");
    if (!*secure && !text_starts(url, "http://"))
        return err_set(err, RC_BAD_INPUT,
                       "%.100s: an address begins with http://, https:// or unix:/", url);
    const char *at = url + strlen(*secure ? "https://" : "http://");
    size_t n = strcspn(at, "/");
    if (n == 0 || n > 260 || strcspn(at, "@?# \t\r\n") < n || (at[n] && at[n + 1]))
        return err_set(err, RC_BAD_INPUT, "%.100s: only a host and a port may follow the scheme",
                       url);
    AUTO(arena_free) struct arena *mem = arena_new();
    const char *host = arena_bytes(mem, at, n);
    const char *bracket = *host == '[' ? strchr(host, ']') : NULL;
    if (*host == '[' && !bracket)
        return err_set(err, RC_BAD_INPUT, "%.100s: a ] is missing", url);
    const char *colon = strchr(bracket ? bracket : host, ':');
    c->host = strdup(host);
    c->address = strdup(colon ? host : arena_printf(mem, "%s:%d", host, *secure ? 443 : 80));
    const char *name = bracket ? host + 1 : host;
    size_t length = bracket ? (size_t)(bracket - name)
                    : colon ? (size_t)(colon - name)
                            : strlen(name);
    c->server_name = strdup(arena_bytes(mem, name, length));
    return true;
}

/* A key that travels in the open is everybody's. Simulated machines have no TLS. */
static bool may_be_plain(const struct http_client *c, const char *url, struct err *err)
{
    return address_is_loopback(c->address) || os_is_simulated(c->os)
           || err_set(err, RC_BAD_INPUT, "%.100s: only this machine is spoken to without TLS; use https://", url);
}

bool http_client_new(struct os *os, const char *url, const char *ca_pem, const char *pin,
                     const char *token, struct http_client **out, struct err *err)
{
    struct http_client *c = calloc(1, sizeof *c);
    if (!c)
        abort();
    c->os = os;
    bool secure = false;
    if (!take_url(c, url, &secure, err) || (!secure && !may_be_plain(c, url, err)) || (secure && !tls_client(&c->tls, ca_pem, pin, err))) {
        http_client_free(c);
        return false;
    }
    http_client_token(c, token);
    *out = c;
    return true;
}

void http_client_token(struct http_client *c, const char *token)
{
    free(c->token);
    c->token = token ? strdup(token) : NULL;
}

static void end_calls(struct http_client *c, struct err *why)
{
    c->closing = true;
    err_set(why, RC_UNAVAILABLE, "the connection to %s was given up",
            c->address ? c->address : "the server");
    while (c->calls) {
        struct http_call *k = c->calls;
        struct line *l = TAKE(k->line);
        l->call = NULL;
        line_cut(l);
        call_end(k, 0, why);
    }
}

static void client_done(struct http_client *c)
{
    tls_free(c->tls);
    free(c->address);
    free(c->host);
    free(c->server_name);
    free(c->token);
    free(c);
}

void http_client_free(struct http_client *c)
{
    struct err why;
    if (!c)
        return;
    end_calls(c, &why);
    while (c->lines) {
        struct line *l = c->lines;
        line_unlink(l);
        if (!l->taken) /* an open WebSocket outlives its client */
            line_cut(l);
    }
    client_done(c);
}

void http_client_drop(struct http_client *c)
{
    struct err why;
    if (!c)
        return;
    end_calls(c, &why);
    while (c->lines)
        on_close(c->lines, &why);
    client_done(c);
}
