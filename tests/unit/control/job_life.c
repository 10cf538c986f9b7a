#include "door.h"
#include <stdio.h>
#include <stdlib.h>

/* A door with one node and no planner: tasks are placed by hand, so each step can be looked at. */
struct one {
    struct door *d;
    char key[SECRET_TEXT];
    int64_t n;
};
static struct one one_new(void)
{
    struct one o = { .d = door_new(false), .n = 1 };
    door_node(o.d, "n1", 4, o.key);
    return o;
}
static void end_as(struct one *o, const char *job, int64_t task, const char *outcome, int code)
{
    const char *a = door_attempt(o->d, job, task);
    CHECK(door_report(o->d, o->key, o->n++, a, "started", NULL).ok);
    CHECK(door_report(o->d, o->key, o->n++, a, "ended",
                      FMT(o->d, ",\"outcome\":\"%s\",\"exit_code\":%d", outcome, code))
              .ok);
}
static bool run_as(struct one *o, const char *job, const char *outcome, int code)
{
    bool placed = door_place(o->d, job, 0, "n1", -1);
    if (placed)
        end_as(o, job, 0, outcome, code);
    return placed;
}

static void wait_out(struct one *o)
{
    for (int i = 0; i < 5; i++) {
        door_run(o->d, 15000);
        CHECK(door_ask(o->d, o->key, VERB_NODE_REPORT, "{\"kind\":\"beat\"}").ok);
    }
}

TEST(how_a_task_ended_is_told_apart)
{
    static const struct {
        const char *outcome;
        int code, expected;
        const char *state;
    } rows[] = {
        { "succeeded", 0, 0, "done" },          { "exited", 3, 3, "failed" },
        { "signaled", 0, 1, "failed" },         { "out_of_memory", 137, 137, "failed" },
        { "deadline", 0, 1, "failed" },         { "image_not_found", 0, 1, "failed" },
        { "start_failed", 127, 127, "failed" },
    };
    struct one o = one_new();
    AUTO(door_free) struct door *d = o.d;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *job = door_submit(d, d->admin, "{\"command\":[\"true\"]}");
        CHECK(run_as(&o, job, rows[i].outcome, rows[i].code));
        CHECK(text_is(job_word(d, job, "state"), rows[i].state)
              && text_is(job_word(d, job, "outcome"), rows[i].outcome));
        CHECK(job_number(d, job, "exit_code") == rows[i].expected);
    }
    check_books(d, "outcomes");
}

TEST(a_task_is_retried_as_often_as_its_limit_says_after_its_pause)
{
    struct one o = one_new();
    AUTO(door_free) struct door *d = o.d;
    const char *job = door_submit(d, d->admin,
                                  "{\"command\":[\"true\"],\"retries\":2,\"retry_delay\":\"10s\"}");
    for (int i = 0; i < 3; i++) {
        CHECK(run_as(&o, job, "exited", 4));
        if (i == 2)
            break;
        CHECK(text_is(job_word(d, job, "state"), "queued")
              && text_is(job_word(d, job, "reason"), "RetryDelay"));
        CHECK(!door_place(d, job, 0, "n1", -1)); /* its pause is not over */
        door_run(d, 9000);
        CHECK(!door_place(d, job, 0, "n1", -1));
        CHECK(door_ask(d, o.key, VERB_NODE_REPORT, "{\"kind\":\"beat\"}").ok);
        door_run(d, 1500);
    }
    CHECK(text_is(job_word(d, job, "state"), "failed") && job_number(d, job, "exit_code") == 4);
    struct answer list = door_ask(d, d->admin, VERB_JOB_ATTEMPTS, FMT(d, "{\"job\":\"%s\"}", job));
    CHECK(item_count(&list) == 3 && rows_in(d, "usage") == 3);
    check_books(d, "retries");
}

TEST(a_task_is_retried_only_after_the_outcomes_named)
{
    struct one o = one_new();
    AUTO(door_free) struct door *d = o.d;
    const char *body = "{\"command\":[\"true\"],\"retry\":{\"limit\":5,\"delay\":\"0s\",\"on\":["
                       "\"out_of_memory\",\"deadline\"]}}";
    const char *a = door_submit(d, d->admin, body), *b = door_submit(d, d->admin, body);
    CHECK(run_as(&o, a, "exited", 1) && text_is(job_word(d, a, "state"), "failed"));
    CHECK(run_as(&o, b, "out_of_memory", 137) && text_is(job_word(d, b, "state"), "queued"));
    CHECK(run_as(&o, b, "deadline", 0) && run_as(&o, b, "succeeded", 0)
          && text_is(job_word(d, b, "state"), "done") && job_number(d, b, "exit_code") == 0);
}

