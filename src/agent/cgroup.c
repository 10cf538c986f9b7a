/* cgroup.c - the kernel's files behind cgroup.h.
 *
 * A group is killed as a whole: v2 has a file for it; on v1 it is frozen first, so that a fork
 * bomb cannot outrun the list of its pids. Nothing is remembered between two calls: the kernel's
 * tree is the truth. */
#include "agent/cgroup.h"
#include "base/fault.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PIDS_AT_ONCE = 512, NAME_DEPTH = 8 };

/* One line of /proc/self/mountinfo: "36 35 98:0 / /sys/fs/cgroup/cpu rw,... shared:1 - cgroup
 * cgroup rw,cpu". */
static void take_mount(struct cgroups *c, char *line)
{
    char root[256], path[120], type[32], options[160];
    const char *dash = strstr(line, " - ");
    if (!dash || sscanf(line, "%*s %*s %*s %255s %119s", root, path) != 2
        || sscanf(dash + 3, "%31s %*s %159s", type, options) != 2)
        return;
    if (text_is(type, "cgroup2")) {
        snprintf(c->hybrid_path, sizeof c->hybrid_path, "%s", path);
        return;
    }
    if (!text_is(type, "cgroup") || c->count == CGROUP_MOUNTS)
        return;
    struct cgroup_mount *m = &c->mounts[c->count];
    const char *controllers = text_starts(options, "rw,") ? options + 3 : options;
    for (size_t i = 0; i < c->count; i++) /* a bind mount of one already seen */
        if (text_is(c->mounts[i].options, controllers))
            return;
    snprintf(m->path, sizeof m->path, "%s", path);
    snprintf(m->options, sizeof m->options, "%s", controllers);
    c->count++;
}

bool cgroups_find(struct cgroups *out, struct err *err)
{
    struct cgroups c = { 0 };
    FILE *f = fopen("/proc/self/mountinfo", "re");
    if (!f)
        return err_errno(err, "cannot read /proc/self/mountinfo");
    char line[4096];
    while (fgets(line, sizeof line, f))
        take_mount(&c, line);
    fclose(f);
    if (c.count == 0) {
        if (!*c.hybrid_path)
            return err_set(err, RC_UNAVAILABLE, "no cgroup hierarchy is mounted on this host");
        c.unified = true;
        c.count = 1;
        memcpy(c.mounts[0].path, c.hybrid_path, sizeof c.hybrid_path);
    }
    c.hybrid = !c.unified && *c.hybrid_path;
    *out = c;
    return true;
}

const char *cgroups_kind(const struct cgroups *c)
{
    return c->unified ? "v2" : c->hybrid ? "hybrid" : "v1";
}

static bool has_controller(const struct cgroup_mount *m, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = m->options; (p = strstr(p, name)); p += n)
        if ((p == m->options || p[-1] == ',') && (p[n] == 0 || p[n] == ','))
            return true;
    return false;
}

/* The hierarchy that holds a controller; on v2 it is the only one. */
static const struct cgroup_mount *controller(const struct cgroups *c, const char *name)
{
    if (c->unified)
        return &c->mounts[0];
    for (size_t i = 0; i < c->count; i++)
        if (has_controller(&c->mounts[i], name))
            return &c->mounts[i];
    return NULL;
}

bool cgroups_limit_swap(const struct cgroups *c)
{
    const struct cgroup_mount *m = controller(c, "memory");
    char path[512];
    snprintf(path, sizeof path, "%s/memory.memsw.limit_in_bytes", m ? m->path : "/nowhere");
    return c->unified || access(path, F_OK) == 0;
}

bool cgroups_hold_devices(const struct cgroups *c)
{
    return controller(c, "devices") != NULL;
}

static bool put(const char *folder, const char *name, const char *file, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s/%s", folder, name, file);
    int fd = broken("cgroup.write") ? -1 : open(path, O_WRONLY | O_CLOEXEC);
    if (fd == -1)
        return false;
    bool ok = write(fd, text, strlen(text)) >= 0;
    int saved = errno;
    close(fd);
    errno = saved;
    return ok;
}

