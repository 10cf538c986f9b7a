#include "base/fault.h"
#include "pair.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

TEST(a_mebibyte_comes_back_over_tcp) { echo_through("127.0.0.1:0"); }
TEST(a_mebibyte_comes_back_over_ipv6) { echo_through("[::1]:0"); }
TEST(a_slow_reader_holds_the_writer_back_and_loses_nothing)
{
    struct world w = connected();
    connect_them(&w);
    enum { ALL = 16 * MIB };
    char *sent = pattern(ALL);
    stream_pause(w.server.s, true);
    stream_write(w.client.s, sent, ALL);
    run_ms(w.os, 50);
    size_t waiting = stream_waiting(w.client.s);
    CHECK(waiting > 0 && w.server.got.len == 0 && w.client.drained == 0);
    run_ms(w.os, 20);
    /* the kernel's buffers are full and nothing moves */
    CHECK(stream_waiting(w.client.s) == waiting && os_waiting(w.os) == waiting);
    w.server.stop_at = ALL;
    stream_pause(w.server.s, false);
    CHECK(w.server.got.len == 0);
    run_for(w.os);
    CHECK(w.server.got.len == ALL && memcmp(w.server.got.at, sent, ALL) == 0);
    CHECK(stream_waiting(w.client.s) == 0 && os_waiting(w.os) == 0 && w.client.drained == 1);
    free(sent);
    world_done(&w);
}

static size_t one_byte(void *arg, const char *at, size_t n)
{
    struct peer *p = arg;
    (void)n;
    str_put(&p->got, at, 1);
    stream_pause(p->s, true);
    stream_pause(p->s, false);
    return 1;
}

TEST(a_pause_that_ends_inside_on_data_shows_the_rest_again)
{
    struct world w = connected();
    connect_them(&w);
    struct stream_events slow = peer_events;
    slow.on_data = one_byte;
    stream_bind(w.server.s, &slow, &w.server);
    stream_write(w.client.s, "0123456789", 10);
    for (int i = 0; i < 200 && w.server.got.len < 10; i++)
        run_ms(w.os, 5);
    CHECK(w.server.got.len == 10 && memcmp(w.server.got.at, "0123456789", 10) == 0);
    world_done(&w);
}

TEST(what_waited_for_a_peer_that_is_gone_does_not_count)
{
    struct world w = connected();
    connect_them(&w);
    char *sent = pattern(16 * MIB);
    stream_pause(w.server.s, true);
    stream_write(w.client.s, sent, 16 * MIB);
    run_ms(w.os, 20);
    CHECK(os_waiting(w.os) > 0);
    stream_close(w.client.s);
    run_ms(w.os, 20);
    CHECK(os_waiting(w.os) == 0);
    free(sent);
    world_done(&w);
}

TEST(what_on_data_leaves_comes_again_with_more)
{
    struct world w = connected();
    connect_them(&w);
    w.server.leave = 10;
    stream_write(w.client.s, "0123456", 7);
    run_ms(w.os, 10);
    CHECK(w.server.got.len == 0);
    stream_write(w.client.s, "789abc", 6);
    run_ms(w.os, 10);
    CHECK(w.server.got.len == 10 && memcmp(w.server.got.at, "0123456789", 10) == 0);
    w.server.leave = 3;
    stream_pause(w.server.s, false);                /* asks for what was kept */
    run_ms(w.os, 10);
    CHECK(w.server.got.len == 13 && memcmp(w.server.got.at + 10, "abc", 3) == 0);
    world_done(&w);
}

TEST(at_most_a_mebibyte_is_kept_for_a_consumer_that_takes_nothing)
{
    struct world w = connected();
    connect_them(&w);
    enum { ALL = 12 * MIB };
    char *sent = pattern(ALL);
    w.server.leave = 2 * MIB;
    stream_write(w.client.s, sent, ALL);
    run_ms(w.os, 60);
    CHECK(w.server.got.len == 0 && stream_waiting(w.client.s) > 0);
    w.server.leave = 1;
    w.server.stop_at = ALL;
    stream_pause(w.server.s, false);
    run_for(w.os);
    CHECK(w.server.got.len == ALL && memcmp(w.server.got.at, sent, ALL) == 0);
    free(sent);
    world_done(&w);
}

static void count_eof(void *arg) { ((struct peer *)arg)->eofs++; }