TEST(our_own_faults_are_retried_beside_the_limit_and_not_billed_but_not_for_ever)
{
    struct one o = one_new();
    AUTO(door_free) struct door *d = o.d;
    const char *job
        = door_submit(d, d->admin, "{\"command\":[\"true\"]}"); /* no retries of its own */
    int tries = 0;
    for (; tries < 40 && run_as(&o, job, "node_fault", 0); tries++)
        wait_out(&o);
    CHECK(tries == 21 && text_is(job_word(d, job, "state"), "failed")
          && text_is(job_word(d, job, "outcome"), "node_fault"));
    struct answer usage = door_ask(d, d->admin, VERB_USAGE_SUM, NULL);
    CHECK(rows_in(d, "usage") == 21 && item_count(&usage) == 0); /* kept, and worth nothing */
    const char *mixed
        = door_submit(d, d->admin, "{\"command\":[\"true\"],\"retries\":1,\"retry_delay\":\"0s\"}");
    CHECK(run_as(&o, mixed, "node_fault", 0) && run_as(&o, mixed, "exited", 1)
          && run_as(&o, mixed, "preempted", 0));
    CHECK(text_is(job_word(d, mixed, "state"), "queued")
          && text_is(job_word(d, mixed, "reason"), "RetryDelay"));
    wait_out(&o); /* after faults of ours it grows */
    CHECK(run_as(&o, mixed, "exited", 1) && text_is(job_word(d, mixed, "state"), "failed"));
    check_books(d, "our faults");
}

TEST(a_fault_that_others_may_have_caused_counts_for_nothing_and_is_not_billed)
{
    struct one o = one_new();
    AUTO(door_free) struct door *d = o.d;
    const char *job = door_submit(d, d->admin, "{\"command\":[\"true\"]}");
    for (int i = 0; i < 30; i++) {
        CHECK(door_place(d, job, 0, "n1", -1));         /* at once */
        CHECK(door_report(d, o.key, o.n++, door_attempt(d, job, 0), "ended", ",\"outcome\":\"node_fault\",\"blame\":\"bystander\"").ok);
        CHECK(text_is(job_word(d, job, "state"), "queued"));
    }
    int64_t id = 0;
    CHECK(id_parse(job, PREFIX_JOB, &id));
    struct job *j = map_get(memory_of(d)->jobs, id);
    struct task *t = j ? map_get(j->tasks, 0) : NULL;
    CHECK(t && t->faults == 0 && t->evictions == 30);
    struct answer usage = door_ask(d, d->admin, VERB_USAGE_SUM, NULL);
    CHECK(item_count(&usage) == 0);
    CHECK(door_place(d, job, 0, "n1", -1));
    CHECK(door_report(d, o.key, o.n++, door_attempt(d, job, 0), "ended", ",\"outcome\":\"signaled\",\"blame\":\"bystander\"").ok);      /* only with a fault of ours */
    CHECK(text_is(job_word(d, job, "state"), "failed") && text_is(job_word(d, job, "outcome"), "signaled"));
    check_books(d, "bystanders");
}

TEST(who_may_have_made_a_shared_gpu_fail_three_times_is_not_tried_again)
{
    struct one o = one_new();
    AUTO(door_free) struct door *d = o.d;
    const char *job = door_submit(d, d->admin, "{\"command\":[\"true\"],\"retries\":5}");
    for (int i = 0; i < 3; i++) {
        CHECK(text_is(job_word(d, job, "state"), "queued"));
        CHECK(door_place(d, job, 0, "n1", -1));
        CHECK(door_report(d, o.key, o.n++, door_attempt(d, job, 0), "ended", ",\"outcome\":\"node_fault\",\"blame\":\"suspect\",\"detail\":\"it failed\"").ok);
        if (i < 2)
            wait_out(&o);
        if (i == 1)
            CHECK(door_crash(d) && door_hello(d, o.key, "n1", 4, o.n, (struct texts){ 0 }).ok);       /* it is not forgotten */
    }
    CHECK(text_is(job_word(d, job, "state"), "failed") && text_is(job_word(d, job, "outcome"), "node_fault"));
    struct answer list = door_ask(d, d->admin, VERB_JOB_ATTEMPTS, FMT(d, "{\"job\":\"%s\"}", job));
    CHECK(item_count(&list) == 3 && strstr(list.text, "at fault 3 times"));
    check_books(d, "suspects");
}

