/* why.c - why a job waits, for people: the same lines under `arcus describe` and `arcus plan`; and the word plan itself.
 *
 * All sentences are the server's. Here they are only put below each other. */
#include "cli/cli.h"
#include "base/when.h"
#include <stdio.h>

static const char *text_of(const struct json *v, const char *member)
{
    const char *text = json_text(v, member);
    return text ? text : "";
}

static void line(const char *before, const char *text)
{
    AUTO(str_done) struct str clean = { 0 };
    clean_text(&clean, text);
    printf("%s%s\n", before, clean.at ? clean.at : "");
}

static void print_start(struct cli *c, const struct json *why)
{
    const char *at = json_text(why, "start_at");
    const struct json *earliest = json_get(why, "at_earliest");
    int64_t ms, now = os_wall_ms(c->os);
    char span[WHEN_TEXT];
    if (text_is(text_of(why, "starts"), "now"))
        return;
    if (!at || !when_parse(at, &ms))
        printf("  expected start: %s\n", text_is(text_of(why, "starts"), "never") ? "never, as things stand" : "unknown");
    else if (ms > now)
        printf("  expected start: %s, in %s%s\n", at, span_text(span, (ms - now + 999) / 1000), earliest && earliest->flag ? " at the earliest" : "");
    else
        printf("  expected start: any moment\n");
}

void print_why(struct cli *c, const struct json *why)
{
    const struct json *advice = json_get(why, "advice"), *refused = json_get(why, "refused"), *near = json_get(why, "nearest");
    if (*text_of(why, "reason")) {
        AUTO(str_done) struct str out = { 0 };
        str_printf(&out, "%s: %s", text_of(why, "reason"), text_of(why, "reason_text"));
        line("  ", out.at);
    } else if (*text_of(why, "reason_text")) {
        line("  ", text_of(why, "reason_text"));
    }
    print_start(c, why);
    if (advice && advice->first)
        printf("  what would make it run:\n");
    for (const struct json *a = advice ? advice->first : NULL; a; a = a->next)
        line("    ", a->text);
    if (json_int(why, "nodes", 0) && !text_is(text_of(why, "starts"), "now"))
        printf("  nodes: %lld of %lld have room now\n", (long long)json_int(why, "nodes_with_room", 0), (long long)json_int(why, "nodes", 0));
    for (const struct json *r = refused ? refused->first : NULL; r && !text_is(text_of(why, "starts"), "now"); r = r->next) {
        AUTO(str_done) struct str out = { 0 };
        str_printf(&out, "%6lld %s", (long long)json_int(r, "nodes", 0), text_of(r, "text"));
        line("  ", out.at);
    }
    if (near && near->first && !text_is(text_of(why, "starts"), "now"))
        printf("  nearest:\n");
    for (const struct json *n = near ? near->first : NULL; n && !text_is(text_of(why, "starts"), "now"); n = n->next) {
        AUTO(str_done) struct str out = { 0 };
        str_printf(&out, "%s: %s", text_of(n, "node"), text_of(n, "lacks"));
        line("    ", out.at);
    }
}

/* --- plan */

static void print_plan(struct cli *c, const struct json *plan)
{
    AUTO(str_done) struct str out = { 0 };
    const char *name = text_of(plan, "name"), *starts = text_of(plan, "starts"), *gpus = text_of(plan, "gpus");
    int64_t tasks = json_int(plan, "tasks", 0), count = json_int(plan, "count", 1);
    str_printf(&out, "%s ", *name ? name : "it");
    if (text_is(starts, "never")) {
        str_text(&out, "could never run");
    } else if (!text_is(starts, "now")) {
        str_text(&out, "would wait");
    } else {
        if (count > 1)
            str_printf(&out, "would start %lld%s of %lld tasks now, the first on %s", (long long)tasks, tasks < count && tasks >= 100 ? " or more" : "",
                       (long long)count, text_of(plan, "node"));
        else
            str_printf(&out, "would start now on %s", text_of(plan, "node"));
        if (*gpus)
            str_printf(&out, ", GPU%s %s", strchr(gpus, ',') ? "s" : "", gpus);
    }
    line("", out.at);
    print_why(c, plan);
}

int word_plan(struct cli *c, const struct word *w, int argc, char **argv)
{
    struct flags f;
    struct json *docs, *items = json_new(c->mem, JSON_LIST);
    int over = word_open(c, w, argc, argv, &f);
    if (over >= 0)
        return over;
    const char *file = submit_file(&f);
    bool data = c->output == OUT_JSON || c->output == OUT_YAML;
    if (!file && !f.doc->first && !f.rest.count) {
        err_set(&c->err, RC_BAD_INPUT, "nothing to plan: give -f FILE or a command; arcus plan --help shows more");
        return print_error(c, &c->err);
    }
    if (!specs_build(c, &f, file, false, &docs, &c->err))
        return print_error(c, &c->err);
    bool several = docs->first->next;
    for (struct json *d = docs->first, *next; d; d = next) {
        struct json *plan;
        next = d->next;
        if (!cli_call(c, VERB_JOB_PLAN, d, &plan, &c->err))
            return print_error(c, &c->err);
        if (data && several)
            json_add(items, NULL, plan);
        else if (data)
            print_data(c, plan);
        else
            print_plan(c, plan);
    }
    if (data && several)
        several_print(c, items);
    return 0;
}
