/* run.c - `arcus run`: submit, follow, and exit as the job does.
 *
 * The first Ctrl-C cancels the job and waits for its end, the second leaves it alone. While it
 * waits its reason is shown; a server that goes away for a while is waited for, since the job goes
 * on without it. */
#include "cli/cli.h"
#include "model/job_state.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    TAILS_MOST = 16,
    SOON_MS = 50,
    QUEUED_MS = 300,
    RUNNING_MS = 3000,
    LAST_WORDS_MS = 5000,
    SERVER_AWAY_MS = 120 * 1000,
    QUIET_REASON_MS = 3000,
    EXIT_NOT_RUN = 125,
    EXIT_NOT_EXECUTABLE = 126,
    EXIT_NOT_FOUND = 127,
    EXIT_DEADLINE = 124,
    EXIT_KILLED = 137,
    EXIT_INTERRUPTED = 130,
    EXIT_NO_READER = 141,
};

struct run_own { bool detach; const char *file; };
static const struct field run_rows[] = {
    FIELD(struct run_own, detach, BOOL, .flag = "-d --detach",
          .help = "only print the id; do not wait"),
    FIELD(struct run_own, file, TEXT, .max = 4096, .flag = "-f --file",
          .help = "a workload in YAML or JSON to begin with; flags overrule it",
          .example = "train.yaml"),
};
const struct fields run_fields = FIELDS(run_own, run_rows);

struct follow {
    struct cli *c;
    const char *job;
    int64_t count;
    struct tail *tails[2 * TAILS_MOST];
    size_t tail_count;
    bool cancelled, told_simulated, woken;
    int interrupts;
    struct timer *timer;
    struct progress *progress;
    struct json *ref, *now;             /* now: the job as it was seen last */
    int64_t began_ms, away_ms;
    char told_reason[32];
};

/* --- waiting for the next thing to happen */

static void on_interrupt(void *arg)
{
    struct follow *f = arg;
    f->interrupts++;
    f->woken = true;
    os_stop(f->c->os);
}

static void on_timer(void *arg)
{
    struct follow *f = arg;
    f->timer = NULL;
    f->woken = true;
    os_stop(f->c->os);
}

static bool tails_over(const struct follow *f)
{
    for (size_t i = 0; i < f->tail_count; i++)
        if (!tail_over(f->tails[i]))
            return false;
    return true;
}

static void pause_until_news(struct follow *f, int64_t ms)
{
    bool were_over = tails_over(f);
    f->woken = f->interrupts > (f->cancelled ? 1 : 0);
    f->timer = timer_start(f->c->os, ms, on_timer, f);
    while (!f->woken && tails_over(f) == were_over)
        os_run(f->c->os);
    timer_cancel(TAKE(f->timer));
}

/* --- what is shown */

