/* real_stream.c - one connection or pipe: reading, writing, ending. Dialling is in real_dial.c.
 *
 *
 * Edge-triggered: a stream is entered into epoll once and remembers whether it is readable and
 * writable, so a request costs one read and one write. Writes of one turn are gathered and go
 * out at its end. Callbacks come only from the loop: what a call of the code above causes is put
 * on the lists ready, dirty or closing and done in streams_turn(). */
#include "base/fault.h"
#include "os/real_stream.h"
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    READ_A_TURN = 64 * 1024,
    HANDSHAKES_A_TURN = 4,
    SHAKES_MOST = 256,          /* with SHAKE_MS: far more a second than this machine can do, also over a slow network */
    SHAKE_MS = 200,
    LINGER_MS = 2000,
    KEPT_BUDGET = 32 * 1024 * 1024,     /* of bytes that the code above left, in all; beyond it reads are small */
    SMALL_READ = 2048,
    UNSENT_MOST = 128 * 1024,           /* in the kernel, for a peer that does not read: else hundreds of those take all memory of TCP */
};

void rstream_ready(struct rstream *s) { link_add(&s->src.loop->ready, &s->ready); }
static void make_dirty(struct rstream *s) { link_add(&s->src.loop->dirty, &s->dirty); }

struct err *rstream_why(struct rstream *s)
{
    if (!s->why)
        s->why = os_alloc(sizeof *s->why);
    return s->why;
}

void rstream_finish(struct rstream *s)
{
    s->closing = true;
    link_add(&s->src.loop->closing, &s->over);
}

/* --- the out-buffer */
static void out_release(struct rstream *s)
{
    struct real *r = s->src.loop;
    if (s->out.room == SPARE_BYTES && r->spares < (int)COUNT(r->spare))
        r->spare[r->spares++] = s->out.at;
    else
        free(s->out.at);
    s->out = (struct out){ 0 };
}

static void out_room(struct rstream *s, size_t n)
{
    struct out *o = &s->out;
    struct real *r = s->src.loop;
    if (o->room - o->head - o->len >= n)
        return;
    if (o->head && o->room - o->len >= n && o->head >= o->len) {
        memcpy(o->at, o->at + o->head, o->len);
        o->head = 0;
        return;
    }
    if (!o->at && n <= SPARE_BYTES) {
        o->at = r->spares ? r->spare[--r->spares] : os_alloc(SPARE_BYTES);
        o->room = SPARE_BYTES;
        return;
    }
    size_t room = MAX(o->room, (size_t)SPARE_BYTES);
    while (room < o->len + n)
        room *= 2;
    char *at = malloc(room);
    if (!at)
        abort();
    if (o->len)
        memcpy(at, o->at + o->head, o->len);
    size_t len = o->len;
    out_release(s);
    s->out = (struct out){ .at = at, .len = len, .room = room };
}

static void out_put(struct rstream *s, const void *at, size_t n)
{
    if (!n)
        return;
    out_room(s, n);
    memcpy(s->out.at + s->out.head + s->out.len, at, n);
    s->out.len += n;
    s->src.loop->out_bytes += n;
}

static void out_drop(struct rstream *s, size_t n)
{
    s->out.head += n;
    s->out.len -= n;
    s->src.loop->out_bytes -= n;
    if (!s->out.len)
        out_release(s);
}

static void buffers_drop(struct rstream *s)
{
    s->src.loop->out_bytes -= s->out.len;
    s->src.loop->kept_bytes -= s->kept_noted;
    s->kept_noted = 0;
    out_release(s);
    str_done(&s->in);
}

/* --- the transport: IO_AGAIN, IO_FAILED with s->why, or a count */
static ssize_t io_errno(struct rstream *s, const char *what)
{
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
        return IO_AGAIN;
    err_set(rstream_why(s), RC_UNAVAILABLE, "%s: %s", what, strerror(errno));
    return IO_FAILED;
}

static ssize_t noted(struct rstream *s, ssize_t how, const struct err *why)
{
    if (how == IO_FAILED)
        *rstream_why(s) = *why;
    return how;
}

