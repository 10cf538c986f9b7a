/* static.c - links no C library of the host: takes MIB megabytes of the GPU in two processes and holds them. What is loaded in between (LD_PRELOAD, a changed libcuda) it
 * would not see; who counts in the driver sees it as any other. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    size_t mib = argc > 1 ? strtoull(argv[1], NULL, 10) : 100;
    fork();
    void *l = dlopen("libcuda.so.1", RTLD_NOW), *context;
    int device, rc;
    uint64_t at;
    if (!l) {
        printf("no library: %s\n", dlerror());
        return 4;
    }
    int (*init)(unsigned) = dlsym(l, "cuInit");
    int (*get)(int *, int) = dlsym(l, "cuDeviceGet");
    int (*retain)(void **, int) = dlsym(l, "cuDevicePrimaryCtxRetain");
    int (*set)(void *) = dlsym(l, "cuCtxSetCurrent");
    int (*take)(uint64_t *, size_t) = dlsym(l, "cuMemAlloc_v2");
    if ((rc = init(0)) || (rc = get(&device, 0)) || (rc = retain(&context, device)) || (rc = set(context)) || (rc = take(&at, mib << 20))) {
        printf("refused %d\n", rc);
        return 3;
    }
    printf("holds %zu MiB\n", mib);
    fflush(stdout);
    sleep(120);
    return 0;
}