TEST(that_a_task_may_have_made_a_gpu_fail_is_forgiven_after_a_day)
{
    struct one o = one_new();
    AUTO(door_free) struct door *d = o.d;
    const char *job = door_submit(d, d->admin, "{\"command\":[\"true\"]}");
    int64_t id = 0;
    CHECK(id_parse(job, PREFIX_JOB, &id));
    for (int i = 0; i < 4; i++) {
        struct job *j = map_get(memory_of(d)->jobs, id);
        struct task *t = j ? map_get(j->tasks, 0) : NULL;
        if (t && i == 2)
            t->suspected_ms -= 25 * 3600 * 1000;        /* a day and more goes by */
        CHECK(door_place(d, job, 0, "n1", -1));
        CHECK(door_report(d, o.key, o.n++, door_attempt(d, job, 0), "ended", ",\"outcome\":\"node_fault\",\"blame\":\"suspect\"").ok);
        CHECK(text_is(job_word(d, job, "state"), "queued"));
        wait_out(&o);
    }
}

TEST(an_array_is_one_row_until_its_tasks_are_placed)
{
    struct one o = one_new();
    AUTO(door_free) struct door *d = o.d;
    const char *job
        = door_submit(d, d->admin, "{\"command\":[\"true\"],\"count\":10000,\"cpus\":1}");
    CHECK(rows_in(d, "job") == 1 && rows_in(d, "task") == 0
          && job_number(d, job, "queued") == 10000);
    CHECK(!door_place(d, job, 1, "n1", -1)); /* in order */
    CHECK(door_place(d, job, 0, "n1", -1) && !door_place(d, job, 0, "n1", -1)
          && door_place(d, job, 1, "n1", -1) && rows_in(d, "task") == 2);
    end_as(&o, job, 1, "exited", 2);
    CHECK(job_number(d, job, "failed") == 1 && text_is(job_word(d, job, "state"), "running"));
    CHECK(door_crash(d));
    CHECK(job_number(d, job, "queued") == 9999 && job_number(d, job, "failed") == 1);
    struct answer a = door_ask(d, d->admin, VERB_JOB_CANCEL, FMT(d, "{\"job\":\"%s\"}", job));
    CHECK(a.ok && get_int(&a, "tasks") == 9999 && text_is(get(&a, "state"), "stopping"));
    CHECK(door_hello(d, o.key, "n1", 4, o.n, (struct texts){ 0 }).ok);
    CHECK(
        door_report(d, o.key, o.n++, door_attempt(d, job, 0), "ended", ",\"outcome\":\"cancelled\"")
            .ok);
    CHECK(text_is(job_word(d, job, "state"), "failed") && job_number(d, job, "exit_code") == 2
          && job_number(d, job, "cancelled") == 9999);
    check_books(d, "array");
}

TEST(ten_thousand_tasks_are_placed_run_and_done)
{
    AUTO(door_free) struct door *d = door_new(true);
    char key[SECRET_TEXT];
    door_node(d, "n1", 1, key);
    const char *job = door_submit(
        d, d->admin, "{\"command\":[\"true\"],\"count\":10000,\"cpus\":0.1,\"memory\":\"16MB\"}");
    int64_t n = 1;
    for (int round = 0; round < 60 && !text_is(job_word(d, job, "state"), "done"); round++) {
        door_run(d, 1100);
        AUTO(str_done) struct str text = { 0 };
        struct attempt *a;
        size_t count = 0;
        str_text(&text, "{\"kind\":\"report\",\"items\":[");
        for (size_t i = 0; (a = map_next(memory_of(d)->attempts, &i)) && count < 1000; count++) {
            char id[ID_TEXT];
            str_printf(&text,
                       "%s{\"n\":%lld,\"attempt\":\"%s\",\"news\":\"ended\",\"at_ms\":%lld,"
                       "\"outcome\":\"succeeded\"}",
                       count ? "," : "", (long long)n++, id_text(id, PREFIX_ATTEMPT, a->id),
                       (long long)os_wall_ms(d->os));
        }
        str_text(&text, "]}");
        CHECK(door_ask(d, key, VERB_NODE_REPORT, text.at).ok);
    }
    CHECK(text_is(job_word(d, job, "state"), "done") && job_number(d, job, "done") == 10000
          && rows_in(d, "task") == 10000 && rows_in(d, "attempt") == 10000);
    check_books(d, "ten thousand");
    check_picture(d, "ten thousand");
}

