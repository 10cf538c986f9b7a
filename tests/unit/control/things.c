#include "door.h"
#include <stdio.h>
#include <stdlib.h>

static const char value[] = "squeamish-ossifrage-0451";

static bool told_anywhere(struct door *d)
{
    static const enum verb_id lists[] = { VERB_EVENT_LIST, VERB_SECRET_LIST,  VERB_JOB_LIST,
                                          VERB_JOB_GET,    VERB_JOB_ATTEMPTS, VERB_JOB_TASKS };
    for (size_t i = 0; i < COUNT(lists); i++) {
        struct answer a = door_ask(d, d->admin, lists[i],
                                   lists[i] == VERB_EVENT_LIST || lists[i] == VERB_SECRET_LIST
                                       ? "{\"limit\":1000}"
                                   : lists[i] == VERB_JOB_LIST ? "{\"all\":true}"
                                                               : "{\"job\":\"s\"}");
        CHECK(a.ok);
        if (strstr(a.text, value))
            return true;
    }
    return false;
}

TEST(a_secret_is_sealed_at_rest_and_told_only_to_the_node_that_runs_the_task)
{
    AUTO(door_free) struct door *d = door_new(false);
    char one[SECRET_TEXT], two[SECRET_TEXT];
    door_node(d, "n1", 1, one);
    door_node(d, "n2", 1, two);
    struct answer set = door_ask(d, d->admin, VERB_SECRET_SET,
                                 FMT(d, "{\"name\":\"TOKEN\",\"value\":\"%s\"}", value));
    CHECK(set.ok && !strstr(set.text, value) && get_int(&set, "version") == 1);
    const char *job = door_submit(
        d, d->admin, "{\"name\":\"s\",\"command\":[\"true\"],\"secrets\":[\"TOKEN\"]}");
    struct answer early = door_hello(d, one, "n1", 1, 1, (struct texts){ 0 });
    CHECK(early.ok && !strstr(early.text, value)); /* it is not its task yet */
    CHECK(door_place(d, job, 0, "n1", -1));
    struct answer mine = door_hello(d, one, "n1", 1, 1, (struct texts){ 0 }),
                  other = door_hello(d, two, "n2", 1, 1, (struct texts){ 0 });
    CHECK(mine.ok && strstr(mine.text, value) && other.ok && !strstr(other.text, value));
    CHECK(!told_anywhere(d) && !on_disk(d, value)
          && !strstr(memory_text(d, memory_of(d), 0), value));
    struct answer cancel = door_ask(d, d->admin, VERB_JOB_CANCEL, FMT(d, "{\"job\":\"%s\"}", job));
    struct answer stopping = door_hello(d, one, "n1", 1, 1, (struct texts){ 0 });
    CHECK(cancel.ok && stopping.ok && strstr(stopping.text, "\"stop\":true")
          && !strstr(stopping.text, value)); /* to end it needs none */
}

TEST(a_sealed_row_opens_under_its_own_project_and_name_only)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    door_node(d, "n1", 1, key);
    CHECK(door_ask(d, d->admin, VERB_PROJECT_CREATE, "{\"name\":\"beta\"}").ok);
    CHECK(door_ask_full(d, d->admin, "beta", VERB_SECRET_SET,
                        FMT(d, "{\"name\":\"TOKEN\",\"value\":\"%s\"}", value), NULL, 0)
              .ok);
    CHECK(door_ask(d, d->admin, VERB_SECRET_SET, "{\"name\":\"TOKEN\",\"value\":\"mine\"}").ok
          && door_ask(d, d->admin, VERB_SECRET_SET, "{\"name\":\"OTHER\",\"value\":\"mine\"}").ok);
    struct state *s = memory_of(d);
    struct secret *theirs = state_secret(s, state_project(s, "beta")->id, "TOKEN");
    static const char *const names[] = { "TOKEN", "OTHER" };
    for (size_t i = 0; i < COUNT(names); i++) { /* somebody with the store in hand copies the row */
        struct secret *x = state_secret(s, state_project(s, "default")->id, names[i]);
        free(x->sealed);
        x->sealed = strdup(theirs->sealed);
        const char *job = door_submit(
            d, d->admin, FMT(d, "{\"command\":[\"true\"],\"secrets\":[\"%s\"]}", names[i]));
        CHECK(door_place(d, job, 0, "n1", -1));
    }
    struct answer a = door_hello(d, key, "n1", 1, 1, (struct texts){ 0 });
    CHECK(a.ok && !strstr(a.text, value) && strstr(a.text, "\"orders\":[{"));
}

