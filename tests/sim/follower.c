/* follower.c - somebody who follows the event log over HTTP and is cut off all the time: it resumes from the last number it saw,
 * and must see every number once, in order, with the name that the store has for it. */
#include "cloud.h"
#include "net/http.h"
#include <stdio.h>
#include <stdlib.h>

static void take_line(struct cloud *c, const char *line)
{
    if (text_starts(line, "id: ")) {
        int64_t n = strtoll(line + 4, NULL, 10);
        if (n != c->followed + 1)
            cloud_fail(c, "a follower saw event %lld after %lld", (long long)n,
                       (long long)c->followed);
        c->followed = n;
    } else if (text_starts(line, "event: ")) {
        str_text(&c->event_names, line + 7);
        str_char(&c->event_names, '\n');
    }
}

static void on_data(void *arg, const char *at, size_t n)
{
    struct cloud *c = arg;
    str_put(&c->event_text, at, n);
    for (char *nl; cloud_ok(c) && (nl = memchr(c->event_text.at, '\n', c->event_text.len));) {
        *nl = 0;
        take_line(c, c->event_text.at);
        str_drop(&c->event_text, (size_t)(nl - c->event_text.at) + 1);
    }
}

static void on_head(void *arg, int status, struct http_call *call)
{
    struct cloud *c = arg;
    (void)call;
    if (status != 200 && status != 503)
        cloud_fail(c, "a follower of events was answered with %d", status);
}

static void on_end(void *arg, int status, struct slice body, const struct err *why)
{
    struct cloud *c = arg;
    (void)status, (void)body, (void)why;
    c->following = false;
    c->follow_ms = sim_now_ms(c->sim) + chance(c, 0, 2000);
}

/* Half an event that came before the cut comes again as a whole, so its number must not count yet: it stands first, its name is
 * next, and both come in one piece or are read again. */
static void forget_half(struct cloud *c)
{
    size_t names = 0;
    for (size_t i = 0; i < c->event_names.len; i++)
        names += c->event_names.at[i] == '\n';
    c->followed = (int64_t)names;
    str_clear(&c->event_text);
}

void client_follow(struct cloud *c)
{
    static const struct http_call_events events
        = { .on_head = on_head, .on_data = on_data, .on_end = on_end };
    char path[64];
    if (c->following || sim_now_ms(c->sim) < c->follow_ms)
        return;
    forget_half(c);
    c->following = true;
    snprintf(path, sizeof path, "/v1/events?follow=true&since=%lld", (long long)c->followed);
    http_call(c->http, "GET", path, NULL, 0, (struct slice){ 0 }, 0, &events, c);
}

void books_followed(struct cloud *c, const struct rows *events)
{
    const char *at = c->event_names.at ? c->event_names.at : "";
    if (c->followed != (int64_t)events->count) {
        cloud_fail(c, "a follower saw %lld of %zu events", (long long)c->followed, events->count);
        return;
    }
    for (size_t i = 0; i < events->count; i++) {
        const char *name = row_text(events, i, 3);
        size_t n = strcspn(at, "\n");
        if (strlen(name) != n || memcmp(name, at, n) != 0) {
            cloud_fail(c, "a follower saw event %zu as %.*s, and the store has %s", i + 1, (int)n,
                       at, name);
            return;
        }
        at += n + 1;
    }
}
