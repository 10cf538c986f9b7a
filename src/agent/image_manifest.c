/* image_manifest.c - index, manifest and config of an image become the few facts that running it
 * needs. */
#include "agent/image_manifest.h"

static const struct field config_rows[] = {
    FIELD(struct image_config, entrypoint, TEXTS, .max = IMAGE_WORDS_MAX),
    FIELD(struct image_config, cmd, TEXTS, .max = IMAGE_WORDS_MAX),
    FIELD(struct image_config, env, TEXTS, .max = IMAGE_WORDS_MAX),
    FIELD(struct image_config, workdir, TEXT, .max = 4096, .when_set = true),
    FIELD(struct image_config, user, TEXT, .max = 256, .when_set = true),
};
const struct fields image_config_fields = FIELDS(image_config, config_rows);

bool image_digest_ok(const char *digest)
{
    static const char hex[] = "0123456789abcdef";
    return text_starts(digest, "sha256:") && strlen(digest) == 7 + 64
           && strspn(digest + 7, hex) == 64;
}

static bool parse(struct slice text, const char *what, struct arena *mem, struct json **out,
                  struct err *err)
{
    if (text.len > IMAGE_JSON_MAX)
        return err_set(err, RC_TOO_LARGE, "the image's %s is larger than %d bytes", what,
                       IMAGE_JSON_MAX);
    if (!json_parse(text, mem, out, err))
        return err_wrap(err, "the image's %s", what);
    return (*out)->type == JSON_OBJECT
           || err_set(err, RC_BAD_INPUT, "the image's %s is not an object", what);
}

bool image_index_parse(struct slice text, const char *architecture, struct arena *mem,
                       const char **manifest, struct err *err)
{
    struct json *doc = NULL;
    if (!parse(text, "index", mem, &doc, err))
        return false;
    const struct json *list = json_get(doc, "manifests");
    const char *found = NULL;
    size_t count = 0;
    for (const struct json *m = list && list->type == JSON_LIST ? list->first : NULL; m;
         m = m->next, count++) {
        const char *digest = json_text(m, "digest"),
                   *of = json_text(json_get(m, "platform"), "architecture");
        if (!image_digest_ok(digest))
            return err_set(err, RC_BAD_INPUT,
                           "the image's index names a manifest without a sha256 digest");
        if (!found || text_is(of, architecture))
            found = digest;
    }
    if (!found)
        return err_set(err, RC_BAD_INPUT, "the image's index names no manifest");
    *manifest = found;
    return true;
}

bool image_manifest_parse(struct slice text, struct arena *mem, struct image_manifest *out,
                          struct err *err)
{
    struct json *doc = NULL;
    if (!parse(text, "manifest", mem, &doc, err))
        return false;
    const struct json *config = json_get(doc, "config"), *layers = json_get(doc, "layers");
    struct image_manifest m
        = { .config = json_text(config, "digest"), .config_bytes = json_int(config, "size", -1) };
    if (!image_digest_ok(m.config))
        return err_set(err, RC_BAD_INPUT, "the image's manifest names no config");
    if (m.config_bytes < 0 || m.config_bytes > IMAGE_JSON_MAX)
        return err_set(err, RC_TOO_LARGE, "the image's config has a bad size");
    if (!layers || layers->type != JSON_LIST)
        return err_set(err, RC_BAD_INPUT, "the image's manifest names no layers");
    m.layers.at = ARENA_ARRAY(mem, const char *, IMAGE_LAYERS_MAX);
    for (const struct json *l = layers->first; l; l = l->next) {
        const char *digest = json_text(l, "digest");
        if (!image_digest_ok(digest))
            return err_set(err, RC_BAD_INPUT, "a layer of the image has no sha256 digest");
        if (m.layers.count == IMAGE_LAYERS_MAX)
            return err_set(err, RC_TOO_LARGE, "the image has more than %d layers",
                           IMAGE_LAYERS_MAX);
        m.layers.at[m.layers.count++] = digest;
    }
    *out = m;
    return true;
}

/* A member that is a list of texts; null and absent are both empty. */
static bool words(const struct json *object, const char *name, struct arena *mem, struct texts *out,
                  struct err *err)
{
    const struct json *list = json_get(object, name);
    struct texts t = { 0 };
    if (!list || list->type == JSON_NULL)
        return true;
    if (list->type != JSON_LIST)
        return err_set(err, RC_BAD_INPUT, "%s in the image's config is not a list", name);
    for (const struct json *w = list->first; w; w = w->next)
        t.count++;
    if (t.count > IMAGE_WORDS_MAX)
        return err_set(err, RC_TOO_LARGE, "%s in the image's config has more than %d entries", name,
                       IMAGE_WORDS_MAX);
    t.at = ARENA_ARRAY(mem, const char *, t.count);
    size_t i = 0;
    for (const struct json *w = list->first; w; w = w->next) {
        if (w->type != JSON_TEXT)
            return err_set(err, RC_BAD_INPUT, "%s in the image's config is not a list of texts",
                           name);
        t.at[i++] = w->text;
    }
    *out = t;
    return true;
}

static bool short_text(const struct json *object, const char *name, size_t max, const char **out,
                       struct err *err)
{
    const char *t = json_text(object, name);
    if (t && strlen(t) > max)
        return err_set(err, RC_TOO_LARGE, "%s in the image's config is longer than %zu bytes", name,
                       max);
    *out = text_given(t) ? t : NULL;
    return true;
}

bool image_config_parse(struct slice text, struct arena *mem, struct image_config *out,
                        struct err *err)
{
    struct json *doc = NULL;
    if (!parse(text, "config", mem, &doc, err))
        return false;
    const struct json *config = json_get(doc, "config");
    struct image_config c = { 0 };
    if (!words(config, "Entrypoint", mem, &c.entrypoint, err)
        || !words(config, "Cmd", mem, &c.cmd, err) || !words(config, "Env", mem, &c.env, err)
        || !short_text(config, "WorkingDir", 4096, &c.workdir, err)
        || !short_text(config, "User", 256, &c.user, err))
        return false;
    for (size_t i = 0; i < c.env.count; i++)
        if (!strchr(c.env.at[i], '=') || c.env.at[i][0] == '=')
            return err_set(err, RC_BAD_INPUT,
                           "Env in the image's config has an entry without a name or '='");
    if (c.workdir && c.workdir[0] != '/')
        return err_set(err, RC_BAD_INPUT, "WorkingDir in the image's config is not absolute");
    *out = c;
    return true;
}
