/* run.c - the life of one task: made, run, told to end, ended.
 *
 * One poll loop. It sleeps until something happens: output, a child's end, a stop request, a
 * connection, or the next of its deadlines (maximum duration, run-until time, end of grace). The
 * first cause of an end is the one that is told. */
#include "task/task.h"
#include "base/fault.h"
#include "agent/tree.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

/* PIECE: small against a log's segment, so that segments are filled. */
enum {
    PIECE = 16 * 1024,
    ALONE_CHECK_MS = 50,
    DRAIN_MS = 2000,
    HELPERS_MS = 5000,
    HELPERS_PAUSE_US = 1000,
    SESSIONS_MAX = 256,
    SESSION_TRIES = 100,
    SESSION_PAUSE_US = 2000,
    COUNT_MS = 1000,
    TELL_MS = 100,
    PREPARING_TELL_MS = 1000,
    COUNT_SHARE = 20 /* of the time, at most, goes into counting */
};
enum slot { SLOT_SIGNAL, SLOT_OUT, SLOT_ERR, SLOT_LISTEN, SLOT_AGENT, SLOT_COUNT };

struct life {
    struct task *t;
    struct log_writer *log;
    struct pollfd fds[SLOT_COUNT];
    int runtime;     /* pid of the OCI runtime while it makes the container */
    bool made;       /* the runtime has left */
    bool ready;      /* all that the node has to do before the container was done */
    bool unmade;     /* the runtime was killed, or left without a word: nothing that was asked for */
    int wait_status; /* of the container */
    int as;          /* enum outcome asked for: why we end it; OUTCOME_NONE: nobody asked */
    int64_t kill_at; /* boot clock; 0: the grace period has not begun */
    bool killed;
    int64_t began; /* boot clock */
    int64_t contact; /* boot clock: of the server with the agent, as far as we have looked; it only ever moves on */
    int64_t tell_at; /* boot clock: the agent is told how far it is, unless it has ended by then; 0: it was */
    const char *stop_path;
    const char *why; /* a sentence of the agent's for that; NULL: it has none */
    pid_t sessions[SESSIONS_MAX];
    pid_t counter;    /* counts what is in /outputs; 0: nobody does at the moment */
    int64_t count_at; /* boot clock: when it began, or is to begin again */
    int too_much;     /* what it found: DISK_FINE, or why the task is ended */
    char buffer[PIECE];
};

static bool read_lease(const struct plan *p, int64_t *contact)
{
    char text[32];
    AUTO(fd_close) int fd = open(p->lease, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd == -1 ? -1 : read(fd, text, sizeof text - 1);
    if (n <= 0)
        return false;
    text[n] = 0;
    *contact = strtoll(text, NULL, 10);
    return true;
}

static void kill_it(struct life *l)
{
    l->killed = true;
    kill(l->t->container, SIGKILL);
    container_thaw(l->t); /* on v1 what stands still does not even die */
}

/* Asks the container to end; a second, shorter wish counts, a later one does not. A suspended one has no grace: its GPUs may be another's by
 * now, and it may still open them, so nothing of it may run again. */
static void end_it(struct life *l, enum outcome as, int64_t grace_s)
{
    int64_t at = boot_ms() + grace_s * 1000;
    if (l->as == OUTCOME_NONE)
        l->as = (int)as;
    if (l->t->container > 0 && !l->killed && container_frozen(l->t)) {
        l->kill_at = boot_ms();
        container_signal_all(l->t, SIGKILL);
        kill_it(l);
        return;
    }
    if (l->kill_at && at >= l->kill_at)
        return;
    bool first = l->kill_at == 0;
    l->kill_at = at;
    if (first && l->t->container > 0)
        container_signal_all(l->t, SIGTERM);
}

static void on_stop_file(struct life *l)
{
    struct plan_stop stop = { .as = OUTCOME_CANCELLED };
    struct err err = { 0 };
    if (access(l->stop_path, F_OK) == 0
        && (small_parse(l->stop_path, &plan_stop_fields, l->t->mem, &stop, &err) || err.rc)) {
        l->why = l->as == OUTCOME_NONE ? stop.why : l->why; /* the first reason is the one that is told */
        end_it(l, (enum outcome)stop.as, stop.grace_s);
    }
}

/* /outputs lies on the node's own disk, which is everybody's: it may hold as much as the task's scratch and is looked at now and
 * then. A child counts, since a tenant decides how long that takes. */
enum { DISK_FINE, DISK_OUTPUTS, DISK_SHORT };

/* The less the node has left, the less one task may hold of it: its disk is promised more than once. */
static int look_at_disk(const struct plan *p)
{
    static const struct {
        int64_t left_mib, share;
    } steps[] = { { 1024, 10 }, { 256, 100 } };
    const struct plan_mount *outputs = p->mounts.at;
    struct statvfs node, own;
    int64_t most = p->scratch_mib << 20, mine = tree_bytes(outputs->source, most + 1);
    if (mine > most)
        return DISK_OUTPUTS;
    if (statvfs(p->folder, &node) == -1 || statvfs("scratch", &own) == -1)
        return DISK_FINE;
    if (p->scratch == SCRATCH_LOOP)
        mine += (int64_t)((own.f_blocks - own.f_bfree) * own.f_frsize);
    int64_t left = (int64_t)(node.f_bavail * node.f_frsize),
            all = (int64_t)(node.f_blocks * node.f_frsize);
    for (size_t i = 0; i < COUNT(steps); i++)
        if (left < steps[i].left_mib << 20 && mine > all / steps[i].share)
            return DISK_SHORT;
    return DISK_FINE;
}

static void count_outputs(struct life *l, int64_t now, int64_t *next)
{
    const struct plan *p = &l->t->plan;
    if (l->counter || l->as != OUTCOME_NONE || l->t->container <= 0 || !p->mounts.count)
        return;
    if (now < l->count_at) {
        *next = MIN(*next, l->count_at);
        return;
    }
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(look_at_disk(p));
    }
    l->counter = MAX(pid, 0);
    l->count_at = pid > 0 ? now : now + COUNT_MS;
}

