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

/* --- sqlite_wal.c */
struct wal;
struct wal *wal_new(struct store *s);
void wal_free(struct wal *w);                   /* NULL is fine; before the handle is closed */
void wal_trim(struct wal *w, struct handle *h); /* after a commit; w NULL: there is no thread to help */
