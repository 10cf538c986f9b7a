/* agent_main.c - `arcus agent`: flags into a configuration, one loop, and out on SIGTERM with every container left running. */
#include "agent/agent.h"
#include "agent/care.h"
#include "agent/cdi.h"
#include "agent/probe.h"
#include "model/ipv4.h"
#include "wire/bind.h"
#include "base/log.h"
#include "base/version.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

enum { MAX_SERVERS = 8, MAX_LABELS = 64, MAX_HIDE = 16, PEM_LIMIT = 1 << 20, GOODBYE_MS = 5000, LOCK_TRIES = 100, LOCK_PAUSE_US = 20000 };

struct flags {
    struct agent_config config;
    const char *servers[MAX_SERVERS];
    const char *hide[MAX_HIDE];
    struct pair labels[MAX_LABELS];
    const char *ca, *token_file;
    bool help;
    struct arena *mem;
};

static bool on_server(struct flags *f, const char *value, struct err *err)
{
    if (f->config.servers.count == MAX_SERVERS)
        return err_field(err, "--server", "at most %d", MAX_SERVERS);
    f->servers[f->config.servers.count++] = value;
    return true;
}

static bool on_hide(struct flags *f, const char *value, struct err *err)
{
    if (*value != '/')
        return err_field(err, "--hide", "expected an absolute path, not '%.60s'", value);
    if (f->config.hide.count == MAX_HIDE)
        return err_field(err, "--hide", "at most %d", MAX_HIDE);
    f->hide[f->config.hide.count++] = value;
    return true;
}

static bool on_label(struct flags *f, const char *value, struct err *err)
{
    const char *equals = strchr(value, '=');
    if (!equals || equals == value)
        return err_field(err, "--label", "expected KEY=VALUE, not '%.60s'", value);
    if (f->config.labels.count == MAX_LABELS)
        return err_field(err, "--label", "at most %d", MAX_LABELS);
    f->labels[f->config.labels.count++]
        = (struct pair){ arena_bytes(f->mem, value, (size_t)(equals - value)), equals + 1 };
    return true;
}

static bool on_number(const char *flag, const char *value, int64_t max, int64_t *to,
                      struct err *err)
{
    char *end;
    errno = 0;
    long long n = strtoll(value, &end, 10);
    if (errno || end == value || *end || n < 0 || n > max)
        return err_field(err, flag, "expected a number from 0 to %" PRId64 ", not '%.60s'", max,
                         value);
    return *to = n, true;
}

static bool on_log_level(struct flags *f, const char *value, struct err *err)
{
    enum log_level level;
    (void)f;
    if (!log_level_of(value, &level))
        return err_field(err, "--log-level", "expected debug, info, warn or error, not '%.60s'",
                         value);
    return log_level_set(level), true;
}

static bool on_sim_gpus(struct flags *f, const char *value, struct err *err)
{
    f->config.sim_kinds = value;
    return sim_gpus_parse(value, &f->config.sim_gpus, err);
}

static bool on_keep_logs(struct flags *f, const char *value, struct err *err)
{
    static const struct field keep = FIELD(struct agent_config, keep_logs_s, DURATION, .min = 60, .max = INT64_C(3660) * 86400);
    return bind_text(&keep, value, f->mem, &f->config, err) || err_field(err, "--keep-logs", "--keep-logs: %s", err->text);
}

static bool on_topology(struct flags *f, const char *value, struct err *err)
{
    struct topology where;
    f->config.topology = value;
    return where_parse(value, f->mem, &where, err);
}

static bool on_cdi(struct flags *f, const char *value, struct err *err)
{
    f->config.cdi = value;
    return text_is(value, "auto") || text_is(value, "off") || path_is_plain(value)
           || err_field(err, "--cdi", "expected auto, off or an absolute path, not '%.60s'", value);
}

static bool on_mps(struct flags *f, const char *value, struct err *err)
{
    f->config.mps = value;
    return text_is(value, "auto") || text_is(value, "off") || path_is_plain(value)
           || err_field(err, "--mps", "expected auto, off or an absolute path, not '%.60s'", value);
}

