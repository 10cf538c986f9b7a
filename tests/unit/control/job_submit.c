#include "door.h"

static const char *const simple = "{\"command\":[\"true\"],\"gpus\":\"1\"}";

TEST(a_submitted_job_is_two_rows_and_can_be_read)
{
    AUTO(door_free) struct door *d = door_new(false);
    int64_t events = rows_in(d, "event");
    struct answer a = door_ask(d, d->admin, VERB_JOB_SUBMIT, simple);
    CHECK(a.ok);
    if (!a.ok)
        printf("# %s: %s\n", a.err.field, a.err.text);
    CHECK(text_is(get(&a, "state"), "queued"));
    CHECK(rows_in(d, "job") == 1 && rows_in(d, "event") == events + 1 && rows_in(d, "task") == 0);
    struct answer b = door_ask(d, d->admin, VERB_JOB_GET,
                               arena_printf(d->mem, "{\"job\":\"%s\"}", get(&a, "id")));
    CHECK(b.ok && text_is(get(&b, "id"), get(&a, "id")) && text_is(get(&b, "owner"), "admin"));
}

TEST(the_same_idempotency_key_gives_the_same_job)
{
    AUTO(door_free) struct door *d = door_new(false);
    struct answer a = door_ask_full(d, d->admin, NULL, VERB_JOB_SUBMIT, simple, "k1", 0);
    struct answer b = door_ask_full(d, d->admin, NULL, VERB_JOB_SUBMIT, simple, "k1", 0);
    struct answer c
        = door_ask_full(d, d->admin, NULL, VERB_JOB_SUBMIT, "{\"command\":[\"false\"]}", "k1", 0);
    CHECK(a.ok && b.ok && text_is(get(&a, "id"), get(&b, "id")) && b.replayed && !a.replayed);
    CHECK(!c.ok && text_is(c.err.field, "Idempotency-Key"));
    CHECK(rows_in(d, "job") == 1);
    CHECK(door_crash(d));
    struct answer e = door_ask_full(d, d->admin, NULL, VERB_JOB_SUBMIT, simple, "k1", 0);
    CHECK(e.ok && text_is(get(&a, "id"), get(&e, "id")) && rows_in(d, "job") == 1);
}

TEST(a_job_and_its_event_are_stored_together_or_not_at_all)
{
    for (int nth = 1;; nth++) {
        AUTO(door_free) struct door *d = door_new(false);
        int64_t events = rows_in(d, "event");
        fault_arm(nth);
        struct answer a = door_ask(d, d->admin, VERB_JOB_SUBMIT, simple);
        bool fired = fault_fired();
        fault_arm(0);
        CHECK(rows_in(d, "job") == a.ok && rows_in(d, "event") == events + a.ok);
        CHECK(map_count(d->control->writer.state->jobs)
              == (size_t)a.ok); /* memory says the same as the store */
        struct answer again = door_ask(d, d->admin, VERB_JOB_SUBMIT, simple);
        CHECK(again.ok && rows_in(d, "job") == a.ok + 1);
        if (!fired)
            break;
        CHECK(nth < 200);
    }
}

TEST(a_planned_job_is_placed_on_a_node_and_its_report_ends_it)
{
    AUTO(door_free) struct door *d = door_new(true);
    char key[SECRET_TEXT];
    door_node(d, "n1", 2, key);
    struct answer a = door_ask(d, d->admin, VERB_JOB_SUBMIT, simple);
    CHECK(a.ok);
    door_run(d, 3000);
    struct answer at = door_ask(d, d->admin, VERB_JOB_ATTEMPTS,
                                arena_printf(d->mem, "{\"job\":\"%s\"}", get(&a, "id")));
    CHECK(at.ok && at.json);
    struct json *items = json_get(at.json, "items"), *first = items ? items->first : NULL;
    CHECK(first && text_is(json_text(first, "state"), "placed")
          && text_is(json_text(first, "node"), "n1"));
    const char *attempt = first ? json_text(first, "id") : "";
    struct answer r
        = door_ask(d, key, VERB_NODE_REPORT,
                   arena_printf(d->mem,
                                "{\"kind\":\"report\",\"items\":[{\"n\":1,\"attempt\":\"%s\","
                                "\"news\":\"started\",\"at_ms\":1763164800000},"
                                "{\"n\":2,\"attempt\":\"%s\",\"news\":\"ended\",\"at_ms\":"
                                "1763164810000,\"outcome\":\"exited\",\"exit_code\":3}]}",
                                attempt, attempt));
    if (!r.ok)
        printf("# %s %s\n", r.err.field, r.err.text);
    CHECK(r.ok && get_int(&r, "kept") == 2);
    struct answer b = door_ask(d, d->admin, VERB_JOB_GET,
                               arena_printf(d->mem, "{\"job\":\"%s\"}", get(&a, "id")));
    CHECK(text_is(get(&b, "state"), "failed") && get_int(&b, "exit_code") == 3
          && text_is(get(&b, "outcome"), "exited"));
    CHECK(rows_in(d, "usage") == 1);
    CHECK(map_count(d->control->writer.state->jobs) == 0
          && map_count(d->control->writer.state->attempts) == 0);
}

