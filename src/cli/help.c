/* help.c - what a word does and takes, printed from the same tables that read its arguments. */
#include "cli/cli.h"
#include "base/version.h"
#include <stdio.h>

enum { COLUMN = 26, WIDTH = 100 };

static void wrap(struct str *out, size_t indent, const char *text)
{
    size_t at = indent;
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, " ");
        if (at > indent && at + 1 + n > WIDTH) {
            str_printf(out, "\n%*s", (int)indent, "");
            at = indent;
        }
        if (at > indent)
            str_char(out, ' '), at++;
        str_put(out, p, n);
        at += n;
        p += n + strspn(p + n, " ");
    }
    str_char(out, '\n');
}

static const char *value_name(const struct field *f)
{
    static const char *const names[FIELD_TYPE_COUNT] = {
        [F_INT] = "N",         [F_TEXT] = "TEXT",        [F_ID] = "ID",        [F_TIME] = "TIME",
        [F_DURATION] = "TIME", [F_MIB] = "SIZE",         [F_MILLI] = "N",      [F_ENUM] = "WORD",
        [F_TEXTS] = "TEXT",    [F_PAIRS] = "NAME=VALUE", [F_OBJECTS] = "JSON", [F_JSON] = "JSON",
    };
    return names[f->type] ? names[f->type] : "";
}

/* Where the command line does more with a field than the API: it follows the pages. */
static const char *help_of(const struct word *w, const struct field *f)
{
    static const struct {
        const char *word, *name, *help; /* word NULL: any */
    } ours[] = {
        { "audit list", "limit", "at most this many; the newest 100 when left out" },
        { NULL, "limit", "at most this many; all when left out" },
        { "audit export", "page", "from the page of this mark on, the `next` of the one before" },
        { NULL, "page", "only the page of this mark, the `next` of the one before" },
    };
    for (size_t i = 0; i < COUNT(ours); i++)
        if (text_is(f->name, ours[i].name) && (!ours[i].word || (w && text_is(w->name, ours[i].word))))
            return ours[i].help;
    return f->help ? f->help : "";
}

static void flag_line(struct str *out, const struct word *w, const struct field *f)
{
    AUTO(str_done) struct str left = { 0 }, right = { 0 };
    struct slice s;
    for (size_t at = 0; flag_next(f, &at, &s);) {
        str_printf(&left, "%s%s", left.len ? ", " : "  ", f->flag ? "" : "--");
        for (size_t i = 0; i < s.len; i++)
            str_char(&left, s.at[i] == '_' ? '-' : s.at[i]);
    }
    if (!left.len)
        return;
    if (flag_takes_value(f))
        str_printf(&left, " %s", value_name(f));
    str_text(&right, help_of(w, f));
    for (size_t i = 0;
         f->type == F_ENUM && !strstr(right.at, f->names->at[0]) && i < f->names->count; i++)
        str_printf(&right, "%s%s", i ? ", " : ": ", f->names->at[i]);
    if (f->type == F_TEXTS || f->type == F_PAIRS)
        str_text(&right, "; may be repeated");
    if (f->def && *f->def && f->type != F_BOOL && f->def[0] != '-'
        && !strstr(right.at, "when left out"))
        str_printf(&right, " (%s when left out)", f->def);
    if (f->example)
        str_printf(&right, ", e.g. %s", f->example);
    if (left.len + 2 > COLUMN)
        str_printf(out, "%s\n%*s", left.at, COLUMN, "");
    else
        str_printf(out, "%-*s", COLUMN, left.at);
    wrap(out, COLUMN, right.at);
}

static bool hidden_by(const struct fields *own, const struct field *f)
{
    struct slice s;
    size_t shown = 0, all = 0;
    for (size_t at = 0; flag_next(f, &at, &s); all++)
        shown += !own || !f->flag || !flag_find(own, s.at, s.len);
    return all && !shown;
}

/* w: leave out what is given in another way in this word; NULL: show all. */
static void flag_lines(struct str *out, const struct word *w, const struct fields *fields)
{
    for (size_t i = 0; fields && i < fields->count; i++) {
        const struct field *f = &fields->rows[i];
        bool elsewhere = w && (word_positional(w, f->name) || hidden_by(w->own, f)
                               || (w->fixed && strstr(w->fixed, f->name)));
        if (!elsewhere)
            flag_line(out, w, f);
    }
}

static void indented(struct str *out, const char *text, const char *before)
{
    while (*text) {
        size_t n = strcspn(text, "\n");
        str_printf(out, "%s%.*s\n", before, (int)n, text);
        text += n + (text[n] == '\n');
    }
}

