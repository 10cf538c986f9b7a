#include "world.h"
#include "wire/digest.h"

/* Two servers on one loop: `w` is asked, `far` is the one that may write. */
struct two { struct world w; struct control *far; struct api *api; char url[96], data[96]; bool closed; };
static struct { char idem[80], address[46]; int count; } seen;

static bool note(void *arg, struct control *c, struct request *r)
{
    (void)arg, (void)c;
    if (verbs[r->verb].kind != VERB_WRITE)
        return false;
    seen.count++;
    snprintf(seen.idem, sizeof seen.idem, "%s", r->idem ? r->idem : "");
    snprintf(seen.address, sizeof seen.address, "%s", r->from.address);
    str_text(&r->reply, "{\"id\":\"job-1\",\"name\":\"passed\"}");
    r->version = 7;
    return true;
}

static void on_closed(void *arg) { *(bool *)arg = true; }
static bool is_true(void *arg) { return *(bool *)arg; }

static void two_open_of(struct two *t, const char *writer)
{
    struct err err = { 0 };
    world_open(&t->w);
    memset(&seen, 0, sizeof seen);
    t->far = fake_control_new(t->w.os);
    t->far->script = note;
    t->far->writer = writer;
    t->closed = false;
    snprintf(t->data, sizeof t->data, "%s/far", t->w.data);
    struct api_config config = { .address = "127.0.0.1:0", .data = t->data, .version = "1", .on_closed = on_closed, .arg = &t->closed };
    CHECK(dir_make(t->w.os, t->data, 0700, &err) && api_open(t->w.os, t->far, &config, &t->api, &err));
    snprintf(t->url, sizeof t->url, "http://%s", api_address(t->api));
    fake_turn(t->w.control, t->url);
}

static void two_open(struct two *t) { two_open_of(t, NULL); }

static void two_close(struct two *t)
{
    fake_release(t->far);
    if (!t->closed)
        api_close(t->api, 0);
    CHECK(world_until(&t->w, is_true, &t->closed));
    fake_control_free(t->far);
    world_close(&t->w);
}

static void submit(struct got *g, struct two *t)
{
    ask(g, &t->w, "dev", "POST", "/v1/jobs", "application/json", "{\"command\":[\"true\"]}");
}
static void submit_start(struct got *g, struct two *t)
{
    static const struct http_header json[] = { { "Content-Type", "application/json" }, { NULL, NULL } };
    got_start(g, &t->w, "dev", "POST", "/v1/jobs", json, SLICE("{\"command\":[\"true\"]}"));
}

TEST(a_write_goes_on_to_who_writes_and_its_reply_comes_back_as_it_is)
{
    struct two t;
    struct got g;
    two_open(&t);
    submit(&g, &t);
    CHECK(g.status == 201 && got_says(&g, "name", "passed") && text_is(g.etag, "\"7\"") && text_starts(g.location, "/v1/jobs/"));
    CHECK(t.far->asked[VERB_JOB_SUBMIT] == 1 && t.w.control->asked[VERB_JOB_SUBMIT] == 0);
    CHECK(text_is(seen.address, "127.0.0.1") && text_starts(seen.idem, "passed-"));
    got_done(&g);
    ask(&g, &t.w, "dev", "GET", "/v1/jobs", NULL, NULL);
    CHECK(g.status == 200 && t.w.control->asked[VERB_JOB_LIST] == 1 && t.far->asked[VERB_JOB_LIST] == 0);
    got_done(&g);
    ask(&g, &t.w, "nobody", "POST", "/v1/jobs", "application/json", "{\"command\":[\"true\"]}");
    CHECK(g.status == 401 && g.asks[0]);
    got_done(&g);
    two_close(&t);
}

TEST(a_node_is_told_where_to_link)
{
    struct two t;
    struct got g;
    two_open(&t);
    ask(&g, &t.w, "node1", "GET", "/v1/nodes/link", NULL, NULL);
    CHECK(g.status == 421 && got_says(&g, "type", "/problems/not-writer"));
    got_done(&g);
    ask(&g, &t.w, "dev", "GET", "/v1/nodes/link", NULL, NULL);
    CHECK(g.status == 403);
    got_done(&g);
    two_close(&t);
}

