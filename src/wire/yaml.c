/* yaml.c - libyaml's events into the tree of json.h.
 *
 * An alias becomes a copy, and copies count against the same limits as what was typed, so nothing small can grow large.
 * No merge keys, no tags but the standard scalar ones, and only scalars as keys. */
#include "wire/yaml.h"
#include <yaml.h>

enum { DEPTH = 64, NODES = 100000 };

struct anchor {
    struct anchor *next;
    const char *name;
    const struct json *node;    /* NULL: still being read */
};

struct reader {
    yaml_parser_t parser;
    struct arena *mem;
    struct err *err;
    size_t nodes, most;
    int depth;
    struct anchor *anchors;
};

static void event_done_auto(yaml_event_t *e) { yaml_event_delete(e); }
static void reader_done_auto(struct reader *r) { yaml_parser_delete(&r->parser); }

static bool fail(struct reader *r, const yaml_mark_t *at, const char *why)
{
    return err_set(r->err, RC_BAD_INPUT, "YAML, line %zu column %zu: %s", at->line + 1,
                   at->column + 1, why);
}

static bool next(struct reader *r, yaml_event_t *e)
{
    if (yaml_parser_parse(&r->parser, e))
        return true;
    const yaml_mark_t *at = r->parser.problem_mark.line || r->parser.problem_mark.column
                                ? &r->parser.problem_mark
                                : &r->parser.mark;
    return fail(r, at, r->parser.problem ? r->parser.problem : "cannot be read");
}

static bool new_node(struct reader *r, const yaml_mark_t *at, struct json **out)
{
    if (++r->nodes > r->most)
        return fail(r, at, "too many values (aliases count with all they stand for)");
    *out = ARENA_NEW(r->mem, struct json);
    return true;
}

static bool deeper(struct reader *r, const yaml_mark_t *at)
{
    return ++r->depth <= DEPTH || fail(r, at, "nested too deep");
}

static bool copy_node(struct reader *r, const yaml_mark_t *at, const struct json *from,
                      struct json **out)
{
    struct json *to = NULL;
    if (!deeper(r, at) || !new_node(r, at, &to))
        return false;
    *to = *from;
    to->name = NULL;
    to->first = to->last = to->next = NULL;
    for (const struct json *m = from->first; m; m = m->next) {
        struct json *child = NULL;
        if (!copy_node(r, at, m, &child))
            return false;
        json_add(to, m->name, child);
    }
    r->depth--;
    *out = to;
    return true;
}

static bool alias(struct reader *r, const yaml_event_t *e, struct json **out)
{
    const char *name = (const char *)e->data.alias.anchor;
    for (const struct anchor *a = r->anchors; a; a = a->next)
        if (text_is(a->name, name))
            return a->node ? copy_node(r, &e->start_mark, a->node, out)
                           : fail(r, &e->start_mark, "an alias inside of what it stands for");
    return fail(r, &e->start_mark, "an alias of something that was not seen before");
}

static struct anchor *anchor(struct reader *r, const yaml_char_t *name)
{
    if (!name)
        return NULL;
    struct anchor *a = ARENA_NEW(r->mem, struct anchor);
    a->name = arena_text(r->mem, (const char *)name);
    a->next = r->anchors;
    r->anchors = a;
    return a;
}

static bool tag_is(const yaml_char_t *tag, const char *const *known, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (text_is((const char *)tag, known[i]))
            return true;
    return false;
}

static bool check_tag(struct reader *r, const yaml_mark_t *at, const yaml_char_t *tag)
{
    static const char *const known[] = {
        YAML_STR_TAG,  YAML_INT_TAG, YAML_FLOAT_TAG, YAML_BOOL_TAG,
        YAML_NULL_TAG, YAML_SEQ_TAG, YAML_MAP_TAG,   "!",
    };
    return !tag || tag_is(tag, known, COUNT(known))
           || fail(r, at, "tags such as !this are not taken here");
}

static bool quoted(const yaml_event_t *e)
{
    static const char *const texts[] = { YAML_STR_TAG, "!" };
    return e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE
           || tag_is(e->data.scalar.tag, texts, COUNT(texts));
}

static bool is_null(const char *s)
{
    return !*s || text_is(s, "~") || text_is(s, "null") || text_is(s, "Null") || text_is(s, "NULL");
}

static bool scalar(struct reader *r, const yaml_event_t *e, struct json **out)
{
    const char *at = (const char *)e->data.scalar.value;
    size_t len = e->data.scalar.length;
    bool text = quoted(e);
    struct json *v = NULL;
    if (!check_tag(r, &e->start_mark, e->data.scalar.tag) || !new_node(r, &e->start_mark, &v))
        return false;
    if (memchr(at, 0, len))
        return fail(r, &e->start_mark, "a text must not hold NUL");
    *out = v;
    if (!text && is_null(at))
        return true;
    v->type = JSON_TEXT;
    v->plain = !text;
    v->text = arena_bytes(r->mem, at, len);
    v->len = len;
    return true;
}

static bool node(struct reader *r, const yaml_event_t *e, struct json **out);

static bool list(struct reader *r, const yaml_event_t *start, struct json *v)
{
    v->type = JSON_LIST;
    if (!check_tag(r, &start->start_mark, start->data.sequence_start.tag)
        || !deeper(r, &start->start_mark))
        return false;
    for (;;) {
        AUTO(event_done) yaml_event_t e = { 0 };
        struct json *m = NULL;
        if (!next(r, &e))
            return false;
        if (e.type == YAML_SEQUENCE_END_EVENT)
            break;
        if (!node(r, &e, &m))
            return false;
        json_add(v, NULL, m);
    }
    r->depth--;
    return true;
}

