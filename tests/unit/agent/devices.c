/* Real containers with devices of a lease. Any character device of this machine that can be opened stands for a GPU. */
#include "agent/bundle.h"
#include "agent/cgroup.h"
#include "containers.h"
#include "wire/bind.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static bool has(const char *text, const char *part) { return text && strstr(text, part); }

/* Two that are not among those that every container has. */
static size_t openable(const char *out[2])
{
    static const char *const tries[] = { "/dev/fuse", "/dev/kvm", "/dev/net/tun", "/dev/autofs", "/dev/hwrng", "/dev/loop-control", "/dev/kmsg", "/dev/cpu_dma_latency" };
    size_t n = 0;
    for (size_t i = 0; n < 2 && i < sizeof tries / sizeof *tries; i++) {
        int fd = open(tries[i], O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd != -1) {
            close(fd);
            out[n++] = tries[i];
        }
    }
    return n;
}

static bool devices_open(struct containers *c, const char *nodes[2])
{
    if (openable(nodes) < 2) {
        test_skip("no two devices to try with");
        return false;
    }
    if (!containers_open(c))
        return false;
    c->cdi = containers_path(c, "%s/cdi", c->top);
    const char *file = containers_path(c, "%s/driver-file", c->top);
    FILE *f = fopen(file, "we");
    CHECK(f && fputs("of the driver\n", f) >= 0 && fclose(f) == 0 && chmod(file, 0644) == 0 && mkdir(c->cdi, 0755) == 0);
    f = fopen(containers_path(c, "%s/x.yaml", c->cdi), "we");
    CHECK(f != NULL);
    fprintf(f, "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n");
    for (int i = 0; i < 2; i++)
        fprintf(f, "- name: GPU-%d\n  containerEdits:\n    deviceNodes:\n    - {path: /dev/nvidia%d, hostPath: %s}\n", i, i, nodes[i]);
    fprintf(f, "containerEdits:\n  env: [FROM_SPEC=yes]\n  mounts:\n  - {hostPath: %s, containerPath: /srv/driver/file, options: [ro]}\n", file);
    CHECK(fclose(f) == 0 && chmod(containers_path(c, "%s/x.yaml", c->cdi), 0644) == 0);
    return containers_reopen(c);
}

static struct order *with_gpu(struct containers *c, const char *uuid, const char *script)
{
    struct order *o = containers_order(c, "host", script);
    struct order_gpu *g = ARENA_NEW(c->mem, struct order_gpu);
    *g = (struct order_gpu){ .uuid = uuid, .milli = 1000 };
    o->gpus = (struct objects){ g, 1 };
    return o;
}

TEST(however_many_specs_are_bad_a_server_can_read_what_is_told)
{
    struct containers c = { 0 };
    const char *nodes[2];
    if (!devices_open(&c, nodes))
        return;
    for (int i = 0; i < 2 * NODE_CANNOT; i++) {
        FILE *f = fopen(containers_path(&c, "%s/%d.json", c.cdi, i), "we");
        CHECK(f && fclose(f) == 0);
    }
    struct gpu_info gpu = { .uuid = "GPU-none", .vendor = "nvidia", .healthy = true };
    struct node_info info = { .gpus = { &gpu, 1 } };
    runtime_describe(c.r, &info, c.mem);
    CHECK(info.cannot.count == NODE_CANNOT && text_starts(info.cannot.at[NODE_CANNOT - 1], "and ") && !gpu.healthy);
    containers_close(&c);
}

TEST(a_task_gets_the_devices_of_its_lease_and_no_others)
{
    struct containers c = { 0 };
    const char *nodes[2];
    if (!devices_open(&c, nodes))
        return;
    struct order *o = with_gpu(&c, "GPU-0", "ls /dev | grep nvidia; (exec 3</dev/nvidia0) && echo opened; echo $FROM_SPEC; cat /srv/driver/file; echo x >/srv/driver/file; grep -c ' /dev/nvidia0 ' /proc/mounts");
    const struct task_status *s = containers_run(&c, o);
    const char *log = containers_log(&c, o->attempt, 'o');
    CHECK(s->outcome == OUTCOME_SUCCEEDED && text_is(log, "nvidia0\nopened\nyes\nof the driver\n1\n"));
    if (!text_is(log, "nvidia0\nopened\nyes\nof the driver\n1\n"))
        printf("# %s: %s%s\n", s->detail, log, containers_log(&c, o->attempt, 'e'));
    CHECK(has(containers_log(&c, o->attempt, 'e'), "Read-only"));
    o = with_gpu(&c, "GPU-1", "ls /dev | grep nvidia");         /* perhaps in the same place as the one before */
    CHECK(containers_run(&c, o)->outcome == OUTCOME_SUCCEEDED && text_is(containers_log(&c, o->attempt, 'o'), "nvidia1\n"));
    o = containers_order(&c, "host", "ls /dev | grep nvidia; ls /srv; echo end");
    CHECK(containers_run(&c, o)->outcome == OUTCOME_SUCCEEDED && text_is(containers_log(&c, o->attempt, 'o'), "end\n"));
    o = with_gpu(&c, "GPU-2", "true");
    s = containers_run(&c, o);
    CHECK(s->outcome == OUTCOME_NODE_FAULT && has(s->detail, "no spec in"));
    containers_close(&c);
}