TEST(after_a_half_close_the_other_direction_still_carries)
{
    struct world w = connected();
    connect_them(&w);
    struct stream_events with_eof = peer_events;
    with_eof.on_eof = count_eof;
    stream_bind(w.server.s, &with_eof, &w.server);
    stream_write(w.client.s, "last", 4);
    stream_shut(w.client.s);
    stream_write(w.client.s, "never", 5);           /* after the half-close: ignored */
    run_ms(w.os, 10);
    CHECK(w.server.eofs == 1 && w.server.got.len == 4 && !w.server.closed && !w.client.closed);
    stream_write(w.server.s, "reply", 5);
    stream_end(w.server.s);
    w.client.stop_at_close = true;
    run_for(w.os);
    CHECK(w.client.got.len == 5 && w.client.closed == 1 && w.client.why.rc == RC_OK);
    run_ms(w.os, 5);
    CHECK(w.server.closed == 1 && w.server.why.rc == RC_OK && w.server.eofs == 1);
    world_done(&w);
}

TEST(without_on_eof_a_peer_that_shut_still_gets_what_was_buffered)
{
    struct world w = connected();
    connect_them(&w);
    w.server.echo = true;
    char *sent = pattern(4 * MIB);
    stream_write(w.client.s, sent, 4 * MIB);
    stream_shut(w.client.s);
    w.client.stop_at_close = true;
    run_for(w.os);
    CHECK(w.client.got.len == 4 * MIB && memcmp(w.client.got.at, sent, 4 * MIB) == 0);
    CHECK(w.client.why.rc == RC_OK);
    free(sent);
    world_done(&w);
}

/* A server that refuses an upload must be heard although the client still sends. */
TEST(the_last_words_of_stream_end_arrive_while_the_peer_is_still_sending)
{
    struct world w = connected();
    connect_them(&w);
    char *sent = pattern(8 * MIB);
    stream_pause(w.server.s, true);
    stream_write(w.client.s, sent, 8 * MIB);
    run_ms(w.os, 10);
    stream_write(w.server.s, "413 no", 6);
    stream_end(w.server.s);
    w.client.stop_at = 6;
    run_for(w.os);
    CHECK(w.client.got.len == 6 && memcmp(w.client.got.at, "413 no", 6) == 0);
    CHECK(w.server.closed == 1 && w.server.why.rc == RC_OK);
    w.client.stop_at_close = true;
    w.client.stop_at = 0;
    run_for(w.os);
    CHECK(w.client.closed == 1 && w.client.why.rc == RC_OK);    /* a clean end, not a reset */
    free(sent);
    world_done(&w);
}

TEST(stream_close_calls_on_close_once_later_and_what_follows_is_ignored)
{
    struct world w = connected();
    connect_them(&w);
    struct stream *s = w.client.s;
    w.client.stop_at_close = true;
    stream_close(s);
    CHECK(w.client.closed == 0);
    stream_write(s, "x", 1);
    stream_close(s);
    stream_end(s);
    stream_shut(s);
    stream_pause(s, false);
    CHECK(stream_waiting(s) == 0);
    run_for(w.os);
    run_ms(w.os, 10);
    CHECK(w.client.closed == 1 && w.client.why.rc == RC_OK && w.server.got.len == 0);
    CHECK(w.server.closed == 1);
    world_done(&w);
}

static size_t close_in_data(void *arg, const char *at, size_t n)
{
    struct peer *p = arg;
    (void)at;
    stream_close(p->s);
    stream_write(p->s, "late", 4);
    return n;
}
static void close_in_close(void *arg, const struct err *why)
{
    struct peer *p = arg;
    stream_close(p->s);
    stream_write(p->s, "late", 4);
    stream_end(p->s);
    peer_close(arg, why);
}

TEST(closing_inside_every_callback_is_safe)
{
    struct world w = connected();
    connect_them(&w);
    struct stream_events rude = { NULL, close_in_data, NULL, close_in_close, NULL };
    stream_bind(w.server.s, &rude, &w.server);
    stream_write(w.client.s, "x", 1);
    w.client.stop_at_close = true;
    run_for(w.os);
    CHECK(w.server.closed == 1 && w.client.closed == 1);
    world_done(&w);
}

TEST(a_reset_is_told_apart_from_a_clean_end_also_while_paused)
{
    struct world w = connected();
    connect_them(&w);
    stream_pause(w.client.s, true);
    stream_pause(w.server.s, true);
    stream_write(w.client.s, "unread", 6);
    run_ms(w.os, 10);
    stream_close(w.server.s);           /* with unread bytes: the kernel sends a reset */
    w.client.stop_at_close = true;
    run_for(w.os);
    CHECK(w.client.closed == 1 && w.client.why.rc == RC_UNAVAILABLE);
    world_done(&w);
}

TEST(the_last_words_of_a_peer_that_has_left_are_read_though_a_write_to_it_failed)
{
    struct err err = { 0 };
    struct os *os = os_real_new(&err);
    for (int unread = 0; unread < 2; unread++) {    /* what it left unread makes the end a reset */
        int fds[2];
        CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
        struct peer p = { .os = os, .echo = true, .stop_at_close = true };
        p.s = stream_of_fd(os, fds[0], &peer_events, &p);
        stream_write(p.s, "unread", unread ? 6 : 0);
        run_ms(os, 10);
        CHECK(write(fds[1], "last words", 10) == 10);
        close(fds[1]);
        char *more = pattern(MIB);
        stream_write(p.s, more, MIB);               /* too much to gather: it goes out, and fails, before the loop looks */
        run_for(os);
        CHECK(p.closed == 1 && p.why.rc == RC_UNAVAILABLE && p.got.len == 10 && memcmp(p.got.at, "last words", 10) == 0);
        CHECK(os_waiting(os) == 0);
        free(more);
        str_done(&p.got);
    }
    os_free(os);
}

