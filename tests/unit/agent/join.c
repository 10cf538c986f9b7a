#include "agent/join.h"
#include "base/fault.h"
#include "head.h"
#include <string.h>

struct joiner {
    struct sim *sim;
    struct head head;
    struct os *os;
    struct heads *heads;
    struct join *join;
    int joined, refused;
    char key[64];
    struct err why;
};

static void on_joined(void *arg, const struct identity *who)
{
    struct joiner *j = arg;
    j->joined++;
    j->join = NULL;
    snprintf(j->key, sizeof j->key, "%s", who->key);
}
static void on_refused(void *arg, const struct err *why)
{
    struct joiner *j = arg;
    j->refused++;
    j->join = NULL;
    j->why = *why;
}
static const struct join_events events = { .on_joined = on_joined, .on_refused = on_refused };
static const struct node_join_ask wish = { .token = "jt_1", .name = "n1" };

static void joiner_open(struct joiner *j, bool listen)
{
    struct err err = { 0 };
    *j = (struct joiner){ .sim = sim_new(5) };
    if (listen)
        head_open(&j->head, j->sim);
    snprintf(j->head.token, sizeof j->head.token, "jt_1");
    j->os = sim_machine(j->sim, "n1");
    CHECK(dir_make(j->os, "/data", 0700, &err));
    j->heads = heads_new(j->os, NULL, NULL);
    CHECK(heads_add(j->heads, "http://head:80", &err));
    j->join = join_start(j->os, j->heads, "/data", &wish, "a hash", true, &events, j);
}

static void joiner_close(struct joiner *j)
{
    join_free(j->join);
    heads_free(j->heads);
    head_free(&j->head);
    run_for(j->sim, 5000);
    sim_free(j->sim);
}

TEST(a_token_becomes_a_key_that_is_stored_for_good)
{
    struct joiner j;
    AUTO(arena_free) struct arena *mem = arena_new();
    struct identity who;
    struct err err = { 0 };
    bool found;
    joiner_open(&j, true);
    CHECK(identity_load(j.os, "/data", mem, &who, &found, &err) && !found);
    run_for(j.sim, 2000);
    CHECK(j.joined == 1 && text_is(j.key, j.head.node_key) && text_starts(j.key, "nk_") && strlen(j.key) == 46 && j.head.joins == 1);
    CHECK(identity_load(j.os, "/data", mem, &who, &found, &err) && found && who.id == 1 && text_is(who.key, j.key) && text_is(who.name, "n1") && text_is(who.pin, "a hash"));
    CHECK(!disk_exists(j.os, "/data/joining"));
    joiner_close(&j);
}

TEST(an_answer_that_was_lost_is_asked_for_again_also_after_a_crash)
{
    struct joiner j;
    joiner_open(&j, true);
    j.head.lose = 3;
    run_for(j.sim, 20000);
    CHECK(j.joined == 1 && j.refused == 0 && j.head.joins == 4);
    joiner_close(&j);
    joiner_open(&j, true);
    j.head.lose = 1;
    while (j.head.joins == 0)
        run_for(j.sim, 1);
    join_free(j.join);                  /* the answer is lost, and then the agent dies */
    run_for(j.sim, 5000);
    j.join = join_start(j.os, j.heads, "/data", &wish, NULL, true, &events, &j);
    run_for(j.sim, 5000);
    CHECK(j.joined == 1 && j.refused == 0 && j.head.joins == 2 && text_is(j.key, j.head.node_key));
    joiner_close(&j);
}

TEST(a_bad_token_is_refused_once_and_not_tried_again)
{
    struct joiner j;
    joiner_open(&j, true);
    j.head.token[0] = 0;
    run_for(j.sim, 20000);
    CHECK(j.refused == 1 && j.joined == 0 && j.head.joins == 1 && strstr(j.why.text, "not valid"));
    joiner_close(&j);
}

TEST(a_server_that_is_away_is_waited_for)
{
    struct joiner j;
    joiner_open(&j, false);
    run_for(j.sim, 30000);
    CHECK(j.joined == 0 && j.refused == 0);
    head_open(&j.head, j.sim);
    run_for(j.sim, 6000);
    CHECK(j.joined == 1);
    joiner_close(&j);
}

TEST(whichever_operation_fails_who_has_joined_has_its_key_on_disk)
{
    for (int nth = 1;; nth++) {
        struct joiner j;
        AUTO(arena_free) struct arena *mem = arena_new();
        struct identity who;
        struct err err = { 0 };
        bool found = false;
        joiner_open(&j, true);
        fault_arm(nth);
        for (int i = 0; i < 5000 && !j.joined && !j.refused && sim_step(j.sim); i++)
            ;
        bool fired = fault_fired();
        fault_arm(0);
        CHECK(identity_load(j.os, "/data", mem, &who, &found, &err) && found == (j.joined == 1));
        CHECK(j.joined == 1 && j.refused == 0 && text_is(j.key, j.head.node_key));
        joiner_close(&j);
        if (!fired)
            break;
    }
}

TEST(a_damaged_key_file_is_told_in_words)
{
    static const char *const bad[] = { "", "{", "{}", "{\"id\":7,\"key\":\"x\"}", "[]" };
    for (size_t i = 0; i < COUNT(bad); i++) {
        AUTO(sim_free) struct sim *sim = sim_new(1);
        AUTO(arena_free) struct arena *mem = arena_new();
        struct os *os = sim_machine(sim, "n1");
        struct identity who;
        struct err err = { 0 };
        bool found;
        CHECK(dir_make(os, "/data", 0700, &err) && file_replace(os, "/data/node.json", SLICE(bad[i]), 0600, &err));
        CHECK(!identity_load(os, "/data", mem, &who, &found, &err) && strstr(err.text, "node's key"));
    }
}

TEST(a_host_name_becomes_one_that_the_server_takes)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    CHECK(text_is(join_name("GPU-Box.example.org", mem), "gpu-box-example-org"));
    CHECK(text_is(join_name("..", mem), "node"));
    CHECK(text_is(join_name("a_b", mem), "a-b"));
    CHECK(text_is(join_name("", mem), "node"));
    CHECK(strlen(join_name("0123456789012345678901234567890123456789012345678901234567890123456789", mem)) == 63);
}
