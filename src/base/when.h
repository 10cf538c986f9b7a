/* when.h - times and spans in the spelling of people. Times are milliseconds since 1970, UTC. */
#pragma once
#include "base/base.h"

enum { WHEN_TEXT = 32 };
const char *when_text(char out[static WHEN_TEXT], int64_t ms);      /* 2026-11-15T13:22:41.120Z */
bool when_parse(const char *text, int64_t *ms);                     /* RFC 3339, or a date alone */
const char *span_text(char out[static WHEN_TEXT], int64_t seconds); /* 1d2h, 3m20s, 5s */
bool span_parse(const char *text, int64_t *seconds);                /* 90, 10m, 1h30m, 2d, 1:30:00; at most ten years */
bool mib_parse(const char *text, int64_t *mib);                     /* 16 (GB), 512MB, 16GiB, 1.5GB, 2TB; rounded up */
bool milli_parse(const char *text, int64_t *milli);                 /* 0.5 -> 500; at most three decimals */
