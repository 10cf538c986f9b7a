/* real_socket.c - listeners, and names to addresses. A name is looked up in a thread of its own,
 * because getaddrinfo blocks; the thread may outlive the loop, so it shares only a counted
 * struct with it. */
#include "os/real.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 4096, ACCEPTS_A_TURN = 32, BREATHER_MS = 50, SHAKES_MS = 5, DEFERRED_MOST = 32 };

_Static_assert(sizeof(struct sockaddr_storage) <= 128, "struct sockets holds any address");

static bool sockets_add(struct sockets *list, const void *at, size_t len)
{
    if (list->count == COUNT(list->at) || len > sizeof list->at[0].raw)
        return false;
    memcpy(list->at[list->count].raw, at, len);
    list->at[list->count++].len = (unsigned)len;
    return true;
}

bool sockets_numeric(const struct address *a, struct sockets *out)
{
    *out = (struct sockets){ 0 };
    if (a->is_unix) {
        struct sockaddr_un un = { .sun_family = AF_UNIX };
        return text_copy(un.sun_path, sizeof un.sun_path, a->host)
            && sockets_add(out, &un, sizeof un);
    }
    in_port_t port = htons((uint16_t)atoi(a->port));
    struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = port };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = port };
    if (inet_pton(AF_INET, a->host, &v4.sin_addr) == 1)
        return sockets_add(out, &v4, sizeof v4);
    if (inet_pton(AF_INET6, a->host, &v6.sin6_addr) == 1)
        return sockets_add(out, &v6, sizeof v6);
    return false;
}

bool sockets_lookup(const struct address *a, struct sockets *out, struct err *err)
{
    if (sockets_numeric(a, out))
        return true;
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV }, *found;
    int rc = getaddrinfo(a->host, a->port, &hints, &found);
    if (rc != 0)
        return err_set(err, RC_UNAVAILABLE, "cannot find %s: %s", a->host, gai_strerror(rc));
    for (struct addrinfo *i = found; i; i = i->ai_next)
        sockets_add(out, i->ai_addr, i->ai_addrlen);
    freeaddrinfo(found);
    return true;
}

static void address_text(const struct sockaddr *sa, char host[static 64], int *port)
{
    *port = 0;
    snprintf(host, 64, "unix");
    if (sa->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const void *)sa;
        inet_ntop(AF_INET, &v4->sin_addr, host, 64);
        *port = ntohs(v4->sin_port);
    } else if (sa->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const void *)sa;
        if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
            inet_ntop(AF_INET, &v6->sin6_addr.s6_addr[12], host, 64);
        else
            inet_ntop(AF_INET6, &v6->sin6_addr, host, 64);
        *port = ntohs(v6->sin6_port);
    }
}

void socket_peer(int fd, char out[static 64])
{
    struct sockaddr_storage sa = { 0 };
    socklen_t len = sizeof sa;
    int port;
    if (getpeername(fd, (struct sockaddr *)&sa, &len) == 0)
        address_text((struct sockaddr *)&sa, out, &port);
}

/* --- lookups */
struct lookup {
    pthread_mutex_t lock;
    int holders;            /* the loop's side and the thread */
    struct real *loop;      /* NULL once nobody waits for it */
    struct address address;
    struct sockets found;
    struct err err;
    bool ok;
    struct post post;
    void (*done)(void *arg, const struct sockets *found, const struct err *err);
    void *arg;
};

static void lookup_release(struct lookup *l)    /* takes the lock with it */
{
    bool last = --l->holders == 0;
    pthread_mutex_unlock(&l->lock);
    if (!last)
        return;
    pthread_mutex_destroy(&l->lock);
    free(l);
}

static void lookup_done(void *arg, struct post *p)
{
    (void)p;
    struct lookup *l = arg;
    pthread_mutex_lock(&l->lock);
    bool wanted = l->loop;
    pthread_mutex_unlock(&l->lock);
    if (wanted)
        l->done(l->arg, l->ok ? &l->found : NULL, &l->err);
    pthread_mutex_lock(&l->lock);
    lookup_release(l);
}

static void *lookup_main(void *arg)
{
    struct lookup *l = arg;
    struct sockets found = { 0 };
    struct err err = { 0 };
    bool ok = sockets_lookup(&l->address, &found, &err);
    pthread_mutex_lock(&l->lock);
    l->ok = ok;
    l->found = found;
    l->err = err;
    if (l->loop) {
        l->holders++;           /* the post's */
        l->post = (struct post){ .fn = lookup_done, .arg = l };
        os_post(&l->loop->os, &l->post);
    }
    lookup_release(l);
    return NULL;
}

struct lookup *lookup_start(struct real *r, const struct address *a,
                            void (*done)(void *arg, const struct sockets *found,
                                         const struct err *err), void *arg)
{
    struct lookup *l = os_alloc(sizeof *l);
    *l = (struct lookup){ .holders = 2, .loop = r, .address = *a, .done = done, .arg = arg };
    pthread_mutex_init(&l->lock, NULL);
    pthread_t thread;
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&thread, &detached, lookup_main, l);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&detached);
    if (rc == 0)
        return l;
    pthread_mutex_destroy(&l->lock);
    free(l);
    return NULL;
}

