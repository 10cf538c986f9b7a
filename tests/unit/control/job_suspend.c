#include "door.h"
#include "model/hold.h"
#include "store/store_internal.h"
#include <stdlib.h>

struct two { struct door *d; char key[SECRET_TEXT]; const char *one, *other; };     /* `one` runs on the only GPU of n1, `other` waits for it */

static struct two two_with(const char *more)
{
    struct two t = { .d = door_new(false) };
    struct door *d = t.d;
    door_node(d, "n1", 1, t.key);
    t.one = door_submit(d, d->admin, FMT(d, "{\"command\":[\"true\"],\"gpus\":1,\"cpus\":2,\"memory\":\"8GB\"%s}", more));
    t.other = door_submit(d, d->admin, "{\"command\":[\"true\"],\"gpus\":1,\"cpus\":2,\"memory\":\"8GB\"}");
    CHECK(door_place(d, t.one, 0, "n1", 0) && door_report(d, t.key, 1, door_attempt(d, t.one, 0), "started", NULL).ok);
    return t;
}

static struct two two_new(void) { return two_with(""); }

static struct attempt *attempt_of(struct two *t, const char *job)
{
    int64_t id;
    return id_parse(door_attempt(t->d, job, 0), PREFIX_ATTEMPT, &id) ? map_get(memory_of(t->d)->attempts, id) : NULL;
}

static struct answer wish(struct two *t, enum verb_id verb, const char *job)
{
    return door_ask(t->d, t->d->admin, verb, FMT(t->d, "{\"job\":\"%s\"}", job));
}

/* What the node says of one, in answer to that wish. */
static void told(struct two *t, const char *job, int64_t n, const char *state, const char *more)
{
    struct door *d = t->d;
    CHECK(door_ask(d, t->key, VERB_NODE_REPORT,
                   FMT(d, "{\"kind\":\"report\",\"items\":[],\"holds\":[{\"attempt\":\"%s\",\"n\":%lld,\"state\":\"%s\",\"at_ms\":%lld,\"gpu_mib\":2048%s}]}",
                       door_attempt(d, job, 0), (long long)n, state, (long long)os_wall_ms(d->os), more ? more : "")).ok);
    check_books(d, state);
}

static void plan(struct two *t, const struct eviction *e, const struct resume *r)
{
    struct door *d = t->d;
    struct place_ask *ask = ARENA_NEW(d->mem, struct place_ask);
    if (e)
        ask->evictions = (struct objects){ memcpy(ARENA_NEW(d->mem, struct eviction), e, sizeof *e), 1 };
    if (r)
        ask->resumes = (struct objects){ memcpy(ARENA_NEW(d->mem, struct resume), r, sizeof *r), 1 };
    CHECK(door_ask_as(d, &system_caller, VERB_JOB_PLACE, ask).ok);
}

static void give_back(struct two *t)
{
    struct resume r = { .node = state_node(memory_of(t->d), "n1")->id };
    CHECK(id_parse(t->one, PREFIX_JOB, &r.job));
    plan(t, NULL, &r);
    check_books(t->d, "given back");
}

/* Its owner wants it to go on, and the planner knows of nobody else. */
static bool resumed(struct two *t)
{
    bool wished = wish(t, VERB_JOB_RESUME, t->one).ok && attempt_of(t, t->one)->hold == STEP_WAITS;
    check_books(t->d, "wished");
    give_back(t);
    return wished && attempt_of(t, t->one)->hold == STEP_RESUMING;
}

static struct project *project_of_admin(struct two *t)
{
    struct project *p, *found = NULL;
    for (size_t i = 0; (p = map_next(memory_of(t->d)->projects, &i));)
        found = p->holders ? p : found;
    return found;
}

/* Its node is heard all the while. */
static void pass(struct two *t, int64_t seconds)
{
    for (int64_t i = 0; i < seconds; i += 5) {
        door_run(t->d, 5 * 1000);
        CHECK(door_ask(t->d, t->key, VERB_NODE_REPORT, "{\"kind\":\"report\",\"items\":[]}").ok);
    }
}

