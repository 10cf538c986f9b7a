/* disk.c - instances that are stopped and started, and the disks that they keep meanwhile. */
#include "door.h"

/* A cloud of two nodes with a planner; `lab` is an instance that runs on one of them. */
struct lab { struct door *d; char one[SECRET_TEXT], two[SECRET_TEXT]; const char *job, *node; int64_t n[2]; };

static void find(struct lab *l)
{
    int64_t id;
    const struct attempt *a = id_parse(door_attempt(l->d, l->job, 0), PREFIX_ATTEMPT, &id) ? map_get(memory_of(l->d)->attempts, id) : NULL;
    l->node = a ? arena_text(l->d->mem, a->node->name) : "";
}
static bool report(struct lab *l, const char *news, const char *more)
{
    bool two = text_is(l->node, "n2");
    return door_report(l->d, two ? l->two : l->one, ++l->n[two], door_attempt(l->d, l->job, 0), news, more).ok;
}
static struct answer ask(struct lab *l, enum verb_id verb) { return door_ask(l->d, l->d->admin, verb, FMT(l->d, "{\"job\":\"%s\"}", l->job)); }
static const char *word(struct lab *l, const char *member) { return job_word(l->d, l->job, member); }
static bool ends(struct lab *l, const char *outcome) { return report(l, "ended", FMT(l->d, ",\"outcome\":\"%s\"", outcome)); }
static bool begins(struct lab *l)
{
    door_run(l->d, 100);
    find(l);
    return text_given(l->node) && report(l, "started", NULL);
}
static bool same(struct lab *l, const char *where)
{
    check_books(l->d, where);
    check_picture(l->d, where);
    return true;
}

static struct lab lab_new(const char *more, bool no_disks)
{
    struct lab l = { .d = door_new(true) };
    l.d->no_disks = no_disks;
    door_node(l.d, "n1", 2, l.one);
    door_node(l.d, "n2", 2, l.two);
    l.job = door_submit(l.d, l.d->admin, FMT(l.d, "{\"name\":\"lab\",\"type\":\"instance\",\"gpus\":1,\"cpus\":2%s}", more));
    CHECK(text_given(l.job) && begins(&l));
    return l;
}

TEST(a_stopped_instance_holds_nothing_and_comes_back_to_its_node_after_whatever_crash)
{
    struct lab l = lab_new("", false);
    AUTO(door_free) struct door *d = l.d;
    const char *home = l.node;
    struct answer a = ask(&l, VERB_JOB_STOP);
    CHECK(a.ok && text_is(get(&a, "state"), "stopping") && text_is(word(&l, "state"), "stopping") && same(&l, "stopping"));
    const char *running[] = { door_attempt(d, l.job, 0) };
    bool two = text_is(home, "n2");
    CHECK(door_crash(d) && text_is(word(&l, "state"), "stopping"));
    CHECK(door_hello(d, two ? l.two : l.one, home, 2, l.n[two] + 1, (struct texts){ running, 1 }).ok);
    CHECK(ends(&l, "preempted") && text_is(word(&l, "state"), "stopped") && text_is(word(&l, "reason"), "Stopped"));
    door_run(d, 60 * 1000);
    CHECK(same(&l, "stopped") && text_is(word(&l, "state"), "stopped") && door_crash(d) && text_is(word(&l, "state"), "stopped"));
    const struct project *p = state_project(memory_of(d), "default");
    CHECK(p->gpu_held == 0 && p->cpu_held == 0 && p->mem_held == 0 && rows_in(d, "volume") == 1 && rows_in(d, "usage") == 1);
    a = ask(&l, VERB_JOB_STOP);
    CHECK(a.ok && text_is(get(&a, "state"), "stopped") && door_events(d, "job.stop") == 1 && door_events(d, "job.stopped") == 1);
    CHECK(door_hello(d, l.one, "n1", 2, l.n[0] + 1, (struct texts){ 0 }).ok && door_hello(d, l.two, "n2", 2, l.n[1] + 1, (struct texts){ 0 }).ok);
    CHECK(ask(&l, VERB_JOB_START).ok && ask(&l, VERB_JOB_START).ok && door_events(d, "job.start") == 1);
    CHECK(begins(&l) && text_is(l.node, home) && text_is(word(&l, "state"), "running") && rows_in(d, "volume") == 1 && same(&l, "started"));
}

