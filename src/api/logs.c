/* logs.c - what a task printed, as plain bytes: read once, or followed until the task is over.
 *
 * The agent sends the frames of model/channel.h; their bytes go on as they are. A follower of a
 * task that has no attempt yet waits for one with its reply open; when an attempt has ended and
 * another follows, so does the reply. The reply ends as whole only when the door says that the task
 * is over: anything else cuts it, so that a client cannot take half a log for all of it. An agent
 * ends a log when it knows of nothing more; if the door knew the attempt as alive then, it is asked
 * once more after the end. Each piece comes with its place, so what is asked for again goes on behind it. */
#include "api/api_internal.h"
#include "base/id.h"
#include "model/channel.h"
#include "model/job_state.h"
#include "model/order.h"
#include "model/prefix.h"
#include <stdio.h>
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
    struct job_logs_ask *ask;       /* the body of the visit */
    int64_t attempt;                /* the last that was asked for, */
    char state[16];                 /* its state then */
    bool told;                      /* something, of any attempt: what follows is told from its beginning on */
    bool sent;                      /* something of this one; */
    char place[LOG_PLACE];          /* and where that ended: it goes on there, */
    char next_place[LOG_PLACE];     /* or there, once the next message is sent too */
    int misses;                     /* times in a row that its node could not be reached */
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

static bool with_marks(const struct logs *l) { return l->ask->marks && l->ask->follow; }

static void begin(struct logs *l)
{
    if (!l->visit->begun)
        reply_begin(l->visit, with_marks(l) ? "application/vnd.arcus.log" : "text/plain; charset=utf-8", -1, NULL);
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
    bool again = l->ask->follow && l->visit->begun && (l->place[0] || !l->sent) && !l->api->closing;
    if (!again || ++l->misses > MISSES) {
        fail(l, why);
        return;
    }
    l->state[0] = 0;
    wait(l);
}

static void attempt_told(struct logs *l)
{
    l->ask->from = NULL;                /* that attempt is told: the last one is asked for from now on */
    if (!l->ask->follow || l->ask->attempt_number)
        finish(l);
    else if (l->visit->waiting)
        wait(l);
    else
        visit_ask(l->visit, VERB_JOB_LOGS, l->ask, answered);
}

static void put_mark(struct logs *l, size_t bytes)
{
    char line[LOG_MARK + 24], id[ID_TEXT];
    int n = snprintf(line, sizeof line, "%s.%s %zu\n", id_text(id, PREFIX_ATTEMPT, l->attempt), l->place[0] ? l->place : "0.0.0", bytes);
    http_piece(l->visit->rq, line, (size_t)n);
}

/* The last lines are told, and there were none: from here on it goes on, whoever asks again. */
static void take_begin(struct logs *l, const char *place)
{
    l->told = l->sent = text_copy(l->place, sizeof l->place, place);
    begin(l);
    if (with_marks(l))
        put_mark(l, 0);
}

static void control_frame(struct logs *l, struct slice json)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct json *doc;
    struct err why = { 0 };
    bool good = json_parse(json, mem, &doc, &why);
    const char *error = good ? json_text(doc, "error") : NULL, *at = good ? json_text(doc, "at") : NULL,
               *begins = good && !l->sent ? json_text(doc, "begins") : NULL;
    if (at && (!log_place_good(at) || !text_copy(l->next_place, sizeof l->next_place, at)))
        err_set(&why, RC_INTERNAL, "the node told a mark that is none");
    if (begins && !log_place_good(begins))
        err_set(&why, RC_INTERNAL, "the node told a mark that is none");
    if (error)
        err_set(&why, RC_CONFLICT, "%.200s", error);
    if (why.rc != RC_OK)
        fail(l, &why);
    else if (begins)
        take_begin(l, begins);
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
    l->told = l->sent = true;
    memcpy(l->place, l->next_place, sizeof l->place);
    l->next_place[0] = 0;
    l->misses = 0;
    begin(l);
    if (with_marks(l))
        put_mark(l, n - 1);
    http_piece(l->visit->rq, at + 1, n - 1);
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
    if (l->ask->follow)
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

static bool once_more(const struct logs *l, const struct where *w)
{
    return !text_is(l->state, w->state) && !ended(l->state) && (l->place[0] || !l->sent);
}

static void open_attempt(struct logs *l, const struct where *where)
{
    static const struct await_events events = { on_agent, on_failed };
    struct err why;
    int64_t marked;
    const char *place;
    if (l->attempt != where->attempt) {
        l->place[0] = 0;
        l->sent = false;
        l->told |= l->attempt != 0;
    }
    if (!l->attempt && text_given(l->ask->from) && log_mark_read(l->ask->from, &marked, &place) && marked == where->attempt)
        l->told = l->sent = text_copy(l->place, sizeof l->place, place);
    struct open_stream o = { .what = "logs",
                             .attempt = where->attempt,
                             .follow = l->ask->follow,
                             .source = l->ask->source,
                             .from = l->place,
                             .tail = l->told ? -1 : l->ask->tail };
    l->next_place[0] = 0;
    l->attempt = where->attempt;
    memcpy(l->state, where->state, sizeof l->state);
    if (!await_start(l->api, where->node, &o, &events, l, &l->await, &why))
        unreached(l, &why);
}

static void look(struct logs *l)
{
    struct where where;
    struct err why;
    if (!where_read(l->visit, &where, &why))
        fail(l, &why);
    else if (where.attempt && where.node && (where.attempt != l->attempt || once_more(l, &where)))
        open_attempt(l, &where);
    else if (is_over(&where))
        finish(l);
    else if (l->ask->follow)
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
    struct job_logs_ask *ask = ARENA_NEW(v->mem, struct job_logs_ask);
    *ask = *(const struct job_logs_ask *)v->body;
    v->body = ask;
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
    *l = (struct logs){ .visit = v, .api = v->api, .ask = ask, .project = where.project };
    v->work = l;
    v->gone = gone;
    v->drained = drained;
    api_hold(v->api);
    visit_keep(v);
    look(l);
}

void logs_begin(struct visit *v) { visit_ask(v, VERB_JOB_LOGS, v->body, first_answered); }
