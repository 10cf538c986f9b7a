/* tree.c - sending and removing trees. Receiving is in tree_receive.c.
 *
 * A file may change while it is sent: what was announced in its header is what goes out, cut or
 * filled with zeros, so that the stream stays readable. Depth is bounded, because a tenant
 * chooses it. */
#include "agent/tree.h"
#include "base/fault.h"
#include "wire/tar.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { DEPTH_MAX = 200, CHUNK = 32 * 1024, NAME_ROOM = 8192, INODE_BYTES = 4096 };

int tree_open(int dirfd, const char *path, int flags, unsigned mode)
{
    while (*path == '/')
        path++;
    struct open_how how = {
        .flags = (uint64_t)flags | O_CLOEXEC,
        .mode = mode,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    return (int)syscall(SYS_openat2, dirfd, *path ? path : ".", &how, sizeof how);
}

struct sender {
    const struct tree_sink *sink;
    char name[NAME_ROOM];
    char *chunk;
    struct err *err;
};

static bool put_header(struct sender *s, enum tar_type type, const struct stat *st,
                       const char *target)
{
    AUTO(str_done) struct str out = { 0 };
    tar_header(&out, &(struct tar_entry){ .type = type,
                                          .name = s->name,
                                          .target = target,
                                          .mode = st->st_mode & 07777,
                                          .size = type == TAR_FILE ? st->st_size : 0,
                                          .mtime_s = st->st_mtim.tv_sec });
    return s->sink->put(s->sink->arg, out.at, out.len, s->err);
}

static bool send_file(struct sender *s, int fd, const struct stat *st)
{
    if (!put_header(s, TAR_FILE, st, NULL))
        return false;
    bool readable = true;
    for (int64_t left = st->st_size; left > 0;) {
        size_t want = (size_t)MIN(left, (int64_t)CHUNK);
        ssize_t n = readable ? read(fd, s->chunk, want) : 0;
        if (n <= 0) {
            readable = false;
            n = (ssize_t)want;
            memset(s->chunk, 0, want);
        }
        if (!s->sink->put(s->sink->arg, s->chunk, (size_t)n, s->err))
            return false;
        left -= n;
    }
    AUTO(str_done) struct str pad = { 0 };
    tar_pad(&pad, st->st_size);
    return !pad.len || s->sink->put(s->sink->arg, pad.at, pad.len, s->err);
}

static bool send_folder(struct sender *s, int fd, int depth);

static bool send_entry(struct sender *s, int dir, const char *name, int depth)
{
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == -1)
        return true; /* it was there a moment ago: the tenant may still be at work */
    if (S_ISLNK(st.st_mode)) {
        char target[4096];
        ssize_t n = readlinkat(dir, name, target, sizeof target - 1);
        target[MAX(n, 0)] = 0;
        return n <= 0 || put_header(s, TAR_SYMLINK, &st, target);
    }
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return true;
    int fd = openat(dir, name,
                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC
                        | (S_ISDIR(st.st_mode) ? O_DIRECTORY : 0));
    if (fd == -1)
        return errno == ENOENT || errno == ELOOP || err_errno(s->err, "cannot read %s", s->name);
    bool ok = fstat(fd, &st) == 0;
    if (ok && S_ISDIR(st.st_mode))
        ok = (!*s->name || put_header(s, TAR_DIR, &st, NULL)) && send_folder(s, fd, depth + 1);
    else if (ok && S_ISREG(st.st_mode))
        ok = send_file(s, fd, &st);
    close(fd);
    return ok;
}

static bool send_folder(struct sender *s, int fd, int depth)
{
    if (depth > DEPTH_MAX)
        return err_set(s->err, RC_TOO_LARGE, "folders are nested deeper than %d", DEPTH_MAX);
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    DIR *d = copy == -1 ? NULL : fdopendir(copy);
    if (!d)
        return err_errno(s->err, "cannot list %s", s->name);
    size_t len = strlen(s->name);
    bool ok = true;
    for (struct dirent *e; ok && (e = readdir(d));) {
        if (text_is(e->d_name, ".") || text_is(e->d_name, ".."))
            continue;
        size_t more
            = (size_t)snprintf(s->name + len, NAME_ROOM - len, "%s%s", len ? "/" : "", e->d_name);
        ok = more < NAME_ROOM - len
                 ? send_entry(s, fd, e->d_name, depth)
                 : err_set(s->err, RC_TOO_LARGE, "a path is longer than %d bytes", NAME_ROOM);
        s->name[len] = 0;
    }
    closedir(d);
    return ok;
}

static bool climbs(const char *path)
{
    for (const char *p = path; (p = strstr(p, "..")); p += 2)
        if ((p == path || p[-1] == '/') && (p[2] == 0 || p[2] == '/'))
            return true;
    return false;
}

