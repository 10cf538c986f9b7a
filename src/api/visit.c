/* visit.c - the life of one request: made when it came, asked at the door once or more, ended when
 * both the client and the door have let go of it.
 *
 * Long ones (streams, followers) are kept on a list: when somebody's key, account or membership
 * changes, each is asked for again, and one that may no longer be is cut. So a disabled key stops
 * at once, not at the next request. Time takes keys away without a word: so all are asked for now
 * and then too. */
#include "api/api_internal.h"
#include <stdlib.h>

enum { USUAL = 2048, REPLY_USUAL = 900, PARTS = 16 };   /* what a request and its reply need mostly; a watch is made in so many parts */

void request_id(struct api *a, char out[static REQUEST_ID])
{
    uint64_t n = rng_next(&a->ids);
    char *to = memcpy(out, "req-", 5) + 4;
    for (int i = 60; i >= 0; i -= 4)
        *to++ = "0123456789abcdef"[n >> i & 15];
    *to = 0;
}

struct visit *visit_new(struct api *a, struct http_request *rq, const struct match *m)
{
    struct arena *mem = a->spares ? a->spare[--a->spares] : arena_new_for(sizeof(struct visit) + USUAL);
    struct visit *v = ARENA_NEW(mem, struct visit);
    v->api = a;
    v->rq = rq;
    v->mem = mem;
    v->began_ms = os_boot_ms(a->os);
    if (m) {
        v->verb_id = m->verb;
        v->verb = &verbs[m->verb];
    }
    v->peer = pass_address(a, rq, mem, &v->passed);
    request_id(a, v->from.request);
    http_set_data(rq, v);
    api_hold(a);
    return v;
}

static void unkeep(struct visit *v)
{
    if (!v->keeping)
        return;
    v->keeping = false;
    if (v->kept_next)
        v->kept_next->kept_prev = v->kept_prev;
    *(v->kept_prev ? &v->kept_prev->kept_next : &v->api->kept) = v->kept_next;
}

void visit_forget(struct visit *v)
{
    str_done(&v->ask.reply);
    if (v->ask.mem != v->mem)
        arena_free(v->ask.mem);
    v->ask.mem = v->mem;
}

void visit_end(struct visit *v)
{
    struct api *a = v->api;
    unkeep(v);
    v->dead = true;
    v->rq = NULL;
    if (turn_waits(&v->turn)) {             /* the door has not seen it, and need not */
        turn_done(&v->turn);
        v->waiting = false;
    }
    if (v->waiting)
        return;
    visit_forget(v);
    if (a->spares < SPARE_VISITS)
        arena_clear(a->spare[a->spares++] = v->mem);
    else
        arena_free(v->mem);
    api_release(a);
}

void visit_gone(struct visit *v)
{
    v->rq = NULL;
    if (v->gone)
        v->gone(v);
    visit_end(v);
}

static void on_reply(void *arg, struct request *r)
{
    struct visit *v = arg;
    const struct verb *verb = &verbs[r->verb];
    v->waiting = v->refused = false;
    if (r->ok)
        v->who = r->who;
    if (r->from.hash[0] || r->who.kind == PRINCIPAL_NONE)
        limits_learn(v->api->limits, &r->from, !verb->roles, r->ok, r->err.rc, &r->who);
    turn_done(&v->turn);
    if (r->ok && v->rq && !v->passed) {     /* another server's connection carries anybody's */
        struct standing who;
        limits_standing(v->api->limits, &v->from, &who);
        if (who.rank != RANK_STRANGER)
            http_group(v->rq, who.id);
    }
    if (v->dead) {
        visit_end(v);
        return;
    }
    if (!r->ok && r->err.rc == RC_NOT_WRITER) {
        if (pass_instead(v))
            return;
        r->err.rc = RC_UNAVAILABLE;
    }
    v->answered(v);
}

static void go(struct turn *t)
{
    struct visit *v = CONTAINER(t, struct visit, turn);
    control_ask(v->api->control, &v->ask);
}

static void refused(void *arg, struct post *p)
{
    (void)p;
    struct visit *v = arg;
    v->waiting = false;
    if (v->dead)
        visit_end(v);
    else
        v->answered(v);
}

static enum gate gate_of(enum verb_id id)
{
    static const bool slow[VERB_COUNT]      /* passwords */
        = { [VERB_LOGIN] = true, [VERB_PASSWORD] = true, [VERB_USER_CREATE] = true, [VERB_USER_UPDATE] = true };
    enum verb_kind kind = verbs[id].kind;
    return slow[id] ? GATE_SLOW : kind == VERB_READ || kind == VERB_STREAM ? GATE_READERS : GATE_WRITER;
}

