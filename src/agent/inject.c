/* inject.c - whom to ask about a GPU, and what is sound enough to be given.
 *
 * The law: what a container gets is a list that was made here, outside of it. A node must be a device with the numbers of the plan; a
 * file must be root's alone to change; two answers for one GPU that do not agree give nothing. */
#include "agent/inject_internal.h"
#include "model/order.h"
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

struct inject *inject_new(const struct inject_config *config)
{
    struct inject *in = calloc(1, sizeof *in);
    if (!in)
        abort();
    in->cdi = strdup(text_given(config->cdi) ? config->cdi : "auto");
    in->root = strdup(config->root ? config->root : "");
    if (!in->cdi || !in->root)
        abort();
    return in;
}

void inject_free(struct inject *in)
{
    if (!in)
        return;
    arena_free(in->mem);
    arena_free(in->known_mem);
    free(in->cdi);
    free(in->root);
    free(in);
}

static void copy_texts(struct arena *mem, struct texts *t)
{
    const char **at = ARENA_ARRAY(mem, const char *, t->count);
    for (size_t i = 0; i < t->count; i++)
        at[i] = arena_text(mem, t->at[i]);
    t->at = at;
}

void inject_know(struct inject *in, const struct inject_gpu *gpus, size_t count)
{
    arena_free(in->known_mem);
    in->known_mem = arena_new();
    in->known = ARENA_ARRAY(in->known_mem, struct inject_gpu, count);
    in->known_count = count;
    for (size_t i = 0; i < count; i++) {
        struct inject_gpu *g = &in->known[i];
        *g = gpus[i];
        const char **texts[] = { &g->uuid, &g->vendor, &g->device, &g->pci, &g->mig };
        for (size_t k = 0; k < COUNT(texts); k++)
            *texts[k] = arena_text(in->known_mem, *texts[k]);
        copy_texts(in->known_mem, &g->mig_uuids);
        copy_texts(in->known_mem, &g->mig_ids);
    }
}

static void refresh(struct inject *in)
{
    uint64_t stamp = cdi_stamp(in) * 31 + driver_stamp(in);
    if (in->fresh && stamp == in->stamp)
        return;
    arena_free(in->mem);
    in->mem = arena_new();
    in->stamp = stamp;
    in->fresh = true;
    cdi_read_all(in);
    driver_find(in);
}

size_t inject_bad_specs(struct inject *in, struct arena *mem, const char ***why)
{
    refresh(in);
    *why = ARENA_ARRAY(mem, const char *, in->bad_count);
    for (size_t i = 0; i < in->bad_count; i++)
        (*why)[i] = arena_text(mem, in->bad[i]);
    return in->bad_count;
}

/* --- what is sound */

const char *in_root(const struct inject *in, struct arena *mem, const char *path)
{
    return *in->root ? arena_printf(mem, "%s%s", in->root, path) : path;
}

bool only_root_writes(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && st.st_uid == 0 && ((st.st_mode & 022) == 0 || S_ISSOCK(st.st_mode));
}

bool gather_node(struct gather *g, const char *source, const char *path, bool optional, struct err *err)
{
    char real[PATH_MAX];
    struct stat st;
    for (size_t i = 0; i < g->node_count; i++)
        if (text_is(g->nodes[i].path, path))
            return true;
    if (!realpath(source, real) || stat(real, &st) == -1)
        return (optional && errno == ENOENT) || err_errno(err, "%s", source);
    if (!S_ISCHR(st.st_mode) && !S_ISBLK(st.st_mode))
        return err_set(err, RC_UNAVAILABLE, "%s is no device", source);
    if (g->node_count == COUNT(g->nodes))
        return err_set(err, RC_UNAVAILABLE, "more than %zu device nodes", COUNT(g->nodes));
    g->nodes[g->node_count++] = (struct plan_node){ arena_text(g->mem, real), arena_text(g->mem, path), S_ISBLK(st.st_mode),
                                                    major(st.st_rdev), minor(st.st_rdev) };
    return true;
}

bool gather_file(struct gather *g, const char *source, const char *path, bool optional, struct err *err)
{
    char real[PATH_MAX];
    for (size_t i = 0; i < g->file_count; i++)
        if (text_is(g->files[i].path, path))
            return true;
    if (!realpath(source, real))
        return (optional && errno == ENOENT) || err_errno(err, "%s", source);
    if (!only_root_writes(real))
        return err_set(err, RC_UNAVAILABLE, "%s can be changed by others than root", source);
    if (g->file_count == COUNT(g->files))
        return err_set(err, RC_UNAVAILABLE, "more than %zu driver files", COUNT(g->files));
    g->files[g->file_count++] = (struct plan_file){ arena_text(g->mem, real), arena_text(g->mem, path), optional };
    return true;
}

