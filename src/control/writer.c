/* writer.c - the one writer: takes every verb that waits, lets them decide on its memory and hands
 * their writes, events and replies on to commits.c, which lets nobody hear of them before they are durable. If the store refuses
 * anything, the memory is built again from the store and the verbs run again one by one, so that
 * the bad one fails alone. */
#include "base/log.h"
#include "control/audit.h"
#include "control/idem.h"
#include <stdio.h>
#include <stdlib.h>

enum { SNAPSHOT_PART = 1000, LIGHT_GROUP = 32, LIGHT_MOST = 64 };

/* The same Idempotency-Key again: the same answer, and nothing is done. */
static bool replay(struct call *call, const struct idem *i, struct err *err)
{
    struct request *r = call->r;
    if (i->verb != r->verb || (i->body[0] && strncmp(i->body, r->body_hash, 16) != 0))
        return err_field(err, "Idempotency-Key",
                         "this key was used for another request; choose a new one for a new wish");
    r->replayed = true;
    if (handlers[r->verb].once)
        return err_set(err, RC_CONFLICT,
                       "this was done already with the same Idempotency-Key, and its secret is "
                       "shown only once; make a new one");
    if (i->verb != VERB_JOB_SUBMIT) {
        str_text(&r->reply, i->reply ? i->reply : "{}");
        return true;
    }
    struct job *j = map_get(call->s->jobs, i->job);
    j = j ? j : map_get(call->s->ended, i->job);
    if (j)
        return job_reply(call, j), true;
    struct job_ref ref = { .job = id_of(call, PREFIX_JOB, i->job) };
    return handlers[VERB_JOB_GET].run(
        call, &ref, err); /* it has ended: the writer's connection reads it like a reader */
}

/* A question: what the planner is to be asked is made here, and what it said is put into words, by the same memory. Nothing is written.
 * In between the loop hands it on, as late as any answer: nobody hears of what is not durable. */
static bool run_ask(struct call *call)
{
    struct request *r = call->r;
    const struct handler *h = &handlers[r->verb];
    struct batch scratch = { .mem = r->mem };
    call->batch = &scratch;
    if (!h->ask)            /* of the writer's memory alone */
        return h->run(call, r->body, &r->err);
    if (!r->question || !r->question->answered) {
        r->question = ARENA_NEW(r->mem, struct question);
        if (!h->ask(call, r->body, &r->err))
            return false;
        if (call->control->planner && !r->question->refused)
            return true;
        r->question->answered = true;
    }
    return h->run(call, r->body, &r->err);
}

static bool run_verb(struct control *c, struct batch *b, struct request *r)
{
    struct call call = { .control = c,
                         .s = c->writer.state,
                         .conn = c->writer.conn,
                         .batch = b,
                         .r = r,
                         .who = &r->who,
                         .mem = r->mem,
                         .now_ms = os_wall_ms(c->os),
                         .boot_ms = os_boot_ms(c->os) };
    str_clear(&r->reply);
    r->replayed = r->audited = false;
    b->asked = b->asked || verbs[r->verb].kind == VERB_WRITE || verbs[r->verb].kind == VERB_ASK;
    if (verbs[r->verb].roles && r->from.hash[0])
        r->who = (struct caller){
            0
        }; /* what it was the last time may never have landed, or hold no more */
    if (!door_check(&call, &r->err))
        return false;
    if (verbs[r->verb].kind == VERB_ASK)
        return run_ask(&call);
    const char *key = idem_key(&call);
    struct idem *before = NULL;
    if (key && !idem_find(&call, key, &before, &r->err))
        return false;
    if (before)
        return replay(&call, before, &r->err);
    size_t writes = b->write_count;
    if (!handlers[r->verb].run(&call, r->body, &r->err)) {
        assert(b->write_count == writes); /* a verb that fails has changed nothing */
        return false;
    }
    if (key && r->verb != VERB_JOB_SUBMIT && call.idem_write) {
        struct value *args = (struct value *)b->writes[call.idem_write - 1].args;
        const char *reply = handlers[r->verb].once || !r->reply.len ? NULL : r->reply.at;
        if (reply) { /* the event tells it, to those who follow and to those who read it later */
            args[11] = value_text(arena_text(b->mem, reply));
            b->events[call.idem_event - 1].data = args[11].text;
        }
        idem_keep(&call, key, 0, reply);
    }
    audit_seal(&call);
    return true;
}

