/* trace.h - nodes and tasks from CSV: the columns of the public openb traces, and those of `arcus export trace`.
 *
 * The first line names the columns, in any order; columns that are not known are passed over. Nodes: sn (or name), cpu_milli,
 * memory_mib, gpu, model, gpu_mib. Tasks: name, cpu_milli, memory_mib, num_gpu, gpu_milli (of one GPU, where num_gpu is 1), gpu_spec
 * (models allowed, | between them), nodes (a gang: as much on each of so many nodes, all or nothing), project, priority, creation_time,
 * scheduled_time, deletion_time in seconds. */
#pragma once
#include "base/err.h"
#include "base/str.h"

enum { TRACE_ROWS_MAX = 10 * 1000 * 1000, TRACE_GPUS_MAX = 16, TRACE_NODES_MAX = 1024 };

struct trace_node { int64_t cpu_milli, mem_mib, gpus, gpu_mib; const char *name, *model; };
struct trace_task { int64_t cpu_milli, mem_mib, gpus, milli, nodes, priority, created_s, scheduled_s, deleted_s; const char *spec, *project; };
struct trace {
    struct trace_node *nodes;
    struct trace_task *tasks;
    size_t node_count, task_count;
};
/* `file` is for errors, which tell line, column, value and what would be right. Texts are in mem. */
MUST_CHECK bool trace_nodes(struct slice csv, const char *file, struct arena *mem, struct trace *out, struct err *err);
MUST_CHECK bool trace_tasks(struct slice csv, const char *file, struct arena *mem, struct trace *out, struct err *err);
static inline int64_t trace_milli(const struct trace_task *t)       /* of its GPUs on one node */
{
    return t->gpus == 1 ? t->milli : t->gpus * 1000;
}
static inline int64_t trace_asks(const struct trace_task *t)        /* of all of them */
{
    return trace_milli(t) * t->nodes;
}
