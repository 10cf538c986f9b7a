/* client.c - a verb, asked over HTTP and waited for: its route filled in, every page followed, a
 * problem turned into the error it was.
 *
 * The loop runs only while something is waited for. */
#include "cli/cli.h"
#include "wire/digest.h"
#include <stdio.h>
#include <stdlib.h>

enum {
    PAGE_MOST = 1000,
    REPLY_MOST = 64 << 20,
    TRY_MS = 5000,              /* for one of several servers to say something */
    PATIENCE_MS = 10 * 1000,    /* with all of them */
    PAUSE_MS = 300,
    RETRY_AFTER_MOST_S = 60,
};

/* --- waiting */

void cli_wait(struct cli *c, const bool *done)
{
    while (!*done)
        os_run(c->os);
}

struct nap { struct os *os; bool over; };
static void nap_over(void *arg)
{
    struct nap *n = arg;
    n->over = true;
    os_stop(n->os);
}

void cli_sleep(struct cli *c, int64_t ms)
{
    struct nap n = { .os = c->os };
    timer_start(c->os, ms, nap_over, &n);
    cli_wait(c, &n.over);
}

/* --- the way there */

size_t cli_headers(struct cli *c, struct http_header out[static CLI_HEADERS], bool body, bool once)
{
    size_t n = 0;
    if (text_given(c->context.project))
        out[n++] = (struct http_header){ "Arcus-Project", c->context.project };
    if (body)
        out[n++] = (struct http_header){ "Content-Type", "application/json" };
    if (once) {
        unsigned char random[16];
        char hex[sizeof random * 2 + 1];
        os_random(c->os, random, sizeof random);
        hex_text(random, sizeof random, hex);
        out[n++] = (struct http_header){ "Idempotency-Key", arena_text(c->mem, hex) };
    }
    return n;
}

static const char *text_of(struct cli *c, const struct json *v)
{
    AUTO(str_done) struct str s = { 0 };
    if (v->type == JSON_TEXT)
        return v->text;
    json_print(&s, v);
    return arena_bytes(c->mem, s.at, s.len);
}

static void query_add(struct cli *c, struct str *path, char *sep, const char *name,
                      const struct json *v)
{
    if (v->type == JSON_LIST) {
        for (const struct json *m = v->first; m; m = m->next)
            query_add(c, path, sep, name, m);
        return;
    }
    str_char(path, *sep);
    *sep = '&';
    url_encode(path, name);
    str_char(path, '=');
    url_encode(path, text_of(c, v));
}

static bool fill(struct cli *c, const char *route, const struct json *ask, struct str *path,
                 struct err *err)
{
    for (const char *p = route; *p;) {
        size_t n = strcspn(p, "{");
        str_put(path, p, n);
        p += n;
        if (!*p)
            break;
        size_t len = strcspn(p, "}") - 1;
        const char *name = arena_bytes(c->mem, p + 1, len);
        const struct json *v = json_get(ask, name);
        const char *text = v ? text_of(c, v) : NULL;
        if (!text_given(text) || text_is(text, ".") || text_is(text, ".."))
            return err_field(err, name, text_given(text) ? "'%s' is no name" : "%s is missing",
                             text_given(text) ? text : name);
        url_encode(path, text);
        p += len + 2;
    }
    return true;
}

static bool in_route(const char *route, const char *name)
{
    char word[64];
    snprintf(word, sizeof word, "{%s}", name);
    return strstr(route, word) != NULL;
}

bool cli_route(struct cli *c, enum verb_id verb, const struct json *ask, char **out,
               struct str *body, struct err *err)
{
    const struct verb *v = &verbs[verb];
    AUTO(str_done) struct str path = { 0 };
    bool in_body
        = text_is(v->method, "POST") || text_is(v->method, "PUT") || text_is(v->method, "PATCH");
    struct json *rest = json_new(c->mem, JSON_OBJECT);
    char sep = '?';
    if (!fill(c, v->path, ask, &path, err))
        return false;
    for (const struct json *m = ask->first; m; m = m->next) {
        if (in_route(v->path, m->name))
            continue;
        if (!in_body) {
            query_add(c, &path, &sep, m->name, m);
            continue;
        }
        struct json *copy = json_new(c->mem, m->type);
        *copy = *m;
        copy->next = NULL;
        json_add(rest, m->name, copy);
    }
    if (in_body)
        json_print(body, rest);
    *out = arena_bytes(c->mem, path.at, path.len);
    return true;
}

/* --- problems */

static enum rc rc_named(const char *type, int status)
{
    const char *name = type ? strrchr(type, '/') : NULL;
    for (int i = RC_OK + 1; name && i < RC_COUNT; i++)
        if (text_is(name + 1, rc_name((enum rc)i)))
            return (enum rc)i;
    return rc_of_http(status);
}

void problem_read(struct cli *c, int status, struct slice body, struct err *err)
{
    struct json *doc = NULL;
    struct err ignored;
    bool ours = body.len && json_parse(body, c->mem, &doc, &ignored);
    const char *detail = json_text(doc, "detail"), *field = json_text(doc, "field");
    if (!ours || !detail)
        err_set(err, rc_of_http(status), "%s answered %d %s; is an Arcus server there?",
                c->context.server, status, rc_title(rc_of_http(status)));
    else
        err_set(err, rc_named(json_text(doc, "type"), status), "%s", detail);
    if (field)
        (void)text_copy(err->field, sizeof err->field, field);
}

/* --- one call */

struct reply {
    struct cli *c;
    bool done;
    int status;
    struct str body;
    struct err err;
    int after_s;    /* Retry-After; -1: none */
};

