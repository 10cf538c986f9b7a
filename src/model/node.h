/* node.h - a machine of the fleet as its agent tells it: inventory, and the GPUs it offers. */
#pragma once
#include "base/arena.h"
#include "model/place.h"

struct gpu_info {
    int64_t index;
    const char *uuid, *model;   /* "GPU-...", "NVIDIA H200" */
    int64_t mem_mib;
    bool simulated;
    bool healthy;
};
struct node_info {              /* the `hello` of an agent; stored as JSON in the node's row, printed in listings */
    const char *hostname, *version, *os_name, *kernel, *arch, *runtime, *cgroups;
    int64_t cpu_milli, mem_mib, disk_mib;
    bool host_image;            /* the operator allows `image: host` here */
    struct objects gpus;        /* of struct gpu_info */
    struct pairs labels;
    struct topology where;
    struct texts cannot;        /* what this host cannot hold, in words: "cgroup v1: buffered writes are not limited" */
};
/* What the operator says of a node (arcus nodes set); stored as JSON in its row. Where he says nothing its agent's word counts. */
struct node_settings { struct topology where; };
enum node_state { NODE_READY, NODE_CORDONED, NODE_DOWN, NODE_STATE_COUNT };
/* A cordoned node that is being emptied, or is empty. Not a state of its own: an older program beside ours knows three. */
enum node_drain { DRAIN_NONE, DRAIN_ON, DRAIN_DONE, DRAIN_COUNT };
const char *node_state_word(enum node_state state, enum node_drain drain);     /* "draining" */
extern const struct names node_state_names;
extern const struct fields gpu_info_fields, node_info_fields, node_settings_fields;
