/* config.c - the contexts of several clouds, in one JSON file of mode 0600: {"current": "local", "contexts": [{...}]}. The environment
 * (ARCUS_SERVER, ARCUS_KEY, ARCUS_PROJECT) comes before the file, flags before both. */
#include "cli/cli.h"
#include <stdio.h>
#include <stdlib.h>

enum { CONFIG_MOST = 1 << 20 };

struct contexts { const char *current; struct objects contexts; };
static const struct field context_rows[] = {
    FIELD(struct context, name, TEXT, .required = true),
    FIELD(struct context, server, TEXT, .max = 1024),
    FIELD(struct context, key, TEXT, .max = 256, .when_set = true),
    FIELD(struct context, pin, TEXT, .when_set = true),
    FIELD(struct context, ca, TEXT, .max = 4096, .when_set = true),
    FIELD(struct context, project, TEXT, .when_set = true),
};
static const struct fields context_fields = FIELDS(context, context_rows);
static const struct field contexts_rows[] = {
    FIELD(struct contexts, current, TEXT),
    FIELD(struct contexts, contexts, OBJECTS, .sub = &context_fields, .max = 1000),
};
static const struct fields contexts_fields = FIELDS(contexts, contexts_rows);

static bool read_file(struct cli *c, struct contexts *out, struct err *err)
{
    struct slice text;
    struct json *doc;
    struct err why = { 0 };
    *out = (struct contexts){ 0 };
    if (!file_read(c->os, c->config_path, CONFIG_MOST, c->mem, &text, &why))
        return why.rc == RC_NOT_FOUND || (*err = why, false);
    return (json_parse(text, c->mem, &doc, err) && bind_read(doc, &contexts_fields, c->mem, out, NULL, err))
           || err_wrap(err, "%s", c->config_path);
}

static bool write_file(struct cli *c, const struct contexts *all, struct err *err)
{
    AUTO(str_done) struct str text = { 0 };
    struct json_out o = { .to = &text };
    char *folder = arena_text(c->mem, c->config_path), *slash = strrchr(folder, '/');
    bind_write(&o, &contexts_fields, all);
    str_char(&text, '\n');
    if (slash && slash != folder) {
        *slash = 0;
        if (!dir_make(c->os, folder, 0700, err))
            return false;
    }
    return file_replace(c->os, c->config_path, (struct slice){ text.at, text.len }, 0600, err);
}

static struct context *find(const struct contexts *all, const char *name)
{
    struct context *list = all->contexts.at;
    for (size_t i = 0; name && i < all->contexts.count; i++)
        if (text_is(list[i].name, name))
            return &list[i];
    return NULL;
}

bool config_load(struct cli *c, const char *name, struct err *err)
{
    struct contexts all;
    struct context asked = c->context;
    if (!read_file(c, &all, err))
        return false;
    struct context *x = find(&all, name ? name : all.current);
    if (name && !x)
        return err_set(err, RC_BAD_INPUT, "there is no context '%s' in %s; arcus config list shows them", name, c->config_path);
    struct context base = x ? *x : (struct context){ 0 };
    const char *server = getenv("ARCUS_SERVER"), *key = getenv("ARCUS_KEY"), *project = getenv("ARCUS_PROJECT");
    if (text_given(server) && !text_is(server, base.server))
        base = (struct context){ .server = server, .project = base.project }; /* another cloud: the key of this one is not for it */
    c->context = base;
    c->context.server = asked.server ? asked.server : base.server ? base.server : "http://127.0.0.1:6640";
    c->context.key = asked.key ? asked.key : text_given(key) ? key : base.key;
    c->context.project = asked.project ? asked.project : text_given(project) ? project : base.project;
    return true;
}

static bool flag_value(int argc, char **argv, int *i, const char *flag, const char **out)
{
    size_t n = strlen(flag);
    if (strncmp(argv[*i], flag, n) != 0 || (argv[*i][n] != 0 && argv[*i][n] != '='))
        return false;
    *out = argv[*i][n] == '=' ? argv[*i] + n + 1 : *i + 1 < argc ? argv[++*i] : "";
    return true;
}

