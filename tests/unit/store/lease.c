#include "place.h"
#include "base/fault.h"
#include <libpq-fe.h>
#include <stdio.h>
#include <unistd.h>

/* Two servers on one store: each with its own connection, as if it were another process. */
struct two { struct store *store; struct conn *a, *b; };

static bool two_open(struct place *p, struct two *t)
{
    *t = (struct two){ 0 };
    return store_open(p->os, p->where, &t->store, &p->err) && conn_open(t->store, true, &t->a, &p->err)
        && conn_open(t->store, true, &t->b, &p->err);
}

static void two_close_auto(struct two *t)
{
    conn_close(t->a);
    conn_close(t->b);
    store_close(t->store);
}

static struct lease look(struct place *p, struct conn *c)
{
    struct lease l = { .epoch = -1 };
    CHECK(store_lease_look(c, &l, &p->err));
    return l;
}

static bool take(struct place *p, struct conn *c, int64_t server)
{
    struct lease seen = look(p, c);
    return store_lease_take(c, &seen, server, "http://there", &p->err);
}

static bool write_org(struct place *p, struct conn *c, int64_t id)
{
    char name[32];
    bool unknown;
    snprintf(name, sizeof name, "org%lld", (long long)id);
    struct value args[] = { V_INT(id), V_TEXT(name), V_INT(1) };
    p->err = (struct err){ 0 };
    bool ok = store_commit(c, &(struct write){ ST_ORG_ADD, 3, args }, 1, &unknown, &p->err);
    CHECK(!unknown);
    return ok;
}

BOTH_CLOSED(the_lease_is_free_until_somebody_takes_it_and_again_when_it_is_given_up)
{
    AUTO(two_close) struct two t;
    CHECK(two_open(p, &t));
    CHECK(look(p, t.a).server == 0 && look(p, t.a).epoch == 0);
    CHECK(take(p, t.a, 7));
    struct lease l = look(p, t.b);
    CHECK(l.server == 7 && l.epoch == 1 && text_is(l.address, "http://there"));
    CHECK(store_lease_renew(t.a, "http://here", &p->err));
    CHECK(look(p, t.b).renewed == l.renewed + 1 && text_is(look(p, t.b).address, "http://here"));
    CHECK(store_lease_check(t.a, &p->err));
    CHECK(store_lease_drop(t.a, &p->err));
    CHECK(look(p, t.b).server == 0 && look(p, t.b).epoch == 1);
}

BOTH_CLOSED(a_writer_whose_lease_was_taken_commits_nothing_any_more)
{
    AUTO(two_close) struct two t;
    CHECK(two_open(p, &t));
    CHECK(take(p, t.a, 1) && write_org(p, t.a, 1));
    CHECK(take(p, t.b, 2) && write_org(p, t.b, 2));
    CHECK(!write_org(p, t.a, 3));                   /* where its connection was ended too, that may be what it hears first */
    CHECK(!store_lease_renew(t.a, "http://here", &p->err) && p->err.rc == RC_NOT_WRITER);
    CHECK(!store_lease_check(t.a, &p->err) && p->err.rc == RC_NOT_WRITER);
    CHECK(!write_org(p, t.a, 3) && p->err.rc == RC_NOT_WRITER);
    CHECK(store_count(t.b, "org") == 2 && look(p, t.b).server == 2);
    store_lease_forget(t.a);
    CHECK(take(p, t.a, 3) && write_org(p, t.a, 3) && look(p, t.a).epoch == 3);
    CHECK(!write_org(p, t.b, 4) && !write_org(p, t.b, 4) && p->err.rc == RC_NOT_WRITER);
    CHECK(store_count(t.a, "org") == 3);
}

BOTH_CLOSED(of_two_that_saw_the_same_lease_one_takes_it)
{
    AUTO(two_close) struct two t;
    CHECK(two_open(p, &t));
    struct lease seen = look(p, t.a);
    CHECK(store_lease_take(t.b, &seen, 2, "", &p->err));
    CHECK(!store_lease_take(t.a, &seen, 1, "", &p->err) && p->err.rc == RC_CONFLICT);
    CHECK(write_org(p, t.b, 1) && look(p, t.a).server == 2);
}

BOTH_CLOSED(wherever_a_taking_fails_one_of_the_two_has_the_lease)
{
    AUTO(two_close) struct two t;
    CHECK(two_open(p, &t) && take(p, t.a, 1));
    for (int nth = 1;; nth++) {
        struct lease seen = look(p, t.b);
        fault_arm(nth);
        bool ok = store_lease_take(t.b, &seen, 2 + nth, "", &p->err);
        bool fired = fault_fired();
        fault_arm(0);
        CHECK(ok || fired);
        int64_t holder = look(p, t.b).server;
        CHECK(holder == (ok ? 2 + nth : 1) || (fired && holder == 2 + nth));
        CHECK(!ok || !write_org(p, t.a, 100 + nth));
        if (!fired)
            break;
        store_lease_forget(t.a);
        store_lease_forget(t.b);
        CHECK(take(p, t.a, 1));
    }
}

