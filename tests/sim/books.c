/* books.c - what must hold whatever happened: nothing acknowledged is lost, nothing ran twice, nothing is billed twice, nothing was
 * given twice, and nothing is left behind. */
#include "agent/spool.h"
#include "cloud.h"
#include "control/control_internal.h"
#include "model/hold.h"
#include "model/job.h"
#include <stdio.h>
#include <stdlib.h>

#define LL(x) ((long long)(x))

struct attempt_row {
    int64_t id, task, placed_ms, started_ms, ended_ms, exit_code;
    int state, outcome;
    const char *node, *lease;
    struct wish *wish;
    const struct run *run;
};
struct sim_books {
    struct cloud *c;
    struct conn *conn;
    struct arena *mem;
    int64_t projects[TENANTS];
    struct attempt_row *attempts;
    size_t attempt_count, attempt_room;
};

/* --- is it over? */

static bool
may_wait(const struct wish *w) /* no node is large enough for it, or for what it comes after */
{
    return w && (w->impossible || (w->after && may_wait(w->after)));
}

static struct wish *wish_named(struct cloud *c, const char *name)
{
    for (size_t i = 0; i < c->wish_count; i++)
        if (c->wishes[i].kind == WISH_SUBMIT && text_is(c->wishes[i].name, name))
            return &c->wishes[i];
    return NULL;
}

/* A machine whose first answer got lost has joined a second time, under another name. */
static struct node *node_of_host(struct cloud *c, int node)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct slice text;
    struct json *doc;
    struct err err = { 0 };
    struct os *os = c->nodes[node].os;
    bool known = os && file_read(os, "/var/lib/arcus/node.json", 4096, mem, &text, &err)
                 && json_parse(text, mem, &doc, &err);
    return known ? state_node(server_control(c->server)->writer.state, json_text(doc, "id")) : NULL;
}

const char *books_busy(struct cloud *c)
{
    struct job *j;
    struct node *n;
    if (!c->server)
        return "the server is away";
    if (!wishes_done(c))
        return "a client waits";
    if (straws_alive(c))
        return "a supervisor lives";
    struct state *s = server_control(c->server)->writer.state;
    if (map_count(s->attempts))
        return "an attempt has not ended";
    for (size_t i = 0; (j = map_next(s->jobs, &i));)
        if (!may_wait(wish_named(c, j->name)))
            return arena_printf(c->mem, "%s is %s, and waits for %s", j->name,
                                job_state_name(j->state), reason_name(j->reason));
    for (int i = 0; i < c->node_count; i++)
        if (!(n = node_of_host(c, i)) || n->state != NODE_READY)
            return arena_printf(c->mem, "%s is not ready", c->nodes[i].host);
    return NULL;
}

void wish_resume_all(struct cloud *c)
{
    struct attempt *a;
    struct state *s = server_control(c->server)->writer.state;
    for (size_t i = 0; s && (a = map_next(s->attempts, &i));)
        if (a->hold == STEP_SUSPENDED && !a->stop)
            act(c, "resume %s -1", a->task->job->name);
}

bool books_idle(struct cloud *c)
{
    return !books_busy(c);
}

/* --- jobs, tasks, attempts */

static bool ask(struct sim_books *b, enum statement st, const struct value *args, int count,
                struct rows *out)
{
    struct err err = { 0 };
    if (store_query(b->conn, st, args, count, b->mem, out, &err))
        return true;
    cloud_fail(b->c, "the books cannot be read: %s", err.text);
    return false;
}
#define ASK(b, st, out, ...)                                                                       \
    ask((b), ST_##st, (struct value[]){ __VA_ARGS__ },                                             \
        (int)COUNT(((struct value[]){ __VA_ARGS__ })), (out))

static bool begins_before(const struct run *a, const struct run *b)
{
    return a->container_ms && b->container_ms && a->container_ms < b->to_ms && b->container_ms < a->to_ms;
}

