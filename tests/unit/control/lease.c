/* Two doors on one store, each as if it were a server of its own; on SQLite (a shared file) and on PostgreSQL. */
#include "door.h"
#include "store/store_internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct head {
    struct store *store;
    struct control *control;
    int64_t heard, gap;         /* the last event that a follower was told; the first that was not the next */
    int turns;
    bool resigned;
};
struct pair_of {
    struct os *os;
    struct arena *mem;
    char dir[40], key[SECRET_TEXT];
    const char *where;
    struct head heads[2];
    bool (*until)(struct pair_of *p);
    int64_t late_ms;
};

static void heard(void *arg, const struct commit *k)
{
    struct head *h = arg;
    for (size_t i = 0; i < k->event_count; i++) {
        if (k->events[i].seq != h->heard + 1 && !h->gap)
            h->gap = k->events[i].seq;
        h->heard = k->events[i].seq;
    }
}
static void turned(void *arg) { ((struct head *)arg)->turns++; }

static bool head_open(struct pair_of *p, int i)
{
    struct head *h = &p->heads[i];
    const char *keys = arena_printf(p->mem, "%s/keys", p->dir);
    struct control_config config = { .keys = keys, .run_for_s = 300, .margin_s = 15, .default_image = "host",
                                     .plan = true, .shared = true, .version = "test" };
    struct err err = { 0 };
    bool made, ok = store_open(p->os, p->where, &h->store, &err)
                    && control_bootstrap(p->os, h->store, keys, arena_printf(p->mem, "%s/admin.key", p->dir), &made, &err)
                    && control_open(p->os, h->store, &config, &h->control, &err);
    if (!ok)
        printf("# %s\n", err.text);
    CHECK(ok);
    if (!ok)
        return false;
    h->heard = control_last_event(h->control);
    control_follow(h->control, heard, h);
    control_watch(h->control, turned, h);
    control_advertise(h->control, i ? "http://two" : "http://one");
    return true;
}

enum { LATE_MS = 60000 };
static void look(void *arg)
{
    struct pair_of *p = arg;
    if (p->until(p) || os_boot_ms(p->os) > p->late_ms)
        os_stop(p->os);
    else
        timer_start(p->os, 5, look, p);
}
static bool wait_until(struct pair_of *p, bool (*until)(struct pair_of *p))
{
    p->until = until;
    p->late_ms = os_boot_ms(p->os) + LATE_MS;
    timer_start(p->os, 1, look, p);
    os_run(p->os);
    return until(p);
}

/* It is not dead, but nothing of its lease is done any more: as if it were paused. */
static bool first_rests(struct pair_of *p) { return !p->heads[0].control->looking; }
static bool second_rests(struct pair_of *p) { return !p->heads[1].control->looking; }
static void pause_head(struct pair_of *p, int i)
{
    struct head *h = &p->heads[i];
    while (h->control->looking)         /* a look that is under way would begin the next one at its end */
        (void)wait_until(p, i ? second_rests : first_rests);
    timer_cancel(TAKE(h->control->look_timer));
    h->control->looking = true;
}
static void wake(struct head *h)
{
    h->control->looking = h->control->look_again = false;
    control_advertise(h->control, control_address(h->control));
}

struct asked { struct request r; struct pair_of *p; bool done; };
static void answered(void *arg, struct request *r)
{
    struct asked *a = arg;
    (void)r;
    a->done = true;
    os_stop(a->p->os);
}
static struct asked *ask_only(struct pair_of *p, int i, enum verb_id verb, const char *body, const char *idem)
{
    struct asked *a = ARENA_NEW(p->mem, struct asked);
    struct json *doc;
    struct err err = { 0 };
    a->p = p;
    a->r = (struct request){ .verb = verb, .mem = arena_new(), .on_reply = answered, .arg = a, .idem = idem };
    void *bound = arena_take(a->r.mem, 1, verbs[verb].takes->size);
    a->r.body = bound;
    control_credential(p->heads[i].control, p->key, NULL, "test", &a->r.from);
    CHECK(json_parse(SLICE(body), a->r.mem, &doc, &err) && bind_read(doc, verbs[verb].takes, a->r.mem, bound, &a->r.given, &err));
    control_ask(p->heads[i].control, &a->r);
    return a;
}
static struct asked *ask(struct pair_of *p, int i, enum verb_id verb, const char *body, const char *idem)
{
    struct asked *a = ask_only(p, i, verb, body, idem);
    while (!a->done)
        os_run(p->os);
    arena_free(TAKE(a->r.mem));
    if (a->r.reply.at) {
        char *text = arena_bytes(p->mem, a->r.reply.at, a->r.reply.len);
        str_done(&a->r.reply);
        a->r.reply = (struct str){ .at = text, .len = strlen(text) };
    }
    return a;
}
#define SUBMIT "{\"command\":[\"true\"]}"

