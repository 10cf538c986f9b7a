/* autostop.c - instances that are stopped when nobody has used them for as long as they say (`autostop`).
 *
 * Used is one whose GPUs did something, or, if it has none, whose processors did more than a little, or into which a session was open: its node tells
 * with its reports. The law: only time that this process has watched counts, by the boot clock. What nobody saw (this process began later, the
 * node was silent, a figure is not known) counts as use, so a server that begins anew, or follows another, stops nobody early. Who
 * has a part of a GPU is not idle while the whole does something, unless its node says who is there and it is not among them. */
#include "control/gpu_live.h"
#include <stdio.h>

enum { CPU_IDLE_MILLI = 50, UNSEEN_MS = 60000 };  /* a twentieth of a processor, or half of what it has: shells, a notebook's server that waits */

static bool is_watched(const struct attempt *a)
{
    const struct job *j = a->task->job;
    return j->spec.autostop_s > 0 && j->disk && !a->stop && !job_is_stopped(j);
}

bool autostop_watches(const struct attempt *a) { return is_watched(a); }

static bool is_among(const struct objects *tasks, int64_t attempt)
{
    const struct live_task *t = tasks->at;
    for (size_t i = 0; i < tasks->count; i++)
        if (t[i].attempt == attempt)
            return true;
    return false;
}

static bool gpu_works(const struct call *c, const struct node *n, const struct attempt *a, const struct order_gpu *g)
{
    const struct gpu_info *gpus = n->info.gpus.at;
    for (size_t i = 0; i < n->info.gpus.count; i++) {
        const struct gpu_live *l = gpus[i].index == g->index ? live_of(c, n, &gpus[i]) : NULL;
        if (!l)
            continue;
        bool elsewhere = g->milli < 1000 && l->tasks.count && !is_among(&l->tasks, a->id);
        return l->util != 0 && !elsewhere;
    }
    return true; /* nobody knows */
}

static bool is_used(const struct call *c, const struct node *n, const struct attempt *a, const struct task_use *u)
{
    if (u->session || a->hold)
        return true;
    if (!a->gpu_count || a->simulated)
        return u->cpu_milli < 0 || u->cpu_milli > MIN((int64_t)CPU_IDLE_MILLI, a->cpu_milli / 2);
    for (int i = 0; i < a->gpu_count; i++)
        if (gpu_works(c, n, a, &a->gpus[i]))
            return true;
    return false;
}

static const char *how_long(struct call *c, int64_t s)
{
    return s % 3600 == 0 ? arena_printf(c->mem, "%lld h", (long long)s / 3600)
           : s % 60 == 0 ? arena_printf(c->mem, "%lld min", (long long)s / 60)
                         : arena_printf(c->mem, "%lld s", (long long)s);
}

static void stop_idle(struct call *c, struct attempt *a)
{
    struct job *j = a->task->job;
    bool gpus = a->gpu_count && !a->simulated;
    char name[ID_TEXT];
    const char *why = arena_printf(c->mem, "autostop: %s idle for %s, and nobody was connected; start it again with: arcus start %s", gpus ? "its GPUs were" : "it was",
                                   how_long(c, j->spec.autostop_s), text_given(j->spec.name) ? j->name : id_text(name, PREFIX_JOB, j->id));
    instance_stop(c, j, why);
}

void autostop_take(struct call *c, const struct node *n, const struct objects *uses)
{
    const struct task_use *u = uses->at;
    for (size_t i = 0; i < uses->count; i++) {
        struct attempt *a = map_get(c->s->attempts, u[i].attempt);
        if (!a || a->node != n || !is_watched(a))
            continue;
        struct volume *v = a->task->job->disk;
        bool began = v->attempt != a->id || c->boot_ms - v->seen_ms > UNSEEN_MS;
        if (began || is_used(c, n, a, &u[i]))
            v->used_ms = c->boot_ms;
        v->attempt = a->id;
        v->seen_ms = c->boot_ms;
        if (v->seen_ms - v->used_ms >= a->task->job->spec.autostop_s * 1000)
            stop_idle(c, a);
    }
}
