/* The replacing of a node's key, step by step; agent.c does it with a server that dies in between. */
#include "agent/self.h"
#include "base/fault.h"
#include "base/log.h"
#include "head.h"
#include <string.h>

#define OLD "nk_old00000000000000000000000000000000000000"

struct node_of { struct sim *sim; struct head head; struct os *os; struct heads *heads; struct self *self; int switches; struct arena *mem; };

static void on_switch(void *arg) { ((struct node_of *)arg)->switches++; }

static struct identity kept(struct node_of *n)
{
    struct identity me = { 0 };
    struct err err = { 0 };
    bool found = false;
    CHECK(identity_load(n->os, "/data", n->mem, &me, &found, &err) && found);
    return me;
}

static void node_open(struct node_of *n, const char *next_key)
{
    struct err err = { 0 };
    struct identity me = { .id = 7, .name = "n1", .key = OLD, .next_key = next_key };
    *n = (struct node_of){ .sim = sim_new(3), .mem = arena_new() };
    log_level_set((enum log_level)(LOG_ERROR + 1));
    head_open(&n->head, n->sim);
    snprintf(n->head.node_key, sizeof n->head.node_key, "%s", OLD);
    n->os = sim_machine(n->sim, "n1");
    CHECK(dir_make(n->os, "/data", 0700, &err) && identity_store(n->os, "/data", &me, &err));
    n->heads = heads_new(n->os, NULL, NULL);
    CHECK(heads_add(n->heads, "http://head:80", &err));
    n->self = self_new(n->os, n->heads, "/data", &me, on_switch, n);
}

static void node_close(struct node_of *n)
{
    self_free(n->self);
    heads_free(n->heads);
    head_free(&n->head);
    run_for(n->sim, 5000);
    sim_free(n->sim);
    arena_free(n->mem);
}

TEST(the_next_key_is_on_the_disk_before_the_server_hears_of_it_and_the_old_one_until_it_answered_to_it)
{
    struct node_of n;
    node_open(&n, NULL);
    self_rotate(n.self);
    struct identity me = kept(&n);
    CHECK(text_given(me.next_key) && text_is(me.key, OLD) && n.head.rekeys == 0);
    self_rotate(n.self);                                /* asked again while it is on its way: the same one */
    run_for(n.sim, 1000);
    CHECK(n.head.rekeys == 1 && n.switches == 1 && text_is(n.head.next_key, me.next_key));
    CHECK(text_is(kept(&n).key, OLD));
    self_greeted(n.self);
    struct identity after = kept(&n);
    CHECK(text_is(after.key, me.next_key) && !text_given(after.next_key));
    node_close(&n);
}

TEST(a_key_that_cannot_be_stored_is_not_shown_to_anybody)
{
    for (int nth = 1;; nth++) {
        struct node_of n;
        node_open(&n, NULL);
        fault_arm(nth);
        self_rotate(n.self);
        bool fired = fault_fired();
        fault_arm(0);
        run_for(n.sim, 1000);
        struct identity me = kept(&n);
        CHECK(text_is(me.key, OLD));
        CHECK(n.head.rekeys == 0 || text_is(n.head.next_key, me.next_key));
        self_rotate(n.self);
        run_for(n.sim, 5000);
        CHECK(n.head.rekeys > 0 && text_is(n.head.next_key, kept(&n).next_key));
        node_close(&n);
        if (!fired)
            break;
        CHECK(nth < 50);
    }
}

TEST(of_two_keys_the_next_one_is_tried_first_and_then_the_other)
{
    struct node_of n;
    node_open(&n, "nk_next");
    self_refused(n.self);                               /* the server never heard of it */
    self_greeted(n.self);                               /* and took the old one */
    struct identity me = kept(&n);
    CHECK(text_is(me.key, OLD) && text_is(me.next_key, "nk_next"));
    self_refused(n.self), self_greeted(n.self);         /* the other one is good after all */
    CHECK(text_is(kept(&n).key, "nk_next") && !text_given(kept(&n).next_key));
    self_refused(n.self);                               /* now there is one only: it stays */
    self_greeted(n.self);
    CHECK(text_is(kept(&n).key, "nk_next"));
    node_close(&n);
}

TEST(what_the_cloud_tells_about_its_servers_is_kept)
{
    struct node_of n;
    const char *urls[] = { "http://one:80", "http://two:80" };
    node_open(&n, NULL);
    self_servers(n.self, (struct texts){ urls, 2 });
    CHECK(heads_count(n.heads) == 3 && kept(&n).servers.count == 2 && text_is(kept(&n).servers.at[1], "http://two:80"));
    self_servers(n.self, (struct texts){ urls, 0 });    /* a server that does not know says nothing */
    CHECK(heads_count(n.heads) == 3);
    node_close(&n);
}