/* A process that was stopped inside its transaction: the row is locked, and nothing more comes. */
static PGconn *paused_in_transaction(struct place *p, int64_t epoch)
{
    PGconn *db = PQconnectdb(p->where);
    char text[200];
    CHECK(PQstatus(db) == CONNECTION_OK);
    PQclear(PQexec(db, "BEGIN"));
    snprintf(text, sizeof text, "SELECT 1 FROM writer WHERE epoch = %lld FOR SHARE", (long long)epoch);
    PGresult *r = PQexec(db, text);
    CHECK(PQntuples(r) == 1);
    PQclear(r);
    PQclear(PQexec(db, "INSERT INTO org (id, name, created_ms) VALUES (99, 'late', 1)"));
    return db;
}

ON_CLOSED("postgres", a_writer_that_was_paused_inside_its_transaction_is_ended_and_commits_nothing)
{
    AUTO(two_close) struct two t;
    CHECK(two_open(p, &t) && take(p, t.a, 1));
    PGconn *late = paused_in_transaction(p, t.a->epoch);
    struct lease seen = look(p, t.b);
    seen.pid = PQbackendPID(late);
    CHECK(number(p, t.b, "SELECT COUNT(*) FROM org") == 0);
    char text[200];
    snprintf(text, sizeof text,
             "SELECT CAST(extract(epoch FROM backend_start) * 1000000 AS BIGINT) FROM pg_stat_activity WHERE pid = %lld",
             (long long)seen.pid);
    seen.since = number(p, t.b, text);
    int64_t began = os_boot_ms(p->os);
    CHECK(store_lease_take(t.b, &seen, 2, "", &p->err));
    CHECK(os_boot_ms(p->os) - began < 25000);       /* it did not wait for the lock of the paused one: a statement may take 30 s */
    PGresult *r = PQexec(late, "COMMIT");
    CHECK(PQresultStatus(r) != PGRES_COMMAND_OK);
    PQclear(r);
    PQfinish(late);
    CHECK(store_count(t.b, "org") == 0 && write_org(p, t.b, 1));
}

/* Its backend answers before it says of itself that it has nothing to do. */
static bool falls_silent(struct place *p, struct conn *by, struct lease *l)
{
    enum holder holder = HOLDER_GONE;
    for (int i = 0; i < 6000; i++, usleep(10000))
        if (!store_lease_holder(by, l, &holder, &p->err) || holder == HOLDER_SILENT)
            break;
    return holder == HOLDER_SILENT;
}

ON_CLOSED("postgres", a_writer_that_lost_its_connection_keeps_its_lease_and_one_that_lost_both_is_told)
{
    AUTO(two_close) struct two t;
    enum holder holder;
    CHECK(two_open(p, &t) && take(p, t.a, 1) && write_org(p, t.a, 1));
    struct lease l = look(p, t.b);
    CHECK(falls_silent(p, t.b, &l));
    CHECK(t.store->how->evict(t.b, l.pid, l.since, &p->err));
    bool gone = false;
    for (int i = 0; i < 6000 && !gone; i++, usleep(10000))
        gone = store_lease_holder(t.b, &l, &holder, &p->err) && holder == HOLDER_GONE;
    CHECK(gone);
    /* Over a new connection. The old one's backend leaves the list before its socket is closed: a write between hears that it broke. */
    CHECK(write_org(p, t.a, 2) || write_org(p, t.a, 2));
    struct lease after = look(p, t.b);
    CHECK(after.epoch == l.epoch && after.server == 1 && (after.pid != l.pid || after.since != l.since));
    CHECK(falls_silent(p, t.b, &after));
    CHECK(take(p, t.b, 2));                         /* ends the connection of a, and its lease */
    CHECK(!write_org(p, t.a, 3) && !write_org(p, t.a, 3) && p->err.rc == RC_NOT_WRITER);
    CHECK(store_count(t.b, "org") == 2);
}

/* Nothing ended its connection; only the epoch has changed, as for one whose backend could not be ended. */
BOTH_CLOSED(the_epoch_alone_stops_a_writer)
{
    AUTO(two_close) struct two t;
    CHECK(two_open(p, &t) && take(p, t.a, 1) && write_org(p, t.a, 1));
    CHECK(run(p, t.b, "UPDATE writer SET epoch = epoch + 1, server = 2"));
    CHECK(!write_org(p, t.a, 2) && p->err.rc == RC_NOT_WRITER);
    struct value one[] = { V_INT(3), V_TEXT("org3"), V_INT(1) }, two[] = { V_INT(4), V_TEXT("org4"), V_INT(1) };
    struct write writes[] = { { ST_ORG_ADD, 3, one }, { ST_ORG_ADD, 3, two } };
    bool unknown = true;
    CHECK(!store_commit(t.a, writes, 2, &unknown, &p->err) && !unknown && p->err.rc == RC_NOT_WRITER);
    CHECK(store_count(t.b, "org") == 1);
    p->err = (struct err){ 0 };
}

BOTH_CLOSED(a_holder_that_does_not_count_its_commits_is_known_by_that)
{
    AUTO(two_close) struct two t;
    bool unknown;
    CHECK(two_open(p, &t) && !look(p, t.b).counted);
    CHECK(take(p, t.a, 1) && look(p, t.b).counted);
    int64_t before = look(p, t.b).renewed;
    struct value one[] = { V_INT(1) };
    CHECK(store_commit(t.a, &(struct write){ ST_LEASE_COUNT, 1, one }, 1, &unknown, &p->err) && look(p, t.b).renewed == before + 1);
    CHECK(run(p, t.b, "UPDATE writer SET epoch = epoch + 1, renewed = renewed + 1, server = 2"));   /* as the version before takes it */
    CHECK(!look(p, t.b).counted);
}
