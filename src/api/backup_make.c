#include "api/backup_make.h"
#include "api/blob_parts.h"
#include "base/fault.h"
#include "base/id.h"
#include "model/prefix.h"
#include "wire/backup.h"
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* What is left of the disk belongs to the store: a backup must not be what stops the cloud. */
static const int64_t reserve = INT64_C(256) << 20, look_every = INT64_C(64) << 20;
enum { PATH = 512, WRITE_BYTES = 1 << 20 };

struct upload { int64_t project, size; const char *hex; bool missing; };

struct backup {
    struct os *os;
    struct store *store;
    struct arena *mem;
    const char *data, *spool, *version;
    int64_t made_ms, steps, size;
    struct disk_file *file;             /* the spool; then an upload that is being read */
    int64_t at, spooled;                /* in the file that is open; of the spool */
    bool spool_out;                     /* the spool was handed out whole */
    struct str waiting, part;           /* bytes for the spool; rows of the part that is being filled */
    char table[64];                     /* "": before the first */
    int parts;
    bool rows_in_part;
    struct upload *uploads;
    size_t upload_count, upload_room, upload_at, missing;
    struct sha256 *hash;                /* of what was handed out; NULL: all was */
    atomic_bool stop;
};

struct backup *backup_new(struct os *os, struct store *store, const char *data, const char *spool,
                          const char *version)
{
    struct backup *b = calloc(1, sizeof *b);
    if (!b)
        abort();
    b->os = os;
    b->store = store;
    b->mem = arena_new();
    b->data = arena_text(b->mem, data);
    b->version = arena_text(b->mem, version);
    b->made_ms = os_wall_ms(os);
    b->hash = sha256_new();
    b->spool = arena_text(b->mem, spool);
    return b;
}

void backup_free(struct backup *b)
{
    char hex[DIGEST_HEX];
    struct err ignored = { 0 };
    if (!b)
        return;
    if (b->file)
        disk_close(b->file);
    if (b->hash)
        sha256_end(b->hash, hex);
    if (!file_remove(b->os, b->spool, &ignored))
        b->file = NULL;                 /* the next start sweeps it */
    str_done(&b->waiting);
    str_done(&b->part);
    free(b->uploads);
    arena_free(b->mem);
    free(b);
}

/* --- rows into the spool */

static bool spool_flush(struct backup *b, struct err *err)
{
    int64_t after = b->spooled + (int64_t)b->waiting.len;
    if (b->spooled / look_every != after / look_every && disk_free(b->os, b->spool) < reserve)
        return err_set(err, RC_OVER_QUOTA, "the server's disk has no room to prepare a backup");
    if (fault("backup.write") || !disk_write(b->file, b->spooled, b->waiting.at, b->waiting.len))
        return err_set(err, RC_UNAVAILABLE,
                       "the backup could not be prepared on the server's disk; it may be full");
    b->spooled = after;
    str_clear(&b->waiting);
    return true;
}

static bool spool_entry(struct backup *b, const char *name, struct slice bytes, struct err *err)
{
    backup_entry(&b->waiting, name, (int64_t)bytes.len, b->made_ms);
    str_put(&b->waiting, bytes.at, bytes.len);
    tar_pad(&b->waiting, (int64_t)bytes.len);
    return b->waiting.len < WRITE_BYTES || spool_flush(b, err);
}

static bool part_end(struct backup *b, struct err *err)
{
    char name[128];
    if (!b->rows_in_part)
        return true;
    b->rows_in_part = false;
    snprintf(name, sizeof name, "tables/%.64s/%06d.jsonl", b->table, ++b->parts);
    return spool_entry(b, name, (struct slice){ b->part.at, b->part.len }, err);
}

static bool head_write(struct backup *b, struct err *err)
{
    AUTO(str_done) struct str text = { 0 };
    backup_head_print(&text, &(struct backup_head){ .format = BACKUP_FORMAT,
                                                    .steps = b->steps,
                                                    .made_ms = b->made_ms,
                                                    .arcus = b->version,
                                                    .store = store_kind(b->store) });
    return spool_entry(b, BACKUP_HEAD, (struct slice){ text.at, text.len }, err);
}

static bool on_table(void *arg, const struct store_table *t, struct err *err)
{
    struct backup *b = arg;
    if (!(b->table[0] ? part_end(b, err) : head_write(b, err)) || !text_copy(b->table, sizeof b->table, t->name))
        return false;
    b->parts = 0;
    return true;
}

/* A file is named by what the store says; the name is made here, and checked. */
static bool upload_add(struct backup *b, const struct store_table *t, const struct value *values,
                       struct err *err)
{
    struct upload u = { 0 };
    unsigned char raw[DIGEST_BYTES];
    for (int i = 0; i < t->count; i++) {
        if (text_is(t->columns[i], "project"))
            u.project = values[i].n;
        if (text_is(t->columns[i], "digest") && values[i].type == VALUE_TEXT)
            u.hex = arena_bytes(b->mem, values[i].text, values[i].len);
    }
    if (u.hex && text_starts(u.hex, "sha256:"))
        u.hex += 7;
    if (!u.hex || strlen(u.hex) != DIGEST_HEX - 1 || !hex_parse(u.hex, raw, sizeof raw))
        return err_set(err, RC_INTERNAL, "the store has an upload without a digest");
    if (b->upload_count == b->upload_room) {
        b->upload_room = MAX(64, 2 * b->upload_room);
        if (!(b->uploads = realloc(b->uploads, b->upload_room * sizeof *b->uploads)))
            abort();
    }
    b->uploads[b->upload_count++] = u;
    return true;
}

