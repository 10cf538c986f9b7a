/* job.c - the rules of a workload that a table cannot say, and what follows from what was left out.
 *
 * Settling is idempotent: a spec that was settled, stored and read again settles to the same, so the rules are applied in one place
 * when a job comes in and when it is loaded. Whether a volume, a secret or a node exists is asked elsewhere. */
#include "base/err.h"
#include "base/str.h"
#include "base/when.h"
#include "model/house.h"
#include "model/job.h"
#include "model/mig.h"
#include "model/place.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    SMALL_DISK_MIB = 1024,
    SMALL_DISK_STEP = 64,
    /* Of all arguments: an order holds them, and the kernel takes no text above 128 KiB. */
    SCRIPT_MAX = 64 << 10,
    ENV_MAX = 48 << 10,
    ID_MAX = 65535, /* of users and groups inside a task */
    SHM_DEFAULT_MIB = 64,
    CPU_DEFAULT_MILLI = 1000,
    MEM_DEFAULT_MIB = 1 << 10,
};

static bool all_of(const char *s, size_t n, const char *also)
{
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)s[i]) && !strchr(also, s[i]))
            return false;
    return n > 0 && isalnum((unsigned char)s[0]);
}

static bool settle_type(struct job_spec *s, struct err *err)
{
    static const struct { const char *said, *meant; } same[] = {
        { "job", "job" },           { "task", "job" },     { "batch", "job" },
        { "instance", "instance" }, { "dev", "instance" }, { "dev-environment", "instance" },
    };
    const char *meant = s->type ? NULL : "job";
    for (size_t i = 0; i < COUNT(same); i++)
        meant = text_is(s->type, same[i].said) ? same[i].meant : meant;
    if (!meant)
        return err_field(
            err, "type",
            "type: '%.40s' does not exist here; what exists is job (task and batch mean the same) and instance",
            s->type);
    s->type = s->jupyter ? "instance" : meant;
    return true;
}

/* A machine to work on needs no command of its own: it waits, and goes when it is told. */
static const char *const waits[] = { "trap 'exit 0' TERM INT; while :; do sleep 86400 & wait $!; done" };
static const char *const notebook[] = {
    "command -v jupyter >/dev/null || { echo 'jupyter is not in this image' >&2; sleep 1; exit 127; }\n"
    "umask 077; token=${HOME:-/root}/.arcus-jupyter; mkdir -p \"${HOME:-/root}\"\n"
    "[ -s \"$token\" ] || head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \\n' >\"$token\"\n"
    "umask 022; JUPYTER_TOKEN=$(cat \"$token\"); export JUPYTER_TOKEN\n"
    "exec jupyter lab --no-browser --allow-root --ip=127.0.0.1 --port=8888",
};

int64_t disk_rounded(int64_t mib)
{
    int64_t step = mib <= SMALL_DISK_MIB ? SMALL_DISK_STEP : SMALL_DISK_MIB;
    return (mib + step - 1) / step * step;
}

static bool settle_instance(struct job_spec *s, struct err *err)
{
    if (!text_is(s->type, "instance"))
        return !s->autostop_s || err_field(err, "autostop", "autostop: only an instance is stopped when nobody uses it; make it one (type: instance), or give a max_duration");
    if (s->count > 1 || s->array || s->nodes)
        return err_field(err, s->nodes ? "nodes" : "count", "%s: an instance is one machine; submit several", s->nodes ? "nodes" : "count");
    if (s->jupyter && (s->command.count || s->run.count))
        return err_field(err, "jupyter", "jupyter: a command is given too; give one of them");
    if (!s->command.count && !s->run.count)
        s->run = (struct texts){ (const char **)(s->jupyter ? notebook : waits), 1 };
    s->jupyter = false; /* it is what it runs */
    s->disk_mib = disk_rounded(s->disk_mib);
    if (!s->retry.limit)
        s->retry.limit = 1000;
    return true;
}

bool image_ref_check(const char *image, struct err *err)
{
    return all_of(image, strlen(image), "._/:@-") && !strstr(image, "..")
               ? true
               : err_field(err, "image",
                           "image: '%.80s' is not an image; write debian:12, "
                           "registry.example.com/team/train:v1, an imported name, or host",
                           image);
}