static void check_outcome(struct sim_books *b, const struct attempt_row *a)
{
    const struct run *r = a->run;
    enum outcome o = (enum outcome)a->outcome;
    bool ours = outcome_is_our_fault(o), wished = o == OUTCOME_CANCELLED || o == OUTCOME_PREEMPTED;
    if (!job_ended((enum job_state)a->state) || o == OUTCOME_NONE)
        cloud_fail(b->c, "an attempt of %s has not ended", a->wish->name);
    else if (!r && (a->started_ms || (!ours && !wished)))
        cloud_fail(b->c, "an attempt of %s is told as %s, and never began", a->wish->name,
                   outcome_name(o));
    else if (r && !r->told && !ours && !(r->tried && o == r->outcome) && (r->container_ms || !wished))
        cloud_fail(b->c, "an attempt of %s was killed and is told as %s", a->wish->name,
                   outcome_name(o));
    else if (r && r->told && o != r->outcome && o != OUTCOME_NODE_LOST
             && !((r->outcome == OUTCOME_CANCELLED || r->lost) && o == OUTCOME_NODE_FAULT))
        cloud_fail(b->c, "an attempt of %s ended as %s and is told as %s", a->wish->name,
                   outcome_name(r->outcome), outcome_name(o));
    else if (!b->c->jumped && r && a->started_ms && a->started_ms != r->started_ms)
        cloud_fail(b->c, "an attempt of %s started at %lld and is told to have at %lld",
                   a->wish->name, LL(r->started_ms), LL(a->started_ms));
    else if (r && r->told && !ours
             && ((a->ended_ms != r->ended_ms && !b->c->jumped) || a->exit_code != r->exit_code))
        cloud_fail(b->c, "the end of an attempt of %s is not told as it was", a->wish->name);
    if (r && a->wish->max_duration_s && r->container_ms
        && r->to_ms - r->container_ms > (a->wish->max_duration_s + 9) * 1000)
        cloud_fail(b->c, "an attempt of %s ran for longer than it may", a->wish->name);
}

static void take_attempts(struct sim_books *b, struct wish *w, int64_t job)
{
    struct rows r;
    if (!ASK(b, ATTEMPT_LIST, &r, V_INT(b->projects[w->tenant]), V_INT(job), V_INT(0), V_INT(10000)))
        return;
    for (size_t i = 0; i < r.count; i++) {
        if (b->attempt_count == b->attempt_room) {
            cloud_fail(b->c, "more attempts than a run may have");
            return;
        }
        struct attempt_row *a = &b->attempts[b->attempt_count++];
        *a = (struct attempt_row){ .id = row_int(&r, i, 0),
                                   .task = row_int(&r, i, 1),
                                   .state = (int)row_int(&r, i, 2),
                                   .outcome = (int)row_int(&r, i, 3),
                                   .lease = row_text(&r, i, 4),
                                   .placed_ms = row_int(&r, i, 6),
                                   .started_ms = row_int(&r, i, 7),
                                   .ended_ms = row_int(&r, i, 8),
                                   .exit_code = row_int(&r, i, 9),
                                   .node = row_text(&r, i, 12),
                                   .wish = w };
        a->run = run_of(b->c, a->id);
        check_outcome(b, a);
    }
}

static void check_overlaps(struct sim_books *b)
{
    for (size_t i = 0; i < b->attempt_count; i++)
        for (size_t k = i + 1; k < b->attempt_count; k++) {
            const struct attempt_row *x = &b->attempts[i], *y = &b->attempts[k];
            if (x->wish == y->wish && x->task == y->task && x->run && y->run
                && begins_before(x->run, y->run))
                cloud_fail(b->c,
                           "two attempts of %s ran at once: %lld-%lld on n%d and %lld-%lld on n%d",
                           x->wish->name, LL(x->run->from_ms), LL(x->run->to_ms), x->run->node + 1,
                           LL(y->run->from_ms), LL(y->run->to_ms), y->run->node + 1);
        }
}

/* What really ran on a GPU at any instant, whatever the server thought of it. */
static int64_t share_of(struct sim_books *b, const struct attempt_row *a, int64_t index)
{
    struct json *doc;
    struct err err = { 0 };
    int64_t milli = 0;
    if (!json_parse(SLICE(a->lease), b->mem, &doc, &err) || json_int(doc, "hold_n", 0)) /* one that was suspended held them at times: watch_runs looked then */
        return 0;
    struct json *list = json_get(doc, "gpus");
    for (struct json *g = list ? list->first : NULL; g; g = g->next)
        if (json_int(g, "index", -1) == index)
            milli += json_int(g, "milli", 0);
    return milli;
}

static void check_devices(struct sim_books *b)
{
    enum { GPUS = GPUS_MOST };
    int64_t(*held)[GPUS] = arena_take(b->mem, b->attempt_count + 1, sizeof *held);
    for (size_t i = 0; i < b->attempt_count; i++)
        for (int64_t g = 0; g < GPUS; g++)
            held[i][g] = share_of(b, &b->attempts[i], g);
    for (size_t i = 0; i < b->attempt_count; i++) {
        const struct run *at = b->attempts[i].run;
        int64_t sum[GPUS] = { 0 };
        for (size_t k = 0; at && k < b->attempt_count; k++) {
            const struct run *r = b->attempts[k].run;
            bool then
                = r && r->node == at->node && r->from_ms <= at->from_ms && at->from_ms < r->to_ms;
            for (int g = 0; then && g < GPUS; g++)
                if ((sum[g] += held[k][g]) > 1000)
                    cloud_fail(b->c, "GPU %d of n%d really had %lld thousandths in use at %lld ms",
                               g, at->node + 1, LL(sum[g]), LL(at->from_ms));
        }
    }
}

