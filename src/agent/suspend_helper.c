/* suspend_helper.c - the suspend helper: the program itself under a word that nobody types (`arcus suspend-helper`), one for each change of one
 * task. It stands outside the container, calls the driver, leaves its result in the task's note, and ends.
 *
 * It outlives the agent that started it, so it bounds itself: SIGALRM ends it, wherever it hangs. Two of one task wait for each other
 * (tasks/ATTEMPT/suspend.lock), and those that move something off GPUs go one by one (--turns FILE), for they count the same host memory. */
#include "agent/cgroup.h"
#include "agent/helper.h"
#include "agent/nvml.h"
#include "agent/suspend.h"
#include "base/id.h"
#include "model/prefix.h"
#include "os/os.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LIMIT_S = 300, READY_S = 30, LOCK_MS = 10000, FREEZE_MS = 5000, TURN_MS = 120 * 1000, FDS_MOST = 1 << 16, NVML_PROCESSES = 4096 };

struct worker {
    const char *attempt_text, *folder, *group, *to, *turns, *libcuda, *nvml, *uvm, *n_text, *limit_text, *room_text, *wait;
    int64_t attempt, n;
    dev_t device;               /* of nvidia-uvm: whoever has it open uses CUDA, was forked by one that does, or is held: the driver closes it in one that is moved away */
    struct cgroups cgroups;
    struct cuda cuda;
    struct arena *mem;
    struct nvml nvml_calls;
    bool asked_nvml, has_nvml;
    bool bare;                  /* a machine without any driver: its GPUs are simulated, and a task is only frozen */
};

/* --- means */

static bool has_device_open(const struct worker *w, int pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *d = opendir(path);
    bool found = false;
    int seen = 0;
    for (struct dirent *e; d && !found && seen++ < FDS_MOST && (e = readdir(d));) {
        struct stat st;
        found = e->d_name[0] != '.' && fstatat(dirfd(d), e->d_name, &st, 0) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == w->device;
    }
    if (d)
        closedir(d);
    return found;
}

/* Its name may hold anything; what is behind its last bracket counts. */
static bool is_stopped(int pid)
{
    char state;
    return proc_started(pid, &state) && (state == 'T' || state == 't');
}

/* One that the driver does not know (a shell; a fork that never used CUDA) has nothing to be moved. What would be missed so is seen by held_mib.
 * The driver asks the process itself, and waits for ever for one that is stopped. */
static bool processes(void *arg, int *pids, size_t room, size_t *count, struct err *err)
{
    struct worker *w = arg;
    enum { ALL = 1 << 16 };
    int *all = calloc(ALL, sizeof *all), stopped = 0;
    size_t n = all && !w->bare ? cgroup_pids(&w->cgroups, w->group, all, ALL) : 0;
    enum cuda_state ignored;
    *count = 0;
    for (size_t i = 0; i < n && *count < room; i++)
        if (is_stopped(all[i]))
            stopped = has_device_open(w, all[i]) ? all[i] : stopped;
        else if (cuda_where(&w->cuda, all[i], &ignored))
            pids[(*count)++] = all[i];
    free(all);
    return !stopped || err_set(err, RC_CONFLICT, "process %d is stopped (SIGSTOP, or Ctrl-Z), so that the driver cannot reach it", stopped);
}

static bool where(void *arg, int pid, enum cuda_state *out) { return cuda_where(&((struct worker *)arg)->cuda, pid, out); }

static bool step(void *arg, int pid, enum cuda_step what, struct err *err)
{
    return cuda_do(&((struct worker *)arg)->cuda, what, pid, LOCK_MS, err);
}

/* On the way back nobody asks, so it is not loaded before somebody does. */
static bool has_nvml(struct worker *w)
{
    struct err ignored;
    if (!w->asked_nvml)
        w->has_nvml = nvml_load(w->nvml, &w->nvml_calls, &ignored) && w->nvml_calls.init() == NVML_OK;
    w->asked_nvml = true;
    return w->has_nvml;
}

