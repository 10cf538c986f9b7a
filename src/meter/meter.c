/* meter.c - intervals into sums. A sum cuts an interval at the borders of the time asked for and at midnight UTC, multiplies what was
 * held by the milliseconds of each piece, and adds: so days add up to the whole to the last millisecond.
 *
 * Only what is billable is summed: a sum is what a bill will be made of. Sums that no machine could reach stop at the largest
 * number instead of wrapping. */
#include "meter/meter.h"
#include "base/err.h"
#include <stdlib.h>

static const int64_t day_ms = INT64_C(86400) * 1000;
static const int64_t longest_ms
    = INT64_C(10) * 366 * 86400 * 1000; /* beyond it a clock was wrong, not a task long */

bool meter_interval(struct interval *i, int64_t started_ms, int64_t ended_ms, enum outcome outcome)
{
    if (started_ms <= 0)
        return false;
    i->started_ms = started_ms;
    i->ended_ms = ended_ms < started_ms                ? started_ms
                  : ended_ms - started_ms > longest_ms ? started_ms + longest_ms
                                                       : ended_ms;
    i->billable = !outcome_is_our_fault(outcome);
    return true;
}

bool meter_by(const char *text, unsigned *by, struct err *err)
{
    static const struct {
        const char *word;
        unsigned bit;
    } words[] = {
        { "project", BY_PROJECT }, { "user", BY_USER }, { "owner", BY_USER },
        { "flavor", BY_FLAVOR },   { "day", BY_DAY },
    };
    unsigned bits = 0;
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, ", ");
        unsigned one = 0;
        for (size_t i = 0; i < COUNT(words); i++)
            if (strlen(words[i].word) == n && strncmp(words[i].word, p, n) == 0)
                one = words[i].bit;
        if (!one)
            return err_field(err, "by", "by: '%.*s' is none of project, user, flavor, day",
                             (int)(n < 40 ? n : 40), p);
        bits |= one;
        p += n;
        p += strspn(p, ", ");
    }
    *by = bits;
    return true;
}

/* Lines in a table of the arena's; open addressing, twice as large whenever half of it is taken. */
struct usage_sum {
    struct arena *mem;
    unsigned by;
    int64_t from_ms, to_ms;
    struct usage_line **slots;
    size_t room, count;
};

struct usage_sum *usage_sum_new(struct arena *mem, unsigned by, int64_t from_ms, int64_t to_ms)
{
    struct usage_sum *s = ARENA_NEW(mem, struct usage_sum);
    *s = (struct usage_sum){
        mem, by, MAX(from_ms, 0), to_ms, ARENA_ARRAY(mem, struct usage_line *, 64), 64, 0
    };
    return s;
}

static int line_order(const struct usage_line *a, const struct usage_line *b)
{
    int c = strcmp(a->project, b->project);
    c = c ? c : strcmp(a->user, b->user);
    c = c ? c : strcmp(a->flavor, b->flavor);
    if (!c && a->day_ms != b->day_ms)
        return a->day_ms < b->day_ms ? -1 : 1;
    return c ? c : a->simulated - b->simulated;
}

static uint64_t mix(uint64_t h, const char *text)
{
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 0x100000001b3ULL;
    return (h ^ 0xff) * 0x100000001b3ULL;
}

static size_t slot_of(const struct usage_sum *s, const struct usage_line *key)
{
    uint64_t h = mix(mix(mix(0xcbf29ce484222325ULL, key->project), key->user), key->flavor);
    h = (h ^ (uint64_t)(key->day_ms / day_ms * 2 + key->simulated)) * 0x9e3779b97f4a7c15ULL;
    size_t at = (h ^ h >> 32) & (s->room - 1);
    while (s->slots[at] && line_order(s->slots[at], key) != 0)
        at = (at + 1) & (s->room - 1);
    return at;
}

static void grow(struct usage_sum *s)
{
    struct usage_line **old = s->slots;
    size_t room = s->room;
    s->room *= 2;
    s->slots = ARENA_ARRAY(s->mem, struct usage_line *, s->room);
    for (size_t i = 0; i < room; i++)
        if (old[i])
            s->slots[slot_of(s, old[i])] = old[i];
}

static struct usage_line *line_of(struct usage_sum *s, const struct usage_line *key)
{
    size_t at = slot_of(s, key);
    if (s->slots[at])
        return s->slots[at];
    if (++s->count * 2 > s->room) {
        grow(s);
        at = slot_of(s, key);
    }
    struct usage_line *line = s->slots[at] = ARENA_NEW(s->mem, struct usage_line);
    *line = (struct usage_line){ .project = arena_text(s->mem, key->project),
                                 .user = arena_text(s->mem, key->user),
                                 .flavor = arena_text(s->mem, key->flavor),
                                 .day_ms = key->day_ms,
                                 .simulated = key->simulated };
    return line;
}

