/* probe.h - what the machine is: processors, memory, disk, system, and its GPUs behind one small interface.
 *
 * A probe finds the devices of one kind; `sim` makes them up for a machine without any and always says so. Whatever asks a driver is
 * in another process (helper.h). The texts of /proc and sysfs are parsed here by pure functions; reading them goes through os/, so a simulated machine has its own. */
#pragma once
#include "model/node.h"
#include "os/os.h"

/* sim_model NULL: "NVIDIA H200". sim_kinds: how they are, as sim_gpus_parse takes it; NULL: as they should be. */
struct probe_config { int64_t sim_gpus; const char *sim_model, *sim_kinds; };
struct probe {
    const char *name;
    /* Adds what it finds. False: this kind is here and cannot be used; *err says why, and the node goes on without it. */
    bool (*find)(struct os *os, const struct probe_config *config, struct arena *mem, struct objects *gpus, struct err *err);
};
extern const struct probe probe_sim;
void probe_add_gpu(struct objects *gpus, struct arena *mem, const struct gpu_info *gpu);

/* "4", "2,1:ecc=off,1:mig,1:mig=1g.18gb@0/3g.71gb@4": how many, and of some what is special about them. */
MUST_CHECK bool sim_gpus_parse(const char *text, int64_t *count, struct err *err);
enum { PROBE_MAX_GPUS = 64 };
#define PROBE_NO_NAME "localhost"           /* hostname of a machine that does not tell its own */
/* Fills everything of *info but what the runtime, the operator and the version say. `data` is the folder whose disk counts. What
 * cannot be used is added to info->cannot. */
void probe_machine(struct os *os, const struct probe_config *config, const char *data, struct arena *mem, struct node_info *info);

/* Pure, for tests: what they do not find is 0 or NULL. */
int64_t probe_meminfo_mib(struct slice text);                   /* MemTotal of /proc/meminfo */
int64_t probe_cpu_list(const char *list);                       /* "0-3,8": how many */
int64_t probe_allowed_cpus(struct slice status);                /* Cpus_allowed_list of /proc/self/status */
const char *probe_os_release(struct slice text, struct arena *mem);  /* PRETTY_NAME of /etc/os-release */
int64_t probe_cpu_max_milli(const char *text);                  /* cgroup v2 cpu.max: "150000 100000" -> 1500; "max ..." -> 0 */
int64_t probe_limit_mib(const char *text);                      /* memory.max or limit_in_bytes; "max" or absurd -> 0 */
