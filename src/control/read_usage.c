/* read_usage.c - sums of what was used. Whole days are summed already, in rows that the writer adds to with each attempt that ends; only
 * where a period begins or ends within a day are the attempts themselves read, from the table and from the archive.
 *
 * Attempts that a version before this one wrote are in no day yet; they are read one by one until retain.c has added them. */
#include "control/retain.h"
#include <stdlib.h>

static const int64_t day_ms = INT64_C(86400) * 1000;
enum { DAYS = 7 };

static void roll(struct call *c, const struct interval *i, int64_t sign)
{
    struct usage_line d;
    for (int64_t at = 0; usage_day_next(i, &at, &d);)
        EMIT(c, USAGE_DAY_ADD, V_INT(d.day_ms / day_ms), V_INT(i->project), V_INT(i->owner_kind),
             V_INT(i->owner), V_TEXT(i->flavor), V_INT(i->simulated), V_INT(sign * d.attempts), V_INT(sign * d.ms),
             V_INT(sign * d.gpu_milli_ms), V_INT(sign * d.gpu_mib_ms), V_INT(sign * d.cpu_milli_ms), V_INT(sign * d.mem_mib_ms),
             V_INT(i->ended_ms - i->started_ms));
}

void usage_roll(struct call *c, const struct interval *i) { roll(c, i, 1); }
void usage_unroll(struct call *c, const struct interval *i) { roll(c, i, -1); }

struct interval usage_interval(const struct rows *r, size_t i)
{
    return (struct interval){ .attempt = row_int(r, i, 0),
                              .project = row_int(r, i, 1),
                              .owner_kind = (int)row_int(r, i, 2),
                              .owner = row_int(r, i, 3),
                              .flavor = row_text(r, i, 4),
                              .gpu_milli = row_int(r, i, 5),
                              .gpu_mib = row_int(r, i, 6),
                              .cpu_milli = row_int(r, i, 7),
                              .mem_mib = row_int(r, i, 8),
                              .started_ms = row_int(r, i, 9),
                              .ended_ms = row_int(r, i, 10),
                              .billable = row_int(r, i, 11) != 0,
                              .simulated = row_int(r, i, 12) != 0,
                              .project_name = row_text(r, i, 13),
                              .owner_name = row_text(r, i, 14) };
}

/* --- rows, where a period cuts a day */

/* What began before `to` has ended by then: nothing that began so early lasted longer. */
static bool last_end(struct call *c, int64_t to, int64_t *out, struct err *err)
{
    struct rows loose, longest;
    if (!ROWS(c, USAGE_UNROLLED, &loose, err, V_INT(0)) || !ROWS(c, USAGE_LONGEST, &longest, err, V_INT(to / day_ms)))
        return false;
    int64_t most = row_int(&longest, 0, 0);
    *out = loose.count || to > INT64_MAX - most ? INT64_MAX : to + most; /* those that are in no day yet may have */
    return true;
}

static bool edge_rows(struct call *c, int64_t project, int64_t from, int64_t to,
                      struct usage_sum *sum, struct err *err)
{
    struct rows r;
    int64_t after_ms = from, after = -1, last;
    if (!last_end(c, to, &last, err))
        return false;
    do {
        struct value args[] = { V_INT(after_ms), V_INT(after), V_INT(to), V_INT(project), V_INT(last) };
        if (!rows_of(c, project ? ST_USAGE_EDGE_OF : ST_USAGE_EDGE, args, COUNT(args), &r, err))
            return false;
        for (size_t i = 0; i < r.count; i++) {
            struct interval it = usage_interval(&r, i);
            usage_sum_part(sum, &it, from, to);
            after_ms = it.ended_ms, after = it.attempt;
        }
    } while (r.count);
    return true;
}

bool usage_line_read(struct call *c, const char *line, size_t n, struct interval *out, struct err *err)
{
    struct json *doc;
    struct rows names;
    const char *flavor = NULL;
    int64_t v[15];
    size_t k = 0;
    if (!json_parse((struct slice){ line, n }, c->mem, &doc, err))
        return false;
    for (struct json *m = doc->first; m && k < COUNT(v); m = m->next, k++) {
        v[k] = m->number;
        flavor = k == 6 ? m->text : flavor;
    }
    if (k != COUNT(v) || !flavor)
        return err_set(err, RC_INTERNAL, "a line of an archive segment is damaged: arcus audit verify");
    if (!ROWS(c, OWNER_NAMES, &names, err, V_INT(v[1]), V_INT(v[3])))
        return false;
    *out = (struct interval){ .attempt = v[0], .project = v[1], .owner_kind = (int)v[2], .owner = v[3],
                              .flavor = flavor, .gpu_milli = v[7], .gpu_mib = v[8], .cpu_milli = v[9],
                              .mem_mib = v[10], .started_ms = v[11], .ended_ms = v[12],
                              .billable = v[13] != 0, .simulated = v[14] != 0,
                              .project_name = row_text(&names, 0, 0), .owner_name = row_text(&names, 0, 1) };
    return true;
}

