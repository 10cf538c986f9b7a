#include "door.h"
#include "base/log.h"

static const char *waits_for(struct door *d, const char *job)
{
    return job_word(d, job, "reason");
}

TEST(every_waiting_job_has_one_named_reason)
{
    AUTO(door_free) struct door *d = door_new(true);
    char key[SECRET_TEXT];
    door_node(d, "n1", 2, key);
    CHECK(door_ask(d, d->admin, VERB_PROJECT_CREATE, "{\"name\":\"poor\",\"gpus\":1}").ok
          && door_ask(d, d->admin, VERB_VOLUME_CREATE, "{\"name\":\"data\"}").ok);
    const char *runs = door_submit(d, d->admin,
                                   "{\"command\":[\"true\"],\"gpus\":\"2\",\"cpus\":1,\"memory\":"
                                   "\"1GB\",\"volumes\":[\"data:/d\"]}");
    door_run(d, 1500);
    CHECK(text_is(job_word(d, runs, "state"), "placed") && text_is(waits_for(d, runs), ""));
    const char *next = door_submit(
        d, d->admin,
        "{\"command\":[\"true\"],\"gpus\":\"1\",\"cpus\":1,\"memory\":\"1GB\",\"priority\":90}");
    const char *behind = door_submit(
        d, d->admin,
        "{\"command\":[\"true\"],\"gpus\":\"2\",\"cpus\":1,\"memory\":\"1GB\",\"priority\":10}");
    const char *never = door_submit(d, d->admin, "{\"command\":[\"true\"],\"gpus\":\"B200:1\"}");
    const char *after = door_submit(
        d, d->admin, FMT(d, "{\"command\":[\"true\"],\"after\":[{\"job\":\"%s\"}]}", runs));
    const char *volume = door_submit(d, d->admin,
                                     "{\"command\":[\"true\"],\"gpus\":\"1\",\"cpus\":1,\"memory\":"
                                     "\"1GB\",\"volumes\":[\"data:/d\"]}");
    door_run(d, 1500);
    CHECK(text_is(waits_for(d, next), "Resources") && text_is(waits_for(d, behind), "Priority")
          && text_is(waits_for(d, never), "NoSuitableNode"));
    CHECK(text_is(waits_for(d, after), "Dependency")
          && text_is(waits_for(d, volume), "VolumeNode"));
    CHECK(text_given(job_word(d, next, "reason_text")));
    check_books(d, "reasons");
    check_picture(d, "reasons");
    CHECK(door_crash(d)); /* they are known again */
    CHECK(door_hello(d, key, "n1", 2, 1, (struct texts){ 0 }).ok);
    door_run(d, 1500);
    CHECK(text_is(waits_for(d, next), "Resources") && text_is(waits_for(d, after), "Dependency")
          && text_is(waits_for(d, volume), "VolumeNode"));
    check_picture(d, "reasons again");
}

TEST(a_quota_is_the_reason_where_it_is_the_reason)
{
    AUTO(door_free) struct door *d = door_new(true);
    char key[SECRET_TEXT];
    door_node(d, "n1", 4, key);
    CHECK(door_ask(d, d->admin, VERB_PROJECT_UPDATE, "{\"project\":\"default\",\"gpus\":1}").ok);
    const char *body = "{\"command\":[\"true\"],\"gpus\":\"1\",\"cpus\":1,\"memory\":\"1GB\"}";
    const char *a = door_submit(d, d->admin, body), *b = door_submit(d, d->admin, body);
    door_run(d, 1500);
    CHECK(text_is(job_word(d, a, "state"), "placed") && text_is(waits_for(d, b), "Quota"));
    CHECK(door_ask(d, d->admin, VERB_PROJECT_UPDATE, "{\"project\":\"default\",\"gpus\":2}").ok);
    door_run(d, 1500);
    CHECK(text_is(job_word(d, b, "state"), "placed"));
}

TEST(priority_then_age_decides_who_starts)
{
    AUTO(door_free) struct door *d = door_new(true);
    char key[SECRET_TEXT];
    const char *low
        = door_submit(d, d->admin, "{\"command\":[\"true\"],\"gpus\":\"1\",\"priority\":10}");
    const char *first = door_submit(d, d->admin, "{\"command\":[\"true\"],\"gpus\":\"1\"}"),
               *second = door_submit(d, d->admin, "{\"command\":[\"true\"],\"gpus\":\"1\"}");
    door_run(d, 1500);
    CHECK(text_is(waits_for(d, first), "NoSuitableNode"));
    door_node(d, "n1", 1, key);
    door_run(d, 1500);
    CHECK(text_is(job_word(d, first, "state"), "placed")
          && text_is(job_word(d, second, "state"), "queued")
          && text_is(job_word(d, low, "state"), "queued"));
    CHECK(
        door_ask(d, d->admin, VERB_JOB_UPDATE, FMT(d, "{\"job\":\"%s\",\"priority\":99}", low)).ok);
    CHECK(door_report(d, key, 1, door_attempt(d, first, 0), "ended", ",\"outcome\":\"succeeded\"")
              .ok);
    door_run(d, 1500);
    CHECK(text_is(job_word(d, low, "state"), "placed"));
}

