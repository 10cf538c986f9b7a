/* bundle.c - config.json for crun and runc.
 *
 * The tables below are the promise: namespaces, capabilities, mounts, paths that are hidden. A
 * task is root only within its own range of ids; what it may do there is what public images need
 * to install packages and drop to their user. */
#include "agent/bundle.h"
#include "agent/mps.h"
#include "agent/seccomp.h"
#include "agent/task_plan.h"
#include <stdio.h>

enum {
    PERIOD_US = 100000,
    PIDS_MAX = 4096,
    OOM_SCORE = 300,
    SOFT_FILES = 65536,
    HARD_FILES = 1 << 20,
    SHM_MIB = 64,
    CORE_BYTES = 1, /* none at all: with 0 a dump would still go to a program of the node's, if its core_pattern names one */
    ENV_MAX = 2048
};

static const char *const capabilities[] = {
    "CAP_CHOWN",       "CAP_DAC_OVERRIDE", "CAP_FOWNER",  "CAP_FSETID",           "CAP_KILL",
    "CAP_SETUID",      "CAP_SETGID",       "CAP_SETPCAP", "CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT",
    "CAP_AUDIT_WRITE",
};
static const char *const namespaces[] = { "user", "pid", "mount", "ipc", "uts", "network" };   /* the last: unless it has the node's */
static const char *const masked[] = {
    "/proc/acpi",
    "/proc/asound",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/sys/firmware",
    "/sys/devices/virtual/powercap",
};
/* Both tell of everybody's GPUs; without the second alone the driver works, and MIG needs what is beside it. */
static const char masked_driver[] = "/proc/driver/nvidia", masked_gpus[] = "/proc/driver/nvidia/gpus";
static const char *const read_only[]
    = { "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger" };

/* A source that begins with ':' lies below RUN/tasks/ATTEMPT, where it is already mounted with
 * nosuid, nodev and, where it must be, read-only: crun 1.8 ignores these options on a bind mount
 * inside a user namespace. */
struct mount_row {
    const char *at, *type, *source, *options;
};
static const struct mount_row mounts_always[] = {
    { "/proc", "proc", "proc", "nosuid,noexec,nodev" },
    { "/dev", "tmpfs", "tmpfs", "nosuid,noexec,strictatime,mode=755,size=65536k" },
    { "/dev/pts", "devpts", "devpts", "nosuid,noexec,newinstance,ptmxmode=0666,mode=0620,gid=5" },
    { "/dev/mqueue", "mqueue", "mqueue", "nosuid,noexec,nodev" },
    { "/sys", "sysfs", "sysfs", "nosuid,noexec,nodev,ro" },
    { "/etc/hosts", "bind", ":hosts", "bind,nosuid,nodev,noexec" },
    { "/outputs", "bind", ":outputs", "bind,nosuid,nodev" },
};
/* The kernel gives one of its own only to who owns its network. */
static const struct mount_row mount_sys = { "/sys", "bind", ":sys", "bind,ro,nosuid,nodev,noexec" };
static const struct mount_row mount_tmp = { "/tmp", "bind", ":scratch/tmp", "bind,nosuid,nodev" };
static const struct mount_row mount_cgroup
    = { "/sys/fs/cgroup", "cgroup", "cgroup", "nosuid,noexec,nodev,ro" };
static const struct mount_row mount_workdir
    = { "/workdir", "bind", ":scratch/workdir", "bind,nosuid,nodev" };
static const struct mount_row mount_names = { "/etc/resolv.conf", "bind", ":resolv", "bind,nosuid,nodev,noexec" };
static const struct mount_row mount_gang[] = { { HOSTFILE_PATH, "bind", ":hostfile", "bind,nosuid,nodev,noexec" },
                                               { LAUNCH_PATH, "bind", ":launch", "bind,ro,nosuid,nodev" } };
static const struct mount_row mount_mps = { MPS_DOOR, "bind", ":mps", "bind,ro,nosuid,nodev,noexec" };
static const struct mount_row mount_secrets
    = { "/run/secrets", "bind", ":secrets", "bind,ro,nosuid,nodev,noexec" };