static void on_counted(struct life *l, int status)
{
    int64_t now = boot_ms(), took = now - l->count_at;
    l->counter = 0;
    l->count_at = now + MAX((int64_t)COUNT_MS, took * COUNT_SHARE);
    if (!WIFEXITED(status) || WEXITSTATUS(status) == DISK_FINE || l->as != OUTCOME_NONE)
        return;
    l->too_much = WEXITSTATUS(status);
    end_it(l, l->t->plan.disk ? OUTCOME_OUT_OF_DISK : OUTCOME_SIGNALED, 0);
}

/* Milliseconds until the nearest deadline, having acted on those that have passed; -1: none. */
static int check_deadlines(struct life *l)
{
    const struct plan *p = &l->t->plan;
    int64_t now = boot_ms(), next = INT64_MAX;
    if (p->max_duration_s > 0 && l->t->status.started_ms && l->as == OUTCOME_NONE) {
        int64_t at = l->began + p->max_duration_s * 1000;
        if (now >= at)
            end_it(l, OUTCOME_DEADLINE, p->grace_s);
        else
            next = MIN(next, at);
    }
    if (p->run_for_s > 0 && l->as != OUTCOME_NODE_LOST) {
        if (now >= l->contact + p->run_for_s * 1000 && !read_lease(p, &l->contact))
            l->contact = l->began;
        int64_t at = l->contact + p->run_for_s * 1000;
        if (now >= at) /* no grace: the server may start it elsewhere a margin after this moment */
            end_it(l, OUTCOME_NODE_LOST, 0);
        else
            next = MIN(next, at);
    }
    count_outputs(l, now, &next);
    next = l->tell_at ? MIN(next, l->tell_at) : next;
    if (l->kill_at && l->runtime) {
        if (now >= l->kill_at)
            kill(l->runtime, SIGKILL);
        else
            next = MIN(next, l->kill_at);
    }
    if (l->kill_at && l->t->container > 0 && !l->killed) {
        /* The first process of a pid namespace never gets a signal it does not handle; as soon
         * as it is the last of those that were told, SIGTERM has had all the effect that it can
         * have. What a shell's loop starts meanwhile has no claim to the grace. */
        bool in_vain = !container_takes(l->t, SIGTERM) && container_alone(l->t);
        if (now >= l->kill_at || in_vain) {
            kill_it(l); /* it may have been frozen meanwhile */
        } else {
            next = MIN(next, MIN(l->kill_at, now + ALONE_CHECK_MS));
        }
    }
    return next == INT64_MAX ? -1 : (int)MIN(MAX(next - now + 1, (int64_t)0), (int64_t)3600 * 1000);
}

