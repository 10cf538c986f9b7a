/* Old data: what goes, what stays, and what goes to the archive. */
#include "base/rand.h"
#include "control/retain.h"
#include "model/view.h"
#include "store/store_internal.h"
#include "world.h"
#include <stdio.h>
#include <stdlib.h>

static const int64_t day_ms = INT64_C(86400) * 1000;

static int64_t value_of(struct door *d, const char *text)
{
    struct err err = { 0 };
    int64_t n = -1;
    CHECK(d->store->how->number(d->conn, text, &n, &err));
    return n;
}
static bool whole(struct door *d)
{
    for (const char *page = ""; page;) {
        struct answer a = door_ask(d, d->admin, VERB_AUDIT_VERIFY, FMT(d, "{\"page\":\"%s\"}", page));
        if (!a.ok || !text_is(get(&a, "state"), "whole"))
            return false;
        page = text_given(get(&a, "next")) ? get(&a, "next") : NULL;
    }
    return true;
}

/* A job that runs on the node for a second and is done. */
static void run_one(struct door *d, const char *key, int64_t *n, const char *body)
{
    const char *job = door_submit(d, d->admin, body);
    door_run(d, 1500);
    for (int t = 0;; t++) {
        const char *attempt = door_attempt(d, job, t);
        if (!text_given(attempt))
            break;
        CHECK(door_report(d, key, ++*n, attempt, "started", NULL).ok);
        door_run(d, 1000);
        CHECK(door_report(d, key, ++*n, attempt, "ended", ",\"outcome\":\"succeeded\"").ok);
        if (t + 1 >= job_number(d, job, "count"))
            break;
    }
}

static const char *sums(struct door *d, const char *ask)
{
    struct answer a = door_ask(d, d->admin, VERB_USAGE_SUM, ask);
    CHECK(a.ok);
    return a.text;
}

static void pass_days(struct door *d, int days)
{
    sim_wall_jump(d->sim, days * day_ms);
    door_run(d, 70 * 1000);
}

TEST(what_is_old_goes_and_what_is_billed_or_audited_goes_to_the_archive)
{
    AUTO(door_free) struct door *d = door_new(true);
    char key[SECRET_TEXT];
    int64_t n = 0;
    door_node(d, "n1", 4, key);
    for (int i = 0; i < 5; i++)
        run_one(d, key, &n, "{\"command\":[\"true\"],\"count\":3}");
    int64_t audited = memory_of(d)->audit.number, usage = rows_in(d, "usage"), last = memory_of(d)->last_event;
    const char *before = sums(d, "{\"by\":\"project,user,flavor,day\"}");
    CHECK(usage == 15 && rows_in(d, "job") == 5 && rows_in(d, "task") == 15 && audited > 5);
    pass_days(d, 29);
    CHECK(rows_in(d, "job") == 5 && rows_in(d, "archive") == 0);
    pass_days(d, 2);
    CHECK(rows_in(d, "job") == 0 && rows_in(d, "task") == 0 && rows_in(d, "attempt") == 0);
    CHECK(rows_in(d, "usage") == usage && rows_in(d, "archive") > 0);
    CHECK(value_of(d, "SELECT COALESCE(MIN(seq), 0) FROM event") >= last - 1 && memory_of(d)->last_event >= last);
    CHECK(value_of(d, "SELECT COALESCE(MAX(last), 0) FROM archive WHERE kind = 'audit'") >= audited - 1);
    CHECK(whole(d) && text_is(before, sums(d, "{\"by\":\"project,user,flavor,day\"}")));
    pass_days(d, 60);
    CHECK(rows_in(d, "usage") == 0 && value_of(d, "SELECT SUM(entries) FROM archive WHERE kind = 'usage'") == usage);
    CHECK(whole(d) && text_is(before, sums(d, "{\"by\":\"project,user,flavor,day\"}")));
    check_books(d, "after all was old");
    struct answer a = door_ask(d, d->admin, VERB_AUDIT_LIST, "{\"since\":0,\"limit\":1000}");
    CHECK((int64_t)item_count(&a) == memory_of(d)->audit.number);
    a = door_ask(d, d->admin, VERB_AUDIT_LIST, "{\"limit\":1000}");
    CHECK((int64_t)item_count(&a) == memory_of(d)->audit.number);
    door_submit(d, d->admin, "{\"command\":[\"true\"]}");
    CHECK(door_crash(d) && whole(d) && memory_of(d)->last_event > last);
}

