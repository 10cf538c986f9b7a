/* rules.h - what an operator may set for the whole cloud: who yields to whom, how much of the fleet at most is evicted in a time, from
 * which part of silent nodes on nothing is taken from them any more, and the weights of places (weights.h). One table has the names and defaults
 * of them all.
 *
 * A rule is a number: sets of classes are bits. Kept by name, so that a program that does not know one leaves it alone. */
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include "base/field.h"
#include "model/priority.h"
#include "model/weights.h"

enum rule {
    RULE_PREEMPT,                                   /* CLASS_COUNT of them: for each class the set (1 << class) of those it may evict */
    RULE_BRAKE_PERMILLE = RULE_PREEMPT + CLASS_COUNT,   /* of all GPUs, evicted in a window at most */
    RULE_BRAKE_WINDOW_S,
    RULE_SPOT_NOTICE_S,                             /* between SIGTERM and SIGKILL of spot work that yields; -1: its own grace */
    RULE_BACKFILL_DEPTH,                            /* so many waiting jobs of a class get a start that is held for them */
    RULE_SILENT_PERMILLE,                           /* of the nodes: if more are silent at once nothing is given to others */
    RULE_SPOT_SUSPEND,                              /* enum spot_suspend: spot work that yields is suspended where it can be */
    RULE_LIFTED_UNTIL_MS,                           /* the brake counts for nothing until then */
    RULE_SILENT_SINCE_MS,                           /* not set by anybody: since when too many are silent; 0: they are not */
    RULE_WEIGHT,                                    /* TERM_COUNT of them, thousandths */
    RULE_COUNT = RULE_WEIGHT + TERM_COUNT
};
enum spot_suspend { SUSPEND_NEVER, SUSPEND_REAL, SUSPEND_ALWAYS, SPOT_SUSPEND_COUNT };     /* real: not on simulated GPUs */
extern const struct names spot_suspend_names;
struct rules { int64_t at[RULE_COUNT]; };
const char *rule_name(enum rule r);
bool rule_named(const char *name, enum rule *out);
void rules_usual(struct rules *out);
/* "high:low,spot urgent:none": each class that is named gets that set; the others keep theirs. */
MUST_CHECK bool preempt_read(const char *text, struct rules *out, struct err *err);
const char *preempt_text(const struct rules *r, struct arena *mem);
bool percent_named(const char *text, int64_t *number);      /* "30%" is 30 */
