/* pack.c - a walk over a local tree in the order of names, written as tar.
 *
 * A link is sent as a link, so a loop of them cannot be walked into. A file that grows or shrinks
 * meanwhile is cut or filled to the size its header told, so that the stream stays readable.
 * Sockets, pipes and devices are left out. */
#include "cli/pack.h"
#include "base/fault.h"
#include "wire/tar.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH_MOST = 200, CHUNK = 64 << 10, NAME_ROOM = 4096, RULES_MOST = 1 << 20 };

struct packer {
    const struct pack_how *how;
    const struct sink *sink;
    struct str rules;
    char name[NAME_ROOM];           /* in the archive */
    size_t top;                     /* how much of it is the top's own name */
    char *chunk;
    int64_t measured;
    bool measure;                   /* count, do not read */
    struct err *err;
};

/* --- what is left out */

static bool rule_matches(const char *rule, size_t n, const char *path, bool folder)
{
    char pattern[512];
    bool only_folders = n && rule[n - 1] == '/';
    n -= only_folders;
    if (n == 0 || n >= sizeof pattern || (only_folders && !folder))
        return false;
    memcpy(pattern, rule, n);
    pattern[n] = 0;
    const char *slash = strrchr(path, '/');
    if (!strchr(pattern, '/'))
        return fnmatch(pattern, slash ? slash + 1 : path, 0) == 0;
    return fnmatch(pattern + (pattern[0] == '/'), path, FNM_PATHNAME) == 0;
}

bool ignored(const char *rules, const char *path, bool folder)
{
    const char *slash = strrchr(path, '/');
    bool out = text_is(slash ? slash + 1 : path, ".git");
    for (const char *line = rules; line && *line;) {
        size_t n = strcspn(line, "\n"), end = n;
        while (end && strchr(" \t\r", line[end - 1]))
            end--;
        bool back = end && line[0] == '!';
        if (end && line[0] != '#' && rule_matches(line + back, end - back, path, folder))
            out = !back;
        line += n + (line[n] == '\n');
    }
    return out;
}

static bool read_rules(struct packer *p, const char *folder)
{
    char path[NAME_ROOM];
    if ((size_t)snprintf(path, sizeof path, "%s/.arcusignore", folder) >= sizeof path)
        return err_set(p->err, RC_BAD_INPUT, "the path %.100s... is too long", folder);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd == -1)
        return errno == ENOENT || err_errno(p->err, "cannot read %s", path);
    ssize_t n;
    while ((n = read(fd, str_grow(&p->rules, 4096), 4096)) > 0 && p->rules.len < RULES_MOST)
        p->rules.len += (size_t)n;
    close(fd);
    str_char(&p->rules, '\n');
    return p->rules.len < RULES_MOST
           || err_set(p->err, RC_TOO_LARGE, "%s is larger than a megabyte", path);
}

/* --- entries */

static bool put(struct packer *p, const char *at, size_t n)
{
    p->measured += (int64_t)n;
    return p->measure || !n || p->sink->put(p->sink->arg, at, n, p->err);
}

static bool put_header(struct packer *p, enum tar_type type, const struct stat *st,
                       const char *target)
{
    AUTO(str_done) struct str out = { 0 };
    struct tar_entry e = { .type = type,
                           .name = p->name,
                           .target = target,
                           .mode = st->st_mode & 0777,
                           .size = type == TAR_FILE ? st->st_size : 0,
                           .mtime_s = st->st_mtim.tv_sec };
    if (p->how->same) {
        e.mode = type == TAR_DIR || (st->st_mode & 0100) ? 0755 : 0644;
        e.mtime_s = 0;
    }
    tar_header(&out, &e);
    return put(p, out.at, out.len);
}

static bool put_file(struct packer *p, int fd, const struct stat *st)
{
    AUTO(str_done) struct str pad = { 0 };
    if (!put_header(p, TAR_FILE, st, NULL))
        return false;
    if (p->measure)
        p->measured += st->st_size;
    bool more = true;
    for (int64_t left = p->measure ? 0 : st->st_size; left > 0;) {
        size_t want = (size_t)MIN(left, (int64_t)CHUNK);
        ssize_t n = more ? read(fd, p->chunk, want) : 0;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 || (fault("pack.read") && (errno = EIO)))
            return err_errno(p->err, "cannot read %s", p->name);
        if (n == 0) {
            more = false;
            n = (ssize_t)want;
            memset(p->chunk, 0, want);
        }
        if (!put(p, p->chunk, (size_t)n))
            return false;
        left -= n;
    }
    tar_pad(&pad, st->st_size);
    return put(p, pad.at, pad.len);
}

static bool put_folder(struct packer *p, int fd, int depth);

static bool unreadable(struct packer *p)
{
    return p->how->ignore
               ? err_errno(p->err, "cannot read %s (a line in .arcusignore leaves it out)", p->name)
               : err_errno(p->err, "cannot read %s", p->name);
}

