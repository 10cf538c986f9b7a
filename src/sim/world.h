/* world.h - virtual time around the scheduler: the tasks of a trace arrive at a fleet, are placed by the same code that the server runs, stay
 * or leave, and nodes fail and come back.
 *
 * Everything follows from the trace and the seed. The world keeps its own books of what is free, in the plainest way, and checks each
 * placement and each refusal against them: `wrong` and `refused_feasible` must be 0. */
#pragma once
#include "sim/trace.h"

enum { SIM_CURVE = 301, SIM_WEIGHTS = 16 };      /* the curve: allocation when 0, 1, .. 300 % of the capacity were asked for */

struct sim_weight { const char *term; int64_t thousandths; };
struct sim_ask {
    const struct trace *trace;
    const char *policy;
    uint64_t seed;
    int64_t inflate_milli;          /* clones until so much of the GPU capacity is asked for; 0: none */
    bool in_order;                  /* arrivals as in the file, else shuffled */
    bool leave;                     /* tasks come and go at their times, and wait where nothing is free; else they stay, or are refused */
    bool no_backfill;               /* with leave: no start is held for the first in line */
    int64_t fail_every_s, repair_s; /* of one node, in the mean; 0: nodes do not fail */
    struct sim_weight weights[SIM_WEIGHTS];
    size_t weight_count;
    void (*on_progress)(void *arg, size_t done, size_t all);
    void *arg;
};
struct sim_result {
    size_t tasks, placed, refused, refused_feasible, wrong, waiting, failures;
    int64_t capacity_milli, asked_milli, held_milli;    /* at the end */
    int64_t stuck_milli;            /* idle GPU that the usual tasks cannot use */
    int32_t curve[SIM_CURVE];       /* hundredths of a percent; -1: not reached */
    int64_t decisions, busy_us;
    int64_t wait_mean_s, wait_median_s, wait_95_s, wait_max_s, wait_several_s;      /* several: the mean of tasks with more than one GPU */
    int64_t used_mean;              /* over time, hundredths of a percent; with `leave` */
    int64_t fairness;               /* Jain's index over projects, ten-thousandths */
};
MUST_CHECK bool sim_run(const struct sim_ask *ask, struct sim_result *out, struct err *err);
