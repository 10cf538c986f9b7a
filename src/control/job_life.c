/* job_life.c - how attempts, tasks and jobs come to their end: the one place that closes an
 * attempt, meters it and decides whether its task is tried again. Everything that ends goes
 * through attempt_over or task_over exactly once. */
#include "control/call.h"
#include "meter/meter.h"
#include <stdio.h>

/* Our own faults do not count against a job's retries, but a task that kills nodes must stop
 * somewhere. */
enum { CLOCKS_DIFFER_MS = 60 * 1000 };
enum { FAULTS_MOST = 20 };
/* A GPU that several share fails for all of them, and who caused it can only be suspected. */
enum { SUSPICIONS_MOST = 3, FORGIVEN_MS = 24 * 3600 * 1000 };

void job_write(struct call *c, struct job *j)
{
    j->version++;
    EMIT(c, JOB_SET, V_INT(j->id), V_INT(j->state), V_INT(j->reason), V_INT(j->outcome),
         V_INT(j->priority), V_INT(j->next_task), V_INT(j->done), V_INT(j->failed),
         V_INT(j->cancelled), V_INT(j->exit_code), V_INT(j->started_ms), V_INT(j->ended_ms),
         V_INT(j->version), V_INT(j->project->id));
}

/* Time in which it could not have run is no waiting: whoever is stopped, or comes after another, does not get older. */
void job_may_run(struct call *c, struct job *j)
{
    if (j->blocked)
        return;
    j->ready_ms = c->now_ms;
    EMIT(c, JOB_READY, V_INT(j->id), V_INT(j->ready_ms), V_INT(j->project->id));
}

void task_write(struct call *c, struct task *t, const char *detail)
{
    EMIT(c, TASK_SET, V_INT(t->job->id), V_INT(t->index), V_INT(t->state), V_INT(t->outcome),
         V_INT(t->tries), V_INT(t->faults), V_INT(t->attempt ? t->attempt->id : 0),
         V_INT(t->exit_code), V_INT(t->signal), V_TEXT(detail ? detail : ""),
         V_INT(t->not_before_ms), V_INT(t->started_ms), V_INT(t->ended_ms), V_INT(t->evictions),
         V_INT(t->suspicions), V_INT(t->suspected_ms));
}

static void count_end(struct job *j, const struct task *t)
{
    int64_t *counts[]
        = { [JOB_DONE] = &j->done, [JOB_FAILED] = &j->failed, [JOB_CANCELLED] = &j->cancelled };
    ++*counts[t->state];
    if (t->state == JOB_FAILED
        && j->outcome == OUTCOME_NONE) { /* the first failure tells for the whole */
        j->outcome = t->outcome;
        j->exit_code = t->exit_code ? t->exit_code : t->signal ? 128 + t->signal : 1;
    }
}

void task_over(struct call *c, struct task *t, enum job_news news, enum outcome outcome,
               const char *detail)
{
    struct err err = { 0 };
    struct job *j = t->job;
    if (!job_step(&t->state, news, &err))
        return; /* it had ended already: a late word changes nothing */
    t->outcome = t->state == JOB_CANCELLED ? OUTCOME_CANCELLED : outcome;
    t->ended_ms = c->now_ms;
    count_end(j, t);
    task_write(c, t, detail);
    map_take(j->tasks, t->index);
    job_settle(c, j);
}

/* The job itself is over: its row, its event, its place in the books. What came after it is the
 * caller's to look at. */
static void job_end(struct call *c, struct job *j)
{
    static const char *const kinds[] = {
        [JOB_DONE] = "job.done", [JOB_FAILED] = "job.failed", [JOB_CANCELLED] = "job.cancelled"
    };
    j->state = j->failed ? JOB_FAILED : j->cancelled ? JOB_CANCELLED : JOB_DONE;
    if (j->state != JOB_FAILED)
        j->outcome = j->state == JOB_DONE ? OUTCOME_SUCCEEDED : OUTCOME_CANCELLED;
    j->reason = REASON_NONE;
    j->ended_ms = c->now_ms;
    job_write(c, j);
    emit_event(c, j->project->id, kinds[j->state], id_of(c, PREFIX_JOB, j->id),
               arena_printf(c->mem, "{\"outcome\":\"%s\",\"exit_code\":%lld}",
                            outcome_name(j->outcome), (long long)j->exit_code));
    struct sched_event *e = emit_news(c, SCHED_JOB_GONE);
    e->job = j->id, e->project = j->project->id;
    j->project->jobs_live--;
    j->project->disk_held -= job_is_instance(j) ? j->spec.disk_mib : 0;
    for (size_t i = 0; i < j->spec.volumes.count; i++) {
        struct job_mount m;
        struct err ignored;
        struct volume *v = job_mount_parse(j->spec.volumes.at[i], c->mem, &m, &ignored)
                               ? state_volume(c->s, j->project->id, m.volume)
                               : NULL;
        if (v)
            v->users--;
    }
    disk_drop(c, j);
    state_end_job(c->s, j);
}