/* --- what comes after what */
static const char *after(struct one *o, const char *ref, const char *when)
{
    return door_submit(o->d, o->d->admin,
                       FMT(o->d,
                           "{\"command\":[\"true\"],\"after\":[{\"job\":\"%s\",\"when\":\"%s\"}]}",
                           ref, when));
}

TEST(a_job_starts_after_what_it_waits_for_ended_as_it_should)
{
    static const struct {
        const char *when, *outcome;
        bool starts;
    } rows[] = {
        { "ok", "succeeded", true }, { "ok", "exited", false },      { "any", "succeeded", true },
        { "any", "exited", true },   { "fail", "succeeded", false }, { "fail", "exited", true },
    };
    struct one o = one_new();
    AUTO(door_free) struct door *d = o.d;
    for (size_t i = 0; i < COUNT(rows); i++)
        for (int restart = 0; restart < 2; restart++) {
            const char *first
                = door_submit(d, d->admin, "{\"name\":\"first\",\"command\":[\"true\"]}"),
                *second = after(&o, "first", rows[i].when);
            CHECK(text_is(job_word(d, second, "reason"), "Dependency")
                  && !door_place(d, second, 0, "n1", -1));
            if (restart) { /* what it waits for is known again */
                CHECK(door_crash(d) && door_hello(d, o.key, "n1", 4, o.n, (struct texts){ 0 }).ok);
                CHECK(!door_place(d, second, 0, "n1", -1));
            }
            CHECK(run_as(&o, first, rows[i].outcome, text_is(rows[i].outcome, "exited")));
            CHECK(text_is(job_word(d, second, "state"), rows[i].starts ? "queued" : "failed"));
            CHECK(rows[i].starts || text_is(job_word(d, second, "outcome"), "dependency_failed"));
            CHECK(door_place(d, second, 0, "n1", -1) == rows[i].starts);
            struct answer late = door_ask(
                d, d->admin, VERB_JOB_SUBMIT,
                FMT(d, "{\"command\":[\"true\"],\"after\":[{\"job\":\"%s\",\"when\":\"%s\"}]}",
                    first, rows[i].when));
            CHECK(late.ok == rows[i].starts && (late.ok || text_is(late.err.field, "after")));
            check_books(d, "after");
        }
}

TEST(a_chain_falls_to_its_end_and_a_long_one_does_not_fall_through_the_stack)
{
    struct one o = one_new();
    AUTO(door_free) struct door *d = o.d;
    enum { LONG = 600 };
    const char *first = door_submit(d, d->admin, "{\"command\":[\"true\"]}"), *last = first;
    const char *mourner = after(&o, first, "fail");
    for (int i = 0; i < LONG; i++)
        last = after(&o, last, "ok");
    const char *wake = after(&o, last, "any");
    CHECK(rows_in(d, "job") == LONG + 3);
    CHECK(door_ask(d, d->admin, VERB_JOB_CANCEL, FMT(d, "{\"job\":\"%s\"}", first)).ok);
    CHECK(text_is(job_word(d, last, "state"), "failed")
          && text_is(job_word(d, last, "outcome"), "dependency_failed"));
    CHECK(text_is(job_word(d, wake, "reason"), "Priority")
          && text_is(job_word(d, mourner, "reason"), "Priority"));
    CHECK(map_count(memory_of(d)->jobs) == 2);
    check_books(d, "chain");
}

TEST(a_job_that_waits_for_several_starts_after_the_last)
{
    struct one o = one_new();
    AUTO(door_free) struct door *d = o.d;
    const char *a = door_submit(d, d->admin, "{\"command\":[\"true\"]}"),
               *b = door_submit(d, d->admin, "{\"command\":[\"true\"]}");
    const char *both = door_submit(
        d, d->admin,
        FMT(d, "{\"command\":[\"true\"],\"dependency\":[\"afterok:%s:%s\",\"any:%s\"]}", a, b, a));
    CHECK(run_as(&o, b, "succeeded", 0) && text_is(job_word(d, both, "reason"), "Dependency"));
    CHECK(run_as(&o, a, "succeeded", 0) && text_is(job_word(d, both, "reason"), "Priority")
          && door_place(d, both, 0, "n1", -1));
}

