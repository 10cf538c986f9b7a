#include "door.h"

enum { RANKS = 3 };
static const char *const names[] = { "n1", "n2", "n3" };

/* Three nodes and no planner: gangs are placed by hand, so each step can be looked at. */
struct three {
    struct door *d;
    char keys[RANKS][SECRET_TEXT];
    int64_t n[RANKS];
};
static struct three three_new(void)
{
    struct three t = { .d = door_new(false), .n = { 1, 1, 1 } };
    for (int i = 0; i < RANKS; i++)
        door_node(t.d, names[i], 1, t.keys[i]);
    return t;
}

#define SPEC "\"command\":[\"true\"],\"gpus\":\"1\",\"cpus\":1,\"memory\":\"1GB\""
#define GANG "{" SPEC ",\"nodes\":3,\"retries\":1,\"retry_delay\":\"0s\"}"

/* How many of these were placed: rank by rank on those nodes. */
static int64_t place(struct door *d, const char *job, int count, const char *const *nodes)
{
    struct placement *p = ARENA_ARRAY(d->mem, struct placement, (size_t)count);
    struct place_ask *ask = ARENA_NEW(d->mem, struct place_ask);
    int64_t before = rows_in(d, "attempt");
    for (int i = 0; i < count; i++) {
        struct order_gpu *g = ARENA_NEW(d->mem, struct order_gpu);
        *g = (struct order_gpu){ .index = 0, .uuid = "", .milli = 1000, .mem_mib = 143771 };
        p[i] = (struct placement){ .task = i, .node = state_node(memory_of(d), nodes[i])->id, .gpus = { g, 1 } };
        CHECK(id_parse(job, PREFIX_JOB, &p[i].job));
    }
    ask->placements = (struct objects){ p, (size_t)count };
    (void)door_ask_as(d, &system_caller, VERB_JOB_PLACE, ask);
    return rows_in(d, "attempt") - before;
}

static int rank_on(struct three *t, const char *job, int rank) /* the number of the node that it was last on */
{
    struct job *j = state_job(memory_of(t->d), state_project(memory_of(t->d), "default")->id, job);
    struct task *task = j ? job_task(j, rank) : NULL;
    for (int i = 0; task && task->attempt && i < RANKS; i++)
        if (text_is(task->attempt->node->name, names[i]))
            return i;
    return -1;
}

static void say(struct three *t, const char *job, int rank, const char *news, const char *more)
{
    int on = rank_on(t, job, rank);
    CHECK(on >= 0);
    if (on >= 0)
        CHECK(door_report(t->d, t->keys[on], t->n[on]++, door_attempt(t->d, job, rank), news, more).ok);
}
static void start(struct three *t, const char *job)
{
    for (int i = 0; i < RANKS; i++)
        say(t, job, i, "started", NULL);
}

static struct task *task_of(struct door *d, const char *job, int rank)
{
    struct job *j = state_job(memory_of(d), state_project(memory_of(d), "default")->id, job);
    return j ? job_task(j, rank) : NULL;
}

