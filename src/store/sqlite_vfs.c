/* sqlite_vfs.c - SQLite on the disk of a simulated machine: its files are os/'s disk_*, its
 * clock and chance are the machine's.
 *
 * Everything is one thread and no transaction outlives the call that it is in, so locks are empty
 * though several servers may use one file; the WAL's index lies in memory that they share. A real
 * machine never comes here: SQLite's own VFS knows far more about real disks. */
#include "os/sim.h"
#include "store/store_internal.h"
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

enum { PATH_MOST = 512, SECTOR = 4096 };

struct file {
    sqlite3_file base;
    struct os *os;
    struct disk_file *disk;
    char *path, *drop;                  /* drop: a path to remove at close */
};
struct vfs { sqlite3_vfs base; struct os *os; char name[40]; };

static struct disk_file *disk_of(sqlite3_file *f) { return ((struct file *)f)->disk; }
static struct os *os_of(sqlite3_vfs *v) { return ((struct vfs *)v)->os; }

static int file_close(sqlite3_file *base)
{
    struct file *f = (struct file *)base;
    disk_close(f->disk);
    bool ok = !f->drop || disk_remove(f->os, f->drop);
    free(f->drop);
    free(f->path);
    return ok ? SQLITE_OK : SQLITE_IOERR_DELETE;
}

static int file_read_at(sqlite3_file *f, void *out, int n, sqlite3_int64 at)
{
    size_t got = 0;
    if (!disk_read(disk_of(f), at, out, (size_t)n, &got))
        return SQLITE_IOERR_READ;
    if (got == (size_t)n)
        return SQLITE_OK;
    memset((char *)out + got, 0, (size_t)n - got);      /* SQLite relies on the zeroes */
    return SQLITE_IOERR_SHORT_READ;
}

static int file_write_at(sqlite3_file *f, const void *from, int n, sqlite3_int64 at)
{
    bool ok = disk_write(disk_of(f), at, from, (size_t)n);
    return ok ? SQLITE_OK : SQLITE_IOERR_WRITE;
}

static int file_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    bool ok = disk_truncate(disk_of(f), size);
    return ok ? SQLITE_OK : SQLITE_IOERR_TRUNCATE;
}

static int file_sync(sqlite3_file *f, int flags)
{
    (void)flags;
    return disk_sync(disk_of(f)) ? SQLITE_OK : SQLITE_IOERR_FSYNC;
}

static int file_size(sqlite3_file *f, sqlite3_int64 *out)
{
    int64_t n = disk_size(disk_of(f));
    if (n < 0)
        return SQLITE_IOERR_FSTAT;
    *out = n;
    return SQLITE_OK;
}

static int file_lock(sqlite3_file *f, int level)
{
    (void)f, (void)level;
    return SQLITE_OK;
}

static int file_reserved(sqlite3_file *f, int *out)
{
    (void)f;
    *out = 0;
    return SQLITE_OK;
}

static int file_control(sqlite3_file *f, int op, void *arg)
{
    (void)f, (void)op, (void)arg;
    return SQLITE_NOTFOUND;
}

static int file_sector(sqlite3_file *f)
{
    (void)f;
    return SECTOR;
}

static int file_traits(sqlite3_file *f)
{
    (void)f;
    return 0;                           /* nothing is atomic and a write may tear: the worst disk */
}

static int shm_map(sqlite3_file *base, int region, int size, int extend, void volatile **out)
{
    struct file *f = (struct file *)base;
    char name[PATH_MOST + 32];
    snprintf(name, sizeof name, "%s-shm.%d", f->path, region);
    *out = sim_memory(f->os, name, (size_t)size, extend);
    return *out || !extend ? SQLITE_OK : SQLITE_IOERR_SHMMAP;
}
static int shm_lock(sqlite3_file *f, int offset, int n, int flags)
{
    (void)f, (void)offset, (void)n, (void)flags;
    return SQLITE_OK;
}
static void shm_barrier(sqlite3_file *f) { (void)f; }
static int shm_unmap(sqlite3_file *f, int drop)
{
    (void)f, (void)drop;
    return SQLITE_OK;
}

