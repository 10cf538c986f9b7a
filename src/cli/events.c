/* events.c - `arcus events`: what happened, by number; with -f as it happens, going on from the
 * last number when the connection breaks, so that nothing is missed or told twice. With -o json
 * each event is one line. */
#include "cli/cli.h"
#include "base/when.h"
#include <stdio.h>
#include <stdlib.h>

enum { PAGE = 1000, LINE_MOST = 4 << 20, AGAIN_MS = 300, SILENT_MS = 60 * 1000 };

struct events {
    struct cli *c;
    int64_t since, left;            /* left: how many are still wanted */
    bool done, cut, unread;
    int status;
    struct str text;                /* what came and is not a whole event yet */
    struct http_call *call;
    struct err err;
};

/* --- printing */

static void put_padded(struct str *out, const char *text, size_t width)
{
    size_t before = out->len;
    clean_text(out, text ? text : "");
    for (size_t n = out->len > before ? text_width(out->at + before) : 0; n < width; n++)
        str_char(out, ' ');
}

static void put_one(struct cli *c, struct str *out, const struct json *e)
{
    static const struct {
        const char *member;
        size_t width;
    } parts[] = { { "name", 22 }, { "subject", 24 }, { "actor", 18 } };
    const char *at = json_text(e, "at");
    const struct json *data = json_get(e, "data");
    if (c->output == OUT_JSON || c->output == OUT_YAML) {
        json_print(out, e);
        str_char(out, '\n');
        return;
    }
    str_printf(out, "%-8lld ", (long long)json_int(e, "id", 0));
    put_padded(out, at, 24);
    for (size_t i = 0; i < COUNT(parts); i++) {
        str_char(out, ' ');
        put_padded(out, json_text(e, parts[i].member), parts[i].width);
    }
    if (data && data->type == JSON_OBJECT && data->first) {
        AUTO(str_done) struct str text = { 0 };
        str_char(out, ' ');
        json_print(&text, data);
        clean_text(out, text.at);
    }
    while (out->len && out->at[out->len - 1] == ' ')
        out->at[--out->len] = 0;
    str_char(out, '\n');
}

/* --- following */

static void take_event(struct events *e, struct slice data)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    AUTO(str_done) struct str out = { 0 };
    struct json *doc;
    struct err ignored;
    if (e->left <= 0 || !json_parse(data, mem, &doc, &ignored))
        return;
    e->since = json_int(doc, "id", e->since);
    e->left--;
    put_one(e->c, &out, doc);
    e->unread |= !out_write(out.at, out.len);
}

static void take_lines(struct events *e)
{
    size_t from = 0;
    for (char *end;
         from < e->text.len && (end = memchr(e->text.at + from, '\n', e->text.len - from));
         from = (size_t)(end - e->text.at) + 1) {
        *end = 0;
        const char *line = e->text.at + from;
        if (text_starts(line, "data: "))
            take_event(e, SLICE(line + 6));
    }
    str_drop(&e->text, from);
}

static void on_head(void *arg, int status, struct http_call *call)
{
    (void)call;
    ((struct events *)arg)->status = status;
}

static void on_data(void *arg, const char *at, size_t n)
{
    struct events *e = arg;
    str_put(&e->text, at, n);
    if (e->status < 300)
        take_lines(e);
    if (e->unread || e->left <= 0 || e->text.len > LINE_MOST) {
        http_call_cancel(TAKE(e->call));
        e->done = true;
        os_stop(e->c->os);
    }
}

static void on_end(void *arg, int status, struct slice body, const struct err *err)
{
    struct events *e = arg;
    (void)body;
    e->call = NULL;
    e->done = e->cut = true;
    if (err)
        e->err = *err;
    else if (status >= 300)
        problem_read(e->c, status, (struct slice){ e->text.at, e->text.len }, &e->err);
    else
        err_set(&e->err, RC_UNAVAILABLE, "the server ended the stream of events");
    os_stop(e->c->os);
}

