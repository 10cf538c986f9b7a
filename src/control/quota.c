/* quota.c - limits: setting them, what they are and what of them is used, and where a waiting job stands.
 *
 * The door's books are in the memory of the writer (state.h). What people look at is worked out from what is committed: sums of
 * days and the leases of what runs, so that any server can tell. */
#include "control/call.h"
#include "model/priority.h"
#include "sched/share.h"
#include <stdio.h>

static const int64_t day_ms = INT64_C(86400) * 1000, hour_ms = 3600 * 1000;

/* --- setting */

static bool owner_of(struct call *c, const struct project *p, const char *ref, int64_t *owner, const char **name, struct err *err)
{
    *owner = 0;
    *name = "";
    if (!text_given(ref))
        return true;
    const struct person *u = state_person(c->s, ref);
    const struct account *a = u ? NULL : state_account(c->s, p->id, ref);
    if (!u && !a)
        return err_field(err, "user", "there is no user '%s', and no service account of that name in project %s", ref, p->name);
    *owner = u ? u->id : a->id;
    *name = u ? u->name : a->name;
    return true;
}

/* What it holds now; what it used comes from the sums, which have all that has ended. */
static bool count_row(struct call *c, const struct project *p, struct books *fresh, struct err *err)
{
    struct rows r;
    int64_t month = period_begin(PERIODS - 1, c->now_ms), week = period_begin(PERIODS - 2, c->now_ms);
    books_roll(fresh, c->now_ms);
    if (books_have_hours(fresh) && !ROWS(c, LIMIT_USED, &r, err, V_INT(p->id), V_INT(MIN(month, week) / day_ms)))
        return false;
    for (size_t i = 0; books_have_hours(fresh) && i < r.count; i++)
        books_used_day(fresh, row_int(&r, i, 0), row_text(&r, i, 1), row_int(&r, i, 2) * day_ms, row_int(&r, i, 3));
    struct attempt *a;
    for (size_t i = 0; (a = map_next(c->s->attempts, &i));)
        if (a->task->job->project == p) {
            attempt_count(a);
            books_hold(fresh, a->counted, 1);
        }
    return true;
}

static void write_row(struct call *c, const struct project *p, const struct limit_row *r, int64_t owner, const char *model)
{
    const int64_t *m = r ? r->limit.most : NULL;
    if (r)
        EMIT(c, LIMIT_SET, V_INT(p->id), V_INT(owner), V_TEXT(model), V_INT(m[LIMIT_TASKS]), V_INT(m[LIMIT_GPUS]),
             V_INT(m[LIMIT_DAY]), V_INT(m[LIMIT_WEEK]), V_INT(m[LIMIT_MONTH]));
    else
        EMIT(c, LIMIT_DROP, V_INT(p->id), V_INT(owner), V_TEXT(model));
}

bool quota_set(struct call *c, const void *body, struct err *err)
{
    const struct limit_set *ask = body;
    struct project *p = state_project(c->s, ask->project);
    char model[MODEL_NAME] = "";
    int64_t owner;
    const char *user;
    if (!p)
        return err_set(err, RC_NOT_FOUND, "there is no project '%s'", ask->project);
    if (!owner_of(c, p, ask->user, &owner, &user, err))
        return false;
    if (text_given(ask->model))
        model_name(ask->model, model);
    struct limit_row *known = books_row(&p->limits, owner, model);
    struct limit want = known ? known->limit : LIMIT_NONE;
    for (int k = 0; k < LIMIT_KINDS; k++)
        if (was_given(c, limit_name((enum limit_kind)k)))
            want.most[k] = ask->limit.most[k] < 0 ? LIMIT_NONE.most[k] : ask->limit.most[k];
    struct books fresh = { 0 };
    struct limit_row *r = books_set(&fresh, owner, model, &want);
    if (r && !count_row(c, p, &fresh, err)) {
        books_done(&fresh);
        return false;
    }
    struct limit_row *kept = books_set(&p->limits, owner, model, &want);
    books_roll(&p->limits, c->now_ms);
    if (kept)
        *kept = *r;
    books_done(&fresh);
    write_row(c, p, kept, owner, model);
    struct limit_row gone = { .owner = owner, .limit = want };
    memcpy(gone.model, model, sizeof gone.model);
    sched_of_limit(p, kept ? kept : &gone, emit_news(c, SCHED_LIMIT));
    struct limits_view view = { .id = arena_printf(c->mem, "%s/%s/%s", p->name, user, model), .name = p->name,
                                .state = kept ? "limited" : "free", .project = p->name, .user = user, .model = arena_text(c->mem, model), .limit = want };
    emit_event(c, p->id, "quota.set", id_of(c, PREFIX_PROJECT, p->id),
               arena_printf(c->mem, "{\"user\":\"%s\",\"model\":\"%s\",\"tasks\":%lld,\"gpu_milli\":%lld,\"day_milli\":%lld,\"week_milli\":%lld,\"month_milli\":%lld}",
                            user, model, (long long)want.most[0], (long long)want.most[1], (long long)want.most[2], (long long)want.most[3], (long long)want.most[4]));
    reply_view(c, &limits_view_fields, &view);
    return true;
}

