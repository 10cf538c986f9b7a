/* gpu_check.c - see gpu_check.h: the helper. It sees its one GPU and no other (CUDA_VISIBLE_DEVICES), goes around any MPS daemon of the machine,
 * keeps nothing on the disk, and ends itself when it takes too long, since its agent may be gone by then. */
#include "agent/gpu_check.h"
#include "agent/cuda_work.h"
#include "wire/bind.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    PIECES = 4096,
    ENDS_BYTES = 64 << 10,
    MATRIX = 1024,
    PRODUCTS = 8,
    BLOCKS = 2048,
    LOST_SHARE = 64
};
static const size_t piece_bytes = (size_t)1 << 30, least_bytes = (size_t)2 << 20, slack_bytes = (size_t)256 << 20;

/* clang-format off */
static const struct field said_rows[] = {
    FIELD(struct check_said, ok, BOOL),
    FIELD(struct check_said, why, TEXT, .max = 240, .when_set = true),
    FIELD(struct check_said, mib, INT, .min = 0, .max = INT64_C(1) << 40),
    FIELD(struct check_said, of_mib, INT, .min = 0, .max = INT64_C(1) << 40),
    FIELD(struct check_said, ms, INT, .min = 0, .max = INT64_C(1) << 40),
};
const struct fields check_said_fields = FIELDS(check_said, said_rows);
/* clang-format on */

struct checker {
    const char *kind, *uuid, *libcuda, *most_text, *keep_text, *limit_text;
    struct cuda_work c;
    void *fill, *verify, *ramp, *product;
    struct { uint64_t at; size_t bytes; } pieces[PIECES];
    size_t count, taken, total;
};

