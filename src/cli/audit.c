/* audit.c - `arcus audit verify` and `arcus audit export`: the whole chain, page by page. The server has the key of the chain and
 * does the checking; what is wrong is told here row by row, and is the exit code. */
#include "cli/cli.h"
#include <stdio.h>

enum { LIST_DEFAULT = 100 };

struct told { int64_t rows, segments, last, problems; const char *chain; };

static void tell_problems(struct cli *c, const struct json *proof, struct told *t)
{
    const struct json *list = json_get(proof, "problems");
    const char *name = json_text(proof, "name");
    bool chain = name && text_is(name, "chain");
    for (const struct json *m = list ? list->first : NULL; m; m = m->next, t->problems++) {
        AUTO(str_done) struct str out = { 0 };
        if (c->output == OUT_JSON || c->output == OUT_YAML)
            continue;
        str_printf(&out, "%s %lld: ", chain ? "entry" : "segment", (long long)json_int(m, "number", 0));
        if (!chain)
            str_printf(&out, "archive of %s: ", name ? name : "");
        clean_text(&out, json_text(m, "problem"));
        str_char(&out, '\n');
        (void)!out_write(out.at, out.len);
    }
    t->rows += chain ? json_int(proof, "checked", 0) : 0;
    t->segments += !chain && json_int(proof, "checked", 0) > 0;
    if (chain && json_int(proof, "checked", 0)) {
        t->last = json_int(proof, "last", 0);
        t->chain = json_text(proof, "chain");
    }
}

/* There is no end to it: a page of the newest, unless more is asked for. */
int word_audit_list(struct cli *c, const struct word *w, int argc, char **argv)
{
    struct flags f;
    struct json *list;
    int over = word_open(c, w, argc, argv, &f);
    if (over >= 0)
        return over;
    int64_t limit = json_int(f.doc, "limit", 0);
    if (!cli_get_all(c, VERB_AUDIT_LIST, f.doc, limit > 0 ? limit : LIST_DEFAULT, &list, &c->err))
        return print_error(c, &c->err);
    print_reply(c, w, list);
    return 0;
}

int word_audit_verify(struct cli *c, const struct word *w, int argc, char **argv)
{
    struct flags f;
    struct told t = { .chain = "" };
    int over = word_open(c, w, argc, argv, &f);
    if (over >= 0)
        return over;
    struct json *all = json_new(c->mem, JSON_LIST);
    const char *one = json_text(f.doc, "page");
    AUTO(progress_end) struct progress *p = progress_start(c, "checking", 0);
    for (const char *page = one ? one : ""; page;) {
        struct json *proof, *ask = json_new(c->mem, JSON_OBJECT);
        if (*page)
            doc_set(c, ask, "page", page);
        if (!cli_call(c, VERB_AUDIT_VERIFY, ask, &proof, &c->err))
            return print_error(c, &c->err);
        progress_clear(p);
        tell_problems(c, proof, &t);
        progress_text(p, "%lld entries", (long long)t.rows);
        struct json *list = json_get(proof, "problems");
        for (struct json *m = list ? list->first : NULL, *after; m; m = after) {
            after = m->next;
            m->next = NULL;
            json_add(all, NULL, m);
        }
        page = json_text(proof, "next");
        page = text_given(page) && !one ? page : NULL;
    }
    if (c->output == OUT_JSON || c->output == OUT_YAML) {
        struct json *sum = json_new(c->mem, JSON_OBJECT);
        doc_set(c, sum, "state", t.problems ? "broken" : "whole");
        doc_set(c, sum, "last", arena_printf(c->mem, "%lld", (long long)t.last));
        doc_set(c, sum, "chain", t.chain);
        json_add(sum, "problems", all);
        print_data(c, sum);
    } else {
        printf("%s: %lld entries and %lld archive segments checked, the last is %lld with hash %s\n", t.problems ? "broken" : "whole",
               (long long)t.rows, (long long)t.segments, (long long)t.last, t.chain ? t.chain : "");
    }
    return t.problems ? 1 : 0;
}

static bool export_put(void *arg, const struct json *items)
{
    AUTO(str_done) struct str out = { 0 };
    (void)arg;
    for (const struct json *m = items->first; m; m = m->next) {
        json_print(&out, m);
        str_char(&out, '\n');
    }
    return out_write(out.at, out.len);
}

int word_audit_export(struct cli *c, const struct word *w, int argc, char **argv)
{
    struct flags f;
    int over = word_open(c, w, argc, argv, &f);
    if (over >= 0)
        return over;
    if (!json_get(f.doc, "since"))
        doc_set(c, f.doc, "since", "0");
    int64_t most = json_int(f.doc, "limit", 0);
    return pages_each(c, VERB_AUDIT_LIST, f.doc, MAX(most, 0), export_put, NULL) ? 0 : print_error(c, &c->err);
}
