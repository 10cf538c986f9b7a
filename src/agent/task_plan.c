/* task_plan.c - the tables of plan.json, stop and status. Linked into the agent and into the
 * supervisor. */
#include "agent/task_plan.h"
#include "model/ipv4.h"
#include "wire/bind.h"

#define PATH_FIELD(member, ...) FIELD(struct plan, member, TEXT, .max = 4096, __VA_ARGS__)

static const char *const root_words[] = { [ROOT_IMAGE] = "image", [ROOT_HOST] = "host" };
static const struct names root_names = NAMES(root_words);
static const char *const scratch_words[] = { [SCRATCH_LOOP] = "loop", [SCRATCH_TMPFS] = "tmpfs" };
static const struct names scratch_names = NAMES(scratch_words);
static const char *const phase_words[]
    = { [PHASE_PREPARING] = "preparing", [PHASE_RUNNING] = "running", [PHASE_ENDED] = "ended" };
static const struct names phase_names = NAMES(phase_words);

static const struct field mount_rows[] = {
    FIELD(struct plan_mount, source, TEXT, .required = true, .max = 4096),
    FIELD(struct plan_mount, name, TEXT, .required = true),
    FIELD(struct plan_mount, read_only, BOOL),
    FIELD(struct plan_mount, plain, BOOL, .when_set = true),
};
static const struct fields mount_fields = FIELDS(plan_mount, mount_rows);

static const struct field node_rows[] = {
    FIELD(struct plan_node, source, TEXT, .required = true, .max = 4096),
    FIELD(struct plan_node, path, TEXT, .required = true, .max = 1024),
    FIELD(struct plan_node, block, BOOL, .when_set = true),
    FIELD(struct plan_node, major, INT, .min = 0, .max = 1 << 20),
    FIELD(struct plan_node, minor, INT, .min = 0, .max = 1 << 20),
};
static const struct fields node_fields = FIELDS(plan_node, node_rows);

static const struct field file_rows[] = {
    FIELD(struct plan_file, source, TEXT, .required = true, .max = 4096),
    FIELD(struct plan_file, path, TEXT, .required = true, .max = 1024),
    FIELD(struct plan_file, optional, BOOL, .when_set = true),
};
static const struct fields file_fields = FIELDS(plan_file, file_rows);

static const struct field link_rows[] = {
    FIELD(struct plan_link, path, TEXT, .required = true, .max = 1024),
    FIELD(struct plan_link, says, TEXT, .required = true, .max = 1024),
};
static const struct fields link_fields = FIELDS(plan_link, link_rows);

static const struct field share_rows[] = {
    FIELD(struct plan_share, uuid, TEXT, .required = true, .max = 95),
    FIELD(struct plan_share, milli, INT, .min = 1, .max = 1000),
    FIELD(struct plan_share, mem_mib, INT, .min = 0, .max = 1 << 30),
};
static const struct fields share_fields = FIELDS(plan_share, share_rows);

static const struct field gpu_rows[] = {
    FIELD(struct plan_gpu, uuid, TEXT, .required = true, .max = 95),
    FIELD(struct plan_gpu, first, INT, .min = 0, .max = CARE_SLOTS - 1),
    FIELD(struct plan_gpu, slots, INT, .min = 1, .max = CARE_SLOTS),
    FIELD(struct plan_gpu, mem_mib, INT, .min = 0, .max = 1 << 30),
};
static const struct fields gpu_fields = FIELDS(plan_gpu, gpu_rows);

static const struct field slice_rows[] = {
    FIELD(struct plan_slice, uuid, TEXT, .required = true, .max = 95),
    FIELD(struct plan_slice, what, TEXT, .required = true, .max = 47),
};
static const struct fields slice_fields = FIELDS(plan_slice, slice_rows);

