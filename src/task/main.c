/* main.c - arcus-task: the supervisor of one attempt. argv[1] is the attempt's folder;
 * everything else is in its plan.json.
 *
 * At most one supervisor ever runs for an attempt: the lock in its folder says so, and an agent
 * that gives an attempt up takes that lock first. A status that is there already means that
 * somebody ran before: then it is not run again. The supervisor is the first process of a pid
 * namespace: whatever kills it, the kernel takes the runtime and the container along, so a task
 * cannot outlive the one who would end it in time. */
#include "task/task.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/syscall.h>

static bool take_lock(struct task *t, const char *folder, struct err *err)
{
    t->lock = open(path_in(t->mem, folder, "lock"), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (t->lock == -1 || flock(t->lock, LOCK_EX | LOCK_NB) == -1)
        return err_errno(err, "another supervisor or the agent has %s", folder);
    return true;
}

static bool open_task(struct task *t, const char *folder, struct err *err)
{
    if (!take_lock(t, folder, err)
        || !small_parse(path_in(t->mem, folder, "plan.json"), &plan_fields, t->mem, &t->plan, err))
        return false;
    return access(t->plan.status, F_OK) == -1
           || err_set(err, RC_CONFLICT, "%s has been run before", folder);
}

/* Nobody has to be moved who is born in the right place; kernels before 5.7 and v1 cannot do that. */
static long fork_into_group(struct task *t)
{
    AUTO(fd_close) int group = cgroup_open(&t->cgroups, SUPERVISORS);
    struct clone_args args = { .flags = CLONE_NEWPID | CLONE_INTO_CGROUP,
                               .exit_signal = SIGCHLD,
                               .cgroup = (uint64_t)group };
    return group == -1 ? -1 : syscall(SYS_clone3, &args, sizeof args);
}

/* The lock goes along: it belongs to the open file, which the child shares. */
static bool own_pids(struct task *t, struct err *err)
{
    long pid = cgroup_is_free(&t->cgroups) ? -1 : fork_into_group(t);
    t->left = pid == 0;
    if (pid == -1 && unshare(CLONE_NEWPID) == -1)
        return err_errno(err, "cannot make a pid namespace");
    if (pid == -1)
        pid = fork();
    if (pid > 0)
        _exit(0);
    return pid == 0 || err_errno(err, "cannot fork");
}

/* /proc is still the node's: it knows us by the number that the agent knows. */
static bool begin(struct task *t, int *listener, struct err *err)
{
    char self[32];
    ssize_t n = readlink("/proc/self", self, sizeof self - 1);
    self[MAX(n, 0)] = 0;
    t->status = (struct task_status){ .attempt = t->plan.attempt,
                                      .phase = PHASE_PREPARING,
                                      .pid = strtol(self, NULL, 10),
                                      .start_time = (int64_t)own_start_time() };
    return status_write(t, false, err) && sessions_listen(&t->plan, listener, err);
}

/* Whoever runs out of memory, it should not be the one who tells about it. Not every root may
 * ask for this. */
static void spare_us(void)
{
    AUTO(fd_close) int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd != -1 && write(fd, "-900", 4) != 4)
        return;
}

int main(int argc, char **argv)
{
    struct task t = { .lock = -1, .out = { -1, -1 }, .err = { -1, -1 } };
    struct err err = { 0 };
    int listener = -1;
    if (argc == 2 && text_is(argv[1], "--nothing")) /* what the agent's trial container runs */
        return 0;
    if (argc != 2 || argv[1][0] != '/') {
        fprintf(stderr, "usage: arcus-task FOLDER\n");
        return 64;
    }
    signal(SIGPIPE, SIG_IGN);
    spare_us();
    t.mem = arena_new();
    if (!open_task(&t, argv[1], &err) || !cgroups_find(&t.cgroups, &err) || !own_pids(&t, &err) || !begin(&t, &listener, &err)) {
        fprintf(stderr, "arcus-task: %s\n", err.text);
        return 1;
    }
    return task_run(&t, listener);
}
