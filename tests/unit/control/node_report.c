#include "door.h"
#include "store/store_internal.h"
#include <stdio.h>
#include <stdlib.h>

static struct answer beat(struct door *d, const char *key)
{
    return door_ask(d, key, VERB_NODE_REPORT, "{\"kind\":\"beat\",\"beat\":9}");
}

static void pass(struct door *d, const char *key,
                 int64_t seconds) /* time passes while one node goes on beating */
{
    for (int64_t s = 0; s < seconds; s += 5) {
        door_run(d, 5000);
        if (key)
            CHECK(beat(d, key).ok);
    }
}

TEST(a_join_token_works_once_and_in_its_time)
{
    AUTO(door_free) struct door *d = door_new(false);
    struct answer t = door_ask(d, d->admin, VERB_NODE_TOKEN, "{\"expires_in\":\"60s\"}"),
                  late = door_ask(d, d->admin, VERB_NODE_TOKEN, "{\"expires_in\":\"60s\"}");
    const char *token = get(&t, "token");
    CHECK(!on_disk(d, token));
    struct answer taken
        = door_ask(d, NULL, VERB_NODE_JOIN, FMT(d, "{\"token\":\"%s\",\"name\":\"n1\"}", token));
    CHECK(taken.ok && text_starts(get(&taken, "key"), "nk_") && !on_disk(d, get(&taken, "key")));
    struct answer again
        = door_ask(d, NULL, VERB_NODE_JOIN, FMT(d, "{\"token\":\"%s\",\"name\":\"n2\"}", token));
    CHECK(!again.ok && again.err.rc == RC_UNAUTHENTICATED);
    struct answer same = door_ask(
        d, NULL, VERB_NODE_JOIN, FMT(d, "{\"token\":\"%s\",\"name\":\"n1\"}", get(&late, "token")));
    CHECK(!same.ok && same.err.rc == RC_CONFLICT); /* and the token is still good */
    door_run(d, 61000);
    struct answer expired = door_ask(
        d, NULL, VERB_NODE_JOIN, FMT(d, "{\"token\":\"%s\",\"name\":\"n3\"}", get(&late, "token")));
    CHECK(!expired.ok && text_is(expired.err.text, again.err.text) && rows_in(d, "node") == 1);
    CHECK(door_crash(d));
    CHECK(
        !door_ask(d, NULL, VERB_NODE_JOIN, FMT(d, "{\"token\":\"%s\",\"name\":\"n4\"}", token)).ok);
    check_books(d, "tokens");
}

TEST(a_node_must_say_hello_first_and_what_it_says_must_hold_together)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    door_node(d, "n1", 1, key);
    CHECK(door_crash(d));
    struct answer early = beat(d, key);
    CHECK(!early.ok && early.err.rc == RC_CONFLICT);
    struct gpu_info twice[] = { { .index = 0, .uuid = "a", .model = "x", .healthy = true },
                                { .index = 0, .uuid = "b", .model = "x", .healthy = true } };
    struct gpu_info high[] = { { .index = 40, .uuid = "a", .model = "x", .healthy = true } };
    struct gpu_info many[SCHED_GPUS + 1] = { 0 };
    struct objects lists[] = { { twice, 2 }, { high, 1 }, { many, COUNT(many) } };
    const char *before = memory_text(d, memory_of(d), 0);
    for (size_t i = 0; i < COUNT(lists); i++) {
        struct hello h
            = { .kind = "hello",
                .next = 1,
                .info = { .hostname = "n1", .cpu_milli = 1, .mem_mib = 1, .gpus = lists[i] } };
        struct answer a = door_ask_bound(d, key, NULL, VERB_NODE_HELLO, &h);
        CHECK(!a.ok && text_is(a.err.field, "info.gpus"));
    }
    CHECK(text_is(before, memory_text(d, memory_of(d), 0)));
}

