/* probe_host.h - what the device helper tells of the machine around the GPUs: processors and NUMA nodes through hwloc, network interfaces and
 * InfiniBand ports, and how near all of them are to each other on PCIe. */
#pragma once
#include "model/node.h"

void probe_host(const char *sys, struct arena *mem, struct node_info *out);     /* processors, NUMA nodes; what cannot be told is added to cannot */
void probe_nics(const char *sys, struct arena *mem, struct node_info *out);     /* after the GPUs: it tells how near they are */
void probe_paths(const char *sys, struct arena *mem, struct node_info *out);    /* settles numa and peers of every GPU */

/* How near two devices are, by where sysfs has them: ".../devices/pci0000:15/0000:15:01.0/0000:16:00.0". Pure. */
const char *probe_path_word(const char *a, int64_t a_numa, const char *b, int64_t b_numa);
