/* export.c - what ran, and the fleet, as the CSV that `arcus sim` reads. Page by page: no more than one is held, however long the trace.
 *
 * Without --names nothing tells whose work it was: projects are counted in the order in which they come. */
#include "base/map.h"
#include "base/when.h"
#include "cli/cli.h"
#include <stdio.h>

static const char *const trace_columns[] = { "name", "state", "project", "priority", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec",
                                             "creation_time", "scheduled_time", "deletion_time" };

static void cell(struct str *out, bool first, const char *text)
{
    str_text(out, first ? "" : ",");
    if (!text[strcspn(text, ",\"\r\n")]) {
        str_text(out, text);
        return;
    }
    str_char(out, '"');
    for (; *text; text++) {
        if (*text == '"')
            str_char(out, '"');
        str_char(out, *text == '\n' || *text == '\r' ? ' ' : *text);
    }
    str_char(out, '"');
}

struct trace { struct arena *mem; struct map *seen; struct progress *progress; bool names; int64_t rows; };     /* mem: of the whole */

/* p1, p2, ... */
static const char *nobody(struct trace *t, const char *project, char out[static 32])
{
    intptr_t n = (intptr_t)map_get_text(t->seen, project);
    if (!n) {
        n = (intptr_t)map_count(t->seen) + 1;
        map_put_text(t->seen, arena_text(t->mem, project), (void *)n);
    }
    snprintf(out, 32, "p%lld", (long long)n);
    return out;
}

static void trace_line(struct trace *t, struct str *out, const struct json *row)
{
    for (size_t i = 0; i < COUNT(trace_columns); i++) {
        const struct json *v = json_get(row, trace_columns[i]);
        char text[32] = "";
        if (v && v->type == JSON_TEXT && text_is(trace_columns[i], "project") && !t->names) {
            cell(out, i == 0, nobody(t, v->text, text));
            continue;
        }
        if (v && v->type == JSON_NUMBER)
            snprintf(text, sizeof text, "%lld", (long long)json_int(row, trace_columns[i], 0));
        cell(out, i == 0, v && v->type == JSON_TEXT ? v->text : text);
    }
    str_char(out, '\n');
}

static bool header(const char *const *columns, size_t count)
{
    AUTO(str_done) struct str out = { 0 };
    for (size_t i = 0; i < count; i++)
        cell(&out, i == 0, columns[i]);
    str_char(&out, '\n');
    return out_write(out.at, out.len);
}

static bool trace_put(void *arg, const struct json *items)
{
    AUTO(str_done) struct str out = { 0 };
    struct trace *t = arg;
    for (const struct json *m = items->first; m; m = m->next, t->rows++)
        trace_line(t, &out, m);
    progress_text(t->progress, "%lld lines", (long long)t->rows);
    return out_write(out.at, out.len);
}

int word_export_trace(struct cli *c, const struct word *w, int argc, char **argv)
{
    struct flags f;
    int over = word_open(c, w, argc, argv, &f);
    if (over >= 0)
        return over;
    AUTO(map_free) struct map *seen = map_new();
    AUTO(progress_end) struct progress *p = progress_start(c, "exporting", 0);
    const char *names = json_text(f.doc, "names");
    struct trace t = { .mem = c->mem, .seen = seen, .progress = p, .names = json_get(f.doc, "names") && !text_is(names, "false") };
    if (!header(trace_columns, COUNT(trace_columns)))
        return 1;
    return pages_each(c, VERB_TRACE_LIST, f.doc, MAX(json_int(f.doc, "limit", 0), 0), trace_put, &t) ? 0 : print_error(c, &c->err);
}

/* --- the fleet */

static void node_line(struct str *out, const struct json *row)
{
    static const char *const columns[] = { "name", "cpus", "memory_mib", "gpus", "gpu_model", "gpu_memory_mib" };
    for (size_t i = 0; i < COUNT(columns); i++) {
        const struct json *v = json_get(row, columns[i]);
        char text[32] = "";
        int64_t n = v && v->type == JSON_NUMBER ? v->number : 0;
        if (v && v->type == JSON_NUMBER && text_is(columns[i], "cpus") && !milli_parse(v->text, &n))
            n = 0;
        if (v && v->type == JSON_NUMBER && (n || !text_is(columns[i], "gpu_memory_mib")))
            snprintf(text, sizeof text, "%lld", (long long)n);
        cell(out, i == 0, v && v->type == JSON_TEXT ? v->text : text);
    }
    str_char(out, '\n');
}

int word_export_nodes(struct cli *c, const struct word *w, int argc, char **argv)
{
    static const char *const columns[] = { "sn", "cpu_milli", "memory_mib", "gpu", "model", "gpu_mib" };
    AUTO(str_done) struct str out = { 0 };
    struct flags f;
    struct json *reply;
    int over = word_open(c, w, argc, argv, &f);
    if (over >= 0)
        return over;
    if (!cli_get_all(c, VERB_NODE_LIST, json_new(c->mem, JSON_OBJECT), 0, &reply, &c->err))
        return print_error(c, &c->err);
    const struct json *items = json_get(reply, "items");
    for (const struct json *m = items ? items->first : NULL; m; m = m->next)
        node_line(&out, m);
    if (!header(columns, COUNT(columns)) || (out.len && !out_write(out.at, out.len)))
        return 1;
    return 0;
}
