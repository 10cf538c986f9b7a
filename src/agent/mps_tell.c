/* mps_tell.c - a word with the daemon of one GPU, and with that GPU.
 *
 * It is asked through the driver's own program, with an empty environment and a fixed path. What it answers is looked at: a division that
 * it does not repeat is none. None of it waits longer than ASK_MS. */
#include "agent/mps_internal.h"
#include "base/log.h"
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ASK_MS = 10000, SERVES_MS = 5000, POLL_MS = 50, ANSWER_BYTES = 4096 };

static void on_asked(void *arg, int status);
static void on_deaf(void *arg);

struct talk { const char *const *argv, *const *env; const char *words; void (*done)(void *arg, int status); void *arg; };

/* What it prints is in *answer when it ends. */
static bool talk(struct os *os, const struct talk *t, struct proc **proc, int *answer, struct err *err)
{
    int in = memfd_create("mps", MFD_CLOEXEC), out = memfd_create("mps", MFD_CLOEXEC);
    ssize_t n = (ssize_t)strlen(t->words);
    bool ok = (in != -1 && out != -1 && write(in, t->words, (size_t)n) == n && lseek(in, 0, SEEK_SET) == 0) || err_errno(err, "cannot make a file in memory");
    struct proc_spec spec = { .argv = t->argv, .env = t->env, .dir = "/", .in = in, .out = out, .err = out };
    ok = ok && proc_spawn(os, &spec, t->done, t->arg, proc, err);
    if (in != -1)
        close(in);
    if (ok)
        *answer = out;
    else if (out != -1)
        close(out);
    return ok;
}

/* Of what a daemon's life needs one at a time. */
static bool run(struct daemon *d, const char *const *argv, const char *const *env, const char *words, struct err *err)
{
    if (d->answer != -1)
        close(d->answer);
    d->answer = -1;
    timer_cancel(TAKE(d->timer));
    bool ok = talk(d->m->os, &(struct talk){ argv, env, words, on_asked, d }, &d->asker, &d->answer, err);
    if (ok)
        d->timer = timer_start(d->m->os, ASK_MS, on_deaf, d);
    return ok;
}

static void pipe_of(const struct daemon *d, char out[static MPS_PATH + 64])
{
    snprintf(out, MPS_PATH + 64, "CUDA_MPS_PIPE_DIRECTORY=%s/pipe", d->folder);
}

bool daemon_ask(struct daemon *d, const char *words, struct err *err)
{
    char pipe[MPS_PATH + 64];
    pipe_of(d, pipe);
    return run(d, (const char *const[]){ d->m->program, NULL }, (const char *const[]){ pipe, NULL }, words, err);
}

bool daemon_talk(struct daemon *d, const char *words, void (*done)(void *arg, int status), void *arg, struct proc **proc, int *answer, struct err *err)
{
    char pipe[MPS_PATH + 64];
    pipe_of(d, pipe);
    const char *const argv[] = { d->m->program, NULL }, *const env[] = { pipe, NULL };
    return talk(d->m->os, &(struct talk){ argv, env, words, done, arg }, proc, answer, err);
}

/* What it would say is of no use any more. */
void daemon_hush(struct daemon *d)
{
    timer_cancel(TAKE(d->timer));
    if (d->asker)
        proc_kill(d->asker, SIGKILL);
    proc_forget(TAKE(d->asker));
}

static void on_deaf(void *arg)
{
    struct daemon *d = arg;
    d->timer = NULL;
    daemon_hush(d);
    daemon_failed(d, d->state == DAEMON_DIVIDING ? "the MPS daemon of its GPU does not answer" : "the driver does not set the mode of its GPU");
}

/* --- how it is divided */

static void percentage_text(const struct daemon *d, char out[static 32])
{
    snprintf(out, 32, "%" PRId64 ".%" PRId64, d->milli / 10, d->milli % 10);
}

/* "25.0" alone on a line, twice: it was taken, and is what is told when asked. */
static bool repeats(const char *answer, const char *percentage)
{
    size_t n = strlen(percentage), seen = 0;
    for (const char *line = answer; *line;) {
        size_t len = strcspn(line, "\n");
        seen += len == n && strncmp(line, percentage, n) == 0;
        line += len + (line[len] == '\n');
    }
    return seen >= 2;
}

/* Defaults are for servers to come; one that serves already is told by itself, for its clients to come. */
static void words_for_servers(const struct daemon *d, const char *answer, struct str *words)
{
    char percentage[32];
    percentage_text(d, percentage);
    for (const char *line = answer; *line;) {
        size_t len = strcspn(line, "\n");
        if (len && strspn(line, "0123456789") == len && len < 12)
            str_printf(words, "set_active_thread_percentage %.*s %s\nset_device_pinned_mem_limit %.*s 0 %" PRId64 "M\n", (int)len, line, percentage, (int)len, line, d->mem_mib);
        line += len + (line[len] == '\n');
    }
}

int mps_first_number(const char *text)
{
    long v = strtol(text, NULL, 10);
    return v > 1 && v < 1 << 30 ? (int)v : 0;
}

/* Who wanted it may have gone meanwhile, and others with another wish come. */
static bool fits(const struct daemon *d)
{
    return d->milli == d->holders[0].share.milli && d->mem_mib >= daemon_memory(d);
}

static void ready(struct daemon *d)
{
    d->state = DAEMON_READY;
    daemon_tell(d, NULL);
    if (!d->count && d->state == DAEMON_READY)
        daemon_leave(d);
}

