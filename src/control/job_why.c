/* job_why.c - why a job waits, and what would become of one that is not there yet. The door checks as it does for a submit, the planner
 * is asked (planner.c), and what it said is put into words (why_words.c). Nothing is written and nothing is held. */
#include "control/call.h"

bool job_why_ask(struct call *c, const void *body, struct err *err)
{
    const struct job_ref *ask = body;
    const struct job *j = state_job(c->s, c->who->project, ask->job);
    if (!j)
        return job_gone(c, ask->job, err);
    struct question *q = c->r->question;
    q->job = ARENA_NEW(c->mem, struct sched_event);
    q->waits = true;
    sched_of_job(c->s, j, q->job);
    return true;
}

bool job_why(struct call *c, const void *body, struct err *err)
{
    const struct job_ref *ask = body;
    const struct job *j = map_get(c->s->jobs, c->r->question->job->job);
    if (!j) /* it has ended meanwhile */
        return job_gone(c, ask->job, err);
    struct why_view v = { .id = j->id, .name = j->name, .state = job_state_word(j->state, j->reason) };
    why_words(c, c->r->question, j, &v);
    reply_view(c, &why_view_fields, &v);
    return true;
}

/* The job as it would be if it were taken. It lives with the request. */
static struct job *job_of(struct call *c, struct project *p, const struct job_wish *wish)
{
    struct job *j = ARENA_NEW(c->mem, struct job);
    const struct job_after *after = wish->spec.after.at;
    *j = (struct job){ .project = p,
                       .owner = c->who->id,
                       .name = wish->spec.name ? wish->spec.name : "",
                       .spec = wish->spec,
                       .shape = wish->shape,
                       .priority = wish->spec.priority,
                       .count = wish->spec.nodes > 1 ? wish->spec.nodes : wish->spec.count,
                       .tolerates = tolerations_text(&wish->spec.tolerations, wish->spec.network == NETWORK_HOST, c->mem),
                       .created_ms = c->now_ms };
    for (size_t i = 0; i < wish->spec.after.count; i++) {
        int64_t id;
        j->blocked += id_parse(after[i].job, PREFIX_JOB, &id) && map_get(c->s->jobs, id);
    }
    return j;
}

static struct submission submission_of(struct call *c)
{
    return (struct submission){ .project = map_get(c->s->projects, c->who->project) };
}

bool job_plan_ask(struct call *c, const void *body, struct err *err)
{
    struct question *q = c->r->question;
    struct submission s = submission_of(c);
    struct job_wish wish;
    if (!job_check(c, &s, body, &wish, err)) {
        if (err->rc != RC_OVER_QUOTA)
            return false;
        q->refused = arena_text(c->mem, err->text); /* an answer, too */
        return true;
    }
    q->job = ARENA_NEW(c->mem, struct sched_event);
    sched_of_job(c->s, job_of(c, s.project, &wish), q->job);
    return true;
}

bool job_plan(struct call *c, const void *body, struct err *err)
{
    const struct question *q = c->r->question;
    struct submission s = submission_of(c);
    struct job_wish wish;
    const struct job_spec *ask = body;
    struct why_view v = { .name = ask->name ? ask->name : "", .state = "planned", .count = MAX(ask->count, 1) };
    if (q->refused) {
        v.starts = "never";
        v.reason = reason_name(REASON_QUOTA);
        v.reason_text = q->refused;
    } else if (!job_check(c, &s, body, &wish, err)) {
        return false; /* what it names has gone meanwhile */
    } else {
        const struct job *j = job_of(c, s.project, &wish);
        v.count = j->count;
        why_words(c, q, j, &v);
    }
    reply_view(c, &plan_view_fields, &v);
    return true;
}