TEST(a_name_means_the_newest_job_of_that_name_when_it_was_asked_for)
{
    struct one o = one_new();
    AUTO(door_free) struct door *d = o.d;
    const char *old = door_submit(d, d->admin, "{\"name\":\"prep\",\"command\":[\"true\"]}"),
               *mid = door_submit(d, d->admin, "{\"name\":\"prep\",\"command\":[\"true\"]}");
    const char *train = after(&o, "prep", "ok");
    const char *late = door_submit(
        d, d->admin, "{\"name\":\"prep\",\"command\":[\"true\"]}"); /* changes nothing for it */
    CHECK(run_as(&o, old, "succeeded", 0) && run_as(&o, late, "succeeded", 0)
          && text_is(job_word(d, train, "reason"), "Dependency"));
    CHECK(run_as(&o, mid, "succeeded", 0) && text_is(job_word(d, train, "reason"), "Priority"));
    struct answer none = door_ask(d, d->admin, VERB_JOB_SUBMIT,
                                  "{\"command\":[\"true\"],\"after\":[{\"job\":\"nosuch\"}]}");
    CHECK(!none.ok && text_is(none.err.field, "after"));
}

TEST(nothing_waits_for_itself)
{
    struct one o = one_new();
    AUTO(door_free) struct door *d = o.d;
    struct answer self
        = door_ask(d, d->admin, VERB_JOB_SUBMIT,
                   "{\"name\":\"loop\",\"command\":[\"true\"],\"after\":[{\"job\":\"loop\"}]}");
    CHECK(!self.ok && text_is(self.err.field, "after") && map_count(memory_of(d)->jobs) == 0);
    const char *a = door_submit(d, d->admin, "{\"name\":\"a\",\"command\":[\"true\"]}");
    const char *b = door_submit(
        d, d->admin, "{\"name\":\"b\",\"command\":[\"true\"],\"after\":[{\"job\":\"a\"}]}");
    const char *again = door_submit(d, d->admin,
                                    "{\"name\":\"a\",\"command\":[\"true\"],\"after\":[{\"job\":"
                                    "\"b\"}]}"); /* a waits for b waits for the old a */
    CHECK(run_as(&o, a, "succeeded", 0) && run_as(&o, b, "succeeded", 0)
          && run_as(&o, again, "succeeded", 0));
    CHECK(map_count(memory_of(d)->jobs) == 0);
}

TEST(usage_is_from_ready_to_end_and_an_attempt_that_never_was_ready_costs_nothing)
{
    struct one o = one_new();
    AUTO(door_free) struct door *d = o.d;
    const char *job = door_submit(
        d, d->admin, "{\"command\":[\"true\"],\"gpus\":\"1\",\"cpus\":2,\"memory\":\"4GB\"}");
    CHECK(door_place(d, job, 0, "n1", 2));
    const char *a = door_attempt(d, job, 0);
    door_run(d, 4000);
    CHECK(door_report(d, o.key, o.n++, a, "started", NULL).ok);
    door_run(d, 7000);
    CHECK(door_report(d, o.key, o.n++, a, "ended", ",\"outcome\":\"exited\",\"exit_code\":1").ok);
    struct answer u = door_ask(d, d->admin, VERB_USAGE_SUM, "{\"by\":\"project,user,flavor\"}");
    CHECK(item_count(&u) == 1 && text_is(item(d, &u, 0, "project"), "default")
          && text_is(item(d, &u, 0, "user"), "admin")
          && text_is(item(d, &u, 0, "flavor"), "h200.1x"));
    int64_t seconds = strtoll(item(d, &u, 0, "seconds"), NULL, 10);
    CHECK(seconds >= 7 && seconds < 9);
    const char *never = door_submit(d, d->admin, "{\"command\":[\"true\"]}");
    CHECK(door_place(d, never, 0, "n1", -1)
          && door_report(d, o.key, o.n++, door_attempt(d, never, 0), "ended",
                         ",\"outcome\":\"image_not_found\"")
                 .ok);
    CHECK(rows_in(d, "usage") == 1);
}
