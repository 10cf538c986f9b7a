/* postgres.c - the store in a PostgreSQL that others run, back up and replicate.
 *
 * A commit is one pipeline: BEGIN, the statements (rows of one kind together, postgres_many.c),
 * COMMIT, one sync, so that its time is one way there and back. A connection that was lost is opened again by the next call; a read is
 * then asked again, a commit never, because nobody knows what became of it. */
#include "store/postgres_internal.h"
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>

enum { BOOL_OID = 16, BYTEA_OID = 17, INT8_OID = 20, INT2_OID = 21, INT4_OID = 23 };
enum { TEXT_OID = 25, VARCHAR_OID = 1043, BYTEAS_OID = 1001, TEXTS_OID = 1009, INT8S_OID = 1016 };

/* --- errors */
static const struct { const char *state; enum rc rc; const char *text; } kinds[] = {
    /* The first that fits. */
    { "23", RC_CONFLICT, "it is there already, or breaks a rule of the store" },
    { "22", RC_BAD_INPUT, "PostgreSQL refuses a value" },
    { "25006", RC_UNAVAILABLE, "this PostgreSQL can only be read" },
    { "40", RC_UNAVAILABLE, "PostgreSQL gave way to another transaction" },
    { "53100", RC_UNAVAILABLE, "the disk is full" },
    { "53", RC_UNAVAILABLE, "PostgreSQL lacks memory or connections" },
    { "54", RC_TOO_LARGE, "a value is too large for PostgreSQL" },
    { "55P03", RC_UNAVAILABLE, "another process holds the store" },
    { "57014", RC_UNAVAILABLE, "PostgreSQL took too long" },
    { "57", RC_UNAVAILABLE, "PostgreSQL is away" },
    { "58", RC_UNAVAILABLE, "the disk of PostgreSQL failed" },
    { "XX001", RC_INTERNAL, STORE_DAMAGED },
    { "XX002", RC_INTERNAL, STORE_DAMAGED },
    { "08001", RC_UNAVAILABLE, "cannot connect to PostgreSQL" },
    { "08", RC_UNAVAILABLE, "PostgreSQL is away" },
};

static bool fails_with(const struct pg_conn *c, const char *state, const char *why, struct err *err)
{
    char text[200];
    snprintf(text, sizeof text, "%s", why);
    text[strcspn(text, "\n")] = 0;
    url_hide(c->base.store->where, text);
    for (size_t i = 0; state && i < COUNT(kinds); i++)
        if (text_starts(state, kinds[i].state))
            return err_set(err, kinds[i].rc, "%s (%s)", kinds[i].text, text);
    return err_set(err, RC_INTERNAL, "PostgreSQL: %s", text);
}

bool pg_fails(const struct pg_conn *c, const PGresult *r, struct err *err)
{
    const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE);
    const char *why = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);
    if (!state && PQstatus(c->db) == CONNECTION_BAD)
        state = "08006";
    return fails_with(c, state, why ? why : PQerrorMessage(c->db), err);
}

bool pg_succeeded(const PGresult *r)
{
    ExecStatusType s = PQresultStatus(r);
    return s == PGRES_COMMAND_OK || s == PGRES_TUPLES_OK;
}

/* --- a connection */
static void quiet(void *arg, const char *text) { (void)arg, (void)text; }

static void drop(struct pg_conn *c)
{
    PQfinish(c->db);
    c->db = NULL;
    c->fence = false;
}

static bool plain(struct pg_conn *c, const char *text, struct err *err)
{
    AUTO(PQclear) PGresult *r = PQexec(c->db, text);
    return pg_succeeded(r) || pg_fails(c, r, err);
}

/* What stands before dbname is ours unless the URL says otherwise; what stands behind it is ours
 * whatever the URL says. */
