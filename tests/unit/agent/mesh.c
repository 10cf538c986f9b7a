/* What tunnels were told, as the kernel has it. Each test stands in a network namespace of its own, which the fabric takes for the node. */
#include "agent/mesh.h"
#include "agent/nft.h"
#include "base/fault.h"
#include "model/order.h"
#include "tap.h"
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OURS = 0xc0000201, TWO = 0xc0000202, THREE = 0xc0000203 };
static const struct fabric_config here = { .local = OURS, .key = "mesh", .underlay = true };

struct stage { void (*act)(struct fabric *f); bool there; };

static void *on_stage(void *arg)
{
    struct stage *s = arg;
    struct fabric *f = calloc(1, sizeof *f);
    if (unshare(CLONE_NEWNET) == 0) {
        fabric_open(f, &here, -1);
        s->there = f->works && f->local;
        if (s->there)
            s->act(f);
        fabric_close(f);
    }
    free(f);
    return NULL;
}
static void play(void (*act)(struct fabric *f))
{
    struct stage s = { .act = act };
    pthread_t t;
    CHECK(pthread_create(&t, NULL, on_stage, &s) == 0 && pthread_join(t, NULL) == 0);
    if (!s.there)
        test_skip("no tunnels here");
}

struct seen { char words[32][24]; size_t count; };
static void note(void *arg, int index, const unsigned char mac[static 6], uint32_t node)
{
    struct seen *s = arg;
    uint32_t address = (uint32_t)mac[2] << 24 | (uint32_t)mac[3] << 16 | (uint32_t)mac[4] << 8 | mac[5], net = (address - NET_POOL) >> NET_HOST_BITS;
    (void)index;
    snprintf(s->words[s->count++ % COUNT(s->words)], sizeof *s->words, "%u.%u>%u ", net, address & (NET_HOSTS - 1), node & 255);
}
static int by_word(const void *a, const void *b) { return strcmp(a, b); }
/* "5.9>2 " for each address that the kernel has behind a node, sorted: network, number, last byte of the node. */
static bool kernel_has(struct fabric *f, const char *what)
{
    char all[1024] = "";
    struct seen s = { .count = 0 };
    bool ok = rtnl_behind(f->socket, note, &s) && s.count < COUNT(s.words);
    qsort(s.words, s.count, sizeof *s.words, by_word);
    for (size_t i = 0; ok && i < s.count; i++)
        strcat(all, s.words[i]);
    if (!ok || !text_is(all, what))
        printf("# '%s' instead of '%s'\n", all, what);
    return ok && text_is(all, what);
}
/* Whether an element is there is told by taking it out; it is put back. */
static bool hears(struct fabric *f, const char *node)
{
    char out[96];
    struct err err;
    snprintf(out, sizeof out, "delete element inet %s-x peers { %s }\n", f->uplink_name, node);
    bool is = nft_run(f->node_nft, out, &err);
    snprintf(out, sizeof out, "add element inet %s-x peers { %s }\n", f->uplink_name, node);
    CHECK(!is || nft_run(f->node_nft, out, &err));
    return is;
}

static bool told(struct fabric *f, bool full, struct net_part *parts, size_t count, struct err *err)
{
    struct mesh_news *n = mesh_read(full, (struct objects){ parts, count });
    bool ok = mesh_take(f, n, err);
    mesh_news_free(n);
    return ok;
}
static bool say(struct fabric *f, bool whole, int64_t net, const char *node, const char *hosts)
{
    struct net_at at = { node, hosts };
    struct net_part part = { .net = net, .whole = whole, .at = { &at, hosts != NULL } };
    struct err err = { 0 };
    return told(f, false, &part, 1, &err);
}

static void next_agent(struct fabric *f)
{
    int held = fcntl(f->ns, F_DUPFD_CLOEXEC, 3), node = fcntl(f->node_ns, F_DUPFD_CLOEXEC, 3);
    fabric_close(f);
    CHECK(held != -1 && setns(node, CLONE_NEWNET) == 0);
    close(node);
    fabric_open(f, &here, held);
}

