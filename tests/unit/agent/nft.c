/* In a thread with a network namespace of its own. */
#include "agent/nft.h"
#include "tap.h"
#include <pthread.h>
#include <sched.h>
#include <string.h>

static void *filters(void *arg)
{
    static const unsigned char mac[6] = { 2, 0xa7, 100, 64, 16, 2 };
    struct nft *n = NULL;
    struct err err = { 0 };
    bool *works = arg;
    *works = unshare(CLONE_NEWNET) == 0 && nft_open(&n, &err) && nft_run(n, "add table bridge a\nadd set bridge a s { type ifname . ether_addr . ipv4_addr; }\n", &err);
    if (*works) {
        const struct nft_member m = { "a", "s", "t0123456789abc", mac, 0x64401002 }, elsewhere = { "a", "none", "t", mac, 1 };
        static const char key[] = "element bridge a s { \"t0123456789abc\" . 02:a7:64:40:10:02 . 100.64.16.2 }";
        char text[200];
        snprintf(text, sizeof text, "delete %s", key);
        CHECK(nft_member(n, &m, true) && nft_member(n, &m, true) && nft_run(n, text, &err)); /* what we put in is what nft calls by that name */
        CHECK(!nft_run(n, text, &err) && strstr(err.text, "nftables: ") && !strchr(err.text, '\n'));
        snprintf(text, sizeof text, "add %s", key);
        CHECK(nft_run(n, text, &err) && nft_member(n, &m, false) && nft_member(n, &m, false));
        CHECK(!nft_member(n, &elsewhere, true));
        CHECK(!nft_run(n, "add table bridge b\nadd nonsense\n", &err) && !nft_run(n, "list table bridge b\n", &err)); /* all of it or nothing */
    }
    nft_close(n);
    return NULL;
}

TEST(an_element_that_we_write_is_the_one_that_nft_reads)
{
    bool works = false;
    pthread_t t;
    CHECK(pthread_create(&t, NULL, filters, &works) == 0 && pthread_join(t, NULL) == 0);
    if (!works)
        test_skip("no nftables here");
}
