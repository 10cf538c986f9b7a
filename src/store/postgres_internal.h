/* postgres_internal.h - what the files of the PostgreSQL backend share. */
#pragma once
#include "store/store_internal.h"

MUST_CHECK bool url_check(const char *url, struct err *err);
void url_hide(const char *url, char *text);     /* stars over its password wherever text has it */

/* --- postgres_many.c */
struct pg_kind { bool many; int table; };       /* it has a twin for many rows; the first statement on its table, -1: on several */
struct pg_kind *many_kinds(struct sql_list list);               /* malloc'd; the store's `inside` */
void many_text(const struct sql *q, struct str *out);           /* of the twin */
struct pg_row { const struct write *write; struct pg_row *next; };
struct pg_part { struct pg_row *first, *last; size_t count, bytes; };   /* rows of one statement: one message */
struct pg_parts { struct pg_part *at; size_t count, room; };
struct pg_parts many_parts(const struct store *s, const struct write *writes, size_t count, struct arena *mem);
char *many_array(const struct pg_part *p, int column, unsigned type, struct arena *mem, int *len);   /* type: of an element */
