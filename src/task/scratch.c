/* scratch.c - the space a task may write to: an ext4 of exactly its size in a sparse file, or a
 * tmpfs where loop devices cannot be had. A full scratch is the task's own problem; the node's
 * disk never is. */
#include "task/task.h"
#include "base/fault.h"
#include "agent/scratch_file.h"
#include <errno.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>

static bool device_mount(const char *device, struct err *err)
{
    return (!broken("mount.scratch")
            && mount(device, "scratch", "ext4", MS_NOSUID | MS_NODEV | MS_NOATIME, scratch_options) == 0)
           || err_errno(err, "cannot mount the scratch file");
}

static bool loop_mount(const struct plan *p, struct err *err)
{
    char device[SCRATCH_DEVICE];
    AUTO(fd_close) int loop = -1;
    return scratch_attach(p->scratch_template, p->folder, device, &loop, err)
           && device_mount(device, err);
}

bool scratch_mount(const struct plan *p, struct err *err)
{
    char options[64];
    if ((mkdir("scratch", 0711) == -1 || mkdir("rootfs", 0711) == -1) && errno != EEXIST)
        return err_errno(err, "cannot make folders in %s", p->run);
    if (p->scratch == SCRATCH_LOOP && !(p->disk ? disk_mount(p, err) : loop_mount(p, err)))
        return false;
    snprintf(options, sizeof options, "mode=0711,size=%lldm,nr_inodes=1m",
             (long long)p->scratch_mib);
    if (p->scratch == SCRATCH_TMPFS
        && mount("scratch", "scratch", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOATIME, options) == -1)
        return err_errno(err, "cannot mount a tmpfs");
    return chmod("scratch", 0711) == 0 || err_errno(err, "cannot open the scratch folder");
}