void lookup_cancel(struct lookup *l)
{
    if (!l)
        return;
    pthread_mutex_lock(&l->lock);
    l->loop = NULL;
    lookup_release(l);
}

void lookups_sweep(struct post *first)
{
    for (struct post *p = first, *next; p; p = next) {
        next = p->next;
        if (p->fn == lookup_done)
            p->fn(p->arg, p);   /* its stream is gone, so this only frees */
    }
}

/* --- listeners */
struct rlistener {
    struct listener base;
    struct source src;
    struct tls *tls;
    void (*on_accept)(void *arg, struct stream *s);
    void *arg;
    struct timer *breather;
    bool is_unix;
};

static void listener_drop(struct source *src)
{
    struct rlistener *l = CONTAINER(src, struct rlistener, src);
    if (src->fd >= 0)
        close(src->fd);
    free(l);
}

static void listener_arm(struct rlistener *l, uint32_t events)
{
    struct epoll_event e = { .events = events, .data.ptr = &l->src };
    epoll_ctl(l->src.loop->epoll, EPOLL_CTL_MOD, l->src.fd, &e);
}

static void listener_again(void *arg)
{
    struct rlistener *l = arg;
    l->breather = NULL;
    listener_arm(l, EPOLLIN);
}

static void listener_rest(struct rlistener *l, int64_t ms)
{
    listener_arm(l, 0);
    l->breather = timer_start(l->base.os, ms, listener_again, l);
}

static void listener_ready(struct source *src, uint32_t events)
{
    (void)events;
    struct rlistener *l = CONTAINER(src, struct rlistener, src);
    if (src->loop->deferred >= DEFERRED_MOST)   /* they wait better in the kernel, where no clock runs against them */
        return;
    if (l->tls && streams_shake(src->loop)) {
        listener_rest(l, SHAKES_MS);
        return;
    }
    for (int i = 0; i < ACCEPTS_A_TURN && !src->dead; i++) {
        int fd = accept4(src->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd == -1
            && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
            listener_rest(l, BREATHER_MS);      /* else a full table of descriptors makes this loop spin */
            return;
        }
        if (fd == -1 && (errno == EINTR || errno == ECONNABORTED))
            continue;
        if (fd == -1)
            return;
        struct stream *s = rstream_accepted(src->loop, fd, l->tls);
        if (!s)
            continue;
        l->on_accept(l->arg, s);
        if (!s->events.on_close && !s->events.on_data)  /* nobody bound it */
            stream_close(s);
    }
}

/* A socket file that nobody listens behind is a leftover of a server that was killed. */
static void unix_sweep(const struct sockaddr *sa, socklen_t len, const char *path)
{
    int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct stat st;
    if (probe != -1 && lstat(path, &st) == 0 && S_ISSOCK(st.st_mode)
        && connect(probe, sa, len) == -1 && errno == ECONNREFUSED)
        unlink(path);
    if (probe != -1)
        close(probe);
}

static int listen_on(const struct address *a, const struct sockaddr *sa, socklen_t len)
{
    int fd = socket(sa->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd == -1)
        return -1;
    int on = 1;
    if (a->is_unix)
        unix_sweep(sa, len, a->host);
    else
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, sa, len) == 0 && (!a->is_unix || chmod(a->host, 0600) == 0)
        && listen(fd, BACKLOG) == 0)
        return fd;
    int saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

static void listener_name(struct rlistener *l, const struct address *a, int fd)
{
    struct sockaddr_storage sa = { 0 };
    socklen_t len = sizeof sa;
    char host[64];
    int port;
    getsockname(fd, (struct sockaddr *)&sa, &len);
    address_text((struct sockaddr *)&sa, host, &port);
    char *to = l->base.address;
    if (a->is_unix)
        snprintf(to, sizeof l->base.address, "unix:%s", a->host);
    else
        snprintf(to, sizeof l->base.address, strchr(host, ':') ? "[%s]:%d" : "%s:%d", host, port);
}

bool real_listen(struct os *os, const char *address, struct tls *tls,
                 void (*on_accept)(void *arg, struct stream *s), void *arg, struct listener **out,
                 struct err *err)
{
    struct address a;
    struct sockets at = { 0 };
    if (!address_parse(address, &a, err) || !sockets_lookup(&a, &at, err))
        return err_wrap(err, "listen");
    int fd = -1;
    for (size_t i = 0; i < at.count && fd == -1; i++)
        fd = listen_on(&a, (const struct sockaddr *)at.at[i].raw, at.at[i].len);
    if (fd == -1)
        return err_errno(err, "listen on %s", address);
    struct rlistener *l = os_alloc(sizeof *l);
    *l = (struct rlistener){ .base.os = os, .tls = tls, .on_accept = on_accept, .arg = arg };
    l->is_unix = a.is_unix;
    listener_name(l, &a, fd);
    source_init(real_of(os), &l->src, listener_ready, listener_drop);
    if (!source_poll(&l->src, fd, EPOLLIN)) {
        err_errno(err, "listen on %s", address);
        close(fd);
        source_end(&l->src);
        return false;
    }
    *out = &l->base;
    return true;
}

void real_listener_close(struct listener *listener)
{
    struct rlistener *l = (struct rlistener *)listener;
    if (l->is_unix)
        unlink(l->base.address + strlen("unix:"));
    timer_cancel(TAKE(l->breather));
    source_end(&l->src);
}
