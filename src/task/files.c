/* files.c - the few file operations a supervisor needs, with no promise after a crash. */
#include "task/task.h"
#include "base/fault.h"
#include "wire/bind.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

bool small_read(const char *path, size_t limit, struct arena *mem, struct slice *out,
                struct err *err)
{
    AUTO(fd_close)
    int fd = broken("file.open") ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct stat st;
    if (fd == -1 || fstat(fd, &st) == -1)
        return err_errno(err, "cannot read %s", path);
    if ((size_t)st.st_size > limit)
        return err_set(err, RC_TOO_LARGE, "%s is larger than %zu bytes", path, limit);
    char *text = ARENA_ARRAY(mem, char, (size_t)st.st_size + 1);
    size_t have = 0;
    for (ssize_t n = 1; n > 0 && have < (size_t)st.st_size; have += (size_t)MAX(n, 0))
        n = read(fd, text + have, (size_t)st.st_size - have);
    *out = (struct slice){ text, have };
    return true;
}

bool small_parse(const char *path, const struct fields *fields, struct arena *mem, void *out,
                 struct err *err)
{
    struct slice text;
    struct json *doc = NULL;
    return (small_read(path, PLAN_BYTES, mem, &text, err) && json_parse(text, mem, &doc, err)
            && bind_read_ours(doc, fields, mem, out, NULL, err))
           || err_wrap(err, "%s", path);
}

static bool write_whole(const char *path, struct slice bytes, unsigned mode, struct err *err)
{
    AUTO(fd_close) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd == -1)
        return err_errno(err, "cannot make %s", path);
    for (size_t done = 0; done < bytes.len;) {
        ssize_t n = write(fd, bytes.at + done, bytes.len - done);
        if (n == -1 && errno == EINTR)
            continue;
        if (n <= 0)
            return err_errno(err, "cannot write %s", path);
        done += (size_t)n;
    }
    return true;
}

bool small_replace(const char *path, struct slice bytes, unsigned mode, struct err *err)
{
    char temp[4200];
    const char *slash = strrchr(path, '/');
    int n = slash ? (int)(slash - path) : 0;
    if (!slash || (size_t)snprintf(temp, sizeof temp, "%.*s/.%s", n, path, slash + 1) >= sizeof temp)
        return err_set(err, RC_INTERNAL, "bad path %.80s", path);
    if (!write_whole(temp, bytes, mode, err))
        return false;
    return rename(temp, path) == 0 || err_errno(err, "cannot replace %s", path);
}

const char *path_in(struct arena *mem, const char *folder, const char *name)
{
    return arena_printf(mem, "%s/%s", folder, name);
}
