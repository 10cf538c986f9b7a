#include "pair.h"
#include <errno.h>
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
