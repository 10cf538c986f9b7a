/* Each in a thread of its own, which stands in a network namespace of its own before it begins: what the fabric takes for the node is that. */
#include "agent/mesh.h"
#include "agent/nft.h"
#include "base/fault.h"
#include "tap.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct stage { void (*act)(struct fabric *f); bool there; };

static void *on_stage(void *arg)
{
    struct stage *s = arg;
    struct fabric *f = calloc(1, sizeof *f);
    s->there = unshare(CLONE_NEWNET) == 0;
    if (s->there)
        s->act(f);
    free(f);
    return NULL;
}
static void play(void (*act)(struct fabric *f))
{
    struct stage s = { .act = act };
    pthread_t t;
    CHECK(pthread_create(&t, NULL, on_stage, &s) == 0 && pthread_join(t, NULL) == 0);
    if (!s.there)
        test_skip("no network namespaces here");
}
static bool there(struct fabric *f, const char *link)
{
    int index;
    return rtnl_index(f->socket, link, &index);
}

static const struct fabric_config outside = { .uplink = true, .local = UINT32_C(0xc0000201), .key = "test", .closed = (uint32_t[]){ 0xc6336401 }, .closed_count = 1 };

static void make_all(struct fabric *f)
{
    struct err err = { 0 };
    char link[LINK_NAME], bridge[LINK_NAME];
    fabric_open(f, &outside, -1);
    if (!f->works) {
        CHECK(f->lack_count == 1 && strstr(f->lacks[0], "network: "));
        test_skip(f->lacks[0]);
        fabric_close(f);
        return;
    }
    CHECK(fabric_project(f, 5, "all", &err) && fabric_project(f, 5, "none", &err) && fabric_project(f, 7, "10.0.0.0/8,192.0.2.7/32", &err));
    CHECK(there(f, fabric_bridge(5, bridge)) && there(f, fabric_bridge(7, bridge)) && !there(f, fabric_bridge(6, bridge)));
    CHECK(fabric_admit(f, fabric_link(77, link), net_address(5, 8), &err) && fabric_admit(f, fabric_link(78, link), net_address(5, 9), &err));
    fabric_forget(f, link, net_address(5, 9));
    fabric_forget(f, link, net_address(5, 9));
    CHECK(!fabric_project(f, 0, "all", &err) && !fabric_project(f, NET_NUMBERS, "all", &err));
    CHECK(!fabric_project(f, 9, "10.0.0.0/8 } accept; add rule inet arcus forward accept; #", &err) && strstr(err.text, "no networks"));
    for (size_t i = 0; i < f->lack_count; i++)
        printf("# %s\n", f->lacks[i]);
    fabric_close(f);
}
TEST(a_fabric_has_a_bridge_for_each_project_and_says_what_it_lacks) { play(make_all); }

/* The second agent of the same tasks. */
static void take_over(struct fabric *f)
{
    struct err err = { 0 };
    char bridge[LINK_NAME];
    fabric_open(f, &outside, -1);
    if (f->works) {
        CHECK(fabric_project(f, 5, "all", &err));
        int held = fcntl(f->ns, F_DUPFD_CLOEXEC, 3);
        fabric_close(f);
        CHECK(setns(held, CLONE_NEWNET) == 0);
        *f = (struct fabric){ 0 };
        fabric_open(f, &(struct fabric_config){ .key = "test" }, held);
        CHECK(f->works && there(f, fabric_bridge(5, bridge)) && fabric_project(f, 5, "none", &err));
    }
    fabric_close(f);
}
TEST(an_agent_takes_over_the_networks_of_the_one_before_it) { play(take_over); }

