/* care.c - faults, tests and scrubs against the real check helper with a made-up libcuda: what a driver says is told here, what a GPU does is a file. */
#include "agent/care.h"
#include "model/gpu_live.h"
#include "tap.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UUID "GPU-fa4e0000-0000-0000-0000-0000000000ab"
#define MIG(n) "MIG-fa4e0000-0000-0000-0000-0000000001a" #n
enum { LIMIT_MS = 60000 };
struct try {
    struct os *os;
    struct care *care;
    struct care_config config;
    char top[64], lib[96], self[640], fault[240], why[240];
    struct gpu_info gpu;
    int changes, faults, passes, begun, refused;
    bool over;
    bool (*done)(struct try *t);
};

static void put(struct try *t, const char *name, const char *text)
{
    char path[160], fresh[176];
    snprintf(path, sizeof path, "%s/%s", t->top, name);
    snprintf(fresh, sizeof fresh, "%s.new", path);
    FILE *f = fopen(fresh, "we");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0 && rename(fresh, path) == 0);
}

/* How often the helper got so far. */
static int calls(struct try *t, const char *line)
{
    char path[160], is[256];
    int n = 0;
    snprintf(path, sizeof path, "%s/cuda.conf.log", t->top);
    FILE *f = fopen(path, "re");
    while (f && fgets(is, sizeof is, f))
        n += strncmp(is, line, strlen(line)) == 0;
    if (f)
        fclose(f);
    return n;
}

static void check(struct try *t)
{
    if (t->done && t->done(t))
        os_stop(t->os);
}
static void on_change(void *arg) { ((struct try *)arg)->changes++, check(arg); }
static void on_fault(void *arg, const char *uuid, const char *why)
{
    struct try *t = arg;
    CHECK(text_is(uuid, UUID));
    t->faults++;
    snprintf(t->fault, sizeof t->fault, "%s", why);
}
static void on_passed(void *arg, const char *uuid) { ((struct try *)arg)->passes += text_is(uuid, UUID); }
static void on_limit(void *arg) { ((struct try *)arg)->over = true, os_stop(((struct try *)arg)->os); }
static void on_begin(void *arg, const char *why)
{
    struct try *t = arg;
    t->begun += !why;
    t->refused += why != NULL;
    snprintf(t->why, sizeof t->why, "%s", why ? why : "");
    check(t);
}

static void until(struct try *t, bool (*done)(struct try *t))
{
    t->done = done;
    t->over = false;
    struct timer *limit = timer_start(t->os, LIMIT_MS, on_limit, t);
    if (!done(t))
        os_run(t->os);
    if (!t->over)
        timer_cancel(limit);
    CHECK(!t->over);
    t->done = NULL;
}

static void begin(struct try *t)
{
    static const struct care_events events = { on_change, on_fault, on_passed };
    care_free(t->care);
    t->care = care_new(t->os, &t->config, &events, t);
    CHECK(t->care != NULL);
}

static void try_open(struct try *t)
{
    char folder[512], command[1400];
    struct err err = { 0 };
    *t = (struct try){ .os = os_real_new(&err), .gpu = { .uuid = UUID, .vendor = "nvidia", .healthy = true } };
    snprintf(t->top, sizeof t->top, "/tmp/arcus-test-XXXXXX");
    CHECK(t->os && mkdtemp(t->top));
    ssize_t n = readlink("/proc/self/exe", folder, sizeof folder - 1);
    folder[MAX(n, 0)] = 0;
    *strrchr(folder, '/') = 0;
    snprintf(t->lib, sizeof t->lib, "%s/libcuda.so.1", t->top);
    snprintf(t->self, sizeof t->self, "%s/arcus", folder);
    snprintf(command, sizeof command, "cp '%s/fake/libcuda-work.so.1' '%s'", folder, t->lib);
    CHECK(system(command) == 0);
    put(t, "cuda.conf", "mem 16\n");
    t->config = (struct care_config){ .data = t->top, .check = { .self = t->self, .libcuda = t->lib }, .first_ms = 1 };
    begin(t);
}

