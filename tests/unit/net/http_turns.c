#include "net/http_internal.h"
#include "world.h"
#include <stdio.h>

#define GET(path) "GET " path " HTTP/1.1\r\nHost: h\r\n\r\n"

struct many { struct raw *r; int count, each; };

static bool all_answered(void *arg)
{
    struct many *m = arg;
    for (int i = 0; i < m->count; i++)
        if (raw_count(&m->r[i], "HTTP/1.1 200 ") < m->each)
            return false;
    return true;
}

static void flood(struct raw *r, const char *request, int times)
{
    AUTO(str_done) struct str all = { 0 };
    for (int i = 0; i < times; i++)
        str_text(&all, request);
    raw_say(r, all.at);
}

/* Two groups, both pipelining as much as they can: everything is held back now and then, and everything is answered. */
TEST(what_waits_for_its_turn_is_answered_in_the_end)
{
    for (enum world_kind kind = 0; kind < WORLD_COUNT; kind++) {
        struct world w;
        static struct raw r[40];
        world_open(&w, kind, NULL);
        for (int i = 0; i < 40; i++) {
            raw_dial(&r[i], &w);
            flood(&r[i], i % 2 ? GET("/mine?7") : GET("/mine?8"), 100);
        }
        CHECK(world_until(&w, all_answered, &(struct many){ r, 40, 100 }));
        CHECK(w.requests == 4000);
        CHECK(map_count(w.server->groups) == 2 && !w.server->parked);
        for (int i = 0; i < 40; i++)
            raw_done(&r[i]);
        world_wait(&w, 10);
        CHECK(map_count(w.server->groups) == 0);
        world_close(&w);
    }
}

TEST(a_group_that_asks_much_is_held_back_only_beside_another)
{
    struct world w;
    struct raw a, b;
    world_open(&w, WORLD_SIM, NULL);        /* where no time passes while requests are served */
    raw_dial(&a, &w);
    flood(&a, GET("/mine?7"), 30);
    CHECK(raw_has(&a, "mine"));
    CHECK(!w.server->parked && !w.server->round);
    raw_dial(&b, &w);
    raw_say(&b, GET("/mine?8"));
    CHECK(raw_has(&b, "mine"));
    flood(&a, GET("/mine?7"), 100);
    for (int i = 0; i < 1000 && !w.server->parked; i++)
        sim_step(w.sim);
    CHECK(w.server->parked);
    raw_say(&b, GET("/mine?8"));            /* and is not held back itself */
    CHECK(world_until(&w, all_answered, &(struct many){ &b, 1, 2 }));
    CHECK(world_until(&w, all_answered, &(struct many){ &a, 1, 130 }));
    raw_done(&a);
    raw_done(&b);
    world_close(&w);
}

TEST(connections_may_leave_while_they_wait_for_their_turn)
{
    struct world w;
    static struct raw r[20];
    world_open(&w, WORLD_TCP, NULL);
    for (int i = 0; i < 20; i++) {
        raw_dial(&r[i], &w);
        flood(&r[i], i % 2 ? GET("/mine?7") : GET("/mine?8"), 1000);
    }
    for (int i = 0; i < 20; i++) {
        CHECK(raw_has(&r[i], "mine"));
        raw_done(&r[i]);
    }
    world_close(&w);                        /* some are parked: the server's end takes them along */
}

TEST(one_that_was_told_to_slow_down_is_not_read_for_a_while)
{
    struct world w;
    struct raw r;
    world_open(&w, WORLD_SIM, NULL);
    raw_dial(&r, &w);
    int64_t began = os_boot_ms(w.os);
    raw_say(&r, GET("/rest") GET("/hello"));
    CHECK(raw_has(&r, "HTTP/1.1 429 "));
    CHECK(raw_count(&r, "HTTP/1.1 200 ") == 0 && w.requests == 1);
    CHECK(raw_has(&r, "HTTP/1.1 200 ") && os_boot_ms(w.os) - began >= 100);
    raw_done(&r);
    world_close(&w);
}

static bool counted(void *arg) { return strstr(((struct answer *)arg)->body.at ? ((struct answer *)arg)->body.at : "", " ") != NULL; }

/* Bodies are held back, too, and come whole. */
TEST(large_bodies_take_turns_with_small_requests)
{
    for (enum world_kind kind = 0; kind < WORLD_COUNT; kind++) {
        struct world w;
        struct raw b;
        static struct answer a[8];
        world_open(&w, kind, NULL);
        struct http_client *c = world_client(&w);
        AUTO(str_done) struct str body = { 0 };
        for (int i = 0; i < 3000000; i++)
            str_char(&body, (char)('a' + i % 26));
        raw_dial(&b, &w);
        raw_say(&b, GET("/mine?8"));
        CHECK(raw_has(&b, "mine"));
        for (int i = 0; i < 8; i++)
            answer_start(&a[i], &w, c, "POST", "/count", (struct slice){ body.at, body.len });
        bool parked = false;
        for (int i = 0; i < 50; i++) {
            raw_say(&b, GET("/mine?8"));
            for (int k = 0; k < 100 && kind == WORLD_SIM && !parked; k++, parked = w.server->parked != NULL)
                sim_step(w.sim);        /* it lasts for a turn of the loop */
            CHECK(world_until(&w, all_answered, &(struct many){ &b, 1, i + 2 }));
        }
        for (int i = 0; i < 8; i++) {
            CHECK(answer_wait(&a[i]) && a[i].status == 200 && counted(&a[i]));
            CHECK(text_starts(a[i].body.at, "3000000 ") && text_is(a[i].body.at, a[0].body.at));
        }
        CHECK(parked || kind != WORLD_SIM);
        for (int i = 0; i < 8; i++)
            answer_done(&a[i]);
        http_client_free(c);
        raw_done(&b);
        world_close(&w);
    }
}
