/* session_copy.c - files out of and into a running container, and word of new log bytes.
 *
 * Copying is done as the container's own root, inside its user and mount namespaces: whatever a
 * path means there, it cannot mean anything of the node. The process stays outside its pid
 * namespace, so the tenant cannot trace it. */
#include "task/task.h"
#include "agent/task_proto.h"
#include "agent/tree.h"
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>

enum { GATHER_US = 3000 };

static int namespace_of(int pid, const char *name)
{
    char path[48];
    snprintf(path, sizeof path, "/proc/%d/ns/%s", pid, name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

bool container_enter(struct task *t, int *root, struct err *err)
{
    AUTO(fd_close) int user = namespace_of(t->container, "user");
    AUTO(fd_close) int mounts = namespace_of(t->container, "mnt");
    if (user == -1 || mounts == -1 || setns(user, CLONE_NEWUSER) == -1
        || setns(mounts, CLONE_NEWNS) == -1 || setgroups(0, NULL) == -1 || setresgid(0, 0, 0) == -1
        || setresuid(0, 0, 0) == -1)
        return err_errno(err, "cannot enter the container");
    *root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *root != -1 || err_errno(err, "cannot open the container's root");
}

static bool put_frame(void *arg, const char *at, size_t n, struct err *err)
{
    for (size_t part; n; at += part, n -= part) {
        part = MIN(n, (size_t)FRAME_MAX);
        if (!frame_send(*(int *)arg, FRAME_OUTPUT, at, part))
            return err_set(err, RC_UNAVAILABLE, "the reader has gone");
    }
    return true;
}

static bool done(int connection)
{
    return frame_object(connection, FRAME_EXIT, &task_exit_fields, &(struct task_exit){ 0 });
}

bool session_get(struct task *t, int connection, const struct task_request *rq, struct err *err)
{
    AUTO(fd_close) int root = -1;
    struct tree_sink sink = { put_frame, &connection };
    return container_enter(t, &root, err) && tree_send(root, rq->path ? rq->path : "", &sink, err)
           && done(connection);
}

bool session_put(struct task *t, int connection, const struct task_request *rq, struct err *err)
{
    AUTO(fd_close) int root = -1;
    AUTO(tree_receiver_free) struct tree_receiver *r = NULL;
    char *at = ARENA_ARRAY(t->mem, char, FRAME_MAX);
    if (!container_enter(t, &root, err)
        || !tree_receive(root, rq->path ? rq->path : "", t->plan.uid, t->plan.gid, &r, err))
        return false;
    int kind = 0;
    for (size_t n; frame_receive(connection, &kind, at, FRAME_MAX, &n) && kind == FRAME_INPUT;)
        if (!tree_receive_feed(r, at, n, err))
            return false;
    return (kind == FRAME_INPUT_END || err_set(err, RC_BAD_INPUT, "the archive was cut short"))
           && tree_receive_end(r, err) && done(connection);
}

/* Several writes within a few milliseconds are one piece of news. */
bool session_follow(struct task *t, int connection, const struct task_request *rq, struct err *err)
{
    (void)rq;
    AUTO(fd_close) int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    mkdir(t->plan.logs, 0700); /* it may have said nothing yet */
    if (watch == -1 || inotify_add_watch(watch, t->plan.logs, IN_MODIFY | IN_CREATE) == -1)
        return err_errno(err, "cannot watch the log");
    struct pollfd fds[]
        = { { .fd = watch, .events = POLLIN }, { .fd = connection, .events = POLLIN } };
    for (;;) {
        char events[4096];
        if (!frame_send(connection, FRAME_NEWS, NULL,
                        0)) /* also the first time: there may be bytes already */
            return true;
        do {
            if (poll(fds, COUNT(fds), -1) == -1 && errno != EINTR)
                return err_errno(err, "poll");
            if (fds[1].revents && recv(connection, events, sizeof events, MSG_DONTWAIT) <= 0)
                return true;
        } while (!fds[0].revents);
        usleep(GATHER_US);
        while (read(watch, events, sizeof events) > 0)
            ;
    }
}
