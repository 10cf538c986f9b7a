#include "place.h"
#include "base/fault.h"
#include "os/sim.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const texts[] = {
    "CREATE TABLE thing (id BIGINT PRIMARY KEY, name TEXT, data BYTEA, n BIGINT)",
    "CREATE INDEX thing_n ON thing (n)",
    "ALTER TABLE thing ADD COLUMN size BIGINT NOT NULL DEFAULT 7",
    "CREATE TABLE other (id BIGINT PRIMARY KEY)",
};

static bool open_with(struct place *p, int steps, struct store **out)
{
    return store_open_with(p->os, p->where, (struct steps){ texts, steps }, thing_statements, out,
                           &p->err);
}

/* The store's steps, seen from outside. */
static int64_t steps_seen(struct place *p)
{
    AUTO(store_close) struct store *s = NULL;
    AUTO(conn_close) struct conn *c = NULL;
    CHECK(open_with(p, COUNT(texts), &s) && s->how->conn_open(s, false, &c, &p->err));
    return c ? store_count(c, "migration") : -1;
}

BOTH_CLOSED(opening_again_changes_nothing)
{
    for (int i = 0; i < 3; i++) {
        AUTO(store_close) struct store *s = NULL;
        CHECK(open_with(p, COUNT(texts), &s));
        CHECK(steps_seen(p) == COUNT(texts));
    }
    AUTO(store_close) struct store *s = NULL;
    CHECK(open_with(p, COUNT(texts), &s) && conn_open(s, true, &p->writer, &p->err));
    CHECK(number(p, p->writer, "SELECT MIN(at_ms) FROM migration") > 1700000000000);
    conn_close(TAKE(p->writer));
}

BOTH_CLOSED(a_new_step_keeps_what_is_there)
{
    struct store *s = NULL;
    CHECK(open_with(p, 1, &s) && conn_open(s, true, &p->writer, &p->err));
    CHECK(thing_add(p, 1, "old"));
    conn_close(TAKE(p->writer));
    store_close(TAKE(s));
    CHECK(open_with(p, 4, &s) && conn_open(s, true, &p->writer, &p->err));
    CHECK(things(p, p->writer).count == 1);
    CHECK(number(p, p->writer, "SELECT size FROM thing WHERE id = 1") == 7);
    CHECK(thing_add(p, 2, "new")
          && store_count(p->writer, "other") == 0); /* the statements of before still work */
    conn_close(TAKE(p->writer));
    store_close(s);
}

BOTH_CLOSED(a_newer_store_is_refused)
{
    struct store *s = NULL, *old = NULL;
    CHECK(open_with(p, 4, &s));
    CHECK(!open_with(p, 3, &old) && !old && p->err.rc == RC_CONFLICT);
    CHECK(strstr(p->err.text, "newer") && strstr(p->err.text, "step 4")
          && strstr(p->err.text, "backup"));
    CHECK(steps_seen(p) == 4);
    store_close(s);
    p->err = (struct err){ 0 };
}

/* The older one of a rolling upgrade: the newer one has said from where on it may. */
BOTH_CLOSED(an_older_program_works_beside_a_newer_one_that_lets_it)
{
    const char *const all[] = { texts[0], "CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
                                "CREATE TABLE more (id BIGINT)", "CREATE TABLE yet_more (id BIGINT)" };
    struct store *s = NULL, *old = NULL;
    CHECK(store_open_with(p->os, p->where, (struct steps){ all, 2, 2 }, thing_statements, &s, &p->err));
    store_close(TAKE(s));
    CHECK(store_open_with(p->os, p->where, (struct steps){ all, 4, 3 }, thing_statements, &s, &p->err));
    CHECK(store_open_with(p->os, p->where, (struct steps){ all, 3, 2 }, thing_statements, &old, &p->err));
    store_close(TAKE(old));
    CHECK(!store_open_with(p->os, p->where, (struct steps){ all, 2, 2 }, thing_statements, &old, &p->err));
    CHECK(!old && p->err.rc == RC_CONFLICT && strstr(p->err.text, "newer"));
    CHECK(store_open_with(p->os, p->where, (struct steps){ all, 4, 3 }, thing_statements, &old, &p->err));
    store_close(old);
    store_close(s);
    p->err = (struct err){ 0 };
}

