/* store_internal.h - what the two backends share, and what the tests of this layer may touch.
 *
 * The vtable is the whole difference between SQLite and PostgreSQL. store.c checks arguments
 * before a backend sees them, so a backend trusts the count, the types and the UTF-8 of what it
 * is given. */
#pragma once
#include "store/dump.h"

enum {
    STORE_ARGS = 32,                            /* parameters of one statement */
    STORE_ROWS = 100 * 1000,                    /* rows of one answer */
    STORE_BYTES = 512 * 1024 * 1024,            /* texts and blobs of one answer */
    STORE_TEXT = 256 * 1024 * 1024,             /* one text or blob */
    STORE_WAIT_MS = 5000,                       /* for another process that holds the lock */
};

struct sql { const char *name, *types, *text; };
struct sql_list { const struct sql *at; int count; };
struct steps { const char *const *at; int count, compatible_from; };   /* 0: an older program is always refused */

typedef bool scan_fn(void *arg, const struct value *values, int count, struct err *err);
struct backend {
    const char *kind;
    bool (*open)(struct store *s, struct err *err);     /* the schema may not be there yet */
    void (*close)(struct store *s);
    bool (*conn_open)(struct store *s, bool writes, struct conn **out, struct err *err);
    void (*conn_close)(struct conn *c);
    bool (*prepare)(struct conn *c, struct err *err);   /* a reader only what reads */
    bool (*commit)(struct conn *c, const struct write *writes, size_t count, bool *unknown,
                   struct err *err);
    bool (*query)(struct conn *c, int st, const struct value *args, struct arena *mem,
                  struct rows *out, struct err *err);
    /* For migrations and tests, with texts of ours alone: */
    bool (*run)(struct conn *c, const char *text, struct err *err);
    bool (*number)(struct conn *c, const char *text, int64_t *out, struct err *err);
    /* The lease, in the backend's own terms: who this connection is, what became of another, and its end. */
    bool (*self)(struct conn *c, int64_t *pid, int64_t *since, struct err *err);
    bool (*holder)(struct conn *c, int64_t pid, int64_t since, enum holder *out, struct err *err);
    bool (*evict)(struct conn *c, int64_t pid, int64_t since, struct err *err);
    const char *begin_alone;            /* begins a transaction that no other opener can be in */
    /* For backups: */
    const char *begin_snapshot;         /* begins a transaction that sees one moment, and waits for nobody */
    const char *columns;                /* asks for table, column and its type, in order */
    bool (*scan)(struct conn *c, const char *text, scan_fn *on_row, void *arg, struct err *err);
    bool (*load)(struct conn *c, const struct write *writes, size_t count, struct err *err);  /* in the open transaction */
};
extern const struct backend sqlite_backend, postgres_backend;

struct store {
    const struct backend *how;
    struct os *os;
    char *where;                        /* a URL may hold a password: never printed */
    struct sql_list statements;
    void *inside;                       /* the backend's own */
};

struct conn { struct store *store; bool writes; int64_t epoch; };   /* the first member of the backends' own; epoch: 0, or what its commits check */

/* store_open with other steps and statements than the program's; no steps: the schema stays as it is. */
MUST_CHECK bool store_open_with(struct os *os, const char *where, struct steps steps,
                                struct sql_list statements, struct store **out, struct err *err);
struct sql_list store_statements(void);         /* statements.h */
struct steps store_steps(void);                 /* schema.h */

MUST_CHECK bool migrate(struct store *s, struct steps steps, struct err *err);
/* Its types are of "itb", as many as it has parameters, which are ?1, ?2 ... without a gap. */
MUST_CHECK bool sql_check(const struct sql *q, struct err *err);
bool sql_reads(const struct sql *q);            /* SELECT: what a reader's connection may */
void sql_for_postgres(const struct sql *q, struct str *out);    /* ?1 -> $1, not within quotes */

bool store_fault(const char *point, struct err *err);   /* true when a test wants it */
bool fenced(struct err *err);           /* says so; always false */
#define STORE_DAMAGED "the store is damaged: keep a copy of it, then restore it from a backup"

/* Rows of an answer while it comes in; its bounds are kept here. */
struct gather { struct arena *mem; struct str values; size_t rows, bytes; int columns; };
static inline void gather_done_auto(struct gather *g) { str_done(&g->values); }
/* Copies texts and blobs. */
MUST_CHECK bool gather_value(struct gather *g, struct value v, struct err *err);
MUST_CHECK bool gather_row(struct gather *g, struct err *err);  /* one more begins */
struct rows gather_rows(const struct gather *g);

/* dump.c: the tables of the schema that backups hold, as this store has them; in mem. */
struct tables { size_t count; struct store_table *at; };
MUST_CHECK bool store_tables(struct conn *c, struct arena *mem, struct tables *out, struct err *err);

/* sqlite_vfs.c: SQLite on the disk of a simulated machine. */
struct sqlite3_vfs;
struct sqlite3_vfs *sqlite_vfs_new(struct os *os);
void sqlite_vfs_free(struct sqlite3_vfs *v);    /* after the last handle on it */
