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
#include <stdio.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>

#define NAME "disk"
enum { LOCK_TRIES = 1500, LOCK_PAUSE_US = 20000 };

static bool make_file(const struct plan *p, int dir, int *out, struct err *err)
{
    if (!scratch_copy(p->scratch_template, p->disk, out, err))
        return false;
    return (!broken("disk.keep") && fsync(*out) == 0 && linkat(*out, "", dir, NAME, AT_EMPTY_PATH) == 0 && fsync(dir) == 0)
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

static bool open_file(const struct plan *p, int *out, struct err *err)
{
    AUTO(fd_close) int dir = open(p->disk, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir == -1)
        return err_errno(err, "cannot open %s", p->disk);
    *out = openat(dir, NAME, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (*out == -1 && (errno != ENOENT || !make_file(p, dir, out, err)))
        return err->rc ? false : err_errno(err, "cannot open the disk in %s", p->disk);
    return locked(*out)
           || err_set(err, RC_UNAVAILABLE, "its disk is still in use by an attempt before it, of which something is left on the node");
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
        return err_errno(err, "cannot mount the disk");
    return mount_clone("raw", "scratch", ids, 0, false, err) && (umount2("raw", MNT_DETACH) == 0 || err_errno(err, "cannot let go of the disk's other mount"));
}

/* Before its end is told: what was acknowledged as stopped is on the node's disk. */
void disk_flush(const struct plan *p)
{
    AUTO(fd_close) int fd = p->disk ? open("scratch", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd != -1)
        syncfs(fd);
}
