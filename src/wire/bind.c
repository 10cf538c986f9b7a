/* bind.c - a document into a struct: which row a member belongs to, what is missing, what stands for it, and where in
 * the document something is wrong.
 *
 * A member of the struct is known by its offset: a row, its aliases and a row of an inline group that all lead to the
 * same offset are the same field, and only one of them may be given. */
#include "wire/bind.h"
#include "wire/bind_value.h"
#include <stdio.h>

struct at {                     /* where in the document */
    const struct at *up;
    const char *name;           /* NULL: an entry of a list */
    size_t index;
};

struct seen { uint32_t offset; bool object; const char *name; };

struct level {                  /* one struct being filled */
    const struct fields *fields;
    char *base;
    uint64_t *given;
    struct seen *seen;
    size_t seen_count;
    uint64_t maybe;             /* a bit for each that was seen, shared by some: most questions are answered by it */
    struct arena *mem;
    struct err *err;
    const char *settled;        /* the struct with all that stands for what is missing; NULL: it is read from the table */
    bool empty;                 /* only that is wanted: nothing is required */
    bool ours;                  /* written by a part of this system, which may be newer: what is not known is left out */
};

static size_t path_text(const struct at *at, char *out, size_t room)
{
    if (!at)
        return 0;
    size_t n = path_text(at->up, out, room);
    if (n >= room)
        return n;
    int m = at->name ? snprintf(out + n, room - n, "%s%.48s", n ? "." : "", at->name)
                     : snprintf(out + n, room - n, "[%zu]", at->index);
    for (size_t i = n; i < room && out[i]; i++)     /* names of a stranger are shown, not obeyed */
        if ((unsigned char)out[i] < 0x20 || out[i] == 0x7f)
            out[i] = '?';
    return n + (size_t)m;
}

/* Puts the path before the reason, once: the innermost caller knows it best. */
static bool name_it(const struct at *at, struct err *err)
{
    char path[sizeof err->field] = "";
    if (err->field[0] || !path_text(at, path, sizeof path))
        return false;
    err_wrap(err, "%s", path);
    memcpy(err->field, path, sizeof path);
    return false;
}

static bool is_alias(const struct field *f, const char *name)
{
    size_t n = strlen(name);
    if (!n || strchr(name, ' '))
        return false;
    for (const char *p = f->aliases; p && (p = strstr(p, name)); p += n)
        if ((p == f->aliases || p[-1] == ' ') && (p[n] == 0 || p[n] == ' '))
            return true;
    return false;
}

/* Documents mostly come in the order of the table, so the search starts behind the last find. */
static const struct field *find_row(const struct fields *fields, const char *name, size_t *hint)
{
    for (size_t n = 0, i = *hint; n < fields->count; n++, i++) {
        i = i < fields->count ? i : 0;
        if (strcmp(fields->rows[i].name, name) == 0)
            return *hint = i + 1, &fields->rows[i];
    }
    for (size_t i = 0; i < fields->count; i++)
        if (is_alias(&fields->rows[i], name))
            return &fields->rows[i];
    return NULL;
}

const struct field *bind_find(const struct fields *fields, const char *name)
{
    const struct field *f = find_row(fields, name, &(size_t){ 0 });
    for (size_t i = 0; !f && i < fields->count; i++)
        if (fields->rows[i].type == F_INLINE)
            f = bind_find(fields->rows[i].sub, name);
    return f;
}

struct nearest { const char *name; char found[96]; size_t distance; };

static void nearer(struct nearest *best, const char *group, const char *known)
{
    size_t d = text_distance(best->name, known);
    if (d < best->distance) {
        best->distance = d;
        snprintf(best->found, sizeof best->found, "%s%s%s", group ? group : "", group ? "." : "",
                 known);
    }
}

static void nearest_row(struct nearest *best, const char *group, const struct fields *fields)
{
    for (size_t i = 0; i < fields->count; i++) {
        const struct field *f = &fields->rows[i];
        char word[64];
        int used = 0;
        if (!f->hidden)
            nearer(best, group, f->name);
        for (const char *p = f->aliases; p && sscanf(p, "%63s%n", word, &used) == 1; p += used)
            nearer(best, group, word);
        if (f->type == F_INLINE && !group)
            nearest_row(best, f->name, f->sub);
    }
}

static bool unknown(const struct at *at, const struct fields *fields, const char *name,
                    struct err *err)
{
    struct nearest best = { .name = name, .distance = SIZE_MAX };
    nearest_row(&best, NULL, fields);
    err_set(err, RC_BAD_INPUT,
            best.found[0] ? "unknown field; did you mean '%s'?" : "unknown field", best.found);
    return name_it(at, err);
}

