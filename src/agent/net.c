/* net.c - see net.h. A fabric belongs to its thread; the loop has a copy of what does not change. */
#include "agent/net.h"
#include "agent/mesh.h"
#include "agent/workshop.h"
#include "base/log.h"
#include "base/str.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netdb.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SERVERS_MOST = 64, AGAIN_MS = 2000, MTU_LEAST = 1280, MTU_MOST = 9000 };

struct net {
    struct os *os;
    struct workshop *shop;
    struct fabric *fabric;      /* the thread's */
    char *egress[NET_NUMBERS];  /* what was last asked for */
    bool owed[NET_NUMBERS];     /* ... and is not so yet */
    char *servers;              /* those that were told last, with commas between */
    bool servers_owed, mesh_owed;
    struct timer *again;
    bool works, uplink, caps;
    uint32_t local, resolver;
    int mtu;
    char path[64];
    char lacks[FABRIC_LACKS][LACK_TEXT];
    size_t lack_count;
};

/* --- opening */

static bool still(struct os *os, const struct net_holder *h)
{
    struct proc *p = NULL;
    bool is = h->pid > 0 && proc_watch(os, h->pid, h->start_time, NULL, NULL, &p);
    proc_forget(p);
    return is;
}

/* Of its descriptors, the one that is a network namespace other than ours. A supervisor holds no other; who has only its number may hold anything. */
static int held_by(struct os *os, const struct net_holder *h)
{
    char path[64], own[64] = "", link[64];
    snprintf(path, sizeof path, "/proc/%d/fd", h->pid);
    if (!still(os, h) || readlink("/proc/self/ns/net", own, sizeof own - 1) == -1)
        return -1;
    DIR *d = opendir(path);
    int found = -1;
    for (struct dirent *e; d && found == -1 && (e = readdir(d));) {
        ssize_t n = readlinkat(dirfd(d), e->d_name, link, sizeof link - 1);
        link[MAX(n, 0)] = 0;
        if (strncmp(link, "net:[", 5) == 0 && !text_is(link, own))
            found = openat(dirfd(d), e->d_name, O_RDONLY | O_CLOEXEC);
    }
    if (d)
        closedir(d);
    if (found != -1 && !still(os, h))
        close(found), found = -1;
    return found;
}

struct closed { uint32_t at[SERVERS_MOST]; size_t count; char unknown[128]; };  /* unknown: one that was not found */

/* "https://head.example.org:6640", or several with commas between. Tasks have no IPv6, so only other addresses are to be closed. */
static bool resolve(const char *urls, struct closed *c)
{
    for (size_t n; (n = strcspn(urls += strspn(urls, ", "), ", ")); urls += n) {
        const char *at = strstr(urls, "://");
        at = at && at < urls + n ? at + 3 : urls;
        char host[256];
        snprintf(host, sizeof host, "%.*s", (int)MIN(strcspn(at, ":/, "), sizeof host - 1), at);
        if (*at == '[' || text_starts(urls, "unix:"))
            continue;
        struct addrinfo like = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM }, *list = NULL;
        bool ok = getaddrinfo(host, NULL, &like, &list) == 0;
        for (struct addrinfo *a = list; a && ok; a = a->ai_next)
            if (a->ai_family == AF_INET && (ok = c->count < SERVERS_MOST))
                c->at[c->count++] = ntohl(((struct sockaddr_in *)a->ai_addr)->sin_addr.s_addr);
        if (list)
            freeaddrinfo(list);
        if (!ok)
            return snprintf(c->unknown, sizeof c->unknown, "%.100s", host), false;
    }
    return true;
}

