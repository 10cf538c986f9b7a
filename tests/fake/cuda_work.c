/* cuda_work.c - a libcuda.so.1 without a driver, for tests of what is done on a GPU: its memory is a file that outlives the process, so that a test can
 * put something there and look what became of it. What it does is in $FAKE_CUDA, or cuda.conf in the folder of the library, read at every call. WHO is
 * a UUID or *. Lines:
 *
 *   mem MIB | used MIB | most MIB      how much there is (16), how much of it others hold (0), how much can be taken at most (all)
 *   gone 0 WHO                         the device is not there
 *   fail CALL WHO RC [TIMES]           that call answers RC (TIMES times, else always): init, device, retain, alloc, set, sync, read, module, launch
 *   hang CALL WHO | slow CALL WHO MS   that call hangs until the line is gone, or takes so long
 *   flip 0 WHO N | wrong 0 WHO N       N words of memory do not keep what is written; N products are wrong
 *
 * FILE.UUID.mem is the memory, FILE.log has a line "CALL UUID RC" of each call named above. */
#include "agent/cuda_work.h"
#include "conf.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { LINE = 256, BAD = 1, NOT_STARTED = 3 };
static char *memory;
static size_t taken;
static bool begun;
static const char *const kernels[] = { "fill", "verify", "ramp", "product" };

void cuda_work_begin(void);

static const char *path_of(void) { return conf_path("FAKE_CUDA", "cuda.conf"); }

static const char *self(void) { return getenv("CUDA_VISIBLE_DEVICES") ? getenv("CUDA_VISIBLE_DEVICES") : "none"; }

/* The last line "WORD CALL WHO rest" that is about this call; false: there is none. */
static bool said(const char *word, const char *call, long rest[static 2])
{
    FILE *f = fopen(path_of(), "re");
    char line[LINE], w[32], c[32], who[128];
    bool found = false;
    while (f && fgets(line, sizeof line, f)) {
        long a = 0, b = 0;
        if (sscanf(line, "%31s %31s %127s %ld %ld", w, c, who, &a, &b) < 3 || strcmp(w, word) != 0 || strcmp(c, call) != 0
            || (strcmp(who, "*") != 0 && strcmp(who, self()) != 0))
            continue;
        rest[0] = a, rest[1] = b;
        found = true;
    }
    if (f)
        fclose(f);
    return found;
}

static size_t mib_of(const char *word, long otherwise)
{
    FILE *f = fopen(path_of(), "re");
    char line[LINE], w[32];
    long n = otherwise, v;
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "%31s %ld", w, &v) == 2 && strcmp(w, word) == 0)
            n = v;
    if (f)
        fclose(f);
    return (size_t)n << 20;
}

static int times(const char *call, long rc)
{
    char path[4200], line[LINE], want[LINE];
    int n = 0;
    snprintf(path, sizeof path, "%s.log", path_of());
    snprintf(want, sizeof want, "%s %.128s %ld\n", call, self(), rc);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        n += strcmp(line, want) == 0;
    if (f)
        fclose(f);
    return n;
}

static int note(const char *call, int rc)
{
    char path[4200];
    snprintf(path, sizeof path, "%s.log", path_of());
    FILE *f = fopen(path, "ae");
    if (f) {
        fprintf(f, "%s %s %d\n", call, self(), rc);
        fclose(f);
    }
    return rc;
}

static void pause_ms(long ms) { nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 }, NULL); }

static int fate(const char *call)
{
    long rest[2] = { 0 };
    while (said("hang", call, rest))
        pause_ms(20);
    if (said("slow", call, rest))
        pause_ms(rest[0]);
    if (strcmp(call, "init") != 0 && !begun)
        return note(call, NOT_STARTED);
    bool fails = said("fail", call, rest) && (!rest[1] || times(call, rest[0]) < rest[1]);
    return note(call, fails ? (int)rest[0] : CUW_OK);
}

#define X(member, symbol, arguments) int symbol arguments;
CUDA_WORK_FUNCTIONS(X)
#undef X

void cuda_work_begin(void) { begun = true; }

__attribute__((weak)) int cuInit(unsigned flags)    /* linked with cuda.c, that one's counts */
{
    int rc = fate("init");
    (void)flags;
    begun = rc == CUW_OK;
    return rc;
}

int cuDeviceGetCount(int *out)
{
    long rest[2];
    *out = !said("gone", "0", rest);
    return CUW_OK;
}

int cuDeviceGet(int *out, int ordinal)
{
    *out = ordinal;
    return fate("device");
}

int cuDeviceGetUuid_v2(struct cuw_uuid *out, int device)
{
    const char *at = strchr(self(), '-');
    (void)device;
    for (size_t i = 0; at && i < sizeof out->at; i++) {
        unsigned byte = 0;
        at += strspn(at, "-");
        if (sscanf(at, "%2x", &byte) != 1)
            return BAD;
        out->at[i] = (unsigned char)byte;
        at += 2;
    }
    return at ? CUW_OK : BAD;
}

