/* probe_intel.c - Intel's GPUs with memory of their own, as far as the kernel's drivers (xe, i915) show them in sysfs: no utilisation and no
 * memory in use. What is part of a processor shares that one's memory and is not offered. */
#include "agent/helper.h"
#include "agent/sysfs.h"
#include <stdio.h>
#include <stdlib.h>

struct intel {
    const char *sys;
};

static const struct {
    int64_t from, to;
    const char *name;
    int64_t mem_mib;
} models[] = {
    { 0x0bd4, 0x0bd9, "Intel Data Center GPU Max", 0 },
    { 0x0bda, 0x0bda, "Intel Data Center GPU Max 1100", 49152 },
    { 0x0bdb, 0x0bdb, "Intel Data Center GPU Max 1450", 0 },
    { 0x0be5, 0x0be5, "Intel Data Center GPU Max", 0 },
    { 0x56a0, 0x56a0, "Intel Arc A770", 16384 },
    { 0x56a1, 0x56a1, "Intel Arc A750", 8192 },
    { 0x56c0, 0x56c0, "Intel Data Center GPU Flex 170", 16384 },
    { 0x56c1, 0x56c1, "Intel Data Center GPU Flex 140", 6144 },
    { 0xe20b, 0xe20b, "Intel Arc B580", 12288 },
    { 0xe20c, 0xe20c, "Intel Arc B570", 10240 },
    { 0xe211, 0xe211, "Intel Arc Pro B60", 24576 },
    { 0xe212, 0xe212, "Intel Arc Pro B50", 16384 },
};

static int kind_of(const char *sys, const char *card)
{
    if (strchr(card, '-') || sysfs_int("%s/class/drm/%s/device/vendor", sys, card) != 0x8086)
        return -1;
    int64_t id = sysfs_int("%s/class/drm/%s/device/device", sys, card);
    for (size_t i = 0; i < COUNT(models); i++)
        if (id >= models[i].from && id <= models[i].to)
            return (int)i;
    return -1;
}

static bool intel_open(const struct helper_config *config, void **state, struct err *err)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct texts cards = sysfs_list(mem, "card", "%s/class/drm", config->sys);
    bool any = false;
    for (size_t i = 0; i < cards.count; i++)
        any |= kind_of(config->sys, cards.at[i]) >= 0;
    if (!any)
        return err_set(err, RC_NOT_FOUND, "no Intel GPU with memory of its own");
    struct intel *n = calloc(1, sizeof *n);
    if (!n)
        abort();
    n->sys = config->sys;
    return *state = n, true;
}

static void intel_close(void *state)
{
    free(state);
}

/* The third region of its address space is its memory, all of it where the machine lets it: "0xFROM 0xTO 0xFLAGS". */
static int64_t memory_of(const struct intel *n, const char *card, int kind)
{
    char path[SYSFS_PATH];
    unsigned long long from, to, flags;
    int64_t told = sysfs_int("%s/class/drm/%s/lmem_total_bytes", n->sys, card), bar = 0;
    if (told > 0)
        return told >> 20;
    snprintf(path, sizeof path, "%s/class/drm/%s/device/resource", n->sys, card);
    FILE *f = fopen(path, "re");
    for (int i = 0; f && i < 3 && fscanf(f, "%llx %llx %llx", &from, &to, &flags) == 3; i++)
        bar = i == 2 && to > from ? (int64_t)((to - from + 1) >> 20) : bar;
    if (f)
        fclose(f);
    return models[kind].mem_mib ? models[kind].mem_mib : bar;
}

static const char *uuid_of(struct arena *mem, const char *pci)
{
    return arena_printf(mem, "GPU-8086-%.20s",
                        pci ? pci : "unknown"); /* it tells none of its own */
}

static bool intel_find(void *state, struct arena *mem, struct node_info *out, struct err *err)
{
    const struct intel *n = state;
    struct texts cards = sysfs_list(mem, "card", "%s/class/drm", n->sys);
    (void)err;
    for (size_t i = 0; i < cards.count; i++) {
        const char *card = cards.at[i];
        int kind = kind_of(n->sys, card);
        if (kind < 0)
            continue;
        const char *pci = sysfs_base(sysfs_real(mem, "%s/class/drm/%s/device", n->sys, card));
        const char *driver
            = sysfs_base(sysfs_real(mem, "%s/class/drm/%s/device/driver", n->sys, card));
        struct texts render
            = sysfs_list(mem, "renderD", "%s/class/drm/%s/device/drm", n->sys, card);
        helper_add_gpu(
            out, mem,
            &(struct gpu_info){
                .uuid = uuid_of(mem, pci),
                .vendor = "intel",
                .model = models[kind].name,
                .mem_mib = memory_of(n, card, kind),
                .device = render.count ? arena_printf(mem, "/dev/dri/%.40s", render.at[0]) : NULL,
                .pci = pci,
                .numa = -1,
                .driver = driver ? arena_printf(mem, "%.60s", driver) : NULL });
    }
    return true;
}

static void intel_live(void *state, struct arena *mem, int64_t now_ms, struct objects *out)
{
    const struct intel *n = state;
    struct texts cards = sysfs_list(mem, "card", "%s/class/drm", n->sys);
    (void)now_ms;
    for (size_t i = 0; i < cards.count; i++) {
        const char *card = cards.at[i];
        if (kind_of(n->sys, card) < 0)
            continue;
        struct texts hwmon = sysfs_list(mem, "hwmon", "%s/class/drm/%s/device/hwmon", n->sys, card);
        const char *h = arena_printf(mem, "%s/class/drm/%s/device/hwmon/%s", n->sys, card,
                                     hwmon.count ? hwmon.at[0] : "none");
        int64_t uj = sysfs_int("%s/energy1_input", h), temp = sysfs_int("%s/temp2_input", h);
        struct gpu_live l = gpu_live_unknown(
            uuid_of(mem, sysfs_base(sysfs_real(mem, "%s/class/drm/%s/device", n->sys, card))));
        int64_t gt = sysfs_int("%s/class/drm/%s/gt_act_freq_mhz", n->sys, card);
        l.sm_mhz = gt >= 0
                       ? gt
                       : sysfs_int("%s/class/drm/%s/device/tile0/gt0/freq0/act_freq", n->sys, card);
        l.energy_mj = uj < 0 ? -1 : uj / 1000;
        l.temp_c = temp < 0 ? -1 : temp / 1000;
        helper_add_live(out, mem, &l);
    }
}

const struct device_probe device_intel
    = { "intel", intel_open, intel_find, intel_live, NULL, intel_close };