/* The address from which that server is reached, if none is given, and how large a packet may be on the way. */
static uint32_t seen_by(uint32_t server, uint32_t given, int *mtu)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(server) }, from = { 0 };
    struct sockaddr_in own = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(given) };
    socklen_t n = sizeof from, four = sizeof *mtu;
    int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool ok = s != -1 && (!given || bind(s, (struct sockaddr *)&own, sizeof own) == 0) && connect(s, (struct sockaddr *)&to, sizeof to) == 0
              && getsockname(s, (struct sockaddr *)&from, &n) == 0;
    if (ok && getsockopt(s, IPPROTO_IP, IP_MTU, mtu, &four) == 0)
        *mtu = MIN(MAX(*mtu, MTU_LEAST), MTU_MOST);
    if (s != -1)
        close(s);
    uint32_t address = ok ? ntohl(from.sin_addr.s_addr) : 0;
    return address >> 24 == 127 ? 0 : address;
}

struct opening {
    struct work work;
    struct fabric *fabric;
    const struct net_config *config;
    int found;
};

static void open_run(struct work *w)
{
    struct opening *o = CONTAINER(w, struct opening, work);
    const struct net_config *c = o->config;
    struct closed closed = { 0 };
    struct fabric_config config = { .uplink = c->uplink, .underlay = c->underlay, .key = c->key, .closed = closed.at };
    for (size_t i = 0; (c->uplink || c->underlay) && i < c->servers.count; i++)
        if (!resolve(c->servers.at[i], &closed))
            config.unknown = closed.unknown;
    config.closed_count = closed.count;
    if (c->underlay && !ipv4_parse(c->underlay_address, &config.local))
        config.local = 0;
    uint32_t seen = c->underlay && config.closed_count ? seen_by(closed.at[0], config.local, &config.underlay_mtu) : 0;
    config.local = config.local ? config.local : seen;
    fabric_open(o->fabric, &config, o->found);
}

static void open_done(struct work *w)
{
    free(CONTAINER(w, struct opening, work));
}

struct net *net_open(struct os *os, const struct net_config *config, const struct net_holder *holders, size_t count)
{
    struct net *n = calloc(1, sizeof *n);
    struct opening *o = calloc(1, sizeof *o);
    struct fabric *f = calloc(1, sizeof *f);
    if (!n || !o || !f)
        abort();
    n->os = os;
    n->shop = workshop_new(os, "network");
    n->fabric = f;
    *o = (struct opening){ .work = { .run = open_run, .done = open_done }, .fabric = f, .config = config, .found = -1 };
    for (size_t i = 0; i < count && o->found == -1; i++)
        o->found = held_by(os, &holders[i]);
    workshop_do(n->shop, &o->work);
    workshop_settle(n->shop);
    n->works = f->works, n->uplink = f->uplink, n->caps = f->caps;
    n->local = f->local, n->resolver = f->resolver, n->mtu = f->mtu;
    snprintf(n->path, sizeof n->path, "/proc/%d/fd/%d", getpid(), f->ns);
    memcpy(n->lacks, f->lacks, sizeof n->lacks);
    n->lack_count = f->lack_count;
    return n;
}

void net_close(struct net *n)
{
    if (!n)
        return;
    timer_cancel(n->again);
    workshop_close(n->shop); /* its thread is gone from here on */
    fabric_close(n->fabric);
    free(n->fabric);
    for (size_t i = 0; i < NET_NUMBERS; i++)
        free(n->egress[i]);
    free(n->servers);
    free(n);
}

/* --- what is told */

bool net_works(const struct net *n)
{
    return n && n->works;
}

const char *net_fabric(const struct net *n)
{
    return net_works(n) ? n->path : NULL;
}

void net_describe(const struct net *n, struct node_info *info, struct arena *mem, const char **cannot, size_t *count)
{
    char four[IPV4_TEXT];
    if (!n)
        return;
    info->network = n->works;
    info->underlay = n->local ? arena_text(mem, ipv4_text(n->local, four)) : NULL;
    for (size_t i = 0; i < n->lack_count; i++)
        cannot[(*count)++] = arena_text(mem, n->lacks[i]);
}

