/* control.c - the door: requests come from the loop, go to the writer, a reader or (passwords) the
 * slow one, and come back.
 *
 * Actors own what they use: the writer its memory and connection, each reader a connection. The
 * loop owns the followers. */
#include "control/idem.h"
#include "base/log.h"
#include "control/retain.h"
#include <stdio.h>
#include <stdlib.h>

const struct keyring *control_keys(const struct control *c)
{
    return &c->keys;
}
const struct control_config *control_settings(const struct control *c)
{
    return &c->config;
}

void control_random(struct control *c, void *out, size_t n)
{
    os_random(c->os, out, n);
}

void control_credential(const struct control *c, const char *bearer, const char *project,
                        const char *address, struct credential *out)
{
    *out = (struct credential){ 0 };
    if (text_given(bearer))
        digest_keyed(c->keys.hash, bearer, out->hash);
    text_cut(out->project, sizeof out->project, project);
    text_cut(out->address, sizeof out->address, address);
}

/* An API key never begins like this, so no MAC is the hash of one. */
void control_mac(const struct control *c, const char *text, char out[static DIGEST_HEX])
{
    AUTO(str_done) struct str all = { 0 };
    str_printf(&all, "passed on\n%s", text);
    digest_keyed(c->keys.hash, all.at, out);
}

/* The same check before every verb, whoever runs it: is this somebody, and is the verb for one
 * of their roles? */
bool door_check(struct call *call, struct err *err)
{
    const struct verb *v = &verbs[call->r->verb];
    struct request *r = call->r;
    if (r->who.kind == PRINCIPAL_NONE && v->roles) {
        struct auth_facts facts;
        if (!r->from.hash[0])
            return err_set(err, RC_UNAUTHENTICATED,
                           "send an API key: Authorization: Bearer KEY (the CLI: arcus login)");
        if (call->s)
            state_facts(call->s, &r->from, &facts);
        else if (!auth_facts_read(call->conn, r->from.hash, r->from.project, call->mem, &facts,
                                  err))
            return false;
        if (!auth_decide(&facts, r->from.project, call->now_ms, &r->who, err)) {
            if (facts.found) { /* nobody, but the audit may know whose key it was */
                r->who.id = facts.owner, r->who.key = facts.key;
                snprintf(r->who.name, sizeof r->who.name, "%s", facts.owner_name ? facts.owner_name : "");
            }
            return false;
        }
    }
    text_cut(r->who.address, sizeof r->who.address, r->from.address);
    text_cut(r->who.request, sizeof r->who.request, r->from.request);
    if (v->roles && !(v->roles & r->who.roles)) {
        bool project_verb = (v->roles & PROJECT_ROLES) && !r->who.project;
        char roles[96];
        return project_verb
                   ? err_set(err, RC_DENIED, "%s needs a project that you are a member of", v->name)
                   : err_set(err, RC_DENIED, "%s is for %s", v->name,
                             text_given(role_text(roles, v->roles)) ? roles : "the server itself");
    }
    return true;
}

static void deliver(void *arg, struct post *p)
{
    struct control *c = arg;
    struct request *r = CONTAINER(p, struct request, post);
    c->slow_waiting -= handlers[r->verb].prepare != NULL;
    if (r->reader)
        r->reader->busy--;
    notes_take(c, r);
    r->on_reply(r->arg, r);
}

static void ask_on(void *arg, struct post *p) /* the planner's part of a question comes now */
{
    planner_ask(arg, CONTAINER(p, struct request, post));
}

struct post *door_answered(struct control *c, struct request *r, bool ok)
{
    bool asks = ok && r->question && !r->question->answered;
    r->ok = ok;
    if (!ok && r->err.rc != RC_GONE) /* that one says what is there instead */
        str_clear(&r->reply); /* what a refused commit would have said */
    r->post = (struct post){ .fn = asks ? ask_on : deliver, .arg = c };
    return &r->post;
}

void door_answer(struct control *c, struct request *r, bool ok)
{
    os_post(c->os, door_answered(c, r, ok));
}

