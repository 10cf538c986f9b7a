#include "agent/heads.h"
#include "os/sim.h"
#include "tap.h"

static struct texts list(const char **urls, size_t n) { return (struct texts){ urls, n }; }

TEST(addresses_are_taken_in_turn_and_those_that_the_cloud_tells_come_and_go)
{
    AUTO(sim_free) struct sim *sim = sim_new(1);
    struct err err = { 0 };
    struct heads *h = heads_new(sim_machine(sim, "n1"), NULL, NULL);
    const char *told[] = { "http://a:80", "http://c:80", "http://d:80" };
    CHECK(!heads_client(h) && !*heads_url(h));
    CHECK(heads_add(h, "http://a:80, http://b:80,", &err) && heads_count(h) == 2 && text_is(heads_url(h), "http://a:80"));
    CHECK(!heads_add(h, "ftp://x", &err));
    CHECK(heads_learn(h, list(told, 3)) && heads_count(h) == 4 && !heads_learn(h, list(told, 3)));
    static const char *const order[] = { "http://b:80", "http://c:80", "http://d:80", "http://a:80" };
    for (size_t i = 0; i < COUNT(order); i++) {
        heads_next(h);
        CHECK(text_is(heads_url(h), order[i]));
    }
    CHECK(heads_prefer(h, "http://d:80") && text_is(heads_url(h), "http://d:80"));
    CHECK(heads_learn(h, list(told, 2)) && heads_count(h) == 4 && text_is(heads_url(h), "http://d:80")); /* the one in use stays until it is left */
    heads_next(h);
    CHECK(heads_count(h) == 3 && text_is(heads_url(h), "http://a:80"));
    CHECK(heads_prefer(h, "http://e:80") && heads_count(h) == 4); /* where a server sends us */
    heads_next(h);
    CHECK(heads_count(h) == 3);
    CHECK(heads_learn(h, list(told, 0)) && heads_count(h) == 2); /* what was given stays */
    heads_free(h);
}

TEST(nobody_can_make_an_agent_show_its_key_to_a_stranger_on_its_machine_or_in_the_open)
{
    AUTO(sim_free) struct sim *sim = sim_new(1);
    struct err err = { 0 };
    const char *told[] = { "http://127.0.0.1:80", "https://127.0.0.1:80", "unix:/tmp/x", "http://localhost:80", "nonsense" };
    struct heads *h = heads_new(sim_machine(sim, "n1"), NULL, NULL);
    CHECK(heads_add(h, "http://a:80", &err));
    CHECK(!heads_learn(h, list(told, COUNT(told))) && heads_count(h) == 1);
    for (size_t i = 0; i < COUNT(told); i++)
        CHECK(!heads_prefer(h, told[i]) && text_is(heads_url(h), "http://a:80"));
    heads_free(h);
    h = heads_new(sim_machine(sim, "n1"), NULL, NULL);
    CHECK(heads_add(h, "http://127.0.0.1:7", &err) && heads_learn(h, list(told, 1)) && heads_count(h) == 2); /* a cloud on one machine */
    heads_free(h);
    struct os *os = os_real_new(&err);
    const char *open[] = { "http://a:80", "http://10.0.0.1:80" };
    h = heads_new(os, NULL, NULL);
    CHECK(heads_add(h, "https://a:80", &err) && !heads_add(h, "http://b:80", &err) && !heads_learn(h, list(open, 2)) && heads_count(h) == 1);
    heads_free(h);
    os_free(os);
}
