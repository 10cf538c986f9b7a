#include "pair.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MIB = 1024 * 1024 };

static void echo_through(const char *address)
{
    struct err err = { 0 };
    struct os *os = os_real_new(&err);
    struct peer server = { .os = os, .echo = true }, client = { .os = os, .stop_at = MIB };
    struct listener *l = NULL;
    CHECK(stream_listen(os, address, NULL, peer_accept, &server, &l, &err));
    client.s = stream_dial(os, listener_address(l), NULL, NULL, &peer_events, &client);
    CHECK(!client.opened);
    char *sent = pattern(MIB);
    for (size_t at = 0; at < MIB; at += 4096)
        stream_write(client.s, sent + at, 4096);
    CHECK(stream_waiting(client.s) == MIB);
    run_for(os);
    CHECK(client.opened == 1 && client.drained >= 1);
    CHECK(client.got.len == MIB && memcmp(client.got.at, sent, MIB) == 0);
    stream_end(client.s);
    server.stop_at_close = true;
    run_for(os);
    CHECK(client.closed == 1 && client.why.rc == RC_OK);
    CHECK(server.closed == 1 && server.why.rc == RC_OK);
    listener_close(l);
    str_done(&server.got);
    str_done(&client.got);
    free(sent);
    os_free(os);
}

TEST(a_mebibyte_comes_back_over_tcp) { echo_through("127.0.0.1:0"); }
TEST(a_mebibyte_comes_back_over_ipv6) { echo_through("[::1]:0"); }
TEST(a_mebibyte_comes_back_by_name) { echo_through("localhost:0"); }
TEST(a_mebibyte_comes_back_over_a_unix_socket)
{
    char path[64], address[80];
    snprintf(path, sizeof path, "/tmp/arcus-os-test-%d.sock", getpid());
    snprintf(address, sizeof address, "unix:%s", path);
    echo_through(address);
    struct stat st;
    CHECK(stat(path, &st) == -1);       /* the listener took its file with it */
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    struct { unsigned short family; char path[108]; } un = { AF_UNIX, "" };
    snprintf(un.path, sizeof un.path, "%s", path);
    CHECK(bind(fd, (struct sockaddr *)&un, sizeof un) == 0);
    close(fd);                          /* as a server that was killed leaves it */
    echo_through(address);
}

static void expect_failure(const char *address, const char *words)
{
    struct err err = { 0 };
    struct os *os = os_real_new(&err);
    struct peer p = { .os = os, .stop_at_close = true };
    p.s = stream_dial(os, address, NULL, NULL, &peer_events, &p);
    stream_write(p.s, "x", 1);
    CHECK(p.closed == 0);               /* never inside the call that caused it */
    run_for(os);
    CHECK(p.opened == 0 && p.closed == 1 && p.why.rc != RC_OK);
    CHECK(strstr(p.why.text, words));
    os_free(os);
}

TEST(bad_and_silent_addresses_fail_through_on_close)
{
    expect_failure("127.0.0.1:1", "refused");
    expect_failure("unix:/nonexistent/socket", "No such file");
    expect_failure("unix:relative", "absolute");
    expect_failure("127.0.0.1", "not an address");
    expect_failure("127.0.0.1:", "not an address");
    expect_failure("127.0.0.1:70000", "not an address");
    expect_failure("::1:80", "not an address");
    expect_failure(":80", "not an address");
    expect_failure("", "not an address");
    expect_failure("host:12x", "not an address");
    expect_failure("no-such-host.invalid:80", "cannot find");
}

TEST(an_address_in_use_or_bad_cannot_be_listened_on)
{
    struct err err = { 0 };
    struct os *os = os_real_new(&err);
    struct listener *a, *b;
    CHECK(stream_listen(os, "127.0.0.1:0", NULL, peer_accept, NULL, &a, &err));
    CHECK(!stream_listen(os, listener_address(a), NULL, peer_accept, NULL, &b, &err));
    CHECK(strstr(err.text, "in use"));
    CHECK(!stream_listen(os, "nonsense", NULL, peer_accept, NULL, &b, &err));
    CHECK(err.rc == RC_BAD_INPUT);
    listener_close(a);
    os_free(os);
}

static void ignore(void *arg, struct stream *s) { (void)arg, (void)s; }

TEST(a_connection_that_nobody_binds_is_closed)
{
    struct err err = { 0 };
    struct os *os = os_real_new(&err);
    struct peer client = { .os = os, .stop_at_close = true };
    struct listener *l;
    CHECK(stream_listen(os, "127.0.0.1:0", NULL, ignore, NULL, &l, &err));
    client.s = stream_dial(os, listener_address(l), NULL, NULL, &peer_events, &client);
    run_for(os);
    CHECK(client.closed == 1);
    os_free(os);
}

struct world { struct os *os; struct listener *l; struct peer server, client; };
static struct world connected(void)
{
    struct err err = { 0 };
    return (struct world){ .os = os_real_new(&err) };
}
static void connect_them(struct world *w)
{
    struct err err = { 0 };
    w->server.os = w->client.os = w->os;
    CHECK(stream_listen(w->os, "127.0.0.1:0", NULL, peer_accept, &w->server, &w->l, &err));
    w->client.s = stream_dial(w->os, listener_address(w->l), NULL, NULL, &peer_events, &w->client);
    stream_write(w->client.s, "!", 1);
    w->server.stop_at = 1;
    run_for(w->os);
    CHECK(w->client.opened && w->server.s && text_is(stream_peer(w->server.s), "127.0.0.1"));
    w->server.stop_at = 0;
    str_clear(&w->server.got);
}
static void world_done(struct world *w)
{
    str_done(&w->server.got);
    str_done(&w->client.got);
    os_free(w->os);
}

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
    CHECK(stream_waiting(w.client.s) == waiting);   /* the kernel's buffers are full and nothing moves */
    w.server.stop_at = ALL;
    stream_pause(w.server.s, false);
    CHECK(w.server.got.len == 0);
    run_for(w.os);
    CHECK(w.server.got.len == ALL && memcmp(w.server.got.at, sent, ALL) == 0);
    CHECK(stream_waiting(w.client.s) == 0 && w.client.drained == 1);
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

TEST(a_full_table_of_descriptors_delays_a_connection_and_does_not_lose_it)
{
    struct world w = connected();
    struct err err = { 0 };
    w.server.os = w.client.os = w.os;
    CHECK(stream_listen(w.os, "127.0.0.1:0", NULL, peer_accept, &w.server, &w.l, &err));
    w.client.s = stream_dial(w.os, listener_address(w.l), NULL, NULL, &peer_events, &w.client);
    struct rlimit before, few = { 64, 64 };
    getrlimit(RLIMIT_NOFILE, &before);
    few.rlim_max = before.rlim_max;
    CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
    int hog[64], n = 0;
    while (n < 64 && (hog[n] = dup(1)) >= 0)
        n++;
    run_ms(w.os, 20);
    CHECK(n < 64 && !w.server.s);
    setrlimit(RLIMIT_NOFILE, &before);
    while (n)
        close(hog[--n]);
    run_ms(w.os, 80);
    CHECK(w.server.s && w.client.opened == 1);
    world_done(&w);
}
