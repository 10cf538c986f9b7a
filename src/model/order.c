/* order.c - the field tables of the agent's connection. Sizes are whole numbers in the unit of their name (MiB,
 * thousandths, seconds): machines talk here, not people, and nothing is rounded on the way. Text that passes along as
 * a secret is bounded but not marked `secret`, because this wire exists to carry it; who prints an order prints no
 * secrets. */
#include "model/order.h"
#include "model/ipv4.h"
#include "base/id.h"
#include "model/gpu_live.h"
#include "model/prefix.h"

enum {
    MAX_ITEMS = 1024,           /* of one report; the rest follows in the next */
    MAX_GPUS = 64,
    MAX_GPU_MILLI = 1000,
    MAX_TEXT_LINE = 1024,
    MAX_TERMINAL = 10000,
};
static const int64_t max_mib = INT64_C(1) << 40, max_s = INT64_C(10) * 366 * 86400, max_ms = INT64_C(1) << 52;

static const char *const news_list[] = { [TASK_STARTED] = "started", [TASK_ENDED] = "ended" };
_Static_assert(COUNT(news_list) == TASK_NEWS_COUNT, "every news has a name");
static const struct names news_names = NAMES(news_list);

static const struct field gpu_rows[] = {
    FIELD(struct order_gpu, index, INT, .required = true, .min = 0, .max = MAX_GPUS - 1),
    FIELD(struct order_gpu, uuid, TEXT, .required = true, .max = 96),
    FIELD(struct order_gpu, milli, INT, .required = true, .min = 1, .max = MAX_GPU_MILLI),
    FIELD(struct order_gpu, mem_mib, INT, .min = 0, .max = 1 << 30),
    FIELD(struct order_gpu, simulated, BOOL),
    FIELD(struct order_gpu, mig, TEXT, .max = 23, .when_set = true),
    FIELD(struct order_gpu, slot, INT, .min = 0, .max = 7, .when_set = true),
    FIELD(struct order_gpu, size, INT, .min = 0, .max = 8, .when_set = true),
};
static const struct fields gpu_fields = FIELDS(order_gpu, gpu_rows);

static const struct field mount_rows[] = {
    FIELD(struct order_mount, volume, ID, .prefix = PREFIX_VOLUME, .required = true),
    FIELD(struct order_mount, name, TEXT, .max = 128),
    FIELD(struct order_mount, path, TEXT, .required = true, .max = 4096),
    FIELD(struct order_mount, read_only, BOOL),
};
static const struct fields mount_fields = FIELDS(order_mount, mount_rows);

static const struct field secret_rows[] = {
    FIELD(struct order_secret, name, TEXT, .required = true, .max = 128),
    FIELD(struct order_secret, value, TEXT, .required = true, .max = SECRET_BYTES),
};
static const struct fields secret_fields = FIELDS(order_secret, secret_rows);

static const struct field net_at_rows[] = {
    FIELD(struct net_at, node, TEXT, .max = 15, .when_set = true),
    FIELD(struct net_at, hosts, TEXT, .required = true, .max = NET_HOSTS * 5),
};
static const struct fields net_at_fields = FIELDS(net_at, net_at_rows);

static const struct field net_part_rows[] = {
    FIELD(struct net_part, net, INT, .required = true, .min = 1, .max = NET_NUMBERS - 1),
    FIELD(struct net_part, whole, BOOL, .when_set = true),
    FIELD(struct net_part, at, OBJECTS, .sub = &net_at_fields, .max = NET_HOSTS, .when_set = true),
};
static const struct fields net_part_fields = FIELDS(net_part, net_part_rows);

