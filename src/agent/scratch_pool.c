/* scratch_pool.c - how many there are follows the need: one more with every start that found none, back to a few when nothing
 * was asked for in a while.
 *
 * What a tenant wrote is removed before the next gets it; one that cannot be emptied is not used again. Deleted blocks read as
 * zeroes on this filesystem, whoever gets them next. */
#include "agent/scratch_pool.h"
#include "agent/tree.h"
#include "agent/workshop.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <unistd.h>

enum { FEW = 2, MOST = 64, QUIET_MS = 60000, PATH_BYTES = 1024 };

struct scratch {
    struct scratch *next;
    int mount;
    char device[SCRATCH_DEVICE], template[PATH_BYTES];
};
struct scratch_pool {
    struct os *os;
    struct workshop *shop;
    struct scratch *empty;
    size_t empty_count, out, want;
    bool making, asked;         /* asked: since the last look */
    char template[PATH_BYTES];  /* that was asked for last */
    struct timer *quiet;
};
struct chore { /* done on the workshop's thread: all of it blocks */
    struct work work;
    struct scratch_pool *pool;
    struct scratch *s;
    bool ok;
};

void scratch_lose(struct scratch_pool *p, struct scratch *s)
{
    if (!s)
        return;
    p->out--;
    close(s->mount);
    free(s);
}

const char *scratch_device(const struct scratch *s)
{
    return s->device;
}

/* Where the kernel cannot mount without a place (before 5.2) there is no pool. */
static int mount_nowhere(const char *device)
{
    int fs = fsopen("ext4", FSOPEN_CLOEXEC), fd = -1;
    if (fs == -1)
        return -1;
    char options[sizeof "noinit_itable,discard"], *rest = options;
    memcpy(options, scratch_options, sizeof options);
    bool ok = fsconfig(fs, FSCONFIG_SET_STRING, "source", device, 0) == 0;
    for (char *word; ok && (word = strsep(&rest, ","));)
        ok = fsconfig(fs, FSCONFIG_SET_FLAG, word, NULL, 0) == 0;
    if (ok && fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
        fd = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOATIME);
    close(fs);
    return fd;
}

static bool make_one(struct scratch *s)
{
    struct err err = { 0 };
    char folder[PATH_BYTES];
    int loop = -1;
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(s->template, '/') - s->template), s->template);
    if (!scratch_attach(s->template, folder, s->device, &loop, &err))
        return false;
    s->mount = mount_nowhere(s->device);
    close(loop);
    return s->mount != -1;
}

