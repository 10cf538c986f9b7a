/* submit.c - a workload from a file and from flags, and its submission. Flags overrule the file,
 * field by field. A file may hold several (documents of YAML, a list in JSON): they are queued
 * together or not at all.
 *
 * The file is not bound here: the server has the last word about fields, so that an older program
 * can submit to a newer cloud. */
#include "cli/blob.h"
#include "wire/yaml.h"
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

enum { FILE_MOST = 8 << 20 };

struct submit_own { const char *file; };
static const struct field submit_rows[] = {
    FIELD(struct submit_own, file, TEXT, .max = 4096, .flag = "-f --file",
          .help = "the workload, or several, in YAML or JSON; - is standard input", .example = "train.yaml"),
};
const struct fields submit_fields = FIELDS(submit_own, submit_rows);

const char *submit_file(const struct flags *f)
{
    return ((const struct submit_own *)f->own)->file;
}

bool stdin_read(struct cli *c, size_t most, struct slice *out, struct err *err)
{
    AUTO(str_done) struct str text = { 0 };
    for (;;) {
        char *to = str_grow(&text, 4096);
        ssize_t n = read(STDIN_FILENO, to, 4096);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(err, "standard input");
        if (n == 0)
            break;
        text.len += (size_t)n;
        if (text.len > most)
            return err_set(err, RC_TOO_LARGE, "standard input has more than %zu bytes", most);
    }
    *out = (struct slice){ arena_bytes(c->mem, text.at ? text.at : "", text.len), text.len };
    return true;
}

bool path_read(struct cli *c, const char *path, size_t most, struct slice *out, struct err *err)
{
    char here[4096];
    if (text_is(path, "-"))
        return stdin_read(c, most, out, err);
    if (path[0] != '/' && getcwd(here, sizeof here))
        path = arena_printf(c->mem, "%s/%s", here, path);
    return file_read(c->os, path, most, c->mem, out, err);
}

/* The documents of a file, as a list. */
static bool read_file(struct cli *c, const char *file, struct json **docs, struct err *err)
{
    struct slice text;
    size_t n = strlen(file);
    bool json = n > 5 && text_is(file + n - 5, ".json");
    struct json *doc = NULL;
    if (!path_read(c, file, FILE_MOST, &text, err))
        return false;
    if (!(json ? json_parse(text, c->mem, &doc, err)
               : yaml_parse_all(text, JOB_BATCH_MAX, c->mem, &doc, err)))
        return err_wrap(err, "%s", file);
    bool alone = !json && doc->first && !doc->first->next;
    doc = alone && doc->first->type == JSON_LIST ? doc->first : doc;
    if (doc->type != JSON_LIST) {
        *docs = json_new(c->mem, JSON_LIST);
        json_add(*docs, NULL, doc);
    } else {
        *docs = doc;
    }
    for (struct json *d = (*docs)->first; d; d = d->next)
        if (d->type != JSON_OBJECT)
            return err_set(err, RC_BAD_INPUT, "%s is not a workload: it has no fields", file);
    return (*docs)->first || err_set(err, RC_BAD_INPUT, "%s is not a workload: it is empty", file);
}

static struct json *copy_of(struct cli *c, const struct json *from)
{
    struct json *to = json_new(c->mem, from->type);
    *to = *from;
    to->first = to->last = to->next = NULL;
    for (const struct json *m = from->first; m; m = m->next)
        json_add(to, m->name, copy_of(c, m));
    return to;
}

/* A flag takes the place of the field it spells, whatever alias or group the file used for it. */
static void overrule(struct json *doc, const struct field *f)
{
    for (struct json *m = doc->first, *next; m; m = next) {
        next = m->next;
        const struct field *row = bind_find(&job_spec_fields, m->name);
        if (row && row->type == F_INLINE && m->type == JSON_OBJECT) {
            for (struct json *g = m->first, *after; g; g = after) {
                after = g->next;
                const struct field *in = bind_find(row->sub, g->name);
                if (in && in->offset == f->offset)
                    doc_drop(m, g->name);
            }
        } else if (row && row->type != F_INLINE && row->offset == f->offset) {
            doc_drop(doc, m->name);
        }
    }
}

/* -e adds to the env of the file */
static bool is_group(const struct field *f) { return f->type == F_PAIRS; }

static void merge(struct cli *c, struct json *doc, struct json *flags)
{
    for (struct json *m = flags->first, *next; m; m = next) {
        const struct field *f = bind_find(&job_spec_fields, m->name);
        struct json *there = NULL;
        next = m->next;
        m->next = NULL;
        for (struct json *d = doc->first; d && is_group(f); d = d->next) {
            const struct field *row = bind_find(&job_spec_fields, d->name);
            there = row && row->offset == f->offset && d->type == JSON_OBJECT ? d : there;
        }
        if (there) {
            for (struct json *p = m->first; p; p = p->next)
                doc_set(c, there, p->name, p->text);
            continue;
        }
        overrule(doc, f);
        json_add(doc, m->name, m);
    }
}

