#include "door.h"
#include "base/log.h"
#include <stdio.h>

#define KEY_A "nk_0123456789012345678901234567890123456789abA"
#define KEY_B "nk_0123456789012345678901234567890123456789abB"
#define KEY_C "nk_0123456789012345678901234567890123456789abC"
#define KEY_D "nk_0123456789012345678901234567890123456789abD"

static struct answer join(struct door *d, const char *token, const char *name, const char *key)
{
    return door_ask(d, NULL, VERB_NODE_JOIN,
                    FMT(d, "{\"token\":\"%s\",\"name\":\"%s\",\"key\":\"%s\"}", token, name, key));
}
static struct answer rekey(struct door *d, const char *with, const char *to)
{
    return door_ask(d, with, VERB_NODE_REKEY, FMT(d, "{\"key\":\"%s\"}", to));
}
static struct answer hello(struct door *d, const char *key)
{
    return door_hello(d, key, "n1", 1, 1, (struct texts){ 0 });
}
static bool is_good(struct door *d, const char *key)
{
    struct answer a = door_ask(d, key, VERB_NODE_LINK, NULL);
    CHECK(a.ok || a.err.rc == RC_UNAUTHENTICATED);
    return a.ok;
}
static bool wants_rotation(const struct answer *a)
{
    const struct json *rotate = json_get(a->json, "rotate");
    return rotate && rotate->flag;
}

TEST(a_join_whose_answer_was_lost_can_be_asked_again_by_who_asked_and_by_nobody_else)
{
    AUTO(door_free) struct door *d = door_new(false);
    struct answer t = door_ask(d, d->admin, VERB_NODE_TOKEN, NULL);
    const char *token = get(&t, "token");
    struct answer first = join(d, token, "n1", KEY_A), again = join(d, token, "n1", KEY_A);
    CHECK(first.ok && again.ok && text_is(get(&first, "id"), get(&again, "id")));
    CHECK(!json_get(first.json, "key") && !on_disk(d, KEY_A)); /* what it brought is not said back */
    struct answer thief = join(d, token, "n2", KEY_B);
    CHECK(!thief.ok && thief.err.rc == RC_UNAUTHENTICATED && rows_in(d, "node") == 1);
    CHECK(is_good(d, KEY_A) && !is_good(d, KEY_B));
    door_run(d, 2 * 3600 * 1000);
    CHECK(join(d, token, "n1", KEY_A).ok && !join(d, token, "n3", KEY_C).ok);
    CHECK(door_crash(d));
    again = join(d, token, "other-name", KEY_A);
    CHECK(again.ok && text_is(get(&again, "name"), "n1") && rows_in(d, "node") == 1);
    CHECK(door_ask(d, d->admin, VERB_NODE_REMOVE, "{\"node\":\"n1\"}").ok);
    CHECK(!join(d, token, "n1", KEY_A).ok && !is_good(d, KEY_A)); /* a removed node is a stranger */
    check_books(d, "joins");
}

TEST(a_token_is_good_for_an_hour_and_never_for_more_than_a_day)
{
    AUTO(door_free) struct door *d = door_new(false);
    struct answer t = door_ask(d, d->admin, VERB_NODE_TOKEN, NULL);
    CHECK(!door_ask(d, d->admin, VERB_NODE_TOKEN, "{\"expires_in\":\"25h\"}").ok);
    CHECK(door_ask(d, d->admin, VERB_NODE_TOKEN, "{\"expires_in\":\"24h\"}").ok);
    door_run(d, 59 * 60 * 1000);
    struct answer t2 = door_ask(d, d->admin, VERB_NODE_TOKEN, NULL);
    door_run(d, 2 * 60 * 1000);
    CHECK(!join(d, get(&t, "token"), "n1", KEY_A).ok && join(d, get(&t2, "token"), "n1", KEY_A).ok);
}

