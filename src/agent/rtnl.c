/* rtnl.c - see rtnl.h. One message at a time, each with its own answer: an error is known by the message that it is about. */
#include "agent/rtnl.h"
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BURST_LEAST = 128 << 10, QUEUE_MS = 50, WAIT_S = 10, DUMP_BYTES = 32 << 10 };

struct message {
    union {
        struct nlmsghdr head;
        char bytes[RTNL_BYTES];
    };
};

static void begin(struct message *m, int type, int flags, const void *body, size_t n)
{
    memset(m, 0, sizeof *m);
    m->head.nlmsg_len = NLMSG_LENGTH(n);
    m->head.nlmsg_type = (uint16_t)type;
    m->head.nlmsg_flags = (uint16_t)(NLM_F_REQUEST | NLM_F_ACK | flags);
    memcpy(NLMSG_DATA(&m->head), body, n);
}

/* The largest message here is a small part of the room that there is. */
static struct rtattr *put(struct message *m, int type, const void *at, size_t n)
{
    size_t len = NLMSG_ALIGN(m->head.nlmsg_len);
    struct rtattr *a = (struct rtattr *)(m->bytes + len);
    if (len + RTA_SPACE(n) > sizeof m->bytes)
        __builtin_trap();
    a->rta_type = (uint16_t)type;
    a->rta_len = (uint16_t)RTA_LENGTH(n);
    if (n)
        memcpy(RTA_DATA(a), at, n);
    m->head.nlmsg_len = (uint32_t)(len + RTA_SPACE(n));
    return a;
}
static void put_u32(struct message *m, int type, uint32_t value)
{
    put(m, type, &value, sizeof value);
}
static void put_u8(struct message *m, int type, uint8_t value)
{
    put(m, type, &value, sizeof value);
}
static void put_text(struct message *m, int type, const char *text)
{
    put(m, type, text, strlen(text) + 1);
}
static void put_four(struct message *m, int type, uint32_t address)
{
    put_u32(m, type, htonl(address));
}
static void end(struct message *m, struct rtattr *nest)
{
    nest->rta_len = (uint16_t)(m->bytes + m->head.nlmsg_len - (char *)nest);
}

int rtnl_open(void)
{
    int s = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    struct timeval patience = { .tv_sec = WAIT_S };
    if (s != -1)
        setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return s;
}

/* answer: what came before the acknowledgement, or NULL. */
static bool ask(int s, struct message *m, struct message *answer)
{
    struct message in;
    if (send(s, m->bytes, m->head.nlmsg_len, 0) == -1)
        return false;
    for (;;) {
        ssize_t n = recv(s, in.bytes, sizeof in.bytes, 0);
        if (n == -1 && errno == EINTR)
            continue;
        if (n < (ssize_t)sizeof in.head)
            return false;
        if (in.head.nlmsg_type != NLMSG_ERROR) {
            if (answer)
                *answer = in;
            continue;
        }
        const struct nlmsgerr *e = NLMSG_DATA(&in.head);
        errno = -e->error;
        return e->error == 0;
    }
}

bool rtnl_index(int s, const char *name, int *out)
{
    struct message m, in = { 0 };
    struct ifinfomsg body = { .ifi_family = AF_UNSPEC };
    begin(&m, RTM_GETLINK, 0, &body, sizeof body);
    put_text(&m, IFLA_IFNAME, name);
    if (!ask(s, &m, &in))
        return false;
    *out = ((struct ifinfomsg *)NLMSG_DATA(&in.head))->ifi_index;
    return true;
}

bool rtnl_bridge(int s, const char *name, const unsigned char mac[static 6], int mtu)
{
    struct message m;
    struct ifinfomsg body = { .ifi_flags = IFF_UP, .ifi_change = IFF_UP };
    begin(&m, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &body, sizeof body);
    put_text(&m, IFLA_IFNAME, name);
    put(&m, IFLA_ADDRESS, mac, 6);
    put_u32(&m, IFLA_MTU, (uint32_t)mtu);
    struct rtattr *info = put(&m, IFLA_LINKINFO, NULL, 0);
    put_text(&m, IFLA_INFO_KIND, "bridge");
    struct rtattr *data = put(&m, IFLA_INFO_DATA, NULL, 0);
    put_u8(&m, IFLA_BR_MCAST_SNOOPING, 0);
    end(&m, data);
    end(&m, info);
    return ask(s, &m, NULL);
}

