/* job_suspend.c - tasks that give their GPUs back for a while, and have them again: the wishes, what nodes tell about them, and whom the
 * planner gives them back.
 *
 * Everything about it is in the attempt's lease: so it is written with what the attempt holds, and there is nothing else to agree with. What
 * an attempt holds changes in one place (change), which tells the planner, and closes the interval of before if its node has said that it
 * stands still or runs: never at a wish, since nobody knows here whether a task of a silent node has not ended long ago. A task
 * comes back to the GPUs that it had, on its node. When, the planner says, who knows what is kept there for whom (sched/returns.c); here
 * it is checked again. */
#include "control/call.h"
#include "model/hold.h"
#include "model/priority.h"
#include "base/must.h"
#include <stdio.h>
#include <stdlib.h>

enum { SPARE_MIB = 1024 };

/* --- what an attempt holds */

static void put_gpus(struct json_out *o, const char *key, const struct attempt *a, int count)
{
    json_key(o, key), json_open(o, '[');
    for (int g = 0; g < count; g++) {
        json_open(o, '{');
        json_key(o, "index"), json_put_int(o, a->gpus[g].index);
        json_key(o, "uuid"), json_put_text(o, a->gpus[g].uuid);
        json_key(o, "milli"), json_put_int(o, a->gpus[g].milli);
        json_key(o, "mem_mib"), json_put_int(o, a->gpus[g].mem_mib);
        json_key(o, "simulated"), json_put_bool(o, a->gpus[g].simulated);
        json_close(o, '}');
    }
    json_close(o, ']');
}

/* As state.c reads it. A slice of MIG is never suspended, so it is not written here. */
static void write_lease(struct call *c, const struct attempt *a)
{
    AUTO(str_done) struct str text = { 0 };
    struct json_out o = { .to = &text };
    char four[IPV4_TEXT];
    json_open(&o, '{');
    json_key(&o, "cpu"), json_put_int(&o, a->own_cpu);
    json_key(&o, "mem"), json_put_int(&o, a->own_mem);
    if (a->address)
        json_key(&o, "address"), json_put_text(&o, ipv4_text(a->address, four));
    put_gpus(&o, "gpus", a, a->gpu_count);
    put_gpus(&o, "away", a, a->away);
    json_key(&o, "hold"), json_put_int(&o, a->hold);
    json_key(&o, "hold_n"), json_put_int(&o, a->hold_n);
    json_key(&o, "hold_ms"), json_put_int(&o, a->hold_ms);
    json_key(&o, "parked"), json_put_int(&o, a->parked_mib);
    json_key(&o, "idle"), json_put_int(&o, a->idle_mib);
    if (a->returns)
        json_key(&o, "returns"), json_put_int(&o, 1);
    if (a->parts)
        attempt_parts_put(a, &o);
    if (a->hold_why)
        json_key(&o, "hold_why"), json_put_text(&o, a->hold_why);
    json_close(&o, '}');
    EMIT(c, ATTEMPT_LEASE, V_INT(a->id), V_TEXT(arena_text(c->mem, text.at)));
}

/* at_ms: since when it is idle with that much memory, or is so no longer. */
static void change_told(struct call *c, struct attempt *a, bool away, int64_t parked_mib, int32_t idle_mib, int64_t at_ms)
{
    if (away == (a->away > 0) && parked_mib == a->parked_mib && idle_mib == a->idle_mib)
        return;
    struct sched_event *e = emit_news(c, SCHED_TASK_FREED);
    e->job = a->task->job->id, e->task = a->task->index, e->node = a->node->id, e->project = a->task->job->project->id;
    if (idle_mib != a->idle_mib)
        attempt_stretch(c, a, at_ms, e);
    a->idle_mib = idle_mib;
    attempt_away(a, away, parked_mib);
    sched_of_held(a, emit_news(c, SCHED_TASK_HELD));
}

static void change(struct call *c, struct attempt *a, int64_t parked_mib) { change_told(c, a, false, parked_mib, a->idle_mib, 0); }

/* --- what is shown */

static void tell(struct call *c, const struct attempt *a, const char *kind, const char *why)
{
    const struct job *j = a->task->job;
    AUTO(str_done) struct str text = { 0 };
    struct json_out o = { .to = &text };
    json_open(&o, '{');
    json_key(&o, "job"), json_put_text(&o, id_of(c, PREFIX_JOB, j->id));
    json_key(&o, "task"), json_put_int(&o, a->task->index);
    json_key(&o, "node"), json_put_text(&o, a->node->name);
    if (a->away)
        json_key(&o, "host_mib"), json_put_int(&o, a->parked_mib);
    if (a->returns)
        json_key(&o, "evicted"), json_put_bool(&o, true);
    if (text_given(why))
        json_key(&o, "why"), json_put_text(&o, why);
    json_close(&o, '}');
    emit_event(c, j->project->id, kind, id_of(c, PREFIX_ATTEMPT, a->id), arena_text(c->mem, text.at));
}

