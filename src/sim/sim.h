/* sim.h - `arcus sim`: what would the scheduler do with these nodes and tasks. */
#pragma once
#include "sim/world.h"

int sim_main(int argc, char **argv);

/* --- report.c: several runs of one policy, with different seeds */
struct sim_report { const char *policy; const struct sim_result *runs; size_t count; uint64_t first_seed; bool leave; };
void report_json(struct str *out, const struct sim_report *r);          /* one run: its object; several: means, and the runs */
void report_csv(struct str *out, const struct sim_report *r, size_t count);
void report_table(struct str *out, const struct sim_report *r, size_t count);
void report_svg(struct str *out, const struct sim_report *r, size_t count);     /* allocation against what was asked for */
