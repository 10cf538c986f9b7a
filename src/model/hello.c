/* hello.c - the field tables of joining and of the first message on the agent's connection. */
#include "model/hello.h"
#include "model/prefix.h"

static const struct field hello_rows[] = {
    FIELD(struct hello, kind, TEXT, .required = true, .max = 16),
    FIELD(struct hello, info, OBJECT, .sub = &node_info_fields, .required = true),
    FIELD(struct hello, running, TEXTS, .max = 4096),
    FIELD(struct hello, generation, INT, .min = 0, .max = INT64_MAX),
    FIELD(struct hello, beat, INT, .min = 0, .max = INT64_MAX, .when_set = true),
    FIELD(struct hello, next, INT, .required = true, .min = 1, .max = INT64_MAX),
};
const struct fields hello_fields = FIELDS(hello, hello_rows);

static const struct field join_rows[] = {
    FIELD(struct node_join, token, TEXT, .required = true, .max = 128, .help = "the one-time token of `arcus node token`"),
    FIELD(struct node_join, name, TEXT, .required = true, .max = 63, .pattern = "name", .help = "what the node is to be called"),
    FIELD(struct node_join, hostname, TEXT, .max = 256),
};
const struct fields node_join_fields = FIELDS(node_join, join_rows);

static const struct field joined_rows[] = {
    FIELD(struct node_joined, id, ID, .prefix = PREFIX_NODE, .required = true),
    FIELD(struct node_joined, name, TEXT, .max = 63),
    FIELD(struct node_joined, key, TEXT, .required = true, .max = 128),
};
const struct fields node_joined_fields = FIELDS(node_joined, joined_rows);
