/* tree.h - trees of files that a tenant filled: sent as tar, received from tar, removed. Never
 * following a link.
 *
 * Every step goes through a descriptor of the folder above (openat2 with RESOLVE_BENEATH and
 * RESOLVE_NO_SYMLINKS), so a tenant who swaps a folder for a link while we walk wins nothing.
 * All of it blocks: call it on an actor or in a helper. libc, base/ and wire/tar.h only: the
 * supervisor links it too. */
#pragma once
#include "base/err.h"
#include "base/str.h"

struct tree_sink { bool (*put)(void *arg, const char *at, size_t n, struct err *err); void *arg; };

/* `path` below dirfd ("" or "." is dirfd itself; a leading '/' is ignored) as a whole tar
 * stream. Its top entry has the last part of the path as name ("outputs" -> outputs/..., "" ->
 * ./...). A single file becomes one entry. Sockets, pipes and devices are left out. */
MUST_CHECK bool tree_send(int dirfd, const char *path, const struct tree_sink *sink, struct err *err);

/* The other way: what comes is made below `path` (which is made if missing). Set-uid bits are
 * dropped; owners are uid and gid (-1: who we are). Never writes through a link: one in the way
 * is replaced where it is the last part, refused before. */
struct tree_receiver;
MUST_CHECK bool tree_receive(int dirfd, const char *path, int64_t uid, int64_t gid, struct tree_receiver **out, struct err *err);
MUST_CHECK bool tree_receive_feed(struct tree_receiver *r, const char *at, size_t n, struct err *err);
MUST_CHECK bool tree_receive_end(struct tree_receiver *r, struct err *err);  /* false: the stream was cut short; does not free */
void tree_receiver_free(struct tree_receiver *r);
AUTO_FN(struct tree_receiver *, tree_receiver_free)

MUST_CHECK bool tree_remove(const char *path, struct err *err);     /* all of it; absent is fine; does not leave the filesystem */
int64_t tree_bytes(const char *path, int64_t enough);               /* disk use, counted until `enough`; at least 4 KiB for each file */
int tree_open(int dirfd, const char *path, int flags, unsigned mode);   /* openat2 as told above; -1 and errno */
