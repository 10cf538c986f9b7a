/* real_proc.c - helpers and supervisors. A child shares our memory until it calls execve (as
 * vfork), so starting one costs the same however large we are; it gets an empty environment,
 * default signals and only descriptors 0, 1, 2.
 *
 *
 * With own_session a middle process, which also shares our descriptors, starts the real one,
 * opens a pidfd for it while its pid cannot be used again, and ends: the grandchild is nobody's
 * child but init's, and we hold its pidfd. */
#include "os/real_proc.h"
#include "base/fault.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILD_STACK = 64 * 1024 };
/* runs on a stack of its own */
#define IN_CHILD __attribute__((no_sanitize("address"), noinline))

struct launch {
    const struct proc_spec *spec;
    char *stack;                /* two of CHILD_STACK: the child's and the grandchild's */
    const char *step;           /* which one failed, for the sentence */
    int why;                    /* its errno; 0: it runs */
    int pid, pidfd;
};

IN_CHILD static int give_up(struct launch *l, const char *step)
{
    l->why = errno;
    l->step = step;
    _exit(127);
}

IN_CHILD static void reset_signals(void)
{
    struct sigaction act = { .sa_handler = SIG_DFL };
    for (int s = 1; s < NSIG; s++)
        sigaction(s, &act, NULL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Each wanted descriptor is first copied above 2, because one of them may sit where another has
 * to go. */
IN_CHILD static bool place_descriptors(const struct proc_spec *spec)
{
    int want[3] = { spec->in, spec->out, spec->err };
    for (int i = 0; i < 3; i++) {
        int fd = want[i] >= 0 ? want[i] : open("/dev/null", i ? O_WRONLY : O_RDONLY);
        want[i] = fd == -1 ? -1 : fcntl(fd, F_DUPFD, 3);
        if (want[i] == -1)
            return false;
    }
    for (int i = 0; i < 3; i++)
        if (dup2(want[i], i) == -1)
            return false;
    return syscall(SYS_close_range, 3u, ~0u, 0u) == 0;
}

IN_CHILD static int child_main(void *arg)
{
    struct launch *l = arg;
    static const char *const nothing[] = { NULL };
    const char *const *env = l->spec->env ? l->spec->env : nothing;
    if (l->spec->own_session && setsid() == -1)
        return give_up(l, "start a session for");
    reset_signals();
    if (!place_descriptors(l->spec))
        return give_up(l, "give descriptors to");
    if (l->spec->dir && chdir(l->spec->dir) == -1)
        return give_up(l, "enter the folder of");
    execve(l->spec->argv[0], (char *const *)l->spec->argv, (char *const *)env);
    return give_up(l, "run");
}

IN_CHILD static int middle_main(void *arg)
{
    struct launch *l = arg;
    int pidfd = -1;
    int pid = clone(child_main, l->stack + 2 * CHILD_STACK,
                    CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, l, &pidfd);
    if (pid == -1)
        return give_up(l, "start");
    l->pid = pid;
    l->pidfd = pidfd;           /* our parent's too: we share its table */
    _exit(0);
}

static void wait_for(int pid, int *status)
{
    while (waitpid(pid, status, 0) == -1 && errno == EINTR)
        ;
}

static void launch_run(struct launch *l)
{
    int flags = CLONE_VM | CLONE_VFORK | SIGCHLD, status;
    if (!l->spec->own_session) {
        l->pid = clone(child_main, l->stack + CHILD_STACK, flags | CLONE_PIDFD, l, &l->pidfd);
        if (l->pid == -1)
            l->why = errno;
        else if (l->why)
            wait_for(l->pid, &status);
        return;
    }
    int middle = clone(middle_main, l->stack + CHILD_STACK, flags | CLONE_FILES, l);
    if (middle == -1)
        l->why = errno;
    else
        wait_for(middle, &status);
}

bool proc_launch(const struct proc_spec *spec, int *pid, int *pidfd, struct err *err)
{
    if (!spec->argv || !spec->argv[0] || spec->argv[0][0] != '/')
        return err_set(err, RC_BAD_INPUT, "a program is named by its absolute path");
    if (fault("proc.spawn"))
        return err_set(err, RC_UNAVAILABLE, "cannot run %s: a fault was asked for", spec->argv[0]);
    struct launch l = { .spec = spec, .pid = -1, .pidfd = -1, .step = "start" };
    l.stack = mmap(NULL, 2 * CHILD_STACK, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (l.stack == MAP_FAILED)
        return err_errno(err, "cannot run %s", spec->argv[0]);
    /* no handler of ours may run in the child, which shares our memory */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    launch_run(&l);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    munmap(l.stack, 2 * CHILD_STACK);
    if (l.why) {
        if (l.pidfd >= 0)
            close(l.pidfd);
        errno = l.why;
        return err_errno(err, "cannot %s %s", l.step, spec->argv[0]);
    }
    fcntl(l.pidfd, F_SETFD, FD_CLOEXEC);
    *pid = l.pid;
    *pidfd = l.pidfd;
    return true;
}

uint64_t proc_started(int pid, char *state)
{
    char path[64], text[1024];
    *state = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd == -1)
        return 0;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[MAX(n, 0)] = 0;
    char *at = strrchr(text, ')');      /* the name before it may hold blanks and parentheses */
    *state = (char)(at && at[1] ? at[2] : 0);
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at + 1, NULL, 10) : 0;
}

/* --- watching */
struct rproc {
    struct proc base;
    struct source src;
    bool ours;                  /* our child, so it is ours to reap */
    bool over, forgotten;
    void (*on_exit)(void *arg, int wait_status);
    void (*on_gone)(void *arg);
    void *arg;
};

static void proc_drop(struct source *src)
{
    struct rproc *p = CONTAINER(src, struct rproc, src);
    if (src->fd >= 0)
        close(src->fd);
    free(p);
}

static void proc_ready(struct source *src, uint32_t events)
{
    (void)events;
    struct rproc *p = CONTAINER(src, struct rproc, src);
    int status = -1;
    if (p->ours && waitpid(p->base.pid, &status, WNOHANG) == 0)
        return;
    p->over = true;
    /* kept for the caller, but it must not wake us again */
    if (!p->on_exit && !p->on_gone && !p->forgotten) {
        epoll_ctl(src->loop->epoll, EPOLL_CTL_DEL, src->fd, NULL);
        return;
    }
    source_end(src);
    if (p->forgotten)
        return;
    if (p->on_exit)
        p->on_exit(p->arg, status);
    else
        p->on_gone(p->arg);
}

static struct rproc *proc_add(struct real *r, int pid, int pidfd, void *arg)
{
    struct rproc *p = os_alloc(sizeof *p);
    char state;
    p->base = (struct proc){ .os = &r->os, .pid = pid, .start_time = proc_started(pid, &state) };
    p->arg = arg;
    source_init(r, &p->src, proc_ready, proc_drop);
    if (!source_poll(&p->src, pidfd, EPOLLIN))
        abort();        /* epoll takes any pidfd; out of kernel memory is out of memory */
    return p;
}

bool real_spawn(struct os *os, const struct proc_spec *spec, void (*on_exit)(void *arg, int st),
                void *arg, struct proc **out, struct err *err)
{
    int pid, pidfd;
    if (!proc_launch(spec, &pid, &pidfd, err))
        return false;
    struct rproc *p = proc_add(real_of(os), pid, pidfd, arg);
    p->ours = !spec->own_session;
    p->on_exit = on_exit;
    p->forgotten = !on_exit && !out;
    if (out)
        *out = &p->base;
    return true;
}

bool real_proc_watch(struct os *os, int pid, uint64_t start_time, void (*on_gone)(void *arg),
                     void *arg, struct proc **out)
{
    int pidfd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    if (pidfd == -1)
        return false;
    fcntl(pidfd, F_SETFD, FD_CLOEXEC);
    char state = 0;         /* asked after the pidfd was opened: it cannot change behind us */
    if (proc_started(pid, &state) != start_time || state == 'Z' || state == 'X') {
        close(pidfd);
        return false;
    }
    struct rproc *p = proc_add(real_of(os), pid, pidfd, arg);
    p->on_gone = on_gone;
    *out = &p->base;
    return true;
}

void real_proc_kill(struct proc *proc, int signal)
{
    struct rproc *p = (struct rproc *)proc;
    if (!p->over)
        syscall(SYS_pidfd_send_signal, p->src.fd, signal, NULL, 0);
}

void real_proc_forget(struct proc *proc)
{
    struct rproc *p = (struct rproc *)proc;
    p->forgotten = true;
    if (p->over || !p->ours)
        source_end(&p->src);    /* else it stays to be reaped */
}
