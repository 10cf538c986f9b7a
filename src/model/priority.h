/* priority.h - the classes of priority: names for ranges of the number 0 to 100 that a job has.
 *
 * A higher class goes before a lower one. Inside a class projects come by their fair share; the number itself orders the jobs of one
 * project only, so that nobody overtakes another project with a 51. Who has waited for `starved_s` goes before all, whatever its
 * class: nobody waits for ever. The table in priority.c is what `arcus priorities` of the manual shows. */
#pragma once
#include "base/base.h"

enum priority_class { CLASS_SPOT, CLASS_LOW, CLASS_NORMAL, CLASS_HIGH, CLASS_URGENT, CLASS_COUNT };
struct priority {
    const char *name;
    int64_t from, to, as;       /* numbers of the class, and the one that its name stands for */
    int64_t starved_s;
};
extern const struct priority priorities[CLASS_COUNT];
#define PRIORITY_WORDS "spot, low, normal, high, urgent"
enum priority_class priority_of(int64_t number);                /* the nearest for one out of range */
bool priority_named(const char *name, int64_t *number);
