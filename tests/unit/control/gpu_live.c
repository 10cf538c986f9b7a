#include "door.h"
#include <stdio.h>
#include <string.h>

#define TEXT(a) ((a).text ? (a).text : "")

/* A node with real GPUs, as far as the door can tell. */
static void real_node(struct door *d, const char *name, int gpus, char key[static SECRET_TEXT])
{
    door_node(d, name, gpus, key);
    struct gpu_info list[8];
    for (int i = 0; i < gpus; i++)
        list[i] = (struct gpu_info){ .index = i, .uuid = FMT(d, "GPU-%s-%d", name, i), .model = "NVIDIA H200", .mem_mib = 143771, .healthy = true, .vendor = "nvidia",
                                     .device = FMT(d, "/dev/nvidia%d", i), .pci = "0000:18:00.0", .driver = "580.159.03", .power_cap_mw = 700000 };
    struct hello hello = { .kind = "hello", .next = 1, .beat = 1, .info = { .hostname = name, .host_image = true, .cpu_milli = 64000, .mem_mib = 262144, .gpus = { list, (size_t)gpus } } };
    CHECK(door_ask_bound(d, key, NULL, VERB_NODE_HELLO, &hello).ok);
}

/* A quarter of a GPU for a job. */
static bool place_part(struct door *d, const char *job, const char *node, int gpu)
{
    struct order_gpu g = { .index = gpu, .uuid = "", .milli = 250, .mem_mib = 35942 };
    struct placement p = { .node = state_node(memory_of(d), node)->id, .gpus = { &g, 1 } };
    struct place_ask ask = { .placements = { &p, 1 } };
    int64_t before = rows_in(d, "attempt");
    CHECK(id_parse(job, PREFIX_JOB, &p.job) && door_ask_as(d, &system_caller, VERB_JOB_PLACE, &ask).ok);
    return rows_in(d, "attempt") == before + 1;
}

static struct answer figures(struct door *d, const char *key, const char *gpus)
{
    return door_ask(d, key, VERB_NODE_REPORT, FMT(d, "{\"kind\":\"report\",\"beat\":2,\"items\":[],\"live\":[%s]}", gpus));
}

#define FIGURES(uuid, more) "{\"uuid\":\"" uuid "\",\"util\":37,\"mem_used_mib\":2048,\"power_mw\":345678,\"temp_c\":61" more "}"

TEST(figures_are_in_memory_alone_and_cost_no_commit)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    real_node(d, "n1", 2, key);
    const char *before = store_text(d);
    CHECK(figures(d, key, FIGURES("GPU-n1-0", "")).ok);
    CHECK(text_is(before, store_text(d)));
    struct answer a = door_ask(d, d->admin, VERB_GPU_LIVE, NULL);
    CHECK(a.ok && item_count(&a) == 2 && strstr(a.text, "\"utilization\":37") && strstr(a.text, "\"power_mw\":345678") && strstr(a.text, "\"clock_mhz\":-1"));
    CHECK(text_is(item(d, &a, 0, "name"), "n1/0") && text_is(item(d, &a, 0, "state"), "free"));
    struct answer other = figures(d, key, "{\"uuid\":\"GPU-n1-0\",\"util\":101}");
    CHECK(!other.ok || !strstr(TEXT(other), "101"));        /* no such per cent */
    check_books(d, "figures");
    CHECK(door_crash(d));
    a = door_ask(d, d->admin, VERB_GPU_LIVE, NULL);
    CHECK(a.ok && item_count(&a) == 2 && strstr(a.text, "\"utilization\":-1"));
}

TEST(old_figures_are_not_shown)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    real_node(d, "n1", 1, key);
    CHECK(figures(d, key, FIGURES("GPU-n1-0", "")).ok);
    for (int i = 0; i < 13; i++) {
        door_run(d, 5000);
        CHECK(door_ask(d, key, VERB_NODE_REPORT, "{\"kind\":\"beat\",\"beat\":9}").ok);
    }
    struct answer a = door_ask(d, d->admin, VERB_GPU_LIVE, NULL);
    CHECK(a.ok && strstr(a.text, "\"utilization\":-1") && strstr(a.text, "\"at\":null"));
}