TEST(a_suspended_task_gives_its_gpu_to_another_and_has_it_again_afterwards)
{
    struct two t = two_new();
    AUTO(door_free) struct door *d = t.d;
    int64_t mem = attempt_of(&t, t.one)->mem_mib;
    CHECK(wish(&t, VERB_JOB_SUSPEND, t.one).ok && attempt_of(&t, t.one)->hold == STEP_SUSPENDING);
    check_books(d, "asked");
    CHECK(!door_place(d, t.other, 0, "n1", 0)); /* it has it yet */
    told(&t, t.one, 1, "suspended", NULL);
    CHECK(text_is(job_word(d, t.one, "state"), "suspended") && text_is(job_word(d, t.one, "reason"), "Suspended"));
    CHECK(attempt_of(&t, t.one)->gpu_milli == 0 && attempt_of(&t, t.one)->mem_mib == mem + 2048);
    CHECK(door_place(d, t.other, 0, "n1", 0) && door_report(d, t.key, 2, door_attempt(d, t.other, 0), "started", NULL).ok);

    CHECK(wish(&t, VERB_JOB_RESUME, t.one).ok && attempt_of(&t, t.one)->hold == STEP_WAITS);
    CHECK(text_is(job_word(d, t.one, "state"), "suspended") && text_is(job_word(d, t.one, "reason"), "ResumeGPUs"));
    check_books(d, "waits for its GPU");
    give_back(&t); /* another has it */
    CHECK(attempt_of(&t, t.one)->hold == STEP_WAITS);
    CHECK(door_report(d, t.key, 3, door_attempt(d, t.other, 0), "ended", ",\"outcome\":\"succeeded\"").ok);
    CHECK(attempt_of(&t, t.one)->hold == STEP_WAITS); /* whose they are now the planner knows */
    give_back(&t);
    CHECK(attempt_of(&t, t.one)->hold == STEP_RESUMING && attempt_of(&t, t.one)->gpu_milli == 1000);
    told(&t, t.one, 2, "running", NULL);
    CHECK(attempt_of(&t, t.one)->hold == STEP_NONE && attempt_of(&t, t.one)->mem_mib == mem && text_is(job_word(d, t.one, "state"), "running"));
}

TEST(it_survives_a_restart_of_the_server_in_every_step)
{
    static const char *const states[] = { NULL, "suspended", NULL, "running" };
    struct two t = two_new();
    AUTO(door_free) struct door *d = t.d;
    for (size_t i = 0; i < COUNT(states); i++) {
        if (states[i])
            told(&t, t.one, i == 1 ? 1 : 2, states[i], NULL);
        else
            CHECK(i == 0 ? wish(&t, VERB_JOB_SUSPEND, t.one).ok : resumed(&t));
        check_books(d, "before");
        int hold = attempt_of(&t, t.one)->hold;
        CHECK(door_crash(d) && door_hello(d, t.key, "n1", 1, 2, (struct texts){ 0 }).ok && attempt_of(&t, t.one)->hold == hold);
        check_books(d, "after");
    }
}

TEST(what_a_node_cannot_suspend_runs_on_and_says_why)
{
    struct two t = two_new();
    AUTO(door_free) struct door *d = t.d;
    int64_t mem = attempt_of(&t, t.one)->mem_mib;
    CHECK(wish(&t, VERB_JOB_SUSPEND, t.one).ok);
    told(&t, t.one, 1, "running", ",\"why\":\"managed memory\"");
    CHECK(attempt_of(&t, t.one)->hold == STEP_NONE && attempt_of(&t, t.one)->mem_mib == mem && attempt_of(&t, t.one)->gpu_milli == 1000);
    CHECK(door_events(d, "task.suspend_failed") == 1 && text_is(job_word(d, t.one, "state"), "running"));
    told(&t, t.one, 1, "running", NULL); /* told with every report */
    CHECK(door_events(d, "task.suspend_failed") == 1);
    CHECK(strstr(door_ask(d, d->admin, VERB_JOB_ATTEMPTS, FMT(d, "{\"job\":\"%s\"}", t.one)).text, "\"no: when it was tried: managed memory\""));
    CHECK(wish(&t, VERB_JOB_SUSPEND, t.one).ok); /* whoever wants to may try again */
    told(&t, t.one, 2, "suspended", NULL);
    CHECK(strstr(door_ask(d, d->admin, VERB_JOB_ATTEMPTS, FMT(d, "{\"job\":\"%s\"}", t.one)).text, "\"suspendable\":\"yes\""));
}

