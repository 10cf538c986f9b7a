/* job_fields.c - the fields of a workload file, of `arcus run` and of job.submit: one table.
 *
 * Names of other systems for the same thing are aliases. `resources:` and `retry:` are groups that lead to the same members as
 * the flat fields, so a file may use either spelling, and what is stored is flat. Members that the table leaves at zero get
 * their default from job_spec_settle, because it follows from others. */
#include "model/job.h"
#include "model/ipv4.h"
#include "model/place.h"
#include "model/priority.h"

#define MAX_CPU_MILLI (INT64_C(4096) * 1000)
#define MAX_MEM_MIB   (INT64_C(64) << 20)               /* 64 TB */
#define MAX_DISK_MIB  (INT64_C(1024) << 20)
#define MAX_TIME_S    (INT64_C(366) * 86400)

static const char *const after_list[] = { [AFTER_OK] = "ok", [AFTER_ANY] = "any", [AFTER_FAIL] = "fail" };
static const struct names after_names = NAMES(after_list);
static const char *const lost_list[] = { [ON_LOST_REQUEUE] = "requeue", [ON_LOST_WAIT] = "wait" };
static const struct names lost_names = NAMES(lost_list);
static const char *const spread_list[] = { [SPREAD_NONE] = "none", [SPREAD_NODE] = "node", [SPREAD_ZONE] = "zone" };
_Static_assert(COUNT(spread_list) == SPREAD_COUNT, "every kind of spread has a name");
static const struct names spread_names = NAMES(spread_list);

static const struct field after_rows[] = {
    FIELD(struct job_after, job, TEXT, .required = true, .min = 1, .max = 64, .help = "id or name of the job to wait for", .example = "prepare"),
    FIELD(struct job_after, when, ENUM, .names = &after_names, .help = "ok: it succeeded; fail: it did not; any: it has ended", .example = "ok"),
};
const struct fields job_after_fields = FIELDS(job_after, after_rows);

#define GPUS(...) FIELD(struct job_spec, gpus, TEXT, .max = 64, .aliases = "gpu accelerators accelerator num_gpus gpus_per_node gres", __VA_ARGS__)
#define CPUS(...) FIELD_AS(struct job_spec, cpu_milli, "cpus", MILLI, .min = 10, .max = MAX_CPU_MILLI, .aliases = "cpu cpus_per_task num_cpus", __VA_ARGS__)
#define MEMORY(...) FIELD_AS(struct job_spec, mem_mib, "memory", MIB, .min = 16, .max = MAX_MEM_MIB, .aliases = "mem ram", __VA_ARGS__)
#define SHM(...) FIELD_AS(struct job_spec, shm_mib, "shm_size", MIB, .min = 1, .max = MAX_MEM_MIB, .aliases = "shm", __VA_ARGS__)
#define DISK(...) FIELD_AS(struct job_spec, disk_mib, "disk_size", MIB, .min = 64, .max = MAX_DISK_MIB, .aliases = "disk", __VA_ARGS__)
#define MIG(...) FIELD(struct job_spec, mig, TEXT, .max = 23, __VA_ARGS__)
#define GPU_MEMORY(...) FIELD(struct job_spec, gpu_memory, TEXT, .max = 32, .aliases = "gpumem", __VA_ARGS__)

static const struct field resources_rows[] = {
    GPUS(.flag = NULL), CPUS(.flag = NULL), MEMORY(.flag = NULL), SHM(.flag = NULL),
    DISK(.flag = NULL), MIG(.flag = NULL), GPU_MEMORY(.flag = NULL),
};
static const struct fields resources_fields = FIELDS(job_spec, resources_rows);

#define RETRY_LIMIT(name_, ...) FIELD_AS(struct job_spec, retry.limit, name_, INT, .min = 0, .max = 1000, __VA_ARGS__)
#define RETRY_DELAY(name_, ...) FIELD_AS(struct job_spec, retry.delay_s, name_, DURATION, .min = 0, .max = 86400, __VA_ARGS__)
#define RETRY_ON(name_, ...) FIELD_AS(struct job_spec, retry.on, name_, TEXTS, .max = OUTCOME_COUNT, __VA_ARGS__)
static const struct field retry_rows[] = {
    RETRY_LIMIT("limit", .aliases = "max count attempts"), RETRY_DELAY("delay", .aliases = "pause backoff"), RETRY_ON("on", .aliases = "on_events"),
};
static const struct fields retry_fields = FIELDS(job_spec, retry_rows);

#define WITHIN(...) FIELD(struct job_spec, within, ENUM, .when_set = true, .names = &place_ask_names, .aliases = "required", __VA_ARGS__)
#define PREFER(...) FIELD(struct job_spec, prefer, ENUM, .when_set = true, .names = &place_ask_names, .aliases = "preferred", __VA_ARGS__)
static const struct field topology_rows[] = { WITHIN(.flag = NULL), PREFER(.flag = NULL) };
static const struct fields topology_fields = FIELDS(job_spec, topology_rows);

