#include "api/blob_parts.h"
#include <stdio.h>

#define GONE "the blob's file is gone from this server, and the store has no whole copy of it"
enum { PART = 256 * 1024 };
static const int64_t day_ms = INT64_C(86400) * 1000;

static bool fail(struct blob_file *f, const struct err *why)
{
    f->failed = true;
    f->err = *why;
    return false;
}

/* What an upload left that was never completed goes after a day. */
static bool lane_open(struct blob_lane *l, struct blob_file *f)
{
    struct err err = { 0 };
    bool unknown;
    if (l->conn)
        return true;
    if (!l->store ? !err_set(&err, RC_INTERNAL, GONE) : !conn_open(l->store, true, &l->conn, &err))
        return fail(f, &err);
    struct value args[] = { V_INT(os_wall_ms(f->os) - day_ms) };
    return store_commit(l->conn, &(struct write){ ST_BLOB_PART_SWEEP, 1, args }, 1, &unknown, &err)
           || fail(f, &err);
}

void blob_lane_close(struct blob_lane *l) { conn_close(TAKE(l->conn)); }

static const char *digest_of(const struct blob_file *f, char out[static 80])
{
    snprintf(out, 80, "sha256:%s", f->hex);
    return out;
}

bool blob_part_keep(struct blob_lane *l, struct blob_file *f, int64_t project, int64_t n, bool *whole)
{
    AUTO(str_done) struct str bytes = { 0 };
    struct err err = { 0 };
    char digest[80];
    bool unknown;
    if (n == 0)
        blob_file_open(f);
    if (f->failed || !lane_open(l, f))
        return false;
    *whole = f->at >= f->size;
    if (*whole)
        return true;
    blob_file_read(f, &bytes, PART);
    if (f->failed)
        return false;
    struct value args[] = { V_INT(project), V_TEXT(digest_of(f, digest)), V_INT(n), V_INT(os_wall_ms(f->os)),
                            value_blob(bytes.at, bytes.len) };
    return store_commit(l->conn, &(struct write){ ST_BLOB_PART_ADD, 5, args }, 1, &unknown, &err) || fail(f, &err);
}

bool blob_part_fetch(struct blob_lane *l, struct blob_file *f, int64_t project, int64_t n, bool *whole)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct rows r;
    struct err err = { 0 };
    char digest[80];
    if (n == 0)
        blob_file_create(f);
    if (f->failed || !lane_open(l, f))
        return false;
    struct value args[] = { V_INT(project), V_TEXT(digest_of(f, digest)), V_INT(n) };
    if (!store_query(l->conn, ST_BLOB_PART_GET, args, 3, mem, &r, &err))
        return fail(f, &err);
    *whole = r.count == 0;
    if (*whole)
        blob_file_finish(f);            /* its digest tells whether that was all */
    else
        blob_file_add(f, (struct slice){ r.at[0].text, r.at[0].len });
    if (f->failed && *whole && !err_set(&err, RC_INTERNAL, GONE))
        return fail(f, &err);
    return !f->failed;
}