TEST(a_gang_is_taken_or_refused_as_a_whole)
{
    struct three t = three_new();
    AUTO(door_free) struct door *d = t.d;
    const char *job = door_submit(d, d->admin, GANG);
    CHECK(job_number(d, job, "count") == 3);
    CHECK(place(d, job, 2, names) == 0);                                        /* not all of it */
    CHECK(place(d, job, 3, (const char *[]){ "n1", "n2", "n1" }) == 0);         /* two on one node */
    CHECK(!door_place(d, job, 0, "n1", 0));
    CHECK(door_ask(d, d->admin, VERB_NODE_UPDATE, "{\"node\":\"n3\",\"state\":\"cordoned\"}").ok);
    CHECK(place(d, job, 3, names) == 0);                                        /* the third node takes nothing */
    CHECK(door_ask(d, d->admin, VERB_NODE_UPDATE, "{\"node\":\"n3\",\"state\":\"ready\",\"region\":\"eu\"}").ok);
    CHECK(place(d, job, 3, names) == 0);                                        /* it is in another region */
    CHECK(door_ask(d, d->admin, VERB_NODE_UPDATE, "{\"node\":\"n3\",\"region\":\"\"}").ok);
    CHECK(door_ask(d, d->admin, VERB_PROJECT_UPDATE, "{\"project\":\"default\",\"gpus\":2}").ok);
    CHECK(place(d, job, 3, names) == 0);                                        /* each would fit, but not all */
    CHECK(door_ask(d, d->admin, VERB_PROJECT_UPDATE, "{\"project\":\"default\",\"gpus\":-1}").ok);
    CHECK(door_ask(d, d->admin, VERB_QUOTA_SET, "{\"project\":\"default\",\"tasks\":2}").ok);
    CHECK(place(d, job, 3, names) == 0);
    CHECK(door_ask(d, d->admin, VERB_QUOTA_SET, "{\"project\":\"default\",\"tasks\":-1}").ok);
    check_books(d, "refused");
    CHECK(memory_of(d) && state_project(memory_of(d), "default")->gpu_held == 0);
    CHECK(place(d, job, 3, names) == 3);
    CHECK(state_project(memory_of(d), "default")->gpu_held == 3000);
    const char *wide = door_submit(d, d->admin, "{" SPEC ",\"nodes\":3,\"within\":\"rack\"}");
    CHECK(text_given(wide) && place(d, wide, 3, names) == 0);
    check_books(d, "taken");
}

TEST(a_gang_is_told_how_it_starts_programs_on_all_of_its_nodes)
{
    struct three t = three_new();
    AUTO(door_free) struct door *d = t.d;
    const char *job = door_submit(d, d->admin, GANG), *one = door_submit(d, d->admin, "{" SPEC "}");
    CHECK(place(d, job, 3, names) == 3);
    struct answer a = door_hello(d, t.keys[1], "n2", 1, 1, (struct texts){ 0 });
    struct json *order = a.ok ? json_get(a.json, "orders")->first : NULL, *env = order ? json_get(order, "env") : NULL;
    CHECK(env && text_is(json_text(order, "hostfile"), "100.64.16.2 slots=1\n100.64.16.3 slots=1\n100.64.16.4 slots=1\n"));
    CHECK(text_is(json_text(env, "ARCUS_HOSTFILE"), HOSTFILE_PATH) && text_is(json_text(env, "OMPI_MCA_plm_rsh_agent"), LAUNCH_PATH "/arcus-launch"));
    CHECK(text_is(json_text(env, "DSTACK_NODE_RANK"), "1") && text_is(json_text(env, "DSTACK_MASTER_NODE_IP"), "100.64.16.2"));
    for (int i = 0; i < RANKS; i++)
        CHECK(door_report(d, t.keys[i], 1, door_attempt(d, job, i), "ended", ",\"outcome\":\"succeeded\"").ok);
    CHECK(door_place(d, one, 0, "n1", 0));
    a = door_hello(d, t.keys[0], "n1", 1, 2, (struct texts){ 0 });
    CHECK(a.ok && !strstr(a.text, "ARCUS_HOSTFILE") && !strstr(a.text, "hostfile"));
}

