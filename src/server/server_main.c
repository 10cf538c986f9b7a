/* server_main.c - `arcus server` and `arcus up`: flags into a configuration, one loop, out on SIGTERM or SIGINT after the open requests.
 *
 * `up` is a server with an agent beside it, as a process of its own: started again if it dies, left alone at the end, so that its
 * containers go on. */
#include "api/api.h"
#include "base/log.h"
#include "server/server.h"
#include "wire/digest.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LAST_MS = 5, GRACE_MS = 5000, AGENT_AGAIN_MS = 1000, FILES_KEPT = 256, LOCK_TRIES = 50, LOCK_PAUSE_US = 20000 };   /* FILES_KEPT: descriptors for all but connections */

struct run {
    struct os *os;
    struct server *server;
    struct server_config config;
    bool up, closing, help;
    const char *sim_gpus, *sim_model, *nvml, *cuda, *uvm, *gpu_test, *sys, *name, *run_folder, *log_level, *keep_logs, *cdi, *mps, *own_devices, *uplink;
    struct api_limits rates;
    struct http_limits limits;
    int64_t connections, per_address;
    char self[4096];
    struct proc *agent;
    struct store_look *check;
    bool damaged;
    struct arena *mem;
};

static const struct { const char *flag; size_t offset; bool up_only; const char *value, *help; int64_t min, max; } flags[] = {    /* min, max: of a number */
    { "--data", offsetof(struct run, config.data), false, "DIR", "where everything is kept (root: /var/lib/arcus, else ~/.local/share/arcus)" },
    { "--listen", offsetof(struct run, config.address), false, "HOST:PORT", "where to serve (127.0.0.1:6640); anything but loopback is served with TLS" },
    { "--store", offsetof(struct run, config.store), false, "PLACE", "a file for SQLite (DATA/arcus.db), or postgres://USER@HOST/NAME" },
    { "--store-tls", offsetof(struct run, config.store_tls), false, "off", "with sslmode=disable in its URL: PostgreSQL over a network without TLS" },
    { "--tls-cert", offsetof(struct run, config.cert), false, "FILE", "PEM certificate; without it one is made at first start" },
    { "--tls-key", offsetof(struct run, config.key), false, "FILE", "its private key" },
    { "--host", offsetof(struct run, config.host), false, "NAME", "the name in a certificate that is made" },
    { "--advertise", offsetof(struct run, config.advertise), false, "URL", "where other servers, agents and clients reach this one (from --listen)" },
    { "--keys", offsetof(struct run, config.keys), false, "DIR", "keys that all servers of a cloud share (DATA/keys)" },
    { "--default-image", offsetof(struct run, config.default_image), false, "IMAGE", "for jobs that name none (up: host)" },
    { "--lease", offsetof(struct run, config.run_for_s), false, "SECONDS", "how long a task may run while its node is not heard of (300)", 5, 86400 },
    { "--rate-key", offsetof(struct run, rates.key_rate), false, "N", "requests a second of one key, twice that at once (50000; 0: no limit)", 0, 1000000 },
    { "--rate-address", offsetof(struct run, rates.address_rate), false, "N", "requests a second of one address (100000; 0: no limit)", 0, 1000000 },
    { "--rate-failures", offsetof(struct run, rates.failure_rate), false, "N", "attempts a second without a good key, of one address (10; 0: no limit)", 0, 1000000 },
    { "--connections", offsetof(struct run, connections), false, "N", "open connections in all (10000)", 16, 1000000 },
    { "--connections-per-address", offsetof(struct run, per_address), false, "N", "open connections of one address (2000)", 1, 1000000 },
    { "--keep-jobs", offsetof(struct run, config.keep_jobs), false, "TIME", "how long finished jobs are kept (30d; at least a day; forever: all)" },
    { "--keep-events", offsetof(struct run, config.keep_events), false, "TIME", "how long events are kept; the audit goes to the archive then (30d; forever)" },
    { "--keep-usage", offsetof(struct run, config.keep_usage), false, "TIME", "how long usage is kept before it goes to the archive (90d; forever)" },
    { "--keep-logs", offsetof(struct run, keep_logs), true, "TIME", "how long logs and outputs of ended tasks are kept on the node (7d)" },
    { "--log-level", offsetof(struct run, log_level), false, "LEVEL", "debug, info, warn or error" },
    { "--sim-gpus", offsetof(struct run, sim_gpus), true, "N", "simulated GPUs when the machine has none (4)" },
    { "--sim-model", offsetof(struct run, sim_model), true, "NAME", "their model (NVIDIA H200)" },
    { "--mps", offsetof(struct run, mps), true, "FILE", "NVIDIA's MPS for shares of its GPUs: auto, off or a program (auto)" },
    { "--own-devices", offsetof(struct run, own_devices), true, "yes", "modes of this machine's GPUs may be set: exclusive while they are shared, MIG instances where dynamic (no)" },
    { "--cdi", offsetof(struct run, cdi), true, "DIR", "CDI specs of its GPUs: auto, off or a folder (auto)" },
    { "--nvml", offsetof(struct run, nvml), true, "FILE", "NVIDIA's management library, where it is not in a usual place" },
    { "--cuda", offsetof(struct run, cuda), true, "FILE", "NVIDIA's CUDA driver library, where it is not in a usual place" },
    { "--uvm", offsetof(struct run, uvm), true, "FILE", "the device that processes have open which use CUDA (/dev/nvidia-uvm)" },
    { "--gpu-test", offsetof(struct run, gpu_test), true, "WHEN", "when GPUs are tested: fault, hourly or off (fault)" },
    { "--sys", offsetof(struct run, sys), true, "DIR", "where the kernel's sysfs is (/sys)" },
    { "--uplink", offsetof(struct run, uplink), true, "yes", "let tasks out through this machine, as far as their project may go (no)" },
    { "--name", offsetof(struct run, name), true, "NAME", "the node's name (the host's)" },
    { "--run", offsetof(struct run, run_folder), true, "DIR", "sockets and root filesystems (/run/arcus)" },
};