TEST(one_that_cannot_come_back_gives_its_gpu_back_again)
{
    struct two t = two_new();
    AUTO(door_free) struct door *d = t.d;
    CHECK(wish(&t, VERB_JOB_SUSPEND, t.one).ok);
    told(&t, t.one, 1, "suspended", NULL);
    CHECK(resumed(&t));
    told(&t, t.one, 1, "suspended", NULL); /* of the wish before: nothing new */
    CHECK(attempt_of(&t, t.one)->hold == STEP_RESUMING);
    told(&t, t.one, 2, "suspended", ",\"why\":\"no memory\"");
    CHECK(attempt_of(&t, t.one)->hold == STEP_SUSPENDED && attempt_of(&t, t.one)->gpu_milli == 0);
    CHECK(door_place(d, t.other, 0, "n1", 0));
}

TEST(who_is_suspended_pays_for_memory_and_not_for_gpus)
{
    struct two t = two_new();
    AUTO(door_free) struct door *d = t.d;
    pass(&t, 10);
    CHECK(wish(&t, VERB_JOB_SUSPEND, t.one).ok);
    told(&t, t.one, 1, "suspended", NULL);
    pass(&t, 100);
    CHECK(resumed(&t));
    told(&t, t.one, 2, "running", NULL);
    pass(&t, 10);
    CHECK(door_report(d, t.key, 2, door_attempt(d, t.one, 0), "ended", ",\"outcome\":\"succeeded\"").ok);
    check_books(d, "over");
    struct answer sum = door_ask(d, d->admin, VERB_USAGE_SUM, "{\"by\":\"project\"}");
    int64_t gpu = 0, all = 0;
    for (const char *at = sum.text; at && (at = strstr(at, "\"gpu_seconds\":")); at++)
        gpu += strtoll(at + strlen("\"gpu_seconds\":"), NULL, 10);
    for (const char *at = sum.text; at && (at = strstr(at, "\"seconds\":")); at++)
        all += strtoll(at + strlen("\"seconds\":"), NULL, 10);
    CHECK(all >= 119 && all <= 125 && gpu >= 19 && gpu <= 25);
}

TEST(a_suspended_task_can_be_cancelled_and_what_its_node_says_then_changes_nothing)
{
    struct two t = two_new();
    AUTO(door_free) struct door *d = t.d;
    CHECK(wish(&t, VERB_JOB_SUSPEND, t.one).ok);
    told(&t, t.one, 1, "suspended", NULL);
    CHECK(attempt_of(&t, t.one)->grace_s > 0 && wish(&t, VERB_JOB_CANCEL, t.one).ok);
    CHECK(attempt_of(&t, t.one)->grace_s == 0); /* its GPU may be another's: nothing of it runs again */
    told(&t, t.one, 1, "suspended", NULL);
    CHECK(!wish(&t, VERB_JOB_RESUME, t.one).ok);
    CHECK(door_report(d, t.key, 2, door_attempt(d, t.one, 0), "ended", ",\"outcome\":\"cancelled\"").ok);
    CHECK(text_is(job_word(d, t.one, "state"), "cancelled"));
    check_books(d, "over");
    CHECK(map_count(memory_of(d)->attempts) == 0 && (!project_of_admin(&t)->holders || map_count(project_of_admin(&t)->holders) == 0));
}