bool gather_link(struct gather *g, const char *name, const char *says, struct err *err)
{
    const char *path = arena_printf(g->mem, "%s/lib64/%s", DRIVER_FOLDER, name);
    for (size_t i = 0; i < g->link_count; i++)
        if (text_is(g->links[i].path, path))
            return true;
    for (size_t i = 0; i < g->file_count; i++)
        if (text_is(g->files[i].path, path))
            return true;
    if (g->link_count == COUNT(g->links))
        return err_set(err, RC_UNAVAILABLE, "more than %zu links of driver files", COUNT(g->links));
    g->links[g->link_count++] = (struct plan_link){ path, arena_text(g->mem, says) };
    return gather_folder(g, DRIVER_FOLDER "/lib64", err);
}

static bool gather_word(const char **list, size_t *count, size_t room, const char *text, struct err *err)
{
    for (size_t i = 0; i < *count; i++)
        if (text_is(list[i], text))
            return true;
    if (*count == room)
        return err_set(err, RC_UNAVAILABLE, "more than %zu of '%.60s' and the like", room, text);
    list[(*count)++] = text;
    return true;
}

bool gather_env(struct gather *g, const char *entry, struct err *err)
{
    return gather_word(g->env, &g->env_count, COUNT(g->env), arena_text(g->mem, entry), err);
}

bool gather_folder(struct gather *g, const char *path, struct err *err)
{
    return gather_word(g->folders, &g->folder_count, COUNT(g->folders), arena_text(g->mem, path), err);
}

/* --- whom to ask */

/* AMD: one node for all of them, a render node for each; the kernel shows a process only those it may open. Intel: render nodes alone. */
static bool render_gather(struct gather *g, const struct inject_gpu *gpu, struct err *err)
{
    const struct inject *in = g->in;
    if (!gpu->device)
        return err_set(err, RC_UNAVAILABLE, "its render node is not known");
    if (text_is(gpu->vendor, "amd") && !gather_node(g, in_root(in, g->mem, "/dev/kfd"), "/dev/kfd", false, err))
        return false;
    return gather_node(g, in_root(in, g->mem, gpu->device), gpu->device, false, err);
}

static const struct inject_gpu *known_gpu(const struct inject *in, const char *uuid)
{
    for (size_t i = 0; i < in->known_count; i++)
        if (text_is(in->known[i].uuid, uuid))
            return &in->known[i];
    return NULL;
}

static struct mig_made *made_of(struct inject *in, const char *gpu, const char *what)
{
    for (size_t i = 0; i < MADE_MOST; i++)
        if (text_is(in->made[i].gpu, gpu) && text_is(in->made[i].what, what))
            return &in->made[i];
    return NULL;
}

void inject_made(struct inject *in, const char *gpu, const char *profile, int64_t slot, const char *uuid, const char *ids)
{
    char what[64];
    snprintf(what, sizeof what, "%.40s@%lld", profile, (long long)slot);
    struct mig_made *m = made_of(in, gpu, what);
    if (!m)
        m = &in->made[in->made_next++ % MADE_MOST];
    text_cut(m->gpu, sizeof m->gpu, gpu);
    text_cut(m->what, sizeof m->what, what);
    text_cut(m->uuid, sizeof m->uuid, uuid);
    text_cut(m->ids, sizeof m->ids, ids);
}

/* The instance of that profile at that slot: "3g.71gb", 4 in "1g.18gb@0,3g.71gb@4". */
static bool mig_of(struct inject *in, const struct inject_gpu *gpu, const struct order_gpu *o, struct mig *out)
{
    char wanted[64];
    size_t n = (size_t)snprintf(wanted, sizeof wanted, "%s@%lld", o->mig, (long long)o->slot), at = 0;
    const struct mig_made *made = made_of(in, o->uuid, wanted);
    if (made)
        return *out = (struct mig){ made->uuid, made->ids }, true;
    for (const char *p = gpu->mig; p && *p; at++) {
        size_t len = strcspn(p, ",");
        if (len == n && strncmp(p, wanted, n) == 0)
            return at < gpu->mig_uuids.count
                   && (*out = (struct mig){ gpu->mig_uuids.at[at], at < gpu->mig_ids.count ? gpu->mig_ids.at[at] : NULL }, true);
        p += len + (p[len] == ',');
    }
    return false;
}

