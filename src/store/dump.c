/* dump.c - every row of a store as of one moment, in a form that the other kind of store takes too.
 *
 * Which tables there are is read from the schema's steps, in their order; what columns they have is
 * asked of the store. A row is a JSON list in the order of the columns, bytes as base64. */
#include "store/store_internal.h"
#include "wire/digest.h"
#include "wire/json.h"
#include <ctype.h>
#include <stdio.h>

/* Not of the cloud but of this installation of it: who writes, which servers live, where it came from. What its keys must be goes
 * along: a server that starts on the copy without them must not make others. */
static const char *const own[] = { "migration", "writer", "server", "restored" };

static const struct { const char *name; char type; } type_names[] = {
    { "BIGINT", 'i' }, { "INTEGER", 'i' }, { "SMALLINT", 'i' }, { "BOOLEAN", 'i' },
    { "TEXT", 't' },   { "BLOB", 'b' },    { "BYTEA", 'b' },
};

static char type_of(const char *name)
{
    for (size_t i = 0; i < COUNT(type_names); i++)
        if (!strcasecmp(type_names[i].name, name))
            return type_names[i].type;
    return 0;
}

/* --- which tables */

static bool is_own(const char *name)
{
    for (size_t i = 0; i < COUNT(own); i++)
        if (text_is(own[i], name))
            return true;
    return false;
}

static void tables_of_steps(struct arena *mem, struct tables *out)
{
    static const char make[] = "CREATE TABLE ";
    struct steps steps = store_steps();
    *out = (struct tables){ .at = ARENA_ARRAY(mem, struct store_table, (size_t)steps.count) };
    for (int i = 0; i < steps.count; i++) {
        if (!text_starts(steps.at[i], make))
            continue;
        const char *name = steps.at[i] + sizeof make - 1;
        name = arena_bytes(mem, name, strcspn(name, " ("));
        if (!is_own(name))
            out->at[out->count++].name = name;
    }
}

struct columns { struct tables *tables; struct arena *mem; };

static bool on_column(void *arg, const struct value *v, int count, struct err *err)
{
    struct columns *c = arg;
    const char *table = arena_bytes(c->mem, v[0].text, v[0].len);
    (void)count;
    for (size_t i = 0; i < c->tables->count; i++) {
        struct store_table *t = &c->tables->at[i];
        if (!text_is(t->name, table))
            continue;
        char type = type_of(arena_bytes(c->mem, v[2].text, v[2].len));
        if (!type || t->count == TABLE_COLUMNS)
            return err_set(err, RC_INTERNAL, "table %s has a column that backups do not know", table);
        t->types[t->count] = type;
        t->columns[t->count++] = arena_bytes(c->mem, v[1].text, v[1].len);
    }
    return true;
}

/* A table of a later step is not there yet, and left out. */
bool store_tables(struct conn *c, struct arena *mem, struct tables *out, struct err *err)
{
    tables_of_steps(mem, out);
    if (!c->store->how->scan(c, c->store->how->columns, on_column,
                             &(struct columns){ out, mem }, err))
        return false;
    size_t kept = 0;
    for (size_t i = 0; i < out->count; i++)
        if (out->at[i].count)
            out->at[kept++] = out->at[i];
    out->count = kept;
    return true;
}

/* --- their rows */

struct dump {
    const struct dump_events *events;
    void *arg;
    const struct store_table *table;
};

static bool on_row(void *arg, const struct value *values, int count, struct err *err)
{
    struct dump *d = arg;
    return (count == d->table->count
            || err_set(err, RC_INTERNAL, "table %s changed meanwhile", d->table->name))
           && d->events->on_row(d->arg, d->table, values, err);
}

static bool dump_table(struct conn *c, struct dump *d, struct err *err)
{
    AUTO(str_done) struct str text = { 0 };
    for (int i = 0; i < d->table->count; i++)
        str_printf(&text, "%s%s", i ? ", " : "SELECT ", d->table->columns[i]);
    str_printf(&text, " FROM %s", d->table->name);
    return d->events->on_table(d->arg, d->table, err)
           && (c->store->how->scan(c, text.at, on_row, d, err)
               || err_wrap(err, "table %s", d->table->name));
}

