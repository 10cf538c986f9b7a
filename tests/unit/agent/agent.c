#include "agent/agent.h"
#include "agent/identity.h"
#include "agent/spool.h"
#include "base/fault.h"
#include "base/rand.h"
#include "head.h"
#include "supervisor.h"
#include <stdlib.h>
#include <string.h>

struct cluster {
    struct sim *sim;
    struct head head;
    struct supervisors supervisors;
    struct os *os;
    struct agent *agent;
    int failed;
    int64_t down_at;
    int crashes;
};

static void on_failed(void *arg, const struct err *why)
{
    (void)why;
    ((struct cluster *)arg)->failed++;
}

static void agent_up(struct cluster *c, const char *token)
{
    struct err err = { 0 };
    char boot[32];
    snprintf(boot, sizeof boot, "boot %d", c->crashes);
    bool named = dir_make(c->os, "/proc/sys/kernel/random", 0755, &err) && file_replace(c->os, "/proc/sys/kernel/hostname", SLICE("n1"), 0644, &err)
                 && file_replace(c->os, "/proc/sys/kernel/random/boot_id", SLICE(boot), 0644, &err);
    CHECK(named || fault_fired());
    c->agent = agent_new(c->os, &(struct agent_config){
        .servers = { (const char *[]){ "http://head:80" }, 1 }, .token = token, .data = "/data", .run = "/run/arcus", .self = "/arcus", .version = "test",
        .host_image = true, .sim_gpus = 2, .labels = { (struct pair[]){ { "zone", "a" } }, 1 }, .on_failed = on_failed, .arg = c }, &err);
    bool ok = c->agent || fault_fired();
    CHECK(ok);
    if (!ok)
        printf("# %s\n", err.text);
}

static void agent_down(struct cluster *c)       /* as kill -9 does to it: everything it had to keep is kept already */
{
    agent_free(TAKE(c->agent));
    c->down_at = sim_now_ms(c->sim);
}

static void machine_crash(struct cluster *c)
{
    if (c->down_at + 2500 > sim_now_ms(c->sim))         /* a goodbye that is under way would count as a leak */
        run_for(c->sim, 2500);
    bury(c->agent);
    c->agent = NULL;
    c->crashes++;
    sim_crash(c->sim, c->os);
    supervisors_crashed(&c->supervisors, "/run/arcus");
    c->os = sim_machine(c->sim, "n1");
}

static void cluster_open(struct cluster *c, uint64_t seed)
{
    *c = (struct cluster){ .sim = sim_new(seed) };
    head_open(&c->head, c->sim);
    snprintf(c->head.token, sizeof c->head.token, "jt_1");
    c->head.settle = true;
    c->supervisors = (struct supervisors){ .prepare_ms = 300, .run_ms = 4000 };
    supervisors_install(&c->supervisors, c->sim, "/run/arcus");
    c->os = sim_machine(c->sim, "n1");
}

static void cluster_close(struct cluster *c)
{
    agent_down(c);
    run_for(c->sim, 60000);             /* supervisors end by themselves */
    head_free(&c->head);
    run_for(c->sim, 5000);
    sim_free(c->sim);
}

static struct order *order(struct cluster *c, int64_t attempt)
{
    struct order *o = head_order(&c->head, attempt);
    head_push(&c->head, false);
    return o;
}

static bool told_once(struct cluster *c, int64_t attempt, int outcome)
{
    const struct report_item *end = head_end_of(&c->head, attempt);
    bool ok = (c->crashes || !c->head.late) && head_took(&c->head, attempt, TASK_ENDED) == 1 && head_took(&c->head, attempt, TASK_STARTED) <= 1 && end && end->outcome == outcome;
    if (!ok)
        printf("# attempt %d: %zu ends, %zu starts, %s: %s\n", (int)attempt, head_took(&c->head, attempt, TASK_ENDED),
               head_took(&c->head, attempt, TASK_STARTED), end ? outcome_name((enum outcome)end->outcome) : "no end",
               end && end->detail ? end->detail : "");
    return ok;
}