static ssize_t io_read(struct rstream *s, void *to, size_t n)
{
    struct err why;
    if (s->ssl)
        return noted(s, tls_read(s->ssl, to, n, &why), &why);
    ssize_t got;
    if (broken("stream.read"))
        return io_errno(s, "read from the peer");
    do
        got = s->is_socket ? recv(s->src.fd, to, n, 0) : read(s->src.fd, to, n);
    while (got < 0 && errno == EINTR);
    /* how a terminal says that its other side has left */
    if (got < 0 && errno == EIO && !s->is_socket)
        return 0;
    return got >= 0 ? got : io_errno(s, "read from the peer");
}

static ssize_t io_write(struct rstream *s, const void *at, size_t n)
{
    struct err why;
    if (s->ssl)
        return noted(s, tls_write(s->ssl, at, n, &why), &why);
    ssize_t done;
    if (broken("stream.write"))
        return io_errno(s, "write to the peer");
    do
        done = s->is_socket ? send(s->src.fd, at, n, MSG_NOSIGNAL) : write(s->src.fd, at, n);
    while (done < 0 && errno == EINTR);
    return done >= 0 ? done : io_errno(s, "write to the peer");
}

static bool may_read(const struct rstream *s)
{
    return s->phase == PHASE_OPEN && s->can_read && !s->paused && !s->closing && !s->eof;
}

/* A peer that has left may have said its last words before: they are read, then comes the end. What we say is thrown away. */
static bool last_words(struct rstream *s)
{
    if (!s->is_socket || s->ssl || !may_read(s))
        return false;
    s->can_write = false;
    s->deaf = s->readable = true;
    rstream_ready(s);
    return true;
}

static size_t write_some(struct rstream *s, const char *at, size_t n)
{
    size_t sent = 0;
    while (sent < n && s->writable && !s->closing) {
        ssize_t done = s->deaf ? IO_FAILED : io_write(s, at + sent, n - sent);
        if (done == IO_AGAIN)
            s->writable = !s->polled;
        else if (done < 0 && (s->deaf || last_words(s)))
            return n;
        else if (done < 0)
            rstream_finish(s);
        if (done < 0)
            break;
        sent += (size_t)done;
    }
    return sent;
}

static void half_close(struct rstream *s)
{
    s->shut_done = true;
    if (s->ssl)
        tls_goodbye(s->ssl);
    if (s->is_socket)
        shutdown(s->src.fd, SHUT_WR);
}

static void flush(struct rstream *s)
{
    if (s->phase != PHASE_OPEN || s->closing)
        return;
    if (s->out.len)
        out_drop(s, write_some(s, s->out.at + s->out.head, s->out.len));
    if (s->out.len || s->closing)
        return;
    if (s->shut && !s->shut_done)
        half_close(s);
    if (s->ending || (s->shut_done && s->eof)) {
        s->linger = s->is_socket && !s->eof;
        rstream_finish(s);
    }
}

/* --- reading */
static void deliver(struct rstream *s, const char *at, size_t n, bool kept)
{
    s->showing = true;
    size_t took = s->base.events.on_data ? s->base.events.on_data(s->base.arg, at, n) : n;
    s->showing = false;
    assert(took <= n);
    if (kept)
        str_drop(&s->in, took);
    else if (took < n)
        str_put(&s->in, at + took, n - took);
    if (!s->in.len)
        str_done(&s->in);
    s->src.loop->kept_bytes += s->in.len - s->kept_noted;
    s->kept_noted = s->in.len;
}

static void at_eof(struct rstream *s)
{
    s->eof = true;
    if (s->base.events.on_eof)
        s->base.events.on_eof(s->base.arg);
    else
        s->ending = true;
    make_dirty(s);
}

static bool read_once(struct rstream *s, size_t *budget)
{
    bool kept = s->in.len > 0;
    size_t most = s->src.loop->kept_bytes < KEPT_BUDGET ? SCRATCH : SMALL_READ;
    size_t room = kept ? MIN(most, STREAM_KEPT_MOST - s->in.len) : most;
    char *to = kept ? str_grow(&s->in, room) : s->src.loop->scratch;
    ssize_t n = io_read(s, to, room);
    if (n == IO_AGAIN && !s->deaf)
        return s->readable = !s->polled, false;
    if (n == IO_FAILED || (n <= 0 && s->deaf))
        return rstream_finish(s), false;
    if (n == 0)
        return at_eof(s), false;
    /* A socket that gave less than asked for is empty, and its next byte makes a new edge. */
    if (s->is_socket && !s->ssl && (size_t)n < room && !s->hup && !s->deaf)
        s->readable = false;
    *budget -= MIN(*budget, (size_t)n);
    if (kept)
        s->in.len += (size_t)n;
    deliver(s, kept ? s->in.at : to, kept ? s->in.len : (size_t)n, kept);
    return true;
}