TEST(a_suspended_task_is_evicted_without_grace_too)
{
    struct two t = two_new();
    AUTO(door_free) struct door *d = t.d;
    CHECK(wish(&t, VERB_JOB_SUSPEND, t.one).ok);
    told(&t, t.one, 1, "suspended", NULL);
    CHECK(attempt_of(&t, t.one)->grace_s > 0 && door_ask(d, d->admin, VERB_NODE_DRAIN, "{\"node\":\"n1\",\"requeue\":true}").ok);
    CHECK(attempt_of(&t, t.one)->stop && attempt_of(&t, t.one)->grace_s == 0);
}

TEST(memory_that_a_task_keeps_after_it_was_resumed_stays_in_the_books_until_its_limit_is_lowered)
{
    struct two t = two_new();
    AUTO(door_free) struct door *d = t.d;
    int64_t mem = attempt_of(&t, t.one)->mem_mib;
    CHECK(wish(&t, VERB_JOB_SUSPEND, t.one).ok);
    told(&t, t.one, 1, "suspended", NULL);
    CHECK(resumed(&t));
    told(&t, t.one, 2, "running", ",\"over_mib\":2048");
    CHECK(attempt_of(&t, t.one)->hold == STEP_NONE && attempt_of(&t, t.one)->mem_mib == mem + 2048);
    CHECK(door_crash(d) && door_hello(d, t.key, "n1", 1, 2, (struct texts){ 0 }).ok && attempt_of(&t, t.one)->mem_mib == mem + 2048);
    told(&t, t.one, 2, "running", NULL);
    CHECK(attempt_of(&t, t.one)->mem_mib == mem && door_events(d, "task.resumed") == 1);
    told(&t, t.one, 2, "running", ",\"over_mib\":2048"); /* an agent that begins has not looked yet: what was given back stays so */
    CHECK(attempt_of(&t, t.one)->mem_mib == mem);
}

TEST(what_does_not_run_cannot_be_suspended_nor_what_runs_be_resumed)
{
    struct two t = two_new();
    AUTO(door_free) struct door *d = t.d;
    struct answer a = wish(&t, VERB_JOB_SUSPEND, t.other);
    CHECK(!a.ok && a.err.rc == RC_CONFLICT && strstr(a.err.text, "does not run"));
    a = wish(&t, VERB_JOB_RESUME, t.one);
    CHECK(!a.ok && a.err.rc == RC_CONFLICT && strstr(a.err.text, "not suspended"));
    CHECK(wish(&t, VERB_JOB_SUSPEND, t.one).ok);
    a = wish(&t, VERB_JOB_SUSPEND, t.one);
    CHECK(!a.ok && a.err.rc == RC_CONFLICT && strstr(a.err.text, "already"));
    check_books(d, "refused");
}

/* --- spot work that yields */

static struct two spot_new(void)
{
    struct two t = { .d = door_new(false) };
    struct door *d = t.d;
    door_node(d, "n1", 1, t.key);
    CHECK(door_ask(d, d->admin, VERB_RULES_SET, "{\"spot_suspend\":\"always\"}").ok);
    t.one = door_submit(d, d->admin, "{\"command\":[\"true\"],\"gpus\":1,\"priority\":\"spot\"}"); /* all of the node's CPUs and memory */
    t.other = door_submit(d, d->admin, "{\"command\":[\"true\"],\"gpus\":1,\"priority\":\"high\"}");
    CHECK(door_place(d, t.one, 0, "n1", 0) && door_report(d, t.key, 1, door_attempt(d, t.one, 0), "started", NULL).ok);
    return t;
}

static void evict(struct two *t)
{
    struct eviction e = { .node = state_node(memory_of(t->d), "n1")->id, .why = EVICT_SPOT };
    CHECK(id_parse(t->one, PREFIX_JOB, &e.job) && id_parse(t->other, PREFIX_JOB, &e.for_job));
    plan(t, &e, NULL);
    check_books(t->d, "evicted");
}