TEST(a_secret_is_replaced_by_version_and_removed_by_name)
{
    AUTO(door_free) struct door *d = door_new(false);
    struct answer a = door_ask(d, d->admin, VERB_SECRET_SET, "{\"name\":\"S\",\"value\":\"1\"}");
    struct answer b = door_ask_full(d, d->admin, NULL, VERB_SECRET_SET,
                                    "{\"name\":\"S\",\"value\":\"2\"}", NULL, a.version);
    CHECK(a.ok && b.ok && b.version == a.version + 1);
    struct answer stale = door_ask_full(d, d->admin, NULL, VERB_SECRET_SET,
                                        "{\"name\":\"S\",\"value\":\"3\"}", NULL, a.version);
    struct answer absent = door_ask_full(d, d->admin, NULL, VERB_SECRET_SET,
                                         "{\"name\":\"T\",\"value\":\"3\"}", NULL, 1);
    CHECK(!stale.ok && stale.err.rc == RC_STALE && !absent.ok && absent.err.rc == RC_STALE
          && rows_in(d, "secret") == 1);
    struct answer odd = door_ask(d, d->admin, VERB_SECRET_SET,
                                 FMT(d, "{\"name\":\"%s\",\"value\":\"4\"}",
                                     get(&a, "id"))); /* a name that reads as an id */
    CHECK(odd.ok && rows_in(d, "secret") == 2);
    CHECK(door_ask(d, d->admin, VERB_SECRET_REMOVE, "{\"name\":\"S\"}").ok
          && !door_ask(d, d->admin, VERB_SECRET_REMOVE, "{\"name\":\"S\"}").ok);
    CHECK(rows_in(d, "secret") == 1);
    check_books(d, "secrets");
}

TEST(a_volume_stays_on_its_node_and_while_it_is_in_use)
{
    AUTO(door_free) struct door *d = door_new(false);
    char one[SECRET_TEXT], two[SECRET_TEXT];
    door_node(d, "n1", 1, one);
    door_node(d, "n2", 1, two);
    CHECK(door_ask(d, d->admin, VERB_VOLUME_CREATE, "{\"name\":\"data\"}").ok
          && !door_ask(d, d->admin, VERB_VOLUME_CREATE, "{\"name\":\"data\"}").ok);
    struct answer early
        = door_ask(d, d->admin, VERB_VOLUME_FILES, "{\"volume\":\"data\",\"path\":\"/x\"}");
    CHECK(!early.ok && early.err.rc == RC_CONFLICT);
    const char *a = door_submit(d, d->admin,
                                "{\"command\":[\"true\"],\"volumes\":[\"data:/d\"],\"count\":2}");
    const char *b = door_submit(d, d->admin, "{\"command\":[\"true\"],\"volumes\":[\"data:/d\"]}");
    CHECK(door_place(d, a, 0, "n2", -1));
    CHECK(!door_place(d, a, 1, "n1", -1)
          && !door_place(d, b, 0, "n1", -1)); /* the planner may not know yet where it is */
    CHECK(door_place(d, a, 1, "n2", -1) && door_place(d, b, 0, "n2", -1));
    struct answer used = door_ask(d, d->admin, VERB_VOLUME_REMOVE, "{\"volume\":\"data\"}");
    CHECK(!used.ok && used.err.rc == RC_CONFLICT && rows_in(d, "volume") == 1);
    struct answer held = door_ask(d, d->admin, VERB_NODE_REMOVE, "{\"node\":\"n2\"}");
    CHECK(!held.ok && held.err.rc == RC_CONFLICT);
    struct answer elsewhere
        = door_ask(d, d->admin, VERB_JOB_SUBMIT,
                   "{\"command\":[\"true\"],\"volumes\":[\"data:/d\"],\"node\":\"n1\"}");
    CHECK(!elsewhere.ok && text_is(elsewhere.err.field, "node"));
    CHECK(door_crash(d));
    CHECK(door_hello(d, two, "n2", 1, 1, (struct texts){ 0 }).ok);
    CHECK(!door_ask(d, d->admin, VERB_VOLUME_REMOVE, "{\"volume\":\"data\"}").ok);
    int64_t n = 1;
    for (int64_t t = 0; t < 2; t++)
        CHECK(door_report(d, two, n++, door_attempt(d, a, t), "ended", ",\"outcome\":\"succeeded\"")
                  .ok);
    CHECK(
        door_report(d, two, n++, door_attempt(d, b, 0), "ended", ",\"outcome\":\"succeeded\"").ok);
    CHECK(door_ask(d, d->admin, VERB_VOLUME_REMOVE, "{\"volume\":\"data\"}").ok
          && rows_in(d, "volume") == 0);
    check_books(d, "volumes");
}

