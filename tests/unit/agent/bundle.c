#include "agent/bundle.h"
#include "agent/seccomp.h"
#include "tap.h"
#include <stdio.h>
#include <stdlib.h>

static const struct bundle_place place = { .run = "/run/arcus/tasks/att-1", .cgroup = "/arcus/att-1", .hostname = "box", .uid_base = 0x10010000, .host = true, .limit_swap = true, .open_files = 4096 };
static const struct bundle_user root_user = { .home = "/root" };

static struct json *bundle_of(struct arena *mem, const struct order *o, const struct image_config *image, const struct bundle_place *p)
{
    struct str s = {0};
    struct err err = {0};
    struct json *doc = NULL;
    CHECK(bundle_write(&s, o, image, &root_user, p, &err));
    CHECK(json_parse((struct slice){ arena_bytes(mem, s.at, s.len), s.len }, mem, &doc, &err));
    str_done(&s);
    return doc;
}

static struct json *find(const struct json *list, const char *key, const char *value)
{
    for (struct json *e = list->first; e; e = e->next)
        if (text_is(json_text(e, key), value))
            return e;
    return NULL;
}

static bool holds(const struct json *list, const char *text)
{
    for (const struct json *e = list ? list->first : NULL; e; e = e->next)
        if (text_is(e->text, text))
            return true;
    return false;
}

TEST(a_bundle_says_what_was_ordered)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    const char *argv[] = { "echo", "hi" };
    struct pair env[] = { { "A", "from order" }, { "PATH", "/mine" } };
    const char *image_env[] = { "A=from image", "B=2" };
    struct order_mount mounts[] = { { .volume = 5, .path = "/data", .read_only = true } };
    struct order o = { .name = "x", .count = 1, .argv = { argv, 2 }, .env = { env, 2 }, .cpu_milli = 1500, .mem_mib = 512, .shm_mib = 99, .mounts = { mounts, 1 } };
    struct json *b = bundle_of(mem, &o, &(struct image_config){ .env = { image_env, 2 }, .workdir = "/w" }, &place);
    const struct json *process = json_get(b, "process"), *linux_part = json_get(b, "linux"), *limits = json_get(linux_part, "resources");
    CHECK(holds(json_get(process, "args"), "hi") && holds(json_get(process, "env"), "A=from order") && !holds(json_get(process, "env"), "A=from image"));
    CHECK(holds(json_get(process, "env"), "B=2") && holds(json_get(process, "env"), "PATH=/mine") && holds(json_get(process, "env"), "HOME=/root"));
    CHECK(text_is(json_text(process, "cwd"), "/w") && json_get(process, "noNewPrivileges")->flag);
    CHECK(json_int(json_get(limits, "memory"), "limit", 0) == 512 << 20 && json_int(json_get(limits, "memory"), "swap", 0) == 512 << 20);
    CHECK(json_int(json_get(limits, "cpu"), "quota", 0) == 150000 && json_int(json_get(limits, "cpu"), "period", 0) == 100000 && json_int(json_get(limits, "pids"), "limit", 0) == 4096);
    CHECK(json_int(json_get(linux_part, "uidMappings")->first, "hostID", 0) == 0x10010000);
    const struct json *volume = find(json_get(b, "mounts"), "destination", "/data"), *shm = find(json_get(b, "mounts"), "destination", "/dev/shm");
    CHECK(volume && holds(json_get(volume, "options"), "ro") && text_is(json_text(volume, "source"), "/run/arcus/tasks/att-1/vol-0"));
    CHECK(shm && holds(json_get(shm, "options"), "size=99m"));
    CHECK(!find(json_get(b, "mounts"), "destination", "/workdir") && !find(json_get(b, "mounts"), "destination", "/run/secrets"));
}

TEST(a_bundle_divides_the_disk_where_the_node_can)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    const char *argv[] = { "true" };
    struct order o = { .name = "x", .count = 1, .argv = { argv, 1 }, .cpu_milli = 2500, .mem_mib = 512, .disk_mibs = 20 };
    struct io_means io = { .limits = true, .weight = "io.bfq.weight", .major = 254, .minor = 16 };
    struct bundle_place p = place;
    struct json *limits = json_get(json_get(bundle_of(mem, &o, &(struct image_config){ 0 }, &p), "linux"), "resources");
    CHECK(!json_get(limits, "blockIO") && !json_get(limits, "unified"));
    p.io = &io;
    limits = json_get(json_get(bundle_of(mem, &o, &(struct image_config){ 0 }, &p), "linux"), "resources");
    const struct json *most = json_get(json_get(limits, "blockIO"), "throttleWriteBpsDevice");
    CHECK(most && json_int(most->first, "major", 0) == 254 && json_int(most->first, "minor", 0) == 16 && json_int(most->first, "rate", 0) == 20 << 20);
    CHECK(text_is(json_text(json_get(limits, "unified"), "io.bfq.weight"), "250"));
    io = (struct io_means){ .major = 254 };
    limits = json_get(json_get(bundle_of(mem, &o, &(struct image_config){ 0 }, &p), "linux"), "resources");
    CHECK(!json_get(limits, "blockIO") && !json_get(limits, "unified"));
}

