#include "devices_kit.h"

struct session { void *state; };
static void session_done_auto(struct session *s)
{
    if (s->state)
        device_nvidia.close(s->state);
}

static bool open_it(struct kit *k, struct session *s)
{
    struct err err = { 0 };
    static char proc[128];
    snprintf(proc, sizeof proc, "%s/proc", k->sys);
    struct helper_config config = { .nvml = k->lib, .sys = k->sys, .proc = proc };
    bool ok = device_nvidia.open(&config, &s->state, &err);
    if (!ok)
        printf("# %s\n", err.text);
    return ok;
}

static struct node_info find(struct session *s, struct arena *mem)
{
    struct node_info info = { 0 };
    struct err err = { 0 };
    if (!device_nvidia.find(s->state, mem, &info, &err))
        helper_cannot(&info, mem, "%s", err.text);
    return info;
}

TEST(a_machine_without_the_library_has_no_nvidia_gpus)
{
    void *state = NULL;
    struct err err = { 0 };
    CHECK(!device_nvidia.open(&(struct helper_config){ .nvml = "/nowhere/libnvidia-ml.so.1", .sys = "/sys" }, &state, &err) && !state && err.rc == RC_UNAVAILABLE);
    CHECK(!device_nvidia.open(&(struct helper_config){ .nvml = "libdl.so.2", .sys = "/sys" }, &state, &err) && !state);
}

TEST(gpus_are_told_with_what_is_steady_about_them)
{
    AUTO(kit_done) struct kit k;
    AUTO(session_done) struct session s = { 0 };
    AUTO(arena_free) struct arena *mem = arena_new();
    if (!kit_open(&k))
        return;
    kit_driver(&k, "gpus 2\ngpu 0 minor 3\ngpu 1 ecc 0\ngpu 1 mode 3\ngpu 1 link 0\ngpu 1 link 0\ngpu 1 link -1\n");
    CHECK(open_it(&k, &s));
    struct node_info info = find(&s, mem);
    const struct gpu_info *g = info.gpus.at;
    CHECK(info.gpus.count == 2 && info.cannot.count == 0);
    CHECK(text_is(g[0].model, "NVIDIA H200") && g[0].mem_mib == 143771 && g[0].healthy && !g[0].simulated && !g[0].ecc_off && text_is(g[0].vendor, "nvidia"));
    CHECK(text_is(g[0].device, "/dev/nvidia3") && text_is(g[0].pci, "0000:18:00.0") && text_is(g[0].driver, "580.159.03") && text_is(g[0].cuda, "13.0") && !g[0].mode);
    CHECK(g[0].power_cap_mw == 700000 && g[0].nvlinks == 0 && !g[0].mig && !g[0].health && !g[0].note);
    CHECK(g[1].ecc_off && text_is(g[1].mode, "exclusive_process") && g[1].nvlinks == 3 && g[1].peers.count == 1 && g[1].peers.at
          && ((struct gpu_peer *)g[1].peers.at)->links == 2 && text_is(((struct gpu_peer *)g[1].peers.at)->path, "0000:18:00.0"));
}

TEST(nvml_and_the_drivers_proc_must_agree_which_node_a_gpu_has)
{
    AUTO(kit_done) struct kit k;
    AUTO(session_done) struct session s = { 0 };
    AUTO(arena_free) struct arena *mem = arena_new();
    if (!kit_open(&k))
        return;
    kit_driver(&k, "gpus 2\n");
    kit_sys(&k, "proc/0000:18:00.0/information", "GPU UUID: \t GPU-????????\nDevice Minor: \t 0\nGPU Excluded:\t No\n");
    kit_sys(&k, "proc/0000:9a:00.0/information", "GPU UUID: \t GPU-fa4e0000-0000-0000-0000-000000000001\nDevice Minor: \t 6\n");
    CHECK(open_it(&k, &s));
    struct node_info info = find(&s, mem);
    const struct gpu_info *g = info.gpus.at;
    CHECK(info.gpus.count == 2 && g[0].healthy && text_is(g[0].device, "/dev/nvidia0"));
    CHECK(!g[1].healthy && text_is(g[1].health, "it is /dev/nvidia1 by NVML and /dev/nvidia6 by the driver's /proc") && !g[1].device);
}

