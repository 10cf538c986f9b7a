/* image_build.c - an archive or a registry's image becomes a tree of files and the few facts of
 * its config. Blocks.
 *
 * It is built beside its place and renamed into it after a sync, so that what has an image's
 * name is whole. Helpers get only arguments that were checked; what they say when they fail is
 * passed on as their last line. */
#include "agent/goods.h"
#include "agent/image.h"
#include "base/fault.h"
#include "agent/tree.h"
#include "os/os.h"
#include "wire/bind.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ARGS = 24, OUTPUT = 64 * 1024, PASSWD_MAX = 256 * 1024, ROOM_LOOK_MS = 1000 };
static const char *const time_limit = "3600";
#if defined(__aarch64__)
static const char *const architecture = "arm64";
#else
static const char *const architecture = "amd64";
#endif

bool image_reference_ok(const char *r, struct err *err)
{
    static const char letters[]
        = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:@";
    if (!text_given(r) || strlen(r) > 512 || strspn(r, letters) != strlen(r) || r[0] == '-'
        || strstr(r, ".."))
        return err_field(err, "image", "'%.80s' is not a name of an image", r ? r : "");
    return true;
}

/* A registry on this machine is one somebody tries out: it has no certificate. */
static bool is_loopback(const char *reference)
{
    return text_starts(reference, "localhost:") || text_starts(reference, "127.0.0.1:")
           || text_starts(reference, "[::1]:");
}

/* A few megabytes can unpack to any number: the node's disk is everybody's, so what grows is looked at while it does. */
struct room {
    struct os *os;
    const char *folder;
    int64_t most;
};

static bool has_room(void *arg, struct err *why)
{
    const struct room *r = arg;
    if (disk_free(r->os, r->folder) < IMAGE_DISK_RESERVE)
        return err_set(why, RC_OVER_QUOTA, "the node's disk is nearly full");
    return tree_bytes(r->folder, r->most + 1) <= r->most
           || err_set(why, RC_TOO_LARGE, "the image takes more than %lld MiB on the disk",
                      (long long)(r->most >> 20));
}

static bool helper(struct os *os, const char *const *args, size_t count, struct room *room,
                   struct arena *mem, char **output, struct err *err)
{
    const char *argv[ARGS + 3] = { "/usr/bin/timeout", time_limit };
    const struct proc_guard guard = { has_room, room, ROOM_LOOK_MS };
    for (size_t i = 0; i < count && i < ARGS; i++)
        argv[2 + i] = args[i];
    return proc_run_guarded(os, argv, OUTPUT, room ? &guard : NULL, mem, output, err)
           && (!room || has_room(room, err));
}

/* skopeo's last line is a log line; what matters is what it says about the registry's answer. */
static bool explain(const char *reference, struct err *err)
{
    static const struct {
        const char *sign, *words;
        enum rc rc;
    } known[] = {
        { "manifest unknown", "the registry has no such image or tag", RC_NOT_FOUND },
        { "name unknown", "the registry has no such image", RC_NOT_FOUND },
        { "not found", "the registry has no such image", RC_NOT_FOUND },
        { "unauthorized", "the registry has no such image, or wants a login", RC_NOT_FOUND },
        { "denied", "the registry has no such image, or wants a login", RC_NOT_FOUND },
        { "no such host", "its registry is not known here", RC_NOT_FOUND },
        { "refused", "its registry does not answer", RC_UNAVAILABLE },
        { "timeout", "its registry does not answer", RC_UNAVAILABLE },
        { "unreachable", "its registry cannot be reached", RC_UNAVAILABLE },
        { "no space left", "the node's disk is full", RC_OVER_QUOTA },
    };
    for (size_t i = 0; i < COUNT(known); i++)
        if (strstr(err->text, known[i].sign))
            return err_set(err, known[i].rc, "image %.100s: %s", reference, known[i].words);
    return err_wrap(err, "image %.60s", reference);
}

