/* must.h - memory that is there, or the process ends: callers bound their input first (arena.h says why). */
#pragma once
#include "base/base.h"
#include <stdlib.h>

static inline void *must(void *p)
{
    if (!p)
        abort();
    return p;
}

/* Room for one more behind `count`: the array doubles. */
static inline void *room_for(void *at, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return at;
    *room = *room ? *room * 2 : 16;
    return must(reallocarray(at, *room, size));
}
