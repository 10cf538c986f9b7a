/* The audit chain: what is in it, and that nobody can change it unseen. */
#include "control/audit.h"
#include "store/store_internal.h"
#include "world.h"
#include <stdio.h>
#include <stdlib.h>

static bool sql(struct door *d, const char *text)
{
    struct err err = { 0 };
    bool ok = d->store->how->run(d->control->writer.conn, text, &err);
    if (!ok)
        printf("# %s: %s\n", text, err.text);
    CHECK(ok);
    return ok;
}

/* How many problems the whole chain has; *first: the number of the first. */
static int64_t problems(struct door *d, int64_t *first)
{
    int64_t found = 0;
    *first = 0;
    for (const char *page = ""; page;) {
        struct answer a = door_ask(d, d->admin, VERB_AUDIT_VERIFY, FMT(d, "{\"page\":\"%s\"}", page));
        CHECK(a.ok);
        struct json *list = a.ok ? json_get(a.json, "problems") : NULL;
        for (struct json *m = list ? list->first : NULL; m; m = m->next, found++)
            if (!found)
                *first = json_int(m, "number", -1);
        CHECK(!a.ok || text_is(get(&a, "state"), list && list->first ? "broken" : "whole"));
        page = text_given(get(&a, "next")) ? get(&a, "next") : NULL;
    }
    return found;
}
static bool whole(struct door *d)
{
    int64_t first;
    return problems(d, &first) == 0;
}
static int64_t number(struct door *d) { return memory_of(d)->audit.number; }

/* What the law says of a request, told apart from how it is done. */
static int expected(const struct wish *x, enum who who, const struct answer *a)
{
    const struct verb *v = &verbs[x->verb];
    bool write = v->kind == VERB_WRITE || v->kind == VERB_INSIDE, agent = who == NODE_ONE;
    if (a->ok)
        return (write && !agent) || x->verb == VERB_JOB_EXEC || x->verb == VERB_JOB_DIAL || x->verb == VERB_JOB_SSH || x->verb == VERB_JOB_FILES
               || x->verb == VERB_VOLUME_FILES || x->verb == VERB_BACKUP;
    enum rc rc = a->err.rc;
    bool refused = rc == RC_UNAUTHENTICATED || rc == RC_DENIED || rc == RC_NOT_FOUND
                   || rc == RC_OVER_QUOTA || rc == RC_TOO_MANY;
    if (x->verb == VERB_BLOB_HEAD && rc == RC_NOT_FOUND)
        return 0;
    return refused || (write && !agent);
}

TEST(every_write_verb_and_every_refusal_leaves_exactly_one_entry)
{
    struct world w;
    world_make(&w, false);
    AUTO(door_free) struct door *d = w.d;
    door_run(d, 61000);
    size_t acts = 0, refusals = 0;
    for (size_t i = 0; i < wish_count; i++) {
        const struct wish *x = &wishes[i];
        door_run(d, 61000); /* what was counted is told, and counting begins anew */
        for (enum who who = 0; who < WHO_COUNT; who++) {
            if (who > BAD_KEY || who == REMOVED)
                continue; /* they come from one address and are counted together */
            int64_t before = number(d);
            struct answer a = world_ask(&w, who, NULL, x, BY_ID);
            door_run(d, 5);
            bool seen = who == BAD_KEY && verbs[x->verb].roles; /* as nobody, like the one without a key */
            int want = seen ? 0 : expected(x, who, &a);
            if (verbs[x->verb].roles == 0 && who > 0)
                want = 0; /* one address, one verb, one reason */
            CHECK(number(d) == before + want);
            if (number(d) != before + want)
                printf("# %s as %s: %lld entries, not %d (%s %s)\n", verbs[x->verb].name,
                       people[who].name, (long long)(number(d) - before), want,
                       a.ok ? "ok" : rc_name(a.err.rc), a.err.text);
            acts += a.ok && want;
            refusals += !a.ok && want;
        }
    }
    CHECK(acts > 30 && refusals > 200);
    CHECK(whole(d));
}