/* One job less to wait for. True: it can never start, and has ended. */
static bool follower_step(struct call *c, struct job *j, enum after_when when, enum job_state how)
{
    if ((when == AFTER_OK && how != JOB_DONE) || (when == AFTER_FAIL && how == JOB_DONE)) {
        j->failed += j->count - j->done - j->failed - j->cancelled;
        j->next_task = j->count;
        j->outcome = OUTCOME_DEPENDENCY;
        j->exit_code = 1;
        job_end(c, j);
        return true;
    }
    if (--j->blocked == 0) {
        j->reason = REASON_PRIORITY;
        job_may_run(c, j);
        job_write(c, j);
        sched_of_job(c->s, j, emit_news(c, SCHED_JOB));
    }
    return false;
}

/* A long chain of jobs may fall at once, so it is walked as a list and not by calls in calls. */
void job_settle(struct call *c, struct job *j)
{
    if (j->done + j->failed + j->cancelled < j->count) {
        job_write(c, j);
        return;
    }
    struct job *last = j;
    job_end(c, j);
    for (; j; j = j->next_ended)
        for (size_t i = 0; i < j->follower_count; i++) {
            struct job *after = map_get(c->s->jobs, j->followers[i].job);
            if (after && after->blocked && follower_step(c, after, j->followers[i].when, j->state))
                last = last->next_ended = after;
        }
}

/* asked: we told it to end, as when its node is drained, or it was hit by what others may have done. */
static bool wants_retry(const struct job *j, const struct task *t, enum outcome outcome, bool asked)
{
    if (t->state == JOB_STOPPING || outcome == OUTCOME_SUCCEEDED || outcome == OUTCOME_CANCELLED || outcome == OUTCOME_OUT_OF_DISK)
        return false;
    if (outcome == OUTCOME_START_FAILED && disk_is_used(j))
        return false; /* it has been started from the same words before: what is in the way is on its disk, and stays there */
    if (outcome == OUTCOME_NODE_LOST && j->spec.on_lost == ON_LOST_WAIT)
        return false; /* it may still run there, and was to run nowhere else */
    if (outcome == OUTCOME_PREEMPTED || asked)
        return true; /* however often: it did nothing wrong */
    if (outcome_is_our_fault(outcome))
        return t->faults < FAULTS_MOST && t->suspicions < SUSPICIONS_MOST;
    if (t->tries - t->faults - t->evictions > j->spec.retry.limit)
        return false;
    for (size_t i = 0; i < j->spec.retry.on.count; i++)
        if (text_is(j->spec.retry.on.at[i], outcome_name(outcome)))
            return true;
    return j->spec.retry.on.count == 0;
}

/* Before the next attempt. After a fault of ours the first is at once, elsewhere perhaps; a node
 * that fails everything, or is asked for what cannot be started, must not be asked a thousand times a second. */
static int64_t pause_ms(const struct job *j, const struct task *t, enum outcome how)
{
    bool never_ran = how == OUTCOME_START_FAILED || how == OUTCOME_IMAGE_NOT_FOUND;
    int64_t times = outcome_is_our_fault(how) ? t->faults - 2 : never_ran ? t->tries - t->faults - t->evictions - 1 : -1;
    int64_t pause = times < 0 ? 0 : MIN(1000LL << MIN(times, 6), 60000);
    return outcome_is_our_fault(how) ? pause : MAX(pause, j->spec.retry.delay_s * 1000);
}

/* What is set aside for one that is about to be suspended, or is back, beyond its own is not metered.
 * What of it counts is told to the planner with its end. id: of the interval; an attempt that never changed what it holds has one, its own. */
