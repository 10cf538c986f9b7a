/* http_parse.c - the head of an HTTP/1.1 message, and who takes the bytes behind it.
 *
 * Debian's libhttp-parser is built lenient and would take a missing CR, a folded line or a blank before the colon. So a
 * head is collected line by line and every line is checked here first; the library then reads what is left to
 * read (method, version, Connection) and refuses what it knows better, where there is anything. Bodies are http_body.c's. Nothing is decided
 * in the middle of a line, so it does not matter how the bytes were cut on their way. */
#include "wire/http_parse.h"
#include "wire/http_parse_internal.h"
#include <http_parser.h>
#include <stdlib.h>

enum { BLANK_LINES = 4, HEADERS = 128 };

/* Eight together: printable ASCII, as nearly all is, has none. */
static bool has_control(const char *at, size_t n)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), high = ones << 7;
    for (size_t i = 0; i < n; i++) {
        uint64_t w;
        while (n - i >= sizeof w) {
            memcpy(&w, at + i, sizeof w);
            if ((w | (w - ones * 0x20) | ((w ^ ones * 0x7f) - ones)) & high)
                break;
            i += sizeof w;
        }
        unsigned char c = i < n ? (unsigned char)at[i] : ' ';
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return true;
    }
    return false;
}

bool http_line(struct http_parse *p, const char **at, const char *end, size_t limit,
               struct slice *line, struct err *err)
{
    const char *lf = memchr(*at, '\n', (size_t)(end - *at));
    size_t n = (size_t)((lf ? lf + 1 : end) - *at);
    *line = (struct slice){ 0 };
    if (p->buf.len + n > limit)
        return err_set(err, RC_TOO_LARGE, "the head of the message is larger than %zu bytes",
                       limit);
    str_put(&p->buf, *at, n);
    *at += n;
    if (!lf)
        return true;
    *line = (struct slice){ p->buf.at + p->line_from, p->buf.len - p->line_from - 1 };
    p->line_from = p->buf.len;
    if (!line->len || line->at[line->len - 1] != '\r')
        return err_set(err, RC_BAD_INPUT, "a line must end with CR and LF");
    line->len--;
    return !has_control(line->at, line->len) || err_set(err, RC_BAD_INPUT, "a control character in the head of the message");
}

static bool is_token(const char *at, size_t n)
{
    static const unsigned char token[256] = {
        ['0' ... '9'] = 1, ['a' ... 'z'] = 1, ['A' ... 'Z'] = 1, ['!'] = 1, ['#'] = 1, ['$'] = 1, ['%'] = 1, ['&'] = 1,
        ['\''] = 1, ['*'] = 1, ['+'] = 1, ['-'] = 1, ['.'] = 1, ['^'] = 1, ['_'] = 1, ['`'] = 1, ['|'] = 1, ['~'] = 1,
    };
    for (size_t i = 0; i < n; i++)
        if (!token[(unsigned char)at[i]])
            return false;
    return n > 0;
}

