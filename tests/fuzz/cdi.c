/* cdi.c - a CDI spec, as JSON and as YAML: whatever is taken has plain paths, bounded lists and hooks whose effect can be asked for. */
#include "agent/cdi.h"
#include "fuzz.h"

static void check_edits(const struct cdi_edits *e, struct arena *mem)
{
    const struct cdi_node *n = e->nodes.at;
    const struct cdi_mount *m = e->mounts.at;
    const struct cdi_hook *h = e->hooks.at;
    MUST(e->nodes.count <= CDI_NODES && e->mounts.count <= CDI_MOUNTS && e->hooks.count <= CDI_WORDS && e->env.count <= CDI_WORDS);
    for (size_t i = 0; i < e->nodes.count; i++)
        MUST(path_is_plain(n[i].path) && text_starts(n[i].path, "/dev/") && (!n[i].host || path_is_plain(n[i].host)) && n[i].major >= 0 && n[i].minor >= 0);
    for (size_t i = 0; i < e->mounts.count; i++)
        MUST(path_is_plain(m[i].host) && path_is_plain(m[i].path));
    for (size_t i = 0; i < e->hooks.count; i++) {
        struct cdi_effect effect = { 0 };
        struct err err = { 0 };
        if (!cdi_hook_effect(&h[i], mem, &effect, &err)) {
            MUST(err.text[0] && !effect.links.count && !effect.folders.count);
            continue;
        }
        for (size_t k = 0; k < effect.links.count; k++)
            MUST(path_is_plain(effect.links.at[k].key) && effect.links.at[k].value[0]);
        for (size_t k = 0; k < effect.folders.count; k++)
            MUST(path_is_plain(effect.folders.at[k]));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const files[] = { "spec.json", "spec.yaml" };
    for (size_t i = 0; i < COUNT(files); i++) {
        AUTO(arena_free) struct arena *mem = arena_new();
        struct cdi_spec s = { 0 };
        struct err err = { 0 };
        if (!cdi_parse(files[i], (struct slice){ (const char *)data, size }, mem, &s, &err)) {
            MUST(text_starts(err.text, files[i]) && !s.kind);
            continue;
        }
        const struct cdi_device *d = s.devices.at;
        MUST(s.devices.count > 0 && s.devices.count <= CDI_DEVICES);
        for (size_t k = 0; k < s.devices.count; k++)
            check_edits(&d[k].edits, mem);
        check_edits(&s.edits, mem);
    }
    return 0;
}