TEST(each_item_of_a_report_counts_exactly_once)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    door_node(d, "n1", 1, key);
    const char *job = door_submit(d, d->admin, "{\"command\":[\"true\"]}");
    CHECK(door_place(d, job, 0, "n1", -1));
    const char *a = door_attempt(d, job, 0);
    struct answer gap
        = door_report(d, key, 2, a, "ended", ",\"outcome\":\"exited\",\"exit_code\":1");
    CHECK(gap.ok && get_int(&gap, "kept") == 0
          && text_is(job_word(d, job, "state"), "placed")); /* 1 is missing */
    struct answer first = door_report(d, key, 1, a, "started", NULL);
    CHECK(first.ok && get_int(&first, "kept") == 1
          && text_is(job_word(d, job, "state"), "running"));
    int64_t events = rows_in(d, "event");
    struct answer again = door_report(
        d, key, 1, a, "ended",
        ",\"outcome\":\"exited\",\"exit_code\":1"); /* the number counts, not the words */
    CHECK(again.ok && get_int(&again, "kept") == 1 && rows_in(d, "event") == events
          && text_is(job_word(d, job, "state"), "running"));
    CHECK(door_report(d, key, 2, a, "started", NULL).ok
          && text_is(job_word(d, job, "state"), "running")); /* told twice */
    CHECK(door_crash(d));
    struct answer hello = door_hello(d, key, "n1", 1, 3, (struct texts){ 0 });
    CHECK(hello.ok && get_int(&hello, "kept") == 2);
    CHECK(door_report(d, key, 3, a, "ended", ",\"outcome\":\"succeeded\"").ok
          && door_report(d, key, 3, a, "ended", ",\"outcome\":\"succeeded\"").ok);
    CHECK(text_is(job_word(d, job, "state"), "done") && rows_in(d, "usage") == 1);
    check_books(d, "items");
}

TEST(a_start_that_is_told_again_is_no_news_however_the_task_stands)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    door_node(d, "n1", 1, key);
    const char *job = door_submit(d, d->admin, "{\"command\":[\"true\"]}");
    CHECK(door_place(d, job, 0, "n1", -1));
    const char *a = door_attempt(d, job, 0);
    CHECK(door_report(d, key, 1, a, "started", NULL).ok);
    for (int n = 2; n < 4; n++) {
        int64_t events = rows_in(d, "event");
        CHECK(door_report(d, key, n, a, "started", NULL).ok && rows_in(d, "event") == events);
        CHECK(n > 2 || door_ask(d, d->admin, VERB_JOB_CANCEL, FMT(d, "{\"job\":\"%s\"}", job)).ok);
    }
    CHECK(door_report(d, key, 4, a, "ended", ",\"outcome\":\"cancelled\"").ok && rows_in(d, "usage") == 1);
    check_books(d, "told again");
}

TEST(a_task_whose_start_is_told_with_its_end_has_the_same_story)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    struct answer stories[2];
    door_node(d, "n1", 1, key);
    for (int short_one = 0, n = 0; short_one < 2; short_one++) {
        const char *job = door_submit(d, d->admin, "{\"command\":[\"true\"],\"count\":2}");
        int64_t before = memory_of(d)->last_event;
        CHECK(door_place(d, job, 0, "n1", -1));
        const char *a = door_attempt(d, job, 0);
        if (!short_one)
            CHECK(door_report(d, key, ++n, a, "started", NULL).ok);
        CHECK(door_report(d, key, ++n, a, "ended", FMT(d, ",\"outcome\":\"succeeded\",\"started_ms\":%lld", (long long)os_wall_ms(d->os))).ok);
        CHECK(text_is(job_word(d, job, "state"), "running") && job_number(d, job, "done") == 1);    /* of two */
        stories[short_one] = door_ask(d, d->admin, VERB_EVENT_LIST, FMT(d, "{\"since\":%lld}", (long long)before));
    }
    CHECK(item_count(&stories[0]) == 3 && item_count(&stories[1]) == 3 && rows_in(d, "usage") == 2);
    for (size_t i = 0; i < item_count(&stories[0]); i++)
        CHECK(text_is(item(d, &stories[0], i, "name"), item(d, &stories[1], i, "name")));
    check_books(d, "told at once");
}

/* Its first words were not on the disk when the power was cut: its node knows only that it is not wanted any more. */
TEST(one_that_had_begun_and_left_no_trace_is_no_good_end_though_it_was_to_be_stopped)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    door_node(d, "n1", 1, key);
    for (int n = 1, traces = 0; traces < 2; traces++) {
        const char *job = door_submit(d, d->admin, "{\"command\":[\"true\"]}");
        CHECK(door_place(d, job, 0, "n1", -1));
        const char *a = door_attempt(d, job, 0);
        CHECK(door_report(d, key, n++, a, "started", NULL).ok);
        door_run(d, 2000);
        CHECK(door_ask(d, d->admin, VERB_JOB_CANCEL, FMT(d, "{\"job\":\"%s\"}", job)).ok);
        CHECK(door_report(d, key, n++, a, "ended", FMT(d, ",\"outcome\":\"cancelled\"%s", traces ? "" : ",\"started_ms\":0")).ok);
        CHECK(text_is(job_word(d, job, "state"), "cancelled"));
        struct answer list = door_ask(d, d->admin, VERB_JOB_ATTEMPTS, FMT(d, "{\"job\":\"%s\"}", job));
        CHECK(text_is(item(d, &list, 0, "outcome"), traces ? "cancelled" : "node_fault"));
        check_books(d, "no trace");
    }
    struct answer usage = door_ask(d, d->admin, VERB_USAGE_SUM, NULL);
    CHECK(rows_in(d, "usage") == 2 && item_count(&usage) == 1 && text_is(item(d, &usage, 0, "seconds"), "2"));
}

