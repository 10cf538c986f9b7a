/* probe_net.c - network interfaces with hardware behind them, InfiniBand and RoCE ports, and how near devices are to each other. The kernel
 * shows the tree of PCIe as a path of folders: what two devices share of it says what lies between them. */
#include "agent/probe_host.h"
#include "agent/sysfs.h"
#include "base/str.h"
#include <stdio.h>
#include <stdlib.h>

/* --- near and far */

const char *probe_path_word(const char *a, int64_t a_numa, const char *b, int64_t b_numa)
{
    const char *x = a ? strstr(a, "/pci") : NULL, *y = b ? strstr(b, "/pci") : NULL;
    size_t shared = 0, parts = 0;
    while (x && y && x[shared] && x[shared] == y[shared])
        shared++;
    for (size_t i = 1; i <= shared && shared; i++) /* whole parts only */
        parts += (x[i] == '/' || !x[i]) && (y[i] == '/' || !y[i]);
    if (parts > 1)
        return "switch";
    if (parts == 1)
        return "bridge";
    return a_numa >= 0 && a_numa == b_numa ? "numa" : "system";
}

static const char *place_of(const char *sys, struct arena *mem, const char *pci)
{
    return text_given(pci) ? sysfs_real(mem, "%s/bus/pci/devices/%s", sys, pci) : NULL;
}

static int64_t numa_of(const char *sys, const char *pci)
{
    return text_given(pci) ? sysfs_int("%s/bus/pci/devices/%s/numa_node", sys, pci) : -1;
}

/* What its probe has in `peers` are cards by their addresses, with the links that go straight there. */
static struct gpu_peer peer_of(const struct gpu_info *me, const struct gpu_info *other,
                               const char *mine, const char *its)
{
    const struct gpu_peer *known = me->peers.at;
    struct gpu_peer p
        = { .index = other->index, .path = probe_path_word(mine, me->numa, its, other->numa) };
    for (size_t i = 0; i < me->peers.count; i++)
        if (known[i].index < 0 && text_is(known[i].path, other->pci))
            p.links = known[i].links;
    if (!p.links && !me->peers.count && me->nvlinks
        && other->nvlinks) /* through switches: all of them */
        p.links = MIN(me->nvlinks, other->nvlinks);
    if (p.links)
        p.path = "nvlink";
    return p;
}

void probe_paths(const char *sys, struct arena *mem, struct node_info *out)
{
    struct gpu_info *gpus = out->gpus.at;
    const char *places[NODE_GPUS];
    struct objects all[NODE_GPUS];
    for (size_t i = 0; i < out->gpus.count; i++) {
        places[i] = place_of(sys, mem, gpus[i].pci);
        gpus[i].numa = numa_of(sys, gpus[i].pci);
    }
    for (size_t i = 0; i < out->gpus.count; i++) {
        struct gpu_peer *peers = ARENA_ARRAY(mem, struct gpu_peer, out->gpus.count);
        all[i] = (struct objects){ peers, 0 };
        for (size_t k = 0; k < out->gpus.count; k++)
            if (k != i)
                peers[all[i].count++] = peer_of(&gpus[i], &gpus[k], places[i], places[k]);
    }
    for (size_t i = 0; i < out->gpus.count; i++)
        gpus[i].peers = all[i];
}

/* --- interfaces */

static void add(struct node_info *out, const char *sys, struct arena *mem, struct nic_info nic,
                const char *device)
{
    const struct gpu_info *gpus = out->gpus.at;
    if (out->nics.count == NODE_NICS)
        return;
    if (!out->nics.at)
        out->nics.at = ARENA_ARRAY(mem, struct nic_info, NODE_NICS);
    const char *base = sysfs_base(device);
    nic.pci = base && strlen(base) == 12 && base[4] == ':' ? base : NULL;
    nic.numa = numa_of(sys, nic.pci);
    nic.near.at = ARENA_ARRAY(mem, struct pair, out->gpus.count + 1);
    for (size_t i = 0; i < out->gpus.count; i++)
        nic.near.at[nic.near.count++]
            = (struct pair){ arena_printf(mem, "%zu", i),
                             probe_path_word(device, nic.numa, place_of(sys, mem, gpus[i].pci),
                                             numa_of(sys, gpus[i].pci)) };
    ((struct nic_info *)out->nics.at)[out->nics.count++] = nic;
}

static void find_ports(const char *sys, struct arena *mem, const char *name, struct node_info *out)
{
    const char *device = sysfs_real(mem, "%s/class/infiniband/%s/device", sys, name);
    struct texts ports = sysfs_list(mem, "", "%s/class/infiniband/%s/ports", sys, name);
    for (size_t i = 0; device && i < ports.count; i++) {
        const char *layer
            = sysfs_text(mem, "%s/class/infiniband/%s/ports/%s/link_layer", sys, name, ports.at[i]);
        const char *state
            = sysfs_text(mem, "%s/class/infiniband/%s/ports/%s/state", sys, name, ports.at[i]);
        const char *rate = sysfs_text(mem, "%s/class/infiniband/%s/ports/%s/rate", sys, name,
                                      ports.at[i]); /* "400 Gb/sec (4X NDR)" */
        add(out, sys, mem,
            (struct nic_info){ .name = arena_printf(mem, "%.40s:%.8s", name, ports.at[i]),
                               .kind = layer && text_is(layer, "Ethernet") ? "roce" : "infiniband",
                               .state = state && strstr(state, "ACTIVE") ? "up" : "down",
                               .mbps
                               = rate ? MIN(MAX(strtoll(rate, NULL, 10), 0), 1000000) * 1000 : 0 },
            device);
    }
}

void probe_nics(const char *sys, struct arena *mem, struct node_info *out)
{
    struct texts nets = sysfs_list(mem, "", "%s/class/net", sys),
                 hcas = sysfs_list(mem, "", "%s/class/infiniband", sys);
    out->nics = (struct objects){ 0 };
    for (size_t i = 0; i < hcas.count; i++)
        find_ports(sys, mem, hcas.at[i], out);
    for (size_t i = 0; i < nets.count; i++) {
        const char *device = sysfs_real(mem, "%s/class/net/%s/device", sys, nets.at[i]);
        const char *state = sysfs_text(mem, "%s/class/net/%s/operstate", sys, nets.at[i]);
        if (!device)
            continue; /* bridges, tunnels, ends of tasks' cables: they come and go, and are no hardware */
        add(out, sys, mem,
            (struct nic_info){ .name = arena_printf(mem, "%.32s", nets.at[i]),
                               .kind = "ethernet",
                               .state = state && text_is(state, "up") ? "up" : "down",
                               .mbps
                               = MAX(sysfs_int("%s/class/net/%s/speed", sys, nets.at[i]), 0) },
            device);
    }
}
