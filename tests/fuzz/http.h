/* http.h - a stream of HTTP messages told as one text, fed whole and in pieces: both must tell the same. */
#pragma once
#include "fuzz.h"
#include "wire/http_parse.h"

struct told { struct str log; int messages; bool no_body; };

static inline void told_text(struct told *t, const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        MUST((*c >= 0x20 || *c == '\t') && *c != 0x7f);
    str_text(&t->log, text);
    str_char(&t->log, '\n');
}

static inline bool told_head(void *arg, struct http_head *h)
{
    struct told *t = arg;
    str_printf(&t->log, "head %d 1.%d %d%d%d%d %lld\n", h->status, h->minor, h->keep_alive, h->chunked, h->upgrade, h->expect_continue, (long long)h->content_length);
    MUST((h->method != NULL) == (h->target != NULL) && (h->status != 0) == !h->method && h->content_length >= -1 && !(h->chunked && h->content_length >= 0));
    if (h->method) {
        MUST(h->target[0] == '/' && (http_head_get(h, "host") || h->minor == 0));
        told_text(t, h->method);
        told_text(t, h->target);
    }
    for (size_t i = 0; i < h->header_count; i++) {
        for (const char *c = h->headers[i].name; *c; c++)
            MUST(*c > ' ' && *c != ':' && !(*c >= 'A' && *c <= 'Z'));
        told_text(t, h->headers[i].name);
        told_text(t, h->headers[i].value);
    }
    return true;
}

static inline bool told_body(void *arg, const char *at, size_t n)
{
    MUST(n > 0);
    str_put(&((struct told *)arg)->log, at, n);
    return true;
}

static inline void told_message(void *arg)
{
    struct told *t = arg;
    t->messages++;
    str_text(&t->log, "\nend\n");
}

/* step 0: pieces as the bytes themselves say. */
static inline bool told_stream(struct told *t, enum http_parse_kind kind, const uint8_t *data, size_t size, size_t step)
{
    static const struct http_parse_events events = { told_head, told_body, told_message };
    AUTO(http_parse_free) struct http_parse *p = http_parse_new(kind, 2048, &events, t);
    struct err err = { 0 };
    http_parse_next(p, t->no_body);
    for (size_t done = 0; done < size;) {
        size_t n = MIN(step ? step : 1u + data[done] % 7, size - done), used = 0;
        int before = t->messages;
        if (!http_parse_feed(p, (const char *)data + done, n, &used, &err)) {
            MUST((err.rc == RC_BAD_INPUT || err.rc == RC_TOO_LARGE) && err.text[0]);
            return false;
        }
        MUST(used <= n && t->messages - before <= 1);
        done += used;
        if (t->messages > before)
            http_parse_next(p, t->no_body);
        else
            MUST(used == n);
    }
    bool complete;
    http_parse_eof(p, &complete);
    return true;
}

static inline int told_the_same(enum http_parse_kind kind, bool no_body, const uint8_t *data, size_t size)
{
    struct told whole = { .no_body = no_body }, pieces = whole, bytes = whole;
    bool a = told_stream(&whole, kind, data, size, size ? size : 1), b = told_stream(&pieces, kind, data, size, 0), c = told_stream(&bytes, kind, data, size, 1);
    MUST(a == b && a == c && whole.messages == pieces.messages && whole.messages == bytes.messages);
    MUST(fuzz_same(&whole.log, &pieces.log) && fuzz_same(&whole.log, &bytes.log));
    str_done(&whole.log);
    str_done(&pieces.log);
    str_done(&bytes.log);
    return 0;
}