static bool nothing_is_left(struct cluster *c)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct texts tasks = { 0 }, status = { 0 };
    struct err err = { 0 };
    if (!dir_list(c->os, "/data/tasks", mem, &tasks, &err) || !dir_list(c->os, "/data/status", mem, &status, &err))
        return false;
    for (size_t i = 0; i < tasks.count + status.count; i++)
        printf("# left: %s %s\n", i < tasks.count ? "tasks" : "status", i < tasks.count ? tasks.at[i] : status.at[i - tasks.count]);
    AUTO(spool_free) struct spool *spool = NULL;
    size_t told = 0;
    if (!spool_open(c->os, "/data/spool", &spool, &err))
        return false;
    for (size_t at = 0; spool_each(spool, &at);)
        told++;
    if (told)
        printf("# %zu are still remembered\n", told);
    return tasks.count + status.count + told == 0;
}

TEST(a_node_joins_once_and_tells_what_it_is)
{
    struct cluster c;
    cluster_open(&c, 1);
    agent_up(&c, "jt_1");
    run_for(c.sim, 3000);
    CHECK(agent_linked(c.agent) && c.head.joins == 1 && c.head.hellos == 1 && c.head.hello_next == 1);
    CHECK(strstr(c.head.hello_text, "\"simulated\":true") && strstr(c.head.hello_text, "\"zone\":\"a\"") && strstr(c.head.hello_text, "\"version\":\"test\""));
    CHECK(text_starts(c.head.bearer, "Bearer nk_") && text_is(c.head.bearer + 7, c.head.node_key));
    agent_down(&c);
    agent_up(&c, NULL);
    run_for(c.sim, 3000);
    CHECK(agent_linked(c.agent) && c.head.joins == 1 && c.head.hellos == 2);
    cluster_close(&c);
}

/* --- keys */

static bool rotated(void *arg) { struct cluster *c = arg; return !c->head.rotate && c->agent && agent_linked(c->agent); }

static bool key_on_disk_is_good(struct cluster *c)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct identity me = { 0 };
    struct err err = { 0 };
    bool found;
    return identity_load(c->os, "/data", mem, &me, &found, &err) && found
           && (text_is(me.key, c->head.node_key) || text_is(me.next_key, c->head.node_key) || text_is(me.next_key, c->head.next_key));
}

static void rotate_now(struct cluster *c)
{
    c->head.rotate = true;
    if (c->head.link)
        head_push(&c->head, false);
}

TEST(a_node_brings_a_new_key_when_asked_and_forgets_the_old_one)
{
    struct cluster c;
    char before[64];
    cluster_open(&c, 61);
    agent_up(&c, "jt_1");
    run_for(c.sim, 3000);
    snprintf(before, sizeof before, "%s", c.head.node_key);
    order(&c, 5);
    rotate_now(&c);
    CHECK(run_until(c.sim, 10000, rotated, &c));
    run_for(c.sim, 1000);
    CHECK(!text_is(before, c.head.node_key) && c.head.rekeys == 1 && key_on_disk_is_good(&c) && c.head.joins == 1);
    AUTO(arena_free) struct arena *mem = arena_new();
    struct slice text;
    struct err err = { 0 };
    CHECK(file_read(c.os, "/data/node.json", 4096, mem, &text, &err) && !strstr(text.at, before) && !strstr(text.at, "next_key"));
    agent_down(&c);
    agent_up(&c, NULL);
    run_for(c.sim, 10000);
    CHECK(agent_linked(c.agent) && told_once(&c, 5, OUTCOME_SUCCEEDED));
    cluster_close(&c);
}

