/* ssh_keys.c - public keys of profiles: whose they are, what is refused, and who is let in with them. */
#include "door.h"
#include "model/ssh_key.h"
#include <stdio.h>

/* The n-th key of ed25519, which nobody has the other half of. */
static const char *key(struct door *d, int n)
{
    AUTO(str_done) struct str blob = { 0 };
    AUTO(str_done) struct str text = { 0 };
    char point[32];
    memset(point, n, sizeof point);
    memcpy(point, &n, sizeof n);
    str_put(&blob, "\0\0\0\013ssh-ed25519\0\0\0\040", 19);
    str_put(&blob, point, sizeof point);
    base64_text(&text, blob.at, blob.len);
    return FMT(d, "ssh-ed25519 %s", text.at);
}
static struct answer add(struct door *d, const char *who, int n, const char *comment, const char *name)
{
    return door_ask(d, who, VERB_SSH_KEY_ADD, FMT(d, "{\"key\":\"%s%s\"%s}", key(d, n), comment, name ? FMT(d, ",\"name\":\"%s\"", name) : ""));
}
static struct answer drop(struct door *d, const char *who, const char *ref)
{
    return door_ask(d, who, VERB_SSH_KEY_REMOVE, FMT(d, "{\"ssh_key\":\"%s\"}", ref));
}
static size_t count(struct door *d, const char *who)
{
    struct answer a = door_ask(d, who, VERB_SSH_KEY_LIST, NULL);
    CHECK(a.ok);
    return item_count(&a);
}
static const char *person(struct door *d, const char *name, const char *role)
{
    CHECK(door_ask(d, d->admin, VERB_USER_CREATE, FMT(d, "{\"name\":\"%s\"}", name)).ok);
    CHECK(door_ask(d, d->admin, VERB_MEMBER_SET, FMT(d, "{\"user\":\"%s\",\"roles\":\"%s\"}", name, role)).ok);
    return door_grant(d, PRINCIPAL_USER, name, NULL, 0, 0);
}
static struct flying *send_add(struct door *d, int n, const char *name)
{
    return door_send(d, d->admin, NULL, VERB_SSH_KEY_ADD, FMT(d, "{\"key\":\"%s\"%s}", key(d, n), name ? FMT(d, ",\"name\":\"%s\"", name) : ""), NULL);
}
/* A session that brings the keys of `brought`, a list in JSON; what the door says of it. */
static struct answer session(struct door *d, const char *who, const char *brought)
{
    return door_ask(d, who, VERB_JOB_SSH, FMT(d, "{\"job\":\"lab\"%s%s}", *brought ? ",\"keys\":" : "", brought));
}
static bool lists(const struct answer *a, const char *member, const char *line)
{
    const struct json *l = a->ok ? json_get(a->json, member) : NULL;
    for (const struct json *e = l ? l->first : NULL; e; e = e->next)
        if (text_is(e->text, line))
            return true;
    return false;
}
static size_t how_many(const struct answer *a, const char *member)
{
    size_t n = 0;
    const struct json *l = a->ok ? json_get(a->json, member) : NULL;
    for (const struct json *e = l ? l->first : NULL; e; e = e->next)
        n++;
    return n;
}

TEST(a_key_is_added_once_named_after_its_comment_and_outlives_a_crash)
{
    AUTO(door_free) struct door *d = door_new(false);
    struct answer a = add(d, d->admin, 1, " Ada@Desk 7", NULL), again = add(d, d->admin, 1, " other words", NULL);
    CHECK(a.ok && text_is(get(&a, "name"), "ada-desk-7") && text_is(get(&a, "state"), "active") && text_starts(get(&a, "fingerprint"), "SHA256:"));
    CHECK(strlen(get(&a, "fingerprint")) == 50 && text_is(get(&a, "key"), FMT(d, "%s Ada@Desk 7", key(d, 1))));
    CHECK(again.ok && text_is(get(&again, "id"), get(&a, "id")) && door_events(d, "ssh_key.added") == 1);
    struct answer same = add(d, d->admin, 2, " Ada@Desk 7", NULL), none = add(d, d->admin, 3, "", NULL);
    CHECK(same.ok && text_starts(get(&same, "name"), "key-") && none.ok && text_starts(get(&none, "name"), "key-"));
    CHECK(door_crash(d) && count(d, d->admin) == 3);
    struct answer by_print = drop(d, d->admin, get(&a, "fingerprint"));
    CHECK(by_print.ok && text_is(get(&by_print, "state"), "removed") && count(d, d->admin) == 2);
    CHECK(!drop(d, d->admin, get(&a, "id")).ok && drop(d, d->admin, get(&none, "id")).ok && drop(d, d->admin, get(&same, "name")).ok);
    CHECK(count(d, d->admin) == 0 && door_events(d, "ssh_key.removed") == 3);
}

