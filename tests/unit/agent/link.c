#include "agent/link.h"
#include "head.h"
#include <string.h>

/* An agent's half: a list of items, and what came down. */
struct half {
    struct os *os;
    struct heads *heads;
    struct link *link;
    struct report_item items[64];
    size_t count;
    int64_t kept;
    int desired, fresh, fulls, opens, downs;
    size_t last_orders;
    struct err down;
    char stream[32];
};

static void fill_hello(void *arg, struct arena *mem, struct hello *out)
{
    struct half *a = arg;
    (void)mem;
    out->info = (struct node_info){ .hostname = "n1", .cpu_milli = 1000, .mem_mib = 1000 };
    out->next = (int64_t)a->count + 1;
}

static struct objects give_items(void *arg, int64_t after, size_t limit)
{
    struct half *a = arg;
    size_t from = (size_t)MIN(after, (int64_t)a->count);
    return (struct objects){ a->items + from, MIN(a->count - from, limit) };
}

static void on_desired(void *arg, const struct desired *d, bool fresh)
{
    struct half *a = arg;
    a->desired++;
    a->fresh += fresh;
    a->fulls += d->full;
    a->kept = d->kept;
    a->last_orders = d->orders.count;
}

static void on_open(void *arg, const struct open_stream *o)
{
    struct half *a = arg;
    a->opens++;
    snprintf(a->stream, sizeof a->stream, "%s", o->stream);
}

static void on_down(void *arg, const struct err *why)
{
    struct half *a = arg;
    a->downs++;
    a->down = *why;
}

static const struct link_events events = { .hello = fill_hello, .items = give_items, .on_desired = on_desired, .on_open = on_open, .on_down = on_down };

struct both { struct sim *sim; struct head head; struct half half; };

static void both_open(struct both *b, uint64_t seed)
{
    struct err err = { 0 };
    *b = (struct both){ .sim = sim_new(seed) };
    head_open(&b->head, b->sim);
    b->half.os = sim_machine(b->sim, "n1");
    b->half.heads = heads_new(b->half.os, NULL, NULL);
    heads_token(b->half.heads, "nk_1");
    CHECK(heads_add(b->half.heads, "http://head:80", &err));
    b->half.link = link_new(b->half.os, b->half.heads, 5000, &events, &b->half);
}

static void both_close(struct both *b)
{
    link_free(TAKE(b->half.link));
    run_for(b->sim, 10000);
    heads_free(b->half.heads);
    head_free(&b->head);
    run_for(b->sim, 10000);
    sim_free(b->sim);
}

static void add_item(struct both *b)
{
    struct half *a = &b->half;
    a->items[a->count] = (struct report_item){ .n = (int64_t)a->count + 1, .attempt = 7, .news = TASK_STARTED, .at_ms = 1 };
    a->count++;
    link_kick(a->link);
}

static bool is_up(void *arg) { return link_up(((struct both *)arg)->half.link); }
static bool all_kept(void *arg)
{
    struct both *b = arg;
    return b->half.kept == (int64_t)b->half.count && b->head.kept == b->half.kept;
}
static bool redialled(void *arg) { return ((struct both *)arg)->head.dials >= 2 && is_up(arg); }

TEST(hello_comes_first_and_reports_follow_the_answer)
{
    struct both b;
    both_open(&b, 1);
    add_item(&b);
    b.head.delay_ms = 1000;
    run_for(b.sim, 900);
    CHECK(b.head.hellos == 1 && b.head.reports == 0 && !link_up(b.half.link));
    b.head.delay_ms = 0;
    CHECK(run_until(b.sim, 2000, all_kept, &b));
    CHECK(b.head.hellos == 1 && b.head.item_count == 1 && b.half.fulls == 1 && text_is(b.head.bearer, "Bearer nk_1"));
    both_close(&b);
}

TEST(an_idle_link_beats_and_each_answer_is_fresh)
{
    struct both b;
    both_open(&b, 2);
    CHECK(run_until(b.sim, 1000, is_up, &b));
    run_for(b.sim, 60000);
    CHECK(b.head.beats >= 11 && b.head.beats <= 13 && b.head.dials == 1);
    CHECK(b.half.desired == b.half.fresh && b.half.desired == b.head.beats + 1);
    both_close(&b);
}

TEST(reports_take_the_place_of_beats)
{
    struct both b;
    both_open(&b, 3);
    CHECK(run_until(b.sim, 1000, is_up, &b));
    for (int i = 0; i < 20; i++) {
        add_item(&b);
        run_for(b.sim, 2000);
    }
    CHECK(b.head.item_count == 20 && b.head.beats == 0);
    both_close(&b);
}

