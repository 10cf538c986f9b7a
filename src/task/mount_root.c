/* mount_root.c - the root that a container sees: an image with a writable layer, or what a node
 * lets tenants see of its own.
 *
 * The node's root is never idmapped: its files belong to ids that do not exist inside, so root
 * inside reads what anybody may read, and nothing else. Every top folder is bound read-only
 * unless the table says that the task gets an empty one of its own. A mount below such a folder
 * does not come along, except under /usr and /opt. */
#include "task/task.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>

/* Of the node's root: with a mode, the task's own; deep, with what is mounted there; neither,
 * left out. What is not here is bound. */
static const struct {
    const char *name;
    unsigned mode;
    bool bind_deep;
} tops[] = {
    { "proc", 0555 },
    { "sys", 0555 },
    { "dev", 0755 },
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

static bool bind_top(const struct plan *p, const char *name, bool deep, struct err *err)
{
    char from[300], to[300];
    snprintf(from, sizeof from, "/%s", name);
    snprintf(to, sizeof to, "rootfs/%s", name);
    if (!make_owned(to, 0755, p))
        return err_errno(err, "cannot make %s", to);
    return mount_clone(from, to, -1, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, deep,
                       err);
}

static bool one_top(const struct plan *p, const struct dirent *e, struct err *err)
{
    char from[300], to[300], target[256];
    struct stat st;
    snprintf(from, sizeof from, "/%s", e->d_name);
    snprintf(to, sizeof to, "rootfs/%s", e->d_name);
    if (lstat(from, &st) == -1)
        return true;
    if (S_ISLNK(st.st_mode)) { /* bin -> usr/bin */
        ssize_t n = readlink(from, target, sizeof target - 1);
        target[MAX(n, 0)] = 0;
        return n <= 0 || symlink(target, to) == 0 || errno == EEXIST
               || err_errno(err, "cannot make %s", to);
    }
    if (!S_ISDIR(st.st_mode))
        return true;
    for (size_t i = 0; i < COUNT(tops); i++)
        if (text_is(tops[i].name, e->d_name))
            return tops[i].mode
                       ? make_owned(to, tops[i].mode, p) || err_errno(err, "cannot make %s", to)
                       : !tops[i].bind_deep || bind_top(p, e->d_name, true, err);
    return bind_top(p, e->d_name, false, err);
}

/* Our own data, wherever an operator put it: an empty folder stands over it. What is not visible
 * needs none. */
static bool hide(const struct plan *p, struct err *err)
{
    for (size_t i = 0; i < p->hide.count; i++) {
        char path[4200];
        struct stat st;
        if ((size_t)snprintf(path, sizeof path, "rootfs%s", p->hide.at[i]) >= sizeof path
            || lstat(path, &st) == -1)
            continue;
        const char *over = S_ISDIR(st.st_mode) ? "scratch/empty" : "scratch/nothing";
        if (!mount_clone(over, path, -1, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
                         false, err))
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
    DIR *d = opendir("/");
    bool ok = d || err_errno(err, "cannot list the node's root");
    for (struct dirent *e; ok && (e = readdir(d));)
        if (!text_is(e->d_name, ".") && !text_is(e->d_name, ".."))
            ok = one_top(p, e, err);
    if (d)
        closedir(d);
    for (size_t i = 0; ok && i < COUNT(inside); i++) {
        char path[64];
        snprintf(path, sizeof path, "rootfs/%s", inside[i].path);
        ok = make_owned(path, inside[i].mode, p) || err_errno(err, "cannot make %s", path);
    }
    return ok && hide(p, err);
}
