/* deadline.h - a time limit that is moved far more often than it strikes: moving it later costs a
 * comparison, not a timer. */
#pragma once
#include "os/os.h"

struct deadline {
    struct os *os;
    struct timer *timer;
    int64_t at;                 /* INT64_MAX: none */
    int64_t rings;              /* when the timer wakes; at or before `at`, while there is one */
    void (*fn)(void *arg);
    void *arg;
};
void deadline_init(struct deadline *d, struct os *os, void (*fn)(void *arg), void *arg);
void deadline_set(struct deadline *d, int64_t after_ms);
void deadline_none(struct deadline *d);     /* the timer may still ring, for nothing */
void deadline_done(struct deadline *d);     /* before its memory goes */
