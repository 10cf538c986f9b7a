/* gpu_checks.c - the agent's side of gpu_check.h: starts the helper, gives it its time, reads its line. What it writes goes to memory that outlives
 * it, so that its last word is there when it is gone. One that does not end is told as failed when its time is over, and is waited for in silence. */
#include "agent/gpu_check.h"
#include "wire/bind.h"
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LINE_MOST = 4096 };

struct check {
    struct os *os;
    struct proc *proc;
    struct timer *late;
    int out;
    int64_t limit_ms;
    bool told;
    void (*done)(void *arg, const struct check_said *said);
    void *arg;
};

static void tell(struct check *c, const struct check_said *said)
{
    timer_cancel(TAKE(c->late));
    if (c->told)
        return;
    c->told = true;
    c->done(c->arg, said);
}

static void on_exit_of(void *arg, int status)
{
    struct check *c = arg;
    AUTO(arena_free) struct arena *mem = arena_new();
    char line[LINE_MOST], why[128];
    struct json *doc;
    struct err err = { 0 };
    struct check_said said = { 0 };
    c->proc = NULL;
    ssize_t n = c->told ? 0 : pread(c->out, line, sizeof line, 0);
    if (n <= 0 || !json_parse((struct slice){ line, (size_t)n }, mem, &doc, &err) || !bind_read_ours(doc, &check_said_fields, mem, &said, NULL, &err)) {
        snprintf(why, sizeof why, "the check helper ended without a word (%s %d)", WIFSIGNALED(status) ? "signal" : "exit code",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        said = (struct check_said){ .why = why };
    }
    tell(c, &said);
}

static void on_late(void *arg)
{
    struct check *c = arg;
    char why[96];
    c->late = NULL;
    if (c->proc)
        proc_kill(c->proc, SIGKILL);
    snprintf(why, sizeof why, "its driver did not come to an end within %" PRId64 " s", (c->limit_ms + 999) / 1000);
    tell(c, &(struct check_said){ .why = why });
}

static void on_not_begun(void *arg)
{
    struct check *c = arg;
    c->late = NULL;
    tell(c, &(struct check_said){ .why = "the check helper does not start" });
}

static bool spawn(struct check *c, const struct check_config *config, const struct check_ask *ask)
{
    static const char *const words[] = { [CHECK_TEST] = "test", [CHECK_SCRUB] = "scrub" };
    char most[24], keep[24], limit[24];
    struct err err = { 0 };
    snprintf(most, sizeof most, "%" PRId64, ask->most_mib);
    snprintf(keep, sizeof keep, "%" PRId64, ask->keep_mib);
    snprintf(limit, sizeof limit, "%" PRId64, (c->limit_ms + 999) / 1000 + 1); /* its agent comes first, if it lives */
    const char *argv[] = { config->self, "gpu-check", "--do", words[ask->kind], "--uuid", ask->uuid, "--most", most, "--keep", keep, "--limit", limit,
                           config->libcuda ? "--cuda" : NULL, config->libcuda, NULL };
    struct proc_spec spec = { .argv = argv, .dir = "/", .in = -1, .out = c->out, .err = STDERR_FILENO };
    return c->out != -1 && proc_spawn(c->os, &spec, on_exit_of, c, &c->proc, &err);
}

struct check *check_start(struct os *os, const struct check_config *config, const struct check_ask *ask,
                          void (*done)(void *arg, const struct check_said *said), void *arg)
{
    struct check *c = calloc(1, sizeof *c);
    if (!c)
        abort();
    *c = (struct check){ .os = os, .done = done, .arg = arg, .out = memfd_create("check", MFD_CLOEXEC),
                         .limit_ms = config->limit_ms ? config->limit_ms : CHECK_LIMIT_MS };
    bool ok = spawn(c, config, ask);
    c->late = timer_start(os, ok ? c->limit_ms : 0, ok ? on_late : on_not_begun, c);
    return c;
}

bool check_gone(const struct check *c) { return !c->proc; }

void check_free(struct check *c)
{
    if (!c)
        return;
    if (c->proc)
        proc_kill(c->proc, SIGKILL);
    proc_forget(c->proc);
    timer_cancel(c->late);
    if (c->out != -1)
        close(c->out);
    free(c);
}
