/* job_yield.c - a task is told to end for a reason of ours: its node is emptied, or somebody with a better right needs the place. It
 * gets SIGTERM at once and SIGKILL after its grace period, and waits again when its node says that it has ended.
 *
 * In the store its attempt keeps its state and only says as what it will have ended: so a program that does not know this yet
 * requeues it too, and does not take it for cancelled. */
#include "control/call.h"

void attempt_yield(struct call *c, struct attempt *a, enum outcome as, const char *why, const char *word)
{
    struct job *j = a->task->job;
    a->stop = true;
    a->stop_as = as;
    attempt_why(a, why);
    order_shorten(c, a);
    EMIT(c, ATTEMPT_YIELD, V_INT(a->id), V_INT(as), V_INT(a->grace_s), V_TEXT(a->stop_why));
    emit_event(c, j->project->id, "task.evicted", id_of(c, PREFIX_ATTEMPT, a->id),
               arena_printf(c->mem, "{\"job\":\"%s\",\"task\":%lld,\"node\":\"%s\",\"why\":\"%s\",\"detail\":\"%s\",\"grace_s\":%lld}",
                            id_of(c, PREFIX_JOB, j->id), (long long)a->task->index, a->node->name, word, why, (long long)a->grace_s));
    node_changed(c, a->node, a);
}