static void come_and_go(struct fabric *f)
{
    struct err err = { 0 };
    char link[LINK_NAME];
    CHECK(say(f, true, 5, "192.0.2.2", "9,10") && kernel_has(f, "5.10>2 5.9>2 ") && hears(f, "192.0.2.2"));
    CHECK(say(f, false, 5, "192.0.2.3", "9") && kernel_has(f, "5.10>2 5.9>3 ") && hears(f, "192.0.2.3") && hears(f, "192.0.2.2"));
    CHECK(say(f, false, 7, "192.0.2.2", "4") && say(f, false, 5, "", "10") && kernel_has(f, "5.9>3 7.4>2 ") && hears(f, "192.0.2.2"));
    CHECK(say(f, false, 7, "", "4,4,11") && kernel_has(f, "5.9>3 ") && !hears(f, "192.0.2.2")); /* nothing leads there any more */
    CHECK(fabric_project(f, 5, "all", &err) && fabric_admit(f, fabric_link(7, link), net_address(5, 9), &err)); /* it is ours now */
    CHECK(kernel_has(f, "") && !hears(f, "192.0.2.3"));
    CHECK(say(f, false, 5, "192.0.2.1", "12") && kernel_has(f, "")); /* ourselves */
    CHECK(say(f, false, 5, "192.0.2.2", "20,21,22") && say(f, true, 5, "192.0.2.3", "21") && kernel_has(f, "5.21>3 ") && !hears(f, "192.0.2.2"));
    CHECK(say(f, true, 5, NULL, NULL) && kernel_has(f, "") && !hears(f, "192.0.2.3"));
}
TEST(a_tunnel_leads_to_what_was_told_last_and_hears_those_nodes_alone) { play(come_and_go); }

static void strange(struct fabric *f)
{
    CHECK(say(f, false, 5, "192.0.2.2", "0,1,4095,4096,99999999999999999999,8") && kernel_has(f, "5.8>2 "));
    CHECK(say(f, false, 5, "192.0.2.2.7", "9") && say(f, false, 5, "192.0.2.2", "x") && say(f, false, 5, "192.0.2.2", "8;9") && kernel_has(f, "5.8>2 "));
}
TEST(words_that_are_no_addresses_of_the_network_change_nothing) { play(strange); }

static void take_over(struct fabric *f)
{
    CHECK(say(f, true, 5, "192.0.2.2", "9,10") && say(f, true, 7, "192.0.2.3", "4"));
    next_agent(f);
    CHECK(f->local && kernel_has(f, "5.10>2 5.9>2 7.4>3 ") && hears(f, "192.0.2.2") && hears(f, "192.0.2.3"));
    struct net_at at = { "192.0.2.2", "10" };
    struct net_part part = { .net = 5, .whole = true, .at = { &at, 1 } };
    struct err err = { 0 };
    CHECK(told(f, true, &part, 1, &err) && kernel_has(f, "5.10>2 ") && hears(f, "192.0.2.2") && !hears(f, "192.0.2.3"));
    CHECK(told(f, true, NULL, 0, &err) && kernel_has(f, "") && !hears(f, "192.0.2.2"));
}
TEST(an_agent_that_takes_over_knows_what_was_told_and_forgets_what_is_not_so_any_more) { play(take_over); }

/* Whatever fails, once more is enough. */
static void fail_nth(struct fabric *f)
{
    for (int nth = 1;; nth++) {
        struct err err = { 0 };
        fault_arm(nth);
        struct net_at at[] = { { "192.0.2.2", "9,10" }, { "192.0.2.3", "11" } };
        struct net_part part = { .net = 5, .whole = true, .at = { at, 2 } };
        bool ok = told(f, true, &part, 1, &err), fired = fault_fired();
        fault_arm(0);
        CHECK(ok != fired && (ok || err.rc));
        CHECK(mesh_again(f, &err) && kernel_has(f, "5.10>2 5.11>3 5.9>2 ") && hears(f, "192.0.2.2") && hears(f, "192.0.2.3"));
        CHECK(told(f, true, NULL, 0, &err) && kernel_has(f, ""));
        if (!fired)
            break;
    }
    struct err err = { 0 };
    CHECK(say(f, false, 5, "192.0.2.2", "9"));
    mesh_done(f);
    f->mesh = (struct mesh){ 0 };
    fault_arm(1);
    mesh_found(f); /* one that cannot find out what the one before it was told */
    fault_arm(0);
    CHECK(!told(f, true, NULL, 0, &err) && mesh_again(f, &err) && kernel_has(f, ""));
}
TEST(what_the_kernel_refuses_is_told_and_done_when_it_is_tried_again) { play(fail_nth); }
