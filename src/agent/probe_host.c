/* probe_host.c - processors, their cores and NUMA nodes through hwloc, which is loaded by name in the device helper alone: nothing else of the
 * program needs it, and a machine without it tells less. */
#include "agent/probe_host.h"
#include "agent/helper.h"
#include "agent/sysfs.h"
#include <dlfcn.h>
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>

#define FUNCTIONS(X)                                                                                                   \
    X(hwloc_topology_init) X(hwloc_topology_load) X(hwloc_topology_destroy) X(hwloc_get_type_depth) X(hwloc_get_nbobjs_by_depth) \
    X(hwloc_get_obj_by_depth) X(hwloc_bitmap_list_snprintf)

struct hwloc {
#define X(name) __typeof__(&name) name;
    FUNCTIONS(X)
#undef X
};

static bool load(struct hwloc *out)
{
    static const struct { const char *name; size_t at; } all[] = {
#define X(name) { #name, offsetof(struct hwloc, name) },
        FUNCTIONS(X)
#undef X
    };
    void *lib = dlopen("libhwloc.so.15", RTLD_NOW | RTLD_LOCAL);
    bool ok = lib != NULL;
    for (size_t i = 0; ok && i < COUNT(all); i++) {
        void *fn = dlsym(lib, all[i].name);
        memcpy((char *)out + all[i].at, &fn, sizeof fn);
        ok = fn != NULL;
    }
    return ok;
}

static int64_t count_of(const struct hwloc *h, hwloc_topology_t t, hwloc_obj_type_t type)
{
    int depth = h->hwloc_get_type_depth(t, type);
    return depth == HWLOC_TYPE_DEPTH_UNKNOWN ? 0 : (int64_t)h->hwloc_get_nbobjs_by_depth(t, depth);
}

static const char *model_of(const struct hwloc *h, hwloc_topology_t t, struct arena *mem)
{
    int depth = h->hwloc_get_type_depth(t, HWLOC_OBJ_PACKAGE);
    hwloc_obj_t package = depth == HWLOC_TYPE_DEPTH_UNKNOWN ? NULL : h->hwloc_get_obj_by_depth(t, depth, 0);
    for (unsigned i = 0; package && i < package->infos_count; i++)
        if (text_is(package->infos[i].name, "CPUModel"))
            return arena_printf(mem, "%.120s", package->infos[i].value);
    return NULL;
}

static void find_numas(const struct hwloc *h, hwloc_topology_t t, struct arena *mem, struct node_info *out)
{
    unsigned count = h->hwloc_get_nbobjs_by_depth(t, HWLOC_TYPE_DEPTH_NUMANODE);
    struct numa_info *numas = ARENA_ARRAY(mem, struct numa_info, NODE_NUMAS);
    char cpus[1000];
    out->numas = (struct objects){ numas, 0 };
    for (unsigned i = 0; i < count && out->numas.count < NODE_NUMAS; i++) {
        hwloc_obj_t o = h->hwloc_get_obj_by_depth(t, HWLOC_TYPE_DEPTH_NUMANODE, i);
        if (!o || h->hwloc_bitmap_list_snprintf(cpus, sizeof cpus, o->cpuset) >= (int)sizeof cpus)
            continue;
        numas[out->numas.count++] = (struct numa_info){ .node = o->os_index, .cpus = arena_text(mem, cpus),
                                                        .mem_mib = (int64_t)(o->attr->numanode.local_memory >> 20) };
    }
}

/* Where there is one node it has all the memory; what a virtual machine was given after its start is not always counted there. */
static void settle_memory(const char *sys, struct node_info *out)
{
    char path[SYSFS_PATH];
    long long kib = 0;
    snprintf(path, sizeof path, "%s/../proc/meminfo", sys);
    FILE *f = out->numas.count == 1 ? fopen(path, "re") : NULL;
    if (f && fscanf(f, "MemTotal: %lld kB", &kib) == 1 && kib > 0)
        ((struct numa_info *)out->numas.at)->mem_mib = kib / 1024;
    if (f)
        fclose(f);
}

/* hwloc reads below a root of its own, by this one variable. */
static void move_root(const char *sys, struct arena *mem)
{
    if (text_is(sys, "/sys"))
        return;
    char *root = arena_text(mem, sys), *slash = strrchr(root, '/');
    if (slash && slash != root) {
        *slash = 0;
        setenv("HWLOC_FSROOT", root, 1);
        setenv("HWLOC_THISSYSTEM", "0", 1);
    }
}

void probe_host(const char *sys, struct arena *mem, struct node_info *out)
{
    struct hwloc h;
    hwloc_topology_t t;
    if (!load(&h)) {
        helper_cannot(out, mem, "processors and NUMA nodes are not told: hwloc is not there (Debian: apt-get install libhwloc15)");
        return;
    }
    setenv("HWLOC_HIDE_ERRORS", "2", 1);        /* what it cannot tell is seen by what is missing */
    move_root(sys, mem);
    if (h.hwloc_topology_init(&t) != 0)
        return;
    if (h.hwloc_topology_load(t) == 0) {
        out->sockets = count_of(&h, t, HWLOC_OBJ_PACKAGE);
        out->cores = count_of(&h, t, HWLOC_OBJ_CORE);
        out->cpu_model = model_of(&h, t, mem);
        find_numas(&h, t, mem, out);
        settle_memory(sys, out);
    }
    h.hwloc_topology_destroy(t);
}
