/* cli.h - the command line: words -> verbs. It knows the table of verbs and HTTP, and nothing of
 * the server.
 *
 * Standard output is for results, standard error for everything said to a person (progress, hints,
 * errors). Exit codes: 0 good, the job's own code for `run`, else rc_exit() of what went wrong: 2
 * bad input, 3 not allowed, 4 not found, 5 conflict, 7 try again, 1 the rest. */
#pragma once
#include "model/verb.h"
#include "model/view.h"
#include "net/http.h"
#include "wire/bind.h"

int cli_main(int argc, char **argv);

enum output { OUT_TABLE, OUT_WIDE, OUT_JSON, OUT_YAML };
struct context { const char *name, *server, *key, *pin, *ca, *project; };
struct progress;
enum { CLI_SERVERS = 16 };
struct cli {
    struct os *os;
    struct arena *mem;              /* lives as long as the command */
    /* what the flags say; after cli_connect also what the environment and the config file say */
    struct context context;
    struct http_client *client;     /* made at the first call; one of: */
    struct http_client *clients[CLI_SERVERS];
    size_t client_count;
    int output;                     /* enum output */
    bool quiet, colour, tty_err, no_colour, help;   /* colour: of standard output */
    const char *context_name, *config_path;
    struct progress *progress;      /* the one that is shown: there is never a second */
    struct err err;
};
extern const struct fields global_fields;       /* flags of every word, members of struct cli */

/* --- words */
/* member: "name" or "kind:name"; table.c has the kinds */
struct column { const char *title, *member; bool wide, right; };
struct word {
    /* "run", "secrets set"; "nodes list" is also "nodes", and "node" also "nodes" */
    const char *name;
    int verb;                       /* enum verb_id; -1: none */
    /* argv: behind the word; returns the exit code */
    int (*run)(struct cli *c, const struct word *w, int argc, char **argv);
    const char *args;               /* of the usage line: "JOB [TASK]" */
    const char *help;               /* one line */
    const char *more, *examples;
    const struct column *columns;
    size_t column_count;
    /* members that arguments without a flag fill, in order; NULL: those of the path, then a
     * required name */
    const char *takes;
    const char *fixed; /* members that the word itself sets, as JSON: {"state":"cordoned"} */
    /* flags of the word that are not the verb's; they go before those */
    const struct fields *own;
    /* the first argument that fills no member begins a command line of its own */
    bool command;
    bool many;                      /* the last member that an argument fills may be given several times */
};
extern const struct word words[];
extern const size_t word_count;
/* the longest that fits; NULL: none */
const struct word *word_find(int argc, char **argv, int *used);
/* a sentence with the nearest; always false */
bool word_unknown(int argc, char **argv, struct err *err);
void word_help(const struct word *w);                               /* to standard output */
void help_all(void);
struct flags;
/* flags -> verb -> print */
int word_generic(struct cli *c, const struct word *w, int argc, char **argv);
/* how every word begins: its flags. -1: it goes on; else that is its exit code, since they were wrong or help was asked for */
int word_open(struct cli *c, const struct word *w, int argc, char **argv, struct flags *f);
/* One of several things failed, and is told: would every other too? Then what is left is told, and it is the end. */
bool several_end(struct cli *c, size_t left);
void several_print(struct cli *c, struct json *items);              /* as a list, as -o says */

/* --- flags: from the tables of the verb, the word and the whole program */
struct flags {
    struct json *doc;               /* what the verb takes, as far as it was given */
    void *own;                      /* the struct of word->own */
    struct texts rest;              /* the command line of a word with .command; of one with .many every value of: */
    const char *each;               /* the member that may be given several times */
};
MUST_CHECK bool flags_parse(struct cli *c, const struct word *w, int argc, char **argv,
                            struct flags *out, struct err *err);
/* those before the word */
MUST_CHECK bool flags_global(struct cli *c, int *argc, char ***argv, struct err *err);
/* "--gpus" or "-g" */
const struct field *flag_find(const struct fields *fields, const char *flag, size_t n);
/* its spellings, one after the other */
bool flag_next(const struct field *f, size_t *at, struct slice *flag);
bool flag_takes_value(const struct field *f);
/* of its verb, or none */
const struct fields *word_takes(const struct word *w);
/* is this member given without a flag? */
bool word_positional(const struct word *w, const char *name);
/* a text member; replaces; always true */
bool doc_set(struct cli *c, struct json *doc, const char *name, const char *text);
void doc_drop(struct json *doc, const char *name);