static const struct field spec_rows[] = {
    FIELD(struct job_spec, type, TEXT, .max = 32, .def = "job", .aliases = "kind", .help = "job (task and batch mean the same), or instance: a machine to work on, which stays until it is cancelled and is started again when it fails", .example = "instance"),
    FIELD(struct job_spec, jupyter, BOOL, .when_set = true, .flag = "--jupyter", .help = "an instance that runs jupyter lab of its image; `arcus jupyter` opens it"),
    FIELD(struct job_spec, name, TEXT, .when_set = true, .max = 63, .pattern = "name", .aliases = "job_name", .flag = "-J --name --job-name",
          .help = "what it is called in listings; need not be the only one of that name", .example = "train"),
    FIELD(struct job_spec, image, TEXT, .when_set = true, .min = 1, .max = 512, .aliases = "image_id container_image docker_image", .flag = "-i --image --container-image",
          .help = "a registry reference, an imported image, or `host` where the operator allows it; the cloud's default when left out", .example = "debian:12"),
    FIELD(struct job_spec, command, TEXTS, .when_set = true, .max = 1024, .aliases = "cmd argv",
          .help = "what to run and its arguments, after `--` on the command line; a single text with blanks is a shell line", .example = "python train.py"),
    FIELD(struct job_spec, run, TEXTS, .when_set = true, .max = 1024, .aliases = "commands script", .flag = "--run --wrap",
          .help = "shell lines instead of a command; a list stops at the first line that fails", .example = "python train.py --epochs 3"),
    FIELD(struct job_spec, setup, TEXTS, .when_set = true, .max = 1024, .help = "shell lines that must succeed first", .example = "pip install -r requirements.txt"),
    GPUS(.when_set = true, .flag = "-g -G --gpus --gpus-per-node --gres",
         .help = "GPUs of one task: a number, a share below 1, a model, a range of memory", .example = "H200:8, 0.5, 24GB..80GB:2"),
    GPU_MEMORY(.when_set = true, .flag = "--gpu-memory", .help = "memory of a share; with whole GPUs, the least that each must have", .example = "10GB"),
    MIG(.when_set = true, .help = "a MIG slice of this profile instead of a GPU", .example = "1g.18gb"),
    CPUS(.when_set = true, .flag = "-c --cpus --cpus-per-task", .help = "CPUs of one task; when left out, 1, or with GPUs the same part of the node as they are", .example = "4"),
    MEMORY(.when_set = true, .flag = "-m --mem --memory", .help = "memory of one task; when left out, 1 GB, or with GPUs the same part of the node as they are", .example = "16GB"),
    SHM(.when_set = true, .def = "64MB", .flag = "--shm-size", .help = "size of /dev/shm, within the memory of the task", .example = "8GB"),
    DISK(.when_set = true, .def = "10GB", .flag = "--disk --disk-size", .help = "what it may write besides volumes", .example = "50GB"),
    FIELD_AS(struct job_spec, disk_mibs, "disk_bandwidth", MIB, .min = 1, .max = 1 << 20, .when_set = true, .aliases = "disk_bps", .flag = "--disk-bandwidth",
             .help = "the most that it reads from the node's disk, and writes to it, in a second", .example = "200MB"),
    { .name = "resources", .type = F_INLINE, .hidden = true, .sub = &resources_fields },
    FIELD(struct job_spec, flavor, TEXT, .when_set = true, .max = 47, .aliases = "instance_type", .flag = "--flavor",
          .help = "a standard shape instead of gpus (see `arcus flavors`)", .example = "h200.1x"),
    FIELD(struct job_spec, count, INT, .min = 1, .max = JOB_COUNT_MAX, .def = "1", .aliases = "array_size", .flag = "-n --count",
          .help = "how many tasks; each learns its number from ARCUS_ARRAY_INDEX, 0 and up", .example = "10"),
    FIELD(struct job_spec, array, TEXT, .when_set = true, .max = 32, .flag = "-a --array", .help = "the same as count, the way Slurm spells it", .example = "0-9"),
    FIELD(struct job_spec, priority, INT, .min = 0, .max = 100, .def = "50", .named = priority_named, .words = PRIORITY_WORDS, .flag = "-p --priority", .help = "spot, low, normal, high, urgent, or 0 to 100: a higher class starts first, and among the jobs of one project the higher number", .example = "high"),
    FIELD(struct job_spec, env, PAIRS, .when_set = true, .max = 256, .aliases = "envs environment", .flag = "-e --env", .help = "environment of the task", .example = "EPOCHS=3"),
    FIELD(struct job_spec, labels, PAIRS, .when_set = true, .max = 64, .pattern = "label", .aliases = "tags", .flag = "-l --label", .help = "words of your own to find it by", .example = "team=vision"),
    FIELD(struct job_spec, secrets, TEXTS, .when_set = true, .max = 64, .aliases = "secret", .flag = "--secret", .help = "names of secrets; each is the file /run/secrets/NAME", .example = "HF_TOKEN"),
    FIELD(struct job_spec, volumes, TEXTS, .when_set = true, .max = 32, .aliases = "volume mounts file_mounts", .flag = "-v --volume", .help = "VOLUME:/path, with :ro to only read it", .example = "data:/data:ro"),
    FIELD(struct job_spec, workdir, TEXT, .when_set = true, .max = 4096, .aliases = "working_dir", .flag = "-w --workdir",
          .help = "a folder that the task gets as its working folder; the command line uploads it, and sends its digest", .example = "."),
    FIELD_AS(struct job_spec, max_duration_s, "max_duration", DURATION, .when_set = true, .min = 0, .max = MAX_TIME_S, .aliases = "time time_limit timeout", .flag = "-t --time --max-duration",
             .help = "it is ended after this long; no limit when left out", .example = "2h"),
    FIELD_AS(struct job_spec, autostop_s, "autostop", DURATION, .when_set = true, .min = 0, .max = MAX_TIME_S, .aliases = "idle_duration inactivity_duration", .flag = "--autostop --idle-duration",
             .help = "an instance is stopped, as by `arcus stop`, when nobody used it for this long: its GPUs (without any, its CPUs) were idle, and no session was open", .example = "30m"),
    FIELD_AS(struct job_spec, grace_s, "grace", DURATION, .min = 0, .max = JOB_GRACE_MAX, .def = "30s", .aliases = "grace_period stop_duration", .flag = "--grace", .help = "between SIGTERM and SIGKILL when it must end", .example = "2m"),
    { .name = "retry", .type = F_INLINE, .hidden = true, .sub = &retry_fields },
    RETRY_LIMIT("retries", .when_set = true, .flag = "--retries", .help = "how often a task that failed is tried again; faults of the cloud do not count", .example = "3"),
    RETRY_DELAY("retry_delay", .def = "10s", .flag = "--retry-delay", .help = "pause before it is tried again", .example = "1m"),
    RETRY_ON("retry_on", .when_set = true, .flag = "--retry-on", .help = "only after these outcomes; any failure when left out", .example = "out_of_memory"),
    FIELD(struct job_spec, after, OBJECTS, .when_set = true, .sub = &job_after_fields, .max = 64, .aliases = "depends_on", .flag = "--after-json", .help = "jobs that must have ended before it starts", .example = "[{\"job\": \"prepare\"}]"),
    FIELD(struct job_spec, dependency, TEXTS, .when_set = true, .max = 64, .flag = "--after --dependency", .help = "the same in short: JOB, ok:JOB, any:JOB or fail:JOB", .example = "prepare"),
    FIELD(struct job_spec, on_lost, ENUM, .names = &lost_names, .flag = "--on-lost", .help = "when its node goes silent: requeue gives it to another node, wait waits for that one", .example = "wait"),
    FIELD(struct job_spec, user, TEXT, .when_set = true, .max = 64, .flag = "-u --user", .help = "who it runs as inside: uid, uid:gid or a name; the image's own when left out", .example = "1000:1000"),
    FIELD_AS(struct job_spec, log_mib, "log_size", MIB, .min = 1, .max = 10 << 10, .def = "100MB", .flag = "--log-size", .help = "what is kept of its output, per task; the oldest part is dropped", .example = "1GB"),
    FIELD(struct job_spec, nodes, INT, .when_set = true, .min = 1, .max = JOB_NODES_MAX, .aliases = "num_nodes", .flag = "-N --nodes --num-nodes",
          .help = "a gang: one task on each of so many nodes; all start at once or none, and if one fails all start again", .example = "4"),
    FIELD(struct job_spec, network, ENUM, .when_set = true, .names = &network_names, .flag = "--network", .help = "project: the network of the project's tasks, and out of it where the project may go; none: only itself; host: that of the node, on nodes that are the project's alone", .example = "none"),
    { .name = "topology", .type = F_INLINE, .hidden = true, .sub = &topology_fields },
    WITHIN(.flag = "--within", .help = "what a gang must not leave: nvlink, rack, switch, zone, region (auto) or any; it waits until there is room", .example = "rack"),
    PREFER(.flag = "--prefer", .help = "what a gang is to be in if there is room, else the next wider, up to within; auto: as close together as can be", .example = "rack"),
    FIELD(struct job_spec, spread, ENUM, .when_set = true, .names = &spread_names, .help = "tasks of an array go to different nodes, or to different zones, as far as there is room; none: wherever they fit best", .example = "zone"),
    FIELD(struct job_spec, region, TEXT, .when_set = true, .max = PLACE_NAME - 1, .help = "only in this region", .example = "eu-west"),
    FIELD(struct job_spec, zone, TEXT, .when_set = true, .max = PLACE_NAME - 1, .aliases = "availability_zone", .help = "only in this zone", .example = "a"),
    FIELD(struct job_spec, node, TEXT, .when_set = true, .max = 64, .aliases = "nodelist", .flag = "--node --nodelist", .help = "only on this node, by name or id", .example = "gpu-07"),
    FIELD(struct job_spec, tolerations, TEXTS, .when_set = true, .max = 16, .aliases = "toleration tolerates", .flag = "--toleration --tolerate", .help = "taints of nodes that it may run on all the same: key=value, or key for any value", .example = "dedicated=vision:NoSchedule"),
};
const struct fields job_spec_fields = FIELDS(job_spec, spec_rows);
