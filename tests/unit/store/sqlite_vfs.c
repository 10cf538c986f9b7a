#include "place.h"
#include "base/fault.h"
#include "base/rand.h"
#include "os/sim.h"
#include <stdio.h>

/* A server's life on a simulated machine: opened, written to in batches, crashed, opened again. */
struct life {
    struct sim *w;
    struct os *os;
    struct store *store;
    struct conn *conn;
    struct err err;
};

enum { BATCH = 40 };
static const char path[] = "/data/store.db";

static bool life_begin(struct life *l)
{
    l->os = sim_machine(l->w, "server");
    if (!dir_make(l->os, "/data", 0700, &l->err))
        return false;
    return store_open_with(l->os, path, thing_steps, thing_statements, &l->store, &l->err)
           && conn_open(l->store, true, &l->conn, &l->err);
}

static void life_end(struct life *l, bool crash)
{
    if (crash)
        sim_crash(l->w, l->os);
    conn_close(TAKE(l->conn));
    store_close(TAKE(l->store));
    if (!crash)
        sim_crash(l->w, l->os);
}

static bool life_commit(struct life *l, int64_t first, int count, const char *text, bool *unknown)
{
    struct value args[BATCH][4];
    struct write writes[BATCH];
    for (int i = 0; i < count; i++) {
        args[i][0] = V_INT(first + i), args[i][1] = V_TEXT(text), args[i][2] = (struct value){ 0 },
        args[i][3] = V_INT(count);
        writes[i] = (struct write){ (enum statement)THING_ADD, 4, args[i] };
    }
    return store_commit(l->conn, writes, (size_t)count, unknown, &l->err);
}

/* The rows 1..n, all of them, or -1. */
static int64_t life_rows(struct life *l)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct rows r;
    if (!store_query(l->conn, (enum statement)THING_ALL, NULL, 0, mem, &r, &l->err))
        return -1;
    for (size_t i = 0; i < r.count; i++)
        if (row_int(&r, i, 0) != (int64_t)i + 1)
            return -1;
    return (int64_t)r.count;
}

/* Random batches; with faults, a random disk operation fails now and then, as it would when the
 * power goes amid it. */
static void lives(uint64_t seed, bool faults)
{
    AUTO(sim_free) struct sim *w = sim_new(seed);
    struct rng rng = { seed };
    char text[2000];
    int64_t sure = 0, maybe = 0; /* rows acknowledged; rows whose commit ended as unknown */
    memset(text, 't', sizeof text - 1);
    text[sizeof text - 1] = 0;
    for (int n = 0; n < 6; n++) {
        struct life l = { .w = w };
        CHECK(life_begin(&l));
        int64_t rows = l.conn ? life_rows(&l) : -1;
        CHECK(rows == sure || rows == sure + maybe);
        if (rows < 0) {
            printf("# seed %lu, life %d: %ld rows, %ld acknowledged, %ld unknown: %s\n", seed, n,
                   rows, sure, maybe, l.err.text);
            life_end(&l, true);
            return;
        }
        sure = rows, maybe = 0;
        bool fired = false;
        for (uint64_t k = rng_below(&rng, 40); k && !fired; k--) {
            int count = 1 + (int)rng_below(&rng, BATCH);
            bool unknown = false;
#ifdef FAULTS
            fault_arm(faults && rng_below(&rng, 4) == 0 ? 1 + (int)rng_below(&rng, 120) : 0);
#endif
            bool ok
                = life_commit(&l, sure + 1, count, text + rng_below(&rng, sizeof text), &unknown);
#ifdef FAULTS
            fired = fault_fired();
            fault_arm(0);
#endif
            CHECK((ok && !unknown) || (faults && l.err.rc == RC_UNAVAILABLE));
            sure += ok ? count : 0;
            maybe = unknown ? count : 0;
            CHECK(ok || life_rows(&l) == sure); /* not seen, and the connection lives on */
        }
        life_end(&l, rng_below(&rng, 3) > 0);
    }
}

TEST(a_crash_loses_nothing_that_was_committed)
{
    for (uint64_t seed = 1; seed <= 10; seed++)
        lives(seed, false);
}

#ifdef FAULTS
TEST(a_disk_that_fails_and_then_a_crash_leave_all_that_was_acknowledged)
{
    for (uint64_t seed = 1; seed <= 25; seed++)
        lives(seed, true);
}

/* Every disk operation of one commit in turn, and a crash right behind it, or behind one more
 * commit: that one must work, and then the failed one is gone for good. */
static int fail_at(int nth, bool one_more, int *unknowns)
{
    AUTO(sim_free) struct sim *w = sim_new((uint64_t)nth);
    struct life l = { .w = w };
    bool unknown = false, sure = true;
    CHECK(life_begin(&l) && life_commit(&l, 1, 3, "before", &unknown));
    fault_arm(nth);
    bool ok = life_commit(&l, 4, 5, "the one", &unknown), fired = fault_fired();
    fault_arm(0);
    CHECK(ok == !fired);
    *unknowns += unknown;
    if (one_more) {
        CHECK(life_rows(&l) == (ok ? 8 : 3));
        CHECK(life_commit(&l, ok ? 9 : 4, 1, "one more", &sure) && !sure);
    }
    life_end(&l, true);
    CHECK(life_begin(&l));
    int64_t rows = life_rows(&l);
    CHECK(rows == (ok ? 8 : 3) + one_more || (unknown && !one_more && rows == 8));
    CHECK(life_commit(&l, rows + 1, 1, "after", &unknown));
    life_end(&l, true);
    return fired;
}

TEST(a_commit_is_whole_or_absent_after_a_crash_at_any_disk_operation)
{
    int nth = 1, unknowns = 0;
    while (nth < 200 && fail_at(nth, false, &unknowns) && fail_at(nth, true, &unknowns))
        nth++;
    CHECK(nth > 8 && nth < 200 && unknowns > 0); /* the sync is among them */
}
#endif

TEST(all_connections_of_a_simulated_store_see_the_same)
{
    AUTO(sim_free) struct sim *w = sim_new(7);
    struct life l = { .w = w };
    bool unknown;
    struct conn *reader = NULL;
    CHECK(life_begin(&l) && conn_open(l.store, false, &reader, &l.err));
    CHECK(text_is(store_kind(l.store), "sqlite"));
    CHECK(life_commit(&l, 1, 5, "x", &unknown) && store_count(reader, "thing") == 5);
    CHECK(!store_commit(reader, NULL, 0, &unknown, &l.err));
    conn_close(reader);
    life_end(&l, false);
    struct store *none = NULL;
    CHECK(!store_open(sim_machine(w, "other"), "postgres://u@h/d", &none, &l.err)
          && l.err.rc == RC_BAD_INPUT);
}

TEST(two_simulated_machines_have_two_stores)
{
    AUTO(sim_free) struct sim *w = sim_new(8);
    struct store *a = NULL, *b = NULL;
    struct conn *ca = NULL, *cb = NULL;
    struct err err = { 0 };
    CHECK(store_open_with(sim_machine(w, "a"), "/a.db", thing_steps, thing_statements, &a, &err)
          && conn_open(a, true, &ca, &err));
    CHECK(store_open_with(sim_machine(w, "b"), "/a.db", thing_steps, thing_statements, &b, &err)
          && conn_open(b, true, &cb, &err));
    struct life la = { .conn = ca };
    bool unknown;
    CHECK(life_commit(&la, 1, 2, "x", &unknown) && store_count(ca, "thing") == 2
          && store_count(cb, "thing") == 0);
    conn_close(ca);
    conn_close(cb);
    store_close(a);
    store_close(b);
}
