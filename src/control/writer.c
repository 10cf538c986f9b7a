/* writer.c - the one writer: takes every verb that waits, lets them decide on its memory, sends
 * all their writes as one transaction and only then lets the replies go. If the store refuses
 * anything, the memory is built again from the store and the verbs run again one by one, so that
 * the bad one fails alone. */
#include "base/log.h"
#include "control/audit.h"
#include "control/idem.h"
#include <stdio.h>
#include <stdlib.h>

enum { BATCH_MOST = 512, SNAPSHOT_PART = 1000 };

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
    b->asked = b->asked || verbs[r->verb].kind == VERB_WRITE;
    if (verbs[r->verb].roles && r->from.hash[0])
        r->who = (struct caller){
            0
        }; /* what it was the last time may never have landed, or hold no more */
    if (!door_check(&call, &r->err))
        return false;
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
        const char *reply = handlers[r->verb].once || !r->reply.at ? NULL : r->reply.at;
        if (reply) { /* the event tells it, to those who follow and to those who read it later */
            args[11] = value_text(arena_text(b->mem, reply));
            b->events[call.idem_event - 1].data = args[11].text;
        }
        idem_keep(&call, key, 0, reply);
    }
    audit_seal(&call);
    return true;
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
    for (size_t i = 0; (n = map_next(s->nodes, &i));)
        sched_of_node(s, n, emit_news(&call, SCHED_NODE));
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

static void tell_planner(struct control *c, struct batch *b, bool reset, bool more)
{
    if (!c->planner)
        return;
    struct arena *mem = arena_new();
    struct sched_event *copy = ARENA_ARRAY(mem, struct sched_event, b->news_count);
    if (b->news_count)
        memcpy(copy, b->news, b->news_count * sizeof *copy);
    for (size_t i = 0; i < b->news_count; i++) {
        struct sched_event *e = &copy[i];
        if (e->gpu_count)
            e->gpus = memcpy(ARENA_ARRAY(mem, struct sched_gpu, (size_t)e->gpu_count), e->gpus,
                             (size_t)e->gpu_count * sizeof *e->gpus);
        if (e->house)
            e->house = arena_text(mem, e->house);
        if (e->where)
            e->where = (char *)arena_text(mem, e->where);
        if (e->held_count)
            e->held = memcpy(ARENA_ARRAY(mem, struct sched_held, (size_t)e->held_count), e->held,
                             (size_t)e->held_count * sizeof *e->held);
    }
    planner_tell(c, copy, b->news_count, reset, more, mem);
}

static void publish(struct control *c, struct batch *b)
{
    struct state *s = c->writer.state;
    struct commit *k = ARENA_NEW(b->mem, struct commit);
    struct call call
        = { .control = c, .s = s, .batch = b, .mem = b->mem, .now_ms = os_wall_ms(c->os) };
    k->post = (struct post){ .fn = control_committed, .arg = c };
    k->events = b->events;
    k->event_count = b->event_count;
    struct node_push *pushes = ARENA_ARRAY(b->mem, struct node_push, b->node_count);
    for (size_t i = 0; i < b->node_count; i++) {
        struct node *n = map_get(s->nodes, b->nodes[i]);
        if (!n || !n->linked || (!map_count(n->changed) && !n->gone_count && !n->tell))
            continue; /* gone, away (its hello gets all), or told already in this very commit */
        const char *json = desired_json(&call, n, false, 0);
        pushes[k->push_count++] = (struct node_push){ n->id, SLICE(json) };
    }
    k->pushes = pushes;
    k->mem = b->mem;
    if (b->event_count)
        c->writer.told = b->events[b->event_count - 1].seq;
    if (b->news_count)
        tell_planner(c, b, false, false);
    state_forget_ended(s);
    os_post(c->os, &k->post); /* followers first, then the replies: os_post keeps the order */
}

/* What became of a batch. Fenced: nothing landed, and another server writes now. Unknown: its answer
 * was lost, and the store does not tell. */
enum fate { LANDED, REFUSED, FENCED, UNKNOWN };

static enum fate refused(const struct err *err)
{
    return err->rc == RC_NOT_WRITER ? FENCED : REFUSED;
}