static bool edge_archive(struct call *c, int64_t project, int64_t from, int64_t to,
                         struct usage_sum *sum, struct err *err)
{
    struct rows r;
    for (int64_t after = 0;;) {
        if (!ROWS(c, ARCHIVE_OVERLAP, &r, err, V_TEXT(ARCHIVE_USAGE), V_INT(after), V_INT(from), V_INT(to)))
            return false;
        if (!r.count)
            return true;
        after = row_int(&r, 0, 0);
        for (const char *p = row_text(&r, 0, 1); *p;) {
            size_t n = strcspn(p, "\n");
            struct interval it;
            if (!usage_line_read(c, p, n, &it, err))
                return false;
            if (!project || it.project == project)
                usage_sum_part(sum, &it, from, to);
            p += n + (p[n] == '\n');
        }
    }
}

static bool edge(struct call *c, int64_t project, int64_t from, int64_t to, struct usage_sum *sum,
                 struct err *err)
{
    return from >= to || (edge_rows(c, project, from, to, sum, err) && edge_archive(c, project, from, to, sum, err));
}

/* --- whole days */

static bool days(struct call *c, int64_t project, int64_t first, int64_t end, struct usage_sum *sum,
                 struct err *err)
{
    struct rows r;
    if (!rows_of(c, ST_USAGE_DAY_ENDS, NULL, 0, &r, err))
        return false;
    first = MAX(first, row_int(&r, 0, 0));
    end = MIN(end, row_int(&r, 0, 1) + 1);
    for (int64_t at = first; at < end; at += DAYS) {
        if (!ROWS(c, USAGE_DAYS, &r, err, V_INT(at), V_INT(MIN(at + DAYS, end)), V_INT(project)))
            return false;
        for (size_t i = 0; i < r.count; i++) {
            struct usage_line d = { .day_ms = row_int(&r, i, 0) * day_ms,
                                    .flavor = row_text(&r, i, 4),
                                    .simulated = row_int(&r, i, 5) != 0,
                                    .attempts = row_int(&r, i, 6),
                                    .ms = row_int(&r, i, 7),
                                    .gpu_milli_ms = row_int(&r, i, 8),
                                    .gpu_mib_ms = row_int(&r, i, 9),
                                    .cpu_milli_ms = row_int(&r, i, 10),
                                    .mem_mib_ms = row_int(&r, i, 11),
                                    .project = row_text(&r, i, 12),
                                    .user = row_text(&r, i, 13) };
            usage_sum_add_day(sum, &d);
        }
    }
    return true;
}

/* What is in no day yet, as far as it lies in whole days. sum NULL: only counts. */
static bool unrolled(struct call *c, int64_t project, int64_t from, int64_t to, struct usage_sum *sum,
                     size_t *count, struct err *err)
{
    struct rows r;
    *count = 0;
    for (int64_t after = 0;; after = row_int(&r, r.count - 1, 0)) {
        if (!ROWS(c, USAGE_UNROLLED, &r, err, V_INT(after)))
            return false;
        *count += r.count;
        for (size_t i = 0; sum && i < r.count; i++) {
            struct interval it = usage_interval(&r, i);
            if (!project || it.project == project)
                usage_sum_part(sum, &it, from, to);
        }
        if (!r.count)
            return true;
    }
}

/* How much is in no day yet, and how much is in the archive. */
static bool standing(struct call *c, size_t *loose, int64_t *archived, struct err *err)
{
    struct rows r;
    if (!unrolled(c, 0, 0, 0, NULL, loose, err) || !ROWS(c, ARCHIVE_LAST, &r, err, V_TEXT(ARCHIVE_USAGE)))
        return false;
    *archived = r.count ? row_int(&r, 0, 0) : 0;
    return true;
}

static bool read_all(struct call *c, int64_t project, int64_t from_ms, int64_t to_ms,
                     struct usage_sum *sum, struct err *err)
{
    int64_t from = MAX(from_ms, 0), first = (from + day_ms - 1) / day_ms,
            end = to_ms == INT64_MAX ? INT64_MAX / day_ms : to_ms / day_ms;
    if (first >= end)
        return edge(c, project, from, to_ms, sum, err);
    size_t count;
    return unrolled(c, project, first * day_ms, to_ms == INT64_MAX ? to_ms : end * day_ms, sum, &count, err)
           && days(c, project, first, end, sum, err)
           && edge(c, project, from, first * day_ms, sum, err)
           && (to_ms == INT64_MAX || edge(c, project, end * day_ms, to_ms, sum, err));
}

bool usage_read(struct call *c, int64_t project, int64_t from_ms, int64_t to_ms,
                struct usage_sum *sum, bool *moved, struct err *err)
{
    size_t loose, loose_after;
    int64_t archived, archived_after;
    if (!standing(c, &loose, &archived, err) || !read_all(c, project, from_ms, to_ms, sum, err)
        || !standing(c, &loose_after, &archived_after, err))
        return false;
    *moved = loose != loose_after || archived != archived_after;
    return true;
}
