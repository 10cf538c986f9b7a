/* http_reply.c - a reply's head and body on their way out.
 *
 * The head is put together in one buffer of the server and, with a body that is small, handed to
 * the stream in one piece. Nothing from a handler can break out of its header: control bytes become
 * blanks. A body that does not have the length that was promised ends in a cut, never in a reply
 * that looks whole. */
#include "net/http_internal.h"
#include <stdio.h>
#include <time.h>

enum { WITH_HEAD = 32 * 1024 }; /* a body up to this size is copied behind the head */

static const struct {
    int status;
    const char *line;
} lines[] = {
#define LINE(status, reason)                                                                       \
    {                                                                                              \
        status, "HTTP/1.1 " #status " " reason "\r\n"                                              \
    }
    LINE(200, "OK"),
    LINE(201, "Created"),
    LINE(202, "Accepted"),
    LINE(204, "No Content"),
    LINE(206, "Partial Content"),
    LINE(301, "Moved Permanently"),
    LINE(302, "Found"),
    LINE(303, "See Other"),
    LINE(304, "Not Modified"),
    LINE(307, "Temporary Redirect"),
    LINE(308, "Permanent Redirect"),
    LINE(400, "Bad Request"),
    LINE(401, "Unauthorized"),
    LINE(403, "Forbidden"),
    LINE(404, "Not Found"),
    LINE(405, "Method Not Allowed"),
    LINE(406, "Not Acceptable"),
    LINE(408, "Request Timeout"),
    LINE(409, "Conflict"),
    LINE(410, "Gone"),
    LINE(411, "Length Required"),
    LINE(412, "Precondition Failed"),
    LINE(413, "Content Too Large"),
    LINE(414, "URI Too Long"),
    LINE(415, "Unsupported Media Type"),
    LINE(416, "Range Not Satisfiable"),
    LINE(421, "Misdirected Request"),
    LINE(422, "Unprocessable Content"),
    LINE(426, "Upgrade Required"),
    LINE(428, "Precondition Required"),
    LINE(429, "Too Many Requests"),
    LINE(431, "Request Header Fields Too Large"),
    LINE(500, "Internal Server Error"),
    LINE(501, "Not Implemented"),
    LINE(502, "Bad Gateway"),
    LINE(503, "Service Unavailable"),
    LINE(504, "Gateway Timeout"),
#undef LINE
};

