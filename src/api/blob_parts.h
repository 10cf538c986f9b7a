/* blob_parts.h - inside api/: blobs in the store itself, in parts, where a file of one server would be lost with that server.
 *
 * The folder is a cache then: what is not in it is fetched. Parts are named by their blob's digest, so that writing one twice changes
 * nothing, and they count only once the door knows the blob. */
#pragma once
#include "api/blob_file.h"
#include "store/store.h"

struct blob_lane { struct store *store; struct conn *conn; };   /* belongs to one actor; opened when it is first needed */
void blob_lane_close(struct blob_lane *l);
/* One part more of a file that is in its place, or of one that is to be. True with *whole: there was none left. */
MUST_CHECK bool blob_part_keep(struct blob_lane *l, struct blob_file *f, int64_t project, int64_t n, bool *whole);
MUST_CHECK bool blob_part_fetch(struct blob_lane *l, struct blob_file *f, int64_t project, int64_t n, bool *whole);
