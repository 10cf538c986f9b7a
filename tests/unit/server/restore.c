/* restore.c - a cloud's rows and uploads out of one data folder and into another, whatever fails on the way. */
#include "server/restore.h"
#include "api/backup_make.h"
#include "base/fault.h"
#include "base/id.h"
#include "control/control.h"
#include "model/prefix.h"
#include "tap.h"
#include <stdio.h>
#include <stdlib.h>

static const char upload[] = "bytes that somebody uploaded";

struct place {
    struct os *os;
    struct arena *mem;
    char folder[40];
    const char *from, *to, *file;
    struct store *store;
    struct err err;
};

static bool commit(struct place *p, enum statement st, const struct value *args, int count)
{
    AUTO(conn_close) struct conn *c = NULL;
    bool unknown;
    return conn_open(p->store, true, &c, &p->err)
           && store_commit(c, &(struct write){ st, count, args }, 1, &unknown, &p->err);
}

static void place_open(struct place *p)
{
    bool made;
    char hex[DIGEST_HEX], id[ID_TEXT];
    *p = (struct place){ .folder = "/tmp/arcus-restore.XXXXXX", .mem = arena_new() };
    CHECK(mkdtemp(p->folder) && digest_start() && (p->os = os_real_new(&p->err)));
    p->from = arena_printf(p->mem, "%s/from", p->folder);
    p->to = arena_printf(p->mem, "%s/to", p->folder);
    p->file = arena_printf(p->mem, "%s/backup", p->folder);
    CHECK(dir_make(p->os, p->from, 0700, &p->err));
    CHECK(store_open(p->os, arena_printf(p->mem, "%s/arcus.db", p->from), &p->store, &p->err));
    CHECK(control_bootstrap(p->os, p->store, arena_printf(p->mem, "%s/keys", p->from),
                            arena_printf(p->mem, "%s/admin.key", p->from), &made, &p->err) && made);
    digest_sha256(upload, sizeof upload, hex);
    const char *blobs = arena_printf(p->mem, "%s/blobs/%s", p->from, id_text(id, PREFIX_PROJECT, 77));
    CHECK(dir_make(p->os, blobs, 0700, &p->err)
          && file_replace(p->os, arena_printf(p->mem, "%s/%s", blobs, hex),
                          (struct slice){ upload, sizeof upload }, 0600, &p->err));
    struct value there[] = { V_INT(77), V_TEXT(arena_printf(p->mem, "sha256:%s", hex)), V_INT(sizeof upload), V_INT(1) };
    struct value gone[] = { V_INT(78), V_TEXT(arena_printf(p->mem, "sha256:%s", hex)), V_INT(5), V_INT(1) };
    CHECK(commit(p, ST_BLOB_ADD, there, 4) && commit(p, ST_BLOB_ADD, gone, 4));
}

static void wipe(const char *path)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", path);
    CHECK(system(command) == 0);
}

static void place_close(struct place *p)
{
    store_close(p->store);
    os_free(p->os);
    wipe(p->folder);
    arena_free(p->mem);
}

static bool make(struct place *p)
{
    AUTO(str_done) struct str all = { 0 };
    AUTO(backup_free) struct backup *b
        = backup_new(p->os, p->store, p->from, arena_printf(p->mem, "%s/spool", p->folder), "test");
    if (!backup_rows(b, &p->err))
        return false;
    for (size_t before = 1; before != all.len;) {
        before = all.len;
        if (!backup_piece(b, 700, &all, &p->err))
            return false;
    }
    fault_arm(0);                       /* what follows is the test's own */
    CHECK((int64_t)all.len == backup_size(b) && backup_missing(b) == 1);
    return file_replace(p->os, p->file, (struct slice){ all.at, all.len }, 0600, &p->err);
}

static bool restore(struct place *p, struct restore_told *told)
{
    return dir_make(p->os, p->to, 0700, &p->err)
           && restore_run(p->os, &(struct restore){ .file = p->file, .data = p->to }, told, &p->err);
}

static int64_t count(struct place *p, const char *table)
{
    AUTO(store_close) struct store *s = NULL;
    AUTO(conn_close) struct conn *c = NULL;
    struct err err = { 0 };
    bool ok = store_open(p->os, arena_printf(p->mem, "%s/arcus.db", p->to), &s, &err)
              && conn_open(s, false, &c, &err);
    return ok ? store_count(c, table) : -1;
}