static bool settle_image(struct job_spec *s, struct err *err)
{
    if (!s->image)
        return true;
    /* SkyPilot's image_id: docker:debian:12, skopeo's docker://debian:12 */
    if (text_starts(s->image, "docker:"))
        s->image += text_starts(s->image, "docker://") ? 9 : 7;
    return image_ref_check(s->image, err);
}

static size_t texts_size(const struct texts *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->count; i++)
        n += strlen(t->at[i]) + 1;
    return n;
}

static bool settle_command(struct job_spec *s, struct err *err)
{
    if (s->command.count == 1 && s->command.at[0][strcspn(s->command.at[0], " \t\n")]) {
        if (s->run.count)
            return err_field(err, "run", "run: a command is given too; give one of them");
        s->run = s->command; /* `command: python train.py`, as one text */
        s->command = (struct texts){ 0 };
    }
    if (s->command.count && s->run.count)
        return err_field(err, "run", "run: a command is given too; give one of them");
    if (s->command.count && !s->command.at[0][0])
        return err_field(err, "command", "command: its first word is empty; write what to run");
    if (s->run.count + s->setup.count && texts_size(&s->run) + texts_size(&s->setup) > SCRIPT_MAX)
        return err_field(err, s->run.count ? "run" : "setup",
                         "%s: longer than 64 KB; put it into a file of workdir",
                         s->run.count ? "run" : "setup");
    if (texts_size(&s->command) > SCRIPT_MAX)
        return err_field(err, "command",
                         "command: longer than 64 KB; put it into a file of workdir");
    if (s->command.count || s->run.count)
        return true;
    if (s->setup.count)
        return err_field(err, "run", "run: missing; setup only prepares, say what to run after it");
    if (!s->image || text_is(s->image, "host"))
        return err_field(
            err, "command",
            "command: missing; say what to run (only an image that you name may bring its own)");
    return true;
}

bool mig_parse(const char *text, struct gpu_ask *out)
{
    char *end;
    if (text[0] < '1' || text[0] > '7' || text[1] != 'g' || text[2] != '.'
        || !isdigit((unsigned char)text[3]))
        return false;
    long gb = strtol(text + 3, &end, 10);
    if (gb < 1 || gb > 1024 || (!text_is(end, "gb") && !text_is(end, "gb+me"))
        || !text_copy(out->mig, sizeof out->mig, text))
        return false;
    int milli = mig_milli(text);
    out->milli = milli ? milli : 1000 * (text[0] - '0') / 7;
    return true;
}

static bool settle_gpu_memory(const struct job_spec *s, struct gpu_ask *gpu, struct err *err)
{
    int64_t mib;
    if (!s->gpu_memory)
        return true;
    if (!mib_parse(s->gpu_memory, &mib) || mib < 1)
        return err_field(err, "gpu_memory", "gpu_memory: '%s' is not a size such as 10GB or 512MB",
                         s->gpu_memory);
    if (mib > 4 << 20)
        return err_field(err, "gpu_memory", "gpu_memory: no GPU has %s; a number alone is GB",
                         s->gpu_memory);
    if (!gpu->milli)
        return err_field(err, "gpu_memory",
                         "gpu_memory: say also how much of a GPU: gpus: 0.25 for a share, gpus: 1 "
                         "for one with at least that memory");
    if (gpu->milli < 1000)
        gpu->share_mib = mib;
    else if (mib > gpu->mem_min_mib)
        gpu->mem_min_mib = mib;
    return true;
}

static bool settle_gpus(const struct job_spec *s, struct shape *shape, struct err *err)
{
    if (s->flavor && (s->gpus || s->mig))
        return err_field(err, "flavor", "flavor: gpus are given too; give one of them");
    if (s->flavor && !flavor_parse(s->flavor, shape, err))
        return false;
    if (s->gpus && !gpu_ask_parse(s->gpus, &shape->gpu, err))
        return false;
    if (s->mig) {
        if (s->gpus && shape->gpu.milli != 1000)
            return err_field(err, "mig",
                             "mig: a task holds one slice; leave gpus out, or name only the model");
        if (!mig_parse(s->mig, &shape->gpu))
            return err_field(err, "mig", "mig: '%s' is not a profile such as 1g.18gb", s->mig);
        if (s->gpu_memory)
            return err_field(err, "gpu_memory",
                             "gpu_memory: a MIG slice has the memory of its profile");
        return true;
    }
    return settle_gpu_memory(s, &shape->gpu, err);
}

