/* cdi.c - the fields of a CDI spec (0.3 to 0.8) and what must hold of them beyond their types. */
#include "agent/cdi.h"
#include "wire/bind.h"
#include "wire/yaml.h"
#include <stdlib.h>

enum { MINOR_FIRST = 3, MINOR_LAST = 8, DEVICE_MOST = 1 << 20 };

static const struct field node_rows[] = {
    FIELD(struct cdi_node, path, TEXT, .required = true, .max = CDI_PATH),
    FIELD_AS(struct cdi_node, host, "hostPath", TEXT, .max = CDI_PATH, .when_set = true),
    FIELD(struct cdi_node, type, TEXT, .max = 1, .when_set = true),
    FIELD(struct cdi_node, permissions, TEXT, .max = 3, .when_set = true),
    FIELD(struct cdi_node, major, INT, .min = 0, .max = DEVICE_MOST, .when_set = true),
    FIELD(struct cdi_node, minor, INT, .min = 0, .max = DEVICE_MOST, .when_set = true),
    FIELD_AS(struct cdi_node, mode, "fileMode", INT, .min = 0, .max = 0177777, .when_set = true),
    FIELD(struct cdi_node, uid, INT, .min = 0, .max = UINT32_MAX, .when_set = true),
    FIELD(struct cdi_node, gid, INT, .min = 0, .max = UINT32_MAX, .when_set = true),
};
static const struct fields node_fields = FIELDS(cdi_node, node_rows);

static const struct field mount_rows[] = {
    FIELD_AS(struct cdi_mount, host, "hostPath", TEXT, .required = true, .max = CDI_PATH),
    FIELD_AS(struct cdi_mount, path, "containerPath", TEXT, .required = true, .max = CDI_PATH),
    FIELD(struct cdi_mount, type, TEXT, .max = 32, .when_set = true),
    FIELD(struct cdi_mount, options, TEXTS, .max = CDI_WORDS, .when_set = true),
};
static const struct fields mount_fields = FIELDS(cdi_mount, mount_rows);

static const struct field hook_rows[] = {
    FIELD_AS(struct cdi_hook, name, "hookName", TEXT, .required = true, .max = 64),
    FIELD(struct cdi_hook, path, TEXT, .required = true, .max = CDI_PATH),
    FIELD(struct cdi_hook, args, TEXTS, .max = CDI_ARGS, .when_set = true),
    FIELD(struct cdi_hook, env, TEXTS, .max = CDI_WORDS, .when_set = true),
    FIELD(struct cdi_hook, timeout, INT, .min = 0, .max = 86400, .when_set = true),
};
static const struct fields hook_fields = FIELDS(cdi_hook, hook_rows);

static const struct field edits_rows[] = {
    FIELD(struct cdi_edits, env, TEXTS, .max = CDI_WORDS, .when_set = true),
    FIELD_AS(struct cdi_edits, nodes, "deviceNodes", OBJECTS, .sub = &node_fields, .max = CDI_NODES, .when_set = true),
    FIELD(struct cdi_edits, mounts, OBJECTS, .sub = &mount_fields, .max = CDI_MOUNTS, .when_set = true),
    FIELD(struct cdi_edits, hooks, OBJECTS, .sub = &hook_fields, .max = CDI_WORDS, .when_set = true),
    FIELD_AS(struct cdi_edits, rdt, "intelRdt", JSON, .when_set = true),
    FIELD_AS(struct cdi_edits, groups, "additionalGids", JSON, .when_set = true),
};
static const struct fields edits_fields = FIELDS(cdi_edits, edits_rows);

static const struct field device_rows[] = {
    FIELD(struct cdi_device, name, TEXT, .required = true, .max = 128),
    FIELD(struct cdi_device, annotations, PAIRS, .when_set = true),
    FIELD_AS(struct cdi_device, edits, "containerEdits", OBJECT, .sub = &edits_fields, .when_set = true),
};
static const struct fields device_fields = FIELDS(cdi_device, device_rows);

static const struct field spec_rows[] = {
    FIELD_AS(struct cdi_spec, version, "cdiVersion", TEXT, .required = true, .max = 16),
    FIELD(struct cdi_spec, kind, TEXT, .required = true, .max = 128),
    FIELD(struct cdi_spec, annotations, PAIRS, .when_set = true),
    FIELD(struct cdi_spec, devices, OBJECTS, .required = true, .sub = &device_fields, .max = CDI_DEVICES),
    FIELD_AS(struct cdi_spec, edits, "containerEdits", OBJECT, .sub = &edits_fields, .when_set = true),
};
const struct fields cdi_spec_fields = FIELDS(cdi_spec, spec_rows);

/* --- what must hold beyond that */

