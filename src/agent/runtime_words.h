/* runtime_words.h - what an OCI runtime says when it could not make a container, made readable. Pure.
 *
 * False: a process of its own was killed, which is the node's fault and not the task's. */
#pragma once
#include "base/err.h"

enum { RUNTIME_WORDS = 8192 };
bool runtime_why(const char *runtime, const char *log, struct err *err);    /* log: all that it wrote, not empty */