static void print_help(bool up)
{
    printf("usage: arcus %s [FLAGS]\n\n%s\n\n", up ? "up" : "server",
           up ? "Runs a whole cloud on this machine, in the foreground: the head node and an agent beside it." :
                "Runs the head node in the foreground. Machines join it with: arcus agent --server URL --token TOKEN");
    for (size_t i = 0; i < COUNT(flags); i++)
        if (up || !flags[i].up_only)
            printf("  %-25s %-10s %s\n", flags[i].flag, flags[i].value, flags[i].help);
    printf("\nexamples:\n  arcus %s\n  arcus %s --listen 0.0.0.0:6640 --host cloud.example.org\n", up ? "up" : "server", up ? "up" : "server");
}

static bool parse_flags(int argc, char **argv, struct run *r, struct err *err)
{
    for (int i = 1; i < argc; i++) {
        if (text_is(argv[i], "--help") || text_is(argv[i], "-h"))
            return r->help = true;
        const char *value = NULL;
        size_t n = strcspn(argv[i], "="), best = 0;
        size_t k = 0;
        for (; k < COUNT(flags); k++)
            if (strlen(flags[k].flag) == n && strncmp(flags[k].flag, argv[i], n) == 0 && (r->up || !flags[k].up_only))
                break;
        if (k == COUNT(flags)) {
            for (size_t f = 1; f < COUNT(flags); f++)
                if (text_distance(argv[i], flags[f].flag) < text_distance(argv[i], flags[best].flag))
                    best = f;
            return err_set(err, RC_BAD_INPUT, "unknown flag '%s'; did you mean %s? (--help shows all)", argv[i], flags[best].flag);
        }
        value = argv[i][n] == '=' ? argv[i] + n + 1 : i + 1 < argc ? argv[++i] : NULL;
        if (!text_given(value))
            return err_set(err, RC_BAD_INPUT, "%s needs a value: %s %s", flags[k].flag, flags[k].flag, flags[k].value);
        if (flags[k].max) {
            char *end;
            long long number = strtoll(value, &end, 10);
            if (*end || number < flags[k].min || number > flags[k].max)
                return err_set(err, RC_BAD_INPUT, "%s is a number from %lld to %lld", flags[k].flag, (long long)flags[k].min, (long long)flags[k].max);
            *(int64_t *)((char *)r + flags[k].offset) = number;
            continue;
        }
        *(const char **)((char *)r + flags[k].offset) = value;
    }
    return true;
}