/* --- its server: a client that dies while it waits for one to start makes the daemon hang for all. So it is there before the first is let in; where it
 * does not come, the first client starts it. */

static void serve(struct daemon *d);

static void on_poll(void *arg)
{
    struct daemon *d = arg;
    d->timer = NULL;
    serve(d);
}

static void serve(struct daemon *d)
{
    char words[64];
    struct err err = { 0 };
    snprintf(words, sizeof words, "get_server_status %d\n", d->server);
    if (!daemon_ask(d, d->serving == SERVE_STARTS ? "start_server -uid 0\n" : d->server ? words : "get_server_list\n", &err))
        daemon_failed(d, err.text);
}

/* What it answered to serve(). */
static void served(struct daemon *d, const char *answer)
{
    bool late = os_boot_ms(d->m->os) - d->serving_ms > SERVES_MS, active = d->server && strstr(answer, "ACTIVE");
    if (d->serving == SERVE_STARTS)
        d->serving = SERVE_COMES;
    else if (!d->server)
        d->server = mps_first_number(answer);
    if (!active && !late) {
        d->timer = timer_start(d->m->os, d->server ? 0 : POLL_MS, on_poll, d);
        return;
    }
    d->serving = SERVE_NOTHING;
    if (late && !active)
        log_line(LOG_WARN, "mps", "%s: the server of its daemon has not begun, and is left to the first client", d->uuid);
    if (d->count && !fits(d))
        daemon_divide(d);
    else
        ready(d);
}

static void divided(struct daemon *d, bool ended_well, const char *answer)
{
    AUTO(str_done) struct str words = { 0 };
    struct err err = { 0 };
    char percentage[32], why[240];
    percentage_text(d, percentage);
    if (!ended_well && !d->servers_told && !daemon_holds(d) && daemon_again(d))
        return; /* its socket had a name, and nobody listened there yet */
    bool taken = ended_well && (d->servers_told ? !strstr(answer, "privileges") : repeats(answer, percentage));
    if (taken && !d->servers_told)
        words_for_servers(d, answer, &words);
    if (taken && words.len) {
        d->servers_told = true;
        if (!daemon_ask(d, words.at, &err))
            daemon_failed(d, err.text);
        return;
    }
    if (!taken) {
        snprintf(why, sizeof why, "the MPS daemon of its GPU does not take how it is to be divided: %.*s", (int)MIN(strcspn(answer, "\n"), (size_t)120), answer);
        daemon_failed(d, why);
        return;
    }
    if (d->count && !fits(d)) {
        daemon_divide(d);
        return;
    }
    if (d->servers_told || d->server) {
        ready(d);
        return;
    }
    d->serving = SERVE_STARTS;      /* it has none */
    d->serving_ms = os_boot_ms(d->m->os);
    serve(d);
}

void daemon_divide(struct daemon *d)
{
    char words[512], percentage[32];
    struct err err = { 0 };
    d->state = DAEMON_DIVIDING;
    if (d->count) {
        d->milli = d->holders[0].share.milli;
        d->mem_mib = MAX(d->mem_mib, daemon_memory(d));
    }
    d->servers_told = false;
    d->serving = SERVE_NOTHING;
    percentage_text(d, percentage);
    snprintf(words, sizeof words,
             "set_default_active_thread_percentage %s\nset_default_device_pinned_mem_limit 0 %" PRId64 "M\nget_default_active_thread_percentage\n"
             "get_default_device_pinned_mem_limit 0\nget_server_list\n",
             percentage, d->mem_mib);
    if (!daemon_ask(d, words, &err))
        daemon_failed(d, err.text);
}

/* --- whose it is: nodes whose operator gave the devices to the agent */

/* `arcus device-mode` keeps the mode of before in FOLDER/mode until it was given back. */
bool daemon_mode(struct daemon *d, const char *mode, struct err *err)
{
    char file[MPS_PATH + 16];
    snprintf(file, sizeof file, "%s/mode", d->folder);
    const char *const argv[] = { d->m->self, "device-mode", file, d->uuid, mode, d->m->nvml, NULL };     /* to restore it the file knows whose it was */
    return run(d, argv, NULL, "", err);
}

bool daemon_has_mode(const struct daemon *d)
{
    char file[MPS_PATH + 16];
    snprintf(file, sizeof file, "%s/mode", d->folder);
    return access(file, F_OK) == 0;
}

static void on_asked(void *arg, int status)
{
    struct daemon *d = arg;
    char answer[ANSWER_BYTES] = "", why[240];
    bool well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    d->asker = NULL;
    ssize_t n = pread(d->answer, answer, sizeof answer - 1, 0);
    answer[MAX(n, 0)] = 0;
    if (d->state != DAEMON_DIVIDING && d->state != DAEMON_OWNING && d->state != DAEMON_GIVING)
        return;
    timer_cancel(TAKE(d->timer));
    snprintf(why, sizeof why, "the mode of its GPU cannot be %s: %.*s", d->state == DAEMON_GIVING ? "given back" : "set", (int)MIN(strcspn(answer, "\n"), (size_t)120), answer);
    if (d->state == DAEMON_DIVIDING && d->serving)
        served(d, answer);
    else if (d->state == DAEMON_DIVIDING)
        divided(d, well, answer);
    else if (!well)
        daemon_failed(d, why);
    else if (d->state == DAEMON_OWNING)
        daemon_start(d);
    else
        daemon_settled(d, NULL);
}
