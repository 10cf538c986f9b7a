/* Asking the planner through the door: what is told, to whom, and that nothing is changed by asking. */
#include "door.h"

#define GPUS(n, more) "{\"command\":[\"true\"],\"gpus\":\"" n "\",\"cpus\":1,\"memory\":\"1GB\"" more "}"

static struct answer why(struct door *d, const char *job)
{
    return door_ask(d, d->admin, VERB_JOB_WHY, FMT(d, "{\"job\":\"%s\"}", job));
}
static bool says(const struct answer *a, const char *part)
{
    bool there = a->ok && strstr(a->text, part);
    if (!there)
        printf("# no %s in %s%s\n", part, a->text, a->err.text);
    return there;
}

TEST(each_kind_of_waiting_is_told_with_what_would_end_it)
{
    AUTO(door_free) struct door *d = door_new(true);
    char key[SECRET_TEXT], other[SECRET_TEXT];
    door_node(d, "n1", 2, key);
    door_node(d, "n2", 1, other);
    CHECK(door_ask(d, d->admin, VERB_NODE_UPDATE, "{\"node\":\"n2\",\"state\":\"cordoned\"}").ok);
    const char *runs = door_submit(d, d->admin, GPUS("1", ",\"name\":\"first\""));
    door_run(d, 1500);
    const char *large = door_submit(d, d->admin, GPUS("2", "")), *never = door_submit(d, d->admin, GPUS("B200:1", "")),
               *many = door_submit(d, d->admin, GPUS("3", "")), *behind = door_submit(d, d->admin, GPUS("2", ",\"priority\":10")),
               *after = door_submit(d, d->admin, FMT(d, GPUS("1", ",\"after\":[{\"job\":\"%s\"}]"), runs));
    door_run(d, 1500);
    struct answer a = why(d, large);
    CHECK(says(&a, "\"starts\":\"later\"") && says(&a, "\"reason\":\"Resources\"") && says(&a, "ask for at most 1 GPU: n1 would start it now"));
    CHECK(says(&a, "\"nodes\":2,\"nodes_with_room\":0") && says(&a, "{\"filter\":\"cordoned\",\"nodes\":1,\"text\":\"are cordoned\"}")
          && says(&a, "{\"filter\":\"gpus_taken\",\"nodes\":1,") && says(&a, "{\"node\":\"n1\",\"lacks\":\"1 of 2 GPUs are free, 2 asked for\"}"));
    a = why(d, never);
    CHECK(says(&a, "\"starts\":\"never\"") && says(&a, "\"reason\":\"NoSuitableNode\"") && says(&a, "take GPUs of another model: ") && says(&a, "\"gpu_model\""));
    a = why(d, many);
    CHECK(says(&a, "\"starts\":\"never\"") && says(&a, "ask for at most 2 GPUs: n1 could run it"));
    a = why(d, behind);
    CHECK(says(&a, "\"reason\":\"Priority\"") && says(&a, "--priority low"));
    a = why(d, after);
    CHECK(says(&a, "\"reason\":\"Dependency\"") && says(&a, "(first, placed) to succeed") && says(&a, "\"nodes_with_room\":1"));
    a = why(d, runs);
    CHECK(says(&a, "\"starts\":\"now\"") && says(&a, "\"reason\":\"\""));
    a = why(d, "ghost");
    CHECK(!a.ok && a.err.rc == RC_NOT_FOUND);
    CHECK(door_report(d, key, 1, door_attempt(d, runs, 0), "ended", ",\"outcome\":\"succeeded\"").ok);
    a = why(d, runs);
    CHECK(!a.ok && a.err.rc == RC_CONFLICT);
    check_books(d, "why");
    check_picture(d, "why");
}

TEST(a_limit_is_told_with_who_could_raise_it_to_what)
{
    AUTO(door_free) struct door *d = door_new(true);
    char key[SECRET_TEXT];
    door_node(d, "n1", 4, key);
    CHECK(door_ask(d, d->admin, VERB_PROJECT_UPDATE, "{\"project\":\"default\",\"gpus\":2}").ok);
    door_submit(d, d->admin, GPUS("1", ""));
    door_run(d, 1500);
    const char *b = door_submit(d, d->admin, GPUS("2", ""));
    door_run(d, 1500);
    struct answer a = why(d, b);
    CHECK(says(&a, "\"reason\":\"Quota\"") && says(&a, "1 of 2 gpus are held") && says(&a, "ask for at most 1 GPU\"")
          && says(&a, "arcus projects quota default --gpus 3") && says(&a, "\"nodes_with_room\":1"));
    CHECK(door_ask(d, d->admin, VERB_PROJECT_UPDATE, "{\"project\":\"default\",\"gpus\":-1}").ok
          && door_ask(d, d->admin, VERB_QUOTA_SET, "{\"project\":\"default\",\"user\":\"admin\",\"gpus\":2}").ok);
    door_run(d, 1500);
    a = why(d, b);
    CHECK(says(&a, "user admin of project default may hold 2 GPUs") && says(&a, "arcus quota set default --user admin --gpus 3"));
    a = door_ask(d, d->admin, VERB_JOB_PLAN, GPUS("4", ""));
    CHECK(says(&a, "\"starts\":\"never\"") && says(&a, "could never run"));
}