static bool dial(struct pg_conn *c, struct err *err)
{
    const struct { const char *key, *value; } options[] = {
        { "application_name", "arcus" },
        { "connect_timeout", "5" },
        { "keepalives_idle", "3" },
        { "keepalives_interval", "2" },
        { "keepalives_count", "3" },
        { "tcp_user_timeout", "6000" },
        { "gssencmode", "disable" },
        { "target_session_attrs", c->base.writes ? "read-write" : "any" },
        { "dbname", c->base.store->where },
        { "client_encoding", "UTF8" },
    };
    const char *keys[COUNT(options) + 1] = { 0 }, *values[COUNT(options) + 1] = { 0 };
    for (size_t i = 0; i < COUNT(options); i++)
        keys[i] = options[i].key, values[i] = options[i].value;
    if (store_fault("store.open", err))
        return false;
    c->db = PQconnectdbParams(keys, values, 1);
    if (PQstatus(c->db) != CONNECTION_OK) {
        fails_with(c, "08001", PQerrorMessage(c->db), err);
        drop(c);
        return false;
    }
    PQsetNoticeProcessor(c->db, quiet, NULL);
    return true;
}

/* A server that was told to answer before its disk has it is told otherwise: acknowledged means
 * durable. A plan for many rows that was made while a table was small must not walk it when it is
 * large: the writer finds every row by its key. Reads are planned for their very values: a plan for any project walks the whole log
 * for a project that is hardly in it (300 ms instead of 0.03). */
static bool settle(struct pg_conn *c, struct err *err)
{
    static const char reading[] = "SET default_transaction_read_only = on;"
                                  "SET plan_cache_mode = force_custom_plan";
    static const char writing[] = "SET default_transaction_read_only = off;"
                                  "SET enable_seqscan = off; SET enable_hashjoin = off;"
                                  "SET enable_mergejoin = off;"
                                  "SELECT set_config(name, 'on', false) FROM pg_settings WHERE "
                                  "name = 'synchronous_commit' AND setting IN ('off', 'local')";
    return plain(c, "SET statement_timeout = '30s'; SET lock_timeout = '10s';"
                    "SET idle_in_transaction_session_timeout = '60s'", err)
        && plain(c, c->base.writes ? writing : reading, err);
}

/* --- statements */
static void name_of(char out[static 16], int st, bool many)
{
    snprintf(out, 16, "%c%d", many ? 'm' : 's', st);
}

static Oid type_of(char t, bool many)
{
    if (many)
        return t == 'i' ? INT8S_OID : t == 't' ? TEXTS_OID : BYTEAS_OID;
    return t == 'i' ? INT8_OID : t == 't' ? TEXT_OID : BYTEA_OID;
}

static int types_of(const struct sql *q, bool many, Oid out[static STORE_ARGS])
{
    int n = 0;
    for (const char *t = q->types; *t; t++)
        out[n++] = type_of(*t, many);
    return n;
}

/* Without a limit of its own a statement gets ours, so that neither side gathers rows that would
 * be refused anyway. */
static void text_of(const struct sql *q, struct str *out)
{
    sql_for_postgres(q, out);
    if (sql_reads(q) && !strstr(q->text, " LIMIT "))
        str_printf(out, " LIMIT %d", STORE_ROWS + 1);
}

/* The columns we understand; VALUE_NULL: not this one. */
static enum value_type kind_of(Oid type)
{
    static const struct { Oid type; enum value_type kind; } all[] = {
        { INT8_OID, VALUE_INT },  { INT4_OID, VALUE_INT },  { INT2_OID, VALUE_INT },
        { BOOL_OID, VALUE_INT },  { TEXT_OID, VALUE_TEXT }, { VARCHAR_OID, VALUE_TEXT },
        { BYTEA_OID, VALUE_BLOB },
    };
    for (size_t i = 0; i < COUNT(all); i++)
        if (all[i].type == type)
            return all[i].kind;
    return VALUE_NULL;
}

static bool columns_ok(const PGresult *r, struct err *err)
{
    for (int i = 0; i < PQnfields(r); i++)
        if (kind_of(PQftype(r, i)) == VALUE_NULL)
            return err_set(err, RC_INTERNAL, "column %s is not integer, text or bytea: cast it",
                           PQfname(r, i));
    return true;
}

/* The next answer in a pipeline, without the NULLs between them; NULL: the connection is gone. */
static PGresult *next_answer(struct pg_conn *c)
{
    PGresult *r = PQgetResult(c->db);
    return r ? r : PQgetResult(c->db);
}

