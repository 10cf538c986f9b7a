#include "agent/gpus.h"
#include "tap.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A helper of a few lines of shell, which says what is in files beside it. */
enum { LIMIT_MS = 60000 };
struct try {
    struct os *os;
    struct gpus *g;
    char top[64], helper[96];
    int found, lived;
    int64_t begin_ms, late_ms;
    size_t held;
    bool over;
    bool (*done)(struct try *t);
};

static void check(struct try *t)
{
    if (t->done && t->done(t))
        os_stop(t->os);
}
static void on_found(void *arg) { ((struct try *)arg)->found++, check(arg); }
static void on_live(void *arg) { ((struct try *)arg)->lived++, check(arg); }
static void on_held(void *arg, const struct objects *held) { ((struct try *)arg)->held = held->count, check(arg); }
static void on_limit(void *arg) { ((struct try *)arg)->over = true, os_stop(((struct try *)arg)->os); }

/* Until it is so, or a long time has passed. */
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

static void put(struct try *t, const char *name, const char *text)
{
    char path[160], fresh[176];
    snprintf(path, sizeof path, "%s/%s", t->top, name);
    snprintf(fresh, sizeof fresh, "%s.new", path);
    FILE *f = fopen(fresh, "we");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0 && rename(fresh, path) == 0);
}

static void begin(struct try *t)
{
    static const struct gpus_events events = { on_found, on_live, on_held };
    struct gpus_config config = { .self = t->helper, .data = t->top, .late_ms = t->late_ms, .begin_ms = t->begin_ms };
    t->g = gpus_new(t->os, &config, &events, t);
    CHECK(t->g && !gpus_ready(t->g) && !gpus_none(t->g));
}

static void try_open(struct try *t)
{
    struct err err = { 0 };
    char script[512];
    *t = (struct try){ .os = os_real_new(&err), .begin_ms = 30000, .late_ms = 30000 };
    snprintf(t->top, sizeof t->top, "/tmp/arcus-test-XXXXXX");
    CHECK(t->os && mkdtemp(t->top));
    snprintf(t->helper, sizeof t->helper, "%s/helper", t->top);
    snprintf(script, sizeof script, "#!/bin/sh\ncd %s\nwhile read -r w; do [ -e hang ] && exec sleep 1000; [ -e die ] && exit 3; [ $w = live ] && [ -e xid ] && cat xid; cat $w; done\n", t->top);
    put(t, "helper", script);
    CHECK(chmod(t->helper, 0755) == 0);
}

static void try_done_auto(struct try *t)
{
    char line[128];
    gpus_free(t->g);
    struct timer *soon = timer_start(t->os, 1, on_limit, t);    /* what was closed is told in the next turn */
    (void)soon;
    os_run(t->os);
    os_free(t->os);
    snprintf(line, sizeof line, "rm -rf '%s'", t->top);
    CHECK(system(line) == 0);
}

static struct node_info seen(struct try *t, struct arena *mem)
{
    struct node_info info = { 0 };
    gpus_describe(t->g, mem, &info);
    return info;
}

#define GPU(i, uuid) "{\"index\":" #i ",\"uuid\":\"" uuid "\",\"model\":\"NVIDIA H200\",\"mem_mib\":1,\"simulated\":false,\"healthy\":true,\"vendor\":\"nvidia\"}"
#define FOUND(list) "{\"kind\":\"found\",\"found\":{\"gpus\":[" list "],\"cpu_model\":\"x\"}}\n"
#define LIVE(uuid, more) "{\"kind\":\"live\",\"found\":{},\"live\":[{\"uuid\":\"" uuid "\",\"util\":5,\"temp_c\":30,\"mem_used_mib\":1" more "}]}\n"

static bool is_ready(struct try *t) { return gpus_ready(t->g); }
static bool has_lived(struct try *t) { return t->lived > 0; }
static const char *health_of(struct try *t, size_t i)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct node_info info = seen(t, mem);
    const char *h = i < info.gpus.count ? ((struct gpu_info *)info.gpus.at)[i].health : "none";
    static char text[240];
    snprintf(text, sizeof text, "%s", h ? h : "");
    return text;
}
static bool is_silent(struct try *t) { return strstr(health_of(t, 0), "does not answer"); }
static bool is_well(struct try *t) { return !*health_of(t, 0); }
static bool off_the_bus(struct try *t) { return strstr(health_of(t, 0), "fallen off"); }
static bool second_is_gone(struct try *t) { return strstr(health_of(t, 1), "gone"); }

