#include "world.h"
#include "base/log.h"
#include "store/store_internal.h"
#include <stdio.h>
#include <stdlib.h>

static const char simple[] = "{\"command\":[\"true\"]}";

static enum who first_who(const struct wish *x)
{
    for (enum who who = 0; who < WHO_COUNT; who++)
        if (people[who].good && who != STRANGER && (verbs[x->verb].roles & people[who].roles))
            return who;
    return WHO_COUNT;
}

/* Everything from the nth operation on fails, until the answer is there; then all is well again. */
static void fail_from_each(struct world *w, const struct wish *x, enum who who)
{
    struct door *d = w->d;
    for (int nth = 1;; nth++) {
        int64_t events = memory_of(d)->last_event;
        fault_arm_from(nth);
        struct answer a = world_ask(w, who, NULL, x, BY_ID);
        bool fired = fault_fired();
        fault_arm(0);
        struct answer next
            = door_ask(d, d->admin, VERB_NODE_TOKEN, NULL); /* the door is open again */
        CHECK(next.ok);
        if (!next.ok)
            printf("# %s, then: %s\n", a.err.text, next.err.text);
        check_books(d, verbs[x->verb].name);
        if (a.ok || !fired) {
            CHECK(a.ok || x->expect);
            break;
        }
        CHECK(!*a.text
              && memory_of(d)->last_event == events + 1); /* of the two only the token is there */
        CHECK(nth < 300);
        if (nth >= 300)
            break;
    }
}

TEST(every_write_lands_whole_or_not_at_all_wherever_the_store_fails)
{
    struct world w;
    struct frozen f;
    AUTO(arena_free) struct arena *mem = arena_new();
    log_level_set(LOG_ERROR);
    world_make(&w, false);
    world_freeze(&w, &f, mem);
    for (size_t i = 0; i < wish_count; i++) {
        const struct wish *x = &wishes[i];
        enum verb_kind kind = verbs[x->verb].kind;
        enum who who = first_who(x);
        if ((kind != VERB_WRITE && kind != VERB_INSIDE) || who == WHO_COUNT
            || x->verb == VERB_PASSWORD || (x->refers && x->verb == VERB_JOB_SUBMIT))
            continue;
        w.d = door_thaw(&f, false);
        if (verbs[x->verb].roles & ROLE_NODE)
            CHECK(door_hello(w.d, w.keys[NODE_ONE], "n1", 4, 2, (struct texts){ 0 }).ok);
        fail_from_each(&w, x, who);
        door_free(w.d);
    }
    frozen_done(&f);
}

TEST(one_failure_of_the_store_is_mended_and_nobody_notices)
{
    log_level_set(LOG_ERROR);
    AUTO(door_free) struct door *d = door_new(true);
    char key[SECRET_TEXT];
    door_node(d, "n1", 2, key);
    for (int nth = 1; nth < 40; nth++) {
        struct flying *all[6];
        int64_t jobs = rows_in(d, "job"), good = 0;
        fault_arm(nth);
        for (int i = 0; i < 6; i++) /* together in one commit */
            all[i] = door_send(d, d->admin, NULL, VERB_JOB_SUBMIT, simple, NULL);
        for (int i = 0; i < 6; i++)
            good += door_landed(d, all[i]).ok;
        fault_arm(0);
        CHECK(rows_in(d, "job") == jobs + good && good >= 5);
        check_books(d, "after one failure");
        check_picture(d, "after one failure");
    }
}

/* A project that the store has and the writer's memory does not, so that the store refuses its
 * name. */
static void behind_the_back(struct door *d)
{
    struct err err;
    bool unknown;
    int64_t org = state_project(memory_of(d), "default")->org;
    struct value args[]
        = { V_INT(77), V_INT(org), V_TEXT("behind"), V_INT(0), V_TEXT("{}"), V_INT(1) };
    CHECK(store_commit(d->control->writer.conn, &(struct write){ ST_PROJECT_ADD, 6, args }, 1,
                       &unknown, &err));
}

