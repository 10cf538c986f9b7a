#include "door.h"
#include <stdio.h>

/* Everything the cloud says or keeps: events, listings, memory, and the files of the store. */
static bool shows(struct door *d, const char *key, const char *secret)
{
    static const enum verb_id lists[]
        = { VERB_EVENT_LIST, VERB_KEY_LIST,  VERB_SECRET_LIST, VERB_JOB_LIST,
            VERB_USER_LIST,  VERB_NODE_LIST, VERB_PROJECT_LIST };
    for (size_t i = 0; i < COUNT(lists); i++) {
        struct answer a = door_ask(d, key, lists[i], "{\"limit\":1000}");
        CHECK(a.ok);
        if (strstr(a.text, secret))
            return true;
    }
    return strstr(memory_text(d, memory_of(d), 0), secret) || on_disk(d, secret);
}

TEST(a_key_is_shown_once_and_kept_as_a_keyed_hash)
{
    AUTO(door_free) struct door *d = door_new(false);
    struct answer a = door_ask(d, d->admin, VERB_KEY_CREATE, "{\"name\":\"laptop\"}");
    const char *key = get(&a, "key");
    char hash[DIGEST_HEX];
    CHECK(a.ok && strlen(key) > 40 && text_starts(key, "ak_"));
    CHECK(door_ask(d, key, VERB_JOB_LIST, NULL).ok
          && door_ask(d, key, VERB_JOB_SUBMIT, "{\"command\":[\"true\"]}").ok);
    CHECK(!shows(d, d->admin, key) && !shows(d, d->admin, key + 8));
    digest_keyed(d->control->keys.hash, key, hash);
    CHECK(on_disk(d, hash)); /* so the search can find things */
    CHECK(!on_disk(d, d->admin));
    digest_sha256(key, strlen(key), hash);
    CHECK(!on_disk(d, hash)); /* a copy of the store is not enough to try keys */
}

TEST(the_same_idempotency_key_never_shows_a_secret_again)
{
    AUTO(door_free) struct door *d = door_new(false);
    static const struct {
        enum verb_id verb;
        const char *body;
    } once[] = { { VERB_KEY_CREATE, "{\"name\":\"x\"}" }, { VERB_NODE_TOKEN, "{}" } };
    for (int restart = 0; restart < 2; restart++)
        for (size_t i = 0; i < COUNT(once); i++) {
            struct answer a = door_ask_full(d, d->admin, NULL, once[i].verb, once[i].body,
                                            FMT(d, "k%zu", i), 0);
            if (!restart) {
                CHECK(a.ok);
                const char *secret = i ? get(&a, "token") : get(&a, "key");
                CHECK(text_given(secret) && !shows(d, d->admin, secret));
                a = door_ask_full(d, d->admin, NULL, once[i].verb, once[i].body, FMT(d, "k%zu", i),
                                  0);
            }
            CHECK(!a.ok && a.err.rc == RC_CONFLICT && !*a.text);
            if (!restart && i + 1 == COUNT(once))
                CHECK(door_crash(d));
        }
    CHECK(rows_in(d, "jointoken") == 1 && rows_in(d, "apikey") == 2);
}

TEST(a_scoped_key_cannot_widen_itself)
{
    AUTO(door_free) struct door *d = door_new(false);
    CHECK(door_ask(d, d->admin, VERB_ACCOUNT_CREATE, "{\"name\":\"bot\",\"roles\":\"admin\"}").ok);
    static const char *const scopes[] = { "viewer", "developer", "auditor", "viewer,auditor" };
    static const char *const wider[] = { "admin",
                                         "operator",
                                         "viewer,admin",
                                         "developer,operator",
                                         "viewer,developer,admin,operator,auditor",
                                         "node" };
    for (size_t i = 0; i < COUNT(scopes); i++) {
        struct answer a
            = door_ask(d, d->admin, VERB_KEY_CREATE, FMT(d, "{\"roles\":\"%s\"}", scopes[i]));
        CHECK(a.ok);
        const char *key = get(&a, "key");
        for (size_t k = 0; k < COUNT(wider); k++) {
            struct answer b
                = door_ask(d, key, VERB_KEY_CREATE, FMT(d, "{\"roles\":\"%s\"}", wider[k]));
            CHECK(!b.ok && text_is(b.err.field, "roles"));
        }
        struct answer same
            = door_ask(d, key, VERB_KEY_CREATE, "{}"); /* left out: what it may itself */
        struct answer who = door_ask(d, get(&same, "key"), VERB_WHOAMI, NULL);
        CHECK(same.ok && text_is(get(&who, "roles"), scopes[i]));
        struct answer bot = door_ask(d, key, VERB_KEY_CREATE, "{\"account\":\"bot\"}");
        CHECK(!bot.ok && text_is(bot.err.field, "account"));
        CHECK(!door_ask(d, key, VERB_MEMBER_SET, "{\"user\":\"admin\",\"roles\":\"admin\"}").ok);
    }
}