/* --- changing what was written */

static void make_some(struct door *d)
{
    for (int i = 0; i < 5; i++) {
        door_submit(d, d->admin, "{\"command\":[\"true\"]}");
        door_ask(d, "ak_wrong", VERB_JOB_LIST, NULL);
        door_ask(d, d->admin, VERB_JOB_GET, FMT(d, "{\"job\":\"none%d\"}", i));
        door_run(d, 61000);
    }
}

static void check_change(struct door *d, const char *change, const char *back, int64_t shows)
{
    int64_t first = 0;
    if (!sql(d, change))
        return;
    bool told = problems(d, &first) > 0 && (!shows || first == shows);
    CHECK(told);
    if (!told)
        printf("# '%s' shows at %lld, not %lld\n", change, (long long)first, (long long)shows);
    sql(d, back);
}

TEST(a_row_of_which_any_column_was_changed_is_named)
{
    static const struct { const char *name; bool text; } event[] = {
        { "at_ms" }, { "project" }, { "kind", true }, { "subject", true }, { "actor", true },
        { "actor_id" }, { "apikey" }, { "address", true }, { "request", true }, { "data", true },
        { "verb", true }, { "chain", true },
    }, note[] = {
        { "at_ms" }, { "project" }, { "verb", true }, { "subject", true }, { "actor", true },
        { "actor_id" }, { "apikey" }, { "address", true }, { "request", true },
        { "result", true }, { "times" }, { "chain", true },
    };
    AUTO(door_free) struct door *d = door_new(false);
    make_some(d);
    CHECK(whole(d));
    struct rows r;
    struct err err;
    CHECK(store_query(d->conn, ST_AUDIT_RANGE, (struct value[]){ V_INT(4), V_INT(12) }, 2, d->mem, &r, &err));
    for (size_t i = 0; i < r.count; i++) {
        int64_t n = row_int(&r, i, 0);
        bool is_event = row_int(&r, i, 1) != 0;
        const char *table = is_event ? "event" : "audit_note", *key = is_event ? "audit" : "number";
        for (size_t k = 0; k < (is_event ? COUNT(event) : COUNT(note)); k++) {
            const char *c = is_event ? event[k].name : note[k].name;
            bool text = is_event ? event[k].text : note[k].text;
            check_change(d,
                         text ? FMT(d, "UPDATE %s SET %s = %s || 'x' WHERE %s = %lld", table, c, c, key, (long long)n)
                              : FMT(d, "UPDATE %s SET %s = %s + 1 WHERE %s = %lld", table, c, c, key, (long long)n),
                         text ? FMT(d, "UPDATE %s SET %s = substr(%s, 1, length(%s) - 1) WHERE %s = %lld", table, c, c, c, key, (long long)n)
                              : FMT(d, "UPDATE %s SET %s = %s - 1 WHERE %s = %lld", table, c, c, key, (long long)n),
                         n);
        }
        if (is_event) {
            check_change(d, FMT(d, "UPDATE event SET idem = 'x' WHERE audit = %lld", (long long)n),
                         FMT(d, "UPDATE event SET idem = NULL WHERE audit = %lld", (long long)n), n);
            check_change(d, FMT(d, "UPDATE event SET seq = seq + 1000 WHERE audit = %lld", (long long)n),
                         FMT(d, "UPDATE event SET seq = seq - 1000 WHERE audit = %lld", (long long)n), n);
        }
        check_change(d, FMT(d, "UPDATE %s SET %s = %s + 1000 WHERE %s = %lld", table, key, key, key, (long long)n),
                     FMT(d, "UPDATE %s SET %s = %s - 1000 WHERE %s = %lld", table, key, key, key, (long long)n + 1000), n);
    }
    CHECK(whole(d));
}

