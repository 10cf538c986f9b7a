/* gang.c - the life of a gang: its tasks start together, and none of them goes on without the others.
 *
 * When one ends badly and is to be tried again, those that run are told to end and those that had ended well are taken back; as each ends it waits,
 * and when all do the planner may place them anew. When one ends for good, so do all. Nothing of this is kept but the states of the tasks:
 * a gang gathers while some of its tasks wait and others do not. All have been tried equally often, so any may stand for the whole. */
#include "control/call.h"
#include <stdio.h>

bool gang_gathers(struct job *j, int64_t *not_before_ms)
{
    struct task *t;
    for (size_t i = 0; job_gang(j) && (t = map_next(j->tasks, &i));)
        if (t->state == JOB_QUEUED)
            return *not_before_ms = t->not_before_ms, true;
    return false;
}

/* It had done its part; what the others do again needs it again. */
static void take_back(struct call *c, const struct task *first, int64_t index)
{
    struct job *j = first->job;
    struct task *t = job_add_task(j, index);
    t->state = JOB_QUEUED;
    t->tries = first->tries;
    t->faults = first->faults;
    t->evictions = first->evictions;
    t->not_before_ms = first->not_before_ms;
    j->done--;
    task_waits(c, t, "it runs again with its gang");
}

void gang_gather(struct call *c, struct task *first, enum outcome how)
{
    struct job *j = first->job;
    if (!job_gang(j))
        return;
    /* Whether their time is billed follows from what happened to the first. */
    enum outcome as = outcome_is_our_fault(how) ? OUTCOME_NODE_FAULT : how == OUTCOME_PREEMPTED ? OUTCOME_PREEMPTED : OUTCOME_CANCELLED;
    const char *why = arena_printf(c->mem, "task %lld of its gang ended (%s)", (long long)first->index, outcome_name(how));
    for (int64_t i = 0; i < j->count; i++) {
        struct task *t = job_task(j, i);
        if (t == first)
            continue;
        if (!t) {
            take_back(c, first, i);
            continue;
        }
        t->faults = first->faults;
        t->evictions = first->evictions;
        task_write(c, t, NULL);
        if (t->attempt && !t->attempt->stop)
            attempt_yield(c, t->attempt, as, why, "gang");
    }
    emit_event(c, j->project->id, "job.restarted", id_of(c, PREFIX_JOB, j->id),
               arena_printf(c->mem, "{\"task\":%lld,\"outcome\":\"%s\"}", (long long)first->index, outcome_name(how)));
}

void gang_give_up(struct call *c, const struct task *first)
{
    struct job *j = first->job;
    struct task *t;
    for (size_t i = 0; job_gang(j) && (t = map_next(j->tasks, &i));)
        if (t != first && t->attempt && t->state != JOB_STOPPING)
            task_stop(c, t, -1);
}
