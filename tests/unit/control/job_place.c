#include "door.h"

struct ask {
    const char *job, *node;
    int64_t task;
    int gpu;
    int64_t milli, mib;
    int gpus;
};
static bool place(struct door *d, struct ask a)
{
    struct placement *p = ARENA_NEW(d->mem, struct placement);
    struct order_gpu *g = ARENA_ARRAY(d->mem, struct order_gpu, 4);
    struct place_ask *ask = ARENA_NEW(d->mem, struct place_ask);
    struct node *n = state_node(memory_of(d), a.node);
    int64_t before = rows_in(d, "attempt");
    for (int i = 0; i < a.gpus; i++)
        g[i] = (struct order_gpu){
            .index = a.gpu + i, .uuid = "", .milli = a.milli, .mem_mib = a.mib
        };
    *p = (struct placement){ .task = a.task,
                             .node = n ? n->id : 12345,
                             .gpus = { g, (size_t)a.gpus } };
    (void)!id_parse(a.job, PREFIX_JOB, &p->job);
    ask->placements = (struct objects){ p, 1 };
    CHECK(door_ask_as(d, &system_caller, VERB_JOB_PLACE, ask).ok);
    return rows_in(d, "attempt") == before + 1;
}

TEST(what_the_planner_wishes_is_checked_again)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    door_node(d, "n1", 2, key);
    const char *one = door_submit(
        d, d->admin, "{\"command\":[\"true\"],\"gpus\":\"1\",\"cpus\":1,\"memory\":\"1GB\"}");
    const char *half = door_submit(
        d, d->admin,
        "{\"command\":[\"true\"],\"gpus\":\"0.5\",\"cpus\":1,\"memory\":\"1GB\",\"count\":9}");
    const char *big = door_submit(d, d->admin, "{\"command\":[\"true\"],\"cpus\":65}"),
               *wide = door_submit(d, d->admin, "{\"command\":[\"true\"],\"memory\":\"300GB\"}");
    const char *other = door_submit(
        d, d->admin, "{\"command\":[\"true\"],\"gpus\":\"B200:1\",\"cpus\":1,\"memory\":\"1GB\"}");
    CHECK(!place(d, (struct ask){ one, "nosuch", 0, 0, 1000, 143771, 1 }));
    CHECK(!place(d, (struct ask){ "job-0000000000zzz", "n1", 0, 0, 1000, 143771, 1 }));
    CHECK(!place(d, (struct ask){ one, "n1", 0, 0, 500, 1000, 1 }));    /* less than it asked for */
    CHECK(!place(d, (struct ask){ one, "n1", 0, 0, 1000, 143771, 2 })); /* more */
    CHECK(
        !place(d, (struct ask){ one, "n1", 0, 7, 1000, 143771, 1 })); /* a GPU that is not there */
    CHECK(!place(d, (struct ask){ one, "n1", 0, 0, 0, 0, 0 }));
    CHECK(
        !place(d, (struct ask){ one, "n1", 1, 0, 1000, 143771, 1 })); /* a task that is not there */
    CHECK(!place(d, (struct ask){ other, "n1", 0, 0, 1000, 143771, 1 })); /* another model */
    CHECK(!place(d, (struct ask){ big, "n1", 0, 0, 0, 0, 0 })
          && !place(d, (struct ask){ wide, "n1", 0, 0, 0, 0, 0 }));
    CHECK(place(d, (struct ask){ half, "n1", 0, 0, 500, 71885, 1 })
          && place(d, (struct ask){ half, "n1", 1, 0, 500, 71885, 1 }));
    CHECK(!place(d, (struct ask){ half, "n1", 2, 0, 500, 71885, 1 })); /* full */
    CHECK(
        !place(d, (struct ask){ half, "n1", 2, 1, 500, 143772, 1 })); /* more memory than it has */
    CHECK(!place(d, (struct ask){ one, "n1", 0, 0, 1000, 143771, 1 })
          && place(d, (struct ask){ one, "n1", 0, 1, 1000, 143771, 1 }));
    CHECK(!place(d, (struct ask){ one, "n1", 0, 1, 1000, 143771, 1 })); /* it has a node already */
    CHECK(door_ask(d, d->admin, VERB_NODE_UPDATE, "{\"node\":\"n1\",\"state\":\"cordoned\"}").ok);
    const char *small = door_submit(d, d->admin, "{\"command\":[\"true\"]}");
    CHECK(!place(d, (struct ask){ small, "n1", 0, 0, 0, 0, 0 }));
    check_books(d, "placing");
}