static bool set(struct cli *c, struct contexts *all, int argc, char **argv, struct err *err)
{
    struct context x = { 0 };
    const char *key_file = NULL;
    for (int i = 0; i < argc; i++) {
        bool known = flag_value(argc, argv, &i, "--server", &x.server) || flag_value(argc, argv, &i, "--key-file", &key_file)
                     || flag_value(argc, argv, &i, "--key", &x.key) || flag_value(argc, argv, &i, "--pin", &x.pin)
                     || flag_value(argc, argv, &i, "--ca", &x.ca) || flag_value(argc, argv, &i, "--project", &x.project);
        if (!known && (argv[i][0] == '-' || x.name))
            return err_set(err, RC_BAD_INPUT, "config set: '%s' is not known; see arcus config --help", argv[i]);
        if (!known)
            x.name = argv[i];
    }
    if (!x.name)
        return err_set(err, RC_BAD_INPUT, "config set needs a name: arcus config set NAME --server URL --key-file FILE");
    struct context *old = find(all, x.name);
    if (!x.server && c->context.server)
        x.server = c->context.server;
    if (key_file) {
        struct slice text;
        if (!file_read(c->os, key_file, 4096, c->mem, &text, err))
            return false;
        char *key = arena_bytes(c->mem, text.at, text.len);
        key[strcspn(key, "\r\n")] = 0;
        x.key = key;
    }
    if (!old) {
        struct context *list = ARENA_ARRAY(c->mem, struct context, all->contexts.count + 1);
        if (all->contexts.count)
            memcpy(list, all->contexts.at, all->contexts.count * sizeof *list);
        old = &list[all->contexts.count];
        all->contexts = (struct objects){ list, all->contexts.count + 1 };
    } else { /* what is not given stays */
        x.server = x.server ? x.server : old->server;
        x.key = x.key ? x.key : old->key;
        x.pin = x.pin ? x.pin : old->pin;
        x.ca = x.ca ? x.ca : old->ca;
        x.project = x.project ? x.project : old->project;
    }
    if (!x.server)
        return err_set(err, RC_BAD_INPUT, "config set needs --server URL");
    *old = x;
    all->current = x.name;
    return write_file(c, all, err);
}

static void list(struct cli *c, const struct contexts *all)
{
    const struct context *at = all->contexts.at;
    struct json *items = json_new(c->mem, JSON_LIST);
    for (size_t i = 0; i < all->contexts.count; i++) {
        struct json *o = json_new(c->mem, JSON_OBJECT), *t;
        const char *state = text_is(at[i].name, all->current) ? "current" : "";
        const char *members[][2] = { { "id", at[i].name }, { "name", at[i].name }, { "state", state }, { "server", at[i].server }, { "project", at[i].project } };
        for (size_t m = 0; m < COUNT(members); m++) {
            t = json_new(c->mem, members[m][1] ? JSON_TEXT : JSON_NULL);
            t->text = members[m][1];
            t->len = t->text ? strlen(t->text) : 0;
            json_add(o, members[m][0], t);
        }
        json_add(items, NULL, o);
    }
    struct json *reply = json_new(c->mem, JSON_OBJECT);
    json_add(reply, "items", items);
    json_add(reply, "next", json_new(c->mem, JSON_NULL));
    static const struct column columns[] = { { "NAME", "name" }, { "STATE", "state" }, { "SERVER", "server" }, { "PROJECT", "project" } };
    static const struct word w = { .columns = columns, .column_count = COUNT(columns), .verb = -1 };
    print_reply(c, &w, reply);
}

static bool drop(struct cli *c, struct contexts *all, const char *name, struct err *err)
{
    struct context *x = find(all, name), *at = all->contexts.at;
    if (!x)
        return err_set(err, RC_NOT_FOUND, "there is no context '%s'", name ? name : "");
    memmove(x, x + 1, (size_t)(at + all->contexts.count - x - 1) * sizeof *x);
    all->contexts.count--;
    if (text_is(all->current, name))
        all->current = all->contexts.count ? at[0].name : "";
    return write_file(c, all, err);
}

int word_config(struct cli *c, const struct word *w, int argc, char **argv)
{
    struct contexts all;
    const char *what = argc ? argv[0] : "list", *name = argc > 1 ? argv[1] : NULL;
    bool ok = read_file(c, &all, &c->err);
    if (text_is(what, "--help") || text_is(what, "-h"))
        return word_help(w), 0;
    if (ok && text_is(what, "list"))
        list(c, &all);
    else if (ok && text_is(what, "set"))
        ok = set(c, &all, argc - 1, argv + 1, &c->err);
    else if (ok && text_is(what, "use"))
        ok = find(&all, name) ? (all.current = name, write_file(c, &all, &c->err)) : err_set(&c->err, RC_NOT_FOUND, "there is no context '%s'; arcus config list shows them", name ? name : "");
    else if (ok && text_is(what, "remove"))
        ok = drop(c, &all, name, &c->err);
    else if (ok)
        ok = err_set(&c->err, RC_BAD_INPUT, "config knows list, set, use and remove, not '%s'", what);
    return ok ? 0 : print_error(c, &c->err);
}