TEST(a_row_that_was_removed_inserted_or_moved_and_an_end_that_was_cut_off_show)
{
    AUTO(door_free) struct door *d = door_new(false);
    make_some(d);
    int64_t last = number(d);
    CHECK(whole(d) && last > 12);
    for (int64_t n = 1; n <= last; n++)
        check_change(d, FMT(d, "CREATE TABLE keep AS SELECT * FROM event WHERE audit = %lld; CREATE TABLE keep2 AS SELECT * FROM audit_note WHERE number = %lld;"
                            "DELETE FROM event WHERE audit = %lld; DELETE FROM audit_note WHERE number = %lld",
                            (long long)n, (long long)n, (long long)n, (long long)n),
                     "INSERT INTO event SELECT * FROM keep; INSERT INTO audit_note SELECT * FROM keep2; DROP TABLE keep; DROP TABLE keep2", n);
    check_change(d, "INSERT INTO audit_note SELECT 4, at_ms, project, verb, subject, actor, actor_id, apikey, address, request, result, times, chain FROM audit_note WHERE number = 2",
                 "DELETE FROM audit_note WHERE number = 4", 4); /* 4 is a submit: its row is an event */
    check_change(d, FMT(d, "UPDATE audit_note SET number = -1 WHERE number = 3; UPDATE audit_note SET number = 3 WHERE number = 2;"
                        "UPDATE audit_note SET number = 2 WHERE number = -1"),
                 "UPDATE audit_note SET number = -1 WHERE number = 3; UPDATE audit_note SET number = 3 WHERE number = 2;"
                 "UPDATE audit_note SET number = 2 WHERE number = -1", 2);
    check_change(d, FMT(d, "CREATE TABLE keep AS SELECT * FROM audit_note WHERE number = %lld; DELETE FROM audit_note WHERE number = %lld", (long long)last, (long long)last),
                 "INSERT INTO audit_note SELECT * FROM keep; DROP TABLE keep", last);
    check_change(d, FMT(d, "CREATE TABLE keep AS SELECT * FROM audit_head; UPDATE audit_head SET number = number - 1,"
                        " chain = (SELECT chain FROM audit_note WHERE number = %lld)", (long long)last - 1),
                 "DELETE FROM audit_head; INSERT INTO audit_head SELECT * FROM keep; DROP TABLE keep", 0);
    check_change(d, FMT(d, "INSERT INTO audit_note SELECT number + 1, at_ms, project, verb, subject, actor, actor_id, apikey, address, request, result, times, chain FROM audit_note WHERE number = %lld", (long long)last),
                 FMT(d, "DELETE FROM audit_note WHERE number = %lld", (long long)last + 1), last + 1);
    CHECK(whole(d));
}

TEST(an_end_that_was_cut_off_together_with_its_mark_leaves_a_hole_for_ever)
{
    AUTO(door_free) struct door *d = door_new(false);
    make_some(d);
    int64_t last = number(d), first;
    sql(d, FMT(d, "DELETE FROM audit_note WHERE number = %lld; DELETE FROM audit_head", (long long)last));
    door_crash(d);
    door_submit(d, d->admin, "{\"command\":[\"true\"]}");
    door_run(d, 10);
    CHECK(problems(d, &first) > 0 && first == last);
}

/* --- what happens to the store */

TEST(the_chain_goes_on_through_crashes_and_wherever_the_store_fails)
{
    for (int nth = 1;; nth++) {
        AUTO(door_free) struct door *d = door_new(false);
        door_submit(d, d->admin, "{\"command\":[\"true\"]}");
        fault_arm(nth);
        door_ask(d, d->admin, VERB_JOB_SUBMIT, "{\"command\":[\"true\"]}");
        door_ask(d, d->admin, VERB_JOB_CANCEL, "{\"job\":\"none\"}");
        door_run(d, 3000);
        bool fired = fault_fired();
        fault_arm(0);
        door_run(d, 3000);
        int64_t last = number(d);
        CHECK(whole(d) && last >= 2 && last <= 3 && (fired || last == 3));
        door_crash(d);
        CHECK(number(d) == last);
        door_submit(d, d->admin, "{\"command\":[\"true\"]}");
        CHECK(number(d) == last + 1 && whole(d));
        if (!fired)
            break;
    }
}