static bool empty_one(struct scratch *s)
{
    char path[PATH_BYTES];
    struct err err = { 0 };
    int fd = openat(s->mount, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd == -1 ? NULL : fdopendir(fd);
    bool ok = d != NULL;
    for (struct dirent *e; ok && (e = readdir(d));) {
        if (text_is(e->d_name, ".") || text_is(e->d_name, "..") || text_is(e->d_name, "lost+found"))
            continue;
        snprintf(path, sizeof path, "/proc/self/fd/%d/%s", s->mount, e->d_name);
        ok = tree_remove(path, &err);
    }
    if (d)
        closedir(d);
    else if (fd != -1)
        close(fd);
    return ok;
}

static void chore_run(struct work *w)
{
    struct chore *c = CONTAINER(w, struct chore, work);
    c->ok = c->s->mount == -1 ? make_one(c->s) : empty_one(c->s);
    if (!c->ok && c->s->mount != -1) { /* unmounting blocks too */
        close(c->s->mount);
        c->s->mount = -1;
    }
}

static void chore_drop(struct work *w)
{
    struct chore *c = CONTAINER(w, struct chore, work);
    if (c->s->mount != -1)
        close(c->s->mount);
    free(c->s);
    free(c);
}

static void put_empty(struct scratch_pool *p, struct scratch *s)
{
    s->next = p->empty;
    p->empty = s;
    p->empty_count++;
}

static void emptied(struct work *w)
{
    struct chore *c = CONTAINER(w, struct chore, work);
    struct scratch_pool *p = c->pool;
    p->out--;
    if (!c->ok)
        return chore_drop(w);
    put_empty(p, c->s);
    free(c);
}

static void chore_do(struct scratch_pool *p, struct scratch *s, void (*done)(struct work *w))
{
    struct chore *c = calloc(1, sizeof *c);
    if (!c)
        abort();
    *c = (struct chore){ .work = { .run = chore_run, .done = done, .drop = chore_drop }, .pool = p, .s = s };
    workshop_do(p->shop, &c->work);
}

static void made(struct work *w);

static void top_up(struct scratch_pool *p)
{
    if (p->making || p->empty_count + p->out >= p->want)
        return;
    struct scratch *s = calloc(1, sizeof *s);
    if (!s)
        abort();
    s->mount = -1;
    memcpy(s->template, p->template, sizeof s->template);
    p->making = true;
    chore_do(p, s, made);
}

static void made(struct work *w)
{
    struct chore *c = CONTAINER(w, struct chore, work);
    struct scratch_pool *p = c->pool;
    p->making = false;
    if (!c->ok) { /* no more than there are: the next start asks again */
        p->want = p->empty_count + p->out;
        return chore_drop(w);
    }
    put_empty(p, c->s);
    free(c);
    top_up(p);
}

static struct scratch *unlink_one(struct scratch_pool *p, const char *template)
{
    for (struct scratch **at = &p->empty; *at; at = &(*at)->next)
        if (!template || text_is((*at)->template, template)) {
            struct scratch *s = *at;
            *at = s->next;
            p->empty_count--;
            return s;
        }
    return NULL;
}

static void discard_run(struct work *w)
{
    struct chore *c = CONTAINER(w, struct chore, work);
    close(c->s->mount);
    c->s->mount = -1;
}

static void discard(struct scratch_pool *p)
{
    struct chore *c = calloc(1, sizeof *c);
    if (!c)
        abort();
    *c = (struct chore){ .work = { .run = discard_run, .done = chore_drop, .drop = chore_drop }, .pool = p,
                         .s = unlink_one(p, NULL) };
    workshop_do(p->shop, &c->work);
}

static void on_quiet(void *arg)
{
    struct scratch_pool *p = arg;
    p->quiet = NULL;
    if (!p->asked) {
        p->want = FEW;
        while (p->empty_count > FEW)
            discard(p);
        if (p->empty_count + p->out <= FEW)
            return; /* the next start begins it again */
    }
    p->asked = false;
    p->quiet = timer_start(p->os, QUIET_MS, on_quiet, p);
}

struct scratch *scratch_take(struct scratch_pool *p, const char *template)
{
    struct scratch *s = unlink_one(p, template);
    p->asked = true;
    if (!p->quiet)
        p->quiet = timer_start(p->os, QUIET_MS, on_quiet, p);
    if (s)
        p->out++;
    else
        p->want = MIN(p->want + 1, (size_t)MOST);
    if (!text_is(p->template, template)) { /* another size: those of the last one make room */
        snprintf(p->template, sizeof p->template, "%s", template);
        while (!s && p->empty_count + p->out >= p->want && p->empty)
            discard(p);
    }
    top_up(p);
    return s;
}

void scratch_give(struct scratch_pool *p, struct scratch *s)
{
    chore_do(p, s, emptied);
}

struct scratch_pool *scratch_pool_new(struct os *os)
{
    struct scratch_pool *p = calloc(1, sizeof *p);
    if (!p)
        abort();
    *p = (struct scratch_pool){ .os = os, .shop = workshop_new(os, "scratch"), .want = FEW };
    return p;
}

void scratch_pool_free(struct scratch_pool *p)
{
    if (!p)
        return;
    timer_cancel(p->quiet);
    workshop_close(p->shop);
    for (struct scratch *s; (s = unlink_one(p, NULL));) {
        close(s->mount);
        free(s);
    }
    free(p);
}
