/* mesh.c - see mesh.h. A table is changed first and the kernel after it, so that what fails is done again from the table. */
#include "agent/mesh.h"
#include "agent/nft.h"
#include "base/fault.h"
#include "model/order.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* --- from a message */

static size_t read_hosts(int64_t net, const struct net_at *from, uint32_t node, struct mesh_at *to)
{
    size_t count = 0;
    const char *at = from->hosts;
    for (char *end; *at >= '0' && *at <= '9' && count < NET_HOSTS; at = *end == ',' ? end + 1 : end) {
        unsigned long host = strtoul(at, &end, 10);
        if (host < NET_HOSTS && net_has(net, net_address(net, (int64_t)host)))
            to[count++] = (struct mesh_at){ net_address(net, (int64_t)host), node };
    }
    return count;
}

static size_t words_of(const char *text)
{
    size_t n = 1;
    for (; (text = strchr(text, ',')); text++)
        n++;
    return n;
}

static void read_part(const struct net_part *from, struct mesh_part *to)
{
    const struct net_at *at = from->at.at;
    size_t room = 1;
    for (size_t i = 0; i < from->at.count; i++)
        room += words_of(at[i].hosts);
    *to = (struct mesh_part){ .net = from->net, .whole = from->whole, .at = calloc(room, sizeof *to->at) };
    if (!to->at)
        abort();
    for (size_t i = 0; i < from->at.count; i++) {
        uint32_t node = 0;
        if (!text_given(at[i].node) || ipv4_parse(at[i].node, &node))
            to->count += read_hosts(from->net, &at[i], node, to->at + to->count);
    }
}

struct mesh_news *mesh_read(bool full, struct objects nets)
{
    struct mesh_news *n = calloc(1, sizeof *n);
    const struct net_part *from = nets.at;
    if (!n || !(n->parts = calloc(nets.count + 1, sizeof *n->parts)))
        abort();
    n->full = full;
    for (size_t i = 0; i < nets.count; i++)
        read_part(&from[i], &n->parts[n->count++]);
    return n;
}

void mesh_news_free(struct mesh_news *n)
{
    for (size_t i = 0; n && i < n->count; i++)
        free(n->parts[i].at);
    if (n)
        free(n->parts);
    free(n);
}

/* --- tables */

static uint32_t *table_of(struct fabric *f, int64_t net)
{
    uint32_t **t = &f->mesh.at[net];
    if (!*t && !(*t = calloc(NET_HOSTS, sizeof **t)))
        abort();
    return *t;
}

/* A node more or less in the filter: for nft(8), which refuses to take out what is not in. */
static void hear(struct fabric *f, uint32_t node, int by, struct str *text)
{
    char four[IPV4_TEXT];
    struct map **m = &f->mesh.heard;
    *m = *m ? *m : map_new();
    intptr_t was = (intptr_t)map_get(*m, node), is = was + by;
    if (is)
        map_put(*m, node, (void *)is);
    else
        map_take(*m, node);
    if (!was || !is)
        str_printf(text, "add element inet %s-x peers { %s }\n", f->uplink_name, ipv4_text(node, four));
    if (!is)
        str_printf(text, "delete element inet %s-x peers { %s }\n", f->uplink_name, four);
}

static void set(struct fabric *f, int64_t net, uint32_t address, uint32_t node, struct str *text)
{
    uint32_t *at = &table_of(f, net)[address & (NET_HOSTS - 1)], was = *at;
    *at = node;
    if (node == was)
        return;
    if (node)
        hear(f, node, 1, text);
    if (was)
        hear(f, was, -1, text);
}

/* --- and the kernel */

static bool say(struct fabric *f, int index, uint32_t address, uint32_t node)
{
    unsigned char mac[MAC_BYTES];
    ipv4_mac(address, mac);
    if (node)
        return !broken("mesh.say") && rtnl_neighbour(f->socket, index, address, mac, node);
    rtnl_forget(f->socket, index, address, mac);
    return true;
}

static bool tunnel_of(struct fabric *f, int64_t net, int *index)
{
    char tunnel[LINK_NAME];
    snprintf(tunnel, sizeof tunnel, "x%lld", (long long)net);
    return rtnl_index(f->socket, tunnel, index);
}

static bool take_part(struct fabric *f, const struct mesh_part *p, struct str *text, struct err *err)
{
    uint32_t *now = table_of(f, p->net);
    int index;
    AUTO(map_free) struct map *named = map_new();
    bool ok = fabric_tunnel(f, p->net, err) && (tunnel_of(f, p->net, &index) || err_errno(err, "the project's tunnel is not there"));
    for (size_t i = 0; i < p->count; i++) {
        uint32_t node = p->at[i].node == f->local ? 0 : p->at[i].node, was = now[p->at[i].address & (NET_HOSTS - 1)];
        map_put(named, p->at[i].address, named);
        set(f, p->net, p->at[i].address, node, text);
        if (ok && node != was && !say(f, index, p->at[i].address, node))
            ok = err_errno(err, "cannot reach a task on another node");
    }
    for (int64_t host = NET_FIRST; p->whole && host <= NET_LAST; host++) {
        uint32_t address = net_address(p->net, host);
        if (!now[host] || map_get(named, address))
            continue;
        set(f, p->net, address, 0, text);
        if (ok && !say(f, index, address, 0))
            ok = false;
    }
    f->mesh.owed[p->net] |= !ok;
    return ok;
}

