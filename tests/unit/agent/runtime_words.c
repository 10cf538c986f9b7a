#include "agent/runtime_words.h"
#include "tap.h"

/* As crun 1.8 and runc 1.1 write them. */
static const struct { const char *log; bool own; enum rc rc; const char *says; } said[] = {
    { "time=\"2026-11-15\" level=error msg=\"writing file `/proc/7/uid_map`: No such process\n", false, RC_INTERNAL, "was killed" },
    { "writing file `/proc/7/setgroups`: No such process\n", false, RC_INTERNAL, "was killed" },
    { "write to sync socket: Broken pipe\n", false, RC_INTERNAL, "was killed" },
    { "recvmsg: Connection reset by peer\n", false, RC_INTERNAL, "was killed" },
    { "read from the init process\n", false, RC_INTERNAL, "was killed" },
    { "level=error msg=\"runc create failed: unable to start container process: can't get final child's PID from pipe: EOF\"\n", false, RC_INTERNAL, "was killed" },
    { "recvmsg: Connection reset by peer", false, RC_INTERNAL, "was killed" },
    /* The same words about something else: a file of the task's, or in the middle of a sentence. */
    { "executable file `No such process` not found in $PATH: No such file or directory\n", true, RC_BAD_INPUT, "No such process: command not found" },
    { "mount `: Broken pipe` to `/x`: Permission denied\n", true, RC_INTERNAL, "Permission denied" },
    { "open executable: Permission denied\n", true, RC_BAD_INPUT, "cannot be executed" },
    { "level=error msg=\"exec: \\\"nix\\\": executable file not found in $PATH\"\n", true, RC_BAD_INPUT, "nix: command not found" },
    { "writing file `cpu.max`: Invalid argument\nrecvmsg: Connection reset by peer\n", true, RC_INTERNAL, "Invalid argument" },
};

TEST(a_runtime_that_lost_a_process_of_its_own_is_the_nodes_fault_and_anything_else_it_says_is_told)
{
    for (size_t i = 0; i < COUNT(said); i++) {
        struct err err = { 0 };
        CHECK(runtime_why("/usr/bin/crun", said[i].log, &err) == said[i].own);
        CHECK(err.rc == said[i].rc && strstr(err.text, said[i].says));
    }
}