static void try_done_auto(struct try *t)
{
    char line[128];
    care_free(t->care);
    struct timer *soon = timer_start(t->os, 1, on_limit, t);
    (void)soon;
    os_run(t->os);
    os_free(t->os);
    snprintf(line, sizeof line, "rm -rf '%s'", t->top);
    CHECK(system(line) == 0);
}

/* The driver says this of the GPU: of what kind (NULL: it is well), in words, how many errors. */
static void driver(struct try *t, const char *fault, const char *health, int64_t errors)
{
    t->gpu.fault = fault;
    t->gpu.health = health;
    t->gpu.healthy = !health;
    t->gpu.ecc_errors = errors;
    care_look(t->care, &(struct node_info){ .gpus = { &t->gpu, 1 } });
}

static struct gpu_info told(struct try *t, struct arena *mem)
{
    struct gpu_info g = t->gpu;
    care_describe(t->care, mem, &(struct node_info){ .gpus = { &g, 1 } });
    return g;
}
static bool is_well(struct try *t)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    return told(t, mem).healthy;
}
static bool has_passed(struct try *t) { return t->passes > 0; }
static bool has_changed(struct try *t) { return t->changes > 0; }
static bool twice_changed(struct try *t) { return t->changes > 1; }
static bool has_answer(struct try *t) { return t->begun + t->refused > 0; }

/* Let what is due happen, and nothing else. */
static void on_moment(void *arg) { os_stop(((struct try *)arg)->os); }
static void moment(struct try *t)
{
    timer_start(t->os, 50, on_moment, t);
    os_run(t->os);
}

TEST(a_gpu_with_a_fault_is_out_and_comes_back_when_it_has_passed_its_test)
{
    AUTO(try_done) struct try t;
    AUTO(arena_free) struct arena *mem = arena_new();
    try_open(&t);
    driver(&t, NULL, NULL, 0);
    CHECK(is_well(&t) && !t.faults);
    driver(&t, "xid", "it has fallen off the bus", 0);
    CHECK(!is_well(&t) && t.faults == 1 && strstr(t.fault, "fallen"));
    until(&t, has_passed);
    driver(&t, NULL, NULL, 0); /* what gpus.c says now: it was told that it passed */
    struct gpu_info g = told(&t, mem);
    CHECK(g.healthy && text_starts(g.test, "passed: ") && g.test_ms > 0 && !g.scrub);
}

TEST(a_test_that_fails_is_told_and_tried_again_until_it_passes)
{
    AUTO(try_done) struct try t;
    AUTO(arena_free) struct arena *mem = arena_new();
    try_open(&t);
    put(&t, "cuda.conf", "mem 16\nwrong 0 * 1\n");
    driver(&t, "xid", "it has fallen off the bus", 0);
    until(&t, has_changed);
    struct gpu_info g = told(&t, mem);
    CHECK(!g.healthy && text_starts(g.test, "failed: a matrix product") && !t.passes);
    put(&t, "cuda.conf", "mem 16\n");
    until(&t, has_passed);
    driver(&t, NULL, NULL, 0);
    CHECK(is_well(&t));
}

TEST(errors_that_were_there_when_it_passed_count_no_more_and_new_ones_do)
{
    AUTO(try_done) struct try t;
    AUTO(arena_free) struct arena *mem = arena_new();
    try_open(&t);
    driver(&t, "memory", "4 errors", 4);
    until(&t, has_passed);
    driver(&t, "memory", "4 errors", 4);
    struct gpu_info g = told(&t, mem);
    CHECK(g.healthy && !g.fault && strstr(g.note, "4 errors; it has passed"));
    begin(&t); /* another agent knows it, too */
    int before = t.faults;
    driver(&t, "memory", "4 errors", 4);
    CHECK(is_well(&t) && t.faults == before);
    driver(&t, "memory", "5 errors", 5);
    CHECK(!is_well(&t) && t.faults == before + 1);
    begin(&t); /* and that it is out */
    driver(&t, NULL, NULL, 0);
    CHECK(!is_well(&t) && strstr(told(&t, mem).health, "until it has passed a test: 5 errors"));
}

