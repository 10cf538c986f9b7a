/* task_proto.c - the tables of the supervisor's socket. Linked into the agent and into the
 * supervisor. */
#include "agent/task_proto.h"

static const struct field request_rows[] = {
    FIELD(struct task_request, op, TEXT, .required = true),
    FIELD(struct task_request, argv, TEXTS, .max = 1024),
    FIELD(struct task_request, barred, TEXTS, .max = 1024, .when_set = true),
    FIELD(struct task_request, tty, BOOL),
    FIELD(struct task_request, rows, INT, .min = 0, .max = 10000),
    FIELD(struct task_request, cols, INT, .min = 0, .max = 10000),
    FIELD(struct task_request, term, TEXT, .max = 64, .when_set = true),
    FIELD(struct task_request, path, TEXT, .max = 4096, .when_set = true),
    FIELD(struct task_request, port, INT, .min = 0, .max = 65535, .when_set = true),
};
static const struct field resize_rows[] = {
    FIELD(struct task_resize, rows, INT, .required = true, .min = 1, .max = 10000),
    FIELD(struct task_resize, cols, INT, .required = true, .min = 1, .max = 10000),
};
static const struct field signal_rows[]
    = { FIELD(struct task_signal, signal, INT, .required = true, .min = 1, .max = 64) };
static const struct field exit_rows[] = {
    FIELD(struct task_exit, exit_code, INT),
    FIELD(struct task_exit, signal, INT),
};
static const struct field error_rows[] = {
    FIELD(struct task_error, kind, TEXT, .required = true),
    FIELD(struct task_error, text, TEXT, .required = true, .max = 512),
};
const struct fields task_request_fields = FIELDS(task_request, request_rows);
const struct fields task_resize_fields = FIELDS(task_resize, resize_rows);
const struct fields task_signal_fields = FIELDS(task_signal, signal_rows);
const struct fields task_exit_fields = FIELDS(task_exit, exit_rows);
const struct fields task_error_fields = FIELDS(task_error, error_rows);
