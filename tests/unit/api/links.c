#include "world.h"
#include "nodes.h"

TEST(a_node_says_hello_and_gets_all_then_what_changes)
{
    struct world w;
    struct talk t;
    struct straw s = { .generation = 5 };
    world_open(&w);
    node_link(&t, &w, &s, "node1");
    CHECK(s.hellos == 1 && s.hello_node == fake_node(1) && s.next == 7);
    CHECK(talk_has(&t, "\"full\":true"));
    push(&w, fake_node(1), 6);
    CHECK(talk_has(&t, "\"generation\":6"));
    push(&w, fake_node(2), 7);                              /* another's, who is not here */
    say(&t, "{\"kind\":\"report\",\"generation\":6,\"beat\":3,\"items\":[]}");
    CHECK(talk_has(&t, "\"kept\":41") && s.reports == 1);
    CHECK(!strstr(t.got.at, "\"generation\":7"));
    talk_done(&t);
    world_close(&w);
}

TEST(what_is_pushed_between_a_hello_and_its_answer_follows_it_if_it_is_newer)
{
    struct world w;
    struct talk t;
    struct straw s = { .generation = 5 };
    world_open(&w);
    w.control->script = straw_answer;
    w.control->arg = &s;
    talk_start(&t, &w, "node1", "/v1/nodes/link");
    CHECK(talk_open(&t));
    push(&w, fake_node(1), 3); /* before its hello: the hello gets all */
    w.control->hold = true;
    say(&t, HELLO);
    CHECK(world_until(&w, something_held, w.control));
    push(&w, fake_node(1), 4);
    push(&w, fake_node(1), 6);
    world_wait(&w, 10);
    CHECK(t.messages == 0);
    fake_release(w.control);
    CHECK(talk_has(&t, "\"generation\":6") && t.messages == 2);
    const char *full = strstr(t.got.at, "\"full\":true"),
               *later = strstr(t.got.at, "\"generation\":6");
    CHECK(full && later && full < later && !strstr(t.got.at, "\"generation\":4")
          && !strstr(t.got.at, "\"generation\":3"));
    talk_done(&t);
    world_close(&w);
}

TEST(a_node_that_tells_its_inventory_again_is_reached_meanwhile)
{
    struct world w;
    struct talk t;
    struct straw s = { .generation = 5 };
    struct open_stream o = { .kind = "open", .stream = "w0rd", .what = "exec" };
    struct err err = { 0 };
    world_open(&w);
    w.control->script = straw_answer;
    w.control->arg = &s;
    talk_start(&t, &w, "node1", "/v1/nodes/link");
    CHECK(talk_open(&t));
    w.control->hold = true;
    say(&t, HELLO);
    CHECK(world_until(&w, something_held, w.control));
    CHECK(!links_open_stream(w.api, fake_node(1), &o, &err) && err.rc == RC_UNAVAILABLE);
    fake_release(w.control);
    CHECK(talk_has(&t, "\"full\":true"));
    w.control->hold = true;
    say(&t, HELLO);
    CHECK(world_until(&w, something_held, w.control));
    CHECK(links_open_stream(w.api, fake_node(1), &o, &err));
    CHECK(talk_has(&t, "w0rd"));
    fake_release(w.control);
    talk_done(&t);
    world_close(&w);
}

TEST(a_newer_link_of_a_node_replaces_the_older)
{
    struct world w;
    struct talk old, new;
    struct straw s = { .generation = 5 };
    world_open(&w);
    node_link(&old, &w, &s, "node1");
    node_link(&new, &w, &s, "node1");
    CHECK(talk_closed(&old) && old.why.rc == RC_CONFLICT);
    push(&w, fake_node(1), 9);
    CHECK(talk_has(&new, "\"generation\":9") && !new.closed);
    talk_done(&old);
    talk_done(&new);
    world_close(&w);
}

/* A node that lost its power may give a number again that it had given to what is still on its way. */
TEST(what_a_replaced_link_still_says_counts_for_nothing)
{
    static const char *const report = "{\"kind\":\"report\",\"generation\":6,\"beat\":3,\"items\":[]}";
    struct world w;
    struct talk old, new;
    struct straw s = { .generation = 5 };
    world_open(&w);
    node_link(&old, &w, &s, "node1");
    ws_pause(old.ws, true);             /* it does not hear that it was replaced */
    node_link(&new, &w, &s, "node1");
    say(&old, report);
    say(&new, report);
    CHECK(talk_has(&new, "\"kept\":41"));
    world_wait(&w, 20);
    CHECK(s.reports == 1 && s.hellos == 2);
    ws_pause(old.ws, false);
    CHECK(talk_closed(&old) && old.why.rc == RC_CONFLICT);
    talk_done(&old);
    talk_done(&new);
    world_close(&w);
}

