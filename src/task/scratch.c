/* scratch.c - the space a task may write to: an ext4 of exactly its size in a sparse file, or a
 * tmpfs where loop devices cannot be had. A full scratch is the task's own problem; the node's
 * disk never is.
 *
 * The file is a copy of a template's few blocks, as making a filesystem takes far longer than a
 * start may. */
#include "task/task.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>

enum { LOOP_TRIES = 32, LOOP_BLOCK = 4096 };

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

/* A free number may be taken by another supervisor between asking and using it. The device lets
 * go of the file by itself when the last mount of it has gone, also after a crash. */
static bool loop_attach(int file, char device[static 32], int *out, struct err *err)
{
    AUTO(fd_close) int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    if (control == -1)
        return err_errno(err, "cannot open /dev/loop-control");
    struct loop_config config = { .fd = (uint32_t)file,
                                  .block_size = LOOP_BLOCK,
                                  .info = { .lo_flags = LO_FLAGS_AUTOCLEAR } };
    for (int i = 0; i < LOOP_TRIES; i++) {
        int n = ioctl(control, LOOP_CTL_GET_FREE);
        if (n < 0)
            break;
        snprintf(device, 32, "/dev/loop%d", n);
        int fd = open(device, O_RDWR | O_CLOEXEC);
        if (fd != -1 && ioctl(fd, LOOP_CONFIGURE, &config) == 0)
            return *out = fd, true;
        int why = errno;
        fd_close(fd);
        errno = why;
        if (why != EBUSY)
            break;
    }
    return err_errno(err, "cannot attach a loop device");
}

static bool loop_mount(const struct plan *p, struct err *err)
{
    char device[32];
    AUTO(fd_close) int template = open(p->scratch_template, O_RDONLY | O_CLOEXEC);
    if (template == -1)
        return err_errno(err, "cannot open %s", p->scratch_template);
    AUTO(fd_close)
    int file = open(p->folder, O_RDWR | O_TMPFILE | O_CLOEXEC,
                    0600); /* no name: it cannot be left over */
    if (file == -1)
        return err_errno(err, "cannot make a scratch file in %s", p->folder);
    AUTO(fd_close) int loop = -1;
    if (!copy_blocks(template, file, err) || !loop_attach(file, device, &loop, err))
        return false;
    return mount(device, "scratch", "ext4", MS_NOSUID | MS_NODEV | MS_NOATIME,
                 "noinit_itable,discard")
               == 0
           || err_errno(err, "cannot mount the scratch file");
}

bool scratch_mount(const struct plan *p, struct err *err)
{
    char options[64];
    if ((mkdir("scratch", 0711) == -1 || mkdir("rootfs", 0711) == -1) && errno != EEXIST)
        return err_errno(err, "cannot make folders in %s", p->run);
    if (p->scratch == SCRATCH_LOOP && !loop_mount(p, err))
        return false;
    snprintf(options, sizeof options, "mode=0711,size=%lldm,nr_inodes=1m",
             (long long)p->scratch_mib);
    if (p->scratch == SCRATCH_TMPFS
        && mount("scratch", "scratch", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOATIME, options) == -1)
        return err_errno(err, "cannot mount a tmpfs");
    return chmod("scratch", 0711) == 0 || err_errno(err, "cannot open the scratch folder");
}
