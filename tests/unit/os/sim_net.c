#include "sim_pair.h"
#include "base/fault.h"

enum { MIB = 1024 * 1024 };

TEST(bytes_of_a_simulated_stream_arrive_in_order_whatever_the_seed)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct two *t = two_new(seed);
        t->server.echo = true;
        struct str sent = { 0 };
        for (int i = 0; sent.len < 200000; i++)
            str_printf(&sent, "%d,", i);
        for (size_t at = 0; at < sent.len; at += 1000)
            stream_write(t->client.s, sent.at + at, MIN((size_t)1000, sent.len - at));
        CHECK(!t->client.opened);
        two_run(t, 2000);
        CHECK(t->client.opened == 1 && t->client.got.len == sent.len);
        CHECK(memcmp(t->client.got.at, sent.at, sent.len) == 0);
        CHECK(text_is(stream_peer(t->server.s), "alpha")
              && text_is(stream_peer(t->client.s), "beta"));
        stream_end(t->client.s);
        two_run(t, 100);
        CHECK(t->client.closed == 1 && t->client.why.rc == RC_OK);
        CHECK(t->server.closed == 1 && t->server.why.rc == RC_OK);
        str_done(&sent);
        two_free(t);
    }
}

static int fails_with(struct two *t, struct os *from, const char *address, const char *words)
{
    struct end e = { 0 };
    e.s = stream_dial(from, address, NULL, NULL, &end_events, &e);
    stream_write(e.s, "x", 1);
    CHECK(e.closed == 0);
    two_run(t, 10000);
    return e.opened == 0 && e.closed == 1 && e.why.rc != RC_OK && strstr(e.why.text, words);
}

TEST(a_simulated_dial_fails_like_a_real_one)
{
    struct two *t = two_new(2);
    CHECK(fails_with(t, t->a, "beta:1", "refused"));
    CHECK(fails_with(t, t->a, "nobody:6640", "refused"));
    CHECK(fails_with(t, t->a, "nonsense", "not an address"));
    CHECK(fails_with(t, t->a, "unix:/none", "refused"));
    CHECK(fails_with(t, t->a, "127.0.0.1:6640", "refused"));    /* that is alpha itself */
    fault_arm(1);
    CHECK(fails_with(t, t->a, "beta:6640", "refused"));
    fault_arm(0);
    struct err err = { 0 };
    struct listener *l, *other;
    CHECK(stream_listen(t->b, "127.0.0.1:0", NULL, end_accept, &t->server, &l, &err));
    char address[64];
    snprintf(address, sizeof address, "beta:%s", strrchr(listener_address(l), ':') + 1);
    CHECK(fails_with(t, t->a, address, "refused"));             /* loopback only */
    CHECK(!stream_listen(t->b, "beta:6640", NULL, end_accept, NULL, &other, &err));
    listener_close(l);
    two_free(t);
}

TEST(a_unix_socket_is_found_on_its_own_machine_only)
{
    struct two *t = two_new(2);
    struct err err = { 0 };
    struct listener *l;
    CHECK(stream_listen(t->b, "unix:/run/s", NULL, end_accept, &t->server, &l, &err));
    CHECK(text_is(listener_address(l), "unix:/run/s"));
    struct end e = { 0 };
    e.s = stream_dial(t->b, "unix:/run/s", NULL, NULL, &end_events, &e);
    two_run(t, 100);
    CHECK(e.opened == 1 && text_is(stream_peer(e.s), "unix"));
    CHECK(fails_with(t, t->a, "unix:/run/s", "refused"));
    two_free(t);
}

TEST(a_simulated_slow_reader_holds_the_writer_back)
{
    struct two *t = two_new(4);
    two_run(t, 100);
    char *sent = calloc(1, 4 * MIB);
    for (size_t i = 0; i < 4 * MIB; i++)
        sent[i] = (char)(i * 31 >> 3);
    stream_pause(t->server.s, true);
    stream_write(t->client.s, sent, 4 * MIB);
    two_run(t, 1000);
    CHECK(stream_waiting(t->client.s) == 3 * MIB && t->server.got.len == 0
          && t->client.drained == 0);
    stream_pause(t->server.s, false);
    two_run(t, 1000);
    CHECK(t->server.got.len == 4 * MIB && memcmp(t->server.got.at, sent, 4 * MIB) == 0);
    CHECK(t->client.drained == 1 && stream_waiting(t->client.s) == 0);
    free(sent);
    two_free(t);
}

