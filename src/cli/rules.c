/* rules.c - `arcus rules`: the rules of the cloud as a person reads them, and its weights as a table. Programs get all of it. */
#include "cli/cli.h"

static const struct column weight_columns[] = {
    { "NAME", "name" }, { "WEIGHT", "weight", .right = true }, { "USUAL", "usual", .right = true }, { "WHAT IT IS A PRICE ON", "what" },
};

static bool is_data(const struct cli *c) { return c->output == OUT_JSON || c->output == OUT_YAML; }

int word_rules(struct cli *c, const struct word *w, int argc, char **argv)
{
    struct flags f;
    struct json *reply;
    int over = word_open(c, w, argc, argv, &f);
    if (over >= 0)
        return over;
    if (!cli_call(c, (enum verb_id)w->verb, f.doc, &reply, &c->err))
        return print_error(c, &c->err);
    if (!is_data(c) && !json_get(f.doc, "weights"))
        doc_drop(reply, "weights");
    struct json *weights = is_data(c) ? NULL : json_get(reply, "weights");
    if (weights)
        print_table(c, weight_columns, COUNT(weight_columns), weights);
    else
        print_reply(c, w, reply);
    return 0;
}

int word_rules_weights(struct cli *c, const struct word *w, int argc, char **argv)
{
    struct flags f;
    struct json *reply;
    int over = word_open(c, w, argc, argv, &f);
    if (over >= 0)
        return over;
    if (!cli_call(c, VERB_RULES_GET, f.doc, &reply, &c->err))
        return print_error(c, &c->err);
    struct json *weights = json_get(reply, "weights");
    if (!weights)
        return print_error(c, (err_set(&c->err, RC_UNAVAILABLE, "the server is of a version that does not tell its weights"), &c->err));
    if (is_data(c))
        print_data(c, weights);
    else
        print_table(c, weight_columns, COUNT(weight_columns), weights);
    return 0;
}