static void text(struct json_out *o, const char *key, const char *value)
{
    json_key(o, key);
    json_put_text(o, value);
}
static void number(struct json_out *o, const char *key, int64_t n)
{
    json_key(o, key);
    json_put_int(o, n);
}
static void yes(struct json_out *o, const char *key, bool on)
{
    json_key(o, key);
    json_put_bool(o, on);
}
static void object(struct json_out *o, const char *key)
{
    json_key(o, key);
    json_open(o, '{');
}

static void list(struct json_out *o, const char *key, const char *const *at, size_t count)
{
    json_key(o, key);
    json_open(o, '[');
    for (size_t i = 0; i < count; i++)
        json_put_text(o, at[i]);
    json_close(o, ']');
}

static void mount_put(struct json_out *o, const struct mount_row *m, const char *run)
{
    char source[512];
    snprintf(source, sizeof source, "%s/%s", run, m->source + 1);
    json_open(o, '{');
    text(o, "destination", m->at);
    text(o, "type", m->type);
    text(o, "source", m->source[0] == ':' ? source : m->source);
    json_key(o, "options");
    json_open(o, '[');
    for (const char *p = m->options; *p;) {
        size_t n = strcspn(p, ",");
        json_put_bytes(o, p, n);
        p += n + (p[n] == ',');
    }
    json_close(o, ']');
    json_close(o, '}');
}

static void nodes_put(struct json_out *o, const struct bundle_place *place)
{
    const struct plan_node *n = place->give ? place->give->nodes.at : NULL;
    char source[32];
    for (size_t i = 0; n && i < place->give->nodes.count; i++) {
        snprintf(source, sizeof source, ":devices/%zu", i);
        mount_put(o, &(struct mount_row){ n[i].path, "bind", source, "bind,nosuid,noexec" }, place->run);
    }
}

static void mounts_put(struct json_out *o, const struct order *order,
                       const struct bundle_place *place)
{
    char shm[96], name[32];
    json_key(o, "mounts");
    json_open(o, '[');
    for (size_t i = 0; i < COUNT(mounts_always); i++)
        mount_put(o, order->host_network && text_is(mounts_always[i].at, "/sys") ? &mount_sys : &mounts_always[i], place->run);
    snprintf(shm, sizeof shm, "nosuid,noexec,nodev,mode=1777,size=%lldm",
             (long long)(order->shm_mib > 0 ? order->shm_mib : SHM_MIB));
    mount_put(o, &(struct mount_row){ "/dev/shm", "tmpfs", "shm", shm }, place->run);
    nodes_put(o, place);
    if (!place->host)
        mount_put(o, &mount_tmp, place->run);
    if (place->mps)
        mount_put(o, &mount_mps, place->run);
    for (size_t i = 0; text_given(order->hostfile) && i < COUNT(mount_gang); i++)
        mount_put(o, &mount_gang[i], place->run);
    if (place->cgroup_v2)
        mount_put(o, &mount_cgroup, place->run);
    if (place->names)
        mount_put(o, &mount_names, place->run);
    if (text_given(order->workdir))
        mount_put(o, &mount_workdir, place->run);
    if (order->secrets.count)
        mount_put(o, &mount_secrets, place->run);
    const struct order_mount *m = order->mounts.at;
    for (size_t i = 0; i < order->mounts.count; i++, m++) {
        snprintf(name, sizeof name, ":vol-%zu", i);
        mount_put(
            o,
            &(struct mount_row){ m->path, "bind", name,
                                 m->read_only ? "bind,ro,nosuid,nodev" : "bind,nosuid,nodev" },
            place->run);
    }
    json_close(o, ']');
}

