/* flags.c - arguments -> a document for the verb, by the rows of field tables. A flag is looked
 * for in the word's own table, then in the verb's, then in the program's; so help, completion and
 * what is accepted cannot drift apart.
 *
 * Each value is read once by wire/bind here, so that a bad one is told with the name of its flag
 * before anything is sent. */
#include "cli/cli.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

static const struct fields no_fields = { "nothing", NULL, 0, 1 };

const struct fields *word_takes(const struct word *w)
{
    return w->verb < 0 ? &no_fields : verbs[w->verb].takes;
}

bool flag_takes_value(const struct field *f) { return f->type != F_BOOL; }

/* --- spellings */

bool flag_next(const struct field *f, size_t *at, struct slice *flag)
{
    /* arguments are no place for secrets */
    if (f->in_path || f->hidden || f->secret || f->type == F_INLINE || f->type == F_OBJECT)
        return false;
    if (!f->flag) {                     /* --name, with dashes where the name has underscores */
        *flag = SLICE(f->name);
        return (*at)++ == 0;
    }
    const char *p = f->flag + *at;
    p += strspn(p, " ");
    *flag = (struct slice){ p, strcspn(p, " ") };
    *at = (size_t)(p + flag->len - f->flag);
    return flag->len > 0;
}

static bool spells(const struct field *f, const char *given, size_t n)
{
    struct slice s;
    for (size_t at = 0; flag_next(f, &at, &s);) {
        if (f->flag && s.len == n && memcmp(s.at, given, n) == 0)
            return true;
        bool same = !f->flag && n == s.len + 2 && given[0] == '-' && given[1] == '-';
        for (size_t i = 0; same && i < s.len; i++)
            same = given[i + 2] == s.at[i] || (given[i + 2] == '-' && s.at[i] == '_');
        if (same)
            return true;
    }
    return false;
}

const struct field *flag_find(const struct fields *fields, const char *flag, size_t n)
{
    for (size_t i = 0; i < fields->count; i++)
        if (spells(&fields->rows[i], flag, n))
            return &fields->rows[i];
    return NULL;
}

/* --- arguments without a flag */

static bool listed(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = list; p && (p = strstr(p, name)); p += n)
        if ((p == list || p[-1] == ' ') && (p[n] == 0 || p[n] == ' '))
            return true;
    return false;
}

static bool is_name(const struct field *f) { return f->required && text_is(f->name, "name"); }

bool word_positional(const struct word *w, const char *name)
{
    const struct field *f = bind_find(word_takes(w), name);
    return w->takes ? listed(w->takes, name) : f && (f->in_path || is_name(f));
}

/* The name of the nth member that is given without a flag, or NULL. */
static const char *nth(struct cli *c, const struct word *w, size_t n)
{
    const struct fields *fields = word_takes(w);
    const char *p = w->takes;
    for (size_t i = 0; p; i++) {
        p += strspn(p, " ");
        size_t len = strcspn(p, " ");
        if (!len || i == n)
            return len ? arena_bytes(c->mem, p, len) : NULL;
        p += len;
    }
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < fields->count; i++)
            if (pass == 0 ? fields->rows[i].in_path
                          : is_name(&fields->rows[i]) && !fields->rows[i].in_path)
                if (n-- == 0)
                    return fields->rows[i].name;
    return NULL;
}

/* --- values into the document */

static struct json *scalar(struct cli *c, const struct field *f, const char *text)
{
    int64_t named;
    if (f->named && f->named(text, &named))
        text = arena_printf(c->mem, "%lld", (long long)named);
    struct json *v = json_new(c->mem, f->type == F_BOOL  ? JSON_BOOL
                                      : f->type == F_INT ? JSON_NUMBER
                                                         : JSON_TEXT);
    v->text = arena_text(c->mem, text);
    v->len = strlen(text);
    v->is_int = f->type == F_INT;
    v->number = v->is_int ? strtoll(text, NULL, 10) : 0;
    v->flag = f->type == F_BOOL && strchr("tTyY1oO", text[0]) && strcasecmp(text, "off") != 0;
    return v;
}