TEST(whichever_operation_fails_while_a_key_is_replaced_the_node_is_not_locked_out)
{
    for (int nth = 1;; nth++) {
        struct cluster c;
        cluster_open(&c, 62);
        agent_up(&c, "jt_1");
        run_for(c.sim, 3000);
        fault_arm(nth);
        rotate_now(&c);
        (void)!run_until(c.sim, 60000, rotated, &c);
        bool fired = fault_fired();
        fault_arm(0);
        CHECK(key_on_disk_is_good(&c));
        CHECK(run_until(c.sim, 60000, rotated, &c) && c.failed == 0);
        agent_down(&c);
        agent_up(&c, NULL);
        run_for(c.sim, 3000);
        CHECK(agent_linked(c.agent) && key_on_disk_is_good(&c) && c.head.joins == 1);
        cluster_close(&c);
        if (!fired)
            break;
        CHECK(nth < 400);
    }
}

/* The agent, the machine or the server's answers die after any number of steps. */
TEST(whenever_somebody_dies_while_a_key_is_replaced_the_node_is_not_locked_out)
{
    for (int step = 0, over = 0; !over; step++) {
        struct cluster c;
        cluster_open(&c, (uint64_t)(100 + step));
        agent_up(&c, "jt_1");
        run_for(c.sim, 3000);
        c.head.lose = step % 2;
        rotate_now(&c);
        for (int i = 0; i < step && !over; i++)
            over = rotated(&c) || !sim_step(c.sim);
        CHECK(key_on_disk_is_good(&c));
        if (step % 3 == 0)
            machine_crash(&c);
        else
            agent_down(&c);
        CHECK(key_on_disk_is_good(&c));
        agent_up(&c, NULL);
        CHECK(run_until(c.sim, 60000, rotated, &c));
        run_for(c.sim, 1000);
        CHECK(key_on_disk_is_good(&c) && c.head.joins == 1 && c.failed == 0);
        cluster_close(&c);
        CHECK(step < 400);
        if (step >= 400)
            break;
    }
}

TEST(what_the_cloud_tells_about_its_servers_is_known_after_a_restart_too)
{
    static const char *servers[] = { "http://head:80", "http://head2:80" };
    struct cluster c;
    struct head other = { .address = "head2" };
    cluster_open(&c, 63);
    c.head.servers = (struct texts){ servers, 2 };
    head_open(&other, c.sim);
    agent_up(&c, "jt_1");
    run_for(c.sim, 3000);
    CHECK(agent_linked(c.agent) && other.dials == 0);
    agent_down(&c);
    head_close(&c.head);                /* the only one that the agent was started with */
    agent_up(&c, NULL);
    run_for(c.sim, 10000);
    CHECK(agent_linked(c.agent) && other.hellos == 1);
    agent_down(&c);
    run_for(c.sim, 5000);
    head_free(&other);
    cluster_close(&c);
}

TEST(without_a_token_and_without_a_key_it_does_not_start)
{
    struct cluster c;
    struct err err = { 0 };
    cluster_open(&c, 2);
    CHECK(!agent_new(c.os, &(struct agent_config){ .servers = { (const char *[]){ "http://head:80" }, 1 }, .data = "/data", .run = "/run/arcus" }, &err));
    CHECK(strstr(err.text, "--token"));
    CHECK(!agent_new(c.os, &(struct agent_config){ .servers = { (const char *[]){ "http://head:80" }, 1 }, .token = "jt_x", .data = "/data", .run = "/run/arcus" }, &err)
          && text_is(err.field, "name"));         /* never under a name that is not its own */
    CHECK(!agent_new(c.os, &(struct agent_config){ .data = "/data", .run = "/run/arcus" }, &err));
    cluster_close(&c);
}

TEST(a_refused_token_ends_the_agent)
{
    struct cluster c;
    cluster_open(&c, 3);
    agent_up(&c, "jt_wrong");
    run_for(c.sim, 10000);
    CHECK(c.failed == 1 && c.head.joins == 1);
    cluster_close(&c);
}