TEST(what_is_no_public_key_is_refused_and_named)
{
    static const char *const bad[] = { "", "ssh-ed25519", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5", "-----BEGIN OPENSSH PRIVATE KEY-----",
                                       "command=\\\"id\\\" ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINAFP4FVHFSQR5i8x2p0NXH8yArPvV+ue+K7UlRDjM3p",
                                       "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINAFP4FVHFSQR5i8x2p0NXH8yArPvV+ue+K7UlRDjM3p\\nssh-ed25519 AAAA" };
    AUTO(door_free) struct door *d = door_new(false);
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct answer a = door_ask(d, d->admin, VERB_SSH_KEY_ADD, FMT(d, "{\"key\":\"%s\"}", bad[i]));
        CHECK(!a.ok && a.err.rc == RC_BAD_INPUT && text_is(a.err.field, "key"));
    }
    struct answer name = add(d, d->admin, 1, "", "Not A Name"), id = add(d, d->admin, 1, "", "ssh-0000000000zzz");
    CHECK(!name.ok && text_is(name.err.field, "name") && !id.ok && text_is(id.err.field, "name"));
    CHECK(add(d, d->admin, 1, "", "laptop").ok);
    struct answer taken = add(d, d->admin, 2, "", "laptop"), other = add(d, d->admin, 1, "", "desk");
    CHECK(!taken.ok && taken.err.rc == RC_CONFLICT && !other.ok && other.err.rc == RC_CONFLICT && count(d, d->admin) == 1);
}

TEST(a_profile_holds_sixteen_and_remembers_no_more_than_it_may)
{
    AUTO(door_free) struct door *d = door_new(false);
    for (int i = 0; i < 16; i++)
        CHECK(add(d, d->admin, i, "", FMT(d, "k%d", i)).ok);
    struct answer more = add(d, d->admin, 16, "", NULL);
    CHECK(!more.ok && more.err.rc == RC_OVER_QUOTA && add(d, d->admin, 5, "", NULL).ok);
    for (int i = 0; i < 300; i++) {
        CHECK(drop(d, d->admin, FMT(d, "k%d", i)).ok && add(d, d->admin, 16 + i, "", FMT(d, "k%d", 16 + i)).ok);
        door_run(d, 5);
    }
    CHECK(count(d, d->admin) == 16 && rows_in(d, "ssh_key") == 256);
    CHECK(add(d, person(d, "bob", "developer"), 16 + 299, "", NULL).ok);    /* another's profile is another's */
}

TEST(the_profile_lets_its_owner_in_and_nobody_else)
{
    AUTO(door_free) struct door *d = door_new(false);
    const char *ada = person(d, "ada", "developer"), *bob = person(d, "bob", "developer"), *vic = person(d, "vic", "viewer");
    CHECK(text_given(door_submit(d, ada, "{\"name\":\"lab\",\"command\":[\"true\"]}")));
    struct answer none = session(d, ada, "");
    CHECK(!none.ok && none.err.rc == RC_BAD_INPUT && text_is(none.err.field, "keys"));
    CHECK(add(d, ada, 1, " desk", NULL).ok && add(d, bob, 2, "", NULL).ok && add(d, vic, 3, "", NULL).ok);
    struct answer a = session(d, ada, ""), b = session(d, bob, FMT(d, "[\"%s\"]", key(d, 9))), v = session(d, vic, "");
    CHECK(a.ok && how_many(&a, "let_in") == 1 && lists(&a, "let_in", FMT(d, "%s desk", key(d, 1))) && how_many(&a, "barred") == 0);
    CHECK(b.ok && how_many(&b, "let_in") == 2 && lists(&b, "let_in", key(d, 2)) && lists(&b, "let_in", key(d, 9)));
    CHECK(!v.ok && v.err.rc == RC_DENIED);
    struct answer twice = session(d, ada, FMT(d, "[\"%s\",\"%s x\"]", key(d, 1), key(d, 1)));
    CHECK(twice.ok && how_many(&twice, "let_in") == 1);
}