/* As many descriptors as we may have; and fewer connections than those, so that the store and its files always find some. */
static void settle_limits(struct run *r)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)!setrlimit(RLIMIT_NOFILE, &files);
        int64_t most = files.rlim_max == RLIM_INFINITY ? INT64_MAX : (int64_t)(files.rlim_max - MIN(files.rlim_max / 2, (rlim_t)FILES_KEPT));
        if (r->connections > most) {
            log_line(LOG_WARN, "server", "at most %lld connections: the limit of open files is %lld", (long long)most, (long long)files.rlim_max);
            r->connections = most;
        }
    }
    r->limits.connections = (int)r->connections;
    r->limits.per_address = (int)MIN(r->per_address, r->connections);
    r->config.rates = &r->rates;
    r->config.limits = &r->limits;
}

static bool settle(struct run *r, struct err *err)
{
    enum log_level level = LOG_INFO;
    if (text_given(r->log_level) && !log_level_of(r->log_level, &level))
        return err_set(err, RC_BAD_INPUT, "--log-level is debug, info, warn or error");
    log_level_set(level);
    settle_limits(r);
    if (!r->config.data) {
        const char *home = getenv("HOME");
        r->config.data = geteuid() == 0 ? "/var/lib/arcus" : arena_printf(r->mem, "%s/.local/share/arcus", home ? home : "/tmp");
    } else if (r->config.data[0] != '/') {
        char here[4096];
        r->config.data = arena_printf(r->mem, "%s/%s", getcwd(here, sizeof here) ? here : "", r->config.data);
    }
    if (r->up && !r->run_folder && !text_is(r->config.data, "/var/lib/arcus")) { /* several clouds on one machine keep apart */
        char hex[DIGEST_HEX];
        digest_sha256(r->config.data, strlen(r->config.data), hex);
        r->run_folder = arena_printf(r->mem, "/run/arcus-%.8s", hex);
    }
    if (r->up && !r->config.default_image)
        r->config.default_image = "host";
    r->config.simulated = r->up && !r->nvml && access("/dev/nvidiactl", F_OK) && access("/dev/kfd", F_OK);
    ssize_t n = readlink("/proc/self/exe", r->self, sizeof r->self - 1);
    if (n <= 0)
        return err_errno(err, "/proc/self/exe");
    r->self[n] = 0;
    return true;
}

bool server_lock(struct os *os, const char *data, int *fd, struct err *err)
{
    char path[4096], pid[32];
    snprintf(path, sizeof path, "%s/server.lock", data);
    if (!dir_make(os, data, 0711, err))
        return false;
    *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (*fd == -1)
        return err_errno(err, "open %s", path);
    bool ours = false; /* one that was killed may have left a child that is not the agent yet, and shares its lock */
    for (int i = 0; i < LOCK_TRIES && !(ours = flock(*fd, LOCK_EX | LOCK_NB) == 0); i++)
        usleep(LOCK_PAUSE_US);
    if (!ours)
        return err_set(err, RC_CONFLICT, "another server runs on %s", data);
    int n = snprintf(pid, sizeof pid, "%d\n", (int)getpid()); /* for whoever wants to stop it */
    if (ftruncate(*fd, 0) == -1 || pwrite(*fd, pid, (size_t)n, 0) != n)
        return err_errno(err, "write %s", path);
    static const char *const folders[] = { "", "/keys", "/tls" };
    for (size_t i = 0; i < COUNT(folders); i++) {
        snprintf(path, sizeof path, "%s%s", data, folders[i]);
        dir_tidy(os, path);
    }
    return true;
}

