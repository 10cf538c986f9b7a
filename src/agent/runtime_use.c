/* runtime_use.c - whether somebody uses the instances that are to be stopped when nobody does: the processor time that each took since it was last
 * asked, and whether a session into it was open meanwhile. What of it is idleness is the server's to say; what is not known is told as such. */
#include "agent/runtime_internal.h"
#include <stdio.h>
#include <stdlib.h>

enum { USE_EVERY_MS = 4000 };

void use_watch(struct attempt *a, bool on)
{
    a->r->watched += on - a->watched;
    a->watched = on;
}

void runtime_used(struct runtime *r, int64_t attempt)
{
    struct attempt *a = map_get(r->attempts, attempt);
    if (a)
        a->used = true;
}

/* Thousandths of a processor since the last time; -1: not known. */
static int64_t cpu_since(struct attempt *a, int64_t now)
{
    char group[ID_TEXT + 8];
    snprintf(group, sizeof group, "arcus/%s", a->name);
    int64_t us = a->r->real ? cgroup_cpu_us(&a->r->cgroups, group) : 0, milli = -1;
    if (us >= 0 && a->cpu_ms && us >= a->cpu_us && now > a->cpu_ms)
        milli = (us - a->cpu_us) / (now - a->cpu_ms);
    a->cpu_us = us;
    a->cpu_ms = us < 0 ? 0 : now;
    return milli;
}

struct objects runtime_uses(struct runtime *r, bool (*has_session)(void *arg, int64_t attempt), void *arg)
{
    struct attempt *a;
    int64_t now = os_boot_ms(r->os);
    size_t n = 0;
    if (!r->watched || (r->uses_ms && now - r->uses_ms < USE_EVERY_MS))
        return (struct objects){ 0 };
    struct task_use *list = realloc(r->uses, r->watched * sizeof *list);
    if (!list)
        abort();
    r->uses = list;
    r->uses_ms = now;
    for (size_t at = 0; n < r->watched && (a = map_next(r->attempts, &at));)
        if (a->watched && a->stage == STAGE_LIVE && a->last.phase == PHASE_RUNNING) {
            bool session = has_session(arg, a->id) || a->used;
            list[n++] = (struct task_use){ .attempt = a->id, .cpu_milli = cpu_since(a, now), .session = session };
            a->used = false;
        }
    return (struct objects){ list, n };
}