/* --- looking */

struct held_now { struct limit_ask ask; int64_t cpu_milli, mem_mib, gpu_milli, placed_ms; };

static void held_now_of(struct call *c, const struct rows *r, size_t i, struct held_now *out)
{
    struct json *doc, *spec_doc, *info_doc;
    struct err ignored;
    struct job_spec spec = { 0 };
    struct node_info info = { 0 };
    *out = (struct held_now){ .ask.owner = row_int(r, i, 2), .placed_ms = row_int(r, i, 4) };
    if (!json_parse(SLICE(row_text(r, i, 0)), c->mem, &doc, &ignored))
        return;
    if (json_parse(SLICE(row_text(r, i, 3)), c->mem, &spec_doc, &ignored)
        && bind_read_ours(spec_doc, &job_spec_fields, c->mem, &spec, NULL, &ignored))
        out->ask.bound_ms = limit_bound_ms(&spec);
    if (json_parse(SLICE(row_text(r, i, 1)), c->mem, &info_doc, &ignored) && info_doc->first)
        (void)!bind_read_ours(info_doc, &node_info_fields, c->mem, &info, NULL, &ignored);
    out->cpu_milli = json_int(doc, "cpu", 0);
    out->mem_mib = json_int(doc, "mem", 0);
    struct json *gpus = json_get(doc, "gpus");
    const struct gpu_info *infos = info.gpus.at;
    for (struct json *g = gpus ? gpus->first : NULL; g; g = g->next) {
        const char *model = NULL;
        for (size_t k = 0; k < info.gpus.count; k++)
            if (infos[k].index == json_int(g, "index", -1))
                model = infos[k].model;
        limit_ask_add(&out->ask, model, json_int(g, "milli", 0));
        out->gpu_milli += json_int(g, "milli", 0);
    }
}

struct looked { struct books limits; struct quota quota; int64_t gpu, cpu, mem, jobs, disk_mib, weight; struct share share; struct share_clock clock; const char *project; struct map *names; };

static bool look(struct call *c, int64_t project, struct looked *l, struct err *err)
{
    struct rows r;
    struct json *doc;
    struct err ignored;
    share_start(&l->clock, SHARE_HALF_LIFE_S * INT64_C(1000));
    share_time(&l->clock, c->now_ms);
    l->share = (struct share){ .x = l->clock.x, .epoch = l->clock.epoch };
    if (!ROWS(c, QUEUE_PROJECT, &r, err, V_INT(project)))
        return false;
    l->weight = r.count ? row_int(&r, 0, 0) : 1000;
    l->quota = QUOTA_NONE;
    if (r.count && json_parse(SLICE(row_text(&r, 0, 1)), c->mem, &doc, &ignored))
        (void)!bind_read_ours(doc, &quota_fields, c->mem, &l->quota, NULL, &ignored);
    if (!ROWS(c, LIMIT_LIST, &r, err, V_INT(project)))
        return false;
    for (size_t i = 0; i < r.count; i++) {
        struct limit limit = { { row_int(&r, i, 3), row_int(&r, i, 4), row_int(&r, i, 5), row_int(&r, i, 6), row_int(&r, i, 7) } };
        books_set(&l->limits, row_int(&r, i, 1), row_text(&r, i, 2), &limit);
        map_put(l->names, row_int(&r, i, 1), (void *)row_text(&r, i, 9));
    }
    books_roll(&l->limits, c->now_ms);
    int64_t from = MIN(period_begin(PERIODS - 1, c->now_ms), c->now_ms - 8 * day_ms) / day_ms;
    if (!ROWS(c, LIMIT_USED, &r, err, V_INT(project), V_INT(from)))
        return false;
    for (size_t i = 0; i < r.count; i++) {
        int64_t day = row_int(&r, i, 2) * day_ms, until = MIN(day + day_ms, c->now_ms);
        int64_t mean[SHARE_COUNT];
        for (int k = 0; k < SHARE_COUNT; k++)
            mean[k] = row_int(&r, i, 3 + k) / MAX(until - day, 1);
        share_add(&l->clock, &l->share, mean, day, until);
        books_used_day(&l->limits, row_int(&r, i, 0), row_text(&r, i, 1), day, row_int(&r, i, 3));
    }
    if (!ROWS(c, LIMIT_HELD, &r, err, V_INT(project)))
        return false;
    for (size_t i = 0; i < r.count; i++) {
        struct held_now a;
        held_now_of(c, &r, i, &a);
        books_hold(&l->limits, &a.ask, 1);
        l->gpu += a.gpu_milli, l->cpu += a.cpu_milli, l->mem += a.mem_mib;
        share_add(&l->clock, &l->share, (int64_t[]){ a.gpu_milli, a.cpu_milli, a.mem_mib }, a.placed_ms, c->now_ms);
    }
    return true;
}

