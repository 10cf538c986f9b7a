/* reply.c - what goes back: JSON, or a problem (RFC 9457) whose `type` is stable and whose `detail`
 * is one sentence for a person.
 *
 * Every reply says that it is not to be stored and carries the request's id. Here is the one line
 * of log a request gets; it names the verb, not the path: a path may hold the word of a stream. */
#include "api/api_internal.h"
#include <stdio.h>

enum { HEADERS = 10, REST_MS = 1000 };

struct headers { struct http_header at[HEADERS]; size_t count; };

static void add(struct headers *h, const char *name, const char *value)
{
    assert(h->count < HEADERS);
    h->at[h->count++] = (struct http_header){ name, value };
}

static struct headers usual(const struct visit *v)
{
    struct headers h = { 0 };
    add(&h, "Cache-Control", "no-store");
    add(&h, "X-Content-Type-Options", "nosniff");
    add(&h, "Arcus-Request-Id", v->from.request);
    return h;
}

static void note(const struct visit *v, int status, const char *why)
{
    long long ms = (long long)(os_boot_ms(v->api->os) - v->began_ms);
    log_line(status >= 500 && status != 503 ? LOG_WARN : LOG_DEBUG, "api",
             "%s %s %d %lld ms %s%s%s", v->from.request, v->verb ? v->verb->name : "-", status, ms,
             v->from.address, why ? ": " : "", why ? why : "");
}

/* --- problems: those that struct err does not know have rows of their own */

static const struct { int status; const char *name, *title; } others[] = {
    { 405, "method_not_allowed", "Not with this method" },
    { 414, "target_too_long", "The address is too long" },
    { 415, "unsupported_media_type", "Not in this format" },
    { 426, "upgrade_required", "Speak WebSocket here" },
    { 431, "head_too_large", "The headers are too large" },
};

static void pair(struct json_out *o, const char *key, const char *text)
{
    json_key(o, key);
    json_put_text(o, text);
}

void problem_print(struct str *out, int status, const struct err *why, const char *instance)
{
    const char *name = rc_name(why->rc), *title = rc_title(why->rc);
    char type[64];
    for (size_t i = 0; i < COUNT(others); i++)
        if (others[i].status == status)
            name = others[i].name, title = others[i].title;
    snprintf(type, sizeof type, "/problems/%s", name);
    struct json_out o = { .to = out };
    json_open(&o, '{');
    pair(&o, "type", type);
    pair(&o, "title", title);
    json_key(&o, "status");
    json_put_int(&o, status);
    pair(&o, "detail", why->text);
    if (why->field[0])
        pair(&o, "field", why->field);
    if (instance)
        pair(&o, "instance", instance);
    json_close(&o, '}');
}

/* What the door refused is in the audit by then; this is what it was never asked, or what followed. */
static void audit(struct visit *v, int status, const struct err *why)
{
    bool refusal = status == 401 || status == 403 || status == 429;
    if (!refusal || v->ask.audited)
        return;
    if (!v->from.address[0])
        snprintf(v->from.address, sizeof v->from.address, "%s", http_peer(v->rq));
    control_refused(v->api->control, v->verb ? v->verb->name : "any", &v->from, &v->who, why->rc);
}

static void problem(struct visit *v, int status, const struct err *why, struct headers *h)
{
    audit(v, status, why);
    AUTO(str_done) struct str body = { 0 };
    problem_print(&body, status, why, v->from.request);
    if (why->rc == RC_GONE && v->ask.reply.len) {       /* what is there instead */
        body.len--;
        str_printf(&body, ",\"snapshot\":%s}", v->ask.reply.at);
    }
    if (status == 401)
        add(h, "WWW-Authenticate", "Bearer realm=\"arcus\"");
    if (status == 429 || status == 503) {
        add(h, "Retry-After", "1");
        if (!v->refused)
            limits_refused(v->api->limits, status == 429 ? REFUSED_MANY : REFUSED_AWAY, v->peer);
    }
    if (status == 429 && !v->passed)        /* who does not wait by himself is made to; another server's connection carries others, too */
        http_rest(v->rq, REST_MS);
    note(v, status, why->text);
    http_reply(v->rq, status, "application/problem+json", h->at, h->count,
               (struct slice){ body.at, body.len });
    visit_end(v);
}

void reply_status(struct visit *v, int status, const struct err *why)
{
    struct headers h = usual(v);
    struct err copy = *why;             /* it may be v's own */
    problem(v, status, &copy, &h);
}