static bool on_row(void *arg, const struct store_table *t, const struct value *values, struct err *err)
{
    struct backup *b = arg;
    if (atomic_load_explicit(&b->stop, memory_order_relaxed))
        return err_set(err, RC_UNAVAILABLE, "the backup was given up");
    if (text_is(t->name, "blob") && !upload_add(b, t, values, err))
        return false;
    if (!b->rows_in_part) {
        str_clear(&b->part);
        table_print(&b->part, t);
        str_char(&b->part, '\n');
        b->rows_in_part = true;
    }
    row_print(&b->part, t, values);
    str_char(&b->part, '\n');
    return b->part.len < BACKUP_PART || part_end(b, err);
}

/* --- uploads */

static void upload_name(const struct upload *u, const char *folder, char out[static PATH])
{
    char id[ID_TEXT];
    snprintf(out, PATH, "%s/%s/%s", folder, id_text(id, PREFIX_PROJECT, u->project), u->hex);
}

static struct disk_file *upload_open(struct backup *b, const struct upload *u, struct err *err)
{
    char path[PATH];
    upload_name(u, arena_printf(b->mem, "%s/blobs", b->data), path);
    return disk_open(b->os, path, false, err);
}

static inline void blob_lane_close_auto(struct blob_lane *l) { blob_lane_close(l); }

static int64_t entry_bytes(int64_t size)
{
    return TAR_BLOCK + (size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
}

/* Of a store that several servers share the folder is only a cache. */
static void upload_fetch(struct backup *b, struct blob_lane *lane, const struct upload *u)
{
    struct blob_file f;
    struct err ignored = { 0 };
    bool whole = !blob_file_name(&f, b->os, arena_printf(b->mem, "%s/blobs", b->data), u->project,
                                 arena_printf(b->mem, "sha256:%s", u->hex), (uint64_t)b->made_ms, &ignored);
    for (int64_t n = 0; !whole && blob_part_fetch(lane, &f, u->project, n, &whole); n++)
        ;
    blob_file_drop(&f);
}

/* An upload that is not there is said to be missing; one that cannot be read at the moment is no backup. */
static bool measure(struct backup *b, struct err *err)
{
    bool shared = text_is(store_kind(b->store), "postgres");
    AUTO(blob_lane_close) struct blob_lane lane = { .store = b->store };
    b->size = b->spooled + BACKUP_END_BYTES;
    for (size_t i = 0; i < b->upload_count; i++) {
        struct upload *u = &b->uploads[i];
        struct err why = { 0 };
        struct disk_file *f = upload_open(b, u, &why);
        if (!f && shared) {
            upload_fetch(b, &lane, u);
            f = upload_open(b, u, &why);
        }
        u->missing = !f && why.rc == RC_NOT_FOUND;
        u->size = f ? disk_size(f) : 0;
        if (f)
            disk_close(f);
        if ((!f && !u->missing) || u->size < 0)
            return err_set(err, RC_UNAVAILABLE, "an upload cannot be read: %s", why.text);
        b->missing += u->missing;
        b->size += entry_bytes(u->size);
    }
    return true;
}

bool backup_rows(struct backup *b, struct err *err)
{
    static const struct dump_events events = { on_table, on_row };
    if (!file_remove(b->os, b->spool, err) || !(b->file = disk_open(b->os, b->spool, true, err)))
        return err_wrap(err, "the backup cannot be prepared");
    if (disk_free(b->os, b->spool) < reserve)
        return err_set(err, RC_OVER_QUOTA, "the server's disk has no room to prepare a backup");
    if (!store_dump(b->store, &events, b, &b->steps, err) || !part_end(b, err)
        || !spool_flush(b, err))
        return false;
    return measure(b, err);
}

void backup_stop(struct backup *b) { atomic_store(&b->stop, true); }
int64_t backup_size(const struct backup *b) { return b->size; }
size_t backup_missing(const struct backup *b) { return b->missing; }

/* --- out */

static bool read_some(struct backup *b, size_t most, int64_t size, struct str *out, struct err *err)
{
    size_t got = 0, want = (size_t)MIN((int64_t)most, size - b->at);
    if (fault("backup.read") || !disk_read(b->file, b->at, str_grow(out, want), want, &got)
        || got != want)
        return err_set(err, RC_UNAVAILABLE, "a file of the backup could not be read");
    out->len += got;
    out->at[out->len] = 0;
    b->at += (int64_t)got;
    return true;
}

/* The header, or what comes next of its bytes. */
static bool upload_piece(struct backup *b, size_t most, struct str *out, struct err *err)
{
    struct upload *u = &b->uploads[b->upload_at];
    char name[PATH];
    if (!b->file) {
        upload_name(u, u->missing ? "missing" : "blobs", name);
        backup_entry(out, name, u->size, b->made_ms);
        b->at = 0;
        if (u->missing)
            return b->upload_at++, true;
        if (!(b->file = upload_open(b, u, err)))
            return err_wrap(err, "an upload went away while it was backed up");
    }
    if (!read_some(b, most, u->size, out, err))
        return false;
    if (b->at == u->size) {
        tar_pad(out, u->size);
        disk_close(TAKE(b->file));
        b->upload_at++;
    }
    return true;
}

bool backup_piece(struct backup *b, size_t most, struct str *out, struct err *err)
{
    char hex[DIGEST_HEX];
    size_t before = out->len;
    if (!b->hash)
        return true;
    if (!b->spool_out) {
        if (!read_some(b, most, b->spooled, out, err))
            return false;
        if ((b->spool_out = b->at == b->spooled))
            disk_close(TAKE(b->file));
    } else if (b->upload_at < b->upload_count) {
        if (!upload_piece(b, most, out, err))
            return false;
    } else {
        sha256_end(TAKE(b->hash), hex);
        backup_end(out, hex, b->made_ms);
        return true;
    }
    sha256_add(b->hash, out->at + before, out->len - before);
    return true;
}