/* Of those that keep one, or will; only where it matters, since all that waits is looked at. */
static bool look_disks(struct call *c, int64_t project, struct looked *l, struct err *err)
{
    struct rows r;
    if (l->quota.disk_mib < 0)
        return true;
    if (!ROWS(c, INSTANCE_SPECS, &r, err, V_INT(project)))
        return false;
    for (size_t i = 0; i < r.count; i++) {
        struct json *doc;
        struct err ignored;
        struct job_spec spec = { 0 };
        if (json_parse(SLICE(row_text(&r, i, 0)), c->mem, &doc, &ignored) && bind_read_ours(doc, &job_spec_fields, c->mem, &spec, NULL, &ignored)
            && text_is(spec.type, "instance"))
            l->disk_mib += spec.disk_mib;
    }
    return true;
}

static void add_line(struct call *c, struct list *out, const struct looked *l, const char *name, int64_t owner, const char *model,
                     int64_t most, int64_t used, int64_t reserved)
{
    const char *user = owner ? map_get(l->names, owner) : "";
    if (most < 0)
        return;
    struct limit_view v = { .id = arena_printf(c->mem, "%s/%s/%s/%s", l->project, user, model, name), .name = name, .project = l->project,
                            .state = used + reserved >= most ? "full" : "free", .user = user, .model = model,
                            .limit_milli = most, .used_milli = used, .reserved_milli = reserved };
    list_add(out, &limit_view_fields, &v);
}

static void list_looked(struct call *c, struct list *out, struct looked *l)
{
    const struct quota *q = &l->quota;
    add_line(c, out, l, "gpus", 0, "", q->gpu_milli, l->gpu, 0);
    add_line(c, out, l, "cpus", 0, "", q->cpu_milli, l->cpu, 0);
    add_line(c, out, l, "memory_mib", 0, "", q->mem_mib < 0 ? -1 : q->mem_mib * 1000, l->mem * 1000, 0);
    add_line(c, out, l, "jobs", 0, "", q->jobs < 0 ? -1 : q->jobs * 1000, l->jobs * 1000, 0);
    add_line(c, out, l, "disk_mib", 0, "", q->disk_mib < 0 ? -1 : q->disk_mib * 1000, l->disk_mib * 1000, 0);
    for (size_t i = 0; i < l->limits.count; i++) {
        const struct limit_row *r = &l->limits.at[i];
        const int64_t *m = r->limit.most;
        const char *model = arena_text(c->mem, r->model);
        add_line(c, out, l, "tasks", r->owner, model, m[LIMIT_TASKS] < 0 ? -1 : m[LIMIT_TASKS] * 1000, r->tasks * 1000, 0);
        add_line(c, out, l, "gpus", r->owner, model, m[LIMIT_GPUS], r->gpu_milli, 0);
        for (int p = 0; p < PERIODS; p++)
            add_line(c, out, l, limit_name((enum limit_kind)(LIMIT_DAY + p)), r->owner, model, m[LIMIT_DAY + p], r->used[p] / hour_ms, r->reserved[p] / hour_ms);
    }
}

