/* lease.c - who writes: when the lease is renewed, watched, taken over, given up and lost.
 *
 * Runs on the writer's actor, between two commits, so that it needs no lock and no second
 * connection. Time only decides when to try; the epoch in the store decides who writes. All spans
 * are of this machine's own boot clock: clocks of two machines are never compared. */
#include "base/log.h"
#include "control/control_internal.h"
#include <stdio.h>
#include <stdlib.h>

enum {
    LOOK_MS = 200,
    SILENT_MS = 1000,           /* its counter stood still for so long */
    GONE_MS = 400,              /* its connection is closed, and it has not come back */
    BUSY_MS = 10 * 1000,        /* the store works for it all the time */
    CHANCE_MS = 150,            /* so that two do not try at the same moment */
    BLIND_MS = 700,             /* between two looks: then nothing can be said about what was between */
    SEEN_MS = 5000,             /* a server says that it lives */
    PEERS_MS = 1000,
    PEER_LOST_MS = 60 * 1000,
    PEERS = 64,
};

struct peer { int64_t id, seen_ms, moved_ms; char address[256]; };
struct standby {                        /* belongs to the writer's actor */
    int64_t server;                     /* our id, of this life alone */
    char address[256];
    struct lease seen;                  /* the last look */
    int64_t looked_ms, moved_ms, patience_ms;
    int64_t said_ms, peers_ms;
    struct peer peers[PEERS];
    size_t peer_count;
    int64_t peers_version;
    bool resigned, registered;
};

static struct standby *here(struct control *c) { return c->writer.standby; }
static int64_t now(struct control *c) { return os_boot_ms(c->os); }

/* --- what the loop is told */

struct turn { struct post post; bool writes, resigned; char writer[256]; };

static void turned(void *arg, struct post *p)
{
    struct control *c = arg;
    struct turn *t = CONTAINER(p, struct turn, post);
    c->writes = t->writes;
    snprintf(c->writer_url, sizeof c->writer_url, "%s", t->writer);
    void (*resigned)(void *arg) = t->resigned ? TAKE(c->on_resigned) : NULL;
    free(t);
    if (c->on_turn)
        c->on_turn(c->turn_arg);
    if (resigned)
        resigned(c->resigned_arg);
}

static void tell_turn(struct control *c, bool writes, const char *writer, bool resigned)
{
    struct turn *t = calloc(1, sizeof *t);
    if (!t)
        abort();
    t->post = (struct post){ .fn = turned, .arg = c };
    t->writes = writes;
    t->resigned = resigned;
    snprintf(t->writer, sizeof t->writer, "%s", writer);
    os_post(c->os, &t->post);
}

/* --- taking and losing */

static void be_patient(struct control *c)
{
    uint64_t chance;
    os_random(c->os, &chance, sizeof chance);
    here(c)->moved_ms = now(c);
    here(c)->patience_ms = (int64_t)(chance % CHANCE_MS);
}

static bool take(struct control *c, const struct lease *seen, struct err *err)
{
    struct standby *s = here(c);
    if (!store_lease_take(c->writer.conn, seen, s->server, s->address, err))
        return false;
    /* What the one before us wrote is told before anything of ours. */
    if (!writer_load(c, err) || !follow_events(c, err)) {
        struct err ignored;
        if (store_lease_drop(c->writer.conn, &ignored))
            return false;
        store_lease_forget(c->writer.conn);
        return false;
    }
    return true;
}

static void take_over(struct control *c, const char *why)
{
    struct standby *s = here(c);
    struct err err = { 0 };
    int64_t began = now(c);
    if (take(c, &s->seen, &err)) {
        s->seen.epoch++;
        s->seen.server = s->server;
        log_line(LOG_INFO, "lease", "this server writes from now on (epoch %lld, taken in %lld ms): %s",
                 (long long)s->seen.epoch, (long long)(now(c) - began), why);
        writer_tell_all(c);
        tell_turn(c, true, "", false);
    } else if (err.rc != RC_CONFLICT) {
        log_line(LOG_WARN, "lease", "the lease could not be taken: %s", err.text);
    }
    be_patient(c);
}

void lease_lost(struct control *c)
{
    struct standby *s = here(c);
    log_line(LOG_WARN, "lease", "another server has taken the lease; this one stands by");
    store_lease_forget(c->writer.conn);
    state_free(TAKE(c->writer.state));
    c->writer.stale = false;
    if (c->planner)
        planner_tell(c, NULL, 0, true, false, arena_new());
    s->seen = (struct lease){ 0 };
    be_patient(c);
    tell_turn(c, false, "", false);
}

/* --- looking, as the one that does not write */

static bool is_silent(struct control *c, const struct lease *l, const char **why)
{
    struct standby *s = here(c);
    enum holder holder;
    struct err err;
    int64_t still = now(c) - s->moved_ms - s->patience_ms;
    if (!l->server)
        return *why = "nobody held it", true;
    if (still < GONE_MS || !store_lease_holder(c->writer.conn, l, &holder, &err))
        return false;
    if (holder == HOLDER_GONE)
        return *why = "the connection of the one before is gone", true;
    *why = "the one before was silent";
    return still >= (holder == HOLDER_BUSY ? BUSY_MS : SILENT_MS);
}

