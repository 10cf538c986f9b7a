#include "fake_control.h"
#include "base/id.h"
#include <stdio.h>
#include <stdlib.h>

int64_t fake_node(int n) { return 1000 + n; }
int64_t fake_project(void) { return 500; }

static const struct {
    const char *key;
    enum principal kind;
    int64_t id, project;
    unsigned roles;
} people[] = {
    { "dev", PRINCIPAL_USER, 1, 500, ROLE_PERSON | ROLE_DEVELOPER },
    { "view", PRINCIPAL_USER, 2, 500, ROLE_PERSON | ROLE_VIEWER },
    { "admin", PRINCIPAL_USER, 3, 500, ROLE_PERSON | ROLE_ADMIN },
    { "op", PRINCIPAL_USER, 4, 0, ROLE_PERSON | ROLE_OPERATOR },
    { "other", PRINCIPAL_USER, 5, 501, ROLE_PERSON | ROLE_DEVELOPER },
    { "node1", PRINCIPAL_NODE, 1001, 0, ROLE_NODE },
    { "node2", PRINCIPAL_NODE, 1002, 0, ROLE_NODE },
};

struct control *fake_control_new(struct os *os)
{
    struct control *c = calloc(1, sizeof *c);
    if (!c)
        abort();
    c->os = os;
    c->ready = true;
    return c;
}

void fake_control_free(struct control *c) { free(c); }

void control_credential(const struct control *c, const char *bearer, const char *project,
                        const char *address, struct credential *out)
{
    (void)c;
    *out = (struct credential){ 0 };
    snprintf(out->hash, sizeof out->hash, "%s", bearer);
    snprintf(out->project, sizeof out->project, "%s", project);
    snprintf(out->address, sizeof out->address, "%s", address);
}

static bool check(struct control *c, struct request *r)
{
    const struct verb *v = &verbs[r->verb];
    bool good = !text_is(c->disabled, r->from.hash);
    for (size_t i = 0; good && r->who.kind == PRINCIPAL_NONE && i < COUNT(people); i++)
        if (text_is(people[i].key, r->from.hash)) {
            r->who = (struct caller){ .kind = people[i].kind,
                                      .id = people[i].id,
                                      .project = people[i].project,
                                      .roles = people[i].roles };
            snprintf(r->who.name, sizeof r->who.name, "%s", people[i].key);
        }
    if (v->roles && r->who.kind == PRINCIPAL_NONE)
        return err_set(&r->err, RC_UNAUTHENTICATED, "send an API key");
    return !v->roles || (v->roles & r->who.roles)
           || err_set(&r->err, RC_DENIED, "%s is not for you", v->name);
}

static void deliver(void *arg, struct post *p)
{
    struct request *r = CONTAINER(p, struct request, post);
    (void)arg;
    r->on_reply(r->arg, r);
}

static void answer(struct control *c, struct request *r)
{
    r->ok = check(c, r);
    if (c->lost && verbs[r->verb].kind == VERB_WRITE)
        r->ok = err_set(&r->err, RC_NOT_WRITER, "another server writes now");
    if (r->ok && !(c->script && c->script(c->arg, c, r)))
        str_text(&r->reply, "{}");
    r->post.fn = deliver;
    os_post(c->os, &r->post);
}

void control_ask(struct control *c, struct request *r)
{
    c->asked[r->verb]++;
    if (c->hold && c->held_count < HELD)
        c->held[c->held_count++] = r;
    else
        answer(c, r);
}

void fake_release(struct control *c)
{
    c->hold = false;
    for (size_t i = 0; i < c->held_count; i++)
        answer(c, c->held[i]);
    c->held_count = 0;
}

void control_follow(struct control *c, void (*on_commit)(void *arg, const struct commit *k),
                    void *arg)
{
    c->on_commit = on_commit;
    c->follower = arg;
}

void control_unfollow(struct control *c, void *arg)
{
    if (c->follower == arg)
        c->on_commit = NULL;
}

void fake_commit(struct control *c, const struct commit *k)
{
    if (k->event_count)
        c->last_event = k->events[k->event_count - 1].seq;
    if (c->on_commit)
        c->on_commit(c->follower, k);
}

void control_refused(struct control *c, const char *verb, const struct credential *from,
                     const struct caller *who, enum rc rc)
{
    (void)c, (void)verb, (void)from, (void)who, (void)rc;
}

int64_t control_last_event(struct control *c) { return c->last_event; }
bool control_ready(const struct control *c, struct err *why)
{
    return c->ready || err_set(why, RC_UNAVAILABLE, "the store is away");
}

bool control_writes(const struct control *c) { return !c->writer; }
bool control_coming(const struct control *c) { return (void)c, false; }
bool control_shared(const struct control *c) { return c->writer != NULL; }
const char *control_writer(const struct control *c) { return c->writer ? c->writer : ""; }
const char *control_address(const struct control *c) { return (void)c, "http://here"; }
void control_usurp(struct control *c, bool idle) { c->usurped++, c->usurped_idle += idle; }
void control_mac(const struct control *c, const char *text, char out[static DIGEST_HEX])
{
    (void)c;
    digest_sha256(text, strlen(text), out);
}

void control_watch(struct control *c, void (*on_turn)(void *arg), void *arg)
{
    c->on_turn = on_turn;
    c->turn_arg = arg;
}

void fake_turn(struct control *c, const char *writer)
{
    c->writer = writer;
    if (c->on_turn)
        c->on_turn(c->turn_arg);
}