static void meter(struct call *c, struct attempt *a, int64_t id, const struct ending *how, struct sched_event *freed)
{
    const struct job *j = a->task->job;
    struct interval i = { 0 };
    if (!meter_interval(&i, how->started_ms, how->ended_ms, how->outcome))
        return;
    char model_flavor[48];
    const char *model = NULL;
    const struct gpu_info *gpus = a->node->info.gpus.at;
    bool idle = a->idle_mib > 0;
    for (size_t g = 0; a->gpu_count && !idle && g < a->node->info.gpus.count; g++)
        if (gpus[g].index == a->gpus[0].index)
            model = gpus[g].model;
    struct shape held
        = j->shape; /* what it got, so that "any GPU" is metered as the model it ran on */
    held.gpu.milli = idle ? 0 : a->gpu_milli;
    i.project = j->project->id, i.owner_kind = (int)j->owner_kind, i.owner = j->owner;
    i.flavor = flavor_of(&held, model, model_flavor);
    i.gpu_milli = held.gpu.milli, i.gpu_mib = idle ? 0 : a->gpu_mib;
    i.cpu_milli = idle ? 0 : a->own_cpu, i.mem_mib = idle ? a->idle_mib : a->own_mem, i.simulated = a->simulated;
    EMIT(c, USAGE_ADD, V_INT(id), V_INT(i.project), V_INT(i.owner_kind), V_INT(i.owner),
         V_INT(j->id), V_INT(a->node->id), V_TEXT(i.flavor), V_INT(i.gpu_milli), V_INT(i.gpu_mib),
         V_INT(i.cpu_milli), V_INT(i.mem_mib), V_INT(i.started_ms), V_INT(i.ended_ms),
         V_INT(i.billable), V_INT(i.simulated), V_INT(1));
    if (id != a->id) {
        EMIT(c, USAGE_PART, V_INT(id), V_INT(a->id));
        attempt_part(a, id, &i);
    }
    usage_roll(c, &i);
    if (!i.billable || idle)
        return;
    freed->used_from_ms = i.started_ms;
    freed->used_until_ms = i.ended_ms;
    if (a->counted) {
        books_roll(&j->project->limits, c->now_ms);
        books_use(&j->project->limits, a->counted, i.started_ms, i.ended_ms);
    }
}

/* What is metered changes while it runs: what it was until then is an interval of its own. A node's word about the time counts as far as it
 * lies between the last change and now. */
void attempt_stretch(struct call *c, struct attempt *a, int64_t until_ms, struct sched_event *freed)
{
    int64_t from = MAX(a->hold_ms, a->started_ms);
    until_ms = MAX(MIN(until_ms, c->now_ms), from);
    const struct ending how = { .outcome = OUTCOME_NONE, .started_ms = from, .ended_ms = until_ms };
    if (until_ms > from)
        meter(c, a, new_id(c), &how, freed);
    a->hold_ms = until_ms;
}

static const char *end_data(struct call *c, const struct attempt *a, const struct ending *how)
{
    AUTO(str_done) struct str text = { 0 };
    struct json_out o = { .to = &text };
    json_open(&o, '{');
    json_key(&o, "job"), json_put_text(&o, id_of(c, PREFIX_JOB, a->task->job->id));
    json_key(&o, "task"), json_put_int(&o, a->task->index);
    json_key(&o, "outcome"), json_put_text(&o, outcome_name(how->outcome));
    json_key(&o, "exit_code"), json_put_int(&o, how->exit_code);
    json_key(&o, "signal"), json_put_int(&o, how->signal);
    json_key(&o, "detail"), json_put_text(&o, how->detail ? how->detail : "");
    json_close(&o, '}');
    return arena_text(c->mem, text.at);
}

/* A node's word about time is taken as far as it can be true: its clock may be wrong, and it may
 * lie to bill somebody. What it says lies between the placing and now, give or take what clocks
 * differ by, and lasted no longer than that. */
static struct ending believable(const struct call *c, const struct attempt *a,
                                const struct ending *told)
{
    struct ending how = *told;
    int64_t first = a->placed_ms - CLOCKS_DIFFER_MS,
            last = MAX(c->now_ms, a->placed_ms) + CLOCKS_DIFFER_MS;
    if (!how.started_ms || (how.started_ms >= first && how.ended_ms <= last))
        return how;
    int64_t lasted = MIN(MAX(how.ended_ms - how.started_ms, 0), MAX(c->now_ms - a->placed_ms, 0));
    how.ended_ms = MAX(c->now_ms, a->placed_ms);
    how.started_ms = how.ended_ms - lasted;
    return how;
}