/* Sums over any period, with the days' sums, rows and archive, are what the intervals themselves say. */
TEST(sums_over_any_period_add_up_before_and_after_they_are_in_the_archive)
{
    AUTO(door_free) struct door *d = door_new(false);
    enum { MANY = 400 };
    struct err err;
    bool unknown;
    int64_t here = state_project(memory_of(d), "default")->id, owner = state_person(memory_of(d), "admin")->id,
            base = os_wall_ms(d->os) / day_ms * day_ms - 3 * day_ms;
    struct interval all[MANY];
    struct rng rng = { 5 };
    struct batch b = { .mem = arena_new() };
    struct request r = { .verb = VERB_JOB_TICK, .who = system_caller };
    struct call c = { .control = d->control, .s = memory_of(d), .batch = &b, .r = &r, .who = &r.who, .mem = d->mem };
    for (int i = 0; i < MANY; i++) {
        int64_t start = base + (int64_t)(rng_next(&rng) % (uint64_t)(2 * day_ms));
        all[i] = (struct interval){ .attempt = i + 1, .project = here, .owner = owner, .owner_kind = 1, .flavor = i % 3 ? "a" : "b",
                                    .gpu_milli = i % 5 * 250, .cpu_milli = 1000, .mem_mib = i, .started_ms = start,
                                    .ended_ms = start + (int64_t)(rng_next(&rng) % (uint64_t)(day_ms * (i % 7 ? 1 : 2) / 3)),
                                    .billable = i % 11 != 0, .simulated = i % 2, .project_name = "default", .owner_name = "admin" };
        bool rolled = i % 4 != 0;        /* the others are an older version's */
        EMIT(&c, USAGE_ADD, V_INT(i + 1), V_INT(here), V_INT(1), V_INT(owner), V_INT(1), V_INT(1), V_TEXT(all[i].flavor), V_INT(all[i].gpu_milli),
             V_INT(0), V_INT(1000), V_INT(i), V_INT(all[i].started_ms), V_INT(all[i].ended_ms), V_INT(all[i].billable), V_INT(all[i].simulated), V_INT(rolled));
        if (rolled)
            usage_roll(&c, &all[i]);
    }
    CHECK(store_commit(d->control->writer.conn, b.writes, b.write_count, &unknown, &err));
    arena_free(b.mem);
    for (int stage = 0; stage < 3; stage++) {
        for (int i = 0; i < 60; i++) {
            static const char *const by[] = { "project", "flavor,day", "user,flavor,project,day" };
            int64_t from = i % 5 ? base - day_ms + (int64_t)(rng_next(&rng) % (uint64_t)(4 * day_ms)) : 0,
                    to = from + (int64_t)(rng_next(&rng) % (uint64_t)(4 * day_ms));
            if (i % 3 == 0)
                from = from / day_ms * day_ms;
            if (i % 4 == 0)
                to = to / day_ms * day_ms + 1;
            unsigned bits;
            CHECK(meter_by(by[i % 3], &bits, &err));
            struct usage_sum *want = usage_sum_new(d->mem, bits, from, to), *got = usage_sum_new(d->mem, bits, from, to);
            struct usage_line *w, *g;
            bool moved;
            for (int k = 0; k < MANY; k++)
                usage_sum_add(want, &all[k]);
            struct call reads = { .control = d->control, .conn = d->conn, .r = &r, .who = &r.who, .mem = d->mem };
            CHECK(usage_read(&reads, i % 2 ? here : 0, from, to, got, &moved, &err) && !moved);
            size_t n = usage_sum_lines(want, &w), m = usage_sum_lines(got, &g);
            CHECK(n == m);
            for (size_t k = 0; k < MIN(n, m); k++)
                CHECK(w[k].attempts == g[k].attempts && w[k].ms == g[k].ms && w[k].gpu_milli_ms == g[k].gpu_milli_ms
                      && w[k].mem_mib_ms == g[k].mem_mib_ms && w[k].day_ms == g[k].day_ms && text_is(w[k].flavor, g[k].flavor));
        }
        if (stage == 0) {
            door_run(d, 70000); /* those of the older version are in their days now */
            CHECK(value_of(d, "SELECT COUNT(*) FROM usage WHERE rolled = 0") == 0);
        } else if (stage == 1) {
            pass_days(d, 100);
            CHECK(rows_in(d, "usage") == 0 && whole(d));
        }
    }
}

