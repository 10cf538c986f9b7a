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

/* --- evictions */

struct two { struct door *d; char key[SECRET_TEXT]; const char *low, *high; int64_t n; };

static struct two two_new(const char *low, const char *high, int gpus)
{
    struct two t = { .d = door_new(false), .n = 1 };
    struct door *d = t.d;
    door_node(d, "n1", gpus, t.key);
    t.low = door_submit(d, d->admin, FMT(d, "{\"command\":[\"true\"],\"gpus\":1,\"grace\":\"9s\",\"priority\":\"%s\"}", low));
    t.high = door_submit(d, d->admin, FMT(d, "{\"command\":[\"true\"],\"gpus\":1,\"priority\":\"%s\"}", high));
    CHECK(door_place(d, t.low, 0, "n1", 0) && door_report(d, t.key, t.n++, door_attempt(d, t.low, 0), "started", NULL).ok);
    return t;
}

static bool told(struct door *d, int64_t job)
{
    struct attempt *a;
    for (size_t i = 0; (a = map_next(memory_of(d)->attempts, &i));)
        if (a->task->job->id == job)
            return a->stop;
    return false;
}

static void beats(struct door *d, const char *key, int64_t seconds)
{
    for (int64_t s = 0; s < seconds; s += 5) {
        door_run(d, 5000);
        CHECK(door_ask(d, key, VERB_NODE_REPORT, "{\"kind\":\"beat\"}").ok);
    }
}

/* True: its task was told to end. */
static bool evict(struct door *d, const char *job, const char *for_job, int why)
{
    struct eviction *e = ARENA_NEW(d->mem, struct eviction);
    struct place_ask *ask = ARENA_NEW(d->mem, struct place_ask);
    struct node *n = state_node(memory_of(d), "n1");
    CHECK(id_parse(job, PREFIX_JOB, &e->job) && id_parse(for_job, PREFIX_JOB, &e->for_job));
    e->node = n->id, e->why = why;
    ask->evictions = (struct objects){ e, 1 };
    bool before = told(d, e->job);
    CHECK(door_ask_as(d, &system_caller, VERB_JOB_PLACE, ask).ok);
    return !before && told(d, e->job);
}

static bool event_says(struct door *d, const char *key, const char *kind, const char *words)
{
    struct answer a = door_ask(d, key, VERB_EVENT_LIST, "{\"limit\":1000}");
    struct json *list = a.json ? json_get(a.json, "items") : NULL;
    for (struct json *i = list ? list->first : NULL; i; i = i->next) {
        AUTO(str_done) struct str text = { 0 };
        json_print(&text, i);
        if (text_is(json_text(i, "name"), kind) && strstr(text.at, words))
            return true;
    }
    return false;
}

TEST(spot_work_yields_with_notice_is_billed_waits_again_and_is_told_why)
{
    struct two t = two_new("spot", "high", 1);
    AUTO(door_free) struct door *d = t.d;
    const char *attempt = door_attempt(d, t.low, 0);
    beats(d, t.key, 30);
    CHECK(evict(d, t.low, t.high, EVICT_SPOT) && !evict(d, t.low, t.high, EVICT_SPOT)); /* once */
    CHECK(the_attempt(d)->stop && the_attempt(d)->stop_as == OUTCOME_PREEMPTED && the_attempt(d)->grace_s == 9);
    CHECK(event_says(d, d->admin, "task.evicted", "class high") && event_says(d, d->admin, "fleet.evicted", t.high));
    check_books(d, "evicted");
    CHECK(door_crash(d) && the_attempt(d)->stop);
    CHECK(door_hello(d, t.key, "n1", 1, t.n, (struct texts){ 0 }).ok);
    CHECK(door_report(d, t.key, t.n++, attempt, "ended", ",\"outcome\":\"preempted\"").ok);
    CHECK(text_is(job_word(d, t.low, "state"), "queued") && rows_in(d, "usage") == 1);
    struct answer list = door_ask(d, d->admin, VERB_JOB_ATTEMPTS, FMT(d, "{\"job\":\"%s\"}", t.low));
    CHECK(text_is(item(d, &list, 0, "outcome"), "preempted") && strstr(item(d, &list, 0, "detail"), "class high"));
    struct answer usage = door_ask(d, d->admin, VERB_USAGE_SUM, NULL);
    CHECK(item_count(&usage) == 1 && text_is(item(d, &usage, 0, "seconds"), "30"));
    /* However often it yields, none of that is a try of its own. */
    CHECK(door_ask(d, d->admin, VERB_RULES_SET, "{\"lift\":\"1h\"}").ok);
    for (int i = 0; i < 25; i++) {
        CHECK(door_place(d, t.low, 0, "n1", 0));
        CHECK(evict(d, t.low, t.high, EVICT_SPOT)
              && door_report(d, t.key, t.n++, door_attempt(d, t.low, 0), "ended", ",\"outcome\":\"preempted\"").ok);
    }
    CHECK(text_is(job_word(d, t.low, "state"), "queued"));
    CHECK(door_place(d, t.low, 0, "n1", 0) && door_report(d, t.key, t.n++, door_attempt(d, t.low, 0), "ended", ",\"outcome\":\"exited\",\"exit_code\":1").ok);
    CHECK(text_is(job_word(d, t.low, "state"), "failed")); /* no retries */
    check_books(d, "often");
}

