/* cuda.c - a libcuda.so.1 for tasks of a dry run (dry.sh): it computes nothing. What its process holds and whether it is in a kernel it tells driver.py over a socket, whose
 * peer is known there by its number outside of all namespaces; what that answers is what calls return. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static int door = -1;
static pid_t owner;
static char store[16 << 20];    /* what pieces of memory are: all the same one */

/* Sends words; the first number of the answer, the rest in more. */
static long ask(const char *words, long more[static 2])
{
    char line[128];
    more[0] = more[1] = 0;
    if (door == -1 || send(door, words, strlen(words), MSG_NOSIGNAL) < 0)
        return 999;
    ssize_t n = recv(door, line, sizeof line - 1, 0);
    long rc = 999;
    line[n > 0 ? n : 0] = 0;
    sscanf(line, "%ld %ld %ld", &rc, &more[0], &more[1]);
    return rc;
}

static int does(const char *words)
{
    long more[2];
    return (int)ask(words, more);
}

int cuInit(unsigned flags)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX, .sun_path = DRY_SOCKET };
    const char *pipe = getenv("CUDA_MPS_PIPE_DIRECTORY");
    char path[200], words[64];
    (void)flags;
    if (door != -1 && owner == getpid())
        return 0;
    if (open("/dev/nvidia0", O_RDONLY) == -1 && !getenv("DRY_BARE"))   /* stays open, and so does what tells that a process uses CUDA */
        return 100;
    open("/dev/zero", O_RDONLY);
    snprintf(path, sizeof path, "%s/control", pipe ? pipe : "/tmp/nvidia-mps");
    owner = getpid();
    door = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (connect(door, (void *)&to, sizeof to) == -1)
        return 999;
    snprintf(words, sizeof words, "init %s", access(path, F_OK) == 0 ? "client" : "process");
    nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
    return does(words);
}

int cuDeviceGet(int *out, int n) { return *out = n, 0; }
int cuDevicePrimaryCtxRetain(void **out, int device) { return (void)device, *out = store, does("take 145"); }
int cuCtxCreate_v2(void **out, unsigned flags, int device) { return (void)flags, cuDevicePrimaryCtxRetain(out, device); }
int cuCtxSetCurrent(void *context) { return (void)context, 0; }
int cuCtxSynchronize(void) { return does("sync"); }

int cuDeviceGetAttribute(int *out, int which, int device)
{
    long more[2];
    (void)which, (void)device;
    ask("info", more);
    *out = more[1] > 100000 ? 132 : 32;
    return 0;
}

int cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    long more[2], rc = ask("info", more);
    *free_bytes = (size_t)more[0] << 20;
    *total = (size_t)143155 << 20;
    return (int)rc;
}

int cuMemAlloc_v2(uint64_t *out, size_t bytes)
{
    char words[64];
    *out = (uint64_t)(uintptr_t)store;
    snprintf(words, sizeof words, "take %zu", bytes >> 20);
    return does(words);
}

int cuMemAllocManaged(uint64_t *out, size_t bytes, unsigned flags) { return (void)flags, does("managed"), cuMemAlloc_v2(out, bytes); }
int cuMemsetD8_v2(uint64_t at, unsigned char value, size_t count) { return (void)at, (void)value, (void)count, 0; }
int cuMemsetD32_v2(uint64_t at, unsigned value, size_t count) { return (void)at, (void)value, (void)count, 0; }
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) { return (void)from, memset(to, 0, bytes), 0; }
int cuModuleLoadData(void **out, const void *image) { return *out = (void *)(uintptr_t)image, 0; }
int cuModuleGetFunction(void **out, void *module, const char *name) { return (void)module, *out = strdup(name), 0; }

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream, void **arguments, void **extra)
{
    char words[64];
    (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared, (void)stream, (void)extra;
    snprintf(words, sizeof words, "kernel %.16s %llu", (char *)function, arguments ? (unsigned long long)*(uint64_t *)arguments[0] : 0ull);
    return does(words);
}

/* Called by the script itself, from outside. */
static int moves(const char *how, int pid)
{
    char words[64];
    struct sockaddr_un to = { .sun_family = AF_UNIX, .sun_path = DRY_SOCKET };
    if (door == -1 && ((door = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) == -1 || connect(door, (void *)&to, sizeof to) == -1))
        return 999;
    snprintf(words, sizeof words, "%s %d", how, pid);
    return does(words);
}
int cuCheckpointProcessLock(int pid, void *args) { return (void)args, moves("lock", pid); }
int cuCheckpointProcessCheckpoint(int pid, void *args) { return (void)args, moves("checkpoint", pid); }
int cuCheckpointProcessRestore(int pid, void *args) { return (void)args, moves("restore", pid); }
int cuCheckpointProcessUnlock(int pid, void *args) { return (void)args, moves("unlock", pid); }
int cuCheckpointProcessGetState(int pid, int *out) { return *out = 0, moves("state", pid); }
