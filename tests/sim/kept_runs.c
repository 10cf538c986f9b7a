/* kept_runs.c - the runs themselves, oldest first. Each failed without the change that is named with it. */
#include "kept.h"

const struct kept kept[] = {
    { "none yet", "cloud 1 1 2 1 0\nwait 10\n" },
};
const size_t kept_count = sizeof kept / sizeof kept[0];
