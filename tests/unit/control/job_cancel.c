#include "door.h"

static struct answer cancel(struct door *d, const char *job, const char *more)
{
    return door_ask(d, d->admin, VERB_JOB_CANCEL, FMT(d, "{\"job\":\"%s\"%s}", job, more));
}

TEST(what_waits_ends_at_once_and_what_has_ended_cannot_be_cancelled)
{
    AUTO(door_free) struct door *d = door_new(false);
    const char *job = door_submit(d, d->admin, "{\"command\":[\"true\"]}");
    struct answer a = cancel(d, job, "");
    CHECK(a.ok && text_is(get(&a, "state"), "cancelled") && get_int(&a, "tasks") == 1);
    CHECK(text_is(job_word(d, job, "state"), "cancelled")
          && text_is(job_word(d, job, "outcome"), "cancelled"));
    const char *rows = store_text(d);
    struct answer again = cancel(d, job, ""), none = cancel(d, "nosuch", "");
    CHECK(!again.ok && again.err.rc == RC_CONFLICT
          && strstr(again.err.text, "already ended (cancelled)"));
    CHECK(!none.ok && none.err.rc == RC_NOT_FOUND && text_is(rows, store_text(d)));
}

TEST(what_runs_gets_the_grace_period_and_ends_when_its_node_says_so)
{
    static const struct {
        const char *more;
        int64_t grace;
    } rows[] = { { "", 45 }, { ",\"grace\":\"5s\"", 5 }, { ",\"grace\":\"0s\"", 0 } };
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    door_node(d, "n1", 1, key);
    int64_t n = 1;
    for (size_t i = 0; i < COUNT(rows); i++)
        for (int started = 0; started < 2; started++) {
            const char *job = door_submit(
                d, d->admin, "{\"command\":[\"true\"],\"grace\":\"45s\",\"retries\":5}");
            CHECK(door_place(d, job, 0, "n1", -1));
            const char *attempt = door_attempt(d, job, 0);
            if (started)
                CHECK(door_report(d, key, n++, attempt, "started", NULL).ok);
            struct answer a = cancel(d, job, rows[i].more), again = cancel(d, job, "");
            CHECK(a.ok && text_is(get(&a, "state"), "stopping") && !again.ok
                  && again.err.rc == RC_CONFLICT);
            CHECK(text_is(job_word(d, job, "state"), "stopping"));
            if (i == 1 && started)
                CHECK(door_crash(d)); /* the wish and its grace are remembered */
            struct answer orders = door_hello(d, key, "n1", 1, n, (struct texts){ 0 });
            struct json *o = orders.json && json_get(orders.json, "orders")
                                 ? json_get(orders.json, "orders")->first
                                 : NULL;
            CHECK(o && json_get(o, "stop") && json_get(o, "stop")->flag
                  && json_int(o, "grace_s", -1) == rows[i].grace);
            /* It may end by itself, with success or as a failure that would be retried: the wish
             * stands. */
            static const char *const ends[] = { "succeeded", "exited", "node_fault" };
            CHECK(door_report(d, key, n++, attempt, "ended", FMT(d, ",\"outcome\":\"%s\"", ends[i]))
                      .ok);
            CHECK(text_is(job_word(d, job, "state"), "cancelled"));
            check_books(d, "cancel");
        }
}

TEST(a_second_cancel_may_shorten_the_grace_period_and_never_lengthens_it)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    door_node(d, "n1", 1, key);
    for (int one = 0; one < 2; one++) {
        const char *job = door_submit(d, d->admin, "{\"command\":[\"true\"],\"grace\":\"45s\"}"), *which = one ? ",\"task\":0" : "";
        CHECK(door_place(d, job, 0, "n1", -1) && door_report(d, key, one * 2 + 1, door_attempt(d, job, 0), "started", NULL).ok);
        CHECK(cancel(d, job, which).ok && !cancel(d, job, FMT(d, "%s,\"grace\":\"1h\"", which)).ok && !cancel(d, job, which).ok);
        struct answer a = cancel(d, job, FMT(d, "%s,\"grace\":\"0s\"", which));
        CHECK(a.ok && text_is(get(&a, "state"), "stopping") && get_int(&a, "tasks") == 1);
        CHECK(!cancel(d, job, FMT(d, "%s,\"grace\":\"0s\"", which)).ok);
        struct answer orders = door_hello(d, key, "n1", 1, one * 2 + 2, (struct texts){ 0 });
        struct json *o = orders.json && json_get(orders.json, "orders") ? json_get(orders.json, "orders")->first : NULL;
        CHECK(o && json_get(o, "stop") && json_get(o, "stop")->flag && json_int(o, "grace_s", -1) == 0);
        CHECK(door_report(d, key, one * 2 + 2, door_attempt(d, job, 0), "ended", ",\"outcome\":\"cancelled\"").ok);
        check_books(d, "shorter");
    }
}