TEST(gpus_are_what_the_helper_found_and_figures_come_once)
{
    AUTO(try_done) struct try t;
    AUTO(arena_free) struct arena *mem = arena_new();
    try_open(&t);
    put(&t, "look", FOUND(GPU(0, "a") "," GPU(1, "b")));
    put(&t, "live", LIVE("a", ""));
    begin(&t);
    until(&t, is_ready);
    struct node_info info = seen(&t, mem);
    CHECK(info.gpus.count == 2 && ((struct gpu_info *)info.gpus.at)[1].index == 1 && ((struct gpu_info *)info.gpus.at)[0].healthy && text_is(info.cpu_model, "x") && !gpus_none(t.g));
    until(&t, has_lived);
    struct objects live = gpus_live(t.g);
    CHECK(live.count == 1 && ((struct gpu_live *)live.at)->util == 5 && ((struct gpu_live *)live.at)->power_mw == -1);
    CHECK(gpus_live(t.g).count == 0);
}

static bool has_held(struct try *t) { return t->held == 1; }

TEST(who_holds_memory_is_asked_while_it_is_watched)
{
    AUTO(try_done) struct try t;
    try_open(&t);
    put(&t, "look", FOUND(GPU(0, "a")));
    put(&t, "live", LIVE("a", ""));
    put(&t, "held", "{\"kind\":\"held\",\"found\":{},\"live\":[{\"uuid\":\"a\",\"tasks\":[{\"attempt\":\"att-0000000000001\",\"mem_mib\":5,\"processes\":1}]}]}\n");
    begin(&t);
    until(&t, has_lived);
    int before = t.lived;
    gpus_watch(t.g, true);
    until(&t, has_held);
    CHECK(t.lived == before && gpus_live(t.g).count == 1); /* the figures for the server keep their own pace */
}

TEST(a_machine_without_gpus_says_so)
{
    AUTO(try_done) struct try t;
    AUTO(arena_free) struct arena *mem = arena_new();
    try_open(&t);
    put(&t, "look", FOUND(""));
    begin(&t);
    until(&t, is_ready);
    struct node_info info = { .gpus = { &(struct gpu_info){ .simulated = true }, 1 } };
    gpus_describe(t.g, mem, &info);
    CHECK(gpus_none(t.g) && info.gpus.count == 1);      /* simulated ones stay */
}

TEST(a_driver_that_hangs_makes_gpus_unhealthy_and_they_come_back)
{
    AUTO(try_done) struct try t;
    try_open(&t);
    t.late_ms = 300;
    put(&t, "look", FOUND(GPU(0, "a")));
    put(&t, "live", LIVE("a", ""));
    begin(&t);
    until(&t, has_lived);
    CHECK(is_well(&t));
    put(&t, "hang", "");
    gpus_pace(t.g, 1000);
    until(&t, is_silent);
    char path[96];
    snprintf(path, sizeof path, "%s/hang", t.top);
    CHECK(unlink(path) == 0);
    until(&t, is_well);
}

TEST(a_driver_that_hangs_from_the_start_keeps_nobody_waiting_and_makes_nothing_up)
{
    AUTO(try_done) struct try t;
    AUTO(arena_free) struct arena *mem = arena_new();
    try_open(&t);
    put(&t, "look", FOUND(GPU(0, "a")));
    put(&t, "live", LIVE("a", ""));
    put(&t, "hang", "");
    t.begin_ms = t.late_ms = 300;
    begin(&t);
    until(&t, is_ready);
    struct node_info info = seen(&t, mem);
    CHECK(!gpus_none(t.g) && info.gpus.count == 0 && info.cannot.count == 1 && strstr(info.cannot.at[0], "does not answer"));
    char path[96];
    snprintf(path, sizeof path, "%s/hang", t.top);
    CHECK(unlink(path) == 0);
    until(&t, has_lived);
    CHECK(is_well(&t) && seen(&t, mem).cannot.count == 0);
}

TEST(a_helper_that_dies_keeps_nobody_waiting_and_is_started_again)
{
    AUTO(try_done) struct try t;
    try_open(&t);
    put(&t, "look", FOUND(GPU(0, "a")));
    put(&t, "live", LIVE("a", ""));
    put(&t, "die", "");
    begin(&t);
    until(&t, is_ready);
    CHECK(!gpus_none(t.g));             /* it has not said that there is none */
    char path[96];
    snprintf(path, sizeof path, "%s/die", t.top);
    CHECK(unlink(path) == 0);
    until(&t, has_lived);
    CHECK(is_well(&t));
}

