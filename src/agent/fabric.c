/* fabric.c - see fabric.h. The filters are below, as nft(8) reads them: they are the promise.
 *
 * Links of tasks are called t..., bridges p..., tunnels x..., and the way out `up`. A bridge forwards only what a task sends in its own name;
 * between bridges nothing is forwarded; out goes what the chain of the project lets pass. */
#include "agent/fabric.h"
#include "agent/mesh.h"
#include "agent/nft.h"
#include "base/fault.h"
#include "base/str.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Run again as a whole when an agent takes over: sets stay, chains are written anew. */
static const char rules[] =
    "add table inet arcus\n"
    "add set inet arcus private { type ipv4_addr; flags interval; }\n"
    "add element inet arcus private { 0.0.0.0/8, 10.0.0.0/8, 100.64.0.0/10, 127.0.0.0/8, 169.254.0.0/16, 172.16.0.0/12, 192.0.0.0/24, "
    "192.168.0.0/16, 198.18.0.0/15, 224.0.0.0/3 }\n"
    "add set inet arcus closed { type ipv4_addr; }\n"
    "add set inet arcus same { type ifname . ifname; }\n"
    "add map inet arcus out { type ifname : verdict; }\n"
    "add chain inet arcus input { type filter hook input priority 0; policy drop; }\n"
    "add chain inet arcus forward { type filter hook forward priority 0; policy drop; }\n"
    "add chain inet arcus public\n"
    "flush chain inet arcus input\n"
    "flush chain inet arcus forward\n"
    "flush chain inet arcus public\n"
    "add rule inet arcus input iifname \"lo\" accept\n"
    "add rule inet arcus input ct state established,related accept\n"
    "add rule inet arcus input icmp type echo-request accept\n"
    "add rule inet arcus input iifname \"p*\" reject with icmp type admin-prohibited\n"
    "add rule inet arcus forward iifname . oifname @same accept\n"
    "add rule inet arcus forward ip daddr @closed reject with icmp type admin-prohibited\n"
    "add rule inet arcus forward udp dport 4789 drop\n"              /* what looks like a tunnel of ours would be believed by other nodes */
    "add rule inet arcus forward ct state established,related accept\n"
    "add rule inet arcus forward oifname \"up\" iifname vmap @out\n"
    "add rule inet arcus forward iifname \"p*\" reject with icmp type admin-prohibited\n"   /* nobody waits in vain */
    "add rule inet arcus public ip daddr @private return\n"
    "add rule inet arcus public meta nfproto ipv4 accept\n"
    "add table bridge arcus\n"
    "add set bridge arcus known { type ifname . ether_addr . ipv4_addr; }\n"
    "add chain bridge arcus from { type filter hook prerouting priority -300; policy accept; }\n"
    "flush chain bridge arcus from\n"
    "add rule bridge arcus from iifname \"t*\" ether type ip iifname . ether saddr . ip saddr @known accept\n"
    "add rule bridge arcus from iifname \"t*\" ether type arp iifname . ether saddr . arp saddr ip @known "
    "iifname . arp saddr ether . arp saddr ip @known accept\n"
    "add rule bridge arcus from iifname \"t*\" drop\n";

const char *fabric_bridge(int64_t net, char out[static LINK_NAME])
{
    snprintf(out, LINK_NAME, "p%lld", (long long)net);
    return out;
}

const char *fabric_link(int64_t attempt, char out[static LINK_NAME])
{
    snprintf(out, LINK_NAME, "t%013llx", (unsigned long long)attempt & 0xfffffffffffffULL);
    return out;
}

static void PRINTF(2, 3) lacks(struct fabric *f, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    if (f->lack_count < FABRIC_LACKS)
        vsnprintf(f->lacks[f->lack_count++], LACK_TEXT, fmt, ap);
    va_end(ap);
}

static bool set_switch(const char *path, const char *value)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool ok = fd != -1 && write(fd, value, strlen(value)) == (ssize_t)strlen(value);
    if (fd != -1)
        close(fd);
    return ok;
}

/* --- what works here is found out by doing it */

static bool is_gone(int s, const char *name)
{
    int index;
    return (!rtnl_index(s, name, &index) && errno == ENODEV) || rtnl_remove(s, name);
}