TEST(what_no_test_can_take_back_is_waited_out_and_tested_then)
{
    AUTO(try_done) struct try t;
    try_open(&t);
    driver(&t, "held", "the device is lost", 0);
    moment(&t);
    driver(&t, "held", "the device is lost", 0);
    CHECK(!is_well(&t) && t.faults == 2 && calls(&t, "init") == 0);
    driver(&t, NULL, NULL, 0);
    CHECK(!is_well(&t));
    until(&t, has_passed);
    CHECK(is_well(&t));
}

TEST(without_tests_a_fault_lasts_as_long_as_the_driver_tells_it)
{
    AUTO(try_done) struct try t;
    try_open(&t);
    t.config.when = CARE_OFF;
    begin(&t);
    driver(&t, "xid", "it has fallen off the bus", 0);
    moment(&t);
    CHECK(!is_well(&t) && t.faults == 1 && calls(&t, "init") == 0);
    driver(&t, NULL, NULL, 0);
    CHECK(is_well(&t));
}

TEST(a_gpu_of_another_maker_is_out_as_long_as_its_driver_says_so)
{
    AUTO(try_done) struct try t;
    try_open(&t);
    t.gpu.vendor = "amd";
    driver(&t, "memory", "1 error", 1);
    moment(&t);
    CHECK(!is_well(&t) && t.faults == 1 && calls(&t, "init") == 0);
    driver(&t, NULL, NULL, 0);
    CHECK(is_well(&t));
}

/* --- who had it last */

static struct order_gpu whole = { .uuid = UUID, .milli = 1000, .mem_mib = 16 };

static bool wants(struct try *t, int64_t attempt, int64_t project, const struct order_gpu *g)
{
    struct care_leases l = care_leases_of(&(struct objects){ (void *)g, 1 });
    t->begun = t->refused = 0;
    bool at_once = care_want(t->care, attempt, project, &l, on_begin, t);
    care_leases_free(&l);
    return at_once;
}

TEST(between_two_projects_and_only_there_a_gpu_is_overwritten_before_anybody_begins)
{
    AUTO(try_done) struct try t;
    AUTO(arena_free) struct arena *mem = arena_new();
    try_open(&t);
    driver(&t, NULL, NULL, 0);
    CHECK(wants(&t, 1, 7, &whole)); /* nobody has ever had it */
    care_leave(t.care, 1);
    CHECK(wants(&t, 2, 7, &whole)); /* its own */
    care_leave(t.care, 2);
    CHECK(calls(&t, "init") == 0);
    CHECK(!wants(&t, 3, 8, &whole) && !t.begun);
    until(&t, has_answer);
    struct gpu_info g = told(&t, mem);
    CHECK(t.begun == 1 && calls(&t, "set " UUID " 0") == 1 && strstr(g.scrub, "16 of 16 MiB overwritten") && g.scrub_ms > 0 && g.healthy);
    care_leave(t.care, 3);
    CHECK(wants(&t, 4, 8, &whole));
    care_leave(t.care, 4);
}

TEST(a_gpu_that_nothing_can_overwrite_tells_so_when_it_goes_to_another_project)
{
    AUTO(try_done) struct try t;
    AUTO(arena_free) struct arena *mem = arena_new();
    try_open(&t);
    t.gpu.vendor = "amd";
    driver(&t, NULL, NULL, 0);
    CHECK(wants(&t, 1, 7, &whole) && !told(&t, mem).scrub);
    care_leave(t.care, 1);
    CHECK(wants(&t, 2, 8, &whole) && text_starts(told(&t, mem).scrub, "not overwritten: ") && told(&t, mem).scrub_ms > 0);
    care_leave(t.care, 2);
}

