/* archive.h - segments: rows that are never dropped, moved out of the tables as JSON lines, in the store itself, so that every
 * server sees them and one transaction moves them. Each has a hash over the one before it and all of its own. */
#pragma once
#include "control/audit.h"

#define ARCHIVE_AUDIT "audit"
#define ARCHIVE_USAGE "usage"
enum { ARCHIVE_ROWS_MOST = 4096 };

struct segment { const char *kind; int64_t segment, first, last, from_ms, to_ms, entries; const char *chain, *lines; };
void archive_mac(const struct control *c, const char *before, const struct segment *s, char out[static MAC_HEX]);
/* In a prepare: the number and hash that the next segment of this kind gets; its chain is filled. */
MUST_CHECK bool archive_next(struct call *c, struct segment *s, struct err *err);
void archive_add(struct call *c, const struct segment *s);      /* in a write */
/* Checks one segment. *what: what is wrong, or NULL; *next: the next one, 0: this was the last. */
MUST_CHECK bool archive_check(struct call *c, const char *kind, int64_t segment, int64_t *rows, const char **chain, const char **what,
                              int64_t *next, struct err *err);
