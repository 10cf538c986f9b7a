/* streams.c - bytes between a person and a task: an agent is told to dial back, and the two
 * WebSockets are spliced.
 *
 * The agent's side is opened by a word of 32 random bytes that only that node was sent; it is good
 * once, for ten seconds and for no other node. Messages pass unread (model/channel.h says what is
 * in them); a side that does not take them stops the other from being read. What each project may
 * have open at once is bounded. */
#include "api/api_internal.h"
#include "base/id.h"
#include "model/channel.h"
#include "model/order.h"
#include "model/prefix.h"
#include <stdlib.h>

enum { DIAL_MS = 10000, CROWD_MOST = 256, WORD_BYTES = 32 };

/* --- how many */

struct crowd { int64_t project; int count; };

bool crowd_enter(struct api *a, int64_t project, struct err *err)
{
    struct crowd *c = map_get(a->crowds, project);
    if (c && c->count >= CROWD_MOST)
        return err_set(err, RC_TOO_MANY,
                       "the project has %d streams open (events, logs, exec, files); end one first",
                       CROWD_MOST);
    if (!c) {
        if (!(c = calloc(1, sizeof *c)))
            abort();
        c->project = project;
        map_put(a->crowds, project, c);
    }
    c->count++;
    return true;
}

void crowd_leave(struct api *a, int64_t project)
{
    struct crowd *c = map_get(a->crowds, project);
    if (c && --c->count == 0) {
        map_take(a->crowds, project);
        free(c);
    }
}

/* --- where */

static bool id_member(const struct json *doc, const char *name, const char *prefix, int64_t *out)
{
    const char *text = json_text(doc, name);
    *out = 0;
    return !text || id_parse(text, prefix, out);
}

static bool state_member(const struct json *doc, const char *name, char out[static 16])
{
    const char *text = json_text(doc, name);
    return !text || text_copy(out, 16, text);
}

bool where_read(struct visit *v, struct where *out, struct err *err)
{
    struct json *doc;
    *out = (struct where){ 0 };
    if (!json_parse((struct slice){ v->ask.reply.at, v->ask.reply.len }, v->ask.mem, &doc, err))
        return err_wrap(err, "where it is");
    if (!id_member(doc, "node", PREFIX_NODE, &out->node)
        || !id_member(doc, "attempt", PREFIX_ATTEMPT, &out->attempt)
        || !id_member(doc, "volume", PREFIX_VOLUME, &out->volume)
        || !id_member(doc, "project", PREFIX_PROJECT, &out->project)
        || !state_member(doc, "state", out->state)
        || !state_member(doc, "task_state", out->task_state)
        || !state_member(doc, "job_state", out->job_state))
        return err_set(err, RC_INTERNAL, "the door's answer is not understood");
    if (!out->project)
        out->project = v->who.project;
    return true;
}

/* --- an agent is awaited */

struct await {
    struct api *api;
    char word[SECRET_TEXT];
    int64_t node;
    const struct await_events *events;
    void *arg;
    struct timer *timer;
};

static void await_free(struct await *w)
{
    map_take_text(w->api->awaited, w->word);
    timer_cancel(w->timer);
    free(w);
}

void await_stop(struct await *w)
{
    if (w)
        await_free(w);
}

static void too_late(void *arg)
{
    struct await *w = arg;
    const struct await_events *events = w->events;
    void *owner = w->arg;
    struct err why;
    w->timer = NULL;
    await_free(w);
    err_set(&why, RC_UNAVAILABLE, "the node did not answer within %d seconds; try again later",
            DIAL_MS / 1000);
    events->on_failed(owner, &why);
}

bool await_start(struct api *a, int64_t node, struct open_stream *o,
                 const struct await_events *events, void *arg, struct await **out, struct err *err)
{
    unsigned char random[WORD_BYTES];
    struct await *w = calloc(1, sizeof *w);
    if (!w)
        abort();
    os_random(a->os, random, sizeof random);
    secret_make(random, "st_", w->word);
    w->api = a;
    w->node = node;
    w->events = events;
    w->arg = arg;
    o->kind = "open";
    o->stream = w->word;
    if (!links_open_stream(a, node, o, err)) {
        free(w);
        return false;
    }
    w->timer = timer_start(a->os, DIAL_MS, too_late, w);
    map_put_text(a->awaited, w->word, w);
    *out = w;
    return true;
}

