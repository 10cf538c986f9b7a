/* runtime_clean.c - what a dead supervisor leaves behind, and what time leaves behind. On a
 * workshop's thread, as it blocks.
 *
 * Before anything is killed the attempt's lock is taken: a supervisor that was started and has
 * not come so far yet then finds it taken and leaves, so an attempt told as ended can never
 * begin. */
#include "agent/runtime_internal.h"
#include "agent/tree.h"
#include "base/log.h"
#include "model/prefix.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { KILL_WAIT_MS = 10000, LOCK_TRIES = 100, LOCK_PAUSE_US = 20000, SWEEP_MS = 3600 * 1000 };

struct cleaning {
    struct work work;
    struct attempt *a;
    struct cgroups cgroups;
    char name[ID_TEXT], data[RUNTIME_PATH], run[RUNTIME_PATH];
    bool empty; /* nothing of it runs any more */
};

/* Somebody else may hold a descriptor of what was mounted from it, and the file with that: what it takes of the node's disk goes now. */
static void empty_disk(const char *folder)
{
    char path[RUNTIME_PATH + sizeof DISK_FILE];
    snprintf(path, sizeof path, "%s/" DISK_FILE, folder);
    int fd = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd == -1)
        return;
    if (ftruncate(fd, 0) == -1)
        log_line(LOG_WARN, "agent", "cannot free the space of %s: %s", path, strerror(errno));
    close(fd);
}

static void remove_quietly(const char *path)
{
    struct err err = { 0 };
    if (!tree_remove(path, &err))
        return; /* asked again when the attempt is forgotten, and by the next sweep */
}

static bool take_lock(const char *folder)
{
    char path[RUNTIME_PATH];
    snprintf(path, sizeof path, "%s/plan.json", folder);
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    bool ok = fd == -1 && errno == ENOENT;
    for (int i = 0; fd != -1 && !ok && i < LOCK_TRIES; i++) {
        ok = flock(fd, LOCK_EX | LOCK_NB) == 0;
        if (!ok)
            usleep(LOCK_PAUSE_US);
    }
    if (ok && fd != -1)
        unlink(path); /* whoever comes later finds none */
    if (fd != -1)
        close(fd);
    return ok;
}

bool clean_container(const struct cgroups *cgroups, const char *run, const char *name)
{
    char path[RUNTIME_PATH], group[64];
    snprintf(group, sizeof group, "arcus/%s", name);
    bool empty = cgroup_kill(cgroups, group, KILL_WAIT_MS);
    cgroup_remove(cgroups, group);
    snprintf(path, sizeof path, "%s/tasks/%s", run, name);
    remove_quietly(path);
    return empty;
}

static void cleaning_run(struct work *w)
{
    struct cleaning *c = CONTAINER(w, struct cleaning, work);
    char path[RUNTIME_PATH];
    snprintf(path, sizeof path, "%s/tasks/%s", c->data, c->name);
    if (take_lock(path))
        c->empty = clean_container(&c->cgroups, c->run, c->name);
}

static void cleaning_done(struct work *w)
{
    struct cleaning *c = CONTAINER(w, struct cleaning, work);
    struct attempt *a = c->a;
    bool empty = c->empty;
    free(c);
    slots_sweep(a->r->slots);
    attempt_end(a, OUTCOME_NODE_FAULT,
                empty ? "its supervisor was killed or its node restarted"
                      : "its supervisor was killed, and something of it is stuck in the kernel");
}

void clean_dead(struct attempt *a)
{
    struct runtime *r = a->r;
    if (a->stage == STAGE_CLEANING || a->stage == STAGE_ENDED)
        return;
    a->stage = STAGE_CLEANING;
    a->in_slot = false; /* whoever is stuck may hold its folder's lock for ever */
    if (!r->real) {
        attempt_end(a, OUTCOME_NODE_FAULT, "its supervisor was killed or its node restarted");
        return;
    }
    struct cleaning *c = calloc(1, sizeof *c);
    if (!c)
        abort();
    c->work = (struct work){ .run = cleaning_run, .done = cleaning_done };
    c->a = a;
    c->cgroups = r->cgroups;
    memcpy(c->name, a->name, sizeof c->name);
    snprintf(c->data, sizeof c->data, "%s", r->config.data);
    snprintf(c->run, sizeof c->run, "%s", r->config.run);
    workshop_do(r->quick, &c->work);
}

/* --- folders of attempts that the server has settled */

struct removal {
    struct work work;
    char paths[5][RUNTIME_PATH];
    size_t count;
    bool volume;   /* the first of paths is the folder of one */
    struct os *os;
    char status[RUNTIME_PATH], end[RUNTIME_PATH]; /* of an attempt that is forgotten; else empty */
    struct runtime *r;
    int64_t spare; /* the number under which its folder, the last of paths, is kept; 0: it is removed */
};

