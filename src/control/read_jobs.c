/* read_jobs.c - looking at jobs, their tasks and attempts: from what is committed, always within
 * the caller's project. */
#include "control/call.h"
#include "model/hold.h"
#include <stdio.h>
#include <stdlib.h>

/* What the spec says in short. */
static void view_spec(struct job_view *v, const char *spec_text, struct arena *mem)
{
    struct json *doc;
    struct job_spec spec = { 0 };
    struct shape shape = { 0 };
    struct err ignored;
    if (!json_parse(SLICE(spec_text), mem, &doc, &ignored)
        || !bind_read_ours(doc, &job_spec_fields, mem, &spec, NULL, &ignored)
        || !job_spec_settle(&spec, mem, &shape, &ignored))
        return;
    v->image = spec.image;
    v->gpus = spec.gpus ? spec.gpus : "";
    v->cpu_milli = shape.cpu_milli;
    v->mem_mib = shape.mem_mib;
}

/* why: as it stands in its row, of some reasons. */
const char *reason_told(struct call *c, enum reason reason, const char *why)
{
    if (reason == REASON_STOPPED && text_given(why))
        return arena_printf(c->mem, "%s (%s)", reason_text(reason), why);
    return reason == REASON_QUOTA && text_given(why) ? why : reason_text(reason);
}

static void view_row(struct call *c, const struct rows *r, size_t i, struct job_view *v)
{
    enum reason reason = (enum reason)row_int(r, i, 6);
    enum outcome outcome = (enum outcome)row_int(r, i, 7);
    *v = (struct job_view){ .id = row_int(r, i, 0),
                            .name = row_text(r, i, 4),
                            .state = job_state_word((enum job_state)row_int(r, i, 5), reason),
                            .reason = reason_name(reason),
                            .reason_text = reason_text(reason),
                            .outcome = outcome ? outcome_name(outcome) : "",
                            .priority = row_int(r, i, 8),
                            .count = row_int(r, i, 9),
                            .done = row_int(r, i, 11),
                            .failed = row_int(r, i, 12),
                            .cancelled = row_int(r, i, 13),
                            .exit_code = row_int(r, i, 14),
                            .spec = row_text(r, i, 15),
                            .flavor = row_text(r, i, 16),
                            .created_ms = row_int(r, i, 17),
                            .started_ms = row_int(r, i, 18),
                            .ended_ms = row_int(r, i, 19),
                            .version = row_int(r, i, 20),
                            .project = row_text(r, i, 21),
                            .owner = row_text(r, i, 22),
                            .node = row_text(r, i, 23),
                            .simulated = row_int(r, i, 24) != 0,
                            .running = row_int(r, i, 25),
                            .detail = r->columns > 26 ? row_text(r, i, 26) : "" };
    if (r->columns > 27)
        v->reason_text = reason_told(c, reason, row_text(r, i, 27));
    v->queued = MAX(v->count - v->done - v->failed - v->cancelled - v->running, 0);
    view_spec(v, v->spec, c->mem);
}

/* A queued job that has just been taken, before any reader can see it. */
void job_reply(struct call *c, const struct job *j)
{
    struct project *p = j->project;
    struct task *t;
    struct job_view v = { .id = j->id,
                          .name = j->name,
                          .state = job_state_word(j->state, j->reason),
                          .reason = reason_name(j->reason),
                          .reason_text = reason_text(j->reason),
                          .outcome = j->outcome ? outcome_name(j->outcome) : "",
                          .project = p->name,
                          .owner = c->who->name,
                          .image = j->spec.image,
                          .flavor = j->flavor,
                          .gpus = j->spec.gpus ? j->spec.gpus : "",
                          .node = "",
                          .cpu_milli = j->shape.cpu_milli,
                          .mem_mib = j->shape.mem_mib,
                          .priority = j->priority,
                          .count = j->count,
                          .done = j->done,
                          .failed = j->failed,
                          .cancelled = j->cancelled,
                          .exit_code = j->exit_code,
                          .created_ms = j->created_ms,
                          .started_ms = j->started_ms,
                          .ended_ms = j->ended_ms,
                          .version = j->version,
                          .detail = "",
                          .spec = j->spec_text };
    for (size_t i = 0; (t = map_next(j->tasks, &i));)
        v.running += t->state == JOB_RUNNING || t->state == JOB_STOPPING;
    v.queued = v.count - v.done - v.failed - v.cancelled - v.running;
    c->r->version = j->version;
    reply_view(c, &job_view_fields, &v);
}

