/* id.c - making, printing and reading ids. A clock that steps back costs order against other makers, never uniqueness here. */
#include "base/id.h"

enum { CHANCE_BITS = 22, DIGITS = 13, PREFIX_MOST = 8 };
static const int64_t epoch_ms = 1577836800000; /* 2020-01-01 */
static const char letters[] = "0123456789abcdefghjkmnpqrstvwxyz";

int64_t id_make(struct id_maker *m, int64_t wall_ms)
{
    int64_t since = MAX(wall_ms - epoch_ms, 0);
    int64_t id = (int64_t)((uint64_t)since << CHANCE_BITS | rng_below(&m->rng, 1u << CHANCE_BITS));
    if (id <= m->last) /* the clock stood still or went back: stay above what is out there */
        id = m->last + 1 + (int64_t)rng_below(&m->rng, 1024);
    return m->last = id;
}

const char *id_text(char out[static ID_TEXT], const char *prefix, int64_t id)
{
    int n = 0;
    for (; n < PREFIX_MOST && prefix[n]; n++)
        out[n] = prefix[n];
    out[n++] = '-';
    for (int i = DIGITS - 1; i >= 0; i--, id >>= 5)
        out[n + i] = letters[id & 31];
    out[n + DIGITS] = 0;
    return out;
}

bool id_parse(const char *text, const char *prefix, int64_t *out)
{
    size_t n = strlen(prefix);
    if (!text || strncmp(text, prefix, n) || text[n] != '-' || strlen(text + n + 1) != DIGITS)
        return false;
    uint64_t id = 0;
    for (const char *c = text + n + 1; *c; c++) {
        const char *at = strchr(letters, *c);
        if (!at || id >> 58)
            return false;
        id = id << 5 | (uint64_t)(at - letters);
    }
    return *out = (int64_t)id, true;
}
