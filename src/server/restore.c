#include "server/restore.h"
#include "api/blob_file.h"
#include "base/id.h"
#include "model/prefix.h"
#include "store/dump.h"
#include "wire/backup.h"
#include <stdio.h>
#include <stdlib.h>

enum { READ_BYTES = 1 << 20, HEAD_MOST = 64 * 1024, NAME_MOST = 200 };

enum entry { ENTRY_HEAD, ENTRY_TABLE, ENTRY_UPLOAD, ENTRY_MISSING };
static const struct { enum entry kind; const char *begins; int64_t most; } entries[] = {
    { ENTRY_HEAD, BACKUP_HEAD, HEAD_MOST },
    { ENTRY_TABLE, "tables/", BACKUP_PART_MOST },
    { ENTRY_UPLOAD, "blobs/", INT64_MAX },
    { ENTRY_MISSING, "missing/", 0 },
};

struct restoring {
    struct os *os;
    const struct restore *how;
    const char *where, *blobs;
    bool check;                         /* the first reading: nothing is written */
    struct restore_told *told;
    struct load *load;
    enum entry kind;
    char name[NAME_MOST];               /* of the entry: a table, or PROJECT/HEX */
    struct str text;                    /* its bytes, if they are rows or the head */
    struct blob_file upload;
    int64_t project, part;              /* of the upload, where the store keeps uploads too */
    bool shared;
};

enum { PART = 256 * 1024 };
static const struct store_table parts
    = { STORE_PARTS, 5, { "project", "digest", "n", "at_ms", "bytes" }, "itiib" };

/* Several servers may share the store, and this folder belongs to one of them. */
static bool part_add(struct restoring *r, struct err *err)
{
    char digest[80];
    snprintf(digest, sizeof digest, "sha256:%s", r->upload.hex);
    struct value values[] = { V_INT(r->project), V_TEXT(digest), V_INT(r->part++), V_INT(os_wall_ms(r->os)),
                              value_blob(r->text.at, r->text.len) };
    bool ok = !r->text.len || load_row(r->load, &parts, values, err);
    str_clear(&r->text);
    return ok;
}

/* --- entries */

static bool upload_begin(struct restoring *r, struct err *err)
{
    char *slash = strchr(r->name, '/');
    int64_t project;
    if (slash)
        *slash = 0;
    if (!slash || !id_parse(r->name, PREFIX_PROJECT, &project))
        return err_set(err, RC_BAD_INPUT, "it has an upload of no project");
    const char *digest = slash + 1;
    char text[NAME_MOST + 8];
    snprintf(text, sizeof text, "sha256:%s", digest);
    if (!blob_file_name(&r->upload, r->os, r->blobs, project, text, 0, err))
        return false;
    r->project = project;
    r->part = 0;
    r->shared = r->load && load_has(r->load, STORE_PARTS)
                && (text_starts(r->where, "postgres://") || text_starts(r->where, "postgresql://"));
    if (!r->check)
        blob_file_create(&r->upload);
    return !r->upload.failed || (*err = r->upload.err, false);
}

static bool on_entry(void *arg, const struct tar_entry *e, struct err *err)
{
    struct restoring *r = arg;
    size_t i = 0;
    while (i < COUNT(entries) && !text_starts(e->name, entries[i].begins))
        i++;
    if (i == COUNT(entries) || e->size > entries[i].most
        || !text_copy(r->name, sizeof r->name, e->name + strlen(entries[i].begins)))
        return err_set(err, RC_BAD_INPUT, "'%.80s' does not belong into a backup", e->name);
    r->kind = entries[i].kind;
    str_clear(&r->text);
    if (r->kind == ENTRY_MISSING)
        r->told->missing += r->check;
    return r->kind != ENTRY_UPLOAD || upload_begin(r, err);
}

static bool on_data(void *arg, const char *at, size_t n, struct err *err)
{
    struct restoring *r = arg;
    if (r->kind != ENTRY_UPLOAD)
        return str_put(&r->text, at, n), true;
    if (!r->check)
        blob_file_add(&r->upload, (struct slice){ at, n });
    if (r->shared)
        str_put(&r->text, at, n);
    if (r->text.len >= PART && !part_add(r, err))
        return false;
    return !r->upload.failed || (*err = r->upload.err, false);
}

