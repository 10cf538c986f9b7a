#include "door.h"

TEST(projects_belong_to_organisations_and_names_are_taken_once)
{
    AUTO(door_free) struct door *d = door_new(false);
    struct answer a
        = door_ask(d, d->admin, VERB_PROJECT_CREATE, "{\"name\":\"vision\",\"gpus\":8}");
    CHECK(a.ok && text_is(get(&a, "org"), "default")
          && rows_in(d, "member") == 2); /* whoever makes it can let others in */
    CHECK(door_ask_full(d, d->admin, "vision", VERB_JOB_SUBMIT, "{\"command\":[\"true\"]}", NULL, 0)
              .ok);
    struct answer twice
        = door_ask(d, d->admin, VERB_PROJECT_CREATE, "{\"name\":\"vision\"}"),
        none = door_ask(d, d->admin, VERB_PROJECT_CREATE, "{\"name\":\"x\",\"org\":\"nosuch\"}");
    CHECK(!twice.ok && twice.err.rc == RC_CONFLICT && !none.ok && text_is(none.err.field, "org"));
    CHECK(door_ask(d, d->admin, VERB_ORG_CREATE, "{\"name\":\"physics\"}").ok
          && !door_ask(d, d->admin, VERB_ORG_CREATE, "{\"name\":\"physics\"}").ok);
    struct answer which = door_ask(d, d->admin, VERB_PROJECT_CREATE, "{\"name\":\"y\"}");
    CHECK(!which.ok && text_is(which.err.field, "org")); /* there are two now */
    struct answer odd = door_ask(d, d->admin, VERB_PROJECT_CREATE,
                                 FMT(d, "{\"name\":\"%s\",\"org\":\"physics\"}", get(&a, "id")));
    CHECK(!odd.ok && text_is(odd.err.field, "name")); /* a name that reads as somebody's id */
    check_books(d, "projects");
}

TEST(a_member_may_what_the_roles_say_until_taken_out)
{
    AUTO(door_free) struct door *d = door_new(false);
    CHECK(door_ask(d, d->admin, VERB_USER_CREATE, "{\"name\":\"ada\"}").ok
          && !door_ask(d, d->admin, VERB_USER_CREATE, "{\"name\":\"ada\"}").ok);
    const char *key = door_grant(d, PRINCIPAL_USER, "ada", NULL, 0, 0),
               *submit = "{\"command\":[\"true\"]}";
    CHECK(!door_ask(d, key, VERB_JOB_LIST, NULL).ok);
    CHECK(door_ask(d, d->admin, VERB_MEMBER_SET, "{\"user\":\"ada\",\"roles\":\"viewer\"}").ok);
    CHECK(door_ask(d, key, VERB_JOB_LIST, NULL).ok
          && !door_ask(d, key, VERB_JOB_SUBMIT, submit).ok);
    CHECK(
        door_ask(d, d->admin, VERB_MEMBER_SET, "{\"user\":\"ada\",\"roles\":\"viewer,developer\"}")
            .ok
        && door_ask(d, key, VERB_JOB_SUBMIT, submit).ok);
    static const char *const bad[] = { "operator", "node", "king", "", "viewer,operator" };
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct answer a = door_ask(d, d->admin, VERB_MEMBER_SET,
                                   FMT(d, "{\"user\":\"ada\",\"roles\":\"%s\"}", bad[i]));
        CHECK(!a.ok && text_is(a.err.field, "roles"));
    }
    CHECK(door_ask(d, d->admin, VERB_MEMBER_REMOVE, "{\"user\":\"ada\"}").ok
          && !door_ask(d, key, VERB_JOB_LIST, NULL).ok
          && !door_ask(d, key, VERB_JOB_SUBMIT, submit).ok);
    struct answer again = door_ask(d, d->admin, VERB_MEMBER_REMOVE, "{\"user\":\"ada\"}");
    CHECK(!again.ok && again.err.rc == RC_NOT_FOUND);
    check_books(d, "members");
}

