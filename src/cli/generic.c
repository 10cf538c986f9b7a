/* generic.c - words that are nothing but their verb: flags in, one call (or every page of a list), the reply printed. A word
 * that takes several things asks for each of them by itself: one that fails does not stop the others, and is the exit code. */
#include "cli/cli.h"
#include <stdio.h>

static bool is_data(const struct cli *c) { return c->output == OUT_JSON || c->output == OUT_YAML; }

bool several_end(struct cli *c, size_t left)
{
    enum rc rc = c->err.rc;
    if (rc != RC_UNAVAILABLE && rc != RC_TIMEOUT && rc != RC_UNAUTHENTICATED && rc != RC_TOO_MANY)
        return false;
    if (left)
        say(c, "%zu more: not tried", left);
    return true;
}

void several_print(struct cli *c, struct json *items)
{
    struct json *list = json_new(c->mem, JSON_OBJECT);
    json_add(list, "items", items);
    json_add(list, "next", json_new(c->mem, JSON_NULL));
    print_data(c, list);
}

static int ask_several(struct cli *c, const struct word *w, const struct flags *f)
{
    struct json *items = json_new(c->mem, JSON_LIST);
    int code = 0;
    bool printed = false;
    for (size_t i = 0; i < f->rest.count; i++) {
        struct json *reply;
        doc_set(c, f->doc, f->each, f->rest.at[i]);
        if (!cli_call(c, (enum verb_id)w->verb, f->doc, &reply, &c->err)) {
            int why = print_error(c, &c->err);
            code = code ? code : why;
            if (several_end(c, f->rest.count - i - 1))
                break;
        } else if (is_data(c)) {
            json_add(items, NULL, reply);
        } else {
            if (printed)
                out_write("\n", 1);
            print_reply(c, w, reply);
            printed = true;
        }
    }
    if (is_data(c))
        several_print(c, items);
    return code;
}

int word_open(struct cli *c, const struct word *w, int argc, char **argv, struct flags *f)
{
    if (!flags_parse(c, w, argc, argv, f, &c->err))
        return print_error(c, &c->err);
    if (c->help)
        return word_help(w), 0;
    return -1;
}

int word_generic(struct cli *c, const struct word *w, int argc, char **argv)
{
    struct flags f;
    struct json *reply;
    int over = word_open(c, w, argc, argv, &f);
    if (over >= 0)
        return over;
    if (w->many && f.rest.count > 1)
        return ask_several(c, w, &f);
    const struct verb *v = &verbs[w->verb];
    bool page = json_get(f.doc, "page") != NULL;
    int64_t limit = json_int(f.doc, "limit", 0);
    bool ok = v->list && !page
                  ? cli_get_all(c, (enum verb_id)w->verb, f.doc, limit, &reply, &c->err)
                  : cli_call(c, (enum verb_id)w->verb, f.doc, &reply, &c->err);
    if (!ok)
        return print_error(c, &c->err);
    print_reply(c, w, reply);
    return 0;
}
