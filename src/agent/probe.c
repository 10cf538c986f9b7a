/* probe.c - reads what Linux says about itself. A text that is missing or odd leaves its number at 0 rather than stopping the
 * agent: a node that tells too little is seen by its operator, one that does not start is not. */
#include "agent/probe.h"
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>

enum { TEXT_LIMIT = 1 << 20 };

static const struct probe *const probes[] = { &probe_sim };

/* --- texts */

static struct slice
line_of(struct slice text, const char *key) /* what stands behind the key, to the end of its line */
{
    size_t n = strlen(key);
    const char *at = text.at, *end = text.at + text.len;
    while (at < end) {
        const char *nl = memchr(at, '\n', (size_t)(end - at));
        const char *stop = nl ? nl : end;
        if ((size_t)(stop - at) > n && memcmp(at, key, n) == 0) {
            for (at += n; at < stop && isspace((unsigned char)*at);)
                at++;
            return (struct slice){ at, (size_t)(stop - at) };
        }
        at = stop + 1;
    }
    return (struct slice){ 0 };
}

static bool read_int(const char **at, int64_t *out)
{
    int64_t n = 0;
    const char *c = *at;
    for (; isdigit((unsigned char)*c); c++)
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *c - '0', &n))
            return false;
    bool any = c != *at;
    *at = c;
    return *out = n, any;
}

static void copy_line(char *out, size_t room, struct slice line)
{
    snprintf(out, room, "%.*s", (int)MIN(line.len, room - 1), line.at ? line.at : "");
}

int64_t probe_meminfo_mib(struct slice text)
{
    char line[64];
    int64_t kib;
    const char *at = line;
    copy_line(line, sizeof line, line_of(text, "MemTotal:"));
    return read_int(&at, &kib) && strncmp(at, " kB", 3) == 0 ? kib / 1024 : 0;
}

int64_t probe_cpu_list(const char *list)
{
    int64_t count = 0, from, to;
    for (const char *at = list; isdigit((unsigned char)*at); at += *at == ',') {
        if (!read_int(&at, &from))
            return 0;
        to = from;
        if (*at == '-' && (at++, !read_int(&at, &to)))
            return 0;
        if (to < from || to > 65535)
            return 0;
        count += to - from + 1;
    }
    return count;
}

int64_t probe_allowed_cpus(struct slice status)
{
    char list[4096];
    copy_line(list, sizeof list, line_of(status, "Cpus_allowed_list:"));
    return probe_cpu_list(list);
}

const char *probe_os_release(struct slice text, struct arena *mem)
{
    struct slice line = line_of(text, "PRETTY_NAME=");
    if (line.len >= 2 && (*line.at == '"' || *line.at == '\'') && line.at[line.len - 1] == *line.at)
        line = (struct slice){ line.at + 1, line.len - 2 };
    return line.len && line.len < 128 ? arena_bytes(mem, line.at, line.len) : NULL;
}

int64_t probe_cpu_max_milli(const char *text)
{
    int64_t quota, period;
    const char *at = text;
    if (!read_int(&at, &quota) || *at++ != ' ' || !read_int(&at, &period) || period == 0
        || quota > INT64_MAX / 1000)
        return 0;
    return quota * 1000 / period;
}

int64_t probe_limit_mib(const char *text)
{
    int64_t bytes;
    const char *at = text;
    return read_int(&at, &bytes) && bytes < INT64_C(1) << 55 ? bytes >> 20 : 0;
}

/* --- files */

static struct slice read_text(struct os *os, struct arena *mem, const char *path)
{
    struct err err = { 0 };
    struct slice out = { 0 };
    return file_read(os, path, TEXT_LIMIT, mem, &out, &err) ? out : (struct slice){ "", 0 };
}

static const char *read_word(struct os *os, struct arena *mem, const char *path)
{
    struct slice s = read_text(os, mem, path);
    while (s.len && isspace((unsigned char)s.at[s.len - 1]))
        s.len--;
    return arena_bytes(mem, s.at, MIN(s.len, 120));
}

