#include "door.h"
#include "base/fault.h"

static const char *const three = "{\"jobs\":[{\"name\":\"a\",\"command\":[\"true\"]},{\"command\":\"false\",\"gpus\":\"1\",\"count\":7},{\"run\":[\"echo x\"]}]}";

static const char *nth_id(struct answer *a, int n)
{
    const struct json *jobs = json_get(a->json, "jobs"), *id = jobs ? jobs->first : NULL;
    while (id && n--)
        id = id->next;
    return id ? id->text : "";
}

TEST(a_batch_queues_all_of_its_jobs_in_order)
{
    AUTO(door_free) struct door *d = door_new(false);
    int64_t events = rows_in(d, "event");
    struct answer a = door_ask(d, d->admin, VERB_JOB_BATCH, three);
    CHECK(a.ok && rows_in(d, "job") == 3 && rows_in(d, "event") == events + 4);
    CHECK(text_is(job_word(d, nth_id(&a, 0), "name"), "a") && text_is(job_word(d, nth_id(&a, 1), "name"), "false")
          && text_is(job_word(d, nth_id(&a, 2), "state"), "queued"));
    CHECK(door_crash(d) && rows_in(d, "job") == 3);
    CHECK(text_is(job_word(d, nth_id(&a, 1), "state"), "queued"));
}

TEST(one_bad_job_of_a_batch_stops_all_and_is_named)
{
    AUTO(door_free) struct door *d = door_new(false);
    int64_t events = rows_in(d, "event");
    struct answer a = door_ask(d, d->admin, VERB_JOB_BATCH,
                               "{\"jobs\":[{\"command\":[\"true\"]},{\"command\":[\"true\"],\"secrets\":[\"nosuch\"]}]}");
    CHECK(!a.ok && text_is(a.err.field, "jobs[1].secrets") && strstr(a.err.text, "jobs[1]"));
    struct answer b = door_ask(d, d->admin, VERB_JOB_BATCH, "{\"jobs\":[]}");
    CHECK(!b.ok && text_is(b.err.field, "jobs"));
    CHECK(rows_in(d, "job") == 0 && rows_in(d, "event") == events && !map_count(memory_of(d)->jobs));
}

TEST(a_quota_of_jobs_counts_those_of_the_same_batch)
{
    AUTO(door_free) struct door *d = door_new(false);
    CHECK(door_ask(d, d->admin, VERB_PROJECT_UPDATE, "{\"project\":\"default\",\"quota\":{\"jobs\":2}}").ok);
    struct answer a = door_ask(d, d->admin, VERB_JOB_BATCH, three);
    CHECK(!a.ok && a.err.rc == RC_OVER_QUOTA && text_is(a.err.field, "jobs[2]") && rows_in(d, "job") == 0);
}

TEST(the_same_idempotency_key_gives_the_same_batch_also_after_a_restart)
{
    AUTO(door_free) struct door *d = door_new(false);
    struct answer a = door_ask_full(d, d->admin, NULL, VERB_JOB_BATCH, three, "k1", 0);
    struct answer b = door_ask_full(d, d->admin, NULL, VERB_JOB_BATCH, three, "k1", 0);
    CHECK(a.ok && b.ok && b.replayed && text_is(nth_id(&a, 2), nth_id(&b, 2)) && nth_id(&a, 2)[0]);
    CHECK(door_crash(d));
    struct answer c = door_ask_full(d, d->admin, NULL, VERB_JOB_BATCH, three, "k1", 0);
    CHECK(c.ok && c.replayed && text_is(nth_id(&a, 0), nth_id(&c, 0)) && rows_in(d, "job") == 3);
}

TEST(a_batch_is_stored_whole_or_not_at_all)
{
    for (int nth = 1;; nth++) {
        AUTO(door_free) struct door *d = door_new(false);
        fault_arm(nth);
        struct answer a = door_ask(d, d->admin, VERB_JOB_BATCH, three);
        bool fired = fault_fired();
        fault_arm(0);
        CHECK(rows_in(d, "job") == (a.ok ? 3 : 0) && map_count(memory_of(d)->jobs) == (a.ok ? 3u : 0u));
        if (!fired)
            break;
        CHECK(nth < 200);
    }
}