static bool prepared_ok(struct pg_conn *c, struct err *err)
{
    AUTO(PQclear) PGresult *made = next_answer(c);
    AUTO(PQclear) PGresult *told = next_answer(c);
    if (!pg_succeeded(made))
        return pg_fails(c, made, err);
    return pg_succeeded(told) ? columns_ok(told, err) : pg_fails(c, told, err);
}

static bool is_for(const struct pg_conn *c, int st)
{
    return c->base.writes || sql_reads(&c->base.store->statements.at[st]);
}

static bool has_many(const struct pg_conn *c, int st)
{
    return c->base.writes && ((const struct pg_kind *)c->base.store->inside)[st].many;
}

static bool send_prepare(struct pg_conn *c, int st, bool many)
{
    AUTO(str_done) struct str text = { 0 };
    const struct sql *q = &c->base.store->statements.at[st];
    Oid types[STORE_ARGS];
    char name[16];
    name_of(name, st, many);
    if (many)
        many_text(q, &text);
    else
        text_of(q, &text);
    return PQsendPrepare(c->db, name, text.at, types_of(q, many, types), types)
        && PQsendDescribePrepared(c->db, name);
}

static bool send_prepares(struct pg_conn *c)
{
    bool ok = PQenterPipelineMode(c->db);
    for (int i = 0; ok && i < c->base.store->statements.count; i++)
        ok = (!is_for(c, i) || send_prepare(c, i, false))
          && (!has_many(c, i) || send_prepare(c, i, true));
    return ok && PQpipelineSync(c->db);
}

static bool prepare_all(struct pg_conn *c, struct err *err)
{
    struct sql_list list = c->base.store->statements;
    if (!send_prepares(c))
        return pg_fails(c, NULL, err);
    for (int i = 0; i < list.count; i++)
        if ((is_for(c, i) && !prepared_ok(c, err)) || (has_many(c, i) && !prepared_ok(c, err)))
            return err_wrap(err, "statement %s", list.at[i].name);
    AUTO(PQclear) PGresult *sync = next_answer(c);
    if (PQresultStatus(sync) != PGRES_PIPELINE_SYNC || !PQexitPipelineMode(c->db))
        return pg_fails(c, sync, err);
    return c->prepared = true;
}

/* A server that went away has said so long before we ask: looking first (twice: its last words,
 * then the end) saves a commit whose fate would be unknown. */
bool pg_alive(struct pg_conn *c, struct err *err)
{
    if (c->db && PQconsumeInput(c->db) && PQconsumeInput(c->db) && PQstatus(c->db) == CONNECTION_OK)
        return true;
    drop(c);
    if (dial(c, err) && settle(c, err) && (!c->prepared || prepare_all(c, err))
        && (!c->base.epoch || lease_move(c, err)))
        return true;
    drop(c);
    return false;
}

/* --- values there */
struct packed {
    const char *at[STORE_ARGS];
    int lens[STORE_ARGS], formats[STORE_ARGS];
    int64_t numbers[STORE_ARGS];
};

static void pack(struct packed *p, const char *types, const struct value *args)
{
    for (int i = 0; types[i]; i++) {
        const struct value *v = &args[i];
        p->formats[i] = 1;
        p->numbers[i] = (int64_t)htobe64((uint64_t)v->n);
        p->lens[i] = v->type == VALUE_INT ? (int)sizeof v->n : (int)v->len;
        p->at[i] = v->type == VALUE_INT ? (const char *)&p->numbers[i] : v->len ? v->text : "";
        if (v->type == VALUE_NULL)
            p->at[i] = NULL;
    }
}

/* --- writing */
static bool send_plain(struct pg_conn *c, const char *text)
{
    return PQsendQueryParams(c->db, text, 0, NULL, NULL, NULL, NULL, 1);
}

static bool send_write(struct pg_conn *c, const struct write *w)
{
    struct packed p;
    char name[16];
    pack(&p, c->base.store->statements.at[w->st].types, w->args);
    name_of(name, (int)w->st, false);
    return PQsendQueryPrepared(c->db, name, w->count, p.at, p.lens, p.formats, 1);
}