void shape_on(const struct shape *s, int64_t node_cpu_milli, int64_t node_mem_mib, int64_t kept_mib, int64_t node_gpus,
              int64_t *cpu_milli, int64_t *mem_mib)
{
    int64_t part = s->gpu.milli, whole = MAX(node_gpus, 1) * 1000;
    *cpu_milli = s->cpu_milli ? s->cpu_milli : node_cpu_milli * part / whole;
    int64_t mem = node_mem_mib * part / whole;
    *mem_mib = s->mem_mib ? s->mem_mib : mem - MIN(kept_mib, mem / 2);
}

static bool settle_shape(struct job_spec *s, struct shape *shape, struct err *err)
{
    if (!settle_gpus(s, shape, err))
        return false;
    if (shape->cpu_milli
        && ((s->cpu_milli && s->cpu_milli != shape->cpu_milli)
            || (s->mem_mib && s->mem_mib != shape->mem_mib)))
        return err_field(
            err, "flavor",
            "flavor: %s says how many CPUs and how much memory; leave cpus and memory out",
            s->flavor);
    if (!shape->cpu_milli)
        shape->cpu_milli = s->cpu_milli || shape->gpu.milli ? s->cpu_milli : CPU_DEFAULT_MILLI;
    if (!shape->mem_mib)
        shape->mem_mib = s->mem_mib || shape->gpu.milli ? s->mem_mib : MEM_DEFAULT_MIB;
    s->cpu_milli = shape->cpu_milli;
    s->mem_mib = shape->mem_mib;
    shape->disk_mib = s->disk_mib;
    if (!s->mem_mib) /* the node's share, known when it is placed */
        return true;
    if (s->shm_mib > s->mem_mib && s->shm_mib == SHM_DEFAULT_MIB)
        s->shm_mib = s->mem_mib;
    if (s->shm_mib > s->mem_mib)
        return err_field(
            err, "shm_size",
            "shm_size: is part of the memory, of which the task has %lld MiB; ask for more memory",
            (long long)s->mem_mib);
    return true;
}

static bool settle_array(struct job_spec *s, struct err *err)
{
    char *end;
    if (!s->array)
        return true;
    if (!isdigit((unsigned char)s->array[0]))
        return err_field(err, "array", "array: '%s' is not understood; write 0-9 or 10", s->array);
    long long a = strtoll(s->array, &end, 10), n = a;
    if (*end == '-' && isdigit((unsigned char)end[1])) {
        if (a != 0)
            return err_field(err, "array", "array: tasks are numbered from 0; write 0-N");
        n = strtoll(end + 1, &end, 10);
        n += n <= JOB_COUNT_MAX;
    }
    if (*end)
        return err_field(err, "array",
                         "array: '%s' is not understood; write 0-9 or 10 (lists, steps and %% "
                         "limits do not exist here)",
                         s->array);
    if (n < 1 || n > JOB_COUNT_MAX)
        return err_field(err, "array", "array: between 1 and %d tasks, not %s", JOB_COUNT_MAX,
                         s->array);
    if (s->count > 1 && s->count != n)
        return err_field(err, "array",
                         "array: %s is %lld tasks, but count says %lld; give one of them", s->array,
                         n, (long long)s->count);
    s->count = n;
    s->array = NULL;
    return true;
}

static bool settle_env(const struct job_spec *s, struct err *err)
{
    size_t total = 0;
    for (size_t i = 0; i < s->env.count; i++) {
        const char *k = s->env.at[i].key;
        bool good = k[0] && !isdigit((unsigned char)k[0]);
        for (const char *p = k; *p; p++)
            good = good && (isalnum((unsigned char)*p) || *p == '_');
        if (!good)
            return err_field(err, "env",
                             "env: '%.60s' is not the name of a variable: letters, digits and _, "
                             "not a digit first",
                             k);
        if (text_starts(k, "ARCUS_"))
            return err_field(
                err, "env",
                "env: %.60s begins with ARCUS_, which is kept for what the cloud tells the task",
                k);
        total += strlen(k) + strlen(s->env.at[i].value) + 2;
    }
    return total <= ENV_MAX || err_field(err, "env", "env: longer than 48 KB together");
}

