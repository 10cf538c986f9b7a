/* session_dial.c - one TCP connection into the task: what its tunnel carries <-> a port of its own loopback.
 *
 * The socket is made inside the container's network namespace, as the task's own user in its user namespace, and dials
 * 127.0.0.1 or ::1 and nothing else: a port that nothing in there listens on is refused, whatever the node has on it. The
 * process stays outside the container's pid namespace, so the tenant cannot trace it. Each way has one piece under way
 * and waits for nobody else: a side that does not read stops only what goes to it. */
#include "task/task.h"
#include "agent/task_proto.h"
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <sys/socket.h>

enum { DIAL_S = 10, PIECE = 32 << 10 };
enum { PEER, PORT, POLLS };

struct dial {
    int peer, port;
    char *in, *out;             /* frames from the peer; one frame for it */
    size_t in_have, in_at;      /* in_at: what the port has taken of the first one */
    size_t out_have, out_at;
    bool in_over, out_over;     /* that side sends no more */
};

static int namespace_of(int pid, const char *name)
{
    char path[48];
    snprintf(path, sizeof path, "/proc/%d/ns/%s", pid, name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static bool enter(const struct task *t, struct err *err)
{
    if (t->container <= 0)
        return err_set(err, RC_CONFLICT, "the task is not running");
    AUTO(fd_close) int user = namespace_of(t->container, "user");
    AUTO(fd_close) int net = namespace_of(t->container, "net");
    if (user == -1 || net == -1 || setns(net, CLONE_NEWNET) == -1 || setns(user, CLONE_NEWUSER) == -1
        || setgroups(0, NULL) == -1 || setresgid((gid_t)t->plan.gid, (gid_t)t->plan.gid, (gid_t)t->plan.gid) == -1
        || setresuid((uid_t)t->plan.uid, (uid_t)t->plan.uid, (uid_t)t->plan.uid) == -1)
        return err_errno(err, "cannot enter the task's network");
    return true;
}

static int dial_one(const struct sockaddr *to, socklen_t size)
{
    static const struct timeval patience = { .tv_sec = DIAL_S };
    int fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    if (fd == -1)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (connect(fd, to, size) == -1) {
        int why = errno;
        close(fd);
        errno = why;
        return -1;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

static bool dial_port(int64_t port, int *fd, struct err *err)
{
    struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port) };
    four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    six.sin6_addr = in6addr_loopback;
    *fd = dial_one((struct sockaddr *)&four, sizeof four);
    int why = errno;
    if (*fd == -1 && why == ECONNREFUSED)
        *fd = dial_one((struct sockaddr *)&six, sizeof six);
    if (*fd != -1)
        return true;
    if (why == ECONNREFUSED)
        return err_set(err, RC_UNAVAILABLE, "nothing in the task listens on port %d of its loopback", (int)port);
    errno = why == EINPROGRESS ? ETIMEDOUT : why;
    return err_errno(err, "port %d of the task", (int)port);
}

/* --- towards the port */

static size_t frame_at_front(const struct dial *d)
{
    if (d->in_have < FRAME_HEAD)
        return 0;
    size_t n = FRAME_HEAD + frame_length((unsigned char *)d->in);
    return n <= d->in_have ? n : 0;
}

/* False: the port's side is gone, or the peer sent what cannot be understood. */
static bool to_port(struct dial *d)
{
    for (size_t n; (n = frame_at_front(d)); d->in_at = 0, d->in_have -= n, memmove(d->in, d->in + n, d->in_have)) {
        int kind = (unsigned char)d->in[0];
        while (kind == FRAME_INPUT && !d->in_over && d->in_at < n - FRAME_HEAD) {
            ssize_t m = send(d->port, d->in + FRAME_HEAD + d->in_at, n - FRAME_HEAD - d->in_at, MSG_NOSIGNAL | MSG_DONTWAIT);
            if (m == -1 && errno == EINTR)
                continue;
            if (m == -1 && errno == EAGAIN)
                return true;
            if (m <= 0)
                return false;
            d->in_at += (size_t)m;
        }
        if (kind == FRAME_INPUT_END && !d->in_over) {
            d->in_over = true;
            shutdown(d->port, SHUT_WR);
        }
    }
    return d->in_have < FRAME_HEAD || frame_length((unsigned char *)d->in) <= FRAME_MAX;
}

static bool from_peer(struct dial *d)
{
    ssize_t n = recv(d->peer, d->in + d->in_have, FRAME_HEAD + FRAME_MAX - d->in_have, MSG_DONTWAIT);
    if (n == -1 && (errno == EAGAIN || errno == EINTR))
        return true;
    d->in_have += (size_t)MAX(n, 0);
    return n > 0;
}

/* --- towards the peer */

static bool to_peer(struct dial *d)
{
    while (d->out_at < d->out_have) {
        ssize_t m = send(d->peer, d->out + d->out_at, d->out_have - d->out_at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (m == -1 && errno == EINTR)
            continue;
        if (m == -1 && errno == EAGAIN)
            return true;
        if (m <= 0)
            return false;
        d->out_at += (size_t)m;
    }
    d->out_at = d->out_have = 0;
    return true;
}

static bool from_port(struct dial *d, struct err *err)
{
    ssize_t n = recv(d->port, d->out + FRAME_HEAD, PIECE, MSG_DONTWAIT);
    if (n == -1 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n == -1)
        return err_errno(err, "the task ended the connection");
    d->out_over = n == 0;
    frame_head((unsigned char *)d->out, n ? FRAME_OUTPUT : FRAME_OUTPUT_END, (uint32_t)n);
    d->out_have = FRAME_HEAD + (size_t)n;
    return true;
}

/* False without words: the peer has gone. */
static bool pump(struct dial *d, struct err *err)
{
    while (!d->in_over || !d->out_over || d->out_have) {
        bool waits = frame_at_front(d) != 0, free = d->out_have == 0;
        struct pollfd fds[POLLS] = {
            [PEER] = { d->peer, (short)((waits ? POLLRDHUP : POLLIN) | (free ? 0 : POLLOUT)), 0 },
            [PORT] = { d->port, (short)((free && !d->out_over ? POLLIN : 0) | (waits ? POLLOUT : 0)), 0 },
        };
        if (!fds[PORT].events)
            fds[PORT].fd = -1; /* one that has hung up would tell so again and again */
        if (poll(fds, POLLS, -1) == -1 && errno != EINTR)
            return err_errno(err, "poll");
        if (fds[PEER].revents & (POLLERR | POLLNVAL | POLLRDHUP) || (fds[PEER].revents & POLLHUP && waits))
            return false;
        if (fds[PEER].revents & (POLLIN | POLLHUP) && !from_peer(d))
            return false;
        if (fds[PORT].revents & (POLLIN | POLLERR | POLLHUP) && free && !d->out_over && !from_port(d, err))
            return false;
        if (!to_port(d))
            return err_set(err, RC_UNAVAILABLE, "the task ended the connection");
        if (!to_peer(d))
            return false;
    }
    return true;
}

bool session_dial(struct task *t, int connection, const struct task_request *rq, struct err *err)
{
    AUTO(fd_close) int port = -1;
    if (rq->port < 1 || rq->port > 65535)
        return err_field(err, "port", "port: between 1 and 65535");
    if (!enter(t, err) || !dial_port(rq->port, &port, err))
        return false;
    struct dial d = { .peer = connection,
                      .port = port,
                      .in = ARENA_ARRAY(t->mem, char, FRAME_HEAD + FRAME_MAX),
                      .out = ARENA_ARRAY(t->mem, char, FRAME_HEAD + PIECE) };
    if (!frame_send(connection, FRAME_READY, "{}", 2))
        return true;
    if (pump(&d, err))
        return frame_object(connection, FRAME_EXIT, &task_exit_fields, &(struct task_exit){ 0 });
    if (d.out_have && !frame_rest(connection, d.out + d.out_at, d.out_have - d.out_at))
        err->rc = RC_OK; /* nobody hears the last word */
    return !err->rc;
}
