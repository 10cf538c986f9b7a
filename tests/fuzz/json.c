/* json.c - our JSON against jansson: both take it or both refuse it, they read the same tree, and what we print again is
 * read by both as that tree.
 *
 * Deliberate differences, set aside here: we stop at depth 64; we keep a number that fits no int64 or double as its text,
 * where jansson refuses it; jansson swallows a NUL behind a number or a word, which we refuse like any other NUL. */
#include "fuzz.h"
#include "wire/json.h"
#define JSON_OBJECT THEIR_OBJECT        /* both libraries call two things the same */
#define JSON_NULL   THEIR_NULL
#include <jansson.h>
#undef JSON_OBJECT
#undef JSON_NULL
#include <math.h>

/* A number that jansson would refuse for its size? */
static bool oversized(const struct json *v)
{
    if (v->type == JSON_NUMBER && !v->is_int && (!strpbrk(v->text, ".eE") || isinf(strtod(v->text, NULL))))
        return true;
    for (const struct json *m = v->first; m; m = m->next)
        if (oversized(m))
            return true;
    return false;
}

static bool same(const struct json *a, json_t *b)
{
    size_t n = 0;
    switch (a->type) {
    case JSON_NULL: return json_typeof(b) == THEIR_NULL;
    case JSON_BOOL: return json_is_boolean(b) && json_is_true(b) == a->flag;
    case JSON_TEXT: return json_is_string(b) && json_string_length(b) == a->len && memcmp(json_string_value(b), a->text, a->len + 1) == 0;
    case JSON_NUMBER:
        return a->is_int ? json_is_integer(b) && json_integer_value(b) == a->number
                         : json_is_real(b) && json_real_value(b) == strtod(a->text, NULL);
    case JSON_LIST:
        for (const struct json *m = a->first; m; m = m->next, n++)
            if (!json_is_array(b) || n >= json_array_size(b) || !same(m, json_array_get(b, n)))
                return false;
        return json_is_array(b) && n == json_array_size(b);
    default:
        for (const struct json *m = a->first; m; m = m->next, n++) {
            json_t *other = json_object_get(b, m->name);
            if (!other || !same(m, other))
                return false;
        }
        return json_typeof(b) == THEIR_OBJECT && n == json_object_size(b);
    }
}

static json_t *oracle(const char *at, size_t n)
{
    json_error_t why;
    return json_loadb(at, n, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &why);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    AUTO(str_done) struct str out = { 0 }, again = { 0 };
    struct json *v = NULL, *back = NULL;
    struct err err = { 0 };
    bool ours = json_parse((struct slice){ (const char *)data, size }, mem, &v, &err);
    json_t *theirs = oracle((const char *)data, size);
    if (ours && !theirs)
        MUST(oversized(v));
    if (!ours && theirs)
        MUST(strstr(err.text, "deep") || memchr(data, 0, size));
    if (ours) {
        MUST(!theirs || same(v, theirs));
        json_print(&out, v);
        MUST(json_parse(fuzz_slice(&out), mem, &back, &err));
        json_print(&again, back);
        MUST(fuzz_same(&out, &again));
        json_t *reprint = oracle(out.at, out.len);
        MUST(!theirs || (reprint && json_equal(theirs, reprint)));
        json_decref(reprint);
    } else {
        MUST(err.rc == RC_BAD_INPUT && err.text[0] && !v);
    }
    json_decref(theirs);
    return 0;
}
