/* describe.c - one thing with all that belongs to it: a job with its tasks, attempts and what was
 * asked; a node; a project. */
#include "cli/cli.h"
#include <stdio.h>

enum { TASKS_SHOWN = 20 };
struct describe_own { const char *what, *name; };

static const struct word *word_named(const char *name)
{
    for (size_t i = 0; i < word_count; i++)
        if (text_is(words[i].name, name))
            return &words[i];
    return NULL;
}

static const struct json *items_of(const struct json *list) { return json_get(list, "items"); }

static size_t count_of(const struct json *items)
{
    size_t n = 0;
    for (const struct json *m = items ? items->first : NULL; m; m = m->next)
        n++;
    return n;
}

static void section(struct cli *c, const char *title, const char *word, const struct json *items)
{
    const struct word *w = word_named(word);
    if (!w || !items || !items->first)
        return;
    printf("\n%s:\n", title);
    fflush(stdout);
    print_table(c, w->columns, w->column_count, items);
}

static void print_job(struct cli *c, struct json *job, const struct json *tasks,
                      const struct json *attempts)
{
    struct json *spec = json_get(job, "spec");
    struct json *asked = json_new(c->mem, JSON_OBJECT);
    size_t n = count_of(tasks);
    if (spec) {
        json_add(asked, "spec", for_people(c, spec, &job_spec_fields));
    }
    doc_drop(job, "spec");
    print_described(c, job);
    if (n > 1 && n <= TASKS_SHOWN)
        section(c, "tasks", "tasks", tasks);
    else if (n > TASKS_SHOWN)
        printf("\ntasks: %zu have been placed; arcus tasks %s lists them\n", n,
               json_text(job, "id"));
    if (count_of(attempts) <= TASKS_SHOWN)
        section(c, "attempts", "attempts", attempts);
    else
        printf("\nattempts: %zu; arcus attempts %s lists them\n", count_of(attempts),
               json_text(job, "id"));
    fflush(stdout);
    if (spec) {
        out_write("\n", 1);
        print_described(c, asked);
    }
}

static int describe_job(struct cli *c, const char *name)
{
    struct json *ask = json_new(c->mem, JSON_OBJECT), *job, *tasks, *attempts;
    doc_set(c, ask, "job", name);
    if (!cli_call(c, VERB_JOB_GET, ask, &job, &c->err))
        return print_error(c, &c->err);
    doc_set(c, ask, "job", json_text(job, "id"));
    if (!cli_get_all(c, VERB_JOB_TASKS, ask, 0, &tasks, &c->err))
        return print_error(c, &c->err);
    doc_drop(ask, "page");
    if (!cli_get_all(c, VERB_JOB_ATTEMPTS, ask, 0, &attempts, &c->err))
        return print_error(c, &c->err);
    if (c->output == OUT_JSON || c->output == OUT_YAML) {
        json_add(job, "tasks", json_get(tasks, "items"));
        json_add(job, "attempts", json_get(attempts, "items"));
        print_data(c, job);
    } else {
        print_job(c, job, items_of(tasks), items_of(attempts));
    }
    return 0;
}

static const struct {
    const char *kind, *plural;
    enum verb_id verb;
    const char *member;
} others[] = {
    { "node", "nodes", VERB_NODE_GET, "node" },
    { "project", "projects", VERB_PROJECT_GET, "project" },
};

int word_describe(struct cli *c, const struct word *w, int argc, char **argv)
{
    struct flags f;
    struct json *ask = json_new(c->mem, JSON_OBJECT), *reply;
    if (!flags_parse(c, w, argc, argv, &f, &c->err))
        return print_error(c, &c->err);
    if (c->help)
        return word_help(w), 0;
    const struct describe_own *own = f.own;
    if (!own->name)
        return describe_job(c, own->what);
    if (text_is(own->what, "job") || text_is(own->what, "jobs"))
        return describe_job(c, own->name);
    for (size_t i = 0; i < COUNT(others); i++)
        if (text_is(own->what, others[i].kind) || text_is(own->what, others[i].plural)) {
            doc_set(c, ask, others[i].member, own->name);
            if (!cli_call(c, others[i].verb, ask, &reply, &c->err))
                return print_error(c, &c->err);
            print_reply(c, &(struct word){ .verb = (int)others[i].verb }, reply);
            return 0;
        }
    err_set(&c->err, RC_BAD_INPUT, "describe knows job, node and project, not '%.40s'", own->what);
    return print_error(c, &c->err);
}

static const struct field describe_rows[] = {
    FIELD_AS(struct describe_own, what, "job", TEXT, .required = true, .max = 128, .flag = "",
             .help = "a job, or one of job, node and project"),
    FIELD(struct describe_own, name, TEXT, .max = 128, .flag = "", .help = "which one"),
};
const struct fields describe_fields = FIELDS(describe_own, describe_rows);
