/* nvml.c - finds and loads NVIDIA's management library. The loader's own search comes first, then the places where drivers that came
 * without a package put it. */
#include "agent/nvml.h"
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

static const char *const usual[] = {
    "libnvidia-ml.so.1",
    "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
    "/usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1",
    "/usr/lib64/libnvidia-ml.so.1",
    "/usr/local/nvidia/lib64/libnvidia-ml.so.1",
    "/usr/lib/wsl/lib/libnvidia-ml.so.1",
    "/run/nvidia/driver/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
};

static void *find_library(const char *path)
{
    void *lib = NULL;
    for (size_t i = 0; !path && !lib && i < COUNT(usual); i++)
        lib = dlopen(usual[i], RTLD_NOW | RTLD_LOCAL);
    return path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : lib;
}

bool nvml_load(const char *path, struct nvml *out, struct err *err)
{
    static const struct { const char *name; size_t at; } all[] = {
#define X(member, symbol, arguments) { #symbol, offsetof(struct nvml, member) },
        NVML_FUNCTIONS(X)
#undef X
    };
    struct nvml n = { .lib = find_library(path) };
    if (!n.lib)
        return err_set(err, path ? RC_UNAVAILABLE : RC_NOT_FOUND, "%s", dlerror());
    for (size_t i = 0; i < COUNT(all); i++) {
        void *fn = dlsym(n.lib, all[i].name);
        memcpy((char *)&n + all[i].at, &fn, sizeof fn);
    }
    if (!n.init || !n.count || !n.handle || !n.uuid || !n.name) {
        dlclose(n.lib);
        return err_set(err, RC_UNAVAILABLE, "the driver's library is too old: it has no nvmlInit_v2");
    }
    return *out = n, true;
}

const char *nvml_words(int rc)
{
    static const struct { int rc; const char *words; } all[] = {
        { NVML_NOT_SUPPORTED, "the driver does not support it" },
        { NVML_NO_PERMISSION, "the driver does not permit it" },
        { NVML_NOT_FOUND, "the driver does not find it" },
        { NVML_NO_DRIVER, "the driver is not loaded" },
        { NVML_TIMEOUT, "the driver timed out" },
        { NVML_LOST, "the device is lost: it has fallen off the bus" },
        { NVML_NEEDS_RESET, "the device must be reset" },
        { NVML_MISMATCH, "the driver and its library are of different versions; reboot, or load the driver anew" },
        { NVML_IN_USE, "the device is in use" },
        { NVML_UNKNOWN, "the driver failed without saying why" },
    };
    for (size_t i = 0; i < COUNT(all); i++)
        if (all[i].rc == rc)
            return all[i].words;
    return "the driver refused";
}
