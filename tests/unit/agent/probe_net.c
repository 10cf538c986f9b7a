#include "agent/probe_host.h"
#include "agent/sysfs.h"
#include "devices_kit.h"

TEST(how_near_devices_are_is_in_their_paths)
{
    static const char *a = "/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:18:00.0";
    CHECK(text_is(probe_path_word(a, 0, "/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0/0000:19:00.0", 0), "switch"));
    CHECK(text_is(probe_path_word(a, 0, "/sys/devices/pci0000:15/0000:15:02.0/0000:20:00.0", 0), "bridge"));
    CHECK(text_is(probe_path_word(a, 0, "/sys/devices/pci0000:16/0000:15:01.0", 0), "numa"));
    CHECK(text_is(probe_path_word(a, 0, "/sys/devices/pci0000:15a/x", 1), "system"));
    CHECK(text_is(probe_path_word(a, -1, "/sys/devices/pci0000:40/x", -1), "system"));
    CHECK(text_is(probe_path_word(NULL, 0, NULL, 0), "numa") && text_is(probe_path_word(NULL, -1, a, 0), "system"));
}

static void device(struct kit *k, const char *path, const char *numa)
{
    char file[256], link[128];
    snprintf(file, sizeof file, "devices/%s/numa_node", path);
    kit_sys(k, file, numa);
    snprintf(file, sizeof file, "devices/%s", path);
    snprintf(link, sizeof link, "bus/pci/devices/%s", strrchr(path, '/') + 1);
    kit_link(k, link, file);
}

TEST(interfaces_and_ports_know_the_gpus_near_them)
{
    AUTO(kit_done) struct kit k;
    AUTO(arena_free) struct arena *mem = arena_new();
    (void)kit_open(&k);
    device(&k, "pci0000:15/0000:15:01.0/0000:18:00.0", "0\n");
    device(&k, "pci0000:40/0000:40:01.0/0000:41:00.0", "1\n");
    device(&k, "pci0000:15/0000:15:01.0/0000:1a:00.0", "0\n");
    device(&k, "pci0000:60/0000:60:01.0/0000:61:00.0", "1\n");
    kit_link(&k, "class/infiniband/mlx5_0/device", "devices/pci0000:15/0000:15:01.0/0000:1a:00.0");
    kit_sys(&k, "class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n");
    kit_sys(&k, "class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
    kit_sys(&k, "class/infiniband/mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)\n");
    kit_link(&k, "class/net/eth0/device", "devices/pci0000:60/0000:60:01.0/0000:61:00.0");
    kit_sys(&k, "class/net/eth0/operstate", "up\n");
    kit_sys(&k, "class/net/eth0/speed", "25000\n");
    kit_sys(&k, "class/net/veth7/operstate", "up\n");
    kit_sys(&k, "class/net/lo/operstate", "unknown\n");
    struct gpu_info gpus[] = { { .index = 0, .uuid = "a", .pci = "0000:18:00.0" }, { .index = 1, .uuid = "b", .pci = "0000:41:00.0" } };
    struct node_info info = { .gpus = { gpus, 2 } };
    probe_nics(k.sys, mem, &info);
    probe_paths(k.sys, mem, &info);
    const struct nic_info *n = info.nics.at;
    CHECK(info.nics.count == 2);
    CHECK(text_is(n[0].name, "mlx5_0:1") && text_is(n[0].kind, "infiniband") && text_is(n[0].state, "up") && n[0].mbps == 400000 && text_is(n[0].pci, "0000:1a:00.0") && n[0].numa == 0);
    CHECK(n[0].near.count == 2 && text_is(n[0].near.at[0].value, "switch") && text_is(n[0].near.at[1].value, "system"));
    CHECK(text_is(n[1].name, "eth0") && text_is(n[1].kind, "ethernet") && n[1].mbps == 25000 && n[1].numa == 1 && text_is(n[1].near.at[0].value, "system") && text_is(n[1].near.at[1].value, "numa"));
    CHECK(gpus[0].numa == 0 && gpus[1].numa == 1 && gpus[0].peers.count == 1 && text_is(((struct gpu_peer *)gpus[0].peers.at)->path, "system"));
}

TEST(links_through_a_switch_reach_every_gpu_that_has_them)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct gpu_info gpus[] = { { .index = 0, .uuid = "a", .nvlinks = 18 }, { .index = 1, .uuid = "b", .nvlinks = 16 }, { .index = 2, .uuid = "c" } };
    struct node_info info = { .gpus = { gpus, 3 } };
    probe_paths("/nowhere", mem, &info);
    const struct gpu_peer *p = gpus[0].peers.at;
    CHECK(gpus[0].peers.count == 2 && p[0].index == 1 && p[0].links == 16 && text_is(p[0].path, "nvlink") && p[1].index == 2 && p[1].links == 0 && text_is(p[1].path, "system"));
}

TEST(texts_of_sysfs_are_bounded_and_absent_ones_are_told)
{
    AUTO(kit_done) struct kit k;
    AUTO(arena_free) struct arena *mem = arena_new();
    (void)kit_open(&k);
    kit_sys(&k, "a/one", "  0x1002 \nmore\n");
    kit_sys(&k, "a/two", "-5\n");
    kit_sys(&k, "a/three", "12 apples\n");
    kit_sys(&k, "a/empty", "");
    CHECK(text_is(sysfs_text(mem, "%s/a/one", k.sys), "  0x1002") && sysfs_int("%s/a/one", k.sys) == 0x1002);
    CHECK(sysfs_int("%s/a/two", k.sys) == -1 && sysfs_int("%s/a/three", k.sys) == -1 && sysfs_int("%s/a/none", k.sys) == -1 && sysfs_int("%s/a", k.sys) == -1);
    CHECK(sysfs_text(mem, "%s/a/none", k.sys) == NULL && text_is(sysfs_text(mem, "%s/a/empty", k.sys), "") && sysfs_int("%s/a/empty", k.sys) == -1);
    struct texts t = sysfs_list(mem, "t", "%s/a", k.sys);
    CHECK(t.count == 2 && text_is(t.at[0], "three") && text_is(t.at[1], "two") && sysfs_list(mem, "", "%s/none", k.sys).count == 0);
    CHECK(sysfs_real(mem, "%s/none", k.sys) == NULL && text_is(sysfs_base("/a/b"), "b") && sysfs_base(NULL) == NULL);
}