/* Of all GPUs: which ones are its own is no matter to a process that holds memory. */
static int64_t held_mib(void *arg)
{
    struct worker *w = arg;
    if (w->bare)
        return 0;
    struct nvml_process *list = calloc(NVML_PROCESSES, sizeof *list);
    unsigned count = 0;
    bool known = list && has_nvml(w) && w->nvml_calls.count(&count) == NVML_OK;
    unsigned long long bytes = 0;
    for (unsigned g = 0; known && g < count; g++) {
        struct nvml_device *d;
        unsigned n = NVML_PROCESSES;
        known = w->nvml_calls.handle(g, &d) == NVML_OK && NVML_CALL(&w->nvml_calls, processes, d, &n, list) == NVML_OK;
        for (unsigned i = 0; known && i < MIN(n, (unsigned)NVML_PROCESSES); i++)
            if (helper_attempt_of((int)list[i].pid) == w->attempt) {
                known = !(list[i].used >> 52); /* all ones: not told */
                bytes += known ? list[i].used : 0;
            }
    }
    free(list);
    return known ? (int64_t)(bytes >> 20) : -1;
}

static int64_t free_mib(void *arg)
{
    FILE *f = fopen("/proc/meminfo", "re");
    char line[256];
    long long kib = 0;
    (void)arg;
    while (f && !kib && fgets(line, sizeof line, f))
        if (sscanf(line, "MemAvailable: %lld kB", &kib) != 1)
            kib = 0;
    if (f)
        fclose(f);
    return kib >> 10;
}

static int64_t used_mib(void *arg)
{
    struct worker *w = arg;
    return cgroup_memory_used(&w->cgroups, w->group) >> 20;
}

static int64_t room_mib(void *arg)
{
    const struct worker *w = arg;
    return w->room_text ? strtoll(w->room_text, NULL, 10) : 0;
}

static bool limit(void *arg, int64_t *bytes, struct err *err)
{
    struct worker *w = arg;
    return cgroup_memory_limit(&w->cgroups, w->group, bytes, err);
}

static bool set_limit(void *arg, int64_t bytes, struct err *err)
{
    struct worker *w = arg;
    return cgroup_memory_set(&w->cgroups, w->group, bytes, err);
}

static bool freeze(void *arg, bool on, struct err *err)
{
    struct worker *w = arg;
    return cgroup_freeze(&w->cgroups, w->group, on, FREEZE_MS, err);
}

static bool keep(void *arg, const struct suspend_note *note, struct err *err)
{
    return suspend_note_write(((struct worker *)arg)->folder, note, err);
}

static int64_t now_ms(void *arg)
{
    struct timespec t;
    (void)arg;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static const struct suspend_means means = { processes, where, step, held_mib, free_mib, used_mib, room_mib, limit, set_limit, freeze, keep, now_ms };

/* --- one change */

/* Held until we end. */
static bool take_lock(const char *path, struct err *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    return (fd != -1 && flock(fd, LOCK_EX) == 0) || err_errno(err, "cannot lock %s", path);
}

/* Somebody else's helper may hang: whoever waits for it is left as it is, in time. */
static bool take_turn(const char *path, struct err *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd == -1)
        return err_errno(err, "cannot open %s", path);
    for (int waited = 0; waited < TURN_MS; waited += 10) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            return true;
        nanosleep(&(struct timespec){ .tv_nsec = 10 * 1000 * 1000 }, NULL);
    }
    close(fd);
    return err_set(err, RC_UNAVAILABLE, "another task of this node is being suspended, and that takes long");
}

static bool prepare(struct worker *w, struct err *err)
{
    char path[1024];
    struct stat st;
    snprintf(path, sizeof path, "%s/suspend.lock", w->folder);
    if (!take_lock(path, err) || !cgroups_find(&w->cgroups, err))
        return false;
    bool has_device = stat(w->uvm, &st) == 0 && S_ISCHR(st.st_mode);
    if (!w->cuda.lib && !cuda_load(w->libcuda, &w->cuda, err) && (w->libcuda || has_device || err->rc != RC_NOT_FOUND))
        return false;
    w->bare = !w->cuda.lib;
    if (!cgroups_freeze(&w->cgroups))
        return err_set(err, RC_UNAVAILABLE, "this node cannot freeze a task: it has neither cgroup v2 nor a freezer");
    if (!has_device && !w->bare)
        return err_set(err, RC_UNAVAILABLE, "this node has no %s", w->uvm);
    w->device = has_device ? st.st_rdev : 0;
    return !w->turns || text_is(w->to, "running") || take_turn(w->turns, err);
}

