/* autostop.c - instances that nobody uses are stopped; nobody is stopped for time that was not watched. */
#include "door.h"

/* A node with GPUs that are no simulated ones, and an instance on it. */
struct lab { struct door *d; char key[SECRET_TEXT]; const char *job, *attempt; int64_t n; };

static bool hello(struct lab *l)
{
    struct gpu_info list[2];
    const char *running[] = { l->attempt };
    for (int i = 0; i < 2; i++)
        list[i] = (struct gpu_info){ .index = i, .uuid = FMT(l->d, "GPU-%d", i), .model = "NVIDIA H200", .mem_mib = 143771, .healthy = true, .vendor = "nvidia",
                                     .device = FMT(l->d, "/dev/nvidia%d", i), .pci = "0000:18:00.0", .driver = "580.159.03" };
    struct hello hello = { .kind = "hello", .next = l->n + 1, .beat = 1, .running = { running, l->attempt ? 1 : 0 },
                           .info = { .hostname = "n1", .host_image = true, .disks = true, .disk_mib = 1 << 20, .cpu_milli = 64000, .mem_mib = 262144, .gpus = { list, 2 } } };
    return door_ask_bound(l->d, l->key, NULL, VERB_NODE_HELLO, &hello).ok;
}

static struct lab lab_of(const char *cpus, const char *asks)
{
    struct lab l = { .d = door_new(true) };
    door_node(l.d, "n1", 0, l.key);
    CHECK(hello(&l));
    l.job = door_submit(l.d, l.d->admin, FMT(l.d, "{\"name\":\"lab\",\"type\":\"instance\",\"cpus\":%s,\"memory\":\"1GB\"%s}", cpus, asks));
    door_run(l.d, 100);
    l.attempt = door_attempt(l.d, l.job, 0);
    CHECK(text_given(l.attempt) && door_report(l.d, l.key, ++l.n, l.attempt, "started", NULL).ok);
    return l;
}

static struct lab lab_new(const char *asks) { return lab_of("2", asks); }

/* For so many seconds its node tells this of it, every 5 s. */
static bool tell(struct lab *l, int64_t s, const char *live, const char *use)
{
    for (int64_t i = 0; i < s; i += 5) {
        door_run(l->d, 5000);
        if (!door_ask(l->d, l->key, VERB_NODE_REPORT,
                      FMT(l->d, "{\"kind\":\"report\",\"beat\":2,\"items\":[],\"live\":[%s],\"uses\":[{\"attempt\":\"%s\"%s}]}", live, l->attempt, use)).ok)
            return false;
    }
    return true;
}
static const char *state(const struct lab *l) { return job_word(l->d, l->job, "state"); }

#define GPU(i, util, tasks) "{\"uuid\":\"GPU-" #i "\",\"util\":" #util ",\"tasks\":[" tasks "]}"
#define IDLE "," GPU(1, 0, "")
#define QUIET ",\"cpu_milli\":900"      /* of an instance with GPUs its processors do not count */

TEST(an_instance_whose_gpus_did_nothing_for_as_long_as_it_says_is_stopped_and_says_why)
{
    struct lab l = lab_new(",\"gpus\":2,\"autostop\":\"10m\"");
    AUTO(door_free) struct door *d = l.d;

    CHECK(tell(&l, 590, GPU(0, 0, "") IDLE, QUIET) && text_is(state(&l), "running"));
    CHECK(tell(&l, 5, GPU(0, 1, "") IDLE, QUIET) && tell(&l, 595, GPU(0, 0, "") IDLE, QUIET) && text_is(state(&l), "running"));
    CHECK(tell(&l, 10, GPU(0, 0, "") IDLE, QUIET) && text_is(state(&l), "stopping") && door_events(d, "job.stop") == 1);
    CHECK(door_report(d, l.key, ++l.n, l.attempt, "ended", ",\"outcome\":\"preempted\"").ok && text_is(state(&l), "stopped"));
    CHECK(strstr(job_word(d, l.job, "reason_text"), "its GPUs were idle for 10 min") && strstr(job_word(d, l.job, "reason_text"), "arcus start lab"));
    CHECK(rows_in(d, "volume") == 1 && state_project(memory_of(d), "default")->gpu_held == 0);
    check_books(d, "stopped");
    check_picture(d, "stopped");
    struct answer a = door_ask(d, d->admin, VERB_JOB_START, "{\"job\":\"lab\"}");
    door_run(d, 100);
    l.attempt = door_attempt(d, l.job, 0);
    CHECK(a.ok && door_report(d, l.key, ++l.n, l.attempt, "started", NULL).ok && tell(&l, 590, GPU(0, 0, "") IDLE, QUIET));
    CHECK(text_is(state(&l), "running") && !text_given(job_word(d, l.job, "reason_text")));  /* its time begins anew */
}

TEST(whoever_is_connected_keeps_his_instance)
{
    struct lab l = lab_new(",\"gpus\":2,\"autostop\":\"1m\"");
    AUTO(door_free) struct door *d = l.d;
    for (int i = 0; i < 10; i++)
        CHECK(tell(&l, 5, GPU(0, 0, "") IDLE, QUIET ",\"session\":true") && tell(&l, 50, GPU(0, 0, "") IDLE, QUIET) && text_is(state(&l), "running"));
    CHECK(tell(&l, 20, GPU(0, 0, "") IDLE, QUIET) && text_is(state(&l), "stopping"));
}