/* Everything is forbidden, then what is its own is allowed; the runtime adds null, zero, full, random, urandom, tty and ptmx. */
static void rules_put(struct json_out *o, const struct bundle_place *place)
{
    const struct plan_node *n = place->give ? place->give->nodes.at : NULL;
    json_key(o, "devices");
    json_open(o, '[');
    json_open(o, '{');
    yes(o, "allow", false);
    text(o, "access", "rwm");
    json_close(o, '}');
    for (size_t i = 0; n && i < place->give->nodes.count; i++) {
        json_open(o, '{');
        yes(o, "allow", true);
        text(o, "type", n[i].block ? "b" : "c");
        number(o, "major", n[i].major);
        number(o, "minor", n[i].minor);
        text(o, "access", "rw");
        json_close(o, '}');
    }
    json_close(o, ']');
}

static void rate_put(struct json_out *o, const char *key, const struct io_means *io, int64_t mibs)
{
    json_key(o, key);
    json_open(o, '[');
    json_open(o, '{');
    number(o, "major", io->major);
    number(o, "minor", io->minor);
    number(o, "rate", mibs << 20);
    json_close(o, '}');
    json_close(o, ']');
}

/* Weights are as its processors are, a hundred for each, as the kernel's own is one. */
static void disk_put(struct json_out *o, const struct order *order, const struct io_means *io)
{
    char weight[16];
    if (io->limits && order->disk_mibs > 0) {
        object(o, "blockIO");
        rate_put(o, "throttleReadBpsDevice", io, order->disk_mibs);
        rate_put(o, "throttleWriteBpsDevice", io, order->disk_mibs);
        json_close(o, '}');
    }
    if (io->weight) {
        snprintf(weight, sizeof weight, "%d", (int)MIN(MAX(order->cpu_milli / 10, 1), 1000));
        object(o, "unified");
        text(o, io->weight, weight);
        json_close(o, '}');
    }
}

static void limits_put(struct json_out *o, const struct order *order,
                       const struct bundle_place *place)
{
    object(o, "resources");
    object(o, "memory");
    if (order->mem_mib > 0) {
        number(o, "limit", order->mem_mib << 20);
        if (place->limit_swap)
            number(o, "swap",
                   order->mem_mib << 20); /* memory and swap together: none beyond the memory */
    }
    json_close(o, '}');
    object(o, "cpu");
    number(o, "shares", MIN(MAX(order->cpu_milli * 1024 / 1000, 2), 262144));
    if (order->cpu_milli > 0) {
        number(o, "quota", MAX(order->cpu_milli * (PERIOD_US / 1000), 1000));
        number(o, "period", PERIOD_US);
    }
    json_close(o, '}');
    object(o, "pids");
    number(o, "limit", PIDS_MAX);
    json_close(o, '}');
    rules_put(o, place);
    if (place->io)
        disk_put(o, order, place->io);
    json_close(o, '}');
}

static void mapping_put(struct json_out *o, const char *key, int64_t base)
{
    json_key(o, key);
    json_open(o, '[');
    json_open(o, '{');
    number(o, "containerID", 0);
    number(o, "hostID", base);
    number(o, "size", PLAN_UID_COUNT);
    json_close(o, '}');
    json_close(o, ']');
}

static void linux_put(struct json_out *o, const struct order *order,
                      const struct bundle_place *place)
{
    object(o, "linux");
    mapping_put(o, "uidMappings", place->uid_base);
    mapping_put(o, "gidMappings", place->uid_base);
    json_key(o, "namespaces");
    json_open(o, '[');
    size_t own = COUNT(namespaces) - order->host_network;
    for (size_t i = 0; i < own + place->cgroup_v2; i++) {
        json_open(o, '{');
        text(o, "type", i < own ? namespaces[i] : "cgroup");
        json_close(o, '}');
    }
    json_close(o, ']');
    text(o, "cgroupsPath", place->cgroup);
    limits_put(o, order, place);
    const char *hidden[COUNT(masked) + 1];
    memcpy(hidden, masked, sizeof masked);
    hidden[COUNT(masked)] = place->give && place->give->nodes.count ? masked_gpus : masked_driver;
    list(o, "maskedPaths", hidden, COUNT(hidden));
    list(o, "readonlyPaths", read_only, COUNT(read_only));
    if (!place->filter) {
        json_key(o, "seccomp");
        seccomp_write(o);
    }
    json_close(o, '}');
}