TEST(an_admin_makes_keys_for_less_than_an_admin)
{
    AUTO(door_free) struct door *d = door_new(false);
    struct answer a = door_ask(d, d->admin, VERB_KEY_CREATE, "{\"roles\":\"viewer\"}");
    CHECK(a.ok && text_is(get(&a, "roles"), "viewer"));
    CHECK(door_ask(d, get(&a, "key"), VERB_JOB_LIST, NULL).ok);
    struct answer b = door_ask(d, get(&a, "key"), VERB_JOB_SUBMIT, "{\"command\":[\"true\"]}");
    CHECK(!b.ok && b.err.rc == RC_DENIED);
    b = door_ask(d, get(&a, "key"), VERB_USER_LIST, NULL); /* nor what its owner may as operator */
    CHECK(!b.ok && b.err.rc == RC_DENIED);
}

TEST(a_scoped_key_stays_in_its_project)
{
    AUTO(door_free) struct door *d = door_new(false);
    CHECK(door_ask(d, d->admin, VERB_PROJECT_CREATE, "{\"name\":\"beta\"}").ok);
    struct answer a = door_ask(d, d->admin, VERB_KEY_CREATE, "{\"roles\":\"developer\"}");
    const char *key = get(&a, "key");
    CHECK(a.ok && text_is(get(&a, "project"), "default"));
    for (int write = 0; write < 2; write++) {
        struct answer b = door_ask_full(d, key, "beta", write ? VERB_JOB_SUBMIT : VERB_JOB_LIST,
                                        write ? "{\"command\":[\"true\"]}" : "{}", NULL, 0);
        CHECK(!b.ok && b.err.rc == RC_NOT_FOUND);
        CHECK(door_ask_full(d, d->admin, "beta", write ? VERB_JOB_SUBMIT : VERB_JOB_LIST,
                            write ? "{\"command\":[\"true\"]}" : "{}", NULL, 0)
                  .ok);
    }
}

TEST(an_expiring_key_stops_at_its_time_at_both_doors)
{
    AUTO(door_free) struct door *d = door_new(false);
    struct answer a = door_ask(d, d->admin, VERB_KEY_CREATE, "{\"expires_in\":\"60s\"}");
    const char *key = get(&a, "key");
    struct answer who = door_ask(d, key, VERB_WHOAMI, NULL);
    CHECK(a.ok && who.ok && text_given(get(&who, "key_expires")));
    door_run(d, 50000);
    CHECK(door_ask(d, key, VERB_WHOAMI, NULL).ok
          && door_ask(d, key, VERB_VOLUME_CREATE, "{\"name\":\"v\"}").ok);
    door_run(d, 11000);
    struct answer read = door_ask(d, key, VERB_WHOAMI, NULL),
                  write = door_ask(d, key, VERB_VOLUME_CREATE, "{\"name\":\"w\"}");
    CHECK(!read.ok && read.err.rc == RC_UNAUTHENTICATED && !write.ok
          && write.err.rc == RC_UNAUTHENTICATED);
    struct answer list = door_ask(d, d->admin, VERB_KEY_LIST, NULL);
    CHECK(text_is(item(d, &list, 1, "state"), "expired"));
}

