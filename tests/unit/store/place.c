#include "place.h"
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const struct sql thing_rows[] = {
    [THING_ADD]
    = { "THING_ADD", "itbi", "INSERT INTO thing (id, name, data, n) VALUES (?1, ?2, ?3, ?4)" },
    [THING_NAME] = { "THING_NAME", "ti", "UPDATE thing SET name = ?1 WHERE id = ?2" },
    [THING_ALL] = { "THING_ALL", "", "SELECT id, name, data, n FROM thing ORDER BY id" },
    [THING_GET] = { "THING_GET", "it",
                    "SELECT name, '?2' FROM thing WHERE id = ?1 AND (?2 = '' OR name = ?2)" },
    [THING_PAIRS] = { "THING_PAIRS", "", "SELECT a.id, b.id FROM thing a, thing b" },
};
static const char *const thing_texts[] = {
    "CREATE TABLE thing (id BIGINT PRIMARY KEY, name TEXT, data BYTEA, n BIGINT)",
    "CREATE INDEX thing_n ON thing (n)",
};
const struct sql_list thing_statements = { thing_rows, COUNT(thing_rows) };
const struct steps thing_steps = { thing_texts, COUNT(thing_texts) };

static void schema(const char *url, const char *verb, const char *name, const char *how)
{
    char text[128];
    PGconn *db = PQconnectdb(url);
    snprintf(text, sizeof text, "SET client_min_messages = error; %s SCHEMA %s %s", verb, name,
             how);
    PGresult *r = PQexec(db, text);
    CHECK(PQresultStatus(r) == PGRES_COMMAND_OK);
    PQclear(r);
    PQfinish(db);
}

static void folder_remove(const char *folder)
{
    char path[128];
    static const char *const names[]
        = { "store.db", "store.db-wal", "store.db-shm", "s p?c#l%.db", ".s.PGSQL.5432" };
    for (size_t i = 0; i < COUNT(names); i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    CHECK(rmdir(folder) == 0);
}

static void place_test(struct place *p, bool opened, void (*test)(struct place *p))
{
    if (opened
        && !(store_open_with(p->os, p->where, thing_steps, thing_statements, &p->store, &p->err)
             && conn_open(p->store, true, &p->writer, &p->err)
             && conn_open(p->store, false, &p->reader, &p->err)))
        CHECK(p->err.rc == RC_OK);
    else
        test(p);
    conn_close(p->reader);
    conn_close(p->writer);
    store_close(p->store);
}

void place_run(const char *kind, bool opened, void (*test)(struct place *p))
{
    static int number_of_place;
    const char *base = getenv("ARCUS_TEST_POSTGRES");
    bool postgres = text_is(kind, "postgres");
    if (postgres && !base) {
        test_skip("ARCUS_TEST_POSTGRES is not set");
        return;
    }
    char folder[] = "/tmp/arcus-store-XXXXXX", name[64];
    CHECK(mkdtemp(folder) != NULL);
    snprintf(name, sizeof name, "t_%d_%d", (int)getpid(), ++number_of_place);
    struct place p = { .kind = kind, .folder = folder, .mem = arena_new() };
    p.os = os_real_new(&p.err);
    p.where = postgres ? arena_printf(p.mem, "%s&options=-csearch_path%%3D%s", base, name)
                       : arena_printf(p.mem, "%s/store.db", folder);
    if (postgres)
        schema(base, "CREATE", name, "");
    place_test(&p, opened, test);
    if (p.err.rc)
        printf("# last error: %s: %s\n", rc_name(p.err.rc), p.err.text);
    if (postgres)
        schema(base, "DROP", name, "CASCADE");
    os_free(p.os);
    arena_free(p.mem);
    folder_remove(folder);
}

bool thing_add(struct place *p, int64_t id, const char *name)
{
    struct value args[] = { V_INT(id), V_TEXT(name), { 0 }, V_INT(id * 10) };
    bool unknown;
    return store_commit(p->writer, &(struct write){ (enum statement)THING_ADD, 4, args }, 1,
                        &unknown, &p->err);
}

struct rows things(struct place *p, struct conn *c)
{
    struct rows r = { 0 };
    CHECK(store_query(c, (enum statement)THING_ALL, NULL, 0, p->mem, &r, &p->err));
    return r;
}

bool run(struct place *p, struct conn *c, const char *text)
{
    return c->store->how->run(c, text, &p->err);
}

int64_t number(struct place *p, struct conn *c, const char *text)
{
    int64_t n;
    return c->store->how->number(c, text, &n, &p->err) ? n : -1;
}
