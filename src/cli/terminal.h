/* terminal.h - the person's terminal: raw for exec, without echo for secrets, its size; and
 * standard input as it comes. */
#pragma once
#include "cli/cli.h"

/* asks on the terminal, or reads a line of standard input */
MUST_CHECK bool prompt_hidden(struct cli *c, const char *what, const char **out, struct err *err);
bool terminal_size(int64_t *rows, int64_t *cols);
struct terminal;
struct terminal *terminal_raw(int fd);              /* NULL: it is no terminal */
void terminal_restore(struct terminal *t);          /* NULL is fine */
AUTO_FN(struct terminal *, terminal_restore)

/* Standard input, read by a thread of its own: it may be a file, which no loop can wait for, and a
 * terminal that others share must not become non-blocking. */
struct input;
struct input_events {
    void (*on_data)(void *arg, const char *at, size_t n);
    void (*on_end)(void *arg);
};
struct input *input_start(struct cli *c, int fd, const struct input_events *events, void *arg);
/* one piece that was read already may still come */
void input_pause(struct input *i, bool paused);
void input_stop(struct input *i);                   /* NULL is fine */
AUTO_FN(struct input *, input_stop)