static enum fate commit(struct control *c, struct batch *b, struct err *err)
{
    bool unknown = false;
    if (b->write_count == 0) /* what memory answers must be as new as what the store would */
        return !c->config.shared || !b->asked || store_lease_check(c->writer.conn, err)
                   ? LANDED
                   : refused(err);
    audit_head(c, b);
    if (c->config.shared) /* so that others know that the memory they built is as new as ours */
        EMIT(&(struct call){ .batch = b }, LEASE_COUNT, V_INT(1));
    if (store_commit(c->writer.conn, b->writes, b->write_count, &unknown, err))
        return LANDED;
    if (!unknown)
        return refused(err);
    if (!b->event_count)
        return UNKNOWN;
    AUTO(arena_free) struct arena *mem = arena_new();
    struct rows r;
    struct err why; /* our own numbers tell whether it landed: nobody else has written if we still may */
    if (!store_query(c->writer.conn, ST_LAST_EVENT, NULL, 0, mem, &r, &why)
        || (c->config.shared && !store_lease_check(c->writer.conn, &why)))
        return UNKNOWN;
    return row_int(&r, 0, 0) == b->events[b->event_count - 1].seq ? LANDED : REFUSED;
}

/* News are large and a queue may be long, so it is told in parts. */
struct telling {
    struct batch b;
    bool begun;
};
static void tell_part(struct control *c, struct batch *b, bool more)
{
    struct telling *t = CONTAINER(b, struct telling, b);
    tell_planner(c, b, !t->begun, more);
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
        struct batch b = { .mem = arena_new() };
        bool ok = run_verb(c, &b, list[i]);
        enum fate fate = commit(c, &b, &err);
        if (fate == LANDED) {
            publish(c, &b);
            door_answer(c, list[i], ok);
            continue;
        }
        arena_free(b.mem);
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

static void run_batch(struct control *c, struct request **list, size_t count)
{
    struct batch b = { .mem = arena_new() };
    bool ok[BATCH_MOST];
    struct err err = { 0 };
    for (size_t i = 0; i < count; i++)
        ok[i] = run_verb(c, &b, list[i]);
    enum fate fate = commit(c, &b, &err);
    if (fate == LANDED) {
        publish(c, &b);
        for (size_t i = 0; i < count; i++)
            door_answer(c, list[i], ok[i]);
        return;
    }
    arena_free(b.mem);
    c->writer.stale = true;
    if (fate == FENCED) {
        lease_lost(c);
        not_here(c, list, count);
        return;
    }
    log_line(LOG_WARN, "writer", "a commit of %zu verbs %s: %s", count,
             fate == UNKNOWN ? "may or may not have landed" : "was refused, trying them one by one",
             err.text);
    if (fate == REFUSED)
        one_by_one(c, list, count);
    if (fate != UNKNOWN)
        return;
    for (size_t i = 0; i < count; i++)
        nobody_knows(c, list[i]);
    if (writer_load(c, &err))
        writer_tell_all(c);
}

static void run_requests(struct control *c, struct request **list, size_t count)
{
    if (!count)
        return;
    if (!c->writer.state)
        not_here(c, list, count);
    else if (c->writer.stale)
        one_by_one(c, list, count);
    else
        run_batch(c, list, count);
}

static void writer_on_posts(void *arg, struct post *first)
{
    struct control *c = arg;
    struct request *list[BATCH_MOST];
    size_t n = 0;
    for (struct post *p = first, *next; p; p = next) {
        next = p->next;
        if (lease_is_look(p)) {
            run_requests(c, list, n);
            n = 0;
            lease_look(c, p);
            continue;
        }
        list[n++] = CONTAINER(p, struct request, post);
        if (n == BATCH_MOST) {
            run_requests(c, list, n);
            n = 0;
        }
    }
    run_requests(c, list, n);
}

bool writer_open(struct control *c, struct err *err)
{
    return conn_open(c->store, true, &c->writer.conn, err) && lease_open(c, err);
}

void writer_start(struct control *c)
{
    c->writer.actor = actor_new(c->os, "writer", writer_on_posts, c);
    if (c->writer.state)
        writer_tell_all(c); /* last: the planner answers at once where jobs wait, and must find the writer */
}

void writer_close(struct control *c)
{
    if (c->writer.actor)
        actor_stop(c->writer.actor);
    lease_close(c);
    state_free(c->writer.state);
    conn_close(c->writer.conn);
}
