/* bind_schema.c - a field table as JSON Schema 2020-12, the dialect of OpenAPI 3.1. Defaults and examples are read and
 * printed by the binder itself, so the API text cannot show a value that the API refuses. */
#include "wire/bind.h"
#include "wire/bind_value.h"
#include <stdio.h>

static void put_pair(struct json_out *o, const char *key, const char *text)
{
    if (text) {
        json_key(o, key);
        json_put_text(o, text);
    }
}

static void put_limit(struct json_out *o, const char *key, int64_t n)
{
    json_key(o, key);
    json_put_int(o, n);
}

/* NULL members of a struct are printed as null, and null is read as absent. */
static bool may_be_null(const struct field *f)
{
    return !f->required && (f->type == F_TEXT || f->type == F_ID || f->type == F_TIME);
}

static void put_types(struct json_out *o, const char *one, const char *other)
{
    json_key(o, "type");
    if (other)
        json_open(o, '[');
    json_put_text(o, one);
    if (other) {
        json_put_text(o, other);
        json_close(o, ']');
    }
}

static void text_schema(struct json_out *o, const struct field *f)
{
    json_open(o, '{');
    put_types(o, "string", NULL);
    put_pair(o, "pattern", value_pattern(f->pattern));
    json_close(o, '}');
}

static void limits(struct json_out *o, const struct field *f)
{
    if (!f->min && !f->max)
        return;
    json_key(o, "minimum");
    value_write(o, f, &f->min);
    if (f->max >= f->min) {
        json_key(o, "maximum");
        value_write(o, f, &f->max);
    }
}

static void list_limits(struct json_out *o, const struct field *f, const char *key)
{
    put_limit(o, key, (int64_t)value_list_max(f));
}

static void id_schema(struct json_out *o, const struct field *f)
{
    char regex[64];
    snprintf(regex, sizeof regex, "^%s-[0-9a-hjkmnp-tv-z]{13}$", f->prefix ? f->prefix : "[a-z]+");
    put_types(o, "string", may_be_null(f) ? "null" : NULL);
    put_pair(o, "pattern", regex);
}

static void enum_schema(struct json_out *o, const struct field *f)
{
    put_types(o, "string", NULL);
    json_key(o, "enum");
    json_open(o, '[');
    for (size_t i = 0; i < f->names->count; i++)
        if (f->names->at[i])
            json_put_text(o, f->names->at[i]);
    json_close(o, ']');
}

static void members(struct json_out *o, const struct fields *fields);

static void kind_schema(struct json_out *o, const struct field *f)
{
    switch (f->type) {
    case F_BOOL: put_types(o, "boolean", NULL); break;
    case F_INT: put_types(o, "integer", f->named ? "string" : NULL), limits(o, f); break;
    case F_TEXT:
        put_types(o, "string", may_be_null(f) ? "null" : NULL);
        put_pair(o, "pattern", value_pattern(f->pattern));
        if (f->min > 0)
            put_limit(o, "minLength", f->min);
        put_limit(o, "maxLength", f->max > 0 ? f->max : TEXT_MAX);
        break;
    case F_ID: id_schema(o, f); break;
    case F_TIME:
        put_types(o, "string", may_be_null(f) ? "null" : NULL), put_pair(o, "format", "date-time");
        break;
    case F_DURATION: put_types(o, "integer", "string"), limits(o, f); break;
    case F_MIB:
        put_types(o, "string", "number");
        break; /* a limit in MiB would mislead: a bare number is GB */
    case F_MILLI: put_types(o, "number", "string"), limits(o, f); break;
    case F_ENUM: enum_schema(o, f); break;
    case F_TEXTS:
        put_types(o, "array", "string");
        json_key(o, "items");
        text_schema(o, f);
        list_limits(o, f, "maxItems");
        break;
    case F_PAIRS:
        put_types(o, "object", "array");
        json_key(o, "additionalProperties");
        json_open(o, '{');
        json_key(o, "type");
        json_put_raw(o, "[\"string\",\"number\",\"boolean\"]");
        json_close(o, '}');
        list_limits(o, f, "maxProperties");
        break;
    case F_OBJECT: case F_INLINE: members(o, f->sub); break;
    case F_OBJECTS:
        put_types(o, "array", NULL);
        json_key(o, "items");
        bind_schema(o, f->sub);
        list_limits(o, f, "maxItems");
        break;
    case F_JSON: case FIELD_TYPE_COUNT: break;
    }
}

/* The user's spelling as the value that would be printed for it; as it stands, where no table reads it. */
static void put_value(struct json_out *o, const struct fields *fields, const struct field *f,
                      const char *text)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct err err;
    char *base = arena_take(mem, 1, fields->size);
    if (bind_text(f, text, mem, base, &err))
        value_write(o, f, base + f->offset);
    else
        json_put_text(o, text);
}

static void property(struct json_out *o, const struct fields *fields, const struct field *f)
{
    json_open(o, '{');
    kind_schema(o, f);
    put_pair(o, "description", f->help);
    if (f->secret) {
        json_key(o, "writeOnly");
        json_put_bool(o, true);
    }
    if (f->def) {
        json_key(o, "default");
        put_value(o, fields, f, f->def);
    }
    if (f->example) {
        json_key(o, "examples");
        json_open(o, '[');
        put_value(o, fields, f, f->example);
        json_close(o, ']');
    }
    json_close(o, '}');
}

static void members(struct json_out *o, const struct fields *fields)
{
    bool any = false;
    put_types(o, "object", NULL);
    json_key(o, "properties");
    json_open(o, '{');
    for (size_t i = 0; i < fields->count; i++)
        if (!fields->rows[i].hidden) {
            json_key(o, fields->rows[i].name);
            property(o, fields, &fields->rows[i]);
            any |= fields->rows[i].required && !fields->rows[i].in_path;
        }
    json_close(o, '}');
    if (any) {
        json_key(o, "required");
        json_open(o, '[');
        for (size_t i = 0; i < fields->count; i++)
            if (fields->rows[i].required && !fields->rows[i].hidden && !fields->rows[i].in_path)
                json_put_text(o, fields->rows[i].name);
        json_close(o, ']');
    }
    json_key(o, "additionalProperties");
    json_put_bool(o, false);
}

void bind_schema(struct json_out *o, const struct fields *fields)
{
    json_open(o, '{');
    members(o, fields);
    json_close(o, '}');
}
