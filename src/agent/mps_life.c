/* mps_life.c - how the daemon of one GPU comes, is told how to divide it, and goes.
 *
 * It is asked through the driver's own program, with an empty environment and a fixed path. What it answers is looked at: a division that
 * it does not repeat is none. On a node whose operator gave the devices to the agent its GPU is exclusive before it comes, and as before
 * after it went. */
#include "agent/cgroup.h"
#include "agent/mps_internal.h"
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

enum { POLL_MS = 20, COMES_MS = 15000, LEAVES_MS = 5000, ASK_MS = 10000, CLEAR_MS = 3000, ANSWER_BYTES = 4096 };

/* Of its own folder the tasks see these. */
static const char *const shown[] = { "control" };

struct clearing {               /* servers of a daemon that was killed serve on, for nobody */
    struct work work;
    struct daemon *d;
    struct cgroups cgroups;
    char group[MPS_GROUP];
};

static void start(struct daemon *d);
static void settled(struct daemon *d);

/* --- a word with it, and with its GPU */

static void on_asked(void *arg, int status);
static void on_deaf(void *arg);

/* One at a time. What it prints is in d->answer when it ends. */
static bool run(struct daemon *d, const char *const *argv, const char *const *env, const char *words, struct err *err)
{
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
    timer_cancel(TAKE(d->timer));
    if (ok)
        d->timer = timer_start(d->m->os, ASK_MS, on_deaf, d);
    return ok;
}

static bool ask(struct daemon *d, const char *words, struct err *err)
{
    const char *const argv[] = { d->m->program, NULL };
    char pipe[MPS_PATH + 64];
    snprintf(pipe, sizeof pipe, "CUDA_MPS_PIPE_DIRECTORY=%s/pipe", d->folder);
    const char *const env[] = { pipe, NULL };
    return run(d, argv, env, words, err);
}

static void failed(struct daemon *d, const char *why)
{
    struct err err = { 0 };
    enum daemon_state state = d->state;
    err_set(&err, RC_UNAVAILABLE, "%s", why);
    log_line(LOG_ERROR, "mps", "%s: %s", d->uuid, why);
    if (state == DAEMON_GIVING) {      /* the next who leaves tries again */
        settled(d);
        return;
    }
    daemon_tell(d, &err);
    if (state == DAEMON_OWNING)
        daemon_settle(d);
    else if (daemon_holds(d))
        d->state = DAEMON_READY;       /* those who are in have what they were promised */
    else
        daemon_leave(d);
}

/* What it would say is of no use any more. */
static void drop_asker(struct daemon *d)
{
    timer_cancel(TAKE(d->timer));
    if (d->asker)
        proc_kill(d->asker, SIGKILL);
    proc_forget(TAKE(d->asker));
}

static void on_deaf(void *arg)
{
    struct daemon *d = arg;
    d->timer = NULL;
    drop_asker(d);
    failed(d, d->state == DAEMON_DIVIDING ? "the MPS daemon of its GPU does not answer" : "the driver does not set the mode of its GPU");
}

/* --- how it is divided */

