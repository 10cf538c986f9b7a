/* id.h - names of things: 63 bits, ordered by the time they were made, hard to guess the neighbours of.
 *
 * 41 bits of milliseconds since 2020, 22 bits of chance. Text is a prefix that tells the kind, a dash and 13 letters of
 * Crockford's base 32, so ids sort as text too: job-0d3kq8zj2m4xa. */
#pragma once
#include "base/err.h"
#include "base/rand.h"

enum { ID_TEXT = 24 };
struct id_maker { int64_t last; struct rng rng; };

int64_t id_make(struct id_maker *m, int64_t wall_ms);               /* always above every id made before */
const char *id_text(char out[static ID_TEXT], const char *prefix, int64_t id);     /* prefix of at most 8 letters */
bool id_parse(const char *text, const char *prefix, int64_t *out);  /* exactly what id_text writes */
