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
    SOON_MS = 40,               /* to the next look, after one that saw no sign of life */
    DOUBT_MS = 100,             /* its counter stood still for so long: what is with its connection? */
    WARM_MS = 300,              /* ... and for so long: its memory is built, in case */
    SILENT_MS = 900,            /* ... and for so long: it is taken for dead */
    GONE_MS = 300,              /* its connection is closed, and it has not come back */
    BUSY_MS = 10 * 1000,        /* the store works for it all the time */
    CHANCE_MS = 100,            /* so that two do not try at the same moment */
    HAND_OVER_MS = 4000,        /* who leaves passes on what it is asked for so long, until the next one writes */
    COMING_MS = 12 * 1000,      /* ... or if it has the lease already, and reads what is there */
    IDLE_MS = 700,              /* nothing was written for so long: nobody seems to reach who could write it */
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
    int64_t wrote_ms;                   /* when the log of events last grew, as we saw it */
    int64_t said_ms, peers_ms;
    struct peer peers[PEERS];
    size_t peer_count;
    int64_t peers_version;
    bool resigned, registered, doubts;
    int64_t resigned_ms;        /* 0: nobody waits for the next one to write */
    struct state *warm;         /* the memory, built ahead; good while the holder writes nothing after warm_seen */
    struct lease warm_seen;
    int64_t warm_next_ms;
};

static struct standby *here(struct control *c) { return c->writer.standby; }
static int64_t now(struct control *c) { return os_boot_ms(c->os); }

/* --- what the loop is told */

struct turn { struct post post; bool writes, coming, resigned; char writer[256]; };

static void turned(void *arg, struct post *p)
{
    struct control *c = arg;
    struct turn *t = CONTAINER(p, struct turn, post);
    c->writes = t->writes;
    c->coming = t->coming;
    snprintf(c->writer_url, sizeof c->writer_url, "%s", t->writer);
    void (*resigned)(void *arg) = t->resigned ? TAKE(c->on_resigned) : NULL;
    free(t);
    if (c->on_turn)
        c->on_turn(c->turn_arg);
    if (resigned)
        resigned(c->resigned_arg);
}

static void tell_turn(struct control *c, bool writes, const char *writer, bool coming, bool resigned)
{
    struct turn *t = calloc(1, sizeof *t);
    if (!t)
        abort();
    t->post = (struct post){ .fn = turned, .arg = c };
    t->writes = writes;
    t->coming = coming;
    t->resigned = resigned;
    snprintf(t->writer, sizeof t->writer, "%s", writer);
    os_post(c->os, &t->post);
}

static void be_patient(struct control *c)
{
    uint64_t chance;
    os_random(c->os, &chance, sizeof chance);
    here(c)->moved_ms = now(c);
    here(c)->patience_ms = (int64_t)(chance % CHANCE_MS);
    state_free(TAKE(here(c)->warm));
}

/* --- the memory, built while it is not yet sure that the one before is dead */

static bool same(const struct lease *a, const struct lease *b)
{
    return a->epoch == b->epoch && a->renewed == b->renewed;
}

/* A sign of life makes it useless. A gap in between is left for the next look to find. */
static bool warm_hold(void *arg, struct err *err)
{
    struct control *c = arg;
    struct standby *s = here(c);
    struct lease l;
    int64_t since = now(c) - s->looked_ms;
    if (since < LOOK_MS)
        return true;
    if (since > BLIND_MS || !store_lease_look(c->writer.conn, &l, err))
        return err_set(err, RC_UNAVAILABLE, "too slow");
    s->looked_ms = now(c);
    return same(&l, &s->seen) || err_set(err, RC_UNAVAILABLE, "it lives");
}

static void warm_up(struct control *c)
{
    struct standby *s = here(c);
    struct err err = { 0 };
    int64_t began = now(c);
    if (s->warm || !s->seen.counted || began < s->warm_next_ms)
        return;
    s->warm_seen = s->seen;
    if (!writer_read(c, warm_hold, &s->warm, &err))
        log_line(LOG_DEBUG, "lease", "the memory was not built ahead: %s", err.text);
    s->warm_next_ms = 2 * now(c) - began + LOOK_MS;     /* a slow store is not kept busy with it all the time */
}

/* The lease is ours since a moment. If it was as we had seen it before, nothing was written since. */
static bool use_warm(struct control *c, const struct lease *seen)
{
    struct standby *s = here(c);
    AUTO(state_free) struct state *warm = TAKE(s->warm);
    struct lease l;
    struct err err;
    struct node *n;
    if (!warm || !same(&s->warm_seen, seen) || !store_lease_look(c->writer.conn, &l, &err)
        || l.renewed != seen->renewed + 1)
        return false;
    warm->loaded_boot_ms = now(c);
    for (size_t i = 0; (n = map_next(warm->nodes, &i));)
        n->heard_boot_ms = warm->loaded_boot_ms;
    c->writer.state = TAKE(warm);
    return true;
}

/* --- taking and losing */

/* Where it is reached is told when it can serve: until then nobody need ask. */
static bool take(struct control *c, const struct lease *seen, struct err *err)
{
    struct standby *s = here(c);
    if (!store_lease_take(c->writer.conn, seen, s->server, "", err))
        return false;
    if (c->writer.actor)                /* else the loop does not run yet */
        tell_turn(c, false, "", true, false);
    /* What the one before us wrote is told before anything of ours. */
    if ((!use_warm(c, seen) && !writer_load(c, err)) || !follow_events(c, err)) {
        struct err ignored;
        state_free(TAKE(c->writer.state));
        if (!store_lease_drop(c->writer.conn, &ignored))
            store_lease_forget(c->writer.conn);
        return false;
    }
    return true;
}

