/* sim_disk.c - one tree of files for each host, in memory, and what a crash does to it.
 *
 *
 * Every file has its bytes as programs see them, and what was overwritten since the last sync: a
 * sync only forgets that. At a crash each 512-byte sector of the range that was written is old or
 * new by chance. */
#include "base/fault.h"
#include "os/sim_internal.h"
#include <stdio.h>
#include <stdlib.h>

enum { SECTOR = 512 };
static const int64_t FILE_MOST = (int64_t)1 << 31;

struct sfile {
    char *path;
    bool folder;
    bool linked;                /* its name is on the disk too */
    bool removed;
    int users;
    unsigned mode;
    struct str now;
    struct old *olds;           /* what was overwritten since the last sync, newest first */
    size_t synced;              /* its length then */
    size_t low, high;           /* what was written since then */
};
struct old { struct old *before; size_t at, n; char bytes[]; };

struct swatch {
    struct watch base;
    struct link link;
    char path[256];
    void (*on_change)(void *arg, const char *name);
    void *arg;
};

struct handle { struct disk_file base; struct link link; struct sfile *file; struct host *on; };
struct shared { struct shared *next; char name[256]; _Alignas(max_align_t) char bytes[]; };

static void olds_free(struct sfile *f)
{
    for (struct old *o; (o = f->olds);) {
        f->olds = o->before;
        free(o);
    }
}

static void sfile_free(struct sfile *f)
{
    str_done(&f->now);
    olds_free(f);
    free(f->path);
    free(f);
}

static struct sfile *find(struct host *h, const char *path) { return map_get_text(h->files, path); }

static struct sfile *add(struct host *h, const char *path, bool folder)
{
    struct sfile *f = os_alloc(sizeof *f);
    f->path = strdup(path);
    if (!f->path)
        abort();
    f->folder = folder;
    f->linked = folder;
    map_put_text(h->files, f->path, f);
    return f;
}

static void unlink_it(struct host *h, struct sfile *f)
{
    map_take_text(h->files, f->path);
    f->removed = true;
    if (!f->users)
        sfile_free(f);
}

static bool in_folder(struct host *h, const char *path)
{
    char folder[4096];
    path_folder(path, folder);
    struct sfile *f = find(h, folder);
    return text_is(folder, "/") || (f && f->folder);
}

static void set_size(struct str *s, size_t n)
{
    if (n > s->len)
        memset(str_grow(s, n - s->len), 0, n - s->len);
    s->len = n;
    if (s->at)
        s->at[n] = 0;
}

static void touched(struct sfile *f, size_t low, size_t high)
{
    bool clean = f->low == f->high;
    f->low = clean ? low : MIN(f->low, low);
    f->high = clean ? high : MAX(f->high, high);
}

/* Before these bytes change: those of them that a crash may bring back. */
static void keep_old(struct sfile *f, size_t at, size_t n)
{
    size_t end = MIN(MIN(at + n, f->synced), f->now.len);
    if (at >= end)
        return;
    struct old *o = os_alloc(sizeof *o + (end - at));
    o->before = f->olds;
    o->at = at;
    o->n = end - at;
    memcpy(o->bytes, f->now.at + at, o->n);
    f->olds = o;
}

static void put_at(struct sfile *f, size_t at, const void *from, size_t n)
{
    keep_old(f, at, n);
    if (f->now.len < at + n)
        set_size(&f->now, at + n);
    if (n)
        memcpy(f->now.at + at, from, n);
    touched(f, at, at + n);
}

static void sync_it(struct sfile *f)
{
    olds_free(f);
    f->synced = f->now.len;
    f->low = f->high = 0;
    f->linked = true;
}

/* As it was at the last sync. */
static struct str safe_of(const struct sfile *f)
{
    struct str safe = { 0 };
    str_put(&safe, f->now.at ? f->now.at : "", MIN(f->now.len, f->synced));
    set_size(&safe, f->synced);
    for (const struct old *o = f->olds; o; o = o->before)
        memcpy(safe.at + o->at, o->bytes, o->n);
    return safe;
}

