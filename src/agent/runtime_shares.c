/* runtime_shares.c - tasks that hold parts of GPUs: whoever holds more than its part is ended at once, with that as its reason. */
#include "agent/runtime_internal.h"

void shares_begin(struct attempt *a, struct shares s)
{
    a->shares = s;
    a->r->sharers += s.count > 0;
}

void shares_end(struct attempt *a)
{
    a->r->sharers -= a->shares.count > 0;
    shares_free(&a->shares);
}

void runtime_held(struct runtime *r, const struct objects *held)
{
    struct attempt *a;
    for (size_t at = 0; r->sharers && (a = map_next(r->attempts, &at));) {
        enum outcome as;
        char why[240];
        if (!a->shares.count || a->over || a->stage == STAGE_WAITS || !shares_over(&a->shares, a->id, held, &as, why))
            continue;
        a->over = true;
        attempt_stop(a, 0, as, why); /* one that was to end in its own time does so now */
    }
}

bool runtime_has_shares(const struct runtime *r) { return r->sharers > 0; }