/* The store fails once, anywhere; sometimes the machine dies too. */
TEST(wherever_a_step_fails_or_dies_nothing_is_lost_or_doubled)
{
    struct frozen f;
    struct door *d = door_new(true);
    char key[SECRET_TEXT];
    int64_t n = 0;
    door_node(d, "n1", 4, key);
    for (int i = 0; i < 2; i++)
        run_one(d, key, &n, "{\"command\":[\"true\"],\"count\":2}");
    door_ask(d, "ak_wrong", VERB_JOB_LIST, NULL);
    door_run(d, 62000);
    door_freeze(d, &f);
    for (int nth = 1;; nth += nth < 20 ? 1 : 7) {
        d = door_thaw(&f, false);
        const char *before = sums(d, "{\"by\":\"day\"}");
        int64_t usage = rows_in(d, "usage"), audited = memory_of(d)->audit.number;
        sim_wall_jump(d->sim, 100 * day_ms);
        fault_arm(nth);
        door_run(d, 9000);
        bool fired = fault_fired();
        fault_arm(0);
        CHECK(whole(d) && rows_in(d, "usage") + value_of(d, "SELECT COALESCE(SUM(entries), 0) FROM archive WHERE kind = 'usage'") == usage);
        if (nth % 3 == 0)
            CHECK(door_crash(d));
        door_run(d, 180 * 1000);
        CHECK(whole(d) && rows_in(d, "usage") == 0 && rows_in(d, "job") == 0);
        CHECK(value_of(d, "SELECT SUM(entries) FROM archive WHERE kind = 'usage'") == usage);
        CHECK(value_of(d, "SELECT COALESCE(SUM(entries), 0) FROM archive WHERE kind = 'audit'")
                  + value_of(d, "SELECT COUNT(*) FROM event WHERE audit IS NOT NULL") + rows_in(d, "audit_note") >= audited);
        CHECK(text_is(before, sums(d, "{\"by\":\"day\"}")));
        door_free(d);
        if (!fired)
            break;
    }
    frozen_done(&f);
}

TEST(a_segment_of_which_any_column_was_changed_or_that_was_removed_shows)
{
    static const char *const columns[] = { "first", "last", "from_ms", "to_ms", "entries" }, *const texts[] = { "lines", "chain" };
    AUTO(door_free) struct door *d = door_new(true);
    struct err err = { 0 };
    char key[SECRET_TEXT];
    int64_t n = 0;
    door_node(d, "n1", 4, key);
    run_one(d, key, &n, "{\"command\":[\"true\"],\"count\":3}");
    pass_days(d, 100);
    CHECK(whole(d) && rows_in(d, "archive") >= 2);
    struct conn *w = d->control->writer.conn;
    for (int k = 0; k < 2; k++) {
        const char *kind = k ? "usage" : "audit";
        for (size_t i = 0; i < COUNT(columns); i++) {
            CHECK(d->store->how->run(w, FMT(d, "UPDATE archive SET %s = %s + 1 WHERE kind = '%s' AND segment = 1", columns[i], columns[i], kind), &err));
            CHECK(!whole(d));
            CHECK(d->store->how->run(w, FMT(d, "UPDATE archive SET %s = %s - 1 WHERE kind = '%s' AND segment = 1", columns[i], columns[i], kind), &err));
        }
        for (size_t i = 0; i < COUNT(texts); i++) {
            CHECK(d->store->how->run(w, FMT(d, "UPDATE archive SET %s = %s || 'x' WHERE kind = '%s' AND segment = 1", texts[i], texts[i], kind), &err));
            CHECK(!whole(d));
            CHECK(d->store->how->run(w, FMT(d, "UPDATE archive SET %s = substr(%s, 1, length(%s) - 1) WHERE kind = '%s' AND segment = 1", texts[i], texts[i], texts[i], kind), &err));
        }
        CHECK(whole(d));
        CHECK(d->store->how->run(w, FMT(d, "UPDATE archive SET segment = 77 WHERE kind = '%s' AND segment = 1", kind), &err) && !whole(d));
        CHECK(d->store->how->run(w, FMT(d, "UPDATE archive SET segment = 1 WHERE kind = '%s' AND segment = 77", kind), &err) && whole(d));
        CHECK(d->store->how->run(w, FMT(d, "CREATE TABLE keep AS SELECT * FROM archive WHERE kind = '%s'; DELETE FROM archive WHERE kind = '%s'", kind, kind), &err) && !whole(d));
        CHECK(d->store->how->run(w, "INSERT INTO archive SELECT * FROM keep; DROP TABLE keep", &err) && whole(d));
    }
}

