/* mps.c - see mps.h. RUN/mps/GPU/ has pipe (the daemon's own), door (what tasks see of it), log, and daemon: the pid and start time of the
 * process, by which it is found again.
 *
 * A daemon is asked through the driver's own program, with an empty environment and a fixed path. What it answers is looked at: a division that
 * it does not repeat is none. */
#include "agent/mps.h"
#include "agent/cgroup.h"
#include "agent/workshop.h"
#include "base/log.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { POLL_MS = 20, COMES_MS = 15000, LEAVES_MS = 5000, ASK_MS = 10000, CLEAR_MS = 3000, HOLDERS = 128, PATH_BYTES = 512, ANSWER_BYTES = 4096 };
enum state {
    NONE,
    COMING,     /* it was started; its sockets are waited for */
    DIVIDING,   /* it is being told how */
    READY,
    LEAVING,    /* it was told to, and is waited for */
    LOST,       /* it is gone, and those who were let in are not yet */
};

static const char *const usual[] = {
    "/usr/bin/nvidia-cuda-mps-control",
    "/usr/local/nvidia/bin/nvidia-cuda-mps-control",
    "/usr/local/bin/nvidia-cuda-mps-control",
    "/run/nvidia/driver/usr/bin/nvidia-cuda-mps-control",
};
/* Of its own folder the tasks see these. */
static const char *const shown[] = { "control" };

struct holder {
    int64_t attempt;
    struct share share;
    void (*done)(void *arg, const struct err *err);     /* NULL: it has it */
    void *arg;
};
struct daemon {
    struct daemon *next;
    struct mps *m;
    char uuid[96], folder[PATH_BYTES];
    enum state state;
    int64_t milli, mem_mib;     /* how it is divided */
    struct holder holders[HOLDERS];
    size_t count;
    struct proc *proc;          /* the daemon; NULL: it is not known, or gone */
    struct proc *asker;         /* the program that tells it something */
    int answer;                 /* its words, in memory */
    struct timer *timer;        /* looks for what is to come, or has waited long enough */
    int64_t since_ms;
    bool clearing;              /* what it left is being ended */
};
struct clearing {               /* servers of a daemon that was killed serve on, for nobody */
    struct work work;
    struct daemon *d;
    struct cgroups cgroups;
    char group[MPS_GROUP];
};
struct mps {
    struct os *os;
    struct arena *mem;
    const char *run, *self, *program;
    const struct cgroups *cgroups;
    struct workshop *shop;
    const struct mps_events *events;
    void *arg;
    struct daemon *first;
};

static void leave(struct daemon *d);
static void divide(struct daemon *d);
static void come(struct daemon *d);

/* --- those who hold parts of it */

/* Sockets have short names: the last part of the UUID tells GPUs of one machine apart. */
static const char *short_name(const char *uuid)
{
    const char *last = strrchr(uuid, '-');
    return last ? last + 1 : uuid;
}

void mps_group(const char *folder, char out[static MPS_GROUP])
{
    const char *slash = strrchr(folder, '/');
    snprintf(out, MPS_GROUP, "arcus/mps-%.80s", slash ? slash + 1 : folder);
}

static struct daemon *daemon_of(const struct mps *m, const char *uuid)
{
    struct daemon *d = m->first;
    while (d && !text_is(strrchr(d->folder, '/') + 1, short_name(uuid)))
        d = d->next;
    return d;
}

/* One that was found by its folder learns its whole name from the first who wants it. */
static struct daemon *daemon_for(struct mps *m, const char *uuid)
{
    struct daemon *d = daemon_of(m, uuid);
    if (!d && !(d = calloc(1, sizeof *d)))
        abort();
    if (!d->m) {
        *d = (struct daemon){ .next = m->first, .m = m, .answer = -1 };
        snprintf(d->folder, sizeof d->folder, "%s/%s", m->run, short_name(uuid));
        m->first = d;
    }
    text_cut(d->uuid, sizeof d->uuid, uuid);
    return d;
}