static void suspect(struct call *c, struct task *t, struct ending *how)
{
    if (how->blame != BLAME_SUSPECT || !outcome_is_our_fault(how->outcome))
        return;
    t->suspicions = c->now_ms - t->suspected_ms > FORGIVEN_MS ? 1 : t->suspicions + 1;
    t->suspected_ms = c->now_ms;
    if (t->suspicions < SUSPICIONS_MOST)
        return;
    how->detail = arena_printf(c->mem, "its processes may have been at fault %d times when a GPU that it shared failed; the last time: %s",
                               t->suspicions, how->detail ? how->detail : "");
}

void attempt_over(struct call *c, struct attempt *a, const struct ending *told)
{
    struct ending believed = believable(c, a, told), *how = &believed;
    if (how->started_ms && a->hold_ms) /* parts of it are metered: a clock that jumped since must not make them more than the whole */
        how->started_ms = a->started_ms, how->ended_ms = attempt_parts_cut(c, a, how->ended_ms);
    struct task *t = a->task;
    struct job *j = t->job;
    struct node *n = a->node;
    suspect(c, t, how);
    enum job_state end = how->outcome == OUTCOME_SUCCEEDED   ? JOB_DONE
                         : how->outcome == OUTCOME_CANCELLED ? JOB_CANCELLED
                                                             : JOB_FAILED;
    EMIT(c, ATTEMPT_SET, V_INT(a->id), V_INT(end), V_INT(how->outcome), V_INT(how->started_ms),
         V_INT(how->ended_ms), V_INT(how->exit_code), V_INT(how->signal),
         V_TEXT(how->detail ? how->detail : ""));
    struct sched_event *e = emit_news(c, SCHED_TASK_FREED);
    struct ending last = *how;
    if (last.started_ms) /* what was before is metered already */
        last.started_ms = MAX(last.started_ms, a->hold_ms);
    meter(c, a, a->id, &last, e);
    if (outcome_is_our_fault(how->outcome))
        attempt_parts_void(c, a);
    emit_event(c, j->project->id, "attempt.ended", id_of(c, PREFIX_ATTEMPT, a->id),
               end_data(c, a, how));
    e->job = j->id, e->task = t->index, e->node = n->id, e->project = j->project->id;
    t->exit_code = how->exit_code;
    t->signal = how->signal;
    if (how->started_ms && !t->started_ms)
        t->started_ms = how->started_ms;
    if (how->started_ms && !j->started_ms)
        j->started_ms = how->started_ms;
    bool ours = outcome_is_our_fault(how->outcome);
    int64_t not_before = 0;
    bool gathers = t->state != JOB_STOPPING && gang_gathers(j, &not_before);
    bool asked = ours && (how->blame == BLAME_BYSTANDER || (a->stop && how->outcome == a->stop_as));
    bool again = gathers || wants_retry(j, t, how->outcome, asked) || disk_keeps(c, t, how);
    int64_t id = a->id;
    bool took = node_takes(n);
    state_drop_attempt(c->s, a);
    if (took != node_takes(n))
        sched_of_node(c->s, n, emit_news(c, SCHED_NODE));
    node_gone(c, n, id);
    mesh_tell(c, j->project, n);
    node_emptied(c, n);
    if (!again) {
        enum job_news news = how->outcome == OUTCOME_SUCCEEDED   ? NEWS_SUCCEEDED
                             : how->outcome == OUTCOME_CANCELLED ? NEWS_CANCEL
                                                                 : NEWS_FAILED;
        if (news == NEWS_CANCEL) /* a cancel that has happened: the wish first, then the end */
            t->state = JOB_STOPPING, news = NEWS_FAILED;
        if (news != NEWS_SUCCEEDED)
            gang_give_up(c, t);
        task_over(c, t, news, how->outcome, how->detail);
        return;
    }
    struct err ignored;
    (void)!job_step(&t->state, NEWS_RETRY, &ignored);
    t->faults += ours && !asked && !gathers;
    t->evictions += (how->outcome == OUTCOME_PREEMPTED || asked) && !gathers;
    t->outcome = how->outcome;
    int64_t pause = how->outcome == OUTCOME_PREEMPTED || asked || job_is_stopped(j) ? 0 : pause_ms(j, t, how->outcome);
    t->not_before_ms = MAX(gathers ? not_before : c->now_ms + pause, how->not_before_ms);
    task_waits(c, t, how->detail);
    if (!gathers)
        gang_gather(c, t, how->outcome);
}

