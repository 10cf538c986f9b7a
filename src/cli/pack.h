/* pack.h - a local file or folder as a tar stream, and a tar stream as local files. Links are
 * never followed on either side. */
#pragma once
#include "base/err.h"
#include "base/str.h"

struct sink { bool (*put)(void *arg, const char *at, size_t n, struct err *err); void *arg; };
struct pack_how {
    /* the name of the top entry; NULL: what is in the folder, without a top */
    const char *top;
    /* equal trees give equal bytes: no times, modes only as far as they can be executed */
    bool same;
    bool ignore;            /* leave out .git and what .arcusignore names */
};
MUST_CHECK bool pack(const char *path, const struct pack_how *how, const struct sink *sink,
                     struct err *err);
/* of what pack would send */
MUST_CHECK bool pack_size(const char *path, const struct pack_how *how, int64_t *bytes,
                          struct err *err);

/* .arcusignore: one glob a line; a slash in it (but at its end) ties it to the top, a slash at its
 * end means folders only, `!` takes back what a line before said, # begins a comment. */
bool ignored(const char *rules, const char *path, bool folder);

/* `target` is the path of the top entry to be: its folder must be there. With into, what comes is
 * put under it as it is named. */
struct unpack;
MUST_CHECK bool unpack_start(const char *target, bool into, struct unpack **out, struct err *err);
MUST_CHECK bool unpack_feed(struct unpack *u, const char *at, size_t n, struct err *err);
MUST_CHECK bool unpack_end(struct unpack *u, struct err *err);      /* false: it was cut short */
int64_t unpack_bytes(const struct unpack *u);
void unpack_free(struct unpack *u);
AUTO_FN(struct unpack *, unpack_free)
