/* weights.h - what a place for a task is judged by, and how much each counts: one table for the planner, for the rules of the cloud, and for
 * whoever reads them (`arcus rules weights`, `arcus sim --help`).
 *
 * A term is a cost in GPUs, a weight is in thousandths; the least sum wins. The weights here are those that won the experiment
 * of doc/scheduling.md. */
#pragma once
#include "base/err.h"

enum term {
    TERM_STUCK, TERM_FEED, TERM_SLIVER, TERM_BREAK, TERM_FIT, TERM_SCARCE, TERM_PREFER, TERM_DARK, TERM_SLICE, TERM_FETCH, TERM_SPREAD, TERM_COUNT
};
struct term_row { const char *name, *rule, *what; };    /* rule: its name among the rules of the cloud */
extern const struct term_row terms[TERM_COUNT];
#define WEIGHTS_USUAL                                                                                                           \
    { [TERM_STUCK] = 900, [TERM_FEED] = 2000, [TERM_SLIVER] = 9000, [TERM_FIT] = 40, [TERM_SCARCE] = 2000, [TERM_PREFER] = 1000, \
      [TERM_SLICE] = 1000, [TERM_FETCH] = 20, [TERM_SPREAD] = 4000 }
extern const int64_t weights_usual[TERM_COUNT];
enum { WEIGHT_MOST = 100 * 1000 };

bool term_named(const char *name, enum term *out);
/* "stuck=250 fetch=usual": each that is named gets that, the others keep theirs. On failure nothing changes. */
MUST_CHECK bool weights_read(const char *text, int64_t weight[static TERM_COUNT], struct err *err);