static void reader_on_posts(void *arg, struct post *first)
{
    struct reader *rd = arg;
    struct control *c = rd->control;
    for (struct post *p = first, *next; p; p = next) {
        next = p->next;
        struct request *r = CONTAINER(p, struct request, post);
        struct call call = { .control = c,
                             .conn = rd->conn,
                             .r = r,
                             .who = &r->who,
                             .mem = r->mem,
                             .now_ms = os_wall_ms(c->os),
                             .boot_ms = os_boot_ms(c->os) };
        const struct handler *h = &handlers[r->verb];
        bool writes = verbs[r->verb].kind == VERB_WRITE || verbs[r->verb].kind == VERB_INSIDE;
        if (writes && r->looked_seq && !idem_look(c, rd->conn, r, &r->err)) {
            door_answer(c, r, false);
            continue;
        }
        if (writes && !rd->slow) {      /* all else of it is the writer's */
            actor_post(c->writer.actor, &r->post);
            continue;
        }
        bool ok = door_check(&call, &r->err);
        if (rd->slow) {
            if (ok && h->prepare(&call, r->body, &r->err))
                actor_post(c->writer.actor, &r->post);
            else
                door_answer(c, r, false);
            continue;
        }
        door_answer(c, r, ok && h->run(&call, r->body, &r->err));
    }
}

/* The one with least to do: who has one question gets past somebody else's that takes long. */
static struct reader *reader_free(struct control *c)
{
    struct reader *best = &c->readers[0];
    for (int i = 1; i < READERS; i++)
        if (c->readers[i].busy < best->busy)
            best = &c->readers[i];
    return best;
}

void control_ask(struct control *c, struct request *r)
{
    enum verb_kind kind = verbs[r->verb].kind;
    bool reads = kind == VERB_READ || kind == VERB_STREAM;
    r->looked_seq = c->looks && text_given(r->idem) ? c->last_event : 0;
    r->reader = NULL;
    if (reads || (r->looked_seq && !handlers[r->verb].prepare)) {
        struct reader *rd = reader_free(c);
        rd->busy += reads;              /* what only looks there goes on to the writer, and is answered much later */
        r->reader = reads ? rd : NULL;
        actor_post(rd->actor, &r->post);
    } else if (!handlers[r->verb].prepare)
        (r->verb == VERB_JOB_SUBMIT ? actor_post_light : actor_post_soon)(c->writer.actor, &r->post);
    else if (++c->slow_waiting <= SLOW_MOST)
        actor_post(c->slow.actor, &r->post);
    else
        door_answer(
            c, r,
            err_set(
                &r->err, RC_TOO_MANY,
                "too many passwords are being checked at the moment; try again in a few seconds"));
}

void control_follow(struct control *c, void (*on_commit)(void *arg, const struct commit *k),
                    void *arg)
{
    assert(c->follower_count < COUNT(c->followers));
    c->followers[c->follower_count].fn = on_commit;
    c->followers[c->follower_count++].arg = arg;
}

void control_unfollow(struct control *c, void *arg)
{
    size_t kept = 0;
    for (size_t i = 0; i < c->follower_count; i++)
        if (c->followers[i].arg != arg)
            c->followers[kept++] = c->followers[i];
    c->follower_count = kept;
}

void control_committed(void *arg, struct post *p) /* on the loop */
{
    struct control *c = arg;
    struct commit *k = CONTAINER(p, struct commit, post);
    if (k->event_count)
        c->last_event = k->events[k->event_count - 1].seq;
    for (size_t i = 0; i < c->follower_count; i++)
        c->followers[i].fn(c->followers[i].arg, k);
    arena_free(k->mem);
}

int64_t control_last_event(struct control *c)
{
    return c->last_event;
}

bool control_ready(const struct control *c, struct err *why)
{
    return (c->open && !c->resigning) || err_set(why, RC_UNAVAILABLE, "the server is starting or stopping");
}

