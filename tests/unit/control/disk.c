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

TEST(an_instance_that_would_have_failed_is_stopped_and_one_that_is_done_is_done)
{
    struct lab l = lab_new(",\"retry\":{\"limit\":1,\"on\":[\"out_of_memory\"]}", false);
    AUTO(door_free) struct door *d = l.d;
    CHECK(ends(&l, "exited") && text_is(word(&l, "state"), "stopped") && rows_in(d, "volume") == 1 && same(&l, "it failed"));
    CHECK(ask(&l, VERB_JOB_START).ok && begins(&l) && ends(&l, "succeeded") && text_is(word(&l, "state"), "done"));
    CHECK(rows_in(d, "volume") == 0 && rows_in(d, "goner") == 1 && same(&l, "done"));
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

/* The nodes of a test have 1 TiB: half of it is for disks, and half of that for one project where there are two. */
TEST(disks_that_are_kept_leave_half_of_a_node_and_to_another_project_half_of_theirs)
{
    AUTO(door_free) struct door *d = door_new(true);
    char key[SECRET_TEXT];
    door_node(d, "n1", 2, key);
#define DISK(name, size) door_submit(d, d->admin, "{\"name\":\"" name "\",\"type\":\"instance\",\"cpus\":1,\"disk_size\":\"" size "\"}")
    CHECK(text_given(DISK("a", "400GiB")) && text_given(DISK("b", "113GiB")));
    door_run(d, 100);
    CHECK(rows_in(d, "volume") == 1 && door_events(d, "job.disk_none") == 1 && rows_in(d, "attempt") == 2);
    CHECK(text_given(DISK("c", "112GiB")));
    door_run(d, 100);
    CHECK(rows_in(d, "volume") == 2 && door_events(d, "job.disk_none") == 1);
    CHECK(door_ask(d, d->admin, VERB_JOB_STOP, "{\"job\":\"b\"}").err.rc == RC_CONFLICT);
    CHECK(door_ask(d, d->admin, VERB_PROJECT_CREATE, "{\"name\":\"other\"}").ok && door_ask(d, d->admin, VERB_JOB_CANCEL, "{\"job\":\"a\"}").ok);
    door_run(d, 100);
    CHECK(text_given(DISK("e", "200GiB")));
    door_run(d, 100);
    CHECK(door_events(d, "job.disk_none") == 2);
    check_books(d, "disks");
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