static bool wrong_type(const struct field *f, const struct json *v, struct err *err)
{
    static const char *const came[]
        = { "nothing", "a boolean", "a number", "a text", "a list", "an object" };
    /* YAML takes a bare true for a boolean, where a command or a name was meant */
    bool unquoted = v->type == JSON_BOOL && (f->type == F_TEXT || f->type == F_TEXTS);
    return err_set(err, RC_BAD_INPUT, "expected %s, not %s%s", bind_kinds[f->type].expects,
                   came[v->type], unquoted ? "; put it in quotes" : "");
}

static struct slice text_of(const struct json *v)
{
    return v->type == JSON_BOOL ? SLICE(v->flag ? "true" : "false")
                                : (struct slice){ v->text, v->len };
}

static bool read_number(struct level *l, const struct field *f, const struct json *v, void *to)
{
    if (f->type != F_INT)
        return bind_kinds[f->type].read(f, text_of(v), l->mem, to, l->err);
    if (!v->is_int)
        return err_set(l->err, RC_BAD_INPUT, "%.60s is not a whole number that fits", v->text);
    return value_in_limits(f, v->number, l->err) && (*(int64_t *)to = v->number, true);
}

/* "high" stands for a number, "7" does not: a number has no quotes. */
static bool may_be_named(const struct field *f, const struct json *v)
{
    struct slice t = text_of(v);
    return f->named && t.len && !(t.at[0] >= '0' && t.at[0] <= '9') && t.at[0] != '-';
}

static bool read_scalar(struct level *l, const struct at *at, const struct field *f,
                        const struct json *v, void *to)
{
    const struct kind *k = &bind_kinds[f->type];
    (void)at;
    if (v->type == JSON_BOOL && f->type == F_BOOL)
        return *(bool *)to = v->flag, true;
    if (v->type == JSON_NUMBER && k->number)
        return read_number(l, f, v, to);
    if (v->type == JSON_TEXT && (v->plain || k->quoted || may_be_named(f, v)))
        return k->read(f, text_of(v), l->mem, to, l->err);
    return wrong_type(f, v, l->err);
}

static bool read_texts(struct level *l, const struct at *at, const struct field *f,
                       const struct json *v, void *to)
{
    struct texts list = { 0 };
    if (v->type != JSON_LIST)
        return read_scalar(l, at, f, v, &list) && (*(struct texts *)to = list, true);
    size_t i = 0;
    for (const struct json *m = v->first; m; m = m->next, i++) {
        struct at here = { at, NULL, i };
        if (m->type != JSON_TEXT && m->type != JSON_NUMBER && !(m->type == JSON_BOOL && m->plain))
            return wrong_type(&(struct field){ .type = F_TEXT }, m, l->err)
                   || name_it(&here, l->err);
        if (!value_add_text(f, text_of(m), l->mem, &list, l->err))
            return name_it(&here, l->err);
    }
    *(struct texts *)to = list;
    return true;
}

static bool read_pairs(struct level *l, const struct at *at, const struct field *f,
                       const struct json *v, void *to)
{
    struct pairs list = { 0 };
    size_t i = 0;
    if (v->type != JSON_LIST && v->type != JSON_OBJECT)
        return wrong_type(f, v, l->err);
    for (const struct json *m = v->first; m; m = m->next, i++) {
        struct at here = { at, m->name, i };
        if (m->type == JSON_NULL && m->name)
            return err_set(l->err, RC_BAD_INPUT,
                           "has no value; write one (\"\" for an empty one), nothing is taken from "
                           "your own environment")
                   || name_it(&here, l->err);
        if (m->type > JSON_TEXT || m->type == JSON_NULL || (!m->name && m->type != JSON_TEXT))
            return wrong_type(&(struct field){ .type = F_TEXT }, m, l->err)
                   || name_it(&here, l->err);
        bool ok = m->name ? value_add_pair(f, SLICE(m->name), text_of(m), l->mem, &list, l->err)
                          : value_add_assignment(f, text_of(m), l->mem, &list, l->err);
        if (!ok)
            return name_it(&here, l->err);
    }
    *(struct pairs *)to = list;
    return true;
}

static bool read_struct(const struct level *up, const struct at *at, const struct fields *fields,
                        const struct json *doc, void *out, uint64_t *given);

static bool read_object(struct level *l, const struct at *at, const struct field *f,
                        const struct json *v, void *to)
{
    return read_struct(l, at, f->sub, v, to, NULL);
}

static bool read_objects(struct level *l, const struct at *at, const struct field *f,
                         const struct json *v, void *to)
{
    size_t count = 0, i = 0;
    if (v->type != JSON_LIST)
        return wrong_type(f, v, l->err);
    for (const struct json *m = v->first; m; m = m->next)
        count++;
    if (count > value_list_max(f))
        return err_set(l->err, RC_BAD_INPUT, "at most %zu entries", value_list_max(f));
    char *list = arena_take(l->mem, count, f->sub->size);
    for (const struct json *m = v->first; m; m = m->next, i++)
        if (!read_struct(l, &(struct at){ at, NULL, i }, f->sub, m, list + i * f->sub->size, NULL))
            return false;
    *(struct objects *)to = (struct objects){ list, count };
    return true;
}

