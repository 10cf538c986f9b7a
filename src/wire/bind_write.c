/* bind_write.c - a struct into a document that bind_read takes back. Secrets are never printed; a hidden row is left out
 * when an earlier row already printed the same member. */
#include "wire/bind.h"
#include "wire/bind_value.h"
#include "base/id.h"
#include "base/when.h"

static void write_milli(struct json_out *o, int64_t n)
{
    char text[32], *end = text + sizeof text - 1, *p = end;
    uint64_t m = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
    if (m % 1000) {                     /* a 1 before them keeps the zeroes */
        p = text_digits(end, 1000 + m % 1000);
        *p = '.';
    }
    p = text_digits(p, m / 1000);
    if (n < 0)
        *--p = '-';
    while (m % 1000 && end[-1] == '0')
        end--;
    *end = 0;
    json_put_raw(o, p);
}

static void put_mib(struct json_out *o,
                    int64_t mib) /* with its unit: a bare number would be read back as GB */
{
    char text[32], *p = text + sizeof text - sizeof "MB";
    memcpy(p, "MB", sizeof "MB");
    p = text_digits(p, mib < 0 ? 0 - (uint64_t)mib : (uint64_t)mib);
    if (mib < 0)
        *--p = '-';
    json_put_text(o, p);
}

static void write_lists(struct json_out *o, const struct field *f, const void *at)
{
    const struct texts *texts = at;
    const struct pairs *pairs = at;
    const struct objects *objects = at;
    json_open(o, f->type == F_PAIRS ? '{' : '[');
    for (size_t i = 0; f->type == F_TEXTS && i < texts->count; i++)
        json_put_text(o, texts->at[i]);
    for (size_t i = 0; f->type == F_PAIRS && i < pairs->count; i++) {
        json_key(o, pairs->at[i].key);
        json_put_text(o, pairs->at[i].value ? pairs->at[i].value : "");
    }
    for (size_t i = 0; f->type == F_OBJECTS && i < objects->count; i++)
        bind_write(o, f->sub, (const char *)objects->at + i * f->sub->size);
    json_close(o, f->type == F_PAIRS ? '}' : ']');
}

void value_write(struct json_out *o, const struct field *f, const void *at)
{
    char text[MAX((int)WHEN_TEXT, (int)ID_TEXT)];
    int64_t n = bind_kinds[f->type].size == sizeof n ? *(const int64_t *)at : 0;
    switch (f->type) {
    case F_BOOL: json_put_bool(o, *(const bool *)at); break;
    case F_INT: case F_DURATION: json_put_int(o, n); break;
    case F_MIB: put_mib(o, n); break;
    case F_MILLI: write_milli(o, n); break;
    case F_TEXT: json_put_text(o, *(const char *const *)at); break;
    case F_JSON: json_put_raw(o, *(const char *const *)at); break;
    case F_ID: json_put_text(o, n ? id_text(text, f->prefix ? f->prefix : "id", n) : NULL); break;
    case F_TIME: json_put_text(o, n ? when_text(text, n) : NULL); break;
    case F_ENUM: {
        size_t i = (size_t)*(const int *)at;
        json_put_text(o, i < f->names->count ? f->names->at[i] : NULL);
        break;
    }
    case F_OBJECT: bind_write(o, f->sub, at); break;
    case F_TEXTS: case F_PAIRS: case F_OBJECTS: write_lists(o, f, at); break;
    case F_INLINE: case FIELD_TYPE_COUNT: break;
    }
}

static bool printed_before(const struct fields *fields, size_t row)
{
    const struct field *f = &fields->rows[row];
    for (size_t i = 0; i < row; i++)
        if (fields->rows[i].offset == f->offset && fields->rows[i].type == f->type)
            return true;
    return false;
}

void bind_write(struct json_out *o, const struct fields *fields, const void *from)
{
    json_open(o, '{');
    for (size_t i = 0; i < fields->count; i++) {
        const struct field *f = &fields->rows[i];
        const void *at = (const char *)from + f->offset;
        if (f->secret || f->type == F_INLINE || (f->hidden && printed_before(fields, i))
            || (f->when_set && value_is_zero(f, at)))
            continue;
        json_name(o, f->name);
        value_write(o, f, at);
    }
    json_close(o, '}');
}