static bool same_file(int a, int b)
{
    struct stat x, y;
    return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Where both go to one place a single stream keeps their order. */
static void start_tails(struct follow *f)
{
    int64_t shown = MIN(f->count, TAILS_MOST);
    bool together = same_file(STDOUT_FILENO, STDERR_FILENO);
    if (f->count > shown)
        say(f->c,
            "showing the output of the first %d of %lld tasks; arcus logs %s --task N shows "
            "another's",
            TAILS_MOST, (long long)f->count, f->job);
    fflush(stdout);
    for (int64_t task = 0; task < shown; task++) {
        const char *prefix
            = f->count > 1 ? arena_printf(f->c->mem, "[%lld] ", (long long)task) : NULL;
        struct tail_ask ask = { .job = f->job,
                                .task = task,
                                .lines = -1,
                                .follow = true,
                                .source = together ? NULL : "stdout" };
        f->tails[f->tail_count++] = tail_start(f->c, &ask, STDOUT_FILENO, prefix);
        ask.source = "stderr";
        if (!together)
            f->tails[f->tail_count++] = tail_start(f->c, &ask, STDERR_FILENO, prefix);
    }
}

static void show_waiting(struct follow *f, const char *state)
{
    const char *reason = json_text(f->now, "reason"), *text = json_text(f->now, "reason_text");
    if (f->cancelled) {
        progress_text(f->progress, "%s is ending; Ctrl-C again leaves it alone", f->job);
        return;
    }
    if (!text_is(state, "queued") && !text_is(state, "placed")) {
        progress_end(TAKE(f->progress));
        return;
    }
    bool told = text_given(reason) && text_given(text);
    progress_text(f->progress, "waiting: %s",
                  told                       ? text
                  : text_is(state, "placed") ? "its node gets it ready"
                                             : "it is looked at in a moment");
    if (!f->c->tty_err && told && !text_is(reason, f->told_reason)
        && os_boot_ms(f->c->os) - f->began_ms > QUIET_REASON_MS) {
        say(f->c, "waiting: %s", text);
        snprintf(f->told_reason, sizeof f->told_reason, "%s", reason);
    }
}

static void show_simulated(struct follow *f)
{
    const struct json *simulated = json_get(f->now, "simulated");
    const char *gpus = json_text(f->now, "gpus");
    if (f->told_simulated || !simulated || !simulated->flag || !text_given(gpus))
        return;
    f->told_simulated = true;
    progress_clear(f->progress);
    say(f->c, "note: the GPUs of %s are simulated", f->job);
}

/* --- how it ended */

int start_exit_code(const char *why)
{
    /* the words of the node, which has them from its container runtime */
    static const struct {
        const char *words;
        int code;
    } known[] = {
        { "command not found in the image", EXIT_NOT_FOUND },
        { "the command cannot be executed", EXIT_NOT_EXECUTABLE },
    };
    for (size_t i = 0; why && i < COUNT(known); i++)
        if (strstr(why, known[i].words))
            return known[i].code;
    return EXIT_NOT_RUN;
}

int job_exit_code(const struct json *job, const struct json *task)
{
    static const struct { enum outcome outcome; int code;
    } codes[] = {
        { OUTCOME_SUCCEEDED, 0 },
        { OUTCOME_OUT_OF_MEMORY, EXIT_KILLED },
        { OUTCOME_DEADLINE, EXIT_DEADLINE },
        { OUTCOME_CANCELLED, EXIT_INTERRUPTED },
    };
    const char *outcome = json_text(job, "outcome"), *state = json_text(job, "state");
    int64_t code = json_int(job, "exit_code", 0), signal = json_int(task, "signal", 0);
    if (text_is(state, job_state_name(JOB_DONE)))
        return 0;
    for (size_t i = 0; i < COUNT(codes); i++)
        if (text_is(outcome, outcome_name(codes[i].outcome)))
            return codes[i].code;
    if (text_is(state, job_state_name(JOB_CANCELLED)))
        return EXIT_INTERRUPTED;
    if (text_is(outcome, outcome_name(OUTCOME_SIGNALED)))
        return signal > 0 && signal < 65  ? 128 + (int)signal
               : code > 128 && code < 256 ? (int)code
                                          : EXIT_NOT_RUN;
    if (text_is(outcome, outcome_name(OUTCOME_EXITED)) && code > 0 && code < 256)
        return (int)code;
    if (text_is(outcome, outcome_name(OUTCOME_START_FAILED)))
        return start_exit_code(text_given(json_text(task, "detail")) ? json_text(task, "detail")
                                                                     : json_text(job, "detail"));
    return EXIT_NOT_RUN;
}

static const struct json *failed_task(struct follow *f)
{
    struct json *list;
    struct err ignored;
    const struct json *items = cli_get_all(f->c, VERB_JOB_TASKS, f->ref, 0, &list, &ignored)
                                   ? json_get(list, "items")
                                   : NULL;
    const struct json *found = NULL;
    for (const struct json *t = items ? items->first : NULL; t; t = t->next)
        if (text_is(json_text(t, "state"), job_state_name(JOB_FAILED))
            && (!found || json_int(t, "signal", 0)))
            found = t;
    return found;
}

static int tell_end(struct follow *f)
{
    const char *state = json_text(f->now, "state"), *outcome = json_text(f->now, "outcome"),
               *detail = json_text(f->now, "detail");
    int64_t failed = json_int(f->now, "failed", 0);
    if (text_is(state, job_state_name(JOB_DONE)))
        return 0;
    int code
        = job_exit_code(f->now, text_is(state, job_state_name(JOB_FAILED)) ? failed_task(f) : NULL);
    /* its own words have been seen */
    bool plain = text_is(outcome, outcome_name(OUTCOME_EXITED)) && f->count == 1;
    if (!plain && f->count > 1 && failed)
        say(f->c, "%s %s: %lld of %lld tasks failed; arcus tasks %s lists them", f->job, state,
            (long long)failed, (long long)f->count, f->job);
    else if (!plain)
        say(f->c, "%s %s%s%s%s%s", f->job, state,
            text_given(outcome) && !text_is(outcome, state) ? ": " : "",
            text_given(outcome) && !text_is(outcome, state) ? outcome : "",
            text_given(detail) ? ": " : "", text_given(detail) ? detail : "");
    return code;
}

/* --- the whole */

static bool has_ended(const struct follow *f)
{
    const char *state = json_text(f->now, "state");
    for (int s = JOB_DONE; s < JOB_STATE_COUNT; s++)
        if (text_is(state, job_state_name((enum job_state)s)))
            return true;
    return false;
}

/* Sees the job once. False: it cannot be seen any more, and will not be. */
static bool look(struct follow *f)
{
    struct err err;
    if (cli_call(f->c, VERB_JOB_GET, f->ref, &f->now, &err)) {
        f->away_ms = 0;
        return true;
    }
    int64_t now = os_boot_ms(f->c->os);
    f->away_ms = f->away_ms ? f->away_ms : now;
    if ((err.rc == RC_UNAVAILABLE || err.rc == RC_TIMEOUT || err.rc == RC_TOO_MANY)
        && now - f->away_ms < SERVER_AWAY_MS && !f->interrupts) {
        progress_text(f->progress, "waiting for the server: %s", err.text);
        return true;
    }
    f->c->err = err;
    return false;
}

static bool cancel(struct follow *f)
{
    struct err err;
    f->cancelled = true;
    progress_clear(f->progress);
    say(f->c, "cancelling %s; Ctrl-C again leaves it alone", f->job);
    if (!f->progress)
        f->progress = progress_start(f->c, "ending", 0);
    if (cli_call(f->c, VERB_JOB_CANCEL, f->ref, NULL, &err) || err.rc == RC_CONFLICT)
        return true;
    f->c->err = err;
    return false;
}

static int leave(struct follow *f, int code)
{
    progress_end(TAKE(f->progress));
    say(f->c, "%s goes on; arcus logs -f %s follows it, arcus cancel %s ends it", f->job, f->job,
        f->job);
    return code;
}

static bool nobody_reads(const struct follow *f)
{
    for (size_t i = 0; i < f->tail_count; i++)
        if (tail_unread(f->tails[i]))
            return true;
    return false;
}

static int64_t next_look_ms(const struct follow *f)
{
    const char *state = json_text(f->now, "state");
    if (f->away_ms || text_is(state, job_state_name(JOB_QUEUED))
        || text_is(state, job_state_name(JOB_PLACED)))
        return QUEUED_MS;
    return tails_over(f) ? SOON_MS : RUNNING_MS;
}

static int follow_on(struct follow *f)
{
    start_tails(f);
    for (int64_t ended_ms = 0;;) {
        if (!look(f))
            return progress_end(TAKE(f->progress)), print_error(f->c, &f->c->err),
                   leave(f, rc_exit(f->c->err.rc));
        if (f->now && !f->away_ms) {
            show_simulated(f);
            show_waiting(f, json_text(f->now, "state"));
        }
        if (nobody_reads(f))
            return leave(f, EXIT_NO_READER);
        if (f->now && has_ended(f)) {
            int64_t now = os_boot_ms(f->c->os);
            ended_ms = ended_ms ? ended_ms : now;
            if (tails_over(f) || now - ended_ms > LAST_WORDS_MS)
                return progress_end(TAKE(f->progress)), tell_end(f);
        }
        pause_until_news(f, next_look_ms(f));
        if (f->interrupts > 1)
            return leave(f, EXIT_INTERRUPTED);
        if (f->interrupts && !f->cancelled && !cancel(f))
            return progress_end(TAKE(f->progress)), print_error(f->c, &f->c->err),
                   leave(f, EXIT_INTERRUPTED);
    }
}

int run_follow(struct cli *c, const char *job, int64_t count)
{
    struct follow f = { .c = c,
                        .job = job,
                        .count = count,
                        .began_ms = os_boot_ms(c->os),
                        .ref = json_new(c->mem, JSON_OBJECT) };
    doc_set(c, f.ref, "job", job);
    f.progress = progress_start(c, "waiting", 0);
    os_on_signal(c->os, SIGINT, on_interrupt, &f);
    int code = follow_on(&f);
    progress_end(f.progress);
    for (size_t i = 0; i < f.tail_count; i++)
        tail_free(f.tails[i]);
    return code;
}

int word_run(struct cli *c, const struct word *w, int argc, char **argv)
{
    struct flags f;
    struct json *spec, *job;
    int over = word_open(c, w, argc, argv, &f);
    if (over >= 0)
        return over;
    const struct run_own *own = f.own;
    if (!own->file && !f.rest.count && !json_get(f.doc, "run") && !json_get(f.doc, "image") && !json_get(f.doc, "type") && !json_get(f.doc, "jupyter")) {
        err_set(&c->err, RC_BAD_INPUT, "what to run? arcus run [FLAGS] -- COMMAND [ARG...]");
        return print_error(c, &c->err);
    }
    if (!spec_build(c, &f, own->file, &spec, &c->err)
        || !cli_call(c, VERB_JOB_SUBMIT, spec, &job, &c->err))
        return print_error(c, &c->err);
    const char *id = json_text(job, "id"), *name = json_text(job, "name");
    if (own->detach)
        return print_submitted(c, job), 0;
    say(c, "%s%s%s%s is submitted", id, text_given(name) ? " (" : "", text_given(name) ? name : "",
        text_given(name) ? ")" : "");
    return run_follow(c, id, json_int(job, "count", 1));
}
