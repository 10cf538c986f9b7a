/* net.h - networks of tasks as the runtime sees them: what a start has to wait for, and what is told about this node.
 *
 * The work is done by a thread of its own (fabric.h). Nothing here blocks but net_open, which finds out what this machine can do before
 * the node tells the server. */
#pragma once
#include "model/node.h"
#include "model/order.h"
#include "os/os.h"

struct net;
struct net_config {
    bool uplink;
    bool underlay;              /* trusted */
    const char *underlay_address;   /* NULL: found */
    const char *key;
    struct texts servers;       /* their addresses are closed to tasks */
};
struct net_holder { int pid; uint64_t start_time; };    /* a supervisor that may hold a fabric */
struct net *net_open(struct os *os, const struct net_config *config, const struct net_holder *holders, size_t count);
void net_close(struct net *n);                  /* no callback follows; NULL is fine */
bool net_works(const struct net *n);
void net_describe(const struct net *n, struct node_info *info, struct arena *mem, const char **cannot, size_t *count);

/* What a plan has of its network. */
struct net_place { const char *fabric; char bridge[16], link[16], resolver[16]; int64_t mtu; bool capped; };
struct net_place net_place(const struct net *n, const struct order *o);
const char *net_fabric(const struct net *n);    /* a path to the namespace, for as long as we live; NULL: there is none */

/* Its project's bridge is there, and it is known on it. */
void net_want(struct net *n, const struct order *o, void (*done)(void *arg, const struct err *err), void *arg);     /* err NULL: it is */
void net_policy(struct net *n, const struct order *o);  /* where its project may go has changed */
void net_servers(struct net *n, struct texts urls);     /* those that the cloud tells: closed to tasks, too */
void net_mesh(struct net *n, bool full, struct objects nets);   /* struct net_part: where others of its projects are */
void net_drop(struct net *n, int64_t attempt, const char *address);