/* A path becomes the digest of what is there now. Relative to where the command is typed, also in
 * a file. */
static bool send_workdir(struct cli *c, struct json *doc, struct err *err)
{
    const struct field *f = bind_find(&job_spec_fields, "workdir");
    const char *path = NULL, *digest;
    for (struct json *m = doc->first; m; m = m->next)
        if (m->type == JSON_TEXT && bind_find(&job_spec_fields, m->name) == f)
            path = m->text;
    if (!text_given(path) || text_starts(path, "sha256:"))
        return true;
    if (!folder_upload(c, path, true, &digest, err))
        return strstr(err->text, "workdir") ? false : err_wrap(err, "workdir");
    overrule(doc, f);
    return doc_set(c, doc, "workdir", digest);
}

/* Where nothing is queued, nothing is uploaded: what is in the folder does not matter. */
static bool keep_workdir(struct json *doc)
{
    const struct field *f = bind_find(&job_spec_fields, "workdir");
    overrule(doc, f);
    return true;
}

/* Flags and the command behind `--` into a workload. */
static bool spec_finish(struct cli *c, const struct flags *f, struct json *doc, bool send, struct err *err)
{
    struct json *flags = copy_of(c, f->doc);
    if (f->rest.count) {
        struct json *command = json_new(c->mem, JSON_LIST);
        for (size_t i = 0; i < f->rest.count; i++) {
            struct json *arg = json_new(c->mem, JSON_TEXT);
            arg->text = f->rest.at[i];
            arg->len = strlen(arg->text);
            json_add(command, NULL, arg);
        }
        overrule(doc, bind_find(&job_spec_fields, "run"));
        doc_drop(flags, "command");
        json_add(flags, "command", command);
    }
    merge(c, doc, flags);
    return send ? send_workdir(c, doc, err) : keep_workdir(doc);
}

bool specs_build(struct cli *c, const struct flags *f, const char *file, bool send, struct json **docs,
                 struct err *err)
{
    struct json *list = json_new(c->mem, JSON_LIST);
    if (file && !read_file(c, file, &list, err))
        return false;
    if (!file)
        json_add(list, NULL, json_new(c->mem, JSON_OBJECT));
    for (struct json *d = list->first; d; d = d->next)
        if (!spec_finish(c, f, d, send, err))
            return false;
    *docs = list;
    return true;
}

bool spec_build(struct cli *c, const struct flags *f, const char *file, struct json **spec,
                struct err *err)
{
    struct json *docs;
    if (!specs_build(c, f, file, true, &docs, err))
        return false;
    *spec = docs->first;
    return !docs->first->next
        || err_set(err, RC_BAD_INPUT, "%s has several workloads; arcus submit takes them", file);
}

void print_submitted(struct cli *c, const struct json *job)
{
    static const char *const members[] = { "id", "name", "state" };
    struct json *brief = json_new(c->mem, JSON_OBJECT);
    if (c->output != OUT_JSON && c->output != OUT_YAML) {
        printf("%s\n", json_text(job, "id"));
        return;
    }
    for (size_t i = 0; i < COUNT(members); i++)
        doc_set(c, brief, members[i], json_text(job, members[i]) ? json_text(job, members[i]) : "");
    print_data(c, brief);
}

static bool submit_one(struct cli *c, struct json *docs, struct err *err)
{
    struct json *job;
    if (!cli_call(c, VERB_JOB_SUBMIT, docs->first, &job, err))
        return false;
    print_submitted(c, job);
    return true;
}

static bool submit_many(struct cli *c, struct json *docs, struct err *err)
{
    struct json *body = json_new(c->mem, JSON_OBJECT), *answer;
    json_add(body, "jobs", docs);
    if (!cli_call(c, VERB_JOB_BATCH, body, &answer, err))
        return false;
    if (c->output == OUT_JSON || c->output == OUT_YAML) {
        print_data(c, answer);
        return true;
    }
    const struct json *jobs = json_get(answer, "jobs");
    for (const struct json *id = jobs ? jobs->first : NULL; id; id = id->next)
        printf("%s\n", id->text);
    return true;
}

int word_submit(struct cli *c, const struct word *w, int argc, char **argv)
{
    struct flags f;
    struct json *docs;
    int over = word_open(c, w, argc, argv, &f);
    if (over >= 0)
        return over;
    const struct submit_own *own = f.own;
    if (!own->file && !f.doc->first && !f.rest.count) {
        err_set(&c->err, RC_BAD_INPUT,
                "nothing to submit: give -f FILE or a command; arcus submit --help shows more");
        return print_error(c, &c->err);
    }
    bool ok = specs_build(c, &f, own->file, true, &docs, &c->err)
           && (docs->first->next ? submit_many : submit_one)(c, docs, &c->err);
    return ok ? 0 : print_error(c, &c->err);
}