/* What was asked for is no longer kept: the snapshot tells what is there, and where to go on. */
static bool take_snapshot(struct events *e)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    AUTO(str_done) struct str out = { 0 };
    struct json *doc, *snapshot;
    struct err ignored;
    if (e->status != 410 || !json_parse((struct slice){ e->text.at, e->text.len }, mem, &doc, &ignored)
        || !(snapshot = json_get(doc, "snapshot")) || json_int(snapshot, "number", 0) <= e->since)
        return false;
    say(e->c, "events after %lld are no longer kept before %lld; going on from how things stand at %lld", (long long)e->since,
        (long long)json_int(snapshot, "oldest", 0), (long long)json_int(snapshot, "number", 0));
    e->since = json_int(snapshot, "number", 0);
    if (e->c->output != OUT_JSON && e->c->output != OUT_YAML)
        return true;
    str_text(&out, "{\"snapshot\":");
    json_print(&out, snapshot);
    str_text(&out, "}\n");
    e->unread |= !out_write(out.at, out.len);
    return !e->unread;
}

static void follow_once(struct events *e)
{
    static const struct http_call_events events
        = { .on_head = on_head, .on_data = on_data, .on_end = on_end };
    struct http_header headers[CLI_HEADERS];
    size_t n = cli_headers(e->c, headers, false, false);
    headers[n++] = (struct http_header){ "Accept", "text/event-stream" };
    e->done = e->cut = false;
    e->status = 0;
    str_clear(&e->text);
    e->call = http_call(e->c->client, "GET",
                        arena_printf(e->c->mem, "/v1/events?since=%lld", (long long)e->since),
                        headers, n, (struct slice){ 0 }, 0, &events, e);
    http_call_timeout(e->call, SILENT_MS);      /* a server says something every 15 seconds */
    cli_wait(e->c, &e->done);
}

static int follow(struct cli *c, int64_t since, int64_t limit)
{
    struct events e = { .c = c, .since = since, .left = limit ? limit : INT64_MAX };
    if (!cli_connect_live(c, &c->err))
        return print_error(c, &c->err);
    for (bool was_there = false;;) {
        int64_t before = e.since;
        follow_once(&e);
        if (e.cut && take_snapshot(&e))
            continue;
        was_there |= e.status == 200 || e.since > before;
        bool away = e.err.rc == RC_UNAVAILABLE || e.err.rc == RC_TIMEOUT;
        if (!e.cut || !was_there || !away)
            break;
        cli_leave(c, c->client);
        cli_sleep(c, AGAIN_MS);
    }
    str_done(&e.text);
    return e.cut ? print_error(c, &e.err) : e.unread ? 1 : 0;
}

/* --- history */

static bool history(struct cli *c, int64_t since, int64_t limit, struct json **out, struct err *err)
{
    struct json *all = json_new(c->mem, JSON_LIST), *reply, *ask;
    *out = json_new(c->mem, JSON_OBJECT);
    for (int64_t left = limit ? limit : INT64_MAX; left > 0;) {
        int64_t page = MIN(left, PAGE), got = 0;
        ask = json_new(c->mem, JSON_OBJECT);
        doc_set(c, ask, "since", arena_printf(c->mem, "%lld", (long long)since));
        doc_set(c, ask, "limit", arena_printf(c->mem, "%lld", (long long)page));
        if (!cli_call(c, VERB_EVENT_LIST, ask, &reply, err)) {
            if (err->rc != RC_GONE || since == 0)
                return false;
            say(c, "%s", "some of these are no longer kept; showing what is");
            since = 0;
            continue;
        }
        struct json *items = json_get(reply, "items");
        for (struct json *m = items ? items->first : NULL, *after; m; m = after, got++) {
            after = m->next;
            m->next = NULL;
            since = json_int(m, "id", since);
            json_add(all, NULL, m);
        }
        left -= got;
        if (got < page)
            break;
    }
    json_add(*out, "items", all);
    json_add(*out, "next", json_new(c->mem, JSON_NULL));
    return true;
}

int word_events(struct cli *c, const struct word *w, int argc, char **argv)
{
    struct flags f;
    struct json *list;
    int over = word_open(c, w, argc, argv, &f);
    if (over >= 0)
        return over;
    const struct json *go_on = json_get(f.doc, "follow");
    int64_t since = json_int(f.doc, "since", 0), limit = json_int(f.doc, "limit", 0);
    if (go_on && go_on->flag)
        return follow(c, since, limit);
    if (!history(c, since, limit, &list, &c->err))
        return print_error(c, &c->err);
    if (c->output == OUT_JSON || c->output == OUT_YAML)
        return print_data(c, list), 0;
    AUTO(str_done) struct str out = { 0 };
    for (const struct json *m = json_get(list, "items")->first; m; m = m->next)
        put_one(c, &out, m);
    return out_write(out.at, out.len) ? 0 : 1;
}