int cuDeviceGetAttribute(int *out, int which, int device)
{
    (void)device;
    *out = which == CUW_MAJOR ? 9 : 0;
    return CUW_OK;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    char path[4400];
    int rc = fate("retain");
    (void)device;
    if (rc != CUW_OK)
        return rc;
    snprintf(path, sizeof path, "%s.%.128s.mem", path_of(), self());
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd == -1 || ftruncate(fd, (off_t)mib_of("mem", 16)) == -1)
        return BAD;
    memory = mmap(NULL, mib_of("mem", 16), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    *context = memory;
    taken = mib_of("used", 0);
    return memory == MAP_FAILED ? BAD : CUW_OK;
}

int cuCtxSetCurrent(void *context) { return context ? CUW_OK : BAD; }
int cuCtxSynchronize(void) { return fate("sync"); }

int cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    *total = mib_of("mem", 16);
    *free_bytes = *total - taken;
    return CUW_OK;
}

int cuMemAlloc_v2(uint64_t *out, size_t bytes)
{
    int rc = fate("alloc");
    if (rc != CUW_OK)
        return rc;
    bytes = (bytes + 4095) & ~(size_t)4095;
    if (bytes > mib_of("mem", 16) - taken || taken + bytes > mib_of("most", 1 << 20))
        return CUW_OUT_OF_MEMORY;
    *out = (uint64_t)(uintptr_t)(memory + taken);
    taken += bytes;
    return CUW_OK;
}

int cuMemsetD32_v2(uint64_t at, unsigned value, size_t count)
{
    int rc = fate("set");
    uint32_t *to = (uint32_t *)(uintptr_t)at;
    for (size_t i = 0; rc == CUW_OK && i < count; i++)
        to[i] = value;
    return rc;
}

int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes)
{
    int rc = fate("read");
    if (rc == CUW_OK)
        memcpy(to, (void *)(uintptr_t)from, bytes);
    return rc;
}

int cuModuleLoadData(void **out, const void *image)
{
    *out = (void *)(uintptr_t)image;
    return strstr(image, ".entry product") ? fate("module") : BAD;
}

int cuModuleGetFunction(void **out, void *module, const char *name)
{
    (void)module;
    for (size_t i = 0; i < COUNT(kernels); i++)
        if (strcmp(kernels[i], name) == 0)
            return *out = (void *)(uintptr_t)(i + 1), CUW_OK;
    return BAD;
}

static uint32_t word_of(uint64_t i, uint32_t seed) { return (uint32_t)i * 0x9E3779B1u ^ (uint32_t)(i >> 32) ^ seed; }

static void fill(uint32_t *at, uint64_t n, uint32_t seed)
{
    long flips[2] = { 0 };
    for (uint64_t i = 0; i < n; i++)
        at[i] = word_of(i, seed);
    if (said("flip", "0", flips))
        for (uint64_t i = 0; i < n && i < (uint64_t)flips[0]; i++)
            at[i] ^= 4;
}

static void verify(const uint32_t *at, uint64_t n, uint32_t seed, uint32_t *bad)
{
    for (uint64_t i = 0; i < n; i++)
        *bad += at[i] != word_of(i, seed);
}

static void ramp(uint32_t *at, uint32_t n, uint32_t row, uint32_t column, uint32_t plus)
{
    for (uint32_t r = 0; r < n; r++)
        for (uint32_t c = 0; c < n; c++)
            at[(size_t)r * n + c] = r * row + c * column + plus;
}

/* Of ramps, so that it need not be multiplied out. */
static void product(const uint32_t *a, const uint32_t *b, uint32_t *c, uint32_t n)
{
    long wrong[2] = { 0 };
    uint32_t sum = (uint32_t)((uint64_t)n * (n - 1) / 2), squares = (uint32_t)((uint64_t)(n - 1) * n * (2 * (uint64_t)n - 1) / 6);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++) {
            uint32_t a0 = a[(size_t)i * n], da = a[(size_t)i * n + 1] - a0, b0 = b[j], db = b[n + j] - b0;
            c[(size_t)i * n + j] = n * a0 * b0 + (a0 * db + b0 * da) * sum + da * db * squares;
        }
    if (said("wrong", "0", wrong))
        for (long i = 0; i < wrong[0]; i++)
            c[(size_t)(n - 1) * n + (size_t)i]++;
}

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream, void **arguments, void **extra)
{
    int rc = fate("launch");
    (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared, (void)stream, (void)extra;
    if (rc != CUW_OK)
        return rc;
#define POINTER(k) ((uint32_t *)(uintptr_t) * (uint64_t *)arguments[k])
#define NUMBER(k) (*(uint32_t *)arguments[k])
    switch ((uintptr_t)function) {
    case 1: fill(POINTER(0), *(uint64_t *)arguments[1], NUMBER(2)); break;
    case 2: verify(POINTER(0), *(uint64_t *)arguments[1], NUMBER(2), POINTER(3)); break;
    case 3: ramp(POINTER(0), NUMBER(1), NUMBER(2), NUMBER(3), NUMBER(4)); break;
    case 4: product(POINTER(0), POINTER(1), POINTER(2), NUMBER(3)); break;
    default: return BAD;
    }
    return CUW_OK;
}
