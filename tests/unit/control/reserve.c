#include "base/when.h"
#include "door.h"
#include <stdio.h>

static struct answer reserve(struct door *d, const char *more)
{
    return door_ask(d, d->admin, VERB_RESERVE_CREATE, FMT(d, "{\"project\":\"default\"%s}", more));
}

static size_t listed(struct door *d, const char *key, const char *ask)
{
    struct answer a = door_ask(d, key, VERB_RESERVE_LIST, ask);
    CHECK(a.ok);
    return item_count(&a);
}

TEST(a_reservation_is_kept_shown_and_ends_by_itself)
{
    AUTO(door_free) struct door *d = door_new(true);
    char key[SECRET_TEXT];
    door_node(d, "n1", 4, key);
    struct answer a = reserve(d, ",\"name\":\"soon\",\"gpus\":\"H200:2\",\"duration\":\"10m\"");
    CHECK(a.ok && text_is(get(&a, "state"), "active") && text_is(get(&a, "gpus"), "H200:2") && get_int(&a, "count") == 1 && text_is(get(&a, "project"), "default"));
    check_books(d, "reserved");
    check_picture(d, "reserved");
    door_run(d, 5000);
    CHECK(door_events(d, "reservation.active") == 1);
    CHECK(door_crash(d) && listed(d, d->admin, NULL) == 1);
    CHECK(door_hello(d, key, "n1", 4, 1, (struct texts){ 0 }).ok);
    check_books(d, "a new server");
    check_picture(d, "a new server");
    CHECK(door_events(d, "reservation.active") == 1 && door_events(d, "reservation.over") == 0);
    door_run(d, 601 * 1000);
    CHECK(door_events(d, "reservation.active") == 1 && door_events(d, "reservation.over") == 1);
    CHECK(listed(d, d->admin, NULL) == 0 && listed(d, d->admin, "{\"all\":true}") == 1 && map_count(memory_of(d)->reservations) == 0);
    struct answer over = door_ask(d, d->admin, VERB_RESERVE_GET, "{\"reservation\":\"soon\"}");
    CHECK(over.ok && text_is(get(&over, "state"), "over"));
    CHECK(!door_ask(d, d->admin, VERB_RESERVE_REMOVE, "{\"reservation\":\"soon\"}").ok);
    check_books(d, "over");
}

TEST(what_could_not_be_kept_is_refused_and_says_how_much_there_is)
{
    AUTO(door_free) struct door *d = door_new(false);
    char keys[2][SECRET_TEXT];
    door_node(d, "n1", 4, keys[0]);
    door_node(d, "n2", 4, keys[1]);
    struct answer none = reserve(d, ",\"gpus\":\"A100:1\",\"duration\":\"1h\""), large = reserve(d, ",\"gpus\":\"H200:8\",\"duration\":\"1h\""),
                  many = reserve(d, ",\"gpus\":\"H200:4\",\"count\":3,\"duration\":\"1h\"");
    CHECK(!none.ok && none.err.rc == RC_CONFLICT && !large.ok && !many.ok && strstr(many.err.text, "only 2 of 3"));
    CHECK(reserve(d, ",\"name\":\"both\",\"gpus\":\"H200:4\",\"count\":2,\"duration\":\"1h\"").ok);
    struct answer twice = reserve(d, ",\"gpus\":\"H200:1\",\"duration\":\"30m\"");
    CHECK(!twice.ok && strstr(twice.err.text, "promised"));
    CHECK(reserve(d, FMT(d, ",\"gpus\":\"H200:4\",\"count\":2,\"from\":\"%s\",\"duration\":\"1h\"", "2030-01-01")).ok == false); /* more than a year away */
    CHECK(door_ask(d, d->admin, VERB_RESERVE_REMOVE, "{\"reservation\":\"both\"}").ok && reserve(d, ",\"gpus\":\"H200:1\",\"duration\":\"30m\"").ok);
    check_books(d, "promises");
}