bool path_is_plain(const char *path)
{
    if (!path || path[0] != '/' || !path[1] || strlen(path) >= CDI_PATH)
        return false;
    for (const char *at = path; *at;) {
        size_t n = strcspn(++at, "/");
        if (n == 0 || (n == 1 && at[0] == '.') || (n == 2 && at[0] == '.' && at[1] == '.'))
            return false;
        for (size_t i = 0; i < n; i++)
            if ((unsigned char)at[i] < ' ' || at[i] == 0x7f)
                return false;
        at += n;
    }
    return true;
}

static bool is_known_version(const char *v)
{
    return text_starts(v, "0.") && v[2] >= '0' + MINOR_FIRST && v[2] <= '0' + MINOR_LAST && v[3] == '.' && v[4]
           && strspn(v + 4, "0123456789") == strlen(v + 4);
}

static bool is_name(const char *s, size_t n)
{
    static const char ends[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    size_t good = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:-");
    return n && good >= n && strchr(ends, s[0]) && strchr(ends, s[n - 1]);
}

static bool node_check(const struct cdi_node *n, const char *owner, struct err *err)
{
    if (!path_is_plain(n->path) || !text_starts(n->path, "/dev/"))
        return err_set(err, RC_BAD_INPUT, "%s: deviceNodes.path: '%.80s' is no path below /dev", owner, n->path);
    if (n->host && !path_is_plain(n->host))
        return err_set(err, RC_BAD_INPUT, "%s: deviceNodes.hostPath: '%.80s' is no absolute path", owner, n->host);
    if (n->type && !text_is(n->type, "c") && !text_is(n->type, "b") && !text_is(n->type, "u"))
        return err_set(err, RC_BAD_INPUT, "%s: deviceNodes.type: expected c, u or b, not '%s'", owner, n->type);
    return !n->permissions || strspn(n->permissions, "rwm") == strlen(n->permissions)
           || err_set(err, RC_BAD_INPUT, "%s: deviceNodes.permissions: expected some of rwm, not '%s'", owner, n->permissions);
}

static bool mount_check(const struct cdi_mount *m, const char *owner, struct err *err)
{
    static const char *const plain[] = { "ro",      "rw",      "bind",    "rbind",    "nosuid",   "nodev",  "noexec",
                                         "suid",    "dev",     "exec",    "private",  "rprivate", "shared", "rshared",
                                         "slave",   "rslave",  "noatime", "relatime" };
    if (!path_is_plain(m->host))
        return err_set(err, RC_BAD_INPUT, "%s: mounts.hostPath: '%.80s' is no absolute path", owner, m->host);
    if (!path_is_plain(m->path))
        return err_set(err, RC_BAD_INPUT, "%s: mounts.containerPath: '%.80s' is no absolute path", owner, m->path);
    if (text_given(m->type) && !text_is(m->type, "bind") && !text_is(m->type, "none"))
        return err_set(err, RC_BAD_INPUT, "%s: mounts.type: only bind mounts are made, not '%s'", owner, m->type);
    for (size_t i = 0; i < m->options.count; i++) {
        size_t k = 0;
        while (k < COUNT(plain) && !text_is(plain[k], m->options.at[i]))
            k++;
        if (k == COUNT(plain))
            return err_set(err, RC_BAD_INPUT, "%s: mounts.options: '%.40s' is not known", owner, m->options.at[i]);
    }
    return true;
}

static bool env_check(const char *entry, const char *owner, struct err *err)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
    size_t n = strspn(entry, letters);
    return (n > 0 && entry[n] == '=') || err_set(err, RC_BAD_INPUT, "%s: env: '%.60s' is no NAME=VALUE", owner, entry);
}

static bool edits_check(const struct cdi_edits *e, const char *owner, struct err *err)
{
    const struct cdi_node *n = e->nodes.at;
    const struct cdi_mount *m = e->mounts.at;
    const struct cdi_hook *h = e->hooks.at;
    for (size_t i = 0; i < e->env.count; i++)
        if (!env_check(e->env.at[i], owner, err))
            return false;
    for (size_t i = 0; i < e->nodes.count; i++)
        if (!node_check(&n[i], owner, err))
            return false;
    for (size_t i = 0; i < e->mounts.count; i++)
        if (!mount_check(&m[i], owner, err))
            return false;
    for (size_t i = 0; i < e->hooks.count; i++)
        if (!path_is_plain(h[i].path))
            return err_set(err, RC_BAD_INPUT, "%s: hooks.path: '%.80s' is no absolute path", owner, h[i].path);
    return true;
}

static bool spec_check(const struct cdi_spec *s, struct err *err)
{
    const struct cdi_device *d = s->devices.at;
    const char *slash = strchr(s->kind, '/');
    if (!is_known_version(s->version))
        return err_field(err, "cdiVersion", "cdiVersion: 0.%d to 0.%d are known, not '%s'", MINOR_FIRST, MINOR_LAST, s->version);
    if (!slash || !is_name(s->kind, (size_t)(slash - s->kind)) || !is_name(slash + 1, strlen(slash + 1)))
        return err_field(err, "kind", "kind: expected such as nvidia.com/gpu, not '%.60s'", s->kind);
    if (!s->devices.count)
        return err_field(err, "devices", "devices: there is none");
    for (size_t i = 0; i < s->devices.count; i++) {
        if (!is_name(d[i].name, strlen(d[i].name)))
            return err_field(err, "name", "devices.name: '%.60s' is no name of a device", d[i].name);
        for (size_t k = 0; k < i; k++)
            if (text_is(d[i].name, d[k].name))
                return err_field(err, "name", "devices.name: '%.60s' is there twice", d[i].name);
        if (!edits_check(&d[i].edits, d[i].name, err))
            return false;
    }
    return edits_check(&s->edits, "containerEdits", err);
}