TEST(a_tenant_sees_what_its_own_tasks_hold_and_of_a_share_only_its_part)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    real_node(d, "n1", 3, key);
    CHECK(door_ask(d, d->admin, VERB_PROJECT_CREATE, "{\"name\":\"beta\"}").ok);
    const char *hers = door_grant(d, PRINCIPAL_USER, "admin", "beta", ROLE_VIEWER, 0), *his = door_grant(d, PRINCIPAL_USER, "admin", "default", ROLE_VIEWER, 0);
    const char *whole = door_submit(d, d->admin, "{\"command\":[\"true\"],\"gpus\":1,\"name\":\"whole\"}");
    const char *part = door_submit(d, d->admin, "{\"command\":[\"true\"],\"gpus\":\"0.25\",\"cpus\":1,\"memory\":\"1GB\",\"name\":\"part\"}");
    CHECK(door_place(d, whole, 0, "n1", 0) && place_part(d, part, "n1", 1));
    CHECK(figures(d, key,
                  FMT(d, "%s,%s,%s", FIGURES("GPU-n1-0", ""),
                      FMT(d, FIGURES("GPU-n1-1", ",\"tasks\":[{\"attempt\":\"%s\",\"mem_mib\":100,\"processes\":2},{\"mem_mib\":7,\"processes\":1}]"), door_attempt(d, part, 0)),
                      FIGURES("GPU-n1-2", ""))).ok);
    struct answer all = door_ask(d, d->admin, VERB_GPU_LIVE, NULL), own = door_ask_full(d, his, "default", VERB_GPU_LIVE, NULL, NULL, 0),
                  none = door_ask_full(d, hers, "beta", VERB_GPU_LIVE, NULL, NULL, 0);
    CHECK(item_count(&all) == 3 && strstr(all.text, "not the cloud's"));
    CHECK(own.ok && item_count(&own) == 2 && !strstr(own.text, "not the cloud's"));
    CHECK(text_is(item(d, &own, 0, "name"), "n1/0") && text_is(item(d, &own, 0, "utilization"), "37") && text_is(item(d, &own, 0, "state"), "in use"));
    CHECK(text_is(item(d, &own, 1, "name"), "n1/1") && text_is(item(d, &own, 1, "utilization"), "-1") && text_is(item(d, &own, 1, "power_mw"), "-1")
          && text_is(item(d, &own, 1, "memory_used_mib"), "100"));
    CHECK(strstr(own.text, "\"wall\":\"process\"") && strstr(own.text, "\"wall\":\"device\"") && strstr(own.text, "\"name\":\"part\""));
    CHECK(none.ok && item_count(&none) == 0 && !strstr(none.text, "n1"));
    struct answer one = door_ask(d, d->admin, VERB_GPU_LIVE, "{\"node\":\"nonesuch\"}");
    CHECK(!one.ok && one.err.rc == RC_NOT_FOUND);
}

static size_t holders(struct door *d)
{
    const struct project *p = map_get_text(memory_of(d)->project_names, "default");
    return p && p->holders ? map_count(p->holders) : 0;
}

/* Something of its own that lies where none of its attempts is would be seen by one who walks the fleet. */
TEST(a_tenant_makes_the_writer_look_at_its_own_nodes_alone)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT], other[SECRET_TEXT];
    real_node(d, "n1", 2, key);
    real_node(d, "n2", 2, other);
    const char *his = door_grant(d, PRINCIPAL_USER, "admin", "default", ROLE_VIEWER, 0);
    const char *job = door_submit(d, d->admin, "{\"command\":[\"true\"],\"gpus\":1}"), *without = door_submit(d, d->admin, "{\"command\":[\"true\"]}");
    CHECK(holders(d) == 0 && door_place(d, job, 0, "n1", 0) && holders(d) == 1);
    CHECK(door_place(d, without, 0, "n2", -1) && holders(d) == 1);
    struct node *n1 = state_node(memory_of(d), "n1"), *n2 = state_node(memory_of(d), "n2");
    size_t first = 0;
    struct attempt *a = map_next(n1->attempts, &first);
    map_put(n2->attempts, a->id, a);
    struct answer own = door_ask_full(d, his, "default", VERB_GPU_LIVE, NULL, NULL, 0);
    CHECK(own.ok && item_count(&own) == 1 && text_is(item(d, &own, 0, "name"), "n1/0"));
    map_take(n2->attempts, a->id);
    const char *next = door_submit(d, d->admin, "{\"command\":[\"true\"],\"gpus\":1}");
    CHECK(door_place(d, next, 0, "n2", 1) && holders(d) == 2);
    CHECK(door_report(d, key, 1, door_attempt(d, job, 0), "ended", ",\"outcome\":\"succeeded\"").ok && holders(d) == 1);
    CHECK(door_crash(d) && holders(d) == 1);
}

