/* fabric.h - the networks of this node, in a network namespace of their own: a bridge for each project, to which the cables of its tasks
 * go (task/net.c), and filters for all of them.
 *
 * The node's own services and interfaces are not in that namespace, so no rule has to keep tasks from them. Only where the operator says so
 * does a way lead out of it: an uplink into the node's own namespace, and tunnels to other nodes. It is held open by us and by
 * every supervisor, so it outlives an agent as long as tasks run, and is gone with the last of them. What this node cannot do is told in
 * words; what is missing makes things closed, never open.
 *
 * Everything here blocks, and belongs to one thread, which stands in that namespace from fabric_open on. */
#pragma once
#include "agent/rtnl.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/map.h"
#include "model/ipv4.h"

enum { FABRIC_PORT = 4789, FABRIC_MTU = 1500, FABRIC_HEAD = 50, FABRIC_CONNS = 8192 /* out of the node, of one task */, FABRIC_LACKS = 6, LACK_TEXT = 200 };
struct fabric_config {
    bool uplink;                /* tasks may leave through this node, as their project's egress says */
    uint32_t local;             /* of a trusted underlay: our address there; 0: networks end at this node */
    int underlay_mtu;           /* the largest packet that it carries; 0: FABRIC_MTU */
    const char *key;            /* whatever tells this agent from others on the machine */
    const uint32_t *closed;     /* addresses that are reached by nobody: the servers */
    size_t closed_count;
    const char *unknown;        /* a server whose address could not be found out, or NULL: then nothing leads out */
    bool underlay;              /* there is to be one, whether or not we know our address there */
};
struct mesh {                   /* mesh.h */
    uint32_t *at[NET_NUMBERS];  /* of a network, by the number in its range: the node; NULL: none was ever told */
    bool owed[NET_NUMBERS];     /* the kernel did not take all of it */
    bool heard_owed;
    struct map *heard;          /* nodes: how many addresses are there, as a number */
};
struct fabric {
    int ns, node_ns;            /* the namespace, and the node's own */
    int socket, underlay;       /* in the one and in the other */
    struct nft *nft, *node_nft;
    bool works, caps, uplink;
    int mtu;
    uint32_t local, resolver;   /* who knows names, or 0 */
    char uplink_name[LINK_NAME];
    char lacks[FABRIC_LACKS][LACK_TEXT];
    size_t lack_count;
    char *egress[NET_NUMBERS];  /* of the projects that are there */
    struct mesh mesh;
};

void fabric_open(struct fabric *f, const struct fabric_config *config, int found);  /* found: the one that tasks of before hold, or -1; taken */
void fabric_close(struct fabric *f);
/* The project's bridge is there, and what may leave it is as it is said. */
MUST_CHECK bool fabric_project(struct fabric *f, int64_t net, const char *egress, struct err *err);
MUST_CHECK bool fabric_tunnel(struct fabric *f, int64_t net, struct err *err);      /* its bridge and its tunnel alone: nothing leaves it */
/* What comes in through that link is its own: this address and the hardware address that goes with it. */
MUST_CHECK bool fabric_admit(struct fabric *f, const char *link, uint32_t address, struct err *err);
MUST_CHECK bool fabric_bar(struct fabric *f, const uint32_t *addresses, size_t count, struct err *err);  /* reached by nobody from now on */
void fabric_forget(struct fabric *f, const char *link, uint32_t address);
const char *fabric_bridge(int64_t net, char out[static LINK_NAME]);
const char *fabric_link(int64_t attempt, char out[static LINK_NAME]);