BOTH_CLOSED(a_store_that_lost_a_step_is_refused)
{
    struct store *s = NULL, *again = NULL;
    CHECK(open_with(p, 4, &s) && conn_open(s, true, &p->writer, &p->err));
    CHECK(run(p, p->writer, "DELETE FROM migration WHERE n = 2"));
    CHECK(!open_with(p, 4, &again) && !again && strstr(p->err.text, "damaged"));
    conn_close(TAKE(p->writer));
    store_close(s);
    p->err = (struct err){ 0 };
}

BOTH_CLOSED(a_bad_step_is_named_and_undone)
{
    const char *const bad[]
        = { texts[0], "CREATE TABLE half (id BIGINT)", "CREATE TABEL x (id BIGINT)" };
    struct store *s = NULL;
    CHECK(!store_open_with(p->os, p->where, (struct steps){ bad, 3 }, thing_statements, &s, &p->err)
          && !s);
    CHECK(strstr(p->err.text, "schema step 3") != NULL);
    CHECK(
        store_open_with(p->os, p->where, (struct steps){ bad, 2 }, thing_statements, &s, &p->err));
    CHECK(conn_open(s, true, &p->writer, &p->err) && store_count(p->writer, "migration") == 2);
    CHECK(store_count(p->writer, "half") == 0);
    conn_close(TAKE(p->writer));
    store_close(s);
    p->err = (struct err){ 0 };
}

#ifdef FAULTS
BOTH_CLOSED(a_migration_that_fails_anywhere_goes_on_from_there)
{
    int nth = 1;
    for (bool fired = true; fired && nth < 100; nth++) {
        AUTO(store_close) struct store *s = NULL;
        int64_t before = -1, after;
        fault_arm(nth);
        bool ok = open_with(p, COUNT(texts), &s);
        fired = fault_fired();
        fault_arm(0);
        CHECK(ok == !fired && ok == (s != NULL));
        AUTO(store_close)
        struct store *look = NULL; /* with nothing known it may only be newer, or empty */
        if (store_open_with(p->os, p->where, (struct steps){ texts, 0 }, thing_statements, &look,
                            &p->err))
            after = 0;
        else
            after = strstr(p->err.text, "step ") ? atoi(strstr(p->err.text, "step ") + 5) : -1;
        CHECK(after >= before && after <= (int64_t)COUNT(texts));
        before = after;
    }
    CHECK(nth > 5 && nth < 100 && steps_seen(p) == COUNT(texts));
    p->err = (struct err){ 0 };
}
#endif

/* --- the schema of the program itself, from every step it ever had */

#ifdef FAULTS
static const char drop_all[]
    = "DO $$ DECLARE r RECORD; BEGIN FOR r IN SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
      " LOOP EXECUTE 'DROP TABLE ' || quote_ident(r.tablename) || ' CASCADE'; END LOOP; END $$";

static void empty(struct place *p)
{
    static const char *const ends[] = { "", "-wal", "-shm" };
    AUTO(store_close) struct store *s = NULL;
    AUTO(conn_close) struct conn *c = NULL;
    for (size_t i = 0; !text_is(p->kind, "postgres") && i < COUNT(ends); i++)
        unlink(arena_printf(p->mem, "%s%s", p->where, ends[i]));
    if (!text_is(p->kind, "postgres"))
        return;
    CHECK(store_open_with(p->os, p->where, (struct steps){ store_steps().at, 0 }, thing_statements, &s, &p->err) || strstr(p->err.text, "newer"));
    if (s)
        return;         /* nothing was there */
    CHECK(store_open(p->os, p->where, &s, &p->err) && s->how->conn_open(s, true, &c, &p->err) && run(p, c, drop_all));
}

static bool open_at(struct place *p, int steps)
{
    AUTO(store_close) struct store *s = NULL;
    return store_open_with(p->os, p->where, (struct steps){ store_steps().at, steps }, thing_statements, &s, &p->err);
}

