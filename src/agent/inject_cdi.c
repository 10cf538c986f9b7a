/* inject_cdi.c - the folders of CDI specs, and what a spec says of a GPU as a list of nodes and files.
 *
 * A spec is root's or nobody's: one that others may write is left out. Where two folders name a device the later one counts, as the
 * specification has it; within one folder two files that name it give nothing. Links that a hook or ldconfig would have made
 * in the container lie in the driver's own folder instead, so nothing of the tenant's tree is written to. */
#include "agent/inject_internal.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const folders[] = { "/etc/cdi", "/var/run/cdi" };
static const struct {
    const char *vendor, *kind;
} kinds[] = { { "nvidia", "nvidia.com/gpu" }, { "amd", "amd.com/gpu" }, { "intel", "intel.com/gpu" } };

static size_t folder_list(const struct inject *in, struct arena *mem, const char *out[static COUNT(folders)])
{
    if (text_is(in->cdi, "off"))
        return 0;
    if (!text_is(in->cdi, "auto"))
        return out[0] = in->cdi, 1;
    for (size_t i = 0; i < COUNT(folders); i++)
        out[i] = in_root(in, mem, folders[i]);
    return COUNT(folders);
}

static bool is_spec(const char *name)
{
    const char *dot = strrchr(name, '.');
    return name[0] != '.' && dot && (text_is(dot, ".json") || text_is(dot, ".yaml"));
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static size_t list_specs(const char *folder, struct arena *mem, const char *out[static SPECS_MOST])
{
    DIR *d = opendir(folder);
    size_t n = 0;
    for (struct dirent *e; d && n < SPECS_MOST && (e = readdir(d));)
        if (is_spec(e->d_name))
            out[n++] = arena_printf(mem, "%s/%s", folder, e->d_name);
    if (d)
        closedir(d);
    qsort(out, n, sizeof *out, by_name);
    return n;
}

static uint64_t mix(uint64_t h, const char *path)
{
    struct stat st;
    if (stat(path, &st) == -1)
        return h * 31 + 1;
    const uint64_t parts[] = { st.st_ino, (uint64_t)st.st_size, (uint64_t)st.st_mtim.tv_sec, (uint64_t)st.st_mtim.tv_nsec, (uint64_t)st.st_ctim.tv_nsec };
    for (size_t i = 0; i < COUNT(parts); i++)
        h = (h ^ parts[i]) * 0x100000001b3ULL;
    return h;
}

uint64_t cdi_stamp(const struct inject *in)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    const char *in_folders[COUNT(folders)], *files[SPECS_MOST];
    uint64_t h = 0xcbf29ce484222325ULL;
    for (size_t i = 0, n = folder_list(in, mem, in_folders); i < n; i++) {
        h = mix(h, in_folders[i]);
        for (size_t k = 0, count = list_specs(in_folders[i], mem, files); k < count; k++)
            h = mix(h, files[k]);
    }
    return h;
}

static bool read_spec(const char *path, struct arena *mem, struct slice *out, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    bool ok = fd != -1 && fstat(fd, &st) == 0;
    if (!ok)
        err_errno(err, "%s", path);
    else if (!S_ISREG(st.st_mode) || st.st_uid != 0 || (st.st_mode & 022))
        ok = err_set(err, RC_UNAVAILABLE, "%s: only root may be able to change it", path);
    else if (st.st_size > CDI_BYTES)
        ok = err_set(err, RC_TOO_LARGE, "%s: larger than %d bytes", path, CDI_BYTES);
    char *text = ok ? ARENA_ARRAY(mem, char, (size_t)st.st_size + 1) : NULL;
    ssize_t n = ok ? read(fd, text, (size_t)st.st_size) : -1;
    if (fd != -1)
        close(fd);
    if (ok && n != st.st_size)
        return err_set(err, RC_UNAVAILABLE, "%s: changed while it was read", path);
    *out = (struct slice){ text, (size_t)MAX(n, 0) };
    return ok;
}

/* Of network cards and the like: how it is written is nothing to us. */
static bool is_others(const char *file, struct slice text)
{
    AUTO(arena_free) struct arena *once = arena_new();
    const char *kind = cdi_kind(file, text, once);
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (text_is(kind, kinds[i].kind))
            return false;
    return kind;
}

void cdi_read_all(struct inject *in)
{
    const char *in_folders[COUNT(folders)], *files[SPECS_MOST];
    in->spec_count = in->bad_count = 0;
    for (size_t i = 0, n = folder_list(in, in->mem, in_folders); i < n; i++)
        for (size_t k = 0, count = list_specs(in_folders[i], in->mem, files); k < count; k++) {
            struct slice text;
            struct err err = { 0 };
            if (in->spec_count == SPECS_MOST || in->bad_count == SPECS_MOST)
                return;
            in->rank[in->spec_count] = (int)i;
            bool read = read_spec(files[k], in->mem, &text, &err);
            if (read && is_others(files[k], text))
                continue;
            if (read && cdi_parse(files[k], text, in->mem, &in->specs[in->spec_count], &err))
                in->spec_count++;
            else
                in->bad[in->bad_count++] = arena_text(in->mem, err.text);
        }
}

/* --- from a spec to a list */

static bool is_library(const char *path)
{
    const char *slash = strrchr(path, '/'), *so = strstr(slash ? slash : path, ".so");
    return so && (so[3] == 0 || so[3] == '.');
}

