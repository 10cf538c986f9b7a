/* place.c - where tasks are run: a mount namespace of our own, a range of ids and a scratch, for one task or for one after the
 * other.
 *
 * The law: nothing is mounted where the host could see it, so nothing can be left over: all of it goes at once with our
 * namespace. And nothing of a task is there for the next one: whatever it may have touched is made anew. A root that nobody
 * touched is kept, since making it is most of a short task's work: the change times of its few files and folders tell,
 * which nobody can set. A change in the same tick of the clock as the making would bear the same time, so a root that young is
 * never taken for untouched. */
#include "task/task.h"
#include "agent/tree.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

enum { SETTLE_TRIES = 100, SETTLE_US = 1000 };

static bool mark(struct mark *m, const char *path);
static bool is_as_marked(const struct mark *m);

static bool write_map(int pid, const char *file, const char *map)
{
    char path[48];
    size_t n = strlen(map);
    snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
    AUTO(fd_close) int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd != -1 && write(fd, map, n) == (ssize_t)n;
}

bool user_namespace(const char *map, int *out, struct err *err)
{
    int gate[2];
    if (pipe2(gate, O_CLOEXEC) == -1)
        return err_errno(err, "cannot make a pipe");
    long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) {
        char c;
        close(gate[1]);
        _exit(read(gate[0], &c, 1) == 0 ? 0 : 1);
    }
    char path[48];
    snprintf(path, sizeof path, "/proc/%ld/ns/user", pid);
    bool ok = pid > 0 && write_map((int)pid, "uid_map", map) && write_map((int)pid, "gid_map", map);
    int fd = ok ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    int why = errno;
    close(gate[0]);
    close(gate[1]);
    if (pid > 0)
        waitpid((pid_t)pid, NULL, 0);
    errno = why;
    if (fd == -1)
        return err_errno(err, "cannot make a user namespace");
    *out = fd;
    return true;
}

static bool own_ids(const struct plan *p, int *out, struct err *err)
{
    char map[64];
    snprintf(map, sizeof map, "0 %lld %d\n", (long long)p->uid_base, PLAN_UID_COUNT);
    return user_namespace(map, out, err);
}

static bool own_namespace(const struct cgroups *c, struct err *err)
{
    if (unshare(CLONE_NEWNS) == -1 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1)
        return err_errno(err, "cannot make a mount namespace");
    if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == -1)
        return err_errno(err, "cannot mount /proc for its pid namespace");
    /* crun takes a host for a broken v2 one as long as it sees the empty v2 tree of a hybrid. */
    if (c->hybrid && umount2(c->hybrid_path, MNT_DETACH) == -1)
        return err_errno(err, "cannot hide %s", c->hybrid_path);
    return true;
}

/* Mount points, files for and from the runtime: in memory, gone with us. */
static bool own_folder(const struct plan *p, struct err *err)
{
    if (mount("place", p->run, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0711,size=8m,nr_inodes=4096") == -1
        || chdir(p->run) == -1)
        return err_errno(err, "cannot enter %s", p->run);
    return true;
}

bool place_open(struct place *s, const struct plan *p, const struct cgroups *cgroups, struct err *err)
{
    if (s->open && setns(s->host, CLONE_NEWNS) == -1)
        return err_errno(err, "cannot go back to the node's mounts");
    if (!s->open) {
        s->userns = s->runtime.fd = -1;
        s->host = s->marks ? open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC) : -1;
        s->host_mounts = s->marks ? open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC) : -1;
    }
    s->host_root = s->steady = s->other = false;
    bool first = !s->open;
    s->open = true;
    if (!own_namespace(cgroups, err) || (first && !own_ids(p, &s->userns, err)) || !own_folder(p, err)
        || !scratch_mount(p, err))
        return false;
    sealed_close(&s->runtime);
    sealed_open(&s->runtime, p->runtime);
    if (!mark(&s->program, s->runtime.path))
        sealed_close(&s->runtime);
    return true;
}

bool place_is_stale(const struct place *s)
{
    struct pollfd fd = { .fd = s->host_mounts, .events = POLLPRI };
    return (poll(&fd, 1, 0) > 0 && fd.revents & (POLLPRI | POLLERR)) || !is_as_marked(&s->program);
}

/* --- is it as it was? */

static bool mark(struct mark *m, const char *path)
{
    struct stat st;
    if (lstat(path, &st) == -1 || (size_t)snprintf(m->path, sizeof m->path, "%s", path) >= sizeof m->path)
        return false;
    m->inode = st.st_ino;
    m->sec = st.st_ctim.tv_sec;
    m->nsec = st.st_ctim.tv_nsec;
    return true;
}