void doc_drop(struct json *doc, const char *name)
{
    struct json **at = &doc->first;
    doc->last = NULL;
    while (*at) {
        if (text_is((*at)->name, name)) {
            *at = (*at)->next;
        } else {
            doc->last = *at;
            at = &(*at)->next;
        }
    }
}

bool doc_set(struct cli *c, struct json *doc, const char *name, const char *text)
{
    doc_drop(doc, name);
    json_add(doc, name, scalar(c, &(struct field){ .type = F_TEXT }, text));
    return true;
}

/* "K=V" -> V under K; "K" takes its value from our own environment. */
static bool pair_add(struct cli *c, struct json *to, const char *text, struct err *err)
{
    size_t n = strcspn(text, "=");
    const char *key = arena_bytes(c->mem, text, n), *value = text[n] ? text + n + 1 : getenv(key);
    if (!value)
        return err_set(err, RC_BAD_INPUT,
                       "'%.60s' is not NAME=VALUE, and your environment has no such variable",
                       text);
    return doc_set(c, to, key, value);
}

static bool doc_add(struct cli *c, struct json *doc, const struct field *f, const char *text,
                    struct err *err)
{
    struct json *list = json_get(doc, f->name), *value;
    bool many = f->type == F_TEXTS || f->type == F_PAIRS || f->type == F_OBJECTS;
    if (!many) {
        /* the last one counts, so that an alias in a shell can be overruled */
        doc_drop(doc, f->name);
        json_add(doc, f->name, scalar(c, f, text));
        return true;
    }
    if (!list)
        json_add(doc, f->name,
                 list = json_new(c->mem, f->type == F_PAIRS ? JSON_OBJECT : JSON_LIST));
    if (f->type == F_PAIRS)
        return pair_add(c, list, text, err);
    if (f->type == F_TEXTS)
        return json_add(list, NULL, scalar(c, &(struct field){ .type = F_TEXT }, text)), true;
    if (!json_parse(SLICE(text), c->mem, &value, err))
        return false;
    for (struct json *m = value->type == JSON_LIST ? value->first : value, *next; m; m = next) {
        next = value->type == JSON_LIST ? m->next : NULL;
        m->next = NULL;
        json_add(list, NULL, m);
    }
    return true;
}

/* --- parsing */

struct parse {
    struct cli *c;
    const struct word *w;
    struct flags *out;
    int argc, at;
    char **argv;
    void *tried;                        /* a struct of what the verb takes, to try values on */
    size_t positional;
    struct err *err;
};
enum home { HOME_OWN, HOME_VERB, HOME_GLOBAL, HOMES };

static const struct field *find(const struct parse *p, const char *flag, size_t n, enum home *home)
{
    const struct fields *tables[HOMES]
        = { p->w->own ? p->w->own : &no_fields, word_takes(p->w), &global_fields };
    for (int h = 0; h < HOMES; h++) {
        const struct field *f = flag_find(tables[h], flag, n);
        if (f)
            return *home = (enum home)h, f;
    }
    return NULL;
}

static bool unknown(const struct parse *p, const char *flag)
{
    const struct fields *tables[HOMES]
        = { p->w->own ? p->w->own : &no_fields, word_takes(p->w), &global_fields };
    char best[64] = "";
    size_t distance = SIZE_MAX, n = strcspn(flag, "=");
    const char *given = arena_bytes(p->c->mem, flag, n);
    for (int h = 0; h < HOMES; h++)
        for (size_t i = 0; i < tables[h]->count; i++) {
            struct slice s;
            for (size_t at = 0; flag_next(&tables[h]->rows[i], &at, &s);) {
                char known[64];
                snprintf(known, sizeof known, "%s%.*s", tables[h]->rows[i].flag ? "" : "--",
                         (int)s.len, s.at);
                for (char *u = known; *u; u++)
                    *u = *u == '_' ? '-' : *u;
                size_t d = text_distance(given, known);
                if (d < distance && known[1] == '-')
                    distance = d, memcpy(best, known, sizeof best);
            }
        }
    return err_set(p->err, RC_BAD_INPUT,
                   "%s knows no flag '%.60s'; did you mean %s? (arcus %s --help shows all)",
                   p->w->name, given, best, p->w->name);
}

