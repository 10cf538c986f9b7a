/* log_format.c - records of a task's log, read and written without any I/O. */
#include "agent/log_format.h"
#include <stdio.h>

/* Digits up to `stop`; leaves *at behind it. A header is bounded, so a missing stop within it
 * means a broken file. */
static enum log_found number(const char **at, const char *end, char stop, int64_t *out)
{
    int64_t n = 0;
    const char *p = *at;
    for (; p < end && *p >= '0' && *p <= '9'; p++) {
        if (n > INT64_MAX / 16)
            return LOG_BROKEN;
        n = n * 10 + (*p - '0');
    }
    if (p == end)
        return LOG_MORE;
    if (p == *at || *p != stop)
        return LOG_BROKEN;
    *at = p + 1;
    *out = n;
    return LOG_RECORD;
}

enum log_found log_next(struct slice *in, struct log_record *out)
{
    const char *at = in->at, *end = in->at + in->len;
    struct log_record r = { 0 };
    int64_t bytes = 0;
    enum log_found found = number(&at, end, ' ', &r.at_ms);
    if (found != LOG_RECORD)
        return found;
    if (at == end)
        return LOG_MORE;
    r.stream = *at++;
    if (r.stream != 'o' && r.stream != 'e')
        return LOG_BROKEN;
    if (at == end)
        return LOG_MORE;
    if (*at++ != ' ')
        return LOG_BROKEN;
    found = number(&at, end, '\n', &bytes);
    if (found != LOG_RECORD)
        return found;
    if (bytes > LOG_RECORD_MAX)
        return LOG_BROKEN;
    if (end - at < bytes)
        return LOG_MORE;
    r.bytes = (struct slice){ at, (size_t)bytes };
    *out = r;
    in->len -= (size_t)(at + bytes - in->at);
    in->at = at + bytes;
    return LOG_RECORD;
}

size_t log_header(char out[static LOG_HEADER_MAX], int64_t at_ms, char stream, size_t bytes)
{
    return (size_t)snprintf(out, LOG_HEADER_MAX, "%lld %c %zu\n", (long long)at_ms, stream, bytes);
}

bool log_is_segment(const char *name, int64_t *number_out)
{
    int64_t n = 0;
    for (int i = 0; i < LOG_SEGMENT_NAME; i++) {
        if (name[i] < '0' || name[i] > '9')
            return false;
        n = n * 10 + (name[i] - '0');
    }
    if (name[LOG_SEGMENT_NAME] || n == 0)
        return false;
    *number_out = n;
    return true;
}

void log_segment_name(char out[static LOG_SEGMENT_NAME + 1], int64_t number_)
{
    snprintf(out, LOG_SEGMENT_NAME + 1, "%08lld", (long long)(number_ % 100000000));
}
