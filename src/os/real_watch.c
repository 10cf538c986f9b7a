/* real_watch.c - signals and changed folders, both as descriptors of the loop: no code of ours
 * runs in a signal handler. */
#include "os/real.h"
#include "base/fault.h"
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

struct signals {
    struct source src;
    sigset_t ours;
    struct { void (*fn)(void *arg); void *arg; } on[NSIG];
};

static void signals_ready(struct source *src, uint32_t events)
{
    (void)events;
    struct signals *s = CONTAINER(src, struct signals, src);
    struct signalfd_siginfo info;
    while (read(src->fd, &info, sizeof info) == (ssize_t)sizeof info)
        if (info.ssi_signo < COUNT(s->on) && s->on[info.ssi_signo].fn)
            s->on[info.ssi_signo].fn(s->on[info.ssi_signo].arg);
}

static void signals_drop(struct source *src)
{
    struct signals *s = CONTAINER(src, struct signals, src);
    close(src->fd);
    pthread_sigmask(SIG_UNBLOCK, &s->ours, NULL);
    free(s);
}

void signals_free(struct real *r)
{
    if (r->signals)
        source_end(&TAKE(r->signals)->src);
}

void real_on_signal(struct os *os, int signal, void (*fn)(void *arg), void *arg)
{
    struct real *r = real_of(os);
    if (signal <= 0 || signal >= NSIG)
        return;
    if (!r->signals) {
        struct signals *s = os_alloc(sizeof *s);
        sigemptyset(&s->ours);
        int fd = signalfd(-1, &s->ours, SFD_CLOEXEC | SFD_NONBLOCK);
        source_init(r, &s->src, signals_ready, signals_drop);
        if (fd == -1 || !source_poll(&s->src, fd, EPOLLIN))
            abort();
        r->signals = s;
    }
    struct signals *s = r->signals;
    s->on[signal].fn = fn;
    s->on[signal].arg = arg;
    sigaddset(&s->ours, signal);
    pthread_sigmask(SIG_BLOCK, &s->ours, NULL);
    signalfd(s->src.fd, &s->ours, 0);
}

/* Instances of inotify are few, and containers use up those of root: without one the folder is
 * looked at now and then. */
enum { LOOK_MS = 500 };

struct rwatch {
    struct watch base;
    struct source src;
    struct timer *look;         /* instead of src */
    void (*on_change)(void *arg, const char *name);
    void *arg;
};

static void watch_ready(struct source *src, uint32_t events)
{
    (void)events;
    struct rwatch *w = CONTAINER(src, struct rwatch, src);
    _Alignas(struct inotify_event) char buf[8 * (sizeof(struct inotify_event) + NAME_MAX + 1)];
    ssize_t n;
    while (!src->dead && (n = read(src->fd, buf, sizeof buf)) > 0) {
        const struct inotify_event *e;
        for (char *at = buf; at < buf + n && !src->dead; at += sizeof *e + e->len) {
            e = (const struct inotify_event *)at;
            if (e->mask & IN_Q_OVERFLOW)
                w->on_change(w->arg, NULL);
            else if (e->len && !(e->mask & IN_ISDIR) && !name_is_temporary(e->name))
                w->on_change(w->arg, e->name);
        }
    }
}

static void watch_drop(struct source *src)
{
    if (src->fd >= 0)
        close(src->fd);
    free(CONTAINER(src, struct rwatch, src));
}

static void on_look(void *arg)
{
    struct rwatch *w = arg;
    w->look = timer_start(w->base.os, LOOK_MS, on_look, w);
    w->on_change(w->arg, NULL);     /* which may end the watch */
}

struct watch *real_dir_watch(struct os *os, const char *path,
                             void (*on_change)(void *arg, const char *name), void *arg)
{
    struct stat st;
    if (stat(path, &st) == -1 || !S_ISDIR(st.st_mode))
        return NULL;
    int fd = fault("watch.instance") ? -1 : inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    struct rwatch *w = os_alloc(sizeof *w);
    *w = (struct rwatch){ .base.os = os, .on_change = on_change, .arg = arg };
    if (fd == -1) {
        w->look = timer_start(os, LOOK_MS, on_look, w);
        return &w->base;
    }
    source_init(real_of(os), &w->src, watch_ready, watch_drop);
    if (inotify_add_watch(fd, path, IN_MOVED_TO | IN_CLOSE_WRITE | IN_ONLYDIR) == -1
        || !source_poll(&w->src, fd, EPOLLIN)) {
        close(fd);
        source_end(&w->src);
        return NULL;
    }
    return &w->base;
}

void real_watch_stop(struct watch *watch)
{
    struct rwatch *w = (struct rwatch *)watch;
    if (!w->look) {
        source_end(&w->src);
        return;
    }
    timer_cancel(w->look);
    free(w);
}