TEST(a_key_does_not_outlive_the_one_it_was_made_with)
{
    AUTO(door_free) struct door *d = door_new(false);
    struct answer a = door_ask(d, d->admin, VERB_KEY_CREATE, "{\"expires_in\":\"10m\"}");
    struct answer longer = door_ask(d, get(&a, "key"), VERB_KEY_CREATE, "{\"expires_in\":\"11m\"}");
    CHECK(!longer.ok && text_is(longer.err.field, "expires_in"));
    struct answer same = door_ask(d, get(&a, "key"), VERB_KEY_CREATE, "{}");
    CHECK(same.ok && text_is(get(&same, "expires"), get(&a, "expires")));
    door_run(d, 601000);
    CHECK(!door_ask(d, get(&same, "key"), VERB_WHOAMI, NULL).ok);
}

TEST(a_disabled_key_stops_at_once_and_for_ever)
{
    AUTO(door_free) struct door *d = door_new(false);
    struct answer a = door_ask(d, d->admin, VERB_KEY_CREATE, "{\"name\":\"laptop\"}");
    const char *key = get(&a, "key");
    struct flying *use[]
        = { door_send(d, key, NULL, VERB_VOLUME_CREATE, "{\"name\":\"before\"}", NULL),
            door_send(d, d->admin, NULL, VERB_KEY_DISABLE,
                      FMT(d, "{\"key\":\"%s\"}", get(&a, "id")), NULL),
            door_send(d, key, NULL, VERB_VOLUME_CREATE, "{\"name\":\"after\"}",
                      NULL) }; /* one commit */
    CHECK(door_landed(d, use[0]).ok && door_landed(d, use[1]).ok);
    struct answer after = door_landed(d, use[2]);
    CHECK(!after.ok && after.err.rc == RC_UNAUTHENTICATED);
    CHECK(!door_ask(d, key, VERB_WHOAMI, NULL).ok);
    struct answer again
        = door_ask(d, d->admin, VERB_KEY_DISABLE, FMT(d, "{\"key\":\"%s\"}", get(&a, "id")));
    CHECK(!again.ok && again.err.rc == RC_NOT_FOUND);
    CHECK(door_crash(d));
    CHECK(!door_ask(d, key, VERB_WHOAMI, NULL).ok
          && !door_ask(d, key, VERB_VOLUME_CREATE, "{\"name\":\"later\"}").ok);
}

TEST(a_key_is_disabled_by_its_name_when_only_one_has_it)
{
    AUTO(door_free) struct door *d = door_new(false);
    struct answer a = door_ask(d, d->admin, VERB_KEY_CREATE, "{\"name\":\"one\"}");
    CHECK(door_ask(d, d->admin, VERB_KEY_CREATE, "{\"name\":\"two\"}").ok
          && door_ask(d, d->admin, VERB_KEY_CREATE, "{\"name\":\"two\"}").ok);
    CHECK(door_ask(d, d->admin, VERB_KEY_DISABLE, "{\"key\":\"one\"}").ok
          && !door_ask(d, get(&a, "key"), VERB_WHOAMI, NULL).ok);
    struct answer two = door_ask(d, d->admin, VERB_KEY_DISABLE, "{\"key\":\"two\"}");
    CHECK(!two.ok && two.err.rc == RC_CONFLICT);
}