static const struct field order_rows[] = {
    FIELD(struct order, attempt, ID, .prefix = PREFIX_ATTEMPT, .required = true),
    FIELD(struct order, job, ID, .prefix = PREFIX_JOB, .required = true),
    FIELD(struct order, project, ID, .prefix = PREFIX_PROJECT, .required = true),
    FIELD(struct order, task, INT, .min = 0, .max = 10000000, .when_set = true),
    FIELD(struct order, count, INT, .min = 1, .max = 10000000, .def = "1"),
    FIELD(struct order, try_number, INT, .min = 1, .max = 1 << 30, .def = "1"),
    FIELD(struct order, host_network, BOOL, .when_set = true),
    FIELD(struct order, stop, BOOL, .when_set = true),
    FIELD(struct order, stop_as, ENUM, .names = &outcome_names, .when_set = true),
    FIELD(struct order, name, TEXT, .max = 256, .when_set = true),
    FIELD(struct order, image, TEXT, .max = 512, .when_set = true),
    FIELD(struct order, image_blob, TEXT, .max = 128, .when_set = true),
    FIELD(struct order, argv, TEXTS, .max = 1024, .when_set = true),
    FIELD(struct order, env, PAIRS, .max = 1024, .when_set = true),
    FIELD(struct order, gpus, OBJECTS, .sub = &gpu_fields, .max = MAX_GPUS, .when_set = true),
    FIELD(struct order, cpu_milli, INT, .min = 0, .max = 1 << 30),
    FIELD(struct order, mem_mib, INT, .min = 0, .max = max_mib),
    FIELD(struct order, shm_mib, INT, .min = 0, .max = max_mib, .when_set = true),
    FIELD(struct order, disk_mib, INT, .min = 0, .max = max_mib, .when_set = true),
    FIELD(struct order, disk_mibs, INT, .min = 0, .max = 1 << 20, .when_set = true),
    FIELD(struct order, log_mib, INT, .min = 0, .max = 1 << 20, .when_set = true),
    FIELD(struct order, secrets, OBJECTS, .sub = &secret_fields, .max = 128, .when_set = true),
    FIELD(struct order, mounts, OBJECTS, .sub = &mount_fields, .max = 64, .when_set = true),
    FIELD(struct order, watch, BOOL, .when_set = true),
    FIELD(struct order, disk, ID, .prefix = PREFIX_VOLUME, .when_set = true),
    FIELD(struct order, disk_used, BOOL, .when_set = true),
    FIELD(struct order, workdir, TEXT, .max = 128, .when_set = true),
    FIELD(struct order, user, TEXT, .max = 64, .when_set = true),
    FIELD(struct order, net, INT, .min = 0, .max = NET_NUMBERS - 1, .when_set = true),
    FIELD(struct order, mbit, INT, .min = 0, .max = MAX_MBIT, .when_set = true),
    FIELD(struct order, address, TEXT, .max = 15, .when_set = true),
    FIELD(struct order, hostfile, TEXT, .max = HOSTFILE_BYTES, .when_set = true),
    FIELD(struct order, egress, TEXT, .max = EGRESS_TEXT, .when_set = true),
    FIELD(struct order, max_duration_s, INT, .min = 0, .max = max_s, .when_set = true),
    FIELD(struct order, grace_s, INT, .min = 0, .max = 86400),
    FIELD(struct order, hold_n, INT, .min = 0, .max = INT64_MAX, .when_set = true),
    FIELD(struct order, hold, BOOL, .when_set = true),
    FIELD(struct order, hold_mib, INT, .min = 0, .max = max_mib, .when_set = true),
    FIELD(struct order, run_for_s, INT, .min = 0, .max = max_s),
};
const struct fields order_fields = FIELDS(order, order_rows);

static const struct field desired_rows[] = {
    FIELD(struct desired, kind, TEXT, .required = true, .max = 16),
    FIELD(struct desired, generation, INT, .required = true, .min = 0, .max = INT64_MAX),
    FIELD(struct desired, full, BOOL),
    FIELD(struct desired, orders, OBJECTS, .sub = &order_fields, .max = ORDERS_MOST),
    FIELD(struct desired, gone, TEXTS, .max = ORDERS_MOST),
    FIELD(struct desired, volumes_gone, TEXTS, .max = ORDERS_MOST, .when_set = true),
    FIELD(struct desired, kept, INT, .min = 0, .max = INT64_MAX),
    FIELD(struct desired, now_ms, INT, .min = 0, .max = max_ms),
    FIELD(struct desired, rotate, BOOL, .when_set = true),
    FIELD(struct desired, beat, INT, .min = 0, .max = INT64_MAX, .when_set = true),
    FIELD(struct desired, look_ms, INT, .min = 0, .max = 1 << 22, .when_set = true),
    FIELD(struct desired, nets, OBJECTS, .sub = &net_part_fields, .max = NET_NUMBERS, .when_set = true),
    FIELD(struct desired, servers, TEXTS, .max = 64, .when_set = true),
};
const struct fields desired_fields = FIELDS(desired, desired_rows);

static const struct field item_rows[] = {
    FIELD(struct report_item, n, INT, .required = true, .min = 1, .max = INT64_MAX),
    FIELD(struct report_item, attempt, ID, .prefix = PREFIX_ATTEMPT, .required = true),
    FIELD(struct report_item, news, ENUM, .names = &news_names, .required = true),
    FIELD(struct report_item, at_ms, INT, .required = true, .min = 0, .max = max_ms),
    FIELD(struct report_item, started_ms, INT, .min = 0, .max = max_ms, .when_set = true),
    FIELD(struct report_item, outcome, ENUM, .names = &outcome_names, .when_set = true),
    FIELD(struct report_item, exit_code, INT, .min = 0, .max = 255, .when_set = true),
    FIELD(struct report_item, signal, INT, .min = 0, .max = 128, .when_set = true),
    FIELD(struct report_item, detail, TEXT, .max = MAX_TEXT_LINE, .when_set = true),
    FIELD(struct report_item, blame, ENUM, .names = &blame_names, .when_set = true),
};
const struct fields report_item_fields = FIELDS(report_item, item_rows);