static bool give(struct parse *p, const struct field *f, enum home home, const char *flag, size_t n,
                 const char *text)
{
    struct err *err = p->err;
    void *to = home == HOME_OWN ? p->out->own : home == HOME_GLOBAL ? (void *)p->c : p->tried;
    bool pairs_from_env = f->type == F_PAIRS && !strchr(text, '=');
    bool ok = pairs_from_env || (home == HOME_VERB && f->type == F_OBJECTS)
              || bind_text(f, text, p->c->mem, to, err);
    if (ok && home == HOME_VERB)
        ok = doc_add(p->c, p->out->doc, f, text, err);
    if (ok)
        return true;
    char why[sizeof err->text];
    memcpy(why, err->text, sizeof why);
    const char *inner = err->field[0] && text_starts(why, err->field)
                            ? why + strlen(err->field) + strspn(why + strlen(err->field), ": ")
                            : why;
    return err_set(err, RC_BAD_INPUT, "%.*s: %s", (int)n, flag, inner);
}

static bool value_of(struct parse *p, const char *flag, size_t n, const char *attached,
                     const char **out)
{
    if (!attached && p->at + 1 >= p->argc)
        return err_set(p->err, RC_BAD_INPUT, "%.*s needs a value (arcus %s --help)", (int)n, flag,
                       p->w->name);
    *out = attached ? attached : p->argv[++p->at];
    return true;
}

static bool long_flag(struct parse *p, const char *arg)
{
    size_t n = strcspn(arg, "=");
    const char *value = arg[n] ? arg + n + 1 : NULL;
    enum home home;
    const struct field *f = find(p, arg, n, &home);
    if (!f)
        return unknown(p, arg);
    if (!flag_takes_value(f))
        value = value ? value : "true";
    return (value || value_of(p, arg, n, NULL, &value)) && give(p, f, home, arg, n, value);
}

/* -g 1, -g1, -it */
static bool short_flags(struct parse *p, const char *arg)
{
    for (const char *at = arg + 1; *at; at++) {
        char flag[3] = { '-', *at, 0 };
        enum home home;
        const char *value = NULL;
        const struct field *f = find(p, flag, 2, &home);
        if (!f)
            return unknown(p, at == arg + 1 ? arg : flag);
        if (flag_takes_value(f))
            return value_of(p, flag, 2, at[1] ? at + 1 + (at[1] == '=') : NULL, &value)
                   && give(p, f, home, flag, 2, value);
        if (!give(p, f, home, flag, 2, "true"))
            return false;
    }
    return true;
}

static bool positional(struct parse *p, const char *arg)
{
    const char *name = nth(p->c, p->w, p->positional);
    const struct field *f = name ? bind_find(word_takes(p->w), name) : NULL;
    const struct field *own = name && !f && p->w->own ? bind_find(p->w->own, name) : NULL;
    bool last = p->w->many && (!name || !nth(p->c, p->w, p->positional + 1));
    if (last) {
        if (!p->out->rest.at)
            p->out->rest.at = ARENA_ARRAY(p->c->mem, const char *, (size_t)p->argc);
        p->out->rest.at[p->out->rest.count++] = arg;
        if (name)
            p->out->each = name;
        else
            return true;                /* checked by the server, each by itself */
    }
    if (own || f) {
        p->positional++;
        return give(p, own ? own : f, own ? HOME_OWN : HOME_VERB, name, strlen(name), arg);
    }
    return err_set(p->err, RC_BAD_INPUT, "'%.60s' is one argument too many; usage: arcus %s %s",
                   arg, p->w->name, p->w->args ? p->w->args : "");
}