/* A job is suspended if all that there is of it is: then its reason says so, and job_state_word shows it. */
static void mark(struct call *c, struct job *j)
{
    bool all = map_count(j->tasks) > 0 && j->next_task == j->count && !j->waiting, waits = false;
    struct task *t;
    for (size_t i = 0; (t = map_next(j->tasks, &i));) {
        all = all && t->attempt && hold_is_away((enum hold_step)t->attempt->hold);
        waits |= t->attempt && t->attempt->hold == STEP_WAITS;
    }
    bool was = j->reason == REASON_SUSPENDED || j->reason == REASON_RESUME;
    enum reason reason = all && waits ? REASON_RESUME : all ? REASON_SUSPENDED : was ? REASON_NONE : j->reason;
    if (j->state != JOB_RUNNING || reason == j->reason || job_is_stopped(j))
        return;
    j->reason = reason;
    job_write(c, j);
}

/* --- wishes */

static int64_t on_gpus_mib(const struct attempt *a)
{
    const struct gpu_live *live = a->node->live.at;
    int64_t mib = 0;
    for (size_t g = 0; g < a->node->live.count; g++) {
        const struct live_task *tasks = live[g].tasks.at;
        for (size_t t = 0; t < live[g].tasks.count; t++)
            mib += tasks[t].attempt == a->id ? MAX(tasks[t].mem_mib, 0) : 0;
    }
    return mib;
}

static int64_t free_mib(const struct node *n)
{
    const struct attempt *a;
    int64_t mib = n->info.mem_mib;
    for (size_t i = 0; (a = map_next(n->attempts, &i));)
        mib -= a->mem_mib;
    return MAX(mib, 0);
}

/* What is set aside for it until its node says what it really needs: as far as there is that much. Its own memory, as far as it does not use it, is
 * there for the copy too: that nobody knows here, so it is the node that refuses for lack of memory. */
static int64_t room_mib(const struct attempt *a)
{
    int64_t live = on_gpus_mib(a);
    int64_t wants = a->simulated ? 0 : live ? live + live / 8 + SPARE_MIB : a->gpu_mib;
    return MIN(wants, free_mib(a->node));
}

/* NULL: it can. */
static const char *refused(const struct task *t, bool on)
{
    const struct attempt *a = t->attempt;
    if (!a || a->state != JOB_RUNNING)
        return "it does not run";
    if (a->stop)
        return "it is being ended";
    enum hold_step step = (enum hold_step)a->hold;
    if (!hold_next(&step, on ? HOLD_SUSPEND : HOLD_RESUME))
        return on ? "it is suspended already" : a->hold == STEP_NONE ? "it is not suspended" : "it goes on as soon as it can";
    if (!on || a->hold != STEP_NONE)
        return NULL;
    return hold_refused(&a->node->info, a->gpus, (size_t)a->gpu_count, job_gang(t->job));
}

/* The node is told again whenever the wish is another one; a task that waits for its GPUs is still to be suspended there. */
static void wish(struct call *c, struct attempt *a, bool on)
{
    enum hold_step step = (enum hold_step)a->hold;
    (void)!hold_next(&step, on ? HOLD_SUSPEND : HOLD_RESUME);
    a->hold = (uint8_t)step;
    if (step == STEP_SUSPENDING)
        change(c, a, MAX(a->parked_mib, room_mib(a)));    /* the node's memory is its own before anything comes there */
    a->returns = a->returns && !on;
    a->hold_n += step == STEP_SUSPENDING || step == STEP_RESUMING;
    write_lease(c, a);
    tell(c, a, on ? "task.suspend" : "task.resume", NULL);
    sched_of_held(a, emit_news(c, SCHED_TASK_HELD));
    node_changed(c, a->node, a);
}

static bool each(struct call *c, const struct job_hold_ask *ask, bool on, struct err *err)
{
    struct job *j = state_job(c->s, c->who->project, ask->job);
    if (!j)
        return job_gone(c, ask->job, err);
    if (ask->task >= j->count)
        return err_field(err, "task", "%s has tasks 0 to %lld", ask->job, (long long)j->count - 1);
    struct cancel_view view = { .id = j->id, .name = arena_text(c->mem, j->name), .state = on ? "suspending" : "resuming" };
    const char *why = "it does not run";
    struct task *t;
    for (size_t i = 0; (t = map_next(j->tasks, &i));) {
        if (ask->task >= 0 && t->index != ask->task)
            continue;
        const char *no = refused(t, on);
        if (no)
            why = no;
        else
            wish(c, t->attempt, on), view.tasks++;
    }
    if (!view.tasks)
        return err_set(err, RC_CONFLICT, "%s cannot be %s: %s", ask->job, on ? "suspended" : "resumed", why);
    mark(c, j);
    reply_view(c, &hold_view_fields, &view);
    return true;
}

