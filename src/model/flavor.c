/* flavor.c - names of standard shapes: h200.1x, h200.share-250, h200.mig-1g.18gb, cpu.4x16 (CPUs x GB).
 *
 * A name is made from a shape and read back to one. It says what a price hangs on, so it leaves out what no price knows: the CPUs
 * and the memory beside a GPU, and everything below a whole CPU or GB, which is rounded up. */
#include "base/err.h"
#include "base/when.h"
#include "model/job.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

/* "NVIDIA GeForce RTX 4090" -> "rtx4090": words up to the first with a digit, without those that every card has. */
static void short_model(const char *model, char *out, size_t room)
{
    static const char *const noise[]
        = { "nvidia", "amd", "tesla", "geforce", "instinct", "simulated", "sim" };
    size_t n = 0;
    bool digit = false;
    while (*model && !digit) {
        size_t len = 0;
        while (isalnum((unsigned char)model[len]))
            len++;
        bool skip = !len;
        for (size_t i = 0; i < COUNT(noise); i++)
            skip = skip || (strlen(noise[i]) == len && strncasecmp(noise[i], model, len) == 0);
        for (size_t i = 0; !skip && i < len && n + 1 < room; i++) {
            out[n++] = (char)tolower((unsigned char)model[i]);
            digit = digit || isdigit((unsigned char)model[i]);
        }
        model += len ? len : 1;
    }
    out[n] = 0;
}

/* Of each job without a GPU, and so by hand. */
static void cpu_name(uint64_t cpus, uint64_t gib, char out[static 48])
{
    char text[48], *p = text + sizeof text - 1;
    *p = 0;
    p = text_digits(p, gib);
    *--p = 'x';
    p = text_digits(p, cpus);
    memcpy(p -= 4, "cpu.", 4);
    strcpy(out, p);
}

const char *flavor_of(const struct shape *shape, const char *gpu_model, char out[static 48])
{
    char model[20] = "";
    const struct gpu_ask *g = &shape->gpu;
    short_model(text_given(gpu_model) ? gpu_model : g->model, model, sizeof model);
    if (!model[0])
        memcpy(model, "gpu", 4);
    if (g->mig[0])
        snprintf(out, 48, "%s.mig-%s", model, g->mig);
    else if (g->milli >= 1000)
        snprintf(out, 48, "%s.%lldx", model, (long long)(g->milli / 1000));
    else if (g->milli)
        snprintf(out, 48, "%s.share-%lld", model, (long long)g->milli);
    else
        cpu_name((uint64_t)(shape->cpu_milli + 999) / 1000, (uint64_t)(shape->mem_mib + 1023) / 1024, out);
    return out;
}

static bool number(const char **p, int64_t most, int64_t *out)
{
    int64_t n = 0;
    const char *from = *p;
    for (; isdigit((unsigned char)**p) && n <= most; (*p)++)
        n = n * 10 + (**p - '0');
    return *out = n, *p > from && n >= 1 && n <= most;
}

static bool cpu_flavor(const char *rest, struct shape *out)
{
    int64_t cpus, gb;
    if (!number(&rest, 4096, &cpus) || *rest++ != 'x' || !number(&rest, 64 << 10, &gb) || *rest)
        return false;
    out->cpu_milli = cpus * 1000;
    out->mem_mib = gb * 1024;
    return true;
}

static bool gpu_flavor(const char *rest, struct shape *out)
{
    int64_t n;
    if (text_starts(rest, "mig-"))
        return mig_parse(rest + 4, &out->gpu);
    bool share = text_starts(rest, "share-");
    rest += share ? 6 : 0;
    if (!number(&rest, share ? 999 : JOB_GPUS_MAX, &n) || (!share && *rest++ != 'x') || *rest)
        return false;
    out->gpu.milli = share ? n : n * 1000;
    return true;
}

bool flavor_parse(const char *text, struct shape *out, struct err *err)
{
    struct shape shape = { 0 };
    const char *dot = strchr(text, '.');
    size_t n = dot ? (size_t)(dot - text) : 0;
    bool cpu = n == 3 && strncmp(text, "cpu", 3) == 0, any = n == 3 && strncmp(text, "gpu", 3) == 0;
    if (!n || n >= sizeof shape.gpu.model
        || !(cpu ? cpu_flavor(dot + 1, &shape) : gpu_flavor(dot + 1, &shape)))
        return err_field(err, "flavor",
                         "flavor: '%.47s' is not one; they look like h200.1x, h200.share-250 or "
                         "cpu.4x16 (see `arcus flavors`)",
                         text);
    for (size_t i = 0; i < n && !cpu && !any; i++) {
        if (!isalnum((unsigned char)text[i]))
            return err_field(err, "flavor",
                             "flavor: '%.*s' is not the short name of a GPU, such as h200", (int)n,
                             text);
        shape.gpu.model[i] = text[i];
    }
    *out = shape;
    return true;
}
