/* probe_amd.c - AMD's GPUs as the kernel's driver shows them in sysfs (DRM, hwmon, RAS); no library of AMD's is needed. A card counts if the
 * compute side of the driver (KFD) knows it: what only draws pictures is not offered. Its UUID is what ROCR_VISIBLE_DEVICES takes,
 * or its place on the bus where the driver tells none (consumer cards, virtual functions). */
#include "agent/helper.h"
#include "agent/sysfs.h"
#include <stdio.h>
#include <stdlib.h>

struct amd {
    const char *sys;
};

static bool is_amd(const char *sys, const char *card)
{
    return !strchr(card, '-') && sysfs_int("%s/class/drm/%s/device/vendor", sys, card) == 0x1002;
}

static bool amd_open(const struct helper_config *config, void **state, struct err *err)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct texts cards = sysfs_list(mem, "card", "%s/class/drm", config->sys);
    bool any = false;
    for (size_t i = 0; i < cards.count; i++)
        any |= is_amd(config->sys, cards.at[i]);
    if (!any)
        return err_set(err, RC_NOT_FOUND, "no AMD GPU");
    struct amd *a = calloc(1, sizeof *a);
    if (!a)
        abort();
    a->sys = config->sys;
    return *state = a, true;
}

static void amd_close(void *state)
{
    free(state);
}

/* Where a newer driver does not name it. */
static const char *model_of(int64_t id)
{
    static const struct {
        int64_t id;
        const char *name;
    } all[] = {
        { 0x738c, "AMD Instinct MI100" },  { 0x740f, "AMD Instinct MI210" },
        { 0x740c, "AMD Instinct MI250" },  { 0x7408, "AMD Instinct MI250X" },
        { 0x74a0, "AMD Instinct MI300A" }, { 0x74a1, "AMD Instinct MI300X" },
        { 0x74a2, "AMD Instinct MI308X" }, { 0x74a5, "AMD Instinct MI325X" },
        { 0x75a0, "AMD Instinct MI350X" }, { 0x75a3, "AMD Instinct MI355X" },
    };
    for (size_t i = 0; i < COUNT(all); i++)
        if (all[i].id == id)
            return all[i].name;
    return "AMD GPU";
}

/* "unique_id 1234..." of the node of the compute driver that has this render device; NULL: it has none, "": it tells none. */
static const char *kfd_unique_id(const struct amd *a, struct arena *mem, int64_t render)
{
    struct texts nodes = sysfs_list(mem, "", "%s/class/kfd/kfd/topology/nodes", a->sys);
    for (size_t i = 0; i < nodes.count; i++) {
        char path[SYSFS_PATH], key[64];
        unsigned long long value, unique = 0, minor = 0;
        snprintf(path, sizeof path, "%s/class/kfd/kfd/topology/nodes/%s/properties", a->sys,
                 nodes.at[i]);
        FILE *f = fopen(path, "re");
        while (f && fscanf(f, "%63s %llu", key, &value) == 2) {
            unique = text_is(key, "unique_id") ? value : unique;
            minor = text_is(key, "drm_render_minor") ? value : minor;
        }
        if (f)
            fclose(f);
        if (minor && (int64_t)minor == render)
            return unique ? arena_printf(mem, "%016llx", unique) : "";
    }
    return NULL;
}

/* "ue: 0" and "ce: 3" of the memory's controller. */
static int64_t ras_count(const struct amd *a, const char *card, const char *key)
{
    char path[SYSFS_PATH], name[16];
    long long n, found = -1;
    snprintf(path, sizeof path, "%s/class/drm/%s/device/ras/umc_err_count", a->sys, card);
    FILE *f = fopen(path, "re");
    while (f && fscanf(f, "%15[^:]: %lld ", name, &n) == 2)
        found = text_is(name, key) ? n : found;
    if (f)
        fclose(f);
    return found;
}

static const char *render_of(const struct amd *a, struct arena *mem, const char *card)
{
    struct texts all = sysfs_list(mem, "renderD", "%s/class/drm/%s/device/drm", a->sys, card);
    return all.count ? all.at[0] : NULL;
}

static const char *uuid_of(const struct amd *a, struct arena *mem, const char *card)
{
    const char *render = render_of(a, mem, card);
    const char *unique
        = render ? kfd_unique_id(a, mem, strtol(render + strlen("renderD"), NULL, 10)) : NULL;
    if (!unique || *unique)
        return unique ? arena_printf(mem, "GPU-%s", unique) : NULL;
    const char *pci = sysfs_base(sysfs_real(mem, "%s/class/drm/%s/device", a->sys, card));
    return arena_printf(mem, "GPU-1002-%.20s", pci ? pci : card);
}