bool image_resolve(struct os *os, const char *reference, struct arena *mem, const char **digest,
                   struct err *err)
{
    const char *at = strchr(reference, '@');
    if (at)
        return image_digest_ok(at + 1)
                   ? (*digest = at + 1, true)
                   : err_field(err, "image", "'%.80s' has a bad digest", reference);
    const char *const args[] = {
        "/usr/bin/skopeo",
        "inspect",
        "--no-tags",
        "--format",
        "{{.Digest}}",
        is_loopback(reference) ? "--tls-verify=false" : "--tls-verify=true",
        arena_printf(mem, "docker://%s", reference),
    };
    char *out = NULL;
    if (!helper(os, args, COUNT(args), NULL, mem, &out, err))
        return explain(reference, err);
    out[strcspn(out, "\n")] = 0;
    *digest = out;
    return image_digest_ok(out)
           || err_set(err, RC_INTERNAL, "skopeo told no digest of %s", reference);
}

/* A registry may answer the same tag differently a moment later, and what is kept under a digest
 * is run by every tenant who means it: it is pulled by that digest, which skopeo holds the bytes
 * against. */
const char *image_exact(const char *reference, const char *digest, struct arena *mem)
{
    const char *slash = strrchr(reference, '/'), *name = slash ? slash : reference;
    return arena_printf(mem, "%.*s@%s", (int)(name + strcspn(name, ":@") - reference), reference,
                        digest);
}

static bool copy_to_layout(struct os *os, const char *from, const char *layout, struct room *room,
                           const char *reference, struct arena *mem, struct err *err)
{
    const char *const args[] = {
        "/usr/bin/skopeo",
        "--insecure-policy",
        "--tmpdir",
        room->folder,
        "copy",
        "--quiet",
        reference && is_loopback(reference) ? "--src-tls-verify=false" : "--src-tls-verify=true",
        from,
        arena_printf(mem, "oci:%s:image", layout),
    };
    return helper(os, args, COUNT(args), room, mem, NULL, err);
}

/* What the node lacks is told as that; anything else is wrong with the image, and trying again does not mend it. */
static bool is_ours(const struct err *err)
{
    return err->rc == RC_OVER_QUOTA || strstr(err->text, "no space left")
           || strstr(err->text, "cannot run");
}

/* An archive is an OCI layout or what `docker save` writes; skopeo tells which by trying. */
static bool fetch(struct os *os, const char *archive, const char *reference, const char *layout,
                  struct room *room, struct arena *mem, struct err *err)
{
    if (!archive)
        return copy_to_layout(os, arena_printf(mem, "docker://%s", reference), layout, room,
                              reference, mem, err)
               || (err->rc != RC_TOO_LARGE && explain(reference, err));
    struct err first = { 0 };
    if (copy_to_layout(os, arena_printf(mem, "oci-archive:%s", archive), layout, room, NULL, mem,
                       &first))
        return true;
    if (is_ours(&first) || first.rc == RC_TOO_LARGE)
        return *err = first, false;
    struct err ignored = { 0 };
    if (!tree_remove(layout, &ignored))
        return err_set(err, RC_INTERNAL, "%s", ignored.text);
    if (copy_to_layout(os, arena_printf(mem, "docker-archive:%s", archive), layout, room, NULL, mem,
                       err))
        return true;
    if (is_ours(err) || err->rc == RC_TOO_LARGE)
        return false;
    return err_set(err, RC_BAD_INPUT, "it is neither an OCI layout nor a docker archive (%.150s)",
                   err->text);
}

static bool read_blob(struct os *os, const char *layout, const char *digest, struct arena *mem,
                      struct slice *out, struct err *err)
{
    return file_read(os, arena_printf(mem, "%s/blobs/sha256/%s", layout, digest + 7),
                     IMAGE_JSON_MAX, mem, out, err);
}

static bool read_config(struct os *os, const char *layout, struct arena *mem,
                        struct image_config *out, struct err *err)
{
    struct slice text;
    const char *manifest = NULL;
    struct image_manifest m = { 0 };
    return file_read(os, arena_printf(mem, "%s/index.json", layout), IMAGE_JSON_MAX, mem, &text,
                     err)
           && image_index_parse(text, architecture, mem, &manifest, err)
           && read_blob(os, layout, manifest, mem, &text, err)
           && image_manifest_parse(text, mem, &m, err)
           && read_blob(os, layout, m.config, mem, &text, err)
           && image_config_parse(text, mem, out, err);
}