/* Opens with the nth operation failing; true when none did. Every statement of the program must then be there. */
static bool upgrade_with(struct place *p, int nth)
{
    AUTO(store_close) struct store *s = NULL;
    AUTO(conn_close) struct conn *c = NULL;
    fault_arm(nth);
    bool ok = store_open(p->os, p->where, &s, &p->err) && conn_open(s, true, &c, &p->err), fired = fault_fired();
    fault_arm(0);
    CHECK(ok == !fired);
    if (ok)
        CHECK(store_count(c, "migration") == store_steps().count);
    return !fired;
}

BOTH_CLOSED(whatever_fails_once_in_an_upgrade_from_any_step_the_next_start_completes_it)
{
    bool postgres = text_is(p->kind, "postgres");
    for (int from = 0; from <= store_steps().count; from += postgres || !getenv("ARCUS_SOAK") ? 9 : 1) {
        empty(p);
        bool begun = open_at(p, from);
        CHECK(begun);
        if (!begun)
            printf("# to step %d: %s\n", from, p->err.text);
        int nth = 1;
        while (nth < 500 && !upgrade_with(p, nth))
            nth++;
        CHECK(nth > 3 && nth < 500);
    }
    for (int nth = 1; !postgres && nth < 1000; nth += getenv("ARCUS_SOAK") ? 1 : 7) {   /* the nth of them all */
        empty(p);
        if (upgrade_with(p, nth))
            break;
        CHECK(upgrade_with(p, 0));
    }
    p->err = (struct err){ 0 };
}

/* From the nth operation on nothing works any more, and then the power goes. */
TEST(a_power_cut_anywhere_in_an_upgrade_is_made_good_by_the_next_start)
{
    int count = store_steps().count, rounds = 0;
    bool fired = true;
    for (int nth = 1, from = 0; fired; nth += 5, from = (from + 7) % count, rounds++) {
        AUTO(sim_free) struct sim *w = sim_new((uint64_t)nth);
        struct os *os = sim_machine(w, "m");
        struct err err = { 0 };
        struct store *s = NULL;
        CHECK(store_open_with(os, "/db", (struct steps){ store_steps().at, from }, thing_statements, &s, &err));
        store_close(TAKE(s));
        fault_arm_from(from ? nth % 120 + 1 : nth);
        bool ok = store_open(os, "/db", &s, &err);
        fired = fault_fired() || from;
        fault_arm(0);
        sim_crash(w, os);
        if (ok)
            store_close(TAKE(s));
        os = sim_machine(w, "m");
        AUTO(store_close) struct store *again = NULL;
        AUTO(conn_close) struct conn *c = NULL;
        bool mended = store_open(os, "/db", &again, &err) && conn_open(again, true, &c, &err);
        CHECK(mended && store_count(c, "migration") == count);
        if (!mended)
            printf("# from step %d, operation %d: %s\n", from, nth, err.text);
        CHECK(rounds < 1000);
    }
    CHECK(rounds > 10);
}
#endif

/* Real processes, as several servers would be. */
BOTH_CLOSED(several_openers_at_once_do_every_step_once)
{
    enum { OPENERS = 4 };
    pid_t pids[OPENERS];
    int gate[2];
    CHECK(pipe(gate) == 0);
    for (int i = 0; i < OPENERS; i++)
        if ((pids[i] = fork()) == 0) {
            char go;
            struct err err = { 0 };
            struct store *s = NULL;
            struct conn *c = NULL;
            close(gate[1]);
            bool ok = read(gate[0], &go, 1) == 0 /* all at once, when the parent closes the gate */
                      && store_open_with(p->os, p->where, (struct steps){ texts, COUNT(texts) },
                                         thing_statements, &s, &err)
                      && conn_open(s, true, &c, &err);
            if (!ok)
                printf("# opener %d: %s\n", i, err.text), fflush(stdout);
            _exit(ok ? 0 : 1);
        }
    close(gate[0]);
    close(gate[1]);
    for (int i = 0; i < OPENERS; i++) {
        int status = -1;
        CHECK(waitpid(pids[i], &status, 0) == pids[i] && status == 0);
    }
    CHECK(steps_seen(p) == COUNT(texts));
}