TEST(an_instance_waits_for_the_node_of_its_disk_whatever_else_is_free)
{
    struct lab l = lab_new("", false);
    AUTO(door_free) struct door *d = l.d;
    const char *home = l.node;
    CHECK(ask(&l, VERB_JOB_STOP).ok && ends(&l, "preempted"));
    CHECK(door_ask(d, d->admin, VERB_NODE_UPDATE, FMT(d, "{\"node\":\"%s\",\"state\":\"cordoned\"}", home)).ok && ask(&l, VERB_JOB_START).ok);
    door_run(d, 5000);
    CHECK(text_is(word(&l, "state"), "queued") && text_is(word(&l, "reason"), "VolumeNode") && same(&l, "away"));
    CHECK(door_ask(d, d->admin, VERB_NODE_UPDATE, FMT(d, "{\"node\":\"%s\",\"state\":\"ready\"}", home)).ok && begins(&l) && text_is(l.node, home));
}

TEST(what_happens_while_it_is_told_to_stop_does_not_lose_the_disk)
{
    static const char *const outcomes[] = { "succeeded", "exited", "node_fault", "signaled", "preempted" };
    for (size_t i = 0; i < COUNT(outcomes); i++) {
        struct lab l = lab_new("", false);
        AUTO(door_free) struct door *d = l.d;
        CHECK(ask(&l, VERB_JOB_STOP).ok && ends(&l, outcomes[i]));
        CHECK(text_is(word(&l, "state"), "stopped") && rows_in(d, "volume") == 1 && same(&l, outcomes[i]));
    }
}

TEST(an_instance_that_ends_by_itself_is_stopped_however_it_ended_and_only_a_cancel_takes_its_disk)
{
    struct lab l = lab_new(",\"retry\":{\"limit\":1,\"on\":[\"out_of_memory\"]}", false);
    AUTO(door_free) struct door *d = l.d;
    CHECK(ends(&l, "exited") && text_is(word(&l, "state"), "stopped") && rows_in(d, "volume") == 1 && same(&l, "it failed"));
    CHECK(ask(&l, VERB_JOB_START).ok && begins(&l) && ends(&l, "succeeded") && text_is(word(&l, "state"), "stopped"));
    CHECK(rows_in(d, "volume") == 1 && same(&l, "it said that it is done") && ask(&l, VERB_JOB_START).ok && begins(&l) && same(&l, "again"));
    CHECK(ask(&l, VERB_JOB_CANCEL).ok && ends(&l, "cancelled") && rows_in(d, "volume") == 0 && rows_in(d, "goner") == 1 && same(&l, "cancelled"));
}

TEST(an_instance_that_held_too_much_of_its_nodes_disk_is_stopped_at_once_however_often_it_may_be_tried)
{
    struct lab l = lab_new(",\"retries\":5", false);
    AUTO(door_free) struct door *d = l.d;
    CHECK(ends(&l, "out_of_disk") && text_is(word(&l, "state"), "stopped") && rows_in(d, "volume") == 1 && rows_in(d, "attempt") == 1 && same(&l, "too much"));
    door_run(d, 60 * 1000);
    CHECK(text_is(word(&l, "state"), "stopped") && rows_in(d, "attempt") == 1 && ask(&l, VERB_JOB_CANCEL).ok && rows_in(d, "volume") == 0);
    struct answer a = door_ask(d, d->admin, VERB_JOB_SUBMIT, "{\"command\":[\"true\"],\"retry_on\":[\"out_of_disk\"]}");
    CHECK(!a.ok && a.err.rc == RC_BAD_INPUT);
}