/* --- the process */

struct env {
    const char *at[ENV_MAX];
    size_t count;
};

/* Of two with the same name the later one counts. */
static void env_put(struct env *e, const char *entry)
{
    size_t name = strcspn(entry, "=") + 1;
    for (size_t i = 0; i < e->count; i++)
        if (strncmp(e->at[i], entry, name) == 0) {
            e->at[i] = entry;
            return;
        }
    if (e->count < ENV_MAX)
        e->at[e->count++] = entry;
}

/* Folders of ours stand behind those that image or job name. */
static void env_behind(struct env *e, const char *name, const char *folders, struct arena *mem)
{
    size_t n = strlen(name);
    if (!folders)
        return;
    for (size_t i = 0; i < e->count; i++)
        if (strncmp(e->at[i], name, n) == 0 && e->at[i][n] == '=') {
            e->at[i] = arena_printf(mem, "%s%s%s", e->at[i], e->at[i][n + 1] ? ":" : "", folders);
            return;
        }
    env_put(e, arena_printf(mem, "%s=%s", name, folders));
}

static void env_list(struct json_out *o, const struct order *order,
                     const struct image_config *image, const struct bundle_user *user,
                     const struct bundle_place *place, struct arena *mem)
{
    struct env *e = ARENA_NEW(mem, struct env);
    env_put(e, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    env_put(e, arena_printf(mem, "HOME=%s", text_given(user->home) ? user->home : "/"));
    env_put(e, arena_printf(mem, "HOSTNAME=%s", place->hostname));
    env_put(e, "ARCUS_OUTPUTS=/outputs");
    for (size_t i = 0; i < image->env.count; i++)
        env_put(e, image->env.at[i]);
    const struct injection none = { 0 }, *give = place->give ? place->give : &none;
    for (size_t i = 0; i < give->env.count; i++)
        env_put(e, give->env.at[i]);
    if (place->mps)
        env_put(e, "CUDA_MPS_PIPE_DIRECTORY=" MPS_DOOR);
    for (size_t i = 0; i < order->env.count; i++) {
        const char *key = order->env.at[i].key, *value = order->env.at[i].value;
        if (text_given(give->visible) && text_is(key, "NVIDIA_VISIBLE_DEVICES") && text_is(value, give->parents))
            value = give->visible; /* what a job says itself stays */
        env_put(e, arena_printf(mem, "%s=%s", key, value));
    }
    env_behind(e, "LD_LIBRARY_PATH", give->libraries, mem);
    env_behind(e, "PATH", give->programs, mem);
    list(o, "env", e->at, e->count);
}

static void capabilities_put(struct json_out *o)
{
    static const char *const sets[] = { "bounding", "effective", "permitted" };
    object(o, "capabilities");
    for (size_t i = 0; i < COUNT(sets); i++)
        list(o, sets[i], capabilities, COUNT(capabilities));
    json_close(o, '}');
}

static void user_put(struct json_out *o, const struct bundle_user *user)
{
    object(o, "user");
    number(o, "uid", user->uid);
    number(o, "gid", user->gid);
    json_key(o, "additionalGids");
    json_open(o, '[');
    for (size_t i = 0; i < user->group_count; i++)
        json_put_int(o, user->groups[i]);
    json_close(o, ']');
    json_close(o, '}');
}

static void limit_put(struct json_out *o, const char *name, int64_t soft, int64_t hard)
{
    json_open(o, '{');
    text(o, "type", name);
    number(o, "soft", soft);
    number(o, "hard", hard);
    json_close(o, '}');
}

/* Whatever the agent itself was started with. No priority beyond everybody's, and no core dumps: where they go the node decides, not its task. */
static void rlimits_put(struct json_out *o, int64_t files)
{
    json_key(o, "rlimits");
    json_open(o, '[');
    limit_put(o, "RLIMIT_NOFILE", MIN(files, SOFT_FILES), MIN(files, HARD_FILES));
    limit_put(o, "RLIMIT_CORE", CORE_BYTES, CORE_BYTES);
    limit_put(o, "RLIMIT_RTPRIO", 0, 0);
    limit_put(o, "RLIMIT_NICE", 0, 0);
    json_close(o, ']');
}

/* A descriptor of the runtime, such as /proc/self/fd/7, leads out of the container. */
static bool in_proc(const char *path)
{
    while (path[0] == '/' && (path[1] == '/' || (path[1] == '.' && path[2] == '/')))
        path += path[1] == '/' ? 1 : 2;
    return text_starts(path, "/proc/") || text_is(path, "/proc") || strstr(path, "/../");
}

static bool process_put(struct json_out *o, const struct order *order,
                        const struct image_config *image, const struct bundle_user *user,
                        const struct bundle_place *place, struct err *err)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    size_t own = image->entrypoint.count + image->cmd.count;
    if (!order->argv.count && !own)
        return err_set(err, RC_BAD_INPUT, "the image has no command of its own: give one");
    if (image->workdir && !text_given(order->workdir) && in_proc(image->workdir))
        return err_set(err, RC_BAD_INPUT, "the image's work folder '%.80s' leads through /proc or .. and could be a folder of the node", image->workdir);
    object(o, "process");
    yes(o, "terminal", false);
    user_put(o, user);
    const char **argv = ARENA_ARRAY(mem, const char *, own + 1);
    for (size_t i = 0; i < own; i++)
        argv[i] = i < image->entrypoint.count ? image->entrypoint.at[i]
                                              : image->cmd.at[i - image->entrypoint.count];
    list(o, "args", order->argv.count ? order->argv.at : argv,
         order->argv.count ? order->argv.count : own);
    env_list(o, order, image, user, place, mem);
    text(o, "cwd",
         text_given(order->workdir) ? "/workdir"
         : image->workdir           ? image->workdir
         : place->host              ? user->home
                                    : "/");
    capabilities_put(o);
    rlimits_put(o, place->open_files);
    yes(o, "noNewPrivileges", !place->new_privileges);
    number(o, "oomScoreAdj", OOM_SCORE);
    json_close(o, '}');
    return true;
}

