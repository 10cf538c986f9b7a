#include "agent/agent.h"
#include "base/err.h"
#include "base/log.h"
#include "tap.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* What it says on standard error, and its exit code. */
static int said(const char *const *argv, char *out, size_t room)
{
    int pipes[2], argc = 0, old = dup(STDERR_FILENO);
    while (argv[argc])
        argc++;
    CHECK(old >= 0 && pipe2(pipes, O_CLOEXEC | O_NONBLOCK) == 0);
    dup2(pipes[1], STDERR_FILENO);
    int code = agent_main(argc, (char **)argv);
    dup2(old, STDERR_FILENO);
    close(old);
    close(pipes[1]);
    ssize_t n = read(pipes[0], out, room - 1);
    out[MAX(n, 0)] = 0;
    close(pipes[0]);
    return code;
}

TEST(flags_that_make_no_sense_are_named)
{
    static const struct { const char *argv[8]; const char *says; } rows[] = {
        { { "agent", NULL }, "--server" },
        { { "agent", "--server", NULL }, "--server needs a value" },
        { { "agent", "--bogus", "x", NULL }, "'--bogus'" },
        { { "agent", "x", NULL }, "'x'" },
        { { "agent", "--server", "http://h:1", "--sim-gpus", "many", NULL }, "--sim-gpus" },
        { { "agent", "--server", "http://h:1", "--sim-gpus=65", NULL }, "from 0 to 64" },
        { { "agent", "--server", "http://h:1", "--label", "novalue", NULL }, "KEY=VALUE" },
        { { "agent", "--server", "http://h:1", "--hide", "relative", NULL }, "absolute" },
        { { "agent", "--server", "http://h:1", "--log-level", "loud", NULL }, "debug, info" },
        { { "agent", "--server", "http://h:1", "--allow-host-image=yes", NULL }, "takes no value" },
        { { "agent", "--server", "http://h:1", "--ca", "/nowhere/ca.pem", NULL }, "--ca" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char text[1000];
        int code = said(rows[i].argv, text, sizeof text);
        bool ok = code != 0 && strstr(text, rows[i].says) && strstr(text, "arcus agent: ");
        if (!ok)
            printf("# %d: %s\n", code, text);
        CHECK(ok);
    }
}

TEST(a_second_agent_on_the_same_folder_is_refused)
{
    char folder[] = "/tmp/arcus-agent-XXXXXX", run[64], lock[64], text[1000];
    CHECK(mkdtemp(folder));
    snprintf(run, sizeof run, "%s/run", folder);
    snprintf(lock, sizeof lock, "%s/agent.lock", folder);
    const char *argv[] = { "agent", "--server", "http://127.0.0.1:1", "--data", folder, "--run", run, NULL };
    char command[128];
    int fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && flock(fd, LOCK_EX) == 0);      /* another open file counts as another holder */
    CHECK(said(argv, text, sizeof text) != 0 && strstr(text, "another agent"));
    close(fd);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    CHECK(system(command) == 0);
}
