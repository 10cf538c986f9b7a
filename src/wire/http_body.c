/* http_body.c - the bytes behind a head: a counted body, chunks, or all up to the end of the connection. Extensions of
 * chunks and trailers are checked for form and dropped; nobody here has a use for them. */
#include "wire/http_parse_internal.h"

enum { CHUNK_LINE = 512, CHUNK_DIGITS = 15 };

static void body_done(struct http_parse *p)
{
    p->state = AT_DONE;
    p->events.on_message(p->arg);
}

static bool hand_on(struct http_parse *p, const char **at, size_t n)
{
    const char *from = *at;
    *at += n;
    if (n && !p->events.on_body(p->arg, from, n))
        p->state = AT_STOPPED;
    return p->state != AT_STOPPED;
}

static bool counted(struct http_parse *p, const char **at, const char *end)
{
    size_t n = (size_t)MIN((uint64_t)(end - *at), p->left);
    p->left -= n;
    return hand_on(p, at, n) && p->left == 0;
}

static bool chunk_size(struct slice line, uint64_t *out, struct err *err)
{
    size_t i = 0;
    uint64_t n = 0;
    for (; i < line.len && line.at[i] != ';'; i++) {
        int c = (unsigned char)line.at[i], low = c | 32;
        bool digit = c >= '0' && c <= '9', letter = low >= 'a' && low <= 'f';
        if ((!digit && !letter) || i == CHUNK_DIGITS)
            return err_set(err, RC_BAD_INPUT, "the size of a chunk is not a hexadecimal number");
        n = n << 4 | (unsigned)(digit ? c - '0' : low - 'a' + 10);
    }
    if (i == 0)
        return err_set(err, RC_BAD_INPUT, "the size of a chunk is missing");
    *out = n;
    return true;
}

bool http_body_feed(struct http_parse *p, const char **at, const char *end, struct err *err)
{
    struct slice line, name, value;
    switch (p->state) {
    case AT_LENGTH:
        if (counted(p, at, end))
            body_done(p);
        return true;
    case AT_UNTIL_EOF:
        hand_on(p, at, (size_t)(end - *at));
        return true;
    case AT_CHUNK_SIZE:
        if (!http_line(p, at, end, CHUNK_LINE, &line, err))
            return false;
        if (!line.at)
            return true;
        if (!chunk_size(line, &p->left, err))
            return false;
        http_line_clear(p);
        p->state = p->left ? AT_CHUNK : AT_TRAILER;
        return true;
    case AT_CHUNK:
        if (counted(p, at, end))
            p->state = AT_CHUNK_END;
        return true;
    case AT_CHUNK_END:
        if (*(*at)++ != (p->cr_seen ? '\n' : '\r'))
            return err_set(err, RC_BAD_INPUT, "a chunk is longer than it said");
        p->cr_seen = !p->cr_seen;
        p->state = p->cr_seen ? AT_CHUNK_END : AT_CHUNK_SIZE;
        return true;
    case AT_TRAILER:
        if (!http_line(p, at, end, p->head_limit, &line, err))
            return false;
        if (line.at && !line.len)
            body_done(p);
        return !line.len || http_header_line(line, &name, &value, err);
    default:
        return true;
    }
}
