/* ssh_keys.c - `arcus ssh-keys add`: a .pub file, looked at here before it is sent. A private key never leaves this machine. */
#include "cli/cli.h"
#include "model/ssh_key.h"
#include <stdio.h>
#include <unistd.h>

struct add_own { const char *file; };
static const struct field add_rows[] = {
    FIELD(struct add_own, file, TEXT, .required = true, .in_path = true, .max = 4096, .help = "a .pub file; - is standard input"),
};
const struct fields ssh_key_add_fields = FIELDS(add_own, add_rows);

static bool read_key(struct cli *c, const char *file, const char **line, struct err *err)
{
    struct slice text;
    char here[4096];
    const char *path = file[0] == '/' || !getcwd(here, sizeof here) ? file : arena_printf(c->mem, "%s/%s", here, file);
    if (text_is(file, "-") ? !stdin_read(c, SSH_KEY_TEXT, &text, err) : !file_read(c->os, path, SSH_KEY_TEXT, c->mem, &text, err))
        return false;
    const char *all = arena_bytes(c->mem, text.at, text.len);
    if (strstr(all, "PRIVATE KEY"))
        return err_set(err, RC_BAD_INPUT, "%s is a private key, which nobody else may see; give the .pub file beside it", file);
    return ssh_key_parse(all, c->mem, line, err) || err_wrap(err, "%s", file);
}

int word_ssh_key_add(struct cli *c, const struct word *w, int argc, char **argv)
{
    struct flags f;
    struct json *reply;
    const char *line;
    int over = word_open(c, w, argc, argv, &f);
    if (over >= 0)
        return over;
    if (!read_key(c, ((struct add_own *)f.own)->file, &line, &c->err))
        return print_error(c, &c->err);
    doc_set(c, f.doc, "key", line);
    if (!cli_call(c, VERB_SSH_KEY_ADD, f.doc, &reply, &c->err))
        return print_error(c, &c->err);
    print_reply(c, w, reply);
    return 0;
}