TEST(an_instance_that_has_run_on_its_disk_and_cannot_be_started_from_it_is_stopped_and_its_node_is_told_that_there_was_one)
{
    struct lab l = lab_new("", false);
    AUTO(door_free) struct door *d = l.d;
    bool two = text_is(l.node, "n2");
    CHECK(ask(&l, VERB_JOB_STOP).ok && ends(&l, "preempted") && ask(&l, VERB_JOB_START).ok);
    door_run(d, 1000);
    find(&l);
    struct answer order = door_hello(d, two ? l.two : l.one, l.node, 2, l.n[two] + 1, (struct texts){ 0 });
    CHECK(order.ok && strstr(order.text, "\"disk_used\":true") && ends(&l, "start_failed"));
    door_run(d, 60 * 1000);
    CHECK(text_is(word(&l, "state"), "stopped") && rows_in(d, "attempt") == 2 && rows_in(d, "volume") == 1 && same(&l, "it cannot be started"));
}

TEST(an_image_is_not_removed_while_the_disk_of_an_instance_lies_on_it)
{
    AUTO(door_free) struct door *d = door_new(true);
    struct lab l = { .d = d };
    struct blob_view blob = { .id = "sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae", .size = 3 };
    door_node(d, "n1", 2, l.one);
    CHECK(door_ask_bound(d, d->admin, NULL, VERB_BLOB_ADD, &blob).ok);
    CHECK(door_ask(d, d->admin, VERB_IMAGE_ADD, FMT(d, "{\"name\":\"base\",\"digest\":\"%s\"}", blob.id)).ok);
    l.job = door_submit(d, d->admin, "{\"name\":\"lab\",\"type\":\"instance\",\"image\":\"base\"}");
    CHECK(text_given(l.job) && begins(&l) && ask(&l, VERB_JOB_STOP).ok && ends(&l, "preempted"));
    struct answer a = door_ask(d, d->admin, VERB_IMAGE_REMOVE, "{\"image\":\"base\"}");
    CHECK(!a.ok && a.err.rc == RC_CONFLICT && strstr(a.err.text, "instance lab"));
    CHECK(ask(&l, VERB_JOB_CANCEL).ok && door_ask(d, d->admin, VERB_IMAGE_REMOVE, "{\"image\":\"base\"}").ok);
}

TEST(a_disk_counts_as_what_its_node_makes_of_it)
{
    AUTO(door_free) struct door *d = door_new(true);
    CHECK(door_ask(d, d->admin, VERB_PROJECT_UPDATE, "{\"project\":\"default\",\"disk_mib\":2047}").ok);
    CHECK(!door_ask(d, d->admin, VERB_JOB_SUBMIT, "{\"type\":\"instance\",\"disk_size\":\"1025MiB\"}").ok);
    CHECK(text_given(door_submit(d, d->admin, "{\"type\":\"instance\",\"disk_size\":\"961MiB\"}")));     /* 1024 */
    CHECK(text_given(door_submit(d, d->admin, "{\"type\":\"instance\",\"disk_size\":\"959MiB\"}")));     /* 960 */
    CHECK(!door_ask(d, d->admin, VERB_JOB_SUBMIT, "{\"type\":\"instance\",\"disk_size\":\"64MiB\"}").ok);
    check_books(d, "rounded");
}

