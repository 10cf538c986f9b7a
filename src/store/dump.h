/* dump.h - the whole of a store, for backups: the same rows whichever kind of store they are in.
 *
 * What belongs to this installation alone (who writes at the moment, which servers there are) is left out. */
#pragma once
#include "store/store.h"

enum { TABLE_COLUMNS = 32 };
struct store_table { const char *name; int count; const char *columns[TABLE_COLUMNS]; char types[TABLE_COLUMNS + 1]; };   /* types: i, t or b each */
struct dump_events {
    bool (*on_table)(void *arg, const struct store_table *t, struct err *err);
    bool (*on_row)(void *arg, const struct store_table *t, const struct value *values, struct err *err);
};
/* Every row as of one moment, while the writer goes on. Blocks for as long as it takes: on a thread of its own. *steps: the schema step
 * of the store. */
MUST_CHECK bool store_dump(struct store *s, const struct dump_events *events, void *arg, int64_t *steps, struct err *err);
/* A row as one line of JSON without the newline, and back. Values are borrowed from mem. */
void row_print(struct str *out, const struct store_table *t, const struct value *values);
MUST_CHECK bool row_read(struct slice line, const struct store_table *t, struct arena *mem, struct value out[static TABLE_COLUMNS], struct err *err);
void table_print(struct str *out, const struct store_table *t);       /* the line before the rows: [["id","i"],["name","t"]] */
MUST_CHECK bool table_read(struct slice line, const char *name, struct arena *mem, struct store_table *out, struct err *err);

/* Filling an empty store: all of it in one transaction, at the schema step that the rows were written at. */
struct load;
/* Uploads in the store itself: never dumped, for a backup has uploads as files; a store that several servers share is filled with them. */
#define STORE_PARTS "blob_part"
MUST_CHECK bool load_begin(struct os *os, const char *where, int64_t steps, struct load **out, struct err *err);
MUST_CHECK bool load_row(struct load *l, const struct store_table *t, const struct value *values, struct err *err);
bool load_has(const struct load *l, const char *table);         /* at that step */
/* Notes that the store came from a backup, and commits. */
MUST_CHECK bool load_commit(struct load *l, int64_t now_ms, struct err *err);
void load_free(struct load *l);                                 /* before load_commit: nothing has happened. NULL is fine */
AUTO_FN(struct load *, load_free)