static bool read_doc(const char *file, struct slice text, struct arena *mem, struct json **doc, struct err *err)
{
    size_t n = strlen(file);
    bool json = n > 5 && text_is(file + n - 5, ".json");
    return json ? json_parse(text, mem, doc, err) : yaml_parse(text, mem, doc, err);
}

const char *cdi_kind(const char *file, struct slice text, struct arena *mem)
{
    struct json *doc = NULL;
    struct err ignored;
    return text.len <= CDI_BYTES && read_doc(file, text, mem, &doc, &ignored) ? json_text(doc, "kind") : NULL;
}

bool cdi_parse(const char *file, struct slice text, struct arena *mem, struct cdi_spec *out, struct err *err)
{
    struct cdi_spec s = { 0 };
    struct json *doc = NULL;
    if (text.len > CDI_BYTES)
        return err_set(err, RC_TOO_LARGE, "%s: larger than %d bytes", file, CDI_BYTES);
    if (!read_doc(file, text, mem, &doc, err) || !bind_read(doc, &cdi_spec_fields, mem, &s, NULL, err)
        || !spec_check(&s, err))
        return err_wrap(err, "%s", file);
    s.file = arena_text(mem, file);
    *out = s;
    return true;
}

const struct cdi_device *cdi_find(const struct cdi_spec *s, const char *name)
{
    const struct cdi_device *d = s->devices.at;
    for (size_t i = 0; i < s->devices.count; i++)
        if (text_is(d[i].name, name))
            return &d[i];
    return NULL;
}

/* --- hooks */

/* What the words of NVIDIA's hook program ask for. The device nodes of a task cannot be changed from inside in any case, and
 * folders below /dev are open; newer CUDA libraries that an image brings along are used if its own LD_LIBRARY_PATH says so. */
static const struct {
    const char *word;
    bool links, folders;
} known_hooks[] = {
    { "create-symlinks", .links = true },
    { "update-ldcache", .folders = true },
    { "chmod" },
    { "enable-cuda-compat" },
    { "disable-device-node-modification" },
};

static const char *value_of(const struct texts *args, size_t *i, const char *flag)
{
    size_t n = strlen(flag);
    const char *a = args->at[*i];
    if (text_is(a, flag) && *i + 1 < args->count)
        return args->at[++*i];
    return text_starts(a, flag) && a[n] == '=' ? a + n + 1 : NULL;
}

static bool take_link(const char *text, struct arena *mem, struct cdi_effect *out)
{
    const char *sep = strstr(text, "::");
    if (!sep || sep == text || !path_is_plain(sep + 2))
        return false;
    out->links.at[out->links.count++] = (struct pair){ arena_text(mem, sep + 2), arena_bytes(mem, text, (size_t)(sep - text)) };
    return true;
}

bool cdi_hook_effect(const struct cdi_hook *h, struct arena *mem, struct cdi_effect *out, struct err *err)
{
    const char *slash = strrchr(h->path, '/'), *program = slash ? slash + 1 : h->path;
    size_t at = text_is(program, "nvidia-cdi-hook") ? 1 : text_is(program, "nvidia-ctk") && h->args.count > 1 && text_is(h->args.at[1], "hook") ? 2 : 0;
    const char *word = at && at < h->args.count ? h->args.at[at] : "";
    size_t k = 0;
    while (k < COUNT(known_hooks) && !text_is(known_hooks[k].word, word))
        k++;
    if (k == COUNT(known_hooks))
        return err_set(err, RC_UNAVAILABLE, "it asks for the hook '%.60s%s%.40s', and hooks are not run", h->path, *word ? " " : "", word);
    struct cdi_effect e = { .links.at = ARENA_ARRAY(mem, struct pair, h->args.count), .folders.at = ARENA_ARRAY(mem, const char *, h->args.count) };
    for (size_t i = at + 1; i < h->args.count; i++) {
        const char *link = known_hooks[k].links ? value_of(&h->args, &i, "--link") : NULL;
        const char *folder = known_hooks[k].folders ? value_of(&h->args, &i, "--folder") : NULL;
        if ((link && !take_link(link, mem, &e)) || (folder && !path_is_plain(folder)))
            return err_set(err, RC_BAD_INPUT, "hooks.args: '%.80s' makes no sense", link ? link : folder);
        if (folder)
            e.folders.at[e.folders.count++] = folder;
    }
    *out = e;
    return true;
}