/* light: on the loop. What would have to ask the store goes to the writer's own thread then. */
static struct group *decide(struct control *c, struct request **list, size_t count, bool light)
{
    struct group *g = group_new(count);
    g->b.light = light;
    for (size_t i = 0; i < count; i++) {
        bool ok = run_verb(c, &g->b, list[i]);
        if (!g->b.later) {
            g->all[g->count].r = list[i];
            g->all[g->count++].ok = ok;
            continue;
        }
        g->b.later = false;
        list[i]->err = (struct err){ 0 };
        actor_post(c->writer.actor, &list[i]->post);
    }
    group_decided(c, g);
    return g;
}

bool writer_read(struct control *c, bool (*hold)(void *arg, struct err *err), struct state **out,
                 struct err *err)
{
    struct state *fresh;
    uint64_t seed;
    os_random(c->os, &seed, sizeof seed);
    if (!state_load_held(c->writer.conn, os_wall_ms(c->os), os_boot_ms(c->os), seed, hold, c, &fresh,
                         err))
        return false;
    if (!audit_load(c, fresh, err)) {
        state_free(fresh);
        return false;
    }
    return *out = fresh, true;
}

bool writer_load(struct control *c, struct err *err)
{
    struct state *fresh;
    if (!writer_read(c, lease_hold, &fresh, err))
        return false;
    /* A commit whose answer was lost had landed: its orders and events were never sent. The nodes say hello again, and are told
     * everything. */
    bool missed = c->writer.state && fresh->last_event > c->writer.told;
    struct node *old, *n;
    for (size_t i = 0; c->writer.state && (old = map_next(c->writer.state->nodes, &i));)
        if ((n = map_get(fresh->nodes, old->id))) { /* what only memory knows */
            n->heard_boot_ms = old->heard_boot_ms;
            if (n->drain_until_ms == old->drain_until_ms)
                n->drain_boot_ms = old->drain_boot_ms;
            n->linked = old->linked && !missed;
            n->generation = old->generation;
            n->live_mem = TAKE(old->live_mem);
            n->live = old->live;
            n->live_ms = old->live_ms;
            node_goods_set(n, old->goods, old->good_count);
        }
    if (c->writer.state) /* what was refused may have been seen */
        fresh->ids.last = MAX(fresh->ids.last, c->writer.state->ids.last);
    state_free(c->writer.state);
    c->writer.state = fresh;
    c->looks = fresh->idems_from;
    c->writer.stale = missed && !follow_events(c, err);
    return !c->writer.stale;
}

static void sched_of_past(const struct project *p, size_t k, int64_t now_ms, struct sched_event *e)
{
    sched_of_project(p, e);
    memcpy(e->used, p->past[k].used, sizeof e->used);
    e->used_from_ms = p->past[k].day_ms;
    e->used_until_ms = MIN(p->past[k].day_ms + INT64_C(86400) * 1000, now_ms);
}

