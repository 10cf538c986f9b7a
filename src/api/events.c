/* events.c - GET /v1/events as server-sent events: history page by page through the read verb, then
 * each commit as it happens.
 *
 * Between the two nothing is lost or told twice: while a page is read, what is committed meanwhile
 * is held back; a page without a `next` holds all that was committed before it was asked for, and
 * what was held and is newer follows it. A client that does not take what it asked for is cut, not
 * waited for: it resumes from the last id it saw. */
#include "api/api_internal.h"
#include "base/id.h"
#include "model/prefix.h"
#include "model/view.h"
#include <stdio.h>
#include <stdlib.h>

enum { PAGE = 500, HELD_MOST = 1 << 20, HELD_OF_ALL = 64 << 20, ALIVE_MS = 15000 };

struct mark { int64_t seq; size_t at; };
struct follower {
    struct visit *visit;
    struct follower *next, *prev;
    struct event_ask page;          /* since: the last number that was sent */
    struct event_ask *at_door;      /* a copy in the visit's memory: the door may read it when we are gone */
    bool asked;                     /* a page is on its way */
    bool live;                      /* history is told */
    bool overflowed; /* more was committed during the page than we hold: read another one */
    struct str held;                /* printed already */
    struct str marks;               /* of struct mark, one for each event in it */
    struct timer *alive;
    int64_t project;                /* in whose crowd it is; 0: in none */
};

/* Compact JSON has no line feeds, but a line of data must never end early. */
void sse_print(struct str *out, const char *id, const char *kind, struct slice data)
{
    str_printf(out, "id: %s\nevent: %s\ndata: ", id, kind);
    for (size_t i = 0, from = 0; i <= data.len; i++)
        if (i == data.len || data.at[i] == '\n') {
            str_put(out, data.at + from, i - from);
            str_text(out, i < data.len ? "\ndata: " : "\n\n");
            from = i + 1;
        }
}

static void held_drop(struct follower *f)
{
    f->visit->api->held_bytes -= f->held.len;
    str_done(&f->held);
    str_done(&f->marks);
}

static void let_go(struct follower *f)
{
    struct api *a = f->visit->api;
    if (f->next)
        f->next->prev = f->prev;
    *(f->prev ? &f->prev->next : &a->followers) = f->next;
    timer_cancel(f->alive);
    held_drop(f);
    if (f->project)
        crowd_leave(a, f->project);
    free(f);
}

static void gone(struct visit *v) { let_go(v->work); }

static void cut(struct follower *f)
{
    struct visit *v = f->visit;
    let_go(f);
    reply_cut(v);
}

/* What may wait for one follower: it shrinks with what waits for all clients. */
static size_t patience(const struct api *a)
{
    static const struct { size_t all, each; } rows[] = { { 64 << 20, 1 << 20 }, { 128 << 20, 64 << 10 }, { SIZE_MAX, 8 << 10 } };
    size_t all = os_waiting(a->os), i = 0;
    while (all > rows[i].all)
        i++;
    return rows[i].each;
}

static void send(struct follower *f, struct slice text)
{
    http_piece(f->visit->rq, text.at, text.len);
    size_t waiting = http_waiting(f->visit->rq);
    if (waiting <= 8 << 10 || waiting <= patience(f->visit->api))
        return;
    log_line(LOG_INFO, "api", "%s a follower of events is too slow", f->visit->from.request);
    cut(f);
}

static void alive(void *arg)
{
    struct follower *f = arg;
    f->alive = timer_start(f->visit->api->os, ALIVE_MS, alive, f);
    send(f, SLICE(":\n\n"));
}

static void answered(struct visit *v);

/* History waits for a slow client; only what is live cannot. */
static void next_page(struct follower *f)
{
    struct visit *v = f->visit;
    if (f->live || f->asked || v->waiting || http_waiting(v->rq) > api_room(v->api))
        return;
    f->asked = true;
    f->overflowed = false;
    held_drop(f);
    *f->at_door = f->page;
    visit_ask(v, VERB_EVENT_LIST, f->at_door, answered);
}

static void drained(struct visit *v) { next_page(v->work); }

static void print_page(struct follower *f, const struct json *items, struct str *out)
{
    AUTO(str_done) struct str data = { 0 };
    for (const struct json *m = items ? items->first : NULL; m; m = m->next) {
        char id[24];
        int64_t n = json_int(m, "id", 0);
        const char *kind = json_text(m, "name");
        str_clear(&data);
        json_print(&data, m);
        snprintf(id, sizeof id, "%lld", (long long)n);
        sse_print(out, id, kind ? kind : "event", (struct slice){ data.at, data.len });
        f->page.since = n;
    }
}

static void go_live(struct follower *f)
{
    const struct mark *marks = (const struct mark *)f->marks.at;
    size_t count = f->marks.len / sizeof *marks, i = 0;
    f->live = true;
    while (i < count && marks[i].seq <= f->page.since)
        i++;                            /* the page had it too */
    if (i == count)
        return;
    size_t from = marks[i].at;
    f->page.since = marks[count - 1].seq;
    http_piece(f->visit->rq, f->held.at + from, f->held.len - from);
    held_drop(f);
}

