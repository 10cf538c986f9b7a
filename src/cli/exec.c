/* exec.c - `arcus exec`: a command inside a running task, with our standard input, output and,
 * with -t, our terminal.
 *
 * Exits as the command does. Without a terminal of its own the signals we get go to the command;
 * the third interrupt leaves. */
#include "cli/terminal.h"
#include "model/channel.h"
#include "net/ws.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { IN_FLIGHT = 256 << 10, LEAVE_AFTER = 3, EXIT_FAILED = 125, EXIT_LEFT = 130, CAPTURE_MOST = 64 << 10 };

struct exec_own { bool stdin_too; };
static const struct field exec_rows[] = {
    FIELD_AS(struct exec_own, stdin_too, "stdin", BOOL, .flag = "-i --stdin --interactive",
             .help = "pass on standard input"),
};
const struct fields exec_fields = FIELDS(exec_own, exec_rows);

struct exec {
    struct cli *c;
    struct ws *ws;
    struct input *input;
    struct str *out;                /* standard output goes here; NULL: to ours */
    bool open, done, told, paused;  /* told: the command's exit code is known */
    int code, interrupts;
    struct err err;
};

/* --- out */

static void send_control(struct exec *e, const char *json)
{
    AUTO(str_done) struct str message = { 0 };
    if (!e->ws)
        return;
    str_char(&message, CHANNEL_CONTROL);
    str_text(&message, json);
    ws_send(e->ws, false, message.at, message.len);
}

static void on_data(void *arg, const char *at, size_t n)
{
    struct exec *e = arg;
    AUTO(str_done) struct str message = { 0 };
    if (!e->ws)
        return;
    str_char(&message, CHANNEL_IN);
    str_put(&message, at, n);
    ws_send(e->ws, false, message.at, message.len);
    if (ws_waiting(e->ws) > IN_FLIGHT) {
        e->paused = true;
        input_pause(e->input, true);
    }
}

static void on_input_end(void *arg) { send_control(arg, "{\"eof\":true}"); }

static void on_resize(void *arg)
{
    char text[64];
    int64_t rows, cols;
    if (!terminal_size(&rows, &cols))
        return;
    snprintf(text, sizeof text, "{\"resize\":[%lld,%lld]}", (long long)rows, (long long)cols);
    send_control(arg, text);
}

static void pass_signal(struct exec *e, int signal)
{
    char text[32];
    snprintf(text, sizeof text, "{\"signal\":%d}", signal);
    send_control(e, text);
    if ((signal == SIGINT || signal == SIGTERM) && ++e->interrupts >= LEAVE_AFTER) {
        e->code = EXIT_LEFT;
        e->told = e->done = true;
        os_stop(e->c->os);
    }
}
static void on_int(void *arg) { pass_signal(arg, SIGINT); }
static void on_term(void *arg) { pass_signal(arg, SIGTERM); }
static void on_quit(void *arg) { pass_signal(arg, SIGQUIT); }
static void on_hup(void *arg) { pass_signal(arg, SIGHUP); }

/* --- in */

static void finish(struct exec *e)
{
    e->done = true;
    os_stop(e->c->os);
}

static void write_all(struct exec *e, int fd, const char *at, size_t n)
{
    while (n) {
        ssize_t m = write(fd, at, n);
        if (m < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (m <= 0) {                   /* our reader has gone, so may the command */
            ws_close(e->ws, 1000, "");
            return;
        }
        at += m;
        n -= (size_t)m;
    }
}

static void on_control(struct exec *e, struct slice json)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct json *doc;
    struct err ignored;
    if (!json_parse(json, mem, &doc, &ignored))
        return;
    if (json_get(doc, "exit")) {
        e->told = true;
        e->code = (int)(json_int(doc, "exit", EXIT_FAILED) & 255);
        finish(e);
    } else if (json_text(doc, "error")) {
        err_set(&e->err, RC_CONFLICT, "%s", json_text(doc, "error"));
        finish(e);
    }
}

static void on_message(void *arg, struct ws *w, bool text, const char *at, size_t n)
{
    struct exec *e = arg;
    (void)w, (void)text;
    if (n < 1 || e->done)
        return;
    if (at[0] == CHANNEL_CONTROL)
        on_control(e, (struct slice){ at + 1, n - 1 });
    else if (at[0] == CHANNEL_OUT && e->out)
        str_put(e->out, at + 1, e->out->len + n < CAPTURE_MOST ? n - 1 : 0);
    else if (at[0] == CHANNEL_OUT || at[0] == CHANNEL_ERR)
        write_all(e, at[0] == CHANNEL_OUT ? STDOUT_FILENO : STDERR_FILENO, at + 1, n - 1);
}

