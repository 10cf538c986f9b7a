/* store.h - what is true about the cloud, on disk, all or nothing. The only SQL of the program is behind it.
 *
 * A store is a place: "sqlite:/path" (or a plain path) or "postgres://...". Each thread has a connection of its own. Writes are a
 * list of statements that lands as one transaction: when store_commit returns true, it is durable. Reads see what is
 * committed and never wait for the writer. */
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include "os/os.h"
#include "store/statements.h"

enum value_type { VALUE_NULL, VALUE_INT, VALUE_TEXT, VALUE_BLOB };
struct value { enum value_type type; int64_t n; const char *text; size_t len; };
#define V_INT(x)  ((struct value){ .type = VALUE_INT, .n = (x) })
#define V_TEXT(x) value_text(x)
#define V_NULL    ((struct value){ 0 })
static inline struct value value_text(const char *s)            /* NULL becomes NULL */
{
    return s ? (struct value){ .type = VALUE_TEXT, .text = s, .len = strlen(s) } : (struct value){ 0 };
}
static inline struct value value_blob(const void *at, size_t n)
{
    return (struct value){ .type = VALUE_BLOB, .text = at, .len = n };
}

struct write { enum statement st; int count; const struct value *args; };
struct rows { size_t count; int columns; const struct value *at; };     /* row r, column c: at[r * columns + c] */

static inline int64_t row_int(const struct rows *r, size_t row, int col) { return r->at[row * (size_t)r->columns + (size_t)col].n; }
static inline const char *row_text(const struct rows *r, size_t row, int col)   /* NULL where the column is NULL */
{
    return r->at[row * (size_t)r->columns + (size_t)col].text;
}

struct store;
struct conn;
/* Refuses a place that would be spoken to in the open over a network, unless its URL says so itself (sslmode=disable) and plain does. */
MUST_CHECK bool store_place_check(const char *where, bool plain, struct err *err);
/* Opens the place, brings the schema up to date (additive numbered steps, each in a transaction; a store that is newer than this
 * program, or damaged, is refused with what to do) and keeps nothing open but what it needs. */
MUST_CHECK bool store_open(struct os *os, const char *where, struct store **out, struct err *err);
/* The same, but its schema stays as it is: for whoever only reads all of it (store_dump). */
MUST_CHECK bool store_open_as_is(struct os *os, const char *where, struct store **out, struct err *err);
/* A file that is too large to be looked at whole when it is opened; and looking at it, beside those who use it. RC_INTERNAL: it is damaged. */
bool store_is_large(const char *where);
MUST_CHECK bool store_check(const char *where, struct err *err);      /* RC_INTERNAL: it is damaged; anything else: it could not be looked at */
void store_close(struct store *s);
AUTO_FN(struct store *, store_close)
const char *store_kind(const struct store *s);                  /* "sqlite", "postgres" */

/* A connection prepares every statement when it opens, so a misspelt column stops the server and not a customer at night. */
MUST_CHECK bool conn_open(struct store *s, bool writes, struct conn **out, struct err *err);
void conn_close(struct conn *c);
AUTO_FN(struct conn *, conn_close)
/* All or nothing. On failure everything is rolled back and the connection is usable again (it reconnects if it must). RC_CONFLICT: a
 * constraint refused it; RC_UNAVAILABLE: the store is away or full, and it did not happen, or, rarely, *unknown says that the
 * answer was lost with the connection. */
MUST_CHECK bool store_commit(struct conn *c, const struct write *writes, size_t count, bool *unknown, struct err *err);
MUST_CHECK bool store_query(struct conn *c, enum statement st, const struct value *args, int count, struct arena *mem,
                            struct rows *out, struct err *err);  /* at most 100,000 rows */
int64_t store_count(struct conn *c, const char *table);         /* for tests: -1 when it cannot */

/* --- the writer's lease: of all servers on one store one writes. Its epoch is checked inside every commit of the connection that
 * took it (RC_NOT_WRITER: another has taken it since, and nothing was written), so a writer that was away cannot commit. */
enum holder { HOLDER_GONE, HOLDER_SILENT, HOLDER_BUSY };        /* its connection: closed; open; the store works for it right now */
struct lease {
    int64_t epoch;              /* raised by every taking */
    int64_t server;             /* who took it; 0: nobody has it */
    int64_t renewed;            /* moves while the holder lives */
    bool counted;               /* and with each of its commits (ST_LEASE_COUNT): where it stands still nothing was written */
    char address[256];          /* its URL; "": not told yet */
    int64_t pid, since;         /* its connection, in the store's own terms */
};
MUST_CHECK bool store_lease_look(struct conn *c, struct lease *out, struct err *err);
MUST_CHECK bool store_lease_holder(struct conn *c, const struct lease *l, enum holder *out, struct err *err);
/* Ends the holder's connection (it may be paused in the middle of a transaction), then raises the epoch that was seen. RC_CONFLICT:
 * somebody else was faster. From here on the connection's commits are fenced, also over a reconnect. */
MUST_CHECK bool store_lease_take(struct conn *c, const struct lease *seen, int64_t server, const char *address, struct err *err);
MUST_CHECK bool store_lease_renew(struct conn *c, const char *address, struct err *err);
MUST_CHECK bool store_lease_check(struct conn *c, struct err *err);     /* is it still ours? For answers that write nothing */
MUST_CHECK bool store_lease_drop(struct conn *c, struct err *err);      /* given up: a successor need not wait */
void store_lease_forget(struct conn *c);                                /* it was lost */
