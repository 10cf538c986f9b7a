/* cuda_lib.c - see cuda_lib.h. The loader's own list comes first; the others are where drivers lie that it was not told of (containers, WSL, images of nodes). */
#include "agent/cuda_lib.h"
#include <dlfcn.h>
#include <string.h>

void *cuda_open(const char *path)
{
    static const char *const usual[] = {
        "libcuda.so.1",
        "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
        "/usr/lib/aarch64-linux-gnu/libcuda.so.1",
        "/usr/lib64/libcuda.so.1",
        "/usr/local/nvidia/lib64/libcuda.so.1",
        "/usr/lib/wsl/lib/libcuda.so.1",
        "/run/nvidia/driver/usr/lib/x86_64-linux-gnu/libcuda.so.1",
    };
    void *lib = NULL;
    for (size_t i = 0; !path && !lib && i < COUNT(usual); i++)
        lib = dlopen(usual[i], RTLD_NOW | RTLD_LOCAL);
    return path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : lib;
}

const char *cuda_fill(void *lib, const struct cuda_symbol *all, size_t count, void *to)
{
    for (size_t i = 0; i < count; i++) {
        void *fn = dlsym(lib, all[i].name);
        if (!fn)
            return all[i].name;
        memcpy((char *)to + all[i].at, &fn, sizeof fn);
    }
    return NULL;
}