TEST(jobs_that_share_a_volume_end_up_on_one_node_with_the_planner_too)
{
    AUTO(door_free) struct door *d = door_new(true);
    char one[SECRET_TEXT], two[SECRET_TEXT];
    door_node(d, "n1", 2, one);
    door_node(d, "n2", 2, two);
    CHECK(door_ask(d, d->admin, VERB_VOLUME_CREATE, "{\"name\":\"data\"}").ok);
    const char *all = door_submit(d, d->admin,
                                  "{\"command\":[\"true\"],\"volumes\":[\"data:/"
                                  "d\"],\"count\":4,\"gpus\":\"1\",\"cpus\":1,\"memory\":\"1GB\"}");
    door_run(d, 5000);
    struct answer list = door_ask(d, d->admin, VERB_JOB_ATTEMPTS, FMT(d, "{\"job\":\"%s\"}", all));
    CHECK(item_count(&list) == 2 && text_is(item(d, &list, 0, "node"), item(d, &list, 1, "node")));
    CHECK(text_is(job_word(d, all, "reason"), "VolumeNode"));
    const char *node = item(d, &list, 0, "node");
    for (int64_t t = 0; t < 2; t++)
        CHECK(door_report(d, text_is(node, "n1") ? one : two, t + 1, door_attempt(d, all, t),
                          "ended", ",\"outcome\":\"succeeded\"")
                  .ok);
    door_run(d, 3000);
    list = door_ask(d, d->admin, VERB_JOB_ATTEMPTS, FMT(d, "{\"job\":\"%s\"}", all));
    CHECK(item_count(&list) == 4 && text_is(item(d, &list, 3, "node"), node));
    check_picture(d, "volumes");
}

TEST(images_are_found_by_name_in_the_project_or_in_a_registry)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    struct blob_view blob
        = { .id = "sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
            .size = 3 };
    door_node(d, "n1", 1, key);
    struct answer none = door_ask(d, d->admin, VERB_IMAGE_ADD,
                                  FMT(d, "{\"name\":\"base\",\"digest\":\"%s\"}", blob.id));
    CHECK(!none.ok && text_is(none.err.field, "digest"));
    CHECK(door_ask_bound(d, d->admin, NULL, VERB_BLOB_ADD, &blob).ok
          && door_ask_bound(d, d->admin, NULL, VERB_BLOB_ADD, &blob).ok && rows_in(d, "blob") == 1);
    CHECK(door_ask(d, d->admin, VERB_IMAGE_ADD,
                   FMT(d, "{\"name\":\"base\",\"digest\":\"%s\"}", blob.id))
              .ok);
    static const char *const bad[] = { "host", "../x", "a b", "%", "base" };
    for (size_t i = 0; i < COUNT(bad); i++)
        CHECK(!door_ask(d, d->admin, VERB_IMAGE_ADD,
                        FMT(d, "{\"name\":\"%s\",\"digest\":\"%s\"}", bad[i], blob.id))
                   .ok);
    struct answer unknown
        = door_ask(d, d->admin, VERB_JOB_SUBMIT, "{\"command\":[\"true\"],\"image\":\"nosuch\"}");
    CHECK(!unknown.ok && text_is(unknown.err.field, "image"));
    CHECK(text_given(door_submit(
        d, d->admin, "{\"command\":[\"true\"],\"image\":\"docker.io/library/debian:12\"}")));
    const char *job = door_submit(d, d->admin, "{\"command\":[\"true\"],\"image\":\"base\"}");
    CHECK(door_place(d, job, 0, "n1", -1));
    struct answer order = door_hello(d, key, "n1", 1, 1, (struct texts){ 0 });
    CHECK(strstr(order.text, blob.id));
    CHECK(door_ask(d, key, VERB_BLOB_GET, FMT(d, "{\"digest\":\"%s\"}", blob.id)).ok);
    CHECK(
        door_report(d, key, 1, door_attempt(d, job, 0), "ended", ",\"outcome\":\"succeeded\"").ok);
    struct answer late
        = door_ask(d, key, VERB_BLOB_GET,
                   FMT(d, "{\"digest\":\"%s\"}", blob.id)); /* nothing of it is here any more */
    CHECK(!late.ok && late.err.rc == RC_NOT_FOUND);
    CHECK(door_ask(d, d->admin, VERB_IMAGE_REMOVE, "{\"image\":\"base\"}").ok
          && !door_ask(d, d->admin, VERB_IMAGE_REMOVE, "{\"image\":\"base\"}").ok);
}