TEST(bad_input_names_its_field_and_changes_nothing)
{
    static const struct {
        const char *body, *field;
    } rows[] = {
        { "{\"command\":[\"true\"],\"secrets\":[\"NOSUCH\"]}", "secrets" },
        { "{\"command\":[\"true\"],\"volumes\":[\"nosuch:/v\"]}", "volumes" },
        { "{\"command\":[\"true\"],\"volumes\":[\"/etc:/v\"]}", "volumes" },
        { "{\"command\":[\"true\"],\"node\":\"nosuch\"}", "node" },
        { "{\"command\":[\"true\"],\"image\":\"nosuch\"}", "image" },
        { "{\"command\":[\"true\"],\"image\":\"../../etc\"}", "image" },
        { "{\"command\":[\"true\"],\"workdir\":\"sha256:"
          "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae\"}",
          "workdir" },
        { "{\"command\":[\"true\"],\"workdir\":\".\"}", "workdir" },
        { "{\"command\":[\"true\"],\"after\":[{\"job\":\"nosuch\"}]}", "after" },
        { "{\"command\":[\"true\"],\"after\":[{\"job\":\"job-0000000000zzz\",\"when\":\"any\"}]}",
          "after" },
        { "{\"command\":[\"true\"],\"count\":1000001}", "count" },
        { "{\"command\":[\"true\"],\"count\":0}", "count" },
        { "{\"command\":[\"true\"],\"array\":\"0-1000000\"}", "array" },
        { "{\"command\":[\"true\"],\"priority\":101}", "priority" },
        { "{\"command\":[\"true\"],\"retries\":1001}", "retries" },
        { "{\"command\":[\"true\"],\"retry_on\":[\"boredom\"]}", "retry_on" },
        { "{\"command\":[\"true\"],\"env\":{\"ARCUS_X\":\"1\"}}", "env" },
        { "{\"command\":[\"true\"],\"gpus\":\"-1\"}", "gpus" },
        { "{\"command\":[\"true\"],\"colour\":\"red\"}", "colour" },
        { "{}", "command" },
    };
    AUTO(door_free) struct door *d = door_new(false);
    const char *before = memory_text(d, memory_of(d), 0), *stored = store_text(d);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct answer a = door_ask(d, d->admin, VERB_JOB_SUBMIT, rows[i].body);
        CHECK(!a.ok && a.err.rc == RC_BAD_INPUT && text_is(a.err.field, rows[i].field));
        if (!text_is(a.err.field, rows[i].field))
            printf("# %s: %s: %s\n", rows[i].body, a.err.field, a.err.text);
    }
    CHECK(text_is(before, memory_text(d, memory_of(d), 0)) && text_is(stored, store_text(d)));
    check_books(d, "bad input");
}

TEST(a_million_tasks_are_one_row)
{
    AUTO(door_free) struct door *d = door_new(true);
    const char *job = door_submit(d, d->admin, "{\"command\":[\"true\"],\"array\":\"0-999999\"}");
    CHECK(job_number(d, job, "count") == 1000000 && rows_in(d, "job") == 1
          && rows_in(d, "task") == 0);
    struct answer a = door_ask(d, d->admin, VERB_JOB_CANCEL, FMT(d, "{\"job\":\"%s\"}", job));
    CHECK(a.ok && get_int(&a, "tasks") == 1000000 && rows_in(d, "task") == 0
          && text_is(job_word(d, job, "state"), "cancelled"));
    check_books(d, "a million");
}