static void rstream_read(struct rstream *s)
{
    size_t budget = READ_A_TURN;
    if (s->again && may_read(s) && s->in.len) {
        s->again = false;
        deliver(s, s->in.at, s->in.len, true);
    }
    while (may_read(s) && s->readable && s->in.len < STREAM_KEPT_MOST) {
        if (!budget) {
            rstream_ready(s);       /* others first */
            return;
        }
        if (!read_once(s, &budget))
            return;
    }
}

static void rstream_opened(struct rstream *s)
{
    s->phase = PHASE_OPEN;
    if (s->dialled && s->base.events.on_open && !s->closing)
        s->base.events.on_open(s->base.arg);
    if (s->out.len || s->shut || s->ending)
        make_dirty(s);
    rstream_ready(s);
}

static void deferred_set(struct rstream *s, bool deferred)
{
    s->src.loop->deferred += (int)deferred - (int)s->deferred;
    s->deferred = deferred;
}

static void shake_over(struct rstream *s)
{
    s->src.loop->shakes -= s->shaking.next != NULL;
    link_cut(&s->shaking);
}

/* One takes several times the memory that its connection takes afterwards, and what many at once leave behind is a heap full of holes.
 * So when a whole fleet dials, those who have not begun wait in the kernel. Who does not go on within SHAKE_MS stops nobody. */
bool streams_shake(struct real *r)
{
    int64_t now_ms = real_boot_ms(&r->os);
    while (!link_empty(&r->shaking)) {
        struct rstream *s = CONTAINER(r->shaking.next, struct rstream, shaking);
        if (s->shaking_ms + SHAKE_MS > now_ms)
            break;
        shake_over(s);
    }
    return r->shakes >= SHAKES_MOST;
}

/* A step of one costs as much as many requests, and many may come at once: a few each turn, the rest in the next. */
static void handshake(struct rstream *s)
{
    struct real *r = s->src.loop;
    deferred_set(s, r->handshakes >= HANDSHAKES_A_TURN);
    if (s->deferred) {
        rstream_ready(s);
        return;
    }
    struct err why;
    if (!s->ssl) {
        s->ssl = tls_attach(s->tls, s->src.fd, NULL, &why);
        tls_free(TAKE(s->tls));
        s->shaking_ms = real_boot_ms(&r->os);
        link_add(&r->shaking, &s->shaking);
        r->shakes++;
    }
    int before = s->ssl ? tls_stage(s->ssl) : 0, done = s->ssl ? tls_handshake(s->ssl, &why) : IO_FAILED;
    noted(s, done, &why);
    r->handshakes += s->ssl && tls_stage(s->ssl) != before;
    if (done == IO_FAILED || done == 1)
        shake_over(s);
    if (done == IO_FAILED)
        rstream_finish(s);
    else if (done == 1)
        rstream_opened(s);
}

/* --- ending */
static void linger_over(void *arg)
{
    struct rstream *s = arg;
    s->linger_timer = NULL;
    source_end(&s->src);
}

/* Closing a socket with unread bytes makes the kernel send a reset, which can overtake the
 * reply. So the last bytes of a peer that still sends are read and thrown away for a while. */
static void linger_read(struct rstream *s)
{
    char *to = s->src.loop->scratch;
    ssize_t n;
    size_t seen = 0;
    while ((n = recv(s->src.fd, to, SCRATCH, 0)) > 0 && (seen += (size_t)n) < READ_A_TURN)
        ;
    if (n > 0)
        rstream_ready(s);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        timer_cancel(TAKE(s->linger_timer));
        source_end(&s->src);
    }
}

static void rstream_drop(struct source *src)
{
    struct rstream *s = CONTAINER(src, struct rstream, src);
    link_cut(&s->ready);
    link_cut(&s->dirty);
    link_cut(&s->over);
    shake_over(s);
    dial_free(s);
    tls_detach(s->ssl);
    tls_free(s->tls);
    deferred_set(s, false);
    buffers_drop(s);
    if (s->src.fd >= 0)
        close(s->src.fd);
    free(s->why);
    free(s);
}

