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
