/* sqlite.c - the store in one file. WAL, so that readers never wait for the writer, and
 * synchronous=FULL, so that a commit that returned survives a power cut.
 *
 * Every connection has its own handle. On a simulated machine everything is one thread, so all
 * connections of a server share one handle (sqlite_vfs.c). */
#include "store/sqlite_internal.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    CACHE_KIB_WRITER = 8 * 1024,
    CACHE_KIB_READER = 2 * 1024,
    ONE_TEXT = 128,
};

struct sqlite {
    char *uri;
    sqlite3_vfs *vfs;
    struct handle shared;
    sqlite3_stmt **late;                /* of all connections of a simulated server */
    struct handle first;                /* closed last: else a server that starts would copy the whole log back and make it anew, again and again */
};
struct sqlite_conn {
    struct conn base;
    struct handle own, *h;              /* h: own, or the shared one */
    struct wal *wal;                    /* of a writer on a real machine */
    sqlite3_stmt **st, *begin, *commit, *rollback, *fence;
    struct { char *text; sqlite3_stmt *st; } numbers[8];    /* what a simulation asks for over and over */
};

static struct sqlite_conn *inside(struct conn *c) { return CONTAINER(c, struct sqlite_conn, base); }

/* --- errors */
static const struct { int code; enum rc rc; const char *text; } kinds[] = {
    { SQLITE_CONSTRAINT, RC_CONFLICT, "it is there already, or breaks a rule of the store" },
    { SQLITE_FULL, RC_UNAVAILABLE, "the disk is full" },
    { SQLITE_BUSY, RC_UNAVAILABLE, "another process holds the store" },
    { SQLITE_LOCKED, RC_UNAVAILABLE, "another process holds the store" },
    { SQLITE_IOERR, RC_UNAVAILABLE, "the disk of the store failed" },
    { SQLITE_NOMEM, RC_UNAVAILABLE, "out of memory" },
    { SQLITE_PROTOCOL, RC_UNAVAILABLE, "another process holds the store" },
    { SQLITE_TOOBIG, RC_TOO_LARGE, "a value is too large for the store" },
    { SQLITE_READONLY, RC_UNAVAILABLE, "the store's file or folder cannot be written" },
    { SQLITE_CANTOPEN, RC_NOT_FOUND, "the store's file cannot be opened" },
    { SQLITE_CORRUPT, RC_INTERNAL, STORE_DAMAGED },
    { SQLITE_NOTADB, RC_INTERNAL, STORE_DAMAGED },
};

bool sqlite_fails(sqlite3 *db, int rc, struct err *err)
{
    const char *why = db && sqlite3_errcode(db) ? sqlite3_errmsg(db) : sqlite3_errstr(rc);
    int code = rc & 0xff;
    if (code == SQLITE_IOERR && db && sqlite3_system_errno(db) == ENOSPC)
        code = SQLITE_FULL;
    if (code == SQLITE_CANTOPEN && db && sqlite3_system_errno(db))
        why = strerror(sqlite3_system_errno(db));
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (kinds[i].code == code)
            return err_set(err, kinds[i].rc, "%s (%s)", kinds[i].text, why);
    return err_set(err, RC_INTERNAL, "the store failed: %s", why);
}

/* --- a handle */
static int on_wal(void *arg, sqlite3 *db, const char *name, int pages)
{
    (void)db, (void)name;
    ((struct handle *)arg)->wal_pages = pages;
    return SQLITE_OK;
}

static bool run_on(sqlite3 *db, const char *text, struct err *err)
{
    if (store_fault("store.step", err))
        return false;
    int rc = sqlite3_exec(db, text, NULL, NULL, NULL);
    return rc == SQLITE_OK || sqlite_fails(db, rc, err);
}

static int one_text(void *arg, int columns, char **texts, char **names)
{
    (void)columns, (void)names;
    snprintf(arg, ONE_TEXT, "%s", texts[0] ? texts[0] : "");
    return 0;
}

/* Another process that starts at the same moment may hold the file while it turns on the WAL,
 * and SQLite does not wait for that. */
static bool wal_on(sqlite3 *db, struct err *err)
{
    int rc = SQLITE_BUSY;
    char mode[ONE_TEXT] = "";
    for (int waited = 0; rc == SQLITE_BUSY && waited < STORE_WAIT_MS; waited += 20) {
        if (waited)
            sqlite3_sleep(20);
        rc = sqlite3_exec(db, "PRAGMA journal_mode=WAL", one_text, mode, NULL) & 0xff;
    }
    if (rc != SQLITE_OK)
        return sqlite_fails(db, rc, err);
    if (strcmp(mode, "wal"))
        return err_set(err, RC_UNAVAILABLE, "this file system cannot hold a write-ahead log");
    return true;
}