bool job_locate(struct call *c, const char *ref, int64_t *id, struct err *err)
{
    struct rows r;
    if (id_parse(ref, PREFIX_JOB, id))
        return true;
    if (!ROWS(c, JOB_BY_NAME, &r, err, V_INT(c->who->project), V_TEXT(ref)))
        return false;
    if (r.count == 0)
        return err_set(err, RC_NOT_FOUND, "there is no job '%s' in this project", ref);
    *id = row_int(&r, 0, 0);
    return true;
}

static bool find(struct call *c, const char *ref, struct rows *r, struct err *err)
{
    int64_t id;
    if (!job_locate(c, ref, &id, err)
        || !ROWS(c, JOB_GET, r, err, V_INT(c->who->project), V_INT(id)))
        return false;
    return r->count > 0 || err_set(err, RC_NOT_FOUND, "there is no job '%s' in this project", ref);
}

bool job_get(struct call *c, const void *body, struct err *err)
{
    const struct job_ref *ask = body;
    struct rows r;
    struct job_view v;
    if (!find(c, ask->job, &r, err))
        return false;
    view_row(c, &r, 0, &v);
    c->r->version = v.version;
    reply_view(c, &job_view_fields, &v);
    return true;
}

/* "" live ones, or all with `all`; else one state by its name. */
static bool state_range(const struct job_list_ask *ask, int64_t *low, int64_t *high,
                        struct err *err)
{
    /* States that the store does not know: these may be shown so (job_state_word). */
    static const struct { const char *word; enum job_state low, high; } words[] = {
        { "suspended", JOB_RUNNING, JOB_RUNNING },
        { "stopped", JOB_QUEUED, JOB_QUEUED },
        { "stopping", JOB_PLACED, JOB_STOPPING },
    };
    *low = 0;
    *high = ask->all ? JOB_STATE_COUNT : JOB_STOPPING;
    if (!text_given(ask->state))
        return true;
    for (size_t i = 0; i < COUNT(words); i++)
        if (text_is(ask->state, words[i].word))
            return *low = words[i].low, *high = words[i].high, true;
    for (int s = 0; s < JOB_STATE_COUNT; s++)
        if (text_is(ask->state, job_state_name((enum job_state)s)))
            return *low = *high = s, true;
    return err_field(
        err, "state",
        "'%s' is not a state; they are queued, placed, running, suspended, stopping, stopped, done, failed, cancelled",
        ask->state);
}

/* Each way to ask has a statement that an index answers, however many jobs have ended. */
static bool list_rows(struct call *c, const struct job_list_ask *ask, int64_t before, int64_t low,
                      int64_t high, struct rows *r, struct err *err)
{
    struct value project = V_INT(c->who->project), most = V_INT(ask->limit + 1);
    if (text_given(ask->name))
        return ROWS(c, JOB_LIST_NAMED, r, err, project, V_INT(before), V_INT(low), V_INT(high),
                    V_TEXT(ask->name), most);
    if (high <= JOB_STOPPING)
        return ROWS(c, JOB_LIST_LIVE, r, err, project, V_INT(before), V_INT(low), V_INT(high), most);
    if (low == high)
        return ROWS(c, JOB_LIST_ENDED, r, err, project, V_INT(before), V_INT(low), most);
    return ROWS(c, JOB_LIST, r, err, project, V_INT(before), most);
}

bool job_list(struct call *c, const void *body, struct err *err)
{
    const struct job_list_ask *ask = body;
    int64_t before = INT64_MAX, low, high;
    struct rows r;
    if (text_given(ask->page) && !id_parse(ask->page, PREFIX_JOB, &before))
        return err_field(err, "page", "this is not the `next` of a page before");
    if (!state_range(ask, &low, &high, err) || !list_rows(c, ask, before, low, high, &r, err))
        return false;
    struct list l = list_open(c);
    size_t n = MIN(r.count, (size_t)ask->limit);
    for (size_t i = 0; i < n; i++) {
        struct job_view v;
        view_row(c, &r, i, &v);
        if (text_given(ask->state) && !text_is(v.state, ask->state))
            continue; /* in the store a suspended one runs, and a stopped one is queued: a page may be short */
        list_add(&l, &job_brief_fields, &v);
    }
    list_close(&l, r.count > n ? id_of(c, PREFIX_JOB, row_int(&r, n - 1, 0)) : NULL);
    return true;
}