TEST(spot_work_that_yields_is_suspended_and_goes_on_when_the_planner_says_so)
{
    struct two t = spot_new();
    AUTO(door_free) struct door *d = t.d;
    int64_t mem = attempt_of(&t, t.one)->mem_mib, cpu = attempt_of(&t, t.one)->cpu_milli;
    evict(&t);
    CHECK(attempt_of(&t, t.one)->hold == STEP_SUSPENDING && attempt_of(&t, t.one)->returns && !attempt_of(&t, t.one)->stop);
    evict(&t); /* it is on its way */
    CHECK(attempt_of(&t, t.one)->hold == STEP_SUSPENDING && attempt_of(&t, t.one)->hold_n == 1);
    told(&t, t.one, 1, "suspended", ",\"mem_mib\":3000");
    struct attempt *a = attempt_of(&t, t.one);
    CHECK(a->hold == STEP_WAITS && a->returns && a->cpu_milli == 0 && a->mem_mib == 3000 && a->gpu_milli == 0);
    CHECK(text_is(job_word(d, t.one, "state"), "suspended") && text_is(job_word(d, t.one, "reason"), "ResumeGPUs"));
    CHECK(door_crash(d) && door_hello(d, t.key, "n1", 1, 2, (struct texts){ 0 }).ok && attempt_of(&t, t.one)->returns);
    check_books(d, "a server that began anew");
    CHECK(door_place(d, t.other, 0, "n1", 0) && attempt_of(&t, t.other)->mem_mib == mem - 3000); /* a part of the node, less what is kept there */
    CHECK(door_report(d, t.key, 2, door_attempt(d, t.other, 0), "started", NULL).ok);
    give_back(&t); /* somebody has it */
    CHECK(attempt_of(&t, t.one)->hold == STEP_WAITS);
    CHECK(door_report(d, t.key, 3, door_attempt(d, t.other, 0), "ended", ",\"outcome\":\"succeeded\"").ok);
    CHECK(attempt_of(&t, t.one)->hold == STEP_WAITS); /* the planner may know somebody with a better right */
    struct quota *q = &attempt_of(&t, t.one)->task->job->project->quota, was = *q;
    struct { int64_t *of, most; } low[] = { { &q->cpu_milli, cpu - 1 }, { &q->mem_mib, mem - 1 }, { &q->gpu_milli, 999 } };
    for (size_t i = 0; i < COUNT(low); i++) { /* its project may not hold that much any more */
        *low[i].of = low[i].most;
        struct resume r = { .node = state_node(memory_of(d), "n1")->id };
        CHECK(id_parse(t.one, PREFIX_JOB, &r.job));
        plan(&t, NULL, &r);
        CHECK(attempt_of(&t, t.one)->hold == STEP_WAITS);
        *q = was;
    }
    give_back(&t);
    a = attempt_of(&t, t.one);
    CHECK(a->hold == STEP_RESUMING && a->gpu_milli == 1000 && a->cpu_milli == cpu && a->mem_mib == mem);
    told(&t, t.one, 2, "running", NULL);
    a = attempt_of(&t, t.one);
    CHECK(a->hold == STEP_NONE && !a->returns && a->mem_mib == mem && text_is(job_word(d, t.one, "state"), "running"));
}

TEST(spot_work_that_cannot_be_suspended_yields_as_ever_and_is_not_asked_to_again)
{
    struct two t = spot_new();
    AUTO(door_free) struct door *d = t.d;
    evict(&t);
    told(&t, t.one, 1, "running", ",\"why\":\"it uses managed memory\"");
    CHECK(attempt_of(&t, t.one)->stop && attempt_of(&t, t.one)->stop_as == OUTCOME_PREEMPTED && door_events(d, "task.evicted") == 1);
    CHECK(door_report(d, t.key, 2, door_attempt(d, t.one, 0), "ended", ",\"outcome\":\"preempted\"").ok);
    CHECK(text_is(job_word(d, t.one, "state"), "queued"));
    check_books(d, "it waits again");
}