static bool handle_setup(sqlite3 *db, bool simulated, bool writes, struct err *err)
{
    char text[320];
    snprintf(text, sizeof text,
             "PRAGMA synchronous=FULL; PRAGMA foreign_keys=OFF;"
             "PRAGMA temp_store=MEMORY; PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON;"
             "PRAGMA cache_size=-%d; PRAGMA journal_size_limit=%d; PRAGMA query_only=%s",
             writes ? CACHE_KIB_WRITER : CACHE_KIB_READER,
             WAL_PAGES_MOST * 4096, writes ? "OFF" : "ON");
    sqlite3_extended_result_codes(db, 1);
    sqlite3_busy_timeout(db, STORE_WAIT_MS);
    /* A simulated machine that crashed is closed too, and that must not touch its disk any more. */
    if (simulated)
        sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    /* Small pages: what a commit costs there is their bytes, and thousands of clouds are simulated in a minute. */
    return (!simulated || run_on(db, "PRAGMA page_size=1024", err)) && run_on(db, text, err)
           && wal_on(db, err);
}

bool handle_open(struct store *s, bool writes, struct handle *h, struct err *err)
{
    struct sqlite *in = s->inside;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX;
    if (store_fault("store.open", err))
        return false;
    int rc = sqlite3_open_v2(in->uri, &h->db, flags, in->vfs ? in->vfs->zName : NULL);
    bool ok = rc == SQLITE_OK || sqlite_fails(h->db, rc, err);
    ok = ok && handle_setup(h->db, in->vfs, writes, err);
    if (!ok) {
        sqlite3_close(h->db);
        h->db = NULL;
        return err_wrap(err, "%s", s->where);
    }
    h->wal_patience = WAL_PAGES_MOST;
    sqlite3_wal_hook(h->db, on_wal, h);
    return true;
}

static bool step_number(sqlite3 *db, sqlite3_stmt *st, int64_t *out, struct err *err)
{
    int rc = st ? sqlite3_step(st) : sqlite3_errcode(db);
    bool ok = rc == SQLITE_ROW && sqlite3_column_type(st, 0) == SQLITE_INTEGER;
    if (ok)
        *out = sqlite3_column_int64(st, 0);
    else if (rc == SQLITE_ROW || rc == SQLITE_DONE)
        err_set(err, RC_INTERNAL, "the store did not answer with a number");
    else
        sqlite_fails(db, rc, err);
    sqlite3_reset(st);
    return ok;
}

static bool number_of(sqlite3 *db, const char *text, int64_t *out, struct err *err)
{
    sqlite3_stmt *st = NULL;
    sqlite3_prepare_v2(db, text, -1, &st, NULL);
    bool ok = step_number(db, st, out, err);
    sqlite3_finalize(st);
    return ok;
}

static bool undamaged(sqlite3 *db, struct err *err)
{
    int64_t pages, size;
    return number_of(db, "PRAGMA page_count", &pages, err) && number_of(db, "PRAGMA page_size", &size, err)
           && sqlite_undamaged(db, pages * size, err);
}

/* --- the store */
static char *uri_of(const char *path)
{
    struct str uri = { 0 };
    str_text(&uri, "file:");
    for (const char *p = path; *p; p++)
        if (strchr("?#%", *p))
            str_printf(&uri, "%%%02x", (unsigned char)*p);
        else
            str_char(&uri, *p);
    /* SQLite would make the file readable by all, less the umask, which belongs to every thread.
     * It can take the mode of another file instead, and this one is always 0600. */
    str_text(&uri, "?modeof=/proc/self/mem");
    return uri.at;
}

static void statements_free(struct store *s, sqlite3_stmt **st)
{
    for (int i = 0; st && i < s->statements.count; i++)
        sqlite3_finalize(st[i]);
    free(st);
}

static void sqlite_close(struct store *s)
{
    struct sqlite *in = s->inside;
    if (!in)
        return;
    statements_free(s, in->late);
    sqlite3_close(in->shared.db);
    sqlite3_close(in->first.db);
    sqlite_vfs_free(in->vfs);
    free(in->uri);
    free(in);
}

