/* fleet.c - the fleet as a whole: how it stands, and whether so much of it is silent at once that the fault is the network's or ours.
 * Then nothing is taken from a silent node, however long it stays so, until enough are back or an operator says which are gone.
 *
 * What was silent for so long that its tasks were given to others counts as lost, and no more as a part of the fleet: machines that
 * were switched off last month do not raise an alarm today. */
#include "control/call.h"

enum { LEAST = 2, NAMED = 20 };         /* one node alone is that node's fault */

/* 0: a part of the fleet; 1: its tasks were given up; 2: an operator said that it is gone. One that never said hello is none either. */
static bool counts(const struct node *n)
{
    return !n->lost && !text_is(n->info_text, "{}");
}

static bool is_silent(const struct call *c, const struct node *n, int64_t for_ms)
{
    return n->state == NODE_DOWN || c->boot_ms - n->heard_boot_ms > for_ms;
}

static bool too_many(struct call *c, int64_t for_ms, int64_t *silent, int64_t *all)
{
    struct node *n;
    *silent = *all = 0;
    for (size_t i = 0; (n = map_next(c->s->nodes, &i));)
        if (counts(n)) {
            ++*all;
            *silent += is_silent(c, n, for_ms);
        }
    return *silent >= LEAST && *silent * 1000 > *all * c->s->rules.at[RULE_SILENT_PERMILLE];
}

static const char *alarm_data(struct call *c, int64_t silent, int64_t all)
{
    AUTO(str_done) struct str text = { 0 };
    struct json_out o = { .to = &text };
    struct node *n;
    int named = 0;
    json_open(&o, '{');
    json_key(&o, "silent"), json_put_int(&o, silent);
    json_key(&o, "nodes"), json_put_int(&o, all);
    json_key(&o, "names"), json_open(&o, '[');
    for (size_t i = 0; named < NAMED && (n = map_next(c->s->nodes, &i));)
        if (counts(n) && is_silent(c, n, NODE_SILENT_MS)) {
            json_put_text(&o, n->name);
            named++;
        }
    json_close(&o, ']');
    json_close(&o, '}');
    return arena_text(c->mem, text.at);
}

bool fleet_holds(struct call *c)
{
    int64_t silent, all;
    bool many = too_many(c, NODE_SILENT_MS, &silent, &all), alarm = c->s->rules.at[RULE_SILENT_SINCE_MS] != 0;
    if (many != alarm) {
        rule_set(c, RULE_SILENT_SINCE_MS, many ? c->now_ms : 0);
        emit_event(c, 0, many ? "fleet.silent" : "fleet.back", "", alarm_data(c, silent, all));
    }
    /* Nodes fall silent one by one: who is the first must not lose everything before the others are seen to be silent too. */
    return many || too_many(c, NODE_SILENT_MS / 2, &silent, &all);
}

void node_lost_set(struct call *c, struct node *n, int lost)
{
    if (n->lost == lost)
        return;
    n->lost = lost;
    EMIT(c, NODE_LOST, V_INT(n->id), V_INT(lost));
}

bool node_lost(struct call *c, const void *body, struct err *err)
{
    const struct node_ask *ask = body;
    struct node *n = state_node(c->s, ask->node);
    if (!n)
        return err_set(err, RC_NOT_FOUND, "there is no node '%s'", ask->node);
    if (n->state != NODE_DOWN)
        return err_set(err, RC_CONFLICT, "node %s is %s and was heard of %lld s ago, so it is not lost; to empty it: arcus drain %s", n->name,
                       node_state_word(n->state, n->drain), (long long)(c->boot_ms - n->heard_boot_ms) / 1000, n->name);
    node_lost_set(c, n, 2);
    node_write(c, n, n->state, "node.lost");
    node_lose_tick(c, n);
    node_reply(c, n);
    return true;
}

const char *node_note(const struct rules *r, enum node_state state, int lost, enum node_drain drain)
{
    if (state != NODE_DOWN)
        return drain == DRAIN_ON ? "its tasks may finish" : "";
    return lost == 2                            ? "an operator said that it is gone"
           : lost                               ? "its tasks were given to other nodes"
           : r->at[RULE_SILENT_SINCE_MS] ? "silent with many others: its tasks are kept until they are back; if it is gone: arcus nodes lost"
                                                : "silent: its tasks are given to other nodes when they can run there no more";
}

bool fleet_get(struct call *c, const void *body, struct err *err)
{
    (void)body;
    enum { NODES_MOST = 100000 };
    struct rows r;
    struct rules rules;
    struct fleet_view v = { .id = "fleet", .name = "fleet" };
    if (!rules_read(c, &rules, err) || !ROWS(c, NODE_STATES, &r, err, V_INT(NODES_MOST)))
        return false;
    for (size_t i = 0; i < r.count; i++) {
        const char *word = node_state_word((enum node_state)row_int(&r, i, 0), (enum node_drain)row_int(&r, i, 1));
        int64_t n = row_int(&r, i, 3), *const sums[] = { &v.ready, &v.cordoned, &v.draining, &v.drained, &v.down };
        static const char *const words[] = { "ready", "cordoned", "draining", "drained", "down" };
        v.nodes += n;
        for (size_t k = 0; k < COUNT(words); k++)
            *sums[k] += text_is(words[k], word) ? n : 0;
        v.lost += row_int(&r, i, 0) == NODE_DOWN && row_int(&r, i, 2) ? n : 0;
    }
    if (!rows_of(c, ST_FLEET_JOBS, NULL, 0, &r, err))
        return false;
    for (size_t i = 0; i < r.count; i++)
        *(row_int(&r, i, 0) == JOB_QUEUED ? &v.jobs_queued : &v.jobs_running) += row_int(&r, i, 1);
    v.silent_since_ms = rules.at[RULE_SILENT_SINCE_MS];
    v.state = v.silent_since_ms ? "silent" : "active";
    v.note = v.silent_since_ms ? "many nodes are silent at once: it is the network or the servers, so nothing is taken from them; arcus events shows which"
                               : "";
    reply_view(c, &fleet_view_fields, &v);
    return true;
}
