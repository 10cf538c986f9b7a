/* mps_life.c - how the daemon of one GPU comes and goes. On a node whose operator gave the devices to the agent its GPU is exclusive before it comes, and
 * as before after it went. */
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
#include <sys/stat.h>
#include <unistd.h>

enum { POLL_MS = 20, COMES_MS = 15000, LEAVES_MS = 5000, CLEAR_MS = 3000 };

/* Of its own folder the tasks see these. */
static const char *const shown[] = { "control" };

struct clearing {               /* servers of a daemon that was killed serve on, for nobody */
    struct work work;
    struct daemon *d;
    struct cgroups cgroups;
    char group[MPS_GROUP];
};

void daemon_failed(struct daemon *d, const char *why)
{
    struct err err = { 0 };
    enum daemon_state state = d->state;
    err_set(&err, RC_UNAVAILABLE, "%s", why);
    log_line(LOG_ERROR, "mps", "%s: %s", d->uuid, why);
    if (state == DAEMON_GIVING) {      /* the next who leaves tries again, or wants the whole */
        daemon_settled(d, &err);
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

void daemon_settled(struct daemon *d, const struct err *err)
{
    d->state = DAEMON_NONE;
    if (d->count)
        daemon_come(d);
    else
        d->m->events->on_whole(d->m->arg, d->uuid, err);
}

/* Nothing of it is left: who waits gets the next one, unless some are still to be ended who saw the last. A card that nobody shares any more is as
 * it was before. */
void daemon_settle(struct daemon *d)
{
    struct err err = { 0 };
    if (d->state == DAEMON_LOST && daemon_holds(d))
        return;
    d->state = DAEMON_GIVING;
    if (d->count || !d->m->own || !daemon_has_mode(d))
        daemon_settled(d, NULL);
    else if (!daemon_mode(d, "restore", &err))
        daemon_failed(d, err.text);
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
    daemon_hush(d);
    if (d->state != DAEMON_LEAVING && d->state != DAEMON_LOST) {
        struct err err = { 0 };
        err_set(&err, RC_UNAVAILABLE, "the MPS daemon of its GPU ended by itself");
        daemon_tell(d, &err);
        d->state = DAEMON_LEAVING;
        if (d->count)
            daemon_fails(d, err.text);
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

bool daemon_again(struct daemon *d)
{
    if (os_boot_ms(d->m->os) - d->since_ms > COMES_MS || (!d->proc && !daemon_find(d)))
        return false;
    d->state = DAEMON_COMING;
    d->timer = timer_start(d->m->os, POLL_MS, on_poll, d);
    return true;
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

void daemon_start(struct daemon *d)
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
    d->log_at = 0;
    daemon_acquit(d);
    daemon_unsee(d);
    d->serving = SERVE_NOTHING;
    d->server = d->misses = 0;
    *d->suspicion = 0;
    d->beside_ms = 0;
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
    if (!make_folders(d, &err))
        daemon_failed(d, err.text);
    else if (!d->m->own)
        daemon_start(d);
    else if (!daemon_mode(d, "exclusive_process", &err))
        daemon_failed(d, err.text);
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
    bool asked = !d->asker && daemon_ask(d, "quit\n", &err);
    timer_cancel(d->timer);
    d->timer = timer_start(d->m->os, asked ? LEAVES_MS : 0, on_stays, d);
}

