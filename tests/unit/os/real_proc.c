#include "pair.h"
#include "base/fault.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct ended { struct os *os; int times, status; };
static void on_exit_(void *arg, int status)
{
    struct ended *e = arg;
    e->times++;
    e->status = status;
    os_stop(e->os);
}
static void on_gone(void *arg) { on_exit_(arg, -2); }

/* Runs the loop until no child is left, reaped by it and not by us. */
static bool all_reaped(struct os *os)
{
    siginfo_t info;
    for (int i = 0; i < 1000 && waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0; i++)
        run_ms(os, 5);
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG) == -1 && errno == ECHILD;
}

static int run_sh(struct os *os, const char *script, int kill_with)
{
    struct err err = { 0 };
    struct ended e = { .os = os };
    struct proc *p;
    const char *argv[] = { "/bin/sh", "-c", script, NULL };
    struct proc_spec spec = { .argv = argv, .in = -1, .out = -1, .err = -1 };
    CHECK(proc_spawn(os, &spec, on_exit_, &e, &p, &err));
    CHECK(proc_pid(p) > 0 && proc_start_time(p) > 0);
    if (kill_with)
        proc_kill(p, kill_with);
    run_for(os);
    CHECK(e.times == 1);
    return e.status;
}

TEST(exit_codes_and_signals_are_told_apart)
{
    struct err err = { 0 };
    struct os *os = os_real_new(&err);
    int st = run_sh(os, "exit 0", 0);
    CHECK(WIFEXITED(st) && WEXITSTATUS(st) == 0);
    st = run_sh(os, "exit 7", 0);
    CHECK(WIFEXITED(st) && WEXITSTATUS(st) == 7);
    st = run_sh(os, "sleep 100", SIGKILL);
    CHECK(WIFSIGNALED(st) && WTERMSIG(st) == SIGKILL);
    st = run_sh(os, "exec sleep 100", SIGTERM);     /* and our mask is not theirs */
    CHECK(WIFSIGNALED(st) && WTERMSIG(st) == SIGTERM);
    CHECK(all_reaped(os));
    os_free(os);
}

TEST(what_cannot_be_run_says_so)
{
    struct err err = { 0 };
    struct os *os = os_real_new(&err);
    struct proc *p = NULL;
    const char *argv[] = { "/no/such/program", NULL };
    struct proc_spec spec = { .argv = argv, .in = -1, .out = -1, .err = -1 };
    CHECK(!proc_spawn(os, &spec, NULL, NULL, &p, &err) && err.rc == RC_NOT_FOUND);
    CHECK(strstr(err.text, "cannot run /no/such/program"));
    spec.own_session = true;
    CHECK(!proc_spawn(os, &spec, NULL, NULL, &p, &err) && err.rc == RC_NOT_FOUND);
    spec = (struct proc_spec){ .argv = (const char *[]){ "true", NULL } };
    CHECK(!proc_spawn(os, &spec, NULL, NULL, &p, &err) && err.rc == RC_BAD_INPUT);
    spec = (struct proc_spec){ .argv = (const char *[]){ "/bin/true", NULL }, .dir = "/no/folder" };
    CHECK(!proc_spawn(os, &spec, NULL, NULL, &p, &err) && strstr(err.text, "folder"));
    fault_arm(1);
    CHECK(!proc_spawn(os, &spec, NULL, NULL, &p, &err) && fault_fired());
    fault_arm(0);
    CHECK(!p && all_reaped(os));
    os_free(os);
}