TEST(one_of_a_gang_has_its_hostfile_and_the_launcher_and_others_have_not)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    const char *argv[] = { "true" };
    struct order o = { .name = "x", .count = 2, .argv = { argv, 1 } };
    const struct image_config none = { 0 };
    struct json *b = bundle_of(mem, &o, &none, &place);
    CHECK(!find(json_get(b, "mounts"), "destination", HOSTFILE_PATH) && !find(json_get(b, "mounts"), "destination", LAUNCH_PATH));
    o.hostfile = "100.64.16.2 slots=1\n100.64.16.3 slots=1\n";
    b = bundle_of(mem, &o, &none, &place);
    const struct json *file = find(json_get(b, "mounts"), "destination", HOSTFILE_PATH), *launch = find(json_get(b, "mounts"), "destination", LAUNCH_PATH);
    CHECK(file && text_is(json_text(file, "source"), "/run/arcus/tasks/att-1/hostfile") && holds(json_get(file, "options"), "noexec"));
    CHECK(launch && text_is(json_text(launch, "source"), "/run/arcus/tasks/att-1/launch") && holds(json_get(launch, "options"), "ro"));
}

TEST(one_in_the_network_of_the_node_has_none_of_its_own_and_sees_sysfs_through_the_nodes)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    const char *argv[] = { "true" };
    struct order o = { .name = "x", .count = 1, .argv = { argv, 1 } };
    const struct image_config none = { 0 };
    for (int host = 0; host < 2; host++) {
        o.host_network = host;
        struct json *b = bundle_of(mem, &o, &none, &place), *list = json_get(json_get(b, "linux"), "namespaces");
        CHECK(find(list, "type", "user") && find(list, "type", "pid") && (find(list, "type", "network") == NULL) == host);
        const struct json *sys = find(json_get(b, "mounts"), "destination", "/sys");
        CHECK(sys && text_is(json_text(sys, "type"), host ? "bind" : "sysfs") && holds(json_get(sys, "options"), "ro"));
    }
}

TEST(no_bundle_gives_what_no_task_may_have)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    const char *argv[] = { "true" };
    struct order o = { .name = "x", .count = 1, .argv = { argv, 1 } };
    struct json *b = bundle_of(mem, &o, &(struct image_config){0}, &place);
    const struct json *caps = json_get(json_get(b, "process"), "capabilities");
    static const char *const never[] = { "CAP_SYS_ADMIN", "CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_MKNOD", "CAP_SYS_PTRACE", "CAP_SYS_MODULE", "CAP_DAC_READ_SEARCH", "CAP_SETFCAP" };
    static const char *const sets[] = { "bounding", "effective", "permitted", "inheritable", "ambient" };
    static const char *const own[] = { "user", "pid", "mount", "network", "ipc", "uts" };
    for (size_t i = 0; i < COUNT(never); i++)
        for (size_t s = 0; s < COUNT(sets); s++)
            CHECK(!holds(json_get(caps, sets[s]), never[i]));
    CHECK(holds(json_get(caps, "bounding"), "CAP_CHOWN") && holds(json_get(caps, "effective"), "CAP_SETUID"));
    for (size_t i = 0; i < COUNT(own); i++) {
        const struct json *ns = find(json_get(json_get(b, "linux"), "namespaces"), "type", own[i]);
        CHECK(ns && !json_get(ns, "path"));
    }
    const struct json *deny = json_get(json_get(json_get(b, "linux"), "resources"), "devices")->first;
    CHECK(!json_get(deny, "allow")->flag && text_is(json_text(deny, "access"), "rwm") && !deny->next);
    CHECK(text_is(json_text(json_get(json_get(b, "linux"), "seccomp"), "defaultAction"), "SCMP_ACT_ERRNO"));
}