static bool send_many(struct pg_conn *c, const struct pg_part *part, struct arena *mem)
{
    const struct write *w = part->first->write;
    const char *types = c->base.store->statements.at[w->st].types;
    struct packed p;
    char name[16];
    for (int i = 0; i < w->count; i++) {
        p.formats[i] = 1;
        p.at[i] = many_array(part, i, type_of(types[i], false), mem, &p.lens[i]);
    }
    name_of(name, (int)w->st, true);
    return PQsendQueryPrepared(c->db, name, w->count, p.at, p.lens, p.formats, 1);
}

/* False with *lost unset: a test failed it on this side, and the pipeline is still good. */
static bool send_all(struct pg_conn *c, const struct pg_parts *parts, struct arena *mem, bool *lost,
                     struct err *err)
{
    *lost = !PQenterPipelineMode(c->db) || !send_plain(c, "BEGIN")
            || (c->base.epoch && !lease_send_fence(c));
    for (size_t i = 0; !*lost && i < parts->count; i++) {
        const struct pg_part *p = &parts->at[i];
        for (size_t k = 0; k < p->count; k++)
            if (store_fault("store.step", err))
                return false;
        *lost = !(p->count > 1 ? send_many(c, p, mem) : send_write(c, p->first->write));
    }
    return !*lost && !store_fault("store.commit", err);
}

/* Reads the answers up to the sync: of BEGIN, the fence, the writes, and last of COMMIT; *unknown
 * when that one did not come. */
static bool read_all(struct pg_conn *c, const struct pg_parts *parts, bool *unknown,
                     struct err *err)
{
    bool ok = true;
    size_t first = c->base.epoch ? 2 : 1;
    for (size_t i = 0; i < first + parts->count + 1; i++) {
        AUTO(PQclear) PGresult *r = next_answer(c);
        bool last = i == first + parts->count;
        if (!ok || (pg_succeeded(r) && (!last || text_is(PQcmdStatus(r), "COMMIT"))))
            continue;                   /* once one has failed, PostgreSQL skips the others */
        ok = lease_fenced(r) && i == 1 && first == 2 ? fenced(err) : pg_fails(c, r, err);
        const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE);
        *unknown = !state || (last && (text_starts(state, "57") || text_starts(state, "08")));
        if (i >= first && !last)
            err_wrap(err, "%s",
                     c->base.store->statements.at[parts->at[i - first].first->write->st].name);
    }
    AUTO(PQclear) PGresult *sync = next_answer(c);
    if (PQresultStatus(sync) != PGRES_PIPELINE_SYNC)
        drop(c);                        /* what was answered counts; the connection is done with */
    return ok;
}

/* Leaves no transaction behind: on a connection that does not come back to rest, nothing more is
 * sent. */
static void come_to_rest(struct pg_conn *c)
{
    struct err ignored = { 0 };
    if (!c->db)
        return;
    bool rest = PQexitPipelineMode(c->db);
    if (rest && PQtransactionStatus(c->db) != PQTRANS_IDLE)
        rest = plain(c, "ROLLBACK", &ignored);
    if (!rest)
        drop(c);
}

static bool pg_commit(struct conn *base, const struct write *writes, size_t count, bool *unknown,
                      struct err *err)
{
    struct pg_conn *c = pg_inside(base);
    bool lost = false;
    if (store_fault("store.begin", err) || !pg_alive(c, err))
        return false;
    AUTO(arena_free) struct arena *mem = arena_new();
    struct pg_parts parts = many_parts(base->store, writes, count, mem);
    if (!send_all(c, &parts, mem, &lost, err)) {
        if (lost)
            pg_fails(c, NULL, err);
        drop(c);                        /* COMMIT was not sent, so the server rolls back */
        return false;
    }
    *unknown = true;                    /* from here on, until an answer says otherwise */
    bool ok = send_plain(c, "COMMIT") && PQpipelineSync(c->db);
    if (!ok) {
        pg_fails(c, NULL, err);
        drop(c);
        return false;
    }
    *unknown = false;
    ok = read_all(c, &parts, unknown, err);
    come_to_rest(c);
    return ok;
}

