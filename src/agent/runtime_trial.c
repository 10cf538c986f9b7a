/* runtime_trial.c - what works on this host is found out by doing it: a real container of the
 * smallest kind, by the same supervisor, plan and bundle as a tenant's, once when the agent
 * starts.
 *
 * crun before runc, a scratch in a file before one in memory. The container's program is the
 * supervisor itself, which is static. It leaves one more thing behind: crun's compiled seccomp
 * filter, which later starts take ready-made. */
#include "agent/bundle.h"
#include "agent/runtime_internal.h"
#include "agent/tree.h"
#include "base/log.h"
#include "wire/bind.h"
#include "wire/digest.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TRIAL_MIB = 64, TRIAL_RANGE = 61001, OUTPUT = 4096, FILTER_BYTES = 16 * 1024, TRIES = 3 };

static const char *const places[]
    = { "/usr/bin/crun",  "/usr/local/bin/crun", "/usr/sbin/crun",      "/usr/bin/runc",
        "/usr/sbin/runc", "/usr/local/bin/runc", "/usr/local/sbin/runc" };

struct trial {
    struct work work;
    struct runtime *r;
    struct os *os;
    struct arena *mem;
    char data[RUNTIME_PATH], run[RUNTIME_PATH], supervisor[RUNTIME_PATH];
    const char *near; /* folder of our own program: a bundle brings its runtime along */
    struct cgroups cgroups;
    bool limit_swap;
    struct io_means io;
    struct runtime_means means;
};

bool template_make(struct os *os, const char *path, int64_t mib, bool journal, struct err *err)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    const char *temp = arena_printf(mem, "%s.part", path);
    unlink(temp); /* whoever fills it for an agent that was killed goes on with a file that nobody sees */
    int fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd == -1 || ftruncate(fd, mib << 20) == -1) {
        err_errno(err, "cannot make %s", temp);
        if (fd != -1)
            close(fd);
        return false;
    }
    close(fd);
    /* No journal but where it is kept: nobody needs another scratch after a crash. Few inodes cost few blocks; one for 16
     * KiB is what trees of code need. */
    const char *const argv[]
        = { access("/usr/sbin/mkfs.ext4", X_OK) == 0 ? "/usr/sbin/mkfs.ext4" : "/sbin/mkfs.ext4",
            "-q",
            "-F",
            "-m",
            "0",
            "-b",
            "4096",
            "-i",
            "16384",
            "-O",
            journal ? "has_journal,^resize_inode" : "^has_journal,^resize_inode",
            "-E",
            "lazy_itable_init=1,lazy_journal_init=1,nodiscard,root_owner=0:0",
            temp,
            NULL };
    if (!proc_run(os, argv, OUTPUT, mem, NULL, NULL, err))
        return err_wrap(err, "cannot make a filesystem for scratch space");
    return rename(temp, path) == 0 || err_errno(err, "cannot keep %s", path);
}

static bool put(struct trial *t, const char *path, struct slice bytes, unsigned mode,
                struct err *err)
{
    return file_replace(t->os, path, bytes, mode, err);
}

/* Templates are made on our own thread, so none is under way. */
static void sweep_templates(struct trial *t)
{
    struct texts names = { 0 };
    struct err err = { 0 };
    const char *folder = arena_printf(t->mem, "%s/scratch", t->data);
    if (!dir_list(t->os, folder, t->mem, &names, &err))
        return;
    for (size_t i = 0; i < names.count; i++)
        if (strstr(names.at[i], ".part"))
            unlink(arena_printf(t->mem, "%s/%s", folder, names.at[i]));
}

/* Of this trial, and of those before whose agent or supervisor was killed. */
static void sweep(struct trial *t)
{
    struct texts names = { 0 };
    struct err err = { 0 };
    if (!tree_remove(arena_printf(t->mem, "%s/trial", t->data), &err))
        log_line(LOG_WARN, "agent", "%s", err.text);
    sweep_templates(t);
    if (!dir_list(t->os, arena_printf(t->mem, "%s/tasks", t->run), t->mem, &names, &err))
        return;
    for (size_t k = 0; k < names.count; k++)
        if (text_starts(names.at[k], "trial-") && !clean_container(&t->cgroups, t->run, names.at[k]))
            log_line(LOG_WARN, "agent", "%s is stuck in the kernel", names.at[k]);
}

static bool make_root(struct trial *t, struct err *err)
{
    struct slice program;
    return dir_make(t->os, arena_printf(t->mem, "%s/trial/rootfs", t->data), 0755, err)
           && dir_make(t->os, arena_printf(t->mem, "%s/trial/outputs", t->data), 0755, err)
           && file_read(t->os, t->supervisor, 16 << 20, t->mem, &program, err)
           && put(t, arena_printf(t->mem, "%s/trial/rootfs/task", t->data), program, 0755, err);
}

