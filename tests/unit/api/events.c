#include "world.h"
#include "model/view.h"

enum { HISTORY = 1203 };

/* History of HISTORY events, odd ones of another project; what the door gives is scoped as the real
 * one does. */
struct past { int pages; int64_t count; struct control *late_to; };

static bool history(void *arg, struct control *c, struct request *r)
{
    struct past *p = arg;
    const struct event_ask *ask = r->body;
    if (r->verb != VERB_EVENT_LIST)
        return false;
    struct json_out o = { .to = &r->reply };
    int64_t n = 0, last = 0;
    p->pages++;
    json_open(&o, '{');
    json_key(&o, "items");
    json_open(&o, '[');
    for (int64_t i = ask->since + 1; i <= p->count && n < ask->limit; i++) {
        if (i % 2 && !(r->who.roles & WATCHERS))
            continue;
        struct event_view e = {
            .id = i, .at_ms = 1, .name = "job.queued", .state = "kept", .data = "{\"a\":\"b\"}"
        };
        bind_write(&o, &event_view_fields, &e);
        last = i;
        n++;
    }
    json_close(&o, ']');
    json_key(&o, "next");
    char next[24];
    snprintf(next, sizeof next, "%lld", (long long)last);
    json_put_text(&o, n == ask->limit ? next : NULL);
    json_close(&o, '}');
    if (p->late_to) { /* committed after the page was read; and one that the page had */
        struct event e[]
            = { { .seq = p->count, .project = 500, .kind = "job.queued", .data = "{}" },
                { .seq = p->count + 1, .project = 500, .kind = "job.late", .data = "{}" } };
        p->late_to = NULL;
        fake_commit(c, &(struct commit){ .events = e, .event_count = 2 });
    }
    return true;
}

static int count_of(const struct got *g, const char *text)
{
    int n = 0;
    for (const char *p = g->body.at; p && (p = strstr(p, text)); p += strlen(text))
        n++;
    return n;
}

TEST(an_event_is_framed_as_sse)
{
    AUTO(str_done) struct str out = { 0 };
    sse_print(&out, "7", "job.queued", SLICE("{\"a\":1}"));
    CHECK(text_is(out.at, "id: 7\nevent: job.queued\ndata: {\"a\":1}\n\n"));
    str_clear(&out);
    sse_print(&out, "8", "x", SLICE("a\nb"));                /* a line of data never ends early */
    CHECK(text_is(out.at, "id: 8\nevent: x\ndata: a\ndata: b\n\n"));
}

TEST(a_follower_gets_history_then_what_happens_each_once_and_in_order)
{
    struct world w;
    struct got g;
    struct past p = { .count = HISTORY };
    world_open(&w);
    w.control->script = history;
    w.control->arg = &p;
    got_start(&g, &w, "op", "GET", "/v1/events?follow=true&since=3", NULL, (struct slice){ 0 });
    CHECK(got_has(&g, &w, "id: 1203\n") && g.status == 200 && text_is(g.type, "text/event-stream"));
    world_wait(&w, 10);
    struct event e[] = { { .seq = 1204,
                           .at_ms = 5,
                           .project = 500,
                           .kind = "job.done",
                           .subject = "job-1",
                           .actor = "ada",
                           .data = "{\"x\":1}" },
                         { .seq = 1205, .project = 501, .kind = "job.other", .data = "{}" } };
    fake_commit(w.control, &(struct commit){ .events = e, .event_count = 2 });
    CHECK(got_has(&g, &w, "id: 1205\nevent: job.other\n"));
    CHECK(strstr(g.body.at, "id: 1204\nevent: job.done\ndata: {\"id\":1204,"));
    CHECK(count_of(&g, "id: ") == 1205 - 3);
    const char *at = g.body.at;
    for (int i = 4; i <= 1205 && at; i++) {
        char id[32];
        snprintf(id, sizeof id, "id: %d\n", i);
        at = strstr(at, id);
    }
    CHECK(at != NULL);
    api_close(w.api, 1000);
    CHECK(got_wait(&g, &w) && g.err.rc == RC_OK); /* a whole reply: it resumes elsewhere */
    got_done(&g);
    world_close(&w);
}