TEST(while_nobody_writes_a_write_waits_and_is_then_done_once)
{
    struct two t;
    struct got g;
    two_open(&t);
    fake_turn(t.w.control, "");
    submit_start(&g, &t);
    world_wait(&t.w, 150);
    CHECK(!g.ended && seen.count == 0);
    fake_turn(t.w.control, t.url);
    CHECK(got_wait(&g, &t.w) && g.status == 201 && seen.count == 1);
    got_done(&g);
    fake_turn(t.w.control, "");
    submit_start(&g, &t);
    world_wait(&t.w, 150);
    fake_turn(t.w.control, NULL);                       /* it is this one now */
    CHECK(got_wait(&g, &t.w) && g.status == 201 && seen.count == 1 && t.w.control->asked[VERB_JOB_SUBMIT] == 1);
    got_done(&g);
    two_close(&t);
}

TEST(what_was_passed_on_by_mistake_is_not_passed_on_again)
{
    struct two t;
    struct got g;
    two_open(&t);
    fake_turn(t.far, t.w.url);                          /* each thinks that the other writes */
    submit_start(&g, &t);
    world_wait(&t.w, 250);
    CHECK(!g.ended && seen.count == 0);
    fake_turn(t.far, NULL);
    CHECK(got_wait(&g, &t.w) && g.status == 201 && seen.count == 1);
    got_done(&g);
    two_close(&t);
}

TEST(a_write_that_nobody_takes_is_refused_with_a_time_to_come_again)
{
    struct two t;
    struct got g;
    two_open(&t);
    fake_turn(t.w.control, "http://127.0.0.1:1");       /* nobody listens there */
    submit_start(&g, &t);
    CHECK(got_wait(&g, &t.w) && g.status == 503 && g.retry[0] && seen.count == 0);
    got_done(&g);
    two_close(&t);
}

/* The one that writes is paused with the request in its hands; another takes over. */
TEST(a_write_that_a_paused_server_holds_is_asked_of_the_next_with_the_same_key)
{
    struct two t;
    struct got g;
    two_open(&t);
    t.far->hold = true;
    submit_start(&g, &t);
    world_wait(&t.w, 150);
    CHECK(!g.ended && t.far->held_count == 1);
    char key[80];
    snprintf(key, sizeof key, "%s", t.far->held[0]->idem);
    t.w.control->script = note;
    fake_turn(t.w.control, NULL);
    CHECK(got_wait(&g, &t.w) && g.status == 201 && seen.count == 1);
    CHECK(text_starts(key, "passed-"));
    got_done(&g);
    two_close(&t);
}

TEST(an_address_counts_only_with_the_servers_own_seal)
{
    struct two t;
    struct got g;
    char mac[DIGEST_HEX], value[128];
    two_open(&t);
    fake_turn(t.w.control, NULL);
    t.w.control->script = note;
    control_mac(t.w.control, "9.9.9.9\nPOST\n/v1/jobs\n", mac);
    for (int forged = 0; forged < 2; forged++) {
        if (forged)
            mac[0] = mac[0] == '0' ? '1' : '0';
        snprintf(value, sizeof value, "9.9.9.9 %s", mac);
        struct http_header more[] = { { "Content-Type", "application/json" }, { "Arcus-Passed", value }, { NULL, NULL } };
        got_start(&g, &t.w, "dev", "POST", "/v1/jobs", more, SLICE("{\"command\":[\"true\"]}"));
        CHECK(got_wait(&g, &t.w) && g.status == 201);
        CHECK(text_is(seen.address, forged ? "127.0.0.1" : "9.9.9.9"));
        got_done(&g);
    }
    two_close(&t);
}

TEST(a_server_that_does_not_write_any_more_passes_on_what_its_door_refuses)
{
    struct two t;
    struct got g;
    two_open(&t);
    fake_turn(t.w.control, NULL);
    t.w.control->hold = true;
    submit_start(&g, &t);
    world_wait(&t.w, 100);
    CHECK(t.w.control->held_count == 1);
    t.w.control->lost = true;
    fake_turn(t.w.control, t.url);
    fake_release(t.w.control);
    CHECK(got_wait(&g, &t.w) && g.status == 201 && seen.count == 1);
    got_done(&g);
    two_close(&t);
}