static bool is_as_marked(const struct mark *m)
{
    struct stat st;
    return lstat(m->path, &st) == 0 && st.st_ino == m->inode && st.st_ctim.tv_sec == m->sec
           && st.st_ctim.tv_nsec == m->nsec;
}

static bool mark_one(struct place *s, const char *path)
{
    return s->mark_count < MARKS_MOST && mark(&s->marks[s->mark_count++], path);
}

static bool mark_folder(struct place *s, const char *path)
{
    char sub[MARK_PATH];
    bool ok = mark_one(s, path);
    DIR *d = ok ? opendir(path) : NULL;
    for (struct dirent *e; d && ok && (e = readdir(d));) {
        if (text_is(e->d_name, ".") || text_is(e->d_name, ".."))
            continue;
        ok = (size_t)snprintf(sub, sizeof sub, "%s/%s", path, e->d_name) < sizeof sub
             && e->d_type != DT_UNKNOWN && (e->d_type == DT_DIR ? mark_folder : mark_one)(s, sub);
    }
    if (d)
        closedir(d);
    return ok && d;
}

static bool older(const struct mark *m, const struct timespec *than)
{
    return m->sec < than->tv_sec || (m->sec == than->tv_sec && m->nsec < than->tv_nsec);
}

/* The clock by which changes are stamped, which stands still for some milliseconds at a time. */
static bool all_older(const struct place *s)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    for (size_t i = 0; i < s->mark_count; i++)
        if (!older(&s->marks[i], &now))
            return false;
    return true;
}

static bool mark_all(struct place *s)
{
    s->mark_count = 0;
    return mark_folder(s, "scratch/root") && mark_folder(s, "scratch/empty") && mark_one(s, "scratch/nothing");
}

static bool untouched(const struct place *s)
{
    for (size_t i = 0; i < s->mark_count; i++)
        if (!is_as_marked(&s->marks[i]))
            return false;
    return true;
}

void place_begin(struct place *s)
{
    s->steady = s->steady || (s->marks && s->host_root && !s->other && mark_all(s) && all_older(s));
}

/* --- from one task to the next */

static bool empty_scratch(struct err *err)
{
    char path[MARK_PATH];
    DIR *d = opendir("scratch");
    bool ok = d || err_errno(err, "cannot list the scratch");
    for (struct dirent *e; ok && (e = readdir(d));) {
        if (text_is(e->d_name, ".") || text_is(e->d_name, "..") || text_is(e->d_name, "lost+found"))
            continue;
        ok = (size_t)snprintf(path, sizeof path, "scratch/%s", e->d_name) < sizeof path && tree_remove(path, err);
    }
    if (d)
        closedir(d);
    return ok;
}

/* What the runtime and sessions left: all that is no folder. */
static bool remove_files(struct err *err)
{
    DIR *d = opendir(".");
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_type != DT_DIR)
            unlink(e->d_name);
    if (d)
        closedir(d);
    return d || err_errno(err, "cannot list the place");
}

/* A mount that is not there is as good as one that is gone. */
static bool detach(const char *path, struct err *err)
{
    return umount2(path, MNT_DETACH) == 0 || errno == EINVAL || errno == ENOENT || err_errno(err, "cannot unmount %s", path);
}

bool place_clear(struct place *s, struct err *err)
{
    s->host_root = s->steady = s->other = false;
    return detach("rootfs", err) && detach("lower", err) && empty_scratch(err);
}

bool place_settle(struct place *s, const struct plan *p, struct err *err)
{
    s->steady = false;
    s->host_root = mount_host_root(p, err);
    if (!s->host_root || !mark_all(s))
        return s->host_root;
    for (int i = 0; i < SETTLE_TRIES && !(s->steady = all_older(s)); i++)
        usleep(SETTLE_US);
    return true;
}

bool place_reset(struct place *s, const struct plan *p, struct err *err)
{
    const struct plan_mount *m = p->mounts.at;
    for (size_t i = 0; i < p->mounts.count; i++)
        if (!detach(m[i].name, err))
            return false;
    if ((p->nodes.count && !detach("devices", err)) || !remove_files(err))
        return false;
    if (p->root == ROOT_HOST && s->steady && untouched(s))
        return true;
    return place_clear(s, err) && (p->root != ROOT_HOST || place_settle(s, p, err));
}
