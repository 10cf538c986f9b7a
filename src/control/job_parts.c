/* job_parts.c - parts of an attempt's usage that were closed while it ran, by a suspension: they are billed, until it ends by our fault. Then nothing of it is.
 *
 * Whoever ends an attempt cannot look into the store, where what was decided a moment ago may not be yet. So what the last parts were stands in
 * the attempt's lease, to be taken out of the sums again. Only so many are kept, and none that may have gone to the archive: what is older stays as it was billed. */
#include "control/call.h"
#include "base/must.h"
#include "meter/meter.h"
#include <stdio.h>
#include <stdlib.h>

enum { PARTS_KEPT = 64 };
struct part { int64_t id, from_ms, until_ms, gpu_milli, gpu_mib, cpu_milli, mem_mib; char flavor[48]; };
struct parts { size_t count; struct part at[PARTS_KEPT]; };     /* the oldest first */

static const struct { const char *key; size_t at; } numbers[] = {
    { "id", offsetof(struct part, id) }, { "from", offsetof(struct part, from_ms) }, { "until", offsetof(struct part, until_ms) },
    { "gpu", offsetof(struct part, gpu_milli) }, { "vram", offsetof(struct part, gpu_mib) }, { "cpu", offsetof(struct part, cpu_milli) },
    { "mem", offsetof(struct part, mem_mib) },
};

static int64_t *number_of(const struct part *p, size_t i) { return (int64_t *)((char *)p + numbers[i].at); }

static void add(struct parts **list, const struct part *p)
{
    struct parts *l = *list = *list ? *list : must(calloc(1, sizeof **list));
    if (l->count == PARTS_KEPT)
        memmove(l->at, l->at + 1, --l->count * sizeof *l->at);
    l->at[l->count++] = *p;
}

void attempt_part(struct attempt *a, int64_t id, const struct interval *i)
{
    struct part p = { id, i->started_ms, i->ended_ms, i->gpu_milli, i->gpu_mib, i->cpu_milli, i->mem_mib, "" };
    if (text_copy(p.flavor, sizeof p.flavor, i->flavor))
        add(&a->parts, &p);
}

void attempt_parts_put(const struct attempt *a, struct json_out *o)
{
    json_key(o, "parts"), json_open(o, '[');
    for (size_t i = 0; a->parts && i < a->parts->count; i++) {
        json_open(o, '{');
        for (size_t k = 0; k < COUNT(numbers); k++)
            json_key(o, numbers[k].key), json_put_int(o, *number_of(&a->parts->at[i], k));
        json_key(o, "flavor"), json_put_text(o, a->parts->at[i].flavor);
        json_close(o, '}');
    }
    json_close(o, ']');
}

struct parts *attempt_parts_get(const struct json *lease)
{
    const struct json *list = json_get(lease, "parts");
    struct parts *l = NULL;
    for (const struct json *at = list ? list->first : NULL; at; at = at->next) {
        struct part p = { .id = 0 };
        for (size_t k = 0; k < COUNT(numbers); k++)
            *number_of(&p, k) = json_int(at, numbers[k].key, 0);
        if (json_text(at, "flavor") && text_copy(p.flavor, sizeof p.flavor, json_text(at, "flavor")))
            add(&l, &p);
    }
    return l;
}

/* Into the sums (1) or out of them (-1); what is limited, too: as it was counted there, by days. */
static void count(struct call *c, struct attempt *a, const struct part *p, int sign)
{
    struct job *j = a->task->job;
    struct interval i = { .project = j->project->id, .owner_kind = (int)j->owner_kind, .owner = j->owner, .flavor = p->flavor, .gpu_milli = p->gpu_milli,
                          .gpu_mib = p->gpu_mib, .cpu_milli = p->cpu_milli, .mem_mib = p->mem_mib, .started_ms = p->from_ms, .ended_ms = p->until_ms,
                          .billable = true, .simulated = a->simulated };
    struct usage_line d;
    (sign > 0 ? usage_roll : usage_unroll)(c, &i);
    for (int64_t at = 0; j->project->limits.count && usage_day_next(&i, &at, &d);)
        books_used_day(&j->project->limits, j->owner, p->flavor, d.day_ms, sign * d.gpu_milli_ms);
}

/* In the table, and not in the archive yet. */
static bool is_there(const struct call *c, const struct part *p)
{
    int64_t keep_s = control_settings(c->control)->keep_usage_s;
    return !keep_s || p->until_ms >= c->now_ms - keep_s * 1000;
}

static void tell_limits(struct call *c, const struct project *p)
{
    for (size_t i = 0; i < p->limits.count; i++)
        sched_of_limit(p, &p->limits.at[i], emit_news(c, SCHED_LIMIT));
}

void attempt_parts_void(struct call *c, struct attempt *a)
{
    struct project *p = a->task->job->project;
    if (!a->parts)
        return;
    if (p->limits.count)
        books_roll(&p->limits, c->now_ms);
    for (size_t i = 0; i < a->parts->count; i++)
        if (is_there(c, &a->parts->at[i])) {
            EMIT(c, USAGE_VOID, V_INT(a->parts->at[i].id));
            count(c, a, &a->parts->at[i], -1);
        }
    tell_limits(c, p);
}

/* Its node found out later that it had ended before it was suspended, or resumed. */
int64_t attempt_parts_cut(struct call *c, struct attempt *a, int64_t ended_ms)
{
    struct project *p = a->task->job->project;
    if (!a->parts || ended_ms >= a->hold_ms)
        return MAX(ended_ms, a->hold_ms);
    ended_ms = MAX(ended_ms, a->parts->at[0].from_ms);
    if (p->limits.count)
        books_roll(&p->limits, c->now_ms);
    for (size_t i = 0; i < a->parts->count; i++) {
        struct part *at = &a->parts->at[i];
        if (at->until_ms <= ended_ms || !is_there(c, at))
            continue;
        count(c, a, at, -1);
        at->from_ms = MIN(at->from_ms, ended_ms);
        at->until_ms = ended_ms;
        count(c, a, at, 1);
        EMIT(c, USAGE_CUT, V_INT(at->id), V_INT(at->from_ms), V_INT(at->until_ms));
    }
    tell_limits(c, p);
    return a->hold_ms = ended_ms;
}