bool bundle_write(struct str *out, const struct order *o, const struct image_config *image,
                  const struct bundle_user *user, const struct bundle_place *place, struct err *err)
{
    struct json_out j = { .to = out };
    char root[512];
    snprintf(root, sizeof root, "%s/rootfs", place->run);
    json_open(&j, '{');
    text(&j, "ociVersion", "1.0.2");
    if (!process_put(&j, o, image, user, place, err))
        return false;
    object(&j, "root");
    text(&j, "path", root);
    yes(&j, "readonly", false);
    json_close(&j, '}');
    text(&j, "hostname", place->hostname);
    mounts_put(&j, o, place);
    linux_put(&j, o, place);
    if (place->filter) { /* libseccomp takes 13 ms for what is always the same */
        object(&j, "annotations");
        text(&j, "run.oci.seccomp_bpf_data", place->filter);
        json_close(&j, '}');
    }
    json_close(&j, '}');
    return true;
}

void bundle_hostname(const struct order *o, char out[static 64])
{
    const char *from = text_given(o->name) ? o->name : "task";
    size_t n = 0;
    for (; *from && n < 40; from++)
        if ((*from >= 'a' && *from <= 'z') || (*from >= 'A' && *from <= 'Z')
            || (*from >= '0' && *from <= '9') || (*from == '-' && n))
            out[n++] = *from;
    n = n ? n : (size_t)snprintf(out, 64, "task");
    snprintf(out + n, 64 - n, "%s%.0lld", o->count > 1 ? "-" : "",
             o->count > 1 ? (long long)o->task : 0LL);
    if (o->count > 1 && o->task == 0) /* %.0 writes nothing for zero */
        snprintf(out + n, 64 - n, "-0");
}