TEST(a_broken_gpu_says_why)
{
    AUTO(kit_done) struct kit k;
    AUTO(session_done) struct session s = { 0 };
    AUTO(arena_free) struct arena *mem = arena_new();
    if (!kit_open(&k))
        return;
    kit_driver(&k, "gpus 5\n");
    CHECK(open_it(&k, &s) && find(&s, mem).gpus.count == 5);
    kit_driver(&k, "gpus 5\ngpu 0 ecc_uncorrected 2\ngpu 1 rows_failure 1\ngpu 2 lost 1\ngpu 3 rows_pending 1\ngpu 4 ecc_corrected 9\n");
    const struct gpu_info *g = find(&s, mem).gpus.at;
    CHECK(!g[0].healthy && strstr(g[0].health, "2 uncorrectable memory errors"));
    CHECK(!g[1].healthy && strstr(g[1].health, "could not be remapped"));
    CHECK(!g[2].healthy && strstr(g[2].health, "lost") && text_given(g[2].uuid));
    CHECK(g[3].healthy && strstr(g[3].note, "next reset"));
    CHECK(g[4].healthy && !g[4].health && !g[4].note);
    kit_driver(&k, "gpus 5\n");
    CHECK(((struct gpu_info *)find(&s, mem).gpus.at)[2].healthy);
}

TEST(mig_instances_have_their_uuids_and_places)
{
    AUTO(kit_done) struct kit k;
    AUTO(session_done) struct session s = { 0 };
    AUTO(arena_free) struct arena *mem = arena_new();
    if (!kit_open(&k))
        return;
    kit_driver(&k, "gpus 2\ngpu * mig 1\ngpu 0 instance 3g.71gb 4 MIG-aaa\ngpu 0 instance 1g.18gb+me 0 MIG-bbb\ngpu 0 instance 1c.2g.35gb 2 MIG-ccc\n");
    CHECK(open_it(&k, &s));
    const struct gpu_info *g = find(&s, mem).gpus.at;
    CHECK(text_is(g[0].mig, "3g.71gb@4,1g.18gb+me@0") && g[0].mig_uuids.count == 2 && text_is(g[0].mig_uuids.at[0], "MIG-aaa") && text_is(g[0].mig_uuids.at[1], "MIG-bbb")
          && g[0].mig_ids.count == 2 && text_is(g[0].mig_ids.at[0], "1/0") && text_is(g[0].mig_ids.at[1], "2/0"));
    CHECK(text_is(g[1].mig, "on") && g[1].mig_uuids.count == 0);
}

TEST(what_they_do_is_read_and_what_they_do_not_tell_is_minus_one)
{
    AUTO(kit_done) struct kit k;
    AUTO(session_done) struct session s = { 0 };
    AUTO(arena_free) struct arena *mem = arena_new();
    struct objects out = { 0 };
    char lines[512];
    if (!kit_open(&k))
        return;
    snprintf(lines, sizeof lines,
             "gpus 2\ngpu 0 util 37\ngpu 0 mem_util 12\ngpu 0 mem_used 2048\ngpu 0 power 345678\ngpu 0 temp 61\ngpu 0 mem_temp 70\ngpu 0 sm 1980\n"
             "gpu 0 throttle 0x44\ngpu 0 energy 99\ngpu 0 process %d 100\ngpu 0 process 1 50\ngpu 1 mig 1\n", (int)getpid());
    kit_driver(&k, lines);
    CHECK(open_it(&k, &s));
    device_nvidia.live(s.state, mem, 1000, &out);
    CHECK(out.count == 0);      /* nobody has looked what there is */
    find(&s, mem);
    device_nvidia.live(s.state, mem, 1000, &out);
    const struct gpu_live *l = out.at;
    CHECK(out.count == 2 && l[0].util == 37 && l[0].mem_util == 12 && l[0].mem_used_mib == 2048 && l[0].mem_free_mib == 143771 - 2048);
    CHECK(l[0].power_mw == 345678 && l[0].temp_c == 61 && l[0].mem_temp_c == 70 && l[0].sm_mhz == 1980 && l[0].energy_mj == 99 && l[0].xid == 0);
    CHECK(text_is(l[0].throttle, "power cap, heat (hardware)"));
    const struct live_task *t = l[0].tasks.at;
    CHECK(l[0].tasks.count == 1 && t->attempt == 0 && t->mem_mib == 150 && t->processes == 2);
    CHECK(l[1].util == -1 && l[1].temp_c == 31 && text_is(l[1].throttle, ""));
}

