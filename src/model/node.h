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
    bool ecc_off;               /* memory without error correction: it is not shared */
    const char *mig;            /* NULL or "": not in MIG mode; "on": in it, without instances; "1g.18gb@0,3g.71gb@4": with these */
    struct texts mig_uuids;     /* "MIG-...", of those instances, in that order */
    struct texts mig_ids;       /* "1/0": the driver's numbers of their GPU and compute instances */
    const char *vendor;         /* "nvidia", "amd", "intel"; NULL: simulated */
    const char *health;         /* why it is not healthy, in words; NULL: it is */
    const char *fault;          /* of what kind that is, if its hardware is at fault: "memory", "xid": a test may take it back; "held": it may not. NULL: it is not */
    int64_t ecc_errors;         /* uncorrectable, since its driver was loaded */
    const char *test, *scrub;   /* how its last test and the last overwriting of its memory ended; NULL: none */
    int64_t test_ms, scrub_ms;  /* when */
    const char *note;           /* what an operator should know although it is: "some rows are to be remapped at the next reset" */
    const char *device;         /* of its own: "/dev/nvidia0", "/dev/dri/renderD128" */
    const char *pci;            /* "0000:18:00.0", as sysfs spells it */
    int64_t numa;               /* -1: none */
    const char *driver;         /* "580.159.03", "amdgpu" */
    const char *cuda;           /* of its driver: "13.0" */
    const char *mode;           /* of compute: NULL default, "exclusive_process", "prohibited" */
    int64_t power_cap_mw;
    int64_t nvlinks;            /* that are up, to whomever */
    struct objects peers;       /* of struct gpu_peer */
};
struct gpu_peer {               /* how near another GPU of the node is */
    int64_t index;
    const char *path;           /* "nvlink", "switch" (one PCIe switch), "bridge" (one host bridge), "numa", "system" */
    int64_t links;              /* of NVLink, straight to it */
};
struct nic_info {               /* a network interface or a port of an InfiniBand or RoCE adapter that has a device of its own */
    const char *name;           /* "eth0", "mlx5_0:1" */
    const char *kind;           /* "ethernet", "infiniband", "roce" */
    const char *state;          /* "up", "down" */
    int64_t mbps;               /* 0: not known */
    const char *pci;
    int64_t numa;
    struct pairs near;          /* GPU index -> path, as in struct gpu_peer */
};
struct numa_info { int64_t node; const char *cpus; int64_t mem_mib; };      /* cpus: "0-47,96-143" */
struct node_info {              /* the `hello` of an agent; stored as JSON in the node's row, printed in listings */
    const char *hostname, *version, *os_name, *kernel, *arch, *runtime, *cgroups;
    int64_t cpu_milli, mem_mib, disk_mib;
    bool host_image;            /* the operator allows `image: host` here */
    bool disks;                 /* what an instance writes can be kept here from one attempt to the next */
    bool network;               /* tasks here can have an address in the network of their project */
    const char *underlay;       /* the address under which other nodes reach that network; NULL or "": it ends at this node */
    struct objects gpus;        /* of struct gpu_info */
    const char *cpu_model;
    int64_t sockets, cores;     /* cores: real ones; 0: not known */
    struct objects numas, nics; /* of struct numa_info, struct nic_info */
    struct pairs labels;
    struct topology where;
    struct texts cannot;        /* what this host cannot hold, in words: "cgroup v1: buffered writes are not limited" */
};
/* What the operator says of a node (arcus nodes set); stored as JSON in its row. Where he says nothing its agent's word counts. */
struct node_settings {
    struct topology where;
    struct texts taints;        /* "key=value" or "key"; see house.h */
    int64_t exclusive;          /* the only project that may run there; 0: any */
    int share;                  /* enum share_policy */
    bool equal_shares;          /* on one GPU only shares of one size, which divides it evenly, as MPS enforces them */
    int mig;                    /* enum mig_policy */
};
enum share_policy { SHARE_PROJECT, SHARE_ANY, SHARE_NONE, SHARE_POLICY_COUNT };    /* whose shares may be on one GPU; none: no shares at all */
enum mig_policy { MIG_FIXED, MIG_DYNAMIC, MIG_POLICY_COUNT };                      /* the instances that are there, or whatever the hardware can do */
extern const struct names share_names, mig_names;
enum node_state { NODE_READY, NODE_CORDONED, NODE_DOWN, NODE_STATE_COUNT };
/* A cordoned node that is being emptied, or is empty. Not a state of its own: an older program beside ours knows three. */
enum node_drain { DRAIN_NONE, DRAIN_ON, DRAIN_DONE, DRAIN_COUNT };
const char *node_state_word(enum node_state state, enum node_drain drain);     /* "draining" */
extern const struct names node_state_names;
extern const struct fields gpu_info_fields, gpu_peer_fields, nic_info_fields, numa_info_fields, node_info_fields, node_settings_fields;
enum { NODE_GPUS = 64, NODE_NICS = 64, NODE_NUMAS = 64, NODE_CANNOT = 64 };
enum { NODE_OFFERS = 16 };      /* GPUs that a node may tell of, numbered below it: a server refuses the hello of one that tells more */
