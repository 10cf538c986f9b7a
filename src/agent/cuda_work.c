/* cuda_work.c - finds and loads the CUDA driver library for work on a GPU. */
#include "agent/cuda_work.h"
#include <dlfcn.h>

static const char *const usual[] = {
    "libcuda.so.1",
    "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
    "/usr/lib/aarch64-linux-gnu/libcuda.so.1",
    "/usr/lib64/libcuda.so.1",
    "/usr/local/nvidia/lib64/libcuda.so.1",
    "/usr/lib/wsl/lib/libcuda.so.1",
    "/run/nvidia/driver/usr/lib/x86_64-linux-gnu/libcuda.so.1",
};

static void *find_library(const char *path)
{
    void *lib = NULL;
    for (size_t i = 0; !path && !lib && i < COUNT(usual); i++)
        lib = dlopen(usual[i], RTLD_NOW | RTLD_LOCAL);
    return path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : lib;
}

bool cuda_work_load(const char *path, struct cuda_work *out, struct err *err)
{
    static const struct { const char *name; size_t at; } all[] = {
#define X(member, symbol, arguments) { #symbol, offsetof(struct cuda_work, member) },
        CUDA_WORK_FUNCTIONS(X)
#undef X
    };
    struct cuda_work c = { .lib = find_library(path) };
    if (!c.lib)
        return err_set(err, RC_NOT_FOUND, "this node has no CUDA driver library (libcuda.so.1)");
    for (size_t i = 0; i < COUNT(all); i++) {
        void *fn = dlsym(c.lib, all[i].name);
        if (!fn) {
            dlclose(c.lib);
            return err_set(err, RC_UNAVAILABLE, "the CUDA driver library is too old: it has no %s", all[i].name);
        }
        memcpy((char *)&c + all[i].at, &fn, sizeof fn);
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
