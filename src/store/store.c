/* store.c - the face of the store: which backend a place means, the statements, and the checks
 * that both backends rely on.
 *
 * What can be refused without asking the database is refused here, in the same words on both, so
 * that a verb that works on SQLite does not fail on PostgreSQL (NUL and broken UTF-8 in a text
 * are the usual ones). No SQL is run here. */
#include "store/store_internal.h"
#include "base/fault.h"
#include "store/schema.h"
#include "wire/utf8.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

struct sql_list store_statements(void)
{
    static const struct sql all[] = {
#define X(name, types, text) { #name, types, text },
        STATEMENTS(X)
#undef X
    };
    return (struct sql_list){ all, COUNT(all) };
}

struct steps store_steps(void)
{
    static const char *const all[] = {
#define X(text) text,
        SCHEMA_STEPS(X)
#undef X
    };
    return (struct steps){ all, COUNT(all), SCHEMA_COMPATIBLE_FROM };
}

static const struct { const char *scheme; const struct backend *how; bool keeps; } places[] = {
    { "postgres://", &postgres_backend, true },
    { "postgresql://", &postgres_backend, true },
    { "sqlite:", &sqlite_backend, false },
};

/* The backend, and the part of `where` that it wants. */
static const struct backend *place_of(const char *where, const char **rest)
{
    for (size_t i = 0; i < COUNT(places); i++)
        if (text_starts(where, places[i].scheme)) {
            *rest = places[i].keeps ? where : where + strlen(places[i].scheme);
            return places[i].how;
        }
    *rest = where;
    return strstr(where, "://") ? NULL : &sqlite_backend;
}

bool store_open(struct os *os, const char *where, struct store **out, struct err *err)
{
    return store_open_with(os, where, store_steps(), store_statements(), out, err);
}

bool store_open_as_is(struct os *os, const char *where, struct store **out, struct err *err)
{
    return store_open_with(os, where, (struct steps){ 0 }, store_statements(), out, err);
}

bool store_open_with(struct os *os, const char *where, struct steps steps,
                     struct sql_list statements, struct store **out, struct err *err)
{
    const char *rest;
    const struct backend *how = place_of(where, &rest);
    if (!how || !*rest)
        return err_set(err, RC_BAD_INPUT,
                       "a store is a path, sqlite:/path or postgres://user@host/database");
    for (int i = 0; i < statements.count; i++)
        if (!sql_check(&statements.at[i], err))
            return false;
    AUTO(store_close) struct store *s = calloc(1, sizeof *s);
    if (!s || !(s->where = strdup(rest)))
        abort();
    s->how = how;
    s->os = os;
    s->statements = statements;
    if (!how->open(s, err) || (steps.at && !migrate(s, steps, err)))
        return false;
    *out = TAKE(s);
    return true;
}

void store_close(struct store *s)
{
    if (!s)
        return;
    s->how->close(s);
    free(s->where);
    free(s);
}

const char *store_kind(const struct store *s) { return s->how->kind; }

bool conn_open(struct store *s, bool writes, struct conn **out, struct err *err)
{
    AUTO(conn_close) struct conn *c = NULL;
    if (!s->how->conn_open(s, writes, &c, err) || !s->how->prepare(c, err))
        return false;
    *out = TAKE(c);
    return true;
}

void conn_close(struct conn *c)
{
    if (c)
        c->store->how->conn_close(c);
}

/* --- what a statement may be */
static bool next_parameter(const char **at, int *number)
{
    bool quoted = false;
    for (const char *p = *at; *p; p++) {
        quoted ^= *p == '\'';
        if (quoted || *p != '?')
            continue;
        char *end;
        *number = (int)strtol(p + 1, &end, 10);
        *at = end;
        return true;
    }
    return false;
}

bool sql_check(const struct sql *q, struct err *err)
{
    int types = (int)strlen(q->types), highest = 0, n;
    uint64_t seen = 0;
    if (q->types[strspn(q->types, "itb")] || types > STORE_ARGS)
        return err_set(err, RC_INTERNAL, "statement %s: its types are not at most %d of i, t and b",
                       q->name, STORE_ARGS);
    for (const char *at = q->text; next_parameter(&at, &n);
         seen |= 1ULL << n, highest = MAX(highest, n))
        if (n < 1 || n > STORE_ARGS)
            return err_set(err, RC_INTERNAL, "statement %s: parameters are ?1 to ?%d", q->name,
                           STORE_ARGS);
    if (highest != types || seen != ((2ULL << types) - 2))
        return err_set(err, RC_INTERNAL,
                       "statement %s: it declares %d types and uses %d parameters", q->name, types,
                       highest);
    return true;
}

bool sql_reads(const struct sql *q) { return text_starts(q->text, "SELECT"); }