static size_t get(const char *folder, const char *name, const char *file, char *out, size_t room)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s/%s", folder, name, file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd == -1 ? -1 : read(fd, out, room - 1);
    if (fd != -1)
        close(fd);
    out[MAX(n, 0)] = 0;
    return (size_t)MAX(n, 0);
}

static bool make_path(const char *folder, const char *name)
{
    char path[512];
    size_t at = (size_t)snprintf(path, sizeof path, "%s/", folder);
    for (const char *p = name; *p && at < sizeof path - 1; p++) {
        path[at++] = *p;
        if (p[1] && p[1] != '/')
            continue;
        path[at] = 0;
        if (broken("cgroup.make") || (mkdir(path, 0755) == -1 && errno != EEXIST))
            return false;
    }
    return true;
}

static bool move_where(const struct cgroups *c, uint32_t where, const char *name, int pid,
                       struct err *err)
{
    char text[16];
    snprintf(text, sizeof text, "%d", pid);
    for (size_t i = 0; i < c->count; i++) {
        if (!(where & 1u << i)
            || has_controller(
                &c->mounts[i],
                "cpuset")) /* a new one has no cpus; nobody puts an agent into one on v1 */
            continue;
        if (!make_path(c->mounts[i].path, name)
            || !put(c->mounts[i].path, name, "cgroup.procs", text))
            return err_errno(err, "cannot move into %s/%s", c->mounts[i].path, name);
    }
    return true;
}

bool cgroup_move(const struct cgroups *c, const char *name, int pid, struct err *err)
{
    return move_where(c, UINT32_MAX, name, pid, err);
}

/* Lines of /proc/self/cgroup: "4:memory:/system.slice/x.service", on v2 "0::/system.slice/x.service". One bit for each mount
 * in which we are not in the root; all where that cannot be told. */
static uint32_t groups_of_ours(const struct cgroups *c)
{
    FILE *f = fopen("/proc/self/cgroup", "re");
    char line[4096];
    uint32_t where = 0;
    if (!f)
        return UINT32_MAX;
    while (fgets(line, sizeof line, f)) {
        char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
        if (!path || text_is(path, ":/\n"))
            continue;
        *path = 0;
        names++;
        names[strcspn(names, ",")] = 0;
        for (size_t i = 0; i < c->count; i++)
            if (*names ? has_controller(&c->mounts[i], names) : c->unified)
                where |= 1u << i;
    }
    fclose(f);
    return where;
}

bool cgroup_is_free(const struct cgroups *c)
{
    return groups_of_ours(c) == 0;
}

bool cgroup_leave(const struct cgroups *c, const char *name, int pid, struct err *err)
{
    return move_where(c, groups_of_ours(c), name, pid, err);
}

int cgroup_open(const struct cgroups *c, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", c->mounts[0].path, name);
    return c->unified && make_path(c->mounts[0].path, name)
               ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC)
               : -1;
}

/* False: it is there and cannot be read, so nobody knows. */
static bool read_pids(const struct cgroups *c, const char *name, int *pids, size_t room, size_t *out)
{
    const struct cgroup_mount *m = controller(c, "freezer");
    if (!m)
        m = &c->mounts[0];
    char path[512];
    snprintf(path, sizeof path, "%s/%s/cgroup.procs", m->path, name);
    FILE *f = broken("cgroup.read") ? NULL : fopen(path, "re");
    bool known = f || errno == ENOENT;
    size_t n = 0;
    int pid;
    while (f && n < room && fscanf(f, "%d", &pid) == 1)
        pids[n++] = pid;
    if (f)
        fclose(f);
    *out = n;
    return known;
}

size_t cgroup_pids(const struct cgroups *c, const char *name, int *pids, size_t room)
{
    size_t n = 0;
    (void)read_pids(c, name, pids, room, &n);
    return n;
}

/* "key 12" in a file of such lines. */
static int64_t count_of(const char *text, const char *key)
{
    size_t n = strlen(key);
    for (const char *line = text; line && *line; line = strchr(line, '\n'), line += line != NULL)
        if (strncmp(line, key, n) == 0 && line[n] == ' ')
            return strtoll(line + n, NULL, 10);
    return 0;
}

int64_t cgroup_oom_kills(const struct cgroups *c, const char *name)
{
    const struct cgroup_mount *m = controller(c, "memory");
    char text[1024];
    if (!m
        || !get(m->path, name, c->unified ? "memory.events" : "memory.oom_control", text,
                sizeof text))
        return 0;
    return count_of(text, "oom_kill");
}