static bool read_flags(int argc, char **argv, struct worker *w)
{
    const struct { const char *flag; const char **to; } flags[] = {
        { "--attempt", &w->attempt_text }, { "--folder", &w->folder },   { "--group", &w->group }, { "--to", &w->to },
        { "--turns", &w->turns },          { "--libcuda", &w->libcuda }, { "--nvml", &w->nvml },   { "--uvm", &w->uvm },
        { "--number", &w->n_text },        { "--limit", &w->limit_text }, { "--room", &w->room_text },  { "--wait", &w->wait },
    };
    for (int i = 1; i + 1 < argc; i += 2) {
        size_t f = 0;
        while (f < COUNT(flags) && !text_is(argv[i], flags[f].flag))
            f++;
        if (f == COUNT(flags))
            return false;
        *flags[f].to = argv[i + 1];
    }
    w->uvm = w->uvm ? w->uvm : "/dev/nvidia-uvm";
    w->n = w->n_text ? strtoll(w->n_text, NULL, 10) : 0;
    return argc % 2 == 1;
}

static bool is_whole(struct worker *w)
{
    return w->attempt_text && id_parse(w->attempt_text, PREFIX_ATTEMPT, &w->attempt) && w->folder && w->group && w->to
           && (text_is(w->to, "running") || text_is(w->to, "suspended"));
}

/* What cannot even begin leaves a task where it is. One that is MOVING stays so: the agent decides how often that is tried. */
static void refuse(struct worker *w, struct suspend_note *note, enum suspend_state want, const char *why)
{
    struct err ignored;
    note->n = w->n;
    note->want = (int)want;
    note->why = why;
    note->at_ms = now_ms(w);
    if (!suspend_note_write(w->folder, note, &ignored))
        fprintf(stderr, "arcus suspend-helper: %s\n", ignored.text);
}

/* Everything that takes time and is the same for all tasks, and then a wish from standard input; false: there was none. */
static bool wait_for_wish(struct worker *w, char *line, size_t room)
{
    char *argv[32] = { "suspend-helper" }, *save = NULL;
    int argc = 1;
    struct err ignored;
    bool hurry = poll(&(struct pollfd){ .fd = STDIN_FILENO, .events = POLLIN }, 1, 0) == 1; /* then only what is asked for is begun with */
    alarm(READY_S); /* a driver that hangs: whoever hands us a wish meanwhile hears of our end */
    if (!hurry && cuda_load(w->libcuda, &w->cuda, &ignored)) {
        cuda_begin(&w->cuda);
        (void)!has_nvml(w);
    }
    alarm(0);
    size_t n = 0;
    for (ssize_t got; n + 1 < room && (got = read(STDIN_FILENO, line + n, room - 1 - n)) > 0;)
        n += (size_t)got;
    line[n] = 0;
    if (!n || line[n - 1] != '\n')
        return false;
    line[n - 1] = 0;
    for (char *word = strtok_r(line, "\t", &save); word && argc < (int)COUNT(argv); word = strtok_r(NULL, "\t", &save))
        argv[argc++] = word;
    return read_flags(argc, argv, w);
}

int suspend_main(int argc, char **argv)
{
    static char line[8192];
    struct worker w = { .mem = arena_new() };
    struct suspend_note note = { 0 };
    struct err err = { 0 };
    bool good = read_flags(argc, argv, &w);
    if (good && w.wait && !wait_for_wish(&w, line, sizeof line))
        _exit(0);
    if (!good || !is_whole(&w)) {
        fprintf(stderr, "arcus suspend-helper: it is started by the agent\n");
        arena_free(w.mem);
        return 2;
    }
    enum suspend_state want = text_is(w.to, "running") ? SUSPEND_RUNNING : SUSPEND_SUSPENDED;
    alarm(w.limit_text ? (unsigned)strtoul(w.limit_text, NULL, 10) : LIMIT_S);
    bool ready = prepare(&w, &err);
    if (!suspend_note_read(w.folder, w.attempt, w.mem, &note)) /* read under the lock */
        note = (struct suspend_note){ .attempt = w.attempt, .state = SUSPEND_RUNNING };
    note.room_mib = room_mib(&w);
    if (ready)
        suspend_go(&means, &w, want, w.n, w.mem, &note);
    else
        refuse(&w, &note, want, err.text);
    _exit(note.state == (int)want ? 0 : 1); /* a driver that hangs could not be closed */
}
