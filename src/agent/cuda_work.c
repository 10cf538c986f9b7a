/* cuda_work.c - loads the CUDA driver library (cuda_lib.h) for work on a GPU. */
#include "agent/cuda_work.h"
#include "agent/cuda_lib.h"
#include <dlfcn.h>

bool cuda_work_load(const char *path, struct cuda_work *out, struct err *err)
{
    static const struct cuda_symbol all[] = {
#define X(member, symbol, arguments) { #symbol, offsetof(struct cuda_work, member) },
        CUDA_WORK_FUNCTIONS(X)
#undef X
    };
    struct cuda_work c = { .lib = cuda_open(path) };
    if (!c.lib)
        return err_set(err, RC_NOT_FOUND, "this node has no CUDA driver library (libcuda.so.1)");
    const char *missing = cuda_fill(c.lib, all, COUNT(all), &c);
    if (missing) {
        dlclose(c.lib);
        return err_set(err, RC_UNAVAILABLE, "the CUDA driver library is too old: it has no %s", missing);
    }
    return *out = c, true;
}

const char *cuda_work_words(int rc)
{
    static const struct { int rc; const char *words; } all[] = {
        { CUW_OUT_OF_MEMORY, "there is not enough memory" },
        { 3, "the driver is not initialised" },
        { 46, "the device is in use by somebody else alone" },
        { CUW_NO_DEVICE, "the driver has no such device" },
        { 101, "the driver has no such device" },
        { CUW_ECC, "uncorrectable memory error" },
        { 218, "the driver does not take the test program" },
        { 222, "the driver does not take the test program" },
        { 700, "illegal address" },
        { 702, "the GPU did not come to an end in time" },
        { 719, "the program failed on the GPU" },
        { 802, "the system is not ready" },
        { 999, "unknown error" },
    };
    for (size_t i = 0; i < COUNT(all); i++)
        if (all[i].rc == rc)
            return all[i].words;
    return "the driver failed";
}
