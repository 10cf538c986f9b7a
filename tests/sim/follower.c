/* follower.c - people who follow the event log over HTTP and are cut off all the time: they resume from the last number they saw. One
 * sees everything, and must see every number once and in order; one sees a project, and must see its events and no others. */
#include "cloud.h"
#include "net/http.h"
#include <stdio.h>
#include <stdlib.h>

/* The number stands first and the name next; both come in one piece or are read again. */
static void take_line(struct listener_of *f, const char *line)
{
    if (text_starts(line, "id: ")) {
        f->now = strtoll(line + 4, NULL, 10);
        if (f->all ? f->now != f->last + 1 : f->now <= f->last)
            cloud_fail(f->c, "a follower saw event %lld after %lld", (long long)f->now,
                       (long long)f->last);
    } else if (text_starts(line, "event: ")) {
        str_printf(&f->seen, "%lld %s\n", (long long)f->now, line + 7);
        f->last = f->now;
    }
}

static void on_data(void *arg, const char *at, size_t n)
{
    struct listener_of *f = arg;
    str_put(&f->text, at, n);
    for (char *nl; cloud_ok(f->c) && (nl = memchr(f->text.at, '\n', f->text.len));) {
        *nl = 0;
        take_line(f, f->text.at);
        str_drop(&f->text, (size_t)(nl - f->text.at) + 1);
    }
}

static void on_head(void *arg, int status, struct http_call *call)
{
    struct listener_of *f = arg;
    (void)call;
    if (status != 200 && status != 503 && status != 408) /* 408: a cut came in the middle of its head */
        cloud_fail(f->c, "a follower of events was answered with %d", status);
}

static void on_end(void *arg, int status, struct slice body, const struct err *why)
{
    struct listener_of *f = arg;
    (void)status, (void)body, (void)why;
    f->on = false;
    f->again_ms = sim_now_ms(f->c->sim) + luck(f->c, 0, 2000);
}

void client_follow(struct listener_of *f)
{
    static const struct http_call_events events
        = { .on_head = on_head, .on_data = on_data, .on_end = on_end };
    char path[64];
    struct cloud *c = f->c;
    if (f->on || sim_now_ms(c->sim) < f->again_ms)
        return;
    str_clear(&f->text);
    f->on = true;
    snprintf(path, sizeof path, "/v1/events?follow=true&since=%lld", (long long)f->last);
    http_call(c->tenants[f->tenant].http[luck(c, 0, c->head_count - 1)], "GET", path, NULL, 0, (struct slice){ 0 }, 0, &events, f);
}

void books_followed(struct cloud *c, const struct rows *events, const struct listener_of *f,
                    int64_t project)
{
    const char *at = f->seen.at ? f->seen.at : "";
    for (size_t i = 0; i < events->count; i++) {
        char want[160];
        if (project && row_int(events, i, 2) != project)
            continue;
        int n = snprintf(want, sizeof want, "%lld %s\n", (long long)row_int(events, i, 0),
                         row_text(events, i, 3));
        if (strncmp(at, want, (size_t)n) != 0) {
            cloud_fail(c, "follower %d saw %.*s, and the store has %.*s", f->tenant,
                       (int)strcspn(at, "\n"), at, n - 1, want);
            return;
        }
        at += n;
    }
    if (*at)
        cloud_fail(c, "follower %d saw %.*s, which is not there", f->tenant,
                   (int)strcspn(at, "\n"), at);
}