TEST(a_task_runs_and_each_change_is_told_once)
{
    struct cluster c;
    cluster_open(&c, 4);
    agent_up(&c, "jt_1");
    run_for(c.sim, 2000);
    order(&c, 7);
    run_for(c.sim, 20000);
    CHECK(told_once(&c, 7, OUTCOME_SUCCEEDED) && head_took(&c.head, 7, TASK_STARTED) == 1);
    CHECK(supervised(&c.supervisors, 7)->begun == 1 && nothing_is_left(&c) && c.head.gaps == 0);
    const struct report_item *end = head_end_of(&c.head, 7);
    CHECK(end && end->started_ms > 0 && end->at_ms >= end->started_ms + 4000);
    cluster_close(&c);
}

/* The store of the server is an older one: it wants what was settled long ago. */
TEST(what_ended_and_was_forgotten_is_told_again_to_a_server_from_a_backup_and_never_begun_again)
{
    struct cluster c;
    cluster_open(&c, 4);
    c.supervisors.exit_code = 3;
    agent_up(&c, "jt_1");
    run_for(c.sim, 2000);
    order(&c, 7);
    run_for(c.sim, 20000);
    CHECK(told_once(&c, 7, OUTCOME_EXITED) && nothing_is_left(&c));
    struct report_item end = *head_end_of(&c.head, 7);
    head_close(&c.head);
    c.head.item_count = c.head.gone_count = 0;
    c.head.kept = 0;
    head_order(&c.head, 7);
    head_order(&c.head, 8);
    head_open(&c.head, c.sim);
    run_for(c.sim, 60000);
    CHECK(supervised(&c.supervisors, 7)->begun == 1 && told_once(&c, 7, OUTCOME_EXITED));
    const struct report_item *again = head_end_of(&c.head, 7);
    CHECK(again && again->exit_code == 3 && again->at_ms == end.at_ms && again->started_ms == end.started_ms);
    CHECK(supervised(&c.supervisors, 8)->begun == 1 && told_once(&c, 8, OUTCOME_EXITED) && c.head.gaps == 0);
    CHECK(nothing_is_left(&c));
    cluster_close(&c);
}

TEST(an_exit_code_is_passed_on)
{
    struct cluster c;
    cluster_open(&c, 5);
    c.supervisors.exit_code = 3;
    agent_up(&c, "jt_1");
    run_for(c.sim, 2000);
    order(&c, 7);
    run_for(c.sim, 20000);
    CHECK(told_once(&c, 7, OUTCOME_EXITED) && head_end_of(&c.head, 7)->exit_code == 3);
    cluster_close(&c);
}

TEST(a_cancelled_task_ends_as_asked)
{
    struct cluster c;
    cluster_open(&c, 6);
    c.supervisors.run_ms = 0;
    agent_up(&c, "jt_1");
    run_for(c.sim, 2000);
    order(&c, 7), order(&c, 8);
    run_for(c.sim, 3000);
    struct order *o = head_order(&c.head, 7);
    o->stop = true, o->stop_as = OUTCOME_CANCELLED, o->grace_s = 1;
    head_push(&c.head, true);
    run_for(c.sim, 8000);
    CHECK(told_once(&c, 7, OUTCOME_CANCELLED) && head_took(&c.head, 8, TASK_ENDED) == 0 && supervisors_alive(&c.supervisors) == 1);
    o = head_order(&c.head, 8);
    o->stop = true, o->stop_as = OUTCOME_PREEMPTED, o->grace_s = 0;
    head_push(&c.head, true);
    run_for(c.sim, 8000);
    CHECK(told_once(&c, 8, OUTCOME_PREEMPTED) && nothing_is_left(&c));
    cluster_close(&c);
}

TEST(a_task_cancelled_before_it_came_never_begins)
{
    struct cluster c;
    cluster_open(&c, 7);
    agent_up(&c, "jt_1");
    run_for(c.sim, 2000);
    struct order *o = head_order(&c.head, 7);
    o->stop = true, o->stop_as = OUTCOME_CANCELLED;
    head_push(&c.head, false);
    run_for(c.sim, 8000);
    CHECK(told_once(&c, 7, OUTCOME_CANCELLED) && supervised(&c.supervisors, 7)->begun == 0);
    cluster_close(&c);
}

