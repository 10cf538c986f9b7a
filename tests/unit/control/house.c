#include "door.h"

/* A node with these GPUs: 0 plain, 1 without ECC, 2 in MIG mode with instances, 3 in MIG mode with none. */
static void node_of_all_kinds(struct door *d, const char *name, const char *label)
{
    char key[SECRET_TEXT];
    struct gpu_info *g = ARENA_ARRAY(d->mem, struct gpu_info, 4);
    struct hello *hello = ARENA_NEW(d->mem, struct hello);
    struct pair *labels = ARENA_NEW(d->mem, struct pair);
    door_node(d, name, 0, key);
    for (int i = 0; i < 4; i++)
        g[i] = (struct gpu_info){ .index = i, .uuid = FMT(d, "GPU-%s-%d", name, i), .model = "NVIDIA H200", .mem_mib = 143771, .healthy = true,
                                  .ecc_off = i == 1, .mig = i == 2 ? "1g.18gb@0,3g.71gb@4" : i == 3 ? "on" : NULL };
    *labels = (struct pair){ "residency", label };
    *hello = (struct hello){ .kind = "hello", .next = 1, .beat = 1, .info = { .hostname = name, .cpu_milli = 64000, .mem_mib = 262144, .host_image = true,
                                                                              .gpus = { g, 4 }, .labels = { labels, label != NULL } } };
    CHECK(door_ask_bound(d, key, NULL, VERB_NODE_HELLO, hello).ok);
}

static bool put(struct door *d, const char *job, int64_t task, struct order_gpu gpu)
{
    struct placement *p = ARENA_NEW(d->mem, struct placement);
    struct place_ask *ask = ARENA_NEW(d->mem, struct place_ask);
    struct order_gpu *g = ARENA_NEW(d->mem, struct order_gpu);
    int64_t before = rows_in(d, "attempt");
    *g = gpu;
    *p = (struct placement){ .task = task, .node = state_node(memory_of(d), "n1")->id, .gpus = { g, gpu.milli > 0 } };
    CHECK(id_parse(job, PREFIX_JOB, &p->job));
    ask->placements = (struct objects){ p, 1 };
    CHECK(door_ask_as(d, &system_caller, VERB_JOB_PLACE, ask).ok);
    return rows_in(d, "attempt") == before + 1;
}
#define NO_GPU (struct order_gpu){ 0 }
#define SHARE(i, m) (struct order_gpu){ .index = i, .uuid = "", .milli = m, .mem_mib = 143771 * (m) / 1000 }
#define SLICE_AT(i, name, s, n) (struct order_gpu){ .index = i, .uuid = "", .milli = mig_milli(name), .mem_mib = 143771 * (n) / 8, .mig = name, .slot = s, .size = n }
#define SET(d, body) door_ask(d, (d)->admin, VERB_NODE_UPDATE, "{\"node\":\"n1\"," body "}")
#define JOB(d, more) door_submit(d, (d)->admin, "{\"command\":[\"true\"],\"cpus\":0.1,\"memory\":\"16MB\",\"count\":40" more "}")

TEST(a_taint_keeps_out_who_does_not_tolerate_it)
{
    AUTO(door_free) struct door *d = door_new(false);
    node_of_all_kinds(d, "n1", NULL);
    const char *plain = JOB(d, ""), *some = JOB(d, ",\"tolerations\":[\"team=a:NoSchedule\"]"), *all = JOB(d, ",\"tolerations\":[\"team\",\"old=\"]");
    CHECK(SET(d, "\"taint\":[\"team=a:NoSchedule\",\"old\"]").ok);
    CHECK(!put(d, plain, 0, NO_GPU) && !put(d, some, 0, NO_GPU) && put(d, all, 0, NO_GPU));
    struct answer a = SET(d, "\"taint\":[\"old-\"]");
    CHECK(a.ok && text_is(get(&a, "taints"), "team=a:NoSchedule") && put(d, some, 0, NO_GPU) && !put(d, plain, 0, NO_GPU));
    a = SET(d, "\"taint\":[\"team=b\"]");
    CHECK(a.ok && text_is(get(&a, "taints"), "team=b:NoSchedule") && !put(d, some, 1, NO_GPU));      /* the same key again */
    check_books(d, "tainted");
    a = door_ask(d, d->admin, VERB_NODE_GET, "{\"node\":\"n1\"}");
    CHECK(text_is(get(&a, "taints"), "team=b:NoSchedule"));
    CHECK(SET(d, "\"taint\":[\"team-\"]").ok && put(d, plain, 0, NO_GPU));
    CHECK(!SET(d, "\"taint\":[\"team-\"]").ok && !SET(d, "\"taint\":[\"a=b:NoExecute\"]").ok && !SET(d, "\"taint\":[\"\"]").ok);
    check_books(d, "taints");
}

