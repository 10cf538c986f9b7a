/* real_proc.h - starting a process, shared by real_proc.c and real_run.c only. */
#pragma once
#include "os/real.h"

bool proc_launch(const struct proc_spec *spec, int *pid, int *pidfd, struct err *err);