TEST(bad_reservations_are_refused_by_name_and_change_nothing)
{
    static const struct { const char *more, *field; } rows[] = {
        { ",\"gpus\":\"H200:1\"", "until" },
        { ",\"gpus\":\"H200:1\",\"duration\":\"1h\",\"until\":\"2100-01-01\"", "until" },
        { ",\"gpus\":\"H200:1\",\"until\":\"2001-01-01\"", "until" },
        { ",\"gpus\":\"nonsense:x\",\"duration\":\"1h\"", "gpus" },
        { ",\"gpus\":\"H200:1\",\"duration\":\"1s\"", "duration" },
        { ",\"gpus\":\"H200:1\",\"count\":0,\"duration\":\"1h\"", "count" },
        { ",\"gpus\":\"H200:1\",\"duration\":\"1h\",\"name\":\"a b\"", "name" },
    };
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    door_node(d, "n1", 1, key);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct answer a = reserve(d, rows[i].more);
        CHECK(!a.ok && text_is(a.err.field, rows[i].field));
        if (a.ok || !text_is(a.err.field, rows[i].field))
            printf("# %s: %s %s\n", rows[i].more, a.err.field, a.err.text);
    }
    CHECK(rows_in(d, "reservation") == 0);
    CHECK(reserve(d, ",\"name\":\"one\",\"gpus\":\"1\",\"duration\":\"1h\"").ok);
    struct answer same = reserve(d, ",\"name\":\"one\",\"gpus\":\"1\",\"duration\":\"1h\"");
    CHECK(!same.ok && same.err.rc == RC_CONFLICT);
    struct answer ghost = door_ask(d, d->admin, VERB_RESERVE_CREATE, "{\"project\":\"ghost\",\"gpus\":\"1\",\"duration\":\"1h\"}");
    CHECK(!ghost.ok && text_is(ghost.err.field, "project"));
}

TEST(reserved_places_are_for_their_project_and_lent_to_spot_work_that_yields)
{
    AUTO(door_free) struct door *d = door_new(true);
    char key[SECRET_TEXT];
    door_node(d, "n1", 1, key);
    CHECK(door_ask(d, d->admin, VERB_PROJECT_CREATE, "{\"name\":\"rivals\"}").ok
          && door_ask_full(d, d->admin, "rivals", VERB_MEMBER_SET, "{\"user\":\"admin\",\"roles\":\"admin\"}", NULL, 0).ok);
    CHECK(reserve(d, ",\"gpus\":\"H200:1\",\"duration\":\"5h\"").ok);
    struct answer other = door_ask_full(d, d->admin, "rivals", VERB_JOB_SUBMIT, "{\"command\":[\"true\"],\"gpus\":1}", NULL, 0),
                  spot = door_ask_full(d, d->admin, "rivals", VERB_JOB_SUBMIT, "{\"command\":[\"true\"],\"gpus\":1,\"priority\":\"spot\"}", NULL, 0);
    door_run(d, 100);
    CHECK(other.ok && spot.ok && map_count(memory_of(d)->attempts) == 1);
    size_t i = 0;
    struct attempt *a = map_next(memory_of(d)->attempts, &i);
    CHECK(a && text_is(id_text((char[ID_TEXT]){ 0 }, PREFIX_JOB, a->task->job->id), get(&spot, "id")) && !a->stop);
    const char *own = door_submit(d, d->admin, "{\"command\":[\"true\"],\"gpus\":1}");
    door_run(d, 100);
    CHECK(a->stop && a->stop_as == OUTCOME_PREEMPTED && strstr(a->stop_why, "reservation"));
    const char *attempt = id_text(arena_take(d->mem, ID_TEXT, 1), PREFIX_ATTEMPT, a->id);
    CHECK(door_report(d, key, 1, attempt, "ended", ",\"outcome\":\"preempted\"").ok);
    door_run(d, 100);
    CHECK(text_is(job_word(d, own, "state"), "placed"));
    check_books(d, "the owner came");
}

TEST(reservations_that_do_not_meet_may_have_the_same_places)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT], from[WHEN_TEXT], late[WHEN_TEXT];
    door_node(d, "n1", 1, key);
    when_text(from, os_wall_ms(d->os) + 3600 * 1000);
    when_text(late, os_wall_ms(d->os) + 1800 * 1000);
    CHECK(reserve(d, ",\"gpus\":\"1\",\"duration\":\"1h\"").ok);
    struct answer a = reserve(d, FMT(d, ",\"gpus\":\"1\",\"from\":\"%s\",\"duration\":\"1h\"", from));
    CHECK(a.ok && text_is(get(&a, "state"), "waiting"));
    CHECK(!reserve(d, FMT(d, ",\"gpus\":\"1\",\"from\":\"%s\",\"duration\":\"10m\"", late)).ok);
}