int http_bad_status(const struct err *why)
{
    static const struct {
        enum rc rc;
        const char *field;
        int status;
    } rows[] = {
        { RC_TOO_LARGE, "target", 414 },
        { RC_TOO_LARGE, "head", 431 },
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        if (rows[i].rc == why->rc && text_is(rows[i].field, why->field))
            return rows[i].status;
    return rc_http(why->rc);
}

const char *http_date(struct http_server *s)
{
    static const char days[7][4] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
    static const char months[12][4]
        = { "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
    int64_t now = os_wall_ms(s->os) / 1000;
    if (now == s->date_second)
        return s->date;
    s->date_second = now;
    time_t second = (time_t)now;
    struct tm t = { 0 };
    gmtime_r(&second, &t);
    snprintf(s->date, sizeof s->date, "Date: %s, %02d %s %04d %02d:%02d:%02d GMT\r\n",
             days[t.tm_wday], t.tm_mday, months[t.tm_mon], (t.tm_year + 1900) % 10000, t.tm_hour,
             t.tm_min, t.tm_sec);
    return s->date;
}

static void put_number(struct str *out, uint64_t n)
{
    char text[20], *p = text + sizeof text;
    do
        *--p = (char)('0' + n % 10);
    while (n /= 10);
    str_put(out, p, (size_t)(text + sizeof text - p));
}

static void put_line(struct str *out, int status)
{
    for (size_t i = 0; i < COUNT(lines); i++)
        if (lines[i].status == status) {
            str_text(out, lines[i].line);
            return;
        }
    str_printf(out, "HTTP/1.1 %03d Status %d\r\n", status, status);
}

void http_put_value(struct str *out, const char *value)
{
    size_t n = strlen(value);
    char *to = str_grow(out, n);
    for (size_t i = 0; i < n; i++)
        to[i] = (unsigned char)value[i] < ' ' ? ' ' : value[i];
    out->len += n;
    str_put(out, "\r\n", 2);
}

void http_put_header(struct str *out, const char *name, const char *value)
{
    str_text(out, name);
    str_put(out, ": ", 2);
    http_put_value(out, value);
}

/* Decides how the body goes and puts the head into the server's buffer. */
static struct str *put_head(struct http_request *rq, int status, const char *content_type,
                            const struct http_header *headers, size_t count, int64_t length)
{
    struct conn *c = rq->conn;
    struct str *out = &c->server->out;
    bool old = rq->head.method && rq->head.minor == 0;
    bool head_only = text_is(rq->head.method, "HEAD");
    rq->begun = true;
    rq->bare = head_only || status == 204 || status == 304;
    rq->chunked = length < 0 && !old && !rq->bare;
    rq->left = length;
    if (!c->whole && (rq->head.chunked || rq->head.content_length > 0))
        rq->last = true; /* what is left of the body cannot be told from the next request */
    if (length < 0 && !rq->chunked && !rq->bare)
        rq->last = true; /* only the end of the connection ends such a body */
    str_clear(out);
    put_line(out, status);
    str_text(out, http_date(c->server));
    if (content_type)
        http_put_header(out, "Content-Type", content_type);
    for (size_t i = 0; i < count; i++)
        http_put_header(out, headers[i].name, headers[i].value);
    if (length >= 0 && status != 204 && status != 304) {
        str_text(out, "Content-Length: ");
        put_number(out, (uint64_t)length);
        str_put(out, "\r\n", 2);
    }
    if (length < 0 && !old && status != 204 && status != 304)
        str_text(out, "Transfer-Encoding: chunked\r\n");
    if (rq->last)
        str_text(out, "Connection: close\r\n");
    else if (old)
        str_text(out, "Connection: keep-alive\r\n");
    str_put(out, "\r\n", 2);
    return out;
}

static void over(struct http_request *rq)
{
    struct conn *c = rq->conn;
    rq->over = true;
    if (!c->feeding)
        conn_next(c);
}

void http_reply(struct http_request *rq, int status, const char *content_type,
                const struct http_header *headers, size_t count, struct slice body)
{
    if (rq->over)
        return;
    assert(!rq->begun);
    struct conn *c = rq->conn;
    struct str *out = put_head(rq, status, content_type, headers, count, (int64_t)body.len);
    bool with = !rq->bare && body.len <= WITH_HEAD;
    if (with)
        str_put(out, body.at, body.len);
    conn_write(c, out->at, out->len);
    if (!rq->bare && !with)
        conn_write(c, body.at, body.len);
    over(rq);
}

void http_begin(struct http_request *rq, int status, const char *content_type,
                const struct http_header *headers, size_t count, int64_t length)
{
    if (rq->over)
        return;
    assert(!rq->begun);
    struct conn *c = rq->conn;
    struct str *out = put_head(rq, status, content_type, headers, count, length);
    conn_write(c, out->at, out->len);
    if (c->state == CONN_WORK)
        deadline_set(&c->deadline, c->server->limits.idle_ms);
}

void http_piece(struct http_request *rq, const void *at, size_t n)
{
    if (rq->over || rq->bare || n == 0)
        return;
    assert(rq->begun);
    struct conn *c = rq->conn;
    if (!rq->chunked) {
        if (rq->left >= 0) {
            n = MIN(n, (size_t)rq->left);
            rq->left -= (int64_t)n;
        }
        conn_write(c, at, n);
        return;
    }
    char size[24];
    int digits = snprintf(size, sizeof size, "%zx\r\n", n);
    struct str *out = &c->server->out;
    str_clear(out);
    str_put(out, size, (size_t)digits);
    if (n <= WITH_HEAD) {
        str_put(out, at, n);
        str_put(out, "\r\n", 2);
        conn_write(c, out->at, out->len);
        return;
    }
    conn_write(c, out->at, out->len);
    conn_write(c, at, n);
    conn_write(c, "\r\n", 2);
}

void http_end(struct http_request *rq)
{
    if (rq->over)
        return;
    assert(rq->begun);
    if (!rq->bare && !rq->chunked && rq->left > 0) {
        http_abort(rq);
        return;
    }
    if (rq->chunked)
        conn_write(rq->conn, "0\r\n\r\n", 5);
    over(rq);
}

void http_abort(struct http_request *rq)
{
    if (rq->over)
        return;
    struct conn *c = rq->conn;
    rq->over = true;
    c->rq = NULL;
    conn_cut(c);
}
