/* json.h - strict JSON (RFC 8259): a tree in an arena, and a writer that appends to a buffer.
 *
 * Strict: one value and nothing behind it, valid UTF-8, no duplicate member names, no lone surrogates, no NUL inside
 * a text, depth at most 64, at most 20,000 values and one more for each 16 bytes. Integers are exact within int64; any other number keeps its text (type JSON_NUMBER with
 * is_int false). jansson is the oracle of the differential fuzz test. */
#pragma once
#include "base/err.h"
#include "base/field.h"
#include "base/str.h"

enum json_type { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_TEXT, JSON_LIST, JSON_OBJECT };

struct json {
    enum json_type type;
    bool flag;                  /* of JSON_BOOL */
    bool is_int;                /* of JSON_NUMBER: `number` is exact */
    bool plain;                 /* of JSON_TEXT: an unquoted YAML scalar or a query value; bind may read it as any type */
    int64_t number;
    const char *text;           /* of JSON_TEXT and JSON_NUMBER, NUL-terminated */
    size_t len;
    const char *name;           /* the member's name, inside an object */
    struct json *first, *next;  /* members and entries, in order */
    struct json *last;          /* so that json_add is quick */
};

MUST_CHECK bool json_parse(struct slice text, struct arena *mem, struct json **out, struct err *err);
/* The same for what our own server made, whose length alone bounds it: texts of a letter each are fine. */
MUST_CHECK bool json_parse_own(struct slice text, struct arena *mem, struct json **out, struct err *err);
struct json *json_get(const struct json *object, const char *name);     /* NULL if absent, or not an object */
const char *json_text(const struct json *object, const char *name);     /* NULL unless it is a text */
int64_t json_int(const struct json *object, const char *name, int64_t otherwise);
const char *json_twice(const struct json *object, struct arena *mem);    /* a name that two members share, or NULL */
struct json *json_new(struct arena *mem, enum json_type type);
void json_add(struct json *parent, const char *name, struct json *child);   /* name NULL in a list; borrowed */
void json_print(struct str *out, const struct json *value);             /* compact; a plain text that spells a number or a boolean is one */

/* The writer puts the commas itself. json_key() is followed by exactly one value. */
struct json_out { struct str *to; bool comma; };
void json_open(struct json_out *o, char bracket);                       /* '{' or '[' */
void json_close(struct json_out *o, char bracket);                      /* '}' or ']' */
void json_key(struct json_out *o, const char *name);
void json_name(struct json_out *o, const char *name);                   /* the same with a name of ours, in which nothing is to be escaped */
void json_put_text(struct json_out *o, const char *text);               /* NULL becomes null; bad UTF-8 becomes U+FFFD */
void json_put_bytes(struct json_out *o, const char *at, size_t n);
void json_put_int(struct json_out *o, int64_t n);
void json_put_bool(struct json_out *o, bool yes);
void json_put_raw(struct json_out *o, const char *json);                /* already JSON; NULL becomes null */