static bool on_gpu_test(struct flags *f, const char *value, struct err *err)
{
    static const char *const words[] = { [CARE_FAULT] = "fault", [CARE_HOURLY] = "hourly", [CARE_OFF] = "off" };
    for (size_t i = 0; i < COUNT(words); i++)
        if (text_is(value, words[i]))
            return f->config.gpu_test = (int)i, true;
    return err_field(err, "--gpu-test", "expected fault, hourly or off, not '%.60s'", value);
}

static bool on_beat(struct flags *f, const char *value, struct err *err)
{
    return on_number("--beat-ms", value, 60000, &f->config.beat_ms, err);
}

static bool on_host_image(struct flags *f, const char *value, struct err *err)
{
    (void)value, (void)err;
    return f->config.host_image = true;
}

static bool on_own_devices(struct flags *f, const char *value, struct err *err)
{
    (void)value, (void)err;
    return f->config.own_devices = true;
}

static bool on_uplink(struct flags *f, const char *value, struct err *err)
{
    f->config.uplink = text_is(value, "yes");
    return f->config.uplink || text_is(value, "no") || err_field(err, "--uplink", "expected yes or no, not '%.60s'", value);
}

static bool on_underlay(struct flags *f, const char *value, struct err *err)
{
    f->config.underlay = text_is(value, "trusted");
    return f->config.underlay || text_is(value, "none") || err_field(err, "--underlay", "expected none or trusted, not '%.60s'", value);
}

static bool on_underlay_address(struct flags *f, const char *value, struct err *err)
{
    uint32_t address;
    f->config.underlay_address = value;
    return ipv4_parse(value, &address) || err_field(err, "--underlay-address", "expected an address such as 10.0.0.7, not '%.60s'", value);
}

static bool on_help(struct flags *f, const char *value, struct err *err)
{
    (void)value, (void)err;
    return f->help = true;
}

/* clang-format off */
static const struct flag {
    const char *name, *value;           /* value NULL: takes none */
    bool (*take)(struct flags *f, const char *value, struct err *err);  /* NULL: the text itself, at the offset */
    size_t offset;
    const char *help;
} table[] = {
    { "--server", "URL[,URL]", on_server, 0, "the cloud's address, https://host:6640, or those of several head nodes; may be given again" },
    { "--token", "TOKEN", NULL, offsetof(struct flags, config.token), "one-time token, only for the first start (an operator gets one with `arcus nodes token`)" },
    { "--token-file", "FILE", NULL, offsetof(struct flags, token_file), "the same from a file, so that it shows in no process list" },
    { "--data", "DIR", NULL, offsetof(struct flags, config.data), "what must outlive a reboot (/var/lib/arcus)" },
    { "--run", "DIR", NULL, offsetof(struct flags, config.run), "what must not (/run/arcus)" },
    { "--name", "NAME", NULL, offsetof(struct flags, config.name), "the node's name (the host's)" },
    { "--label", "KEY=VALUE", on_label, 0, "a label to place jobs by; may be given again" },
    { "--topology", "ADDRESS", on_topology, 0, "where it is: region/zone/switch/rack/nvlink, as far as that is known" },
    { "--keep-logs", "TIME", on_keep_logs, 0, "logs and outputs after a task has ended (7d)" },
    { "--sim-gpus", "N", on_sim_gpus, 0, "where the machine has no GPU, offer N made-up ones, marked as simulated; 2,1:ecc=off,1:mig are two and two special ones" },
    { "--sim-model", "MODEL", NULL, offsetof(struct flags, config.sim_model), "what they are called (NVIDIA H200)" },
    { "--cuda", "FILE", NULL, offsetof(struct flags, config.libcuda), "NVIDIA's CUDA driver library, where it is not in a usual place (libcuda.so.1)" },
    { "--uvm", "FILE", NULL, offsetof(struct flags, config.uvm), "the device that processes have open which use CUDA (/dev/nvidia-uvm)" },
    { "--nvml", "FILE", NULL, offsetof(struct flags, config.nvml), "NVIDIA's management library, where it is not in a usual place (libnvidia-ml.so.1)" },
    { "--gpu-test", "WHEN", on_gpu_test, 0, "fault: a GPU that had one is used again when it has passed a test; hourly: and while it is idle; off (fault)" },
    { "--sys", "DIR", NULL, offsetof(struct flags, config.sys), "where the kernel's sysfs is (/sys)" },
    { "--allow-host-image", NULL, on_host_image, 0, "let jobs use this machine's own files as their image (`image: host`)" },
    { "--cdi", "auto|off|DIR", on_cdi, 0, "CDI specs that say what GPUs need in a container (auto: /etc/cdi and /var/run/cdi, else what is found)" },
    { "--own-devices", NULL, on_own_devices, 0, "this machine's GPUs are the agent's: one that is shared is put into EXCLUSIVE_PROCESS mode meanwhile, so that nobody comes around MPS, and MIG instances are made and destroyed where nodes set --mig dynamic allows it" },
    { "--mps", "auto|off|FILE", on_mps, 0, "divide GPUs through NVIDIA's MPS (auto: where its nvidia-cuda-mps-control is in a usual place)" },
    { "--uplink", "yes|no", on_uplink, 0, "let tasks out through this machine, as far as their project may go; it forwards for them (no)" },
    { "--underlay", "WORD", on_underlay, 0, "trusted: nobody listens or lies between the nodes, so tasks of a gang reach each other across them; none: networks end here (none)" },
    { "--underlay-address", "ADDRESS", on_underlay_address, 0, "where other nodes reach this one (as the server sees it)" },
    { "--hide", "PATH", on_hide, 0, "a path that such jobs must not see; may be given again" },
    { "--ca", "FILE", NULL, offsetof(struct flags, ca), "PEM file of the authority that signed the server's certificate" },
    { "--pin", "SHA256", NULL, offsetof(struct flags, config.pin), "hash of the cloud's own authority; the token has it, and it is kept" },
    { "--beat-ms", "MS", on_beat, 0, "how often to be heard at least (5000)" },
    { "--log-level", "LEVEL", on_log_level, 0, "debug, info, warn or error (info)" },
    { "--help", NULL, on_help, 0, "this text" },
};
/* clang-format on */

