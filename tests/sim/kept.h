/* kept.h - runs that once showed a bug: what it was, and all that has to be done to a cloud to see it. */
#pragma once
#include <stddef.h>

struct kept { const char *what, *acts; };
extern const struct kept kept[];
extern const size_t kept_count;