/* While the status is there the attempt is known to have ended, so it goes last. How it ended stays as long as its logs: a
 * server that came back from an old backup may ask for it once more. No such server asks for what ended a moment ago, so the disk is
 * not waited for. */
bool clean_status(struct os *os, const char *status, const char *end)
{
    struct err err = { 0 };
    return !disk_exists(os, status) || (os_is_simulated(os) ? disk_rename(os, status, end) : rename(status, end) == 0)
           || file_remove(os, status, &err);
}

static void spare_path(const struct runtime *r, int64_t number, char out[static RUNTIME_PATH])
{
    snprintf(out, RUNTIME_PATH, "%s/tasks/.spare-%lld", r->config.data, (long long)number);
}

/* A disk makes and removes folders and files slowly, and writes over them fast. */
static bool spare_keep(struct removal *x)
{
    char stop[RUNTIME_PATH + 8], to[RUNTIME_PATH];
    snprintf(stop, sizeof stop, "%s/stop", x->paths[x->count - 1]);
    spare_path(x->r, x->spare, to);
    return (unlink(stop) == 0 || errno == ENOENT) && rename(x->paths[x->count - 1], to) == 0;
}

bool spare_take(struct runtime *r, const char *path)
{
    char from[RUNTIME_PATH];
    if (!r->spare_count)
        return false;
    spare_path(r, r->spares[--r->spare_count], from);
    return rename(from, path) == 0; /* one that is there already is not empty, and stays as it is */
}

static void removal_run(struct work *w)
{
    struct removal *x = CONTAINER(w, struct removal, work);
    if (x->spare && spare_keep(x))
        x->count--;
    else
        x->spare = 0;
    if (x->volume && x->count)
        empty_disk(x->paths[0]);
    for (size_t i = 0; i < x->count; i++)
        remove_quietly(x->paths[i]);
    if (x->status[0])
        clean_status(x->os, x->status, x->end);
}

static void removal_done(struct work *w)
{
    struct removal *x = CONTAINER(w, struct removal, work);
    if (x->spare && x->r->spare_count < SPARES)
        x->r->spares[x->r->spare_count++] = x->spare;
    free(x);
}

/* A simulated machine has files of its own: nothing here may touch those of the real one. */
static void remove_simulated(struct os *os, const char *path)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct texts names = { 0 };
    struct err err = { 0 };
    if (dir_list(os, path, mem, &names, &err))
        for (size_t i = 0; i < names.count; i++)
            remove_simulated(os, arena_printf(mem, "%s/%s", path, names.at[i]));
    if (!file_remove(os, path, &err))
        return; /* asked again by the next agent that finds it */
}

/* What it left in /outputs is its owner's and stays as long as its logs, whichever message settled it. */
void clean_forgotten(struct runtime *r, const char *name, bool in_slot)
{
    struct removal *x = calloc(1, sizeof *x);
    if (!x)
        abort();
    x->work = (struct work){ .run = removal_run, .done = removal_done };
    in_run(r, x->paths[x->count++], "tasks", name);
    if (r->real)
        snprintf(x->paths[x->count++], RUNTIME_PATH, "%s/status/.%s", r->config.data, name);
    in_data(r, x->paths[x->count++], "tasks", name); /* while it is there we are asked again */
    x->os = r->os;
    x->r = r;
    if (in_slot && r->spare_count < SPARES)
        x->spare = ++r->last_spare;
    in_data(r, x->status, "status", name);
    past_path(r, x->end, name);
    if (r->real) {
        workshop_do(r->shop, &x->work);
        return;
    }
    for (size_t i = 0; i < x->count; i++)
        remove_simulated(r->os, x->paths[i]);
    clean_status(r->os, x->status, x->end);
    free(x);
}

/* Renamed first, so that it is gone for whoever looks; a crash before it is removed leaves a name that begins with a dot. */
void runtime_drop_volume(struct runtime *r, int64_t volume)
{
    char name[ID_TEXT], gone[ID_TEXT + 1], from[RUNTIME_PATH];
    in_data(r, from, "volumes", id_text(name, PREFIX_VOLUME, volume));
    if (!r->real) {
        remove_simulated(r->os, from);
        return;
    }
    struct removal *x = calloc(1, sizeof *x);
    if (!x)
        abort();
    x->work = (struct work){ .run = removal_run, .done = removal_done };
    x->volume = true;
    snprintf(gone, sizeof gone, ".%s", name);
    if (rename(from, in_data(r, x->paths[x->count++], "volumes", gone)) == -1)
        x->count = 0; /* it was never used here */
    workshop_do(r->shop, &x->work);
}

/* The name must be free at once: the same attempt may be ordered again before the workshop gets
 * to it. */