TEST(spot_work_that_cannot_come_back_is_begun_anew)
{
    struct two t = spot_new();
    AUTO(door_free) struct door *d = t.d;
    evict(&t);
    told(&t, t.one, 1, "suspended", ",\"mem_mib\":3000");
    give_back(&t);
    told(&t, t.one, 2, "suspended", ",\"mem_mib\":3000,\"why\":\"no memory\"");
    CHECK(attempt_of(&t, t.one)->stop && attempt_of(&t, t.one)->stop_as == OUTCOME_PREEMPTED && attempt_of(&t, t.one)->gpu_milli == 0);
}

TEST(on_simulated_gpus_spot_work_ends_unless_the_rule_says_always)
{
    struct two t = spot_new();
    AUTO(door_free) struct door *d = t.d;
    CHECK(door_ask(d, d->admin, VERB_RULES_SET, "{\"spot_suspend\":\"real\"}").ok);
    evict(&t);
    CHECK(attempt_of(&t, t.one)->stop && attempt_of(&t, t.one)->hold == STEP_NONE);
}

TEST(a_suspended_task_whose_node_is_emptied_or_lost_waits_again)
{
    for (int lost = 0; lost < 2; lost++) {
        struct two t = two_new();
        AUTO(door_free) struct door *d = t.d;
        CHECK(wish(&t, VERB_JOB_SUSPEND, t.one).ok);
        told(&t, t.one, 1, "suspended", NULL);
        if (lost) {
            door_run(d, 900 * 1000); /* nobody hears of it */
        } else {
            CHECK(door_ask(d, d->admin, VERB_NODE_DRAIN, "{\"node\":\"n1\",\"requeue\":true}").ok && attempt_of(&t, t.one)->stop);
            CHECK(door_report(d, t.key, 2, door_attempt(d, t.one, 0), "ended", ",\"outcome\":\"preempted\"").ok);
        }
        CHECK(text_is(job_word(d, t.one, "state"), "queued"));
        check_books(d, lost ? "lost" : "emptied");
    }
}

TEST(nobody_suspends_or_resumes_what_is_another_projects)
{
    struct two t = two_new();
    AUTO(door_free) struct door *d = t.d;
    CHECK(door_ask(d, d->admin, VERB_PROJECT_CREATE, "{\"name\":\"beta\"}").ok);
    const char *hers = door_grant(d, PRINCIPAL_USER, "admin", "beta", ROLE_DEVELOPER, 0);
    for (int on = 0; on < 2; on++) {
        if (on)
            CHECK(wish(&t, VERB_JOB_SUSPEND, t.one).ok);
        int before = attempt_of(&t, t.one)->hold;
        struct answer a = door_ask_full(d, hers, "beta", on ? VERB_JOB_RESUME : VERB_JOB_SUSPEND, FMT(d, "{\"job\":\"%s\"}", t.one), NULL, 0);
        CHECK(!a.ok && a.err.rc == RC_NOT_FOUND && attempt_of(&t, t.one)->hold == before);
        a = door_ask_full(d, hers, "default", on ? VERB_JOB_RESUME : VERB_JOB_SUSPEND, FMT(d, "{\"job\":\"%s\"}", t.one), NULL, 0);
        CHECK(!a.ok && attempt_of(&t, t.one)->hold == before);
    }
}

static int64_t number_of(struct door *d, const char *text)
{
    struct err err = { 0 };
    int64_t n = -1;
    CHECK(d->store->how->number(d->conn, text, &n, &err));
    return n;
}

