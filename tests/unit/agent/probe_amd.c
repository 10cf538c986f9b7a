#include "devices_kit.h"

#define CARD "devices/pci0000:40/0000:40:01.0/0000:41:00.0"

static void card(struct kit *k)
{
    kit_link(k, "class/drm/card0/device", CARD);
    kit_sys(k, "class/drm/card0-DP-1/status", "connected\n");
    kit_sys(k, CARD "/vendor", "0x1002\n");
    kit_sys(k, CARD "/device", "0x74a1\n");
    kit_sys(k, CARD "/mem_info_vram_total", "206141652992\n");
    kit_sys(k, CARD "/mem_info_vram_used", "1073741824\n");
    kit_sys(k, CARD "/gpu_busy_percent", "83\n");
    kit_sys(k, CARD "/mem_busy_percent", "21\n");
    kit_sys(k, CARD "/drm/renderD128/dev", "226:128\n");
    kit_sys(k, CARD "/ras/umc_err_count", "ue: 0\nce: 4\n");
    kit_sys(k, CARD "/hwmon/hwmon3/power1_average", "412000000\n");
    kit_sys(k, CARD "/hwmon/hwmon3/power1_cap", "750000000\n");
    kit_sys(k, CARD "/hwmon/hwmon3/temp1_input", "55000\n");
    kit_sys(k, CARD "/hwmon/hwmon3/freq1_input", "2100000000\n");
}

TEST(amds_gpus_are_read_from_sysfs)
{
    AUTO(kit_done) struct kit k;
    AUTO(arena_free) struct arena *mem = arena_new();
    struct err err = { 0 };
    void *state = NULL;
    struct node_info info = { 0 };
    struct objects live = { 0 };
    (void)kit_open(&k);
    struct helper_config config = { .sys = k.sys };
    CHECK(!device_amd.open(&config, &state, &err) && err.rc == RC_NOT_FOUND);
    card(&k);
    CHECK(device_amd.open(&config, &state, &err) && device_amd.find(state, mem, &info, &err) && info.gpus.count == 0);     /* it only draws pictures */
    kit_sys(&k, "class/kfd/kfd/topology/nodes/0/properties", "cpu_cores_count 96\nunique_id 0\ndrm_render_minor 0\n");
    kit_sys(&k, "class/kfd/kfd/topology/nodes/1/properties", "simd_count 1216\nunique_id 11651590505119483672\ndrm_render_minor 128\n");
    CHECK(device_amd.find(state, mem, &info, &err));
    const struct gpu_info *g = info.gpus.at;
    CHECK(info.gpus.count == 1 && text_is(g->uuid, "GPU-a1b2c3d4e5f60718") && text_is(g->model, "AMD Instinct MI300X") && g->mem_mib == 196592);
    CHECK(text_is(g->vendor, "amd") && text_is(g->device, "/dev/dri/renderD128") && text_is(g->pci, "0000:41:00.0") && g->power_cap_mw == 750000 && g->healthy && !g->ecc_off);
    device_amd.live(state, mem, 0, &live);
    const struct gpu_live *l = live.at;
    CHECK(live.count == 1 && text_is(l->uuid, g->uuid) && l->util == 83 && l->mem_util == 21 && l->mem_used_mib == 1024 && l->mem_free_mib == 196592 - 1024);
    CHECK(l->power_mw == 412000 && l->temp_c == 55 && l->sm_mhz == 2100 && l->mem_mhz == -1 && l->ecc_corrected == 4 && l->energy_mj == -1);
    kit_sys(&k, CARD "/ras/umc_err_count", "ue: 2\nce: 4\n");
    kit_sys(&k, CARD "/product_name", "AMD Instinct MI300X OAM\n");
    info = (struct node_info){ 0 };
    CHECK(device_amd.find(state, mem, &info, &err));
    g = info.gpus.at;
    CHECK(!g->healthy && strstr(g->health, "2 uncorrectable") && text_is(g->model, "AMD Instinct MI300X OAM"));
    device_amd.close(state);
}

TEST(amds_cards_without_a_number_of_their_own_are_told_apart)
{
    AUTO(kit_done) struct kit k;
    AUTO(arena_free) struct arena *mem = arena_new();
    struct err err = { 0 };
    void *state = NULL;
    struct node_info info = { 0 };
    (void)kit_open(&k);
    struct helper_config config = { .sys = k.sys };
    card(&k);
    kit_link(&k, "class/drm/card1/device", "devices/pci0000:40/0000:42:00.0");
    kit_sys(&k, "devices/pci0000:40/0000:42:00.0/vendor", "0x1002\n");
    kit_sys(&k, "devices/pci0000:40/0000:42:00.0/drm/renderD129/dev", "226:129\n");
    kit_sys(&k, "class/kfd/kfd/topology/nodes/1/properties", "simd_count 1216\nunique_id 0\ndrm_render_minor 128\n");
    kit_sys(&k, "class/kfd/kfd/topology/nodes/2/properties", "simd_count 1216\ndrm_render_minor 129\n");
    CHECK(device_amd.open(&config, &state, &err) && device_amd.find(state, mem, &info, &err));
    const struct gpu_info *g = info.gpus.at;
    CHECK(info.gpus.count == 2 && text_is(g[0].uuid, "GPU-1002-0000:41:00.0") && text_is(g[1].uuid, "GPU-1002-0000:42:00.0") && !info.cannot.count);
    device_amd.close(state);
}
