#include "devices_kit.h"

TEST(intels_gpus_count_if_they_have_memory_of_their_own)
{
    AUTO(kit_done) struct kit k;
    AUTO(arena_free) struct arena *mem = arena_new();
    struct err err = { 0 };
    void *state = NULL;
    struct node_info info = { 0 };
    struct objects live = { 0 };
    (void)kit_open(&k);
    struct helper_config config = { .sys = k.sys };
    kit_link(&k, "class/drm/card0/device", "devices/pci0000:00/0000:00:02.0");
    kit_sys(&k, "devices/pci0000:00/0000:00:02.0/vendor", "0x8086\n");
    kit_sys(&k, "devices/pci0000:00/0000:00:02.0/device", "0x4680\n");
    CHECK(!device_intel.open(&config, &state, &err) && err.rc == RC_NOT_FOUND);         /* part of a processor */
    kit_link(&k, "class/drm/card1/device", "devices/pci0000:30/0000:30:01.0/0000:33:00.0");
    kit_sys(&k, "devices/pci0000:30/0000:30:01.0/0000:33:00.0/vendor", "0x8086\n");
    kit_sys(&k, "devices/pci0000:30/0000:30:01.0/0000:33:00.0/device", "0x0bd5\n");
    kit_sys(&k, "devices/pci0000:30/0000:30:01.0/0000:33:00.0/drm/renderD129/dev", "226:129\n");
    kit_sys(&k, "devices/pci0000:30/0000:30:01.0/0000:33:00.0/resource",
            "0x0000212000000000 0x00002120ffffffff 0x000000000014220c\n0x0 0x0 0x0\n0x0000202000000000 0x0000203fffffffff 0x000000000014220c\n");
    kit_sys(&k, "devices/pci0000:30/0000:30:01.0/0000:33:00.0/hwmon/hwmon4/energy1_input", "123456000\n");
    kit_sys(&k, "bus/pci/drivers/xe/uevent", "");
    kit_link(&k, "devices/pci0000:30/0000:30:01.0/0000:33:00.0/driver", "bus/pci/drivers/xe");
    CHECK(device_intel.open(&config, &state, &err) && device_intel.find(state, mem, &info, &err));
    const struct gpu_info *g = info.gpus.at;
    CHECK(info.gpus.count == 1 && text_is(g->model, "Intel Data Center GPU Max") && g->mem_mib == 131072 && text_is(g->driver, "xe") && text_is(g->device, "/dev/dri/renderD129"));
    CHECK(text_is(g->uuid, "GPU-8086-0000:33:00.0") && g->healthy && text_is(g->vendor, "intel"));
    device_intel.live(state, mem, 0, &live);
    const struct gpu_live *l = live.at;
    CHECK(live.count == 1 && text_is(l->uuid, g->uuid) && l->energy_mj == 123456 && l->util == -1 && l->mem_used_mib == -1);
    device_intel.close(state);
}