TEST(the_ends_of_a_pipe_are_streams)
{
    struct err err = { 0 };
    struct os *os = os_real_new(&err);
    int fds[2];
    CHECK(pipe(fds) == 0);
    struct peer in = { .os = os, .stop_at_close = true }, out = { .os = os };
    in.s = stream_of_fd(os, fds[0], &peer_events, &in);
    out.s = stream_of_fd(os, fds[1], &peer_events, &out);
    char *sent = pattern(MIB);
    stream_write(out.s, sent, MIB);
    stream_end(out.s);
    run_for(os);
    CHECK(in.got.len == MIB && memcmp(in.got.at, sent, MIB) == 0 && in.why.rc == RC_OK);
    CHECK(out.closed == 1 && out.why.rc == RC_OK);
    CHECK(pipe(fds) == 0);
    out = (struct peer){ .os = os, .stop_at_close = true };
    out.s = stream_of_fd(os, fds[1], &peer_events, &out);
    close(fds[0]);
    run_for(os);
    CHECK(out.closed == 1 && out.why.rc == RC_UNAVAILABLE);
    str_done(&in.got);
    free(sent);
    os_free(os);
}

TEST(a_regular_file_and_a_bad_descriptor_are_streams_too)
{
    struct err err = { 0 };
    struct os *os = os_real_new(&err);
    struct peer in = { .os = os, .stop_at_close = true };
    in.s = stream_of_fd(os, open("/proc/self/exe", O_RDONLY), &peer_events, &in);
    run_for(os);
    struct stat st;
    CHECK(stat("/proc/self/exe", &st) == 0 && in.got.len == (size_t)st.st_size);
    in.closed = 0;
    in.s = stream_of_fd(os, 9999, &peer_events, &in);
    run_for(os);
    CHECK(in.closed == 1 && in.why.rc != RC_OK);
    str_done(&in.got);
    os_free(os);
}

/* A read or a write that fails ends its stream with a reason, the peer hears of it, and the listener goes on. */
TEST(whichever_read_or_write_fails_both_ends_are_told_once_and_the_next_connection_works)
{
#ifdef FAULTS
    enum { ALL = 256 * 1024, NTH_MOST = 500 };
    struct err err = { 0 };
    struct world w = connected();
    struct timer *late;
    char *sent = pattern(ALL);
    int nth = 1;
    w.server.os = w.client.os = w.os;
    CHECK(stream_listen(w.os, "127.0.0.1:0", NULL, peer_accept, &w.server, &w.l, &err));
    for (bool fired = true; fired && nth < NTH_MOST; nth++) {
        str_clear(&w.server.got), str_clear(&w.client.got);
        w.server = (struct peer){ .os = w.os, .got = w.server.got, .echo = true, .stop_at_close = true };
        w.client = (struct peer){ .os = w.os, .got = w.client.got, .stop_at = ALL, .stop_at_close = true };
        fault_arm(nth);
        w.client.s = stream_dial(w.os, listener_address(w.l), NULL, NULL, &peer_events, &w.client);
        stream_write(w.client.s, sent, ALL);
        late = timer_start(w.os, 60000, out_of_time, w.os);
        while (w.client.got.len < ALL && !w.client.closed && !w.server.closed)
            os_run(w.os);
        timer_cancel(late);
        fired = fault_fired();
        fault_arm(0);
        if (w.client.s)
            stream_end(w.client.s);
        late = timer_start(w.os, 60000, out_of_time, w.os);
        while (!w.client.closed || (w.server.s && !w.server.closed))
            os_run(w.os);
        timer_cancel(late);
        CHECK(w.client.closed == 1 && w.server.closed <= 1);
        CHECK(fired == (w.client.why.rc != RC_OK || w.server.why.rc != RC_OK) || w.client.got.len < ALL);
        CHECK(memcmp(w.client.got.at ? w.client.got.at : "", sent, w.client.got.len) == 0);
        CHECK(fired || (w.client.got.len == ALL && w.server.got.len == ALL));
        CHECK(os_waiting(w.os) == 0);
    }
    CHECK(nth > 4 && nth < NTH_MOST);
    printf("# %d reads and writes can fail\n", nth - 2);
    listener_close(w.l);
    free(sent);
    world_done(&w);
#else
    test_skip("this build has no fault points");
#endif
}
