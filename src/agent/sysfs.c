/* sysfs.c - see sysfs.h. */
#include "agent/sysfs.h"
#include "base/str.h"
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { LINE = 4096, NAMES_MOST = 1024 };

static bool read_line(const char *fmt, va_list ap, char out[static LINE])
{
    char path[SYSFS_PATH];
    if (vsnprintf(path, sizeof path, fmt, ap) >= (int)sizeof path)
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : read(fd, out, LINE - 1);
    if (fd >= 0)
        close(fd);
    if (n < 0)
        return false;
    out[n] = 0;
    n = (ssize_t)strcspn(out, "\n");
    while (n && isspace((unsigned char)out[n - 1]))
        n--;
    out[n] = 0;
    return true;
}

const char *sysfs_text(struct arena *mem, const char *fmt, ...)
{
    char line[LINE];
    va_list ap;
    va_start(ap, fmt);
    bool ok = read_line(fmt, ap, line);
    va_end(ap);
    return ok ? arena_text(mem, line) : NULL;
}

int64_t sysfs_int(const char *fmt, ...)
{
    char line[LINE], *end;
    va_list ap;
    va_start(ap, fmt);
    bool ok = read_line(fmt, ap, line);
    va_end(ap);
    errno = 0;
    long long n = ok ? strtoll(line, &end, 0) : -1;
    return !ok || errno || end == line || *end || n < 0 ? -1 : n;
}

static int by_name(const void *a, const void *b)
{
    return strverscmp(*(const char *const *)a, *(const char *const *)b);
}

struct texts sysfs_list(struct arena *mem, const char *begins, const char *fmt, ...)
{
    char path[SYSFS_PATH];
    struct texts out = { 0 };
    va_list ap;
    va_start(ap, fmt);
    bool fits = vsnprintf(path, sizeof path, fmt, ap) < (int)sizeof path;
    va_end(ap);
    DIR *d = fits ? opendir(path) : NULL;
    if (!d)
        return out;
    out.at = ARENA_ARRAY(mem, const char *, NAMES_MOST);
    for (struct dirent *e; out.count < NAMES_MOST && (e = readdir(d));)
        if (e->d_name[0] != '.' && text_starts(e->d_name, begins))
            out.at[out.count++] = arena_text(mem, e->d_name);
    closedir(d);
    qsort(out.at, out.count, sizeof *out.at, by_name);
    return out;
}

const char *sysfs_real(struct arena *mem, const char *fmt, ...)
{
    char path[SYSFS_PATH], real[PATH_MAX];
    va_list ap;
    va_start(ap, fmt);
    bool fits = vsnprintf(path, sizeof path, fmt, ap) < (int)sizeof path;
    va_end(ap);
    return fits && realpath(path, real) ? arena_text(mem, real) : NULL;
}

const char *sysfs_base(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path;
}
