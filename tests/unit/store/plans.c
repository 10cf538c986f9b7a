/* Every statement that reads, as the database would run it: none may walk all of a table that grows with every job. A new
 * statement that does fails here, with its plan. */
#include "place.h"
#include <libpq-fe.h>
#include <sqlite3.h>
#include <stdlib.h>

/* These get rows with every job; of all others there are as many as people make, or nodes, or live jobs. */
static const char *const grow[] = { "job", "task", "attempt", "event", "usage", "audit_note", "archive" };
/* Indexes that hold only what lives, or is to be looked after. */
static const char *const short_indexes[] = { "job_live", "job_live_project", "task_live", "attempt_live", "usage_unrolled", "job_idem", "event_idem" };
/* These walk a table in the order of its key and stop after a few rows. */
static const char *const walks[] = { "OLD_EVENTS" };

static bool in(const char *const *list, size_t count, const char *word, size_t n)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(list[i]) == n && strncmp(list[i], word, n) == 0)
            return true;
    return false;
}
#define IN(list, word, n) in(list, COUNT(list), word, n)

/* Does this word of a statement stand for such a table? "job a" or "job AS a" makes a the job. */
static bool grows(const char *text, const char *alias, size_t n)
{
    if (IN(grow, alias, n))
        return true;
    for (size_t i = 0; i < COUNT(grow); i++)
        for (int as = 0; as < 2; as++) {
            char both[64];
            int len = snprintf(both, sizeof both, " %s %s%.*s", grow[i], as ? "AS " : "", (int)n, alias);
            for (const char *p = text; (p = strstr(p, both)); p++)
                if (!strchr("abcdefghijklmnopqrstuvwxyz_", p[len] ? p[len] : ' '))
                    return true;
        }
    return false;
}

/* A range of a key and nothing else is a walk, too, unless all of the range is wanted, a page at a time. */
static const char *const ranges[] = { "EVENT_LIST_ALL", "EVENT_DROP", "AUDIT_DROP", "AUDIT_RANGE", "AUDIT_LAST", "AUDIT_SEQ", "USAGE_EDGE", "TRACE_ENDED", "OLD_JOBS", "OLD_USAGE" };

/* Who asks for a project's live jobs does not pay for those of others. */
static bool walks_others(const struct sql *q, const char *line)
{
    const char *index = strstr(line, "INDEX job_live");
    return index && !text_starts(index, "INDEX job_live_project") && strstr(q->text, "project = ?1");
}

static bool line_is_fine(const struct sql *q, const char *line)
{
    if (walks_others(q, line))
        return false;
    if (strstr(line, "TEMP B-TREE FOR ORDER BY"))
        return false;
    if (strncmp(line, "SEARCH ", 7) == 0) {
        size_t n = strcspn(line + 7, " ");
        const char *index = strstr(line, "INDEX ");
        return !strchr(line, '(') || strstr(line, "=?") || strstr(line, "(rowid") || !grows(q->text, line + 7, n)
               || (index && IN(short_indexes, index + 6, strcspn(index + 6, " "))) || IN(ranges, q->name, strlen(q->name));
    }
    if (strncmp(line, "SCAN ", 5) != 0)
        return true;
    const char *name = line + 5, *index = strstr(line, "INDEX ");
    size_t n = strcspn(name, " ");
    if (text_starts(name, "CONSTANT") || text_starts(name, "(") || IN(walks, q->name, strlen(q->name)))
        return true;
    if (index && IN(short_indexes, index + 6, strcspn(index + 6, " ")))
        return true;
    char part[32];                      /* the rows of a part, each of which has lines of its own */
    snprintf(part, sizeof part, ") AS %.*s", (int)n, name);
    return strstr(q->text, part) || !grows(q->text, name, n);
}

/* What sorts, sorts little: the rows of one page, one task, one person. */
static const char *const sorts[] = { "JOB_LIST", "JOB_LIST_NAMED", "JOB_BY_NAME", "LOAD_SKIPPED", "AUDIT_RANGE", "AUDIT_DOWN", "AUDIT_UP", "KEY_LIST",
                                     "AUTH_PROJECT_ANY", "ACCOUNT_LIST", "SECRET_LIST", "VOLUME_LIST", "IMAGE_LIST", "MEMBER_LIST" };