static void take_over(struct control *c, const char *why)
{
    struct standby *s = here(c);
    struct err err = { 0 };
    int64_t still = now(c) - s->moved_ms, began = now(c);
    bool warm = s->warm && same(&s->warm_seen, &s->seen);
    if (take(c, &s->seen, &err)) {
        if (!store_lease_renew(c->writer.conn, s->address, &err) && err.rc == RC_NOT_WRITER) {
            lease_lost(c);
            return;
        }
        s->seen.epoch++;
        s->seen.server = s->server;
        log_line(LOG_INFO, "lease", "this server writes from now on (epoch %lld, after %lld ms without a sign of life, taken in "
                 "%lld ms, %zu live jobs read %s): %s", (long long)s->seen.epoch, (long long)still, (long long)(now(c) - began),
                 map_count(c->writer.state->jobs), warm ? "before" : "then", why);
        writer_tell_all(c);
        tell_turn(c, true, "", false, false);
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
    s->wrote_ms = now(c);
    be_patient(c);
    tell_turn(c, false, "", false, false);
}

/* --- looking, as the one that does not write */

static bool is_silent(struct control *c, const struct lease *l, const char **why)
{
    static const struct { int64_t warm_ms, take_ms; const char *why; } rules[] = {
        [HOLDER_GONE] = { DOUBT_MS, GONE_MS, "the connection of the one before is gone" },
        [HOLDER_SILENT] = { WARM_MS, SILENT_MS, "the one before was silent" },
        [HOLDER_BUSY] = { BUSY_MS, BUSY_MS, "the store worked for the one before all the time" },
    };
    struct standby *s = here(c);
    enum holder holder;
    struct err err;
    int64_t still = now(c) - s->moved_ms;
    if (!l->server)
        return *why = "nobody held it", true;
    if (still < DOUBT_MS || !store_lease_holder(c->writer.conn, l, &holder, &err))
        return false;
    *why = rules[holder].why;
    if (still - s->patience_ms >= rules[holder].take_ms)
        return true;
    if (still >= rules[holder].warm_ms)
        warm_up(c);                     /* that takes a while: the next look decides */
    return false;
}

/* The next one writes: who leaves need not stay for it. */
static void hand_over(struct control *c, const struct lease *l)
{
    struct standby *s = here(c);
    if (!s->resigned_ms || (!l->address[0] && now(c) - s->resigned_ms < (l->server ? COMING_MS : HAND_OVER_MS)))
        return;
    s->resigned_ms = 0;
    tell_turn(c, false, l->address, l->server && !l->address[0], true);
}

/* Who is out of reach for one of us may serve all others: then it is our link that is bad, and it would be taken from each other in turns
 * over it. Its counter does not tell, since it renews alone; the log does: what others ask of it is written there. So one that stands still is taken early, one that
 * grows only from who waited long. That costs no safety: whoever takes it, the epoch fences the one before. */
static bool may_usurp(struct control *c, const struct look *look, const struct lease *l)
{
    return look->usurp[0] && text_is(l->address, look->usurp)       /* and not one that took it since */
           && (!look->usurp_idle || now(c) - here(c)->wrote_ms >= IDLE_MS);
}

static void stand_by(struct control *c, const struct look *look)
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
        tell_turn(c, false, l.address, l.server && !l.address[0], false);
    if (told != c->writer.told)
        s->wrote_ms = s->looked_ms;
    s->doubts = same(&l, &s->seen) && told == c->writer.told;
    if (!s->doubts)
        be_patient(c);
    s->seen = l;
    if (s->resigned) {
        hand_over(c, &l);
        return;
    }
    if (may_usurp(c, look, &l))
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
    bool unknown, held = c->writer.state != NULL, others = false;
    s->resigned = true;
    if (held && c->config.shared)
        read_peers(c);
    for (size_t i = 0; i < s->peer_count; i++)
        others |= s->peers[i].id != s->server;
    s->resigned_ms = held && others ? now(c) : 0;
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
    return store_lease_renew(c->writer.conn, c->writer.state ? s->address : "", err) || err->rc != RC_NOT_WRITER;
}

static void looked(void *arg, struct post *p);

bool lease_is_look(const struct post *p) { return p->fn == looked; }

void lease_look(struct control *c, struct post *p)
{
    struct look *l = CONTAINER(p, struct look, post);
    snprintf(here(c)->address, sizeof here(c)->address, "%s", l->address);
    here(c)->doubts = false;
    if (l->resign && !here(c)->resigned) {
        bool held = c->writer.state != NULL;
        leave(c);
        tell_turn(c, false, held ? "" : here(c)->seen.address, false, !here(c)->resigned_ms);
    } else if (c->writer.state) {
        renew(c);
    } else {
        stand_by(c, l);
    }
    say_hello(c);
    l->soon = here(c)->doubts || here(c)->resigned_ms;
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
    c->look = (struct look){ .resign = c->resigning };
    c->look.post = (struct post){ .fn = looked, .arg = c };
    snprintf(c->look.address, sizeof c->look.address, "%s", c->address);
    memcpy(c->look.usurp, c->usurping, sizeof c->look.usurp);
    c->look.usurp_idle = c->usurping_idle;
    c->usurping[0] = 0;
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
        c->look_timer = timer_start(c->os, c->look.soon ? SOON_MS : LOOK_MS, look_later, c);
}

bool control_writes(const struct control *c) { return c->writes; }
bool control_coming(const struct control *c) { return c->coming; }
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

void control_usurp(struct control *c, bool idle)
{
    c->usurping_idle = idle;
    snprintf(c->usurping, sizeof c->usurping, "%s", c->writer_url);
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
    s->looked_ms = s->wrote_ms = now(c);
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
    if (here(c))
        state_free(here(c)->warm);
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
