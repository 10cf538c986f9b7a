/* helper.c - see helper.h: the loop of the device helper, and what its probes share. Nothing here uses os/: it blocks, which is what it is
 * for, and its answers are bounded by the tables that the agent reads them with. */
#include "agent/helper.h"
#include "agent/probe_host.h"
#include "base/id.h"
#include "model/prefix.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* clang-format off */
static const struct field found_rows[] = {
    FIELD(struct node_info, gpus, OBJECTS, .sub = &gpu_info_fields, .max = NODE_GPUS, .when_set = true),
    FIELD(struct node_info, cpu_model, TEXT, .max = 128, .when_set = true),
    FIELD(struct node_info, sockets, INT, .min = 0, .max = 4096, .when_set = true),
    FIELD(struct node_info, cores, INT, .min = 0, .max = 65536, .when_set = true),
    FIELD(struct node_info, numas, OBJECTS, .sub = &numa_info_fields, .max = NODE_NUMAS, .when_set = true),
    FIELD(struct node_info, nics, OBJECTS, .sub = &nic_info_fields, .max = NODE_NICS, .when_set = true),
    FIELD(struct node_info, cannot, TEXTS, .max = NODE_CANNOT, .when_set = true),
};
static const struct fields found_fields = FIELDS(node_info, found_rows);
static const struct field said_rows[] = {
    FIELD(struct helper_said, kind, TEXT, .required = true, .max = 16),
    FIELD(struct helper_said, found, OBJECT, .sub = &found_fields),
    FIELD(struct helper_said, live, OBJECTS, .sub = &gpu_live_fields, .max = NODE_GPUS, .when_set = true),
    FIELD(struct helper_said, uuid, TEXT, .max = 96, .when_set = true),
    FIELD(struct helper_said, xid, INT, .min = 0, .max = 1 << 20, .when_set = true),
};
const struct fields helper_said_fields = FIELDS(helper_said, said_rows);
/* clang-format on */

static const struct device_probe *const probes[] = { &device_nvidia, &device_amd, &device_intel };

/* --- what probes share */

void helper_add_gpu(struct node_info *out, struct arena *mem, const struct gpu_info *gpu)
{
    const struct gpu_info *gpus = out->gpus.at;
    for (size_t i = 0; i < out->gpus.count; i++)
        if (text_is(gpus[i].uuid, gpu->uuid)) {
            helper_cannot(out, mem, "%s: %s is left out: %s has the same UUID (%s)", gpu->vendor, gpu->pci ? gpu->pci : "a GPU",
                          gpus[i].pci ? gpus[i].pci : "another", gpu->uuid);
            return;
        }
    if (out->gpus.count == NODE_OFFERS) {
        helper_cannot(out, mem, "%s: %s is left out: a node may have at most %d GPUs", gpu->vendor, gpu->pci ? gpu->pci : gpu->uuid, NODE_OFFERS);
        return;
    }
    if (!out->gpus.at)
        out->gpus.at = ARENA_ARRAY(mem, struct gpu_info, NODE_OFFERS);
    struct gpu_info *to = (struct gpu_info *)out->gpus.at + out->gpus.count;
    *to = *gpu;
    to->index = (int64_t)out->gpus.count++;
    to->healthy = !text_given(gpu->health);
}

void helper_add_live(struct objects *out, struct arena *mem, const struct gpu_live *live)
{
    if (out->count == NODE_GPUS)
        return;
    if (!out->at)
        out->at = ARENA_ARRAY(mem, struct gpu_live, NODE_GPUS);
    ((struct gpu_live *)out->at)[out->count++] = *live;
}

void helper_cannot(struct node_info *out, struct arena *mem, const char *fmt, ...)
{
    char text[240];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    const char **list = ARENA_ARRAY(mem, const char *, out->cannot.count + 1);
    for (size_t i = 0; i < out->cannot.count; i++)
        list[i] = out->cannot.at[i];
    list[out->cannot.count] = arena_text(mem, text);
    out->cannot = (struct texts){ list, MIN(out->cannot.count + 1, (size_t)32) };
}

/* The first of its groups that is a task's: below it names are the tenant's own. */
int64_t helper_attempt_in(const char *cgroup)
{
    static const char before[] = "/arcus/";
    char id[ID_TEXT];
    int64_t attempt;
    for (const char *at = cgroup; (at = strstr(at, before));) {
        at += sizeof before - 1;
        size_t n = strcspn(at, "/\n");
        if (n < sizeof id) {
            memcpy(id, at, n);
            id[n] = 0;
            if (id_parse(id, PREFIX_ATTEMPT, &attempt))
                return attempt;
        }
        at += strcspn(at, "\n");
    }
    return 0;
}

