/* session_ssh.c - one SSH connection into the task: a dropbear of the node's, started for it inside the container and as the task's own process.
 *
 * Nothing listens anywhere: dropbear speaks over the socket that it was born with. Its program, loader and libraries are copied into the container
 * (once, to /run/arcus-ssh), so any image will do that has a shell. The copying and the keys are done inside the container's user and mount namespaces:
 * whatever a path means there, it means nothing of the node; whoever changes those files there fools only himself. */
#include "task/task.h"
#include "agent/authorized_keys.h"
#include "agent/task_proto.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#define FOLDER "/run/arcus-ssh"
enum { PASSWD_BYTES = 1 << 20, BLOCK = 64 << 10, SAID = 256 };

static const char script[] =
    "run() { program=$1; shift; \"$D/ld\" --inhibit-cache --library-path \"$D\" \"$D/$program\" \"$@\"; }\n"
    "D=$1 K=$2\n"
    "[ -s \"$K\" ] || run dropbearkey -t ed25519 -f \"$K\" >/dev/null 2>&1\n"
    "exec \"$D/ld\" --inhibit-cache --library-path \"$D\" \"$D/dropbear\" -i -s -e -r \"$K\"\n";

static const struct { const char *name, *as; } parts[] = {
    { "dropbear", "dropbear" },
    { "dropbearkey", "dropbearkey" },
#ifdef __aarch64__
    { "ld-linux-aarch64.so.1", "ld" },
#else
    { "ld-linux-x86-64.so.2", "ld" },
#endif
    { "libtomcrypt.so.1", "libtomcrypt.so.1" },
    { "libtommath.so.1", "libtommath.so.1" },
    { "libgmp.so.10", "libgmp.so.10" },
    { "libz.so.1", "libz.so.1" },
    { "libcrypt.so.1", "libcrypt.so.1" },
    { "libc.so.6", "libc.so.6" },
};