TEST(what_is_committed_while_a_page_is_read_is_neither_lost_nor_told_twice)
{
    struct world w;
    struct got g;
    struct past p = { .count = 10 };
    world_open(&w);
    w.control->script = history;
    w.control->arg = &p;
    w.control->hold = true;
    got_start(&g, &w, "dev", "GET", "/v1/events",
              (struct http_header[]){ { "Accept", "text/event-stream" }, { NULL, NULL } },
              (struct slice){ 0 });
    world_wait(&w, 20);
    fake_release(w.control); /* the check of the credential; the page is asked for next */
    p.late_to = NULL;
    w.control->hold = true;
    world_wait(&w, 20);
    CHECK(w.control->held_count == 1);
    p.late_to = w.control;
    fake_release(w.control);
    CHECK(got_has(&g, &w, "id: 11\nevent: job.late\n"));
    CHECK(count_of(&g, "id: 10\n") == 1 && count_of(&g, "id: 11\n") == 1
          && count_of(&g, "id: 9\n") == 0);
    got_done(&g);
    world_close(&w);
}

TEST(a_page_that_overtakes_the_news_of_its_commit_is_not_told_again)
{
    struct world w;
    struct got g;
    struct past p = { .count = 12 };
    world_open(&w);
    w.control->script = history;
    w.control->arg = &p;
    got_start(&g, &w, "op", "GET", "/v1/events?follow=true", NULL, (struct slice){ 0 });
    CHECK(got_has(&g, &w, "id: 12\n"));
    world_wait(&w, 10);
    struct event e[] = { { .seq = 11, .project = 500, .kind = "job.queued", .data = "{}" },
                         { .seq = 12, .project = 500, .kind = "job.queued", .data = "{}" },
                         { .seq = 13, .project = 500, .kind = "job.done", .data = "{}" } };
    fake_commit(w.control, &(struct commit){ .events = e, .event_count = 3 });
    CHECK(got_has(&g, &w, "id: 13\n"));
    CHECK(count_of(&g, "id: 11\n") == 1 && count_of(&g, "id: 12\n") == 1 && count_of(&g, "id: 13\n") == 1);
    got_done(&g);
    world_close(&w);
}

TEST(a_tenant_sees_its_own_events_only_and_resumes_behind_the_last)
{
    struct world w;
    struct got g;
    struct past p = { .count = 6 };
    world_open(&w);
    w.control->script = history;
    w.control->arg = &p;
    struct http_header more[]
        = { { "Accept", "text/event-stream" }, { "Last-Event-ID", "2" }, { NULL, NULL } };
    got_start(&g, &w, "dev", "GET", "/v1/events?since=0", more, (struct slice){ 0 });
    CHECK(got_has(&g, &w, "id: 6\n"));
    world_wait(&w, 10);
    struct event e[] = { { .seq = 7, .project = 501, .kind = "job.theirs", .data = "{}" },
                         { .seq = 8, .project = 0, .kind = "node.joined", .data = "{}" },
                         { .seq = 9, .project = 500, .kind = "job.ours", .data = "{}" } };
    fake_commit(w.control, &(struct commit){ .events = e, .event_count = 3 });
    CHECK(got_has(&g, &w, "job.ours"));
    CHECK(!strstr(g.body.at, "theirs") && !strstr(g.body.at, "node.joined"));
    CHECK(count_of(&g, "id: ") == 3 && strstr(g.body.at, "id: 4\n")
          && !strstr(g.body.at, "id: 2\n"));
    got_done(&g);
    more[1].value = "x";
    got_start(&g, &w, "dev", "GET", "/v1/events", more, (struct slice){ 0 });
    CHECK(got_wait(&g, &w) && g.status == 400 && got_says(&g, "field", "Last-Event-ID"));
    got_done(&g);
    ask(&g, &w, "dev", "GET", "/v1/events?limit=2", NULL, NULL);
    CHECK(g.status == 200 && text_is(g.type, "application/json") && got_says(&g, "next", "4"));
    got_done(&g);
    ask(&g, &w, "node1", "GET", "/v1/events?follow=true", NULL, NULL);
    CHECK(g.status == 403);
    got_done(&g);
    world_close(&w);
}

