/* probe_sim.c - GPUs that do not exist, for a machine without any: everything but the arithmetic can be tried. They are always
 * marked `simulated`, and their ids follow from the host's name so that they stay the same over restarts. */
#include "agent/probe.h"
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>

static const struct {
    const char *model;
    int64_t mem_mib;
} known[] = {
    { "B200", 183359 }, { "H200", 143771 }, { "H100", 81559 }, { "A100", 81920 }, { "L40S", 46068 },
    { "L4", 23034 },    { "A10", 23028 },   { "T4", 15360 },   { "V100", 32768 },
};
enum { OTHER_MIB = 24576 };

static int64_t memory_of(const char *model)
{
    for (size_t i = 0; i < COUNT(known); i++)
        if (strcasestr(model, known[i].model))
            return known[i].mem_mib;
    return OTHER_MIB;
}

static uint64_t hash(const char *text, uint64_t h)
{
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 0x100000001b3ULL;
    h ^= h >> 31;
    return h * 0x9e3779b97f4a7c15ULL;
}

/* One part of the list: how many, and how they are. */
static bool part_parse(const char *text, size_t n, int64_t *count, struct gpu_info *is, struct arena *mem)
{
    size_t digits = 0;
    *count = 0;
    for (; digits < n && isdigit((unsigned char)text[digits]) && *count <= PROBE_MAX_GPUS; digits++)
        *count = *count * 10 + text[digits] - '0';
    char *how = arena_bytes(mem, text + digits, n - digits);
    if (!digits || *count > PROBE_MAX_GPUS)
        return false;
    is->ecc_off = text_is(how, ":ecc=off");
    is->mig = text_is(how, ":mig") ? "on" : text_starts(how, ":mig=") && how[5] ? how + 5 : NULL;
    for (char *at = how; (at = strchr(at, '/'));)
        *at = ',';
    return !*how || is->ecc_off || is->mig;
}

static const char *part_next(const char *at)
{
    at += strcspn(at, ",");
    return at + (*at != 0);
}

bool sim_gpus_parse(const char *text, int64_t *count, struct err *err)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    int64_t all = 0, some;
    struct gpu_info is;
    for (const char *at = text; at == text || *at; at = part_next(at)) {
        if (!part_parse(at, strcspn(at, ","), &some, &is, mem) || (all += some) > PROBE_MAX_GPUS)
            return err_field(err, "--sim-gpus", "expected a number from 0 to %d, or such as 2,1:ecc=off,1:mig, not '%.60s'", PROBE_MAX_GPUS, text);
    }
    return *count = all, true;
}

/* How the GPU of that number is. */
static struct gpu_info kind_at(const char *kinds, int64_t index, struct arena *mem)
{
    struct gpu_info is = { 0 };
    int64_t some;
    for (const char *at = kinds; at && *at; at = part_next(at)) {
        is = (struct gpu_info){ 0 };
        if (part_parse(at, strcspn(at, ","), &some, &is, mem) && index < some)
            break;
        index -= some;
    }
    return is;
}

static bool sim_find(struct os *os, const struct probe_config *config, struct arena *mem,
                     struct objects *gpus, struct err *err)
{
    struct slice host = { "", 0 };
    struct err none = { 0 };
    if (config->sim_gpus < 0 || config->sim_gpus > PROBE_MAX_GPUS)
        return err_set(err, RC_BAD_INPUT, "%" PRId64 " simulated GPUs are not between 0 and %d",
                       config->sim_gpus, PROBE_MAX_GPUS);
    if (!file_read(os, "/proc/sys/kernel/hostname", 4096, mem, &host, &none))
        host = SLICE("localhost");
    const char *model = text_given(config->sim_model) ? config->sim_model : "NVIDIA H200";
    uint64_t h = hash(arena_bytes(mem, host.at, host.len), 0xcbf29ce484222325ULL);
    for (int64_t i = 0; i < config->sim_gpus; i++) {
        struct gpu_info is = kind_at(config->sim_kinds, i, mem);
        uint64_t a = hash(model, h + (uint64_t)i), b = hash(model, a);
        probe_add_gpu(gpus, mem,
                      &(struct gpu_info){
                          .uuid = arena_printf(mem, "GPU-%08x-%04x-%04x-%04x-%012" PRIx64,
                                               (unsigned)(a >> 32), (unsigned)(a >> 16 & 0xffff),
                                               (unsigned)(a & 0xffff), (unsigned)(b >> 48),
                                               b & 0xffffffffffff),
                          .model = arena_text(mem, model),
                          .mem_mib = memory_of(model),
                          .simulated = true,
                          .ecc_off = is.ecc_off,
                          .mig = is.mig,
                          .numa = -1,
                          .healthy = true });
    }
    return true;
}
const struct probe probe_sim = { "simulated GPUs", sim_find };