static bool try_links(struct fabric *f, struct err *err)
{
    static const unsigned char mac[MAC_BYTES] = { 0x02, 0xa7, 0, 0, 0, 1 };
    int bridge, link;
    if (!is_gone(f->socket, "try0") || !is_gone(f->socket, "try") || !is_gone(f->socket, "try2")) /* of one that was killed here */
        return err_errno(err, "what was tried before stays");
    if (broken("fabric.try") || !rtnl_bridge(f->socket, "try", mac, FABRIC_MTU) || !rtnl_index(f->socket, "try", &bridge))
        return err_errno(err, "the kernel makes no bridge");
    struct rtnl_veth v = { .name = "try0", .peer = "try1", .master = bridge, .peer_ns = f->ns, .mtu = FABRIC_MTU };
    if (!rtnl_veth(f->socket, &v) || !rtnl_index(f->socket, "try0", &link))
        return err_errno(err, "the kernel makes no veth");
    f->caps = rtnl_cap(f->socket, link, 1000);
    if (!f->caps)
        lacks(f, "network: bandwidth of tasks is not capped, the kernel has no token bucket (%s)", strerror(errno));
    return (rtnl_remove(f->socket, "try0") && rtnl_remove(f->socket, "try")) || err_errno(err, "the kernel keeps what is to be removed");
}

/* The kernel takes what comes for a tunnel on any address and from anybody. Of the numbers of projects, and of no others: somebody else's
 * tunnels on this node are not ours. Who runs since before has peers that are found in its tunnels. */
static bool tunnel_rules(struct fabric *f, uint32_t local, struct err *err)
{
    AUTO(str_done) struct str text = { 0 };
    char four[IPV4_TEXT];
    const char *t = f->uplink_name;
    if (!f->node_nft)
        return err_set(err, RC_UNAVAILABLE, "its own filters cannot be written");
    str_printf(&text,
               "add table inet %s-x\ndelete table inet %s-x\nadd table inet %s-x\nadd set inet %s-x peers { type ipv4_addr; }\n"
               "add chain inet %s-x input { type filter hook input priority -10; policy accept; }\n"
               "add rule inet %s-x input udp dport %d @th,96,24 1-%d ip daddr != %s drop\n"
               "add rule inet %s-x input udp dport %d @th,96,24 1-%d ip saddr != @peers drop\n",
               t, t, t, t, t, t, FABRIC_PORT, NET_NUMBERS - 1, ipv4_text(local, four), t, FABRIC_PORT, NET_NUMBERS - 1);
    mesh_heard(f, &text);
    return nft_run(f->node_nft, text.at, err);
}

/* A number that no project has. */
static void try_tunnel(struct fabric *f, const struct fabric_config *c, bool taken)
{
    struct err err = { 0 };
    int mtu = (c->underlay_mtu ? c->underlay_mtu : FABRIC_MTU) - FABRIC_HEAD;
    struct rtnl_vxlan v = { .name = "try2", .id = (1 << 24) - 1, .local = c->local, .port = FABRIC_PORT, .mtu = mtu };
    if (!c->local && c->underlay)
        lacks(f, "network: it ends at this node, whose address on the underlay is not known (--underlay-address)");
    if (!c->local)
        return;
    if (taken)
        mesh_found(f);
    if (!tunnel_rules(f, c->local, &err))
        lacks(f, "network: it ends at this node, %s", err.text);
    else if (!broken("fabric.tunnel") && rtnl_vxlan(f->underlay, &v, f->ns) && rtnl_remove(f->socket, "try2"))
        f->local = c->local, f->mtu = mtu;
    else
        lacks(f, "network: it ends at this node, the kernel makes no VXLAN (%s)", strerror(errno));
}

/* A namespace of ours has our filters, whoever holds it; what else was found is not ours to change. */
static bool is_ours(int found)
{
    struct nft *n = NULL;
    struct err none;
    bool is = setns(found, CLONE_NEWNET) == 0 && nft_open(&n, &none) && nft_run(n, "list chain inet arcus public\n", &none);
    nft_close(n);
    return is;
}

