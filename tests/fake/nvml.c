/* nvml.c - a libnvidia-ml.so.1 without a driver, for tests: what it tells is in a file, which is read again whenever it has changed. The file is
 * $FAKE_NVML, or nvml.conf in the folder of the library. Lines:
 *
 *   gpus N                     how many there are (1)
 *   driver TEXT | cuda N       580.159.03, 13000
 *   init RC | hang 1           nvmlInit answers RC; every call hangs until the line is gone
 *   gpu I|* KEY VALUE          a later line wins. KEY: name, uuid, mem, mem_used (MiB), util, mem_util, power, power_cap (mW), energy (mJ), temp, mem_temp,
 *                              sm, mem_clock, throttle (bits), ecc (0|1), ecc_corrected, ecc_uncorrected, rows_corrected, rows_uncorrected,
 *                              rows_pending, rows_failure, replays, encoder, decoder, lost (0|1), mode (of compute), set_rc (what setting it answers), mig (0|1), minor, bus
 *   gpu I process PID MIB      one more process; several may be given, as of the following
 *   gpu I client PID MIB       the same, of a client of MPS
 *   cuda FILE                  a process that the made-up libcuda of that file has moved away (FILE.PID holds 2) holds nothing
 *   gpu I instance PROFILE START UUID      of MIG; those that are made and destroyed come and go as such lines. UUID `-`: it has no part that computes yet
 *   gpu I busy START           destroying the instance there is refused; gpu I make_rc RC: making its part that computes answers that
 *   gpu I link PEER            an NVLink straight to GPU PEER; PEER -1: to a switch
 *   xid I N                    an event for those who wait when the line is added
 *
 * What is set (compute mode, MIG mode) is a line of FILE.log, "set_compute_mode UUID MODE", and is what is told from then on. */
#include "agent/nvml.h"
#include "conf.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { GPUS = 16, INSTANCES = 8, LINES = 1024, LINE = 256 };
struct nvml_device { int gpu, mig; };               /* mig: -1 the GPU itself */
struct nvml_gpu_instance { int gpu, mig; };
struct nvml_compute_instance { int gpu, mig; };
struct nvml_event_set { int seen; };

static struct nvml_device devices[GPUS], migs[GPUS][INSTANCES];
static struct nvml_gpu_instance instances[GPUS][INSTANCES];
static struct { pthread_mutex_t lock; struct timespec read; char lines[LINES][LINE]; int count; } conf = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* --- the file */

static const char *path_of(void) { return conf_path("FAKE_NVML", "nvml.conf"); }

static void refresh(void)
{
    struct stat st;
    if (stat(path_of(), &st) == -1 || memcmp(&st.st_mtim, &conf.read, sizeof conf.read) == 0)
        return;
    FILE *f = fopen(path_of(), "re");
    conf.count = 0;
    conf.read = st.st_mtim;
    while (f && conf.count < LINES && fgets(conf.lines[conf.count], LINE, f)) {
        char *line = conf.lines[conf.count];
        line[strcspn(line, "\n")] = 0;
        conf.count += *line && *line != '#';
    }
    if (f)
        fclose(f);
}

/* What stands behind these words in the last line that begins with them; false: there is none. */
static bool value_of(const char *words, char out[static LINE])
{
    size_t n = strlen(words);
    bool found = false;
    pthread_mutex_lock(&conf.lock);
    refresh();
    for (int i = 0; i < conf.count; i++)
        if (strncmp(conf.lines[i], words, n) == 0 && conf.lines[i][n] == ' ') {
            snprintf(out, LINE, "%s", conf.lines[i] + n + 1);
            found = true;
        }
    pthread_mutex_unlock(&conf.lock);
    return found;
}

