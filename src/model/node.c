/* node.c - the field tables of a node's inventory. They bound what an agent may claim, since the server keeps it. */
#include "model/node.h"
#include "model/house.h"
#include "model/prefix.h"

static const char *const state_list[] = {
    [NODE_READY] = "ready", [NODE_CORDONED] = "cordoned", [NODE_DOWN] = "down",
};
_Static_assert(COUNT(state_list) == NODE_STATE_COUNT, "every state of a node has a name");
const struct names node_state_names = NAMES(state_list);

const char *node_state_word(enum node_state state, enum node_drain drain)
{
    static const char *const drains[] = { [DRAIN_NONE] = "cordoned", [DRAIN_ON] = "draining", [DRAIN_DONE] = "drained" };
    return state == NODE_CORDONED && drain >= 0 && drain < DRAIN_COUNT ? drains[drain] : state_list[state];
}

static const struct field peer_rows[] = {
    FIELD(struct gpu_peer, index, INT, .required = true, .min = 0, .max = NODE_GPUS - 1),
    FIELD(struct gpu_peer, path, TEXT, .max = 16, .help = "nvlink, switch (one PCIe switch), bridge (one host bridge), numa or system"),
    FIELD(struct gpu_peer, links, INT, .min = 0, .max = 64, .when_set = true),
};
const struct fields gpu_peer_fields = FIELDS(gpu_peer, peer_rows);

static const struct field gpu_rows[] = {
    FIELD(struct gpu_info, index, INT, .required = true, .min = 0, .max = 63),
    FIELD(struct gpu_info, uuid, TEXT, .required = true, .max = 96),
    FIELD(struct gpu_info, model, TEXT, .required = true, .max = 96),
    FIELD(struct gpu_info, mem_mib, INT, .required = true, .min = 0, .max = 1 << 30),
    FIELD(struct gpu_info, simulated, BOOL, .required = true, .help = "made up: no such device is in the machine"),
    FIELD(struct gpu_info, healthy, BOOL, .required = true),
    FIELD(struct gpu_info, ecc_off, BOOL, .when_set = true, .help = "its memory has no error correction: it is not shared"),
    FIELD(struct gpu_info, mig, TEXT, .max = 160, .when_set = true, .help = "in MIG mode: on, or its instances as PROFILE@SLOT,..."),
    FIELD(struct gpu_info, mig_uuids, TEXTS, .max = 16, .when_set = true),
    FIELD(struct gpu_info, mig_ids, TEXTS, .max = 16, .when_set = true),
    FIELD(struct gpu_info, vendor, TEXT, .max = 16, .when_set = true),
    FIELD(struct gpu_info, health, TEXT, .max = 240, .when_set = true, .help = "why it is not healthy"),
    FIELD(struct gpu_info, fault, TEXT, .max = 16, .when_set = true, .help = "its hardware is at fault: memory, xid or held"),
    FIELD(struct gpu_info, ecc_errors, INT, .min = 0, .max = INT64_C(1) << 52, .when_set = true),
    FIELD(struct gpu_info, test, TEXT, .max = 240, .when_set = true, .help = "how its last test ended"),
    FIELD(struct gpu_info, test_ms, INT, .min = 0, .max = INT64_C(1) << 52, .when_set = true),
    FIELD(struct gpu_info, scrub, TEXT, .max = 240, .when_set = true, .help = "how its memory was last overwritten between two projects"),
    FIELD(struct gpu_info, scrub_ms, INT, .min = 0, .max = INT64_C(1) << 52, .when_set = true),
    FIELD(struct gpu_info, note, TEXT, .max = 240, .when_set = true),
    FIELD(struct gpu_info, device, TEXT, .max = 64, .when_set = true),
    FIELD(struct gpu_info, pci, TEXT, .max = 32, .when_set = true),
    FIELD(struct gpu_info, numa, INT, .min = -1, .max = 4096, .def = "-1"),
    FIELD(struct gpu_info, driver, TEXT, .max = 64, .when_set = true),
    FIELD(struct gpu_info, cuda, TEXT, .max = 16, .when_set = true),
    FIELD(struct gpu_info, mode, TEXT, .max = 24, .when_set = true, .help = "of compute, where it is not the default"),
    FIELD(struct gpu_info, power_cap_mw, INT, .min = 0, .max = INT64_C(1) << 32, .when_set = true),
    FIELD(struct gpu_info, nvlinks, INT, .min = 0, .max = 64, .when_set = true),
    FIELD(struct gpu_info, peers, OBJECTS, .sub = &gpu_peer_fields, .max = NODE_GPUS, .when_set = true),
};
const struct fields gpu_info_fields = FIELDS(gpu_info, gpu_rows);