/* Rates count once a request; what it asks after that is part of it. A check of what flows must be made, however many wait. */
static void queue_up(struct visit *v, bool first, bool must)
{
    struct api *a = v->api;
    struct standing who = { 0 };
    struct err *err = &v->ask.err;
    bool may = true;
    v->turn = (struct turn){ .go = go };
    if (first)
        may = limits_enter(a->limits, &v->from, &who, err);
    else
        limits_standing(a->limits, &v->from, &who);
    if (may && turn_take(a->turns, gate_of(v->ask.verb), &who, v->rq ? http_body(v->rq).len : 0, must, &v->turn, err))
        return;
    if (may)
        limits_refused(a->limits, REFUSED_TURN, v->from.address);
    v->refused = true;
    v->ask.post = (struct post){ .fn = refused, .arg = v };
    os_post(a->os, &v->ask.post);
}

static void ask(struct visit *v, enum verb_id verb, const void *body,
                void (*answered)(struct visit *v), bool inside)
{
    assert(!v->waiting && !v->dead);
    bool first = !v->ask.mem, lasts = v->verb && v->verb->kind == VERB_STREAM;
    struct arena *mem = first && !lasts ? v->mem : arena_new();     /* a follower asks for as long as it lives */
    visit_forget(v);
    v->ask = (struct request){ .verb = verb, .body = body, .mem = mem, .on_reply = on_reply, .arg = v };
    v->ask.from = v->from;
    v->ask.about = v->verb;
    v->ask.again = v->keeping;
    if (inside) {
        v->ask.who = v->who;
        v->ask.from.hash[0] = 0;
    }
    if (verb == v->verb_id) {
        v->ask.given = v->given;
        v->ask.if_match = v->if_match;
        v->ask.idem = v->verb->kind == VERB_WRITE ? v->idem : NULL;
        memcpy(v->ask.body_hash, v->body_hash, sizeof v->body_hash);
    }
    v->answered = answered;
    v->waiting = true;
    if (!lasts)
        str_grow(&v->ask.reply, REPLY_USUAL)[0] = 0;    /* by the thread that gives it back: another's memory is under a lock */
    queue_up(v, first, inside || v->keeping);
}

void visit_ask(struct visit *v, enum verb_id verb, const void *body,
               void (*answered)(struct visit *v))
{
    ask(v, verb, body, answered, false);
}

void visit_ask_inside(struct visit *v, enum verb_id verb, const void *body,
                      void (*answered)(struct visit *v))
{
    ask(v, verb, body, answered, true);
}

void visit_keep(struct visit *v)
{
    v->keeping = true;
    v->checked_ms = os_boot_ms(v->api->os);
    v->kept_next = v->api->kept;
    v->kept_prev = NULL;
    if (v->kept_next)
        v->kept_next->kept_prev = v;
    v->api->kept = v;
}

/* What was refused because the thing has moved on (a task that ended) is no reason to cut what
 * still flows. */
static void rechecked(struct visit *v)
{
    enum rc rc = v->ask.ok ? RC_OK : v->ask.err.rc;
    visit_forget(v);
    if (rc != RC_UNAUTHENTICATED && rc != RC_DENIED && rc != RC_NOT_FOUND) {
        if (v->rq && v->drained)
            v->drained(v);              /* it may have wanted to ask while this was on its way */
        return;
    }
    log_line(LOG_INFO, "api", "%s %s cut: %s", v->from.request, v->verb->name, v->ask.err.text);
    struct http_request *rq = v->rq;
    visit_gone(v);
    if (rq)
        http_abort(rq);
}

void visits_recheck(struct api *a)
{
    for (struct visit *v = a->kept, *next; v; v = next) {
        next = v->kept_next;
        if (!v->waiting)                /* else its answer is a check already */
            visit_ask(v, v->verb_id, v->body, rechecked);
    }
    links_check(a, INT64_MAX);
}

/* Each in its own time, as they came: all at once would be thousands at the door. */
static void on_watch(void *arg)
{
    struct api *a = arg;
    int64_t now_ms = os_boot_ms(a->os);
    a->watch = timer_start(a->os, MAX(a->watch_ms / PARTS, 1), on_watch, a);
    for (struct visit *v = a->kept, *next; v; v = next) {
        next = v->kept_next;
        if (now_ms - v->checked_ms < a->watch_ms)
            continue;
        v->checked_ms = now_ms;
        if (!v->waiting)
            visit_ask(v, v->verb_id, v->body, rechecked);
    }
    links_check(a, now_ms - a->watch_ms);
}

void visits_watch(struct api *a, int64_t every_ms)
{
    timer_cancel(a->watch);
    a->watch_ms = every_ms;
    a->watch = timer_start(a->os, MAX(every_ms / PARTS, 1), on_watch, a);
}