TEST(a_child_gets_its_streams_and_folder_and_nothing_else_of_ours)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct err err = { 0 };
    struct os *os = os_real_new(&err);
    int leak = open("/etc/passwd", O_RDONLY);       /* without O_CLOEXEC on purpose */
    char *out;
    int st;
    setenv("ARCUS_SECRET", "leaked", 1);
    const char *env[] = { "/usr/bin/env", NULL };
    CHECK(proc_run(os, env, 1000, mem, &out, &st, &err) && st == 0 && text_is(out, ""));
    unsetenv("ARCUS_SECRET");
    const char *ls[] = { "/bin/sh", "-c", "ls /proc/$$/fd; exit 0", NULL };
    CHECK(proc_run(os, ls, 1000, mem, &out, &st, &err) && text_is(out, "0\n1\n2\n"));
    close(leak);
    const char *sig[] = { "/bin/grep", "SigIgn\\|SigBlk", "/proc/self/status", NULL };
    CHECK(proc_run(os, sig, 1000, mem, &out, &st, &err));
    CHECK(text_is(out, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n"));

    int fds[2];
    CHECK(pipe2(fds, O_CLOEXEC) == 0);
    struct peer in = { .os = os, .stop_at_close = true };
    in.s = stream_of_fd(os, fds[0], &peer_events, &in);
    const char *argv[] = { "/bin/sh", "-c", "pwd; echo $A", NULL };
    struct proc_spec spec = { .argv = argv, .env = (const char *[]){ "A=1 2", NULL }, .dir = "/usr",
                              .in = -1, .out = fds[1], .err = -1 };
    CHECK(proc_spawn(os, &spec, NULL, NULL, NULL, &err));
    close(fds[1]);
    run_for(os);
    CHECK(in.got.len && text_is(in.got.at, "/usr\n1 2\n") && all_reaped(os));
    str_done(&in.got);
    os_free(os);
}

TEST(descriptors_that_sit_where_others_go_are_not_mixed_up)
{
    struct err err = { 0 };
    struct os *os = os_real_new(&err);
    int fds[2], keep0 = fcntl(0, F_DUPFD_CLOEXEC, 10), keep1 = fcntl(1, F_DUPFD_CLOEXEC, 10);
    fflush(stdout);
    CHECK(pipe(fds) == 0);
    dup2(fds[1], 0);        /* what the child writes to as 1 is our 0, what it reads is our 1 */
    int input = open("/proc/self/comm", O_RDONLY);
    dup2(input, 1);
    const char *argv[] = { "/bin/cat", NULL };
    struct proc_spec spec = { .argv = argv, .in = 1, .out = 0, .err = -1 };
    struct ended e = { .os = os };
    bool ok = proc_spawn(os, &spec, on_exit_, &e, NULL, &err);
    run_for(os);
    dup2(keep0, 0), dup2(keep1, 1);
    close(keep0), close(keep1), close(input);
    char text[64] = "";
    CHECK(ok && read(fds[0], text, sizeof text - 1) > 0 && text_starts(text, "test-os"));
    close(fds[0]), close(fds[1]);
    os_free(os);
}

TEST(a_process_of_its_own_session_outlives_the_loop_and_is_seen_to_end)
{
    struct err err = { 0 };
    struct os *os = os_real_new(&err);
    struct proc *p = NULL;
    struct ended e = { .os = os };
    const char *argv[] = { "/bin/sleep", "100", NULL };
    struct proc_spec spec = { .argv = argv, .in = -1, .out = -1, .err = -1, .own_session = true };
    CHECK(proc_spawn(os, &spec, on_exit_, &e, &p, &err));
    int pid = proc_pid(p), st;
    uint64_t started = proc_start_time(p);
    CHECK(getsid(pid) == pid && waitpid(pid, &st, WNOHANG) == -1 && errno == ECHILD);
    os_free(os);
    CHECK(kill(pid, 0) == 0);

    e.os = os = os_real_new(&err);
    CHECK(!proc_watch(os, pid, started + 1, on_gone, &e, &p));      /* another one with that pid */
    CHECK(!proc_watch(os, 0, 0, on_gone, &e, &p) && !proc_watch(os, -5, 0, on_gone, &e, &p));
    CHECK(proc_watch(os, pid, started, on_gone, &e, &p));
    CHECK(proc_pid(p) == pid);
    proc_kill(p, SIGTERM);
    run_for(os);
    CHECK(e.times == 1);
    CHECK(!proc_watch(os, pid, started, on_gone, &e, &p));

    CHECK(proc_spawn(os, &spec, on_exit_, &e, &p, &err));
    proc_kill(p, SIGKILL);
    run_for(os);
    CHECK(e.times == 2 && e.status == -1);
    os_free(os);
}

TEST(a_forgotten_child_is_reaped_and_not_reported)
{
    struct err err = { 0 };
    struct os *os = os_real_new(&err);
    struct proc *p = NULL, *q = NULL;
    struct ended e = { .os = os };
    const char *argv[] = { "/bin/true", NULL };
    struct proc_spec spec = { .argv = argv, .in = -1, .out = -1, .err = -1 };
    CHECK(proc_spawn(os, &spec, on_exit_, &e, &p, &err));
    proc_forget(p);
    proc_forget(NULL);
    CHECK(proc_spawn(os, &spec, NULL, NULL, &q, &err));
    CHECK(all_reaped(os) && e.times == 0);
    proc_kill(q, SIGTERM);              /* long over: nothing is hit */
    proc_forget(q);
    run_ms(os, 5);
    os_free(os);
}