bool quota_list(struct call *c, const void *body, struct err *err)
{
    (void)body;
    struct rows r;
    AUTO(map_free) struct map *names = map_new();
    struct looked l = { .names = names };
    if (!ROWS(c, PROJECT_NAME, &r, err, V_INT(c->who->project)))
        return false;
    l.project = r.count ? row_text(&r, 0, 0) : "";
    bool ok = look(c, c->who->project, &l, err) && look_disks(c, c->who->project, &l, err);
    if (ok && ROWS(c, LIMIT_JOBS, &r, err, V_INT(c->who->project))) {
        l.jobs = row_int(&r, 0, 0);
        struct list out = list_open(c);
        list_looked(c, &out, &l);
        list_close(&out, NULL);
    } else {
        ok = false;
    }
    books_done(&l.limits);
    return ok;
}

/* --- where a job stands */

static bool capacity_of(struct call *c, int64_t out[SHARE_COUNT], struct err *err)
{
    struct rows r;
    enum { NODES_MOST = 20000 };
    if (!ROWS(c, NODE_LIST, &r, err, V_INT(0), V_INT(NODES_MOST)))
        return false;
    for (size_t i = 0; i < r.count; i++) {
        struct json *doc;
        struct err ignored;
        struct node_info info = { 0 };
        if (!json_parse(SLICE(row_text(&r, i, 3)), c->mem, &doc, &ignored) || !doc->first
            || !bind_read_ours(doc, &node_info_fields, c->mem, &info, NULL, &ignored))
            continue;
        out[SHARE_GPU] += 1000 * (int64_t)info.gpus.count;
        out[SHARE_CPU] += info.cpu_milli;
        out[SHARE_MEM] += info.mem_mib;
    }
    return true;
}

/* Of those that may run, as the planner sorts them. since_ms: its age begins. */
static bool ahead_of(struct call *c, int64_t from, int64_t to, int64_t priority, int64_t id, int64_t since_ms, int64_t *out, struct err *err)
{
    struct rows r;
    if (!ROWS(c, QUEUE_AHEAD, &r, err, V_INT(c->who->project), V_INT(from), V_INT(to), V_INT(priority), V_INT(id), V_INT(since_ms),
              V_INT(REASON_STOPPED), V_INT(REASON_DEPENDENCY)))
        return false;
    return *out = row_int(&r, 0, 0), true;
}

static bool share_view(struct call *c, struct queue_view *v, struct err *err)
{
    struct rows r;
    AUTO(map_free) struct map *names = map_new();
    struct looked l = { .names = names };
    bool ok = look(c, c->who->project, &l, err) && capacity_of(c, l.clock.capacity, err) && ROWS(c, QUEUE_WEIGHTS, &r, err, V_INT(0));
    books_done(&l.limits);
    if (!ok)
        return false;
    v->share_ppm = share_ppm(&l.clock, &l.share);
    v->weight_milli = l.weight;
    v->part_ppm = l.weight * 1000000 / MAX(row_int(&r, 0, 0), l.weight);
    v->projects = row_int(&r, 0, 1);
    return true;
}

bool job_queue(struct call *c, const void *body, struct err *err)
{
    const struct job_ref *ask = body;
    struct rows r;
    int64_t id;
    if (!job_locate(c, ask->job, &id, err) || !ROWS(c, JOB_GET, &r, err, V_INT(c->who->project), V_INT(id)))
        return false;
    if (r.count == 0)
        return err_set(err, RC_NOT_FOUND, "there is no job '%s' in this project", ask->job);
    enum reason reason = (enum reason)row_int(&r, 0, 6);
    int64_t priority = row_int(&r, 0, 8);
    const struct priority *class = &priorities[priority_of(priority)];
    const char *why = row_text(&r, 0, 27);
    bool blocked = reason == REASON_STOPPED || reason == REASON_DEPENDENCY; /* it does not get older, and nothing is promised */
    int64_t since_ms = blocked ? c->now_ms : MAX(row_int(&r, 0, 17), row_int(&r, 0, 28));
    struct queue_view v = { .id = id,
                            .name = row_text(&r, 0, 4),
                            .state = job_state_word((enum job_state)row_int(&r, 0, 5), reason),
                            .reason = reason_name(reason),
                            .reason_text = reason_told(c, reason, why),
                            .class = class->name,
                            .priority = priority,
                            .starved_ms = blocked ? 0 : since_ms + class->starved_s * 1000 };
    if (!ahead_of(c, class->from, class->to, priority, id, since_ms, &v.ahead, err)
        || !ahead_of(c, class->to + 1, 1000, -1, id, since_ms, &v.project_ahead, err) || !share_view(c, &v, err))
        return false;
    reply_view(c, &queue_view_fields, &v);
    return true;
}
