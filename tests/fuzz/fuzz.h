/* fuzz.h - what every fuzz target shares. A target reads any bytes, must not harm, and traps when a promise is broken. */
#pragma once
#include "base/str.h"
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(cond) \
    do { \
        if (!(cond)) { \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond); \
            abort(); \
        } \
    } while (0)

static inline struct slice fuzz_slice(const struct str *s) { return (struct slice){ s->at ? s->at : "", s->len }; }
static inline bool fuzz_same(const struct str *a, const struct str *b)
{
    return a->len == b->len && (a->len == 0 || memcmp(a->at, b->at, a->len) == 0);
}