/* Whose disk a path is on: the machine's own, or that of the host whose folder is mounted there. */
static struct host *seat(struct machine *m, const char *path)
{
    struct host *h = m->host;
    size_t n = strlen(h->mounted_at);
    bool there = h->mounted && strncmp(path, h->mounted_at, n) == 0 && (path[n] == '/' || !path[n]);
    return there ? h->mounted : h;
}

static bool is_away(struct machine *m, struct host *h)
{
    return h != m->host && (sim_is_cut(m->w, m->host, h) || sim_is_cut(m->w, h, m->host));
}

void sim_mount(struct sim *w, const char *host, const char *folder, const char *of)
{
    struct host *h = sim_host(w, host);
    h->mounted = sim_host(w, of);
    snprintf(h->mounted_at, sizeof h->mounted_at, "%s", folder);
}

void *sim_memory(struct os *os, const char *name, size_t n, bool make)
{
    struct machine *m = machine_of(os);
    struct host *h = seat(m, name);
    struct shared *s = map_get_text(h->memory, name);
    if (m->dead || is_away(m, h))
        return NULL;
    if (!s && make) {
        s = os_alloc(sizeof *s + n);
        snprintf(s->name, sizeof s->name, "%s", name);
        map_put_text(h->memory, s->name, s);
    }
    return s ? s->bytes : NULL;
}

static bool no_room(const struct host *h, const struct sfile *f, size_t size)
{
    return h->full && size > (f ? f->now.len : 0);
}

static void take_time(struct machine *m)
{
    if (m->host->sync_ms_most)
        sim_stall(m->w, &m->os, sim_between(m->w, 0, m->host->sync_ms_most));
}

void sim_disk_slow(struct sim *w, const char *host, int64_t sync_ms_most)
{
    sim_host(w, host)->sync_ms_most = sync_ms_most;
}

void sim_disk_full(struct sim *w, const char *host, bool full) { sim_host(w, host)->full = full; }

/* --- a crash */
static void tear(struct sim *w, const struct sfile *f, struct str *safe)
{
    size_t size = sim_chance(w, 2) ? f->now.len : f->synced;
    if (f->now.len > f->synced && sim_chance(w, 2))
        size = f->synced + sim_chance(w, f->now.len - f->synced + 1);
    set_size(safe, size);
    for (size_t at = f->low / SECTOR * SECTOR; at < MIN(f->high, size); at += SECTOR) {
        size_t end = MIN(MIN(at + SECTOR, size), f->now.len);
        if (at < end && sim_chance(w, 2))
            memcpy(safe->at + at, f->now.at + at, end - at);
        else if (at >= f->synced && sim_chance(w, 4) == 0)     /* room that was given and never written */
            for (size_t i = at; i < MIN(at + SECTOR, size); i++)
                safe->at[i] = (char)sim_chance(w, 256);
    }
}

/* What processes of the host shared; programs that were killed may still point to it. */
static void lose_memory(struct host *h)
{
    struct shared *s;
    for (size_t i = 0; (s = map_next(h->memory, &i));) {
        map_take_text(h->memory, s->name);
        s->next = h->lost;
        h->lost = s;
    }
}

void host_lose(struct sim *w, struct host *h)
{
    struct sfile *f;
    lose_memory(h);
    for (size_t i = 0; (f = map_next(h->files, &i));) {
        if (!f->folder && !f->linked && sim_chance(w, 2)) {
            unlink_it(h, f);
            continue;
        }
        uint64_t luck = sim_chance(w, 3);
        bool dirty = f->low != f->high || f->now.len != f->synced;
        if (dirty && luck) {
            struct str safe = safe_of(f);
            if (luck == 1)
                tear(w, f, &safe);
            str_done(&f->now);
            f->now = safe;
        }
        sync_it(f);
    }
}

void host_free_disk(struct host *h)
{
    struct sfile *f;
    lose_memory(h);
    for (struct shared *m = h->lost, *next; m; m = next) {
        next = m->next;
        free(m);
    }
    map_free(h->memory);
    for (size_t i = 0; (f = map_next(h->files, &i));)
        sfile_free(f);
}