int64_t cgroup_memory_peak(const struct cgroups *c, const char *name)
{
    const struct cgroup_mount *m = controller(c, "memory");
    char text[64];
    return m
                   && get(m->path, name, c->unified ? "memory.peak" : "memory.max_usage_in_bytes",
                          text, sizeof text)
               ? strtoll(text, NULL, 10)
               : 0;
}

int64_t cgroup_cpu_us(const struct cgroups *c, const char *name)
{
    const struct cgroup_mount *m = controller(c, "cpuacct");
    char text[1024];
    if (!m || !get(m->path, name, c->unified ? "cpu.stat" : "cpuacct.usage", text, sizeof text))
        return -1;
    return c->unified ? count_of(text, "usage_usec") : strtoll(text, NULL, 10) / 1000;
}

static void pause_ms(int ms)
{
    nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L }, NULL);
}

/* --- memory that may grow, and a group that stands still */

static int64_t bytes_in(const char *text)
{
    int64_t n = text_starts(text, "max") ? INT64_MAX : strtoll(text, NULL, 10);
    return n >= INT64_MAX / 2 ? INT64_MAX : n; /* v1 writes the greatest multiple of a page */
}

/* Pages of files that nobody touches are in memory.stat: they are no burden. */
int64_t cgroup_memory_used(const struct cgroups *c, const char *name)
{
    const struct cgroup_mount *m = controller(c, "memory");
    char text[64], stat[8192];
    if (!m || !get(m->path, name, c->unified ? "memory.current" : "memory.usage_in_bytes", text, sizeof text))
        return 0;
    int64_t used = strtoll(text, NULL, 10);
    if (get(m->path, name, "memory.stat", stat, sizeof stat))
        used -= MAX(count_of(stat, c->unified ? "inactive_file" : "total_inactive_file"), 0);
    return MAX(used, 0);
}

bool cgroup_memory_limit(const struct cgroups *c, const char *name, int64_t *bytes, struct err *err)
{
    const struct cgroup_mount *m = controller(c, "memory");
    char text[64];
    if (!m || !get(m->path, name, c->unified ? "memory.max" : "memory.limit_in_bytes", text, sizeof text))
        return err_errno(err, "the memory limit of %s cannot be read", name);
    return *bytes = bytes_in(text), true;
}

/* v2 would kill for what is in use: below that it is only pressed (memory.high), which takes pages back and kills nobody. */
static bool set_v2(const struct cgroup_mount *m, const char *name, int64_t bytes, const char *text, struct err *err)
{
    char used[64];
    if (!get(m->path, name, "memory.current", used, sizeof used))
        return err_errno(err, "the memory of %s cannot be read", name);
    if (strtoll(used, NULL, 10) > bytes) {
        put(m->path, name, "memory.high", text);
        return err_set(err, RC_CONFLICT, "%s uses more than that", name);
    }
    if (!put(m->path, name, "memory.max", text))
        return err_errno(err, "the memory limit of %s cannot be set", name);
    put(m->path, name, "memory.high", "max");
    return true;
}

/* On v1 memory together with swap has a limit of its own, which must never be the lower one: it is set first when both grow, and last when they
 * shrink. What cannot be taken back is refused by the kernel. */
static bool set_v1(const struct cgroup_mount *m, const char *name, const char *text, struct err *err)
{
    put(m->path, name, "memory.memsw.limit_in_bytes", text);
    if (!put(m->path, name, "memory.limit_in_bytes", text))
        return errno == EBUSY ? err_set(err, RC_CONFLICT, "%s uses more than that", name)
                              : err_errno(err, "the memory limit of %s cannot be set", name);
    put(m->path, name, "memory.memsw.limit_in_bytes", text);
    return true;
}

bool cgroup_memory_set(const struct cgroups *c, const char *name, int64_t bytes, struct err *err)
{
    const struct cgroup_mount *m = controller(c, "memory");
    char text[64];
    snprintf(text, sizeof text, "%lld", (long long)bytes);
    if (!m)
        return err_set(err, RC_UNAVAILABLE, "this node cannot limit memory");
    return c->unified ? set_v2(m, name, bytes, text, err) : set_v1(m, name, text, err);
}