static bool read_json(struct level *l, const struct at *at, const struct field *f,
                      const struct json *v, void *to)
{
    AUTO(str_done) struct str text = { 0 };
    size_t most = f->max > 0 ? (size_t)f->max : ENTRY_MAX;
    (void)at;
    json_print(&text, v);
    if (text.len > most)
        return err_set(l->err, RC_BAD_INPUT, "%zu bytes are too many, at most %zu", text.len, most);
    *(const char **)to = arena_bytes(l->mem, text.at, text.len);
    return true;
}

typedef bool reader(struct level *l, const struct at *at, const struct field *f,
                    const struct json *v, void *to);
static reader *const readers[FIELD_TYPE_COUNT] = {
    [F_BOOL ... F_ENUM] = read_scalar, [F_TEXTS] = read_texts,     [F_PAIRS] = read_pairs,
    [F_OBJECT] = read_object,          [F_OBJECTS] = read_objects, [F_JSON] = read_json,
};

static uint64_t seen_bit(const struct field *f) { return UINT64_C(1) << (f->offset / 8 % 64); }

static bool was_seen(struct level *l, const struct field *f, const char **as)
{
    for (size_t i = 0; (l->maybe & seen_bit(f)) && i < l->seen_count; i++)
        if (l->seen[i].offset == f->offset && l->seen[i].object == (f->type == F_OBJECT))
            return *as = l->seen[i].name, true;
    return false;
}

static void mark_seen(struct level *l, const struct field *f, const char *name)
{
    l->seen[l->seen_count++] = (struct seen){ f->offset, f->type == F_OBJECT, name };
    l->maybe |= seen_bit(f);
}

static void mark_given(struct level *l, const struct field *f)
{
    for (size_t i = 0; l->given && i < l->fields->count && i < 64; i++) {
        const struct field *row = &l->fields->rows[i];
        if (row == f || (row->type != F_INLINE && f->type != F_INLINE && row->offset == f->offset))
            *l->given |= 1ULL << i;
    }
}

/* What the route says holds. A document may repeat it, for people send back what they were shown. */
static bool same_as_path(const struct field *f, const void *path, const void *came, struct err *err)
{
    bool same = f->type == F_TEXT ? text_is(*(const char *const *)path, *(const char *const *)came)
                                  : memcmp(path, came, value_size(f)) == 0;
    return same || err_set(err, RC_BAD_INPUT, "is not what the address of the request says");
}

static bool read_member(struct level *l, const struct at *at, const struct field *f,
                        const struct json *v)
{
    char *to = l->base + f->offset;
    const char *as;
    if (was_seen(l, f, &as))
        return err_set(l->err, RC_BAD_INPUT,
                       "is the same as '%.48s', which is given too; give one of them", as)
               || name_it(at, l->err);
    mark_given(l, f);
    if (v->type == JSON_NULL) {    /* as if absent, but a part that is updated is reset */
        memset(to, 0, value_size(f));
        return true;
    }
    mark_seen(l, f, v->name);
    void *before
        = f->in_path && !value_is_zero(f, to) ? arena_take(l->mem, 1, value_size(f)) : NULL;
    if (before)
        memcpy(before, to, value_size(f));
    return (readers[f->type](l, at, f, v, to) && (!before || same_as_path(f, before, to, l->err)))
           || name_it(at, l->err);
}

static bool read_rows(struct level *l, const struct at *at, const struct fields *fields,
                      const struct json *doc)
{
    size_t hint = 0;
    if (doc->type != JSON_OBJECT)
        return wrong_type(&(struct field){ .type = F_OBJECT }, doc, l->err) || name_it(at, l->err);
    for (const struct json *m = doc->first; m; m = m->next) {
        struct at here = { at, m->name, 0 };
        const struct field *f = find_row(fields, m->name, &hint);
        if (!f && l->ours)
            continue;
        if (!f)
            return unknown(&here, fields, m->name, l->err);
        if (f->type != F_INLINE) {
            if (!read_member(l, &here, f, m))
                return false;
        } else if (m->type != JSON_NULL) {
            mark_given(l, f);
            if (!read_rows(l, &here, f->sub, m))
                return false;
        }
    }
    return true;
}

