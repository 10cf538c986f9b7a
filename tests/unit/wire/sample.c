#include "sample.h"

static const char *const on_lost_list[] = { "requeue", NULL, "wait" };
static const struct names on_lost_names = NAMES(on_lost_list);

static const struct field retry_rows[] = {
    FIELD(struct sample_retry, limit, INT, .min = 0, .max = 10, .def = "3", .help = "how often"),
    FIELD_AS(struct sample_retry, delay_s, "delay", DURATION, .max = 3600),
};
const struct fields sample_retry_fields = FIELDS(sample_retry, retry_rows);

static const struct field resource_rows[] = {
    FIELD(struct sample, gpus, TEXT, .aliases = "accelerators gpu"),
    FIELD_AS(struct sample, mem_mib, "memory", MIB, .min = 1, .max = 1 << 20),
    FIELD_AS(struct sample, cpu_milli, "cpus", MILLI, .min = 1, .max = 64000),
};
static const struct fields resource_fields = FIELDS(sample, resource_rows);

static const struct field rows[] = {
    FIELD(struct sample, name, TEXT, .required = true, .pattern = "name", .help = "what it is called", .example = "train"),
    FIELD(struct sample, image, TEXT, .aliases = "image_id container_image", .when_set = true, .max = 32, .min = 1),
    FIELD(struct sample, gpus, TEXT, .aliases = "accelerators", .when_set = true),
    FIELD(struct sample, secret, TEXT, .secret = true),
    FIELD(struct sample, any, JSON, .max = 64, .when_set = true),
    FIELD(struct sample, label, TEXT, .pattern = "label", .when_set = true),
    FIELD(struct sample, path, TEXT, .pattern = "path", .when_set = true),
    FIELD(struct sample, digest, TEXT, .pattern = "digest", .when_set = true),
    FIELD(struct sample, count, INT, .min = -5, .max = 64, .def = "1", .example = "8"),
    FIELD(struct sample, id, ID, .prefix = "job", .in_path = true, .required = true),
    FIELD_AS(struct sample, at_ms, "at", TIME),
    FIELD_AS(struct sample, time_s, "max_duration", DURATION, .aliases = "time", .max = 86400, .example = "1h30m"),
    FIELD_AS(struct sample, mem_mib, "mem", MIB, .def = "1GB", .min = 1, .max = 1 << 20),
    FIELD_AS(struct sample, cpu_milli, "cpu", MILLI, .min = 1, .max = 64000, .def = "0.5"),
    FIELD(struct sample, spot, BOOL),
    FIELD(struct sample, on_lost, ENUM, .names = &on_lost_names, .example = "wait"),
    FIELD(struct sample, run, TEXTS, .aliases = "command commands", .max = 3, .example = "python train.py"),
    FIELD(struct sample, env, PAIRS, .aliases = "envs", .max = 3, .example = "A=1"),
    FIELD(struct sample, retry, OBJECT, .sub = &sample_retry_fields),
    FIELD(struct sample, after, OBJECTS, .sub = &sample_retry_fields, .max = 2, .when_set = true),
    { .name = "resources", .type = F_INLINE, .sub = &resource_fields, .hidden = true },
};
const struct fields sample_fields = FIELDS(sample, rows);