TEST(what_a_simulated_consumer_leaves_comes_again)
{
    struct two *t = two_new(6);
    two_run(t, 100);
    t->server.leave = 10;
    stream_write(t->client.s, "0123456", 7);
    two_run(t, 50);
    CHECK(t->server.got.len == 0);
    stream_write(t->client.s, "789abc", 6);
    two_run(t, 50);
    CHECK(t->server.got.len == 10);
    t->server.leave = 3;
    stream_pause(t->server.s, false);
    two_run(t, 50);
    CHECK(t->server.got.len == 13 && text_is(t->server.got.at, "0123456789abc"));
    two_free(t);
}

static void count_eof(void *arg) { ((struct end *)arg)->eofs++; }

TEST(a_simulated_half_close_leaves_the_other_direction_open)
{
    struct two *t = two_new(6);
    two_run(t, 100);
    struct stream_events with_eof = end_events;
    with_eof.on_eof = count_eof;
    stream_bind(t->server.s, &with_eof, &t->server);
    stream_write(t->client.s, "last", 4);
    stream_shut(t->client.s);
    stream_write(t->client.s, "never", 5);
    two_run(t, 100);
    CHECK(t->server.eofs == 1 && t->server.got.len == 4 && !t->server.closed && !t->client.closed);
    stream_write(t->server.s, "reply", 5);
    stream_end(t->server.s);
    two_run(t, 100);
    CHECK(t->client.got.len == 5 && t->client.closed == 1 && t->client.why.rc == RC_OK);
    CHECK(t->server.closed == 1 && t->server.why.rc == RC_OK);
    two_free(t);
}

TEST(last_words_arrive_although_the_peer_was_still_sending)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct two *t = two_new(seed);
        two_run(t, 100);
        stream_write(t->server.s, "413 no", 6);
        stream_end(t->server.s);
        stream_write(t->client.s, "more and more", 13);
        two_run(t, 100);
        CHECK(t->client.got.len == 6 && t->client.closed == 1 && t->client.why.rc == RC_OK);
        two_free(t);
    }
}

TEST(closing_a_simulated_stream_is_told_once_and_later)
{
    struct two *t = two_new(6);
    two_run(t, 100);
    struct stream *s = t->client.s;
    stream_close(s);
    stream_close(s);
    stream_write(s, "x", 1);
    stream_end(s);
    CHECK(t->client.closed == 0);
    two_run(t, 100);
    CHECK(t->client.closed == 1 && t->client.why.rc == RC_OK && t->server.closed == 1);
    two_free(t);
}

TEST(a_cut_network_holds_bytes_back_and_refuses_dials_until_it_heals)
{
    struct two *t = two_new(11);
    two_run(t, 100);
    sim_partition(t->w, "beta", "alpha", true);
    sim_partition(t->w, "alpha", "beta", true);     /* twice is once */
    stream_write(t->client.s, "held", 4);
    CHECK(fails_with(t, t->a, "beta:6640", "no answer"));
    two_run(t, 60000);
    CHECK(t->server.got.len == 0 && !t->client.closed && !t->server.closed);
    sim_partition(t->w, "alpha", "beta", false);
    two_run(t, 100);
    CHECK(t->server.got.len == 4 && memcmp(t->server.got.at, "held", 4) == 0);
    sim_partition(t->w, "alpha", "beta", true);
    stream_end(t->client.s);
    two_run(t, 1000);
    CHECK(t->server.closed == 0);
    sim_partition(t->w, "alpha", "beta", false);
    two_run(t, 100);
    CHECK(t->server.closed == 1 && t->server.why.rc == RC_OK);
    two_free(t);
}