static bool amd_find(void *state, struct arena *mem, struct node_info *out, struct err *err)
{
    const struct amd *a = state;
    struct texts cards = sysfs_list(mem, "card", "%s/class/drm", a->sys);
    (void)err;
    for (size_t i = 0; i < cards.count; i++) {
        const char *card = cards.at[i], *uuid = is_amd(a->sys, card) ? uuid_of(a, mem, card) : NULL;
        if (!uuid)
            continue;
        const char *name = sysfs_text(mem, "%s/class/drm/%s/device/product_name", a->sys, card);
        struct texts hwmon = sysfs_list(mem, "hwmon", "%s/class/drm/%s/device/hwmon", a->sys, card);
        int64_t cap = hwmon.count ? sysfs_int("%s/class/drm/%s/device/hwmon/%s/power1_cap", a->sys,
                                              card, hwmon.at[0])
                                  : -1;
        int64_t broken = ras_count(a, card, "ue");
        struct gpu_info g = {
            .uuid = uuid,
            .vendor = "amd",
            .model = text_given(name)
                         ? arena_printf(mem, "%.90s", name)
                         : model_of(sysfs_int("%s/class/drm/%s/device/device", a->sys, card)),
            .mem_mib
            = MAX(sysfs_int("%s/class/drm/%s/device/mem_info_vram_total", a->sys, card), 0) >> 20,
            .device = arena_printf(mem, "/dev/dri/%.40s", render_of(a, mem, card)),
            .pci = sysfs_base(sysfs_real(mem, "%s/class/drm/%s/device", a->sys, card)),
            .numa = -1,
            .driver = "amdgpu",
            .fault = broken > 0 ? "memory" : NULL,
            .ecc_errors = MAX(broken, 0),
            .ecc_off = broken<0, .power_cap_mw = MAX(cap, 0) / 1000, .health = broken> 0
                           ? arena_printf(
                               mem, "%lld uncorrectable memory errors since its driver was loaded",
                               (long long)broken)
                           : NULL
        };
        helper_add_gpu(out, mem, &g);
    }
    return true;
}

static int64_t per_mille(int64_t n)
{
    return n < 0 ? -1 : n / 1000;
}

static void amd_live(void *state, struct arena *mem, int64_t now_ms, struct objects *out)
{
    const struct amd *a = state;
    struct texts cards = sysfs_list(mem, "card", "%s/class/drm", a->sys);
    (void)now_ms;
    for (size_t i = 0; i < cards.count; i++) {
        const char *card = cards.at[i], *uuid = is_amd(a->sys, card) ? uuid_of(a, mem, card) : NULL;
        if (!uuid)
            continue;
        struct texts hwmon = sysfs_list(mem, "hwmon", "%s/class/drm/%s/device/hwmon", a->sys, card);
        const char *h = arena_printf(mem, "%s/class/drm/%s/device/hwmon/%s", a->sys, card,
                                     hwmon.count ? hwmon.at[0] : "none");
        int64_t total = sysfs_int("%s/class/drm/%s/device/mem_info_vram_total", a->sys, card),
                used = sysfs_int("%s/class/drm/%s/device/mem_info_vram_used", a->sys, card);
        int64_t average = sysfs_int("%s/power1_average", h), sm = sysfs_int("%s/freq1_input", h),
                memory = sysfs_int("%s/freq2_input", h);
        struct gpu_live l = gpu_live_unknown(uuid);
        l.util = MIN(sysfs_int("%s/class/drm/%s/device/gpu_busy_percent", a->sys, card), 100);
        l.mem_util = MIN(sysfs_int("%s/class/drm/%s/device/mem_busy_percent", a->sys, card), 100);
        if (total >= 0 && used >= 0)
            l.mem_used_mib = used >> 20, l.mem_free_mib = (total - used) >> 20;
        l.power_mw = per_mille(average >= 0 ? average : sysfs_int("%s/power1_input", h));
        l.temp_c = per_mille(sysfs_int("%s/temp1_input", h));
        l.mem_temp_c = per_mille(sysfs_int("%s/temp3_input", h));
        l.sm_mhz = sm < 0 ? -1 : sm / 1000000;
        l.mem_mhz = memory < 0 ? -1 : memory / 1000000;
        l.ecc_corrected = ras_count(a, card, "ce");
        l.ecc_uncorrected = ras_count(a, card, "ue");
        helper_add_live(out, mem, &l);
    }
}

const struct device_probe device_amd = { "amd", amd_open, amd_find, amd_live, NULL, amd_close };
