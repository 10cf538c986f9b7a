/* backup.h - the file of a backup: a tar, so that any tar program opens it, whose last entry is the checksum of all before it.
 *
 *   arcus-backup.json              what it is: format, version of the program, schema step, when, from which kind of store
 *   tables/NAME/000001.jsonl ...   rows. The first line of each part names the columns and their types (i, t, b), each further line is
 *                                  one row as a JSON list; bytes are base64
 *   blobs/PROJECT/HEX              what was uploaded, under its SHA-256
 *   missing/PROJECT/HEX            empty: the store knows of this upload, but its file was gone when the backup was made
 *   SHA256                         64 letters of hex and a newline: of every byte before this entry's header
 *
 * doc/backup.md tells it to people. The reader believes nothing before backup_whole() has said that all of it is there. */
#pragma once
#include "wire/digest.h"
#include "wire/tar.h"

#define BACKUP_HEAD "arcus-backup.json"
#define BACKUP_SUM "SHA256"
enum { BACKUP_FORMAT = 1, BACKUP_PART = 1 << 20, BACKUP_PART_MOST = 600 << 20 };

struct backup_head { int64_t format, steps, made_ms; const char *arcus, *store; };
void backup_head_print(struct str *out, const struct backup_head *h);
/* A format that is newer than this program's is refused with what to do. */
MUST_CHECK bool backup_head_read(struct slice text, struct arena *mem, struct backup_head *out, struct err *err);

/* Writing: an entry's header, then its bytes, then tar_pad. */
void backup_entry(struct str *out, const char *name, int64_t size, int64_t made_ms);
void backup_end(struct str *out, const char hex[static DIGEST_HEX], int64_t made_ms);   /* the last entry and the end of the tar */
enum { BACKUP_END_BYTES = 4 * TAR_BLOCK };

struct backup_reader;
struct backup_reader *backup_reader_new(const struct tar_events *events, void *arg);    /* of every entry but the checksum's */
void backup_reader_free(struct backup_reader *r);
AUTO_FN(struct backup_reader *, backup_reader_free)
MUST_CHECK bool backup_feed(struct backup_reader *r, const char *at, size_t n, struct err *err);
MUST_CHECK bool backup_whole(const struct backup_reader *r, struct err *err);           /* after the last byte */
