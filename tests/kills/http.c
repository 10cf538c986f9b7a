/* http.c - the load's own client: plain blocking sockets, so that nothing of what is tested tests itself. */
#include "kills.h"
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { ANSWER_MOST = 64 << 20, WAIT_S = 10, AGAIN_MS = 50 };

struct stream { /* bytes of a body as they come, out of their chunks */
    int fd;
    bool chunked;
    int64_t left; /* of the chunk, or of the body; -1: until the end */
    struct str in;
};

static int dial(struct cloud *c, int wait_s)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)c->port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct timeval t = { .tv_sec = wait_s };
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
        return fd;
    close(fd);
    return -1;
}

static bool send_all(int fd, const struct str *s)
{
    for (size_t at = 0; at < s->len;) {
        ssize_t n = send(fd, s->at + at, s->len - at, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        at += (size_t)n;
    }
    return true;
}

static ssize_t more(struct stream *s)
{
    errno = 0;
    ssize_t n = recv(s->fd, str_grow(&s->in, 16384), 16384, 0);
    if (n > 0) {
        s->in.len += (size_t)n;
        s->in.at[s->in.len] = 0;
    }
    return n;
}

/* A line without its end, taken off the front. NULL: the connection broke. */
static bool line(struct stream *s, struct str *out)
{
    char *nl;
    while (!(nl = s->in.len ? memchr(s->in.at, '\n', s->in.len) : NULL))
        if (more(s) <= 0)
            return false;
    size_t n = (size_t)(nl - s->in.at);
    str_clear(out);
    str_put(out, s->in.at, n && s->in.at[n - 1] == '\r' ? n - 1 : n);
    str_drop(&s->in, n + 1);
    return true;
}

static void request_text(struct cloud *c, const struct ask *a, const char *extra, struct str *out)
{
    str_printf(out, "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\n%s",
               a->method, a->path, c->port, a->key ? a->key : c->key, extra);
    if (a->idem)
        str_printf(out, "Idempotency-Key: %s\r\n", a->idem);
    if (a->body)
        str_printf(out, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
                   strlen(a->body));
    str_printf(out, "\r\n%s", a->body ? a->body : "");
}

static int head(struct stream *s)
{
    AUTO(str_done) struct str l = { 0 };
    int status = 0;
    s->left = -1;
    if (!line(s, &l) || sscanf(l.at, "HTTP/1.1 %d", &status) != 1)
        return 0;
    while (line(s, &l)) {
        if (!l.len)
            return status;
        if (strncasecmp(l.at, "Content-Length:", 15) == 0)
            s->left = strtoll(l.at + 15, NULL, 10);
        if (strncasecmp(l.at, "Transfer-Encoding: chunked", 26) == 0)
            s->chunked = true, s->left = 0;
    }
    return 0;
}

/* The next bytes of the body; 0: its good end; -1: broken; -2: nothing came in time. */
static int piece(struct stream *s, struct str *out)
{
    AUTO(str_done) struct str l = { 0 };
    if (s->chunked && s->left == 0) {
        if (!line(s, &l) || (!l.len && !line(s, &l))) /* the end of the chunk before */
            return errno == EAGAIN ? -2 : -1;
        s->left = strtoll(l.at, NULL, 16);
    }
    if (s->left == 0)
        return 0;
    ssize_t n = s->in.len ? 1 : more(s);
    if (n <= 0)
        return n == 0 ? (s->left == -1 ? 0 : -1) : errno == EAGAIN ? -2 : -1;
    size_t take = s->left > 0 ? MIN(s->in.len, (size_t)s->left) : s->in.len;
    str_put(out, s->in.at, take);
    str_drop(&s->in, take);
    if (s->left > 0)
        s->left -= (int64_t)take;
    if (s->left == 0 && !s->chunked)
        return 0;
    return 1;
}

static void once(struct cloud *c, const struct ask *a, struct reply *out)
{
    AUTO(str_done) struct str text = { 0 };
    struct stream s = { .fd = dial(c, WAIT_S) };
    int status = 0, rc = -1;
    str_clear(&out->body);
    out->status = 0;
    if (s.fd == -1)
        return;
    c->requests++;
    request_text(c, a, "Connection: close\r\n", &text);
    if (send_all(s.fd, &text) && (status = head(&s)))
        while ((rc = piece(&s, &out->body)) > 0 && out->body.len < ANSWER_MOST)
            ;
    if (rc == 0)
        out->status = status;
    else
        c->resets++;
    str_put(&out->body, "", 0);
    str_done(&s.in);
    close(s.fd);
}

void ask(struct cloud *c, const struct ask *a, struct reply *out)
{
    int64_t until = now_ms() + a->patience_ms;
    for (;;) {
        once(c, a, out);
        bool definite = out->status && out->status < 500 && out->status != 429;
        if (definite || now_ms() >= until || c->all_stops)
            return;
        sleep_ms(AGAIN_MS);
    }
}

struct json *ask_json(struct cloud *c, const char *path, struct arena *mem)
{
    struct reply r = { 0 };
    struct json *doc = NULL;
    struct err err = { 0 };
    ask(c, &(struct ask){ .method = "GET", .path = path, .patience_ms = 20000 }, &r);
    if (r.status == 200
        && !json_parse((struct slice){ arena_bytes(mem, r.body.at, r.body.len), r.body.len }, mem,
                       &doc, &err))
        doc = NULL;
    str_done(&r.body);
    return doc;
}

bool exec_in(struct cloud *c, const char *job, struct rng *rng)
{
    AUTO(str_done) struct str text = { 0 };
    AUTO(str_done) struct str got = { 0 };
    char path[160];
    struct stream s = { .fd = dial(c, 3) };
    bool told = false;
    if (s.fd == -1)
        return false;
    snprintf(path, sizeof path, "/v1/jobs/%s/exec?argv=sh&argv=-c&argv=echo%%20hi%%3Bsleep%%200.%d",
             job, (int)rng_below(rng, 4));
    request_text(c, &(struct ask){ .method = "GET", .path = path },
                 "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                 "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
                 &text);
    int status = send_all(s.fd, &text) ? head(&s) : 0;
    if (status == 101)
        s.left = -1;
    while (!told && piece(&s, &got) > 0)
        told = got.len && memmem(got.at, got.len, "\"exit\":0", 8);
    if (!told)
        say(c, "exec: %d %.*s", status, status == 101 ? 0 : (int)MIN(got.len, 200u),
            got.at ? got.at : "");
    str_done(&s.in);
    close(s.fd);
    return told;
}

static void take_events(struct cloud *c, struct str *got)
{
    char *nl;
    while (got->len && (nl = memchr(got->at, '\n', got->len))) {
        *nl = 0;
        long long n = text_starts(got->at, "id: ")  ? strtoll(got->at + 4, NULL, 10)
                      : text_starts(got->at, "id:") ? strtoll(got->at + 3, NULL, 10)
                                                    : 0;
        if (n && n != c->last_event + 1)
            problem(c, "events", "a follower got event %lld after %lld", n,
                    (long long)c->last_event);
        if (n)
            c->last_event = n;
        str_drop(got, (size_t)(nl - got->at) + 1);
    }
}

void follow_events(struct cloud *c)
{
    while (!c->all_stops) {
        AUTO(str_done) struct str text = { 0 };
        AUTO(str_done) struct str got = { 0 };
        char path[96];
        struct stream s = { .fd = dial(c, 1) };
        if (s.fd == -1) {
            sleep_ms(AGAIN_MS);
            continue;
        }
        snprintf(path, sizeof path, "/v1/events?follow=true&since=%lld", (long long)c->last_event);
        request_text(c, &(struct ask){ .method = "GET", .path = path },
                     "Accept: text/event-stream\r\n", &text);
        int rc = send_all(s.fd, &text) && head(&s) == 200 ? 1 : -1;
        while ((rc > 0 || rc == -2) && !c->all_stops) {
            rc = piece(&s, &got);
            take_events(c, &got);
        }
        str_done(&s.in);
        close(s.fd);
    }
}