static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xShmMap = shm_map,
    .xShmLock = shm_lock,
    .xShmBarrier = shm_barrier,
    .xShmUnmap = shm_unmap,
    .xClose = file_close,
    .xRead = file_read_at,
    .xWrite = file_write_at,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = file_lock,
    .xUnlock = file_lock,
    .xCheckReservedLock = file_reserved,
    .xFileControl = file_control,
    .xSectorSize = file_sector,
    .xDeviceCharacteristics = file_traits,
};

static int vfs_open(sqlite3_vfs *v, sqlite3_filename path, sqlite3_file *base, int flags,
                    int *out_flags)
{
    struct file *f = (struct file *)base;
    struct err err = { 0 };
    *f = (struct file){ .os = os_of(v) };
    if (!path)
        return SQLITE_CANTOPEN;         /* temporary files are kept in memory */
    f->disk = disk_open(f->os, path, flags & SQLITE_OPEN_CREATE, &err);
    if (!f->disk)
        return SQLITE_CANTOPEN;
    if (flags & SQLITE_OPEN_DELETEONCLOSE && !(f->drop = strdup(path)))
        abort();
    if (!(f->path = strdup(path)))
        abort();
    f->base.pMethods = &methods;
    if (out_flags)
        *out_flags = flags;
    return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *v, const char *path, int sync_folder)
{
    (void)sync_folder;
    if (!disk_exists(os_of(v), path))
        return SQLITE_IOERR_DELETE_NOENT;
    return disk_remove(os_of(v), path) ? SQLITE_OK : SQLITE_IOERR_DELETE;
}

static int vfs_access(sqlite3_vfs *v, const char *path, int flags, int *out)
{
    (void)flags;
    *out = disk_exists(os_of(v), path);
    return SQLITE_OK;
}

static int vfs_full_path(sqlite3_vfs *v, const char *path, int room, char *out)
{
    (void)v;
    return text_copy(out, (size_t)room, path) ? SQLITE_OK : SQLITE_CANTOPEN;
}

static int vfs_randomness(sqlite3_vfs *v, int n, char *out)
{
    os_random(os_of(v), out, (size_t)n);
    return n;
}

static int vfs_sleep(sqlite3_vfs *v, int micros)
{
    (void)v;
    return micros;                      /* nobody to wait for: the file is ours alone */
}

static int vfs_now(sqlite3_vfs *v, double *days)
{
    *days = (double)os_wall_ms(os_of(v)) / 86400e3 + 2440587.5;     /* the Julian day of 1970 */
    return SQLITE_OK;
}

static int vfs_last_error(sqlite3_vfs *v, int room, char *out)
{
    (void)v, (void)room, (void)out;
    return 0;
}

sqlite3_vfs *sqlite_vfs_new(struct os *os)
{
    struct vfs *v = calloc(1, sizeof *v);
    if (!v)
        abort();
    /* Many machines live in one process. */
    snprintf(v->name, sizeof v->name, "arcus-%p", (void *)v);
    v->os = os;
    v->base = (sqlite3_vfs){
        .iVersion = 1,
        .szOsFile = sizeof(struct file),
        .mxPathname = PATH_MOST,
        .zName = v->name,
        .xOpen = vfs_open,
        .xDelete = vfs_delete,
        .xAccess = vfs_access,
        .xFullPathname = vfs_full_path,
        .xRandomness = vfs_randomness,
        .xSleep = vfs_sleep,
        .xCurrentTime = vfs_now,
        .xGetLastError = vfs_last_error,
    };
    sqlite3_vfs_register(&v->base, 0);
    return &v->base;
}

void sqlite_vfs_free(sqlite3_vfs *v)
{
    if (!v)
        return;
    sqlite3_vfs_unregister(v);
    free(v);
}