TEST(an_update_of_a_user_changes_what_it_names_and_by_version)
{
    AUTO(door_free) struct door *d = door_new(false);
    struct answer a
        = door_ask(d, d->admin, VERB_USER_CREATE, "{\"name\":\"ada\",\"roles\":\"auditor\"}");
    const char *key = door_grant(d, PRINCIPAL_USER, "ada", NULL, 0, 0);
    CHECK(a.ok && door_ask(d, key, VERB_NODE_LIST, NULL).ok);
    struct answer b = door_ask_full(d, d->admin, NULL, VERB_USER_UPDATE,
                                    "{\"user\":\"ada\",\"disabled\":true}", NULL, a.version);
    CHECK(b.ok && text_is(get(&b, "state"), "disabled") && text_is(get(&b, "roles"), "auditor")
          && !door_ask(d, key, VERB_NODE_LIST, NULL).ok);
    struct answer stale = door_ask_full(d, d->admin, NULL, VERB_USER_UPDATE,
                                        "{\"user\":\"ada\",\"disabled\":false}", NULL, a.version);
    CHECK(!stale.ok && stale.err.rc == RC_STALE);
    CHECK(door_ask(d, d->admin, VERB_USER_UPDATE, "{\"user\":\"ada\",\"disabled\":false}").ok
          && door_ask(d, key, VERB_NODE_LIST, NULL).ok);
    CHECK(door_ask(d, d->admin, VERB_USER_UPDATE, "{\"user\":\"ada\",\"roles\":\"\"}").ok
          && !door_ask(d, key, VERB_NODE_LIST, NULL).ok);
    struct answer wide
        = door_ask(d, d->admin, VERB_USER_UPDATE, "{\"user\":\"ada\",\"roles\":\"admin\"}");
    CHECK(!wide.ok && text_is(wide.err.field, "roles"));
    check_books(d, "users");
}

TEST(an_operator_cannot_lock_out_the_last_one)
{
    AUTO(door_free) struct door *d = door_new(false);
    CHECK(!door_ask(d, d->admin, VERB_USER_UPDATE, "{\"user\":\"admin\",\"disabled\":true}").ok
          && !door_ask(d, d->admin, VERB_USER_UPDATE, "{\"user\":\"admin\",\"roles\":\"auditor\"}")
                  .ok);
    CHECK(door_ask(d, d->admin, VERB_WHOAMI, NULL).ok);
}

TEST(a_password_is_changed_by_who_knows_it_and_kept_as_a_hash)
{
    AUTO(door_free) struct door *d = door_new(false);
    struct answer brief
        = door_ask(d, d->admin, VERB_USER_CREATE, "{\"name\":\"bob\",\"password\":\"seven77\"}");
    CHECK(!brief.ok && text_is(brief.err.field, "password"));
    CHECK(door_ask(d, d->admin, VERB_USER_CREATE,
                   "{\"name\":\"bob\",\"password\":\"battery staple\"}")
              .ok);
    const char *key = door_grant(d, PRINCIPAL_USER, "bob", NULL, 0, 0);
    struct answer wrong = door_ask(
        d, key, VERB_PASSWORD, "{\"password\":\"not it at all\",\"new_password\":\"another one\"}");
    CHECK(!wrong.ok && text_is(wrong.err.field, "password"));
    CHECK(door_ask(d, key, VERB_PASSWORD,
                   "{\"password\":\"battery staple\",\"new_password\":\"another one\"}")
              .ok);
    CHECK(!door_ask(d, NULL, VERB_LOGIN, "{\"user\":\"bob\",\"password\":\"battery staple\"}").ok
          && door_ask(d, NULL, VERB_LOGIN, "{\"user\":\"bob\",\"password\":\"another one\"}").ok);
    CHECK(!on_disk(d, "another one") && !on_disk(d, "battery staple"));
    check_books(d, "passwords");
}

TEST(a_flood_of_passwords_is_turned_away_and_not_queued)
{
    AUTO(door_free) struct door *d = door_new(false);
    enum { MANY = SLOW_MOST + 30 };
    struct flying *all[MANY];
    int good = 0, turned_away = 0;
    for (int i = 0; i < MANY; i++)
        all[i]
            = door_send(d, d->admin, NULL, VERB_USER_CREATE, FMT(d, "{\"name\":\"u%d\"}", i), NULL);
    for (int i = 0; i < MANY; i++) {
        struct answer a = door_landed(d, all[i]);
        good += a.ok;
        turned_away += a.err.rc == RC_TOO_MANY;
    }
    CHECK(good == SLOW_MOST && turned_away == 30 && d->control->slow_waiting == 0);
    CHECK(door_ask(d, d->admin, VERB_USER_CREATE, "{\"name\":\"late\"}").ok);
}