struct net_place net_place(const struct net *n, const struct order *o)
{
    struct net_place p = { .fabric = net_fabric(n), .mtu = n->mtu, .capped = n->caps };
    fabric_bridge(o->net, p.bridge);
    fabric_link(o->attempt, p.link);
    if (n->uplink && n->resolver && text_given(o->egress) && !text_is(o->egress, "none"))
        ipv4_text(net_address(o->net, NET_GATEWAY), p.resolver);
    return p;
}

/* --- work for the thread */

struct errand {
    struct work work;
    struct net *net_of;         /* the loop's */
    struct fabric *fabric;
    int64_t net;
    char link[LINK_NAME];
    char *egress;               /* or urls */
    uint32_t address;
    struct mesh_news *news;
    struct err err;
    void (*done)(void *arg, const struct err *err);
    void *arg;
};

static void errand_free(struct work *w)
{
    struct errand *e = CONTAINER(w, struct errand, work);
    free(e->egress);
    mesh_news_free(e->news);
    free(e);
}

static void errand_done(struct work *w)
{
    struct errand *e = CONTAINER(w, struct errand, work);
    struct err err = e->err;
    void (*done)(void *, const struct err *) = e->done;
    void *arg = e->arg;
    errand_free(w);
    if (done)
        done(arg, err.rc ? &err : NULL);
}

static struct errand *errand_new(struct net *n, void (*run)(struct work *w))
{
    struct errand *e = calloc(1, sizeof *e);
    if (!e)
        abort();
    *e = (struct errand){ .work = { .run = run, .done = errand_done, .drop = errand_free }, .net_of = n, .fabric = n->fabric };
    return e;
}

static char *copy(const char *text)
{
    char *s = strdup(text ? text : "");
    return s ? s : (abort(), NULL);
}

/* The last word counts, whoever brings it. */
static void note_egress(struct net *n, const struct order *o)
{
    if (o->net <= 0 || o->net >= NET_NUMBERS)
        return;
    free(n->egress[o->net]);
    n->egress[o->net] = copy(o->egress);
    n->owed[o->net] = false;
}

static void want_run(struct work *w)
{
    struct errand *e = CONTAINER(w, struct errand, work);
    if (!fabric_project(e->fabric, e->net, e->egress, &e->err)
        || !fabric_admit(e->fabric, e->link, e->address, &e->err))
        err_wrap(&e->err, "its network");
}

void net_want(struct net *n, const struct order *o, void (*done)(void *arg, const struct err *err), void *arg)
{
    struct errand *e = errand_new(n, want_run);
    note_egress(n, o);
    e->net = o->net;
    e->egress = copy(o->egress);
    e->done = done;
    e->arg = arg;
    fabric_link(o->attempt, e->link);
    if (!ipv4_parse(o->address, &e->address) || !net_has(o->net, e->address))
        e->address = 0; /* on no list, so whoever sends from it is not heard */
    workshop_do(n->shop, &e->work);
}

static void policy_run(struct work *w)
{
    struct errand *e = CONTAINER(w, struct errand, work);
    if (!fabric_project(e->fabric, e->net, e->egress, &e->err))
        err_wrap(&e->err, "where the tasks of network %lld may go stays as it was", (long long)e->net);
}

static void ask_policy(struct net *n, int64_t net);
static void ask_servers(struct net *n);
static void ask_mesh(struct net *n, struct mesh_news *news);

static void on_again(void *arg)
{
    struct net *n = arg;
    n->again = NULL;
    for (int64_t net = 1; net < NET_NUMBERS; net++)
        if (n->owed[net])
            ask_policy(n, net);
    if (n->servers_owed)
        ask_servers(n);
    if (n->mesh_owed)
        ask_mesh(n, NULL);
}

/* Nobody may come and ask again, and until then too much may be open. */
static void owe(struct net *n, const struct err *why)
{
    log_line(LOG_ERROR, "agent", "%s", why->text);
    if (!n->again)
        n->again = timer_start(n->os, AGAIN_MS, on_again, n);
}

