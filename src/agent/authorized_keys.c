/* authorized_keys.c - lines that we write carry when: "TYPE BASE64 arcus-1790000000 comment".
 *
 * They are good as long as a client may take to log in. Who begins a session later strikes them, and those of keys that were removed from a profile at
 * once; until then they stay, and an SSH server of the image's own would take them. What the file's owner wrote himself is never lost: what cannot be
 * read whole is not written, and a link stays one. */
#include "agent/authorized_keys.h"
#include "base/str.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define OURS " arcus-"
#define NAME "authorized_keys"
enum { FILE_KB = 256, LINE_S = 310, DIGITS = 10, LOCK_TRIES = 250, LOCK_MS = 20 };

static void close_it(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}
#define CLOSES __attribute__((cleanup(close_it)))

static size_t bare_bytes(const char *line)
{
    size_t type = strcspn(line, " ");
    return line[type] ? type + 1 + strcspn(line + type + 1, " ") : type;
}

static bool same_key(const char *a, const char *b)
{
    size_t n = bare_bytes(a);
    return n == bare_bytes(b) && memcmp(a, b, n) == 0;
}

static bool among(const struct texts *keys, const char *line)
{
    for (size_t i = 0; i < keys->count; i++)
        if (same_key(keys->at[i], line))
            return true;
    return false;
}

/* A comment may begin as ours do: arcus-laptop is somebody's own, and so is arcus-20261116. */
static bool is_ours(const char *line, int64_t *at_s)
{
    const char *rest = line + bare_bytes(line), *digits = rest + sizeof OURS - 1;
    if (!text_starts(rest, OURS) || strspn(digits, "0123456789") != DIGITS || (digits[DIGITS] && digits[DIGITS] != ' '))
        return false;
    *at_s = strtoll(digits, NULL, 10);
    return true;
}

static void rewrite(struct str *out, char *old, const struct texts *keys, const struct texts *barred, int64_t now_s, struct arena *mem)
{
    bool *there = ARENA_ARRAY(mem, bool, keys->count + 1);
    int64_t at_s;
    for (char *line; (line = strsep(&old, "\n")) && (*line || old);) {
        if (is_ours(line, &at_s) && (at_s > now_s || now_s - at_s > LINE_S || among(barred, line) || among(keys, line)))
            continue;
        for (size_t i = 0; i < keys->count; i++)
            there[i] |= same_key(keys->at[i], line);
        str_printf(out, "%s\n", line);
    }
    for (size_t i = 0; i < keys->count; i++) {
        size_t n = bare_bytes(keys->at[i]);
        if (!there[i])
            str_printf(out, "%.*s" OURS "%0*lld%s\n", (int)n, keys->at[i], DIGITS, (long long)now_s, keys->at[i] + n);
    }
}

/* Two sessions that begin at once must not lose each other's lines. Whoever holds the lock from inside holds up nobody for long. */
static void lock(int dir)
{
    for (int i = 0; i < LOCK_TRIES && flock(dir, LOCK_EX | LOCK_NB) == -1 && errno == EWOULDBLOCK; i++)
        nanosleep(&(struct timespec){ .tv_nsec = LOCK_MS * 1000000L }, NULL);
}

/* Where none is, an empty one is made: also where a link leads. A FIFO or the like that stands there is nobody's list of keys, and not waited for. */
static bool read_old(int dir, const char *path, bool link, struct arena *mem, char **old, struct err *err)
{
    struct stat st;
    CLOSES int fd = openat(dir, NAME, O_RDONLY | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0600);
    if (fd == -1 || fstat(fd, &st) == -1)
        return err_errno(err, "cannot read %s in the task", path);
    *old = arena_text(mem, "");
    if (!S_ISREG(st.st_mode))
        return !link || err_set(err, RC_CONFLICT, "%s in the task is a link to what is no file", path);
    if (st.st_size > FILE_KB << 10)
        return err_set(err, RC_CONFLICT, "%s in the task is larger than %d KB", path, FILE_KB);
    *old = ARENA_ARRAY(mem, char, (size_t)st.st_size + 1);
    if (read(fd, *old, (size_t)st.st_size) != st.st_size)
        return err_set(err, RC_CONFLICT, "%s in the task could not be read whole; try again", path);
    return strlen(*old) == (size_t)st.st_size || err_set(err, RC_CONFLICT, "%s in the task is no text", path);
}

static bool write_whole(int fd, const char *at, size_t n)
{
    for (ssize_t done; n; at += done, n -= (size_t)done)
        if ((done = write(fd, at, n)) <= 0)
            return false;
    return true;
}

/* Old or new, never half. */
static bool replace(const char *path, const struct str *all, struct arena *mem, struct err *err)
{
    const char *name = strrchr(path, '/') + 1, *fresh = arena_printf(mem, "%.*s.%s-%d", (int)(name - path), path, name, getpid());
    CLOSES int to = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (to != -1 && write_whole(to, all->at, all->len) && rename(fresh, path) == 0)
        return true;
    err_errno(err, "cannot write %s in the task", path);
    unlink(fresh);
    return false;
}

bool authorized_keys_put(const char *folder, const struct texts *keys, const struct texts *barred, int64_t now_s, struct arena *mem, struct err *err)
{
    struct stat st;
    char real[PATH_MAX], *old;
    const char *path = arena_printf(mem, "%s/" NAME, folder);
    mkdir(folder, 0700);
    CLOSES int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir == -1)
        return err_errno(err, "cannot make %s in the task", folder);
    lock(dir);
    bool link = fstatat(dir, NAME, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
    if (!read_old(dir, path, link, mem, &old, err))
        return false;
    if (link && !realpath(path, real))
        return err_errno(err, "cannot read %s in the task", path);
    AUTO(str_done) struct str all = { 0 };
    rewrite(&all, old, keys, barred, now_s, mem);
    return replace(link ? real : path, &all, mem, err);
}
