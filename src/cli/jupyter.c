/* jupyter.c - `arcus jupyter`: the notebook of an instance that was started with --jupyter, on a port of this machine.
 *
 * Its token is made inside the instance and kept there; it is asked for through exec, so whoever may not run commands there does not get it. */
#include "cli/forward.h"
#include <stdio.h>

enum { NOTEBOOK_PORT = 8888 };

struct jupyter_own { const char *job; int64_t port; };
static const struct field jupyter_rows[] = {
    FIELD(struct jupyter_own, job, TEXT, .required = true, .max = 64, .flag = "", .help = "id or name of the instance", .example = "lab"),
    FIELD(struct jupyter_own, port, INT, .min = 0, .max = 65535, .def = "0", .flag = "--port", .help = "of this machine; any that is free when left out", .example = "8888"),
};
const struct fields jupyter_fields = FIELDS(jupyter_own, jupyter_rows);

static bool token_ask(struct cli *c, const char *job, struct str *token, struct err *err)
{
    static const char *const argv[] = { "sh", "-c", "cat \"${HOME:-/root}/.arcus-jupyter\" 2>/dev/null" };
    struct json *doc = json_new(c->mem, JSON_OBJECT), *list = json_new(c->mem, JSON_LIST);
    doc_set(c, doc, "job", job);
    for (size_t i = 0; i < COUNT(argv); i++) {
        struct json *e = json_new(c->mem, JSON_TEXT);
        e->text = argv[i];
        e->len = strlen(argv[i]);
        json_add(list, NULL, e);
    }
    json_add(doc, "argv", list);
    int code = exec_session(c, VERB_JOB_EXEC, doc, false, false, token);
    bool good = code == 0 && token->len == strspn(token->at ? token->at : "", "0123456789abcdef") && token->len > 0;
    return good || err_set(err, RC_CONFLICT, "%s has no notebook (yet); it is started with `arcus run --jupyter`, and says so in its logs", job);
}

static void print_url(void *arg, int64_t local, int64_t remote)
{
    const struct str *token = arg;
    char line[256];
    (void)remote;
    int n = snprintf(line, sizeof line, "http://127.0.0.1:%lld/lab?token=%.128s\n", (long long)local, token->at);
    out_write(line, (size_t)n);
}

int word_jupyter(struct cli *c, const struct word *w, int argc, char **argv)
{
    struct flags f;
    int over = word_open(c, w, argc, argv, &f);
    if (over >= 0)
        return over;
    const struct jupyter_own *own = f.own;
    AUTO(str_done) struct str token = { 0 };
    if (!token_ask(c, own->job, &token, &c->err))
        return print_error(c, &c->err);
    struct json *doc = json_new(c->mem, JSON_OBJECT);
    doc_set(c, doc, "job", own->job);
    const char *port = arena_printf(c->mem, "%lld:%d", (long long)own->port, NOTEBOOK_PORT);
    return forward_run(c, doc, &(struct texts){ &port, 1 }, print_url, &token);
}
