/* cli.h - the command line: words -> verbs. It knows the table of verbs and HTTP, and nothing of the server.
 *
 * Standard output is for results, standard error for everything said to a person (progress, hints, errors). Exit codes: 0 good, the
 * job's own code for `run`, else rc_exit() of what went wrong: 2 bad input, 3 not allowed, 4 not found, 5 conflict, 7 try again, 1 the rest. */
#pragma once
#include "model/verb.h"
#include "model/view.h"
#include "net/http.h"
#include "wire/bind.h"

int cli_main(int argc, char **argv);

enum output { OUT_TABLE, OUT_WIDE, OUT_JSON, OUT_YAML };
struct context { const char *name, *server, *key, *pin, *ca, *project; };
struct cli {
    struct os *os;
    struct arena *mem;              /* lives as long as the command */
    struct context context;         /* what the flags, the environment and the config file say */
    struct http_client *client;     /* made at the first call */
    enum output output;
    bool quiet, colour, tty_err;    /* colour: of standard output */
    const char *config_path;
    struct err err;
};

/* --- words */
struct column { const char *title, *member; bool wide, right; };    /* member: a path in the JSON of one item; see print.c for its kinds */
struct word {
    const char *name;               /* "run", "secrets set" */
    int verb;                       /* enum verb_id; -1: none */
    int (*run)(struct cli *c, const struct word *w, int argc, char **argv);     /* argv: behind the word; returns the exit code */
    const char *args;               /* of the usage line: "JOB [TASK]" */
    const char *help;               /* one line */
    const char *more, *examples;
    const struct column *columns;
    size_t column_count;
    const char *fixed;              /* members that the word itself sets, as JSON: {"state":"cordoned"} */
};
extern const struct word words[];
extern const size_t word_count;
const struct word *word_find(int argc, char **argv, int *used);     /* the longest that fits */
void word_help(const struct word *w);                               /* to standard output */
int word_generic(struct cli *c, const struct word *w, int argc, char **argv);   /* flags -> verb -> print */

/* --- flags: from the verb's field table. Positional arguments fill `in_path` members in order, then `rest` (may be NULL). */
struct flags { const struct word *word; const struct fields *fields; struct json *doc; struct texts rest; bool help; };
bool flags_parse(struct cli *c, struct flags *f, int argc, char **argv, struct err *err);
/* The global ones (--context --server --key --project -o -q --no-color), taken out of argv wherever they stand before `--`. */
bool flags_global(struct cli *c, int *argc, char **argv, struct err *err);
const struct field *flag_find(const struct fields *fields, const char *flag);   /* "--gpus" or "-g" */

/* --- calls: one request, waited for. Failure: *err has the server's own words. */
bool cli_connect(struct cli *c, struct err *err);
bool cli_call(struct cli *c, enum verb_id verb, const struct json *ask, struct json **reply, struct err *err);
bool cli_get_all(struct cli *c, enum verb_id verb, const struct json *ask, int64_t limit, struct json **list, struct err *err); /* follows every page unless limit > 0 */
/* The route of a verb filled in: path members into the path, the rest into the query or the body. */
bool cli_route(struct cli *c, enum verb_id verb, const struct json *ask, char **path, struct str *body, struct err *err);
void cli_wait(struct cli *c, bool (*done)(void *arg), void *arg);   /* runs the loop until done */

/* --- config: contexts of several clouds in one file, mode 0600 */
bool config_load(struct cli *c, const char *name, struct err *err);            /* fills c->context; an absent file is fine */
int word_config(struct cli *c, const struct word *w, int argc, char **argv);   /* config list|use|set|remove|show */

/* --- printing */
void print_reply(struct cli *c, const struct word *w, const struct json *reply);       /* a list or one thing, as -o says */
void print_table(struct cli *c, const struct column *columns, size_t count, const struct json *items);
void print_described(struct cli *c, const struct json *thing);                         /* one thing, line by line */
int print_error(struct cli *c, const struct err *err);                                 /* "arcus: ..." and the exit code */
struct progress;                                                                        /* a spinner or a bar on a terminal, after a second */
struct progress *progress_start(struct cli *c, const char *what, int64_t total);        /* total 0: a spinner */
void progress_set(struct progress *p, int64_t done);
void progress_text(struct progress *p, const char *what);
void progress_end(struct progress *p);                                                  /* leaves no trace; NULL is fine */

/* --- words with thought in them, one file each */
int word_run(struct cli *c, const struct word *w, int argc, char **argv);
int word_submit(struct cli *c, const struct word *w, int argc, char **argv);
int word_ps(struct cli *c, const struct word *w, int argc, char **argv);
int word_describe(struct cli *c, const struct word *w, int argc, char **argv);
int word_logs(struct cli *c, const struct word *w, int argc, char **argv);
int word_exec(struct cli *c, const struct word *w, int argc, char **argv);
int word_cp(struct cli *c, const struct word *w, int argc, char **argv);
int word_events(struct cli *c, const struct word *w, int argc, char **argv);
int word_usage(struct cli *c, const struct word *w, int argc, char **argv);
int word_login(struct cli *c, const struct word *w, int argc, char **argv);
int word_secret_set(struct cli *c, const struct word *w, int argc, char **argv);
int word_image_import(struct cli *c, const struct word *w, int argc, char **argv);
int word_version(struct cli *c, const struct word *w, int argc, char **argv);
int word_completion(struct cli *c, const struct word *w, int argc, char **argv);
int word_help_word(struct cli *c, const struct word *w, int argc, char **argv);
