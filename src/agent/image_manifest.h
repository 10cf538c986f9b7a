/* image_manifest.h - the JSON documents of an OCI image, read without trust: which manifest,
 * which layers, what to run.
 *
 * Pure. Anybody may write such a document, so unknown members are skipped, everything kept is
 * bounded, and what is not an image is refused with a sentence that says what is missing. */
#pragma once
#include "wire/json.h"

enum { IMAGE_JSON_MAX = 4 << 20, IMAGE_LAYERS_MAX = 512, IMAGE_WORDS_MAX = 1024 };

struct image_config {
    struct texts entrypoint, cmd;
    struct texts env;                   /* NAME=value */
    const char *workdir, *user;         /* NULL: not said */
};
struct image_manifest { const char *config; int64_t config_bytes; struct texts layers; };   /* digests, "sha256:..." */

/* index.json of a layout: the digest of its image for this machine; a list of several is chosen
 * from by architecture ("amd64"). */
MUST_CHECK bool image_index_parse(struct slice text, const char *architecture, struct arena *mem, const char **manifest, struct err *err);
MUST_CHECK bool image_manifest_parse(struct slice text, struct arena *mem, struct image_manifest *out, struct err *err);
MUST_CHECK bool image_config_parse(struct slice text, struct arena *mem, struct image_config *out, struct err *err);
bool image_digest_ok(const char *digest);               /* sha256: and 64 hex letters: safe as a part of a path */
extern const struct fields image_config_fields;         /* how the unpacked cache keeps it */
