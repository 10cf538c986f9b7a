/* lease.c - which of several servers writes: one row with an epoch.
 *
 * The epoch decides, never a clock: taking raises it in a transaction that finds the one that was
 * seen, and every commit of the holder checks it inside its own transaction. What makes a holder
 * late (a pause, a partition, a slow store) does not matter here; when to take is for control/. */
#include "store/store_internal.h"
#include <stdio.h>

bool fenced(struct err *err)
{
    return err_set(err, RC_NOT_WRITER, "another server writes now");
}

bool store_lease_look(struct conn *c, struct lease *out, struct err *err)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct rows r;
    if (!store_query(c, ST_LEASE_LOOK, NULL, 0, mem, &r, err))
        return false;
    if (r.count != 1)
        return err_set(err, RC_INTERNAL, STORE_DAMAGED " (it has no row for the writer)");
    struct lease l = { .epoch = row_int(&r, 0, 0),
                       .pid = row_int(&r, 0, 1),
                       .since = row_int(&r, 0, 2),
                       .server = row_int(&r, 0, 3),
                       .renewed = row_int(&r, 0, 5),
                       .counted = row_int(&r, 0, 6) && row_int(&r, 0, 6) == row_int(&r, 0, 0) };
    snprintf(l.address, sizeof l.address, "%s", row_text(&r, 0, 4));
    return *out = l, true;
}

bool store_lease_holder(struct conn *c, const struct lease *l, enum holder *out, struct err *err)
{
    if (!l->server)
        return *out = HOLDER_GONE, true;
    return c->store->how->holder(c, l->pid, l->since, out, err);
}

static bool one_write(struct conn *c, enum statement st, const struct value *args, int count,
                      struct err *err)
{
    bool unknown;
    return store_commit(c, &(struct write){ st, count, args }, 1, &unknown, err);
}

/* Whether our update found the epoch is read back: the server's id is of this life alone, so a
 * lost answer is no riddle either. */
bool store_lease_take(struct conn *c, const struct lease *seen, int64_t server, const char *address,
                      struct err *err)
{
    const struct backend *how = c->store->how;
    struct lease now;
    int64_t pid, since;
    struct err why = { 0 };
    c->epoch = 0;
    if (store_fault("store.take", err) || !how->self(c, &pid, &since, err)
        || (seen->server && !how->evict(c, seen->pid, seen->since, err)))
        return false;
    struct value args[]
        = { V_INT(seen->epoch), V_INT(pid), V_INT(since), V_INT(server), V_TEXT(address) };
    bool sent = one_write(c, ST_LEASE_TAKE, args, COUNT(args), &why);
    if (!store_lease_look(c, &now, err))
        return false;
    if (now.epoch == seen->epoch + 1 && now.server == server)
        return c->epoch = now.epoch, true;
    if (!sent)
        return *err = why, false;
    return err_set(err, RC_CONFLICT, "another server took the lease first");
}

bool store_lease_renew(struct conn *c, const char *address, struct err *err)
{
    return one_write(c, ST_LEASE_RENEW, (struct value[]){ V_INT(c->epoch), V_TEXT(address) }, 2,
                     err);
}

bool store_lease_check(struct conn *c, struct err *err)
{
    struct lease now;
    return store_lease_look(c, &now, err) && (now.epoch == c->epoch || fenced(err));
}

bool store_lease_drop(struct conn *c, struct err *err)
{
    bool ok = one_write(c, ST_LEASE_DROP, (struct value[]){ V_INT(c->epoch) }, 1, err);
    c->epoch = 0;
    return ok;
}

void store_lease_forget(struct conn *c) { c->epoch = 0; }