static bool sqlite_open(struct store *s, struct err *err)
{
    struct sqlite *in = calloc(1, sizeof *in);
    if (!in)
        abort();
    s->inside = in;
    in->uri = uri_of(s->where);
    struct handle own = { 0 }, *h = &own;
    if (os_is_simulated(s->os)) {
        in->vfs = sqlite_vfs_new(s->os);
        h = &in->shared;
    }
    bool ok = (in->vfs || handle_open(s, true, &in->first, err)) && handle_open(s, true, h, err);
    ok = ok && (undamaged(h->db, err) || err_wrap(err, "%s", s->where));
    sqlite3_close(own.db);
    return ok;
}

/* --- connections */
static void sqlite_conn_close(struct conn *base)
{
    struct sqlite_conn *c = inside(base);
    wal_free(c->wal);
    if (c->st != ((struct sqlite *)base->store->inside)->late)
        statements_free(base->store, c->st);
    sqlite3_finalize(c->begin);
    sqlite3_finalize(c->commit);
    sqlite3_finalize(c->rollback);
    sqlite3_finalize(c->fence);
    for (size_t i = 0; i < COUNT(c->numbers); i++) {
        sqlite3_finalize(c->numbers[i].st);
        free(c->numbers[i].text);
    }
    sqlite3_close(c->own.db);
    free(c);
}

static bool sqlite_conn_open(struct store *s, bool writes, struct conn **out, struct err *err)
{
    struct sqlite *in = s->inside;
    struct sqlite_conn *c = calloc(1, sizeof *c);
    if (!c)
        abort();
    c->base = (struct conn){ .store = s, .writes = writes };
    c->h = in->vfs ? &in->shared : &c->own;
    if (!in->vfs && !handle_open(s, writes, &c->own, err)) {
        free(c);
        return false;
    }
    if (!in->vfs && writes)
        c->wal = wal_new(s);
    *out = &c->base;
    return true;
}

static bool prepare_one(struct sqlite_conn *c, const char *text, sqlite3_stmt **out,
                        struct err *err)
{
    int rc = sqlite3_prepare_v3(c->h->db, text, -1, SQLITE_PREPARE_PERSISTENT, out, NULL);
    return rc == SQLITE_OK || sqlite_fails(c->h->db, rc, err);
}

/* Simulated servers start by the thousand: theirs are prepared at their first use. */
static bool prepare_late(struct sqlite_conn *c, int n, struct err *err)
{
    return c->st[n] || prepare_one(c, c->base.store->statements.at[n].text, &c->st[n], err);
}

static bool sqlite_prepare(struct conn *base, struct err *err)
{
    struct sqlite_conn *c = inside(base);
    struct sql_list list = base->store->statements;
    struct sqlite *in = base->store->inside;
    bool late = in->vfs;
    if (store_fault("store.prepare", err))
        return false;
    c->st = in->late ? in->late : calloc((size_t)list.count + 1, sizeof *c->st);
    if (!c->st)
        abort();
    if (late)
        in->late = c->st;
    for (int i = 0; !late && i < list.count; i++)
        if ((base->writes || sql_reads(&list.at[i]))
            && !prepare_one(c, list.at[i].text, &c->st[i], err))
            return err_wrap(err, "statement %s", list.at[i].name);
    if (!base->writes)
        return true;
    return prepare_one(c, "BEGIN IMMEDIATE", &c->begin, err)
        && prepare_one(c, "COMMIT", &c->commit, err)
        && prepare_one(c, "ROLLBACK", &c->rollback, err);
}

static int bind_one(sqlite3_stmt *st, int at, const struct value *v)
{
    switch (v->type) {
    case VALUE_INT:
        return sqlite3_bind_int64(st, at, v->n);
    case VALUE_TEXT:
        return sqlite3_bind_text64(st, at, v->text, v->len, SQLITE_STATIC, SQLITE_UTF8);
    case VALUE_BLOB:
        return v->len ? sqlite3_bind_blob64(st, at, v->text, v->len, SQLITE_STATIC)
                      : sqlite3_bind_zeroblob(st, at, 0);
    default:
        return sqlite3_bind_null(st, at);
    }
}

static int bind_all(sqlite3_stmt *st, const char *types, const struct value *args)
{
    int rc = SQLITE_OK;
    for (int i = 0; types[i] && rc == SQLITE_OK; i++)
        rc = bind_one(st, i + 1, &args[i]);
    return rc;
}