TEST(a_share_has_neighbours_of_its_own_project_only)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    door_node(d, "n1", 1, key);
    const char *body = "{\"command\":[\"true\"],\"gpus\":\"0.25\",\"cpus\":1,\"memory\":\"1GB\"}";
    CHECK(door_ask(d, d->admin, VERB_PROJECT_CREATE, "{\"name\":\"beta\"}").ok);
    struct answer b = door_ask_full(d, d->admin, "beta", VERB_JOB_SUBMIT, body, NULL, 0);
    CHECK(place(d, (struct ask){ door_submit(d, d->admin, body), "n1", 0, 0, 250, 35942, 1 }));
    CHECK(!place(d, (struct ask){ get(&b, "id"), "n1", 0, 0, 250, 35942, 1 }));
    CHECK(place(d, (struct ask){ door_submit(d, d->admin, body), "n1", 0, 0, 250, 35942, 1 }));
}

TEST(the_image_host_runs_only_where_the_operator_allows_it)
{
    AUTO(door_free) struct door *d = door_new(false);
    struct answer token = door_ask(d, d->admin, VERB_NODE_TOKEN, NULL);
    struct answer joined
        = door_ask(d, NULL, VERB_NODE_JOIN,
                   FMT(d, "{\"token\":\"%s\",\"name\":\"n1\"}", get(&token, "token")));
    struct hello hello
        = { .kind = "hello",
            .next = 1,
            .info = { .hostname = "n1", .cpu_milli = 8000, .mem_mib = 8192, .host_image = false } };
    CHECK(door_ask_bound(d, get(&joined, "key"), NULL, VERB_NODE_HELLO, &hello).ok);
    CHECK(!door_place(d, door_submit(d, d->admin, "{\"command\":[\"true\"],\"image\":\"host\"}"), 0,
                      "n1", -1));
    CHECK(door_place(d,
                     door_submit(d, d->admin, "{\"command\":[\"true\"],\"image\":\"debian:12\"}"),
                     0, "n1", -1));
}

TEST(a_quota_holds_at_submit_and_at_every_placement)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    door_node(d, "n1", 4, key);
    CHECK(
        door_ask(d, d->admin, VERB_PROJECT_UPDATE,
                 "{\"project\":\"default\",\"gpus\":1.5,\"cpus\":4,\"memory_mib\":8192,\"jobs\":4}")
            .ok);
    static const char *const never[] = { "\"gpus\":\"2\"", "\"cpus\":5", "\"memory\":\"9GB\"" };
    for (size_t i = 0; i < COUNT(never); i++) {
        struct answer a = door_ask(d, d->admin, VERB_JOB_SUBMIT,
                                   FMT(d, "{\"command\":[\"true\"],%s}", never[i]));
        CHECK(!a.ok && a.err.rc == RC_OVER_QUOTA);
    }
    const char *gpu = door_submit(
        d, d->admin,
        "{\"command\":[\"true\"],\"gpus\":\"1\",\"cpus\":1,\"memory\":\"1GB\",\"count\":2}");
    const char *cpu = door_submit(
        d, d->admin, "{\"command\":[\"true\"],\"cpus\":3,\"memory\":\"1GB\",\"count\":2}");
    const char *mem
        = door_submit(d, d->admin, "{\"command\":[\"true\"],\"cpus\":0.5,\"memory\":\"7GB\"}");
    const char *fourth = door_submit(
        d, d->admin, "{\"command\":[\"true\"],\"gpus\":\"0.5\",\"cpus\":0.1,\"memory\":\"16MB\"}");
    struct answer fifth = door_ask(d, d->admin, VERB_JOB_SUBMIT, "{\"command\":[\"true\"]}");
    CHECK(text_given(fourth) && !fifth.ok && fifth.err.rc == RC_OVER_QUOTA);
    CHECK(door_place(d, gpu, 0, "n1", 0)
          && !door_place(d, gpu, 1, "n1", 1)); /* 2 GPUs would be more than 1.5 */
    CHECK(place(d, (struct ask){ fourth, "n1", 0, 1, 500, 71885, 1 })); /* exactly 1.5 */
    CHECK(!door_place(d, cpu, 0, "n1", -1));                            /* 4.1 CPUs */
    CHECK(door_place(d, mem, 0, "n1", -1) == false);                    /* 8 GB and 16 MB */
    CHECK(door_report(d, key, 1, door_attempt(d, fourth, 0), "ended", ",\"outcome\":\"succeeded\"")
              .ok);
    CHECK(door_place(d, cpu, 0, "n1", -1) && !door_place(d, cpu, 1, "n1", -1)); /* exactly 4 */
    CHECK(text_given(
        door_submit(d, d->admin, "{\"command\":[\"true\"]}"))); /* the fourth has ended */
    check_books(d, "quota");
}

