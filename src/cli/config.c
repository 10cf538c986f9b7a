/* config.c - the contexts of several clouds, in one JSON file of mode 0600: {"current": "local",
 * "contexts": [{...}]}. The environment (ARCUS_SERVER, ARCUS_KEY, ARCUS_PROJECT) comes before the
 * file, flags before both; --context names an entry of the file. */
#include "cli/cli.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { CONFIG_MOST = 1 << 20, KEY_MOST = 4096 };

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
    return (json_parse(text, c->mem, &doc, err)
            && bind_read(doc, &contexts_fields, c->mem, out, NULL, err))
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

bool config_has(struct cli *c, const char *name)
{
    struct contexts all;
    struct err ignored;
    return read_file(c, &all, &ignored) && find(&all, name);
}

bool config_load(struct cli *c, struct err *err)
{
    const char *name = c->context_name;
    struct contexts all;
    struct context asked = c->context;
    if (!read_file(c, &all, err))
        return false;
    struct context *x = find(&all, name ? name : all.current);
    if (name && !x)
        return err_set(err, RC_BAD_INPUT,
                       "there is no context '%s' in %s; arcus config list shows them", name,
                       c->config_path);
    struct context base = x ? *x : (struct context){ 0 };
    const char *server = getenv("ARCUS_SERVER"), *key = getenv("ARCUS_KEY"),
               *project = getenv("ARCUS_PROJECT"), *pin = getenv("ARCUS_PIN"),
               *ca = getenv("ARCUS_CA");
    server = asked.server ? asked.server : text_given(server) && !name ? server : NULL;
    if (server && !servers_within(server, base.server, c->mem))
        /* another cloud: key, certificate and project of this one are not for it */
        base = (struct context){ 0 };
    if (server)
        base.server = server;
    c->context = base;
    c->context.server = base.server ? base.server : "http://127.0.0.1:6640";
    c->context.key = asked.key ? asked.key : text_given(key) && !name ? key : base.key;
    c->context.project = asked.project         ? asked.project
                         : text_given(project) ? project
                                               : base.project;
    c->context.pin = asked.pin ? asked.pin : text_given(pin) && !name ? pin : base.pin;
    c->context.ca = asked.ca ? asked.ca : text_given(ca) && !name ? ca : base.ca;
    return true;
}

bool config_keep(struct cli *c, const struct context *given, struct err *err)
{
    struct contexts all;
    struct context x = *given;
    if (!read_file(c, &all, err))
        return false;
    struct context *old = find(&all, x.name);
    if (!old) {
        struct context *list = ARENA_ARRAY(c->mem, struct context, all.contexts.count + 1);
        if (all.contexts.count)
            memcpy(list, all.contexts.at, all.contexts.count * sizeof *list);
        old = &list[all.contexts.count];
        all.contexts = (struct objects){ list, all.contexts.count + 1 };
    } else {
        /* What is not given stays; but other addresses are another cloud with its own key. */
        bool same = !x.server || servers_within(x.server, old->server, c->mem)
                    || servers_within(old->server, x.server, c->mem);
        x.server = x.server ? x.server : old->server;
        x.key = x.key || !same ? x.key : old->key;
        x.pin = x.pin || !same ? x.pin : old->pin;
        x.ca = x.ca || !same ? x.ca : old->ca;
        x.project = x.project ? x.project : old->project;
    }
    if (!text_given(x.server))
        return err_set(err, RC_BAD_INPUT, "the context '%s' needs --server URL", x.name);
    *old = x;
    all.current = x.name;
    return write_file(c, &all, err);
}

