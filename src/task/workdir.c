/* workdir.c - the uploaded work folder, unpacked into the task's own scratch so that it counts
 * against its disk.
 *
 * A child does it: the memory of unpacking must not stay with a supervisor that lives for weeks. */
#include "task/task.h"
#include "agent/tree.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>

enum { CHUNK = 64 * 1024 };

static bool unpack(const struct plan *p, struct err *err)
{
    AUTO(fd_close) int in = open(p->workdir, O_RDONLY | O_CLOEXEC);
    AUTO(fd_close) int dir = open("scratch", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (in == -1 || dir == -1)
        return err_errno(err, "cannot open the work folder's archive");
    AUTO(tree_receiver_free) struct tree_receiver *r = NULL;
    if (!tree_receive(dir, "workdir", p->uid_base + p->uid, p->uid_base + p->gid, &r, err))
        return false;
    char *chunk = malloc(CHUNK);
    bool ok = chunk != NULL;
    for (ssize_t n; ok && (n = read(in, chunk, CHUNK)) > 0;)
        ok = tree_receive_feed(r, chunk, (size_t)n, err);
    free(chunk);
    return ok && tree_receive_end(r, err);
}

bool workdir_unpack(const struct plan *p, struct err *err)
{
    int say[2], status = 0;
    if (pipe2(say, O_CLOEXEC) == -1)
        return err_errno(err, "cannot make a pipe");
    pid_t pid = fork();
    if (pid == 0) {
        struct err why = { 0 };
        bool ok = unpack(p, &why);
        _exit(ok || write(say[1], &why, sizeof why) != sizeof why ? !ok : 1);
    }
    close(say[1]);
    struct err why = { 0 };
    ssize_t n = read(say[0], &why, sizeof why);
    close(say[0]);
    if (pid == -1 || waitpid(pid, &status, 0) != pid)
        return err_errno(err, "cannot unpack the work folder");
    if (status == 0)
        return true;
    *err = n == sizeof why ? why : (struct err){ .rc = RC_INTERNAL, .text = "the unpacker died" };
    return err_wrap(err, "the work folder could not be unpacked");
}