static void stand_by(struct control *c, bool usurp)
{
    struct standby *s = here(c);
    struct lease l;
    struct err err;
    const char *why = NULL;
    int64_t before = s->looked_ms, told = c->writer.told;
    bool good = store_lease_look(c->writer.conn, &l, &err) && follow_events(c, &err);
    s->looked_ms = now(c);
    if (!good || s->looked_ms - before > BLIND_MS) {
        be_patient(c);
        if (!good)
            return;
    }
    if (l.epoch != s->seen.epoch || !text_is(l.address, s->seen.address))
        tell_turn(c, false, l.address, false);
    if (l.epoch != s->seen.epoch || l.renewed != s->seen.renewed || told != c->writer.told)
        be_patient(c);
    s->seen = l;
    if (s->resigned)
        return;
    if (usurp)
        take_over(c, "the one before is out of reach");
    else if (is_silent(c, &l, &why))
        take_over(c, why);
}

/* --- those who serve */

static struct peer *peer_of(struct standby *s, int64_t id)
{
    for (size_t i = 0; i < s->peer_count; i++)
        if (s->peers[i].id == id)
            return &s->peers[i];
    return NULL;
}

/* A row that stood still for a minute of our own clock belongs to nobody. */
static void read_peers(struct control *c)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct standby *s = here(c), old = *s;
    struct rows r;
    struct err err;
    bool unknown;
    if (!store_query(c->writer.conn, ST_SERVER_LIST, NULL, 0, mem, &r, &err))
        return;
    s->peer_count = 0;
    for (size_t i = 0; i < r.count && s->peer_count < PEERS; i++) {
        struct peer p = { .id = row_int(&r, i, 0), .seen_ms = row_int(&r, i, 3), .moved_ms = now(c) };
        struct peer *before = peer_of(&old, p.id);
        snprintf(p.address, sizeof p.address, "%s", row_text(&r, i, 1));
        if (before && before->seen_ms == p.seen_ms)
            p.moved_ms = before->moved_ms;
        struct value args[] = { V_INT(p.id), V_INT(p.seen_ms) };
        if (now(c) - p.moved_ms < PEER_LOST_MS)
            s->peers[s->peer_count++] = p;
        else if (!store_commit(c->writer.conn, &(struct write){ ST_SERVER_DROP, 2, args }, 1, &unknown, &err))
            continue;
    }
    bool same = s->peer_count == old.peer_count;
    for (size_t i = 0; same && i < s->peer_count; i++)
        same = text_is(s->peers[i].address, old.peers[i].address);
    s->peers_version += !same;
}

static void say_hello(struct control *c)
{
    struct standby *s = here(c);
    struct err err;
    bool unknown;
    if (!s->address[0] || s->resigned)
        return;
    if (!s->registered || now(c) - s->said_ms >= SEEN_MS) {
        struct value seen[] = { V_INT(s->server), V_TEXT(s->address),
                                V_TEXT(c->config.version ? c->config.version : ""),
                                V_INT(os_wall_ms(c->os)) };
        struct value others[] = { V_INT(s->server), V_TEXT(s->address), V_INT(!c->config.shared) };
        struct write writes[] = { { ST_SERVER_OTHERS, 3, others }, { ST_SERVER_SEEN, 4, seen } };
        s->registered = store_commit(c->writer.conn, writes, 2, &unknown, &err);
        s->said_ms = now(c);
        s->peers_ms = 0;
    }
    if (c->config.shared && (now(c) - s->peers_ms >= PEERS_MS || !s->peers_ms)) {
        s->peers_ms = now(c);
        read_peers(c);
    }
}

size_t lease_servers(struct control *c, struct arena *mem, const char ***out, int64_t *version)
{
    struct standby *s = here(c);
    size_t count = s ? s->peer_count : 0;
    *out = ARENA_ARRAY(mem, const char *, count);
    for (size_t i = 0; i < count; i++)
        (*out)[i] = arena_text(mem, s->peers[i].address);
    *version = s ? s->peers_version : 0;
    return count;
}

static void leave(struct control *c)
{
    struct standby *s = here(c);
    struct value args[] = { V_INT(s->server), V_INT(0) };
    struct err err;
    bool unknown, held = c->writer.state != NULL;
    s->resigned = true;
    if (s->registered
        && !store_commit(c->writer.conn, &(struct write){ ST_SERVER_DROP, 2, args }, 1, &unknown, &err))
        log_line(LOG_DEBUG, "lease", "%s", err.text);
    if (held && !store_lease_drop(c->writer.conn, &err))
        log_line(LOG_WARN, "lease", "the lease was not given up, others wait for its end: %s", err.text);
    if (!held)
        return;
    state_free(TAKE(c->writer.state));
    if (c->planner)
        planner_tell(c, NULL, 0, true, false, arena_new());
}

/* --- the look itself */

