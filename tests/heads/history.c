/* history.c - the check of one register. Sorting is all that costs: a history of a million operations takes a second. */
#include "history.h"
#include <stdlib.h>

struct zone {
    int64_t value, first_end, last_start, write_start;
    bool written;
};

static int by_value(const void *a, const void *b)
{
    const struct op *x = *(const struct op *const *)a, *y = *(const struct op *const *)b;
    return x->value != y->value ? (x->value > y->value) - (x->value < y->value) : (int)y->write - (int)x->write;
}

static int by_begin(const void *a, const void *b)
{
    const struct zone *x = a, *y = b;
    int64_t p = MIN(x->first_end, x->last_start), q = MIN(y->first_end, y->last_start);
    return (p > q) - (p < q);
}

/* Zones of all values that were held or may have been. */
static bool make_zones(const struct op **list, size_t count, int64_t initial, struct zone *zones, size_t *out, struct err *err)
{
    size_t n = 0;
    for (size_t i = 0, k; i < count; i = k) {
        struct zone z = { .value = list[i]->value, .first_end = INT64_MAX, .last_start = INT64_MIN, .write_start = INT64_MIN };
        bool seen = false;
        if (z.value == initial)
            z.written = true, z.first_end = INT64_MIN;
        for (k = i; k < count && list[k]->value == z.value; k++) {
            const struct op *o = list[k];
            if (o->write && z.written)
                return err_set(err, RC_INTERNAL, "the value %lld was written twice: the history itself is wrong", (long long)z.value);
            if (o->write)
                z.written = true, z.write_start = o->start_us;
            else
                seen = true;
            if (o->answer == ANSWER_OK)
                z.first_end = MIN(z.first_end, o->end_us);
            z.last_start = MAX(z.last_start, o->start_us);
            if (!o->write && o->end_us < z.write_start)
                return err_set(err, RC_CONFLICT, "%lld was read at %lld before it was written at %lld", (long long)z.value, (long long)o->end_us,
                               (long long)z.write_start);
        }
        if (!z.written)
            return err_set(err, RC_CONFLICT, "%lld was read and nobody wrote it", (long long)z.value);
        if (seen || z.first_end != INT64_MAX)
            zones[n++] = z;
    }
    *out = n;
    return true;
}

bool history_check(const struct op *ops, size_t count, int reg, int64_t initial, struct err *err)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    const struct op **list = ARENA_ARRAY(mem, const struct op *, count + 1);
    struct zone *zones = ARENA_ARRAY(mem, struct zone, count + 1);
    size_t n = 0, zone_count = 0;
    for (size_t i = 0; i < count; i++)
        if (ops[i].reg == reg && (ops[i].write || ops[i].answer == ANSWER_OK))
            list[n++] = &ops[i];
    qsort(list, n, sizeof *list, by_value);
    if (!make_zones(list, n, initial, zones, &zone_count, err))
        return false;
    qsort(zones, zone_count, sizeof *zones, by_begin);
    const struct zone *held = NULL;     /* the span of certain holding that reaches furthest */
    for (size_t i = 0; i < zone_count; i++) {
        const struct zone *z = &zones[i];
        bool certain = z->first_end < z->last_start;
        int64_t end = MAX(z->first_end, z->last_start);
        if (held && certain && MIN(z->first_end, z->last_start) < held->last_start)
            return err_set(err, RC_CONFLICT, "%lld and %lld were both certainly held at %lld", (long long)held->value, (long long)z->value,
                           (long long)z->first_end);
        if (held && !certain && end < held->last_start)
            return err_set(err, RC_CONFLICT, "%lld cannot have been there between %lld and %lld, while %lld was", (long long)z->value,
                           (long long)z->last_start, (long long)z->first_end, (long long)held->value);
        if (certain)
            held = z;
    }
    return true;
}