/* --- calls: one request, waited for. Failure: *err has the server's own words. */
MUST_CHECK bool cli_connect(struct cli *c, struct err *err);
/* the same for what cannot be asked again: the server answers, if one of several does */
MUST_CHECK bool cli_connect_live(struct cli *c, struct err *err);
void cli_leave(struct cli *c, const struct http_client *failed); /* the next server, if this one is still in use */
void cli_disconnect(struct cli *c);
struct texts url_list(const char *text, struct arena *mem);   /* "url,url" */
bool servers_within(const char *some, const char *all, struct arena *mem);
MUST_CHECK bool cli_call(struct cli *c, enum verb_id verb, const struct json *ask,
                         struct json **reply, struct err *err);
/* follows every page unless limit > 0 */
MUST_CHECK bool cli_get_all(struct cli *c, enum verb_id verb, struct json *ask, int64_t limit,
                            struct json **list, struct err *err);
/* every page, one after the other (most 0: all items there are); put gets the items of each, and false ends it */
typedef bool page_fn(void *arg, const struct json *items);
MUST_CHECK bool pages_each(struct cli *c, enum verb_id verb, const struct json *ask, int64_t most, page_fn *put, void *arg);
/* The route of a verb: path members into the path, the rest into the query or the body. */
MUST_CHECK bool cli_route(struct cli *c, enum verb_id verb, const struct json *ask, char **path,
                          struct str *body, struct err *err);
/* runs the loop until it is true; whoever sets it calls os_stop */
void cli_wait(struct cli *c, const bool *done);
void cli_sleep(struct cli *c, int64_t ms);
enum { CLI_HEADERS = 4 };
/* once: with a fresh Idempotency-Key */
size_t cli_headers(struct cli *c, struct http_header out[static CLI_HEADERS], bool body, bool once);
void problem_read(struct cli *c, int status, struct slice body, struct err *err);

/* --- config: contexts of several clouds in one file, mode 0600 */
/* fills c->context; an absent file is fine */
MUST_CHECK bool config_load(struct cli *c, struct err *err);
bool config_has(struct cli *c, const char *name);       /* false also when it cannot be read */
/* sets or changes one and makes it the current one */
MUST_CHECK bool config_keep(struct cli *c, const struct context *x, struct err *err);

/* --- printing */
/* a list or one thing, as -o says */
void print_reply(struct cli *c, const struct word *w, const struct json *reply);
void print_table(struct cli *c, const struct column *columns, size_t count,
                 const struct json *items);
void table_text(struct str *out, const struct column *columns, size_t count,
                const struct json *items, bool wide, bool colour, int64_t now_ms);
/* a copy for people: durations with units, a limit of -1 as `no limit`; fields: of the value */
struct json *for_people(struct cli *c, const struct json *value, const struct fields *fields);
/* one thing, line by line */
void print_described(struct cli *c, const struct json *thing);
/* as -o json or yaml */
void print_data(struct cli *c, const struct json *value);
void json_pretty(struct str *out, const struct json *value, int depth);
void age_text(struct str *out, int64_t now_ms, int64_t then_ms); /* "3m ago" */
void bytes_text(struct str *out, int64_t bytes);
/* columns on a terminal */
size_t text_width(const char *text);
/* Texts of the cloud are no commands for our terminal: blanks stand for line ends and tabs, '?' for
 * every other control character. */
void clean_text(struct str *out, const char *text);
/* all of it to standard output; false: nobody reads */
bool out_write(const void *at, size_t n);
/* a line on standard error, unless -q */
void say(struct cli *c, const char *fmt, ...) PRINTF(2, 3);
int print_error(struct cli *c, const struct err *err); /* "arcus: ..." and the exit code */
/* A spinner or a bar on a terminal, after a second. total 0: a spinner. NULL where none is wanted,
 * or one is shown already. */