TEST(a_task_that_the_server_does_not_want_is_ended_and_cleaned)
{
    struct cluster c;
    cluster_open(&c, 8);
    c.supervisors.run_ms = 0;
    agent_up(&c, "jt_1");
    run_for(c.sim, 2000);
    order(&c, 7);
    run_for(c.sim, 3000);
    head_drop(&c.head, 7);
    head_push(&c.head, true);
    run_for(c.sim, 15000);
    CHECK(told_once(&c, 7, OUTCOME_CANCELLED) && supervisors_alive(&c.supervisors) == 0 && nothing_is_left(&c));
    cluster_close(&c);
}

TEST(a_task_outlives_its_agent_and_is_found_again)
{
    struct cluster c;
    cluster_open(&c, 9);
    agent_up(&c, "jt_1");
    run_for(c.sim, 2000);
    order(&c, 7);
    run_for(c.sim, 1500);
    agent_down(&c);
    run_for(c.sim, 1000);
    agent_up(&c, NULL);
    run_for(c.sim, 15000);
    CHECK(told_once(&c, 7, OUTCOME_SUCCEEDED) && head_took(&c.head, 7, TASK_STARTED) == 1 && supervised(&c.supervisors, 7)->begun == 1);
    cluster_close(&c);
}

TEST(a_task_that_ended_while_the_agent_was_away_is_told)
{
    struct cluster c;
    cluster_open(&c, 10);
    agent_up(&c, "jt_1");
    run_for(c.sim, 2000);
    order(&c, 7);
    run_for(c.sim, 1500);
    agent_down(&c);
    run_for(c.sim, 30000);
    agent_up(&c, NULL);
    run_for(c.sim, 5000);
    CHECK(told_once(&c, 7, OUTCOME_SUCCEEDED) && nothing_is_left(&c));
    cluster_close(&c);
}

TEST(reports_wait_while_the_server_is_away)
{
    struct cluster c;
    cluster_open(&c, 11);
    agent_up(&c, "jt_1");
    run_for(c.sim, 2000);
    for (int64_t a = 1; a <= 5; a++)
        order(&c, a);
    run_for(c.sim, 500);
    head_close(&c.head);
    run_for(c.sim, 30000);
    agent_down(&c);                     /* and the spool outlives the agent */
    agent_up(&c, NULL);
    head_open(&c.head, c.sim);
    run_for(c.sim, 15000);
    for (int64_t a = 1; a <= 5; a++)
        CHECK(told_once(&c, a, OUTCOME_SUCCEEDED));
    CHECK(c.head.gaps == 0 && nothing_is_left(&c));
    cluster_close(&c);
}

TEST(a_machine_that_crashed_tells_its_tasks_as_its_own_fault)
{
    for (int64_t after_ms = 0; after_ms <= 2000; after_ms += after_ms < 400 ? 20 : 400) {
        struct cluster c;
        cluster_open(&c, 12);
        agent_up(&c, "jt_1");
        run_for(c.sim, 2000);
        order(&c, 7);
        run_for(c.sim, after_ms);
        machine_crash(&c);
        run_for(c.sim, 3000);
        agent_up(&c, NULL);
        run_for(c.sim, 60000);
        const struct supervised *it = supervised(&c.supervisors, 7);
        CHECK(told_once(&c, 7, OUTCOME_NODE_FAULT) && (after_ms < 400 || it) && (!it || it->begun == 1));
        cluster_close(&c);
    }
}

static bool has_ended(void *arg) { return supervisors_alive(arg) == 0; }