bool rtnl_veth(int s, const struct rtnl_veth *v)
{
    struct message m;
    struct ifinfomsg body = { .ifi_flags = IFF_UP, .ifi_change = IFF_UP }, peer = { 0 };
    begin(&m, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &body, sizeof body);
    put_text(&m, IFLA_IFNAME, v->name);
    put_u32(&m, IFLA_MTU, (uint32_t)v->mtu);
    if (v->master)
        put_u32(&m, IFLA_MASTER, (uint32_t)v->master);
    struct rtattr *info = put(&m, IFLA_LINKINFO, NULL, 0);
    put_text(&m, IFLA_INFO_KIND, "veth");
    struct rtattr *data = put(&m, IFLA_INFO_DATA, NULL, 0);
    struct rtattr *other = put(&m, VETH_INFO_PEER, &peer, sizeof peer);
    put_text(&m, IFLA_IFNAME, v->peer);
    put_u32(&m, IFLA_MTU, (uint32_t)v->mtu);
    if (v->peer_mac)
        put(&m, IFLA_ADDRESS, v->peer_mac, 6);
    put_u32(&m, IFLA_NET_NS_FD, (uint32_t)v->peer_ns);
    end(&m, other);
    end(&m, data);
    end(&m, info);
    return ask(s, &m, NULL);
}

bool rtnl_vxlan(int underlay, const struct rtnl_vxlan *v, int target_ns)
{
    struct message m;
    struct ifinfomsg body = { 0 };
    uint16_t port = htons((uint16_t)v->port);
    begin(&m, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &body, sizeof body);
    put_text(&m, IFLA_IFNAME, v->name);
    put_u32(&m, IFLA_MTU, (uint32_t)v->mtu);
    put_u32(&m, IFLA_NET_NS_FD, (uint32_t)target_ns);
    struct rtattr *info = put(&m, IFLA_LINKINFO, NULL, 0);
    put_text(&m, IFLA_INFO_KIND, "vxlan");
    struct rtattr *data = put(&m, IFLA_INFO_DATA, NULL, 0);
    put_u32(&m, IFLA_VXLAN_ID, (uint32_t)v->id);
    put_four(&m, IFLA_VXLAN_LOCAL, v->local);
    put(&m, IFLA_VXLAN_PORT, &port, sizeof port);
    put_u8(&m, IFLA_VXLAN_LEARNING, 0);
    put_u8(&m, IFLA_VXLAN_PROXY, 1); /* answers who has an address by itself, from what it was told */
    end(&m, data);
    end(&m, info);
    return ask(underlay, &m, NULL);
}

static bool change(int s, int index, unsigned flags, int master)
{
    struct message m;
    struct ifinfomsg body = { .ifi_index = index, .ifi_flags = flags, .ifi_change = flags };
    begin(&m, RTM_NEWLINK, 0, &body, sizeof body);
    if (master)
        put_u32(&m, IFLA_MASTER, (uint32_t)master);
    return ask(s, &m, NULL);
}

bool rtnl_master(int s, int index, int master)
{
    return change(s, index, IFF_UP, master);
}

bool rtnl_up(int s, int index)
{
    return change(s, index, IFF_UP, 0);
}

bool rtnl_remove(int s, const char *name)
{
    struct message m;
    struct ifinfomsg body = { 0 };
    begin(&m, RTM_DELLINK, 0, &body, sizeof body);
    put_text(&m, IFLA_IFNAME, name);
    return ask(s, &m, NULL);
}

bool rtnl_address(int s, int index, uint32_t address, int bits)
{
    struct message m;
    struct ifaddrmsg body = { .ifa_family = AF_INET, .ifa_prefixlen = (uint8_t)bits, .ifa_index = (uint32_t)index };
    begin(&m, RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE, &body, sizeof body);
    put_four(&m, IFA_LOCAL, address);
    put_four(&m, IFA_ADDRESS, address);
    return ask(s, &m, NULL);
}

bool rtnl_default_route(int s, uint32_t gateway)
{
    struct message m;
    struct rtmsg body = { .rtm_family = AF_INET, .rtm_table = RT_TABLE_MAIN, .rtm_protocol = RTPROT_STATIC, .rtm_type = RTN_UNICAST };
    begin(&m, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, &body, sizeof body);
    put_four(&m, RTA_GATEWAY, gateway);
    return ask(s, &m, NULL);
}