/* --- reading */
static int64_t number_at(const char *at, int len)
{
    uint64_t n = len && at[0] & 0x80 && len > 1 ? ~0ULL : 0;        /* carries the sign up */
    for (int i = 0; i < len; i++)
        n = n << 8 | (unsigned char)at[i];
    return (int64_t)n;
}

static struct value value_at(const PGresult *r, int row, int i)
{
    struct value v = { .type = kind_of(PQftype(r, i)), .text = PQgetvalue(r, row, i) };
    if (PQgetisnull(r, row, i))
        return (struct value){ 0 };
    if (v.type == VALUE_INT)
        return V_INT(number_at(v.text, PQgetlength(r, row, i)));
    v.len = (size_t)PQgetlength(r, row, i);
    return v;
}

static bool gather_answer(struct gather *g, const PGresult *r, struct err *err)
{
    g->columns = PQnfields(r);
    for (int row = 0; row < PQntuples(r); row++) {
        bool ok = gather_row(g, err);
        for (int i = 0; i < g->columns && ok; i++)
            ok = gather_value(g, value_at(r, row, i), err);
        if (!ok)
            return false;
    }
    return true;
}

static bool pg_query(struct conn *base, int st, const struct value *args, struct arena *mem,
                     struct rows *out, struct err *err)
{
    struct pg_conn *c = pg_inside(base);
    const struct sql *q = &base->store->statements.at[st];
    struct packed p;
    char name[16];
    int count = (int)strlen(q->types);
    name_of(name, st, false);
    pack(&p, q->types, args);
    for (bool again = true;; again = false) {
        if (store_fault("store.query", err) || !pg_alive(c, err))
            return err_wrap(err, "%s", q->name);
        AUTO(PQclear) PGresult *r = PQexecPrepared(c->db, name, count, p.at, p.lens, p.formats, 1);
        if (!pg_succeeded(r) && again && PQstatus(c->db) == CONNECTION_BAD)
            continue;
        AUTO(gather_done) struct gather g = { .mem = mem };
        if (pg_succeeded(r) ? !gather_answer(&g, r, err) : !pg_fails(c, r, err))
            return err_wrap(err, "%s", q->name);
        *out = gather_rows(&g);
        return true;
    }
}

/* Row by row, so that nobody holds a table in memory. Not on a connection that was opened again: its
 * transaction would be another. */
static bool scan_rows(struct pg_conn *c, scan_fn *on_row, void *arg, struct err *err)
{
    struct value values[STORE_ARGS];
    for (;;) {
        AUTO(PQclear) PGresult *r = PQgetResult(c->db);
        if (PQresultStatus(r) == PGRES_TUPLES_OK)       /* the end of them, without a row */
            return true;
        if (PQresultStatus(r) != PGRES_SINGLE_TUPLE)
            return pg_fails(c, r, err);
        int count = MIN(PQnfields(r), STORE_ARGS);
        for (int i = 0; i < count; i++)
            values[i] = value_at(r, 0, i);
        if (store_fault("store.query", err) || !columns_ok(r, err)
            || !on_row(arg, values, count, err))
            return false;
    }
}

static bool pg_scan(struct conn *base, const char *text, scan_fn *on_row, void *arg,
                    struct err *err)
{
    struct pg_conn *c = pg_inside(base);
    if (store_fault("store.query", err))
        return false;
    bool ok = c->db && send_plain(c, text) && PQsetSingleRowMode(c->db) ? scan_rows(c, on_row, arg, err)
                                                                      : pg_fails(c, NULL, err);
    if (!ok) {
        drop(c);                        /* the rest of the answer is not read */
        return false;
    }
    PQclear(PQgetResult(c->db));        /* NULL: it is at rest */
    return true;
}

static bool load_sent(struct pg_conn *c, const struct pg_parts *parts, struct arena *mem)
{
    bool ok = PQtransactionStatus(c->db) == PQTRANS_INTRANS && PQenterPipelineMode(c->db);
    for (size_t i = 0; ok && i < parts->count; i++)
        ok = parts->at[i].count > 1 ? send_many(c, &parts->at[i], mem)
                                    : send_write(c, parts->at[i].first->write);
    return ok && PQpipelineSync(c->db);
}