TEST(keys_of_a_service_account_are_its_admins_business_and_end_with_it)
{
    AUTO(door_free) struct door *d = door_new(false);
    CHECK(
        door_ask(d, d->admin, VERB_ACCOUNT_CREATE, "{\"name\":\"ci\",\"roles\":\"developer\"}").ok);
    struct answer wide
        = door_ask(d, d->admin, VERB_KEY_CREATE, "{\"account\":\"ci\",\"roles\":\"admin\"}");
    CHECK(!wide.ok && text_is(wide.err.field, "roles"));
    struct answer a
        = door_ask(d, d->admin, VERB_KEY_CREATE, "{\"account\":\"ci\"}"),
        b = door_ask(d, d->admin, VERB_KEY_CREATE, "{\"account\":\"ci\",\"roles\":\"viewer\"}");
    CHECK(a.ok && b.ok
          && door_ask(d, get(&a, "key"), VERB_JOB_SUBMIT, "{\"command\":[\"true\"]}").ok);
    CHECK(!door_ask(d, get(&b, "key"), VERB_JOB_SUBMIT, "{\"command\":[\"true\"]}").ok
          && door_ask(d, get(&b, "key"), VERB_JOB_LIST, NULL).ok);
    struct answer list = door_ask(d, get(&a, "key"), VERB_PROJECT_LIST, NULL);
    CHECK(list.ok && item_count(&list) == 1);
    CHECK(door_ask(d, d->admin, VERB_KEY_DISABLE, FMT(d, "{\"key\":\"%s\"}", get(&b, "id"))).ok);
    CHECK(door_ask(d, d->admin, VERB_ACCOUNT_DISABLE, "{\"account\":\"ci\"}").ok);
    CHECK(!door_ask(d, get(&a, "key"), VERB_JOB_LIST, NULL).ok
          && !door_ask(d, get(&a, "key"), VERB_VOLUME_CREATE, "{\"name\":\"v\"}").ok);
    struct answer late = door_ask(d, d->admin, VERB_KEY_CREATE, "{\"account\":\"ci\"}");
    CHECK(!late.ok && text_is(late.err.field, "account"));
}

TEST(login_trades_a_password_for_a_session_and_says_nothing_else)
{
    AUTO(door_free) struct door *d = door_new(false);
    CHECK(
        door_ask(d, d->admin, VERB_USER_CREATE, "{\"name\":\"ada\",\"password\":\"correct horse\"}")
            .ok);
    CHECK(door_ask(d, d->admin, VERB_MEMBER_SET, "{\"user\":\"ada\",\"roles\":\"viewer\"}").ok);
    CHECK(text_starts(state_person(memory_of(d), "ada")->password, "$argon2id$")
          && !on_disk(d, "correct horse") && on_disk(d, "$argon2id$"));
    struct answer in
        = door_ask(d, NULL, VERB_LOGIN,
                   "{\"user\":\"ada\",\"password\":\"correct horse\",\"expires_in\":\"1h\"}");
    CHECK(in.ok && text_starts(get(&in, "key"), "as_")
          && door_ask(d, get(&in, "key"), VERB_JOB_LIST, NULL).ok && !on_disk(d, get(&in, "key")));
    struct answer wrong
        = door_ask(d, NULL, VERB_LOGIN, "{\"user\":\"ada\",\"password\":\"wrong horse\"}");
    struct answer nobody
        = door_ask(d, NULL, VERB_LOGIN, "{\"user\":\"bob\",\"password\":\"wrong horse\"}");
    struct answer keyless = door_ask(
        d, NULL, VERB_LOGIN, "{\"user\":\"admin\",\"password\":\"\"}"); /* has no password at all */
    CHECK(!wrong.ok && !nobody.ok && !keyless.ok && wrong.err.rc == RC_UNAUTHENTICATED
          && nobody.err.rc == wrong.err.rc && keyless.err.rc == wrong.err.rc);
    CHECK(text_is(wrong.err.text, nobody.err.text) && text_is(wrong.err.text, keyless.err.text));
    CHECK(door_ask(d, d->admin, VERB_USER_UPDATE, "{\"user\":\"ada\",\"disabled\":true}").ok);
    struct answer off
        = door_ask(d, NULL, VERB_LOGIN, "{\"user\":\"ada\",\"password\":\"correct horse\"}");
    CHECK(!off.ok && text_is(off.err.text, wrong.err.text)
          && !door_ask(d, get(&in, "key"), VERB_WHOAMI, NULL).ok);
    door_run(d, 3700 * 1000);
    CHECK(door_ask(d, d->admin, VERB_USER_UPDATE, "{\"user\":\"ada\",\"disabled\":false}").ok);
    CHECK(!door_ask(d, get(&in, "key"), VERB_WHOAMI, NULL).ok); /* its hour is over */
}
