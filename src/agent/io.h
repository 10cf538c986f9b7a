/* io.h - what of the node's disk can be divided among tasks: a most for each (disk_bandwidth), and weights where several want all of it.
 *
 * Found once, for the disk that the agent's data is on: tasks write to nothing else of the node. The OCI runtime sets what the bundle says; a limit that the
 * kernel does not have would fail every start, so it is not said there, and `cannot` tells it. */
#pragma once
#include "agent/cgroup.h"

struct io_means {
    bool limits;                /* so many bytes a second can be held; on v1 of direct I/O alone */
    const char *weight;         /* the file of v2 whose number counts: "io.bfq.weight" or "io.weight"; NULL: none does */
    unsigned major, minor;      /* of the disk as a whole */
    char disk[32];              /* "vda"; "": the data is on none */
};
/* sys, cgroups: as /sys and cgroups_find have them, so that a test can have its own. */
void io_find(const struct cgroups *c, const char *sys, unsigned major, unsigned minor, struct io_means *out);
void io_find_for(const struct cgroups *c, const char *folder, struct io_means *out);
