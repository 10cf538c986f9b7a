/* logs.c - writes what the container says as records (agent/log_format.h), in segments, never
 * more than was granted.
 *
 * A write that fails (disk full) drops that record and goes on: a task must not stop because its
 * log cannot grow. A task that says nothing has no folder: many do not, and a disk makes folders slowly. */
#include "task/task.h"
#include "base/fault.h"
#include "agent/log_format.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/uio.h>

enum { SEGMENTS = 8 };

struct log_writer {
    const char *folder;
    int fd;
    int64_t number, oldest; /* the segment written to, the first that is still there */
    int64_t size, segment_max;
};

static bool segment_open(struct log_writer *w, struct err *err)
{
    char name[LOG_SEGMENT_NAME + 1], path[4200];
    log_segment_name(name, w->number);
    snprintf(path, sizeof path, "%s/%s", w->folder, name);
    fd_close(w->fd);
    w->fd = -1;
    for (int i = 0; i < 2 && w->fd == -1 && !broken("log.open"); i++) {
        w->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (w->fd == -1 && (errno != ENOENT || mkdir(w->folder, 0700) == -1))
            break;
    }
    w->size = 0;
    return w->fd != -1 || err_errno(err, "cannot make %s", path);
}

struct log_writer *log_writer_new(const char *folder, int64_t limit_mib, struct arena *mem)
{
    struct log_writer *w = ARENA_NEW(mem, struct log_writer);
    *w = (struct log_writer){ .folder = folder, .fd = -1, .number = 1, .oldest = 1 };
    w->segment_max = MAX(limit_mib, 1) * (1 << 20) / SEGMENTS;
    return w;
}

static void next_segment(struct log_writer *w)
{
    struct err err = { 0 };
    w->number++;
    if (!segment_open(w, &err))
        return;
    for (; w->number - w->oldest >= SEGMENTS; w->oldest++) {
        char name[LOG_SEGMENT_NAME + 1], path[4200];
        log_segment_name(name, w->oldest);
        snprintf(path, sizeof path, "%s/%s", w->folder, name);
        unlink(path);
    }
}

void log_writer_add(struct log_writer *w, char stream, const char *at, size_t n)
{
    char head[LOG_HEADER_MAX];
    size_t head_len = log_header(head, wall_ms(), stream, n);
    struct err ignored = { 0 };
    if (w->size && w->size + (int64_t)(head_len + n) > w->segment_max)
        next_segment(w);
    else if (w->fd == -1) /* it could not be made: it may be by now */
        (void)segment_open(w, &ignored);
    struct iovec parts[] = { { head, head_len }, { (void *)at, n } };
    ssize_t done = w->fd == -1 || broken("log.write") ? -1 : writev(w->fd, parts, COUNT(parts));
    if (done == (ssize_t)(head_len + n))
        w->size += done;
    else if (done > 0
             && ftruncate(w->fd, w->size) == -1) /* half a record would break what follows */
        next_segment(w);
}

void log_writer_close(struct log_writer *w)
{
    if (!w)
        return;
    if (w->fd != -1)
        fdatasync(w->fd);
    fd_close(w->fd);
}
