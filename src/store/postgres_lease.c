/* postgres_lease.c - the lease where PostgreSQL keeps it: a holder is known by the pid of its
 * backend and the moment that backend began, since pids come again.
 *
 * A commit is one pipeline, sent before any answer is read. So the check of the epoch divides by
 * the number of rows that it finds: no row is an error, and an error undoes the transaction. The row
 * is locked for share until the end, so that nobody raises the epoch between check and commit. */
#include "store/postgres_internal.h"
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>

#define MICROS "CAST(extract(epoch FROM backend_start) * 1000000 AS BIGINT)"

bool lease_send_fence(struct pg_conn *c)
{
    int64_t epoch = (int64_t)htobe64((uint64_t)c->base.epoch);
    return PQsendQueryPrepared(c->db, "fence", 1, (const char *const[]){ (const char *)&epoch },
                               (const int[]){ sizeof epoch }, (const int[]){ 1 }, 1);
}

static bool prepare_fence(struct pg_conn *c, struct err *err)
{
    static const char text[] = "SELECT 1 / (SELECT COUNT(*) FROM (SELECT 1 FROM writer WHERE one = 1"
                               " AND epoch = CAST($1 AS BIGINT) FOR SHARE) AS held)";
    if (c->fence)
        return true;
    AUTO(PQclear) PGresult *r = PQprepare(c->db, "fence", text, 0, NULL);
    return (c->fence = pg_succeeded(r)) || pg_fails(c, r, err);
}

bool lease_fenced(const PGresult *r)
{
    const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE);
    return text_is(state, "22012");
}

/* With texts and numbers of ours alone. */
static PGresult *ask(struct pg_conn *c, const char *text, int64_t a, int64_t b, int64_t d, int count)
{
    char texts[3][24];
    const char *const args[] = { texts[0], texts[1], texts[2] };
    snprintf(texts[0], sizeof texts[0], "%lld", (long long)a);
    snprintf(texts[1], sizeof texts[1], "%lld", (long long)b);
    snprintf(texts[2], sizeof texts[2], "%lld", (long long)d);
    return PQexecParams(c->db, text, count, NULL, args, NULL, NULL, 0);
}

static int64_t number(const PGresult *r, int column)
{
    return PQntuples(r) == 1 ? strtoll(PQgetvalue(r, 0, column), NULL, 10) : 0;
}

static bool self(struct pg_conn *c, int64_t *pid, int64_t *since, struct err *err)
{
    AUTO(PQclear) PGresult *r = ask(
        c, "SELECT pid, " MICROS " FROM pg_stat_activity WHERE pid = pg_backend_pid()", 0, 0, 0, 0);
    if (!pg_succeeded(r))
        return pg_fails(c, r, err);
    *pid = number(r, 0);
    *since = number(r, 1);
    return true;
}

bool pg_self(struct conn *base, int64_t *pid, int64_t *since, struct err *err)
{
    struct pg_conn *c = pg_inside(base);
    return pg_alive(c, err) && prepare_fence(c, err) && self(c, pid, since, err);
}

/* What was sent over the connection before may still be on its way to its backend: that one is
 * ended first, and waited for, so that what became of it is settled. */
bool lease_move(struct pg_conn *c, struct err *err)
{
    int64_t pid, since;
    if (!prepare_fence(c, err) || !self(c, &pid, &since, err))
        return false;
    AUTO(PQclear) PGresult *old
        = ask(c, "SELECT pg_terminate_backend(a.pid, 5000) FROM pg_stat_activity a, writer w WHERE"
                 " w.one = 1 AND w.epoch = $1 AND a.pid = w.pid AND " MICROS " = w.since"
                 " AND a.pid <> pg_backend_pid()", c->base.epoch, 0, 0, 1);
    if (!pg_succeeded(old))
        return pg_fails(c, old, err);
    AUTO(PQclear) PGresult *r
        = ask(c, "UPDATE writer SET pid = $2, since = $3 WHERE one = 1 AND epoch = $1",
              c->base.epoch, pid, since, 3);
    if (!pg_succeeded(r))
        return pg_fails(c, r, err);
    return text_is(PQcmdTuples(r), "1") || fenced(err);
}

bool pg_holder(struct conn *base, int64_t pid, int64_t since, enum holder *out, struct err *err)
{
    struct pg_conn *c = pg_inside(base);
    if (!pg_alive(c, err))
        return false;
    AUTO(PQclear) PGresult *r
        = ask(c, "SELECT CASE WHEN state = 'active' AND COALESCE(wait_event_type, '') <> 'Client'"
                 " THEN 2 ELSE 1 END FROM pg_stat_activity WHERE pid = $1 AND " MICROS " = $2",
              pid, since, 0, 2);
    if (!pg_succeeded(r))
        return pg_fails(c, r, err);
    return *out = (enum holder)number(r, 0), true;
}

bool pg_evict(struct conn *base, int64_t pid, int64_t since, struct err *err)
{
    struct pg_conn *c = pg_inside(base);
    if (!pg_alive(c, err))
        return false;
    AUTO(PQclear) PGresult *r = ask(
        c, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND " MICROS " = $2"
           " AND pid <> pg_backend_pid()", pid, since, 0, 2);
    return pg_succeeded(r) || pg_fails(c, r, err);
}
