#include "door.h"

static struct attempt *the_attempt(struct door *d)
{
    size_t i = 0;
    return map_next(memory_of(d)->attempts, &i);
}

/* A task that was told to end and has not been begun: its node says so, and it waits again. */
TEST(what_yields_before_it_began_waits_again_and_costs_nothing)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    door_node(d, "n1", 1, key);
    const char *job = door_submit(d, d->admin, "{\"command\":[\"true\"]}");
    CHECK(door_place(d, job, 0, "n1", -1));
    const char *attempt = door_attempt(d, job, 0);
    CHECK(door_ask(d, d->admin, VERB_NODE_DRAIN, "{\"node\":\"n1\",\"requeue\":true}").ok && the_attempt(d)->stop);
    check_books(d, "told to end");
    struct answer hello = door_hello(d, key, "n1", 1, 1, (struct texts){ 0 });
    struct json *o = hello.json ? json_get(hello.json, "orders")->first : NULL;
    CHECK(o && json_get(o, "stop") && !json_get(o, "argv")); /* nobody begins it any more */
    CHECK(door_report(d, key, 1, attempt, "ended", ",\"outcome\":\"node_fault\"").ok);
    CHECK(text_is(job_word(d, job, "state"), "queued") && rows_in(d, "usage") == 0);
    check_books(d, "waits again");
}

/* A cancel that comes in between is the last word; what was started late is told as it was. */
TEST(what_yields_can_be_cancelled_and_is_not_tried_again)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    door_node(d, "n1", 1, key);
    const char *job = door_submit(d, d->admin, "{\"command\":[\"true\"],\"retries\":3}");
    CHECK(door_place(d, job, 0, "n1", -1));
    CHECK(door_ask(d, d->admin, VERB_NODE_DRAIN, "{\"node\":\"n1\",\"requeue\":true}").ok);
    CHECK(door_report(d, key, 1, door_attempt(d, job, 0), "started", NULL).ok);
    check_books(d, "started late");
    CHECK(door_ask(d, d->admin, VERB_JOB_CANCEL, FMT(d, "{\"job\":\"%s\"}", job)).ok);
    check_books(d, "cancelled meanwhile");
    CHECK(door_crash(d) && door_hello(d, key, "n1", 1, 2, (struct texts){ 0 }).ok);
    CHECK(door_report(d, key, 2, door_attempt(d, job, 0), "ended", ",\"outcome\":\"node_fault\"").ok);
    CHECK(text_is(job_word(d, job, "state"), "cancelled") && rows_in(d, "usage") == 1);
    check_books(d, "over");
}
