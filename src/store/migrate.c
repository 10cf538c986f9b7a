/* migrate.c - brings a store to the schema of this program, one numbered step after the other.
 *
 * A step and the row that remembers it are one transaction, and each transaction looks again at
 * what is there, so that several servers that start at once do every step exactly once. In an
 * empty store all steps are one transaction: sixty would wait for the disk sixty times. Steps only
 * add; nothing here goes back. */
#include "store/store_internal.h"
#include <stdio.h>

static const char make_table[]
    = "CREATE TABLE IF NOT EXISTS migration (n BIGINT PRIMARY KEY, at_ms BIGINT NOT NULL)";

/* A newer program was here; it has said from which step on an older one can work beside it. */
static bool readable(struct conn *c, int known)
{
    int64_t from;
    struct err ignored;                 /* a store that does not say so is not */
    return c->store->how->number(c, "SELECT CAST(value AS BIGINT) FROM setting WHERE name = 'compatible_from'",
                                 &from, &ignored)
        && from <= known;
}

/* In the transaction of the last step, so that no older program finds the one without the other. */
static bool say_compatible(struct conn *c, struct steps steps, struct err *err)
{
    char text[200];
    snprintf(text, sizeof text, "INSERT INTO setting (name, value) VALUES ('compatible_from', '%d') ON CONFLICT (name)"
                                " DO UPDATE SET value = '%d'", steps.compatible_from, steps.compatible_from);
    return !steps.compatible_from || c->store->how->run(c, text, err);
}

/* How many steps the store has seen. */
static bool steps_done(struct conn *c, int known, int64_t *out, struct err *err)
{
    const struct backend *how = c->store->how;
    int64_t highest, count;
    if (!how->number(c, "SELECT COALESCE(MAX(n), 0) FROM migration", &highest, err)
        || !how->number(c, "SELECT COUNT(*) FROM migration", &count, err))
        return false;
    if (highest > known && !readable(c, known))
        return err_set(err, RC_CONFLICT,
                       "the store was made by a newer arcus (its schema is at step %lld, this "
                       "program knows %d): start that version, or restore a backup of the store "
                       "from before the upgrade", (long long)highest, known);
    if (count != highest)
        return err_set(err, RC_INTERNAL, STORE_DAMAGED " (it knows %lld of %lld schema steps)",
                       (long long)count, (long long)highest);
    *out = highest;
    return true;
}

static bool one_step(struct conn *c, struct steps steps, int64_t *done, struct err *err)
{
    const struct backend *how = c->store->how;
    char remember[96];
    snprintf(remember, sizeof remember, "INSERT INTO migration (n, at_ms) VALUES (%lld, %lld)",
             (long long)*done + 1, (long long)os_wall_ms(c->store->os));
    if (!how->run(c, steps.at[*done], err) || !how->run(c, remember, err))
        return err_wrap(err, "schema step %lld", (long long)*done + 1);
    return ++*done < steps.count || say_compatible(c, steps, err);
}

/* In a transaction of its own: the next missing step, or all of them where there is nothing yet. */
static bool step_in_transaction(struct conn *c, struct steps steps, int64_t *done, struct err *err)
{
    if (!c->store->how->run(c, make_table, err) || !steps_done(c, steps.count, done, err))
        return false;
    int64_t until = *done == 0 ? steps.count : MIN(*done + 1, (int64_t)steps.count);
    while (*done < until)
        if (!one_step(c, steps, done, err))
            return false;
    return true;
}

static bool next_step(struct conn *c, struct steps steps, int64_t *done, struct err *err)
{
    const struct backend *how = c->store->how;
    if (!how->run(c, how->begin_alone, err))
        return false;
    if (step_in_transaction(c, steps, done, err) && how->run(c, "COMMIT", err))
        return true;
    struct err ignored = { 0 };         /* the first reason counts, and closing rolls back too */
    return how->run(c, "ROLLBACK", &ignored) && false;
}

bool migrate(struct store *s, struct steps steps, struct err *err)
{
    AUTO(conn_close) struct conn *c = NULL;
    if (!s->how->conn_open(s, true, &c, err))
        return false;
    int64_t done = -1;
    while (done < steps.count)
        if (!next_step(c, steps, &done, err))
            return err_wrap(err, "cannot prepare the store");
    return true;
}
