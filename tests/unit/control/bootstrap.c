#include "door.h"
#include <stdio.h>

struct start {
    struct sim *sim;
    struct os *os;
    struct store *store;
};
static struct start start_new(void)
{
    struct start s = { .sim = sim_new(3) };
    struct err err;
    s.os = sim_machine(s.sim, "head");
    CHECK(dir_make(s.os, "/data", 0700, &err)
          && store_open(s.os, "/data/arcus.db", &s.store, &err));
    return s;
}
static bool bootstrap(struct start *s, bool *made)
{
    struct err err = { 0 };
    return control_bootstrap(s->os, s->store, "/data/keys", "/data/admin.key", made, &err);
}
static void start_free(struct start *s)
{
    store_close(s->store);
    sim_free(s->sim);
}

/* The key in the file opens the door. */
static bool key_works(struct start *s)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct err err = { 0 };
    struct slice text;
    struct keyring ring;
    struct conn *conn;
    struct auth_facts facts = { 0 };
    struct caller who = { 0 };
    char hash[DIGEST_HEX], key[SECRET_TEXT] = "";
    if (!file_read(s->os, "/data/admin.key", 256, mem, &text, &err)
        || !keyring_open(s->os, "/data/keys", &ring, &err)
        || !conn_open(s->store, false, &conn, &err))
        return false;
    snprintf(key, sizeof key, "%.*s", (int)strcspn(text.at, "\n"), text.at);
    digest_keyed(ring.hash, key, hash);
    bool ok = auth_facts_read(conn, hash, "default", mem, &facts, &err)
              && auth_decide(&facts, "default", os_wall_ms(s->os), &who, &err);
    int64_t persons = store_count(conn, "person"), keys = store_count(conn, "apikey");
    conn_close(conn);
    return ok && (who.roles & ROLE_OPERATOR) && (who.roles & ROLE_ADMIN) && persons == 1
           && keys == 1;
}

TEST(the_first_start_makes_one_person_who_may_everything_and_later_ones_nothing)
{
    struct start s = start_new();
    bool made = false;
    CHECK(bootstrap(&s, &made) && made && key_works(&s));
    CHECK(bootstrap(&s, &made) && !made && key_works(&s));
    start_free(&s);
}

TEST(wherever_the_first_start_fails_the_next_one_has_a_key_that_works)
{
    for (int nth = 1;; nth++) {
        struct start s = start_new();
        bool made = false;
        fault_arm(nth);
        bool ok = bootstrap(&s, &made), fired = fault_fired();
        fault_arm(0);
        CHECK(ok || fired);
        CHECK(bootstrap(&s, &made) && key_works(&s));
        start_free(&s);
        if (!fired)
            break;
        CHECK(nth < 1000);
    }
}

TEST(a_crash_between_the_key_and_its_rows_only_means_that_they_are_made_again)
{
    for (int nth = 1;; nth++) {
        struct start s = start_new();
        bool made = false;
        fault_arm_from(nth); /* dead from there on: what was not synced is gone */
        bool ok = bootstrap(&s, &made), fired = fault_fired();
        sim_crash(s.sim, s.os);
        fault_arm(0);
        store_close(s.store);
        struct err err = { 0 };
        s.os = sim_machine(s.sim, "head");
        CHECK(store_open(s.os, "/data/arcus.db", &s.store, &err));
        CHECK(bootstrap(&s, &made) && key_works(&s) && (!ok || !made));
        start_free(&s);
        if (!fired)
            break;
        CHECK(nth < 1000);
    }
}

TEST(a_server_that_comes_with_other_keys_is_refused_and_makes_none)
{
    struct start s = start_new();
    bool made = false;
    struct err err = { 0 };
    CHECK(bootstrap(&s, &made) && made);
    CHECK(!control_bootstrap(s.os, s.store, "/other/keys", "/other/admin.key", &made, &err));
    CHECK(err.rc == RC_CONFLICT && strstr(err.text, "--keys") && !disk_exists(s.os, "/other/keys/hash.key"));
    struct keyring ring;
    CHECK(keyring_open(s.os, "/other/keys", &ring, &err));
    CHECK(!control_bootstrap(s.os, s.store, "/other/keys", "/other/admin.key", &made, &err));
    CHECK(err.rc == RC_CONFLICT && !disk_exists(s.os, "/other/admin.key"));
    CHECK(bootstrap(&s, &made) && !made && key_works(&s));
    start_free(&s);
}

TEST(the_first_authority_of_a_store_stays_and_others_are_told_what_to_do)
{
    struct start s = start_new();
    struct err err = { 0 };
    CHECK(control_authority(s.store, "/data/keys", NULL, &err));
    CHECK(control_authority(s.store, "/data/keys", "aaaa", &err) && control_authority(s.store, "/data/keys", "aaaa", &err));
    CHECK(!control_authority(s.store, "/data/keys", "bbbb", &err) && err.rc == RC_CONFLICT && strstr(err.text, "/data/keys") && strstr(err.text, "copy"));
    CHECK(!control_authority(s.store, "/data/keys", NULL, &err) && strstr(err.text, "missing"));
    start_free(&s);
}
