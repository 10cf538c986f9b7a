/* shim.c - a worse world for one process, through LD_PRELOAD: a slow disk, a disk that cannot be read for a moment, a wall clock that
 * jumps. What it does is in a small file (SHIM), looked at before each call, so that a test changes it while the process runs:
 *
 *   sync_ms=300    fsync and fdatasync take so long
 *   eio=20         the next so many reads of a file whose name ends in .db fail with EIO
 *   clock_s=3600   CLOCK_REALTIME is ahead by so much */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long setting(const char *name)
{
    char text[256] = "", *at;
    const char *path = getenv("SHIM");
    int keep = errno, fd = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd == -1)
        return errno = keep, 0;
    long n = syscall(SYS_read, fd, text, sizeof text - 1);
    syscall(SYS_close, fd);
    errno = keep;
    at = n > 0 ? strstr(text, name) : NULL;
    return at && at[strlen(name)] == '=' ? atol(at + strlen(name) + 1) : 0;
}

static void wait_ms(long ms)
{
    struct timespec t = { ms / 1000, ms % 1000 * 1000000 };
    if (ms)
        nanosleep(&t, NULL);
}

int fsync(int fd)
{
    wait_ms(setting("sync_ms"));
    return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    wait_ms(setting("sync_ms"));
    return (int)syscall(SYS_fdatasync, fd);
}

static int fails(int fd)
{
    static atomic_long failed;
    char link[64], name[256];
    if (atomic_load(&failed) >= setting("eio"))
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, name, sizeof name);
    if (n < 3 || memcmp(name + n - 3, ".db", 3) != 0)
        return 0;
    atomic_fetch_add(&failed, 1);
    return errno = EIO, 1;
}

ssize_t pread64(int fd, void *to, size_t n, off64_t at)
{
    return fails(fd) ? -1 : syscall(SYS_pread64, fd, to, n, at);
}

ssize_t pread(int fd, void *to, size_t n, off_t at)
{
    return fails(fd) ? -1 : syscall(SYS_pread64, fd, to, n, at);
}

int clock_gettime(clockid_t id, struct timespec *out)
{
    int rc = (int)syscall(SYS_clock_gettime, id, out);
    if (rc == 0 && id == CLOCK_REALTIME)
        out->tv_sec += setting("clock_s");
    return rc;
}

int gettimeofday(struct timeval *out, void *zone)
{
    struct timespec t;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &t) == -1)
        return -1;
    *out = (struct timeval){ t.tv_sec, t.tv_nsec / 1000 };
    return 0;
}

time_t time(time_t *out)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    if (out)
        *out = t.tv_sec;
    return t.tv_sec;
}