static void plan_of(struct trial *t, const char *runtime, enum plan_scratch scratch, struct plan *p)
{
    struct plan_mount *m = ARENA_NEW(t->mem, struct plan_mount);
    *m = (struct plan_mount){ arena_printf(t->mem, "%s/trial/outputs", t->data), "outputs", false };
    *p = (struct plan){
        .attempt = 1,
        .id = arena_printf(t->mem, "trial-%d", getpid()),
        .runtime = runtime,
        .runtime_root = arena_printf(t->mem, "%s/tasks/trial-%d/state", t->run, getpid()),
        .folder = arena_printf(t->mem, "%s/trial/%d", t->data, getpid()),
        .run = arena_printf(t->mem, "%s/tasks/trial-%d", t->run, getpid()),
        .status = arena_printf(t->mem, "%s/trial/%d/status", t->data, getpid()),
        .logs = arena_printf(t->mem, "%s/trial/logs", t->data),
        .lease = arena_printf(t->mem, "%s/lease", t->run),
        .cgroup = arena_printf(t->mem, "arcus/trial-%d", getpid()),
        .uid_base = PLAN_UID_BASE + (int64_t)TRIAL_RANGE * PLAN_UID_COUNT,
        .hostname = "trial",
        .root = ROOT_IMAGE,
        .lower = arena_printf(t->mem, "%s/trial/rootfs", t->data),
        .scratch = (int)scratch,
        .scratch_template = arena_printf(t->mem, "%s/scratch/%d.img", t->data, TRIAL_MIB),
        .scratch_mib = TRIAL_MIB,
        .mounts = { m, 1 },
        .filter = arena_printf(t->mem, "%s/trial/filter", t->data),
        .mem_mib = TRIAL_MIB,
        .log_mib = 1,
    };
}

static bool write_trial(struct trial *t, const struct plan *p, struct err *err)
{
    static const char *argv[] = { "/task", "--nothing" };
    const struct order o = { .name = "trial",
                             .count = 1,
                             .argv = { argv, COUNT(argv) },
                             .mem_mib = TRIAL_MIB,
                             .cpu_milli = 1000 };
    const struct bundle_place place = { .run = p->run,
                                        .cgroup = arena_printf(t->mem, "/%s", p->cgroup),
                                        .hostname = "trial",
                                        .uid_base = p->uid_base,
                                        .cgroup_v2 = t->cgroups.unified,
                                        .limit_swap = t->limit_swap,
                                        .io = &t->io,
                                        .open_files = 1024 };
    AUTO(str_done) struct str bundle = { 0 };
    AUTO(str_done) struct str plan = { 0 };
    write_object(&plan, &plan_fields, p);
    return bundle_write(&bundle, &o, &(struct image_config){ 0 },
                        &(struct bundle_user){ .home = "/" }, &place, err)
           && tree_remove(p->folder, err) && tree_remove(p->run, err)
           && dir_make(t->os, p->folder, 0700, err)
           && dir_make(t->os, p->logs, 0700, err) && dir_make(t->os, p->run, 0711, err)
           && put(t, arena_printf(t->mem, "%s/config.json", p->folder),
                  (struct slice){ bundle.at, bundle.len }, 0600, err)
           && put(t, arena_printf(t->mem, "%s/plan.json", p->folder),
                  (struct slice){ plan.at, plan.len }, 0600, err);
}

/* *told: the supervisor has told how it went, and it was not the node that failed it. */
static bool try_once(struct trial *t, const char *runtime, enum plan_scratch scratch, bool *told,
                     struct err *err)
{
    struct plan p;
    struct task_status s = { 0 };
    struct slice text;
    plan_of(t, runtime, scratch, &p);
    if (scratch == SCRATCH_LOOP && access(p.scratch_template, R_OK) == -1
        && !template_make(t->os, p.scratch_template, TRIAL_MIB, false, err))
        return false;
    const char *const argv[] = { t->supervisor, p.folder, NULL };
    if (!write_trial(t, &p, err) || !proc_run(t->os, argv, OUTPUT, t->mem, NULL, NULL, err)
        || !file_read(t->os, p.status, PLAN_BYTES, t->mem, &text, err)
        || !status_read(text, t->mem, &s, err))
        return false;
    *told = s.phase == PHASE_ENDED && s.outcome != OUTCOME_NODE_FAULT;
    return s.outcome == OUTCOME_SUCCEEDED
           || err_set(err, RC_UNAVAILABLE, "%s: %s", runtime,
                      s.detail ? s.detail : "the trial failed");
}

/* Somebody may kill what we try, which says nothing about what works. */
static bool try_one(struct trial *t, const char *runtime, enum plan_scratch scratch,
                    struct err *err)
{
    bool told = false;
    for (int i = 0; i < TRIES && !told; i++) {
        *err = (struct err){ 0 };
        if (try_once(t, runtime, scratch, &told, err))
            return true;
    }
    return false;
}