static bool key(struct reader *r, const yaml_event_t *e, const char **name)
{
    struct json *k = NULL;
    if (e->type == YAML_ALIAS_EVENT ? !alias(r, e, &k)
                                    : e->type == YAML_SCALAR_EVENT && !scalar(r, e, &k))
        return false;
    bool typed = e->type == YAML_SCALAR_EVENT && e->data.scalar.length;
    if (k && k->type == JSON_NULL && typed)     /* ~: and null: are just names */
        *k = (struct json){ .type = JSON_TEXT, .text = arena_text(r->mem, (const char *)e->data.scalar.value) };
    if (!k || k->type != JSON_TEXT)
        return fail(r, &e->start_mark, "a key must be a text");
    if (e->type == YAML_SCALAR_EVENT && e->data.scalar.anchor)
        anchor(r, e->data.scalar.anchor)->node = k;
    *name = k->text;
    return true;
}

static bool object(struct reader *r, const yaml_event_t *start, struct json *v)
{
    v->type = JSON_OBJECT;
    if (!check_tag(r, &start->start_mark, start->data.mapping_start.tag)
        || !deeper(r, &start->start_mark))
        return false;
    for (;;) {
        AUTO(event_done) yaml_event_t k = { 0 }, e = { 0 };
        const char *name = NULL;
        struct json *m = NULL;
        if (!next(r, &k))
            return false;
        if (k.type == YAML_MAPPING_END_EVENT)
            break;
        if (!key(r, &k, &name) || !next(r, &e) || !node(r, &e, &m))
            return false;
        json_add(v, name, m);
    }
    r->depth--;
    const char *name = json_twice(v, r->mem);
    if (!name)
        return true;
    return err_field(r->err, name, "YAML, line %zu: the key '%.100s' is given twice in this block",
                     start->start_mark.line + 1, name);
}

static bool node(struct reader *r, const yaml_event_t *e, struct json **out)
{
    if (e->type == YAML_ALIAS_EVENT)
        return alias(r, e, out);
    if (e->type == YAML_SCALAR_EVENT) {
        struct anchor *a = anchor(r, e->data.scalar.anchor);
        if (!scalar(r, e, out))
            return false;
        if (a)
            a->node = *out;
        return true;
    }
    bool is_list = e->type == YAML_SEQUENCE_START_EVENT;
    struct anchor *a
        = anchor(r, is_list ? e->data.sequence_start.anchor : e->data.mapping_start.anchor);
    struct json *v = NULL;
    if (!new_node(r, &e->start_mark, &v) || !(is_list ? list(r, e, v) : object(r, e, v)))
        return false;
    if (a)
        a->node = v;
    *out = v;
    return true;
}

static bool expect(struct reader *r, yaml_event_type_t type, const char *why)
{
    AUTO(event_done) yaml_event_t e = { 0 };
    return next(r, &e) && (e.type == type || fail(r, &e.start_mark, why));
}

static bool one_document(struct reader *r, struct json **out)
{
    AUTO(event_done) yaml_event_t root = { 0 };
    r->anchors = NULL;          /* an alias does not reach into another document */
    return next(r, &root) && node(r, &root, out)
           && expect(r, YAML_DOCUMENT_END_EVENT, "more than one value");
}

static bool document(struct reader *r, struct json **out)
{
    AUTO(event_done) yaml_event_t start = { 0 };
    if (!expect(r, YAML_STREAM_START_EVENT, "not a stream") || !next(r, &start))
        return false;
    if (start.type == YAML_STREAM_END_EVENT)
        return new_node(r, &start.start_mark, out);
    return one_document(r, out) && expect(r, YAML_STREAM_END_EVENT, "more than one document");
}

static bool documents(struct reader *r, size_t most, struct json **out)
{
    struct json *all = json_new(r->mem, JSON_LIST);
    if (!expect(r, YAML_STREAM_START_EVENT, "not a stream"))
        return false;
    for (size_t count = 0;;) {
        AUTO(event_done) yaml_event_t start = { 0 };
        struct json *v = NULL;
        if (!next(r, &start))
            return false;
        if (start.type == YAML_STREAM_END_EVENT)
            return *out = all, true;
        if (!one_document(r, &v))
            return false;
        if (v->type == JSON_NULL)
            continue;
        if (++count > most)
            return fail(r, &start.start_mark, "too many documents");
        json_add(all, NULL, v);
    }
}

static bool reader_start(struct reader *r, struct slice text)
{
    if (!yaml_parser_initialize(&r->parser))
        return err_set(r->err, RC_INTERNAL, "no memory for a YAML reader");
    yaml_parser_set_encoding(&r->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r->parser, (const unsigned char *)(text.at ? text.at : ""),
                                 text.len);
    return true;
}

bool yaml_parse(struct slice text, struct arena *mem, struct json **out, struct err *err)
{
    AUTO(reader_done) struct reader r = { .mem = mem, .err = err, .most = NODES };
    struct json *v = NULL;
    if (!reader_start(&r, text) || !document(&r, &v))
        return false;
    *out = v;
    return true;
}

bool yaml_parse_all(struct slice text, size_t most, struct arena *mem, struct json **out,
                    struct err *err)
{
    AUTO(reader_done) struct reader r = { .mem = mem, .err = err, .most = NODES * 10 };
    return reader_start(&r, text) && documents(&r, most, out);
}