TEST(nodes_are_asked_for_figures_while_somebody_looks)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT], plain[SECRET_TEXT];
    real_node(d, "n1", 1, key);
    door_node(d, "n2", 1, plain);       /* simulated GPUs have none */
    struct answer a = figures(d, key, FIGURES("GPU-n1-0", ""));
    CHECK(a.ok && !strstr(a.text, "look_ms"));
    CHECK(door_ask(d, d->admin, VERB_GPU_LIVE, NULL).ok);
    a = figures(d, key, FIGURES("GPU-n1-0", ""));
    CHECK(a.ok && strstr(a.text, "\"look_ms\":1000"));
    a = door_ask(d, plain, VERB_NODE_REPORT, "{\"kind\":\"beat\",\"beat\":9}");
    CHECK(a.ok && !strstr(a.text, "look_ms"));
    door_run(d, 11000);
    a = figures(d, key, FIGURES("GPU-n1-0", ""));
    CHECK(a.ok && !strstr(a.text, "look_ms"));
}

TEST(many_gpus_come_in_pages_of_whole_nodes)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    for (int i = 0; i < 5; i++)
        door_node(d, FMT(d, "n%d", i), 2, key);
    struct answer a = door_ask(d, d->admin, VERB_GPU_LIVE, "{\"limit\":3}");
    CHECK(a.ok && item_count(&a) == 4 && text_given(get(&a, "next")));
    struct answer b = door_ask(d, d->admin, VERB_GPU_LIVE, FMT(d, "{\"limit\":100,\"page\":\"%s\"}", get(&a, "next")));
    CHECK(b.ok && item_count(&b) == 6 && !text_given(get(&b, "next")) && text_is(item(d, &b, 0, "name"), "n2/0") && strstr(b.text, "\"simulated\":true"));
    CHECK(!door_ask(d, d->admin, VERB_GPU_LIVE, "{\"page\":\"x\"}").ok);
    a = door_ask(d, d->admin, VERB_GPU_LIVE, "{\"node\":\"n3\"}");
    CHECK(a.ok && item_count(&a) == 2 && text_is(item(d, &a, 1, "name"), "n3/1"));
}

TEST(prometheus_gets_the_names_of_the_dcgm_exporter)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT], plain[SECRET_TEXT];
    real_node(d, "n1", 2, key);
    door_node(d, "n2", 1, plain);
    const char *job = door_submit(d, d->admin, "{\"command\":[\"true\"],\"gpus\":1}");
    CHECK(door_place(d, job, 0, "n1", 0) && figures(d, key, FIGURES("GPU-n1-0", "")).ok);
    struct answer a = door_ask(d, d->admin, VERB_METRICS, NULL);
    const char *text = TEXT(a);
    CHECK(a.ok && strstr(text, "# TYPE DCGM_FI_DEV_GPU_UTIL gauge\nDCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-n1-0\",pci_bus_id=\"0000:18:00.0\",device=\"nvidia0\",modelName=\"NVIDIA H200\",Hostname=\"n1\","));
    CHECK(strstr(text, "DCGM_FI_DEV_POWER_USAGE{") && strstr(text, "} 345.678\n") && strstr(text, FMT(d, "hpc_job=\"%s\",project=\"default\"} 37\n", job)));
    CHECK(!strstr(text, "DCGM_FI_DEV_SM_CLOCK") && !strstr(text, "UUID=\"GPU-n2-0\",pci_bus_id=\"\",device=\"\",modelName=\"NVIDIA H200\",Hostname=\"n2\"} 37"));
    CHECK(strstr(text, "arcus_gpu_healthy{gpu=\"0\",UUID=\"GPU-n2-0\"") && strstr(text, "simulated=\"true\"} 1\n"));
    CHECK(door_ask(d, d->admin, VERB_PROJECT_CREATE, "{\"name\":\"beta\"}").ok);
    const char *hers = door_grant(d, PRINCIPAL_USER, "admin", "beta", ROLE_VIEWER, 0);
    struct answer none = door_ask_full(d, hers, "beta", VERB_METRICS, NULL, NULL, 0);
    CHECK(none.ok && !strstr(TEXT(none), "UUID"));
}