/* The n-th line that begins with these words. */
static bool nth_of(const char *words, int nth, char out[static LINE])
{
    size_t n = strlen(words);
    bool found = false;
    pthread_mutex_lock(&conf.lock);
    refresh();
    for (int i = 0; i < conf.count && !found; i++)
        if (strncmp(conf.lines[i], words, n) == 0 && conf.lines[i][n] == ' ' && nth-- == 0) {
            snprintf(out, LINE, "%s", conf.lines[i] + n + 1);
            found = true;
        }
    pthread_mutex_unlock(&conf.lock);
    return found;
}

static void maybe_hang(void)
{
    char text[LINE];
    while (value_of("hang", text) && atoi(text))
        usleep(20000);
}

static bool text_of_gpu(int gpu, const char *key, char out[static LINE])
{
    char words[64];
    snprintf(words, sizeof words, "gpu * %s", key);
    bool all = value_of(words, out);
    snprintf(words, sizeof words, "gpu %d %s", gpu, key);
    return value_of(words, out) || all;
}

static long long number_of(int gpu, const char *key, long long otherwise)
{
    char text[LINE];
    return text_of_gpu(gpu, key, text) ? strtoll(text, NULL, 0) : otherwise;
}

static int count_gpus(void)
{
    char text[LINE];
    int n = value_of("gpus", text) ? atoi(text) : 1;
    return n < 0 ? 0 : n > GPUS ? GPUS : n;
}

static void uuid_text(int gpu, char out[static LINE])
{
    if (!text_of_gpu(gpu, "uuid", out))
        snprintf(out, LINE, "GPU-fa4e0000-0000-0000-0000-%012d", gpu);
}

/* Is it there? Most calls begin with this. */
static int check(const struct nvml_device *d)
{
    maybe_hang();
    if (!d || d->gpu < 0 || d->gpu >= count_gpus())
        return NVML_BAD_ARGUMENT;
    return number_of(d->gpu, "lost", 0) ? NVML_LOST : NVML_OK;
}

#define CHECK_DEVICE(d)            \
    do {                           \
        int checked_ = check(d);   \
        if (checked_ != NVML_OK)   \
            return checked_;       \
    } while (0)

static int give_text(char *out, unsigned n, const char *text)
{
    return (unsigned)snprintf(out, n, "%s", text) < n ? NVML_OK : NVML_TOO_SMALL;
}

static int give(const struct nvml_device *d, const char *key, long long otherwise, unsigned *out)
{
    CHECK_DEVICE(d);
    long long n = number_of(d->gpu, key, otherwise);
    return n < 0 ? NVML_NOT_SUPPORTED : (*out = (unsigned)n, NVML_OK);
}

/* --- what was set */

static void log_set(const char *what, int gpu, int value)
{
    char path[4200], uuid[LINE];
    snprintf(path, sizeof path, "%s.log", path_of());
    FILE *f = fopen(path, "ae");
    uuid_text(gpu, uuid);
    if (f) {
        fprintf(f, "%s %s %d\n", what, uuid, value);
        fclose(f);
    }
}

static long long last_set(const char *what, int gpu, long long otherwise)
{
    char path[4200], uuid[LINE], line[LINE], word[64], whose[LINE];
    int value;
    snprintf(path, sizeof path, "%s.log", path_of());
    FILE *f = fopen(path, "re");
    uuid_text(gpu, uuid);
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "%63s %255s %d", word, whose, &value) == 3 && text_is(word, what) && text_is(whose, uuid))
            otherwise = value;
    if (f)
        fclose(f);
    return otherwise;
}

/* --- the library's functions, in the order of nvml.h */

#define X(member, symbol, arguments) int symbol arguments;
NVML_FUNCTIONS(X)
#undef X