static bool upload_there(struct place *p)
{
    char hex[DIGEST_HEX], id[ID_TEXT];
    struct slice bytes;
    digest_sha256(upload, sizeof upload, hex);
    return file_read(p->os, arena_printf(p->mem, "%s/blobs/%s/%s", p->to, id_text(id, PREFIX_PROJECT, 77), hex), 1000,
                     p->mem, &bytes, &p->err)
           && bytes.len == sizeof upload && memcmp(bytes.at, upload, bytes.len) == 0;
}

/* A server on the copy, with the keys of this folder: does it know them for its own? */
static bool starts(struct place *p, const char *data)
{
    AUTO(store_close) struct store *s = NULL;
    bool made;
    return store_open(p->os, arena_printf(p->mem, "%s/arcus.db", p->to), &s, &p->err)
           && control_bootstrap(p->os, s, arena_printf(p->mem, "%s/keys", data), arena_printf(p->mem, "%s/other.key", p->to), &made, &p->err) && !made;
}

TEST(a_restored_cloud_has_every_row_and_every_upload_of_the_one_that_was_backed_up)
{
    struct place p;
    struct restore_told told;
    place_open(&p);
    CHECK(make(&p) && restore(&p, &told));
    CHECK(told.uploads == 1 && told.missing == 1 && told.rows > 6 && text_is(told.arcus, "test"));
    CHECK(count(&p, "person") == 1 && count(&p, "blob") == 2 && count(&p, "event") == 1 && count(&p, "restored") == 1);
    CHECK(upload_there(&p));
    CHECK(!disk_exists(p.os, arena_printf(p.mem, "%s/keys", p.to)));
    CHECK(!starts(&p, p.to) && p.err.rc == RC_CONFLICT && strstr(p.err.text, "keys") && !disk_exists(p.os, arena_printf(p.mem, "%s/keys/hash.key", p.to)));
    CHECK(starts(&p, p.from));
    CHECK(!restore(&p, &told) && p.err.rc == RC_CONFLICT && strstr(p.err.text, "not empty"));
    place_close(&p);
}

TEST(a_backup_whose_nth_operation_fails_is_no_backup_and_leaves_nothing)
{
    struct place p;
    int n = 1;
    place_open(&p);
    for (bool fired = true; fired; n++) {
        fault_arm(n);
        bool ok = make(&p);
        fired = !ok;
        fault_arm(0);
        CHECK(!disk_exists(p.os, arena_printf(p.mem, "%s/spool", p.folder)));
        if (!ok)
            CHECK(!disk_exists(p.os, p.file));
        else
            CHECK(file_remove(p.os, p.file, &p.err));
    }
    CHECK(n > 30);
    place_close(&p);
}

TEST(a_restore_whose_nth_operation_fails_has_happened_or_not_and_can_be_done_again)
{
    struct place p;
    struct restore_told told;
    int n = 1;
    place_open(&p);
    CHECK(make(&p));
    for (bool fired = true; fired; n++) {
        fault_arm(n);
        bool ok = restore(&p, &told);
        fired = fault_fired();
        fault_arm(0);
        CHECK(ok || fired);
        if (!disk_exists(p.os, p.to))
            continue;
        int64_t persons = count(&p, "person");
        CHECK(persons == 0 || persons == 1);
        CHECK(count(&p, "event") == persons && count(&p, "restored") == persons && (!ok || persons));
        if (persons)                    /* it has happened, and its last words were lost */
            wipe(p.to);
    }
    CHECK(n > 30);
    CHECK(restore(&p, &told) && upload_there(&p));
    place_close(&p);
}

TEST(a_file_that_is_not_whole_touches_nothing)
{
    struct place p;
    struct restore_told told;
    struct slice bytes;
    place_open(&p);
    CHECK(make(&p) && file_read(p.os, p.file, 1 << 20, p.mem, &bytes, &p.err));
    for (size_t i = 0; i < bytes.len; i += 509) {
        char *copy = arena_bytes(p.mem, bytes.at, bytes.len);
        copy[i] = (char)(copy[i] ^ 4);
        CHECK(file_replace(p.os, p.file, (struct slice){ copy, bytes.len }, 0600, &p.err) && !restore(&p, &told));
        CHECK(file_replace(p.os, p.file, (struct slice){ bytes.at, i }, 0600, &p.err) && !restore(&p, &told)
              && strstr(p.err.text, "cut off"));
    }
    CHECK(!disk_exists(p.os, arena_printf(p.mem, "%s/arcus.db", p.to)));
    CHECK(!disk_exists(p.os, arena_printf(p.mem, "%s/blobs", p.to)));
    place_close(&p);
}