TEST(a_neighbour_who_names_my_blob_neither_gets_it_nor_takes_it_from_me)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    struct blob_view blob
        = { .id = "sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
            .size = 3 };
    door_node(d, "n1", 1, key);
    CHECK(door_ask(d, d->admin, VERB_PROJECT_CREATE, "{\"name\":\"beta\"}").ok);
    struct answer bad = door_ask_full(
        d, d->admin, "beta", VERB_JOB_SUBMIT,
        FMT(d, "{\"command\":[\"true\"],\"env\":{\"X\":\"%s\"}}", blob.id), NULL, 0);
    CHECK(bad.ok && door_place(d, get(&bad, "id"), 0, "n1", -1));
    CHECK(door_ask_bound(d, d->admin, NULL, VERB_BLOB_ADD, &blob).ok);
    CHECK(!door_ask(d, key, VERB_BLOB_GET, FMT(d, "{\"digest\":\"%s\"}", blob.id))
               .ok); /* beta has no such blob */
    const char *mine
        = door_submit(d, d->admin, FMT(d, "{\"command\":[\"true\"],\"workdir\":\"%s\"}", blob.id));
    CHECK(door_place(d, mine, 0, "n1", -1));
    CHECK(door_ask(d, key, VERB_BLOB_GET, FMT(d, "{\"digest\":\"%s\"}", blob.id)).ok);
}

/* What is refused after the folder was found has written nothing, not even that the folder is used: the writer insists on that. */
TEST(a_folder_that_is_there_does_not_help_a_job_that_is_refused_for_something_else)
{
    AUTO(door_free) struct door *d = door_new(false);
    struct blob_view blob
        = { .id = "sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae", .size = 3 };
    CHECK(door_ask_bound(d, d->admin, NULL, VERB_BLOB_ADD, &blob).ok);
    const char *good = FMT(d, "{\"command\":[\"true\"],\"workdir\":\"%s\"}", blob.id),
               *bad = FMT(d, "{\"command\":[\"true\"],\"workdir\":\"%s\",\"after\":[{\"job\":\"nope\"}]}", blob.id);
    struct answer one = door_ask(d, d->admin, VERB_JOB_SUBMIT, bad);
    CHECK(!one.ok && text_is(one.err.field, "after"));
    CHECK(!door_ask(d, d->admin, VERB_JOB_BATCH, FMT(d, "{\"jobs\":[%s,%s]}", good, bad)).ok);
    CHECK(door_ask(d, d->admin, VERB_JOB_BATCH, FMT(d, "{\"jobs\":[%s,%s]}", good, good)).ok);
    CHECK(door_ask(d, d->admin, VERB_JOB_SUBMIT, good).ok);
}

TEST(the_priority_of_a_job_changes_while_it_waits_and_by_version)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    door_node(d, "n1", 1, key);
    struct answer a = door_ask(d, d->admin, VERB_JOB_SUBMIT, "{\"command\":[\"true\"]}");
    struct answer b
        = door_ask_full(d, d->admin, NULL, VERB_JOB_UPDATE,
                        FMT(d, "{\"job\":\"%s\",\"priority\":90}", get(&a, "id")), NULL, a.version);
    CHECK(b.ok && get_int(&b, "priority") == 90 && b.version > a.version);
    struct answer stale
        = door_ask_full(d, d->admin, NULL, VERB_JOB_UPDATE,
                        FMT(d, "{\"job\":\"%s\",\"priority\":1}", get(&a, "id")), NULL, a.version);
    CHECK(!stale.ok && stale.err.rc == RC_STALE && job_number(d, get(&a, "id"), "priority") == 90);
    CHECK(door_place(d, get(&a, "id"), 0, "n1", -1));
    struct answer late = door_ask(d, d->admin, VERB_JOB_UPDATE,
                                  FMT(d, "{\"job\":\"%s\",\"priority\":1}", get(&a, "id")));
    CHECK(!late.ok && late.err.rc == RC_CONFLICT);
    check_books(d, "priority");
}

