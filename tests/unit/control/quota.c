/* Limits at the door: refused, waiting, counted, and known again after a crash. */
#include "door.h"

#define BODY "{\"command\":[\"true\"],\"gpus\":\"1\",\"cpus\":1,\"memory\":\"1GB\"%s}"

static struct answer limit(struct door *d, const char *rest)
{
    return door_ask(d, d->admin, VERB_QUOTA_SET, FMT(d, "{\"project\":\"default\",%s}", rest));
}

TEST(a_job_that_could_never_run_is_refused_with_the_limit_whose_it_is_and_what_it_needs)
{
    AUTO(door_free) struct door *d = door_new(false);
    CHECK(limit(d, "\"gpus\":0.5").ok);
    struct answer a = door_ask(d, d->admin, VERB_JOB_SUBMIT, FMT(d, BODY, ""));
    CHECK(!a.ok && a.err.rc == RC_OVER_QUOTA
          && text_is(a.err.text, "project default may hold 0.500 GPUs at once, and a task needs 1; it could never run"));
    CHECK(limit(d, "\"gpus\":-1,\"model\":\"\"").ok && limit(d, "\"gpu_hours_week\":2").ok);
    a = door_ask(d, d->admin, VERB_JOB_SUBMIT, FMT(d, BODY, ""));
    CHECK(!a.ok && strstr(a.err.text, "give it a max_duration"));
    a = door_ask(d, d->admin, VERB_JOB_SUBMIT, FMT(d, BODY, ",\"max_duration\":\"3h\""));
    CHECK(!a.ok && strstr(a.err.text, "may use 2 GPU-hours a week, and a task needs up to 3.017; it could never run"));
    CHECK(text_given(door_submit(d, d->admin, FMT(d, BODY, ",\"max_duration\":\"1h\""))));
    CHECK(limit(d, "\"user\":\"admin\",\"model\":\"NVIDIA H200\",\"tasks\":0").ok);
    CHECK(text_given(door_submit(d, d->admin, FMT(d, BODY, ",\"max_duration\":\"1h\""))));      /* any model */
    a = door_ask(d, d->admin, VERB_JOB_SUBMIT, "{\"command\":[\"true\"],\"gpus\":\"H200:1\",\"max_duration\":\"1h\"}");
    CHECK(!a.ok && strstr(a.err.text, "user admin of project default may run 0 tasks at once of model h200"));
    a = limit(d, "\"user\":\"nobody-such\",\"gpus\":1");
    CHECK(!a.ok && text_is(a.err.field, "user"));
    check_books(d, "limits");
}

TEST(a_job_over_a_limit_waits_and_says_which_and_the_books_outlive_a_crash)
{
    AUTO(door_free) struct door *d = door_new(true);
    char key[SECRET_TEXT];
    door_node(d, "n1", 4, key);
    CHECK(limit(d, "\"user\":\"admin\",\"gpus\":1").ok && limit(d, "\"gpu_hours_day\":100").ok);
    const char *a = door_submit(d, d->admin, FMT(d, BODY, ",\"max_duration\":\"1h\"")),
               *b = door_submit(d, d->admin, FMT(d, BODY, ",\"max_duration\":\"1h\""));
    door_run(d, 1500);
    CHECK(text_is(job_word(d, a, "state"), "placed") && text_is(job_word(d, b, "reason"), "Quota"));
    CHECK(text_is(job_word(d, b, "reason_text"),
                  "user admin of project default may hold 1 GPUs at once, and a task needs 1; it starts when enough of that is free again"));
    struct answer q = door_ask(d, d->admin, VERB_JOB_QUEUE, FMT(d, "{\"job\":\"%s\"}", b));
    CHECK(q.ok && strstr(q.text, "\"class\":\"normal\"") && strstr(q.text, "\"ahead\":0") && strstr(q.text, "\"fair_ppm\":1000000"));
    struct answer l = door_ask(d, d->admin, VERB_QUOTA_LIST, "{}");
    CHECK(l.ok && strstr(l.text, "\"name\":\"gpus\"") && strstr(l.text, "\"state\":\"full\"") && strstr(l.text, "\"reserved\":1.016"));
    check_picture(d, "held");
    CHECK(door_crash(d) && door_hello(d, key, "n1", 4, 1, (struct texts){ 0 }).ok);
    door_run(d, 1500);
    const struct books *books = &state_project(memory_of(d), "default")->limits;
    CHECK(books->count == 2 && books->at[0].tasks == 1 && books->at[1].gpu_milli == 1000);
    CHECK(text_is(job_word(d, b, "reason"), "Quota"));
    check_books(d, "after a crash");
    check_picture(d, "after a crash");
    CHECK(limit(d, "\"user\":\"admin\",\"gpus\":2").ok);
    door_run(d, 1500);
    CHECK(text_is(job_word(d, b, "state"), "placed"));
    check_picture(d, "raised");
}

TEST(hours_that_were_used_are_known_again)
{
    AUTO(door_free) struct door *d = door_new(true);
    char key[SECRET_TEXT];
    door_node(d, "n1", 1, key);
    const char *a = door_submit(d, d->admin, FMT(d, BODY, ",\"max_duration\":\"1h\""));
    door_run(d, 1500);
    int64_t now = os_wall_ms(d->os);
    CHECK(door_report(d, key, 1, door_attempt(d, a, 0), "ended",
                      FMT(d, ",\"outcome\":\"succeeded\",\"started_ms\":%lld", (long long)now - 20000)).ok);
    CHECK(limit(d, "\"gpu_hours_month\":50").ok);        /* set afterwards: what was used counts */
    int64_t used = state_project(memory_of(d), "default")->limits.at[0].used[PERIODS - 1];
    CHECK(used > 0);
    CHECK(door_crash(d));
    CHECK(state_project(memory_of(d), "default")->limits.at[0].used[PERIODS - 1] == used);
    check_books(d, "used");
}

TEST(a_weight_and_the_names_of_classes_are_kept)
{
    AUTO(door_free) struct door *d = door_new(true);
    CHECK(door_ask(d, d->admin, VERB_PROJECT_UPDATE, "{\"project\":\"default\",\"weight\":2.5}").ok);
    CHECK(door_crash(d) && state_project(memory_of(d), "default")->weight_milli == 2500);
    const char *a = door_submit(d, d->admin, "{\"command\":[\"true\"],\"priority\":\"high\"}");
    CHECK(state_job(memory_of(d), state_project(memory_of(d), "default")->id, a)->priority == 70);
    CHECK(!door_ask(d, d->admin, VERB_JOB_SUBMIT, "{\"command\":[\"true\"],\"priority\":\"huge\"}").ok);
    check_picture(d, "weights");
}
