/* A driver that is not there: its nodes (numbers of harmless devices), its /proc and its libraries in a folder of ours. */
#include "agent/inject.h"
#include "agent/tree.h"
#include "base/fault.h"
#include "model/order.h"
#include "tap.h"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

struct fake { char root[64]; struct arena *mem; struct inject *in; struct err err; struct injection give; };

static const char *at(struct fake *f, const char *path) { return arena_printf(f->mem, "%s%s", f->root, path); }

static void folder(struct fake *f, const char *path)
{
    char *full = arena_text(f->mem, at(f, path));
    for (char *p = full + strlen(f->root) + 1; (p = strchr(p, '/')); *p++ = '/') {
        *p = 0;
        mkdir(full, 0755);
    }
    mkdir(full, 0755);
}

static void put(struct fake *f, const char *path, const char *text)
{
    char *parent = arena_text(f->mem, path);
    *strrchr(parent, '/') = 0;
    folder(f, parent);
    int fd = open(at(f, path), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
    CHECK(fd != -1 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && fchmod(fd, 0755) == 0);
    close(fd);
}

static bool node(struct fake *f, const char *path, int major_, int minor_)
{
    return mknod(at(f, path), S_IFCHR | 0666, makedev(major_, minor_)) == 0;
}

static void know_two(struct fake *f, const char *cdi)
{
    static const struct inject_gpu two[] = { { .uuid = "GPU-aaa", .vendor = "nvidia", .device = "/dev/nvidia1", .pci = "0000:18:00.0" },
                                             { .index = 1, .uuid = "GPU-bbb", .vendor = "nvidia", .device = "/dev/nvidia0", .pci = "0000:2a:00.0" } };
    inject_free(f->in);
    f->in = inject_new(&(struct inject_config){ .cdi = cdi, .root = f->root });
    inject_know(f->in, two, COUNT(two));
}

static bool fake_open(struct fake *f, const char *cdi)
{
    *f = (struct fake){ .root = "/tmp/arcus-driver-XXXXXX", .mem = arena_new() };
    CHECK(mkdtemp(f->root) != NULL && chmod(f->root, 0755) == 0);
    folder(f, "/dev");
    if (geteuid() != 0 || !node(f, "/dev/nvidiactl", 1, 3)) {
        test_skip("device nodes need root");
        rmdir(at(f, "/dev"));
        rmdir(f->root);
        arena_free(f->mem);
        return false;
    }
    CHECK(node(f, "/dev/nvidia0", 1, 5) && node(f, "/dev/nvidia1", 1, 7) && node(f, "/dev/nvidia-uvm", 1, 8) && node(f, "/dev/kfd", 1, 9));
    static const char *const files[] = { "libcuda.so.580.1.2", "libnvidia-ml.so.580.1.2", "libnvcuvid.so.580.1.2", "libc.so.6", "libcudart.so.13", "libnvidia-glcore.so.580.1.2" };
    for (size_t i = 0; i < COUNT(files); i++)
        put(f, arena_printf(f->mem, "/usr/lib/x86_64-linux-gnu/%s", files[i]), "elf");
    CHECK(symlink("libcuda.so.580.1.2", at(f, "/usr/lib/x86_64-linux-gnu/libcuda.so.1")) == 0 && symlink("libcuda.so.1", at(f, "/usr/lib/x86_64-linux-gnu/libcuda.so")) == 0
          && symlink("libnvidia-ml.so.580.1.2", at(f, "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1")) == 0);
    put(f, "/usr/bin/nvidia-smi", "\177ELF");
    put(f, "/usr/bin/nvidia-debugdump", "#!/bin/sh\n");
    put(f, "/lib/firmware/nvidia/580.1.2/gsp_ga10x.bin", "firmware");
    know_two(f, cdi);
    return true;
}

static void fake_close(struct fake *f)
{
    struct err err = { 0 };
    inject_free(f->in);
    CHECK(tree_remove(f->root, &err));
    arena_free(f->mem);
}

static bool give(struct fake *f, const char *uuid, bool host, const char *capabilities)
{
    struct order_gpu one = { .uuid = uuid, .milli = 1000 };
    f->err = (struct err){ 0 };
    f->give = (struct injection){ 0 };
    return inject_for(f->in, &(struct objects){ &one, 1 }, host, capabilities, f->mem, &f->give, &f->err);
}

static const struct plan_node *has_node(const struct injection *g, const char *path)
{
    const struct plan_node *n = g->nodes.at;
    for (size_t i = 0; i < g->nodes.count; i++)
        if (text_is(n[i].path, path))
            return &n[i];
    return NULL;
}
static const struct plan_file *has_file(const struct injection *g, const char *path)
{
    const struct plan_file *n = g->files.at;
    for (size_t i = 0; i < g->files.count; i++)
        if (text_is(n[i].path, path))
            return &n[i];
    return NULL;
}
static const char *has_link(const struct injection *g, const char *path)
{
    const struct plan_link *n = g->links.at;
    for (size_t i = 0; i < g->links.count; i++)
        if (text_is(n[i].path, path))
            return n[i].says;
    return NULL;
}

TEST(without_specs_a_gpu_gets_its_own_node_and_the_drivers_files)
{
    struct fake f;
    if (!fake_open(&f, "auto"))
        return;
    CHECK(give(&f, "GPU-aaa", false, NULL));
    const struct plan_node *n = has_node(&f.give, "/dev/nvidia1");
    CHECK(n && n->major == 1 && n->minor == 7 && !n->block && !has_node(&f.give, "/dev/nvidia0"));
    CHECK(has_node(&f.give, "/dev/nvidiactl") && has_node(&f.give, "/dev/nvidia-uvm") && f.give.nodes.count == 3);
    CHECK(has_file(&f.give, "/usr/local/nvidia/lib64/libcuda.so.580.1.2") && has_file(&f.give, "/usr/local/nvidia/bin/nvidia-smi")
          && !has_file(&f.give, "/usr/local/nvidia/bin/nvidia-debugdump"));
    CHECK(text_is(has_link(&f.give, "/usr/local/nvidia/lib64/libcuda.so.1"), "libcuda.so.580.1.2") && text_is(has_link(&f.give, "/usr/local/nvidia/lib64/libcuda.so"), "libcuda.so.1"));
    const struct plan_file *firmware = has_file(&f.give, "/lib/firmware/nvidia/580.1.2/gsp_ga10x.bin");
    CHECK(firmware && firmware->optional);
    CHECK(text_is(f.give.libraries, "/usr/local/nvidia/lib64") && text_is(f.give.programs, "/usr/local/nvidia/bin") && text_is(f.give.driver, "/usr/local/nvidia"));
    CHECK(give(&f, "GPU-bbb", false, NULL) && has_node(&f.give, "/dev/nvidia0") && !has_node(&f.give, "/dev/nvidia1"));
    CHECK(give(&f, "GPU-aaa", true, NULL) && f.give.nodes.count == 3 && !f.give.files.count && !f.give.driver && !f.give.libraries);
    CHECK(!give(&f, "GPU-ccc", false, NULL) && strstr(f.err.text, "which /dev/nvidiaN"));
    fake_close(&f);
}

/* Whoever reads the page of a GPU whose driver hangs waits with it: what lies in the pipe is still there if nobody did. */
TEST(the_drivers_pages_are_not_read_here)
{
    struct fake f;
    if (!fake_open(&f, "auto"))
        return;
    static const char page[] = "GPU UUID: \t GPU-aaa\nDevice Minor: \t 0\n";
    int left = 0;
    folder(&f, "/proc/driver/nvidia/gpus/0000:18:00.0");
    CHECK(mkfifo(at(&f, "/proc/driver/nvidia/gpus/0000:18:00.0/information"), 0644) == 0);
    int fd = open(at(&f, "/proc/driver/nvidia/gpus/0000:18:00.0/information"), O_RDWR | O_CLOEXEC);
    CHECK(fd != -1 && write(fd, page, sizeof page) == (ssize_t)sizeof page);
    CHECK(give(&f, "GPU-aaa", false, NULL) && has_node(&f.give, "/dev/nvidia1"));
    CHECK(ioctl(fd, FIONREAD, &left) == 0 && left == (int)sizeof page);
    close(fd);
    fake_close(&f);
}

TEST(capabilities_decide_which_libraries_a_task_gets)
{
    struct fake f;
    CHECK(driver_capabilities(NULL) == (DRIVER_COMPUTE | DRIVER_UTILITY) && driver_capabilities("nonsense") == driver_capabilities(""));
    CHECK(driver_capabilities("video,compute") == (DRIVER_VIDEO | DRIVER_COMPUTE) && driver_capabilities("all") == ~0u);
    if (!fake_open(&f, "off"))
        return;
    CHECK(give(&f, "GPU-aaa", false, NULL) && !has_file(&f.give, "/usr/local/nvidia/lib64/libnvcuvid.so.580.1.2")
          && !has_file(&f.give, "/usr/local/nvidia/lib64/libcudart.so.13") && !has_file(&f.give, "/usr/local/nvidia/lib64/libc.so.6"));
    CHECK(give(&f, "GPU-aaa", false, "video") && has_file(&f.give, "/usr/local/nvidia/lib64/libnvcuvid.so.580.1.2") && !has_file(&f.give, "/usr/local/nvidia/lib64/libcuda.so.580.1.2")
          && !has_node(&f.give, "/dev/nvidia-uvm"));
    CHECK(give(&f, "GPU-aaa", false, "utility") && has_file(&f.give, "/usr/local/nvidia/bin/nvidia-smi") && !has_file(&f.give, "/usr/local/nvidia/lib64/libcuda.so.580.1.2"));
    CHECK(give(&f, "GPU-aaa", false, "all") && has_file(&f.give, "/usr/local/nvidia/lib64/libnvidia-glcore.so.580.1.2"));
    fake_close(&f);
}

TEST(what_others_than_root_can_change_is_given_to_nobody)
{
    struct fake f;
    if (!fake_open(&f, "auto"))
        return;
    CHECK(chmod(at(&f, "/usr/lib/x86_64-linux-gnu/libcuda.so.580.1.2"), 0777) == 0);
    CHECK(!give(&f, "GPU-aaa", false, NULL) && strstr(f.err.text, "changed by others than root"));
    CHECK(chmod(at(&f, "/usr/lib/x86_64-linux-gnu/libcuda.so.580.1.2"), 0755) == 0 && give(&f, "GPU-aaa", false, NULL));
    CHECK(unlink(at(&f, "/dev/nvidia1")) == 0);
    put(&f, "/dev/nvidia1", "no device");
    CHECK(!give(&f, "GPU-aaa", false, NULL) && strstr(f.err.text, "is no device"));
    CHECK(unlink(at(&f, "/dev/nvidia-uvm")) == 0 && !give(&f, "GPU-bbb", false, NULL) && strstr(f.err.text, "nvidia-uvm"));
    fake_close(&f);
}

TEST(a_mig_instance_gets_the_capabilities_of_its_own)
{
    struct fake f;
    if (!fake_open(&f, "auto"))
        return;
    const char *uuids[] = { "MIG-x", "MIG-y" }, *ids[] = { "1/0", "5/0" };
    folder(&f, "/dev/nvidia-caps");
    static const struct { const char *at; int number; } caps[] = { { "gpu1/mig/gi1", 12 }, { "gpu1/mig/gi1/ci0", 13 }, { "gpu1/mig/gi5", 48 }, { "gpu1/mig/gi5/ci0", 49 } };
    for (size_t i = 0; i < COUNT(caps); i++) {
        put(&f, arena_printf(f.mem, "/proc/driver/nvidia/capabilities/%s/access", caps[i].at), arena_printf(f.mem, "DeviceFileMinor: %d\nDeviceFileMode: 292\nDeviceFileModify: 1\n", caps[i].number));
        CHECK(node(&f, arena_printf(f.mem, "/dev/nvidia-caps/nvidia-cap%d", caps[i].number), 1, 3));
    }
    inject_know(f.in, &(struct inject_gpu){ .uuid = "GPU-aaa", .vendor = "nvidia", .device = "/dev/nvidia1", .mig = "1g.18gb@0,3g.71gb@4", .mig_uuids = { uuids, 2 }, .mig_ids = { ids, 2 } }, 1);
    struct order_gpu one = { .uuid = "GPU-aaa", .milli = 1000, .mig = "3g.71gb", .slot = 4 };
    CHECK(inject_for(f.in, &(struct objects){ &one, 1 }, false, NULL, f.mem, &f.give, &f.err));
    CHECK(has_node(&f.give, "/dev/nvidia1") && has_node(&f.give, "/dev/nvidia-caps/nvidia-cap48") && has_node(&f.give, "/dev/nvidia-caps/nvidia-cap49") && f.give.nodes.count == 5);
    one.slot = 0;
    CHECK(!inject_for(f.in, &(struct objects){ &one, 1 }, false, NULL, f.mem, &f.give, &f.err) && strstr(f.err.text, "no MIG instance 3g.71gb at slot 0"));
    CHECK(unlink(at(&f, "/proc/driver/nvidia/capabilities/gpu1/mig/gi1/access")) == 0);
    CHECK(text_is(f.give.parents, "GPU-aaa") && text_is(f.give.visible, uuids[1]));
    one.mig = "1g.18gb";
    f.err = (struct err){ 0 };
    CHECK(!inject_for(f.in, &(struct objects){ &one, 1 }, false, NULL, f.mem, &f.give, &f.err) && strstr(f.err.text, "MIG instance"));
    fake_close(&f);
}

static const char *spec_of(struct fake *f, const char *device, const char *node_path, const char *more)
{
    return arena_printf(f->mem,
                        "{\"cdiVersion\":\"0.5.0\",\"kind\":\"nvidia.com/gpu\",\"devices\":[{\"name\":\"%s\",\"containerEdits\":{\"deviceNodes\":[{\"path\":\"%s\",\"hostPath\":\"%s\"}]}}],"
                        "\"containerEdits\":{\"env\":[\"FROM_SPEC=1\"],\"mounts\":[{\"hostPath\":\"%s\",\"containerPath\":\"/usr/lib64/libcuda.so.580.1.2\",\"options\":[\"ro\"]}]%s}}",
                        device, node_path, at(f, node_path), at(f, "/usr/lib/x86_64-linux-gnu/libcuda.so.580.1.2"), more);
}

TEST(a_spec_goes_before_our_own_look_and_links_lie_in_a_folder_of_ours)
{
    struct fake f;
    if (!fake_open(&f, "auto"))
        return;
    put(&f, "/etc/cdi/nvidia.json", spec_of(&f, "GPU-aaa", "/dev/nvidia1",
        ",\"hooks\":[{\"hookName\":\"createContainer\",\"path\":\"/usr/bin/nvidia-cdi-hook\",\"args\":[\"nvidia-cdi-hook\",\"update-ldcache\",\"--folder\",\"/usr/lib64\"]}]"));
    CHECK(give(&f, "GPU-aaa", false, NULL) && f.give.nodes.count == 1 && has_node(&f.give, "/dev/nvidia1")->minor == 7);
    CHECK(has_file(&f.give, "/usr/lib64/libcuda.so.580.1.2") && f.give.files.count == 1 && f.give.env.count == 1 && text_is(f.give.env.at[0], "FROM_SPEC=1"));
    CHECK(text_is(has_link(&f.give, "/usr/local/nvidia/lib64/libcuda.so.1"), "/usr/lib64/libcuda.so.580.1.2") && text_is(f.give.libraries, "/usr/local/nvidia/lib64:/usr/lib64"));
    CHECK(give(&f, "GPU-bbb", false, NULL) && f.give.nodes.count == 3);      /* no spec names it */
    put(&f, "/var/run/cdi/nvidia.json", spec_of(&f, "GPU-aaa", "/dev/nvidia1", ",\"deviceNodes\":[{\"path\":\"/dev/null\"}]"));
    CHECK(give(&f, "GPU-aaa", false, NULL) && f.give.nodes.count == 2);      /* the later folder counts, and a change is seen */
    put(&f, "/var/run/cdi/other.json", spec_of(&f, "GPU-aaa", "/dev/nvidia1", ""));
    CHECK(!give(&f, "GPU-aaa", false, NULL) && strstr(f.err.text, "both name"));
    fake_close(&f);
}

TEST(a_spec_that_asks_for_a_hook_or_lies_about_a_gpu_makes_it_unusable)
{
    struct fake f;
    const char **bad;
    if (!fake_open(&f, "auto"))
        return;
    put(&f, "/etc/cdi/a.json", spec_of(&f, "GPU-aaa", "/dev/nvidia1", ",\"hooks\":[{\"hookName\":\"prestart\",\"path\":\"/opt/hook\"}]"));
    CHECK(!give(&f, "GPU-aaa", false, NULL) && strstr(f.err.text, "/etc/cdi/a.json") && strstr(f.err.text, "/opt/hook"));
    put(&f, "/etc/cdi/a.json", spec_of(&f, "GPU-aaa", "/dev/nvidia0", ""));  /* another's */
    CHECK(!give(&f, "GPU-aaa", false, NULL) && strstr(f.err.text, "is not /dev/nvidia1"));
    put(&f, "/etc/cdi/a.json", spec_of(&f, "GPU-aaa", "/dev/nvidia1", ",\"intelRdt\":{\"closID\":\"x\"}"));
    CHECK(!give(&f, "GPU-aaa", false, NULL) && strstr(f.err.text, "intelRdt"));
    put(&f, "/etc/cdi/a.json", spec_of(&f, "GPU-aaa", "/dev/nvidia1", ",\"surprise\":1"));
    CHECK(inject_bad_specs(f.in, f.mem, &bad) == 1 && strstr(bad[0], "surprise") && strstr(bad[0], "/etc/cdi/a.json"));
    CHECK(give(&f, "GPU-aaa", false, NULL) && f.give.nodes.count == 3);      /* auto: it is left out, and our own look serves */
    put(&f, "/etc/cdi/a.json", spec_of(&f, "GPU-aaa", "/dev/nvidia1", ""));
    put(&f, "/etc/cdi/b.yaml", "cdiVersion: 1.1.0\nkind: example.com/net\ndevices: []\nnetDevices: []\n");
    CHECK(inject_bad_specs(f.in, f.mem, &bad) == 0);        /* another's, whatever it says */
    CHECK(chmod(at(&f, "/etc/cdi/a.json"), 0666) == 0 && inject_bad_specs(f.in, f.mem, &bad) == 1 && strstr(bad[0], "only root"));
    fake_close(&f);
}

TEST(a_folder_of_specs_that_was_named_is_the_only_one)
{
    struct fake f;
    if (!fake_open(&f, "auto"))
        return;
    folder(&f, "/specs");
    know_two(&f, at(&f, "/specs"));
    CHECK(!give(&f, "GPU-aaa", false, NULL) && strstr(f.err.text, "no spec in"));
    put(&f, "/specs/x.yaml", arena_printf(f.mem, "cdiVersion: 0.6.0\nkind: nvidia.com/gpu\ndevices:\n- name: \"0\"\n  containerEdits:\n    deviceNodes:\n    - path: /dev/nvidia1\n      hostPath: %s\n", at(&f, "/dev/nvidia1")));
    CHECK(give(&f, "GPU-aaa", true, NULL) && f.give.nodes.count == 1 && !f.give.files.count);
    CHECK(!give(&f, "GPU-ccc", true, NULL) && strstr(f.err.text, "no spec in"));      /* whose number this is its driver must have told */
    fake_close(&f);
}

TEST(amd_gets_its_render_node_and_rocr_numbers_and_a_simulated_gpu_gets_nothing)
{
    struct fake f;
    if (!fake_open(&f, "auto"))
        return;
    folder(&f, "/dev/dri");
    CHECK(node(&f, "/dev/dri/renderD129", 1, 11));
    inject_know(f.in, &(struct inject_gpu){ .uuid = "GPU-amd", .vendor = "amd", .device = "/dev/dri/renderD129" }, 1);
    CHECK(give(&f, "GPU-amd", false, NULL) && f.give.nodes.count == 2 && has_node(&f.give, "/dev/kfd") && has_node(&f.give, "/dev/dri/renderD129")->minor == 11);
    CHECK(f.give.env.count == 1 && text_is(f.give.env.at[0], "ROCR_VISIBLE_DEVICES=0") && !f.give.driver && !f.give.files.count);
    struct order_gpu sim = { .uuid = "GPU-aaa", .milli = 1000, .simulated = true };
    CHECK(inject_for(f.in, &(struct objects){ &sim, 1 }, false, NULL, f.mem, &f.give, &f.err) && !f.give.nodes.count && !f.give.env.count);
    fake_close(&f);
}