TEST(a_removed_key_lets_nobody_in_even_when_it_is_brought_until_it_is_added_again)
{
    AUTO(door_free) struct door *d = door_new(false);
    CHECK(text_given(door_submit(d, d->admin, "{\"name\":\"lab\",\"command\":[\"true\"]}")));
    CHECK(add(d, d->admin, 1, "", "old").ok && add(d, d->admin, 2, "", "new").ok && drop(d, d->admin, "old").ok);
    const char *bring = FMT(d, "[\"%s by hand\"]", key(d, 1));
    struct answer a = session(d, d->admin, bring);
    CHECK(a.ok && how_many(&a, "let_in") == 1 && lists(&a, "let_in", key(d, 2)) && lists(&a, "barred", key(d, 1)));
    CHECK(drop(d, d->admin, "new").ok && door_crash(d));
    struct answer last = session(d, d->admin, bring);
    CHECK(!last.ok && last.err.rc == RC_BAD_INPUT && strstr(last.err.text, "removed"));
    door_run(d, 11 * 60 * 1000);
    struct answer later = session(d, d->admin, FMT(d, "[\"%s\",\"%s\"]", key(d, 1), key(d, 3)));
    CHECK(later.ok && how_many(&later, "let_in") == 1 && how_many(&later, "barred") == 0);   /* its lines have gone by themselves */
    CHECK(add(d, d->admin, 1, "", "again").ok);
    struct answer back = session(d, d->admin, bring);
    CHECK(back.ok && lists(&back, "let_in", key(d, 1)) && rows_in(d, "ssh_key") == 2);
}

TEST(those_who_come_at_once_see_what_the_one_before_decided)
{
    AUTO(door_free) struct door *d = door_new(false);
    struct flying *all[40];
    size_t good = 0;
    for (int i = 0; i < 40; i++) /* together in one commit */
        all[i] = send_add(d, 1, NULL);
    for (int i = 0; i < 40; i++)
        good += door_landed(d, all[i]).ok;
    CHECK(good == 40 && count(d, d->admin) == 1 && rows_in(d, "ssh_key") == 1 && door_events(d, "ssh_key.added") == 1);
    for (int i = 0; i < 40; i++)
        all[i] = send_add(d, 1 + i, NULL);
    good = 0;
    for (int i = 0; i < 40; i++)
        good += door_landed(d, all[i]).ok;
    CHECK(good == 16 && count(d, d->admin) == 16);
    for (int i = 0; i < 16; i++)
        all[i] = door_send(d, d->admin, NULL, VERB_SSH_KEY_REMOVE, FMT(d, "{\"ssh_key\":\"%s\"}", ssh_key_fingerprint(key(d, 1 + i), d->mem)), NULL);
    for (int i = 0; i < 16; i++)
        CHECK(door_landed(d, all[i]).ok);
    all[0] = send_add(d, 1, "one");
    all[1] = send_add(d, 2, "one");
    all[2] = door_send(d, d->admin, NULL, VERB_SSH_KEY_REMOVE, "{\"ssh_key\":\"one\"}", NULL);
    all[3] = door_send(d, d->admin, NULL, VERB_SSH_KEY_REMOVE, "{\"ssh_key\":\"one\"}", NULL);
    all[4] = send_add(d, 50, "one");
    struct answer a[5];
    for (int i = 0; i < 5; i++)
        a[i] = door_landed(d, all[i]);
    CHECK(a[0].ok && !a[1].ok && a[1].err.rc == RC_CONFLICT && a[2].ok && !a[3].ok && a[3].err.rc == RC_NOT_FOUND && a[4].ok);
    CHECK(count(d, d->admin) == 1 && rows_in(d, "ssh_key") == 17);
}

TEST(what_must_be_forgotten_at_once_is_forgotten_once_each)
{
    AUTO(door_free) struct door *d = door_new(false);
    struct flying *all[16];
    for (int i = 0; i < 256; i++)
        CHECK(add(d, d->admin, i, "", FMT(d, "k%d", i)).ok && drop(d, d->admin, FMT(d, "k%d", i)).ok);
    for (int i = 0; i < 16; i++)
        all[i] = send_add(d, 256 + i, NULL);
    for (int i = 0; i < 16; i++)
        CHECK(door_landed(d, all[i]).ok);
    CHECK(rows_in(d, "ssh_key") == 256 && count(d, d->admin) == 16);
}