static void policy_done(struct work *w)
{
    struct errand *e = CONTAINER(w, struct errand, work);
    struct net *n = e->net_of;
    if (e->err.rc) {
        n->owed[e->net] = true;
        owe(n, &e->err);
    }
    errand_free(w);
}

static void ask_policy(struct net *n, int64_t net)
{
    struct errand *e = errand_new(n, policy_run);
    e->work.done = policy_done;
    e->net = net;
    e->egress = copy(n->egress[net]);
    n->owed[net] = false;
    workshop_do(n->shop, &e->work);
}

/* Also of a project whose tasks were all found here: the agent before us may not have heard of it. */
void net_policy(struct net *n, const struct order *o)
{
    if (!net_works(n) || o->net <= 0 || o->net >= NET_NUMBERS)
        return;
    note_egress(n, o);
    ask_policy(n, o->net);
}

/* Names are known on the node, not in the fabric where this thread stands. */
static void servers_run(struct work *w)
{
    struct errand *e = CONTAINER(w, struct errand, work);
    struct closed closed = { 0 };
    bool known = setns(e->fabric->node_ns, CLONE_NEWNET) == 0 && resolve(e->egress, &closed);
    if (setns(e->fabric->ns, CLONE_NEWNET) == -1)
        abort(); /* what follows would be done to the node */
    if (!fabric_bar(e->fabric, closed.at, closed.count, &e->err) || !known)
        err_set(&e->err, RC_UNAVAILABLE, "the server %s is not closed to tasks yet: its address is not known", closed.unknown);
}

static void servers_done(struct work *w)
{
    struct errand *e = CONTAINER(w, struct errand, work);
    e->net_of->servers_owed |= e->err.rc != 0;
    if (e->err.rc)
        owe(e->net_of, &e->err);
    errand_free(w);
}

static void ask_servers(struct net *n)
{
    struct errand *e = errand_new(n, servers_run);
    e->work.done = servers_done;
    e->egress = copy(n->servers);
    n->servers_owed = false;
    workshop_do(n->shop, &e->work);
}

void net_servers(struct net *n, struct texts urls)
{
    AUTO(str_done) struct str text = { 0 };
    for (size_t i = 0; i < urls.count; i++)
        str_printf(&text, "%s,", urls.at[i]);
    if (!n->uplink || !text.len || (n->servers && text_is(n->servers, text.at)))
        return;
    free(n->servers);
    n->servers = copy(text.at);
    ask_servers(n);
}

static void mesh_run(struct work *w)
{
    struct errand *e = CONTAINER(w, struct errand, work);
    if (!(e->news ? mesh_take(e->fabric, e->news, &e->err) : mesh_again(e->fabric, &e->err)))
        err_wrap(&e->err, "tasks on other nodes");
}

static void mesh_told(struct work *w)
{
    struct errand *e = CONTAINER(w, struct errand, work);
    e->net_of->mesh_owed |= e->err.rc != 0;
    if (e->err.rc)
        owe(e->net_of, &e->err);
    errand_free(w);
}

static void ask_mesh(struct net *n, struct mesh_news *news)
{
    struct errand *e = errand_new(n, mesh_run);
    e->work.done = mesh_told;
    e->news = news;
    n->mesh_owed &= news != NULL;
    workshop_do(n->shop, &e->work);
}

void net_mesh(struct net *n, bool full, struct objects nets)
{
    if (n->local && (full || nets.count))
        ask_mesh(n, mesh_read(full, nets));
}

static void drop_run(struct work *w)
{
    struct errand *e = CONTAINER(w, struct errand, work);
    fabric_forget(e->fabric, e->link, e->address);
}

void net_drop(struct net *n, int64_t attempt, const char *address)
{
    struct errand *e = errand_new(n, drop_run);
    fabric_link(attempt, e->link);
    if (net_works(n) && ipv4_parse(address, &e->address))
        workshop_do(n->shop, &e->work);
    else
        errand_free(&e->work);
}