static bool unpack(struct os *os, const char *layout, struct room *room, struct arena *mem,
                   struct err *err)
{
    struct image_config config = { 0 };
    const char *temp = room->folder, *root = arena_printf(mem, "%s/rootfs", temp);
    const char *const args[] = {
        "/usr/bin/umoci", "raw", "unpack", "--image", arena_printf(mem, "%s:image", layout), root
    };
    if (!read_config(os, layout, mem, &config, err))
        return false;
    if (!helper(os, args, COUNT(args), room, mem, NULL, err)) {
        if (err->rc == RC_INTERNAL && !is_ours(err))
            err->rc = RC_BAD_INPUT;
        return err_wrap(err, "the image cannot be unpacked");
    }
    AUTO(str_done) struct str text = { 0 };
    struct json_out o = { .to = &text };
    bind_write(&o, &image_config_fields, &config);
    if (!file_replace(os, arena_printf(mem, "%s/image.json", temp),
                      (struct slice){ text.at, text.len }, 0600, err)
        || !tree_remove(layout, err))
        return false;
    image_weigh(os, temp);
    return true;
}

bool image_build(struct os *os, const char *archive, const char *reference, const char *folder,
                 int64_t most, struct err *err)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    const char *temp = arena_printf(mem, "%s.part", folder),
               *layout = arena_printf(mem, "%s/layout", temp);
    struct err ignored = { 0 };
    if (!tree_remove(temp, err) || !dir_make(os, temp, 0700, err))
        return false;
    struct room room = { os, temp, most };
    bool ok = fetch(os, archive, reference, layout, &room, mem, err)
              && unpack(os, layout, &room, mem, err);
    int fd = ok && !broken("image.open") ? open(temp, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    ok = ok
         && ((fd != -1 && !broken("image.sync") && syncfs(fd) == 0 && !broken("image.rename")
              && rename(temp, folder) == 0)
             || err_errno(err, "cannot keep the image in %s", folder));
    if (fd != -1)
        close(fd);
    if (!ok && !tree_remove(temp, &ignored))
        return err_wrap(err, "%s", ignored.text);
    return ok;
}

/* --- what lies in DATA/images/HEX */

static int open_in_image(int root, const char *path)
{
    struct open_how how = { .flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK,
                            .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
    return (int)syscall(SYS_openat2, root, path, &how, sizeof how);
}

static struct slice read_in_image(int root, const char *path, struct arena *mem)
{
    struct stat st;
    int fd = open_in_image(root, path);
    struct slice out = { "", 0 };
    if (fd != -1 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= PASSWD_MAX) {
        char *text = ARENA_ARRAY(mem, char, (size_t)st.st_size + 1);
        ssize_t n = read(fd, text, (size_t)st.st_size);
        out = (struct slice){ text, (size_t)MAX(n, 0) };
    }
    if (fd != -1)
        close(fd);
    return out;
}

static bool is_setuid(int root, const char *path)
{
    struct stat st;
    int fd = open_in_image(root, path);
    bool yes = fd != -1 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & S_ISUID);
    if (fd != -1)
        close(fd);
    return yes;
}

/* Its folder's time is that of its last use: the runtime removes what nobody used for long. */
bool image_used(const char *root)
{
    char folder[4096];
    size_t n = strlen(root) - MIN(strlen(root), strlen("/rootfs"));
    return n < sizeof folder && snprintf(folder, sizeof folder, "%.*s", (int)n, root) > 0
           && utimensat(AT_FDCWD, folder, NULL, 0) == 0;
}

bool image_load(const char *folder, struct arena *mem, struct image *out, struct err *err)
{
    struct image i = { .root = arena_printf(mem, "%s/rootfs", folder) };
    struct json *doc = NULL;
    int dir = broken("image.load") ? -1 : open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
        root = open(i.root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = (dir != -1 && root != -1) || err_errno(err, "cannot open the image in %s", folder);
    if (ok) {
        struct slice text = read_in_image(dir, "image.json", mem);
        ok = json_parse(text, mem, &doc, err)
             && bind_read(doc, &image_config_fields, mem, &i.config, NULL, err);
        i.passwd = read_in_image(root, "etc/passwd", mem);
        i.group = read_in_image(root, "etc/group", mem);
        i.sudo = is_setuid(root, "usr/bin/sudo") || is_setuid(root, "usr/bin/doas");
    }
    if (dir != -1)
        close(dir);
    if (root != -1)
        close(root);
    if (!ok || !image_used(i.root))
        return ok && err_errno(err, "the image in %s is gone", folder);
    *out = i;
    return true;
}