TEST(a_class_yields_only_where_the_rules_say_so)
{
    static const struct { const char *low, *high, *rules; int why; bool yields; } rows[] = {
        { "spot", "low", NULL, EVICT_SPOT, true },
        { "low", "high", NULL, EVICT_CLASS, false },
        { "low", "high", "{\"preempt\":\"high:low\"}", EVICT_CLASS, true },
        { "normal", "high", "{\"preempt\":\"high:low\"}", EVICT_CLASS, false },
        { "spot", "high", "{\"preempt\":\"high:none\"}", EVICT_SPOT, false },
        { "spot", "low", "{\"preempt\":\"low:none\"}", EVICT_RESERVATION, true },
        { "low", "urgent", NULL, EVICT_RESERVATION, false },
        { "spot", "high", "{\"brake\":0}", EVICT_SPOT, false },
        { "spot", "high", "{\"brake\":0,\"lift\":\"1h\"}", EVICT_SPOT, true },
        { "spot", "spot", NULL, EVICT_SPOT, false },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct two t = two_new(rows[i].low, rows[i].high, 1);
        AUTO(door_free) struct door *d = t.d;
        if (rows[i].rules)
            CHECK(door_ask(d, d->admin, VERB_RULES_SET, rows[i].rules).ok);
        CHECK(evict(d, t.low, t.high, rows[i].why) == rows[i].yields);
        CHECK(!evict(d, t.high, t.low, EVICT_SPOT)); /* it does not run */
        check_books(d, "rules of eviction");
    }
}

TEST(the_brake_holds_within_its_window_and_over_restarts_unless_an_operator_lifts_it)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    door_node(d, "n1", 2, key);
    const char *jobs[3], *high = door_submit(d, d->admin, "{\"command\":[\"true\"],\"gpus\":2,\"priority\":\"high\"}");
    for (int i = 0; i < 2; i++) {
        jobs[i] = door_submit(d, d->admin, "{\"command\":[\"true\"],\"gpus\":1,\"priority\":\"spot\"}");
        CHECK(door_place(d, jobs[i], 0, "n1", i) && evict(d, jobs[i], high, EVICT_SPOT)); /* one node's is always allowed */
        CHECK(door_report(d, key, i + 1, door_attempt(d, jobs[i], 0), "ended", ",\"outcome\":\"preempted\"").ok);
    }
    CHECK(door_place(d, jobs[0], 0, "n1", 0) && !evict(d, jobs[0], high, EVICT_SPOT));
    CHECK(door_crash(d) && door_hello(d, key, "n1", 2, 3, (struct texts){ (const char *[]){ door_attempt(d, jobs[0], 0) }, 1 }).ok);
    CHECK(!evict(d, jobs[0], high, EVICT_SPOT));
    CHECK(door_ask(d, d->admin, VERB_RULES_SET, "{\"lift\":\"10m\"}").ok && evict(d, jobs[0], high, EVICT_SPOT));
    CHECK(door_report(d, key, 3, door_attempt(d, jobs[0], 0), "ended", ",\"outcome\":\"preempted\"").ok);
    check_books(d, "the brake");
    CHECK(door_place(d, jobs[1], 0, "n1", 0));
    beats(d, key, 3610);
    CHECK(!brake_lifted(&memory_of(d)->rules, os_wall_ms(d->os)) && evict(d, jobs[1], high, EVICT_SPOT)); /* an hour later */
    CHECK(rows_in(d, "evicted") == 1);
    check_books(d, "an hour later");
}

TEST(nobody_is_evicted_while_too_much_is_silent)
{
    struct two t = two_new("spot", "high", 1);
    AUTO(door_free) struct door *d = t.d;
    char keys[2][SECRET_TEXT];
    door_node(d, "n2", 1, keys[0]);
    door_node(d, "n3", 1, keys[1]);
    beats(d, t.key, 30);
    CHECK(memory_of(d)->rules.at[RULE_SILENT_SINCE_MS] && !evict(d, t.low, t.high, EVICT_SPOT));
}

TEST(the_owner_of_what_yields_is_not_told_whose_job_it_was)
{
    struct two t = two_new("spot", "normal", 1);
    AUTO(door_free) struct door *d = t.d;
    CHECK(door_ask(d, d->admin, VERB_PROJECT_CREATE, "{\"name\":\"rivals\"}").ok && door_ask(d, d->admin, VERB_USER_CREATE, "{\"name\":\"vic\"}").ok);
    CHECK(door_ask(d, d->admin, VERB_MEMBER_SET, "{\"user\":\"vic\",\"roles\":\"developer\"}").ok);
    CHECK(door_ask_full(d, d->admin, "rivals", VERB_MEMBER_SET, "{\"user\":\"admin\",\"roles\":\"admin\"}", NULL, 0).ok);
    struct answer rival = door_ask_full(d, d->admin, "rivals", VERB_JOB_SUBMIT, "{\"name\":\"takeover\",\"command\":[\"true\"],\"gpus\":1}", NULL, 0);
    CHECK(rival.ok && evict(d, t.low, get(&rival, "id"), EVICT_SPOT));
    const char *vic = door_grant(d, PRINCIPAL_USER, "vic", NULL, 0, 0);
    struct answer events = door_ask(d, vic, VERB_EVENT_LIST, "{\"limit\":1000}");
    CHECK(events.ok && strstr(events.text, "task.evicted") && !strstr(events.text, "rivals") && !strstr(events.text, "takeover")
          && !strstr(events.text, get(&rival, "id")));
    CHECK(event_says(d, d->admin, "fleet.evicted", "rivals"));
}

TEST(spot_work_gets_the_notice_that_the_operator_promised)
{
    struct two t = two_new("spot", "high", 1);
    AUTO(door_free) struct door *d = t.d;
    CHECK(door_ask(d, d->admin, VERB_RULES_SET, "{\"spot_notice\":120}").ok && evict(d, t.low, t.high, EVICT_SPOT));
    CHECK(the_attempt(d)->grace_s == 120);
    check_books(d, "notice");
}