TEST(a_flood_of_refusals_is_one_entry_at_once_and_one_with_the_count_a_minute)
{
    AUTO(door_free) struct door *d = door_new(false);
    int64_t before = number(d);
    for (int i = 0; i < 500; i++)
        CHECK(!door_ask(d, "ak_wrong", VERB_JOB_LIST, NULL).ok);
    door_run(d, 5);
    CHECK(number(d) == before + 1);
    door_run(d, 62000);
    CHECK(number(d) == before + 2);
    struct answer a = door_ask(d, d->admin, VERB_AUDIT_LIST, "{\"limit\":2}");
    CHECK(text_is(item(d, &a, 0, "times"), "499") && text_is(item(d, &a, 1, "times"), "1"));
    CHECK(text_is(item(d, &a, 0, "state"), "unauthenticated") && text_is(item(d, &a, 0, "address"), "test")
          && text_is(item(d, &a, 0, "name"), "job.list"));
    before = number(d);
    for (int i = 0; i < 5000; i++) { /* each from somewhere else */
        struct credential from = { 0 };
        snprintf(from.address, sizeof from.address, "2001:db8::%x", i);
        control_refused(d->control, "job.list", &from, &(struct caller){ 0 }, RC_TOO_MANY);
    }
    door_run(d, 100);
    CHECK(number(d) == before + 1024);
    door_run(d, 62000);
    CHECK(number(d) == before + 1025);
    a = door_ask(d, d->admin, VERB_AUDIT_LIST, "{\"limit\":1}");
    CHECK(text_is(item(d, &a, 0, "times"), "3976") && text_is(item(d, &a, 0, "address"), "many"));
    CHECK(whole(d));
}

TEST(what_was_counted_is_told_when_the_server_stops)
{
    AUTO(door_free) struct door *d = door_new(false);
    for (int i = 0; i < 7; i++)
        door_ask(d, "ak_wrong", VERB_JOB_LIST, NULL);
    struct frozen f;
    door_freeze(d, &f);
    d = door_thaw(&f, false);
    struct answer a = door_ask(d, d->admin, VERB_AUDIT_LIST, "{\"limit\":2}");
    CHECK(text_is(item(d, &a, 0, "times"), "6") && text_is(item(d, &a, 1, "times"), "1") && whole(d));
    frozen_done(&f);
}

TEST(what_a_server_that_does_not_write_has_refused_is_in_the_chain_of_the_one_that_does)
{
    AUTO(door_free) struct door *d = door_new(false);
    struct err err = { 0 };
    struct note notes[] = { { .at_ms = 5, .times = 3, .verb = "job.list", .result = "denied", .actor = "eve", .address = "10.1.2.3" },
                            { .at_ms = 6, .times = 1, .verb = "job.get", .result = "not_found", .subject = "x" } };
    int64_t before = number(d);
    CHECK(audit_leave(d->control, &(struct note_ask){ notes, COUNT(notes) }, &err) && rows_in(d, "audit_inbox") == 2);
    door_run(d, 70 * 1000);
    CHECK(number(d) == before + 2 && rows_in(d, "audit_inbox") == 0 && whole(d));
    struct answer a = door_ask(d, d->admin, VERB_AUDIT_LIST, "{\"result\":\"denied\"}");
    CHECK(item_count(&a) == 1 && text_is(item(d, &a, 0, "actor"), "eve") && text_is(item(d, &a, 0, "times"), "3")
          && text_is(item(d, &a, 0, "address"), "10.1.2.3"));
}

/* --- reading it */