static void daemon_free(struct daemon *d)
{
    timer_cancel(d->timer);
    proc_forget(d->proc);
    proc_forget(d->asker);
    if (d->answer != -1)
        close(d->answer);
    free(d);
}

static void take_out(struct daemon *d, size_t i)
{
    d->holders[i] = d->holders[--d->count];
}

/* A callback may come back to us: the list is looked at anew after each. */
static void tell_waiting(struct daemon *d, const struct err *err)
{
    for (size_t i = 0; i < d->count;) {
        struct holder h = d->holders[i];
        if (!h.done) {
            i++;
            continue;
        }
        d->holders[i].done = NULL;
        if (err)
            take_out(d, i);
        h.done(h.arg, err);
        i = 0;
    }
}

static int64_t most_memory(const struct daemon *d)
{
    int64_t most = 0;
    for (size_t i = 0; i < d->count; i++)
        most = MAX(most, d->holders[i].share.mem_mib);
    return most;
}

static bool holds(const struct daemon *d)
{
    for (size_t i = 0; i < d->count; i++)
        if (!d->holders[i].done)
            return true;
    return false;
}

/* Nobody who was let in may go on as if nothing had happened; who still waits gets the next daemon. */
static void lost(struct daemon *d, const char *why)
{
    struct mps *m = d->m;
    log_line(LOG_ERROR, "mps", "%s: %s", d->uuid, why);
    d->state = LOST;
    m->events->on_lost(m->arg, d->uuid, why);
}

/* --- a word with it */

static void on_asked(void *arg, int status);

static bool ask(struct daemon *d, const char *words, struct err *err)
{
    const char *const argv[] = { d->m->program, NULL };
    char pipe[PATH_BYTES + 64];
    snprintf(pipe, sizeof pipe, "CUDA_MPS_PIPE_DIRECTORY=%s/pipe", d->folder);
    const char *const env[] = { pipe, NULL };
    int in = memfd_create("mps", MFD_CLOEXEC);
    if (d->answer != -1)
        close(d->answer);
    d->answer = memfd_create("mps", MFD_CLOEXEC);
    bool ok = (in != -1 && d->answer != -1 && write(in, words, strlen(words)) == (ssize_t)strlen(words) && lseek(in, 0, SEEK_SET) == 0)
              || err_errno(err, "cannot make a file in memory");
    struct proc_spec spec = { .argv = argv, .env = env, .dir = "/", .in = in, .out = d->answer, .err = d->answer };
    ok = ok && proc_spawn(d->m->os, &spec, on_asked, d, &d->asker, err);
    if (in != -1)
        close(in);
    return ok;
}

/* "25.0" alone on a line, twice: it was taken, and is what is told when asked. */
static bool repeats(const char *answer, const char *percentage)
{
    size_t n = strlen(percentage), seen = 0;
    for (const char *line = answer; *line;) {
        size_t len = strcspn(line, "\n");
        seen += len == n && strncmp(line, percentage, n) == 0;
        line += len + (line[len] == '\n');
    }
    return seen >= 2;
}

static void percentage_text(const struct daemon *d, char out[static 32])
{
    snprintf(out, 32, "%" PRId64 ".%" PRId64, d->milli / 10, d->milli % 10);
}

static void on_asked(void *arg, int status)
{
    struct daemon *d = arg;
    char answer[ANSWER_BYTES] = "", percentage[32];
    d->asker = NULL;
    ssize_t n = pread(d->answer, answer, sizeof answer - 1, 0);
    answer[MAX(n, 0)] = 0;
    if (d->state != DIVIDING)
        return;
    timer_cancel(TAKE(d->timer));
    percentage_text(d, percentage);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && repeats(answer, percentage)) {
        d->state = READY;
        tell_waiting(d, NULL);
        if (!d->count && d->state == READY)
            leave(d);
        return;
    }
    struct err err = { 0 };
    answer[strcspn(answer, "\n")] = 0;
    err_set(&err, RC_UNAVAILABLE, "the MPS daemon of its GPU does not take how it is to be divided: %.120s", answer);
    log_line(LOG_ERROR, "mps", "%s: %s", d->uuid, err.text);
    tell_waiting(d, &err);
    leave(d);
}