static bool put_entry(struct packer *p, int dir, const char *name, int depth)
{
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == -1)
        return errno == ENOENT || unreadable(p);                /* it was there a moment ago */
    if (S_ISLNK(st.st_mode)) {
        char target[NAME_ROOM];
        ssize_t n = readlinkat(dir, name, target, sizeof target - 1);
        target[MAX(n, 0)] = 0;
        return n > 0 ? put_header(p, TAR_SYMLINK, &st, target) : unreadable(p);
    }
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return true;
    int fd = openat(dir, name,
                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC
                        | (S_ISDIR(st.st_mode) ? O_DIRECTORY : 0));
    if (fd == -1)
        return unreadable(p);
    bool ok = fstat(fd, &st) == 0 || unreadable(p);
    if (ok && S_ISDIR(st.st_mode))
        ok = (!p->name[0] || put_header(p, TAR_DIR, &st, NULL)) && put_folder(p, fd, depth + 1);
    else if (ok)
        ok = put_file(p, fd, &st);
    close(fd);
    return ok;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool names_of(struct packer *p, int fd, struct arena *mem, char ***out, size_t *count)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    DIR *d = copy == -1 ? NULL : fdopendir(copy);
    AUTO(str_done) struct str list = { 0 };
    if (!d) {
        if (copy != -1)
            close(copy);
        return unreadable(p);
    }
    for (struct dirent *e; (e = readdir(d));)
        if (!text_is(e->d_name, ".") && !text_is(e->d_name, "..")) {
            char *name = arena_text(mem, e->d_name);
            str_put(&list, &name, sizeof name);
        }
    closedir(d);
    *count = list.len / sizeof(char *);
    *out = ARENA_ARRAY(mem, char *, *count + 1);
    if (*count)
        memcpy(*out, list.at, list.len);
    qsort(*out, *count, sizeof **out, by_name);
    return true;
}

static bool is_ignored(struct packer *p, int dir, const char *name)
{
    struct stat st;
    const char *path = p->name + p->top;
    if (!p->how->ignore)
        return false;
    bool folder = fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
    return ignored(p->rules.at, path + (path[0] == '/'), folder);
}

static bool put_folder(struct packer *p, int fd, int depth)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    size_t len = strlen(p->name), count;
    char **names;
    if (depth > DEPTH_MOST)
        return err_set(p->err, RC_TOO_LARGE, "folders are nested deeper than %d at %.120s",
                       DEPTH_MOST, p->name);
    if (!names_of(p, fd, mem, &names, &count))
        return false;
    bool ok = true;
    for (size_t i = 0; ok && i < count; i++) {
        size_t more
            = (size_t)snprintf(p->name + len, NAME_ROOM - len, "%s%s", len ? "/" : "", names[i]);
        if (more >= NAME_ROOM - len)
            ok = err_set(p->err, RC_TOO_LARGE, "a path below %.120s is longer than %d bytes",
                         p->name, NAME_ROOM);
        else if (!is_ignored(p, fd, names[i]))
            ok = put_entry(p, fd, names[i], depth);
        p->name[len] = 0;
    }
    return ok;
}

/* --- the whole */

static bool walk(const char *path, const struct pack_how *how, const struct sink *sink,
                 bool measure, int64_t *bytes, struct err *err)
{
    struct packer *p = calloc(1, sizeof *p);
    AUTO(str_done) struct str end = { 0 };
    struct stat st;
    if (!p || !(p->chunk = malloc(CHUNK)))
        abort();
    p->how = how, p->sink = sink, p->measure = measure, p->err = err;
    /* the top itself may be a link: the user named it */
    bool ok = stat(path, &st) == 0 || err_errno(err, "%s", path);
    if (ok && !how->top && !S_ISDIR(st.st_mode))
        ok = err_set(err, RC_BAD_INPUT, "%s is not a folder", path);
    if (ok && how->top)
        ok = text_copy(p->name, sizeof p->name, how->top)
             || err_set(err, RC_BAD_INPUT, "the name %.100s is too long", how->top);
    p->top = ok ? strlen(p->name) : 0;
    if (ok && how->ignore && S_ISDIR(st.st_mode))
        ok = read_rules(p, path);
    char *real = ok ? realpath(path, NULL) : NULL;
    ok = ok && (real || err_errno(err, "%s", path)) && put_entry(p, AT_FDCWD, real, 0);
    free(real);
    tar_end(&end);
    ok = ok && put(p, end.at, end.len);
    *bytes = p->measured;
    str_done(&p->rules);
    free(p->chunk);
    free(p);
    return ok;
}

bool pack(const char *path, const struct pack_how *how, const struct sink *sink, struct err *err)
{
    int64_t bytes;
    return walk(path, how, sink, false, &bytes, err);
}

bool pack_size(const char *path, const struct pack_how *how, int64_t *bytes, struct err *err)
{
    return walk(path, how, NULL, true, bytes, err);
}
