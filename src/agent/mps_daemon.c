/* mps_daemon.c - `arcus mps-daemon FOLDER UUID PROGRAM`: the last steps before a process becomes NVIDIA's daemon of one GPU. It goes into a control
 * group of its own, since the agent's may be killed as a whole and its servers outlive a daemon that is killed, and says who it is before it is
 * somebody else. */
#include "agent/cgroup.h"
#include "agent/mps.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* The 22nd field of /proc/self/stat: with the pid, nobody else ever. The name before it may hold anything but what comes behind its last ')'. */
static unsigned long long start_time(void)
{
    char text[1024];
    unsigned long long at = 0;
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd == -1 ? -1 : read(fd, text, sizeof text - 1);
    if (fd != -1)
        close(fd);
    text[MAX(n, 0)] = 0;
    const char *p = strrchr(text, ')');
    for (int field = 2; p && *p && field < 22; p++)
        field += *p == ' ';
    return p && sscanf(p, "%llu", &at) == 1 ? at : 0;
}

static bool say_who(const char *folder)
{
    char path[600], fresh[620], text[64];
    snprintf(path, sizeof path, "%s/daemon", folder);
    snprintf(fresh, sizeof fresh, "%s.new", path);
    int n = snprintf(text, sizeof text, "%d %llu\n", getpid(), start_time());
    int fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool ok = fd != -1 && write(fd, text, (size_t)n) == n && rename(fresh, path) == 0;
    if (fd != -1)
        close(fd);
    return ok;
}

/* In the foreground it logs to its standard output, and so do its servers. */
static bool write_to(const char *folder)
{
    char path[620];
    snprintf(path, sizeof path, "%s/log/daemon", folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool ok = fd != -1 && dup2(fd, STDOUT_FILENO) != -1 && dup2(fd, STDERR_FILENO) != -1;
    if (fd != -1)
        close(fd);
    return ok;
}

int mps_daemon_main(int argc, char **argv)
{
    struct cgroups groups;
    struct err err = { 0 };
    if (argc != 4 || *argv[1] != '/' || *argv[3] != '/') {
        fprintf(stderr, "arcus mps-daemon: it is started by the agent\n");
        return 2;
    }
    char group[MPS_GROUP];
    mps_group(argv[1], group);
    if (!cgroups_find(&groups, &err) || !cgroup_move(&groups, group, getpid(), &err))
        return 1;
    char visible[128], pipe[640], logs[640];
    snprintf(visible, sizeof visible, "CUDA_VISIBLE_DEVICES=%s", argv[2]);
    snprintf(pipe, sizeof pipe, "CUDA_MPS_PIPE_DIRECTORY=%s/pipe", argv[1]);
    snprintf(logs, sizeof logs, "CUDA_MPS_LOG_DIRECTORY=%s/log", argv[1]);
    char *const env[] = { visible, pipe, logs, NULL };
    char *const words[] = { argv[3], "-f", "--multiuser-server", NULL };
    umask(0);
    if (chdir("/") == -1 || !write_to(argv[1]) || !say_who(argv[1]))
        return 1;
    execve(argv[3], words, env);
    return 1;
}