void word_help(const struct word *w)
{
    AUTO(str_done) struct str out = { 0 }, flags = { 0 };
    const char *list = strstr(w->name, " list");
    str_printf(&out, "usage: arcus %.*s%s%s\n\n%s.\n",
               (int)(list ? (size_t)(list - w->name) : strlen(w->name)), w->name,
               text_given(w->args) ? " " : "", w->args ? w->args : "", w->help);
    if (w->more) {
        str_char(&out, '\n');
        indented(&out, w->more, "");
    }
    flag_lines(&flags, NULL, w->own);
    flag_lines(&flags, w, word_takes(w));
    if (flags.len)
        str_printf(&out, "\nflags:\n%s", flags.at);
    str_text(&out, "\nflags of every word:\n");
    flag_lines(&out, NULL, &global_fields);
    if (w->examples) {
        str_text(&out, "\nexamples:\n");
        indented(&out, w->examples, "  ");
    }
    if (list) {
        AUTO(str_done) struct str others = { 0 };
        size_t n = (size_t)(list - w->name) + 1;
        for (size_t i = 0; i < word_count; i++)
            if (&words[i] != w && strncmp(words[i].name, w->name, n) == 0)
                str_printf(&others, "  arcus %-22s %s\n", words[i].name, words[i].help);
        if (others.len)
            str_printf(&out, "\nalso:\n%s", others.at);
    }
    out_write(out.at, out.len);
}

/* Programs of the same binary that are not words of the command line. */
static const struct { const char *name, *help; } programs[] = {
    { "up", "Run a whole cloud on this machine" },
    { "server", "Run the head node" },
    { "agent", "Run the agent of a node" },
    { "restore", "Make a cloud from a backup" },
    { "sim", "Let the scheduler place the tasks of a trace on a fleet, in virtual time" },
};

static bool program_help(const char *name)
{
    for (size_t i = 0; i < COUNT(programs); i++)
        if (text_is(programs[i].name, name))
            return printf("%s: `arcus %s --help` tells its flags.\n", programs[i].help, name), true;
    return false;
}

/* Each begins at a row of the table of words, which is in this order. */
static const struct {
    const char *first, *title;
} groups[] = {
    { "run", "jobs" },
    { "nodes list", "fleet" },
    { "projects list", "people and keys" },
    { "secrets list", "data" },
    { "events", "looking back" },
    { "login", "this program" },
};

void help_all(void)
{
    AUTO(str_done) struct str out = { 0 };
    str_printf(&out,
               "arcus %s - a GPU cloud in one program\n\nusage: arcus WORD [ARGUMENTS] [FLAGS]\n\n",
               ARCUS_VERSION);
    for (size_t i = 0; i < word_count; i++) {
        const char *list = strstr(words[i].name, " list");
        char name[64];
        for (size_t g = 0; g < COUNT(groups); g++)
            if (text_is(groups[g].first, words[i].name))
                str_printf(&out, "%s%s:\n", i ? "\n" : "", groups[g].title);
        snprintf(name, sizeof name, "%.*s",
                 (int)(list ? (size_t)(list - words[i].name) : strlen(words[i].name)),
                 words[i].name);
        str_printf(&out, "  %-18s %s\n", name, words[i].help);
    }
    str_text(&out, "\nthe cloud itself:\n");
    for (size_t i = 0; i < COUNT(programs); i++)
        str_printf(&out, "  %-18s %s\n", programs[i].name, programs[i].help);
    str_text(&out, "\nflags of every word:\n");
    flag_lines(&out, NULL, &global_fields);
    str_text(&out, "\n`arcus WORD --help` tells more about a word.\n");
    out_write(out.at, out.len);
}

int word_help_word(struct cli *c, const struct word *w, int argc, char **argv)
{
    int used;
    (void)w;
    while (argc > 0 && argv[0][0] == '-')
        argc--, argv++;
    if (argc == 0)
        return help_all(), 0;
    const struct word *about = word_find(argc, argv, &used);
    if (!about && program_help(argv[0]))
        return 0;
    if (!about)
        return word_unknown(argc, argv, &c->err), print_error(c, &c->err);
    word_help(about);
    return 0;
}

int word_version(struct cli *c, const struct word *w, int argc, char **argv)
{
    struct flags f;
    int over = word_open(c, w, argc, argv, &f);
    if (over >= 0)
        return over;
    if (c->output == OUT_JSON || c->output == OUT_YAML) {
        struct json *doc = json_new(c->mem, JSON_OBJECT);
        doc_set(c, doc, "version", ARCUS_VERSION);
        print_data(c, doc);
    } else {
        printf("arcus %s\n", ARCUS_VERSION);
    }
    return 0;
}
