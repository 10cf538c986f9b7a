/* logs.c - what a task printed, as plain bytes: read once, or followed until the task is over.
 *
 * The agent sends the frames of model/channel.h; their bytes go on as they are. A follower of a
 * task that has no attempt yet waits for one with its reply open; when an attempt has ended and
 * another follows, so does the reply. The reply ends as whole only when the door says that the task
 * is over: anything else cuts it, so that a client cannot take half a log for all of it. An agent
 * ends a log when it knows of nothing more; if the door knew the attempt as alive then, it is asked
 * once more after the end. */
#include "api/api_internal.h"
#include "model/channel.h"
#include "model/job_state.h"
#include "model/order.h"
#include <stdlib.h>

enum { SOON_MS = 50, LATER_MS = 5000, MISSES = 60 };

struct logs {
    struct visit *visit;            /* NULL: let go; only the WebSocket is left to close */
    struct api *api;
    struct logs *next, *prev;       /* on api->tails while it waits for something to happen */
    bool listed, soon;
    struct timer *timer;
    struct await *await;
    struct ws *ws;
    bool paused;
    int64_t attempt;                /* the last that was asked for, */
    char state[16];                 /* its state then */
    int64_t sent;                   /* bytes of it that the client has; */
    int misses;                     /* times in a row that its node could not be reached */
    int64_t skip;                   /* of those, what comes once more and is not sent again */
    int64_t project;
};

static void unlist(struct logs *l)
{
    timer_cancel(TAKE(l->timer));
    l->soon = false;
    if (!l->listed)
        return;
    l->listed = false;
    if (l->next)
        l->next->prev = l->prev;
    *(l->prev ? &l->prev->next : &l->api->tails) = l->next;
}

/* Nothing of it is the visit's any more; the WebSocket may outlive it by its goodbye. */
static void let_go(struct logs *l)
{
    struct api *a = l->api;
    unlist(l);
    await_stop(TAKE(l->await));
    if (l->visit) {
        l->visit = NULL;
        crowd_leave(a, l->project);
    }
    if (l->ws) {
        ws_close(l->ws, 1000, "");
        return;
    }
    free(l);
    api_release(a);
}

static void gone(struct visit *v) { let_go(v->work); }

static void fail(struct logs *l, const struct err *why)
{
    struct visit *v = l->visit;
    struct err copy = *why;
    let_go(l);
    if (!v->begun)
        reply_problem(v, &copy);
    else
        reply_cut(v);
}

static void begin(struct logs *l)
{
    if (!l->visit->begun)
        reply_begin(l->visit, "text/plain; charset=utf-8", -1, NULL);
}

static void finish(struct logs *l)
{
    struct visit *v = l->visit;
    begin(l);
    let_go(l);
    reply_done(v);
}

/* --- waiting for something to happen */

static void answered(struct visit *v);

static void ask_again(void *arg)
{
    struct logs *l = arg;
    struct visit *v = l->visit;
    l->timer = NULL;
    if (v->waiting) {                   /* its credential is being checked */
        l->timer = timer_start(l->api->os, SOON_MS, ask_again, l);
        return;
    }
    unlist(l);
    visit_ask(v, VERB_JOB_LOGS, v->body, answered);
}

static void wait(struct logs *l)
{
    begin(l);
    l->listed = true;
    l->next = l->api->tails;
    l->prev = NULL;
    if (l->next)
        l->next->prev = l;
    l->api->tails = l;
    l->timer = timer_start(l->api->os, LATER_MS, ask_again, l);
}

void logs_commit(struct api *a, const struct commit *k)
{
    for (struct logs *l = a->tails; l; l = l->next)
        for (size_t i = 0; !l->soon && i < k->event_count; i++)
            if (k->events[i].project == l->project) {
                l->soon = true;
                timer_cancel(l->timer);
                l->timer = timer_start(a->os, SOON_MS, ask_again, l);
            }
}

/* Cut, not ended: a client that follows comes back to the next server and goes on. */
void logs_close(struct api *a)
{
    struct err why = { 0 };
    err_set(&why, RC_UNAVAILABLE, "the server is closing");
    while (a->tails)
        fail(a->tails, &why);
}

/* --- the agent's side */

/* A follower outlives an agent that restarts or is away for a while: it goes on behind what it has. */
static void unreached(struct logs *l, const struct err *why)
{
    const struct job_logs_ask *ask = l->visit->body;
    bool again = ask->follow && l->visit->begun && (ask->tail < 0 || !l->sent) && !l->api->closing;
    if (!again || ++l->misses > MISSES) {
        fail(l, why);
        return;
    }
    l->state[0] = 0;
    wait(l);
}

static void attempt_told(struct logs *l)
{
    const struct job_logs_ask *ask = l->visit->body;
    if (!ask->follow || ask->attempt_number)
        finish(l);
    else if (l->visit->waiting)
        wait(l);
    else
        visit_ask(l->visit, VERB_JOB_LOGS, ask, answered);
}

static void control_frame(struct logs *l, struct slice json)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct json *doc;
    struct err why = { 0 };
    const char *error = json_parse(json, mem, &doc, &why) ? json_text(doc, "error") : NULL;
    if (error)
        err_set(&why, RC_CONFLICT, "%.200s", error);
    if (why.rc != RC_OK)
        fail(l, &why);
}

