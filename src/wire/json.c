/* json.c - the reader. One pass over one copy of the document: texts are unescaped in place inside that copy, so a
 * node costs one piece of the arena and a text costs none. The NUL behind the copy ends every scan.
 *
 * Whoever hands in bytes has bounded them; here depth is, and how many values so many bytes may hold: a value of one letter would
 * otherwise take fifty times its size. */
#include "wire/json.h"
#include "wire/utf8.h"
#include <stdlib.h>

enum { DEPTH = 64, FEW = 16, VALUES = 100 * 1000, BYTES_EACH = 16 };

struct reader {
    char *at, *start, *end;
    struct slice text; /* as it came: escapes in the copy are gone, so places are counted here */
    struct arena *mem;
    struct err *err;
    int depth;
    size_t values, most;
};

static bool fail(struct reader *r, const char *why)
{
    size_t line = 1, column = 1, n = (size_t)(r->at - r->start);
    for (size_t i = 0; i < n && i < r->text.len; i++) {
        column++;
        if (r->text.at[i] == '\n')
            line++, column = 1;
    }
    return err_set(r->err, RC_BAD_INPUT, "JSON, line %zu column %zu: %s", line, column, why);
}

static void blanks(struct reader *r)
{
    while (*r->at == ' ' || *r->at == '\n' || *r->at == '\r' || *r->at == '\t')
        r->at++;
}

static const unsigned char ordinary[256] = {    /* ASCII that stands for itself inside a text */
    [0x20] = 1, [0x21] = 1, [0x23 ... 0x5b] = 1, [0x5d ... 0x7f] = 1,
};

static int hex4(const char *p)
{
    int n = 0;
    for (int i = 0; i < 4; i++) {
        int c = p[i], low = c | 32;
        if (c >= '0' && c <= '9')
            n = n << 4 | (c - '0');
        else if (low >= 'a' && low <= 'f')
            n = n << 4 | (low - 'a' + 10);
        else
            return -1;          /* also the NUL at the end: nothing behind it is read */
    }
    return n;
}

