/* log.c - one write(2) for each line, so that lines of threads and processes do not mix. */
#include "base/log.h"
#include "base/when.h"
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static const char *const names[] = { "debug", "info", "warn", "error" };
static enum log_level least = LOG_INFO;

void log_level_set(enum log_level level) { least = level; }

bool log_level_of(const char *name, enum log_level *out)
{
    for (size_t i = 0; i < COUNT(names); i++)
        if (text_is(name, names[i]))
            return *out = (enum log_level)i, true;
    return false;
}

void log_line(enum log_level level, const char *who, const char *fmt, ...)
{
    if (level < least)
        return;
    char line[1024], when[WHEN_TEXT];
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now); /* not the injected clock: an operator compares logs of machines */
    when_text(when, (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000);
    int n = snprintf(line, sizeof line, "%s %-5s %-7s ", when, names[level], who);
    va_list ap;
    va_start(ap, fmt);
    int m = vsnprintf(line + n, sizeof line - (size_t)n - 1, fmt, ap);
    va_end(ap);
    size_t len = MIN((size_t)n + (size_t)MAX(m, 0), sizeof line - 2);
    for (size_t i = (size_t)n; i < len; i++) /* a name from outside must not forge a line */
        if ((unsigned char)line[i] < 32 || line[i] == 127)
            line[i] = ' ';
    line[len++] = '\n';
    if (write(STDERR_FILENO, line, len) < 0)
        return; /* nowhere left to say it */
}
