#include "door.h"
#include <stdio.h>

static struct json *order_of(struct door *d, const char *key, const char *body,
                             struct desired *bound)
{
    const char *job = door_submit(d, d->admin, body);
    struct err err = { 0 };
    CHECK(door_place(d, job, 0, "n1", strstr(body, "gpus") ? 1 : -1));
    struct answer a = door_hello(d, key, "n1", 2, 1, (struct texts){ 0 });
    CHECK(
        a.ok
        && bind_read(a.json, &desired_fields, d->mem, bound, NULL, &err)); /* a node can read it */
    if (err.text[0])
        printf("# %s: %s\n", err.field, err.text);
    struct json *orders = json_get(a.json, "orders"), *o = orders ? orders->first : NULL;
    while (o && !text_is(json_text(o, "job"), job))
        o = o->next;
    CHECK(o != NULL);
    return o;
}
static const char *env_of(struct json *order, const char *name)
{
    struct json *env = json_get(order, "env");
    const char *text = env ? json_text(env, name) : NULL;
    return text ? text : "";
}

TEST(an_order_says_what_to_run_where_and_with_what)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    struct desired bound = { 0 };
    door_node(d, "n1", 2, key);
    struct json *o = order_of(d, key,
                              "{\"name\":\"train\",\"command\":[\"python\",\"t.py\"],\"gpus\":"
                              "\"1\",\"cpus\":2,\"memory\":\"4GB\",\"env\":{\"EPOCHS\":\"3\"}}",
                              &bound);
    CHECK(bound.full && text_is(bound.kind, "desired")
          && text_is(json_get(o, "argv")->first->text, "python"));
    CHECK(text_is(env_of(o, "ARCUS_JOB_ID"), json_text(o, "job"))
          && text_is(env_of(o, "ARCUS_JOB_NAME"), "train") && text_is(env_of(o, "EPOCHS"), "3"));
    CHECK(text_is(env_of(o, "CUDA_VISIBLE_DEVICES"), "0")
          && text_is(env_of(o, "NVIDIA_VISIBLE_DEVICES"), "GPU-n1-1")
          && text_is(env_of(o, "ARCUS_ARRAY_INDEX"), "0"));
    CHECK(json_int(o, "cpu_milli", 0) == 2000 && json_int(o, "mem_mib", 0) == 4096
          && json_int(o, "run_for_s", 0) == 300 && json_int(o, "grace_s", 0) == 30);
    CHECK(json_int(json_get(o, "gpus")->first, "milli", 0) == 1000);
}

TEST(a_users_variable_takes_the_place_of_ours_and_breaks_no_message)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    struct desired bound = { 0 };
    door_node(d, "n1", 2, key);
    struct json *o = order_of(d, key,
                              "{\"command\":[\"true\"],\"env\":{\"CUDA_VISIBLE_DEVICES\":\"\","
                              "\"MASTER_PORT\":\"1\",\"SLURM_JOB_ID\":\"7\"}}",
                              &bound);
    CHECK(text_is(env_of(o, "MASTER_PORT"), "1") && text_is(env_of(o, "SLURM_JOB_ID"), "7"));
}

TEST(the_largest_job_that_can_be_asked_for_is_an_order_that_a_node_can_read)
{
    AUTO(door_free) struct door *d = door_new(false);
    AUTO(str_done) struct str body = { 0 };
    char key[SECRET_TEXT];
    struct desired bound = { 0 };
    door_node(d, "n1", 2, key);
    str_text(&body, "{\"command\":[\"x\"");
    for (int i = 0; i < 900; i++)
        str_text(&body, ",\"0123456789012345678901234567890123456789\\u00e9\\n\"");
    str_text(&body, "],\"env\":{\"E0\":\"x\"");
    for (int i = 1; i < 200; i++)
        str_printf(&body, ",\"E%d\":\"%0*d\"", i, 150, i);
    str_text(&body, "},\"labels\":{\"a\":\"b\"},\"setup\":[\"true\"]}");
    order_of(d, key, body.at, &bound);
}