bool job_suspend(struct call *c, const void *body, struct err *err) { return each(c, body, true, err); }
bool job_resume(struct call *c, const void *body, struct err *err) { return each(c, body, false, err); }

/* --- GPUs for those that want them back */

/* Until its node says that it runs it has all that it needs either way. */
static void have_back(struct call *c, struct attempt *a)
{
    a->hold = STEP_RESUMING;
    change(c, a, MAX(a->parked_mib - a->own_mem, 0));
    a->hold_n++;
    write_lease(c, a);
    tell(c, a, "task.resuming", NULL);
    mark(c, a->task->job);
    node_changed(c, a->node, a);
}

void holds_return(struct call *c, const struct objects *list)
{
    const struct resume *at = list->at;
    for (size_t i = 0; i < list->count; i++) {
        struct job *j = map_get(c->s->jobs, at[i].job);
        struct task *t = j ? job_task(j, at[i].task) : NULL;
        struct attempt *a = t ? t->attempt : NULL;
        if (a && a->hold == STEP_WAITS && !a->stop && a->node->id == at[i].node && gpus_may_return(c, a)) {
            have_back(c, a);
            continue;
        }
        struct sched_event *e = emit_news(c, SCHED_TASK_KEPT);
        e->job = at[i].job, e->task = at[i].task, e->node = at[i].node;
    }
}

/* Work of class spot alone. It holds on to its GPUs until they are free, as one does that was told to end. */
bool hold_instead(struct call *c, struct attempt *a)
{
    const struct job *j = a->task->job;
    int64_t rule = c->s->rules.at[RULE_SPOT_SUSPEND];
    if (rule == SUSPEND_NEVER || (a->simulated && rule != SUSPEND_ALWAYS) || priority_of(j->priority) != CLASS_SPOT || a->state != JOB_RUNNING
        || a->hold != STEP_NONE || a->hold_why || hold_refused(&a->node->info, a->gpus, (size_t)a->gpu_count, job_gang(j))
        || (!a->simulated && on_gpus_mib(a) > a->own_mem + free_mib(a->node)))
        return false;
    a->returns = true;
    a->hold = STEP_SUSPENDING;
    change(c, a, MAX(a->parked_mib, room_mib(a)));
    a->hold_n++;
    write_lease(c, a);
    tell(c, a, "task.suspend", "somebody with a better right needs its GPUs");
    sched_of_held(a, emit_news(c, SCHED_TASK_HELD));
    node_changed(c, a->node, a);
    return true;
}

/* --- facts */

static void take(struct call *c, struct attempt *a, const struct hold_told *told)
{
    bool suspended = told->state == HOLD_SUSPENDED;
    enum hold_step before = (enum hold_step)a->hold, step = before;
    if (a->stop)
        return;
    if (!hold_next(&step, suspended ? HOLD_IS_SUSPENDED : HOLD_RUNS)) { /* told before */
        if (before == STEP_NONE && !suspended && told->over_mib < a->parked_mib) { /* its limit has been lowered since */
            change(c, a, told->over_mib);
            write_lease(c, a);
        }
        return;
    }
    bool evicted = a->returns, failed = before == STEP_RESUMING ? suspended : !suspended;
    a->hold = (uint8_t)(evicted && step == STEP_SUSPENDED && !failed ? STEP_WAITS : step); /* it waits from the beginning */
    int64_t parked = !suspended ? told->over_mib : told->mem_mib ? told->mem_mib : a->own_mem + told->gpu_mib;
    change_told(c, a, suspended, parked, suspended ? (int32_t)MIN(MAX(parked, 1), INT32_MAX) : 0, told->at_ms);
    a->returns = evicted && suspended && !failed;
    free(TAKE(a->hold_why));
    if (before == STEP_SUSPENDING && failed)
        a->hold_why = must(strdup(text_given(told->why) ? told->why : "its node could not do it"));
    write_lease(c, a);
    tell(c, a, step == STEP_SUSPENDED ? before == STEP_RESUMING ? "task.resume_failed" : "task.suspended"
               : before == STEP_SUSPENDING ? "task.suspend_failed" : "task.resumed", told->why);
    mark(c, a->task->job);
    if (evicted && failed) /* it must go, or cannot come back: it is tried again from the beginning */
        attempt_evict_anyway(c, a, suspended ? "it was suspended, and could not go on" : "it had to yield, and could not be suspended");
}

void holds_take(struct call *c, struct node *n, const struct objects *list)
{
    const struct hold_told *told = list->at;
    for (size_t i = 0; i < list->count; i++) {
        struct attempt *a = map_get(c->s->attempts, told[i].attempt);
        if (a && a->node == n && a->hold_n == told[i].n)
            take(c, a, &told[i]);
    }
}
