/* nth.c - every verb of the table with its n-th operation on store and disk failing, for n from 1 until none is left: afterwards the
 * store is the old one, or the new one, whatever was answered; and the writer's memory is what the store says.
 *
 * The store is compared row by row, through SQLite itself on a copy of the simulated disk. */
#include "base/log.h"
#include "world.h"
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef FAULTS
struct dump { const char *rows, *counts; };

static void copy_out(struct door *d, const char *from, const char *to)
{
    struct slice bytes = { "", 0 };
    struct err err = { 0 };
    FILE *f = fopen(to, "w");
    bool there = disk_exists(d->os, from);
    CHECK(f && (!there || file_read(d->os, from, 64 << 20, d->mem, &bytes, &err)) && fwrite(bytes.at, 1, bytes.len, f) == bytes.len);
    if (f)
        fclose(f);
}

static void dump_table(sqlite3 *db, const char *table, struct str *rows, struct str *counts)
{
    sqlite3_stmt *st = NULL;
    char *sql = sqlite3_mprintf("SELECT * FROM \"%w\"", table);
    size_t n = 0;
    CHECK(sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK);
    for (; sqlite3_step(st) == SQLITE_ROW; n++) {
        str_text(rows, table);
        for (int i = 0; i < sqlite3_column_count(st); i++)
            str_printf(rows, " %s", sqlite3_column_text(st, i) ? (const char *)sqlite3_column_text(st, i) : "NULL");
        str_char(rows, '\n');
    }
    str_printf(counts, "%s %zu\n", table, n);
    sqlite3_finalize(st);
    sqlite3_free(sql);
}

/* Without the audit: a refusal is noted there, beside what it did not change. */
static struct dump dump_of(struct door *d)
{
    char folder[] = "/tmp/arcus-nth-XXXXXX", file[64], wal[64], shm[64];
    AUTO(str_done) struct str rows = { 0 }, counts = { 0 };
    sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;
    CHECK(mkdtemp(folder) != NULL);
    snprintf(file, sizeof file, "%s/db", folder);
    snprintf(wal, sizeof wal, "%s/db-wal", folder);
    snprintf(shm, sizeof shm, "%s/db-shm", folder);
    copy_out(d, "/data/arcus.db", file);
    copy_out(d, "/data/arcus.db-wal", wal);
    CHECK(sqlite3_open(file, &db) == SQLITE_OK
          && sqlite3_prepare_v2(db, "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'audit%' ORDER BY name", -1, &st, NULL) == SQLITE_OK);
    while (sqlite3_step(st) == SQLITE_ROW)
        dump_table(db, (const char *)sqlite3_column_text(st, 0), &rows, &counts);
    sqlite3_finalize(st);
    sqlite3_close(db);
    unlink(file), unlink(wal), unlink(shm), rmdir(folder);
    return (struct dump){ arena_text(d->mem, rows.at), arena_text(d->mem, counts.at) };
}

static enum who asker(const struct wish *x)
{
    for (enum who who = 0; who < WHO_COUNT; who++)
        if (people[who].good && who != STRANGER && (verbs[x->verb].roles & people[who].roles))
            return who;
    return NO_KEY;
}

/* Those that carry their own credential need a good one. */
static struct answer ask(struct world *w, const struct wish *x)
{
    struct door *d = w->d;
    if (x->verb == VERB_NODE_JOIN)
        return door_ask(d, NULL, VERB_NODE_JOIN, FMT(d, "{\"token\":\"%s\",\"name\":\"n9\"}", w->token));
    return world_ask(w, asker(x), NULL, x, BY_ID);
}

static struct door *world_again(struct world *w, const struct frozen *f, const struct wish *x)
{
    w->d = door_thaw(f, false);
    if (verbs[x->verb].roles & ROLE_NODE)
        CHECK(door_hello(w->d, w->keys[NODE_ONE], "n1", 4, 2, (struct texts){ 0 }).ok);
    return w->d;
}

/* A wish that changes nothing lets the writer build its memory again, if it must. */
static void settle(struct world *w)
{
    struct answer a = world_ask(w, DEV, NULL, &(struct wish){ VERB_JOB_CANCEL, "{\"job\":\"ghost\"}" }, BY_ID);
    CHECK(!a.ok && a.err.rc == RC_NOT_FOUND);
}

/* True: nothing was left to fail. */
static bool fail_nth(struct world *w, const struct frozen *f, const struct wish *x, int nth, const char *after)
{
    AUTO(door_free) struct door *d = world_again(w, f, x);
    struct dump before = dump_of(d);
    fault_arm(nth);
    struct answer a = ask(w, x);
    bool fired = fault_fired();
    fault_arm(0);
    settle(w);
    struct dump now = dump_of(d);
    bool old = text_is(now.rows, before.rows), done = text_is(now.counts, after);
    bool fine = a.ok ? done : old || (done && a.err.rc == RC_UNAVAILABLE);
    CHECK(fine);
    if (!fine)
        printf("# %s with operation %d failing: answered %s (%s), and the store has changed to\n%s", verbs[x->verb].name, nth,
               a.ok ? "well" : rc_name(a.err.rc), a.err.text, now.counts);
    check_books(d, verbs[x->verb].name);
    return !fired;
}

static void fail_each(struct world *w, const struct frozen *f, const struct wish *x)
{
    struct door *d = world_again(w, f, x);
    struct dump before = dump_of(d);
    bool ok = ask(w, x).ok;
    settle(w);
    struct dump good = dump_of(d);
    char *after = strdup(good.counts), *before_counts = strdup(before.counts);
    CHECK(ok || text_is(before.rows, good.rows));       /* a refusal changes nothing */
    door_free(d);
    bool all = getenv("ARCUS_SOAK");
    int nth = 1;
    while (nth < 400 && !fail_nth(w, f, x, nth, after))
        nth += all || nth < 6 ? 1 : 4;
    CHECK(nth < 400 && (nth > 1 || text_is(before_counts, after)));    /* what changes the store has something that can fail */
    free(after);
    free(before_counts);
}

TEST(every_verb_leaves_the_old_state_or_the_new_one_whichever_operation_fails)
{
    struct world w;
    struct frozen f;
    bool tried[VERB_COUNT] = { 0 };
    AUTO(arena_free) struct arena *mem = arena_new();
    log_level_set((enum log_level)(LOG_ERROR + 1));
    world_make(&w, false);
    world_freeze(&w, &f, mem);
    for (size_t i = 0; i < wish_count; i++) {
        tried[wishes[i].verb] = true;
        fail_each(&w, &f, &wishes[i]);
    }
    for (int v = 0; v < VERB_COUNT; v++) {
        CHECK(tried[v]);
        if (!tried[v])
            printf("# %s has no row in world.c\n", verbs[v].name);
    }
    frozen_done(&f);
    log_level_set(LOG_ERROR);
}
#endif
