/* disk.c - instances that are stopped and started again, and the disks that they keep meanwhile.
 *
 * A disk is a volume that only its instance has (volume.job): it is made on the node where the instance is first placed, if that node can keep one, pins
 * the instance there, and goes with the job, as volumes go. A stopped instance is a job that waits with REASON_STOPPED and one more thing that
 * blocks it: the reason in its row is all there is to remember, so it survives whatever the row survives. The law: an instance that has a disk does not
 * end by itself unless its command says that it is done; what would have failed is stopped, with the disk as it is.
 *
 * A disk that is kept holds a node's space for as long as its owner likes, whether he runs or not. So all of a node's are at most half of what it has, and
 * where there are several projects one of them has at most half of that: the rest is for what everybody needs there. Who comes when that is
 * used up runs as before, but what it writes goes with its attempt. */
#include "control/call.h"
#include <stdio.h>

enum { KEPT_SHARE = 2, PROJECT_SHARE = 2 };

static bool is_instance(const struct job *j) { return text_is(j->spec.type, "instance"); }

/* An agent that has just begun tries first what its machine can do: an instance that came meanwhile would never have a disk. */
bool disk_may(const struct node *n, const struct job *j)
{
    return !is_instance(j) || j->disk || n->info.disks || !text_is(n->info.runtime, "on trial");
}

static bool has_room(const struct state *s, const struct job *j, const struct node *n)
{
    int64_t all = j->spec.disk_mib, own = all, most = n->info.disk_mib / KEPT_SHARE;
    const struct volume *v;
    for (size_t i = 0; (v = map_next(s->volumes, &i));) {
        const struct job *of = v->job && v->node == n->id ? map_get(s->jobs, v->job) : NULL;
        if (!of)
            continue;
        all += of->spec.disk_mib;
        own += of->project == j->project ? of->spec.disk_mib : 0;
    }
    return all <= most && own <= (map_count(s->projects) > 1 ? most / PROJECT_SHARE : most);
}

void disk_settle(struct call *c, struct job *j, struct node *n)
{
    if (!is_instance(j) || j->disk || !n->info.disks)
        return;
    if (!has_room(c->s, j, n)) {
        emit_event(c, j->project->id, "job.disk_none", id_of(c, PREFIX_JOB, j->id),
                   arena_printf(c->mem, "{\"node\":\"%s\",\"why\":\"the disks that are kept there leave no room for one of %lld MiB; what it writes goes with its attempt\"}",
                                n->name, (long long)j->spec.disk_mib));
        return;
    }
    struct volume *v = ARENA_NEW(c->s->mem, struct volume);
    *v = (struct volume){ .id = new_id(c), .project = j->project->id, .node = n->id, .created_ms = c->now_ms, .job = j->id };
    snprintf(v->name, sizeof v->name, "disk of %s", id_of(c, PREFIX_JOB, j->id)); /* nobody can type that as a volume's name */
    map_put(c->s->volumes, v->id, v);
    j->disk = v;
    EMIT(c, DISK_ADD, V_INT(v->id), V_INT(v->project), V_TEXT(v->name), V_INT(v->node), V_INT(v->created_ms), V_INT(v->job));
    sched_of_job(c->s, j, emit_news(c, SCHED_JOB));
}

static void drop(struct call *c, struct volume *v)
{
    struct node *n = map_get(c->s->nodes, v->node);
    EMIT(c, VOLUME_DROP, V_INT(v->id));
    if (n) { /* what is in it goes too: the node is told until it says so */
        EMIT(c, GONER_ADD, V_INT(v->id), V_INT(n->id));
        node_goner(n, v->id);
        node_tell(c, n);
    }
    map_take(c->s->volumes, v->id);
}

void disk_drop(struct call *c, struct job *j)
{
    struct volume *v = TAKE(j->disk);
    if (v)
        drop(c, v);
}

