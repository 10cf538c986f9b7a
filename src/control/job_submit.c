/* job_submit.c - a tenant asks for a job. It is queued here and never placed: placing is the
 * planner's verb, so that one rule decides who goes first. An array is one row until its tasks
 * are placed. */
#include "control/idem.h"

/* The writer's memory holds what lives, and it is everybody's: a project without a quota of jobs must end somewhere too. */
enum { SPECS_MOST = 128 << 20, SPEC_USUAL = 400 };

static bool fits_quota(const struct project *p, int64_t jobs_live, const struct shape *shape,
                       int64_t nodes, struct err *err)
{
    const struct quota *q = &p->quota;
    const char *what = nodes > 1 ? "this gang" : "a task";
    int64_t gpus = shape->gpu.milli * nodes;
    if (q->jobs >= 0 && jobs_live >= q->jobs)
        return err_set(err, RC_OVER_QUOTA,
                       "project %s has %lld jobs queued or running, and its quota is %lld; wait "
                       "for some to end",
                       p->name, (long long)jobs_live, (long long)q->jobs);
    if (q->gpu_milli >= 0 && gpus > q->gpu_milli)
        return err_set(err, RC_OVER_QUOTA,
                       "%s asks for %lld.%03lld GPUs, and project %s may hold %lld.%03lld at "
                       "once; it could never run",
                       what, (long long)gpus / 1000, (long long)gpus % 1000, p->name, (long long)q->gpu_milli / 1000, (long long)q->gpu_milli % 1000);
    if (q->cpu_milli >= 0 && shape->cpu_milli * nodes > q->cpu_milli)
        return err_set(
            err, RC_OVER_QUOTA,
            "%s asks for more CPUs than project %s may hold at once; it could never run",
            what, p->name);
    if (q->mem_mib >= 0 && shape->mem_mib * nodes > q->mem_mib)
        return err_set(
            err, RC_OVER_QUOTA,
            "%s asks for more memory than project %s may hold at once; it could never run",
            what, p->name);
    return true;
}

const char *limit_whose(struct call *c, const struct project *p, int64_t owner)
{
    const struct person *u = map_get(c->s->persons, owner);
    const struct account *a = map_get(c->s->accounts, owner);
    if (!owner)
        return arena_printf(c->mem, "project %s", p->name);
    return arena_printf(c->mem, "%s %s of project %s", u ? "user" : "service account", u ? u->name : a ? a->name : "", p->name);
}

/* Refused if it could not run even if nothing else did: then waiting is no use. */
static bool fits_limits(struct call *c, const struct project *p, const struct job_spec *spec, const struct shape *shape,
                        struct err *err)
{
    struct limit_ask a = { .owner = c->who->id, .bound_ms = limit_bound_ms(spec), .tasks = MAX(spec->nodes, 1) };
    const char *model = shape->gpu.model[0] && !strpbrk(shape->gpu.model, "|>") ? shape->gpu.model : NULL;
    enum limit_kind kind;
    if (shape->gpu.milli)
        limit_ask_add(&a, model, shape->gpu.milli * MAX(spec->nodes, 1));
    const struct limit_row *r = books_refuse(&p->limits, &a, true, &kind);
    if (!r)
        return true;
    AUTO(str_done) struct str out = { 0 };
    int64_t needs = limit_needs(&a, r, kind);
    limit_sentence(&out, kind, limit_whose(c, p, r->owner), r->model, r->limit.most[kind], needs);
    return err_set(err, RC_OVER_QUOTA, "%s; %s", out.at,
                   needs < 0 ? "give it a max_duration (-t 2h)" : "it could never run");
}

/* That it is used is written with the job: here something else may still be refused. */
static bool workdir_exists(struct call *c, struct submission *s, const struct job_spec *spec,
                           bool *uses, struct err *err)
{
    struct rows r;
    *uses = false;
    if (!text_given(spec->workdir) || text_is(spec->workdir, s->workdir))
        return true;
    if (!ROWS(c, BLOB_GET, &r, err, V_INT(s->project->id), V_TEXT(spec->workdir)))
        return false;
    if (r.count == 0 || emitted_blob(c, ST_BLOB_DROP, s->project->id, spec->workdir))
        return err_field(
            err, "workdir",
            "this folder has not been uploaded; PUT /v1/blobs/%s first (the CLI does it)",
            spec->workdir);
    s->workdir = spec->workdir;
    return *uses = true;
}

static bool names_exist(struct call *c, int64_t project, const struct job_spec *spec,
                        struct err *err)
{
    for (size_t i = 0; i < spec->secrets.count; i++)
        if (!state_secret(c->s, project, spec->secrets.at[i]))
            return err_field(
                err, "secrets",
                "there is no secret '%s' in this project; store it first: arcus secrets set %s",
                spec->secrets.at[i], spec->secrets.at[i]);
    int64_t home = 0;
    for (size_t i = 0; i < spec->volumes.count; i++) {
        struct job_mount m;
        if (!job_mount_parse(spec->volumes.at[i], c->mem, &m, err))
            return false;
        struct volume *v = state_volume(c->s, project, m.volume);
        if (!v)
            return err_field(
                err, "volumes",
                "there is no volume '%s' in this project; make it first: arcus volumes create %s",
                m.volume, m.volume);
        if (v->node && home && v->node != home)
            return err_field(err, "volumes",
                             "volume '%s' is on another node than the others of this job",
                             m.volume);
        home = v->node ? v->node : home;
    }
    struct node *n = text_given(spec->node) ? state_node(c->s, spec->node) : NULL;
    if (text_given(spec->node) && !n)
        return err_field(err, "node", "there is no node '%s'", spec->node);
    if (n && home && home != n->id)
        return err_field(err, "node", "a volume of this job is on another node than '%s'",
                         spec->node);
    return true;
}

