/* net.c - a task's end of its project's network (agent/fabric.c has the other end).
 *
 * The container is made and waits to be started: its network namespace is there, and nothing of the tenant runs in it yet. A cable is laid
 * from the node's fabric into it, with the address that the server gave it. It goes with the namespace: nobody has to take it away.
 * The task may not change anything of this, since it never has CAP_NET_ADMIN. */
#include "task/task.h"
#include "agent/rtnl.h"
#include "base/fault.h"
#include "model/ipv4.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>

/* Asked for while /proc is the node's: later it is that of our own pid namespace. */
int fabric_open(const struct plan *p)
{
    return text_given(p->fabric) ? open(p->fabric, O_RDONLY | O_CLOEXEC) : -1;
}

/* A socket of another namespace; we are back in ours when this returns, or cannot go on. */
static bool socket_of(int ns, int own, int *out, struct err *err)
{
    if (broken("net.enter") || setns(ns, CLONE_NEWNET) == -1)
        return err_errno(err, "cannot enter a network");
    int s = rtnl_open(), why = errno;
    if (setns(own, CLONE_NEWNET) == -1) {
        fd_close(s);
        return err_errno(err, "cannot come back from a network");
    }
    errno = why;
    if (s == -1)
        return err_errno(err, "cannot ask for a network");
    *out = s;
    return true;
}

static bool lay_cable(const struct plan *p, int s, int inside, uint32_t address, struct err *err)
{
    unsigned char mac[MAC_BYTES];
    int bridge, link;
    ipv4_mac(address, mac);
    struct rtnl_veth v = { .name = p->link, .peer = "eth0", .peer_ns = inside, .mtu = (int)p->mtu, .peer_mac = mac };
    if (broken("net.bridge") || !rtnl_index(s, p->bridge, &bridge))
        return err_errno(err, "the network of its project is not there");
    v.master = bridge;
    if (broken("net.link") || !rtnl_veth(s, &v))
        return err_errno(err, "cannot make its link");
    return !p->mbit || (rtnl_index(s, p->link, &link) && rtnl_cap(s, link, p->mbit)) || err_errno(err, "cannot cap what it receives");
}

static bool settle_inside(const struct plan *p, int s, uint32_t address, struct err *err)
{
    int eth0;
    if (broken("net.address") || !rtnl_index(s, "eth0", &eth0) || !rtnl_address(s, eth0, address, 32 - NET_HOST_BITS) || !rtnl_up(s, eth0)
        || !rtnl_default_route(s, net_address(p->net, NET_GATEWAY)))
        return err_errno(err, "cannot give it its address");
    return !p->mbit || rtnl_cap(s, eth0, p->mbit) || err_errno(err, "cannot cap what it sends");
}

bool net_join(struct task *t, struct err *err)
{
    const struct plan *p = &t->plan;
    uint32_t address;
    char path[48];
    if (!p->net)
        return true;
    if (!ipv4_parse(p->address, &address) || !net_has(p->net, address))
        return err_set(err, RC_INTERNAL, "its address is none of its project's");
    snprintf(path, sizeof path, "/proc/%d/ns/net", t->container);
    AUTO(fd_close) int inside = open(path, O_RDONLY | O_CLOEXEC);
    AUTO(fd_close) int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    AUTO(fd_close) int there = -1;
    AUTO(fd_close) int here = -1;
    if (inside == -1 || own == -1 || t->fabric == -1)
        return err_errno(err, "the node's network is not there");
    return socket_of(t->fabric, own, &there, err) && lay_cable(p, there, inside, address, err) && socket_of(inside, own, &here, err)
           && settle_inside(p, here, address, err);
}