TEST(what_was_cut_before_it_was_taken_is_sent_again)
{
    struct both b;
    both_open(&b, 4);
    CHECK(run_until(b.sim, 1000, is_up, &b));
    b.head.cut_before = true;
    add_item(&b), add_item(&b);
    CHECK(run_until(b.sim, 10000, all_kept, &b));
    CHECK(b.head.item_count == 2 && b.head.dials == 2 && b.head.gaps == 0);
    both_close(&b);
}

TEST(what_was_taken_before_the_cut_is_not_sent_again)
{
    struct both b;
    both_open(&b, 5);
    CHECK(run_until(b.sim, 1000, is_up, &b));
    b.head.cut_after = true;
    add_item(&b), add_item(&b);
    CHECK(run_until(b.sim, 10000, all_kept, &b));
    int reports_with_items = b.head.reports - b.head.beats;
    CHECK(b.head.item_count == 2 && b.head.dials == 2 && reports_with_items <= 2 && b.head.gaps == 0);
    both_close(&b);
}

TEST(answers_said_twice_change_nothing)
{
    struct both b;
    both_open(&b, 6);
    CHECK(run_until(b.sim, 1000, is_up, &b));
    add_item(&b);
    CHECK(run_until(b.sim, 1000, all_kept, &b));
    int reports = b.head.reports;
    for (int i = 0; i < 5; i++)
        head_push(&b.head, i % 2);
    run_for(b.sim, 1000);
    CHECK(b.head.reports == reports && b.head.item_count == 1 && b.half.kept == 1);
    both_close(&b);
}

TEST(a_server_that_hears_and_never_answers_is_left)
{
    struct both b;
    both_open(&b, 7);
    b.head.mute = true;
    run_for(b.sim, 70000);
    CHECK(b.head.dials >= 3 && b.half.desired == 0 && !link_up(b.half.link));
    b.head.mute = false;
    CHECK(run_until(b.sim, 40000, is_up, &b));
    both_close(&b);
}

TEST(a_server_that_does_not_confirm_reports_is_left)
{
    struct both b;
    both_open(&b, 8);
    CHECK(run_until(b.sim, 1000, is_up, &b));
    b.half.items[b.half.count++] = (struct report_item){ .n = 5, .attempt = 7, .at_ms = 1 };    /* a gap: it can never be taken */
    link_kick(b.half.link);
    run_for(b.sim, 60000);
    CHECK(b.head.dials >= 2 && b.head.gaps >= 1);
    both_close(&b);
}

TEST(a_restarted_server_is_found_again_within_seconds)
{
    struct both b;
    both_open(&b, 9);
    CHECK(run_until(b.sim, 1000, is_up, &b));
    head_close(&b.head);
    run_for(b.sim, 60000);
    CHECK(!link_up(b.half.link) && b.half.downs >= 10);         /* it never gives up, at most 5 s apart */
    add_item(&b);
    head_open(&b.head, b.sim);
    CHECK(run_until(b.sim, 6000, all_kept, &b));
    both_close(&b);
}

TEST(a_crashed_server_is_found_again_too)
{
    struct both b;
    both_open(&b, 10);
    CHECK(run_until(b.sim, 1000, is_up, &b));
    add_item(&b);
    head_crash(&b.head);
    run_for(b.sim, 20000);
    head_open(&b.head, b.sim);
    CHECK(run_until(b.sim, 10000, all_kept, &b) && b.head.item_count == 1);
    both_close(&b);
}

TEST(an_answer_that_was_long_under_way_is_not_fresh)
{
    struct both b;
    both_open(&b, 11);
    CHECK(run_until(b.sim, 1000, is_up, &b));
    int fresh = b.half.fresh;
    b.head.delay_ms = 8000;             /* the server is slow: what it says is about eight seconds ago */
    run_for(b.sim, 40000);
    CHECK(b.half.desired > fresh && b.half.fresh <= fresh + 1);
    both_close(&b);
}

TEST(a_push_is_no_contact_where_the_server_tells_what_it_answers)
{
    struct both b;
    both_open(&b, 12);
    CHECK(run_until(b.sim, 1000, is_up, &b));
    int fresh = b.half.fresh;
    head_push(&b.head, false);
    run_for(b.sim, 500);
    CHECK(b.half.desired == 2 && b.half.fresh == fresh);
    both_close(&b);
    both_open(&b, 13);                  /* an older one does not: then every word counts */
    b.head.no_echo = true;
    CHECK(run_until(b.sim, 1000, is_up, &b));
    head_push(&b.head, false);
    run_for(b.sim, 500);
    CHECK(b.half.desired == 2 && b.half.fresh == 2);
    both_close(&b);
}