void sql_for_postgres(const struct sql *q, struct str *out)
{
    bool quoted = false;
    for (const char *p = q->text; *p; p++) {
        quoted ^= *p == '\'';
        str_char(out, *p == '?' && !quoted ? '$' : *p);
    }
}

/* --- what an argument may be */
static bool text_ok(const struct value *v)
{
    for (size_t i = 0, step; i < v->len; i += step)
        if (!v->text[i] || !(step = utf8_len(v->text + i, v->len - i)))
            return false;
    return true;
}

static bool args_ok(const struct conn *c, int st, const struct value *args, int count,
                    struct err *err)
{
    static const enum value_type type_of[]
        = { ['i'] = VALUE_INT, ['t'] = VALUE_TEXT, ['b'] = VALUE_BLOB };
    if (st < 0 || st >= c->store->statements.count)
        return err_set(err, RC_INTERNAL, "there is no statement %d", st);
    const struct sql *q = &c->store->statements.at[st];
    if (count != (int)strlen(q->types))
        return err_set(err, RC_INTERNAL, "statement %s takes %zu values, not %d", q->name,
                       strlen(q->types), count);
    for (int i = 0; i < count; i++) {
        const struct value *v = &args[i];
        if (v->type != VALUE_NULL && v->type != type_of[(unsigned char)q->types[i]])
            return err_set(err, RC_INTERNAL, "statement %s: value %d is not of type %c", q->name,
                           i + 1, q->types[i]);
        if (v->len > STORE_TEXT)
            return err_set(err, RC_TOO_LARGE, "a text of %zu bytes is too large for the store",
                           v->len);
        if (v->type == VALUE_TEXT && !text_ok(v))
            return err_set(err, RC_BAD_INPUT, "a text is not UTF-8, or has a NUL byte in it");
    }
    return true;
}

bool store_commit(struct conn *c, const struct write *writes, size_t count, bool *unknown,
                  struct err *err)
{
    *unknown = false;
    if (!c->writes)
        return err_set(err, RC_INTERNAL, "a connection for reading was asked to write");
    for (size_t i = 0; i < count; i++)
        if (!args_ok(c, (int)writes[i].st, writes[i].args, writes[i].count, err))
            return false;
        else if (sql_reads(&c->store->statements.at[writes[i].st]))
            return err_set(err, RC_INTERNAL, "statement %s does not write",
                           c->store->statements.at[writes[i].st].name);
    return !count || c->store->how->commit(c, writes, count, unknown, err);
}

bool store_query(struct conn *c, enum statement st, const struct value *args, int count,
                 struct arena *mem, struct rows *out, struct err *err)
{
    if (!args_ok(c, (int)st, args, count, err))
        return false;
    const struct sql *q = &c->store->statements.at[st];
    if (!sql_reads(q))
        return err_set(err, RC_INTERNAL, "statement %s does not read", q->name);
    return c->store->how->query(c, (int)st, args, mem, out, err);
}

int64_t store_count(struct conn *c, const char *table)
{
    char text[128];
    int64_t n;
    struct err err = { 0 };
    if (!*table || table[strspn(table, "abcdefghijklmnopqrstuvwxyz_0123456789")]
        || strlen(table) > 63)
        return -1;
    snprintf(text, sizeof text, "SELECT COUNT(*) FROM %s", table);
    return c->store->how->number(c, text, &n, &err) ? n : -1;
}

bool store_fault(const char *point, struct err *err)
{
    return fault_named(point) && !err_set(err, RC_UNAVAILABLE, "a test let the store fail at %s", point);
}

/* --- an answer */
bool gather_row(struct gather *g, struct err *err)
{
    if (g->rows >= STORE_ROWS)
        return err_set(err, RC_TOO_LARGE, "the answer has more than %d rows: ask for less",
                       STORE_ROWS);
    g->rows++;
    return true;
}

bool gather_value(struct gather *g, struct value v, struct err *err)
{
    if (v.type == VALUE_TEXT || v.type == VALUE_BLOB) {
        if (v.len > STORE_BYTES - g->bytes)
            return err_set(err, RC_TOO_LARGE, "the answer has more than %d bytes: ask for less",
                           STORE_BYTES);
        g->bytes += v.len;
        v.text = arena_bytes(g->mem, v.text, v.len);
    }
    str_put(&g->values, &v, sizeof v);
    return true;
}

struct rows gather_rows(const struct gather *g)
{
    size_t n = g->rows * (size_t)g->columns;
    struct value *at = ARENA_ARRAY(g->mem, struct value, n);
    if (n)
        memcpy(at, g->values.at, n * sizeof *at);
    return (struct rows){ g->rows, g->columns, at };
}
