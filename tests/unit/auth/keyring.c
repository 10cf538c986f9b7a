#include "auth/auth.h"
#include "base/fault.h"
#include "os/sim.h"
#include "tap.h"
#include <stdio.h>

struct place {
    struct sim *sim;
    struct os *os;
};
static struct place place_new(void)
{
    struct sim *sim = sim_new(5);
    return (struct place){ sim, sim_machine(sim, "head") };
}

TEST(master_keys_are_made_once_and_found_again_after_a_crash)
{
    struct place p = place_new();
    struct keyring a, b;
    struct err err = { 0 };
    CHECK(keyring_open(p.os, "/data/keys", &a, &err));
    sim_crash(p.sim, p.os);
    p.os = sim_machine(p.sim, "head");
    CHECK(keyring_open(p.os, "/data/keys", &b, &err));
    CHECK(memcmp(&a, &b, sizeof a) == 0 && memcmp(a.hash, a.seal, 32) != 0);
    sim_free(p.sim);
}

TEST(damaged_master_keys_are_never_replaced)
{
    static const char *const damaged[]
        = { "", "abc", "zz26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae\n" };
    for (size_t i = 0; i < COUNT(damaged); i++) {
        struct place p = place_new();
        AUTO(arena_free) struct arena *mem = arena_new();
        struct keyring k;
        struct err err = { 0 };
        struct slice text;
        CHECK(dir_make(p.os, "/data/keys", 0700, &err)
              && file_replace(p.os, "/data/keys/seal.key", SLICE(damaged[i]), 0600, &err));
        CHECK(!keyring_open(p.os, "/data/keys", &k, &err) && strstr(err.text, "restore it"));
        CHECK(file_read(p.os, "/data/keys/seal.key", 256, mem, &text, &err)
              && text.len == strlen(damaged[i]));
        sim_free(p.sim);
    }
}

TEST(wherever_making_them_fails_the_next_start_has_whole_keys)
{
    for (int nth = 1;; nth++) {
        struct place p = place_new();
        struct keyring a, b, c;
        struct err err = { 0 };
        fault_arm(nth);
        bool ok = keyring_open(p.os, "/data/keys", &a, &err), fired = fault_fired();
        fault_arm(0);
        CHECK(ok || fired);
        CHECK(keyring_open(p.os, "/data/keys", &b, &err)
              && keyring_open(p.os, "/data/keys", &c, &err));
        CHECK(memcmp(&b, &c, sizeof b) == 0 && (!ok || memcmp(&a, &b, sizeof a) == 0));
        sim_free(p.sim);
        if (!fired)
            break;
        CHECK(nth < 100);
    }
}