static void print_help(void)
{
    printf("usage: arcus agent --server URL [--token TOKEN] [FLAGS]\n\n"
           "Makes this machine a node of a cloud. SIGTERM ends the agent and leaves its containers "
           "running.\n\n");
    for (size_t i = 0; i < COUNT(table); i++) {
        char head[40];
        snprintf(head, sizeof head, "%s %s", table[i].name, table[i].value ? table[i].value : "");
        printf("  %-24s %s\n", head, table[i].help);
    }
    printf("\nexamples:\n  arcus agent --server https://head.example.org:6640 --token-file "
           "/root/token --label zone=a\n");
}

static bool parse_flags(int argc, char **argv, struct flags *f, struct err *err)
{
    for (int i = 1; i < argc; i++) {
        const struct flag *found = NULL;
        const char *equals = strchr(argv[i], '=');
        size_t n = equals ? (size_t)(equals - argv[i]) : strlen(argv[i]);
        for (size_t k = 0; k < COUNT(table); k++)
            if (strlen(table[k].name) == n && strncmp(table[k].name, argv[i], n) == 0)
                found = &table[k];
        if (!found)
            return err_set(err, RC_BAD_INPUT, "unknown flag '%.60s'; see arcus agent --help",
                           argv[i]);
        if (!found->value && equals)
            return err_field(err, found->name, "%s takes no value", found->name);
        const char *value = equals ? equals + 1 : found->value && i + 1 < argc ? argv[++i] : NULL;
        if (found->value && !value)
            return err_field(err, found->name, "%s needs a value: %s", found->name, found->value);
        if (!found->take)
            *(const char **)((char *)f + found->offset) = value;
        else if (!found->take(f, value, err))
            return err_wrap(err, "%s", found->name);
    }
    f->config.servers.at = f->servers;
    f->config.labels.at = f->labels;
    f->config.hide.at = f->hide;
    if (!f->help && f->config.servers.count == 0)
        return err_field(err, "--server",
                         "--server is missing: the address of the cloud, https://host:6640");
    return true;
}

static bool read_files(struct os *os, struct flags *f, struct err *err)
{
    struct slice text;
    if (f->ca) {
        if (!file_read(os, f->ca, PEM_LIMIT, f->mem, &text, err))
            return err_wrap(err, "--ca");
        f->config.ca_pem = arena_bytes(f->mem, text.at, text.len);
    }
    if (f->token_file) {
        if (!file_read(os, f->token_file, 4096, f->mem, &text, err))
            return err_wrap(err, "--token-file");
        f->config.token = arena_bytes(f->mem, text.at,
                                      strcspn(arena_bytes(f->mem, text.at, text.len), " \r\n\t"));
    }
    return true;
}