static bool one_gpu(struct gather *g, const struct order_gpu *o, struct err *err)
{
    const struct inject_gpu *gpu = known_gpu(g->in, o->uuid), unknown = { .index = o->index, .uuid = o->uuid, .vendor = "nvidia" };
    struct mig part = { 0 }, *mig = text_given(o->mig) ? &part : NULL;
    if (!gpu)
        gpu = &unknown; /* its driver has not answered yet: a spec that has its UUID serves, and nothing else */
    if (mig && !mig_of(g->in, gpu, o, mig))
        return err_set(err, RC_UNAVAILABLE, "it has no MIG instance %s at slot %lld", o->mig, (long long)o->slot);
    struct err why = { 0 };
    if (!text_is(g->in->cdi, "off") && cdi_gather(g, gpu, mig, &why))
        return !why.rc || (*err = why, false);
    if (!text_is(g->in->cdi, "off") && !text_is(g->in->cdi, "auto"))
        return err_set(err, RC_UNAVAILABLE, "%s", g->in->bad_count ? g->in->bad[0] : arena_printf(g->mem, "no spec in %s names it", g->in->cdi));
    return text_is(gpu->vendor, "amd") || text_is(gpu->vendor, "intel") ? render_gather(g, gpu, err) : nvidia_gather(g, gpu, mig, err);
}

static const char *joined(struct gather *g, const char *const *list, size_t count)
{
    AUTO(str_done) struct str s = { 0 };
    for (size_t i = 0; i < count; i++)
        str_printf(&s, "%s%s", i ? ":" : "", list[i]);
    return count ? arena_text(g->mem, s.at) : NULL;
}

/* With none but its own in sight a process numbers them from 0. */
static bool own_words(struct gather *g, const struct objects *gpus, struct err *err)
{
    static const struct { const char *vendor, *name; } words[] = { { "amd", "ROCR_VISIBLE_DEVICES" }, { "intel", "ZE_AFFINITY_MASK" } };
    const struct order_gpu *o = gpus->at;
    for (size_t w = 0; w < COUNT(words); w++) {
        AUTO(str_done) struct str s = { 0 };
        size_t n = 0;
        for (size_t i = 0; i < gpus->count; i++) {
            const struct inject_gpu *gpu = known_gpu(g->in, o[i].uuid);
            if (gpu && text_is(gpu->vendor, words[w].vendor))
                str_printf(&s, "%s%zu", n ? "," : "", n), n++;
        }
        if (n && !gather_env(g, arena_printf(g->mem, "%s=%s", words[w].name, s.at), err))
            return false;
    }
    return true;
}

/* The server names GPUs, since it does not know instances by theirs. */
static void name_instances(struct gather *g, const struct objects *gpus, struct injection *out)
{
    const struct order_gpu *o = gpus->at;
    AUTO(str_done) struct str parents = { 0 }, visible = { 0 };
    bool some = false;
    for (size_t i = 0; i < gpus->count; i++) {
        const struct inject_gpu *gpu = known_gpu(g->in, o[i].uuid), unknown = { 0 };
        struct mig part = { 0 };
        bool is = text_given(o[i].mig) && mig_of(g->in, gpu ? gpu : &unknown, &o[i], &part);
        some |= is;
        str_printf(&parents, "%s%s", i ? "," : "", o[i].uuid);
        str_printf(&visible, "%s%s", i ? "," : "", is ? part.uuid : o[i].uuid);
    }
    if (some)
        out->parents = arena_text(g->mem, parents.at), out->visible = arena_text(g->mem, visible.at);
}

static void settle(struct gather *g, struct injection *out)
{
    bool driver = g->link_count > 0;
    for (size_t i = 0; i < g->file_count; i++)
        driver = driver || text_starts(g->files[i].path, DRIVER_FOLDER "/");
    *out = (struct injection){ .nodes = { g->nodes, g->node_count }, .files = { g->files, g->file_count }, .links = { g->links, g->link_count },
                               .driver = driver ? DRIVER_FOLDER : NULL, .env = { g->env, g->env_count },
                               .libraries = joined(g, g->folders, g->folder_count), .programs = g->programs ? DRIVER_FOLDER "/bin" : NULL };
}

bool inject_for(struct inject *in, const struct objects *gpus, bool host, const char *capabilities, struct arena *mem, struct injection *out,
                struct err *err)
{
    const struct order_gpu *o = gpus->at;
    size_t real = 0;
    for (size_t i = 0; i < gpus->count; i++)
        real += !o[i].simulated;
    if (!real) {
        *out = (struct injection){ 0 };
        return true;
    }
    struct gather *g = ARENA_NEW(mem, struct gather);
    *g = (struct gather){ .in = in, .mem = mem, .host = host, .capabilities = driver_capabilities(capabilities) };
    refresh(in);
    for (size_t i = 0; i < gpus->count; i++)
        if (!o[i].simulated && !one_gpu(g, &o[i], err))
            return err_wrap(err, "GPU %lld", (long long)o[i].index);
    if (!own_words(g, gpus, err))
        return false;
    settle(g, out);
    name_instances(g, gpus, out);
    return true;
}