void writer_snapshot(struct control *c, struct batch *b,
                     void (*flush)(struct control *c, struct batch *b))
{
    struct state *s = c->writer.state;
    struct call call = { .control = c, .s = s, .batch = b, .now_ms = os_wall_ms(c->os) };
    struct node *n;
    s->lifted = brake_lifted(&s->rules, call.now_ms);
    sched_of_rules(s, call.now_ms, emit_news(&call, SCHED_RULES));
    for (size_t i = 0; i < s->evicted_count; i++) {
        struct sched_event *e = s->evicted[i].at_ms <= call.now_ms ? emit_news(&call, SCHED_EVICTED) : NULL; /* else a clock was wrong */
        if (e)
            e->at_ms = s->evicted[i].at_ms, e->count = s->evicted[i].gpu_milli;
    }
    for (size_t i = 0; (n = map_next(s->nodes, &i));) {
        sched_of_node(s, n, emit_news(&call, SCHED_NODE));
        if (n->good_count)
            goods_tell(&call, n);
    }
    struct reservation *reserved;
    for (size_t i = 0; (reserved = map_next(s->reservations, &i));)
        sched_of_reservation(reserved, emit_news(&call, SCHED_RESERVE));
    struct project *p;
    for (size_t i = 0; (p = map_next(s->projects, &i));) {
        sched_of_project(p, emit_news(&call, SCHED_PROJECT));
        for (size_t k = 0; k < PAST_DAYS; k++)
            if (p->past[k].day_ms)
                sched_of_past(p, k, call.now_ms, emit_news(&call, SCHED_PROJECT));
        books_roll(&p->limits, call.now_ms);
        for (size_t k = 0; k < p->limits.count; k++)
            sched_of_limit(p, &p->limits.at[k], emit_news(&call, SCHED_LIMIT));
    }
    struct job *j;
    for (size_t i = 0; (j = map_next(s->jobs, &i));) {
        if (j->state != JOB_STOPPING) /* else nothing of it waits any more */
            sched_of_job(s, j, emit_news(&call, SCHED_JOB));
        void *skipped;
        for (size_t k = 0;
             j->state != JOB_STOPPING && j->skipped && (skipped = map_next(j->skipped, &k));) {
            struct sched_event *e = emit_news(&call, SCHED_TASK_GONE);
            e->job = j->id, e->task = (intptr_t)skipped - 1;
        }
        struct task *t;
        for (size_t k = 0; (t = map_next(j->tasks, &k));) {
            if (t->attempt) {
                sched_of_held(t->attempt, emit_news(&call, SCHED_TASK_HELD));
            } else if (t->state == JOB_QUEUED) {
                struct sched_event *e = emit_news(&call, SCHED_TASK_QUEUED);
                e->job = j->id, e->task = t->index, e->not_before_ms = t->not_before_ms;
            }
        }
        if (flush && b->news_count >= SNAPSHOT_PART)
            flush(c, b);
    }
}

/* News are large and a queue may be long, so it is told in parts. */
struct telling {
    struct batch b;
    bool begun;
};
static void tell_part(struct control *c, struct batch *b, bool more)
{
    struct telling *t = CONTAINER(b, struct telling, b);
    commits_tell_planner(c, b, !t->begun, more);
    t->begun = true;
    arena_free(b->mem);
    *b = (struct batch){ .mem = arena_new() };
}
static void tell_some(struct control *c, struct batch *b)
{
    tell_part(c, b, true);
}

void writer_tell_all(struct control *c)
{
    struct telling t = { .b = { .mem = arena_new() } };
    writer_snapshot(c, &t.b, tell_some);
    tell_part(c, &t.b, false);
    arena_free(t.b.mem);
}

static void away(struct control *c, struct request *r, const struct err *why)
{
    r->err = *why;
    err_wrap(&r->err, "the store does not answer");
    r->err.rc = RC_UNAVAILABLE;
    door_answer(c, r, false);
}

static void nobody_knows(struct control *c, struct request *r)
{
    err_set(&r->err, RC_UNAVAILABLE,
            "the store was lost while this was being written, and whether it was is not known; ask "
            "again with the same Idempotency-Key");
    door_answer(c, r, false);
}

static void not_here(struct control *c, struct request **list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i]->verb == VERB_AUDIT_NOTE && list[i]->who.kind == PRINCIPAL_SYSTEM) {
            door_answer(c, list[i], audit_leave(c, list[i]->body, &list[i]->err));
            continue;
        }
        err_set(&list[i]->err, RC_NOT_WRITER, "another server writes now");
        door_answer(c, list[i], false);
    }
}

static void one_by_one(struct control *c, struct request **list, size_t count)
{
    struct err err = { 0 };
    for (size_t i = 0; i < count; i++) {
        if (c->writer.stale && !writer_load(c, &err)) {
            if (err.rc == RC_NOT_WRITER) {
                lease_lost(c);
                not_here(c, list + i, count - i);
                return;
            }
            away(c, list[i], &err);
            continue;
        }
        struct group *g = decide(c, list + i, 1, false);
        enum fate fate = group_commit(c, g, &err);
        if (fate == LANDED)
            continue;
        group_free(g);
        c->writer.stale = true;
        if (fate == FENCED) {
            lease_lost(c);
            not_here(c, list + i, count - i);
            return;
        }
        list[i]->err = err;
        if (fate == UNKNOWN)
            nobody_knows(c, list[i]);
        else
            door_answer(c, list[i], false);
    }
    if (!c->writer.stale || writer_load(c, &err))
        writer_tell_all(c);
}