TEST(a_bad_verb_fails_alone_and_those_beside_it_land)
{
    log_level_set(LOG_ERROR);
    AUTO(door_free) struct door *d = door_new(false);
    behind_the_back(d);
    struct flying *good = door_send(d, d->admin, NULL, VERB_JOB_SUBMIT, simple, NULL);
    struct flying *bad
        = door_send(d, d->admin, NULL, VERB_PROJECT_CREATE, "{\"name\":\"behind\"}", NULL);
    struct flying *also = door_send(d, d->admin, NULL, VERB_JOB_SUBMIT, simple, NULL);
    CHECK(door_landed(d, good).ok && door_landed(d, also).ok);
    struct answer a = door_landed(d, bad);
    CHECK(!a.ok && a.err.rc == RC_CONFLICT);
    CHECK(rows_in(d, "job") == 2);
    check_books(d, "after a bad one");
}

TEST(while_the_store_is_away_writes_are_refused_and_nothing_is_decided_on_a_memory_that_is_not_true)
{
    log_level_set(LOG_ERROR);
    AUTO(door_free) struct door *d = door_new(false);
    const char *before = memory_text(d, memory_of(d), 0);
    fault_arm_from(1);
    for (int i = 0; i < 5; i++) {
        struct answer a = door_ask(d, d->admin, VERB_JOB_SUBMIT, simple);
        CHECK(!a.ok && a.err.rc == RC_UNAVAILABLE && rows_in(d, "job") <= 0);
        door_run(d, 3000); /* ticks meet the same */
    }
    fault_arm(0);
    door_run(d, 2000);
    CHECK(text_is(before, memory_text(d, memory_of(d), 0)));
    CHECK(door_ask(d, d->admin, VERB_JOB_SUBMIT, simple).ok && rows_in(d, "job") == 1);
    check_books(d, "after it was away");
}

TEST(a_role_that_a_refused_commit_would_have_given_is_not_there_when_it_is_tried_again)
{
    log_level_set(LOG_ERROR);
    AUTO(door_free) struct door *d = door_new(false);
    CHECK(door_ask(d, d->admin, VERB_USER_CREATE, "{\"name\":\"eve\",\"roles\":\"operator\"}").ok);
    const char *eve = door_grant(d, PRINCIPAL_USER, "eve", NULL, 0, 0);
    behind_the_back(d);
    struct flying *make = door_send(d, eve, NULL, VERB_PROJECT_CREATE, "{\"name\":\"behind\"}",
                                    NULL); /* would make her its admin */
    struct flying *use = door_send(d, eve, "behind", VERB_JOB_SUBMIT, simple, NULL);
    struct answer made = door_landed(d, make), used = door_landed(d, use);
    CHECK(!made.ok && made.err.rc == RC_CONFLICT);
    CHECK(!used.ok && used.err.rc == RC_DENIED && rows_in(d, "job") == 0);
}

/* --- decided, and not yet in the store: by chance of the seed there is time for more in between */

enum { SEEDS = 24 };

static bool decides(struct door *d, int64_t events)
{
    while (d->control->writer.state->last_event < events)
        if (!sim_step(d->sim))
            return false;
    return true;
}

/* Lets time pass until f is answered. True: something was decided behind a commit that failed, and not sent. */
static bool came_back(struct door *d, const struct flying *f)
{
    bool seen = false;
    while (!f->done && sim_step(d->sim))
        for (const struct group *g = d->control->writer.back; g; g = g->next)
            seen |= g->fate == BEHIND;
    return seen;
}

TEST(nobody_hears_of_what_is_decided_before_it_is_in_the_store_and_a_power_cut_takes_it)
{
    int between = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        AUTO(door_free) struct door *d = door_seed(false, seed);
        int64_t before = control_last_event(d->control);
        struct flying *f = door_send(d, d->admin, NULL, VERB_JOB_SUBMIT, simple, NULL);
        CHECK(decides(d, before + 1));
        CHECK(!f->done && control_last_event(d->control) == before);
        between += rows_in(d, "job") == 0;
        CHECK(door_crash(d) && !f->done);
        str_done(&f->r.reply);
        CHECK((size_t)rows_in(d, "job") == map_count(memory_of(d)->jobs));
        check_books(d, "after a power cut");
    }
    CHECK(between == SEEDS);
}