/* --- writing */
static bool step_done(struct sqlite_conn *c, sqlite3_stmt *st, int rc, struct err *err)
{
    if (rc == SQLITE_OK)
        rc = sqlite3_step(st);
    bool ok = rc == SQLITE_DONE || sqlite_fails(c->h->db, rc, err);
    sqlite3_reset(st);
    return ok;
}

static bool write_all(struct sqlite_conn *c, const struct write *writes, size_t count,
                      struct err *err)
{
    const struct sql *list = c->base.store->statements.at;
    for (size_t i = 0; i < count; i++) {
        const struct write *w = &writes[i];
        if (store_fault("store.step", err) || !prepare_late(c, (int)w->st, err))
            return err_wrap(err, "%s", list[w->st].name);
        sqlite3_stmt *st = c->st[w->st];
        if (!step_done(c, st, bind_all(st, list[w->st].types, w->args), err))
            return err_wrap(err, "%s", list[w->st].name);
    }
    return true;
}

/* Prepared at its first use: a store that nobody leases may have no such table. */
static bool epoch_holds(struct sqlite_conn *c, struct err *err)
{
    if (!c->base.epoch)
        return true;
    if (!c->fence
        && !prepare_one(c, "SELECT epoch FROM writer WHERE one = 1 AND epoch = ?1", &c->fence, err))
        return false;
    sqlite3_bind_int64(c->fence, 1, c->base.epoch);
    int rc = sqlite3_step(c->fence);
    sqlite3_reset(c->fence);
    return rc == SQLITE_ROW || (rc == SQLITE_DONE ? fenced(err) : sqlite_fails(c->h->db, rc, err));
}

static bool commit_now(struct sqlite_conn *c, bool *unknown, struct err *err)
{
    if (store_fault("store.commit", err))
        return false;
    int rc = sqlite3_step(c->commit);
    bool ok = rc == SQLITE_DONE || sqlite_fails(c->h->db, rc, err);
    sqlite3_reset(c->commit);
    /* The frames may be on the disk although the sync failed, and a crash before they are
     * overwritten would bring them back. */
    *unknown = !ok && (rc & 0xff) == SQLITE_IOERR;
    return ok;
}

static bool sqlite_commit(struct conn *base, const struct write *writes, size_t count,
                          bool *unknown, struct err *err)
{
    struct sqlite_conn *c = inside(base);
    if (store_fault("store.begin", err) || !step_done(c, c->begin, SQLITE_OK, err))
        return false;
    if (epoch_holds(c, err) && write_all(c, writes, count, err) && commit_now(c, unknown, err)) {
        wal_trim(c->wal, c->h);
        return true;
    }
    struct err ignored = { 0 };         /* the first reason counts; some have rolled back already */
    if (!sqlite3_get_autocommit(c->h->db) && !step_done(c, c->rollback, SQLITE_OK, &ignored))
        return err_wrap(err, "not rolled back");
    return false;
}

/* --- reading */
static bool column(struct gather *g, sqlite3_stmt *st, int i, struct err *err)
{
    struct value v = { 0 };
    switch (sqlite3_column_type(st, i)) {
    case SQLITE_NULL:
        break;
    case SQLITE_INTEGER:
        v = V_INT(sqlite3_column_int64(st, i));
        break;
    case SQLITE_FLOAT:
        return err_set(err, RC_INTERNAL, "column %s is not a whole number",
                       sqlite3_column_name(st, i));
    default:
        v.type = sqlite3_column_type(st, i) == SQLITE_TEXT ? VALUE_TEXT : VALUE_BLOB;
        v.text = sqlite3_column_blob(st, i);
        v.len = (size_t)sqlite3_column_bytes(st, i);
    }
    return gather_value(g, v, err);
}

static bool row(struct gather *g, sqlite3_stmt *st, struct err *err)
{
    bool ok = gather_row(g, err);
    for (int i = 0; i < g->columns && ok; i++)
        ok = column(g, st, i, err);
    return ok;
}