/* --- small files */
static bool eio(struct err *err, const char *what, const char *path)
{
    return err_set(err, RC_INTERNAL, "%s %s: Input/output error", what, path);
}

static bool enospc(struct err *err, const char *what, const char *path)
{
    return err_set(err, RC_UNAVAILABLE, "%s %s: No space left on device", what, path);
}

static bool absent(struct err *err, const char *what, const char *path)
{
    return err_set(err, RC_NOT_FOUND, "%s %s: No such file or directory", what, path);
}

bool sim_file_read(struct os *os, const char *path, size_t limit, struct arena *mem,
                   struct slice *out, struct err *err)
{
    struct machine *m = machine_of(os);
    if (machine_failed(m, err))
        return false;
    struct host *h = seat(m, path);
    if (fault("file.open") || is_away(m, h))
        return eio(err, "open", path);
    struct sfile *f = find(h, path);
    if (!f || f->folder)
        return absent(err, "open", path);
    if (fault("file.read"))
        return eio(err, "read", path);
    if (f->now.len > limit)
        return err_set(err, RC_TOO_LARGE, "%s is larger than %zu bytes", path, limit);
    *out = (struct slice){ arena_bytes(mem, f->now.at, f->now.len), f->now.len };
    return true;
}

struct told { struct swatch *w; char name[256]; };

static void tell(void *arg)
{
    struct told *t = arg;
    if (t->w->link.next)        /* else it was stopped meanwhile */
        t->w->on_change(t->w->arg, t->name);
    sim_give(t);
}

static void tell_watches(struct machine *by, const char *path)
{
    char folder[4096];
    path_folder(path, folder);
    LINK_EACH (&by->w->machines, i) {
        struct machine *m = CONTAINER(i, struct machine, link);
        LINK_EACH (&m->watches, l) {
            struct swatch *w = CONTAINER(l, struct swatch, link);
            if (m->dead || m->host != by->host || !text_is(w->path, folder))
                continue;
            struct told *t = sim_take(m, sizeof *t);
            t->w = w;
            snprintf(t->name, sizeof t->name, "%s", strrchr(path, '/') + 1);
            sim_later(m->w, m, sim_between(m->w, 0, 1), tell, t);
        }
    }
}

bool sim_file_replace(struct os *os, const char *path, struct slice bytes, unsigned mode,
                      struct err *err)
{
    struct machine *m = machine_of(os);
    if (machine_failed(m, err))
        return false;
    struct host *h = seat(m, path);
    if (fault("file.open") || is_away(m, h))
        return eio(err, "write", path);
    struct sfile *f = find(h, path);
    if (path[0] != '/' || !in_folder(h, path) || (f && f->folder))
        return absent(err, "write", path);
    if (fault("file.write") || fault("file.sync") || fault("file.rename"))
        return eio(err, "write", path);
    if (no_room(h, NULL, bytes.len))
        return enospc(err, "write", path);
    take_time(m);
    if (f)                      /* one who has it open keeps the old one */
        unlink_it(h, f);
    f = add(h, path, false);
    f->mode = mode;
    str_put(&f->now, bytes.at, bytes.len);
    sync_it(f);
    tell_watches(m, path);
    return !fault("file.dirsync") || eio(err, "write", path);
}

bool sim_file_append(struct os *os, const char *path, struct slice bytes, bool durable,
                     struct err *err)
{
    struct machine *m = machine_of(os);
    if (machine_failed(m, err))
        return false;
    struct host *h = seat(m, path);
    if (fault("file.open") || is_away(m, h))
        return eio(err, "append to", path);
    struct sfile *f = find(h, path);
    if (!in_folder(h, path) || (f && f->folder))
        return absent(err, "append to", path);
    if (!f)
        f = add(h, path, false);
    if (fault("file.write"))
        return eio(err, "append to", path);
    if (no_room(h, f, f->now.len + bytes.len))
        return enospc(err, "append to", path);
    put_at(f, f->now.len, bytes.at, bytes.len);
    if (durable && fault("file.sync"))
        return eio(err, "append to", path);
    if (durable) {
        take_time(m);
        sync_it(f);
    }
    tell_watches(m, path);
    return true;
}

