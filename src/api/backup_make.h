/* backup_make.h - inside api/ and for `arcus backup --data`: the disk's side of a backup, on a thread of its own.
 *
 * The rows are written to a file of its own (spool) at the speed of the disk, so that no slow reader keeps the store's snapshot open; then
 * pieces come from there and from the files of the uploads, and the checksum last. The keys are not
 * in it: who has a backup alone can read no secret and use no key. */
#pragma once
#include "os/os.h"
#include "store/dump.h"

struct backup;
struct backup *backup_new(struct os *os, struct store *store, const char *data, const char *spool, const char *version);
void backup_free(struct backup *b);                 /* removes what it wrote; NULL is fine */
AUTO_FN(struct backup *, backup_free)
MUST_CHECK bool backup_rows(struct backup *b, struct err *err);     /* first; takes its time */
void backup_stop(struct backup *b);                 /* from any thread: backup_rows ends soon, and fails */
int64_t backup_size(const struct backup *b);        /* of the whole file, once the rows are there */
size_t backup_missing(const struct backup *b);      /* uploads that the store knows and whose files are gone */
/* Appends what comes next, about `most` bytes; nothing: it was all. */
MUST_CHECK bool backup_piece(struct backup *b, size_t most, struct str *out, struct err *err);
