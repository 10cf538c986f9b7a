/* nets.c - what is left in the networks of the nodes when nothing runs there any more. Each node has a network namespace of its own, which its
 * agent holds open (agent/fabric.h): a cable in there belongs to a task, and goes with it. */
#include "kills.h"
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CABLES_MS = 60000, CABLE_NAME = 14, NAMES_MOST = 1024 }; /* fabric_link: t and 13 digits */

static bool is_cable(const char *name, size_t n)
{
    return n == CABLE_NAME && name[0] == 't' && strspn(name + 1, "0123456789abcdef") >= n - 1;
}

/* In a process of its own, as whoever enters a network stays there. */
static void tell_cables(const char *ns, int to)
{
    char line[512];
    int fd = open(ns, O_RDONLY | O_CLOEXEC);
    if (fd == -1 || setns(fd, CLONE_NEWNET) == -1)
        _exit(1);
    FILE *f = fopen("/proc/self/net/dev", "re");
    while (f && fgets(line, sizeof line, f)) {
        char *name = line + strspn(line, " ");
        size_t n = strcspn(name, ":");
        if (is_cable(name, n))
            dprintf(to, "%.*s ", (int)n, name);
    }
    _exit(!f);
}

/* False: there is no such network, or it could not be looked into. */
static bool cables_in(const char *ns, struct str *out)
{
    int ends[2], status = 1;
    char part[NAMES_MOST];
    if (pipe2(ends, O_CLOEXEC) != 0)
        abort();
    pid_t pid = fork();
    if (pid == 0)
        tell_cables(ns, ends[1]);
    close(ends[1]);
    for (ssize_t n; (n = read(ends[0], part, sizeof part)) > 0;)
        str_put(out, part, (size_t)n);
    close(ends[0]);
    return waitpid(pid, &status, 0) == pid && status == 0;
}

/* How many networks of agents there are; out: the cables in them. */
static int look(struct cloud *c, struct str *out)
{
    char own[64] = "", is[64], path[64];
    int seen = 0;
    str_clear(out);
    if (readlink("/proc/self/ns/net", own, sizeof own - 1) == -1)
        return 0;
    for (int i = FIRST_AGENT; i < FIRST_GUEST; i++) {
        snprintf(path, sizeof path, "/proc/%d/fd", (int)c->parts[i].pid);
        DIR *d = c->parts[i].pid ? opendir(path) : NULL;
        for (struct dirent *e; d && (e = readdir(d));) {
            snprintf(path, sizeof path, "/proc/%d/fd/%.16s", (int)c->parts[i].pid, e->d_name);
            ssize_t n = readlink(path, is, sizeof is - 1);
            is[n > 0 ? n : 0] = 0;
            if (text_starts(is, "net:[") && !text_is(is, own))
                seen += cables_in(path, out);
        }
        if (d)
            closedir(d);
    }
    return seen;
}

void nets_check(struct cloud *c)
{
    AUTO(str_done) struct str left = { 0 };
    int seen = look(c, &left);
    for (int64_t until = now_ms() + CABLES_MS; left.len && now_ms() < until;) {
        parts_run(c, 200);
        seen = look(c, &left);
    }
    printf("# %d networks of nodes were looked into\n", seen);
    if (left.len)
        problem(c, "nets", "nothing runs, and there are cables: %.300s", left.at);
}
