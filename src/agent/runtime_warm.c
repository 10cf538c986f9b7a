/* runtime_warm.c - suspend helpers that wait: one that has loaded the driver and begun with it takes a wish at once, so the tenth of a second that this takes is not
 * the task's. There is none before the first wish; after each the next one is made ready, and goes when nobody has needed it for a while.
 *
 * Each does one thing and ends. A wish is one line on its standard input; whoever closes that without one ends it, as our own death does. */
#include "agent/runtime_internal.h"
#include "base/log.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { KEEP_MS = 5 * 60 * 1000 };

struct warm {
    struct runtime *r;
    struct proc *proc;
    int in;                     /* -1: it has its wish */
    struct timer *idle;
    void (*over)(void *arg);
    void *arg;
};

static void warm_drop(struct warm *w)
{
    if (w->in != -1)
        close(w->in);
    timer_cancel(w->idle);
    proc_forget(w->proc);
    free(w);
}

static void on_exit_of(void *arg, int status)
{
    struct warm *w = arg;
    void (*over)(void *) = w->over;
    void *whose = w->arg;
    (void)status;
    w->proc = NULL; /* freed when we return */
    if (w->r->warm == w)
        w->r->warm = NULL;
    warm_drop(w);
    if (over)
        over(whose);
}

static void on_idle(void *arg)
{
    struct warm *w = arg;
    w->idle = NULL;
    if (w->r->warm == w)
        w->r->warm = NULL;
    warm_drop(w);
}

static struct warm *start(struct runtime *r, struct err *err)
{
    const char *argv[12] = { r->config.self, "suspend-helper", "--wait", "yes" };
    const struct { const char *flag, *value; } more[]
        = { { "--libcuda", r->config.libcuda }, { "--nvml", r->config.nvml }, { "--uvm", r->config.uvm } };
    size_t n = 4;
    int pipe[2];
    for (size_t i = 0; i < COUNT(more); i++)
        if (text_given(more[i].value))
            argv[n++] = more[i].flag, argv[n++] = more[i].value;
    if (pipe2(pipe, O_CLOEXEC) == -1)
        return err_errno(err, "no pipe for a suspend helper"), NULL;
    struct warm *w = calloc(1, sizeof *w);
    if (!w)
        abort();
    *w = (struct warm){ .r = r, .in = pipe[1] };
    struct proc_spec spec = { .argv = argv, .dir = "/", .in = pipe[0], .out = -1, .err = STDERR_FILENO, .own_session = true };
    bool ok = proc_spawn(r->os, &spec, on_exit_of, w, &w->proc, err);
    close(pipe[0]);
    if (!ok)
        warm_drop(w);
    return ok ? w : NULL;
}

void warm_ready(struct runtime *r)
{
    struct err err = { 0 };
    if (r->warm)
        return;
    r->warm = start(r, &err);
    if (r->warm)
        r->warm->idle = timer_start(r->os, KEEP_MS, on_idle, r->warm);
    else
        log_line(LOG_WARN, "agent", "%s", err.text);
}

/* One that has died meanwhile does not take it. */
static bool hand(struct warm *w, const char *line)
{
    size_t n = strlen(line);
    bool ok = write(w->in, line, n) == (ssize_t)n; /* of a few hundred bytes, so at once or not at all; SIGPIPE is ignored */
    close(w->in);
    w->in = -1;
    timer_cancel(TAKE(w->idle));
    return ok;
}

struct warm *warm_take(struct runtime *r, const char *line, void (*over)(void *arg), void *arg, struct err *err)
{
    struct warm *w = TAKE(r->warm);
    if (w && !hand(w, line)) {
        warm_drop(w);
        w = NULL;
    }
    if (!w && (!(w = start(r, err)) || !hand(w, line))) {
        if (w)
            warm_drop(w), err_set(err, RC_UNAVAILABLE, "it takes no wish");
        return NULL;
    }
    w->over = over;
    w->arg = arg;
    return w;
}

void warm_forget(struct warm *w)
{
    if (w)
        warm_drop(w);
}