/* From outside, as root: a file system on which devices count, and in it the nodes of both GPUs. */
static bool plant(struct containers *c, int64_t attempt, const char *nodes[2])
{
    const char *numbers[2];
    for (int i = 0; i < 2; i++) {
        struct stat st;
        CHECK(stat(nodes[i], &st) == 0);
        numbers[i] = containers_path(c, "c %u %u", major(st.st_rdev), minor(st.st_rdev));
    }
    const char *name = strrchr(runtime_log_folder(c->r, attempt, ARENA_ARRAY(c->mem, char, 256)), '/') + 1;
    return system(containers_path(c,
                                  "for p in $(cat $(find /sys/fs/cgroup -path '*arcus/%s/cgroup.procs' | head -n 1)); do grep -qE '^NSpid:.*[[:space:]]1$' /proc/$p/status || continue; "
                                  "nsenter -t $p -m sh -c 'umask 0; mount -t tmpfs -o mode=755 planted /mnt && mknod /mnt/own %s && mknod /mnt/other %s && echo >/mnt/done'; done",
                                  name, numbers[0], numbers[1]))
           == 0;
}

TEST(a_forbidden_node_that_somebody_put_into_its_root_cannot_be_opened)
{
    struct containers c = { 0 };
    const char *nodes[2];
    if (!devices_open(&c, nodes))
        return;
    struct order *o = with_gpu(&c, "GPU-0",
                               "while [ ! -e /mnt/done ]; do sleep 0.05; done; perl -e 'for (@ARGV) { print \"$_: \", (sysopen(my $f, $_, 2048) ? \"opened\" : $!+0), \"\\n\" }' /mnt/own /mnt/other");
    runtime_start(c.r, o);
    containers_wait(&c, o->attempt, PHASE_RUNNING);
    CHECK(plant(&c, o->attempt, nodes));
    const struct task_status *s = containers_wait(&c, o->attempt, PHASE_ENDED);
    const char *log = containers_log(&c, o->attempt, 'o');
    CHECK(s->outcome == OUTCOME_SUCCEEDED && text_is(log, "/mnt/own: opened\n/mnt/other: 1\n"));     /* EPERM */
    if (!text_is(log, "/mnt/own: opened\n/mnt/other: 1\n"))
        printf("# %s: %s%s\n", s->detail, log, containers_log(&c, o->attempt, 'e'));
    containers_close(&c);
}

/* --- the supervisor alone, over an image whose links somebody chose */

struct rooted { struct containers *c; const char *lower, *victim, *folder, *run; struct task_status s; };

static bool make(struct rooted *r, const char *path)
{
    struct err err = { 0 };
    return dir_make(r->c->os, containers_path(r->c, "%s/%s", r->lower, path), 0755, &err);
}

static void rooted_open(struct rooted *r, struct containers *c)
{
    static int64_t count = 0;
    struct err err = { 0 };
    struct slice program;
    count++;
    *r = (struct rooted){ .c = c, .lower = containers_path(c, "%s/lower-%d", c->top, (int)count), .victim = containers_path(c, "%s/victim-%d", c->top, (int)count),
                          .folder = containers_path(c, "%s/task-%d", c->top, (int)count), .run = containers_path(c, "%s/tasks/dev-%d-%d", c->run, getpid(), (int)count) };
    static const char *const folders[] = { "proc", "sys", "dev", "etc", "usr", "tmp", "outputs" };
    for (size_t i = 0; i < COUNT(folders); i++)
        CHECK(make(r, folders[i]));
    CHECK(dir_make(c->os, r->victim, 0755, &err) && dir_make(c->os, r->folder, 0700, &err) && dir_make(c->os, r->run, 0711, &err)
          && dir_make(c->os, containers_path(c, "%s/logs", r->folder), 0700, &err) && dir_make(c->os, containers_path(c, "%s/outputs", r->folder), 0755, &err));
    CHECK(file_read(c->os, containers_path(c, "%s/bin/arcus-task", c->run), 16 << 20, c->mem, &program, &err)
          && file_replace(c->os, containers_path(c, "%s/task", r->lower), program, 0755, &err));
}