/* As our own descriptions of calls: `what` could not be done. */
static bool did(int rc, const char *what, struct err *err)
{
    return rc == CUW_OK || err_set(err, RC_UNAVAILABLE, "%s: %s (CUDA %d)", what, cuda_work_words(rc), rc);
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* --- the device */

/* "GPU-8a5f...": what it says of itself must be what was asked for, whatever order devices have. */
static bool is_it(const struct checker *k, const struct cuw_uuid *is)
{
    const char *at = strchr(k->uuid, '-');
    for (size_t i = 0; at && i < sizeof is->at; i++) {
        unsigned byte;
        at += strspn(at, "-");
        if (sscanf(at, "%2x", &byte) != 1 || byte != is->at[i])
            return false;
        at += 2;
    }
    return at != NULL;
}

static bool open_device(struct checker *k, struct err *err)
{
    int count = 0, device = 0;
    void *context;
    struct cuw_uuid uuid = { 0 };
    if (!did(k->c.init(0), "CUDA does not start", err) || !did(k->c.count(&count), "GPUs cannot be counted", err))
        return false;
    if (count != 1)
        return err_set(err, RC_UNAVAILABLE, "CUDA does not find %s", k->uuid);
    if (!did(k->c.device(&device, 0), "it cannot be asked for", err) || !did(k->c.uuid(&uuid, device), "it does not say who it is", err))
        return false;
    if (!is_it(k, &uuid))
        return err_set(err, RC_UNAVAILABLE, "CUDA shows another GPU than %s", k->uuid);
    return did(k->c.retain(&context, device), "it cannot be used", err) && did(k->c.use(context), "it cannot be used", err);
}

static bool load_kernels(struct checker *k, struct err *err)
{
    char text[GPU_KERNELS_BYTES];
    int device = 0, major = 0, minor = 0;
    void *module;
    if (!did(k->c.device(&device, 0), "it cannot be asked for", err) || !did(k->c.attribute(&major, CUW_MAJOR, device), "it does not say what it can", err)
        || !did(k->c.attribute(&minor, CUW_MINOR, device), "it does not say what it can", err))
        return false;
    gpu_kernels(major, minor, text, sizeof text);
    const struct { const char *name; void **to; } all[] = { { "fill", &k->fill }, { "verify", &k->verify }, { "ramp", &k->ramp }, { "product", &k->product } };
    bool ok = did(k->c.module(&module, text), "the test program does not load", err);
    for (size_t i = 0; ok && i < COUNT(all); i++)
        ok = did(k->c.function(all[i].to, module, all[i].name), "the test program does not load", err);
    return ok;
}

/* --- memory */

/* As much as there is, less what is to be left: in large pieces first, since each has a price. A device that has none left is no fault. */
static bool take_memory(struct checker *k, struct err *err)
{
    size_t is_free = 0, piece = piece_bytes, keep = (size_t)strtoll(k->keep_text ? k->keep_text : "0", NULL, 10) << 20;
    long long most = strtoll(k->most_text ? k->most_text : "0", NULL, 10);
    if (!did(k->c.mem_info(&is_free, &k->total), "its memory cannot be asked about", err))
        return false;
    size_t want = is_free > keep ? is_free - keep : 0;
    want = most > 0 ? MIN(want, (size_t)most << 20) : want;
    while (want - k->taken >= least_bytes && piece >= least_bytes && k->count < PIECES) {
        size_t n = MIN(piece, (want - k->taken) / least_bytes * least_bytes);
        uint64_t at = 0;
        int rc = k->c.alloc(&at, n);
        if (rc == CUW_OUT_OF_MEMORY) {
            piece = n / 2 / least_bytes * least_bytes;
            continue;
        }
        if (!did(rc, "its memory cannot be taken", err))
            return false;
        k->pieces[k->count].at = at;
        k->pieces[k->count++].bytes = n;
        k->taken += n;
    }
    size_t lost = MAX(want / LOST_SHARE, slack_bytes);
    return k->taken + lost >= want
           || err_set(err, RC_UNAVAILABLE, "only %zu of %zu MiB of its free memory could be taken", k->taken >> 20, want >> 20);
}

static bool is_zero(struct checker *k, uint64_t at, struct err *err)
{
    static unsigned char bytes[ENDS_BYTES];
    memset(bytes, 0xff, sizeof bytes);
    if (!did(k->c.to_host(bytes, at, sizeof bytes), "its memory cannot be read", err))
        return false;
    for (size_t i = 0; i < sizeof bytes; i++)
        if (bytes[i])
            return err_set(err, RC_UNAVAILABLE, "what was written over its memory is not there");
    return true;
}

static bool scrub(struct checker *k, struct err *err)
{
    bool ok = take_memory(k, err);
    for (size_t i = 0; ok && i < k->count; i++)
        ok = did(k->c.set(k->pieces[i].at, 0, k->pieces[i].bytes / 4), "its memory could not be overwritten", err);
    ok = ok && did(k->c.sync(), "its memory could not be overwritten", err);
    for (size_t i = 0; ok && i < k->count; i++)
        ok = is_zero(k, k->pieces[i].at, err) && is_zero(k, k->pieces[i].at + k->pieces[i].bytes - ENDS_BYTES, err);
    return ok;
}

static bool run(struct checker *k, void *kernel, unsigned x, unsigned y, unsigned bx, unsigned by, void **arguments, struct err *err)
{
    return did(k->c.launch(kernel, x, y, 1, bx, by, 1, 0, NULL, arguments, NULL), "it does not compute", err);
}

static bool read_word(struct checker *k, uint64_t at, uint32_t *out, struct err *err)
{
    return did(k->c.to_host(out, at, sizeof *out), "its memory cannot be read", err);
}

/* All pieces are written before the first is read: what two addresses share shows. The second pass has every bit the other way. */
static bool memory_pass(struct checker *k, uint64_t bad_at, uint32_t seed, struct err *err)
{
    uint32_t bad = 0;
    void *const kernels[] = { k->fill, k->verify };
    for (size_t what = 0; what < COUNT(kernels); what++)
        for (size_t i = 0; i < k->count; i++) {
            uint64_t words = k->pieces[i].bytes / 4;
            uint32_t own = seed ^ (uint32_t)i * 0x85EBCA6Bu;
            void *arguments[] = { &k->pieces[i].at, &words, &own, &bad_at };
            if (!run(k, kernels[what], BLOCKS, 1, GPU_KERNEL_BLOCK, 1, arguments, err))
                return false;
        }
    return did(k->c.sync(), "the memory test failed", err) && read_word(k, bad_at, &bad, err)
           && (!bad || err_set(err, RC_UNAVAILABLE, "%" PRIu32 " words of its memory did not keep what was written", bad));
}

static bool memory_test(struct checker *k, struct err *err)
{
    uint64_t bad_at = 0;
    return did(k->c.alloc(&bad_at, 4096), "its memory cannot be taken", err) && did(k->c.set(bad_at, 0, 1024), "its memory cannot be written", err)
           && take_memory(k, err) && memory_pass(k, bad_at, 0x5bd1e995u, err) && memory_pass(k, bad_at, ~0x5bd1e995u, err);
}

/* --- matrices */

/* a[i][k] = i + k + plus, b[k][j] = 2 k + j; so the sum over k is this, modulo 2^32. */
static uint32_t expected(uint32_t i, uint32_t j, uint32_t plus)
{
    const uint64_t n = MATRIX, sum = n * (n - 1) / 2, squares = (n - 1) * n * (2 * n - 1) / 6;
    return (uint32_t)(n * (i + plus) * j + (2 * (uint64_t)(i + plus) + j) * sum + 2 * squares);
}

static bool product_is(const uint32_t *c, uint32_t plus, struct err *err)
{
    for (uint32_t i = 0; i < MATRIX; i++)
        for (uint32_t j = 0; j < MATRIX; j++)
            if (c[i * MATRIX + j] != expected(i, j, plus))
                return err_set(err, RC_UNAVAILABLE, "a matrix product came out wrong");
    return true;
}

static bool one_product(struct checker *k, uint64_t m[3], uint32_t plus, uint32_t *host, struct err *err)
{
    uint32_t n = MATRIX, one = 1, two = 2, none = 0;
    void *a[] = { &m[0], &n, &one, &one, &plus }, *b[] = { &m[1], &n, &two, &one, &none }, *c[] = { &m[0], &m[1], &m[2], &n };
    return run(k, k->ramp, BLOCKS, 1, GPU_KERNEL_BLOCK, 1, a, err) && run(k, k->ramp, BLOCKS, 1, GPU_KERNEL_BLOCK, 1, b, err)
           && run(k, k->product, MATRIX / GPU_TILE, MATRIX / GPU_TILE, GPU_TILE, GPU_TILE, c, err) && did(k->c.sync(), "the matrix test failed", err)
           && did(k->c.to_host(host, m[2], sizeof *host * MATRIX * MATRIX), "its memory cannot be read", err) && product_is(host, plus, err);
}

static bool matrix_test(struct checker *k, struct err *err)
{
    uint32_t *host = calloc((size_t)MATRIX * MATRIX, sizeof *host);
    uint64_t m[3] = { 0 };
    bool ok = host || err_set(err, RC_INTERNAL, "the node has no memory for the test");
    for (size_t i = 0; ok && i < COUNT(m); i++)
        ok = did(k->c.alloc(&m[i], sizeof *host * MATRIX * MATRIX), "its memory cannot be taken", err);
    for (uint32_t i = 0; ok && i < PRODUCTS; i++)
        ok = one_product(k, m, i * 77, host, err);
    free(host);
    return ok;
}

static bool test(struct checker *k, struct err *err) { return load_kernels(k, err) && matrix_test(k, err) && memory_test(k, err); }

/* --- */

static bool read_flags(int argc, char **argv, struct checker *k)
{
    const struct { const char *flag; const char **to; } flags[] = {
        { "--do", &k->kind },        { "--uuid", &k->uuid },     { "--cuda", &k->libcuda },
        { "--most", &k->most_text }, { "--keep", &k->keep_text }, { "--limit", &k->limit_text },
    };
    for (int i = 1; i + 1 < argc; i += 2) {
        size_t f = 0;
        while (f < COUNT(flags) && !text_is(argv[i], flags[f].flag))
            f++;
        if (f == COUNT(flags))
            return false;
        *flags[f].to = argv[i + 1];
    }
    return argc % 2 == 1 && k->uuid && (text_is(k->kind, "test") || text_is(k->kind, "scrub"));
}

int gpu_check_main(int argc, char **argv)
{
    static struct checker k;
    struct err err = { 0 };
    struct check_said said = { 0 };
    if (!read_flags(argc, argv, &k)) {
        fprintf(stderr, "arcus gpu-check: it is started by the agent\n");
        return 2;
    }
    alarm(k.limit_text ? (unsigned)strtoul(k.limit_text, NULL, 10) : CHECK_LIMIT_MS / 1000);
    setenv("CUDA_VISIBLE_DEVICES", k.uuid, 1);
    setenv("CUDA_CACHE_DISABLE", "1", 1);
    setenv("CUDA_MPS_PIPE_DIRECTORY", "/nonexistent/arcus", 1); /* no daemon is there: what MPS would allow is not all */
    int64_t from = now_ms();
    said.ok = cuda_work_load(k.libcuda, &k.c, &err) && open_device(&k, &err) && (text_is(k.kind, "test") ? test : scrub)(&k, &err);
    said.why = said.ok ? NULL : err.text;
    said.mib = (int64_t)(k.taken >> 20);
    said.of_mib = (int64_t)(k.total >> 20);
    said.ms = now_ms() - from;
    AUTO(str_done) struct str line = { 0 };
    bind_write(&(struct json_out){ .to = &line }, &check_said_fields, &said);
    printf("%s\n", line.at);
    fflush(stdout);
    _exit(said.ok ? 0 : 1); /* a driver that hangs could not be closed; what was taken goes with us */
}