TEST(a_report_that_changes_nothing_writes_nothing)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    door_node(d, "n1", 1, key);
    int64_t events = rows_in(d, "event");
    struct answer a = beat(d, key);
    CHECK(a.ok && get_int(&a, "beat") == 9 && rows_in(d, "event") == events);
}

TEST(a_node_speaks_only_of_what_it_holds)
{
    AUTO(door_free) struct door *d = door_new(false);
    char one[SECRET_TEXT], two[SECRET_TEXT];
    door_node(d, "n1", 1, one);
    door_node(d, "n2", 1, two);
    const char *job = door_submit(d, d->admin, "{\"command\":[\"true\"]}");
    CHECK(door_place(d, job, 0, "n1", -1));
    const char *a = door_attempt(d, job, 0);
    struct answer liar = door_report(d, two, 1, a, "ended", ",\"outcome\":\"succeeded\"");
    CHECK(liar.ok && get_int(&liar, "kept") == 1
          && strstr(liar.text, a)); /* kept, and told to forget it */
    struct answer ghost
        = door_report(d, two, 2, "att-0000000000zzz", "ended", ",\"outcome\":\"succeeded\"");
    CHECK(ghost.ok && text_is(job_word(d, job, "state"), "placed") && rows_in(d, "usage") == 0);
    struct answer cancelled = door_report(d, one, 1, a, "ended",
                                          ",\"outcome\":\"cancelled\""); /* nobody asked for that */
    CHECK(cancelled.ok && text_is(job_word(d, job, "state"), "queued")
          && map_count(memory_of(d)->attempts) == 0);
    check_books(d, "liars");
}

static int64_t billed_s(struct door *d)
{
    struct answer a = door_ask(d, d->admin, VERB_USAGE_SUM, "{}");
    struct json *items = json_get(a.json, "items");
    return a.ok && items && items->first ? json_int(items->first, "seconds", -1) : 0;
}

/* A node that lies to bill somebody, one whose clock is wrong, and one that is right. */
TEST(a_node_cannot_bill_more_than_has_passed)
{
    static const struct {
        int64_t started_ms, ended_ms; /* against the server's clock */
        int64_t least_s, most_s;
    } rows[] = {
        { -INT64_C(1700000000000), 0, 0, 10 },
        { 0, INT64_C(1000000000000), 0, 10 },
        { -INT64_C(100000000), INT64_C(100000000), 0, 10 },
        { -7200000, -7200000 + 8000, 8, 8 }, /* two hours behind: shifted, and as long as it was */
        { 7200000 - 8000, 7200000, 8, 8 },
        { -8000, 0, 8, 8 },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(door_free) struct door *d = door_new(false);
        char key[SECRET_TEXT];
        door_node(d, "n1", 1, key);
        const char *job = door_submit(d, d->admin, "{\"command\":[\"true\"]}");
        CHECK(door_place(d, job, 0, "n1", -1));
        const char *a = door_attempt(d, job, 0);
        door_run(d, 10000);
        int64_t now = os_wall_ms(d->os);
        CHECK(door_ask(d, key, VERB_NODE_REPORT,
                       arena_printf(d->mem,
                                    "{\"kind\":\"report\",\"items\":[{\"n\":1,\"attempt\":\"%s\","
                                    "\"news\":\"ended\",\"at_ms\":%lld,\"started_ms\":%lld,"
                                    "\"outcome\":\"succeeded\"}]}",
                                    a, (long long)(now + rows[i].ended_ms),
                                    (long long)(now + rows[i].started_ms)))
                  .ok);
        int64_t s = billed_s(d);
        CHECK(rows_in(d, "usage") == 1 && s >= rows[i].least_s && s <= rows[i].most_s);
        check_books(d, "lies about time");
    }
}

