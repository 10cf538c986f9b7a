/* Real containers with devices of a lease. Any character device of this machine that can be opened stands for a GPU. */
#include "containers.h"
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
