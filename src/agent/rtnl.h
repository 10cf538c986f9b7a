/* rtnl.h - links, addresses and routes of the kernel, asked for by message. Linked into the agent and into the supervisor, which is
 * static: Debian has no static libmnl, and what we need of it is a page.
 *
 * A socket belongs to the network namespace in which it was opened, wherever its owner is later. Every call waits for the kernel's answer;
 * false leaves errno. */
#pragma once
#include "base/base.h"

enum { LINK_NAME = 16, RTNL_BYTES = 4096 };

MUST_CHECK int rtnl_open(void);                                         /* in the namespace of this thread; -1: no */
MUST_CHECK bool rtnl_index(int s, const char *name, int *out);          /* of a link */
MUST_CHECK bool rtnl_bridge(int s, const char *name, const unsigned char mac[static 6], int mtu);
/* Both ends of a cable: name here, in the bridge `master` and up, and its peer in another namespace. */
struct rtnl_veth { const char *name, *peer; int master, peer_ns, mtu; const unsigned char *peer_mac; };
MUST_CHECK bool rtnl_veth(int s, const struct rtnl_veth *v);
/* Here, with its ends of the tunnel in the namespace where `underlay` was opened: nothing is learnt, nothing is flooded. */
struct rtnl_vxlan { const char *name; int64_t id; uint32_t local; int port, mtu, master; };
MUST_CHECK bool rtnl_vxlan(int underlay, const struct rtnl_vxlan *v, int target_ns);
MUST_CHECK bool rtnl_master(int s, int index, int master);
MUST_CHECK bool rtnl_up(int s, int index);
MUST_CHECK bool rtnl_remove(int s, const char *name);
MUST_CHECK bool rtnl_address(int s, int index, uint32_t address, int bits);
MUST_CHECK bool rtnl_default_route(int s, uint32_t gateway);
MUST_CHECK bool rtnl_cap(int s, int index, int64_t mbit);               /* what it sends is held back beyond that; nothing is lost unless it is far beyond */
/* A neighbour behind a tunnel: which node has this hardware address, and which hardware address this address. */
MUST_CHECK bool rtnl_neighbour(int s, int index, uint32_t address, const unsigned char mac[static 6], uint32_t node);
/* All that tunnels have been told: of which one, which hardware address, behind which node. */
MUST_CHECK bool rtnl_behind(int s, void (*fn)(void *arg, int index, const unsigned char mac[static 6], uint32_t node), void *arg);
void rtnl_forget(int s, int index, uint32_t address, const unsigned char mac[static 6]);     /* the same taken back, if it is there */