static void agent_start(void *arg);
static void agent_ended(void *arg, int wait_status)
{
    struct run *r = arg;
    r->agent = NULL;
    if (r->closing)
        return;
    bool killed = WIFSIGNALED(wait_status);
    log_line(LOG_WARN, "up", "the agent ended (%s %d); starting it again", killed ? "signal" : "exit code",
             killed ? WTERMSIG(wait_status) : WEXITSTATUS(wait_status));
    timer_start(r->os, AGENT_AGAIN_MS, agent_start, r);
}

static void agent_spawn(void *arg, const char *token)
{
    struct run *r = arg;
    struct err err = { 0 };
    const char *argv[48];
    size_t n = 0;
    argv[n++] = r->self, argv[n++] = "agent";
    argv[n++] = "--server", argv[n++] = server_url(r->server);
    argv[n++] = "--data", argv[n++] = arena_printf(r->mem, "%s/agent", r->config.data);
    argv[n++] = "--allow-host-image";
    argv[n++] = "--hide", argv[n++] = r->config.data;   /* the store and the keys */
    argv[n++] = "--sim-gpus", argv[n++] = r->sim_gpus ? r->sim_gpus : "4";
    if (r->run_folder)
        argv[n++] = "--run", argv[n++] = r->run_folder;
    if (r->sim_model)
        argv[n++] = "--sim-model", argv[n++] = r->sim_model;
    if (r->nvml)
        argv[n++] = "--nvml", argv[n++] = r->nvml;
    if (r->cuda)
        argv[n++] = "--cuda", argv[n++] = r->cuda;
    if (r->uvm)
        argv[n++] = "--uvm", argv[n++] = r->uvm;
    if (r->gpu_test)
        argv[n++] = "--gpu-test", argv[n++] = r->gpu_test;
    if (r->sys)
        argv[n++] = "--sys", argv[n++] = r->sys;
    if (r->name)
        argv[n++] = "--name", argv[n++] = r->name;
    if (r->uplink)
        argv[n++] = "--uplink", argv[n++] = r->uplink;
    if (token) { /* in a file: an argument would show in the process list */
        const char *file = arena_printf(r->mem, "%s/agent/token", r->config.data);
        if (!dir_make(r->os, arena_printf(r->mem, "%s/agent", r->config.data), 0711, &err) || !file_replace(r->os, file, SLICE(token), 0600, &err))
            log_line(LOG_ERROR, "up", "the agent's token cannot be kept: %s", err.text);
        argv[n++] = "--token-file", argv[n++] = file;
    }
    if (text_given(server_pin(r->server)))
        argv[n++] = "--pin", argv[n++] = server_pin(r->server);
    if (text_is(r->own_devices, "yes"))
        argv[n++] = "--own-devices";
    if (r->mps)
        argv[n++] = "--mps", argv[n++] = r->mps;
    if (r->cdi)
        argv[n++] = "--cdi", argv[n++] = r->cdi;
    if (r->keep_logs)
        argv[n++] = "--keep-logs", argv[n++] = r->keep_logs;
    if (r->log_level)
        argv[n++] = "--log-level", argv[n++] = r->log_level;
    argv[n] = NULL;
    static const char *const env[] = { "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", NULL };
    struct proc_spec spec = { .argv = argv, .env = env, .in = -1, .out = STDERR_FILENO, .err = STDERR_FILENO };
    if (!proc_spawn(r->os, &spec, agent_ended, r, &r->agent, &err)) {
        log_line(LOG_ERROR, "up", "the agent does not start: %s", err.text);
        timer_start(r->os, AGENT_AGAIN_MS, agent_start, r);
    }
}