bool cgroups_freeze(const struct cgroups *c)
{
    return controller(c, "freezer") != NULL;
}

bool cgroup_frozen(const struct cgroups *c, const char *name)
{
    const struct cgroup_mount *m = controller(c, "freezer");
    char text[64];
    if (!m || !get(m->path, name, c->unified ? "cgroup.freeze" : "freezer.state", text, sizeof text))
        return false;
    return c->unified ? text[0] == '1' : text_starts(text, "FR"); /* FREEZING, FROZEN */
}

bool cgroup_freeze(const struct cgroups *c, const char *name, bool on, int wait_ms, struct err *err)
{
    const struct cgroup_mount *m = controller(c, "freezer");
    if (!m)
        return err_set(err, RC_UNAVAILABLE, "this node cannot freeze a task: it has neither cgroup v2 nor a freezer");
    const char *file = c->unified ? "cgroup.freeze" : "freezer.state", *state = c->unified ? "cgroup.events" : "freezer.state";
    if (!put(m->path, name, file, c->unified ? (on ? "1" : "0") : on ? "FROZEN" : "THAWED"))
        return err_errno(err, "%s cannot be %s", name, on ? "frozen" : "thawed");
    char text[512];
    for (int waited = 0, step = 1; waited <= wait_ms; waited += step, step = MIN(step * 2, 50)) {
        if (get(m->path, name, state, text, sizeof text)
            && (c->unified ? count_of(text, "frozen") == on : text_starts(text, on ? "FROZEN" : "THAWED")))
            return true;
        pause_ms(step);
    }
    struct err ignored;
    if (on) /* what cannot stand still must run */
        (void)!cgroup_freeze(c, name, false, 0, &ignored);
    return err_set(err, RC_UNAVAILABLE, "%s did not %s within %d ms", name, on ? "freeze" : "thaw", wait_ms);
}

bool cgroup_kill(const struct cgroups *c, const char *name, int wait_ms)
{
    const struct cgroup_mount *freezer = controller(c, "freezer");
    int *pids = calloc(PIDS_AT_ONCE, sizeof *pids), step = 1;
    size_t n = 0;
    bool empty = false;
    for (int waited = 0; pids; waited += step, step = MIN(step * 2, 50)) {
        empty = read_pids(c, name, pids, PIDS_AT_ONCE, &n) && n == 0;
        if (empty || waited > wait_ms)
            break;
        if (!c->unified || !put(c->mounts[0].path, name, "cgroup.kill", "1")) {
            if (!c->unified && freezer)
                put(freezer->path, name, "freezer.state", "FROZEN");
            n = cgroup_pids(c, name, pids, PIDS_AT_ONCE);
            for (size_t i = 0; i < n; i++)
                kill(pids[i], SIGKILL);
            if (!c->unified && freezer)
                put(freezer->path, name, "freezer.state", "THAWED");
        }
        pause_ms(step);
    }
    free(pids);
    return empty;
}

/* Children first; a tenant cannot make groups, but what it runs may have been given a tree of
 * its own. */
static bool remove_tree(const char *path, int depth)
{
    if (!broken("cgroup.remove") && (rmdir(path) == 0 || errno == ENOENT))
        return true;
    DIR *d = depth < NAME_DEPTH ? opendir(path) : NULL;
    for (struct dirent *e; d && (e = readdir(d));) {
        char sub[512];
        if (e->d_type == DT_DIR && e->d_name[0] != '.'
            && (size_t)snprintf(sub, sizeof sub, "%s/%s", path, e->d_name) < sizeof sub)
            remove_tree(sub, depth + 1);
    }
    if (d)
        closedir(d);
    for (int i = 0; i < 6; i++) { /* the last process may not be reaped yet: a moment is enough */
        if (rmdir(path) == 0 || errno == ENOENT)
            return true;
        pause_ms(1 << i);
    }
    return false;
}

bool cgroup_remove(const struct cgroups *c, const char *name)
{
    bool ok = true;
    for (size_t i = 0; i < c->count; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", c->mounts[i].path, name);
        ok &= remove_tree(path, 0);
    }
    return ok;
}