TEST(a_node_of_one_project_takes_nobody_else)
{
    AUTO(door_free) struct door *d = door_new(false);
    node_of_all_kinds(d, "n1", NULL);
    CHECK(door_ask(d, d->admin, VERB_PROJECT_CREATE, "{\"name\":\"beta\"}").ok);
    struct answer b = door_ask_full(d, d->admin, "beta", VERB_JOB_SUBMIT, "{\"command\":[\"true\"]}", NULL, 0);
    const char *mine = JOB(d, "");
    struct answer a = SET(d, "\"exclusive\":\"beta\"");
    CHECK(a.ok && text_is(get(&a, "exclusive"), "beta") && !put(d, mine, 0, NO_GPU) && put(d, get(&b, "id"), 0, NO_GPU));
    a = door_ask(d, d->admin, VERB_NODE_GET, "{\"node\":\"n1\"}");
    CHECK(text_is(get(&a, "exclusive"), "beta"));
    check_books(d, "exclusive");
    a = SET(d, "\"exclusive\":\"nobody\"");
    CHECK(!a.ok && text_is(a.err.field, "exclusive"));
    CHECK(SET(d, "\"exclusive\":\"\"").ok && put(d, mine, 0, NO_GPU));
    check_books(d, "for everybody");
}

TEST(a_project_with_a_residency_runs_nowhere_else)
{
    AUTO(door_free) struct door *d = door_new(false);
    node_of_all_kinds(d, "n1", "DE,ch");
    const char *job = JOB(d, "");
    struct answer a = door_ask(d, d->admin, VERB_PROJECT_UPDATE, "{\"project\":\"default\",\"residency\":\"fr, EU\"}");
    CHECK(a.ok && text_is(get(&a, "residency"), "eu,fr") && !put(d, job, 0, NO_GPU));
    check_books(d, "elsewhere");
    CHECK(SET(d, "\"region\":\"eu\"").ok && put(d, job, 0, NO_GPU));
    CHECK(SET(d, "\"region\":\"us\"").ok && !put(d, job, 1, NO_GPU));
    CHECK(door_ask(d, d->admin, VERB_PROJECT_UPDATE, "{\"project\":\"default\",\"residency\":\"de\"}").ok && put(d, job, 1, NO_GPU));
    CHECK(door_ask(d, d->admin, VERB_PROJECT_UPDATE, "{\"project\":\"default\",\"gpus\":8}").ok);
    a = door_ask(d, d->admin, VERB_PROJECT_GET, "{\"project\":\"default\"}");
    CHECK(text_is(get(&a, "residency"), "de"));
    CHECK(!door_ask(d, d->admin, VERB_PROJECT_UPDATE, "{\"project\":\"default\",\"residency\":\"a;b\"}").ok);
    check_books(d, "at home");
}

TEST(a_gpu_without_error_correction_is_not_shared)
{
    AUTO(door_free) struct door *d = door_new(false);
    node_of_all_kinds(d, "n1", NULL);
    const char *half = JOB(d, ",\"gpus\":\"0.5\""), *one = JOB(d, ",\"gpus\":\"1\"");
    CHECK(!put(d, half, 0, SHARE(1, 500)) && put(d, half, 0, SHARE(0, 500)) && put(d, one, 0, SHARE(1, 1000)));
}

TEST(the_node_says_which_neighbours_may_mix)
{
    AUTO(door_free) struct door *d = door_new(false);
    node_of_all_kinds(d, "n1", NULL);
    CHECK(door_ask(d, d->admin, VERB_PROJECT_CREATE, "{\"name\":\"beta\"}").ok);
    struct answer b = door_ask_full(d, d->admin, "beta", VERB_JOB_SUBMIT, "{\"command\":[\"true\"],\"gpus\":\"0.25\",\"cpus\":1,\"memory\":\"1GB\",\"count\":9}", NULL, 0);
    const char *mine = JOB(d, ",\"gpus\":\"0.25\""), *whole = JOB(d, ",\"gpus\":\"1\"");
    CHECK(put(d, mine, 0, SHARE(0, 250)) && !put(d, get(&b, "id"), 0, SHARE(0, 250)));
    CHECK(SET(d, "\"share\":\"any\"").ok && put(d, get(&b, "id"), 0, SHARE(0, 250)));
    CHECK(SET(d, "\"share\":\"project\"").ok && !put(d, mine, 1, SHARE(0, 250)) && !put(d, get(&b, "id"), 1, SHARE(0, 250)));
    CHECK(SET(d, "\"share\":\"none\"").ok && !put(d, mine, 1, SHARE(0, 250)) && put(d, whole, 0, SHARE(1, 1000)));
    check_books(d, "neighbours");
}