static void schema(struct os *os, const char *url, const char *what, const char *name)
{
    struct store s = { .how = &postgres_backend, .os = os, .where = (char *)url };
    AUTO(arena_free) struct arena *mem = arena_new();
    struct conn *c = NULL;
    struct err err = { 0 };
    CHECK(s.how->open(&s, &err) && s.how->conn_open(&s, true, &c, &err)
          && s.how->run(c, arena_printf(mem, "SET client_min_messages = error; %s SCHEMA %s %s", what, name,
                                        text_is(what, "DROP") ? "CASCADE" : ""), &err));
    if (c)
        s.how->conn_close(c);
    s.how->close(&s);
}

static void with_two(bool postgres, void (*test)(struct pair_of *p))
{
    static int number;
    const char *base = getenv("ARCUS_TEST_POSTGRES");
    struct pair_of p = { .dir = "/tmp/arcus-lease.XXXXXX", .mem = arena_new() };
    struct err err = { 0 };
    struct slice key;
    char name[40];
    if (postgres && !base) {
        test_skip("ARCUS_TEST_POSTGRES is not set");
        arena_free(p.mem);
        return;
    }
    CHECK(mkdtemp(p.dir) != NULL);
    snprintf(name, sizeof name, "lease_%d_%d", (int)getpid(), ++number);
    p.os = os_real_new(&err);
    if (postgres)
        schema(p.os, base, "CREATE", name);
    p.where = postgres ? arena_printf(p.mem, "%s&options=-csearch_path%%3D%s", base, name) : arena_printf(p.mem, "%s/arcus.db", p.dir);
    if (head_open(&p, 0) && head_open(&p, 1) && file_read(p.os, arena_printf(p.mem, "%s/admin.key", p.dir), 256, p.mem, &key, &err)) {
        snprintf(p.key, sizeof p.key, "%.*s", (int)strcspn(key.at, "\n"), key.at);
        test(&p);
    }
    for (int i = 0; i < 2; i++) {
        control_close(p.heads[i].control);
        store_close(p.heads[i].store);
    }
    if (postgres)
        schema(p.os, base, "DROP", name);
    os_free(p.os);
    static const char *const left[] = { "arcus.db", "arcus.db-wal", "arcus.db-shm", "admin.key", "keys/hash.key", "keys/seal.key" };
    for (size_t i = 0; i < COUNT(left); i++)
        unlink(arena_printf(p.mem, "%s/%s", p.dir, left[i]));
    rmdir(arena_printf(p.mem, "%s/keys", p.dir));
    CHECK(rmdir(p.dir) == 0);
    arena_free(p.mem);
}
#define TWO(name_)                                                      \
    static void name_(struct pair_of *p);                               \
    TEST(name_##_on_sqlite) { with_two(false, name_); }                 \
    TEST(name_##_on_postgres) { with_two(true, name_); }                \
    static void name_(struct pair_of *p)

static bool second_knows(struct pair_of *p) { return text_is(control_writer(p->heads[1].control), "http://one"); }
static bool second_writes(struct pair_of *p) { return control_writes(p->heads[1].control); }
static bool first_stands_by(struct pair_of *p) { return !control_writes(p->heads[0].control); }
static bool first_knows(struct pair_of *p) { return first_stands_by(p) && text_is(control_writer(p->heads[0].control), "http://two"); }
static bool both_heard(struct pair_of *p)
{
    return p->heads[0].heard == p->heads[1].heard && p->heads[0].heard == control_last_event(p->heads[1].control);
}

TWO(one_of_two_servers_writes_and_the_other_follows)
{
    CHECK(control_writes(p->heads[0].control) && !control_writes(p->heads[1].control));
    CHECK(wait_until(p, second_knows));
    CHECK(ask(p, 0, VERB_JOB_SUBMIT, SUBMIT, NULL)->r.ok);
    struct asked *a = ask(p, 1, VERB_JOB_SUBMIT, SUBMIT, NULL);
    CHECK(!a->r.ok && a->r.err.rc == RC_NOT_WRITER);
    CHECK(ask(p, 1, VERB_JOB_LIST, "{}", NULL)->r.ok);
    CHECK(wait_until(p, both_heard));
    CHECK(!p->heads[0].gap && !p->heads[1].gap);
    a = ask(p, 1, VERB_SERVER_LIST, "{}", NULL);
    CHECK(a->r.ok && strstr(a->r.reply.at, "http://one") && strstr(a->r.reply.at, "\"writer\""));
}

TWO(a_writer_that_wakes_late_commits_nothing_and_answers_nothing_from_its_memory)
{
    CHECK(wait_until(p, second_knows));
    CHECK(ask(p, 0, VERB_ORG_CREATE, "{\"name\":\"before\"}", NULL)->r.ok);
    pause_head(p, 0);
    CHECK(wait_until(p, second_writes));
    CHECK(ask(p, 1, VERB_ORG_CREATE, "{\"name\":\"meanwhile\"}", NULL)->r.ok);
    CHECK(control_writes(p->heads[0].control));         /* it thinks so */
    struct asked *a = ask(p, 0, VERB_ORG_CREATE, "{\"name\":\"before\"}", NULL);    /* its memory would refuse this */
    CHECK(!a->r.ok && (a->r.err.rc == RC_NOT_WRITER || a->r.err.rc == RC_UNAVAILABLE));
    a = ask(p, 0, VERB_ORG_CREATE, "{\"name\":\"late\"}", NULL);
    CHECK(!a->r.ok && (a->r.err.rc == RC_NOT_WRITER || a->r.err.rc == RC_UNAVAILABLE));
    CHECK(!strstr(ask(p, 1, VERB_ORG_LIST, "{}", NULL)->r.reply.at, "late"));
    wake(&p->heads[0]);
    CHECK(wait_until(p, first_knows) && !p->heads[0].control->writer.state);
    CHECK(ask(p, 1, VERB_ORG_CREATE, "{\"name\":\"after\"}", NULL)->r.ok);
    CHECK(wait_until(p, both_heard));
    CHECK(!p->heads[0].gap && !p->heads[1].gap);        /* each was told every event once, in order */
}

TWO(a_wish_that_was_acknowledged_by_one_server_is_known_to_the_next)
{
    CHECK(wait_until(p, second_knows));
    struct asked *a = ask(p, 0, VERB_JOB_SUBMIT, SUBMIT, "wish-1");
    CHECK(a->r.ok && !a->r.replayed);
    pause_head(p, 0);
    CHECK(wait_until(p, second_writes));
    struct asked *b = ask(p, 1, VERB_JOB_SUBMIT, SUBMIT, "wish-1");
    CHECK(b->r.ok && b->r.replayed && strncmp(a->r.reply.at, b->r.reply.at, 30) == 0);
}

static void resigned(void *arg) { ((struct head *)arg)->resigned = true; }
static bool first_resigned(struct pair_of *p) { return p->heads[0].resigned; }
static bool second_resigned(struct pair_of *p) { return p->heads[1].resigned; }
static bool soon(struct pair_of *p) { return os_boot_ms(p->os) > p->late_ms - LATE_MS + 20; }
static bool a_while(struct pair_of *p) { return os_boot_ms(p->os) > p->late_ms - LATE_MS + 1000; }
static bool second_is_at_rest(struct pair_of *p)       /* the loop may have begun a look after the one that was waited for */
{
    for (int i = 0; i < 1000 && !second_rests(p); i++)
        (void)wait_until(p, second_rests);
    return second_rests(p);
}
static bool each_knows_the_other(struct pair_of *p)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    const char **urls;
    int64_t version;
    return lease_servers(p->heads[0].control, mem, &urls, &version) == 2;
}

/* A look that comes while something is being written waits for it: the connection is not its own before. */
TWO(what_is_on_its_way_into_the_store_when_the_lease_is_given_up_lands_before)
{
    enum { MANY = 60 };
    struct asked *all[MANY];
    int good = 0;
    CHECK(wait_until(p, second_knows));
    for (int i = 0; i < MANY; i++) {
        all[i] = ask_only(p, 0, VERB_JOB_SUBMIT, SUBMIT, NULL);
        if (i == MANY / 2)
            CHECK(control_resign(p->heads[0].control, resigned, &p->heads[0]));
        if (i % 10 == 9)
            usleep(500);
    }
    for (int i = 0; i < MANY; i++) {
        while (!all[i]->done)
            os_run(p->os);
        CHECK(all[i]->r.ok || all[i]->r.err.rc == RC_NOT_WRITER);
        good += all[i]->r.ok;
        str_done(&all[i]->r.reply);
        arena_free(all[i]->r.mem);
    }
    CHECK(wait_until(p, first_resigned) && wait_until(p, second_writes));
    CHECK(good > MANY / 2 && map_count(p->heads[1].control->writer.state->jobs) == (size_t)good);
    CHECK(wait_until(p, both_heard) && !p->heads[0].gap && !p->heads[1].gap);
}

TWO(who_resigns_leaves_the_lease_to_the_next_and_takes_it_no_more)
{
    CHECK(wait_until(p, second_knows) && wait_until(p, each_knows_the_other));
    int64_t began = os_boot_ms(p->os);
    CHECK(control_resign(p->heads[0].control, resigned, &p->heads[0]));
    CHECK(wait_until(p, second_writes) && first_stands_by(p));
    CHECK(wait_until(p, first_resigned) && first_knows(p));
    printf("# handed over in %lld ms\n", (long long)(os_boot_ms(p->os) - began));
    CHECK(ask(p, 1, VERB_JOB_SUBMIT, SUBMIT, NULL)->r.ok);
    CHECK(!control_resign(p->heads[0].control, resigned, &p->heads[0]));
    CHECK(wait_until(p, first_knows));
}

TWO(who_is_out_of_reach_loses_the_lease_although_it_renews_it)
{
    CHECK(wait_until(p, second_knows));
    control_usurp(p->heads[1].control, false);
    CHECK(wait_until(p, second_writes));
    CHECK(wait_until(p, first_knows));
    CHECK(ask(p, 1, VERB_JOB_SUBMIT, SUBMIT, NULL)->r.ok);
}

/* A bad link of ours alone is no reason. The very look that is to take the lease sees that somebody was served. */
static bool second_heard(struct pair_of *p) { return control_last_event(p->heads[1].control) == control_last_event(p->heads[0].control) && !p->heads[1].control->looking; }
TWO(who_is_out_of_reach_for_one_keeps_the_lease_while_others_are_served)
{
    CHECK(wait_until(p, second_knows) && second_is_at_rest(p));
    pause_head(p, 1);
    CHECK(ask(p, 0, VERB_JOB_SUBMIT, SUBMIT, NULL)->r.ok);
    p->heads[1].control->looking = false;
    control_usurp(p->heads[1].control, true);
    CHECK(wait_until(p, second_heard) && control_writes(p->heads[0].control) && !second_writes(p));
}

static bool second_usurps(struct pair_of *p)
{
    if (!second_writes(p))
        control_usurp(p->heads[1].control, true);
    return second_writes(p);
}
TWO(who_is_out_of_reach_and_writes_nothing_loses_the_lease)
{
    CHECK(wait_until(p, second_knows));
    CHECK(wait_until(p, second_usurps) && wait_until(p, first_knows));
    CHECK(ask(p, 1, VERB_JOB_SUBMIT, SUBMIT, NULL)->r.ok);
}

TWO(who_resigns_stays_until_the_next_one_writes)
{
    CHECK(wait_until(p, second_knows) && wait_until(p, each_knows_the_other) && second_is_at_rest(p));
    pause_head(p, 1);
    CHECK(control_resign(p->heads[0].control, resigned, &p->heads[0]));
    CHECK(wait_until(p, a_while) && first_stands_by(p) && !p->heads[0].resigned);
    wake(&p->heads[1]);
    CHECK(wait_until(p, first_resigned) && second_writes(p));
    /* and one that does not write knows who does until its end */
    struct err err;
    CHECK(!control_ready(p->heads[0].control, &err) && control_ready(p->heads[1].control, &err));
}

TWO(one_that_leaves_without_the_lease_still_knows_who_has_it)
{
    CHECK(wait_until(p, second_knows));
    CHECK(control_resign(p->heads[1].control, resigned, &p->heads[1]));
    CHECK(wait_until(p, second_resigned) && second_knows(p) && control_writes(p->heads[0].control));
}

/* Each pause is long enough for the other to build its memory, and too short for it to take over; where the machine makes it
 * longer, the rest is asked of the other. */
TWO(a_memory_that_was_built_ahead_knows_all_that_was_acknowledged)
{
    char key[24];
    CHECK(wait_until(p, second_knows));
    pause_head(p, 0);
    for (int i = 0; i < 4; i++) {
        snprintf(key, sizeof key, "wish-%d", i);
        CHECK(ask(p, 0, VERB_JOB_SUBMIT, SUBMIT, key)->r.ok || (wait_until(p, second_writes) && ask(p, 1, VERB_JOB_SUBMIT, SUBMIT, key)->r.ok));
        int64_t until = os_boot_ms(p->os) + 600;
        while (i < 3 && os_boot_ms(p->os) < until)
            wait_until(p, soon);
    }
    CHECK(wait_until(p, second_writes));
    CHECK(map_count(p->heads[1].control->writer.state->jobs) == 4);
    for (int i = 0; i < 4; i++) {
        snprintf(key, sizeof key, "wish-%d", i);
        struct asked *a = ask(p, 1, VERB_JOB_SUBMIT, SUBMIT, key);
        CHECK(a->r.ok && a->r.replayed);
    }
}

TWO(who_was_out_of_reach_is_not_usurped_once_another_has_the_lease)
{
    CHECK(wait_until(p, second_knows) && second_is_at_rest(p));
    snprintf(p->heads[1].control->writer_url, sizeof p->heads[1].control->writer_url, "http://three");  /* as it was a moment ago */
    control_usurp(p->heads[1].control, false);
    CHECK(wait_until(p, a_while) && control_writes(p->heads[0].control) && !second_writes(p));
}
