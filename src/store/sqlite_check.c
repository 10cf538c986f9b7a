/* sqlite_check.c - is every page of the file as SQLite left it? A small file is looked at before it is used. A large one would hold up a start for
 * seconds: it is served meanwhile, and looked at by a process of its own (server/store_look.c).
 *
 * One table at a time, since each look is a transaction that keeps the write-ahead log from being copied back. */
#include "store/sqlite_internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { CHECK_BYTES = 128 * 1024 * 1024, VERDICT = 128 };

static int one_text(void *arg, int columns, char **texts, char **names)
{
    (void)columns, (void)names;
    snprintf(arg, VERDICT, "%s", texts[0] ? texts[0] : "");
    return 0;
}

/* A page that could not be read is told among the faults that were found. It says nothing of what is on the disk. */
static bool is_unread(const char *verdict)
{
    static const char told[] = "error code=";
    const char *at = strstr(verdict, told);
    int code = at ? atoi(at + sizeof told - 1) & 0xff : SQLITE_OK;
    return code == SQLITE_IOERR || code == SQLITE_NOMEM;
}

/* table NULL: all of it. */
static bool look_at(sqlite3 *db, const char *table, struct err *err)
{
    char verdict[VERDICT] = "", *text = table ? sqlite3_mprintf("PRAGMA quick_check(%Q)", table) : sqlite3_mprintf("PRAGMA quick_check(1)");
    int rc = sqlite3_exec(db, text, one_text, verdict, NULL);
    sqlite3_free(text);
    if (rc != SQLITE_OK)
        return sqlite_fails(db, rc, err);
    if (text_is(verdict, "ok"))
        return true;
    const char *what = strrchr(verdict, '\n') ? strrchr(verdict, '\n') + 1 : verdict;
    if (is_unread(verdict))
        return err_set(err, RC_UNAVAILABLE, "the disk of the store failed (%s)", what);
    return err_set(err, RC_INTERNAL, STORE_DAMAGED " (%s)", what);
}

bool sqlite_undamaged(sqlite3 *db, int64_t bytes, struct err *err) { return bytes > CHECK_BYTES || look_at(db, NULL, err); }

static const char *path_of(const char *where)
{
    static const char prefix[] = "sqlite:";
    return text_starts(where, prefix) ? where + sizeof prefix - 1 : where;
}

bool store_is_large(const char *where)
{
    struct stat st;
    return stat(path_of(where), &st) == 0 && st.st_size > CHECK_BYTES; /* a database that is no file of ours has no such path */
}

bool store_check(const char *where, struct err *err)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_open_v2(path_of(where), &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL);
    bool ok = rc == SQLITE_OK || sqlite_fails(db, rc, err);
    if (ok) {
        sqlite3_extended_result_codes(db, 1);
        sqlite3_busy_timeout(db, STORE_WAIT_MS);
        rc = sqlite3_prepare_v2(db, "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0 ORDER BY name", -1, &st, NULL);
        ok = rc == SQLITE_OK || sqlite_fails(db, rc, err);
    }
    AUTO(arena_free) struct arena *mem = arena_new();
    struct texts tables = { ARENA_ARRAY(mem, const char *, 1024), 0 };
    while (ok && tables.count < 1024 && (rc = sqlite3_step(st)) == SQLITE_ROW)
        tables.at[tables.count++] = arena_text(mem, (const char *)sqlite3_column_text(st, 0));
    ok = ok && (rc == SQLITE_DONE || sqlite_fails(db, rc, err));
    sqlite3_finalize(st);
    for (size_t i = 0; ok && i < tables.count; i++)
        ok = look_at(db, tables.at[i], err);
    sqlite3_close(db);
    if (!ok && err->rc == RC_INTERNAL && !strstr(err->text, STORE_DAMAGED)) /* the look failed, which says nothing of the store */
        err->rc = RC_UNAVAILABLE;
    return ok || err_wrap(err, "%s", path_of(where));
}