static const struct field plan_rows[] = {
    FIELD(struct plan, attempt, INT, .required = true),
    FIELD(struct plan, id, TEXT, .required = true),
    PATH_FIELD(runtime, .required = true),
    PATH_FIELD(runtime_root, .required = true),
    PATH_FIELD(folder, .required = true),
    PATH_FIELD(run, .required = true),
    PATH_FIELD(status, .required = true),
    PATH_FIELD(logs, .required = true),
    PATH_FIELD(lease, .required = true),
    FIELD(struct plan, cgroup, TEXT, .required = true),
    FIELD(struct plan, uid_base, INT, .required = true, .min = PLAN_UID_BASE,
          .max = UINT32_MAX - PLAN_UID_COUNT),
    FIELD(struct plan, uid, INT, .min = 0, .max = PLAN_UID_COUNT - 1),
    FIELD(struct plan, gid, INT, .min = 0, .max = PLAN_UID_COUNT - 1),
    FIELD(struct plan, hostname, TEXT, .required = true, .max = 64),
    FIELD(struct plan, root, ENUM, .names = &root_names),
    PATH_FIELD(lower, .when_set = true),
    FIELD(struct plan, hide, TEXTS, .max = 64),
    PATH_FIELD(disk, .when_set = true),
    FIELD(struct plan, disk_used, BOOL, .when_set = true),
    FIELD(struct plan, scratch, ENUM, .names = &scratch_names),
    PATH_FIELD(scratch_template, .when_set = true),
    FIELD(struct plan, scratch_mib, INT, .min = 1, .max = 1 << 30),
    FIELD(struct plan, mounts, OBJECTS, .sub = &mount_fields),
    FIELD(struct plan, nodes, OBJECTS, .sub = &node_fields, .max = PLAN_NODES, .when_set = true),
    FIELD(struct plan, files, OBJECTS, .sub = &file_fields, .max = PLAN_FILES, .when_set = true),
    FIELD(struct plan, links, OBJECTS, .sub = &link_fields, .max = PLAN_FILES, .when_set = true),
    FIELD(struct plan, shares, OBJECTS, .sub = &share_fields, .max = 64, .when_set = true),
    FIELD(struct plan, gpus, OBJECTS, .sub = &gpu_fields, .max = 64, .when_set = true),
    FIELD(struct plan, slices, OBJECTS, .sub = &slice_fields, .max = 64, .when_set = true),
    FIELD(struct plan, project, INT, .min = 0, .max = INT64_MAX, .when_set = true),
    PATH_FIELD(driver, .when_set = true),
    PATH_FIELD(workdir, .when_set = true),
    FIELD(struct plan, secrets, TEXTS, .max = 64),
    PATH_FIELD(fabric, .when_set = true),
    FIELD(struct plan, net, INT, .min = 0, .max = NET_NUMBERS - 1, .when_set = true),
    FIELD(struct plan, mbit, INT, .min = 0, .max = MAX_MBIT, .when_set = true),
    FIELD(struct plan, mtu, INT, .min = 0, .max = 65535, .when_set = true),
    FIELD(struct plan, address, TEXT, .max = 15, .when_set = true),
    FIELD(struct plan, bridge, TEXT, .max = 15, .when_set = true),
    FIELD(struct plan, link, TEXT, .max = 15, .when_set = true),
    FIELD(struct plan, resolver, TEXT, .max = 15, .when_set = true),
    FIELD(struct plan, hostfile, TEXT, .max = HOSTFILE_BYTES, .when_set = true),
    PATH_FIELD(filter, .when_set = true),
    FIELD(struct plan, mem_mib, INT),
    FIELD(struct plan, log_mib, INT),
    FIELD(struct plan, max_duration_s, INT),
    FIELD(struct plan, grace_s, INT),
    FIELD(struct plan, run_for_s, INT),
};
const struct fields plan_fields = FIELDS(plan, plan_rows);

static const struct field stop_rows[] = {
    FIELD(struct plan_stop, grace_s, INT),
    FIELD(struct plan_stop, as, ENUM, .names = &outcome_names),
    FIELD(struct plan_stop, why, TEXT, .max = 240, .when_set = true),
};
const struct fields plan_stop_fields = FIELDS(plan_stop, stop_rows);

static const struct field status_rows[] = {
    FIELD(struct task_status, attempt, INT, .required = true),
    FIELD(struct task_status, phase, ENUM, .required = true, .names = &phase_names),
    FIELD(struct task_status, pid, INT),
    FIELD(struct task_status, start_time, INT),
    FIELD(struct task_status, started_ms, INT),
    FIELD(struct task_status, ended_ms, INT),
    FIELD(struct task_status, outcome, ENUM, .names = &outcome_names),
    FIELD(struct task_status, exit_code, INT),
    FIELD(struct task_status, signal, INT),
    FIELD(struct task_status, detail, TEXT, .max = 512, .when_set = true),
    FIELD(struct task_status, blame, ENUM, .names = &blame_names, .when_set = true),
};
const struct fields task_status_fields = FIELDS(task_status, status_rows);

bool status_read(struct slice file, struct arena *mem, struct task_status *out, struct err *err)
{
    bool ok = false;
    while (!ok && file.len) {
        const char *line = memrchr(file.at, '\n', file.len);
        struct slice text = line ? (struct slice){ line + 1, (size_t)(file.at + file.len - line - 1) } : file;
        struct task_status s = { 0 };
        struct json *doc = NULL;
        *err = (struct err){ 0 };
        ok = text.len && json_parse(text, mem, &doc, err) && bind_read_ours(doc, &task_status_fields, mem, &s, NULL, err);
        if (ok)
            *out = s;
        file.len = line ? (size_t)(line - file.at) : 0;
    }
    return ok || (err->rc ? false : err_set(err, RC_BAD_INPUT, "a status without a line"));
}
