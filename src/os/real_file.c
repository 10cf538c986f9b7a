/* real_file.c - small files whole, folders, and the store's disk. What returned true is on the
 * disk, except for an append that was not asked to be durable and disk_write before disk_sync.
 * Big files and trees are not its business. */
#include "os/real.h"
#include "base/fault.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static void fd_close(int fd)
{
    int saved = errno;
    if (fd >= 0)
        close(fd);
    errno = saved;
}
AUTO_FN(int, fd_close)

static bool write_all(int fd, const char *at, size_t n)
{
    while (n) {
        ssize_t done = write(fd, at, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        at += done;
        n -= (size_t)done;
    }
    return true;
}

int folder_sync(const char *path)
{
    char folder[4096];
    path_folder(path, folder);
    AUTO(fd_close) int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd == -1 ? -1 : fsync(fd);
}

bool real_file_read(struct os *os, const char *path, size_t limit, struct arena *mem,
                    struct slice *out, struct err *err)
{
    (void)os;
    AUTO(fd_close) int fd = broken("file.open") ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd == -1 || fstat(fd, &st) == -1)
        return err_errno(err, "open %s", path);
    if (S_ISREG(st.st_mode) && (uint64_t)st.st_size > limit)
        return err_set(err, RC_TOO_LARGE, "%s is larger than %zu bytes", path, limit);
    AUTO(str_done) struct str text = { 0 };     /* not by st_size: files of /proc have none */
    size_t step = (size_t)MAX(st.st_size, 4096) + 1;
    for (;;) {
        char *to = str_grow(&text, step);
        ssize_t n = broken("file.read") ? -1 : read(fd, to, step);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(err, "read %s", path);
        if (!n)
            break;
        text.len += (size_t)n;
        if (text.len > limit)
            return err_set(err, RC_TOO_LARGE, "%s is larger than %zu bytes", path, limit);
    }
    *out = (struct slice){ arena_bytes(mem, text.at, text.len), text.len };
    return true;
}

static bool temp_fill(int fd, struct slice bytes, unsigned mode)
{
    return !broken("file.write") && write_all(fd, bytes.at, bytes.len) && fchmod(fd, mode) == 0
        && !broken("file.sync") && fsync(fd) == 0;
}

bool real_file_replace(struct os *os, const char *path, struct slice bytes, unsigned mode,
                       struct err *err)
{
    char folder[4096], temp[4096 + 32];
    uint64_t chance;
    os_random(os, &chance, sizeof chance);
    path_folder(path, folder);
    snprintf(temp, sizeof temp, "%s/.tmp-%016lx", folder, chance);
    AUTO(fd_close) int fd = broken("file.open")
        ? -1 : open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd == -1)
        return err_errno(err, "write %s", path);
    if (!temp_fill(fd, bytes, mode) || broken("file.rename") || rename(temp, path) == -1) {
        err_errno(err, "write %s", path);
        unlink(temp);
        return false;
    }
    if (broken("file.dirsync") || folder_sync(path) == -1)
        return err_errno(err, "write %s", path);
    return true;
}

bool real_file_append(struct os *os, const char *path, struct slice bytes, bool durable,
                      struct err *err)
{
    (void)os;
    bool is_new = access(path, F_OK) == -1;
    AUTO(fd_close) int fd = broken("file.open")
        ? -1 : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    struct stat st;
    if (fd == -1 || fstat(fd, &st) == -1)
        return err_errno(err, "append to %s", path);
    if (broken("file.write") || !write_all(fd, bytes.at, bytes.len)) {
        err_errno(err, "append to %s", path);
        if (ftruncate(fd, st.st_size) == -1)    /* half a record is worse than none */
            err_wrap(err, "half written");
        return false;
    }
    if (durable && (broken("file.sync") || fsync(fd) == -1 || (is_new && folder_sync(path) == -1)))
        return err_errno(err, "append to %s", path);
    return true;
}

bool real_file_remove(struct os *os, const char *path, struct err *err)
{
    (void)os;
    bool gone = !broken("file.remove") && unlink(path) == 0;
    if (!gone && errno == EISDIR)
        gone = rmdir(path) == 0;
    if (!gone && errno == ENOENT)
        return true;
    if (!gone || folder_sync(path) == -1)
        return err_errno(err, "remove %s", path);
    return true;
}