static void start_lingering(struct rstream *s)
{
    s->phase = PHASE_LINGERING;
    if (!s->shut_done)
        half_close(s);
    buffers_drop(s);
    s->linger_timer = timer_start(s->base.os, LINGER_MS, linger_over, s);
    linger_read(s);
}

static void close_one(struct rstream *s)
{
    static const struct err fine;
    if (s->ssl && s->phase == PHASE_OPEN && !s->shut_done && !s->why)
        tls_goodbye(s->ssl);
    if (s->linger)
        start_lingering(s);
    else
        source_end(&s->src);
    if (s->base.events.on_close)
        s->base.events.on_close(s->base.arg, s->why ? s->why : &fine);
}

static void dirty_one(struct rstream *s)
{
    flush(s);
    if (!s->was_full || s->out.len >= STREAM_FULL || s->closing)
        return;
    s->was_full = false;
    if (s->base.events.on_drain)
        s->base.events.on_drain(s->base.arg);
}

static void ready_one(struct rstream *s)
{
    if (s->phase == PHASE_LINGERING)
        linger_read(s);
    else if (s->phase == PHASE_CONNECTING)
        dial_progress(s);
    else if (s->phase != PHASE_HANDSHAKE)
        rstream_read(s);
    else if (!s->closing)
        handshake(s);
}

void streams_turn(struct real *r)
{
    struct link now;
    r->handshakes = 0;
    for (link_move(&r->ready, &now); !link_empty(&now);) {
        struct rstream *s = CONTAINER(now.next, struct rstream, ready);
        link_cut(&s->ready);
        ready_one(s);
    }
    for (link_move(&r->dirty, &now); !link_empty(&now);) {
        struct rstream *s = CONTAINER(now.next, struct rstream, dirty);
        link_cut(&s->dirty);
        dirty_one(s);
    }
    for (link_move(&r->closing, &now); !link_empty(&now);) {
        struct rstream *s = CONTAINER(now.next, struct rstream, over);
        link_cut(&s->over);
        close_one(s);
    }
}

static void on_event(struct source *src, uint32_t ev)
{
    struct rstream *s = CONTAINER(src, struct rstream, src);
    bool tls = s->ssl;      /* its reads may wait for room to write, and the other way round */
    s->readable |= tls || ev & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR);
    s->writable |= tls || ev & (EPOLLOUT | EPOLLHUP | EPOLLERR);
    s->hup |= (ev & (EPOLLRDHUP | EPOLLHUP)) != 0;
    if (s->phase == PHASE_LINGERING)
        linger_read(s);
    if (s->closing)
        return;
    if (s->phase == PHASE_CONNECTING)
        dial_progress(s);
    else if (s->phase == PHASE_HANDSHAKE && (s->ssl || s->readable))
        handshake(s);
    else if (s->phase == PHASE_OPEN)
        rstream_read(s);
    if (s->out.len && s->writable)
        make_dirty(s);
    if ((ev & EPOLLERR) && s->phase == PHASE_OPEN && !s->closing && (s->paused || !s->can_read)) {
        err_set(rstream_why(s), RC_UNAVAILABLE, "the peer has left");
        rstream_finish(s);
    }
}

struct rstream *rstream_new(struct real *r, const struct stream_events *events, void *arg)
{
    struct rstream *s = os_alloc(sizeof *s);
    s->base.os = &r->os;
    s->base.arg = arg;
    if (events)
        s->base.events = *events;
    s->can_read = s->can_write = s->polled = true;
    source_init(r, &s->src, on_event, rstream_drop);
    return s;
}

bool rstream_take_socket(struct rstream *s, int fd)
{
    static const struct {
        int name, value;
    } alive[] = { /* a peer that was cut off says nothing, also where we only listen: gone after half a minute */
        { TCP_KEEPIDLE, 15 }, { TCP_KEEPINTVL, 5 }, { TCP_KEEPCNT, 3 }, { TCP_USER_TIMEOUT, 30000 },
    };
    int on = 1, unsent = UNSENT_MOST;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    for (size_t i = 0; i < COUNT(alive); i++)
        setsockopt(fd, IPPROTO_TCP, alive[i].name, &alive[i].value, sizeof alive[i].value);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);   /* refused by a unix socket: fine */
    setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
    s->is_socket = true;
    return source_poll(&s->src, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
}