TEST(who_had_it_last_is_known_to_the_next_agent_and_who_is_not_known_is_a_stranger)
{
    AUTO(try_done) struct try t;
    try_open(&t);
    driver(&t, NULL, NULL, 0);
    CHECK(wants(&t, 1, 7, &whole));
    begin(&t);
    CHECK(!wants(&t, 9, 7, &whole));
    until(&t, has_answer);
    CHECK(t.refused == 1); /* nothing is known of it yet */
    driver(&t, NULL, NULL, 0);
    CHECK(wants(&t, 2, 7, &whole));
    care_leave(t.care, 2);
    CHECK(!wants(&t, 3, 8, &whole));
    until(&t, has_answer);
    CHECK(t.begun == 1);
    put(&t, "gpus", "0 " UUID "\n"); /* a node was here, and its note is lost */
    char path[160];
    snprintf(path, sizeof path, "%s/gpu-owners", t.top);
    CHECK(unlink(path) == 0);
    begin(&t);
    driver(&t, NULL, NULL, 0);
    CHECK(!wants(&t, 4, 8, &whole));
    until(&t, has_answer);
    CHECK(t.begun == 1 && calls(&t, "set") == 2);
    put(&t, "gpu-owners", UUID " 8 8 x 8 8 8 8 8\n"); /* what cannot be read is a stranger's, too */
    begin(&t);
    driver(&t, NULL, NULL, 0);
    CHECK(!wants(&t, 5, 8, &whole));
    until(&t, has_answer);
    CHECK(t.begun == 1);
}

TEST(a_scrub_that_fails_keeps_everybody_away_until_one_succeeds)
{
    AUTO(try_done) struct try t;
    AUTO(arena_free) struct arena *mem = arena_new();
    try_open(&t);
    driver(&t, NULL, NULL, 0);
    CHECK(wants(&t, 1, 7, &whole));
    care_leave(t.care, 1);
    put(&t, "cuda.conf", "mem 16\nfail set * 719\n");
    CHECK(!wants(&t, 2, 8, &whole));
    until(&t, has_answer);
    CHECK(t.refused == 1 && strstr(t.why, "could not be overwritten"));
    struct gpu_info g = told(&t, mem);
    CHECK(!g.healthy && strstr(g.health, "could not be overwritten after another project") && text_starts(g.scrub, "failed: "));
    care_leave(t.care, 2);
    CHECK(!wants(&t, 3, 7, &whole)); /* not even its own */
    until(&t, has_answer);
    CHECK(t.refused == 1);
    put(&t, "cuda.conf", "mem 16\n");
    until(&t, is_well);
    CHECK(wants(&t, 4, 9, &whole));
}

TEST(who_leaves_while_he_waits_is_not_called_and_his_scrub_serves_the_next)
{
    AUTO(try_done) struct try t;
    try_open(&t);
    driver(&t, NULL, NULL, 0);
    CHECK(wants(&t, 1, 7, &whole));
    care_leave(t.care, 1);
    CHECK(!wants(&t, 2, 8, &whole));
    care_leave(t.care, 2);
    until(&t, has_changed);
    CHECK(!t.begun && !t.refused);
    CHECK(wants(&t, 3, 9, &whole));
}

TEST(nobody_begins_on_a_gpu_that_is_out)
{
    AUTO(try_done) struct try t;
    try_open(&t);
    driver(&t, "held", "the device is lost", 0);
    CHECK(!wants(&t, 1, 7, &whole));
    until(&t, has_answer);
    CHECK(t.refused == 1 && strstr(t.why, "the device is lost"));
    put(&t, "cuda.conf", "mem 16\nhang init *\n");
    driver(&t, NULL, NULL, 0);
    CHECK(!wants(&t, 2, 7, &whole));
    until(&t, has_answer);
    CHECK(t.refused == 1 && strstr(t.why, "the device is lost")); /* it has not passed yet */
    put(&t, "cuda.conf", "mem 16\n");
    until(&t, has_passed);
    CHECK(wants(&t, 3, 7, &whole));
}