/* Once a second: nodes that went silent, and pauses that are over. */
struct tick {
    struct request r;
    struct control *control;
};
static void tick_done(void *arg, struct request *r)
{
    (void)r;
    struct tick *t = arg;
    t->control->ticking = NULL;
    arena_free(t->r.mem);
    str_done(&t->r.reply);
    free(t);
}

static void on_tick(void *arg)
{
    struct control *c = arg;
    c->timer = timer_start(c->os, 1000, on_tick, c);
    planner_poke(c);
    notes_tick(c);
    if (!c->writes || c->ticking) /* the writer is behind: one is enough */
        return;
    struct tick *t = calloc(1, sizeof *t);
    if (!t)
        abort();
    t->control = c;
    t->r = (struct request){ .verb = VERB_JOB_TICK,
                             .who = system_caller,
                             .mem = arena_new(),
                             .on_reply = tick_done,
                             .arg = t };
    c->ticking = t;
    control_ask(c, &t->r);
}

const struct caller system_caller
    = { .kind = PRINCIPAL_SYSTEM, .roles = ROLE_PLANNER, .name = "arcus" };

static bool reader_open(struct control *c, struct reader *rd, const char *name, bool slow,
                        struct err *err)
{
    rd->control = c;
    rd->slow = slow;
    if (!conn_open(c->store, false, &rd->conn, err))
        return false;
    rd->actor = actor_new(c->os, name, reader_on_posts, rd);
    return true;
}

static bool audit_key(struct control *c)
{
    char hex[DIGEST_HEX];
    digest_keyed(c->keys.hash, "the audit chain", hex);
    return hex_parse(hex, c->audit_key, sizeof c->audit_key);
}

bool control_open(struct os *os, struct store *store, const struct control_config *config,
                  struct control **out, struct err *err)
{
    struct control *c = calloc(1, sizeof *c);
    if (!c)
        abort();
    c->os = os;
    c->store = store;
    c->config = *config;
    bool ok = digest_start() && keyring_open(os, config->keys, &c->keys, err)
              && audit_key(c) && writer_open(c, err);
    for (int i = 0; ok && i < READERS; i++)
        ok = reader_open(c, &c->readers[i], "reader", false, err);
    ok = ok && reader_open(c, &c->slow, "slow", true, err);
    if (!ok) {
        control_close(c);
        return false;
    }
    c->open = true;
    notes_open(c);
    retain_open(c);
    if (config->plan)
        planner_open(c);
    writer_start(c);
    c->timer = timer_start(os, 1000, on_tick, c);
    lease_start(c);
    *out = c;
    return true;
}

/* The loop stands still: what is on its way to it is said here. */
static void last_words(struct control *c)
{
    struct post *next;
    lease_last_words(c);
    for (struct post *p = os_unpost(c->os, control_committed, c); p; p = next) {
        next = p->next;
        arena_free(CONTAINER(p, struct commit, post)->mem);
    }
    for (struct post *p = os_unpost(c->os, ask_on, c); p; p = next) {
        struct request *r = CONTAINER(p, struct request, post);
        next = p->next;
        r->ok = err_set(&r->err, RC_UNAVAILABLE, "the server is stopping");
        deliver(c, p);
    }
    for (struct post *p = os_unpost(c->os, deliver, c); p; p = next) {
        next = p->next;
        deliver(c, p);
    }
}

void control_close(struct control *c)
{
    if (!c)
        return;
    notes_last(c);
    c->open = false;
    timer_cancel(c->timer);
    timer_cancel(TAKE(c->look_timer));
    retain_stop(c);
    struct reader *all[READERS + 1];
    for (int i = 0; i < READERS; i++)
        all[i] = &c->readers[i];
    all[READERS] = &c->slow;
    for (size_t i = 0; i < COUNT(all); i++)
        if (all[i]->actor)
            actor_stop(all[i]->actor);
    writer_close(c);
    last_words(c);
    retain_close(c);
    notes_close(c);
    planner_close(c); /* behind the writer, who tells it everything */
    for (size_t i = 0; i < COUNT(all); i++)
        conn_close(all[i]->conn);
    free(c);
}