TEST(a_job_without_an_image_gets_the_clouds_default)
{
    AUTO(door_free) struct door *d = door_new(false);
    CHECK(text_is(job_word(d, door_submit(d, d->admin, "{\"command\":[\"true\"]}"), "image"),
                  "host"));
    d->control->config.default_image = "";
    struct answer a = door_ask(d, d->admin, VERB_JOB_SUBMIT, "{\"command\":[\"true\"]}");
    CHECK(!a.ok && text_is(a.err.field, "image"));
}

TEST(the_jobs_of_one_project_cannot_fill_the_memory_of_all)
{
    AUTO(door_free) struct door *d = door_new(false);
    AUTO(str_done) struct str big = { 0 };
    str_text(&big, "{\"command\":[\"sh\",\"-c\",\"");
    for (int i = 0; i < 60000; i++)
        str_char(&big, 'x');
    str_text(&big, "\"]}");
    struct project *p = state_project(memory_of(d), "default");
    struct answer first = door_ask(d, d->admin, VERB_JOB_SUBMIT, big.at);
    CHECK(first.ok && p->spec_bytes > 60000 && p->spec_bytes < 70000);
    size_t one = p->spec_bytes;
    p->spec_bytes = (128 << 20) - 1000; /* as if of thousands */
    struct answer full = door_ask(d, d->admin, VERB_JOB_SUBMIT, big.at);
    CHECK(!full.ok && full.err.rc == RC_OVER_QUOTA);
    p->spec_bytes = one;
    CHECK(door_ask(d, d->admin, VERB_JOB_CANCEL, FMT(d, "{\"job\":\"%s\"}", get(&first, "id"))).ok);
    CHECK(p->spec_bytes == 0);
    CHECK(door_ask(d, d->admin, VERB_JOB_SUBMIT, big.at).ok && door_crash(d));
    p = state_project(memory_of(d), "default");
    CHECK(p->spec_bytes == one); /* counted again when it is loaded */
}

/* A job is kept from what was bound, and after a restart from what was written: that must be the same. */
TEST(what_memory_keeps_of_a_job_is_what_the_store_gives_back)
{
    static const char *const asks[] = {
        "{\"command\":[\"true\"]}",
        "{\"run\":[\"a\",\"b\"],\"setup\":\"c\",\"gpus\":\"H200:0.5\",\"gpu_memory\":\"10GB\",\"env\":{\"A\":\"1\"},\"labels\":{\"x\":\"y\"}}",
        "{\"command\":\"sleep 5\",\"resources\":{\"gpus\":\"24GB..80GB:2\",\"memory\":\"3GB\"},\"array\":\"0-9\",\"retry\":{\"limit\":3,\"on\":[\"exited\"]}}",
        "{\"command\":[\"x\"],\"flavor\":\"h200.1x\",\"user\":\"1:1\",\"max_duration\":\"1h\",\"on_lost\":\"wait\",\"priority\":0,\"grace\":0}",
        "{\"command\":[\"x\"],\"mig\":\"1g.18gb\",\"name\":\"n\",\"cpus\":0.5,\"log_size\":\"1GB\",\"dependency\":[\"any:first\"]}",
    };
    AUTO(door_free) struct door *d = door_new(false);
    door_submit(d, d->admin, "{\"name\":\"first\",\"command\":[\"true\"]}");
    for (size_t i = 0; i < COUNT(asks); i++) {
        int64_t id;
        CHECK(id_parse(door_submit(d, d->admin, asks[i]), PREFIX_JOB, &id));
        struct job *j = map_get(memory_of(d)->jobs, id);
        struct job_spec spec = { 0 };
        struct shape shape;
        struct json *doc;
        struct err err = { 0 };
        CHECK(json_parse(SLICE(j->spec_text), d->mem, &doc, &err)
              && bind_read(doc, &job_spec_fields, d->mem, &spec, NULL, &err)
              && job_spec_settle(&spec, d->mem, &shape, &err));
        AUTO(str_done) struct str a = { 0 }, b = { 0 };
        bind_write(&(struct json_out){ .to = &a }, &job_spec_fields, &spec);
        bind_write(&(struct json_out){ .to = &b }, &job_spec_fields, &j->spec);
        CHECK(text_is(a.at, b.at) && text_is(a.at, j->spec_text) && memcmp(&shape, &j->shape, sizeof shape) == 0);
    }
}