TEST(clients_of_mps_are_told_from_those_who_come_by_themselves)
{
    AUTO(kit_done) struct kit k;
    AUTO(session_done) struct session s = { 0 };
    AUTO(arena_free) struct arena *mem = arena_new();
    struct objects out = { 0 };
    if (!kit_open(&k))
        return;
    kit_driver(&k, "gpus 1\ngpu 0 process 1 66\ngpu 0 client 2 500\ngpu 0 client 3 700\n");
    CHECK(open_it(&k, &s));
    find(&s, mem);
    device_nvidia.held(s.state, mem, &out);
    const struct gpu_live *l = out.at;
    const struct live_task *t = out.count ? l[0].tasks.at : NULL;
    CHECK(t && l[0].util == -1 && l[0].tasks.count == 1 && t->mem_mib == 1266 && t->processes == 3 && t->outside == 1);
}

static struct gpu_live live_at(struct session *s, struct arena *mem, int64_t now_ms)
{
    struct objects out = { 0 };
    device_nvidia.live(s->state, mem, now_ms, &out);
    return out.count ? *(struct gpu_live *)out.at : gpu_live_unknown("");
}

TEST(figures_that_are_dear_are_read_now_and_then)
{
    AUTO(kit_done) struct kit k;
    AUTO(session_done) struct session s = { 0 };
    AUTO(arena_free) struct arena *mem = arena_new();
    if (!kit_open(&k))
        return;
    kit_driver(&k, "gpu 0 energy 1\ngpu 0 replays 1\ngpu 0 ecc_corrected 1\ngpu 0 util 1\n");
    CHECK(open_it(&k, &s) && find(&s, mem).gpus.count == 1);
    struct gpu_live l = live_at(&s, mem, 1000);
    CHECK(l.energy_mj == 1 && l.replays == 1 && l.ecc_corrected == 1 && l.util == 1);
    kit_driver(&k, "gpu 0 energy 2\ngpu 0 replays 2\ngpu 0 ecc_corrected 2\ngpu 0 util 2\n");
    l = live_at(&s, mem, 10999);
    CHECK(l.energy_mj == 1 && l.replays == 1 && l.ecc_corrected == 1 && l.util == 2);
    l = live_at(&s, mem, 11000);
    CHECK(l.energy_mj == 1 && l.ecc_corrected == 2);
    l = live_at(&s, mem, 60999);
    CHECK(l.energy_mj == 1 && l.replays == 1);
    l = live_at(&s, mem, 61000);
    CHECK(l.energy_mj == 2 && l.replays == 2);
}

TEST(a_driver_that_does_not_start_says_why_and_may_start_later)
{
    AUTO(kit_done) struct kit k;
    AUTO(session_done) struct session s = { 0 };
    AUTO(arena_free) struct arena *mem = arena_new();
    if (!kit_open(&k))
        return;
    kit_driver(&k, "init 9\n");
    CHECK(open_it(&k, &s));
    struct node_info info = find(&s, mem);
    CHECK(info.gpus.count == 0 && info.cannot.count == 1 && strstr(info.cannot.at[0], "not loaded"));
    kit_driver(&k, "gpus 1\n");
    CHECK(find(&s, mem).gpus.count == 1);
}