TEST(an_upload_waits_for_somebody_to_write_too)
{
    struct two t;
    struct got g;
    static const struct http_header none[] = { { NULL, NULL } };
    two_open(&t);
    fake_turn(t.w.control, "");
    got_start(&g, &t.w, "dev", "PUT", "/v1/blobs/sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", none, SLICE("abc"));
    world_wait(&t.w, 150);
    CHECK(!g.ended && t.far->asked[VERB_BLOB_PUT] == 0);
    fake_turn(t.w.control, t.url);
    CHECK(got_wait(&g, &t.w) && g.status == 201 && t.far->asked[VERB_BLOB_PUT] == 1);
    got_done(&g);
    fake_turn(t.w.control, "");
    got_start(&g, &t.w, "dev", "PUT", "/v1/blobs/sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", none, SLICE("abc"));
    world_wait(&t.w, 150);
    fake_turn(t.w.control, NULL);       /* what has come of it came for another */
    CHECK(got_wait(&g, &t.w) && g.status == 503 && g.retry[0]);
    got_done(&g);
    two_close(&t);
}

TEST(a_server_that_leaves_passes_on_what_it_was_asked_before)
{
    struct two t;
    struct got g;
    two_open(&t);
    fake_turn(t.w.control, "");
    api_wind_down(t.w.api);
    submit_start(&g, &t);
    world_wait(&t.w, 150);
    api_close(t.w.api, 5000);
    world_wait(&t.w, 150);
    CHECK(!g.ended && seen.count == 0);
    fake_turn(t.w.control, t.url);
    CHECK(got_wait(&g, &t.w) && g.status == 201 && seen.count == 1);
    got_done(&g);
    two_close(&t);
}

static void told(void *arg, const char *json) { snprintf(arg, 200, "%s", json ? json : "none"); }
static bool was_told(void *arg) { return *(char *)arg != 0; }
static bool say_who(void *arg, struct control *c, struct request *r)
{
    (void)arg, (void)c;
    str_printf(&r->reply, "{\"token\":\"of %s\"}", r->who.name);
    return r->ok = true;
}

TEST(a_server_is_given_a_token_for_its_own_agent_and_nobody_else_is_without_a_key)
{
    struct two t;
    struct got g;
    char answer[200] = "", mac[DIGEST_HEX], text[120], value[120];
    long long now = (long long)os_wall_ms((two_open(&t), t.w.os));
    t.far->script = say_who;
    CHECK(api_ask_token(t.w.api, SLICE("{}"), told, answer) && !api_ask_token(t.w.api, SLICE("{}"), told, answer));
    CHECK(world_until(&t.w, was_told, answer) && strstr(answer, "of arcus up"));
    for (int old = 0; old < 3; old++) {         /* a good seal, one that is an hour old, one that is forged */
        snprintf(text, sizeof text, "self %lld\nPOST\n/v1/nodes/tokens\n", now - (old == 1) * 3600 * 1000);
        control_mac(t.w.control, text, mac);
        mac[5] = old == 2 ? mac[5] ^ 1 : mac[5];
        snprintf(value, sizeof value, "%lld %s", now - (old == 1) * 3600 * 1000, mac);
        struct http_header more[] = { { "Content-Type", "application/json" }, { "Arcus-Self", value }, { NULL, NULL } };
        got_start(&g, &t.w, NULL, "POST", "/v1/nodes/tokens", more, SLICE("{}"));
        CHECK(got_wait(&g, &t.w) && g.status == (old ? 401 : 201));
        got_done(&g);
    }
    fake_turn(t.w.control, "");
    CHECK(!api_ask_token(t.w.api, SLICE("{}"), told, answer));
    two_close(&t);
}

static bool far_usurps(void *arg) { return ((struct two *)arg)->far->usurped > 0; }

/* Nobody came to it since: it may be the one that is cut off. */
TEST(who_is_out_of_reach_is_usurped_for_those_who_came_and_for_nobody_else)
{
    static const char dead[] = "http://127.0.0.1:1";
    struct two t;
    struct got g;
    struct err err = { 0 };
    two_open_of(&t, dead);
    struct http_client *near = t.w.client;
    CHECK(http_client_new(t.w.os, t.url, NULL, NULL, NULL, &t.w.client, &err));
    fake_turn(t.far, dead);
    world_wait(&t.w, 1200);
    CHECK(t.far->usurped == 0);
    submit_start(&g, &t);
    CHECK(world_until(&t.w, far_usurps, &t) && t.far->usurped == t.far->usurped_idle);      /* only from one that writes nothing: who came is on this machine */
    fake_turn(t.far, NULL);
    CHECK(got_wait(&g, &t.w) && g.status == 201);
    fake_turn(t.far, dead);
    t.far->usurped = 0;
    world_wait(&t.w, 1200);
    CHECK(t.far->usurped == 0);
    got_done(&g);
    http_client_free(t.w.client);
    t.w.client = near;
    two_close(&t);
}