/* A silent node says only afterwards that the task had ended: what was wished meanwhile has not changed what is paid. */
TEST(the_parts_of_an_attempt_are_its_time_also_when_it_had_ended_before_the_wish)
{
    for (int back = 0; back < 2; back++) {
        struct two t = two_new();
        AUTO(door_free) struct door *d = t.d;
        pass(&t, 10);
        if (back) {
            CHECK(wish(&t, VERB_JOB_SUSPEND, t.one).ok);
            told(&t, t.one, 1, "suspended", NULL);
            pass(&t, 5);
        }
        int64_t ended = os_wall_ms(d->os), own = attempt_of(&t, t.one)->own_mem;
        door_run(d, 5 * 1000);
        CHECK(wish(&t, back ? VERB_JOB_RESUME : VERB_JOB_SUSPEND, t.one).ok);
        check_books(d, "wished too late");
        CHECK(door_ask(d, t.key, VERB_NODE_REPORT,
                       FMT(d, "{\"kind\":\"report\",\"items\":[{\"n\":2,\"attempt\":\"%s\",\"news\":\"ended\",\"at_ms\":%lld,\"outcome\":\"succeeded\"}]}",
                           door_attempt(d, t.one, 0), (long long)ended)).ok);
        check_books(d, "over");
        CHECK(number_of(d, "SELECT SUM(ended_ms - started_ms) FROM usage") == number_of(d, "SELECT MAX(ended_ms - started_ms) FROM attempt"));
        CHECK(number_of(d, "SELECT MAX(ended_ms) FROM usage") == ended && rows_in(d, "usage") == 1 + back);
        CHECK(number_of(d, "SELECT COUNT(*) FROM usage WHERE gpu_milli > 0") == 1 && number_of(d, "SELECT MAX(mem_mib) FROM usage") == own + 2048 * back);
    }
}

/* --- what is billed of one that ends by our fault */

static void check_days(struct door *d, const char *where)
{
    static const char *const rows = "SELECT COALESCE(SUM(ended_ms - started_ms), 0) FROM usage WHERE billable = 1", *const days = "SELECT COALESCE(SUM(ms), 0) FROM usage_day",
                      *const held = "SELECT COALESCE(SUM((ended_ms - started_ms) * gpu_milli), 0) FROM usage WHERE billable = 1", *const gpus = "SELECT COALESCE(SUM(gpu_milli_ms), 0) FROM usage_day";
    CHECK(number_of(d, rows) == number_of(d, days) && number_of(d, held) == number_of(d, gpus));
    CHECK(number_of(d, "SELECT COUNT(*) FROM usage WHERE billable = 1") == number_of(d, "SELECT COALESCE(SUM(attempts), 0) FROM usage_day"));
    check_books(d, where);
}

TEST(nothing_is_billed_of_one_that_was_suspended_and_ends_by_our_fault)
{
    for (int i = 0; i < 8; i++) {
        bool lost = i & 1, crash = i & 2, away = i & 4;
        struct two t = two_with(",\"max_duration\":\"10h\"");
        AUTO(door_free) struct door *d = t.d;
        CHECK(door_ask(d, d->admin, VERB_QUOTA_SET, "{\"project\":\"default\",\"gpu_hours_month\":1000}").ok);
        for (int k = 0; k < 3; k++) {
            pass(&t, 100);
            CHECK(wish(&t, VERB_JOB_SUSPEND, t.one).ok);
            told(&t, t.one, 2 * k + 1, "suspended", NULL);
            pass(&t, 10);
            if (k == 2 && away)
                break;
            CHECK(resumed(&t));
            told(&t, t.one, 2 * k + 2, "running", NULL);
        }
        struct limit_row *r = books_row(&project_of_admin(&t)->limits, 0, "");
        CHECK(r && r->used[PERIODS - 1] >= 300 * INT64_C(1000) * 1000 && number_of(d, "SELECT SUM(attempts) FROM usage_day") == (away ? 5 : 6));
        check_days(d, "before");
        if (crash)
            CHECK(door_crash(d) && door_hello(d, t.key, "n1", 1, 2, (struct texts){ 0 }).ok);
        check_days(d, "a new server");
        if (lost)
            door_run(d, 900 * 1000);
        else
            CHECK(door_report(d, t.key, 2, door_attempt(d, t.one, 0), "ended", ",\"outcome\":\"node_fault\"").ok);
        CHECK(text_is(job_word(d, t.one, "state"), "queued"));
        CHECK(number_of(d, "SELECT COUNT(*) FROM usage WHERE billable = 1") == 0 && rows_in(d, "usage") == (away ? 6 : 7));
        struct answer sum = door_ask(d, d->admin, VERB_USAGE_SUM, "{\"by\":\"project,day\"}");
        CHECK(sum.ok && item_count(&sum) == 0);
        r = books_row(&project_of_admin(&t)->limits, 0, "");
        CHECK(r && r->used[PERIODS - 1] == 0);
        check_days(d, "nothing is left");
    }
}