TEST(the_audit_is_read_in_pages_both_ways_and_by_what_is_asked_for)
{
    AUTO(door_free) struct door *d = door_new(false);
    for (int i = 0; i < 1300; i++)
        door_submit(d, d->admin, "{\"command\":[\"true\"]}");
    door_ask(d, d->admin, VERB_JOB_CANCEL, "{\"job\":\"none\"}");
    door_run(d, 10);
    int64_t last = number(d), expect = last, seen = 0;
    for (const char *page = ""; page; ) {
        struct answer a = door_ask(d, d->admin, VERB_AUDIT_LIST, FMT(d, "{\"limit\":333,\"page\":\"%s\"}", page));
        CHECK(a.ok);
        for (size_t i = 0; i < item_count(&a); i++, seen++)
            CHECK(strtoll(item(d, &a, i, "id"), NULL, 10) == expect--);
        page = text_given(get(&a, "next")) ? get(&a, "next") : NULL;
    }
    CHECK(seen == last);
    seen = 0, expect = 701;
    for (const char *page = ""; page; ) {
        struct answer a = door_ask(d, d->admin, VERB_AUDIT_LIST, FMT(d, "{\"limit\":250,\"since\":700,\"page\":\"%s\"}", page));
        for (size_t i = 0; i < item_count(&a); i++, seen++)
            CHECK(strtoll(item(d, &a, i, "id"), NULL, 10) == expect++);
        page = text_given(get(&a, "next")) ? get(&a, "next") : NULL;
    }
    CHECK(seen == last - 700);
    struct answer one = door_ask(d, d->admin, VERB_AUDIT_LIST, "{\"result\":\"not_found\"}");
    CHECK(item_count(&one) == 1 && text_is(item(d, &one, 0, "subject"), "none")
          && text_is(item(d, &one, 0, "name"), "job.cancel") && text_is(item(d, &one, 0, "actor"), "admin"));
    CHECK(item_count(&(struct answer){ .json = door_ask(d, d->admin, VERB_AUDIT_LIST, "{\"verb\":\"job.submit\",\"limit\":1000}").json }) == 1000);
    CHECK(!door_ask(d, d->admin, VERB_AUDIT_LIST, "{\"page\":\"x\"}").ok);
}

TEST(a_projects_admin_sees_what_belongs_to_the_project_and_nothing_else)
{
    struct world w;
    world_make(&w, false);
    AUTO(door_free) struct door *d = w.d;
    for (int i = 0; i < 700; i++)
        door_submit(d, w.keys[i % 7 ? DEV : STRANGER], "{\"command\":[\"true\"]}");
    door_ask(d, w.keys[VERA], VERB_JOB_SUBMIT, "{\"command\":[\"true\"]}");
    door_run(d, 10);
    int64_t seen = 0, before = INT64_MAX;
    for (const char *page = ""; page;) {
        struct answer a = door_ask(d, w.keys[ADA], VERB_AUDIT_LIST, FMT(d, "{\"limit\":90,\"page\":\"%s\"}", page));
        CHECK(a.ok);
        for (size_t i = 0; i < item_count(&a); i++, seen++) {
            int64_t n = strtoll(item(d, &a, i, "id"), NULL, 10);
            CHECK(n < before && text_is(item(d, &a, i, "project"), thing_id(&w, "project")));
            before = n;
        }
        page = text_given(get(&a, "next")) ? get(&a, "next") : NULL;
    }
    CHECK(seen > 600);
    struct answer refused = door_ask(d, w.keys[ADA], VERB_AUDIT_LIST, "{\"result\":\"denied\",\"limit\":1}");
    CHECK(text_is(item(d, &refused, 0, "actor"), "vera"));
    CHECK(!door_ask(d, w.keys[DEV], VERB_AUDIT_LIST, NULL).ok && !door_ask(d, w.keys[ADA], VERB_AUDIT_VERIFY, NULL).ok);
    CHECK(door_ask(d, w.keys[AUD], VERB_AUDIT_VERIFY, NULL).ok && door_ask(d, w.keys[AUD], VERB_AUDIT_LIST, NULL).ok);
}