bool real_dir_make(struct os *os, const char *path, unsigned mode, struct err *err)
{
    (void)os;
    char part[4096];
    if (!text_copy(part, sizeof part, path))
        return err_set(err, RC_BAD_INPUT, "the path is too long");
    for (char *at = part + 1;; at++) {
        bool end = !*at;
        if (!end && *at != '/')
            continue;
        *at = 0;
        struct stat st;
        if (broken("dir.make"))
            return err_errno(err, "make folder %s", part);
        if (mkdir(part, mode) == 0 ? folder_sync(part) == -1
                                   : (errno != EEXIST || stat(part, &st) == -1))
            return err_errno(err, "make folder %s", part);
        if (end && stat(part, &st) == 0 && !S_ISDIR(st.st_mode))
            return err_set(err, RC_CONFLICT, "%s is there and is not a folder", part);
        if (end)
            return true;
        *at = '/';
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void dir_close(DIR *d)
{
    if (d)
        closedir(d);
}
AUTO_FN(DIR *, dir_close)

bool real_dir_list(struct os *os, const char *path, struct arena *mem, struct texts *out,
                   struct err *err)
{
    (void)os;
    AUTO(dir_close) DIR *d = broken("dir.open") ? NULL : opendir(path);
    if (!d)
        return err_errno(err, "list %s", path);
    struct texts found = { 0 };
    size_t room = 0;
    for (struct dirent *e; errno = 0, (e = readdir(d));) {
        if (text_is(e->d_name, ".") || text_is(e->d_name, "..") || name_is_temporary(e->d_name))
            continue;
        if (found.count == room) {
            const char **more = ARENA_ARRAY(mem, const char *, room = room ? room * 2 : 16);
            if (found.count)
                memcpy(more, found.at, found.count * sizeof *more);
            found.at = more;
        }
        found.at[found.count++] = arena_text(mem, e->d_name);
    }
    if (errno)
        return err_errno(err, "list %s", path);
    if (found.count)
        qsort(found.at, found.count, sizeof *found.at, by_name);
    *out = found;
    return true;
}

void real_dir_tidy(const char *path)
{
    AUTO(dir_close) DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));)
        if (name_is_temporary(e->d_name) && unlinkat(dirfd(d), e->d_name, 0) == -1)
            return; /* the next start looks again */
}

struct rdisk { struct disk_file base; int fd; };

static int fd_of(struct disk_file *f) { return ((struct rdisk *)f)->fd; }

struct disk_file *real_disk_open(struct os *os, const char *path, bool create, struct err *err)
{
    bool is_new = create && access(path, F_OK) == -1;
    int fd = broken("disk.open")
        ? -1 : open(path, O_RDWR | O_CLOEXEC | (create ? O_CREAT : 0), 0600);
    if (fd == -1 && !create && (errno == EROFS || errno == EACCES))     /* it can still be read */
        fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd == -1 || (is_new && folder_sync(path) == -1)) {
        err_errno(err, "open %s", path);
        fd_close(fd);
        return NULL;
    }
    struct rdisk *f = os_alloc(sizeof *f);
    f->base.os = os;
    f->fd = fd;
    return &f->base;
}

void real_disk_close(struct disk_file *f)
{
    close(fd_of(f));
    free(f);
}

int64_t real_disk_size(struct disk_file *f)
{
    struct stat st;
    return fstat(fd_of(f), &st) == 0 ? st.st_size : 0;
}

bool real_disk_read(struct disk_file *f, int64_t at, void *out, size_t n, size_t *got)
{
    if (broken("disk.read"))
        return false;
    size_t have = 0;
    while (have < n) {
        ssize_t done = pread(fd_of(f), (char *)out + have, n - have, at + (int64_t)have);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return false;
        if (!done)
            break;
        have += (size_t)done;
    }
    *got = have;
    return true;
}

bool real_disk_write(struct disk_file *f, int64_t at, const void *from, size_t n)
{
    if (broken("disk.write"))
        return false;
    for (const char *p = from; n;) {
        ssize_t done = pwrite(fd_of(f), p, n, at);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        p += done;
        at += done;
        n -= (size_t)done;
    }
    return true;
}

bool real_disk_truncate(struct disk_file *f, int64_t size)
{
    return !broken("disk.truncate") && ftruncate(fd_of(f), size) == 0;
}

bool real_disk_sync(struct disk_file *f)
{
    return !broken("disk.sync") && fdatasync(fd_of(f)) == 0;
}

bool real_disk_exists(struct os *os, const char *path) { return (void)os, access(path, F_OK) == 0; }

int64_t real_disk_free(struct os *os, const char *path)
{
    struct statvfs v;
    (void)os;
    if (fault("disk.free") || statvfs(path, &v) == -1)
        return 0;
    return (int64_t)MIN((uint64_t)v.f_bavail * v.f_frsize, (uint64_t)INT64_MAX);
}

bool real_disk_remove(struct os *os, const char *path)
{
    (void)os;
    return !broken("disk.remove") && (unlink(path) == 0 || errno == ENOENT)
        && folder_sync(path) == 0;
}

bool real_disk_rename(struct os *os, const char *from, const char *to)
{
    (void)os;
    return !broken("disk.rename") && rename(from, to) == 0 && folder_sync(to) == 0;
}
