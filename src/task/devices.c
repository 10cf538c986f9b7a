/* devices.c - the devices of a lease and the driver's files, put where the container will see them.
 *
 * The law: everything is opened first, by the node's own paths, and mounted from those descriptors. A target in the container's root is
 * walked to name by name from the root's descriptor, and no link on the way is followed: whoever made the image decides
 * what its links say. What is missing is made in the task's own writable layer. No program runs for any of this. */
#include "task/task.h"
#include "base/fault.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

enum { NAME_BYTES = 256, PATH_BYTES = 1100 };

/* --- device nodes */

static bool node_check(const struct plan_node *n, int fd, struct stat *st, struct err *err)
{
    if (fd == -1 || fstat(fd, st) == -1)
        return err_errno(err, "cannot open %s", n->source);
    bool kind = n->block ? S_ISBLK(st->st_mode) : S_ISCHR(st->st_mode);
    return (kind && major(st->st_rdev) == (unsigned)n->major && minor(st->st_rdev) == (unsigned)n->minor)
           || err_set(err, RC_UNAVAILABLE, "%s is not device %lld:%lld any more", n->source, (long long)n->major, (long long)n->minor);
}

/* A node that the node's own groups share is none that an id of the container could open: the lease is what counts, so it gets one of its
 * own. Where none may be made the node itself is the best there is. */
static bool own_node(const struct plan *p, const char *at, const struct stat *st)
{
    return (st->st_mode & 06) != 06 && mknod(at, (st->st_mode & S_IFMT) | 0600, st->st_rdev) == 0
           && chown(at, (uid_t)p->uid_base, (gid_t)p->uid_base) == 0 && chmod(at, 0666) == 0;
}

