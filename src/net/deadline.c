/* deadline.c - one timer behind a limit that moves. The timer is left alone when the limit moves
 * away from it; when it rings too early it is started again for the rest. A busy connection thus
 * costs no timer work for each request. */
#include "net/deadline.h"

void deadline_init(struct deadline *d, struct os *os, void (*fn)(void *arg), void *arg)
{
    *d = (struct deadline){ .os = os, .at = INT64_MAX, .fn = fn, .arg = arg };
}

static void ring(void *arg);

static void wind(struct deadline *d, int64_t now)
{
    d->rings = d->at;
    d->timer = timer_start(d->os, d->at - now, ring, d);
}

static void ring(void *arg)
{
    struct deadline *d = arg;
    d->timer = NULL;
    if (d->at == INT64_MAX)
        return;
    int64_t now = os_boot_ms(d->os);
    if (now < d->at) {
        wind(d, now);
        return;
    }
    d->at = INT64_MAX;
    d->fn(d->arg);
}

void deadline_set(struct deadline *d, int64_t after_ms)
{
    int64_t now = os_boot_ms(d->os);
    d->at = now + MAX(after_ms, 1);
    if (d->timer && d->rings <= d->at)
        return;
    timer_cancel(TAKE(d->timer));
    wind(d, now);
}

void deadline_none(struct deadline *d)
{
    d->at = INT64_MAX;
}

void deadline_done(struct deadline *d)
{
    timer_cancel(TAKE(d->timer));
    d->at = INT64_MAX;
}