/* --- did each job come to the end it deserved? */

static void check_dependency(struct sim_books *b, const struct wish *w)
{
    if (!w->after || !job_ended((enum job_state)w->state) || w->state == JOB_CANCELLED)
        return;
    bool kept = w->when == AFTER_ANY || (w->when == AFTER_OK) == (w->after->state == JOB_DONE);
    if (!job_ended((enum job_state)w->after->state) || kept == (w->outcome == OUTCOME_DEPENDENCY))
        cloud_fail(b->c, "%s is %s (%s), and %s that it comes after is %s", w->name,
                   job_state_name((enum job_state)w->state), outcome_name((enum outcome)w->outcome),
                   w->after->name, job_state_name((enum job_state)w->after->state));
}

static void check_end(struct sim_books *b, struct wish *w, const struct rows *r, size_t row)
{
    struct cloud *c = b->c;
    int state = (int)row_int(r, row, 5), outcome = (int)row_int(r, row, 7);
    w->state = state;
    w->outcome = outcome;
    int64_t done = row_int(r, row, 11), failed = row_int(r, row, 12),
            cancelled = row_int(r, row, 13);
    if (!job_ended((enum job_state)state)) {
        if (!may_wait(w))
            cloud_fail(c, "%s has not ended", w->name);
        else if (row_int(r, row, 6) == REASON_NONE)
            cloud_fail(c, "%s waits without a reason", w->name);
        return;
    }
    if (done + failed + cancelled != w->count)
        cloud_fail(c, "%s has %lld tasks, of which %lld + %lld + %lld have ended", w->name,
                   LL(w->count), LL(done), LL(failed), LL(cancelled));
    if ((w->cancelled || w->partly) && !cancelled)
        cloud_fail(c, "%s was cancelled, and none of its tasks was", w->name);
    if (!w->cancelled && !w->partly && cancelled && outcome != OUTCOME_DEPENDENCY)
        cloud_fail(c, "%s was not cancelled, and %lld of its tasks were", w->name, LL(cancelled));
    bool late = w->max_duration_s && w->run_ms >= w->max_duration_s * 1000;
    if (done && (w->exit_code || late))
        cloud_fail(c, "%s must fail, and %lld of its tasks are done", w->name, LL(done));
    if (failed && !w->exit_code && !w->max_duration_s && outcome != OUTCOME_DEPENDENCY)
        cloud_fail(c, "%s must succeed, and %lld of its tasks failed: %s", w->name, LL(failed),
                   outcome_name((enum outcome)outcome));
}

/* A task that failed by its own fault is tried again as often as its job says, and no more. */
static void check_retries(struct sim_books *b, const struct wish *w)
{
    for (int64_t task = 0; task < w->count; task++) {
        int64_t own = 0;
        bool good = false;
        for (size_t i = 0; i < b->attempt_count; i++) {
            const struct attempt_row *a = &b->attempts[i];
            if (a->wish != w || a->task != task)
                continue;
            if (good)
                cloud_fail(b->c, "a task of %s was tried again after it had succeeded", w->name);
            own += a->outcome == OUTCOME_EXITED || a->outcome == OUTCOME_DEADLINE;
            good |= a->outcome == OUTCOME_SUCCEEDED;
        }
        if (own > w->retries + 1)
            cloud_fail(b->c, "a task of %s failed %lld times with %lld retries", w->name, LL(own),
                       LL(w->retries));
        if (w->exit_code && !w->cancelled && !w->partly && !may_wait(w)
            && w->outcome != OUTCOME_DEPENDENCY && own != w->retries + 1)
            cloud_fail(b->c, "a task of %s failed %lld times, and has %lld retries", w->name,
                       LL(own), LL(w->retries));
    }
}