static bool enter(struct fabric *f, int found, struct err *err)
{
    if (broken("fabric.enter") || (found != -1 ? setns(found, CLONE_NEWNET) : unshare(CLONE_NEWNET)) == -1)
        return err_errno(err, "cannot make a network namespace");
    f->ns = found != -1 ? found : open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    f->socket = rtnl_open();
    int lo;
    if (f->ns == -1 || f->socket == -1 || !rtnl_index(f->socket, "lo", &lo) || !rtnl_up(f->socket, lo))
        return err_errno(err, "cannot use a network namespace");
    /* Without a way out nothing is forwarded but by bridges; where these files are not, neither is what they switch. */
    set_switch("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
    set_switch("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
    set_switch("/proc/sys/net/bridge/bridge-nf-call-iptables", "0");
    return true;
}

/* --- the way out */

static uint32_t hash_of(const char *text)
{
    uint32_t h = 2166136261u;
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 16777619u;
    return h;
}

/* The first name server that is not on the node itself: there nobody of ours gets. */
static uint32_t find_resolver(void)
{
    static const char *const files[] = { "/etc/resolv.conf", "/run/systemd/resolve/resolv.conf" };
    uint32_t found = 0;
    for (size_t i = 0; i < COUNT(files) && !found; i++) {
        FILE *file = fopen(files[i], "re");
        char line[256], word[64];
        uint32_t address;
        while (file && !found && fgets(line, sizeof line, file))
            if (sscanf(line, "nameserver %63s", word) == 1 && ipv4_parse(word, &address) && address >> 24 != 127 && address)
                found = address;
        if (file)
            fclose(file);
    }
    return found;
}

static bool node_rules(struct fabric *f, uint32_t ours, struct err *err)
{
    char text[1024], four[IPV4_TEXT];
    const char *up = f->uplink_name;
    snprintf(text, sizeof text,
             "add table inet %s\nflush table inet %s\n"
             "add chain inet %s input { type filter hook input priority -10; policy accept; }\nadd rule inet %s input iifname \"%s\" reject\n"
             "add chain inet %s forward { type filter hook forward priority -10; policy accept; }\nadd rule inet %s forward oifname \"%s\" ct state new drop\n"
             "add chain inet %s out { type nat hook postrouting priority 100; policy accept; }\nadd rule inet %s out ip saddr %s masquerade\n",
             up, up, up, up, up, up, up, up, up, up, ipv4_text(ours, four));
    return nft_run(f->node_nft, text, err);
}

static bool fabric_rules(struct fabric *f, struct err *err)
{
    char four[IPV4_TEXT], text[2048];
    int n = snprintf(text, sizeof text, /* the node's table of connections is for all of its tasks, and for itself */
                     "add set inet arcus conns { type ipv4_addr; flags dynamic; }\n"
                     "add chain inet arcus bound { type filter hook forward priority -5; policy accept; }\nflush chain inet arcus bound\n"
                     "add rule inet arcus bound iifname \"p*\" oifname \"up\" ct state new add @conns { ip saddr ct count over %d } "
                     "reject with icmp type admin-prohibited\n"
                     "add chain inet arcus out { type nat hook postrouting priority 100; policy accept; }\nflush chain inet arcus out\n"
                     "add rule inet arcus out oifname \"up\" masquerade\n"
                     "add chain inet arcus names { type nat hook prerouting priority -100; policy accept; }\nflush chain inet arcus names\n",
                     FABRIC_CONNS);
    for (int tcp = 0; f->resolver && tcp < 2; tcp++)
        n += snprintf(text + n, sizeof text - (size_t)n, "add rule inet arcus names iifname \"p*\" fib daddr type local %s dport 53 dnat ip to %s\n",
                      tcp ? "tcp" : "udp", ipv4_text(f->resolver, four));
    return nft_run(f->nft, text, err);
}

/* A cable between the fabric and the node, with two addresses of its own. Whoever is on the node's side of it sees one address. */
static bool make_uplink(struct fabric *f, const struct fabric_config *c, struct err *err)
{
    uint32_t base = (UINT32_C(169) << 24 | UINT32_C(254) << 16 | (hash_of(c->key) & 0xfffc)), theirs = base + 1, ours = base + 2;
    int there, here;
    f->resolver = find_resolver();
    if (!node_rules(f, ours, err) || !fabric_rules(f, err)) /* before there is what they are about */
        return false;
    struct rtnl_veth v = { .name = "up", .peer = f->uplink_name, .peer_ns = f->node_ns, .mtu = FABRIC_MTU };
    if (!rtnl_index(f->socket, "up", &here)) {
        if (rtnl_index(f->underlay, f->uplink_name, &there) && !rtnl_remove(f->underlay, f->uplink_name))
            return err_errno(err, "cannot remove an old uplink");
        if (!rtnl_veth(f->socket, &v) || !rtnl_index(f->socket, "up", &here))
            return err_errno(err, "cannot make an uplink");
    }
    return ((rtnl_index(f->underlay, f->uplink_name, &there) && rtnl_address(f->underlay, there, theirs, 30) && rtnl_up(f->underlay, there)
             && rtnl_address(f->socket, here, ours, 30) && rtnl_up(f->socket, here) && rtnl_default_route(f->socket, theirs))
            || err_errno(err, "cannot set up the uplink"))
           && (set_switch("/proc/sys/net/ipv4/ip_forward", "1") || err_errno(err, "cannot forward"));
}

bool fabric_bar(struct fabric *f, const uint32_t *addresses, size_t count, struct err *err)
{
    AUTO(str_done) struct str text = { 0 };
    char four[IPV4_TEXT];
    for (size_t i = 0; i < count; i++)
        str_printf(&text, "add element inet arcus closed { %s }\n", ipv4_text(addresses[i], four));
    return !text.len || nft_run(f->nft, text.at, err);
}

static bool forward_on_node(struct fabric *f, const struct fabric_config *c, struct err *err)
{
    if (!nft_open(&f->node_nft, err) || !c->uplink)
        return false;
    if (c->unknown)
        return err_set(err, RC_UNAVAILABLE, "the address of the server %.80s is not known", c->unknown);
    return set_switch("/proc/sys/net/ipv4/ip_forward", "1") || err_errno(err, "cannot forward");
}

/* What an agent before us opened and we do not, or what we began and could not end. */
static bool shut(struct fabric *f, bool taken)
{
    struct err none;
    char text[64];
    bool ok = f->uplink || ((f->socket == -1 || is_gone(f->socket, "up")) && (f->underlay == -1 || is_gone(f->underlay, f->uplink_name)));
    for (int net = 1; taken && f->socket != -1 && !f->local && net < NET_NUMBERS; net++) {
        snprintf(text, sizeof text, "x%d", net);
        ok &= is_gone(f->socket, text);
    }
    snprintf(text, sizeof text, "delete table inet %s\n", f->uplink_name);
    bool left = !f->uplink && f->node_nft && !nft_run(f->node_nft, text, &none);
    snprintf(text, sizeof text, "delete table inet %s-x\n", f->uplink_name);
    left |= !f->local && f->node_nft && !nft_run(f->node_nft, text, &none);
    (void)left; /* without its links a table is about nothing, if it is there at all */
    return ok;
}

void fabric_open(struct fabric *f, const struct fabric_config *c, int found)
{
    struct err err = { 0 }, out = { 0 };
    *f = (struct fabric){ .ns = -1, .socket = -1, .mtu = FABRIC_MTU };
    f->node_ns = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    f->underlay = rtnl_open();
    snprintf(f->uplink_name, sizeof f->uplink_name, "arcus-%08x", hash_of(c->key));
    bool leads_out = forward_on_node(f, c, &out);
    if (found != -1 && !is_ours(found)) {
        close(found);
        found = -1;
        if (f->node_ns == -1 || setns(f->node_ns, CLONE_NEWNET) == -1)
            abort(); /* we would take it for the node */
    }
    f->works = f->underlay != -1 && f->node_ns != -1 && enter(f, found, &err) && nft_open(&f->nft, &err) && nft_run(f->nft, rules, &err) && try_links(f, &err)
               && fabric_bar(f, c->closed, c->closed_count, &err); /* before anything can pass */
    f->uplink = f->works && leads_out && make_uplink(f, c, &out);
    if (f->works)
        try_tunnel(f, c, found != -1);
    if (!shut(f, found != -1) && f->works)
        f->works = f->uplink = false, err_errno(&err, "the kernel keeps what is to be closed");
    if (!f->works)
        lacks(f, "network: tasks have none but themselves, %s", err.rc ? err.text : strerror(errno));
    else if (c->uplink && !f->uplink)
        lacks(f, "network: tasks reach nothing outside of their project, %s", out.text);
    else if (f->uplink && !f->resolver)
        lacks(f, "network: tasks cannot look up names, the node has no name server but itself");
}

void fabric_close(struct fabric *f)
{
    nft_close(f->nft);
    nft_close(f->node_nft);
    const int fds[] = { f->ns, f->node_ns, f->socket, f->underlay };
    for (size_t i = 0; i < COUNT(fds); i++)
        if (fds[i] != -1)
            close(fds[i]);
    for (size_t i = 0; i < NET_NUMBERS; i++)
        free(f->egress[i]);
    mesh_done(f);
}

/* --- projects and tasks */

bool fabric_tunnel(struct fabric *f, int64_t net, struct err *err)
{
    unsigned char mac[MAC_BYTES];
    char name[LINK_NAME], tunnel[LINK_NAME];
    int bridge, index;
    uint32_t gateway = net_address(net, NET_GATEWAY);
    ipv4_mac(gateway, mac);
    fabric_bridge(net, name);
    if ((!rtnl_bridge(f->socket, name, mac, f->mtu) && errno != EEXIST) || !rtnl_index(f->socket, name, &bridge)
        || !rtnl_address(f->socket, bridge, gateway, 32 - NET_HOST_BITS))
        return err_errno(err, "cannot make the project's bridge");
    if (!f->local)
        return true;
    snprintf(tunnel, sizeof tunnel, "x%lld", (long long)net);
    struct rtnl_vxlan v = { .name = tunnel, .id = net, .local = f->local, .port = FABRIC_PORT, .mtu = f->mtu };
    return rtnl_index(f->socket, tunnel, &index)
           || (rtnl_vxlan(f->underlay, &v, f->ns) && rtnl_index(f->socket, tunnel, &index) && rtnl_master(f->socket, index, bridge))
           || err_errno(err, "cannot make the project's tunnel");
}

bool fabric_project(struct fabric *f, int64_t net, const char *egress, struct err *err)
{
    AUTO(str_done) struct str text = { 0 };
    long long n = net;
    egress = text_given(egress) ? egress : "none";
    if (!f->works || net <= 0 || net >= NET_NUMBERS)
        return err_set(err, RC_UNAVAILABLE, "this node has no networks");
    if (f->egress[net] && text_is(f->egress[net], egress))
        return true;
    if (!text_is(egress, "all") && !text_is(egress, "none") && egress[strspn(egress, "0123456789./,")]) /* it becomes part of a rule */
        return err_set(err, RC_BAD_INPUT, "'%.40s' are no networks", egress);
    if (!f->egress[net] && !fabric_tunnel(f, net, err))
        return false;
    str_printf(&text, "add element inet arcus same { \"p%lld\" . \"p%lld\" }\nadd chain inet arcus e%lld\nflush chain inet arcus e%lld\n"
                      "add element inet arcus out { \"p%lld\" : jump e%lld }\n", n, n, n, n, n, n);
    if (!text_is(egress, "none"))
        str_printf(&text, "add rule inet arcus e%lld ct status dnat accept\n", n);
    if (text_is(egress, "all"))
        str_printf(&text, "add rule inet arcus e%lld jump public\n", n);
    else if (!text_is(egress, "none"))
        str_printf(&text, "add rule inet arcus e%lld ip daddr { %s } accept\n", n, egress);
    if (!nft_run(f->nft, text.at, err))
        return false;
    free(f->egress[net]);
    f->egress[net] = strdup(egress);
    return f->egress[net] || (abort(), false);
}

static bool known(struct fabric *f, const char *link, uint32_t address, bool in)
{
    unsigned char mac[MAC_BYTES];
    ipv4_mac(address, mac);
    return nft_member(f->nft, &(struct nft_member){ "arcus", "known", link, mac, address }, in);
}

bool fabric_admit(struct fabric *f, const char *link, uint32_t address, struct err *err)
{
    if (!known(f, link, address, true))
        return err_errno(err, "nftables does not take its address");
    mesh_here(f, address); /* it was elsewhere before */
    return true;
}

void fabric_forget(struct fabric *f, const char *link, uint32_t address)
{
    if (f->works && !known(f, link, address, false))
        return; /* its link is gone all the same */
}