static const char *child_of(const char *folder, const char *path)   /* its name, or NULL */
{
    size_t n = strlen(folder);
    n -= n && folder[n - 1] == '/';
    if (strncmp(path, folder, n) != 0 || path[n] != '/' || !path[n + 1])
        return NULL;
    return strchr(path + n + 1, '/') ? NULL : path + n + 1;
}

bool sim_file_remove(struct os *os, const char *path, struct err *err)
{
    struct machine *m = machine_of(os);
    if (machine_failed(m, err))
        return false;
    struct host *h = seat(m, path);
    if (fault("file.remove") || is_away(m, h))
        return eio(err, "remove", path);
    struct sfile *f = find(h, path), *other;
    if (!f)
        return true;
    for (size_t i = 0; f->folder && (other = map_next(h->files, &i));)
        if (child_of(path, other->path))
            return err_set(err, RC_INTERNAL, "remove %s: Directory not empty", path);
    unlink_it(h, f);
    return true;
}

bool sim_dir_make(struct os *os, const char *path, unsigned mode, struct err *err)
{
    struct machine *m = machine_of(os);
    char part[4096];
    if (machine_failed(m, err))
        return false;
    if (path[0] != '/' || !text_copy(part, sizeof part, path))
        return err_set(err, RC_BAD_INPUT, "the path is too long or not absolute");
    for (char *at = part + 1;; at++) {
        bool end = !*at;
        if (!end && *at != '/')
            continue;
        *at = 0;
        struct host *h = seat(m, part);
        if (fault("dir.make") || is_away(m, h))
            return eio(err, "make folder", part);
        struct sfile *f = find(h, part);
        if (f && !f->folder)
            return err_set(err, RC_CONFLICT, "%s is there and is not a folder", part);
        if (!f && part[strlen(part) - 1] != '/')
            add(h, part, true)->mode = mode;
        if (end)
            return true;
        *at = '/';
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

bool sim_dir_list(struct os *os, const char *path, struct arena *mem, struct texts *out,
                  struct err *err)
{
    struct machine *m = machine_of(os);
    if (machine_failed(m, err))
        return false;
    struct host *h = seat(m, path);
    if (fault("dir.open") || is_away(m, h))
        return eio(err, "list", path);
    struct sfile *f = find(h, path);
    if (!text_is(path, "/") && (!f || !f->folder))
        return absent(err, "list", path);
    struct texts found = { ARENA_ARRAY(mem, const char *, map_count(h->files) + 1), 0 };
    for (size_t i = 0; (f = map_next(h->files, &i));)
        if (child_of(path, f->path))
            found.at[found.count++] = arena_text(mem, child_of(path, f->path));
    qsort(found.at, found.count, sizeof *found.at, by_name);
    *out = found;
    return true;
}

struct watch *sim_dir_watch(struct os *os, const char *path,
                            void (*on_change)(void *arg, const char *name), void *arg)
{
    struct machine *m = machine_of(os);
    struct sfile *f = find(m->host, path);
    if (m->dead || !f || !f->folder)
        return NULL;
    struct swatch *w = sim_take(m, sizeof *w);
    *w = (struct swatch){ .base.os = os, .on_change = on_change, .arg = arg };
    snprintf(w->path, sizeof w->path, "%s", path);
    link_add(&m->watches, &w->link);
    return &w->base;
}

/* The memory stays until the world ends: a telling may be on its way. */
void sim_watch_stop(struct watch *watch) { link_cut(&((struct swatch *)watch)->link); }

/* --- the store's disk */
struct disk_file *sim_disk_open(struct os *os, const char *path, bool create, struct err *err)
{
    struct machine *m = machine_of(os);
    if (machine_failed(m, err))
        return NULL;
    struct host *at = seat(m, path);
    if (fault("disk.open") || is_away(m, at))
        return eio(err, "open", path), NULL;
    struct sfile *f = find(at, path);
    if ((!f && !create) || (f && f->folder) || !in_folder(at, path))
        return absent(err, "open", path), NULL;
    if (!f)
        f = add(at, path, false);
    f->linked = true;
    f->users++;
    struct handle *h = sim_take(m, sizeof *h);
    h->base.os = os;
    h->file = f;
    h->on = at;
    link_add(&m->handles, &h->link);
    return &h->base;
}

static void let_go(struct handle *h)
{
    struct sfile *f = TAKE(h->file);
    link_cut(&h->link);
    if (f && --f->users == 0 && f->removed)
        sfile_free(f);
}

void sim_disk_close(struct disk_file *f)
{
    let_go((struct handle *)f);
    sim_give(f);
}

void disk_clear(struct machine *m)
{
    LINK_EACH (&m->handles, l)
        let_go(CONTAINER(l, struct handle, link));
    LINK_EACH (&m->watches, l)
        link_cut(l);
}

static struct sfile *file_of(struct disk_file *f)     /* NULL: its machine is dead, or the disk out of reach */
{
    struct machine *m = machine_of(f->os);
    struct handle *h = (struct handle *)f;
    return m->dead || is_away(m, h->on) ? NULL : h->file;
}

int64_t sim_disk_size(struct disk_file *f) { return file_of(f) ? (int64_t)file_of(f)->now.len : 0; }

bool sim_disk_read(struct disk_file *h, int64_t at, void *out, size_t n, size_t *got)
{
    struct sfile *f = file_of(h);
    if (!f || at < 0 || fault("disk.read"))
        return false;
    size_t from = (size_t)MIN(at, (int64_t)f->now.len), have = MIN(n, f->now.len - from);
    if (have)
        memcpy(out, f->now.at + from, have);
    *got = have;
    return true;
}

bool sim_disk_write(struct disk_file *h, int64_t at, const void *from, size_t n)
{
    struct sfile *f = file_of(h);
    if (!f || at < 0 || at > FILE_MOST || n > (size_t)FILE_MOST || fault("disk.write")
        || no_room(((struct handle *)h)->on, f, (size_t)at + n))
        return false;
    put_at(f, (size_t)at, from, n);
    return true;
}

bool sim_disk_truncate(struct disk_file *h, int64_t size)
{
    struct sfile *f = file_of(h);
    if (!f || size < 0 || size > FILE_MOST || fault("disk.truncate"))
        return false;
    size_t low = MIN((size_t)size, f->now.len), high = MAX((size_t)size, f->now.len);
    keep_old(f, low, high - low);
    set_size(&f->now, (size_t)size);
    touched(f, low, high);      /* what is written behind the cut later must be copied whole */
    return true;
}

bool sim_disk_sync(struct disk_file *h)
{
    struct sfile *f = file_of(h);
    if (!f || fault("disk.sync"))
        return false;
    take_time(machine_of(h->os));
    sync_it(f);
    return true;
}

bool sim_disk_exists(struct os *os, const char *path)
{
    struct machine *m = machine_of(os);
    struct host *h = seat(m, path);
    return !m->dead && (is_away(m, h) || find(h, path));        /* what cannot be seen may be there */
}

int64_t sim_disk_free(struct os *os, const char *path)
{
    enum { ALMOST_NOTHING = 4096 };
    (void)path;
    if (fault("disk.free"))
        return 0;
    return machine_of(os)->host->full ? ALMOST_NOTHING : INT64_MAX;    /* the test's memory is the limit */
}

bool sim_disk_remove(struct os *os, const char *path)
{
    struct machine *m = machine_of(os);
    struct host *h = seat(m, path);
    struct sfile *f = find(h, path);
    if (m->dead || fault("disk.remove") || is_away(m, h))
        return false;
    if (f)
        unlink_it(h, f);
    return true;
}

bool sim_disk_rename(struct os *os, const char *from, const char *to)
{
    struct machine *m = machine_of(os);
    struct sfile *f = find(m->host, from), *old = find(m->host, to);
    if (m->dead || !f || f->folder || (old && old->folder) || !in_folder(m->host, to)
        || fault("disk.rename"))
        return false;
    if (f == old)
        return true;
    if (old)
        unlink_it(m->host, old);
    map_take_text(m->host->files, f->path);
    free(f->path);
    f->path = strdup(to);
    f->linked = true;
    map_put_text(m->host->files, f->path, f);
    tell_watches(m, to);
    return true;
}