int nvmlInit_v2(void)
{
    char text[LINE];
    for (int g = 0; g < GPUS; g++) {
        devices[g] = (struct nvml_device){ g, -1 };
        for (int m = 0; m < INSTANCES; m++) {
            migs[g][m] = (struct nvml_device){ g, m };
            instances[g][m] = (struct nvml_gpu_instance){ g, m };
        }
    }
    maybe_hang();
    return value_of("init", text) ? atoi(text) : NVML_OK;
}
int nvmlShutdown(void) { return NVML_OK; }
int nvmlSystemGetDriverVersion(char *out, unsigned n)
{
    char text[LINE] = "580.159.03";
    value_of("driver", text);
    return give_text(out, n, text);
}
int nvmlSystemGetCudaDriverVersion_v2(int *out)
{
    char text[LINE];
    return *out = value_of("cuda", text) ? atoi(text) : 13000, NVML_OK;
}
int nvmlDeviceGetCount_v2(unsigned *out)
{
    maybe_hang();
    return *out = (unsigned)count_gpus(), NVML_OK;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct nvml_device **out)
{
    if ((int)index >= count_gpus())
        return NVML_BAD_ARGUMENT;
    *out = &devices[index];
    return check(*out);
}
int nvmlDeviceGetHandleByUUID(const char *uuid, struct nvml_device **out)
{
    char text[LINE];
    for (int g = 0; g < count_gpus(); g++) {
        uuid_text(g, text);
        if (text_is(text, uuid))
            return *out = &devices[g], check(*out);
    }
    return NVML_NOT_FOUND;
}

/* As the library knows profiles by number: slices, slots, name on an H200; places are where the table of mig.c has them. */
static const struct { unsigned slices, size, starts; const char *name; } profiles[NVML_GI_PROFILES] = {
    [0] = { 1, 1, 0x7f, "1g.18gb" }, [1] = { 2, 2, 0x15, "2g.35gb" }, [2] = { 3, 4, 0x11, "3g.71gb" },    [3] = { 4, 4, 0x01, "4g.71gb" },
    [4] = { 7, 8, 0x01, "7g.141gb" }, [7] = { 1, 1, 0x7f, "1g.18gb+me" }, [9] = { 1, 2, 0x55, "1g.35gb" },
};
enum { PROFILE_IDS = 100 };     /* an id is not the number that it is asked by */

/* The lines of the file without the nth instance of that GPU, with one more, or with that one another. */
static void change_instances(int gpu, int without, const char *with, bool there)
{
    char fresh[4200], words[32];
    int nth = 0;
    snprintf(fresh, sizeof fresh, "%s.made", path_of());
    snprintf(words, sizeof words, "gpu %d instance ", gpu);
    pthread_mutex_lock(&conf.lock);
    refresh();
    FILE *f = fopen(fresh, "we");
    for (int i = 0; f && i < conf.count; i++)
        if (strncmp(conf.lines[i], words, strlen(words)) != 0 || nth++ != without)
            fprintf(f, "%s\n", conf.lines[i]);
        else if (there)
            fprintf(f, "%s%s\n", words, with);
    if (f && with && !there)
        fprintf(f, "%s%s\n", words, with);
    if (f && fclose(f) == 0)
        rename(fresh, path_of());
    conf.read = (struct timespec){ 0 };
    pthread_mutex_unlock(&conf.lock);
}

static bool instance_of(const struct nvml_device *d, char profile[static 64], unsigned *start, char uuid[static 128])
{
    char words[32], text[LINE];
    snprintf(words, sizeof words, "gpu %d instance", d->gpu);
    return nth_of(words, d->mig, text) && sscanf(text, "%63s %u %127s", profile, start, uuid) == 3;
}

