/* tar.h - POSIX ustar with pax records for long names: header block <-> struct. Pure; who walks a tree is elsewhere.
 *
 * Names are checked when read: relative, no "..", no empty part, no NUL. Links keep their target as text; the
 * unpacker must not follow them. Types: file, folder, symlink, hard link; anything else is refused. */
#pragma once
#include "base/err.h"
#include "base/str.h"

enum { TAR_BLOCK = 512 };
enum tar_type { TAR_FILE, TAR_DIR, TAR_SYMLINK, TAR_HARDLINK };
struct tar_entry { enum tar_type type; const char *name, *target; unsigned mode; int64_t size, mtime_s; };

void tar_header(struct str *out, const struct tar_entry *e);        /* whole blocks; pax record first when a name is long */
void tar_pad(struct str *out, int64_t size);                        /* zeros up to the next block behind size bytes of data */
void tar_end(struct str *out);

struct tar_reader;
struct tar_events {
    bool (*on_entry)(void *arg, const struct tar_entry *e, struct err *err);
    bool (*on_data)(void *arg, const char *at, size_t n, struct err *err);
    bool (*on_entry_end)(void *arg, struct err *err);
};
struct tar_reader *tar_reader_new(const struct tar_events *events, void *arg);
void tar_reader_free(struct tar_reader *r);
AUTO_FN(struct tar_reader *, tar_reader_free)
MUST_CHECK bool tar_feed(struct tar_reader *r, const char *at, size_t n, struct err *err);
bool tar_complete(const struct tar_reader *r);                      /* the end blocks have been seen */