static void check_jobs(struct sim_books *b, int tenant)
{
    struct rows r;
    struct cloud *c = b->c;
    size_t found = 0, wanted = 0;
    if (!ASK(b, JOB_LIST, &r, V_INT(b->projects[tenant]), V_INT(INT64_MAX), V_INT(10000)))
        return;
    for (size_t i = 0; i < c->wish_count && cloud_ok(c); i++) {
        struct wish *w = &c->wishes[i];
        int64_t id;
        bool waits_in_array = w->partly && w->kind == WISH_CANCEL && w->status == 400;
        if (w->kind == WISH_CANCEL && w->status != 200 && w->status != 409 && !waits_in_array)
            cloud_fail(c, "a cancel of %s was answered with %d: %s", w->target->job, w->status,
                       w->why);
        /* A promise that cannot be kept is not made: its time may be over when it arrives, or by a clock that jumped. */
        bool promise = text_starts(w->path, "/v1/reservations") && (w->status == 409 || (w->status == 400 && strstr(w->why, "over already")));
        if (w->kind == WISH_CHANGE && w->status / 100 != 2 && !promise && w->status != (w->target ? 409 : 404))
            cloud_fail(c, "%s %s was answered with %d: %s", w->path, w->body.at, w->status, w->why);
        if (w->kind != WISH_SUBMIT || w->tenant != tenant)
            continue;
        if (w->status / 100 != 2) {
            if (w->status == 403 && tenant)     /* too many jobs at once for its quota */
                continue;
            if (w->status != 400 && w->status != 422)
                cloud_fail(c, "%s was answered with %d: %s", w->name, w->status, w->why);
            else if (!w->after)
                cloud_fail(c, "%s was refused: %s", w->name, w->why);
            continue;
        }
        wanted++;
        for (size_t row = 0; row < r.count; row++) {
            if (!text_is(row_text(&r, row, 4), w->name))
                continue;
            if (!id_parse(w->job, "job", &id) || id != row_int(&r, row, 0))
                cloud_fail(c, "%s is there a second time", w->name);
            found++;
            take_attempts(b, w, row_int(&r, row, 0));
            check_end(b, w, &r, row);
            check_retries(b, w);
        }
    }
    for (size_t i = 0; i < c->wish_count && cloud_ok(c); i++)
        check_dependency(b, &c->wishes[i]);
    if (cloud_ok(c) && (found != wanted || r.count != found))
        cloud_fail(c, "%zu jobs were acknowledged, %zu of them are there, %zu in all", wanted,
                   found, r.count);
}

/* --- usage */

#define PARTS_ASTRAY "SELECT COUNT(*) FROM usage p LEFT JOIN usage u ON u.attempt = p.part_of WHERE p.part_of > 0 AND (u.attempt IS NULL OR u.billable <> p.billable OR u.job <> p.job OR u.node <> p.node)"
#define BILLED(of)   "(SELECT COALESCE(SUM((ended_ms - started_ms) * " of "), 0) FROM usage WHERE billable = 1)"
#define SUMMED(of)   "(SELECT COALESCE(SUM(" of "), 0) FROM usage_day)"
#define DAYS_OFF     "SELECT (" BILLED("1") " <> " SUMMED("ms") ") + (" BILLED("gpu_milli") " <> " SUMMED("gpu_milli_ms") ") + (" BILLED("mem_mib") " <> " SUMMED("mem_mib_ms") ")"

static void check_usage(struct sim_books *b)
{
    struct rows r;
    if (!ASK(b, USAGE_EDGE, &r, V_INT(0), V_INT(-1), V_INT(INT64_MAX), V_INT(0), V_INT(INT64_MAX)))
        return;
    for (size_t i = 0; i < b->attempt_count; i++) {
        const struct attempt_row *a = &b->attempts[i];
        size_t rows = 0;
        for (size_t k = 0; k < r.count; k++) {
            if (row_int(&r, k, 0) != a->id)
                continue;
            rows++;
            if (row_int(&r, k, 10) != MAX(a->ended_ms, a->started_ms))
                cloud_fail(b->c, "the usage of an attempt of %s is not its time", a->wish->name);
            if (!row_int(&r, k, 11) != outcome_is_our_fault((enum outcome)a->outcome))
                cloud_fail(b->c, "an attempt of %s is billed wrongly", a->wish->name);
        }
        if (rows != (a->started_ms > 0))
            cloud_fail(b->c, "an attempt of %s has %zu usage intervals (%s)", a->wish->name, rows,
                       outcome_name((enum outcome)a->outcome));
    }
    size_t started = 0;
    for (size_t i = 0; i < b->attempt_count; i++)
        started += b->attempts[i].started_ms > 0;
    size_t whole = (size_t)cloud_number(b->c, "SELECT COUNT(*) FROM usage WHERE part_of = 0");
    if (whole != started)
        cloud_fail(b->c, "%zu usage intervals for %zu attempts that started", whole, started);
    if (cloud_number(b->c, PARTS_ASTRAY))
        cloud_fail(b->c, "a part of an attempt's usage is nobody's, or is not billed as the attempt is");
    if (cloud_number(b->c, DAYS_OFF))
        cloud_fail(b->c, "the sums of days are not what is billed");
}