static struct json *lease_read(struct call *c, const char *lease)
{
    struct json *doc;
    struct err ignored;
    return json_parse(SLICE(lease), c->mem, &doc, &ignored) ? doc : NULL;
}

/* Those that it has given back are its own in all but name: it comes back to them. */
static struct json *lease_list(struct json *lease)
{
    struct json *list = lease ? json_get(lease, "gpus") : NULL;
    return list && list->first ? list : lease ? json_get(lease, "away") : NULL;
}

static const char *attempt_word(enum job_state state, struct json *lease)
{
    const char *hold = lease && state == JOB_RUNNING ? hold_name((enum hold_step)json_int(lease, "hold", 0)) : "";
    return *hold ? hold : job_state_name(state);
}

bool job_tasks(struct call *c, const void *body, struct err *err)
{
    const struct job_ref *ask = body;
    int64_t id, after = -1;
    struct rows r;
    if (text_given(ask->page)) {
        char *end;
        after = strtoll(ask->page, &end, 10);
        if (*end)
            return err_field(err, "page", "this is not the `next` of a page before");
    }
    if (!find(c, ask->job, &r, err))
        return false;
    id = row_int(&r, 0, 0);
    if (!ROWS(c, TASK_LIST, &r, err, V_INT(c->who->project), V_INT(id), V_INT(after),
              V_INT(INT64_MAX), V_INT(ask->limit + 1)))
        return false;
    struct list l = list_open(c);
    size_t n = MIN(r.count, (size_t)ask->limit);
    for (size_t i = 0; i < n; i++) {
        enum outcome outcome = (enum outcome)row_int(&r, i, 4);
        struct task_view v = { .id = row_int(&r, i, 7),
                               .task = row_int(&r, i, 1),
                               .name = arena_printf(c->mem, "%lld", (long long)row_int(&r, i, 1)),
                               .state = attempt_word((enum job_state)row_int(&r, i, 3), lease_read(c, row_text(&r, i, 14))),
                               .outcome = outcome ? outcome_name(outcome) : "",
                               .detail = row_text(&r, i, 10),
                               .tries = row_int(&r, i, 5),
                               .exit_code = row_int(&r, i, 8),
                               .signal = row_int(&r, i, 9),
                               .started_ms = row_int(&r, i, 12),
                               .ended_ms = row_int(&r, i, 13) };
        list_add(&l, &task_view_fields, &v);
    }
    list_close(&l,
               r.count > n ? arena_printf(c->mem, "%lld", (long long)row_int(&r, n - 1, 1)) : NULL);
    return true;
}

static const char *suspendable(struct call *c, struct json *lease, const char *info_text, bool gang)
{
    struct order_gpu gpus[SCHED_GPUS];
    struct node_info info = { 0 };
    struct json *doc, *list = lease_list(lease);
    struct err ignored;
    size_t n = 0;
    if (!json_parse(SLICE(info_text), c->mem, &doc, &ignored) || !bind_read_ours(doc, &node_info_fields, c->mem, &info, NULL, &ignored))
        return "";
    for (struct json *g = list ? list->first : NULL; g && n < COUNT(gpus); g = g->next)
        gpus[n++] = (struct order_gpu){ .index = json_int(g, "index", 0), .milli = json_int(g, "milli", 0), .size = json_int(g, "size", 0) };
    const char *why = hold_refused(&info, gpus, n, gang), *tried = lease ? json_text(lease, "hold_why") : NULL;
    if (!why && tried)
        return arena_printf(c->mem, "no: when it was tried: %s", tried);
    return why ? arena_printf(c->mem, "no: %s", why) : "yes";
}

