/* describe.c - things with all that belongs to them: a job with its tasks, attempts and what was
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

/* Where it stands, as long as it waits. */
static void print_queue(const struct json *q)
{
    const char *class = json_text(q, "class");
    int64_t ahead = json_int(q, "ahead", 0), above = json_int(q, "project_ahead", 0), had = json_int(q, "share_ppm", 0), fair = json_int(q, "fair_ppm", 0);
    const char *first = json_text(q, "first_at");
    printf("\nqueue:\n  class %s, priority %lld: %lld of your project go before it", class ? class : "", (long long)json_int(q, "priority", 0), (long long)(ahead + above));
    if (above)
        printf(", %lld of them of a higher class", (long long)above);
    printf("\n  share: your project has had %lld.%02lld %% of the cloud lately; its fair part among %lld with work is %lld.%02lld %%\n", (long long)(had / 10000),
           (long long)(had / 100 % 100), (long long)json_int(q, "projects", 0), (long long)(fair / 10000), (long long)(fair / 100 % 100));
    if (first)
        printf("  if it still waits at %s, it goes before everybody\n", first);
}

static void print_job(struct cli *c, struct json *job)
{
    struct json *spec = json_get(job, "spec"), *tasks = json_get(job, "tasks"), *attempts = json_get(job, "attempts"),
                *queue = json_get(job, "queue"), *why = json_get(job, "why");
    struct json *asked = json_new(c->mem, JSON_OBJECT);
    size_t n = count_of(tasks);
    if (spec) {
        json_add(asked, "spec", for_people(c, spec, &job_spec_fields));
    }
    doc_drop(job, "spec");
    doc_drop(job, "tasks");
    doc_drop(job, "attempts");
    doc_drop(job, "queue");
    doc_drop(job, "why");
    print_described(c, job);
    if (queue && json_text(queue, "first_at")) /* else it stands nowhere yet */
        print_queue(queue);
    if (why) {
        printf("\nwhy it waits:\n");
        print_why(c, why);
    }
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

/* With all that belongs to it, as one. */
static bool describe_job(struct cli *c, const char *name, struct json **thing)
{
    struct json *ask = json_new(c->mem, JSON_OBJECT), *job, *tasks, *attempts;
    doc_set(c, ask, "job", name);
    if (!cli_call(c, VERB_JOB_GET, ask, &job, &c->err))
        return false;
    doc_set(c, ask, "job", json_text(job, "id"));
    if (!cli_get_all(c, VERB_JOB_TASKS, ask, 0, &tasks, &c->err))
        return false;
    doc_drop(ask, "page");
    if (!cli_get_all(c, VERB_JOB_ATTEMPTS, ask, 0, &attempts, &c->err))
        return false;
    struct json *queue = NULL;
    doc_drop(ask, "page");
    if (json_int(job, "queued", 0) > 0 && text_given(json_text(job, "reason"))
        && !cli_call(c, VERB_JOB_QUEUE, ask, &queue, &c->err))
        return false;
    struct json *why = NULL;
    struct err ignored;             /* the rest is worth showing, also where nobody plans at the moment */
    if (queue)
        json_add(job, "queue", queue);
    if (queue && cli_call(c, VERB_JOB_WHY, ask, &why, &ignored))
        json_add(job, "why", why);
    json_add(job, "tasks", json_get(tasks, "items"));
    json_add(job, "attempts", json_get(attempts, "items"));
    *thing = job;
    return true;
}

static const struct kind {
    const char *kind, *plural;
    enum verb_id verb;
    const char *member;
} kinds[] = {
    { "job", "jobs", VERB_JOB_GET, "job" },
    { "node", "nodes", VERB_NODE_GET, "node" },
    { "project", "projects", VERB_PROJECT_GET, "project" },
    { "reservation", "reservations", VERB_RESERVE_GET, "reservation" },
};

static bool describe(struct cli *c, const struct kind *kind, const char *name, struct json **thing)
{
    struct json *ask = json_new(c->mem, JSON_OBJECT), *reply;
    if (kind->verb == VERB_JOB_GET)
        return describe_job(c, name, thing);
    if (kind->verb == VERB_NODE_GET)
        return describe_node(c, name, thing);
    doc_set(c, ask, kind->member, name);
    return cli_call(c, kind->verb, ask, &reply, &c->err) && (*thing = reply, true);
}

static int describe_all(struct cli *c, const struct kind *kind, const struct texts *names)
{
    struct json *items = json_new(c->mem, JSON_LIST), *thing = NULL;
    bool data = c->output == OUT_JSON || c->output == OUT_YAML, printed = false;
    int code = 0;
    for (size_t i = 0; i < names->count; i++) {
        if (describe(c, kind, names->at[i], &thing)) {
            if (data) {
                json_add(items, NULL, thing);
                continue;
            }
            if (printed)
                out_write("\n", 1);
            printed = true;
            if (kind->verb == VERB_JOB_GET)
                print_job(c, thing);
            else if (kind->verb == VERB_NODE_GET)
                print_node(c, thing);
            else
                print_reply(c, &(struct word){ .verb = (int)kind->verb }, thing);
            continue;
        }
        int why = print_error(c, &c->err);
        code = code ? code : why;
        if (several_end(c, names->count - i - 1))
            break;
    }
    if (data && names->count > 1)
        several_print(c, items);
    else if (data && thing)
        print_data(c, thing);
    return code;
}

/* What was typed are jobs, unless the first is a kind of thing and others follow. */
int word_describe(struct cli *c, const struct word *w, int argc, char **argv)
{
    struct flags f;
    int over = word_open(c, w, argc, argv, &f);
    if (over >= 0)
        return over;
    const struct describe_own *own = f.own;
    const struct kind *kind = NULL;
    for (size_t i = 0; own->name && i < COUNT(kinds); i++)
        if (text_is(own->what, kinds[i].kind) || text_is(own->what, kinds[i].plural))
            kind = &kinds[i];
    if (kind)
        return describe_all(c, kind, &f.rest);
    struct texts names = { ARENA_ARRAY(c->mem, const char *, f.rest.count + 1), 1 };
    names.at[0] = own->what;
    for (size_t i = 0; i < f.rest.count; i++)
        names.at[names.count++] = f.rest.at[i];
    return describe_all(c, &kinds[0], &names);
}

static const struct field describe_rows[] = {
    FIELD_AS(struct describe_own, what, "job", TEXT, .required = true, .max = 128, .flag = "",
             .help = "a job, or one of job, node, project and reservation"),
    FIELD(struct describe_own, name, TEXT, .max = 128, .flag = "", .help = "which ones"),
};
const struct fields describe_fields = FIELDS(describe_own, describe_rows);