TEST(an_idle_gpu_is_tested_by_the_hour_and_one_in_use_is_not)
{
    AUTO(try_done) struct try t;
    AUTO(arena_free) struct arena *mem = arena_new();
    try_open(&t);
    t.config.when = CARE_HOURLY;
    t.config.hour_ms = 20;
    begin(&t);
    driver(&t, NULL, NULL, 0);
    CHECK(wants(&t, 1, 7, &whole));
    moment(&t);
    moment(&t);
    CHECK(calls(&t, "init") == 0);
    care_leave(t.care, 1);
    until(&t, has_changed);
    CHECK(is_well(&t) && text_starts(told(&t, mem).test, "passed"));
    put(&t, "cuda.conf", "mem 16\nflip 0 * 2\n");
    t.changes = 0;
    until(&t, twice_changed); /* one test may have been under way */
    CHECK(!is_well(&t) && strstr(told(&t, mem).health, "it failed its test: 2 words"));
}

TEST(mig_instances_are_overwritten_each_for_itself)
{
    AUTO(try_done) struct try t;
    static const char *uuids[] = { MIG(0), MIG(4) };
    struct order_gpu low = { .uuid = UUID, .milli = 500, .mem_mib = 8, .mig = "3g.71gb", .slot = 0, .size = 4 }, high = low;
    high.slot = 4;
    try_open(&t);
    t.gpu.mig = "3g.71gb@0,3g.71gb@4";
    t.gpu.mig_uuids = (struct texts){ uuids, 2 };
    driver(&t, NULL, NULL, 0);
    CHECK(wants(&t, 1, 7, &low) && wants(&t, 2, 8, &high));
    care_leave(t.care, 2);
    CHECK(wants(&t, 3, 8, &high));
    care_leave(t.care, 3);
    CHECK(!wants(&t, 4, 9, &high)); /* while its neighbour runs */
    until(&t, has_answer);
    CHECK(t.begun == 1 && calls(&t, "set " MIG(4)) == 1 && calls(&t, "set " MIG(0)) == 0 && calls(&t, "set " UUID) == 0);
}

TEST(beside_a_neighbour_of_another_project_every_start_is_overwritten_for_and_leaves_his_promise_alone)
{
    AUTO(try_done) struct try t;
    AUTO(arena_free) struct arena *mem = arena_new();
    struct order_gpu share = { .uuid = UUID, .milli = 250, .mem_mib = 4 };
    try_open(&t);
    driver(&t, NULL, NULL, 0);
    CHECK(wants(&t, 1, 7, &share) && wants(&t, 2, 7, &share)); /* of one project */
    struct live_task holds = { .attempt = 1, .mem_mib = 4, .processes = 1 };
    struct gpu_live live = { .uuid = UUID, .tasks = { &holds, 1 } };
    care_held(t.care, &(struct objects){ &live, 1 });
    put(&t, "cuda.conf", "mem 16\nused 4\n");
    CHECK(!wants(&t, 3, 8, &share));
    until(&t, has_answer);
    CHECK(t.begun == 1 && strstr(told(&t, mem).scrub, "8 of 16 MiB")); /* 4 are held, 4 promised to the second */
    CHECK(!wants(&t, 4, 7, &share));
    until(&t, has_answer);
    CHECK(t.begun == 1);
    for (int64_t i = 1; i <= 4; i++)
        care_leave(t.care, i);
    CHECK(!wants(&t, 5, 7, &whole)); /* several had it */
    until(&t, has_answer);
    CHECK(t.begun == 1);
    care_leave(t.care, 5);
    CHECK(wants(&t, 6, 7, &whole));
}