static int64_t smallest(int64_t a, int64_t b) /* 0: not known */
{
    return !a ? b : !b ? a : MIN(a, b);
}

static const char *arch(void)
{
#if defined(__x86_64__)
    return "x86_64";
#elif defined(__aarch64__)
    return "aarch64";
#elif defined(__riscv)
    return "riscv64";
#else
    return "unknown";
#endif
}

/* What a container or VM gives this agent counts, not what the metal has. */
static void size_of_machine(struct os *os, struct arena *mem, struct node_info *info)
{
    int64_t cpus = probe_allowed_cpus(read_text(os, mem, "/proc/self/status"));
    int64_t online = probe_cpu_list(read_word(os, mem, "/sys/devices/system/cpu/online"));
    info->cpu_milli = smallest(cpus, online) * 1000;
    info->cpu_milli = smallest(info->cpu_milli,
                               probe_cpu_max_milli(read_word(os, mem, "/sys/fs/cgroup/cpu.max")));
    info->mem_mib = probe_meminfo_mib(read_text(os, mem, "/proc/meminfo"));
    info->mem_mib
        = smallest(info->mem_mib, probe_limit_mib(read_word(os, mem, "/sys/fs/cgroup/memory.max")));
    info->mem_mib = smallest(
        info->mem_mib,
        probe_limit_mib(read_word(os, mem, "/sys/fs/cgroup/memory/memory.limit_in_bytes")));
}

/* A simulated machine tells what a test wrote into its /proc, else this. */
static void size_of_simulated(struct node_info *info)
{
    info->cpu_milli = info->cpu_milli ? info->cpu_milli : 8000;
    info->mem_mib = info->mem_mib ? info->mem_mib : 32768;
}

static int64_t disk_of(struct os *os, const char *path)
{
    struct statvfs v;
    if (os_is_simulated(os))
        return 1 << 20; /* a simulated disk has no size; 1 TiB */
    return statvfs(path, &v) == 0 ? (int64_t)((uint64_t)v.f_blocks * v.f_frsize >> 20) : 0;
}

void probe_add_gpu(struct objects *gpus, struct arena *mem, const struct gpu_info *gpu)
{
    if (gpus->count >= PROBE_MAX_GPUS)
        return;
    if (!gpus->at)
        gpus->at = ARENA_ARRAY(mem, struct gpu_info, PROBE_MAX_GPUS);
    ((struct gpu_info *)gpus->at)[gpus->count++] = *gpu;
}

static void add_cannot(struct node_info *info, struct arena *mem, const char *text)
{
    const char **list = ARENA_ARRAY(mem, const char *, info->cannot.count + 1);
    for (size_t i = 0; i < info->cannot.count; i++)
        list[i] = info->cannot.at[i];
    list[info->cannot.count] = text;
    info->cannot = (struct texts){ list, info->cannot.count + 1 };
}

void probe_machine(struct os *os, const struct probe_config *config, const char *data,
                   struct arena *mem, struct node_info *info)
{
    info->hostname = read_word(os, mem, "/proc/sys/kernel/hostname");
    if (!text_given(info->hostname))
        info->hostname = PROBE_NO_NAME;
    info->kernel = read_word(os, mem, "/proc/sys/kernel/osrelease");
    info->os_name = probe_os_release(read_text(os, mem, "/etc/os-release"), mem);
    info->arch = arch();
    size_of_machine(os, mem, info);
    if (os_is_simulated(os))
        size_of_simulated(info);
    info->disk_mib = disk_of(os, data);
    for (size_t i = 0; i < COUNT(probes); i++) {
        struct err err = { 0 };
        if (!probes[i]->find(os, config, mem, &info->gpus, &err))
            add_cannot(info, mem, arena_printf(mem, "%s: %s", probes[i]->name, err.text));
    }
    for (size_t i = 0; i < info->gpus.count; i++)
        ((struct gpu_info *)info->gpus.at)[i].index = (int64_t)i;
}