void clean_never_ran(struct runtime *r, const char *name)
{
    char from[RUNTIME_PATH], gone[64];
    if (!r->real) {
        remove_simulated(r->os, in_data(r, from, "tasks", name));
        return;
    }
    struct removal *x = calloc(1, sizeof *x);
    if (!x)
        abort();
    x->work = (struct work){ .run = removal_run, .done = removal_done };
    snprintf(gone, sizeof gone, ".%.40s", name + (name[0] == '.'));
    const char *(*const places[])(struct runtime *r, char out[static RUNTIME_PATH],
                                  const char *folder, const char *name)
        = { in_run, in_data }; /* in this order: it is found again by the second */
    for (size_t i = 0; i < COUNT(places); i++) {
        char *to = x->paths[x->count++];
        places[i](r, to, "tasks", gone);
        if (name[0] != '.' && rename(places[i](r, from, "tasks", name), to) == -1
            && errno != ENOENT)
            snprintf(to, RUNTIME_PATH, "%s", from);
    }
    workshop_do(r->shop, &x->work);
}

/* --- what is kept for a while: logs and outputs after the last byte, blobs and images after
 * their last use */

struct sweep {
    struct work work;
    char data[RUNTIME_PATH];
    struct arena *mem;
    struct os *os;
    struct texts live;
    int64_t keep_logs_s;
};

static const struct {
    const char *folder;
    bool log;           /* as long as the operator says */
    int64_t days;
} kept[] = { { "logs", true, 7 }, { "ends", true, 7 }, { "outputs", true, 7 }, { "blobs", false, 2 }, { "images", false, 30 } };

/* Names of live attempts, and the plans of live attempts as text: an image that one of them
 * names is in use. */
static bool is_live(const struct sweep *s, const char *name)
{
    for (size_t i = 0; i < s->live.count; i++)
        if (strstr(s->live.at[i], name))
            return true;
    return false;
}

/* Volumes that were on their way out when the agent before us died. */
static void sweep_volumes(struct sweep *s)
{
    struct texts names = { 0 };
    struct err err = { 0 };
    const char *folder = arena_printf(s->mem, "%s/volumes", s->data);
    if (!dir_list(s->os, folder, s->mem, &names, &err))
        return;
    for (size_t i = 0; i < names.count; i++)
        if (names.at[i][0] == '.') {
            const char *path = arena_printf(s->mem, "%s/%s", folder, names.at[i]);
            empty_disk(path);
            remove_quietly(path);
        }
}

static void sweep_run(struct work *w)
{
    struct sweep *s = CONTAINER(w, struct sweep, work);
    sweep_volumes(s);
    size_t attempts = s->live.count;
    for (size_t i = 0; i < attempts; i++) {
        struct slice plan;
        struct err err = { 0 };
        if (file_read(s->os, arena_printf(s->mem, "%s/tasks/%s/plan.json", s->data, s->live.at[i]),
                      PLAN_BYTES, s->mem, &plan, &err))
            s->live.at[s->live.count++] = plan.at;
    }
    for (size_t f = 0; f < COUNT(kept); f++) {
        char folder[RUNTIME_PATH], path[RUNTIME_PATH];
        struct texts names = { 0 };
        struct err err = { 0 };
        struct stat st;
        int64_t keep_s = kept[f].log && s->keep_logs_s ? s->keep_logs_s : kept[f].days * 86400;
        snprintf(folder, sizeof folder, "%s/%s", s->data, kept[f].folder);
        if (!dir_list(s->os, folder, s->mem, &names, &err))
            continue;
        for (size_t i = 0; i < names.count; i++) {
            snprintf(path, sizeof path, "%s/%s", folder, names.at[i]);
            if (!is_live(s, names.at[i]) && lstat(path, &st) == 0
                && st.st_mtim.tv_sec + keep_s < time(NULL)
                && !text_is(names.at[i], "refs"))
                remove_quietly(path);
        }
    }
}

static void sweep_done(struct work *w)
{
    struct sweep *s = CONTAINER(w, struct sweep, work);
    arena_free(s->mem);
    free(s);
}

static void sweep_again(void *arg)
{
    struct runtime *r = arg;
    r->sweep = NULL;
    clean_sweep(r);
}

void clean_sweep(struct runtime *r)
{
    struct sweep *s = calloc(1, sizeof *s);
    struct attempt *a;
    if (!s)
        abort();
    s->work = (struct work){ .run = sweep_run, .done = sweep_done, .drop = sweep_done };
    s->mem = arena_new();
    s->os = r->os;
    s->live.at = ARENA_ARRAY(s->mem, const char *, 2 * map_count(r->attempts));
    for (size_t at = 0; (a = map_next(r->attempts, &at));)
        s->live.at[s->live.count++] = arena_text(s->mem, a->name);
    snprintf(s->data, sizeof s->data, "%s", r->config.data);
    s->keep_logs_s = r->config.keep_logs_s;
    workshop_do(r->shop, &s->work);
    r->sweep = timer_start(r->os, SWEEP_MS, sweep_again, r);
}
