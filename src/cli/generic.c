/* generic.c - words that are nothing but their verb: flags in, one call (or every page of a list),
 * the reply printed. */
#include "cli/cli.h"
#include <stdio.h>

int word_generic(struct cli *c, const struct word *w, int argc, char **argv)
{
    struct flags f;
    struct json *reply;
    if (!flags_parse(c, w, argc, argv, &f, &c->err))
        return print_error(c, &c->err);
    if (c->help)
        return word_help(w), 0;
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