static bool drain(struct life *l, enum slot slot, char stream)
{
    ssize_t n = read(l->fds[slot].fd, l->buffer, sizeof l->buffer);
    if (n > 0)
        return log_writer_add(l->log, stream, l->buffer, (size_t)n), true;
    if (n == -1 && (errno == EINTR || errno == EAGAIN))
        return false;
    close(l->fds[slot].fd);
    l->fds[slot].fd = -1;
    return false;
}

static bool on_made(struct life *l, int wait_status, struct err *err)
{
    struct task *t = l->t;
    l->runtime = 0;
    l->made = true;
    if (wait_status != 0) {
        l->unmade = !container_why(t, path_in(t->mem, t->plan.run, "runtime.log"), err)
                    || WIFSIGNALED(wait_status);
        return false;
    }
    on_stop_file(l); /* an agent that was told nothing yet does not know whom to wake */
    if (!container_start(t, err)) /* it says that all went well, though one of its own was killed */
        return l->unmade = true, false;
    l->began = boot_ms();
    l->count_at = l->began + COUNT_MS;
    t->status.started_ms = wall_ms();
    t->status.phase = PHASE_RUNNING;
    struct slice filter;
    if (t->plan.filter
        && small_read(arena_printf(t->mem, "%s/%s/seccomp.bpf", t->plan.runtime_root, t->plan.id),
                      PLAN_BYTES, t->mem, &filter, err)
        && !small_replace(t->plan.filter, filter, 0600, err))
        return false;
    *err = (struct err){ 0 }; /* another runtime leaves no filter: it is only there to save time */
    if (l->kill_at)           /* it was told to end before it was there */
        container_signal_all(t, SIGTERM);
    l->tell_at = l->began + TELL_MS;
    return true;
}

/* A task that ends at once tells its start with its end: each word costs the agent, the server and both their disks as much as the next. */
static bool tell_progress(struct life *l, struct err *err)
{
    if (!l->tell_at || boot_ms() < l->tell_at)
        return true;
    l->tell_at = 0;
    if (l->t->status.phase == PHASE_RUNNING)
        return status_write(l->t, err);
    status_tell(l->t);
    return true;
}

/* Everything that ended: the runtime, the container, a session, or an orphan that came to us. */
static bool on_children(struct life *l, struct err *err)
{
    struct signalfd_siginfo info;
    while (read(l->fds[SLOT_SIGNAL].fd, &info, sizeof info) == sizeof info)
        if (info.ssi_signo == SIGTERM) /* the node goes down: an operator or init wants us gone */
            end_it(l, OUTCOME_NODE_FAULT, l->t->plan.grace_s);
        else if (info.ssi_signo == PLAN_WAKE)
            on_stop_file(l);
    int status;
    /* The runtime first: the container's pid is known only once it has been seen to leave. */
    if (l->runtime && waitpid(l->runtime, &status, WNOHANG) == l->runtime
        && !on_made(l, status, err))
        return false;
    while (!l->runtime) {
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid <= 0)
            break;
        if (pid == l->t->container) {
            l->wait_status = status;
            l->t->container = -1;
        }
        if (pid == l->counter)
            on_counted(l, status);
        for (int i = 0; i < SESSIONS_MAX; i++)
            if (l->sessions[i] == pid)
                l->sessions[i] = 0;
    }
    return true;
}

static void on_connection(struct life *l)
{
    int fd = accept4(l->fds[SLOT_LISTEN].fd, NULL, NULL, SOCK_CLOEXEC), at = 0;
    while (at < SESSIONS_MAX && l->sessions[at])
        at++;
    if (at == SESSIONS_MAX)
        session_refuse(fd, "the task has as many sessions open as it may (terminals, ports, copies)");
    pid_t pid = fd != -1 && at < SESSIONS_MAX && l->t->container > 0 ? fork() : -1;
    if (pid == 0)
        session_serve(l->t, fd);
    if (pid > 0)
        l->sessions[at] = pid;
    fd_close(fd);
}

/* Those that wait for a process of the container see its end by themselves and are given a
 * moment to tell it. */
static void end_sessions(struct life *l)
{
    for (int tries = 0, left = 1; left; tries++) {
        left = 0;
        for (int i = 0; i < SESSIONS_MAX; i++) {
            pid_t pid = l->sessions[i];
            if (!pid)
                continue;
            if (tries == 0 || tries == SESSION_TRIES)
                kill(pid, tries ? SIGKILL : SIGTERM);
            if (waitpid(pid, NULL, tries > SESSION_TRIES ? 0 : WNOHANG) != 0)
                l->sessions[i] = 0;
            else
                left++;
        }
        if (left)
            usleep(SESSION_PAUSE_US);
    }
}

