/* disk.c - instances that are stopped and started again, and the disks that they keep meanwhile.
 *
 * A disk is a volume that only its instance has (volume.job): it is made on the node where the instance is first placed, if that node can keep one, pins
 * the instance there, and goes with the job, as volumes go. A stopped instance is a job that waits with REASON_STOPPED and one more thing that
 * blocks it: the reason in its row is all there is to remember, so it survives whatever the row survives. The law: an instance that has a disk does not
 * end by itself, however its command ended (a notebook that was shut down says 0): it is stopped, and the disk goes when somebody cancels it. Where there is room for one: disk_room.c. */
#include "control/call.h"
#include <stdio.h>

void disk_link(struct job *j, struct volume *v, struct node *n)
{
    j->disk = v;
    v->mib = j->spec.disk_mib;
    v->next = n->disks;
    n->disks = v;
}

/* A node that says when it started may be wrong by what clocks differ: then a disk that has vanished is not missed, as before. */
bool disk_is_used(const struct job *j)
{
    return j->disk && j->started_ms >= j->disk->created_ms;
}

const struct job *disk_on_image(const struct state *s, const struct image *m)
{
    const struct volume *v;
    for (size_t i = 0; (v = map_next(s->volumes, &i));) {
        const struct job *j = v->job && v->project == m->project ? map_get(s->jobs, v->job) : NULL;
        if (j && text_is(j->spec.image, m->name))
            return j;
    }
    return NULL;
}

void disk_settle(struct call *c, struct job *j, struct node *n)
{
    if (!job_is_instance(j) || j->disk)
        return;
    disk_waits_no_more(c->s, j);
    if (!n->info.disks) {
        emit_event(c, j->project->id, "job.disk_none", id_of(c, PREFIX_JOB, j->id),
                   arena_printf(c->mem, "{\"node\":\"%s\",\"why\":\"the node has no loop devices: what the instance writes goes with its attempt, and it cannot be stopped\"}", n->name));
        return;
    }
    struct volume *v = ARENA_NEW(c->s->mem, struct volume);
    *v = (struct volume){ .id = new_id(c), .project = j->project->id, .node = n->id, .created_ms = c->now_ms, .job = j->id };
    snprintf(v->name, sizeof v->name, "disk of %s", id_of(c, PREFIX_JOB, j->id)); /* nobody can type that as a volume's name */
    map_put(c->s->volumes, v->id, v);
    disk_link(j, v, n);
    EMIT(c, DISK_ADD, V_INT(v->id), V_INT(v->project), V_TEXT(v->name), V_INT(v->node), V_INT(v->created_ms), V_INT(v->job));
    sched_of_job(c->s, j, emit_news(c, SCHED_JOB));
}

static void drop(struct call *c, struct volume *v)
{
    struct node *n = map_get(c->s->nodes, v->node);
    EMIT(c, VOLUME_DROP, V_INT(v->id));
    if (n) { /* what is in it goes too: the node is told until it says so */
        struct volume **at = &n->disks;
        while (*at && *at != v)
            at = &(*at)->next;
        if (*at)
            *at = v->next;
        EMIT(c, GONER_ADD, V_INT(v->id), V_INT(n->id));
        node_goner(n, v->id);
        node_tell(c, n);
    }
    map_take(c->s->volumes, v->id);
}

void disk_drop(struct call *c, struct job *j)
{
    struct volume *v = TAKE(j->disk);
    disk_waits_no_more(c->s, j);
    if (v)
        drop(c, v);
}

/* A node that answers has what it keeps; one that is down has lost it as soon as an operator says that it does not come back. */
bool disks_leave(struct call *c, struct node *n, struct err *err)
{
    struct job *j = n->disks ? map_get(c->s->jobs, n->disks->job) : NULL;
    if (n->disks && n->state != NODE_DOWN)
        return err_set(err, RC_CONFLICT, "the instance %s keeps its disk on node %s; it must be cancelled first", j ? j->name : "of a project", n->name);
    for (struct volume *lost = TAKE(n->disks); lost; lost = lost->next) {
        EMIT(c, VOLUME_DROP, V_INT(lost->id));
        map_take(c->s->volumes, lost->id);
        if (!(j = map_get(c->s->jobs, lost->job)))
            continue;
        j->disk = NULL;
        emit_event(c, j->project->id, "job.disk_lost", id_of(c, PREFIX_JOB, j->id),
                   arena_printf(c->mem, "{\"node\":\"%s\",\"why\":\"its node was removed; the instance begins with an empty disk elsewhere\"}", n->name));
        if (j->state != JOB_STOPPING)
            sched_of_job(c->s, j, emit_news(c, SCHED_JOB));
    }
    return true;
}

static void stop_now(struct call *c, struct job *j, const char *why)
{
    EMIT(c, JOB_WHY, V_INT(j->id), V_TEXT(why));
    disk_waits_no_more(c->s, j);
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
    stop_now(c, j, arena_printf(c->mem, "it ended (%s), and is not tried again", outcome_name(how->outcome)));
    return true;
}

void instance_stop(struct call *c, struct job *j, const char *why)
{
    struct task *t = job_task(j, 0);
    stop_now(c, j, why);
    if (t && t->attempt && !t->attempt->stop)
        attempt_end_soon(c, t->attempt, OUTCOME_PREEMPTED, why);
    job_write(c, j);
}

/* --- the verbs */

static bool find(struct call *c, const char *ref, struct job **out, struct err *err)
{
    struct job *j = *out = state_job(c->s, c->who->project, ref);
    if (!j)
        return job_gone(c, ref, err);
    if (!job_is_instance(j))
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
        return err_set(err, RC_CONFLICT, "%s cannot be stopped: its node keeps no disk of it (it has no loop devices), so what is in it would be lost; cancel it if you need it no more", ask->job);
    if (!job_is_stopped(j))
        instance_stop(c, j, arena_printf(c->mem, "the instance was stopped by %s", c->who->name));
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
        EMIT(c, JOB_WHY, V_INT(j->id), V_TEXT(""));
        job_may_run(c, j);
        j->reason = j->state != JOB_QUEUED ? REASON_NONE : j->blocked ? REASON_DEPENDENCY : REASON_PRIORITY;
        job_write(c, j);
        sched_of_job(c->s, j, emit_news(c, SCHED_JOB));
        emit_event(c, j->project->id, "job.start", id_of(c, PREFIX_JOB, j->id), NULL);
    }
    reply(c, j, 1);
    return true;
}