TEST(a_bad_error_takes_a_gpu_out_and_a_programs_error_does_not)
{
    AUTO(try_done) struct try t;
    try_open(&t);
    put(&t, "look", FOUND(GPU(0, "a")));
    put(&t, "live", LIVE("a", ""));
    put(&t, "xid", "{\"kind\":\"xid\",\"uuid\":\"a\",\"xid\":31}\n{\"kind\":\"xid\",\"uuid\":\"nobody\",\"xid\":79}\nno json\n");
    begin(&t);
    until(&t, has_lived);
    CHECK(is_well(&t));
    put(&t, "xid", "{\"kind\":\"xid\",\"uuid\":\"a\",\"xid\":79}\n");
    gpus_pace(t.g, 1000);
    until(&t, off_the_bus);
}

TEST(a_bad_error_outlives_the_agent_and_not_the_boot)
{
    AUTO(try_done) struct try t;
    try_open(&t);
    put(&t, "look", FOUND(GPU(0, "a")));
    put(&t, "live", LIVE("a", ""));
    put(&t, "xid", "{\"kind\":\"xid\",\"uuid\":\"a\",\"xid\":79}\n");
    begin(&t);
    until(&t, off_the_bus);
    gpus_free(t.g);
    put(&t, "xid", "");
    begin(&t);
    until(&t, is_ready);
    CHECK(off_the_bus(&t));
    gpus_free(t.g);
    put(&t, "gpus", "0 a 79 another-boot\n");
    begin(&t);
    until(&t, is_ready);
    CHECK(is_well(&t));
}

/* As many as a node may have, the first of them of another name. */
static void put_full(struct try *t, const char *first)
{
    static char list[8192];
    size_t n = 0;
    for (int i = 0; i < NODE_OFFERS; i++)
        n += (size_t)snprintf(list + n, sizeof list - n, "%s{\"index\":%d,\"uuid\":\"%s%d\",\"model\":\"m\",\"mem_mib\":1,\"simulated\":false,\"healthy\":true,\"vendor\":\"nvidia\"}",
                              i ? "," : "{\"kind\":\"found\",\"found\":{\"gpus\":[", i, i ? "g" : first, i);
    snprintf(list + n, sizeof list - n, "],\"cpu_model\":\"x\"}}\n");
    put(t, "look", list);
}
static bool first_is_new(struct try *t)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    const struct gpu_info *g = seen(t, mem).gpus.at;
    return g && text_is(g[0].uuid, "new0");
}

TEST(numbers_stay_within_what_a_node_may_have_and_none_is_given_twice)
{
    AUTO(try_done) struct try t;
    AUTO(arena_free) struct arena *mem = arena_new();
    try_open(&t);
    put(&t, "gpus", "20 g3\n5 g4\n5 g7\n6 g4\n");      /* beyond, a number twice, one GPU twice */
    put_full(&t, "old");
    put(&t, "live", LIVE("c", ""));
    begin(&t);
    until(&t, is_ready);
    put_full(&t, "new");                /* one has been changed for another */
    gpus_pace(t.g, 1000);
    until(&t, first_is_new);
    struct node_info info = seen(&t, mem);
    const struct gpu_info *g = info.gpus.at;
    unsigned seen_numbers = 0;
    CHECK(info.gpus.count == NODE_OFFERS && g[4].index == 5);
    for (size_t i = 0; i < info.gpus.count; i++) {
        CHECK(g[i].index < NODE_OFFERS && !(seen_numbers >> g[i].index & 1));
        seen_numbers |= 1u << g[i].index;
    }
}

TEST(numbers_stay_and_what_has_vanished_is_told)
{
    AUTO(try_done) struct try t;
    AUTO(arena_free) struct arena *mem = arena_new();
    try_open(&t);
    put(&t, "gpus", "1 a\n0 left-the-machine\n");
    put(&t, "look", FOUND(GPU(0, "a") "," GPU(1, "b")));
    put(&t, "live", LIVE("c", ""));     /* odd: so it looks again soon */
    begin(&t);
    until(&t, is_ready);
    const struct gpu_info *g = seen(&t, mem).gpus.at;
    CHECK(text_is(g[0].uuid, "a") && g[0].index == 1 && text_is(g[1].uuid, "b") && g[1].index == 0);
    put(&t, "look", FOUND(GPU(0, "a")));
    gpus_pace(t.g, 1000);
    until(&t, second_is_gone);
    g = seen(&t, mem).gpus.at;
    CHECK(text_is(g[1].uuid, "b") && g[1].index == 0 && !g[1].healthy && g[0].healthy);
}
