/* supervisor.h - stands for arcus-task on simulated machines: reads the plan, writes the status, obeys the stop file, the
 * lease and SIGKILL as the real one does. Counts how often each attempt was begun: the law is at most once. */
#pragma once
#include "os/sim.h"

enum { SUPERVISED_MOST = 1024 };
struct supervisor;
struct supervised { int64_t attempt; int begun, alive; };
struct supervisors {
    struct sim *sim;
    int64_t prepare_ms, run_ms;     /* of each task; run_ms 0: until it is stopped */
    int exit_code;
    bool lazy;                      /* as those that wait for attempts: an agent that lives writes down what it is told, so the disk is not waited for */
    struct supervised of[SUPERVISED_MOST];
    size_t count;
    struct supervisor *first;
    int twice;                      /* attempts that were begun again, or twice at a time */
};
void supervisors_install(struct supervisors *s, struct sim *sim, const char *run);  /* run: the agents' --run */
struct supervised *supervised(struct supervisors *s, int64_t attempt);
int supervisors_alive(const struct supervisors *s);
void supervisors_crashed(struct supervisors *s, const char *run);  /* after sim_crash of the machine that has this folder */