static bool settle_labels(const struct job_spec *s, struct err *err)
{
    for (size_t i = 0; i < s->labels.count; i++)
        if (strlen(s->labels.at[i].value) > 256)
            return err_field(err, "labels", "labels: the value of %.60s is longer than 256 bytes",
                             s->labels.at[i].key);
    return true;
}

static bool settle_secrets(const struct job_spec *s, struct err *err)
{
    for (size_t i = 0; i < s->secrets.count; i++) {
        const char *name = s->secrets.at[i];
        if (strlen(name) > 63 || !all_of(name, strlen(name), "._-"))
            return err_field(err, "secrets",
                             "secrets: '%.63s' is not the name of a secret, such as HF_TOKEN; a "
                             "value never stands here",
                             name);
        for (size_t k = 0; k < i; k++)
            if (text_is(s->secrets.at[k], name))
                return err_field(err, "secrets", "secrets: %s is given twice", name);
    }
    return true;
}

static bool path_inside(const char *path, const char *folder)
{
    size_t n = strlen(folder);
    return strncmp(path, folder, n) == 0 && (!path[n] || path[n] == '/');
}

static bool mount_path_check(const char *text, const char *path, size_t n, struct err *err)
{
    static const char *const kept[] = { "/proc", "/sys", "/dev", "/run/secrets" };
    char copy[1024];
    if (n < 2 || n >= sizeof copy || path[0] != '/')
        return err_field(err, "volumes",
                         "volumes: '%.100s' is not NAME:/path; the path inside the task begins "
                         "with / and is not / itself",
                         text);
    memcpy(copy, path, n);
    copy[n] = 0;
    for (char *p = copy; (p = strchr(p, '/')); p++)
        if (p[1] == '/' || !p[1] || path_inside(p, "/.") || path_inside(p, "/.."))
            return err_field(err, "volumes",
                             "volumes: '%.100s' has an empty part, '.' or '..' in its path", text);
    for (size_t i = 0; i < COUNT(kept); i++)
        if (path_inside(copy, kept[i]))
            return err_field(err, "volumes", "volumes: nothing can be mounted in %s", kept[i]);
    return true;
}

bool job_mount_parse(const char *text, struct arena *mem, struct job_mount *out, struct err *err)
{
    const char *colon = strchr(text, ':'), *path = colon ? colon + 1 : "";
    const char *mode = strchr(path, ':');
    size_t n = mode ? (size_t)(mode - path) : strlen(path);
    if (!colon || colon - text > 63 || !all_of(text, (size_t)(colon - text), "._-"))
        return err_field(err, "volumes",
                         text[0] == '/' || text[0] == '.'
                             ? "volumes: '%.100s': a folder of your machine cannot be mounted; "
                               "make a volume, or use workdir"
                             : "volumes: '%.100s' is not NAME:/path or NAME:/path:ro",
                         text);
    if (!mount_path_check(text, path, n, err))
        return false;
    if (mode && !text_is(mode, ":ro") && !text_is(mode, ":rw"))
        return err_field(err, "volumes",
                         "volumes: '%.100s' ends in '%.20s'; only :ro and :rw exist", text, mode);
    *out = (struct job_mount){ arena_bytes(mem, text, (size_t)(colon - text)),
                               arena_bytes(mem, path, n), text_is(mode, ":ro") };
    return true;
}

static bool settle_volumes(const struct job_spec *s, struct arena *mem, struct err *err)
{
    struct job_mount *m = ARENA_ARRAY(mem, struct job_mount, s->volumes.count + 1);
    for (size_t i = 0; i < s->volumes.count; i++) {
        if (!job_mount_parse(s->volumes.at[i], mem, &m[i], err))
            return false;
        for (size_t k = 0; k < i; k++)
            if (text_is(m[k].path, m[i].path))
                return err_field(err, "volumes", "volumes: two of them are mounted on %s",
                                 m[i].path);
    }
    return true;
}

static bool settle_retry(const struct job_spec *s, struct err *err)
{
    for (size_t i = 0; i < s->retry.on.count; i++) {
        bool known = false;
        for (int o = OUTCOME_EXITED; o < OUTCOME_COUNT; o++)
            known
                = known || (o != OUTCOME_CANCELLED && o != OUTCOME_OUT_OF_DISK && text_is(s->retry.on.at[i], outcome_name(o)));
        if (!known)
            return err_field(err, "retry_on",
                             "retry_on: '%.40s' is not an outcome to retry after; there are "
                             "exited, signaled, out_of_memory, deadline, image_not_found, "
                             "start_failed, node_lost, node_fault and preempted",
                             s->retry.on.at[i]);
    }
    return true;
}