/* The next agent of tasks that hold the networks, on the node where the one before it was. */
static void next_agent(struct fabric *f, const struct fabric_config *c)
{
    int held = fcntl(f->ns, F_DUPFD_CLOEXEC, 3), node = fcntl(f->node_ns, F_DUPFD_CLOEXEC, 3);
    fabric_close(f);
    CHECK(held != -1 && setns(node, CLONE_NEWNET) == 0);
    close(node);
    fabric_open(f, c, held);
}
static void take_back(struct fabric *f)
{
    struct err err = { 0 };
    char bridge[LINK_NAME], node[64];
    fabric_open(f, &outside, -1);
    snprintf(node, sizeof node, "list table inet %s\n", f->uplink_name);
    if (f->works && f->uplink && f->local) {
        CHECK(fabric_project(f, 5, "all", &err) && there(f, "up") && there(f, "x5") && nft_run(f->node_nft, node, &err));
        next_agent(f, &outside);
        CHECK(f->works && f->uplink && there(f, "up") && there(f, "x5") && nft_run(f->node_nft, node, &err));
        next_agent(f, &(struct fabric_config){ .key = "test" });
        CHECK(f->works && !there(f, "up") && !there(f, "x5") && !nft_run(f->node_nft, node, &err));
        CHECK(there(f, fabric_bridge(5, bridge)) && fabric_project(f, 5, "all", &err));
    } else {
        test_skip("no uplink or no tunnel here");
    }
    fabric_close(f);
}
TEST(an_uplink_and_tunnels_that_are_taken_back_are_gone_while_tasks_live) { play(take_back); }

static void bound(struct fabric *f)
{
    struct err err = { 0 };
    fabric_open(f, &outside, -1);
    if (f->works && f->uplink)
        CHECK(nft_run(f->nft, "list chain inet arcus bound\nlist set inet arcus conns\n", &err));
    else
        test_skip("no uplink here");
    fabric_close(f);
}
TEST(what_leads_out_of_a_node_bounds_the_connections_of_each_task) { play(bound); }

static void killed_as_it_tried(struct fabric *f)
{
    static const unsigned char mac[6] = { 2, 0xa7, 0, 0, 0, 9 };
    fabric_open(f, &outside, -1);
    if (f->works) {
        bool tunnels = f->local;
        struct rtnl_veth v = { .name = "try0", .peer = "try1", .peer_ns = f->ns, .mtu = FABRIC_MTU };
        struct rtnl_vxlan x = { .name = "try2", .id = (1 << 24) - 1, .local = outside.local, .port = FABRIC_PORT, .mtu = FABRIC_MTU };
        CHECK(rtnl_bridge(f->socket, "try", mac, FABRIC_MTU) && rtnl_veth(f->socket, &v));
        CHECK(!tunnels || rtnl_vxlan(f->underlay, &x, f->ns));
        next_agent(f, &outside);
        CHECK(f->works && !there(f, "try") && !there(f, "try0") && !there(f, "try2") && (f->local || !tunnels));
    }
    fabric_close(f);
}
TEST(an_agent_that_was_killed_as_it_tried_the_kernel_leaves_nothing_in_the_way) { play(killed_as_it_tried); }

/* Whatever fails: it says so, and what it then refuses it does not half do. */
static void fail_nth(struct fabric *f)
{
    char link[LINK_NAME];
    fabric_link(77, link);
    for (int nth = 1;; nth++) {
        struct err err = { 0 };
        fault_arm(nth);
        fabric_open(f, &outside, -1);
        bool works = f->works, whole = works && f->uplink && f->local;
        bool ok = fabric_project(f, 5, "all", &err) && fabric_admit(f, link, net_address(5, 8), &err);
        bool fired = fault_fired();
        fault_arm(0);
        CHECK(works || (!ok && f->lack_count));
        CHECK(ok || err.rc);
        CHECK(!works || whole || f->lack_count);
        CHECK(f->uplink || f->socket == -1 || !there(f, "up"));
        fabric_close(f);
        *f = (struct fabric){ 0 };
        if (!fired)
            return;
    }
}
TEST(whatever_of_a_fabric_cannot_be_made_is_told_and_nothing_is_left_open) { play(fail_nth); }