static void agent_start(void *arg)
{
    struct run *r = arg;
    if (r->closing)
        return;
    AUTO(arena_free) struct arena *mem = arena_new();
    struct slice joined;
    struct err err = { 0 };
    if (file_read(r->os, arena_printf(mem, "%s/agent/node.json", r->config.data), 65536, mem, &joined, &err))
        agent_spawn(r, NULL);
    else
        server_token(r->server, agent_spawn, r);
}

/* A moment for connections to other servers to be let go. */
static void leave(void *arg) { os_stop(((struct run *)arg)->os); }
static void on_closed(void *arg) { timer_start(((struct run *)arg)->os, LAST_MS, leave, arg); }

static void on_signal(void *arg)
{
    struct run *r = arg;
    if (r->closing)
        return;
    r->closing = true;
    log_line(LOG_INFO, "server", "stopping; running tasks go on");
    if (r->agent)
        proc_kill(r->agent, SIGTERM);
    server_close(r->server, GRACE_MS, on_closed, r);
}

static void on_damaged(void *arg)
{
    struct run *r = arg;
    r->damaged = true;
    on_signal(r);
}

static bool serve(struct run *r, struct err *err)
{
    int lock = -1;
    if (r->up && geteuid() != 0)        /* its agent would end again and again */
        return err_set(err, RC_DENIED, "running containers needs root; `arcus server`, the head node alone, does not");
    os_keep_memory(); /* the master keys are in it */
    if (!settle(r, err) || !(r->os = os_real_new(err)))
        return false;
    os_hold_freed(r->os);
    if (!server_lock(r->os, r->config.data, &lock, err) || !server_open(r->os, &r->config, &r->server, err))
        return false;
    os_on_signal(r->os, SIGTERM, on_signal, r);
    os_on_signal(r->os, SIGINT, on_signal, r);
    struct err ignored;
    (void)!file_replace(r->os, arena_printf(r->mem, "%s/address", r->config.data), SLICE(server_url(r->server)), 0644, &ignored);
    log_line(LOG_INFO, "server", "arcus %s serves %s from %s%s%s", ARCUS_VERSION, server_url(r->server), r->config.data,
             text_given(server_pin(r->server)) ? ", authority sha256 " : "", server_pin(r->server));
    if (r->up)
        agent_start(r);
    r->check = store_look_start(r->os, r->self, r->config.store ? r->config.store : arena_printf(r->mem, "%s/arcus.db", r->config.data), on_damaged, r);
    os_run(r->os);
    store_look_stop(r->check);
    return !r->damaged || err_set(err, RC_INTERNAL, "the store is damaged; what is wrong was told above");
}

static int run(int argc, char **argv, bool up)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct run *r = ARENA_NEW(mem, struct run);
    struct err err = { 0 };
    r->mem = mem;
    r->up = up;
    r->rates = api_limits_default;
    r->limits = http_limits_default;
    r->connections = r->limits.connections;
    r->per_address = r->limits.per_address;
    if (!parse_flags(argc, argv, r, &err) || r->help) {
        if (r->help)
            return print_help(up), 0;
        fprintf(stderr, "arcus %s: %s\n", argv[0], err.text);
        return rc_exit(err.rc);
    }
    bool ok = serve(r, &err);
    if (!ok)
        fprintf(stderr, "arcus %s: %s\n", argv[0], err.text);
    server_free(r->server);
    if (r->os)
        os_free(r->os);
    return ok ? 0 : rc_exit(err.rc);
}

int server_main(int argc, char **argv) { return run(argc, argv, false); }
int up_main(int argc, char **argv) { return run(argc, argv, true); }
