#include "net/http_internal.h"
#include "world.h"

static bool is_held(void *arg) { return ((struct control *)arg)->held_count > 0; }
static bool nobody(void *arg) { return ((struct api *)arg)->users == 0; }

TEST(a_client_that_leaves_while_the_door_works_takes_nothing_with_it)
{
    struct world w;
    struct got g;
    world_open(&w);
    w.control->hold = true;
    struct http_header more[] = { { "Content-Type", "application/json" }, { NULL, NULL } };
    got_start(&g, &w, "dev", "POST", "/v1/jobs", more,
              SLICE("{\"command\":[\"a\"],\"name\":\"still-here\"}"));
    CHECK(world_until(&w, is_held, w.control));
    got_done(&g);
    world_wait(&w, 20); /* the server has seen that the client is gone */
    struct request *r = w.control->held[0];
    CHECK(text_is(((const struct job_spec *)r->body)->name, "still-here"));
    CHECK(w.api->users == 1);
    fake_release(w.control);
    CHECK(world_until(&w, nobody, w.api));
    world_close(&w);
}

TEST(closing_waits_for_the_door)
{
    struct world w;
    struct got g;
    world_open(&w);
    w.control->hold = true;
    got_start(&g, &w, "dev", "GET", "/v1/jobs", NULL, (struct slice){ 0 });
    CHECK(world_until(&w, is_held, w.control));
    api_close(w.api, 0);
    CHECK(got_wait(&g, &w) && g.err.rc != RC_OK);
    world_wait(&w, 10);
    CHECK(!w.closed);
    world_close(&w); /* releases what is held, and then it is closed */
    CHECK(w.closed);
    got_done(&g);
}

TEST(request_ids_differ)
{
    struct world w;
    char a[REQUEST_ID], b[REQUEST_ID];
    world_open(&w);
    request_id(w.api, a);
    request_id(w.api, b);
    CHECK(strlen(a) == 20 && !text_is(a, b));
    world_close(&w);
}

/* Nothing happens when a key expires: only time passes. */
TEST(what_flows_is_cut_when_its_key_has_expired)
{
    struct world w;
    struct got g, other;
    world_open(&w);
    got_start(&g, &w, "dev", "GET", "/v1/events?follow=true", NULL, (struct slice){ 0 });
    got_start(&other, &w, "view", "GET", "/v1/events?follow=true", NULL, (struct slice){ 0 });
    visits_watch(w.api, 20);
    world_wait(&w, 100);
    CHECK(!g.ended && !other.ended);
    w.control->disabled = "dev";
    CHECK(got_wait(&g, &w) && g.err.rc != RC_OK);
    CHECK(!other.ended);
    got_done(&g);
    got_done(&other);
    world_close(&w);
}

static void limit(struct world *w, struct api_limits rates)
{
    limits_free(w->api->limits);
    w->api->limits = limits_new(w->os, &rates);
}

TEST(who_asks_too_often_is_told_429_and_when_to_come_again)
{
    struct world w;
    struct got g;
    world_open(&w);
    limit(&w, (struct api_limits){ .key_rate = 1 });
    int status[60];
    for (int i = 0; i < 60; i++) {
        ask(&g, &w, "dev", "GET", "/v1/whoami", NULL, NULL);
        status[i] = g.status;
        CHECK(g.status == 200 || (g.status == 429 && text_is(g.retry, "1") && got_says(&g, "type", "/problems/too_many")));
        got_done(&g);
        if (status[i] == 429)
            break;
    }
    CHECK(status[0] == 200 && status[1] == 200);
    ask(&g, &w, "other", "GET", "/v1/whoami", NULL, NULL);
    CHECK(g.status == 200);
    got_done(&g);
    CHECK(limits_count(w.api->limits, REFUSED_KEY) >= 1);
    world_close(&w);
}

TEST(bad_keys_do_not_reach_the_door_for_long_and_good_ones_still_do)
{
    struct world w;
    struct got g;
    world_open(&w);
    limit(&w, (struct api_limits){ .failure_rate = 1 });
    ask(&g, &w, "dev", "GET", "/v1/whoami", NULL, NULL);
    CHECK(g.status == 200);
    got_done(&g);
    int refused = 0, before;
    for (int i = 0; i < 100 && !refused; i++) {
        before = w.control->asked[VERB_WHOAMI];
        ask(&g, &w, "a guess", "GET", "/v1/whoami", NULL, NULL);
        CHECK(g.status == 401 || g.status == 429);
        refused = g.status == 429;
        got_done(&g);
    }
    CHECK(refused && w.control->asked[VERB_WHOAMI] == before);
    ask(&g, &w, "dev", "GET", "/v1/whoami", NULL, NULL);
    CHECK(g.status == 200);
    got_done(&g);
    world_close(&w);
}

/* Each 429 and 503 is counted once, by whatever it was refused. */
TEST(whoever_is_told_to_come_again_is_counted_once)
{
    struct world w;
    struct got g;
    struct http_header more[] = { { "Content-Type", "application/json" }, { NULL, NULL } };
    world_open(&w);
    w.api->http->limits.bodies_bytes = 10;
    got_start(&g, &w, "dev", "POST", "/v1/jobs", more, SLICE("{\"command\":[\"a\"],\"name\":\"a\"}"));
    CHECK(got_wait(&g, &w) && g.status == 503 && text_is(g.retry, "1") && got_says(&g, "type", "/problems/unavailable"));
    got_done(&g);
    CHECK(limits_count(w.api->limits, REFUSED_ROOM) == 1);
    w.api->http->limits = http_limits_default;
    limit(&w, (struct api_limits){ .address_rate = 1 });
    int refused = 0;
    for (int i = 0; i < 60 && !refused; i++) {
        ask(&g, &w, "dev", "GET", "/v1/whoami", NULL, NULL);
        CHECK(g.status == 200 || (g.status == 429 && text_is(g.retry, "1")));
        refused += g.status == 429;
        got_done(&g);
    }
    CHECK(refused == 1);
    static const uint64_t want[REFUSALS] = { [REFUSED_ADDRESS] = 1 };
    for (int i = 0; i < REFUSALS; i++)
        CHECK(limits_count(w.api->limits, (enum refusal)i) == want[i]);
    world_close(&w);
}

static bool seven_came(void *arg) { return ((struct world *)arg)->api->users == 7; }
static bool three_left(void *arg) { return ((struct world *)arg)->api->users == 4; }

/* Passwords: a few at a time, and one whose client has left is never checked. */
TEST(who_leaves_before_his_turn_never_comes_to_the_door)
{
    struct world w;
    struct got g[7];
    struct http_header more[] = { { "Content-Type", "application/json" }, { NULL, NULL } };
    world_open(&w);
    w.control->hold = true;
    for (int i = 0; i < 7; i++)
        got_start(&g[i], &w, "", "POST", "/v1/login", more, SLICE("{\"user\":\"a\",\"password\":\"12345678\"}"));
    CHECK(world_until(&w, seven_came, &w));
    CHECK(w.control->held_count == 4);
    int asked = w.control->asked[VERB_LOGIN];
    for (int i = 0; i < 7; i++)
        got_done(&g[i]);
    CHECK(world_until(&w, three_left, &w));
    fake_release(w.control);
    CHECK(world_until(&w, nobody, w.api));
    CHECK(w.control->asked[VERB_LOGIN] == asked);
    world_close(&w);
}