static bool add_after(struct objects *list, size_t room, int when, const char *job, size_t n,
                      struct arena *mem, struct err *err)
{
    struct job_after *at = list->at;
    if (!n || n > 64)
        return err_field(err, "dependency",
                         "dependency: names no job; write JOB, ok:JOB, any:JOB or fail:JOB");
    if (list->count == room)
        return err_field(err, "dependency", "dependency: at most %zu jobs", room);
    at[list->count++] = (struct job_after){ arena_bytes(mem, job, n), when };
    return true;
}

/* "prepare", "any:prepare", and Slurm's afterok:ID:ID. */
static bool parse_after(const char *text, struct objects *list, size_t room, struct arena *mem,
                        struct err *err)
{
    static const struct {
        const char *word;
        int when;
    } words[] = {
        { "ok:", AFTER_OK },        { "afterok:", AFTER_OK }, { "any:", AFTER_ANY },
        { "afterany:", AFTER_ANY }, { "fail:", AFTER_FAIL },  { "afternotok:", AFTER_FAIL },
    };
    const char *jobs = text;
    int when = AFTER_OK;
    for (size_t i = 0; i < COUNT(words) && jobs == text; i++)
        if (text_starts(text, words[i].word)) {
            jobs = text + strlen(words[i].word);
            when = words[i].when;
        }
    if (jobs == text && strchr(text, ':'))
        return err_field(
            err, "dependency",
            "dependency: '%.60s' is not understood; write JOB, ok:JOB, any:JOB or fail:JOB", text);
    for (const char *end; jobs; jobs = *end ? end + 1 : NULL) {
        end = jobs + strcspn(jobs, ":");
        if (!add_after(list, room, when, jobs, (size_t)(end - jobs), mem, err))
            return false;
    }
    return true;
}

static bool settle_after(struct job_spec *s, struct arena *mem, struct err *err)
{
    enum { ROOM = 64 };
    if (!s->dependency.count)
        return true;
    struct objects list = { ARENA_ARRAY(mem, struct job_after, ROOM), 0 };
    const struct job_after *given = s->after.at;
    for (size_t i = 0; i < s->after.count; i++)
        if (!add_after(&list, ROOM, given[i].when, given[i].job, strlen(given[i].job), mem, err))
            return false;
    for (size_t i = 0; i < s->dependency.count; i++)
        if (!parse_after(s->dependency.at[i], &list, ROOM, mem, err))
            return false;
    s->after = list;
    s->dependency = (struct texts){ 0 };
    return true;
}

static bool user_part_check(const char *part, size_t n)
{
    if (!n || n > 32 || part[0] == '-')
        return false;
    if (strspn(part, "0123456789") >= n)
        return n <= 5 && atoi(part) <= ID_MAX;
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)part[i]) && !strchr("_.-", part[i]))
            return false;
    return !isdigit((unsigned char)part[0]);
}

static bool settle_user(const struct job_spec *s, struct err *err)
{
    if (!s->user)
        return true;
    size_t n = strcspn(s->user, ":");
    const char *group = s->user[n] ? s->user + n + 1 : NULL;
    return (user_part_check(s->user, n) && (!group || user_part_check(group, strlen(group))))
           || err_field(err, "user",
                        "user: '%.64s' is not uid, uid:gid or a name; ids go from 0 to %d", s->user,
                        ID_MAX);
}

/* What a gang cannot be yet: a volume is on one node, and an array of gangs would need a second number for each task. */
static bool settle_gang(struct job_spec *s, struct err *err)
{
    if (s->nodes <= 1) {
        s->nodes = 0;
        return true;
    }
    if (s->count > 1)
        return err_field(err, "nodes", "nodes: a job is an array (count) or a gang (nodes), not both; submit several gangs");
    if (s->node)
        return err_field(err, "nodes", "nodes: %lld nodes are asked for and one is named; leave node out", (long long)s->nodes);
    if (s->volumes.count)
        return err_field(err, "nodes", "nodes: a volume is on one node, so a gang cannot mount it; use workdir for what all need");
    if (s->spread)
        return err_field(err, "spread", "spread: the nodes of a gang are kept close together; it is for arrays (count)");
    return true;
}

