/* terminal.c - see terminal.h. Whatever mode a terminal is put in is taken back, also when a
 * signal ends us. */
#include "cli/terminal.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

enum { SECRET_MOST = 64 << 10, PIECE = 16 << 10 };

/* --- secrets */

static bool read_line(int fd, struct str *out, struct err *err)
{
    char ch;
    ssize_t n;
    while ((n = read(fd, &ch, 1)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(err, "cannot read from the terminal");
        if (ch == '\n')
            break;
        str_char(out, ch);
        if (out->len > SECRET_MOST)
            return err_set(err, RC_TOO_LARGE, "that is longer than %d bytes", SECRET_MOST);
    }
    if (out->len && out->at[out->len - 1] == '\r')
        out->at[--out->len] = 0;
    return true;
}

bool prompt_hidden(struct cli *c, const char *what, const char **out, struct err *err)
{
    AUTO(str_done) struct str line = { 0 };
    struct termios before, quiet;
    int fd = isatty(STDIN_FILENO) ? open("/dev/tty", O_RDWR | O_CLOEXEC) : -1;
    bool tty = fd != -1 && tcgetattr(fd, &before) == 0;
    if (tty) {
        quiet = before;
        quiet.c_lflag &= ~(tcflag_t)(ECHO | ECHOE | ECHOK);
        tcsetattr(fd, TCSAFLUSH, &quiet);
        dprintf(fd, "%s: ", what);
    }
    bool ok = read_line(tty ? fd : STDIN_FILENO, &line, err);
    if (tty) {
        tcsetattr(fd, TCSAFLUSH, &before);
        dprintf(fd, "\n");
    }
    if (fd != -1)
        close(fd);
    if (ok)
        *out = arena_bytes(c->mem, line.at ? line.at : "", line.len);
    return ok;
}

/* --- raw */

struct terminal { int fd; struct termios before; };

bool terminal_size(int64_t *rows, int64_t *cols)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == -1
        && ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == -1)
        return false;
    *rows = size.ws_row, *cols = size.ws_col;
    return size.ws_row > 0 && size.ws_col > 0;
}

struct terminal *terminal_raw(int fd)
{
    struct termios raw;
    struct terminal *t = calloc(1, sizeof *t);
    if (!t)
        abort();
    t->fd = fd;
    if (tcgetattr(fd, &t->before) == -1) {
        free(t);
        return NULL;
    }
    raw = t->before;
    cfmakeraw(&raw);
    tcsetattr(fd, TCSADRAIN, &raw);
    return t;
}

void terminal_restore(struct terminal *t)
{
    if (!t)
        return;
    tcsetattr(t->fd, TCSADRAIN, &t->before);
    free(t);
}

/* --- standard input */

struct input {
    struct cli *c;
    const struct input_events *events;
    void *arg;
    int fd, wake[2];                /* wake: a byte in it ends the thread */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool paused, stop, posted;      /* under the lock */
    struct post post;
    char piece[PIECE];
    ssize_t got;                    /* the loop's while posted, else the thread's */
};

static void on_post(void *arg, struct post *p)
{
    struct input *i = arg;
    (void)p;
    ssize_t got = i->got;
    if (got > 0)
        i->events->on_data(i->arg, i->piece, (size_t)got);
    else
        i->events->on_end(i->arg);
    pthread_mutex_lock(&i->lock);
    i->posted = false;
    pthread_cond_signal(&i->changed);
    pthread_mutex_unlock(&i->lock);
}

static bool may_read(struct input *i)
{
    pthread_mutex_lock(&i->lock);
    while (!i->stop && (i->paused || i->posted))
        pthread_cond_wait(&i->changed, &i->lock);
    bool on = !i->stop;
    pthread_mutex_unlock(&i->lock);
    return on;
}

static void *reader(void *arg)
{
    struct input *i = arg;
    bool end = false;
    while (!end && may_read(i)) {
        struct pollfd fds[]
            = { { .fd = i->fd, .events = POLLIN }, { .fd = i->wake[0], .events = POLLIN } };
        if (poll(fds, COUNT(fds), -1) == -1 && errno != EINTR)
            break;
        if (fds[1].revents)
            break;
        if (!fds[0].revents)
            continue;
        ssize_t n = read(i->fd, i->piece, sizeof i->piece);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        end = n <= 0;
        pthread_mutex_lock(&i->lock);
        i->got = n;
        i->posted = true;
        pthread_mutex_unlock(&i->lock);
        os_post(i->c->os, &i->post);
    }
    return NULL;
}

struct input *input_start(struct cli *c, int fd, const struct input_events *events, void *arg)
{
    struct input *i = calloc(1, sizeof *i);
    if (!i || pipe2(i->wake, O_CLOEXEC) == -1)
        abort();
    i->c = c, i->fd = fd, i->events = events, i->arg = arg;
    i->post = (struct post){ .fn = on_post, .arg = i };
    pthread_mutex_init(&i->lock, NULL);
    pthread_cond_init(&i->changed, NULL);
    if (pthread_create(&i->thread, NULL, reader, i) != 0)
        abort();
    return i;
}

void input_pause(struct input *i, bool paused)
{
    pthread_mutex_lock(&i->lock);
    i->paused = paused;
    pthread_cond_signal(&i->changed);
    pthread_mutex_unlock(&i->lock);
}

static void nothing(void *arg, const char *at, size_t n) { (void)arg, (void)at, (void)n; }
static void no_end(void *arg) { (void)arg; }

void input_stop(struct input *i)
{
    static const struct input_events deaf = { nothing, no_end };
    if (!i)
        return;
    pthread_mutex_lock(&i->lock);
    i->stop = true;
    pthread_cond_signal(&i->changed);
    pthread_mutex_unlock(&i->lock);
    (void)!write(i->wake[1], "", 1);
    pthread_join(i->thread, NULL);
    i->events = &deaf;
    /* a piece on its way still needs us */
    for (bool waiting = i->posted; waiting; waiting = i->posted)
        cli_sleep(i->c, 1);
    pthread_mutex_destroy(&i->lock);
    pthread_cond_destroy(&i->changed);
    close(i->wake[0]);
    close(i->wake[1]);
    free(i);
}