static void page_came(struct follower *f)
{
    struct visit *v = f->visit;
    AUTO(arena_free) struct arena *mem = arena_new();
    AUTO(str_done) struct str out = { 0 };
    struct json *doc;
    struct err err;
    if (!json_parse((struct slice){ v->ask.reply.at, v->ask.reply.len }, mem, &doc, &err)) {
        log_line(LOG_WARN, "api", "%s a page of events is not JSON: %s", v->from.request, err.text);
        cut(f);
        return;
    }
    int64_t before = f->page.since;
    print_page(f, json_get(doc, "items"), &out);
    http_piece(v->rq, out.at, out.len);     /* a page is asked for when the client has room for it */
    struct json *next = json_get(doc, "next");
    bool more = next && next->type != JSON_NULL && f->page.since > before;
    if (more || f->overflowed)
        next_page(f);
    else
        go_live(f);
}

static void answered(struct visit *v)
{
    struct follower *f = v->work;
    f->asked = false;
    if (v->ask.ok)
        page_came(f);
    else
        cut(f);
}

/* The first page decides whether this may be followed at all; only then does the reply begin. */
static void first_answered(struct visit *v)
{
    struct api *a = v->api;
    if (!v->ask.ok || a->closing) {
        if (v->ask.ok)
            reply_error(v, RC_UNAVAILABLE, "the server is closing");
        else
            reply_problem(v, &v->ask.err);
        return;
    }
    struct err why;
    int64_t project = v->who.roles & WATCHERS ? 0 : v->who.project;
    if (project && !crowd_enter(a, project, &why)) {
        reply_problem(v, &why);
        return;
    }
    struct follower *f = calloc(1, sizeof *f);
    if (!f)
        abort();
    const struct event_ask *ask = v->body;
    *f = (struct follower){ .visit = v, .next = a->followers, .page = *ask, .project = project };
    f->page.limit = PAGE;
    f->at_door = ARENA_NEW(v->mem, struct event_ask);
    if (f->next)
        f->next->prev = f;
    a->followers = f;
    v->work = f;
    v->gone = gone;
    v->drained = drained;
    f->alive = timer_start(a->os, ALIVE_MS, alive, f);
    visit_keep(v);
    reply_begin(v, "text/event-stream", -1, NULL);
    next_page(f);
}

static bool resume_from(struct visit *v, struct event_ask *ask, struct err *err)
{
    const char *last = http_header(v->rq, "last-event-id");
    char *end;
    if (!last)
        return true;
    ask->since = strtoll(last, &end, 10);
    if (*last < '0' || *last > '9' || *end || strlen(last) > 18)
        return err_field(err, "Last-Event-ID", "must be the id of an event, a number");
    return true;
}

void events_begin(struct visit *v)
{
    struct event_ask *ask = ARENA_NEW(v->mem, struct event_ask);
    *ask = *(const struct event_ask *)v->body;
    if ((!ask->follow && !request_accepts(v, "text/event-stream"))
        || !text_is(http_method(v->rq), "GET")) {
        visit_ask(v, v->verb_id, v->body, reply_answer);
        return;
    }
    if (!resume_from(v, ask, &v->bad)) {
        reply_problem(v, &v->bad);
        return;
    }
    ask->limit = 1; /* enough to be let in, now and whenever that is checked again */
    ask->follow = false;
    v->body = ask;
    visit_ask(v, v->verb_id, ask, first_answered);
}

/* --- live */

static void print_event(struct str *out, const struct event *e)
{
    AUTO(str_done) struct str data = { 0 };
    char project[ID_TEXT], id[24];
    struct event_view view = {
        .id = e->seq,
        .at_ms = e->at_ms,
        .name = e->kind,
        .state = "kept",
        .subject = e->subject,
        .actor = e->actor,
        .data = e->data,
        .project = e->project ? id_text(project, PREFIX_PROJECT, e->project) : "",
    };
    bind_write(&(struct json_out){ .to = &data }, &event_view_fields, &view);
    snprintf(id, sizeof id, "%lld", (long long)e->seq);
    sse_print(out, id, e->kind, (struct slice){ data.at, data.len });
}

static bool may_see(const struct follower *f, const struct event *e)
{
    const struct caller *who = &f->visit->who;
    return (who->roles & WATCHERS) || (e->project && e->project == who->project);
}

/* A page that was read after a commit may come before we are told of that commit. */
static void tell(struct follower *f, const struct event *e, struct slice text)
{
    if (e->seq <= f->page.since)
        return;                         /* a page had it: where another server writes, commits are heard of late */
    if (f->live) {
        f->page.since = e->seq;
        send(f, text);
    } else if (f->held.len + text.len > HELD_MOST || f->visit->api->held_bytes > HELD_OF_ALL) {
        f->overflowed = true;
    } else {
        f->visit->api->held_bytes += text.len;
        str_put(&f->marks, &(struct mark){ e->seq, f->held.len }, sizeof(struct mark));
        str_put(&f->held, text.at, text.len);
    }
}

void events_commit(struct api *a, const struct commit *k)
{
    AUTO(str_done) struct str text = { 0 };
    for (size_t i = 0; a->followers && i < k->event_count; i++) {
        const struct event *e = &k->events[i];
        str_clear(&text);
        for (struct follower *f = a->followers, *next; f; f = next) {
            next = f->next;
            if ((!f->live && !f->asked) || !may_see(f, e))
                continue;
            if (!text.len)
                print_event(&text, e);
            tell(f, e, (struct slice){ text.at, text.len });
        }
    }
}

void events_close(struct api *a)
{
    while (a->followers) {
        struct visit *v = a->followers->visit;
        let_go(a->followers);
        reply_done(v);
    }
}