TEST(what_a_gang_cannot_be_is_refused_when_it_is_submitted)
{
    AUTO(door_free) struct door *d = door_new(false);
    CHECK(door_ask(d, d->admin, VERB_VOLUME_CREATE, "{\"name\":\"data\"}").ok);
    CHECK(!text_given(door_submit(d, d->admin, "{" SPEC ",\"nodes\":3,\"count\":2}")));
    CHECK(!text_given(door_submit(d, d->admin, "{" SPEC ",\"nodes\":2,\"volumes\":[\"data:/data\"]}")));
    CHECK(!text_given(door_submit(d, d->admin, "{" SPEC ",\"nodes\":2,\"node\":\"n1\"}")));
    CHECK(!text_given(door_submit(d, d->admin, "{" SPEC ",\"nodes\":2000}")));
    CHECK(door_ask(d, d->admin, VERB_PROJECT_UPDATE, "{\"project\":\"default\",\"gpus\":2}").ok);
    CHECK(!text_given(door_submit(d, d->admin, GANG)) && text_given(door_submit(d, d->admin, "{" SPEC ",\"nodes\":2}")));
    CHECK(text_given(door_submit(d, d->admin, "{" SPEC ",\"nodes\":1,\"count\":2}")));
}

TEST(when_one_of_a_gang_fails_the_others_are_stopped_and_all_start_again)
{
    struct three t = three_new();
    AUTO(door_free) struct door *d = t.d;
    const char *job = door_submit(d, d->admin, GANG);
    CHECK(place(d, job, 3, names) == 3);
    start(&t, job);
    say(&t, job, 1, "ended", ",\"outcome\":\"exited\",\"exit_code\":3");
    CHECK(task_of(d, job, 1)->state == JOB_QUEUED && task_of(d, job, 0)->attempt->stop && task_of(d, job, 2)->attempt->stop);
    CHECK(text_is(job_word(d, job, "state"), "running") && place(d, job, 3, names) == 0); /* it is not together yet */
    check_books(d, "gathering");
    CHECK(door_crash(d));
    for (int i = 0; i < RANKS; i++)
        CHECK(door_hello(d, t.keys[i], names[i], 1, t.n[i], (struct texts){ 0 }).ok);
    CHECK(task_of(d, job, 0)->attempt->stop && task_of(d, job, 0)->attempt->stop_as == OUTCOME_CANCELLED);
    say(&t, job, 0, "ended", ",\"outcome\":\"cancelled\"");
    say(&t, job, 2, "ended", ",\"outcome\":\"succeeded\""); /* it was quicker than the signal */
    CHECK(text_is(job_word(d, job, "state"), "queued") && job_number(d, job, "done") == 0);
    check_books(d, "gathered");
    CHECK(place(d, job, 3, (const char *[]){ "n3", "n1", "n2" }) == 3);
    for (int i = 0; i < RANKS; i++)
        CHECK(task_of(d, job, i)->tries == 2 && task_of(d, job, i)->faults == 0);
    start(&t, job);
    say(&t, job, 2, "ended", ",\"outcome\":\"exited\",\"exit_code\":4"); /* no retry is left: rank 1 has used it for all */
    CHECK(task_of(d, job, 0)->state == JOB_STOPPING && task_of(d, job, 1)->attempt->stop_as == OUTCOME_CANCELLED);
    say(&t, job, 0, "ended", ",\"outcome\":\"cancelled\"");
    say(&t, job, 1, "ended", ",\"outcome\":\"cancelled\"");
    CHECK(text_is(job_word(d, job, "state"), "failed") && job_number(d, job, "exit_code") == 4 && job_number(d, job, "cancelled") == 2);
    check_books(d, "failed");
}

TEST(what_had_ended_well_runs_again_with_its_gang)
{
    struct three t = three_new();
    AUTO(door_free) struct door *d = t.d;
    const char *job = door_submit(d, d->admin, GANG);
    CHECK(place(d, job, 3, names) == 3);
    start(&t, job);
    say(&t, job, 0, "ended", ",\"outcome\":\"succeeded\"");
    say(&t, job, 2, "ended", ",\"outcome\":\"succeeded\"");
    CHECK(job_number(d, job, "done") == 2);
    say(&t, job, 1, "ended", ",\"outcome\":\"node_fault\"");
    CHECK(text_is(job_word(d, job, "state"), "queued") && job_number(d, job, "done") == 0);
    check_books(d, "taken back");
    CHECK(place(d, job, 3, names) == 3);
    for (int i = 0; i < RANKS; i++)
        CHECK(task_of(d, job, i)->tries == 2 && task_of(d, job, i)->faults == 1);
    start(&t, job);
    for (int i = 0; i < RANKS; i++)
        say(&t, job, i, "ended", ",\"outcome\":\"succeeded\"");
    CHECK(text_is(job_word(d, job, "state"), "done") && job_number(d, job, "done") == 3);
    check_books(d, "done");
}

