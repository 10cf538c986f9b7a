/* log_format.h - a task's output as it lies on disk: records in segment files, written by its supervisor alone.
 *
 * DATA/logs/ATTEMPT/00000001, 00000002, ... A segment is a run of records; a record is one line of header and its bytes:
 *
 *     1731677000123 o 57\n            milliseconds since 1970, stream ('o' stdout, 'e' stderr), number of bytes
 *     ...57 bytes as the task wrote them, cut anywhere...
 *
 * A record never spans two segments. When all segments together would exceed the task's log_mib, the oldest is removed, so
 * a reader may find that the one it wants is gone and goes on with the next. A crash can leave a last record short: what
 * is not whole is not there yet. To follow: read what is whole, then wait (task_proto.h's `follow` tells at once) and
 * read on from the same offset; once a segment with a higher number exists and this one is read to its end, go there. */
#pragma once
#include "base/str.h"

enum { LOG_HEADER_MAX = 40, LOG_RECORD_MAX = 64 * 1024, LOG_SEGMENT_NAME = 8 };

struct log_record { int64_t at_ms; char stream; struct slice bytes; };

enum log_found { LOG_RECORD, LOG_MORE, LOG_BROKEN };
/* The record at the front of *in; *in then begins behind it. LOG_MORE: not whole yet, *in
 * unchanged. LOG_BROKEN: not a log; the rest of the segment is lost. */
enum log_found log_next(struct slice *in, struct log_record *out);
size_t log_header(char out[static LOG_HEADER_MAX], int64_t at_ms, char stream, size_t bytes);
bool log_is_segment(const char *name, int64_t *number);             /* a file name; numbers begin at 1 */
void log_segment_name(char out[static LOG_SEGMENT_NAME + 1], int64_t number);