TEST(a_bundle_allows_exactly_the_devices_of_the_lease)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    const char *argv[] = { "true" }, *words[] = { "FROM_SPEC=1", "LATER=spec" }, *image_env[] = { "LD_LIBRARY_PATH=/opt/lib", "FROM_SPEC=0" };
    struct pair env[] = { { "LATER", "job" } };
    struct plan_node nodes[] = { { .source = "/dev/nvidia3", .path = "/dev/nvidia0", .major = 195, .minor = 3 }, { .source = "/dev/x", .path = "/dev/x", .block = true, .major = 8, .minor = 1 } };
    const struct injection give = { .nodes = { nodes, 2 }, .env = { words, 2 }, .libraries = "/usr/local/nvidia/lib64", .programs = "/usr/local/nvidia/bin" };
    struct bundle_place p = place;
    p.give = &give;
    struct json *b = bundle_of(mem, &(struct order){ .argv = { argv, 1 }, .env = { env, 1 } }, &(struct image_config){ .env = { image_env, 2 } }, &p);
    const struct json *rule = json_get(json_get(json_get(b, "linux"), "resources"), "devices")->first, *own = json_get(json_get(b, "process"), "env");
    CHECK(!json_get(rule, "allow")->flag && text_is(json_text(rule, "access"), "rwm") && !json_get(rule, "major"));
    rule = rule->next;
    CHECK(json_get(rule, "allow")->flag && text_is(json_text(rule, "type"), "c") && json_int(rule, "major", 0) == 195 && json_int(rule, "minor", 0) == 3 && text_is(json_text(rule, "access"), "rw"));
    rule = rule->next;
    CHECK(text_is(json_text(rule, "type"), "b") && json_int(rule, "major", 0) == 8 && !rule->next);
    const struct json *node = find(json_get(b, "mounts"), "destination", "/dev/nvidia0");
    CHECK(node && text_is(json_text(node, "source"), "/run/arcus/tasks/att-1/devices/0"));
    CHECK(holds(own, "LD_LIBRARY_PATH=/opt/lib:/usr/local/nvidia/lib64") && holds(own, "FROM_SPEC=1") && holds(own, "LATER=job")
          && holds(own, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/nvidia/bin"));
    const struct json *hidden = json_get(json_get(b, "linux"), "maskedPaths");
    CHECK(!holds(hidden, "/proc/driver/nvidia") && holds(hidden, "/proc/driver/nvidia/gpus"));
    b = bundle_of(mem, &(struct order){ .argv = { argv, 1 } }, &(struct image_config){0}, &place);
    CHECK(holds(json_get(json_get(b, "linux"), "maskedPaths"), "/proc/driver/nvidia"));
}

TEST(a_task_with_a_mig_instance_is_told_its_name_and_not_that_of_the_gpu)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    const char *argv[] = { "true" };
    struct pair env[] = { { "NVIDIA_VISIBLE_DEVICES", "GPU-a,GPU-b" } }, own[] = { { "NVIDIA_VISIBLE_DEVICES", "all" } };
    const struct injection give = { .parents = "GPU-a,GPU-b", .visible = "MIG-x,GPU-b" };
    struct bundle_place p = place;
    p.give = &give;
    struct json *b = bundle_of(mem, &(struct order){ .argv = { argv, 1 }, .env = { env, 1 } }, &(struct image_config){ 0 }, &p);
    CHECK(holds(json_get(json_get(b, "process"), "env"), "NVIDIA_VISIBLE_DEVICES=MIG-x,GPU-b"));
    b = bundle_of(mem, &(struct order){ .argv = { argv, 1 }, .env = { own, 1 } }, &(struct image_config){ 0 }, &p);
    CHECK(holds(json_get(json_get(b, "process"), "env"), "NVIDIA_VISIBLE_DEVICES=all"));      /* what the job says itself */
}

TEST(a_task_dumps_no_core_and_gains_no_priority)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    const char *argv[] = { "true" };
    struct json *b = bundle_of(mem, &(struct order){ .argv = { argv, 1 } }, &(struct image_config){0}, &place);
    const struct json *limits = json_get(json_get(b, "process"), "rlimits");
    CHECK(json_int(find(limits, "type", "RLIMIT_CORE"), "hard", 9) == 1 && json_int(find(limits, "type", "RLIMIT_RTPRIO"), "hard", 9) == 0
          && json_int(find(limits, "type", "RLIMIT_NICE"), "hard", 9) == 0 && json_int(find(limits, "type", "RLIMIT_NOFILE"), "hard", 9) == 4096);
}

TEST(a_work_folder_that_could_be_a_descriptor_of_the_runtime_is_refused)
{
    static const char *const bad[] = { "/proc/self/fd/7", "/proc", "//proc/self/fd/7", "/./proc/1/root", "/tmp/../proc/self/fd/7" };
    const char *argv[] = { "true" };
    for (size_t i = 0; i < COUNT(bad); i++) {
        AUTO(str_done) struct str s = {0};
        struct err err = {0};
        CHECK(!bundle_write(&s, &(struct order){ .argv = { argv, 1 } }, &(struct image_config){ .workdir = bad[i] }, &root_user, &place, &err) && err.rc == RC_BAD_INPUT && strstr(err.text, "work folder"));
    }
}

