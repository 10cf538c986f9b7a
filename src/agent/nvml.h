/* nvml.h - as much of NVIDIA's management library as we call: our own declarations of its binary interface (libnvidia-ml.so.1).
 *
 * Loaded by name, so nothing of NVIDIA's is needed to build, and a machine without a driver has none. A function that a driver does not
 * have is NULL in the table: whoever calls it asks NVML_HAS first, or goes through NVML_CALL, which answers NVML_NOT_SUPPORTED then. Only
 * the helpers (helper.c, suspend_helper.c) and the fake of tests/fake/ include this: a call may hang with its driver, and must not hang the agent. */
#pragma once
#include "base/err.h"

enum nvml_rc {
    NVML_OK = 0, NVML_BAD_ARGUMENT = 2, NVML_NOT_SUPPORTED = 3, NVML_NO_PERMISSION = 4, NVML_NOT_FOUND = 6, NVML_TOO_SMALL = 7,
    NVML_NO_DRIVER = 9, NVML_TIMEOUT = 10, NVML_NO_FUNCTION = 13, NVML_LOST = 15, NVML_NEEDS_RESET = 16, NVML_MISMATCH = 18, NVML_IN_USE = 19,
    NVML_UNKNOWN = 999,
};
struct nvml_device;             /* opaque, as the next three */
struct nvml_event_set;
struct nvml_gpu_instance;
struct nvml_compute_instance;

struct nvml_memory { unsigned long long total, free, used; };
struct nvml_memory2 { unsigned version; unsigned long long total, reserved, free, used; };      /* used without what the driver keeps */
struct nvml_utilization { unsigned gpu, memory; };                                              /* per cent of the last moments */
struct nvml_pci { char legacy[16]; unsigned domain, bus, device, device_id, subsystem_id; char bus_id[32]; };
struct nvml_process { unsigned pid; unsigned long long used; unsigned gpu_instance, compute_instance; };    /* of _v2 and _v3; used: bytes, or all ones */
struct nvml_event { struct nvml_device *device; unsigned long long type, data; unsigned gpu_instance, compute_instance; };
struct nvml_field { unsigned id, scope; long long timestamp, latency_us; unsigned type; int rc; union { double d; int i; unsigned u; unsigned long long ull; long long sll; } value; };
struct nvml_placement { unsigned start, size; };                                                /* in slots of memory */
struct nvml_gi_info { struct nvml_device *device; unsigned id, profile; struct nvml_placement placement; };
struct nvml_ci_info { struct nvml_device *device; struct nvml_gpu_instance *gpu_instance; unsigned id, profile; struct nvml_placement placement; };
struct nvml_gi_profile { unsigned id, p2p, slices, instances, multiprocessors, copies, decoders, encoders, jpegs, ofas; unsigned long long mem_mib; };
struct nvml_ci_profile { unsigned id, slices, instances, multiprocessors, copies, decoders, encoders, jpegs, ofas; };
_Static_assert(sizeof(struct nvml_memory2) == 40 && sizeof(struct nvml_pci) == 68 && sizeof(struct nvml_process) == 24 && sizeof(struct nvml_event) == 32
               && sizeof(struct nvml_field) == 40 && sizeof(struct nvml_gi_info) == 24 && sizeof(struct nvml_gi_profile) == 48, "as the library has them");
#define NVML_VERSION(type, n) ((unsigned)sizeof(type) | (n) << 24)
#define NVML_MEMORY2 NVML_VERSION(struct nvml_memory2, 2u)

enum {
    NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2,
    NVML_ECC_CORRECTED = 0, NVML_ECC_UNCORRECTED = 1, NVML_ECC_VOLATILE = 0, NVML_ECC_EVER = 1,
    NVML_EVENT_ECC_DOUBLE = 2, NVML_EVENT_XID = 8,
    NVML_MODE_DEFAULT = 0, NVML_MODE_PROHIBITED = 2, NVML_MODE_EXCLUSIVE_PROCESS = 3,
    NVML_LINKS = 18, NVML_REMOTE_GPU = 0, NVML_REMOTE_SWITCH = 2,
    NVML_NAME = 96, NVML_UUID = 96, NVML_GI_PROFILES = 10,
};
enum nvml_field_id {            /* of DeviceGetFieldValues: many at once, and cheap */
    NVML_FIELD_ECC_CORRECTED = 3, NVML_FIELD_ECC_UNCORRECTED = 4, NVML_FIELD_MEM_TEMP = 82, NVML_FIELD_ENERGY = 83, NVML_FIELD_REPLAYS = 94,
    NVML_FIELD_ROWS_CORRECTED = 142, NVML_FIELD_ROWS_UNCORRECTED = 143, NVML_FIELD_ROWS_PENDING = 144, NVML_FIELD_ROWS_FAILURE = 145,
    NVML_FIELD_POWER = 186,
};

