/* job_cancel.c - somebody wants a job, or one task of it, to end. What waits ends at once; what
 * runs gets SIGTERM and the grace period, which a second cancel may shorten. Cancelling what has
 * ended is refused, so that nobody thinks it was the cancel. */
#include "control/call.h"
#include "model/hold.h"

/* The attempt goes on until its node says that it has ended. */
void task_stop(struct call *c, struct task *t, int64_t grace_s)
{
    struct attempt *a = t->attempt;
    struct err ignored;
    (void)!job_step(&t->state, NEWS_CANCEL, &ignored);
    a->state = JOB_STOPPING;
    a->stop = true;
    a->stop_as = OUTCOME_CANCELLED;
    order_shorten(c, a);
    if (grace_s >= 0) /* else the job's own */
        a->grace_s = grace_s;
    if (hold_is_away((enum hold_step)a->hold)) /* it could only run beside whoever has its GPUs */
        a->grace_s = 0;
    a->stop_ms = c->now_ms;
    EMIT(c, ATTEMPT_STOP, V_INT(a->id), V_INT(JOB_STOPPING), V_INT(a->started_ms),
         V_INT(a->grace_s), V_INT(a->stop_ms));
    sched_of_held(a, emit_news(c, SCHED_TASK_HELD));
    task_write(c, t, NULL);
    node_changed(c, a->node, a);
}

bool job_gone(struct call *c, const char *ref, struct err *err)
{
    int64_t id;
    enum job_state state = JOB_DONE;
    return job_find_ended(c, c->who->project, ref, &id, &state, err)
           && err_set(err, RC_CONFLICT, "job %s has already ended (%s)", ref,
                      job_state_name(state));
}

/* Whoever cancels again with less patience. */
static bool sooner(const struct call *c, const struct task *t, int64_t grace_s)
{
    const struct attempt *a = t->attempt;
    return a && grace_s >= 0 && c->now_ms + grace_s * 1000 < a->stop_ms + a->grace_s * 1000;
}

static int64_t cancel_task(struct call *c, struct job *j, struct task *t, int64_t grace_s)
{
    if (t->state == JOB_STOPPING && !sooner(c, t, grace_s))
        return 0;
    if (t->attempt)
        return task_stop(c, t, grace_s), 1;
    struct sched_event *e = emit_news(c, SCHED_TASK_GONE);
    e->job = j->id, e->task = t->index, e->project = j->project->id;
    t->state = JOB_CANCELLED;
    t->outcome = OUTCOME_CANCELLED;
    t->ended_ms = c->now_ms;
    j->cancelled++;
    j->waiting--;
    task_write(c, t, "cancelled while it waited");
    map_take(j->tasks, t->index);
    return 1;
}

/* A task of an array whose turn has not come: it gets its row now, and its turn passes. */
static int64_t cancel_early(struct call *c, struct job *j, int64_t index)
{
    struct task t = { .job = j,
                      .index = index,
                      .state = JOB_CANCELLED,
                      .outcome = OUTCOME_CANCELLED,
                      .ended_ms = c->now_ms };
    struct sched_event *e = emit_news(c, SCHED_TASK_GONE);
    e->job = j->id, e->task = index, e->project = j->project->id;
    EMIT(c, TASK_ADD, V_INT(j->id), V_INT(index), V_INT(j->project->id), V_INT(t.state), V_INT(0),
         V_INT(0), V_INT(0));
    task_write(c, &t, "cancelled while it waited");
    j->cancelled++;
    job_skip(j, index);
    return 1;
}

bool job_cancel(struct call *c, const void *body, struct err *err)
{
    const struct job_cancel_ask *ask = body;
    struct job *j = state_job(c->s, c->who->project, ask->job);
    if (!j)
        return job_gone(c, ask->job, err);
    if (ask->task >= j->count)
        return err_field(err, "task", "%s has tasks 0 to %lld", ask->job, (long long)j->count - 1);
    if (ask->task >= 0 && job_gang(j))
        return err_field(err, "task", "%s is a gang: its tasks end together; cancel the whole job", ask->job);
    struct task *one = ask->task >= 0 ? job_task(j, ask->task) : NULL;
    if (ask->task >= 0 && !one && (ask->task < j->next_task || job_skips(j, ask->task)))
        return err_set(err, RC_CONFLICT, "task %lld of %s has already ended", (long long)ask->task,
                       ask->job);
    int64_t grace_s = was_given(c, "grace") ? ask->grace_s : -1;
    struct cancel_view view = { .id = j->id, .name = arena_text(c->mem, j->name) };
    struct task *t;
    if (one) {
        view.tasks = cancel_task(c, j, one, grace_s);
        if (!view.tasks)
            return err_set(err, RC_CONFLICT, "task %lld of %s is being cancelled already",
                           (long long)ask->task, ask->job);
    } else if (ask->task >= 0) {
        view.tasks = cancel_early(c, j, ask->task);
    } else if (j->state == JOB_STOPPING) {
        for (size_t i = 0; (t = map_next(j->tasks, &i));)
            view.tasks += cancel_task(c, j, t, grace_s);
        if (!view.tasks)
            return err_set(err, RC_CONFLICT, "job %s is being cancelled already", ask->job);
    } else {
        view.tasks = j->count - j->next_task - (j->skipped ? (int64_t)map_count(j->skipped) : 0);
        j->cancelled += view.tasks;
        j->next_task = j->count;
        for (size_t i = 0; (t = map_next(j->tasks, &i));)
            view.tasks += cancel_task(c, j, t, grace_s);
        struct sched_event *e = emit_news(
            c,
            SCHED_JOB_GONE); /* nothing of it waits any more; what it holds is freed task by task */
        e->job = j->id, e->project = j->project->id;
        j->state = JOB_STOPPING;
        j->blocked = 0;
        j->reason = REASON_NONE;
    }
    emit_event(c, j->project->id, "job.cancel", id_of(c, PREFIX_JOB, j->id),
               arena_printf(c->mem, "{\"tasks\":%lld}", (long long)view.tasks));
    view.state = map_count(j->tasks) || j->next_task < j->count ? "stopping" : "cancelled";
    job_settle(c, j);
    reply_view(c, &cancel_view_fields, &view);
    return true;
}
