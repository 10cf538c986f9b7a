#include "agent/probe_host.h"
#include "agent/probe.h"
#include "devices_kit.h"

TEST(this_machine_has_processors_and_memory_on_numa_nodes)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct node_info info = { 0 };
    probe_host("/sys", mem, &info);
    if (info.cannot.count) {
        test_skip("hwloc is not here");
        return;
    }
    const struct numa_info *n = info.numas.at;
    CHECK(info.cores >= 1 && info.sockets >= 1 && info.numas.count >= 1);
    for (size_t i = 0; i < info.numas.count; i++)
        CHECK(n[i].node >= 0 && n[i].mem_mib >= 0 && (!*n[i].cpus || probe_cpu_list(n[i].cpus) > 0));
}

TEST(a_machine_that_shows_nothing_is_no_reason_to_stop)
{
    AUTO(kit_done) struct kit k;
    AUTO(arena_free) struct arena *mem = arena_new();
    struct node_info info = { 0 };
    (void)kit_open(&k);
    kit_sys(&k, "class/drm/version", "drm\n");
    probe_host(k.sys, mem, &info);
    probe_nics(k.sys, mem, &info);
    probe_paths(k.sys, mem, &info);
    CHECK(info.gpus.count == 0 && info.nics.count == 0);
    unsetenv("HWLOC_FSROOT"), unsetenv("HWLOC_THISSYSTEM");
}
