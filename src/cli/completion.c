/* completion.c - scripts for bash and zsh, printed from the table of words and their fields, so
 * they know what the program knows. Names of jobs, nodes and the like they ask the program for,
 * while somebody waits: two seconds at most, and an error is no name. */
#include "cli/cli.h"
#include "model/job_state.h"
#include <stdio.h>

struct completion_own { const char *shell; };
static const struct field completion_rows[] = {
    FIELD(struct completion_own, shell, TEXT, .required = true, .max = 16, .flag = "",
          .help = "bash or zsh"),
};
const struct fields completion_fields = FIELDS(completion_own, completion_rows);

static void put_flags(struct str *out, const struct word *w, const struct fields *fields, bool verb)
{
    for (size_t i = 0; fields && i < fields->count; i++) {
        struct slice s;
        if (verb && word_positional(w, fields->rows[i].name))
            continue;
        for (size_t at = 0; flag_next(&fields->rows[i], &at, &s);) {
            if (fields->rows[i].flag && s.at[1] != '-')
                continue;
            str_text(out, fields->rows[i].flag ? " " : " --");
            for (size_t k = 0; k < s.len; k++)
                str_char(out, s.at[k] == '_' ? '-' : s.at[k]);
        }
    }
}

static void put_all_flags(struct str *out, const struct word *w)
{
    put_flags(out, w, w->own, false);
    put_flags(out, w, word_takes(w), true);
    put_flags(out, w, &global_fields, false);
}

static bool first_of_name(size_t i)
{
    size_t n = strcspn(words[i].name, " ");
    for (size_t k = 0; k < i; k++)
        if (strcspn(words[k].name, " ") == n && strncmp(words[k].name, words[i].name, n) == 0)
            return false;
    return true;
}

static void put_subwords(struct str *out, size_t first)
{
    size_t n = strcspn(words[first].name, " ");
    for (size_t k = first; k < word_count; k++)
        if (strncmp(words[k].name, words[first].name, n) == 0 && words[k].name[n] == ' ')
            str_printf(out, " %s", words[k].name + n + 1);
}

/* What to ask the program for the names that stand at a word of the usage line, or behind a flag. */
static const struct {
    const char *kind, *ask;
} names[] = {
    { "JOB", "ps --all" },   { "NODE", "nodes" },         { "PROJECT", "projects" },
    { "USER", "users" },     { "ACCOUNT", "accounts" },   { "KEY", "keys" },
    { "VOLUME", "volumes" }, { "IMAGE", "images" },       { "--context", "config" },
    { "--node", "nodes" },   { "--project", "projects" }, { "--secret", "secrets" },
};

static const char *names_of(const struct word *w)
{
    const char *args = text_starts(w->args, "[-it] ") ? w->args + 6 : w->args;
    size_t n = strcspn(args, " .");
    if (text_starts(w->name, "secrets ") && text_starts(args, "NAME"))
        return "secrets";
    if (text_starts(w->name, "config ") && text_starts(args, "NAME"))
        return "config";
    for (size_t i = 0; i < COUNT(names); i++)
        if (strlen(names[i].kind) == n && strncmp(names[i].kind, args, n) == 0)
            return names[i].ask;
    return "";
}

static void put_word(struct str *out, const struct word *w, const char *pattern)
{
    str_printf(out, "        %s) ask=\"%s\" flags=\"", pattern, names_of(w));
    put_all_flags(out, w);
    str_text(out, "\" subs=\"");
    if (pattern[strlen(pattern) - 1] == '*')
        put_subwords(out, (size_t)(w - words));
    if (w->run == word_completion)
        str_text(out, " bash zsh");
    str_text(out, "\" ;;\n");
}

/* Words that a flag knows: cases of "$word $prev", where the program's own flags have any word. */
static void put_values(struct str *out, const char *word, size_t n, const struct fields *fields)
{
    for (size_t i = 0; fields && i < fields->count; i++) {
        const struct field *f = &fields->rows[i];
        struct slice s;
        for (size_t at = 0; f->type == F_ENUM && flag_next(f, &at, &s);) {
            str_printf(out, "    \"%.*s\"%s\" %s%.*s\") list=\"", (int)n, word, n ? "" : "*",
                       f->flag ? "" : "--", (int)s.len, s.at);
            for (size_t k = 0; k < f->names->count; k++)
                str_printf(out, "%s ", f->names->at[k]);
            str_text(out, "\" ;;\n");
        }
    }
}

