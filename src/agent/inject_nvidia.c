/* inject_nvidia.c - our own look at NVIDIA's driver, for a node without CDI specs: which nodes a GPU needs, and which files are the driver's.
 *
 * The driver's libraries must be of exactly the version of its kernel module, so an image cannot bring them: those of the node
 * are used. They are known by name, from the folder in which libcuda or libnvidia-ml lies; what is asked for (NVIDIA_DRIVER_CAPABILITIES) decides which. */
#include "agent/inject_internal.h"
#include "agent/nvidia_proc.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
    const char *word;
    unsigned bit;
} capabilities[] = {
    { "utility", DRIVER_UTILITY }, { "compute", DRIVER_COMPUTE }, { "graphics", DRIVER_GRAPHICS }, { "video", DRIVER_VIDEO },
    { "display", DRIVER_DISPLAY }, { "ngx", DRIVER_NGX },         { "all", ~0u },
};

static const char *const folders[] = {
    "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/lib/wsl/lib", DRIVER_FOLDER "/lib64", "/usr/local/lib",
};
static const char *const first_of_all[] = { "libcuda.so.1", "libnvidia-ml.so.1" };

/* Without .so and version. */
static const struct {
    const char *stem;
    unsigned of;
} libraries[] = {
    { "libnvidia-ml", DRIVER_UTILITY },
    { "libnvidia-cfg", DRIVER_UTILITY },
    { "libnvidia-nscq", DRIVER_UTILITY },
    { "libnvidia-sandboxutils", DRIVER_UTILITY },
    { "libcuda", DRIVER_COMPUTE },
    { "libcudadebugger", DRIVER_COMPUTE },
    { "libnvidia-opencl", DRIVER_COMPUTE },
    { "libnvidia-gpucomp", DRIVER_COMPUTE | DRIVER_GRAPHICS },
    { "libnvidia-ptxjitcompiler", DRIVER_COMPUTE },
    { "libnvidia-fatbinaryloader", DRIVER_COMPUTE },
    { "libnvidia-allocator", DRIVER_COMPUTE | DRIVER_GRAPHICS },
    { "libnvidia-compiler", DRIVER_COMPUTE },
    { "libnvidia-nvvm", DRIVER_COMPUTE },
    { "libnvidia-nvvm70", DRIVER_COMPUTE },
    { "libnvidia-tileiras", DRIVER_COMPUTE },
    { "libnvidia-pkcs11", DRIVER_COMPUTE },
    { "libnvidia-pkcs11-openssl3", DRIVER_COMPUTE },
    { "libnvcuvid", DRIVER_VIDEO },
    { "libnvidia-encode", DRIVER_VIDEO },
    { "libnvidia-opticalflow", DRIVER_VIDEO },
    { "libvdpau_nvidia", DRIVER_VIDEO },
    { "libGLX_nvidia", DRIVER_GRAPHICS },
    { "libEGL_nvidia", DRIVER_GRAPHICS },
    { "libGLESv2_nvidia", DRIVER_GRAPHICS },
    { "libGLESv1_CM_nvidia", DRIVER_GRAPHICS },
    { "libnvidia-eglcore", DRIVER_GRAPHICS },
    { "libnvidia-glcore", DRIVER_GRAPHICS },
    { "libnvidia-glsi", DRIVER_GRAPHICS },
    { "libnvidia-tls", DRIVER_GRAPHICS },
    { "libnvidia-fbc", DRIVER_GRAPHICS },
    { "libnvidia-rtcore", DRIVER_GRAPHICS },
    { "libnvidia-glvkspirv", DRIVER_GRAPHICS },
    { "libnvidia-egl-gbm", DRIVER_GRAPHICS },
    { "libnvidia-egl-wayland", DRIVER_GRAPHICS },
    { "libnvidia-vulkan-producer", DRIVER_GRAPHICS },
    { "libnvoptix", DRIVER_GRAPHICS },
    { "libnvidia-ngx", DRIVER_NGX },
};
static const struct {
    const char *name;
    unsigned of;
} programs[] = {
    { "nvidia-smi", DRIVER_UTILITY },
    { "nvidia-debugdump", DRIVER_UTILITY },
};
static const char *const program_folders[] = { DRIVER_FOLDER "/bin", "/usr/bin" };
/* For every GPU; the first two are there as long as the driver is loaded, the others where somebody asked for them. */
static const struct {
    const char *path;
    unsigned of;
    bool optional;
} nodes[] = {
    { "/dev/nvidiactl", ~0u, false },
    { "/dev/nvidia-uvm", DRIVER_COMPUTE, false },
    { "/dev/nvidia-uvm-tools", DRIVER_COMPUTE, true },
    { "/dev/nvidia-modeset", DRIVER_GRAPHICS | DRIVER_DISPLAY, true },
};