TEST(of_one_that_ends_otherwise_all_parts_are_billed_and_of_very_many_the_oldest_always)
{
    struct two t = two_new();
    AUTO(door_free) struct door *d = t.d;
    for (int k = 0; k < 40; k++) {
        pass(&t, 5);
        CHECK(wish(&t, VERB_JOB_SUSPEND, t.one).ok);
        told(&t, t.one, 2 * k + 1, "suspended", NULL);
        pass(&t, 5);
        CHECK(resumed(&t));
        told(&t, t.one, 2 * k + 2, "running", NULL);
    }
    check_days(d, "80 parts");
    CHECK(door_crash(d) && door_hello(d, t.key, "n1", 1, 2, (struct texts){ 0 }).ok);
    CHECK(door_report(d, t.key, 2, door_attempt(d, t.one, 0), "ended", ",\"outcome\":\"node_fault\"").ok);
    CHECK(rows_in(d, "usage") == 81 && number_of(d, "SELECT COUNT(*) FROM usage WHERE billable = 1") == 80 - 64);
    check_days(d, "over");
    CHECK(door_place(d, t.one, 0, "n1", 0) && door_report(d, t.key, 3, door_attempt(d, t.one, 0), "started", NULL).ok);
    pass(&t, 5);
    CHECK(wish(&t, VERB_JOB_SUSPEND, t.one).ok);
    told(&t, t.one, 1, "suspended", NULL);
    CHECK(door_report(d, t.key, 4, door_attempt(d, t.one, 0), "ended", ",\"outcome\":\"exited\",\"exit_code\":1").ok);
    CHECK(number_of(d, "SELECT COUNT(*) FROM usage WHERE billable = 1") == 80 - 64 + 2);
    check_days(d, "its own fault");
}

TEST(a_part_does_not_go_on_behind_the_end_that_a_node_tells_later)
{
    for (int back = 0; back < 2; back++) {
        struct two t = two_with(",\"max_duration\":\"10h\"");
        AUTO(door_free) struct door *d = t.d;
        CHECK(door_ask(d, d->admin, VERB_QUOTA_SET, "{\"project\":\"default\",\"gpu_hours_month\":1000}").ok);
        pass(&t, 10);
        int64_t ended = os_wall_ms(d->os), began = attempt_of(&t, t.one)->started_ms;
        pass(&t, 10);
        CHECK(wish(&t, VERB_JOB_SUSPEND, t.one).ok);
        told(&t, t.one, 1, "suspended", NULL);
        if (back) {
            pass(&t, 10);
            CHECK(resumed(&t));
            told(&t, t.one, 2, "running", NULL);
        }
        check_days(d, "it is not known yet");
        CHECK(door_ask(d, t.key, VERB_NODE_REPORT,
                       FMT(d, "{\"kind\":\"report\",\"items\":[{\"n\":2,\"attempt\":\"%s\",\"news\":\"ended\",\"at_ms\":%lld,\"outcome\":\"succeeded\"}]}",
                           door_attempt(d, t.one, 0), (long long)ended)).ok);
        check_days(d, "over");
        CHECK(number_of(d, "SELECT MAX(ended_ms) FROM attempt") == ended && number_of(d, "SELECT MAX(ended_ms) FROM usage") == ended);
        CHECK(number_of(d, "SELECT SUM(ended_ms - started_ms) FROM usage") == ended - began && rows_in(d, "usage") == 2 + back);
        CHECK(books_row(&project_of_admin(&t)->limits, 0, "")->used[PERIODS - 1] == (ended - began) * 1000);
    }
}
