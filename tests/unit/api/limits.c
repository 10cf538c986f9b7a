#include "api/limits.h"
#include "os/sim.h"
#include "tap.h"
#include <stdio.h>
#include <stdlib.h>

struct world { struct sim *sim; struct limits *limits; };

static void world_open(struct world *w, struct api_limits config)
{
    w->sim = sim_new(1);
    sim_until(w->sim, sim_now_ms(w->sim) + 1000, NULL, NULL);
    w->limits = limits_new(sim_machine(w->sim, "a"), &config);
}

static void world_close(struct world *w)
{
    limits_free(w->limits);
    sim_free(w->sim);
}

static struct credential credential(const char *hash, const char *address)
{
    struct credential c = { 0 };
    snprintf(c.hash, sizeof c.hash, "%s", hash);
    snprintf(c.address, sizeof c.address, "%s", address);
    return c;
}

static void learn(struct world *w, const struct credential *c, int64_t project)
{
    struct caller who = { .kind = PRINCIPAL_USER, .id = 3, .project = project, .roles = ROLE_DEVELOPER };
    limits_learn(w->limits, c, false, true, RC_OK, &who);
}

static int entered(struct world *w, const struct credential *c, int tries)
{
    struct standing who;
    struct err err;
    int n = 0;
    for (int i = 0; i < tries; i++)
        n += limits_enter(w->limits, c, &who, &err);
    return n;
}

TEST(a_key_may_ask_so_often_and_no_more_until_time_has_passed)
{
    struct world w;
    world_open(&w, (struct api_limits){ .key_rate = 100 });
    struct credential c = credential("k1", "10.0.0.1"), other = credential("k2", "10.0.0.1");
    learn(&w, &c, 7);
    learn(&w, &other, 7);
    CHECK(entered(&w, &c, 1000) == 200);
    CHECK(entered(&w, &other, 10) == 10);
    sim_until(w.sim, sim_now_ms(w.sim) + 500, NULL, NULL);
    CHECK(entered(&w, &c, 1000) == 50);
    CHECK(limits_count(w.limits, REFUSED_KEY) == 800 + 950);
    world_close(&w);
}

TEST(without_a_rate_there_is_no_limit)
{
    struct world w;
    struct err err;
    world_open(&w, (struct api_limits){ 0 });
    struct credential c = credential("k1", "10.0.0.1"), bad = credential("bad", "10.0.0.1");
    learn(&w, &c, 7);
    CHECK(entered(&w, &c, 100000) == 100000);
    for (int i = 0; i < 1000; i++)
        limits_learn(w.limits, &bad, false, false, RC_UNAUTHENTICATED, &(struct caller){ 0 });
    CHECK(entered(&w, &bad, 10) == 10);
    CHECK(limits_address(w.limits, "10.0.0.1", &err));
    world_close(&w);
}

TEST(an_address_may_ask_so_often_whoever_asks)
{
    struct world w;
    struct err err;
    int n = 0;
    world_open(&w, (struct api_limits){ .address_rate = 10 });
    for (int i = 0; i < 100; i++)
        n += limits_address(w.limits, "10.0.0.1", &err);
    CHECK(n == 20 && err.rc == RC_TOO_MANY);
    CHECK(limits_address(w.limits, "10.0.0.2", &err));
    for (int i = 0; i < 100; i++)
        CHECK(limits_address(w.limits, "unix", &err));
    world_close(&w);
}

TEST(a_network_of_ipv6_is_one_address)
{
    struct world w;
    struct err err;
    int n = 0;
    world_open(&w, (struct api_limits){ .address_rate = 10 });
    for (int i = 0; i < 100; i++) {
        char address[64];
        snprintf(address, sizeof address, "2001:db8:1:2::%x", i + 1);
        n += limits_address(w.limits, address, &err);
    }
    CHECK(n == 20);
    CHECK(limits_address(w.limits, "2001:db8:1:3::1", &err));
    world_close(&w);
}

