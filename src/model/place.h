/* place.h - where a node is: its topology address, "region/zone/switch/rack/nvlink", from far to near.
 *
 * A name is one of its parent: rack r1 of switch s1 is not rack r1 of switch s2. A part that is left out is not known. Who names no
 * region is in the unnamed one, with all the others who do not. */
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include "base/field.h"
#include "base/str.h"

enum place_level { PLACE_ANY, PLACE_REGION, PLACE_ZONE, PLACE_SWITCH, PLACE_RACK, PLACE_NVLINK, PLACE_LEVELS };
enum { PLACE_NAME = 32, PLACE_ADDRESS = PLACE_LEVELS * PLACE_NAME };
extern const struct names place_names;          /* of the levels: "any", "region", ... */
extern const struct names place_ask_names;      /* of what a job asks for: a level + 1; 0 is "auto" */
/* Are both in one place of that level? Whose part of it is not known is in none; but an unnamed region is one. */
struct topology;
bool where_same(const struct topology *a, const struct topology *b, enum place_level level);

struct topology { const char *at[PLACE_LEVELS]; };  /* by level; NULL or "": not known. PLACE_ANY has no name */
MUST_CHECK bool place_name_check(const char *field, const char *name, struct err *err);     /* "" is good: not known */
MUST_CHECK bool where_parse(const char *text, struct arena *mem, struct topology *out, struct err *err);
/* What `over` says, and where it says nothing, what `under` does. */
struct topology where_over(const struct topology *over, const struct topology *under);
const char *where_text(const struct topology *w, char out[static PLACE_ADDRESS]);  /* "eu/a//r12"; "" where nothing is known */
bool where_fits(const struct topology *w, const char *region, const char *zone);   /* NULL or "": any */

/* The rows of these five in a table of another struct. */
#define WHERE_ROWS(T, member, ...) \
    FIELD_AS(struct T, member.at[PLACE_REGION], "region", TEXT, .max = PLACE_NAME - 1, .help = "where it is: the region", .example = "eu-west", __VA_ARGS__), \
    FIELD_AS(struct T, member.at[PLACE_ZONE], "zone", TEXT, .max = PLACE_NAME - 1, .help = "the zone of its region", .example = "a", __VA_ARGS__), \
    FIELD_AS(struct T, member.at[PLACE_SWITCH], "switch", TEXT, .max = PLACE_NAME - 1, .help = "the network switch of its zone that it hangs on", .example = "s1", __VA_ARGS__), \
    FIELD_AS(struct T, member.at[PLACE_RACK], "rack", TEXT, .max = PLACE_NAME - 1, .help = "the rack, of its switch", .example = "r12", __VA_ARGS__), \
    FIELD_AS(struct T, member.at[PLACE_NVLINK], "nvlink", TEXT, .max = PLACE_NAME - 1, .help = "the NVLink domain of its rack", .example = "n3", __VA_ARGS__)
