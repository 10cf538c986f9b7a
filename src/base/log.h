/* log.h - one line for an operator, on standard error. Only the doors log (server, agent, api); libraries return errors.
 *
 * 2026-11-15T13:22:41.120Z info  agent  job-... started pid=1234 */
#pragma once
#include "base/base.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };
void log_level_set(enum log_level least);
bool log_level_of(const char *name, enum log_level *out);
void log_line(enum log_level level, const char *who, const char *fmt, ...) PRINTF(3, 4);
