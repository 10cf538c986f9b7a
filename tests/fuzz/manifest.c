/* manifest.c - index, manifest and config of an image, which anybody may have written. */
#include "agent/image_manifest.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct slice text = { (const char *)data, size };
    struct image_manifest manifest = { 0 };
    struct image_config config = { 0 };
    struct err err = { 0 };
    const char *digest = NULL;
    if (image_index_parse(text, "amd64", mem, &digest, &err))
        MUST(image_digest_ok(digest));
    if (image_manifest_parse(text, mem, &manifest, &err)) {
        MUST(image_digest_ok(manifest.config) && manifest.layers.count <= IMAGE_LAYERS_MAX);
        for (size_t i = 0; i < manifest.layers.count; i++)
            MUST(image_digest_ok(manifest.layers.at[i]));
    }
    if (image_config_parse(text, mem, &config, &err))
        MUST(config.entrypoint.count <= IMAGE_WORDS_MAX && config.cmd.count <= IMAGE_WORDS_MAX && config.env.count <= IMAGE_WORDS_MAX);
    return 0;
}