static void on_deaf(void *arg)
{
    struct daemon *d = arg;
    struct err err = { 0 };
    d->timer = NULL;
    if (d->asker)
        proc_kill(d->asker, SIGKILL);
    err_set(&err, RC_UNAVAILABLE, "the MPS daemon of its GPU does not answer");
    tell_waiting(d, &err);
    if (d->count)
        lost(d, err.text);
    leave(d);
}

static void divide(struct daemon *d)
{
    char words[512], percentage[32];
    struct err err = { 0 };
    d->state = DIVIDING;
    percentage_text(d, percentage);
    snprintf(words, sizeof words,
             "set_default_active_thread_percentage %s\nset_default_device_pinned_mem_limit 0 %" PRId64 "M\nget_default_active_thread_percentage\n"
             "get_default_device_pinned_mem_limit 0\n",
             percentage, d->mem_mib);
    timer_cancel(d->timer);
    d->timer = timer_start(d->m->os, ASK_MS, on_deaf, d);
    if (ask(d, words, &err))
        return;
    tell_waiting(d, &err);
    leave(d);
}

/* --- its life */

/* Nothing of it is left: who waits gets the next one, unless some are still to be ended who saw the last. */
static void settle(struct daemon *d)
{
    if (d->state == LOST && holds(d))
        return;
    d->state = NONE;
    if (d->count)
        come(d);
}

static void clearing_run(struct work *w)
{
    struct clearing *c = CONTAINER(w, struct clearing, work);
    cgroup_kill(&c->cgroups, c->group, CLEAR_MS);
    cgroup_remove(&c->cgroups, c->group);
}

static void clearing_done(struct work *w)
{
    struct clearing *c = CONTAINER(w, struct clearing, work);
    struct daemon *d = c->d;
    free(c);
    d->clearing = false;
    settle(d);
}

static void clear(struct daemon *d)
{
    if (d->clearing)
        return;
    if (!d->m->cgroups) {
        settle(d);
        return;
    }
    struct clearing *c = calloc(1, sizeof *c);
    if (!c)
        abort();
    *c = (struct clearing){ .work = { .run = clearing_run, .done = clearing_done }, .d = d, .cgroups = *d->m->cgroups };
    mps_group(d->folder, c->group);
    d->clearing = true;
    workshop_do(d->m->shop, &c->work);
}

static void on_gone(void *arg)
{
    struct daemon *d = arg;
    d->proc = NULL;
    timer_cancel(TAKE(d->timer));
    if (d->state != LEAVING && d->state != LOST) {
        struct err err = { 0 };
        err_set(&err, RC_UNAVAILABLE, "the MPS daemon of its GPU ended by itself");
        tell_waiting(d, &err);
        d->state = LEAVING;
        if (d->count)
            lost(d, err.text);
    }
    clear(d);
}

/* The process behind RUN/mps/GPU/daemon; false: it is gone, or has not come. */
static bool find_process(struct daemon *d)
{
    char path[PATH_BYTES + 16], text[64] = "";
    int64_t pid;
    uint64_t start_time;
    snprintf(path, sizeof path, "%s/daemon", d->folder);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t n = fd == -1 ? -1 : read(fd, text, sizeof text - 1);
    if (fd != -1)
        close(fd);
    return n > 0 && sscanf(text, "%" SCNd64 " %" SCNu64, &pid, &start_time) == 2 && proc_watch(d->m->os, (int)pid, start_time, on_gone, d, &d->proc);
}