/* ldconfig has made them on the node: libcuda.so.1 beside libcuda.so.580.159.03. */
static bool links_beside(struct gather *g, size_t file, struct err *err)
{
    const struct plan_file *f = &g->files[file];
    const char *slash = strrchr(f->source, '/'), *base = slash + 1, *so = strstr(base, ".so");
    char folder[PATH_MAX], path[PATH_MAX], real[PATH_MAX];
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - f->source), f->source);
    DIR *d = opendir(folder);
    bool ok = true;
    for (struct dirent *e; ok && d && (e = readdir(d));) {
        if (e->d_type != DT_LNK || strncmp(e->d_name, base, (size_t)(so - base) + 3) != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (realpath(path, real) && text_is(real, f->source))
            ok = gather_link(g, e->d_name, f->path, err);
    }
    if (d)
        closedir(d);
    return ok;
}

static bool hooks_gather(struct gather *g, const struct cdi_edits *e, struct err *err)
{
    const struct cdi_hook *h = e->hooks.at;
    for (size_t i = 0; i < e->hooks.count; i++) {
        struct cdi_effect effect;
        if (!cdi_hook_effect(&h[i], g->mem, &effect, err))
            return false;
        for (size_t k = 0; !g->host && k < effect.folders.count; k++)
            if (!gather_folder(g, effect.folders.at[k], err))
                return false;
        for (size_t k = 0; !g->host && k < effect.links.count; k++) {
            const char *link = effect.links.at[k].key, *says = effect.links.at[k].value, *slash = strrchr(link, '/');
            if (says[0] != '/')
                says = arena_printf(g->mem, "%.*s/%s", (int)(slash - link), link, says);
            if (is_library(link) && !gather_link(g, slash + 1, says, err))
                return false;
        }
    }
    return true;
}

static bool edits_gather(struct gather *g, const struct cdi_edits *e, struct err *err)
{
    const struct cdi_node *n = e->nodes.at;
    const struct cdi_mount *m = e->mounts.at;
    if (text_given(e->rdt))
        return err_set(err, RC_UNAVAILABLE, "it asks for intelRdt, which is not given");
    for (size_t i = 0; i < e->nodes.count; i++) {
        size_t before = g->node_count;
        if (!gather_node(g, text_given(n[i].host) ? n[i].host : n[i].path, n[i].path, false, err))
            return false;
        const struct plan_node *got = &g->nodes[before];
        if (g->node_count > before && (n[i].major || n[i].minor) && (got->major != n[i].major || got->minor != n[i].minor))
            return err_set(err, RC_UNAVAILABLE, "%s is device %lld:%lld, not %lld:%lld", got->source, (long long)got->major, (long long)got->minor,
                           (long long)n[i].major, (long long)n[i].minor);
    }
    for (size_t i = 0; i < e->mounts.count; i++) {
        size_t before = g->file_count;
        if (g->host && text_is(m[i].host, m[i].path))
            continue; /* what a task sees of the node's root is decided there (mount_root.c), and most of it cannot be written */
        if (!gather_file(g, m[i].host, m[i].path, g->host, err)
            || (!g->host && g->file_count > before && is_library(m[i].path) && !links_beside(g, before, err)))
            return false;
    }
    for (size_t i = 0; i < e->env.count; i++)
        if (!gather_env(g, e->env.at[i], err))
            return false;
    return hooks_gather(g, e, err);
}

static const struct cdi_spec *spec_of(struct gather *g, const char *kind, const char *name, const struct cdi_device **device, struct err *err)
{
    const struct inject *in = g->in;
    const struct cdi_spec *found = NULL;
    int rank = -1;
    for (size_t i = 0; name && i < in->spec_count; i++) {
        const struct cdi_device *d = text_is(in->specs[i].kind, kind) ? cdi_find(&in->specs[i], name) : NULL;
        if (d && rank == in->rank[i])
            err_set(err, RC_UNAVAILABLE, "%s and %s both name %s=%s", found->file, in->specs[i].file, kind, name);
        if (!d || in->rank[i] <= rank)
            continue;
        *err = (struct err){ 0 };
        found = &in->specs[i];
        rank = in->rank[i];
        *device = d;
    }
    return found;
}

/* Numbers in a spec are the driver's, in the order of the day it was written: the driver itself has the last word. */
static bool agrees(const struct inject_gpu *gpu, const struct cdi_device *d, struct err *err)
{
    const struct cdi_node *n = d->edits.nodes.at;
    const char *device = gpu->device;
    for (size_t i = 0; device && i < d->edits.nodes.count; i++)
        if (text_is(n[i].path, device) || text_is(n[i].host, device))
            return true;
    return !device || err_set(err, RC_UNAVAILABLE, "device '%s' is not %s", d->name, device);
}

bool cdi_gather(struct gather *g, const struct inject_gpu *gpu, const struct mig *mig, struct err *err)
{
    const char *kind = kinds[0].kind, *number = arena_printf(g->mem, "%lld", (long long)gpu->index);
    const struct cdi_device *d = NULL;
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (text_is(gpu->vendor, kinds[i].vendor))
            kind = kinds[i].kind;
    const struct cdi_spec *s = spec_of(g, kind, mig ? mig->uuid : gpu->uuid, &d, err);
    if (!s && !mig && gpu->device)
        s = spec_of(g, kind, number, &d, err);
    if (!s)
        return false;
    if (err->rc || !agrees(gpu, d, err) || !edits_gather(g, &s->edits, err) || !edits_gather(g, &d->edits, err))
        err_wrap(err, "%s", s->file);
    return true;
}
