/* mounts.c - what one task's root is made of, in the mount namespace of its place (place.c).
 *
 * Folders of the node reach the container through idmapped clones: root inside is an unprivileged range
 * of ids outside, and no tree is ever chowned. Paths are relative: the supervisor stands in the
 * folder of its place. */
#include "task/task.h"
#include "base/fault.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>

enum { VALUE_MOST = 1 << 20 };

static bool clone_tree(const char *source, int userns, uint64_t attributes, bool deep, int *out, struct err *err)
{
    unsigned at = deep ? AT_RECURSIVE : 0;
    AUTO(fd_close)
    int tree = open_tree(AT_FDCWD, source,
                         OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW | at);
    if (tree == -1 || broken("mount.clone"))
        return err_errno(err, "cannot mount %s", source);
    struct mount_attr a = { .attr_set = attributes | (userns >= 0 ? MOUNT_ATTR_IDMAP : 0),
                            .userns_fd = (uint64_t)MAX(userns, 0) };
    if (mount_setattr(tree, "", AT_EMPTY_PATH | at, &a, sizeof a) == -1)
        return err_errno(err,
                         userns >= 0 ? "the filesystem of %s cannot map ids" : "cannot restrict %s",
                         source);
    *out = tree;
    tree = -1;
    return true;
}

bool mount_clone(const char *source, const char *target, int userns, uint64_t attributes, bool deep,
                 struct err *err)
{
    AUTO(fd_close) int tree = -1;
    return clone_tree(source, userns, attributes, deep, &tree, err)
           && (move_mount(tree, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH) == 0
               || err_errno(err, "cannot mount at %s", target));
}

bool mount_clone_on(const char *source, int target, uint64_t attributes, bool deep, struct err *err)
{
    AUTO(fd_close) int tree = -1;
    return clone_tree(source, -1, attributes, deep, &tree, err)
           && (move_mount(tree, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) == 0
               || err_errno(err, "cannot mount %s in its root", source));
}

bool make_owned(const char *path, unsigned mode, const struct plan *p)
{
    if (broken("mount.folder") || (mkdir(path, 0700) == -1 && errno != EEXIST))
        return false;
    AUTO(fd_close) int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd != -1 && fchmod(fd, mode) == 0 && fchown(fd, (uid_t)p->uid_base, (gid_t)p->uid_base) == 0;
}

static bool read_exactly(int fd, void *to, size_t n)
{
    for (char *at = to; n;) {
        ssize_t got = read(fd, at, n);
        if (got <= 0)
            return false;
        at += got;
        n -= (size_t)got;
    }
    return true;
}

/* Each: four bytes of length, big endian, and the value, on standard input; they have been on no
 * disk before. */
static bool secrets_write(const struct plan *p, struct err *err)
{
    if (mkdir("secrets", 0700) == -1 && errno != EEXIST)
        return err_errno(err, "cannot make the folder of secrets");
    if (mount("secrets", "secrets", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
              "mode=0755,size=64m,noswap")
            == -1
        && mount("secrets", "secrets", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
                 "mode=0755,size=64m")
               == -1)
        return err_errno(err, "cannot mount the folder of secrets");
    for (size_t i = 0; i < p->secrets.count; i++) {
        unsigned char head[4];
        if (!read_exactly(STDIN_FILENO, head, sizeof head))
            return err_set(err, RC_INTERNAL, "the secrets did not come");
        size_t n = (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
        char path[300], *value = n <= VALUE_MOST ? calloc(1, n + 1) : NULL;
        snprintf(path, sizeof path, "secrets/%s", p->secrets.at[i]);
        AUTO(fd_close)
        int fd = strchr(p->secrets.at[i], '/')
                     ? -1
                     : open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0400);
        bool ok = value && fd != -1 && read_exactly(STDIN_FILENO, value, n)
                  && write(fd, value, n) == (ssize_t)n
                  && fchown(fd, (uid_t)(p->uid_base + p->uid), (gid_t)(p->uid_base + p->gid)) == 0;
        if (value)
            explicit_bzero(value, n);
        free(value);
        if (!ok)
            return err_set(err, RC_INTERNAL, "cannot write the secret %s", p->secrets.at[i]);
    }
    return mount(NULL, "secrets", NULL,
                 MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL)
               == 0
           || err_errno(err, "cannot close the folder of secrets");
}

static bool own_file(const struct plan *p, const char *name, const char *text, struct err *err)
{
    size_t n = strlen(text);
    unlink(name);
    AUTO(fd_close) int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    return (fd != -1 && write(fd, text, n) == (ssize_t)n && fchown(fd, (uid_t)p->uid_base, (gid_t)p->uid_base) == 0)
           || err_errno(err, "cannot write its %s", name);
}

/* Its own name is its address where it has one: others of its gang hear it, and must be able to come back with it. */
static bool hosts_write(const struct plan *p, struct err *err)
{
    char text[256];
    snprintf(text, sizeof text, "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n%s\t%s\n", p->net ? p->address : "127.0.1.1", p->hostname);
    return own_file(p, "hosts", text, err);
}

static bool names_write(const struct plan *p, struct err *err)
{
    char text[64];
    snprintf(text, sizeof text, "nameserver %s\n", p->resolver);
    return own_file(p, "resolv", text, err);
}

static bool folders_mount(const struct plan *p, int userns, struct err *err)
{
    const struct plan_mount *m = p->mounts.at;
    for (size_t i = 0; i < p->mounts.count; i++, m++) {
        uint64_t attributes
            = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (m->read_only ? MOUNT_ATTR_RDONLY : 0);
        if (mkdir(m->name, 0711) == -1 && errno != EEXIST)
            return err_errno(err, "cannot make %s", m->name);
        if (!mount_clone(m->source, m->name, m->plain ? -1 : userns, attributes, false, err))
            return false;
    }
    return true;
}

static bool image_root(struct place *s, const struct plan *p, struct err *err)
{
    if (s->host_root && !place_clear(s, err))
        return false;
    if (!make_owned("scratch/tmp", 01777, p))
        return err_errno(err, "cannot make the folder for /tmp");
    return mount_image_root(p, s->userns, err);
}

/* What the instance made of it since is on its disk; the mark is there once all of it was. */
static bool workdir_once(const struct plan *p, struct err *err)
{
    if (access("scratch/unpacked", F_OK) == 0)
        return true;
    if (!workdir_unpack(p, err))
        return false;
    AUTO(fd_close) int scratch = open("scratch", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (scratch == -1 || syncfs(scratch) == -1) /* the mark must not outlast a power cut that its files do not */
        return err_errno(err, "cannot keep the work folder");
    AUTO(fd_close) int mark = open("scratch/unpacked", O_WRONLY | O_CREAT | O_CLOEXEC, 0400);
    return mark != -1 || err_errno(err, "cannot mark the work folder");
}

bool mounts_make(struct task *t, struct err *err)
{
    const struct plan *p = &t->plan;
    struct place *s = t->place;
    if (p->root == ROOT_HOST && !s->host_root)
        s->host_root = mount_host_root(p, err);
    return (p->root == ROOT_HOST ? s->host_root : image_root(s, p, err)) && devices_mount(t, err)
           && folders_mount(p, s->userns, err) && hosts_write(p, err) && (!p->resolver || names_write(p, err))
           && (!p->hostfile || own_file(p, "hostfile", p->hostfile, err))
           && (!p->secrets.count || secrets_write(p, err))
           && (!p->workdir || (p->disk ? workdir_once(p, err) : workdir_unpack(p, err)));
}