/* A wrong word, a used one and another node's are one and the same answer. */
static void agent_answered(struct visit *v)
{
    const struct stream_ask *ask = v->body;
    struct await *w = map_get_text(v->api->awaited, ask->stream);
    if (!v->ask.ok) {
        reply_problem(v, &v->ask.err);
    } else if (!w && !control_writes(v->api->control)) {
        reply_not_writer(v);
    } else if (!w || v->who.id != w->node) {
        reply_error(v, RC_NOT_FOUND, "no such stream is awaited");
    } else if (!ws_asked(v->rq)) {
        reply_upgrade(v);
    } else {
        const struct await_events *events = w->events;
        void *arg = w->arg;
        await_free(w);
        events->on_agent(arg, v);
    }
}

void stream_answer_begin(struct visit *v)
{
    visit_ask(v, VERB_NODE_STREAM, v->body, agent_answered);
}

/* --- the splice */

enum side { USER, AGENT, SIDES };
struct end { struct splice *splice; enum side side; struct ws *ws; bool paused; };
struct splice {
    struct api *api;
    struct visit *visit;            /* the user's; NULL: let go */
    struct await *await;
    struct end ends[SIDES];
    int64_t project;
};

static void splice_free(struct splice *s)
{
    struct visit *v = TAKE(s->visit);
    struct api *a = s->api;
    await_stop(s->await);
    crowd_leave(a, s->project);
    free(s);
    if (v)
        visit_end(v);
    api_release(a);
}

static void on_message(void *arg, struct ws *w, bool text, const char *at, size_t n)
{
    struct end *e = arg;
    struct end *other = &e->splice->ends[!e->side];
    if (!other->ws)
        return;
    ws_send(other->ws, text, at, n);
    if (!e->paused && ws_waiting(other->ws) > api_room(e->splice->api)) {
        e->paused = true;
        ws_pause(w, true);
    }
}

static void on_drain(void *arg, struct ws *w)
{
    struct end *e = arg;
    struct end *other = &e->splice->ends[!e->side];
    (void)w;
    if (other->ws && other->paused) {
        other->paused = false;
        ws_pause(other->ws, false);
    }
}

static void on_close(void *arg, struct ws *w, const struct err *why)
{
    struct end *e = arg;
    struct splice *s = e->splice;
    struct end *other = &s->ends[!e->side];
    (void)w;
    e->ws = NULL;
    if (other->ws)
        ws_close(other->ws, why->rc == RC_OK ? 1000 : 4000 + rc_http(why->rc),
                 why->rc == RC_OK ? "" : e->side == AGENT ? why->text : "the other side left");
    else
        splice_free(s);
}

static void on_agent(void *arg, struct visit *agent)
{
    static const struct ws_events events
        = { .on_message = on_message, .on_drain = on_drain, .on_close = on_close };
    static const struct ws_limits limits = { .message_bytes = CHANNEL_MESSAGE };
    struct splice *s = arg;
    s->await = NULL;
    s->ends[USER].ws = ws_accept(TAKE(s->visit->rq), &limits, &events, &s->ends[USER]);
    s->ends[AGENT].ws = ws_accept(TAKE(agent->rq), &limits, &events, &s->ends[AGENT]);
    visit_end(agent);
}

static void on_failed(void *arg, const struct err *why)
{
    struct splice *s = arg;
    struct visit *v = TAKE(s->visit);
    s->await = NULL;
    splice_free(s);
    reply_problem(v, why);
}

