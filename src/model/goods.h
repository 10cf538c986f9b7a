/* goods.h - bytes that a task needs and that a node may have already: images and work folders.
 *
 * Each has a number, the first 64 bits of a digest: of the blob of an imported image or a work folder, else of the image's
 * reference as it is written in the job. Two of the same number cost a task a download at the worst, so that is enough. A node
 * tells the largest of what it has, in hello; nothing of it is kept in the store. */
#pragma once
#include "base/arena.h"
#include "base/base.h"

enum { GOODS_MOST = 32, GOODS_LEAST_MIB = 16, GOOD_TEXT = 40 };

struct good { int64_t key, mib; };
int64_t good_of_digest(const char *digest);             /* "sha256:..."; 0: it is none */
int64_t good_of_reference(const char *reference);       /* of a registry's image */
const char *good_text(char out[static GOOD_TEXT], const struct good *g);    /* "0123456789abcdef:MIB" */
bool good_parse(const char *text, struct good *out);