/* A bundle has all of them in one folder beside its runtime; a loader and the C library of another do not fit each other. */
static int find_beside(const char *runtime, const char *name)
{
    char path[4200];
    const char *slash = strrchr(runtime, '/');
    snprintf(path, sizeof path, "%.*s/ssh/%s", (int)(slash ? slash - runtime : 0), runtime, name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static int find_part(const char *name)
{
    static const char *const folders[] = { "/usr/sbin", "/usr/bin", "/lib64", "/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/lib" };
    for (size_t i = 0; i < COUNT(folders); i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", folders[i], name);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd != -1)
            return fd;
    }
    return -1;
}

static bool find_parts(const char *runtime, int fds[static COUNT(parts)], struct err *err)
{
    AUTO(fd_close) int bundled = find_beside(runtime, parts[0].name);
    for (size_t i = 0; i < COUNT(parts); i++)
        if ((fds[i] = bundled == -1 ? find_part(parts[i].name) : find_beside(runtime, parts[i].name)) == -1)
            return err_set(err, RC_UNAVAILABLE, "this node has no %s: its operator must install dropbear (Debian's dropbear-bin) for SSH", parts[i].name);
    return true;
}

/* --- inside */

static bool write_whole(int fd, const char *at, size_t n)
{
    for (ssize_t done; n; at += done, n -= (size_t)done)
        if ((done = write(fd, at, n)) <= 0)
            return false;
    return true;
}

static bool copy_bytes(int from, int to, char *block)
{
    ssize_t n;
    for (off_t at = 0; (n = pread(from, block, BLOCK, at)) > 0; at += n)
        if (!write_whole(to, block, (size_t)n))
            return false;
    return n == 0;
}

static bool copy_part(int dir, int from, const char *name, char *block, struct err *err)
{
    struct stat is, should;
    char part[64];
    if (fstat(from, &should) == 0 && fstatat(dir, name, &is, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(is.st_mode) && is.st_size == should.st_size)
        return true;
    snprintf(part, sizeof part, ".%s-%d", name, getpid());
    AUTO(fd_close) int to = openat(dir, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0755);
    if (to != -1 && copy_bytes(from, to, block) && fchmod(to, 0755) == 0 && renameat(dir, part, dir, name) == 0)
        return true;
    err_errno(err, "cannot put %s into the task's %s", name, FOLDER);
    unlinkat(dir, part, 0);
    return false;
}

static bool copy_all(const int fds[static COUNT(parts)], struct arena *mem, struct err *err)
{
    struct stat st;
    mkdir("/run", 0755);
    mkdir(FOLDER, 0755);
    AUTO(fd_close) int dir = open(FOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir == -1 || fstat(dir, &st) == -1)
        return err_errno(err, "cannot make the task's %s", FOLDER);
    if (st.st_uid != 0 || st.st_mode & 022)
        return err_set(err, RC_CONFLICT, "the task's %s is not its root's alone", FOLDER);
    char *block = ARENA_ARRAY(mem, char, BLOCK);
    for (size_t i = 0; i < COUNT(parts); i++)
        if (!copy_part(dir, fds[i], parts[i].as, block, err))
            return false;
    return true;
}

/* A small regular file; whatever else stands there is not waited for. */
static bool read_regular(const char *path, size_t most, struct arena *mem, char **out)
{
    struct stat st;
    AUTO(fd_close) int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd == -1 || fstat(fd, &st) == -1 || !S_ISREG(st.st_mode) || (size_t)st.st_size > most)
        return false;
    *out = ARENA_ARRAY(mem, char, (size_t)st.st_size + 1);
    return read(fd, *out, (size_t)st.st_size) == st.st_size;
}

static bool find_home(int64_t uid, struct arena *mem, const char **home, struct err *err)
{
    char *text = NULL;
    if (!read_regular("/etc/passwd", PASSWD_BYTES, mem, &text))
        return err_set(err, RC_CONFLICT, "the image has no /etc/passwd, which SSH needs");
    for (char *line, *rest = text; (line = strsep(&rest, "\n"));) {
        const char *f[7];
        size_t n = 0;
        for (char *word; n < COUNT(f) && (word = strsep(&line, ":"));)
            f[n++] = word;
        if (n == COUNT(f) && f[2][0] && strtoll(f[2], NULL, 10) == uid && f[5][0] == '/')
            return *home = f[5], true;
    }
    return err_set(err, RC_CONFLICT, "the image's /etc/passwd knows no user with number %lld, which SSH needs", (long long)uid);
}

static bool prepare(struct task *t, const struct task_request *rq, const char **home, struct err *err)
{
    int fds[COUNT(parts)];
    AUTO(fd_close) int root = -1;
    gid_t gid = (gid_t)t->plan.gid;
    uid_t uid = (uid_t)t->plan.uid;
    return find_parts(t->plan.runtime, fds, err) && container_enter(t, &root, err) && copy_all(fds, t->mem, err) && find_home(t->plan.uid, t->mem, home, err)
           && ((setresgid(gid, gid, gid) == 0 && setresuid(uid, uid, uid) == 0) || err_errno(err, "cannot become the task's user"))
           && authorized_keys_put(arena_printf(t->mem, "%s/.ssh", *home), &rq->argv, &rq->barred, time(NULL), t->mem, err);
}

/* In a child of ours, which nobody gets out of the container again. It says where the home is, or what went wrong. */
static bool prepare_inside(struct task *t, const struct task_request *rq, const char **home, struct err *err)
{
    int said[2], status = -1;
    char text[SAID] = "";
    if (pipe2(said, O_CLOEXEC) == -1)
        return err_errno(err, "cannot make a pipe");
    pid_t pid = fork();
    if (pid == 0) {
        bool ok = prepare(t, rq, home, err);
        const char *last = ok ? *home : err->text;
        size_t n = MIN(strlen(last), sizeof text - 1);
        _exit(write(said[1], last, n) == (ssize_t)n && ok ? 0 : 1);
    }
    close(said[1]);
    AUTO(fd_close) int from = said[0];
    for (ssize_t n, at = 0; pid > 0 && (n = read(from, text + at, sizeof text - 1 - (size_t)at)) > 0;)
        at += n;
    while (pid > 0 && waitpid(pid, &status, 0) == -1 && errno == EINTR)
        ;
    if (status != 0)
        return err_set(err, RC_CONFLICT, "%s", text[0] ? text : "SSH could not be prepared in the task");
    *home = arena_text(t->mem, text);
    return true;
}

bool session_ssh(struct task *t, int connection, const struct task_request *rq, struct err *err)
{
    const char *home = NULL;
    if (!prepare_inside(t, rq, &home, err))
        return false;
    const char *argv[] = { "/bin/sh", "-c", script, "sh", FOLDER, arena_printf(t->mem, "%s/.ssh/arcus_host_key", home) };
    struct task_request run = { .op = "exec", .argv = { argv, COUNT(argv) }, .socket = true };
    return session_exec(t, connection, &run, err);
}