TEST(a_partition_ends_the_connection_and_its_end_makes_a_new_one)
{
    struct both b;
    both_open(&b, 14);
    CHECK(run_until(b.sim, 1000, is_up, &b));
    sim_partition(b.sim, "head", "n1", true);
    add_item(&b);
    run_for(b.sim, 60000);
    CHECK(!link_up(b.half.link));
    int fresh = b.half.fresh;
    sim_partition(b.sim, "head", "n1", false);
    CHECK(run_until(b.sim, 10000, all_kept, &b));
    CHECK(b.head.item_count == 1 && b.head.gaps == 0 && b.half.fresh > fresh);
    both_close(&b);
}

TEST(words_that_make_no_sense_end_the_connection_not_the_agent)
{
    static const char *const bad[] = {
        "", "{", "[]", "{}", "7", "{\"kind\":\"dance\"}", "{\"kind\":\"desired\"}", "{\"kind\":\"desired\",\"generation\":1}",
        "{\"kind\":\"desired\",\"generation\":1,\"full\":true,\"orders\":[{}]}", "{\"kind\":\"open\"}", "{\"kind\":7}",
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct both b;
        both_open(&b, 20 + i);
        b.head.say = bad[i];
        run_for(b.sim, 3000);
        CHECK(b.head.dials >= 2 && b.half.desired == 0 && !link_up(b.half.link));
        b.head.say = NULL;
        CHECK(run_until(b.sim, 10000, redialled, &b));
        head_say(&b.head, bad[i]);
        run_for(b.sim, 10000);
        CHECK(link_up(b.half.link) && b.half.desired >= 2);
        both_close(&b);
    }
}

TEST(what_is_too_long_for_one_message_comes_in_parts)
{
    struct both b;
    static const char *const parts[] = { "{\"kind\":\"desired\",\"gener", "ation\":9,\"full\":true,", "\"orders\":[" };
    both_open(&b, 41);
    CHECK(run_until(b.sim, 1000, is_up, &b));
    int before = b.half.desired;
    for (size_t i = 0; i < COUNT(parts); i++)
        ws_send(b.head.link, false, parts[i], strlen(parts[i]));
    run_for(b.sim, 1000);
    CHECK(b.half.desired == before && link_up(b.half.link));
    ws_send(b.head.link, true, "]}", 2);
    run_for(b.sim, 1000);
    CHECK(b.half.desired == before + 1 && b.half.fulls == 2 && b.head.dials == 1);
    ws_send(b.head.link, false, "half of something", 17); /* what a lost connection leaves is not put before the next */
    run_for(b.sim, 100);
    ws_drop(b.head.link);
    CHECK(run_until(b.sim, 20000, redialled, &b));
    both_close(&b);
}

TEST(a_refused_key_is_told_and_tried_again)
{
    struct both b;
    both_open(&b, 40);
    b.head.refuse = 401;
    run_for(b.sim, 30000);
    CHECK(b.half.downs >= 5 && b.half.down.rc == RC_UNAUTHENTICATED && strstr(b.half.down.text, "not today"));
    b.head.refuse = 0;
    CHECK(run_until(b.sim, 6000, is_up, &b));
    both_close(&b);
}

TEST(an_order_to_open_a_stream_is_passed_on)
{
    struct both b;
    both_open(&b, 41);
    CHECK(run_until(b.sim, 1000, is_up, &b));
    head_say(&b.head, "{\"kind\":\"open\",\"stream\":\"st_1\",\"what\":\"logs\",\"attempt\":\"att-0000000000007\"}");
    run_for(b.sim, 100);
    CHECK(b.half.opens == 1 && text_is(b.half.stream, "st_1") && link_up(b.half.link));
    both_close(&b);
}

TEST(a_link_may_be_freed_at_any_moment)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct both b;
        both_open(&b, 100 + seed);
        add_item(&b);
        int64_t steps = (int64_t)sim_chance(b.sim, 40);
        while (steps-- && sim_step(b.sim))
            ;
        both_close(&b);
    }
}

static void count_gone(void *arg) { ++*(int *)arg; }