unsigned driver_capabilities(const char *text)
{
    unsigned bits = 0;
    for (const char *at = text; at && *at;) {
        size_t n = strcspn(at, ",");
        for (size_t i = 0; i < COUNT(capabilities); i++)
            if (strlen(capabilities[i].word) == n && strncmp(at, capabilities[i].word, n) == 0)
                bits |= capabilities[i].bit;
        at += n + (at[n] == ',');
    }
    return bits ? bits : DRIVER_COMPUTE | DRIVER_UTILITY;
}

/* --- the driver's files */

static unsigned library_of(const char *name)
{
    for (size_t i = 0; i < COUNT(libraries); i++) {
        size_t n = strlen(libraries[i].stem);
        if (strncmp(name, libraries[i].stem, n) == 0 && strncmp(name + n, ".so", 3) == 0 && (name[n + 3] == 0 || name[n + 3] == '.'))
            return libraries[i].of;
    }
    return 0;
}

static const char *library_folder(const struct inject *in, struct arena *mem)
{
    struct stat st;
    for (size_t k = 0; k < COUNT(first_of_all); k++)
        for (size_t i = 0; i < COUNT(folders); i++) {
            const char *folder = in_root(in, mem, folders[i]);
            if (stat(arena_printf(mem, "%s/%s", folder, first_of_all[k]), &st) == 0 && S_ISREG(st.st_mode))
                return folder;
        }
    return NULL;
}

uint64_t driver_stamp(const struct inject *in)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    const char *folder = library_folder(in, mem);
    struct stat st;
    return folder && stat(folder, &st) == 0 ? (uint64_t)st.st_ino ^ (uint64_t)st.st_mtim.tv_sec << 20 ^ (uint64_t)st.st_mtim.tv_nsec : 0;
}

static void take_library(struct inject *in, const char *folder, const char *name, unsigned of)
{
    struct driver *d = &in->driver;
    const char *path = arena_printf(in->mem, "%s/%s", folder, name);
    char says[256], real[PATH_MAX];
    if (d->count == LIBRARIES_MOST || !realpath(path, real))
        return;
    ssize_t n = readlink(path, says, sizeof says - 1);
    says[MAX(n, 0)] = 0;
    bool beside = n > 0 && !strchr(says, '/') && library_of(says);
    d->files[d->count++] = (struct driver_file){ .name = arena_text(in->mem, name), .source = arena_text(in->mem, real), .of = of,
                                                 .says = beside ? arena_text(in->mem, says) : NULL };
    const char *slash = strrchr(real, '/'), *so = strstr(slash, ".so.");
    if (text_is(name, first_of_all[0]) && so && strchr(so + 4, '.'))
        d->version = arena_text(in->mem, so + 4);
}

/* A script of the node around the program would look for things that an image has not. */
static bool is_program(const char *path)
{
    char magic[4] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool ok = fd != -1 && read(fd, magic, 4) == 4 && memcmp(magic, "\177ELF", 4) == 0;
    if (fd != -1)
        close(fd);
    return ok;
}

static void take_program(struct inject *in, const char *name, unsigned of)
{
    struct driver *d = &in->driver;
    for (size_t i = 0; i < COUNT(program_folders); i++) {
        const char *path = arena_printf(in->mem, "%s%s/%s", in->root, program_folders[i], name);
        if (!is_program(path))
            continue;
        d->files[d->count++] = (struct driver_file){ .name = name, .source = path, .of = of, .program = true };
        return;
    }
}

static void find_firmware(struct inject *in)
{
    struct driver *d = &in->driver;
    const char *folder = d->version ? arena_printf(in->mem, "/lib/firmware/nvidia/%s", d->version) : NULL;
    DIR *dir = folder ? opendir(in_root(in, in->mem, folder)) : NULL;
    for (struct dirent *e; dir && d->firmware_count < LIBRARIES_MOST && (e = readdir(dir));)
        if (e->d_name[0] != '.' && strstr(e->d_name, ".bin"))
            d->firmware[d->firmware_count++] = arena_printf(in->mem, "%s/%s", folder, e->d_name);
    if (dir)
        closedir(dir);
}