TEST(one_task_of_an_array_is_cancelled_alone)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    door_node(d, "n1", 1, key);
    const char *job = door_submit(
        d, d->admin, "{\"command\":[\"true\"],\"count\":5,\"retries\":1,\"retry_delay\":\"1h\"}");
    for (int64_t t = 0; t < 3; t++)
        CHECK(door_place(d, job, t, "n1", -1));
    CHECK(door_report(d, key, 1, door_attempt(d, job, 1), "ended",
                      ",\"outcome\":\"exited\",\"exit_code\":1")
              .ok); /* 1 waits for its second try */
    CHECK(
        door_report(d, key, 2, door_attempt(d, job, 2), "ended", ",\"outcome\":\"succeeded\"").ok);
    struct answer running = cancel(d, job, ",\"task\":0"), waiting = cancel(d, job, ",\"task\":1"),
                  done = cancel(d, job, ",\"task\":2");
    struct answer later = cancel(d, job, ",\"task\":3"), outside = cancel(d, job, ",\"task\":5"),
                  again = cancel(d, job, ",\"task\":0");
    CHECK(running.ok && get_int(&running, "tasks") == 1 && waiting.ok
          && job_number(d, job, "cancelled") == 2);
    CHECK(!done.ok && done.err.rc == RC_CONFLICT && !again.ok && again.err.rc == RC_CONFLICT);
    CHECK(later.ok && get_int(&later, "tasks") == 1 && rows_in(d, "task") == 4 && !outside.ok
          && text_is(outside.err.field, "task"));
    struct answer passed = cancel(d, job, ",\"task\":3");
    CHECK(!passed.ok && passed.err.rc == RC_CONFLICT);
    CHECK(
        door_report(d, key, 3, door_attempt(d, job, 0), "ended", ",\"outcome\":\"cancelled\"").ok);
    CHECK(!door_place(d, job, 3, "n1", -1)
          && door_place(d, job, 4, "n1", -1)); /* the turn of 3 has passed */
    CHECK(
        door_report(d, key, 4, door_attempt(d, job, 4), "ended", ",\"outcome\":\"succeeded\"").ok);
    CHECK(text_is(job_word(d, job, "state"), "cancelled") && job_number(d, job, "done") == 2
          && job_number(d, job, "cancelled") == 3);
    check_books(d, "one task");
}

TEST(a_cancelled_array_ends_what_waits_for_a_retry_too_and_gives_everything_back)
{
    AUTO(door_free) struct door *d = door_new(true);
    char key[SECRET_TEXT];
    door_node(d, "n1", 2, key);
    const char *job = door_submit(d, d->admin,
                                  "{\"command\":[\"true\"],\"gpus\":\"1\",\"cpus\":1,\"memory\":"
                                  "\"1GB\",\"count\":5,\"retries\":1,\"retry_delay\":\"1h\"}");
    door_run(d, 2000);
    CHECK(door_report(d, key, 1, door_attempt(d, job, 0), "ended",
                      ",\"outcome\":\"exited\",\"exit_code\":1")
              .ok);
    door_run(d, 2000); /* 1 and 2 hold the GPUs, 0 waits for its pause, 3 and 4 for a GPU */
    struct answer a = cancel(d, job, "");
    CHECK(a.ok && get_int(&a, "tasks") == 5 && job_number(d, job, "cancelled") == 3);
    check_picture(d, "stopping");
    CHECK(door_report(d, key, 2, door_attempt(d, job, 1), "ended", ",\"outcome\":\"cancelled\"").ok
          && door_report(d, key, 3, door_attempt(d, job, 2), "ended", ",\"outcome\":\"cancelled\"")
                 .ok);
    CHECK(text_is(job_word(d, job, "state"), "cancelled")
          && map_count(memory_of(d)->attempts) == 0);
    const struct project *p = state_project(memory_of(d), "default");
    CHECK(p->gpu_held == 0 && p->cpu_held == 0 && p->mem_held == 0 && p->jobs_live == 0);
    check_books(d, "array");
    check_picture(d, "gone");
}

TEST(tasks_cancelled_before_their_turn_are_passed_over_also_after_a_restart)
{
    AUTO(door_free) struct door *d = door_new(true);
    char key[SECRET_TEXT];
    const char *job = door_submit(
        d, d->admin,
        "{\"command\":[\"true\"],\"count\":6,\"gpus\":\"1\",\"cpus\":1,\"memory\":\"1GB\"}");
    CHECK(cancel(d, job, ",\"task\":0").ok && cancel(d, job, ",\"task\":2").ok
          && cancel(d, job, ",\"task\":3").ok && cancel(d, job, ",\"task\":5").ok);
    check_books(d, "skipped");
    check_picture(d, "skipped");
    CHECK(door_crash(d));
    check_picture(d, "skipped, again");
    door_node(d, "n1", 1, key);
    door_run(d, 2000);
    CHECK(text_given(door_attempt(d, job, 1))
          && door_report(d, key, 1, door_attempt(d, job, 1), "ended", ",\"outcome\":\"succeeded\"")
                 .ok);
    door_run(d, 2000);
    CHECK(rows_in(d, "attempt") == 2 && text_given(door_attempt(d, job, 4)));
    CHECK(
        door_report(d, key, 2, door_attempt(d, job, 4), "ended", ",\"outcome\":\"succeeded\"").ok);
    CHECK(text_is(job_word(d, job, "state"), "cancelled") && job_number(d, job, "done") == 2
          && job_number(d, job, "cancelled") == 4 && rows_in(d, "task") == 6);
    const char *rest
        = door_submit(d, d->admin, "{\"command\":[\"true\"],\"count\":5,\"gpus\":\"H999:1\"}");
    struct answer some = cancel(d, rest, ",\"task\":3"), all = cancel(d, rest, "");
    CHECK(some.ok && all.ok && get_int(&all, "tasks") == 4
          && text_is(job_word(d, rest, "state"), "cancelled")
          && job_number(d, rest, "cancelled") == 5);
    check_books(d, "all skipped");
    check_picture(d, "all skipped");
}