struct progress *progress_start(struct cli *c, const char *what, int64_t total);
void progress_set(struct progress *p, int64_t done);
void progress_text(struct progress *p, const char *fmt, ...) PRINTF(2, 3);
/* so that a line can be printed; it comes again */
void progress_clear(struct progress *p);
/* leaves no trace; NULL is fine */
void progress_end(struct progress *p);
AUTO_FN(struct progress *, progress_end)

/* --- what a task prints, as it comes: callbacks write while the loop runs for whoever waits */
struct tail;
/* lines -1: all; source NULL: both */
struct tail_ask { const char *job, *source; int64_t task, lines, attempt; bool follow; };
/* prefix of each line, or NULL */
struct tail *tail_start(struct cli *c, const struct tail_ask *ask, int fd, const char *prefix);
bool tail_over(const struct tail *t);                   /* whole, failed, or nobody reads */
/* how it failed; RC_OK and false: it did not */
bool tail_failed(const struct tail *t, struct err *err);
bool tail_unread(const struct tail *t);                 /* our own reader has gone */
void tail_free(struct tail *t);                         /* NULL is fine */
AUTO_FN(struct tail *, tail_free)

/* --- the words' own parts */
MUST_CHECK bool spec_build(struct cli *c, const struct flags *f, const char *file,
                           struct json **spec, struct err *err);
/* all workloads of the file, or one without a file; send: their folders are uploaded, else left out */
MUST_CHECK bool specs_build(struct cli *c, const struct flags *f, const char *file, bool send,
                            struct json **docs, struct err *err);
const char *submit_file(const struct flags *f);                     /* of a word with submit_fields; NULL: none */
void print_why(struct cli *c, const struct json *why);              /* what job.why and job.plan say */
MUST_CHECK bool describe_node(struct cli *c, const char *name, struct json **thing);     /* with what its GPUs do now */
void print_node(struct cli *c, struct json *node);
MUST_CHECK bool stdin_read(struct cli *c, size_t most, struct slice *out, struct err *err);
/* a user's path; - is standard input */
MUST_CHECK bool path_read(struct cli *c, const char *path, size_t most, struct slice *out,
                          struct err *err);
/* what was submitted: its id, or with -o json and yaml {id, name, state} */
void print_submitted(struct cli *c, const struct json *job);
/* until it ends; its exit code */
int run_follow(struct cli *c, const char *job, int64_t count);
/* the failed task; may be NULL */
int job_exit_code(const struct json *job, const struct json *task);
/* of a command that could not be started, as shells have it: 127 not found, 126 not executable,
 * 125 anything else */
int start_exit_code(const char *why);

/* a stream of job.exec or the like with our standard input and output, until it ends; the exit code.
 * out: its standard output, as far as it is short, instead of ours */
int exec_session(struct cli *c, enum verb_id verb, const struct json *doc, bool tty, bool stdin_too, struct str *out);

bool completion_text(struct str *out, const char *shell);           /* false: no such shell */

/* --- words with thought in them */
#define WORD(name) int name(struct cli *c, const struct word *w, int argc, char **argv)
WORD(word_run);
WORD(word_submit);
WORD(word_plan);
WORD(word_describe);
WORD(word_top);
WORD(word_logs);
WORD(word_exec);
WORD(word_cp);
WORD(word_port_forward);
WORD(word_ssh);
WORD(word_ssh_key_add);
WORD(word_jupyter);
WORD(word_events);
WORD(word_audit_list);
WORD(word_audit_verify);
WORD(word_audit_export);
WORD(word_login);
WORD(word_user_create);
WORD(word_user_passwd);
WORD(word_secret_set);
WORD(word_image_import);
WORD(word_backup);
WORD(word_export_trace);
WORD(word_export_nodes);
WORD(word_rules);
WORD(word_rules_weights);
WORD(word_config_list);
WORD(word_config_use);
WORD(word_config_set);
WORD(word_config_remove);
WORD(word_version);
WORD(word_completion);
WORD(word_help_word);
#undef WORD
extern const struct fields run_fields, submit_fields, describe_fields, top_fields, logs_fields, exec_fields,
    cp_fields, forward_fields, ssh_fields, ssh_key_add_fields, jupyter_fields, login_fields, user_create_fields, user_passwd_fields, secret_fields, import_fields,
    config_set_fields, config_ref_fields, completion_fields, backup_fields;