static void on_message(void *arg, struct ws *w, bool text, const char *at, size_t n)
{
    struct logs *l = arg;
    (void)text;
    if (!l->visit || n < 1)
        return;
    if (at[0] == CHANNEL_CONTROL) {
        control_frame(l, (struct slice){ at + 1, n - 1 });
        return;
    }
    if (at[0] != CHANNEL_OUT && at[0] != CHANNEL_ERR)
        return;
    size_t again = MIN((size_t)l->skip, n - 1);
    l->skip -= (int64_t)again;
    l->sent += (int64_t)(n - 1 - again);
    l->misses = 0;
    begin(l);
    http_piece(l->visit->rq, at + 1 + again, n - 1 - again);
    if (!l->paused && http_waiting(l->visit->rq) > api_room(l->api)) {
        l->paused = true;
        ws_pause(w, true);
    }
}

static void drained(struct visit *v)
{
    struct logs *l = v->work;
    if (l->ws && l->paused) {
        l->paused = false;
        ws_pause(l->ws, false);
    }
}

static void on_close(void *arg, struct ws *w, const struct err *why)
{
    struct logs *l = arg;
    (void)w;
    l->ws = NULL;
    l->paused = false;
    if (!l->visit) {
        struct api *a = l->api;
        free(l);
        api_release(a);
    } else if (why->rc == RC_OK) {
        attempt_told(l);
    } else {
        unreached(l, why);
    }
}

static void on_agent(void *arg, struct visit *agent)
{
    static const struct ws_events events = { .on_message = on_message, .on_close = on_close };
    static const struct ws_limits limits = { .message_bytes = CHANNEL_MESSAGE };
    struct logs *l = arg;
    l->await = NULL;
    l->ws = ws_accept(TAKE(agent->rq), &limits, &events, l);
    visit_end(agent);
    if (((const struct job_logs_ask *)l->visit->body)->follow)
        begin(l);
}

static void on_failed(void *arg, const struct err *why)
{
    struct logs *l = arg;
    l->await = NULL;
    unreached(l, why);
}

/* --- where the log is, now */

static bool ended(const char *state)
{
    for (int s = JOB_DONE; s < JOB_STATE_COUNT; s++)
        if (text_is(state, job_state_name((enum job_state)s)))
            return true;
    return false;
}

/* An attempt that failed may be followed by another; the task tells, or else the job. */
static bool is_over(const struct where *w)
{
    if (w->task_state[0])
        return ended(w->task_state);
    return text_is(w->state, job_state_name(JOB_DONE))
           || (ended(w->state) && (!w->job_state[0] || ended(w->job_state)));
}

/* Its last lines cannot be told from what was sent of it before, so those are not asked for twice.
 * */
static bool once_more(const struct logs *l, const struct where *w)
{
    const struct job_logs_ask *ask = l->visit->body;
    return !text_is(l->state, w->state) && !ended(l->state) && (ask->tail < 0 || !l->sent);
}

static void open_attempt(struct logs *l, const struct where *where)
{
    static const struct await_events events = { on_agent, on_failed };
    const struct job_logs_ask *ask = l->visit->body;
    struct err why;
    struct open_stream o = { .what = "logs",
                             .attempt = where->attempt,
                             .follow = ask->follow,
                             .source = ask->source,
                             .tail = l->attempt && l->sent ? -1 : ask->tail };
    if (l->attempt != where->attempt)
        l->sent = 0;
    l->skip = l->sent;
    l->attempt = where->attempt;
    memcpy(l->state, where->state, sizeof l->state);
    if (!await_start(l->api, where->node, &o, &events, l, &l->await, &why))
        unreached(l, &why);
}

static void look(struct logs *l)
{
    const struct job_logs_ask *ask = l->visit->body;
    struct where where;
    struct err why;
    if (!where_read(l->visit, &where, &why))
        fail(l, &why);
    else if (where.attempt && where.node && (where.attempt != l->attempt || once_more(l, &where)))
        open_attempt(l, &where);
    else if (is_over(&where))
        finish(l);
    else if (ask->follow)
        wait(l);
    else {
        err_set(&why, RC_CONFLICT, "it has not started yet: it is %s", where.state);
        fail(l, &why);
    }
}

static void answered(struct visit *v)
{
    struct logs *l = v->work;
    if (v->ask.ok)
        look(l);
    else
        fail(l, &v->ask.err);
}

static void first_answered(struct visit *v)
{
    struct where where;
    struct err why;
    const struct job_logs_ask *ask = v->body;
    bool known = !text_given(ask->source) || text_is(ask->source, "stdout")
                 || text_is(ask->source, "stderr");
    if (!v->ask.ok) {
        reply_problem(v, &v->ask.err);
        return;
    }
    if ((!known && !err_field(&why, "source", "must be stdout or stderr"))
        || !where_read(v, &where, &why) || !crowd_enter(v->api, where.project, &why)) {
        reply_problem(v, &why);
        return;
    }
    struct logs *l = calloc(1, sizeof *l);
    if (!l)
        abort();
    *l = (struct logs){ .visit = v, .api = v->api, .project = where.project };
    v->work = l;
    v->gone = gone;
    v->drained = drained;
    api_hold(v->api);
    visit_keep(v);
    look(l);
}

void logs_begin(struct visit *v) { visit_ask(v, VERB_JOB_LOGS, v->body, first_answered); }
