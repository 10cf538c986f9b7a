#include "door.h"
#include <stdio.h>

static struct answer drain(struct door *d, const char *node, const char *more)
{
    return door_ask(d, d->admin, VERB_NODE_DRAIN, FMT(d, "{\"node\":\"%s\"%s}", node, more));
}

static const char *state_of(struct door *d, const char *node)
{
    struct answer a = door_ask(d, d->admin, VERB_NODE_GET, FMT(d, "{\"node\":\"%s\"}", node));
    return get(&a, "state");
}

static const char *running(struct door *d, const char *key, int64_t n, const char *more)
{
    const char *job = door_submit(d, d->admin, FMT(d, "{\"command\":[\"true\"]%s}", more));
    CHECK(door_place(d, job, 0, "n1", -1) && door_report(d, key, n, door_attempt(d, job, 0), "started", NULL).ok);
    return job;
}

static void pass(struct door *d, const char *one, const char *two, int64_t seconds)
{
    for (int64_t s = 0; s < seconds; s += 5) {
        door_run(d, 5000);
        CHECK(door_ask(d, one, VERB_NODE_REPORT, "{\"kind\":\"beat\"}").ok);
        if (two)
            CHECK(door_ask(d, two, VERB_NODE_REPORT, "{\"kind\":\"beat\"}").ok);
    }
}

static bool told_to_stop(struct door *d, const char *job)
{
    int64_t id;
    struct job *j = id_parse(job, PREFIX_JOB, &id) ? map_get(memory_of(d)->jobs, id) : NULL;
    struct task *t = j ? job_task(j, 0) : NULL;
    return t && t->attempt && t->attempt->stop;
}

TEST(a_node_that_holds_nothing_is_drained_at_once_and_used_again_when_it_is_ready)
{
    AUTO(door_free) struct door *d = door_new(true);
    char key[SECRET_TEXT];
    door_node(d, "n1", 1, key);
    struct answer a = drain(d, "n1", "");
    CHECK(a.ok && text_is(get(&a, "state"), "drained") && text_is(get(&a, "drain_until"), "")
          && text_is(state_of(d, "n1"), "drained"));
    CHECK(door_events(d, "node.draining") == 1 && door_events(d, "node.drained") == 1);
    const char *job = door_submit(d, d->admin, "{\"command\":[\"true\"]}");
    door_run(d, 1000);
    CHECK(text_is(job_word(d, job, "state"), "queued"));
    CHECK(door_crash(d) && text_is(state_of(d, "n1"), "drained"));
    CHECK(door_hello(d, key, "n1", 1, 1, (struct texts){ 0 }).ok && text_is(state_of(d, "n1"), "drained"));
    CHECK(door_ask(d, d->admin, VERB_NODE_UPDATE, "{\"node\":\"n1\",\"state\":\"ready\"}").ok && text_is(state_of(d, "n1"), "ready"));
    door_run(d, 1000);
    CHECK(text_is(job_word(d, job, "state"), "placed"));
    check_books(d, "drained");
}

TEST(what_runs_may_finish_until_the_deadline_and_then_runs_elsewhere_unbilled_and_without_a_failed_try)
{
    AUTO(door_free) struct door *d = door_new(false);
    char one[SECRET_TEXT], two[SECRET_TEXT];
    door_node(d, "n1", 1, one);
    door_node(d, "n2", 1, two);
    const char *ends = running(d, one, 1, ""), *stays = running(d, one, 2, ",\"grace\":\"7s\"");
    struct answer a = drain(d, "n1", ",\"deadline\":\"10m\"");
    CHECK(a.ok && text_is(get(&a, "state"), "draining") && text_given(get(&a, "drain_until")));
    CHECK(!door_place(d, door_submit(d, d->admin, "{\"command\":[\"true\"]}"), 0, "n1", -1));
    CHECK(door_report(d, one, 3, door_attempt(d, ends, 0), "ended", ",\"outcome\":\"succeeded\"").ok);
    pass(d, one, two, 300);
    CHECK(door_crash(d)); /* the deadline is remembered */
    struct texts runs = { (const char *[]){ door_attempt(d, stays, 0) }, 1 };
    CHECK(door_hello(d, one, "n1", 1, 4, runs).ok && door_hello(d, two, "n2", 1, 1, (struct texts){ 0 }).ok);
    pass(d, one, two, 280);
    CHECK(text_is(job_word(d, ends, "state"), "done") && !told_to_stop(d, stays));
    check_books(d, "before the deadline");
    pass(d, one, two, 30);
    CHECK(told_to_stop(d, stays) && text_is(job_word(d, stays, "state"), "running") && door_events(d, "task.evicted") == 1);
    struct answer hello = door_hello(d, one, "n1", 1, 4, runs);
    struct json *o = hello.json ? json_get(hello.json, "orders")->first : NULL;
    CHECK(o && json_get(o, "stop") && json_get(o, "stop")->flag && text_is(json_text(o, "stop_as"), "node_fault") && json_int(o, "grace_s", 0) == 7);
    struct answer attempts = door_ask(d, d->admin, VERB_JOB_ATTEMPTS, FMT(d, "{\"job\":\"%s\"}", stays));
    CHECK(text_is(item(d, &attempts, 0, "state"), "stopping") && strstr(item(d, &attempts, 0, "detail"), "drained"));
    check_books(d, "at the deadline");
    CHECK(door_crash(d) && told_to_stop(d, stays));
    CHECK(door_hello(d, one, "n1", 1, 4, runs).ok && door_hello(d, two, "n2", 1, 1, (struct texts){ 0 }).ok);
    CHECK(door_report(d, one, 4, door_attempt(d, stays, 0), "ended", ",\"outcome\":\"node_fault\"").ok);
    CHECK(text_is(job_word(d, stays, "state"), "queued") && text_is(state_of(d, "n1"), "drained") && door_events(d, "node.drained") == 1);
    CHECK(door_place(d, stays, 0, "n2", -1) && door_report(d, two, 1, door_attempt(d, stays, 0), "ended", ",\"outcome\":\"exited\",\"exit_code\":3").ok);
    CHECK(text_is(job_word(d, stays, "state"), "failed") && rows_in(d, "usage") == 2); /* of the third nobody saw a start */
    struct answer usage = door_ask(d, d->admin, VERB_USAGE_SUM, NULL);
    CHECK(text_is(item(d, &usage, 0, "tasks"), "1"));
    check_books(d, "after the drain");
}