void task_waits(struct call *c, struct task *t, const char *detail)
{
    struct job *j = t->job;
    j->waiting++;
    if (j->next_task == j->count
        && (int64_t)map_count(j->tasks)
               == j->waiting) { /* nothing of it runs: it is back in the queue */
        j->state = JOB_QUEUED;
        if (!job_is_stopped(j))
            j->reason = t->not_before_ms > c->now_ms ? REASON_RETRY : REASON_PRIORITY;
        else
            emit_event(c, j->project->id, "job.stopped", id_of(c, PREFIX_JOB, j->id), NULL);
    }
    task_write(c, t, detail);
    job_write(c, j);
    struct sched_event *e = emit_news(c, SCHED_TASK_QUEUED);
    e->job = j->id, e->task = t->index, e->not_before_ms = t->not_before_ms,
    e->project = j->project->id;
}

/* The newest job of that name, or the one of that id: alive, ended in this commit, or in the
 * store. 0: there is none. */
static bool find_job(struct call *c, int64_t project, const char *ref, int64_t *id, struct err *err)
{
    struct rows r;
    struct job *j;
    if (id_parse(ref, PREFIX_JOB, id))
        return true;
    if (!ROWS(c, JOB_BY_NAME, &r, err, V_INT(project), V_TEXT(ref)))
        return false;
    *id = r.count ? row_int(&r, 0, 0) : 0;
    const struct map *maps[] = { c->s->jobs, c->s->ended };
    for (size_t m = 0; m < COUNT(maps); m++)
        for (size_t i = 0; (j = map_next(maps[m], &i));)
            if (j->project->id == project && text_is(j->name, ref))
                *id = MAX(*id, j->id);
    return true;
}

bool job_find_ended(struct call *c, int64_t project, const char *ref, int64_t *id,
                    enum job_state *state, struct err *err)
{
    struct rows r;
    if (!find_job(c, project, ref, id, err))
        return false;
    struct job *j = map_get(c->s->jobs, *id);
    j = j ? j : map_get(c->s->ended, *id);
    if (j && j->project->id == project)
        return *state = j->state, true;
    if (!ROWS(c, JOB_GET, &r, err, V_INT(project), V_INT(*id)))
        return false;
    if (r.count == 0)
        return err_set(err, RC_NOT_FOUND, "there is no job '%s' in this project", ref);
    return *state = (enum job_state)row_int(&r, 0, 5), true;
}

/* Names become ids here, once: a later job of the same name changes nothing, and since what one
 * comes after is older, nothing can wait for itself. */
bool job_deps_settle(struct call *c, int64_t project, struct job_spec *spec, struct err *err)
{
    const struct job_after *list = spec->after.at;
    struct job_after *settled = ARENA_ARRAY(c->mem, struct job_after, spec->after.count);
    for (size_t i = 0; i < spec->after.count; i++) {
        enum job_state s = JOB_QUEUED;
        int64_t id;
        if (!job_find_ended(c, project, list[i].job, &id, &s, err))
            return err->rc == RC_NOT_FOUND ? err_field(
                       err, "after", "there is no job '%s' in this project", list[i].job)
                                           : false;
        if (job_ended(s)
            && ((list[i].when == AFTER_OK && s != JOB_DONE)
                || (list[i].when == AFTER_FAIL && s == JOB_DONE)))
            return err_field(
                err, "after",
                "job '%s' has already ended another way (%s), so this one could never start",
                list[i].job, job_state_name(s));
        settled[i] = (struct job_after){ id_of(c, PREFIX_JOB, id), list[i].when };
    }
    spec->after.at = settled;
    return true;
}

void job_deps_link(struct call *c, struct job *j)
{
    const struct job_after *list = j->spec.after.at;
    for (size_t i = 0; i < j->spec.after.count; i++) {
        int64_t id;
        struct job *first = id_parse(list[i].job, PREFIX_JOB, &id) ? map_get(c->s->jobs, id) : NULL;
        if (!first)
            continue;
        job_follow(first, j->id, (enum after_when)list[i].when);
        j->blocked++;
    }
}
