/* Nodes that are told where the addresses of their projects are, and nothing of others. Whatever happens, what a node knows is what is so. */
#include "door.h"
#include <stdio.h>
#include <stdlib.h>

enum { STRAWS = 4, PROJECTS = 2, LIVE = 24, STEPS = 300 };

struct straw { char name[8], key[SECRET_TEXT], underlay[IPV4_TEXT]; int64_t id, next; bool linked; uint32_t knows[PROJECTS + 1][NET_HOSTS]; };
struct told { int64_t node, generation; const char *json; };
struct meadow {
    struct door *d;
    struct straw nodes[STRAWS];
    struct told told[256];
    size_t told_count, entries, pushes;
    struct { char job[ID_TEXT], attempt[ID_TEXT]; int node; } live[LIVE];
    int live_count;
    uint64_t seed;
};

static uint64_t dice(struct meadow *m, uint64_t n)
{
    m->seed = m->seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (m->seed >> 33) % n;
}

static void keep(struct meadow *m, int64_t node, const char *json)
{
    struct json *doc;
    struct err err;
    CHECK(m->told_count < COUNT(m->told) && json_parse(SLICE(json), m->d->mem, &doc, &err));
    m->told[m->told_count++] = (struct told){ node, json_int(doc, "generation", 0), json };
}
static void on_commit(void *arg, const struct commit *k)
{
    struct meadow *m = arg;
    m->pushes += k->push_count;
    for (size_t i = 0; i < k->push_count; i++)
        keep(m, k->pushes[i].node, arena_bytes(m->d->mem, k->pushes[i].json.at, k->pushes[i].json.len));
}

static void learn(struct meadow *m, struct straw *n, const char *json)
{
    struct json *doc;
    struct err err = { 0 };
    struct desired d = { 0 };
    CHECK(json_parse(SLICE(json), m->d->mem, &doc, &err) && bind_read(doc, &desired_fields, m->d->mem, &d, NULL, &err));
    const struct net_part *p = d.nets.at;
    if (d.full)
        memset(n->knows, 0, sizeof n->knows);
    for (size_t i = 0; i < d.nets.count; i++) {
        const struct net_at *at = p[i].at.at;
        CHECK(p[i].net >= 1 && p[i].net <= PROJECTS);
        if (p[i].whole)
            memset(n->knows[p[i].net], 0, sizeof n->knows[0]);
        for (size_t k = 0; k < p[i].at.count; k++)
            for (const char *h = at[k].hosts; *h; h += strcspn(h, ","), h += *h == ',') {
                uint32_t node = 0;
                CHECK(!text_given(at[k].node) || ipv4_parse(at[k].node, &node));
                n->knows[p[i].net][strtol(h, NULL, 10)] = node;
                m->entries++;
            }
    }
}

/* What came is taken in the order in which it was made, as a connection keeps it. */
static void settle(struct meadow *m)
{
    door_run(m->d, 20);
    for (int i = 0; i < STRAWS; i++)
        for (bool any = true; any;) {
            struct told *first = NULL;
            for (size_t k = 0; k < m->told_count; k++)
                if (m->told[k].json && m->told[k].node == m->nodes[i].id && (!first || m->told[k].generation < first->generation))
                    first = &m->told[k];
            any = first != NULL;
            if (any && m->nodes[i].linked)
                learn(m, &m->nodes[i], first->json);
            if (any)
                first->json = NULL;
        }
    m->told_count = 0;
}

/* Of the projects that it has tasks of, everybody else's addresses, and nothing more. */
static bool knows_what_is(struct meadow *m, const struct straw *n)
{
    struct state *s = memory_of(m->d);
    static uint32_t should[PROJECTS + 1][NET_HOSTS];
    bool at_home[PROJECTS + 1] = { 0 };
    struct attempt *a;
    uint32_t node;
    memset(should, 0, sizeof should);
    for (size_t i = 0; (a = map_next(s->attempts, &i));)
        at_home[a->task->job->project->net] |= a->node->id == n->id && text_given(a->node->info.underlay);
    for (size_t i = 0; (a = map_next(s->attempts, &i));)
        if (at_home[a->task->job->project->net] && a->node->id != n->id && ipv4_parse(a->node->info.underlay, &node))
            should[a->task->job->project->net][a->address & (NET_HOSTS - 1)] = node;
    return memcmp(should, n->knows, sizeof should) == 0;
}

static void hello(struct meadow *m, struct straw *n)
{
    const char *running[LIVE];
    size_t count = 0;
    for (int i = 0; i < m->live_count; i++)
        if (m->nodes[m->live[i].node].id == n->id)
            running[count++] = m->live[i].attempt;
    m->d->underlay = n->underlay;
    struct answer a = door_hello(m->d, n->key, n->name, 2, n->next, (struct texts){ running, count });
    CHECK(a.ok);
    n->linked = true;
    keep(m, n->id, a.text);
}