static bool is_named(const struct mesh_news *n, int64_t net)
{
    for (size_t i = 0; i < n->count; i++)
        if (n->parts[i].net == net)
            return true;
    return false;
}

bool mesh_take(struct fabric *f, const struct mesh_news *n, struct err *err)
{
    AUTO(str_done) struct str text = { 0 };
    bool ok = true;
    if (!f->works || !f->local)
        return true;
    for (size_t i = 0; i < n->count; i++)
        ok &= take_part(f, &n->parts[i], &text, err);
    for (int64_t net = 1; n->full && net < NET_NUMBERS; net++)
        if (f->mesh.at[net] && !is_named(n, net))
            ok &= take_part(f, &(struct mesh_part){ .net = net, .whole = true }, &text, err);
    if (text.len && !nft_run(f->node_nft, text.at, err))
        ok = false, f->mesh.heard_owed = true;
    for (int64_t net = 1; net < NET_NUMBERS && ok; net++)
        if (f->mesh.owed[net])
            ok = err_set(err, RC_UNAVAILABLE, "those of network %lld are not all reached yet", (long long)net);
    return ok;
}

bool mesh_again(struct fabric *f, struct err *err)
{
    AUTO(str_done) struct str text = { 0 };
    bool ok = true;
    for (int64_t net = 1; net < NET_NUMBERS; net++) {
        int index;
        if (!f->mesh.owed[net])
            continue;
        f->mesh.owed[net] = false;
        bool good = fabric_tunnel(f, net, err) && (tunnel_of(f, net, &index) || err_errno(err, "the project's tunnel is not there"));
        for (int64_t host = NET_FIRST; good && host <= NET_LAST; host++)
            if (!say(f, index, net_address(net, host), table_of(f, net)[host]))
                good = err_errno(err, "cannot reach a task on another node");
        f->mesh.owed[net] = !good;
        ok &= good;
    }
    str_printf(&text, "flush set inet %s-x peers\n", f->uplink_name);
    mesh_heard(f, &text);
    if (f->mesh.heard_owed)
        f->mesh.heard_owed = !nft_run(f->node_nft, text.at, err);
    return ok && !f->mesh.heard_owed;
}

void mesh_here(struct fabric *f, uint32_t address)
{
    AUTO(str_done) struct str text = { 0 };
    struct err none;
    int64_t net = (address - NET_POOL) >> NET_HOST_BITS;
    int index;
    if (!f->local || !net_has(net, address) || !f->mesh.at[net] || !f->mesh.at[net][address & (NET_HOSTS - 1)])
        return;
    set(f, net, address, 0, &text);
    f->mesh.owed[net] |= !tunnel_of(f, net, &index) || !say(f, index, address, 0);
    f->mesh.heard_owed |= text.len && !nft_run(f->node_nft, text.at, &none);
}

void mesh_heard(const struct fabric *f, struct str *text)
{
    char four[IPV4_TEXT];
    AUTO(map_free) struct map *said = map_new();
    for (int64_t net = 1; net < NET_NUMBERS; net++)
        for (int64_t host = NET_FIRST; f->mesh.at[net] && host <= NET_LAST; host++) {
            uint32_t node = f->mesh.at[net][host];
            if (!node || map_get(said, node))
                continue;
            map_put(said, node, said);
            str_printf(text, "add element inet %s-x peers { %s }\n", f->uplink_name, ipv4_text(node, four));
        }
}

/* --- an agent before us */

struct finding { struct fabric *f; struct map *nets; };

static void find(void *arg, int index, const unsigned char mac[static MAC_BYTES], uint32_t node)
{
    const struct finding *x = arg;
    AUTO(str_done) struct str ignored = { 0 }; /* the filter is written as a whole after this */
    uint32_t address = (uint32_t)mac[2] << 24 | (uint32_t)mac[3] << 16 | (uint32_t)mac[4] << 8 | mac[5];
    int64_t net = (intptr_t)map_get(x->nets, index);
    if (net && net_has(net, address))
        set(x->f, net, address, node, &ignored);
}

void mesh_found(struct fabric *f)
{
    int index;
    AUTO(map_free) struct map *nets = map_new();
    for (int64_t net = 1; net < NET_NUMBERS; net++)
        if (tunnel_of(f, net, &index))
            map_put(nets, index, (void *)(intptr_t)net);
    bool ok = !broken("mesh.found") && rtnl_behind(f->socket, find, &(struct finding){ f, nets });
    for (int64_t net = 1; net < NET_NUMBERS && !ok; net++)
        f->mesh.owed[net] = tunnel_of(f, net, &index);
}

void mesh_done(struct fabric *f)
{
    for (size_t i = 0; i < NET_NUMBERS; i++)
        free(f->mesh.at[i]);
    map_free(f->mesh.heard);
}
