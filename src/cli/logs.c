/* logs.c - `arcus logs`: what a task printed, to standard output in the order it was printed, or
 * one of its two streams. */
#include "cli/cli.h"
#include <stdio.h>
#include <unistd.h>

struct logs_own { bool only_out, only_err; };
static const struct field logs_rows[] = {
    FIELD_AS(struct logs_own, only_out, "stdout", BOOL,
             .help = "only what it wrote to standard output"),
    FIELD_AS(struct logs_own, only_err, "stderr", BOOL,
             .help = "only what it wrote to standard error"),
};
const struct fields logs_fields = FIELDS(logs_own, logs_rows);

/* Of many tasks the first is shown; whoever did not choose it is told so. */
static void tell_which(struct cli *c, const char *job)
{
    struct json *ask = json_new(c->mem, JSON_OBJECT), *reply;
    struct err ignored;
    doc_set(c, ask, "job", job);
    if (!c->quiet && cli_call(c, VERB_JOB_GET, ask, &reply, &ignored)
        && json_int(reply, "count", 1) > 1)
        say(c, "note: task 0 of %lld; --task N shows another",
            (long long)json_int(reply, "count", 1));
}

int word_logs(struct cli *c, const struct word *w, int argc, char **argv)
{
    struct flags f;
    int over = word_open(c, w, argc, argv, &f);
    if (over >= 0)
        return over;
    const struct logs_own *own = f.own;
    const struct json *follow = json_get(f.doc, "follow");
    struct tail_ask ask = {
        .job = json_text(f.doc, "job"),
        .task = json_int(f.doc, "task", -1),
        .lines = json_int(f.doc, "tail", -1),
        .follow = follow && follow->flag,
        .attempt = json_int(f.doc, "attempt", 0),
        .source = own->only_out && own->only_err ? NULL
                  : own->only_out                ? "stdout"
                  : own->only_err                ? "stderr"
                                                 : json_text(f.doc, "source"),
    };
    if (!cli_connect_live(c, &c->err))
        return print_error(c, &c->err);
    if (ask.task < 0)
        tell_which(c, ask.job);
    AUTO(tail_free) struct tail *t = tail_start(c, &ask, STDOUT_FILENO, NULL);
    while (!tail_over(t))
        os_run(c->os);
    if (tail_failed(t, &c->err))
        return print_error(c, &c->err);
    return tail_unread(t) ? 1 : 0;
}
