/* blobs.h - content-addressed bytes fetched from the server (images, work folders), kept in
 * DATA/blobs by their digest.
 *
 * A blob is asked for once however many wait for it, checked against its digest before anybody
 * sees it, and there or not there, never half. */
#pragma once
#include "base/err.h"

struct os;
struct heads;
struct blobs;
typedef void blob_fn(void *arg, const char *path, const struct err *err);   /* path NULL: *err says why */

struct blobs *blobs_new(struct os *os, const char *folder, struct heads *heads);                      /* asked of the one that is talked to */
void blobs_free(struct blobs *b);                               /* nobody who waits is called any more; NULL is fine */
void blobs_want(struct blobs *b, const char *digest, blob_fn *fn, void *arg);  /* "sha256:..."; fn may come at once */
void blobs_drop(struct blobs *b, const char *digest);           /* remove the file; whoever wants it again fetches it again */