static const char *absolute(const char *path, struct arena *mem)
{
    char here[4096];
    if (!path || *path == '/' || !getcwd(here, sizeof here))
        return path;
    return arena_printf(mem, "%s/%s", here, path);
}

static const char *own_path(struct arena *mem)
{
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    return n > 0 ? arena_bytes(mem, path, (size_t)n) : NULL;
}

/* One that was killed may have left a child that has not become another program yet, and shares its lock. */
static bool lock_soon(int fd)
{
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            return true;
        usleep(LOCK_PAUSE_US);
    }
    return false;
}

/* Two agents on one folder would both number reports. The lock goes with the process. */
static bool lock_data(struct os *os, const char *data, struct arena *mem, struct err *err)
{
    if (!dir_make(os, data, 0711, err))
        return false;
    const char *path = arena_printf(mem, "%s/agent.lock", data);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_errno(err, "open %s", path);
    static const char *const folders[] = { "", "/status", "/images/refs" };
    if (lock_soon(fd)) {
        for (size_t i = 0; i < COUNT(folders); i++)
            dir_tidy(os, arena_printf(mem, "%s%s", data, folders[i]));
        return true; /* open until the process ends */
    }
    close(fd);
    return err_set(err, RC_CONFLICT, "another agent uses %s already", data);
}

struct life {
    struct os *os;
    struct agent *agent;
    bool failed;
};

static void stop(void *arg)
{
    os_stop(arg);
}

/* The goodbye is waited for, so that the server knows at once and nothing of the connection is left. */
static void on_signal(void *arg)
{
    struct life *life = arg;
    if (!life->agent)
        return;
    log_line(LOG_INFO, "agent", "leaving; containers go on");
    timer_start(life->os, GOODBYE_MS, stop, life->os);
    agent_leave(TAKE(life->agent), stop, life->os);
}

static void on_failed(void *arg, const struct err *why)
{
    struct life *life = arg;
    (void)why;
    life->failed = true;
    os_stop(life->os);
}

static void os_done(struct os *os)
{
    if (os)
        os_free(os);
}
AUTO_FN(struct os *, os_done)

static void on_last(void *arg, struct post *p)
{
    (void)p;
    os_stop(arg);
}

/* What was on its way home from another thread comes before the last post, and is dropped. */
static void rest(struct os *os)
{
    struct post last = { .fn = on_last, .arg = os };
    os_post(os, &last);
    os_run(os);
}

static bool run(struct flags *f, struct err *err)
{
    os_keep_memory(); /* keys, and secrets on their way to tasks */
    AUTO(os_done) struct os *os = os_real_new(err);
    if (!os)
        return false;
    struct life life = { .os = os };
    f->config.on_failed = on_failed;
    f->config.arg = &life;
    f->config.self = own_path(f->mem);
    f->config.data = absolute(f->config.data, f->mem);
    f->config.run = absolute(f->config.run, f->mem);
    f->config.nvml = absolute(f->config.nvml, f->mem);
    f->config.libcuda = absolute(f->config.libcuda, f->mem);
    f->config.sys = absolute(f->config.sys, f->mem);
    f->ca = absolute(f->ca, f->mem);
    f->token_file = absolute(f->token_file, f->mem);
    if (!read_files(os, f, err) || !lock_data(os, f->config.data, f->mem, err))
        return false;
    life.agent = agent_new(os, &f->config, err);
    if (!life.agent)
        return rest(os), false;
    os_on_signal(os, SIGTERM, on_signal, &life);
    os_on_signal(os, SIGINT, on_signal, &life);
    os_run(os);
    agent_free(TAKE(life.agent));
    rest(os);
    return !life.failed || err_set(err, RC_UNAUTHENTICATED, "the node could not join");
}

int agent_main(int argc, char **argv)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct err err = { 0 };
    struct flags f
        = { .mem = mem,
            .config = { .data = "/var/lib/arcus", .run = "/run/arcus", .version = ARCUS_VERSION } };
    if (parse_flags(argc, argv, &f, &err) && f.help) {
        print_help();
        return 0;
    }
    if (err.rc == RC_OK && run(&f, &err))
        return 0;
    fprintf(stderr, "arcus agent: %s\n", err.text);
    return rc_exit(err.rc);
}