/* A bucket of two milliseconds, so that a burst of one task is short for its neighbours; a queue of fifty behind it. */
bool rtnl_cap(int s, int index, int64_t mbit)
{
    struct message m;
    struct tcmsg body = { .tcm_ifindex = index, .tcm_parent = TC_H_ROOT };
    uint64_t rate = (uint64_t)mbit * 1000 * 1000 / 8, burst = MAX(rate / 500, (uint64_t)BURST_LEAST);
    struct tc_tbf_qopt q = { .rate = { .rate = (uint32_t)MIN(rate, (uint64_t)UINT32_MAX), .linklayer = TC_LINKLAYER_ETHERNET },
                             .limit = (uint32_t)MIN(rate / 1000 * QUEUE_MS + burst, (uint64_t)INT32_MAX) };
    begin(&m, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, &body, sizeof body);
    put_text(&m, TCA_KIND, "tbf");
    struct rtattr *options = put(&m, TCA_OPTIONS, NULL, 0);
    put(&m, TCA_TBF_PARMS, &q, sizeof q);
    put_u32(&m, TCA_TBF_BURST, (uint32_t)MIN(burst, (uint64_t)INT32_MAX));
    if (rate > UINT32_MAX)
        put(&m, TCA_TBF_RATE64, &rate, sizeof rate);
    end(&m, options);
    return ask(s, &m, NULL);
}

static bool neighbour(int s, int type, const struct ndmsg *body, const uint32_t *address, const unsigned char *mac)
{
    struct message m;
    begin(&m, type, type == RTM_NEWNEIGH ? NLM_F_CREATE | NLM_F_REPLACE : 0, body, sizeof *body);
    put(&m, NDA_LLADDR, mac, 6);
    if (address)
        put_four(&m, NDA_DST, *address);
    return ask(s, &m, NULL);
}

/* Three tables: who has the address, in which tunnel its frames go, and that the bridge gives them to the tunnel. */
static bool three(int s, int type, int index, uint32_t address, const unsigned char *mac, const uint32_t *node)
{
    const struct ndmsg who = { .ndm_family = AF_INET, .ndm_ifindex = index, .ndm_state = NUD_PERMANENT },
                       tunnel = { .ndm_family = AF_BRIDGE, .ndm_ifindex = index, .ndm_state = NUD_PERMANENT | NUD_NOARP, .ndm_flags = NTF_SELF },
                       port = { .ndm_family = AF_BRIDGE, .ndm_ifindex = index, .ndm_state = NUD_NOARP, .ndm_flags = NTF_MASTER };
    bool ok = neighbour(s, type, &who, &address, mac);
    ok = (ok || type == RTM_DELNEIGH) && neighbour(s, type, &tunnel, node, mac);
    return (ok || type == RTM_DELNEIGH) && neighbour(s, type, &port, NULL, mac);
}

bool rtnl_neighbour(int s, int index, uint32_t address, const unsigned char mac[static 6], uint32_t node)
{
    return three(s, RTM_NEWNEIGH, index, address, mac, &node);
}

void rtnl_forget(int s, int index, uint32_t address, const unsigned char mac[static 6])
{
    if (!three(s, RTM_DELNEIGH, index, address, mac, NULL))
        return; /* it was not there */
}

static void behind(const struct nlmsghdr *h, void (*fn)(void *arg, int index, const unsigned char mac[static 6], uint32_t node), void *arg)
{
    const struct ndmsg *n = NLMSG_DATA(h);
    const unsigned char *mac = NULL;
    uint32_t node = 0;
    int left = (int)h->nlmsg_len - (int)NLMSG_LENGTH(sizeof *n);
    if (h->nlmsg_type != RTM_NEWNEIGH || left < 0 || !(n->ndm_flags & NTF_SELF))
        return;
    for (const struct rtattr *a = (const struct rtattr *)((const char *)n + NLMSG_ALIGN(sizeof *n)); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
        if (a->rta_type == NDA_LLADDR && RTA_PAYLOAD(a) == 6)
            mac = RTA_DATA(a);
        if (a->rta_type == NDA_DST && RTA_PAYLOAD(a) == sizeof node)
            memcpy(&node, RTA_DATA(a), sizeof node);
    }
    if (mac && node)
        fn(arg, n->ndm_ifindex, mac, ntohl(node));
}

bool rtnl_behind(int s, void (*fn)(void *arg, int index, const unsigned char mac[static 6], uint32_t node), void *arg)
{
    struct message m;
    const struct ndmsg body = { .ndm_family = AF_BRIDGE };
    begin(&m, RTM_GETNEIGH, NLM_F_DUMP, &body, sizeof body);
    union {
        struct nlmsghdr head;
        char bytes[DUMP_BYTES];
    } in;
    if (send(s, m.bytes, m.head.nlmsg_len, 0) == -1)
        return false;
    for (;;) {
        ssize_t n = recv(s, in.bytes, sizeof in.bytes, MSG_TRUNC);
        if (n == -1 && errno == EINTR)
            continue;
        if (n < (ssize_t)sizeof in.head || n > (ssize_t)sizeof in.bytes)
            return false;
        unsigned left = (unsigned)n;
        for (const struct nlmsghdr *h = &in.head; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
            if (h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR)
                return h->nlmsg_type == NLMSG_DONE;
            behind(h, fn, arg);
        }
    }
}