static bool node_mount(const struct plan *p, const struct plan_node *n, size_t index, struct err *err)
{
    char at[32];
    struct stat st;
    AUTO(fd_close) int fd = open(n->source, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    snprintf(at, sizeof at, "devices/%zu", index);
    if (!node_check(n, fd, &st, err))
        return false;
    if (own_node(p, at, &st))
        return true;
    unlink(at);
    AUTO(fd_close) int target = open(at, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    AUTO(fd_close) int tree = open_tree(fd, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    struct mount_attr a = { .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, .attr_clr = MOUNT_ATTR_NODEV };
    return (target != -1 && tree != -1 && !broken("devices.node") && mount_setattr(tree, "", AT_EMPTY_PATH, &a, sizeof a) == 0
            && move_mount(tree, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) == 0)
           || err_errno(err, "cannot mount %s", n->source);
}

static bool nodes_mount(const struct plan *p, struct err *err)
{
    const struct plan_node *n = p->nodes.at;
    if (!p->nodes.count)
        return true;
    if (mkdir("devices", 0711) == -1 && errno != EEXIST)
        return err_errno(err, "cannot make the folder of devices");
    if (mount("devices", "devices", "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=0711,size=64k,nr_inodes=512") == -1)
        return err_errno(err, "cannot mount the folder of devices");
    for (size_t i = 0; i < p->nodes.count; i++)
        if (!node_mount(p, &n[i], i, err))
            return false;
    return true;
}

/* --- targets in the container's root */

/* A root that moved its top folders below /usr has links in their place, whose text is known: a path through one of them is
 * spelled the other way rather than followed. */
static void spell(int root, const char *path, char out[static PATH_BYTES])
{
    static const struct {
        const char *link, *says, *instead;
    } known[] = {
        { "lib", "usr/lib", "usr/lib" },       { "lib64", "usr/lib64", "usr/lib64" },   { "bin", "usr/bin", "usr/bin" },
        { "sbin", "usr/sbin", "usr/sbin" },    { "var/run", "/run", "run" },            { "var/run", "../run", "run" },
    };
    char says[NAME_BYTES];
    snprintf(out, PATH_BYTES, "%s", path + 1);
    for (size_t i = 0; i < COUNT(known); i++) {
        size_t n = strlen(known[i].link);
        if (strncmp(path + 1, known[i].link, n) != 0 || path[1 + n] != '/')
            continue;
        ssize_t len = readlinkat(root, known[i].link, says, sizeof says - 1);
        says[MAX(len, 0)] = 0;
        const char *text = says[0] == '/' && known[i].says[0] != '/' ? says + 1 : says;
        if (len > 0 && text_is(text, known[i].says)) {
            snprintf(out, PATH_BYTES, "%s%s", known[i].instead, path + 1 + n);
            return;
        }
    }
}

static int step(int at, const char *name, uint64_t flags)
{
    struct open_how how = { .flags = flags | O_PATH | O_CLOEXEC,
                            .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };
    return (int)syscall(SYS_openat2, at, name, &how, sizeof how);
}

static bool make_folder(int at, const char *name, const struct plan *p)
{
    return mkdirat(at, name, 0755) == 0 && fchownat(at, name, (uid_t)p->uid_base, (gid_t)p->uid_base, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool make_file(int at, const char *name, const struct plan *p)
{
    AUTO(fd_close) int fd = openat(at, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0444);
    return fd != -1 && fchown(fd, (uid_t)p->uid_base, (gid_t)p->uid_base) == 0;
}

/* The folder or file at that path of the root, made where it is missing, as a descriptor that nothing can be written through. */
static bool target_open(int root, const char *path, bool folder, const struct plan *p, int *out, struct err *err)
{
    char rest[PATH_BYTES], name[NAME_BYTES];
    spell(root, path, rest);
    int at = dup(root);
    for (const char *from = rest; at != -1 && *from;) {
        size_t n = strcspn(from, "/");
        bool last = !from[n], is_folder = folder || !last;
        snprintf(name, sizeof name, "%.*s", (int)MIN(n, sizeof name - 1), from);
        if (n == 0 || n >= sizeof name || text_is(name, "..") || text_is(name, ".")) {
            errno = EINVAL;
            break;
        }
        int next = broken("devices.target") ? -1 : step(at, name, is_folder ? O_DIRECTORY : 0);
        if (next == -1 && errno == ENOENT && (is_folder ? make_folder : make_file)(at, name, p))
            next = step(at, name, is_folder ? O_DIRECTORY : 0);
        int why = errno;
        close(at);
        errno = why;
        at = next;
        from += n + !last;
        if (last && at != -1)
            return *out = at, true;
    }
    bool link = errno == ELOOP || errno == ENOTDIR;
    int why = errno;
    if (at != -1)
        close(at);
    errno = why;
    return link ? err_set(err, RC_BAD_INPUT, "the image has a link or a file in the way of %s, where the GPU's driver belongs", path)
                : err_errno(err, "cannot make %s in the container's root", path);
}

/* --- files */

/* In a node's own root most of it is in its place already. */
static bool is_there(int root, const char *path, const struct stat *source)
{
    struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
    AUTO(fd_close) int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof how);
    struct stat st;
    return fd != -1 && fstat(fd, &st) == 0 && st.st_dev == source->st_dev && st.st_ino == source->st_ino;
}

static bool file_open(const struct plan_file *f, int *out, struct err *err)
{
    int tree = broken("devices.open") ? -1 : open_tree(AT_FDCWD, f->source, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
    struct mount_attr a = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV };
    if (tree != -1 && mount_setattr(tree, "", AT_EMPTY_PATH, &a, sizeof a) == 0)
        return *out = tree, true;
    err_errno(err, "cannot open %s", f->source);
    fd_close(tree);
    return false;
}

static bool file_mount(int root, const struct plan *p, const struct plan_file *f, int tree, struct err *err)
{
    struct stat st;
    AUTO(fd_close) int target = -1;
    if (fstat(tree, &st) == -1)
        return err_errno(err, "cannot look at %s", f->source);
    if (is_there(root, f->path, &st))
        return true;
    if (!target_open(root, f->path, S_ISDIR(st.st_mode), p, &target, err))
        return f->optional;
    return move_mount(tree, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) == 0 || f->optional
           || err_errno(err, "cannot mount at %s", f->path);
}

static bool driver_folder(int root, const struct plan *p, struct err *err)
{
    AUTO(fd_close) int target = -1;
    char at[48], options[96];
    if (!target_open(root, p->driver, true, p, &target, err))
        return false;
    snprintf(at, sizeof at, "/proc/self/fd/%d", target);
    snprintf(options, sizeof options, "mode=0755,size=1m,nr_inodes=4096,uid=%lld,gid=%lld", (long long)p->uid_base, (long long)p->uid_base);
    return mount("driver", at, "tmpfs", MS_NOSUID | MS_NODEV, options) == 0 || err_errno(err, "cannot mount at %s", p->driver);
}

static bool link_make(int root, const struct plan *p, const struct plan_link *l, struct err *err)
{
    char folder[PATH_BYTES];
    const char *slash = strrchr(l->path, '/');
    AUTO(fd_close) int at = -1;
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - l->path), l->path);
    if (!text_starts(l->path, p->driver) || l->path[strlen(p->driver)] != '/')
        return err_set(err, RC_INTERNAL, "a link of the driver outside of its folder: %s", l->path);
    return target_open(root, folder, true, p, &at, err)
           && (symlinkat(l->says, at, slash + 1) == 0 || errno == EEXIST || err_errno(err, "cannot make the link %s", l->path));
}

static bool driver_close(int root, const struct plan *p, struct err *err)
{
    AUTO(fd_close) int at = -1;
    struct mount_attr a = { .attr_set = MOUNT_ATTR_RDONLY };
    return target_open(root, p->driver, true, p, &at, err)
           && (mount_setattr(at, "", AT_EMPTY_PATH, &a, sizeof a) == 0 || err_errno(err, "cannot close %s", p->driver));
}

static bool files_place(const struct plan *p, const int *trees, struct err *err)
{
    const struct plan_file *f = p->files.at;
    const struct plan_link *l = p->links.at;
    AUTO(fd_close) int root = open("rootfs", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (root == -1)
        return err_errno(err, "cannot open the container's root");
    bool ok = !p->driver || driver_folder(root, p, err);
    for (size_t i = 0; ok && i < p->files.count; i++) {
        struct err one = { 0 };
        if (!file_mount(root, p, &f[i], trees[i], &one))
            *err = one, ok = false;
    }
    for (size_t i = 0; ok && p->driver && i < p->links.count; i++)
        ok = link_make(root, p, &l[i], err);
    return ok && (!p->driver || driver_close(root, p, err));
}

bool devices_mount(struct task *t, struct err *err)
{
    const struct plan *p = &t->plan;
    const struct plan_file *f = p->files.at;
    int *trees = ARENA_ARRAY(t->mem, int, p->files.count + 1);
    size_t open = 0;
    if (!nodes_mount(p, err))
        return false;
    if (!p->files.count && !p->driver)
        return true;
    bool ok = true;
    while (ok && open < p->files.count && (ok = file_open(&f[open], &trees[open], err)))
        open++;
    ok = ok && files_place(p, trees, err);
    for (size_t i = 0; i < open; i++)
        close(trees[i]);
    if (p->root == ROOT_HOST)
        t->place->steady = false, t->place->other = true; /* it is not what the next task may have */
    return ok;
}