TEST(no_statement_walks_a_table_that_grows_on_sqlite)
{
    char folder[] = "/tmp/arcus-plans-XXXXXX", path[64], more[80];
    struct err err = { 0 };
    sqlite3 *db = NULL;
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/s.db", folder);
    struct os *os = os_real_new(&err);
    struct store *s = NULL;
    CHECK(store_open(os, path, &s, &err));
    store_close(s);
    CHECK(sqlite3_open(path, &db) == SQLITE_OK);
    for (int i = 0; i < ST_COUNT; i++) {
        const struct sql *q = &store_statements().at[i];
        AUTO(str_done) struct str text = { 0 };
        sqlite3_stmt *st = NULL;
        str_printf(&text, "EXPLAIN QUERY PLAN %s", q->text);
        CHECK(sqlite3_prepare_v2(db, text.at, -1, &st, NULL) == SQLITE_OK);
        while (sqlite3_step(st) == SQLITE_ROW) {
            const char *line = (const char *)sqlite3_column_text(st, 3);
            bool fine = line_is_fine(q, line) || (strstr(line, "TEMP B-TREE") && IN(sorts, q->name, strlen(q->name)));
            CHECK(fine);
            if (!fine)
                printf("# %s: %s\n", q->name, line);
        }
        sqlite3_finalize(st);
    }
    sqlite3_close(db);
    os_free(os);
    static const char *const ends[] = { "", "-wal", "-shm" };
    for (size_t i = 0; i < COUNT(ends); i++) {
        snprintf(more, sizeof more, "%s%s", path, ends[i]);
        remove(more);
    }
    CHECK(remove(folder) == 0);
}

static void explain(PGconn *db, const struct sql *q)
{
    AUTO(str_done) struct str text = { 0 };
    str_printf(&text, "PREPARE plan_%s (", q->name);
    for (int k = 0; q->types[k]; k++)
        str_printf(&text, "%s%s", k ? ", " : "", q->types[k] == 'i' ? "bigint" : "text");
    str_text(&text, q->types[0] ? ") AS " : "");
    if (!q->types[0]) {
        str_clear(&text);
        str_printf(&text, "PREPARE plan_%s AS ", q->name);
    }
    sql_for_postgres(q, &text);
    PGresult *r = PQexec(db, text.at);
    CHECK(PQresultStatus(r) == PGRES_COMMAND_OK);
    if (PQresultStatus(r) != PGRES_COMMAND_OK)
        printf("# %s: %s", q->name, PQerrorMessage(db));
    PQclear(r);
    str_clear(&text);
    str_printf(&text, "EXPLAIN EXECUTE plan_%s%s", q->name, q->types[0] ? "(" : "");
    for (int k = 0; q->types[k]; k++)
        str_printf(&text, "%s%s", k ? ", " : "", q->types[k] == 'i' ? "1" : "''");
    str_text(&text, q->types[0] ? ")" : "");
    r = PQexec(db, text.at);
    CHECK(PQresultStatus(r) == PGRES_TUPLES_OK);
    for (int i = 0; i < PQntuples(r); i++) {
        const char *line = PQgetvalue(r, i, 0), *scan = strstr(line, "Seq Scan on ");
        bool fine = !scan || !IN(grow, scan + 12, strcspn(scan + 12, " ")) || IN(walks, q->name, strlen(q->name));
        CHECK(fine);
        if (!fine)
            printf("# %s: %s\n", q->name, line);
    }
    PQclear(r);
}

BOTH_CLOSED(no_statement_needs_to_walk_a_table_that_grows)
{
    if (!text_is(p->kind, "postgres"))
        return;
    CHECK(store_open(p->os, p->where, &p->store, &p->err));
    PGconn *db = PQconnectdb(p->where);
    PQclear(PQexec(db, "SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan"));
    for (int i = 0; i < ST_COUNT; i++)
        if (sql_reads(&store_statements().at[i]) || text_starts(store_statements().at[i].text, "DELETE") || text_starts(store_statements().at[i].text, "UPDATE"))
            explain(db, &store_statements().at[i]);
    PQfinish(db);
}