/* What did not land, and what was decided behind it: the memory is not true any more. */
static void decide_again(struct control *c, struct group *back)
{
    enum fate fate = back->fate;
    struct err err = back->err;
    size_t count = 0, lost = 0, n = 0;
    for (const struct group *g = back; g; g = g->next) {
        count += g->count;
        lost += g->fate == fate ? g->count : 0;
    }
    AUTO(arena_free) struct arena *mem = arena_new();
    struct request **list = ARENA_ARRAY(mem, struct request *, count);
    for (struct group *g = back, *next; g; g = next) {
        next = g->next;
        for (size_t i = 0; i < g->count; i++)
            list[n++] = g->all[i].r;
        group_free(g);
    }
    c->writer.stale = true;
    if (fate == FENCED) {
        lease_lost(c);
        not_here(c, list, count);
        return;
    }
    log_line(LOG_WARN, "writer", "a commit of %zu verbs %s: %s", lost,
             fate == UNKNOWN ? "may or may not have landed" : "was refused, trying them one by one",
             err.text);
    lost = fate == UNKNOWN ? lost : 0;
    for (size_t i = 0; i < lost; i++)
        nobody_knows(c, list[i]);
    one_by_one(c, list + lost, count - lost);
}

/* All that was decided is in the store afterwards, or was answered otherwise. */
static void settle(struct control *c)
{
    struct group *back = commits_settle(c);
    if (back)
        decide_again(c, back);
}

static void run_requests(struct control *c, struct request **list, size_t count)
{
    if (c->writer.broken)
        settle(c);
    if (!count)
        return;
    if (!c->writer.state)
        not_here(c, list, count);
    else if (c->writer.stale)
        one_by_one(c, list, count);
    else
        commits_put(c, decide(c, list, count, false));
}

static void writer_on_posts(void *arg, struct post *first)
{
    struct control *c = arg;
    struct request *list[GROUP_MOST];
    size_t n = 0;
    for (struct post *p = first, *next; p; p = next) {
        next = p->next;
        bool woken = p == &c->writer.wake, look = !woken && lease_is_look(p);
        if (!woken && !look)
            list[n++] = CONTAINER(p, struct request, post);
        else if (woken)
            c->writer.waking = false;
        if (n < GROUP_MOST && !look && !woken)
            continue;
        run_requests(c, list, n);
        n = 0;
        if (look) {
            settle(c);
            lease_look(c, p);
        }
    }
    run_requests(c, list, n);
}

static void run_light(struct control *c, struct request **list, size_t count)
{
    struct group *g = decide(c, list, count, true);
    if (g->count)
        commits_put(c, g);
    else
        group_free(g);
}

/* Short wishes, on the loop, while the actor rests. They are handed on by the dozen, so that the first are written while the last are decided. If
 * the memory is not true at the moment, that is for the actor to mend, which may take long. */
static void writer_on_light(void *arg, struct post *first)
{
    struct control *c = arg;
    struct request *list[LIGHT_GROUP];
    bool may = c->writer.state && !c->writer.stale && !c->writer.broken;
    size_t n = 0;
    for (struct post *p = first, *next; p; p = next) {
        next = p->next;
        if (!may) {
            actor_post(c->writer.actor, p);
            continue;
        }
        list[n++] = CONTAINER(p, struct request, post);
        if (n == LIGHT_GROUP || !next) {
            run_light(c, list, n);
            n = 0;
        }
    }
}

bool writer_open(struct control *c, struct err *err)
{
    return conn_open(c->store, true, &c->writer.conn, err) && lease_open(c, err);
}

void writer_start(struct control *c)
{
    commits_open(c);
    c->writer.actor = actor_new(c->os, "writer", writer_on_posts, c);
    actor_lend(c->writer.actor, writer_on_light, LIGHT_MOST);
    if (c->writer.state)
        writer_tell_all(c); /* last: the planner answers at once where jobs wait, and must find the writer */
}

void writer_close(struct control *c)
{
    if (c->writer.actor) { /* nobody asks for anything more: what was decided lands, or comes back once and is done then */
        actor_settle(c->writer.actor);
        actor_settle(c->writer.commits);
        actor_stop(c->writer.actor);
        actor_stop(c->writer.commits);
    }
    lease_close(c);
    state_free(c->writer.state);
    conn_close(c->writer.conn);
}
