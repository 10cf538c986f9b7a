/* real_dial.c - from an address to a connected stream: look up, try one address after the other,
 * hand over to TLS.
 *
 *
 * It has no timeout of its own: the code above knows how long it is willing to wait and closes
 * the stream. */
#include "os/real_stream.h"
#include "base/fault.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static void refused(struct rstream *s, const char *why)
{
    err_set(rstream_why(s), RC_UNAVAILABLE, "cannot reach %s: %s", s->dial->address, why);
}

static void try_next(struct rstream *s)
{
    struct dial *d = s->dial;
    s->phase = PHASE_CONNECTING;
    while (d->next < d->found.count) {
        const struct sockaddr *sa = (const struct sockaddr *)d->found.at[d->next].raw;
        socklen_t len = d->found.at[d->next++].len;
        int fd = socket(sa->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        bool up = fd != -1 && connect(fd, sa, len) == 0;
        s->writable = s->readable = s->hup = false;
        if (fd != -1 && (up || errno == EINPROGRESS) && rstream_take_socket(s, fd)) {
            s->writable = up;
            if (up)
                rstream_ready(s);   /* on_open never comes inside stream_dial */
            return;
        }
        refused(s, strerror(errno));
        if (fd != -1)
            close(fd);
    }
    rstream_finish(s);
}

void dial_progress(struct rstream *s)
{
    int why = 0;
    socklen_t len = sizeof why;
    if (s->closing || !(s->writable || s->hup))
        return;
    getsockopt(s->src.fd, SOL_SOCKET, SO_ERROR, &why, &len);
    if (why) {
        refused(s, strerror(why));
        close(s->src.fd);
        s->src.fd = -1;
        try_next(s);
        return;
    }
    free(TAKE(s->why));
    socket_peer(s->src.fd, s->base.peer);
    rstream_start(s, s->dial->tls, s->dial->server_name);
}

static void looked_up(void *arg, const struct sockets *found, const struct err *err)
{
    struct rstream *s = arg;
    lookup_cancel(TAKE(s->dial->lookup));
    if (s->closing)
        return;
    if (!found) {
        *rstream_why(s) = *err;
        rstream_finish(s);
        return;
    }
    s->dial->found = *found;
    try_next(s);
}

void dial_free(struct rstream *s)
{
    if (s->dial)
        lookup_cancel(s->dial->lookup);
    free(TAKE(s->dial));
}

struct stream *real_dial(struct os *os, const char *address, struct tls *tls, const char *name,
                         const struct stream_events *events, void *arg)
{
    struct rstream *s = rstream_new(real_of(os), events, arg);
    struct dial *d = s->dial = os_alloc(sizeof *d);
    s->dialled = true;
    d->tls = tls;
    snprintf(d->address, sizeof d->address, "%s", address ? address : "");
    struct err why;
    if (!address_parse(address, &d->to, &why)) {
        *rstream_why(s) = why;
        rstream_finish(s);
        return &s->base;
    }
    snprintf(d->server_name, sizeof d->server_name, "%s", name ? name : d->to.host);
    if (fault("stream.dial")) {
        refused(s, "a fault was asked for");
        rstream_finish(s);
    } else if (sockets_numeric(&d->to, &d->found)) {
        try_next(s);
    } else if (!(d->lookup = lookup_start(real_of(os), &d->to, looked_up, s))) {
        refused(s, "no thread to look it up");
        rstream_finish(s);
    }
    return &s->base;
}