/* One file of the driver, as our own look has them, and a link beside it. */
static const struct task_status *rooted_run(struct rooted *r, const char *file_path)
{
    struct containers *c = r->c;
    static const char *argv[] = { "/task", "--nothing" };
    struct plan_mount outputs = { containers_path(c, "%s/outputs", r->folder), "outputs", false };
    struct plan_file files[] = { { "/etc/hostname", file_path, false }, { "/etc/hostname", "/usr/local/nvidia/lib64/libcuda.so.580", false } };
    struct plan_link link = { "/usr/local/nvidia/lib64/libcuda.so.1", "libcuda.so.580" };
    const char *name = strrchr(r->run, '/') + 1;
    struct plan p = { .attempt = 1, .id = name, .runtime = access("/usr/bin/crun", X_OK) == 0 ? "/usr/bin/crun" : "/usr/sbin/runc", .folder = r->folder, .run = r->run,
                      .runtime_root = containers_path(c, "%s/state", r->run), .status = containers_path(c, "%s/status", r->folder),
                      .logs = containers_path(c, "%s/logs", r->folder), .lease = containers_path(c, "%s/lease", c->run), .cgroup = containers_path(c, "arcus/%s", name),
                      .uid_base = PLAN_UID_BASE + (int64_t)61005 * PLAN_UID_COUNT, .hostname = "x", .root = ROOT_IMAGE, .lower = r->lower, .scratch = SCRATCH_TMPFS,
                      .scratch_template = "/none", .scratch_mib = 64, .mounts = { &outputs, 1 }, .files = { files, COUNT(files) }, .links = { &link, 1 },
                      .driver = "/usr/local/nvidia", .mem_mib = 64, .log_mib = 1 };
    const struct order o = { .name = "x", .count = 1, .argv = { argv, COUNT(argv) }, .mem_mib = 64, .cpu_milli = 1000 };
    struct cgroups groups;
    struct err err = { 0 };
    CHECK(cgroups_find(&groups, &err));
    const struct bundle_place place = { .run = p.run, .cgroup = containers_path(c, "/%s", p.cgroup), .hostname = "x", .uid_base = p.uid_base,
                                        .cgroup_v2 = groups.unified, .open_files = 1024 };
    AUTO(str_done) struct str bundle = { 0 };
    AUTO(str_done) struct str plan = { 0 };
    bind_write(&(struct json_out){ .to = &plan }, &plan_fields, &p);
    CHECK(bundle_write(&bundle, &o, &(struct image_config){ 0 }, &(struct bundle_user){ .home = "/" }, &place, &err)
          && file_replace(c->os, containers_path(c, "%s/config.json", r->folder), (struct slice){ bundle.at, bundle.len }, 0600, &err)
          && file_replace(c->os, containers_path(c, "%s/plan.json", r->folder), (struct slice){ plan.at, plan.len }, 0600, &err));
    const char *const run[] = { containers_path(c, "%s/bin/arcus-task", c->run), r->folder, NULL };
    struct slice text = { 0 };
    r->s = (struct task_status){ 0 };
    CHECK(proc_run(c->os, run, 4096, c->mem, NULL, NULL, &err));
    for (int i = 0; i < 6000 && r->s.phase != PHASE_ENDED; i++, usleep(10000))
        if (file_read(c->os, p.status, 1 << 16, c->mem, &text, &err) && !status_read(text, c->mem, &r->s, &err))
            r->s.phase = 0;
    return &r->s;
}

static bool is_empty(const char *folder) { return rmdir(folder) == 0; }

TEST(driver_files_never_go_through_a_link_of_the_image)
{
    struct containers c = { 0 };
    struct rooted r;
    if (!containers_open(&c))
        return;
    CHECK(containers_run(&c, containers_order(&c, "host", "true"))->outcome == OUTCOME_SUCCEEDED);     /* the supervisor's program is written by then */

    rooted_open(&r, &c);
    const struct task_status *s = rooted_run(&r, "/opt/driver/file");
    CHECK(s->outcome == OUTCOME_SUCCEEDED);
    if (s->outcome != OUTCOME_SUCCEEDED)
        printf("# %s\n", s->detail);

    static const struct { const char *link, *parent; } in_the_way[] = { { "usr/local", NULL }, { "usr/local/nvidia", "usr/local" }, { "opt", NULL }, { "opt/driver", "opt" }, { "opt/driver/file", "opt/driver" } };
    for (size_t i = 0; i < COUNT(in_the_way); i++) {
        rooted_open(&r, &c);
        CHECK(!in_the_way[i].parent || make(&r, in_the_way[i].parent));
        CHECK(symlink(r.victim, containers_path(&c, "%s/%s", r.lower, in_the_way[i].link)) == 0);
        s = rooted_run(&r, "/opt/driver/file");
        CHECK(s->outcome == OUTCOME_START_FAILED && has(s->detail, "the image has a link"));
        if (s->outcome != OUTCOME_START_FAILED)
            printf("# %s: %s\n", in_the_way[i].link, s->detail);
        CHECK(is_empty(r.victim));
    }

    rooted_open(&r, &c);                                       /* a root that was merged into /usr is no reason: it is spelled the other way */
    CHECK(make(&r, "usr/lib") && symlink("usr/lib", containers_path(&c, "%s/lib", r.lower)) == 0);
    s = rooted_run(&r, "/lib/firmware/x.bin");
    CHECK(s->outcome == OUTCOME_SUCCEEDED && is_empty(r.victim));
    rooted_open(&r, &c);
    CHECK(symlink(r.victim, containers_path(&c, "%s/lib", r.lower)) == 0);
    s = rooted_run(&r, "/lib/firmware/x.bin");
    CHECK(s->outcome == OUTCOME_START_FAILED && is_empty(r.victim));
    containers_close(&c);
}