static bool pg_load(struct conn *base, const struct write *writes, size_t count, struct err *err)
{
    struct pg_conn *c = pg_inside(base);
    if (store_fault("store.step", err))
        return false;
    AUTO(arena_free) struct arena *mem = arena_new();
    struct pg_parts parts = many_parts(base->store, writes, count, mem);
    bool ok = (c->db && load_sent(c, &parts, mem)) || pg_fails(c, NULL, err);
    for (size_t i = 0; ok && i < parts.count; i++) {
        AUTO(PQclear) PGresult *r = next_answer(c);
        if (!pg_succeeded(r))
            ok = pg_fails(c, r, err);
    }
    AUTO(PQclear) PGresult *sync = ok ? next_answer(c) : NULL;
    if (ok && PQresultStatus(sync) == PGRES_PIPELINE_SYNC && PQexitPipelineMode(c->db))
        return true;
    if (ok)
        pg_fails(c, sync, err);
    drop(c);                            /* and the server rolls back */
    return false;
}

/* --- the rest of the table */
static bool pg_open(struct store *s, struct err *err)
{
    if (os_is_simulated(s->os))
        return err_set(err, RC_BAD_INPUT, "a simulated machine reaches no PostgreSQL");
    s->inside = many_kinds(s->statements);
    return libpq_load(err) && url_check(s->where, err);
}

static void pg_close(struct store *s) { free(s->inside); }

static void pg_conn_close(struct conn *c)
{
    drop(pg_inside(c));
    free(pg_inside(c));
}

static bool pg_conn_open(struct store *s, bool writes, struct conn **out, struct err *err)
{
    struct pg_conn *c = calloc(1, sizeof *c);
    if (!c)
        abort();
    c->base = (struct conn){ .store = s, .writes = writes };
    if (!pg_alive(c, err)) {
        free(c);
        return false;
    }
    *out = &c->base;
    return true;
}

static bool pg_prepare(struct conn *c, struct err *err)
{
    return !store_fault("store.prepare", err) && prepare_all(pg_inside(c), err);
}

static bool pg_run(struct conn *c, const char *text, struct err *err)
{
    return !store_fault("store.step", err) && plain(pg_inside(c), text, err);
}

static bool pg_number(struct conn *base, const char *text, int64_t *out, struct err *err)
{
    struct pg_conn *c = pg_inside(base);
    if (store_fault("store.query", err))
        return false;
    if (c->prepared && !pg_alive(c, err))  /* not amid a migration: its transaction would be gone */
        return false;
    AUTO(PQclear) PGresult *r = PQexec(c->db, text);
    if (!pg_succeeded(r))
        return pg_fails(c, r, err);
    if (PQntuples(r) != 1 || PQgetisnull(r, 0, 0))
        return err_set(err, RC_INTERNAL, "the store did not answer with a number");
    *out = strtoll(PQgetvalue(r, 0, 0), NULL, 10);
    return true;
}

const struct backend postgres_backend = {
    .kind = "postgres",
    .open = pg_open,
    .close = pg_close,
    .conn_open = pg_conn_open,
    .conn_close = pg_conn_close,
    .prepare = pg_prepare,
    .commit = pg_commit,
    .query = pg_query,
    .run = pg_run,
    .number = pg_number,
    .self = pg_self,
    .holder = pg_holder,
    .evict = pg_evict,
    /* The number spells arcus. A step may take long on a large table; waiting for another server
     * that migrates may not. */
    .begin_alone = "BEGIN; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = '60s';"
                   "SET LOCAL idle_in_transaction_session_timeout = 0;"
                   "SELECT pg_advisory_xact_lock(418530948467)",
    .begin_snapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = 0",
    .columns = "SELECT c.table_name::text, c.column_name::text, c.data_type::text "
               "FROM information_schema.columns c WHERE c.table_schema = current_schema() "
               "ORDER BY c.table_name, c.ordinal_position",
    .scan = pg_scan,
    .load = pg_load,
};