static const char *const hold_list[] = { [HOLD_RUNNING] = "running", [HOLD_SUSPENDED] = "suspended" };
_Static_assert(COUNT(hold_list) == HOLD_STATE_COUNT, "every state of a hold has a name");
static const struct names hold_names = NAMES(hold_list);
static const struct field hold_rows[] = {
    FIELD(struct hold_told, attempt, ID, .prefix = PREFIX_ATTEMPT, .required = true),
    FIELD(struct hold_told, n, INT, .required = true, .min = 1, .max = INT64_MAX),
    FIELD(struct hold_told, state, ENUM, .names = &hold_names, .required = true),
    FIELD(struct hold_told, at_ms, INT, .min = 0, .max = max_ms),
    FIELD(struct hold_told, gpu_mib, INT, .min = 0, .max = max_mib),
    FIELD(struct hold_told, mem_mib, INT, .min = 0, .max = max_mib, .when_set = true),
    FIELD(struct hold_told, over_mib, INT, .min = 0, .max = max_mib, .when_set = true),
    FIELD(struct hold_told, why, TEXT, .max = MAX_TEXT_LINE, .when_set = true),
};
static const struct fields hold_fields = FIELDS(hold_told, hold_rows);

static const struct field use_rows[] = {
    FIELD(struct task_use, attempt, ID, .prefix = PREFIX_ATTEMPT, .required = true),
    FIELD(struct task_use, cpu_milli, INT, .min = -1, .max = INT64_C(1) << 40),
    FIELD(struct task_use, session, BOOL, .when_set = true),
};
static const struct fields use_fields = FIELDS(task_use, use_rows);

static const struct field report_rows[] = {
    FIELD(struct report, kind, TEXT, .required = true, .max = 16),
    FIELD(struct report, generation, INT, .min = 0, .max = INT64_MAX),
    FIELD(struct report, beat, INT, .min = 0, .max = INT64_MAX, .when_set = true),
    FIELD(struct report, items, OBJECTS, .sub = &report_item_fields, .max = MAX_ITEMS),
    FIELD(struct report, swept, TEXTS, .max = ORDERS_MOST, .when_set = true),
    FIELD(struct report, live, OBJECTS, .sub = &gpu_live_fields, .max = MAX_GPUS, .when_set = true),
    FIELD(struct report, holds, OBJECTS, .sub = &hold_fields, .max = ORDERS_MOST, .when_set = true),
    FIELD(struct report, uses, OBJECTS, .sub = &use_fields, .max = ORDERS_MOST, .when_set = true),
};
const struct fields report_fields = FIELDS(report, report_rows);

static const struct field open_rows[] = {
    FIELD(struct open_stream, kind, TEXT, .required = true, .max = 16),
    FIELD(struct open_stream, stream, TEXT, .required = true, .max = 128),
    FIELD(struct open_stream, what, TEXT, .required = true, .max = 16),
    FIELD(struct open_stream, attempt, ID, .prefix = PREFIX_ATTEMPT, .when_set = true),
    FIELD(struct open_stream, volume, ID, .prefix = PREFIX_VOLUME, .when_set = true),
    FIELD(struct open_stream, argv, TEXTS, .max = 1024, .when_set = true),
    FIELD(struct open_stream, barred, TEXTS, .max = 1024, .when_set = true),
    FIELD(struct open_stream, tty, BOOL, .when_set = true),
    FIELD(struct open_stream, follow, BOOL, .when_set = true),
    FIELD(struct open_stream, rows, INT, .min = 0, .max = MAX_TERMINAL, .when_set = true),
    FIELD(struct open_stream, cols, INT, .min = 0, .max = MAX_TERMINAL, .when_set = true),
    FIELD(struct open_stream, tail, INT, .min = -1, .max = INT64_C(1) << 40, .def = "-1"),
    FIELD(struct open_stream, source, TEXT, .max = 16, .when_set = true),
    FIELD(struct open_stream, from, TEXT, .max = LOG_PLACE - 1, .when_set = true),
    FIELD(struct open_stream, path, TEXT, .max = 4096, .when_set = true),
    FIELD(struct open_stream, port, INT, .min = 0, .max = 65535, .when_set = true),
};
const struct fields open_stream_fields = FIELDS(open_stream, open_rows);

bool log_place_good(const char *place)
{
    for (int part = 0; part < 3; part++) {
        size_t n = strspn(place, "0123456789");
        if (n == 0 || n > 18 || place[n] != (part < 2 ? '.' : 0))
            return false;
        place += n + (part < 2);
    }
    return true;
}

bool log_mark_read(const char *mark, int64_t *attempt, const char **place)
{
    char id[ID_TEXT];
    const char *dot = strchr(mark, '.');
    size_t n = dot ? (size_t)(dot - mark) : 0;
    if (!n || n >= sizeof id || !log_place_good(dot + 1))
        return false;
    memcpy(id, mark, n);
    id[n] = 0;
    if (!id_parse(id, PREFIX_ATTEMPT, attempt))
        return false;
    *place = dot + 1;
    return true;
}
