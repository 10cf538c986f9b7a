#include "door.h"
#include "world.h"

/* Both doors must find the same: the writer in its memory, a reader in the store. */
TEST(memory_and_store_tell_the_same_facts_about_every_key)
{
    struct world w;
    world_make(&w, false);
    AUTO(door_free) struct door *d = w.d;
    static const char *const projects[] = { "", "default", "beta", "ghost" };
    for (enum who who = 0; who < WHO_COUNT; who++)
        for (size_t p = 0; p < COUNT(projects); p++) {
            struct credential from;
            struct auth_facts memory, store;
            struct caller a = { 0 }, b = { 0 };
            struct err e1 = { 0 }, e2 = { 0 };
            if (!w.keys[who])
                continue;
            control_credential(d->control, w.keys[who], projects[p], "test", &from);
            state_facts(memory_of(d), &from, &memory);
            CHECK(auth_facts_read(d->conn, from.hash, from.project, d->mem, &store, &e2));
            bool ok1 = auth_decide(&memory, from.project, os_wall_ms(d->os), &a, &e1),
                 ok2 = auth_decide(&store, from.project, os_wall_ms(d->os), &b, &e2);
            CHECK(ok1 == ok2 && a.kind == b.kind && a.id == b.id && a.key == b.key
                  && a.project == b.project && a.org == b.org && a.roles == b.roles);
            CHECK(text_is(a.name, b.name) && text_is(e1.text, e2.text));
        }
}

TEST(things_are_found_by_id_and_by_name_in_their_own_project_only)
{
    AUTO(door_free) struct door *d = door_new(false);
    struct answer v = door_ask(d, d->admin, VERB_VOLUME_CREATE, "{\"name\":\"data\"}");
    struct state *s = memory_of(d);
    int64_t here = state_project(s, "default")->id;
    CHECK(state_volume(s, here, "data") && state_volume(s, here, get(&v, "id"))
          && !state_volume(s, here + 1, "data") && !state_volume(s, here + 1, get(&v, "id")));
    CHECK(!state_volume(s, here, "nosuch") && !state_project(s, "nosuch")
          && !state_person(s, "nosuch") && !state_node(s, "nosuch")
          && !state_job(s, here, "nosuch"));
    const char *first = door_submit(d, d->admin, "{\"name\":\"x\",\"command\":[\"true\"]}"),
               *second = door_submit(d, d->admin, "{\"name\":\"x\",\"command\":[\"true\"]}");
    char id[ID_TEXT];
    CHECK(text_is(id_text(id, PREFIX_JOB, state_job(s, here, "x")->id), second)); /* the newest */
    CHECK(state_job(s, here, first) && !state_job(s, here + 1, first));
}

/* Whoever makes many of them must not be felt by others: a name is looked up in its project, and the list of all is not walked. */
TEST(a_name_is_looked_up_not_searched_for)
{
    AUTO(door_free) struct door *d = door_new(false);
    CHECK(door_ask(d, d->admin, VERB_PROJECT_CREATE, "{\"name\":\"beta\"}").ok);
    static const char *const names[] = { "default", "beta" };
    for (size_t i = 0; i < COUNT(names); i++)
        CHECK(door_ask_full(d, d->admin, names[i], VERB_SECRET_SET, "{\"name\":\"data\",\"value\":\"1\"}", NULL, 0).ok
              && door_ask_full(d, d->admin, names[i], VERB_VOLUME_CREATE, "{\"name\":\"data\"}", NULL, 0).ok
              && door_ask_full(d, d->admin, names[i], VERB_ACCOUNT_CREATE, "{\"name\":\"data\",\"roles\":\"developer\"}", NULL, 0).ok);
    CHECK(door_ask(d, d->admin, VERB_SECRET_SET, "{\"name\":\"data\",\"value\":\"2\"}").ok);
    for (int again = 0; again < 2; again++) {
        struct state *s = memory_of(d);
        int64_t here = state_project(s, "default")->id, there = state_project(s, "beta")->id;
        struct secret *x = state_secret(s, here, "data"), *y = state_secret(s, there, "data");
        struct volume *v = state_volume(s, here, "data"), *w = state_volume(s, there, "data");
        struct account *a = state_account(s, here, "data"), *b = state_account(s, there, "data");
        CHECK(x && y && x->project == here && y->project == there && x->version == 2 && state_named(s, THING_SECRET, here) == 1);
        CHECK(v && w && v->project == here && w->project == there && a && b && a->project == here && b->project == there);
        map_take(s->secrets, x->id), map_take(s->volumes, v->id), map_take(s->accounts, a->id);
        CHECK(state_secret(s, here, "data") == x && state_volume(s, here, "data") == v && state_account(s, here, "data") == a);
        map_put(s->secrets, x->id, x), map_put(s->volumes, v->id, v), map_put(s->accounts, a->id, a);
        CHECK(door_crash(d));
    }
    CHECK(door_ask(d, d->admin, VERB_SECRET_REMOVE, "{\"name\":\"data\"}").ok && door_ask(d, d->admin, VERB_VOLUME_REMOVE, "{\"volume\":\"data\"}").ok);
    struct state *s = memory_of(d);
    int64_t here = state_project(s, "default")->id, there = state_project(s, "beta")->id;
    CHECK(!state_secret(s, here, "data") && !state_volume(s, here, "data") && state_secret(s, there, "data") && state_volume(s, there, "data"));
}
