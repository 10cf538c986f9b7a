/* tail.c - what a task prints, written to one of our own descriptors as it comes.
 *
 * What is followed comes in pieces with a mark each (model/order.h). When the connection breaks, it is asked for again from the mark
 * of the last whole piece on: nothing is lost or told twice, also of the last lines of a long log, and of one that drops its oldest
 * part meanwhile. Bytes are passed on as they are; only a prefix, where one is asked for, makes lines of them. */
#include "cli/cli.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { AGAIN_MS = 300, AGAIN_MOST = 200, MARK_MOST = 128, PIECE_MOST = 1 << 20 };

struct tail {
    struct cli *c;
    struct http_call *call;
    const struct http_client *asked;
    struct timer *again;
    char *path;
    const char *prefix;
    int fd, status, tries;
    bool follow, over, unread, line_begun;
    char mark[MARK_MOST];           /* of the last whole piece */
    struct str pieces;              /* what came and is not a whole piece yet */
    struct str problem;
    struct err err;
};

static void begin(struct tail *t);

static void finish(struct tail *t)
{
    t->over = true;
    os_stop(t->c->os);
}

static bool write_all(struct tail *t, const char *at, size_t n)
{
    while (n) {
        ssize_t m = write(t->fd, at, n);
        if (m < 0 && errno == EINTR)
            continue;
        if (m <= 0)
            return false;
        at += m;
        n -= (size_t)m;
    }
    return true;
}

static bool write_lines(struct tail *t, const char *at, size_t n)
{
    AUTO(str_done) struct str out = { 0 };
    progress_clear(t->c->progress);
    if (!t->prefix)
        return write_all(t, at, n);
    while (n) {
        const char *end = memchr(at, '\n', n);
        size_t m = end ? (size_t)(end - at) + 1 : n;
        if (!t->line_begun)
            str_text(&out, t->prefix);
        str_put(&out, at, m);
        t->line_begun = !end;
        at += m;
        n -= m;
    }
    return write_all(t, out.at, out.len);
}

static void on_head(void *arg, int status, struct http_call *call)
{
    struct tail *t = arg;
    (void)call;
    t->status = status;
}

static void leave(struct tail *t)
{
    t->unread |= t->err.rc == RC_OK;
    http_call_cancel(TAKE(t->call));
    finish(t);
}

/* Every whole "MARK BYTES\n" and its bytes. False: nobody reads; an error: this is not what a server sends. */
static bool take_pieces(struct tail *t, struct err *why)
{
    size_t from = 0;
    for (char *line, *nl; from < t->pieces.len; ) {
        line = t->pieces.at + from;
        nl = memchr(line, '\n', t->pieces.len - from);
        size_t head = nl ? (size_t)(nl - line) : t->pieces.len - from, mark = 0;
        while (mark < head && line[mark] != ' ')
            mark++;
        if (head >= MARK_MOST + 16 || mark >= MARK_MOST || (nl && mark == head))
            return err_set(why, RC_INTERNAL, "the server does not send a log as this program knows it"), true;
        if (!nl)
            break;
        char *end;
        size_t bytes = strtoul(line + mark + 1, &end, 10);
        if (end != nl || end == line + mark + 1 || bytes > PIECE_MOST)
            return err_set(why, RC_INTERNAL, "the server does not send a log as this program knows it"), true;
        if (t->pieces.len - from < head + 1 + bytes)
            break;
        if (!write_lines(t, nl + 1, bytes))
            return false;
        memcpy(t->mark, line, mark);
        t->mark[mark] = 0;
        from += head + 1 + bytes;
    }
    str_drop(&t->pieces, from);
    return true;
}

static void on_data(void *arg, const char *at, size_t n)
{
    struct tail *t = arg;
    if (t->status >= 300) {
        if (t->problem.len < 65536)
            str_put(&t->problem, at, n);
        return;
    }
    t->tries = 0;
    if (!t->follow) {
        if (!write_lines(t, at, n))
            leave(t);
        return;
    }
    struct err why = { 0 };
    str_put(&t->pieces, at, n);
    bool good = take_pieces(t, &why);
    if (good && why.rc == RC_OK)
        return;
    if (!good)
        t->unread = true;
    t->err = why;
    leave(t);
}

static void try_again(void *arg)
{
    struct tail *t = arg;
    t->again = NULL;
    begin(t);
}

static void on_end(void *arg, int status, struct slice body, const struct err *err)
{
    struct tail *t = arg;
    (void)body;
    t->call = NULL;
    if (!err && status < 300) {
        finish(t);
        return;
    }
    if (err)
        t->err = *err;
    else
        problem_read(t->c, status, (struct slice){ t->problem.at, t->problem.len }, &t->err);
    str_clear(&t->problem);
    bool later = t->err.rc == RC_NOT_WRITER || t->err.rc == RC_UNAVAILABLE || t->err.rc == RC_TIMEOUT || t->err.rc == RC_TOO_MANY;
    if (later)
        cli_leave(t->c, t->asked);
    if (t->follow && later && t->tries++ < AGAIN_MOST)
        t->again = timer_start(t->c->os, AGAIN_MS, try_again, t);
    else
        finish(t);
}

static void begin(struct tail *t)
{
    static const struct http_call_events events
        = { .on_head = on_head, .on_data = on_data, .on_end = on_end };
    struct http_header headers[CLI_HEADERS];
    size_t n = cli_headers(t->c, headers, false, false);
    t->err = (struct err){ 0 };
    t->status = 0;
    t->asked = t->c->client;
    str_clear(&t->pieces);
    AUTO(str_done) struct str path = { 0 };
    str_text(&path, t->path);
    if (t->mark[0]) {
        str_text(&path, "&from=");
        url_encode(&path, t->mark);
    }
    t->call
        = http_call(t->c->client, "GET", path.at, headers, n, (struct slice){ 0 }, 0, &events, t);
    if (t->follow)
        http_call_timeout(t->call, 0);
}

struct tail *tail_start(struct cli *c, const struct tail_ask *ask, int fd, const char *prefix)
{
    AUTO(str_done) struct str path = { 0 };
    struct tail *t = calloc(1, sizeof *t);
    if (!t)
        abort();
    str_text(&path, "/v1/jobs/");
    url_encode(&path, ask->job);
    str_printf(&path, "/logs?follow=%s&tail=%lld&task=%lld", ask->follow ? "true" : "false",
               (long long)ask->lines, (long long)ask->task);
    if (ask->follow)
        str_text(&path, "&marks=true");
    if (text_given(ask->source))
        str_printf(&path, "&source=%s", ask->source);
    if (ask->attempt)
        str_printf(&path, "&attempt=%lld", (long long)ask->attempt);
    *t = (struct tail){
        .c = c, .fd = fd, .follow = ask->follow, .prefix = prefix, .path = strdup(path.at)
    };
    begin(t);
    return t;
}

bool tail_over(const struct tail *t) { return t->over; }
bool tail_unread(const struct tail *t) { return t->unread; }

bool tail_failed(const struct tail *t, struct err *err)
{
    if (t->err.rc == RC_OK)
        return false;
    *err = t->err;
    return true;
}

void tail_free(struct tail *t)
{
    if (!t)
        return;
    if (t->call)
        http_call_cancel(t->call);
    timer_cancel(t->again);
    str_done(&t->pieces);
    str_done(&t->problem);
    free(t->path);
    free(t);
}