TEST(setup_comes_before_a_command_and_wait_has_no_time_limit)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    struct desired bound = { 0 };
    door_node(d, "n1", 2, key);
    struct json *o = order_of(
        d, key, "{\"setup\":[\"prepare it\"],\"command\":[\"go\"],\"on_lost\":\"wait\"}", &bound);
    struct json *argv = json_get(o, "argv")->first;
    CHECK(text_is(argv->text, "/bin/sh") && strstr(argv->next->next->text, "prepare it")
          && json_int(o, "run_for_s", -1) == 0);
}

/* --- a node is told of everything in one piece when it comes back */

TEST(what_has_begun_is_told_in_few_words)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    door_node(d, "n1", 2, key);
    CHECK(door_ask(d, d->admin, VERB_SECRET_SET, "{\"name\":\"TOKEN\",\"value\":\"hush\"}").ok);
    const char *job = door_submit(
        d, d->admin, "{\"command\":[\"serve\"],\"secrets\":[\"TOKEN\"],\"env\":{\"A\":\"words\"}}");
    CHECK(door_place(d, job, 0, "n1", -1));
    struct answer a = door_hello(d, key, "n1", 2, 1, (struct texts){ 0 });
    CHECK(a.ok && strstr(a.text, "hush") && strstr(a.text, "words") && strstr(a.text, "argv"));
    CHECK(door_report(d, key, 1, door_attempt(d, job, 0), "started", "").ok);
    a = door_hello(d, key, "n1", 2, 2, (struct texts){ 0 });
    CHECK(a.ok && strstr(a.text, door_attempt(d, job, 0)) && strstr(a.text, "run_for_s"));
    CHECK(!strstr(a.text, "hush") && !strstr(a.text, "words") && !strstr(a.text, "argv"));
    check_books(d, "begun");
}

TEST(more_attempts_than_four_thousand_on_one_node_can_be_told_both_ways)
{
    enum { MANY = 4200 };
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    struct err err = { 0 };
    struct desired bound = { 0 };
    struct hello hello = { 0 };
    door_node(d, "n1", 2, key);
    const char *job = door_submit(
        d, d->admin,
        FMT(d, "{\"command\":[\"true\"],\"cpus\":0.01,\"memory\":\"16MB\",\"count\":%d}", MANY));
    struct placement *p = ARENA_ARRAY(d->mem, struct placement, MANY);
    struct node *n = state_node(memory_of(d), "n1");
    for (int i = 0; i < MANY; i++) {
        p[i] = (struct placement){ .task = i, .node = n->id };
        CHECK(id_parse(job, PREFIX_JOB, &p[i].job));
    }
    struct place_ask ask = { .placements = { p, MANY } };
    CHECK(door_ask_as(d, &system_caller, VERB_JOB_PLACE, &ask).ok);
    CHECK(rows_in(d, "attempt") == MANY);
    struct answer a = door_hello(d, key, "n1", 2, 1, (struct texts){ 0 });
    CHECK(a.ok && bind_read(a.json, &desired_fields, d->mem, &bound, NULL, &err));
    CHECK(bound.orders.count == MANY);
    hello = (struct hello){ .kind = "hello",
                            .next = 1,
                            .info = { .hostname = "n1", .cpu_milli = 64000, .mem_mib = 262144 },
                            .running.at = ARENA_ARRAY(d->mem, const char *, MANY),
                            .running.count = MANY };
    for (int i = 0; i < MANY; i++)
        hello.running.at[i]
            = id_text(arena_take(d->mem, ID_TEXT, 1), PREFIX_ATTEMPT, ((struct order *)bound.orders.at)[i].attempt);
    AUTO(str_done) struct str text = { 0 };
    struct json *doc;
    bind_write(&(struct json_out){ .to = &text }, &hello_fields, &hello);
    CHECK(json_parse((struct slice){ text.at, text.len }, d->mem, &doc, &err));
    CHECK(bind_read(doc, &hello_fields, d->mem, &hello, NULL, &err) && hello.running.count == MANY);
}
