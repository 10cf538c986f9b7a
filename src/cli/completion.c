/* completion.c - scripts for bash and zsh, printed from the table of words and their fields, so
 * they know what the program knows. */
#include "cli/cli.h"
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

static void bash(struct str *out)
{
    str_text(out, "# bash completion of arcus; use it with: source <(arcus completion bash)\n"
                  "_arcus() {\n    local cur=\"${COMP_WORDS[COMP_CWORD]}\" list=\"\"\n"
                  "    local word=\"${COMP_WORDS[1]}\" sub=\"${COMP_WORDS[2]}\"\n"
                  "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        list=\"");
    for (size_t i = 0; i < word_count; i++)
        if (first_of_name(i))
            str_printf(out, "%.*s ", (int)strcspn(words[i].name, " "), words[i].name);
    str_text(out, "up server agent\"\n    else\n        case \"$word $sub\" in\n");
    for (size_t i = 0; i < word_count; i++) {
        size_t n = strcspn(words[i].name, " ");
        const char *sub = words[i].name[n] ? words[i].name + n + 1 : NULL;
        if (sub && !text_is(sub, "list"))
            str_printf(out, "        \"%.*s %s\") list=\"", (int)n, words[i].name, sub);
        else
            continue;
        put_all_flags(out, &words[i]);
        str_text(out, "\" ;;\n");
    }
    for (size_t i = 0; i < word_count; i++) {
        size_t n = strcspn(words[i].name, " ");
        if (!first_of_name(i))
            continue;
        str_printf(out, "        \"%.*s \"*) list=\"", (int)n, words[i].name);
        put_subwords(out, i);
        put_all_flags(out, &words[i]);
        str_text(out, "\" ;;\n");
    }
    str_text(out, "        esac\n    fi\n    COMPREPLY=($(compgen -W \"$list\" -- \"$cur\"))\n"
                  "    [ ${#COMPREPLY[@]} -eq 0 ] && COMPREPLY=($(compgen -f -- \"$cur\"))\n"
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
    if (!flags_parse(c, w, argc, argv, &f, &c->err))
        return print_error(c, &c->err);
    if (c->help)
        return word_help(w), 0;
    const char *shell = ((struct completion_own *)f.own)->shell;
    if (!completion_text(&out, shell)) {
        err_set(&c->err, RC_BAD_INPUT, "completion knows bash and zsh, not '%.40s'", shell);
        return print_error(c, &c->err);
    }
    return out_write(out.at, out.len) ? 0 : 1;
}