static void percentage_text(const struct daemon *d, char out[static 32])
{
    snprintf(out, 32, "%" PRId64 ".%" PRId64, d->milli / 10, d->milli % 10);
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

/* Defaults are for servers to come; one that serves already is told by itself, for its clients to come. */
static void words_for_servers(const struct daemon *d, const char *answer, struct str *words)
{
    char percentage[32];
    percentage_text(d, percentage);
    for (const char *line = answer; *line;) {
        size_t len = strcspn(line, "\n");
        if (len && strspn(line, "0123456789") == len && len < 12)
            str_printf(words, "set_active_thread_percentage %.*s %s\nset_device_pinned_mem_limit %.*s 0 %" PRId64 "M\n", (int)len, line, percentage, (int)len, line, d->mem_mib);
        line += len + (line[len] == '\n');
    }
}

static void divided(struct daemon *d, bool ended_well, const char *answer)
{
    AUTO(str_done) struct str words = { 0 };
    struct err err = { 0 };
    char percentage[32], why[240];
    percentage_text(d, percentage);
    bool taken = ended_well && (d->servers_told ? !strstr(answer, "privileges") : repeats(answer, percentage));
    if (taken && !d->servers_told)
        words_for_servers(d, answer, &words);
    if (taken && words.len) {
        d->servers_told = true;
        if (!ask(d, words.at, &err))
            failed(d, err.text);
        return;
    }
    if (!taken) {
        snprintf(why, sizeof why, "the MPS daemon of its GPU does not take how it is to be divided: %.*s", (int)MIN(strcspn(answer, "\n"), (size_t)120), answer);
        failed(d, why);
        return;
    }
    d->state = DAEMON_READY;
    daemon_tell(d, NULL);
    if (!d->count && d->state == DAEMON_READY)
        daemon_leave(d);
}

void daemon_divide(struct daemon *d)
{
    char words[512], percentage[32];
    struct err err = { 0 };
    d->state = DAEMON_DIVIDING;
    d->servers_told = false;
    percentage_text(d, percentage);
    snprintf(words, sizeof words,
             "set_default_active_thread_percentage %s\nset_default_device_pinned_mem_limit 0 %" PRId64 "M\nget_default_active_thread_percentage\n"
             "get_default_device_pinned_mem_limit 0\nget_server_list\n",
             percentage, d->mem_mib);
    if (!ask(d, words, &err))
        failed(d, err.text);
}

/* --- whose it is: nodes whose operator gave the devices to the agent */

/* `arcus device-mode` keeps the mode of before in FOLDER/mode until it was given back. */
static bool set_mode(struct daemon *d, const char *mode, struct err *err)
{
    char file[MPS_PATH + 16];
    snprintf(file, sizeof file, "%s/mode", d->folder);
    const char *const argv[] = { d->m->self, "device-mode", file, d->uuid, mode, d->m->nvml, NULL };     /* to restore it the file knows whose it was */
    return run(d, argv, NULL, "", err);
}

static bool has_mode(const struct daemon *d)
{
    char file[MPS_PATH + 16];
    snprintf(file, sizeof file, "%s/mode", d->folder);
    return access(file, F_OK) == 0;
}

static void on_asked(void *arg, int status)
{
    struct daemon *d = arg;
    char answer[ANSWER_BYTES] = "", why[240];
    bool well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    d->asker = NULL;
    ssize_t n = pread(d->answer, answer, sizeof answer - 1, 0);
    answer[MAX(n, 0)] = 0;
    if (d->state != DAEMON_DIVIDING && d->state != DAEMON_OWNING && d->state != DAEMON_GIVING)
        return;
    timer_cancel(TAKE(d->timer));
    snprintf(why, sizeof why, "the mode of its GPU cannot be set: %.*s", (int)MIN(strcspn(answer, "\n"), (size_t)120), answer);
    if (d->state == DAEMON_DIVIDING)
        divided(d, well, answer);
    else if (!well)
        failed(d, why);
    else if (d->state == DAEMON_OWNING)
        start(d);
    else
        settled(d);
}

/* --- its life */

static void settled(struct daemon *d)
{
    d->state = DAEMON_NONE;
    if (d->count)
        daemon_come(d);
}

/* Nothing of it is left: who waits gets the next one, unless some are still to be ended who saw the last. A card that nobody shares any more is as
 * it was before. */
void daemon_settle(struct daemon *d)
{
    struct err err = { 0 };
    if (d->state == DAEMON_LOST && daemon_holds(d))
        return;
    d->state = DAEMON_GIVING;
    if (d->count || !d->m->own || !has_mode(d))
        settled(d);
    else if (!set_mode(d, "restore", &err))
        failed(d, err.text);
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
    daemon_settle(d);
}

void daemon_clear(struct daemon *d)
{
    if (d->clearing)
        return;
    if (!d->m->cgroups) {
        daemon_settle(d);
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
    drop_asker(d);
    if (d->state != DAEMON_LEAVING && d->state != DAEMON_LOST) {
        struct err err = { 0 };
        err_set(&err, RC_UNAVAILABLE, "the MPS daemon of its GPU ended by itself");
        daemon_tell(d, &err);
        d->state = DAEMON_LEAVING;
        if (d->count)
            daemon_lost(d, err.text);
    }
    daemon_clear(d);
}

bool daemon_find(struct daemon *d)
{
    char path[MPS_PATH + 16], text[64] = "";
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
    char from[MPS_PATH + 64], to[MPS_PATH + 64];
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
    char path[MPS_PATH + 64];
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
    if ((d->proc || daemon_find(d)) && has_sockets(d)) {
        if (open_door(d, &err)) {
            daemon_divide(d);
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
    daemon_tell(d, &err);
    daemon_leave(d);
}

static bool make_folders(struct daemon *d, struct err *err)
{
    static const struct { const char *name; unsigned mode; } folders[] = { { "", 0711 }, { "/pipe", 0700 }, { "/door", 0755 }, { "/log", 0700 } };
    char path[MPS_PATH + 16];
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

static void start(struct daemon *d)
{
    struct err err = { 0 };
    const char *const argv[] = { d->m->self, "mps-daemon", d->folder, d->uuid, d->m->program, NULL };
    struct proc_spec spec = { .argv = argv, .dir = "/", .in = -1, .out = -1, .err = -1, .own_session = true };
    d->state = DAEMON_COMING;
    d->since_ms = os_boot_ms(d->m->os);
    if (!d->count) {            /* who wanted it has gone meanwhile */
        daemon_settle(d);
        return;
    }
    d->milli = d->holders[0].share.milli;
    d->mem_mib = daemon_memory(d);
    if (proc_spawn(d->m->os, &spec, NULL, NULL, NULL, &err)) {
        d->timer = timer_start(d->m->os, POLL_MS, on_poll, d);
        return;
    }
    daemon_tell(d, &err);
    daemon_settle(d);
}

/* A card that we own is nobody's but the daemon's before the first task is let in. */
void daemon_come(struct daemon *d)
{
    struct err err = { 0 };
    d->state = DAEMON_OWNING;
    d->milli = d->holders[0].share.milli;
    if (!make_folders(d, &err)) {
        d->state = DAEMON_NONE;
        daemon_tell(d, &err);
    } else if (!d->m->own)
        start(d);
    else if (!set_mode(d, "exclusive_process", &err))
        failed(d, err.text);
}

static void on_stays(void *arg)
{
    struct daemon *d = arg;
    d->timer = NULL;
    if (d->proc)
        proc_kill(d->proc, SIGKILL);
}

/* Its end is what on_gone sees. Who does not go when asked is made to. */
void daemon_leave(struct daemon *d)
{
    struct err err = { 0 };
    d->state = DAEMON_LEAVING;
    timer_cancel(TAKE(d->timer));
    if (!d->proc && !daemon_find(d)) {
        daemon_clear(d);
        return;
    }
    bool asked = !d->asker && ask(d, "quit\n", &err);
    timer_cancel(d->timer);
    d->timer = timer_start(d->m->os, asked ? LEAVES_MS : 0, on_stays, d);
}