/* Where its tasks find it: the socket itself under another name, and nothing beside it. */
static bool open_door(struct daemon *d, struct err *err)
{
    char from[PATH_BYTES + 64], to[PATH_BYTES + 64];
    for (size_t i = 0; i < COUNT(shown); i++) {
        snprintf(from, sizeof from, "%s/pipe/%s", d->folder, shown[i]);
        snprintf(to, sizeof to, "%s/door/%s", d->folder, shown[i]);
        if ((unlink(to) == -1 && errno != ENOENT) || link(from, to) == -1)
            return err_errno(err, "cannot show %s to tasks", from);
    }
    return true;
}

static bool has_sockets(const struct daemon *d)
{
    char path[PATH_BYTES + 64];
    struct stat st;
    for (size_t i = 0; i < COUNT(shown); i++) {
        snprintf(path, sizeof path, "%s/pipe/%s", d->folder, shown[i]);
        if (lstat(path, &st) == -1 || !S_ISSOCK(st.st_mode))
            return false;
    }
    return true;
}

static void on_poll(void *arg)
{
    struct daemon *d = arg;
    struct err err = { 0 };
    bool late = os_boot_ms(d->m->os) - d->since_ms > COMES_MS;
    d->timer = NULL;
    if ((d->proc || find_process(d)) && has_sockets(d)) {
        if (open_door(d, &err)) {
            divide(d);
            return;
        }
        late = true;
    }
    if (!late) {
        d->timer = timer_start(d->m->os, POLL_MS, on_poll, d);
        return;
    }
    if (!err.rc)
        err_set(&err, RC_UNAVAILABLE, "the MPS daemon of its GPU does not start; %s/log tells more", d->folder);
    log_line(LOG_ERROR, "mps", "%s: %s", d->uuid, err.text);
    tell_waiting(d, &err);
    leave(d);
}

static bool make_folders(struct daemon *d, struct err *err)
{
    static const struct { const char *name; unsigned mode; } folders[] = { { "", 0711 }, { "/pipe", 0700 }, { "/door", 0755 }, { "/log", 0700 } };
    char path[PATH_BYTES + 16];
    for (size_t i = 0; i < COUNT(folders); i++) {
        snprintf(path, sizeof path, "%s%s", d->folder, folders[i].name);
        if (!dir_make(d->m->os, path, folders[i].mode, err))
            return false;
    }
    static const char *const old[] = { "daemon", "pipe/control", "door/control" };
    for (size_t i = 0; i < COUNT(old); i++) {
        snprintf(path, sizeof path, "%s/%s", d->folder, old[i]);
        unlink(path);
    }
    return true;
}

static void come(struct daemon *d)
{
    struct err err = { 0 };
    const char *const argv[] = { d->m->self, "mps-daemon", d->folder, d->uuid, d->m->program, NULL };
    struct proc_spec spec = { .argv = argv, .dir = "/", .in = -1, .out = -1, .err = -1, .own_session = true };
    d->milli = d->holders[0].share.milli;
    d->mem_mib = most_memory(d);
    d->state = COMING;
    d->since_ms = os_boot_ms(d->m->os);
    if (make_folders(d, &err) && proc_spawn(d->m->os, &spec, NULL, NULL, NULL, &err)) {
        timer_cancel(d->timer);
        d->timer = timer_start(d->m->os, POLL_MS, on_poll, d);
        return;
    }
    d->state = NONE;
    tell_waiting(d, &err);
}

static void on_stays(void *arg)
{
    struct daemon *d = arg;
    d->timer = NULL;
    if (d->proc)
        proc_kill(d->proc, SIGKILL);
}

/* Its end is what on_gone sees. Who does not go when asked is made to. */
static void leave(struct daemon *d)
{
    struct err err = { 0 };
    d->state = LEAVING;
    timer_cancel(TAKE(d->timer));
    if (!d->proc && !find_process(d)) {
        clear(d);
        return;
    }
    bool asked = !d->asker && ask(d, "quit\n", &err);
    d->timer = timer_start(d->m->os, asked ? LEAVES_MS : 0, on_stays, d);
}

/* --- the face */

