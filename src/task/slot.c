/* slot.c - a supervisor that waits, with its namespaces, scratch and root made, for an attempt to run, and then for the next.
 *
 * Standard input is a socket of the agent's: it writes the folder of an attempt and a newline, we answer "r" whenever we are
 * ready for one. Its end means that the agent is gone: nobody will ask any more, so we leave, after the task that runs. From its lock
 * to its last status an attempt is run as by a supervisor of its own (run.c), and only one of the same range of ids and
 * scratch. Where anything of a task cannot be done away with we leave: the kernel does away with all of it. */
#include "task/task.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

enum { AGENT, MOUNTS, SIGNALS, POLLS };
enum { CALM_MS = 3000, PATH_BYTES = 4200 };

struct slot {
    struct plan plan;   /* of no attempt: what all that are run here have in common */
    struct arena *mem;
    struct place place;
    struct task self;   /* its pid, its control groups */
    int agent, signals, lock;
    int fabric;         /* all that are run here have it in common, whichever network they get */
    char *title;        /* of the process list */
    size_t title_room;
    char line[PATH_BYTES];
    size_t have;
    char last[PATH_BYTES]; /* the status of the last task: by the next one the agent has written down what it was told */
};

static void set_title(struct slot *s, const char *text)
{
    memset(s->title, 0, s->title_room);
    snprintf(s->title, s->title_room + 1, "%s", text);
}

/* Standard input and output are nobody's from now on: our children must not speak for us. */
static bool take_socket(struct slot *s, struct err *err)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    s->agent = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    bool ok = null != -1 && s->agent != -1 && dup2(null, STDIN_FILENO) != -1 && dup2(null, STDOUT_FILENO) != -1;
    fd_close(null);
    return ok || err_errno(err, "cannot take the agent's socket");
}

/* SIGTERM would be lost on the first process of a pid namespace, if it were not asked for. */
static bool block_signals(struct slot *s, struct err *err)
{
    sigset_t all, term;
    sigemptyset(&all);
    sigemptyset(&term);
    sigaddset(&all, SIGCHLD);
    sigaddset(&all, SIGTERM);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_BLOCK, &all, NULL);
    s->signals = signalfd(-1, &term, SFD_CLOEXEC | SFD_NONBLOCK);
    return s->signals != -1 || err_errno(err, "cannot watch signals");
}

/* The lock says that the folder is in use: whoever tidies up behind a dead agent leaves it alone. */
static bool open_slot(struct slot *s, const char *folder, struct err *err)
{
    const char *path = path_in(s->mem, folder, "plan.json");
    s->lock = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (s->lock == -1 || flock(s->lock, LOCK_EX | LOCK_NB) == -1)
        return err_errno(err, "somebody has %s", folder);
    return small_parse(path, &plan_fields, s->mem, &s->plan, err) && cgroups_find(&s->self.cgroups, err)
           && own_pids(&s->self, err) && take_socket(s, err) && block_signals(s, err);
}

static bool make_place(struct slot *s, struct err *err)
{
    return place_open(&s->place, &s->plan, &s->self.cgroups, err)
           && (s->plan.root != ROOT_HOST || place_settle(&s->place, &s->plan, err));
}

static bool belongs_here(const struct slot *s, const struct plan *p)
{
    return text_is(p->run, s->plan.run) && text_is(p->runtime, s->plan.runtime) && p->uid_base == s->plan.uid_base
           && p->scratch == s->plan.scratch && p->scratch_mib == s->plan.scratch_mib && !p->secrets.count;
}