TEST(a_plan_tells_where_a_job_would_run_and_leaves_nothing)
{
    AUTO(door_free) struct door *d = door_new(true);
    char key[SECRET_TEXT];
    door_node(d, "n1", 4, key);
    door_run(d, 1500);
    const char *rows = store_text(d), *memory = memory_text(d, memory_of(d), 0);
    struct answer a = door_ask(d, d->admin, VERB_JOB_PLAN, GPUS("2", ",\"name\":\"train\""));
    CHECK(says(&a, "\"name\":\"train\"") && says(&a, "\"starts\":\"now\"") && says(&a, "\"node\":\"n1\",\"gpus\":\"0,1\",\"tasks\":1,\"count\":1"));
    a = door_ask(d, d->admin, VERB_JOB_PLAN, GPUS("1", ",\"count\":9"));
    CHECK(says(&a, "\"tasks\":4,\"count\":9"));
    a = door_ask(d, d->admin, VERB_JOB_PLAN, GPUS("0.25", ""));
    CHECK(says(&a, "\"gpus\":\"0:0.25\""));
    a = door_ask(d, d->admin, VERB_JOB_PLAN, GPUS("5", ""));
    CHECK(says(&a, "\"starts\":\"never\"") && says(&a, "ask for at most 4 GPUs"));
    a = door_ask(d, d->admin, VERB_JOB_PLAN, GPUS("1", ",\"secrets\":[\"nonesuch\"]"));
    CHECK(!a.ok && a.err.rc == RC_BAD_INPUT && text_is(a.err.field, "secrets"));
    a = door_ask(d, d->admin, VERB_JOB_PLAN, "{\"command\":[\"true\"],\"gpus\":\"1.2345\"}");
    CHECK(!a.ok && text_is(a.err.field, "gpus"));
    CHECK(text_is(rows, store_text(d)) && text_is(memory, memory_text(d, memory_of(d), 0)));
    check_picture(d, "plan");
    const char *job = door_submit(d, d->admin, GPUS("2", ""));
    door_run(d, 1500);
    CHECK(text_is(job_word(d, job, "node"), "n1"));
}

TEST(a_cloud_without_a_planner_says_that_nobody_has_looked)
{
    AUTO(door_free) struct door *d = door_new(false);
    struct answer a = door_ask(d, d->admin, VERB_JOB_PLAN, GPUS("1", ""));
    CHECK(says(&a, "\"starts\":\"later\"") && says(&a, "has not looked"));
    const char *job = door_submit(d, d->admin, GPUS("1", ""));
    a = why(d, job);
    CHECK(says(&a, "\"starts\":\"later\"") && says(&a, "\"reason\":\"Priority\""));
}

TEST(jobs_of_another_project_are_not_told_of)
{
    AUTO(door_free) struct door *d = door_new(true);
    char key[SECRET_TEXT];
    door_node(d, "n1", 1, key);
    CHECK(door_ask(d, d->admin, VERB_PROJECT_CREATE, "{\"name\":\"beta\"}").ok);
    const char *hers = door_grant(d, PRINCIPAL_USER, "admin", "beta", ROLE_ADMIN, 0);
    const char *first = door_submit(d, d->admin, GPUS("1", ",\"name\":\"secretname\""));
    door_run(d, 1500);
    struct answer a = door_ask_full(d, hers, "beta", VERB_JOB_PLAN, GPUS("1", ""), NULL, 0);
    CHECK(says(&a, "\"starts\":\"later\"") && !strstr(a.text, first) && !strstr(a.text, "secretname"));
    a = door_ask_full(d, hers, "beta", VERB_JOB_WHY, FMT(d, "{\"job\":\"%s\"}", first), NULL, 0);
    CHECK(!a.ok && a.err.rc == RC_NOT_FOUND);
}

TEST(a_gang_is_planned_as_a_whole_and_with_what_it_tolerates)
{
    AUTO(door_free) struct door *d = door_new(true);
    char key[SECRET_TEXT];
    door_node(d, "n1", 2, key);
    door_node(d, "n2", 2, key);
    struct answer a = door_ask(d, d->admin, VERB_JOB_PLAN, "{\"image\":\"host\",\"command\":[\"true\"],\"gpus\":2,\"nodes\":2}");
    CHECK(a.ok && text_is(get(&a, "starts"), "now") && get_int(&a, "tasks") == 2 && get_int(&a, "count") == 2);
    a = door_ask(d, d->admin, VERB_JOB_PLAN, "{\"image\":\"host\",\"command\":[\"true\"],\"gpus\":2,\"nodes\":3}");
    CHECK(a.ok && text_is(get(&a, "starts"), "never") && text_is(get(&a, "reason"), "NoSuitableNode"));
    CHECK(door_ask(d, d->admin, VERB_NODE_UPDATE, "{\"node\":\"n2\",\"taint\":[\"team=a\"]}").ok);
    a = door_ask(d, d->admin, VERB_JOB_PLAN, "{\"image\":\"host\",\"command\":[\"true\"],\"gpus\":2,\"nodes\":2}");
    CHECK(a.ok && text_is(get(&a, "starts"), "never"));
    a = door_ask(d, d->admin, VERB_JOB_PLAN, "{\"image\":\"host\",\"command\":[\"true\"],\"gpus\":2,\"nodes\":2,\"tolerations\":[\"team=a\"]}");
    CHECK(a.ok && text_is(get(&a, "starts"), "now"));
}