static bool is_ended(void *arg) { return ((struct got *)arg)->ended; }

TEST(a_follower_whose_key_is_disabled_is_cut_and_others_are_not)
{
    struct world w;
    struct got g, h;
    struct past p = { .count = 2 };
    world_open(&w);
    w.control->script = history;
    w.control->arg = &p;
    got_start(&g, &w, "dev", "GET", "/v1/events?follow=true", NULL, (struct slice){ 0 });
    got_start(&h, &w, "view", "GET", "/v1/events?follow=true", NULL, (struct slice){ 0 });
    CHECK(got_has(&g, &w, "id: 2\n") && got_has(&h, &w, "id: 2\n"));
    w.control->disabled = "dev";
    struct event e = { .seq = 3, .project = 500, .kind = "key.disabled", .data = "{}" };
    fake_commit(w.control, &(struct commit){ .events = &e, .event_count = 1 });
    CHECK(world_until(&w, is_ended, &g) && g.err.rc != RC_OK);
    e.seq = 4;
    e.kind = "job.after";
    fake_commit(w.control, &(struct commit){ .events = &e, .event_count = 1 });
    CHECK(got_has(&h, &w, "job.after") && !h.ended);
    got_done(&g);
    got_done(&h);
    world_close(&w);
}

TEST(a_follower_that_does_not_read_is_cut)
{
    struct world w;
    struct got g;
    struct past p = { .count = 2 };
    world_open(&w);
    w.control->script = history;
    w.control->arg = &p;
    got_start(&g, &w, "op", "GET", "/v1/events?follow=true", NULL, (struct slice){ 0 });
    CHECK(got_has(&g, &w, "id: 2\n"));
    world_wait(&w, 10);
    http_call_pause(g.call, true);
    size_t n = 60 * 1024;
    char *data = malloc(n + 3);
    memset(data, 'x', n);
    memcpy(data, "{\"a\":\"", 6);
    strcpy(data + n, "\"}");
    bool cut = false;
    for (int i = 0; i < 400 && !cut; i++) {
        struct event e = { .seq = 3 + i, .project = 500, .kind = "big", .data = data };
        fake_commit(w.control, &(struct commit){ .events = &e, .event_count = 1 });
        world_wait(&w, 1);
        cut = w.api->followers == NULL;
    }
    CHECK(cut);
    free(data);
    got_done(&g);
    world_close(&w);
}

static bool page_is_held(void *arg) { return ((struct control *)arg)->held_count > 0; }
static bool nobody(void *arg) { return ((struct api *)arg)->users == 0; }

TEST(a_follower_that_leaves_while_its_page_is_read_takes_nothing_with_it)
{
    struct world w;
    struct got g;
    world_open(&w);
    got_start(&g, &w, "dev", "GET", "/v1/events?follow=true&since=7", NULL, (struct slice){ 0 });
    w.control->hold = true;
    CHECK(world_until(&w, page_is_held, w.control));    /* the check at its begin */
    fake_release(w.control);
    w.control->hold = true;
    CHECK(world_until(&w, page_is_held, w.control));    /* its first page */
    got_done(&g);
    while (w.api->followers)
        world_wait(&w, 5);
    const struct event_ask *page = w.control->held[0]->body;
    CHECK(page->since == 7 && page->limit > 1);
    fake_release(w.control);
    CHECK(world_until(&w, nobody, w.api));
    world_close(&w);
}
