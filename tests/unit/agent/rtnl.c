#include "agent/rtnl.h"
#include "model/ipv4.h"
#include "tap.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

static void *links(void *arg)
{
    static const unsigned char mac[6] = { 2, 0, 0, 0, 0, 1 };
    int index = 0, bridge = 0;
    *(bool *)arg = unshare(CLONE_NEWNET) == 0;
    if (!*(bool *)arg)
        return NULL;
    int s = rtnl_open(), ns = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    CHECK(s != -1 && ns != -1 && !rtnl_index(s, "none", &index) && errno == ENODEV);
    if (rtnl_bridge(s, "b", mac, 1400)) {
        CHECK(!rtnl_bridge(s, "b", mac, 1400) && errno == EEXIST);
        CHECK(rtnl_index(s, "b", &bridge) && bridge > 0 && rtnl_address(s, bridge, 0x0a000001, 24) && rtnl_address(s, bridge, 0x0a000001, 24));
        struct rtnl_veth v = { .name = "v", .peer = "w", .master = bridge, .peer_ns = ns, .mtu = 1400, .peer_mac = mac };
        CHECK(rtnl_veth(s, &v) && rtnl_index(s, "w", &index) && rtnl_up(s, index) && rtnl_default_route(s, 0x0a0000fe));
        CHECK(!rtnl_default_route(s, 0x0b000001)); /* nobody leads there */
        CHECK((rtnl_cap(s, index, 10) && rtnl_cap(s, index, 100000)) || errno == ENOENT || errno == EOPNOTSUPP);
        CHECK(rtnl_remove(s, "v") && !rtnl_remove(s, "v"));
    } else {
        printf("# no bridges here\n");
    }
    close(s);
    close(ns);
    return NULL;
}

TEST(links_addresses_and_routes_are_made_by_message_and_a_refusal_is_told)
{
    bool there = false;
    pthread_t t;
    CHECK(pthread_create(&t, NULL, links, &there) == 0 && pthread_join(t, NULL) == 0);
    if (!there)
        test_skip("no network namespaces here");
}