/* Nobody waits for the disk with each report, and nothing else of a task that ends is synced while the agent lives. */
TEST(an_end_that_no_server_has_heard_of_outlives_a_power_cut)
{
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct cluster c;
        cluster_open(&c, seed);
        c.supervisors.lazy = true;
        agent_up(&c, "jt_1");
        run_for(c.sim, 2000);
        order(&c, 7);
        run_for(c.sim, 2000);
        head_close(&c.head);
        CHECK(run_until(c.sim, 20000, has_ended, &c.supervisors));
        run_for(c.sim, 500);
        machine_crash(&c);
        head_open(&c.head, c.sim);
        agent_up(&c, NULL);
        run_for(c.sim, 60000);
        CHECK(told_once(&c, 7, OUTCOME_SUCCEEDED) && c.head.gaps == 0);
        cluster_close(&c);
    }
}

/* An end that is lost with what was told of it, at any moment: the server has it, or gets one, and the numbers meet again. */
TEST(whenever_the_power_is_cut_around_an_end_it_counts_once)
{
    for (int64_t after_ms = 0; after_ms <= 400; after_ms += 8) {
        struct cluster c;
        cluster_open(&c, (uint64_t)after_ms + 1);
        c.supervisors.lazy = true;
        agent_up(&c, "jt_1");
        run_for(c.sim, 2000);
        order(&c, 7);
        run_for(c.sim, 4200 + after_ms);
        machine_crash(&c);
        agent_up(&c, NULL);
        head_order(&c.head, 8);         /* what comes next has the numbers that 7 had, where those were lost */
        run_for(c.sim, 60000);
        const struct report_item *end = head_end_of(&c.head, 7);
        CHECK(end && told_once(&c, 7, end->outcome) && (end->outcome == OUTCOME_SUCCEEDED || end->outcome == OUTCOME_NODE_FAULT));
        CHECK(head_end_of(&c.head, 8) && c.supervisors.twice == 0 && c.head.gaps == 0);
        cluster_close(&c);
    }
}

TEST(an_agent_that_is_killed_before_it_heard_of_a_server_leaves_the_doubt_about_the_power_cut_to_the_next)
{
    struct cluster c;
    cluster_open(&c, 12);
    agent_up(&c, "jt_1");
    run_for(c.sim, 2000);
    machine_crash(&c);
    head_close(&c.head);
    head_order(&c.head, 7);             /* as far as the next agents can tell it may have begun */
    agent_up(&c, NULL);
    run_for(c.sim, 1000);
    agent_down(&c);
    head_open(&c.head, c.sim);
    agent_up(&c, NULL);
    run_for(c.sim, 20000);
    CHECK(told_once(&c, 7, OUTCOME_NODE_FAULT) && supervised(&c.supervisors, 7)->begun == 0);
    agent_down(&c);
    head_order(&c.head, 8);
    agent_up(&c, NULL);
    run_for(c.sim, 20000);
    CHECK(told_once(&c, 8, OUTCOME_SUCCEEDED));     /* which is gone once it was heard */
    cluster_close(&c);
}

TEST(a_node_cut_off_ends_its_tasks_before_another_may_run_them)
{
    struct cluster c;
    cluster_open(&c, 13);
    c.supervisors.run_ms = 0;
    agent_up(&c, "jt_1");
    run_for(c.sim, 2000);
    order(&c, 7)->run_for_s = 60;
    run_for(c.sim, 30000);
    CHECK(supervisors_alive(&c.supervisors) == 1);
    sim_partition(c.sim, "head", "n1", true);
    int64_t last = c.head.heard_at;
    run_for(c.sim, 50000);
    CHECK(supervisors_alive(&c.supervisors) == 1);
    run_for(c.sim, 20000);
    CHECK(supervisors_alive(&c.supervisors) == 0 && sim_now_ms(c.sim) - last < 60000 + 15000);
    sim_partition(c.sim, "head", "n1", false);
    run_for(c.sim, 15000);
    CHECK(told_once(&c, 7, OUTCOME_NODE_LOST));
    cluster_close(&c);
}