TEST(without_gpus_or_with_simulated_ones_the_processors_count)
{
    struct lab l = lab_new(",\"autostop\":\"1m\"");
    AUTO(door_free) struct door *d = l.d;
    CHECK(tell(&l, 300, "", ",\"cpu_milli\":51") && text_is(state(&l), "running"));
    CHECK(tell(&l, 300, "", ",\"cpu_milli\":-1") && text_is(state(&l), "running"));     /* nobody knows */
    CHECK(tell(&l, 55, "", ",\"cpu_milli\":50") && text_is(state(&l), "running") && tell(&l, 10, "", ",\"cpu_milli\":3") && text_is(state(&l), "stopping"));
}

TEST(who_has_a_part_of_a_gpu_is_idle_if_its_node_knows_who_works_there_and_it_is_another)
{
    struct lab l = lab_new(",\"gpus\":\"0.5\",\"autostop\":\"1m\"");
    AUTO(door_free) struct door *d = l.d;
    int64_t id;
    CHECK(id_parse(l.attempt, PREFIX_ATTEMPT, &id));
    const struct attempt *a = map_get(memory_of(d)->attempts, id);
    const char *self = FMT(d, "{\"uuid\":\"GPU-%d\",\"util\":40,\"tasks\":[{\"attempt\":\"%s\",\"mem_mib\":9,\"processes\":1}]}", (int)a->gpus[0].index, l.attempt);
    const char *nobody = FMT(d, "{\"uuid\":\"GPU-%d\",\"util\":40,\"tasks\":[]}", (int)a->gpus[0].index);
    const char *other = FMT(d, "{\"uuid\":\"GPU-%d\",\"util\":40,\"tasks\":[{\"mem_mib\":9,\"processes\":1}]}", (int)a->gpus[0].index);
    CHECK(tell(&l, 120, self, QUIET) && text_is(state(&l), "running"));
    CHECK(tell(&l, 120, nobody, QUIET) && text_is(state(&l), "running"));
    CHECK(tell(&l, 70, other, QUIET) && text_is(state(&l), "stopping"));
}

TEST(time_that_nobody_watched_counts_as_use)
{
    struct lab l = lab_new(",\"gpus\":2,\"autostop\":\"2m\"");
    AUTO(door_free) struct door *d = l.d;
    CHECK(tell(&l, 110, GPU(0, 0, "") IDLE, QUIET) && door_crash(d) && hello(&l));
    CHECK(tell(&l, 110, GPU(0, 0, "") IDLE, QUIET) && text_is(state(&l), "running"));      /* a new server */
    for (int i = 0; i < 14; i++) { /* it says nothing of it */
        door_run(d, 5000);
        CHECK(door_ask(d, l.key, VERB_NODE_REPORT, "{\"kind\":\"report\",\"beat\":2,\"items\":[]}").ok);
    }
    CHECK(text_is(state(&l), "running") && tell(&l, 110, GPU(0, 0, "") IDLE, QUIET) && text_is(state(&l), "running"));
    CHECK(tell(&l, 200, GPU(0, 0, ""), QUIET) && text_is(state(&l), "running"));            /* nothing of one GPU: its figures are old, then */
    CHECK(tell(&l, 200, GPU(0, 0, "") "," GPU(1, -1, ""), QUIET) && text_is(state(&l), "running"));
    CHECK(tell(&l, 130, GPU(0, 0, "") IDLE, QUIET) && text_is(state(&l), "stopping"));
}

TEST(another_node_says_nothing_about_it_and_who_did_not_ask_is_not_stopped)
{
    struct lab l = lab_new(",\"autostop\":\"1m\"");
    AUTO(door_free) struct door *d = l.d;
    char other[SECRET_TEXT];
    door_node(d, "n2", 0, other);
    for (int i = 0; i < 30; i++) {
        door_run(d, 5000);
        CHECK(door_ask(d, l.key, VERB_NODE_REPORT, "{\"kind\":\"report\",\"beat\":2,\"items\":[]}").ok);
        CHECK(door_ask(d, other, VERB_NODE_REPORT, FMT(d, "{\"kind\":\"report\",\"beat\":2,\"items\":[],\"uses\":[{\"attempt\":\"%s\",\"cpu_milli\":0}]}", l.attempt)).ok);
    }
    CHECK(text_is(state(&l), "running"));
    struct lab m = lab_new(",\"gpus\":2");
    AUTO(door_free) struct door *e = m.d;
    CHECK(tell(&m, 3600, GPU(0, 0, "") IDLE, QUIET) && text_is(state(&m), "running") && rows_in(e, "volume") == 1);
    struct answer a = door_ask(d, d->admin, VERB_JOB_SUBMIT, "{\"command\":[\"true\"],\"autostop\":\"1m\"}");
    CHECK(!a.ok && a.err.rc == RC_BAD_INPUT && text_is(a.err.field, "autostop"));
}

TEST(one_that_has_little_of_a_processor_and_takes_all_of_it_is_used)
{
    struct lab l = lab_of("0.05", ",\"autostop\":\"1m\"");
    AUTO(door_free) struct door *d = l.d;
    CHECK(tell(&l, 300, "", ",\"cpu_milli\":45") && text_is(state(&l), "running") && tell(&l, 70, "", ",\"cpu_milli\":20") && text_is(state(&l), "stopping"));
}
