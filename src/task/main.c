/* main.c - arcus-task: the supervisor of one attempt, or of one after the other (slot.c). argv[1] is the attempt's folder;
 * everything else is in its plan.json.
 *
 * At most one supervisor ever runs for an attempt: the lock on its plan says so, and an agent
 * that gives an attempt up takes that lock first. A status that is there already means that
 * somebody ran before: then it is not run again. The supervisor is the first process of a pid
 * namespace: whatever kills it, the kernel takes the runtime and the container along, so a task
 * cannot outlive the one who would end it in time. */
#include "task/task.h"
#include "base/fault.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static bool take_lock(struct task *t, const char *folder, struct err *err)
{
    struct stat st;
    t->lock = open(path_in(t->mem, folder, "plan.json"), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (t->lock == -1 || flock(t->lock, LOCK_EX | LOCK_NB) == -1 || fstat(t->lock, &st) == -1)
        return err_errno(err, "another supervisor or the agent has %s", folder);
    return st.st_nlink > 0 || err_set(err, RC_CONFLICT, "the agent has given %s up", folder);
}

bool task_open(struct task *t, const char *folder, struct err *err)
{
    if (!take_lock(t, folder, err)
        || !small_parse(path_in(t->mem, folder, "plan.json"), &plan_fields, t->mem, &t->plan, err))
        return false;
    faults_arm(&t->plan);
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
bool own_pids(struct task *t, struct err *err)
{
    long pid = cgroup_is_free(&t->cgroups) ? -1 : fork_into_group(t);
    t->left = pid == 0;
    if (pid == -1 && unshare(CLONE_NEWPID) == -1)
        return err_errno(err, "cannot make a pid namespace");
    if (pid == -1)
        pid = broken("task.fork") ? -1 : fork();
    if (pid > 0)
        _exit(0);
    return pid == 0 || err_errno(err, "cannot fork");
}

/* Asked while /proc is still the node's: it knows us by the number that the agent knows. */
void task_self(struct task *t)
{
    char self[32];
    ssize_t n = readlink("/proc/self", self, sizeof self - 1);
    self[MAX(n, 0)] = 0;
    t->status.pid = strtol(self, NULL, 10);
    t->status.start_time = (int64_t)own_start_time();
}

bool task_begin(struct task *t, struct err *err)
{
    t->status.attempt = t->plan.attempt;
    t->status.phase = PHASE_PREPARING;
    if (!status_note(t, false, err)) {
        unlink(t->plan.status); /* nothing has run: half a word about it would only puzzle */
        status_tell(t);
        return false;
    }
    return true;
}

/* Whoever runs out of memory, it should not be the one who tells about it. Not every root may
 * ask for this. */
static void spare_us(void)
{
    AUTO(fd_close) int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd != -1 && write(fd, "-900", 4) != 4)
        return;
}

static int one_task(const char *folder)
{
    struct place place = { 0 };
    struct task t = { .place = &place, .lock = -1, .file = -1, .fabric = -1, .agent = -1, .out = { -1, -1 }, .err = { -1, -1 }, .mem = arena_new() };
    struct err err = { 0 };
    if (!task_open(&t, folder, &err) || !cgroups_find(&t.cgroups, &err) || !own_pids(&t, &err))
        return fprintf(stderr, "arcus-task: %s\n", err.text), 1;
    task_self(&t);
    t.fabric = fabric_open(&t.plan);
    if (!task_begin(&t, &err))
        return fprintf(stderr, "arcus-task: %s\n", err.text), 1;
    return task_run(&t);
}

int main(int argc, char **argv)
{
    const char *slash = argc ? strrchr(argv[0], '/') : NULL;
    if (argc && text_is(slash ? slash + 1 : argv[0], LAUNCH_NAME))
        return launch_main(argc, argv);
    if (argc == 2 && text_is(argv[1], "--nothing")) /* what the agent's trial container runs */
        return 0;
    if (faults_asked(argc, argv))
        return 0;
    bool slot = argc == 4 && text_is(argv[1], "--slot") && argv[2][0] == '/';
    if (!slot && (argc != 2 || argv[1][0] != '/')) {
        fprintf(stderr, "usage: arcus-task FOLDER | --slot FOLDER ROOM-FOR-A-NAME\n");
        return 64;
    }
    signal(SIGPIPE, SIG_IGN);
    spare_us();
    return slot ? slot_run(argv[2], argv[3]) : one_task(argv[1]);
}