static void on_end(void *arg, int status, struct slice body, const struct err *err)
{
    struct reply *r = arg;
    r->done = true;
    r->status = status;
    if (err)
        r->err = *err;
    else if (body.len <= REPLY_MOST)
        str_put(&r->body, body.at, body.len);
    os_stop(r->c->os);
}

static void on_head(void *arg, int status, struct http_call *call)
{
    struct reply *r = arg;
    const char *after = http_call_header(call, "retry-after");
    (void)status;
    r->after_s = after ? MIN(MAX(atoi(after), 0), RETRY_AFTER_MOST_S) : -1;
}

static void ask_once(struct cli *c, const struct verb *v, const char *path,
                     const struct http_header *headers, size_t count, struct slice body,
                     struct reply *r)
{
    static const struct http_call_events events = { .on_head = on_head, .on_end = on_end };
    str_clear(&r->body);
    r->done = false;
    r->status = 0;
    r->after_s = -1;
    struct http_call *call
        = http_call(c->client, v->method, path, headers, count, body, (int64_t)body.len, &events, r);
    if (c->client_count > 1)
        http_call_timeout(call, TRY_MS);
    cli_wait(c, &r->done);
}

/* Somebody else may answer, or the same one in a moment. */
static bool is_away(const struct reply *r)
{
    return r->status ? r->status == 503 || r->status == 421
                     : r->err.rc == RC_UNAVAILABLE || r->err.rc == RC_TIMEOUT;
}

/* How long to wait before all are asked once more; -1: not at all. One server alone is asked again only where it says when. */
static int64_t pause_ms(const struct cli *c, const struct reply *r, int rounds)
{
    bool busy = r->status == 503 || r->status == 429;
    if (busy && r->after_s >= 0 && (rounds == 1 || c->client_count > 1))
        return (int64_t)r->after_s * 1000;
    return is_away(r) && c->client_count > 1 ? PAUSE_MS : -1;
}

/* With the same Idempotency-Key each time, so that what was done already is not done again. */
static bool exchange(struct cli *c, const struct verb *v, const char *path, struct slice body,
                     struct reply *r, struct err *err)
{
    struct http_header headers[CLI_HEADERS];
    size_t n = cli_headers(c, headers, body.len > 0,
                           v->kind == VERB_WRITE && !text_is(v->method, "PUT") && v->roles);
    int64_t until = os_boot_ms(c->os) + PATIENCE_MS;
    AUTO(progress_end) struct progress *p = progress_start(c, "waiting for the server", 0);
    for (size_t tries = 1;; tries++) {
        ask_once(c, v, path, headers, n, body, r);
        if (is_away(r))
            cli_leave(c, c->client);
        if (is_away(r) && tries % c->client_count && os_boot_ms(c->os) < until)
            continue;
        int64_t wait = pause_ms(c, r, (int)(tries / c->client_count));
        if (wait < 0 || os_boot_ms(c->os) + wait > until)
            break;
        cli_sleep(c, wait);
    }
    if (!r->status)
        return *err = r->err, false;
    if (r->status >= 300)
        return problem_read(c, r->status, (struct slice){ r->body.at, r->body.len }, err), false;
    return true;
}

bool cli_call(struct cli *c, enum verb_id verb, const struct json *ask, struct json **reply,
              struct err *err)
{
    AUTO(str_done) struct str body = { 0 };
    struct reply r = { .c = c };
    struct json *doc = NULL;
    char *path;
    bool ok = cli_connect(c, err) && cli_route(c, verb, ask, &path, &body, err)
        && exchange(c, &verbs[verb], path, (struct slice){ body.at, body.len }, &r, err)
        && (!r.body.len || json_parse((struct slice){ r.body.at, r.body.len }, c->mem, &doc, err));
    str_done(&r.body);
    if (ok && reply)
        *reply = doc ? doc : json_new(c->mem, JSON_OBJECT);
    return ok;
}

static void limit_set(struct cli *c, struct json *ask, int64_t n)
{
    struct json *limit = json_new(c->mem, JSON_NUMBER);
    limit->is_int = true;
    limit->number = n;
    limit->text = arena_printf(c->mem, "%lld", (long long)n);
    limit->len = strlen(limit->text);
    doc_drop(ask, "limit");
    json_add(ask, "limit", limit);
}

bool cli_get_all(struct cli *c, enum verb_id verb, struct json *ask, int64_t limit,
                 struct json **list, struct err *err)
{
    struct json *all = json_new(c->mem, JSON_LIST), *out = json_new(c->mem, JSON_OBJECT), *reply,
                *next = NULL;
    bool pages = bind_find(verbs[verb].takes, "page") != NULL,
         limited = bind_find(verbs[verb].takes, "limit") != NULL;
    for (int64_t left = limit > 0 ? limit : INT64_MAX; left > 0;) {
        if (limited)
            limit_set(c, ask, MIN(left, PAGE_MOST));
        if (!cli_call(c, verb, ask, &reply, err))
            return false;
        struct json *items = json_get(reply, "items");
        for (struct json *m = items ? items->first : NULL, *after; m; m = after) {
            after = m->next;
            m->next = NULL;
            json_add(all, NULL, m);
            left--;
        }
        next = json_get(reply, "next");
        if (!pages || !next || next->type != JSON_TEXT)
            break;
        doc_set(c, ask, "page", next->text);
    }
    json_add(out, "items", all);
    struct json *end
        = json_new(c->mem, limit > 0 && next && next->type == JSON_TEXT ? JSON_TEXT : JSON_NULL);
    if (end->type == JSON_TEXT)
        end->text = next->text, end->len = next->len;
    json_add(out, "next", end);
    *list = out;
    return true;
}
