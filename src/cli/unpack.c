/* unpack.c - what a task or a volume sends, made below one local path and nowhere else.
 *
 * The sender is not trusted: names with `..` are refused by the tar reader, every folder on the
 * way is opened by itself without following links, a link in the place of a file is replaced, and
 * set-uid bits are dropped. Hard links are refused. */
#include "cli/pack.h"
#include "base/fault.h"
#include "wire/tar.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct unpack {
    struct tar_reader *tar;
    int base;                       /* the folder that holds the top entry */
    char top[256]; /* what the top entry is called here; "" keeps the names as they come */
    int file;                       /* being written, or -1 */
    int64_t mtime_s, bytes;
};

static void fd_shut(int fd)
{
    if (fd != -1)
        close(fd);
}

/* Opens the folder that `path` is in, making what is missing. *last: the part behind it. */
static bool open_above(struct unpack *u, const char *path, int *out, const char **last,
                       struct err *err)
{
    int fd = fcntl(u->base, F_DUPFD_CLOEXEC, 3);
    for (;;) {
        char part[256];
        size_t n = strcspn(path, "/");
        if (fd == -1)
            return err_errno(err, "cannot open the folder of %s", path);
        if (!path[n]) {
            *out = fd, *last = path;
            return true;
        }
        snprintf(part, sizeof part, "%.*s", (int)MIN(n, sizeof part - 1), path);
        if (n >= sizeof part || text_is(part, "..") || text_is(part, ".") || !n) {
            close(fd);
            return err_set(err, RC_BAD_INPUT, "the name %.100s is not taken", path);
        }
        int next = openat(fd, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (next == -1 && errno == ENOENT && mkdirat(fd, part, 0777) == 0)
            next = openat(fd, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (next == -1) {
            bool link = errno == ELOOP || errno == ENOTDIR;
            close(fd);
            return link ? err_set(
                       err, RC_CONFLICT,
                       "%s is a link or a file here, and a folder there; it is not written through",
                       part)
                        : err_errno(err, "cannot open the folder %s", part);
        }
        close(fd);
        fd = next;
        path += n + 1;
    }
}

/* The name it gets here: the sender's top is replaced by what the user asked for. */
static bool local_name(const struct unpack *u, const char *name, struct str *out, struct err *err)
{
    while (text_starts(name, "./"))
        name += 2;
    const char *slash = strchr(name, '/');
    str_text(out, u->top[0] ? u->top : name);
    if (u->top[0] && slash)
        str_text(out, slash);
    while (out->len > 1 && out->at[out->len - 1] == '/')
        out->at[--out->len] = 0;
    return out->len > 0 || err_set(err, RC_BAD_INPUT, "an entry has no name");
}

static bool make_folder(int dir, const char *name, unsigned mode, struct err *err)
{
    struct stat st;
    if (mkdirat(dir, name, (mode & 0777) | 0700) == 0)
        return true;
    if (errno == EEXIST && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
        return true;
    return errno == EEXIST ? err_set(
               err, RC_CONFLICT, "%s is in the way: a folder comes where a file or link is", name)
                           : err_errno(err, "cannot make %s", name);
}

static bool make_file(struct unpack *u, int dir, const char *name, unsigned mode, struct err *err)
{
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(st.st_mode)
        && !S_ISDIR(st.st_mode))
        unlinkat(dir, name, 0);                 /* a link or a pipe: never written through */
    u->file = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode & 0777);
    return u->file != -1 || err_errno(err, "cannot write %s", name);
}

static bool make_link(int dir, const char *name, const char *target, struct err *err)
{
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode))
        unlinkat(dir, name, 0);
    return symlinkat(target, dir, name) == 0 || err_errno(err, "cannot make the link %s", name);
}

static bool on_entry(void *arg, const struct tar_entry *e, struct err *err)
{
    struct unpack *u = arg;
    AUTO(str_done) struct str path = { 0 };
    const char *last;
    int dir = -1;
    if (text_is(e->name, ".") || text_is(e->name, "./"))
        return true;
    if (!local_name(u, e->name, &path, err) || !open_above(u, path.at, &dir, &last, err))
        return false;
    u->mtime_s = e->mtime_s;
    bool ok = text_is(last, "..") || text_is(last, ".")
                  ? err_set(err, RC_BAD_INPUT, "the name %.100s is not taken", path.at)
              : e->type == TAR_DIR  ? make_folder(dir, last, e->mode, err)
              : e->type == TAR_FILE ? make_file(u, dir, last, e->mode, err)
              : e->type == TAR_SYMLINK
                  ? make_link(dir, last, e->target, err)
                  : err_set(err, RC_BAD_INPUT, "%s is a hard link, which is not taken", path.at);
    fd_shut(dir);
    return ok;
}

static bool on_data(void *arg, const char *at, size_t n, struct err *err)
{
    struct unpack *u = arg;
    u->bytes += (int64_t)n;
    while (n && u->file != -1) {
        ssize_t m = write(u->file, at, n);
        if (m < 0 && errno == EINTR)
            continue;
        if (m <= 0 || (fault("unpack.write") && (errno = ENOSPC)))
            return err_errno(err, "cannot write");
        at += m;
        n -= (size_t)m;
    }
    return true;
}

static bool on_entry_end(void *arg, struct err *err)
{
    struct unpack *u = arg;
    int fd = u->file;
    if (fd == -1)
        return true;
    u->file = -1;
    struct timespec times[2] = { { .tv_sec = u->mtime_s }, { .tv_sec = u->mtime_s } };
    if (u->mtime_s > 0)
        (void)!futimens(fd, times);
    return close(fd) == 0 || err_errno(err, "cannot write");
}

bool unpack_start(const char *target, bool into, struct unpack **out, struct err *err)
{
    static const struct tar_events events = { on_entry, on_data, on_entry_end };
    struct unpack *u = calloc(1, sizeof *u);
    char path[4096];
    if (!u)
        abort();
    u->base = u->file = -1;
    bool ok = text_copy(path, sizeof path, target)
              || err_set(err, RC_BAD_INPUT, "the path %.100s is too long", target);
    size_t n = ok ? strlen(path) : 0;
    while (n > 1 && path[n - 1] == '/')
        path[--n] = 0;
    if (ok && !into) {
        char *slash = strrchr(path, '/');
        ok = text_copy(u->top, sizeof u->top, slash ? slash + 1 : path)
             || err_set(err, RC_BAD_INPUT, "the name %.100s is too long", path);
        snprintf(path, sizeof path, "%.*s", slash ? (int)MAX(slash - path, 1) : 1,
                 slash ? target : ".");
    }
    if (ok && into && mkdir(path, 0777) == -1 && errno != EEXIST)
        ok = err_errno(err, "cannot make %s", path);
    if (ok)
        u->base = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (ok && u->base == -1)
        ok = err_errno(err, "cannot open the folder %s", path);
    u->tar = tar_reader_new(&events, u);
    if (!ok) {
        unpack_free(u);
        return false;
    }
    *out = u;
    return true;
}

bool unpack_feed(struct unpack *u, const char *at, size_t n, struct err *err)
{
    return tar_feed(u->tar, at, n, err);
}

bool unpack_end(struct unpack *u, struct err *err)
{
    return tar_complete(u->tar)
           || err_set(err, RC_UNAVAILABLE, "it was cut short: not all of it came");
}

int64_t unpack_bytes(const struct unpack *u) { return u->bytes; }

void unpack_free(struct unpack *u)
{
    if (!u)
        return;
    fd_shut(u->file);
    fd_shut(u->base);
    tar_reader_free(u->tar);
    free(u);
}