TEST(a_silent_node_is_down_after_seconds_and_its_tasks_are_lost_after_their_lease_and_a_margin)
{
    AUTO(door_free) struct door *d = door_new(false);
    char one[SECRET_TEXT], two[SECRET_TEXT];
    door_node(d, "n1", 1, one);
    door_node(d, "n2", 1, two);
    const char *moves = door_submit(d, d->admin, "{\"command\":[\"true\"]}"),
               *waits = door_submit(d, d->admin, "{\"command\":[\"true\"],\"on_lost\":\"wait\"}");
    CHECK(door_place(d, moves, 0, "n1", -1) && door_place(d, waits, 0, "n1", -1));
    const char *lost = door_attempt(d, moves, 0), *kept = door_attempt(d, waits, 0);
    CHECK(door_report(d, one, 1, lost, "started", NULL).ok
          && door_report(d, one, 2, kept, "started", NULL).ok);
    pass(d, two, 15);
    CHECK(state_node(memory_of(d), "n1")->state == NODE_READY);
    pass(d, two, 10);
    CHECK(state_node(memory_of(d), "n1")->state == NODE_DOWN
          && state_node(memory_of(d), "n2")->state == NODE_READY);
    struct answer list = door_ask(d, d->admin, VERB_NODE_LIST, NULL);
    CHECK(text_is(item(d, &list, 0, "state"), "down"));
    pass(d, two, 285); /* 310 s: the lease of 300 s is over, the margin of 15 s is not */
    CHECK(text_is(door_attempt(d, moves, 0), lost)
          && text_is(job_word(d, moves, "state"), "running") && !door_place(d, moves, 0, "n2", -1));
    pass(d, two, 10);
    CHECK(text_is(job_word(d, moves, "state"), "queued") && rows_in(d, "usage") == 1);
    CHECK(door_place(d, moves, 0, "n2", -1) && text_is(job_word(d, waits, "state"), "running"));
    const char *second = door_attempt(d, moves, 0);
    CHECK(!text_is(lost, second));
    /* It comes back and tells what it was doing: of the lost one nothing counts any more, the
     * other goes on. */
    struct texts running = { (const char *[]){ lost, kept }, 2 };
    struct answer hello = door_hello(d, one, "n1", 1, 3, running);
    CHECK(hello.ok && strstr(hello.text, kept)
          && state_node(memory_of(d), "n1")->state == NODE_READY);
    CHECK(door_report(d, one, 3, lost, "ended", ",\"outcome\":\"succeeded\"").ok
          && text_is(job_word(d, moves, "state"), "placed"));
    CHECK(rows_in(d, "usage") == 1 && text_is(door_attempt(d, moves, 0), second));
    CHECK(door_report(d, one, 4, kept, "ended", ",\"outcome\":\"succeeded\"").ok
          && text_is(job_word(d, waits, "state"), "done"));
    struct answer usage = door_ask(d, d->admin, VERB_USAGE_SUM, NULL);
    CHECK(item_count(&usage) == 1
          && text_is(item(d, &usage, 0, "tasks"), "1")); /* the lost one is not billed */
    check_books(d, "lost");
}

TEST(a_restart_of_the_server_is_not_the_silence_of_a_node)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    door_node(d, "n1", 1, key);
    const char *job = door_submit(d, d->admin, "{\"command\":[\"true\"]}");
    CHECK(door_place(d, job, 0, "n1", -1));
    const char *a = door_attempt(d, job, 0);
    pass(d, NULL, 200);
    CHECK(door_crash(d));
    pass(d, NULL, 200); /* silent for 400 s, but we have listened for only 200 */
    CHECK(text_is(door_attempt(d, job, 0), a) && map_count(memory_of(d)->attempts) == 1);
    pass(d, NULL, 120);
    CHECK(map_count(memory_of(d)->attempts) == 0 && text_is(job_word(d, job, "state"), "queued"));
}

TEST(a_jump_of_the_wall_clock_loses_nobody)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    door_node(d, "n1", 1, key);
    const char *job = door_submit(d, d->admin, "{\"command\":[\"true\"]}");
    CHECK(door_place(d, job, 0, "n1", -1)
          && door_report(d, key, 1, door_attempt(d, job, 0), "started", NULL).ok);
    sim_wall_jump(d->sim, 3600 * 1000);
    pass(d, NULL, 10);
    CHECK(map_count(memory_of(d)->attempts) == 1
          && state_node(memory_of(d), "n1")->state == NODE_READY);
    sim_wall_jump(d->sim, -2 * 3600 * 1000);
    pass(d, key, 10);
    CHECK(door_report(d, key, 2, door_attempt(d, job, 0), "ended", ",\"outcome\":\"succeeded\"")
              .ok); /* before it began, says the clock */
    struct answer usage = door_ask(d, d->admin, VERB_USAGE_SUM, NULL);
    CHECK(rows_in(d, "usage") == 1 && item_count(&usage) == 1
          && text_is(item(d, &usage, 0, "seconds"), "0"));
}

