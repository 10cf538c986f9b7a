/* mount_root.c - the root that a container sees: an image with a writable layer, or what a node
 * lets tenants see of its own.
 *
 * The node's root is never idmapped: its files belong to ids that do not exist inside, so root
 * inside reads what anybody may read, and nothing else. Every top folder is bound read-only
 * unless the table says that the task gets an empty one of its own. A mount below such a folder
 * does not come along, except under /usr and /opt.
 *
 * The law: the root may be a disk that was kept, so every name in it is what a tenant left there. It is walked from the root's
 * descriptor, no link is followed, and only what such a descriptor says is changed or mounted on. What a tenant put in the place of a folder
 * is his, and stays; what he finds behind it is what his own root has there. */
#include "task/task.h"
#include "agent/tree.h"
#include "base/fault.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SEE_TRIES = 1000, SEE_PAUSE_US = 1000 };

/* Of the node's root: with a mode, the task's own; deep, with what is mounted there; neither,
 * left out. What is not here is bound. */
static const struct {
    const char *name;
    unsigned mode;
    bool bind_deep, ours;   /* ours: the runtime mounts there, and nothing else may be in its place */
} tops[] = {
    { "proc", 0555, .ours = true },
    { "sys", 0555, .ours = true },
    { "dev", 0755, .ours = true },
    { "tmp", 01777 },
    { "run", 0755 },
    { "root", 0700 },
    { "home", 0755 },
    { "mnt", 0755 },
    { "media", 0755 },
    { "srv", 0755 },
    { "var", 0755 },
    { "boot", 0700 },
    { "lost+found", 0 },
    { "workdir", 0755 },
    { "outputs", 0755 },
    { "usr", 0, .bind_deep = true },
    { "opt", 0, .bind_deep = true },
};
static const struct {
    const char *path;
    unsigned mode;
} inside[] = {
    { "var/lib", 0755 },   { "var/cache", 0755 }, { "var/log", 0755 },
    { "var/spool", 0755 }, { "var/tmp", 01777 }, { "outputs", 0755 },
};

bool mount_image_root(const struct plan *p, int userns, struct err *err)
{
    struct stat st;
    if (mkdir("lower", 0711) == -1 && errno != EEXIST)
        return err_errno(err, "cannot make the folder of the image");
    if (!mount_clone(p->lower, "lower", userns, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV, false, err))
        return false;
    if (stat("lower", &st) == -1 || !make_owned("scratch/upper", (st.st_mode & 07777) | 0111, p)
        || (mkdir("scratch/work", 0700) == -1 && !(p->disk && errno == EEXIST)))
        return err_errno(err, "cannot make the writable layer");
    /* volatile: unless it is kept nobody needs the layer after a crash, so nobody waits for its syncs. */
    return mount("overlay", "rootfs", "overlay", MS_NODEV,
                 p->disk ? "lowerdir=lower,upperdir=scratch/upper,workdir=scratch/work" : "lowerdir=lower,upperdir=scratch/upper,workdir=scratch/work,volatile")
               == 0
           || err_errno(err, "cannot mount the overlay");
}

/* A folder of the root, made if nothing is there; one that a tenant has had before has the mode and the owner that he gave it. One that is the
 * node's own was left half made. Not a folder: errno says ELOOP or ENOTDIR. */
static bool own_folder(const struct plan *p, int root, const char *path, unsigned mode, int *out)
{
    const char *slash = strrchr(path, '/');
    char above[64];
    struct stat st;
    snprintf(above, sizeof above, "%.*s", slash ? (int)(slash - path) : 0, path);
    AUTO(fd_close) int parent = broken("mount.folder") ? -1 : tree_open(root, above, O_PATH | O_DIRECTORY, 0);
    const char *name = slash ? slash + 1 : path;
    if (parent == -1 || (mkdirat(parent, name, 0700) == -1 && errno != EEXIST))
        return false;
    AUTO(fd_close) int fd = tree_open(parent, name, O_RDONLY | O_DIRECTORY, 0);
    if (fd == -1 || fstat(fd, &st) == -1
        || (st.st_uid == 0 && (fchmod(fd, mode) == -1 || fchown(fd, (uid_t)p->uid_base, (gid_t)p->uid_base) == -1)))
        return false;
    *out = fd;
    fd = -1;
    return true;
}

/* On a disk that its tenant has filled he does without what he removed of it, and comes in to make room. */
static bool no_room(const struct plan *p) { return p->disk && (errno == ENOSPC || errno == ENOENT); }

