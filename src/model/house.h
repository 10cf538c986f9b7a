/* house.h - who may come to a node, whatever a score says: its taints, the project that it belongs to, and the places that it
 * counts as. The planner and the door ask the same question of the same texts.
 *
 * A house is a text of lines, always in the same order, so that equal houses are equal texts: "T key=value" for a taint, "X id" for the
 * only project, "P word" for a place (a region, a label). NULL is a house for everybody, in no place. */
#pragma once
#include "base/err.h"
#include "base/field.h"
#include "base/str.h"

enum { TAINT_TEXT = 136, TAINTS_MOST = 16, PLACES_MOST = 16, PLACE_TEXT = 64 };

struct guest {
    const char *tolerates;      /* lines: "key=value", or "key" for any value; "!alone": it comes only to a house of its own project. NULL: none */
    const char *residency;      /* places with commas between them, of which one must be the node's; NULL: anywhere */
    int64_t project;
};
enum house_says { HOUSE_YES, HOUSE_TAINT, HOUSE_EXCLUSIVE, HOUSE_RESIDENCY, HOUSE_SHARED };
enum house_says house_admits(const char *house, const struct guest *g);
int64_t house_project(const char *house);                   /* the only one; 0: any */

/* "key=value:NoSchedule", "key=value", "key:NoSchedule" or "key" as key or key=value; NoSchedule is the only effect there is. */
MUST_CHECK bool taint_parse(const char *text, const char *field, char out[static TAINT_TEXT], struct err *err);
/* Words with commas between them, in order, in lower case and each once; "" is none. */
MUST_CHECK bool words_parse(const char *text, const char *field, struct arena *mem, const char **out, struct err *err);
/* As texts, each once and in order; NULL: nothing special. exclusive 0: everybody's. places: words with commas. */
const char *house_text(const struct texts *taints, int64_t exclusive, const struct texts *places, struct arena *mem);
const char *tolerations_text(const struct texts *tolerations, bool alone, struct arena *mem);