static void add(int64_t *sum, int64_t held, int64_t ms)
{
    __int128 n = *sum + (__int128)held * ms;
    *sum = n > INT64_MAX ? INT64_MAX : (int64_t)n;
}

static const char *when_asked(unsigned by, unsigned bit, const char *text)
{
    return (by & bit) && text ? text : "";
}

void usage_sum_add(struct usage_sum *s, const struct interval *i)
{
    usage_sum_part(s, i, s->from_ms, s->to_ms);
}

void usage_sum_part(struct usage_sum *s, const struct interval *i, int64_t from_ms, int64_t to_ms)
{
    int64_t from = MAX(i->started_ms, from_ms), to = MIN(i->ended_ms, to_ms);
    bool first = i->started_ms >= from_ms
                 && i->started_ms < to_ms; /* an attempt counts once: where it started */
    if (!i->billable || (from >= to && !first))
        return;
    do {
        int64_t day = from / day_ms * day_ms, end = s->by & BY_DAY ? MIN(to, day + day_ms) : to;
        struct usage_line key = { .project = when_asked(s->by, BY_PROJECT, i->project_name),
                                  .user = when_asked(s->by, BY_USER, i->owner_name),
                                  .flavor = when_asked(s->by, BY_FLAVOR, i->flavor),
                                  .day_ms = s->by & BY_DAY ? day : 0,
                                  .simulated = i->simulated };
        struct usage_line *line = line_of(s, &key);
        int64_t ms = end - from;
        line->attempts += first;
        first = false;
        add(&line->ms, 1, ms);
        add(&line->gpu_milli_ms, i->gpu_milli, ms);
        add(&line->gpu_mib_ms, i->gpu_mib, ms);
        add(&line->cpu_milli_ms, i->cpu_milli, ms);
        add(&line->mem_mib_ms, i->mem_mib, ms);
        from = end;
    } while (from < to);
}

void usage_sum_add_day(struct usage_sum *s, const struct usage_line *day)
{
    struct usage_line key = { .project = when_asked(s->by, BY_PROJECT, day->project),
                              .user = when_asked(s->by, BY_USER, day->user),
                              .flavor = when_asked(s->by, BY_FLAVOR, day->flavor),
                              .day_ms = s->by & BY_DAY ? day->day_ms : 0,
                              .simulated = day->simulated };
    if (!day->attempts && !day->ms) /* all of it was taken back */
        return;
    struct usage_line *line = line_of(s, &key);
    line->attempts += day->attempts;
    add(&line->ms, 1, day->ms);
    add(&line->gpu_milli_ms, 1, day->gpu_milli_ms);
    add(&line->gpu_mib_ms, 1, day->gpu_mib_ms);
    add(&line->cpu_milli_ms, 1, day->cpu_milli_ms);
    add(&line->mem_mib_ms, 1, day->mem_mib_ms);
}

bool usage_day_next(const struct interval *i, int64_t *at, struct usage_line *out)
{
    bool first = *at == 0;
    int64_t from = first ? i->started_ms : *at;
    if (!i->billable || (!first && from >= i->ended_ms))
        return false;
    int64_t day = from / day_ms * day_ms, to = MIN(i->ended_ms, day + day_ms), ms = to - from;
    *out = (struct usage_line){ .flavor = i->flavor, .day_ms = day, .attempts = first, .ms = ms, .simulated = i->simulated };
    add(&out->gpu_milli_ms, i->gpu_milli, ms);
    add(&out->gpu_mib_ms, i->gpu_mib, ms);
    add(&out->cpu_milli_ms, i->cpu_milli, ms);
    add(&out->mem_mib_ms, i->mem_mib, ms);
    *at = day + day_ms;
    return true;
}

static int by_line(const void *a, const void *b)
{
    return line_order(a, b);
}

size_t usage_sum_lines(struct usage_sum *s, struct usage_line **out)
{
    struct usage_line *lines = ARENA_ARRAY(s->mem, struct usage_line, s->count);
    size_t n = 0;
    for (size_t i = 0; i < s->room; i++)
        if (s->slots[i])
            lines[n++] = *s->slots[i];
    qsort(lines, n, sizeof *lines, by_line);
    *out = lines;
    return n;
}
