/* gpu_live.c - the field tables of live figures. They bound what an agent may claim; who is shown what is decided at the door. */
#include "model/gpu_live.h"
#include "model/prefix.h"

enum { TASKS_MOST = 1024 };
static const int64_t most = INT64_C(1) << 52;

static const struct field task_rows[] = {
    FIELD(struct live_task, attempt, ID, .prefix = PREFIX_ATTEMPT, .when_set = true),
    FIELD(struct live_task, mem_mib, INT, .min = -1, .max = 1 << 30),
    FIELD(struct live_task, processes, INT, .min = 0, .max = 1 << 22),
    FIELD(struct live_task, outside, INT, .min = 0, .max = 1 << 22, .when_set = true),
    FIELD(struct live_task, pids, TEXT, .max = LIVE_PIDS, .when_set = true),
};
const struct fields live_task_fields = FIELDS(live_task, task_rows);

#define FIGURE(member, most_) FIELD(struct gpu_live, member, INT, .min = -1, .max = most_, .def = "-1")
static const struct field rows[] = {
    FIELD(struct gpu_live, uuid, TEXT, .required = true, .max = 96),
    FIGURE(util, 100), FIGURE(mem_util, 100), FIGURE(mem_used_mib, 1 << 30), FIGURE(mem_free_mib, 1 << 30),
    FIGURE(power_mw, 1 << 30), FIGURE(energy_mj, most), FIGURE(temp_c, 1000), FIGURE(mem_temp_c, 1000),
    FIGURE(sm_mhz, 1 << 20), FIGURE(mem_mhz, 1 << 20), FIGURE(encoder, 100), FIGURE(decoder, 100),
    FIGURE(ecc_corrected, most), FIGURE(ecc_uncorrected, most), FIGURE(rows_corrected, most), FIGURE(rows_uncorrected, most), FIGURE(row_failure, 1),
    FIGURE(replays, most), FIGURE(xid, 1 << 20),
    FIELD(struct gpu_live, throttle, TEXT, .max = 160, .when_set = true),
    FIELD(struct gpu_live, tasks, OBJECTS, .sub = &live_task_fields, .max = TASKS_MOST, .when_set = true),
};
const struct fields gpu_live_fields = FIELDS(gpu_live, rows);

struct gpu_live gpu_live_unknown(const char *uuid)
{
    struct gpu_live l = { .uuid = uuid };
    for (size_t i = 0; i < COUNT(rows); i++)
        if (rows[i].type == F_INT)
            *(int64_t *)((char *)&l + rows[i].offset) = -1;
    return l;
}
