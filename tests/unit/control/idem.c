#include "control/idem.h"
#include "door.h"

static const char simple[] = "{\"command\":[\"true\"]}";

static struct answer submit(struct door *d, int i)
{
    return door_ask_full(d, d->admin, NULL, VERB_JOB_SUBMIT, simple, FMT(d, "wish-%d", i), 0);
}

TEST(a_key_that_has_left_memory_is_found_in_the_store)
{
    enum { MANY = 40, MOST = 8 };
    AUTO(door_free) struct door *d = door_new(false);
    const char *first[MANY];
    struct answer volume = door_ask_full(d, d->admin, NULL, VERB_VOLUME_CREATE, "{\"name\":\"v\"}", "volume", 0);
    memory_of(d)->idem_most = MOST;
    CHECK(volume.ok && !memory_of(d)->idems_from && !d->control->looks);
    for (int i = 0; i < MANY; i++)
        first[i] = submit(d, i).text;
    CHECK(map_count(memory_of(d)->idems) <= MOST && memory_of(d)->idems_from && d->control->looks);
    const char *before = store_text(d);
    for (int i = 0; i < MANY; i++) {
        struct answer again = submit(d, i);
        CHECK(again.ok && again.replayed && text_is(again.text, first[i]));
        struct answer other = door_ask_full(d, d->admin, NULL, VERB_JOB_SUBMIT, "{\"command\":[\"false\"]}", FMT(d, "wish-%d", i), 0);
        CHECK(!other.ok && text_is(other.err.field, "Idempotency-Key"));
    }
    struct answer again = door_ask_full(d, d->admin, NULL, VERB_VOLUME_CREATE, "{\"name\":\"v\"}", "volume", 0);
    CHECK(again.ok && again.replayed && text_is(again.text, volume.text));
    again = door_ask_full(d, d->admin, NULL, VERB_VOLUME_CREATE, "{\"name\":\"v\"}", "wish-1", 0);
    CHECK(!again.ok && text_is(again.err.field, "Idempotency-Key"));
    CHECK(text_is(before, store_text(d)));
    CHECK(submit(d, MANY).ok && rows_in(d, "job") == MANY + 1);         /* a new one is new */
}

TEST(a_key_in_the_store_alone_is_its_owners_and_good_for_a_day)
{
    AUTO(door_free) struct door *d = door_new(false);
    CHECK(door_ask(d, d->admin, VERB_ACCOUNT_CREATE, "{\"name\":\"bot\"}").ok);
    const char *bot = door_grant(d, PRINCIPAL_ACCOUNT, "bot", "default", ROLE_DEVELOPER, 0);
    memory_of(d)->idem_most = 2;
    for (int i = 0; i < 6; i++)
        CHECK(submit(d, i).ok);
    struct answer b = door_ask_full(d, bot, NULL, VERB_JOB_SUBMIT, simple, "wish-0", 0);
    CHECK(b.ok && !b.replayed && rows_in(d, "job") == 7);
    sim_wall_jump(d->sim, 23LL * 3600 * 1000);
    door_run(d, 3000);
    CHECK(submit(d, 0).replayed && memory_of(d)->idems_from);
    sim_wall_jump(d->sim, 2LL * 3600 * 1000);
    door_run(d, 3000);
    CHECK(!memory_of(d)->idems_from);                   /* all that may be asked again is in memory */
    struct answer c = submit(d, 0);
    CHECK(c.ok && !c.replayed && rows_in(d, "job") == 8);
}

/* The loop did not know yet that memory does not hold all when it was asked. */
TEST(a_key_that_leaves_memory_while_it_is_asked_for_again_is_found)
{
    AUTO(door_free) struct door *d = door_new(false);
    struct answer first = submit(d, 0);
    struct flying *all[20];
    memory_of(d)->idem_most = 4;
    for (int i = 0; i < 20; i++)
        all[i] = door_send(d, d->admin, NULL, VERB_JOB_SUBMIT, simple, FMT(d, "wish-%d", (i + 1) % 20));
    for (int i = 0; i < 20; i++) {
        struct answer a = door_landed(d, all[i]);
        CHECK(a.ok && a.replayed == (i == 19) && (i < 19 || text_is(a.text, first.text)));
    }
    CHECK(rows_in(d, "job") == 20);
}

TEST(a_store_that_fails_while_a_key_is_looked_up_changes_nothing)
{
    AUTO(door_free) struct door *d = door_new(false);
    memory_of(d)->idem_most = 2;
    for (int i = 0; i < 6; i++)
        CHECK(submit(d, i).ok);
    for (int nth = 1;; nth++) {
        fault_arm(nth);
        struct answer a = submit(d, 0);
        bool fired = fault_fired();
        fault_arm(0);
        CHECK(a.ok ? a.replayed : fired);
        CHECK(rows_in(d, "job") == 6);
        if (!fired)
            break;
    }
}

static struct state *loaded_with(struct door *d, int64_t from, int64_t count, bool bare)
{
    struct value (*args)[14] = arena_take(d->mem, (size_t)count, sizeof *args);
    struct write *writes = ARENA_ARRAY(d->mem, struct write, (size_t)count);
    struct project *p = state_project(memory_of(d), "default");
    int64_t now = os_wall_ms(d->os);
    struct state *s = NULL;
    struct err err = { 0 };
    bool unknown;
    for (int64_t i = 0; i < count; i++) {
        struct value row[] = { V_INT(from + i), V_INT(p->id), V_INT(1), V_INT(7), V_TEXT("x"), V_INT(JOB_DONE), V_INT(0), V_INT(50), V_INT(1),
                               V_TEXT("{}"), V_TEXT("f"), V_TEXT(FMT(d, "key-%lld\n0123456789abcdef", (long long)(from + i))), V_INT(now),
                               bare ? V_NULL : V_INT(i) };
        memcpy(args[i], row, sizeof row);
        writes[i] = (struct write){ ST_JOB_ADD, COUNT(row), args[i] };
    }
    CHECK(store_commit(d->control->writer.conn, writes, (size_t)count, &unknown, &err));
    CHECK(state_load(d->control->writer.conn, now, 0, 1, &s, &err));
    return s;
}

TEST(of_very_many_keys_the_newest_are_loaded_and_of_an_older_programs_all)
{
    AUTO(door_free) struct door *d = door_new(false);
    struct state *s = loaded_with(d, 1000, 100, false);
    CHECK(s && map_count(s->idems) == 100 && !s->idems_from);
    state_free(s);
    s = loaded_with(d, 2000, IDEM_LOAD, false);
    CHECK(s && map_count(s->idems) <= IDEM_LOAD + 100 && s->idems_from == s->last_event);
    state_free(s);
    s = loaded_with(d, 100000, 3000, true);
    CHECK(s && map_get_text(s->idems, FMT(d, "%lld/7/key-100000", (long long)state_project(s, "default")->id)));
    CHECK(s && map_get_text(s->idems, FMT(d, "%lld/7/key-102999", (long long)state_project(s, "default")->id)));
    CHECK(s && map_count(s->idems) >= 3000);
    state_free(s);
}