TEST(a_crash_resets_the_peers_after_a_delay_and_behind_a_cut_after_it_heals)
{
    struct two *t = two_new(12);
    two_run(t, 100);
    sim_network(t->w, 50, 50);
    sim_crash(t->w, t->b);
    two_run(t, 40);
    CHECK(t->client.closed == 0);
    two_run(t, 20);
    CHECK(t->client.closed == 1 && t->client.why.rc == RC_UNAVAILABLE && t->server.closed == 0);
    two_free(t);

    t = two_new(12);
    two_run(t, 100);
    sim_partition(t->w, "alpha", "beta", true);
    sim_crash(t->w, t->b);
    two_run(t, 60000);
    CHECK(t->client.closed == 0);
    sim_partition(t->w, "alpha", "beta", false);
    two_run(t, 100);
    CHECK(t->client.closed == 1);
    two_free(t);
}

TEST(a_way_that_is_cut_holds_only_what_goes_that_way)
{
    struct two *t = two_new(13);
    two_run(t, 100);
    sim_partition_way(t->w, "alpha", "beta", true);
    stream_write(t->client.s, "there", 5);
    stream_write(t->server.s, "back", 4);
    two_run(t, 10000);
    CHECK(t->server.got.len == 0 && t->client.got.len == 4);
    CHECK(fails_with(t, t->a, "beta:6640", "no answer"));
    sim_partition_way(t->w, "alpha", "beta", false);
    two_run(t, 100);
    CHECK(t->server.got.len == 5);
    sim_partition_way(t->w, "beta", "alpha", true);     /* the answer to a dial must come back too */
    CHECK(fails_with(t, t->a, "beta:6640", "no answer"));
    sim_partition(t->w, "alpha", "beta", false);
    two_free(t);
}

TEST(lost_pieces_come_late_and_in_order_and_a_reset_ends_both_sides)
{
    struct two *t = two_new(14);
    two_run(t, 100);
    sim_loss(t->w, 500, 0);
    for (int i = 0; i < 200; i++) {
        char byte = (char)i;
        stream_write(t->client.s, &byte, 1);
        two_run(t, 3);
    }
    CHECK(t->server.got.len < 200);
    two_run(t, 200 * 3000);
    CHECK(t->server.got.len == 200);
    for (size_t i = 0; i < 200; i++)
        CHECK(t->server.got.at[i] == (char)i);
    sim_loss(t->w, 0, 1000);
    stream_write(t->client.s, "x", 1);
    two_run(t, 100);
    CHECK(t->client.closed == 1 && t->server.closed == 1 && t->server.got.len == 200);
    CHECK(t->client.why.rc == RC_UNAVAILABLE && t->server.why.rc == RC_UNAVAILABLE);
    two_free(t);
}

TEST(what_stands_still_is_connected_to_and_hears_everything_in_order_when_it_wakes)
{
    struct two *t = two_new(15);
    two_run(t, 100);
    struct end late = { .w = t->w };
    sim_stall(t->w, t->b, 5000);
    stream_write(t->client.s, "1", 1);
    late.s = stream_dial(t->a, "beta:6640", NULL, NULL, &end_events, &late);
    two_run(t, 1000);
    CHECK(late.opened == 1 && t->server.got.len == 0);      /* the kernel answers, the program does not */
    stream_write(late.s, "2", 1);
    two_run(t, 3000);
    CHECK(t->server.got.len == 0);
    two_run(t, 2000);
    CHECK(t->server.got.len == 2 && memcmp(t->server.got.at, "12", 2) == 0);
    two_free(t);
    str_done(&late.got);
}

static void count_bytes(void *arg, const char *from, const char *to, const char *at, size_t n)
{
    (void)at;
    if (text_is(from, "alpha") && text_is(to, "beta"))
        *(size_t *)arg += n;
}

TEST(who_listens_in_hears_what_arrives)
{
    struct two *t = two_new(16);
    size_t heard = 0;
    two_run(t, 100);
    sim_listen_in(t->w, count_bytes, &heard);
    stream_write(t->client.s, "four", 4);
    stream_write(t->server.s, "other", 5);
    CHECK(heard == 0);
    two_run(t, 100);
    CHECK(heard == 4);
    two_free(t);
}
