/* scratch_file.c - the file is a copy of a template's few blocks, as making a filesystem takes far longer than a start may. */
#include "agent/scratch_file.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOOP_TRIES = 200, LOOP_BLOCK = 4096, LOOP_PAUSE_US = 200, LOOP_PAUSE_MOST_US = 20000 };

const char scratch_options[] = "noinit_itable,discard";

static void close_it(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}
#define CLOSES __attribute__((cleanup(close_it)))

static bool copy_blocks(int from, int to, struct err *err)
{
    struct stat st;
    if (fstat(from, &st) == -1 || ftruncate(to, st.st_size) == -1)
        return err_errno(err, "cannot size the scratch file");
    if (ioctl(to, FICLONE, from) == 0)
        return true;
    for (off_t at = 0; (at = lseek(from, at, SEEK_DATA)) >= 0;) {
        off_t end = lseek(from, at, SEEK_HOLE), in = at, out = at;
        while (in < end)
            if (copy_file_range(from, &in, to, &out, (size_t)(end - in), 0) <= 0)
                return err_errno(err, "cannot copy the scratch template");
        at = end;
    }
    return errno == ENXIO || err_errno(err, "cannot read the scratch template");
}

/* A free number is told to everybody who asks at the same time, and one of them gets it: the others ask again, each after a
 * time of its own. */
bool scratch_loop(int file, char device[static SCRATCH_DEVICE], int *out, struct err *err)
{
    CLOSES int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    if (control == -1)
        return err_errno(err, "cannot open /dev/loop-control");
    struct loop_config config = { .fd = (uint32_t)file,
                                  .block_size = LOOP_BLOCK,
                                  .info = { .lo_flags = LO_FLAGS_AUTOCLEAR } };
    unsigned seed = (unsigned)getpid() ^ (unsigned)file << 16;
    for (int i = 0, pause = LOOP_PAUSE_US; i < LOOP_TRIES; i++) {
        int n = ioctl(control, LOOP_CTL_GET_FREE);
        if (n < 0)
            break;
        snprintf(device, SCRATCH_DEVICE, "/dev/loop%d", n);
        int fd = open(device, O_RDWR | O_CLOEXEC);
        if (fd != -1 && ioctl(fd, LOOP_CONFIGURE, &config) == 0)
            return *out = fd, true;
        int why = errno;
        close_it(&fd);
        errno = why;
        if (why != EBUSY)
            break;
        usleep((useconds_t)(rand_r(&seed) % pause));
        pause = MIN(pause * 2, LOOP_PAUSE_MOST_US);
        errno = EBUSY;
    }
    return err_errno(err, "cannot attach a loop device");
}

bool scratch_copy(const char *template, const char *folder, int *out, struct err *err)
{
    CLOSES int from = open(template, O_RDONLY | O_CLOEXEC);
    if (from == -1)
        return err_errno(err, "cannot open %s", template);
    int file = open(folder, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600); /* no name: it cannot be left over */
    if (file == -1)
        return err_errno(err, "cannot make a scratch file in %s", folder);
    *out = file;
    return copy_blocks(from, file, err);
}

bool scratch_attach(const char *template, const char *folder, char device[static SCRATCH_DEVICE],
                    int *loop, struct err *err)
{
    CLOSES int file = -1;
    return scratch_copy(template, folder, &file, err) && scratch_loop(file, device, loop, err);
}