TEST(answers_that_come_late_do_not_keep_a_task_alive)
{
    struct cluster c;
    cluster_open(&c, 16);
    c.supervisors.run_ms = 0;
    agent_up(&c, "jt_1");
    run_for(c.sim, 2000);
    order(&c, 7)->run_for_s = 60;
    run_for(c.sim, 10000);
    c.head.delay_ms = 8000;             /* what comes is about a moment when the server may have counted differently */
    run_for(c.sim, 50000);
    CHECK(supervisors_alive(&c.supervisors) == 1);
    run_for(c.sim, 20000);
    CHECK(supervisors_alive(&c.supervisors) == 0);
    c.head.delay_ms = 0;
    run_for(c.sim, 30000);
    CHECK(told_once(&c, 7, OUTCOME_NODE_LOST));
    cluster_close(&c);
}

TEST(logs_of_a_task_can_be_followed_through_the_agent)
{
    struct cluster c;
    struct err err = { 0 };
    cluster_open(&c, 14);
    agent_up(&c, "jt_1");
    run_for(c.sim, 2000);
    order(&c, 7);
    run_for(c.sim, 1500);
    CHECK(dir_make(c.os, "/data/logs/att-0000000000007", 0700, &err));
    CHECK(file_append(c.os, "/data/logs/att-0000000000007/00000001", SLICE("1731677000123 o 6\nhello\n"), false, &err));
    head_say(&c.head, "{\"kind\":\"open\",\"stream\":\"st_1\",\"what\":\"logs\",\"attempt\":\"att-0000000000007\",\"follow\":true,\"tail\":-1}");
    run_for(c.sim, 15000);
    CHECK(text_is(c.head.stream.out.at, "hello\n") && c.head.stream.closed && text_is(c.head.stream.control.at, "{\"at\":\"1.0.6\"}{\"eof\":true}"));
    cluster_close(&c);
}

TEST(of_a_task_that_is_watched_a_node_tells_whether_somebody_uses_it_and_of_others_nothing)
{
    struct cluster c;
    cluster_open(&c, 15);
    c.supervisors.run_ms = 200000;
    agent_up(&c, "jt_1");
    run_for(c.sim, 2000);
    order(&c, 8);
    head_order(&c.head, 7)->watch = true;
    head_push(&c.head, false);
    run_for(c.sim, 3000);
    CHECK(c.head.uses == 1 && c.head.use.attempt == 7 && c.head.use.cpu_milli == -1 && !c.head.use.session);
    run_for(c.sim, 10000);
    CHECK(c.head.uses >= 2 && c.head.uses <= 4 && c.head.use.cpu_milli == 0 && !c.head.use.session);
    head_say(&c.head, "{\"kind\":\"open\",\"stream\":\"st_1\",\"what\":\"logs\",\"attempt\":\"att-0000000000007\",\"follow\":true,\"tail\":-1}");
    run_for(c.sim, 10000);
    CHECK(c.head.stream.open && !c.head.use.session);
    head_say(&c.head, "{\"kind\":\"open\",\"stream\":\"st_2\",\"what\":\"ssh\",\"attempt\":\"att-0000000000007\",\"argv\":[\"none\"]}");
    run_for(c.sim, 5000);
    CHECK(c.head.use.session);          /* it could not be served, and somebody has tried */
    run_for(c.sim, 10000);
    CHECK(!c.head.use.session);
    agent_down(&c);
    c.head.uses = 0;
    agent_up(&c, NULL);
    run_for(c.sim, 12000);
    CHECK(c.head.uses >= 1 && c.head.use.attempt == 7);
    cluster_close(&c);
}

