#include "door.h"
#include <stdlib.h>

TEST(events_are_read_on_from_a_number_and_each_project_sees_its_own)
{
    AUTO(door_free) struct door *d = door_new(false);
    CHECK(door_ask(d, d->admin, VERB_PROJECT_CREATE, "{\"name\":\"beta\"}").ok
          && door_ask(d, d->admin, VERB_USER_CREATE, "{\"name\":\"vera\"}").ok);
    CHECK(door_ask_full(d, d->admin, "beta", VERB_MEMBER_SET,
                        "{\"user\":\"vera\",\"roles\":\"viewer\"}", NULL, 0)
              .ok);
    for (int i = 0; i < 10; i++)
        door_submit(d, d->admin, "{\"command\":[\"true\"]}");
    CHECK(door_ask_full(d, d->admin, "beta", VERB_JOB_SUBMIT, "{\"command\":[\"true\"]}", NULL, 0)
              .ok);
    int64_t since = 0, seen = 0;
    for (;;) {
        struct answer a = door_ask(d, d->admin, VERB_EVENT_LIST,
                                   FMT(d, "{\"since\":%lld,\"limit\":4}", (long long)since));
        for (size_t i = 0; i < item_count(&a); i++)
            CHECK(strtoll(item(d, &a, i, "id"), NULL, 10) == ++seen); /* no gap, no repetition */
        since = seen;
        if (!text_given(get(&a, "next")))
            break;
    }
    CHECK(seen == rows_in(d, "event"));
    struct answer hers
        = door_ask(d, door_grant(d, PRINCIPAL_USER, "vera", NULL, 0, 0), VERB_EVENT_LIST, NULL);
    CHECK(hers.ok && item_count(&hers) == 3); /* project.created, member.set, job.queued */
    for (size_t i = 0; i < item_count(&hers); i++)
        CHECK(text_is(item(d, &hers, i, "project"), item(d, &hers, 0, "project")));
}

TEST(usage_is_summed_over_any_number_of_rows_and_each_project_sees_its_own)
{
    AUTO(door_free) struct door *d = door_new(false);
    enum { MANY = 10500 };
    struct err err;
    bool unknown;
    int64_t here = state_project(memory_of(d), "default")->id,
            owner = state_person(memory_of(d), "admin")->id;
    struct value(*args)[16] = calloc(MANY, sizeof *args);
    struct write *writes = calloc(MANY, sizeof *writes);
    for (int i = 0; i < MANY; i++) {
        struct value row[16] = { V_INT(i + 1),      V_INT(i % 2 ? here : 99),
                                 V_INT(1),          V_INT(owner),
                                 V_INT(1),          V_INT(1),
                                 V_TEXT("h200.1x"), V_INT(1000),
                                 V_INT(10),         V_INT(1000),
                                 V_INT(10),         V_INT(1000),
                                 V_INT(3000),       V_INT(i % 4 != 1),
                                 V_INT(0),          V_INT(0) };
        memcpy(args[i], row, sizeof row);
        writes[i] = (struct write){ ST_USAGE_ADD, 16, args[i] };
    }
    CHECK(store_commit(d->control->writer.conn, writes, MANY, &unknown, &err));
    struct answer all = door_ask(d, d->admin, VERB_USAGE_SUM, NULL); /* an operator's */
    int64_t tasks = 0;
    for (size_t i = 0; i < item_count(&all); i++)
        tasks += strtoll(item(d, &all, i, "tasks"), NULL, 10);
    CHECK(item_count(&all) == 2 && tasks == MANY - MANY / 4);
    CHECK(door_ask(d, d->admin, VERB_ACCOUNT_CREATE, "{\"name\":\"bot\",\"roles\":\"viewer\"}").ok);
    struct answer mine
        = door_ask(d, door_grant(d, PRINCIPAL_ACCOUNT, "bot", "default", ROLE_VIEWER, 0),
                   VERB_USAGE_SUM, "{\"by\":\"user\"}");
    CHECK(item_count(&mine) == 1 && text_is(item(d, &mine, 0, "user"), "admin")
          && strtoll(item(d, &mine, 0, "tasks"), NULL, 10) == MANY / 4);
    CHECK(strtoll(item(d, &mine, 0, "seconds"), NULL, 10) == MANY / 4 * 2);
    struct answer bad = door_ask(d, d->admin, VERB_USAGE_SUM, "{\"by\":\"moon\"}");
    CHECK(!bad.ok && text_is(bad.err.field, "by"));
    free(args);
    free(writes);
}