TEST(what_was_decided_behind_a_refused_commit_is_decided_again_without_it)
{
    int behind = 0;
    log_level_set(LOG_ERROR);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        AUTO(door_free) struct door *d = door_seed(false, seed);
        CHECK(door_ask(d, d->admin, VERB_USER_CREATE, "{\"name\":\"eve\",\"roles\":\"operator\"}").ok);
        const char *eve = door_grant(d, PRINCIPAL_USER, "eve", NULL, 0, 0);
        behind_the_back(d);
        int64_t events = memory_of(d)->last_event;
        struct flying *make = door_send(d, eve, NULL, VERB_PROJECT_CREATE, "{\"name\":\"behind\"}", NULL);
        CHECK(decides(d, events + 1));
        struct flying *use = door_send(d, eve, "behind", VERB_JOB_SUBMIT, simple, NULL);
        struct flying *good = door_send(d, d->admin, NULL, VERB_JOB_SUBMIT, simple, NULL);
        behind += came_back(d, good);
        struct answer made = door_landed(d, make), used = door_landed(d, use);
        CHECK(!made.ok && made.err.rc == RC_CONFLICT);
        CHECK(!used.ok && used.err.rc == RC_DENIED);
        CHECK(door_landed(d, good).ok && rows_in(d, "job") == 1);
        check_books(d, "behind a refused commit");
    }
    CHECK(behind > 0 && behind < SEEDS);
}

TEST(a_verb_that_asks_the_store_finds_what_was_decided_before_it)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        AUTO(door_free) struct door *d = door_seed(false, seed);
        int64_t events = memory_of(d)->last_event;
        struct flying *all[] = {
            door_send(d, d->admin, NULL, VERB_JOB_SUBMIT, "{\"name\":\"x\",\"command\":[\"true\"]}", "k"),
            door_send(d, d->admin, NULL, VERB_JOB_CANCEL, "{\"job\":\"x\"}", NULL),
        };
        CHECK(decides(d, events + 2));
        struct flying *again = door_send(d, d->admin, NULL, VERB_JOB_CANCEL, "{\"job\":\"x\"}", NULL);
        struct flying *same
            = door_send(d, d->admin, NULL, VERB_JOB_SUBMIT, "{\"name\":\"x\",\"command\":[\"true\"]}", "k");
        CHECK(door_landed(d, all[0]).ok && door_landed(d, all[1]).ok);
        struct answer a = door_landed(d, again), b = door_landed(d, same);
        CHECK(!a.ok && a.err.rc == RC_CONFLICT && strstr(a.err.text, "cancelled"));
        CHECK(b.ok && b.replayed && text_is(get(&b, "state"), "cancelled"));
    }
}

static void count_commit(void *arg, const struct commit *k)
{
    *(int *)arg += k->event_count > 0;
}

TEST(what_waits_together_lands_in_one_commit)
{
    AUTO(door_free) struct door *d = door_new(false);
    struct flying *all[32];
    int commits = 0;
    control_follow(d->control, count_commit, &commits);
    for (size_t i = 0; i < COUNT(all); i++)
        all[i] = door_send(d, d->admin, NULL, VERB_JOB_SUBMIT, simple, NULL);
    for (size_t i = 0; i < COUNT(all); i++)
        CHECK(door_landed(d, all[i]).ok);
    CHECK(commits == 1 && rows_in(d, "job") == COUNT(all));
    control_unfollow(d->control, &commits);
}

