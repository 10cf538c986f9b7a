/* runtime_slots.c - supervisors that wait with everything ready (task/slot.c): making namespaces, a scratch and a root is most of
 * what a start would wait for and most of what a short task costs.
 *
 * How many there are follows the need: whenever fewer than a few wait one more is made, and what nobody asked for in a while
 * leaves. A start that finds none gets a supervisor of its own. Each has a socket of ours as standard input: when we are gone
 * it leaves by itself, once its task is over. */
#include "agent/runtime_internal.h"
#include "wire/bind.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FEW = 2, MOST = 64, QUIET_MS = 60000, NAME_TRIES = 100 };

struct slot {
    struct slot *next;
    struct slots *all;          /* NULL: the runtime is closed */
    struct stream *pipe;
    struct attempt *a;          /* NULL: none, or its end was told already */
    bool ready, known;          /* it waits; it was ready once */
    int64_t uid_base, mib;
    int root;                   /* that it made ahead */
    char run[RUNTIME_PATH];
};
struct slots {
    struct runtime *r;
    struct slot *first;
    bool asked;                 /* since the last look */
    int64_t last;
    struct timer *quiet;
};

static void remove_folder(const char *run)
{
    char path[RUNTIME_PATH + 16];
    snprintf(path, sizeof path, "%s/plan.json", run);
    unlink(path);
    rmdir(run);
}

static bool is_ours(const struct slots *all, const char *run)
{
    const struct slot *s = all->first;
    while (s && !text_is(s->run, run))
        s = s->next;
    return s != NULL;
}

/* One that lives holds the lock, or has not come so far yet. */
void slots_sweep(struct slots *all)
{
    struct runtime *r = all->r;
    AUTO(arena_free) struct arena *mem = arena_new();
    struct texts names = { 0 };
    struct err err = { 0 };
    if (!dir_list(r->os, arena_printf(mem, "%s/slots", r->config.run), mem, &names, &err))
        return;
    for (size_t i = 0; i < names.count; i++) {
        const char *run = arena_printf(mem, "%s/slots/%s", r->config.run, names.at[i]);
        if (is_ours(all, run))
            continue;
        int fd = open(arena_printf(mem, "%s/plan.json", run), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
        if (fd == -1 || flock(fd, LOCK_EX | LOCK_NB) == 0)
            remove_folder(run);
        if (fd != -1)
            close(fd);
    }
}

struct slots *slots_new(struct runtime *r)
{
    struct slots *s = calloc(1, sizeof *s);
    if (!s)
        abort();
    s->r = r;
    slots_sweep(s);
    return s;
}

static void unlink_slot(struct slot *s)
{
    struct slot **at = &s->all->first;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
}

/* It waits again, or is gone: either way it tells no more about this attempt. */
static void attempt_over(struct slot *s)
{
    struct attempt *a = TAKE(s->a);
    if (!a)
        return;
    a->slot = NULL;
    attempt_look(a);
    supervisor_gone(a);
}

static size_t waiting(const struct slots *all)
{
    size_t n = 0;
    for (const struct slot *s = all->first; s; s = s->next)
        n += s->ready || !s->known;
    return n;
}

/* Whoever was used last comes first: what it needs is still in the caches, and those that nobody needs any more stay behind. */
static size_t on_data(void *arg, const char *at, size_t n)
{
    struct slot *s = arg;
    (void)at;
    attempt_over(s);
    s->ready = s->known = true;
    if (s->all) {
        unlink_slot(s);
        s->next = s->all->first;
        s->all->first = s;
    }
    return n;
}

static void on_close(void *arg, const struct err *why)
{
    struct slot *s = arg;
    (void)why;
    if (s->all) {
        struct runtime *r = s->all->r;
        unlink_slot(s);
        map_take(r->ranges, s->uid_base);
        remove_folder(s->run);
        attempt_over(s);
    }
    free(s);
}

static bool make_folder(struct slots *all, struct slot *s, struct err *err)
{
    for (int i = 0; i < NAME_TRIES; i++) {
        snprintf(s->run, sizeof s->run, "%s/slots/%d-%lld", all->r->config.run, getpid(), (long long)++all->last);
        if (mkdir(s->run, 0711) == 0)
            return chmod(s->run, 0711) == 0 || err_errno(err, "cannot open %s", s->run);
        if (errno != EEXIST)
            break;
    }
    return err_errno(err, "cannot make %s", s->run);
}

/* The plan of no attempt: what all that will be run there have in common. */
static bool write_plan(struct slots *all, const struct slot *s, const struct plan *like, struct err *err)
{
    struct plan p = *like;
    char path[RUNTIME_PATH + 16], folder[RUNTIME_PATH];
    AUTO(str_done) struct str text = { 0 };
    p.attempt = 0;
    p.id = "slot";
    p.run = p.runtime_root = s->run;
    p.folder = in_data(all->r, folder, "scratch", "");
    p.uid_base = s->uid_base;
    p.mounts.count = p.secrets.count = p.nodes.count = p.files.count = p.links.count = p.shares.count = 0;
    p.workdir = p.filter = p.lower = p.driver = p.address = p.bridge = p.link = p.resolver = NULL;
    p.net = p.mbit = p.mtu = 0;
    write_object(&text, &plan_fields, &p);
    snprintf(path, sizeof path, "%s/plan.json", s->run);
    return plain_write(all->r, path, (struct slice){ text.at, text.len }, 0600, err);
}

static bool spawn(struct slots *all, struct slot *s, struct err *err)
{
    static const struct stream_events events = { .on_data = on_data, .on_close = on_close };
    char room[RUNTIME_PATH + ID_TEXT];
    int pair[2], n = snprintf(room, sizeof room, "%s/tasks/", all->r->config.data);
    memset(room + n, '-', ID_TEXT);
    room[MIN((size_t)n + ID_TEXT, sizeof room - 1)] = 0;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == -1)
        return err_errno(err, "cannot make a socket");
    const char *const argv[] = { all->r->supervisor, "--slot", s->run, room, NULL };
    struct proc_spec spec = { .argv = argv, .in = pair[1], .out = -1, .err = -1, .own_session = true };
    bool ok = proc_spawn(all->r->os, &spec, NULL, NULL, NULL, err);
    close(pair[1]);
    if (ok)
        s->pipe = stream_of_fd(all->r->os, pair[0], &events, s);
    else
        close(pair[0]);
    return ok;
}