TEST(a_clock_that_is_set_makes_no_token_better)
{
    AUTO(door_free) struct door *d = door_new(false);
    struct answer t = door_ask(d, d->admin, VERB_NODE_TOKEN, NULL), t2 = door_ask(d, d->admin, VERB_NODE_TOKEN, NULL);
    door_run(d, 50 * 60 * 1000);
    sim_wall_jump(d->sim, INT64_C(-2) * 3600 * 1000);
    CHECK(join(d, get(&t, "token"), "n1", KEY_A).ok);        /* its hour is not over */
    door_run(d, 20 * 60 * 1000);
    CHECK(!join(d, get(&t2, "token"), "n2", KEY_B).ok);      /* it is, whatever the clock says */
    struct answer t3 = door_ask(d, d->admin, VERB_NODE_TOKEN, NULL);
    sim_wall_jump(d->sim, INT64_C(-3) * 3600 * 1000);
    CHECK(door_crash(d));
    door_run(d, 61 * 60 * 1000);
    CHECK(!join(d, get(&t3, "token"), "n3", KEY_C).ok);      /* nor after a restart: an hour from then on at most */
}

TEST(of_several_who_come_with_one_token_at_once_one_joins)
{
    AUTO(door_free) struct door *d = door_new(false);
    struct answer t = door_ask(d, d->admin, VERB_NODE_TOKEN, NULL);
    static const char *const keys[] = { KEY_A, KEY_B, KEY_C, KEY_D };
    struct flying *f[COUNT(keys)];
    int joined = 0, good = 0;
    for (size_t i = 0; i < COUNT(keys); i++)
        f[i] = door_send(d, NULL, NULL, VERB_NODE_JOIN, FMT(d, "{\"token\":\"%s\",\"name\":\"n%zu\",\"key\":\"%s\"}", get(&t, "token"), i, keys[i]), NULL);
    door_run(d, 1000);
    for (size_t i = 0; i < COUNT(keys); i++) {
        CHECK(f[i]->done && (f[i]->r.ok || f[i]->r.err.rc == RC_UNAUTHENTICATED));
        joined += f[i]->r.ok;
        good += is_good(d, keys[i]);
        str_done(&f[i]->r.reply);
    }
    CHECK(joined == 1 && good == 1 && rows_in(d, "node") == 1);
}

TEST(a_token_may_have_the_authoritys_hash_behind_it)
{
    AUTO(door_free) struct door *d = door_new(false);
    struct answer t = door_ask(d, d->admin, VERB_NODE_TOKEN, NULL);
    CHECK(join(d, FMT(d, "%s.%064d", get(&t, "token"), 7), "n1", KEY_A).ok);
    CHECK(!join(d, FMT(d, "%s.%064d", get(&t, "token"), 7), "n2", KEY_B).ok);
}

TEST(a_key_that_is_easy_to_guess_is_not_taken)
{
    static const char *const bad[] = { "nk_", "nk_short", "ak_0123456789012345678901234567890123456789abA", KEY_A "0",
                                       "nk_0123456789012345678901234567890123456789ab.", "0123456789012345678901234567890123456789abcdef" };
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    door_node(d, "n1", 1, key);
    struct answer t = door_ask(d, d->admin, VERB_NODE_TOKEN, NULL);
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct answer a = join(d, get(&t, "token"), "n2", bad[i]), b = rekey(d, key, bad[i]);
        CHECK(!a.ok && text_is(a.err.field, "key") && !b.ok && text_is(b.err.field, "key"));
    }
    CHECK(!rekey(d, d->admin, KEY_A).ok && !rekey(d, NULL, KEY_A).ok && !rekey(d, key, key).ok);
    CHECK(join(d, get(&t, "token"), "n2", KEY_A).ok);
    CHECK(!rekey(d, key, KEY_A).ok); /* another's */
}