TEST(an_idempotent_wish_has_one_answer_also_after_a_restart)
{
    AUTO(door_free) struct door *d = door_new(false);
    static const struct {
        enum verb_id verb;
        const char *body;
    } rows[] = {
        { VERB_ORG_CREATE, "{\"name\":\"o\"}" },
        { VERB_PROJECT_CREATE, "{\"name\":\"p\",\"org\":\"o\"}" },
        { VERB_USER_CREATE, "{\"name\":\"u\"}" },
        { VERB_VOLUME_CREATE, "{\"name\":\"v\"}" },
        { VERB_SECRET_SET, "{\"name\":\"S\",\"value\":\"x\"}" },
        { VERB_JOB_SUBMIT, simple },
        { VERB_ACCOUNT_CREATE, "{\"name\":\"a\"}" },
        { VERB_MEMBER_SET, "{\"user\":\"u\",\"roles\":\"viewer\"}" },
    };
    const char *first[COUNT(rows)];
    for (size_t i = 0; i < COUNT(rows); i++)
        first[i]
            = door_ask_full(d, d->admin, NULL, rows[i].verb, rows[i].body, FMT(d, "wish-%zu", i), 0)
                  .text;
    const char *before = store_text(d);
    for (int again = 0; again < 2; again++) {
        for (size_t i = 0; i < COUNT(rows); i++) {
            struct answer a = door_ask_full(d, d->admin, NULL, rows[i].verb, rows[i].body,
                                            FMT(d, "wish-%zu", i), 0);
            CHECK(a.ok && a.replayed && text_is(a.text, first[i]));
            if (!a.ok || !text_is(a.text, first[i]))
                printf("# %s: %s\n# was %s\n# now %s\n", verbs[rows[i].verb].name, a.err.text,
                       first[i], a.text);
            struct answer other = door_ask_full(d, d->admin, NULL, VERB_VOLUME_CREATE,
                                                "{\"name\":\"another\"}", FMT(d, "wish-%zu", i), 0);
            CHECK(!other.ok && text_is(other.err.field, "Idempotency-Key"));
        }
        CHECK(text_is(before, store_text(d)));
        CHECK(door_crash(d));
    }
}

TEST(an_idempotency_key_is_its_owners_and_forgotten_after_a_day)
{
    AUTO(door_free) struct door *d = door_new(false);
    CHECK(door_ask(d, d->admin, VERB_ACCOUNT_CREATE, "{\"name\":\"bot\"}").ok);
    const char *bot = door_grant(d, PRINCIPAL_ACCOUNT, "bot", "default", ROLE_DEVELOPER, 0);
    struct answer a = door_ask_full(d, d->admin, NULL, VERB_JOB_SUBMIT, simple, "k", 0),
                  b = door_ask_full(d, bot, NULL, VERB_JOB_SUBMIT, simple, "k", 0);
    CHECK(a.ok && b.ok && !b.replayed && rows_in(d, "job") == 2);
    sim_wall_jump(d->sim, 25LL * 3600 * 1000);
    door_run(d, 3000);
    CHECK(map_count(memory_of(d)->idems) == 0);
    struct answer c = door_ask_full(d, d->admin, NULL, VERB_JOB_SUBMIT, simple, "k", 0);
    CHECK(c.ok && !c.replayed && rows_in(d, "job") == 3);
    check_books(d, "a day later");
}

TEST(a_wish_that_ended_in_the_same_commit_is_told_again_as_it_was)
{
    AUTO(door_free) struct door *d = door_new(false);
    struct flying *all[] = {
        door_send(d, d->admin, NULL, VERB_JOB_SUBMIT, "{\"name\":\"x\",\"command\":[\"true\"]}",
                  "k"),
        door_send(d, d->admin, NULL, VERB_JOB_CANCEL, "{\"job\":\"x\"}", NULL),
        door_send(d, d->admin, NULL, VERB_JOB_SUBMIT, "{\"name\":\"x\",\"command\":[\"true\"]}",
                  "k"),
        door_send(d, d->admin, NULL, VERB_JOB_CANCEL, "{\"job\":\"x\"}", NULL),
        door_send(d, d->admin, NULL, VERB_JOB_SUBMIT,
                  "{\"command\":[\"true\"],\"after\":[{\"job\":\"x\"}]}", NULL),
        door_send(d, d->admin, NULL, VERB_JOB_SUBMIT,
                  "{\"command\":[\"true\"],\"after\":[{\"job\":\"x\",\"when\":\"any\"}]}", NULL),
    };
    struct answer a[COUNT(all)];
    for (size_t i = 0; i < COUNT(all); i++)
        a[i] = door_landed(d, all[i]);
    CHECK(a[0].ok && a[1].ok && a[2].ok && a[2].replayed
          && text_is(get(&a[0], "id"), get(&a[2], "id"))
          && text_is(get(&a[2], "state"), "cancelled"));
    CHECK(!a[3].ok && a[3].err.rc == RC_CONFLICT && strstr(a[3].err.text, "cancelled"));
    CHECK(!a[4].ok && text_is(a[4].err.field, "after"));
    CHECK(a[5].ok && text_is(get(&a[5], "reason"), "Priority"));
    check_books(d, "one commit");
}

