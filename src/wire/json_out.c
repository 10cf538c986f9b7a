/* json_out.c - the writer. What it writes is always valid JSON that json_parse reads: bytes that are not UTF-8, and NUL,
 * become U+FFFD rather than an error, because whoever prints has no better answer. */
#include "wire/json.h"
#include "wire/utf8.h"

static const unsigned char ordinary[256]
    = { [0x20] = 1, [0x21] = 1, [0x23 ... 0x5b] = 1, [0x5d ... 0x7f] = 1 };

static void comma(struct json_out *o)
{
    if (o->comma)
        str_char(o->to, ',');
    o->comma = true;
}

static void put_odd(struct str *s, unsigned char c)     /* ASCII that must be escaped */
{
    static const char *const short_form[128] = {
        ['"'] = "\\\"", ['\\'] = "\\\\", ['\b'] = "\\b", ['\f'] = "\\f", ['\n'] = "\\n", ['\r'] = "\\r", ['\t'] = "\\t",
        [0] = "\xef\xbf\xbd",
    };
    if (short_form[c])
        str_text(s, short_form[c]);
    else
        str_printf(s, "\\u%04x", c);
}

/* One of them is below a blank, '"', '\\' or not ASCII; or maybe not. */
static bool odd(const char *eight)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), high = ones << 7;
    uint64_t w;
    memcpy(&w, eight, sizeof w);
    uint64_t quote = w ^ (ones * '"'), back = w ^ (ones * '\\');
    return (w | (w - ones * 0x20) | (quote - ones) | (back - ones)) & high;
}

/* How many bytes stand for themselves; eight are looked at together. */
static size_t plain(const char *at, size_t n)
{
    size_t i = 0;
    while (i + sizeof(uint64_t) <= n && !odd(at + i))
        i += sizeof(uint64_t);
    if (i < n && i + sizeof(uint64_t) > n && n >= sizeof(uint64_t) && !odd(at + n - sizeof(uint64_t)))
        return n;                       /* the rest, with some of what was seen before it */
    while (i < n && ordinary[(unsigned char)at[i]])
        i++;
    return i;
}

static void quoted(struct str *s, const char *at, size_t n)
{
    char *to = str_grow(s, n + 2);
    size_t i = plain(at, n);
    *to++ = '"';
    memcpy(to, at, i);
    s->len += i + 1;
    if (i == n) {
        memcpy(to + n, "\"", 2);
        s->len++;
        return;
    }
    while (i < n) {
        size_t from = i, len = 1;
        while (i < n
               && (ordinary[(unsigned char)at[i]]
                   || ((unsigned char)at[i] >= 0x80 && (len = utf8_len(at + i, n - i)))))
            i += len, len = 1;
        str_put(s, at + from, i - from);
        if (i < n && (unsigned char)at[i] >= 0x80)
            str_text(s, "\xef\xbf\xbd");
        else if (i < n)
            put_odd(s, (unsigned char)at[i]);
        i++;
    }
    str_char(s, '"');
}

void json_open(struct json_out *o, char bracket)
{
    comma(o);
    str_char(o->to, bracket);
    o->comma = false;
}

void json_close(struct json_out *o, char bracket)
{
    str_char(o->to, bracket);
    o->comma = true;
}

/* A text in quotes as it is, and what follows them; all of it in one growth. */
static void put_quoted(struct json_out *o, const char *text, size_t n, const char *end)
{
    struct str *s = o->to;
    size_t before = o->comma, after = strlen(end);
    char *to = s->room - s->len < n + 5 ? str_grow(s, n + 4) : s->at + s->len;
    to[0] = ',';
    to += before;
    *to++ = '"';
    memcpy(to, text, n);
    memcpy(to + n, end, after + 1);
    s->len += before + 1 + n + after;
}

/* A text in which nothing is odd, as nearly all names and most values are. */
static bool put_plain(struct json_out *o, const char *text)
{
    size_t n = strlen(text);
    if (plain(text, n) < n)
        return false;
    put_quoted(o, text, n, "\"");
    return o->comma = true;
}

void json_name(struct json_out *o, const char *name)
{
    put_quoted(o, name, strlen(name), "\":");
    o->comma = false;
}

void json_key(struct json_out *o, const char *name)
{
    if (!put_plain(o, name)) {
        comma(o);
        quoted(o->to, name, strlen(name));
    }
    str_char(o->to, ':');
    o->comma = false;
}

void json_put_bytes(struct json_out *o, const char *at, size_t n)
{
    comma(o);
    quoted(o->to, at, n);
}

void json_put_text(struct json_out *o, const char *text)
{
    if (!text)
        json_put_raw(o, NULL);
    else if (!put_plain(o, text))
        json_put_bytes(o, text, strlen(text));
}

void json_put_int(struct json_out *o, int64_t n)
{
    char digits[24], *p = digits + sizeof digits;
    uint64_t left = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
    do
        *--p = (char)('0' + left % 10);
    while (left /= 10);
    if (n < 0)
        *--p = '-';
    comma(o);
    str_put(o->to, p, (size_t)(digits + sizeof digits - p));
}

void json_put_bool(struct json_out *o, bool yes) { json_put_raw(o, yes ? "true" : "false"); }

void json_put_raw(struct json_out *o, const char *json)
{
    comma(o);
    str_text(o->to, json ? json : "null");
}

/* A plain scalar has no type until a field gives it one. Where no field does, it means what the same letters mean in JSON. */
static bool means_itself(const struct json *v)
{
    char c = v->text[0];
    if (!v->plain
        || !(c == '-' || (c >= '0' && c <= '9') || text_is(v->text, "true")
             || text_is(v->text, "false"))
        || strpbrk(v->text, " \t\r\n"))
        return false;
    AUTO(arena_free) struct arena *mem = arena_new();
    struct json *as;
    struct err err;
    return json_parse(SLICE(v->text), mem, &as, &err);
}

static void put_value(struct json_out *o, const struct json *v)
{
    switch (v->type) {
    case JSON_NULL: json_put_raw(o, NULL); break;
    case JSON_BOOL: json_put_bool(o, v->flag); break;
    case JSON_NUMBER:
        if (v->text)
            json_put_raw(o, v->text);
        else
            json_put_int(o, v->number);
        break;
    case JSON_TEXT:
        if (v->text && means_itself(v))
            json_put_raw(o, v->text);
        else if (v->len)
            json_put_bytes(o, v->text, v->len);
        else
            json_put_text(o, v->text ? v->text : "");
        break;
    case JSON_LIST:
    case JSON_OBJECT:
        json_open(o, v->type == JSON_LIST ? '[' : '{');
        for (const struct json *m = v->first; m; m = m->next) {
            if (v->type == JSON_OBJECT)
                json_key(o, m->name);
            put_value(o, m);
        }
        json_close(o, v->type == JSON_LIST ? ']' : '}');
        break;
    }
}

void json_print(struct str *out, const struct json *value)
{
    put_value(&(struct json_out){ out }, value);
}
