/* session.c - the supervisor's socket (agent/task_proto.h): every connection gets a child of the
 * supervisor for itself.
 *
 * So a session can block, crash or be slow without the task noticing, and its memory goes when
 * it ends. Only root may connect: nobody else sees its folder, and the peer is asked for its
 * id all the same. */
#include "task/task.h"
#include "base/fault.h"
#include "agent/task_proto.h"
#include "wire/bind.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

enum { REQUEST_MS = 10000, BACKLOG = 512, CONNECTION = 3 };

static const struct {
    const char *op;
    bool (*run)(struct task *t, int fd, const struct task_request *rq, struct err *err);
} ops[] = {
    { "exec", session_exec },
    { "get", session_get },
    { "put", session_put },
    { "follow", session_follow },
    { "dial", session_dial },
    { "ssh", session_ssh },
};

bool sessions_listen(int *fd, struct err *err)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    memcpy(at.sun_path, "sock", sizeof "sock");
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    unlink(at.sun_path);
    mode_t old = umask(0177);
    bool ok = s != -1 && !broken("task.listen") && bind(s, (struct sockaddr *)&at, sizeof at) == 0 && listen(s, BACKLOG) == 0;
    int why = errno;
    umask(old);
    errno = why;
    if (!ok) {
        fd_close(s);
        return err_errno(err, "cannot listen for sessions");
    }
    *fd = s;
    return true;
}

bool frame_rest(int fd, const void *from, size_t n)
{
    for (const char *at = from; n;) {
        ssize_t done = send(fd, at, n, MSG_NOSIGNAL);
        if (done == -1 && errno == EAGAIN) {
            struct pollfd p = { .fd = fd, .events = POLLOUT };
            poll(&p, 1, -1);
            continue;
        }
        if (done == -1 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        at += done;
        n -= (size_t)done;
    }
    return true;
}

bool frame_send(int connection, int kind, const void *at, size_t n)
{
    unsigned char head[FRAME_HEAD];
    frame_head(head, (enum task_frame)kind, (uint32_t)n);
    return frame_rest(connection, head, sizeof head) && frame_rest(connection, at, n);
}

static bool read_all(int fd, char *at, size_t n)
{
    while (n) {
        ssize_t got = recv(fd, at, n, 0);
        if (got == -1 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        n -= (size_t)got;
    }
    return true;
}

bool frame_receive(int connection, int *kind, char *at, size_t room, size_t *n)
{
    unsigned char head[FRAME_HEAD];
    if (!read_all(connection, (char *)head, sizeof head) || frame_length(head) > room)
        return false;
    *kind = head[0];
    *n = frame_length(head);
    return read_all(connection, at, *n);
}

bool frame_object(int connection, int kind, const struct fields *fields, const void *from)
{
    AUTO(str_done) struct str text = { 0 };
    struct json_out o = { .to = &text };
    bind_write(&o, fields, from);
    return frame_send(connection, kind, text.at, text.len);
}

static bool take_request(struct task *t, struct task_request *rq, struct err *err)
{
    struct ucred peer = { 0 };
    socklen_t size = sizeof peer;
    if (getsockopt(CONNECTION, SOL_SOCKET, SO_PEERCRED, &peer, &size) == -1 || peer.uid != 0)
        return err_set(err, RC_DENIED, "only root may talk to a supervisor");
    struct timeval patience = { .tv_sec = REQUEST_MS / 1000 }, for_ever = { 0 };
    setsockopt(CONNECTION, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    char *text = ARENA_ARRAY(t->mem, char, FRAME_MAX);
    struct json *doc = NULL;
    int kind = 0;
    size_t n = 0;
    if (!frame_receive(CONNECTION, &kind, text, FRAME_MAX, &n) || kind != FRAME_REQUEST)
        return err_set(err, RC_BAD_INPUT, "a request was expected");
    setsockopt(CONNECTION, SOL_SOCKET, SO_RCVTIMEO, &for_ever, sizeof for_ever);
    return json_parse((struct slice){ text, n }, t->mem, &doc, err)
           && bind_read_ours(doc, &task_request_fields, t->mem, rq, NULL, err);
}

static bool serve(struct task *t, struct err *err)
{
    struct task_request rq = { 0 };
    if (!take_request(t, &rq, err))
        return false;
    for (size_t i = 0; i < COUNT(ops); i++)
        if (text_is(ops[i].op, rq.op))
            return ops[i].run(t, CONNECTION, &rq, err);
    return err_field(err, "op", "there is no '%s' here", rq.op);
}

void session_refuse(int connection, const char *why)
{
    fcntl(connection, F_SETFL, O_NONBLOCK);
    AUTO(str_done) struct str text = { 0 };
    bind_write(&(struct json_out){ .to = &text }, &task_error_fields, &(struct task_error){ rc_name(RC_TOO_MANY), why });
    unsigned char head[FRAME_HEAD];
    frame_head(head, FRAME_ERROR, (uint32_t)text.len);
    struct iovec parts[] = { { head, sizeof head }, { text.at, text.len } };
    struct msghdr whole = { .msg_iov = parts, .msg_iovlen = COUNT(parts) };
    if (sendmsg(connection, &whole, MSG_NOSIGNAL | MSG_DONTWAIT) == -1)
        return; /* it has gone already */
}

void session_serve(struct task *t, int connection)
{
    struct err err = { 0 };
    sigset_t none;
    sigemptyset(&none);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_DUMPABLE, 0);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (connection != CONNECTION && dup2(connection, CONNECTION) == -1)
        _exit(1);
    close_range(CONNECTION + 1, ~0U, 0);
    fcntl(CONNECTION, F_SETFD, FD_CLOEXEC);
    bool ok = serve(t, &err);
    if (!ok && err.rc)
        ok = frame_object(CONNECTION, FRAME_ERROR, &task_error_fields,
                          &(struct task_error){ rc_name(err.rc), err.text });
    _exit(!ok);
}
