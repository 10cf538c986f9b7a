/* sample.h - a field table with every type in it, for the tests of bind and for the fuzzer. */
#pragma once
#include "wire/bind.h"

struct sample_retry { int64_t limit, delay_s; };
struct sample {
    const char *name, *image, *gpus, *secret, *any, *label, *path, *digest;
    int64_t count, id, at_ms, time_s, mem_mib, cpu_milli;
    bool spot;
    int on_lost;
    struct texts run;
    struct pairs env;
    struct sample_retry retry;
    struct objects after;       /* of struct sample_retry */
};
extern const struct fields sample_fields, sample_retry_fields;
