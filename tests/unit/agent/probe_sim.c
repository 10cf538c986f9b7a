#include "agent/probe.h"
#include "os/sim.h"
#include "tap.h"
#include <string.h>

static void put(struct os *os, const char *path, const char *text)
{
    struct err err = { 0 };
    char folder[128];
    snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = 0;
    CHECK(dir_make(os, folder, 0755, &err) && file_replace(os, path, SLICE(text), 0644, &err));
}

static struct node_info look(struct os *os, int64_t gpus, const char *model, struct arena *mem)
{
    struct node_info info = { 0 };
    probe_machine(os, &(struct probe_config){ gpus, model }, "/data", mem, &info);
    return info;
}

TEST(made_up_gpus_always_say_so)
{
    AUTO(sim_free) struct sim *sim = sim_new(1);
    AUTO(arena_free) struct arena *mem = arena_new();
    struct os *os = sim_machine(sim, "n1");
    struct node_info info = look(os, 3, NULL, mem);
    const struct gpu_info *g = info.gpus.at;
    CHECK(info.gpus.count == 3);
    for (size_t i = 0; i < info.gpus.count; i++)
        CHECK(g[i].simulated && g[i].healthy && g[i].index == (int64_t)i && text_is(g[i].model, "NVIDIA H200") && g[i].mem_mib == 143771 && text_starts(g[i].uuid, "GPU-"));
    CHECK(look(os, 0, NULL, mem).gpus.count == 0);
    CHECK(((struct gpu_info *)look(os, 1, "NVIDIA L4", mem).gpus.at)->mem_mib == 23034);
    CHECK(((struct gpu_info *)look(os, 1, "Toaster", mem).gpus.at)->mem_mib == 24576);
}

TEST(some_of_them_may_be_special)
{
    AUTO(sim_free) struct sim *sim = sim_new(1);
    AUTO(arena_free) struct arena *mem = arena_new();
    struct node_info info = { 0 };
    struct probe_config config = { .sim_kinds = "1,2:ecc=off,1:mig,1:mig=1g.18gb@0/3g.71gb@4" };
    struct err err = { 0 };
    CHECK(sim_gpus_parse(config.sim_kinds, &config.sim_gpus, &err) && config.sim_gpus == 5);
    probe_machine(sim_machine(sim, "n1"), &config, "/data", mem, &info);
    const struct gpu_info *g = info.gpus.at;
    CHECK(info.gpus.count == 5 && !g[0].ecc_off && !g[0].mig && g[1].ecc_off && g[2].ecc_off && !g[3].ecc_off);
    CHECK(text_is(g[3].mig, "on") && text_is(g[4].mig, "1g.18gb@0,3g.71gb@4"));
    static const char *const bad[] = { "", "x", "65", "40,25", "1:", "1:ecc", "1:mig=", "1,,1", ":mig", "99999999999999999999" };
    for (size_t i = 0; i < COUNT(bad); i++)
        CHECK(!sim_gpus_parse(bad[i], &config.sim_gpus, &err) && text_is(err.field, "--sim-gpus"));
}

TEST(more_than_a_node_may_have_are_refused_in_words)
{
    AUTO(sim_free) struct sim *sim = sim_new(1);
    AUTO(arena_free) struct arena *mem = arena_new();
    struct node_info info = look(sim_machine(sim, "n1"), PROBE_MAX_GPUS + 1, NULL, mem);
    CHECK(info.gpus.count == 0 && info.cannot.count == 1 && strstr(info.cannot.at[0], "not between"));
}

TEST(their_names_differ_between_hosts_and_stay_over_restarts)
{
    AUTO(sim_free) struct sim *sim = sim_new(1);
    AUTO(arena_free) struct arena *mem = arena_new();
    struct os *a = sim_machine(sim, "a"), *b = sim_machine(sim, "b");
    put(a, "/proc/sys/kernel/hostname", "a\n");
    put(b, "/proc/sys/kernel/hostname", "b\n");
    const struct gpu_info *x = look(a, 2, NULL, mem).gpus.at, *again = look(a, 2, NULL, mem).gpus.at, *y = look(b, 2, NULL, mem).gpus.at;
    CHECK(text_is(x[0].uuid, again[0].uuid) && text_is(x[1].uuid, again[1].uuid));
    CHECK(!text_is(x[0].uuid, x[1].uuid) && !text_is(x[0].uuid, y[0].uuid) && !text_is(x[1].uuid, y[1].uuid));
}

TEST(a_machine_is_what_its_proc_says_within_its_limits)
{
    AUTO(sim_free) struct sim *sim = sim_new(1);
    AUTO(arena_free) struct arena *mem = arena_new();
    struct os *os = sim_machine(sim, "n1");
    put(os, "/proc/sys/kernel/hostname", "box\n");
    put(os, "/proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
    put(os, "/etc/os-release", "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n");
    put(os, "/proc/meminfo", "MemTotal: 16777216 kB\n");
    put(os, "/proc/self/status", "Cpus_allowed_list:\t0-7\n");
    put(os, "/sys/devices/system/cpu/online", "0-15\n");
    struct node_info info = look(os, 0, NULL, mem);
    CHECK(text_is(info.hostname, "box") && text_is(info.kernel, "6.1.0-18-amd64") && text_is(info.os_name, "Debian GNU/Linux 12 (bookworm)"));
    CHECK(info.cpu_milli == 8000 && info.mem_mib == 16384 && info.disk_mib > 0 && text_given(info.arch));
    put(os, "/sys/fs/cgroup/cpu.max", "250000 100000\n");
    put(os, "/sys/fs/cgroup/memory.max", "4294967296\n");
    info = look(os, 0, NULL, mem);
    CHECK(info.cpu_milli == 2500 && info.mem_mib == 4096);
}