/* More often than a task may be failed by its nodes. */
TEST(a_drain_is_no_fault_of_the_node_however_often_it_comes)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    int64_t n = 1;
    door_node(d, "n1", 1, key);
    const char *job = door_submit(d, d->admin, "{\"command\":[\"true\"]}");
    for (int i = 0; i < 25; i++) {
        CHECK(door_place(d, job, 0, "n1", -1) && door_report(d, key, n++, door_attempt(d, job, 0), "started", NULL).ok);
        CHECK(drain(d, "n1", ",\"requeue\":true").ok && told_to_stop(d, job));
        CHECK(door_report(d, key, n++, door_attempt(d, job, 0), "ended", ",\"outcome\":\"node_fault\"").ok);
        CHECK(text_is(job_word(d, job, "state"), "queued") && text_is(job_word(d, job, "reason"), "Priority")); /* and without a pause */
        CHECK(door_ask(d, d->admin, VERB_NODE_UPDATE, "{\"node\":\"n1\",\"state\":\"ready\"}").ok);
    }
    CHECK(door_place(d, job, 0, "n1", -1) && door_report(d, key, n++, door_attempt(d, job, 0), "ended", ",\"outcome\":\"exited\",\"exit_code\":3").ok);
    CHECK(text_is(job_word(d, job, "state"), "failed")); /* nor does it give tries away */
    check_books(d, "drained often");
}

TEST(a_drain_stops_at_once_or_never_where_that_is_asked_for)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    door_node(d, "n1", 1, key);
    const char *job = running(d, key, 1, "");
    struct answer both = drain(d, "n1", ",\"wait\":true,\"requeue\":true"), later = drain(d, "n1", ",\"wait\":true,\"deadline\":\"1h\"");
    CHECK(!both.ok && text_is(both.err.field, "wait") && !later.ok && text_is(later.err.field, "wait"));
    CHECK(text_is(state_of(d, "n1"), "ready") && !drain(d, "ghost", "").ok);
    struct answer waits = drain(d, "n1", ",\"wait\":true");
    CHECK(waits.ok && text_is(get(&waits, "state"), "draining") && !text_given(get(&waits, "drain_until")));
    pass(d, key, NULL, 2 * 3600);
    CHECK(!told_to_stop(d, job));
    CHECK(door_ask(d, d->admin, VERB_NODE_UPDATE, "{\"node\":\"n1\",\"state\":\"cordoned\"}").ok && text_is(state_of(d, "n1"), "cordoned"));
    CHECK(drain(d, "n1", ",\"requeue\":true").ok && told_to_stop(d, job));
    check_books(d, "at once");
}

TEST(a_jump_of_the_wall_clock_stops_nothing_early)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    door_node(d, "n1", 1, key);
    const char *job = running(d, key, 1, "");
    CHECK(drain(d, "n1", ",\"deadline\":\"1h\"").ok);
    sim_wall_jump(d->sim, 2 * 3600 * 1000);
    pass(d, key, NULL, 60);
    CHECK(!told_to_stop(d, job));
    pass(d, key, NULL, 3600);
    CHECK(told_to_stop(d, job));
}