static bool defaults(const struct fields *fields, struct arena *mem, char *base, struct err *err)
{
    for (size_t i = 0; i < fields->count; i++) {
        const struct field *f = &fields->rows[i];
        if (f->def && !bind_text(f, f->def, mem, base, err))
            return false;
        if ((f->type == F_OBJECT && !defaults(f->sub, mem, base + f->offset, err))
            || (f->type == F_INLINE && !defaults(f->sub, mem, base, err)))
            return false;
    }
    return true;
}

static bool settle_rows(struct level *l, const struct at *at, const struct fields *fields)
{
    for (size_t i = 0; i < fields->count; i++) {
        const struct field *f = &fields->rows[i];
        struct at here = { at, f->name, 0 };
        const char *as;
        if (f->type == F_INLINE) {
            if (!settle_rows(l, &here, f->sub))
                return false;
            continue;
        }
        if (f->in_path || was_seen(l, f, &as))
            continue;
        if (f->required && !l->empty)
            return err_set(l->err, RC_BAD_INPUT, "is required but not given")
                   || name_it(&here, l->err);
        if (f->def)
            mark_seen(l, f, f->name);
        if (f->def && l->settled) {
            memcpy(l->base + f->offset, l->settled + f->offset, value_size(f));
        } else if (f->def) {
            memset(l->base + f->offset, 0, value_size(f));
            if (!bind_text(f, f->def, l->mem, l->base, l->err))
                return false;
        } else if (f->type == F_OBJECT && !defaults(f->sub, l->mem, l->base + f->offset, l->err)) {
            return false;
        }
    }
    return true;
}

static size_t row_count(const struct fields *fields)
{
    size_t n = fields->count;
    for (size_t i = 0; i < fields->count; i++)
        n += fields->rows[i].type == F_INLINE ? row_count(fields->rows[i].sub) : 0;
    return n;
}

static bool read_struct(const struct level *up, const struct at *at, const struct fields *fields,
                        const struct json *doc, void *out, uint64_t *given)
{
    struct seen few[64];        /* not from the arena: there what is read stays for long */
    size_t rows = row_count(fields);
    struct level l = { .fields = fields,
                       .base = arena_take(up->mem, 1, fields->size),
                       .given = given,
                       .mem = up->mem,
                       .err = up->err,
                       .ours = up->ours,
                       .settled = at ? NULL : up->settled,
                       .seen = rows <= COUNT(few) ? few : ARENA_ARRAY(up->mem, struct seen, rows) };
    memcpy(l.base, out, fields->size);
    if (!read_rows(&l, at, fields, doc) || !settle_rows(&l, at, fields))
        return false;
    memcpy(out, l.base, fields->size);
    return true;
}

static bool read_all(const struct level *how, const struct fields *fields, const struct json *doc,
                     void *out, uint64_t *given)
{
    uint64_t bits = 0;
    how->err->field[0] = 0;
    if (!read_struct(how, NULL, fields, doc, out, &bits))
        return false;
    if (given)
        *given = bits;
    return true;
}

bool bind_read(const struct json *doc, const struct fields *fields, struct arena *mem, void *out,
               uint64_t *given, struct err *err)
{
    return read_all(&(struct level){ .mem = mem, .err = err }, fields, doc, out, given);
}

bool bind_read_over(const struct json *doc, const struct fields *fields, const void *settled, struct arena *mem, void *out,
                    uint64_t *given, struct err *err)
{
    return read_all(&(struct level){ .mem = mem, .err = err, .settled = settled }, fields, doc, out, given);
}

bool bind_settled(const struct fields *fields, struct arena *mem, const void **out, struct err *err)
{
    struct level l = { .fields = fields,
                       .base = arena_take(mem, 1, fields->size),
                       .mem = mem,
                       .err = err,
                       .empty = true,
                       .seen = ARENA_ARRAY(mem, struct seen, row_count(fields)) };
    err->field[0] = 0;
    return settle_rows(&l, NULL, fields) && (*out = l.base, true);
}

bool bind_read_ours(const struct json *doc, const struct fields *fields, struct arena *mem, void *out,
                    uint64_t *given, struct err *err)
{
    return read_all(&(struct level){ .mem = mem, .err = err, .ours = true }, fields, doc, out, given);
}

bool bind_text(const struct field *f, const char *text, struct arena *mem, void *out,
               struct err *err)
{
    struct at at = { NULL, f->name, 0 };
    char *to = (char *)out + f->offset;
    err->field[0] = 0;
    if (bind_kinds[f->type].read)
        return bind_kinds[f->type].read(f, SLICE(text), mem, to, err) || name_it(&at, err);
    struct json *v;
    struct level l = { .base = out, .mem = mem, .err = err };
    if (f->type == F_INLINE)
        return err_set(err, RC_BAD_INPUT, "is a group; give its fields") || name_it(&at, err);
    return (json_parse(SLICE(text), mem, &v, err) && readers[f->type](&l, &at, f, v, to))
           || name_it(&at, err);
}
