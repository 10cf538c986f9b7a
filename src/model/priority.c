/* priority.c - the table. The bounds of waiting are what an operator may promise: a job that can run at all is the first in line after
 * that time. The numbers of today's jobs keep their order: 50 is what a job has that says nothing. */
#include "model/priority.h"
#include "base/str.h"

enum { HOUR = 3600, DAY = 24 * HOUR };

const struct priority priorities[CLASS_COUNT] = {
    [CLASS_SPOT] = { "spot", 0, 19, 10, 7 * DAY },
    [CLASS_LOW] = { "low", 20, 39, 30, 4 * DAY },
    [CLASS_NORMAL] = { "normal", 40, 59, 50, 2 * DAY },
    [CLASS_HIGH] = { "high", 60, 79, 70, 1 * DAY },
    [CLASS_URGENT] = { "urgent", 80, 100, 90, 12 * HOUR },
};

enum priority_class priority_of(int64_t number)
{
    enum priority_class c = CLASS_SPOT;
    while (c + 1 < CLASS_COUNT && number > priorities[c].to)
        c++;
    return c;
}

bool priority_named(const char *name, int64_t *number)
{
    for (size_t i = 0; i < CLASS_COUNT; i++)
        if (text_is(priorities[i].name, name))
            return *number = priorities[i].as, true;
    return false;
}
