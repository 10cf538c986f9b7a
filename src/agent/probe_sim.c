/* probe_sim.c - GPUs that do not exist, for a machine without any: everything but the arithmetic can be tried. They are always
 * marked `simulated`, and their ids follow from the host's name so that they stay the same over restarts. */
#include "agent/probe.h"
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
                          .healthy = true });
    }
    return true;
}
const struct probe probe_sim = { "simulated GPUs", sim_find };