void rstream_start(struct rstream *s, struct tls *tls, const char *server_name)
{
    if (!tls) {
        rstream_opened(s);
        return;
    }
    struct err why;
    s->phase = PHASE_HANDSHAKE;
    s->ssl = tls_attach(tls, s->src.fd, server_name, &why);
    if (s->ssl) {
        handshake(s);
        return;
    }
    noted(s, IO_FAILED, &why);
    rstream_finish(s);
}

struct stream *rstream_accepted(struct real *r, int fd, struct tls *tls)
{
    struct rstream *s = rstream_new(r, NULL, NULL);
    socket_peer(fd, s->base.peer);
    if (!rstream_take_socket(s, fd)) {
        close(fd);
        source_end(&s->src);
        return NULL;
    }
    if (tls) {
        s->phase = PHASE_HANDSHAKE;
        s->tls = tls_keep(tls);
    } else {
        rstream_opened(s);
    }
    return &s->base;
}

/* A terminal is opened anew, because O_NONBLOCK would also hold for the shell that shares it. */
static int own_terminal(int fd)
{
    char name[64], path[64];
    if (!isatty(fd) || ptsname_r(fd, name, sizeof name) == 0)
        return fd;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int mine = open(path, (fcntl(fd, F_GETFL) & O_ACCMODE) | O_CLOEXEC | O_NOCTTY);
    if (mine == -1)
        return fd;
    close(fd);
    return mine;
}

struct stream *real_of_fd(struct os *os, int fd, const struct stream_events *events, void *arg)
{
    struct rstream *s = rstream_new(real_of(os), events, arg);
    struct stat st;
    fd = own_terminal(fd);
    int flags = fcntl(fd, F_GETFL);
    snprintf(s->base.peer, sizeof s->base.peer, "unix");
    if (flags == -1 || fstat(fd, &st) == -1 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) == -1) {
        err_errno(rstream_why(s), "use descriptor %d", fd);
        rstream_finish(s);
        return &s->base;
    }
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    s->is_socket = S_ISSOCK(st.st_mode);
    s->can_read = (flags & O_ACCMODE) != O_WRONLY;
    s->can_write = (flags & O_ACCMODE) != O_RDONLY;
    if (!source_poll(&s->src, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET)) {
        s->polled = false;      /* a regular file: always ready */
        s->src.fd = fd;
        s->readable = s->writable = true;
    }
    rstream_opened(s);
    return &s->base;
}

void real_write(struct stream *stream, const void *from, size_t n)
{
    struct rstream *s = (struct rstream *)stream;
    const char *at = from;
    if (s->closing || s->ending || s->shut || !s->can_write || !n)
        return;
    if (s->phase == PHASE_OPEN && s->out.len + n > STREAM_FULL) {   /* too much to gather */
        if (s->out.len)
            out_drop(s, write_some(s, s->out.at + s->out.head, s->out.len));
        size_t sent = s->out.len ? 0 : write_some(s, at, n);
        at += sent;
        n -= sent;
    }
    if (s->closing)
        return;
    out_put(s, at, n);
    s->was_full |= s->out.len >= STREAM_FULL;
    if (s->out.len && s->phase == PHASE_OPEN)
        make_dirty(s);
}

size_t real_waiting(const struct stream *s) { return ((const struct rstream *)s)->out.len; }
size_t real_waiting_all(const struct os *os) { return ((const struct real *)os)->out_bytes; }

void real_pause(struct stream *stream, bool paused)
{
    struct rstream *s = (struct rstream *)stream;
    s->paused = paused;
    if (paused || s->closing)
        return;
    s->again = s->in.len > 0 || s->showing;    /* what on_data will leave is not kept yet */
    if (s->again || s->readable)
        rstream_ready(s);
}

void real_end(struct stream *stream)
{
    struct rstream *s = (struct rstream *)stream;
    s->ending = true;
    if (!s->closing)
        make_dirty(s);
}

void real_shut(struct stream *stream)
{
    struct rstream *s = (struct rstream *)stream;
    s->shut = true;
    if (!s->closing)
        make_dirty(s);
}

void real_close(struct stream *s)
{
    if (!((struct rstream *)s)->closing)
        rstream_finish((struct rstream *)s);
}