TEST(a_removed_volume_is_named_to_its_node_until_the_node_has_swept_it)
{
    AUTO(door_free) struct door *d = door_new(true);
    char key[SECRET_TEXT];
    door_node(d, "n1", 1, key);
    struct answer v = door_ask(d, d->admin, VERB_VOLUME_CREATE, "{\"name\":\"data\"}");
    struct answer j = door_ask(d, d->admin, VERB_JOB_SUBMIT,
                               "{\"command\":[\"true\"],\"volumes\":[\"data:/data\"]}");
    CHECK(v.ok && j.ok);
    door_run(d, 2000);
    struct answer at = door_ask(d, d->admin, VERB_JOB_ATTEMPTS,
                                arena_printf(d->mem, "{\"job\":\"%s\"}", get(&j, "id")));
    struct json *items = at.json ? json_get(at.json, "items") : NULL;
    CHECK(items && items->first);
    CHECK(door_ask(
              d, key, VERB_NODE_REPORT,
              arena_printf(d->mem,
                           "{\"kind\":\"report\",\"items\":[{\"n\":1,\"attempt\":\"%s\",\"news\":"
                           "\"ended\",\"at_ms\":1763164810000,\"outcome\":\"succeeded\"}]}",
                           items && items->first ? json_text(items->first, "id") : ""))
              .ok);
    CHECK(door_ask(d, d->admin, VERB_VOLUME_REMOVE, "{\"volume\":\"data\"}").ok
          && rows_in(d, "goner") == 1);
    struct answer told = door_ask(d, key, VERB_NODE_REPORT, "{\"kind\":\"report\"}");
    CHECK(strstr(told.text, "volumes_gone") && strstr(told.text, get(&v, "id")));
    CHECK(door_crash(d) && rows_in(d, "goner") == 1); /* the wish outlives the server */
    struct node *n = state_node(d->control->writer.state, "n1");
    CHECK(n && map_count(n->goners) == 1);
    n->linked = true;
    struct answer swept = door_ask(
        d, key, VERB_NODE_REPORT,
        arena_printf(d->mem, "{\"kind\":\"report\",\"swept\":[\"%s\",\"vol-0000000000001\"]}",
                     get(&v, "id")));
    CHECK(swept.ok && !strstr(swept.text, "volumes_gone") && rows_in(d, "goner") == 0);
}

TEST(a_project_has_so_many_secrets_and_no_more)
{
    AUTO(door_free) struct door *d = door_new(false);
    CHECK(memory_of(d)->secrets_most == 10000);
    memory_of(d)->secrets_most = 2;
    CHECK(door_ask(d, d->admin, VERB_PROJECT_CREATE, "{\"name\":\"beta\"}").ok);
    CHECK(door_ask(d, d->admin, VERB_SECRET_SET, "{\"name\":\"A\",\"value\":\"1\"}").ok
          && door_ask(d, d->admin, VERB_SECRET_SET, "{\"name\":\"B\",\"value\":\"1\"}").ok);
    struct answer a = door_ask(d, d->admin, VERB_SECRET_SET, "{\"name\":\"C\",\"value\":\"1\"}");
    CHECK(!a.ok && a.err.rc == RC_OVER_QUOTA && strstr(a.err.text, "2 secrets") && rows_in(d, "secret") == 2);
    CHECK(door_ask(d, d->admin, VERB_SECRET_SET, "{\"name\":\"B\",\"value\":\"2\"}").ok); /* one that is there is no more */
    CHECK(door_ask_full(d, d->admin, "beta", VERB_SECRET_SET, "{\"name\":\"C\",\"value\":\"1\"}", NULL, 0).ok);
    CHECK(door_ask(d, d->admin, VERB_SECRET_REMOVE, "{\"name\":\"A\"}").ok
          && door_ask(d, d->admin, VERB_SECRET_SET, "{\"name\":\"C\",\"value\":\"1\"}").ok);
}