static bool dump_all(struct conn *c, struct dump *d, int64_t *steps, struct err *err)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct tables tables;
    if (!c->store->how->number(c, "SELECT COALESCE(MAX(n), 0) FROM migration", steps, err))
        return false;
    if (*steps > store_steps().count)
        return err_set(err, RC_CONFLICT,
                       "the store was made by a newer arcus: back it up with that version");
    if (!store_tables(c, mem, &tables, err))
        return false;
    for (size_t i = 0; i < tables.count; i++) {
        d->table = &tables.at[i];
        if (!text_is(d->table->name, STORE_PARTS) && !dump_table(c, d, err))
            return false;
    }
    return true;
}

bool store_dump(struct store *s, const struct dump_events *events, void *arg, int64_t *steps,
                struct err *err)
{
    AUTO(conn_close) struct conn *c = NULL;
    struct dump d = { .events = events, .arg = arg };
    struct err ignored = { 0 };
    if (!s->how->conn_open(s, false, &c, err) || !s->how->run(c, s->how->begin_snapshot, err))
        return false;
    bool ok = dump_all(c, &d, steps, err);
    /* Nothing was written, so how it ends changes nothing; but in a simulation others use the handle. */
    return s->how->run(c, "ROLLBACK", ok ? err : &ignored) && ok;
}

/* --- as text */

void row_print(struct str *out, const struct store_table *t, const struct value *values)
{
    struct json_out o = { .to = out };
    json_open(&o, '[');
    for (int i = 0; i < t->count; i++) {
        const struct value *v = &values[i];
        if (v->type == VALUE_INT) {
            json_put_int(&o, v->n);
        } else if (v->type == VALUE_NULL) {
            json_put_text(&o, NULL);
        } else if (t->types[i] != 'b') {
            json_put_bytes(&o, v->len ? v->text : "", v->len);
        } else {
            AUTO(str_done) struct str text = { 0 };
            base64_text(&text, v->text, v->len);
            json_put_bytes(&o, text.at ? text.at : "", text.len);
        }
    }
    json_close(&o, ']');
}

static bool value_read(const struct json *v, char type, struct arena *mem, struct value *out)
{
    struct slice bytes;
    if (v->type == JSON_NULL)
        return *out = (struct value){ 0 }, true;
    if (type == 'i')
        return v->type == JSON_NUMBER && v->is_int && (*out = V_INT(v->number), true);
    if (v->type != JSON_TEXT)
        return false;
    if (type == 't') {
        *out = (struct value){ .type = VALUE_TEXT, .text = v->text, .len = v->len };
        return true;
    }
    return base64_parse((struct slice){ v->text, v->len }, mem, &bytes)
           && (*out = value_blob(bytes.at, bytes.len), true);
}

bool row_read(struct slice line, const struct store_table *t, struct arena *mem,
              struct value out[static TABLE_COLUMNS], struct err *err)
{
    struct json *doc;
    if (!json_parse(line, mem, &doc, err))
        return err_wrap(err, "a row of table %s", t->name);
    int n = 0;
    for (const struct json *v = doc->type == JSON_LIST ? doc->first : NULL; v; v = v->next, n++)
        if (n == t->count || !value_read(v, t->types[n], mem, &out[n]))
            return err_set(err, RC_BAD_INPUT, "a row of table %s does not fit its columns", t->name);
    return n == t->count
           || err_set(err, RC_BAD_INPUT, "a row of table %s does not fit its columns", t->name);
}

void table_print(struct str *out, const struct store_table *t)
{
    struct json_out o = { .to = out };
    json_open(&o, '[');
    for (int i = 0; i < t->count; i++) {
        json_open(&o, '[');
        json_put_text(&o, t->columns[i]);
        json_put_bytes(&o, &t->types[i], 1);
        json_close(&o, ']');
    }
    json_close(&o, ']');
}

static bool column_read(const struct json *v, struct store_table *t)
{
    const struct json *name = v->type == JSON_LIST ? v->first : NULL, *type = name ? name->next : NULL;
    if (!type || name->type != JSON_TEXT || type->type != JSON_TEXT || type->len != 1
        || !strchr("itb", type->text[0]) || t->count == TABLE_COLUMNS)
        return false;
    t->types[t->count] = type->text[0];
    t->columns[t->count++] = name->text;
    return true;
}

bool table_read(struct slice line, const char *name, struct arena *mem, struct store_table *out,
                struct err *err)
{
    struct json *doc;
    *out = (struct store_table){ .name = name };
    if (!json_parse(line, mem, &doc, err))
        return err_wrap(err, "the columns of table %s", name);
    for (const struct json *v = doc->type == JSON_LIST ? doc->first : NULL; v; v = v->next)
        if (!column_read(v, out))
            return err_set(err, RC_BAD_INPUT, "the columns of table %.60s are not understood", name);
    return true;
}