TEST(a_node_with_a_wiped_disk_begins_anew_and_runs_nothing_twice)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    door_node(d, "n1", 1, key);
    const char *a = door_submit(d, d->admin, "{\"command\":[\"true\"]}"),
               *b = door_submit(d, d->admin, "{\"command\":[\"true\"]}");
    CHECK(door_place(d, a, 0, "n1", -1) && door_place(d, b, 0, "n1", -1));
    const char *lost = door_attempt(d, a, 0), *kept = door_attempt(d, b, 0);
    CHECK(door_report(d, key, 1, lost, "started", NULL).ok
          && door_report(d, key, 2, kept, "started", NULL).ok);
    struct answer hello
        = door_hello(d, key, "n1", 1, 1, (struct texts){ (const char *[]){ kept }, 1 });
    CHECK(hello.ok && get_int(&hello, "kept") == 0 && strstr(hello.text, kept));
    struct json *orders = json_get(hello.json, "orders");
    for (struct json *o = orders->first; o; o = o->next)
        CHECK(!text_is(json_text(o, "attempt"), lost));
    CHECK(text_is(job_word(d, a, "state"), "queued")
          && text_is(job_word(d, b, "state"), "running"));
    CHECK(door_report(d, key, 1, kept, "ended", ",\"outcome\":\"succeeded\"").ok
          && text_is(job_word(d, b, "state"), "done")); /* its numbers are new */
    CHECK(door_place(d, a, 0, "n1", -1) && !text_is(door_attempt(d, a, 0), lost));
    check_books(d, "wiped");
}

TEST(a_removed_nodes_key_stops_and_its_tasks_wait_out_their_lease)
{
    AUTO(door_free) struct door *d = door_new(false);
    char one[SECRET_TEXT], two[SECRET_TEXT];
    door_node(d, "n1", 1, one);
    door_node(d, "n2", 1, two);
    const char *moves = door_submit(d, d->admin, "{\"command\":[\"true\"]}"),
               *waits = door_submit(d, d->admin, "{\"command\":[\"true\"],\"on_lost\":\"wait\"}");
    CHECK(door_place(d, moves, 0, "n1", -1) && door_place(d, waits, 0, "n1", -1));
    CHECK(door_ask(d, d->admin, VERB_NODE_REMOVE, "{\"node\":\"n1\"}").ok);
    struct answer gone = beat(d, one);
    CHECK(!gone.ok && gone.err.rc == RC_UNAUTHENTICATED && map_count(memory_of(d)->attempts) == 0);
    CHECK(text_is(job_word(d, waits, "state"), "failed")
          && text_is(job_word(d, waits, "outcome"), "node_lost")); /* it was to run nowhere else */
    CHECK(text_is(job_word(d, moves, "state"), "queued")
          && !door_place(d, moves, 0, "n2", -1)); /* it may still run there */
    pass(d, two, 310);
    CHECK(!door_place(d, moves, 0, "n2", -1));
    pass(d, two, 10);
    CHECK(door_place(d, moves, 0, "n2", -1));
    check_books(d, "removed");
}