/* --- events */

static void check_events(struct sim_books *b)
{
    struct rows r;
    if (!ASK(b, EVENT_LIST_ALL, &r, V_INT(0), V_INT(100000)))
        return;
    for (size_t i = 0; i < r.count; i++)
        if (row_int(&r, i, 0) != (int64_t)i + 1) {
            cloud_fail(b->c, "the event log has a gap before %lld", LL(row_int(&r, i, 0)));
            return;
        }
    books_followed(b->c, &r, &b->c->followers[0], 0);
    books_followed(b->c, &r, &b->c->followers[1], b->projects[1]);
}

/* --- nothing is left on the nodes */

static void check_node(struct sim_books *b, int node)
{
    static const char *const folders[] = { "tasks", "status" };
    struct os *os = b->c->nodes[node].os;
    struct texts names = { 0 };
    struct err err = { 0 };
    for (size_t i = 0; i < COUNT(folders); i++)
        if (!dir_list(os, arena_printf(b->mem, "/var/lib/arcus/%s", folders[i]), b->mem, &names,
                      &err)
            || names.count)
            cloud_fail(b->c, "n%d still has %zu %s, as %s", node + 1, names.count, folders[i],
                       names.count ? names.at[0] : err.text);
    AUTO(spool_free) struct spool *s = NULL;
    const struct spool_told *told;
    const struct node *n = node_of_host(b->c, node);
    char name[ID_TEXT];
    size_t at = 0;
    if (!spool_open(os, "/var/lib/arcus/spool", &s, &err))
        cloud_fail(b->c, "the spool of n%d: %s", node + 1, err.text);
    else if (spool_damaged(s))
        cloud_fail(b->c, "the spool of n%d is damaged", node + 1);
    while (
        s
        && (told = spool_each(
                s,
                &at))) /* what the server has may be remembered again after a crash, but no more */
        if (!told->ended_n || told->ended_n > n->kept)
            cloud_fail(b->c, "n%d still remembers %s: start %lld, end %lld of %lld", node + 1,
                       id_text(name, PREFIX_ATTEMPT, told->attempt), LL(told->started_n),
                       LL(told->ended_n), LL(n->kept));
}

static struct sim_books books_open(struct cloud *c, struct arena *mem)
{
    enum { ATTEMPTS_MOST = 4096 };
    struct control *k = server_control(c->server);
    struct state *s = k->writer.state;
    return (struct sim_books){ .c = c,
                           .mem = mem,
                           .conn = cloud_conn(c),
                           .attempt_room = ATTEMPTS_MOST,
                           .projects = { state_project(s, c->tenants[0].name)->id,
                                         state_project(s, c->tenants[1].name)->id },
                           .attempts = ARENA_ARRAY(mem, struct attempt_row, ATTEMPTS_MOST) };
}

void books_print(struct cloud *c)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct sim_books b = books_open(c, mem);
    char name[ID_TEXT];
    int64_t id;
    for (size_t i = 0; i < c->wish_count; i++)
        if (id_parse(c->wishes[i].job, PREFIX_JOB, &id)) {
            printf("# %s %s\n", c->wishes[i].job, c->wishes[i].body.at);
            take_attempts(&b, &c->wishes[i], id);
        }
    for (size_t i = 0; i < b.attempt_count; i++) {
        const struct attempt_row *a = &b.attempts[i];
        const struct run *r = a->run;
        printf("# %s task %lld %s on %s %s started %lld ended %lld", a->wish->name, LL(a->task),
               id_text(name, PREFIX_ATTEMPT, a->id), a->node,
               outcome_name((enum outcome)a->outcome), LL(a->started_ms), LL(a->ended_ms));
        if (r)
            printf(", really %lld to %lld (%lld ms to %lld ms) %s%s", LL(r->started_ms),
                   LL(r->ended_ms), LL(r->from_ms), LL(r->to_ms), outcome_name(r->outcome),
                   r->told ? "" : " killed");
        if (!a->ended_ms)
            printf(" %s", a->lease);
        printf("\n");
    }
}

void books_check(struct cloud *c)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct sim_books b = books_open(c, mem);
    for (int i = 0; i < TENANTS; i++)
        check_jobs(&b, i);
    check_overlaps(&b);
    check_devices(&b);
    check_usage(&b);
    check_events(&b);
    books_memory(c);
    books_picture(c);
    for (int i = 0; i < c->node_count && cloud_ok(c); i++)
        check_node(&b, i);
}