static void put_all_values(struct str *out)
{
    str_text(out, "    case \"$word $prev\" in\n");
    for (size_t i = 0; i < word_count; i++) {
        put_values(out, words[i].name, strcspn(words[i].name, " "), words[i].own);
        put_values(out, words[i].name, strcspn(words[i].name, " "), word_takes(&words[i]));
    }
    str_text(out, "    \"ps --state\"|\"ps -s\") list=\"");
    for (int state = 0; state < JOB_STATE_COUNT; state++)
        str_printf(out, "%s ", job_state_name((enum job_state)state));
    str_text(out, "\" ;;\n");
    put_values(out, "", 0, &global_fields);
    for (size_t i = 0; i < COUNT(names); i++)
        if (names[i].kind[0] == '-')
            str_printf(out, "    *\" %s\") list=\"$(_arcus_names %s)\" ;;\n", names[i].kind,
                       names[i].ask);
    str_text(out, "    *) list=\"$subs\"\n"
                  "        case \"$cur\" in\n        -*) list=\"$flags\" ;;\n"
                  "        *) [ -n \"$ask\" ] && list=\"$list $(_arcus_names $ask)\" ;;\n"
                  "        esac ;;\n    esac\n");
}

/* compgen expands its list as a shell does, so only names without a meaning to one are offered. */
static void bash(struct str *out)
{
    str_text(out,
             "# bash completion of arcus; use it with: source <(arcus completion bash)\n"
             "_arcus_names() {\n"
             "    timeout 2 \"${COMP_WORDS[0]}\" \"$@\" -q 2>/dev/null </dev/null | awk '\n"
             "        NR == 1 { for (i = 1; i <= NF; i++) if ($i == \"NAME\") n = i; next }\n"
             "        n && $n != \"-\" && $n ~ /^[A-Za-z0-9._:@\\/-]+$/ { print $n }'\n"
             "}\n"
             "_arcus() {\n    local cur=\"${COMP_WORDS[COMP_CWORD]}\" "
             "prev=\"${COMP_WORDS[COMP_CWORD-1]}\"\n"
             "    local word=\"${COMP_WORDS[1]}\" sub=\"${COMP_WORDS[2]}\" list flags subs ask\n"
             "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        word='' subs=\"");
    for (size_t i = 0; i < word_count; i++)
        if (first_of_name(i))
            str_printf(out, "%.*s ", (int)strcspn(words[i].name, " "), words[i].name);
    str_text(out, "up server agent restore\" flags=\"");
    put_flags(out, NULL, &global_fields, false);
    str_text(out, "\"\n    else\n        case \"$word $sub\" in\n");
    for (int pass = 0; pass < 2; pass++) /* the longer ones first */
        for (size_t i = 0; i < word_count; i++) {
            char pattern[64];
            size_t n = strcspn(words[i].name, " ");
            const char *sub = words[i].name[n] ? words[i].name + n + 1 : NULL;
            if (pass == 0 ? !sub || text_is(sub, "list") : !first_of_name(i))
                continue;
            snprintf(pattern, sizeof pattern, pass == 0 ? "\"%.*s %s\"" : "\"%.*s \"*", (int)n,
                     words[i].name, sub ? sub : "");
            put_word(out, &words[i], pattern);
        }
    str_text(out, "        esac\n        [ \"$COMP_CWORD\" -eq 2 ] || subs=\n    fi\n");
    put_all_values(out);
    str_text(out, "    COMPREPLY=($(compgen -W \"$list\" -- \"$cur\"))\n"
                  "    [ ${#COMPREPLY[@]} -eq 0 ] && [ -z \"$ask\" ] && COMPREPLY=($(compgen -f -- "
                  "\"$cur\"))\n"
                  "    return 0\n}\ncomplete -F _arcus arcus\n");
}

/* zsh can run the functions of bash. */
static void zsh(struct str *out)
{
    str_text(out, "#compdef arcus\n"
                  "# zsh completion of arcus; use it with: source <(arcus completion zsh)\n"
                  "autoload -U +X compinit && compinit\n"
                  "autoload -U +X bashcompinit && bashcompinit\n");
    bash(out);
}

bool completion_text(struct str *out, const char *shell)
{
    if (!text_is(shell, "bash") && !text_is(shell, "zsh"))
        return false;
    (text_is(shell, "bash") ? bash : zsh)(out);
    return true;
}

int word_completion(struct cli *c, const struct word *w, int argc, char **argv)
{
    struct flags f;
    AUTO(str_done) struct str out = { 0 };
    int over = word_open(c, w, argc, argv, &f);
    if (over >= 0)
        return over;
    const char *shell = ((struct completion_own *)f.own)->shell;
    if (!completion_text(&out, shell)) {
        err_set(&c->err, RC_BAD_INPUT, "completion knows bash and zsh, not '%.40s'", shell);
        return print_error(c, &c->err);
    }
    return out_write(out.at, out.len) ? 0 : 1;
}