TEST(an_update_of_a_quota_leaves_what_it_does_not_name)
{
    AUTO(door_free) struct door *d = door_new(false);
    CHECK(door_ask(d, d->admin, VERB_PROJECT_UPDATE,
                   "{\"project\":\"default\",\"gpus\":8,\"jobs\":5}")
              .ok);
    struct answer a = door_ask(d, d->admin, VERB_PROJECT_UPDATE,
                               "{\"project\":\"default\",\"quota\":{\"cpus\":16}}");
    const struct quota *q = &state_project(memory_of(d), "default")->quota;
    CHECK(a.ok && q->gpu_milli == 8000 && q->cpu_milli == 16000 && q->jobs == 5 && q->mem_mib < 0);
    CHECK(door_ask(d, d->admin, VERB_PROJECT_UPDATE, "{\"project\":\"default\",\"gpus\":-1}").ok
          && q->gpu_milli < 0 && q->cpu_milli == 16000);
    struct answer stale = door_ask_full(d, d->admin, NULL, VERB_PROJECT_UPDATE,
                                        "{\"project\":\"default\",\"gpus\":1}", NULL, a.version);
    CHECK(!stale.ok && stale.err.rc == RC_STALE && q->gpu_milli < 0);
    check_books(d, "quota");
}

TEST(a_queue_of_equal_jobs_is_told_once_why_it_waits)
{
    AUTO(door_free) struct door *d = door_new(true);
    const char *ask = "{\"command\":[\"true\"],\"cpus\":1}";
    const char *first = door_submit(d, d->admin, ask);
    door_run(d, 100);
    CHECK(text_is(job_word(d, first, "reason"), "NoSuitableNode"));
    int64_t events = rows_in(d, "event");
    const char *second = door_submit(d, d->admin, ask);
    door_run(d, 100);
    CHECK(text_is(job_word(d, second, "reason"), "NoSuitableNode") && rows_in(d, "event") == events + 1);
    char key[SECRET_TEXT];
    door_node(d, "n1", 0, key);
    door_run(d, 100);
    CHECK(text_is(job_word(d, second, "state"), "placed"));
    const char *third = door_submit(d, d->admin, "{\"command\":[\"true\"],\"cpus\":999}");
    door_run(d, 100);
    CHECK(text_is(job_word(d, third, "reason"), "NoSuitableNode"));
}

/* However large the secrets are or become, what waits to be begun on a node can be told to it. */
TEST(a_node_that_has_much_to_begin_gets_no_more_until_some_has_begun)
{
    AUTO(door_free) struct door *d = door_new(false);
    AUTO(str_done) struct str names = { 0 };
    char key[SECRET_TEXT];
    door_node(d, "n1", 2, key);
    for (int i = 0; i < 64; i++) {
        CHECK(door_ask(d, d->admin, VERB_SECRET_SET, FMT(d, "{\"name\":\"S%d\",\"value\":\"s\"}", i)).ok);
        str_printf(&names, "%s\"S%d\"", i ? "," : "", i);
    }
    const char *job = door_submit(
        d, d->admin,
        FMT(d, "{\"command\":[\"true\"],\"cpus\":0.1,\"memory\":\"16MB\",\"count\":40,\"secrets\":[%s]}", names.at));
    int placed = 0;
    while (placed < 40 && door_place(d, job, placed, "n1", -1))
        placed++;
    CHECK(placed > 4 && placed < 20);
    size_t most = memory_of(d) ? state_node(memory_of(d), "n1")->order_bytes : 0;
    CHECK(most <= ORDERS_BYTES && (size_t)placed * 64 * SECRET_BYTES <= most);
    check_books(d, "full");
    CHECK(!door_place(d, door_submit(d, d->admin, "{\"command\":[\"true\"],\"cpus\":0.1}"), 0, "n1", -1));
    CHECK(door_report(d, key, 1, door_attempt(d, job, 0), "started", "").ok);
    CHECK(door_report(d, key, 2, door_attempt(d, job, 1), "started", "").ok);
    CHECK(door_place(d, job, placed, "n1", -1));
    CHECK(door_report(d, key, 3, door_attempt(d, job, 2), "ended", ",\"outcome\":\"succeeded\"").ok);
    CHECK(door_report(d, key, 4, door_attempt(d, job, 0), "ended", ",\"outcome\":\"succeeded\"").ok);
    check_books(d, "some have begun");
}
