/* Nodes that fall silent: alone each is its own fault, many at once are ours. */
#include "door.h"
#include <stdio.h>

enum { FLEET = 5 };
struct fleet { struct door *d; char keys[FLEET][SECRET_TEXT]; const char *jobs[FLEET], *attempts[FLEET]; };

static void fleet_make(struct fleet *f, const char *more)
{
    struct door *d = f->d = door_new(false);
    for (int i = 0; i < FLEET; i++) {
        const char *name = FMT(d, "n%d", i + 1);
        door_node(d, name, 1, f->keys[i]);
        f->jobs[i] = door_submit(d, d->admin, FMT(d, "{\"command\":[\"true\"]%s}", more));
        CHECK(door_place(d, f->jobs[i], 0, name, -1));
        f->attempts[i] = door_attempt(d, f->jobs[i], 0);
        CHECK(door_report(d, f->keys[i], 1, f->attempts[i], "started", NULL).ok);
    }
}

/* Time passes; those from `first` on are silent. */
static void pass(struct fleet *f, int first, int64_t seconds)
{
    for (int64_t s = 0; s < seconds; s += 5) {
        door_run(f->d, 5000);
        for (int i = 0; i < first; i++)
            CHECK(door_ask(f->d, f->keys[i], VERB_NODE_REPORT, "{\"kind\":\"beat\"}").ok);
    }
}

static void hello(struct fleet *f, int i)
{
    struct texts runs = { &f->attempts[i], 1 };
    CHECK(door_hello(f->d, f->keys[i], FMT(f->d, "n%d", i + 1), 1, 2, runs).ok);
}

static const char *fleet_word(struct door *d, const char *member)
{
    struct answer a = door_ask(d, d->admin, VERB_FLEET_GET, NULL);
    return get(&a, member);
}

static size_t waiting(struct fleet *f)
{
    size_t n = 0;
    for (int i = 0; i < FLEET; i++)
        n += text_is(job_word(f->d, f->jobs[i], "state"), "queued");
    return n;
}

TEST(one_silent_node_of_many_loses_its_tasks_and_raises_no_alarm)
{
    struct fleet f;
    fleet_make(&f, "");
    AUTO(door_free) struct door *d = f.d;
    pass(&f, 4, 330);
    CHECK(waiting(&f) == 1 && door_events(d, "fleet.silent") == 0 && text_is(fleet_word(d, "state"), "active"));
    CHECK(state_node(memory_of(d), "n5")->lost == 1);
    check_books(d, "one is lost");
    /* The next is no more than that: the one that was lost counts no more. */
    pass(&f, 3, 330);
    CHECK(waiting(&f) == 2 && door_events(d, "fleet.silent") == 0);
    struct answer a = door_ask(d, d->admin, VERB_FLEET_GET, NULL);
    CHECK(get_int(&a, "nodes") == 5 && get_int(&a, "ready") == 3 && get_int(&a, "down") == 2 && get_int(&a, "lost") == 2);
    hello(&f, 4);
    CHECK(state_node(memory_of(d), "n5")->lost == 0);
    check_books(d, "one is back");
}

TEST(when_many_are_silent_at_once_nothing_is_taken_from_them_and_an_alarm_is_written_once)
{
    struct fleet f;
    fleet_make(&f, "");
    AUTO(door_free) struct door *d = f.d;
    pass(&f, 3, 40);
    CHECK(door_events(d, "fleet.silent") == 1 && text_is(fleet_word(d, "state"), "silent") && text_given(fleet_word(d, "note")));
    pass(&f, 3, 3600);
    CHECK(waiting(&f) == 0 && door_events(d, "fleet.silent") == 1 && door_events(d, "fleet.back") == 0);
    struct answer n = door_ask(d, d->admin, VERB_NODE_GET, "{\"node\":\"n5\"}");
    CHECK(text_is(get(&n, "state"), "down") && strstr(get(&n, "note"), "arcus nodes lost"));
    check_books(d, "alarm");
    CHECK(door_crash(d)); /* it goes on, and is not told again */
    for (int i = 0; i < 3; i++)
        hello(&f, i);
    pass(&f, 3, 600);
    CHECK(waiting(&f) == 0 && door_events(d, "fleet.silent") == 1 && door_events(d, "fleet.back") == 0);
    hello(&f, 3);
    pass(&f, 4, 10);
    CHECK(door_events(d, "fleet.back") == 1 && text_is(fleet_word(d, "state"), "active"));
    pass(&f, 4, 10); /* the last one was silent for long enough, and is alone now */
    CHECK(waiting(&f) == 1 && text_is(job_word(d, f.jobs[3], "state"), "running"));
    check_books(d, "the alarm is over");
}