TEST(an_old_key_is_good_until_the_new_one_was_used)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    door_node(d, "n1", 1, key);
    CHECK(rekey(d, key, KEY_A).ok && rekey(d, key, KEY_A).ok && is_good(d, key) && is_good(d, KEY_A));
    check_books(d, "brought");
    CHECK(rekey(d, key, KEY_B).ok && is_good(d, key) && !is_good(d, KEY_A) && is_good(d, KEY_B)); /* one may wait */
    CHECK(door_crash(d));
    CHECK(hello(d, key).ok && is_good(d, key) && is_good(d, KEY_B)); /* the old one says nothing about the new */
    CHECK(hello(d, KEY_B).ok && !is_good(d, key) && is_good(d, KEY_B));
    CHECK(!rekey(d, key, KEY_C).ok && !hello(d, key).ok);
    CHECK(rekey(d, KEY_B, KEY_C).ok && rekey(d, KEY_C, KEY_D).ok); /* that it was used to ask counts too */
    CHECK(!is_good(d, KEY_B) && is_good(d, KEY_C) && is_good(d, KEY_D));
    CHECK(!rekey(d, KEY_C, KEY_A).ok && is_good(d, KEY_C)); /* one that was good before is never good again */
    check_books(d, "rotated");
    CHECK(door_ask(d, d->admin, VERB_NODE_REMOVE, "{\"node\":\"n1\"}").ok && !is_good(d, KEY_C) && !is_good(d, KEY_D));
    check_books(d, "removed");
}

TEST(a_node_is_told_to_rotate_when_asked_and_after_a_week_until_it_has)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    door_node(d, "n1", 1, key);
    struct answer a = hello(d, key);
    CHECK(a.ok && !wants_rotation(&a));
    CHECK(door_ask(d, d->admin, VERB_NODE_ROTATE, "{\"node\":\"n1\"}").ok);
    CHECK(!door_ask(d, d->admin, VERB_NODE_ROTATE, "{\"node\":\"n2\"}").ok);
    a = hello(d, key);
    CHECK(wants_rotation(&a));
    CHECK(door_crash(d));
    a = hello(d, key);
    CHECK(wants_rotation(&a));
    door_run(d, 10);
    CHECK(rekey(d, key, KEY_A).ok);
    a = hello(d, key);
    CHECK(!wants_rotation(&a)); /* it has brought one */
    state_node(memory_of(d), "n1")->next_key->created_ms -= 2 * 3600 * 1000;
    a = hello(d, key);
    CHECK(wants_rotation(&a)); /* ... and seems to have lost it */
    state_node(memory_of(d), "n1")->next_key->created_ms += 2 * 3600 * 1000;
    a = hello(d, KEY_A);
    CHECK(a.ok && !wants_rotation(&a));
    state_node(memory_of(d), "n1")->rotate_ms = 0;
    state_node(memory_of(d), "n1")->key->created_ms -= INT64_C(6) * 86400 * 1000;
    a = hello(d, KEY_A);
    CHECK(!wants_rotation(&a));
    state_node(memory_of(d), "n1")->key->created_ms -= INT64_C(86400) * 1000 + 60000;
    a = hello(d, KEY_A);
    CHECK(wants_rotation(&a));
}

/* An agent that keeps its next key before it asks, tries the next one first and falls back, wherever the store fails. */
TEST(wherever_the_store_fails_a_key_that_the_node_has_is_good)
{
    for (int nth = 1;; nth++) {
        AUTO(door_free) struct door *d = door_new(false);
        char key[SECRET_TEXT];
        log_level_set(LOG_ERROR);
        door_node(d, "n1", 1, key);
        fault_arm(nth);
        bool brought = rekey(d, key, KEY_A).ok;
        bool used = brought && hello(d, KEY_A).ok;
        bool fired = fault_fired();
        fault_arm(0);
        check_books(d, "a failure");
        CHECK(is_good(d, key) || is_good(d, KEY_A));
        CHECK(!used || (is_good(d, KEY_A) && !is_good(d, key)));
        CHECK(door_crash(d));
        CHECK(is_good(d, key) || is_good(d, KEY_A));
        CHECK(hello(d, KEY_A).ok || (rekey(d, key, KEY_A).ok && hello(d, KEY_A).ok));
        CHECK(!is_good(d, key));
        if (!fired)
            break;
        CHECK(nth < 300);
    }
}