TEST(a_gang_is_cancelled_as_a_whole_also_while_it_gathers)
{
    struct three t = three_new();
    AUTO(door_free) struct door *d = t.d;
    const char *job = door_submit(d, d->admin, GANG);
    CHECK(place(d, job, 3, names) == 3);
    start(&t, job);
    struct answer one = door_ask(d, d->admin, VERB_JOB_CANCEL, FMT(d, "{\"job\":\"%s\",\"task\":1}", job));
    CHECK(!one.ok && text_is(one.err.field, "task"));
    say(&t, job, 1, "ended", ",\"outcome\":\"signaled\",\"signal\":9");
    CHECK(door_ask(d, d->admin, VERB_JOB_CANCEL, FMT(d, "{\"job\":\"%s\"}", job)).ok);
    say(&t, job, 0, "ended", ",\"outcome\":\"cancelled\"");
    say(&t, job, 2, "ended", ",\"outcome\":\"cancelled\"");
    CHECK(text_is(job_word(d, job, "state"), "cancelled") && job_number(d, job, "cancelled") == 3);
    check_books(d, "cancelled");
}

TEST(tasks_of_a_gang_learn_their_ranks_and_who_the_others_are)
{
    struct three t = three_new();
    AUTO(door_free) struct door *d = t.d;
    const char *job = door_submit(d, d->admin, GANG);
    CHECK(place(d, job, 3, (const char *[]){ "n2", "n3", "n1" }) == 3);
    struct answer a = door_hello(d, t.keys[2], "n3", 1, 1, (struct texts){ 0 });
    CHECK(a.ok && strstr(a.text, "\"ARCUS_NODE_RANK\":\"1\"") && strstr(a.text, "\"NUM_NODES\":\"3\"") && strstr(a.text, "\"SLURM_NODEID\":\"1\"")
          && strstr(a.text, "\"ARCUS_NODES\":\"n2,n3,n1\"") && strstr(a.text, "\"ARCUS_ARRAY_COUNT\":\"1\"") && !strstr(a.text, "127.0.0.1"));
}

#ifdef FAULTS
TEST(whatever_fails_while_a_gang_is_placed_all_of_it_is_or_nothing)
{
    for (int nth = 1, fired = 1; fired && nth < 500; nth++) {
        struct three t = three_new();
        AUTO(door_free) struct door *d = t.d;
        const char *job = door_submit(d, d->admin, GANG);
        struct placement *p = ARENA_ARRAY(d->mem, struct placement, RANKS);
        struct place_ask *ask = ARENA_NEW(d->mem, struct place_ask);
        for (int i = 0; i < RANKS; i++) {
            struct order_gpu *g = ARENA_NEW(d->mem, struct order_gpu);
            *g = (struct order_gpu){ .index = 0, .uuid = "", .milli = 1000, .mem_mib = 143771 };
            p[i] = (struct placement){ .task = i, .node = state_node(memory_of(d), names[i])->id, .gpus = { g, 1 } };
            CHECK(id_parse(job, PREFIX_JOB, &p[i].job));
        }
        ask->placements = (struct objects){ p, RANKS };
        fault_arm(nth);
        (void)door_ask_as(d, &system_caller, VERB_JOB_PLACE, ask);
        fired = fault_fired();
        fault_arm(0);
        int64_t rows = rows_in(d, "attempt");
        CHECK(rows == 0 || rows == RANKS);
        CHECK(fired || rows == RANKS);
        check_books(d, "a fault");
    }
}
#endif