/* Whoever ends the process before that leaves a connection behind that nobody frees. */
TEST(who_leaves_hears_when_its_server_knows_or_will_not_answer)
{
    for (int kind = 0; kind < 3; kind++) { /* it answers; it does not; there is no connection */
        struct both b;
        int gone = 0;
        both_open(&b, 71);
        CHECK(run_until(b.sim, 5000, is_up, &b));
        if (kind == 1)
            sim_partition(b.sim, "n1", "head", true);
        if (kind == 2) {
            head_free(&b.head);
            run_for(b.sim, 50);
        }
        link_leave(TAKE(b.half.link), count_gone, &gone);
        CHECK(gone == (kind == 2));
        run_for(b.sim, 1000);
        CHECK(gone == (kind != 1));
        run_for(b.sim, 3000);
        CHECK(gone == 1);
        sim_partition(b.sim, "n1", "head", false);
        if (kind != 2) {
            both_close(&b);
            continue;
        }
        heads_free(b.half.heads);
        run_for(b.sim, 10000);
        sim_free(b.sim);
    }
}

/* --- several head nodes */

struct two { struct both b; struct head other; };

static void two_open(struct two *t, uint64_t seed)
{
    struct err err = { 0 };
    both_open(&t->b, seed);
    t->other = (struct head){ .address = "head2" };
    head_open(&t->other, t->b.sim);
    CHECK(heads_add(t->b.half.heads, "http://head2:80", &err));
}

static void two_close(struct two *t)
{
    link_free(TAKE(t->b.half.link));
    run_for(t->b.sim, 10000);
    head_free(&t->other);
    both_close(&t->b);
}

static bool at_other(void *arg) { struct two *t = arg; return t->other.link && t->other.hellos && link_up(t->b.half.link); }

TEST(a_server_that_does_not_write_sends_us_to_the_one_that_does_without_a_pause)
{
    struct two t;
    two_open(&t, 51);
    t.b.head.refuse = 421;
    t.b.head.writer_url = "http://head2:80";
    CHECK(run_until(t.b.sim, 60, at_other, &t) && t.b.head.dials == 1 && t.other.dials == 1);
    t.other.refuse = 421;               /* nobody writes for a while: both are asked, and not in a frenzy */
    t.other.writer_url = "http://head:80";
    ws_close(t.other.link, 4421, "another server writes now");
    run_for(t.b.sim, 3000);
    CHECK(!link_up(t.b.half.link) && t.b.head.dials + t.other.dials > 6 && t.b.head.dials + t.other.dials < 40);
    t.b.head.refuse = 0;
    CHECK(run_until(t.b.sim, 2500, is_up, &t.b));
    two_close(&t);
}

TEST(a_server_that_says_goodbye_is_left_at_once)
{
    struct two t;
    two_open(&t, 52);
    CHECK(run_until(t.b.sim, 1000, is_up, &t.b) && t.b.head.link);
    ws_close(t.b.head.link, 1001, "the server is closing");
    CHECK(run_until(t.b.sim, 60, at_other, &t) && t.b.head.dials == 1);
    two_close(&t);
}

TEST(a_server_that_cannot_be_reached_or_says_nothing_costs_seconds)
{
    struct two t;
    two_open(&t, 53);
    sim_partition(t.b.sim, "head", "n1", true);
    CHECK(run_until(t.b.sim, 4000, at_other, &t));
    two_close(&t);
    two_open(&t, 54);
    CHECK(run_until(t.b.sim, 1000, is_up, &t.b));
    head_crash(&t.b.head);
    CHECK(run_until(t.b.sim, 20000, at_other, &t));
    two_close(&t);
}

TEST(what_a_newer_server_says_besides_is_passed_over)
{
    struct both b;
    both_open(&b, 61);
    CHECK(run_until(b.sim, 10000, is_up, &b));
    int desired = b.half.desired, dials = b.head.dials;
    head_say(&b.head, "{\"later\":{\"x\":[1]},\"kind\":\"desired\",\"generation\":9,\"orders\":[{\"attempt\":\"att-0000000000001\",\"job\":\"job-0000000000001\","
                      "\"project\":\"prj-0000000000001\",\"stop\":true,\"later\":7}]}");
    head_say(&b.head, "{\"kind\":\"open\",\"stream\":\"s-later\",\"what\":\"logs\",\"colour\":\"red\"}");
    run_for(b.sim, 1000);
    CHECK(b.half.desired == desired + 1 && b.half.last_orders == 1 && text_is(b.half.stream, "s-later"));
    CHECK(link_up(b.half.link) && b.head.dials == dials);
    both_close(&b);
}
