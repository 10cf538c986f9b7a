#include "pair.h"
#include <errno.h>
#include <sys/stat.h>
#include <sys/wait.h>

TEST(a_helper_is_run_to_its_end_and_its_complaint_is_heard)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct err err = { 0 };
    struct os *os = os_real_new(&err);
    char *out = NULL;
    int st = -1;
    const char *good[] = { "/bin/sh", "-c", "echo one; echo two >&2", NULL };
    CHECK(proc_run(os, good, 100, mem, &out, &st, &err) && st == 0 && text_is(out, "one\n"));
    const char *bad[]
        = { "/bin/sh", "-c", "echo half; echo first >&2; echo no such image >&2; exit 3", NULL };
    CHECK(proc_run(os, bad, 100, mem, &out, &st, &err) && WEXITSTATUS(st) == 3);
    CHECK(text_is(out, "half\n") && text_is(err.text, "/bin/sh: no such image"));
    CHECK(!proc_run(os, bad, 100, mem, &out, NULL, &err) && strstr(err.text, "no such image"));
    const char *killed[] = { "/bin/sh", "-c", "kill -9 $$", NULL };
    CHECK(proc_run(os, killed, 100, mem, &out, &st, &err) && WIFSIGNALED(st));
    const char *much[] = { "/usr/bin/yes", NULL };
    CHECK(!proc_run(os, much, 100000, mem, &out, &st, &err) && err.rc == RC_TOO_LARGE);
    const char *none[] = { "/no/such", NULL };
    CHECK(!proc_run(os, none, 100, mem, &out, &st, &err) && err.rc == RC_NOT_FOUND);
    siginfo_t info;
    CHECK(waitid(P_ALL, 0, &info, WEXITED | WNOHANG) == -1 && errno == ECHILD);
    os_free(os);
}

/* Not before it has begun. */
struct limit { const char *file; int left; };
static bool no_more(void *arg, struct err *why)
{
    struct limit *l = arg;
    struct stat st;
    if (l->file && (stat(l->file, &st) == -1 || st.st_size == 0))
        return true;
    return --l->left > 0 || err_set(why, RC_TOO_LARGE, "it was enough");
}

TEST(a_guarded_helper_is_ended_with_all_it_started)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct err err = { 0 };
    struct os *os = os_real_new(&err);
    char file[] = "/tmp/arcus-guard-XXXXXX";
    int fd = mkstemp(file);
    struct limit limit = { file, 3 };
    close(fd);
    const char *argv[] = { "/usr/bin/timeout", "60", "/bin/sh", "-c",
                           arena_printf(mem, "echo $$ >%s; exec sleep 60", file), NULL };
    struct proc_guard guard = { no_more, &limit, 20 };
    CHECK(!proc_run_guarded(os, argv, 100, &guard, mem, NULL, &err) && limit.left == 0);
    CHECK(err.rc == RC_TOO_LARGE && text_is(err.text, "it was enough"));
    struct slice pid;
    CHECK(file_read(os, file, 32, mem, &pid, &err) && pid.len > 1);
    bool runs = true; /* where nobody reaps it is dead all the same */
    for (int tries = 0; runs && tries < 6000; tries++) {
        struct slice stat;
        const char *path = arena_printf(mem, "/proc/%d/stat", atoi(pid.at));
        runs = file_read(os, path, 4096, mem, &stat, &err) && !strstr(stat.at, ") Z ");
        usleep(runs ? 10000 : 0);
    }
    CHECK(!runs);
    unlink(file);
    limit = (struct limit){ .left = 1000 };
    char *out = NULL;
    const char *good[] = { "/bin/echo", "done", NULL };
    CHECK(proc_run_guarded(os, good, 100, &guard, mem, &out, &err) && text_is(out, "done\n"));
    CHECK(disk_free(os, "/tmp") > 0 && disk_free(os, "/no/such") == 0);
    os_free(os);
}
