/* job_age.c - how old a job is in the queue: time in which it could not have run is none, after whatever crash. */
#include "door.h"

enum { LONG_MS = 49 * 3600 * 1000 };   /* whoever waits so long goes before everybody */
#define IS(job, what) text_is(job_word(d, job, "state"), what)
#define URGENT "{\"name\":\"u\",\"command\":[\"true\"],\"gpus\":2,\"cpus\":1,\"priority\":100}"

static struct answer about(struct door *d, enum verb_id verb, const char *job) { return door_ask(d, d->admin, verb, FMT(d, "{\"job\":\"%s\"}", job)); }

/* An instance and an urgent job that both want the only node; the instance could have had it for a while, or not. */
static void started_again(bool stopped, bool crash)
{
    AUTO(door_free) struct door *d = door_new(true);
    char key[SECRET_TEXT];
    const char *x = door_submit(d, d->admin, "{\"name\":\"x\",\"type\":\"instance\",\"gpus\":2,\"cpus\":1,\"disk_size\":\"1GiB\",\"priority\":50}");
    CHECK(text_given(x) && (!stopped || about(d, VERB_JOB_STOP, x).ok));
    door_run(d, LONG_MS);
    const char *u = door_submit(d, d->admin, URGENT);
    CHECK(text_given(u) && about(d, VERB_JOB_START, x).ok);
    door_run(d, 1000);
    check_books(d, "started");
    check_picture(d, "started");
    CHECK(!crash || door_crash(d));
    door_node(d, "n1", 2, key);
    door_run(d, 5000);
    CHECK(IS(u, stopped ? "placed" : "queued") && IS(x, stopped ? "queued" : "placed"));
}
TEST(time_that_an_instance_is_stopped_is_no_waiting) { started_again(true, false); }
TEST(a_server_that_begins_again_knows_since_when_it_waits) { started_again(true, true); }
TEST(whoever_has_waited_for_long_goes_before_everybody) { started_again(false, false), started_again(false, true); }

static void after_another(bool crash)
{
    AUTO(door_free) struct door *d = door_new(true);
    char key[SECRET_TEXT];
    const char *a = door_submit(d, d->admin, "{\"name\":\"a\",\"command\":[\"true\"],\"gpus\":2,\"cpus\":1}");
    const char *b = door_submit(d, d->admin, FMT(d, "{\"name\":\"b\",\"command\":[\"true\"],\"gpus\":2,\"cpus\":1,\"after\":[{\"job\":\"%s\",\"when\":\"any\"}]}", a));
    door_run(d, LONG_MS);
    struct answer q = about(d, VERB_JOB_QUEUE, b);
    CHECK(q.ok && text_is(get(&q, "reason"), "Dependency") && strstr(q.text, "\"first_at\":null"));
    const char *u = door_submit(d, d->admin, URGENT);
    CHECK(text_given(u) && about(d, VERB_JOB_CANCEL, a).ok);
    door_run(d, 1000);
    check_books(d, "after another");
    CHECK(!crash || door_crash(d));
    q = about(d, VERB_JOB_QUEUE, b);
    CHECK(q.ok && strstr(q.text, "\"first_at\":\""));
    door_node(d, "n1", 2, key);
    door_run(d, 5000);
    CHECK(IS(u, "placed") && IS(b, "queued"));
    check_picture(d, "after another");
}
TEST(time_that_a_job_waits_for_another_is_no_waiting) { after_another(false), after_another(true); }

TEST(a_stopped_instance_is_promised_nothing_and_is_before_nobody)
{
    AUTO(door_free) struct door *d = door_new(true);
    char key[SECRET_TEXT];
    door_node(d, "n1", 2, key);
    const char *busy = door_submit(d, d->admin, "{\"name\":\"busy\",\"command\":[\"true\"],\"gpus\":2,\"cpus\":1,\"max_duration\":\"1h\"}");
    door_run(d, 1000);
    const char *x = door_submit(d, d->admin, "{\"name\":\"x\",\"type\":\"instance\",\"gpus\":2,\"cpus\":1,\"disk_size\":\"1GiB\",\"max_duration\":\"1h\"}");
    door_run(d, 1000);
    const char *y = door_submit(d, d->admin, "{\"name\":\"y\",\"command\":[\"true\"],\"gpus\":2,\"cpus\":1}");
    door_run(d, 1000);
    struct answer q = about(d, VERB_JOB_QUEUE, y), w = about(d, VERB_JOB_WHY, x);
    CHECK(IS(busy, "placed") && q.ok && get_int(&q, "ahead") == 1 && w.ok && !strstr(w.text, "\"start_at\":null"));
    CHECK(about(d, VERB_JOB_STOP, x).ok);
    q = about(d, VERB_JOB_QUEUE, x), w = about(d, VERB_JOB_WHY, x);
    CHECK(q.ok && text_is(get(&q, "state"), "stopped") && strstr(q.text, "\"first_at\":null"));
    CHECK(w.ok && text_is(get(&w, "state"), "stopped") && text_is(get(&w, "reason"), "Stopped") && strstr(w.text, "\"start_at\":null"));
    q = about(d, VERB_JOB_QUEUE, y);
    CHECK(q.ok && get_int(&q, "ahead") == 0 && strstr(q.text, "\"first_at\":\""));
    door_run(d, 1000);
    CHECK(about(d, VERB_JOB_START, x).ok);
    q = about(d, VERB_JOB_QUEUE, x);
    CHECK(q.ok && get_int(&q, "ahead") == 1 && strstr(q.text, "\"first_at\":\""));     /* it stands behind y now */
    q = about(d, VERB_JOB_QUEUE, y);
    CHECK(q.ok && get_int(&q, "ahead") == 0);
}

static size_t listed(struct door *d, const char *state)
{
    struct answer a = door_ask(d, d->admin, VERB_JOB_LIST, FMT(d, "{\"state\":\"%s\"}", state));
    CHECK(a.ok);
    return item_count(&a);
}

TEST(stopped_instances_are_listed_by_the_state_that_they_are_shown_with)
{
    AUTO(door_free) struct door *d = door_new(true);
    char key[SECRET_TEXT];
    door_node(d, "n1", 2, key);
    const char *r = door_submit(d, d->admin, "{\"name\":\"r\",\"type\":\"instance\",\"gpus\":2,\"cpus\":1,\"disk_size\":\"1GiB\"}");
    door_run(d, 1000);
    const char *x = door_submit(d, d->admin, "{\"name\":\"x\",\"type\":\"instance\",\"gpus\":2,\"cpus\":1,\"disk_size\":\"1GiB\"}");
    CHECK(listed(d, "queued") == 1 && listed(d, "placed") == 1 && listed(d, "stopped") == 0 && listed(d, "stopping") == 0);
    CHECK(about(d, VERB_JOB_STOP, x).ok && about(d, VERB_JOB_STOP, r).ok && IS(x, "stopped") && IS(r, "stopping"));
    CHECK(listed(d, "queued") == 0 && listed(d, "placed") == 0 && listed(d, "stopped") == 1 && listed(d, "stopping") == 1);
    struct answer a = door_ask(d, d->admin, VERB_JOB_LIST, "{\"state\":\"stoped\"}");
    CHECK(!a.ok && a.err.rc == RC_BAD_INPUT && strstr(a.err.text, "stopped"));
}