void driver_find(struct inject *in)
{
    struct driver *d = &in->driver;
    *d = (struct driver){ 0 };
    const char *folder = library_folder(in, in->mem);
    DIR *dir = folder ? opendir(folder) : NULL;
    for (struct dirent *e; dir && (e = readdir(dir));) {
        unsigned of = library_of(e->d_name);
        if (of)
            take_library(in, folder, e->d_name, of);
    }
    if (dir)
        closedir(dir);
    d->found = d->count > 0;
    for (size_t i = 0; i < COUNT(programs) && d->count < LIBRARIES_MOST; i++)
        take_program(in, programs[i].name, programs[i].of);
    find_firmware(in);
}

bool nvidia_driver(struct gather *g, struct err *err)
{
    const struct driver *d = &g->in->driver;
    if (g->host || g->driver) /* it is there, or was taken already */
        return true;
    g->driver = true;
    if (!d->found)
        return err_set(err, RC_UNAVAILABLE, "the driver's libraries were not found: neither %s nor %s is in a usual folder", first_of_all[0], first_of_all[1]);
    for (size_t i = 0; i < d->count; i++) {
        const struct driver_file *f = &d->files[i];
        if (!(f->of & g->capabilities) || f->says)
            continue;
        g->programs = g->programs || f->program;
        if (!gather_file(g, f->source, arena_printf(g->mem, "%s/%s/%s", DRIVER_FOLDER, f->program ? "bin" : "lib64", f->name), false, err))
            return false;
    }
    for (size_t i = 0; i < d->count; i++)
        if (d->files[i].of & g->capabilities && d->files[i].says && !gather_link(g, d->files[i].name, d->files[i].says, err))
            return false;
    for (size_t i = 0; i < d->firmware_count; i++)
        if (!gather_file(g, in_root(g->in, g->mem, d->firmware[i]), d->firmware[i], true, err))
            return false;
    return gather_folder(g, DRIVER_FOLDER "/lib64", err);
}

/* --- a GPU's node */

/* "DeviceFileMinor: 12": who may open /dev/nvidia-caps/nvidia-cap12 may use what the folder is named after. */
static bool capability_gather(struct gather *g, const char *what, struct err *err)
{
    char text[NVIDIA_PROC_BYTES], number[16];
    const char *path = arena_printf(g->mem, "%s/proc/driver/nvidia/capabilities/%s/access", g->in->root, what);
    if (!nvidia_proc_read(path, text) || !nvidia_proc_value(text, "DeviceFileMinor:", number, sizeof number) || strspn(number, "0123456789") != strlen(number))
        return err_set(err, RC_UNAVAILABLE, "the driver does not tell the node of its MIG instance (%s)", path);
    const char *node = arena_printf(g->mem, "/dev/nvidia-caps/nvidia-cap%s", number);
    return gather_node(g, in_root(g->in, g->mem, node), node, false, err);
}

/* ids: "1/0". A GPU is known there by the number of its node. */
static bool mig_gather(struct gather *g, const char *device, const char *ids, struct err *err)
{
    unsigned gpu, instance, part;
    if (!ids || sscanf(device, "/dev/nvidia%u", &gpu) != 1 || sscanf(ids, "%u/%u", &instance, &part) != 2)
        return err_set(err, RC_UNAVAILABLE, "the numbers of its MIG instance are not known");
    return capability_gather(g, arena_printf(g->mem, "gpu%u/mig/gi%u", gpu, instance), err)
           && capability_gather(g, arena_printf(g->mem, "gpu%u/mig/gi%u/ci%u", gpu, instance, part), err);
}

bool nvidia_gather(struct gather *g, const struct inject_gpu *gpu, const struct mig *mig, struct err *err)
{
    const char *device = gpu->device;
    if (!device)
        return err_set(err, RC_UNAVAILABLE, "its driver does not tell which /dev/nvidiaN it is");
    for (size_t i = 0; i < COUNT(nodes); i++)
        if (nodes[i].of & g->capabilities && !gather_node(g, in_root(g->in, g->mem, nodes[i].path), nodes[i].path, nodes[i].optional, err))
            return err_wrap(err, "is the driver loaded (nvidia-modprobe -u -c 0)?");
    return gather_node(g, in_root(g->in, g->mem, device), device, false, err) && (!mig || mig_gather(g, device, mig->ids, err)) && nvidia_driver(g, err);
}
