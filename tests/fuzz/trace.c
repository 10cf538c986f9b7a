/* trace.c - any bytes as a trace of tasks and as one of nodes; what is taken is within its bounds. */
#include "fuzz.h"
#include "sim/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct slice csv = { (const char *)data, size };
    struct trace t = { 0 };
    struct err err = { 0 };
    if (trace_tasks(csv, "fuzz", mem, &t, &err)) {
        MUST(t.task_count > 0 && t.task_count <= size);
        for (size_t i = 0; i < t.task_count; i++)
            MUST(t.tasks[i].gpus >= 0 && t.tasks[i].gpus <= TRACE_GPUS_MAX && t.tasks[i].cpu_milli > 0 && strlen(t.tasks[i].spec) < 64
                 && t.tasks[i].nodes >= 1 && t.tasks[i].nodes <= TRACE_NODES_MAX && trace_asks(&t.tasks[i]) >= 0 && (t.tasks[i].gpus != 1 || t.tasks[i].milli > 0));
    } else {
        MUST(err.rc == RC_BAD_INPUT && err.text[0] && !t.tasks);
    }
    if (trace_nodes(csv, "fuzz", mem, &t, &err))
        for (size_t i = 0; i < t.node_count; i++)
            MUST(t.nodes[i].gpus >= 0 && t.nodes[i].gpus <= TRACE_GPUS_MAX && t.nodes[i].gpu_mib > 0 && strlen(t.nodes[i].model) < 48);
    return 0;
}
