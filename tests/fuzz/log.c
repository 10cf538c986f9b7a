/* log.c - a segment of a task's log as a crash may have left it: records come out whole, within the bytes, and in order. */
#include "agent/log_format.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice in = { (const char *)data, size };
    const char *end = in.at + size;
    AUTO(arena_free) struct arena *mem = arena_new();
    for (struct log_record r; log_next(&in, &r) == LOG_RECORD;) {
        char head[LOG_HEADER_MAX];
        MUST(r.bytes.at >= (const char *)data && r.bytes.at + r.bytes.len == in.at && in.at <= end && in.at + in.len == end);
        MUST(r.bytes.len <= LOG_RECORD_MAX && (r.stream == 'o' || r.stream == 'e') && log_header(head, r.at_ms, r.stream, r.bytes.len) < sizeof head);
    }
    int64_t number = 0;
    char name[LOG_SEGMENT_NAME + 1];
    if (log_is_segment(arena_bytes(mem, data, size), &number) && number < 100000000) {
        log_segment_name(name, number);
        MUST(size >= LOG_SEGMENT_NAME && memcmp(name, data, LOG_SEGMENT_NAME) == 0);
    }
    return 0;
}
