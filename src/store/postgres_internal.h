/* postgres_internal.h - what the files of the PostgreSQL backend share. */
#pragma once
#include "store/store_internal.h"
#include "store/libpq.h"

struct pg_conn { struct conn base; PGconn *db; bool prepared, fence; };    /* fence: that statement is prepared on db */
static inline struct pg_conn *pg_inside(struct conn *c) { return CONTAINER(c, struct pg_conn, base); }
AUTO_FN(PGresult *, PQclear)

/* postgres.c */
bool pg_fails(const struct pg_conn *c, const PGresult *r, struct err *err);     /* always false */
bool pg_succeeded(const PGresult *r);
bool pg_alive(struct pg_conn *c, struct err *err);      /* connected, again if it must */

/* postgres_lease.c. The fence is the first statement of a commit that is sent in one go, so it must fail, not just find nothing. */
bool lease_send_fence(struct pg_conn *c);
bool lease_fenced(const PGresult *r);                   /* the fence's own failure */
bool lease_move(struct pg_conn *c, struct err *err);    /* the holder has a new connection */
bool pg_self(struct conn *c, int64_t *pid, int64_t *since, struct err *err);
bool pg_holder(struct conn *c, int64_t pid, int64_t since, enum holder *out, struct err *err);
bool pg_evict(struct conn *c, int64_t pid, int64_t since, struct err *err);

MUST_CHECK bool url_check(const char *url, struct err *err);
void url_hide(const char *url, char *text);     /* stars over its password wherever text has it */

/* --- postgres_many.c */
enum { PG_KEYS = 4 };
struct pg_kind {
    bool many;                  /* it has a twin for many rows */
    int table;                  /* the first statement on its table, -1: on several */
    int keys[PG_KEYS], key_count;       /* of an update with a twin: the values that say which row */
};
struct pg_kind *many_kinds(struct sql_list list);               /* malloc'd; the store's `inside` */
void many_text(const struct sql *q, struct str *out);           /* of the twin */
struct pg_row { const struct write *write; struct pg_row *next; };
struct pg_part { struct pg_row *first, *last; size_t count, bytes; };   /* rows of one statement: one message */
struct pg_parts { struct pg_part *at; size_t count, room; };
struct pg_parts many_parts(const struct store *s, const struct write *writes, size_t count, struct arena *mem);
char *many_array(const struct pg_part *p, int column, unsigned type, struct arena *mem, int *len);   /* type: of an element */