bool http_header_line(struct slice line, struct slice *name, struct slice *value, struct err *err)
{
    if (line.at[0] == ' ' || line.at[0] == '\t')
        return err_set(err, RC_BAD_INPUT, "a header must not be folded over two lines");
    const char *colon = memchr(line.at, ':', line.len);
    if (!colon || !is_token(line.at, (size_t)(colon - line.at)))
        return err_set(err, RC_BAD_INPUT,
                       "a header line must be NAME: VALUE, without a blank before the colon");
    const char *from = colon + 1, *end = line.at + line.len;
    while (from < end && (*from == ' ' || *from == '\t'))
        from++;
    while (end > from && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    *name = (struct slice){ line.at, (size_t)(colon - line.at) };
    *value = (struct slice){ from, (size_t)(end - from) };
    return true;
}

static bool add_header(struct http_parse *p, struct slice line, struct err *err)
{
    struct slice name, value;
    if (!http_header_line(line, &name, &value, err))
        return false;
    if (p->head->header_count == HEADERS)
        return err_set(err, RC_TOO_LARGE, "more than %d headers", HEADERS);
    char *lower = arena_bytes(p->mem, name.at, name.len);
    for (char *c = lower; *c; c++)
        if (*c >= 'A' && *c <= 'Z')
            *c = (char)(*c | 32);
    p->head->headers[p->head->header_count++]
        = (struct http_pair){ lower, arena_bytes(p->mem, value.at, value.len) };
    return true;
}

/* METHOD SP TARGET SP HTTP/1.x, with single blanks. */
static bool request_line(struct http_parse *p, struct slice line, struct err *err)
{
    const char *end = line.at + line.len, *a = memchr(line.at, ' ', line.len),
               *b = memrchr(line.at, ' ', line.len);
    if (!a || a == b || !is_token(line.at, (size_t)(a - line.at)))
        return err_set(err, RC_BAD_INPUT, "the request line must be METHOD TARGET HTTP/1.1");
    if (end - b != 9 || (memcmp(b, " HTTP/1.1", 9) && memcmp(b, " HTTP/1.0", 9)))
        return err_set(err, RC_BAD_INPUT, "only HTTP/1.1 and HTTP/1.0 are spoken here");
    const char *target = a + 1;
    if (memchr(target, ' ', (size_t)(b - target)) || memchr(target, '\t', (size_t)(b - target))
        || memchr(target, '#', (size_t)(b - target)))
        return err_set(err, RC_BAD_INPUT, "a character in the target that must be percent-encoded");
    size_t n = (size_t)(b - target);
    if (n > 7
        && (strncasecmp(target, "http://", 7) == 0
            || (n > 8 && strncasecmp(target, "https://", 8) == 0))) {
        const char *host = (const char *)memchr(target, ':', n) + 3;     /* as to a proxy: we want the path */
        target = memchr(host, '/', (size_t)(b - host));
        n = target ? (size_t)(b - target) : 0;
    }
    if (target && (n == 0 || target[0] != '/'))
        return err_set(err, RC_BAD_INPUT, "the target of the request must begin with a slash");
    p->head->target = target ? arena_bytes(p->mem, target, n) : "/";
    return true;
}

static bool status_line(struct slice line, struct err *err)
{
    const char *l = line.at;
    bool good = line.len >= 12 && (!memcmp(l, "HTTP/1.1 ", 9) || !memcmp(l, "HTTP/1.0 ", 9))
                && l[9] >= '1' && l[9] <= '5' && l[10] >= '0' && l[10] <= '9' && l[11] >= '0'
                && l[11] <= '9' && (line.len == 12 || l[12] == ' ');
    return good
           || err_set(err, RC_BAD_INPUT, "the answer does not begin with HTTP/1.1 and a status");
}

static int on_headers_complete(http_parser *hp)
{
    struct http_parse *p = hp->data;
    struct http_head *h = p->head;
    h->method
        = p->kind == HTTP_PARSE_REQUEST ? http_method_str((enum http_method)hp->method) : NULL;
    h->status = p->kind == HTTP_PARSE_RESPONSE ? hp->status_code : 0;
    h->minor = hp->http_minor;
    h->keep_alive = h->minor > 0 ? !(hp->flags & F_CONNECTION_CLOSE)
                                 : (hp->flags & F_CONNECTION_KEEP_ALIVE) != 0;
    h->upgrade = (hp->flags & F_UPGRADE) && (hp->flags & F_CONNECTION_UPGRADE);
    return 1;                           /* the body is not the library's */
}

static bool library_agrees(struct http_parse *p, struct err *err)
{
    http_parser hp;
    http_parser_settings settings;
    http_parser_settings_init(&settings);
    settings.on_headers_complete = on_headers_complete;
    http_parser_init(&hp, p->kind == HTTP_PARSE_REQUEST ? HTTP_REQUEST : HTTP_RESPONSE);
    hp.data = p;
    http_parser_execute(&hp, &settings, p->buf.at, p->buf.len);
    enum http_errno e = HTTP_PARSER_ERRNO(&hp);
    if (e == HPE_HEADER_OVERFLOW)
        return err_set(err, RC_TOO_LARGE, "the head of the message is too large");
    return e == HPE_OK || err_set(err, RC_BAD_INPUT, "not HTTP: %s", http_errno_description(e));
}

/* Nearly every request says nothing that the library would read or refuse: a common method and a plain target, and none of the headers
 * that it knows besides the length, which is checked here. NULL: it is not so plain; else its method. */
static const char *plain_method(const struct http_parse *p)
{
    static const char *const methods[] = { "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD" };
    static const char *const known[] = { "connection", "proxy-connection", "transfer-encoding", "upgrade" };
    const struct http_head *h = p->head;
    const char *blank = memchr(p->buf.at, ' ', p->buf.len), *method = NULL, *at = blank + 1;
    for (size_t i = 0; i < COUNT(methods) && !method; i++)
        if (strlen(methods[i]) == (size_t)(blank - p->buf.at) && memcmp(methods[i], p->buf.at, strlen(methods[i])) == 0)
            method = methods[i];
    if (!method || *at != '/')
        return NULL;
    while (is_token(at, 1) || *at == '/')
        at++;
    if (memcmp(at, " HTTP/1.1\r", 10) != 0)
        return NULL;
    for (size_t i = 0; i < h->header_count; i++)
        for (size_t k = 0; k < COUNT(known); k++)
            if (h->headers[i].name[0] == known[k][0] && strcmp(h->headers[i].name, known[k]) == 0)
                return NULL;
    return method;
}

/* How many of that name, and the last of them. */
static int count_of(const struct http_head *h, const char *name, const char **value)
{
    int n = 0;
    for (size_t i = 0; i < h->header_count; i++)
        if (strcmp(h->headers[i].name, name) == 0)
            *value = h->headers[i].value, n++;
    return n;
}

static bool check_host(const struct http_head *h, struct err *err)
{
    const char *host = NULL;
    int n = count_of(h, "host", &host);
    if (n > 1)
        return err_set(err, RC_BAD_INPUT, "more than one Host header");
    if (n == 0)                         /* HTTP/1.0 had none */
        return h->minor == 0 || err_set(err, RC_BAD_INPUT, "the Host header is missing");
    for (const char *c = host; *c; c++)
        if (!((*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z')
              || strchr("-._~:[]%", *c)))
            return err_set(err, RC_BAD_INPUT, "the Host header is not a host");
    return *host || err_set(err, RC_BAD_INPUT, "the Host header is empty");
}

static bool check_length(struct http_head *h, struct err *err)
{
    const char *length = NULL, *coding = NULL;
    int lengths = count_of(h, "content-length", &length),
        codings = count_of(h, "transfer-encoding", &coding);
    h->content_length = -1;
    if (lengths + codings > 1)
        return err_set(err, RC_BAD_INPUT,
                       "the length of the body is told twice (Content-Length, Transfer-Encoding)");
    if (codings) {
        if (h->minor == 0 || strcasecmp(coding, "chunked") != 0)
            return err_set(err, RC_BAD_INPUT,
                           "the only Transfer-Encoding taken is chunked, with HTTP/1.1");
        h->chunked = true;
    }
    if (lengths) {
        size_t n = strlen(length);
        if (n == 0 || n > 18 || strspn(length, "0123456789") != n)
            return err_set(err, RC_BAD_INPUT, "Content-Length must be a plain number of bytes");
        h->content_length = 0;
        for (; *length; length++)
            h->content_length = h->content_length * 10 + (*length - '0');
    }
    return true;
}

static bool read_head(struct http_parse *p, struct err *err)
{
    struct http_head *h = p->head = ARENA_NEW(p->mem, struct http_head);
    const char *at = p->buf.at, *end = p->buf.at + p->buf.len - 2;
    h->headers = ARENA_ARRAY(p->mem, struct http_pair, MIN(p->lines, (size_t)HEADERS));
    for (size_t i = 0; at < end; i++) {
        const char *cr = (const char *)memchr(at, '\n', (size_t)(end - at)) - 1;
        struct slice line = { at, (size_t)(cr - at) };
        bool good = i                               ? add_header(p, line, err)
                    : p->kind == HTTP_PARSE_REQUEST ? request_line(p, line, err)
                                                    : status_line(line, err);
        if (!good)
            return false;
        at = cr + 2;
    }
    if (p->kind == HTTP_PARSE_REQUEST && (h->method = plain_method(p)))
        h->minor = 1, h->keep_alive = true;
    else if (!library_agrees(p, err))
        return false;
    if (!check_length(h, err))
        return false;
    if (p->kind == HTTP_PARSE_RESPONSE)
        return true;
    if (text_is(h->method, "CONNECT"))
        return err_set(err, RC_BAD_INPUT, "this is not a proxy");
    const char *expect = http_head_get(h, "expect");
    h->expect_continue = expect && strcasecmp(expect, "100-continue") == 0;
    return check_host(h, err);
}

static enum http_state body_of(const struct http_parse *p)
{
    struct http_head *h = p->head;
    bool reply = p->kind == HTTP_PARSE_RESPONSE;
    if (reply && (p->no_body || h->status < 200 || h->status == 204 || h->status == 304))
        return AT_DONE;
    if (h->chunked)
        return AT_CHUNK_SIZE;
    if (h->content_length >= 0)
        return h->content_length ? AT_LENGTH : AT_DONE;
    if (!reply)
        return AT_DONE;
    h->keep_alive = false;
    return AT_UNTIL_EOF;
}

static bool feed_head(struct http_parse *p, const char **at, const char *end, struct err *err)
{
    struct slice line;
    if (!http_line(p, at, end, p->head_limit, &line, err))
        return false;
    if (!line.at)
        return true;
    if (line.len) {
        p->lines++;
        return true;
    }
    if (p->lines == 0) {                /* some clients send a blank line behind a body */
        if (++p->blanks > BLANK_LINES)
            return err_set(err, RC_BAD_INPUT, "too many blank lines before the message");
        http_line_clear(p);
        return true;
    }
    if (!read_head(p, err))
        return false;
    p->state = body_of(p);
    p->left = p->state == AT_LENGTH ? (uint64_t)p->head->content_length : 0;
    http_line_clear(p);
    if (!p->events.on_head(p->arg, p->head))
        p->state = AT_STOPPED;
    else if (p->state == AT_DONE)
        p->events.on_message(p->arg);
    return true;
}

bool http_parse_feed(struct http_parse *p, const char *at, size_t n, size_t *taken, struct err *err)
{
    const char *from = at, *end = at + n;
    bool good
        = p->state != AT_BROKEN || err_set(err, RC_BAD_INPUT, "the connection is out of step");
    while (good && at < end && p->state < AT_DONE)
        good = p->state == AT_HEAD ? feed_head(p, &at, end, err) : http_body_feed(p, &at, end, err);
    if (!good)
        p->state = AT_BROKEN;
    *taken = (size_t)(at - from);
    return good;
}

void http_line_clear(struct http_parse *p)
{
    str_clear(&p->buf);
    p->line_from = 0;
}

struct http_parse *http_parse_new(enum http_parse_kind kind, size_t head_limit,
                                  const struct http_parse_events *events, void *arg)
{
    struct http_parse *p = calloc(1, sizeof *p);
    if (!p)
        abort();
    *p = (struct http_parse){ .kind = kind, .head_limit = head_limit, .events = *events, .arg = arg, .mem = arena_new() };
    return p;
}

void http_parse_free(struct http_parse *p)
{
    if (!p)
        return;
    str_done(&p->buf);
    arena_free(p->mem);
    free(p);
}

void http_parse_next(struct http_parse *p, bool reply_has_no_body)
{
    arena_free(p->mem);
    p->mem = arena_new();
    p->head = NULL;
    p->lines = 0;
    p->blanks = 0;
    p->no_body = reply_has_no_body;
    p->cr_seen = false;
    p->state = p->state == AT_BROKEN ? AT_BROKEN : AT_HEAD;
    http_line_clear(p);
}

void http_parse_eof(struct http_parse *p, bool *complete)
{
    if (p->state == AT_UNTIL_EOF) {
        p->state = AT_DONE;
        p->events.on_message(p->arg);
    }
    *complete = p->state == AT_DONE;
}

struct arena *http_parse_mem(struct http_parse *p) { return p->mem; }

const char *http_head_get(const struct http_head *h, const char *lower_name)
{
    for (size_t i = 0; i < h->header_count; i++)
        if (strcmp(h->headers[i].name, lower_name) == 0)
            return h->headers[i].value;
    return NULL;
}