TEST(what_is_longer_than_a_message_may_be_goes_in_parts)
{
    struct world w;
    struct talk t;
    struct straw s = { .generation = 5 };
    AUTO(str_done) struct str text = { 0 };
    world_open(&w);
    node_link(&t, &w, &s, "node1");
    int before = t.messages;
    str_text(&text, "{\"kind\":\"desired\",\"generation\":6,\"full\":false,\"pad\":\"");
    while (text.len < (5u << 20))
        str_text(&text, "\u00e9\u20ac\U0001f680"); /* a part must not end a text inside a letter */
    str_text(&text, "the end\"}");
    struct node_push p = { fake_node(1), { text.at, text.len } };
    str_clear(&t.got);
    fake_commit(w.control, &(struct commit){ .pushes = &p, .push_count = 1 });
    CHECK(talk_has(&t, "the end"));
    CHECK(t.messages > before + 5 && !t.closed);
    size_t n = 0;
    for (size_t i = 0; i < t.got.len; i++) /* each message is ended by a line feed there */
        if (t.got.at[i] != '\n')
            t.got.at[n++] = t.got.at[i];
    CHECK(n == text.len && memcmp(t.got.at, text.at, n) == 0);
    talk_done(&t);
    world_close(&w);
}

TEST(only_nodes_have_links)
{
    static const char *const others[] = { "dev", "view", "admin", "op", "nobody" };
    struct world w;
    struct talk t;
    struct got g;
    world_open(&w);
    for (size_t i = 0; i < COUNT(others); i++) {
        talk_start(&t, &w, others[i], "/v1/nodes/link");
        CHECK(!talk_open(&t) && (t.why.rc == RC_DENIED || t.why.rc == RC_UNAUTHENTICATED));
        talk_done(&t);
    }
    ask(&g, &w, "node1", "GET", "/v1/nodes/link", NULL, NULL);
    CHECK(g.status == 426);
    got_done(&g);
    world_close(&w);
}

TEST(a_message_that_is_not_one_closes_the_link_with_the_reason)
{
    static const struct { const char *text, *why; } bad[] = {
        { "{", "JSON" }, { "{\"kind\":\"report\"}", "first message" }, { "{\"kind\":\"sing\"}", "sing" }, { "[]", "kind" },
        { "{\"kind\":\"hello\",\"nxt\":1}", "info" },
    };
    struct world w;
    struct talk t;
    world_open(&w);
    for (size_t i = 0; i < COUNT(bad); i++) {
        talk_start(&t, &w, "node1", "/v1/nodes/link");
        CHECK(talk_open(&t));
        say(&t, bad[i].text);
        CHECK(talk_closed(&t) && t.why.rc == RC_BAD_INPUT && strstr(t.why.text, bad[i].why));
        talk_done(&t);
    }
    CHECK(!w.control->asked[VERB_NODE_HELLO] && !w.control->asked[VERB_NODE_REPORT]);
    world_close(&w);
}

TEST(a_node_that_is_removed_loses_its_link)
{
    struct world w;
    struct talk t;
    struct straw s = { .generation = 5 };
    world_open(&w);
    node_link(&t, &w, &s, "node1");
    w.control->disabled = "node1";
    struct event e = { .seq = 3, .kind = "node.removed", .data = "{}" };
    fake_commit(w.control, &(struct commit){ .events = &e, .event_count = 1 });
    CHECK(talk_closed(&t) && t.why.rc == RC_UNAUTHENTICATED);
    talk_done(&t);
    world_close(&w);
}

TEST(a_link_that_goes_while_its_messages_are_at_the_door_leaves_nothing)
{
    struct world w;
    struct talk t;
    struct straw s = { .generation = 5 };
    world_open(&w);
    node_link(&t, &w, &s, "node1");
    w.control->hold = true;
    for (int i = 0; i < 3; i++)
        say(&t, "{\"kind\":\"report\",\"generation\":6,\"beat\":3,\"items\":[]}");
    CHECK(world_until(&w, something_held, w.control));
    world_wait(&w, 10);
    talk_done(&t);
    world_wait(&w, 20);
    CHECK(w.control->held_count == 3 && w.api->users == 1);
    fake_release(w.control);
    world_close(&w);
}

TEST(what_a_newer_agent_says_besides_is_passed_over_and_what_people_say_is_not)
{
    struct world w;
    struct talk t;
    struct got g;
    struct straw s = { .generation = 5 };
    world_open(&w);
    node_link(&t, &w, &s, "node1");
    say(&t, "{\"later\":{\"x\":1},\"kind\":\"report\",\"generation\":6,\"beat\":3,\"items\":[{\"n\":7,\"attempt\":\"att-0000000000001\",\"news\":\"started\","
            "\"at_ms\":1,\"later\":[]}]}");
    CHECK(talk_has(&t, "\"kept\":41") && s.reports == 1 && !t.closed);
    talk_done(&t);
    ask(&g, &w, NULL, "POST", "/v1/nodes/join", "application/json", "{\"token\":\"jt_x\",\"name\":\"n\",\"key\":\"nk_x\",\"later\":1}");
    CHECK(!strstr(g.body.at, "later"));
    got_done(&g);
    ask(&g, &w, "dev", "POST", "/v1/jobs", "application/json", "{\"command\":[\"true\"],\"later\":1}");
    CHECK(g.status == 400 && strstr(g.body.at, "later"));
    got_done(&g);
    world_close(&w);
}
