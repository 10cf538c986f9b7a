/* cli.c - argv -> a word, run. Flags of the whole program may stand before the word or among its
 * own. */
#include "base/version.h"
#include "cli/cli.h"
#include "wire/digest.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *const output_list[]
    = { [OUT_TABLE] = "table", [OUT_WIDE] = "wide", [OUT_JSON] = "json", [OUT_YAML] = "yaml" };
static const struct names output_names = NAMES(output_list);

static const struct field global_rows[] = {
    FIELD(struct cli, output, ENUM, .names = &output_names, .flag = "-o --output",
          .help = "table, wide, json or yaml", .example = "json"),
    FIELD(struct cli, quiet, BOOL, .flag = "-q --quiet",
          .help = "nothing on standard error but errors"),
    FIELD_AS(struct cli, context_name, "context", TEXT,
             .help = "another cloud of the config file (see arcus config list)", .example = "lab"),
    FIELD_AS(struct cli, context.server, "server", TEXT, .max = 1024,
             .help = "the address of the cloud, or several of one cloud with commas between", .example = "https://cloud.example.org:6640"),
    FIELD_AS(struct cli, context.key, "key", TEXT, .max = 256,
             .help = "the API key; better kept in the config file or in ARCUS_KEY"),
    FIELD_AS(struct cli, context.project, "project", TEXT,
             .help = "the project to speak for, by name or id", .example = "vision"),
    FIELD_AS(struct cli, no_colour, "no-color", BOOL, .flag = "--no-color --no-colour",
             .help = "no colours, even on a terminal"),
    FIELD(struct cli, help, BOOL, .flag = "-h --help", .help = "this help"),
};
const struct fields global_fields = FIELDS(cli, global_rows);

static void settle(struct cli *c)
{
    const char *path = getenv("ARCUS_CONFIG"), *home = getenv("HOME"), *no = getenv("NO_COLOR");
    char here[4096];
    c->colour = isatty(STDOUT_FILENO) && !text_given(no) && !text_is(getenv("TERM"), "dumb");
    c->tty_err = isatty(STDERR_FILENO) && !text_is(getenv("TERM"), "dumb");
    if (text_given(path))
        c->config_path = path[0] == '/' ? path
                                        : arena_printf(c->mem, "%s/%s",
                                                       getcwd(here, sizeof here) ? here : "", path);
    else
        c->config_path
            = arena_printf(c->mem, "%s/.config/arcus/config", text_given(home) ? home : "");
}

static int dispatch(struct cli *c, int argc, char **argv)
{
    int used = 0;
    if (!flags_global(c, &argc, &argv, &c->err))
        return print_error(c, &c->err);
    if (c->help || argc == 0) {
        help_all();
        return c->help ? 0 : 2;
    }
    if (text_is(argv[0], "--version") || text_is(argv[0], "-V"))
        return printf("arcus %s\n", ARCUS_VERSION), 0;
    const struct word *w = word_find(argc, argv, &used);
    if (!w)
        return word_unknown(argc, argv, &c->err), print_error(c, &c->err);
    return w->run(c, w, argc - used, argv + used);
}

int cli_main(int argc, char **argv)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct cli *c = ARENA_NEW(mem, struct cli);
    c->mem = mem;
    settle(c);
    if (!digest_start() && !err_set(&c->err, RC_INTERNAL, "libsodium does not start"))
        return print_error(c, &c->err);
    if (!(c->os = os_real_new(&c->err)))
        return print_error(c, &c->err);
    int code = dispatch(c, argc - 1, argv + 1);
    if (fflush(stdout) != 0 && code == 0)
        code = 1;                       /* nobody read it, or the disk is full */
    cli_disconnect(c);
    os_free(c->os);
    return code;
}