/* The client left before the agent came, or may no longer be here. */
static void gone(struct visit *v)
{
    struct splice *s = v->work;
    s->visit = NULL;
    if (!s->ends[USER].ws && !s->ends[AGENT].ws) {
        splice_free(s);
        return;
    }
    for (int i = 0; i < SIDES; i++)
        if (s->ends[i].ws)
            ws_close(s->ends[i].ws, 4403, "you may no longer do this");
}

static void exec_order(struct visit *v, struct open_stream *o)
{
    const struct job_exec_ask *ask = v->body;
    *o = (struct open_stream){ .what = "exec", .argv = ask->argv, .tty = ask->tty, .tail = -1 };
    o->rows = ask->rows;
    o->cols = ask->cols;
}

static void dial_order(struct visit *v, struct open_stream *o)
{
    const struct job_dial_ask *ask = v->body;
    *o = (struct open_stream){ .what = "dial", .port = ask->port, .tail = -1 };
}

static struct texts texts_of(struct visit *v, const struct json *doc, const char *name)
{
    const struct json *list = json_get(doc, name);
    size_t n = 0;
    for (const struct json *e = list ? list->first : NULL; e; e = e->next)
        n++;
    struct texts out = { ARENA_ARRAY(v->ask.mem, const char *, n + 1), 0 };
    for (const struct json *e = list ? list->first : NULL; e; e = e->next)
        out.at[out.count++] = e->text;
    return out;
}

/* Which keys let in is the door's answer (control/ssh_keys.c): what came with the request, and what is in the profile. */
static void ssh_order(struct visit *v, struct open_stream *o)
{
    struct json *doc;
    struct err ignored;
    *o = (struct open_stream){ .what = "ssh", .tail = -1 };
    if (!json_parse((struct slice){ v->ask.reply.at, v->ask.reply.len }, v->ask.mem, &doc, &ignored))
        return;
    o->argv = texts_of(v, doc, "let_in");
    o->barred = texts_of(v, doc, "barred");
}

static void files_order(struct visit *v, struct open_stream *o)
{
    const struct files_ask *ask = v->body;
    *o = (struct open_stream){ .what = ask->put ? "put" : "get", .path = ask->path, .tail = -1 };
}

static void (*const orders[VERB_COUNT])(struct visit *v, struct open_stream *o) = {
    [VERB_JOB_EXEC] = exec_order,
    [VERB_JOB_DIAL] = dial_order,
    [VERB_JOB_SSH] = ssh_order,
    [VERB_JOB_FILES] = files_order,
    [VERB_VOLUME_FILES] = files_order,
};

static bool open_it(struct visit *v, struct splice *s, struct err *err)
{
    static const struct await_events events = { on_agent, on_failed };
    struct where where;
    struct open_stream o;
    if (!where_read(v, &where, err))
        return false;
    if (!where.node)
        return err_set(err, RC_CONFLICT,
                       v->verb_id == VERB_VOLUME_FILES
                           ? "the volume has no node yet: that is chosen when a job first uses it"
                           : "the task has not been placed yet");
    orders[v->verb_id](v, &o);
    o.attempt = where.attempt;
    o.volume = where.volume;
    if (!crowd_enter(v->api, where.project, err))
        return false;
    s->project = where.project;
    if (await_start(v->api, where.node, &o, &events, s, &s->await, err))
        return true;
    crowd_leave(v->api, where.project);
    return false;
}

static void answered(struct visit *v)
{
    struct err why;
    if (!v->ask.ok) {
        reply_problem(v, &v->ask.err);
        return;
    }
    if (!ws_asked(v->rq)) {
        reply_upgrade(v);
        return;
    }
    struct splice *s = calloc(1, sizeof *s);
    if (!s)
        abort();
    s->api = v->api;
    s->visit = v;
    for (int i = 0; i < SIDES; i++)
        s->ends[i] = (struct end){ .splice = s, .side = (enum side)i };
    if (!open_it(v, s, &why)) {
        free(s);
        reply_problem(v, &why);
        return;
    }
    api_hold(s->api);
    v->work = s;
    v->gone = gone;
    visit_keep(v);
}

void splice_begin(struct visit *v) { visit_ask(v, v->verb_id, v->body, answered); }
