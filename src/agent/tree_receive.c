/* tree_receive.c - a tar stream becomes files below one folder, and nowhere else.
 *
 * An entry is made new: what has its name is unlinked first, so nothing is ever written through
 * a link or a second name. */
#include "agent/tree.h"
#include "base/fault.h"
#include "wire/tar.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct tree_receiver {
    int root;
    int64_t uid, gid;
    struct tar_reader *tar;
    int file; /* the one being written, or -1 */
    int64_t mtime_s;
};

static bool own(const struct tree_receiver *r, int dir, const char *name)
{
    return r->uid < 0
           || fchownat(dir, name, (uid_t)r->uid, (gid_t)r->gid, AT_SYMLINK_NOFOLLOW) == 0;
}

/* The folder above the last part of `name`, made where it is missing; *last points to that part.
 * A hard link's target comes here too, and nobody has looked at it before: ".." is refused. */
static int open_above(const struct tree_receiver *r, char *name, char **last)
{
    int at = fcntl(r->root, F_DUPFD_CLOEXEC, 3);
    char *part = name;
    for (char *slash; at != -1 && (slash = strchr(part, '/')); part = slash + 1) {
        *slash = 0;
        if (!*part || text_is(part, "."))
            continue;
        bool bad = text_is(part, "..") || (mkdirat(at, part, 0755) == 0 && !own(r, at, part));
        int next = bad ? (errno = EXDEV, -1)
                       : openat(at, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int why = errno;
        close(at);
        errno = why;
        at = next;
    }
    *last = part;
    return at;
}

static bool make_link(struct tree_receiver *r, const struct tar_entry *e, int above,
                      const char *last)
{
    if (e->type == TAR_SYMLINK)
        return symlinkat(e->target, above, last) == 0 && own(r, above, last);
    char target[4096], *name = NULL;
    if (!text_copy(target, sizeof target, e->target))
        return errno = ENAMETOOLONG, false;
    int from = open_above(r, target, &name);
    bool ok = from != -1 && !text_is(name, "..") && linkat(from, name, above, last, 0) == 0;
    int why = errno;
    if (from != -1)
        close(from);
    errno = why;
    return ok;
}

static bool make(struct tree_receiver *r, const struct tar_entry *e, int above, const char *last)
{
    if (e->type == TAR_DIR) {
        struct stat st;
        if (mkdirat(above, last, e->mode & 0777) == -1
            && !(errno == EEXIST && fstatat(above, last, &st, AT_SYMLINK_NOFOLLOW) == 0
                 && S_ISDIR(st.st_mode)))
            return false;
        return own(r, above, last);
    }
    if (unlinkat(above, last, 0) == -1 && errno != ENOENT)
        return false;
    if (e->type != TAR_FILE)
        return make_link(r, e, above, last);
    r->file = openat(above, last, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    r->mtime_s = e->mtime_s;
    return r->file != -1 && (r->uid < 0 || fchown(r->file, (uid_t)r->uid, (gid_t)r->gid) == 0)
           && fchmod(r->file, e->mode & 0777) == 0;
}

static bool on_entry(void *arg, const struct tar_entry *e, struct err *err)
{
    struct tree_receiver *r = arg;
    char name[8192], *last = NULL;
    if (!text_copy(name, sizeof name, e->name))
        return err_set(err, RC_TOO_LARGE, "a name in the archive is too long");
    for (size_t n = strlen(name); n && name[n - 1] == '/';)
        name[--n] = 0;
    int above = broken("tree.make") ? -1 : open_above(r, name, &last);
    bool ok = above != -1 && (text_is(last, ".") || !*last || make(r, e, above, last));
    int why = errno;
    if (above != -1)
        close(above);
    errno = why;
    return ok || err_errno(err, "cannot make %.120s", e->name);
}

static bool on_data(void *arg, const char *at, size_t n, struct err *err)
{
    struct tree_receiver *r = arg;
    while (n && r->file != -1) {
        ssize_t done = broken("tree.write") ? -1 : write(r->file, at, n);
        if (done <= 0)
            return errno == ENOSPC ? err_set(err, RC_OVER_QUOTA, "no space is left there")
                                   : err_errno(err, "cannot write");
        at += done;
        n -= (size_t)done;
    }
    return true;
}

static bool on_entry_end(void *arg, struct err *err)
{
    (void)err;
    struct tree_receiver *r = arg;
    if (r->file == -1)
        return true;
    futimens(r->file, (struct timespec[]){ { .tv_sec = r->mtime_s }, { .tv_sec = r->mtime_s } });
    close(r->file);
    r->file = -1;
    return true;
}

static bool open_root(int dirfd, const char *path, struct tree_receiver *r, struct err *err)
{
    char name[4200], *last = NULL;
    while (*path == '/')
        path++;
    if (!text_copy(name, sizeof name - 2, path))
        return err_set(err, RC_BAD_INPUT, "the path is too long");
    strcat(name, "/.");
    int top = r->root = tree_open(dirfd, "", O_RDONLY | O_DIRECTORY, 0);
    int root = top == -1 ? -1 : open_above(r, name, &last);
    int why = errno;
    if (top != -1)
        close(top);
    r->root = root;
    errno = why;
    return root != -1
           || (errno == ELOOP || errno == ENOTDIR
                   ? err_set(err, RC_BAD_INPUT, "%s: not a folder", path)
                   : err_errno(err, "cannot open %s", path));
}

bool tree_receive(int dirfd, const char *path, int64_t uid, int64_t gid, struct tree_receiver **out,
                  struct err *err)
{
    static const struct tar_events events
        = { .on_entry = on_entry, .on_data = on_data, .on_entry_end = on_entry_end };
    if (strstr(path, ".."))
        return err_set(err, RC_BAD_INPUT, "%s: '..' is not taken", path);
    struct tree_receiver *r = calloc(1, sizeof *r);
    if (!r)
        abort();
    *r = (struct tree_receiver){ .root = -1, .uid = uid, .gid = gid, .file = -1 };
    if (!open_root(dirfd, path, r, err)) {
        tree_receiver_free(r);
        return false;
    }
    r->tar = tar_reader_new(&events, r);
    *out = r;
    return true;
}

bool tree_receive_feed(struct tree_receiver *r, const char *at, size_t n, struct err *err)
{
    return tar_feed(r->tar, at, n, err);
}

bool tree_receive_end(struct tree_receiver *r, struct err *err)
{
    return tar_complete(r->tar) || err_set(err, RC_BAD_INPUT, "the archive was cut short");
}

void tree_receiver_free(struct tree_receiver *r)
{
    if (!r)
        return;
    if (r->file != -1)
        close(r->file);
    if (r->root != -1)
        close(r->root);
    tar_reader_free(r->tar);
    free(r);
}