TEST(where_only_equal_shares_are_allowed_the_first_decides)
{
    AUTO(door_free) struct door *d = door_new(false);
    node_of_all_kinds(d, "n1", NULL);
    const char *quarter = JOB(d, ",\"gpus\":\"0.25\""), *half = JOB(d, ",\"gpus\":\"0.5\""), *third = JOB(d, ",\"gpus\":\"0.3\"");
    CHECK(SET(d, "\"equal_shares\":true").ok && !put(d, third, 0, SHARE(0, 300)));
    CHECK(put(d, quarter, 0, SHARE(0, 250)) && !put(d, half, 0, SHARE(0, 500)) && put(d, quarter, 1, SHARE(0, 250)));
    CHECK(SET(d, "\"equal_shares\":false").ok && put(d, half, 0, SHARE(0, 500)));
}

TEST(a_slice_has_slots_that_the_hardware_allows_and_nobody_holds)
{
    AUTO(door_free) struct door *d = door_new(false);
    node_of_all_kinds(d, "n1", NULL);
    const char *one = JOB(d, ",\"mig\":\"1g.18gb\""), *three = JOB(d, ",\"mig\":\"3g.71gb\""), *two = JOB(d, ",\"mig\":\"2g.35gb\""), *whole = JOB(d, ",\"gpus\":\"1\"");
    CHECK(!put(d, one, 0, SLICE_AT(0, "1g.18gb", 0, 1)) && !put(d, whole, 0, SHARE(2, 1000)));
    CHECK(!put(d, one, 0, SLICE_AT(2, "1g.18gb", 1, 1)) && put(d, one, 0, SLICE_AT(2, "1g.18gb", 0, 1)));       /* only where one was made */
    CHECK(!put(d, one, 1, SLICE_AT(2, "1g.18gb", 0, 1)) && !put(d, two, 0, SLICE_AT(2, "2g.35gb", 2, 2)));
    CHECK(!put(d, one, 1, SLICE_AT(3, "1g.18gb", 6, 1)) && SET(d, "\"mig\":\"dynamic\"").ok && put(d, one, 1, SLICE_AT(3, "1g.18gb", 6, 1)));
    CHECK(!put(d, three, 0, SLICE_AT(3, "3g.71gb", 4, 4)) && !put(d, three, 0, SLICE_AT(3, "3g.71gb", 2, 4)) && !put(d, three, 0, SLICE_AT(3, "3g.71gb", 0, 1)));
    CHECK(put(d, three, 0, SLICE_AT(3, "3g.71gb", 0, 4)) && put(d, two, 0, SLICE_AT(3, "2g.35gb", 4, 2)) && !put(d, two, 1, SLICE_AT(3, "2g.35gb", 4, 2)));
    check_books(d, "slices");
    CHECK(state_node(memory_of(d), "n1") && rows_in(d, "attempt") == 4);
}

TEST(the_planner_and_the_door_agree_about_rules)
{
    AUTO(door_free) struct door *d = door_new(true);
    node_of_all_kinds(d, "n1", "de");
    CHECK(SET(d, "\"taint\":[\"team=a\"],\"mig\":\"dynamic\"").ok);
    const char *kept = JOB(d, ",\"mig\":\"1g.18gb\""), *slices = JOB(d, ",\"mig\":\"1g.18gb\",\"tolerations\":[\"team\"]");
    door_run(d, 500);
    CHECK(text_is(job_word(d, kept, "reason"), "NoSuitableNode") && text_is(job_word(d, slices, "reason"), "Resources") && rows_in(d, "attempt") == 14);
    check_books(d, "planned");
    check_picture(d, "planned");
    CHECK(SET(d, "\"taint\":[\"team-\"],\"share\":\"any\",\"equal_shares\":true,\"exclusive\":\"default\"").ok);
    door_run(d, 500);
    CHECK(text_is(job_word(d, kept, "reason"), "Resources") || text_is(job_word(d, kept, "reason"), "Priority"));
    CHECK(door_ask(d, d->admin, VERB_PROJECT_UPDATE, "{\"project\":\"default\",\"residency\":\"fr\"}").ok);
    door_run(d, 500);
    CHECK(text_is(job_word(d, kept, "reason"), "NoSuitableNode"));
    check_picture(d, "elsewhere");
}
