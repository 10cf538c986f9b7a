#include "pair.h"
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

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
    clock_t cpu = clock();
    run_ms(w.os, 100);
    CHECK(n < 64 && !w.server.s);
    CHECK(clock() - cpu < CLOCKS_PER_SEC / 20);     /* it waited and did not spin */
    setrlimit(RLIMIT_NOFILE, &before);
    while (n)
        close(hog[--n]);
    for (int i = 0; i < 1000 && !w.server.s; i++)
        run_ms(w.os, 20);
    run_ms(w.os, 20);
    CHECK(w.server.s && w.client.opened == 1);
    world_done(&w);
}
