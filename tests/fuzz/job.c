/* job.c - a workload file, as a tenant would send it, up to the shape that the scheduler sees. */
#include "model/job.h"
#include "tables.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct job_spec spec = { 0 };
    struct shape shape = { 0 };
    struct err err = { 0 };
    struct json *doc;
    if (!fuzz_document(data, size, mem, &doc))
        return 0;
    fuzz_table(doc, &job_spec_fields, mem);
    if (!bind_read(doc, &job_spec_fields, mem, &spec, NULL, &err))
        return 0;
    if (!job_spec_settle(&spec, mem, &shape, &err)) {
        MUST(err.rc == RC_BAD_INPUT && err.text[0]);
        return 0;
    }
    bool gpu = shape.gpu.milli > 0 || shape.gpu.mig[0];     /* then CPUs and memory may be left to the node */
    MUST(shape.gpu.milli >= 0 && shape.cpu_milli >= !gpu && shape.mem_mib >= !gpu && spec.count >= 1);
    struct texts argv = job_argv(&spec, mem);
    for (size_t i = 0; i < argv.count; i++)
        MUST(argv.at[i]);
    return 0;
}
