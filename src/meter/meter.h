/* meter.h - intervals -> usage. Pure and integer: what an attempt held, times how long.
 *
 * An interval is made once, when its attempt ends or is suspended, and never changes, but that it is not billed if the attempt ends by our fault. Sums cut it at midnight UTC, so days add up to the whole; they
 * hold what is billable and nothing else. An attempt counts once, in the line where it started. */
#pragma once
#include "base/arena.h"
#include "base/str.h"
#include "model/job_state.h"

struct interval {
    int64_t attempt, project, owner;
    int owner_kind;
    const char *project_name, *owner_name, *flavor;
    int64_t gpu_milli, gpu_mib, cpu_milli, mem_mib;
    int64_t started_ms, ended_ms;
    bool billable, simulated;
};
/* From ready to end; never negative when clocks disagree. Nothing is metered that never was ready, and our faults are not billed. */
bool meter_interval(struct interval *i, int64_t started_ms, int64_t ended_ms, enum outcome outcome);

enum { BY_PROJECT = 1, BY_USER = 2, BY_FLAVOR = 4, BY_DAY = 8 };
MUST_CHECK bool meter_by(const char *text, unsigned *by, struct err *err);      /* "project,day" */
struct usage_line {
    const char *project, *user, *flavor;    /* "" where not asked for */
    int64_t day_ms;                         /* midnight; 0 where not asked for */
    int64_t attempts, ms, gpu_milli_ms, gpu_mib_ms, cpu_milli_ms, mem_mib_ms;
    bool simulated;
};
struct usage_sum;
struct usage_sum *usage_sum_new(struct arena *mem, unsigned by, int64_t from_ms, int64_t to_ms);
void usage_sum_add(struct usage_sum *s, const struct interval *i);
void usage_sum_part(struct usage_sum *s, const struct interval *i, int64_t from_ms, int64_t to_ms);     /* only what of it lies there */
/* Sums of whole days, made before: of one project, user and flavor. */
void usage_sum_add_day(struct usage_sum *s, const struct usage_line *day);
/* The days of an interval, one after the other: *at begins with 0. false: there is none left, or none that is billable. */
bool usage_day_next(const struct interval *i, int64_t *at, struct usage_line *out);
size_t usage_sum_lines(struct usage_sum *s, struct usage_line **out);           /* sorted by project, user, flavor, day */
