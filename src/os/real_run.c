/* real_run.c - a helper run to its end: its output kept up to a limit, the last words on its
 * standard error kept for the sentence that tells why it failed. It blocks its thread, so never
 * the loop's. */
#include "os/real_proc.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { COMPLAINT = 4096 };

struct helper {
    int out[2], err[2];
    struct str text, complaint;
    size_t limit;
    bool too_much;
    const struct proc_guard *guard;
    bool stopped;               /* by the guard, and why */
    struct err why;
};

static void end_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void helper_done_auto(struct helper *h)
{
    int *fds[] = { &h->out[0], &h->out[1], &h->err[0], &h->err[1] };
    for (size_t i = 0; i < COUNT(fds); i++)
        end_close(fds[i]);
    str_done(&h->text);
    str_done(&h->complaint);
}

/* False: this one has ended. */
static bool take(int *fd, struct str *to, size_t limit, bool *too_much)
{
    char buf[16 * 1024];
    ssize_t n = read(*fd, buf, sizeof buf);
    if (n < 0 && errno == EINTR)
        return true;
    if (n <= 0) {
        end_close(fd);
        return false;
    }
    size_t room = limit - MIN(limit, to->len);
    *too_much |= (size_t)n > room;
    str_put(to, buf, MIN((size_t)n, room));
    return true;
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Milliseconds until the guard is asked again, having asked it if it was time; -1: there is none. */
static int ask_guard(struct helper *h, int64_t *next)
{
    if (!h->guard)
        return -1;
    if (now_ms() >= *next) {
        h->stopped = !h->guard->go_on(h->guard->arg, &h->why);
        *next = now_ms() + h->guard->every_ms;
    }
    return (int)MAX(*next - now_ms(), 0);
}

static void listen_to(struct helper *h)
{
    bool ignored = false;
    int64_t next = h->guard ? now_ms() + h->guard->every_ms : 0;
    while ((h->out[0] >= 0 || h->err[0] >= 0) && !h->too_much) {
        struct pollfd fds[] = { { .fd = h->out[0], .events = POLLIN },
                                { .fd = h->err[0], .events = POLLIN } };
        int wait = ask_guard(h, &next);
        if (h->stopped || (poll(fds, 2, wait) == -1 && errno != EINTR))
            return;
        if (fds[0].revents)
            take(&h->out[0], &h->text, h->limit, &h->too_much);
        if (fds[1].revents) {
            take(&h->err[0], &h->complaint, SIZE_MAX, &ignored);
            if (h->complaint.len > COMPLAINT)
                str_drop(&h->complaint, h->complaint.len - COMPLAINT);
        }
    }
}

static const char *last_line(struct str *s)
{
    while (s->len && (s->at[s->len - 1] == '\n' || s->at[s->len - 1] == ' '))
        s->at[--s->len] = 0;
    const char *cut = s->len ? strrchr(s->at, '\n') : NULL;
    return cut ? cut + 1 : s->len ? s->at : "it did not say why";
}

static bool ended_well(const char *name, int status, struct helper *h, struct err *err)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    if (WIFSIGNALED(status))
        return err_set(err, RC_INTERNAL, "%s was ended by signal %d", name, WTERMSIG(status));
    return err_set(err, RC_INTERNAL, "%s: %s", name, last_line(&h->complaint));
}

bool real_proc_run(struct os *os, const char *const *argv, size_t limit,
                   const struct proc_guard *guard, struct arena *mem, char **output,
                   int *wait_status, struct err *err)
{
    (void)os;
    AUTO(helper_done) struct helper h = {
        .out = { -1, -1 }, .err = { -1, -1 }, .limit = limit, .guard = guard
    };
    if (pipe2(h.out, O_CLOEXEC) == -1 || pipe2(h.err, O_CLOEXEC) == -1)
        return err_errno(err, "cannot run %s", argv[0]);
    struct proc_spec spec = { .argv = argv, .in = -1, .out = h.out[1], .err = h.err[1] };
    int pid, pidfd, status = -1;
    if (!proc_launch(&spec, &pid, &pidfd, err))
        return false;
    end_close(&h.out[1]);
    end_close(&h.err[1]);
    listen_to(&h);
    if (h.too_much || h.stopped) {
        kill(-pid, SIGKILL);    /* timeout(1) leads a group, and what it runs must not outlive it */
        syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
    }
    close(pidfd);
    while (waitpid(pid, &status, 0) == -1 && errno == EINTR)
        ;
    if (h.stopped)
        return *err = h.why, false;
    if (h.too_much)
        return err_set(err, RC_TOO_LARGE, "%s printed more than %zu bytes", argv[0], limit);
    bool ok = ended_well(argv[0], status, &h, err);
    if (!ok && !wait_status)
        return false;
    if (wait_status)
        *wait_status = status;
    if (output)
        *output = arena_bytes(mem, h.text.at, h.text.len);
    return true;
}