TEST(an_array_of_many_tasks_is_dropped_in_steps)
{
    AUTO(door_free) struct door *d = door_new(false);
    struct err err = { 0 };
    const char *job = door_submit(d, d->admin, "{\"command\":[\"true\"],\"count\":1000}");
    CHECK(door_ask(d, d->admin, VERB_JOB_CANCEL, FMT(d, "{\"job\":\"%s\"}", job)).ok);
    CHECK(d->store->how->run(d->control->writer.conn,
                             "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 999) INSERT INTO task (job, task, project, state, outcome, tries, faults,"
                             " attempt, exit_code, signal, detail, not_before_ms, started_ms, ended_ms) SELECT (SELECT MIN(id) FROM job), i, 1, 6, 0, 0, 0, 0, 0, 0, '', 0, 0, 0 FROM n", &err));
    sim_wall_jump(d->sim, 31 * day_ms);
    int64_t before = rows_in(d, "task"), most = 0;
    for (int i = 0; i < 8000 && rows_in(d, "job"); i++) {
        door_run(d, 10);
        int64_t now = rows_in(d, "task");
        most = MAX(most, before - now);
        before = now;
    }
    CHECK(rows_in(d, "job") == 0 && rows_in(d, "task") == 0 && most > 0 && most <= 300);
}

TEST(who_asks_for_events_that_were_dropped_gets_a_snapshot_and_its_number)
{
    struct world w;
    world_make(&w, false);
    AUTO(door_free) struct door *d = w.d;
    pass_days(d, 40);
    const char *job = door_submit(d, d->admin, "{\"command\":[\"true\"]}");
    int64_t last = memory_of(d)->last_event;
    struct flying *f = door_send(d, w.keys[VERA], NULL, VERB_EVENT_LIST, "{\"since\":3}", NULL);
    door_run(d, 100);
    CHECK(f->done && !f->r.ok && f->r.err.rc == RC_GONE);
    CHECK(f->r.reply.at && strstr(f->r.reply.at, FMT(d, "{\"number\":%lld,", (long long)last)) && strstr(f->r.reply.at, job)
          && !strstr(f->r.reply.at, "\"nodes\""));
    str_done(&f->r.reply);
    struct answer on = door_ask(d, w.keys[VERA], VERB_EVENT_LIST, FMT(d, "{\"since\":%lld}", (long long)last));
    CHECK(on.ok && item_count(&on) == 0);
    struct answer kept = door_ask(d, w.keys[VERA], VERB_EVENT_LIST, "{\"since\":0}");
    CHECK(kept.ok && item_count(&kept) >= 1);
}

#define FOUR(c) c c c c
#define DIGEST(c) "sha256:" FOUR(FOUR(FOUR(c)))
static int64_t blobs_dropped(struct door *d) { return value_of(d, "SELECT COUNT(*) FROM event WHERE kind = 'blob.dropped'"); }

static bool blob_is_there(struct door *d, const char *digest)
{
    return value_of(d, FMT(d, "SELECT COUNT(*) FROM blob WHERE digest = '%s'", digest)) == 1;
}

