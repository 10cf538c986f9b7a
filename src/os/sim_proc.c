/* sim_proc.c - processes on simulated machines: a program is a C function, a process has an os
 * of its own that dies with it. */
#include "base/fault.h"
#include "os/sim_internal.h"
#include <signal.h>
#include <stdlib.h>

struct program {
    struct link link;
    char *path;
    void (*start)(void *arg, struct os *os, struct sim_proc *self, const char *const *argv);
    void *arg;
};

struct sim_proc {
    struct link link;
    struct program *program;
    struct machine *m;          /* its own */
    struct link watchers;
    int pid, status;
    int64_t started;
    bool over;
    char **argv;
    void (*on_signal)(void *arg, int signal);
    void *arg;
    struct str printed;
};

struct sproc {                  /* what another process holds of it */
    struct proc base;
    struct link link;
    struct sim_proc *target;
    bool own_session;
    void (*on_exit)(void *arg, int wait_status);
    void (*on_gone)(void *arg);
    void *arg;
    struct event *news;
    bool telling;               /* freed when the callback returns */
};

void sim_program(struct sim *w, const char *path,
                 void (*start)(void *arg, struct os *os, struct sim_proc *self,
                               const char *const *argv),
                 void *arg)
{
    struct program *p = os_alloc(sizeof *p);
    p->path = strdup(path);
    p->start = start;
    p->arg = arg;
    link_add(&w->programs, &p->link);
}

static struct program *find_program(struct sim *w, const char *path)
{
    /* the one named last, so that a test can put another in its place */
    struct program *found = NULL;
    LINK_EACH (&w->programs, l)
        if (text_is(CONTAINER(l, struct program, link)->path, path))
            found = CONTAINER(l, struct program, link);
    return found;
}

static char **argv_copy(const char *const *argv)
{
    size_t n = 0;
    while (argv[n])
        n++;
    char **copy = os_alloc((n + 1) * sizeof *copy);
    for (size_t i = 0; i < n; i++)
        copy[i] = strdup(argv[i]);
    return copy;
}

static void process_start(void *arg)
{
    struct sim_proc *p = arg;
    if (!p->over)
        p->program->start(p->program->arg, &p->m->os, p, (const char *const *)p->argv);
}

static struct sim_proc *process_new(struct machine *by, const char *const *argv, struct err *err)
{
    struct sim *w = by->w;
    if (machine_failed(by, err))
        return NULL;
    if (fault("proc.spawn"))
        return err_set(err, RC_UNAVAILABLE, "cannot run %s: a fault was asked for", argv[0]), NULL;
    struct program *program = find_program(w, argv[0]);
    if (!program)
        return err_set(err, RC_NOT_FOUND, "cannot run %s: no such simulated program", argv[0]),
               NULL;
    struct sim_proc *p = os_alloc(sizeof *p);
    p->program = program;
    p->m = machine_new(by->host, w);
    p->m->process = p;
    p->pid = by->host->next_pid++;
    p->started = w->now;
    p->argv = argv_copy(argv);
    link_init(&p->watchers);
    link_add(&w->procs, &p->link);
    return p;
}

/* --- the end */
static void tell_watcher(void *arg)
{
    struct sproc *s = arg;
    s->news = NULL;
    s->telling = true;
    if (s->on_exit)
        s->on_exit(s->arg, s->own_session ? -1 : s->target->status);
    else
        s->on_gone(s->arg);
    sim_give(s);
}

void sim_proc_exit(struct sim_proc *p, int wait_status)
{
    struct sim *w = p->m->w;
    if (p->over)
        return;
    p->over = true;
    p->status = wait_status;
    machine_die(p->m, false);
    LINK_EACH (&p->watchers, l) {
        struct sproc *watcher = CONTAINER(l, struct sproc, link);
        struct machine *m = machine_of(watcher->base.os);
        link_cut(l);
        if (!m->dead && (watcher->on_exit || watcher->on_gone))
            watcher->news = sim_later(w, m, sim_between(w, 0, 1), tell_watcher, watcher);
    }
}

void procs_crash(struct sim *w, struct host *h)
{
    LINK_EACH (&w->procs, l) {
        struct sim_proc *p = CONTAINER(l, struct sim_proc, link);
        if (p->m->host == h)
            p->over = true;
    }
}

void procs_free(struct sim *w)
{
    LINK_EACH (&w->procs, l) {
        struct sim_proc *p = CONTAINER(l, struct sim_proc, link);
        for (char **arg = p->argv; *arg; arg++)
            free(*arg);
        free(p->argv);
        str_done(&p->printed);
        free(p);
    }
    LINK_EACH (&w->programs, l) {
        struct program *p = CONTAINER(l, struct program, link);
        free(p->path);
        free(p);
    }
}