/* The nodes of a test have 1 TiB: half of it is for disks, and half of that for one project where there are two. */
#define DISK(name, size) door_submit(d, d->admin, "{\"name\":\"" name "\",\"type\":\"instance\",\"cpus\":1,\"disk_size\":\"" size "\"}")
#define WAITS(job, why) (text_is(job_word(d, job, "state"), "queued") && text_is(job_word(d, job, "reason"), why))
TEST(an_instance_waits_while_no_node_has_room_for_its_disk_and_says_so)
{
    AUTO(door_free) struct door *d = door_new(true);
    char key[SECRET_TEXT];
    door_node(d, "n1", 2, key);
    const char *a = DISK("a", "400GiB"), *b = DISK("b", "113GiB"), *c = DISK("c", "112GiB");
    CHECK(text_given(a) && text_given(b) && text_given(c));
    door_run(d, 5000);
    CHECK(WAITS(b, "Disk") && !WAITS(c, "Disk") && rows_in(d, "volume") == 2 && rows_in(d, "attempt") == 2);
    check_books(d, "no room");
    check_picture(d, "no room");
    struct answer why = door_ask(d, d->admin, VERB_JOB_WHY, "{\"job\":\"b\"}");
    CHECK(why.ok && text_is(get(&why, "reason"), "Disk") && strstr(get(&why, "reason_text"), "--disk"));
    const char *running[] = { door_attempt(d, a, 0), door_attempt(d, c, 0) };
    CHECK(door_crash(d) && WAITS(b, "Disk") && door_hello(d, key, "n1", 2, 1, (struct texts){ running, 2 }).ok);
    check_books(d, "after a crash");
    CHECK(door_ask(d, d->admin, VERB_JOB_STOP, "{\"job\":\"b\"}").ok && text_is(job_word(d, b, "state"), "stopped"));
    CHECK(door_ask(d, d->admin, VERB_JOB_START, "{\"job\":\"b\"}").ok);
    door_run(d, 5000);
    CHECK(WAITS(b, "Disk") && door_ask(d, d->admin, VERB_JOB_CANCEL, "{\"job\":\"c\"}").ok);
    CHECK(door_report(d, key, 1, running[1], "ended", ",\"outcome\":\"cancelled\"").ok && rows_in(d, "volume") == 1);
    door_run(d, 5000);
    CHECK(rows_in(d, "volume") == 1 && WAITS(b, "Disk"));    /* 512 - 400 is less than 113 */
    CHECK(door_ask(d, d->admin, VERB_JOB_CANCEL, "{\"job\":\"a\"}").ok && door_report(d, key, 2, running[0], "ended", ",\"outcome\":\"cancelled\"").ok);
    door_run(d, 5000);
    CHECK(rows_in(d, "volume") == 1 && rows_in(d, "attempt") == 3 && !text_given(job_word(d, b, "reason")));
    check_books(d, "room for it");
    check_picture(d, "room for it");
}

TEST(a_node_without_room_for_its_disk_is_passed_over_for_one_that_has_it)
{
    AUTO(door_free) struct door *d = door_new(true);
    char one[SECRET_TEXT], two[SECRET_TEXT];
    door_node(d, "n1", 2, one);
    for (int i = 0; i < 4; i++)
        CHECK(text_given(door_submit(d, d->admin, FMT(d, "{\"name\":\"d%d\",\"type\":\"instance\",\"cpus\":1,\"disk_size\":\"%dGiB\"}", i, i < 2 ? 250 : 100))));
    door_run(d, 2000);
    CHECK(rows_in(d, "volume") == 2 && WAITS("d2", "Disk") && WAITS("d3", "Disk"));
    door_node(d, "n2", 2, two);
    door_run(d, 5000);
    CHECK(rows_in(d, "volume") == 4 && !WAITS("d2", "Disk") && !WAITS("d3", "Disk"));
    CHECK(text_given(DISK("e", "200GiB")) && text_given(DISK("f", "200GiB")));   /* the planner likes n1 as well as n2 */
    door_run(d, 5000);
    CHECK(rows_in(d, "volume") == 5 && WAITS("f", "Disk"));
    check_books(d, "two nodes");
    check_picture(d, "two nodes");
}