static const char *lease_gpus(struct call *c, struct json *lease)
{
    AUTO(str_done) struct str text = { 0 };
    struct json *list = lease_list(lease);
    for (struct json *g = list ? list->first : NULL; g; g = g->next) {
        int64_t milli = json_int(g, "milli", 0);
        struct json *simulated = json_get(g, "simulated");
        str_printf(&text, "%s%lld", text.len ? "," : "", (long long)json_int(g, "index", 0));
        const char *mig = json_text(g, "mig");
        if (mig)
            str_printf(&text, ":%s@%lld", mig, (long long)json_int(g, "slot", 0));
        else if (milli != 1000)
            str_printf(&text, ":0.%03lld", (long long)milli);
        if (simulated && simulated->flag)
            str_text(&text, " (simulated)");
    }
    return arena_text(c->mem, text.at ? text.at : "");
}

static bool spec_is_gang(const char *spec_text, struct arena *mem)
{
    struct json *doc;
    struct err ignored;
    return json_parse(SLICE(spec_text), mem, &doc, &ignored) && json_int(doc, "nodes", 0) > 1;
}

bool job_attempts(struct call *c, const void *body, struct err *err)
{
    const struct job_ref *ask = body;
    int64_t id, after = 0;
    struct rows r;
    if (text_given(ask->page) && !id_parse(ask->page, PREFIX_ATTEMPT, &after))
        return err_field(err, "page", "this is not the `next` of a page before");
    if (!find(c, ask->job, &r, err))
        return false;
    id = row_int(&r, 0, 0);
    bool gang = spec_is_gang(row_text(&r, 0, 15), c->mem);
    if (!ROWS(c, ATTEMPT_LIST, &r, err, V_INT(c->who->project), V_INT(id), V_INT(after),
              V_INT(ask->limit + 1)))
        return false;
    struct list l = list_open(c);
    size_t n = MIN(r.count, (size_t)ask->limit);
    for (size_t i = 0; i < n; i++) {
        enum outcome outcome = (enum outcome)row_int(&r, i, 3);
        struct json *lease = lease_read(c, row_text(&r, i, 4));
        struct attempt_view v
            = { .id = row_int(&r, i, 0),
                .task = row_int(&r, i, 1),
                .name = arena_printf(c->mem, "%lld", (long long)row_int(&r, i, 1)),
                .state = attempt_word((enum job_state)row_int(&r, i, 2), lease),
                .outcome = outcome ? outcome_name(outcome) : "",
                .gpus = lease_gpus(c, lease),
                .suspendable = row_int(&r, i, 2) == JOB_RUNNING ? suspendable(c, lease, row_text(&r, i, 13), gang) : "",
                .placed_ms = row_int(&r, i, 6),
                .started_ms = row_int(&r, i, 7),
                .ended_ms = row_int(&r, i, 8),
                .exit_code = row_int(&r, i, 9),
                .signal = row_int(&r, i, 10),
                .detail = row_text(&r, i, 11),
                .node = row_text(&r, i, 12) };
        if (!v.ended_ms && row_int(&r, i, 5))
            v.run_until_ms = c->now_ms + row_int(&r, i, 5) * 1000; /* renewed by every contact */
        list_add(&l, &attempt_view_fields, &v);
    }
    list_close(&l, r.count > n ? id_of(c, PREFIX_ATTEMPT, row_int(&r, n - 1, 0)) : NULL);
    return true;
}

/* Where the bytes of a task are, for api/: the node and attempt; attempt null while nothing was
 * placed. */
