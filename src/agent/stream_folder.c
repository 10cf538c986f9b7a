/* stream_folder.c - files of a folder on this node that no running task shows: the outputs of an ended one, or a volume.
 *
 * The tree is walked by a thread of its own (tree.h blocks), which has one end of a socket pair; the loop has the other and
 * passes bytes on. So a slow user blocks that thread and nothing else, and a user who leaves breaks its pipe. */
#include "agent/streams_internal.h"
#include "agent/tree.h"
#include "base/id.h"
#include "model/prefix.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIPE_WAITING = 256 << 10, PIECE = 64 << 10 };

struct folder {          /* lives until the thread is done and the loop's end has closed */
    struct serve *serve; /* NULL: the stream has ended */
    struct stream *end;  /* NULL: closed */
    struct os *os;
    struct actor *actor;
    struct post work, done;
    /* the thread's, from the post to its answer */
    int fd;
    bool put;
    char base[512];
    char *path;        /* below the folder */
    const char *above; /* what the user's path had before that; NULL: nothing */
    bool ok;
    struct err err;
    bool answered;
};

static void fd_close(int fd)
{
    if (fd >= 0)
        close(fd);
}
AUTO_FN(int, fd_close)

/* --- the thread */

static bool sink_put(void *arg, const char *at, size_t n, struct err *err)
{
    const struct folder *f = arg;
    while (n) {
        ssize_t m = send(f->fd, at, n, MSG_NOSIGNAL);
        if (m < 0 && errno == EINTR)
            continue;
        if (m <= 0)
            return err_set(err, RC_UNAVAILABLE, "the reader has gone");
        at += m, n -= (size_t)m;
    }
    return true;
}

static bool receive_all(struct folder *f, int dir, struct err *err)
{
    AUTO(tree_receiver_free) struct tree_receiver *r = NULL;
    char piece[PIECE];
    if (!tree_receive(dir, f->path, -1, -1, &r, err))
        return false;
    for (;;) {
        ssize_t n = recv(f->fd, piece, sizeof piece, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set(err, RC_UNAVAILABLE, "the sender has gone");
        if (n == 0)
            return tree_receive_end(r, err);
        if (!tree_receive_feed(r, piece, (size_t)n, err))
            return false;
    }
}

/* The tree knows the path below its folder only; the user asked for the whole one. Always false. */
static bool name_whole(const struct folder *f, struct err *err)
{
    char below[sizeof err->text];
    if (!f->above || !*f->path || !text_starts(err->text, f->path))
        return false;
    snprintf(below, sizeof below, "%s", err->text);
    return err_set(err, err->rc, "%s%s", f->above, below);
}

static void on_work(void *arg, struct post *first)
{
    struct folder *f = arg;
    (void)first;
    if (f->put && mkdir(f->base, 0777) == 0
        && chmod(f->base, 0777) != 0) /* a volume that no task has used yet */
        rmdir(f->base);
    AUTO(fd_close) int dir = open(f->base, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        f->ok = err_set(&f->err, RC_NOT_FOUND, "there are no files of it on this node");
    else if (f->put)
        f->ok = receive_all(f, dir, &f->err);
    else
        f->ok = tree_send(dir, f->path, &(struct tree_sink){ sink_put, f }, &f->err)
                || name_whole(f, &f->err);
    close(f->fd);
    f->fd = -1;
    os_post(f->os, &f->done);
}

/* --- the loop */

static void settle(struct folder *f)
{
    if (!f->answered || f->end)
        return;
    actor_stop(f->actor); /* it has nothing left to do */
    struct serve *s = f->serve;
    if (s) {
        s->state = NULL;
        if (f->ok)
            serve_exit(s, 0);
        else
            serve_fail(s, f->err.text);
    }
    free(f->path);
    free(f);
}

static void on_done(void *arg, struct post *p)
{
    struct folder *f = arg;
    (void)p;
    f->answered = true;
    settle(f);
}

static size_t on_data(void *arg, const char *at, size_t n)
{
    struct folder *f = arg;
    if (!f->serve)
        return n;
    if (!serve_room(f->serve)) {
        stream_pause(f->end, true);
        return 0;
    }
    serve_send(f->serve, CHANNEL_OUT, at, n);
    return n;
}

static void on_drain(void *arg)
{
    struct folder *f = arg;
    if (f->serve)
        serve_wait(f->serve, false);
}

static void on_close(void *arg, const struct err *why)
{
    struct folder *f = arg;
    (void)why;
    f->end = NULL;
    settle(f);
}

/* Of an ended task only what it left in /outputs is there; of a volume everything. */
static bool find_folder(struct serve *s, struct folder *f, struct err *err)
{
    char id[ID_TEXT];
    const char *path = text_given(s->ask.path) ? s->ask.path : "/";
    if (s->ask.volume) {
        snprintf(f->base, sizeof f->base, "%s/volumes/%s", serve_data(s),
                 id_text(id, PREFIX_VOLUME, s->ask.volume));
        f->path = strdup(path);
        return f->path != NULL;
    }
    if (strncmp(path, "/outputs", 8) != 0 || (path[8] && path[8] != '/'))
        return err_field(err, "path", "the task has ended: only what is under /outputs was kept");
    if (f->put)
        return err_set(err, RC_CONFLICT, "the task has ended: nothing can be copied into it");
    snprintf(f->base, sizeof f->base, "%s/outputs/%s", serve_data(s),
             id_text(id, PREFIX_ATTEMPT, s->ask.attempt));
    f->above = "/outputs";
    f->path = strdup(path + 8);
    return f->path != NULL;
}

static bool start(struct serve *s, struct err *err)
{
    static const struct stream_events events
        = { .on_data = on_data, .on_drain = on_drain, .on_close = on_close };
    int pair[2];
    struct folder *f = calloc(1, sizeof *f);
    if (!f)
        abort();
    *f = (struct folder){
        .serve = s, .os = serve_os(s), .put = text_is(s->ask.what, "put"), .fd = -1
    };
    if (!find_folder(s, f, err)
        || (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0
            && !err_errno(err, "a pipe"))) {
        free(f->path);
        free(f);
        return false;
    }
    s->state = f;
    f->fd = pair[0];
    f->done = (struct post){ .fn = on_done, .arg = f };
    f->end = stream_of_fd(f->os, pair[1], &events, f);
    f->actor = actor_new(f->os, "files", on_work, f);
    actor_post(f->actor, &f->work);
    return true;
}

static void on_input(struct serve *s, const char *at, size_t n)
{
    struct folder *f = s->state;
    if (!f->put || !f->end)
        return;
    stream_write(f->end, at, n);
    if (stream_waiting(f->end) > PIPE_WAITING)
        serve_wait(s, true);
}

static void on_eof(struct serve *s)
{
    struct folder *f = s->state;
    if (f->put && f->end)
        stream_shut(f->end);
}

static void on_room(struct serve *s)
{
    struct folder *f = s->state;
    if (f->end)
        stream_pause(f->end, false);
}

static void stop(struct serve *s)
{
    struct folder *f = TAKE(s->state);
    if (!f)
        return;
    f->serve = NULL;
    if (f->end)
        stream_close(f->end);
}

const struct serve_ops serve_folder
    = { .start = start, .on_input = on_input, .on_eof = on_eof, .on_room = on_room, .stop = stop };
