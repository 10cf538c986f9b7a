/* sqlite_internal.h - what the files of the SQLite backend share. */
#pragma once
#include "store/store_internal.h"
#include <sqlite3.h>

enum {
    WAL_PAGES = 4000,                   /* from here on they are copied back after a commit */
    WAL_PAGES_MOST = 16000,             /* from here on we wait a little for readers */
};
struct handle { sqlite3 *db; int wal_pages, wal_patience; };
MUST_CHECK bool handle_open(struct store *s, bool writes, struct handle *h, struct err *err);

bool sqlite_fails(sqlite3 *db, int rc, struct err *err);     /* false, with the words for it */

/* --- sqlite_check.c */
MUST_CHECK bool sqlite_undamaged(sqlite3 *db, int64_t bytes, struct err *err);  /* a large one is looked at beside (store_check) */

/* --- sqlite_wal.c */
struct wal;
struct wal *wal_new(struct store *s);
void wal_free(struct wal *w);                   /* NULL is fine; before the handle is closed */
void wal_trim(struct wal *w, struct handle *h); /* after a commit; w NULL: there is no thread to help */
