#include "door.h"
#include <stdio.h>
#include <stdlib.h>

TEST(jobs_are_listed_newest_first_page_by_page_without_a_gap)
{
    AUTO(door_free) struct door *d = door_new(false);
    enum { MANY = 23 };
    const char *ids[MANY];
    for (int i = 0; i < MANY; i++)
        ids[i]
            = door_submit(d, d->admin, FMT(d, "{\"name\":\"j%d\",\"command\":[\"true\"]}", i % 3));
    const char *page = "";
    int seen = 0;
    do {
        struct answer a
            = door_ask(d, d->admin, VERB_JOB_LIST, FMT(d, "{\"limit\":5,\"page\":\"%s\"}", page));
        CHECK(a.ok && item_count(&a) <= 5);
        for (size_t i = 0; i < item_count(&a); i++)
            CHECK(text_is(item(d, &a, i, "id"), ids[MANY - 1 - seen++]));
        page = get(&a, "next");
    } while (text_given(page) && seen < 100);
    CHECK(seen == MANY);
    CHECK(door_ask(d, d->admin, VERB_JOB_CANCEL, FMT(d, "{\"job\":\"%s\"}", ids[0])).ok);
    struct answer live = door_ask(d, d->admin, VERB_JOB_LIST, "{}"),
                  all = door_ask(d, d->admin, VERB_JOB_LIST, "{\"all\":true}");
    struct answer state = door_ask(d, d->admin, VERB_JOB_LIST, "{\"state\":\"cancelled\"}"),
                  name = door_ask(d, d->admin, VERB_JOB_LIST, "{\"name\":\"j1\"}");
    CHECK(item_count(&live) == MANY - 1 && item_count(&all) == MANY && item_count(&state) == 1
          && item_count(&name) == 8);
    struct answer bad = door_ask(d, d->admin, VERB_JOB_LIST, "{\"page\":\"7\"}"),
                  odd = door_ask(d, d->admin, VERB_JOB_LIST, "{\"state\":\"happy\"}");
    CHECK(!bad.ok && text_is(bad.err.field, "page") && !odd.ok && text_is(odd.err.field, "state"));
}

/* exec, dial and ssh of an array that names no task */
static bool all_go_to(struct door *d, int64_t task)
{
    struct answer all[] = { door_ask(d, d->admin, VERB_JOB_EXEC, "{\"job\":\"x\",\"argv\":[\"sh\"]}"), door_ask(d, d->admin, VERB_JOB_DIAL, "{\"job\":\"x\",\"port\":80}"),
                            door_ask(d, d->admin, VERB_JOB_SSH, "{\"job\":\"x\",\"keys\":[\"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINAFP4FVHFSQR5i8x2p0NXH8yArPvV+ue+K7UlRDjM3p\"]}") };
    for (size_t i = 0; i < COUNT(all); i++)
        if (!all[i].ok || get_int(&all[i], "task") != task)
            return false;
    return true;
}

TEST(who_names_no_task_of_an_array_goes_into_the_first_that_runs)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    door_node(d, "n1", 3, key);
    const char *job = door_submit(d, d->admin, "{\"name\":\"x\",\"command\":[\"true\"],\"gpus\":\"1\",\"count\":4}");
    CHECK(all_go_to(d, 0));
    CHECK(door_place(d, job, 0, "n1", 0) && door_place(d, job, 1, "n1", 1) && door_place(d, job, 2, "n1", 2));
    CHECK(door_report(d, key, 1, door_attempt(d, job, 0), "started", NULL).ok && all_go_to(d, 0));
    CHECK(door_report(d, key, 2, door_attempt(d, job, 0), "ended", ",\"outcome\":\"succeeded\"").ok && all_go_to(d, 1));
    CHECK(door_report(d, key, 3, door_attempt(d, job, 2), "started", NULL).ok && all_go_to(d, 2));
    struct answer logs = door_ask(d, d->admin, VERB_JOB_LOGS, "{\"job\":\"x\"}"), named = door_ask(d, d->admin, VERB_JOB_EXEC, "{\"job\":\"x\",\"task\":0,\"argv\":[\"sh\"]}");
    CHECK(logs.ok && get_int(&logs, "task") == 0 && named.ok && get_int(&named, "task") == 0);
}

TEST(a_job_is_shown_by_id_or_as_the_newest_of_its_name_with_its_tasks_and_attempts)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    door_node(d, "n1", 2, key);
    door_submit(d, d->admin, "{\"name\":\"x\",\"command\":[\"true\"]}");
    const char *job = door_submit(d, d->admin,
                                  "{\"name\":\"x\",\"command\":[\"true\"],\"gpus\":\"1\",\"count\":"
                                  "3,\"retries\":1,\"retry_delay\":\"0s\"}");
    CHECK(text_is(job_word(d, "x", "id"), job));
    CHECK(door_place(d, job, 0, "n1", 0) && door_place(d, job, 1, "n1", 1));
    CHECK(door_report(d, key, 1, door_attempt(d, job, 0), "started", NULL).ok);
    CHECK(door_report(d, key, 2, door_attempt(d, job, 0), "ended",
                      ",\"outcome\":\"exited\",\"exit_code\":9,\"detail\":\"boom\"")
              .ok
          && door_place(d, job, 0, "n1", 0));
    struct answer tasks = door_ask(d, d->admin, VERB_JOB_TASKS, "{\"job\":\"x\",\"limit\":1}");
    CHECK(item_count(&tasks) == 1 && text_is(item(d, &tasks, 0, "task"), "0")
          && text_is(item(d, &tasks, 0, "tries"), "2"));
    tasks = door_ask(d, d->admin, VERB_JOB_TASKS,
                     FMT(d, "{\"job\":\"x\",\"page\":\"%s\"}", get(&tasks, "next")));
    CHECK(item_count(&tasks) == 1 && text_is(item(d, &tasks, 0, "task"), "1")
          && text_is(get(&tasks, "next"), ""));
    struct answer list = door_ask(d, d->admin, VERB_JOB_ATTEMPTS, "{\"job\":\"x\"}");
    CHECK(item_count(&list) == 3 && text_is(item(d, &list, 0, "outcome"), "exited")
          && text_is(item(d, &list, 0, "detail"), "boom"));
    CHECK(text_is(item(d, &list, 0, "gpus"), "0 (simulated)")
          && text_is(item(d, &list, 2, "state"), "placed"));
    struct answer one = door_ask(d, d->admin, VERB_JOB_LOGS, "{\"job\":\"x\",\"attempt\":1}"),
                  late = door_ask(d, d->admin, VERB_JOB_LOGS, "{\"job\":\"x\",\"attempt\":9}");
    CHECK(text_is(get(&one, "attempt"), item(d, &list, 0, "id")) && !late.ok
          && late.err.rc == RC_NOT_FOUND);
    struct answer waits
        = door_ask(d, d->admin, VERB_JOB_EXEC, "{\"job\":\"x\",\"task\":2,\"argv\":[\"sh\"]}"),
        outside
        = door_ask(d, d->admin, VERB_JOB_FILES, "{\"job\":\"x\",\"task\":3,\"path\":\"/\"}");
    CHECK(waits.ok && text_is(get(&waits, "attempt"), "") && !outside.ok
          && text_is(outside.err.field, "task"));
    struct answer whole = door_ask(d, d->admin, VERB_JOB_GET, "{\"job\":\"x\"}");
    CHECK(json_get(whole.json, "simulated")->flag && text_is(get(&whole, "node"), "n1")
          && whole.version == get_int(&whole, "version"));
}