/* Of uploads: one that nothing names, a work folder of a job that waits, an image, one that is uploaded again. */
TEST(what_was_uploaded_goes_when_nobody_has_used_it_for_as_long_as_jobs_are_kept)
{
    AUTO(door_free) struct door *d = door_new(false);
    static const char *const digests[] = { DIGEST("a"), DIGEST("b"), DIGEST("c"), DIGEST("d") };
    for (size_t i = 0; i < COUNT(digests); i++)
        CHECK(door_ask_bound(d, d->admin, NULL, VERB_BLOB_ADD, &(struct blob_view){ .id = digests[i], .size = 5 }).ok);
    const char *job = door_submit(d, d->admin, FMT(d, "{\"command\":[\"true\"],\"gpus\":64,\"workdir\":\"%s\"}", digests[1]));
    CHECK(door_ask(d, d->admin, VERB_IMAGE_ADD, FMT(d, "{\"name\":\"base\",\"digest\":\"%s\"}", digests[2])).ok);
    pass_days(d, 20);
    CHECK(rows_in(d, "blob") == 4 && door_ask_bound(d, d->admin, NULL, VERB_BLOB_ADD, &(struct blob_view){ .id = digests[3], .size = 5 }).ok);
    pass_days(d, 12);
    CHECK(!blob_is_there(d, digests[0]) && blob_is_there(d, digests[1]) && blob_is_there(d, digests[2]) && blob_is_there(d, digests[3]));
    CHECK(blobs_dropped(d) == 1 && !door_ask(d, d->admin, VERB_JOB_SUBMIT, FMT(d, "{\"command\":[\"true\"],\"workdir\":\"%s\"}", digests[0])).ok);
    pass_days(d, 31);
    CHECK(!blob_is_there(d, digests[3]) && blob_is_there(d, digests[1]) && blob_is_there(d, digests[2]));
    CHECK(door_ask(d, d->admin, VERB_JOB_CANCEL, FMT(d, "{\"job\":\"%s\"}", job)).ok
          && door_ask(d, d->admin, VERB_IMAGE_REMOVE, "{\"image\":\"base\"}").ok);
    pass_days(d, 20);
    CHECK(rows_in(d, "blob") == 2);             /* they were in use until now */
    CHECK(door_submit(d, d->admin, FMT(d, "{\"command\":[\"true\"],\"gpus\":64,\"workdir\":\"%s\"}", digests[2])));
    pass_days(d, 12);
    CHECK(rows_in(d, "blob") == 1 && blob_is_there(d, digests[2]) && door_crash(d));
    check_books(d, "after uploads were dropped");
}

TEST(more_uploads_in_use_than_a_step_looks_at_hold_up_nothing)
{
    AUTO(door_free) struct door *d = door_new(false);
    struct err err = { 0 };
    enum { IMAGES = 120 };
    CHECK(d->store->how->run(d->control->writer.conn,
                             "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 240) INSERT INTO blob (project, digest, size, created_ms)"
                             " SELECT (SELECT MIN(id) FROM project), 'sha256:' || printf('%064d', i), 1, 1 FROM n", &err));
    for (int i = 1; i <= IMAGES; i++)
        CHECK(door_ask(d, d->admin, VERB_IMAGE_ADD, FMT(d, "{\"name\":\"i%d\",\"digest\":\"sha256:%064d\"}", i, i)).ok);
    pass_days(d, 40);
    CHECK(rows_in(d, "blob") == IMAGES && blobs_dropped(d) == 240 - IMAGES);
}

TEST(join_tokens_go_a_day_after_they_were_used_or_no_longer_good)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    door_node(d, "n1", 0, key);                                     /* with one that is used */
    CHECK(door_ask(d, d->admin, VERB_NODE_TOKEN, NULL).ok);         /* nobody comes with this one */
    CHECK(rows_in(d, "jointoken") == 2);
    pass_days(d, 1);
    struct answer fresh = door_ask(d, d->admin, VERB_NODE_TOKEN, "{\"expires_in\":\"24h\"}");
    CHECK(rows_in(d, "jointoken") == 2 && map_count(memory_of(d)->tokens) == 2);    /* one was no longer good 23 hours ago */
    sim_wall_jump(d->sim, day_ms / 2);
    door_run(d, 70 * 1000);
    CHECK(rows_in(d, "jointoken") == 1 && map_count(memory_of(d)->tokens) == 1);
    CHECK(door_ask(d, NULL, VERB_NODE_JOIN, FMT(d, "{\"token\":\"%s\",\"name\":\"n2\"}", get(&fresh, "token"))).ok);
    CHECK(door_ask(d, key, VERB_NODE_REPORT, "{\"kind\":\"report\"}").err.rc != RC_UNAUTHENTICATED);
    pass_days(d, 2);
    CHECK(rows_in(d, "jointoken") == 0 && door_crash(d) && map_count(memory_of(d)->tokens) == 0);
    check_books(d, "after tokens were dropped");
}