/* False: we cannot go on. That an attempt is not ours to run is no reason. */
static bool run_one(struct slot *s, const char *folder, struct err *err)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct task t = { .place = &s->place, .mem = mem, .cgroups = s->self.cgroups, .left = s->self.left, .status = s->self.status,
                      .lock = -1, .file = -1, .fabric = s->fabric, .agent = s->agent, .out = { -1, -1 }, .err = { -1, -1 } };
    struct err why = { 0 };
    if (place_is_stale(&s->place) && !make_place(s, err))
        return false;
    set_title(s, folder);
    bool ok = task_open(&t, folder, &why)
              && (belongs_here(s, &t.plan) || err_set(&why, RC_CONFLICT, "%s is no task for %s", folder, s->plan.run))
              && task_begin(&t, &why);
    if (ok) {
        snprintf(s->last, sizeof s->last, "%s", t.plan.status);
        task_run(&t);
    } else {
        fprintf(stderr, "arcus-task: %s\n", why.text);
    }
    s->self.left = true; /* of the agent's control groups */
    fd_close(t.lock);
    set_title(s, "waits");
    if (!ok)
        return true;
    int pid;
    if (!end_helpers() || cgroup_pids(&t.cgroups, t.plan.cgroup, &pid, 1) != 0)
        return err_set(err, RC_INTERNAL, "something of %s is stuck in the kernel", folder);
    return place_reset(&s->place, &t.plan, err);
}

/* False: the agent is gone, or speaks nonsense. */
static bool take_lines(struct slot *s, struct err *err)
{
    ssize_t n = read(s->agent, s->line + s->have, sizeof s->line - 1 - s->have);
    if (n == -1 && (errno == EINTR || errno == EAGAIN))
        return true;
    if (n <= 0)
        return false;
    s->have += (size_t)n;
    s->line[s->have] = 0;
    char *end = strchr(s->line, '\n');
    if (!end)
        return s->have < sizeof s->line - 1;
    *end = 0;
    s->have = 0; /* the agent sends the next one only after we were ready again */
    return run_one(s, s->line, err) && send(s->agent, "r", 1, MSG_NOSIGNAL) == 1;
}

static void wait_for_tasks(struct slot *s, struct err *err)
{
    bool stale = false;
    for (;;) {
        struct pollfd fds[POLLS] = { [AGENT] = { s->agent, POLLIN, 0 }, [MOUNTS] = { s->place.host_mounts, POLLPRI, 0 },
                                     [SIGNALS] = { s->signals, POLLIN, 0 } };
        int n = poll(fds, POLLS, stale ? CALM_MS : -1);
        if (n == -1 && errno != EINTR)
            return;
        if (fds[SIGNALS].revents)
            return;
        stale = stale || fds[MOUNTS].revents;
        if (stale && (n == 0 || fds[AGENT].revents)) {
            stale = false;
            if (!make_place(s, err))
                return;
        }
        if (fds[AGENT].revents && !take_lines(s, err))
            return;
    }
}

/* The folder is on the node; what lay over it goes with us. */
static void remove_folder(struct slot *s)
{
    char path[PATH_BYTES];
    if (s->place.open && (chdir("/") == -1 || umount2(s->plan.run, MNT_DETACH) == -1))
        return;
    snprintf(path, sizeof path, "%s/plan.json", s->plan.run);
    unlink(path);
    rmdir(s->plan.run);
}

int slot_run(const char *folder, char *title)
{
    static struct mark marks[MARKS_MOST];
    struct slot s = { .mem = arena_new(), .agent = -1, .lock = -1, .fabric = -1, .place = { .marks = marks }, .title = title, .title_room = strlen(title) };
    struct err err = { 0 };
    if (!open_slot(&s, folder, &err))
        return fprintf(stderr, "arcus-task: %s\n", err.text), 1;
    task_self(&s.self);
    s.fabric = fabric_open(&s.plan);
    set_title(&s, "waits");
    if (make_place(&s, &err) && send(s.agent, "r", 1, MSG_NOSIGNAL) == 1)
        wait_for_tasks(&s, &err);
    if (err.rc)
        fprintf(stderr, "arcus-task: %s\n", err.text);
    struct err lost = { 0 };
    if (s.last[0] && !status_sync(s.last, &lost))
        fprintf(stderr, "arcus-task: %s\n", lost.text);
    remove_folder(&s);
    return err.rc != 0;
}