TEST(one_project_of_several_keeps_half_and_what_no_node_could_keep_is_refused)
{
    AUTO(door_free) struct door *d = door_new(true);
    char key[SECRET_TEXT];
    CHECK(text_given(DISK("early", "900GiB")) && door_ask(d, d->admin, VERB_JOB_CANCEL, "{\"job\":\"early\"}").ok);
    door_node(d, "n1", 2, key);
    struct answer a = door_ask(d, d->admin, VERB_JOB_SUBMIT, "{\"type\":\"instance\",\"disk_size\":\"513GiB\"}");
    CHECK(!a.ok && a.err.rc == RC_BAD_INPUT && text_is(a.err.field, "disk_size") && strstr(a.err.text, "524288"));
    CHECK(text_given(door_submit(d, d->admin, "{\"command\":[\"true\"],\"disk_size\":\"513GiB\"}")));     /* of a job nothing is kept */
    CHECK(door_ask(d, d->admin, VERB_PROJECT_CREATE, "{\"name\":\"other\"}").ok && text_given(DISK("a", "200GiB")) && text_given(DISK("b", "57GiB")));
    a = door_ask(d, d->admin, VERB_JOB_SUBMIT, "{\"type\":\"instance\",\"disk_size\":\"257GiB\"}");
    CHECK(!a.ok && strstr(a.err.text, "262144"));
    door_run(d, 2000);
    CHECK(rows_in(d, "volume") == 1 && WAITS("b", "Disk"));
    check_books(d, "projects");
}

TEST(disks_of_instances_count_in_the_quota_of_their_project_whether_they_run_or_not)
{
    struct lab l = lab_new(",\"disk_size\":\"10GiB\"", false);
    AUTO(door_free) struct door *d = l.d;
    CHECK(door_ask(d, d->admin, VERB_PROJECT_UPDATE, "{\"project\":\"default\",\"disk_mib\":15360}").ok);
    struct answer a = door_ask(d, d->admin, VERB_JOB_SUBMIT, "{\"type\":\"instance\",\"disk_size\":\"6GiB\"}");
    CHECK(!a.ok && a.err.rc == RC_OVER_QUOTA && strstr(a.err.text, "15360") && strstr(a.err.text, "10240") && strstr(a.err.text, "--disk"));
    CHECK(ask(&l, VERB_JOB_STOP).ok && ends(&l, "preempted") && door_crash(d));
    CHECK(!door_ask(d, d->admin, VERB_JOB_SUBMIT, "{\"type\":\"instance\",\"disk_size\":\"6GiB\"}").ok);
    a = door_ask(d, d->admin, VERB_JOB_BATCH, "{\"jobs\":[{\"type\":\"instance\",\"disk_size\":\"3GiB\"},{\"type\":\"instance\",\"disk_size\":\"3GiB\"}]}");
    CHECK(!a.ok && a.err.rc == RC_OVER_QUOTA);
    CHECK(text_given(door_submit(d, d->admin, "{\"name\":\"small\",\"type\":\"instance\",\"disk_size\":\"5GiB\"}")));
    a = door_ask(d, d->admin, VERB_QUOTA_LIST, "{}");
    CHECK(a.ok && item_count(&a) == 1 && text_is(item(d, &a, 0, "name"), "disk_mib") && text_is(item(d, &a, 0, "state"), "full"));
    CHECK(ask(&l, VERB_JOB_CANCEL).ok && text_given(door_submit(d, d->admin, "{\"type\":\"instance\",\"disk_size\":\"10GiB\"}")));
    check_books(d, "quota");
}

TEST(an_instance_that_cannot_be_started_is_tried_again_after_longer_and_longer_pauses)
{
    struct lab l = lab_new(",\"retry_delay\":\"0s\"", true);
    AUTO(door_free) struct door *d = l.d;
    CHECK(ends(&l, "start_failed") && text_is(word(&l, "reason"), "RetryDelay"));
    for (int64_t pause = 1000; pause <= 4000; pause *= 2) {
        door_run(d, pause - 500);
        find(&l);
        CHECK(!text_given(l.node));
        door_run(d, 2500);
        find(&l);
        CHECK(text_given(l.node) && ends(&l, "start_failed"));
    }
    CHECK(text_is(word(&l, "state"), "queued"));
}

TEST(stopped_and_started_in_one_breath_it_runs_again)
{
    struct lab l = lab_new("", false);
    AUTO(door_free) struct door *d = l.d;
    const char *home = l.node;
    CHECK(ask(&l, VERB_JOB_STOP).ok && ask(&l, VERB_JOB_START).ok && text_is(word(&l, "state"), "running") && same(&l, "both"));
    CHECK(ends(&l, "preempted") && begins(&l) && text_is(l.node, home) && text_is(word(&l, "state"), "running") && same(&l, "again"));
}