void reply_error(struct visit *v, enum rc rc, const char *fmt, ...)
{
    struct err why;
    char text[sizeof why.text];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    err_set(&why, rc, "%s", text);
    reply_problem(v, &why);
}

void reply_problem(struct visit *v, const struct err *why)
{
    reply_status(v, rc_http(why->rc), why);
}

void reply_upgrade(struct visit *v)
{
    struct headers h = usual(v);
    struct err why;
    err_set(&why, RC_BAD_INPUT, "%s is a WebSocket: ask for an upgrade", v->verb->name);
    add(&h, "Upgrade", "websocket");
    problem(v, 426, &why, &h);
}

void reply_not_writer(struct visit *v)
{
    struct headers h = usual(v);
    struct err why;
    const char *url = control_writer(v->api->control);
    err_set(&why, RC_NOT_WRITER, "this server does not write at the moment; the header Arcus-Writer names the one that does");
    if (*url)
        add(&h, "Arcus-Writer", url);
    problem(v, 421, &why, &h);
}

void reply_not_allowed(struct visit *v, const char *allow)
{
    struct headers h = usual(v);
    struct err why;
    err_set(&why, RC_BAD_INPUT, "this address takes %s", allow);
    add(&h, "Allow", allow);
    problem(v, 405, &why, &h);
}

/* --- good ones */

/* The id of what was made, if there is a page about it. */
static const char *location_of(struct visit *v)
{
    struct slice json = { v->ask.reply.at, v->ask.reply.len };
    static const char start[] = "{\"id\":\"";
    char allow[64];
    struct match m;
    if (v->verb->status != 201 || json.len < sizeof start
        || memcmp(json.at, start, sizeof start - 1) != 0)
        return NULL;
    const char *id = json.at + sizeof start - 1;
    size_t n = strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789-:");
    if (strchr(v->verb->path, '{'))
        return arena_text(v->mem, http_path(v->rq));
    if (id[n] != '"' || n > 64)
        return NULL;
    size_t len = strlen(v->verb->path);
    char *path = arena_take(v->mem, len + n + 2, 1);
    memcpy(path, v->verb->path, len);
    path[len] = '/';
    memcpy(path + len + 1, id, n);
    enum page *page = &v->api->pages[v->verb_id];       /* the same for every id */
    if (*page == PAGE_UNKNOWN)
        *page = router_find(v->api->router, "GET", path, &m, allow) == FOUND ? PAGE_THERE : PAGE_NONE;
    return *page == PAGE_THERE ? path : NULL;
}

void reply_json(struct visit *v, int status, struct slice json)
{
    struct headers h = usual(v);
    char etag[32] = "", *end = etag + sizeof etag - 2;
    const char *location = location_of(v);
    if (v->ask.version > 0) {
        *end = '"';
        char *from = text_digits(end, (uint64_t)v->ask.version) - 1;
        *from = '"';
        add(&h, "ETag", from);
    }
    if (location)
        add(&h, "Location", location);
    if (v->ask.replayed)
        add(&h, "Idempotent-Replayed", "true");
    note(v, status, NULL);
    http_reply(v->rq, status, "application/json", h.at, h.count, json.len ? json : SLICE("{}"));
    visit_end(v);
}

/* What the door answers to this one verb is for Prometheus. */
static void reply_metrics(struct visit *v)
{
    struct headers h = usual(v);
    note(v, 200, NULL);
    http_reply(v->rq, 200, "text/plain; version=0.0.4; charset=utf-8", h.at, h.count, (struct slice){ v->ask.reply.at, v->ask.reply.len });
    visit_end(v);
}

void reply_answer(struct visit *v)
{
    if (v->ask.ok && v->verb_id == VERB_METRICS)
        reply_metrics(v);
    else if (v->ask.ok)
        reply_json(v, v->verb->status, (struct slice){ v->ask.reply.at, v->ask.reply.len });
    else
        reply_problem(v, &v->ask.err);
}

void reply_begin(struct visit *v, const char *type, int64_t length, const char *etag)
{
    struct headers h = usual(v);
    if (etag)
        add(&h, "ETag", etag);
    v->begun = true;
    http_begin(v->rq, 200, type, h.at, h.count, length);
}

void reply_done(struct visit *v)
{
    note(v, 200, NULL);
    http_end(v->rq);
    visit_end(v);
}

void reply_cut(struct visit *v)
{
    note(v, 200, "cut");
    http_abort(v->rq);
    visit_end(v);
}