TEST(events_are_followed_in_order_and_before_the_reply)
{
    AUTO(door_free) struct door *d = door_new(false);
    int64_t before = control_last_event(d->control);
    for (int i = 0; i < 20; i++) {
        CHECK(door_ask(d, d->admin, VERB_JOB_SUBMIT, simple).ok);
        CHECK(control_last_event(d->control) == before + 1 + i);
    }
}

/* --- a commit that lands although its answer gets lost, and with it the first question what became of it */
static struct {
    struct backend how;
    bool lose, ask;
} lossy;

static bool lossy_commit(struct conn *c, const struct write *writes, size_t count, bool *unknown,
                         struct err *err)
{
    if (!lossy.lose)
        return sqlite_backend.commit(c, writes, count, unknown, err);
    lossy.lose = false;
    lossy.ask = true;
    CHECK(sqlite_backend.commit(c, writes, count, unknown, err));
    *unknown = true;
    return err_set(err, RC_UNAVAILABLE, "the answer got lost");
}
static bool lossy_query(struct conn *c, int st, const struct value *args, struct arena *mem,
                        struct rows *out, struct err *err)
{
    if (!lossy.ask || st != ST_LAST_EVENT)
        return sqlite_backend.query(c, st, args, mem, out, err);
    lossy.ask = false;
    return err_set(err, RC_UNAVAILABLE, "and so did this one");
}

struct heard {
    int64_t last;
    bool gap;
};
static void hear(void *arg, const struct commit *k)
{
    struct heard *h = arg;
    for (size_t i = 0; i < k->event_count; i++) {
        h->gap |= k->events[i].seq != h->last + 1;
        h->last = k->events[i].seq;
    }
}

static struct door *door_lossy(uint64_t seed, struct heard *h)
{
    struct door *d = door_seed(false, seed);
    lossy.how = sqlite_backend;
    lossy.how.commit = lossy_commit;
    lossy.how.query = lossy_query;
    lossy.lose = lossy.ask = false;
    d->store->how = &lossy.how;
    *h = (struct heard){ .last = control_last_event(d->control) };
    control_follow(d->control, hear, h);
    log_level_set(LOG_ERROR);
    return d;
}

TEST(a_commit_that_landed_without_an_answer_is_told_to_followers_and_not_done_twice)
{
    struct heard h;
    AUTO(door_free) struct door *d = door_lossy(42, &h);
    lossy.lose = true;
    struct answer a = door_ask_full(d, d->admin, NULL, VERB_JOB_SUBMIT, simple, "wish", 0);
    CHECK(!a.ok && a.err.rc == RC_UNAVAILABLE && strstr(a.err.text, "not known"));
    CHECK(!lossy.lose && !lossy.ask && rows_in(d, "job") == 1);
    door_run(d, 10);
    CHECK(h.last == memory_of(d)->last_event && !h.gap);
    a = door_ask_full(d, d->admin, NULL, VERB_JOB_SUBMIT, simple, "wish", 0);
    CHECK(a.ok && a.replayed && rows_in(d, "job") == 1);
    CHECK(door_ask(d, d->admin, VERB_JOB_SUBMIT, simple).ok && rows_in(d, "job") == 2);
    door_run(d, 10);
    CHECK(h.last == memory_of(d)->last_event && !h.gap);
    check_books(d, "after an answer got lost");
}