int64_t helper_attempt_of(int pid)
{
    char path[48], text[4096];
    snprintf(path, sizeof path, "/proc/%d/cgroup", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return 0;
    text[n] = 0;
    return helper_attempt_in(text);
}

void helper_add_process(struct gpu_live *live, struct arena *mem, int64_t attempt, int64_t mem_mib)
{
    enum { TASKS_MOST = 1024 };
    struct live_task *tasks = live->tasks.at;
    for (size_t i = 0; i < live->tasks.count; i++)
        if (tasks[i].attempt == attempt) {
            tasks[i].processes++;
            tasks[i].mem_mib += mem_mib;
            return;
        }
    if (live->tasks.count == TASKS_MOST)
        return;
    if (!tasks)
        live->tasks.at = tasks = ARENA_ARRAY(mem, struct live_task, TASKS_MOST);
    tasks[live->tasks.count++]
        = (struct live_task){ .attempt = attempt, .mem_mib = mem_mib, .processes = 1 };
}

void helper_add_pid(struct gpu_live *live, struct arena *mem, int64_t attempt, int pid)
{
    struct live_task *tasks = live->tasks.at;
    char text[16];
    for (size_t i = 0; attempt && i < live->tasks.count; i++)
        if (tasks[i].attempt == attempt) {
            const char *before = tasks[i].pids ? tasks[i].pids : "";
            snprintf(text, sizeof text, "%s%d", *before ? " " : "", pid);
            if (strlen(before) + strlen(text) <= LIVE_PIDS)
                tasks[i].pids = arena_printf(mem, "%s%s", before, text);
            return;
        }
}

void helper_add_outside(struct gpu_live *live, int64_t attempt)
{
    struct live_task *tasks = live->tasks.at;
    for (size_t i = 0; i < live->tasks.count; i++)
        tasks[i].outside += tasks[i].attempt == attempt;
}

/* --- saying */

static pthread_mutex_t saying
    = PTHREAD_MUTEX_INITIALIZER; /* an error of a device is told by a thread that waits for it */

static void say(const struct helper_said *what)
{
    AUTO(str_done) struct str line = { 0 };
    bind_write(&(struct json_out){ .to = &line }, &helper_said_fields, what);
    str_char(&line, '\n');
    pthread_mutex_lock(&saying);
    for (size_t done = 0; done < line.len;) {
        ssize_t n = write(STDOUT_FILENO, line.at + done, line.len - done);
        if (n < 0 && errno != EINTR)
            _exit(1); /* nobody listens any more */
        done += n > 0 ? (size_t)n : 0;
    }
    pthread_mutex_unlock(&saying);
}

void helper_xid(const char *uuid, int64_t xid)
{
    say(&(struct helper_said){ .kind = "xid", .uuid = uuid, .xid = xid });
}

/* --- the loop */

struct helper {
    struct helper_config config;
    struct {
        bool open;
        void *state;
        char cannot[240];
    } probes[COUNT(probes)];
    struct arena *mem; /* of what was found of the machine, once */
    struct node_info machine;
};

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* A driver that was not there before may have been loaded since. */
static void open_probes(struct helper *h)
{
    for (size_t i = 0; i < COUNT(probes); i++) {
        struct err err = { 0 };
        if (h->probes[i].open)
            continue;
        h->probes[i].open = probes[i]->open(&h->config, &h->probes[i].state, &err);
        text_cut(h->probes[i].cannot, sizeof h->probes[i].cannot,
                 h->probes[i].open || err.rc == RC_NOT_FOUND ? "" : err.text);
    }
}

static void look(struct helper *h)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct node_info found = h->machine;
    open_probes(h);
    for (size_t i = 0; i < COUNT(probes); i++) {
        struct err err = { 0 };
        if (h->probes[i].open && !probes[i]->find(h->probes[i].state, mem, &found, &err))
            helper_cannot(&found, mem, "%s: %s", probes[i]->name, err.text);
        else if (!h->probes[i].open && *h->probes[i].cannot)
            helper_cannot(&found, mem, "%s: %s", probes[i]->name, h->probes[i].cannot);
    }
    probe_nics(h->config.sys, mem, &found);
    probe_paths(h->config.sys, mem, &found);
    say(&(struct helper_said){ .kind = "found", .found = found });
}

static void live(struct helper *h)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct helper_said said = { .kind = "live" };
    for (size_t i = 0; i < COUNT(probes); i++)
        if (h->probes[i].open && probes[i]->live)
            probes[i]->live(h->probes[i].state, mem, now_ms(), &said.live);
    say(&said);
}

static void held(struct helper *h)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct helper_said said = { .kind = "held" };
    for (size_t i = 0; i < COUNT(probes); i++)
        if (h->probes[i].open && probes[i]->held)
            probes[i]->held(h->probes[i].state, mem, &said.live);
    say(&said);
}

static const struct {
    const char *word;
    void (*answer)(struct helper *h);
} asks[] = { { "look", look }, { "live", live }, { "held", held } };

static bool read_flags(int argc, char **argv, struct helper_config *c)
{
    *c = (struct helper_config){ .sys = "/sys" };
    for (int i = 1; i + 1 < argc; i += 2) {
        if (text_is(argv[i], "--nvml"))
            c->nvml = argv[i + 1];
        else if (text_is(argv[i], "--sys"))
            c->sys = argv[i + 1];
        else
            return false;
    }
    return argc % 2 == 1;
}

int helper_main(int argc, char **argv)
{
    struct helper h = { 0 };
    char line[64];
    if (!read_flags(argc, argv, &h.config)) {
        fprintf(stderr, "arcus device-helper: it is started by the agent\n");
        return 2;
    }
    setvbuf(stdin, NULL, _IOLBF, 256);
    h.mem = arena_new();
    probe_host(h.config.sys, h.mem, &h.machine);
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        for (size_t i = 0; i < COUNT(asks); i++)
            if (text_is(line, asks[i].word))
                asks[i].answer(&h);
    }
    _exit(0); /* a driver that hangs could not be closed */
}