enum place_level job_within(const struct job_spec *s)
{
    return s->within ? (enum place_level)(s->within - 1) : PLACE_REGION;
}

enum place_level job_prefer(const struct job_spec *s)
{
    return s->prefer ? (enum place_level)(s->prefer - 1) : PLACE_NVLINK;
}

static bool settle_workdir(const struct job_spec *s, struct err *err)
{
    const char *d = s->workdir;
    return !d
           || (text_starts(d, "sha256:") && strlen(d) == 7 + 64
               && strspn(d + 7, "0123456789abcdef") == 64)
           || err_field(err, "workdir",
                        "workdir: '%.60s' is not the digest of an uploaded folder (`arcus run` and "
                        "`arcus submit` upload it for you)",
                        d);
}

/* Something to know it by, from what it runs: "/usr/bin/Python3.11 train.py" is called python3.11. */
static void settle_name(struct job_spec *s, struct arena *mem)
{
    const char *from = s->command.count ? s->command.at[0] : "", *slash = strrchr(from, '/');
    char name[33] = "";
    size_t n = 0;
    if (s->name)
        return;
    for (const char *p = slash ? slash + 1 : from; *p && n + 1 < sizeof name; p++)
        if (isalnum((unsigned char)*p) || (n && strchr("._-", *p)))
            name[n++] = (char)tolower((unsigned char)*p);
    while (n && !isalnum((unsigned char)name[n - 1]))
        n--;
    s->name = n ? arena_bytes(mem, name, n) : "job";
}

static bool settle_tolerations(struct job_spec *s, struct arena *mem, struct err *err)
{
    const char **list = ARENA_ARRAY(mem, const char *, s->tolerations.count);
    for (size_t i = 0; i < s->tolerations.count; i++) {
        char taint[TAINT_TEXT];
        if (!taint_parse(s->tolerations.at[i], "tolerations", taint, err))
            return false;
        list[i] = arena_text(mem, taint);
    }
    s->tolerations.at = list;
    return true;
}

bool job_spec_settle(struct job_spec *spec, struct arena *mem, struct shape *shape, struct err *err)
{
    struct job_spec s = *spec;
    struct shape settled = { 0 };
    if (!settle_type(&s, err) || !settle_instance(&s, err) || !settle_image(&s, err) || !settle_command(&s, err)
        || !settle_shape(&s, &settled, err) || !settle_array(&s, err) || !settle_env(&s, err)
        || !settle_labels(&s, err) || !settle_secrets(&s, err) || !settle_volumes(&s, mem, err)
        || !settle_retry(&s, err) || !settle_after(&s, mem, err) || !settle_user(&s, err)
        || !settle_gang(&s, err) || !settle_workdir(&s, err) || !settle_tolerations(&s, mem, err) || !place_name_check("region", s.region, err) || !place_name_check("zone", s.zone, err))
        return false;
    settle_name(&s, mem);
    *spec = s;
    *shape = settled;
    return true;
}

static void add_lines(struct str *out, const struct texts *lines)
{
    for (size_t i = 0; i < lines->count; i++)
        str_printf(out, "%s\n", lines->at[i]);
}

/* A list of lines stops at the first that fails; one block of text is a script and means what a shell makes of it. */
struct texts job_argv(const struct job_spec *spec, struct arena *mem)
{
    if (!spec->run.count && !spec->setup.count)
        return spec->command;
    AUTO(str_done) struct str script = { 0 };
    if (spec->setup.count || spec->run.count > 1)
        str_text(&script, "set -e\n");
    add_lines(&script, &spec->setup);
    if (spec->setup.count && spec->run.count <= 1)
        str_text(&script, "set +e\n");
    add_lines(&script, &spec->run);
    if (spec->command.count)
        str_text(&script, "exec \"$@\"\n");
    struct texts argv = { ARENA_ARRAY(mem, const char *, 4 + spec->command.count), 3 };
    argv.at[0] = "/bin/sh";
    argv.at[1] = "-c";
    argv.at[2] = arena_text(mem, script.at);
    for (size_t i = 0; i < spec->command.count; i++) {
        argv.at[3] = "sh";
        argv.at[4 + i] = spec->command.at[i];
        argv.count = 5 + i;
    }
    return argv;
}