void mps_want(struct mps *m, int64_t attempt, const struct share *s, void (*done)(void *arg, const struct err *err), void *arg)
{
    struct daemon *d = daemon_of(m, s->uuid);
    struct err err = { 0 };
    if (!m->program)
        err_set(&err, RC_UNAVAILABLE, "this node has no nvidia-cuda-mps-control, which shares of its GPUs need");
    else if (d && d->count == HOLDERS)
        err_set(&err, RC_UNAVAILABLE, "its GPU is divided among %d tasks already", HOLDERS);
    else if (d && d->count && d->milli != s->milli)
        err_set(&err, RC_UNAVAILABLE, "its GPU is divided into parts of %" PRId64 " thousandths, and it asks for %" PRId64, d->milli, s->milli);
    if (err.rc) {
        done(arg, &err);
        return;
    }
    d = daemon_for(m, s->uuid);
    d->holders[d->count++] = (struct holder){ attempt, *s, done, arg };
    if (d->state == READY && s->mem_mib <= d->mem_mib)
        tell_waiting(d, NULL);
    else if (d->state == READY) {
        d->mem_mib = s->mem_mib;
        divide(d);
    } else if (d->state == NONE && !d->clearing)
        come(d);
}

void mps_hold(struct mps *m, int64_t attempt, const struct share *s)
{
    struct daemon *d = daemon_for(m, s->uuid);
    if (d->count == HOLDERS)
        return;
    d->holders[d->count++] = (struct holder){ .attempt = attempt, .share = *s };
    d->milli = s->milli;
    d->mem_mib = most_memory(d);
    d->state = READY;
}

void mps_drop(struct mps *m, int64_t attempt)
{
    for (struct daemon *d = m ? m->first : NULL; d; d = d->next) {
        size_t before = d->count;
        for (size_t i = 0; i < d->count;)
            if (d->holders[i].attempt == attempt)
                take_out(d, i);
            else
                i++;
        if (before && !d->count && d->state == READY)
            leave(d);
        else if (d->state == LOST && !d->proc && !d->clearing)
            settle(d);
    }
}

void mps_begin(struct mps *m)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct texts names = { 0 };
    struct err err = { 0 };
    for (struct daemon *d = m->first; d; d = d->next)
        if (d->count && !find_process(d)) {
            lost(d, "the MPS daemon of its GPU ended while no agent looked");
            clear(d);
        }
    if (!dir_list(m->os, m->run, mem, &names, &err))
        return;
    for (size_t i = 0; i < names.count; i++)
        if (!daemon_of(m, names.at[i]))
            leave(daemon_for(m, names.at[i]));
}

const char *mps_door(const struct mps *m, const char *uuid, struct arena *mem)
{
    const struct daemon *d = daemon_of(m, uuid);
    return d ? arena_printf(mem, "%s/door", d->folder) : NULL;
}

bool mps_works(const struct mps *m) { return m && m->program; }

struct mps *mps_new(struct os *os, const struct mps_config *config, const struct mps_events *events, void *arg)
{
    struct mps *m = calloc(1, sizeof *m);
    struct err err = { 0 };
    if (!m)
        abort();
    *m = (struct mps){ .os = os, .mem = arena_new(), .cgroups = config->cgroups, .shop = config->shop, .events = events, .arg = arg };
    m->run = arena_printf(m->mem, "%s/mps", config->run);
    m->self = arena_text(m->mem, config->self);
    m->program = arena_text(m->mem, config->program);
    for (size_t i = 0; !m->program && i < COUNT(usual); i++)
        m->program = access(usual[i], X_OK) == 0 ? usual[i] : NULL;
    if (!dir_make(os, m->run, 0711, &err))
        log_line(LOG_ERROR, "mps", "%s", err.text);
    return m;
}

void mps_free(struct mps *m)
{
    if (!m)
        return;
    for (struct daemon *d = m->first, *next; d; d = next) {
        next = d->next;
        daemon_free(d);
    }
    arena_free(m->mem);
    free(m);
}