static bool head_end(struct restoring *r, struct err *err)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct backup_head head;
    if (r->load)
        return err_set(err, RC_BAD_INPUT, "it has a second head");
    if (!backup_head_read((struct slice){ r->text.at, r->text.len }, mem, &head, err))
        return false;
    if (r->check) {
        r->told->made_ms = head.made_ms;
        snprintf(r->told->arcus, sizeof r->told->arcus, "%s", head.arcus);
        return true;
    }
    return load_begin(r->os, r->where, head.steps, &r->load, err);
}

static struct slice next_line(struct slice *rest)
{
    const char *end = memchr(rest->at, '\n', rest->len);
    struct slice line = { rest->at, end ? (size_t)(end - rest->at) : rest->len };
    size_t used = line.len + (end != NULL);
    *rest = (struct slice){ rest->at + used, rest->len - used };
    return line;
}

/* tables/NAME/000001.jsonl */
static bool table_end(struct restoring *r, struct err *err)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct slice rest = { r->text.at, r->text.len };
    struct store_table t;
    struct value values[TABLE_COLUMNS];
    r->name[strcspn(r->name, "/")] = 0;
    if (!r->load)
        return err_set(err, RC_BAD_INPUT, "its head is missing");
    if (!rest.len || !table_read(next_line(&rest), r->name, mem, &t, err))
        return err_wrap(err, "table %.60s", r->name);
    while (rest.len) {
        AUTO(arena_free) struct arena *row = arena_new();
        if (!row_read(next_line(&rest), &t, row, values, err)
            || !load_row(r->load, &t, values, err))
            return err_wrap(err, "table %.60s", r->name);
        r->told->rows++;
    }
    return true;
}

static bool upload_end(struct restoring *r, struct err *err)
{
    if (!part_add(r, err))
        return false;
    blob_file_finish(&r->upload);
    r->told->uploads++;
    return !r->upload.failed || (*err = r->upload.err, false);
}

static bool on_entry_end(void *arg, struct err *err)
{
    struct restoring *r = arg;
    if (r->kind == ENTRY_HEAD)
        return head_end(r, err);
    if (r->check || r->kind == ENTRY_MISSING)
        return true;
    return r->kind == ENTRY_TABLE ? table_end(r, err) : upload_end(r, err);
}

/* --- the file */

static bool read_through(struct restoring *r, struct disk_file *f, struct err *err)
{
    static const struct tar_events events = { on_entry, on_data, on_entry_end };
    AUTO(backup_reader_free) struct backup_reader *reader = backup_reader_new(&events, r);
    AUTO(arena_free) struct arena *mem = arena_new();
    char *buffer = ARENA_ARRAY(mem, char, READ_BYTES);
    int64_t at = 0, size = disk_size(f);
    while (at < size) {
        size_t got = 0;
        if (!disk_read(f, at, buffer, READ_BYTES, &got) || !got)
            return err_set(err, RC_UNAVAILABLE, "it cannot be read");
        if (!backup_feed(reader, buffer, got, err))
            return false;
        at += (int64_t)got;
    }
    return backup_whole(reader, err);
}

static bool read_twice(struct restoring *r, struct disk_file *f, struct err *err)
{
    r->check = true;
    if (!read_through(r, f, err))
        return err_wrap(err, "%s", r->how->file);
    r->check = false;
    return read_through(r, f, err) && load_commit(r->load, os_wall_ms(r->os), err);
}

bool restore_run(struct os *os, const struct restore *how, struct restore_told *out,
                 struct err *err)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct restore_told told = { 0 };
    struct restoring r = { .os = os,
                           .how = how,
                           .told = &told,
                           .blobs = arena_printf(mem, "%s/blobs", how->data),
                           .where = how->store ? how->store : arena_printf(mem, "%s/arcus.db", how->data) };
    struct disk_file *f = disk_open(os, how->file, false, err);
    if (!f)
        return false;
    bool ok = (digest_start() || err_set(err, RC_INTERNAL, "libsodium does not start"))
              && read_twice(&r, f, err);
    disk_close(f);
    blob_file_drop(&r.upload);
    load_free(r.load);
    str_done(&r.text);
    if (!ok)
        return false;
    /* The steps that came after the backup was made run as they would have run there. */
    struct store *s;
    if (!store_open(os, r.where, &s, err))
        return err_wrap(err, "the rows are restored, but the schema could not be brought up to date");
    store_close(s);
    *out = told;
    return true;
}
