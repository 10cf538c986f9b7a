/* disk.c - the disk of an instance: a scratch that is kept in a file with a name, from one attempt to the next.
 *
 * The file appears whole or not at all. Its ids on the disk are those of one fixed range, whatever range this attempt has: an idmapped mount tells one for the
 * other, so no tree is ever chowned. The file is locked by the loop device itself, so that nothing mounts it twice, even if a task is stuck in the
 * kernel and its supervisor has gone. */
#include "task/task.h"
#include "agent/scratch_file.h"
#include "base/fault.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>

enum { LOCK_TRIES = 1500, LOCK_PAUSE_US = 20000, FULL_BLOCKS = 16 };
#define SHUTDOWN _IOR('X', 125, uint32_t)  /* EXT4_IOC_SHUTDOWN, which old headers do not have */

static bool make_file(const struct plan *p, int dir, int *out, struct err *err)
{
    if (!scratch_copy(p->scratch_template, p->disk, out, err))
        return false;
    return (!broken("disk.keep") && fsync(*out) == 0 && linkat(*out, "", dir, DISK_FILE, AT_EMPTY_PATH) == 0 && fsync(dir) == 0)
           || err_errno(err, "cannot keep a disk in %s", p->disk);
}

/* The supervisor before us tells its end before its mounts go with it: that is a moment. */
static bool locked(int file)
{
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (flock(file, LOCK_EX | LOCK_NB) == 0)
            return true;
        usleep(LOCK_PAUSE_US);
    }
    return false;
}

/* A layer over another image than it was made over is neither: the agent asks for the image by this note. */
static bool image_note(const struct plan *p, int dir, struct err *err)
{
    char is[DISK_IMAGE_BYTES], was[DISK_IMAGE_BYTES] = "";
    const char *end = p->lower ? strrchr(p->lower, '/') : NULL, *begin = end ? memrchr(p->lower, '/', (size_t)(end - p->lower)) : NULL;
    if (!begin)
        return true;    /* the node's own root */
    size_t n = (size_t)snprintf(is, sizeof is, "%.*s", (int)(end - begin - 1), begin + 1);
    AUTO(fd_close) int old = openat(dir, DISK_IMAGE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (old != -1)
        return (read(old, was, sizeof was - 1) > 0 && text_is(was, is))
               || err_set(err, RC_BAD_INPUT, "its disk lies on another image (%s) than this one (%s); import that one again under its name, or cancel the instance", was, is);
    AUTO(fd_close) int note = openat(dir, DISK_IMAGE ".new", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    return (note != -1 && write(note, is, n) == (ssize_t)n && fsync(note) == 0
            && renameat(dir, DISK_IMAGE ".new", dir, DISK_IMAGE) == 0 && fsync(dir) == 0)
           || err_errno(err, "cannot note the image of the disk in %s", p->disk);
}

static bool open_file(const struct plan *p, int *out, struct err *err)
{
    AUTO(fd_close) int dir = open(p->disk, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir == -1)
        return err_errno(err, "cannot open %s", p->disk);
    if (!image_note(p, dir, err))
        return false;
    *out = openat(dir, DISK_FILE, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (*out == -1 && errno == ENOENT && p->disk_used)
        return err_set(err, RC_BAD_INPUT, "its disk is not on its node any more, and what was on it is lost unless an operator brings %s/" DISK_FILE " back; cancel the instance to begin with an empty one", p->disk);
    if (*out == -1 && (errno != ENOENT || !make_file(p, dir, out, err)))
        return err->rc ? false : err_errno(err, "cannot open the disk in %s", p->disk);
    return locked(*out)
           || err_set(err, RC_BAD_INPUT, "its disk is still in use: another task of the project has a file or folder of it open; end that, and start the instance again");
}

bool disk_mount(const struct plan *p, struct err *err)
{
    char device[SCRATCH_DEVICE], map[128];
    AUTO(fd_close) int file = -1;
    AUTO(fd_close) int loop = -1;
    AUTO(fd_close) int ids = -1;
    snprintf(map, sizeof map, "0 0 1\n%d %lld %d\n", PLAN_UID_BASE, (long long)p->uid_base, PLAN_UID_COUNT);
    if (!open_file(p, &file, err) || !scratch_loop(file, device, &loop, err) || !user_namespace(map, &ids, err))
        return false;
    if ((mkdir("raw", 0700) == -1 && errno != EEXIST) || broken("disk.mount")
        || mount(device, "raw", "ext4", MS_NOSUID | MS_NODEV | MS_NOATIME, scratch_options) == -1)
        return errno == EINVAL || errno == EUCLEAN
                   ? err_set(err, RC_BAD_INPUT, "its disk is damaged (%s); an operator can mend %s/" DISK_FILE " with e2fsck", strerror(errno), p->disk)
                   : err_errno(err, "cannot mount the disk");
    return mount_clone("raw", "scratch", ids, 0, false, err) && (umount2("raw", MNT_DETACH) == 0 || err_errno(err, "cannot let go of the disk's other mount"));
}

/* Before its end is told: what was acknowledged as stopped is on the node's disk. Whoever was handed a descriptor of it has nothing of it
 * from now on: he could write to a disk that was dropped. */
void disk_shut(const struct plan *p)
{
    uint32_t how = 0;   /* what is dirty is written first */
    AUTO(fd_close) int fd = p->disk ? open("scratch", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd != -1 && syncfs(fd) == 0)
        ioctl(fd, SHUTDOWN, &how);
}

/* What a tenant left may keep his next start from having room for what the node makes there. */
void disk_blame(const struct plan *p, struct err *err)
{
    struct statfs fs;
    const struct err why = *err;
    if (p->disk && why.rc && why.rc != RC_BAD_INPUT && statfs("scratch", &fs) == 0 && fs.f_type == EXT4_SUPER_MAGIC && (fs.f_bavail < FULL_BLOCKS || fs.f_ffree == 0))
        err_set(err, RC_BAD_INPUT, "its disk is full: %s", why.text);
}
