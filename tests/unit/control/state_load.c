#include "world.h"

TEST(a_memory_built_from_the_store_is_the_memory_that_was)
{
    struct world w;
    world_make(&w, true);
    AUTO(door_free) struct door *d = w.d;
    check_books(d, "the world");
    const char *before = memory_text(d, memory_of(d), 0);
    CHECK(door_crash(d));
    CHECK(text_is(before, memory_text(d, memory_of(d), 0)));
    check_picture(d, "the world");
}

TEST(more_jobs_than_one_page_are_all_loaded)
{
    AUTO(door_free) struct door *d = door_new(false);
    enum { MANY = 4200 };
    struct flying *all[100];
    for (int i = 0; i < MANY; i += 100) {
        for (int k = 0; k < 100; k++)
            all[k] = door_send(d, d->admin, NULL, VERB_JOB_SUBMIT, "{\"command\":[\"true\"]}",
                               FMT(d, "k%d", i + k));
        for (int k = 0; k < 100; k++)
            CHECK(door_landed(d, all[k]).ok);
    }
    CHECK(rows_in(d, "job") == MANY);
    check_books(d, "many");
}

TEST(a_store_that_does_not_hold_together_is_refused_in_words)
{
    static const struct {
        enum statement st;
        struct value args[8];
        int count;
    } rows[] = {
        { ST_TASK_ADD,
          { V_INT(5), V_INT(0), V_INT(1), V_INT(JOB_RUNNING), V_INT(1), V_INT(0), V_INT(0) },
          7 },
        { ST_ATTEMPT_ADD,
          { V_INT(5),
            V_INT(6),
            V_INT(0),
            V_INT(1),
            V_INT(7),
            { VALUE_TEXT, 0, "{}", 2 },
            V_INT(1),
            V_INT(1) },
          8 },
        { ST_NODE_ADD,
          { V_INT(5), { VALUE_TEXT, 0, "n", 1 }, { VALUE_TEXT, 0, "not json", 8 }, V_INT(1) },
          4 },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(door_free) struct door *d = door_new(false);
        struct err err = { 0 };
        bool unknown;
        struct state *s = NULL;
        CHECK(store_commit(d->control->writer.conn,
                           &(struct write){ rows[i].st, rows[i].count, rows[i].args }, 1, &unknown,
                           &err));
        CHECK(!state_load(d->conn, os_wall_ms(d->os), 1, 1, &s, &err) && !s
              && strstr(err.text, "does not hold together"));
    }
}

TEST(a_load_that_fails_anywhere_leaves_nothing_behind)
{
    struct world w;
    world_make(&w, false);
    AUTO(door_free) struct door *d = w.d;
    for (int nth = 1;; nth++) {
        struct state *s = NULL;
        struct err err = { 0 };
        fault_arm(nth);
        bool ok = state_load(d->conn, os_wall_ms(d->os), 1, 1, &s, &err), fired = fault_fired();
        fault_arm(0);
        CHECK(ok == !fired && (s != NULL) == ok);
        state_free(s);
        if (!fired)
            break;
        CHECK(nth < 200);
    }
}

TEST(a_key_that_a_clock_ahead_had_expired_is_good_again_when_the_clock_is_right)
{
    AUTO(door_free) struct door *d = door_new(false);
    struct answer a = door_ask(d, d->admin, VERB_KEY_CREATE, "{\"expires_in\":\"30m\"}");
    sim_wall_jump(d->sim, 3600 * 1000);
    CHECK(door_crash(d) && !door_ask(d, get(&a, "key"), VERB_VOLUME_CREATE, "{\"name\":\"v\"}").ok);
    sim_wall_jump(d->sim, -3600 * 1000);
    CHECK(door_ask(d, get(&a, "key"), VERB_WHOAMI, NULL).ok
          && door_ask(d, get(&a, "key"), VERB_VOLUME_CREATE, "{\"name\":\"v\"}").ok);
}