static void begin(struct meadow *m, int node, const char *project)
{
    if (m->live_count == LIVE)
        return;
    struct answer a = door_ask_full(m->d, m->d->admin, project, VERB_JOB_SUBMIT, "{\"command\":[\"true\"],\"cpus\":0.1,\"memory\":\"16MB\"}", NULL, 0);
    struct attempt *x;
    CHECK(a.ok && door_place(m->d, get(&a, "id"), 0, m->nodes[node].name, -1));
    snprintf(m->live[m->live_count].job, ID_TEXT, "%s", get(&a, "id"));
    for (size_t i = 0; (x = map_next(memory_of(m->d)->attempts, &i));)
        id_text(m->live[m->live_count].attempt, PREFIX_ATTEMPT, x->id); /* the newest is the last */
    m->live[m->live_count++].node = node;
}

static void finish(struct meadow *m)
{
    int i = m->live_count ? (int)dice(m, (uint64_t)m->live_count) : -1;
    struct straw *n = i >= 0 ? &m->nodes[m->live[i].node] : NULL;
    if (!n || !n->linked)
        return;
    struct answer a = door_report(m->d, n->key, n->next++, m->live[i].attempt, "ended", ",\"outcome\":\"succeeded\"");
    CHECK(a.ok);
    keep(m, n->id, a.text);
    m->live[i] = m->live[--m->live_count];
}

static struct meadow *meadow_new(void)
{
    struct door *d = door_new(false);
    struct meadow *m = ARENA_NEW(d->mem, struct meadow);
    m->d = d;
    m->seed = 7;
    CHECK(door_ask(d, d->admin, VERB_PROJECT_CREATE, "{\"name\":\"other\"}").ok);
    control_follow(d->control, on_commit, m);
    for (int i = 0; i < STRAWS; i++) {
        struct straw *n = &m->nodes[i];
        snprintf(n->name, sizeof n->name, "n%d", i);
        snprintf(n->underlay, sizeof n->underlay, "192.0.2.%d", 10 + i);
        d->underlay = n->underlay;
        door_node(d, n->name, 2, n->key);
        n->id = state_node(memory_of(d), n->name)->id;
        n->next = 1;
        n->linked = true;
    }
    return m;
}

TEST(each_node_knows_where_the_addresses_of_its_projects_are_whatever_happens)
{
    struct meadow *m = meadow_new();
    AUTO(door_free) struct door *d = m->d;
    bool good = true;
    for (int step = 0; step < STEPS && good; step++) {
        struct straw *n = &m->nodes[dice(m, STRAWS)];
        switch (dice(m, 10)) {
        case 0: n->linked = state_node(memory_of(d), n->name)->linked = false; break;
        case 1: hello(m, n); break;
        case 2: /* it comes back under another address, or under none */
            snprintf(n->underlay, sizeof n->underlay, "192.0.2.%d", (int)(100 + dice(m, 100)));
            if (dice(m, 3) == 0)
                n->underlay[0] = 0;
            hello(m, n);
            break;
        case 3: case 4: case 5: case 6: begin(m, (int)(n - m->nodes), dice(m, 3) ? "default" : "other"); break;
        default: finish(m);
        }
        settle(m);
        for (int i = 0; i < STRAWS && good; i++)
            good = !m->nodes[i].linked || knows_what_is(m, &m->nodes[i]);
    }
    CHECK(good);
    CHECK(m->entries > 100);
    CHECK(door_crash(d)); /* another writer, or the same one again: it is told to everybody who comes */
    control_follow(d->control, on_commit, m);
    for (int i = 0; i < STRAWS; i++)
        m->nodes[i].linked = false;
    for (int i = 0; i < STRAWS; i++)
        hello(m, &m->nodes[i]);
    settle(m);
    for (int i = 0; i < STRAWS; i++)
        CHECK(knows_what_is(m, &m->nodes[i]));
}

TEST(projects_that_stay_on_one_node_cost_no_message_and_no_word)
{
    struct meadow *m = meadow_new();
    AUTO(door_free) struct door *d = m->d;
    m->pushes = 0;
    for (int i = 0; i < 8; i++)
        begin(m, 2, i % 2 ? "default" : "other");
    settle(m);
    CHECK(m->entries == 0 && m->pushes == 8); /* the orders themselves */
    for (int i = 0; i < 8; i++)
        finish(m);
    settle(m);
    CHECK(m->entries == 0 && m->pushes == 8);
}

TEST(who_was_told_too_long_ago_is_told_all_of_it)
{
    struct meadow *m = meadow_new();
    AUTO(door_free) struct door *d = m->d;
    begin(m, 0, "default");
    begin(m, 1, "default");
    size_t first = 0;
    struct attempt copy = *(struct attempt *)map_next(state_node(memory_of(d), "n1")->attempts, &first);
    copy.address = net_address(copy.task->job->project->net, 4000);
    for (int i = 0; i < 3000; i++)
        mesh_hold(memory_of(d), &copy, i % 2 == 0);
    m->entries = 0;
    begin(m, 1, "default");
    settle(m);
    CHECK(knows_what_is(m, &m->nodes[0]) && m->entries < 16);
}
