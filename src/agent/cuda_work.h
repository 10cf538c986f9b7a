/* cuda_work.h - as much of NVIDIA's CUDA driver library as it takes to write to a GPU and to compute on it: our own declarations of its binary
 * interface (libcuda.so.1), loaded by name like nvml.h.
 *
 * Only the check helper (gpu_check.c) and the fake of tests/fake/ include this: a call may hang with its driver. */
#pragma once
#include "base/err.h"

enum { CUW_OK = 0, CUW_OUT_OF_MEMORY = 2, CUW_NO_DEVICE = 100, CUW_ECC = 214, CUW_MAJOR = 75, CUW_MINOR = 76 };
struct cuw_uuid { unsigned char at[16]; };

/* X(member, symbol, arguments) */
#define CUDA_WORK_FUNCTIONS(X)                                                          \
    X(init, cuInit, (unsigned flags))                                                   \
    X(count, cuDeviceGetCount, (int *out))                                              \
    X(device, cuDeviceGet, (int *out, int ordinal))                                     \
    X(uuid, cuDeviceGetUuid_v2, (struct cuw_uuid *out, int device))                     \
    X(attribute, cuDeviceGetAttribute, (int *out, int which, int device))               \
    X(retain, cuDevicePrimaryCtxRetain, (void **context, int device))                   \
    X(use, cuCtxSetCurrent, (void *context))                                            \
    X(sync, cuCtxSynchronize, (void))                                                   \
    X(mem_info, cuMemGetInfo_v2, (size_t *free_bytes, size_t *total))                   \
    X(alloc, cuMemAlloc_v2, (uint64_t *out, size_t bytes))                              \
    X(set, cuMemsetD32_v2, (uint64_t at, unsigned value, size_t count))                 \
    X(to_host, cuMemcpyDtoH_v2, (void *to, uint64_t from, size_t bytes))                \
    X(module, cuModuleLoadData, (void **out, const void *image))                        \
    X(function, cuModuleGetFunction, (void **out, void *module, const char *name))      \
    X(launch, cuLaunchKernel, (void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream, void **arguments, void **extra))

struct cuda_work {
#define X(member, symbol, arguments) int (*member) arguments;
    CUDA_WORK_FUNCTIONS(X)
#undef X
    void *lib;
};
/* path NULL: wherever drivers put it. */
MUST_CHECK bool cuda_work_load(const char *path, struct cuda_work *out, struct err *err);
const char *cuda_work_words(int rc);    /* what an answer means: "uncorrectable memory error" */

/* PTX of the kernels of the test, for the driver to compile: `fill`, `verify`, `ramp` and `product` (see gpu_kernels.c). */
void gpu_kernels(int major, int minor, char *out, size_t room);
enum { GPU_KERNELS_BYTES = 8192, GPU_KERNEL_BLOCK = 256, GPU_TILE = 16 };