TEST(of_a_key_that_is_there_several_times_nothing_lets_in_once_it_is_removed)
{
    AUTO(door_free) struct door *d = door_new(false);
    struct err err;
    bool unknown;
    CHECK(text_given(door_submit(d, d->admin, "{\"name\":\"lab\",\"command\":[\"true\"]}")));
    struct answer first = add(d, d->admin, 1, "", "k1"), me = door_ask(d, d->admin, VERB_WHOAMI, NULL);
    int64_t owner;
    CHECK(first.ok && me.ok && id_parse(get(&me, "id"), PREFIX_USER, &owner));
    for (int i = 0; i < 3; i++) { /* as an older program could leave them */
        struct value args[] = { V_INT(70 + i), V_INT(PRINCIPAL_USER), V_INT(owner), V_TEXT("k1"), V_TEXT(key(d, 1)), V_TEXT(""), V_INT(1) };
        CHECK(store_commit(d->control->writer.conn, &(struct write){ ST_SSH_KEY_ADD, COUNT(args), args }, 1, &unknown, &err));
    }
    struct answer in = session(d, d->admin, "");
    CHECK(count(d, d->admin) == 4 && in.ok && how_many(&in, "let_in") == 1);
    CHECK(drop(d, d->admin, "k1").ok && count(d, d->admin) == 0 && !session(d, d->admin, FMT(d, "[\"%s\"]", key(d, 1))).ok);
    CHECK(add(d, d->admin, 1, "", NULL).ok && count(d, d->admin) == 1);
    struct answer back = session(d, d->admin, "");
    CHECK(back.ok && how_many(&back, "let_in") == 1 && how_many(&back, "barred") == 0);
}

TEST(an_api_key_that_may_less_than_its_owner_or_ends_before_it_leaves_the_profile_alone)
{
    AUTO(door_free) struct door *d = door_new(false);
    const char *ada = person(d, "ada", "admin"), *vic = person(d, "vic", "viewer");
    const char *looks = door_grant(d, PRINCIPAL_USER, "ada", "default", ROLE_VIEWER, 0), *all = door_grant(d, PRINCIPAL_USER, "ada", "default", ROLE_ADMIN, 0),
               *ends = door_grant(d, PRINCIPAL_USER, "ada", "default", ROLE_ADMIN, os_wall_ms(d->os) + 3600 * 1000),
               *hers = door_grant(d, PRINCIPAL_USER, "vic", "default", ROLE_VIEWER, 0);
    CHECK(add(d, ada, 1, "", "desk").ok && add(d, all, 2, "", "lap").ok && add(d, hers, 3, "", NULL).ok && add(d, vic, 4, "", NULL).ok);
    struct answer put = add(d, looks, 5, "", NULL), again = add(d, looks, 1, "", NULL), cut = drop(d, looks, "desk"), late = add(d, ends, 5, "", NULL);
    CHECK(!put.ok && put.err.rc == RC_DENIED && !again.ok && again.err.rc == RC_DENIED && !cut.ok && cut.err.rc == RC_DENIED);
    CHECK(!late.ok && late.err.rc == RC_DENIED && count(d, looks) == 2 && drop(d, ends, "desk").ok && count(d, ada) == 1);
}

TEST(a_project_does_not_hear_of_the_profiles_of_its_people)
{
    AUTO(door_free) struct door *d = door_new(false);
    const char *ada = person(d, "ada", "developer"), *vic = person(d, "vic", "viewer"), *body = FMT(d, "{\"key\":\"%s of-ada\"}", key(d, 1));
    struct answer a = door_landed(d, door_send(d, ada, "default", VERB_SSH_KEY_ADD, body, "once")), again = door_landed(d, door_send(d, ada, "default", VERB_SSH_KEY_ADD, body, "once"));
    CHECK(a.ok && again.ok && text_is(get(&a, "id"), get(&again, "id")) && door_events(d, "ssh_key.added") == 1);
    struct answer events = door_landed(d, door_send(d, vic, "default", VERB_EVENT_LIST, NULL, NULL));
    CHECK(events.ok && !strstr(events.text, "ssh_key") && !strstr(events.text, "of-ada"));
}