TEST(an_order_whose_commit_landed_without_an_answer_reaches_its_node)
{
    struct heard h;
    char key[SECRET_TEXT];
    AUTO(door_free) struct door *d = door_lossy(42, &h);
    door_node(d, "n1", 2, key);
    const char *job = door_submit(d, d->admin, "{\"command\":[\"true\"],\"gpus\":\"1\"}");
    struct order_gpu gpu = { .uuid = "", .milli = 1000, .mem_mib = 143771 };
    struct placement p = { .node = state_node(memory_of(d), "n1")->id, .gpus = { &gpu, 1 } };
    struct place_ask ask = { .placements = { &p, 1 } };
    CHECK(id_parse(job, PREFIX_JOB, &p.job));
    lossy.lose = true;
    CHECK(!door_ask_as(d, &system_caller, VERB_JOB_PLACE, &ask).ok && rows_in(d, "attempt") == 1);
    door_run(d, 10);
    CHECK(h.last == memory_of(d)->last_event && !h.gap);
    const char *attempt = door_attempt(d, job, 0);
    struct answer a = door_ask(d, key, VERB_NODE_REPORT, "{\"kind\":\"report\",\"items\":[]}");
    CHECK(!a.ok); /* nobody told it: it must say hello again */
    a = door_hello(d, key, "n1", 2, 1, (struct texts){ 0 });
    CHECK(a.ok && text_given(attempt) && strstr(a.text, attempt));
    CHECK(door_report(d, key, 1, attempt, "started", NULL).ok);
    CHECK(text_is(job_word(d, job, "state"), "running"));
    check_books(d, "after an answer got lost");
}

TEST(what_was_decided_behind_a_commit_without_an_answer_is_decided_again_and_lands)
{
    int behind = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct heard h;
        AUTO(door_free) struct door *d = door_lossy(seed, &h);
        lossy.lose = true;
        struct flying *lost = door_send(d, d->admin, NULL, VERB_JOB_SUBMIT, simple, "lost");
        CHECK(decides(d, h.last + 1));
        struct flying *next = door_send(d, d->admin, NULL, VERB_JOB_SUBMIT, simple, "next");
        bool back = came_back(d, next);
        struct answer a = door_landed(d, lost), b = door_landed(d, next);
        behind += back;
        CHECK(!a.ok && a.err.rc == RC_UNAVAILABLE && strstr(a.err.text, "not known"));
        CHECK(back ? b.ok && !b.replayed : b.ok || strstr(b.err.text, "not known"));     /* or it was in the same commit */
        CHECK(rows_in(d, "job") == 2);
        a = door_ask_full(d, d->admin, NULL, VERB_JOB_SUBMIT, simple, "lost", 0);
        b = door_ask_full(d, d->admin, NULL, VERB_JOB_SUBMIT, simple, "next", 0);
        CHECK(a.ok && a.replayed && b.ok && b.replayed && rows_in(d, "job") == 2);
        door_run(d, 10);
        CHECK(h.last == memory_of(d)->last_event && !h.gap);
        check_books(d, "behind an answer that got lost");
    }
    CHECK(behind > 0 && behind < SEEDS);
}

TEST(what_is_decided_on_the_loop_never_waits_for_the_store)
{
    AUTO(door_free) struct door *d = door_new(false);
    struct batch b = { .light = true };
    struct call c = { .control = d->control, .s = memory_of(d), .batch = &b, .mem = d->mem };
    struct rows r;
    struct err err = { 0 };
    CHECK(!ROWS(&c, LAST_EVENT, &r, &err) && b.later && err.rc == RC_UNAVAILABLE);
}

/* Together with others that need it not: those it is about go the long way, and all come out as they would have. */
TEST(a_submit_that_must_ask_the_store_is_answered_as_any_other)
{
    AUTO(door_free) struct door *d = door_new(false);
    struct flying *all[4];
    const char *gone = FMT(d, "{\"command\":[\"true\"],\"workdir\":\"sha256:%064d\"}", 7);
    for (int i = 0; i < 4; i++)
        all[i] = door_send(d, d->admin, NULL, VERB_JOB_SUBMIT, i % 2 ? gone : simple, NULL);
    for (int i = 0; i < 4; i++) {
        struct answer a = door_landed(d, all[i]);
        CHECK(a.ok == !(i % 2) && (a.ok || text_is(a.err.field, "workdir")));
        if (!a.ok)
            printf("# %s: %s\n", a.err.field, a.err.text);
    }
    CHECK(rows_in(d, "job") == 2);
}