static bool sqlite_query(struct conn *base, int n, const struct value *args, struct arena *mem,
                         struct rows *out, struct err *err)
{
    struct sqlite_conn *c = inside(base);
    const struct sql *q = &base->store->statements.at[n];
    if (store_fault("store.query", err) || !prepare_late(c, n, err))
        return false;
    sqlite3_stmt *st = c->st[n];
    AUTO(gather_done) struct gather g = { .mem = mem, .columns = sqlite3_column_count(st) };
    int rc = bind_all(st, q->types, args);
    bool ok = true;
    if (rc == SQLITE_OK)
        while (ok && (rc = sqlite3_step(st)) == SQLITE_ROW)
            ok = row(&g, st, err);
    if (ok)
        ok = rc == SQLITE_DONE || sqlite_fails(c->h->db, rc, err);
    sqlite3_reset(st);
    if (!ok)
        return err_wrap(err, "%s", q->name);
    *out = gather_rows(&g);
    return true;
}

static struct value value_of(sqlite3_stmt *st, int i)
{
    switch (sqlite3_column_type(st, i)) {
    case SQLITE_NULL:
        return (struct value){ 0 };
    case SQLITE_INTEGER:
        return V_INT(sqlite3_column_int64(st, i));
    default:
        return (struct value){ .type = sqlite3_column_type(st, i) == SQLITE_BLOB ? VALUE_BLOB : VALUE_TEXT,
                               .text = sqlite3_column_blob(st, i),
                               .len = (size_t)sqlite3_column_bytes(st, i) };
    }
}

static bool sqlite_scan(struct conn *base, const char *text, scan_fn *on_row, void *arg,
                        struct err *err)
{
    sqlite3 *db = inside(base)->h->db;
    struct value values[STORE_ARGS];
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(db, text, -1, &st, NULL), count = sqlite3_column_count(st);
    bool ok = rc == SQLITE_OK || sqlite_fails(db, rc, err);
    while (ok && count <= STORE_ARGS && !store_fault("store.query", err)
           && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        for (int i = 0; i < count; i++)
            values[i] = value_of(st, i);
        ok = on_row(arg, values, count, err);
    }
    ok = ok && (rc == SQLITE_DONE || (rc != SQLITE_ROW && rc != SQLITE_OK && sqlite_fails(db, rc, err)));
    sqlite3_finalize(st);
    return ok;
}

static bool sqlite_load(struct conn *base, const struct write *writes, size_t count,
                        struct err *err)
{
    return write_all(inside(base), writes, count, err);
}

static bool sqlite_run(struct conn *c, const char *text, struct err *err)
{
    return run_on(inside(c)->h->db, text, err);
}

static bool sqlite_number(struct conn *base, const char *text, int64_t *out, struct err *err)
{
    struct sqlite_conn *c = inside(base);
    bool keep = ((struct sqlite *)base->store->inside)->vfs;
    if (store_fault("store.query", err))
        return false;
    for (size_t i = 0; keep && i < COUNT(c->numbers); i++) {
        if (!c->numbers[i].text && prepare_one(c, text, &c->numbers[i].st, err))
            c->numbers[i].text = strdup(text);
        if (text_is(c->numbers[i].text, text))
            return step_number(c->h->db, c->numbers[i].st, out, err);
    }
    return number_of(c->h->db, text, out, err);
}

/* Nobody can tell one handle on the file from another, and none can be paused inside a transaction
 * for long: the others would wait for its lock. So there is nobody to end. */
static bool sqlite_self(struct conn *c, int64_t *pid, int64_t *since, struct err *err)
{
    (void)c, (void)err;
    return *pid = *since = 1, true;
}

static bool sqlite_holder(struct conn *c, int64_t pid, int64_t since, enum holder *out,
                          struct err *err)
{
    (void)c, (void)pid, (void)since, (void)err;
    return *out = HOLDER_SILENT, true;
}

static bool sqlite_evict(struct conn *c, int64_t pid, int64_t since, struct err *err)
{
    return (void)c, (void)pid, (void)since, (void)err, true;
}

const struct backend sqlite_backend = {
    .kind = "sqlite",
    .open = sqlite_open,
    .close = sqlite_close,
    .conn_open = sqlite_conn_open,
    .conn_close = sqlite_conn_close,
    .prepare = sqlite_prepare,
    .commit = sqlite_commit,
    .query = sqlite_query,
    .run = sqlite_run,
    .number = sqlite_number,
    .self = sqlite_self,
    .holder = sqlite_holder,
    .evict = sqlite_evict,
    .begin_alone = "BEGIN IMMEDIATE",
    .begin_snapshot = "BEGIN",
    .columns = "SELECT m.name, p.name, p.type FROM sqlite_master m JOIN pragma_table_info(m.name) p "
               "WHERE m.type = 'table' ORDER BY m.name, p.cid",
    .scan = sqlite_scan,
    .load = sqlite_load,
};
