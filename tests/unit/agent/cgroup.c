#include "agent/cgroup.h"
#include "tap.h"
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

TEST(this_machines_hierarchies_are_found)
{
    struct cgroups c;
    struct err err = {0};
    CHECK(cgroups_find(&c, &err));
    CHECK(c.count >= 1 && c.mounts[0].path[0] == '/' && (c.unified ? c.count == 1 && !c.hybrid : true));
    CHECK(text_is(cgroups_kind(&c), "v1") || text_is(cgroups_kind(&c), "hybrid") || text_is(cgroups_kind(&c), "v2"));
    CHECK(cgroup_pids(&c, "arcus/nobody-made-this", &(int){0}, 1) == 0 && cgroup_oom_kills(&c, "arcus/nobody-made-this") == 0);
    CHECK(cgroup_kill(&c, "arcus/nobody-made-this", 10) && cgroup_remove(&c, "arcus/nobody-made-this"));
}

TEST(a_group_is_killed_as_a_whole_even_if_it_forks)
{
    struct cgroups c;
    struct err err = {0};
    char name[48];
    int pids[64];
    if (geteuid() != 0) {
        test_skip("needs root");
        return;
    }
    CHECK(cgroups_find(&c, &err));
    snprintf(name, sizeof name, "arcus/test-%d/deep", getpid());
    int gate[2];
    CHECK(pipe(gate) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        char go;
        close(gate[1]);
        ssize_t n = read(gate[0], &go, 1);      /* not before it is in the group: a bomb belongs in its box */
        for (int i = 0; n == 1 && i < 300; i++) {
            alarm(120);
            usleep(5000);
            if (fork() != 0)
                pause();                        /* each makes the next one, for longer than the test takes */
        }
        _exit(0);
    }
    close(gate[0]);
    CHECK(cgroup_move(&c, name, pid, &err));
    CHECK(write(gate[1], "g", 1) == 1);
    close(gate[1]);
    for (int i = 0; i < 6000 && cgroup_pids(&c, name, pids, 64) <= 2; i++)
        usleep(10000);
    CHECK(cgroup_pids(&c, name, pids, 64) > 2);
    CHECK(cgroup_kill(&c, name, 60000));
    waitpid(pid, NULL, 0);
    CHECK(cgroup_pids(&c, name, pids, 64) == 0);
    snprintf(name, sizeof name, "arcus/test-%d", getpid());
    CHECK(cgroup_remove(&c, name));
    char path[256];
    snprintf(path, sizeof path, "%s/%s", c.mounts[0].path, name);
    CHECK(access(path, F_OK) == -1);
}

/* Something came within that time; all of it is taken. */
static bool beats(int fd, int wait_ms)
{
    char many[4096];
    return poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, wait_ms) == 1 && read(fd, many, sizeof many) > 0;
}

TEST(a_group_stands_still_and_runs_again_and_its_memory_limit_can_be_moved)
{
    struct cgroups c;
    struct err err = {0};
    char name[48];
    int64_t bytes;
    if (geteuid() != 0 || !cgroups_find(&c, &err) || !cgroups_freeze(&c)) {
        test_skip("needs root and a freezer");
        return;
    }
    snprintf(name, sizeof name, "arcus/still-%d", getpid());
    int beat[2];
    CHECK(pipe(beat) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(60);
        while (write(beat[1], "b", 1) == 1)
            usleep(1000);
        _exit(0);
    }
    CHECK(cgroup_move(&c, name, pid, &err));
    CHECK(beats(beat[0], 30000));
    CHECK(cgroup_freeze(&c, name, true, 60000, &err) && cgroup_freeze(&c, name, true, 60000, &err));
    while (beats(beat[0], 0)) /* what was on its way */
        continue;
    CHECK(!beats(beat[0], 100));
    CHECK(cgroup_freeze(&c, name, false, 60000, &err) && beats(beat[0], 30000));
    static const int64_t sizes[] = { 64 << 20, 256 << 20, 64 << 20 };
    bool limited = cgroup_memory_limit(&c, name, &bytes, &err);     /* on v2 somebody may have to let it be */
    for (size_t i = 0; limited && i < COUNT(sizes); i++)
        CHECK(cgroup_memory_set(&c, name, sizes[i], &err) && cgroup_memory_limit(&c, name, &bytes, &err) && bytes == sizes[i]);
    CHECK(cgroup_freeze(&c, name, true, 60000, &err) && cgroup_kill(&c, name, 5000));    /* what stands still dies too */
    waitpid(pid, NULL, 0);
    CHECK(cgroup_remove(&c, name) && !cgroup_freeze(&c, name, true, 10, &err) && !cgroup_memory_limit(&c, name, &bytes, &err));
    close(beat[0]);
    close(beat[1]);
}