/* A node that answers has what it keeps; one that is down has lost it as soon as an operator says that it does not come back. */
bool disks_leave(struct call *c, struct node *n, struct err *err)
{
    struct volume *v;
    for (size_t i = 0; n->state != NODE_DOWN && (v = map_next(c->s->volumes, &i));)
        if (v->job && v->node == n->id) {
            const struct job *j = map_get(c->s->jobs, v->job);
            return err_set(err, RC_CONFLICT, "the instance %s keeps its disk on node %s; it must be cancelled first", j ? j->name : "of a project", n->name);
        }
    struct job *j;
    for (size_t i = 0; (j = map_next(c->s->jobs, &i));) {
        if (!j->disk || j->disk->node != n->id)
            continue;
        struct volume *lost = TAKE(j->disk);
        EMIT(c, VOLUME_DROP, V_INT(lost->id));
        map_take(c->s->volumes, lost->id);
        emit_event(c, j->project->id, "job.disk_lost", id_of(c, PREFIX_JOB, j->id),
                   arena_printf(c->mem, "{\"node\":\"%s\",\"why\":\"its node was removed; the instance begins with an empty disk elsewhere\"}", n->name));
        if (j->state != JOB_STOPPING)
            sched_of_job(c->s, j, emit_news(c, SCHED_JOB));
    }
    return true;
}

static void stop_now(struct call *c, struct job *j, const char *why)
{
    j->blocked++;
    j->reason = REASON_STOPPED;
    sched_of_job(c->s, j, emit_news(c, SCHED_JOB));
    emit_event(c, j->project->id, "job.stop", id_of(c, PREFIX_JOB, j->id), arena_printf(c->mem, "{\"why\":\"%s\"}", why));
}

bool disk_keeps(struct call *c, struct task *t, const struct ending *how)
{
    struct job *j = t->job;
    if (!j->disk || t->state == JOB_STOPPING || how->outcome == OUTCOME_CANCELLED)
        return false;
    if (job_is_stopped(j))
        return true;    /* it was quicker than the signal, or its node went meanwhile: it is stopped all the same */
    if (how->outcome == OUTCOME_SUCCEEDED)
        return false;
    stop_now(c, j, arena_printf(c->mem, "it ended (%s), and is not tried again", outcome_name(how->outcome)));
    return true;
}

/* --- the verbs */

static bool find(struct call *c, const char *ref, struct job **out, struct err *err)
{
    struct job *j = *out = state_job(c->s, c->who->project, ref);
    if (!j)
        return job_gone(c, ref, err);
    if (!is_instance(j))
        return err_set(err, RC_CONFLICT, "%s is a job, and only instances are stopped and started; suspend it, or cancel it", ref);
    return j->state != JOB_STOPPING || err_set(err, RC_CONFLICT, "%s is being cancelled", ref);
}

static void reply(struct call *c, const struct job *j, int64_t tasks)
{
    struct cancel_view view = { .id = j->id, .name = arena_text(c->mem, j->name), .state = job_state_word(j->state, j->reason), .tasks = tasks };
    reply_view(c, &hold_view_fields, &view);
}

bool job_stop(struct call *c, const void *body, struct err *err)
{
    const struct job_ref *ask = body;
    struct job *j;
    if (!find(c, ask->job, &j, err))
        return false;
    struct task *t = job_task(j, 0);
    struct attempt *a = t ? t->attempt : NULL;
    if (a && !j->disk)
        return err_set(err, RC_CONFLICT, "%s cannot be stopped: its node keeps no disk of it (no loop devices, or no room for one), so what is in it would be lost; cancel it if you need it no more", ask->job);
    if (!job_is_stopped(j)) {
        stop_now(c, j, arena_printf(c->mem, "asked for by %s", c->who->name));
        if (a && !a->stop)
            attempt_end_soon(c, a, OUTCOME_PREEMPTED, "the instance was stopped");
        job_write(c, j);
    }
    reply(c, j, 1);
    return true;
}

bool job_start(struct call *c, const void *body, struct err *err)
{
    const struct job_ref *ask = body;
    struct job *j;
    if (!find(c, ask->job, &j, err))
        return false;
    if (job_is_stopped(j)) {
        j->blocked--;
        j->reason = j->state != JOB_QUEUED ? REASON_NONE : j->blocked ? REASON_DEPENDENCY : REASON_PRIORITY;
        job_write(c, j);
        sched_of_job(c->s, j, emit_news(c, SCHED_JOB));
        emit_event(c, j->project->id, "job.start", id_of(c, PREFIX_JOB, j->id), NULL);
    }
    reply(c, j, 1);
    return true;
}