static void renew(struct control *c)
{
    struct err err = { 0 };
    here(c)->looked_ms = now(c);
    if (!store_lease_renew(c->writer.conn, here(c)->address, &err) && err.rc == RC_NOT_WRITER)
        lease_lost(c);
}

/* A large memory takes longer to build than others wait for a sign of life: without one they would take the lease from each other
 * for ever. */
bool lease_hold(void *arg, struct err *err)
{
    struct control *c = arg;
    struct standby *s = here(c);
    if (!c->config.shared || !s || now(c) - s->looked_ms < LOOK_MS)
        return true;
    s->looked_ms = now(c);
    return store_lease_renew(c->writer.conn, s->address, err) || err->rc != RC_NOT_WRITER;
}

static void looked(void *arg, struct post *p);

bool lease_is_look(const struct post *p) { return p->fn == looked; }

void lease_look(struct control *c, struct post *p)
{
    struct look *l = CONTAINER(p, struct look, post);
    snprintf(here(c)->address, sizeof here(c)->address, "%s", l->address);
    if (l->resign && !here(c)->resigned) {
        leave(c);
        tell_turn(c, false, "", true);
    } else if (c->writer.state) {
        renew(c);
    } else {
        stand_by(c, l->usurp);
    }
    say_hello(c);
    os_post(c->os, p);
}

/* --- on the loop */

static void look_now(void *arg)
{
    struct control *c = arg;
    timer_cancel(TAKE(c->look_timer));
    c->look_again = c->looking;
    if (c->looking)
        return;
    c->looking = true;
    c->look = (struct look){ .resign = c->resigning, .usurp = c->usurping };
    c->look.post = (struct post){ .fn = looked, .arg = c };
    snprintf(c->look.address, sizeof c->look.address, "%s", c->address);
    c->usurping = false;
    actor_post(c->writer.actor, &c->look.post);
}

static void look_later(void *arg)
{
    ((struct control *)arg)->look_timer = NULL;
    look_now(arg);
}

static void looked(void *arg, struct post *p)
{
    struct control *c = arg;
    (void)p;
    c->looking = false;
    if (c->look_again)
        look_now(c);
    else if (c->config.shared)
        c->look_timer = timer_start(c->os, LOOK_MS, look_later, c);
}

bool control_writes(const struct control *c) { return c->writes; }
bool control_shared(const struct control *c) { return c->config.shared; }
const char *control_writer(const struct control *c) { return c->writer_url; }
const char *control_address(const struct control *c) { return c->address; }

void control_advertise(struct control *c, const char *url)
{
    snprintf(c->address, sizeof c->address, "%s", url);
    look_now(c);
}

void control_watch(struct control *c, void (*on_turn)(void *arg), void *arg)
{
    c->on_turn = on_turn;
    c->turn_arg = arg;
}

bool control_resign(struct control *c, void (*done)(void *arg), void *arg)
{
    if (!c->config.shared || c->resigning)
        return false;
    c->resigning = true;
    c->on_resigned = done;
    c->resigned_arg = arg;
    look_now(c);
    return true;
}

void control_usurp(struct control *c)
{
    c->usurping = true;
    look_now(c);
}

/* --- beginning and end */

bool lease_open(struct control *c, struct err *err)
{
    struct standby *s = calloc(1, sizeof *s);
    enum holder holder;
    if (!s)
        abort();
    c->writer.standby = s;
    os_random(c->os, &s->server, sizeof s->server);
    s->server = (s->server & INT64_MAX) | 1;
    if (!store_lease_look(c->writer.conn, &s->seen, err)
        || !store_lease_holder(c->writer.conn, &s->seen, &holder, err))
        return false;
    AUTO(arena_free) struct arena *mem = arena_new();
    struct rows r;
    if (!store_query(c->writer.conn, ST_LAST_EVENT, NULL, 0, mem, &r, err))
        return false;
    c->writer.told = c->last_event = row_int(&r, 0, 0);
    be_patient(c);
    s->looked_ms = now(c);
    if (!c->config.shared || holder == HOLDER_GONE) {
        c->writes = take(c, &s->seen, err);
        if (!c->writes && (err->rc != RC_CONFLICT || !c->config.shared))
            return false;
    }
    s->seen.epoch += c->writes;         /* else the next look tells the loop who has it */
    if (!c->writes)
        s->seen = (struct lease){ 0 };
    return true;
}

void lease_start(struct control *c)
{
    if (c->config.shared)
        c->look_timer = timer_start(c->os, LOOK_MS, look_later, c);
}

/* The actor has stopped. */
void lease_close(struct control *c)
{
    if (here(c) && c->config.shared && c->writer.conn && !here(c)->resigned)
        leave(c);
    free(TAKE(c->writer.standby));
}

void lease_last_words(struct control *c)
{
    timer_cancel(TAKE(c->look_timer));
    (void)os_unpost(c->os, looked, c);  /* it is c's own */
    for (struct post *p = os_unpost(c->os, turned, c), *next; p; p = next) {
        next = p->next;
        free(CONTAINER(p, struct turn, post));
    }
}