static void list(struct cli *c, const struct contexts *all)
{
    const struct context *at = all->contexts.at;
    struct json *items = json_new(c->mem, JSON_LIST);
    for (size_t i = 0; i < all->contexts.count; i++) {
        struct json *o = json_new(c->mem, JSON_OBJECT), *t;
        const char *state = text_is(at[i].name, all->current) ? "current" : "";
        const char *members[][2] = { { "id", at[i].name },
                                     { "name", at[i].name },
                                     { "state", state },
                                     { "server", at[i].server },
                                     { "project", at[i].project } };
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
    static const struct column columns[] = {
        { "NAME", "name" }, { "STATE", "state" }, { "SERVER", "server" }, { "PROJECT", "project" }
    };
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

/* --- the words */

struct config_ask { const char *name, *server, *key, *key_file, *pin, *ca, *project; };
#define NAME                                                                                       \
    FIELD(struct config_ask, name, TEXT, .required = true, .in_path = true, .max = 63,             \
          .help = "what you call the cloud")
static const struct field set_rows[] = {
    NAME,
    FIELD(struct config_ask, server, TEXT, .max = 1024, .help = "its address, or several of one cloud with commas between",
          .example = "https://cloud.example.org:6640"),
    FIELD(struct config_ask, key_file, TEXT, .max = 4096,
          .help = "a file with your key in its first line; - is standard input",
          .example = "admin.key"),
    FIELD(struct config_ask, key, TEXT, .max = 256,
          .help = "the key itself; others can see it in the list of processes"),
    FIELD(struct config_ask, pin, TEXT, .max = 64,
          .help = "SHA-256 in hex of its authority, or of its certificate: what is trusted",
          .example = "9f2c..."),
    FIELD(struct config_ask, ca, TEXT, .max = 4096,
          .help = "a file with the certificates to trust, in PEM"),
    FIELD(struct config_ask, project, TEXT, .help = "the project to speak for",
          .example = "vision"),
};
const struct fields config_set_fields = FIELDS(config_ask, set_rows);
static const struct field ref_rows[] = { NAME };
const struct fields config_ref_fields = FIELDS(config_ask, ref_rows);

static bool begin(struct cli *c, const struct word *w, int argc, char **argv,
                  struct config_ask **ask, struct contexts *all)
{
    struct flags f;
    if (!flags_parse(c, w, argc, argv, &f, &c->err))
        return false;
    *ask = f.own;
    return c->help || read_file(c, all, &c->err);
}

static const char *absolute(struct cli *c, const char *path)
{
    char here[4096];
    return path[0] == '/' || !getcwd(here, sizeof here) ? path
                                                        : arena_printf(c->mem, "%s/%s", here, path);
}

static bool read_key(struct cli *c, const char *path, const char **out, struct err *err)
{
    struct slice text;
    if (!path_read(c, path, KEY_MOST, &text, err))
        return false;
    char *key = arena_bytes(c->mem, text.at, text.len);
    key[strcspn(key, "\r\n")] = 0;
    *out = key;
    return text_given(key) || err_set(err, RC_BAD_INPUT, "%s has no key in its first line", path);
}

int word_config_set(struct cli *c, const struct word *w, int argc, char **argv)
{
    struct config_ask *ask;
    struct contexts all;
    if (!begin(c, w, argc, argv, &ask, &all))
        return print_error(c, &c->err);
    if (c->help)
        return word_help(w), 0;
    struct context x
        = { ask->name,   ask->server, ask->key, ask->pin, ask->ca ? absolute(c, ask->ca) : NULL,
            ask->project };
    if ((ask->key_file && !read_key(c, ask->key_file, &x.key, &c->err))
        || !config_keep(c, &x, &c->err))
        return print_error(c, &c->err);
    return 0;
}

int word_config_list(struct cli *c, const struct word *w, int argc, char **argv)
{
    struct config_ask *ask;
    struct contexts all;
    if (!begin(c, w, argc, argv, &ask, &all))
        return print_error(c, &c->err);
    if (c->help)
        return word_help(w), 0;
    list(c, &all);
    return 0;
}

int word_config_use(struct cli *c, const struct word *w, int argc, char **argv)
{
    struct config_ask *ask;
    struct contexts all;
    if (!begin(c, w, argc, argv, &ask, &all))
        return print_error(c, &c->err);
    if (c->help)
        return word_help(w), 0;
    if (!find(&all, ask->name)) {
        err_set(&c->err, RC_NOT_FOUND, "there is no context '%s'; arcus config list shows them",
                ask->name);
        return print_error(c, &c->err);
    }
    all.current = ask->name;
    return write_file(c, &all, &c->err) ? 0 : print_error(c, &c->err);
}

int word_config_remove(struct cli *c, const struct word *w, int argc, char **argv)
{
    struct config_ask *ask;
    struct contexts all;
    if (!begin(c, w, argc, argv, &ask, &all))
        return print_error(c, &c->err);
    if (c->help)
        return word_help(w), 0;
    return drop(c, &all, ask->name, &c->err) ? 0 : print_error(c, &c->err);
}
