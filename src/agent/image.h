/* image.h - images ready to be run: fetched or pulled, unpacked once, kept by digest under DATA/images.
 *
 *   DATA/images/HEX/rootfs, image.json (struct image_config)      DATA/images/refs/HASH: the digest a tag stood for
 *   DATA/images/archive-HEX/...
 *
 * HEX is the digest of the registry's manifest, archive-HEX that of an imported archive: tenants share the first, and whoever may
 * have the second is the server's to say. skopeo reads archives and registries, umoci unpacks;
 * both run on a workshop's thread, never on the path of a start that finds its image here. */
#pragma once
#include "agent/blobs.h"
#include "agent/image_manifest.h"

struct image {
    const char *root;               /* the unpacked tree */
    struct image_config config;
    struct slice passwd, group;     /* of the image, "" where it has none */
    bool sudo;                      /* it has a set-uid sudo or doas */
};
struct images;
typedef void image_fn(void *arg, const struct image *image, const struct err *err);    /* image NULL: RC_NOT_FOUND or another reason */

MUST_CHECK bool images_open(struct os *os, const char *data, struct blobs *blobs, struct images **out, struct err *err);
void images_close(struct images *im);                           /* nobody who waits is called any more; NULL is fine */
/* blob: digest of an imported archive, or NULL: `reference` is one of a registry. fn may come at
 * once; the image lives as long as *im. */
void images_want(struct images *im, const char *reference, const char *blob, image_fn *fn, void *arg);
bool image_reference_ok(const char *reference, struct err *err);    /* safe to be given to a helper */
MUST_CHECK bool image_load(const char *folder, struct arena *mem, struct image *out, struct err *err);
bool image_used(const char *root);                  /* marks an unpacked image as used now; false: it is not there */
/* Blocks. archive: a file, or NULL: pull `reference`, which names a digest (image_exact). most: bytes it may take on the disk,
 * RC_TOO_LARGE beyond. Leaves
 * an unpacked image in `folder`. */
MUST_CHECK bool image_build(struct os *os, const char *archive, const char *reference, const char *folder, int64_t most, struct err *err);
#define IMAGE_MOST         (INT64_C(64) << 30)      /* unpacked, with what it is unpacked from */
#define IMAGE_DISK_RESERVE (INT64_C(1) << 30)       /* what is left of the disk belongs to what runs */
/* The same image by its digest alone, whatever the registry says about the tag by now. */
const char *image_exact(const char *reference, const char *digest, struct arena *mem);
/* Blocks: what a tag stands for now, "sha256:...". */
MUST_CHECK bool image_resolve(struct os *os, const char *reference, struct arena *mem, const char **digest, struct err *err);