TEST(bad_keys_use_up_the_patience_with_their_address_but_good_ones_go_on)
{
    struct world w;
    world_open(&w, (struct api_limits){ .failure_rate = 10 });
    struct credential good = credential("good", "10.0.0.1");
    learn(&w, &good, 7);
    int let_in = 0;
    for (int i = 0; i < 1000; i++) {
        char hash[32];
        snprintf(hash, sizeof hash, "guess %d", i);
        struct credential c = credential(hash, "10.0.0.1");
        if (entered(&w, &c, 1) == 0)
            continue;
        let_in++;
        limits_learn(w.limits, &c, false, false, RC_UNAUTHENTICATED, &(struct caller){ 0 });
    }
    CHECK(let_in == 200);
    CHECK(entered(&w, &good, 10) == 10);
    struct credential none = credential("", "10.0.0.1"), elsewhere = credential("new", "10.0.0.9");
    CHECK(entered(&w, &none, 1) == 0);
    CHECK(entered(&w, &elsewhere, 1) == 1);
    sim_until(w.sim, sim_now_ms(w.sim) + 1000, NULL, NULL);
    CHECK(entered(&w, &none, 1) == 1);
    world_close(&w);
}

TEST(wrong_passwords_count_like_bad_keys)
{
    struct world w;
    world_open(&w, (struct api_limits){ .failure_rate = 1 });
    struct credential c = credential("", "10.0.0.1");
    for (int i = 0; i < 30; i++)
        limits_learn(w.limits, &c, true, false, i % 2 ? RC_DENIED : RC_UNAUTHENTICATED, &(struct caller){ 0 });
    CHECK(entered(&w, &c, 1) == 0);
    world_close(&w);
}

TEST(what_a_caller_may_not_do_is_no_failed_attempt)
{
    struct world w;
    world_open(&w, (struct api_limits){ .failure_rate = 1 });
    struct credential c = credential("viewer", "10.0.0.1"), unknown = credential("other", "10.0.0.1");
    learn(&w, &c, 7);
    for (int i = 0; i < 1000; i++)
        limits_learn(w.limits, &c, false, false, i % 2 ? RC_DENIED : RC_NOT_FOUND, &(struct caller){ 0 });
    CHECK(entered(&w, &c, 10) == 10 && entered(&w, &unknown, 10) == 10);
    world_close(&w);
}

TEST(standing_is_by_project_and_lost_with_the_key)
{
    struct world w;
    struct standing a, b, op;
    world_open(&w, api_limits_default);
    struct credential one = credential("k1", "10.0.0.1"), two = credential("k2", "10.0.0.2"), chief = credential("k3", "10.0.0.3");
    limits_standing(w.limits, &one, &a);
    CHECK(a.rank == RANK_STRANGER);
    learn(&w, &one, 7);
    learn(&w, &two, 7);
    limits_standing(w.limits, &one, &a);
    limits_standing(w.limits, &two, &b);
    CHECK(a.rank == RANK_TENANT && b.rank == RANK_TENANT && a.id == b.id);
    limits_learn(w.limits, &chief, false, true, RC_OK, &(struct caller){ .kind = PRINCIPAL_USER, .id = 9, .project = 7, .roles = ROLE_OPERATOR });
    limits_standing(w.limits, &chief, &op);
    CHECK(op.rank == RANK_PLATFORM);
    limits_learn(w.limits, &one, false, false, RC_UNAUTHENTICATED, &(struct caller){ 0 });
    limits_standing(w.limits, &one, &a);
    CHECK(a.rank == RANK_STRANGER);
    world_close(&w);
}

/* The tables do not grow, and one who is active is not pushed out by many who come once. */
TEST(a_flood_of_addresses_does_not_make_anybody_forgotten_who_is_there)
{
    struct world w;
    struct err err;
    world_open(&w, (struct api_limits){ .address_rate = 10 });
    int n = 0;
    for (int i = 0; i < 100000; i++) {
        char address[64];
        snprintf(address, sizeof address, "10.%d.%d.%d", i >> 16, (i >> 8) & 255, i & 255);
        (void)!limits_address(w.limits, address, &err);
        if (i % 1000 == 0) {
            sim_until(w.sim, sim_now_ms(w.sim) + 1, NULL, NULL);
            n += limits_address(w.limits, "192.0.2.1", &err);
        }
    }
    CHECK(n <= 22);         /* 20 at once, and one more each tenth of a second */
    world_close(&w);
}
