/* container.c - the OCI runtime as a helper process: it makes the container and leaves; the
 * container becomes our child.
 *
 * The runtime is asked for one thing only, `create` (crun) or `run --detach`. What it leaves behind (its state
 * folder, the control group) is removed by hand, because that must also work when it is the
 * runtime that failed. */
#include "task/task.h"
#include "base/fault.h"
#include "agent/runtime_words.h"
#include "agent/tree.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

enum { TEXT_BYTES = RUNTIME_WORDS, KILL_WAIT_MS = 5000, PIDS = 256 };

bool helper_spawn(const char *const *argv, const struct sealed *program, int in, int out, int err_fd, int *pid, struct err *err)
{
    char *const env[] = { "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                          program->fd != -1 && program->libraries[0] ? (char *)program->libraries : NULL, NULL };
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none, pipe_only;
    sigemptyset(&none);
    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &pipe_only);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    if (in >= 0)
        posix_spawn_file_actions_adddup2(&files, in, 0);
    else
        posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, out, 1);
    posix_spawn_file_actions_adddup2(&files, err_fd, 2);
    pid_t child = -1;
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", program->fd);
    int rc = broken("task.spawn") ? EAGAIN
                                       : posix_spawn(&child, program->fd == -1 ? argv[0] : path, &files,
                                                     &attr, (char *const *)argv, env);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attr);
    errno = rc;
    if (rc)
        return err_errno(err, "cannot run %s", argv[0]);
    *pid = child;
    return true;
}

static bool is_crun(const struct plan *p)
{
    return text_is(strrchr(p->runtime, '/') + 1, "crun");
}
/* crun forks twice to make a container that outlives it, and not at all to make one that waits to be started. One that gets a network
 * must not begin before it is there. */
static bool waits_for_start(const struct plan *p)
{
    return p->net || is_crun(p);
}

bool container_create(struct task *t, int *runtime_pid, struct err *err)
{
    const struct plan *p = &t->plan;
    const char *log = path_in(t->mem, p->run, "runtime.log"), *pid = path_in(t->mem, p->run, "pid");
    const char *const create[] = { p->runtime, "--root", p->runtime_root, "--log", log, "create", "--bundle", p->folder,
                                   "--pid-file", pid, p->id, NULL };
    const char *const run[] = { p->runtime, "--root", p->runtime_root, "--log", log, "run", "--detach", "--bundle", p->folder,
                                "--pid-file", pid, p->id, NULL };
    unlink("runtime.log");
    unlink("pid");
    if (broken("task.pipe") || pipe2(t->out, O_CLOEXEC) == -1 || pipe2(t->err, O_CLOEXEC) == -1)
        return err_errno(err, "cannot make a pipe");
    bool ok = helper_spawn(waits_for_start(p) ? create : run, &t->place->runtime, -1, t->out[1], t->err[1], runtime_pid, err);
    close(t->out[1]);
    close(t->err[1]);
    t->out[1] = t->err[1] = -1;
    return ok;
}

/* What `crun start` does, without a process for it: the container waits for a byte in a pipe, and has been started when the
 * pipe's name is gone. */
static bool release(struct task *t)
{
    if (!is_crun(&t->plan))
        return false;
    const char *path = arena_printf(t->mem, "%s/%s/exec.fifo", t->plan.runtime_root, t->plan.id);
    AUTO(fd_close) int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    return fd != -1 && unlink(path) == 0 && write(fd, "", 1) == 1;
}

static bool start_by_runtime(struct task *t, struct err *err)
{
    const struct plan *p = &t->plan;
    const char *const argv[] = { p->runtime, "--root", p->runtime_root, "start", p->id, NULL };
    AUTO(fd_close) int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int pid = 0, status = -1;
    if (!helper_spawn(argv, &t->place->runtime, null, null, null, &pid, err))
        return false;
    while (waitpid(pid, &status, 0) == -1 && errno == EINTR)
        ;
    return status == 0 || err_set(err, RC_INTERNAL, "%s could not start the container", p->runtime);
}

bool container_start(struct task *t, struct err *err)
{
    struct slice text;
    if (!small_read(path_in(t->mem, t->plan.run, "pid"), 32, t->mem, &text, err))
        return false;
    long pid = strtol(text.at, NULL, 10);
    if (pid <= 1)
        return err_set(err, RC_INTERNAL, "%s wrote a bad pid", t->plan.runtime);
    t->container = (int)pid;
    return net_join(t, err) && (!waits_for_start(&t->plan) || release(t) || start_by_runtime(t, err));
}

bool container_why(struct task *t, const char *log, struct err *err)
{
    struct slice text = { 0 };
    return small_read(log, TEXT_BYTES, t->mem, &text, err) && text.len
               ? runtime_why(t->plan.runtime, arena_bytes(t->mem, text.at, text.len), err)
               : err_set(err, RC_INTERNAL, "it could not be started, and %s did not say why", t->plan.runtime);
}

bool container_frozen(struct task *t)
{
    return cgroup_frozen(&t->cgroups, t->plan.cgroup);
}

void container_thaw(struct task *t)
{
    struct err ignored;
    if (!cgroup_freeze(&t->cgroups, t->plan.cgroup, false, 0, &ignored))
        return; /* a host that cannot do it never froze it */
}

void container_signal_all(struct task *t, int signal)
{
    t->told = ARENA_ARRAY(t->mem, int, PIDS);
    t->told_count = cgroup_pids(&t->cgroups, t->plan.cgroup, t->told, PIDS);
    for (size_t i = 0; i < t->told_count; i++)
        kill(t->told[i], signal);
}

bool container_takes(struct task *t, int signal)
{
    char path[48], text[4096];
    snprintf(path, sizeof path, "/proc/%d/status", t->container);
    AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd == -1 ? -1 : read(fd, text, sizeof text - 1);
    if (n <= 0)
        return false;
    text[n] = 0;
    const char *caught = strstr(text, "SigCgt:"), *ignored = strstr(text, "SigIgn:");
    uint64_t set = (caught ? strtoull(caught + 7, NULL, 16) : 0)
                   | (ignored ? strtoull(ignored + 7, NULL, 16) : 0);
    return set & 1ULL << (signal - 1);
}

bool container_alone(struct task *t)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    int *pids = ARENA_ARRAY(mem, int, PIDS);
    size_t n = cgroup_pids(&t->cgroups, t->plan.cgroup, pids, PIDS);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < t->told_count; k++)
            if (pids[i] == t->told[k] && pids[i] != t->container)
                return false;
    return true;
}

void container_clean(struct task *t)
{
    cgroup_kill(&t->cgroups, t->plan.cgroup, KILL_WAIT_MS);
    cgroup_remove(&t->cgroups, t->plan.cgroup);
    struct err ignored = { 0 }; /* the agent removes it again when the attempt is forgotten */
    if (!tree_remove(path_in(t->mem, t->plan.runtime_root, t->plan.id), &ignored))
        return;
}