static void on_agent_gone(struct life *l)
{
    struct err err = { 0 };
    l->fds[SLOT_AGENT].fd = l->t->agent = -1;
    if (!status_sync(l->t->plan.status, &err))
        fprintf(stderr, "arcus-task: %s\n", err.text); /* its end waits for the disk in any case */
}

static bool loop(struct life *l, struct err *err)
{
    while (!l->made || l->t->container > 0) {
        int wait = check_deadlines(l);
        if (poll(l->fds, SLOT_COUNT, wait) == -1 && errno != EINTR)
            return l->unmade = true, err_errno(err, "poll");
        if (l->fds[SLOT_OUT].revents)
            drain(l, SLOT_OUT, 'o');
        if (l->fds[SLOT_ERR].revents)
            drain(l, SLOT_ERR, 'e');
        if (l->fds[SLOT_LISTEN].revents)
            on_connection(l);
        if (l->fds[SLOT_AGENT].revents)
            on_agent_gone(l);
        if ((l->fds[SLOT_SIGNAL].revents && !on_children(l, err)) || !tell_progress(l, err))
            return false;
    }
    return true;
}

/* The container is gone; what it wrote may still be in the pipes. */
static void drain_rest(struct life *l)
{
    int64_t until = boot_ms() + DRAIN_MS;
    struct pollfd *fds = &l->fds[SLOT_OUT];
    while ((fds[0].fd != -1 || fds[1].fd != -1) && boot_ms() < until) {
        if (poll(fds, 2, (int)(until - boot_ms())) <= 0)
            break;
        if (fds[0].revents)
            drain(l, SLOT_OUT, 'o');
        if (fds[1].revents)
            drain(l, SLOT_ERR, 'e');
    }
}

static void tell_end(struct life *l, int64_t oom_kills, const struct err *failed)
{
    struct task_status *s = &l->t->status;
    char *detail = ARENA_ARRAY(l->t->mem, char, sizeof failed->text + 32);
    size_t room = sizeof failed->text + 32;
    s->detail = detail;
    if (failed->rc) {
        bool theirs = failed->rc == RC_BAD_INPUT || failed->rc == RC_OVER_QUOTA
                      || (l->ready && !s->started_ms && !(l->unmade && oom_kills == 0));
        s->outcome = l->as ? l->as : theirs ? OUTCOME_START_FAILED : OUTCOME_NODE_FAULT;
        snprintf(detail, room, "%s", failed->text);
        return;
    }
    s->exit_code = WIFEXITED(l->wait_status) ? WEXITSTATUS(l->wait_status) : 0;
    s->signal = WIFSIGNALED(l->wait_status) ? WTERMSIG(l->wait_status) : 0;
    bool good = s->exit_code == 0 && s->signal == 0;
    if (l->as != OUTCOME_NONE) {
        s->outcome = l->as;
        if (text_given(l->why))
            snprintf(detail, room, "%s", l->why);
        else if (l->too_much == DISK_OUTPUTS)
            snprintf(detail, room, "it kept more than %lld MiB in /outputs; ask for more disk",
                     (long long)l->t->plan.scratch_mib);
        else if (l->too_much)
            snprintf(detail, room, "the node's disk is full, and it holds a large part of it");
        else
            snprintf(detail, room, "%s",
                     l->as == OUTCOME_DEADLINE ? "its maximum duration passed"
                     : l->as == OUTCOME_NODE_LOST
                         ? "the server was not heard for longer than it may run alone"
                         : "");
    } else if (oom_kills > 0 && !good) {
        s->outcome = OUTCOME_OUT_OF_MEMORY;
        snprintf(detail, room, "it used more than its %lld MiB of memory",
                 (long long)l->t->plan.mem_mib);
    } else if (s->signal) {
        s->outcome = OUTCOME_SIGNALED;
        snprintf(detail, room, "signal %d (%s)", (int)s->signal, strsignal((int)s->signal));
    } else {
        s->outcome = good ? OUTCOME_SUCCEEDED : OUTCOME_EXITED;
        snprintf(detail, room, "%s%.0lld", good ? "" : "exit code ", (long long)s->exit_code);
    }
}