static const struct field nic_rows[] = {
    FIELD(struct nic_info, name, TEXT, .required = true, .max = 64),
    FIELD(struct nic_info, kind, TEXT, .max = 16),
    FIELD(struct nic_info, state, TEXT, .max = 16),
    FIELD(struct nic_info, mbps, INT, .min = 0, .max = INT64_C(1) << 32, .when_set = true),
    FIELD(struct nic_info, pci, TEXT, .max = 32, .when_set = true),
    FIELD(struct nic_info, numa, INT, .min = -1, .max = 4096, .def = "-1"),
    FIELD(struct nic_info, near, PAIRS, .max = NODE_GPUS, .when_set = true, .help = "how near each GPU is"),
};
const struct fields nic_info_fields = FIELDS(nic_info, nic_rows);
static const struct field numa_rows[] = {
    FIELD(struct numa_info, node, INT, .required = true, .min = 0, .max = 4096),
    FIELD(struct numa_info, cpus, TEXT, .max = 1024),
    FIELD(struct numa_info, mem_mib, INT, .min = 0, .max = INT64_C(1) << 40),
};
const struct fields numa_info_fields = FIELDS(numa_info, numa_rows);

static const struct field node_rows[] = {
    FIELD(struct node_info, hostname, TEXT, .required = true, .max = 256),
    FIELD(struct node_info, version, TEXT, .max = 64),
    FIELD(struct node_info, os_name, TEXT, .max = 128),
    FIELD(struct node_info, kernel, TEXT, .max = 128),
    FIELD(struct node_info, arch, TEXT, .max = 32),
    FIELD(struct node_info, runtime, TEXT, .max = 128),
    FIELD(struct node_info, cgroups, TEXT, .max = 64),
    FIELD(struct node_info, cpu_milli, INT, .required = true, .min = 0, .max = 1 << 30),
    FIELD(struct node_info, mem_mib, INT, .required = true, .min = 0, .max = INT64_C(1) << 40),
    FIELD(struct node_info, disk_mib, INT, .min = 0, .max = INT64_C(1) << 40),
    FIELD(struct node_info, host_image, BOOL),
    FIELD(struct node_info, disks, BOOL, .when_set = true),
    FIELD(struct node_info, network, BOOL, .when_set = true, .help = "tasks have an address in the network of their project"),
    FIELD(struct node_info, underlay, TEXT, .max = 15, .when_set = true, .help = "where other nodes reach that network; none: it ends at this node"),
    FIELD(struct node_info, gpus, OBJECTS, .sub = &gpu_info_fields, .max = NODE_GPUS),
    FIELD(struct node_info, cpu_model, TEXT, .max = 128, .when_set = true),
    FIELD(struct node_info, sockets, INT, .min = 0, .max = 4096, .when_set = true),
    FIELD(struct node_info, cores, INT, .min = 0, .max = 65536, .when_set = true),
    FIELD(struct node_info, numas, OBJECTS, .sub = &numa_info_fields, .max = NODE_NUMAS, .when_set = true),
    FIELD(struct node_info, nics, OBJECTS, .sub = &nic_info_fields, .max = NODE_NICS, .when_set = true),
    FIELD(struct node_info, labels, PAIRS, .max = 64),
    WHERE_ROWS(node_info, where, .when_set = true),
    FIELD(struct node_info, cannot, TEXTS, .max = NODE_CANNOT, .help = "what this host cannot hold, in words"),
};
const struct fields node_info_fields = FIELDS(node_info, node_rows);

static const char *const share_list[] = { [SHARE_PROJECT] = "project", [SHARE_ANY] = "any", [SHARE_NONE] = "none" };
_Static_assert(COUNT(share_list) == SHARE_POLICY_COUNT, "every policy has a name");
const struct names share_names = NAMES(share_list);
static const char *const mig_list[] = { [MIG_FIXED] = "fixed", [MIG_DYNAMIC] = "dynamic" };
_Static_assert(COUNT(mig_list) == MIG_POLICY_COUNT, "every policy has a name");
const struct names mig_names = NAMES(mig_list);

static const struct field settings_rows[] = {
    WHERE_ROWS(node_settings, where, .when_set = true),
    FIELD(struct node_settings, taints, TEXTS, .max = TAINTS_MOST, .when_set = true),
    FIELD(struct node_settings, exclusive, ID, .prefix = PREFIX_PROJECT, .when_set = true),
    FIELD(struct node_settings, share, ENUM, .names = &share_names, .when_set = true),
    FIELD(struct node_settings, equal_shares, BOOL, .when_set = true),
    FIELD(struct node_settings, mig, ENUM, .names = &mig_names, .when_set = true),
};
const struct fields node_settings_fields = FIELDS(node_settings, settings_rows);
