/* filter.h - everything that can refuse a node to a task, one row each: what planning obeys and what `arcus describe` counts.
 *
 * A new filter is a row here and a line in filter_see(). The planner's own question, lot_fits(), is asked again for every
 * lot that is explained: one that it refuses and no row does shows as FILTER_OTHER, and a test over random fleets fails then. */
#pragma once
#include "base/base.h"

enum filter {
    /* the node takes nothing, whatever is asked */
    FILTER_AWAY, FILTER_CORDONED, FILTER_DRAINING, FILTER_ORDERS, FILTER_RESTORED,
    /* what it is: it could not, even if nothing else ran there */
    FILTER_NODE, FILTER_REGION, FILTER_ZONE, FILTER_TAINT, FILTER_EXCLUSIVE, FILTER_SHARED, FILTER_RESIDENCY, FILTER_IMAGE, FILTER_GPUS, FILTER_MODEL,
    FILTER_GPU_MEMORY, FILTER_MIG, FILTER_ECC, FILTER_HEALTH, FILTER_CPUS, FILTER_MEMORY,
    /* what is taken of it */
    FILTER_GPUS_TAKEN, FILTER_NEIGHBOURS, FILTER_CPUS_TAKEN, FILTER_MEMORY_TAKEN, FILTER_CLAIMED,
    FILTER_OTHER,
    FILTER_COUNT
};
enum filter_about { ABOUT_STATE, ABOUT_BUILD, ABOUT_USE };
struct filter_row { const char *name; enum filter_about about; const char *text; };    /* text: goes on behind "3 nodes " */
extern const struct filter_row filters[FILTER_COUNT];
#define FILTER_BIT(f) (UINT32_C(1) << (f))
enum { FILTERS_STATE = FILTER_BIT(FILTER_NODE) - 1, FILTERS_BUILD = FILTER_BIT(FILTER_GPUS_TAKEN) - 1 - FILTERS_STATE };    /* sets: the enum has them in that order */