/* At a backslash: the character goes to *to, which never overtakes r->at. */
static bool escape(struct reader *r, char **to)
{
    static const char from[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    char c = r->at[1];
    const char *which = c ? strchr(from, c) : NULL;
    if (which) {
        *(*to)++ = meant[which - from];
        r->at += 2;
        return true;
    }
    int unit = c == 'u' ? hex4(r->at + 2) : -1;
    if (unit < 0)
        return fail(r, "unknown escape in a text");
    if (unit == 0)
        return fail(r, "a text must not hold NUL");
    uint32_t point = (uint32_t)unit;
    if (unit >= 0xd800 && unit <= 0xdfff) {
        int low = unit <= 0xdbff && r->at[6] == '\\' && r->at[7] == 'u' ? hex4(r->at + 8) : -1;
        if (low < 0xdc00 || low > 0xdfff)
            return fail(r, "half of a surrogate pair");
        point = 0x10000 + (((uint32_t)unit - 0xd800) << 10) + ((uint32_t)low - 0xdc00);
        r->at += 6;
    }
    r->at += 6;
    *to += utf8_put(*to, point);
    return true;
}

static bool text(struct reader *r, const char **out, size_t *len) /* behind the opening quote */
{
    char *from = r->at;
    while (ordinary[(unsigned char)*r->at])
        r->at++;
    char *to = r->at;
    while (*r->at != '"') {
        unsigned char c = (unsigned char)*r->at;
        if (ordinary[c]) {
            *to++ = *r->at++;
        } else if (c == '\\') {
            if (!escape(r, &to))
                return false;
        } else if (c >= 0x80) {
            size_t n = utf8_len(r->at, (size_t)(r->end - r->at));
            if (!n)
                return fail(r, "not UTF-8");
            memmove(to, r->at, n);
            to += n;
            r->at += n;
        } else {
            return fail(r, r->at == r->end ? "a text is not closed"
                                           : "a control character in a text; escape it");
        }
    }
    r->at++;
    *to = 0;
    *out = from;
    *len = (size_t)(to - from);
    return true;
}

static bool digits(struct reader *r)
{
    const char *from = r->at;
    while (*r->at >= '0' && *r->at <= '9')
        r->at++;
    return r->at > from || fail(r, "a digit is missing in a number");
}

static bool whole(const char *p, const char *end, int64_t *out)
{
    bool minus = *p == '-';
    uint64_t n = 0, most = (uint64_t)INT64_MAX + minus;
    for (p += minus; p < end; p++) {
        unsigned d = (unsigned)(*p - '0');
        if (n > (most - d) / 10)
            return false;
        n = n * 10 + d;
    }
    *out = (int64_t)(minus ? 0 - n : n);
    return true;
}

static bool number(struct reader *r, struct json *v)
{
    const char *from = r->at;
    bool integer = true;
    r->at += *r->at == '-';
    if (*r->at == '0' && r->at[1] >= '0' && r->at[1] <= '9')
        return fail(r, "a number must not start with 0");
    if (!digits(r))
        return false;
    if (*r->at == '.') {
        r->at++;
        integer = false;
        if (!digits(r))
            return false;
    }
    if (*r->at == 'e' || *r->at == 'E') {
        r->at++;
        integer = false;
        r->at += *r->at == '+' || *r->at == '-';
        if (!digits(r))
            return false;
    }
    v->type = JSON_NUMBER;
    v->len = (size_t)(r->at - from);
    v->text = arena_bytes(r->mem, from, v->len);
    v->is_int = integer && whole(from, r->at, &v->number);
    return true;
}

static bool word(struct reader *r, const char *is)
{
    size_t n = strlen(is);
    if (strncmp(r->at, is, n))
        return fail(r, "expected a value");
    r->at += n;
    return true;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorting, not hashing: nobody can choose names that make it slow. */
const char *json_twice(const struct json *object, struct arena *mem)
{
    size_t count = 0, n = 0;
    for (const struct json *m = object->first; m; m = m->next)
        count++;
    if (count <= FEW) {
        for (const struct json *a = object->first; a; a = a->next)
            for (const struct json *b = a->next; b; b = b->next)
                if (a->name[0] == b->name[0] && strcmp(a->name, b->name) == 0)
                    return a->name;
        return NULL;
    }
    const char **names = ARENA_ARRAY(mem, const char *, count);
    for (const struct json *m = object->first; m; m = m->next)
        names[n++] = m->name;
    qsort(names, count, sizeof *names, by_name);
    for (size_t i = 1; i < count; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            return names[i];
    return NULL;
}

static bool value(struct reader *r, struct json *v);

static bool member_name(struct reader *r, struct json *m)
{
    size_t len;
    if (*r->at != '"')
        return fail(r, "expected a member's name in double quotes");
    r->at++;
    if (!text(r, &m->name, &len))
        return false;
    blanks(r);
    if (*r->at != ':')
        return fail(r, "expected a colon behind the name");
    r->at++;
    blanks(r);
    return true;
}

static bool group(struct reader *r, struct json *v, char closing)
{
    v->type = closing == '}' ? JSON_OBJECT : JSON_LIST;
    if (++r->depth > DEPTH)
        return fail(r, "nested too deep");
    r->at++;
    blanks(r);
    for (bool more = *r->at != closing; more;) {
        if (++r->values > r->most)
            return fail(r, "too many values");
        struct json *m = ARENA_NEW(r->mem, struct json);
        if ((closing == '}' && !member_name(r, m)) || !value(r, m))
            return false;
        json_add(v, m->name, m);
        blanks(r);
        more = *r->at == ',';
        if (more) {
            r->at++;
            blanks(r);
        } else if (*r->at != closing) {
            return fail(r, closing == '}' ? "expected a comma or }" : "expected a comma or ]");
        }
    }
    r->at++;
    r->depth--;
    const char *name = closing == '}' ? json_twice(v, r->mem) : NULL;
    return !name || err_field(r->err, name, "JSON: the member \"%.100s\" is given twice", name);
}

static bool value(struct reader *r, struct json *v)
{
    switch (*r->at) {
    case '{': return group(r, v, '}');
    case '[': return group(r, v, ']');
    case '"':
        v->type = JSON_TEXT;
        r->at++;
        return text(r, &v->text, &v->len);
    case 't':
        v->type = JSON_BOOL;
        v->flag = true;
        return word(r, "true");
    case 'f':
        v->type = JSON_BOOL;
        return word(r, "false");
    case 'n': return word(r, "null");
    case '-': case '0' ... '9': return number(r, v);
    default: return fail(r, r->at == r->end ? "it ends too early" : "expected a value");
    }
}

static bool parse(struct slice in, size_t most, struct arena *mem, struct json **out,
                  struct err *err)
{
    char *copy = arena_bytes(mem, in.at, in.len);
    struct reader r = { .at = copy,
                        .start = copy,
                        .end = copy + in.len,
                        .text = in,
                        .mem = mem,
                        .err = err,
                        .most = most };
    struct json *v = ARENA_NEW(mem, struct json);
    blanks(&r);
    if (!value(&r, v))
        return false;
    blanks(&r);
    if (r.at != r.end)
        return fail(&r, "something stands behind the value");
    *out = v;
    return true;
}

bool json_parse(struct slice in, struct arena *mem, struct json **out, struct err *err)
{
    return parse(in, VALUES + in.len / BYTES_EACH, mem, out, err);
}

bool json_parse_own(struct slice in, struct arena *mem, struct json **out, struct err *err)
{
    return parse(in, SIZE_MAX, mem, out, err);
}

struct json *json_get(const struct json *object, const char *name)
{
    if (!object || object->type != JSON_OBJECT)
        return NULL;
    for (struct json *m = object->first; m; m = m->next)
        if (text_is(m->name, name))
            return m;
    return NULL;
}

const char *json_text(const struct json *object, const char *name)
{
    const struct json *m = json_get(object, name);
    return m && m->type == JSON_TEXT ? m->text : NULL;
}

int64_t json_int(const struct json *object, const char *name, int64_t otherwise)
{
    const struct json *m = json_get(object, name);
    return m && m->type == JSON_NUMBER && m->is_int ? m->number : otherwise;
}

struct json *json_new(struct arena *mem, enum json_type type)
{
    struct json *v = ARENA_NEW(mem, struct json);
    v->type = type;
    return v;
}

void json_add(struct json *parent, const char *name, struct json *child)
{
    child->name = name;
    if (parent->last)
        parent->last->next = child;
    else
        parent->first = child;
    parent->last = child;
}