static bool prepare(struct life *l, struct err *err)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, PLAN_WAKE);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int signals = broken("task.watch") ? -1 : signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals == -1)
        return err_errno(err, "cannot watch the task");
    l->stop_path = path_in(l->t->mem, l->t->plan.folder, "stop");
    l->fds[SLOT_SIGNAL].fd = signals;
    on_stop_file(l); /* it may have come before we listened */
    l->log = log_writer_new(l->t->plan.logs, l->t->plan.log_mib, l->t->mem);
    return true;
}

/* Runs beside the mounts: the kernel takes some ten milliseconds for the first move of a while,
 * then the runtime's are free. */
static void leave_agents_group(struct task *t)
{
    pid_t self = getpid();
    if (t->left || cgroup_is_free(&t->cgroups) || fork() != 0)
        return;
    struct err err = { 0 };
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    _exit(!cgroup_leave(&t->cgroups, SUPERVISORS, self, &err));
}

/* The runtime has helpers of its own: one that outlives it could make the container, or its control group, after the attempt
 * was told as ended. Only the first process of a pid namespace means its own by "all"; and who has no child there is alone, since
 * orphans come to it. */
bool end_helpers(void)
{
    int64_t until = boot_ms() + HELPERS_MS;
    pid_t pid;
    bool told = false;
    if (getpid() != 1)
        return false;
    while ((pid = waitpid(-1, NULL, WNOHANG)) != -1 && boot_ms() < until) {
        if (pid == 0 && told)
            usleep(HELPERS_PAUSE_US);
        else if (pid == 0)
            told = kill(-1, SIGKILL) == 0;
    }
    return pid == -1;
}

/* The next task finds us as this one did. */
static void close_all(struct life *l)
{
    if (l->counter) {
        kill(l->counter, SIGKILL);
        waitpid(l->counter, NULL, 0);
    }
    for (int i = 0; i < SLOT_COUNT; i++)
        if (i != SLOT_AGENT)
            fd_close(l->fds[i].fd);
}

int task_run(struct task *t)
{
    struct life *l = ARENA_NEW(t->mem, struct life);
    struct err err = { 0 };
    *l = (struct life){ .t = t, .began = boot_ms() };
    l->tell_at = l->began + PREPARING_TELL_MS;
    if (!t->place->open || t->plan.workdir)
        status_tell(t); /* it may take a while */
    for (int i = 0; i < SLOT_COUNT; i++)
        l->fds[i] = (struct pollfd){ .fd = -1, .events = POLLIN };
    l->fds[SLOT_AGENT] = (struct pollfd){ .fd = t->agent }; /* its hang-up is told unasked */
    leave_agents_group(t);
    l->ready = prepare(l, &err) && (t->place->open || place_open(t->place, &t->plan, &t->cgroups, &err))
               && sessions_listen(&l->fds[SLOT_LISTEN].fd, &err) && mounts_make(t, &err);
    if (!l->ready)
        disk_blame(&t->plan, &err);
    if (l->ready)
        check_deadlines(l); /* the order may have lain in an agent that stood still: another node may have the task by now */
    place_begin(t->place);
    bool ok = l->ready && l->as == OUTCOME_NONE && container_create(t, &l->runtime, &err);
    l->unmade = l->ready && !ok; /* the node had no process or no pipe left: nothing that was asked for */
    if (ok) {
        l->fds[SLOT_OUT].fd = t->out[0];
        l->fds[SLOT_ERR].fd = t->err[0];
        ok = loop(l, &err);
    }
    if (!t->status.started_ms)
        end_helpers();
    int64_t oom_kills = cgroup_oom_kills(&t->cgroups, t->plan.cgroup);
    t->status.ended_ms = wall_ms();
    tell_end(l, oom_kills, &err);
    fd_close(l->fds[SLOT_LISTEN].fd);
    l->fds[SLOT_LISTEN].fd = -1;
    container_clean(t);
    drain_rest(l);
    end_sessions(l);
    disk_shut(&t->plan);
    log_writer_close(l->log);
    t->status.phase = PHASE_ENDED;
    err = (struct err){ 0 };
    /* A full disk: whoever makes room is told what happened. A write may fail and be seen all
     * the same: without our folder everything was told and settled. */
    for (bool left = true; left && !status_write(t, &err);
         left = access(t->plan.folder, F_OK) == 0)
        sleep(1);
    close_all(l);
    return 0;
}