/* The last part of the path and a descriptor of the folder above it. */
static bool split(int dirfd, const char *path, int *above, char last[static 256], struct err *err)
{
    char copy[4096];
    if (climbs(path))
        return err_set(err, RC_BAD_INPUT, "%s: '..' is not taken", path);
    if (!text_copy(copy, sizeof copy, path))
        return err_set(err, RC_BAD_INPUT, "the path is too long");
    size_t n = strlen(copy);
    while (n && copy[n - 1] == '/')
        copy[--n] = 0;
    char *slash = strrchr(copy, '/');
    if (!text_copy(last, 256, slash ? slash + 1 : copy))
        return err_set(err, RC_BAD_INPUT, "a name in the path is too long");
    if (slash)
        *slash = 0;
    *above = tree_open(dirfd, slash ? copy : "", O_PATH | O_DIRECTORY, 0);
    if (*above == -1)
        return errno == ENOENT  ? err_set(err, RC_NOT_FOUND, "%s: no such file or folder", path)
               : errno == ELOOP ? err_set(err, RC_BAD_INPUT,
                                          "%s: a link is in the way; give the real path", path)
                                : err_errno(err, "cannot open %s", path);
    return true;
}

bool tree_send(int dirfd, const char *path, const struct tree_sink *sink, struct err *err)
{
    struct sender *s = calloc(1, sizeof *s);
    char *chunk = malloc(CHUNK), last[256];
    int above = -1;
    struct stat st;
    if (!s || !chunk)
        abort();
    *s = (struct sender){ .sink = sink, .chunk = chunk, .err = err };
    bool ok = split(dirfd, path, &above, last, err), all = text_is(last, ".") || !*last;
    if (ok && !all && fstatat(above, last, &st, AT_SYMLINK_NOFOLLOW) == -1)
        ok = err_set(err, RC_NOT_FOUND, "%s: no such file or folder", path);
    if (ok && !all)
        snprintf(s->name, sizeof s->name, "%s", last);
    ok = ok && send_entry(s, above, all ? "." : last, 0);
    if (ok) {
        AUTO(str_done) struct str end = { 0 };
        tar_end(&end);
        ok = sink->put(sink->arg, end.at, end.len, err);
    }
    if (above != -1)
        close(above);
    free(chunk);
    free(s);
    return ok;
}

/* Empties one folder: what is a folder itself is moved up to the top, under a name of ours. So a tenant's depth costs neither
 * descriptors nor stack. */
static bool empty_folder(int top, int dir, dev_t device, unsigned *moved)
{
    int copy = fcntl(dir, F_DUPFD_CLOEXEC, 3);
    DIR *d = copy == -1 ? NULL : fdopendir(copy);
    bool ok = d != NULL;
    for (struct dirent *e; d && (e = readdir(d));) {
        struct stat st;
        char name[32];
        if (text_is(e->d_name, ".") || text_is(e->d_name, "..") || unlinkat(dir, e->d_name, 0) == 0
            || unlinkat(dir, e->d_name, AT_REMOVEDIR) == 0)
            continue;
        bool gone = fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode)
                    && st.st_dev == device;
        do
            snprintf(name, sizeof name, ".removed-%u", ++*moved);
        while (gone && syscall(SYS_renameat2, dir, e->d_name, top, name, RENAME_NOREPLACE) == -1
               && (gone = errno == EEXIST));
        ok &= gone;
    }
    if (d)
        closedir(d);
    return ok;
}

/* Folder by folder, until the top has none left. One that cannot be emptied ends it: a mount, or a disk that fails. */
static bool remove_inside(int top, dev_t device)
{
    unsigned moved = 0;
    for (;;) {
        int copy = openat(top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *d = copy == -1 ? NULL : fdopendir(copy);
        bool ok = d != NULL, any = false;
        for (struct dirent *e; d && ok && (e = readdir(d));) {
            if (text_is(e->d_name, ".") || text_is(e->d_name, "..")
                || unlinkat(top, e->d_name, 0) == 0)
                continue;
            struct stat st;
            any = true;
            int sub = openat(top, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            ok = sub != -1 && fstat(sub, &st) == 0 && st.st_dev == device
                 && empty_folder(top, sub, device, &moved)
                 && unlinkat(top, e->d_name, AT_REMOVEDIR) == 0;
            if (sub != -1)
                close(sub);
        }
        if (d)
            closedir(d);
        if (!ok || !any)
            return ok;
    }
}

bool tree_remove(const char *path, struct err *err)
{
    struct stat st;
    if (unlink(path) == 0 || errno == ENOENT)
        return true;
    int fd = broken("tree.remove") ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool ok = fd != -1 && fstat(fd, &st) == 0 && remove_inside(fd, st.st_dev);
    if (fd != -1)
        close(fd);
    return (ok && rmdir(path) == 0) || err_errno(err, "cannot remove all of %s", path);
}

/* What is too deep to be counted counts as enough: nobody can hide there. An empty file takes an inode, of which a disk has not
 * many either. */
static int64_t bytes_inside(int dir, int64_t enough, int depth)
{
    DIR *d = depth > DEPTH_MAX ? NULL : fdopendir(dir);
    int64_t sum = d ? 0 : enough;
    for (struct dirent *e; d && sum < enough && (e = readdir(d));) {
        struct stat st;
        if (text_is(e->d_name, ".") || text_is(e->d_name, "..")
            || fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == -1)
            continue;
        sum += MAX((int64_t)st.st_blocks * 512, INODE_BYTES);
        int sub = S_ISDIR(st.st_mode)
                      ? openat(dir, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                      : -1;
        if (sub != -1)
            sum += bytes_inside(sub, enough - sum, depth + 1);
    }
    if (d)
        closedir(d);
    else
        close(dir);
    return sum;
}

int64_t tree_bytes(const char *path, int64_t enough)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd == -1 ? 0 : bytes_inside(fd, enough, 0);
}