/* Fail the n-th operation of anybody (disk, network, process) until none is left to fail. */
TEST(whichever_operation_fails_a_task_is_begun_at_most_once_and_told_once)
{
    for (int nth = 1;; nth++) {
        struct cluster c;
        cluster_open(&c, 15);
        c.supervisors.run_ms = 1000;
        agent_up(&c, "jt_1");
        run_for(c.sim, 2000);
        fault_arm(nth);
        order(&c, 7);
        run_for(c.sim, 8000);
        agent_down(&c);
        agent_up(&c, NULL);
        run_for(c.sim, 8000);
        bool fired = fault_fired();
        fault_arm(0);
        if (!c.agent)               /* the fault met its start: whoever watches it starts it again */
            agent_up(&c, NULL);
        run_for(c.sim, 60000);
        const struct report_item *end = head_end_of(&c.head, 7);
        CHECK(end && told_once(&c, 7, end->outcome) && c.supervisors.twice == 0 && c.head.gaps == 0);
        CHECK(fired || (end && end->outcome == OUTCOME_SUCCEEDED));
        CHECK(supervisors_alive(&c.supervisors) == 0);
        if (!nothing_is_left(&c)) { /* a folder that could not be removed goes with the next agent */
            agent_down(&c);
            agent_up(&c, NULL);
            run_for(c.sim, 30000);
            CHECK(nothing_is_left(&c) && head_took(&c.head, 7, TASK_ENDED) == 1);
        }
        cluster_close(&c);
        if (!fired)
            break;
    }
}

/* The law, under everything at once: agents killed, servers restarted, networks cut, machines crashed, orders stopped and
 * withdrawn. In the end each attempt was begun at most once and told exactly once. */
static void misfortune(struct cluster *c, struct rng *rng, bool *cut)
{
    switch (rng_below(rng, 8)) {
    case 0:
        agent_down(c);
        run_for(c->sim, (int64_t)rng_below(rng, 3000));
        agent_up(c, NULL);
        break;
    case 1:
        head_close(&c->head);
        run_for(c->sim, (int64_t)rng_below(rng, 8000));
        head_open(&c->head, c->sim);
        break;
    case 2:
        *cut = !*cut;
        sim_partition(c->sim, "head", "n1", *cut);
        break;
    case 3:
        machine_crash(c);
        run_for(c->sim, (int64_t)rng_below(rng, 3000));
        agent_up(c, NULL);
        break;
    case 4:
        c->head.cut_before = true;
        break;
    case 5:
        c->head.cut_after = true;
        break;
    case 6:
        if (c->head.order_count) {
            struct order *o = &c->head.orders[rng_below(rng, c->head.order_count)];
            o->stop = true, o->stop_as = OUTCOME_CANCELLED, o->grace_s = (int64_t)rng_below(rng, 3);
            head_push(&c->head, true);
        }
        break;
    default:
        head_push(&c->head, true);
        break;
    }
}

TEST(whatever_befalls_a_node_nothing_runs_twice_and_everything_is_told_once)
{
    const char *more = getenv("ARCUS_SEEDS");           /* for a long run */
    for (uint64_t seed = 1, last = more ? strtoull(more, NULL, 10) : 25; seed <= last; seed++) {
        struct cluster c;
        struct rng rng = { seed };
        bool cut = false;
        int64_t given = 0;
        cluster_open(&c, seed);
        agent_up(&c, "jt_1");
        run_for(c.sim, 2000);
        for (int step = 0; step < 40; step++) {
            if (rng_below(&rng, 2) && given < 60)
                order(&c, ++given);
            if (rng_below(&rng, 3) == 0)
                misfortune(&c, &rng, &cut);
            run_for(c.sim, (int64_t)rng_below(&rng, 2000));
        }
        sim_partition(c.sim, "head", "n1", false);
        run_for(c.sim, 120000);
        CHECK(c.supervisors.twice == 0 && c.head.gaps == 0 && supervisors_alive(&c.supervisors) == 0);
        for (int64_t a = 1; a <= given; a++) {
            const struct report_item *end = head_end_of(&c.head, a);
            CHECK(end && told_once(&c, a, end->outcome));
        }
        bool clean = c.head.order_count == 0 && nothing_is_left(&c);
        if (!clean) { /* a spool in doubt is written with its next item, or by the next agent */
            agent_down(&c);
            agent_up(&c, NULL);
            run_for(c.sim, 30000);
            clean = c.head.order_count == 0 && nothing_is_left(&c);
        }
        if (!clean)
            printf("# seed %d\n", (int)seed);
        CHECK(clean);
        cluster_close(&c);
    }
}