static bool locate_task(struct call *c, const char *ref, int64_t task, int64_t nth, const char *mark, struct err *err)
{
    struct rows job, r, t;
    if (!find(c, ref, &job, err))
        return false;
    if (task < 0)
        task = 0;
    if (task >= row_int(&job, 0, 9))
        return err_field(err, "task", "%s has tasks 0 to %lld", ref,
                         (long long)row_int(&job, 0, 9) - 1);
    int64_t id = row_int(&job, 0, 0);
    if (!ROWS(c, TASK_LIST, &t, err, V_INT(c->who->project), V_INT(id), V_INT(task - 1),
              V_INT(task), V_INT(1)))
        return false;
    const char *place;
    int64_t attempt = 0;
    if (text_given(mark) && !log_mark_read(mark, &attempt, &place))
        return err_field(err, "from", "this is not the mark of a piece before");
    if (attempt && (!ROWS(c, ATTEMPT_OF, &r, err, V_INT(c->who->project), V_INT(id), V_INT(task), V_INT(attempt))))
        return false;
    if (attempt && r.count == 0)
        return err_field(err, "from", "task %lld of %s has had no such attempt", (long long)task, ref);
    if (attempt ? false : nth ? !ROWS(c, ATTEMPT_NTH, &r, err, V_INT(c->who->project), V_INT(id), V_INT(task),
                    V_INT(nth - 1))
            : !ROWS(c, ATTEMPT_LAST, &r, err, V_INT(c->who->project), V_INT(id), V_INT(task)))
        return false;
    if (nth && r.count == 0)
        return err_set(err, RC_NOT_FOUND, "task %lld of %s has had no attempt %lld",
                       (long long)task, ref, (long long)nth);
    struct json_out o = { .to = &c->r->reply };
    str_clear(&c->r->reply);
    json_open(&o, '{');
    json_key(&o, "job"), json_put_text(&o, id_of(c, PREFIX_JOB, id));
    json_key(&o, "project"), json_put_text(&o, id_of(c, PREFIX_PROJECT, c->who->project));
    json_key(&o, "task"), json_put_int(&o, task);
    json_key(&o, "state"),
        json_put_text(&o, job_state_name(
                              (enum job_state)(r.count ? row_int(&r, 0, 2) : row_int(&job, 0, 5))));
    json_key(&o, "job_state"),
        json_put_text(&o, job_state_name((enum job_state)row_int(&job, 0, 5)));
    json_key(&o, "task_state"),
        json_put_text(&o, job_state_name(
                              (enum job_state)(t.count ? row_int(&t, 0, 3) : row_int(&job, 0, 5))));
    json_key(&o, "node"),
        json_put_text(&o, r.count ? id_of(c, PREFIX_NODE, row_int(&r, 0, 1)) : NULL);
    json_key(&o, "attempt"),
        json_put_text(&o, r.count ? id_of(c, PREFIX_ATTEMPT, row_int(&r, 0, 0)) : NULL);
    json_close(&o, '}');
    return true;
}

bool job_stream(struct call *c, const void *body, struct err *err)
{
    const struct job_logs_ask *ask = body;
    return locate_task(c, ask->job, ask->task, ask->attempt_number, ask->from, err);
}

/* The one that was named, else the first that runs, or is about to; where none does the first says why not. */
static bool locate_running(struct call *c, const char *ref, int64_t task, struct err *err)
{
    struct rows job, r;
    if (task >= 0)
        return locate_task(c, ref, task, 0, NULL, err);
    if (!find(c, ref, &job, err))
        return false;
    int64_t id = row_int(&job, 0, 0);
    if (!ROWS(c, TASK_FIRST, &r, err, V_INT(c->who->project), V_INT(id), V_INT(JOB_RUNNING))
        || (!r.count && !ROWS(c, TASK_FIRST, &r, err, V_INT(c->who->project), V_INT(id), V_INT(JOB_PLACED))))
        return false;
    return locate_task(c, id_of(c, PREFIX_JOB, id), r.count ? row_int(&r, 0, 0) : 0, 0, NULL, err);
}

bool job_exec(struct call *c, const void *body, struct err *err)
{
    const struct job_exec_ask *ask = body;
    return locate_running(c, ask->job, ask->task, err);
}

bool job_dial(struct call *c, const void *body, struct err *err)
{
    const struct job_dial_ask *ask = body;
    return locate_running(c, ask->job, ask->task, err);
}

static void put_texts(struct json_out *o, const char *name, const struct texts *list)
{
    json_key(o, name);
    json_open(o, '[');
    for (size_t i = 0; i < list->count; i++)
        json_put_text(o, list->at[i]);
    json_close(o, ']');
}

bool job_ssh(struct call *c, const void *body, struct err *err)
{
    const struct job_ssh_ask *ask = body;
    struct texts let_in, barred;
    if (!ssh_keys_settle(c, &ask->keys, &let_in, &barred, err) || !locate_running(c, ask->job, ask->task, err))
        return false;
    struct json_out o = { .to = &c->r->reply, .comma = true };
    c->r->reply.len--;      /* behind what says where: before its brace */
    put_texts(&o, "let_in", &let_in);
    put_texts(&o, "barred", &barred);
    json_close(&o, '}');
    return true;
}

bool job_files(struct call *c, const void *body, struct err *err)
{
    const struct files_ask *ask = body;
    return locate_task(c, ask->job, ask->task, 0, NULL, err);
}