TEST(a_ready_made_filter_takes_the_place_of_the_profile)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    const char *argv[] = { "true" };
    struct bundle_place p = place;
    p.filter = "QUJD";
    struct json *b = bundle_of(mem, &(struct order){ .argv = { argv, 1 } }, &(struct image_config){0}, &p);
    CHECK(text_is(json_text(json_get(b, "annotations"), "run.oci.seccomp_bpf_data"), "QUJD") && !json_get(json_get(b, "linux"), "seccomp"));
}

TEST(an_image_without_a_command_needs_one)
{
    AUTO(str_done) struct str s = {0};
    struct err err = {0};
    CHECK(!bundle_write(&s, &(struct order){ .count = 1 }, &(struct image_config){0}, &root_user, &place, &err) && err.rc == RC_BAD_INPUT && strstr(err.text, "no command"));
}

TEST(host_names_are_made_of_what_may_be_in_one)
{
    char name[64];
    bundle_hostname(&(struct order){ .name = "my_job/../x", .count = 1 }, name);
    CHECK(text_is(name, "myjobx"));
    bundle_hostname(&(struct order){ .name = "--a", .count = 3, .task = 0 }, name);
    CHECK(text_is(name, "a-0"));
    bundle_hostname(&(struct order){ .name = "a", .count = 3, .task = 12 }, name);
    CHECK(text_is(name, "a-12"));
    bundle_hostname(&(struct order){ .name = "", .count = 1 }, name);
    CHECK(text_is(name, "task"));
}

TEST(the_profile_knows_what_programs_need_and_what_they_must_not_have)
{
    static const char *const need[] = { "read", "openat", "execve", "futex", "epoll_pwait2", "statx", "rseq", "clock_nanosleep", "memfd_create", "openat2", "prlimit64", "setresuid", "chroot" };
    static const char *const never[] = { "mount", "umount2", "bpf", "unshare", "setns", "keyctl", "io_uring_setup", "kexec_load", "init_module", "open_by_handle_at", "userfaultfd", "clone", "clone3", "perf_event_open", "reboot" };
    for (size_t i = 0; i < COUNT(need); i++)
        CHECK(seccomp_allows(need[i]));
    for (size_t i = 0; i < COUNT(never); i++)
        CHECK(!seccomp_allows(never[i]));
}

/* --- who runs */

static const char passwd[] = "root:x:0:0:root:/root:/bin/sh\nbroken line\napp:x:1000:100:An App:/home/app:/bin/sh\nfar:x:70000:70000::/far:/bin/sh\nrelative:x:5:5::home:/bin/sh";
static const char group[] = "users:x:100:\nvideo:x:44:app,other\nother:x:45:notapp\n";

static bool user(const char *text, struct arena *mem, struct bundle_user *out, struct err *err)
{
    *err = (struct err){0};
    return bundle_user_find(text, SLICE(passwd), SLICE(group), mem, out, err);
}

TEST(users_are_found_by_name_and_by_number)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct bundle_user u;
    struct err err;
    CHECK(user(NULL, mem, &u, &err) && u.uid == 0 && u.gid == 0 && text_is(u.home, "/root"));
    CHECK(user("app", mem, &u, &err) && u.uid == 1000 && u.gid == 100 && text_is(u.home, "/home/app") && u.group_count == 2 && u.groups[0] == 100 && u.groups[1] == 44);
    CHECK(user("1000", mem, &u, &err) && u.uid == 1000 && u.gid == 100 && u.group_count == 2);
    CHECK(user("1000:7", mem, &u, &err) && u.uid == 1000 && u.gid == 7 && u.group_count == 1 && u.groups[0] == 7);
    CHECK(user("app:video", mem, &u, &err) && u.gid == 44);
    CHECK(user("4711", mem, &u, &err) && u.uid == 4711 && u.gid == 0 && text_is(u.home, "/"));
    CHECK(user("relative", mem, &u, &err) && text_is(u.home, "/"));
    CHECK(bundle_user_find("", SLICE(""), SLICE(""), mem, &u, &err) && u.uid == 0 && text_is(u.home, "/root"));
}

TEST(users_that_are_not_there_or_out_of_range_are_refused)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct bundle_user u;
    struct err err;
    static const char *const bad[] = { "nobody", "app:nogroup", "far", "65536", "99999999999999999999", "1000:65536", ":", "-1", "broken line" };
    for (size_t i = 0; i < COUNT(bad); i++)
        CHECK(!user(bad[i], mem, &u, &err) && err.rc == RC_BAD_INPUT && text_is(err.field, "user"));
}