static void make_one(struct slots *all, const struct plan *like)
{
    struct slot *s = calloc(1, sizeof *s);
    struct err err = { 0 };
    if (!s)
        abort();
    *s = (struct slot){ .all = all, .mib = like->scratch_mib, .root = like->root };
    bool folder = take_range(all->r, &s->uid_base, s) && make_folder(all, s, &err);
    if (folder && write_plan(all, s, like, &err) && spawn(all, s, &err)) {
        s->next = all->first;
        all->first = s;
        return;
    }
    if (folder)
        remove_folder(s->run);
    if (s->uid_base)
        map_take(all->r->ranges, s->uid_base);
    free(s); /* the next start asks again */
}

static void discard(struct slot *s)
{
    s->ready = false;
    stream_close(s->pipe);
}

static void on_quiet(void *arg)
{
    struct slots *all = arg;
    size_t left = waiting(all);
    all->quiet = NULL;
    for (struct slot *s = all->first; !all->asked && s && left > FEW; s = s->next)
        if (s->ready) {
            discard(s);
            left--;
        }
    if (all->asked || left > FEW)
        all->quiet = timer_start(all->r->os, QUIET_MS, on_quiet, all);
    all->asked = false;
}

static bool fits(const struct slot *s, const struct plan *p)
{
    return s->mib == p->scratch_mib;
}

struct slot *slot_take(struct slots *all, const struct plan *p)
{
    struct slot *found = NULL, *other = NULL;
    for (struct slot *s = all->first; s; s = s->next)
        if (s->ready && !fits(s, p))
            other = s;
        else if (s->ready && (!found || (found->root != p->root && s->root == p->root)))
            found = s;
    all->asked = true;
    if (!all->quiet)
        all->quiet = timer_start(all->r->os, QUIET_MS, on_quiet, all);
    if (found)
        found->ready = false;
    else if (other && waiting(all) >= FEW) /* another size: those of the last one make room */
        discard(other);
    if (waiting(all) < FEW)
        make_one(all, p);
    return found;
}

void slot_fill(const struct slot *s, struct arena *mem, struct plan *p)
{
    p->run = arena_text(mem, s->run);
    p->uid_base = s->uid_base;
}

void slot_give(struct slot *s)
{
    s->ready = true;
}

void slot_start(struct slot *s, struct attempt *a, const char *folder)
{
    s->a = a;
    a->slot = s;
    a->in_slot = true;
    stream_write(s->pipe, folder, strlen(folder));
    stream_write(s->pipe, "\n", 1);
}

void slot_leave(struct attempt *a)
{
    struct slot *s = TAKE(a->slot);
    if (s)
        s->a = NULL;
}

void slots_free(struct slots *all)
{
    if (!all)
        return;
    timer_cancel(all->quiet);
    for (struct slot *s = all->first, *next; s; s = next) {
        next = s->next;
        s->all = NULL;
        s->a = NULL;
        stream_close(s->pipe);
    }
    free(all);
}