int nvmlDeviceGetName(struct nvml_device *d, char *out, unsigned n)
{
    char text[LINE] = "NVIDIA H200", profile[64], uuid[128], whole[2 * LINE];
    unsigned start;
    CHECK_DEVICE(d);
    text_of_gpu(d->gpu, "name", text);
    if (d->mig < 0)
        return give_text(out, n, text);
    if (!instance_of(d, profile, &start, uuid))
        return NVML_NOT_FOUND;
    snprintf(whole, sizeof whole, "%s MIG %s", text, profile);
    return give_text(out, n, whole);
}
int nvmlDeviceGetUUID(struct nvml_device *d, char *out, unsigned n)
{
    char text[LINE], profile[64], uuid[128];
    unsigned start;
    CHECK_DEVICE(d);
    if (d->mig >= 0)
        return instance_of(d, profile, &start, uuid) ? give_text(out, n, uuid) : NVML_NOT_FOUND;
    uuid_text(d->gpu, text);
    return give_text(out, n, text);
}
int nvmlDeviceGetMinorNumber(struct nvml_device *d, unsigned *out) { return give(d, "minor", d ? d->gpu : 0, out); }
int nvmlDeviceGetPciInfo_v3(struct nvml_device *d, struct nvml_pci *out)
{
    CHECK_DEVICE(d);
    *out = (struct nvml_pci){ .bus = (unsigned)number_of(d->gpu, "bus", 0x18 + d->gpu) };
    snprintf(out->bus_id, sizeof out->bus_id, "00000000:%02X:00.0", out->bus);
    return NVML_OK;
}
int nvmlDeviceGetMemoryInfo(struct nvml_device *d, struct nvml_memory *out)
{
    CHECK_DEVICE(d);
    unsigned long long all = (unsigned long long)number_of(d->gpu, "mem", 143771) << 20, used = (unsigned long long)number_of(d->gpu, "mem_used", 0) << 20;
    return *out = (struct nvml_memory){ all, all - used, used }, NVML_OK;
}
int nvmlDeviceGetMemoryInfo_v2(struct nvml_device *d, struct nvml_memory2 *out)
{
    struct nvml_memory m;
    if (out->version != NVML_MEMORY2)
        return NVML_BAD_ARGUMENT;
    CHECK_DEVICE(d);
    nvmlDeviceGetMemoryInfo(d, &m);
    return *out = (struct nvml_memory2){ NVML_MEMORY2, m.total, 0, m.free, m.used }, NVML_OK;
}
int nvmlDeviceGetUtilizationRates(struct nvml_device *d, struct nvml_utilization *out)
{
    CHECK_DEVICE(d);
    if (number_of(d->gpu, "mig", 0))
        return NVML_NOT_SUPPORTED;
    return *out = (struct nvml_utilization){ (unsigned)number_of(d->gpu, "util", 0), (unsigned)number_of(d->gpu, "mem_util", 0) }, NVML_OK;
}
int nvmlDeviceGetEncoderUtilization(struct nvml_device *d, unsigned *out, unsigned *period_us) { return *period_us = 1000, give(d, "encoder", 0, out); }
int nvmlDeviceGetDecoderUtilization(struct nvml_device *d, unsigned *out, unsigned *period_us) { return *period_us = 1000, give(d, "decoder", 0, out); }
int nvmlDeviceGetPowerUsage(struct nvml_device *d, unsigned *mw) { return give(d, "power", 76000, mw); }
int nvmlDeviceGetEnforcedPowerLimit(struct nvml_device *d, unsigned *mw) { return give(d, "power_cap", 700000, mw); }
int nvmlDeviceGetTotalEnergyConsumption(struct nvml_device *d, unsigned long long *mj)
{
    CHECK_DEVICE(d);
    return *mj = (unsigned long long)number_of(d->gpu, "energy", 1000), NVML_OK;
}
int nvmlDeviceGetTemperature(struct nvml_device *d, int sensor, unsigned *out) { return sensor ? NVML_BAD_ARGUMENT : give(d, "temp", 31, out); }
int nvmlDeviceGetClockInfo(struct nvml_device *d, int which, unsigned *mhz)
{
    return which == NVML_CLOCK_SM ? give(d, "sm", 345, mhz) : which == NVML_CLOCK_MEM ? give(d, "mem_clock", 3201, mhz) : NVML_BAD_ARGUMENT;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(struct nvml_device *d, unsigned long long *bits)
{
    CHECK_DEVICE(d);
    return *bits = (unsigned long long)number_of(d->gpu, "throttle", 1), NVML_OK;
}
int nvmlDeviceGetFieldValues(struct nvml_device *d, int n, struct nvml_field *values)
{
    static const struct { unsigned id; const char *key; } all[] = {
        { NVML_FIELD_ECC_CORRECTED, "ecc_corrected" }, { NVML_FIELD_ECC_UNCORRECTED, "ecc_uncorrected" }, { NVML_FIELD_MEM_TEMP, "mem_temp" },
        { NVML_FIELD_REPLAYS, "replays" }, { NVML_FIELD_ROWS_CORRECTED, "rows_corrected" }, { NVML_FIELD_ROWS_UNCORRECTED, "rows_uncorrected" },
        { NVML_FIELD_ROWS_PENDING, "rows_pending" }, { NVML_FIELD_ROWS_FAILURE, "rows_failure" },
    };
    CHECK_DEVICE(d);
    for (int i = 0; i < n; i++) {
        values[i].rc = NVML_NOT_SUPPORTED;
        if (values[i].id == NVML_FIELD_POWER) {
            values[i].type = 1, values[i].rc = NVML_OK;
            values[i].value.u = (unsigned)number_of(d->gpu, "power", 76000);
        }
        for (size_t k = 0; k < COUNT(all); k++)
            if (all[k].id == values[i].id) {
                values[i].type = 3, values[i].rc = NVML_OK;
                values[i].value.ull = (unsigned long long)number_of(d->gpu, all[k].key, 0);
            }
    }
    return NVML_OK;
}
int nvmlDeviceGetEccMode(struct nvml_device *d, unsigned *now, unsigned *pending) { return *pending = 1, give(d, "ecc", 1, now); }
int nvmlDeviceGetTotalEccErrors(struct nvml_device *d, int kind, int since, unsigned long long *out)
{
    CHECK_DEVICE(d);
    (void)since;
    return *out = (unsigned long long)number_of(d->gpu, kind ? "ecc_uncorrected" : "ecc_corrected", 0), NVML_OK;
}
int nvmlDeviceGetRemappedRows(struct nvml_device *d, unsigned *corrected, unsigned *uncorrected, unsigned *pending, unsigned *failure)
{
    CHECK_DEVICE(d);
    *corrected = (unsigned)number_of(d->gpu, "rows_corrected", 0), *uncorrected = (unsigned)number_of(d->gpu, "rows_uncorrected", 0);
    return *pending = (unsigned)number_of(d->gpu, "rows_pending", 0), *failure = (unsigned)number_of(d->gpu, "rows_failure", 0), NVML_OK;
}
int nvmlDeviceGetPcieReplayCounter(struct nvml_device *d, unsigned *out) { return give(d, "replays", 0, out); }
static bool is_moved_away(unsigned pid)
{
    char file[LINE], path[LINE + 16];
    if (!value_of("cuda", file))
        return false;
    snprintf(path, sizeof path, "%s.%u", file, pid);
    FILE *f = fopen(path, "re");
    bool moved = f && fgetc(f) == '2';
    if (f)
        fclose(f);
    return moved;
}
static unsigned add_processes(int gpu, const char *kind, unsigned count, unsigned room, struct nvml_process *out)
{
    char words[32], text[LINE];
    unsigned pid;
    unsigned long long mib;
    snprintf(words, sizeof words, "gpu %d %s", gpu, kind);
    for (int i = 0; nth_of(words, i, text); i++) {
        if (sscanf(text, "%u %llu", &pid, &mib) != 2 || is_moved_away(pid))
            continue;
        if (count < room)
            out[count] = (struct nvml_process){ .pid = pid, .used = mib << 20, .gpu_instance = ~0u, .compute_instance = ~0u };
        count++;
    }
    return count;
}
int nvmlDeviceGetComputeRunningProcesses_v3(struct nvml_device *d, unsigned *n, struct nvml_process *out)
{
    CHECK_DEVICE(d);
    unsigned count = add_processes(d->gpu, "client", add_processes(d->gpu, "process", 0, *n, out), *n, out);
    bool fits = count <= *n;
    return *n = count, fits ? NVML_OK : NVML_TOO_SMALL;
}
int nvmlDeviceGetMPSComputeRunningProcesses_v3(struct nvml_device *d, unsigned *n, struct nvml_process *out)
{
    CHECK_DEVICE(d);
    unsigned count = add_processes(d->gpu, "client", 0, *n, out);
    bool fits = count <= *n;
    return *n = count, fits ? NVML_OK : NVML_TOO_SMALL;
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(struct nvml_device *d, unsigned *n, struct nvml_process *out)
{
    (void)out;
    return *n = 0, check(d);
}
int nvmlDeviceGetComputeMode(struct nvml_device *d, int *mode)
{
    CHECK_DEVICE(d);
    return *mode = (int)last_set("set_compute_mode", d->gpu, number_of(d->gpu, "mode", NVML_MODE_DEFAULT)), NVML_OK;
}
int nvmlDeviceSetComputeMode(struct nvml_device *d, int mode)
{
    CHECK_DEVICE(d);
    int rc = (int)number_of(d->gpu, "set_rc", NVML_OK);
    return rc == NVML_OK ? (log_set("set_compute_mode", d->gpu, mode), NVML_OK) : rc;
}

static int peer_of(struct nvml_device *d, unsigned link, int *peer)
{
    char words[32], text[LINE];
    CHECK_DEVICE(d);
    snprintf(words, sizeof words, "gpu %d link", d->gpu);
    return nth_of(words, (int)link, text) ? (*peer = atoi(text), NVML_OK) : NVML_NOT_SUPPORTED;
}
int nvmlDeviceGetNvLinkState(struct nvml_device *d, unsigned link, unsigned *active)
{
    int peer, rc = peer_of(d, link, &peer);
    return *active = 1, rc;
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(struct nvml_device *d, unsigned link, struct nvml_pci *out)
{
    int peer, rc = peer_of(d, link, &peer);
    return rc != NVML_OK ? rc : peer < 0 || peer >= GPUS ? NVML_NOT_SUPPORTED : nvmlDeviceGetPciInfo_v3(&devices[peer], out);
}
int nvmlDeviceGetNvLinkRemoteDeviceType(struct nvml_device *d, unsigned link, int *type)
{
    int peer = 0, rc = peer_of(d, link, &peer);
    return *type = peer < 0 ? NVML_REMOTE_SWITCH : NVML_REMOTE_GPU, rc;
}
int nvmlDeviceGetMigMode(struct nvml_device *d, unsigned *now, unsigned *pending)
{
    CHECK_DEVICE(d);
    return *now = *pending = (unsigned)last_set("set_mig_mode", d->gpu, number_of(d->gpu, "mig", 0)), NVML_OK;
}
int nvmlDeviceSetMigMode(struct nvml_device *d, unsigned mode, int *activation)
{
    CHECK_DEVICE(d);
    return *activation = NVML_OK, log_set("set_mig_mode", d->gpu, (int)mode), NVML_OK;
}
int nvmlDeviceGetMaxMigDeviceCount(struct nvml_device *d, unsigned *out) { return *out = INSTANCES - 1, check(d); }
int nvmlDeviceGetMigDeviceHandleByIndex(struct nvml_device *d, unsigned index, struct nvml_device **out)
{
    char profile[64], uuid[128];
    unsigned start;
    CHECK_DEVICE(d);
    if (index >= INSTANCES || !instance_of(&migs[d->gpu][index], profile, &start, uuid) || text_is(uuid, "-"))
        return NVML_NOT_FOUND;
    return *out = &migs[d->gpu][index], NVML_OK;
}
int nvmlDeviceGetGpuInstanceId(struct nvml_device *mig, unsigned *id) { return mig->mig < 0 ? NVML_BAD_ARGUMENT : (*id = (unsigned)mig->mig + 1, check(mig)); }
int nvmlDeviceGetComputeInstanceId(struct nvml_device *mig, unsigned *id) { return mig->mig < 0 ? NVML_BAD_ARGUMENT : (*id = 0, check(mig)); }
int nvmlDeviceGetGpuInstanceById(struct nvml_device *d, unsigned id, struct nvml_gpu_instance **out)
{
    CHECK_DEVICE(d);
    return id < 1 || id > INSTANCES ? NVML_NOT_FOUND : (*out = &instances[d->gpu][id - 1], NVML_OK);
}
int nvmlGpuInstanceGetInfo(struct nvml_gpu_instance *gi, struct nvml_gi_info *out)
{
    char profile[64], uuid[128];
    unsigned start;
    if (!instance_of(&migs[gi->gpu][gi->mig], profile, &start, uuid))
        return NVML_NOT_FOUND;
    unsigned size = 1;
    for (int i = 0; i < NVML_GI_PROFILES; i++)
        if (profiles[i].name && text_is(profiles[i].name, profile))
            size = profiles[i].size;
    *out = (struct nvml_gi_info){ .device = &devices[gi->gpu], .id = (unsigned)gi->mig + 1, .placement = { .start = start, .size = size } };
    return NVML_OK;
}
int nvmlDeviceGetGpuInstanceProfileInfo(struct nvml_device *d, unsigned profile, struct nvml_gi_profile *out)
{
    CHECK_DEVICE(d);
    if (profile >= NVML_GI_PROFILES || !profiles[profile].name)
        return NVML_NOT_SUPPORTED;
    return *out = (struct nvml_gi_profile){ .id = PROFILE_IDS + profile, .slices = profiles[profile].slices }, NVML_OK;
}
int nvmlDeviceGetGpuInstancePossiblePlacements_v2(struct nvml_device *d, unsigned profile, struct nvml_placement *out, unsigned *n)
{
    unsigned count = 0;
    CHECK_DEVICE(d);
    if (profile < PROFILE_IDS || profile >= PROFILE_IDS + NVML_GI_PROFILES)
        return NVML_BAD_ARGUMENT;
    for (unsigned s = 0; s < 8; s++)
        if (profiles[profile - PROFILE_IDS].starts >> s & 1 && count < *n)
            out[count++] = (struct nvml_placement){ s, profiles[profile - PROFILE_IDS].size };
    return *n = count, NVML_OK;
}
int nvmlDeviceCreateGpuInstanceWithPlacement(struct nvml_device *d, unsigned profile, const struct nvml_placement *at, struct nvml_gpu_instance **out)
{
    char text[LINE], have[64], uuid[128];
    unsigned start;
    int count = 0;
    CHECK_DEVICE(d);
    if (profile < PROFILE_IDS || profile >= PROFILE_IDS + NVML_GI_PROFILES)
        return NVML_BAD_ARGUMENT;
    for (; count < INSTANCES && instance_of(&migs[d->gpu][count], have, &start, uuid); count++) {
        struct nvml_gi_info info;
        nvmlGpuInstanceGetInfo(&instances[d->gpu][count], &info);
        if (at->start < info.placement.start + info.placement.size && info.placement.start < at->start + at->size)
            return NVML_IN_USE;
    }
    if (count == INSTANCES)
        return NVML_TOO_SMALL;
    snprintf(text, sizeof text, "%s %u -", profiles[profile - PROFILE_IDS].name, at->start);
    change_instances(d->gpu, -1, text, false);
    log_set("gi_create", d->gpu, (int)at->start);
    return *out = &instances[d->gpu][count], NVML_OK;
}
int nvmlGpuInstanceDestroy(struct nvml_gpu_instance *gi)
{
    char profile[64], uuid[128];
    unsigned start;
    if (!instance_of(&migs[gi->gpu][gi->mig], profile, &start, uuid))
        return NVML_NOT_FOUND;
    if (!text_is(uuid, "-"))
        return NVML_IN_USE;
    log_set("gi_destroy", gi->gpu, (int)start);
    return change_instances(gi->gpu, gi->mig, NULL, false), NVML_OK;
}
int nvmlGpuInstanceGetComputeInstanceProfileInfo(struct nvml_gpu_instance *gi, unsigned profile, unsigned engine, struct nvml_ci_profile *out)
{
    (void)gi;
    return engine || profile > 4 ? NVML_BAD_ARGUMENT : (*out = (struct nvml_ci_profile){ .id = profile }, NVML_OK);
}
int nvmlGpuInstanceCreateComputeInstance(struct nvml_gpu_instance *gi, unsigned profile, struct nvml_compute_instance **out)
{
    static struct nvml_compute_instance made;
    char have[64], uuid[128], name[64], text[LINE];
    unsigned start;
    int rc = (int)number_of(gi->gpu, "make_rc", NVML_OK);
    (void)profile;
    if (rc != NVML_OK || !instance_of(&migs[gi->gpu][gi->mig], have, &start, uuid))
        return rc != NVML_OK ? rc : NVML_NOT_FOUND;
    snprintf(name, sizeof name, "MIG-made-%d-%u", gi->gpu, start);
    made = (struct nvml_compute_instance){ gi->gpu, gi->mig };
    snprintf(text, sizeof text, "%s %u %s", have, start, name);
    return change_instances(gi->gpu, gi->mig, text, true), *out = &made, NVML_OK;
}
int nvmlGpuInstanceGetComputeInstanceById(struct nvml_gpu_instance *gi, unsigned id, struct nvml_compute_instance **out)
{
    static struct nvml_compute_instance found;
    char profile[64], uuid[128];
    unsigned start;
    if (id || !instance_of(&migs[gi->gpu][gi->mig], profile, &start, uuid) || text_is(uuid, "-"))
        return NVML_NOT_FOUND;
    found = (struct nvml_compute_instance){ gi->gpu, gi->mig };
    return *out = &found, NVML_OK;
}
int nvmlComputeInstanceDestroy(struct nvml_compute_instance *ci)
{
    char profile[64], uuid[128], text[LINE];
    unsigned start;
    if (!instance_of(&migs[ci->gpu][ci->mig], profile, &start, uuid))
        return NVML_NOT_FOUND;
    if (number_of(ci->gpu, "busy", -1) == (long long)start)
        return NVML_IN_USE;
    log_set("ci_destroy", ci->gpu, (int)start);
    snprintf(text, sizeof text, "%s %u -", profile, start);
    return change_instances(ci->gpu, ci->mig, text, true), NVML_OK;
}

/* --- events */

static int count_xids(void)
{
    char text[LINE];
    int n = 0;
    while (nth_of("xid", n, text))
        n++;
    return n;
}
int nvmlEventSetCreate(struct nvml_event_set **out)
{
    *out = calloc(1, sizeof **out);
    (*out)->seen = count_xids();
    return NVML_OK;
}
int nvmlDeviceGetSupportedEventTypes(struct nvml_device *d, unsigned long long *types) { return *types = NVML_EVENT_XID | NVML_EVENT_ECC_DOUBLE, check(d); }
int nvmlDeviceRegisterEvents(struct nvml_device *d, unsigned long long types, struct nvml_event_set *set)
{
    (void)types, (void)set;
    return check(d);
}
int nvmlEventSetWait_v2(struct nvml_event_set *set, struct nvml_event *out, unsigned timeout_ms)
{
    char text[LINE];
    int gpu, xid;
    for (unsigned waited = 0; waited < timeout_ms; waited += 20, usleep(20000))
        if (nth_of("xid", set->seen, text)) {
            set->seen++;
            if (sscanf(text, "%d %d", &gpu, &xid) == 2 && gpu >= 0 && gpu < GPUS) {
                *out = (struct nvml_event){ .device = &devices[gpu], .type = NVML_EVENT_XID, .data = (unsigned long long)xid };
                return NVML_OK;
            }
        }
    return NVML_TIMEOUT;
}
int nvmlEventSetFree(struct nvml_event_set *set) { return free(set), NVML_OK; }