TEST(a_retry_starts_by_itself_when_its_pause_is_over_even_if_the_clock_goes_back)
{
    for (int jump = 0; jump < 2; jump++) {
        AUTO(door_free) struct door *d = door_new(true);
        char key[SECRET_TEXT];
        door_node(d, "n1", 1, key);
        const char *job = door_submit(
            d, d->admin, "{\"command\":[\"true\"],\"retries\":1,\"retry_delay\":\"10s\"}");
        door_run(d, 1500);
        const char *a = door_attempt(d, job, 0);
        CHECK(door_report(d, key, 1, a, "ended", ",\"outcome\":\"exited\",\"exit_code\":1").ok);
        if (jump)
            sim_wall_jump(d->sim, -3600 * 1000);
        for (int i = 0; i < (jump ? 65 : 3); i++) {
            door_run(d, 5000);
            CHECK(door_ask(d, key, VERB_NODE_REPORT, "{\"kind\":\"beat\"}").ok);
        }
        CHECK(text_is(job_word(d, job, "state"), "placed") && !text_is(door_attempt(d, job, 0), a));
    }
}

TEST(what_was_placed_reaches_the_node_once_as_a_push)
{
    AUTO(door_free) struct door *d = door_new(true);
    char key[SECRET_TEXT];
    door_node(d, "n1", 1, key);
    const char *job = door_submit(d, d->admin, "{\"command\":[\"true\"]}");
    door_run(d, 1500);
    struct answer beat = door_ask(d, key, VERB_NODE_REPORT, "{\"kind\":\"beat\"}");
    CHECK(beat.ok && !strstr(beat.text, job)); /* it was pushed when it was placed */
    struct answer hello = door_hello(d, key, "n1", 1, 1, (struct texts){ 0 });
    CHECK(strstr(hello.text, job)); /* and a hello gets all */
}

TEST(a_long_queue_is_told_in_parts_and_planned_as_a_whole)
{
    AUTO(door_free) struct door *d = door_new(true);
    enum { MANY = 1100 };
    char key[SECRET_TEXT];
    struct flying *all[100];
    for (int i = 0; i < MANY; i += 100) {
        for (int k = 0; k < 100; k++)
            all[k] = door_send(d, d->admin, NULL, VERB_JOB_SUBMIT,
                               FMT(d, "{\"command\":[\"true\"],\"gpus\":\"1\",\"priority\":%d}",
                                   i + k == MANY - 1 ? 99 : 5),
                               NULL);
        for (int k = 0; k < 100; k++)
            CHECK(door_landed(d, all[k]).ok);
    }
    struct answer list = door_ask(d, d->admin, VERB_JOB_LIST, "{\"limit\":1}");
    door_node(d, "n1", 1, key);
    CHECK(door_crash(d)); /* everything is told anew, in parts */
    CHECK(door_hello(d, key, "n1", 1, 1, (struct texts){ 0 }).ok);
    door_run(d, 3000);
    CHECK(rows_in(d, "attempt") == 1
          && text_is(job_word(d, item(d, &list, 0, "id"), "state"), "placed"));
    check_picture(d, "a long queue");
}

/* More tasks than one wish holds, so that several are under way, and the nth commit behind the submit is refused. */
static bool flood(int nth)
{
    AUTO(door_free) struct door *d = door_new(true);
    enum { TASKS = 3300 };
    char key[SECRET_TEXT];
    const char *job = door_submit(
        d, d->admin, FMT(d, "{\"command\":[\"true\"],\"cpus\":0.01,\"memory\":\"16MB\",\"count\":%d}", TASKS));
    CHECK(job[0]);
    door_node(d, "n1", 1, key);
    fault_arm_at("store.commit", nth);
    door_run(d, 3000);
    bool fired = fault_fired();
    fault_arm(0);
    CHECK(rows_in(d, "attempt") == TASKS && rows_in(d, "task") == TASKS);
    CHECK(text_is(job_word(d, job, "state"), "placed") && text_is(waits_for(d, job), ""));
    check_books(d, "a flood");
    check_picture(d, "a flood");
    return fired;
}

TEST(more_tasks_than_a_wish_holds_are_placed_once_each_whichever_commit_of_them_is_refused)
{
    log_level_set(LOG_ERROR);
    CHECK(!flood(0) && flood(1));
    flood(2);                   /* so many, if chance did not put the wishes into one commit */
}