TEST(an_operator_says_which_of_the_silent_are_gone_for_good)
{
    struct fleet f;
    fleet_make(&f, "");
    AUTO(door_free) struct door *d = f.d;
    struct answer alive = door_ask(d, d->admin, VERB_NODE_LOST, "{\"node\":\"n1\"}");
    CHECK(!alive.ok && alive.err.rc == RC_CONFLICT && strstr(alive.err.text, "drain"));
    pass(&f, 2, 60);
    CHECK(door_events(d, "fleet.silent") == 1);
    CHECK(door_ask(d, d->admin, VERB_NODE_LOST, "{\"node\":\"n5\"}").ok && waiting(&f) == 0); /* it may still run there */
    pass(&f, 2, 240);
    CHECK(waiting(&f) == 0);
    pass(&f, 2, 30);
    CHECK(waiting(&f) == 1 && text_is(job_word(d, f.jobs[4], "state"), "queued") && door_events(d, "fleet.back") == 0);
    CHECK(door_place(d, f.jobs[4], 0, "n1", -1));
    check_books(d, "one is gone");
    CHECK(door_crash(d) && state_node(memory_of(d), "n5")->lost == 2);
    CHECK(door_ask(d, d->admin, VERB_NODE_LOST, "{\"node\":\"n4\"}").ok);
    CHECK(door_ask(d, d->admin, VERB_NODE_LOST, "{\"node\":\"n3\"}").ok && !door_ask(d, d->admin, VERB_NODE_LOST, "{\"node\":\"ghost\"}").ok);
    hello(&f, 0), hello(&f, 1);
    pass(&f, 2, 400);
    CHECK(waiting(&f) == 2 && door_events(d, "fleet.back") == 1);
    hello(&f, 4); /* after all: what it runs is not wanted any more */
    CHECK(state_node(memory_of(d), "n5")->lost == 0 && state_node(memory_of(d), "n5")->state == NODE_READY);
    check_books(d, "all are gone");
}

TEST(what_waits_for_its_node_fails_when_that_is_gone_for_good)
{
    struct fleet f;
    fleet_make(&f, ",\"on_lost\":\"wait\"");
    AUTO(door_free) struct door *d = f.d;
    pass(&f, 4, 600);
    CHECK(text_is(job_word(d, f.jobs[4], "state"), "running"));
    CHECK(door_ask(d, d->admin, VERB_NODE_LOST, "{\"node\":\"n5\"}").ok && text_is(job_word(d, f.jobs[4], "state"), "failed")
          && text_is(job_word(d, f.jobs[4], "outcome"), "node_lost"));
    check_books(d, "gone");
}

TEST(how_much_is_too_much_can_be_set_and_a_node_that_never_came_does_not_count)
{
    struct fleet f;
    fleet_make(&f, "");
    AUTO(door_free) struct door *d = f.d;
    struct answer t = door_ask(d, d->admin, VERB_NODE_TOKEN, NULL);
    CHECK(door_ask(d, NULL, VERB_NODE_JOIN, FMT(d, "{\"token\":\"%s\",\"name\":\"n6\"}", get(&t, "token"))).ok);
    CHECK(door_ask(d, d->admin, VERB_RULES_SET, "{\"silent\":40}").ok);
    pass(&f, 3, 40); /* 2 of 5 are not more than 40 % */
    CHECK(door_events(d, "fleet.silent") == 0);
    CHECK(door_ask(d, d->admin, VERB_RULES_SET, "{\"silent\":39}").ok);
    pass(&f, 3, 5);
    CHECK(door_events(d, "fleet.silent") == 1);
}

TEST(a_new_node_is_used_at_once)
{
    AUTO(door_free) struct door *d = door_new(true);
    char key[SECRET_TEXT];
    const char *job = door_submit(d, d->admin, "{\"command\":[\"true\"],\"gpus\":1}");
    door_run(d, 2000);
    CHECK(text_is(job_word(d, job, "state"), "queued") && text_is(job_word(d, job, "reason"), "NoSuitableNode"));
    door_node(d, "n1", 1, key);
    door_run(d, 20);
    CHECK(text_is(job_word(d, job, "state"), "placed"));
    check_picture(d, "a new node");
}
