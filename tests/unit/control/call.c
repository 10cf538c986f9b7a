#include "door.h"
#include <stdio.h>

TEST(a_name_that_reads_as_an_id_of_its_kind_is_refused)
{
    struct err err = { 0 };
    CHECK(!name_check("prj-0s7w6g805jf89", PREFIX_PROJECT, &err) && text_is(err.field, "name"));
    CHECK(name_check("prj-0s7w6g805jf89", PREFIX_VOLUME, &err)
          && name_check("vision", PREFIX_PROJECT, &err)
          && name_check("prj-short", PREFIX_PROJECT, &err));
}

TEST(rows_events_and_news_of_a_verb_are_kept_in_order_and_copied)
{
    AUTO(door_free) struct door *d = door_new(false);
    struct batch b = { .mem = arena_new() };
    struct request r = { .verb = VERB_ORG_CREATE, .who = system_caller };
    struct call c = { .control = d->control,
                      .s = memory_of(d),
                      .batch = &b,
                      .r = &r,
                      .who = &r.who,
                      .mem = d->mem,
                      .now_ms = 5 };
    int64_t before = c.s->last_event;
    for (int i = 0; i < 200; i++) { /* more than one growth */
        char subject[16];
        snprintf(subject, sizeof subject, "s%d", i);
        emit_event(&c, i, "test.kind", subject, NULL);
        emit_news(&c, SCHED_JOB_GONE)->job = i;
        memset(subject, 'x', sizeof subject);
    }
    CHECK(b.event_count == 200 && b.write_count == 200 && b.news_count == 200);
    for (int i = 0; i < 200; i++) {
        CHECK(b.events[i].seq == before + 1 + i && b.events[i].project == i
              && text_is(b.events[i].subject, FMT(d, "s%d", i)) && text_is(b.events[i].data, "{}"));
        CHECK(b.news[i].job == i && b.writes[i].args[0].n == before + 1 + i
              && text_is(b.writes[i].args[4].text, FMT(d, "s%d", i)));
    }
    c.s->last_event = before;
    arena_free(b.mem);
}

TEST(who_has_no_key_has_no_idempotency_key_either)
{
    AUTO(door_free) struct door *d = door_new(false);
    struct answer t1 = door_ask(d, d->admin, VERB_NODE_TOKEN, NULL),
                  t2 = door_ask(d, d->admin, VERB_NODE_TOKEN, NULL);
    struct answer a
        = door_ask_full(d, NULL, NULL, VERB_NODE_JOIN,
                        FMT(d, "{\"token\":\"%s\",\"name\":\"n1\"}", get(&t1, "token")), "same", 0);
    struct answer b
        = door_ask_full(d, NULL, NULL, VERB_NODE_JOIN,
                        FMT(d, "{\"token\":\"%s\",\"name\":\"n2\"}", get(&t2, "token")), "same", 0);
    CHECK(a.ok && b.ok && map_count(memory_of(d)->idems) == 0);
    check_books(d, "joins");
}