static bool settle_image(struct call *c, int64_t project, struct job_spec *spec, struct err *err)
{
    const struct control_config *cfg = control_settings(c->control);
    if (!text_given(spec->image)) {
        if (!text_given(cfg->default_image))
            return err_field(err, "image", "name an image: this cloud has no default");
        spec->image = cfg->default_image;
    }
    bool imported = state_image(c->s, project, spec->image) != NULL;
    bool registry = strchr(spec->image, '/') || strchr(spec->image, ':');
    if (!text_is(spec->image, "host") && !imported && !registry)
        return err_field(err, "image",
                         "there is no image '%s' in this project; import it (arcus image import "
                         "FILE --name %s) or name a registry (registry/name:tag)",
                         spec->image, spec->image);
    return true;
}

/* Why it waits is the planner's to say. What it said of the last one of this kind is a guess that is mostly right, and then a queue of
 * equal jobs is not written twice. */
static enum reason first_reason(const struct job *j)
{
    if (j->blocked)
        return REASON_DEPENDENCY;
    bool same = j->project->wait.reason && text_is(j->project->wait.flavor, j->flavor);
    return same ? j->project->wait.reason : REASON_PRIORITY;
}

static void queue(struct call *c, struct job *j, const char *idem, const char *flavor)
{
    j->flavor = arena_text(j->mem, flavor);
    j->owner_kind = c->who->kind;
    j->owner = c->who->id;
    j->created_ms = c->now_ms;
    j->state = JOB_QUEUED;
    job_deps_link(c, j);
    j->reason = first_reason(j);
    j->project->jobs_live++;
    j->project->disk_held += job_is_instance(j) ? j->spec.disk_mib : 0;
    for (size_t i = 0; i < j->spec.volumes.count; i++) {
        struct job_mount m;
        struct err ignored;
        if (job_mount_parse(j->spec.volumes.at[i], c->mem, &m, &ignored))
            state_volume(c->s, j->project->id, m.volume)->users++;
    }
    EMIT(c, JOB_ADD, V_INT(j->id), V_INT(j->project->id), V_INT(j->owner_kind), V_INT(j->owner),
         V_TEXT(j->name), V_INT(j->state), V_INT(j->reason), V_INT(j->priority), V_INT(j->count),
         V_TEXT(j->spec_text), V_TEXT(j->flavor), V_TEXT(idem), V_INT(j->created_ms),
         idem ? V_INT(idem_slot(c->control, c->r->idem, j->created_ms)) : V_NULL);
    emit_event(c, j->project->id, "job.queued", id_of(c, PREFIX_JOB, j->id), NULL);
    sched_of_job(c->s, j, emit_news(c, SCHED_JOB));
}

bool job_check(struct call *c, struct submission *s, const struct job_spec *ask,
               struct job_wish *out, struct err *err)
{
    struct project *p = s->project;
    out->spec = *ask;
    if (!settle_image(c, p->id, &out->spec, err)
        || !job_spec_settle(&out->spec, c->mem, &out->shape, err)
        || !fits_quota(p, p->jobs_live + s->jobs, &out->shape, MAX(out->spec.nodes, 1), err)
        || !fits_limits(c, p, &out->spec, &out->shape, err)
        || (text_is(out->spec.type, "instance") && !disk_check(c, p, &out->spec, s->disk_mib, err))
        || !names_exist(c, p->id, &out->spec, err) || !workdir_exists(c, s, &out->spec, &out->uses_workdir, err)
        || !job_deps_settle(c, p->id, &out->spec, err))
        return false;
    AUTO(str_done) struct str text = { 0 };
    struct json_out json = { .to = &text };
    str_grow(&text, SPEC_USUAL);
    bind_write(&json, &job_spec_fields, &out->spec);
    if (p->spec_bytes + s->bytes + text.len > SPECS_MOST)
        return err_set(err, RC_OVER_QUOTA,
                       "the jobs of project %s that wait or run are described in %zu MB, which is "
                       "the most; wait for some to end, or put scripts into workdir",
                       p->name, (p->spec_bytes + s->bytes) >> 20);
    out->text = arena_bytes(c->mem, text.at, text.len);
    s->jobs++;
    s->disk_mib += text_is(out->spec.type, "instance") ? out->spec.disk_mib : 0;
    s->bytes += text.len;
    return true;
}

struct job *job_accept(struct call *c, struct project *p, const struct job_wish *wish,
                       const char *idem)
{
    char flavor[48];
    if (wish->uses_workdir)
        EMIT(c, BLOB_USED, V_INT(p->id), V_TEXT(wish->spec.workdir), V_INT(c->now_ms));
    struct job *j = state_keep_job(c->s, new_id(c), p, wish->text, &wish->spec, &wish->shape);
    queue(c, j, idem, flavor_of(&wish->shape, NULL, flavor));
    return j;
}

bool job_submit(struct call *c, const void *body, struct err *err)
{
    struct submission s = { .project = map_get(c->s->projects, c->who->project) };
    struct job_wish wish;
    if (!job_check(c, &s, body, &wish, err))
        return false;
    const char *idem = text_given(c->r->idem)
                           ? arena_printf(c->mem, "%s\n%.16s", c->r->idem, c->r->body_hash)
                           : NULL;
    struct job *j = job_accept(c, s.project, &wish, idem);
    if (idem)
        idem_keep(c, idem_key(c), j->id, NULL);
    job_reply(c, j);
    return true;
}