static void keep_filter(struct trial *t)
{
    struct slice bytes;
    struct err err = { 0 };
    AUTO(str_done) struct str text = { 0 };
    if (!strstr(t->means.runtime, "crun")
        || !file_read(t->os, arena_printf(t->mem, "%s/trial/filter", t->data), FILTER_BYTES, t->mem,
                      &bytes, &err)
        || !bytes.len)
        return; /* then each start compiles its own */
    base64_text(&text, bytes.at, bytes.len);
    if (!text_copy(t->means.filter, sizeof t->means.filter, text.at))
        return;
}

static void keep_version(struct trial *t)
{
    const char *const argv[] = { t->means.runtime, "--version", NULL };
    char *out = NULL;
    struct err err = { 0 };
    const char *name = strrchr(t->means.runtime, '/') + 1, *number = NULL;
    if (proc_run(t->os, argv, OUTPUT, t->mem, &out, NULL, &err)
        && (number = strstr(out, "version ")))
        snprintf(t->means.version, sizeof t->means.version, "%s %.*s", name,
                 (int)strcspn(number + 8, "\n"), number + 8);
    else
        snprintf(t->means.version, sizeof t->means.version, "%s", name);
}

static void trial_run(struct work *w)
{
    struct trial *t = CONTAINER(w, struct trial, work);
    struct err err = { 0 }, first = { 0 };
    const char *found[COUNT(places) + 2];
    size_t count = 0;
    const char *const beside[]
        = { arena_printf(t->mem, "%s/crun", t->near), arena_printf(t->mem, "%s/runc", t->near) };
    for (size_t i = 0; i < COUNT(beside) + COUNT(places); i++) {
        const char *path = i < COUNT(beside) ? beside[i] : places[i - COUNT(beside)];
        if (access(path, X_OK) == 0)
            found[count++] = path;
    }
    if (!count)
        err_set(&first, RC_UNAVAILABLE, "neither crun nor runc is installed");
    sweep(t);
    bool ok = count && make_root(t, &first);
    for (size_t i = 0; ok && !t->means.runtime && i < 2 * count; i++) {
        enum plan_scratch scratch = i % 2 ? SCRATCH_TMPFS : SCRATCH_LOOP;
        if (try_one(t, found[i / 2], scratch, &err)) {
            t->means.runtime = found[i / 2];
            t->means.scratch = (int)scratch;
        } else if (!first.rc) {
            first = err;
        }
    }
    if (t->means.runtime) {
        keep_filter(t);
        keep_version(t);
    }
    snprintf(t->means.why, sizeof t->means.why, "%s", first.text);
    sweep(t);
}

static void trial_free(struct work *w)
{
    struct trial *t = CONTAINER(w, struct trial, work);
    arena_free(t->mem);
    free(t);
}

static void trial_done(struct work *w)
{
    struct trial *t = CONTAINER(w, struct trial, work);
    struct runtime *r = t->r;
    struct attempt *a;
    r->means = t->means;
    r->means.known = true;
    r->means.runtime = arena_text(r->mem, t->means.runtime);
    trial_free(w);
    if (r->means.runtime)
        log_line(LOG_INFO, "agent", "containers: %s, cgroups %s, scratch in %s%s", r->means.version,
                 cgroups_kind(&r->cgroups), r->means.scratch == SCRATCH_LOOP ? "files" : "memory",
                 *r->means.filter ? "" : ", seccomp compiled at each start");
    if (r->means.runtime && *r->means.why)
        log_line(LOG_WARN, "agent", "something better does not work here: %s", r->means.why);
    if (!r->means.runtime)
        log_line(LOG_ERROR, "agent", "no container can be run here: %s", r->means.why);
    for (size_t at = 0; (a = map_next(r->attempts, &at));)
        start_advance(a);
}

void trial_start(struct runtime *r)
{
    struct trial *t = calloc(1, sizeof *t);
    if (!t)
        abort();
    const char *self = r->config.self ? r->config.self : "/", *slash = strrchr(self, '/');
    t->work = (struct work){ .run = trial_run, .done = trial_done, .drop = trial_free };
    t->r = r;
    t->os = r->os;
    t->mem = arena_new();
    t->near = arena_bytes(t->mem, self, (size_t)(slash - self));
    t->cgroups = r->cgroups;
    t->limit_swap = r->limit_swap;
    t->io = r->io;
    snprintf(t->data, sizeof t->data, "%s", r->config.data);
    snprintf(t->run, sizeof t->run, "%s", r->config.run);
    memcpy(t->supervisor, r->supervisor, sizeof t->supervisor);
    workshop_do(r->shop, &t->work);
}