static void on_open(void *arg, struct ws *w)
{
    struct exec *e = arg;
    (void)w;
    e->open = true;
    os_stop(e->c->os);
}

static void on_drain(void *arg, struct ws *w)
{
    struct exec *e = arg;
    (void)w;
    if (e->input && e->paused) {
        e->paused = false;
        input_pause(e->input, false);
    }
}

static void on_close(void *arg, struct ws *w, const struct err *why)
{
    struct exec *e = arg;
    (void)w;
    e->ws = NULL;
    if (!e->told && e->err.rc == RC_OK) {
        if (why->rc != RC_OK)
            e->err = *why;
        else
            err_set(&e->err, RC_UNAVAILABLE, "the connection ended before the command did");
    }
    finish(e);
}

/* --- the whole */

static void add_size(struct cli *c, struct json *doc)
{
    int64_t rows, cols;
    if (!terminal_size(&rows, &cols))
        return;
    doc_set(c, doc, "rows", arena_printf(c->mem, "%lld", (long long)rows));
    doc_set(c, doc, "cols", arena_printf(c->mem, "%lld", (long long)cols));
}

static void converse(struct exec *e, bool tty, bool stdin_too)
{
    static const struct input_events events = { on_data, on_input_end };
    AUTO(terminal_restore)
    struct terminal *raw = tty && stdin_too ? terminal_raw(STDIN_FILENO) : NULL;
    os_on_signal(e->c->os, SIGTERM, on_term, e);
    os_on_signal(e->c->os, SIGHUP, on_hup, e);
    os_on_signal(e->c->os, SIGINT, on_int, e);
    os_on_signal(e->c->os, SIGQUIT, on_quit, e);
    if (tty)
        os_on_signal(e->c->os, SIGWINCH, on_resize, e);
    if (stdin_too)
        e->input = input_start(e->c, STDIN_FILENO, &events, e);
    else
        on_input_end(e);
    if (tty)
        on_resize(e);
    cli_wait(e->c, &e->done);
    input_stop(TAKE(e->input));
}

static bool open_it(struct exec *e, enum verb_id verb, const struct json *doc, struct err *err)
{
    static const struct ws_events events = { on_open, on_message, on_drain, on_close };
    static const struct ws_limits limits = { .message_bytes = CHANNEL_MESSAGE };
    AUTO(str_done) struct str body = { 0 };
    AUTO(progress_end) struct progress *p = NULL;
    struct http_header headers[CLI_HEADERS];
    char *path;
    if (!cli_connect_live(e->c, err) || !cli_route(e->c, verb, doc, &path, &body, err))
        return false;
    p = progress_start(e->c, "waiting for the task's node", 0);
    e->ws = ws_dial(e->c->client, path, headers, cli_headers(e->c, headers, false, false), &limits,
                    &events, e);
    while (!e->open && !e->done)
        os_run(e->c->os);
    return e->open || (*err = e->err, false);
}

int exec_session(struct cli *c, enum verb_id verb, const struct json *doc, bool tty, bool stdin_too, struct str *out)
{
    struct exec e = { .c = c, .out = out };
    if (!open_it(&e, verb, doc, &c->err))
        return print_error(c, &c->err);
    converse(&e, tty, stdin_too);
    if (e.ws)
        ws_drop(e.ws);
    while (e.ws) /* its last word comes to e, which ends here */
        os_run(c->os);
    if (e.told)
        return e.code;
    print_error(c, &e.err);
    return start_exit_code(e.err.text);
}

int word_exec(struct cli *c, const struct word *w, int argc, char **argv)
{
    struct flags f;
    int over = word_open(c, w, argc, argv, &f);
    if (over >= 0)
        return over;
    const struct json *t = json_get(f.doc, "tty");
    bool tty = t && t->flag, stdin_too = ((struct exec_own *)f.own)->stdin_too;
    struct json *command = json_new(c->mem, JSON_LIST);
    for (size_t i = 0; i < f.rest.count; i++) {
        struct json *arg = json_new(c->mem, JSON_TEXT);
        arg->text = f.rest.at[i];
        arg->len = strlen(arg->text);
        json_add(command, NULL, arg);
    }
    if (!f.rest.count
        && !err_set(&c->err, RC_BAD_INPUT, "what to run? arcus exec %s -- COMMAND [ARG...]",
                    json_text(f.doc, "job")))
        return print_error(c, &c->err);
    if (tty && stdin_too && !isatty(STDIN_FILENO)
        && !err_set(&c->err, RC_BAD_INPUT,
                    "-t with -i needs a terminal; standard input is none: leave -t out"))
        return print_error(c, &c->err);
    json_add(f.doc, "argv", command);
    if (tty)
        add_size(c, f.doc);
    return exec_session(c, VERB_JOB_EXEC, f.doc, tty, stdin_too, NULL);
}
