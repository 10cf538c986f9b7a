/* retain.h - what is kept how long, and what becomes of it then. */
#pragma once
#include "control/archive.h"
#include "meter/meter.h"

/* --- the loop's: a step now and then, as long as there is something old */
void retain_open(struct control *c);
void retain_stop(struct control *c);            /* no further step */
void retain_close(struct control *c);

/* What was used from from_ms to before to_ms; project 0: by all. Whole days come from their sums, the rest from rows and archive.
 * *moved: something went from the one to the other meanwhile, and the sum is to be made again. */
MUST_CHECK bool usage_read(struct call *c, int64_t project, int64_t from_ms, int64_t to_ms, struct usage_sum *sum, bool *moved, struct err *err);
struct interval usage_interval(const struct rows *r, size_t row);        /* of USAGE_COLUMNS */
/* A row of usage as a line of an archive segment: the columns of OLD_USAGE. */
void usage_line_write(struct str *out, const struct rows *r, size_t row);
MUST_CHECK bool usage_line_read(struct call *c, const char *line, size_t n, struct interval *out, struct err *err);
