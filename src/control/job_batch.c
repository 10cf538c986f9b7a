/* job_batch.c - many different jobs in one request: all of them are queued, or none. Every one is checked before the first is
 * taken, and what is wrong names its place in the list. They do not know each other: `after` names jobs that are there already. */
#include "control/call.h"
#include <stdio.h>

static bool which(size_t i, struct err *err)
{
    char field[sizeof err->field];
    snprintf(field, sizeof field, "jobs[%zu]%s%s", i, err->field[0] ? "." : "", err->field);
    err_wrap(err, "jobs[%zu]", i);
    memcpy(err->field, field, sizeof field);
    return false;
}

bool job_batch(struct call *c, const void *body, struct err *err)
{
    const struct job_batch_ask *ask = body;
    const struct job_spec *list = ask->jobs.at;
    size_t count = ask->jobs.count;
    struct submission s = { .project = map_get(c->s->projects, c->who->project) };
    struct job_wish *wishes = ARENA_ARRAY(c->mem, struct job_wish, count);
    struct batch_view view = { .id = s.project->id,
                               .name = s.project->name,
                               .state = job_state_name(JOB_QUEUED),
                               .count = (int64_t)count };
    if (!count)
        return err_field(err, "jobs", "is empty; name at least one job");
    for (size_t i = 0; i < count; i++)
        if (!job_check(c, &s, &list[i], &wishes[i], err))
            return which(i, err);
    /* Before those of the jobs: the first event of a request carries its Idempotency-Key, and later its reply. */
    emit_event(c, s.project->id, "jobs.queued", id_of(c, PREFIX_PROJECT, s.project->id),
               arena_printf(c->mem, "{\"count\":%zu}", count));
    view.jobs = (struct texts){ ARENA_ARRAY(c->mem, const char *, count), count };
    for (size_t i = 0; i < count; i++)
        view.jobs.at[i]
            = id_of(c, PREFIX_JOB, job_accept(c, s.project, &wishes[i], NULL)->id);
    reply_view(c, &batch_view_fields, &view);
    return true;
}
