/* real_proc.h - starting a process, shared by real_proc.c and real_run.c only. */
#pragma once
#include "os/real.h"

bool proc_launch(const struct proc_spec *spec, int *pid, int *pidfd, struct err *err);
uint64_t proc_started(int pid, bool *zombie);   /* its start time in /proc; 0: it is not there */