static void rest_from(struct parse *p, int at)
{
    p->out->rest = (struct texts){ (const char **)p->argv + at, (size_t)(p->argc - at) };
    p->at = p->argc;
}

static bool walk(struct parse *p)
{
    for (bool only_arguments = false; p->at < p->argc; p->at++) {
        char *arg = p->argv[p->at];
        bool flag = !only_arguments && arg[0] == '-' && arg[1];
        if (!only_arguments && text_is(arg, "--")) {
            only_arguments = true;
            if (p->w->command)
                rest_from(p, p->at + 1);
        } else if (!flag && p->w->command && !nth(p->c, p->w, p->positional)) {
            rest_from(p, p->at);
        } else if (flag ? !(arg[1] == '-' ? long_flag : short_flags)(p, arg)
                        : !positional(p, arg)) {
            return false;
        }
    }
    return true;
}

static bool complete(struct parse *p)
{
    const char *name = nth(p->c, p->w, p->positional);
    const struct field *f = name ? bind_find(word_takes(p->w), name) : NULL;
    if (name && !f && p->w->own)
        f = bind_find(p->w->own, name);
    if (p->c->help || !f || (!f->required && !f->in_path) || json_get(p->out->doc, name))
        return true;
    char *shown = arena_text(p->c->mem, name); /* as the usage line has it */
    for (char *at = shown; *at; at++)
        *at = (char)toupper((unsigned char)*at);
    return err_set(p->err, RC_BAD_INPUT, "%s is missing; usage: arcus %s %s", shown, p->w->name,
                   p->w->args ? p->w->args : "");
}

static bool add_fixed(struct cli *c, const struct word *w, struct json *doc, struct err *err)
{
    struct json *fixed;
    if (!w->fixed)
        return true;
    if (!json_parse(SLICE(w->fixed), c->mem, &fixed, err))
        return err_wrap(err, "a defect of ours in the word %s", w->name);
    for (struct json *m = fixed->first, *next; m; m = next) {
        next = m->next;
        m->next = NULL;
        json_add(doc, m->name, m);
    }
    return true;
}

static void own_defaults(struct cli *c, const struct fields *own, void *to)
{
    struct err ignored;
    for (size_t i = 0; i < own->count; i++)
        if (own->rows[i].def)
            (void)!bind_text(&own->rows[i], own->rows[i].def, c->mem, to, &ignored);
}

bool flags_parse(struct cli *c, const struct word *w, int argc, char **argv, struct flags *out,
                 struct err *err)
{
    struct parse p = { .c = c, .w = w, .out = out, .argc = argc, .argv = argv, .err = err };
    *out = (struct flags){ .doc = json_new(c->mem, JSON_OBJECT) };
    p.tried = arena_take(c->mem, 1, word_takes(w)->size);
    if (w->own) {
        out->own = arena_take(c->mem, 1, w->own->size);
        own_defaults(c, w->own, out->own);
    }
    if (!walk(&p) || !complete(&p) || !add_fixed(c, w, out->doc, err))
        return false;
    if (c->no_colour)
        c->colour = false;
    return true;
}

bool flags_global(struct cli *c, int *argc, char ***argv, struct err *err)
{
    static const struct word none = { .name = "", .verb = -1 };
    struct flags out = { 0 };
    struct parse p = { .c = c, .w = &none, .out = &out, .argc = *argc, .argv = *argv, .err = err };
    for (; p.at < p.argc && p.argv[p.at][0] == '-' && p.argv[p.at][1]; p.at++) {
        char *arg = p.argv[p.at];
        if (text_is(arg, "--version") || text_is(arg, "-V"))
            break;
        if (!(arg[1] == '-' ? long_flag : short_flags)(&p, arg))
            return err_set(
                err, RC_BAD_INPUT,
                "'%.60s' is not a flag that may stand before a word; arcus --help shows them", arg);
    }
    *argc -= p.at;
    *argv += p.at;
    if (c->no_colour)
        c->colour = false;
    return true;
}