/* X(member, symbol, arguments) */
#define NVML_FUNCTIONS(X)                                                                                                          \
    X(init, nvmlInit_v2, (void))                                                                                                   \
    X(shutdown, nvmlShutdown, (void))                                                                                              \
    X(driver_version, nvmlSystemGetDriverVersion, (char *out, unsigned n))                                                         \
    X(cuda_version, nvmlSystemGetCudaDriverVersion_v2, (int *out))                                                                 \
    X(count, nvmlDeviceGetCount_v2, (unsigned *out))                                                                               \
    X(handle, nvmlDeviceGetHandleByIndex_v2, (unsigned index, struct nvml_device **out))                                                   \
    X(handle_of_uuid, nvmlDeviceGetHandleByUUID, (const char *uuid, struct nvml_device **out))                                             \
    X(name, nvmlDeviceGetName, (struct nvml_device *d, char *out, unsigned n))                                                             \
    X(uuid, nvmlDeviceGetUUID, (struct nvml_device *d, char *out, unsigned n))                                                             \
    X(minor, nvmlDeviceGetMinorNumber, (struct nvml_device *d, unsigned *out))                                                             \
    X(pci, nvmlDeviceGetPciInfo_v3, (struct nvml_device *d, struct nvml_pci *out))                                                         \
    X(memory, nvmlDeviceGetMemoryInfo, (struct nvml_device *d, struct nvml_memory *out))                                                   \
    X(memory2, nvmlDeviceGetMemoryInfo_v2, (struct nvml_device *d, struct nvml_memory2 *out))                                              \
    X(utilization, nvmlDeviceGetUtilizationRates, (struct nvml_device *d, struct nvml_utilization *out))                                   \
    X(encoder, nvmlDeviceGetEncoderUtilization, (struct nvml_device *d, unsigned *out, unsigned *period_us))                               \
    X(decoder, nvmlDeviceGetDecoderUtilization, (struct nvml_device *d, unsigned *out, unsigned *period_us))                               \
    X(power, nvmlDeviceGetPowerUsage, (struct nvml_device *d, unsigned *mw))                                                               \
    X(power_cap, nvmlDeviceGetEnforcedPowerLimit, (struct nvml_device *d, unsigned *mw))                                                   \
    X(energy, nvmlDeviceGetTotalEnergyConsumption, (struct nvml_device *d, unsigned long long *mj))                                        \
    X(temperature, nvmlDeviceGetTemperature, (struct nvml_device *d, int sensor, unsigned *out))                                           \
    X(clock, nvmlDeviceGetClockInfo, (struct nvml_device *d, int which, unsigned *mhz))                                                    \
    X(throttle, nvmlDeviceGetCurrentClocksThrottleReasons, (struct nvml_device *d, unsigned long long *bits))                              \
    X(fields, nvmlDeviceGetFieldValues, (struct nvml_device *d, int n, struct nvml_field *values))                                         \
    X(ecc_mode, nvmlDeviceGetEccMode, (struct nvml_device *d, unsigned *now, unsigned *pending))                                           \
    X(ecc_errors, nvmlDeviceGetTotalEccErrors, (struct nvml_device *d, int kind, int since, unsigned long long *out))                      \
    X(rows, nvmlDeviceGetRemappedRows, (struct nvml_device *d, unsigned *corrected, unsigned *uncorrected, unsigned *pending, unsigned *failure)) \
    X(replays, nvmlDeviceGetPcieReplayCounter, (struct nvml_device *d, unsigned *out))                                                     \
    X(processes, nvmlDeviceGetComputeRunningProcesses_v3, (struct nvml_device *d, unsigned *n, struct nvml_process *out))                  \
    X(mps_clients, nvmlDeviceGetMPSComputeRunningProcesses_v3, (struct nvml_device *d, unsigned *n, struct nvml_process *out))             \
    X(graphics, nvmlDeviceGetGraphicsRunningProcesses_v3, (struct nvml_device *d, unsigned *n, struct nvml_process *out))                  \
    X(compute_mode, nvmlDeviceGetComputeMode, (struct nvml_device *d, int *mode))                                                          \
    X(set_compute_mode, nvmlDeviceSetComputeMode, (struct nvml_device *d, int mode))                                                       \
    X(link_state, nvmlDeviceGetNvLinkState, (struct nvml_device *d, unsigned link, unsigned *active))                                      \
    X(link_remote, nvmlDeviceGetNvLinkRemotePciInfo_v2, (struct nvml_device *d, unsigned link, struct nvml_pci *out))                      \
    X(link_type, nvmlDeviceGetNvLinkRemoteDeviceType, (struct nvml_device *d, unsigned link, int *type))                                   \
    X(mig_mode, nvmlDeviceGetMigMode, (struct nvml_device *d, unsigned *now, unsigned *pending))                                           \
    X(set_mig_mode, nvmlDeviceSetMigMode, (struct nvml_device *d, unsigned mode, int *activation))                                         \
    X(mig_count, nvmlDeviceGetMaxMigDeviceCount, (struct nvml_device *d, unsigned *out))                                                   \
    X(mig_handle, nvmlDeviceGetMigDeviceHandleByIndex, (struct nvml_device *d, unsigned index, struct nvml_device **out))                          \
    X(gi_id, nvmlDeviceGetGpuInstanceId, (struct nvml_device *mig, unsigned *id))                                                          \
    X(ci_id, nvmlDeviceGetComputeInstanceId, (struct nvml_device *mig, unsigned *id))                                                      \
    X(gi_by_id, nvmlDeviceGetGpuInstanceById, (struct nvml_device *d, unsigned id, struct nvml_gpu_instance **out))                                \
    X(gi_info, nvmlGpuInstanceGetInfo, (struct nvml_gpu_instance *gi, struct nvml_gi_info *out))                                           \
    X(gi_profile, nvmlDeviceGetGpuInstanceProfileInfo, (struct nvml_device *d, unsigned profile, struct nvml_gi_profile *out))             \
    X(gi_places, nvmlDeviceGetGpuInstancePossiblePlacements_v2, (struct nvml_device *d, unsigned profile, struct nvml_placement *out, unsigned *n)) \
    X(gi_create, nvmlDeviceCreateGpuInstanceWithPlacement, (struct nvml_device *d, unsigned profile, const struct nvml_placement *at, struct nvml_gpu_instance **out)) \
    X(gi_destroy, nvmlGpuInstanceDestroy, (struct nvml_gpu_instance *gi))                                                                  \
    X(ci_profile, nvmlGpuInstanceGetComputeInstanceProfileInfo, (struct nvml_gpu_instance *gi, unsigned profile, unsigned engine, struct nvml_ci_profile *out)) \
    X(ci_create, nvmlGpuInstanceCreateComputeInstance, (struct nvml_gpu_instance *gi, unsigned profile, struct nvml_compute_instance **out))       \
    X(ci_by_id, nvmlGpuInstanceGetComputeInstanceById, (struct nvml_gpu_instance *gi, unsigned id, struct nvml_compute_instance **out))            \
    X(ci_destroy, nvmlComputeInstanceDestroy, (struct nvml_compute_instance *ci))                                                          \
    X(event_set, nvmlEventSetCreate, (struct nvml_event_set **out))                                                                        \
    X(event_types, nvmlDeviceGetSupportedEventTypes, (struct nvml_device *d, unsigned long long *types))                                   \
    X(event_register, nvmlDeviceRegisterEvents, (struct nvml_device *d, unsigned long long types, struct nvml_event_set *set))                     \
    X(event_wait, nvmlEventSetWait_v2, (struct nvml_event_set *set, struct nvml_event *out, unsigned timeout_ms))                          \
    X(event_free, nvmlEventSetFree, (struct nvml_event_set *set))

struct nvml {
#define X(member, symbol, arguments) int (*member) arguments;
    NVML_FUNCTIONS(X)
#undef X
    void *lib;
};
#define NVML_CALL(n, member, ...) ((n)->member ? (n)->member(__VA_ARGS__) : NVML_NOT_SUPPORTED)

/* path NULL: wherever drivers put it. False with RC_NOT_FOUND: there is none; else it is there and cannot be used. */
MUST_CHECK bool nvml_load(const char *path, struct nvml *out, struct err *err);
const char *nvml_words(int rc);         /* what an answer means: "the device is lost" */