TEST(one_that_waits_is_stopped_at_once_and_cancelling_takes_the_disk_along)
{
    struct lab l = lab_new("", false);
    AUTO(door_free) struct door *d = l.d;
    const char *waits = door_submit(d, d->admin, "{\"name\":\"other\",\"type\":\"instance\",\"gpus\":2,\"node\":\"n1\",\"priority\":50,\"cpus\":1000}");
    CHECK(text_given(waits) && door_ask(d, d->admin, VERB_JOB_STOP, "{\"job\":\"other\"}").ok);
    door_run(d, 1000);
    CHECK(text_is(job_word(d, waits, "state"), "stopped") && same(&l, "it waited") && door_ask(d, d->admin, VERB_JOB_CANCEL, "{\"job\":\"other\"}").ok);
    CHECK(text_is(job_word(d, waits, "state"), "cancelled") && rows_in(d, "volume") == 1);
    CHECK(ask(&l, VERB_JOB_STOP).ok && ends(&l, "preempted") && ask(&l, VERB_JOB_CANCEL).ok && text_is(word(&l, "state"), "cancelled"));
    CHECK(rows_in(d, "volume") == 0 && rows_in(d, "goner") == 1 && same(&l, "cancelled") && door_crash(d) && rows_in(d, "goner") == 1);
}

TEST(where_no_disk_is_kept_nothing_is_stopped_and_no_job_is)
{
    struct lab l = lab_new("", true);
    AUTO(door_free) struct door *d = l.d;
    struct answer a = ask(&l, VERB_JOB_STOP);
    CHECK(!a.ok && a.err.rc == RC_CONFLICT && strstr(a.err.text, "keeps no disk of it") && text_is(word(&l, "state"), "running") && rows_in(d, "volume") == 0);
    CHECK(text_given(door_submit(d, d->admin, "{\"name\":\"plain\",\"command\":[\"true\"]}")));
    a = door_ask(d, d->admin, VERB_JOB_STOP, "{\"job\":\"plain\"}");
    CHECK(!a.ok && a.err.rc == RC_CONFLICT && !door_ask(d, d->admin, VERB_JOB_START, "{\"job\":\"plain\"}").ok);
    CHECK(door_ask(d, d->admin, VERB_JOB_CANCEL, "{\"job\":\"lab\"}").ok && !ask(&l, VERB_JOB_STOP).ok);
}

TEST(a_node_with_a_disk_is_not_removed_unless_it_is_gone_and_then_it_is_told)
{
    struct lab l = lab_new("", false);
    AUTO(door_free) struct door *d = l.d;
    const char *home = l.node;
    CHECK(ask(&l, VERB_JOB_STOP).ok && ends(&l, "preempted"));
    struct answer a = door_ask(d, d->admin, VERB_NODE_REMOVE, FMT(d, "{\"node\":\"%s\"}", home));
    CHECK(!a.ok && a.err.rc == RC_CONFLICT && strstr(a.err.text, "keeps its disk"));
    for (int i = 0; i < 12; i++) { /* the other is heard */
        door_run(d, 5000);
        CHECK(door_ask(d, text_is(home, "n1") ? l.two : l.one, VERB_NODE_REPORT, "{\"kind\":\"report\",\"items\":[]}").ok);
    }
    a = door_ask(d, d->admin, VERB_NODE_REMOVE, FMT(d, "{\"node\":\"%s\"}", home));
    CHECK(a.ok && door_events(d, "job.disk_lost") == 1 && rows_in(d, "volume") == 0 && rows_in(d, "goner") == 0 && same(&l, "removed"));
    CHECK(ask(&l, VERB_JOB_START).ok && begins(&l) && !text_is(l.node, home) && rows_in(d, "volume") == 1);
}
