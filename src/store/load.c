/* load.c - an empty store is filled from a backup: its schema is brought to the step that the rows were
 * written at, they all go in as one transaction, and later steps run as they would have run there.
 *
 * Names come from a file: a table or a column that this program's schema does not have is refused,
 * and no text of the file becomes SQL. */
#include "store/store_internal.h"
#include <stdio.h>
#include <stdlib.h>

enum { LOAD_ROWS = 500, LOAD_BYTES = 4 << 20 };

struct load {
    struct store *store;
    struct conn *conn;
    struct arena *mem, *batch;          /* of names and statements; of the rows that wait */
    struct tables tables;
    struct sql *sql;                    /* one INSERT for each of them, in their order */
    struct write writes[LOAD_ROWS];
    size_t waiting, bytes;
    bool open;                          /* a transaction */
};

static const char *insert_text(struct arena *mem, const struct store_table *t)
{
    AUTO(str_done) struct str text = { 0 };
    str_printf(&text, "INSERT INTO %s (", t->name);
    for (int i = 0; i < t->count; i++)
        str_printf(&text, "%s%s", i ? ", " : "", t->columns[i]);
    str_text(&text, ") VALUES (");
    for (int i = 0; i < t->count; i++)
        str_printf(&text, "%s?%d", i ? ", " : "", i + 1);
    str_char(&text, ')');
    return arena_text(mem, text.at);
}

static bool know_tables(struct load *l, struct os *os, const char *where, struct steps steps,
                        struct err *err)
{
    AUTO(store_close) struct store *s = NULL;
    AUTO(conn_close) struct conn *c = NULL;
    if (!store_open_with(os, where, steps, (struct sql_list){ 0 }, &s, err)
        || !s->how->conn_open(s, false, &c, err) || !store_tables(c, l->mem, &l->tables, err))
        return false;
    l->sql = ARENA_ARRAY(l->mem, struct sql, l->tables.count);
    for (size_t i = 0; i < l->tables.count; i++) {
        const struct store_table *t = &l->tables.at[i];
        l->sql[i] = (struct sql){ t->name, t->types, insert_text(l->mem, t) };
    }
    return true;
}

static bool on_count(void *arg, const struct value *values, int count, struct err *err)
{
    (void)count, (void)err;
    *(int64_t *)arg = values[0].n;
    return true;
}

/* In the transaction: nobody has filled it since, and nobody will. What a schema step put there is
 * in the backup too. */
static bool is_empty(struct load *l, struct err *err)
{
    static const char *const telling[] = { "event", "person", "job" };
    char text[128];
    for (size_t i = 0; i < COUNT(telling); i++) {
        int64_t n = 0;
        snprintf(text, sizeof text, "SELECT COUNT(*) FROM %s", telling[i]);
        if (!l->store->how->scan(l->conn, text, on_count, &n, err))    /* never connects again: the transaction would be gone */
            return false;
        if (n)
            return err_set(err, RC_CONFLICT,
                           "the store is not empty (%lld rows in %s): a backup goes into an empty one. "
                           "Name another (--data, --store), or move what is there out of the way first",
                           (long long)n, telling[i]);
    }
    for (size_t i = 0; i < l->tables.count; i++) {
        snprintf(text, sizeof text, "DELETE FROM %s", l->tables.at[i].name);
        if (!l->store->how->run(l->conn, text, err))
            return false;
    }
    return true;
}

bool load_begin(struct os *os, const char *where, int64_t steps, struct load **out, struct err *err)
{
    struct steps known = store_steps();
    if (steps < 1 || steps > known.count)
        return err_set(err, RC_CONFLICT,
                       "the backup was made by a newer arcus (schema step %lld, this program knows "
                       "%d): restore it with that version", (long long)steps, known.count);
    AUTO(load_free) struct load *l = calloc(1, sizeof *l);
    if (!l)
        abort();
    l->mem = arena_new();
    l->batch = arena_new();
    known.count = (int)steps;
    if (!know_tables(l, os, where, known, err)
        || !store_open_with(os, where, known, (struct sql_list){ l->sql, (int)l->tables.count },
                            &l->store, err)
        || !conn_open(l->store, true, &l->conn, err)
        || !l->store->how->run(l->conn, l->store->how->begin_alone, err))
        return false;
    l->open = true;
    if (!is_empty(l, err))
        return false;
    *out = TAKE(l);
    return true;
}

void load_free(struct load *l)
{
    struct err ignored = { 0 };
    if (!l)
        return;
    if (l->open && !l->store->how->run(l->conn, "ROLLBACK", &ignored))
        l->open = false;                /* closing it rolls back too */
    conn_close(l->conn);
    store_close(l->store);
    arena_free(l->batch);
    arena_free(l->mem);
    free(l);
}

static bool flush(struct load *l, struct err *err)
{
    if (l->waiting && !l->store->how->load(l->conn, l->writes, l->waiting, err))
        return false;
    l->waiting = l->bytes = 0;
    arena_free(l->batch);
    l->batch = arena_new();
    return true;
}

static int table_index(const struct load *l, const char *name)
{
    for (size_t i = 0; i < l->tables.count; i++)
        if (text_is(l->tables.at[i].name, name))
            return (int)i;
    return -1;
}

bool load_has(const struct load *l, const char *table) { return table_index(l, table) >= 0; }

static int column_index(const struct store_table *t, const char *name)
{
    for (int i = 0; i < t->count; i++)
        if (text_is(t->columns[i], name))
            return i;
    return -1;
}

bool load_row(struct load *l, const struct store_table *t, const struct value *values, struct err *err)
{
    int n = table_index(l, t->name);
    const struct store_table *to = n < 0 ? NULL : &l->tables.at[n];
    if (!to || to->count != t->count)
        return err_set(err, RC_BAD_INPUT, "this program has no such table '%.60s' at that step", t->name);
    struct value *args = ARENA_ARRAY(l->batch, struct value, (size_t)t->count);
    for (int i = 0; i < t->count; i++) {
        int at = column_index(to, t->columns[i]);
        if (at < 0 || to->types[at] != t->types[i] || args[at].type != VALUE_NULL)
            return err_set(err, RC_BAD_INPUT, "table %s has no such column '%.60s'", t->name,
                           t->columns[i]);
        args[at] = values[i];
        if (values[i].type == VALUE_TEXT || values[i].type == VALUE_BLOB)
            args[at].text = arena_bytes(l->batch, values[i].text, values[i].len);
        l->bytes += values[i].len;
    }
    l->writes[l->waiting++]
        = (struct write){ .st = (enum statement)n, .count = t->count, .args = args };
    return (l->waiting < LOAD_ROWS && l->bytes < LOAD_BYTES) || flush(l, err);
}

bool load_commit(struct load *l, int64_t now_ms, struct err *err)
{
    char note[96];
    snprintf(note, sizeof note, "INSERT INTO restored (at_ms) VALUES (%lld)", (long long)now_ms);
    if (!flush(l, err) || !l->store->how->run(l->conn, note, err)
        || !l->store->how->run(l->conn, "COMMIT", err))
        return false;
    l->open = false;
    return true;
}