TEST(a_cordoned_node_gets_nothing_new_and_stays_cordoned_through_silence)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    door_node(d, "n1", 1, key);
    struct answer get_one = door_ask(d, d->admin, VERB_NODE_GET, "{\"node\":\"n1\"}");
    struct answer a
        = door_ask_full(d, d->admin, NULL, VERB_NODE_UPDATE,
                        "{\"node\":\"n1\",\"state\":\"cordoned\"}", NULL, get_one.version);
    CHECK(a.ok && text_is(get(&a, "state"), "cordoned"));
    struct answer shown = door_ask(d, d->admin, VERB_NODE_GET, "{\"node\":\"n1\"}");
    CHECK(text_is(a.text, shown.text)); /* told as it is shown */
    struct answer stale
        = door_ask_full(d, d->admin, NULL, VERB_NODE_UPDATE,
                        "{\"node\":\"n1\",\"state\":\"ready\"}", NULL, get_one.version);
    CHECK(!stale.ok && stale.err.rc == RC_STALE);
    CHECK(!door_place(d, door_submit(d, d->admin, "{\"command\":[\"true\"]}"), 0, "n1", -1));
    pass(d, NULL, 30);
    CHECK(state_node(memory_of(d), "n1")->state == NODE_DOWN);
    CHECK(door_hello(d, key, "n1", 1, 1, (struct texts){ 0 }).ok
          && state_node(memory_of(d), "n1")->state == NODE_CORDONED);
    struct answer down
        = door_ask(d, d->admin, VERB_NODE_UPDATE, "{\"node\":\"n1\",\"state\":\"down\"}");
    CHECK(!down.ok && text_is(down.err.field, "state"));
    CHECK(door_ask(d, d->admin, VERB_NODE_UPDATE, "{\"node\":\"n1\",\"state\":\"ready\"}").ok
          && state_node(memory_of(d), "n1")->state == NODE_READY);
    check_books(d, "cordoned");
}

TEST(where_a_node_is_the_operator_says_and_where_he_does_not_its_agent)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    door_node(d, "n1", 1, key);
    struct node *n = state_node(memory_of(d), "n1");
    n->info.where.at[PLACE_REGION] = "eu", n->info.where.at[PLACE_RACK] = "r1"; /* as if its agent had said so */
    struct answer a = door_ask(d, d->admin, VERB_NODE_UPDATE, "{\"node\":\"n1\",\"zone\":\"a\",\"rack\":\"r2\"}");
    CHECK(a.ok && text_is(get(&a, "topology"), "eu/a//r2") && text_is(get(&a, "region"), "eu") && text_is(get(&a, "state"), "ready"));
    CHECK(door_crash(d)); /* what the operator said is kept, and what he did not say is not */
    n = state_node(memory_of(d), "n1");
    a = door_ask(d, d->admin, VERB_NODE_GET, "{\"node\":\"n1\"}");
    CHECK(text_is(get(&a, "topology"), "/a//r2") && text_is(get(&a, "zone"), "a"));
    const char *home = door_submit(d, d->admin, "{\"command\":[\"true\"],\"image\":\"debian:12\",\"zone\":\"a\"}"),
               *abroad = door_submit(d, d->admin, "{\"command\":[\"true\"],\"image\":\"debian:12\",\"region\":\"us\"}");
    CHECK(door_place(d, home, 0, "n1", -1) && !door_place(d, abroad, 0, "n1", -1));
    a = door_ask(d, d->admin, VERB_NODE_UPDATE, "{\"node\":\"n1\",\"zone\":\"\"}");
    CHECK(a.ok && text_is(get(&a, "topology"), "///r2"));
    CHECK(!door_ask(d, d->admin, VERB_NODE_UPDATE, "{\"node\":\"n1\",\"zone\":\"a/b\"}").ok);
    CHECK(!door_ask(d, d->admin, VERB_NODE_UPDATE, "{\"node\":\"n1\"}").ok);
    check_books(d, "where");
}

/* What was placed after the backup may still run where nobody sees it. */
TEST(in_a_restored_store_nothing_is_placed_until_what_ran_unseen_has_ended)
{
    AUTO(door_free) struct door *d = door_new(true);
    char key[SECRET_TEXT];
    struct err err = { 0 };
    door_node(d, "n1", 2, key);
    CHECK(d->store->how->run(d->conn, "INSERT INTO restored (at_ms) VALUES (1)", &err));
    CHECK(door_crash(d) && memory_of(d)->restored);
    const char *job = door_submit(d, d->admin, "{\"command\":[\"true\"],\"image\":\"debian:12\",\"gpus\":1}");
    for (int s = 0; s < 300; s += 10) {
        CHECK(door_hello(d, key, "n1", 2, 1, (struct texts){ 0 }).ok);
        door_run(d, 10000);
        if (text_given(door_attempt(d, job, 0)))
            CHECK(!"placed too early");
    }
    CHECK(rows_in(d, "restored") == 1);
    for (int s = 0; s < 20; s += 5) {
        CHECK(door_hello(d, key, "n1", 2, 1, (struct texts){ 0 }).ok);
        door_run(d, 5000);
    }
    CHECK(text_given(door_attempt(d, job, 0)) && rows_in(d, "restored") == 0 && !memory_of(d)->restored);
    check_books(d, "after the restore");
}