static bool is_no_folder(void) { return errno == ELOOP || errno == ENOTDIR; }

static bool made(const struct plan *p, int root, const char *path, unsigned mode, bool ours, struct err *err)
{
    AUTO(fd_close) int fd = -1;
    if (own_folder(p, root, path, mode, &fd))
        return true;
    if (is_no_folder() && (!ours || (unlinkat(root, path, 0) == 0 && own_folder(p, root, path, mode, &fd))))
        return true;
    return (!ours && no_room(p)) || err_errno(err, "cannot make /%s in its root", path);
}

static bool bind_top(const struct plan *p, int root, const char *name, bool deep, struct err *err)
{
    char from[300];
    AUTO(fd_close) int target = -1;
    snprintf(from, sizeof from, "/%s", name);
    if (!own_folder(p, root, name, 0755, &target))
        return is_no_folder() || no_room(p) || err_errno(err, "cannot make %s in its root", from);
    return mount_clone_on(from, target, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, deep, err);
}

static bool one_top(const struct plan *p, int root, const struct dirent *e, struct err *err)
{
    char from[300], target[256];
    struct stat st;
    snprintf(from, sizeof from, "/%s", e->d_name);
    if (lstat(from, &st) == -1)
        return true;
    if (S_ISLNK(st.st_mode)) { /* bin -> usr/bin */
        ssize_t n = readlink(from, target, sizeof target - 1);
        target[MAX(n, 0)] = 0;
        return n <= 0 || symlinkat(target, root, e->d_name) == 0 || errno == EEXIST || no_room(p)
               || err_errno(err, "cannot make %s in its root", from);
    }
    if (!S_ISDIR(st.st_mode))
        return true;
    for (size_t i = 0; i < COUNT(tops); i++)
        if (text_is(tops[i].name, e->d_name))
            return tops[i].mode ? made(p, root, e->d_name, tops[i].mode, tops[i].ours, err)
                                : !tops[i].bind_deep || bind_top(p, root, e->d_name, true, err);
    return bind_top(p, root, e->d_name, false, err);
}

/* As the container will see it: links in the root lead to what is in the root. The kernel wants to be asked again if something was mounted
 * anywhere while a link had it go up. */
static int see(int root, const char *path)
{
    struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
    int fd = -1;
    for (int i = 0; i < SEE_TRIES && (fd = (int)syscall(SYS_openat2, root, path, &how, sizeof how)) == -1 && errno == EAGAIN; i++)
        usleep(SEE_PAUSE_US);
    return fd;
}

/* Our own data, wherever an operator put it: an empty folder stands over it. What is not visible
 * needs none. */
static bool hide(const struct plan *p, int root, struct err *err)
{
    for (size_t i = 0; i < p->hide.count; i++) {
        struct stat st;
        AUTO(fd_close) int target = see(root, p->hide.at[i]);
        if (target == -1 && (errno == ENOENT || is_no_folder()))
            continue;
        if (target == -1 || fstat(target, &st) == -1)
            return err_errno(err, "cannot hide %s", p->hide.at[i]);
        const char *over = S_ISDIR(st.st_mode) ? "scratch/empty" : "scratch/nothing";
        if (!mount_clone_on(over, target, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, false, err))
            return false;
    }
    return true;
}

bool mount_host_root(const struct plan *p, struct err *err)
{
    AUTO(fd_close) int nothing = open("scratch/nothing", O_WRONLY | O_CREAT | O_CLOEXEC, 0444);
    if (!make_owned("scratch/root", 0755, p) || !make_owned("scratch/empty", 0755, p)
        || nothing == -1)
        return err_errno(err, "cannot make the root folder");
    if (mount("scratch/root", "rootfs", NULL, MS_BIND, NULL) == -1)
        return err_errno(err, "cannot bind the root folder");
    AUTO(fd_close) int root = open("rootfs", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (root == -1)
        return err_errno(err, "cannot open the root folder");
    DIR *d = opendir("/");
    bool ok = d || err_errno(err, "cannot list the node's root");
    for (struct dirent *e; ok && (e = readdir(d));)
        if (!text_is(e->d_name, ".") && !text_is(e->d_name, ".."))
            ok = one_top(p, root, e, err);
    if (d)
        closedir(d);
    for (size_t i = 0; ok && i < COUNT(inside); i++)
        ok = made(p, root, inside[i].path, inside[i].mode, false, err);
    return ok && hide(p, root, err);
}