void sim_proc_print(struct sim_proc *p, const char *text) { str_text(&p->printed, text); }
int sim_proc_pid(const struct sim_proc *p) { return p->pid; }
uint64_t sim_proc_start_time(const struct sim_proc *p) { return (uint64_t)p->started; }

void sim_proc_on_signal(struct sim_proc *p, void (*fn)(void *arg, int signal), void *arg)
{
    p->on_signal = fn;
    p->arg = arg;
}

struct signal_sent { struct sim_proc *to; int signal; };

static bool is_harmless(int signal)
{
    return signal == 0 || signal == SIGCHLD || signal == SIGWINCH || signal == SIGURG
           || signal == SIGCONT;
}

static void signal_arrives(void *arg)
{
    struct signal_sent s = *(struct signal_sent *)arg;
    sim_give(arg);
    if (s.to->over)
        return;
    if (s.signal == SIGKILL || (!s.to->on_signal && !is_harmless(s.signal)))
        sim_proc_exit(s.to, s.signal);
    if (s.to->on_signal)
        s.to->on_signal(s.to->arg, s.signal);
}

/* --- what os.h asks for */
static struct sproc *watcher_new(struct machine *m, struct sim_proc *p, void *arg)
{
    struct sproc *s = sim_take(m, sizeof *s);
    s->base = (struct proc){ .os = &m->os, .pid = p->pid, .start_time = (uint64_t)p->started };
    s->target = p;
    s->arg = arg;
    link_add(&p->watchers, &s->link);
    return s;
}

bool sim_spawn(struct os *os, const struct proc_spec *spec, void (*on_exit)(void *arg, int st),
               void *arg, struct proc **out, struct err *err)
{
    struct machine *m = machine_of(os);
    if (!spec->argv || !spec->argv[0] || spec->argv[0][0] != '/')
        return err_set(err, RC_BAD_INPUT, "a program is named by its absolute path");
    struct sim_proc *p = process_new(m, spec->argv, err);
    if (!p)
        return false;
    sim_later(m->w, p->m, sim_between(m->w, 0, 2), process_start, p);
    struct sproc *s = watcher_new(m, p, arg);
    s->on_exit = on_exit;
    s->own_session = spec->own_session;
    if (out)
        *out = &s->base;
    return true;
}

bool sim_proc_watch(struct os *os, int pid, uint64_t start_time, void (*on_gone)(void *arg),
                    void *arg, struct proc **out)
{
    struct machine *m = machine_of(os);
    if (m->dead)
        return false;
    LINK_EACH (&m->w->procs, l) {
        struct sim_proc *p = CONTAINER(l, struct sim_proc, link);
        if (p->m->host != m->host || p->pid != pid || p->over || (uint64_t)p->started != start_time)
            continue;
        struct sproc *s = watcher_new(m, p, arg);
        s->on_gone = on_gone;
        *out = &s->base;
        return true;
    }
    return false;
}

void sim_proc_kill(struct proc *proc, int signal)
{
    struct sproc *s = (struct sproc *)proc;
    struct machine *m = machine_of(proc->os);
    if (m->dead || s->target->over)
        return;
    struct signal_sent *sent = sim_take(m, sizeof *sent);
    *sent = (struct signal_sent){ s->target, signal };
    struct machine *owner = signal == SIGKILL ? NULL : s->target->m;    /* that one reaches who stands still */
    sim_later(m->w, owner, sim_between(m->w, 0, 1), signal_arrives, sent);
}

void sim_proc_forget(struct proc *proc)
{
    struct sproc *s = (struct sproc *)proc;
    struct machine *m = machine_of(proc->os);
    if (m->dead || s->telling)
        return;
    link_cut(&s->link);
    event_cancel(m->w, s->news);
    sim_give(s);
}

bool sim_proc_run(struct os *os, const char *const *argv, size_t limit,
                  const struct proc_guard *guard, struct arena *mem, char **output,
                  int *wait_status, struct err *err)
{
    (void)guard;        /* it ends at once, or not at all */
    struct sim_proc *p = process_new(machine_of(os), argv, err);
    if (!p)
        return false;
    process_start(p);
    if (!p->over) {
        sim_proc_exit(p, SIGKILL);
        return err_set(err, RC_INTERNAL, "the simulated %s did not end at once", argv[0]);
    }
    if (p->printed.len > limit)
        return err_set(err, RC_TOO_LARGE, "%s printed more than %zu bytes", argv[0], limit);
    if (p->status && !wait_status)
        return err_set(err, RC_INTERNAL, "%s: it did not say why", argv[0]);
    if (wait_status)
        *wait_status = p->status;
    if (output)
        *output = arena_bytes(mem, p->printed.at ? p->printed.at : "", p->printed.len);
    return true;
}
