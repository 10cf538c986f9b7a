/* Addresses of attempts: each its own, of its project's range, in the store with the lease, and free again with its end. */
#include "door.h"
#include <stdio.h>

enum { TASKS = 4 };

static struct attempt *live(struct door *d, const char *job, int64_t task)
{
    struct state *s = memory_of(d);
    struct job *j;
    int64_t id;
    CHECK(id_parse(job, PREFIX_JOB, &id));
    j = map_get(s->jobs, id);
    struct task *t = j ? job_task(j, task) : NULL;
    return t ? t->attempt : NULL;
}
static uint32_t address_of(struct door *d, const char *job, int64_t task)
{
    struct attempt *a = live(d, job, task);
    return a ? a->address : 1;
}

/* No two live attempts have the same one, each is of its project's range, and the store says the same. */
static bool all_apart(struct door *d)
{
    AUTO(map_free) struct map *seen = map_new();
    struct state *s = memory_of(d);
    struct attempt *a;
    bool ok = true;
    for (size_t i = 0; (a = map_next(s->attempts, &i));) {
        if (!a->address)
            continue;
        ok = ok && net_has(a->task->job->project->net, a->address) && !map_get(seen, a->address);
        map_put(seen, a->address, a);
    }
    return ok;
}

TEST(tasks_of_a_node_with_networks_get_addresses_of_their_project_and_keep_them_over_a_restart)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    uint32_t before[TASKS];
    door_node(d, "n1", 2, key);
    const char *job = door_submit(d, d->admin, "{\"command\":[\"true\"],\"count\":4,\"cpus\":0.1,\"memory\":\"64MB\"}");
    for (int i = 0; i < TASKS; i++) {
        CHECK(door_place(d, job, i, "n1", -1));
        before[i] = address_of(d, job, i);
        CHECK(before[i] == net_address(1, NET_FIRST + i));
    }
    CHECK(all_apart(d));
    CHECK(door_crash(d));
    for (int i = 0; i < TASKS; i++)
        CHECK(address_of(d, job, i) == before[i]);
    CHECK(all_apart(d));
    CHECK(door_hello(d, key, "n1", 2, 1, (struct texts){ 0 }).ok);
    CHECK(door_report(d, key, 1, door_attempt(d, job, 0), "ended", ",\"outcome\":\"succeeded\"").ok);
    const char *next = door_submit(d, d->admin, "{\"command\":[\"true\"],\"cpus\":0.1,\"memory\":\"64MB\"}");
    CHECK(door_place(d, next, 0, "n1", -1));
    CHECK(address_of(d, next, 0) == net_address(1, NET_FIRST + TASKS)); /* not the one that was free a moment ago */
    CHECK(all_apart(d));
}

TEST(another_project_gets_another_range_and_who_wants_no_network_gets_none)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    door_node(d, "n1", 2, key);
    CHECK(door_ask(d, d->admin, VERB_PROJECT_CREATE, "{\"name\":\"other\",\"egress\":\"none\",\"bandwidth\":100}").ok);
    const char *a = door_submit(d, d->admin, "{\"command\":[\"true\"],\"cpus\":0.1,\"memory\":\"64MB\"}");
    const char *none = door_submit(d, d->admin, "{\"command\":[\"true\"],\"network\":\"none\",\"cpus\":0.1,\"memory\":\"64MB\"}");
    CHECK(door_place(d, none, 0, "n1", -1) && address_of(d, none, 0) == 0);
    CHECK(state_project(memory_of(d), "default")->net == 0);
    CHECK(door_place(d, a, 0, "n1", -1) && net_has(1, address_of(d, a, 0)));
    struct project *p = state_project(memory_of(d), "other");
    CHECK(p->net == 0 && text_is(p->egress, "none") && p->mbit == 100);
    CHECK(door_crash(d));
    p = state_project(memory_of(d), "other");
    CHECK(text_is(p->egress, "none") && p->mbit == 100 && state_project(memory_of(d), "default")->net == 1);
    struct answer bad = door_ask(d, d->admin, VERB_PROJECT_UPDATE, "{\"project\":\"other\",\"egress\":\"everywhere\"}");
    CHECK(!bad.ok && text_is(bad.err.field, "egress"));
}

TEST(a_node_without_networks_gets_orders_without_addresses)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    d->no_network = true;
    door_node(d, "n1", 2, key);
    const char *job = door_submit(d, d->admin, "{\"command\":[\"true\"],\"cpus\":0.1,\"memory\":\"64MB\"}");
    CHECK(door_place(d, job, 0, "n1", -1) && address_of(d, job, 0) == 0 && state_project(memory_of(d), "default")->net == 0);
}

TEST(a_project_that_holds_all_of_its_addresses_gets_no_second_one)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    door_node(d, "n1", 2, key);
    const char *job = door_submit(d, d->admin, "{\"command\":[\"true\"],\"count\":3,\"cpus\":0.1,\"memory\":\"64MB\"}");
    CHECK(door_place(d, job, 0, "n1", -1));
    struct state *s = memory_of(d);
    struct attempt *a = live(d, job, 0), all = *a;
    for (int64_t host = NET_FIRST; host < NET_LAST; host++) { /* as if each had its attempt */
        all.address = net_address(1, host);
        addresses_hold(s, &all, true);
    }
    CHECK(door_place(d, job, 1, "n1", -1) && address_of(d, job, 1) == net_address(1, NET_LAST));
    CHECK(door_place(d, job, 2, "n1", -1) && address_of(d, job, 2) == 0);
}
